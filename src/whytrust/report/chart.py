"""Lines over a common axis as SVG, each with its name at its end: nothing overlaps, and colour is never all that tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from whytrust.pictures import html
from whytrust.pictures.bars import fit, text_width
from whytrust.pictures.html import Markup, tag
from whytrust.report.words import Contender, mark, percent

SHADE = 0.07
"""How much a band covers of what lies below it; less where there are many."""
DARKEST = 0.45
"""How much of what lies below may be covered where all bands of a chart overlap: lines must be seen through them."""

Shares = Sequence[float | None]
Say = Callable[[float | None], str]


@dataclass(frozen=True)
class Line:
    """One contender's shares at each place of the axis, with the band around them where it is known."""

    who: Contender
    value: Shares
    low: Shares | None = None
    high: Shares | None = None

    @property
    def last(self) -> int | None:
        """The last place where there is a number."""
        return next((i for i in range(len(self.value) - 1, -1, -1) if self.value[i] is not None), None)


@dataclass(frozen=True)
class Frame:
    """Where the drawing lies: all lengths in the units of the view box."""

    width: float
    height: float
    left: float
    right: float  # room for the names
    top: float
    bottom: float
    font: float
    places: int
    low: float = 0.0
    high: float = 1.0

    def x(self, place: int) -> float:
        """The centre of a place on the axis."""
        return self.left + (self.width - self.left - self.right) * (place / (self.places - 1) if self.places > 1 else 0.5)

    def y(self, share: float) -> float:
        """The height of a share."""
        way = (min(max(share, self.low), self.high) - self.low) / (self.high - self.low)
        return self.top + (self.height - self.top - self.bottom) * (1 - way)


def spread(wanted: Sequence[float], gap: float, top: float, bottom: float) -> list[float]:
    """Heights near the wanted ones, in the same order, at least `gap` apart and inside; too many stand as far apart as fit."""
    if not wanted:
        return []
    gap = min(gap, (bottom - top) / max(len(wanted) - 1, 1))
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[list[float]] = []  # each: sum of (wanted - its own offset), how many; a block moves as one
    for i in order:
        blocks.append([wanted[i], 1])
        while len(blocks) > 1 and _start(blocks[-2], gap, top, bottom) + gap * blocks[-2][1] > _start(
                blocks[-1], gap, top, bottom) - 1e-9:
            total, size = blocks.pop()
            blocks[-1][0] += total - gap * blocks[-1][1] * size
            blocks[-1][1] += size
    out = [0.0] * len(wanted)
    place = iter(order)
    for block in blocks:
        first = _start(block, gap, top, bottom)
        for step in range(int(block[1])):
            out[next(place)] = first + gap * step
    return out


def _start(block: Sequence[float], gap: float, top: float, bottom: float) -> float:
    return min(max(block[0] / block[1], top), bottom - gap * (block[1] - 1))


def drawing(lines: Sequence[Line], ticks: Sequence[tuple[int, str]], places: int, below: str, spoken: str, narrow: bool,
            above: str = "", bounds: tuple[float, float] = (0.0, 1.0), say: Say = percent) -> Markup:
    """The chart; a narrow one is made for a telephone rather than shrunk, so that its letters stay legible.

    `say` tells a number in words, where it is no share.
    """
    font = 10.5 if narrow else 13.0
    names = [line for line in lines if line.last is not None]
    longest = max((text_width(line.who.name, font) for line in names), default=0.0)
    room = min(longest + 37, 162 if narrow else 250)
    height = max(300.0 if narrow else 400.0, (font + 6) * len(names) + 90)
    frame = Frame(350.0 if narrow else 860.0, height, 34.0 if narrow else 46.0, room, 30.0, 46.0, font, places, *bounds)
    heights = spread([frame.y(line.value[line.last or 0] or 0.0) for line in names], font + 3, frame.top, height - frame.bottom)
    shade = min(SHADE, 1 - (1 - DARKEST) ** (1 / max(len(names), 1)))
    drawn = [_line(line, frame, y, shade, say) for line, y in zip(names, heights, strict=True)]
    # Explainers last: they lie over the baselines.
    ordered = [d for d, line in zip(drawn, names, strict=True) if not line.who.explainer]
    ordered += [d for d, line in zip(drawn, names, strict=True) if line.who.explainer][::-1]
    box = f"0 0 {html.number(frame.width)} {html.number(height)}"
    return tag("svg", _grid(frame, ticks, below, above, say), *ordered, viewBox=box, role="group",
               class_="lines narrow" if narrow else "lines roomy", aria_label=spoken)


def _grid(frame: Frame, ticks: Sequence[tuple[int, str]], below: str, above: str, say: Say) -> Markup:
    end, floor = frame.width - frame.right, frame.y(frame.low)
    below, above = (fit(words, frame.width - 8, frame.font - 1) for words in (below, above))
    pieces = [tag("text", above, x=2, y=14)]
    for share in _rulers(frame.low, frame.high):
        y = frame.y(share)
        pieces += [tag("line", x1=frame.left, x2=end, y1=y, y2=y, class_="zero" if share == frame.low else "rule"),
                   tag("text", say(share), x=frame.left - 6, y=y + 4, text_anchor="end")]
    for place, words in ticks:
        x = frame.x(place)
        pieces += [tag("line", x1=x, x2=x, y1=floor, y2=floor + 4, class_="zero"),
                   tag("text", words, x=x, y=floor + 17, text_anchor="middle")]
    middle = (frame.left + end) / 2
    pieces.append(tag("text", below, x=max(middle, text_width(below, frame.font - 1) / 2 + 4), y=frame.height - 8,
                      text_anchor="middle", class_="below"))
    return tag("g", *pieces, class_="frame", font_size=frame.font - 1)


def _rulers(low: float, high: float) -> list[float]:
    steps = (0.05, *(digit * 10.0 ** power for power in range(-1, 16) for digit in (1, 2.5, 5)))
    step = next((s for s in steps if (high - low) / s <= 5.01), (high - low) / 5)
    return [round(low + step * i, 4) for i in range(round((high - low) / step) + 1)]


def _line(line: Line, frame: Frame, label: float, shade: float, say: Say) -> Markup:
    last = line.last or 0
    end = (frame.x(last), frame.y(line.value[last] or 0.0))
    start = frame.width - frame.right + 10
    words = ", ".join(say(v) for v in _sampled(line.value))
    step = max(1, -(-frame.places // 7))
    points = [i for i, v in enumerate(line.value) if v is not None and (i % step == line.who.number % step or i == last)]
    marks = [mark(line.who, frame.x(i), frame.y(line.value[i] or 0.0), 3.4) for i in points]
    name = fit(line.who.name, frame.right - 33, frame.font)
    leader = f"M{html.number(end[0] + 5)} {html.number(end[1])}L{html.number(start - 1)} {html.number(label)}"
    return tag(
        "g", tag("title", f"{line.who.name}: {words}"), _band(line, frame, shade),
        tag("path", d=leader, class_="leader"),
        tag("path", d=_path(line.value, frame), class_="stroke", stroke=line.who.colour, stroke_dasharray=line.who.dash),
        *marks, mark(line.who, start + 9, label, 4) or tag(
            "line", x1=start, x2=start + 19, y1=label, y2=label, stroke=line.who.colour, stroke_width=2,
            stroke_dasharray=line.who.dash),
        tag("text", name, x=start + 23, y=label + frame.font * 0.34, font_size=frame.font),
        class_="line" if line.who.explainer else "line baseline", tabindex=0, role="img",
        aria_label=f"{line.who.name}: {words}")


def _sampled(values: Shares) -> list[float | None]:
    step = max(1, -(-len(values) // 8))
    return list(values[::step])


def _path(values: Shares, frame: Frame) -> str:
    """Straight from number to number; where one is missing the line is broken."""
    out, pen = [], "M"
    for i, v in enumerate(values):
        if v is None:
            pen = "M"
            continue
        out.append(f"{pen}{html.number(round(frame.x(i), 1))} {html.number(round(frame.y(v), 1))}")
        pen = "L"
    return "".join(out)


def _band(line: Line, frame: Frame, shade: float) -> Markup | None:
    if line.low is None or line.high is None:
        return None
    both = [(i, low, high) for i, (low, high) in enumerate(zip(line.low, line.high, strict=True))
            if low is not None and high is not None and i < frame.places]
    if len(both) < 2:
        return None
    edge = [(i, high) for i, _, high in both] + [(i, low) for i, low, _ in reversed(both)]
    d = "L".join(f"{html.number(round(frame.x(i), 1))} {html.number(round(frame.y(v), 1))}" for i, v in edge)
    return tag("path", d=f"M{d}z", class_="band", fill=line.who.colour, fill_opacity=round(shade, 4))
