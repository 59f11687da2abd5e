"""Models that can be read, and which parts of an input they really use: the truth that explanations are measured by.

A linear model uses the features with a coefficient, a tree those on the input's own way to its leaf. Which of them *matter* when
parts are hidden is another question: a word on a tree's way may lead, present or absent, to the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from whytrust.core import Floats

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Used:
    """Which parts a readable model uses for one input, and which of those can change its score when parts are hidden."""

    used: Flags
    matter: Flags


def bag_columns(pipeline: Pipeline, names: Any) -> NDArray[np.intp]:
    """The column of the vectoriser that each word has, -1 where it has none."""
    vocabulary = pipeline.steps[0][1].vocabulary_
    return np.array([vocabulary.get(name, -1) for name in names], dtype=np.intp)


def used_by(pipeline: Pipeline, parts: Any) -> Used:
    """The words that a pipeline of a bag of words and a linear model or a tree uses for a text."""
    columns = bag_columns(pipeline, parts.names)
    estimator = pipeline.steps[-1][1]
    if hasattr(estimator, "coef_"):
        weighty = np.abs(np.atleast_2d(estimator.coef_)).max(axis=0) > 0
        used = (columns >= 0) & weighty[columns]
        return Used(used, used)
    return of_tree(estimator, columns)


def of_tree(estimator: Any, columns: NDArray[np.intp]) -> Used:
    """The parts on the way of an input that has just these columns, and those on which the answer depends at all.

    With absent words always absent, a tree shrinks to the few questions that parts decide; where both answers lead to equal
    trees, the question decides nothing.
    """
    nodes = estimator.tree_
    part_of = {int(column): part for part, column in enumerate(columns) if column >= 0}
    used, matter = np.zeros(len(columns), bool), np.zeros(len(columns), bool)
    node = 0
    while nodes.children_left[node] != -1:
        part = part_of.get(int(nodes.feature[node]))
        if part is not None:
            used[part] = True
        node = nodes.children_right[node] if part is not None else nodes.children_left[node]
    for part in _asked(_shrunk(nodes, 0, part_of, {})):
        matter[part] = True
    return Used(used, used & matter)


Shrunk = tuple[Any, ...]
"""A leaf (values,), or a question (part, tree if absent, tree if present)."""


def _shrunk(nodes: Any, node: int, part_of: dict[int, int], known: dict[int, bool]) -> Shrunk:
    while nodes.children_left[node] != -1:
        part = part_of.get(int(nodes.feature[node]))
        if part is not None and part not in known:
            absent = _shrunk(nodes, nodes.children_left[node], part_of, {**known, part: False})
            present = _shrunk(nodes, nodes.children_right[node], part_of, {**known, part: True})
            return absent if absent == present else (part, absent, present)
        present_here = part is not None and known[part]
        node = nodes.children_right[node] if present_here else nodes.children_left[node]
    values: Floats = nodes.value[node].ravel()
    return (tuple((values / values.sum()).tolist()),)


def _asked(shrunk: Shrunk) -> set[int]:
    return set() if len(shrunk) == 1 else {shrunk[0]} | _asked(shrunk[1]) | _asked(shrunk[2])
