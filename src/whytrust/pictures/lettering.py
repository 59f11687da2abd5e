"""Words in a matplotlib figure: measured, wrapped, coloured; never read as mathematics."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from whytrust.core import Floats, need
from whytrust.pictures import colours
from whytrust.pictures.html import clean
from whytrust.pictures.shown import FAINT, brief
from whytrust.views import TextView

DPI = 150
MOST_LINES = 30
"""Lines of a text that a figure shows; a page shows all of it."""
_FALLBACKS = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Source Han Sans", "Hiragino Sans", "Yu Gothic", "Microsoft YaHei",
              "PingFang SC", "WenQuanYi Zen Hei", "Noto Sans Arabic", "Noto Sans Hebrew", "Noto Sans Devanagari",
              "Arial Unicode MS", "Segoe UI Emoji", "Noto Emoji", "Symbola")
_IDEOGRAPHS = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"  # written without blanks: a line may break after each


@cache
def families() -> tuple[str, ...]:
    """DejaVu Sans, which comes with matplotlib, then whatever this machine has for other scripts."""
    installed = {font.name for font in need("matplotlib.font_manager", "report").fontManager.ttflist}
    return ("DejaVu Sans", *[name for name in _FALLBACKS if name in installed])


def plain() -> dict[str, Any]:
    """Options of every text drawn: a dollar sign is a dollar sign."""
    return {"parse_math": False, "usetex": False, "family": list(families())}


@cache
def _glyph(character: str, points: float) -> float:
    """Inches that a character takes, as drawn on pixels or smoothly, whichever is more."""
    manager = need("matplotlib.font_manager", "report")
    for family in families():
        font = manager.get_font(manager.findfont(manager.FontProperties(family=[family])))
        if font.get_char_index(ord(character)):
            font.set_size(points, DPI)
            glyph = font.load_char(ord(character))
            return float(max(glyph.horiAdvance / 64, glyph.linearHoriAdvance / 65536)) / DPI
    return 0.0 if unicodedata.combining(character) else 1.25 * points / 72  # as wide as the box drawn in its place


def width(text: str, points: float) -> float:
    """Inches that a line of text takes."""
    return sum(_glyph(c, points) for c in text)


def fit(text: str, room: float, points: float) -> str:
    """The text, or its beginning and end around an ellipsis where it is wider than the room."""
    text = brief(text)
    kept = len(text)
    short = text
    while width(short, points) > room and kept > 1:
        kept -= 1
        end = kept // 3
        short = text[: kept - end].rstrip() + "…" + text[len(text) - end:].lstrip()
    return short


def wrap(text: str, room: float, points: float) -> list[str]:
    """Lines no wider than the room; a word that is wider by itself is broken."""
    lines = [""]
    for word in re.findall(r"\S+\s*", text) or [""]:
        while width(lines[-1] + word.rstrip(), points) > room:
            if lines[-1]:
                lines.append("")
                continue
            cut = max(_fitting(word, room, points), 1)
            lines[-1], word = word[:cut], word[cut:]
            lines.append("")
        lines[-1] += word
    return [line.rstrip() for line in lines if line.strip()] or [""]


def _fitting(word: str, room: float, points: float) -> int:
    used = 0.0
    for i, c in enumerate(word):
        used += _glyph(c, points)
        if used > room:
            return i
    return len(word)


@dataclass(frozen=True)
class Lines:
    """Small print beneath a chart; each line is wrapped by itself."""

    lines: list[str]

    def height(self, width: float) -> float:
        """In proportion to the wrapped lines."""
        return 0.15 * len(self._wrapped(width)) + 0.05

    def draw(self, axes: Any, width: float) -> None:
        """Draw in axes without frame."""
        axes.set_xlim(0, 1)
        axes.set_ylim(self.height(width), 0)
        for i, line in enumerate(self._wrapped(width)):
            axes.text(0, 0.15 * i, line, va="top", fontsize=7.5, color="#3c434b", **plain())

    def _wrapped(self, room: float) -> list[str]:
        return [line for text in self.lines for line in wrap(text, room, 7.5)]


@dataclass(frozen=True)
class Words:
    """A text whose words are coloured by their scores: runs of (text, strength) that stay on one line."""

    runs: list[list[tuple[str, float]]]
    backwards: bool
    _points: ClassVar[float] = 9.5
    _line: ClassVar[float] = 0.215

    def height(self, width: float) -> float:
        """In proportion to the lines."""
        lines = self._laid_out(width)
        return self._line * (lines[-1][1] + 1) + 0.05 if lines else self._line

    def draw(self, axes: Any, width: float) -> None:
        """Draw in axes without frame, in inches from the top left (or right, for a script that runs to the left)."""
        axes.set_xlim((width, 0) if self.backwards else (0, width))
        axes.set_ylim(self.height(width), 0)
        for text, line, x, strength in self._laid_out(width):
            paint = {"facecolor": colours.css(strength), "edgecolor": "none", "boxstyle": "square,pad=0.08"}
            axes.text(x, self._line * (line + 0.5), text, ha="right" if self.backwards else "left", va="center_baseline",
                      fontsize=self._points, color=colours.text_css(strength), bbox=paint if strength else None, **plain())

    def _laid_out(self, room: float) -> list[tuple[str, int, float, float]]:
        """(text, line, x, strength) of each word; a line breaks at blanks, or where a run has no blank and no room."""
        out: list[tuple[str, int, float, float]] = []
        line, x = 0, 0.0
        for run in self.runs:
            whole = sum(width(text, self._points) for text, _ in run)
            if x > 0 and x + whole > room:
                line, x = line + 1, 0.0
            for text, strength in run:
                for piece in wrap(text, room, self._points) if text.strip() else [text]:
                    wide = width(piece, self._points)
                    if piece == "\n" or (x > 0 and x + wide > room):
                        line, x = line + 1, 0.0
                    if line >= MOST_LINES:
                        return [*out, ("… the text goes on", line, 0.0, 0.0)]
                    if piece.strip():
                        out.append((piece, line, x, strength))
                    x += wide if piece != "\n" and (piece.strip() or x > 0) else 0.0
        return out


def words(view: TextView, scores: Floats, signs: bool = True) -> Words:
    """A text to draw; the scores are one a part of the view."""
    return Words(_runs(_tokens(view, scores, signs)), _right_to_left(view.text))


def _tokens(view: TextView, scores: Floats, signs: bool) -> list[tuple[str, float]]:
    """Words, blanks and line breaks in order, each with its strength; a coloured word carries its sign."""
    strengths = colours.strength(scores)
    spans = sorted((start, end, part) for part, where in enumerate(view.spans) for start, end in where)
    out: list[tuple[str, float]] = []
    done = 0
    for start, end, part in spans:
        if start < done or end <= start:
            continue
        out += [(piece, 0.0) for piece in _split(view.text[done:start])]
        strength = float(strengths[part]) if abs(strengths[part]) >= FAINT else 0.0
        pieces = _split(view.text[start:end])
        sign = colours.sign(strength) if signs else ""
        signed = [p + sign if i == len(pieces) - 1 and p.strip() else p for i, p in enumerate(pieces)]
        out += [(piece, strength if piece.strip() else 0.0) for piece in signed]
        done = end
    limit = len(view.text) if view.seen is None else max(view.seen, done)
    unseen = len(view.text[limit:].split())
    rest = view.text[done:limit] + (f" … [{unseen} more words, unseen by the model]" if unseen else "")
    return out + [(piece, 0.0) for piece in _split(rest)]


def _runs(tokens: list[tuple[str, float]]) -> list[list[tuple[str, float]]]:
    """Tokens that stay on one line: a word and the comma after it; every blank and every ideograph is a run by itself."""
    out: list[list[tuple[str, float]]] = []
    joins = False
    for text, strength in tokens:
        alone = not text.strip() or re.match(f"[{_IDEOGRAPHS}]", text) is not None
        if joins and not alone:
            out[-1].append((text, strength))
        else:
            out.append([(text, strength)])
        joins = not alone
    return out


def _split(text: str) -> list[str]:
    tidy = clean(text).replace("\r\n", "\n").replace("\t", "    ")
    return re.findall(rf"\n|[^\S\n]+|[{_IDEOGRAPHS}]|[^\s{_IDEOGRAPHS}]+", tidy)


def _right_to_left(text: str) -> bool:
    for c in text:
        direction = unicodedata.bidirectional(c)
        if direction in ("L", "R", "AL"):
            return direction != "L"
    return False
