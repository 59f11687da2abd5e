"""Section: how many of an explainer's best parts it takes to turn the model's answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from whytrust.pictures.html import Markup, join, tag
from whytrust.report.chart import Line, drawing
from whytrust.report.words import Findings, badge, contenders, kinds_of, known, percent, section, table, termed

JUDGES = {"any": "any other answer", "target": "the very answer the attack led to"}
DROP = 0.5
"""The axis ends where the lines lie closer together than this share of their widest spread: with all parts, all are equal."""


LAID_OVER = ("Each explainer ranks the parts of an input. The attack's change is laid over the untouched input in that order, "
             "best part first. The sooner a line rises, the better its explainer knew which parts turned the answer.")
SWAPPED = ("Each explainer ranks the words of the changed text. In that order, best word first, each word of the untouched "
           "text is replaced by the one at its place in the changed text; most are the same word. The sooner a line rises, "
           "the better its explainer knew which words turned the answer.")
COLUMNS = 11
"""Columns of a table of numbers; more would be cut off in print."""


def flip_curves(findings: Findings) -> Markup | None:
    """One line a contender, for each way of judging a flip; None where nothing was measured."""
    panels = {judge: _panel(findings, curve, judge) for judge in JUDGES
              if (curve := (findings.get("curves") or {}).get(judge))}
    drawn = {judge: panel for judge, panel in panels.items() if panel is not None}
    if not drawn:
        return None
    about = tag("p", (SWAPPED if findings.get("kind") == "text" else LAID_OVER) + " A line’s colour is its verdict, the shaded "
                     "band its 95% range; point at a line or step to it with the Tab key to see it alone.")
    title = termed(findings, "How few parts turn the answer?")
    return section("curves", title, about, _key(findings), _chosen(drawn))


def _key(findings: Findings) -> Markup | None:
    """What the colours of the lines mean: the kinds of verdict that occur."""
    there = {str(one.get("kind")) for one in findings.get("verdicts") or []}
    words = [badge(kind, kind.short) for name, kind in kinds_of(findings).items() if name in there]
    return tag("p", tag("span", "Colours: "), *words, class_="legend") if words else None


def _chosen(drawn: Mapping[str, Markup]) -> Markup:
    """Radio buttons before the panels: which is shown is a rule of the style, so that no script is needed."""
    if len(drawn) == 1:
        return join([tag("p", f"An answer counts as turned if it becomes {JUDGES[next(iter(drawn))]}.", class_="aside"),
                     *drawn.values()])
    inputs: list[Markup] = []
    for i, judge in enumerate(drawn):
        inputs += [tag("input", type="radio", name="judge", id=f"judge-{judge}", class_=f"pick {judge}", checked=i == 0),
                   tag("label", JUDGES[judge], for_=f"judge-{judge}")]
    panels = [tag("div", tag("h3", f"The answer becomes {JUDGES[judge]}", class_="on-paper"), panel, class_=f"panel {judge}")
              for judge, panel in drawn.items()]
    return tag("fieldset", tag("legend", "The answer counts as turned if it becomes"), *inputs, *panels, class_="choice")


def _panel(findings: Findings, curve: Mapping[str, Any], judge: str) -> Markup | None:
    axis = [known(x) or 0.0 for x in curve.get("x") or []]
    everyone = contenders(findings)
    given = curve.get("lines") or {}
    lines = [Line(one, _shares(given[one.name].get("value"), len(axis)), _shares(given[one.name].get("low"), len(axis)),
                  _shares(given[one.name].get("high"), len(axis))) for one in everyone if one.name in given]
    lines = [line for line in lines if line.last is not None]
    if not lines or not axis:
        return None
    shown = _cut(lines, len(axis))
    cut = [Line(line.who, line.value[:shown], line.low[:shown] if line.low else None,
                line.high[:shown] if line.high else None) for line in lines]
    percents = curve.get("unit") == "percent"
    below = termed(findings, "per cent of the parts laid over, best first" if percents else "parts laid over, best first")
    spoken = (f"Line chart: share of {termed(findings, 'inputs')} whose answer becomes {JUDGES[judge]}, by {below}. "
              + "; ".join(f"{line.who.name} {percent(line.value[0])} to {percent(line.value[shown - 1])}" for line in cut))
    until = f"{axis[shown - 1]:g}%" if percents else f"{axis[shown - 1]:g} of {axis[-1]:g} {termed(findings, 'parts')}"
    parts = findings.get("parts") or {"least": "?", "most": "?"}
    told = f"Inputs have {parts['least']} to {parts['most']} parts; a share of them is rounded down, to at least one part."
    rounded = tag("p", termed(findings, told), class_="aside") if percents and parts else None
    closed = termed(findings, "beyond that the lines close up, since with all parts laid over every answer turns")
    rest = tag("p", f"Drawn up to {until}: {closed}. The table has every number.",
               class_="aside") if shown < len(axis) else None
    return join([*(drawing(cut, _ticks(axis[:shown], narrow), shown, below, spoken, narrow, "share of answers turned")
                   for narrow in (False, True)), rounded, rest,
                 _numbers(lines, axis, percents)])


def _shares(values: Any, length: int) -> list[float | None]:
    found = [known(v) for v in values or []][:length]
    return found + [None] * (length - len(found))


def _cut(lines: Sequence[Line], length: int) -> int:
    """How many places of the axis to draw."""
    spreads = []
    for place in range(length):
        here = [v for line in lines if (v := line.value[place]) is not None]
        # Around the median: one line that stays behind must not keep all others on a common ceiling.
        spreads.append(sum(abs(v - median(here)) for v in here) / len(here) if here else 0.0)
    widest = max(spreads)
    wide = [place for place, s in enumerate(spreads) if s >= DROP * widest] if widest > 0 else []
    return max(min(length, 4), wide[-1] + 1) if wide and len(lines) > 1 else length


def _ticks(axis: Sequence[float], narrow: bool) -> list[tuple[int, str]]:
    step = max(1, -(-len(axis) // (6 if narrow else 12)))
    return [(i, f"{x:g}") for i, x in enumerate(axis) if i % step == 0]


def _numbers(lines: Sequence[Line], axis: Sequence[float], percents: bool) -> Markup:
    """In pieces that fit a sheet of paper."""
    tables = []
    for start in range(0, len(axis), COLUMNS):
        here = slice(start, start + COLUMNS)
        heads = ["", *(f"{x:g}{'%' if percents else ''}" for x in axis[here])]
        rows = [[line.who.name, *(percent(v) if v is not None else "–" for v in line.value[here])] for line in lines]
        tables.append(table(heads, rows, f"Share turned by number of parts, from {heads[1]}", 1))
    return tag("details", tag("summary", "The same as a table"), *tables)
