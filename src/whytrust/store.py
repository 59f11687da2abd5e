"""A run folder: what a long study has found so far, block by block, so that nothing finished is lost whatever ends the process.

manifest.json says what the run is; records/<block>.jsonl holds a line a case and arrays/<block>.npz the arrays beside them.
A block's two files are its shard: each is written once and whole, the records last, so that where records are, arrays are.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import platform
import re
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import near
from whytrust.manifests import differences

try:
    import fcntl
except ImportError:  # Windows: two runs on one folder are not noticed there
    fcntl = None  # type: ignore[assignment]

FORMAT = 1  # of the folder; a newer one is refused
IDENTITY = ("spec", "seed", "blocks", "hashes")  # what of a manifest says which run it is; the rest may differ on going on
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # of a block, case or array: it is part of a file's name
REMEDY = {errno.EFBIG: "raise the limit on the size of files", errno.EROFS: "make the folder writable",
          errno.EACCES: "make the folder writable", errno.EPERM: "make the folder writable"}
Shard = tuple[bytes, bytes]  # records and arrays of a block; they depend on the block's results and on nothing else


@dataclass(frozen=True)
class Block:
    """Cases that are worked on together, and kept or lost together."""

    id: str
    cases: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """What was found about one case: a record of plain values with a "case", and the arrays a reader will want beside it."""

    record: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def plain(value: Any, where: str = "record") -> Any:
    """The same value as JSON knows it: numpy's numbers become plain ones; what is not finite becomes None, infinity too."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping) and all(isinstance(key, str | int | np.integer) for key in value):
        return {str(key): plain(inner, f"{where}.{key}") for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, f"{where}.{index}") for index, inner in enumerate(value)]
    raise TypeError(f"what is stored must be numbers, strings, lists, and dicts with strings for keys: {where} is "
                    f"{type(value).__name__} {value!r:.60}; convert it")


def _sum(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).hexdigest().encode()


def _sealed(value: Any) -> bytes:
    """One line: the value, and a checksum of it; JSON has no bare tab, so the last one is the seam."""
    text = json.dumps(value, allow_nan=False).encode()
    return text + b"\t" + _sum(text) + b"\n"


def encode(block: Block, results: Iterable[Result]) -> Shard:
    """The shard of a block; one result for each of its cases, in any order."""
    found = list(results)
    by_case = {str(result.record.get("case")): result for result in found}
    if len(found) != len(block.cases) or set(by_case) != set(block.cases):
        raise ValueError(f"work must give one result for each case of a block: block {block.id} has {', '.join(block.cases)}, "
                         f"got {', '.join(str(result.record.get('case')) for result in found) or 'none'}")
    records, packed, count = b"", io.BytesIO(), 0
    with zipfile.ZipFile(packed, "w") as archive:
        for case in block.cases:
            records += _sealed(plain(by_case[case].record, f"the record of case {case}"))
            for name, array in by_case[case].arrays.items():
                _pack(archive, case, name, array)
                count += 1
    return records + _sealed({"block": block.id, "lines": len(block.cases), "arrays": count}), packed.getvalue()


def _pack(archive: zipfile.ZipFile, case: str, name: str, array: Any) -> None:
    """Add an array as np.savez_compressed would, but never a pickle, and without the time of day or the memory's layout."""
    values = np.asarray(array, order="C")
    if not NAME.fullmatch(name) or values.dtype.hasobject:
        raise TypeError(f"an array must have a name of letters, digits, _ . - and hold numbers: case {case} gave {name!r} "
                        f"of {values.dtype}; convert it")
    entry = zipfile.ZipInfo(f"{case}/{name}.npy", (1980, 1, 1, 0, 0, 0))
    entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    with archive.open(entry, "w", force_zip64=True) as file:
        np.lib.format.write_array(file, values, allow_pickle=False)


def decode(block: Block, data: bytes) -> tuple[list[dict[str, Any]], int]:
    """The records of a shard, and how many arrays were put beside them."""
    lines = data.split(b"\n")
    if lines.pop() or not lines:
        raise ValueError("it is cut off")
    parts = [line.rpartition(b"\t") for line in lines]
    if any(_sum(text) != told for text, _, told in parts):
        raise ValueError("a line does not have its checksum")
    *records, last = [json.loads(text) for text, _, _ in parts]
    if last.get("lines") != len(records) or tuple(record["case"] for record in records) != block.cases:
        raise ValueError("it has not all of its lines, or others")
    return records, int(last["arrays"])


def _put(path: Path, data: bytes) -> None:
    """Write a file so that it is there whole or not at all, even where the power fails."""
    part = path.with_name(f"{path.name}.part")
    try:
        with open(part, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):  # the first error is the one to tell; a left-over goes when the run is continued
            part.unlink()
        raise
    _sync(path.parent)


def _sync(folder: Path) -> None:
    """Make the names in a folder last; Windows has no such call."""
    if os.name == "posix":
        directory = os.open(folder, os.O_RDONLY)
        with suppress(OSError):  # some network folders refuse it; each file has been made to last by itself
            os.fsync(directory)
        os.close(directory)


def _checked(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest as it is written: plain, with its format and identity, and blocks and cases that can be file names."""
    blocks: list[Any] = [{"id": b.id, "cases": b.cases} if isinstance(b, Block) else b for b in manifest["blocks"]]
    for what, names in (("block", [b["id"] for b in blocks]), ("case", [case for b in blocks for case in b["cases"]])):
        twice = [name for name, times in Counter(name.lower() for name in names).items() if times > 1]  # as some disks see them
        bad = twice + [name for name in names if not NAME.fullmatch(name)] + [b["id"] for b in blocks if not b["cases"]]
        if bad:
            raise ValueError(f"each {what} must have a name of its own of letters, digits, _ . - and each block a case; "
                             f"look at {bad[0]!r}")
    told = plain({**manifest, "blocks": blocks}, "manifest")
    return {**told, "format": FORMAT, "identity": _identity(told)}


def _identity(manifest: Mapping[str, Any]) -> str:
    return _sum(json.dumps({key: manifest.get(key) for key in IDENTITY}, sort_keys=True).encode()).decode()


def _read_manifest(folder: Path) -> dict[str, Any]:
    path, held = folder / "manifest.json", dict[str, Any]()
    try:
        held = dict(json.loads(path.read_bytes()))
        newer = int(held["format"]) > FORMAT
        why = "" if newer or held["identity"] == _identity(held) else "its checksum is not that of what it says"
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no run in {folder}: it has no manifest.json; give a run's folder") from None
    except (ValueError, TypeError, KeyError) as error:
        newer, why = False, f"{type(error).__name__}: {error}"
    if why:
        raise ValueError(f"{path} is damaged, or not of a run ({why}); put it back from a copy, or "
                         "choose another folder (out=, --out)")
    if newer:
        raise ValueError(f"{folder} was written by a newer whytrust (format {held['format']}, this one knows {FORMAT}); "
                         "update whytrust to read or continue it")
    return held


def _refuse_foreign(folder: Path) -> None:
    """Never fill a folder that holds something else."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"a run is a folder, {folder} is a file; choose another folder (out=, --out)")
    names = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if "lock" in names and (folder / "lock").read_bytes()[:8] in (b"", b"whytrust"):
        names -= {"lock", "manifest.json.part"}  # of a run that was ended before it had a manifest
    if names and "manifest.json" not in names:
        raise ValueError(f"{folder} holds {min(names)} and no run (no manifest.json); choose another folder "
                         "(out=, --out) or an empty one")


def _locked(folder: Path) -> int:
    """The lock's file, which is this process's until it is closed or the process ends, however it ends."""
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):  # some network folders know no locks
            holder = os.read(file, 200).decode(errors="replace").strip() or "a process"
            os.close(file)
            raise BlockingIOError(f"{folder} is being filled by another run ({holder}); let it finish or stop it, or choose "
                                  "another --out") from None
    os.ftruncate(file, 0)
    os.write(file, f"whytrust, process {os.getpid()} on {platform.node()}\n".encode())
    return file


def _versions() -> dict[str, str]:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    told = {"time": now, "python": platform.python_version(), "numpy": np.__version__}
    with suppress(metadata.PackageNotFoundError):  # whytrust may be run from a folder that is not installed
        told["whytrust"] = metadata.version("whytrust")
    return told | ({"torch": str(sys.modules["torch"].__version__)} if sys.modules.get("torch") else {})


class Store:
    """A run's folder: made or continued by one process at a time, read by any number, also while it is being filled.

    Records of a block that is damaged are left out when it is only read: `problems` says so, a count of records does not.
    """

    def __init__(self, folder: str | Path, manifest: dict[str, Any]) -> None:
        """Use `create` or `open`."""
        self.folder, self.manifest = Path(folder), manifest
        self.problems: list[str] = []
        self.blocks = tuple(Block(block["id"], tuple(block["cases"])) for block in manifest["blocks"])
        self._home = {case: block for block in self.blocks for case in block.cases}
        self._lock: int | None = None

    @classmethod
    def create(cls, folder: str | Path, manifest: Mapping[str, Any]) -> Store:
        """Begin a run in a new or empty folder, or go on with the same run; the folder is this process's until `close`."""
        store = cls(folder, _checked(manifest))
        _refuse_foreign(store.folder)
        try:
            with store.telling("the folder"):
                store.folder.mkdir(parents=True, exist_ok=True)
                store._lock = _locked(store.folder)
                store._begin()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def open(cls, folder: str | Path) -> Store:
        """A run to read, finished or not; nothing in its folder is changed."""
        return cls(folder, _read_manifest(Path(folder)))

    def _begin(self) -> None:
        """Say what the run is, or find that it is this one; take away what an earlier process left half done."""
        if (self.folder / "manifest.json").exists():
            held = _read_manifest(self.folder)
            if held.get("study") != self.manifest.get("study"):
                raise ValueError(f"{self.folder} holds a run of another kind, {held.get('study')!r}, and this is one of "
                                 f"{self.manifest.get('study')!r}; choose another folder (out=, --out)")
            if held["identity"] != self.manifest["identity"]:
                raise ValueError(f"{self.folder} holds a run of another spec: {differences(held, self.manifest)}; "
                                 "choose another folder (out=, --out), or delete it")
            self.manifest = held
        else:
            _put(self.folder / "manifest.json", json.dumps(self.manifest, indent=1, allow_nan=False).encode())
        for place in (self.folder, self.folder / "records", self.folder / "arrays"):
            place.mkdir(exist_ok=True)
            for part in place.glob("*.part"):
                part.unlink()
        _sync(self.folder)
        told = self.folder / "sessions.jsonl"
        _put(told, (told.read_bytes() if told.exists() else b"") + json.dumps(_versions()).encode() + b"\n")

    def finished(self) -> set[str]:
        """The blocks whose shard is whole; in a run that is continued, a damaged one is put aside to be done again."""
        return {block.id for block in self.blocks if self._read(block) is not None}

    def kept(self) -> str:
        """How many blocks have a shard, for a sentence; the shards are not looked into."""
        done = sum(self._files(block)[0].exists() for block in self.blocks)
        return f"{done} of {len(self.blocks)} blocks are finished and safe"

    def write(self, block: Block, results: Iterable[Result]) -> None:
        """Keep the results of a block."""
        self.put(block, encode(block, results))

    def put(self, block: Block, shard: Shard) -> None:
        """Keep a block's shard, which another process may have encoded."""
        if self._lock is None or block not in self.blocks or self._files(block)[0].exists():
            raise ValueError(f"a block is written once, by the run that was begun with Store.create: {block.id} is not of the "
                             f"run in {self.folder}, is written already, or the store is closed")
        with self.telling(f"block {block.id}"):
            for path, data in reversed([*zip(self._files(block), shard, strict=True)]):  # the records last
                _put(path, data)

    def records(self) -> Iterator[dict[str, Any]]:
        """What was found about each case that is done, in the order of the blocks."""
        for block in self.blocks:
            yield from self._read(block) or ()

    def arrays(self, case: str, *names: str) -> dict[str, NDArray[Any]]:
        """The arrays of one case: those named, or all."""
        if case not in self._home:
            raise ValueError(f"the case must be one of the run in {self.folder}, got {case!r}{near(case, self._home)}")
        path = self._files(self._home[case])[1]
        try:
            with np.load(path, allow_pickle=False) as archive:
                there = [key.removeprefix(f"{case}/") for key in archive.files if key.startswith(f"{case}/")]
                found = {name: archive[f"{case}/{name}"] for name in there if name in names or not names}
        except FileNotFoundError:
            raise ValueError(f"case {case} has no arrays in {self.folder} so far; let the run finish") from None
        except (ValueError, EOFError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"the arrays of case {case} are damaged ({error}); delete {path} and give the run's command "
                             "again, which does this block anew") from error
        if not set(names) <= set(found):
            raise ValueError(f"case {case} has the arrays {', '.join(there) or '(none)'}, got {min(set(names) - set(found))!r}")
        return found

    def sessions(self) -> list[dict[str, Any]]:
        """When the run was begun and continued, and with which versions."""
        return [json.loads(line) for line in (self.folder / "sessions.jsonl").read_bytes().splitlines()]

    def close(self) -> None:
        """Let others continue the run; it can still be read."""
        if self._lock is not None:
            if fcntl is not None:  # else a process forked meanwhile would hold the lock for as long as it lives
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = None

    @contextmanager
    def telling(self, what: str) -> Iterator[None]:
        """Inside, `what` is written to the folder; where that cannot be done the error says what is safe and how to go on."""
        try:
            yield
        except BlockingIOError:  # another run has the folder
            raise
        except OSError as error:
            told = OSError(f"{what} could not be written to {self.folder} ({error.strerror or error}); {self.kept()}, nothing "
                           f"is lost: {REMEDY.get(error.errno or 0, 'free space')} and give the same command again")
            told.errno = error.errno
            raise told from error

    def _files(self, block: Block) -> tuple[Path, Path]:
        return self.folder / "records" / f"{block.id}.jsonl", self.folder / "arrays" / f"{block.id}.npz"

    def _read(self, block: Block) -> list[dict[str, Any]] | None:
        """A block's records; None where it is not done, or damaged."""
        records, arrays = self._files(block)
        if not records.exists():
            return None
        try:
            found, count = decode(block, records.read_bytes())
            with zipfile.ZipFile(arrays) as archive:
                if len(archive.namelist()) != count:
                    raise ValueError(f"it had {count} arrays, there are {len(archive.namelist())}")
        except Exception as why:  # of bytes that are no zip file, zipfile raises nearly anything
            if isinstance(why, OSError | MemoryError) and getattr(why, "errno", 0) not in (errno.ENOENT, errno.EINVAL):
                raise  # the machine's trouble is no damage
            self._put_aside(block, str(why))
            return None
        return found

    def _put_aside(self, block: Block, why: str) -> None:
        """A damaged shard is kept under another name where the run is being continued; who only reads leaves it alone."""
        told = f"block {block.id} is damaged ({why}): it is left out; give the run's command again to do it anew"
        if self._lock is not None:
            told = f"block {block.id} was damaged ({why}): it was put aside as .damaged and is done again"
            with self.telling(f"the new name of the damaged block {block.id}"):
                for path in filter(Path.exists, self._files(block)):
                    os.replace(path, f"{path}.damaged")
        self.problems += [told] if told not in self.problems else []
