"""Explanations from a model's gradients: a map over the input, pooled onto its parts.

A gradient says how the score moves for very small changes. Where a net saturates it is near zero, however much the input
matters; and its values jump from pixel to pixel, so a map's finest detail means little.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from scipy.special import roots_legendre

from whytrust.core import Floats, Sense
from whytrust.explainers.laying import POOLINGS, Laid, sense_of
from whytrust.explainers.spots import Explains, Spot, over_embedding
from whytrust.explanation import Explanation
from whytrust.logits import are_shares
from whytrust.question import Question

FEW = 16
"""Numbers of an option that are kept as they are in an explanation's settings; larger arrays by their shape."""
CERTAIN = 0.99
"""From this share on a softmax is so flat that its gradient says little."""


class Mapping(Protocol):
    """A method that gives a map over an input: a number for each of its values, or for each of its places."""

    @property
    def name(self) -> str:
        """As in the catalogue."""
        ...

    @property
    def pooling(self) -> str:
        """How a map is usually pooled onto the parts of an image or a sound."""
        ...

    def maps(self, spot: Spot, values: Floats) -> Iterator[Floats]:
        """A map for each of the values, one after the other."""
        ...


@dataclass(frozen=True)
class Pooled:
    """What does a map over the input say of its parts?

    `pooling` is mean, mean_abs, mean_pos (Hoedt et al. 2022), sum or signed_max; each method has its own by default. A mean
    over a large part looks calm however bright its brightest pixel is; absolute values say how much a part matters, and not
    whether it speaks for or against. `explains` is the logit (before a softmax, which makes sure predictions look flat) or
    the score itself.
    """

    method: Mapping
    pooling: str | None = None
    explains: Explains = "logit"

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One map, pooled."""
        spot, map, how = self._mapped(question, rng)
        laid, sense = spot.lay(map, how), sense_of(how, getattr(self.method, "sense", "signed"))
        found, notes = getattr(self.method, "account", _nothing)(spot, map)
        notes = (*notes, *self._doubts(spot, map, laid, notes))
        return Explanation.of(question, self.method.name, laid.scores, notes=(*laid.notes, *notes), sense=sense,
                              map=spot.finest(map, how), caution=getattr(self.method, "caution", ""),
                              settings={**self._settings(spot, how), **found})

    def of_tokens(self, question: Question, rng: np.random.Generator) -> tuple[Floats, tuple[Any, ...], Floats]:
        """(a number a token, where each stands in the text, a number a part), of a text; special tokens stand nowhere."""
        spot, map, how = self._mapped(question, rng)
        scores = spot.lay(map, how).scores
        assert spot.cut is not None
        assert spot.cut.spans is not None  # else it could not have been laid
        return over_embedding(map, how), spot.cut.spans, scores

    def _mapped(self, question: Question, rng: np.random.Generator) -> tuple[Spot, Floats, str]:
        """Where it is taken, the map, and how that is pooled."""
        if self.pooling not in (None, *POOLINGS):
            raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, got {self.pooling!r}")
        spot = self._spot(question, rng)
        map = next(iter(self.method.maps(spot, spot.own)))
        if not np.isfinite(map).all():
            wrong = int((~np.isfinite(map)).sum())
            raise ValueError(f"{self.method.name} must give finite values, got {wrong} of {map.size} that are NaN or "
                             f"infinite; the gradients of {question.model.name} may be too large")
        return spot, map, self.pooling or self._usual(spot)

    def ahead(self, question: Question, rng: np.random.Generator) -> None:
        """Ask the model what must be asked in any case, before the target is known, in one pass that serves for both."""
        spot = self._spot(question, rng)
        getattr(self.method, "ahead", Spot.own_scores)(spot)

    def _spot(self, question: Question, rng: np.random.Generator) -> Spot:
        inner: Any = getattr(self.method, "method", self.method)  # of what smoothing smooths
        return Spot.of(question, self.method.name, self.explains, rng, getattr(inner, "of_places", False))

    def _doubts(self, spot: Spot, map: Floats, laid: Laid, notes: tuple[str, ...]) -> Iterator[str]:
        """What a reader would otherwise not notice."""
        same = hasattr(self.method, "baseline") and np.array_equal(spot.values, spot.baseline(self.method.baseline))
        if same:
            yield "Every value is 0, for the input is its own baseline; choose another baseline."
        elif not map.any() and not notes and self.method.name.partition("/")[0] != "grad_cam":
            known = spot.question.model.output == "logit" and self.explains == "logit"
            advice = "" if known else "explain what comes before a softmax or sigmoid (wt.model(net, output='logit')), or "
            yield (f"Every value is 0: where a model saturates, its gradients vanish; {advice}use a method that asks: lime, "
                   "kernel_shap, occlusion.")
        elif self.explains == "logit" and not hasattr(self.method, "baseline") and _squashed_unsaid(spot.question):
            yield ("The scores look like the end of a softmax or sigmoid, and this one is nearly certain: there gradients are "
                   "close to 0 and say little of what matters. Give the net without its last step, wt.model(net, "
                   "output='logit').")
        if spot.question.model.output == "logit" and are_shares(spot.question.memory.worked.get("own outputs")):
            yield ("What the model returns adds up to 1 already, as after a softmax, and output='logit' squashes it once more: "
                   "neither its probabilities nor its gradients are what they should be. Leave the net's softmax off, or say "
                   "output='probability'.")
        total = abs(float(map.sum()))
        if self.method.pooling == "sum" and abs(laid.outside) > 0.05 * total:
            share = f"{laid.outside / map.sum():.0%}" if 0 < laid.outside / (map.sum() or -1) <= 1 else f"{laid.outside:.2g}"
            most = " The words explain little of this prediction." if abs(laid.outside) > 0.5 * total else ""
            yield (f"{share} of a total of {map.sum():.2g} lies on tokens outside of the parts: special tokens and "
                   f"punctuation.{most}")

    def _usual(self, spot: Spot) -> str:
        in_words = spot.cut is not None and spot.cut.spans is not None
        return "signed_max" if in_words and self.method.pooling == "sum" else self.method.pooling

    def _settings(self, spot: Spot, how: str) -> dict[str, Any]:
        """How it was made, as plain data."""
        own: dict[str, Any] = {}
        inner: Any = self.method
        while inner is not None:
            own = {f.name: _plain(getattr(inner, f.name)) for f in fields(inner) if f.name != "method"} | own
            inner = getattr(inner, "method", None)
        own.pop("sigma" if own.get("sigma") is None else "noise", None)  # the one that was not used
        if "baseline" in own and own["baseline"] is None:
            own["baseline"] = spot.usual_baseline
        squashed = spot.question.model.output == "logit"
        return {"pooling": how, **({"explains": self.explains} if squashed else {}), **own}


@dataclass(frozen=True)
class Saliency:
    """How does the score move when a value of the input is raised a little? (Simonyan et al. 2014)

    The gradient itself, with its sign, or its absolute value; pooled by mean_abs, as it is by default, it has no sign in any
    case. It measures sensitivity, not contribution: a pixel may matter much and still have no slope.
    """

    absolute: bool = False
    name: ClassVar[str] = "saliency"
    pooling: ClassVar[str] = "mean_abs"
    caution: ClassVar[str] = ("A gradient is flat where the net saturates or a unit is off, however much the value matters, "
                              "and a little further on it may be quite another.")

    @property
    def sense(self) -> Sense:
        """Absolute values have lost for and against."""
        return "size" if self.absolute else "signed"

    def maps(self, spot: Spot, values: Floats) -> Iterator[Floats]:
        """Gradients."""
        return (np.abs(gradient) if self.absolute else gradient for gradient in spot.gradients(values))

    def ahead(self, spot: Spot) -> None:
        """All but the choice of a target."""
        spot.linearise()


@dataclass(frozen=True)
class InputXGradient:
    """How much of the score would a linear reading of the model give to each value? ("linear approximation", Wang & Wang 2022)

    Input times gradient: exact for a linear model without an intercept. A black pixel gets nothing, whatever it means.
    """

    name: ClassVar[str] = "input_x_gradient"
    pooling: ClassVar[str] = "sum"
    caution: ClassVar[str] = "A value of 0 gets nothing, whatever it means to the model."

    def maps(self, spot: Spot, values: Floats) -> Iterator[Floats]:
        """Values times gradients."""
        return (value * gradient for value, gradient in zip(values, spot.gradients(values), strict=True))

    def ahead(self, spot: Spot) -> None:
        """All but the choice of a target."""
        spot.linearise()


@dataclass(frozen=True)
class IntegratedGradients:
    """How much of the difference between a baseline's score and the input's is due to each value? (Sundararajan et al. 2017)

    Gradients are summed along the straight line from the baseline to the input, `steps` of them, by Gauss-Legendre quadrature
    or as the papers' right Riemann sum. With enough steps the map adds up to the difference (completeness); what is missing is
    reported as the completeness gap. The answer depends on the baseline, and values equal to the baseline's get nothing.
    """

    steps: int = 50
    baseline: Any = None
    quadrature: Literal["gauss_legendre", "riemann"] = "gauss_legendre"
    name: ClassVar[str] = "integrated_gradients"
    pooling: ClassVar[str] = "sum"
    caution: ClassVar[str] = "Another baseline is another question, and a value like the baseline's gets nothing."

    def __post_init__(self) -> None:
        """Refuse what is no number of steps, before any model call."""
        whole = isinstance(self.steps, int | np.integer) and not isinstance(self.steps, bool)
        if not whole or self.steps < 1:
            raise ValueError(f"steps must be a whole number >= 1, got {self.steps!r}")
        if self.quadrature not in ("gauss_legendre", "riemann"):
            raise ValueError(f"quadrature must be 'gauss_legendre' or 'riemann', got {self.quadrature!r}")

    @property
    def passes(self) -> int:
        """What a map takes."""
        return self.steps

    def maps(self, spot: Spot, values: Floats) -> Iterator[Floats]:
        """One after the other: each is `steps` gradients."""
        baseline, (places, weights) = spot.baseline(self.baseline), self._rule
        for value in values:
            change, total, step = value - baseline, np.zeros_like(baseline), np.empty_like(baseline)
            on_line = _Line(baseline, change, places.reshape(-1, *[1] * value.ndim))
            # Step by step, so that the sum does not depend on how many go through the model at once.
            for weight, (_, gradient) in zip(weights, spot.pulled(len(places), on_line), strict=True):
                total += np.multiply(gradient, weight, out=step)
            yield change * total

    @property
    def _rule(self) -> tuple[Floats, Floats]:
        """Places between 0 and 1, and their weights."""
        if self.quadrature == "riemann":
            return np.arange(1, self.steps + 1) / self.steps, np.full(self.steps, 1 / self.steps)
        places, weights = roots_legendre(self.steps)
        return (places + 1) / 2, weights / 2

    def account(self, spot: Spot, map: Floats) -> tuple[dict[str, Any], tuple[str, ...]]:
        """How far the map is from adding up to the difference between the two scores."""
        here, there = spot.of_target(spot.own_scores())[0], spot.scores(spot.baseline(self.baseline)[None])[0]
        gap, change = float(here - there - map.sum()), float(here - there)
        found = {"baseline_score": float(there), "completeness_gap": gap}
        if abs(gap) <= 0.05 * abs(change) or abs(gap) < 1e-9:
            return found, ()
        return found, (f"The map adds up to {map.sum():.4g}, and the scores of input and baseline differ by {change:.4g}: "
                       f"{abs(gap):.2g} is not accounted for. More steps than {self.steps} bring them closer.",)


@dataclass(frozen=True, eq=False)
class _Line:
    """Points on the way from a baseline to an input, made when they are asked for."""

    start: Floats
    change: Floats
    places: Floats

    def __call__(self, part: slice) -> Floats:
        points = self.places[part] * self.change
        points += self.start
        return points


@dataclass(frozen=True)
class GuidedBackprop:
    """Which values raise the score by way of units that are on, counting only what raises them? (Springenberg et al. 2015)

    Backwards through every ReLU, negative gradients are dropped. The maps are sharp and look right, and change little when a
    net's upper layers are replaced by random ones (Adebayo et al. 2018): sharpness is no evidence.
    """

    name: ClassVar[str] = "guided_backprop"
    pooling: ClassVar[str] = "mean_abs"
    caution: ClassVar[str] = ("It draws edges of the input, and depends little on the net's upper layers: sharpness is no "
                              "evidence.")
    rule: ClassVar[str] = "guided"

    def maps(self, spot: Spot, values: Floats) -> Iterator[Floats]:
        """Gradients by the rule."""
        return spot.ruled(self.rule).gradients(values)

    def ahead(self, spot: Spot) -> None:
        """All but the choice of a target."""
        spot.ruled(self.rule).linearise()


@dataclass(frozen=True)
class DeconvNet(GuidedBackprop):
    """Which values does the net, run backwards, draw when asked for the target? (Zeiler & Fergus 2014)

    Backwards through every ReLU, negative gradients are dropped, whether the unit was on or not. Like guided backpropagation
    it draws the input more than the model's reasons.
    """

    name: ClassVar[str] = "deconvnet"
    rule: ClassVar[str] = "deconvnet"


@dataclass(frozen=True)
class ExcitationBackprop(GuidedBackprop):
    """How likely is each value to have won, if from the target down every unit picks one of those that excite it?

    A probability that is passed down in proportion to activation times positive weight (Zhang et al. 2018); it adds up to 1.
    What inhibits the target has no place in it.
    """

    name: ClassVar[str] = "excitation_backprop"
    pooling: ClassVar[str] = "sum"
    sense: ClassVar[Sense] = "for"
    caution: ClassVar[str] = "It knows nothing of what inhibits the target."
    rule: ClassVar[str] = "excitation"
    of_places: ClassVar[bool] = True  # a probability is handed down, not pulled back

    def maps(self, spot: Spot, values: Floats) -> Iterator[Floats]:
        """Probabilities; a class that has no output of its own has none to pass down."""
        for map in super().maps(spot, values):
            if map.min(initial=0) < -1e-9 * np.abs(map).max(initial=0):
                raise ValueError("excitation_backprop passes down the probability of one of the net's own outputs, and this "
                                 "target's score is made from others' (a softmax, 1 − p or −z); explain the logit "
                                 "(explains='logit'), and of a net with one output the second class")
            yield map


def _squashed_unsaid(question: Question) -> bool:
    """Does a model that does not say what it returns return shares of 1, nearly all of it in one class?"""
    return question.model.output is None and are_shares(question.original) and question.original.max() > CERTAIN


def _nothing(spot: Spot, map: Floats) -> tuple[dict[str, Any], tuple[str, ...]]:
    return {}, ()


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, list | tuple | np.ndarray) and np.size(value) <= FEW:
        return np.asarray(value).tolist()
    return value if isinstance(value, str | int | float | bool | None) else f"{type(value).__name__} {np.shape(value)}"
