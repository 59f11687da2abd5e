"""Trees and forests of scikit-learn, asked about many masks of one text: each tree shrunk to the words that the text has.

A tree over tens of thousands of words asks about a few dozen of them on any way to a leaf, and of those a text has one or two.
A word that no row has is absent in all of them, so its question has one answer, the same for all: what is left of the tree are
the questions about words that are there. They are worked out once a text; rows then pass through a handful of questions each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

from whytrust.core import Floats

CLASSIFIERS = (RandomForestClassifier, ExtraTreesClassifier, DecisionTreeClassifier, ExtraTreeClassifier)
REGRESSORS = (RandomForestRegressor, ExtraTreesRegressor, DecisionTreeRegressor, ExtraTreeRegressor)
WORTH = 64
"""With fewer rows the trees themselves are asked: shrinking them would cost more than it saves."""
_WIDE = 1 << 12  # rows that have more words than this between them are not copies of one text
_ABSENT = np.float32(0)


def quickened(estimator: Any) -> Any:
    """The same estimator, faster on many rows with few words between them; itself where it is no plain tree or forest."""
    plain = type(estimator) in (*CLASSIFIERS, *REGRESSORS) and getattr(estimator, "n_outputs_", 0) == 1
    return QuickTrees(estimator) if plain else estimator


class QuickTrees(BaseEstimator):  # type: ignore[misc]
    """A fitted tree or forest that answers through its shrunk trees, and whatever else it is asked by itself."""

    def __init__(self, estimator: Any) -> None:
        """The fitted estimator; nothing of it is copied or changed."""
        self.estimator = estimator

    def __sklearn_is_fitted__(self) -> bool:
        """It is."""
        return True

    def fit(self, X: Any, y: Any = None) -> QuickTrees:
        """Nothing: it is fitted already, and a pipeline only asks whether it could be."""
        return self

    def predict_proba(self, X: Any) -> Any:
        """The mean over trees of each leaf's shares."""
        found = self._mean(X, normed=True)
        return self.estimator.predict_proba(X) if found is None else found

    def predict(self, X: Any) -> Any:
        """A regressor's mean over trees; a classifier's label."""
        found = None if isinstance(self.estimator, CLASSIFIERS) else self._mean(X, normed=False)
        return self.estimator.predict(X) if found is None else found.ravel()

    def _mean(self, X: Any, normed: bool) -> Floats | None:
        """(n, values); None where the rows are few, dense, or no copies of one text."""
        if not sparse.issparse(X) or not np.isfinite(X.data).all():
            return None
        words = np.unique(X.indices)
        kept: tuple[NDArray[Any], list[Any]] | None = self.__dict__.get("_kept")
        if kept is None or not np.isin(words, kept[0]).all():  # else these are some more rows of the text asked about last
            if X.shape[0] < WORTH or len(words) > _WIDE:
                return None
            kept = self.__dict__["_kept"] = words, self._shrunk(words, normed)
        # scikit-learn compares single-precision values, so these must be of that precision, too.
        rows = X[:, kept[0]].astype(np.float32).toarray()
        total = _answers(kept[1][0], rows)
        for tree in kept[1][1:]:
            total += _answers(tree, rows)
        return total / len(kept[1])

    def _shrunk(self, words: NDArray[Any], normed: bool) -> list[Any]:
        """The trees for texts with these words and no others."""
        column = {int(word): place for place, word in enumerate(words)}
        own = [one.tree_ for one in getattr(self.estimator, "estimators_", [self.estimator])]
        return [_shrink(_Nodes(tree, normed), column) for tree in own]


class _Nodes:
    """A tree's nodes as plain lists, which are fast to walk; a leaf's values as shares where they are of classes."""

    def __init__(self, tree: Any, normed: bool) -> None:
        self.left, self.right = tree.children_left.tolist(), tree.children_right.tolist()
        self.feature, self.threshold = tree.feature.tolist(), tree.threshold.tolist()
        values = tree.value[:, 0, :]
        self.values = values / values.sum(axis=1, keepdims=True) if normed else values


def _shrink(nodes: _Nodes, column: dict[int, int]) -> Any:
    """A leaf's values, or (column, threshold, shrunk left, shrunk right)."""
    made: dict[int, Any] = {}
    pending = [0]
    while pending:  # no recursion: a full tree may be deeper than Python likes
        top = pending[-1]
        node = _decided(nodes, top, column)
        if nodes.left[node] == -1:
            made[top] = nodes.values[node]
            pending.pop()
            continue
        below = nodes.left[node], nodes.right[node]
        waiting = [child for child in below if child not in made]
        if waiting:
            pending += waiting
            continue
        made[top] = (column[nodes.feature[node]], nodes.threshold[node], made[below[0]], made[below[1]])
        pending.pop()
    return made[0]


def _decided(nodes: _Nodes, node: int, column: dict[int, int]) -> int:
    """Down the tree as long as questions are about words that are not there."""
    while nodes.left[node] != -1 and nodes.feature[node] not in column:
        node = nodes.left[node] if nodes.threshold[node] >= _ABSENT else nodes.right[node]
    return node


def _answers(shrunk: Any, rows: NDArray[np.float32]) -> Floats:
    """(n, values): the leaf each row comes to; rows part at every question."""
    if not isinstance(shrunk, tuple):
        return np.repeat(shrunk[None], len(rows), axis=0)
    width = len(_any_leaf(shrunk))
    found = np.empty((len(rows), width))
    pending = [(shrunk, np.arange(len(rows)))]
    while pending:
        node, at = pending.pop()
        if not isinstance(node, tuple):
            found[at] = node
            continue
        column, threshold, left, right = node
        goes_left = rows[at, column] <= np.float64(threshold)  # a Python float would be rounded to single precision
        pending += [(side, some) for side, some in ((left, at[goes_left]), (right, at[~goes_left])) if len(some)]
    return found


def _any_leaf(shrunk: Any) -> Any:
    while isinstance(shrunk, tuple):
        shrunk = shrunk[2]
    return shrunk
