"""What a user types to see whether a ranking of explainers survives other choices: `multiverse`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust import judging, legible, stats
from whytrust.core import Floats, generator
from whytrust.measuring import RANDOM, measure
from whytrust.store import plain

CLAIM = re.compile(r"\s*(?P<first>[\w/]+)\s*>\s*(?P<second>[\w/]+)\s*")
DRAWS, FEWEST = 2000, 10
"""Of the bootstrap, and inputs below which it says nothing: drawn anew from five that agree, all agree, and that is chance."""


@dataclass(frozen=True)
class Universe:
    """One specification: its choices, how often the claim holds there, and what may be said of it."""

    choices: Mapping[str, Any]
    wins: Floats  # by input: 1 where the claim holds, a half where both are equal
    error: str = ""

    @property
    def share(self) -> float:
        """Of inputs on which the claim holds."""
        known = self.wins[np.isfinite(self.wins)]
        return float(known.mean()) if len(known) else math.nan

    @property
    def difference(self) -> stats.Difference:
        """Of that share to a half."""
        return stats.paired(self.wins, np.full(len(self.wins), 0.5))

    @property
    def words(self) -> str:
        """Whether the claim survives here."""
        if self.error:
            return f"failed: {self.error}"
        if not math.isfinite(self.share):
            return "failed: the metric is not defined for any input"
        found = self.difference
        if found.p <= stats.LEVEL:
            return "holds" if found.value > 0 else "the other way round"
        return "undecided"


@dataclass(frozen=True)
class Multiverse:
    """In which share of specifications a claimed ranking survives: `print(multiverse)` lists them all."""

    claim: str
    metric: str
    universes: tuple[Universe, ...]

    @property
    def survives(self) -> float:
        """The share of specifications in which the claim holds on more than half of the inputs."""
        return float(np.mean([one.share > 0.5 for one in self._asked])) if self._asked else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Of that share: where it lies for 95 % of inputs drawn anew from these (a percentile bootstrap).

        The same inputs stand in every specification, so that all of them move together.
        """
        wins = np.array([one.wins for one in self._asked])
        if not len(wins) or wins.shape[1] < FEWEST:
            return 0.0, 1.0
        rng = generator(0, "multiverse")
        drawn = [_survived(wins[:, rng.integers(wins.shape[1], size=wins.shape[1])]) for _ in range(DRAWS)]
        low, high = np.quantile(drawn, (stats.LEVEL / 2, 1 - stats.LEVEL / 2))
        return float(low), float(high)

    @property
    def _asked(self) -> list[Universe]:
        """Specifications that could be tried, and in which the metric is defined."""
        return [one for one in self.universes if not one.error and math.isfinite(one.share)]

    def count(self, words: str) -> int:
        """In how many specifications it holds, is undecided, or is the other way round."""
        return sum(one.words == words for one in self.universes)

    def table(self) -> list[dict[str, Any]]:
        """A row for each specification."""
        return [{**one.choices, "share": one.share, "verdict": one.words} for one in self.universes]

    def to_json(self) -> dict[str, Any]:
        """Every number, as plain data."""
        low, high = self.interval
        return dict(plain({"claim": self.claim, "metric": self.metric, "survives": self.survives, "low": low, "high": high,
                           "specifications": [{**{name: str(value) for name, value in one.choices.items()}, "share": one.share,
                                               "inputs": int(np.isfinite(one.wins).sum()), "verdict": one.words}
                                              for one in self.universes]}))

    def __str__(self) -> str:
        """The answer, and every specification."""
        (low, high), tried = self.interval, len(self._asked)
        failed = f" ({len(self.universes) - tried} more could not be tried)" if tried < len(self.universes) else ""
        lines = [f"{self.claim}, by {self.metric}: holds on most inputs in {100 * self.survives:.0f} % ({100 * low:.0f} to "
                 f"{100 * high:.0f}) of {tried} specifications{failed}; beyond chance in {self.count('holds')}, the "
                 f"other way round in {self.count('the other way round')}, undecided in {self.count('undecided')}."]
        for one in self.universes:
            chosen = ", ".join(f"{name} {value}" for name, value in one.choices.items())
            there = int(np.isfinite(one.wins).sum())
            share = "" if one.words.startswith("failed") else f"{100 * one.share:.0f} % of {there} inputs, "
            lines.append(f"  {chosen or 'as usual'}: {share}{one.words}")
        return legible.lines(lines)


def multiverse(model: Any, x: Any, claim: str, metric: Any = "pixel_flipping", *, parts: Sequence[Any] = (),
               fill: Sequence[Any] = (), baseline: Sequence[str] = (), pooling: Sequence[str] = (), insist: bool = False,
               seed: int = 0, **options: Any) -> Multiverse:
    """Does "one explainer > another" hold however inputs are cut, hidden and pooled? Every combination is tried.

    `claim` names two methods, such as "occlusion > saliency", or one and random. `parts`, `fill` (what explainers hide parts
    behind), `baseline` (what the metric does) and `pooling` are lists of choices; what is not given stays as usual. Further
    options are those of wt.explain.
    """
    match = CLAIM.fullmatch(claim) if isinstance(claim, str) else None
    if match is None or match["first"] == match["second"]:
        raise ValueError(f"claim must say that one method is better than another, such as 'occlusion > random', got {claim!r}")
    names = [match["first"], match["second"]]
    judge = judging.chosen(metric)
    if len(judge) != 1:
        raise ValueError(f"a multiverse is of one metric, got {len(judge)}")
    given = {"parts": parts, "fill": fill, "baseline": baseline, "pooling": pooling}
    for name, values in given.items():
        if isinstance(values, str) or not isinstance(values, Sequence):
            raise TypeError(f"{name} must be a list of choices, got {values!r}; pass [{values!r}]")
    about = judge[0].about
    if len(baseline) and not about.hides:
        raise ValueError(f"{about.name} hides nothing behind a baseline, so that is no choice for it; leave baseline out")
    axes = {name: _distinct(values) for name, values in given.items() if len(values)}
    methods = [name for name in names if name != RANDOM]
    universes = []
    for combination in itertools.product(*axes.values()):
        choices = dict(zip(axes, combination, strict=True))
        try:
            found = measure(model, x, methods, judge, insist=insist, seed=seed, **options, **choices)
            refused = found.refused.get(judge[0].about.name, {})
            if refused:
                raise ValueError(next(iter(refused.values())))
            numbers = {**found.values[about.name]}
            if about.amounts and RANDOM in names:
                numbers[RANDOM] = found.chance[about.name][methods[0]]  # in the unit of the other one
            universes.append(Universe(choices, _wins(numbers, names, about.higher)))
        except (ValueError, TypeError) as error:
            if not axes:
                raise
            universes.append(Universe(choices, np.array([]), f"{error}"))
    if all(one.error for one in universes):
        raise ValueError(f"no specification could be tried: {universes[0].error}")
    return Multiverse(f"{names[0]} > {names[1]}", judge[0].about.name, tuple(universes))


def _distinct(values: Sequence[Any]) -> list[Any]:
    """Each choice once."""
    return [one for i, one in enumerate(values) if not any(_same(one, other) for other in values[:i])]


def _same(one: Any, other: Any) -> bool:
    return one is other or (isinstance(one, str | int | float) and isinstance(other, str | int | float) and one == other)


def _wins(values: Mapping[str, Floats], names: Sequence[str], higher: bool) -> Floats:
    first, second = (values[name] * (1 if higher else -1) for name in names)
    wins = np.where(np.isclose(first, second, rtol=1e-9, atol=1e-12), 0.5, (first > second) * 1.0)
    return np.asarray(np.where(np.isfinite(first) & np.isfinite(second), wins, np.nan))


def _survived(wins: Floats) -> float:
    """The share of rows whose mean, over what is there, is above a half."""
    there = np.isfinite(wins)
    return float(np.mean(np.where(there, wins - 0.5, 0).sum(axis=1) > 1e-12))
