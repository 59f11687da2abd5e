"""What every section needs of the findings: numbers that may be missing, percentages, and a look for each contender."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from whytrust.pictures import html
from whytrust.pictures.html import Markup, join, tag
from whytrust.pictures.shown import figures

Findings = Mapping[str, Any]
INK, BLUE, LIGHT_BLUE, ORANGE, DARK_ORANGE, GREY = "#1b1f24", "#0072b2", "#3a8fc7", "#d97a1c", "#b34d00", "#7b8490"
BASELINES = {"oracle": INK, "magnitude": "#444b54", "magnitude_mean": "#57606a", "blind": "#8a4b00", "random": "#6b737d"}
DASHES = {"oracle": None, "magnitude": "7 3", "magnitude_mean": "2 3", "blind": "10 3", "random": "12 4 2 4"}
SHAPES = ("circle", "square", "up", "diamond", "down", "plus", "cross")


@dataclass(frozen=True)
class Kind:
    """How a kind of verdict looks: never by colour alone, so there is a sign too."""

    sign: str
    colour: str
    class_: str
    short: str
    rule: str


KINDS = {
    "better_than_magnitude": Kind(
        "▲", BLUE, "good", "better than blind guesses and magnitude", "Better than magnitude: it finds the cause more often "
        "than every blind guess, and more often than picking the parts that were changed most."),
    "better_than_blind": Kind(
        "△", LIGHT_BLUE, "fair", "better than blind guesses only", "Better than blind guesses, not than magnitude: it knows "
        "something of what turned this input, but was not shown to beat picking the parts that were changed most."),
    "better_than_random": Kind(
        "○", GREY, "open", "better than random only", "Better than random: it beats parts drawn at random. Blind guesses were "
        "not tried by this measure, so this does not show that it knows anything of the cause."),
    "no_better": Kind(
        "=", ORANGE, "none", "no better than a blind guess", "No better than a blind guess: a ranking that cannot know the "
        "cause does as well, or better, or less than 5 points in 100 worse. Where that ranking is the explainer’s own scores "
        "of other inputs, an explanation of this input adds nothing to them."),
    "worse": Kind(
        "▼", DARK_ORANGE, "bad", "worse than random", "Worse than random: parts drawn at random find the cause more often."),
    "undecided": Kind(
        "?", GREY, "open", "undecided", "Undecided: the cases are too few to say either; this is not a bad mark."),
}
OF_TEXTS = {name: kind for name, kind in KINDS.items() if name != "better_than_magnitude"} | {
    "better_than_blind": replace(
        KINDS["better_than_blind"], short="better than blind guesses", rule="Better than blind guesses: it finds the cause "
        "more often than every ranking of words that cannot know it. Magnitude is told which words were swapped, so it is no "
        "rival here.")}
"""Of texts: there magnitude knows the cause, and no explainer is compared with it."""
UNSTABLE = "Unstable: with another strength of the attack the verdict is another one."


@dataclass(frozen=True)
class Contender:
    """One explainer or baseline as it looks in every chart: its colour is its verdict, its marker is itself."""

    name: str
    about: str
    explainer: bool
    kind: Kind | None
    number: int  # among the explainers, from 0
    tint: str = ""  # of a baseline that belongs to one of several lines

    @property
    def colour(self) -> str:
        """The verdict's colour; baselines are dark, undecided ones and those without a verdict grey."""
        if not self.explainer:
            return self.tint or BASELINES.get(self.name, GREY)
        return self.kind.colour if self.kind else GREY

    @property
    def dash(self) -> str | None:
        """Baselines have no markers and are told apart by their dashes."""
        return None if self.explainer else DASHES.get(self.name, "4 4")


def kinds_of(findings: Findings) -> dict[str, Kind]:
    """The kinds of verdict that there can be."""
    return OF_TEXTS if findings.get("kind") == "text" else KINDS


_TERMS = {"part": "word", "parts": "words", "Part": "Word", "Parts": "Words", "input": "text", "inputs": "texts",
          "Input": "Text", "Inputs": "Texts", "an input": "a text", "An input": "A text"}
_TERM = re.compile(r"\b(?:[Aa]n input|[Pp]arts?|[Ii]nputs?)\b")


def termed(findings: Findings, words: str) -> str:
    """A sentence of ours about parts of inputs; where those are words of texts, it says so."""
    if findings.get("kind") != "text":
        return words
    return _TERM.sub(lambda found: _TERMS[found.group()], words)


def contenders(findings: Findings) -> list[Contender]:
    """All of them in the order to show, with their looks."""
    known_kinds = kinds_of(findings)
    kinds = {one["name"]: known_kinds.get(str(one.get("kind")), KINDS["undecided"]) for one in findings.get("verdicts") or []}
    out: list[Contender] = []
    for one in findings.get("contenders") or []:
        explainer = one.get("role") != "baseline"
        number = sum(c.explainer for c in out)
        out.append(Contender(str(one["name"]), str(one.get("about") or ""), explainer, kinds.get(one["name"]), number))
    return out


def known(value: Any) -> float | None:
    """A finite number, or None for whatever else stands in its place (null, NaN, nothing)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def percent(value: Any, sign: bool = True) -> str:
    """A share as per cent; 0 % and 100 % are only what is exactly that."""
    share = known(value)
    if share is None:
        return "not known"
    text = f"{abs(share) * 100:.0f}"
    mark = "%" if sign else ""
    if text == "0" and share:
        return f">−1{mark}" if share < 0 else f"<1{mark}"
    if text == "100" and abs(share) < 1:
        return ("−" if share < 0 else "") + f">99{mark}"
    return ("−" if share < 0 else "") + text + mark


def between(rate: Mapping[str, Any]) -> str:
    """The 95% interval of a rate in words."""
    if known(rate.get("low")) is None or known(rate.get("high")) is None:
        return "interval not known"
    return f"{percent(rate['low'], False)} to {percent(rate['high'])}"


def ranged(rate: Mapping[str, Any]) -> str:
    """A rate with its interval, or that it is not known."""
    value = known(rate.get("value"))
    return "not known" if value is None else f"{percent(value)} ({between(rate)})"


def count(number: Any, one: str, many: str | None = None) -> str:
    """«1 case», «12 cases»."""
    size = known(number)
    if size is None:
        return f"an unknown number of {many or one + 's'}"
    return f"{size:,.0f} {one if size == 1 else many or one + 's'}"


def spoken(value: Any) -> str:
    """A setting's value as a reader wants it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return figures(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {spoken(inner)}" for key, inner in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(spoken(inner) for inner in value)
    return str(value)


def sentence(words: str) -> str:
    """Words as a sentence: a capital at its beginning, a full stop at its end."""
    text = words.strip()
    return text if not text else text[0].upper() + text[1:] + ("" if text[-1] in ".!?…" else ".")


def plain(name: str) -> str:
    """A setting's name in words."""
    return name.replace("_", " ")


def table(heads: Sequence[str], rows: Sequence[Sequence[str | None]], caption: str, numbers: int | None = None) -> Markup:
    """A table in a box of its own, which scrolls rather than the page; the first column heads its rows.

    `numbers`: from this column on the cells are numbers and stand under each other.
    """
    first = len(heads) if numbers is None else numbers
    head = tag("tr", *(tag("th", words, scope="col", class_="number" if i >= first else None) for i, words in enumerate(heads)))
    body = [tag("tr", tag("th", tag("bdi", row[0] or ""), scope="row"),
                *(tag("td", cell, class_="number" if i >= first else None) for i, cell in enumerate(row[1:], start=1)))
            for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body)), class_="box", tabindex=0, role="region",
               aria_label=caption)


def marker(shape: str, hollow: bool, x: float, y: float, size: float, colour: str) -> Markup:
    """One of seven marks, filled or hollow, around a point."""
    r, n = size, html.number
    at = f"M{n(x)} {n(y)}"
    paths = {
        "circle": f"{at}m{n(-r)} 0a{n(r)} {n(r)} 0 1 0 {n(2 * r)} 0a{n(r)} {n(r)} 0 1 0 {n(-2 * r)} 0z",
        "square": f"{at}m{n(-.88 * r)} {n(-.88 * r)}h{n(1.76 * r)}v{n(1.76 * r)}h{n(-1.76 * r)}z",
        "up": f"{at}m0 {n(-1.15 * r)}l{n(1.1 * r)} {n(2 * r)}h{n(-2.2 * r)}z",
        "diamond": f"{at}m0 {n(-1.2 * r)}l{n(1.1 * r)} {n(1.2 * r)}l{n(-1.1 * r)} {n(1.2 * r)}l{n(-1.1 * r)} {n(-1.2 * r)}z",
        "down": f"{at}m0 {n(1.15 * r)}l{n(1.1 * r)} {n(-2 * r)}h{n(-2.2 * r)}z",
        "plus": f"{at}m{n(-1.15 * r)} 0h{n(2.3 * r)}m{n(-1.15 * r)} {n(-1.15 * r)}v{n(2.3 * r)}",
        "cross": f"{at}m{n(-r)} {n(-r)}l{n(2 * r)} {n(2 * r)}m{n(-2 * r)} 0l{n(2 * r)} {n(-2 * r)}",
    }
    bare = shape in ("plus", "cross")
    return tag("path", d=paths[shape], fill="none" if bare else "#fff" if hollow else colour, stroke=colour,
               stroke_width=(3.2 if hollow else 1.8) if bare else 1.6)


def mark(one: Contender, x: float, y: float, size: float = 4.0) -> Markup | None:
    """A contender's own mark; baselines have none."""
    if not one.explainer:
        return None
    return marker(SHAPES[one.number % len(SHAPES)], one.number // len(SHAPES) % 2 == 1, x, y, size, one.colour)


def key(one: Contender) -> Markup:
    """What stands before a contender's name: its mark, or its dashes."""
    drawn = mark(one, 11, 8, 4.5) or tag("line", x1=1, x2=21, y1=8, y2=8, stroke=one.colour, stroke_width=2,
                                         stroke_dasharray=one.dash)
    return tag("svg", drawn, viewBox="0 0 22 16", class_="sign", aria_hidden="true")


def badge(kind: Kind, words: str | None) -> Markup:
    """A kind of verdict as it looks everywhere."""
    return tag("span", tag("span", kind.sign, class_="badge-sign", aria_hidden="true"), words, class_=f"badge {kind.class_}")


def breakable(name: str) -> Markup:
    """A name that may be broken after _ and /, where there is no room, and nowhere else."""
    pieces = [piece for piece in re.split(r"(?<=[_/])", name) if piece]
    return tag("bdi", *(child for i, piece in enumerate(pieces) for child in ((tag("wbr"), piece) if i else (piece,))))


def section(place: str, title: str, *content: Markup | None) -> Markup:
    """One section with a heading that can be jumped to."""
    return tag("section", tag("h2", title), join(content), id=place, class_="card", aria_label=title)
