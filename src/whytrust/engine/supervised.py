"""A worker process that is watched: one that dies, hangs or outgrows its memory is replaced, and its block tried again.

A block is tried twice as it is. Then its cases are worked on one by one: a case that ends its worker a third time is set aside
with the reason, and the others are done. Where memory is the reason, or may be the second time, the model is asked about half
as many inputs at once.
"""

from __future__ import annotations

import io
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from whytrust.engine.work import THREADS, Done, Study, failed
from whytrust.engine.worker import received, send_pickled
from whytrust.memory import installed, resident
from whytrust.shards import Block, Form, Result, encode

TRIES = 2
"""How often a block is tried as it is."""
BEGIN = "import sys; sys.path[:] = sys.argv[1:]; from whytrust.engine.worker import main; main()"
WATCH = 0.2
"""Seconds between two looks at a worker that is silent."""
SETTLING = 60.0
"""Seconds in which a study must say what it is, where cases have a limit: it reads all inputs, and asks about some."""
LOADING = 600.0
"""Seconds that loading a study may take at the least, where cases have a limit."""
SHARE = 0.8
"""Of the machine's memory, for all workers together."""


OUTGROWN = ("workers that had grown beyond their share of the memory after a block were replaced, which loads the model anew; "
            "where that happens all the time, fewer jobs are faster")


class NoWorker(RuntimeError):
    """A worker process could not be begun, or could not open the study; more tries would not help."""


@dataclass(frozen=True)
class Limits:
    """What a worker may take: seconds for a case, and bytes of memory."""

    seconds: float | None = None
    memory: int | None = None

    @classmethod
    def shared(cls, workers: int, seconds: float | None = None) -> Limits:
        """An equal part of this machine's memory for each of so many workers."""
        whole = installed()
        return cls(seconds, None if whole is None else int(SHARE * whole / workers))


class Lost(Exception):
    """The worker is gone, and why."""

    def __init__(self, why: str, late: bool = False, full: bool = False, killed: bool = False) -> None:
        """`late` where it had taken too long, `full` where it had grown too large, `killed` where nobody knows why."""
        super().__init__(why)
        self.late, self.full, self.killed = late, full, killed


class Stopped(Exception):
    """The run is over, and the worker was ended for that."""


class Supervised:
    """One worker process at a time, begun when it is first needed and replaced when it is lost; used by one thread."""

    def __init__(self, study: bytes, form: Form, limits: Limits, on_calls: Callable[[int], None] = lambda calls: None) -> None:
        """`study` is a study's pickle."""
        self.study, self.form, self.limits, self.on_calls = study, form, limits, on_calls
        self.surroundings: dict[str, str] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closed, self._failed, self._weighed = False, 0, 0.0
        self._hopeless: NoWorker | None = None
        self._notes: tuple[str, ...] = ()

    def manifest(self, inputs: int) -> dict[str, Any]:
        """What the study says that it is; Lost where the model, which it asks about some inputs, hangs or ends the worker."""
        found: dict[str, Any] = self._ask("manifest", Block("", ()), 1, SETTLING + 0.02 * inputs)
        return found

    def do(self, block: Block) -> Done:
        """A block, whatever happens to those who work on it."""
        lost: list[str] = []
        pieces, self._notes = 1, ()
        for _ in range(TRIES):
            try:
                done: Done = self._ask("block", block, pieces)
                again = tuple(f"block {block.id} was tried again{_in_halves(pieces)}: {why}" for why in lost)
                return replace(done, notes=(*done.notes, *again, *self._notes), surroundings=self.surroundings)
            except Lost as gone:
                lost.append(str(gone))
                if gone.full or (gone.killed and len(lost) == TRIES):  # the first kill may have been a person's
                    pieces *= 2
                if gone.late:
                    break
        found: list[Result] = []
        notes = [f"block {block.id} was worked on one by one{_in_halves(pieces)}: {why}" for why in lost[-1:]]
        for case in block.cases:
            try:
                results, more = self._ask("case", replace(block, cases=(case,), alone=True), pieces)
            except Lost as gone:
                aside = f"set aside: {gone}; it was tried {len(lost) + 1} times"
                results, more = [failed(case, aside)], (f"case {case} was {aside}",)
            found += results
            notes += more
        return Done(block, encode(block, found, self.form), 0, (*notes, *self._notes), self.surroundings)

    def _ask(self, kind: str, block: Block, pieces: int, more: float = 0.0) -> Any:
        """What the worker answers; Lost where it does not, in the time for its cases and some `more`."""
        process = self._begun()
        allowed = float("inf") if self.limits.seconds is None else self.limits.seconds * len(block.cases) + more
        since = time.monotonic()
        self._tell((kind, block, pieces, self.form))
        while True:
            word, *rest = self._heard(process)
            if word == "calls":
                self.on_calls(rest[0])
            elif word == "mistake":
                raise rest[0]
            elif word != "silence":
                found, calls, size = rest
                self.on_calls(calls)
                if self.limits.memory is not None and size > self.limits.memory:  # it leaks: a new one begins small
                    self._end()
                    self._notes = (OUTGROWN,)
                return found
            if time.monotonic() - since > allowed:  # also of a worker that has much to say
                self._end()
                each = f", {self.limits.seconds:g} for each of {len(block.cases)}" if len(block.cases) > 1 else ""
                raise Lost(f"it took longer than {allowed:g} s{each}", late=True)

    def _heard(self, process: subprocess.Popen[bytes]) -> Any:
        """The next answer; ("silence",) where there is none yet, Lost where none can come any more."""
        self._weigh(process)
        try:
            answer = self._answers.get(timeout=WATCH)
        except queue.Empty:
            if process.poll() is None:
                return ("silence",)
            answer = self._last_word()
        if isinstance(answer, tuple):
            return answer
        if self._closed:
            raise Stopped
        if isinstance(answer, Exception):
            self._end()
            raise Lost(f"the answer of the worker process could not be read ({type(answer).__name__}: {answer})")
        try:
            code = process.wait(timeout=10)
        except subprocess.TimeoutExpired:  # a model closed every file that it found
            self._end()
            raise Lost("the worker process could not answer any more") from None
        self._end()  # what it began is still there
        raise Lost(f"the worker process {_ended(code)}", killed=code == -signal.SIGKILL)

    def _weigh(self, process: subprocess.Popen[bytes]) -> None:
        """Now and then, whatever the worker says, look at how large it is."""
        if self.limits.memory is None or time.monotonic() - self._weighed < WATCH:
            return
        self._weighed = time.monotonic()
        size = resident(process.pid)
        if size > self.limits.memory * 1.25:
            self._end()
            raise Lost(f"the worker process had grown to {size / 2**30:.1f} GB, and may have "
                       f"{self.limits.memory / 2**30:.1f}", full=True)

    def _last_word(self) -> Any:
        """What a process that has ended may have said before."""
        try:
            return self._answers.get(timeout=1.0)
        except queue.Empty:  # something that it began holds its output open
            return GONE

    def _begun(self) -> subprocess.Popen[bytes]:
        if self._hopeless is not None:
            raise self._hopeless
        if self._process is not None and self._process.poll() is None:
            return self._process
        process = subprocess.Popen([sys.executable, "-c", BEGIN, *map(os.path.abspath, sys.path)], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, start_new_session=True,  # interrupts are for who began it
                                   env={**os.environ, **dict.fromkeys(THREADS, "1")})
        self._process, self._answers = process, queue.SimpleQueue()
        if self._closed:
            self._end()
            raise Stopped
        threading.Thread(target=_listen, args=(process.stdout, self._answers), daemon=True).start()
        self._tell_pickled(self.study)
        allowed = float("inf") if self.limits.seconds is None else max(LOADING, 10 * self.limits.seconds)
        since = time.monotonic()
        try:
            while (answer := self._heard(process))[0] == "silence":
                if time.monotonic() - since > allowed:
                    self._end()
                    raise Lost(f"it took longer than {allowed:g} s")
        except Lost as gone:  # before it had begun with any block, which so is not to blame
            self._failed += 1
            if self._failed > TRIES:
                self._hopeless = NoWorker(f"{gone}, {self._failed} times, while it loaded the study")
                raise self._hopeless from gone
            return self._begun()
        if answer[0] == "unreadable":
            self.close()
            self._hopeless = NoWorker(answer[1])
            raise self._hopeless
        self.surroundings, self._failed = answer[1], 0
        return process

    def _tell(self, message: Any) -> None:
        self._tell_pickled(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))

    def _tell_pickled(self, data: bytes) -> None:
        process = self._process
        with suppress(BrokenPipeError, ValueError):  # that it is gone, or was ended, is found out on listening
            if process is not None and process.stdin is not None:
                send_pickled(process.stdin, data)  # type: ignore[arg-type]

    def close(self) -> None:
        """End the worker now, whatever it is doing; may be called from another thread than the one that waits for it."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError, PermissionError):
                if hasattr(os, "killpg"):
                    os.killpg(process.pid, signal.SIGKILL)  # with whatever the model began
                else:
                    process.kill()
            process.wait()
            with suppress(OSError):  # what it was told and did not take in goes with it
                if process.stdin is not None:
                    process.stdin.close()


GONE = object()


def _listen(answers: Any, heard: queue.SimpleQueue[Any]) -> None:
    try:
        for answer in received(answers):
            heard.put(answer)
        heard.put(GONE)
    except Exception as error:  # whatever an answer raises that cannot be opened here
        heard.put(error)
    answers.close()


def _in_halves(pieces: int) -> str:
    return f", with 1/{pieces} of the inputs a model call" if pieces > 1 else ""


def _ended(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"ended by itself (exit code {code})"
    name = signal.Signals(-code).name if -code in {int(one) for one in signal.Signals} else f"signal {-code}"
    memory = ", as the system does where memory runs out" if name == "SIGKILL" else ""
    return f"was ended by {name}{memory}"


def pickled(study: Study) -> bytes:
    """A study as bytes for a worker; what it has from the user's own script goes along by value."""
    import joblib

    file = io.BytesIO()
    try:
        joblib.externals.loky.backend.reduction.dump(study, file)  # cloudpickle, wherever this joblib has it
    except Exception as error:
        raise TypeError(f"the study must be picklable to be sent to worker processes ({type(error).__name__}: {error}); "
                        "use jobs=1, which works in this process") from error
    return file.getvalue()
