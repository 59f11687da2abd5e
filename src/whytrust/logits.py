"""From a model's own outputs to probabilities, and rows that point at a class."""

from __future__ import annotations

import math
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


OF_ONE = 1e-4
"""Scores of an input whose sum is this near to 1 are shares of it."""
TO_ROUNDING = 1e-6
"""The same where nothing was rounded or left out but the last digits of single precision."""


def are_shares(scores: Floats | None) -> bool:
    """Whether these scores of one input are shares of 1, as probabilities are."""
    return scores is not None and len(scores) > 1 and bool((scores >= 0).all()) and abs(float(scores.sum()) - 1) < OF_ONE


CLIP = 1e-9
"""How near to 0 and 1 a probability may come before its log-odds are cut."""
MOST = math.log(1 / CLIP - 1)
"""The largest log-odds of a probability, 20.7."""


def log_odds(p: Floats, rest: Floats | None = None) -> Floats:
    """log p − log(1 − p) of each probability, cut to ± MOST; `rest` is 1 − p where that is known better than from p."""
    share = np.clip(p, 0, 1)
    with np.errstate(divide="ignore"):
        odds = np.log(share) - (np.log1p(-share) if rest is None else np.log(rest))
    return np.asarray(np.clip(odds, -MOST, MOST))


def log_odds_of_rows(p: Floats) -> Floats:
    """(n, classes) probabilities -> each class's log-odds.

    Of the largest share of 1 what is left is the sum of the others: in single precision 1 − p would say little near p = 1.
    """
    odds, rows, largest = log_odds(p), np.arange(len(p)), p.argmax(axis=1)
    others = p.copy()
    others[rows, largest] = 0.0
    shares = (p >= 0).all(axis=1) & (np.abs(p.sum(axis=1) - 1) < TO_ROUNDING) & (p.shape[1] > 1)
    odds[rows, largest] = np.where(shares, log_odds(p[rows, largest], others.sum(axis=1)), odds[rows, largest])
    return odds


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
