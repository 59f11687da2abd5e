"""A cheap stand-in for the model over masks, used to take noise out of the weights without changing what they estimate.

A quadratic function of the mask is fitted on folds. What it says about *all* masks is known in closed form and costs no model
call; the samples only have to estimate what it leaves over, on masks it has not seen. Where it predicts well, few calls do.
For tables, where values are drawn, columns of known zero mean (`Draws.controls`) do the same office.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

from whytrust.core import Draws, Floats
from whytrust.designs import MaskPlan, Sample
from whytrust.moments import Moments, one_thread, solve, varies

FOLDS = 10
"""More folds leave each fit more to learn from; each costs a fit."""
FEWER_FOLDS = 5
"""Where controls are many, so are the samples, and four fifths of them are enough to learn from."""
LEAST_SAMPLES = 200
"""With fewer samples than this the surrogate saves little, and its intervals are too narrow."""
MOST_PARTS = 32
"""Beyond this a quadratic has too many terms to learn from a few thousand samples, and fitting it is no longer cheap."""
PAYS_BELOW = 0.9
"""Used where its held-out squared error is below this share of a linear fit's."""
SAMPLES_A_TERM = 3
"""The quadratic is used where there are at least so many samples a term; with fewer, intervals are too narrow."""
SAMPLES_A_CONTROL = 10
"""Controls are used where there are at least so many samples for each; with fewer, estimates have heavy tails."""
MOST_CONTROLS = 600
"""Beyond this, fitting them costs more than the calls they save."""
PENALTIES = np.logspace(-9, 1, 6)


Columns = Callable[[slice], Floats]
"""Rows of a design matrix, made when asked for."""


@dataclass(frozen=True)
class Adjusted:
    """Moments with the noise taken out; and, for standard errors, held-out errors or the scores that were cleaned."""

    moments: Moments
    errors: Floats | None = None
    cleaned: Floats | None = None


def fold_of(sample: Sample, folds: int = FOLDS) -> NDArray[np.intp]:
    """Every so many of the rows: they are in the order of their strata, and within a stratum in random order."""
    return np.arange(len(sample.rows)) % folds


@one_thread
def adjust(sample: Sample, plan: MaskPlan) -> Adjusted | None:
    """The sample's moments with the surrogate as control variate; None where held-out folds show that it does not pay."""
    n, d = sample.rows.shape
    if d > MOST_PARTS or n < max(SAMPLES_A_TERM * (1 + d + d * (d - 1) / 2), LEAST_SAMPLES) or sample.exact:
        return None
    fold = fold_of(sample)
    quadratic, surrogates = _cross_fitted(sample, fold, lambda part: _quadratic(sample.rows[part]))
    linear, _ = _held_out_linear(sample, FOLDS)
    estimated = sample.sampled < 1
    weights = sample.weights * estimated
    if weights @ quadratic**2 >= PAYS_BELOW * (weights @ linear**2):
        return None
    return Adjusted(_all_masks(sample, plan, fold, surrogates, quadratic), quadratic)


@one_thread
def control(sample: Sample, draws: Sequence[Draws]) -> Adjusted | None:
    """Scores of drawn inputs without what their controls explain of them; None where that does not pay.

    Controls, and products of controls of different parts or of a control and another part, have mean zero given the design. So
    what a fit on the *other* folds says of them can be taken off a score: the weights stay what they were, on average, exactly.
    """
    found = [d.controls for d in draws if d.controls is not None]
    owner = draws[0].control_of
    if len(found) < len(draws) or owner is None:
        return None
    controls = found[0] if len(found) == 1 else np.vstack(found)
    if not 0 < controls.shape[1] <= _most_controls(len(controls)):
        return None
    cleaned = _one_by_one(sample, controls) if draws[0].many else _together(sample, controls, owner)
    if cleaned is None:
        return None
    whole = reduce(add, fold_moments(sample))
    return Adjusted(whole.rescored(sample.rows, cleaned, sample.weights), cleaned=cleaned)


def _together(sample: Sample, controls: Floats, owner: NDArray[np.intp]) -> Floats | None:
    """Scores without what a fit of all controls, and of as many products as samples allow, says of them."""
    fold = fold_of(sample)
    least = sample.weights @ _held_out_linear(sample, FOLDS)[0] ** 2
    cleaned: Floats | None = None
    for extra in _growing(sample.rows, controls, owner):
        columns = _beside_parts(sample.rows, extra)
        errors, coefficients = _cross_fitted(sample, fold, columns)
        if sample.weights @ errors**2 < PAYS_BELOW * least:
            coefficients[:, : sample.rows.shape[1] + 1] = 0
            cleaned = sample.scores - _predicted(len(errors), fold, columns, coefficients[:, None])[0]
            least = sample.weights @ errors**2
    return cleaned


def _one_by_one(sample: Sample, controls: NDArray[Any]) -> Floats | None:
    """Scores without what many controls say of them, each control fitted by itself.

    Controls of different parts are independent draws and those of one part are made orthogonal, so a fit of each by itself, and
    of what these leave over once more, comes near a fit of all together, which would cost more than the model. A coefficient is
    shrunk by how likely it is to be noise (a positive-part Stein rule).
    """
    kind = controls.dtype
    linear, fits = _held_out_linear(sample, FEWER_FOLDS)
    weights = np.repeat(sample.weights.astype(kind)[None], FEWER_FOLDS, axis=0)
    for k in range(FEWER_FOLDS):
        weights[k, k::FEWER_FOLDS] = 0
    left = (sample.scores - fits).astype(kind)
    some = slice(0, max(len(linear) // 4, 1000))  # draws are in random order, and a rough square does
    total = weights.sum(axis=1)
    square = (controls[some] ** 2).T @ weights[:, some].T * (total / weights[:, some].sum(axis=1))
    square = np.maximum(square, 1e-12 * square.max())
    coefficients = controls.T @ (weights * left).T / square
    left -= coefficients.T @ controls.T
    pull = weights * left
    coefficients += controls.T @ pull.T / square
    noise = np.einsum("ij,ij->i", pull, left) * np.einsum("ij,ij->i", weights, weights) / total**2
    signal = coefficients**2 * square
    coefficients *= np.divide(np.maximum(signal - noise, 0), signal, out=np.zeros_like(signal), where=signal > 0)
    said = np.empty(len(linear))
    for k in range(FEWER_FOLDS):
        said[k::FEWER_FOLDS] = controls[k::FEWER_FOLDS] @ coefficients[:, k]
    pays = sample.weights @ (linear - said) ** 2 < PAYS_BELOW * (sample.weights @ linear**2)
    return sample.scores - said if pays else None


def _most_controls(samples: int) -> int:
    return min(samples // SAMPLES_A_CONTROL, MOST_CONTROLS)


def _growing(rows: Floats, controls: Floats, owner: NDArray[np.intp]) -> Iterator[Columns]:
    """Controls; then also their products with other parts; then also with controls of other parts; while samples suffice."""
    part, control = np.nonzero(np.arange(rows.shape[1])[:, None] != owner[None])
    first, second = np.nonzero(np.triu(owner[:, None] != owner[None]))
    sizes = np.cumsum([len(owner), len(part), len(first)])
    most = _most_controls(len(rows))
    yield lambda at: controls[at]
    if sizes[1] <= most:
        yield lambda at: np.hstack([controls[at], rows[at][:, part] * controls[at][:, control]])
    if sizes[2] <= most:
        yield lambda at: np.hstack([controls[at], rows[at][:, part] * controls[at][:, control],
                                    controls[at][:, first] * controls[at][:, second]])


def _beside_parts(rows: Floats, extra: Columns) -> Columns:
    return lambda at: np.hstack([np.ones((len(rows[at]), 1)), rows[at], extra(at)])


def _cross_fitted(sample: Sample, fold: NDArray[np.intp], columns: Columns) -> tuple[Floats, Floats]:
    """Held-out errors (n,), and each fold's coefficients, at the penalty with the least error; columns begin with 1 and z.

    Columns are made a piece at a time: memory does not grow with samples × columns.
    """
    width = columns(slice(0, 1)).shape[1]
    grams, crosses = np.zeros((FOLDS, width, width)), np.zeros((FOLDS, width))
    roots = np.sqrt(sample.weights)
    for at in _pieces(len(fold)):
        piece = columns(at) * roots[at, None]
        scores = sample.scores[at] * roots[at]
        for k in range(FOLDS):
            mine = np.flatnonzero(fold[at] == k)
            own = piece.take(mine, axis=0)
            grams[k] += own.T @ own
            crosses[k] += scores[mine] @ own
    linear = sample.rows.shape[1] + 1
    paths = np.stack([_ridge_path(grams.sum(0) - grams[k], crosses.sum(0) - crosses[k], linear) for k in range(FOLDS)])
    errors = sample.scores - _predicted(len(fold), fold, columns, paths)
    best = int((errors**2 @ (sample.weights * (sample.sampled < 1))).argmin())
    return errors[best], paths[:, best].copy()


def _predicted(n: int, fold: NDArray[np.intp], columns: Columns, paths: Floats) -> Floats:
    """(penalties, n): each row predicted by its own fold's coefficients (folds, penalties, columns)."""
    predicted = np.empty((paths.shape[1], n))
    for at in _pieces(n):
        piece = columns(at)
        for k in range(FOLDS):
            mine = np.flatnonzero(fold[at] == k)
            predicted[:, at.start + mine] = paths[k] @ piece[mine].T
    return predicted


def _pieces(n: int) -> Iterator[slice]:
    for start in range(0, n, 2048):
        yield slice(start, min(start + 2048, n))


def _ridge_path(gram: Floats, cross: Floats, linear: int) -> Floats:
    """(penalties, columns): the first `linear` columns are free, the rest are shrunk."""
    head = gram[:linear, :linear] + 1e-12 * np.trace(gram[:linear, :linear]) / linear * np.eye(linear)
    onto = np.linalg.solve(head, np.column_stack([gram[:linear, linear:], cross[:linear]]))
    left = gram[linear:, linear:] - gram[linear:, :linear] @ onto[:, :-1]
    target = cross[linear:] - gram[linear:, :linear] @ onto[:, -1]
    scale = max(float(np.trace(left)) / len(left), 1e-300)
    tail = np.array([_shrunk(left, target, penalty * scale) for penalty in PENALTIES])
    return np.hstack([onto[:, -1][None] - tail @ onto[:, :-1].T, tail])


def _shrunk(gram: Floats, cross: Floats, penalty: float) -> Floats:
    """One ridge solution; rounding may leave a matrix without a Cholesky factor, and then what is negative counts as 0."""
    inner = gram.copy()
    inner[np.diag_indices(len(inner))] += penalty
    _, found, failed = dposv(inner, cross, lower=1, overwrite_a=1)
    if failed:
        values, vectors = np.linalg.eigh((gram + gram.T) / 2)
        found = vectors @ ((vectors.T @ cross) / (np.maximum(values, 0) + penalty))
    return np.asarray(found)


def fold_moments(sample: Sample, count: int = FOLDS) -> list[Moments]:
    """The moments of each fold's samples; their sum is that of all. Worked out once, for all who fit this sample."""
    kept = vars(sample)
    if "fold moments" not in kept:
        kept["fold moments"] = Moments.of_folds(sample.rows, sample.scores, sample.weights, FOLDS)
    fine: list[Moments] = kept["fold moments"]
    assert FOLDS % count == 0  # so that a coarse fold is every so many of the fine ones
    return [reduce(add, fine[k::count]) for k in range(count)]


def _held_out_linear(sample: Sample, count: int) -> tuple[Floats, Floats]:
    """(n,) errors of linear fits that have not seen a row's fold, and what each fit says of every row: (folds, n)."""
    folds = fold_moments(sample, count)
    whole = reduce(add, folds)
    found = [solve(rest, varies(rest)) for rest in (whole - one for one in folds)]
    predicted = np.array([weights for _, weights in found]) @ sample.rows.T
    predicted += np.array([intercept for intercept, _ in found])[:, None]
    errors = sample.scores.copy()
    for k in range(count):
        errors[k::count] -= predicted[k, k::count]
    return errors, predicted


def _all_masks(sample: Sample, plan: MaskPlan, fold: NDArray[np.intp], surrogates: Floats, errors: Floats) -> Moments:
    """Exact moments of the surrogates over every mask, plus the sampled moments of what they leave over.

    Asked masks count with the model's own answer and the others with the surrogate's, corrected by its held-out errors: the
    more of a stratum was asked, the less the surrogate matters.
    """
    d = plan.d
    gram, cross = np.zeros((d + 1, d + 1)), np.zeros(d + 1)
    seen = np.empty(len(errors))
    for index, cell in enumerate(plan.cells):
        inside = np.flatnonzero(sample.stratum == index)
        surrogate = np.bincount(fold[inside], minlength=FOLDS) / len(inside) @ surrogates
        gram_of_cell, cross_of_cell = _size_moments(d, cell.sizes, cell.chances, surrogate)
        gram += plan.most * cell.share * gram_of_cell
        cross += plan.most * cell.share * cross_of_cell
        for at in _pieces(len(inside)):
            seen[inside[at]] = sample.scores[inside[at]] - _quadratic(sample.rows[inside[at]]) @ surrogate
    leftover = sample.weights * (sample.sampled * seen + (1 - sample.sampled) * errors)
    cross += np.concatenate([[leftover.sum()], sample.rows.T @ leftover])
    return Moments(gram, cross, float(sample.weights @ sample.scores**2))


def _quadratic(rows: Floats) -> Floats:
    first, second = np.triu_indices(rows.shape[1], 1)
    return np.hstack([np.ones((len(rows), 1)), rows, rows[:, first] * rows[:, second]])


def _size_moments(d: int, sizes: NDArray[np.intp], chances: Floats, surrogate: Floats) -> tuple[Floats, Floats]:
    """Means over all masks of the given sizes of [1, z][1, z]ᵀ and of [1, z]·surrogate(z).

    One, two or three given parts are all kept by a share s/d, s(s−1)/(d(d−1)), … of the masks of size s.
    """
    one = float(chances @ (sizes / d))
    two = float(chances @ (sizes * (sizes - 1) / (d * (d - 1))))
    three = float(chances @ (sizes * (sizes - 1) * (sizes - 2) / (d * (d - 1) * (d - 2)))) if d > 2 else 0.0
    gram = np.full((d + 1, d + 1), two)
    gram[0, 0] = 1
    gram[0, 1:] = gram[1:, 0] = one
    gram[np.arange(1, d + 1), np.arange(1, d + 1)] = one
    constant, slopes, bends = surrogate[0], surrogate[1 : d + 1], surrogate[d + 1 :]
    of_part = np.zeros(d)
    first, second = np.triu_indices(d, 1)
    np.add.at(of_part, first, bends)
    np.add.at(of_part, second, bends)
    mean = constant + one * slopes.sum() + two * bends.sum()
    with_part = (constant * one + slopes * one + two * (slopes.sum() - slopes)
                 + two * of_part + three * (bends.sum() - of_part))
    return gram, np.concatenate([[mean], with_part])
