"""A sound cut into stretches of time, bands of frequency, or both; hidden parts fall silent or take a constant.

A sound is a waveform (samples) or an excerpt of a spectrogram (frames × bands). Hiding a stretch of samples leaves a click at
its edges, and hiding a band leaves what the window leaked into its neighbours: a model may hear either.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress, pairwise, product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Masks, check_masks, need, pool_labels
from whytrust.domains.spectra import Change, Labels, cell_of_frame, part_change, playable, shown, stft, window_length
from whytrust.views import SoundView

SUFFIXES = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".aifc", ".au", ".caf", ".w64")
FILLS = ("zero", "min", "mean")
_SHOWN_BANDS = 128


# --- reading ----------------------------------------------------------------------------------------------------------


def read(path: str | os.PathLike[str], rate: int | None = None) -> tuple[NDArray[np.float32], int]:
    """A sound file as one channel of float32 and its rate; channels are averaged, `rate` resamples."""
    soundfile = need("soundfile", "audio")
    if not Path(path).is_file():
        raise ValueError(f"a sound file must exist, got {os.fspath(path)!r}, which is no file; check the path")
    try:
        samples, own_rate = soundfile.read(os.fspath(path), dtype="float32", always_2d=True)
    except soundfile.SoundFileError as error:
        raise ValueError(f"{os.fspath(path)!r} must be a sound file that libsndfile reads ({', '.join(SUFFIXES)}), "
                         f"got an unreadable one ({error})") from error
    wave = samples[:, 0] if samples.shape[1] == 1 else samples.mean(axis=1)
    if rate is not None and _whole_rate(rate) != own_rate:
        wave = need("soxr", "audio").resample(wave, own_rate, _whole_rate(rate))
    if not len(wave):
        raise ValueError(f"a sound file must hold at least one sample, got {os.fspath(path)!r}, which is empty")
    return np.ascontiguousarray(wave, dtype=np.float32), int(own_rate if rate is None else rate)


def _whole_rate(rate: Any) -> int:
    if isinstance(rate, bool) or not isinstance(rate, int | float | np.number) or float(rate) % 1 != 0 or rate < 1:
        raise ValueError(f"rate must be a whole number of samples a second, got {rate!r}")
    return int(rate)


# --- the grid ---------------------------------------------------------------------------------------------------------


def parse_grid(grid: str) -> tuple[int, int]:
    """How many cells in time and in frequency does "time:16", "freq:4" or "tf:5x4" ask for?"""
    found = re.fullmatch(r"(?:time:(\d+)|freq:(\d+)|tf:(\d+)[x×](\d+))", grid) if isinstance(grid, str) else None
    if found is None or not all(int(n) for n in found.groups() if n):
        raise ValueError(f"parts of a sound must be 'time:16', 'freq:4' or 'tf:5x4' with counts of at least 1, got {grid!r}")
    return int(found[1] or found[3] or 1), int(found[2] or found[4] or 1)


def _edges(length: int, cells: int, of: str) -> Labels:
    """cells + 1 boundaries at multiples of length // cells; the remainder joins the last cell."""
    if length < cells:
        raise ValueError(f"a sound must have at least one of its {of} in each cell: expected at least {cells}, got {length}; "
                         "ask for fewer parts or pass a longer sound")
    edges = np.arange(cells + 1, dtype=np.intp) * (length // cells)
    edges[-1] = length
    return edges


def _spread(edges: Labels) -> Labels:
    """The cell of each place between the first edge and the last."""
    return np.repeat(np.arange(len(edges) - 1), np.diff(edges))


def _ranges(edges: Sequence[float] | NDArray[Any], unit: str, decimals: int = 0) -> list[str]:
    """"0.00–0.25 s", …: with enough decimals to tell the edges apart."""
    finest = min(float(b) - float(a) for a, b in pairwise(edges))
    decimals = max(decimals, 1 + math.ceil(-math.log10(finest)))
    return [f"{a:.{decimals}f}–{b:.{decimals}f} {unit}" for a, b in pairwise(edges)]


def _counted(edges: Labels, unit: str) -> list[str]:
    """"frames 0–22", …: first and last, for places whose extent in the world is unknown."""
    return [f"{unit} {a}–{b - 1}" for a, b in pairwise(edges)]


def _crossed(times: list[str], bands: list[str]) -> tuple[str, ...]:
    """Names of the cells, time first; an axis with one cell is not mentioned unless it is the only one."""
    if len(bands) == 1:
        return tuple(times)
    return tuple(bands) if len(times) == 1 else tuple(f"{t}, {b}" for t in times for b in bands)


def band_edges(bands: int, rate: int | None) -> Floats:
    """Boundaries from 0 to the highest frequency, equally wide in mel (1127 ln(1 + f / 700)).

    Without a rate they are fractions of the highest frequency and equally wide, since mel needs Hz.
    """
    if rate is None:
        return np.linspace(0, 1, bands + 1)
    return np.asarray(700 * np.expm1(np.linspace(0, np.log1p(rate / 1400), bands + 1)))


# --- parts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AudioParts:
    """Which moments, or which frequencies at which moments, does the model's score of this sound depend on?

    A waveform cut in frequency is hidden in its short-time Fourier transform, phase kept. Cells are wide beside most sounds:
    a part speaks for everything in it, and a note on an edge belongs to two parts.
    """

    domain: ClassVar[str] = "audio"
    deterministic: ClassVar[bool] = True
    sound: NDArray[Any]
    names: tuple[str, ...]
    labels: Labels = field(repr=False)  # the part of each sample, each (frame, band), or each (frame, bin) of a transform
    grid: tuple[int, int]
    fill: float  # the value of a hidden sample or cell; a magnitude where a waveform is cut in frequency
    rate: int | None = None
    hop_seconds: float | None = None
    top_hz: float | None = None
    changes: tuple[Change, ...] | None = field(default=None, repr=False)

    @classmethod
    def cut(cls, sound: Any, grid: str = "time:16", fill: str | float | None = None, rate: int | None = None,
            hop_seconds: float | None = None, band_edges_hz: Sequence[float] | None = None) -> AudioParts:
        """Cut a waveform or a spectrogram (frames × bands) as "time:16", "freq:4" or "tf:5x4" says.

        Hidden parts are "zero", "min" or "mean" of the sound, or a number; by default a waveform is silent there and a
        spectrogram takes its mean (Praher et al. 2021). `rate`, or `hop_seconds` and `band_edges_hz`, give names their units.
        """
        cells = parse_grid(grid)
        units = hop_seconds is not None or band_edges_hz is not None
        samples = _checked(sound, rate, units)
        if samples.ndim == 2:
            return cls._excerpt(samples, cells, "mean" if fill is None else fill, hop_seconds, band_edges_hz)
        if units:
            raise ValueError("hop_seconds and band_edges_hz must come with a spectrogram (frames × bands), got a waveform; "
                             "pass rate to give a waveform its units")
        whole = None if rate is None else _whole_rate(rate)
        make = cls._stretches if grid.startswith("time") else cls._filtered
        return make(samples, cells, "zero" if fill is None else fill, whole)

    @classmethod
    def _excerpt(cls, cells: NDArray[Any], grid: tuple[int, int], fill: Any, hop_seconds: float | None,
                 band_edges_hz: Sequence[float] | None) -> AudioParts:
        frames, bands = _edges(cells.shape[0], grid[0], "frames"), _edges(cells.shape[1], grid[1], "bands")
        hz = None if band_edges_hz is None else _checked_hz(band_edges_hz, cells.shape[1])
        if hop_seconds is not None and not (math.isfinite(hop_seconds) and hop_seconds > 0):
            raise ValueError(f"hop_seconds must be the time from one frame to the next, above 0, got {hop_seconds!r}")
        times = _counted(frames, "frames") if hop_seconds is None else _ranges(frames * hop_seconds, "s", 2)
        ranges = _counted(bands, "bands") if hz is None else _ranges(hz[bands], "Hz")
        labels = _spread(frames)[:, None] * grid[1] + _spread(bands)
        return cls(cells, _crossed(times, ranges), labels, grid, _level(fill, cells, cells.dtype),
                   hop_seconds=hop_seconds, top_hz=None if hz is None else float(hz[-1]))

    @classmethod
    def _stretches(cls, wave: NDArray[Any], grid: tuple[int, int], fill: Any, rate: int | None) -> AudioParts:
        edges = _edges(len(wave), grid[0], "samples")
        return cls(wave, _crossed(_times(edges, rate), [""]), _spread(edges), grid, _level(fill, wave, wave.dtype),
                   rate, top_hz=None if rate is None else rate / 2)

    @classmethod
    def _filtered(cls, wave: NDArray[Any], grid: tuple[int, int], fill: Any, rate: int | None) -> AudioParts:
        edges = _edges(len(wave), grid[0], "samples")
        window = window_length(len(wave) // grid[0])
        spectrum = stft(wave.astype(np.float64), window)
        bounds = band_edges(grid[1], rate)
        hz = np.arange(window // 2 + 1) * (bounds[-1] / (window // 2))
        band_of_bin = np.minimum(np.searchsorted(bounds[1:], hz, side="right"), grid[1] - 1)
        if len(np.unique(band_of_bin)) < grid[1]:
            raise ValueError(f"each band must hold at least one of the transform's {len(hz)} frequencies, got {grid[1]} bands; "
                             "ask for fewer bands, fewer stretches of time, or pass a longer sound")
        stretch_of_frame = cell_of_frame(len(spectrum), window, edges)
        magnitude = np.abs(spectrum)
        level = _level(fill, magnitude, magnitude.dtype)
        if level < 0:
            raise ValueError(f"fill must be a magnitude of at least 0 where a waveform is cut in frequency, got {fill!r}")
        # The phase of a silent cell is taken as 0.
        phase = np.divide(spectrum, magnitude, out=np.ones_like(spectrum), where=magnitude > 0)
        change = level * phase - spectrum
        changes = tuple(part_change(change, stretch_of_frame == t, band_of_bin == f, window, len(wave))
                        for t in range(grid[0]) for f in range(grid[1]))
        bands = _ranges(100 * bounds, "% of the highest frequency") if rate is None else _ranges(bounds, "Hz")
        return cls(wave, _crossed(_times(edges, rate), bands), stretch_of_frame[:, None] * grid[1] + band_of_bin, grid, level,
                   rate, top_hz=None if rate is None else rate / 2, changes=changes)

    def compose(self, masks: Masks, rng: np.random.Generator) -> NDArray[Any]:
        """(n, d) masks -> n sounds of the input's shape and type."""
        masks = check_masks(masks, len(self.names))
        if self.changes is None:
            sounds = np.repeat(self.sound[None], len(masks), axis=0)
            for part, cell in enumerate(self._cells):
                hidden: tuple[Any, ...] = (~masks[:, part], *cell)
                sounds[hidden] = self.fill
            return sounds
        waves = np.repeat(self.sound[None].astype(np.float64), len(masks), axis=0)
        # Part by part in a fixed order: a sound does not depend on the others of its batch, nor its bits on their number.
        for wave, mask in zip(waves, masks, strict=True):
            for first, change in compress(self.changes, ~mask):
                wave[first:first + len(change)] += change
        out = _as_type(waves, self.sound.dtype)
        out[masks.all(axis=1)] = self.sound  # a 64-bit integer may not survive the way through float
        return out

    @cached_property
    def _cells(self) -> list[tuple[slice, ...]]:
        """Where each part lies in the input."""
        axes = [[slice(a, b) for a, b in pairwise(_edges(length, cells, "places"))]
                for length, cells in zip(self.sound.shape, self.grid, strict=False)]  # a waveform has no second axis
        return list(product(*axes))

    def pool(self, map: Floats, how: str) -> Floats:
        """A map shaped like `labels` -> one number a part; `how` is mean, mean_abs or mean_pos.

        That is the input's shape, or frames × bins of the transform where a waveform is cut in frequency: a map over samples
        does not say which frequency it speaks of.
        """
        shape = np.shape(map)
        if self.changes is not None and shape == self.sound.shape:
            raise ValueError(f"the map must tell frequencies apart: expected (frames, bins) = {self.labels.shape}, got one "
                             "number a sample; cut the waveform in time only, or explain a spectrogram")
        return pool_labels(map, self.labels, len(self.names), how)

    def pool_at(self, map: Floats, seconds: Floats, hertz: Floats, how: str) -> Floats:
        """A map over frames × bands of any other time-frequency grid, such as a net's front end -> one number a part.

        Frame i lies at seconds[i] and band j at hertz[j]; a cell of the map belongs to the part of a waveform that holds its
        middle, or to the nearest where that lies beyond the sound. `how` as for `core.pool_labels`. A part hears what the map's
        windows leaked into it from its neighbours.
        """
        values = np.asarray(map, dtype=np.float64)
        moments, frequencies = _places(seconds, "seconds"), _places(hertz, "hertz")
        if values.shape[:2] != (len(moments), len(frequencies)):
            raise ValueError(f"the map must have a row for each of the seconds and a column for each of the hertz: expected "
                             f"{(len(moments), len(frequencies))}, got {values.shape}")
        stretch, band = self._cells_at(moments, frequencies)
        self._check_none_empty(stretch, band, moments, frequencies)
        return pool_labels(values, stretch[:, None] * self.grid[1] + band, len(self.names), how)

    def _cells_at(self, seconds: Floats, hertz: Floats) -> tuple[Labels, Labels]:
        """The stretch of time that each moment lies in, and the band of each frequency."""
        if self.sound.ndim == 2:
            raise ValueError("a map with seconds and hertz of its own must be of a waveform, got a spectrogram "
                             f"{self.sound.shape}; pool a map of its own shape")
        if self.rate is None and self.grid != (1, 1):
            raise ValueError("rate must be known to find a map's seconds and hertz in a waveform, got None; cut the sound with "
                             "rate=…")
        rate = self.rate or 1  # of one part, nothing depends on it
        edges = _edges(len(self.sound), self.grid[0], "samples") / rate
        return (np.searchsorted(edges[1:-1], seconds, side="right"),
                np.searchsorted(band_edges(self.grid[1], rate)[1:-1], hertz, side="right"))

    def _check_none_empty(self, stretch: Labels, band: Labels, seconds: Floats, hertz: Floats) -> None:
        held = np.zeros(self.grid, dtype=bool)
        held[np.ix_(stretch, band)] = True
        if not held.all():
            empty = self.names[int(np.argmin(held))]
            raise ValueError(f"each part must hold the middle of at least one cell of the map, and {empty!r} holds none: the "
                             f"parts, {self.grid[0]} in time by {self.grid[1]} in frequency, are too fine for {len(seconds)} "
                             f"frames{_reach(seconds, 's')} and {len(hertz)} bands{_reach(hertz, 'Hz')}; ask for fewer parts")

    @cached_property
    def view(self) -> SoundView:
        """A spectrogram with the part of each of its cells, and the sound itself where there is one."""
        if self.sound.ndim == 2:
            seconds = None if self.hop_seconds is None else len(self.sound) * self.hop_seconds
            labels = self.labels.astype(np.int32)
            return SoundView(self.sound.astype(np.float32), labels, seconds, self.top_hz, None, None, None)
        # A multiple of the parts' bands: then every edge of a part is an edge of the picture too.
        shown_bands = self.grid[1] * max(1, _SHOWN_BANDS // self.grid[1])
        length, bounds = len(self.sound), band_edges(shown_bands, self.rate)
        picture, centres = shown(self.sound.astype(np.float64), bounds, self.grid[0])
        cell = _spread(_edges(length, self.grid[0], "samples"))[centres]
        band = np.searchsorted(band_edges(self.grid[1], self.rate)[1:-1], (bounds[1:] + bounds[:-1]) / 2, side="right")
        labels = (cell[:, None] * self.grid[1] + band).astype(np.int32)
        return SoundView(picture, labels, None if self.rate is None else length / self.rate, self.top_hz, playable(self.sound),
                         self.rate, self.labels.astype(np.int32) if self.changes is None else None)


# --- checks and values ------------------------------------------------------------------------------------------------


def _checked(sound: Any, rate: Any, units: bool) -> NDArray[Any]:
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


def without_channels(shape: tuple[int, ...]) -> str:
    """What to do with a sound whose array has an axis for channels; of one, only the user knows if the model wants the axis."""
    axis = int(np.argmin(shape))
    alone, back = ("x[:, 0]", "waves[..., None]") if axis else ("x[0]", "waves[:, None]")
    return f"average the channels, x.mean(axis={axis})" if shape[axis] > 1 else (
        f"pass {alone}, and where the model wants the axis of one channel, wt.model(…, preprocess=lambda waves: {back})")


def _checked_hz(edges: Sequence[float], bands: int) -> Floats:
    hz = np.asarray(edges, dtype=np.float64)
    if hz.shape != (bands + 1,) or not np.isfinite(hz).all() or not (np.diff(hz) > 0).all():
        raise ValueError(f"band_edges_hz must be {bands + 1} rising frequencies for {bands} bands, got shape {hz.shape}")
    return hz


def _places(values: Any, name: str) -> Floats:
    places = np.asarray(values, dtype=np.float64)
    if places.ndim != 1 or not np.isfinite(places).all():
        raise ValueError(f"{name} must be one finite number for each place of the map's axis, got shape {places.shape}"
                         f"{'' if np.isfinite(places).all() else ' with NaN or infinite values'}")
    return places


def _reach(places: Floats, unit: str) -> str:
    return f" ({places.min():.4g}–{places.max():.4g} {unit})" if len(places) else ""


def _level(fill: Any, values: NDArray[Any], dtype: np.dtype[Any]) -> float:
    """The value of a hidden place: a statistic of all values, or the number itself, as `dtype` can hold it."""
    if isinstance(fill, str):
        if fill not in FILLS:
            raise ValueError(f"fill must be {', '.join(FILLS)} or a number, got {fill!r}")
        level = {"zero": 0.0, "min": float(values.min()), "mean": float(values.mean(dtype=np.float64))}[fill]
    elif isinstance(fill, int | float | np.number) and not isinstance(fill, bool) and math.isfinite(fill):
        level = float(fill)
    else:
        raise TypeError(f"fill must be {', '.join(FILLS)} or a finite number, got {fill!r}")
    limits: Any = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    if not limits.min <= level <= limits.max:
        raise ValueError(f"fill must be a number that {dtype}, the type of the sound, can hold, got {fill!r}")
    return round(level) if dtype.kind in "iu" else level


def _as_type(waves: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "f":
        return waves.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.rint(waves), limits.min, np.nextafter(float(limits.max) + 1, 0)).astype(dtype)


def _times(edges: Labels, rate: int | None) -> list[str]:
    return _counted(edges, "samples") if rate is None else _ranges(edges / rate, "s", 2)
