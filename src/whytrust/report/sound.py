"""A gallery case that is a sound: its spectrograms as pictures with axes, and its waves as they are played."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats
from whytrust.pictures import colours, raster
from whytrust.pictures.overlays import BRIGHTEST
from whytrust.pictures.shown import figures

Pixels = NDArray[np.uint8]
QUIETEST, LOUDEST = 2.0, 99.8
"""Percentiles of both spectrograms together that are drawn white and black."""
WIDE, TALL = (100, 224), (60, 140)
"""Cells of a picture along time and along frequency, at the least and at the most."""
BROADEST, NARROWEST = 2.5, 1.25
"""Width over height of a picture: sounds of any length are drawn wider than tall."""
HALF = 0.5
"""The peak at which the change is played, about −6 dB."""
HERTZ = (50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000)
STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0)
CLOSEST = 0.12
"""How near to each other two marks of an axis may stand, as a share of its length."""


@dataclass(frozen=True)
class Sound:
    """What can be heard of a case, and which stretch of time and frequencies each cell of its spectrogram stands for."""

    labels: NDArray[Any]  # (T, F), part of each cell
    seconds: float | None
    hertz: Floats | None  # (F + 1,) edges of the bands
    moment: str | None  # where in a longer sound it lies
    rate: int | None
    clean: Floats | None  # (samples,)
    adversarial: Floats | None
    played: str | None = None  # what the model says of the wave after the attack, where it was given something else
    said: str | None = None  # what it says of what it was given

    @property
    def samples(self) -> int:
        """How many samples there are to hear; 0 where there is only a spectrogram."""
        return 0 if self.clean is None else len(self.clean)

    def marks(self) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
        """(place, words) along time and along frequency, places as shares from the left and from the bottom."""
        frames, bands = self.labels.shape
        time = [(0.0, "frame 1"), (1.0, f"{frames}")] if self.seconds is None else _seconds(self.seconds)
        if self.hertz is None:
            return time, [(0.0, "band 1"), (1.0, f"{bands}")] if bands > 1 else []
        edges = self.hertz
        places = [(float(np.interp(hz, edges, np.arange(bands + 1))) / bands, _hertz(hz)) for hz in HERTZ
                  if edges[0] <= hz <= edges[-1]]
        return time, _apart(places) or [(0.0, _hertz(edges[0])), (1.0, _hertz(edges[-1]))]


@dataclass(frozen=True)
class Waves:
    """Before, after and the change, as they are played; the change `times` louder than it is."""

    rate: int
    clean: Floats
    adversarial: Floats
    change: Floats
    times: float
    below: float  # dB that the change lies below the sound; infinite where there is nothing to compare


def sound(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Sound:
    """What a stored record says of its sound; refuses what does not fit together."""
    said, case = record["sound"], record.get("case")
    spectrogram = np.asarray(arrays["clean"])
    if spectrogram.ndim != 2:
        raise ValueError(f"a sound's spectrograms must be (frames, bands), got {spectrogram.shape} in case {case!r}; store one "
                         "channel as the model takes it")
    labels = np.asarray(arrays["labels"]) if "labels" in arrays else np.zeros(spectrogram.shape, dtype=np.int32)
    if labels.shape != spectrogram.shape:
        raise ValueError(f"labels must name the part of each cell: expected {spectrogram.shape}, got {labels.shape} in case "
                         f"{case!r}")
    hertz = None if said.get("hertz") is None else np.asarray(said["hertz"], dtype=np.float64)
    expected = spectrogram.shape[1] + 1
    if hertz is not None and (hertz.shape != (expected,) or not np.isfinite(hertz).all() or (np.diff(hertz) <= 0).any()):
        raise ValueError(f"hertz must be the {expected} rising edges of the {expected - 1} bands, got {hertz.shape} in case "
                         f"{case!r}; store null where they are not known")
    seconds = said.get("seconds")
    clean, adversarial = (np.nan_to_num(np.asarray(arrays[name], dtype=np.float64)) if name in arrays else None
                          for name in ("clean_wave", "adversarial_wave"))
    rate = said.get("rate")
    if clean is None or adversarial is None or not rate:
        clean = adversarial = None
    elif clean.ndim != 1 or clean.shape != adversarial.shape or not len(clean):
        raise ValueError(f"clean_wave and adversarial_wave must be (samples,) of one length, got {clean.shape} and "
                         f"{adversarial.shape} in case {case!r}; store the samples that the spectrograms stand for")
    moment = None if said.get("moment") is None else str(said["moment"])
    return Sound(labels, float(seconds) if seconds else None, hertz, moment, int(rate) if rate else None, clean, adversarial,
                 *(None if one is None else str(one) for one in (said.get("played"), record.get("label_name"))))


def spectrograms(clean: Floats, adversarial: Floats, labels: NDArray[Any]) -> tuple[Pixels, Pixels, Pixels, NDArray[Any], str]:
    """Before, after, the change, the part of each place, and how to read the change.

    Time runs to the right, low notes stand at the bottom. Before and after are on one scale, darker is louder; the change is
    blue where it is louder and orange where it is quieter. In near silence a change of the logarithm can be large and still be
    nothing that anybody hears.
    """
    first, second = (np.nan_to_num(np.asarray(a, dtype=np.float64).T[::-1]) for a in (clean, adversarial))
    up, down = _grain(labels)
    floor, ceiling = np.percentile(np.stack([first, second]), (QUIETEST, LOUDEST))
    scale = ceiling - floor if ceiling > floor else 1.0
    grey = [np.rint(255 * (1 - np.clip((raster.resize(a, (1, 1), down) - floor) / scale, 0, 1))).astype(np.uint8)
            for a in (first, second)]
    change, words = _change(raster.resize(second - first, (1, 1), down))
    return grey[0], grey[1], change, raster.resize(labels.T[::-1], up, down, mean=False), words


def waves(sound: Sound, most: int | None = None) -> Waves:
    """The waves as they are played, at no more than `most` samples a second.

    Where samples lie beyond ±1 all are made quieter alike, so that nothing is clipped and loudness still compares.
    """
    if sound.clean is None or sound.adversarial is None or sound.rate is None:
        raise ValueError("only a sound whose waves are stored can be played; look at sound.samples first")
    change, rate = sound.adversarial - sound.clean, sound.rate
    whole, energy = float((sound.clean ** 2).sum()), float((change ** 2).sum())
    below = 10 * math.log10(whole / energy) if whole and energy else math.inf
    three = [sound.clean, sound.adversarial, change]
    if most is not None and rate > most:
        three, rate = [_resampled(wave, rate, most) for wave in three], most
    loudest = max(1.0, *(float(np.abs(wave).max()) for wave in three))
    first, second, difference = (wave / loudest for wave in three)
    times = _louder(float(np.abs(difference).max()))
    return Waves(rate, first, second, difference * times, times, below)


def _louder(peak: float) -> float:
    """The factor, of two digits, that brings a peak to about −6 dB; never below 1."""
    return max(1.0, float(f"{HALF / peak:.1e}")) if peak else 1.0


def _resampled(wave: Floats, rate: int, to: int) -> Floats:
    from scipy.signal import resample_poly  # half a second to import, and only long sounds need it
    common = math.gcd(rate, to)
    return np.asarray(resample_poly(wave, to // common, rate // common))


def _grain(labels: NDArray[Any]) -> tuple[tuple[int, int], tuple[int, int]]:
    """(up, down) along (frequency, time): into a shape that can be looked at, without losing a part on the way."""
    frames, bands = labels.shape
    (wide, narrow), (tall, low) = raster.zoom(1, frames, *WIDE), raster.zoom(bands, 1, *TALL)
    every = len(np.unique(labels))
    while narrow * low > 1 and len(np.unique(raster.resize(labels, (1, 1), (narrow, low), mean=False))) < every:
        narrow, low = max(1, narrow - 1), max(1, low - 1)
    ratio = -(-frames // narrow) * wide / (-(-bands // low) * tall)
    if ratio < NARROWEST:
        wide *= math.ceil(NARROWEST / ratio)
    elif ratio > BROADEST:
        tall *= math.ceil(ratio / BROADEST)
    return (tall, wide), (low, narrow)


def _change(change: Floats) -> tuple[Pixels, str]:
    largest = float(np.abs(change).max(initial=0.0))
    if largest == 0:
        return np.full((*change.shape, 3), 255, dtype=np.uint8), "nothing changed"
    usual = float(np.percentile(np.abs(change), BRIGHTEST)) or largest
    power = 10.0 ** (math.floor(math.log10(usual)) - 1)
    full = math.ceil(usual / power - 1e-4) * power
    most = f", at most ±\u00a0{figures(float(f'{largest:.1e}'))}" if largest > 1.1 * full else ""
    return (colours.rgb(np.clip(change / full, -1, 1)),
            f"blue is louder, orange quieter; full colour: ±\u00a0{figures(full)} in log magnitude{most}")


def _seconds(length: float) -> list[tuple[float, str]]:
    step = next((s for s in STEPS if length / s <= 4.5), length)
    marks = range(int(length / step + 1e-9) + 1)
    return [(min(i * step / length, 1.0), f"{figures(i * step)} s" if i else "0") for i in marks]


def _hertz(value: float) -> str:
    return f"{figures(value / 1000)} kHz" if value >= 1000 else f"{figures(value)} Hz"


def _apart(places: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Those that leave room for their words, from the top down: low notes stand close together on no common scale."""
    out: list[tuple[float, str]] = []
    for place, words in reversed(places):
        if not out or out[-1][0] - place >= CLOSEST:
            out.append((place, words))
    return out[::-1]
