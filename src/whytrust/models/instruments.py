"""Synthetic instruments: blown, bowed and electric ones, whose pitch glides and vibrates as a singer's does, struck and plucked
ones, and drums.

They are the other half of what a singing-voice detector learns from: whatever a voice does, some instrument here does as well,
except to move a vocal tract and to speak.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.signal
from numpy.typing import NDArray

from whytrust.core import Floats
from whytrust.models.voices import (
    HERTZ,
    RATE,
    STEP,
    Manner,
    Note,
    Rng,
    Wave,
    at_samples,
    at_windows,
    curve_length,
    hertz_of,
    oscillate,
    pitch_curve,
    place,
    shaped,
    smooth,
    wander,
)

_ORDER = np.arange(1.0, 201.0)
_BLOCK = 256
_PLAIN = Manner()

# --- sustained --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sustained:
    """An instrument that holds its notes: harmonics, range, a body that does not move, and how it is played."""

    low: float
    high: float
    harmonics: Floats
    manner: Manner = _PLAIN
    attack: float = 0.05
    release: float = 0.08
    body: tuple[tuple[float, float], ...] = ()  # hertz and decibels of resonances that stay where they are
    cutoff: tuple[float, float] = (3000.0, 1.0)  # hertz from which it is duller, and by how much loudness raises it (octaves)
    noise: float = 0.0  # breath or bow
    tremolo: float = 0.0
    decay: float = 0.0  # seconds after which a plucked note is a third as loud; 0 holds it
    detuned: float = 0.0  # semitones between two reeds or oscillators
    players: int = 1  # more are a section, each a little apart from the others
    drive: float = 0.0  # distortion
    wah: float = 0.0  # octaves through which a pedal or envelope moves one resonance


def play(notes: Sequence[Note], samples: int, kind: Sustained, rng: Rng) -> Wave:
    """The notes on a sustained instrument."""
    length = curve_length(samples)
    pitch = pitch_curve(notes, length, kind.manner, rng)
    loudness = _loudness(notes, length, kind, rng)
    if kind.tremolo:
        turn = np.cumsum(kind.manner.vibrato_rate * (1 + 0.03 * wander(length, 0.5, rng))) * STEP / RATE
        loudness *= 1 + kind.tremolo * np.sin(2 * np.pi * turn)
    sound = oscillate(at_samples(np.clip(hertz_of(pitch), 25, 4000), samples), kind.harmonics, rng.random())
    if kind.detuned:
        sound += oscillate(at_samples(np.clip(hertz_of(pitch + kind.detuned), 25, 4000), samples), kind.harmonics, rng.random())
    for _ in range(kind.players - 1):
        own = pitch + 0.06 * rng.normal() + 0.08 * wander(length, 0.15, rng)
        sound += oscillate(at_samples(np.clip(hertz_of(own), 25, 4000), samples), kind.harmonics, rng.random())
    if kind.noise:
        sound += (kind.noise * rng.normal(size=samples)).astype(np.float32)
    gain = at_samples(loudness, samples)
    sound *= np.where(gain > 1e-3, gain, 0)
    if kind.drive:
        sound = np.tanh(kind.drive * sound)
    return shaped(sound, _body(kind, loudness, length, rng))


def _loudness(notes: Sequence[Note], length: int, kind: Sustained, rng: Rng) -> Floats:
    loudness, per_second = np.zeros(length), RATE / STEP
    for note in notes:
        begin, end = (min(length, round(t * per_second)) for t in (note.start, note.start + note.length))
        time = np.arange(end - begin) / per_second
        attack = 1.0 if note.slurred else np.clip(time / (kind.attack * rng.uniform(0.6, 1.5)), 0.2, 1)
        release = np.clip((note.length - time) / kind.release, 0, 1)
        swell = np.exp(-time / kind.decay) if kind.decay else 1 + rng.uniform(-0.3, 0.3) * np.linspace(-1, 1, len(time))
        loudness[begin:end] = note.strength * attack * release**0.5 * swell
    return np.asarray(smooth(loudness, 0.015) * (1 + 0.05 * wander(length, 0.1, rng)))


def _body(kind: Sustained, loudness: Floats, length: int, rng: Rng) -> Callable[[NDArray[np.intp]], NDArray[np.complex64]]:
    fixed = np.ones(len(HERTZ))
    for centre, decibels in kind.body:
        centre *= rng.uniform(0.9, 1.1)
        fixed += (10 ** (decibels / 20) - 1) / (1 + ((HERTZ - centre) / (0.12 * centre)) ** 2)
    base, opening = kind.cutoff
    cutoff = base * 2 ** (opening * (np.minimum(loudness, 1.5) - 0.5))
    pedal = 900 * 2 ** (kind.wah * 0.6 * np.clip(wander(length, rng.uniform(0.1, 0.6), rng), -1.5, 1.5))

    def response(rows: NDArray[np.intp]) -> NDArray[np.complex64]:
        found = fixed / (1 + (HERTZ / at_windows(cutoff, rows)[:, None]) ** 2)
        if kind.wah:
            centre = at_windows(pedal, rows)[:, None]
            found = found * (0.15 + 3 / (1 + ((HERTZ - centre) / (0.15 * centre)) ** 2))
        return found.astype(np.complex64)

    return response


def _drawbars(rng: Rng) -> Floats:
    bars = np.zeros(16)
    bars[[0, 1, 2, 3, 5, 7, 15]] = rng.uniform(0, 1, 7) * (1, 0.9, 0.8, 0.7, 0.5, 0.4, 0.2)
    return np.asarray(bars + np.eye(16)[0] * 0.5)


def _pulse(width: float) -> Floats:
    return np.asarray(np.sin(np.pi * _ORDER * width) / _ORDER)


_SAW, _ODD = 1 / _ORDER, (_ORDER % 2) / _ORDER + 0.03 / _ORDER
_FLUTE, _REED = np.asarray([1, 0.35, 0.2, 0.06, 0.03, 0.015, 0.01]), 1 / _ORDER**0.7 * (0.4 + 0.6 * (_ORDER % 2))
_BOW = Manner(0.06, 5.7, 0.25, 0.1, 0.6, 0.04, 0.01)
SUSTAINED: dict[str, Sustained] = {
    "violin": Sustained(55, 88, _SAW, _BOW, 0.07, 0.1, ((290, 6), (470, 8), (900, 5), (2600, 9)), (3500, 1), 0.01),
    "viola": Sustained(48, 76, _SAW, _BOW, 0.08, 0.12, ((230, 6), (380, 8), (750, 5), (2000, 7)), (2600, 1), 0.012),
    "cello": Sustained(36, 67, _SAW, replace(_BOW, vibrato_rate=5.2), 0.08, 0.12, ((110, 6), (200, 8), (500, 4), (1500, 6)),
                       (1800, 1), 0.012),
    "strings": Sustained(40, 86, _SAW, replace(_BOW, vibrato_depth=0.15), 0.12, 0.25,
                         ((290, 5), (500, 5), (1000, 4), (2400, 5)), (2500, 1), 0.02, players=3),
    "brass": Sustained(43, 78, _SAW, Manner(0.03, 5, 0.05, 0.3), 0.06, 0.1, ((800, 4), (1500, 4)), (1500, 2.5), players=3),
    "winds": Sustained(50, 84, _REED, Manner(0.03, 5, 0.08, 0.2), 0.06, 0.1, ((900, 5),), (2200, 1), 0.02, players=2),
    "bassoon": Sustained(34, 65, _REED, Manner(0.03, 5, 0.05, 0.2), 0.04, 0.06, ((450, 8), (1100, 5)), (1400, 1), 0.01),
    "flute": Sustained(60, 93, _FLUTE, replace(_BOW, vibrato_depth=0.15), 0.06, 0.08, (), (5000, 0.5), 0.03, 0.12),
    "recorder": Sustained(62, 90, _FLUTE, Manner(0.02, 5, 0, 0.2), 0.03, 0.05, (), (5000, 0.3), 0.01),
    "clarinet": Sustained(50, 84, _ODD, Manner(0.03, 5, 0.03, 0.2), 0.04, 0.06, ((1500, 4),), (2200, 1.2), 0.004),
    "oboe": Sustained(58, 86, _REED, replace(_BOW, vibrato_depth=0.15), 0.04, 0.06, ((1100, 12), (2800, 8)), (3500, 0.7)),
    "saxophone": Sustained(49, 80, _REED, Manner(0.06, 5.3, 0.25, 0.2, 1.2, 0.06, 0.02), 0.05, 0.08, ((600, 5), (1400, 6)),
                           (2200, 1.5), 0.03),
    "trumpet": Sustained(54, 82, _SAW, Manner(0.04, 5.2, 0.12, 0.3, 0.4, 0.03), 0.04, 0.06, ((1200, 6), (2400, 4)),
                         (1800, 3)),
    "trombone": Sustained(40, 70, _SAW, Manner(0.15, 5, 0.15, 0.3, 0.8, 0.04), 0.06, 0.08, ((550, 5), (1500, 3)), (1200, 3)),
    "horn": Sustained(41, 74, _SAW, Manner(0.05, 5, 0.03, 0.3), 0.07, 0.1, ((400, 5),), (700, 2.5)),
    "lead": Sustained(48, 90, _SAW, Manner(0.08, 5.8, 0.3, 0.2), 0.01, 0.08, (), (2500, 2), detuned=0.1),
    "square lead": Sustained(48, 90, _pulse(0.5), Manner(0.05, 6, 0.2, 0.3), 0.01, 0.05, (), (4000, 1)),
    "pulse lead": Sustained(48, 86, _pulse(0.2), Manner(0.1, 5.5, 0.4, 0.1), 0.01, 0.1, (), (3500, 1)),
    "sine lead": Sustained(50, 90, np.asarray([1, 0.05, 0.02]), Manner(0.25, 6, 0.5, 0, 1, 0.1), 0.06, 0.1),
    "wah": Sustained(45, 80, _SAW, Manner(0.05, 5.5, 0.2, 0.2), 0.01, 0.08, (), (4000, 1), wah=1.5),
    "organ": Sustained(40, 86, _FLUTE, Manner(0.005, 6.3, 0.08, 0), 0.01, 0.03, (), (6000, 0), tremolo=0.15),
    "accordion": Sustained(48, 86, _REED, Manner(0.005, 5, 0, 0), 0.04, 0.06, ((1000, 4),), (3500, 0.5), detuned=0.15),
    "harmonica": Sustained(55, 88, _REED, Manner(0.05, 5.5, 0.15, 0.2, 1.0), 0.04, 0.06, ((1700, 6),), (4000, 1), 0.01, 0.2),
    "distorted guitar": Sustained(43, 84, _SAW, Manner(0.05, 5.8, 0.35, 0.3, 1.2, 0.02), 0.005, 0.06, ((500, 4), (2200, 6)),
                                  (3500, 0.5), decay=2.5, drive=4),
    "slide guitar": Sustained(43, 80, _pulse(0.13), Manner(0.12, 5.5, 0.35, 0.2, 1.5, 0.03), 0.005, 0.08, ((350, 4),),
                              (2200, 2), decay=1.2),
    "electric guitar": Sustained(40, 80, _pulse(0.18), Manner(0.03, 5.5, 0.15, 0.3, 0.3), 0.004, 0.05, ((250, 3), (2000, 4)),
                                 (2500, 2), decay=0.8),
}


def sustained(name: str, rng: Rng) -> Sustained:
    """One instrument of that name: each is a little different from the next."""
    kind, manner = SUSTAINED[name], SUSTAINED[name].manner
    manner = Manner(manner.glide * rng.uniform(0.5, 2), manner.vibrato_rate * rng.uniform(0.85, 1.2),
                    manner.vibrato_depth * rng.choice((0, 0.5, 1, 1.5)), manner.vibrato_delay * rng.uniform(0.5, 1.5),
                    manner.scoop * rng.uniform(0, 1.5), manner.drift * rng.uniform(0.5, 2), manner.jitter * rng.uniform(0, 2))
    harmonics = _drawbars(rng) if name == "organ" else kind.harmonics * rng.uniform(0.75, 1.25, len(kind.harmonics))
    return replace(kind, manner=manner, harmonics=harmonics, cutoff=(kind.cutoff[0] * rng.uniform(0.6, 1.7), kind.cutoff[1]))


# --- struck and plucked -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Struck:
    """An instrument whose notes ring: partials beside the lowest, how loud they are, and how soon each is gone."""

    low: float
    high: float
    ratios: Floats
    loudness: Floats
    seconds: float  # in which the lowest partial of A4 falls to a third
    damping: float = 0.5  # how much sooner high partials are gone
    stiffness: float = 0.0  # stretches high partials, as in a piano
    damped: bool = True  # whether a note ends with its length
    knock: float = 0.0  # the noise of hammer, pick or finger
    tremolo: float = 0.0
    beating: float = 0.0  # how far apart, as a share of its frequency, the two tones of one string are at most


def ring(hertz: Floats, amplitudes: Floats, seconds: Floats, samples: int, phases: Floats) -> Wave:
    """The sum of sine waves that die away, each to a third in its number of seconds; those above 10 kHz are left out."""
    kept = hertz < 10000
    turn = -1 / (seconds[kept] * RATE) + 2j * np.pi * hertz[kept] / RATE
    # e^(turn (block i + j)) is a product of two small tables: one matrix product makes all samples of all partials.
    coarse = np.exp(np.outer(np.arange(-(-samples // _BLOCK)) * _BLOCK, turn)) * (amplitudes[kept] * np.exp(1j * phases[kept]))
    fine = np.exp(np.outer(turn, np.arange(_BLOCK)))
    real = np.hstack([coarse.real, -coarse.imag]).astype(np.float32) @ np.vstack([fine.real, fine.imag]).astype(np.float32)
    return np.asarray(real.ravel()[:samples])


def strike(notes: Sequence[Note], samples: int, kind: Struck, rng: Rng) -> Wave:
    """The notes on a struck or plucked instrument."""
    sound = np.zeros(samples, dtype=np.float32)
    count = len(kind.ratios)
    stretch = np.sqrt(1 + kind.stiffness * np.arange(1, count + 1) ** 2)
    apart = rng.uniform(0, kind.beating) if kind.beating else 0.0
    for note in notes:
        hertz = hertz_of(note.pitch) * kind.ratios * stretch
        lasting = kind.seconds * (440 / hertz[0]) ** 0.4 / (1 + kind.damping * (kind.ratios - kind.ratios[0]))
        audible = min(4 * lasting.max(), (note.length + 0.15) if kind.damped else 5.0)
        loudness = kind.loudness * rng.uniform(0.7, 1.3, count) * note.strength ** (1 + 0.15 * np.arange(count))
        if apart:  # a string swings in two directions that are not quite in tune
            hertz = np.concatenate([hertz, hertz * (1 + apart * rng.normal(size=count))])
            lasting, loudness = np.tile(lasting, 2), np.concatenate([loudness, loudness * rng.uniform(0.2, 0.9, count)])
        tone = ring(hertz, loudness, lasting, max(_BLOCK, round(audible * RATE)), rng.uniform(0, 2 * np.pi, len(hertz)))
        tone[:40] *= np.linspace(0, 1, 40, dtype=np.float32)
        fade = min(len(tone), round(0.1 * RATE))
        tone[-fade:] *= np.linspace(1, 0, fade, dtype=np.float32)
        if kind.knock:
            size = min(len(tone), round(rng.uniform(0.005, 0.04) * RATE))
            knock = rng.normal(size=size) * np.exp(-np.linspace(0, 5, size)) * rng.uniform(0.3, 2)
            tone[:size] += (kind.knock * note.strength * knock).astype(np.float32)
        place(sound, tone, note.start)
    if kind.tremolo:
        sound *= (1 + kind.tremolo * np.sin(2 * np.pi * np.arange(samples) * rng.uniform(3, 7.5) / RATE)).astype(np.float32)
    return sound


_STRING = np.arange(1.0, 25.0)


def _plucked(at: float, fall: float) -> Floats:
    return np.asarray(np.abs(np.sin(np.pi * _STRING * at)) / _STRING**fall)


STRUCK: dict[str, Struck] = {
    "piano": Struck(33, 96, _STRING, _plucked(0.12, 1.3), 1.0, 0.25, 4e-4, knock=0.03, beating=0.004),
    "electric piano": Struck(36, 90, np.asarray([1, 2, 3, 4, 14.1]), np.asarray([1, 0.3, 0.15, 0.08, 0.15]), 1.0, 0.4,
                             tremolo=0.3),
    "nylon guitar": Struck(40, 80, _STRING, _plucked(0.2, 1.5), 0.6, 0.3, 5e-5, knock=0.03, beating=0.004),
    "steel guitar": Struck(40, 84, _STRING, _plucked(0.12, 1.0), 0.8, 0.15, 1e-4, knock=0.03, beating=0.004),
    "harp": Struck(36, 96, _STRING, _plucked(0.4, 1.6), 0.7, 0.3, damped=False, beating=0.004),
    "pizzicato": Struck(36, 84, _STRING[:12], _plucked(0.25, 1.5)[:12], 0.12, 0.4, knock=0.05),
    "harpsichord": Struck(36, 86, _STRING, _plucked(0.08, 0.7), 0.7, 0.1, 1e-4, knock=0.05, beating=0.004),
    "banjo": Struck(48, 84, _STRING, _plucked(0.1, 0.9), 0.25, 0.2, 1e-4, knock=0.05, beating=0.004),
    "celesta": Struck(60, 108, np.asarray([1, 2.02, 4.1, 7.3]), np.asarray([1, 0.08, 0.25, 0.1]), 0.6, 0.4, damped=False,
                      knock=0.02),
    "vibraphone": Struck(53, 89, np.asarray([1, 4, 10.1]), np.asarray([1, 0.2, 0.08]), 1.5, 0.4, damped=False, knock=0.02,
                         tremolo=0.4),
    "marimba": Struck(45, 91, np.asarray([1, 3.95, 9.6]), np.asarray([1, 0.3, 0.1]), 0.2, 0.5, damped=False, knock=0.04),
    "bells": Struck(55, 96, np.asarray([0.5, 1, 1.19, 1.51, 2, 2.51, 2.66, 3.01, 4.1, 5.4]),
                    np.asarray([0.4, 1, 0.6, 0.3, 0.6, 0.3, 0.2, 0.3, 0.2, 0.15]), 1.5, 0.4, damped=False, knock=0.02),
    "bass guitar": Struck(28, 52, _STRING, _plucked(0.2, 1.5), 0.5, 0.3, 1e-4, knock=0.02, beating=0.004),
    "double bass": Struck(28, 55, _STRING[:14], _plucked(0.3, 1.9)[:14], 0.25, 0.4, 1e-4, knock=0.06),
    "synth bass": Struck(26, 52, _STRING, 1 / _STRING, 1.2, 0.6),
}


def struck(name: str, rng: Rng) -> Struck:
    """One instrument of that name: each is a little different from the next."""
    kind = STRUCK[name]
    order = np.arange(len(kind.ratios))
    loudness = kind.loudness * rng.uniform(0.85, 1.12) ** order  # brighter or duller
    return replace(kind, seconds=kind.seconds * rng.uniform(0.6, 1.6), loudness=loudness,
                   tremolo=kind.tremolo * rng.choice((0, 0.5, 1)), knock=kind.knock * rng.uniform(0, 2))


# --- drums ------------------------------------------------------------------------------------------------------------


def _noise(seconds: float, fall: float, low: float, high: float, rng: Rng) -> Floats:
    time = np.arange(round(seconds * RATE)) / RATE
    sos = scipy.signal.butter(2, (low, min(high, 10500)), "bandpass", fs=RATE, output="sos")
    return np.asarray(scipy.signal.sosfilt(sos, rng.normal(size=len(time))) * np.exp(-time / fall))


def _thump(high: float, low: float, drop: float, fall: float) -> Floats:
    time = np.arange(round(5 * fall * RATE)) / RATE
    turns = low * time - (high - low) * drop * np.expm1(-time / drop)
    return np.asarray(np.sin(2 * np.pi * turns) * np.exp(-time / fall))


def drum_kit(rng: Rng) -> dict[str, Wave]:
    """One hit of each drum and cymbal of a kit drawn at random."""
    kick = _thump(rng.uniform(120, 350), rng.uniform(40, 65), rng.uniform(0.015, 0.05), rng.uniform(0.06, 0.2))
    kick[:200] += rng.normal(size=200) * np.linspace(rng.uniform(0, 0.3), 0, 200)
    snare = _noise(0.35, rng.uniform(0.04, 0.12), 400, rng.uniform(5000, 10000), rng) * rng.uniform(0.4, 0.9)
    body = _thump(rng.uniform(230, 350), rng.uniform(160, 230), 0.02, rng.uniform(0.03, 0.07))[:len(snare)]
    snare[:len(body)] += 0.7 * body
    edge = rng.uniform(4500, 7500)
    metal = np.sign(np.sin(2 * np.pi * np.outer(rng.uniform(2000, 9000, 6), np.arange(round(1.2 * RATE)) / RATE))).sum(axis=0)
    metal = scipy.signal.sosfilt(scipy.signal.butter(2, edge, "highpass", fs=RATE, output="sos"), metal) * 0.15
    time = np.arange(len(metal)) / RATE
    hiss = _noise(1.2, 10, edge * 0.8, 10500, rng)
    cymbal = rng.uniform(0.2, 1) * metal + hiss
    pitch = rng.uniform(70, 120)
    kit = {"kick": kick, "snare": snare, "closed hat": 0.5 * (cymbal * np.exp(-time / rng.uniform(0.015, 0.05)))[:4400],
           "open hat": 0.5 * (cymbal * np.exp(-time / 0.2))[:13000], "ride": 0.3 * cymbal * np.exp(-time / 0.5),
           "crash": _noise(1.6, 0.5, 1500, 10500, rng), "shaker": _noise(0.1, 0.03, 4000, 9500, rng) * 0.5,
           "clap": _noise(0.2, 0.05, 800, 4000, rng), "high tom": _thump(pitch * 2.4, pitch * 1.6, 0.04, 0.15),
           "low tom": _thump(pitch * 1.6, pitch, 0.05, 0.2), "block": _thump(rng.uniform(600, 1800), 600, 0.01, 0.02),
           "conga": _thump(rng.uniform(250, 400), rng.uniform(180, 250), 0.02, 0.09)}
    return {name: np.asarray(hit, dtype=np.float32) for name, hit in kit.items()}


# 16 places a bar: loud, soft or not at all
PATTERNS: tuple[dict[str, str], ...] = (
    {"kick": "x.......x.......", "snare": "....x.......x...", "closed hat": "x.o.x.o.x.o.x.o."},
    {"kick": "x..o..x...x.....", "snare": "....x..o....x..o", "closed hat": "xoxoxoxoxoxoxoxo"},
    {"kick": "x...x...x...x...", "clap": "....x.......x...", "open hat": "..x...x...x...x.", "shaker": "xoxoxoxoxoxoxoxo"},
    {"ride": "x...x..ox...x..o", "closed hat": "....x.......x...", "kick": "o.......o..o....", "snare": "......o....o...."},
    {"conga": "x..x..o.x.o.x.oo", "shaker": "xooxxooxxooxxoox", "block": "x..x..x...x.x..."},
    {"kick": "x.....x...x.....", "low tom": "x..x..x...x..x..", "high tom": "....x..o....x.oo"},
    {"kick": "x.........x.....", "snare": "....x.......x..o", "ride": "x...x...x...x...", "crash": "o..............."},
    {"shaker": "x.o.x.o.x.o.x.o."}, {"kick": "x.......x......."},
    {"closed hat": "....x.......x...", "kick": "x..............."},
)


def drum(bars: Sequence[float], bar: float, samples: int, swing: float, rng: Rng) -> Wave:
    """A pattern drawn at random, played in each of the bars that begin at those seconds, with a fill now and then."""
    kit, pattern, sound = drum_kit(rng), PATTERNS[rng.integers(len(PATTERNS))], np.zeros(samples, dtype=np.float32)
    levels = {name: rng.uniform(0.4, 1.2) for name in kit}
    for start in bars:
        fill = rng.random() < 0.12
        rows = {**pattern, "high tom": "........x.xx....", "low tom": "............x.xx"} if fill else pattern
        for name, row in rows.items():
            for i, mark in enumerate(row):
                if mark != "." and rng.random() < 0.95:
                    late = (swing if i % 4 == 2 else 0) + rng.normal(0, 0.04)
                    loud = levels[name] * (1.0 if mark == "x" else 0.4) * rng.uniform(0.75, 1.15)
                    place(sound, kit[name] * loud, start + (i + late) * bar / 16)
    return sound
