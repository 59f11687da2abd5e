"""What a user types to judge explanations by metrics: `measure`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from whytrust import api, inputs, judging, legible, stats
from whytrust.checked import CheckedModel
from whytrust.core import CoveredParts, Floats, LayeredParts, Parts, generator
from whytrust.explainers import foreign
from whytrust.explanation import Explanation
from whytrust.measures.case import Case
from whytrust.measures.judged import INSIST, NEEDS, About, Judged, Metric, incompatible, judge, other_unit
from whytrust.progress import Progress
from whytrust.question import Memory, Question
from whytrust.store import plain
from whytrust.studies.contenders import label_of
from whytrust.studies.judged_cases import anew, goal_of, hidden, shuffled, unit_of

RANDOM = "random"
USUAL = ("pixel_flipping", "insertion", "infidelity/scaled", "faithfulness_correlation", "comprehensiveness", "sufficiency")
"""Metrics where none are named: those that need nothing but the model."""
Values = Mapping[str, Mapping[str, float]]
_Found = tuple[Values, Values]
"""By metric and explainer, one number of one input, and that of scores that say nothing."""


@dataclass(frozen=True)
class Measured:
    """Every metric of every explainer: `print(measured)` shows means beside random, `values` has a number for each input.

    `refused` says why a metric did not judge an explainer. Random scores are drawn, and are a row of their own. For metrics
    that read scores as amounts they are each explainer's own in a random order, for only those have its unit: they stand in
    that explainer's row, and there is no "random" for all. A difference between explainers says something of them only as far
    as the metric does: see wt.metrics().
    """

    values: Mapping[str, Mapping[str, Floats]]  # metric -> explainer -> a number an input, NaN where there is none
    abouts: Mapping[str, About]
    chance: Mapping[str, Mapping[str, Floats]]  # metric -> explainer -> the same of scores that say nothing
    refused: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    errors: Mapping[int, Exception] = field(default_factory=dict)  # inputs that could not be judged
    probability: bool = False  # are the model's scores probabilities, so that a fall lies within -1 and 1?

    def table(self) -> list[dict[str, Any]]:
        """A row for each metric and explainer: mean and interval, the mean of random scores in its unit, and on how many
        inputs it is better than those.
        """
        return [self._row(metric, name, numbers) for metric, some in self.values.items() for name, numbers in some.items()]

    def _row(self, metric: str, name: str, numbers: Floats) -> dict[str, Any]:
        about, known = self.abouts[metric], numbers[np.isfinite(numbers)]
        mean = float(known.mean()) if len(known) else math.nan
        low, high = _interval(about, known, self.probability)
        row: dict[str, Any] = {"metric": metric, "explainer": name, "mean": mean, "low": low, "high": high, "n": len(known),
                               "undefined": len(numbers) - len(known) - len(self.errors),
                               "better": "larger" if about.higher else "smaller", "random": None, "beats_random": None}
        if name != RANDOM:
            sign = 1 if about.higher else -1
            chance = self.chance[metric][name]
            wins = np.where(np.isclose(numbers, chance, rtol=1e-9, atol=1e-12), 0.5, (sign * numbers > sign * chance) * 1.0)
            wins[~np.isfinite(numbers) | ~np.isfinite(chance)] = np.nan
            if np.isfinite(wins).any() and not (about.amounts and (wins[np.isfinite(wins)] == 0.5).all()):  # a sum has no order
                row |= {"random": float(chance[np.isfinite(wins)].mean()), "beats_random": float(np.nanmean(wins))}
        return row

    def to_json(self) -> dict[str, Any]:
        """Every number, as plain data."""
        return dict(plain({"rows": self.table(), "values": {metric: {name: numbers.tolist() for name, numbers in some.items()}
                                                            for metric, some in self.values.items()},
                           "refused": {metric: dict(some) for metric, some in self.refused.items()},
                           "errors": {str(i): f"{type(error).__name__}: {error}" for i, error in self.errors.items()}}))

    def __str__(self) -> str:
        """A line for each metric and explainer."""
        lines = []
        width = legible.width(name for by_name in self.values.values() for name in by_name)
        for metric, by_name in self.values.items():
            lines.append(f"{metric} ({'larger' if self.abouts[metric].higher else 'smaller'} is better)")
            for row in (self._row(metric, name, numbers) for name, numbers in by_name.items()):
                interval = "" if row["low"] is None else f" ({row['low']:.4g} to {row['high']:.4g})"
                beats = "" if row["beats_random"] is None else f", better than random on {100 * row['beats_random']:.0f} %"
                beats = f", its scores in random order {row['random']:.4g}{beats}" if RANDOM not in by_name and beats else beats
                without = f", not defined on {row['undefined']}" if row["undefined"] else ""
                lines.append(f"  {row['explainer']:<{width}}  {row['mean']:.4g}{interval}{beats}, n = {row['n']}{without}")
            lines += [f"  {name:<{width}}  not judged: {why}" for name, why in self.refused.get(metric, {}).items()]
        lines += [f"input {i} failed: {error}" for i, error in self.errors.items()]
        return legible.lines(lines)


def measure(model: Any, x: Any, method: Any = "lime", metrics: Any = USUAL, *, target: Any = None, parts: Any = None,
            baseline: str | None = None, truth: Any = None, labels: Any = None, clean: Any = None, untrained: Any = None,
            relabelled: Any = None, insist: bool = False, seed: int = 0, **options: Any) -> Measured:
    """How good are explanations of these inputs, by these metrics? Random scores always stand beside them.

    `x`, `method`, `target`, `parts` and further options are those of wt.explain; several methods come as a list, or by names of
    your own, {"a": …, "b": …}, and so do metrics, which are names from wt.methods() or objects. `target` may be a list with one
    for each of several inputs. `baseline` is what metrics hide parts behind ("zeros", "mean", "noise", …); where it is not
    given, the parts' own fill, and for table rows the columns' means, rounded in columns of whole numbers.
    `truth` is an annotation: a mask shaped like the explanation's map, {"boxes": [(left, top, right, bottom), …]} of an
    image, {"words": […]} or {"spans": […]} of a text, {"seconds": […]} of a sound, {"columns": […]} of a row. `labels` are
    true classes, which an accuracy is reckoned by. `clean` is what an adversary was before it was changed, for the adversarial
    trials (flip, all_positive, recovery). Of these three there is one for each of several inputs. `untrained` and `relabelled`
    are models for the sanity checks. What a metric cannot judge by its goal, or its unit, is refused with the reason, unless
    `insist`.
    """
    wrapped = api.model(model)
    chosen = judging.chosen(USUAL if metrics is None else metrics)
    called, ready, of_parts, batch_size = explainers_of(method, dict(options), parts)
    several = None if isinstance(parts, Parts) and not isinstance(parts, str | np.ndarray) else inputs.several(x, of_parts)
    items = [x] if several is None else list(several)
    wrapped = inputs.for_sounds(wrapped, items, parts, of_parts)
    untrained, relabelled = (None if one is None else inputs.for_sounds(api.model(one), items, parts, of_parts)
                             for one in (untrained, relabelled))
    each = {name: one.each(len(items)) if hasattr(one, "each") and several is not None else [one] * len(items)
            for name, one in called.items()}
    asked = _Asked(wrapped, chosen, parts, of_parts, baseline, insist, seed, batch_size, ready,
                   untrained, relabelled)
    before = clean if clean is None or several is None else inputs.several(clean, of_parts) or [clean]
    beside = {name: _each(values, len(items), several is None, name) for name, values in (
        ("truth", truth), ("labels", labels), ("clean", before))}
    beside["target"] = [target] * len(items) if target is None or np.ndim(target) == 0 else _each(
        target, len(items), several is None, "target")
    found: list[_Found | None] = []
    errors: dict[int, Exception] = {}
    with Progress("measuring") as progress, wrapped.asking():
        for i, item in enumerate(items):
            explainers = {name: some[i] for name, some in each.items()}
            try:
                found.append(asked(item, explainers, {name: values[i] for name, values in beside.items()}, i, progress))
            except Exception as error:  # of this input, whatever a model, a method or a metric raises; the others go on
                if len(items) == 1:
                    raise
                found.append(None)
                errors[i] = error
    if len(errors) == len(items):
        raise errors[0]
    values, chance = (_stacked([None if one is None else one[which] for one in found]) for which in (0, 1))
    return Measured(values, {m.about.name: m.about for m in chosen}, chance, asked.refused, errors, all(asked.probability))


def _stacked(found: Sequence[Values | None]) -> dict[str, dict[str, Floats]]:
    """One number an input, NaN for inputs that failed."""
    first = next(one for one in found if one is not None)
    return {metric: {name: np.array([math.nan if one is None else one[metric].get(name, math.nan) for one in found])
                     for name in by_name} for metric, by_name in first.items()}


@dataclass(frozen=True)
class _Asked:
    """One call of measure, for each of its inputs."""

    model: CheckedModel
    metrics: Sequence[Metric]
    parts: Any
    of_parts: dict[str, Any]
    baseline: str | None
    insist: bool
    seed: int
    batch_size: int | None
    ready: frozenset[str]  # methods that are values which are there already
    untrained: CheckedModel | None
    relabelled: CheckedModel | None
    refused: dict[str, dict[str, str]] = field(default_factory=dict)
    probability: list[bool] = field(default_factory=list)  # of each input: are its scores probabilities?

    def __call__(self, item: Any, explainers: Mapping[str, Any], beside: Mapping[str, Any], case: int,
                 progress: Progress) -> _Found:
        cut = inputs.cut(item, self.parts, self.model.layout, dict(self.of_parts), self.model.reads)
        first = Question(self.model, cut, 0, self.batch_size, on_calls=progress)
        columns = len(first.original)
        self.probability.append(self.model.gives_probabilities(first.original))
        target = (self.model.class_index(beside["target"], columns) if beside["target"] is not None else
                  0 if columns == 1 else int(self.model.labels(first.original[None])[0]))
        question = first.watching(range(columns))[target]
        self._check(beside["truth"], beside["clean"])
        changed = self._adversary(cut, beside["clean"], question, progress)
        behind = self._behind(question, case)
        own = None if beside["labels"] is None else self.model.class_index(beside["labels"], columns)
        random = generator(self.seed, RANDOM, case).standard_normal(question.d)
        nothing = Judged(behind, random, "nothing", beside["truth"], None, self.untrained, self.relabelled, own, question,
                         changed)
        alone = first.watching([target])[0]  # values that are there already speak of one class
        judged = {name: self._explained(name, one, alone, nothing) for name, one in explainers.items()}
        values: dict[str, dict[str, float]] = {}
        chance: dict[str, dict[str, float]] = {}
        for metric in self.metrics:
            values[metric.about.name], chance[metric.about.name] = self._judged(metric, judged, nothing, case)
        return values, chance

    def _explained(self, name: str, explainer: Any, question: Question, nothing: Judged) -> Judged:
        explanation = explainer(question, generator(self.seed, "explain"))
        if not isinstance(explanation, Explanation):
            raise TypeError(f"method must return an Explanation of its question, and {name} returned "
                            f"{type(explanation).__name__}; a function of your own that returns an array takes (model, inputs, "
                            "targets)")
        goal, unit = goal_of(name, explanation), unit_of(explanation, question)
        return nothing.with_scores(explanation.scores, goal, explain=self._explaining(explainer), unit=unit)

    def _judged(self, metric: Metric, judged: Mapping[str, Judged], nothing: Judged,
                case: int) -> tuple[dict[str, float], dict[str, float]]:
        """(by explainer its number, and that of scores that say nothing)"""
        about, domain = metric.about, nothing.question.parts.domain
        if domain not in about.domains and not self.insist:
            raise ValueError(f"{incompatible(about, 'nothing', domain)}; {INSIST}")
        values: dict[str, float] = {}
        chance: dict[str, float] = {}
        for name, one in judged.items():
            why = None if self.insist else incompatible(about, one.goal, domain) or other_unit(about, one.unit)
            why = why and f"{why}; {INSIST}"
            if name in self.ready and "explain" in about.needs:
                why = f"{about.name} explains other inputs or models too, and these are values that are there already"
            if why is not None:
                self.refused.setdefault(about.name, {})[name] = why
                continue
            values[name] = self._value(metric, one, case)
            if about.amounts:
                chance[name] = self._value(metric, shuffled(one, generator(self.seed, "shuffled", case)), case)
        if about.amounts:
            return values, chance
        drawn = self._value(metric, nothing.with_scores(nothing.scores, explain=anew(self.seed, case)), case)
        return {**values, RANDOM: drawn}, dict.fromkeys(values, drawn)

    def _value(self, metric: Metric, judged: Judged, case: int) -> float:
        if metric.about.of_change and judged.case is None:
            return math.nan  # of this input the change did not turn the label
        return judge(metric, judged, generator(self.seed, metric.about.name, case), insist=True)

    def _adversary(self, cut: Parts, clean: Any, question: Question, progress: Progress) -> Case | None:
        """The input beside what it was before it was changed; None where no metric asks, or the label did not turn."""
        asking = [metric.about.of_change for metric in self.metrics]
        if clean is None or not any(asking):
            return None
        if not isinstance(cut, LayeredParts):
            raise TypeError(f"clean must come with parts that another input has, too, got {type(cut).__name__}")
        if question.target != (label := self._label(question.original)):
            raise ValueError(f"with clean the target must be what the model says of the changed input, {label}, got "
                             f"{question.target}; leave it out")
        below = self._read(clean, cut.domain)
        whole = Question(self.model, cut.like(below), 0, self.batch_size, on_calls=progress)
        before = self._label(whole.original)
        if before == label and not all(asking):
            return None
        if before == label:
            raise ValueError(f"clean must be the input before it was changed, of which the model says something else, and it "
                             f"says {self.model.class_name(label, len(whole.original))} of both")
        return Case(self.model, cut, below, before, label, self.batch_size, progress)

    def _read(self, item: Any, domain: str) -> Any:
        """An input of the same kind as it is taken: from a file, a picture, a row."""
        coarse = {"image": "grid:1x1", "text": "words", "audio": "time:1"}.get(domain)
        read: Any = inputs.cut(item, coarse, self.model.layout, dict(self.of_parts), self.model.reads)
        return getattr(read, {"image": "image", "text": "text", "audio": "sound", "tabular": "row"}[domain])

    def _label(self, scores: Floats) -> int:
        return int(self.model.labels(scores[None])[0])

    def _check(self, truth: Any, clean: Any) -> None:
        """What a metric needs and was not given is told before anything is explained."""
        given = {"truth": truth, "untrained": self.untrained, "relabelled": self.relabelled, "case": clean}
        for metric in self.metrics:
            missing = [need for need in metric.about.needs if need != "explain" and given.get(need) is None]
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


def _interval(about: About, known: Floats, probability: bool) -> tuple[float | None, float | None]:
    """95 % of the mean, within what the metric's number can be; none where there is no spread to go by."""
    if about.share and len(known):
        found = stats.rate(known)
        return found.low, found.high
    low, high = about.bounds(probability)
    if any(bound is not None and (sign * (known - bound) > stats.ROUNDING).any() for bound, sign in ((low, -1), (high, 1))):
        low = high = None  # what the metric, or the model, says of itself does not hold
    if len(known) < 2 or (np.ptp(known) == 0 and (low is None or high is None)):
        return None, None
    found = stats.bounded(known, low, high)
    return found.low, found.high


def labelled(method: Any) -> dict[str, Any]:
    """{what to call it: method}"""
    if isinstance(method, Mapping):
        named = {str(name): one for name, one in method.items()}
    else:
        given = list(method) if isinstance(method, list | tuple) and not foreign.is_ready_made(method) else [method]
        names = [label_of(one) for one in given]
        if len(set(names)) < len(names):
            raise ValueError(f"methods must be told apart by their names, and two of {', '.join(names)} are not; name them: "
                             "{'a': …, 'b': …}")
        named = dict(zip(names, given, strict=True))
    if not named:
        raise ValueError("method must be at least one, got none")
    for name, one in named.items():
        if not (isinstance(one, str | Mapping) or callable(one) or foreign.is_explainer(one) or foreign.is_ready_made(one)):
            raise TypeError("method must be a name from wt.methods(), an explainer (question, rng) -> Explanation, someone "
                            f"else's explainer, or values that are there already, got {type(one).__name__} for {name}")
    if RANDOM in named:
        raise ValueError("random scores always stand beside the methods; leave random out")
    return named


def explainers_of(method: Any, options: dict[str, Any], parts: Any) -> tuple[dict[str, Any], frozenset[str], dict[str, Any],
                                                                           int | None]:
    """({name: explainer}, those that are values, options of the parts, batch size)"""
    called = labelled(method)
    part_names = {name for names in inputs.OPTIONS.values() for name in names}
    ready = {name: one for name, one in called.items() if foreign.is_ready_made(one)}
    own = {name: one for name, one in called.items() if isinstance(one, Mapping)}
    others = {name: one for name, one in called.items() if name not in ready and name not in own}
    given = api.sort_out(list(others.values()) or ["random"], options, parts)  # whose options are those of the parts alone
    made = dict(zip(others, given.explainers, strict=False))
    for name, one in own.items():
        its = dict(one)
        made[name] = api.with_background(api.explainer_of(its.pop("method", name), its, part_names), options.get("background"))
    made |= {name: api.explainer_of(one, {}, part_names) for name, one in ready.items()}
    return {name: made[name] for name in called}, frozenset(ready), inputs.prepare(given.of_parts), given.batch_size


def _each(values: Any, n: int, single: bool, what: str) -> list[Any]:
    """One for each input; None for each where there are none."""
    if values is None:
        return [None] * n
    if single:
        return [values[0] if what in ("labels", "target") and np.ndim(values) == 1 and len(values) == 1 else values]
    if isinstance(values, Mapping | str) or (np.ndim(values) == 0 and not isinstance(values, list | tuple)):
        if n == 1:
            return [values]
        raise ValueError(f"{what} must have one entry for each of {n} inputs, got one, {values!r:.40}")
    listed = list(values)
    if len(listed) != n:
        raise ValueError(f"{what} must have one entry for each of {n} inputs, got {len(listed)}")
    return listed
