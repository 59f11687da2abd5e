"""A word in another's form: the forms are those of a grammar book, written down by hand."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.language.forms import fitting, in_case, lemmas, like, readings
from whytrust.language.stop_words import STOP_WORDS
from whytrust.language.written import is_one_word

TABLE = [  # an entry, a word in another's place, its tag, the entry in that form
    ("movie", "films", "NNS", "movies"), ("mouse", "films", "NNS", "mice"), ("child", "films", "NNS", "children"),
    ("tragedy", "films", "NNS", "tragedies"), ("thriller", "films", "NNS", "thrillers"), ("movie", "film", "NN", "movie"),
    ("adore", "loved", "VBD", "adored"), ("go", "loved", "VBD", "went"), ("go", "loved", "VBN", "gone"),
    ("take", "made", "VBN", "taken"), ("stop", "making", "VBG", "stopping"), ("make", "loving", "VBG", "making"),
    ("watch", "loves", "VBZ", "watches"), ("try", "loves", "VBZ", "tries"), ("sing", "love", "VB", "sing"),
    ("sing", "love", "VBP", "sing"), ("happy", "better", "JJR", "happier"), ("good", "happier", "JJR", "better"),
    ("bad", "happiest", "JJS", "worst"), ("dull", "boring", "JJ", "dull"), ("slowly", "quickly", "RB", "slowly"),
    ("soon", "faster", "RBR", "sooner"), ("found", "made", "VBD", "founded"), ("goofy", "silly", "JJ", "goofy")]


@pytest.mark.parametrize(("entry", "pattern", "tag", "form"), TABLE)
def test_an_entry_takes_the_inflection_of_what_it_replaces(entry, pattern, tag, form):
    assert like(entry, pattern, tag, base=True) == form
    assert like(entry, pattern.capitalize(), tag, base=True) == form.capitalize()
    assert like(entry, pattern.upper(), tag, base=True) == form.upper()


@pytest.mark.parametrize(("word", "pattern", "tag", "form"), [
    ("movies", "films", "NNS", "movies"), ("movies", "film", "NN", "movie"), ("went", "loved", "VBD", "went"),
    ("goes", "loved", "VBD", "went"), ("gone", "love", "VB", "go"), ("happier", "good", "JJ", "happy"),
    ("found", "made", "VBD", "found"), ("dog", "films", "NNS", "dogs"), ("mice", "film", "NN", "mouse")])
def test_a_form_is_kept_or_made_into_the_right_one(word, pattern, tag, form):
    assert like(word, pattern, tag) == form


@pytest.mark.parametrize(("word", "pattern", "tag"), [
    ("beautiful", "better", "JJR"),  # more beautiful is two words
    ("adore", "film", "NN"), ("film", "quickly", "RB"),  # another part of speech
    ("information", "facts", "NNS"), ("advice", "hints", "NNS"),  # cannot be counted
    ("impropemess", "faults", "NNS"), ("impropemess", "fault", "NN"),  # a scanner's word
    ("Paris", "film", "NN")])
@pytest.mark.parametrize("base", [False, True])
def test_a_word_without_such_a_form_is_none_rather_than_wrong(word, pattern, tag, base):
    assert like(word, pattern, tag, base) is None


def test_a_tag_that_the_word_cannot_have_gives_way_to_one_that_it_can():
    assert like("superb", "terrible", "NN") == "superb"
    assert like("adore", "loved", "JJ", base=True) == "adored"
    assert readings("loved", "JJ") == [("love", "VERB")]
    assert readings("films", "NNS") == [("film", "NOUN")]


def test_between_words_that_no_dictionary_knows_only_the_case_changes():
    assert like("películas", "Filmes", "NNS") == "Películas"
    assert like("películas", "Filmes", "NNS", base=True) is None
    assert like("lucas", "Spielberg", "NNP") == "Lucas"


@pytest.mark.parametrize(("word", "pattern", "expected"), [
    ("Good", "bad", "good"), ("good", "Bad", "Good"), ("good", "BAD", "GOOD"), ("good", "I", "Good"), ("iPod", "eBook", "iPod"),
    ("GOOD", "Bad", "Good"), ("good", "中", "good"), ("straße", "WEG", "STRASSE"), ("good", "", "good")])
def test_case_is_that_of_the_pattern(word, pattern, expected):
    assert in_case(word, pattern) == expected


def test_words_that_fit_keep_their_order_and_are_no_stop_words_nor_the_word_nor_twice():
    words = ["the", "film", "films", "movie", "Movie", "movies", "motion picture", "well-known", "2nd", "", "pictures", "not", "picture's", "flick"]
    assert fitting(words, "Films", "NNS") == ["Movies", "Pictures", "Flicks"]
    assert fitting(words, "Films", "NNS", most=2) == ["Movies", "Pictures"]


def test_what_hangs_on_a_word_stays():
    assert fitting(["movie", "film", "the", "movies"], "Film's", "NN") == ["Movie's"]
    assert fitting(["movie"], "FILM’S", "NN") == ["MOVIE’S"]


def test_opposites_are_left_out_in_all_their_forms():
    against = {"love": {"hate"}, "good": {"bad"}}
    assert fitting(["adored", "hated", "hates", "hate", "liked"], "loved", "VBD", opposites=lambda w: against.get(w, set())) == ["adored", "liked"]
    assert fitting(["worse", "finer"], "better", "JJR", opposites=lambda w: against.get(w, set())) == ["finer"]
    assert "hate" in lemmas("hated")


WORDS = st.sampled_from(["film", "films", "love", "loved", "went", "good", "better", "MOVIE", "Paris", "well-known", "don't", "the", "mice", "quick",
                         "2nd", "", "a b", "é", "中", "😀", "x'", "xyzzy", "information"])


@given(st.lists(WORDS, max_size=12), WORDS.filter(bool), st.sampled_from(["NN", "NNS", "VBD", "VBG", "JJR", "RB", "NNP", "IN", "UH"]))
def test_whatever_fits_can_be_swapped_in(words, pattern, tag):
    found = fitting(words, pattern, tag)
    assert all(is_one_word(word) and word.lower() not in STOP_WORDS and word.lower() != pattern.lower() for word in found)
    assert len({word.lower() for word in found}) == len(found)
    if pattern.islower():
        assert all(word == word.lower() for word in found)


def test_no_pickle_is_read_to_make_forms():
    """lemminflect has a model of unknown words in a pickle, which is not asked."""
    code = ("import pickle, sys\n"
            "def refuse(*_, **__): raise AssertionError('unpickled')\n"
            "pickle.load = pickle.loads = refuse\n"
            "from whytrust.language.forms import like\n"
            "assert like('xyzzy', 'films', 'NNS') is None and like('movie', 'films', 'NNS') == 'movies'\n")
    subprocess.run([sys.executable, "-c", code], check=True)
