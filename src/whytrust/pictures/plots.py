"""Explanations as a matplotlib figure: the input with the scores over it, the bars with their 95% ranges beneath."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from whytrust.core import need
from whytrust.pictures import colours, lettering, overlays, raster
from whytrust.pictures.bars import Bar, bars
from whytrust.pictures.html import clean
from whytrust.pictures.lettering import DPI
from whytrust.pictures.shown import (
    SLOPE,
    TOP,
    Shown,
    check_style,
    doubt,
    figures,
    flat,
    groups,
    headline,
    in_place,
    mark,
    meanings,
    painted,
    ranked,
    said_at_first,
    slope,
)
from whytrust.views import ImageView, SoundView, TextView

COLUMNS = 4
"""Explanations next to each other before the next one starts a new row."""
_FOR, _AGAINST = colours.css(1.0), colours.css(-1.0)
_LINE, _SMALL = 0.19, 0.155  # inches of a line of 9 and of 7.5 points
_ROW = 0.36
_BOLD = 12.0  # a bold title of 10.5 points is about as wide as a plain one of 12


def figure(explanations: Sequence[Shown], style: str = "signed", top: int = TOP, width: float | None = None) -> Any:
    """A matplotlib Figure, one column an explanation; `width` is in inches.

    With style="positive" several explanations of one image become the image itself and then one panel a class. With
    style="maps" each is its finest map alone, pixel by pixel, or its parts where it has no map: for comparing methods.
    """
    check_style(style)
    if not explanations:
        raise ValueError("a figure needs at least one explanation")
    if isinstance(top, bool) or not isinstance(top, int | np.integer) or top < 1:
        raise ValueError(f"top must be a whole number >= 1, got {top!r}")
    panels = _mosaic(explanations) if style == "maps" else _panels(explanations, style, top)
    columns = min(len(panels), 5 if style == "maps" else COLUMNS)
    each = (width or (5.6 if columns == 1 else (2.5 if style == "maps" else 3.9) * columns)) / columns
    if each < 1.5:
        raise ValueError(f"width must leave at least 1.5 inches for each of {columns} columns, got {width!r}")
    return draw(panels, columns, each)


def save(explanations: Sequence[Shown], path: str | os.PathLike[str], **options: Any) -> None:
    """Write the figure to a file; its ending says how (.png, .svg, .pdf)."""
    need("matplotlib.figure", "report")
    figure(explanations, **options).savefig(os.fspath(path), dpi=DPI, facecolor="white")


class Piece(Protocol):
    """Something that stands in a column: it knows its height, in inches, and draws itself in axes without frame."""

    def height(self, width: float) -> float:
        """Inches it needs in a column this wide."""
        ...

    def draw(self, axes: Any, width: float) -> None:
        """Draw in axes of this width and the height it asked for."""
        ...


@dataclass(frozen=True)
class Panel:
    """A column of the figure: a title, then pieces from top to bottom."""

    title: str
    pieces: list[Piece]

    def heights(self, width: float) -> list[float]:
        """Inches that each piece needs in a column this wide, the title first."""
        lines = lettering.wrap(self.title, width, _BOLD)
        return [0.21 * len(lines) + 0.06] + [piece.height(width) for piece in self.pieces]


def _panels(explanations: Sequence[Shown], style: str, top: int) -> list[Panel]:
    out = []
    for group in groups(explanations):
        view = group[0].view
        if style == "positive" and len(group) > 1 and isinstance(view, ImageView):
            original = overlays.image_canvas(view).pixels
            out.append(Panel("The image", [Picture(original)]))
            out += [Panel(_title(e, group), [pieces(e, style, top)[0], lettering.Lines(_warnings(e))]) for e in group]
        else:
            out += [Panel(_title(e, group), pieces(e, style, top)) for e in group]
    return out


def _title(e: Shown, group: Sequence[Shown]) -> str:
    heading, below = said_at_first(e, group)
    return clean(heading if below is None else f"{heading}: {below}")


def _mosaic(explanations: Sequence[Shown]) -> list[Panel]:
    """The input, then one small picture an explanation under its method's name."""
    out = []
    for group in groups(explanations):
        view = group[0].view
        if not isinstance(view, ImageView | SoundView):
            raise ValueError(f"style='maps' is for images and sounds, got a {view.kind}; leave style out")
        words = ["blue speaks for it, orange against; a map without orange says how much, not for or against; each has its own "
                 "scale"]
        ends = overlays.axis_ends(view) if isinstance(view, SoundView) else None
        out.append(Panel(clean(headline(group[0])), [Picture(overlays.canvas(view).pixels, (), ends), lettering.Lines(words)]))
        for e in group:
            parts = overlays.canvas(view if e.map is not None else e.view)  # type: ignore[arg-type]
            pixels = parts.coloured(painted(e)) if e.map is None else overlays.map_pixels(view, e.map)
            out.append(Panel(clean(e.method.replace("/", " / ").replace("_", " ")), [Picture(pixels, (), ends)]))
    return out


def pieces(e: Shown, style: str, top: int) -> list[Piece]:
    """What a panel shows of one explanation, from top to bottom."""
    found: list[Piece] = []
    if isinstance(e.view, ImageView) and style == "positive":
        found.append(Picture(overlays.image_canvas(e.view).positive(painted(e))))
    elif isinstance(e.view, ImageView | SoundView):
        found.append(_signed(e, e.view, top))
    elif isinstance(e.view, TextView):
        found.append(lettering.words(e.view, painted(e), signs=not e.unsigned))
    return [*found, *([Chart(bars(e, top))] if flat(e) is None else []), lettering.Lines(_foot(e, style))]


def _signed(e: Shown, view: ImageView | SoundView, top: int) -> Picture:
    canvas = overlays.canvas(view)
    marks = [(f"{bar.rank}{mark(e, bar.score)}", x, y) for bar, x, y in canvas.places(
        bars(e, top) if flat(e) is None else [], 0.04)]
    ends = overlays.axis_ends(view) if isinstance(view, SoundView) else None
    return Picture(canvas.coloured(painted(e)), marks, ends)


def _warnings(e: Shown) -> list[str]:
    mark = "" if e.method == "difference" else "⚠ "  # a difference's notes say how to read it
    return [mark + clean(note) for note in e.notes]


def _foot(e: Shown, style: str) -> list[str]:
    unit = ", of the logit" if e.settings.get("explains") == "logit" else ""
    raises, lowers = meanings(e)
    ranges = "" if e.standard_errors is None else "; thin lines are 95% ranges"
    lines = [f"+ blue: {clean(raises)}, − orange: {clean(lowers)}{ranges}" if lowers else f"blue: {clean(raises)}{ranges}"]
    if flat(e) is not None:
        lines = []
    if e.method != "difference":
        lines.insert(0, f"method: {clean(e.method)}{unit}")
    if e.fidelity is not None:
        fresh = "" if e.fidelity_fresh is None else f", {figures(e.fidelity_fresh)} on unseen samples"
        lines.append(f"fidelity {figures(e.fidelity)}{fresh}")
    if style == "positive" and isinstance(e.view, ImageView):
        lines.insert(0, "the image shows only the parts with a positive score")
    if any(slope(e, part) is not None for part in ranked(e)):
        lines.append(SLOPE)
    order = doubt(e)
    return [*lines, *([f"≈ {order}"] if order else []), *_warnings(e)]


def draw(panels: list[Panel], columns: int, each: float) -> Any:
    """Every piece has its own axes at a place counted in inches, so nothing can overlap or be cut off."""
    margin, gap, between = 0.12, 0.1, 0.25
    inner = each - 2 * margin
    rows = [panels[i: i + columns] for i in range(0, len(panels), columns)]
    tall = [max(sum(p.heights(inner)) + gap * (len(p.pieces) - 1) for p in row) for row in rows]
    height = sum(tall) + between * (len(rows) - 1) + 2 * margin
    fig = need("matplotlib.figure", "report").Figure(figsize=(each * columns, height), dpi=DPI, facecolor="white")
    top = height - margin
    for row, room in zip(rows, tall, strict=True):
        titles = max(p.heights(inner)[0] for p in row)
        for column, panel in enumerate(row):
            left, y = column * each + margin, top - titles
            fig.text(left / fig.get_figwidth(), top / height, "\n".join(lettering.wrap(panel.title, inner, _BOLD)), va="top",
                     ha="left", fontsize=10.5, fontweight="bold", **lettering.plain())
            for piece in panel.pieces:
                tallness = piece.height(inner)
                y -= tallness
                axes = fig.add_axes((left / fig.get_figwidth(), y / height, inner / fig.get_figwidth(), tallness / height))
                axes.set_axis_off()
                piece.draw(axes, inner)
                y -= gap
        top -= room + between
    return fig


@dataclass(frozen=True)
class Picture:
    """An image or spectrogram, with ranks written on its parts and words at the ends of its axes."""

    pixels: raster.Pixels
    marks: Sequence[tuple[str, float, float]] = ()  # (text, x, y), places as shares of width and height
    ends: tuple[tuple[str, str], tuple[str, str]] | None = None  # of the time and the frequency axis

    def height(self, width: float) -> float:
        """As the image is shaped, at most as tall as the column is wide; a spectrogram is twice as wide as tall."""
        if self.ends is not None:
            return 0.5 * width + 2 * _SMALL
        tall, wide = self.pixels.shape[:2]
        return float(width * min(tall / wide, 1.0))

    def draw(self, axes: Any, width: float) -> None:
        """Draw in axes without frame."""
        room = _SMALL / self.height(width) if self.ends is not None else 0.0
        inset = axes.inset_axes((0, room, 1, 1 - 2 * room)) if self.ends is not None else axes
        inset.imshow(self.pixels, aspect="auto" if self.ends is not None else "equal", interpolation="nearest")
        inset.set_axis_off()
        tall, wide = self.pixels.shape[:2]
        effects = need("matplotlib.patheffects", "report")
        for text, x, y in self.marks:
            inset.text(x * wide - 0.5, y * tall - 0.5, text, ha="center", va="center", fontsize=9, fontweight="bold",
                       path_effects=[effects.withStroke(linewidth=2, foreground="white")], **lettering.plain())
        if self.ends is not None:
            (first, last), (low, high) = self.ends
            for text, x, y, ha, va in ((f"{high} ↑", 0, 1, "left", "top"), (f"{low}, {first}", 0, 0, "left", "bottom"),
                                       (f"{last} →", 1, 0, "right", "bottom")):
                axes.text(x, y, text, ha=ha, va=va, fontsize=7.5, color="#57606a", transform=axes.transAxes,
                          **lettering.plain())


@dataclass(frozen=True)
class Chart:
    """The bars, each under its rank, name and number."""

    rows: list[Bar]

    def height(self, width: float) -> float:
        """In proportion to the number of bars."""
        return _ROW * len(self.rows) + 0.15

    def draw(self, axes: Any, width: float) -> None:
        """Draw in axes without frame: x in score units, y in rows from the top."""
        low, high = min((b.ends[0] for b in self.rows), default=0.0), max((b.ends[1] for b in self.rows), default=0.0)
        pad = 0.015 * (high - low) or 1.0
        axes.set_xlim(low - pad, high + pad)
        axes.set_ylim(self.height(width) / _ROW, 0)
        across = axes.get_yaxis_transform()
        for i, bar in enumerate(self.rows):
            colour = _FOR if bar.score > 0 else _AGAINST
            room = width - lettering.width(f"{bar.rank}. ", 9) - lettering.width(bar.label, 9) - 0.15
            name = in_place(lettering.fit(clean(bar.name), room, 9))
            axes.barh(i + 0.72, bar.score, height=0.34, color=colour, xerr=bar.error, capsize=2.5,
                      error_kw={"elinewidth": 0.9, "ecolor": "#1b1f24"})
            axes.plot([0, 0], [i + 0.49, i + 0.95], color="#57606a", linewidth=0.8, zorder=3)
            for x, text, ha in ((0, in_place(f"{bar.rank}. {name}"), "left"), (1, bar.label, "right")):
                axes.text(x, i + 0.28, text, transform=across, va="center", ha=ha, fontsize=9, **lettering.plain())
        axes.text(0, len(self.rows) + 0.1, "0", ha="center", va="top", fontsize=7.5, color="#57606a")
