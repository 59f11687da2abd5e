"""Sentences with their words coloured by what an explainer says of them, word swap by word swap: Figures 1, 3, 4, 11 and 12."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust.language.written import Written
from whytrust.pictures import lettering, plots
from whytrust.pictures.html import clean
from whytrust.pictures.shown import in_place
from whytrust.report.fragile_texts import excerpt, milestones
from whytrust.studies.fragile_findings import number
from whytrust.studies.fragile_merging import Merged
from whytrust.studies.fragile_tables import OBJECTIVES, Run
from whytrust.views import TextView

SENTENCES, MOST_WORDS, MOST_ROWS = 3, 35, 5
MOST_SHOWN, AROUND = 70, 4
"""Words of a long text that are shown, and so many on either side of one that was swapped."""
MOST_LETTERS = 400
"""Of what was swapped since the row before; more than fits into a line."""
WIDE = 9.0
"""Inches."""
_LABEL, _NUMBERS = 0.35, (0.62, 0.62, 0.62)
_HEADS = ("ΔLOM", "rank", "score")
_GREY = "#57606a"
SIGNS = "+ blue speaks for the label, − orange against it"
KEY = (f"{SIGNS}; each row has its own scale. [Words] in brackets were swapped. ΔLOM: how many positions the centre of mass "
       "has moved; rank: correlation with the first row; score: of the label.")


def alike(runs: Sequence[Run]) -> list[str]:
    """The first few texts in which every run has swapped two words or more: short ones, for else nobody reads them."""
    levels = [{record["case"]: record for record in run.done if len(_path(record)[1]) > 1} for run in runs]
    both = [case for case in (levels[0] if levels else ()) if all(case in one for one in levels)]
    short = [case for case in both if len(levels[0][case]["words"]) <= MOST_WORDS]
    if len(short) < SENTENCES:
        short = sorted(both, key=lambda case: len(levels[0][case]["words"]))
    return short[:SENTENCES]


def _path(record: Mapping[str, Any]) -> tuple[str, Sequence[Mapping[str, Any]]]:
    """(objective, levels) of the path to show: that of the centre of mass, as in the paper, where it swapped anything."""
    return next(((name, path) for name in ("lom", *OBJECTIVES) for path in record["paths"].get(name, ()) if path), ("lom", ()))


def figure(run: Run, cases: Sequence[str]) -> Any:
    """A matplotlib figure of some of a run's texts, level by level."""
    assert run.store is not None, "scores of words are kept beside the records"
    records = {record["case"]: record for record in run.done}
    panels = [_panel(records[case], run.store.arrays(case)) for case in cases]
    panels[-1].pieces.append(lettering.Lines([KEY]))
    return plots.draw(panels, 1, WIDE)


def _panel(record: Mapping[str, Any], arrays: Mapping[str, Any]) -> plots.Panel:
    name, levels = _path(record)
    first = last = Written.of(record["text"])
    # Of a long text the words that were swapped first are shown, with some around them.
    places = excerpt(len(first), [level["place"] for level in levels], MOST_SHOWN, AROUND)
    rows: list[plots.Piece] = [Row("", None, "", _HEADS), Row("0", _coloured(first, arrays["original"], first, places), "", (
        "0.00", "1.00", number(record["score"])))]
    for place in milestones(levels, MOST_ROWS):
        level, now = levels[place], Written.of(levels[place]["text"])
        # What the text itself says: a path of the authors' variant goes on from words that another objective chose.
        new = [f"{in_place(before)} → {in_place(after)}"
               for before, was, after in zip(first.words, last.words, now.words, strict=False) if after not in (was, before)]
        rows.append(Row(str(level["m"]), _coloured(now, arrays[name][place], first, places), ", ".join(new),
                        (_moved(level["lom"]), number(level["rank"]), number(level["score"]))))
        last = now
    title = (f"{in_place(record['name'])}: “{in_place(record['label_name'])}”, {len(levels)} of {len(first)} words swapped, "
             f"chosen by {'ΔLOM' if name == 'lom' else 'L2'}")
    return plots.Panel(clean(title), rows)


def _moved(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.2f}" if value < 100 else f"{value:,.0f}" if value < 1e5 else f"{value:.0e}"


def _coloured(text: Written, scores: Any, original: Written, places: Sequence[int]) -> lettering.Words:
    """Some of a text's words to draw; those that the original does not have at their place in brackets."""
    shown, spans, values, done = "", list[tuple[tuple[int, int], ...]](), list[float](), -1
    for place in (place for place in places if place < len(text)):
        word, start = text.words[place], text.spans[place][0]
        drawn = word if place < len(original) and word == original.words[place] else f"[{word}]"
        near = place == done + 1
        shown += text.text[text.spans[done][1] if done >= 0 else 0:start] if near else " … "
        spans.append(((len(shown), len(shown) + len(drawn)),))
        values.append(float(scores[place]) if place < len(scores) else 0.0)
        shown, done = shown + drawn, place
    rest = text.text[text.spans[done][1]:] if done == len(text) - 1 else " …"
    return lettering.words(TextView(shown + rest, tuple(spans)), np.array(values))


@dataclass(frozen=True)
class Row:
    """One level: its number, the coloured text, what was swapped since the row before, and three numbers."""

    label: str
    words: lettering.Words | None
    swaps: str
    numbers: Sequence[str]

    def height(self, width: float) -> float:
        """As many lines as the text takes, and one for what was swapped."""
        return (0.18 if self.words is None else self.words.height(_room(width))) + (0.16 if self.swaps else 0.0)

    def draw(self, axes: Any, width: float) -> None:
        """Draw in axes without frame, in inches from the top left."""
        tall = self.height(width)
        axes.set_xlim(0, width)
        axes.set_ylim(tall, 0)
        axes.text(0.02, 0.11, self.label, va="center", fontsize=9, fontweight="bold", **lettering.plain())
        x = width
        for text, wide in zip(reversed(self.numbers), reversed(_NUMBERS), strict=True):
            axes.text(x - 0.04, 0.11, text, va="center", ha="right", fontsize=8.5,
                      color=_GREY if self.words is None else "black", **lettering.plain())
            x -= wide
        room = _room(width)
        if self.words is not None:
            high = self.words.height(room)
            inset = axes.inset_axes((_LABEL / width, 1 - high / tall, room / width, high / tall))
            inset.set_axis_off()
            self.words.draw(inset, room)
        if self.swaps:
            axes.text(_LABEL, tall - 0.08, lettering.fit(clean(" ".join(self.swaps[:MOST_LETTERS].split())), room, 7.5),
                      va="center", fontsize=7.5, color=_GREY, **lettering.plain())


def _room(width: float) -> float:
    """Inches that are left for the words."""
    return width - _LABEL - sum(_NUMBERS) - 0.1


# --- Figure 4 -----------------------------------------------------------------------------------------------------------


def merging(found: Sequence[Merged]) -> Any:
    """The same texts twice: a word's pieces averaged, and the piece of largest size alone."""
    panels = []
    for one in found:
        view = TextView(one.text, tuple((span,) for span in one.spans))
        pieces = ", ".join(f"{in_place(word)} = {' + '.join(map(in_place, parts))}" for word, parts in one.pieces.items())
        panels.append(plots.Panel(clean(f"“{in_place(one.label)}”, {in_place(one.model)}"), [
            lettering.Lines(["The mean of a word's pieces"]), lettering.words(view, np.array(one.mean)),
            lettering.Lines(["The piece of largest size, with its sign (as in all tables)"]),
            lettering.words(view, np.array(one.largest)), lettering.Lines([clean(f"Words of several pieces: {pieces}")])]))
    panels[-1].pieces.append(lettering.Lines([f"{SIGNS}; each text has its own scale."]))
    return plots.draw(panels, 1, WIDE)
