"""Excerpts of songs on trial: a song is attacked as a whole, and what its excerpts look like is explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import files
from whytrust.attacks.carlini_wagner import SPECTROGRAM, CarliniWagner
from whytrust.attacks.song import AttackedSong, attack_song
from whytrust.checked import CheckedModel
from whytrust.core import generator, near
from whytrust.domains import audio
from whytrust.models.songs import CLASSES, FRAME_RATE, FRAMES, HOP, RATE, REACH, SILENT, Song, Songs
from whytrust.studies.adversaries import FULL, Adversary, Found, OnCalls, Played, margin_of
from whytrust.studies.data import Data, Item, NotRead
from whytrust.studies.songs import jamendo

SIGNALS: dict[str, dict[str, Any]] = {"waveform": {"epsilon": 0.01, "step": 0.0003, "alpha": 2.0}, "magnitude": SPECTROGRAM}
"""What is attacked, and with which settings by default: those of the papers, with magnitudes kept at or above 0."""
EXCERPTS = 4
"""Excerpts of either answer, from each song."""
LISTENED, BRIEF = 2100, 4 * FRAMES
"""Frames of a song that a dry run listens to at most, and those of them that it attacks."""
STEPS, TRIED = 5, 2
"""Of a dry run: steps of its attack, and excerpts of either answer."""


@dataclass(frozen=True, eq=False)
class OfSongs:
    """Adversaries of excerpts, by attacking the songs they are from: one perturbation for the whole song.

    An excerpt's id is "song.frame". Excerpts of one song share their perturbation, so they are of one source.
    """

    songs: Songs
    hearing: Any  # of waveforms
    threshold: float
    attack: CarliniWagner
    signal: str = "waveform"
    strengths: tuple[str, ...] = ()
    whole: OfSongs | None = None  # where this is but the dry run of another attack

    def __call__(self, model: CheckedModel, given: Sequence[Any], ids: Sequence[str], strength: str, seed: int,
                 on_calls: OnCalls) -> Found:
        """One adversary an excerpt, or its error."""
        found: Found = {}
        for number in dict.fromkeys(song_of(case) for case in ids):
            mine = [i for i, case in enumerate(ids) if song_of(case) == number]
            try:
                song = self.songs[number]
                attacked = self.attacked(song, strength, on_calls)
                found |= self._excerpts(model, song, attacked, {i: given[i] for i in mine}, ids, on_calls)
            except (ValueError, TypeError, OSError) as error:
                found |= dict.fromkeys(mine, error)
        return found

    def length(self, ids: Sequence[str]) -> int:
        """Frames of the songs that these excerpts are from, times the steps: what attacking them takes is in proportion."""
        return (self.attack.iterations + 1) * sum(self._frames(number) for number in {song_of(case) for case in ids})

    def _frames(self, number: int) -> int:
        try:
            return self.songs.frames(number)
        except (ValueError, TypeError, OSError):
            return 0  # what cannot be read is told in its turn, and not attacked

    def attacked(self, song: Song, strength: str, on_calls: OnCalls) -> AttackedSong:
        """The song, moved as far as this strength says."""
        full = strength == FULL or self.whole is not None  # few songs turn in every frame, which would end the attack
        method = self.attack if full else replace(self.attack, stop="success", margin=margin_of(strength))
        heard = self.heard
        return attack_song(method, heard, song.wave if self.signal == "waveform" else self.hearing.magnitude(song.wave),
                           self.threshold, on_calls)

    @property
    def heard(self) -> Any:
        """The detector on what is attacked."""
        return self.hearing if self.signal == "waveform" else replace(self.hearing, signal=self.signal)

    def waves(self, song: Song, attacked: AttackedSong) -> NDArray[np.float32]:
        """The attacked song to listen to."""
        if self.signal == "waveform":
            return attacked.adversarial
        made: NDArray[np.float32] = self.hearing.resynthesised(song.wave, attacked.adversarial)
        return made

    def facts(self, attacked: AttackedSong, waves: NDArray[np.float32]) -> dict[str, Any]:
        """Numbers for a record. `played_flipped` counts the frames that turn where the net hears the sound that is played:
        few magnitudes are those of a sound, so an attack on them can be lost when it becomes one."""
        played = attacked.flipped
        if self.signal != "waveform":
            played = (self.hearing.probabilities(waves) > self.threshold) != attacked.sung
        return attacked.facts() | {"epsilon": self.attack.epsilon, "signal": self.signal, "played_flipped": int(played.sum())}

    def _excerpts(self, model: CheckedModel, song: Song, attacked: AttackedSong, given: Mapping[int, Any], ids: Sequence[str],
                  on_calls: OnCalls) -> Found:
        heard, waves = excerpts_of(self.heard.log_mel(attacked.adversarial)), self.waves(song, attacked)
        frames = {i: frame_of(ids[i]) for i in given}
        changed = np.stack([heard(frames[i]) for i in given])
        labels = [model.labels(model(batch)) for batch in (np.stack(list(given.values())), changed)]
        on_calls(2 * len(given))
        facts = self.facts(attacked, waves)
        said: list[int | None] = [None] * len(given)
        if self.signal != "waveform":
            again = excerpts_of(self.hearing.log_mel(waves))
            said = [int(label) for label in model.labels(model(np.stack([again(frames[i]) for i in given])))]
            on_calls(len(given))
        reached = (labels[0] != labels[1]) | (self.whole is not None)
        return {i: Adversary(given[i], changed[j], int(labels[0][j]), int(labels[1][j]), reached[j], facts,
                             Played(stretch(song.wave, frames[i]), stretch(waves, frames[i]), RATE, label=said[j]))
                for j, i in enumerate(given)}


def song_of(case: str) -> int:
    """The number of the song."""
    return int(case.partition(".")[0])


def frame_of(case: str) -> int:
    """The frame that the excerpt is about."""
    return int(case.partition(".")[2])


def excerpts_of(log_mel: NDArray[np.float32]) -> Callable[[int], NDArray[np.float32]]:
    """(frame) -> the excerpt around it; beyond the song there is silence."""
    padded = np.pad(log_mel, ((REACH, REACH), (0, 0)), constant_values=np.float32(SILENT))
    return lambda frame: padded[frame:frame + FRAMES].copy()  # a view would keep the whole song


def stretch(wave: NDArray[np.float32], frame: int) -> NDArray[np.float32]:
    """The samples of the excerpt around a frame."""
    start, end = (frame - REACH) * HOP - HOP // 2, (frame + REACH + 1) * HOP - HOP // 2
    return np.pad(wave[max(start, 0):end], (max(-start, 0), max(end - len(wave), 0)))


# --- which excerpts ---------------------------------------------------------------------------------------------------


def drawn(songs: Songs, hearing: Any, threshold: float, excerpts: int, seed: int, what: str) -> Data:
    """So many excerpts of either answer from each song, drawn at random before anything is attacked.

    So the share of them that is fooled is that of the song's frames. A song that cannot be read is one item, which says why.
    """
    _check_excerpts(excerpts)
    items: list[Item] = []
    for number, name in enumerate(songs.names):
        try:
            items += _drawn_of(number, name, songs[number], hearing, threshold, excerpts, seed)
        except (ValueError, TypeError, OSError) as error:
            items.append(Item(f"{number:03d}.00000", error, name, name))
    return Data(tuple(items), what, rate=RATE)


def _drawn_of(number: int, name: str, song: Song, hearing: Any, threshold: float, excerpts: int, seed: int) -> list[Item]:
    sung, heard = hearing.probabilities(song.wave) > threshold, excerpts_of(hearing.log_mel(song.wave))
    truth = None if song.sung is None else song.labels
    return [Item(f"{number:03d}.{frame:05d}", heard(frame), f"{name} at {frame / FRAME_RATE:.2f} s", name,
                 None if truth is None else CLASSES[int(truth[frame])])
            for frame in chosen(sung, excerpts, seed, number)]


def _check_excerpts(excerpts: Any) -> None:
    if isinstance(excerpts, bool) or not isinstance(excerpts, int) or excerpts < 1:
        raise ValueError(f"excerpts must be a whole number >= 1, of either answer from each song, got {excerpts!r}")


def brief(of: OfSongs, excerpts: int, seed: int, what: str) -> tuple[Data, OfSongs]:
    """Inputs and adversaries of a dry run: a stretch of the first song that can be read, and few steps, which are larger.

    Of the other songs nothing is asked but how long they are. A step takes as long whatever its size; as the attack is not the
    one that will be made, every excerpt is taken as fooled.
    """
    _check_excerpts(excerpts)
    for number, name in enumerate(of.songs.names):
        try:
            song = _telling(of.songs[number], of.hearing, of.threshold)
        except (ValueError, TypeError, OSError):
            continue
        items = _drawn_of(number, name, song, of.hearing, of.threshold, min(excerpts, TRIED), seed)
        items += [Item(f"{n:03d}.{slot}", NotRead(), other, other) for n, other in enumerate(of.songs.names)
                  for slot in range(len(items) if n == number else 0, 2 * excerpts)]
        steps = min(of.attack.iterations, STEPS)
        attack = replace(of.attack, iterations=steps, step=max(of.attack.step, 2 * of.attack.epsilon / steps), stop="never")
        alone = Songs(of.songs.names, {number: song}.__getitem__)
        return Data(tuple(items), what, rate=RATE), replace(of, songs=alone, attack=attack, whole=of)
    return drawn(of.songs, of.hearing, of.threshold, excerpts, seed, what), of  # none can be read, and each says why


def _telling(song: Song, hearing: Any, threshold: float) -> Song:
    """The stretch of the song's beginning in which the rarer of the two answers is given to the most whole excerpts."""
    wave = song.wave[:LISTENED * HOP]
    sung = np.concatenate([[0], np.cumsum(hearing.probabilities(wave) > threshold)])
    starts = np.arange(max(len(sung) - BRIEF, 1))
    singing = sung[np.minimum(starts + BRIEF - REACH, len(sung) - 1)] - sung[np.minimum(starts + REACH, len(sung) - 1)]
    start = int(np.argmax(np.minimum(singing, BRIEF - 2 * REACH - singing)))
    return Song(song.name, wave[start * HOP:(start + BRIEF) * HOP], None)


def songs_in(folder: str | Path) -> Songs:
    """The test songs of an annotated set, or every song of a folder without annotations."""
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"inputs must be a folder of songs, got {str(folder)!r}, which is none")
    if next(root.rglob("*.lab"), None) is not None:
        return jamendo(root).test
    paths = files.inside(root, audio.SUFFIXES)
    if not paths:
        raise ValueError(f"{folder} must hold songs ({', '.join(audio.SUFFIXES)}), got none")
    return Songs(tuple(str(path.relative_to(root)) for path in paths), partial(_read, tuple(paths)),
                 lambda number: audio.seconds(paths[number]))


def _read(paths: Sequence[Path], number: int) -> Song:
    return Song(paths[number].stem, audio.read(paths[number], RATE)[0], None)


def chosen(sung: NDArray[np.bool_], excerpts: int, seed: int, number: int) -> list[int]:
    """Frames of either answer, in order; those whose excerpt would reach beyond the song are left out."""
    whole = np.arange(REACH, len(sung) - REACH)
    rng, found = generator(seed, "excerpts", number), []
    for answer in (True, False):
        there = whole[sung[whole] == answer]
        found += rng.choice(there, min(excerpts, len(there)), replace=False).tolist()
    return sorted(found)


def song_attack(given: Any) -> tuple[str, CarliniWagner, Any]:
    """(signal, attack, margins of further strengths) of what a spec says about the attack on songs."""
    options = dict(given) if isinstance(given, Mapping) else {} if given is None else {"method": given}
    method, signal, margins = options.pop("method", "carlini_wagner"), options.pop("signal", "waveform"), options.pop(
        "strengths", ())
    if method != "carlini_wagner":
        raise ValueError(f"songs are attacked as a whole, by attack 'carlini_wagner', got {method!r}")
    if signal not in SIGNALS:
        raise ValueError(f"signal must be one of {', '.join(SIGNALS)}, got {signal!r}{near(str(signal), SIGNALS)}")
    allowed = {field.name for field in fields(CarliniWagner)}
    for name in options:
        if name not in allowed:
            raise TypeError(f"carlini_wagner has no option {name!r}{near(name, allowed | {'signal', 'strengths'})}")
    settings: dict[str, Any] = {**SIGNALS[signal], "stop": "never", **options}
    return signal, CarliniWagner(**settings), margins
