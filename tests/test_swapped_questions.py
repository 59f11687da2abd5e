"""Questions about texts that differ in one word: what is known of one is known of the other, and nothing else is."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from whytrust import api
from whytrust.core import generator
from whytrust.domains.text import TextParts
from whytrust.question import Question

WORDS = ("good", "bad", "film", "very", "not", "dull", "fine", "plot", "it", "was")


def crooked(texts):
    """Scores that depend on every character and its place, so that no two texts share one by chance."""
    return np.array([[0.5 + 0.4 * np.sin(sum(i * ord(c) for i, c in enumerate(t, 1)))] for t in texts])


def asked(model, text):
    counted = []
    question = Question(model, TextParts.cut(text, "words"), 1, on_calls=counted.append).watching([1])[0]
    return question, counted


@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=11), st.data())
def test_a_swapped_question_says_what_a_new_one_would(words, data):
    model = api.model(crooked, threshold=0.5, output="probability")
    place = data.draw(st.integers(0, len(words) - 1))
    text, other = " ".join(words), " ".join([*words[:place], "other", *words[place + 1:]])
    question, _ = asked(model, text)
    masks = np.random.default_rng(0).random((40, len(words))) < 0.5
    question.score(masks, generator(0))
    swapped = question.swapped(TextParts.cut(other, "words"), place, model([other])[0])
    fresh, _ = asked(model, other)
    np.testing.assert_array_equal(swapped.score(masks, generator(0)), fresh.score(masks, generator(0)))
    np.testing.assert_array_equal(swapped.score(~np.eye(len(words), dtype=bool), generator(0)),
                                  fresh.score(~np.eye(len(words), dtype=bool), generator(0)))


def test_masks_that_hide_the_swapped_word_are_not_asked_again():
    model = api.model(crooked, threshold=0.5, output="probability")
    question, counted = asked(model, "it was a good film with a fine plot")
    masks = np.unique(np.random.default_rng(1).random((60, 9)) < 0.5, axis=0)
    question.score(masks, generator(0))
    swapped = question.swapped(TextParts.cut("it was a bad film with a fine plot", "words"), 3, np.array([0.4, 0.6]))
    before = sum(counted)
    swapped.score(masks, generator(0))
    assert sum(counted) - before == int(masks[~masks.all(axis=1), 3].sum())
