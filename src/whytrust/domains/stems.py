"""A mix whose parts are the stems it was made of: voice, drums, whatever the user brings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Masks, check_masks
from whytrust.domains.audio_chart import band_edges
from whytrust.domains.audio_reading import as_type, checked, fitting, read, whole_rate
from whytrust.domains.dials import Gains
from whytrust.domains.spectra import Labels, add_up, decibels, middles, part_change, playable, shown_power, stft
from whytrust.views import SoundView

REST = "rest"
_SHOWN_BANDS = 128
_LONGEST_WINDOW, _SHORTEST_WINDOW = 1024, 16
_SILENT = 1e-14  # of the loudest cell's power: what transforms leave of silence
_POOLINGS = ("mean", "mean_abs", "mean_pos", "sum", "signed_max")


@dataclass(frozen=True, eq=False)
class StemParts:
    """Which of the sources that were mixed does the model's score of the mix depend on?

    A hidden stem is left out of the sum. Stems overlap in time and frequency, so a change of the whole mix belongs to none of
    them alone: each cell of its transform is shared out among the stems in proportion to their power there, equally where all
    are silent. That misleads where a change hides under a loud stem: the stem gets it, whatever the change was made of. Stems
    that a separation made of a mix have each other's leavings in them, and a model may hear those.
    """

    domain: ClassVar[str] = "audio"
    deterministic: ClassVar[bool] = True
    sound: NDArray[Any]
    names: tuple[str, ...]
    stems: NDArray[Any] = field(repr=False)  # (d, samples), as they were brought
    mix: NDArray[Any] = field(repr=False)  # that they add up to; `sound` is another one where the cut was laid over that
    rate: int | None = None
    below: NDArray[Any] | None = field(default=None, repr=False)  # another sound, which shows where a part is hidden

    @classmethod
    def of(cls, stems: Mapping[str, Any], mix: Any = None, rate: int | None = None,
           tolerance: float | None = None) -> StemParts:
        """Parts from waveforms by name, and the mix where it is not just their sum.

        What a mix has beyond the sum of its stems is one more part, "rest", unless no sample of it is larger than `tolerance`;
        by default that is what numbers of the stems' type round.
        """
        waves = {name: _wave(wave, f"the stem {name!r}") for name, wave in _named(stems).items()}
        brought = None if mix is None else _wave(mix, "the mix")
        given = [(repr(name), wave) for name, wave in waves.items()] + ([] if brought is None else [("the mix", brought)])
        _check_fit(given)
        total = np.sum([wave.astype(np.float64) for wave in waves.values()], axis=0)
        whole = _summed(total, np.result_type(*waves.values())) if brought is None else brought
        rest = whole - total
        if brought is not None and np.abs(rest).max() > _limit([wave for _, wave in given], tolerance):
            if REST in waves:
                raise ValueError(f"the mix has more in it than its stems, which would be a part named {REST!r}, and a stem has "
                                 "that name already; give the stem another one, or pass tolerance= the largest difference that "
                                 "is none")
            waves[REST] = rest
        return cls(whole, tuple(waves), np.stack(list(waves.values())), whole, None if rate is None else whole_rate(rate))

    @classmethod
    def read(cls, paths: Mapping[str, str | os.PathLike[str]], mix: str | os.PathLike[str] | None = None,
             rate: int | None = None, tolerance: float | None = None) -> StemParts:
        """Parts from sound files by name; `rate` resamples. By default a rest that files of 16 bits round is none."""
        wrong = {name: path for name, path in _named(paths).items() if not isinstance(path, str | os.PathLike)}
        if wrong:
            name, path = next(iter(wrong.items()))
            raise TypeError(f"stems that are read must be paths of sound files, got {type(path).__name__} for {name!r}; pass "
                            "arrays to StemParts.of")
        files = {name: read(path, rate) for name, path in paths.items()}
        whole = None if mix is None else read(mix, rate)
        rates = [(repr(name), own) for name, (_, own) in files.items()] + ([] if whole is None else [("the mix", whole[1])])
        if len({own for _, own in rates}) > 1:
            raise ValueError(f"stems must have one rate, got {_listed(rates)}; pass rate= to resample them")
        return cls.of({name: wave for name, (wave, _) in files.items()}, None if whole is None else whole[0],
                      rates[0][1], (len(files) + 1) / 2 ** 16 if tolerance is None else tolerance)

    # --- showing and hiding ---------------------------------------------------------------------------------------

    def compose(self, masks: Masks, rng: np.random.Generator) -> NDArray[Any]:
        """(n, d) masks -> n mixes of the shown stems; or the sound below with their shares of what is new in this one."""
        masks = check_masks(masks, len(self.names))
        start = np.zeros(self.sound.shape) if self.below is None else self.below
        out = as_type(add_up(start, [(0, added) for added in self._added], masks), self.sound.dtype)
        if self.below is not None:
            out[~masks.any(axis=1)] = self.below
        out[masks.all(axis=1)] = self.sound
        return out

    def like(self, other: Any) -> StemParts:
        """Another mix of this length, as if of the same stems: each has its share of what is new in it."""
        return replace(self, sound=fitting(other, self.sound))

    def over(self, below: Any) -> StemParts:
        """This mix with another of its length below: hiding a stem takes away its share of the change from one to the other."""
        lower = fitting(below, self.sound)
        exact = np.result_type(self.sound, lower)
        return replace(self, sound=self.sound.astype(exact, copy=False), below=lower.astype(exact, copy=False))

    def squared_change(self, since: Any) -> Floats:
        """Squared magnitudes of the change's transform, (frames, bins): `pool` shares each among the stems that sound there.

        The parts' sums add up to that of the whole. It does not say that a stem was changed, only that something was where it
        is loud.
        """
        return np.asarray(np.abs(stft(self._since(fitting(since, self.sound)), self._window)) ** 2)

    @cached_property
    def _added(self) -> Floats:
        """(d, samples): what showing each stem adds."""
        if self.below is not None:
            return self._shared(self._since(self.below))
        own = self.stems.astype(np.float64)
        return own if np.array_equal(self.sound, self.mix) else own + self._shared(self._since(self.mix))

    @cached_property
    def dials(self) -> Gains:
        """What gradients are taken of: stems that sound at once cannot be told apart in the samples."""
        below = np.zeros(self.sound.shape) if self.below is None else self.below.astype(np.float64)
        return Gains(self.sound.astype(np.float64), np.asarray(self._added), below)

    def _since(self, before: NDArray[Any]) -> Floats:
        return np.asarray(self.sound.astype(np.float64) - before)

    def _shared(self, change: Floats) -> Floats:
        """(d, samples): the stems' shares of a change of the mix."""
        spectrum = stft(change, self._window)
        everywhere = np.ones(spectrum.shape, dtype=bool)
        return np.stack([part_change(spectrum * self._share(part), everywhere, self._window, len(change))[1]
                         for part in range(len(self.names))])

    # --- who sounds where -----------------------------------------------------------------------------------------

    @property
    def _window(self) -> int:
        return int(np.clip(1 << max(len(self.mix) // 4, 1).bit_length() - 1, _SHORTEST_WINDOW, _LONGEST_WINDOW))

    def _power(self, part: int) -> Floats:
        return np.asarray(np.abs(stft(self.stems[part].astype(np.float64), self._window)) ** 2)

    @cached_property
    def _total(self) -> Floats:
        """(frames, bins): the power of all stems together; 0 where all are silent."""
        total = sum((self._power(part) for part in range(len(self.names))), np.zeros(()))
        return np.where(total > _SILENT * total.max(), total, 0)

    def _share(self, part: int) -> Floats:
        """(frames, bins): how much of each cell's power is this stem's."""
        equal = np.full(self._total.shape, 1 / len(self.names))
        return np.asarray(np.divide(self._power(part), self._total, out=equal, where=self._total > 0))

    def _share_in_time(self, part: int) -> Floats:
        """(samples,): how much of the power around each sample is this stem's."""
        total = self._total.sum(axis=1)
        own = np.where(self._total > 0, self._power(part), 0).sum(axis=1)
        share = np.divide(own, total, out=np.full(len(total), 1 / len(self.names)), where=total > 0)
        return np.asarray(np.interp(np.arange(len(self.sound)), middles(len(total), self._window), share))

    @cached_property
    def labels(self) -> Labels:
        """(frames, bins): the loudest stem of each cell of the transform; the first where all are silent."""
        powers = [np.where(self._total > 0, self._power(part), 0) for part in range(len(self.names))]
        return np.asarray(np.argmax(powers, axis=0))

    def pool(self, map: Floats, how: str) -> Floats:
        """A map over samples, or over (frames, bins) of the transform -> one number a stem, each place shared by power.

        `how` is mean, mean_abs, mean_pos, sum or signed_max. Stems that sound at once cannot be told apart in a map over
        samples: the louder one gets more of it.
        """
        if how not in _POOLINGS:
            raise ValueError(f"pooling must be one of {', '.join(_POOLINGS)}, got {how!r}")
        values = np.asarray(map, dtype=np.float64)
        if values.shape not in (self.sound.shape, self._total.shape):
            raise ValueError(f"the map must be shaped like the mix, {self.sound.shape}, or like its transform, "
                             f"{self._total.shape}, got {values.shape}")
        values = np.abs(values) if how == "mean_abs" else np.maximum(values, 0) if how == "mean_pos" else values
        of_part = self._share_in_time if values.shape == self.sound.shape else self._share
        return np.array([_pooled(values, of_part(part), how) for part in range(len(self.names))])

    @cached_property
    def view(self) -> SoundView:
        """The mix as a spectrogram, and the loudest stem of each of its cells."""
        bounds = band_edges(_SHOWN_BANDS, self.rate)
        power, _ = shown_power(self.sound.astype(np.float64), bounds, 1)
        loudest = np.argmax([shown_power(stem.astype(np.float64), bounds, 1)[0] for stem in self.stems], axis=0)
        return SoundView(decibels(power).astype(np.float32), loudest.astype(np.int32),
                         None if self.rate is None else len(self.sound) / self.rate,
                         None if self.rate is None else self.rate / 2, playable(self.sound), self.rate, None)


def _pooled(values: Floats, share: Floats, how: str) -> float:
    weighed = (values * share).ravel()
    if how == "signed_max":
        return float(weighed[np.argmax(np.abs(weighed))])
    weight = float(share.sum())
    return float(weighed.sum()) / (1 if how == "sum" else weight if weight > 0 else 1)


# --- checks -----------------------------------------------------------------------------------------------------------


def _named(stems: Any) -> Mapping[str, Any]:
    if not isinstance(stems, Mapping) or not all(isinstance(name, str) and name for name in stems):
        came = "names that are no words" if isinstance(stems, Mapping) else type(stems).__name__
        raise TypeError(f"stems must be a dict of waveforms by name, such as {{'voice': wave, 'drums': wave}}, got {came}")
    if not stems:
        raise ValueError("stems must hold at least one waveform, got an empty dict")
    return stems


def _wave(given: Any, what: str) -> NDArray[Any]:
    try:
        wave = checked(given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from error
    if wave.ndim != 1:
        raise ValueError(f"{what} must be a waveform (samples,), got shape {wave.shape}; average its channels first")
    return wave


def _check_fit(waves: Sequence[tuple[str, NDArray[Any]]]) -> None:
    if len({len(wave) for _, wave in waves}) > 1:
        raise ValueError(f"stems and mix must have one length, got samples: {_listed([(n, len(w)) for n, w in waves])}; cut "
                         "them to the same stretch of time, or pad with zeros")
    if len({wave.dtype.kind for _, wave in waves}) > 1:
        raise TypeError("stems and mix must be all of whole numbers or all of floats, which have another scale, got "
                        f"{_listed([(n, w.dtype) for n, w in waves])}")


def _listed(pairs: Sequence[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {value}" for name, value in pairs)


def _summed(total: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "i" and not np.iinfo(dtype).min <= total.min() <= total.max() <= np.iinfo(dtype).max:
        raise ValueError(f"the sum of the stems must fit their type, {dtype}, got samples from {total.min():.0f} to "
                         f"{total.max():.0f}; pass floats, or the mix")
    return as_type(total, dtype)


def _limit(waves: Sequence[NDArray[Any]], tolerance: float | None) -> float:
    """The largest difference that counts as none: by default how far a sum may be from terms that were each rounded."""
    if tolerance is not None:
        if not tolerance >= 0:
            raise ValueError(f"tolerance must be a number of at least 0, got {tolerance!r}")
        return tolerance
    if waves[0].dtype.kind == "i":
        return len(waves) / 2
    coarsest = max(float(np.finfo(wave.dtype).eps) for wave in waves)
    return coarsest * len(waves) * max(float(np.abs(wave.astype(np.float64)).max()) for wave in waves)
