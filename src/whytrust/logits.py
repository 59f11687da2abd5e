"""From a model's own outputs to probabilities, and rows that point at a class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
"""Real numbers; scores are always float64."""


def one_hot(shape: tuple[int, ...], targets: NDArray[np.intp]) -> Floats:
    """1 at each row's target, 0 elsewhere."""
    rows = np.zeros(shape)
    rows[np.arange(shape[0]), targets] = 1.0
    return rows


def are_shares(scores: Floats | None) -> bool:
    """Whether these scores of one input are shares of 1, as probabilities are."""
    return scores is not None and len(scores) > 1 and bool((scores >= 0).all()) and abs(float(scores.sum()) - 1) < 1e-4


def sigmoid(z: Floats) -> Floats:
    """The probability of the second of two classes."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * z)))


def softmax(z: Floats) -> Floats:
    """The probabilities of each row's classes."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))
