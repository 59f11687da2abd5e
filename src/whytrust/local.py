"""The readable model near an input: fitted to a sample of answers, and judged on answers it has not seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit
from sklearn.tree import DecisionTreeRegressor

from whytrust.core import Floats
from whytrust.designs import Sample
from whytrust.moments import Moments, one_thread, r_squared, select, select_each, solve, symmetric_inverse, varies
from whytrust.surrogate import FEWER_FOLDS, FOLDS, Adjusted, fold_moments, fold_of

ERROR = 0.05
"""The chance of calling equal weights different, over all looks together."""
TREE_DEPTH = 3
FAITHFUL = 0.5
"""Below this share of explained variance on unseen samples an explanation is said to be of little use."""
FEW = 6
"""With fewer samples a part than this, intervals are too narrow, and a note says so."""
RARE = 5
"""A part that fewer drawn rows than this share with the input is said to be unknown."""
MANY, MANY_A_PART = 2000, 50
"""With so many samples, in all and a part, four fifths of them teach a fit as much as nine tenths, and five folds do."""
GAP = 0.2
"""A gap above this share of the range of scores seen is said in words."""


@dataclass(frozen=True)
class Fitting:
    """How to fit: which parts may stay, how many, how strong a ridge, which family of models, and with which intercept.

    A "fitted" intercept is one more weight; "mean" fixes it at the plain mean of the sampled scores, whatever their weights.
    """

    selection: str
    features: int | None
    ridge: float
    family: str
    intercept: str = "fitted"

    def centred(self, moments: Moments, sample: Sample) -> Moments:
        """The same moments, with the intercept fixed where it is to be."""
        return moments if self.intercept == "fitted" else replace(moments, intercept=float(sample.scores.mean()))


@dataclass(frozen=True)
class Fit:
    """A fitted local model, its prediction for the input itself, and the covariance of the active parts' weights."""

    intercept: float
    weights: Floats
    active: NDArray[np.intp]
    family: str
    fidelity: float
    fidelity_fresh: float
    prediction: float
    covariance: Floats | None = None
    tree: Any = None
    adjusted: bool = False

    @property
    def standard_errors(self) -> Floats | None:
        """One a part, 0 for parts that are not in the model; None for a tree."""
        if self.covariance is None:
            return None
        errors = np.zeros(len(self.weights))
        errors[self.active] = np.sqrt(np.maximum(np.diag(self.covariance), 0))
        return errors

    def contributions(self, origin: Floats) -> Fit:
        """The same fit with every weight, and its covariance, multiplied by the input's own value of that part."""
        own = origin[self.active]
        covariance = None if self.covariance is None else self.covariance * np.outer(own, own)
        return replace(self, weights=self.weights * origin, covariance=covariance)


def plain_sample(rows: Floats, scores: Floats, weights: Floats) -> Sample:
    """A sample of independent draws: one endless stratum."""
    return Sample(rows, scores, weights, np.zeros(len(rows), np.intp), np.zeros(len(rows)))


@one_thread
def fit(sample: Sample, adjusted: Adjusted | None, how: Fitting, origin: Floats) -> Fit:
    """The linear model, the tree, or whichever of the two is more faithful on unseen samples."""
    fits = []
    if how.family in ("linear", "auto"):
        fits.append(_linear(sample, adjusted, how, origin))
    if how.family in ("tree", "auto"):
        fits.append(_tree(sample, origin))
    return max(fits, key=lambda f: f.fidelity_fresh)


def _linear(sample: Sample, adjusted: Adjusted | None, how: Fitting, origin: Floats) -> Fit:
    folds = fold_moments(sample)
    whole = reduce(add, folds)
    moments = how.centred(whole if adjusted is None else adjusted.moments, sample)
    active = select(moments, how.selection, how.features, origin)
    intercept, weights = solve(moments, active, how.ridge)
    enough = sample.exact or len(sample.rows) > len(active) + 5
    covariance = _covariance(sample, adjusted, moments, active, how.ridge)[1:, 1:] if enough else None
    fidelity = r_squared(sample.scores, sample.weights, intercept + sample.rows @ weights)
    fresh = fidelity if sample.exact else _held_out(sample, how, origin)
    at_input = intercept + float(weights @ origin)
    return Fit(intercept, weights, active, "linear", fidelity, fresh, at_input, covariance, adjusted=adjusted is not None)


def _covariance(sample: Sample, adjusted: Adjusted | None, moments: Moments, active: NDArray[np.intp], ridge: float) -> Floats:
    """Of intercept and weights. Residuals of a fit are too small by their leverage; held-out errors are not."""
    if adjusted is not None and adjusted.errors is not None:
        errors = adjusted.errors
    else:
        scores = sample.scores if adjusted is None or adjusted.cleaned is None else adjusted.cleaned
        intercept, weights = solve(moments, active, ridge)
        inverse = _inverse(moments, active)
        rows = sample.rows[:, active]
        leverage = np.einsum("ij,ij->i", rows @ inverse[1:, 1:], rows) + 2 * rows @ inverse[1:, 0] + inverse[0, 0]
        leverage = np.minimum(leverage * sample.weights, 0.95)
        # HC2; HC3 where scores were cleaned by a fit, which makes residuals a little smaller once more.
        shrunk = np.sqrt(1 - leverage) if adjusted is None else 1 - leverage
        errors = (scores - intercept - sample.rows @ weights) / shrunk
    return covariance_of_weights(sample, errors, _inverse(moments, active, ridge), active)


def _inverse(moments: Moments, active: NDArray[np.intp], ridge: float = 0.0) -> Floats:
    """(k + 1, k + 1): of the Gram matrix of the intercept and the active parts; an intercept that is fixed does not vary."""
    columns = np.concatenate([[0], active + 1])
    gram = moments.gram[np.ix_(columns, columns)].copy()
    gram[np.arange(1, len(columns)), np.arange(1, len(columns))] += ridge
    if moments.intercept is None:
        return symmetric_inverse(gram)
    inverse = np.zeros_like(gram)
    inverse[1:, 1:] = symmetric_inverse(gram[1:, 1:]) if len(active) else 0
    return np.asarray(inverse)


def covariance_of_weights(sample: Sample, errors: Floats, inverse: Floats, active: NDArray[np.intp]) -> Floats:
    """(k + 1, k + 1) covariance of intercept and weights over repetitions of the sampling.

    A sandwich of the Gram matrix's `inverse` around the within-stratum covariance of [1, z]·error·weight, with the
    finite-population correction of each stratum: robust to errors that differ in size, and zero where a stratum was asked
    completely.
    """
    stratum, rows = sample.stratum, sample.rows[:, active]
    size = sample.weights * errors
    if (np.diff(stratum) < 0).any():
        order = np.argsort(stratum, kind="stable")
        stratum, rows, size = stratum[order], rows[order], size[order]
    starts = np.flatnonzero(np.diff(stratum, prepend=-1))
    counts = np.diff(starts, append=len(stratum))
    sampled = np.zeros(stratum[-1] + 1)
    sampled[sample.stratum] = sample.sampled
    factor = np.where(counts > 1, (1 - sampled[stratum[starts]]) * counts / np.maximum(counts - 1, 1), 0.0)
    size = size * np.repeat(np.sqrt(factor), counts)
    pull = np.hstack([size[:, None], rows * size[:, None]])
    means = np.add.reduceat(pull, starts, axis=0) / np.sqrt(counts)[:, None]
    return np.asarray(inverse @ (pull.T @ pull - means.T @ means) @ inverse)


def _held_out(sample: Sample, how: Fitting, origin: Floats) -> float:
    """Weighted R² where each sample is predicted by a fit, selection and all, that has not seen its fold."""
    n, d = sample.rows.shape
    count = FOLDS if n < max(MANY, MANY_A_PART * d) else FEWER_FOLDS
    folds = fold_moments(sample, count)
    whole = how.centred(reduce(add, folds), sample)
    others = [whole - fold for fold in folds]
    actives = select_each(others, how.selection, how.features, origin)
    fits = [solve(part, active, how.ridge) for part, active in zip(others, actives, strict=True)]
    predicted = np.empty(len(sample.rows))
    for k, (intercept, weights) in enumerate(fits):
        predicted[k::count] = intercept + sample.rows[k::count] @ weights
    return r_squared(sample.scores, sample.weights, predicted)


def _folds(sample: Sample) -> Iterator[NDArray[np.bool_]]:
    fold = fold_of(sample)
    for k in range(FOLDS):
        if (fold == k).any():
            yield fold == k


# --- the tree ---------------------------------------------------------------------------------------------------------


def _tree(sample: Sample, origin: Floats) -> Fit:
    """A small tree; a part's score is how much its splits move the prediction on the input's own way to its leaf."""
    tree = _grow(sample.rows, sample.scores, sample.weights)
    fidelity = r_squared(sample.scores, sample.weights, tree.predict(sample.rows))
    fresh = fidelity
    if not sample.exact:
        predicted = np.empty(len(sample.scores))
        for unseen in _folds(sample):
            part = _grow(sample.rows[~unseen], sample.scores[~unseen], sample.weights[~unseen])
            predicted[unseen] = part.predict(sample.rows[unseen])
        fresh = r_squared(sample.scores, sample.weights, predicted)
    scores = np.zeros(sample.rows.shape[1])
    nodes, values = tree.tree_, tree.tree_.value[:, 0, 0]
    node = 0
    while nodes.children_left[node] != -1:
        part = nodes.feature[node]
        after = nodes.children_left[node] if origin[part] <= nodes.threshold[node] else nodes.children_right[node]
        scores[part] += values[after] - values[node]
        node = after
    used = np.unique(nodes.feature[nodes.feature >= 0]).astype(np.intp)
    return Fit(float(values[0]), scores, used, "tree", fidelity, fresh, float(values[node]), tree=tree)


def _grow(rows: Floats, scores: Floats, weights: Floats) -> Any:
    leaf = max(2, len(rows) // 100)
    return DecisionTreeRegressor(max_depth=TREE_DEPTH, min_samples_leaf=leaf, random_state=0).fit(rows, scores, weights)


def rules(fit: Fit, names: Sequence[str], rows: Floats, drawn: bool) -> str | None:
    """The tree as indented lines; None for a linear model. Parts that are not 0 or 1 in all rows are in standard units."""
    if fit.tree is None:
        return None
    binary = ((rows == 0) | (rows == 1)).all(axis=0)
    asks = [f"“{name}” {'holds' if drawn else 'is kept'}" if b else name for name, b in zip(names, binary, strict=True)]
    return "\n".join(_lines(fit.tree.tree_, asks, binary, 0, ""))


def _lines(nodes: Any, asks: Sequence[str], binary: NDArray[np.bool_], node: int, indent: str) -> Iterator[str]:
    if nodes.children_left[node] == -1:
        yield f"{indent}→ {nodes.value[node, 0, 0]:.3f}"
        return
    part = nodes.feature[node]
    limit = "" if binary[part] else f" is above {nodes.threshold[node]:.3g} standard deviations from its mean"
    yield f"{indent}if {asks[part]}{limit}:"
    yield from _lines(nodes, asks, binary, nodes.children_right[node], indent + "    ")
    yield f"{indent}otherwise:"
    yield from _lines(nodes, asks, binary, nodes.children_left[node], indent + "    ")


# --- how sure ---------------------------------------------------------------------------------------------------------


@one_thread
def separated(sample: Sample, adjusted: Adjusted | None, top: int, error: float, origin: Floats) -> bool:
    """Do the `top` largest contributions, weight × origin, stand apart from all others?

    There is at most a chance of `error` that it says so of equal ones.
    """
    moments = Moments.of(sample.rows, sample.scores, sample.weights) if adjusted is None else adjusted.moments
    active = varies(moments)
    free = (sample.weights.sum() ** 2 / (sample.weights**2).sum()) - len(active) - 1
    if len(active) < 2 or free < len(active):
        return False
    if top >= len(active):
        top = len(active) - 1
    _, weights = solve(moments, active)
    own = origin[active]
    added, covariance = weights[active] * own, _covariance(sample, adjusted, moments, active, 0.0)[1:, 1:] * np.outer(own, own)
    size = np.abs(added)
    order = np.argsort(-size, kind="stable")
    gaps, errors = _gaps(added, covariance, order[:top], order[top:])
    # Student's t: at a few dozen samples, and so far out, the normal would say "apart" several times too often.
    return bool((gaps > -stdtrit(free, error / 2) * errors + 1e-12 * size.max()).all())


def _gaps(weights: Floats, covariance: Floats, first: NDArray[np.intp], second: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """|w_i| − |w_j| for i in first, j in second, and its standard error."""
    size, sign, variance = np.abs(weights), np.sign(weights), np.diag(covariance)
    shared = covariance[np.ix_(first, second)] * np.outer(sign[first], sign[second])
    spread = variance[first][:, None] + variance[second][None] - 2 * shared
    return size[first][:, None] - size[second][None], np.sqrt(np.maximum(spread, 0))


def undecided_ranks(fit: Fit, exact: bool) -> tuple[int, ...]:
    """Ranks r (from 1) where the parts at r and r + 1 could be swapped by chance, at 95 %."""
    if fit.covariance is None or len(fit.active) < 2:
        return ()
    weights = fit.weights[fit.active]
    order = np.argsort(-np.abs(weights), kind="stable")
    gaps, errors = _gaps(weights, fit.covariance, order, order)
    rank = np.arange(len(order) - 1)
    near, spread = gaps[rank, rank + 1], errors[rank, rank + 1]
    limit = 1e-12 * np.abs(weights).max() if exact else -ndtri(ERROR / 2) * spread
    return tuple(int(r) + 1 for r in np.flatnonzero(near <= limit))


def notes(sample: Sample, fit: Fit, prediction: float, other_label: str | None, rare: Sequence[str] = ()) -> Iterator[str]:
    """What a reader must know before believing the weights, in words; `rare` are parts that hardly any sample has."""
    local_prediction = fit.prediction
    spread = float(sample.scores.max() - sample.scores.min())
    if rare:
        names = f"“{'”, “'.join(rare[:3])}”{' and others' if len(rare) > 3 else ''}"
        yield (f"Hardly anything is known about {names}: fewer than {RARE} of the {len(sample.rows)} rows that were drawn have "
               "it, so its score and its range mean nothing. More samples, or wider categories, would show what it does.")
    if spread <= 1e-12 * np.abs(sample.scores).max():
        if abs(prediction - sample.scores[0]) > 1e-9 * max(abs(prediction), 1e-300):
            yield (f"The score was {sample.scores[0]:.3f} for every sample and is {prediction:.3f} for the input itself: what "
                   "makes the difference was never sampled, and these scores do not show it.")
            return
        return
    if not len(fit.active) or not np.abs(fit.weights).max():
        yield "No part was found to matter: the selection is empty. Ask for more samples, or selection='none'."
    if not sample.exact and len(sample.rows) < FEW * (len(fit.active) + 1):
        yield (f"{len(sample.rows)} samples are few for {len(fit.active)} parts: the standard errors are too small, "
               f"ask for {FEW * (len(fit.active) + 1)} or more.")
    if fit.fidelity_fresh < FAITHFUL:
        share = max(fit.fidelity_fresh, 0)
        yield (f"Do not rely on these weights: the local model explains only {share:.0%} of how the score varies around this "
               f"input (fidelity {fit.fidelity_fresh:.2f} on samples it had not seen).")
    gap = prediction - local_prediction
    if other_label is not None:
        yield (f"The local model predicts {local_prediction:.3f} where the model says {prediction:.3f}: "
               f"it would decide for {other_label}, so it does not explain this decision.")
    elif abs(gap) > GAP * spread:
        yield (f"The local model predicts {local_prediction:.3f} for this input, the model {prediction:.3f}: "
               f"a gap of {abs(gap):.3f} that the weights leave unexplained.")
