"""Annotated songs as they lie on disk, as the Jamendo set does (Ramona et al. 2008), and songs made by the synthesiser.

Sounds are read when they are asked for, and a song that is wrong says so then: one bad song never hides the others.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

from whytrust import files
from whytrust.domains import audio
from whytrust.models.songs import FRAME_RATE, FRAMES, RATE, Song, Songs, SongSet, Stretches, Wave
from whytrust.models.songs import synthesised as pieces
from whytrust.progress import CaseProgress

SPLITS = ("train", "valid", "test")
WORDS = {"sing": True, "nosing": False}
JOINED, COVERED = 0.01, 0.5
"""Seconds: two lines of a .lab file may overlap or lie apart by the first, and its ends and the song's by the second."""
_SYNTHESISED = 1000  # of the synthesiser's seeds: clear of those that demos are made from


# --- from the synthesiser ---------------------------------------------------------------------------------------------


def synthesised(seed: int = 0, train: int = 200, valid: int = 20, test: int = 40, seconds: float = 20.0) -> SongSet:
    """Pieces of the synthesiser, told apart by seed: none of one part is in another, or in another seed's set.

    They are no music that anybody would listen to: what a detector of them is worth on recordings must be asked of recordings.
    """
    first = _SYNTHESISED + len(SPLITS) * seed
    what = f"{train} + {valid} + {test} synthesised pieces of {seconds:g} s, seed {seed}"
    return SongSet(what, pieces(first, train, seconds), pieces(first + 1, valid, seconds), pieces(first + 2, test, seconds))


# --- from disk --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Listed:
    """A song that belongs to a part of the set, and where that was said."""

    name: str
    where: str


def jamendo(folder: str | os.PathLike[str]) -> SongSet:
    """A folder of sounds and .lab files, and which songs to train, tune and test on.

    Sounds and .lab files may lie anywhere in it and are matched by name. The parts are lists in filelists/train, valid and test
    (with .txt or without) or train.txt, …, or else folders called train, valid and test that hold the sounds. What is wrong
    with a song, in its .lab file or its sound, is said when that song is asked for; see `readable`.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"annotated songs must be in a folder, got {os.fspath(folder)!r}, which is none; check the path")
    sounds, labels = _by_name(root, audio.SUFFIXES), _by_name(root, (".lab",))
    if not sounds:
        raise ValueError(f"{root} must hold songs ({', '.join(audio.SUFFIXES)}), got none")
    parts = _listed(root) or _in_folders(root, sounds)
    _check_apart(parts)
    made = [Songs(tuple(one.name for one in parts[split]), partial(_song, root, tuple(parts[split]), sounds, labels),
                  partial(_seconds, root, tuple(parts[split]), sounds)) for split in SPLITS]
    return SongSet(f"{root.name}: {' + '.join(str(len(songs)) for songs in made)} songs", *made)


def readable(songs: SongSet, least: int = FRAMES) -> tuple[SongSet, tuple[str, ...]]:
    """(the songs that can be read, what is wrong with each of the others), after reading every one once.

    Training songs must have at least `least` frames. A part of which nothing is left is an error: nothing could be learnt,
    tuned or tested.
    """
    problems: list[str] = []
    kept = {}
    progress = CaseProgress("reading songs", sum(len(getattr(songs, split)) for split in SPLITS))
    with progress:
        for split in SPLITS:
            part: Songs = getattr(songs, split)
            good, wrong = _tried(part, least if split == "train" else FRAMES, progress)
            if not good:
                first = f", the first because {wrong[0]}" if wrong else ""
                raise ValueError(f"at least one {split} song of {songs.what} must be readable, got none of {len(part)}{first}")
            problems += wrong
            kept[split] = Songs(tuple(part.names[i] for i in good), partial(_chosen, part, tuple(good)))
    return SongSet(songs.what, **kept), tuple(problems)


def _tried(songs: Songs, least: int, progress: CaseProgress) -> tuple[list[int], list[str]]:
    good, wrong = [], []
    for number, name in enumerate(songs.names):
        progress.finished(1)
        try:
            song = songs[number]
            if song.frames < least:
                raise ValueError(f"{name} must be at least {least} frames ({least / FRAME_RATE:.2f} s) long to be trained on, "
                                 f"got {song.frames} ({song.seconds:.2f} s)")
            good.append(number)
        except (ValueError, OSError) as error:
            wrong.append(" ".join(str(error).split()))
    return good, wrong


def _chosen(songs: Songs, numbers: Sequence[int], number: int) -> Song:
    return songs[numbers[number]]


# --- the parts of a set -----------------------------------------------------------------------------------------------


def _by_name(root: Path, suffixes: Sequence[str]) -> dict[str, list[Path]]:
    found = defaultdict(list)
    for path in files.inside(root, suffixes):
        if not path.name.startswith(".") and path.is_file():
            found[path.stem].append(path)
    return dict(found)


def _listed(root: Path) -> dict[str, list[_Listed]] | None:
    """The songs of each list, or None where there are no lists."""
    places = {split: [p for p in (root / "filelists" / split, root / "filelists" / f"{split}.txt", root / f"{split}.txt")
                      if p.is_file()] for split in SPLITS}
    if not any(places.values()):
        return None
    missing = [split for split in SPLITS if not places[split]]
    if missing:
        raise ValueError(f"{root} must hold a list of songs for each of {', '.join(SPLITS)}, and has none for "
                         f"{', '.join(missing)}; add filelists/{missing[0]}.txt with a song a line")
    return {split: _lines(places[split][0]) for split in SPLITS}


def _lines(path: Path) -> list[_Listed]:
    found = []
    for number, line in enumerate(_said(path, "a list of songs").splitlines(), 1):
        name = Path(line.strip().replace("\\", "/")).name
        # A title may have a dot of its own: only what is the suffix of a sound is taken off.
        if Path(name).suffix.lower() in (*audio.SUFFIXES, ".lab"):
            name = Path(name).stem
        if name and not line.lstrip().startswith("#"):
            found.append(_Listed(name, f"{path}, line {number}"))
    if not found:
        raise ValueError(f"{path} must name a song a line, and is empty")
    return found


def _in_folders(root: Path, sounds: dict[str, list[Path]]) -> dict[str, list[_Listed]]:
    """Songs by the folder called train, valid or test that they lie in."""
    parts: dict[str, list[_Listed]] = {split: [] for split in SPLITS}
    for name, paths in sounds.items():
        for path in paths:
            for split in SPLITS:
                if split in path.relative_to(root).parts[:-1]:
                    parts[split].append(_Listed(name, str(path)))
    missing = [split for split in SPLITS if not parts[split]]
    if missing:
        raise ValueError(f"{root} must say which songs to train, tune and test on: lists filelists/train.txt, valid.txt and "
                         f"test.txt, or folders train, valid and test with songs in them; found none for {', '.join(missing)}")
    return parts


def _check_apart(parts: dict[str, list[_Listed]]) -> None:
    """Who is tested on what it was trained on learns nothing of the test."""
    seen: dict[str, _Listed] = {}
    for one in (one for split in SPLITS for one in parts[split]):
        if one.name in seen:
            raise ValueError(f"a song must be in one part of the set, once: {one.name[:80]!r} is in {seen[one.name].where} and "
                             f"in {one.where}; take it out of one")
        seen[one.name] = one


def _said(path: Path, what: str) -> str:
    return files.text(path, what, encoding="utf-8-sig", errors="replace")


# --- one song ---------------------------------------------------------------------------------------------------------


def _song(root: Path, listed: Sequence[_Listed], sounds: dict[str, list[Path]], labels: dict[str, list[Path]],
          number: int) -> Song:
    one = listed[number]
    sound, lab = (_place(root, one, what, found) for what, found in (("a sound file", sounds), ("a .lab file", labels)))
    wave = _wave(sound)
    return Song(one.name, wave, annotated(lab, len(wave) / RATE))


def _seconds(root: Path, listed: Sequence[_Listed], sounds: dict[str, list[Path]], number: int) -> float:
    return audio.seconds(_place(root, listed[number], "a sound file", sounds))


def _place(root: Path, one: _Listed, what: str, found: dict[str, list[Path]]) -> Path:
    there = found.get(one.name, [])
    if len(there) != 1:
        got = "none" if not there else "several: " + ", ".join(str(path) for path in there)
        raise ValueError(f"{one.name[:80]!r} ({one.where}) must have {what} of its name in {root}, got {got}")
    return there[0]


def _wave(path: Path) -> Wave:
    wave = audio.read(path, RATE)[0]
    if not np.isfinite(wave).all():
        raise ValueError(f"{path} must hold finite samples, got some that are not; mend the recording, or take it out of the "
                         "list")
    if not wave.any():
        raise ValueError(f"{path} must not be silent from beginning to end, got zeros alone; is a channel empty? Take it out "
                         "of the list if it is to be so")
    if len(wave) < FRAMES / FRAME_RATE * RATE:
        raise ValueError(f"{path} must be at least an excerpt long, {FRAMES / FRAME_RATE:.2f} s, got {len(wave) / RATE:.2f} s; "
                         "take it out of the list")
    return wave


@dataclass(frozen=True)
class _Line:
    """start, end and whether somebody sings in between, and where that is written."""

    where: str
    start: float
    end: float
    sung: bool

    @classmethod
    def read(cls, where: str, text: str) -> _Line:
        words = text.partition("#")[0].split()  # what follows is a comment
        if len(words) != 3:
            raise ValueError(f"{where}, must be 'start end sing|nosing', got {text.strip()[:60]!r}")
        try:
            start, end = float(words[0]), float(words[1])
        except ValueError as error:
            raise ValueError(f"{where}, must begin with two numbers of seconds, got {text.strip()[:60]!r}") from error
        if words[2] not in WORDS:
            raise ValueError(f"{where}, must end with one of {', '.join(WORDS)}, got {words[2][:60]!r}")
        if not 0 <= start < end < math.inf:
            raise ValueError(f"{where}, must end after it begins, at 0 s or later, got {start:g} to {end:g} s")
        return cls(where, start, end, WORDS[words[2]])


def annotated(path: Path, seconds: float) -> Stretches:
    """When somebody sings, from a .lab file that covers a song of so many seconds; else one error with file and line."""
    texts = enumerate(_said(path, "a .lab file").splitlines(), 1)
    lines = [_Line.read(f"{path}, line {number}", text) for number, text in texts if text.partition("#")[0].strip()]
    if not lines:
        raise ValueError(f"{path} must have lines 'start end sing|nosing', and is empty")
    for before, line in pairwise(lines):
        if abs(line.start - before.end) > JOINED:
            fault = "overlap or are out of order" if line.start < before.end else "leave a gap"
            raise ValueError(f"{line.where}, must begin where the one before it ends, at {before.end:g} s, got {line.start:g}: "
                             f"they {fault}")
    if lines[0].start > COVERED or abs(lines[-1].end - seconds) > COVERED:
        raise ValueError(f"{path} must cover the song, 0 to {seconds:.2f} s, within {COVERED} s, got {lines[0].start:g} to "
                         f"{lines[-1].end:g} s; does it belong to this song?")
    runs = ([*run] for sung, run in groupby(lines, key=lambda line: line.sung) if sung)
    return tuple((run[0].start, run[-1].end) for run in runs)
