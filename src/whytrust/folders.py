"""The files around a run's shards: whole files or none, whose folder it is, and the manifest that says what the run is."""

from __future__ import annotations

import errno
import json
import os
import platform
import stat
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from whytrust import limits, shards
from whytrust.shards import NAME, OF_A_SEAL, Block, Seal, checksum, plain

try:
    import fcntl
except ImportError:  # Windows: two runs on one folder are not noticed there
    fcntl = None  # type: ignore[assignment]

NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)  # Windows has no such flag
FORMAT = 2
"""Of the folder; a newer one is refused. The first had no packs and no shares, and seals that said less; it is read as well."""
IDENTITY = ("spec", "seed", "blocks", "hashes")
"""What of a manifest says which run it is; the rest may differ on going on."""
OWN = {"lock", "sessions.jsonl", "records", "arrays", "packs", "in_hand"}
"""What a run makes besides its manifest, and pages of it."""
REMEDY = {errno.EFBIG: "raise the limit on the size of files", errno.EROFS: "make the folder writable",
          errno.EACCES: "make the folder writable", errno.EPERM: "make the folder writable",
          errno.ENOSPC: "free space", errno.EDQUOT: "free space", errno.ENOTDIR: "choose another folder (out=, --out, --run)"}
DAMAGE = (errno.ENOENT, errno.EINVAL, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)
"""Errors of reading that are about what is read; others are the machine's trouble, and no damage."""
ANEW = "give the run's command again, which writes it anew"


def opened(path: Path) -> BinaryIO:
    """A file to read; what is none, such as a pipe, which might never end, is an error like any other damage."""
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ValueError("it is no plain file")
    return open(path, "rb")


def read(path: Path, most: int = limits.RUN) -> bytes:
    """All of a file; one that is larger than any run writes is damage, and not read."""
    try:
        with opened(path) as file:
            if os.fstat(file.fileno()).st_size > most:
                raise ValueError(f"it is larger than {most >> 20} MB")
            return file.read()
    except OSError as error:  # a disk that fails while it is read does not say of what
        error.filename = error.filename or str(path)
        raise


def refuse_trouble(why: Exception) -> None:
    """The machine's trouble is no damage of what is read."""
    if isinstance(why, OSError | MemoryError) and getattr(why, "errno", 0) not in DAMAGE:
        raise why


def cannot_write(what: str, folder: Path, kept: str, error: OSError) -> OSError:
    """An error of writing that says what is safe and how to go on."""
    told = OSError(f"{what} could not be written to {folder} ({error.strerror or error}); {kept}, nothing is lost: "
                   f"{REMEDY.get(error.errno or 0, 'see to that')} and give the same command again")
    told.errno = error.errno
    return told


def put(path: Path, pieces: Iterable[bytes], lasting: bool = True) -> None:
    """Write a file so that it is there whole or not at all; where it must be `lasting`, even where the power fails."""
    part = path.with_name(f"{path.name}.part")
    try:
        with open(part, "wb", opener=_here) as file:
            for piece in pieces:
                file.write(piece)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        with suppress(OSError):  # the first error is the one to tell; a left-over goes when the run is continued
            part.unlink()
        raise
    if lasting:
        sync(path.parent)


def _here(path: str, flags: int) -> int:
    """Opens a file, and none that a link in its place leads to."""
    return os.open(path, flags | NOFOLLOW, 0o666)


def refuse_links(folder: Path) -> None:
    """A folder may come from somebody else, and what is written there would be written wherever a link leads."""
    for name in ("manifest.json", *sorted(OWN)):
        if (folder / name).is_symlink():
            raise ValueError(f"{folder / name} is a link, and a run has none; delete it and give the same command again, or "
                             "choose another folder (out=, --out, --run)")


def sync(folder: Path) -> None:
    """Make the names in a folder last; Windows has no such call."""
    if os.name == "posix":
        directory = os.open(folder, os.O_RDONLY)
        with suppress(OSError):  # some network folders refuse it; each file has been made to last by itself
            os.fsync(directory)
        os.close(directory)


# --- the manifest -----------------------------------------------------------------------------------------------------


def checked(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest as it is written: plain, with its format and identity, and blocks and cases that can be file names."""
    blocks: list[Any] = [{"id": b.id, "cases": b.cases} if isinstance(b, Block) else b for b in manifest["blocks"]]
    _refuse_names(blocks)
    told = plain({**manifest, "blocks": blocks}, "manifest")
    told |= {"format": FORMAT, "identity": _identity(told)}
    return {**told, "sum": _total(told)}


def _refuse_odd(manifest: Mapping[str, Any]) -> None:
    """Whoever made a folder knows how to make its checksums too."""
    for key, form in (("blocks", list), ("shares", list), ("spec", dict), ("about", dict), ("hashes", dict)):
        if key in manifest and not isinstance(manifest[key], form | None):
            raise ValueError(f"its {key} must be a {form.__name__}, got {type(manifest[key]).__name__}")
    if not all(isinstance(name, str) for name in manifest.get("shares", ())):
        raise ValueError("its shares must be names")
    if not all(isinstance(block, dict) and isinstance(block["cases"], list) for block in manifest["blocks"]):
        raise ValueError("each of its blocks must have an id and a list of cases")
    _refuse_names(manifest["blocks"])


def _refuse_names(blocks: list[Any]) -> None:
    for what, names in (("block", [b["id"] for b in blocks]), ("case", [case for b in blocks for case in b["cases"]])):
        odd = [name for name in names if not isinstance(name, str) or not NAME.fullmatch(name)]
        times = Counter(map(str.lower, names)) if not odd else {}  # as some disks see them
        twice = [name for name, number in times.items() if number > 1]
        bad = [*odd, *twice, *(b["id"] for b in blocks if not b["cases"])]
        if bad:
            raise ValueError(f"each {what} must have a name of its own of letters, digits, _ . - and each block a case; "
                             f"look at {bad[0]!r:.80}")


def _identity(manifest: Mapping[str, Any]) -> str:
    return checksum(json.dumps({key: manifest.get(key) for key in IDENTITY}, sort_keys=True).encode()).decode()


def _total(manifest: Mapping[str, Any]) -> str:
    return checksum(json.dumps({key: manifest[key] for key in manifest if key != "sum"}, sort_keys=True).encode()).decode()


def read_manifest(folder: Path) -> dict[str, Any]:
    """What a folder's run is; an error where it cannot be believed, since every path in the folder is made of its names."""
    path, held = folder / "manifest.json", dict[str, Any]()
    try:
        held = dict(json.loads(read(path)))
        newer = int(held["format"]) > FORMAT
        true = held["identity"] == _identity(held) and ("sum" not in held or held["sum"] == _total(held))
        why = "" if newer or true else "its checksum is not that of what it says"
        if not newer and not why:
            _refuse_odd(held)
    except (FileNotFoundError, NotADirectoryError):
        lost = (folder / "records").is_dir() and (folder / "sessions.jsonl").exists()
        raise FileNotFoundError(f"there is no run in {folder}: it has no manifest.json; "
                                f"{ANEW if lost else 'give a run' + chr(39) + 's folder'}") from None
    except RecursionError:
        newer, why = False, "it is nested too deeply"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        newer, why = False, f"{type(error).__name__}: {error}"
    if why:
        raise ValueError(f"{path} is damaged, or not of a run ({why:.200}); put it back from a copy, or delete it and {ANEW}, "
                         "or choose another folder (out=, --out, --run)")
    if newer:
        raise ValueError(f"{folder} was written by a newer whytrust (format {held['format']}, this one knows {FORMAT}); "
                         "update whytrust to read or continue it")
    return held


# --- whose folder it is -----------------------------------------------------------------------------------------------


def refuse_foreign(folder: Path, identity: str) -> bool:
    """Never fill a folder that holds something else. Whether it holds results of this run and has lost its manifest."""
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"a run is a folder, {folder} is a file; choose another folder (out=, --out, --run)")
    names = {entry.name for entry in folder.iterdir()} if folder.exists() else set()
    if "manifest.json" in names:
        return False
    if "lock" in names and _lock_says(folder)[:8] in (b"", b"whytrust"):
        if names <= {"lock", "manifest.json.part"}:  # of a run that was ended before it had a manifest
            return False
        if {"sessions.jsonl", "records"} <= names and _none_of_another(folder, identity):
            return True
    if names:
        raise ValueError(f"{folder} holds {min(names)} and no run (no manifest.json); choose another folder "
                         "(out=, --out, --run) or an empty one")
    return False


def _none_of_another(folder: Path, identity: str) -> bool:
    """Whether no result in a folder says that it is of another run; what is damaged is found out when it is read."""
    runs: set[str | None] = set()
    for path in (path for kind in ("records", "packs") for path in (folder / kind).glob("*.jsonl")):
        with suppress(ValueError, OSError):
            runs |= {_run_of(line) for line in read(path).splitlines() if line.startswith(OF_A_SEAL)}
    if runs - {None}:
        return runs <= {None, identity}
    return all(entry.name in OWN or entry.suffix in (".part", ".html") for entry in folder.iterdir())


def _run_of(line: bytes) -> str | None:
    try:
        return Seal.read(shards.opened(line)).run
    except (ValueError, KeyError, TypeError):
        return None


def _lock_says(folder: Path) -> bytes:
    try:
        return read(folder / "lock")
    except (ValueError, OSError):
        return b"something else"


def locked(folder: Path) -> int:
    """The lock's file, which is this process's until it is closed or the process ends, however it ends."""
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | NOFOLLOW | getattr(os, "O_NONBLOCK", 0), 0o666)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise ValueError(f"{folder / 'lock'} is no plain file; delete it and give the same command again")
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):  # some network folders know no locks
            holder = os.read(file, 200).decode(errors="replace").strip() or "a process"
            os.close(file)
            raise BlockingIOError(f"{folder} is being filled by another run ({holder}, or something that it began); let it "
                                  "finish or stop it, or choose another --out") from None
    try:
        os.ftruncate(file, 0)
        os.write(file, f"whytrust, process {os.getpid()} on {platform.node()}\n".encode())
    except OSError:
        os.close(file)
        raise
    _HELD.add(file)
    return file


def held(folder: Path, lock: int) -> bool:
    """Whether the lock's file is still the one in the folder: who deletes it lets a second run in."""
    try:
        return os.path.samestat(os.stat(folder / "lock"), os.fstat(lock))
    except FileNotFoundError:
        return False


def unlocked(lock: int) -> None:
    """Let others have the folder; without the first step a process forked meanwhile would hold it for as long as it lives."""
    _HELD.discard(lock)
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_UN)
    os.close(lock)


_HELD: set[int] = set()


def _let_go() -> None:
    """What a model forks is not this run, and must not keep its folder when the run is gone."""
    while _HELD:
        os.close(_HELD.pop())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
