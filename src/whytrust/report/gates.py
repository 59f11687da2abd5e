"""Requirements on a run, such as "lime.flip@3 > random": they hold, they do not, or the run cannot tell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust import stats
from whytrust.core import near
from whytrust.report.findings import compared, none_fooled
from whytrust.report.outcomes import BASELINES, FULL, Measured, Outcomes, Record, outcomes
from whytrust.report.records import records_of, understood
from whytrust.store import Store

HOLDS, FAILS, UNDECIDED = 0, 1, 2
MALFORMED = ("a requirement is written EXPLAINER.MEASURE > OTHER, such as 'lime.flip@3 > random' or 'lime.recovery > 0.5', got "
             "{!r}")
FORM = re.compile(r"\s*(?P<who>.+?)\.(?P<measure>[a-z_]+(@\d+)?)\s*(?P<sign>[<>])\s*(?P<than>\S.*?)\s*")


@dataclass(frozen=True)
class Required:
    """A requirement and what came of it: 0 it holds, 1 it does not, 2 the run cannot tell."""

    text: str
    code: int
    words: str

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"require": self.text, "code": self.code, "words": self.words}


def check(store: Store, requirements: Sequence[str]) -> list[Required]:
    """Each requirement, tested at .05 shared among all of them (Holm).

    It holds where the difference is beyond chance in the right direction. It does not where it is beyond chance in the wrong
    one, or so small (within ± .05) that it is as good as none. Else it is undecided, and so is one that holds on what is there
    of a run that is not finished, or damaged: the inputs that are missing may say otherwise.
    """
    manifest = store.manifest
    with understood(store.folder):
        records = records_of(store)
        tried = outcomes(records, FULL, manifest.get("about", {}).get("explainers", ()))
    if not tried.cases and any(record["status"] == "not fooled" for record in records):
        return [_none_fooled(text, records, manifest) for text in requirements]
    if not tried.cases:
        why = _missing(store, len(records)) or "all inputs are done"
        raise ValueError(f"a gate needs at least one adversary, and {store.folder} has none ({why}); see `whytrust report`")
    asked = [_parsed(text, tried) for text in requirements]
    found, p_values, same = zip(*(_difference(tried, *one) for one in asked), strict=True)
    differences, equal = stats.holm(p_values), stats.holm(same)
    settled = [_settled(text, one, float(p), float(same), sign) for text, (*_, sign), one, p, same in
               zip(requirements, asked, found, differences, equal, strict=True)]
    missing = _missing(store, len(records))
    return [_of_some(one, missing) for one in settled] if missing else settled


def _none_fooled(text: str, records: Sequence[Record], manifest: Mapping[str, Any]) -> Required:
    """A requirement on a run without an adversary is undecided, whatever it says; a mistyped one is an error as ever."""
    match = FORM.fullmatch(text)
    if match is None or match["than"].startswith("="):
        raise ValueError(MALFORMED.format(text))
    names = [*manifest.get("about", {}).get("explainers", ()), *BASELINES]
    if match["who"] not in names:
        raise ValueError(f"EXPLAINER must be one of {', '.join(names)}, got {match['who']!r}{near(match['who'], names)}")
    return Required(text, UNDECIDED, f"undecided: {none_fooled(records)}")


def _missing(store: Store, done: int) -> str:
    """How many inputs of a run are not there, and whether that may be damage; empty where all are."""
    whole = sum(len(block.cases) for block in store.blocks)
    state = "not done, or damaged" if store.problems else "not done yet"  # reading has told what is damaged
    return f"{whole - done} of {whole} inputs are {state}" if done < whole else ""


def _of_some(one: Required, missing: str) -> Required:
    """What comes of a requirement where inputs are missing."""
    if one.code != HOLDS:
        return Required(one.text, one.code, f"{one.words}; {missing}")
    told = f"undecided: {missing}; give the run's command again, which goes on. What is there {one.words}"
    return Required(one.text, UNDECIDED, told)


def _parsed(text: str, tried: Outcomes) -> tuple[str, str, str | float, int]:
    match = FORM.fullmatch(text)
    if match is None or match["than"].startswith("="):
        raise ValueError(MALFORMED.format(text))
    who, measure, than = match["who"], match["measure"], match["than"]
    if measure == "all_positive":
        measure = f"all_positive:{who}"
    if measure not in tried.measures:
        known = list(dict.fromkeys(name.partition(":")[0] for name in tried.measures))
        raise ValueError(f"MEASURE must be one of {', '.join(known)}, got {measure!r}{near(measure, known)}")
    values = tried.measures[measure].values
    number = _number(than)
    for name in (who,) if number is not None else (who, than):
        beside = name == than and _column(tried.measures[measure], who, name) is not None
        if name in values or name in tried.explainers or beside:
            continue
        blind = [f"blind:{kind}" for kind in dict.fromkeys(one.partition(":")[0] for one in tried.measures[measure].blind)]
        known = [*values, *blind] if name == than else list(values)
        raise ValueError(f"{measure.partition(':')[0]} was measured of {', '.join(known)}, got {name!r}{near(name, known)}")
    return who, measure, than if number is None else number, 1 if match["sign"] == ">" else -1


def _column(measured: Measured, who: str, name: str) -> Any:
    """The numbers of a contender, or of a blind control: "blind:centre", or "blind:shuffled" for the explainer's own."""
    control = name.removeprefix("blind:")
    return measured.values.get(name, measured.blind.get(control, measured.blind.get(f"{control}:{who}")))


def _number(text: str) -> float | None:
    """A rate, such as .5 or 50%; None for a name."""
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    if not 0 <= value <= 1:
        raise ValueError(f"a rate lies between 0 and 1, and nothing can be above or below {text}")
    return value


def _difference(tried: Outcomes, who: str, measure: str, than: str | float,
                sign: int) -> tuple[stats.Difference, float, float]:
    """The difference that a requirement is about, its p, and the p of "as good as none".

    "> blind" asks what a verdict asks: is the explainer above random and each blind control, and by more than the margin?
    """
    one = tried.measures[measure]
    if than == "blind" and sign > 0 and who in one.values and who in tried.explainers and one.controls_of(who):
        beside = compared(one, tried, [who])
        small = beside.random[who].value >= 0 and beside.lead(who) < beside.margin(who)
        return beside.closest(who)[1], 1.0 if small else beside.p_guess(who), beside.p_no_better(who)
    unknown = np.full(len(tried.cases), np.nan)  # of an explainer that explained none
    own = one.values.get(who, unknown)
    other = own * 0 + than if isinstance(than, float) else _column(one, who, than)
    if other is None or (than == "blind" and sign > 0 and who in tried.explainers):
        other = unknown
    chance = one.chance if "random" in (who, than) else None
    found = stats.paired(own, other, tried.shared, grain=one.grain, chance=chance)
    return found, found.p, stats.equivalent(found)


def _settled(text: str, found: stats.Difference, p: float, same: float, sign: int) -> Required:
    if not found.n:
        return Required(text, UNDECIDED, "undecided: too few inputs have both numbers")
    told = f"difference {found.value:+.3f} ({found.low:+.3f} to {found.high:+.3f}), n = {found.n}, p = {p:.2g}"
    if p <= stats.LEVEL and found.value * sign > 0:
        return Required(text, HOLDS, f"holds: {told}")
    if p <= stats.LEVEL:
        return Required(text, FAILS, f"does not hold, the other way round: {told}")
    if same <= stats.LEVEL:
        none = (f"shown to be less than {stats.MARGIN:g} above the best blind guess, or half of what that leaves to be found"
                if sign > 0 and text.endswith("blind") else f"no difference within ± {stats.MARGIN:g}")
        return Required(text, FAILS, f"does not hold, {none}: {told}")
    more = f", about {stats.needed(found):,} cases needed" if found.freedom > 0 and stats.needed(found) > found.n else ""
    return Required(text, UNDECIDED, f"undecided: {told}{more}")


def exit_code(results: Sequence[Required]) -> int:
    """1 where any does not hold, else 2 where any is undecided, else 0."""
    codes = {one.code for one in results}
    return FAILS if FAILS in codes else UNDECIDED if UNDECIDED in codes else HOLDS
