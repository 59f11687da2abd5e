"""Cases in blocks of one size, and each worked on by itself: what fails is told of that case, and the next one goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from whytrust.store import Block, Result


def in_blocks(name: str, cases: Sequence[str], size: int) -> list[Block]:
    """So many cases a block, in order."""
    return [Block(f"{name}-{start}", tuple(cases[start:start + size])) for start in range(0, len(cases), size)]


def each(block: Block, work: Callable[[str], Mapping[str, Any]]) -> Iterator[Result]:
    """A result for each case of a block: what `work` says of it, or why it failed."""
    for case in block.cases:
        try:
            yield Result(work(case))
        except Exception as error:  # whatever a model or an explainer raises: one case's fault is no other's
            yield Result({"case": case, "status": "failed", "error": f"{type(error).__name__}: {error}"})
