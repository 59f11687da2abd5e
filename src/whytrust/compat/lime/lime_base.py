"""A local linear model from data that are there already; and LIME for what whytrust's own has no room for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances

from whytrust import local
from whytrust.compat.lime.seeds import seed_of
from whytrust.core import DrawnParts, Floats
from whytrust.designs import Kernel, plain_masks
from whytrust.explainers.lime import DEFAULTS
from whytrust.explanation import Explanation
from whytrust.moments import Moments, r_squared, select
from whytrust.question import Question

SELECTIONS = {"auto": "auto", "none": "none", "lasso_path": "lasso_path", "highest_weights": "highest_weights",
              "forward_selection": "forward"}
"""lime's names for ways to select features, and whytrust's."""
KernelFunction = Callable[[Floats], Floats]
Found = tuple[float, list[tuple[int, float]], float, Floats]


def selection_of(name: str) -> str:
    """whytrust's name for one of lime's selections."""
    if name not in SELECTIONS:
        raise ValueError(f"feature_selection must be one of {', '.join(SELECTIONS)}, got {name!r}")
    return SELECTIONS[name]


def exponential(d: Floats, kernel_width: float) -> Floats:
    """lime's default kernel, √exp(−d²/width²)."""
    return Kernel("l2", kernel_width, root=True).weigh(d)


class LimeBase:
    """Weighted linear models of data that are there already; `kernel_fn` turns distances into weights."""

    def __init__(self, kernel_fn: KernelFunction, verbose: bool = False, random_state: Any = None) -> None:
        """Nothing here is random: `random_state` is kept for those who read it."""
        self.kernel_fn, self.verbose, self.random_state = kernel_fn, verbose, seed_of(random_state)

    def feature_selection(self, data: Any, labels: Any, weights: Any, num_features: int, method: str) -> NDArray[np.intp]:
        """The features to keep; data[0] is the instance itself."""
        rows = np.asarray(data, dtype=np.float64)
        return select(Moments.of(rows, np.asarray(labels, np.float64), np.asarray(weights, np.float64)), selection_of(method),
                      num_features, rows[0])

    def explain_instance_with_data(
            self, neighborhood_data: Any, neighborhood_labels: Any, distances: Any, label: int, num_features: int,
            feature_selection: str = "auto", model_regressor: Any = None) -> Found:
        """(intercept, [(feature, weight)] by |weight|, R², local prediction of data[0])."""
        rows = np.asarray(neighborhood_data, dtype=np.float64)
        scores = np.asarray(neighborhood_labels, dtype=np.float64)[:, label]
        fit = fitted(rows, scores, weighed(self.kernel_fn, distances), selection_of(feature_selection), num_features,
                     model_regressor)
        said = np.array([fit.prediction])
        if self.verbose:
            report(fit.intercept, said, scores[0])
        return fit.intercept, ordered(fit.weights, fit.active), fit.fidelity, said


def ordered(weights: Floats, active: NDArray[np.intp]) -> list[tuple[int, float]]:
    """(part, weight) of the parts in the model, largest |weight| first; equal ones in the order of the parts."""
    return sorted(((int(i), float(weights[i])) for i in np.sort(active)), key=lambda pair: -abs(pair[1]))


def report(intercept: float, local_prediction: Floats, prediction: float) -> None:
    """What lime prints where it is asked to be verbose."""
    print("Intercept", intercept)
    print("Prediction_local", local_prediction)
    print("Right:", prediction)


def weighed(kernel: KernelFunction, distances: Any) -> Floats:
    """A user's kernel, checked."""
    distances = np.asarray(distances, dtype=np.float64)
    weights = np.asarray(kernel(distances), dtype=np.float64)
    if weights.shape != distances.shape or not np.isfinite(weights).all() or weights.min() < 0 or not weights.sum() > 0:
        raise ValueError("kernel must turn an array of distances into as many finite weights >= 0, not all of them 0; got "
                         f"shape {weights.shape} for {distances.shape}, values from {weights.min():.3g} to {weights.max():.3g}")
    return weights


def fitted(rows: Floats, scores: Floats, weights: Floats, selection: str, features: int, regressor: Any) -> local.Fit:
    """Select, then fit lime's ridge (strength 1), or the user's own regressor."""
    if regressor is None:
        how = local.Fitting(selection, features, 1.0, "linear")
        return local.fit(local.plain_sample(rows, scores, weights), None, how, rows[0])
    active = select(Moments.of(rows, scores, weights), selection, features, rows[0])
    if not len(active):
        return local.Fit(float(np.average(scores, weights=weights)), np.zeros(rows.shape[1]), active, "linear", 0.0, np.nan,
                         float(np.average(scores, weights=weights)))
    regressor.fit(rows[:, active], scores, sample_weight=weights)
    if not hasattr(regressor, "coef_"):
        raise TypeError(f"model_regressor must be a linear regressor that has coef_ once it is fitted, got "
                        f"{type(regressor).__name__}; for a tree use whytrust.explain(…, family='tree')")
    found = np.zeros(rows.shape[1])
    found[active] = np.ravel(regressor.coef_)
    predicted = np.ravel(regressor.predict(rows[:, active]))
    return local.Fit(float(np.ravel(regressor.intercept_)[0]), found, active, "linear", r_squared(scores, weights, predicted),
                     np.nan, float(predicted[0]))


@dataclass(frozen=True)
class PlainLime:
    """LIME as lime itself draws it, for kernels, distances and regressors of the user's own, and for very few samples.

    The input itself is the first sample and all others are independent. Standard errors are those of plain draws; with a
    regressor of the user's own there are none, for whytrust cannot know how it reacts to other samples.
    """

    kernel: KernelFunction
    samples: int
    features: int
    selection: str
    metric: Any
    scale: float = 1.0  # lime multiplies the distances of texts by 100
    regressor: Any = None

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """Sample, weigh, select, fit."""
        rows, scores = self._sample(question, rng)
        distances = pairwise_distances(rows, rows[:1], metric=self.metric).ravel() * self.scale
        weights = weighed(self.kernel, distances)
        fit = fitted(rows, scores, weights, self.selection, self.features, self.regressor)
        own = self.regressor is not None
        selected = np.zeros(question.d, bool)
        selected[fit.active] = True
        notes: tuple[str, ...] = () if own else tuple(
            local.notes(local.plain_sample(rows, scores, weights), fit, float(question.original[question.target]), None))
        regressor = type(self.regressor).__name__ if own else "ridge"
        return Explanation.of(
            question, "lime", fit.weights, conditions=True, intercept=fit.intercept, local_prediction=fit.prediction,
            fidelity=fit.fidelity, fidelity_fresh=None if np.isnan(fit.fidelity_fresh) else fit.fidelity_fresh,
            standard_errors=fit.standard_errors, selected=selected, origin=None if (rows[0] == 1).all() else rows[0],
            notes=notes, undecided=local.undecided_ranks(fit.contributions(rows[0]), exact=False),
            settings={"variant": "reference", "samples": len(rows), "design": "plain", "distance": _named(self.metric),
                      "kernel": _named(self.kernel), "selection": self.selection, "features": self.features,
                      "regressor": regressor})

    def _sample(self, question: Question, rng: np.random.Generator) -> tuple[Floats, Floats]:
        if isinstance(question.parts, DrawnParts):
            draws, scores = question.draw(self.samples - 1, rng)
            own = question.original[question.target]
            return np.vstack([draws.origin, draws.design]), np.concatenate([[own], scores])
        sampling = DEFAULTS["reference"][question.parts.domain]["sampling"]
        masks, _ = plain_masks(question.d, sampling, Kernel("cosine", 1.0), self.samples, rng)
        return masks.astype(np.float64), question.score(masks, rng)


def _named(thing: Any) -> str:
    inner = getattr(thing, "func", thing)  # of a partial
    return inner if isinstance(inner, str) else getattr(inner, "__name__", type(inner).__name__)
