"""What Hoedt et al. (2022) found on images, asked of a run: each finding as paired tests on the run's own adversaries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.core import Floats
from whytrust.studies import plausible as study
from whytrust.studies import published
from whytrust.studies.plausible_outcomes import BASELINES, K, Run, pooled
from whytrust.studies.published import GRADIENTS, NAMES, STANDARD

Pairs = dict[str, tuple[Floats, Floats]]
"""Two numbers a row, the larger one first where the paper is right."""


def claims(run: Run) -> list[dict[str, Any]]:
    """The paper's findings on images; each difference is positive where what the paper says is so here too."""
    names = (*NAMES, *BASELINES)
    slic, grid = ({name: run.at(cut, name) for name in names} for cut in study.CUTS)
    whole = {cut: {name: run.curve(cut, name)[:, :-1].mean(axis=1) for name in (*STANDARD, "magnitude", "magnitude_mean")}
             for cut in study.CUTS}
    cuts = {"SLIC": slic, "rectangles": grid}
    claim = _Claims(run.images)
    claim("flips", "§ 6.2 (i)", f"SLIC segments flip more labels than rectangles, k = {K}",
          {NAMES[n]: (slic[n], grid[n]) for n in STANDARD})
    claim("flips", "ours", "the same beyond what random parts gain: 3 of 11 segments are more than 3 of 16",
          {NAMES[n]: ((slic[n] + grid["random"]) / 2, (grid[n] + slic["random"]) / 2) for n in STANDARD}, grain=0.5, times=2)
    claim("flips", "§ 6.2 (iv)", f"LIME is above every other explainer (SLIC, k = {K})",
          {NAMES[n]: (slic["lime"], slic[n]) for n in NAMES if n != "lime"})
    claim("flips", "§ 6.2 (v)", "smoothing raises the rate (SLIC; in the paper not always, but for ResNet-50, DenseNet161 and "
          "Inception v3, though its Table 3 has GBP falling there)", _smoothed(slic))
    claim("flips", "Tables 7, 8", "smoothing raises the rate of IG and Sal (rectangles; so the tables for the same three nets)",
          {label: pair for label, pair in _smoothed(grid).items() if not label.startswith("GBP")})
    claim("flips", "§ 6.2 (vi)", f"in most cases {K} segments do not flip the label",
          {f"{NAMES[n]}, {cut}": (1 - rates[n], rates[n]) for cut, rates in cuts.items() for n in STANDARD}, times=0.5)
    claim("poolings", "§ 6.1", "mean_abs flips more labels than mean and mean_pos",
          {f"{NAMES[n]} over {how}, {words}": (run.at(cut, n), run.at(cut, pooled(n, how)))
           for cut, words in zip(study.CUTS, cuts, strict=True) for n in GRADIENTS for how in study.POOLINGS[1:]})
    claim("curves", "§ 6.3, Fig. 5", "over 20 … 90 % of the parts LIME is better with SLIC, the others with rectangles",
          {NAMES[n]: (whole["slic"][n], whole["grid"][n]) if n == "lime" else (whole["grid"][n], whole["slic"][n])
           for n in STANDARD}, grain=1 / 8)
    rivals = {"magnitude": ("§ 6.3, Fig. 6", "standard explainers are at least on par with magnitude (SLIC, 20 … 90 %)"),
              "magnitude_mean": ("ours", "the same against magnitude a pixel")}
    for rival, said in rivals.items():
        claim("curves", *said, {NAMES[n]: (whole["slic"][n], whole["slic"][rival]) for n in STANDARD}, grain=1 / 8,
              on_par=True)
    _claims_of_recovery(run, claim)
    return claim.made


def _smoothed(rates: Mapping[str, Floats]) -> Pairs:
    return {NAMES[n]: (rates[n], rates[n.partition("/")[0]]) for n in published.ENSEMBLES}


def _claims_of_recovery(run: Run, claim: _Claims) -> None:
    found = {cut: {name: run.recovered(cut, name) for name in (*NAMES, "random")} for cut in study.CUTS}
    words = dict(zip(study.CUTS, ("SLIC", "rectangles"), strict=True))
    each = [(cut, name, f"{NAMES[name]}, {words[cut]}") for cut in study.CUTS for name in STANDARD]
    claim("recovery", "§ 6.4, Fig. 8", "the one changed segment is missed in most cases (k = 1)",
          {label: (1 - found[cut][name][:, 0], found[cut][name][:, 0]) for cut, name, label in each}, times=0.5)
    claim("recovery", "ours", "the changed segments are found more often than by chance (k = 1, 3, 5 together)",
          {label: _together(found[cut][name], found[cut]["random"]) for cut, name, label in each}, grain=0.2)
    with_slic = {n: _together(found["slic"][n], found["grid"][n]) for n in (*STANDARD, "random")}
    claim("recovery", "§ 6.4", "changed segments tend to be easier to find with SLIC (in the paper except for AlexNet)",
          {NAMES[n]: with_slic[n] for n in STANDARD}, grain=0.2)
    claim("recovery", "ours", "the same beyond what chance finds, which is more of fewer segments",
          {NAMES[n]: ((with_slic[n][0] + with_slic["random"][1]) / 2, (with_slic[n][1] + with_slic["random"][0]) / 2)
           for n in STANDARD}, grain=0.1, times=2)
    claim("recovery", "§ 6.4", "standard explainers usually find slightly more than their smoothings do",
          {f"{NAMES[n]}, {words[cut]}": _together(found[cut][n], np.mean([found[cut][f"{n}/{how}"] for how in
                                                                          published.SMOOTHINGS], axis=0))
           for cut in study.CUTS for n in GRADIENTS}, grain=0.1)


def _together(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The mean over every k that both were tried with; NaN where there is none."""
    both = ~(np.isnan(first) | np.isnan(second))
    count = both.sum(axis=1)
    one, other = (np.where(count > 0, np.where(both, each, 0.0).sum(axis=1) / np.maximum(count, 1), math.nan)
                  for each in (first, second))
    return one, other


@dataclass(frozen=True, eq=False)
class _Claims:
    """Collects claims, each with its tests; the tests of one claim share the 5 %."""

    images: Sequence[str]
    made: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, experiment: str, where: str, said: str, pairs: Pairs, *, grain: float = 1.0, times: float = 1.0,
                 on_par: bool = False) -> None:
        """Test one claim; `times` undoes a scaling that kept the numbers within [0, 1]."""
        found = {label: stats.paired(*pair, self.images, grain=grain) for label, pair in pairs.items()}
        tests = tested(found)
        for label, test in tests.items():
            test["equivalent"] = stats.equivalent(found[label])
            if on_par and test["call"] == "undecided" and test["equivalent"] <= stats.LEVEL:
                test["call"] = "on par"
            test |= {what: times * test[what] for what in ("value", "low", "high")}
        self.made.append({"experiment": experiment, "where": where, "said": said, "tests": tests,
                          "verdict": verdict([test["call"] for test in tests.values()])})


def verdict(calls: Sequence[str]) -> str:
    """A claim about several explainers in one word or two."""
    so, not_so = sum(call in ("above", "on par") for call in calls), calls.count("below")
    if not calls:
        return "no data yet"
    if so == len(calls):
        return "holds"
    if not so:
        return ("undecided" if not not_so else "does not hold" if not_so == len(calls)
                else f"does not hold for {not_so} of {len(calls)}, undecided for {len(calls) - not_so}")
    return f"holds for {so} of {len(calls)}" + (f", the opposite for {not_so}" if not_so else "")


def tested(pairs: Mapping[Any, stats.Difference]) -> dict[Any, dict[str, Any]]:
    """Differences with p after Holm, and what may be said: above, below, or nothing."""
    tried = {key: pair for key, pair in pairs.items() if pair.n}
    adjusted = stats.holm([pair.p for pair in tried.values()])
    return {key: {**asdict(pair), "p_holm": float(p),
                  "call": "undecided" if p > stats.LEVEL else "above" if pair.value > 0 else "below"}
            for (key, pair), p in zip(tried.items(), adjusted, strict=True)}
