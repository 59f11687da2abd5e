"""Label-flipping swaps on models whose reasons are known."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synonyms import Synonyms, bag
from whytrust.swapping.constraints import NoRepeat, NoStopWords, Own
from whytrust.swapping.flipping import flip

SAME = Synonyms({"good": ["fine", "great"], "fun": ["witty", "mirth"], "film": ["movie"], "plot": ["story"]})


def test_the_word_that_decides_is_swapped_and_nothing_else():
    model = bag({"good": 0.3, "fun": 0.05, "great": 0.4}, 0.3)
    found = flip(model, "a good fun film", SAME, [NoRepeat()])
    assert found.flipped
    assert [(one.before, one.after) for one in found.swaps] == [("good", "fine")]
    assert found.text.text == "a fine fun film"
    assert (found.clean_label, found.label) == (1, 0)
    assert (found.clean_score, found.score) == pytest.approx((0.65, 0.35))


def test_several_words_are_swapped_where_one_does_not_suffice():
    model = bag({"good": 0.2, "fun": 0.15}, 0.3)
    model_needs_both = bag({"good": 0.2, "fun": 0.25}, 0.4)
    found = flip(model, "a good fun film", SAME, [NoRepeat()])
    assert [one.before for one in found.swaps] == ["good"]
    both = flip(model_needs_both, "a good fun film plot", SAME, [NoRepeat()])
    assert [one.before for one in both.swaps] == ["fun", "good"]
    assert both.flipped


def test_what_cannot_be_flipped_is_said_to_be_so():
    found = flip(bag({"good": 0.4}, 0.55), "a good film plot", SAME, [NoRepeat()])
    assert not found.flipped
    assert found.label == found.clean_label == 1
    assert found.score <= found.clean_score


def test_at_most_so_many_words_are_swapped():
    model = bag({"good": 0.1, "fun": 0.1, "film": 0.1, "plot": 0.1}, 0.3)
    text = "good fun film plot"
    assert len(flip(model, text, SAME, [NoRepeat()], most=0.25).swaps) == 1
    assert len(flip(model, text, SAME, [NoRepeat()], most=0.5).swaps) == 2


def test_of_several_that_flip_the_nearest_is_taken():
    model = bag({"good": 0.3}, 0.3)
    assert flip(model, "a good film", SAME, [NoRepeat()]).swaps[0].after == "fine"
    kept = Own(lambda before, after: "fine" not in after)
    assert flip(model, "a good film", SAME, [NoRepeat(), kept]).swaps[0].after == "great"


@settings(max_examples=40)
@given(st.lists(st.sampled_from(["good", "fun", "film", "plot"]), min_size=2, max_size=6),
       st.dictionaries(st.sampled_from(["good", "fine", "great", "fun", "witty", "mirth", "movie"]), st.floats(-0.05, 0.05)),
       st.sets(st.sampled_from(["fine", "great", "witty", "mirth", "movie", "story"])))
def test_a_costly_constraint_gives_the_same_and_is_asked_less(words, weights, refused):
    asked = {True: 0, False: 0}

    class Rule:
        name = "rule"

        def __init__(self, costly):
            self.costly = costly

        def allows(self, original, current, place, words):
            asked[self.costly] += len(words)
            return [word not in refused for word in words]

    cheap, costly = (flip(bag(weights), " ".join(words), SAME, [NoRepeat(), Rule(one)]) for one in (False, True))
    assert (cheap.text, cheap.swaps, cheap.label, cheap.score) == (costly.text, costly.swaps, costly.label, costly.score)
    assert asked[True] <= asked[False]


def test_stop_words_stay():
    model = bag({"not": 0.4}, 0.3)
    found = flip(model, "not a good film", Synonyms({"not": ["hardly"]}), [NoRepeat(), NoStopWords()])
    assert not found.swaps


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["good", "fun", "film", "plot", "a", "the"]), min_size=2, max_size=9),
       st.dictionaries(st.sampled_from(["good", "fine", "great", "fun", "witty", "film", "movie"]), st.floats(-0.05, 0.05)),
       st.sampled_from([0.2, 0.5, 1.0]))
def test_what_comes_back_is_what_was_asked_for(words, weights, most):
    model, text = bag(weights), " ".join(words)
    found = flip(model, text, SAME, [NoRepeat()], most)
    assert len(found.swaps) <= most * len(words) + 1e-9
    assert found.text.changed(found.original) == tuple(sorted(one.place for one in found.swaps))
    assert all(one.after in SAME.table[one.before] for one in found.swaps)
    scores = model([found.text.text])
    assert int(model.labels(scores)[0]) == found.label
    assert found.flipped == (found.label != found.clean_label)


@pytest.mark.parametrize(("text", "words"), [("film", "at least two words"), ("...", "at least two words"), ("", "at least two words")])
def test_texts_with_too_few_words_are_refused(text, words):
    with pytest.raises(ValueError, match=words):
        flip(bag({}), text, SAME, [NoRepeat()])


@pytest.mark.parametrize("most", [0, 1.5, True, "half", float("nan")])
def test_a_share_of_words_must_be_one(most):
    with pytest.raises(ValueError, match="share of words"):
        flip(bag({}), "a good film", SAME, [NoRepeat()], most)
