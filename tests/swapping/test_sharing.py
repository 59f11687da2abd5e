"""Questions asked together, imagined answers, and what a race makes of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust import api
from whytrust.core import generator
from whytrust.domains.text import TextParts
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.question import Question
from whytrust.swapping.racing import Racing
from whytrust.swapping.sharing import Noted, imagined, together

TEXT = "it was a good film with a fine plot"
SWAPPED = ["it was a bad film with a fine plot", "it was a dull film with a fine plot", "it was a grand film with a fine plot"]
PLACE = 3


def crooked(texts):
    """Scores that depend on every character and its place, so that no two texts share one by chance."""
    return np.array([[0.5 + 0.4 * np.sin(sum(i * ord(c) for i, c in enumerate(t, 1)))] for t in texts])


def model(function=crooked):
    return api.model(function, threshold=0.5, output="probability")


def question(text, function=crooked, batch_size=None, counted=None):
    asked = Question(model(function), TextParts.cut(text, "words"), 1, batch_size, on_calls=None if counted is None else counted.append)
    return asked.watching([1])[0]


def masks(rows, words, seed=0):
    return np.random.default_rng(seed).random((rows, words)) < 0.6


@given(st.integers(1, 40), st.integers(0, 5), st.sampled_from([None, 1, 7]))
def test_questions_asked_together_answer_as_each_does_alone(rows, seed, batch_size):
    asked = masks(rows, 9, seed)
    some, alone = ([question(text, batch_size=batch_size) for text in SWAPPED] for _ in range(2))
    some[0].score(asked[: rows // 2], generator(0))  # it knows some already
    together(some, asked)
    for one, other in zip(some, alone, strict=True):
        calls = one.memory.calls
        np.testing.assert_array_equal(one.score(asked, generator(0)), other.score(asked, generator(0)))
        assert one.memory.calls == calls, "nothing was left to ask"


def test_what_is_asked_together_reaches_the_model_at_once_and_is_counted():
    batches, counted = [], []

    def noting(texts):
        batches.append(len(texts))
        return crooked(texts)

    some = [question(text, noting, counted=counted) for text in SWAPPED]
    for one in some:
        assert one.original.shape == (2,)
    asked, before = np.unique(masks(30, 9), axis=0), len(batches)
    asked = asked[~asked.all(axis=1)]
    together(some, asked)
    assert batches[before:] == [3 * len(asked)]
    assert sum(counted) == sum(batches)
    together(some, asked)
    together([], asked)
    assert len(batches) == before + 1


def test_a_batch_size_holds_for_all_of_them_together():
    batches = []

    def noting(texts):
        batches.append(len(texts))
        return crooked(texts)

    together([question(text, noting, batch_size=10) for text in SWAPPED], masks(30, 9))
    assert max(batches) <= 10


def test_imagined_answers_are_given_and_not_kept():
    one, asked = question(TEXT), np.unique(masks(30, 9), axis=0)
    asked = asked[~asked.all(axis=1)]
    real = one.score(asked[:10], generator(0))
    told = np.linspace(0, 1, len(asked))
    dream, calls = imagined(one, asked, told), one.memory.calls
    found = dream.score(asked, generator(0))
    np.testing.assert_array_equal(found, told)  # whatever was asked before
    np.testing.assert_array_equal(one.score(asked[:10], generator(0)), real)
    assert one.memory.calls == calls
    assert len(one.memory.known) == 11
    np.testing.assert_array_equal(one.score(asked, generator(0)), question(TEXT).score(asked, generator(0)))


@pytest.mark.parametrize("explainer", [Lime(samples=60, features="all"), Occlusion(),
                                       Lime(samples=60, features="all", variant="reference", design="plain", surrogate=False)])
def test_what_an_explainer_asks_is_noted_and_is_the_same_of_a_swapped_text(explainer):
    noted = Noted.of(question(TEXT))
    first = explainer(noted, generator(1))
    np.testing.assert_array_equal(first.scores, explainer(question(TEXT), generator(1)).scores)
    other = question(SWAPPED[0])
    together([other], noted.asked)
    calls = other.memory.calls
    explainer(other, generator(1))
    assert len(noted.asked)
    assert other.memory.calls == calls


def test_a_race_is_the_same_whatever_was_asked_before():
    parent, asked = question(TEXT), np.unique(masks(60, 9), axis=0)
    asked = asked[~asked.all(axis=1)]
    before = parent.score(asked, generator(0))
    texts = [" ".join([*TEXT.split()[:PLACE], f"w{i}", *TEXT.split()[PLACE + 1:]]) for i in range(12)]

    def left(known):
        some = [parent.swapped(TextParts.cut(text, "words"), PLACE, parent.model([text])[0]) for text in texts]
        for i in known:
            some[i].score(asked, generator(0))
        race = Racing(shares=(0.2, 0.5), keep=(0.5, 0.2), least=1)
        return race(some, parent, PLACE, asked, lambda one: float(np.abs(one.score(asked, generator(0)) - before).sum()))

    assert left([]) == left([0, 3, 5]) == left(range(12))


def test_where_no_mask_shows_the_word_nobody_is_given_up():
    parent, asked = question(TEXT), np.zeros((1, 9), bool)
    parent.score(asked, generator(0))
    some = [parent.swapped(TextParts.cut(text, "words"), PLACE, parent.model([text])[0]) for text in SWAPPED]
    assert Racing(least=1)(some, parent, PLACE, asked, lambda one: 0.0) == [0, 1, 2]


@given(st.lists(st.floats(-0.04, 0.04), min_size=6, max_size=15, unique=True), st.integers(0, 9))
def test_where_a_word_adds_the_same_wherever_it_stands_a_race_is_won_by_whoever_would_win(effects, seed):
    words = TEXT.split()
    worth = {f"w{i}": effect for i, effect in enumerate(effects)} | dict(zip(words, np.linspace(-0.02, 0.02, 9), strict=True))

    def additive(texts):
        return np.array([[0.5 + sum(worth[word] for word in text.split())] for text in texts])

    parent = question(TEXT, additive)
    asked = np.unique(masks(80, 9, seed), axis=0)
    asked = asked[~asked.all(axis=1)]
    parent.score(asked, generator(0))
    texts = [" ".join([*words[:PLACE], f"w{i}", *words[PLACE + 1:]]) for i in range(len(effects))]
    some = [parent.swapped(TextParts.cut(text, "words"), PLACE, parent.model([text])[0]) for text in texts]
    before = parent.score(asked, generator(0))

    def far(one):
        return float(np.abs(one.score(asked, generator(0)) - before).sum())

    (left,) = Racing(shares=(0.1,), keep=(0.01,), least=1)(some, parent, PLACE, asked, far)
    assert abs(effects[left] - worth["good"]) == pytest.approx(max(abs(e - worth["good"]) for e in effects), abs=1e-6)
    unfinished = [one for i, one in enumerate(some) if i != left]
    assert all(one.memory.calls <= 0.1 * asked[:, PLACE].sum() + 1 for one in unfinished)
