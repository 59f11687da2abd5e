"""A waveform's short-time Fourier transform, there and back, and the spectrogram that a reader is shown."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Masks

_LONGEST_WINDOW, _SHORTEST_WINDOW = 1024, 16  # samples
_SHOWN_FRAMES = 400

Labels = NDArray[np.intp]
Change = tuple[int, Floats]
"""What hiding one part adds to the waveform: the first sample it touches, and the numbers added from there on."""


# --- the short-time Fourier transform ---------------------------------------------------------------------------------
# Windows overlap by three quarters and are applied on the way there and back; their squares add up to 3/2 everywhere, since
# the frames begin three hops before the sound and end three hops after. So the way back is exact, also for a few frames of it.


def _window(length: int) -> Floats:
    return np.asarray(np.hanning(length + 1)[:-1])


def window_length(cell: int) -> int:
    """The longest power of two that fits a stretch of time: a window that is longer would smear it over its neighbours."""
    if cell < _SHORTEST_WINDOW:
        raise ValueError(f"a waveform cut in frequency must have at least {_SHORTEST_WINDOW} samples in each stretch of time, "
                         f"got {cell}; ask for fewer parts or pass a longer sound")
    return int(min(1 << (cell.bit_length() - 1), _LONGEST_WINDOW))


def stft(wave: Floats, window: int) -> NDArray[np.complex128]:
    """(frames, bins); scaled so that a sine's magnitude is half its amplitude."""
    hop = window // 4
    frames = -(-len(wave) // hop) + 3
    padded = np.zeros((frames + 3) * hop)
    padded[3 * hop:3 * hop + len(wave)] = wave
    framed = np.lib.stride_tricks.sliding_window_view(padded, window)[::hop]
    return np.asarray(np.fft.rfft(framed * _window(window), axis=1) / (window / 2))


def cell_of_frame(frames: int, window: int, edges: Labels) -> Labels:
    """The stretch of time that holds a frame's middle; frames before and after the sound go to the first and the last."""
    middles = (np.arange(frames) - 1) * (window // 4)
    return np.searchsorted(edges[1:-1], middles, side="right")


def part_change(change: NDArray[np.complex128], frames: Masks, bins: Masks, window: int, length: int) -> Change:
    """Some cells of a transform, back as samples."""
    first, hop = int(np.argmax(frames)), window // 4
    pieces = np.fft.irfft(np.where(bins, change[frames], 0), n=window, axis=1) * (_window(window) * (window / 2) / 1.5)
    out = np.zeros((len(pieces) + 3) * hop)
    for i, piece in enumerate(pieces):
        out[i * hop:i * hop + window] += piece
    begin = (first - 3) * hop
    return max(begin, 0), out[max(-begin, 0):max(length - begin, 0)]


# --- what a reader sees and hears -------------------------------------------------------------------------------------


def shown(wave: Floats, bounds: Floats, stretches: int) -> tuple[NDArray[np.float32], Labels]:
    """A spectrogram in decibels below its peak, frames × bands between `bounds`, and the sample in the middle of each frame.

    Each frame of a long sound shows the mean of a few windows, not all of it, so that memory does not grow with the sound.
    """
    window = _LONGEST_WINDOW if len(wave) >= 4 * _LONGEST_WINDOW else max(_SHORTEST_WINDOW, 1 << (len(wave) // 4).bit_length())
    frames = min(len(wave), max(_SHOWN_FRAMES, stretches), max(-(-4 * len(wave) // window), 2 * stretches))
    width = len(wave) / frames
    looks = int(np.clip(width * 2 / window, 1, 4))
    padded = np.pad(wave, window // 2)
    power = np.zeros((frames, window // 2 + 1))
    for look in range(looks):
        begins = ((np.arange(frames) + (look + 0.5) / looks) * width).astype(np.intp)
        power += np.abs(np.fft.rfft(padded[begins[:, None] + np.arange(window)] * _window(window), axis=1)) ** 2
    bins = bounds / bounds[-1] * (window // 2)
    pooled = np.empty((frames, len(bounds) - 1))
    for band, (low, high) in enumerate(pairwise(bins)):
        inside = slice(math.ceil(low), math.ceil(high))
        if inside.start == inside.stop:  # narrower than a bin: the nearest one
            inside = slice(round((low + high) / 2), round((low + high) / 2) + 1)
        pooled[:, band] = power[:, inside].mean(axis=1)
    decibels = 10 * np.log10(np.maximum(pooled / max(pooled.max(), 1e-300), 1e-8))
    return decibels.astype(np.float32), ((np.arange(frames) + 0.5) * width).astype(np.intp)


def playable(wave: NDArray[Any]) -> NDArray[np.float32]:
    """Between -1 and 1."""
    scaled = wave / (1 if wave.dtype.kind == "f" else 2.0 ** (8 * wave.dtype.itemsize - 1))
    return np.asarray(scaled / max(float(np.abs(scaled).max()), 1.0), dtype=np.float32)
