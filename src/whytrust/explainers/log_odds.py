"""The logit for methods that only ask the model: log-odds of the target, which do not saturate as probabilities do."""

from __future__ import annotations

import numpy as np

from whytrust.core import Floats
from whytrust.logits import CLIP, MOST
from whytrust.question import Question

CERTAIN, SMALL = 0.999, 0.01
"""A probability this near to 0 or 1, of which no part has a larger score than SMALL, is said to be saturated."""
CUT = (f"Some probabilities were within {CLIP:g} of 0 or 1, where they say too little: their log-odds were cut to "
       f"±{MOST:.1f}, and scores are too small, or too large, by what was cut. If the model has logits, explain those: "
       "wt.model(…, output='logit').")

ROUGH = 12.0
"""Log-odds beyond these, taken from one probability in single precision, are off by .005 or more."""
COARSE = (f"The model gives one probability in single precision, and near 1 that says little: log-odds beyond {ROUGH:g} are "
          "rounded by .005 to 1. If the model has logits, explain those: wt.model(…, output='logit').")


def check_explains(explains: str) -> None:
    """Refuse what is neither the logit nor the score."""
    if explains not in ("logit", "score"):
        raise ValueError(f"explains must be 'logit' (the log-odds of the target) or 'score' (as it comes), got {explains!r}")


def explained(question: Question, explains: str) -> Question:
    """The question itself, or the same question about the log-odds of the model's probabilities."""
    if explains == "score":
        return question
    if not question.model.gives_probabilities(question.original):
        raise ValueError(f"explains='logit' needs probabilities, and {question.model.name} gives scores as they come; leave "
                         "explains out, or say what they are with wt.model(…, output='probability' or 'logit')")
    return question.of_log_odds()


def settings(explains: str) -> dict[str, str]:
    """What an explanation says of its unit."""
    return {"explains": "logit"} if explains == "logit" else {}


def saturated(question: Question, scores: Floats, explains: str) -> tuple[str, ...]:
    """A note where a probability is so near to 0 or 1 that hiding parts hardly moves it, or that its log-odds are cut."""
    if explains == "logit":
        return _rounded(question)
    original = question.original
    p, most = float(original[question.target]), float(np.abs(scores).max(initial=0.0))
    if (not question.model.gives_probabilities(original) or 1 - CERTAIN < p < CERTAIN or most > SMALL):
        return ()
    return (f"The model is nearly certain (a probability of {p:.6g}), and no part has a score above {most:.1g}: a saturated "
            "probability hides what matters. Pass explains='logit' to explain its log-odds.",)


def _rounded(question: Question) -> tuple[str, ...]:
    """A note where log-odds that were taken from probabilities are cut, or known roughly; those of logits are neither."""
    seen, of_one = question.of_log_odds().memory.seen, question.memory.seen
    if question.model.output == "logit":
        return ()
    if seen.beyond(question.target, MOST):
        return (CUT,)
    rough = of_one.shares and of_one.single[1] and seen.greatest[1] >= ROUGH  # near 0 single precision is as fine as anywhere
    return (COARSE,) if rough else ()
