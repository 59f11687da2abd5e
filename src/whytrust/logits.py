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


CLIP = 1e-9
"""How near to 0 and 1 a probability may come before its log-odds are taken: they lie within ± 20.7."""


def log_odds(p: Floats) -> Floats:
    """log p − log(1 − p) of each probability, clipped where it is next to 0 or 1."""
    near = np.clip(p, CLIP, 1 - CLIP)
    return np.asarray(np.log(near) - np.log1p(-near))


def log_odds_of_logits(z: Floats) -> Floats:
    """(n, classes) outputs before a softmax -> each class's log-odds, z − log Σ exp of the others, with nothing to clip."""
    shifted = z - z.max(axis=1, keepdims=True)
    total = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    rows, largest = np.arange(len(z)), z.argmax(axis=1)
    rest = np.log1p(-np.minimum(np.exp(shifted - total), 0.75))  # of the largest it is not exact, and replaced
    others = shifted.copy()
    others[rows, largest] = -np.inf
    second = others.max(axis=1)
    rest[rows, largest] = second + np.log(np.exp(others - second[:, None]).sum(axis=1)) - total[:, 0]
    return np.asarray(shifted - total - rest)


def sigmoid(z: Floats) -> Floats:
    """The probability of the second of two classes."""
    return np.asarray(0.5 * (1 + np.tanh(0.5 * z)))


def softmax(z: Floats) -> Floats:
    """The probabilities of each row's classes."""
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))
