"""From which answer to which: an explainer may find what adds a voice, and not what takes it away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from whytrust import stats
from whytrust.pictures.html import Markup, tag
from whytrust.report.outcomes import BASELINES, FULL, Record, outcomes
from whytrust.report.words import Findings, contenders, count, percent, ranged, section, table, termed

MOST = 4
"""Of more directions than this each would have too few cases to say anything."""
SHOWN = {"flip@3": "k = 3", "flip": "all k", "recovery": "recovered"}
Plain = dict[str, Any]


def directions_of(records: Sequence[Record], ranked: Sequence[str]) -> list[Plain]:
    """The rates of every contender, apart for each pair of answers before and after; empty where there is one or very many.

    An answer that the attack never turned is a direction too, with no rates.
    """
    ended = [r for r in records if r["status"] in ("ok", "not fooled")]
    fooled = [r for r in ended if r["status"] == "ok"]
    labels = {r["clean_label"]: str(r["clean_name"]) for r in ended if "clean_name" in r}
    pairs = {(str(r.get("clean_name", "")), str(r.get("label_name", ""))) for r in fooled}
    held = set(labels.values()) - {before for before, _ in pairs}
    pairs |= {(name, (set(labels.values()) - {name}).pop() if len(labels) == 2 else "any other") for name in held}
    if not 2 <= len(pairs) <= MOST:
        return []
    found = []
    for before, after in sorted(pairs):
        own = [r for r in fooled if (str(r.get("clean_name", "")), str(r.get("label_name", ""))) == (before, after)]
        attacked = sum(labels.get(r["clean_label"]) == before for r in ended)
        rates = rates_of(own, ranked) if own else {}
        found.append({"before": before, "after": after, "n": len(own), "of": attacked, "rates": rates})
    return found


def rates_of(records: Sequence[Record], ranked: Sequence[str]) -> dict[str, dict[str, Plain]]:
    """The rates of every contender on some of the cases."""
    tried = outcomes(records, FULL, ranked)
    return {measure: {name: asdict(stats.rate(tried.measures[measure].values[name], tried.shared,
                                              grain=tried.measures[measure].grain))
                      for name in (*ranked, *BASELINES) if name in tried.measures[measure].values}
            for measure in SHOWN if measure in tried.measures}


def directions(findings: Findings) -> Markup | None:
    """A table a direction: flips at k = 3, over all k, and what was recovered."""
    given = findings.get("directions") or []
    if not given:
        return None
    panels = [_panel(findings, one) for one in given]
    about = tag("p", "The same cases, apart by what the model said before and after the attack. With fewer cases each, the "
                     "ranges are wider; a difference between two directions is not tested here.")
    return section("directions", "From which answer to which?", about, *panels)


def _panel(findings: Findings, one: Mapping[str, Any]) -> Markup:
    share = f" ({percent(one['n'] / one['of'])})" if one["of"] else ""
    fooled = f"{one['n']} of {count(one['of'], termed(findings, 'input'))} fooled{share}"
    title = tag("h3", tag("bdi", one["before"], class_="answer"), " → ", tag("bdi", one["after"], class_="answer"))
    rates = told_rates(findings, one["rates"], f"{one['before']} to {one['after']}")
    return tag("figure", title, tag("p", fooled if rates else f"{fooled}: nothing to explain.", class_="aside"), rates)


def told_rates(findings: Findings, rates: Mapping[str, Any], what: str) -> Markup | None:
    """A table of some cases' rates; None where there are none."""
    measures = [name for name in SHOWN if name in rates]
    rows = [[who.name, *(_told(rates[name].get(who.name)) for name in measures)] for who in contenders(findings)]
    return table(["", *(SHOWN[name] for name in measures)], rows, f"{what}: rates", 1) if measures else None


def _told(rate: Mapping[str, Any] | None) -> str:
    return "–" if rate is None or rate.get("value") is None or rate["value"] != rate["value"] else ranged(rate)
