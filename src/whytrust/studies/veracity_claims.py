"""What Praher et al. (2021) and Hoedt et al. (2022) found on sound, asked of a run: each finding as tests on its own excerpts.

Excerpts of one song count as one source. The same songs are in all four settings, so each setting is tested by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.core import Floats
from whytrust.studies.plausible_claims import tested, verdict
from whytrust.studies.veracity_outcomes import KS, PARTS, Excerpts, K, Run, cell_name, joined, told_apart

USEFUL = 0.7
"""An area under the curve from which on a score is usually called of some use to tell two kinds apart."""
AGREED = 0.95
"""The share of the three best segments that two explanations must have in common to count as settled."""
FINE = 1 / (PARTS - 1)
"""The least that a case can show where its number is a mean over k, or as fine as one."""
Pairs = dict[str, tuple[Floats, Floats]]
"""Two numbers a row, the larger one first where the paper is right."""


def claims(run: Run, samples: int | None) -> list[dict[str, Any]]:
    """The papers' findings on sound; each difference is positive where what they say is so here too."""
    cells = {cell_name(*cell): some for cell, some in run.cells.items()}
    claim = Claims()
    _of_drawings(run, claim)
    _of_the_attack(run, claim)
    _of_flips(cells, claim)
    _of_recovery(cells, claim)
    _of_fidelity(cells, claim)
    _of_contents(joined(list(cells.values())), claim)
    _of_settling(run, claim, samples)
    return claim.made


# --- the findings -----------------------------------------------------------------------------------------------------


def _of_drawings(run: Run, claim: Claims) -> None:
    made = run.of("drawings")
    songs = [r["song"] for r in made]
    hits, expected = (np.array([r[what] / K for r in made]) for what in ("hits", "expected"))
    spread = expected * (1 - expected) * (PARTS - K) / (PARTS - 1) / K
    claim("drawings", "Fig. 1", "LIME finds what was drawn, beyond what chance finds of so many segments",
          {f"the best {K}": stats.paired(hits, expected, songs, grain=1 / K, chance=spread)})
    usual_hits = np.array([r["hits_before"] / K for r in made])
    claim("drawings", "ours", "LIME’s best segments are on the drawing more often than those that it named without one",
          {f"the best {K}": stats.paired(hits, usual_hits, songs, grain=1 / K)})
    adversaries = joined(list(run.cells.values()))
    usual = {song: np.nanmean(values) for song in set(songs)
             if (values := adversaries.fidelity()[np.array([s == song for s in adversaries.songs], dtype=bool)]).size
             and not np.isnan(values).all()}
    own = _numbers([r["fidelity"] for r in made])
    theirs = _numbers([usual.get(song) for song in songs])
    claim("drawings", "§ 5.1", "with a fidelity above that of the adversaries of the same song",
          {"R²": stats.paired(np.clip(own, 0, 1), np.clip(theirs, 0, 1), songs, grain=FINE)})


def _of_the_attack(run: Run, claim: Claims) -> None:
    """A song is one case here, however long."""
    shares = {signal: {one["song"]: one["flipped"] / one["frames"] for one in run.attacks(signal) if one["frames"]}
              for signal in ("waveform", "magnitude")}
    both = [song for song in shares["waveform"] if song in shares["magnitude"]]
    first, second = (np.array([shares[signal][song] for song in both]) for signal in ("waveform", "magnitude"))
    claim("attack", "§ 4.3", "attacks on the waveform turn more frames than attacks on the spectrogram",
          {"share of a song’s frames": stats.paired(first, second, both, grain=FINE)})


def _of_flips(cells: Mapping[str, Excerpts], claim: Claims) -> None:
    at = {name: {cell: some.at(name) for cell, some in cells.items()} for name in ("lime", "random")}
    claim.paired("flips", "Table 1", f"in most cases {K} segments do not flip the label", cells,
                 {cell: (1 - rates, rates) for cell, rates in at["lime"].items()}, times=0.5)
    claim.paired("flips", "Fig. 2", "segments chosen by their norm flip more labels than LIME’s (mean over k = 1 … 19)", cells,
                 {cell: (some.area("magnitude"), some.area("lime")) for cell, some in cells.items()}, grain=FINE)
    claim.paired("flips", "ours", "LIME’s segments flip more labels than random ones (mean over k = 1 … 19)", cells,
                 {cell: (some.area("lime"), some.area("random")) for cell, some in cells.items()}, grain=FINE)
    claim.paired("positive", "Table 2", "as many segments by their norm flip more labels than all of positive weight", cells,
                 {cell: (some.positive("magnitude"), some.positive("flip")) for cell, some in cells.items()})
    claim.paired("positive", "ours", "all segments of positive weight flip more labels than as many random ones", cells,
                 {cell: (some.positive("flip"), some.positive("random")) for cell, some in cells.items()})


def _of_recovery(cells: Mapping[str, Excerpts], claim: Claims) -> None:
    found = {k: {cell: some.recovered(k) for cell, some in cells.items()} for k in KS}
    claim.paired("recovery", "Fig. 3", "the one changed segment is missed in most cases (k = 1)", cells,
                 {cell: (1 - values, values) for cell, values in found[1].items()}, times=0.5)
    for k in KS[1:]:
        whole = {cell: np.where(np.isnan(values), math.nan, values == k) for cell, values in found[k].items()}
        claim.paired("recovery", "Fig. 3", f"not all of the {k} changed segments are found, in most cases", cells,
                     {cell: (1 - values, values) for cell, values in whole.items()}, times=0.5)
    claim.paired("recovery", "ours", "the changed segments are found more often than by chance (k = 1, 3, 5 together)", cells,
                 {cell: _beside_chance([found[k][cell] / k for k in KS]) for cell in cells}, grain=1 / KS[-1])


def _beside_chance(shares: list[Floats]) -> tuple[Floats, Floats]:
    """The mean share over every k at which the label still flipped, and that of chance; NaN where there was none."""
    known = np.array(shares)
    there = ~np.isnan(known)
    count = there.sum(axis=0)
    chances = np.where(there, np.array(KS)[:, None] / PARTS, 0.0)
    one, other = (np.where(count > 0, total / np.maximum(count, 1), math.nan)
                  for total in (np.where(there, known, 0.0).sum(axis=0), chances.sum(axis=0)))
    return one, other


def _of_fidelity(cells: Mapping[str, Excerpts], claim: Claims) -> None:
    """Holds where the whole interval is below what would be of use, and not where the whole interval is above it."""
    tests = {}
    for cell, some in {**cells, "all": joined(list(cells.values()))}.items():
        apart = told_apart(some.fidelity(1), some.recovered(1), some.songs)
        if apart is not None:
            call = "above" if apart.high < USEFUL else "below" if apart.low > USEFUL else "undecided"
            tests[cell] = {"value": USEFUL - apart.value, "low": USEFUL - apart.high, "high": USEFUL - apart.low, "n": apart.n,
                           "sources": apart.sources, "call": call}
    claim.told("fidelity", "Fig. 4", "fidelity does not tell right explanations from wrong ones (k = 1): that a right one has "
               f"the larger R² is so in less than {100 * USEFUL:.0f} % of the pairs; here by so much", tests)


def _of_contents(whole: Excerpts, claim: Claims) -> None:
    """Little difference is a claim of its own: it must be shown, not only not be refuted."""
    found = {}
    for fill in ("zero", "min"):
        some = whole.having(f"lime:{fill}")
        for words, own, other, grain in ((f"flips at k = {K}", some.at(f"lime:{fill}"), some.at("lime"), 1.0),
                                         ("mean over k", some.area(f"lime:{fill}"), some.area("lime"), FINE)):
            found[f"{fill} beside mean, {words}"] = stats.paired(own, other, some.songs, grain=grain)
    tests = tested(found)
    larger = stats.holm([stats.beyond(found[label]) for label in tests])
    for (label, test), p in zip(tests.items(), larger, strict=True):
        test |= {"equivalent": stats.equivalent(found[label]), "beyond": float(p)}
        test["call"] = "on par" if test["equivalent"] <= stats.LEVEL else "below" if p <= stats.LEVEL else "undecided"
    claim.told("contents", "§ 4.4", "what hidden segments hold (zero, the least, the mean) makes little difference: no more "
               f"than {100 * stats.MARGIN:.0f} points", tests)


def _of_settling(run: Run, claim: Claims, samples: int | None) -> None:
    made = [r for r in run.of("settling") if r["sizes"]]
    last = np.array([r["top"][-1] for r in made], dtype=np.float64)
    claim("settling", "§ 4.4", f"with {samples or 'so many'} samples explanations are stable (the papers: 8192): two of one "
          f"excerpt share {100 * AGREED:.0f} % of their best {K} segments; here above that by",
          {"best 3 in common": stats.paired(last, np.full(len(last), AGREED), [r["song"] for r in made], grain=1 / 18)})


def _numbers(values: list[Any]) -> Floats:
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


# --- how they are decided ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Claims:
    """Collects claims, each with its tests; the tests of one claim share the 5 %."""

    made: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, experiment: str, where: str, said: str, found: Mapping[str, stats.Difference],
                 times: float = 1.0) -> None:
        """A claim that differences are above 0; `times` undoes a scaling that kept the numbers within [0, 1]."""
        tests = tested(found)
        for test in tests.values():
            test |= {what: times * test[what] for what in ("value", "low", "high")}
        self.told(experiment, where, said, tests)

    def paired(self, experiment: str, where: str, said: str, cells: Mapping[str, Excerpts], pairs: Pairs, *, grain: float = 1.0,
               times: float = 1.0) -> None:
        """A claim about each setting."""
        self(experiment, where, said,
             {cell: stats.paired(*pair, cells[cell].songs, grain=grain) for cell, pair in pairs.items()}, times)

    def told(self, experiment: str, where: str, said: str, tests: Mapping[str, Mapping[str, Any]]) -> None:
        """A claim whose tests are made already."""
        self.made.append({"experiment": experiment, "where": where, "said": said, "tests": dict(tests),
                          "verdict": verdict([test["call"] for test in tests.values()])})
