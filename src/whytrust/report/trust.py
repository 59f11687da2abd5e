"""What simulated readers found out, as a page and as text: one form for all experiments, told by their findings.

Findings are plain data: a question, answers in words, tables, charts, what failed and what to know. Whoever adds an experiment
writes findings, and no page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from whytrust import legible
from whytrust.pictures import html
from whytrust.pictures.bars import fit, text_width
from whytrust.pictures.html import Markup, tag
from whytrust.pictures.shown import figures
from whytrust.pictures.styles import FRAGMENT, PAGE
from whytrust.report.chart import Line, Say, drawing
from whytrust.report.styles import AUDIT
from whytrust.report.words import (
    BLUE,
    DARK_ORANGE,
    GREY,
    LIGHT_BLUE,
    ORANGE,
    Contender,
    Kind,
    count,
    known,
    percent,
    ranged,
    section,
    spoken,
    table,
)
from whytrust.report.words import plain as in_words

Findings = Mapping[str, Any]
TITLES = {"prediction": "Should I trust this prediction?", "model": "Should I trust this model?",
          "faithfulness": "Do explanations find what a model really uses?", "repair": "Can a reader repair the model?",
          "insight": "Do explanations give an artefact away?"}
SIMULATED = "Readers are simulated: they act by fixed rules, and stand for people who believe what an explanation says."
FLOORS = ("random", "trust everything", "before", "no repair", "all deleted", "knows all", "SP-random", "RP-random",
          "the same text again", "the model itself")
"""What stands beside explainers and is none: drawn in grey."""
COLOURS = (BLUE, DARK_ORANGE, LIGHT_BLUE, ORANGE)
LISTED = 12
STYLE = """
& .told-first { font-size: 1.12em; margin: .4em 0 .2em; padding-inline-start: 1.1em; }
& .told-first li { margin: .35em 0; }
& .bars { width: 100%; height: auto; display: block; max-width: 860px; }
& .bars.narrow { display: none; }
@media (max-width: 640px) { & .bars.narrow { display: block; } & .bars.roomy { display: none; } }
& .bars text { fill: #24292f; }
& .bars .soft { fill: #57606a; }
& .hint { color: #57606a; margin: .2em 0 .8em; }
"""


def document(found: Findings) -> str:
    """A whole page that needs nothing else. It misleads where readers are taken for people: they act by fixed rules."""
    return whole(_title(found), content(found))


def whole(title: str, sections: Sequence[Markup | None], style: str = "") -> str:
    """Sections as a page without scripts; `style` has further rules."""
    return html.document(title, PAGE + FRAGMENT + AUDIT + STYLE.replace("&", ".whytrust") + style,
                         tag("a", "Skip to the answer", href="#answer", class_="skip"),
                         tag("main", *sections, class_="whytrust audit", id="main"))


def content(found: Findings) -> list[Markup | None]:
    """The sections of the page."""
    return [header(_title(found), found, "case", SIMULATED), answer(found), *charts(found), *tables(found), *remarks(found)]


def _title(found: Findings) -> str:
    return TITLES.get(str(found["experiment"]), str(found["experiment"]))


def header(title: str, found: Findings, one: str, hint: str, *more: Markup | None) -> Markup:
    """The question, and how many cases there are; `one` of them is called so."""
    cases = found["cases"]
    counted = count(cases["of"], one)
    if cases["done"] < cases["of"]:
        counted = f"{cases['done']:,} of {counted}"
    failed = f", {cases['failed']:,} of which failed" if cases["failed"] else ""
    return tag("header", tag("h1", title), tag("p", str(found["question"])),
               tag("p", f"{counted}{failed}. {hint}", class_="hint"), *more)


def answer(found: Findings) -> Markup:
    """What may be said, in words."""
    return section("answer", "The answer", tag("ul", *(tag("li", words) for words in found["answer"]), class_="told-first"))


def charts(found: Findings) -> list[Markup]:
    """A section a chart."""
    return [section(f"chart-{i}", str(one["title"]), tag("p", one.get("about"), class_="hint"), _chart(one))
            for i, one in enumerate(found["charts"], 1)]


def tables(found: Findings) -> list[Markup]:
    """A section a table."""
    return [section(f"table-{i}", str(one["title"]), tag("p", one.get("about"), class_="hint"), _table(one))
            for i, one in enumerate(found["tables"], 1)]


def remarks(found: Findings) -> list[Markup | None]:
    """What stands at the end: cautions, failures, settings."""
    foot = tag("footer", "Intervals are 95 % intervals. Made with whytrust.")
    return [_notes(found), _failures(found), _settings(found), foot]


# --- numbers ----------------------------------------------------------------------------------------------------------


def decimal(value: Any) -> str:
    """A number that is no share, .65: two decimals, or as many as show that it is not 1; a large one as a reader wants it."""
    found = known(value)
    if found is None:
        return "–"
    size = 1.0 if abs(abs(found) - 1) < 1e-9 else abs(found)  # a cosine of a text with itself is 1 but for roundings
    text = figures(size) if size > 1 else next(
        (t for t in (f"{size:.2f}", f"{size:.3f}") if size == 1 or float(t) < 1), ">.999").removeprefix("0")
    return ("−" if found < 0 and size >= 0.005 else "") + text


def saying(one: Mapping[str, Any]) -> Say:
    """How the numbers of a table or a chart are told: as shares, unless it says that they are none."""
    return decimal if one.get("as") == "number" else percent


def _table(one: Mapping[str, Any]) -> Markup:
    return table([str(head) for head in one["columns"]], _cells(one), str(one["title"]), 1)


def _cells(one: Mapping[str, Any]) -> list[list[str]]:
    return [[cell(c, one.get("as") == "number") for c in row] for row in one["rows"]]


def cell(value: Any, number: bool = False) -> str:
    """A rate with its interval, a number, or words; `number`: rates are no shares."""
    if isinstance(value, Mapping):
        return _range(value) if number else ranged(value)
    if isinstance(value, float):
        return decimal(value) if number else spoken(value)
    return "–" if value is None else spoken(value)


def _range(rate: Mapping[str, Any]) -> str:
    """A number that is no share, with its interval."""
    value, low, high = (known(rate.get(side)) for side in ("value", "low", "high"))
    return decimal(value) + (f" ({decimal(low)} to {decimal(high)})" if None not in (value, low, high) else "")


def _notes(found: Findings) -> Markup | None:
    if not found["notes"]:
        return None
    return section("notes", "What to know before believing it", tag("ul", *(tag("li", str(note)) for note in found["notes"])))


def _failures(found: Findings) -> Markup | None:
    failures = found["failures"]
    if not failures:
        return None
    rows = [tag("li", tag("b", str(one["case"])), ": ", str(one["error"])) for one in failures[:LISTED]]
    more = len(failures) - LISTED
    return section("failures", "What failed", tag("ul", *rows), tag("p", f"… and {more:,} more") if more > 0 else None)


def _settings(found: Findings) -> Markup:
    rows = [[in_words(str(name)), spoken(value)] for name, value in found["settings"].items() if value is not None]
    return section("settings", "How it was done", table(["setting", "value"], rows, "settings"))


# --- charts -----------------------------------------------------------------------------------------------------------


def _chart(one: Mapping[str, Any]) -> Markup:
    if one.get("kind") == "bars" or all(len(line["x"]) < 2 for line in one["series"]):
        return tag("div", *(_bars(one, narrow) for narrow in (False, True)))
    if any(isinstance(x, str) for line in one["series"] for x in line["x"]):
        return tag("div", *(_bars_of(one, line) for line in one["series"]))
    return tag("div", *(_lines(one, narrow) for narrow in (False, True)))


def _bars_of(one: Mapping[str, Any], line: Mapping[str, Any]) -> Markup:
    """A bar for each of several things that are in no order: a line from one to the next would say that there is one."""
    series = [{"name": x, "x": [0], **{side: [line[side][i]] for side in ("y", "low", "high") if line.get(side)}}
              for i, x in enumerate(line["x"])]
    return tag("figure", tag("h3", str(line["name"])), *(_bars({**one, "series": series}, narrow) for narrow in (False, True)))


def _lines(one: Mapping[str, Any], narrow: bool) -> Markup:
    places = sorted({x for line in one["series"] for x in line["x"]})
    lines = []
    for number, series in enumerate(one["series"]):
        at = {x: i for i, x in enumerate(series["x"])}
        looks = Kind("", GREY if series["name"] in FLOORS else COLOURS[number % len(COLOURS)], "", "", "")
        who = Contender(str(series["name"]), "", True, looks, number)
        low, high = ([known(series[side][at[x]]) if x in at else None for x in places] if series.get(side) else None
                     for side in ("low", "high"))
        lines.append(Line(who, [known(series["y"][at[x]]) if x in at else None for x in places], low, high))
    step = max(1, -(-len(places) // (6 if narrow else 12)))
    ticks = [(i, str(places[i])) for i in range(0, len(places), step)]
    seen = [v for line in lines for v in (*line.value, *(line.low or ()), *(line.high or ())) if v is not None]
    bounds = _bounds(min(seen, default=0.0), max(seen, default=1.0), one.get("as") == "number")
    return drawing(lines, ticks, len(places), str(one["x_label"]), f"{one['title']}: {one['y_label']}", narrow,
                   str(one["y_label"]), bounds, saying(one))


def _bounds(low: float, high: float, number: bool = False) -> tuple[float, float]:
    """The part of 0 to 1 that is worth drawing, in steps of a quarter; of numbers that are no shares, all that there is."""
    if number and (low < 0 or high > 1):
        step = 10.0 ** math.floor(math.log10(max(high, 0.0) - min(low, 0.0))) / 2
        return math.floor(min(low, 0.0) / step) * step, math.ceil(max(high, 0.0) / step) * step
    return max(min(int(low * 4) / 4, 0.75), 0.0), min(max(-int(-high * 4 // 1) / 4, 0.25), 1.0)


def _bars(one: Mapping[str, Any], narrow: bool) -> Markup:
    """A bar a series with its interval; names stand before, numbers behind. A narrow one is drawn for a telephone."""
    rows = [(str(s["name"]), s["y"][0], (s.get("low") or [None])[0], (s.get("high") or [None])[0]) for s in one["series"]]
    font, high, wide = (10.5, 26.0, 350.0) if narrow else (13.0, 30.0, 860.0)
    left = min(max((text_width(name, font) for name, *_ in rows), default=0) + 16, 0.35 * wide)
    right, pieces, say = 118.0 if narrow else 150.0, [], saying(one)
    most = max([1.0, *(n for row in rows for v in row[1:] if (n := known(v)) is not None)]) if say is decimal else 1.0

    def x(share: float) -> float:
        return left + (wide - left - right) * min(max(share / most, 0.0), 1.0)

    for place, (name, value, low, up) in enumerate(rows):
        y = place * high + 6
        colour = GREY if name in FLOORS else BLUE
        pieces.append(tag("text", fit(name, left - 12, font), x=left - 8, y=y + 14, text_anchor="end", font_size=font))
        share = known(value)
        if share is None:
            continue
        pieces.append(tag("rect", x=left, y=y, width=max(x(share) - left, 0.5), height=high - 12, fill=colour, rx=2))
        bounds = known(low), known(up)
        told = say(share)
        if bounds[0] is not None and bounds[1] is not None:
            told += f"  ({say(bounds[0]) if say is decimal else percent(bounds[0], False)} to {say(bounds[1])})"
            pieces += [tag("line", x1=x(bounds[0]), x2=x(bounds[1]), y1=y + 9, y2=y + 9, stroke="#24292f", stroke_width=1.5),
                       *(tag("line", x1=x(b), x2=x(b), y1=y + 5, y2=y + 13, stroke="#24292f", stroke_width=1.5)
                         for b in bounds if b is not None)]
        pieces.append(tag("text", told, x=max(x(share), x(bounds[1] or 0.0)) + 8, y=y + 14, font_size=font))
    height = len(rows) * high + 26
    below = fit(str(one["y_label"]), wide - left, font - 1)
    pieces.append(tag("text", below, x=left, y=height - 6, font_size=font - 1, class_="soft"))
    spoken = f"{one['title']}: " + "; ".join(f"{name} {say(value)}" for name, value, *_ in rows)
    return tag("svg", *pieces, viewBox=f"0 0 {html.number(wide)} {html.number(height)}", role="img", aria_label=spoken,
               class_="bars narrow" if narrow else "bars roomy")


# --- text -------------------------------------------------------------------------------------------------------------


def told(found: Findings) -> str:
    """The same in plain text."""
    lines = [str(found["question"]), ""]
    lines += [f"  {words}" for words in found["answer"]]
    for one in found["tables"]:
        lines += ["", f"{one['title']}", *_aligned([[str(c) for c in one["columns"]], *_cells(one)])]
    for note in found["notes"]:
        lines += ["", f"  ! {note}"] if note is found["notes"][0] else [f"  ! {note}"]
    if found["failures"]:
        first = found["failures"][0]
        lines += ["", f"  {count(len(found['failures']), 'failure')}; the first, {first['case']}: {first['error']}"]
    return legible.lines(lines)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    wide = [legible.width(row[i] for row in rows if i < len(row)) for i in range(max(len(row) for row in rows))]
    return ["  " + "  ".join(f"{c:<{wide[i]}}" for i, c in enumerate(row)).rstrip() for row in rows]
