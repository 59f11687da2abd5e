"""Files from anywhere, read by one rule: what they are is looked at before they are opened, and how much before it is read.

Whatever is wrong is one ValueError that names the file: pipes and devices are never opened, for they might never end.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import os
import re
import stat
import sys
import threading
import tomllib
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from whytrust import limits
from whytrust.core import need

Place = str | os.PathLike[str]
_PIECE = 1 << 20
_HEAD = 4 * limits.LINE
"""Bytes of a table in which its heading and its first row must end."""
_ARRAY_HEAD = 10_000
"""Bytes of the head of an array, as numpy has it."""
_MUCH = 256 * limits.MIB
"""Bytes that an array may always unpack to, for one of nothing but zeros does to a thousand times its size."""
_AGAIN = 1000
"""Columns of a table that may have the name of one before them; pandas compares each with all."""
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{limits.KEYS}}}""")


def checked(path: Place, what: str, most: int | None = None) -> Path:
    """A plain file that is there, with at most so many bytes; `what` says in a few words what it must be."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        raise ValueError(f"{os.fspath(path)} must be {what}, and does not exist; check the path") from None
    except (OSError, ValueError) as error:  # such as a circle of links, a name too long, or one that no file can have
        raise ValueError(f"{os.fspath(path)!r} must be {what}, and cannot be opened ({_why(error)})") from error
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "a pipe" if stat.S_ISFIFO(found.st_mode) else "no plain file"
        raise ValueError(f"{os.fspath(path)} must be {what}, and is {kind}; name a file")
    if most is not None and found.st_size > most:
        raise ValueError(f"{os.fspath(path)} must be {what}; it may have at most {size(most)}, and has {size(found.st_size)}; "
                         "divide it")
    return Path(path)


def size(count: int) -> str:
    """Bytes in words."""
    for unit, worth in (("GiB", limits.GIB), ("MiB", limits.MIB), ("KiB", 1024)):
        if count >= worth:
            return f"{count / worth:.4g} {unit}"
    return f"{count} bytes"


_quiet = threading.Lock()
_hushed: list[int] = []


@contextmanager
def hushed() -> Iterator[None]:
    """Inside, nothing reaches standard error: C libraries complain there of files, past Python, and then raise as well."""
    with _quiet:
        if not _hushed:
            _hushed.append(_turned_off())
        _hushed.append(-1)
    try:
        yield
    finally:
        with _quiet:
            _hushed.pop()
            if len(_hushed) == 1 and (kept := _hushed.pop()) >= 0:  # the last of all threads to leave
                os.dup2(kept, 2)
                os.close(kept)


def _turned_off() -> int:
    """Where standard error went; -1 where there is none."""
    if sys.stderr is not None:
        sys.stderr.flush()
    try:
        kept = os.dup(2)
    except OSError:
        return -1
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    return kept


@contextmanager
def telling(path: Place, what: str, otherwise: str = "check that it is whole") -> Iterator[None]:
    """Inside, a library reads what somebody else wrote: whatever it raises becomes one error, and it warns nobody.

    `otherwise` is what to do, where the error does not say that itself.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except Exception as error:
            told = " ".join(str(error).split())[:300] or "no reason is given"
            named = "" if isinstance(error, ValueError | OSError) else f"{type(error).__name__}: "
            then = "" if "; " in told else f"; {otherwise}"
            raise ValueError(f"{os.fspath(path)} must be {what}: {named}{told.rstrip('.')}{then}") from error


def inside(folder: Place, suffixes: Sequence[str] | None = None) -> list[Path]:
    """What a folder and its sub-folders hold with one of these endings, in order; links that lead out of it are refused.

    A folder may come from anyone, and a link in it could name any file of the reader's.
    """
    root = Path(folder)
    named = [one for one in _entries(root) if suffixes is None or os.path.splitext(one.name)[1].lower() in suffixes]
    within = Path(os.path.realpath(root))
    for path in sorted(Path(one.path) for one in named if one.is_symlink()):
        if not (target := Path(os.path.realpath(path))).is_relative_to(within):
            raise ValueError(f"{path} must lie in {root}, and is a link to {target}; copy the file there, or name the folder "
                             "that it is in")
    return sorted(Path(one.path) for one in named)


def _entries(root: Path) -> Iterator[os.DirEntry[str]]:
    """What a folder and its sub-folders hold; those that links lead to are not walked into."""
    waiting, seen = [os.fspath(root)], 0
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                here = list(itertools.islice(entries, limits.ENTRIES + 1 - seen))
        except OSError:  # others' folders, or one that is gone, hold nothing for us
            continue
        seen += len(here)
        if seen > limits.ENTRIES:
            raise ValueError(f"{root} must hold at most {limits.ENTRIES:,} files and folders, and holds more; name the folder "
                             "of the data alone")
        waiting += [one.path for one in here if one.is_dir(follow_symlinks=False)]
        yield from here


# --- texts ------------------------------------------------------------------------------------------------------------


def text(path: Place, what: str = "a text file in UTF-8", most: int = limits.TEXT, encoding: str = "utf-8",
         errors: str = "strict", line: int | None = limits.LINE) -> str:
    """What a text file says, with \\n at the ends of its lines."""
    raw = b"".join(_pieces(path, what, most, line))
    try:
        found = raw.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise ValueError(f"{os.fspath(path)} must be {what}: {error}") from error
    return found.replace("\r\n", "\n").replace("\r", "\n") if "\r" in found else found


def plain(path: Place, what: str, most: int = limits.JSON) -> Any:
    """What a JSON file holds."""
    said = text(path, f"{what}, JSON in UTF-8", most, line=None)
    try:
        return json.loads(said)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{os.fspath(path)} must be {what}, JSON in UTF-8: {error}") from error


def toml(path: Place) -> dict[str, Any]:
    """What a TOML file says."""
    what = "a TOML file in UTF-8"
    said = text(path, what, limits.SPEC)
    with telling(path, what):
        if long := _LONG_KEY.search(said):  # tomllib takes minutes for one of a thousand names
            raise ValueError(f"its keys must be made of at most {limits.KEYS} names, got {long[0][:40]!r} and so on")
        return tomllib.loads(said)


def digest_into(path: Place, what: str, update: Callable[[bytes], object], most: int = limits.TEXT,
                line: int | None = limits.LINE) -> None:
    """A file's bytes, piece by piece, to whoever sums them up."""
    for piece in _pieces(path, what, most, line):
        update(piece)


def _pieces(path: Place, what: str, most: int, line: int | None = limits.LINE) -> Iterator[bytes]:
    """A file's bytes; one that is too large, or has a line that is, is refused as soon as that is seen."""
    held = since = 0
    with opened(path, what, most) as file:
        while piece := file.read(_PIECE):
            held += len(piece)
            first, last = piece.find(b"\n"), piece.rfind(b"\n")
            if line is not None and since + (first if first >= 0 else len(piece)) > line:
                raise ValueError(f"{os.fspath(path)} must be {what}; its lines may have at most {size(line)}, and one is "
                                 "longer; divide it")
            since = since + len(piece) if last < 0 else len(piece) - last - 1
            if held > most:  # it grew, or its size was not told
                raise ValueError(f"{os.fspath(path)} must be {what}; it may have at most {size(most)}, and has more; divide it")
            yield piece


@contextmanager
def opened(path: Place, what: str, most: int | None = None) -> Iterator[IO[bytes]]:
    """A file's bytes, to be read in order."""
    checked(path, what, most)
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise ValueError(f"{os.fspath(path)} must be {what}, and cannot be opened ({_why(error)})") from error
    with os.fdopen(handle, "rb") as file:
        yield file


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


# --- arrays -----------------------------------------------------------------------------------------------------------


def array(path: Place, what: str = "a .npy file of numbers") -> NDArray[Any]:
    """The array of a .npy file; never a pickle, and never more than the file holds."""
    with opened(path, what) as file, telling(path, what):
        return _array(file, os.fstat(file.fileno()).st_size)


def arrays(path: Place, names: Iterable[str], what: str = "a .npz file of arrays") -> dict[str, NDArray[Any]]:
    """Some arrays of a .npz file, as np.savez writes it."""
    with opened(path, what) as file, telling(path, what), zipfile.ZipFile(file) as packed:
        members = {name: f"{name}.npy" for name in names}
        if missing := [name for name, one in members.items() if one not in packed.namelist()]:
            raise ValueError(f"it lacks the array {missing[0]}")
        held = sum(packed.getinfo(one).file_size for one in members.values())
        if held > limits.ARRAY:
            raise ValueError(f"its arrays must have at most {size(limits.ARRAY)} together, and unpack to {size(held)}")
        return {name: member(packed, one) for name, one in members.items()}


def member(packed: zipfile.ZipFile, name: str, empty: bool = False) -> NDArray[Any]:
    """One array of an opened .npz file, which may be `empty`."""
    told = packed.getinfo(name)
    # What it is packed in is a claim as well: it can be no more than the file.
    if told.file_size > max(_MUCH, limits.SWOLLEN * min(told.compress_size, packed.start_dir)):
        raise ValueError(f"an array of more than {size(_MUCH)} must unpack to at most {limits.SWOLLEN} times its size, and "
                         f"{name} does to {size(told.file_size)}; save it with np.savez, unpacked")
    with packed.open(name) as stream:
        return _array(stream, told.file_size, empty)


def _array(file: IO[bytes], held: int, empty: bool = False) -> NDArray[Any]:
    """One array of a stream of so many bytes, whose head must promise no more than that."""
    library = np.lib.format
    version = library.read_magic(file)
    read_head = {(1, 0): library.read_array_header_1_0, (2, 0): library.read_array_header_2_0}.get(version)
    if read_head is None:
        raise ValueError(f"it is of version {version[0]}.{version[1]}, which is for tables with named columns")
    taken = int.from_bytes(file.read(2 if version == (1, 0) else 4), "little")
    if taken > _ARRAY_HEAD:  # which numpy would refuse as well, when it has read it
        raise ValueError(f"its head must have at most {size(_ARRAY_HEAD)}, and claims {size(taken)}")
    file.seek(library.MAGIC_LEN)
    shape, _, dtype = read_head(file)
    if dtype.kind in "OV":
        raise ValueError(f"it must hold plain numbers or texts, and holds {dtype}: objects are pickled, and reading a pickle "
                         "runs whatever code its author put in; save plain numbers or texts")
    promised = math.prod(shape) * dtype.itemsize
    if not empty and (min(shape, default=1) < 1 or not dtype.itemsize):
        raise ValueError(f"it must not be empty, got {dtype} of shape {shape}")
    if promised > limits.ARRAY:
        raise ValueError(f"it must have at most {size(limits.ARRAY)}, got {dtype} of shape {shape}; divide it, or pass the "
                         "array itself in Python")
    if promised > held - file.tell():
        raise ValueError(f"it is cut off: {dtype} of shape {shape} takes {promised} bytes, and {held - file.tell()} are there")
    file.seek(0)
    found: NDArray[Any] = library.read_array(file, allow_pickle=False)
    if dtype.kind == "U" and found.size and found.view(np.uint32).max() > 0x10FFFF:
        raise ValueError("its texts must be Unicode, and some letters are not")
    return found


# --- tables -----------------------------------------------------------------------------------------------------------


def table(path: Place, sep: str = ",", what: str = "a table in UTF-8, with the names of its columns and a row a line",
          **options: Any) -> Any:
    """The rows of a .csv file as a DataFrame; `options` are those of pandas.read_csv.

    Rows may begin with a name of their own, as R writes them, or end with a separator; else they are as wide as the heading.
    """
    pandas = need("pandas", "tables")
    for _ in _pieces(path, what, limits.TABLE):  # lines are looked at before pandas makes columns of them
        continue
    with opened(path, what) as file, telling(path, what):
        heading, first = _first_records(file, sep.encode(), options.get("quoting", 0) != csv.QUOTE_NONE)
        file.seek(0)
        if options.get("header", 0) is not None and first:
            _check_heading(heading, first)
            if len(first) == len(heading) + 1 and not first[-1].strip():  # else pandas takes the first column for names of rows
                options = {"index_col": False, **options}
        return pandas.read_csv(file, sep=sep, low_memory=False, **options)


def _first_records(file: IO[bytes], sep: bytes, quoted: bool) -> list[list[bytes]]:
    """The cells of the heading and of the first row, which settle how many columns pandas makes; [] where there are none.

    A cell in quotes may hold separators and line breaks: lines alone do not tell how wide a table is.
    """
    head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf")
    in_quotes = rb'"[^"]*+(?:""[^"]*+)*+(?:"|\Z)' if quoted else rb"(?!)"
    cell = re.compile(rb"((?:%s)?[^%s\r\n]*+)(%s|\r\n?|\n|\Z)" % (in_quotes, re.escape(sep), re.escape(sep)))
    records: list[list[bytes]] = [[]]
    for found in cell.finditer(head):
        records[-1].append(found[1])
        if len(records[-1]) > limits.COLUMNS:
            raise ValueError(f"it must have at most {limits.COLUMNS:,} columns, and has more; divide it")
        if found[2] == sep:
            continue
        if len(records[-1]) == 1 and not found[1].strip():
            records[-1].clear()  # a blank line is none
        elif len(records) == 2:
            return records
        else:
            records.append([])
        if found.end() == len(head):
            break
    if len(head) == _HEAD:
        raise ValueError(f"its heading and its first row must have at most {size(_HEAD)} together, and have more")
    return [*records, []][:2]


def _check_heading(heading: list[bytes], first: list[bytes]) -> None:
    """Refuse what pandas would take hours for: rows named by thousands of cells, thousands of columns of one name."""
    if len(first) > len(heading) + 1:
        raise ValueError(f"its rows must be as wide as its heading, and the first has {len(first):,} cells below "
                         f"{len(heading):,} names; give every column a name")
    named = [name for name in heading if name.strip()]
    if len(named) - len(set(named)) > _AGAIN:
        raise ValueError(f"its columns must have names of their own, and more than {_AGAIN:,} have another's; name them apart")
