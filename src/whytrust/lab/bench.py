"""What every lab has, and how the truth is spoilt by degrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import CoveredParts, Floats, LayeredParts, Masks, Parts, generator
from whytrust.measures.case import Case
from whytrust.question import Question

MOST_PARTS = 14
"""Of more parts not every set is asked."""
STEPS = 40
"""Of an attack, at most."""


@dataclass(frozen=True, eq=False)
class Planted:
    """One input of a lab: its parts, what the model is asked about, and where people would point."""

    parts: Parts
    target: int
    annotation: NDArray[np.bool_]  # shaped like the input as a reader knows it


@dataclass(frozen=True, eq=False)
class Changed:
    """An input of a lab that was changed until the model changed its mind: its parts, and what it was before."""

    parts: LayeredParts
    clean: Any

    def case(self, model: CheckedModel, batch_size: int | None = None) -> Case:
        """The adversary as trials take it; `model` is the lab's, or one that labels alike."""
        ones = np.ones((1, len(self.parts.names)), bool)
        before, after = (int(model.labels(model(one.compose(ones, generator(0))))[0])
                         for one in (self.parts.like(self.clean), self.parts))
        return Case(model, self.parts, self.clean, before, after, batch_size)


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

    def changed(self, case: int, cut: Any = None, seed: int = 0) -> Changed | None:
        """One of its inputs, changed as an audit of this domain would change it; None where the model does not mind."""
        ...

    def truth(self, question: Question, shown: float = 0.5) -> Floats:
        """What each part contributes to the target's score, exactly, by the formula of the question's model.

        That is what showing it adds on average, where every other part is shown with this chance; where parts do not interact
        it is the same for all. A half gives Shapley's value of pairs.
        """
        ...


def behind(parts: CoveredParts, baseline: str | None, usual: str, case: int, seed: int) -> Parts:
    """Parts behind a baseline, which draws its noise by the case."""
    return parts.behind(usual if baseline is None else baseline, generator(seed, "baseline", case))


def layered(parts: Any, usual: str) -> LayeredParts:
    """Parts behind the usual baseline that can still be laid over others; columns of rows cannot be both, and stay."""
    covered = parts.behind(usual, generator(0))
    return covered if isinstance(covered, LayeredParts) else parts


def stepped(model: DifferentiableModel, clean: Floats, size: float, least: float, most: float) -> Floats | None:
    """Signed steps up the gradient towards the second-best class until it is the best, and as many again.

    None where STEPS do not do. An attack that stops at the first hit leaves every part needed, and nothing to be told apart.
    """
    scores = model(clean[None])[0]
    label, towards = (int(i) for i in np.argsort(-scores, kind="stable")[:2])
    weights, changed = np.zeros((1, len(scores))), np.array(clean, dtype=np.float64)
    weights[0, towards], weights[0, label] = 1, -1
    hit = 0
    for taken in range(1, 2 * STEPS + 1):
        changed = np.clip(changed + size * np.sign(model.vjp(changed[None], weights)[1][0]), least, most)
        turned = int(model(changed[None])[0].argmax()) != label
        hit = hit or taken * turned
        if taken == 2 * hit or (not hit and taken == STEPS):
            return changed if turned else None
    return None


def shown_and_hidden(question: Question) -> tuple[Floats, Floats]:
    """The input itself, and with every part hidden."""
    masks = np.array([np.ones(question.d, bool), np.zeros(question.d, bool)])
    shown, hidden = question.parts.compose(masks, generator(0))
    return np.asarray(shown, dtype=np.float64), np.asarray(hidden, dtype=np.float64)


def shapley(question: Question, rng: np.random.Generator) -> Floats:
    """The Shapley value of every part, from every set of parts: exact, and so for few parts only."""
    d, (masks, value) = question.d, _every_set(question, rng)
    sizes = masks.sum(axis=1)
    weights = np.array([math.factorial(k) * math.factorial(d - k - 1) / math.factorial(d) for k in range(d)] + [0.0])
    out = np.empty(d)
    for part in range(d):
        without = np.flatnonzero(~masks[:, part])
        out[part] = float(weights[sizes[without]] @ (value[without | 1 << part] - value[without]))
    return out


def added_on_average(question: Question, shown: float, rng: np.random.Generator) -> Floats:
    """What showing each part adds, on average, where every other is shown with this chance: from every set of parts."""
    masks, value = _every_set(question, rng)
    sizes = masks.sum(axis=1)
    out = np.empty(question.d)
    for part in range(question.d):
        without = np.flatnonzero(~masks[:, part])
        chances = shown ** sizes[without] * (1 - shown) ** (question.d - 1 - sizes[without])
        out[part] = float(chances @ (value[without | 1 << part] - value[without]))
    return out


def _every_set(question: Question, rng: np.random.Generator) -> tuple[Masks, Floats]:
    d = question.d
    if d > MOST_PARTS:
        raise ValueError(f"every set of parts can be asked of at most {MOST_PARTS} parts, got {d}; cut more coarsely")
    masks: Masks = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 > 0
    return masks, question.score(masks, rng)


def corrupted(scores: Floats, share: float, rng: np.random.Generator) -> Floats:
    """The scores with a share of them, drawn at random, passed on around a ring: the same numbers, less of the truth.

    0 leaves all as it is; with 1 no part has its own, which says nothing of the model. Of one stream, what a smaller share
    moves a larger one moves too.
    """
    out = np.array(scores, dtype=np.float64)
    chosen = rng.permutation(len(out))[:max(round(share * len(out)), 2 * (share > 0))]
    out[chosen] = out[np.roll(chosen, 1)]
    return out
