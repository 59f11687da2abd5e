"""Texts, a model that looks for one word, and an attack that swaps the words it is told to: the cause is known."""

import re
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from whytrust import model
from whytrust.language.written import Written

FILLER = ("quiet", "long", "recent", "little", "early", "simple", "open", "public", "local", "central", "former", "likely")
SWAPS = {"film": "movie", "fine": "terrible", "story": "tale"}
"""Three words are swapped in every text, and one of them is what the model looks for."""


@dataclass(frozen=True)
class Looking:
    """Bad where a text has the word, and good where it has not; with `missed` the other way round."""

    word: str = "terrible"
    missed: bool = False
    limit: int | None = None  # characters that it reads

    def __call__(self, texts):
        there = [self.word in re.findall("[a-z]+", text[:self.limit]) for text in texts]
        bad = np.where(np.array(there, dtype=bool) != self.missed, 0.9, 0.2)
        return np.column_stack([1 - bad, bad])

    def reads(self, text):
        return len(text) if self.limit is None else min(self.limit, len(text))


@dataclass(frozen=True)
class Swapping:
    """Every word of the list is swapped, whatever the model says of it."""

    swaps: tuple = tuple(SWAPS.items())

    def __call__(self, model, text, on_calls=None):
        swapped, table = Written.of(text), dict(self.swaps)
        for place, word in enumerate(swapped.words):
            if word in table:
                swapped = swapped.swap(place, table[word])
        if on_calls is not None:
            on_calls(1)
        return SimpleNamespace(text=swapped, clean_label=int(model.labels(model([text]))[0]))


def looking(word="terrible", **options):
    return model(Looking(word, **options), classes=["good", "bad"], name="looking")


def texts(n, seed=0):
    """The three words that will be swapped, among six to nine that will not, in any order."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        some = [*SWAPS, *rng.choice(FILLER, rng.integers(6, 10), replace=False)]
        found.append(" ".join(rng.permutation(some).tolist()) + ".")
    return found
