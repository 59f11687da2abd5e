"""Remove and retrain: does a model that never saw the most important parts learn worse?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from whytrust.batches import one_batch
from whytrust.core import Floats, Parts, generator
from whytrust.measures.flipping import ranks
from whytrust.measures.judged import About

Train = Callable[[Any, NDArray[Any], int], Callable[[Any], Floats]]
"""(inputs, labels, seed) -> a model of a batch of such inputs."""


@dataclass(frozen=True)
class Explained:
    """One labelled input: its parts, its label, and what each explainer says of them."""

    parts: Parts
    label: int
    scores: Mapping[str, Floats]


@dataclass(frozen=True)
class Roar:
    """How far does accuracy fall when the most important parts are removed from all inputs and the model is trained anew?

    For each share of the parts, and each explainer, one training and one accuracy on test inputs treated alike (Hooker et al.
    2019); the mean fall over shares, above that of a random order, is its number. Training anew takes away what hiding parts
    does to a model that never saw holes. It misleads where parts say the same: what is removed can be had from its neighbours,
    and the explanation is blamed for that; where explanations of different classes point at different places, the holes
    themselves tell the class, and accuracy rises (Rong et al. 2022); and it judges what can be learnt, not what this model has
    learnt.
    """

    shares: tuple[float, ...] = (0.1, 0.3, 0.5, 0.7, 0.9)
    trainings: int = 1
    about: ClassVar[About] = About(
        "roar", "how far accuracy falls when the most important parts are removed and the model is trained anew", True,
        ("ranking",), "performance", "faithfulness", "Hooker et al. 2019", ("train",), within=(-1.0, 1.0))

    def __post_init__(self) -> None:
        """Refuse what cannot be trained."""
        if not isinstance(self.shares, tuple) or not self.shares or not all(0 < share < 1 for share in self.shares):
            raise ValueError(f"shares must be a tuple of one or more numbers between 0 and 1, got {self.shares!r}")
        if isinstance(self.trainings, bool) or not isinstance(self.trainings, int) or self.trainings < 1:
            raise ValueError(f"trainings must be a whole number >= 1, got {self.trainings!r}")

    def __call__(self, train: Train, learnt: Sequence[Explained], tested: Sequence[Explained],
                 seed: int = 0) -> dict[str, dict[str, Any]]:
        """By explainer, `random` among them: the accuracy at each share, and the mean fall beside random's."""
        if not learnt or not tested:
            raise ValueError(f"roar needs inputs to learn from and to test on, got {len(learnt)} and {len(tested)}")
        names = list(learnt[0].scores)
        for some in (*learnt, *tested):
            if list(some.scores) != names:
                raise ValueError(f"every input must be explained by the same explainers: expected {', '.join(names)}, got one "
                                 f"with {', '.join(some.scores) or 'none'}")
        if "random" in names:
            raise ValueError("a random order always stands beside the explainers; leave random out")
        whole = self._accuracy(train, learnt, tested, None, 0.0, seed)
        found: dict[str, dict[str, Any]] = {}
        for name in (*names, "random"):
            curve = [self._accuracy(train, learnt, tested, name, share, seed) for share in self.shares]
            found[name] = {"shares": list(self.shares), "accuracy": curve, "whole": whole,
                           "fall": whole - float(np.mean(curve))}
        for one in found.values():
            one["above_random"] = one["fall"] - found["random"]["fall"]
        return found

    def _accuracy(self, train: Train, learnt: Sequence[Explained], tested: Sequence[Explained], name: str | None, share: float,
                  seed: int) -> float:
        sides = [_removed(some, name, share, seed, side) for some, side in ((learnt, "learnt"), (tested, "tested"))]
        labels = [np.array([one.label for one in some]) for some in (learnt, tested)]
        right = []
        for training in range(self.trainings):
            model = train(sides[0], labels[0], seed + training)
            if not callable(model):
                raise TypeError(f"train must return a model, a function of a batch, got {type(model).__name__}")
            scores = np.asarray(model(sides[1]))
            if scores.ndim != 2 or len(scores) != len(tested):
                raise ValueError(f"a model that train returns must give scores of every class, (n, classes): expected "
                                 f"({len(tested)}, classes), got {scores.shape}")
            for some in labels:
                if some.min() < 0 or some.max() >= scores.shape[1]:
                    raise ValueError(f"labels must be classes' numbers, from 0 to {scores.shape[1] - 1} for a model of "
                                     f"{scores.shape[1]} classes, got {some.min()} to {some.max()}")
            right.append(float((scores.argmax(axis=1) == labels[1]).mean()))
        return float(np.mean(right))


def _removed(some: Sequence[Explained], name: str | None, share: float, seed: int, side: str) -> Any:
    """Every input without the share of its parts that comes first."""
    batch = []
    for i, one in enumerate(some):
        d = len(one.parts.names)
        rng = generator(seed, "roar", side, i)
        mask = np.ones(d, bool)
        if name is not None:
            scores = rng.random(d) if name == "random" else np.asarray(one.scores[name], dtype=np.float64)
            if scores.shape != (d,) or not np.isfinite(scores).all():
                raise ValueError(f"scores must be finite numbers, one a part: expected ({d},), got {scores.shape} of {name}")
            mask = ranks(scores, rng) >= round(share * d)
        batch.append(one.parts.compose(mask[None], rng))
    return reduce(one_batch, batch)
