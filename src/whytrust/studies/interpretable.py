"""Models that can be read, and which parts of an input they really use: the truth that explanations are measured by.

A linear model uses the features with a coefficient, a tree those on the input's own way to its leaf; a part is used where it
decides such a feature. Which of them *matter* when parts are hidden is another question: a word on a tree's way may lead,
present or absent, to the same answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from whytrust.backends.sklearn import SklearnScores
from whytrust.backends.sklearn_text import Tokens
from whytrust.checked import CheckedModel
from whytrust.core import Batch, Floats, Masks, Parts, generator, need
from whytrust.domains.tabular import TableParts

Flags = NDArray[np.bool_]
Columns = tuple[NDArray[np.intp], ...]
"""For each part, the features that it decides."""
KEEP_COLUMNS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
"""What may stand before a readable model of a table: every column is still itself behind it."""
KEEP_WORDS = (TfidfTransformer, Normalizer, MaxAbsScaler, StandardScaler)
LEAVES = 1500
"""Of trees in which an input can reach more, every part on the way is taken to matter: pairs of leaves would be too many."""
ASKED = 64
"""Masks that a part is shown and hidden in, where what it does hangs on other parts."""
SAME = 1e-9
"""How far, beside the largest, numbers may lie apart and still be the same: sums round."""


@dataclass(frozen=True)
class Used:
    """Which parts a readable model uses for one input, and which of those can change its score when parts are hidden."""

    used: Flags
    matter: Flags


class Features(Protocol):
    """The numbers that a readable model is made of, and which of them each part of an input decides."""

    def __call__(self, batch: Batch) -> Any:
        """(n, features), dense or sparse."""
        ...

    def owned(self, parts: Any) -> Columns:
        """The features that each part decides by its place or its name, whether hiding it changes them or not."""
        ...


def bag_columns(pipeline: Pipeline, names: Any) -> NDArray[np.intp]:
    """The column of the vectoriser that each word has, -1 where it has none."""
    vocabulary = pipeline.steps[0][1].vocabulary_
    return np.array([vocabulary.get(name, -1) for name in names], dtype=np.intp)


def used_by(pipeline: Pipeline, parts: Parts, target: int | None = None) -> Used:
    """The words that a pipeline of a word vectoriser and a linear model or a tree uses for a text."""
    return truth_of(pipeline.steps[-1][1], WordFeatures(pipeline), parts, target)


def readable(model: CheckedModel, domain: str) -> tuple[Any, Features] | None:
    """The last step of a model that can be read, and its features; None for all others.

    That is a scikit-learn classifier, linear or a decision tree, of texts behind a word vectoriser or of a table's columns.
    """
    if not isinstance(model.function, SklearnScores) or model.preprocess is not None:
        return None
    found = getattr(model.function.estimator, "best_estimator_", model.function.estimator)
    steps = [one for _, one in found.steps] if isinstance(found, Pipeline) else [found]
    last, before = steps[-1], steps[:-1]
    if not hasattr(last, "classes_") or not (hasattr(last, "coef_") or isinstance(last, DecisionTreeClassifier)):
        return None
    if domain == "text":
        worded = len(before) > 0 and isinstance(before[0], CountVectorizer | HashingVectorizer) and before[0].analyzer == "word"
        kept = all(isinstance(one, KEEP_WORDS) for one in before[1:])
        return (last, WordFeatures(found)) if worded and kept else None
    if domain == "tabular" and all(isinstance(one, KEEP_COLUMNS) for one in before):
        return last, ColumnFeatures(found[:-1] if before else None, getattr(found, "feature_names_in_", None))
    return None


def truth_of(estimator: Any, features: Features, parts: Any, target: int | None = None) -> Used:
    """Which parts does a linear model, or a tree, of these features use for an input, and on which does a score depend?

    A part is used where hiding it changes a feature that has a coefficient, or that the tree asks for on the input's way. With
    a target, the score is that class's; without, any class's.
    """
    owned, exact, linear = features.owned(parts), getattr(features, "exact", False), hasattr(estimator, "coef_")
    if linear and exact:
        return of_linear(estimator, owned)
    versions = Versions.of(features, parts)
    changed = owned if exact else versions.changed(owned)
    return of_linear(estimator, changed) if linear else of_tree(estimator, features, parts, versions, changed, target)


# --- which features are whose -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WordFeatures:
    """The columns of a word vectoriser, as the steps behind it leave them.

    A part owns the columns of the words, or terms of several, that go when it is hidden, or come when it alone is shown. That
    a norm changes with every word does not make all columns everybody's.
    """

    pipeline: Pipeline
    exact = True  # only what hiding changes is owned

    def __call__(self, batch: Batch) -> Any:
        """Sparse."""
        return self.pipeline[:-1].transform(list(batch))

    def owned(self, parts: Any) -> Columns:
        """By the tokens of the text, and where these cannot be told, by making the texts."""
        vectoriser = self.pipeline.steps[0][1]
        single = isinstance(vectoriser, CountVectorizer) and vectoriser.ngram_range == (1, 1)
        tokens = Tokens.of(vectoriser, parts) if single and vectoriser.tokenizer is vectoriser.preprocessor is None else None
        if tokens is None:
            return self._by_making(parts, vectoriser)
        columns = bag_columns(self.pipeline, [tokens.words[code] for code in tokens.code.tolist()])
        of_part = np.where(tokens.column < 2 * tokens.d, tokens.column % tokens.d, -1)
        return tuple(np.unique(columns[(of_part == part) & (columns >= 0)]) for part in range(tokens.d))

    def _by_making(self, parts: Any, vectoriser: Any) -> Columns:
        d = len(parts.names)
        alone = np.eye(d, dtype=bool)
        texts = parts.compose(np.vstack([np.ones(d, bool), ~alone, np.zeros(d, bool), alone]), generator(0))
        counts = _counted(vectoriser, texts).tocsr()
        gone, came = (abs(_repeated(counts[first], d) - counts[first + 1:first + 1 + d]).tocsr() for first in (0, d + 1))
        return tuple(np.union1d(gone[part].indices[gone[part].data != 0], came[part].indices[came[part].data != 0])
                     for part in range(d))


def _repeated(row: Any, times: int) -> Any:
    return row[np.zeros(times, dtype=np.intp)]


def _counted(vectoriser: Any, texts: list[str]) -> Any:
    """How often each term occurs, without weights or norms."""
    if isinstance(vectoriser, HashingVectorizer):
        return clone(vectoriser).set_params(norm=None).transform(texts)
    return CountVectorizer.transform(vectoriser, texts)


@dataclass(frozen=True, eq=False)
class ColumnFeatures:
    """The columns of a table as an estimator gets them, scaled one by one or not at all."""

    before: Any = None  # a pipeline of scalers
    names: Any = None  # the columns that the estimator was fitted with, where it knows

    def __call__(self, batch: Batch) -> Floats:
        """Floats."""
        frame = hasattr(batch, "columns")
        if self.names is not None:
            same = frame and set(self.names) == set(batch.columns)
            values = batch[list(self.names)] if same else need("pandas", "tables").DataFrame(
                np.asarray(batch), columns=list(self.names))
        else:
            values = np.asarray(batch, dtype=np.float64)
        return np.asarray(values if self.before is None else self.before.transform(values), dtype=np.float64)

    def owned(self, parts: Any) -> Columns:
        """A column each, by its name where the estimator knows names."""
        labels = [column.label for column in parts.statistics.columns]
        by_name = self.names is not None and set(self.names) == set(labels)
        return tuple(np.array([list(self.names).index(label) if by_name else place], dtype=np.intp)
                     for place, label in enumerate(labels))


# --- what hiding does to features ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Versions:
    """The features of an input and of all versions of it in which one part is in another state: hidden, or with other values.

    Row 0 is the input itself; `rows` says which are whose. The last row has nothing shown, where parts are hidden by a fill.
    """

    values: Floats
    rows: Columns
    columns: NDArray[np.intp]  # of the features: those that are 0 in every version are left out
    nothing: bool

    @classmethod
    def of(cls, features: Features, parts: Any) -> Versions:
        """Every version of an input, made and turned into features at once."""
        batch, rows, nothing = _versions(parts)
        made = features(batch)
        if not hasattr(made, "tocsr"):
            return cls(np.asarray(made, dtype=np.float64), rows, np.arange(made.shape[1]), nothing)
        sparse = made.tocsr()
        columns = np.unique(sparse.indices).astype(np.intp)
        return cls(np.asarray(sparse[:, columns].toarray(), dtype=np.float64), rows, columns, nothing)

    @cached_property
    def own(self) -> dict[int, float]:
        """The input's own features; those that are missing are 0."""
        return dict(zip(self.columns.tolist(), self.values[0].tolist(), strict=True))

    @cached_property
    def _moved(self) -> Flags:
        """(rows, columns): which features of a version are not the input's."""
        with np.errstate(invalid="ignore"):
            scale = np.nanmax(np.abs(self.values), axis=0, initial=0.0)
            same = np.abs(self.values - self.values[0]) <= SAME * scale
        return np.asarray(~(same | (np.isnan(self.values) & np.isnan(self.values[0]))))

    def changed(self, owned: Columns) -> Columns:
        """Of what each part owns, the features that are not always the same."""
        return tuple(np.intersect1d(mine, self.columns[self._moved[rows].any(axis=0)])
                     for mine, rows in zip(owned, self.rows, strict=True))

    def states(self, owned: Columns) -> list[dict[int, Floats]] | None:
        """For each part, its features' values in all of its states, its own first; None where parts act on each other's."""
        every = np.concatenate(owned) if len(owned) else np.zeros(0, np.intp)
        if len(np.unique(every)) < len(every) or not np.isin(every, self.columns).all():
            return None
        found = []
        for mine, rows in zip(owned, self.rows, strict=True):
            places = np.searchsorted(self.columns, mine)
            others = np.delete(np.arange(len(self.columns)), places)
            if self._moved[np.ix_(rows, others)].any():
                return None
            if self.nothing and not np.allclose(self.values[-1, places], self.values[rows[0], places], rtol=SAME, atol=SAME):
                return None
            found.append({int(column): self.values[np.append(0, rows), place]
                          for column, place in zip(mine, places, strict=True)})
        return found


def _versions(parts: Any) -> tuple[Batch, Columns, bool]:
    if not isinstance(parts, TableParts):
        d = len(parts.names)
        masks = np.vstack([np.ones(d, bool), ~np.eye(d, dtype=bool), np.zeros(d, bool)])
        return parts.compose(masks, generator(0)), tuple(np.array([part + 1]) for part in range(d)), True
    columns = parts.statistics.columns
    ends = np.cumsum([1, *(len(column.atoms) for column in columns)])
    rows = tuple(np.arange(start, end) for start, end in pairwise(ends.tolist()))
    arrays = []
    for column, value, mine in zip(columns, parts.row, rows, strict=True):
        drawn = [value] * int(ends[-1])
        drawn[mine[0]:mine[-1] + 1] = column.atoms
        arrays.append(column.storage.array(drawn))
    return parts.statistics.batch(arrays), rows, False


# --- linear models ------------------------------------------------------------------------------------------------------


def of_linear(estimator: Any, owned: Columns) -> Used:
    """The parts that own a feature with a coefficient; each of them moves the score."""
    weights = estimator.coef_.toarray() if hasattr(estimator.coef_, "toarray") else np.atleast_2d(estimator.coef_)
    weighty = np.abs(weights).max(axis=0) > 0
    used = np.array([bool(weighty[mine].any()) for mine in owned], dtype=bool)
    return Used(used, used)


# --- trees --------------------------------------------------------------------------------------------------------------


def of_tree(estimator: Any, features: Features, parts: Any, versions: Versions, owned: Columns,
            target: int | None = None) -> Used:
    """The parts on an input's way, and those of them on which the answer depends at all, whatever else is hidden.

    Where each part decides its features alone, that is worked out: the answer depends on a part exactly where two leaves with
    different answers can be told apart by that part and by nothing else. Elsewhere the tree is asked about random masks, which
    may overlook a part that hardly ever matters.
    """
    nodes, own = estimator.tree_, versions.own
    part_of = {int(column): part for part, mine in enumerate(owned) for column in mine}
    way = _way(nodes, own)
    used = np.array([not way.isdisjoint(mine.tolist()) for mine in owned], dtype=bool)
    states = versions.states(owned)
    if states is None:
        return Used(used, by_asking(estimator, features, parts, used, target))
    leaves = _leaves(nodes, own, part_of, states)
    if leaves is None:
        return Used(used, used)
    return Used(used, used & _telling(leaves, [_count(one) for one in states], _answers(nodes, leaves, target)))


def _count(states: dict[int, Floats]) -> int:
    return len(next(iter(states.values()))) if states else 1


def _left(nodes: Any, node: int, values: Any) -> Any:
    """Do these values of the feature that a node asks for lead to its left? Trees look at single precision."""
    single = np.asarray(values, dtype=np.float32)
    missing = bool(nodes.missing_go_to_left[node]) if hasattr(nodes, "missing_go_to_left") else False
    return (single <= nodes.threshold[node]) | (np.isnan(single) & missing)


def _way(nodes: Any, own: dict[int, float]) -> set[int]:
    node, asked = 0, set[int]()
    while nodes.children_left[node] != -1:
        feature = int(nodes.feature[node])
        asked.add(feature)
        left = bool(_left(nodes, node, own.get(feature, 0.0)))
        node = int(nodes.children_left[node] if left else nodes.children_right[node])
    return asked


Leaf = tuple[int, dict[int, Flags]]
"""A leaf that the input can reach when parts are in other states, and in which states of each part it does."""


def _leaves(nodes: Any, own: dict[int, float], part_of: dict[int, int],
            states: Sequence[dict[int, Floats]]) -> list[Leaf] | None:
    """Every leaf that some states of the parts lead to; None where they are too many."""
    open_: list[Leaf] = [(0, {})]
    found: list[Leaf] = []
    while open_:
        node, allowed = open_.pop()
        if nodes.children_left[node] == -1:
            found.append((node, allowed))
            if len(found) > LEAVES:
                return None
            continue
        feature = int(nodes.feature[node])
        part = part_of.get(feature)
        left = np.atleast_1d(_left(nodes, node, own.get(feature, 0.0) if part is None else states[part][feature]))
        for child, goes in ((nodes.children_right[node], ~left), (nodes.children_left[node], left)):
            if part is None:
                if goes[0]:
                    open_.append((int(child), allowed))
                continue
            rest = goes & allowed.get(part, np.ones(len(goes), dtype=bool))
            if rest.any():
                open_.append((int(child), {**allowed, part: rest}))
    return found


def _answers(nodes: Any, leaves: Sequence[Leaf], target: int | None) -> Floats:
    values = np.array([nodes.value[node].ravel() for node, _ in leaves])
    shares = values / values.sum(axis=1, keepdims=True)
    return np.asarray(np.round(shares if target is None else shares[:, [target]], 12))


def _telling(leaves: Sequence[Leaf], counts: Sequence[int], answers: Floats) -> Flags:
    """The parts that alone can make the difference between two leaves with different answers."""
    differ = (answers[:, None] != answers[None]).any(axis=2)
    apart: dict[int, Flags] = {}
    for part in sorted({part for _, allowed in leaves for part in allowed}):
        reach = np.array([allowed.get(part, np.ones(counts[part], bool)) for _, allowed in leaves], dtype=np.float32)
        apart[part] = reach @ reach.T == 0
    once = differ & (np.sum(list(apart.values()), axis=0) == 1) if apart else differ
    return np.array([part in apart and bool((once & apart[part]).any()) for part in range(len(counts))], dtype=bool)


def by_asking(estimator: Any, features: Features, parts: Any, used: Flags, target: int | None = None) -> Flags:
    """Of the used parts, those that change an answer in some of many random masks; one that rarely does may be overlooked."""
    d, rng = len(parts.names), generator(0, "matter")
    others: Masks = rng.random((ASKED, d)) < np.linspace(0.05, 1, ASKED)[:, None]
    others[-1] = True
    matter = np.zeros(d, dtype=bool)
    for part in np.flatnonzero(used):
        both = np.repeat(others[None], 2, axis=0)
        both[0, :, part], both[1, :, part] = True, False
        answers = estimator.predict_proba(features(parts.compose(both.reshape(-1, d), rng))).reshape(2, ASKED, -1)
        differ = np.abs(answers[0] - answers[1]) > SAME
        matter[part] = bool((differ if target is None else differ[..., target]).any())
    return matter
