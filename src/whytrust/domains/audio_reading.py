"""Sounds as they come: files, arrays that must be checked, and the value that stands for silence."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import files, limits
from whytrust.core import Floats, need

SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".caf", ".w64")
FILLS = ("zero", "min", "mean")
_BLOCK = 1 << 22
"""Samples of all channels in memory at once while a file is read."""


def read(path: str | os.PathLike[str], rate: int | None = None) -> tuple[NDArray[np.float32], int]:
    """A sound file as one channel of float32 and its rate; channels are averaged, `rate` resamples."""
    soundfile = need("soundfile", "audio")
    if not Path(path).is_file():
        raise ValueError(f"a sound file must exist, got {os.fspath(path)!r}, which is no file; check the path")
    what = f"a sound file that libsndfile reads ({', '.join(SUFFIXES)})"
    with files.telling(path, what), files.hushed(), soundfile.SoundFile(os.fspath(path)) as file:
        own_rate = int(file.samplerate)
        _check_length(file.frames, file.channels)
        wave = np.concatenate([np.empty(0, dtype=np.float32), *_blocks(file)])
    if not len(wave):
        raise ValueError(f"a sound file must hold at least one sample, got {os.fspath(path)!r}, which is empty")
    if rate is not None and whole_rate(rate) != own_rate:
        resample = need("soxr", "audio").resample
        with files.telling(path, f"a sound that can be brought from {own_rate} to {rate} samples a second"):
            _check_length(len(wave) * whole_rate(rate) // own_rate)
            wave = resample(wave, own_rate, whole_rate(rate))
    return np.ascontiguousarray(wave, dtype=np.float32), int(own_rate if rate is None else rate)


def seconds(path: str | os.PathLike[str]) -> float:
    """How long a sound file says that it is; nothing of the sound is read."""
    soundfile = need("soundfile", "audio")
    with files.telling(path, f"a sound file that libsndfile reads ({', '.join(SUFFIXES)})"), files.hushed():
        found = soundfile.info(os.fspath(path))
        return float(found.frames / found.samplerate)


def _blocks(file: Any) -> Iterator[NDArray[np.float32]]:
    """One channel, piece by piece: what a file claims to hold may be far more than there is."""
    while len(samples := file.read(max(_BLOCK // file.channels, 1), dtype="float32", always_2d=True)):
        yield samples[:, 0].copy() if samples.shape[1] == 1 else samples.mean(axis=1)


def _check_length(frames: int, channels: int = 1) -> None:
    if frames * channels > limits.SAMPLES:
        raise ValueError(f"it must have at most {limits.SAMPLES:,} samples, got {frames:,} in each of {channels} channels; cut "
                         "it, or bring it to a lower rate")


def whole_rate(rate: Any) -> int:
    """Samples a second, or one clear error."""
    if isinstance(rate, bool) or not isinstance(rate, int | float | np.number) or float(rate) % 1 != 0 or rate < 1:
        raise ValueError(f"rate must be a whole number of samples a second, got {rate!r}")
    return int(rate)


def checked(sound: Any, rate: Any = None, units: bool = False) -> NDArray[Any]:
    """A copy of the samples or cells, or one clear error."""
    array = np.array(sound)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"a sound must be an array of real numbers, got {type(sound).__name__} of {array.dtype}")
    if array.ndim not in (1, 2) or not array.size:
        raise ValueError(f"a sound must be a waveform (samples,) or a spectrogram (frames, bands) that is not empty, "
                         f"got shape {array.shape}; pass one sound at a time")
    if array.ndim == 2 and (rate is not None or (not units and min(array.shape) <= 2 and max(array.shape) >= 1000)):
        raise ValueError(f"a waveform must be (samples,), got shape {array.shape}; {without_channels(array.shape)}; if it is a "
                         "spectrogram, leave rate out and pass hop_seconds instead")
    if array.ndim == 1 and array.dtype.kind == "u":
        raise TypeError(f"a waveform must be of signed numbers, got {array.dtype}, whose silence is unknown; "
                        "subtract its centre and pass float32")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"a sound must be finite, got {array[place]} at {place if len(place) > 1 else place[0]}; "
                         "replace such values first")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def as_heard(sound: Any, layout: str = "NT") -> NDArray[Any]:
    """A sound as (samples,) or (frames, bands), whole samples brought to −1 to 1 as those of a file are.

    `layout` says how it comes: with an axis of one channel (C), or with bands first (FT).
    """
    array = np.asarray(sound.detach().cpu() if hasattr(sound, "detach") else sound)
    if layout in ("NCT", "NCTF", "NCFT") and array.ndim == len(layout) - 1 and array.shape[0] == 1:
        array = array[0]
    if "FT" in layout and array.ndim == 2:
        array = np.ascontiguousarray(array.T)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        return array
    if array.dtype.kind == "u" and array.dtype.itemsize == 1:
        return np.asarray((array.astype(np.float32) - 128) / 128)  # as 8-bit files have it
    if array.dtype.kind == "u":
        return array  # which is refused: its silence is unknown
    if array.dtype.itemsize > 4:
        raise TypeError(f"whole samples must be int8, int16 or int32, whose loudest value is known, got {array.dtype}; pass "
                        "float32 between -1 and 1")
    return np.asarray(array / 2.0 ** (8 * array.dtype.itemsize - 1), dtype=np.float32)


def fitting(other: Any, sound: NDArray[Any]) -> NDArray[Any]:
    """Another sound that can be laid over this one, or one clear error."""
    shape = np.shape(other)
    if shape != sound.shape:
        kind = "samples" if sound.ndim == 1 else "frames and bands"
        raise ValueError(f"the other sound must have this one's shape, {sound.shape}, got {shape}; pass one with as many "
                         f"{kind}")
    return checked(other, units=True)


def without_channels(shape: tuple[int, ...]) -> str:
    """What to do with a sound whose array has an axis for channels; of one, only the user knows if the model wants the axis."""
    axis = int(np.argmin(shape))
    alone, back = ("x[:, 0]", "preprocess=lambda waves: waves[..., None]") if axis else ("x[0]", "layout='NCT'")
    return f"average the channels, x.mean(axis={axis})" if shape[axis] > 1 else (
        f"pass {alone}, and where the model wants the axis of one channel, wt.model(…, {back})")


def level(fill: Any, values: NDArray[Any], dtype: np.dtype[Any]) -> float:
    """The value of a hidden place: a statistic of all values, or the number itself, as `dtype` can hold it."""
    if isinstance(fill, str):
        if fill not in FILLS:
            raise ValueError(f"fill must be {', '.join(FILLS)} or a number, got {fill!r}")
        found = {"zero": 0.0, "min": float(values.min()), "mean": float(values.mean(dtype=np.float64))}[fill]
    elif isinstance(fill, int | float | np.number) and not isinstance(fill, bool) and math.isfinite(fill):
        found = float(fill)
    else:
        raise TypeError(f"fill must be {', '.join(FILLS)} or a finite number, got {fill!r}")
    limits: Any = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    if not limits.min <= found <= limits.max:
        raise ValueError(f"fill must be a number that {dtype}, the type of the sound, can hold, got {fill!r}")
    return round(found) if dtype.kind in "iu" else found


def as_type(waves: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Samples as numbers of another type; whole numbers are clipped at its ends rather than wrapped around."""
    if dtype.kind == "f":
        return waves.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(waves), limits.min, np.nextafter(float(limits.max) + 1, 0)).astype(dtype)
