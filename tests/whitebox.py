"""Models and parts whose right explanation is known."""

import itertools
import math
import os
from dataclasses import dataclass

import numpy as np
from hypothesis import settings

from whytrust.checked import CheckedModel
from whytrust.designs import Kernel, law
from whytrust.question import Question
from whytrust.views import TextView


@dataclass(frozen=True)
class Bits:
    """Parts that are nothing but themselves: the composed input is the mask."""

    d: int
    domain: str = "image"
    deterministic: bool = True
    noise: float = 0.0

    @property
    def names(self):
        return tuple(f"part {i}" for i in range(self.d))

    @property
    def view(self):
        return TextView("x" * self.d, tuple(((i, i + 1),) for i in range(self.d)))

    def compose(self, masks, rng):
        shown = masks.astype(np.float64)
        return shown + (1 - shown) * self.noise * rng.standard_normal(shown.shape) if self.noise else shown

    def pool(self, map, how):
        return map


@dataclass(frozen=True)
class Additive:
    """scores · weights + constant, summed in a fixed order so that the batch size cannot change a bit."""

    weights: tuple
    constant: float = 0.3

    def __call__(self, batch):
        total = np.full(len(batch), self.constant)
        for weight, column in zip(self.weights, np.asarray(batch).T, strict=True):
            total = total + weight * column
        return total


class Net:
    """A small random net over masks: smooth, not additive, cheap enough to enumerate."""

    def __init__(self, d, seed, scale=1.0):
        random = np.random.default_rng(seed)
        self.first, self.bias = random.normal(size=(d, 16)) * scale, random.normal(size=16)
        self.second = random.normal(size=16) / 4

    def __call__(self, batch):
        return 1 / (1 + np.exp(-(np.tanh(batch @ self.first + self.bias) @ self.second)))


def question(function, parts, **options):
    return Question(CheckedModel(function), parts, **options)


def all_masks(d):
    return np.array(list(itertools.product([False, True], repeat=d)))


def enumerated(function, d, sampling, kernel, samples):
    """LIME's weights from every mask, each with its probability times its kernel: written out, no strata, no surrogate."""
    masks = all_masks(d)
    kept = masks.sum(axis=1)
    weights = (law(sampling, d, samples) * kernel.of_sizes(d))[kept] / np.array([math.comb(d, k) for k in kept])
    rows = masks.astype(np.float64)
    design = np.column_stack([np.ones(len(rows)), rows]) * np.sqrt(weights)[:, None]
    return np.linalg.lstsq(design, function(rows) * np.sqrt(weights), rcond=None)[0][1:]


def soak():
    """Whether this is the long form, `make soak`."""
    return bool(os.environ.get("SOAK"))


def examples(count):
    """Hypothesis examples: `count` in the ordinary suite, fifty times as many in `make soak`."""
    return settings(max_examples=count * (50 if soak() else 1), deadline=None)


COSINE = Kernel("cosine", 0.25)
