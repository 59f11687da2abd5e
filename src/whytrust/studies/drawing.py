"""Shapes drawn onto a spectrogram until a detector hears singing in them (Praher et al. 2021, Figure 1, after Schlüter 2016).

There the cause of an answer is plain to see: whatever the detector says after the drawing and did not say before is due to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import files
from whytrust.checked import CheckedModel
from whytrust.core import LayeredParts
from whytrust.explanation import Explanation
from whytrust.measures.case import ranked
from whytrust.models.songs import BANDS, FRAMES
from whytrust.question import Question

Cells = NDArray[np.float32]
"""(frames, bands) of a log-mel spectrogram."""
Point = tuple[float, float]
Cut = Callable[[Any], LayeredParts]
Explainer = Callable[[Question, np.random.Generator], Explanation]
TOP = 3
"""Parts that are shown as the explanation."""
SINGING = 1
"""The class that a drawing is to lead to."""
LOUD = 0.99
"""The quantile of an excerpt that loudness is counted from: its maximum may be a single click."""
SIZES, THICKNESSES, LOUDNESSES = (0.5, 0.75, 1.0), (1, 2, 3), (0.0, 1.0, 2.0, 3.0)
"""What is tried in turn: shares of the excerpt, cells, and steps of the natural logarithm, 8.7 dB each."""


@dataclass(frozen=True)
class Shape:
    """Lines in the unit square: time runs to the right, frequency upwards."""

    name: str
    strokes: tuple[tuple[Point, ...], ...]


def _line(times: Any, heights: Any) -> tuple[Point, ...]:
    return tuple((float(t), float(f)) for t, f in zip(np.clip(times, 0, 1), np.clip(heights, 0, 1), strict=True))


def _wave() -> Shape:
    """What a held note looks like: harmonics that rise and fall together."""
    times = np.linspace(0, 1, 60)
    swing = 0.08 * np.sin(2 * np.pi * 3 * times)
    return Shape("wave", tuple(_line(times, height + swing) for height in (0.15, 0.5, 0.85)))


def _heart() -> Shape:
    turn = np.linspace(0, 2 * np.pi, 60)
    heights = 13 * np.cos(turn) - 5 * np.cos(2 * turn) - 2 * np.cos(3 * turn) - np.cos(4 * turn)
    return Shape("heart", (_line(0.5 + 0.5 * np.sin(turn) ** 3, (heights + 17) / 29),))


def _star() -> Shape:
    turn = np.pi / 2 + 4 * np.pi / 5 * np.arange(6)  # every second corner of a pentagon
    return Shape("star", (_line(0.5 + 0.52 * np.cos(turn), 0.45 + 0.55 * np.sin(turn)),))


def _smile() -> Shape:
    turn, mouth = np.linspace(0, 2 * np.pi, 50), np.linspace(1.15 * np.pi, 1.85 * np.pi, 20)
    face = _line(0.5 + 0.5 * np.cos(turn), 0.5 + 0.5 * np.sin(turn))
    return Shape("smile", (face, _line(0.5 + 0.3 * np.cos(mouth), 0.5 + 0.3 * np.sin(mouth)), ((0.35, 0.6), (0.35, 0.75)),
                           ((0.65, 0.6), (0.65, 0.75))))


def _fish() -> Shape:
    times = np.linspace(0, 0.75, 30)
    back = 0.35 * np.sin(np.pi * times / 0.75) ** 0.7
    tail = ((0.72, 0.5), (1.0, 0.85), (0.93, 0.5), (1.0, 0.15), (0.72, 0.5))
    return Shape("fish", (_line(times, 0.5 + back), _line(times, 0.5 - back), tail, ((0.18, 0.58), (0.2, 0.6))))


_HOUSE = Shape("house", (((0.1, 0.0), (0.1, 0.55), (0.5, 1.0), (0.9, 0.55), (0.9, 0.0), (0.1, 0.0)),
                         ((0.4, 0.0), (0.4, 0.3), (0.6, 0.3), (0.6, 0.0))))
_HORSE = Shape("horse", (((0.1, 0.0), (0.16, 0.45), (0.1, 0.6), (0.0, 0.35), (0.06, 0.62), (0.16, 0.7), (0.6, 0.66),
                          (0.72, 0.95), (0.8, 1.0), (0.8, 0.92), (1.0, 0.75), (0.96, 0.66), (0.84, 0.74), (0.76, 0.45),
                          (0.74, 0.0), (0.67, 0.0), (0.64, 0.38), (0.26, 0.38), (0.18, 0.0), (0.1, 0.0)),))
SHAPES: tuple[Shape, ...] = (_wave(), _heart(), _star(), _HOUSE, _smile(), _fish(), _HORSE)


# --- drawing ----------------------------------------------------------------------------------------------------------


def drawn(excerpt: Cells, shape: Shape, place: Point, size: float, loudness: float,
          thickness: int) -> tuple[Cells, NDArray[np.bool_]]:
    """(the excerpt with the shape on it, the cells that were changed).

    The shape takes the share `size` of either side; `place` says where in the room that is left, from (0, 0), early and low, to
    (1, 1). Its cells are `loudness` (natural logarithm) above nearly all of the excerpt, and none gets quieter than it was: a
    shape on something loud may hardly change it.
    """
    if not 0 < size <= 1 or not all(0 <= where <= 1 for where in place):
        raise ValueError(f"size must lie in (0, 1] and place in [0, 1] × [0, 1], got {size!r} and {place!r}")
    if thickness < 1:
        raise ValueError(f"thickness must be a whole number of cells >= 1, got {thickness!r}")
    level = np.float32(np.quantile(excerpt, LOUD) + loudness)
    louder = np.where(_inked(excerpt.shape, shape, place, size, thickness), np.maximum(excerpt, level), excerpt)
    return louder, louder != excerpt


def _inked(sides: tuple[int, ...], shape: Shape, place: Point, size: float, thickness: int) -> NDArray[np.bool_]:
    """The cells under a square brush that goes along the strokes."""
    last = np.array(sides) - 1
    extent = size * last
    steps = np.array([step for stroke in shape.strokes for step in pairwise(stroke)])  # (steps, 2 ends, 2 axes)
    ends = np.array(place) * (last - extent) + steps * extent
    along = np.linspace(0, 1, 2 * max(sides))[:, None]  # two dots a cell leave no gap, however long a step is
    dots = np.rint(ends[:, :1] + (ends[:, 1:] - ends[:, :1]) * along).reshape(-1, 2).astype(np.intp)
    brush = np.arange(thickness) - (thickness - 1) // 2
    under = (dots[:, None] + np.array(list(product(brush, brush)))).reshape(-1, 2)
    inked = np.zeros(sides, dtype=bool)
    inked[tuple(np.clip(under, 0, last).T)] = True
    return inked


@dataclass(frozen=True, eq=False)
class Drawn:
    """A drawing that turned the answer, and what an explainer says of it."""

    record: Mapping[str, Any]
    drawn: Cells


def drawn_until(model: CheckedModel, cut: Cut, excerpt: Cells, shape: Shape, explainer: Explainer, rng: np.random.Generator,
                on_calls: Callable[[int], None] | None = None, others: bool = True,
                usual: Callable[[], NDArray[np.intp]] | None = None) -> Drawn | None:
    """Draw until the model hears singing, then ask what made it: does the explainer point at the drawing?

    First the shape itself, larger, thicker and louder by and by, then the `others`. None where nothing turns the answer, or
    where there was singing before. Two things lead to hits that say nothing of the drawing: a large one touches many parts
    ("expected" is what random parts hit), and a detector may listen to the same parts always ("hits_before" is what the best
    parts of the excerpt without the drawing hit; who has them already passes them as `usual`).
    """
    tell = on_calls or (lambda calls: None)
    before = model(excerpt[None])
    tell(1)
    if int(model.labels(before)[0]) == SINGING:
        return None
    found = _turned(model, excerpt, _in_turn(shape) if others else (shape,), rng, tell)
    if found is None:
        return None
    chosen, settings, tries, changed, score = found
    parts = cut(changed)
    said = explainer(Question(model, parts, SINGING, on_calls=on_calls), rng)
    order = ranked(said.scores, rng)
    d = len(parts.names)
    share = parts.pool((changed != excerpt).astype(np.float64), "sum")
    touched = np.flatnonzero(share)
    order_before = usual() if usual is not None else named(model, cut(excerpt), explainer, rng, on_calls)
    return Drawn({"shape": chosen.name, **settings, "tries": tries, "prediction_before": float(before[0, SINGING]),
                  "prediction": score, "fidelity": said.fidelity, "scores": said.scores.tolist(), "order": order.tolist(),
                  "touched": touched.tolist(), "share": (share / share.sum()).tolist(),
                  "hits": int(np.isin(order[:TOP], touched).sum()), "expected": TOP * len(touched) / d,
                  "order_before": order_before.tolist(), "hits_before": int(np.isin(order_before[:TOP], touched).sum())},
                 changed)


def named(model: CheckedModel, parts: LayeredParts, explainer: Explainer, rng: np.random.Generator,
          on_calls: Callable[[int], None] | None = None) -> NDArray[np.intp]:
    """The parts from the one that speaks most for singing on."""
    return ranked(explainer(Question(model, parts, SINGING, on_calls=on_calls), rng).scores, rng)


def _in_turn(shape: Shape) -> tuple[Shape, ...]:
    """The shape, then the others, beginning with the next one."""
    first = next((i for i, one in enumerate(SHAPES) if one.name == shape.name), -1) + 1
    return (shape, *(one for one in (*SHAPES[first:], *SHAPES[:first]) if one.name != shape.name))


def _turned(model: CheckedModel, excerpt: Cells, shapes: Sequence[Shape], rng: np.random.Generator,
            tell: Callable[[int], None]) -> tuple[Shape, dict[str, Any], int, Cells, float] | None:
    """The first drawing that turns the answer; those of one shape are asked about together."""
    tries = 0
    for one in shapes:
        place = (float(rng.random()), float(rng.random()))
        settings = [{"size": size, "thickness": thickness, "loudness": loudness}
                    for size, thickness, loudness in product(SIZES, THICKNESSES, LOUDNESSES)]
        tried = np.stack([drawn(excerpt, one, place, s["size"], s["loudness"], int(s["thickness"]))[0] for s in settings])
        scores = model(tried)
        tell(len(tried))
        hits = np.flatnonzero(model.labels(scores) == SINGING)
        if len(hits):
            hit = int(hits[0])
            return one, {**settings[hit], "place": list(place)}, tries + hit + 1, tried[hit], float(scores[hit, SINGING])
        tries += len(tried)
    return None


# --- a piece in a file ------------------------------------------------------------------------------------------------


def read_piece(path: str | Path) -> Cells:
    """A log-mel spectrogram of any length, frames × 80, from a .npy file."""
    found = files.array(path)
    if found.ndim != 2 or found.shape[1] != BANDS or found.dtype.kind != "f":
        raise ValueError(f"{path} must hold a log-mel spectrogram as floats, frames × {BANDS}, got {found.dtype} of shape "
                         f"{found.shape}; transpose it where the bands come first")
    if len(found) < FRAMES or not np.isfinite(found).all():
        raise ValueError(f"{path} must hold at least {FRAMES} frames, an excerpt, of finite numbers, got {len(found)} and "
                         f"{int((~np.isfinite(found)).sum())} numbers that are not finite")
    return np.asarray(found, dtype=np.float32)


def spread(piece: Cells, most: int | None = None) -> Iterator[tuple[int, Cells]]:
    """(middle frame, excerpt): as many as fit without overlap, or fewer, evenly spread over the piece."""
    fitting = len(piece) // FRAMES
    for start in starts(len(piece) - FRAMES, fitting if most is None else min(most, fitting)):
        yield start + FRAMES // 2, np.ascontiguousarray(piece[start:start + FRAMES])


def starts(last: int, count: int) -> Sequence[int]:
    """So many frames from 0 to the last one, as far apart as they can be; one alone is in the middle."""
    return [last // 2] if count == 1 else [round(x) for x in np.linspace(0, last, count).tolist()]
