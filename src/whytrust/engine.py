"""Fills a run folder: does what is left of a study, in this process or in several, and keeps each block as soon as it is done.

However often a run is interrupted, and whatever the number of jobs, the records and arrays are the same to the byte, as long
as the study's work is a function of the block alone.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from functools import cache
from itertools import islice
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, Protocol

from threadpoolctl import threadpool_limits

from whytrust.memory import keep_freed
from whytrust.progress import CaseProgress
from whytrust.store import Block as Block
from whytrust.store import Result as Result
from whytrust.store import Shard, Store, encode

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
"""What a library that is loaded only when it is first used looks at."""


class Study(Protocol):
    """A long piece of work that falls into blocks, each of which can be done by itself and in any order."""

    def manifest(self) -> dict[str, Any]:
        """What the study is: its "spec", "seed" and "hashes" make it the same study or another; more may be told."""
        ...

    def blocks(self) -> Sequence[Block]:
        """All of the work, the same each time."""
        ...

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterable[Result]:
        """One result for each case of a block; `on_calls` may be told of each model call."""
        ...


Done = tuple[Block, Shard, int]
"""A block, its shard, and the model calls that are not yet counted."""


def run(study: Study, folder: str | Path, jobs: int = 1, label: str = "auditing") -> Store:
    """Do what is left of a study and keep it in `folder`; the store comes back for reading.

    A block whose work raises is kept too, each case of it as failed with the error: count the failures before believing a
    rate. Failed blocks are not tried again when the run is continued.
    """
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ValueError(f"jobs must be a whole number >= 1, got {jobs!r}")
    blocks = list(study.blocks())
    with closing(Store.create(folder, {**study.manifest(), "blocks": blocks})) as store:
        done = store.finished()
        left = [block for block in blocks if block.id not in done]
        cases, to_do = (sum(len(block.cases) for block in some) for some in (blocks, left))
        workers = min(jobs, len(left))
        progress = CaseProgress(label, cases, cases - to_do)
        with progress:
            shards = _by_workers(study, store, left, workers) if workers > 1 else _here(study, left, progress)
            with closing(shards):  # on an error or an interrupt the workers are stopped now, not when memory is tidied
                for block, shard, calls in shards:
                    store.put(block, shard)
                    progress(calls)
                    progress.finished(len(block.cases))
    return store


@contextmanager
def single_threaded() -> Iterator[None]:
    """Inside, linear algebra and torch use one thread: how a sum is split, and so its last bits, hangs on the threads."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else 1
    variables = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        with threadpool_limits(limits=1):
            if torch is not None:
                torch.set_num_threads(1)
            yield
    finally:
        if torch is not None:
            torch.set_num_threads(before)
        for name, value in variables.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _attempt(study: Study, block: Block, on_calls: Callable[[int], None]) -> Shard:
    """The shard of a block; where its work raises, a shard that says so."""
    try:
        with single_threaded():
            results = list(study.work(block, on_calls))
    except Exception as error:  # whatever a model or an explainer raises is told of these cases, and the others go on
        told = f"{type(error).__name__}: {error}"
        results = [Result({"case": case, "status": "failed", "error": told}) for case in block.cases]
    return encode(block, results)


def _here(study: Study, left: Iterable[Block], on_calls: Callable[[int], None]) -> Generator[Done, None, None]:
    for block in left:
        yield block, _attempt(study, block, on_calls), 0


def _by_workers(study: Study, store: Store, left: Sequence[Block], workers: int) -> Generator[Done, None, None]:
    """Blocks in the order they get done; at most twice as many as workers are in flight, so that memory stays flat."""
    import joblib  # only who asks for several jobs waits for it

    path = _sent(study, store)
    waiting, pending, whole = iter(left), dict[Future[tuple[Shard, int]], Block](), False
    pool: Any = None
    try:
        with _deaf():
            pool = joblib.externals.loky.ProcessPoolExecutor(
                workers, initializer=_begin, initargs=(os.getpid(), list(sys.path)), env=dict.fromkeys(THREADS, "1"))
        while True:
            with _deaf():
                for block in islice(waiting, 2 * workers - len(pending)):
                    pending[pool.submit(_in_worker, str(path), block)] = block
            if not pending:
                break
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda one: one.exception() is not None):  # first keep what is done
                shard, calls = future.result()
                yield pending.pop(future), shard, calls
        whole = True
    except BrokenProcessPool as error:
        suspects = " or ".join(block.id for block in list(pending.values())[:workers])
        raise ChildProcessError(f"a worker process died on block {suspects} (killed, or out of memory); {store.kept()}: "
                                "give the same command again to go on, with fewer jobs if memory ran out") from error
    finally:
        if pool is not None:
            pool.shutdown(wait=True, kill_workers=not whole)
        path.unlink(missing_ok=True)


@contextmanager
def _deaf() -> Iterator[None]:
    """Inside, an interrupt waits: a worker started here does not hear it either, while it is still loading its libraries."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # it would be started with the first worker, and let interrupts in again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _sent(study: Study, store: Store) -> Path:
    """The study in a file for the workers, each of which reads it once; it is taken away with the folder's other left-overs."""
    import joblib

    path = store.folder / "study.part"
    try:
        with store.telling("the study, for the workers,"), open(path, "wb") as file:
            joblib.externals.loky.backend.reduction.dump(study, file)  # cloudpickle, wherever this joblib has it
    except BaseException as error:
        path.unlink(missing_ok=True)
        if isinstance(error, OSError) or not isinstance(error, Exception):
            raise
        raise TypeError(f"the study must be picklable to be sent to worker processes ({type(error).__name__}: {error}); "
                        "use jobs=1, which works in this process") from error
    return path


@cache
def _loaded(path: str) -> Study:
    try:
        with open(path, "rb") as file:
            study: Study = pickle.load(file)
    except Exception as error:
        raise TypeError(f"the study could not be opened in a worker process ({type(error).__name__}: {error}); use jobs=1, "
                        "which works in this process") from error
    return study


def _in_worker(path: str, block: Block) -> tuple[Shard, int]:
    """A block's shard and its model calls; encoded here, so that compressing is shared out too."""
    calls = 0

    def count(more: int) -> None:
        nonlocal calls
        calls += more

    return _attempt(_loaded(path), block, count), calls


def _begin(parent: int, places: list[str]) -> None:
    """A worker leaves interrupts to the process that began it, and goes when that one is gone, however it went.

    It finds modules where that process does, a user's own files among them.
    """
    sys.path.extend(place for place in places if place not in sys.path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    keep_freed()
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
