"""One block of a study, worked on wherever it may be: with one thread, and with whatever goes wrong told of its cases."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from joblib import parallel_config
from threadpoolctl import threadpool_limits

from whytrust.memory import sparing
from whytrust.shards import Block, Form, Result, Shard, encode

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

    # A study may also have `shifted(by)`: the same study, which asks the model about other inputs to say what it is.

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterable[Result]:
        """One result for each case of a block; `on_calls` may be told of each model call."""
        ...


@dataclass(frozen=True)
class Done:
    """A block that was worked on."""

    block: Block
    shard: Shard
    calls: int = 0
    """Model calls that are not yet counted."""
    notes: tuple[str, ...] = ()
    """What a reader of the run should know of how it was done."""
    surroundings: Mapping[str, str] = field(default_factory=dict)
    """Where it was done, where that was elsewhere."""


@contextmanager
def single_threaded() -> Iterator[None]:
    """Inside, linear algebra and torch use one thread: how a sum is split, and so its last bits, hangs on the threads."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else 1
    variables = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        with threadpool_limits(limits=1), parallel_config(backend="sequential"):  # a forest adds up its trees as they come
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


def results(study: Study, block: Block, on_calls: Callable[[int], None],
            pieces: int = 1) -> tuple[list[Result], tuple[str, ...]]:
    """The results of a block, and notes; where its work raises, results that say so. Model calls are cut into `pieces`."""
    notes: dict[str, None] = {}
    try:
        with single_threaded(), sparing(lambda note: notes.setdefault(note), pieces):
            return list(study.work(block, on_calls)), tuple(notes)
    except (Exception, SystemExit) as error:  # whatever a model or an explainer raises is told of these cases, and others go on
        told = f"{type(error).__name__}: {error}"
        return [failed(case, told) for case in block.cases], tuple(notes)


def attempt(study: Study, block: Block, form: Form, on_calls: Callable[[int], None], pieces: int = 1) -> Done:
    """A block, done."""
    found, notes = results(study, block, on_calls, pieces)
    return Done(block, encode(block, found, form), 0, notes)


def failed(case: str, error: str) -> Result:
    """The result of a case that could not be worked on."""
    return Result({"case": case, "status": "failed", "error": error})
