"""The parts of a picture as closed outlines, short enough to be drawn once and used many times."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.pictures import raster

FINEST = 112
"""Cells along the longer side at which outlines are traced; finer ones could not be told apart at the size of the gallery.

Smaller pictures are measured in as many units: browsers draw letters badly whose size is about one."""


@dataclass(frozen=True)
class Shapes:
    """Outlines, where to write on each part, and how wide and high the picture is, all in the same units."""

    paths: dict[int, str]
    places: dict[int, tuple[float, float]]
    width: float
    height: float


def shapes(labels: Any) -> Shapes:
    """The outline of every part that has a pixel, at a coarser grain where no part gets lost by it."""
    whole = np.asarray(labels)
    every = np.unique(whole)
    step = -(-max(whole.shape) // FINEST)
    while step > 1 and len(np.unique(raster.resize(whole, (1, 1), (step, step), mean=False))) < len(every):
        step -= 1
    cells = raster.resize(whole, (1, 1), (step, step), mean=False)
    unit = -(-FINEST // max(cells.shape))
    height, width = whole.shape[0] / step * unit, whole.shape[1] / step * unit
    # In units rather than cells: the middle of two by two cells is no cell's.
    fine = raster.resize(cells, (unit, unit), (1, 1))
    middles = raster.middles(fine, [int(part) for part in every])
    places = {part: (min(x * fine.shape[1], width), min(y * fine.shape[0], height)) for part, (x, y) in middles.items()}
    return Shapes({int(part): outline(cells == part, unit) for part in every}, places, width, height)


def outline(mask: NDArray[np.bool_], unit: int = 1) -> str:
    """The edge of a mask as an SVG path: closed loops along cell borders, holes running the other way round.

    A cell is `unit` long.
    """
    steps = _edges(mask)
    loops = []
    while steps:
        start = here = min(steps)
        points = [here]
        way = steps[here][0]
        while True:
            ways = steps[here]
            # Where two corners touch, the loop turns right, so that it closes without crossing itself.
            turn = next((w for w in ((-way[1], way[0]), way, (way[1], -way[0])) if w in ways), ways[0])
            ways.remove(turn)
            if not ways:
                del steps[here]
            here, way = (here[0] + turn[0], here[1] + turn[1]), turn
            points.append(here)
            if here == start:
                break
        loops.append(_written(points, unit))
    return "".join(loops)


def _edges(mask: NDArray[np.bool_]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """From each corner, the unit steps (x, y) along the border, with the part at the right hand."""
    padded = np.pad(mask, 1)
    inside = padded[1:-1, 1:-1]
    steps: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for neighbour, corner, way in ((padded[:-2, 1:-1], (0, 0), (1, 0)), (padded[1:-1, 2:], (1, 0), (0, 1)),
                                   (padded[2:, 1:-1], (1, 1), (-1, 0)), (padded[1:-1, :-2], (0, 1), (0, -1))):
        ys, xs = np.nonzero(inside & ~neighbour)
        for x, y in zip((xs + corner[0]).tolist(), (ys + corner[1]).tolist(), strict=True):
            steps.setdefault((x, y), []).append(way)
    return steps


def _written(points: list[tuple[int, int]], unit: int) -> str:
    """Corners as relative steps; straight stretches become one."""
    out = [f"M{points[0][0] * unit} {points[0][1] * unit}"]
    run, way = 0, (0, 0)
    for before, after in pairwise(points):
        step = (after[0] - before[0], after[1] - before[1])
        if step != way and run:
            out.append(_stretch(way, run * unit))
            run = 0
        way, run = step, run + 1
    # The last stretch leads back to the start: closing the loop draws it.
    return "".join(out) + "z"


def _stretch(way: tuple[int, int], run: int) -> str:
    return f"h{way[0] * run}" if way[0] else f"v{way[1] * run}"
