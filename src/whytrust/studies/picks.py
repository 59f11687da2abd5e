"""Explanations of many inputs as a study, for who picks from them: on any engine, and kept as they get done."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whytrust import api, files, limits
from whytrust import inputs as reading
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.explanation import Explanation
from whytrust.shards import Block, Result
from whytrust.store import Store
from whytrust.studies.data import spread
from whytrust.studies.described import code_of, told

BLOCK, ASKED = 16, 4
"""Inputs that are kept together, and inputs whose scores stand for a model."""


@dataclass(frozen=True, eq=False)
class PickStudy:
    """Every input explained for every model."""

    models: tuple[CheckedModel, ...]
    items: Sequence[Any]
    explainer: Any
    target: Any
    parts: Any
    seed: int
    options: Mapping[str, Any]
    shift: int = 0  # which inputs the models are asked about to say which they are

    def shifted(self, by: int) -> PickStudy:
        """The same study, that asks the models about other inputs to say which they are."""
        return replace(self, shift=by)

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        return {"study": "pick", "seed": self.seed, "spec": {
                    "models": [model.name for model in self.models], "explainer": told(self.explainer), "target": self.target,
                    "parts": told(self.parts), "options": told(dict(self.options))},
                "hashes": {"inputs": _hash([self._content(item) for item in self.items]),
                           **{f"what {model.name} says of some inputs": self._said(model) for model in self.models},
                           **code_of(*self.models)},
                "about": {"inputs": len(self.items)}}

    def _content(self, item: Any) -> str:
        """An input by what it is, and a file by what is in it."""
        if not isinstance(item, os.PathLike):
            return str(told(item))
        found = hashlib.blake2b(digest_size=8)
        try:
            files.digest_into(item, "an input", found.update, limits.ARRAY, line=None)
        except (OSError, ValueError):  # it is told as its own failure, when its turn comes
            return "cannot be read"
        return found.hexdigest()

    def _said(self, model: CheckedModel) -> str:
        """Its scores of a few inputs that can be read, to three digits."""
        said: list[str] = []
        given = {name: value for name, value in self.options.items() if name in {
            name for names in reading.OPTIONS.values() for name in names}}
        for item in spread(self.items, ASKED, self.shift):
            try:
                cut = reading.cut(item, self.parts, model.layout, reading.prepare(dict(given)), model.reads)
                scores = model(cut.compose(np.ones((1, len(cut.names)), dtype=bool), generator(self.seed)))[0]
            except (ValueError, TypeError, OSError):  # it is told as its own failure, when its turn comes
                continue
            said.append(" ".join(f"{score:.2e}" for score in scores[:64]))
            if len(said) == (1 if self.shift else ASKED):
                break
        return _hash(said)

    def blocks(self) -> list[Block]:
        """Inputs in blocks of fixed size."""
        ids = [f"{i:06d}" for i in range(len(self.items))]
        return [Block(f"{start // BLOCK:05d}", tuple(ids[start:start + BLOCK])) for start in range(0, len(ids), BLOCK)]

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterator[Result]:
        """One input after the other: an explanation is what it would be alone."""
        for case in block.cases:
            try:
                found = [api.explain(model, [self.items[int(case)]], self.explainer, self.target, self.parts, self.seed,
                                     **self.options)[0] for model in self.models]
            except (ValueError, TypeError, OSError) as error:
                yield Result({"case": case, "status": "failed", "error": " ".join(str(error).split())})
                continue
            calls = sum(int(one.calls or 0) for one in found)
            on_calls(calls)
            yield Result({"case": case, "status": "ok", "calls": calls,
                          "explanations": [json.dumps(one.to_json()) for one in found]})


def explained(store: Store, models: int, inputs: int) -> tuple[list[list[Explanation | None]], dict[int, str]]:
    """The explanations of each model, None for inputs that failed, and why those did."""
    found: list[list[Explanation | None]] = [[None] * inputs for _ in range(models)]
    failed: dict[int, str] = {}
    for record in store.records():
        place = int(record["case"])
        if record["status"] != "ok":
            failed[place] = str(record["error"])
            continue
        for side, text in zip(found, record["explanations"], strict=True):
            side[place] = Explanation.from_json(json.loads(text))
    return found, dict(sorted(failed.items()))


def _hash(texts: Sequence[str]) -> str:
    return hashlib.blake2b(json.dumps(list(texts)).encode(), digest_size=8).hexdigest()
