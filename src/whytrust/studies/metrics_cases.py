"""What each metric says of true, spoilt and random explanations of one input of the lab.

Numbers alone: what they prove is said by `metrics_findings`. All contenders of a case are judged with the same draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import ndimage

from whytrust.checked import CheckedModel
from whytrust.core import Floats, LayeredParts, generator
from whytrust.lab import Lab, corrupted, other_weights, shifted
from whytrust.measures.case import Case
from whytrust.measures.judged import Judged, Metric, incompatible, judge
from whytrust.question import Memory, Question
from whytrust.studies.described import homemade, told
from whytrust.studies.judged_cases import hidden

GRADES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How much of the truth is dealt out anew, from the truth itself to a random order of the same numbers."""
SCALE, CONSTANT = 7.3, 5.0
"""What scores are multiplied by, and what is added to every class, to see whether a metric minds."""
SMOOTH = 1.5
"""The width, in pixels, of what makes a random order a smooth one."""
TRIES, APART = 20, 100_000
"""Inputs that are changed, one after the other, until the model changes its mind; how far apart their numbers are."""
FIELDS = 4
"""Random orders of each kind for each input."""
Values = dict[str, list[float | None]]


@dataclass(frozen=True)
class LabCase:
    """One input of one lab before every metric."""

    lab: Lab
    case: int
    metrics: Sequence[Metric]
    seed: int = 0
    cut: str | None = None  # other than the lab's own
    changed: bool = False  # are the inputs adversaries, as the trials need them?
    shown: float = 0.5  # of the other parts, where it is asked what a part contributes

    def record(self) -> dict[str, Any]:
        """Every number, as plain data; a metric that fails on this input is told with its error.

        The adversarial trials are asked about an input that was changed until the model changed its mind, the other metrics
        about one as it is. The truth that a trial must find is its own: what the change of each part did for the new label
        and against the old one. "asked" shows it the truth that explainers are asked for, which is another.
        """
        groups: dict[tuple[bool, float], list[Metric]] = {}
        for metric in self.metrics:
            groups.setdefault((metric.about.of_change, metric.about.shown), []).append(metric)
        return _merged([replace(self, metrics=some, changed=changed, shown=shown)._record()
                        for (changed, shown), some in groups.items()])

    def _record(self) -> dict[str, Any]:
        errors: dict[str, str] = {}
        found: dict[str, Any] = {"order": self._graded(None, errors), "opposite": self._opposite(errors)}
        others = self.lab.baselines[1:]
        found["baseline"] = {baseline: self._graded(baseline, errors, hiding=True) for baseline in others}
        found["same"] = {baseline: self._same(baseline, errors) for baseline in others}
        found["scale"] = self._graded(None, errors, scale=SCALE)
        found["constant"] = self._graded(None, errors, constant=CONSTANT)
        found["shared"] = self._shared(errors)
        found["asked"] = self._graded(None, errors, asked=True) if self.changed and self.lab.exact else {}
        found["isolation"] = self._isolation(errors)
        return {**found, "errors": errors}

    def _graded(self, baseline: str | None, errors: dict[str, str], hiding: bool = False, scale: float = 1.0,
                constant: float = 0.0, asked: bool = False) -> Values:
        """By metric, the value of each grade of the truth."""
        if hiding and not any(metric.about.hides for metric in self.metrics):
            return {}
        judged, truth = self._judged(self.lab, baseline, constant), self.lab.truth if asked else None
        contenders = [self._contender(judged, self._spoiler(grade, scale), truth) for grade in GRADES]
        return self._values(contenders, errors, hiding)

    def _opposite(self, errors: dict[str, str]) -> Values:
        """By metric, the value of the truth, and of its opposite."""
        judged = self._judged(self.lab, None)
        return self._values([self._contender(judged, _itself), self._contender(judged, np.negative)], errors)

    def _same(self, baseline: str, errors: dict[str, str]) -> Values:
        """By metric, the values of the usual contenders, the truth behind the usual baseline among them, behind another."""
        if not any(metric.about.hides for metric in self.metrics):
            return {}
        usual, judged = self._judged(self.lab, None), self._judged(self.lab, baseline)
        truth = self.lab.truth(usual.question, self.shown)
        contenders = [judged.with_scores(self._spoiler(grade, 1.0)(truth)) for grade in GRADES]
        return self._values(contenders, errors, hiding=True)

    def _shared(self, errors: dict[str, str]) -> Values:
        """By metric, of the model that adds the same to every class: the value of its truth, and of the truth without that."""
        if self.lab.shared or self.changed:
            return {}  # what all classes have more of turns no label, so it is no cause of a change
        other = shifted(self.lab)
        # What all classes share was learnt, too: the model before its training does not have it.
        judged = replace(self._judged(other, None), untrained=other_weights(self.lab).model,
                         relabelled=other_weights(other_weights(self.lab)).model)

        def without(question: Question) -> Floats:
            own = replace(question, model=self.lab.model) if question.model is other.model else question
            return self.lab.truth(own, self.shown)

        return self._values([self._contender(judged, _itself), self._contender(judged, _itself, without)], errors)

    def _isolation(self, errors: dict[str, str]) -> Values:
        """By metric, by turns the value of a random order of scattered parts, and of one in which neighbours go together."""
        judged = self._judged(self.lab, None)
        shape = _shape(judged, self.cut)
        if shape is None:
            return {}
        rng = generator(self.seed, self.lab.name, "isolation", self.case)
        orders = [scores for _ in range(FIELDS) for scores in scattered_and_adjoining(shape, rng)]
        return self._values([judged.with_scores(scores, explain=_always(scores)) for scores in orders], errors)

    # --- pieces ---------------------------------------------------------------------------------------------------

    def _judged(self, lab: Lab, baseline: str | None, constant: float = 0.0) -> Judged:
        model = lab.model if not constant else _raised(lab.model, constant)
        untrained, relabelled = other_weights(lab).model, other_weights(other_weights(lab)).model
        if self.changed:
            case = self._adversary(lab, model)
            question = hidden(case.question)
            return Judged(question, np.zeros(question.d), "contribution", case=case, untrained=untrained,
                          relabelled=relabelled)
        planted = lab.planted(self.case, self.cut, baseline, self.seed)
        question = Question(model, planted.parts, planted.target)
        return Judged(question, np.zeros(question.d), "contribution", planted.annotation, untrained=untrained,
                      relabelled=relabelled)

    def _adversary(self, lab: Lab, model: CheckedModel) -> Case:
        tried = (lab.changed(self.case + i * APART, self.cut, self.seed) for i in range(TRIES))
        made = next((one for one in tried if one is not None), None)
        if made is None:
            raise ValueError(f"the model of {lab.name} does not change its mind on any of {TRIES} inputs")
        return made.case(model)

    def _contender(self, judged: Judged, spoil: Callable[[Floats], Floats],
                   truth: Callable[[Question], Floats] | None = None) -> Judged:
        def explain(question: Question) -> Floats:
            if truth is None and judged.case is not None:
                return spoil(self._cause(judged.case, _plain(question)))
            asked = hidden(_plain(question))
            return spoil(self.lab.truth(asked, self.shown) if truth is None else truth(asked))

        return judged.with_scores(explain(judged.question), explain=explain)

    def _cause(self, case: Case, question: Question) -> Floats:
        """What the change of each part did for the label of the question and against the clean one."""
        parts: Any = question.parts if isinstance(question.parts, LayeredParts) else case.parts
        laid = [replace(question, parts=parts.over(case.clean), target=target, memory=Memory(()))
                for target in (question.target, case.clean_label)]
        return self.lab.truth(laid[0]) - self.lab.truth(laid[1]) if self.lab.exact else self.lab.truth(laid[0])

    def _spoiler(self, grade: float, scale: float) -> Callable[[Floats], Floats]:
        return lambda truth: scale * corrupted(truth, grade, generator(self.seed, self.lab.name, "spoilt", self.case))

    def _values(self, contenders: Sequence[Judged], errors: dict[str, str], hiding: bool = False) -> Values:
        found: Values = {}
        for metric in self.metrics:
            about = metric.about
            unasked = (hiding and not about.hides) or (not self.lab.exact and (about.amounts or "explain" in about.needs))
            if unasked or incompatible(about, "contribution", self.lab.domain):
                continue
            try:
                found[about.name] = [self._value(metric, one) for one in contenders]
            except Exception as error:  # whatever it raises is told of this metric, and the others go on
                errors[about.name] = f"{type(error).__name__}: {error}"
        return found

    def _value(self, metric: Metric, judged: Judged) -> float | None:
        value = judge(metric, judged, generator(self.seed, self.lab.name, metric.about.name, self.case))
        return None if math.isnan(value) else value


def scattered_and_adjoining(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The same random numbers in places drawn one by one, and in places where like comes beside like.

    Neither knows anything, and in both every place is as likely to come first as any other: the field goes round the edges.
    """
    scattered = rng.standard_normal(shape).ravel()
    field = ndimage.gaussian_filter(rng.standard_normal(shape), SMOOTH, mode="wrap").ravel()
    adjoining = np.empty(len(scattered))
    adjoining[np.argsort(field)] = np.sort(scattered)
    return scattered, adjoining


def _merged(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Several groups of metrics as one; what is told by baseline is merged baseline by baseline."""
    found: dict[str, Any] = {}
    for record in records:
        for test, values in record.items():
            into = found.setdefault(test, {})
            for name, value in values.items():
                if test in ("baseline", "same"):
                    into.setdefault(name, {}).update(value)
                else:
                    into[name] = value
    return found


@dataclass(frozen=True)
class _Raised:
    """A model with a constant added to every class: contributions are what they were."""

    plain: CheckedModel
    constant: float

    def __call__(self, batch: Any) -> Floats:
        return np.asarray(self.plain(batch) + self.constant)


def _always(scores: Floats) -> Callable[[Question], Floats]:
    return lambda question: scores


def _itself(truth: Floats) -> Floats:
    return truth


def _raised(model: CheckedModel, constant: float) -> CheckedModel:
    return CheckedModel(_Raised(model, constant), classes=model.classes, name=model.name)


def _plain(question: Question) -> Question:
    """The question of the model itself, whose truth is known."""
    function: Any = question.model.function
    return replace(question, model=function.plain) if isinstance(function, _Raised) else question


def _shape(judged: Judged, cut: str | None) -> tuple[int, ...] | None:
    """How the parts lie beside each other: pixels and cells in rows, words and stretches in a line; None where they do not."""
    parts = judged.question.parts
    if parts.domain == "tabular":
        return None
    kind, _, sides = (cut or "").partition(":")
    if kind in ("grid", "tf"):
        rows, columns = (int(side) for side in sides.split("x"))
        return rows, columns
    grid = getattr(parts, "grid", None)  # of a sound: stretches of time and bands
    if grid is not None and int(np.prod(grid)) == judged.d:
        return tuple(grid)
    labels = getattr(parts, "labels", None)
    return tuple(labels.shape) if parts.domain == "image" and labels is not None and labels.size == judged.d else (judged.d,)


def settings(metrics: Sequence[Metric]) -> Mapping[str, str]:
    """Each metric with its settings, as it is written; one of the user's own with its code."""
    return {metric.about.name: str(told(metric)) if " at 0x" in repr(metric) or any(map(homemade, map(type, wrapped(metric))))
            else repr(metric) for metric in metrics}


def wrapped(metric: Any) -> list[Any]:
    """A metric, and what it holds: one under another name, or one of others'."""
    inner = getattr(metric, "metric", None)
    return [metric] if inner is None else [metric, *wrapped(inner)]
