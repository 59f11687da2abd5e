"""What a reader can listen to under a case: before, after, the change, and, where a script may run, every part."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.pictures import raster
from whytrust.pictures.html import Markup, clean, number, tag
from whytrust.report.sound import Sound, Waves, waves
from whytrust.report.words import count

SOUNDS = ("Each sound is drawn as a spectrogram: time runs to the right, higher notes stand higher, darker is louder. Listen "
          "to it before and after the attack, to the change alone, and to its parts. Each explainer’s best parts, numbered "
          "from its best, are drawn over the untouched sound. ✓ and blue: the attack’s change in just these parts turns the "
          "answer. ✗ and orange: it does not.")
CAUTION = ("What turns the answer was measured on what the model gets. The sounds are for your own judgement: a part is cut "
           "out of the wave by its stretch of time and its frequencies, and a change that the model follows may be one that "
           "nobody hears.")
ROOM = 3_600_000
"""Characters that the sounds of a page may take: twelve of 1.6 seconds at 22 050 samples a second."""
EACH = 8
"""Characters a sample: three waves of two bytes, in letters that hold six bits."""
LOWER = 16_000
"""Samples a second of sounds that would take more."""


def playable(sounds: Sequence[Sound], room: int = ROOM) -> tuple[list[Waves | None], str]:
    """The waves of those sounds that a page has room for, and what to say where that is not all of them as they are."""
    most = LOWER if sum(EACH * sound.samples for sound in sounds) > room else None
    out: list[Waves | None] = []
    for sound in sounds:
        share = min(1.0, most / sound.rate) if most and sound.rate else 1.0
        size = int(EACH * sound.samples * share)
        fits = 0 < size <= room
        room -= size if fits else 0  # one that is too long leaves room for those after it
        out.append(waves(sound, most) if fits else None)
    held, heard = sum(bool(sound.samples) for sound in sounds), sum(one is not None for one in out)
    words = []
    if most and heard and any((sound.rate or 0) > most for sound in sounds):
        words.append(f"To keep this page small, sounds are played at {most // 1000} kHz: what lies above {most // 2000} kHz is "
                     "not heard.")
    if heard < held:
        words.append(f"To keep this page small, {count(heard, 'sound')} of {held} can be heard; of the others there are the "
                     "pictures." if heard else "The sounds are too long to be held in a page: there are the pictures.")
    return out, " ".join(words)


def listening(sound: Sound, played: Waves | None, names: Sequence[str], title: str) -> Markup:
    """Three players that work without a script, and beside them what the script needs to play parts."""
    if played is None:
        return tag("p", "Nothing to listen to: only a spectrogram of this sound was kept." if not sound.samples
                   else "This sound is too long to be held in this page.", class_="aside silent")
    three = (("clean", "before", played.clean), ("adversarial", "after", played.adversarial),
             ("change", f"only the change{_times(played.times)}", played.change))
    players = [_player(which, words, wave, played.rate) for which, words, wave in three if np.any(wave) or which != "change"]
    parts = sound.hertz is not None and sound.seconds is not None
    cut: dict[str, Any] = {} if sound.hertz is None or not parts else {
        "data_seconds": repr(sound.seconds), "data_hertz": " ".join(number(hz) for hz in sound.hertz),
        "data_bands": sound.labels.shape[1], "data_cells": runs(sound.labels),
        "data_names": json.dumps([clean(name) for name in names], ensure_ascii=False)}
    said = _quieter(played) + _asked_again(sound) + (
        "" if parts else " Parts cannot be played: which frequencies the bands stand for is not known.")
    return tag("div", tag("div", *players, class_="heard"), tag("p", said, class_="aside"), class_="listen", role="group",
               aria_label=f"Listen: {title}", data_rate=played.rate, **cut)


def _asked_again(sound: Sound) -> str:
    """What the model says of the wave that is played, where it was given a spectrogram that no wave has."""
    if sound.played is None:
        return ""
    same = "also says" if sound.played == sound.said else "says"
    given = f", and “{sound.said}” of the spectrogram that it was given" if sound.said not in (None, sound.played) else ""
    return (" The attack changed a spectrogram, and the sound after it is made from that: no sound has exactly this "
            f"spectrogram. Of the sound that is played the model {same} “{sound.played}”{given}.")


def axes(view: Markup, sound: Sound) -> Markup:
    """A picture with marks along time and along frequency, written at a size that does not shrink with the picture."""
    across, up = sound.marks()
    along = [tag("span", words, style=f"left:{number(100 * place)}%", class_=_end(place)) for place, words in across]
    beside = [tag("span", words, style=f"bottom:{number(100 * place)}%", class_=_end(place)) for place, words in up]
    return tag("div", tag("div", *beside, class_="hertz", aria_hidden="true"), view,
               tag("div", *along, class_="seconds", aria_hidden="true"), class_="spectrum")


def _end(place: float) -> str | None:
    return "first" if place < 0.04 else "last" if place > 0.94 else None


def runs(labels: NDArray[Any]) -> str:
    """The part of each cell, frame by frame and low bands first, as «part:times» for each run of the same part."""
    flat = np.asarray(labels).ravel()
    starts = np.flatnonzero(np.r_[True, flat[1:] != flat[:-1]])
    lengths = np.diff(np.r_[starts, len(flat)])
    return " ".join(f"{part}:{times}" for part, times in zip(flat[starts].tolist(), lengths.tolist(), strict=True))


def _player(which: str, words: str, wave: NDArray[Any], rate: int) -> Markup:
    source = raster.data_uri(raster.wav(wave, rate), "audio/wav")
    return tag("figure", tag("audio", controls=True, preload="none", src=source, aria_label=words, data_source=which),
               tag("figcaption", words))


def _times(times: float) -> str:
    return "" if times == 1 else f" (× {times:,.0f} louder)" if times >= 10 else f" (× {times:.1f} louder)"


def _quieter(played: Waves) -> str:
    if not np.any(played.change):
        return "The wave did not change."
    if not math.isfinite(played.below):
        return ""
    way = "quieter" if played.below >= 0 else "louder"
    return f"The change is {abs(played.below):.0f} dB {way} than the sound."
