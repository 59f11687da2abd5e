"""What every lab has, and how the truth is spoilt by degrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel
from whytrust.core import CoveredParts, Floats, Masks, Parts, generator
from whytrust.question import Question

MOST_PARTS = 14
"""Of more parts not every set is asked."""


@dataclass(frozen=True, eq=False)
class Planted:
    """One input of a lab: its parts, what the model is asked about, and where people would point."""

    parts: Parts
    target: int
    annotation: NDArray[np.bool_]  # shaped like the input as a reader knows it


class Lab(Protocol):
    """A model whose reasons are known, and inputs for it: a frozen dataclass with `seed` and `shared`."""

    @property
    def name(self) -> str:
        """Domain and kind of model."""
        ...

    @property
    def about(self) -> str:
        """What the model goes by, in one sentence."""
        ...

    @property
    def domain(self) -> str:
        """image, text, audio or tabular."""
        ...

    @property
    def expected(self) -> bool:
        """Are the model's reasons what people expect, and annotate?"""
        ...

    @property
    def exact(self) -> bool:
        """Is it known how much each part contributes, or only which parts matter?"""
        ...

    @property
    def shared(self) -> bool:
        """Has something been added to every class alike, or can nothing be?"""
        ...

    @property
    def model(self) -> CheckedModel:
        """The model itself; a white box's `function` is the formula."""
        ...

    @property
    def baselines(self) -> tuple[str, ...]:
        """What parts can be hidden behind such that the truth is known; the usual one first."""
        ...

    def planted(self, case: int, cut: Any = None, baseline: str | None = None, seed: int = 0) -> Planted:
        """One of its inputs, cut and hidden as usual or as is asked for."""
        ...

    def truth(self, question: Question) -> Floats:
        """What each part contributes to the target's score, exactly, by the formula of the question's model."""
        ...


def behind(parts: CoveredParts, baseline: str | None, usual: str, case: int, seed: int) -> Parts:
    """Parts behind a baseline, which draws its noise by the case."""
    return parts.behind(usual if baseline is None else baseline, generator(seed, "baseline", case))


def shown_and_hidden(question: Question) -> tuple[Floats, Floats]:
    """The input itself, and with every part hidden."""
    masks = np.array([np.ones(question.d, bool), np.zeros(question.d, bool)])
    shown, hidden = question.parts.compose(masks, generator(0))
    return np.asarray(shown, dtype=np.float64), np.asarray(hidden, dtype=np.float64)


def shapley(question: Question, rng: np.random.Generator) -> Floats:
    """The Shapley value of every part, from every set of parts: exact, and so for few parts only."""
    d = question.d
    if d > MOST_PARTS:
        raise ValueError(f"every set of parts can be asked of at most {MOST_PARTS} parts, got {d}; cut more coarsely")
    masks: Masks = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 > 0
    value, sizes = question.score(masks, rng), masks.sum(axis=1)
    weights = np.array([math.factorial(k) * math.factorial(d - k - 1) / math.factorial(d) for k in range(d)] + [0.0])
    out = np.empty(d)
    for part in range(d):
        without = np.flatnonzero(~masks[:, part])
        out[part] = float(weights[sizes[without]] @ (value[without | 1 << part] - value[without]))
    return out


def corrupted(scores: Floats, share: float, rng: np.random.Generator) -> Floats:
    """The scores with a share of them, drawn at random, passed on around a ring: the same numbers, less of the truth.

    0 leaves all as it is; with 1 no part has its own, which says nothing of the model. Of one stream, what a smaller share
    moves a larger one moves too.
    """
    out = np.array(scores, dtype=np.float64)
    chosen = rng.permutation(len(out))[:max(round(share * len(out)), 2 * (share > 0))]
    out[chosen] = out[np.roll(chosen, 1)]
    return out
