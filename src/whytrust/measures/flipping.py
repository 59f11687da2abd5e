"""Metrics that hide parts in the order of an explanation, or show them, and watch the model: pixel flipping and its kin.

They use the order of the scores alone, so they judge any scores. All of them take the parts to matter one by one, which only
an additive model's do, and hide them behind a fill that the model was never trained on. So they judge the fill, and how
scattered the parts lie, along with the explanation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special

from whytrust.core import Floats
from whytrust.measures.case import ranked
from whytrust.measures.judged import About, Judged

STEPS = 100
"""Steps of a walk, where there are as many parts."""
FALL = (-1.0, 1.0)
"""The range of a fall of a probability."""


def counts(d: int, steps: int, share: float = 1.0) -> NDArray[np.intp]:
    """How many of d parts are hidden at each step: evenly spread, each number once, the last the share asked for."""
    last = max(round(share * d), 1)
    return np.unique(np.rint(np.linspace(0, last, min(steps, last) + 1)).astype(np.intp))[1:]


def ranks(scores: Floats, rng: np.random.Generator, most: bool = True) -> NDArray[np.intp]:
    """The place of each part in the order of the scores, the largest (or least) first; equal ones in random order."""
    order = ranked(scores if most else -scores, rng)
    places = np.empty(len(order), dtype=np.intp)
    places[order] = np.arange(len(order))
    return places


@dataclass(frozen=True)
class Curve:
    """A walk: the share of parts that are hidden (or shown) at each step, the target's score, and whether the label is kept."""

    shares: Floats
    scores: Floats
    kept: NDArray[np.bool_]


def walk(judged: Judged, rng: np.random.Generator, steps: int, share: float = 1.0, most: bool = True,
         inserting: bool = False) -> Curve:
    """From the input itself part by part to nothing; when inserting, from nothing to the input."""
    hidden = counts(judged.d, steps, share)
    scores, kept = judged.walked(ranks(judged.scores, rng, most), np.concatenate([[0], hidden]), rng, inserting)
    return Curve(np.concatenate([[0], hidden]) / judged.d, scores, kept)


@dataclass(frozen=True)
class PixelFlipping:
    """How far does the target's score fall while parts are hidden, the most important first? (Bach 2015, Samek et al. 2016)

    The mean fall over all steps, the input itself among them (the area over the curve), up to a `share` of the parts; with
    order="least" the least important first, where a small fall is better. With indicator="accuracy" the fall is that of the
    label: 0 while it is kept, 1 where it is lost; not defined where it is wrong from the start. An explanation of one class
    does not know what else may win, so even for a linear model the best order need not lose the label soonest (Wang & Wang
    2022, appendix E).

    For additive models the true contributions have the largest value there is. For others it misleads: scattered pixels hurt
    a net more than the same number that adjoin, whatever they show, and the fill is seen, too.
    """

    order: Literal["most", "least"] = "most"
    indicator: Literal["score", "accuracy"] = "score"
    steps: int = STEPS
    share: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no walk."""
        if self.order not in ("most", "least") or self.indicator not in ("score", "accuracy"):
            raise ValueError("order must be most or least (relevant first) and indicator score or accuracy, got "
                             f"{self.order!r} and {self.indicator!r}")
        check_walk(self.steps, self.share)

    @cached_property
    def about(self) -> About:
        """What it is; the least relevant first turns the direction round."""
        name = "pixel_flipping" + "/least" * (self.order == "least") + "/accuracy" * (self.indicator == "accuracy")
        what = "the target's score falls" if self.indicator == "score" else "the label is lost"
        return About(name, f"how soon {what} while parts are hidden, the {self.order} important first", self.order == "most",
                     ("ranking",), "performance", "faithfulness", "Samek et al. 2016", share=self.indicator == "accuracy",
                     of_probability=FALL)

    def curve(self, judged: Judged, rng: np.random.Generator) -> Curve:
        """The walk itself."""
        return walk(judged, rng, self.steps, self.share, self.order == "most")

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The mean fall."""
        if self.indicator == "score":
            return float(np.mean(judged.whole - self.curve(judged, rng).scores))
        judged.labelled(self.about.name)
        kept = self.curve(judged, rng).kept
        return float(np.mean(~kept)) if kept[0] else math.nan


@dataclass(frozen=True)
class Deletion:
    """What is the area under the target's score while parts are hidden, the most important first? (Petsiuk et al. 2018)

    Smaller is better. It is pixel flipping to the last part, read as an area; the score of the empty input counts in it.
    """

    steps: int = STEPS
    about: ClassVar[About] = About(
        "deletion", "the area under the target's score while parts are hidden, the most important first", False,
        ("ranking",), "performance", "faithfulness", "Petsiuk et al. 2018", of_probability=(0.0, 1.0))

    def __post_init__(self) -> None:
        """Refuse what is no walk."""
        check_walk(self.steps)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The area, by trapezoids."""
        return under(walk(judged, rng, self.steps))


@dataclass(frozen=True)
class Insertion:
    """What is the area under the target's score while parts are shown, the most important first? (Petsiuk et al. 2018)

    Larger is better. It begins with the fill alone, so a fill that hides nothing (a blur too weak) makes everything good.
    """

    steps: int = STEPS
    about: ClassVar[About] = About(
        "insertion", "the area under the target's score while parts are shown, the most important first", True,
        ("ranking",), "performance", "faithfulness", "Petsiuk et al. 2018", of_probability=(0.0, 1.0))

    def __post_init__(self) -> None:
        """Refuse what is no walk."""
        check_walk(self.steps)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The area, by trapezoids."""
        return under(walk(judged, rng, self.steps, inserting=True))


@dataclass(frozen=True)
class TopKAblation:
    """How far does the target's score fall when the k most important parts are hidden at once? (Sturmfels et al. 2020)

    `k` is a number of parts, or a share of them (at least one part). One point of pixel flipping's curve: what comes after the
    first k does not count.
    """

    k: float = 0.1
    about: ClassVar[About] = About(
        "top_k_ablation", "how far the target's score falls when the k most important parts are hidden", True,
        ("ranking",), "performance", "faithfulness", "Sturmfels et al. 2020", of_probability=FALL)

    def __post_init__(self) -> None:
        """Refuse what is neither a number of parts nor a share of them."""
        check_k(self.k)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The fall."""
        scores, _ = judged.walked(ranks(judged.scores, rng), np.array([as_many(self.k, judged.d)]), rng)
        return float(judged.whole - scores[0])


@dataclass(frozen=True)
class WordDeletion:
    """How often is the label kept while up to `most` words are taken out, the most important first? (Arras et al. 2016)

    Smaller is better; not defined where the model is wrong from the start (a label is given, and it is another). The accuracy
    is its indicator, with the flaw of that: see PixelFlipping.
    """

    most: int = 10
    about: ClassVar[About] = About(
        "word_deletion", "how often the label is kept while words are taken out, the most important first", False,
        ("ranking",), "performance", "faithfulness", "Arras et al. 2016", domains=("text",), share=True)

    def __post_init__(self) -> None:
        """Refuse what is no number of words."""
        check_whole("most", self.most)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The share of numbers of words, from 1, after which the label is still there."""
        judged.labelled(self.about.name)
        hidden = np.arange(min(self.most, judged.d) + 1)
        _, kept = judged.walked(ranks(judged.scores, rng), hidden, rng)
        return float(kept[1:].mean()) if kept[0] else math.nan


@dataclass(frozen=True)
class ImpactScore:
    """Does hiding the most important parts change the label, or halve the confidence? (Lin et al. 2019)

    1 or 0; the mean over inputs is the impact score. `k` is a number of parts or a share of them. The confidence is the
    target's probability: scores of several classes that are none are made into some (softmax). Not defined where the model is
    wrong from the start, nor where a single score is negative, and so no confidence.
    """

    k: float = 0.1
    left: float = 0.5  # of the confidence, or less
    about: ClassVar[About] = About(
        "impact_score", "whether hiding the most important parts changes the label or halves the confidence", True,
        ("ranking",), "performance", "faithfulness", "Lin et al. 2019", share=True)

    def __post_init__(self) -> None:
        """Refuse what is neither a number of parts nor a share of them."""
        check_k(self.k)
        if not 0 <= self.left < 1:
            raise ValueError(f"left must be the share of the confidence that is left, from 0 to below 1, got {self.left!r}")

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """1 where it does."""
        rank = ranks(judged.scores, rng)
        masks = np.stack([np.ones(judged.d, dtype=bool), rank >= as_many(self.k, judged.d)])
        answers = judged.question.answers(masks, rng)
        kept, (before, after) = judged.keeps(answers), confidences(answers)[:, judged.question.target]
        if not kept.all():
            return 1.0 if kept[0] else math.nan
        return float(after <= self.left * before) if before > 0 else math.nan


@dataclass(frozen=True)
class Comprehensiveness:
    """How far does the target's score fall without the most important parts, over several shares? (DeYoung et al. 2020)

    The mean fall over `shares` of the parts, each rounded up. Larger is better.
    """

    shares: tuple[float, ...] = (0.01, 0.05, 0.1, 0.2, 0.5)
    about: ClassVar[About] = About(
        "comprehensiveness", "how far the target's score falls without the most important parts", True,
        ("ranking",), "performance", "faithfulness", "DeYoung et al. 2020", of_probability=FALL)
    shown: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse what are no shares."""
        if not isinstance(self.shares, tuple) or not self.shares or not all(0 < share <= 1 for share in self.shares):
            raise ValueError(f"shares must be a tuple of one or more numbers above 0 and up to 1, got {self.shares!r}")

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The mean fall."""
        ks = np.array([max(math.ceil(share * judged.d - 1e-9), 1) for share in self.shares])
        scores, _ = judged.walked(ranks(judged.scores, rng), ks, rng, self.shown)
        return float(np.mean(judged.whole - scores))


@dataclass(frozen=True)
class Sufficiency(Comprehensiveness):
    """How far does the target's score fall when only the most important parts are left? (DeYoung et al. 2020)

    Smaller is better, and below 0 where the rest spoke against the target.
    """

    about: ClassVar[About] = About(
        "sufficiency", "how far the target's score falls when only the most important parts are left", False,
        ("ranking",), "performance", "faithfulness", "DeYoung et al. 2020", of_probability=FALL)
    shown: ClassVar[bool] = True


def confidences(answers: Floats) -> Floats:
    """(n, classes) probabilities: as they are where rows add up to 1, else their softmax; a single score stays as it is."""
    if answers.shape[1] < 2 or (bool((answers >= 0).all()) and np.allclose(answers.sum(axis=1), 1, atol=1e-4)):
        return answers
    return np.asarray(special.softmax(answers, axis=1))


def under(curve: Curve) -> float:
    """The area under a curve over all shares from 0 to 1."""
    return float(np.trapezoid(curve.scores, curve.shares))


def as_many(k: float, d: int) -> int:
    """A number of parts, or a share of d of them, as a number from 1 to d."""
    return min(max(round(k if k >= 1 and isinstance(k, int) else k * d), 1), d)


def check_walk(steps: Any, share: float = 1.0) -> None:
    """Refuse what is no number of steps, or no share of the parts."""
    check_whole("steps", steps)
    if not 0 < share <= 1:
        raise ValueError(f"share must be the share of the parts that are hidden at last, above 0 and up to 1, got {share!r}")


def check_whole(name: str, value: Any) -> None:
    """Refuse what is no whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")


def check_k(k: Any) -> None:
    """Refuse what is neither a number of parts nor a share of them."""
    whole = isinstance(k, int) and not isinstance(k, bool) and k >= 1
    if not whole and not (isinstance(k, float) and 0 < k <= 1):
        raise ValueError(f"k must be a whole number of parts, from 1, or a share of them, above 0 and up to 1.0, got {k!r}")
