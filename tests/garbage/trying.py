"""One malformed file through its door: read, or refused as it should be; else what went wrong, in words."""

import contextlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from garbage import mutators
from garbage.kinds import BY_NAME, KINDS
from whytrust import MissingExtra

CLEAR = (ValueError, TypeError, MissingExtra, OSError)
SECONDS, MEGABYTES = 5.0, 500
PATIENCE = 30
"""Seconds by the clock after which an input is given up."""


class Hangs(BaseException):
    """Nothing that a door could take for an error of the file's."""


@dataclass(frozen=True)
class Outcome:
    """`wrong` is empty where the file was read, or refused with one clear error; seconds are the processor's."""

    read: bool
    message: str
    wrong: str
    seconds: float


def malformed(kind, number):
    """The bytes of one malformed file: the same for the same number."""
    rng = random.Random(f"{kind.name}/{number}")
    other = rng.choice(KINDS) if rng.random() < 0.2 else kind
    return mutators.mutated(rng, whole(kind.name), [whole(other.name)], kind.text, kind.deep)


@cache
def whole(name):
    """The bytes of a file of that kind in which nothing is wrong."""
    return BY_NAME[name].made()


def prepared(kind, folder):
    """Where such a file belongs, with whatever must lie beside it."""
    warmed(kind.name)
    return placed(kind, folder)


def placed(kind, folder):
    path = Path(folder) / kind.file
    path.parent.mkdir(parents=True, exist_ok=True)
    kind.beside(path.parent)
    return path


@cache
def warmed(name):
    """What its libraries take to be imported is no fault of a file's: one that is whole was read before."""
    with tempfile.TemporaryDirectory() as folder:
        path = placed(BY_NAME[name], folder)
        path.write_bytes(whole(name))
        tried(BY_NAME[name].door, path)


def tried(door, path):
    """What comes of a file."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    error = None
    with _chatter() as said, warnings.catch_warnings(record=True) as warned, _patience():
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message=".*textblob", category=ResourceWarning)  # its own files, when first asked
        try:
            door(path)
        except Hangs:
            return Outcome(False, "", f"hangs for {PATIENCE} seconds", PATIENCE)
        except Exception as raised:
            error = raised
    seconds, grown = time.process_time() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    wrong = [] if error is None else [*_unclear(error)]
    wrong += [f"warns: {one.category.__name__} {one.message}" for one in warned]
    wrong += [f"says on stderr: {said[0][:200]}"] if said[0].strip() else []
    wrong += [f"takes {seconds:.1f} seconds"] if seconds > SECONDS else []
    wrong += [f"takes {grown:.0f} MB"] if grown > MEGABYTES else []
    return Outcome(error is None, str(error or ""), "; ".join(wrong), seconds)


def _unclear(error):
    told = str(error)
    plain = type(error) in (ValueError, TypeError, MissingExtra, ModuleNotFoundError, ImportError) or isinstance(error, OSError)
    if not isinstance(error, CLEAR) or not plain:
        yield f"raises {type(error).__module__}.{type(error).__name__}: {told[:200]}"
    if not told.strip() or "\n" in told.strip():
        yield f"tells {len(told.splitlines())} lines: {told[:200]!r}"
    if len(told) > 2000:
        yield f"tells {len(told)} characters: {told[:200]!r}"


@contextlib.contextmanager
def _chatter():
    """What libraries write to standard error, past Python."""
    sys.stderr.flush()
    said = [""]
    with tempfile.TemporaryFile() as into:
        kept = os.dup(2)
        os.dup2(into.fileno(), 2)
        try:
            yield said
        finally:
            sys.stderr.flush()
            os.dup2(kept, 2)
            os.close(kept)
            into.seek(0)
            said[0] = into.read().decode("utf-8", "replace")


@contextlib.contextmanager
def _patience():
    def give_up(number, frame):
        raise Hangs
    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
