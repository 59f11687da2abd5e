"""Does what was found depend on how strong the attack was? Then it is no finding."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from whytrust import stats, verdicts
from whytrust.core import Floats
from whytrust.report.outcomes import BASELINES, FULL, Record, known_mean, outcomes, trial_of

Plain = dict[str, Any]


def strengths_of(records: Sequence[Record], about: Mapping[str, Any], ranked: Sequence[str], pairs: Sequence[Plain],
                 judged: Mapping[str, verdicts.Compared]) -> Plain:
    """The same cases at every strength: a difference found at full strength must point the same way at each.

    Pairs that do not are marked in `pairs` itself.
    """
    names = sorted(about.get("strengths", [FULL]), key=_weakest_first)
    told: Plain = {"names": [], "adversaries": [], "rates": {}, "stable": None, "words": "", "unstable": [], "cases": 0}
    if len(names) < 2:
        return told
    told |= {"names": names, "adversaries": [sum(trial_of(r, s) is not None for r in records) for s in names]}
    fooled = [s for s, count in zip(names, told["adversaries"], strict=True) if count]
    common = [r for r in records if all(trial_of(r, s) is not None for s in fooled)]
    if not common or len(fooled) < 2 or "flip" not in judged:
        return {**told, "words": "No input was fooled at several strengths: whether the ranking depends on it cannot be said."}
    each = {s: outcomes(common, s, ranked).measures["flip"].values for s in fooled}
    means = {n: [known_mean(each[s][n]) if s in each and n in each[s] else None for s in names] for n in (*ranked, *BASELINES)}
    found = [p for p in pairs if p["p_holm"] <= stats.LEVEL]
    turned = [p for p in found if _turns(list(each.values()), p["first"], p["second"], p["value"])]
    for pair in turned:
        pair["words"] = f"unstable: {pair['words']} at full strength, not at every other"
    unstable = [n for n in ranked if _wavers(list(each.values()), n, judged["flip"])]
    words = _words(len(common), len(found), [f"{p['first']} and {p['second']}" for p in turned], unstable)
    return {**told, "rates": means, "unstable": unstable, "stable": not turned and not unstable, "cases": len(common),
            "words": words}


def _weakest_first(strength: str) -> float:
    return math.inf if strength == FULL else float(strength.removeprefix("margin "))


def _wavers(each: Iterable[Mapping[str, Floats]], name: str, judged: verdicts.Compared) -> bool:
    """Does what the verdict on an explainer rests on turn round: above or below random, above a blind guess or magnitude?"""
    random, magnitude = judged.random[name], judged.magnitude.get(name)
    if random.p <= stats.LEVEL and _turns(each, name, "random", random.value):
        return True
    better = judged.blind.get(name) and random.value > 0 and judged.p_guess(name) <= stats.LEVEL
    if better and _turns(each, name, "blind", 1.0):
        return True
    above = magnitude is not None and magnitude.p <= stats.LEVEL and magnitude.value > 0
    return above and magnitude is not None and _turns(each, name, "magnitude", magnitude.value)


def _turns(each: Iterable[Mapping[str, Floats]], first: str, second: str, found: float) -> bool:
    """Does a difference that was found point the other way at some strength, on the cases that both explained?"""
    for values in each:
        if first in values and second in values:
            gap = values[first] - values[second]
            if found * known_mean(gap[~np.isnan(gap)]) < 0 and not np.isnan(gap).all():
                return True
    return False


def _words(cases: int, found: int, turned: Sequence[str], unstable: Sequence[str]) -> str:
    where = f"{cases} input{'s' if cases != 1 else ''} that {'were' if cases != 1 else 'was'} fooled at every strength"
    if not turned and not unstable:
        if not found:
            return f"No two explainers were told apart at full strength, so there is no ranking that could change ({where})."
        return (f"On the {where}, all {found} differences between explainers that were found at full strength point the same "
                "way at the others.")
    told = []
    if turned:
        told.append(f"{len(turned)} of {found} differences between explainers turn round with the attack's strength "
                    f"({'; '.join(turned[:4])}{'; …' if len(turned) > 4 else ''})")
    if unstable:
        told.append(f"{', '.join(unstable)} {'is' if len(unstable) == 1 else 'are'} above random, a blind guess or magnitude "
                    "at one strength and below at another")
    return f"Unstable, and no finding: {'; and '.join(told)} (on the {where})."
