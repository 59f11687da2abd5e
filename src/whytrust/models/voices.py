"""Synthetic singers: a buzz that glides and vibrates, shaped by a vocal tract that moves from sound to sound.

Also what instruments share with singers: notes, how a pitch moves between them, oscillators without aliasing, and filters that
change over time. Nobody is recorded: these are voices only as far as source and filter go, without words or expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.fft
import scipy.signal
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from whytrust.core import Floats

RATE = 22050
STEP = 105  # samples between two values of a curve: 210 a second, quick enough for vibrato and consonants
Wave = NDArray[np.float32]
Rng = np.random.Generator
_HOP, _FFT = 256, 1024  # windows of two hops; the rest of the transform is room for a resonance to ring
HERTZ: Floats = np.arange(_FFT // 2 + 1) * RATE / _FFT
_PERIOD, _TOP = 4096, 10800.0  # samples in one stored period, and the frequency above which no harmonic is made


@dataclass(frozen=True)
class Note:
    """One note: when, how long, which (MIDI) pitch, how loud, and whether it goes on from the last without a new start."""

    start: float
    length: float
    pitch: float
    strength: float = 1.0
    slurred: bool = False


# --- curves and sounds ------------------------------------------------------------------------------------------------


def curve_length(samples: int) -> int:
    """How many values a curve over so many samples has."""
    return -(-samples // STEP) + 1


def at_samples(curve: Floats, samples: int) -> Wave:
    """A curve of one value every STEP samples, joined by straight lines."""
    values = curve.astype(np.float32)
    rise = np.diff(values)[:, None] * (np.arange(STEP, dtype=np.float32) / STEP)
    return np.asarray((values[:-1, None] + rise).ravel()[:samples])


def smooth(curve: Floats, seconds: float) -> Floats:
    """The curve's mean under a bell of so many seconds; the ends are held."""
    width = max(1, round(seconds * RATE / STEP)) | 1
    bell = np.hanning(width + 2)[1:-1]
    return np.convolve(np.pad(curve, width // 2, mode="edge"), bell / bell.sum(), mode="valid")


def wander(length: int, seconds: float, rng: Rng) -> Floats:
    """Noise of standard deviation 1 that forgets where it was after about so many seconds."""
    width = max(1.0, seconds * RATE / STEP)
    knots = rng.normal(size=math.ceil(length / width) + 2)
    return np.asarray(np.interp(np.arange(length) / width, np.arange(len(knots)), knots) * 1.2)


def hertz_of(pitch: Floats | float) -> Floats:
    """MIDI pitch -> hertz."""
    return np.asarray(440.0 * 2.0 ** ((np.asarray(pitch) - 69) / 12))


def oscillate(hertz: Wave, harmonics: Floats, phase: float = 0.0) -> Wave:
    """A periodic sound whose k-th harmonic has amplitude harmonics[k - 1], except above 10.8 kHz, where it has none.

    One period is stored for each quarter of an octave, with only the harmonics that stay below: nothing is folded back.
    """
    octave = np.log2(np.maximum(hertz[::STEP], 20.0) / 20.0)
    level = np.ceil(4 * octave + 1e-6).astype(np.int64)
    lowest, highest = int(level.min()), int(level.max())
    spectrum = np.zeros((highest - lowest + 1, _PERIOD // 2 + 1), dtype=np.complex64)
    for row, top in enumerate(range(lowest, highest + 1)):
        count = min(len(harmonics), int(_TOP / (20.0 * 2 ** (top / 4))))
        spectrum[row, 1:count + 1] = -0.5j * _PERIOD * harmonics[:count]
    periods = scipy.fft.irfft(spectrum, axis=1)
    periods = np.concatenate([periods, periods[:, :1]], axis=1)
    turns = (np.cumsum(hertz, dtype=np.float64) / RATE + phase) % 1.0
    place = turns * _PERIOD
    index = place.astype(np.int64)
    part = (place - index).astype(np.float32)
    index += np.repeat((level - lowest) * (_PERIOD + 1), STEP)[:len(index)]
    flat = periods.ravel()
    return np.asarray(flat[index] * (1 - part) + flat[index + 1] * part)


def shaped(sound: Wave, response: Callable[[NDArray[np.intp]], NDArray[np.complexfloating]]) -> Wave:
    """The sound behind a filter that changes over time.

    `response` is asked for the spectra, at HERTZ, of the windows with the given numbers; window i is centred on sample 256 i,
    lasts 512 samples and fades into its neighbours. A filter that does not change is applied exactly.
    """
    count = -(-len(sound) // _HOP) + 1
    padded = np.zeros((count + 1) * _HOP, dtype=np.float32)
    padded[_HOP:_HOP + len(sound)] = sound
    windows = sliding_window_view(padded, 2 * _HOP)[::_HOP]
    bell = scipy.signal.get_window("hann", 2 * _HOP).astype(np.float32)
    result = np.zeros((count + _FFT // _HOP, _HOP), dtype=np.float32)
    audible = np.flatnonzero(np.abs(windows).max(axis=1))
    for begin in range(0, len(audible), 256):
        rows = audible[begin:begin + 256]
        spectra = scipy.fft.rfft(windows[rows] * bell, _FFT, axis=1) * response(rows)
        pieces = scipy.fft.irfft(spectra.astype(np.complex64), _FFT, axis=1).reshape(len(rows), _FFT // _HOP, _HOP)
        for late in range(_FFT // _HOP):
            result[rows + late] += pieces[:, late]
    return np.asarray(result.ravel()[_HOP:_HOP + len(sound)])


def at_windows(curve: Floats, rows: NDArray[np.intp]) -> Floats:
    """The values of a curve in the middle of those windows of `shaped`."""
    return np.asarray(np.interp(rows * (_HOP / STEP), np.arange(len(curve)), curve))


# --- pitch ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Manner:
    """How a pitch moves: seconds of glide, hertz and semitones of vibrato, and semitones of scoop, drift and jitter."""

    glide: float = 0.08
    vibrato_rate: float = 5.5
    vibrato_depth: float = 0.3
    vibrato_delay: float = 0.25
    scoop: float = 0.0
    drift: float = 0.0
    jitter: float = 0.0


def pitch_curve(notes: Sequence[Note], length: int, manner: Manner, rng: Rng) -> Floats:
    """The pitch at every step of a curve; between two notes it moves on in the middle of the rest."""
    per_second = RATE / STEP
    pitch, depth, bend = (np.zeros(length) for _ in range(3))
    changed = 0
    for i, note in enumerate(notes):
        begin, end = (min(length, round(t * per_second)) for t in (note.start, note.start + note.length))
        begun = begin if i == 0 else (begin + min(begin, round((notes[i - 1].start + notes[i - 1].length) * per_second))) // 2
        pitch[changed if i == 0 else begun:] = note.pitch
        changed = begun
        time = np.arange(end - begin) / per_second
        delay = manner.vibrato_delay * rng.uniform(0.5, 1.5)
        depth[begin:end] = np.clip((time - delay) / 0.25, 0, 1) * rng.uniform(0.6, 1.4)
        if not note.slurred and manner.scoop and rng.random() < 0.6:
            bend[begin:end] -= manner.scoop * rng.uniform(0.2, 1.5) * np.exp(-time / rng.uniform(0.03, 0.09))
    rate = manner.vibrato_rate * (1 + 0.06 * wander(length, 0.3, rng))
    wave = np.sin(2 * np.pi * (np.cumsum(rate) / per_second + rng.random()))
    unsteady = manner.drift * wander(length, 0.25, rng) + manner.jitter * rng.normal(size=length)
    return np.asarray(smooth(pitch, manner.glide) + bend + manner.vibrato_depth * smooth(depth, 0.1) * wave + unsteady)


# --- vocal tracts -----------------------------------------------------------------------------------------------------

# Formants of a grown man in hertz, after the classic measurements of spoken vowels; other tracts are shorter or longer.
VOWELS: dict[str, tuple[float, float, float, float]] = {
    "i": (280, 2250, 2950, 3500), "e": (400, 2000, 2600, 3450), "E": (550, 1800, 2500, 3450), "ae": (680, 1700, 2450, 3450),
    "a": (730, 1150, 2500, 3400), "V": (620, 1200, 2450, 3400), "O": (570, 860, 2450, 3350), "o": (440, 800, 2450, 3350),
    "u": (310, 800, 2300, 3300), "er": (480, 1300, 1750, 3300), "schwa": (500, 1500, 2500, 3450),
}
# Voiced consonants: the tract's formants, and how much of a vowel's loudness is left.
MURMURS: dict[str, tuple[tuple[float, float, float, float], float]] = {
    "m": ((250, 1000, 2200, 3300), 0.25), "n": ((260, 1450, 2400, 3400), 0.25), "l": ((350, 1150, 2700, 3400), 0.45),
    "r": ((380, 1100, 1600, 3200), 0.5), "w": ((290, 650, 2250, 3300), 0.45), "y": ((260, 2250, 3000, 3500), 0.5),
    "v": ((280, 1100, 2300, 3300), 0.2), "b": ((220, 900, 2200, 3300), 0.03), "d": ((220, 1700, 2500, 3400), 0.03),
}
# Noises: from where to where in hertz, how loud beside a vowel, for how many seconds, and after how long a silence.
HISSES: dict[str, tuple[float, float, float, float, float]] = {
    "s": (4500, 9500, 0.30, 0.11, 0.0), "sh": (2200, 7000, 0.30, 0.11, 0.0), "f": (1200, 9500, 0.07, 0.09, 0.0),
    "h": (600, 5000, 0.10, 0.07, 0.0), "t": (3000, 9000, 0.35, 0.03, 0.05), "k": (1400, 4500, 0.35, 0.035, 0.05),
    "p": (300, 3000, 0.25, 0.02, 0.06), "ch": (2500, 8000, 0.35, 0.06, 0.04),
}
BANDWIDTHS: tuple[float, ...] = (80.0, 90.0, 120.0, 160.0)


@cache
def _band(low: float, high: float) -> Floats:
    return np.asarray(scipy.signal.butter(2, (low, high), "bandpass", fs=RATE, output="sos"))


def resonances(formants: Floats, bandwidths: Sequence[float] | Floats) -> NDArray[np.complex64]:
    """(n, k) centres of k resonances in a row -> (n, bins) response at HERTZ; 1 at 0 Hz, and falling above the last one.

    Each is F² / (F² - f² + i f B): a tube that is open at one end has one about every 1000 Hz.
    """
    total = np.ones((len(formants), len(HERTZ)), dtype=np.complex64)
    for centre, width in zip(formants.T, bandwidths, strict=True):
        square = (centre[:, None] ** 2).astype(np.float32)
        below = np.empty(total.shape, dtype=np.complex64)
        below.real, below.imag = square - (HERTZ**2).astype(np.float32), (HERTZ * width).astype(np.float32)
        total *= square / below
    return total


def vowel(hertz: float, formants: Sequence[float], seconds: float = 1.0, bandwidths: Sequence[float] = BANDWIDTHS) -> Wave:
    """One steady vowel: harmonic k of `hertz` has the amplitude of 1 / k times that of the tract there."""
    tract = resonances(np.asarray([formants], dtype=float), bandwidths)
    buzz = oscillate(np.full(round(seconds * RATE), hertz, dtype=np.float32), 1 / np.arange(1.0, 201.0))
    return shaped(buzz, lambda rows: tract)


# --- singers ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Singer:
    """A singer: lowest and highest pitch, the tract's formants beside a man's, and habits of pitch, breath and speech."""

    low: float
    high: float
    scale: float
    manner: Manner
    effort: float  # 0 is soft and dull, 1 is loud and bright
    breath: float  # noise beside the buzz
    ring: float  # 0 … 1: how close the third to fifth formants move together, as trained voices do
    clearness: float  # the share of syllables that begin with a consonant


# lowest and highest pitch, scale of the formants: bass, baritone, tenor, alto, mezzo, soprano, child
_KINDS = ((40, 59, 0.94), (43, 64, 1.0), (47, 68, 1.04), (52, 71, 1.12), (55, 74, 1.16), (57, 78, 1.2), (58, 74, 1.32))


def singer(rng: Rng) -> Singer:
    """Somebody who sings, drawn at random."""
    low, high, scale = _KINDS[rng.choice(len(_KINDS), p=(0.09, 0.18, 0.2, 0.18, 0.18, 0.12, 0.05))]
    depth = 0.0 if rng.random() < 0.2 else rng.uniform(0.15, 0.9)
    manner = Manner(rng.uniform(0.05, 0.25), rng.uniform(4.5, 7.0), depth, rng.uniform(0.05, 0.4), rng.uniform(0.3, 3),
                    rng.uniform(0.12, 0.4) - 0.1 * depth, rng.uniform(0.02, 0.07))
    return Singer(low, high, scale * rng.uniform(0.94, 1.06), manner, rng.uniform(0, 1), rng.choice((0.005, 0.02, 0.05)) *
                  rng.uniform(0.5, 1.5), max(0.0, rng.uniform(-0.5, 1)), rng.uniform(0.7, 1.0))


@dataclass
class _Mouth:
    """What the tract, the vocal folds and the lips do, as curves over a piece."""

    formants: Floats  # (length, 4), of a man, as logarithms
    loudness: Floats
    hiss: list[tuple[str, float, float]]  # which noise, from when, how loud


def _articulated(notes: Sequence[Note], length: int, who: Singer, rng: Rng) -> _Mouth:
    per_second = RATE / STEP
    names, murmurs, hisses = list(VOWELS), list(MURMURS), list(HISSES)
    mouth = _Mouth(np.tile(np.log(VOWELS["schwa"]), (length, 1)), np.zeros(length), [])
    now = names[rng.integers(len(names))]
    for note in notes:
        begin, end = (min(length, round(t * per_second)) for t in (note.start, note.start + note.length))
        if end - begin < 2:
            continue
        past = now
        if not note.slurred:
            now = past = names[rng.integers(len(names))]
        if rng.random() < 0.5:  # a diphthong, or a slur onto another vowel
            now = names[rng.integers(len(names))]
        way = np.clip((np.arange(end - begin) / (end - begin) - rng.uniform(0, 0.6)) * 3, 0, 1)[:, None]
        mouth.formants[begin:] = np.log(VOWELS[now])
        mouth.formants[begin:end] = (1 - way) * np.log(VOWELS[past]) + way * np.log(VOWELS[now])
        swell = 1 + rng.uniform(-0.4, 0.4) * np.linspace(-1, 1, end - begin) + rng.uniform(-0.1, 0.3) * np.sin(
            np.linspace(0, np.pi, end - begin))
        mouth.loudness[begin:end] = note.strength * swell
        if note.slurred or rng.random() > who.clearness:
            mouth.loudness[begin:begin + 8] *= 1 if note.slurred else 0.3
        elif rng.random() < 0.5:
            formants, left = MURMURS[murmurs[rng.integers(len(murmurs))]]
            stop = min(end, begin + round(rng.uniform(0.04, 0.12) * per_second))
            mouth.formants[begin:stop] = np.log(formants)
            mouth.loudness[begin:stop] *= left
        else:
            kind = hisses[rng.integers(len(hisses))]
            lasting, silent = HISSES[kind][3:]
            mouth.hiss.append((kind, note.start + silent, note.strength * rng.uniform(0.4, 1.6)))
            mouth.loudness[begin:min(end, begin + round((lasting + silent) * per_second))] = 0
        if rng.random() < 0.12:  # a consonant at the end
            mouth.hiss.append((hisses[rng.integers(4)], note.start + note.length - 0.05, note.strength * rng.uniform(0.3, 1)))
    mouth.loudness = smooth(mouth.loudness, rng.uniform(0.02, 0.07))
    mouth.formants = np.stack([smooth(column, 0.07) for column in mouth.formants.T], axis=1)
    return mouth


def sing(notes: Sequence[Note], samples: int, who: Singer, rng: Rng) -> Wave:
    """The notes, sung: vowels and consonants at random, with the singer's glides, vibrato, effort and breath."""
    length = curve_length(samples)
    mouth = _articulated(notes, length, who, rng)
    hertz = np.clip(hertz_of(pitch_curve(notes, length, who.manner, rng)), 50, 1500)
    shimmer = 1 + 0.05 * rng.normal(size=length) + 0.1 * wander(length, 0.2, rng)
    loudness = at_samples(mouth.loudness * np.maximum(shimmer, 0.2), samples)
    buzz = oscillate(at_samples(hertz, samples), _glottis(rng), rng.random())
    source = buzz + (who.breath * rng.normal(size=samples)).astype(np.float32)
    source *= np.where(loudness > 1e-3, loudness, 0)
    formants = np.exp(mouth.formants) * who.scale
    formants[:, 0] = np.maximum(formants[:, 0], hertz)  # high voices open the mouth until the tract follows the pitch
    gathered = who.scale * np.asarray([2750, 3150])
    formants[:, 2:] += who.ring * 0.8 * (gathered - formants[:, 2:])
    still = _upper_tract(who)
    cutoff = 1300 * 5 ** np.clip(0.6 * who.effort + 0.4 * mouth.loudness, 0, 1.2)

    def tract(rows: NDArray[np.intp]) -> NDArray[np.complex64]:
        moving = np.stack([at_windows(column, rows) for column in formants.T], axis=1)
        tilt = 1 / np.sqrt(1 + (HERTZ / at_windows(cutoff, rows)[:, None]) ** 2).astype(np.float32)
        found = resonances(moving, np.asarray(BANDWIDTHS) * who.scale) * (still * tilt)
        # Singers make up for half, in decibels, of what makes one vowel louder than another.
        strength = np.mean(np.square(np.abs(found) / (HERTZ + 200)), axis=1, keepdims=True)
        return np.asarray(found * strength**-0.25, dtype=np.complex64)

    return _hissed(shaped(source, tract), mouth.hiss, rng)


def _upper_tract(who: Singer) -> NDArray[np.complex64]:
    """The resonances that no vowel moves: one every 1000 Hz of a man, up to where they no longer matter to what is heard.

    Without those far above, everything in their reach would be too dull: a resonance lifts what lies below it.
    """
    centres = 4500 + 1000.0 * np.arange(50)
    centres[0] -= 900 * who.ring
    return resonances(centres[None] * who.scale, tuple(200 + 100.0 * np.arange(50)))


def _glottis(rng: Rng) -> Floats:
    """Harmonics of the vocal folds: 1 / k with a stronger or weaker first, and ripples where the folds close early or late."""
    order = np.arange(1.0, 201.0)
    harmonics = 1 / order * (1 + 0.3 * np.cos(2 * np.pi * order * rng.uniform(0.3, 0.7)))
    harmonics[0] *= rng.uniform(0.6, 1.8)
    return harmonics


def _hissed(voice: Wave, hisses: Sequence[tuple[str, float, float]], rng: Rng) -> Wave:
    """The voice with its unvoiced consonants, as loud as they are beside vowels."""
    loud = float(np.sqrt(np.mean(np.square(voice[np.abs(voice) > 0]))) if voice.any() else 1)
    habit = rng.uniform(0.4, 1.6)
    for kind, start, strength in hisses:
        low, high, level, lasting, _ = HISSES[kind]
        noise = scipy.signal.sosfilt(_band(low, high), rng.normal(size=round(lasting * rng.uniform(0.7, 1.4) * RATE)))
        time = np.linspace(0, 1, len(noise))
        shape = np.sin(np.pi * time) ** 0.7 if lasting > 0.05 else np.exp(-3 * time)
        place(voice, noise * shape * (level * habit * strength * loud * 2), start)
    return voice


def breaths(voice: Wave, phrases: Sequence[Sequence[Note]], rng: Rng) -> Wave:
    """The air drawn in before some phrases, on its own: it is heard, but nobody sings it."""
    air, loud = np.zeros_like(voice), float(np.sqrt(np.mean(np.square(voice))))
    for phrase in phrases:
        lasting = rng.uniform(0.15, 0.4)
        if phrase and rng.random() < 0.4 and phrase[0].start > lasting + 0.1:
            noise = scipy.signal.sosfilt(_band(900, 6000), rng.normal(size=round(lasting * RATE)))
            shape = np.sin(np.linspace(0, np.pi, len(noise)))
            place(air, noise * shape * loud * rng.uniform(0.01, 0.12), phrase[0].start - lasting - 0.05)
    return air


def place(onto: Wave, sound: NDArray[np.floating], start: float) -> None:
    """Add a sound to a longer one from that second on, as far as it reaches."""
    begin = max(0, round(start * RATE))
    part = sound[:max(0, len(onto) - begin)]
    onto[begin:begin + len(part)] += part.astype(np.float32)
