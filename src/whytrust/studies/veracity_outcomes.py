"""What a run of `VeracityStudy` holds: flips, recoveries and fidelities of each excerpt, as arrays to test and average.

Excerpts of one song share a perturbation, so songs are the sources of every interval and every test.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from whytrust import stats
from whytrust.core import Floats
from whytrust.report import outcomes
from whytrust.studies.veracity_published import DIRECTIONS, SIGNALS

K, KS, PARTS = 3, (1, 3, 5), 20
BASELINES = ("oracle", "magnitude", "random")
NAMES = {"lime": "LIME", "magnitude": "norm", "random": "random, expected", "oracle": "oracle: best set known"}
"""What the papers call each; they have the first two."""
CELLS = tuple((signal, direction) for direction in DIRECTIONS for signal in SIGNALS)
"""What is attacked, and what the detector said before: in the order of the panels of Figures 2 and 3."""
DRAWS = 0.1
"""The least that random's expectation, the mean of ten draws, can show."""
Record = Mapping[str, Any]


def cell_name(signal: str, direction: str) -> str:
    """As the papers head their panels."""
    return f"{DIRECTIONS[direction]} ({SIGNALS[signal]})"


@dataclass(frozen=True, eq=False)
class Run:
    """The records of a run, finished or not."""

    records: tuple[Record, ...]

    def of(self, kind: str, **wanted: Any) -> list[Record]:
        """Those of one kind that came to something, and of these the ones with the given values."""
        return [r for r in self.records if r.get("kind") == kind and r["status"] == "ok"
                and all(r[name] == value for name, value in wanted.items())]

    @cached_property
    def cells(self) -> dict[tuple[str, str], Excerpts]:
        """The excerpts of each signal and direction."""
        return {cell: Excerpts(tuple(self.of("excerpts", signal=cell[0], direction=cell[1]))) for cell in CELLS}

    def attacks(self, signal: str) -> list[Record]:
        """What came of the attack on each song, once, whether or not an excerpt was found in it."""
        found = {r["song"]: {**r["attack"], "song": r["song"]} for r in self.records
                 if r.get("kind") == "excerpts" and r.get("signal") == signal and r.get("attack")}
        return list(found.values())


@dataclass(frozen=True, eq=False)
class Excerpts:
    """Adversarial excerpts with their trials."""

    rows: tuple[Record, ...]

    @property
    def songs(self) -> list[str]:
        """The song of each: what is independent."""
        return [row["song"] for row in self.rows]

    def at(self, name: str, k: int = K) -> Floats:
        """Whether the first k segments flip each answer; NaN where the explainer was not run."""
        return np.array([outcomes.at(row["trial"], name, "any", k) for row in self.rows])

    def curve(self, name: str) -> Floats:
        """(rows, 20): whether the first k segments flip the answer, for every k."""
        return np.array([[outcomes.at(row["trial"], name, "any", k) for k in range(1, PARTS + 1)]
                         for row in self.rows]).reshape(len(self.rows), PARTS)

    def area(self, name: str) -> Floats:
        """The mean flip over k = 1 … 19; with all 20 everything flips."""
        return np.asarray(self.curve(name)[:, :-1].mean(axis=1))

    def positive(self, what: str, name: str = "lime") -> Floats:
        """Whether all segments of positive weight flip the answer, or as many by the norm, or at random."""
        return np.array([float(row["trial"]["positive"][name]["any"][what]) if name in row["trial"]["positive"] else math.nan
                         for row in self.rows])

    def counted(self, name: str = "lime") -> Floats:
        """How many segments have a positive weight."""
        return np.array([row["trial"]["positive"][name]["k"] if name in row["trial"]["positive"] else math.nan
                         for row in self.rows])

    def recovered(self, k: int, name: str = "lime") -> Floats:
        """How many of the only k changed segments are among the first k; NaN where they alone do not flip the answer."""
        tried = [row["trial"]["recovery"].get(str(k), {}) for row in self.rows]
        return np.array([float(one["found"].get(name, math.nan)) if one.get("flipped") else math.nan for one in tried])

    def still(self, k: int) -> int:
        """Excerpts whose answer the k largest segments alone flip."""
        return sum(bool(row["trial"]["recovery"].get(str(k), {}).get("flipped")) for row in self.rows)

    def fidelity(self, k: int | None = None, name: str = "lime") -> Floats:
        """How well the local model follows the detector: of the whole adversary, or where only k segments were changed."""
        each = [row["trial"] if k is None else row["trial"]["recovery"].get(str(k), {}) for row in self.rows]
        found = [one.get("fidelity", {}).get(name, {}).get("fidelity") for one in each]
        return np.array([math.nan if one is None else float(one) for one in found])

    def having(self, name: str) -> Excerpts:
        """Those on which this explainer was run too."""
        return replace(self, rows=tuple(row for row in self.rows if name in row["trial"]["scores"]))


def joined(excerpts: Sequence[Excerpts]) -> Excerpts:
    """Several cells as one."""
    return Excerpts(tuple(row for some in excerpts for row in some.rows))


def chance(d: int, k: int, found: int) -> float:
    """The chance that k of d segments drawn at random hold so many of k given ones."""
    return math.comb(k, found) * math.comb(d - k, k - found) / math.comb(d, k)


# --- a number that may tell hits from misses ---------------------------------------------------------------------------


def told_apart(values: Floats, hits: Floats, sources: Sequence[Hashable]) -> stats.Rate | None:
    """How often is a number larger for a hit than for a miss, where cases share sources? .5 is no better than a coin.

    The area and its interval as `stats.auc` has them, and as wide as the variance between sources says (Obuchowski 1997, on the
    logit scale, with Student's quantile for the sources of the side that has fewer); nothing is known where one side is of one
    source. Where hits and misses are perfectly apart, a source counts as one case. `hits` are 1 and 0; NaNs are left out; None
    where there are no hits, or no misses. It misleads with a handful of sources, which say little of how far sources differ.
    """
    there = ~(np.isnan(values) | np.isnan(hits))
    values, hit = values[there], hits[there] > 0
    codes = np.unique([str(source) for source, kept in zip(sources, there, strict=True) if kept], return_inverse=True)[1]
    found = stats.auc(values[hit], values[~hit])
    if found is None:
        return None
    count = int(codes.max()) + 1
    sides = (hit, ~hit)
    own = [len(np.unique(codes[side])) for side in sides]
    if min(own) == 1:
        return replace(found, low=0.0, high=1.0, sources=count)
    larger = (1 + np.sign(values[hit][:, None] - values[~hit][None, :])) / 2
    of_hits, of_misses = larger.mean(axis=1), larger.mean(axis=0)
    parts = [math.sqrt(of / (of - 1)) * np.bincount(codes[side], weights=each - found.value, minlength=count) / side.sum()
             for side, each, of in zip(sides, (of_hits, of_misses), own, strict=True)]
    error = math.sqrt(float(((parts[0] + parts[1]) ** 2).sum()))
    if not 0 < found.value < 1 or not error:
        apart = stats.auc(np.full(own[0], found.value), np.full(own[1], 1 - found.value))  # a case a source
        return replace(found, low=min(apart.low, found.value), high=max(apart.high, found.value), sources=count) \
            if apart is not None else found
    place = float(special.logit(found.value))
    reach = float(special.stdtrit(min(own) - 1, 1 - stats.LEVEL / 2)) * error / (found.value * (1 - found.value))
    return replace(found, low=min(found.low, float(special.expit(place - reach))),
                   high=max(found.high, float(special.expit(place + reach))), sources=count)
