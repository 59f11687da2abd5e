"""Sections: which of the parts that mattered were found again, and whether a good fit goes with a hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from whytrust.pictures import colours, html
from whytrust.pictures.html import Markup, join, tag
from whytrust.pictures.shown import figures
from whytrust.report.words import (
    BLUE,
    DARK_ORANGE,
    Findings,
    breakable,
    contenders,
    count,
    key,
    known,
    percent,
    section,
    sentence,
    termed,
)

BINS, TALLEST = 50, 12
LOWEST = -1.0
"""R² may be any negative number; what lies below this is drawn at the left edge, and said."""


def recovery(findings: Findings) -> Markup | None:
    """Stacked bars a k: in how many cases 0, 1, … k of the k parts that were left of the attack were found."""
    panels = [panel for one in findings.get("recovery") or [] if (panel := _recovered(findings, one)) is not None]
    if not panels:
        return None
    left = ("Only k of the swaps were kept" if findings.get("kind") == "text" else
            "Only the k most changed parts were left of the attack")
    about = tag("p", termed(findings, f"{left}, where that still turned the answer; then the input was explained again. Those "
                                      "k parts are the whole cause: how many of them are among the explainer’s k best?"))
    return section("recovery", termed(findings, "Are the guilty parts found?"), about, tag("div", *panels, class_="panels"))


def _recovered(findings: Findings, one: Mapping[str, Any]) -> Markup | None:
    k, given = int(known(one.get("k")) or 0), one.get("counts") or {}
    rows = [(key(c), c.name, [known(v) or 0.0 for v in given[c.name]]) for c in contenders(findings)
            if c.name in given and c.name != "random"]
    rows = [row for row in rows if sum(row[2]) > 0]
    if k < 1 or not rows:
        return None
    lines = [tag("tr", tag("th", tag("span", sign, breakable(name), class_="named"), scope="row"),
                 tag("td", _stack(name, numbers, k))) for sign, name, numbers in rows]
    chance = [known(v) or 0.0 for v in one.get("random") or []]
    if sum(chance) > 0:
        lines.append(tag("tr", tag("th", termed(findings, "expected of random parts"), scope="row"),
                         tag("td", _stack("random, expected", chance, k, counted=False)), class_="baseline"))
    legend = [tag("span", tag("span", class_="swatch", style=f"background:{_shade(found, k)}"), _found(found, k), class_="key")
              for found in range(k + 1)]
    of = known(one.get("of"))
    title = f"k = {k}: {count(one.get('n'), 'case')}" if of is None else f"k = {k}: {one.get('n')} of {count(of, 'case')}"
    return tag("figure", tag("h3", title), tag("p", *legend, class_="legend"),
               tag("table", tag("tbody", *lines), class_="stacks"))


def _found(found: int, k: int) -> str:
    if k == 1:
        return "found" if found else "not found"
    return "none found" if found == 0 else f"all {k}" if found == k else str(found)


def _shade(found: int, k: int) -> str:
    return "#e4e7eb" if found == 0 else colours.css(0.25 + 0.75 * found / k if k > 1 else 1.0)


def _stack(name: str, numbers: Sequence[float], k: int, counted: bool = True) -> Markup:
    whole = sum(numbers)
    pieces, words = [], []
    for found, number in enumerate(numbers):
        share = number / whole
        words.append(f"{_found(found, k)}: {percent(share)}")
        if share == 0:
            continue
        ink = "#1b1f24" if found == 0 else colours.text_css(0.25 + 0.75 * found / k if k > 1 else 1.0)
        shown = (f"{number:,.0f}" if counted else percent(share)) if share > 0.11 else None
        width = html.number(round(100 * share, 2))
        pieces.append(tag("span", shown, style=f"width:{width}%;background:{_shade(found, k)};color:{ink}"))
    said = f"{name}: {', '.join(words)}"
    return tag("div", *pieces, class_="stack-bar", role="img", aria_label=said, title=said)


def fidelity(findings: Findings) -> Markup | None:
    """Does a local model that fits well find the cause more often? Dots of R² for hits and for misses."""
    panels = [drawn for one in findings.get("fidelity") or [] if (drawn := _strips(one)) is not None]
    if not panels:
        return None
    about = tag("p", termed(findings, "Fidelity (R²) says how well the simple local model follows the model around an input. "
                            "It is often taken as a sign that an explanation can be trusted. Here one can check: do those "
                            "that found the cause (hits) have a higher fidelity than those that did not (misses)?"))
    return section("fidelity", "Does a good fit mean a right explanation?", about, tag("div", *panels, class_="panels fits"))


def _strips(one: Mapping[str, Any]) -> Markup | None:
    hits, misses = ([v for raw in one.get(which) or [] if (v := known(raw)) is not None] for which in ("hits", "misses"))
    if not hits and not misses:
        return None
    low = min(0.0, max(LOWEST, min([*hits, *misses])))
    low = -1.0 if low < -0.5 else -0.5 if low < 0 else 0.0
    counts = [_binned(values, low) for values in (hits, misses)]
    each = max(1, -(-max(max(c) for c in counts) // TALLEST))
    rows = [_dots(values, numbers, low, each, colour, name) for values, numbers, colour, name in
            zip((hits, misses), counts, (BLUE, DARK_ORANGE), ("hits", "misses"), strict=True)]
    notes = [f"One dot is {count(each, 'case')}{' or fewer' if each > 1 else ''}; the line is the median."]
    below = sum(v < low for v in [*hits, *misses])
    if below:
        notes.append(f"{count(below, 'case')} below {figures(low)} {'is' if below == 1 else 'are'} drawn at the left edge.")
    number = _auc(one.get("auc") or {})
    return tag("figure", tag("h3", tag("bdi", f"{one.get('name')}"), f", judged by {one.get('trial')}"),
               tag("p", sentence(str(one["words"]))) if one.get("words") else None, *rows, _scale(low),
               tag("figcaption", " ".join([number, *notes] if number else notes)))


def _auc(auc: Mapping[str, Any]) -> str | None:
    value, low, high = (known(auc.get(part)) for part in ("value", "low", "high"))
    if value is None or low is None or high is None:
        return None
    return (f"AUC {value:.2f} (95% range {low:.2f} to {high:.2f}; 0.5 is no connection, 1 a perfect one): a hit picked at "
            f"random fits better than a miss picked at random in {percent(value)} of pairs.")


def _binned(values: Sequence[float], low: float) -> list[int]:
    counts = [0] * BINS
    for v in values:
        counts[min(BINS - 1, max(0, int((v - low) / (1 - low) * BINS)))] += 1
    return counts


def _dots(values: Sequence[float], counts: Sequence[int], low: float, each: int, colour: str, name: str) -> Markup:
    side = 400 / BINS
    tall = max(2, -(-max(counts) // each))
    height = side * tall + 4
    marks = [tag("circle", cx=side * (b + 0.5), cy=height - 2 - side * (level + 0.5), r=side * 0.42,
                 fill=colour if name == "hits" else "#fff", stroke=colour)
             for b, number in enumerate(counts) for level in range(-(-number // each))]
    middle = median(values) if values else None
    line = [] if middle is None else [tag("line", x1=_x(middle, low), x2=_x(middle, low), y1=0, y2=height, class_="median")]
    said = f"{count(len(values), name[:-1] if name == 'hits' else 'miss', name)}" + (
        f", median R² {figures(round(middle, 2))}" if middle is not None else "")
    dot = tag("span", "● " if name == "hits" else "○ ", style=f"color:{colour}")
    return join([tag("p", dot, said, class_="strip-name"),
                 tag("svg", *marks, *line, tag("line", x1=0, x2=400, y1=height - 1, y2=height - 1, class_="zero"),
                     viewBox=f"0 0 400 {html.number(height)}", class_="dots", role="img", aria_label=f"Dot plot: {said}")])


def _x(value: float, low: float) -> float:
    return 400 * min(max((value - low) / (1 - low), 0.0), 1.0)


def _scale(low: float) -> Markup:
    places = [low + (1 - low) * i / 4 for i in range(5)]
    return tag("p", *(tag("span", ("R² " if i == 0 else "") + figures(round(v, 3))) for i, v in enumerate(places)),
               class_="scale", aria_hidden="true")
