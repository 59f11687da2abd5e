"""Excerpts of a song as they would sound slower or faster, higher or lower, and through another equaliser.

The augmentation of the singing-voice detector (Schlüter & Grill 2015), on linear magnitudes before the mel filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats
from whytrust.models.front_end import filterbank, mel_points

RATE, N_FFT, BANDS, LOW, HIGH, FLOOR = 22050, 1024, 80, 27.5, 8000.0, 1e-7
"""The detector's front end."""
BINS = N_FFT // 2 + 1
MOST_TENTHS = 3
"""Time is stretched and pitch is shifted by at most so many tenths."""
LOUDEST, CENTRES, WIDTHS = 10.0, (150.0, 8000.0), (5.0, 7.0)
"""The equaliser: decibels at most, where its middle may lie (Hz), how wide it may be (semitones)."""
Magnitudes = NDArray[np.float32]


def span(frames: int) -> int:
    """How many frames of a song an excerpt of `frames` needs, however much it is stretched: 164 for 115."""
    return -((1 - frames) * 10 // (10 - MOST_TENTHS)) + 1


@dataclass(frozen=True)
class Warp:
    """Magnitudes of a stretch of a song -> the log-mel excerpt of the same moment, as another recording might have it.

    Frequencies move by one factor and not by one interval of a voice's own: the formants move along, as on a tape that runs too
    fast. Above the highest frequency of the transform, where a lowered recording has nothing to show, the last bin is repeated.
    """

    stretch: float = 1.0  # so many times slower
    shift: float = 1.0  # so many times higher
    gain: float = 0.0  # decibels at the equaliser's middle
    centre: float = 1000.0  # Hz
    width: float = 6.0  # semitones from the middle to where exp(-1/2) of the decibels are left

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Warp:
        """Stretch and shift up to 30 % either way, up to 10 dB anywhere from 150 to 8000 Hz."""
        most = MOST_TENTHS / 10
        stretch, shift = rng.uniform(1 - most, 1 + most, 2)
        centre = np.exp(rng.uniform(*np.log(CENTRES)))
        gain, width = rng.uniform(-LOUDEST, LOUDEST), rng.uniform(*WIDTHS)
        return cls(float(stretch), float(shift), float(gain), float(centre), float(width))

    def __call__(self, magnitudes: Magnitudes, frames: int) -> NDArray[np.float32]:
        """(some frames, 513) -> (frames, 80), around the same middle."""
        if magnitudes.ndim != 2 or magnitudes.shape[1] != BINS or not len(magnitudes):
            raise ValueError(f"magnitudes must be (frames, {BINS}), got shape {magnitudes.shape}; it is what Magnitude gives")
        played = _between(magnitudes, self.moments(len(magnitudes), frames), axis=0)
        if self.shift != 1:
            played = _between(played, np.arange(BINS) / self.shift, axis=1)
        heard = played @ (self.gains[:, None] * _filters()).astype(np.float32)
        return np.asarray(np.log(np.maximum(heard, np.float32(FLOOR))))

    def moments(self, given: int, frames: int) -> Floats:
        """Which place among the frames that are given each frame of the excerpt is taken from."""
        return (given - 1) / 2 + (np.arange(frames) - (frames - 1) / 2) / self.stretch

    @property
    def gains(self) -> Floats:
        """(513,): the equaliser as a factor of each frequency's magnitude."""
        hertz = np.maximum(np.arange(BINS) * RATE / N_FFT, 1e-9)
        away = 12 * np.log2(hertz / self.centre) / self.width
        return np.asarray(10 ** (self.gain / 20 * np.exp(-away**2 / 2)))


def _between(values: NDArray[Any], places: Floats, axis: int) -> NDArray[Any]:
    """Linear interpolation at places along one axis; beyond its ends the outermost value holds."""
    inside = np.clip(places, 0, values.shape[axis] - 1)
    before = np.minimum(inside.astype(np.intp), max(values.shape[axis] - 2, 0))
    after = np.minimum(before + 1, values.shape[axis] - 1)
    share = (inside - before).astype(values.dtype)
    share = share[:, None] if axis == 0 else share[None]
    lower, upper = np.take(values, before, axis), np.take(values, after, axis)
    return np.asarray(lower + share * (upper - lower))


@cache
def _filters() -> Floats:
    return filterbank(RATE, N_FFT, mel_points(BANDS, LOW, HIGH))
