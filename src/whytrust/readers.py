"""Simulated readers: what somebody who believes an explanation, and nothing else, would decide.

Ribeiro, Singh and Guestrin (2016, § 5) measure explanations by what a reader does with them: which predictions to mistrust, which
of two models to choose. A reader here knows which features are not to be trusted, sees an explanation, and acts by fixed rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats
from whytrust.explanation import Explanation

Marked = NDArray[np.bool_]
"""For every feature that inputs share: is it marked as not to be trusted?"""
NOTHING = 1e-12
"""A score of this size, beside the largest one, is none."""


@dataclass(frozen=True)
class Reading:
    """What a reader takes from one explanation: which features it names, and what each contributes.

    `prediction` is what the explanation makes of the input itself, and `limit` where the decision would change; both are None
    where it has no notion of how much a feature contributes (greedy removal, random, sizes without a sign): then a reader can only
    look whether a feature is named. `stands` says on which side of the limit the model's own decision lies.
    """

    features: NDArray[np.intp]
    contributions: Floats
    prediction: float | None = None
    limit: float | None = None
    stands: bool = True

    def trusts(self, marked: Marked) -> NDArray[np.bool_]:
        """Does the reader trust the prediction, given each row of `marked` (rounds, features)?

        With contributions, the reader takes off what marked features contribute and sees whether the decision is still the
        model's; without, one marked feature among those named is enough for mistrust.
        """
        named = np.atleast_2d(marked)[:, self.features]
        if self.prediction is None or self.limit is None:
            return ~named.any(axis=1)
        return (self.prediction - named @ self.contributions > self.limit) == self.stands


def read(e: Explanation, features: NDArray[np.intp], limit: float | None, most: int | None = None) -> Reading:
    """What a reader takes from an explanation whose parts are these shared features, of its `most` largest parts.

    `limit` is the score of the target above which the model decides for it; None where the reader cannot weigh contributions.
    """
    if len(features) != len(e.scores):
        raise ValueError(f"features must have one entry a part: expected {len(e.scores)}, got {len(features)}")
    shown = named_parts(e, most)
    weighs = limit is not None and e.sense == "signed" and e.local_prediction is not None
    if not weighs:
        return Reading(features[shown], e.scores[shown])
    assert e.local_prediction is not None and limit is not None
    origin = np.ones(len(e.scores)) if e.origin is None else e.origin
    return Reading(features[shown], e.scores[shown] * origin[shown], e.local_prediction, limit, e.prediction > limit)


def named_parts(e: Explanation, most: int | None = None) -> NDArray[np.intp]:
    """The parts that an explanation names: selected, with a score that is not 0, at most `most`, largest first."""
    size = np.abs(e.scores)
    named = size > NOTHING * max(float(size.max(initial=0.0)), NOTHING)
    if e.selected is not None:
        named &= e.selected
    return np.array([part for part in e.order if named[part]][:most], dtype=np.intp)


def mistrusted(readings: Sequence[Reading], marked: Marked) -> int:
    """How many of these predictions would a reader mistrust who marks these features?"""
    return sum(not reading.trusts(marked)[0] for reading in readings)


def f1(trusted: NDArray[np.bool_], truly: NDArray[np.bool_]) -> Floats:
    """F1 of "trustworthy" along the last axis; 1 where nothing was to be trusted and nothing was."""
    hits = (trusted & truly).sum(axis=-1)
    every = trusted.sum(axis=-1) + truly.sum(axis=-1)
    return np.divide(2.0 * hits, every, out=np.ones(np.shape(hits)), where=every > 0)
