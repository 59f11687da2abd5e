"""What a sound is made of, as values that can be turned: how loud its frequencies are, or the gains of its stems."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, pool_labels
from whytrust.domains.spectra import Labels, middles, stft, waves


@dataclass(frozen=True, eq=False)
class Loudness:
    """How does the score move as a frequency gets louder for a moment, its phase as it is?

    The values are magnitudes of the waveform's short-time Fourier transform, the same as are turned down where a part is
    hidden. Windows overlap, so neighbouring cells say much the same twice; what a shift of phase would do does not show.
    """

    sound: Floats  # (samples,)
    labels: Labels  # (frames, bins): the part of each cell
    d: int
    window: int
    called = "the magnitudes of its transform, (frames, frequencies)"
    told = ("The model has no front end in it that says where its frequencies are, so gradients are those of the sound's own "
            "short-time Fourier transform: magnitudes, with the phase kept.")

    @cached_property
    def own(self) -> Floats:
        """(frames, bins)."""
        return np.abs(stft(self.sound, self.window))

    @property
    def spread(self) -> float:
        """Noise of this size in every cell is noise of the size of the sound's range in every sample."""
        return float(np.ptp(self.sound)) / math.sqrt(self.window / 6)

    @cached_property
    def _phase(self) -> NDArray[np.complex128]:
        """That of a silent cell is taken as 0, as where parts are hidden."""
        spectrum = stft(self.sound, self.window)
        return np.divide(spectrum, self.own, out=np.ones_like(spectrum), where=self.own > 0)

    def inputs(self, values: Floats) -> Floats:
        """(n, frames, bins) -> (n, samples)."""
        begin = 3 * (self.window // 4)
        made = waves(values * self._phase, self.window)[:, begin:begin + len(self.sound)]
        made[(values == self.own).all(axis=(1, 2))] = self.sound  # not what rounding leaves of it
        return made

    def pulled(self, gradients: Floats) -> Floats:
        """(n, samples) -> (n, frames, bins): the transform of the gradient, as far as it has the sound's phase."""
        twice = np.full(self.own.shape[1], 2.0)  # of a real sound, each frequency but the first and the last stands for two
        twice[[0, -1]] = 1.0
        scale = twice * (self.window / 2) / (1.5 * 2)
        return np.stack([scale * (self._phase * stft(gradient, self.window).conj()).real for gradient in gradients])

    def pool(self, map: Floats, how: str) -> Floats:
        """One number a part; a mean is over the frames whose middle lies in the sound, for the others hear next to nothing."""
        moments = middles(len(self.labels), self.window)
        inside = (moments >= 0) & (moments < len(self.sound))
        if how == "sum" or len(np.unique(self.labels[inside])) < self.d:
            return pool_labels(map, self.labels, self.d, how)
        return pool_labels(map[inside], self.labels[inside], self.d, how)


@dataclass(frozen=True, eq=False)
class Gains:
    """How does the score move as a stem of the mix gets louder?

    One value a stem, 1 in the mix as it is and 0 where the stem is left out. So a slope is also input times slope, and
    integrated gradients add up over the stems to what all of them together do.
    """

    sound: Floats  # (samples,)
    added: Floats  # (d, samples): what each stem adds at a gain of 1
    below: Floats  # what is there without any
    called = "one gain a stem"
    told = "Gradients are those of the stems' gains."
    spread = 1.0

    @cached_property
    def own(self) -> Floats:
        """(d,)."""
        return np.ones(len(self.added))

    def inputs(self, values: Floats) -> Floats:
        """(n, d) -> (n, samples)."""
        made = self.below + values @ self.added
        made[(values == 1).all(axis=1)] = self.sound
        return np.asarray(made)

    def pulled(self, gradients: Floats) -> Floats:
        """(n, samples) -> (n, d)."""
        return np.asarray(gradients @ self.added.T)

    def pool(self, map: Floats, how: str) -> Floats:
        """A stem's own value, or its size, or 0 where it is negative."""
        return pool_labels(map, np.arange(len(self.added)), len(self.added), how)
