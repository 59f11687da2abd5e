"""Metrics that hold an explanation against an annotation: where people say that the thing is.

None of them asks the model. They tell how plausible an explanation is, and where the model has reasons of its own (a frame, a
watermark, a corner) the more faithful explanation loses: Wang & Wang (2022) take one from 100 % to 0 % by changing one weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import ndimage

from whytrust.measures.judged import ANY, About, Judged


@dataclass(frozen=True)
class PointingGame:
    """Does the place of the largest score lie in the annotation, or near it? (Zhang et al. 2018)

    1 or 0; where several places share the largest score (the pixels of a segment), the share of them that hit. A hit is no
    further than `tolerance` from the annotation, in pixels, characters, cells or columns.
    """

    tolerance: float = 0.0
    about: ClassVar[About] = About("pointing_game", "whether the place of the largest score lies in the annotation", True, ANY,
                                   "alignment", "plausibility", "Zhang et al. 2018", ("truth",), share=True)

    def __post_init__(self) -> None:
        """Refuse what is no distance."""
        if isinstance(self.tolerance, str) or not 0 <= self.tolerance < math.inf:
            raise ValueError(f"tolerance must be a distance from the annotation, 0 or more, got {self.tolerance!r}")

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The share of the largest places that hit."""
        near = np.asarray(judged.truth)
        if self.tolerance:
            near = ndimage.distance_transform_edt(~near) <= self.tolerance
        return float(near[judged.places & (judged.map == judged.scores.max())].mean())


@dataclass(frozen=True)
class Localisation:
    """How much do the annotation and the places of large scores overlap, by intersection over union? (Selvaraju et al. 2017)

    Large is what is above `threshold` times the largest score. Not defined where no score is above 0.
    """

    threshold: float = 0.15
    about: ClassVar[About] = About("localisation", "the overlap (intersection over union) of the annotation and the places of "
                                   "large scores", True, ANY, "alignment", "plausibility", "Selvaraju et al. 2017", ("truth",),
                                   share=True)

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        if isinstance(self.threshold, str) or not 0 <= self.threshold < 1:
            raise ValueError(f"threshold must be a share of the largest score, from 0 to below 1, got {self.threshold!r}")

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """From 0 to 1."""
        truth, places = np.asarray(judged.truth), judged.places
        most = float(judged.scores.max())
        if most <= 0:
            return math.nan
        large, truth = judged.map[places] > self.threshold * most, truth[places]
        return float((large & truth).sum() / (large | truth).sum())


@dataclass(frozen=True)
class RelevanceMass:
    """Which share of all that speaks for the target lies in the annotation? (Arras et al. 2022)

    Scores below 0 are left out. Each place has its part's score, so that a large part weighs more. Not defined where no score
    is above 0.
    """

    about: ClassVar[About] = About("relevance_mass", "the share of positive scores that lies in the annotation", True, ANY,
                                   "alignment", "plausibility", "Arras et al. 2022", ("truth",), share=True)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """From 0 to 1."""
        positive = np.maximum(judged.map, 0)
        total = float(positive.sum())
        return float(positive[np.asarray(judged.truth)].sum() / total) if total > 0 else math.nan


@dataclass(frozen=True)
class RelevanceRank:
    """Of as many places of the largest scores as the annotation has, which share lies in it? (Arras et al. 2022)

    Places that share the last score taken belong to it in part.
    """

    about: ClassVar[About] = About("relevance_rank", "of as many largest places as the annotation has, the share in it", True,
                                   ANY, "alignment", "plausibility", "Arras et al. 2022", ("truth",), share=True)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """From 0 to 1."""
        truth, scores = np.asarray(judged.truth)[judged.places], judged.map[judged.places]
        k = int(truth.sum())
        if not k:
            return math.nan  # the annotation lies between the parts
        border = np.partition(scores, len(scores) - k)[len(scores) - k]
        above, tied = scores > border, scores == border
        inside = (above & truth).sum() + (tied & truth).sum() * (k - above.sum()) / tied.sum()
        return float(inside / k)
