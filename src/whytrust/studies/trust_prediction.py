"""Do explanations tell which predictions rest on features that are not to be trusted? For any model, in any domain.

A quarter of the features that the inputs share (words, columns, components of images and sounds) is declared untrustworthy,
again and again. What is true is known: the model is asked without them. What a reader says is known, too, by fixed rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import whytrust.inputs as reading
from whytrust.checked import CheckedModel
from whytrust.core import Parts, generator
from whytrust.features import Made, SharedFeatures, shared_features
from whytrust.question import Question
from whytrust.readers import Marked, Reading, at_most, limit_of, read
from whytrust.store import Block, Result
from whytrust.studies.casewise import each
from whytrust.studies.data import Data
from whytrust.studies.described import code_of, words
from whytrust.studies.mistrust import judged, refuse_numbers, truly_trusted, untrusted

ROUNDS, SHARE, BLOCK, ASKED = 100, 0.25, 4, 64


@dataclass(frozen=True, eq=False)
class PredictionStudy:
    """Which explainers make a reader mistrust the right predictions?

    Every input's predicted class is explained. It misleads where hiding a quarter of the features changes no decision, or
    nearly all: then trusting everything, or nothing, is as good as any explanation, which is why that line is shown.
    """

    model: CheckedModel
    data: Data
    explainers: Mapping[str, Any]
    parts: Any = None
    of_parts: Mapping[str, Any] | None = None
    rounds: int = ROUNDS
    share: float = SHARE
    features: int | None = None  # parts that a reader takes from an explanation; None is ten, but no more than a quarter
    components: int | None = None
    batch_size: int | None = None
    seed: int = 0
    block: int = BLOCK
    command: str = ""

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        if not isinstance(self.share, int | float) or not 0 < self.share < 1:
            raise ValueError(f"share must lie between 0 and 1, got {self.share!r}; a quarter, 0.25, is usual")
        for name in ("rounds", "features", "block"):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1
            if not whole and not (value is None and name == "features"):
                raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")

    def __getstate__(self) -> dict[str, Any]:
        """With the features that inputs share, which cost model calls, so that no worker asks again."""
        _ = self._usable
        return dict(self.__dict__)

    # --- what a run is ------------------------------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        usable, shared, _ = self._usable
        return {"format": 1, "study": "trust", "seed": self.seed,
                "hashes": {"model": self._said(usable), **code_of(self.model),
                           **{item.id: item.digest() for item in self.data.items}},
                "spec": {"experiment": "prediction", "explainers": {name: words(one) for name, one in self.explainers.items()},
                         "parts": words(self.parts), "rounds": self.rounds, "share": self.share, "features": self.features,
                         "of_parts": {name: words(one) for name, one in (self.of_parts or {}).items()}, "block": self.block,
                         "components": self.components, "threshold": self.model.threshold},
                "about": {"model": self.model.name, "inputs": self.data.what, "shared": len(shared.names),
                          "feature": shared.about, "usable": len(usable), "command": self.command,
                          "deterministic": self._cut(usable[0]).deterministic}}

    def _said(self, usable: Sequence[str]) -> str:
        """What the model says of the first inputs, as a hash: another model is another run. Rounding does not make it one."""
        scores = []
        for case in usable[:ASKED]:
            try:
                said = Question(self.model, self._cut(case), 0, self.batch_size).original
            except (ValueError, TypeError):  # it is recorded as failed when its turn comes
                scores.append("")
                continue
            refuse_numbers(said)
            scores.append(" ".join(f"{score:.2e}" for score in said[:ASKED]))
        return hashlib.blake2b(str(scores).encode(), digest_size=8).hexdigest()

    def blocks(self) -> Sequence[Block]:
        """A few inputs at a time."""
        ids = [item.id for item in self.data.items]
        return [Block(f"{start // self.block:04d}", tuple(ids[start:start + self.block]))
                for start in range(0, len(ids), self.block)]

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterator[Result]:
        """What is true of each prediction in all rounds, and what the readers of all explanations say."""
        with self.model.asking():
            yield from each(block, lambda case: self._case(case, on_calls))

    # --- one prediction -----------------------------------------------------------------------------------------------

    def _case(self, case: str, on_calls: Callable[[int], None]) -> dict[str, Any]:
        usable, shared, failed = self._usable
        if case not in usable:
            raise ValueError(failed[case])
        features = shared.of_parts[usable.index(case)]
        question = Question(self.model, self._cut(case), 0, self.batch_size, on_calls=on_calls)
        label = int(self.model.labels(question.original[None])[0])
        asked = question.watching([label])[0]
        readings, failures = dict[str, Reading](), dict[str, str]()
        for name, explainer in self.explainers.items():
            try:
                limit = limit_of(self.model, question.original, label)
                e = explainer(asked, generator(self.seed, case, name))
                readings[name] = read(e, features, limit, at_most(self.features, len(features)), True)
            except (ValueError, TypeError) as error:
                failures[name] = f"{type(error).__name__}: {error}"
        truly = truly_trusted(question, features, self._marked, generator(self.seed, case, "truth"))
        return {"case": case, "status": "ok", "label": label, "d": len(features), "failures": failures,
                "weighs": {name: one.prediction is not None for name, one in readings.items()},
                "named": {name: len(one.features) for name, one in readings.items()},
                **judged(readings, truly, self._marked)}

    def _cut(self, case: str) -> Parts:
        item = next(one for one in self.data.items if one.id == case)
        return reading.cut(self.data.read(item), self.parts, self.model.layout, dict(self._prepared), self.model.reads)

    @cached_property
    def _prepared(self) -> dict[str, Any]:
        return reading.prepare(dict(self.of_parts or {}))

    @cached_property
    def _marked(self) -> Marked:
        return untrusted(len(self._usable[1].names), self.rounds, self.share, self.seed)

    @cached_property
    def _usable(self) -> tuple[list[str], SharedFeatures, dict[str, str]]:
        """The inputs that can be cut, the features they share, and why the others cannot be."""
        usable, failed = list[str](), dict[str, str]()
        for item in self.data.items:
            try:
                self._cut(item.id)
                usable.append(item.id)
            except (ValueError, TypeError, OSError) as error:
                failed[item.id] = f"{type(error).__name__}: {error}"
        if not usable:
            raise ValueError(f"none of the {len(failed)} inputs can be used; the first: {next(iter(failed.values()))}")
        cuts = Made(len(usable), lambda index: self._cut(usable[index]))
        return usable, shared_features(self.model, cuts, self.components, self.seed, self.batch_size), failed

