"""KernelSHAP (Lundberg and Lee 2017): the Shapley values of an input's parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri, stdtrit

from whytrust import local
from whytrust.core import Floats
from whytrust.explainers import log_odds
from whytrust.explainers.shap_pairs import FEW, Design
from whytrust.explainers.shap_surrogate import best, over_all
from whytrust.explanation import Explanation
from whytrust.moments import one_thread
from whytrust.question import Question

BEYOND = 2048
"""By default so many model calls more than two a part, as shap's KernelExplainer."""


@dataclass(frozen=True)
class KernelShap:
    """How is the score shared out fairly among the parts, over all orders in which they could be shown?

    A part's Shapley value is what showing it adds to the score, averaged over all coalitions of other parts (Lundberg and Lee
    2017). Values and intercept, the score with nothing shown, add up to the prediction exactly. `samples` counts every model
    call, that for the input itself included; with 2^d or more the values are exact.

    Hidden columns of a table row show, for each coalition, the values of one training row together: shap's estimand, the mean
    over the background's rows. With `hidden="columns"` each column is drawn by itself.

    How it misleads: parts that are absent are filled, so most coalitions are inputs that the model was never trained on, and
    another fill is another game with other values. Parts that stand in for each other share the credit, parts that only work
    together share it too: a value says nothing about what happens when that part alone is changed. Intervals know of the
    sampling alone.
    """

    samples: int | None = None
    surrogate: bool = True
    hidden: str = "rows"
    explains: str = "score"  # or "logit": the log-odds of the target, which do not saturate as a probability does

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        whole = isinstance(self.samples, int | np.integer) and not isinstance(self.samples, bool) and self.samples >= 1
        if self.samples is not None and not whole:
            raise ValueError(f"samples must be a whole number >= 1, got {self.samples!r}")
        log_odds.check_explains(self.explains)
        if self.surrogate not in (True, False):
            raise ValueError(f"surrogate must be True or False, got {self.surrogate!r}")
        if self.hidden not in ("rows", "columns"):
            raise ValueError("hidden must be 'rows' (hidden columns of a table show one training row) or 'columns' (each is "
                             f"drawn by itself), got {self.hidden!r}")

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """Ask coalitions and their complements, and average by size what each part adds."""
        if self.hidden == "rows" and hasattr(question.parts, "behind_rows"):
            question = replace(question, parts=question.parts.behind_rows())
        design, asked = self._design(question, rng), log_odds.explained(question, self.explains)
        nothing = asked.score(np.zeros((design.empties, question.d), bool), rng)
        scores = asked.score(design.masks, rng).reshape(2, -1)
        prediction = float(asked.original[asked.target])
        found = _shapley(design, scores[0] - scores[1], prediction, nothing, self.surrogate)
        errors = None if found.covariance is None else np.sqrt(np.maximum(found.covariance.diagonal(), 0))
        fit = local.Fit(float(nothing.mean()), found.values, np.arange(question.d), "linear", 1.0, 1.0, prediction,
                        found.covariance)
        everything = np.concatenate([[prediction], nothing, scores.ravel()])
        return Explanation.of(
            question, "kernel_shap", found.values, intercept=fit.intercept, standard_errors=errors,
            local_prediction=float(question.original[question.target]), undecided=local.undecided_ranks(fit, design.exact),
            notes=(*_notes(question, design, everything), *log_odds.saturated(question, found.values, self.explains)),
            calls=asked.calls_beside(question),
            settings={**log_odds.settings(self.explains),
                      "samples": len(everything), "design": "every coalition" if design.exact else "pairs, by size",
                      "surrogate": found.surrogate})

    def ahead(self, question: Question, rng: np.random.Generator) -> None:
        """Have the first coalitions asked together with the input itself, before the target is known."""
        if question.parts.deterministic and self.explains == "score":
            design = self._design(question, rng)
            question.ask_ahead(np.vstack([np.zeros((1, question.d), bool), design.masks]))

    def _design(self, question: Question, rng: np.random.Generator) -> Design:
        d, fixed = question.d, question.parts.deterministic
        samples = 2 * d + BEYOND if self.samples is None else int(self.samples)
        if samples < 2 * d + 2 and not (fixed and d < 63 and 2**d <= samples):
            raise ValueError(f"samples must be at least {2 * d + 2} for {d} parts (each part shown alone and hidden alone, "
                             f"all and none), got {samples}; ask for more samples, or cut coarser parts")
        return question.foresee(f"shap {samples}", rng, lambda: Design.make(d, samples, fixed, rng))


@dataclass(frozen=True)
class Values:
    """Shapley values, their covariance over repetitions of the sampling where it is known, and what took noise out."""

    values: Floats
    covariance: Floats | None
    surrogate: str


@one_thread
def _shapley(design: Design, differences: Floats, prediction: float, nothing: Floats, surrogate: bool) -> Values:
    """Averages by size of what a surrogate leaves over; what it says of all coalitions of a size is known exactly."""
    found = None
    if design.open.any() and (surrogate or design.thin):
        found = best(design, differences, float(nothing.mean()) - prediction)
    known, left, errors = ((np.zeros(design.d), differences, differences) if found is None
                           else over_all(design, found, differences))
    values = known + (left / design.counts[design.stratum]) @ design.pull
    # What is pulled adds up to 0 but for rounding, so values and intercept add up to the prediction.
    values += (prediction - nothing.mean() - values.sum()) / design.d
    covariance = None if design.thin else _covariance(design, errors, nothing)
    return Values(values, covariance, "none" if found is None else "bent" if found.bend else "linear")


def _covariance(design: Design, errors: Floats, nothing: Floats) -> Floats:
    """Of stratified means with finite-population correction, and of the mean with nothing shown.

    Widened as Student's t is wider than the normal: so that 1.96 standard errors hold 95 % after few draws too. The degrees of
    freedom are Satterthwaite's, from how much the squares themselves vary; those of a part that few pairs tell of vary much.
    """
    covariance, doubt = np.zeros((design.d, design.d)), np.zeros(design.d)
    for cell in np.flatnonzero(design.open & (design.counts > 1)):
        inside = design.stratum == cell
        n = int(design.counts[cell])
        pull = design.pull[inside] * errors[inside, None]
        pull -= pull.mean(axis=0)
        factor = (1 - design.sampled[cell]) / (n * (n - 1))
        covariance += factor * (pull.T @ pull)
        doubt += factor**2 * n * np.maximum((pull**2).var(axis=0), 2 * ((pull**2).mean(axis=0)) ** 2 * n / (n - 1))
    if len(nothing) > 1:
        covariance += nothing.var(ddof=1) / len(nothing) / design.d**2
        doubt += 2 / (len(nothing) - 1) * (nothing.var(ddof=1) / len(nothing) / design.d**2) ** 2
    square = 2 * covariance.diagonal() ** 2
    free = np.divide(square, doubt, out=np.full(design.d, np.inf), where=doubt > 0)
    wider = stdtrit(np.clip(free, 3, 1e6), 0.975) / ndtri(0.975)
    return np.asarray(covariance * np.outer(wider, wider))


# --- in words -----------------------------------------------------------------------------------------------------------


def _notes(question: Question, design: Design, scores: Floats) -> Iterator[str]:
    if not question.parts.deterministic:
        how = getattr(question.parts, "hiding", "Hidden parts are filled")
        yield (f"{how}. They are drawn at random, so values are averages over draws and never exact; the score with nothing "
               f"shown is the mean of {design.empties} draws.")
    if design.thin:
        yield (f"{len(scores)} model calls are few for {design.d} parts: how far these values may be off is not known; "
               f"ask for {2 * design.d + 2 + 2 * FEW} or more.")
