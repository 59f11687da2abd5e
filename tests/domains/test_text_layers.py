"""One text laid over another word by word: which words show is what the mask says, and everything between them stays."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.core import LayeredParts, generator
from whytrust.domains.text import TextParts, words

RNG = generator(0)
WORD = st.sampled_from(["good", "bad", "don't", "well-known", "नमस्ते", "北", "👍🏽", "3.14", "Ünïcode", "a"])
GAP = st.sampled_from([" ", "  ", ", ", " — ", "! ", "\n", " <> ", '" ', " \u200f"])


@st.composite
def pairs(draw, least=1, most=12):
    """(one text, another, the words of both, what stands between them): the same but for words."""
    n = draw(st.integers(least, most))
    upper, lower = (draw(st.lists(WORD, min_size=n, max_size=n)) for _ in range(2))
    gaps = [draw(st.sampled_from(["", " ", "… "])), *(draw(GAP) for _ in range(n - 1)), draw(st.sampled_from(["", ".", " !\n"]))]
    return woven(upper, gaps), woven(lower, gaps), upper, lower, gaps


def woven(some, gaps):
    return gaps[0] + "".join(word + gap for word, gap in zip(some, gaps[1:], strict=True))


@given(pairs(), st.integers(0, 2**32), st.sampled_from([3, 600]))
def test_each_place_shows_the_word_that_the_mask_says(pair, seed, rows):
    upper, lower, above, below, gaps = pair
    parts = TextParts.cut(upper)
    masks = np.vstack([np.random.default_rng(seed).random((rows, len(above))) < 0.5, np.ones((1, len(above)), bool),
                       np.zeros((1, len(above)), bool)])
    texts = parts.over(lower).compose(masks, RNG)
    assert texts == [woven([a if shown else b for a, b, shown in zip(above, below, mask, strict=True)], gaps) for mask in masks]
    assert texts[-2:] == [upper, lower]


@given(pairs())
def test_the_change_of_a_word_is_one_and_of_the_others_none(pair):
    upper, lower, above, below, _ = pair
    parts = TextParts.cut(upper)
    change = parts.squared_change(lower)
    changed = np.array([a != b for a, b in zip(above, below, strict=True)], float)
    assert change.shape == (len(upper),)
    assert parts.pool(change, "sum").tolist() == changed.tolist()
    np.testing.assert_allclose(parts.pool(change, "mean"), changed / [len(word) for word in above])


@given(pairs())
def test_the_same_cut_of_another_text_is_what_cutting_that_text_gives(pair):
    upper, lower, *_ = pair
    parts = TextParts.cut(upper, fill="[MASK]")
    assert parts.like(lower) == TextParts.cut(lower, fill="[MASK]")
    assert parts.like(upper) == parts


def test_words_are_layered_parts_and_so_is_what_is_cut_like_them():
    parts = TextParts.cut("a good film")
    assert isinstance(parts, LayeredParts)
    assert isinstance(parts.like("a bad film"), LayeredParts)
    assert parts.over("a bad film").view == parts.view


def test_in_a_bag_a_part_has_all_its_places_whatever_stands_there_in_the_other_text():
    bag = TextParts.cut("good and good", "bag")
    laid = bag.over("fine and great")
    assert laid.compose(np.array([[True, False], [False, True]]), RNG) == ["good and good", "fine and great"]
    assert bag.pool(bag.squared_change("fine and great"), "sum").tolist() == [2.0, 0.0]
    assert bag.like("fine and great").names == ("fine", "and")


def test_sentences_and_matches_are_laid_over_each_other_too():
    sentences = TextParts.cut("One is good. Two is not.", "sentences")
    assert sentences.over("One. Two.").compose(np.array([[True, False]]), RNG) == ["One is good. Two."]
    letters = TextParts.cut("ab|cd", split="[a-z]+")
    assert letters.over("x|yz").compose(np.array([[False, True]]), RNG) == ["x|cd"]


def test_only_what_the_model_reads_is_laid_over_also_where_the_other_text_is_longer():
    parts = TextParts.cut("a good film, in all", reads=lambda text: 13)
    assert parts.names == ("a", "good", "film")
    other = "an excellent film, in all"
    assert parts.like(other).names == ("an", "excellent", "film")
    everything_and_nothing = np.array([[True] * 3, [False] * 3])
    assert parts.over(other).compose(everything_and_nothing, RNG) == ["a good film, ", "an excellent film, "]


def test_what_is_laid_over_pickles():
    parts = TextParts.cut("a good film", split=r"\S+")
    again = pickle.loads(pickle.dumps(parts.over("no bad plot")))
    assert again.compose(np.array([[False, True, False]]), RNG) == ["no good plot"]


@pytest.mark.parametrize(("upper", "lower", "message"), [
    ("a good film", "a very good film", "expected 3, got 4 in 'a very good film'"),
    ("a good film", "a good, film", "before part 3 one has ' ', the other ', '"),
    ("a good film", "a good film!", "at the end one has '', the other '!'"),
    ("a good film", "…a good film", "before part 1 one has '', the other '…'"),
    ("a good film", "", "which is empty"),
])
def test_texts_that_differ_in_more_than_words_are_refused(upper, lower, message):
    with pytest.raises(ValueError, match=message):
        TextParts.cut(upper).over(lower)


def test_a_cut_by_a_function_of_ones_own_is_of_one_text():
    parts = TextParts.cut("a good film", split=lambda text: ["good"])
    with pytest.raises(TypeError, match="pass split as a regular expression"):
        parts.like("a bad film")


@given(st.lists(WORD, min_size=1, max_size=6))
def test_a_word_alone_is_found_as_it_is(some):
    """What the strategies above rest on."""
    for word in some:
        assert list(words(f" {word} ")) == [(1, 1 + len(word))]
