"""Weighted least squares on moments: every fit here needs only the Gram matrix of the parts and their product with the scores.

So a fit costs the same for a thousand samples as for a million, folds are differences of sums, and moments that are known
exactly (of a surrogate over all masks) can take the place of sampled ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import lars_path_gram
from threadpoolctl import ThreadpoolController

from whytrust.core import Floats

P = ParamSpec("P")
R = TypeVar("R")
SELECTIONS = ("lasso_path", "forward", "highest_weights", "auto", "none")


def one_thread(function: Callable[P, R]) -> Callable[P, R]:
    """Run with one linear-algebra thread: faster on matrices as small as ours, and the same bits on every machine size."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> R:
        with _threads().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited


@cache
def _threads() -> Any:
    return ThreadpoolController()


@dataclass(frozen=True)
class Moments:
    """Weighted sums over samples: of [1, z][1, z]ᵀ, of [1, z]·score, and of score²."""

    gram: Floats
    cross: Floats
    square: float

    @classmethod
    def of(cls, rows: Floats, scores: Floats, weights: Floats) -> Moments:
        """The moments of rows (n, d) and their scores."""
        weighted = rows * weights[:, None]
        gram = np.empty((rows.shape[1] + 1,) * 2)
        gram[0, 0] = weights.sum()
        gram[0, 1:] = gram[1:, 0] = weighted.sum(axis=0)
        gram[1:, 1:] = rows.T @ weighted
        cross = np.concatenate([[weights @ scores], weighted.T @ scores])
        return cls(gram, cross, float(weights @ scores**2))

    def __sub__(self, other: Moments) -> Moments:
        """The moments of the samples that are not in `other`."""
        return Moments(self.gram - other.gram, self.cross - other.cross, self.square - other.square)

    @property
    def centred(self) -> tuple[Floats, Floats, float]:
        """(C, c, v): weighted covariances of parts, of parts with the score, and the score's variance, all times the weight."""
        total, sums = self.gram[0, 0], self.gram[0, 1:]
        covariance = self.gram[1:, 1:] - np.outer(sums, sums) / total
        with_score = self.cross[1:] - sums * self.cross[0] / total
        return covariance, with_score, self.square - self.cross[0] ** 2 / total


def varies(moments: Moments) -> NDArray[np.intp]:
    """The parts that are not constant over the samples; only these can have a weight."""
    covariance, _, _ = moments.centred
    return np.flatnonzero(np.diag(covariance) > 1e-12 * moments.gram[0, 0])


def solve(moments: Moments, active: NDArray[np.intp], ridge: float = 0.0) -> tuple[float, Floats]:
    """Intercept and weights of the parts in `active`; the ridge, as in scikit-learn, spares the intercept."""
    covariance, with_score, _ = moments.centred
    total = moments.gram[0, 0]
    weights = np.zeros(len(with_score))
    if len(active):
        inner = covariance[np.ix_(active, active)] + ridge * np.eye(len(active))
        weights[active] = _symmetric_solve(inner, with_score[active])
    return float((moments.cross[0] - moments.gram[0, 1:] @ weights) / total), weights


def select(moments: Moments, how: str, most: int | None, origin: Floats) -> NDArray[np.intp]:
    """At most `most` parts to keep: by the lasso's path (the paper), forward selection, or the highest weights of a ridge."""
    if how not in SELECTIONS:
        raise ValueError(f"selection must be one of {', '.join(SELECTIONS)}, got {how!r}")
    able = varies(moments)
    if how == "none" or most is None or most >= len(able):
        return able
    if how == "auto":
        how = "forward" if most <= 6 else "highest_weights"
    if how == "forward":
        return _forward(moments, able, most)
    if how == "highest_weights":
        _, weights = solve(moments, able, ridge=0.01)
        return np.sort(np.argsort(-np.abs(weights * origin), kind="stable")[:most])
    return _lasso_path(moments, able, most)


def _lasso_path(moments: Moments, able: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """The last point on the lasso's path with at most `most` parts; an empty path finds nothing and says so by being empty."""
    covariance, with_score, _ = moments.centred
    inner, target = covariance[np.ix_(able, able)], with_score[able]
    if np.abs(target).max() <= 1e-12 * np.sqrt(np.diag(inner).max() * moments.square):
        return np.empty(0, np.intp)
    # Parts in an exact tie stop scikit-learn's path early; a billionth more for each later part settles who enters first.
    target = target * (1 - 1e-9 * np.arange(len(target)))
    with warnings.catch_warnings():
        # Along a degenerate path scikit-learn stops early and says so; the part found so far is what we want.
        warnings.simplefilter("ignore")
        _, _, path = lars_path_gram(target, inner, n_samples=max(int(moments.gram[0, 0]), 1), method="lasso",
                                    max_iter=4 * most + 50)
    sizes = (path != 0).sum(axis=0)
    return np.asarray(able[np.flatnonzero(path[:, np.flatnonzero(sizes <= most)[-1]])])


def _forward(moments: Moments, able: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Add, one by one, the part that raises R² most: a sweep of the Gram matrix an addition."""
    covariance, with_score, _ = moments.centred
    left, target = covariance[np.ix_(able, able)].copy(), with_score[able].copy()
    start = np.diag(left).copy()
    chosen: list[int] = []
    for _ in range(most):
        pivots = np.diag(left)
        usable = pivots > 1e-10 * start
        usable[chosen] = False
        if not usable.any():
            break
        gains = np.where(usable, target**2 / np.where(usable, pivots, 1), -1)
        best = int(gains.argmax())
        chosen.append(best)
        ratio = left[:, best] / left[best, best]
        target = target - ratio * target[best]
        left = left - np.outer(ratio, left[best])
    return np.sort(able[chosen])


def _symmetric_solve(matrix: Floats, vector: Floats) -> Floats:
    """Solve, by least norm where parts cannot be told apart (two words always hidden together)."""
    try:
        pivots = np.diag(np.linalg.cholesky(matrix))
        sound = pivots.min() > 1e-7 * pivots.max()
    except np.linalg.LinAlgError:
        sound = False
    return np.asarray(np.linalg.solve(matrix, vector) if sound else np.linalg.lstsq(matrix, vector, rcond=1e-12)[0])


def r_squared(scores: Floats, weights: Floats, predicted: Floats) -> float:
    """Weighted R²; 1 where the scores never vary and are predicted so."""
    size = np.abs(scores).max() or 1.0  # squares of huge or tiny scores would leave the range of floats
    scores, predicted = scores / size, predicted / size
    total = float(weights @ (scores - weights @ scores / weights.sum()) ** 2)
    left = float(weights @ (scores - predicted) ** 2)
    if total <= 1e-24 * float(weights @ scores**2):
        return 1.0
    return 1 - left / total
