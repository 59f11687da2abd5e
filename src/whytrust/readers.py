"""Simulated readers: what somebody who believes an explanation, and nothing else, would decide.

Ribeiro, Singh and Guestrin (2016, § 5) measure explanations by what a reader does with them: which predictions to mistrust,
which of two models to choose. A reader here knows which features are not to be trusted, sees an explanation, and acts by fixed
rules.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel
from whytrust.core import Floats
from whytrust.explanation import Explanation

Marked = NDArray[np.bool_]
"""For every feature that inputs share: is it marked as not to be trusted?"""
ADDS_UP = ("occlusion", "input_x_gradient", "integrated_gradients", "kernel_shap", "shap")
"""Methods without a local model whose scores are still shares of the prediction."""
USUAL, SHARE = 10, 4
"""Parts that a reader takes from an explanation, and of how many parts it takes one at most, unless it is told."""
NOTHING, ROUNDED = 1e-12, 1e-11
"""A score of this size, beside the largest one or beside the prediction, is none."""


@dataclass(frozen=True)
class Reading:
    """What a reader takes from one explanation: which features it names, and what each contributes.

    `prediction` is what the explanation makes of the input itself, and `limit` where the decision would change; both are None
    where it has no notion of how much a feature contributes (greedy removal, random, sizes without a sign): then a reader can
    only look whether a feature is named. `stands` says on which side of the limit the model's own decision lies.
    """

    features: NDArray[np.intp]
    contributions: Floats
    prediction: float | None = None
    limit: float | None = None
    stands: bool = True

    def trusts(self, marked: Marked) -> NDArray[np.bool_]:
        """Does the reader trust the prediction, given each row of `marked` (rounds, features)?

        With contributions, the reader takes off what marked features contribute and sees whether the decision is still the
        model's, and stays with it where that cannot be told; without, one marked feature among those named is enough for
        mistrust.
        """
        named = np.atleast_2d(marked)[:, self.features]
        if self.prediction is None or self.limit is None:
            return np.asarray(~named.any(axis=1))
        return ~_changed(self.prediction - named @ self.contributions, self.limit, self.stands)


def _changed(left: Floats, limit: Any, stands: Any) -> NDArray[np.bool_]:
    """Does what is left of a prediction lie on the other side of the limit than the model's decision? On it, it does not."""
    on_it = np.abs(left - limit) <= ROUNDED * np.maximum(np.abs(limit), 1.0)
    return np.asarray(~on_it & ((left > limit) != stands))


def at_most(features: int | None, d: int) -> int:
    """How many of d parts a reader takes from an explanation: as many as it is told; else ten, but no more than a quarter.

    Who reads nearly all parts finds everything in any explanation.
    """
    return min(USUAL, max(d // SHARE, 1)) if features is None else features


def read(e: Explanation, features: NDArray[np.intp], limit: float, most: int | None = None,
         stands: bool | None = None) -> Reading:
    """What a reader takes from an explanation whose parts are these shared features, of its `most` largest parts.

    `limit` is the score of the target above which the model decides for it, and `stands` whether it does; left out, it does
    where the score is above the limit. Contributions count where the method has a local
    model, or where they add up to the score (ADDS_UP): then the reader begins with the score itself. Those of a logit are taken
    off the score's own logit. All else only names parts.
    """
    if len(features) != len(e.scores):
        raise ValueError(f"features must have one entry a part: expected {len(e.scores)}, got {len(features)}")
    shown = named_parts(e, most)
    start = e.local_prediction
    if start is None and e.method.partition("/")[0] in ADDS_UP:
        start = e.prediction
    if start is None or e.sense != "signed":
        return Reading(features[shown], e.scores[shown])
    stands = e.prediction > limit if stands is None else stands
    if e.settings.get("explains") == "logit":
        if not (0 < start < 1 and 0 < limit < 1):
            return Reading(features[shown], e.scores[shown])
        start, limit = math.log(start / (1 - start)), math.log(limit / (1 - limit))
    return Reading(features[shown], e.scores[shown], start, limit, stands)


def limit_of(model: CheckedModel, scores: Floats, target: int) -> float:
    """The score below which the decision would be another.

    One half (or the threshold) of two classes with probabilities; else the best other class's score, as it is for the input.
    """
    if len(scores) == 2 and (model.threshold is not None or (scores.min() >= 0 and abs(scores.sum() - 1) <= 1e-6)):
        limit = 0.5 if model.threshold is None else model.threshold
        return limit if target == 1 else 1 - limit
    return float(np.delete(scores, target).max())


def named_parts(e: Explanation, most: int | None = None) -> NDArray[np.intp]:
    """The parts that an explanation names: selected, with a score that is not 0, at most `most`, largest first."""
    size = np.abs(e.scores)
    named = size > max(NOTHING * float(size.max(initial=0.0)), ROUNDED * abs(e.prediction))
    if e.selected is not None:
        named &= e.selected
    return np.array([part for part in e.order if named[part]][:most], dtype=np.intp)


def mistrusted(readings: Sequence[Reading], suspects: NDArray[np.intp], marks: Marked) -> NDArray[np.intp]:
    """How many of these predictions would readers mistrust? `marks` (readers, suspects): which suspects each of them marks."""
    named = np.zeros((len(readings), len(suspects)))
    given = np.zeros_like(named)
    place = {int(feature): column for column, feature in enumerate(suspects)}
    for row, reading in enumerate(readings):
        for feature, contribution in zip(reading.features.tolist(), reading.contributions.tolist(), strict=True):
            if feature in place:
                named[row, place[feature]] = 1.0
                given[row, place[feature]] += contribution
    weighs = np.array([reading.prediction is not None for reading in readings], dtype=bool)
    prediction, limit = (np.array([getattr(reading, what) or 0.0 for reading in readings]) for what in ("prediction", "limit"))
    stands = np.array([reading.stands for reading in readings], dtype=bool)
    chosen = np.atleast_2d(marks).astype(np.float64).T
    changed = _changed(prediction[:, None] - given @ chosen, limit[:, None], stands[:, None])
    return np.asarray(np.where(weighs[:, None], changed, named @ chosen > 0).sum(axis=0))


def f1(trusted: NDArray[np.bool_], truly: NDArray[np.bool_]) -> Floats:
    """F1 of "trustworthy" along the last axis; 1 where nothing was to be trusted and nothing was."""
    hits = (trusted & truly).sum(axis=-1)
    every = trusted.sum(axis=-1) + truly.sum(axis=-1)
    return np.asarray(np.divide(2.0 * hits, every, out=np.ones(np.shape(hits)), where=every > 0))
