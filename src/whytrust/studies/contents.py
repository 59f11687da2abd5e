"""What hidden parts hold is a choice of the explanation; here an explainer makes it for itself, and others are left alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust.explanation import Explanation
from whytrust.question import Question


@dataclass(frozen=True, eq=False)
class Refilled:
    """An explainer that hides parts in another way than the trial does: "zero", "min", "mean" or a number."""

    explainer: Any
    fill: str | float

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """As the explainer itself, of the same input cut in the same way."""
        parts: Any = question.parts
        if not hasattr(parts, "filled"):
            raise TypeError(f"fill of one explainer must be of parts that can be hidden in several ways, which {parts.domain} "
                            "parts of this kind cannot; set fill for the whole audit")
        asked = Question(question.model, parts.filled(self.fill), question.target, question.batch_size,
                         on_calls=question.on_calls)
        found: Explanation = self.explainer(asked, rng)
        return found
