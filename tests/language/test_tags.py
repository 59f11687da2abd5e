"""Parts of speech as a grammar book has them, of sentences that were tagged by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.language.tags import UNIVERSAL, penn, penn_at, tag
from whytrust.language.written import Written


@pytest.mark.parametrize(("sentence", "tags"), [
    ("the quick foxes did not jump over lazy dogs", "DET ADJ NOUN VERB ADV VERB ADP ADJ NOUN"),
    ("i loved this movie", "PRON VERB DET NOUN"),
    ("he films every scene", "PRON VERB DET NOUN"),
    ("they want to film the ending", "PRON VERB PRT VERB DET NOUN"),
    ("the acting was superb", "DET NOUN VERB ADJ"),
    ("a touching story of love and loss", "DET ADJ NOUN ADP NOUN CONJ NOUN"),
    ("she really sings beautifully", "PRON ADV VERB ADV"),
    ("we don't love it", "PRON VERB VERB PRON"),
])
def test_words_get_their_universal_part_of_speech(sentence, tags):
    assert tag(sentence.split()) == tags.split()


@pytest.mark.parametrize(("sentence", "word", "expected"), [
    ("it was loved by all", "loved", "VBN"), ("it had made money", "made", "VBN"), ("she made it", "made", "VBD"),
    ("they've seen it", "seen", "VBN"), ("it has never been loved", "loved", "VBN"), ("you can't film here", "film", "VB"),
    ("better films exist", "films", "NNS"), ("i love it", "love", "VBP"), ("who loves it", "loves", "VBZ")])
def test_neighbours_decide_where_the_word_alone_does_not(sentence, word, expected):
    words = sentence.split()
    assert penn(words)[words.index(word)] == expected


def test_what_begins_a_sentence_or_is_shouted_is_no_name():
    text = Written.of("It ended. Great actors, though! GREAT MUSIC")
    found = dict(zip(text.words, (penn_at(text, i) for i in range(len(text))), strict=True))
    assert found["Great"] == "JJ"
    assert found["actors"] == "NNS"
    assert tag(["THIS", "IS", "A", "GREAT", "FILM"]) == ["DET", "VERB", "DET", "ADJ", "NOUN"]
    assert penn(["we", "saw", "Spielberg", "there"])[2] == "NNP"


def test_only_the_sentence_counts():
    short, long = Written.of("They want to film."), Written.of("A dog. They want to film. The cat, too!")
    assert penn_at(short, 3) == penn_at(long, 5) == "VB"
    assert penn_at(Written.of("We want to. Film it"), 3) == "NN"  # the "to" is the sentence before's


def test_no_words_have_no_tags():
    assert tag([]) == penn([]) == []


@given(st.text(alphabet=st.sampled_from("aAbB'’-n ts./\n\u200d3é中😀\ud83d"), max_size=60))
def test_every_word_of_any_text_gets_one_tag(text):
    words = Written.of(text).words
    assert len(tag(words)) == len(penn(words)) == len(words)
    assert set(tag(words)) <= {*UNIVERSAL.values(), "X"}
    assert tag(words) == tag(list(words))
