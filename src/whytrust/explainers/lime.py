"""LIME (Ribeiro, Singh, Guestrin 2016): a small, readable model of the black box near one input."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import local
from whytrust.core import DrawnParts, Draws, Floats, check_weighable
from whytrust.designs import SAMPLING, Kernel, MaskPlan, Sample, plain_masks, too_narrow
from whytrust.explainers import log_odds
from whytrust.explanation import Explanation
from whytrust.logits import sigmoid
from whytrust.moments import SELECTIONS
from whytrust.question import Question
from whytrust.surrogate import Adjusted, adjust, control

DEFAULTS: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {
        "text": {"samples": 5000, "sampling": "uniform_kept", "distance": "cosine", "width": 0.25, "features": 10},
        "image": {"samples": 1000, "sampling": "uniform_kept", "distance": "l2", "width": "0.75√d", "features": "all"},
        "audio": {"samples": 1000, "sampling": "uniform_kept", "distance": "cosine", "width": 0.25, "features": "all"},
        "tabular": {"samples": 5000, "sampling": "draws", "distance": "l2", "width": "0.75√d", "features": 10},
    },
    "reference": {
        "text": {"samples": 5000, "sampling": "uniform_removed", "distance": "cosine", "width": 0.25, "features": 10},
        "image": {"samples": 1000, "sampling": "bernoulli", "distance": "cosine", "width": 0.25, "features": "all"},
        "audio": {"samples": 8192, "sampling": "bernoulli", "distance": "cosine", "width": 0.25, "features": "all"},
        "tabular": {"samples": 5000, "sampling": "draws", "distance": "l2", "width": "0.75√d", "features": 10},
    },
}
for _domain in DEFAULTS["paper"].values():
    _domain.update(root=False, selection="lasso_path", ridge=0.0)
# Of a text's many words K-LASSO keeps others with other seeds, and fewer of those that weigh most (benchmarks/stability.py).
DEFAULTS["paper"]["text"]["selection"] = "highest_weights"
for _domain in DEFAULTS["reference"].values():
    _domain.update(root=True, selection="auto", ridge=1.0)


@dataclass(frozen=True)
class Lime:
    """Which parts speak for the target, to a weighted linear model (or a small tree) of the black box around the input?

    What is left unset comes from `variant` and the domain: "paper" or "reference" (the lime package's own choices); `DEFAULTS`
    is the table. `selection="lasso_path"` chooses parts as the paper does; texts keep the words of the highest weights, on
    which two seeds agree more often. It misleads where the model bends within the neighbourhood: read `fidelity_fresh` and the
    gap before the weights. `intercept="mean"` with `design="plain"` is how the paper's own experiments were run: scores are
    centred by their plain mean, which far-away masks move, so that weights near the input come out wrong. Weights kept by
    selection are larger than they would be without it, and their standard errors do not know of it.
    """

    samples: int | str | None = None
    variant: str = "paper"
    features: int | str | None = None
    selection: str | None = None
    sampling: str | None = None
    distance: str | None = None
    width: float | None = None
    root: bool | None = None
    ridge: float | None = None
    family: str = "linear"
    design: str = "stratified"
    surrogate: bool = True
    top: int = 5
    budget: int | None = None
    intercept: str = "fitted"
    explains: str = "score"  # or "logit": the log-odds of the target, which do not saturate as a probability does

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        log_odds.check_explains(self.explains)
        _one_of("variant", self.variant, tuple(DEFAULTS))
        _one_of("family", self.family, ("linear", "tree", "auto"))
        _one_of("design", self.design, ("stratified", "plain"))
        _one_of("intercept", self.intercept, ("fitted", "mean"))
        if self.intercept == "mean" and self.design != "plain":
            raise ValueError("intercept='mean' is the plain mean of masks drawn one by one: it needs design='plain'")
        for name, allowed in (("selection", SELECTIONS), ("sampling", SAMPLING), ("distance", ("cosine", "l2"))):
            if getattr(self, name) is not None:
                _one_of(name, getattr(self, name), allowed)
        for name, words in (("samples", ("auto",)), ("features", ("all",)), ("budget", ()), ("top", ())):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1
            if (value is not None or name == "top") and value not in words and not whole:
                raise ValueError(f"{name} must be a whole number >= 1{''.join(f' or {w!r}' for w in words)}, got {value!r}")
        for name in ("ridge", "width"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int | float | np.number) or not 0 <= value < math.inf):
                raise ValueError(f"{name} must be a finite number >= 0, got {value!r}")
        for name in ("root", "surrogate"):
            if getattr(self, name) not in (None, True, False):
                raise ValueError(f"{name} must be True or False, got {getattr(self, name)!r}")

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """Sample, weigh, select, fit; then say how far the fit may be believed."""
        if question.d < 2:
            raise ValueError(f"an explanation compares parts and needs at least two, this input has {question.d} "
                             f"({', '.join(question.parts.names)}); cut it finer, or give a longer input")
        setting = self.settle(question)
        asked = log_odds.explained(question, self.explains)
        found = self._evidence(asked, setting, rng)
        fit = local.fit(found.sample, found.adjusted, setting.fitting, found.origin)
        return _explain(question, asked, setting, found, fit, self)

    def ahead(self, question: Question, rng: np.random.Generator) -> None:
        """Have the first samples asked together with the input itself, before the target is known."""
        if question.d < 2 or self.explains == "logit":
            return
        setting = self.settle(question)
        if setting.sampling != "draws":
            if self.design == "stratified":
                plan = self._plan(question, setting, rng)
                question.ask_ahead(plan.masks(next(_looks(plan.total, question.d, setting.auto))[0]))
        elif isinstance(question.parts, DrawnParts) and question.parts.support(setting.samples) is None:
            look = next(_looks(setting.samples, question.d, setting.auto))[0]
            parts = question.parts
            question.ask_ahead(question.foresee(f"draw-{look}", rng, lambda: parts.draw(look, rng)))

    def settle(self, question: Question) -> Setting:
        """Every choice made: the user's where there is one, else the variant's for this domain."""
        check_weighable(question.d)
        chosen = dict(DEFAULTS[self.variant][question.parts.domain])
        given = {k: v for k, v in asdict(self).items() if k in chosen and v is not None}
        chosen.update(given)
        if chosen["sampling"] == "draws" and not isinstance(question.parts, DrawnParts):
            chosen["sampling"] = "uniform_kept"
        width = 0.75 * math.sqrt(question.d) if chosen["width"] == "0.75√d" else float(chosen["width"])
        auto = chosen["samples"] == "auto"
        budget = self.budget or DEFAULTS[self.variant][question.parts.domain]["samples"]
        samples = int(budget if auto else chosen["samples"])
        kernel = Kernel(chosen["distance"], width, bool(chosen["root"]))
        features = None if chosen["features"] == "all" else int(chosen["features"])
        fitting = local.Fitting(chosen["selection"], features, float(chosen["ridge"]), self.family, self.intercept)
        least = (min(features, question.d) if features and fitting.selection != "none" else question.d) + 3
        if samples < least:
            raise ValueError(f"samples must be at least {least} to weigh {least - 3} parts, got {samples}; "
                             "ask for more samples, fewer features, or coarser parts (such as sentences)")
        top = min(self.top, features or self.top, question.d - 1)
        return Setting(samples, auto, chosen["sampling"], kernel, fitting, top)

    def _evidence(self, question: Question, setting: Setting, rng: np.random.Generator) -> Evidence:
        if setting.sampling == "draws":
            return self._drawn(question, setting, rng)
        ones = np.ones(question.d)
        if self.design == "plain":
            if setting.auto:
                raise ValueError("samples='auto' needs the stratified design; leave design out, or give a number of samples")
            masks, weights = plain_masks(question.d, setting.sampling, setting.kernel, setting.samples, rng)
            return Evidence(local.plain_sample(masks.astype(np.float64), question.score(masks, rng), weights), None, ones)
        plan = self._plan(question, setting, rng)
        known: list[Floats] = []
        for look, error in _looks(plan.total, question.d, setting.auto):
            sample = plan.ask(look, lambda masks: question.score(masks, rng), known)
            adjusted = adjust(sample, plan) if self.surrogate else None
            apart = setting.auto and local.separated(sample, adjusted, setting.top, error, ones)
            if apart or look >= plan.total:
                break
        return Evidence(sample, adjusted, ones, apart)

    def _plan(self, question: Question, setting: Setting, rng: np.random.Generator) -> MaskPlan:
        distinct = question.parts.deterministic
        return question.foresee(f"plan {setting}", rng, lambda: MaskPlan.make(
            question.d, setting.sampling, setting.kernel, setting.samples, distinct, rng))

    def _drawn(self, question: Question, setting: Setting, rng: np.random.Generator) -> Evidence:
        """Tables: values are drawn, not hidden. Everything that can be drawn is asked where that costs no more."""
        everything = question.every(setting.samples)
        if everything is not None:
            draws, scores = everything
            assert draws.chances is not None
            weights: Floats = setting.kernel.of_rows(draws.design, draws.origin) * draws.chances * setting.samples
            zero = np.zeros(len(draws), np.intp)
            return Evidence(Sample(draws.design, scores, weights, zero, np.ones(len(draws))), None, draws.origin)
        blocks: list[tuple[Draws, Floats]] = []
        before = 0
        for look, error in _looks(setting.samples, question.d, setting.auto):
            blocks.append(question.draw(look - before, rng))
            before = look
            design, origin = np.vstack([d.design for d, _ in blocks]), blocks[0][0].origin
            weights = setting.kernel.of_rows(design, origin)
            if weights.sum() ** 2 < (question.d + 3) * (weights**2).sum() or weights.max() < 1e-100:
                raise too_narrow(setting.kernel, question.d)
            sample = local.plain_sample(design, np.concatenate([s for _, s in blocks]), weights)
            adjusted = control(sample, [d for d, _ in blocks]) if self.surrogate else None
            apart = setting.auto and local.separated(sample, adjusted, setting.top, error, origin)
            if apart:
                break
        return Evidence(sample, adjusted, origin, apart)


@dataclass(frozen=True)
class Evidence:
    """What was asked and answered, less noise where that could be had, and whether the top parts were seen to stand apart."""

    sample: Sample
    adjusted: Adjusted | None
    origin: Floats
    apart: bool = False


@dataclass(frozen=True)
class Setting:
    """Lime's choices, settled for one question."""

    samples: int
    auto: bool
    sampling: str
    kernel: Kernel
    fitting: local.Fitting
    top: int


def _looks(most: int, d: int, auto: bool) -> Iterator[tuple[int, float]]:
    """(samples so far, error that may be spent): one look, or looks that double, the later the more of the 5 %."""
    look = 0 if auto else most
    spent = 0.0
    while True:
        look = min(max(2 * look, 4 * (d + 1), 64), most)
        yield look, local.ERROR * (look / most) ** 2 - spent
        spent = local.ERROR * (look / most) ** 2
        if look >= most:
            return


def _explain(question: Question, asked: Question, setting: Setting, found: Evidence, fit: local.Fit,
             lime: Lime) -> Explanation:
    sample, origin = found.sample, found.origin
    prediction = float(asked.original[asked.target])
    local_prediction = float(sigmoid(np.array(fit.prediction))) if lime.explains == "logit" else fit.prediction
    drawn = setting.sampling == "draws"
    design = (("every row that can be drawn" if sample.exact else "drawn from training data") if drawn
              else "every mask" if sample.exact else f"{setting.sampling}, {lime.design}")
    sloped = fit.tree is None and not (origin == 1).all()
    undecided = local.undecided_ranks(fit.contributions(origin), sample.exact)
    return Explanation.of(
        question, "lime", fit.weights, conditions=True, intercept=fit.intercept, local_prediction=local_prediction,
        fidelity=fit.fidelity, fidelity_fresh=fit.fidelity_fresh, standard_errors=fit.standard_errors,
        selected=_selected(fit, question.d),
        origin=origin if sloped else None, undecided=undecided,
        rules=local.rules(fit, question.parts.names, sample.rows, drawn),
        notes=tuple(local.notes(sample, fit, prediction, _label(question, local_prediction),
                                _rarely_drawn(question, sample, origin) if drawn else ()))
        + (getattr(question.parts, "slope_notes", ()) if sloped else ())
        + (getattr(question.parts, "value_notes", ()) if drawn else ())
        + (() if found.apart else tuple(_auto_notes(setting, sample, undecided)))
        + log_odds.saturated(question, fit.weights, lime.explains),
        calls=asked.calls_beside(question),
        settings={**log_odds.settings(lime.explains), "variant": lime.variant, "samples": len(sample.rows),
                  "asked": "auto" if setting.auto else setting.samples, "design": design,
                  **asdict(setting.kernel), **asdict(setting.fitting), "used": fit.family, "surrogate": fit.adjusted})


def _rarely_drawn(question: Question, sample: Sample, origin: Floats) -> list[str]:
    """Parts of a row that hardly any drawn row shares: a category, or a missing value, that is rare in the training data."""
    if sample.exact:
        return []
    shared = np.ones(len(sample.rows)) @ sample.rows  # how many rows share it, where a part is 0 or 1
    rare = np.flatnonzero((origin == 1) & (shared < local.RARE))
    return [question.parts.names[int(i)] for i in rare if np.isin(sample.rows[:, i], (0, 1)).all()]


def _selected(fit: local.Fit, d: int) -> NDArray[np.bool_]:
    chosen = np.zeros(d, bool)
    chosen[fit.active] = True
    return chosen


def _label(question: Question, local_prediction: float) -> str | None:
    """The class the local model would make of the input, where that is another than the model's (two classes only)."""
    scores = question.original
    if len(scores) != 2 or scores.min() < 0 or abs(scores.sum() - 1) > 1e-6:
        return None
    limit = question.model.threshold if question.model.threshold is not None else 0.5
    limit = limit if question.target == 1 else 1 - limit
    differs = (scores[question.target] > limit) != (local_prediction > limit)
    return question.model.class_name(1 - question.target, 2) if differs and scores[question.target] > limit else (
        question.model.class_name(question.target, 2) if differs else None)


def _auto_notes(setting: Setting, sample: Sample, undecided: tuple[int, ...]) -> list[str]:
    top = setting.top
    if not setting.auto or sample.exact:
        return []
    inside = [r for r in undecided if r <= top]
    ranks = ", ".join(f"{r} and {r + 1}" for r in inside)
    return [f"The budget of {setting.samples} samples ended before the top {top} parts stood apart"
            + (f": ranks {ranks} could be swapped by chance." if inside else ".")]


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
