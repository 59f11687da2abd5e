"""Where the parts of a sound lie in time and frequency, and what they are called."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats
from whytrust.domains.spectra import Labels


@dataclass(frozen=True, eq=False)
class Chart:
    """Which part of a sound lies where: a table of stretches of time × bands of frequency, and the part of each cell.

    A grid has one part a cell; parts of any other shape are drawn with several.
    """

    cells: Labels  # (stretches, bands), parts 0 … d-1
    edges: Labels  # stretches + 1 samples or frames
    bounds: NDArray[Any]  # bands + 1: Hz, shares of the highest frequency, or numbers of bands

    @classmethod
    def grid(cls, edges: Labels, bounds: NDArray[Any]) -> Chart:
        """A part for each cell, time first."""
        shape = len(edges) - 1, len(bounds) - 1
        return cls(np.arange(shape[0] * shape[1], dtype=np.intp).reshape(shape), edges, bounds)

    @cached_property
    def d(self) -> int:
        """The number of parts."""
        return int(self.cells.max()) + 1

    @property
    def is_grid(self) -> bool:
        """Is each cell a part of its own?"""
        return self.d == self.cells.size

    def at(self, moments: Any, heights: Any, rate: float = 1.0) -> Labels:
        """The part at each of these moments (samples or frames, divided by `rate`) × heights; the nearest beyond the ends."""
        stretch = np.searchsorted(self.edges[1:-1] / rate, moments, side="right")
        band = np.searchsorted(self.bounds[1:-1], heights, side="right")
        return np.asarray(self.cells[stretch[:, None], band])

    @cached_property
    def boxes(self) -> tuple[Labels, Labels, Labels, Labels]:
        """The first and one past the last stretch of each part, and the same of its bands."""
        found: list[Labels] = []
        flat = self.cells.ravel()
        for places in np.indices(self.cells.shape):
            first, last = np.full(self.d, self.cells.size, dtype=np.intp), np.zeros(self.d, dtype=np.intp)
            np.minimum.at(first, flat, places.ravel())
            np.maximum.at(last, flat, places.ravel() + 1)
            found += [first, last]
        return found[0], found[1], found[2], found[3]

    @property
    def stretch(self) -> int:
        """How many samples or frames a part spans in time, on average."""
        begins, ends, _, _ = self.boxes
        return int(np.mean(self.edges[ends] - self.edges[begins]))


@dataclass(frozen=True, eq=False)
class Axis:
    """What the edges of a chart mean to a person: "0.00–0.25 s", or "frames 0–22" where their extent is unknown."""

    values: NDArray[Any]  # at each edge
    unit: str
    decimals: int | None = None  # at least so many; None counts places, first and last

    def ranges(self, begins: Labels, ends: Labels, spare: int) -> list[str]:
        """With enough decimals to tell the ends of the shortest apart, and `spare` more."""
        lows, highs = self.values[begins], self.values[ends]
        if self.decimals is None:
            return [f"{self.unit} {a}–{b - 1}" for a, b in zip(lows, highs, strict=True)]
        digits = max(self.decimals, spare + math.ceil(-math.log10(float((highs - lows).min()))))
        return [f"{a:.{digits}f}–{b:.{digits}f} {self.unit}" for a, b in zip(lows, highs, strict=True)]


def time_axis(edges: Labels, rate: float | None, counted: str) -> Axis:
    """Seconds where it is known how many samples or frames there are in one; else their numbers."""
    return Axis(edges, counted) if rate is None else Axis(edges / rate, "s", 2)


def names(chart: Chart, times: Axis, bands: Axis) -> tuple[str, ...]:
    """Each part by the box around it; an axis that every part spans is not mentioned, and equal boxes are numbered."""
    begin, end, low, high = chart.boxes
    stretches, heights = chart.cells.shape
    spare = 1 if chart.is_grid else 0  # edges of a grid must be told apart; those of other shapes are boxes around them
    written = [times.ranges(begin, end, spare), bands.ranges(low, high, spare)]
    whole = [bool((begin == 0).all() and (end == stretches).all()), bool((low == 0).all() and (high == heights).all())]
    kept = [words for words, spans in zip(written, whole, strict=True) if not spans] or written[:1]
    boxes = [", ".join(words) for words in zip(*kept, strict=True)]
    equal, seen = Counter(boxes), Counter[str]()
    out = []
    for box in boxes:
        seen[box] += 1
        out.append(f"{box} ({seen[box]})" if equal[box] > 1 else box)
    return tuple(out)


# --- from what was asked for to a chart -------------------------------------------------------------------------------


def parse_grid(grid: Any) -> tuple[int, int]:
    """How many cells in time and in frequency does "time:16", "freq:4" or "tf:5x4" ask for?"""
    found = re.fullmatch(r"(?:time:(\d+)|freq:(\d+)|tf:(\d+)[x×](\d+))", grid) if isinstance(grid, str) else None
    if found is None or not all(int(n) for n in found.groups() if n):
        raise ValueError("parts of a sound must be an array of labels, 'slic:20', 'time:16', 'freq:4' or 'tf:5x4' with counts "
                         f"of at least 1, got {grid!r}")
    return int(found[1] or found[3] or 1), int(found[2] or found[4] or 1)


def edges(length: int, cells: int, of: str) -> Labels:
    """cells + 1 boundaries at multiples of length // cells; the remainder joins the last cell."""
    if length < cells:
        raise ValueError(f"a sound must have at least one of its {of} in each cell: expected at least {cells}, got {length}; "
                         "ask for fewer parts or pass a longer sound")
    found = np.arange(cells + 1, dtype=np.intp) * (length // cells)
    found[-1] = length
    return found


def even_edges(length: int, cells: int) -> Labels:
    """cells + 1 boundaries, the remainder shared out: rows of a picture stand for equally long stretches."""
    return np.arange(cells + 1, dtype=np.intp) * length // cells


def band_edges(bands: int, rate: int | None) -> Floats:
    """Boundaries from 0 to the highest frequency, equally wide in mel (1127 ln(1 + f / 700)).

    Without a rate they are fractions of the highest frequency and equally wide, since mel needs Hz.
    """
    if rate is None:
        return np.linspace(0, 1, bands + 1)
    return np.asarray(700 * np.expm1(np.linspace(0, np.log1p(rate / 1400), bands + 1)))


def checked_hz(given: Sequence[float], bands: int) -> Floats:
    """The frequencies between which a spectrogram's bands lie."""
    hz = np.asarray(given, dtype=np.float64)
    if hz.shape != (bands + 1,) or not np.isfinite(hz).all() or not (np.diff(hz) > 0).all():
        raise ValueError(f"band_edges_hz must be {bands + 1} rising frequencies for {bands} bands, got shape {hz.shape}")
    return hz


def checked_labels(given: Any, sound: NDArray[Any]) -> Labels:
    """The user's own labels as 0 … d-1 without gaps, in the order of the old numbers."""
    labels = np.asarray(given)
    shaped = labels.shape == sound.shape or (sound.ndim == 1 and labels.ndim == 2 and labels.size > 0)
    if labels.dtype.kind not in "uib" or not shaped:
        expected = (f"one for each of its {sound.shape[0]} samples, or an array stretches of time × bands" if sound.ndim == 1
                    else f"one for each of its (frames, bands) = {sound.shape}")
        raise ValueError(f"labels of a sound's parts must be whole numbers, {expected}, got {labels.dtype} {labels.shape}")
    if sound.ndim == 1 and labels.ndim == 2 and 2 * len(labels) > len(sound):
        raise ValueError(f"labels must have at most one stretch of time for two samples: expected at most {len(sound) // 2} "
                         f"rows, got {len(labels)}; pass one label a sample to cut in time alone")
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape).astype(np.intp)
