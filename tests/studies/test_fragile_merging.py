"""Pieces of words as one score: by their mean, and by the largest."""

import numpy as np
import pytest

from synonyms import bag
from whytrust.studies import fragile_merging
from whytrust.studies.fragile_merging import Merged


class Spoken:
    """An explainer that says a number a token, as it was told to."""

    def __init__(self, tokens):
        self.tokens = tokens

    def of_tokens(self, question, rng):
        spans, values = zip(*self.tokens, strict=True)
        return np.array(values), spans, np.zeros(question.d)


TOKENS = [(None, 9.0), ((0, 2), 0.5), ((2, 7), -0.3), ((7, 9), 0.1), ((10, 14), -0.2), ((15, 16), 5.0), (None, 7.0)]
"""unhappily = un + happi + ly, film, and a stop that is no word; special tokens stand nowhere."""


def test_the_mean_waters_down_what_the_largest_keeps():
    found = fragile_merging.merged(bag({"film": 0.2}), Spoken(TOKENS), "unhappily film .")
    assert found.mean == pytest.approx((0.1, -0.2))
    assert found.largest == (0.5, -0.2)
    assert found.pieces == {"unhappily": ["un", "happi", "ly"]}
    assert found.apart == pytest.approx(0.8)


def test_the_largest_has_its_own_sign():
    tokens = [((0, 2), 0.3), ((2, 9), -0.5), ((10, 14), 0.1)]
    found = fragile_merging.merged(bag({"film": 0.2}), Spoken(tokens), "unhappily film")
    assert found.largest[0] == -0.5


def test_words_of_one_piece_show_nothing():
    assert fragile_merging.merged(bag({"film": 0.2}), Spoken([((0, 9), 0.3), ((10, 14), 0.1)]), "unhappily film") is None


def test_examples_are_those_where_it_matters_most(monkeypatch):
    def one(model, explainer, text, seed):
        n = int(text.split()[1])
        return None if n == 2 else Merged("m", "l", text, ((0, 1),), (n / 10,), (1.0,), {"a": ["a"]})

    monkeypatch.setattr(fragile_merging, "merged", one)
    found = fragile_merging.examples(None, None, ["a 5", "a 1", "a 2", "a 3", "a " + "long " * 40])
    assert [x.text for x in found] == ["a 1", "a 3"]
