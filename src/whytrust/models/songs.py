"""Songs with the stretches in which somebody sings, and sets of them to train, tune and test a detector on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from whytrust.models.synthesiser import piece

RATE, HOP = 22050, 315
"""Samples a second, and samples from one frame to the next: 70 frames a second."""
FRAMES, BANDS, FRAME_RATE = 115, 80, RATE // HOP
"""An excerpt: so many frames of so many mel bands, so many frames a second."""
REACH = FRAMES // 2
"""Frames on either side of the one that an excerpt is about."""
SILENT = math.log(1e-7)
"""What the front end gives for silence."""
CLASSES = ("no sing", "sing")
Wave = NDArray[np.float32]
Stretches = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class Song:
    """One channel at 22 050 Hz, and when somebody sings in it."""

    name: str
    wave: Wave
    sung: Stretches | None  # seconds, rising and apart; None where nobody said
    stems: Mapping[str, Wave] = field(default_factory=dict)  # what the wave is the sum of, where that is known

    @property
    def frames(self) -> int:
        """How many frames the front end makes of it."""
        return 1 + len(self.wave) // HOP

    @property
    def seconds(self) -> float:
        """Its length."""
        return len(self.wave) / RATE

    @property
    def labels(self) -> NDArray[np.bool_]:
        """(frames,): does somebody sing at the moment t / 70 of frame t?"""
        if self.sung is None:
            raise ValueError(f"{self.name} must come with the stretches in which somebody sings, got none; add its .lab file")
        return sung_frames(self.sung, self.frames)


def sung_frames(sung: Stretches, frames: int) -> NDArray[np.bool_]:
    """Whether each frame's moment lies in a stretch; its beginning belongs to it, its end does not."""
    moments = np.arange(frames) * HOP / RATE
    found = np.zeros(frames, dtype=bool)
    for start, end in sung:
        found |= (moments >= start) & (moments < end)
    return found


@dataclass(frozen=True, eq=False)
class Songs(Sequence[Song]):
    """Songs that are read or made when they are asked for: a set of hours does not fit into memory."""

    names: tuple[str, ...]
    make: Callable[[int], Song]
    length: Callable[[int], float] | None = None  # seconds, known before a song is read or made

    def __len__(self) -> int:
        """How many there are."""
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Song: ...
    @overload
    def __getitem__(self, index: slice) -> Songs: ...
    def __getitem__(self, index: int | slice) -> Any:
        """One song, or some of them, not made yet."""
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return self._some(numbers)
        return self.make(numbers)

    def frames(self, number: int) -> int:
        """How many frames a song has, which need not be read or made for that where lengths are known."""
        return self[number].frames if self.length is None else 1 + int(self.length(number) * RATE) // HOP

    def _some(self, numbers: Sequence[int]) -> Songs:
        """The songs of these numbers."""
        length = self.length
        return Songs(tuple(self.names[i] for i in numbers), lambda i: self.make(numbers[i]),
                     None if length is None else lambda i: length(numbers[i]))

    def limited(self, limit: int | None) -> Songs:
        """So many of them, evenly spread."""
        if limit is None or (isinstance(limit, int) and limit >= len(self)):
            return self
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ValueError(f"limit must be a whole number >= 1, got {limit!r}")
        kept = np.linspace(0, len(self) - 1, limit).round().astype(int).tolist()
        return self._some(kept)


@dataclass(frozen=True, eq=False)
class SongSet:
    """Songs to train on, to tune on and to test on."""

    what: str
    train: Songs
    valid: Songs
    test: Songs


def synthesised(seed: int, count: int, seconds: float = 20.0) -> Songs:
    """Pieces that the synthesiser makes; another seed makes others."""
    return Songs(tuple(f"piece {seed}.{i}" for i in range(count)), partial(_synthesised, seed, seconds), lambda number: seconds)


def _synthesised(seed: int, seconds: float, number: int) -> Song:
    made = piece(seed, number, seconds)
    return Song(f"piece {seed}.{number}", made.wave, made.sung, made.stems)


def edges_between(centres: Any) -> list[float]:
    """Edges half-way between the middles of bands; the outermost as far out as their neighbours are in, and not below 0."""
    middles = np.asarray(centres, dtype=np.float64)
    inner = (middles[1:] + middles[:-1]) / 2
    return [max(0.0, float(2 * middles[0] - inner[0])), *map(float, inner), float(2 * middles[-1] - inner[-1])]
