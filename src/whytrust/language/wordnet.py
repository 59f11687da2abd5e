"""WordNet's synonyms, read from its own database files (index.*, data.*, *.exc of WordNet 3.x); nothing else is needed."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from whytrust import files
from whytrust.language.forms import MOST, fitting, part_of, readings, stem_of
from whytrust.language.tags import penn_at
from whytrust.language.written import Written

FILES = {"NOUN": "noun", "VERB": "verb", "ADJ": "adj", "ADV": "adv"}
_OF_LETTER = {"n": "NOUN", "v": "VERB", "a": "ADJ", "s": "ADJ", "r": "ADV"}
_ENDINGS = {  # what is taken off a form, and what is put there, to get an entry
    "NOUN": (("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"), ("ies", "y")),
    "VERB": (("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")),
    "ADJ": (("er", ""), ("est", ""), ("er", "e"), ("est", "e")), "ADV": ()}


@dataclass(frozen=True)
class WordNet:
    """Words that share a meaning with a word, the meanings it has most often first; known opposites are left out.

    Which of its meanings a word has in a text is not known, so many of them fit another one.
    """

    folder: str | None = None
    most: int = MOST

    def __post_init__(self) -> None:
        """Refuse a folder without the database."""
        needed = [self._place / f"{kind}.{part}" for part in FILES.values() for kind in ("index", "data")]
        lacking = [path.name for path in needed if not path.is_file() or not path.stat().st_size]
        if lacking:
            raise ValueError(f"WordNet's database must be in {self._place}, which has no (or an empty) {lacking[0]}; pass "
                             "the folder with its index.* and data.* files, or install it (Debian: wordnet-base)")

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return "WordNet" if self.folder is None else f"WordNet in {self.folder}"

    def __call__(self, text: Written, place: int) -> list[str]:
        """Synonyms of the word at this place, in its case and form."""
        word, tag = text.words[place], penn_at(text, place)
        stem = stem_of(word)[0]
        part = next((part for _, part in readings(stem.lower(), tag)), part_of(tag))
        if not part:
            return []
        return fitting(self.synonyms(stem, part), word, tag, self.most, base=True, opposites=self.opposites)

    def synonyms(self, word: str, part: str) -> list[str]:
        """Words in the same sets of synonyms, of one part of speech (NOUN, VERB, ADJ, ADV), meanings in WordNet's order."""
        bases = self._bases(word.lower(), part)
        found = (other for base in bases for at in self._senses(base, part) for other in self._set(part, at).words)
        return [other for other in dict.fromkeys(found) if other.lower() not in bases and "_" not in other]

    def opposites(self, word: str) -> frozenset[str]:
        """Antonyms of a word in any of its meanings; of an adjective also those of what it is similar to, and their like."""
        found = set[str]()
        for part in FILES:
            for base in self._bases(word.lower(), part):
                for at in self._senses(base, part):
                    own = self._set(part, at)
                    found.update(self._against(own, base))
                    for head in (self._set(part, at) for at in own.similar):
                        found.update(other for name in head.words for other in self._against(head, name))
        return frozenset(other.lower() for other in found)

    def _against(self, own: _Set, word: str) -> Iterator[str]:
        """The antonyms of one word of a set, and all that is similar to them."""
        number = next((i + 1 for i, name in enumerate(own.words) if name.lower() == word.lower()), 0)
        for part, at, source, target in own.opposite:
            if source in (0, number):
                other = self._set(part, at)
                yield from other.words if target == 0 else other.words[target - 1:target]
                for near in other.similar:
                    yield from self._set(part, near).words

    # --- the files ---------------------------------------------------------------------------------------------------

    @property
    def _place(self) -> Path:
        if self.folder is not None:
            return Path(self.folder)
        home = os.environ.get("WNHOME")
        return Path(home) / "dict" if home else Path("/usr/share/wordnet")

    def _bases(self, word: str, part: str) -> tuple[str, ...]:
        """The entries that the word can be a form of: itself, those of the list of exceptions, else by its ending."""
        index, exceptions = _index(str(self._place), part), _exceptions(str(self._place), part)
        own = (word,) if word in index else ()
        formed = exceptions.get(word) or tuple(
            word[:len(word) - len(end)] + put for end, put in _ENDINGS[part] if word.endswith(end) and len(word) > len(end) + 1)
        return tuple(dict.fromkeys((*own, *(base for base in formed if base in index))))

    def _senses(self, base: str, part: str) -> tuple[int, ...]:
        """Where the sets of synonyms are that hold an entry, the most frequent first."""
        line = _index(str(self._place), part)[base]
        try:
            fields = line.split()  # part, sets, pointers, one a pointer, senses, tagged, one offset a set
            offsets = tuple(int(field) for field in fields[5 + int(fields[2]):])
            if len(offsets) != int(fields[1]):
                raise ValueError(fields[1])
        except (ValueError, IndexError) as error:
            raise ValueError(f"index.{FILES[part]} in {self._place} must be WordNet 3.x's, its line of {base!r} is not: "
                             f"{line[:80]!r}") from error
        return offsets

    def _set(self, part: str, at: int) -> _Set:
        return _set(str(self._place), part, at)


class _Set(NamedTuple):
    """Words that mean the same; where similar ones are, and antonyms: (part, offset, own word's number, the other's)."""

    words: tuple[str, ...]
    similar: tuple[int, ...]
    opposite: tuple[tuple[str, int, int, int], ...]


@cache
def _index(folder: str, part: str) -> dict[str, str]:
    """What the index says of each entry."""
    lines = files.text(Path(folder) / f"index.{FILES[part]}", "an index of WordNet", errors="replace").split("\n")
    entries = (line.partition(" ") for line in lines if not line.startswith(" "))  # the licence is indented
    return {entry: rest.strip() for entry, _, rest in entries if entry and "_" not in entry}


@cache
def _exceptions(folder: str, part: str) -> dict[str, tuple[str, ...]]:
    """Irregular forms and their entries; the file may be lacking."""
    path = Path(folder) / f"{FILES[part]}.exc"
    if not path.is_file():
        return {}
    lines = files.text(path, "WordNet's irregular forms", errors="replace").split("\n")
    return {form: tuple(entries) for form, *entries in (line.split() for line in lines if line.strip())}


@cache
def _data(folder: str, part: str) -> mmap.mmap:
    with (Path(folder) / f"data.{FILES[part]}").open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


@cache
def _set(folder: str, part: str, at: int) -> _Set:
    """One line of the data: offset, file, type, how many words, each with its id, how many pointers, each of four fields."""
    data = _data(folder, part)
    end = data.find(b"\n", at)
    fields = data[at:end if end >= 0 else len(data)].decode("utf-8", errors="replace").partition(" | ")[0].split()
    try:
        if int(fields[0]) != at:
            raise ValueError(fields[0])
        count = int(fields[3], 16)
        words = tuple(fields[4 + 2 * i].partition("(")[0] for i in range(count))
        first = 5 + 2 * count
        if int(fields[first - 1]) > len(fields):
            raise ValueError(fields[first - 1])
        pointers = [fields[first + 4 * i:first + 4 * i + 4] for i in range(int(fields[first - 1]))]
        similar = tuple(int(offset) for kind, offset, _, _ in pointers if kind == "&")
        opposite = tuple((_OF_LETTER[letter], int(offset), int(pair[:2], 16), int(pair[2:], 16))
                         for kind, offset, letter, pair in pointers if kind == "!")
    except (ValueError, IndexError, KeyError) as error:
        raise ValueError(f"data.{FILES[part]} in {folder} must be WordNet 3.x's and go with its index; at {at} stands "
                         f"{' '.join(fields[:6])[:80]!r}") from error
    return _Set(words, similar, opposite)
