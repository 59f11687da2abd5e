"""Memory: kept for the next batch in processes that are ours alone, and gone on with where it runs out."""

from __future__ import annotations

import ctypes
import os
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

R = TypeVar("R")
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Of glibc's mallopt."""
_KEPT, _LARGEST = 2**31 - 1, 2**30


def keep_freed() -> bool:
    """Stop the C library from giving freed memory back to the system; False where it is not glibc, and nothing is done.

    The activations of a net are tens of megabytes, freed after each layer and wanted again for the next batch. glibc gives such
    blocks back at once, and the system must then clear them page by page again, which can cost as much as the arithmetic. The
    peak stays what it was; what is lost is that other programs get the memory back before the process ends. That is for the
    process to decide, so this is for commands and workers, and not for a library inside somebody's program.
    """
    mallopt = getattr(_c_library(), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))


def _c_library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows
        return None


# --- how much there is, and what is done where it runs out ------------------------------------------------------------


def resident(process: int | None = None) -> int:
    """Bytes of memory that a process has for itself, or this one; 0 where the system does not tell, or there is no such one.

    Files that are mapped into it do not count: the system takes their pages back where it needs them.
    """
    try:
        fields = Path(f"/proc/{process or 'self'}/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def installed() -> int | None:
    """Bytes of memory that this machine has, or that this process may use of it; None where the system does not tell."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return None
    for place in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            found = min(found, int(Path(place).read_text()))
    return found


class RanOut(ValueError):
    """A model's memory ran out on a batch; half of it may still go."""


SAID = re.compile("out of memory|can't allocate memory|failed to allocate|bad allocation|bad_alloc", re.IGNORECASE)


def ran_out(error: BaseException) -> bool:
    """Whether an error says that memory ran out: Python's own, or that of torch, CUDA or onnxruntime."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(SAID.search(str(error))))


@dataclass
class _Spare:
    """Who is told that memory ran out, and how many inputs at once each model may still be given."""

    listener: Callable[[str], object]
    pieces: int
    most: dict[str, int] = field(default_factory=dict)


_SPARE: ContextVar[_Spare | None] = ContextVar("spare", default=None)


@contextmanager
def sparing(listener: Callable[[str], object], pieces: int = 1) -> Iterator[None]:
    """Inside, whoever goes on with less memory tells the listener, once, and goes on with as little; elsewhere it is a warning.

    With `pieces`, every batch is cut into so many from the beginning.
    """
    token = _SPARE.set(_Spare(listener, pieces))
    try:
        yield
    finally:
        _SPARE.reset(token)


def in_pieces(what: str, size: int, ask: Callable[[slice], R]) -> list[R]:
    """What `ask` says of a batch of that size: of all of it where memory allows, else of pieces half as large, and so on."""
    spare = _SPARE.get()
    most = size if spare is None else min(spare.most.get(what, size), -(-size // spare.pieces))
    found: list[R] = []
    start = 0
    while start < size or not found:
        at = slice(start, min(start + most, size))
        try:
            found.append(ask(at))
        except RanOut:
            tried = at.stop - start
            if tried < 2:
                raise
            most = -(-tried // 2)
            _tell_halved(what, tried, most)
            continue
        start = at.stop
    return found


def _tell_halved(what: str, size: int, most: int) -> None:
    """Say that a batch was too large for the memory that there is, and remember it for the rest of this piece of work."""
    told = (f"memory ran out in {what} on a batch of {size}: it goes on with half as many at once, which is slower and changes "
            "the last digits only; pass a smaller batch_size")
    spare = _SPARE.get()
    if spare is None:
        warnings.warn(told, RuntimeWarning, stacklevel=5)
    else:
        spare.most[what] = most
        spare.listener(told)


def piece(batch: Any, at: slice) -> Any:
    """That piece of a batch, of a list, an array or a table; all of it is the batch itself."""
    return batch if at == slice(0, len(batch)) else getattr(batch, "iloc", batch)[at]
