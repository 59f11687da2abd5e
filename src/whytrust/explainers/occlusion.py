"""Occlusion, also called leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whytrust.core import check_weighable
from whytrust.explanation import Explanation
from whytrust.question import Question


@dataclass(frozen=True)
class Occlusion:
    """How much does the score fall when one part alone is hidden?

    It misleads where parts stand in for each other: with two equal reasons, hiding either changes nothing, and both score 0.
    """

    repeats: int = 25
    """How often to draw each hidden part where the fill draws at random; fixed fills are asked once."""

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """d model calls, or d × repeats with a random fill; then with the standard error of the mean."""
        check_weighable(question.d)
        masks = ~np.eye(question.d, dtype=bool)
        if question.parts.deterministic:
            return Explanation.of(question, "occlusion", question.original[question.target] - question.score(masks, rng))
        if not isinstance(self.repeats, int | np.integer) or self.repeats < 2:
            raise ValueError(f"repeats must be a whole number >= 2 where the fill draws at random, got {self.repeats!r}")
        answers = question.score(np.repeat(masks, self.repeats, axis=0), rng).reshape(question.d, self.repeats)
        drops = question.original[question.target] - answers
        return Explanation.of(question, "occlusion", drops.mean(axis=1),
                              standard_errors=drops.std(axis=1, ddof=1) / np.sqrt(self.repeats))
