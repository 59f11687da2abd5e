"""What a user types to remove what explainers point at and train anew: `roar`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust import api, legible
from whytrust import inputs as reading
from whytrust.core import Floats
from whytrust.measures.roar import Explained, Roar, Train
from whytrust.measuring import RANDOM, explainers_of
from whytrust.progress import Progress
from whytrust.store import plain
from whytrust.studies.judged_cases import settled


@dataclass(frozen=True)
class Retrained:
    """How far accuracy falls without what each explainer points at: `print(retrained)` shows it beside a random order."""

    found: Mapping[str, Mapping[str, Any]]

    def table(self) -> list[dict[str, Any]]:
        """A row an explainer: the accuracy at each share, the mean fall, and how far that is above random's."""
        return [{"explainer": name, **{f"{share:g} removed": accuracy for share, accuracy in
                                       zip(one["shares"], one["accuracy"], strict=True)},
                 "whole": one["whole"], "fall": one["fall"], "above_random": one["above_random"]}
                for name, one in self.found.items()]

    def to_json(self) -> dict[str, Any]:
        """Every number, as plain data."""
        return dict(plain({"rows": self.table()}))

    def __str__(self) -> str:
        """A line an explainer."""
        first = next(iter(self.found.values()))
        shares = ", ".join(f"{100 * share:.0f} %" for share in first["shares"])
        lines = [f"Trained anew, {100 * first['whole']:.1f} % of test inputs are right with all parts, and without the first "
                 f"{shares} of them:"]
        width = legible.width(self.found)
        for name, one in self.found.items():
            told = ", ".join(f"{100 * accuracy:.1f} %" for accuracy in one["accuracy"])
            above = "" if name == RANDOM else f"; {100 * one['above_random']:+.1f} points beside random"
            lines.append(f"  {name:<{width}}  {told}; falls by {100 * one['fall']:.1f} points on average{above}")
        return legible.lines(lines)


def roar(train: Train, model: Any, learnt: tuple[Any, Any], tested: tuple[Any, Any], method: Any = "lime", *,
         parts: Any = None, shares: tuple[float, ...] = Roar.shares, trainings: int = Roar.trainings, seed: int = 0,
         **options: Any) -> Retrained:
    """How far does accuracy fall when what explainers point at is removed from all inputs and a model is trained anew?

    `train(inputs, labels, seed)` returns a model of a batch, which gives (n, classes) scores: it is called once for each
    explainer and share, and `trainings` times with other seeds. `learnt` and `tested` are (inputs, labels), labels from 0. What
    is removed is what explanations of `model` say, for the class that it predicts; `method`, `parts` and further options are
    those of wt.explain. A random order stands beside. See whytrust.measures.Roar for how it misleads.
    """
    judge = Roar(shares, trainings)
    wrapped = api.model(model)
    explainers, ready, of_parts, batch_size = explainers_of(method, dict(options), parts)
    if ready:
        raise TypeError(f"roar explains every input, and {', '.join(sorted(ready))} are values that are there already")
    wrapped = reading.for_sounds(wrapped, learnt[0] if isinstance(learnt, tuple) and len(learnt) == 2 else (), parts, of_parts)
    ask = api.Asking(wrapped, tuple(explainers.values()), True, None, parts, int(seed), of_parts, batch_size)
    with Progress("explaining") as progress:
        sides = []
        for what, side in (("learnt", learnt), ("tested", tested)):
            if not isinstance(side, tuple) or len(side) != 2 or len(side[0]) != len(side[1]):
                raise ValueError(f"{what} must be (inputs, labels), with a label for each input")
            items, labels = reading.several(side[0], of_parts) if len(side[0]) else [], list(side[1])
            items = list(side[0]) if items is None else items
            if not all(isinstance(label, int | np.integer) for label in labels):
                raise TypeError(f"labels of {what} must be classes' numbers, from 0, got {labels[0]!r}")
            some = []
            for item, label in zip(items, labels, strict=True):
                cut = reading.cut(item, parts, wrapped.layout, dict(of_parts), wrapped.reads)
                found: list[Floats] = [np.asarray(e.scores) for e in ask(item, progress)]
                some.append(Explained(settled(cut), int(label), dict(zip(explainers, found, strict=True))))
            sides.append(some)
    with wrapped.asking():
        return Retrained(judge(train, sides[0], sides[1], int(seed)))

