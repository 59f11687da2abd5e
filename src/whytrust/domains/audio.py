"""A sound cut into stretches of time, bands of frequency, both, super-pixels, or the user's own label array.

A sound is a waveform (samples) or an excerpt of a spectrogram (frames × bands). Hidden parts fall silent or take a constant.
Hiding a stretch of samples leaves a click at its edges, and hiding a band leaves what the window leaked into its neighbours: a
model may hear either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Masks, check_baseline, check_masks, pool_labels, runs
from whytrust.domains.audio_chart import Axis, Chart, checked_hz, checked_labels, edges, even_edges, names, time_axis
from whytrust.domains.audio_chart import band_edges as band_edges
from whytrust.domains.audio_chart import parse_grid as parse_grid
from whytrust.domains.audio_reading import FILLS as FILLS
from whytrust.domains.audio_reading import SUFFIXES as SUFFIXES
from whytrust.domains.audio_reading import as_heard as as_heard
from whytrust.domains.audio_reading import as_type, checked, fitting, level, whole_rate
from whytrust.domains.audio_reading import read as read
from whytrust.domains.audio_reading import seconds as seconds
from whytrust.domains.audio_reading import without_channels as without_channels
from whytrust.domains.audio_segments import asked, bin_heights, of_wave, superpixels
from whytrust.domains.dials import Loudness
from whytrust.domains.spectra import Change, Labels, add_up, middles, part_change, playable, shown, stft, window_length
from whytrust.views import SoundView

_SHOWN_BANDS = 128
_MOST_SHOWN_FRAMES = 2000


@dataclass(frozen=True, eq=False)
class AudioParts:
    """Which moments, or which frequencies at which moments, does the model's score of this sound depend on?

    A waveform cut in frequency is hidden in its short-time Fourier transform, phase kept. Parts are wide beside most sounds:
    one speaks for everything in it, and a note on an edge belongs to two. Super-pixels follow what is loud: their edges move
    with the sound, so compare sounds over one cut (`like`), and a quiet note joins its neighbours.
    """

    domain: ClassVar[str] = "audio"
    deterministic: ClassVar[bool] = True
    sound: NDArray[Any]
    names: tuple[str, ...]
    labels: Labels = field(repr=False)  # the part of each sample, each (frame, band), or each (frame, bin) of a transform
    chart: Chart = field(repr=False)
    rule: str | float  # how places are hidden, as it was asked for
    fill: float  # the value of a hidden sample or cell; a magnitude where a waveform is cut in frequency
    rate: int | None = None
    hop_seconds: float | None = None
    top_hz: float | None = None
    window: int | None = None  # of the transform in which a waveform is cut; None where samples or cells are replaced
    below: NDArray[Any] | None = field(default=None, repr=False)  # another sound, which shows where a part is hidden
    notes: tuple[str, ...] = ()  # what a reader must know of the cut

    @classmethod
    def cut(cls, sound: Any, grid: str | NDArray[Any] = "time:16", fill: str | float | None = None, rate: int | None = None,
            hop_seconds: float | None = None, band_edges_hz: Sequence[float] | None = None) -> AudioParts:
        """Cut a waveform or a spectrogram (frames × bands) as "time:16", "freq:4", "tf:5x4", "slic:20" or labels say.

        Labels are whole numbers, one for each (frame, band) of a spectrogram or each sample of a waveform; of a waveform they
        may also be stretches × bands, with stretches equally long and bands as `band_edges` has them, low ones first. Hidden
        parts are "zero", "min" or "mean" of the sound, or a number; by default a waveform is silent there and a spectrogram
        takes its mean (Praher et al. 2021). `rate`, or `hop_seconds` and `band_edges_hz`, give names their units.
        """
        if isinstance(grid, str) and asked(grid) is None:
            parse_grid(grid)  # before anything is said about the sound
        units = hop_seconds is not None or band_edges_hz is not None
        samples = checked(sound, rate, units)
        if samples.ndim == 2:
            return cls._excerpt(samples, grid, "mean" if fill is None else fill, hop_seconds, band_edges_hz)
        if units:
            raise ValueError("hop_seconds and band_edges_hz must come with a spectrogram (frames × bands), got a waveform; "
                             "pass rate to give a waveform its units")
        return cls._wave(samples, grid, "zero" if fill is None else fill, None if rate is None else whole_rate(rate))

    @classmethod
    def _excerpt(cls, cells: NDArray[Any], grid: str | NDArray[Any], fill: Any, hop_seconds: float | None,
                 band_edges_hz: Sequence[float] | None) -> AudioParts:
        hz = None if band_edges_hz is None else checked_hz(band_edges_hz, cells.shape[1])
        if hop_seconds is not None and not (math.isfinite(hop_seconds) and hop_seconds > 0):
            raise ValueError(f"hop_seconds must be the time from one frame to the next, above 0, got {hop_seconds!r}")
        frames, bands = (np.arange(n + 1, dtype=np.intp) for n in cells.shape)
        wanted = asked(grid)
        if not isinstance(grid, str):
            chart = Chart(checked_labels(grid, cells), frames, bands)
        elif wanted is not None:
            chart = Chart(superpixels(cells, wanted), frames, bands)
        else:
            counts = parse_grid(grid)
            chart = Chart.grid(edges(cells.shape[0], counts[0], "frames"), edges(cells.shape[1], counts[1], "bands"))
        times = Axis(chart.edges, "frames") if hop_seconds is None else Axis(chart.edges * hop_seconds, "s", 2)
        heights = Axis(chart.bounds, "bands") if hz is None else Axis(hz[chart.bounds], "Hz", 0)
        return cls(cells, names(chart, times, heights), chart.at(frames[:-1], bands[:-1]), chart, fill,
                   level(fill, cells, cells.dtype), hop_seconds=hop_seconds, top_hz=None if hz is None else float(hz[-1]),
                   notes=_few(grid, chart.d))

    @classmethod
    def _wave(cls, wave: NDArray[Any], grid: str | NDArray[Any], fill: Any, rate: int | None) -> AudioParts:
        chart, window = _charted(wave, grid, rate)
        bands = (Axis(100 * chart.bounds, "% of the highest frequency", 0) if rate is None else Axis(chart.bounds, "Hz", 0))
        called = names(chart, time_axis(chart.edges, rate, "samples"), bands)
        if window is None:
            labels = np.repeat(chart.cells[:, 0], np.diff(chart.edges))
        else:
            moments = middles(-(-len(wave) // (window // 4)) + 3, window)
            labels = chart.at(moments, bin_heights(window, chart.bounds))
            held = np.bincount(labels.ravel(), minlength=chart.d)
            if not held.all():
                empty = called[int(np.argmin(held))]
                raise ValueError(f"each part must hold one of the {window // 2 + 1} frequencies of one of the transform's "
                                 f"{len(labels)} frames, and {empty!r} holds none; ask for fewer parts, fewer bands, or pass a "
                                 "longer sound")
        return cls(wave, called, labels, chart, fill, _hidden_level(wave, fill, window), rate,
                   top_hz=None if rate is None else rate / 2, window=window, notes=_few(grid, chart.d))

    @property
    def grid(self) -> tuple[int, int]:
        """How many stretches of time and bands of frequency the parts are drawn with."""
        return self.chart.cells.shape[0], self.chart.cells.shape[1]

    def compose(self, masks: Masks, rng: np.random.Generator) -> NDArray[Any]:
        """(n, d) masks -> n sounds of the input's shape and type."""
        masks = check_masks(masks, len(self.names))
        if self.changes is None:
            owners, lengths = self._runs
            shows = np.repeat(masks.take(owners, axis=1), lengths, axis=1).reshape(len(masks), *self.sound.shape)
            return np.where(shows, self.sound, self.sound.dtype.type(self.fill) if self.below is None else self.below)
        start, added = (self.sound, ~masks) if self.below is None else (self.below, masks)
        out = as_type(add_up(start, self.changes, added), self.sound.dtype)
        out[masks.all(axis=1)] = self.sound  # a 64-bit integer may not survive the way through float
        if self.below is not None:
            out[~masks.any(axis=1)] = self.below
        return out

    def like(self, other: Any) -> AudioParts:
        """Another sound of this shape, cut where this one is; a statistic as fill ("mean", "min") is taken anew from it."""
        sound = fitting(other, self.sound)
        return replace(self, sound=sound, fill=_hidden_level(sound, self.rule, self.window), notes=())

    def near(self, radius: float, rng: np.random.Generator) -> AudioParts:
        """This sound with noise of up to `radius` of its range, cut where it is."""
        noise = radius * float(np.ptp(self.sound.astype(np.float64))) * rng.uniform(-1, 1, self.sound.shape)
        return self.like(as_type(self.sound + noise, self.sound.dtype))

    def filled(self, fill: str | float) -> AudioParts:
        """The same sound and cut, with parts hidden in another way: "zero", "min", "mean" or a number."""
        return replace(self, rule=fill, fill=_hidden_level(self.sound, fill, self.window))

    @property
    def baselines(self) -> tuple[str, ...]:
        """What parts can be hidden behind."""
        return ("zeros", "mean", "min", "noise")

    def behind(self, baseline: str, rng: np.random.Generator) -> AudioParts:
        """The same cut, hidden behind that; noise has the sound's mean and spread, and is drawn once."""
        check_baseline(baseline, self.baselines)
        if baseline != "noise":
            return self.filled(baseline.removesuffix("s"))
        values = self.sound.astype(np.float64)
        return self.over(as_type(values.mean() + values.std() * rng.standard_normal(values.shape), self.sound.dtype))

    def over(self, below: Any) -> AudioParts:
        """This sound with another of its shape sounding where parts are hidden.

        Samples and cells are replaced. Of a waveform cut in frequency, the change of a part (the difference of the two
        transforms there) is added to the sound below; it rings on over a window's length into the neighbours.
        """
        lower = fitting(below, self.sound)
        exact = np.result_type(self.sound, lower)
        return replace(self, sound=self.sound.astype(exact, copy=False), below=lower.astype(exact, copy=False))

    def squared_change(self, since: Any) -> Floats:
        """Squared differences, shaped like `labels`: of samples or cells, or of the transform where frequencies are cut.

        There a change of one part alone is found to some extent in its neighbours too, since windows overlap.
        """
        change = self.sound.astype(np.float64) - fitting(since, self.sound)
        return np.asarray(change ** 2 if self.window is None else np.abs(stft(change, self.window)) ** 2)

    @cached_property
    def changes(self) -> tuple[Change, ...] | None:
        """What hiding each part adds to a waveform cut in frequency, or showing it to the one below; None elsewhere."""
        if self.window is None:
            return None
        wave = self.sound.astype(np.float64)
        if self.below is not None:
            change = stft(wave - self.below, self.window)
        else:
            spectrum = stft(wave, self.window)
            magnitude = np.abs(spectrum)
            # The phase of a silent cell is taken as 0.
            phase = np.divide(spectrum, magnitude, out=np.ones_like(spectrum), where=magnitude > 0)
            change = self.fill * phase - spectrum
        return tuple(part_change(change, self.labels == part, self.window, len(wave)) for part in range(len(self.names)))

    @cached_property
    def dials(self) -> Loudness | None:
        """What gradients of a waveform cut in frequency are taken of; samples do not say which frequency they speak of."""
        if self.window is None:
            return None
        return Loudness(self.sound.astype(np.float64), self.labels, len(self.names), self.window)

    @cached_property
    def _runs(self) -> tuple[Labels, Labels]:
        """Stretches of samples, or of cells as they lie in memory, that belong to one part: which, and how long."""
        flat = self.labels.ravel()
        starts, lengths = runs(flat)
        return flat[starts], lengths

    def pool(self, map: Floats, how: str) -> Floats:
        """A map shaped like `labels` -> one number a part; `how` is mean, mean_abs or mean_pos.

        That is the input's shape, or frames × bins of the transform where a waveform is cut in frequency: a map over samples
        does not say which frequency it speaks of; `dials` turns its gradient into one that does.
        """
        shape = np.shape(map)
        if self.window is not None and shape == self.sound.shape:
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
        if self.sound.ndim == 2:
            raise ValueError("a map with seconds and hertz of its own must be of a waveform, got a spectrogram "
                             f"{self.sound.shape}; pool a map of its own shape")
        if self.rate is None and len(self.names) > 1:
            raise ValueError("rate must be known to find a map's seconds and hertz in a waveform, got None; cut the sound with "
                             "rate=…")
        labels = self.chart.at(moments, frequencies, self.rate or 1)  # of one part, nothing depends on the rate
        self._check_none_empty(labels, moments, frequencies)
        return pool_labels(values, labels, len(self.names), how)

    def _check_none_empty(self, labels: Labels, seconds: Floats, hertz: Floats) -> None:
        held = np.bincount(labels.ravel(), minlength=len(self.names))
        if not held.all():
            several = f", {self.grid[0]} in time by {self.grid[1]} in frequency," if self.chart.is_grid else ""
            empty = self.names[int(np.argmin(held))]
            raise ValueError(f"each part must hold the middle of at least one cell of the map, and {empty!r} holds none: the "
                             f"parts{several} are too fine for {len(seconds)} frames{_reach(seconds, 's')} and {len(hertz)} "
                             f"bands{_reach(hertz, 'Hz')}; ask for fewer parts")

    @cached_property
    def view(self) -> SoundView:
        """A spectrogram with the part of each of its cells, and the sound itself where there is one."""
        if self.sound.ndim == 2:
            seconds = None if self.hop_seconds is None else len(self.sound) * self.hop_seconds
            labels = self.labels.astype(np.int32)
            return SoundView(self.sound.astype(np.float32), labels, seconds, self.top_hz, None, None, None)
        # A multiple of the parts' bands: then every edge of a part is an edge of the picture too.
        stretches, bands = self.grid
        bounds = band_edges(bands * max(1, _SHOWN_BANDS // bands), self.rate)
        stretches = stretches if self.chart.is_grid else min(stretches, _MOST_SHOWN_FRAMES)
        picture, centres = shown(self.sound.astype(np.float64), bounds, stretches)
        labels = self.chart.at(centres, (bounds[1:] + bounds[:-1]) / 2).astype(np.int32)
        return SoundView(picture, labels, None if self.rate is None else len(self.sound) / self.rate, self.top_hz,
                         playable(self.sound), self.rate, self.labels.astype(np.int32) if self.window is None else None)


def _charted(wave: NDArray[Any], grid: str | NDArray[Any], rate: int | None) -> tuple[Chart, int | None]:
    """Where the parts of a waveform lie, and the window of the transform that they are cut in; None where samples are."""
    length = len(wave)
    if not isinstance(grid, str):
        labels = checked_labels(grid, wave)
        if labels.ndim == 1:
            starts, _ = runs(labels)
            return Chart(labels[starts][:, None], np.append(starts, length), band_edges(1, rate)), None
        chart = Chart(labels, even_edges(length, len(labels)), band_edges(labels.shape[1], rate))
        return chart, window_length(chart.stretch)
    wanted = asked(grid)
    if wanted is not None:
        return of_wave(wave.astype(np.float64), wanted, rate)
    stretches, bands = parse_grid(grid)
    chart = Chart.grid(edges(length, stretches, "samples"), band_edges(bands, rate))
    return chart, None if grid.startswith("time") else window_length(length // stretches)


def _few(grid: str | NDArray[Any], found: int) -> tuple[str, ...]:
    """SLIC joins what sounds alike, however many segments it was asked for; nothing else would show that it did."""
    wanted = asked(grid)
    return () if wanted is None or 2 * found >= wanted else (
        f"The sound was cut into {found} parts where {wanted} were asked for: SLIC joins what sounds alike, so a score speaks "
        "for a large area; parts='tf:5x4' cuts evenly.",)


def _hidden_level(sound: NDArray[Any], rule: Any, window: int | None) -> float:
    """The value of hidden samples or cells; of a waveform cut in frequency, their magnitude."""
    if window is None:
        return level(rule, sound, sound.dtype)
    magnitude = np.abs(stft(sound.astype(np.float64), window)) if isinstance(rule, str) else np.zeros(1)
    found = level(rule, magnitude, magnitude.dtype)
    if found < 0:
        raise ValueError(f"fill must be a magnitude of at least 0 where a waveform is cut in frequency, got {rule!r}")
    return found


def _places(values: Any, name: str) -> Floats:
    places = np.asarray(values, dtype=np.float64)
    if places.ndim != 1 or not np.isfinite(places).all():
        raise ValueError(f"{name} must be one finite number for each place of the map's axis, got shape {places.shape}"
                         f"{'' if np.isfinite(places).all() else ' with NaN or infinite values'}")
    return places


def _reach(places: Floats, unit: str) -> str:
    return f" ({places.min():.4g}–{places.max():.4g} {unit})" if len(places) else ""
