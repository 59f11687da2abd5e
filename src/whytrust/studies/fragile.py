"""Fragile explanations as a study: text after text attacked by word swaps that keep the label, and what is left of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from whytrust.store import Block, Result
from whytrust.studies.casewise import in_blocks
from whytrust.studies.described import code_of, words
from whytrust.swapping.fragility import Fragility

BLOCK, ASKED, FORMAT = 2, 16, 1


@dataclass(frozen=True, eq=False)
class FragileStudy:
    """How far do explanations of these texts change when a few words are swapped and the label stays?"""

    fragility: Fragility
    texts: Sequence[str]
    explainer: str  # what the victim is called
    names: Sequence[str] | None = None  # what each text is called
    truths: Sequence[int] | None = None  # labels that the authors' variant keeps
    what: str = ""
    block: int = BLOCK
    command: str = ""

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        if not len(self.texts):
            raise ValueError("texts must hold at least one text, got none")
        for name, given in (("names", self.names), ("truths", self.truths)):
            if given is not None and len(given) != len(self.texts):
                raise ValueError(f"{name} must have one entry a text: expected {len(self.texts)}, got {len(given)}")
        if self.fragility.variant == "authors" and self.truths is None:
            raise ValueError("variant 'authors' keeps the data set's own labels: pass labels=, the true class of each text")

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        one, texts = self.fragility, {case: _digest(self._text(case), self._truth(case)) for case in self.cases}
        hashes = {"what the model says of the first texts": self._fingerprint, **code_of(one.model), **texts}
        return {"format": FORMAT, "study": "fragile", "seed": one.seed, "hashes": hashes,
                "spec": {"explainer": self.explainer, "victim": words(one.victim), "objectives": list(one.objectives),
                         "max_ratio": one.max_ratio, "candidates": words(one.candidates),
                         "constraints": [words(rule) for rule in one.constraints], "variant": one.variant,
                         "controls": one.controls, "racing": words(one.racing), "quality": words(one.quality),
                         "threshold": one.model.threshold, "block": self.block},
                "about": {"model": one.model.name, "inputs": self.what or f"{len(self.texts)} texts", "command": self.command,
                          "candidates": one.candidates.name, "constraints": [rule.name for rule in one.constraints],
                          "quality": None if one.quality is None else one.quality.name,
                          "not_judged": list(getattr(one.quality, "left_out", ()))}}

    @property
    def cases(self) -> list[str]:
        """The names under which texts are kept."""
        return [f"{i:05d}" for i in range(len(self.texts))]

    def blocks(self) -> list[Block]:
        """A few texts at a time."""
        return in_blocks("texts", self.cases, self.block)

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterator[Result]:
        """What is found of each text; what fails is told of that text, and the next one goes on."""
        with self.fragility.model.asking():
            for case in block.cases:
                called = {"name": f"text {int(case) + 1}" if self.names is None else str(self.names[int(case)])}
                try:
                    record, arrays = self.fragility(case, self._text(case), on_calls, self._truth(case))
                    yield Result({**record, **called}, arrays)
                except Exception as error:  # whatever a model or an explainer raises: one text's fault is no other's
                    yield Result({"case": case, **called, "status": "failed", "error": f"{type(error).__name__}: {error}"})

    def _text(self, case: str) -> Any:
        return self.texts[int(case)]

    def _truth(self, case: str) -> int | None:
        return None if self.truths is None else int(self.truths[int(case)])

    @cached_property
    def _fingerprint(self) -> str:
        """What the model says of the first texts, to three digits: another model rarely says the same."""
        told, errors = list[str](), list[Exception]()
        for text in [text for text in self.texts if isinstance(text, str) and text.strip()][:ASKED]:
            try:
                scores = self.fragility.model([text])
            except (ValueError, TypeError) as error:  # it is told of this text when its turn comes
                errors.append(error)
                continue
            self.fragility.model.labels(scores)  # a regressor has none, and says so
            told.append(" ".join(f"{score:.2e}" for score in scores[0, :64]))
        if not told:
            raise errors[0] if errors else ValueError("texts must be strings with at least one word, and none of these is")
        return hashlib.blake2b("\n".join(told).encode(), digest_size=8).hexdigest()


def _digest(text: Any, truth: int | None) -> str:
    return hashlib.blake2b(f"{truth} {text!r}".encode("utf-8", "replace"), digest_size=8).hexdigest()
