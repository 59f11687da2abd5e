"""The process that works for another: it reads blocks from its standard input and answers with what came of them.

What the model prints goes to standard error, and the model reads an empty standard input. The process goes when the one that
began it is gone, however that one went.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import queue
import signal
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from whytrust.engine.work import Study, attempt, results, single_threaded
from whytrust.memory import keep_freed, resident
from whytrust.shards import Block, Form
from whytrust.surroundings import surroundings

OFTEN = 0.1
"""Seconds between two words about model calls."""
HEAD = struct.Struct(">Q")
_PDEATHSIG = 1
"""Of Linux' prctl."""


def send(file: BinaryIO, message: Any) -> None:
    """One message, with its length before it."""
    send_pickled(file, pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))


def send_pickled(file: BinaryIO, data: bytes) -> None:
    """One message that is pickled already."""
    file.write(HEAD.pack(len(data)))
    file.write(data)
    file.flush()


def received(file: BinaryIO) -> Iterator[Any]:
    """Messages, until the other side is gone."""
    while len(head := file.read(HEAD.size)) == HEAD.size:
        (length,) = HEAD.unpack(head)
        data = file.read(length)
        if len(data) < length:
            return
        message = pickle.loads(data)  # from the process that began this one, or that this one began, and from no other
        del data  # it may be large, and whoever takes the message may be long
        yield message
        del message


def main() -> None:
    """Work until there is nothing more to do."""
    tasks, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    keep_freed()
    end_with_parent()
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    study = _opened(tasks, answers)
    threading.Thread(target=_listen, args=(tasks, waiting), daemon=True).start()
    while True:
        kind, block, pieces, form = waiting.get()
        on_calls = _Calls(answers)
        answer = _answer(kind, study, block, form, on_calls, pieces)
        with on_calls.telling:  # a thread that the work left behind may still have something to say
            on_calls.last = float("inf")
            send(answers, answer)


def _listen(tasks: BinaryIO, waiting: queue.SimpleQueue[Any]) -> None:
    """Take in tasks beside the work, so that the end of whoever gives them is noticed in the middle of it."""
    for task in received(tasks):
        waiting.put(task)
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)  # with whatever the model began: this process leads a group of its own
    os._exit(1)


def end_with_parent() -> None:
    """Have the system end this process with the thread that began it, also where a model lets no other thread run (Linux)."""
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)


def _opened(tasks: BinaryIO, answers: BinaryIO) -> Study:
    """The study, which is the first message."""
    try:
        study: Study = next(received(tasks))
    except StopIteration:
        sys.exit(1)
    except Exception as error:
        send(answers, ("unreadable", f"{type(error).__name__}: {error}"))
        sys.exit(1)
    send(answers, ("ready", surroundings()))
    return study


def _answer(kind: str, study: Study, block: Block, form: Form, on_calls: _Calls, pieces: int) -> Any:
    if kind == "manifest":
        try:
            with single_threaded():
                return "manifest", study.manifest(), 0, resident()
        except Exception as error:
            return "mistake", error if _travels(error) else RuntimeError(f"{type(error).__name__}: {error}")
    if kind == "case":
        found, notes = results(study, block, on_calls, pieces)
        return "results", (found, notes), on_calls.left, resident()
    try:
        done = attempt(study, block, form, on_calls, pieces)
    except Exception as error:  # of a study that does not do what a study must; the run ends with it
        return "mistake", error if _travels(error) else RuntimeError(f"{type(error).__name__}: {error}")
    return "done", done, on_calls.left, resident()


def _travels(error: Exception) -> bool:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return False
    return True


class _Calls:
    """Tells of model calls now and then, which shows that there is life here."""

    def __init__(self, answers: BinaryIO) -> None:
        self.answers, self.left, self.last = answers, 0, time.monotonic()
        self.telling = threading.Lock()  # an explainer may ask the model from several threads

    def __call__(self, calls: int) -> None:
        with self.telling:
            self.left += calls
            if time.monotonic() - self.last > OFTEN:
                send(self.answers, ("calls", self.left))
                self.left, self.last = 0, time.monotonic()
