"""What an audit says of an explainer in a few words, and by which rules: pure functions of differences and their p-values.

An explainer is compared with two baselines: `random` parts, and `magnitude`, the parts the attack changed most. "Not better" is
only ever said where a test says so; where none does the word is "undecided", with the number of cases that would do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from whytrust.stats import LEVEL, MARGIN, Difference, equivalent, holm, needed, needed_to_equate

Kind = Literal["worse", "no_better", "better_than_random", "better_than_magnitude", "undecided"]
"""Of decided verdicts, the weakest first."""
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Verdict:
    """What is said, of how many cases; `needed`, where undecided and known, is how many would do (two significant digits)."""

    kind: Kind
    words: str
    n: int
    needed: int | None = None
    with_magnitude: bool = True  # was it compared with magnitude at all?


@dataclass(frozen=True)
class Compared:
    """One measure: each explainer's difference to random and, where that makes sense, to magnitude."""

    random: Mapping[str, Difference]
    magnitude: Mapping[str, Difference] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Whoever is compared with magnitude is compared with random."""
        if extra := set(self.magnitude) - set(self.random):
            raise ValueError(f"explainers compared with magnitude must be compared with random too, got {sorted(extra)} alone")


@dataclass(frozen=True)
class Adjusted:
    """One measure's p-values, each explainer's, adjusted for all tests of the audit."""

    random: Mapping[str, float]
    magnitude: Mapping[str, float]
    equivalent: Mapping[str, float]


def adjusted(measures: Mapping[str, Compared]) -> dict[str, Adjusted]:
    """Holm's adjustment, once over all tests for a difference (explainers × measures × baselines), once over all equivalences.

    So the chance that an audit calls anything different that is not is at most 5 %, and the same for "no better".
    """
    tests = [(measure, baseline, name, difference.p) for measure, compared in measures.items()
             for baseline, rows in (("random", compared.random), ("magnitude", compared.magnitude))
             for name, difference in rows.items()]
    same = [(measure, "equivalent", name, equivalent(difference)) for measure, compared in measures.items()
            for name, difference in compared.random.items()]
    found: dict[str, dict[str, dict[str, float]]] = {m: {"random": {}, "magnitude": {}, "equivalent": {}} for m in measures}
    for family in (tests, same):
        for (measure, which, name, _), p in zip(family, holm([p for *_, p in family]), strict=True):
            found[measure][which][name] = float(p)
    return {measure: Adjusted(**by_test) for measure, by_test in found.items()}


def table(measures: Mapping[str, Compared]) -> dict[str, dict[str, Verdict]]:
    """The verdict on each explainer by each measure; measures -> explainers -> verdict."""
    tests = sum(len(compared.random) + len(compared.magnitude) for compared in measures.values())
    p_values = adjusted(measures)
    return {measure: {
        name: judge(difference, p_values[measure].random[name], compared.magnitude.get(name),
                    p_values[measure].magnitude.get(name), p_values[measure].equivalent[name], tests=tests)
        for name, difference in compared.random.items()} for measure, compared in measures.items()}


def judge(against_random: Difference, p_random: float, against_magnitude: Difference | None, p_magnitude: float | None,
          p_equivalent: float, *, tests: int = 1) -> Verdict:
    """The verdict on one explainer by one measure, from p-values that are adjusted already.

    A difference that is certain comes before one that is small: where both hold, the words add "by less than .05". Without a
    comparison with magnitude the words do not mention it. `tests` is how many were adjusted for, and counts in `needed`.
    """
    if (against_magnitude is None) != (p_magnitude is None):
        raise ValueError("against_magnitude and p_magnitude must come together: pass both, or None for both")
    n, compared = against_random.n, against_magnitude is not None
    same = p_equivalent <= LEVEL
    small = f" by less than {_short(MARGIN)}" if same else ""
    if p_random <= LEVEL and against_random.value < 0:
        return Verdict("worse", f"worse than random{small}", n, None, compared)
    if p_random <= LEVEL and against_random.value > 0:
        if against_magnitude is None or p_magnitude is None:
            return Verdict("better_than_random", f"better than random{small}", n, None, compared)
        if p_magnitude <= LEVEL and against_magnitude.value > 0:
            words = "better than magnitude" + (f", than random{small}" if same else "")
            return Verdict("better_than_magnitude", words, n)
        return Verdict("better_than_random", f"better than random{small}, not than magnitude", n)
    if same:
        return Verdict("no_better", f"no better than random (within ± {_short(MARGIN)})", n, None, compared)
    return replace(_undecided(against_random, tests), with_magnitude=compared)


def overall(by_measure: Mapping[str, Verdict]) -> Verdict:
    """One verdict from those by several measures: the weakest that is decided.

    Undecided measures have no vote where another is decided. If one says worse and another better, that is undecided. A measure
    that was not compared with magnitude (in recovery, magnitude finds everything by construction) can say better or worse than
    random, and says nothing against "better than magnitude". If nothing is decided, the measure that needs fewest cases speaks.
    """
    decided = {measure: verdict for measure, verdict in by_measure.items() if verdict.kind != "undecided"}
    if not decided:
        return _nearest(by_measure)
    better = [measure for measure, verdict in decided.items() if verdict.kind.startswith("better")]
    worse = [measure for measure, verdict in decided.items() if verdict.kind == "worse"]
    if better and worse:
        sides = ", ".join(f"{measure} {'better' if measure in better else 'worse'}"
                          for measure in decided if measure in better or measure in worse)
        least = min(decided[measure].n for measure in better + worse)
        return Verdict("undecided", f"undecided: the measures disagree ({sides})", least)
    proven = any(verdict.kind == "better_than_magnitude" for verdict in decided.values())
    voting = [verdict for verdict in decided.values()
              if not (proven and verdict.kind == "better_than_random" and not verdict.with_magnitude)]
    return min(voting, key=lambda verdict: KINDS.index(verdict.kind))


def _nearest(by_measure: Mapping[str, Verdict]) -> Verdict:
    """Of verdicts that are all undecided, the one that fewest cases would decide; of several, the words say whose it is."""
    if not by_measure:
        return Verdict("undecided", "undecided: no measure applies", 0)
    measure, verdict = min(by_measure.items(), key=lambda item: math.inf if item[1].needed is None else item[1].needed)
    if len(by_measure) == 1:
        return verdict
    return replace(verdict, words=verdict.words.replace("undecided: ", f"undecided: in {measure} ", 1))


def _undecided(difference: Difference, tests: int) -> Verdict:
    """How many cases would do? As many as find a difference of the margin: then either it is found, or it is none to speak of.

    Where so many were seen already, the difference lies between the two; then as many as tell one as large as that seen from 0,
    or from the margin, whichever is easier, or as many as show that one as small as that seen is none. Where none of these is
    more than were seen, no number is given.
    """
    n, size = difference.n, abs(difference.value)
    if difference.freedom <= 0:
        return Verdict("undecided", f"undecided: n = {n}, too few to say how many are needed", n)
    to_tell = [needed(difference, min(effect, 1.0), tests=tests) for effect in (MARGIN, max(size, MARGIN - size))]
    for cases in (*to_tell, needed_to_equate(difference, tests)):
        told = _two_digits(cases)
        if told > n:
            return Verdict("undecided", f"undecided: n = {n}, about {told:,} needed", n, told)
    return Verdict("undecided", f"undecided: n = {n} should do, but the difference lies near a border", n)


def _two_digits(cases: int) -> int:
    """Rounded to two significant digits: it is known no better."""
    return round(cases, -max(len(str(cases)) - 2, 0))


def _short(number: float) -> str:
    """0.05 as .05."""
    return f"{number:g}".removeprefix("0")
