"""Each constraint alone, by what is known of words; and that swaps keep all of them."""

import numpy as np
import pytest

from synonyms import Synonyms
from whytrust.language.sources import candidates_of
from whytrust.language.vectors import WordVectors
from whytrust.language.written import Written
from whytrust.swapping.constraints import (
    NoRepeat,
    NoStopWords,
    Own,
    SamePartOfSpeech,
    SentenceSimilarity,
    WordDistance,
    allowed,
    constraints_of,
    proposed,
)


def text(words):
    return Written.of(words)


def test_a_place_is_swapped_once():
    original = text("a good film")
    assert NoRepeat().allows(original, original, 1, ["fine", "great"]) == [True, True]
    assert NoRepeat().allows(original, original.swap(1, "fine"), 1, ["great"]) == [False]
    assert NoRepeat().allows(original, original.swap(1, "fine"), 2, ["movie"]) == [True]


def test_stop_words_stay_and_do_not_come_in():
    original = text("This is not a good film")
    rule = NoStopWords()
    assert rule.allows(original, original, 2, ["hardly"]) == [False]
    assert rule.allows(original, original, 0, ["that"]) == [False]
    assert rule.allows(original, original, 4, ["fine", "the"]) == [True, False]


def test_a_noun_may_stand_for_a_noun_and_not_an_adjective_for_it():
    original = text("the director made a wonderful movie about love")
    rule = SamePartOfSpeech()
    assert rule.allows(original, original, 5, ["picture", "quickly"]) == [True, False]
    assert rule.allows(original, original, 4, ["beautiful", "beautifully"]) == [True, False]


def test_nouns_and_verbs_count_as_one_unless_told_otherwise():
    original = text("the actors run away")
    strict, usual = SamePartOfSpeech(noun_or_verb=False), SamePartOfSpeech()
    kinds = {word: (strict.allows(original, original, 2, [word])[0], usual.allows(original, original, 2, [word])[0])
             for word in ("walk", "quickly")}
    assert kinds["walk"] == (True, True)
    assert kinds["quickly"] == (False, False)


def test_the_tagger_sees_the_same_in_a_long_text():
    short = "the director made a wonderful movie about love"
    original = text(" ".join([short] * 30))
    place = 8 * 15 + 5
    assert SamePartOfSpeech().allows(original, original, place, ["picture", "quickly"]) == [True, False]


def test_what_means_something_else_is_not_similar():
    original = text("a warm and funny film about a family")
    rule = SentenceSimilarity()
    assert rule.allows(original, original, 4, ["movie", "concrete"]) == [True, False]
    assert rule.allows(original, original, 4, []) == []


def test_similarity_is_of_a_window_and_to_the_original():
    far = "with much to say of love and loss in the old country by the sea " * 10
    original = text(f"a warm and funny film about a family {far}")
    assert SentenceSimilarity(window=7).allows(original, original, 4, ["movie", "concrete"]) == [True, False]
    passes = {window: [SentenceSimilarity(least, window).allows(original, original, 4, ["concrete"])[0]
                       for least in np.linspace(0.5, 1, 26)] for window in (7, 500)}
    assert sum(passes[7]) < sum(passes[500])  # one of 130 words counts less
    swapped = original.swap(2, "concrete")  # what was swapped before counts, for it is compared with the original
    assert SentenceSimilarity(window=7, least=0.9).allows(original, swapped, 4, ["movie"]) == [False]


@pytest.fixture
def vectors(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "vectors.txt"
    file.write_text("good 1 0\nfine 0.9 0.435889894\nbad -1 0\nodd 0.4 0.916515139\n", encoding="utf-8")
    return WordVectors.open(file)


def test_words_must_be_near_by_their_vectors(vectors):
    original = text("a good film")
    assert WordDistance(vectors, 0.5).allows(original, original, 1, ["fine", "bad", "odd", "unheard"]) == [True, False, False, False]
    assert WordDistance(vectors, 0.3).allows(original, original, 1, ["odd"]) == [True]


def test_any_function_of_both_texts_is_a_constraint():
    original = text("a good film")
    short = Own(lambda before, after: len(after) <= len(before))
    assert short.allows(original, original, 1, ["fine", "wonderful"]) == [True, False]
    (rule,) = [one for one in constraints_of(lambda before, after: "x" not in after) if isinstance(one, Own)]
    assert rule.allows(original, original, 1, ["fine", "xenial"]) == [True, False]


def test_a_function_that_fails_or_says_nothing_is_named():
    original = text("a good film")

    def forgetful(before, after):
        len(after)

    def failing(before, after):
        raise KeyError("film")

    with pytest.raises(TypeError, match="constraint forgetful must return True or False"):
        Own(forgetful).allows(original, original, 1, ["fine"])
    with pytest.raises(ValueError, match="constraint failing failed on 'a fine film': KeyError: 'film'"):
        Own(failing).allows(original, original, 1, ["fine"])
    with pytest.raises(ValueError, match="candidates failing failed on 'good': KeyError"):
        candidates_of(failing)(original, 1)


def test_what_one_refuses_the_next_is_not_asked():
    original, seen = text("a good film"), []

    def record(before, after):
        seen.append(after)
        return True

    assert allowed([Own(lambda before, after: "fine" in after), Own(record)], original, original, 1, ["fine", "dull"]) == ["fine"]
    assert seen == ["a fine film"]


def test_places_that_no_word_may_take_are_not_looked_up():
    class Never:
        name = "never"

        def __call__(self, text, place):
            raise AssertionError("looked up")

    original = text("the good film")
    assert proposed(Never(), [NoStopWords()], original, original, 0) == []
    assert proposed(Never(), [NoRepeat()], original, original.swap(1, "fine"), 1) == []
    assert proposed(Synonyms({"good": ["fine", "the"]}), [NoStopWords()], original, original, 1) == ["fine"]


def test_the_usual_constraints_are_all_of_them(vectors):
    assert [one.name for one in constraints_of()] == ["repeat", "stop_words", "part_of_speech", "sentence_similarity"]
    assert [one.name for one in constraints_of(None, vectors)] == ["repeat", "stop_words", "word_distance", "part_of_speech",
                                                                   "sentence_similarity"]
    assert [one.name for one in constraints_of("stop_words")] == ["repeat", "stop_words"]  # a place twice would count twice


@pytest.mark.parametrize(("given", "error", "words"), [
    ("stop_word", ValueError, "did you mean 'stop_words'"), ("word_distance", ValueError, "needs word vectors"),
    (3, TypeError, "a constraint must be a name"), (NoRepeat, TypeError, "a constraint must be a name")])
def test_what_is_no_constraint_is_refused(given, error, words):
    with pytest.raises(error, match=words):
        constraints_of(given)


@pytest.mark.parametrize("make", [lambda: SentenceSimilarity(least=2), lambda: SentenceSimilarity(window=0),
                                  lambda: SentenceSimilarity(least=np.nan), lambda: SentenceSimilarity(window=True)])
def test_odd_numbers_are_refused(make):
    with pytest.raises(ValueError, match="must be"):
        make()


def test_a_constraint_that_does_not_answer_is_refused():
    class Silent:
        name = "silent"

        def allows(self, original, current, place, words):
            return []

    original = text("a good film")
    with pytest.raises(ValueError, match="one answer a word: expected 1, got 0"):
        allowed([Silent()], original, original, 1, ["fine"])
