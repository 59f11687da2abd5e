"""Greedy removal: take away what matters most, and again, until the model changes its mind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from whytrust.core import Floats, Masks
from whytrust.explanation import Explanation
from whytrust.question import Question

AT_ONCE = 1 << 22
"""Bytes of masks that are asked about at once: a long text has many words, and as many masks at every step."""
CAUTION = ("It looks one step ahead: of two equal reasons neither lowers the score when hidden alone, so both are passed over, "
           "and what it removes instead matters less.")


@dataclass(frozen=True)
class Greedy:
    """Which parts, removed one after the other, make the model change its mind soonest?

    At every step the part is removed whose hiding lowers the target's score most (the earlier one of equals), until the model
    no longer decides for the target, or `features` parts are gone: the rival of LIME in Ribeiro et al. (2016), after Martens &
    Provost (2014). With `stop="never"` it removes `features` parts whatever the model says. A removed part's score is how much
    the target's score fell at its step, so the scores of all removed parts add up to the whole fall; parts that were never
    removed score 0. `settings["removed"]` has the removed parts in their order.

    It misleads where parts stand in for each other: of two equal reasons neither lowers the score alone, so it passes over both
    and removes what hardly matters. What a part scores depends on what was removed before it, and a part that was removed late,
    or not at all, may matter as much as the first.
    """

    features: int | Literal["all"] | None = 10
    """How many parts may be removed; "all" or None is every part."""
    stop: Literal["label", "never"] = "label"
    repeats: int = 25
    """How often to draw each set of hidden parts where the fill draws at random; fixed fills are asked once."""

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        most(self.features)
        if self.stop not in ("label", "never"):
            raise ValueError(f"stop must be 'label' (once the model decides otherwise) or 'never' (after `features` parts), "
                             f"got {self.stop!r}")
        if not isinstance(self.repeats, int | np.integer) or isinstance(self.repeats, bool) or self.repeats < 1:
            raise ValueError(f"repeats must be a whole number >= 1, got {self.repeats!r}")

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """d model calls for the first step, d − 1 for the second and so on; as many times `repeats` with a random fill.

        Where the target's score does not say what the model decides (more than two classes), one more a step.
        """
        decides = _decides(question)
        until_flip = self.stop == "label" and decides is True
        limit = min(most(self.features) or question.d, question.d)
        path = _Path(float(question.original[question.target]))
        shown, flipped = np.ones(question.d, dtype=bool), False
        while len(path.removed) < limit and not (flipped and until_flip):
            part, score = self._best(question, shown, rng)
            shown[part] = False
            path.add(part, score)
            # Asked even where it decides nothing: a reader wants to know whether the removed parts are enough.
            flipped = flipped or (decides is True and not self._stays(question, shown, score, rng))
        scores = np.zeros(question.d)
        if not question.unmoved(path.falls, rng):
            scores[path.removed] = path.falls
        return Explanation.of(
            question, "greedy", scores, selected=~shown, caution=CAUTION,
            notes=tuple(self._notes(question, path, decides, flipped)),
            settings={"features": limit, "stop": self.stop, "removed": path.removed, "scores": path.scores,
                      "changed_its_mind": flipped, **({} if question.parts.deterministic else {"repeats": self.repeats})})

    def _best(self, question: Question, shown: Masks, rng: np.random.Generator) -> tuple[int, float]:
        """The part whose hiding, on top of what is hidden already, leaves the least score; and that score."""
        left = np.flatnonzero(shown)
        times = 1 if question.parts.deterministic else self.repeats
        step = max(AT_ONCE // (question.d * times), 1)
        found = np.concatenate([self._asked(question, shown, left[start:start + step], times, rng)
                                for start in range(0, len(left), step)])
        best = int(np.argmin(found))
        return int(left[best]), float(found[best])

    @staticmethod
    def _asked(question: Question, shown: Masks, parts: Any, times: int, rng: np.random.Generator) -> Floats:
        masks = np.repeat(shown[None], len(parts), axis=0)
        masks[np.arange(len(parts)), parts] = False
        answers = question.score(np.repeat(masks, times, axis=0), rng)
        return np.asarray(answers.reshape(len(parts), times).mean(axis=1))

    def _stays(self, question: Question, shown: Masks, score: float, rng: np.random.Generator) -> bool:
        """Does the model still decide for the target, with only these parts shown?"""
        original, model = question.original, question.model
        if len(original) == 2 and original.min() >= 0 and abs(original.sum() - 1) <= 1e-6:
            both = [1 - score, score] if question.target == 1 else [score, 1 - score]  # nothing more need be asked
            return int(model.labels(np.array([both]))[0]) == question.target
        masks = np.repeat(shown[None], 1 if question.parts.deterministic else self.repeats, axis=0)
        step = question.batch_size or len(masks)
        scores = np.vstack([model(question.parts.compose(masks[start:start + step], rng))
                            for start in range(0, len(masks), step)])
        question.count(len(masks))
        return int(model.labels(scores.mean(axis=0, keepdims=True))[0]) == question.target

    def _notes(self, question: Question, path: _Path, decides: bool | None, flipped: bool) -> Iterator[str]:
        name, removed = question.model.class_name(question.target, len(question.original)), len(path.removed)
        gone = "every part is gone" if removed == question.d else f"{removed} part{' is' if removed == 1 else 's are'} gone"
        if decides is None and self.stop == "label":
            yield (f"The model has one output and so no label that could change: {removed} parts were removed, whether they "
                   "matter or not.")
        elif decides is False:
            yield (f"The model does not decide for {name} to begin with, so there was no decision to undo: {removed} parts "
                   "were removed, whether they matter or not.")
        elif decides and not flipped:
            yield f"The model still says {name} when {gone}: its decision does not hang on these, or not on these alone."
        if path.falls[0] <= 0:
            yield ("No part lowers the score when it alone is hidden: either nothing here speaks for the target, or several "
                   "parts do that stand in for each other, which this method cannot see.")


@dataclass
class _Path:
    """What was removed so far, and the score before and after each removal."""

    start: float
    removed: list[int] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)

    def add(self, part: int, score: float) -> None:
        self.removed.append(part)
        self.scores.append(score)

    @property
    def falls(self) -> Floats:
        """How much the score fell at each removal."""
        values = np.array([self.start, *self.scores])
        return np.asarray(values[:-1] - values[1:])


def most(features: Any) -> int | None:
    """How many parts an explanation may have at most; None where it may have all."""
    if features is None or (isinstance(features, str) and features == "all"):
        return None
    if not isinstance(features, int | np.integer) or isinstance(features, bool) or features < 1:
        raise ValueError(f"features must be a whole number >= 1, or 'all', got {features!r}")
    return int(features)


def _decides(question: Question) -> bool | None:
    """Does the model decide for the target? None where it has one output, which decides nothing."""
    scores = question.original
    return None if len(scores) == 1 else int(question.model.labels(scores[None])[0]) == question.target
