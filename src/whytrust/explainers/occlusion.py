"""Occlusion, also called leave-one-out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whytrust.core import Floats, check_weighable
from whytrust.explainers import log_odds
from whytrust.explanation import Explanation
from whytrust.question import Question

STAND_INS = ("No part changes the score when it alone is hidden, but all of them together do: parts stand in for each other, "
             "which this method cannot see. lime and kernel_shap hide several parts at once.")


@dataclass(frozen=True)
class Occlusion:
    """How much does the score fall when one part alone is hidden?

    It misleads where parts stand in for each other: with two equal reasons, hiding either changes nothing, and both score 0.
    """

    repeats: int = 25
    """How often to draw each hidden part where the fill draws at random; fixed fills are asked once."""

    explains: str = "score"
    """The score as it comes, or "logit": the log-odds of the target, which do not saturate as a probability does."""

    def __post_init__(self) -> None:
        """Refuse what cannot be explained."""
        log_odds.check_explains(self.explains)

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """d model calls, or d × repeats with a random fill; then with the standard error of the mean."""
        check_weighable(question.d)
        masks = ~np.eye(question.d, dtype=bool)
        asked = log_odds.explained(question, self.explains)
        if question.parts.deterministic:
            drops = asked.original[asked.target] - asked.score(masks, rng)
            return self._told(question, asked, drops, rng)
        if not isinstance(self.repeats, int | np.integer) or self.repeats < 2:
            raise ValueError(f"repeats must be a whole number >= 2 where the fill draws at random, got {self.repeats!r}")
        answers = asked.score(np.repeat(masks, self.repeats, axis=0), rng).reshape(question.d, self.repeats)
        drops = asked.original[asked.target] - answers
        return self._told(question, asked, drops.mean(axis=1), rng, drops.std(axis=1, ddof=1) / np.sqrt(self.repeats))

    def _told(self, question: Question, asked: Question, scores: Floats, rng: np.random.Generator,
              errors: Floats | None = None) -> Explanation:
        alone, notes = asked.only_rounding(scores), log_odds.saturated(question, scores, self.explains)
        if alone and not asked.unmoved(scores, rng):
            scores, errors, notes = np.zeros(len(scores)), None, (STAND_INS,)
        return Explanation.of(question, "occlusion", scores, standard_errors=errors, calls=asked.calls_beside(question),
                              notes=notes, settings=log_odds.settings(self.explains))
