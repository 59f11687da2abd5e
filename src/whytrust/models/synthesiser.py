"""Short pieces of music with and without singing, made on the spot: what the embedded singing-voice detector learns from.

Every piece is drawn at random: key, tempo and chords, who sings which phrases, what plays, how it is mixed. A detector that
does well on unseen pieces has learnt these voices and these instruments, not singing as people do it: try it on recordings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.fft
import scipy.signal
from numpy.typing import NDArray

from whytrust.core import Floats, generator
from whytrust.models.instruments import STRUCK, SUSTAINED, drum, play, strike, struck, sustained
from whytrust.models.voices import RATE, STEP, Note, Rng, Singer, Wave, at_samples, breaths, curve_length, sing, singer, smooth

__all__ = ["RATE", "Piece", "piece"]
_BLOCK = 210  # samples of one look at how loud the voice is: 105 looks a second


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of music, when there is singing in it, and what it was mixed from.

    `sung` are stretches in seconds, rising and apart; breath is not singing, nor is reverberation, and a rest of less than a
    tenth of a second belongs to its phrase. `stems` (voice, instruments, percussion) sum to `wave`; noise is in "instruments".
    """

    wave: NDArray[np.float32]
    sung: tuple[tuple[float, float], ...]
    stems: Mapping[str, NDArray[np.float32]]


def piece(seed: int, number: int, seconds: float = 20.0) -> Piece:
    """Piece `number` of the collection `seed`: the same bits for the same arguments, whatever was made before."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 0:
        raise ValueError(f"number must say which piece, a whole number >= 0, got {number!r}")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float | np.number) or not 2 <= seconds <= 600:
        raise ValueError(f"seconds must be between 2, the shortest music that is any, and 600, got {seconds!r}; join several "
                         "pieces for more")
    rng = generator(seed, "piece", int(number))
    samples = round(float(seconds) * RATE)
    score = _score(float(seconds), rng)
    voice, air, sung = _voice(score, samples, rng)
    played = _played(score, samples, rng)
    percussion = drum(score.drums, score.bar, samples, score.swing, rng) if score.drums else np.zeros(samples, dtype=np.float32)
    stems = _mixed(voice, air, played, percussion, rng)
    wave = stems["voice"] + stems["instruments"] + stems["percussion"]
    return Piece(wave, sung, stems)


# --- composing --------------------------------------------------------------------------------------------------------

_SCALES = ((0, 2, 4, 5, 7, 9, 11), (0, 2, 3, 5, 7, 8, 10), (0, 2, 3, 5, 7, 9, 10), (0, 2, 4, 5, 7, 9, 10),
           (0, 2, 3, 5, 7, 8, 11), (0, 2, 4, 7, 9), (0, 3, 5, 7, 10))
_CHORDS = ((0, 3, 4, 0), (0, 4, 5, 3), (0, 5, 3, 4), (0, 3, 0, 4), (5, 3, 0, 4), (0, 0, 3, 3), (1, 4, 0, 0), (0,))
_LENGTHS = np.asarray([0.25, 0.5, 1.0, 1.5, 2.0, 3.0])  # of notes, in beats


_KINDS = ("song", "voice and one", "voice alone", "band", "one alone", "chamber")


@dataclass(frozen=True)
class _Score:
    """Who plays what when: phrases to be sung, and for each instrument its name and notes."""

    phrases: tuple[tuple[Note, ...], ...]
    parts: tuple[tuple[str, tuple[Note, ...]], ...]
    drums: tuple[float, ...]
    bar: float
    swing: float
    who: Singer


@dataclass(frozen=True)
class _Key:
    """The piece's time and pitches, of which every part makes its own notes."""

    seconds: float
    beat: float
    root: int
    scale: tuple[int, ...]
    chords: tuple[int, ...]

    @property
    def bar(self) -> float:
        return 4 * self.beat

    def bars(self, rng: Rng, rest: float) -> list[float]:
        """When bars begin in which a part plays; it rests for about that share of them, two or four in a row."""
        count, run = math.ceil(self.seconds / self.bar), int(rng.choice((2, 4)))
        on = np.repeat(rng.random(count // run + 1) >= rest, run)[:count]
        on[0] |= not on.any()
        return [i * self.bar for i in range(count) if on[i]]

    def pitches(self, low: float, high: float) -> list[int]:
        return [p for p in range(math.ceil(low), int(high) + 1) if (p - self.root) % 12 in self.scale]

    def chord(self, start: float) -> list[int]:
        """The three pitch classes that belong to that moment."""
        degree = self.chords[int(start / self.bar + 1e-6) % len(self.chords)]
        return [(self.root + self.scale[(degree + i) % len(self.scale)]) % 12 for i in (0, 2, 4)]


def _score(seconds: float, rng: Rng) -> _Score:
    key = _Key(seconds, 60 / rng.uniform(60, 160), int(rng.integers(12)), _SCALES[rng.integers(len(_SCALES))],
               _CHORDS[rng.integers(len(_CHORDS))])
    who = singer(rng)
    kind = str(rng.choice(_KINDS, p=(0.5, 0.17, 0.1, 0.08, 0.06, 0.09)))
    with_voice = kind in ("song", "voice and one", "voice alone")
    phrases = _phrases(key, who.low, who.high, rng.uniform(0.5, 0.85), rng, words=True) if with_voice else []
    parts: list[tuple[str, tuple[Note, ...]]] = []
    if kind in ("song", "band"):
        parts += _backing(key, rng)
    elif kind == "voice and one":
        parts += [_accompaniment(key, str(rng.choice(_COMPING)), rng)]
    leads = {"chamber": int(rng.integers(2, 5)), "song": int(rng.random() < 0.6), "band": 1, "one alone": 1}
    for _ in range(leads.get(kind, 0)):
        parts += _leads(key, phrases, kind, rng)
    drums = key.bars(rng, 0.1) if kind in ("song", "band") and rng.random() < 0.65 else []
    return _Score(tuple(tuple(p) for p in phrases), tuple(parts), tuple(drums), key.bar, max(0.0, rng.uniform(-0.5, 0.7)), who)


def _phrases(key: _Key, low: float, high: float, share: float, rng: Rng, *, words: bool = False) -> list[list[Note]]:
    """Phrases of a melody that fill about that share of the time."""
    found: list[list[Note]] = []
    mean = rng.uniform(1.2, 4)
    now = 0.0 if rng.random() < 0.3 else rng.uniform(0, min(mean, key.seconds / 3))
    centre = rng.uniform(low + 5, high - 5)
    pitches = key.pitches(max(low, centre - 9), min(high, centre + 9))
    while now < key.seconds - 0.3:
        lasting = max(0.5, rng.gamma(4, mean / 4))
        found.append(_melody(key, now, min(key.seconds, now + lasting), pitches, rng, words=words))
        now += lasting + max(0.35, rng.gamma(2, mean * (1 - share) / share / 2))
    return found


def _melody(key: _Key, begin: float, end: float, pitches: Sequence[int], rng: Rng, *, words: bool) -> list[Note]:
    notes: list[Note] = []
    now, place = begin, int(rng.integers(len(pitches)))
    slow = rng.dirichlet(np.asarray([1.2, 4, 2.5, 0.5, 0.6, 0.3]) if words else np.asarray([1.5, 3, 2, 0.7, 1, 0.4]))
    slurs, longest = (rng.uniform(0, 0.25), 0.25 * 5 ** rng.random()) if words else (rng.uniform(0, 0.35), 9.0)
    loud = rng.uniform(0.75, 1)
    while now < end - 0.08:
        length = max(0.09, float(rng.choice(_LENGTHS, p=slow)) * key.beat)
        length = min(length, end - now, longest)
        place = int(np.clip(place + rng.choice((-3, -2, -1, 0, 1, 2, 4), p=(0.06, 0.14, 0.27, 0.16, 0.2, 0.12, 0.05)), 0,
                            len(pitches) - 1))
        slurred = bool(notes) and rng.random() < slurs
        notes.append(Note(now, length, pitches[place], loud * rng.uniform(0.7, 1.2), slurred))
        now += length
    if not words:  # players leave more space between notes than singers
        gap = rng.choice((0.0, 0.05, 0.3))
        notes = [replace(n, length=n.length * (1 - gap)) for n in notes]
    return notes


_COMPING = ("piano", "piano", "electric piano", "nylon guitar", "steel guitar", "steel guitar", "harp", "harpsichord", "banjo",
            "vibraphone", "marimba", "organ", "organ", "accordion", "strings", "strings", "cello", "lead", "distorted guitar",
            "pizzicato", "pizzicato", "electric guitar", "horn", "celesta", "brass", "winds")
_BASSES = ("bass guitar", "bass guitar", "double bass", "synth bass", "cello", "piano", "lead", "bassoon", "pizzicato")


def _backing(key: _Key, rng: Rng) -> list[tuple[str, tuple[Note, ...]]]:
    count = int(rng.choice((0, 1, 2, 3), p=(0.1, 0.55, 0.28, 0.07)))
    parts = [_accompaniment(key, str(rng.choice(_COMPING)), rng) for _ in range(count)]
    if rng.random() < 0.75 or not parts:
        parts.append(_bass(key, str(rng.choice(_BASSES)), rng))
    return parts


def _bass(key: _Key, name: str, rng: Rng) -> tuple[str, tuple[Note, ...]]:
    steps, notes = int(rng.choice((1, 2, 4, 8))), []
    for start in key.bars(rng, 0.1):
        length = key.bar / steps
        for i in range(steps):
            chord = key.chord(start)
            pitch = 28 + (chord[0 if i == 0 else int(rng.choice((0, 0, 2, 1)))] - 28) % 12 + 12 * int(rng.random() < 0.15)
            if i == 0 or rng.random() < 0.85:
                pitch += 12 if name in SUSTAINED else 0
                notes.append(Note(start + i * length, length * 0.92, pitch, rng.uniform(0.7, 1.1)))
    return name, tuple(notes)


def _accompaniment(key: _Key, name: str, rng: Rng) -> tuple[str, tuple[Note, ...]]:
    """Chords, held or repeated, or broken into single notes."""
    notes: list[Note] = []
    low = int(rng.integers(43, 60)) + (12 if name in ("celesta", "vibraphone") else 0)
    broken, steps = rng.random() < 0.45, int(rng.choice((1, 2, 4, 8, 16)))
    steps = max(4, min(steps, 8)) if broken else steps
    strum, struck_at = rng.uniform(0, 0.03), rng.random(steps) < rng.uniform(0.4, 1)
    for start in key.bars(rng, 0.15):
        pitches = sorted(low + (p - low) % 12 for p in key.chord(start))
        pitches += [pitches[0] + 12] * (rng.random() < 0.5)
        for i in range(steps):
            when, length = start + i * key.bar / steps, key.bar / steps
            if broken:
                notes.append(Note(when, length * 1.5, pitches[i % len(pitches)], rng.uniform(0.6, 1.1)))
            elif i == 0 or (struck_at[i] and rng.random() < 0.9):
                loud, order = rng.uniform(0.4, 1.1), pitches if i % 2 == 0 else pitches[::-1]
                notes += [Note(when + j * strum, length * 0.95, p, loud) for j, p in enumerate(order)]
    return name, tuple(notes)


def _leads(key: _Key, phrases: Sequence[Sequence[Note]], kind: str, rng: Rng) -> list[tuple[str, tuple[Note, ...]]]:
    """A melody by an instrument: between the sung phrases, or wherever it likes."""
    name = str(rng.choice(list(SUSTAINED) if rng.random() < 0.7 else list(STRUCK)))
    low, high = (SUSTAINED[name].low, SUSTAINED[name].high) if name in SUSTAINED else (STRUCK[name].low, STRUCK[name].high)
    low = max(low, 38) if high - low > 24 else low
    found = [n for p in _phrases(key, low, high, rng.uniform(0.7, 0.95), rng) for n in p]
    if kind == "song" and rng.random() < 0.7:
        busy = [(p[0].start, p[-1].start + p[-1].length) for p in phrases if p]
        found = [n for n in found if not any(b - 0.1 < n.start + n.length and n.start < e for b, e in busy)]
    return [(name, tuple(found))] if found else []


# --- sounding ---------------------------------------------------------------------------------------------------------


def _voice(score: _Score, samples: int, rng: Rng) -> tuple[Wave, Wave, tuple[tuple[float, float], ...]]:
    """(singing, breath between phrases, when there is singing)."""
    notes = [n for phrase in score.phrases for n in phrase]
    silent = np.zeros(samples, dtype=np.float32)
    if not notes:
        return silent, silent, ()
    voice = sing(notes, samples, score.who, rng)
    if rng.random() < 0.2:  # a second voice: the same again, or in thirds, fifths or octaves
        shift, late = int(rng.choice((0, 0, 3, 4, -5, 7, 12, -12))), rng.uniform(0, 0.03)
        who = replace(score.who if shift == 0 else singer(rng), manner=replace(score.who.manner, drift=rng.uniform(0.05, 0.2)))
        other = [replace(n, start=n.start + late, pitch=n.pitch + shift) for n in notes]
        voice = voice + rng.uniform(0.3, 1) * sing(other, samples, who, rng)
    return voice, breaths(voice, score.phrases, rng), _stretches(voice)


def _stretches(voice: Wave) -> tuple[tuple[float, float], ...]:
    """When the voice is within 26 dB of its loud notes, in stretches; gaps below a tenth of a second are part of them."""
    power = np.square(np.pad(voice, (0, -len(voice) % _BLOCK))).reshape(-1, _BLOCK).mean(axis=1)
    if not power.any():
        return ()
    loud = np.quantile(power[power > 0], 0.9)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], power > loud * 10**-2.6, [0]]).astype(np.int8)))
    found: list[list[float]] = []
    for begin, end in edges.reshape(-1, 2) * _BLOCK / RATE:
        if found and begin - found[-1][1] < 0.1:
            found[-1][1] = float(min(end, len(voice) / RATE))
        else:
            found.append([float(begin), float(min(end, len(voice) / RATE))])
    return tuple((begin, end) for begin, end in found if end - begin >= 0.05)


def _played(score: _Score, samples: int, rng: Rng) -> Wave:
    sound = np.zeros(samples, dtype=np.float32)
    for name, notes in score.parts:
        if name in STRUCK:
            part = strike(notes, samples, struck(name, rng), rng)
        else:
            kind = sustained(name, rng)
            part = sum((play(line, samples, kind, rng) for line in _lines(notes)), np.zeros(samples, dtype=np.float32))
        if rng.random() < 0.6:  # far from the microphone, behind a curtain, turned down: dull in its own way
            keep = np.exp(-2 * np.pi * 500 * 16 ** rng.random() / RATE)
            part = np.asarray(scipy.signal.lfilter([1 - keep], [1, -keep], part), dtype=np.float32)
        sound += _levelled(part) * np.float32(10 ** rng.uniform(-0.3, 0.3))
    return sound


def _lines(notes: Sequence[Note]) -> list[list[Note]]:
    """Notes that sound together, told apart into lines of which each can be played by one bow or one breath."""
    lines: list[list[Note]] = []
    for note in sorted(notes, key=lambda n: (n.start, n.pitch)):
        for line in lines:
            if line[-1].start + line[-1].length <= note.start + 0.01:
                line.append(note)
                break
        else:
            lines.append([note])
    return lines


# --- mixing -----------------------------------------------------------------------------------------------------------


_EAR = scipy.signal.butter(1, (250, 4000), "bandpass", fs=RATE, output="sos")


def _loudness(sound: Wave) -> float:
    """The root mean square of where there is any sound, of what an ear hears well of it: a bass masks little of a voice."""
    sound = scipy.signal.sosfilt(_EAR, sound)
    power = np.square(sound[:len(sound) // _BLOCK * _BLOCK]).reshape(-1, _BLOCK).mean(axis=1)
    heard = power[power > 1e-3 * power.max(initial=0)]
    return float(np.sqrt(heard.mean())) if len(heard) else 0.0


def _levelled(sound: Wave) -> Wave:
    loudness = _loudness(sound)
    return sound / np.float32(loudness) if loudness else sound


def _mixed(voice: Wave, air: Wave, played: Wave, percussion: Wave, rng: Rng) -> dict[str, Wave]:
    """The stems as they are in the mix: balanced, in a room, equalised, evened out, and made as loud as the piece shall be."""
    balance = {"percussion": 10 ** rng.uniform(-0.6, 0.2), "voice": 10 ** (rng.triangular(3, 9, 14) / 20)}
    backing = _levelled(played) + _levelled(percussion) * np.float32(balance["percussion"])
    scale = _loudness(backing) or 1.0
    loudness = _loudness(voice) or 1.0
    sounds = {"voice": (voice + air) * np.float32(balance["voice"] / loudness),
              "instruments": _levelled(played) / np.float32(scale),
              "percussion": _levelled(percussion) * np.float32(balance["percussion"] / scale)}
    equalised, near, far = _equaliser(rng), _room(1.4, rng), _room(3.0, rng)
    wet = {"voice": (near, 0.25), "instruments": (far, 0.5), "percussion": (near, 0.25)}
    sounds = {name: _in_room(sound, wet[name][0], rng.uniform(0, wet[name][1]), equalised) for name, sound in sounds.items()}
    total = sum(sounds.values(), np.zeros(len(voice), dtype=np.float32))
    noise = _hum(len(voice), rng) * np.float32(_loudness(total) * 10 ** (rng.uniform(-90, -35) / 20))
    sounds["instruments"] = sounds["instruments"] + noise
    total = total + noise
    gain = _evened(total, rng.uniform(0, 0.4))
    peak = float(np.abs(total * gain).max()) or 1.0
    gain *= np.float32(0.98 * 10 ** (rng.uniform(-24, 0) / 20) / peak)
    return {name: sound * gain for name, sound in sounds.items()}


def _hum(samples: int, rng: Rng) -> Wave:
    """Noise of loudness 1, between white and brown."""
    pole = rng.uniform(0, 0.98)
    return np.asarray(scipy.signal.lfilter([np.sqrt(1 - pole**2)], [1, -pole], rng.normal(size=samples)), dtype=np.float32)


def _equaliser(rng: Rng) -> Any:
    """A tilt, two bumps or dips, and sometimes a dull top: a gain at any frequency."""
    tilt, bumps = rng.normal(0, 1.0), [(rng.uniform(5, 13), rng.normal(0, 4), rng.uniform(0.4, 1.5)) for _ in range(2)]
    dull = rng.uniform(3000, 9000) if rng.random() < 0.25 else 1e9
    thin = rng.uniform(60, 250) if rng.random() < 0.25 else 20.0

    def gain(hertz: Floats) -> Floats:
        octaves = np.log2(np.maximum(hertz, 20))
        decibels = tilt * (octaves - 10) + sum(size * np.exp(-((octaves - at) / wide) ** 2) for at, size, wide in bumps)
        ends = np.sqrt((1 + (hertz / dull) ** 4) * (1 + (thin / np.maximum(hertz, 1)) ** 4))
        return np.asarray(10 ** (decibels / 20) / ends)

    return gain


def _room(longest: float, rng: Rng) -> Wave:
    """The echo of a click: noise that dies away in a tenth of a second to the longest, after a moment's delay."""
    lasting = 0.1 * (longest / 0.1) ** rng.random()
    time = np.arange(round(lasting * RATE)) / RATE
    echo = rng.normal(size=len(time)) * 10 ** (-3 * time / lasting)
    echo = np.concatenate([np.zeros(round(rng.uniform(0.005, 0.04) * RATE)), echo])
    return np.asarray(echo / np.sqrt(np.square(echo).sum()), dtype=np.float32)


def _in_room(sound: Wave, room: Wave, wet: float, gain: Any) -> Wave:
    if not sound.any():
        return sound
    size = scipy.fft.next_fast_len(len(sound) + len(room), real=True)
    response = 1 + wet * scipy.fft.rfft(room, size)
    spectrum = scipy.fft.rfft(sound, size) * (response * gain(np.linspace(0, RATE / 2, size // 2 + 1))).astype(np.complex64)
    return np.asarray(scipy.fft.irfft(spectrum, size)[:len(sound)], dtype=np.float32)


def _evened(total: Wave, strength: float) -> Wave:
    """A gain that is lower where the mix is loud, slowly moving, as mastering does: one curve for all stems."""
    length = curve_length(len(total))
    power = np.square(np.pad(total, (0, length * STEP - len(total)))).reshape(-1, STEP).mean(axis=1)
    level = np.sqrt(smooth(power, 0.3)) + 0.05 * float(np.sqrt(power.mean()) or 1)
    return at_samples(level ** -strength, len(total))
