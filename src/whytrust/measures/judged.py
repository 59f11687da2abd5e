"""One explanation before a metric, and what every metric says of itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel
from whytrust.core import Floats, Masks
from whytrust.measures.annotations import mask_of
from whytrust.measures.case import Case
from whytrust.question import Question

Goal = Literal["contribution", "sensitivity", "ranking"]
Kind = Literal["alignment", "performance"]
Aspect = Literal["faithfulness", "plausibility"]
ANY: tuple[Goal, ...] = get_args(Goal)
GOALS: Mapping[str, tuple[Goal, ...]] = {"contribution": ("contribution", "ranking"), "sensitivity": ("sensitivity", "ranking"),
                                         "ranking": ("ranking",), "nothing": ANY}
"""What an explanation means -> the goals it can be judged by. An order can be made of any scores; amounts cannot be made of an
order, nor a contribution of a slope. A baseline means nothing and may stand beside everything."""
INSIST = "pass insist=True to have its number all the same"
REMEMBERED = 1 << 23
"""Bytes of masks of one walk that are remembered, so that other metrics need not ask again; longer walks are not."""


@dataclass(frozen=True)
class About:
    """What a metric says of itself.

    `higher`: is a larger value better? `goals` are what it can judge: how much of a prediction is due to a part, how it moves
    with a part, which parts come first. `kind` is what explanations are held against (Wang & Wang 2022): "performance" is the
    model, asked about changed inputs or changed itself; "alignment" is something given that knows nothing of the model, an
    annotation or an expectation. So alignment speaks of `plausibility`, of what people find likely, and a model with other
    reasons than theirs makes a faithful explanation lose.
    """

    name: str
    words: str
    higher: bool
    goals: tuple[Goal, ...]
    kind: Kind
    aspect: Aspect
    paper: str
    needs: tuple[str, ...] = ()  # of NEEDS
    domains: tuple[str, ...] = ("image", "text", "audio", "tabular")
    amounts: bool = False  # are scores read as amounts, so that their unit counts?
    own_baseline: bool = False  # does it hide parts behind something of its own, whatever the question says?
    share: bool = False  # is its number a share, from 0 to 1?
    within: tuple[float | None, float | None] = (None, None)  # the range of its number, where None is no bound
    of_probability: tuple[float, float] | None = None  # the range where the model's score is a probability
    shown: float = 0.5  # how many other parts are shown, on average, where it asks what hiding one does

    def bounds(self, probability: bool) -> tuple[float | None, float | None]:
        """The least and the largest number that is possible, None where there is no bound."""
        return (0.0, 1.0) if self.share else self.of_probability if probability and self.of_probability else self.within

    @property
    def hides(self) -> bool:
        """Does it hide parts behind what the question says, so that this counts?"""
        return not self.needs and not self.own_baseline

    @property
    def of_change(self) -> bool:
        """Is it about an input that was changed until the model changed its mind?"""
        return "case" in self.needs


NEEDS = {"truth": "truth=, which places an annotation says matter: a mask shaped like the explanation's map, or boxes, words, "
                  "spans, seconds or columns",
         "explain": "explain=, the explainer itself, for it explains other questions too",
         "case": "clean=, the input before it was changed, of which the model says something else",
         "untrained": "untrained=, the same model before it was trained",
         "relabelled": "relabelled=, the same model trained on shuffled labels",
         "train": "a function that trains: it judges data sets, wt.roar(train, model, learnt, tested)"}
"""What some metrics need beyond scores, and how to give it."""


@dataclass(frozen=True, eq=False)
class Judged:
    """One explanation before a metric: the question that it answers, and its scores, one a part.

    Explanations of one input that are made from each other with `with_scores` share what the model has answered. `truth` is
    a mask shaped like the input as a reader knows it (pixels, characters, cells or samples, columns), or what `annotations`
    makes one of. `label` is the label that an accuracy is reckoned by, the model's own where none is given. `asked` is the
    question that the explainer answered, where metrics are to hide parts behind something else than it did. `case` is the input
    beside what it was before it was changed. `unit` is "logit" where scores speak of that and the model's score is a
    probability.
    """

    question: Question
    scores: Floats
    goal: str = "contribution"
    truth: Any = None  # of an annotation
    explain: Callable[[Question], Floats] | None = None  # the same bits for the same question
    untrained: CheckedModel | None = None
    relabelled: CheckedModel | None = None
    label: int | None = None
    asked: Question | None = None
    case: Case | None = None
    unit: str = ""  # of the scores, where it is not the unit of the model's score
    own: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Watch every class, and refuse scores that are not of these parts."""
        question, classes = self.question, len(self.question.original)
        if len(question.memory.watched) < classes:
            question = question.watching(range(classes))[question.target]
        values = np.array(self.scores, dtype=np.float64)
        if values.shape != (question.d,) or not np.isfinite(values).all():
            raise ValueError(f"scores must be finite numbers, one a part: expected ({question.d},), got {values.shape}"
                             f"{'' if np.isfinite(values).all() else ' with NaN or infinite ones'}")
        if self.goal not in GOALS:
            raise ValueError(f"goal must be one of {', '.join(GOALS)}, got {self.goal!r}")
        values.flags.writeable = False  # several metrics look at them
        told = self.label is not None
        own = self.label if told else 0 if classes == 1 else int(question.model.labels(question.original[None])[0])
        for name, value in (("question", question), ("scores", values), ("own", own), ("truth", self._checked_truth())):
            object.__setattr__(self, name, value)

    def _checked_truth(self) -> NDArray[np.bool_] | None:
        if self.truth is None:
            return None
        view = self.question.parts.view
        return mask_of(self.truth, view, view.spread(np.zeros(self.question.d)).shape)

    def with_scores(self, scores: Floats, goal: str | None = None, **more: Any) -> Judged:
        """Another explanation of the same question."""
        return replace(self, scores=scores, goal=self.goal if goal is None else goal, **more)

    @property
    def d(self) -> int:
        """The number of parts."""
        return self.question.d

    @property
    def map(self) -> Floats:
        """The scores laid over the input as a reader knows it."""
        return self.question.parts.view.spread(self.scores)

    @property
    def places(self) -> NDArray[np.bool_]:
        """Which places of the input belong to a part; between the words of a text there are some that do not."""
        return np.asarray(self.question.parts.view.spread(np.ones(self.d)) > 0)

    @property
    def whole(self) -> float:
        """The target's score of the input itself."""
        return float(self.question.original[self.question.target])

    def drops(self, masks: Masks, rng: np.random.Generator) -> Floats:
        """By how much the target's score falls when only the parts of each mask are shown."""
        return self.whole - self.question.score(masks, rng)

    def walked(self, rank: NDArray[np.intp], hidden: NDArray[np.intp], rng: np.random.Generator,
               least: bool = False) -> tuple[Floats, NDArray[np.bool_]]:
        """(target's scores, whether the label is kept) with so many parts hidden, those of the lowest rank first.

        With `least` so many are shown instead, and the others hidden. Memory does not grow with the number of steps.
        """
        def masks(part: slice) -> Masks:
            first = rank[None] < hidden[part, None]
            return np.asarray(first if least else ~first)

        if len(hidden) * self.d <= REMEMBERED:
            return self._told(self.question.answers(masks(slice(None)), rng))
        scores, kept = np.empty(len(hidden)), np.empty(len(hidden), bool)
        for part, answers in self.question.passing(len(hidden), masks, rng):
            scores[part], kept[part] = self._told(answers)
        return scores, kept

    def labelled(self, name: str) -> None:
        """Refuse a metric that watches labels where the model has none."""
        if len(self.question.original) < 2:
            raise ValueError(f"{name} watches the label, and {self.question.model.name} has one output and none; watch the "
                             "score, or pass threshold=0.5 to wt.model")

    def keeps(self, answers: Floats) -> NDArray[np.bool_]:
        """Whether the label is kept; a model of one output has none to lose."""
        labels = self.question.model.labels(answers) if answers.shape[1] > 1 else np.full(len(answers), self.own)
        return np.asarray(labels == self.own)

    def _told(self, answers: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        return answers[:, self.question.target], self.keeps(answers)


class Metric(Protocol):
    """(judged, rng) -> one number, NaN where it is not defined for that input; a frozen dataclass that says what it is."""

    @property
    def about(self) -> About:
        """What it is."""
        ...

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """How good is this explanation?"""
        ...


def incompatible(about: About, goal: str, domain: str) -> str | None:
    """Why this metric cannot judge what such scores mean, in a few words; None where it can."""
    if domain not in about.domains:
        return f"{about.name} is for {' and '.join(about.domains)} inputs, and these are {domain} inputs"
    if not set(GOALS[goal]) & set(about.goals):
        meant = {"sensitivity": "how the prediction moves with a part", "ranking": "which parts come first, and not how much",
                 "contribution": "how much of the prediction is due to a part"}[goal]
        return f"{about.name} judges {' or '.join(about.goals)}, and these scores say {meant} ({goal})"
    return None


def other_unit(about: About, unit: str) -> str | None:
    """Why amounts in this unit cannot be held against the model's score; None where they can."""
    if not about.amounts or not unit:
        return None
    return (f"{about.name} reads scores as amounts of the model's score, a probability, and these are amounts of the {unit}; "
            "pass explains='score' to the method")


def lacking(about: About, judged: Judged) -> str | None:
    """What this metric needs and was not given; None where it has all."""
    missing = [need for need in about.needs if getattr(judged, need, None) is None]
    return f"{about.name} needs {NEEDS[missing[0]]}" if missing else None


def judge(metric: Metric, judged: Judged, rng: np.random.Generator, insist: bool = False) -> float:
    """The metric's number for one explanation; what it cannot judge is refused with the reason, unless the user insists.

    What a metric needs cannot be insisted on.
    """
    about = checked_about(metric)
    reason = lacking(about, judged)
    if reason is None and not insist:
        reason = incompatible(about, judged.goal, judged.question.parts.domain) or other_unit(about, judged.unit)
        reason = reason and f"{reason}; {INSIST}"
    if reason:
        raise ValueError(reason)
    found: Any = metric(judged, rng)
    if isinstance(found, str) or np.ndim(found) != 0:
        raise TypeError(f"a metric must return one number for one explanation, and {about.name} returned "
                        f"{f'an array of shape {np.shape(found)}' if np.ndim(found) else repr(found)[:40]}")
    value = float(found)
    if about.share and not (math.isnan(value) or -1e-9 <= value <= 1 + 1e-9):
        raise ValueError(f"{about.name} says that its number is a share (share=True), from 0 to 1, and it is {value:g}")
    return value if math.isfinite(value) else math.nan


def checked_about(metric: Any) -> About:
    """What a metric says of itself, or one clear error where it says nothing, or what nobody understands."""
    about = getattr(metric, "about", None)
    if not isinstance(about, About):
        raise TypeError(f"a metric must say what it is, about = About(name, words, higher, goals, kind, aspect, paper) of "
                        f"whytrust.measures.judged, got {type(metric).__name__} with about {about!r:.40}")
    for what, given, known in (("goals", about.goals, ANY), ("kind", (about.kind,), get_args(Kind)),
                               ("aspect", (about.aspect,), get_args(Aspect)), ("needs", about.needs, NEEDS)):
        wrong = [one for one in given if one not in known] if isinstance(given, tuple) else [given]
        if wrong or (not given and what == "goals"):
            raise ValueError(f"{what} of {about.name} must be among {', '.join(known)}, in a tuple where there are several, "
                             f"got {given!r:.60}")
    return about
