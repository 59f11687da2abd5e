"""Which of two models would a reader of B explanations choose? (Ribeiro, Singh and Guestrin 2016, § 5.4)

Both are as good on validation data. A reader sees explanations, marks the suspect features that it finds in them (planted ones,
which it would recognise as foreign), and chooses the model of which fewer predictions have to be mistrusted for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whytrust.core import Floats
from whytrust.coverage import submodular
from whytrust.readers import Reading, mistrusted

BUDGETS = tuple(range(1, 31))
Orders = tuple[list[int], list[int]]
"""The inputs whose explanations are read, of the one model and of the other."""
REPEATS = 10
"""Random picks are drawn so often, and their mean counts."""


@dataclass(frozen=True)
class Explained:
    """What readers take from the explanations of one model's predictions by one method."""

    readings: tuple[Reading, ...]
    features: int  # that inputs share

    @property
    def matrix(self) -> Any:
        """(inputs, features), sparse: the sizes of what readers see; parts that they do not read count for nothing."""
        rows = np.repeat(np.arange(len(self.readings)), [len(one.features) for one in self.readings])
        columns = np.concatenate([one.features for one in self.readings])
        sizes = np.abs(np.concatenate([one.contributions for one in self.readings]))
        return sparse.csr_matrix((sizes, (rows, columns)), shape=(len(self.readings), self.features))


def chosen(first: Explained, second: Explained, suspects: NDArray[np.intp], budgets: Sequence[int],
           rng: np.random.Generator) -> dict[str, list[float]]:
    """The chance that readers of so many explanations choose the first model, by how explanations are picked.

    A submodular pick is made for each model by itself; a random one shows the same inputs of both. A reader who has met a
    feature in either model's explanations knows it in both. A tie is a coin.
    """
    inputs = len(first.readings)
    most = min(max(budgets), inputs)
    drawn = [rng.permutation(inputs)[:most].tolist() for _ in range(REPEATS)]
    orders: dict[str, list[Orders]] = {
        "submodular": [(list(submodular(first.matrix, most).indices), list(submodular(second.matrix, most).indices))],
        "random": [(order, order) for order in drawn]}
    met = [_met(one, suspects) for one in (first, second)]
    found = {}
    for how, some in orders.items():
        marks = np.array([met[0][ours[:budget]].any(axis=0) | met[1][theirs[:budget]].any(axis=0)
                          for ours, theirs in some for budget in budgets])
        mistrust = [mistrusted(one.readings, suspects, marks) for one in (first, second)]
        wins = np.where(mistrust[0] == mistrust[1], 0.5, mistrust[0] < mistrust[1])
        found[how] = wins.reshape(len(some), len(budgets)).mean(axis=0).tolist()
    return found


def _met(one: Explained, suspects: NDArray[np.intp]) -> NDArray[np.bool_]:
    """(inputs, suspects): does a reader of the explanation of this input meet this suspect?"""
    return np.array([np.isin(suspects, r.features) for r in one.readings]).reshape(len(one.readings), len(suspects))


def correct(records: Sequence[Mapping[str, Any]], explainer: str, how: str) -> Floats:
    """(pairs, budgets): the chance of the right choice."""
    return np.array([r["right"][explainer][how] for r in records], dtype=np.float64)
