"""What a user types to judge explanations by metrics: `measure`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from whytrust import api, inputs, judging, stats
from whytrust.checked import CheckedModel
from whytrust.core import CoveredParts, Floats, LayeredParts, Parts, generator
from whytrust.domains.image import laid_out
from whytrust.explainers import NAMES
from whytrust.measures.case import Case
from whytrust.measures.judged import GOALS, NEEDS, Judged, Metric, incompatible, judge
from whytrust.progress import Progress
from whytrust.question import Memory, Question
from whytrust.studies.judged_cases import anew, hidden

RANDOM = "random"
USUAL = ("pixel_flipping", "insertion", "infidelity/scaled", "faithfulness_correlation", "comprehensiveness", "sufficiency")
"""Metrics where none are named: those that need nothing but the model."""


@dataclass(frozen=True)
class Measured:
    """Every metric of every explainer: `print(measured)` shows means beside random, `values` has a number for each input.

    `refused` says why a metric did not judge an explainer. A difference between explainers says something of them only as far
    as the metric does: see wt.metrics().
    """

    values: Mapping[str, Mapping[str, Floats]]  # metric -> explainer -> a number an input, NaN where there is none
    higher: Mapping[str, bool]
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    errors: Mapping[int, Exception] = field(default_factory=dict)  # inputs that could not be judged

    def table(self) -> list[dict[str, Any]]:
        """A row for each metric and explainer: mean and interval, and on how many inputs it is better than random."""
        return [self._row(metric, name, numbers) for metric, some in self.values.items() for name, numbers in some.items()]

    def _row(self, metric: str, name: str, numbers: Floats) -> dict[str, Any]:
        known = numbers[np.isfinite(numbers)]
        mean = float(known.mean()) if len(known) else math.nan
        row: dict[str, Any] = {"metric": metric, "explainer": name, "mean": mean, "low": None, "high": None, "n": len(known),
                               "better": "larger" if self.higher[metric] else "smaller", "beats_random": None}
        if len(known) > 1:
            found = stats.jackknife(mean, (known.sum() - known) / (len(known) - 1))
            row |= {"low": found.low, "high": found.high}
        if name != RANDOM:
            sign = 1 if self.higher[metric] else -1
            chance = self.values[metric][RANDOM]
            wins = np.where(np.isclose(numbers, chance, rtol=1e-9, atol=1e-12), 0.5, (sign * numbers > sign * chance) * 1.0)
            wins[~np.isfinite(numbers) | ~np.isfinite(chance)] = np.nan
            row["beats_random"] = float(np.nanmean(wins)) if np.isfinite(wins).any() else None
        return row

    def __str__(self) -> str:
        """A line for each metric and explainer."""
        lines = []
        width = max((len(name) for by_name in self.values.values() for name in by_name), default=8)
        for metric, by_name in self.values.items():
            lines.append(f"{metric} ({'larger' if self.higher[metric] else 'smaller'} is better)")
            for row in (self._row(metric, name, numbers) for name, numbers in by_name.items()):
                interval = "" if row["low"] is None else f" ({row['low']:.4g} to {row['high']:.4g})"
                beats = "" if row["beats_random"] is None else f", better than random on {100 * row['beats_random']:.0f} %"
                lines.append(f"  {row['explainer']:<{width}}  {row['mean']:.4g}{interval}{beats}, n = {row['n']}")
            lines += [f"  {name:<{width}}  not judged: {why}" for name, why in self.refused.get(metric, {}).items()]
        lines += [f"input {i} failed: {error}" for i, error in self.errors.items()]
        return "\n".join(lines)


def measure(model: Any, x: Any, method: Any = "lime", metrics: Any = USUAL, *, target: Any = None, parts: Any = None,
            baseline: str | None = None, truth: Any = None, labels: Any = None, clean: Any = None, untrained: Any = None,
            relabelled: Any = None, insist: bool = False, seed: int = 0, **options: Any) -> Measured:
    """How good are explanations of these inputs, by these metrics? Random scores always stand beside them.

    `x`, `method` (one or a list), `target`, `parts` and further options are those of wt.explain. `metrics` are names from
    wt.methods() or objects. `baseline` is what metrics hide parts behind ("zeros", "mean", "noise", …); where it is not given,
    the parts' own fill, and for table rows the columns' means. `truth` is an annotation: a mask shaped like the explanation's
    map, {"boxes": [(left, top, right, bottom), …]} of an image, {"words": […]} or {"spans": […]} of a text, {"seconds": […]} of
    a sound, {"columns": […]} of a row. `labels` are true classes, which an accuracy is reckoned by. `clean` is what an
    adversary was before it was changed, for the adversarial trials (flip, all_positive, recovery). Of these three there is one
    for each of several inputs. `untrained` and `relabelled` are models for the sanity checks. What a metric cannot judge by its
    goal is refused with the reason, unless `insist`.
    """
    wrapped = api.model(model)
    chosen = judging.chosen(metrics)
    given = api.sort_out(list(method) if isinstance(method, list | tuple) else [method], dict(options), parts)
    of_parts = inputs.prepare(given.of_parts)
    several = None if isinstance(parts, Parts) and not isinstance(parts, str | np.ndarray) else inputs.several(x, of_parts)
    items = [x] if several is None else list(several)
    asked = _Asked(wrapped, dict(zip(_names(method), given.explainers, strict=True)), chosen, target, parts, of_parts, baseline,
                   insist, seed, given.batch_size, None if untrained is None else api.model(untrained),
                   None if relabelled is None else api.model(relabelled))
    truths, classes, before = (_each(given, len(items), several is None, name) for given, name in
                               ((truth, "truth"), (labels, "labels"), (clean, "clean")))
    found: list[Mapping[str, Mapping[str, float]] | None] = []
    errors: dict[int, Exception] = {}
    with Progress("measuring") as progress, wrapped.asking():
        for i, item in enumerate(items):
            try:
                found.append(asked(item, truths[i], classes[i], before[i], i, progress))
            except (ValueError, TypeError, OSError) as error:
                if len(items) == 1:
                    raise
                found.append(None)
                errors[i] = error
    if len(errors) == len(items):
        raise errors[0]
    first = next(one for one in found if one is not None)
    values = {metric: {name: np.array([math.nan if one is None else one[metric][name] for one in found])
                       for name in by_name} for metric, by_name in first.items()}
    return Measured(values, {m.about.name: m.about.higher for m in chosen}, asked.refused, errors)


@dataclass(frozen=True)
class _Asked:
    """One call of measure, for each of its inputs."""

    model: CheckedModel
    explainers: Mapping[str, Any]
    metrics: Sequence[Metric]
    target: Any
    parts: Any
    of_parts: dict[str, Any]
    baseline: str | None
    insist: bool
    seed: int
    batch_size: int | None
    untrained: CheckedModel | None
    relabelled: CheckedModel | None
    refused: dict[str, dict[str, str]] = field(default_factory=dict)

    def __call__(self, item: Any, truth: Any, label: Any, clean: Any, case: int,
                 progress: Progress) -> dict[str, dict[str, float]]:
        cut = inputs.cut(item, self.parts, self.model.layout, dict(self.of_parts), self.model.reads)
        first = Question(self.model, cut, 0, self.batch_size, on_calls=progress)
        columns = len(first.original)
        target = (self.model.class_index(self.target, columns) if self.target is not None else 0 if columns == 1 else
                  int(self.model.labels(first.original[None])[0]))
        question = first.watching(range(columns))[target]
        self._check(truth, clean)
        changed = None if clean is None else self._adversary(cut, clean, question, progress)
        behind = self._behind(question, case)
        own = None if label is None else self.model.class_index(label, columns)
        scores: dict[str, tuple[Floats, str, Callable[[Question], Floats] | None]] = {
            name: (one(question, generator(self.seed, "explain")).scores, goal_of(name), self._explaining(one))
            for name, one in self.explainers.items()}
        scores[RANDOM] = (generator(self.seed, RANDOM, case).standard_normal(question.d), "nothing", anew(self.seed, case))
        judged = Judged(behind, scores[RANDOM][0], "nothing", truth, None, self.untrained, self.relabelled, own, question,
                        changed)
        return {metric.about.name: dict(self._judged(metric, judged, scores, case)) for metric in self.metrics}

    def _judged(self, metric: Metric, judged: Judged, scores: Mapping[str, tuple[Any, str, Any]], case: int) -> Any:
        about, domain = metric.about, judged.question.parts.domain
        for name, (values, goal, explain) in scores.items():
            one = judged.with_scores(values, goal, explain=explain)
            why = None if self.insist else incompatible(about, goal, domain)
            if why is not None:
                if domain not in about.domains:
                    raise ValueError(why)
                self.refused.setdefault(about.name, {})[name] = why
            else:
                yield name, judge(metric, one, generator(self.seed, about.name, case), insist=True)

    def _adversary(self, cut: Parts, clean: Any, question: Question, progress: Progress) -> Case:
        """The input beside what it was before it was changed."""
        if not isinstance(cut, LayeredParts):
            raise TypeError(f"clean must come with parts that another input has, too, got {type(cut).__name__}")
        if question.target != (label := self._label(question.original)):
            raise ValueError(f"with clean the target must be what the model says of the changed input, {label}, got "
                             f"{question.target}; leave it out")
        below = laid_out(clean, self.model.layout) if cut.domain == "image" else clean
        whole = Question(self.model, cut.like(below), 0, self.batch_size, on_calls=progress)
        before = self._label(whole.original)
        if before == label:
            raise ValueError(f"clean must be the input before it was changed, of which the model says something else, and it "
                             f"says {self.model.class_name(label, len(whole.original))} of both")
        return Case(self.model, cut, below, before, label, self.batch_size, progress)

    def _label(self, scores: Floats) -> int:
        return int(self.model.labels(scores[None])[0])

    def _check(self, truth: Any, clean: Any) -> None:
        """What a metric needs and was not given is told before anything is explained."""
        given = {"truth": truth, "untrained": self.untrained, "relabelled": self.relabelled, "explain": self.explainers,
                 "case": clean}
        for metric in self.metrics:
            missing = [need for need in metric.about.needs if given[need] is None]
            if missing:
                raise ValueError(f"{metric.about.name} needs {NEEDS[missing[0]]}")

    def _behind(self, question: Question, case: int) -> Question:
        if self.baseline is None:
            return hidden(question)
        if not isinstance(question.parts, CoveredParts):
            raise TypeError(f"baseline must come with parts of an image, a text, a sound or a row, got "
                            f"{type(question.parts).__name__}; leave it out")
        parts = question.parts.behind(self.baseline, generator(self.seed, "baseline", case))
        return replace(question, parts=parts, memory=Memory(question.memory.watched, original=question.original))

    def _explaining(self, explainer: Any) -> Callable[[Question], Floats]:
        return lambda question: np.asarray(explainer(question, generator(self.seed, "explain")).scores)


def goal_of(name: str) -> str:
    """What the scores of a method mean, as far as it is in the catalogue; others' are taken for contributions."""
    return NAMES[name].goal if name in NAMES and NAMES[name].goal in GOALS else "contribution"


def _names(method: Any) -> list[str]:
    """What to call each method."""
    given = list(method) if isinstance(method, list | tuple) else [method]
    names = [one if isinstance(one, str) else type(one).__name__ for one in given]
    if len(set(names)) < len(names):
        raise ValueError(f"methods must be told apart by their names, and two of {', '.join(names)} are not")
    if RANDOM in names:
        raise ValueError("random scores always stand beside the methods; leave random out")
    return names


def _each(values: Any, n: int, single: bool, what: str) -> list[Any]:
    if values is None:
        return [None] * n
    if single or (n == 1 and not isinstance(values, list)):
        return [values]
    if len(values) != n:
        raise ValueError(f"{what} must have one entry for each of {n} inputs, got {len(values)}")
    return list(values)
