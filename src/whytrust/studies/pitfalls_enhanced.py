"""Wang & Wang (2022), enhancement: nets that were never trained are made right by a small change of the input.

The explanation of an untrained net must not look like that of the trained one, however right the net has been made: table 2,
figure 2 and the appendix's figures 1 to 5, and in numbers how far each explainer tells the twins apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from whytrust.attacks.enhance import Enhance
from whytrust.checked import DifferentiableModel
from whytrust.core import Floats, generator
from whytrust.domains.image import ImageParts
from whytrust.engine import Block, Result
from whytrust.explainers import NAMES
from whytrust.question import Question
from whytrust.studies.data import Item
from whytrust.studies.pitfalls_flipping import EXPLAINERS
from whytrust.studies.pitfalls_nets import Net, Pictures, nets
from whytrust.studies.twins import alike

EPSILON, STEP, ITERATIONS = 0.3, 0.03, 30
CELLS = 7
"""Explanations are compared over a grid of so many rows and columns: pixel by pixel even twins of one weight less differ."""
ALSO = ("integrated_gradients", "occlusion", "random", "edges")
"""Compared beside the paper's explainers: two that are no maps of the last layers, and two that never look at the model."""
SHOWN = 3
OnCalls = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class EnhancedStudy:
    """Every image enhanced for every untrained net, and explained thrice."""

    pictures: Pictures
    explainers: Sequence[str] = (*EXPLAINERS, *ALSO)
    seed: int = 0
    block: int = 8

    @property
    def nets(self) -> tuple[str, ...]:
        """Every net there is for such images."""
        return nets(self.pictures.digits)

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        return {"format": 1, "study": "pitfalls", "seed": self.seed, "hashes": self.pictures.hashes(
                    *(Net(name, trained, self.pictures.data) for name in self.nets for trained in (False, True))),
                "spec": {"part": "enhanced", "nets": list(self.nets), "images": len(self.pictures.items),
                         "explainers": list(self.explainers), "epsilon": EPSILON, "step": STEP, "iterations": ITERATIONS,
                         "data": self.pictures.what},
                "about": {"data": self.pictures.what, "nets": list(self.nets)}}

    def blocks(self) -> list[Block]:
        """A few images of one net."""
        ids = [item.id for item in self.pictures.items]
        return [Block(f"{net}-{ids[i]}", tuple(f"{net}-{one}" for one in ids[i:i + self.block]))
                for net in self.nets for i in range(0, len(ids), self.block)]

    def work(self, block: Block, on_calls: OnCalls) -> Iterator[Result]:
        """Enhance the images of a block together, then explain each."""
        name = block.cases[0].rpartition("-")[0]
        items = [self._by_id[case.rpartition("-")[2]] for case in block.cases]
        before, after = (Net(name, trained, self.pictures.data).model() for trained in (False, True))
        given: dict[int, Floats] = {}
        errors: dict[int, Exception] = {}
        for i, item in enumerate(items):
            try:
                given[i] = self.pictures.taken(Net(name), item)
            except (ValueError, OSError) as error:
                errors[i] = error
        attack = Enhance(EPSILON, STEP, ITERATIONS, units="input", bounds=None)
        with before.asking(), after.asking():
            made = attack(before, list(given.values()), [items[i].truth for i in given], self.seed,
                          ids=[items[i].id for i in given], on_calls=on_calls) if given else None
            enhanced = dict(zip(given, made, strict=True)) if made is not None else {}
            for i, (case, item) in enumerate(zip(block.cases, items, strict=True)):
                if i in errors:
                    yield Result({"case": case, "net": name, "status": "failed",
                                  "error": f"{type(errors[i]).__name__}: {errors[i]}"}, {})
                else:
                    yield self._result(case, name, item, given[i], np.asarray(enhanced[i]), before, after, on_calls)

    @cached_property
    def _by_id(self) -> Mapping[str, Item]:
        return {item.id: item for item in self.pictures.items}

    def _result(self, case: str, name: str, item: Item, raw: Floats, enhanced: Floats, before: DifferentiableModel,
                after: DifferentiableModel, on_calls: OnCalls) -> Result:
        settings = {"raw": (before, raw), "enhanced": (before, enhanced), "trained": (after, raw)}
        labels = {which: int(model(picture[None])[0].argmax()) for which, (model, picture) in settings.items()}
        record: dict[str, Any] = {"case": case, "net": name, "name": item.name, "truth": item.truth, "status": "ok",
                                  "labels": labels, "change": float(np.abs(enhanced - raw).max())}
        scores: dict[str, dict[str, Floats]] = {}
        failed: dict[str, str] = {}
        for explainer in self.explainers:
            try:
                scores[explainer] = {which: self._explained(explainer, model, picture, item, which, on_calls)
                                     for which, (model, picture) in settings.items()}
            except (ValueError, TypeError) as error:
                failed[explainer] = f"{type(error).__name__}: {error}"
        record["alike"] = {one: alike(found) for one, found in scores.items()}
        record["failures"] = failed
        shown = {f"map_{one}_{which}": values.reshape(CELLS, CELLS).astype(np.float32) for one, found in scores.items()
                 for which, values in found.items()} if int(item.id) < SHOWN else {}
        return Result(record, {**shown, "raw": raw, "enhanced": enhanced} if shown else {})

    def _explained(self, name: str, model: DifferentiableModel, picture: Floats, item: Item, which: str,
                   on_calls: OnCalls) -> Floats:
        """One score a cell, of the true class: what the three are made to say."""
        parts = ImageParts.cut(picture, f"grid:{CELLS}x{CELLS}", fill=0.0, layout="NCHW")
        question = Question(model, parts, int(item.truth), on_calls=on_calls)  # type: ignore[arg-type]
        return np.asarray(NAMES[name].make()(question, generator(self.seed, "explain", item.id, which)).scores)
