"""Where a study's blocks are worked on: in this process, in several on this machine, or on a cluster (see `dask`)."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from whytrust.engine.supervised import TRIES, Limits, Lost, NoWorker, Stopped, Supervised, pickled
from whytrust.engine.work import Done, Study, attempt
from whytrust.engine.worker import OFTEN
from whytrust.shards import PLAIN, Block
from whytrust.store import Store

OnCalls = Callable[[int], None]
LEAST = 256 << 20
"""Bytes of memory without which no worker can load anything."""


class Engine(Protocol):
    """Works on blocks, in whatever order; what it gives depends on the blocks alone."""

    @property
    def workers(self) -> int:
        """How many blocks are worked on at once, as far as that is known."""
        ...

    def settled(self, study: Study) -> Settled:
        """What the study says that it is, before there is a folder for it."""
        ...

    def run(self, study: Study, store: Store, blocks: Sequence[Block], on_calls: OnCalls,
            first: Supervised | None = None) -> Generator[Done, None, None]:
        """Every block, as it gets done; at most a few are held at a time, so that memory stays flat."""
        ...


@dataclass(frozen=True)
class Settled:
    """A study, what it says that it is, and the worker process that was asked, where one was."""

    study: Study
    manifest: Mapping[str, Any]
    worker: Supervised | None = None


SHIFTS = 4
"""How often a study may ask about other inputs where those that it asked about hang the model, or end it."""


def settled_apart(study: Study, limits: Limits) -> Settled:
    """Asked in a process of its own: the model may hang on the inputs that it is asked about, or end the process.

    Then others are asked; the same ones each time the command is given.
    """
    told, inputs = "", sum(len(block.cases) for block in study.blocks())
    shifts = range(SHIFTS if hasattr(study, "shifted") else 1)
    for by in shifts:
        shifted: Any = study.shifted(by) if by else study  # type: ignore[attr-defined]
        try:
            worker = Supervised(pickled(shifted), PLAIN, limits)
        except TypeError:  # it cannot be sent: whoever needs workers says so
            return Settled(study, study.manifest())
        try:
            return Settled(shifted, worker.manifest(inputs), worker)
        except NoWorker:  # nor opened there
            return Settled(study, study.manifest(), worker)
        except Lost as lost:
            told = str(lost)
            worker.close()
            if by + 1 < len(shifts):
                print(f"whytrust: the model was asked about some inputs before the run ({told}); others are asked now",
                      file=sys.stderr)
        except BaseException:
            worker.close()
            raise
    raise ValueError(f"the model must answer for some of the inputs before a run is begun, and did not, though others were "
                     f"asked about {len(shifts) - 1} times ({told}); look at the first inputs, or give more time (--timeout)")


@dataclass(frozen=True)
class Here:
    """This process, one block after the other.

    A model that ends the process ends the run, which can be gone on with; a block at which that happened twice is then done by
    a worker process, which can be lost.
    """

    workers: int = 1
    retry_failed: bool = False

    def settled(self, study: Study) -> Settled:
        """Asked in this process."""
        return Settled(study, study.manifest())

    def run(self, study: Study, store: Store, blocks: Sequence[Block], on_calls: OnCalls,
            first: Supervised | None = None) -> Generator[Done, None, None]:
        """The blocks in their order."""
        for block in blocks:
            with store.telling("which block is in hand"):
                times = store.journal.taken_up(block)
            try:
                done = _by_a_worker(study, store, block, on_calls) if times > TRIES else None
                yield done or attempt(study, block, store.form, on_calls)
            finally:  # who gets here has not ended with the process
                store.journal.put_down()


def _by_a_worker(study: Study, store: Store, block: Block, on_calls: OnCalls) -> Done | None:
    """The block done by a process that can be lost; None where the study cannot be opened in another process."""
    try:
        with closing(Processes(1).run(study, store, [block], on_calls)) as doing:
            return next(doing)
    except TypeError:
        return None


@dataclass(frozen=True)
class Processes:
    """So many worker processes on this machine, each with one thread and the model loaded once.

    A worker that dies or hangs is replaced, and what it was at is tried again; `seconds` is how long a case may take.
    """

    workers: int = 1
    seconds: float | None = None
    retry_failed: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        check_workers(self.workers)
        check_seconds(self.seconds)

    def settled(self, study: Study) -> Settled:
        """Asked in a worker process, under the same limits as cases."""
        return settled_apart(study, self._limits())

    def _limits(self) -> Limits:
        limits = Limits.shared(self.workers, self.seconds)
        if limits.memory is not None and limits.memory < LEAST:
            raise ValueError(f"jobs must leave each worker {LEAST >> 20} MB of memory, and {self.workers} would have "
                             f"{limits.memory >> 20} MB each; as many jobs as there are cores ({os.cpu_count()} here) are best")
        return limits

    def run(self, study: Study, store: Store, blocks: Sequence[Block], on_calls: OnCalls,
            first: Supervised | None = None) -> Generator[Done, None, None]:
        """The blocks in the order they get done; `first` is a worker that has the study already."""
        if not blocks:
            return
        data, limits = pickled(study), self._limits()
        workers = [*([first] if first is not None else ())]
        workers += [Supervised(data, store.form, limits) for _ in range(min(self.workers, len(blocks)) - len(workers))]
        for worker in workers:
            worker.form = store.form
        crew = _Crew(workers, iter(blocks))
        with closing(crew):
            crew.begin()
            for _ in blocks:
                yield crew.next(on_calls)


class _Crew:
    """Threads that each have a worker process do one block after the other, and wait where nobody takes what is done."""

    def __init__(self, workers: Sequence[Supervised], blocks: Iterator[Block]) -> None:
        self.workers, self.blocks = workers, blocks
        self.taking = threading.Lock()
        self.done: queue.Queue[Done | Exception] = queue.Queue(maxsize=2 * max(len(workers), 1))
        self.calls = 0  # that were made and are not yet told
        self.over = False

    def begin(self) -> None:
        """Have all of them work."""
        for worker in self.workers:
            worker.on_calls = self._count
            threading.Thread(target=self._work, args=(worker,), daemon=True).start()

    def _count(self, calls: int) -> None:
        with self.taking:
            self.calls += calls

    def _counted(self) -> int:
        with self.taking:
            calls, self.calls = self.calls, 0
        return calls

    def _work(self, worker: Supervised) -> None:
        try:
            while not self.over:
                with self.taking:
                    block = next(self.blocks, None)
                if block is None:
                    return
                self._tell(worker.do(block))
        except Stopped:
            return
        except Exception as error:  # it is raised where the run is
            self._tell(error)

    def _tell(self, word: Done | Exception) -> None:
        while not self.over:
            try:
                self.done.put(word, timeout=0.5)
            except queue.Full:
                continue
            return

    def next(self, on_calls: OnCalls) -> Done:
        """The next block that is done."""
        word = None
        while word is None:
            with suppress(queue.Empty):
                word = self.done.get(timeout=OFTEN)
            on_calls(self._counted())
        if isinstance(word, NoWorker):
            raise TypeError(f"the study could not be opened in a worker process ({word}); use jobs=1, which works in this "
                            "process, or fewer jobs where memory ran out") from word
        if isinstance(word, Exception):
            raise word
        return word

    def close(self) -> None:
        """End all workers now."""
        self.over = True
        for worker in self.workers:
            worker.close()


def chosen(jobs: Any) -> Engine:
    """The engine that `jobs` stands for: a number of processes, or an engine itself."""
    if hasattr(jobs, "run") and hasattr(jobs, "workers"):
        engine: Engine = jobs
        return engine
    check_workers(jobs)
    return Here() if jobs == 1 else Processes(jobs)


def check_workers(jobs: Any) -> None:
    """Refuse what is no number of workers."""
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"jobs must be a whole number >= 1 (or, in Python, an engine of whytrust.engine), got {jobs!r}")


def check_seconds(seconds: Any) -> None:
    """Refuse what is no length of time."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (number and 0 < seconds < float("inf")):
        raise ValueError(f"seconds (--timeout) must be a number above 0, how long a case may take, got {seconds!r}")
