"""Super-pixels of a spectrogram: parts that follow what sounds rather than a grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, need
from whytrust.domains.audio_chart import Chart, band_edges, even_edges
from whytrust.domains.spectra import Labels, decibels, middles, stft, window_length

_STRETCHES, _BANDS = 96, 64  # of the picture of a waveform that is cut: about as wide beside its height as a grid of 5 × 4
_COMPACTNESS = 0.1  # for values from 0 to 1: ten times that gives squares whatever sounds, a tenth of it shreds


def asked(spec: Any) -> int | None:
    """How many super-pixels does "slic:20" ask for? None where something else is asked for."""
    name, _, count = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if name != "slic":
        return None
    count = count or "20"
    if not count.isdecimal() or int(count) < 1:
        raise ValueError(f"super-pixels of a sound are written slic:20, with a whole number >= 1, got {spec!r}")
    return int(count)


def superpixels(picture: NDArray[Any], count: int) -> Labels:
    """About `count` connected areas of similar values (SLIC; Achanta et al. 2012), 0 … d-1 in the order of their numbers."""
    values = picture.astype(np.float64)
    low, high = float(values.min()), float(values.max())
    unit = (values - low) / (high - low) if high > low else np.zeros_like(values)
    found = need("skimage.segmentation", "image").slic(unit, n_segments=count, compactness=_COMPACTNESS, sigma=1,
                                                       start_label=0, channel_axis=None)
    return np.unique(found, return_inverse=True)[1].reshape(values.shape).astype(np.intp)


def of_wave(wave: Floats, count: int, rate: int | None) -> tuple[Chart, int]:
    """Super-pixels of a waveform's spectrogram in decibels, bands as in `band_edges`; and the window of its transform.

    Every cell of the picture holds a frame and a frequency of the transform, so no part can be one that nothing falls into.
    """
    window = window_length(len(wave) // max(1, round(math.sqrt(count))))
    spectrum = stft(wave, window)
    places = middles(len(spectrum), window)
    edges = even_edges(len(wave), min(_STRETCHES, len(wave) // (window // 4)))
    bounds, bands = _bounds(window, rate)
    stretch = np.searchsorted(edges[1:-1], places, side="right")
    power = _means(_means(np.abs(spectrum) ** 2, stretch).T, bands).T
    return Chart(superpixels(decibels(power), count), edges, bounds), window


def bin_heights(window: int, bounds: Floats) -> Floats:
    """Each frequency of a transform in the unit of `bounds`, which end at the highest."""
    return np.asarray(np.arange(window // 2 + 1) * (bounds[-1] / (window // 2)))


def _bounds(window: int, rate: int | None) -> tuple[Floats, Labels]:
    """The most bands, up to a limit, of which each holds a frequency of the transform; and the band of each frequency."""
    for count in range(min(_BANDS, window // 2), 0, -1):
        bounds = band_edges(count, rate)
        bands = np.searchsorted(bounds[1:-1], bin_heights(window, bounds), side="right")
        if len(np.unique(bands)) == count:
            break
    return bounds, bands


def _means(rows: Floats, groups: Labels) -> Floats:
    """The mean of the rows of each group; groups are runs, none empty."""
    counts = np.bincount(groups)
    return np.asarray(np.add.reduceat(rows, np.cumsum(counts) - counts, axis=0) / counts[:, None])
