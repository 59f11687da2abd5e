"""What the lab's numbers prove of each metric: passed, failed or undecided, test by test, with intervals and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

from whytrust.core import Floats
from whytrust.measures.judged import About
from whytrust.stats import LEVEL, Difference, Estimate, equivalent, holm, jackknife, paired
from whytrust.studies.metrics_cases import GRADES

Outcome = Literal["passed", "failed", "undecided"]
TESTS = {
    "truth": "the truth comes before spoilt copies of it and before its opposite, and these copies before a random order",
    "baseline": "the same behind every baseline, and the same explanations are in the same order there more often than not",
    "shared": "what every class has more of is seen, though no decision hangs on it",
    "scale": "scores in another unit are judged alike",
    "constant": "a constant added to every class changes no comparison",
    "isolation": "scattered parts are judged like adjoining ones that tell as little",
    "halves": "the order that one half of the inputs gives holds in the other",
    "asked": "of an adversarial trial: a true account of the score, which explainers are asked for, comes before spoilt copies",
}
"""Every test, and what passes it."""
CHANCE = 0.5
ALIKE = 0.1
"""A rate within this of a half is as good as tossing a coin."""
BOUGHT = 0.1
"""How much of the way from a random order to the truth being scattered may buy."""
SEEN = 10
"""Inputs after which a metric that has never told two things apart is called blind to their difference."""
ROUNDING, TINY = 1e-6, 1e-12
"""Numbers that differ by no more than this share of what is usual are equal: nets reckon in single precision."""
STEP = 1 / 6
"""The least that one case can show: a tie among three comparisons."""


@dataclass(frozen=True)
class Found:
    """One test of one metric in one lab: a number with its interval, what it means, and what would have been right."""

    metric: str
    lab: str
    test: str
    what: str  # of several numbers of one test, which
    outcome: Outcome
    value: float
    low: float
    high: float
    n: int
    words: str

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**self.__dict__}


@dataclass(frozen=True)
class _Rate:
    """How often a metric said what is right, before it is judged."""

    metric: str
    lab: str
    test: str
    what: str
    difference: Difference
    blind: bool = False  # were both equal on every input?


@dataclass(frozen=True)
class _Bought:
    """How much of the way from a random order to the truth being scattered buys, before it is judged."""

    metric: str
    lab: str
    estimate: Estimate

    @property
    def p_beyond(self) -> float:
        """Of "it is no more than may be bought, one way or the other"."""
        return min(1.0, 2 * self._tail(abs(self.estimate.value) - BOUGHT))

    @property
    def p_within(self) -> float:
        """Of "it is more than may be bought, one way or the other"."""
        return self._tail(BOUGHT - abs(self.estimate.value))

    def _tail(self, distance: float) -> float:
        e = self.estimate
        quantile = float(special.stdtrit(e.n - 1, 1 - LEVEL / 2))
        error = max((e.high - e.low) / 2 / quantile, 1e-12)
        return float(special.stdtr(e.n - 1, -distance / error))


def findings(records: Iterable[Mapping[str, Any]], abouts: Mapping[str, About]) -> list[Found]:
    """Every test of every metric in every lab; p-values are adjusted (Holm) for all rates of one test."""
    labs: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        if record.get("status", "ok") == "ok":
            labs.setdefault(record["lab"], []).append(record)
    rates: list[_Rate] = []
    bought: list[_Bought] = []
    found: list[Found] = []
    for lab, some in labs.items():
        for metric, about in abouts.items():
            errors = [record["errors"][metric] for record in some if metric in record["errors"]]
            if errors:
                found.append(Found(metric, lab, "truth", "raised", "failed", math.nan, math.nan, math.nan, len(some),
                                   f"it could not be tried: on {len(errors)} of {len(some)} inputs it raised {errors[0]}"))
                continue
            values = _values([record["order"] for record in some], metric, about)
            if values is None:
                continue
            rates += _of_truth(metric, lab, about, values, some)
            shared = _values([record["shared"] for record in some], metric, about)
            asked = _values([record.get("asked", {}) for record in some], metric, about)
            rates += [] if asked is None else _truth(metric, lab, "asked", "", asked)
            if shared is not None:
                rates.append(_Rate(metric, lab, "shared", "the new truth before the old", _won(shared[:, 0], shared[:, 1])))
            found += _invariances(metric, lab, about, values, some)
            bought += [one for one in [_bought(metric, lab, about, values, some)] if one is not None]
            rates += [one for one in [_halves(metric, lab, values)] if one is not None]
    return [*_judged([rate for rate in rates if rate.difference.n > 1]), *found, *_isolated(bought)]


def _of_truth(metric: str, lab: str, about: About, values: Floats, some: Sequence[Mapping[str, Any]]) -> list[_Rate]:
    """How often the truth is found, behind the usual baseline and behind others, and how far a baseline changes the order."""
    rates = _truth(metric, lab, "truth", "", values)
    opposite = _values([record["opposite"] for record in some], metric, about)
    if opposite is not None:
        rates.append(_Rate(metric, lab, "truth", "the truth before its opposite", _won(opposite[:, 0], opposite[:, 1])))
    for baseline in some[0]["baseline"]:
        behind = _values([record["baseline"][baseline] for record in some], metric, about)
        rates += [] if behind is None else _truth(metric, lab, "baseline", f" behind {baseline}", behind)
        same = _values([record["same"][baseline] for record in some], metric, about)
        if same is not None:
            rates.append(_Rate(metric, lab, "baseline", f"pairs in the same order behind {baseline}", paired(
                _alike(values, same), np.full(len(values), CHANCE), grain=1 / len(_pairs(values.shape[1])))))
    return rates


def _pairs(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(i)]


def _alike(one: Floats, other: Floats) -> Floats:
    """By case, the share of pairs of contenders that both put in the same order; a tie in one of them counts by half."""
    same = [1 - np.abs(_wins(one[:, i], one[:, j]) - _wins(other[:, i], other[:, j])) for i, j in _pairs(one.shape[1])]
    return np.asarray(np.mean(same, axis=0))


def _values(rows: Sequence[Mapping[str, Any]], metric: str, about: About) -> Floats | None:
    """(cases, contenders), turned so that larger is better; None where it was not asked."""
    if any(metric not in row for row in rows) or not rows:
        return None
    values = np.array([row[metric] for row in rows], dtype=np.float64)
    return np.asarray(values if about.higher else -values)


def _wins(better: Floats, worse: Floats) -> Floats:
    """1 where the one is larger, a half where both are equal but for rounding, NaN where one is not defined."""
    size = np.maximum(np.abs(better), np.abs(worse))
    usual = float(np.nanmedian(size)) if np.isfinite(size).any() else 0.0
    near = np.maximum(ROUNDING * np.maximum(size, usual), TINY)
    wins = np.where(np.abs(better - worse) <= near, 0.5, (better > worse).astype(np.float64))
    return np.asarray(np.where(np.isnan(better) | np.isnan(worse), np.nan, wins))


def _won(better: Floats, worse: Floats) -> Difference:
    wins = _wins(better, worse)
    return paired(wins, np.full(len(wins), CHANCE))


def _truth(metric: str, lab: str, test: str, where: str, values: Floats) -> list[_Rate]:
    """How often the truth comes before what was spoilt, and that before a random order: each case's mean over the grades."""
    between = range(1, len(GRADES) - 1)
    above = np.mean([_wins(values[:, 0], values[:, i]) for i in between], axis=0)
    below = np.mean([_wins(values[:, i], values[:, -1]) for i in between], axis=0)
    return [_Rate(metric, lab, test, what + where, paired(wins, np.full(len(wins), CHANCE), grain=STEP), _blind(wins))
            for what, wins in (("the truth before spoilt copies", above), ("spoilt copies before a random order", below))]


def _blind(wins: Floats) -> bool:
    """Is there not one input on which the two differ?"""
    return len(wins) >= SEEN and bool(np.all(wins == CHANCE))


def _judged(rates: Sequence[_Rate]) -> list[Found]:
    """Each rate beside a half: above it passes; below it, as good as equal, or the same number for everything, fails."""
    found: list[Found] = []
    for test in TESTS:
        some = [rate for rate in rates if rate.test == test]
        if not some:
            continue
        apart = holm([rate.difference.p for rate in some])
        same = holm([equivalent(rate.difference, ALIKE) for rate in some])
        for rate, p, p_same in zip(some, apart, same, strict=True):
            d = rate.difference
            share, low, high = (float(np.clip(CHANCE + x, 0, 1)) for x in (d.value, d.low, d.high))
            outcome: Outcome = "undecided"
            words = f"{rate.what} in {_percent(share)} ({_percent(low)} to {_percent(high)}) of comparisons"
            if rate.blind:
                outcome, words = "failed", f"{rate.what}: it gives both the same number, whatever the input"
            elif p_same <= LEVEL:
                outcome, words = "failed", f"{words}: as good as tossing a coin"
            elif p <= LEVEL:
                outcome = "passed" if d.value > 0 else "failed"
                words += ": more often the other way" * (d.value < 0)
            found.append(Found(rate.metric, rate.lab, test, rate.what, outcome, share, low, high, d.n, words))
    return found


def _invariances(metric: str, lab: str, about: About, values: Floats, some: Sequence[Mapping[str, Any]]) -> Iterable[Found]:
    """What must not change at all: one case in which it does is enough."""
    scaled = _values([record["scale"] for record in some], metric, about)
    if scaled is not None and not about.amounts:
        kept = np.isclose(scaled, values, rtol=1e-6, atol=1e-9, equal_nan=True).all(axis=1)
        yield _exact(metric, lab, "scale", kept, "the same number for scores in another unit")
    raised = _values([record["constant"] for record in some], metric, about)
    if raised is not None:
        pairs = _pairs(values.shape[1])
        kept = np.array([all(_same(_wins(v[i], v[j]), _wins(r[i], r[j])) for i, j in pairs)
                         for v, r in zip(values, raised, strict=True)])
        yield _exact(metric, lab, "constant", kept, "the same order of explanations with a constant added to every class")


def _same(one: Floats, other: Floats) -> bool:
    """The same comparison; a tie may be broken by rounding."""
    return bool(np.isnan(one) == np.isnan(other) and (np.isnan(one) or abs(one - other) < CHANCE or CHANCE in (one, other)))


def _exact(metric: str, lab: str, test: str, kept: Any, what: str) -> Found:
    share = float(np.mean(kept))
    return Found(metric, lab, test, what, "passed" if share == 1 else "failed", share, share, share, len(kept),
                 f"{what} in {_percent(share)} of inputs")


def _bought(metric: str, lab: str, about: About, values: Floats, some: Sequence[Mapping[str, Any]]) -> _Bought | None:
    """How much of the way from a random order to the truth it buys to be scattered; None where there is no such way."""
    orders = _values([record["isolation"] for record in some], metric, about)
    whole = np.isfinite(values[:, [0, -1]]).all(axis=1)
    gap = float((values[whole, 0] - values[whole, -1]).mean()) if whole.any() else 0.0
    if orders is None or gap <= max(ROUNDING * float(np.abs(values[whole]).max(initial=0.0)), TINY):
        return None
    bought = (orders[:, ::2] - orders[:, 1::2]).mean(axis=1) / gap
    bought = bought[np.isfinite(bought)]
    if len(bought) < SEEN:
        return None
    return _Bought(metric, lab, jackknife(float(bought.mean()), (bought.sum() - bought) / (len(bought) - 1)))


def _isolated(some: Sequence[_Bought]) -> Iterable[Found]:
    """Each of these beside what may be bought."""
    beyond, within = holm([one.p_beyond for one in some]), holm([one.p_within for one in some])
    for one, p_beyond, p_within in zip(some, beyond, within, strict=True):
        e = one.estimate
        outcome: Outcome = "passed" if p_within <= LEVEL else "failed" if p_beyond <= LEVEL else "undecided"
        words = (f"being {'scattered' if e.value >= 0 else 'adjoining'} buys {_percent(abs(e.value))} of the way from a random "
                 f"order to the truth ({_percent(e.low)} to {_percent(e.high)})")
        yield Found(one.metric, one.lab, "isolation", "scattered beside adjoining", outcome, e.value, e.low, e.high, e.n, words)


def _halves(metric: str, lab: str, values: Floats) -> _Rate | None:
    """How often does the order that one half of the inputs gives hold on an input of the other half?

    Pair by pair of contenders. Inputs of the second half know nothing of the first, nor of each other, so that their mean has
    an honest interval, and noise comes to a half. Were each half judged by the other, both would agree or disagree together.
    """
    known = values[np.isfinite(values).all(axis=1)]
    if len(known) < 4:
        return None
    means, rest, pairs = known[::2].mean(axis=0), known[1::2], _pairs(known.shape[1])
    order = np.array([_wins(means[i:i + 1], means[j:j + 1])[0] for i, j in pairs])
    wins = np.array([_wins(rest[:, i], rest[:, j]) for i, j in pairs])
    told = order != CHANCE  # what the first half finds equal is no order
    held = 1 - np.abs(wins - order[:, None])[told].mean(axis=0) if told.any() else np.full(len(rest), CHANCE)
    return _Rate(metric, lab, "halves", "the order that one half of the inputs gives holds in the other", paired(
        held, np.full(len(held), CHANCE), grain=1 / len(pairs)), not told.any())


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
