"""Metrics in an audit: each explainer's explanation of an adversary by every metric, beside random scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from whytrust.core import CoveredParts, Floats, Parts, generator
from whytrust.explainers import NAMES
from whytrust.explanation import Explanation
from whytrust.measures.judged import GOALS, Judged, Metric, incompatible, judge, other_unit
from whytrust.question import Memory, Question

RECORDS = 3
"""Of what a record says of metrics: an audit in which they were compared otherwise is another run."""
DRAWS = 5
"""Random scores that every explainer is compared with."""


def usable(metric: Metric, domain: str) -> str | None:
    """Why an audit cannot use this metric; None where it can."""
    about = metric.about
    if about.of_change:
        return f"{about.name} is one of an audit's own trials: name it as a text among 'flip', 'all_positive' and 'recovery'"
    missing = [need for need in about.needs if need != "explain"]
    if missing:
        return f"{about.name} needs {missing[0]}, which an audit does not have; use wt.measure"
    return incompatible(about, "nothing", domain)


def judged(question: Question, explained: Mapping[str, Explanation], again: Callable[[str, Question], Explanation],
           metrics: Sequence[Metric], seed: int, case: str) -> dict[str, Any]:
    """By metric: each explainer's number, those of random scores, and who could not be judged, and why.

    `again` has an explainer explain another question as it explained this one.
    """
    chance = [generator(seed, "judged", case, i) for i in range(DRAWS)]
    randoms_of = [rng.standard_normal(question.d) for rng in chance]
    first = Judged(hidden(question), randoms_of[0], "nothing", asked=question)
    found: dict[str, Any] = {}
    for metric in metrics:
        about = metric.about
        values: dict[str, float | None] = {}
        refused: dict[str, str] = {}
        chances: dict[str, list[float | None]] = {}
        for name, explanation in explained.items():
            goal = goal_of(name, explanation)
            unit = unit_of(explanation, question)
            why = incompatible(about, goal, question.parts.domain) or other_unit(about, unit)
            if why is not None:
                refused[name] = why
                continue
            one = first.with_scores(explanation.scores, goal, explain=_again(again, name), unit=unit)
            values[name] = _value(metric, one, seed, case, refused, name)
            if about.amounts:
                own = [shuffled(one, generator(seed, "shuffled", case, i)) for i in range(DRAWS)]
                chances[name] = [_value(metric, other, seed, case, {}, name) for other in own]
        randoms = [_value(metric, first.with_scores(scores, "nothing", explain=anew(seed, case, i)), seed, case, refused,
                          "random") for i, scores in enumerate(randoms_of)] if not about.amounts else []
        found[about.name] = {"values": values, "random": randoms, "refused": refused, "higher": about.higher,
                             "wins": {name: _wins(value, chances.get(name, randoms), about.higher)
                                      for name, value in values.items()}}
    return found


def _wins(value: float | None, randoms: Sequence[float | None], higher: bool) -> float | None:
    """The share of random scores that a value is better than; equal ones count by half."""
    known = [one for one in randoms if one is not None]
    if value is None or not known:
        return None
    ahead = [0.5 if math.isclose(value, one, rel_tol=1e-9, abs_tol=1e-12) else float((value > one) == higher) for one in known]
    return sum(ahead) / len(ahead)


def _value(metric: Metric, judged: Judged, seed: int, case: str, refused: dict[str, str], name: str) -> float | None:
    try:
        value = judge(metric, judged, generator(seed, metric.about.name, case))
    except Exception as error:  # whatever it raises is told of this metric, and the others go on
        refused[name] = f"{type(error).__name__}: {error}"
        return None
    return None if math.isnan(value) else value


def goal_of(name: str, explanation: Explanation) -> str:
    """What the scores mean, by the catalogue; of others, an order where they have no sign."""
    known = NAMES.get(explanation.method) or NAMES.get(name)
    if known is not None and known.goal in GOALS:
        return known.goal
    return "contribution" if explanation.sense == "signed" else "ranking"


def unit_of(explanation: Explanation, question: Question) -> str:
    """"logit" where scores speak of that and the model's score is a probability; else nothing."""
    return "logit" if explanation.settings.get("explains") == "logit" and question.model.gives_probabilities(
        question.original) else ""


def shuffled(judged: Judged, rng: np.random.Generator) -> Judged:
    """The same scores in a random order: as large, in the same unit, and saying nothing."""
    return judged.with_scores(rng.permutation(judged.scores), "nothing")


def hidden(question: Question) -> Question:
    """The question as metrics ask it: columns of a row are hidden behind their means, not behind ever new training values.

    Where one draw decides what a hidden column shows, true contributions look wrong.
    """
    parts = settled(question.parts)
    if parts is question.parts:
        return question
    return replace(question, parts=parts, memory=Memory(question.memory.watched, original=question.original))


def settled(parts: Parts) -> Parts:
    """Parts that are hidden behind the same thing each time: columns of a row behind their means."""
    if parts.deterministic or not isinstance(parts, CoveredParts) or parts.domain != "tabular":
        return parts
    return parts.behind("mean", generator(0))


def _again(again: Callable[[str, Question], Explanation], name: str) -> Callable[[Question], Floats]:
    return lambda question: np.asarray(again(name, question).scores)


def anew(seed: int, case: str | int, draw: int = 0) -> Callable[[Question], Floats]:
    """Random scores know no input: asked again, they say something else."""
    rng = generator(seed, "anew", case, draw)
    return lambda question: rng.standard_normal(question.d)
