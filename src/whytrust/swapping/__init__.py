"""Word swaps: those that change a label, and those that keep it and change what an explainer says."""

RULES = {"repeat": "no place is swapped twice", "stop_words": "stop words stay",
         "part_of_speech": "the same part of speech, nouns and verbs counting as one",
         "sentence_similarity": "15 words around it mean the same, an angular similarity of .84",
         "word_distance": "word vectors near by, a cosine of .5 (with vectors)"}
"""What a swap must keep, as users write it."""
