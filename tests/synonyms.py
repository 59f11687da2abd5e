"""A source of candidates that a test writes down, and models whose reasons are known."""

from dataclasses import dataclass

import numpy as np

from whytrust import api
from whytrust.language.written import Written


@dataclass(frozen=True)
class Synonyms:
    """Words and what may stand for them."""

    table: dict[str, list[str]]
    name: str = "a list"

    def __call__(self, text: Written, place: int) -> list[str]:
        return list(self.table.get(text.words[place], ()))


@dataclass(frozen=True)
class Bag:
    """The chance of class 1 is a sum of what words weigh: a model that is additive in words, clipped nowhere."""

    weights: dict[str, float]
    base: float = 0.5

    def __call__(self, texts):
        return np.array([self.base + sum(self.weights.get(word, 0.0) for word in Written.of(text).words) for text in texts])


def bag(weights, base=0.5):
    return api.model(Bag(weights, base), threshold=0.5, output="probability", name="bag")
