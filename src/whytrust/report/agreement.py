"""Do the measures of an audit agree on who is best? Rank correlations of their rankings of explainers, with intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats as scipy_stats

from whytrust import stats
from whytrust.core import Floats, generator
from whytrust.pictures.html import Markup, tag
from whytrust.report.outcomes import Outcomes
from whytrust.report.words import Findings, section, table

LEAST, FEWEST = 4, 5
"""Explainers, and cases, below which there is no ranking to speak of: three fall into one order by chance too often."""
DRAWS, MOST_ORDERS = 1000, 7
TRIALS = ("flip", "recovery")


def agreements(tried: Outcomes) -> list[dict[str, Any]]:
    """For every two measures, the rank correlation of how they rank the explainers that both judged.

    An explainer's rank is its mean rank over the cases on which all of them were judged by both. The interval is where the
    correlation lies for 95 % of cases drawn anew from these (a percentile bootstrap): it says how much it would move with other
    inputs, not with other explainers. A jackknife would be wrong here, for ranks jump.
    """
    columns = {name: tried.measures[name].values for name in TRIALS if name in tried.measures} | _raw(tried)
    found = []
    for one, other in itertools.combinations(columns, 2):
        names = [name for name in tried.explainers if name in columns[one] and name in columns[other]]
        if len(names) < LEAST:
            continue
        first, second = (np.array([columns[which][name] for name in names]) for which in (one, other))
        there = np.isfinite(first).all(axis=0) & np.isfinite(second).all(axis=0)
        if there.sum() < FEWEST:
            continue
        ranks = [_ranks(values[:, there]) for values in (first, second)]
        whole = _correlation(*(r.mean(axis=1) for r in ranks))
        n, rng = ranks[0].shape[1], generator(0, "agreement", one, other)
        if not math.isfinite(whole):
            continue
        drawn = [_correlation(*(r[:, chosen].mean(axis=1) for r in ranks))
                 for chosen in (rng.integers(n, size=n) for _ in range(DRAWS))]
        low, high = np.nanquantile(drawn, (stats.LEVEL / 2, 1 - stats.LEVEL / 2))
        found.append({"first": one, "second": other, "explainers": len(names), "n": n, "value": whole, "low": float(low),
                      "high": float(high), "p": by_chance(*(r.mean(axis=1) for r in ranks))})
    return found


def _raw(tried: Outcomes) -> dict[str, dict[str, Floats]]:
    """Each metric's own numbers, turned so that larger is better: shares of random scores beaten tie where all beat them."""
    found: dict[str, dict[str, Floats]] = {}
    for metric in dict.fromkeys(name for trial in tried.trials for name in trial.get("metrics", {})):
        rows = [trial.get("metrics", {}).get(metric, {}) for trial in tried.trials]
        sign = 1.0 if all(row.get("higher", True) for row in rows) else -1.0
        found[metric] = {name: np.array([math.nan if row.get("values", {}).get(name) is None else sign * row["values"][name]
                                         for row in rows]) for name in tried.explainers
                         if any(row.get("values", {}).get(name) is not None for row in rows)}
    return found


def _ranks(values: Floats) -> Floats:
    """(explainers, cases) -> the rank of each explainer on each case, ties sharing theirs."""
    above = (values[:, None] > values[None]).sum(axis=1)
    equal = (values[:, None] == values[None]).sum(axis=1)
    return np.asarray(above + (equal - 1) / 2, dtype=np.float64)


def _correlation(one: Floats, other: Floats) -> float:
    """Spearman's, of mean ranks; NaN where one of the two ranks nobody."""
    first, second = (_ranks(values[:, None])[:, 0] for values in (one, other))
    first, second = first - first.mean(), second - second.mean()
    length = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / length if length > 0 else math.nan


def by_chance(one: Floats, other: Floats) -> float:
    """How often would two measures that know nothing of each other rank these explainers as much alike, or unlike?

    Exact, by every order, for up to seven; of more by Student's approximation. Four explainers can never be told from chance.
    """
    first, second = (_ranks(values[:, None])[:, 0] for values in (one, other))
    if not np.ptp(first) or not np.ptp(second):
        return 1.0
    if len(first) > MOST_ORDERS:
        return float(scipy_stats.spearmanr(first, second).pvalue)
    orders = np.array(list(itertools.permutations(second)))
    sums = orders @ (first - first.mean())
    own = float((first - first.mean()) @ second)
    return float((np.abs(sums) >= abs(own) - 1e-9).mean())


def agreement(findings: Findings) -> Markup | None:
    """The section: every two measures."""
    given: Sequence[Mapping[str, Any]] = findings.get("agreements") or []
    if not given:
        return None
    rows = [[f"{one['first']} and {one['second']}", f"{one['value']:+.2f}", f"{one['low']:+.2f} to {one['high']:+.2f}",
             "–" if one.get("p") is None else f"{one['p']:.0%}", str(one["explainers"]), str(one["n"]), _words(one)]
            for one in given]
    about = tag("p", "How alike two measures rank the explainers: +1 is the same order, −1 the opposite. The range says how "
                "far that moves with other cases. With few explainers few orders are possible: “by chance” is how often "
                "measures that have nothing to do with each other would come as near to +1 or −1.", class_="aside")
    return section("agreement", "Do the measures agree?", about, table(
        ["Measures", "Rank correlation", "95% range", "By chance", "Explainers", "Cases", "In words"], rows,
        "Agreement of measures"))


def _words(one: Mapping[str, Any]) -> str:
    if one.get("p") is None or one["p"] > stats.LEVEL:
        return "undecided: it could be chance"
    if one["low"] > 0:
        return "they agree"
    return "they contradict each other" if one["high"] < 0 else "undecided"
