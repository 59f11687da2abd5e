"""Weighted least squares on moments: every fit here needs only the Gram matrix of the parts and their product with the scores.

So a fit costs the same for a thousand samples as for a million, folds are differences of sums, and moments that are known
exactly (of a surrogate over all masks) can take the place of sampled ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv, dpotrf, dpotri
from threadpoolctl import ThreadpoolController

from whytrust.core import Floats

P = ParamSpec("P")
R = TypeVar("R")
SELECTIONS = ("lasso_path", "forward", "highest_weights", "auto", "none")
BEYOND = 3
"""The lasso's path is followed until it holds so many more parts than wanted: it may still come back to fewer."""
COLLINEAR = 1e-10
"""A part of which less than this share is left, after the chosen parts, is no part of its own."""


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
    """Weighted sums over samples: of [1, z][1, z]ᵀ, of [1, z]·score, and of score².

    `intercept`, where given, is fixed, and only the weights are fitted; else it is fitted with them.
    """

    gram: Floats
    cross: Floats
    square: float
    intercept: float | None = None

    @classmethod
    def of(cls, rows: Floats, scores: Floats, weights: Floats) -> Moments:
        """The moments of rows (n, d) and their scores."""
        return cls.of_folds(rows, scores, weights, 1)[0]

    @classmethod
    def of_folds(cls, rows: Floats, scores: Floats, weights: Floats, folds: int) -> list[Moments]:
        """The moments of each fold 0 … folds-1, which is every so many of the rows."""
        roots = np.sqrt(weights)
        columns = np.empty((len(rows), rows.shape[1] + 2))
        columns[:, 0], columns[:, -1] = roots, roots * scores
        np.multiply(rows, roots[:, None], out=columns[:, 1:-1])
        # Of a matrix with itself, products cost half.
        products = [fold.T @ fold for fold in (columns[k::folds] for k in range(folds))]
        return [cls(p[:-1, :-1], p[:-1, -1], float(p[-1, -1])) for p in products]

    def rescored(self, rows: Floats, scores: Floats, weights: Floats) -> Moments:
        """The moments of the same rows with other scores."""
        pull = weights * scores
        return Moments(self.gram, np.concatenate([[pull.sum()], pull @ rows]), float(pull @ scores), self.intercept)

    def __add__(self, other: Moments) -> Moments:
        """The moments of both sets of samples."""
        return Moments(self.gram + other.gram, self.cross + other.cross, self.square + other.square, self.intercept)

    def __sub__(self, other: Moments) -> Moments:
        """The moments of the samples that are not in `other`."""
        return Moments(self.gram - other.gram, self.cross - other.cross, self.square - other.square, self.intercept)

    @cached_property
    def centred(self) -> tuple[Floats, Floats, float]:
        """(C, c, v): weighted covariances of parts, of parts with the score, and the score's variance, all times the weight.

        About their means; where the intercept is fixed, parts about 0 and scores about the intercept.
        """
        total, sums = self.gram[0, 0], self.gram[0, 1:]
        if self.intercept is not None:
            left = self.square - 2 * self.intercept * self.cross[0] + self.intercept**2 * total
            return self.gram[1:, 1:], self.cross[1:] - self.intercept * sums, left
        covariance = self.gram[1:, 1:] - sums[:, None] * (sums / total)
        with_score = self.cross[1:] - sums * self.cross[0] / total
        return covariance, with_score, self.square - self.cross[0] ** 2 / total


def varies(moments: Moments) -> NDArray[np.intp]:
    """The parts that are not constant over the samples; only these can have a weight."""
    covariance, _, _ = moments.centred
    return np.flatnonzero(covariance.diagonal() > 1e-12 * moments.gram[0, 0])


def solve(moments: Moments, active: NDArray[np.intp], ridge: float = 0.0) -> tuple[float, Floats]:
    """Intercept and weights of the parts in `active`; the ridge, as in scikit-learn, spares the intercept."""
    covariance, with_score, _ = moments.centred
    total = moments.gram[0, 0]
    weights = np.zeros(len(with_score))
    if len(active):
        inner = covariance.take(active, axis=0).take(active, axis=1)
        inner.flat[:: len(active) + 1] += ridge
        weights[active] = _symmetric_solve(inner, with_score[active])
    if moments.intercept is not None:
        return moments.intercept, weights
    return float((moments.cross[0] - moments.gram[0, 1:] @ weights) / total), weights


def select(moments: Moments, how: str, most: int | None, origin: Floats) -> NDArray[np.intp]:
    """At most `most` parts to keep: by the lasso's path (the paper), forward selection, or the highest weights of a ridge."""
    return select_each([moments], how, most, origin)[0]


def select_each(several: Sequence[Moments], how: str, most: int | None, origin: Floats) -> list[NDArray[np.intp]]:
    """The parts to keep by each of several moments of the same parts (those of folds, say)."""
    if how not in SELECTIONS:
        raise ValueError(f"selection must be one of {', '.join(SELECTIONS)}, got {how!r}")
    if how == "auto":
        how = "none" if most is None else "forward" if most <= 6 else "highest_weights"
    found = [varies(moments) for moments in several]
    if how == "none" or most is None:
        return found
    crowded = [i for i, able in enumerate(found) if most < len(able)]
    if how == "lasso_path" and crowded:
        chosen = _lasso_paths([several[i] for i in crowded], [found[i] for i in crowded], most)
    elif how == "forward":
        chosen = [_forward(several[i], found[i], most) for i in crowded]
    else:
        chosen = [_highest(several[i], found[i], most, origin) for i in crowded]
    for i, parts in zip(crowded, chosen, strict=True):
        found[i] = parts
    return found


def _highest(moments: Moments, able: NDArray[np.intp], most: int, origin: Floats) -> NDArray[np.intp]:
    _, weights = solve(moments, able, ridge=0.01)
    return np.sort(np.argsort(-np.abs(weights * origin), kind="stable")[:most])


def _lasso_paths(several: Sequence[Moments], ables: Sequence[NDArray[np.intp]], most: int) -> list[NDArray[np.intp]]:
    """The last point on each lasso's path with at most `most` parts; an empty path finds nothing and says so by being empty.

    The homotopy of Osborne et al. (2000), all paths side by side. `tables` are Gram matrices and, last, products with the
    score, swept on the active parts; so at penalty p the active parts' weights and the others' products with what is left are
    both column − p · slopes, and the path turns where a weight reaches 0 or a product reaches ±p.
    """
    d = len(several[0].cross) - 1
    tables = np.empty((len(several), d, d + 1))
    usable = np.zeros((len(several), d), bool)
    chosen = usable.copy()
    for i, (moments, able) in enumerate(zip(several, ables, strict=True)):
        covariance, with_score, _ = moments.centred
        # Parts in an exact tie would all enter at once; a billionth more for each later part settles who is first.
        tables[i, :, :d], tables[i, :, d] = covariance, with_score * (1 - 1e-9 * np.arange(d))
        usable[i, able] = np.abs(with_score[able]).max() > 1e-12 * np.sqrt(np.diag(covariance)[able].max() * moments.square)
    start = np.diagonal(tables, axis1=1, axis2=2).copy()
    signs, last = np.zeros_like(start), np.full(len(tables), -1)
    penalties = np.where(usable, np.abs(tables[:, :, d]), 0).max(axis=1) * (1 + 1e-12)
    alive = np.flatnonzero(usable.any(axis=1))
    tables = tables[alive]
    for _ in range(4 * most + 50):
        each = np.arange(len(alive))
        usable[alive] &= (np.diagonal(tables, axis1=1, axis2=2) > COLLINEAR * start[alive]) | (signs[alive] != 0)
        turns = _turns(tables, signs[alive], usable[alive], penalties[alive], last[alive])
        part = turns.argmax(axis=1)
        penalties[alive] = turns[each, part]
        leaving = signs[alive, part] != 0
        ended = penalties[alive] <= 0
        active = signs[alive] != 0
        active[each[leaving & ~ended], part[leaving & ~ended]] = False
        few = active.sum(axis=1) <= most
        chosen[alive[few]] = active[few]
        product = tables[each, part, d] - penalties[alive] * (tables[:, :, :d] @ signs[alive][:, :, None])[each, part, 0]
        signs[alive, part] = np.where(leaving, 0, np.sign(product))
        last[alive] = part
        going = ~ended & ((signs[alive] != 0).sum(axis=1) <= most + BEYOND)
        if not going.any():
            break
        alive, tables, part = alive[going], tables if going.all() else tables[going], part[going]
        _sweep(tables, part)
    return [np.flatnonzero(row) for row in chosen]


def _turns(tables: Floats, signs: Floats, usable: NDArray[np.bool_], penalties: Floats, last: NDArray[np.intp]) -> Floats:
    """The penalty at which each part would be the next to enter or leave; 0 where it would not before the path's end."""
    column, slopes = tables[:, :, -1], (tables[:, :, :-1] @ signs[:, :, None])[:, :, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        leave = column / slopes
        up, down = column / (1 + slopes), column / (slopes - 1)
    below = np.repeat(penalties[:, None] * (1 - 1e-12), signs.shape[1], axis=1)
    turned = np.flatnonzero(last >= 0)
    below[turned, last[turned]] = penalties[turned] * (1 - 1e-7)  # what turned the path just now has a root where it stands
    rest = (signs == 0) & usable
    turns = np.where((signs != 0) & (leave > 0) & (leave < below), leave, 0.0)
    for enter in (up, down):
        turns = np.where(rest & (enter > turns) & (enter <= below), enter, turns)
    return turns


def _sweep(tables: Floats, part: NDArray[np.intp]) -> None:
    """Bring one part a table among the active ones, or, by the same arithmetic, take it out again."""
    each = np.arange(len(tables))
    column = tables[each, :, part]
    pivot = tables[each, part, part]
    row = tables[each, part] / pivot[:, None]
    tables -= column[:, :, None] * row[:, None, :]
    tables[each, :, part] = -column / pivot[:, None]
    tables[each, part] = row
    tables[each, part, part] = 1 / pivot


def _forward(moments: Moments, able: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Add, one by one, the part that raises R² most: a column of the Cholesky factor an addition."""
    covariance, with_score, _ = moments.centred
    inner, target = covariance[np.ix_(able, able)], with_score[able]
    left = np.diag(inner).copy()
    usable = np.ones(len(able), bool)
    least = COLLINEAR * left
    factor = np.zeros((len(able), most))
    chosen: list[int] = []
    for step in range(most):
        usable &= left > least
        if not usable.any():
            break
        best = int(np.divide(target**2, left, out=np.full(len(able), -1.0), where=usable).argmax())
        chosen.append(best)
        usable[best] = False
        column = (inner[best] - factor[:, :step] @ factor[best, :step]) / np.sqrt(left[best])
        target = target - column * (target[best] / column[best])
        left -= column**2
        factor[:, step] = column
    return np.sort(able[chosen])


def _symmetric_solve(matrix: Floats, vector: Floats) -> Floats:
    """Solve, by least norm where parts cannot be told apart (two words always hidden together)."""
    factor, solution, failed = dposv(matrix, vector)
    pivots = factor.diagonal()
    sound = not failed and pivots.min() > 1e-7 * pivots.max()
    return np.asarray(solution if sound else np.linalg.lstsq(matrix, vector, rcond=1e-12)[0])


def symmetric_inverse(matrix: Floats) -> Floats:
    """The inverse, or the pseudo-inverse where parts cannot be told apart."""
    factor, failed = dpotrf(matrix)
    pivots = np.diag(factor)
    if failed or pivots.min() <= 1e-6 * pivots.max():
        return np.asarray(np.linalg.pinv(matrix, rcond=1e-12, hermitian=True))
    upper = np.triu(dpotri(factor)[0])
    return np.asarray(upper + np.triu(upper, 1).T)


def r_squared(scores: Floats, weights: Floats, predicted: Floats) -> float:
    """Weighted R²; 1 where the scores never vary and are predicted so."""
    size = np.abs(scores).max() or 1.0  # squares of huge or tiny scores would leave the range of floats
    scores, predicted = scores / size, predicted / size
    total = float(weights @ (scores - weights @ scores / weights.sum()) ** 2)
    left = float(weights @ (scores - predicted) ** 2)
    if total <= 1e-24 * float(weights @ scores**2):
        return 1.0
    return 1 - left / total
