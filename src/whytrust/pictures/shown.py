"""What a picture reads of an explanation, and the words and numbers that page and plot share."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Sense, View
from whytrust.logits import CLIP, MOST
from whytrust.pictures import colours
from whytrust.views import ImageView, SoundView, TableView, TextView

STYLES = ("signed", "positive", "maps")
TOP = 10
"""How many parts a chart shows unless told otherwise."""
_LONG = 500
"""Letters at either end of which a label never shows more."""
FAINT = 0.05
"""Words with less than this share of the largest score stay plain: marks on every word would hide those that matter."""
RANGE = 1.96
"""Standard errors either side of a score that make its 95% range."""


class Shown(Protocol):
    """The attributes of an explanation that pictures read."""

    @property
    def scores(self) -> Floats:
        """One number a part; larger speaks more for the target."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """What each part is called."""
        ...

    @property
    def target_name(self) -> str:
        """What the scores speak for."""
        ...

    @property
    def method(self) -> str:
        """How the scores were found."""
        ...

    @property
    def model(self) -> str:
        """What the model is called."""
        ...

    @property
    def source(self) -> str:
        """The file that was explained, where it was one."""
        ...

    @property
    def prediction(self) -> float:
        """The model's score of the target for this input."""
        ...

    @property
    def local_prediction(self) -> float | None:
        """The local model's score, where there is a local model."""
        ...

    @property
    def gap(self) -> float | None:
        """Prediction minus local prediction."""
        ...

    @property
    def intercept(self) -> float:
        """The local model's score before any part is counted."""
        ...

    @property
    def fidelity(self) -> float | None:
        """R² on the samples the local model was fitted to."""
        ...

    @property
    def fidelity_fresh(self) -> float | None:
        """R² on samples it had not seen."""
        ...

    @property
    def standard_errors(self) -> Floats | None:
        """How far each score would move with other samples."""
        ...

    @property
    def selected(self) -> NDArray[np.bool_] | None:
        """Which parts the explanation kept; None is all."""
        ...

    @property
    def undecided(self) -> Sequence[int]:
        """Ranks r such that chance could swap r and r + 1."""
        ...

    @property
    def rules(self) -> str | None:
        """A small decision tree as text."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Warnings a reader must see."""
        ...

    @property
    def order(self) -> NDArray[np.intp]:
        """Parts by |score|, largest first."""
        ...

    @property
    def view(self) -> View:
        """What a reader is shown of the input."""
        ...

    @property
    def calls(self) -> int:
        """How many inputs the model was asked about."""
        ...

    @property
    def seed(self) -> int | None:
        """The seed of the samples."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """How the method was set."""
        ...

    @property
    def sense(self) -> Sense:
        """What a score says."""
        ...

    @property
    def unsigned(self) -> bool:
        """Whether scores say how much a part matters, and not for or against."""
        ...

    @property
    def predicted(self) -> str | None:
        """The class the model decides for; None where it has one output."""
        ...

    @property
    def caution(self) -> str:
        """How the method misleads, where no number says how sure it is."""
        ...

    @property
    def slopes(self) -> Floats | None:
        """What scores of continuous columns are made from: score = slope × origin."""
        ...

    @property
    def origin(self) -> Floats | None:
        """The row's distance from the columns' means, in standard deviations; 1 where a part has no slope."""
        ...

    @property
    def map(self) -> NDArray[np.float32] | None:
        """What the scores were pooled from, one number a place, where there is that."""
        ...


SLOPE = ("A slope is what one standard deviation of the column adds to the local model; a score is the slope times the "
         "distance of the row's value from the column's mean.")


FLAT = "The model's score does not depend on these parts"


SURE = "The model is too sure to be explained by its"


def independent(score: float, calls: int, unit: str, rounding: float) -> str:
    """What is said in place of scores that differ by no more than `rounding`.

    `unit` is "score", "probability", "logit" or "log-odds", which are those of a probability. Where what is left of 1 beside a
    probability is not much more than rounding, parts that matter do not show in it.
    """
    if unit == "log-odds" and abs(score) >= MOST:
        return (f"{SURE} log-odds: its probability was within {CLIP:g} of {0 if score < 0 else 1} for all {calls:,} inputs "
                "that it was asked about. If it has logits, explain those: wt.model(…, output='logit').")
    if unit == "probability" and (score == 0 or 1 - score < 10 * rounding):
        return (f"{SURE} probability: it was {figures(score)}, but for rounding, for all {calls:,} inputs that it was asked "
                "about. Pass explains='logit' to lime, kernel_shap or occlusion to explain its log-odds.")
    return (f"{FLAT}: it was {figures(score)}, but for rounding, for all {calls:,} inputs that the model was asked about. "
            "There is nothing to explain.")


def flat(e: Shown) -> str | None:
    """The note that stands in place of the scores, where the model's score does not depend on the parts."""
    return None if np.any(e.scores) else next((note for note in e.notes if note.startswith((FLAT, SURE))), None)


def slope(e: Shown, part: int) -> float | None:
    """The slope that a part's score was made from; None where the score is the local model's weight itself."""
    if e.slopes is None or e.origin is None or e.origin[part] == 1:
        return None
    return float(e.slopes[part])


def check_style(style: str) -> None:
    """Refuse a style that does not exist."""
    if style not in STYLES:
        raise ValueError(f"style must be one of {', '.join(STYLES)}, got {style!r}")


def painted(e: Shown) -> Floats:
    """The scores that are drawn: 0 for parts that the explanation left out."""
    scores = np.nan_to_num(np.asarray(e.scores, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return scores if e.selected is None else np.where(e.selected, scores, 0.0)


def mark(e: Shown, score: float) -> str:
    """The sign that goes with a score's colour; none where scores have no for and against."""
    return "" if e.unsigned and score > 0 else colours.sign(score)


def ranked(e: Shown) -> list[int]:
    """The parts in the explanation, largest |score| first."""
    return [int(i) for i in e.order if e.selected is None or e.selected[i]]


def label(e: Shown, part: int) -> str:
    """A part's score with its sign, and its 95% range where that is known."""
    scores = painted(e)
    largest, spread = float(np.abs(scores).max(initial=0.0)), error(e, part)
    sign = "−" if scores[part] < 0 else "+" if scores[part] > 0 and not e.unsigned else ""
    words = sign + scored(float(scores[part]), largest)
    return words if spread is None else f"{words} ± {scored(spread, largest or spread)}"


def error(e: Shown, part: int) -> float | None:
    """Half the width of a score's 95% range, where it is known."""
    if e.standard_errors is None or not math.isfinite(e.standard_errors[part]):
        return None
    return RANGE * float(e.standard_errors[part])


def figures(value: float | None) -> str:
    """A number as a reader wants it: three or four digits, a real minus sign."""
    if value is None or not math.isfinite(value):
        return "not known"
    size = abs(value)
    if size == 0:
        text = "0"
    elif size >= 1e7 or size < 1e-4:
        text = f"{size:.2e}"
    else:
        text = f"{size:,.0f}" if size >= 1000 else f"{size:.4g}" if size >= 100 else f"{size:.3g}"
        if size < 1 <= float(text):  # a probability of 0.9996 must not read as certainty
            text = f"{size:.6f}".rstrip("0") if size < 0.9999995 else "1"
    return ("−" if value < 0 else "") + text


def signed(value: float) -> str:
    """A score with its sign, also when it is positive."""
    return ("+" if value > 0 else "") + figures(value)


def scored(value: float, largest: float) -> str:
    """A score's size with as many decimals as give the largest one three digits, so that numbers in a column compare."""
    if largest < 1e-5 or largest >= 1e7:
        return figures(abs(value))
    return f"{abs(value):,.{max(0, 2 - math.floor(math.log10(largest)))}f}"


def one_line(name: str) -> str:
    """A part's name without line breaks; a blank one says so."""
    return " ".join(name.split()) or "(blank)"


def in_place(name: str) -> str:
    """A name that stays where it stands in an English sentence, also when its script runs from right to left."""
    leftward = any(unicodedata.bidirectional(c) in ("R", "AL", "RLE", "RLO", "RLI") for c in name)
    return f"\u200e{name}\u200e" if leftward else name


def headline(e: Shown) -> str:
    """What the model says, in a sentence."""
    target = in_place(e.target_name)
    if e.method == "difference":
        return f"The difference {target} is {signed(e.prediction)}"
    who, of = "The model" if e.model == "model" else in_place(e.model), f" for {in_place(e.source)}" if e.source else ""
    if e.target_name == "output":
        return f"{who} predicts {figures(e.prediction)}{of}"
    if e.predicted not in (None, e.target_name):
        return f"{who} says {in_place(str(e.predicted))}{of}, and gives {target} {figures(e.prediction)}"
    return f"{who} says {target}{of}: {figures(e.prediction)}"


def said_at_first(e: Shown, beside: Sequence[Shown]) -> tuple[str, str | None]:
    """(heading, the line below it) of one of several explanations of an input: what they have in common is no heading."""
    if len({one.method for one in beside}) > 1:
        return e.method, headline(e)
    return headline(e), None


def meanings(e: Shown) -> tuple[str, str]:
    """What a positive and a negative score mean."""
    if e.method == "difference":
        return "raises the difference", "lowers the difference"
    what = "the prediction" if e.target_name == "output" else e.target_name
    if e.sense == "nothing":
        return "above 0, whatever the model says", "" if e.unsigned else "below 0, whatever the model says"
    if e.sense == "size":
        return f"matters to {what}, for or against", ""
    if e.sense == "for":
        return f"speaks for {what}; what speaks against it is left out", ""
    if e.target_name == "output":
        return "raises the prediction", "lowers the prediction"
    return f"speaks for {e.target_name}", f"speaks against {e.target_name}"


def question(e: Shown) -> str:
    """What the chart answers."""
    if e.method == "difference":
        return "Where the two differ"
    alone = {"nothing": "Scores that the model has no part in", "size": "What it depends on, for or against",
             "for": "What speaks for it"}
    if e.sense in alone:
        return alone[e.sense]
    return "What raises it, and what lowers it" if e.target_name == "output" else "What speaks for it, and what against"


def doubt(e: Shown) -> str | None:
    """A sentence about ranks that chance alone could swap."""
    ranks = sorted({int(r) for r in e.undecided})
    if not ranks:
        return None
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank <= runs[-1][1]:
            runs[-1][1] = rank + 1
        else:
            runs.append([rank, rank + 1])
    near = [f"{a} and {b}" if b == a + 1 else f"{a} to {b}" for a, b in runs if a <= TOP]
    words = "; ".join(near) + (" (and others further down)" if len(near) < len(runs) else "")
    if not near:
        words = f"{runs[0][0]} and below"
    if e.standard_errors is not None and not np.any(e.standard_errors):
        return f"The scores at ranks {words} are equal, so their order means nothing."
    return f"The order of ranks {words} may be chance: with other samples these parts could change places."


def same_input(a: View, b: View) -> bool:
    """Whether two views show the same input; it may be cut into different parts."""
    if isinstance(a, ImageView) and isinstance(b, ImageView):
        return np.array_equal(a.pixels, b.pixels)
    if isinstance(a, SoundView) and isinstance(b, SoundView):
        return np.array_equal(a.spectrogram, b.spectrogram)
    if isinstance(a, TextView) and isinstance(b, TextView):
        return a.text == b.text
    if isinstance(a, TableView) and isinstance(b, TableView):
        return (a.columns, a.values) == (b.columns, b.values)
    return False


def groups(explanations: Sequence[Shown]) -> list[list[Shown]]:
    """Neighbours that explain the same input, together; the order stays."""
    out: list[list[Shown]] = []
    for e in explanations:
        if out and same_input(out[-1][0].view, e.view):
            out[-1].append(e)
        else:
            out.append([e])
    return out
