"""What a run's records say: a column of numbers for each measure and contender, the table that every claim is made from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats
from whytrust.stats import areas

FULL = "full"
"""The strength of the attack as it was asked for."""
KS = (1, 3, 5)
CHANCE, GRAIN = 0.5, 0.1
"""Of metrics: a random explanation is before another as often as not; the least that one of five comparisons can show."""
BASELINES = ("oracle", "magnitude", "magnitude_mean", "blind", "random")
Record = Mapping[str, Any]
Trial = Mapping[str, Any]


@dataclass
class Measured:
    """One measure of every contender, a number a case; NaN where it does not apply.

    `chance` is the variance of a case's number if its parts were picked at random, `grain` the least that a case can show.
    `blind` has the numbers of each blind control; among the values, "blind" is the best of them, chosen on other cases.
    """

    about: str
    values: dict[str, Floats] = field(default_factory=dict)
    chance: Floats | None = None
    grain: float = 1.0
    rival: bool = True  # is magnitude a rival? Not where it finds everything by construction
    blind: dict[str, Floats] = field(default_factory=dict)

    def controls_of(self, name: str) -> dict[str, Floats]:
        """The blind controls that an explainer must beat: its own scores of other inputs, those of all, and the best of any.

        A control counts where it is known for at least every second case of the explainer. There are none where that is not
        so of its own scores of other inputs and of their imitation, without which a blind explainer could win.
        """
        cases = ~np.isnan(self.values[name])
        own = {control: column for control, column in self.blind.items() if control.partition(":")[2] in ("", name)
               and 2 * int((cases & ~np.isnan(column)).sum()) >= max(int(cases.sum()), 1)}
        return own | {"blind": self.values["blind"]} if {f"shuffled:{name}", f"imitation:{name}"} <= set(own) else {}

    def guess(self, sources: Sequence[str | None]) -> list[str | None]:
        """Of each case the blind control that does best on the other half of the run; its numbers become those of "blind"."""
        chosen = best_guesses(self.blind, sources)
        self.values["blind"] = np.array([math.nan if name is None else self.blind[name][i] for i, name in enumerate(chosen)])
        return chosen


@dataclass(frozen=True)
class Outcomes:
    """The cases of one strength, and every measure of them."""

    cases: tuple[Record, ...]
    trials: tuple[Trial, ...]
    sources: list[str | None]
    explainers: tuple[str, ...]
    measures: dict[str, Measured]
    guesses: Mapping[str, Sequence[str | None]] = field(default_factory=dict)
    """By "any" and "target": of each case the blind control that stands for all in its curve."""

    @property
    def shared(self) -> list[str | None] | None:
        """The cases' sources, where any are named."""
        return self.sources if any(s is not None for s in self.sources) else None


def known_mean(values: Floats) -> float:
    """The mean of what is known; -1 where nothing is."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else -1.0


def trial_of(record: Record, strength: str) -> Trial | None:
    """A case's trial at one strength of the attack."""
    found: Iterable[Trial] = record.get("trials") or ()
    return next((trial for trial in found if trial.get("strength") == strength), None)


def outcomes(records: Sequence[Record], strength: str = "full", explainers: Sequence[str] = ()) -> Outcomes:
    """Every measure of the cases that were fooled at this strength."""
    pairs = [(record, trial) for record in records if (trial := trial_of(record, strength)) is not None]
    cases, trials = tuple(r for r, _ in pairs), tuple(t for _, t in pairs)
    named = list(explainers) or sorted({name for t in trials for name in t["flip"]["any"]} - set(BASELINES))
    names = [n for n in named if any(n in t["flip"]["any"] for t in trials)]
    measures: dict[str, Measured] = {}
    for judge, label in (("any", "flip"), ("target", "flip_target")):
        measures |= _flips(trials, names, judge, label)
    measures |= _positive(trials, names) | _recovery(cases, trials, names) | _metrics(trials, names)
    sources = [r.get("source") for r in cases]
    chosen = {name: measured.guess(sources) for name, measured in measures.items() if measured.blind}
    if any("text" in case for case in cases):  # there, what was changed are the swapped words themselves
        for measured in measures.values():
            measured.rival = False
    guesses = {judge: chosen[label] for judge, label in (("any", "flip"), ("target", "flip_target")) if label in chosen}
    return Outcomes(cases, trials, sources, tuple(names), measures, guesses)


def best_guesses(blind: Mapping[str, Floats], sources: Sequence[str | None]) -> list[str | None]:
    """The blind control to compare each case with, chosen before the case is seen.

    Every second source is one half of the run. A case gets the control with the highest mean on the other half, among those
    that have a number there in at least every second case, and a number of the case itself.
    """
    names, table = list(blind), np.array(list(blind.values()))
    order = {source: i for i, source in enumerate(dict.fromkeys(one or i for i, one in enumerate(sources)))}
    odd = np.array([order[one or i] % 2 == 1 for i, one in enumerate(sources)])
    found: list[str | None] = [None] * len(sources)
    for half in (odd, ~odd):
        seen = table[:, ~half] if (~half).any() else table
        known = ~np.isnan(seen)
        means = np.where(known, seen, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        best_first = np.argsort(-np.where(2 * known.sum(axis=1) >= seen.shape[1], means, -1.0), kind="stable")
        for i in np.flatnonzero(half):
            found[i] = next((names[j] for j in best_first if not np.isnan(table[j, i])), None)
    return found


def numbers(bits: str) -> Floats:
    """Flips that were stored as a text."""
    return np.frombuffer(bits.encode(), dtype=np.uint8).astype(np.float64) - ord("0")


def curve(trial: Trial, name: str, judge: str) -> Floats | None:
    """A contender's flips for each k of the trial; random's expectation. None where it failed."""
    if name == "random":
        return np.asarray(trial["random"][judge], dtype=np.float64)
    bits = trial["flip"][judge].get(name)
    return None if bits is None else numbers(bits)


def at(trial: Trial, name: str, judge: str, k: int) -> float:
    """A contender's flip with k parts; NaN where there are not so many, or it failed."""
    values = curve(trial, name, judge)
    return math.nan if values is None or k not in trial["k"] else float(values[trial["k"].index(k)])


def _flips(trials: Sequence[Trial], names: Sequence[str], judge: str, label: str) -> dict[str, Measured]:
    goal = "any other label" if judge == "any" else "the label that the attack led to"
    dims = [trial["k"][-1] for trial in trials]
    whole = Measured(f"flips to {goal}, mean over k = 1 … d − 1", grain=1 / max(float(np.median(dims)) - 1, 1) if dims else 1.0)
    whole.chance = np.array([trial["random_variance"][judge] for trial in trials], dtype=np.float64)
    best = {k: Measured(f"the {k} best parts flip the label to {goal}" if k > 1 else f"the best part flips the label to {goal}")
            for k in KS}
    controls = dict.fromkeys(name for trial in trials for name in trial.get("blind", {}).get(judge, {}))
    known = [name for name in BASELINES if name != "blind"]
    for name, blind in (*((name, False) for name in (*names, *known)), *((name, True) for name in controls)):
        for one in (whole, *best.values()):
            (one.blind if blind else one.values)[name] = np.full(len(trials), math.nan)
        for places, ks, curves in laid_out(trials, name, judge, blind):
            (whole.blind if blind else whole.values)[name][places] = areas(curves, ks, ks[-1])
            for k in KS:
                if k < ks[-1] and k in ks:
                    (best[k].blind if blind else best[k].values)[name][places] = curves[:, ks.index(k)]
    for one in best.values():
        one.chance = one.values["random"] * (1 - one.values["random"])
    return {label: whole, **{f"{label}@{k}": one for k, one in best.items()}}


def laid_out(trials: Sequence[Trial], name: str, judge: str,
             blind: bool = False) -> list[tuple[NDArray[np.intp], list[int], Floats]]:
    """A contender's or a blind control's flips, a row a trial: for each list of ks, (which trials, the ks, their rows).

    Trials that it failed on are in none.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, trial in enumerate(trials):
        there = trial.get("blind", {}).get(judge, {}) if blind else trial["flip"][judge]
        if (name == "random" and not blind) or there.get(name) is not None:
            groups.setdefault(tuple(trial["k"]), []).append(i)
    found: list[tuple[NDArray[np.intp], list[int], Floats]] = []
    for ks, places in groups.items():
        if blind:
            rows: Any = [trials[i]["blind"][judge][name] for i in places]
        elif name == "random":
            rows = [trials[i]["random"][judge] for i in places]
        else:
            rows = numbers("".join(trials[i]["flip"][judge][name] for i in places))
        found.append((np.array(places, dtype=np.intp), list(ks), np.reshape(np.asarray(rows, dtype=np.float64), (-1, len(ks)))))
    return found


def _positive(trials: Sequence[Trial], names: Sequence[str]) -> dict[str, Measured]:
    """All parts with a positive score; each explainer has its own rival, for each lays over its own number of parts."""
    own = {n: [t.get("positive", {}).get(n) for t in trials] for n in names}
    found = {}
    for name, rows in own.items():
        if not any(rows):
            continue
        column = {what: np.array([math.nan if not row else row["any"][what] for row in rows])
                  for what in ("flip", "magnitude", "random")}
        found[f"all_positive:{name}"] = Measured(
            f"all parts to which {name} gives a positive score, against as many others",
            {name: column["flip"], "magnitude": column["magnitude"], "random": column["random"]},
            column["random"] * (1 - column["random"]))
    return found


def _metrics(trials: Sequence[Trial], names: Sequence[str]) -> dict[str, Measured]:
    """How often each explanation is better than random scores, by each metric."""
    found = {}
    for metric in dict.fromkeys(name for t in trials for name in t.get("metrics", {})):
        rows = [t.get("metrics", {}).get(metric, {}).get("wins", {}) for t in trials]
        values = {name: np.array([math.nan if row.get(name) is None else row[name] for row in rows]) for name in names}
        judged = {name: column for name, column in values.items() if not np.isnan(column).all()}
        if judged:
            there = np.any([~np.isnan(column) for column in judged.values()], axis=0)
            found[metric] = Measured(f"explanations that {metric} puts before random scores",
                                     {**judged, "random": np.where(there, CHANCE, math.nan)}, grain=GRAIN, rival=False)
    return found


def _recovery(cases: Sequence[Record], trials: Sequence[Trial], names: Sequence[str]) -> dict[str, Measured]:
    found: dict[str, Measured] = {}
    ks = sorted({int(k) for t in trials for k in t.get("recovery", {})})
    dims = np.array([case["d"] for case in cases], dtype=np.float64)
    for k in ks:
        rows = [t.get("recovery", {}).get(str(k), {}) for t in trials]
        still = np.array([bool(row.get("flipped")) for row in rows])
        share = Measured(f"share of the {k} changed parts among the {k} best" if k > 1 else "the one changed part is the best",
                         grain=1 / k, rival=False)
        for name in (*names, "magnitude"):
            share.values[name] = np.array([row["found"].get(name, math.nan) / k if row.get("flipped") else math.nan
                                           for row in rows])
        for name in dict.fromkeys(name for row in rows for name in row.get("blind", {})):
            share.blind[name] = np.array([row.get("blind", {}).get(name, math.nan) / k if row.get("flipped") else math.nan
                                          for row in rows])
        share.values["random"] = np.where(still, k / dims, math.nan)
        share.values["oracle"] = np.where(still, 1.0, math.nan)
        p = k / dims
        share.chance = np.where(still, p * (1 - p) * (dims - k) / np.maximum(dims - 1, 1) / k, math.nan)
        found[f"recovery@{k}"] = share
        pixels = Measured(f"share of the largest pixels, as many as were changed, that lie in the {k} changed parts "
                          "(Göpfert et al.)", rival=False, grain=0.05)
        for name in names:
            pixels.values[name] = np.array([row.get("overlap", {}).get(name, math.nan) for row in rows])
        pixels.values["random"] = np.array([row.get("overlap_random", math.nan) for row in rows])
        if not np.isnan(pixels.values["random"]).all():
            found[f"overlap@{k}"] = pixels
    if ks:
        found["recovery"] = _pooled([found[f"recovery@{k}"] for k in ks], ks)
    return found


def _pooled(measures: Sequence[Measured], ks: Sequence[int]) -> Measured:
    """The mean over every k at which a case's label still flips; an explainer that fails at one of them has none."""
    values = {name: _mean_of_all([m.values[name] for m in measures], measures) for name in measures[0].values}
    controls = dict.fromkeys(name for m in measures for name in m.blind)
    nothing = np.full(len(values["random"]), math.nan)
    blind = {name: _mean_of_all([m.blind.get(name, nothing) for m in measures], measures) for name in controls}
    chances = [m.chance for m in measures if m.chance is not None]
    words = ", ".join(map(str, ks[:-1])) + (f" or {ks[-1]}" if len(ks) > 1 else str(ks[0]))
    # The same parts are among the k of every k, so that their chances do not average out: the largest is taken.
    return Measured(f"share of the changed parts found, where only {words} were changed", values,
                    np.max([np.where(np.isnan(c), -1, c) for c in chances], axis=0), 1 / max(ks), rival=False, blind=blind)


def _mean_of_all(columns: Sequence[Floats], measures: Sequence[Measured]) -> Floats:
    """The mean over the k that apply to a case; NaN where one of these is missing."""
    missed = np.any([~np.isnan(m.values["random"]) & np.isnan(column) for m, column in zip(measures, columns, strict=True)],
                    axis=0)
    return np.where(missed, math.nan, _mean(columns))


def _mean(columns: Sequence[Floats]) -> Floats:
    """The mean of what is there; NaN where nothing is."""
    stacked = np.array(columns)
    there = ~np.isnan(stacked)
    count: NDArray[Any] = there.sum(axis=0)
    total = np.where(there, stacked, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)
