"""Does what was found depend on how strong the attack was? Then it is no finding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from whytrust import stats, verdicts
from whytrust.report.outcomes import BASELINES, FULL, Record, known_mean, outcomes, trial_of

Plain = dict[str, Any]


def strengths_of(records: Sequence[Record], about: Mapping[str, Any], ranked: Sequence[str], pairs: Sequence[Plain],
                 judged: Mapping[str, verdicts.Compared]) -> Plain:
    """The same cases at every strength: a difference found at full strength must point the same way at each.

    Pairs that do not are marked in `pairs` itself.
    """
    names = sorted(about.get("strengths", [FULL]), key=_weakest_first)
    common = [r for r in records if all(trial_of(r, s) is not None for s in names)]
    told: Plain = {"names": [], "adversaries": [], "rates": {}, "stable": None, "words": "", "unstable": [], "cases": 0}
    if len(names) < 2:
        return told
    told |= {"names": names, "adversaries": [sum(trial_of(r, s) is not None for r in records) for s in names]}
    if not common:
        return {**told, "words": "No input was fooled at every strength: nothing can be said of how the ranking depends on it."}
    each = [outcomes(common, s, ranked).measures["flip"].values for s in names]
    means = {n: [known_mean(values[n]) for values in each] for n in (*ranked, *BASELINES) if all(n in v for v in each)}
    found = [p for p in pairs if p["p_holm"] <= stats.LEVEL]
    turned = [p for p in found if _turns(means, p["first"], p["second"])]
    for pair in turned:
        pair["words"] = f"unstable: {pair['words']} at full strength, not at every other"
    against_random = judged["flip"].random
    unstable = [n for n in ranked if against_random[n].p <= stats.LEVEL and _turns(means, n, "random")]
    words = _words(len(common), len(found), [f"{p['first']} and {p['second']}" for p in turned], unstable)
    return {**told, "rates": means, "unstable": unstable, "stable": not turned and not unstable, "cases": len(common),
            "words": words}


def _weakest_first(strength: str) -> float:
    return math.inf if strength == FULL else float(strength.removeprefix("margin "))


def _turns(means: Mapping[str, Sequence[float]], first: str, second: str) -> bool:
    """Is one ahead at one strength and behind at another?"""
    if first not in means or second not in means:
        return False
    signs = {math.copysign(1, a - b) for a, b in zip(means[first], means[second], strict=True) if a != b}
    return len(signs) > 1


def _words(cases: int, found: int, turned: Sequence[str], unstable: Sequence[str]) -> str:
    where = f"{cases} inputs that were fooled at every strength"
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
        told.append(f"{', '.join(unstable)} {'is' if len(unstable) == 1 else 'are'} above random at one strength and below at "
                    "another")
    return f"Unstable, and no finding: {'; and '.join(told)} (on the {where})."
