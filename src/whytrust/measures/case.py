"""An input that was changed so that the model changed its mind: there the cause of a prediction is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel
from whytrust.core import Floats, LayeredParts, Masks, generator
from whytrust.explanation import Explanation
from whytrust.question import Memory, Question

Order = NDArray[np.intp]
"""The numbers of the parts, the most important first."""
Answers = Mapping[str, Explanation | Exception]
"""What each explainer says of one question, or why it could not."""
Explain = Callable[[Question], Answers]
Blind = Callable[[LayeredParts], Mapping[str, Sequence[Floats]]]
"""Rankings of an input's parts that cannot know the cause: by name, one or several rows of scores."""


def no_controls(parts: LayeredParts) -> Mapping[str, Sequence[Floats]]:
    """No blind rankings."""
    return {}


@dataclass(frozen=True, eq=False)
class Case:
    """One adversary on trial.

    `parts` are those of the changed input, cut as its explanations are. `label` is what the model says of it, `clean_label`
    what it said before. Whatever `clean` and the changed input differ in caused that, and nothing else did.
    """

    model: CheckedModel
    parts: LayeredParts
    clean: Any
    clean_label: int
    label: int
    batch_size: int | None = None
    on_calls: Callable[[int], None] | None = None
    laid: Question = field(init=False, repr=False)
    change: Floats = field(init=False, repr=False)  # (d,) squared change of each part, summed
    mean_change: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Lay the changed input over the clean one, and measure the change."""
        squares = self.parts.squared_change(self.clean)
        made = {"laid": self._all_classes(Question(self.model, self.parts.over(self.clean), 0, self.batch_size,
                                                   on_calls=self.on_calls)),
                "change": self.parts.pool(squares, "sum"), "mean_change": self.parts.pool(squares, "mean")}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @property
    def d(self) -> int:
        """The number of parts."""
        return len(self.parts.names)

    @property
    def question(self) -> Question:
        """Why does the model say `label` of the changed input?"""
        known = Memory((self.label,), original=self.laid.original)  # laid over the clean input whole, it is the same input
        return Question(self.model, self.parts, self.label, self.batch_size, known, self.on_calls)

    def outputs(self, masks: Masks) -> Floats:
        """(n, classes) scores of the clean input with the change of the shown parts laid over it; each set is asked once."""
        return self.laid.outputs(masks)

    def labels(self, masks: Masks) -> NDArray[np.intp]:
        """What the model then says."""
        return self.model.labels(self.outputs(masks))

    def lead(self, masks: Masks, towards: int | None = None) -> Floats:
        """How far the best other label (or one of them) is ahead of the clean one; positive where it wins.

        Probabilities are compared by their logarithms, which differ as the logits do and do not flatten out.
        """
        scores = self.outputs(masks)
        shares = bool((scores >= 0).all()) and np.allclose(scores.sum(axis=1), 1, atol=1e-4)
        values = np.log(np.maximum(scores, 1e-300)) if shares else scores
        others = values.copy()
        others[:, self.clean_label if towards is None else towards] = -np.inf
        return np.asarray(others.max(axis=1) - values[:, self.clean_label] if towards is None
                          else values[:, towards] - others.max(axis=1))

    def localised(self, kept: Masks) -> Case | None:
        """The case in which only the change of the kept parts is left; None where the model's label is the clean one then."""
        label = int(self.labels(kept[None])[0])
        if label == self.clean_label:
            return None
        changed = self.laid.parts.compose(kept[None], np.random.default_rng(0))
        one = changed.iloc[0] if hasattr(changed, "iloc") else changed[0]
        return Case(self.model, self.parts.like(one), self.clean, self.clean_label, label, self.batch_size, self.on_calls)

    @staticmethod
    def _all_classes(question: Question) -> Question:
        return question.watching(range(len(question.original)))[0]


def streams(rng: np.random.Generator) -> Callable[[str], np.random.Generator]:
    """A generator for each name, so that no contender's draws depend on who else is there."""
    seed = int(rng.integers(2**63))
    return lambda name: generator(seed, name)


def ranked(scores: Floats, rng: np.random.Generator) -> Order:
    """Parts by score, largest first; equal ones in random order, for the order of the parts says nothing."""
    shuffled = rng.permutation(len(scores))
    return np.asarray(shuffled[np.argsort(-scores[shuffled], kind="stable")])


def first(order: Order, k: int) -> Masks:
    """The mask of the k parts that come first."""
    mask = np.zeros(len(order), dtype=bool)
    mask[order[:k]] = True
    return mask
