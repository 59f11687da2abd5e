"""Word vectors in text format (word2vec's with a first line, GloVe's without one): which words lie near which?

A file is read once, line by line, into an index in the user's cache that is mapped into memory: opening it again costs nothing,
and several processes share it. The index is made anew when the file has changed.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from whytrust import files, limits
from whytrust.language.forms import MOST, Opposites, fitting, readings, stem_of
from whytrust.language.tags import penn_at
from whytrust.language.written import Written
from whytrust.models.minilm import cache_folder

FORMAT = 1
"""Raise it when what the index holds changes."""
ROWS = 2048
"""Vectors in memory at once while a file is read, and while all are compared with one."""
_NUMBERS = 1 << 22
"""Numbers in memory at once while a file is read: 32 MB."""
_LINE = 1 << 20
"""Bytes: the longest line. A file without line ends is not in text format."""
_DIGITS = 16
"""Of no number of words or of numbers are there so many."""
_SMALL = 1 << 16
"""Bytes: a .gz file that is smaller is taken to be as large, for a toy may well be all zeros and ones."""
_ROUNDING = 1e-4
"""Of a cosine in single precision, by far."""


@dataclass(frozen=True)
class WordVectors:
    """Vectors of length 1, one a word. Of a pickled one the file's name travels; where it is read, the index is used again."""

    path: str
    key: str  # another file of that name has another

    @classmethod
    def open(cls, path: str | Path) -> WordVectors:
        """The vectors of a file; the first time it is read and indexed, some ten seconds for 100 MB."""
        place = Path(os.path.realpath(path))  # which takes a circle of links for a place, too, where nothing is
        if not place.is_file():
            raise ValueError(f"word vectors must be a file in text format, a word and its numbers a line; {path} is not there")
        key = _key(place)
        _table(str(place), key)
        return cls(str(place), key)

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return f"word vectors in {self.path}"

    def __len__(self) -> int:
        """How many words have a vector."""
        return len(self._all.sorted[0])

    def __contains__(self, word: object) -> bool:
        """Has the word a vector, as it is written, in lower case, or without its 's?"""
        return isinstance(word, str) and self._all.row(word) is not None

    def similarity(self, one: str, other: str) -> float | None:
        """The cosine between two words; None where one of them has no vector. "Film's" is also looked up as "film"."""
        rows = self._all.row(one), self._all.row(other)
        if rows[0] is None or rows[1] is None:
            return None
        first, second = (self._all.vectors[row].astype(np.float64) for row in rows)
        return float(np.clip((first * second).sum(), -1, 1))

    def nearest(self, word: str, k: int = MOST, least: float = 0.5) -> list[tuple[str, float]]:
        """The k words with the largest cosines to it, of at least `least`, and these; of equals, the first of the file."""
        row = self._all.row(word)
        return [] if row is None or k < 1 else list(_nearest(self, row, k, least))

    @property
    def _all(self) -> _Table:
        return _table(self.path, self.key)


@dataclass(frozen=True)
class NearestWords:
    """The k nearest words by word vectors, with a cosine of at least `least`, in the word's case and form.

    Vectors made from what stands near what put opposites together: pass what knows them, such as WordNet().opposites.
    """

    vectors: WordVectors
    k: int = MOST
    least: float = 0.5
    antonyms: Opposites | None = None

    def __post_init__(self) -> None:
        """Refuse what is no number of words, and no cosine."""
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise ValueError(f"k must be a whole number of words >= 1, got {self.k!r}")
        if isinstance(self.least, bool) or not isinstance(self.least, int | float) or not -1 <= self.least <= 1:
            raise ValueError(f"least must be a cosine from -1 to 1, got {self.least!r}")

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return f"the {self.k} nearest {self.vectors.name}, cosine at least {self.least:g}"

    def __call__(self, text: Written, place: int) -> list[str]:
        """The neighbours of the word at this place, or of its entry in a dictionary where only that has a vector."""
        word, tag = text.words[place], penn_at(text, place)
        stem = stem_of(word)[0]
        entries = (stem, *(entry for entry, _ in readings(stem.lower(), tag)))
        known = next((entry for entry in entries if entry in self.vectors), stem)
        found = (other for other, _ in self.vectors.nearest(known, self.k, self.least))
        return fitting(found, word, tag, min(self.k, MOST), opposites=self.antonyms)


@lru_cache(maxsize=1 << 12)
def _nearest(table: WordVectors, row: int, k: int, least: float) -> tuple[tuple[str, float], ...]:
    """All rows in single precision, a chunk at a time, and in double precision those that may be among the first."""
    vectors = table._all.vectors
    own = vectors[row]
    cosines = np.concatenate([vectors[start:start + ROWS] @ own for start in range(0, len(vectors), ROWS)])
    cosines = np.nan_to_num(cosines, nan=-np.inf)
    cosines[row] = -np.inf
    floor = least if len(cosines) <= k else max(least, float(np.partition(cosines, -k)[-k]))
    rows = np.flatnonzero(cosines >= max(floor - _ROUNDING, -2))
    exact = np.clip((vectors[rows].astype(np.float64) * own.astype(np.float64)).sum(axis=1), -1, 1)
    best = [i for i in np.argsort(-exact, kind="stable") if exact[i] >= least][:k]
    return tuple((table._all.word(int(rows[i])), float(exact[i])) for i in best)


# --- the index --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Table:
    """An index as it lies on disk: vectors, the words' letters one behind the other, and the rows in the order of their hashes.

    A row whose word stood further up in the file already is not a number, and so near nothing.
    """

    folder: Path

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """(rows, dimensions), mapped into memory."""
        every = np.memmap(self.folder / "vectors", dtype=np.float32, mode="r")
        return np.asarray(every.reshape(len(self._ends), -1))

    @cached_property
    def sorted(self) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """The hashes of all words, rising, and their rows."""
        return open_memmap(self.folder / "hashes.npy", mode="r"), open_memmap(self.folder / "rows.npy", mode="r")

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.asarray(open_memmap(self.folder / "ends.npy", mode="r"))

    @cached_property
    def _letters(self) -> NDArray[np.uint8]:
        return np.asarray(np.memmap(self.folder / "letters", dtype=np.uint8, mode="r"))

    def word(self, row: int) -> str:
        """Whose vector is it?"""
        return self._letters[self._ends[row - 1] if row else 0:self._ends[row]].tobytes().decode("utf-8")

    def row(self, word: str) -> int | None:
        """Where the word's vector is, as it is written, else in lower case, else of what a 's hangs on."""
        hashes, rows = self.sorted
        for one in dict.fromkeys((word, word.lower(), stem_of(word)[0].lower())):
            at = int(np.searchsorted(hashes, _hash(one)))
            if at < len(hashes) and self.word(int(rows[at])) == one:
                return int(rows[at])
        return None


def _hash(word: str) -> np.uint64:
    raw = word.encode("utf-8", errors="surrogatepass")
    return np.uint64(int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little"))


def _key(path: Path) -> str:
    found = path.stat()
    return hashlib.sha256(json.dumps([FORMAT, str(path), found.st_size, found.st_mtime_ns]).encode()).hexdigest()[:16]


@cache
def _table(path: str, key: str) -> _Table:
    """The index of a file: what is in the cache, or made now and put there."""
    of_file = f"vectors-{hashlib.sha256(path.encode()).hexdigest()[:16]}-"
    folder = cache_folder() / f"{of_file}{key}"
    if folder.exists() and not _fits(folder):
        shutil.rmtree(folder, ignore_errors=True)
    if not (folder / "rows.npy").is_file():
        if not Path(path).is_file() or _key(Path(path)) != key:
            raise ValueError(f"the file of word vectors {path} must be as it was when it was opened; open it again")
        _make(Path(path), folder)
        for old in set(folder.parent.glob(f"{of_file}" + "[0-9a-f]" * len(key))) - {folder}:
            shutil.rmtree(old, ignore_errors=True)
    return _Table(folder)


def _fits(folder: Path) -> bool:
    """Is an index whole? Others may have written to the cache, or a disk have been full."""
    try:
        table = _Table(folder)
        (hashes, rows), ends, words = table.sorted, table._ends, len(table.vectors)
        kinds = [str(one.dtype) for one in (hashes, rows, ends)]
        whole = kinds == ["uint64", "int64", "int64"] and 0 < len(hashes) == len(rows) <= words == len(ends)
        return bool(whole and 0 <= rows.min() <= rows.max() < words and ends[-1] == len(table._letters)
                    and (np.diff(ends) >= 0).all())
    except (OSError, ValueError, EOFError):
        return False


def _make(path: Path, folder: Path) -> None:
    """Written beside its place and moved there when it is complete, so that nobody ever reads half of it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise ValueError(f"word vectors are indexed in {folder.parent}, which must be writable ({error}); set XDG_CACHE_HOME "
                         "to a folder that is") from error
    try:
        _index(path, made)
        with contextlib.suppress(OSError):  # another process was quicker, and its index is as good
            os.replace(made, folder)
        if not (folder / "rows.npy").is_file():
            raise ValueError(f"the index of word vectors could not be moved to {folder}; remove what is there")
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _index(path: Path, folder: Path) -> None:
    """Read the file in a stream; of words that occur twice, the first counts."""
    lengths, hashes, dimensions = list[int](), list[NDArray[np.uint64]](), 0
    with (folder / "vectors").open("wb") as vectors, (folder / "letters").open("wb") as letters:
        for words, numbers in _chunks(path):
            dimensions = numbers.shape[1]
            vectors.write((numbers / np.linalg.norm(numbers, axis=1, keepdims=True)).astype(np.float32).tobytes())
            raw = [word.encode("utf-8") for word in words]
            letters.write(b"".join(raw))
            lengths += map(len, raw)
            hashes.append(np.array([_hash(word) for word in words], dtype=np.uint64))
    if not lengths:
        raise ValueError(f"{path} must hold word vectors, and has none that is not all zeros")
    distinct, rows = np.unique(np.concatenate(hashes), return_index=True)
    again = np.setdiff1d(np.arange(len(lengths)), rows, assume_unique=True)
    if len(again):
        every = np.memmap(folder / "vectors", dtype=np.float32, mode="r+", shape=(len(lengths), dimensions))
        every[again] = np.nan
        every.flush()
    np.save(folder / "ends.npy", np.cumsum(lengths))
    np.save(folder / "hashes.npy", distinct)
    np.save(folder / "rows.npy", rows)


# --- the file ---------------------------------------------------------------------------------------------------------


def _chunks(path: Path) -> Iterator[tuple[list[str], NDArray[np.float64]]]:
    """The words of a file and their vectors, some at a time; vectors of zeros are left out, for they point nowhere."""
    words, numbers = list[str](), list[NDArray[np.float64]]()
    for word, values in _vectors(path):
        words.append(word)
        numbers.append(values)
        if len(words) == ROWS or len(words) * len(values) >= _NUMBERS:
            yield from _some(path, words, numbers)
            words, numbers = [], []
    yield from _some(path, words, numbers)


def _some(path: Path, words: list[str],
          numbers: list[NDArray[np.float64]]) -> Iterator[tuple[list[str], NDArray[np.float64]]]:
    if not words:
        return
    values = np.array(numbers)
    largest = np.abs(values).max(axis=1)
    if not np.isfinite(largest).all():
        raise ValueError(f"the numbers of word vectors must be finite; {path} has others for "
                         f"{words[int(np.argmin(np.isfinite(largest)))]!r}")
    some = np.flatnonzero(largest > 0)
    if len(some):
        yield [words[i] for i in some], values[some] / largest[some, None]


def _vectors(path: Path) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Line by line; a first line of two whole numbers says how many words there are, and how many numbers each has."""
    promised, dimensions, count = 0, 0, 0
    with _opened(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(_LINE), b""), 1):
            fields = line.split()
            if number == 1 and len(fields) == 2 and all(field.isdigit() and len(field) < _DIGITS for field in fields):
                promised, dimensions = map(int, fields)
                continue
            if not fields:
                continue
            dimensions = dimensions or len(fields) - 1
            if dimensions > limits.DIMENSIONS:
                raise ValueError(f"word vectors must have at most {limits.DIMENSIONS:,} numbers, and those of {path} have "
                                 f"{dimensions:,}; take fewer dimensions")
            count += 1
            values = _numbers(fields[len(fields) - dimensions:]) if dimensions else None
            # Some words of GloVe's have spaces in them; nobody can ask for these.
            spaced = len(fields) > dimensions + 1 and _numbers(fields[-dimensions - 1:-dimensions]) is None
            if values is None or not (spaced or len(fields) == dimensions + 1) or b"\0" in line or len(line) == _LINE:
                raise ValueError(f"word vectors must be in text format, a word and {dimensions or 'its'} numbers a line, all "
                                 f"of one length; line {number} of {path} is {line[:60]!r}; convert a binary file first")
            word = fields[0].decode("utf-8", errors="replace")
            if not spaced and "\N{REPLACEMENT CHARACTER}" not in word:
                yield word, values
    if count < max(promised, 1):
        raise ValueError(f"{path} must hold word vectors in text format, {promised or 'one'} or more, and has {count}; it is "
                         "empty or cut off")


def _numbers(fields: list[bytes]) -> NDArray[np.float64] | None:
    try:
        return np.fromiter(map(float, fields), np.float64, len(fields))  # Python's own numbers take four times the room
    except ValueError:
        return None


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """As it is, or unpacked where its name ends in .gz."""
    with files.opened(path, "word vectors in text format", limits.VECTORS) as file:
        if path.suffix != ".gz":
            yield file
            return
        try:
            yield _Unpacked(file, path)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(f"{path} must be a whole gzip file ({error})") from error


class _Unpacked(gzip.GzipFile):
    """A .gz file that refuses to go on where it unpacks to more than any text would."""

    def __init__(self, packed: IO[bytes], path: Path) -> None:
        super().__init__(fileobj=packed, mode="rb")
        self._path, self._left = path, min(limits.UNPACKED * max(path.stat().st_size, _SMALL), limits.VECTORS)

    def readline(self, most: int | None = -1) -> bytes:
        """A line, or so many bytes of it."""
        found = super().readline(-1 if most is None else most)
        self._left -= len(found)
        if self._left < 0:
            raise ValueError(f"{self._path} must unpack to at most {limits.UNPACKED} times its size, or "
                             f"{files.size(limits.VECTORS)}, and does to more; unpack it yourself and name what comes out")
        return found
