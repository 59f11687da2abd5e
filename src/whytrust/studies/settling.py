"""How many samples does LIME need until it says the same thing again? (The choice of 8192 of Praher et al. 2021.)"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats as scipy_stats

from whytrust.core import Floats
from whytrust.designs import Kernel, plain_masks
from whytrust.local import Fitting, fit, plain_sample
from whytrust.question import Question

REPEATS = 4
"""Explanations of the largest size that are compared; of half of it there are twice as many."""
LEAST, TOP = 64, 3
KERNEL = Kernel("cosine", 0.25, True)


def settled(question: Question, largest: int, rng: np.random.Generator) -> dict[str, Any]:
    """For 64, 128, … `largest` samples: how far independent explanations of one input agree.

    `spread` is the standard deviation of a weight, relative to that of the weights among themselves; `order` the mean rank
    correlation of pairs, `top` the share of the three best parts that a pair has in common. The pools of different sizes share
    their samples, so the curve is smooth, and its points are not independent of each other.
    """
    if largest < LEAST:
        raise ValueError(f"samples must be at least {LEAST} to see how explanations settle, got {largest}")
    masks = np.vstack([plain_masks(question.d, "bernoulli", KERNEL, largest, rng)[0] for _ in range(REPEATS)])
    scores = question.score(masks, rng)
    sizes = [largest // 2**i for i in range(int(np.log2(largest / LEAST)) + 1)][::-1]
    weights = {size: np.stack([_weights(masks[start:start + size], scores[start:start + size], question.d)
                               for start in range(0, len(masks) - size + 1, size)]) for size in sizes}
    return {"sizes": sizes, "repeats": [len(weights[size]) for size in sizes],
            "spread": [_spread(weights[size]) for size in sizes],
            "order": [_agreement(weights[size], lambda a, b: float(scipy_stats.spearmanr(a, b)[0])) for size in sizes],
            "top": [_agreement(weights[size], _shared_top) for size in sizes]}


def _weights(masks: Any, scores: Floats, d: int) -> Floats:
    """LIME's weights from these samples: a ridge of 1 with an intercept."""
    sample = plain_sample(masks.astype(np.float64), scores, KERNEL.of_sizes(d)[masks.sum(axis=1)])
    return np.asarray(fit(sample, None, Fitting("none", None, 1.0, "linear"), np.ones(d)).weights)


def _spread(weights: Floats) -> float:
    return float(np.sqrt(weights.var(axis=0, ddof=1).mean()) / max(float(weights.mean(axis=0).std()), 1e-300))


def _agreement(weights: Floats, how: Any) -> float:
    pairs = list(combinations(range(min(len(weights), 12)), 2))  # of very many small ones a few dozen pairs say enough
    return float(np.mean([how(weights[i], weights[j]) for i, j in pairs]))


def _shared_top(first: Floats, second: Floats) -> float:
    return len(set(np.argsort(-first)[:TOP]) & set(np.argsort(-second)[:TOP])) / TOP
