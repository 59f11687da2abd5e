"""From waveforms to log-mel spectrograms inside a net, so that gradients reach the samples.

The front end of the singing-voice detector (Praher et al. 2021). It has two halves, a linear magnitude spectrogram and its
log-mel bands, so that a net can be cut behind either; each says which second and which frequency its outputs stand for.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, need

torch = need("torch", "torch")
nn = torch.nn
_MOST_CHANNELS = 8  # an array with more rows and columns than that is no single sound


class Magnitude(nn.Module):  # type: ignore[misc, name-defined]
    """(n, samples) -> (n, frames, n_fft / 2 + 1): how strong each frequency is around each moment.

    Frames are `hop` samples apart, the first is centred on the first sample, and beyond the ends there is silence; the window
    is a periodic Hann window. At a magnitude of 0, where the slope has no direction, the gradient is 0.
    """

    limits = (0.0, None)  # no sound has a magnitude below 0: attacks on what this gives stay there

    def __init__(self, *, rate: int = 22050, n_fft: int = 1024, hop: int = 315) -> None:
        """`rate` in samples a second, window and hop in samples."""
        super().__init__()
        self.rate, self.n_fft, self.hop = _whole("rate", rate), _even("n_fft", n_fft), _whole("hop", hop)

    def forward(self, waves: Any) -> Any:
        """Magnitudes in the type of the waves; half precision is computed in float32, since a Fourier transform needs it."""
        _check(waves, "waves", "samples", "; pass waves[None] for one, and average the channels of several")
        if not waves.shape[1]:
            raise ValueError("waves must have at least one sample, got none; was the file empty?")
        if not len(waves):  # torch has no Fourier transform of nothing
            return waves[:, :1, None].expand(0, 1 + waves.shape[1] // self.hop, self.n_fft // 2 + 1)
        return self.framed(nn.functional.pad(waves, (self.n_fft // 2, self.n_fft // 2)))

    def framed(self, waves: Any) -> Any:
        """As `forward`, but of waves that bring what lies before and after them: the first frame begins at the first sample."""
        wide = waves.to(torch.promote_types(waves.dtype, torch.float32))
        window = torch.hann_window(self.n_fft, dtype=torch.float64, device="cpu").to(wide)  # rounded once
        spectrum = torch.stft(wide, self.n_fft, self.hop, window=window, center=False, return_complex=True)
        return spectrum.abs().transpose(1, 2).to(waves.dtype)

    def coordinates(self, frames: int, width: int) -> tuple[Floats, Floats]:
        """(seconds, hertz): the middle of each of so many frames, and the frequency of each bin."""
        hertz = np.arange(self.n_fft // 2 + 1) * self.rate / self.n_fft
        return _moments(frames, self.hop, self.rate), _of_width(hertz, width)

    def extra_repr(self) -> str:
        """The settings, where the module is printed."""
        return f"rate={self.rate}, n_fft={self.n_fft}, hop={self.hop}"


class LogMel(nn.Module):  # type: ignore[misc, name-defined]
    """(n, frames, n_fft / 2 + 1) magnitudes -> (n, frames, bands): the logarithm of the weighted mean in each mel band.

    Bands overlap by half and are equally wide in mel = 1127 ln(1 + f / 700) between `low` and `high`; what lies outside is not
    heard. Below `floor` everything is equally silent: the gradient is 0 there.
    """

    filters: Any

    def __init__(self, *, rate: int = 22050, n_fft: int = 1024, hop: int = 315, bands: int = 80, low: float = 27.5,
                 high: float = 8000.0, floor: float = 1e-7) -> None:
        """`low` and `high` in hertz, `floor` as a magnitude; rate, n_fft and hop as they were for the magnitudes."""
        super().__init__()
        self.rate, self.n_fft, self.hop = _whole("rate", rate), _even("n_fft", n_fft), _whole("hop", hop)
        self.bands, self.low, self.high, self.floor = _whole("bands", bands), float(low), float(high), float(floor)
        if not 0 <= self.low < self.high <= self.rate / 2:
            raise ValueError(f"low and high must be frequencies with 0 <= low < high <= {self.rate / 2:g}, half the rate, got "
                             f"{low!r} and {high!r}; take a higher rate or lower bands")
        if not (math.isfinite(self.floor) and self.floor > 0):
            raise ValueError(f"floor must be a magnitude above 0, whose logarithm is finite, got {floor!r}")
        # Not persistent: it follows from the settings, and checkpoints hold what was learnt.
        self.register_buffer("filters", torch.as_tensor(self._exact(), dtype=torch.get_default_dtype()), persistent=False)

    def forward(self, magnitudes: Any) -> Any:
        """log(max(floor, mean of each band))."""
        _check(magnitudes, "magnitudes", "frames, bins", "; they are what Magnitude gives")
        if magnitudes.shape[2] != len(self.filters):
            raise ValueError(f"magnitudes must have n_fft / 2 + 1 = {len(self.filters)} bins, got {magnitudes.shape[2]}; "
                             "give Magnitude and LogMel the same n_fft")
        if magnitudes.dtype != self.filters.dtype:
            raise TypeError(f"magnitudes must be of the front end's type, {self.filters.dtype}, got {magnitudes.dtype}; call "
                            f".to({magnitudes.dtype}) on the front end, or .to({self.filters.dtype}) on what it is given")
        return torch.log(torch.clamp(magnitudes @ self.filters, min=self.floor))

    def coordinates(self, frames: int, width: int) -> tuple[Floats, Floats]:
        """(seconds, hertz): the middle of each of so many frames, and the frequency at which each band peaks."""
        return _moments(frames, self.hop, self.rate), _of_width(mel_points(self.bands, self.low, self.high)[1:-1], width)

    def extra_repr(self) -> str:
        """The settings, where the module is printed."""
        return (f"rate={self.rate}, n_fft={self.n_fft}, hop={self.hop}, bands={self.bands}, low={self.low:g}, "
                f"high={self.high:g}, floor={self.floor:g}")

    def _exact(self) -> Floats:
        return filterbank(self.rate, self.n_fft, mel_points(self.bands, self.low, self.high))

    def _apply(self, *how: Any, **options: Any) -> LogMel:
        """Every change of type or place goes through here; a cast from float32 to float64 would keep float32's digits."""
        super()._apply(*how, **options)
        self.filters = torch.as_tensor(self._exact(), device="cpu").to(self.filters)
        return self


class FrontEnd(nn.Module):  # type: ignore[misc, name-defined]
    """Waveforms (n, samples) -> log-mel spectrograms (n, frames, bands), differentiable down to the samples.

    The defaults are the singing-voice detector's: 70 frames a second. Nothing in it is learnt, and it adds nothing to a state
    dict. A tone between two bands raises both, and what lies above `high` does not exist for a net behind it.
    """

    def __init__(self, *, rate: int = 22050, n_fft: int = 1024, hop: int = 315, bands: int = 80, low: float = 27.5,
                 high: float = 8000.0, floor: float = 1e-7) -> None:
        """As for the two halves, `magnitude` and `log_mel`."""
        super().__init__()
        self.magnitude = Magnitude(rate=rate, n_fft=n_fft, hop=hop)
        self.log_mel = LogMel(rate=rate, n_fft=n_fft, hop=hop, bands=bands, low=low, high=high, floor=floor)

    def forward(self, waves: Any) -> Any:
        """1 + samples // hop frames of each wave, which may be shorter than a window."""
        return self.log_mel(self.magnitude(waves))

    def coordinates(self, frames: int, width: int) -> tuple[Floats, Floats]:
        """(seconds, hertz): the middle of each of so many frames, and the frequency at which each band peaks."""
        found: tuple[Floats, Floats] = self.log_mel.coordinates(frames, width)
        return found

    def prepare(self, wave: Any, rate: float) -> NDArray[np.float32]:
        """One sound as an array at another rate -> one channel of float32 at this front end's rate.

        Channels, along the shorter axis, are averaged; whole numbers are scaled to between -1 and 1, as in reading a file.
        """
        mono, own_rate = _mono(np.asarray(wave)), self.magnitude.rate
        if isinstance(rate, bool) or not isinstance(rate, int | float | np.number) or not 0 < rate < math.inf:
            raise ValueError(f"rate must be the sound's samples a second, above 0, got {rate!r}")
        if rate != own_rate:
            mono = need("soxr", "audio").resample(mono, float(rate), own_rate)
        if not len(mono):
            raise ValueError(f"a sound must have at least one sample at {own_rate} a second, got {np.shape(wave)} at {rate:g}")
        return np.ascontiguousarray(mono, dtype=np.float32)


# --- mel --------------------------------------------------------------------------------------------------------------


def mel_points(bands: int, low: float, high: float) -> Floats:
    """bands + 2 frequencies, equally spaced in mel: band i begins at point i, peaks at i + 1 and ends at i + 2."""
    return np.asarray(700 * np.expm1(np.linspace(np.log1p(low / 700), np.log1p(high / 700), bands + 2)))


def filterbank(rate: int, n_fft: int, points: Floats) -> Floats:
    """(n_fft / 2 + 1, bands) in float64: triangles over the frequencies, each band's weights summing to 1."""
    bins = (np.arange(n_fft // 2 + 1) * rate / n_fft)[:, None]
    begin, peak, end = points[:-2], points[1:-1], points[2:]
    triangles = np.maximum(0, np.minimum((bins - begin) / (peak - begin), (end - bins) / (end - peak)))
    sums = triangles.sum(axis=0)
    if not sums.all():
        empty = int(np.argmin(sums))
        raise ValueError(f"each band must hold at least one of the {len(bins)} frequencies of the transform, got {len(peak)} "
                         f"bands, and the one from {begin[empty]:.1f} to {end[empty]:.1f} Hz holds none; take fewer bands or a "
                         "larger n_fft")
    return np.asarray(triangles / sums)


# --- checks -----------------------------------------------------------------------------------------------------------


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or value < 1 or float(value) % 1 != 0:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    return int(value)


def _even(name: str, value: Any) -> int:
    if _whole(name, value) % 2:
        raise ValueError(f"{name} must be even, so that a window has a middle, got {value!r}")
    return int(value)


def _check(tensor: Any, name: str, axes: str, hint: str) -> None:
    """A batch of floats with the right number of axes, or one clear error."""
    if not torch.is_tensor(tensor) or not tensor.is_floating_point():
        what = tensor.dtype if torch.is_tensor(tensor) else type(tensor).__name__
        raise TypeError(f"{name} must be a torch tensor of floats, got {what}; make one with "
                        "torch.from_numpy(x.astype('float32')), for waves between -1 and 1")
    if tensor.ndim != axes.count(",") + 2:
        raise ValueError(f"{name} must be (n, {axes}), got shape {tuple(tensor.shape)}{hint}")


def _moments(frames: int, hop: int, rate: int) -> Floats:
    return np.arange(frames) * hop / rate


def _of_width(hertz: Floats, width: int) -> Floats:
    if width != len(hertz):
        raise ValueError(f"the last axis must have a place for each of {len(hertz)} frequencies, got {width}; ask with the "
                         "shape of what this layer gives")
    return hertz


def _mono(sound: NDArray[Any]) -> NDArray[Any]:
    """One channel of floats of the sound's own precision."""
    whole = sound.dtype.kind == "i" and sound.dtype.itemsize in (2, 4)
    if sound.dtype.kind != "f" and not whole:
        raise TypeError(f"a sound must be an array of floats, int16 or int32, got {sound.dtype}, whose loudest value is "
                        "unknown; pass float32 between -1 and 1")
    if sound.ndim not in (1, 2) or not sound.size or (sound.ndim == 2 and min(sound.shape) > _MOST_CHANNELS):
        raise ValueError(f"a sound must be (samples,) or have an axis of at most {_MOST_CHANNELS} channels, and not be empty, "
                         f"got shape {sound.shape}; pass one sound at a time")
    if not np.isfinite(sound).all():
        raise ValueError("a sound must be finite, got NaN or infinite samples; replace them first")
    scale = 2.0 ** (8 * sound.dtype.itemsize - 1) if whole else 1
    floats = (sound / scale).astype(np.float64 if sound.dtype.itemsize > 4 else np.float32)
    return floats if sound.ndim == 1 else np.asarray(floats.mean(axis=int(np.argmin(sound.shape))))
