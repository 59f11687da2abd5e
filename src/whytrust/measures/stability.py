"""Metrics that explain again: another input nearby, or another model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, cast

import numpy as np

from whytrust.checked import CheckedModel
from whytrust.core import Floats, NearParts, Parts
from whytrust.measures.agreement import rank_correlation
from whytrust.measures.flipping import check_whole
from whytrust.measures.judged import ANY, About, Judged
from whytrust.question import Memory, Question


@dataclass(frozen=True)
class MaxSensitivity:
    """How far do the scores move, at most, when the input hardly does? (Yeh et al. 2019)

    The largest distance to the scores of `samples` inputs nearby, beside the length of the scores themselves; smaller is
    better. Nearby is noise of up to `radius` of the range of the input's values; for texts, two neighbouring words that trade
    places. That neighbours be explained alike is what people expect, not what a model must do: scores that say nothing of the
    model and never move are best. Not defined where all scores are 0.
    """

    radius: float = 0.02
    samples: int = 10
    about: ClassVar[About] = About(
        "max_sensitivity", "how far the scores move, at most, when the input hardly does", False, ANY, "alignment",
        "plausibility", "Yeh et al. 2019", ("explain",), within=(0.0, None))

    def __post_init__(self) -> None:
        """Refuse what is no neighbourhood."""
        check_whole("samples", self.samples)
        if not 0 < self.radius < 1:
            raise ValueError(f"radius must be a share of the range of the input's values, between 0 and 1, got {self.radius!r}")

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The largest distance."""
        parts = (judged.asked or judged.question).parts
        if not isinstance(parts, NearParts):
            raise TypeError(f"max_sensitivity must know inputs nearby, and {type(parts).__name__} have none; cut the input "
                            "itself into parts")
        length = float(np.linalg.norm(judged.scores))
        if not length:
            return math.nan
        furthest = 0.0
        for _ in range(self.samples):
            scores = explained(judged, judged.question.model, parts.near(self.radius, rng))
            furthest = max(furthest, float(np.linalg.norm(scores - judged.scores)))
        return furthest / length


@dataclass(frozen=True)
class ModelRandomisation:
    """Does the explanation change when the model is replaced by one that was never trained? (Adebayo et al. 2018)

    The size of the rank correlation of both; near 0 is better, for then the explanation depends on what the model has learnt.
    It refutes and does not confirm: random scores pass.
    """

    about: ClassVar[About] = About(
        "model_randomisation", "how alike the explanation is to that of the same model before its training", False, ANY,
        "performance", "faithfulness", "Adebayo et al. 2018", ("explain", "untrained"), share=True)

    twin: ClassVar[str] = "untrained"

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """From 0 to 1."""
        model = cast(CheckedModel, getattr(judged, self.twin))
        return abs(rank_correlation(judged.scores, explained(judged, model, (judged.asked or judged.question).parts)))


@dataclass(frozen=True)
class LabelRandomisation(ModelRandomisation):
    """Does the explanation change when the model has learnt shuffled labels by heart? (Adebayo et al. 2018)

    The size of the rank correlation of both; near 0 is better. It refutes and does not confirm: random scores pass.
    """

    about: ClassVar[About] = About(
        "label_randomisation", "how alike the explanation is to that of the same model trained on shuffled labels", False, ANY,
        "performance", "faithfulness", "Adebayo et al. 2018", ("explain", "relabelled"), share=True)
    twin: ClassVar[str] = "relabelled"


def explained(judged: Judged, model: CheckedModel, parts: Parts) -> Floats:
    """What the explainer says of another model, or of other parts."""
    explain = cast(Callable[[Question], Floats], judged.explain)  # which `lacking` has seen to
    asked = judged.asked or judged.question
    other = replace(asked, model=model, parts=parts, memory=Memory(()))
    if model is not asked.model:
        outputs = len(replace(other, target=0, memory=Memory(())).original)
        if outputs != len(asked.original):
            raise ValueError(f"untrained and relabelled models must have as many outputs as the model itself: expected "
                             f"{len(asked.original)}, got {outputs} of {model.name}")
    scores = np.asarray(explain(other), dtype=np.float64)
    if scores.shape != (judged.d,) or not np.isfinite(scores).all():
        raise ValueError(f"explain must return finite scores, one a part: expected ({judged.d},), got {scores.shape}"
                         f"{'' if np.isfinite(scores).all() else ' with NaN or infinite ones'}")
    return scores
