"""A waveform's short-time Fourier transform, there and back, and the spectrogram that a reader is shown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress, pairwise
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


def middles(frames: int, window: int) -> Labels:
    """The sample in the middle of each frame; those of the first and the last frames lie outside the sound."""
    return (np.arange(frames) - 1) * (window // 4)


def waves(spectra: NDArray[np.complex128], window: int) -> Floats:
    """(…, frames, bins) of transforms, or of a few of their frames -> (…, (frames + 3) · hop) samples.

    The first of them lies three hops before the sound, where the frames are all there are.
    """
    hop = window // 4
    pieces = np.fft.irfft(spectra, n=window, axis=-1) * (_window(window) * (window / 2) / 1.5)
    out = np.zeros((*pieces.shape[:-2], pieces.shape[-2] + 3, hop))
    for quarter in (3, 2, 1, 0):  # the pieces that meet in a stretch of one hop, the earliest first
        out[..., quarter:quarter + pieces.shape[-2], :] += pieces[..., quarter * hop:(quarter + 1) * hop]
    return out.reshape(*out.shape[:-2], -1)


def part_change(change: NDArray[np.complex128], cells: Masks, window: int, length: int) -> Change:
    """Some cells of a transform, back as samples."""
    frames = np.flatnonzero(cells.any(axis=1))
    if not len(frames):
        return 0, np.zeros(0)
    first, hop, held = int(frames[0]), window // 4, slice(int(frames[0]), int(frames[-1]) + 1)
    begin = (first - 3) * hop
    return max(begin, 0), waves(np.where(cells[held], change[held], 0), window)[max(-begin, 0):max(length - begin, 0)]


def add_up(start: NDArray[Any], changes: Sequence[Change], added: Masks) -> Floats:
    """A waveform for each row of `added`: the start, and the changes that the row names.

    Change by change in a fixed order: a sound does not depend on the others of its batch, nor its bits on their number.
    """
    waves = np.repeat(start[None].astype(np.float64), len(added), axis=0)
    for wave, row in zip(waves, added, strict=True):
        for first, change in compress(changes, row):
            wave[first:first + len(change)] += change
    return waves


# --- what a reader sees and hears -------------------------------------------------------------------------------------


def shown(wave: Floats, bounds: Floats, stretches: int) -> tuple[NDArray[np.float32], Labels]:
    """A spectrogram in decibels below its peak, frames × bands between `bounds`, and the sample in the middle of each frame."""
    power, centres = shown_power(wave, bounds, stretches)
    return decibels(power).astype(np.float32), centres


def shown_power(wave: Floats, bounds: Floats, stretches: int) -> tuple[Floats, Labels]:
    """The power behind a picture of a sound, and the sample in the middle of each of its frames.

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
    return pooled, ((np.arange(frames) + 0.5) * width).astype(np.intp)


def decibels(power: Floats) -> Floats:
    """Below the peak, and not below -80; silence is all of it -80."""
    return np.asarray(10 * np.log10(np.maximum(power / max(power.max(), 1e-300), 1e-8)))


def playable(wave: NDArray[Any]) -> NDArray[np.float32]:
    """Between -1 and 1."""
    scaled = wave / (1 if wave.dtype.kind == "f" else 2.0 ** (8 * wave.dtype.itemsize - 1))
    return np.asarray(scaled / max(float(np.abs(scaled).max()), 1.0), dtype=np.float32)
