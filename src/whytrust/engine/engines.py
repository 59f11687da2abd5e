"""Where a study's blocks are worked on: in this process, in several on this machine, or on a cluster (see `dask`)."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from whytrust.engine.supervised import TRIES, Limits, NoWorker, Stopped, Supervised, pickled
from whytrust.engine.work import Done, Study, attempt
from whytrust.engine.worker import OFTEN
from whytrust.shards import Block
from whytrust.store import Store

OnCalls = Callable[[int], None]


class Engine(Protocol):
    """Works on blocks, in whatever order; what it gives depends on the blocks alone."""

    @property
    def workers(self) -> int:
        """How many blocks are worked on at once, as far as that is known."""
        ...

    def run(self, study: Study, store: Store, blocks: Sequence[Block], on_calls: OnCalls) -> Generator[Done, None, None]:
        """Every block, as it gets done; at most a few are held at a time, so that memory stays flat."""
        ...


@dataclass(frozen=True)
class Here:
    """This process, one block after the other.

    A model that ends the process ends the run, which can be gone on with; a block at which that happened twice is then done by
    a worker process, which can be lost.
    """

    workers: int = 1

    def run(self, study: Study, store: Store, blocks: Sequence[Block], on_calls: OnCalls) -> Generator[Done, None, None]:
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

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        check_workers(self.workers)
        check_seconds(self.seconds)

    def run(self, study: Study, store: Store, blocks: Sequence[Block], on_calls: OnCalls) -> Generator[Done, None, None]:
        """The blocks in the order they get done."""
        if not blocks:
            return
        number = min(self.workers, len(blocks))
        data, limits = pickled(study), Limits.shared(self.workers, self.seconds)
        crew = _Crew([Supervised(data, store.form, limits) for _ in range(number)], iter(blocks))
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
        raise ValueError(f"jobs must be a whole number >= 1, or an engine of whytrust.engine, got {jobs!r}")


def check_seconds(seconds: Any) -> None:
    """Refuse what is no length of time."""
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (number and 0 < seconds < float("inf")):
        raise ValueError(f"seconds (--timeout) must be a number above 0, how long a case may take, got {seconds!r}")
