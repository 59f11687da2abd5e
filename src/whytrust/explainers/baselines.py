"""What an explanation must beat before it means anything."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whytrust.explanation import Explanation
from whytrust.question import Question


@dataclass(frozen=True)
class Random:
    """What would an explanation look like that knows nothing? Scores drawn from a normal, whatever the model does."""

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One random score a part; the model is asked only for its prediction."""
        return Explanation.of(question, "random", rng.standard_normal(question.d), sense="nothing", notes=(
            "These scores are drawn at random, not an explanation: what an honest method must beat.",))
