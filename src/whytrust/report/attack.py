"""Section: what was done to the inputs, and whether the verdicts hang on how strongly."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from whytrust.pictures.html import Markup, join, tag
from whytrust.pictures.shown import figures
from whytrust.report.chart import Line, drawing
from whytrust.report.words import Findings, contenders, count, known, percent, plain, ranged, section, spoken, table, termed

SPREADS = {
    "swapped": ("Words swapped", "How many words of a text were swapped."),
    "share": ("Share of words swapped", "Of all words of the text, those that were swapped."),
    "linf": ("Largest change of any value", "L∞: in the units of the input."),
    "l2": ("Length of the change", "L2: the square root of the sum of squares."),
    "relative_l2": ("Length of the change, relative to the input", "How large the change is beside the input itself."),
    "signal_to_noise": ("Signal to noise", "How much stronger the sound is than its change, in decibels."),
    "at_floor": ("Share of values at the floor", "Magnitudes stay at or above 0: of all, those that the attack brought down to "
                 "0."),
    "iterations": ("Steps of the attack", "How many steps the attack took."),
    "margin": ("How sure the model is of the new answer", "The new answer’s score minus that of the next best."),
}

ROWS = "From a row to its adversary, in standard deviations of each column; another category or a missing value counts as one."


def attack(findings: Findings) -> Markup | None:
    """How often the attack succeeded, how large the change was, and what its strength does to the verdicts."""
    given = findings.get("attack") or {}
    rows = _rows(findings, given)
    stability = _stability(findings)
    if not rows and stability is None:
        return None
    lines = [tag("tr", tag("th", label, scope="row"), tag("td", value, class_="number"), tag("td", meaning, class_="meaning"))
             for label, value, meaning in rows]
    facts = tag("table", tag("tbody", *lines), class_="facts") if rows else None
    return section("attack", "The attack", facts, stability)


def _rows(findings: Findings, given: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    counts = findings.get("counts") or {}
    rows = []
    if given.get("method"):
        settings = ", ".join(f"{plain(str(k))} {spoken(v)}" for k, v in (given.get("settings") or {}).items() if k != "method")
        rows.append(("Method", str(given["method"]), settings))
    if given.get("success"):
        left = [count(counts[key], words, words) for key, words in (("not_fooled", "not fooled"), ("failed", "failed"))
                if known(counts.get(key))]
        share = termed(findings, "Share of inputs that the attack led to its goal, with its 95% range")
        rows.append(("Success", ranged(given["success"]), share
                     + (f"; {', '.join(left)}." if left else ".")))
    before, after = known(given.get("accuracy_before")), known(given.get("accuracy_after"))
    if before is not None:
        rows.append(("Right answers before", percent(before), termed(findings, "Share of inputs that the model answers rightly "
                                                                               "untouched.")))
    if after is not None:
        rows.append(("Right answers after", percent(after), "The same after the attack."))
    for key, (label, meaning) in SPREADS.items():
        spread = given.get(key) or {}
        meaning = ROWS if key == "l2" and findings.get("kind") == "tabular" else meaning
        if known(spread.get("median")) is not None:
            most = f" (at most {figures(known(spread.get('max')))})" if known(spread.get("max")) is not None else ""
            rows.append((label, figures(known(spread["median"])) + most, f"Median. {meaning}"))
    if idle := known(given.get("idle")):
        rows.append(("Nothing to swap", count(idle, "text"), "Not fooled: no swap that keeps the rules lowered the first "
                                                             "answer’s score."))
    return rows


def _stability(findings: Findings) -> Markup | None:
    given = findings.get("strengths") or {}
    names = [str(n) for n in given.get("names") or []]
    if len(names) < 2:
        return None
    lines = [Line(one, [_share(v) for v in (given.get("rates") or {})[one.name]][: len(names)])
             for one in contenders(findings) if one.name in (given.get("rates") or {})]
    lines = [line for line in lines if len(line.value) == len(names) and line.last is not None]
    stable = given.get("stable")
    mark = "" if stable is None else "✓ " if stable else "⚠ "
    said = given.get("words")
    words = tag("p", tag("span", mark, class_="icon"), str(said), class_="doubt") if said else None
    spoken_ = "Line chart of each contender’s rate by the strength of the attack. " + "; ".join(
        f"{line.who.name} {' to '.join(percent(v) for v in line.value)}" for line in lines)
    empty = [names[i] for i, n in enumerate(given.get("adversaries") or []) if n == 0 and i < len(names)]
    none = tag("p", f"At strength {', '.join(empty)} no input was fooled: nothing can be said there.", class_="aside")
    charts = [drawing(lines, [(i, _short(name, narrow)) for i, name in enumerate(names)], len(names), "strength of the attack",
                      spoken_, narrow, "flip: share of answers turned", _bounds(lines)) for narrow in (False, True) if lines]
    numbers = tag("details", tag("summary", "The same as a table"), _by_strength(names, given, lines)) if lines else None
    return join([tag("h3", "Do the verdicts hang on the attack’s strength?"), words, *charts, none if empty else None, numbers])


def _share(value: Any) -> float | None:
    """A rate, or None where there is none: a share is never below 0."""
    found = known(value)
    return None if found is None or found < 0 else found


def _by_strength(names: Sequence[str], given: Mapping[str, Any], lines: Sequence[Line]) -> Markup:
    adversaries = [count(n, "adversary", "adversaries") for n in given.get("adversaries") or []]
    heads = ["", *(f"{name} ({adversaries[i]})" if i < len(adversaries) else name for i, name in enumerate(names))]
    rows = [[line.who.name, *(percent(v) if v is not None else "–" for v in line.value)] for line in lines]
    return table(heads, rows, "Rates by strength of the attack", 1)


def _bounds(lines: Sequence[Line]) -> tuple[float, float]:
    """Tens of per cent around all lines: here it is their order that counts, not their height above 0."""
    values = [v for line in lines for v in line.value if v is not None]
    low, high = math.floor(min(values) * 10) / 10, math.ceil(max(values) * 10) / 10
    if high - low > 0.5:
        low, high = math.floor(low * 4) / 4, math.ceil(high * 4) / 4
    return low, max(high, low + 0.1)


def _short(name: str, narrow: bool) -> str:
    most = 10 if narrow else 24
    return name if len(name) <= most else name[: most - 1] + "…"
