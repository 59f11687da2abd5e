"""The bar chart of an explanation as inline SVG: each bar's rank, name and number above it, so that no label is cut off."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from whytrust.legible import cut
from whytrust.pictures import colours, html
from whytrust.pictures.html import Markup, tag
from whytrust.pictures.shown import TOP, Shown, error, label, one_line, painted, ranked, signed, slope

WIDTH, ROW, FONT = 400.0, 36.0, 13.0
_EDGE, _BAR_TOP, _BAR = 6.0, 19.0, 11.0


@dataclass(frozen=True)
class Bar:
    """One bar: its part, its score, half the width of its 95% range, and the two as words."""

    rank: int
    part: int
    name: str
    score: float
    error: float | None
    label: str

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest number this bar has to reach."""
        reach = self.error or 0.0
        return min(0.0, self.score - reach), max(0.0, self.score + reach)


def bars(e: Shown, top: int = TOP) -> list[Bar]:
    """The bars of the parts with the largest |score|."""
    scores = painted(e)
    return [Bar(rank, part, _named(e, part), float(scores[part]), error(e, part), label(e, part))
            for rank, part in enumerate(ranked(e)[:top], start=1)]


def _named(e: Shown, part: int) -> str:
    own = slope(e, part)
    return one_line(e.names[part]) + ("" if own is None else f" (slope {signed(own)})")


def chart(e: Shown, top: int = TOP) -> Markup:
    """The bar chart: widths in proportion to the scores, thin lines for 95% ranges, a line at zero."""
    rows = bars(e, top)
    low, high = min((b.ends[0] for b in rows), default=0.0), max((b.ends[1] for b in rows), default=0.0)
    scale = (WIDTH - 2 * _EDGE) / (high - low) if high > low else 0.0
    zero = _EDGE - low * scale if scale else WIDTH / 2
    height = ROW * len(rows) + 16
    drawn = [_row(bar, ROW * i, zero, scale) for i, bar in enumerate(rows)]
    axis = tag("text", "0", x=zero, y=height - 3, class_="axis", text_anchor="middle")
    words = "; ".join(f"{b.rank}. {b.name} {b.label}" for b in rows)
    return tag("svg", *drawn, axis, viewBox=f"0 0 {html.number(WIDTH)} {html.number(height)}", role="img", class_="chart",
               aria_label=f"Bar chart of scores: {words}")


def fit(text: str, room: float, font: float = FONT) -> str:
    """The text, or its beginning and end around an ellipsis where it is wider than the room."""
    text = cut(text)
    if text_width(text, font) <= room:
        return text
    for kept in range(len(text) - 1, 1, -1):
        end = kept // 3
        short = text[: kept - end].rstrip() + "…" + text[len(text) - end:].lstrip()
        if text_width(short, font) <= room:
            return short
    return "…"


def text_width(text: str, font: float = FONT) -> float:
    """About how wide a text is in a sans-serif font; rather too wide than too narrow."""
    return font * sum(_character_width(c) for c in text)


def _character_width(c: str) -> float:
    if unicodedata.combining(c) or unicodedata.category(c) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(c) in "WF" or unicodedata.category(c) == "So":
        return 1.3 if ord(c) > 0xFFFF else 1.05
    if c in "iljtfr.,:;'|!()[]{} /\\-":
        return 0.4
    if c in "mwMW@%—…" or ord(c) > 0x2015:
        return 1.0
    return 0.74 if c.isupper() else 0.64


def _row(bar: Bar, top: float, zero: float, scale: float) -> Markup:
    width = abs(bar.score) * scale
    room = WIDTH - 2 * _EDGE - text_width(f"{bar.rank}. ") - text_width(bar.label) - 10
    kind = "for" if bar.score > 0 else "against"
    middle = top + _BAR_TOP + _BAR / 2
    pieces = [
        tag("title", f"{bar.rank}. {bar.name}: {bar.label}"),
        tag("text", f"{bar.rank}. {fit(bar.name, room)}", x=_EDGE, y=top + 14, class_="name"),
        tag("text", bar.label, x=WIDTH - _EDGE, y=top + 14, class_="score", text_anchor="end"),
        tag("rect", x=zero - (width if bar.score < 0 else 0), y=top + _BAR_TOP, width=width, height=_BAR,
            class_=f"bar {kind}", fill=colours.css(1.0 if bar.score > 0 else -1.0)),
    ]
    pieces.append(tag("line", x1=zero, x2=zero, y1=top + _BAR_TOP - 2, y2=top + _BAR_TOP + _BAR + 2, class_="zero"))
    if bar.error is not None:
        left, right = (zero + (bar.score + way * bar.error) * scale for way in (-1, 1))
        pieces.append(tag("line", x1=left, x2=right, y1=middle, y2=middle, class_="error"))
        pieces += [tag("line", x1=x, x2=x, y1=middle - 4, y2=middle + 4, class_="cap") for x in (left, right)]
    return tag("g", *pieces, class_="row")
