"""What an audit says of an explainer in a few words, and by which rules: pure functions of differences and their p-values.

An explainer is compared with `random` parts, with blind controls (rankings that cannot know the cause, such as its own scores
of other inputs), and with `magnitude`, the parts the attack changed most. "Not better" is only ever said where a test says so;
where none does the word is "undecided", with the number of cases that would do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from whytrust.stats import LEVEL, MARGIN, Difference, holm, needed, needed_to_equate, no_better

Kind = Literal["worse", "no_better", "better_than_random", "better_than_blind", "better_than_magnitude", "undecided"]
"""Of decided verdicts, the weakest first."""
KINDS: tuple[Kind, ...] = get_args(Kind)
SHORT: dict[Kind, str] = {
    "worse": "worse than random", "no_better": "no better than a blind guess", "better_than_random": "better than random",
    "better_than_blind": "better than blind guesses", "better_than_magnitude": "better than magnitude",
    "undecided": "undecided"}
SAID = {"random": "random", "blind": "the blind guess", "prior": "the mean of all explainers over other inputs",
        "centre": "parts near the centre first", "size": "large parts first", "edges": "sharp edges first",
        "loud": "loud parts first", "early": "early words first", "long": "long words first", "rare": "rare words first",
        "bright": "bright parts first", "unusual": "unusual values first", "high": "high values first"}
"""What blind controls rank parts by."""
BEST = "blind"
"""The best blind control, chosen on other cases than those that it is compared on."""
NOTHING_LEFT = 0.005
"""Where the best blind control leaves less than this to the oracle, it finds all there is."""


@dataclass(frozen=True)
class Verdict:
    """What is said, of how many cases; `needed`, where undecided and known, is how many adversaries would do (two significant
    digits): of a measure that applies to every eighth of them, eight times as many as it needs cases."""

    kind: Kind
    words: str
    n: int
    needed: int | None = None
    with_magnitude: bool = True  # was it compared with magnitude at all?
    below_magnitude: bool = False  # was it shown to be worse than magnitude?


@dataclass(frozen=True)
class Compared:
    """One measure: each explainer's difference to random, to its blind controls and, where that makes sense, to magnitude."""

    random: Mapping[str, Difference]
    magnitude: Mapping[str, Difference] = field(default_factory=dict)
    blind: Mapping[str, Mapping[str, Difference]] = field(default_factory=dict)  # explainer -> control -> difference
    left: Mapping[str, float] = field(default_factory=dict)  # explainer -> how far the oracle is above the best blind control
    of: int = 0  # how many adversaries there are, where the measure applies to some of them only

    def __post_init__(self) -> None:
        """An explainer that is compared with anything is compared with random."""
        for what, rows in (("magnitude", self.magnitude), ("blind controls", self.blind)):
            if extra := set(rows) - set(self.random):
                raise ValueError(f"explainers compared with {what} must be compared with random too, got {sorted(extra)} alone")

    def margin(self, name: str) -> float:
        """The least lead over a blind guess that is one: .05, or half of what the guess leaves to be found, if that is less.

        Where it leaves nothing, no explainer can lead, and "no better" is shown by .05.
        """
        return MARGIN if self.all_found(name) else min(MARGIN, self.left.get(name, 1.0) / 2)

    def all_found(self, name: str) -> bool:
        """Does the best blind control find all there is?"""
        return self.left.get(name, 1.0) < NOTHING_LEFT

    def p_guess(self, name: str) -> float:
        """The p of "worse than random" where an explainer lies below random, else of "better than every blind guess".

        Each of the guesses must be beaten, so the largest p counts, and no choice among them needs a correction.
        """
        random = self.random[name]
        return random.p if random.value < 0 else max(_p_above(one) for one in (random, *self.blind.get(name, {}).values()))

    def closest(self, name: str) -> tuple[str, Difference]:
        """The guess that a verdict speaks of: random for an explainer below it; else the one with the smallest lead, where that
        is less than the margin; else the one that is hardest to beat."""
        guesses = {"random": self.random[name], **self.blind.get(name, {})}
        if self.random[name].value < 0:
            return "random", self.random[name]
        if self.lead(name) < self.margin(name):
            return min(guesses.items(), key=lambda item: item[1].value)
        return max(guesses.items(), key=lambda item: (_p_above(item[1]), -item[1].value))

    def lead(self, name: str) -> float:
        """How far an explainer is ahead of the best blind control; of random where there is none."""
        return min(difference.value for difference in (self.blind.get(name) or {"": self.random[name]}).values())

    def p_no_better(self, name: str) -> float:
        """The p of "ahead of the best blind control by the margin or more"."""
        return no_better(self.best_guess(name), self.margin(name))

    def best_guess(self, name: str) -> Difference:
        """The difference to the best blind control; to random where there is none."""
        return self.blind.get(name, {}).get(BEST, self.random[name])


def _p_above(difference: Difference) -> float:
    return difference.p if difference.value > 0 else 1.0


@dataclass(frozen=True)
class Adjusted:
    """One measure's p-values, each explainer's, adjusted for all tests of the audit."""

    guess: Mapping[str, float]
    magnitude: Mapping[str, float]
    no_better: Mapping[str, float]


def adjusted(measures: Mapping[str, Compared]) -> dict[str, Adjusted]:
    """Holm's adjustment, once over all tests for a difference (explainers × measures × guesses and magnitude), once over all
    tests of "no better".

    So the chance that an audit calls anything different that is not is at most 5 %, and the same for "no better".
    """
    tests = [(measure, "guess", name, compared.p_guess(name)) for measure, compared in measures.items()
             for name in compared.random]
    tests += [(measure, "magnitude", name, difference.p) for measure, compared in measures.items()
              for name, difference in compared.magnitude.items()]
    none = [(measure, "no_better", name, compared.p_no_better(name)) for measure, compared in measures.items()
            for name in compared.random]
    found: dict[str, dict[str, dict[str, float]]] = {m: {"guess": {}, "magnitude": {}, "no_better": {}} for m in measures}
    for family in (tests, none):
        for (measure, which, name, _), p in zip(family, holm([p for *_, p in family]), strict=True):
            found[measure][which][name] = float(p)
    return {measure: Adjusted(**by_test) for measure, by_test in found.items()}


def table(measures: Mapping[str, Compared]) -> dict[str, dict[str, Verdict]]:
    """The verdict on each explainer by each measure; measures -> explainers -> verdict."""
    tests = sum(len(compared.random) + len(compared.magnitude) for compared in measures.values())
    p_values = adjusted(measures)
    return {measure: {name: judge(compared, name, p_values[measure], tests=tests) for name in compared.random}
            for measure, compared in measures.items()}


def judge(compared: Compared, name: str, p_values: Adjusted, *, tests: int = 1) -> Verdict:
    """The verdict on one explainer by one measure, from p-values that are adjusted already.

    A lead of less than the margin over a blind guess is none, however certain: a blind explainer beats an imperfect imitation
    of itself by a little. It is "no better" where the lead is shown to be so small, else undecided. A small lead over random
    alone is one, and the words add "by less than .05". Without a comparison with magnitude the words do not mention it.
    `tests` is how many were adjusted for, and counts in `needed`.
    """
    random, magnitude = compared.random[name], compared.magnitude.get(name)
    certain = p_values.guess[name] <= LEVEL
    small = f" by less than {_short(MARGIN)}" if p_values.no_better[name] <= LEVEL else ""
    apart = magnitude is not None and p_values.magnitude[name] <= LEVEL
    above = apart and magnitude is not None and magnitude.value > 0
    below = apart and not above
    lower = ", and worse than magnitude" if below else ""

    def verdict(kind: Kind, words: str, cases: int | None = None) -> Verdict:
        return Verdict(kind, words, random.n, cases, magnitude is not None, below)

    if certain and random.value < 0:
        return verdict("worse", SHORT["worse"] + lower)
    if certain and not compared.blind.get(name):
        return verdict("better_than_random", f"better than random{small}{lower}")
    if small:
        all_found = " (which finds all there is)" if compared.all_found(name) else ""
        guess = f"a blind guess{all_found}" if compared.blind.get(name) else "random"
        return verdict("no_better", f"no better than {guess}{lower}")
    certain = certain and compared.lead(name) >= compared.margin(name)
    if certain and above:
        return verdict("better_than_magnitude", "better than magnitude")
    if certain:
        rest = lower or (", not than magnitude" if magnitude is not None else "")
        return verdict("better_than_blind", f"better than blind guesses{rest}")
    open_ = _undecided(compared, name, tests)
    return verdict("undecided", open_.words + ("; worse than magnitude" if below else ""), open_.needed)


def overall(by_measure: Mapping[str, Verdict]) -> Verdict:
    """One verdict from those by several measures: the weakest that is decided; its words say what the others find.

    Undecided measures have no vote where another is decided. If one says worse and another better, that is undecided. A measure
    that was not compared with magnitude (in recovery, magnitude finds everything by construction) says nothing against "better
    than magnitude", and one without blind controls nothing against "better than blind guesses". If nothing is decided, the
    measure that needs fewest cases speaks.
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
        told = f"undecided: the measures disagree ({sides})"
        return Verdict("undecided", told + _below(by_measure), least, below_magnitude=bool(_below(by_measure)))
    strongest = max(KINDS.index(verdict.kind) for verdict in decided.values())
    voting = [measure for measure, verdict in decided.items() if not _abstains(verdict, KINDS[strongest])]
    measure = min(voting, key=lambda one: KINDS.index(decided[one].kind))
    return replace(decided[measure], words=_beside_others(measure, by_measure),
                   below_magnitude=any(verdict.below_magnitude for verdict in by_measure.values()))


def _abstains(verdict: Verdict, strongest: Kind) -> bool:
    """Could a measure not have said what the strongest verdict says?"""
    if verdict.kind == "better_than_random":
        return strongest in ("better_than_blind", "better_than_magnitude")
    return verdict.kind == "better_than_blind" and strongest == "better_than_magnitude" and not verdict.with_magnitude


def _beside_others(measure: str, by_measure: Mapping[str, Verdict]) -> str:
    """The words of the measure that decides, and of every other one that says something else."""
    verdict = by_measure[measure]
    others = {name: one for name, one in by_measure.items() if name != measure
              and ((one.kind != verdict.kind and not _abstains(one, verdict.kind))
                   or (one.below_magnitude and not verdict.below_magnitude))}
    if not others:
        return verdict.words
    told = [f"{_short_words(one)}{', and worse than magnitude' if one.below_magnitude else ''} in {name}"
            for name, one in others.items()]
    return f"{verdict.words} in {measure} (n = {verdict.n}); {'; '.join(told)}"


def _short_words(verdict: Verdict) -> str:
    return "no better than random" if verdict.words.startswith("no better than random") else SHORT[verdict.kind]


def _below(by_measure: Mapping[str, Verdict], but: str = "") -> str:
    """Which measures find an explainer worse than magnitude, apart from one that says so itself."""
    names = [name for name, verdict in by_measure.items() if verdict.below_magnitude and name != but]
    return f"; worse than magnitude in {' and '.join(names)}" if names else ""


def _nearest(by_measure: Mapping[str, Verdict]) -> Verdict:
    """Of verdicts that are all undecided, the one that fewest cases would decide; of several, the words say whose it is."""
    if not by_measure:
        return Verdict("undecided", "undecided: no measure applies", 0)
    measure, verdict = min(by_measure.items(), key=lambda item: math.inf if item[1].needed is None else item[1].needed)
    if len(by_measure) == 1:
        return verdict
    words = verdict.words.replace("undecided: ", f"undecided: in {measure} ", 1)
    below = any(one.below_magnitude for one in by_measure.values())
    return replace(verdict, words=words + _below(by_measure, measure), below_magnitude=below)


def _undecided(compared: Compared, name: str, tests: int) -> Verdict:
    """How many adversaries would do? As many as find a difference of the margin: then either it is found, or it is none to
    speak of.

    The difference is that to the guess which is hardest to beat. One that is larger than the margin already is found by fewer.
    Where so many cases were seen already, the difference lies between the two; then as many as tell one as large as that seen
    from 0, or from the margin, whichever is easier, or as many as show that one as small as that seen is none. Where none of
    these is more than were seen, no number is given.
    """
    (guess, difference), margin = compared.closest(name), compared.margin(name)
    n, size = difference.n, abs(difference.value)
    against = "" if guess in ("random", BEST) else f" against {said(guess)}"
    of = f" of {compared.of}" if compared.of > n else ""
    if difference.freedom <= 0:
        return Verdict("undecided", f"undecided: n = {n}{of}, too few to say how many are needed", n)
    effects = [size, margin] if size >= margin else [margin, max(size, margin - size)]
    to_tell = [needed(difference, min(effect, 1.0), tests=tests) for effect in effects]
    for cases in (*to_tell, needed_to_equate(difference, tests, margin)):
        if _two_digits(cases) > n:
            told = _two_digits(math.ceil(cases * max(compared.of, n) / n))
            return Verdict("undecided", f"undecided: n = {n}{of}, about {told:,} needed{against}", n, told)
    return Verdict("undecided", f"undecided: n = {n}{of} should do, but the difference{against} lies near a border", n)


def said(control: str) -> str:
    """What a control ranks parts by."""
    kind, _, explainer = control.partition(":")
    if kind == "shuffled":
        return f"{explainer}'s scores of other inputs"
    if kind == "shuffled words":
        return f"{explainer}'s scores of the same words in other texts"
    if kind == "same answer":
        return f"{explainer}'s mean scores of other inputs with the same answer"
    if kind == "same answer words":
        return f"{explainer}'s scores of the same words in other texts with the same answer"
    if kind in ("imitation", "curved imitation"):
        return f"a {'curved' if kind != 'imitation' else 'linear'} imitation of {explainer}"
    return SAID.get(control, control)


def _two_digits(cases: int) -> int:
    """Rounded to two significant digits: it is known no better."""
    return round(cases, -max(len(str(cases)) - 2, 0))


def _short(number: float) -> str:
    """0.05 as .05."""
    return f"{number:g}".removeprefix("0")
