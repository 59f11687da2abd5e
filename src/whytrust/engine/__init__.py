"""Fills a run folder: does what is left of a study, on whichever engine, and keeps each block as soon as it is done.

However often a run is interrupted, and whatever the engine and the number of workers, the records and arrays are the same to
the byte, as long as the study's work is a function of the block alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack, closing
from pathlib import Path

from whytrust.engine.dask import Dask as Dask
from whytrust.engine.engines import Engine as Engine
from whytrust.engine.engines import Here as Here
from whytrust.engine.engines import Processes as Processes
from whytrust.engine.engines import chosen as chosen
from whytrust.engine.work import Study as Study
from whytrust.engine.work import single_threaded as single_threaded
from whytrust.legible import in_line
from whytrust.progress import CaseProgress
from whytrust.shards import Block as Block
from whytrust.shards import Result as Result
from whytrust.store import Store

Jobs = int | Engine
"""How many work at once, and where: a number of processes of this machine, or an engine."""


def run(study: Study, folder: str | Path, jobs: Jobs = 1, label: str = "auditing") -> Store:
    """Do what is left of a study and keep it in `folder`; the store comes back for reading.

    `jobs` is a number of processes, or an engine. A block whose work raises is kept too, each case of it as failed with the
    error: count the failures before believing a rate. When the run is continued, failed cases are tried again where the engine
    says so (`Here(retry_failed=True)`, --retry-failed), each with the other cases of its block, and not otherwise.
    """
    engine = chosen(jobs)
    blocks = list(study.blocks())
    settled = engine.settled(study)
    with ExitStack() as stack:
        if settled.worker is not None:
            stack.callback(settled.worker.close)
        store = stack.enter_context(closing(Store.create(folder, {**settled.manifest, "blocks": blocks})))
        if getattr(engine, "retry_failed", False):
            _retry_failed(store)
        done = store.finished()
        left = [block for block in blocks if block.id not in done]
        cases, to_do = (sum(len(block.cases) for block in some) for some in (blocks, left))
        for told in store.problems:
            _say(told)
        heard = len(store.problems)
        if left and (cut_short := store.journal.cut_short()):
            _say(cut_short)
        progress = CaseProgress(label, cases, cases - to_do, min(engine.workers, max(len(left), 1)))
        with progress:
            work = engine.run(settled.study, store, left, progress, settled.worker)
            with closing(work):  # on an error or an interrupt the workers are stopped now, not when memory is tidied
                for one in work:
                    _note(store, progress, (*one.notes, *store.journal.elsewhere(one.surroundings)))  # before it counts as done
                    store.put(one.block, one.shard)
                    _note(store, progress, store.problems[heard:])
                    heard = len(store.problems)
                    progress(one.calls)
                    progress.finished(len(one.block.cases))
    return store


def _note(store: Store, progress: CaseProgress, notes: Iterable[str]) -> None:
    """Keep what a reader of the run should know, and say it."""
    for note in notes:
        with store.telling("a note"):
            new = store.journal.note(note)
        if new:
            progress.aside(note)


def _retry_failed(store: Store) -> None:
    """Set aside what failed, so that it is done again, and say so in the run too."""
    cases, blocks = store.set_failed_aside()
    if cases:
        told = f"cases that failed were tried again: {cases}, with all of {blocks} block{'s' if blocks > 1 else ''}"
        with store.telling("a note"):
            store.journal.note(told)
        _say(told)


def _say(told: str) -> None:
    print(f"whytrust: {in_line(told)}", file=sys.stderr)
