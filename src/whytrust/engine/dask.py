"""Blocks on a cluster, by dask.distributed: many machines, or the cores of this one."""

from __future__ import annotations

import logging
import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from whytrust.core import need
from whytrust.engine.engines import OnCalls, Settled, check_seconds, check_workers, settled_apart
from whytrust.engine.supervised import Limits, NoWorker, Supervised, pickled
from whytrust.engine.work import Done, Study, failed
from whytrust.shards import Block, Form, encode
from whytrust.store import Store

LOOPBACK = "127.0.0.1:0"
"""Where dask puts its status pages, which it cannot be told to leave out: for this machine alone, at any free port."""
ADDRESS = re.compile(r"([a-z]+://)?([^\s/:\[\]]+|\[[0-9a-fA-F:.]+\]):\d{1,5}|inproc://\S+")
PATIENCE, OFTEN, LOOK = 600.0, 5.0, 0.02
"""Seconds without any worker after which a run is given up, between two looks at who is there, and at what is done."""
WAIT = 30.0
"""Seconds in which a scheduler must answer, and in which it must have a worker."""


@dataclass(frozen=True)
class Dask:
    """The workers of a dask cluster; without a `scheduler`, such as "tcp://10.0.0.1:8786", so many on this machine.

    Each worker has a process of its own for the model, so that a model that dies or hangs does not take the worker with it;
    `seconds` is how long a case may take. Blocks of a worker that is lost are done by another. Results come to this process,
    which alone writes: the machines need not share a disk, but inputs that are read from files must be where the workers are.
    """

    scheduler: str | None = None
    workers: int = 1
    seconds: float | None = None
    retry_failed: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        check_workers(self.workers)
        check_seconds(self.seconds)
        if self.scheduler is None:
            return
        if not isinstance(self.scheduler, str) or not ADDRESS.fullmatch(self.scheduler):
            raise ValueError("scheduler must be an address such as tcp://10.0.0.1:8786, as `dask scheduler` prints it, got "
                             f"{self.scheduler!r}")
        if self.workers != 1:
            raise ValueError(f"a scheduler has workers of its own: leave workers={self.workers} out")

    def settled(self, study: Study) -> Settled:
        """Asked in a process of its own on this machine, which has the inputs."""
        found = settled_apart(study, Limits.shared(1, self.seconds))
        if found.worker is not None:
            found.worker.close()
        return replace(found, worker=None)

    def run(self, study: Study, store: Store, blocks: Sequence[Block], on_calls: OnCalls,
            first: Supervised | None = None) -> Generator[Done, None, None]:
        """The blocks in the order they get done."""
        distributed = need("distributed", "dask")
        if not blocks:
            return
        job = _Job(uuid.uuid4().hex, store.form, self.seconds, self.workers)  # another each time: two runs share nobody
        with ExitStack() as stack:
            stack.enter_context(_quiet())
            client = self._client(distributed, stack)
            stack.callback(_forgotten, client, job.id)
            study_there = _sent(client, pickled(study), job)
            yield from _spread(distributed, client, study_there, job, iter(blocks), store.kept)

    def _client(self, distributed: Any, stack: ExitStack) -> Any:
        if self.scheduler is None:
            cluster = stack.enter_context(distributed.LocalCluster(
                n_workers=1, threads_per_worker=self.workers, processes=False, memory_limit=None, silence_logs=50,
                dashboard_address=LOOPBACK, worker_dashboard_address=LOOPBACK))
            return stack.enter_context(distributed.Client(cluster, set_as_default=False))
        try:
            client = stack.enter_context(distributed.Client(self.scheduler, timeout=WAIT, set_as_default=False))
            client.wait_for_workers(1, timeout=WAIT)
        except (OSError, ValueError, TimeoutError) as error:
            raise ConnectionError(f"a dask scheduler with at least one worker must answer at {self.scheduler} within "
                                  f"{WAIT:.0f} s, and did not ({type(error).__name__}: {error}); begin them with `dask "
                                  "scheduler` and `dask worker ADDRESS`, or leave --scheduler out") from error
        return client


@dataclass(frozen=True)
class _Job:
    """What a worker must know besides the study."""

    id: str
    form: Form
    seconds: float | None
    workers: int


@contextmanager
def _quiet() -> Iterator[None]:
    """Dask's own words about a lost scheduler are left out: ours come after them."""
    logger = logging.getLogger("distributed.client")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _sent(client: Any, data: bytes, job: _Job) -> Any:
    """The study's pickle as the result of a task, which the scheduler has done again where all who held it are lost."""
    with need("dask", "dask").config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
        return client.submit(_itself, data, key=f"whytrust-{job.id}-study", pure=False)


def _itself(data: bytes) -> bytes:
    return data


def _ready(client: Any, doing: Any) -> Any:
    """The next future that is done; an error where there is nobody to do one for a long time."""
    looked = manned = time.monotonic()
    while not doing.has_ready():
        time.sleep(LOOK)
        if time.monotonic() - looked < OFTEN:
            continue
        before, looked = looked, time.monotonic()
        if _manned(client):
            manned = looked
        elif before == manned:
            print(f"whytrust: the cluster has no workers any more; some may come within {PATIENCE / 60:.0f} minutes",
                  file=sys.stderr)
        elif looked - manned > PATIENCE:
            raise ConnectionError(f"the dask cluster had no workers for {PATIENCE / 60:.0f} minutes; what is finished is safe: "
                                  "begin some (`dask worker ADDRESS`) and give the same command again")
    return next(doing)


def _manned(client: Any) -> bool:
    """Whether there is anybody to work; a scheduler that does not answer is told by its futures, and so is left to them."""
    try:
        return bool(client.nthreads())
    except (OSError, TimeoutError):
        return True


def _spread(distributed: Any, client: Any, study: Any, job: _Job, blocks: Iterator[Block],
            kept: Callable[[], str]) -> Generator[Done, None, None]:
    """Twice as many blocks are given out as there are threads, so that none waits; more threads may come while it goes on."""
    pending: dict[Any, Block] = {}
    doing = distributed.as_completed(loop=client.loop)
    try:
        while True:
            threads = max(sum(client.nthreads().values()), 1)
            for block in islice(blocks, max(2 * threads - len(pending), 0)):
                future = client.submit(_task, study, job, block, key=f"whytrust-{job.id}-{block.id}", pure=False)
                pending[future.key] = block
                doing.add(future)
            if not pending:
                return
            future = _ready(client, doing)
            yield _result(distributed, future, pending.pop(future.key), job.form)
            future.release()
    except (distributed.CancelledError, distributed.comm.CommClosedError) as error:
        raise ConnectionError(f"the dask cluster is gone ({type(error).__name__}); {kept()}: give the same command again when "
                              "there is one") from error


def _result(distributed: Any, future: Any, block: Block, form: Form) -> Done:
    try:
        done: Done = future.result()
        return done
    except distributed.KilledWorker as error:
        why = f"set aside: dask workers were lost whenever they worked on block {block.id} ({error})"
        return Done(block, encode(block, [failed(case, why) for case in block.cases], form), 0, (why,))
    except NoWorker as error:
        raise TypeError(f"the study could not be opened on a worker ({error}); whytrust and the model's own modules must be "
                        "installed there, in the same versions") from error


_HERE = threading.local()
_ALL: dict[str, list[Supervised]] = {}
_MAKING = threading.Lock()


def _task(study: bytes, job: _Job, block: Block) -> Done:
    """A block, done by a process that belongs to this thread of a dask worker and is kept for the next block."""
    held: dict[str, Supervised] = _HERE.__dict__.setdefault("held", {})
    for other in [other for other in held if other != job.id]:  # of a run that is over, or whose client was lost
        held.pop(other).close()
    if job.id not in held:
        with _MAKING:
            held[job.id] = Supervised(study, job.form, _limits(job))
            _ALL.setdefault(job.id, []).append(held[job.id])
    calls = 0

    def count(more: int) -> None:
        nonlocal calls
        calls += more

    held[job.id].on_calls = count
    done = held[job.id].do(block)
    return replace(done, calls=calls)


def _limits(job: _Job) -> Limits:
    """An equal part of what dask lets the worker have, or of the machine."""
    worker: Any = need("distributed", "dask").get_worker()
    of_dask = getattr(worker.memory_manager, "memory_limit", None)
    if of_dask:
        return Limits(job.seconds, int(of_dask / worker.state.nthreads))
    return Limits.shared(max(worker.state.nthreads, job.workers), job.seconds)


def _forgotten(client: Any, job: str) -> None:
    """End the processes of a run that is over; where the cluster is gone, so are they."""
    with suppress(Exception):
        client.run(_close, job)


def _close(job: str) -> None:
    with _MAKING:
        for one in _ALL.pop(job, ()):
            one.close()
