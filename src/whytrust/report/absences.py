"""Section: did the words that were swapped in turn the answer, or the lack of those that stood there?

An explanation of the changed text can point at a word that is there. What is no longer there it cannot see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whytrust.pictures.html import Markup, tag
from whytrust.report.directions import rates_of, told_rates
from whytrust.report.outcomes import Record
from whytrust.report.words import Findings, count, known, percent, section

TITLES = {"there": "New words turned it", "gone": "The lack of old words turned it"}
ABOUT = {"there": "Without the new words the answer is no longer the new one: they are what it rests on, and an explanation "
                  "can point at them.",
         "gone": "Also without the new words the answer is the new one: the swap worked by taking words away, and a low score "
                 "of what stands there now is no mistake. Such cases pull every explainer’s rates towards random."}
Plain = dict[str, Any]


def absences_of(records: Sequence[Record], ranked: Sequence[str]) -> list[Plain]:
    """The rates of every contender, apart for texts whose new words matter and for those where the old ones are missed."""
    fooled = [r for r in records if r["status"] == "ok" and (r.get("attack") or {}).get("absence") is not None]
    found = []
    for name, gone in (("there", False), ("gone", True)):
        own = [r for r in fooled if r["attack"]["absence"] is gone]
        found.append({"name": name, "n": len(own), "of": len(fooled), "rates": rates_of(own, ranked) if own else {}})
    return found if fooled else []


def absences(findings: Findings) -> Markup | None:
    """A table for either kind of case."""
    given = findings.get("absences") or []
    panels = [_panel(findings, one) for one in given if one.get("name") in TITLES]
    if not panels:
        return None
    about = tag("p", "A swap puts a word in and takes one away, and either can be what turns the answer. An explainer sees the "
                     "changed text alone. So the texts are counted apart here, by whether the new answer stays when the new "
                     "words are removed.")
    return section("absences", "A new word, or a missing one?", about, *panels)


def _panel(findings: Findings, one: Mapping[str, Any]) -> Markup:
    name, n, of = str(one["name"]), known(one.get("n")) or 0, known(one.get("of")) or 0
    share = f" ({percent(n / of)})" if of else ""
    cases = tag("p", f"{n:,.0f} of {count(of, 'text')}{share}. {ABOUT[name]}", class_="aside")
    rates = told_rates(findings, one.get("rates") or {}, TITLES[name])
    return tag("figure", tag("h3", TITLES[name]), cases, rates)
