"""The two classifiers of Ribeiro et al. (2016, § 6.2), and the posts they meet in training, tests and the real world.

Both are support vector machines with an RBF kernel on which words a post has. The original reads whole posts; the cleaned one
does not know the commonest words that stand in the frame of posts rather than in what people write, as somebody would find who
goes through a list of words by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC

from whytrust.backends.sklearn_kernels import narrowed
from whytrust.core import Floats
from whytrust.studies import lime_religion_data as posts
from whytrust.studies.lime_religion_data import CLASSES, TOKEN, Post, words
from whytrust.studies.trust_repair import Labelled

HELD_OUT = 5
"""Every fifth training post is held out: explanations are of these."""
READABLE = (10, 300)
"""How many different words a post may have to be explained to a reader."""
COMMON = 10
"""Training posts that a foreign word must be in to be cleaned away."""
FOREIGN = 0.5
"""A word is foreign where more than this share of its occurrences lies in the frame of training posts."""
GRID = {"C": (1.0, 10.0, 100.0), "gamma": (0.0005, 0.001, 0.002, 0.004, 0.008)}
FOLDS = 4


class GramSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """scikit-learn's SVC of two classes with an RBF kernel, whose kernel is one matrix product: fast to fit again and again."""

    def __init__(self, C: float = 1.0, gamma: float = 0.001) -> None:
        """As SVC's."""
        self.C, self.gamma = C, gamma

    def fit(self, X: Any, y: Sequence[Any]) -> GramSVC:
        """Keep the support vectors."""
        rows = sparse.csr_matrix(X, dtype=np.float64)
        machine = SVC(C=self.C, kernel="precomputed").fit(np.exp(-self.gamma * squared_distances(rows)), y)
        self.classes_, self.n_features_in_ = machine.classes_, rows.shape[1]
        self.vectors_, self.dual_coef_, self.intercept_ = rows[machine.support_], machine.dual_coef_[0], machine.intercept_[0]
        return self

    def decision_function(self, X: Any) -> Floats:
        """Above 0 for the second class."""
        rows = sparse.csr_matrix(X, dtype=np.float64)
        narrow = narrowed(rows)
        if narrow is None:
            dots = np.asarray((rows @ self.vectors_.T).todense())
        else:
            dots = narrow[0] @ np.asarray(self.vectors_[:, narrow[1]].todense()).T
        kernel = np.exp(-self.gamma * np.maximum(_norms(rows)[:, None] + _norms(self.vectors_) - 2 * dots, 0))
        return np.asarray(kernel @ self.dual_coef_ + self.intercept_)

    def predict(self, X: Any) -> Any:
        """The class on whose side a row lies."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


def _norms(rows: Any) -> Floats:
    return np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64).ravel()


def squared_distances(rows: Any) -> Floats:
    """Between all rows of a sparse matrix."""
    norms = _norms(rows)
    return np.asarray(np.maximum(norms[:, None] + norms - 2 * np.asarray((rows @ rows.T).todense()), 0))


def tuned(rows: Any, labels: Sequence[Any]) -> dict[str, float]:
    """C and gamma by cross-validation on these rows alone; of equals the smaller C, then the smaller gamma."""
    distances = squared_distances(sparse.csr_matrix(rows, dtype=np.float64))
    y, fold = np.asarray(labels), np.arange(len(labels)) % FOLDS
    best: tuple[float, dict[str, float]] = (-1.0, {})
    for C in GRID["C"]:
        for gamma in GRID["gamma"]:
            kernel = np.exp(-gamma * distances)
            right = 0
            for out in (fold == f for f in range(FOLDS)):
                machine = SVC(C=C, kernel="precomputed").fit(kernel[np.ix_(~out, ~out)], y[~out])
                right += int((machine.predict(kernel[np.ix_(out, ~out)]) == y[out]).sum())
            best = max(best, (right / len(y), {"C": C, "gamma": gamma}), key=lambda one: one[0])
    return best[1]


def pipeline(**machine: float) -> Pipeline:
    """Unfitted: which words a post has, then the machine."""
    return make_pipeline(CountVectorizer(binary=True, lowercase=False, token_pattern=TOKEN), GramSVC(**machine))


@dataclass(frozen=True, eq=False)
class Religion:
    """The posts of both groups as the experiments use them; all texts are in lower case."""

    training: Labelled
    validation: Labelled
    test: Labelled
    world: Labelled
    foreign: frozenset[str]
    cleaned: frozenset[str]  # the foreign words that the cleaned model does not know
    unreadable: int  # held-out posts with too few or too many words to be explained
    empty: int  # test posts of which nothing is left in the real world

    def generalises(self, word: str) -> bool:
        """What a reader knows: does this word belong to what people write?"""
        return word.lower() not in self.foreign

    def counts(self) -> dict[str, int]:
        """How many posts and words there are of each kind."""
        return {**{name: len(getattr(self, name)) for name in ("training", "validation", "test", "world")},
                "unreadable": self.unreadable, "empty": self.empty, "foreign": len(self.foreign), "cleaned": len(self.cleaned)}


@cache
def prepared(folder: str) -> Religion:
    """From the files of both groups; what is foreign is learned from the training posts alone."""
    groups = posts.read(folder)
    held = [post for i, post in enumerate(groups.train) if i % HELD_OUT == HELD_OUT // 2]
    fitted = [post for i, post in enumerate(groups.train) if i % HELD_OUT != HELD_OUT // 2]
    readable = [post for post in held if READABLE[0] <= len(set(words(post.raw))) <= READABLE[1]]
    if len(fitted) < 2 * FOLDS or len(readable) < 2:
        raise ValueError(f"there must be at least {2 * FOLDS} training posts beside the held-out ones, and 2 of those with "
                         f"{READABLE[0]} to {READABLE[1]} different words, got {len(fitted)} and {len(readable)}; use the "
                         "whole of both groups")
    foreign = frozenset(word for word, share in posts.foreign_shares(groups.train).items() if share > FOREIGN)
    common = Counter(word for post in fitted for word in set(words(post.raw)))
    names = posts.author_names([*groups.train, *groups.test])
    bare = [(posts.bare(post, names), post) for post in groups.test]
    left = [(text, post) for text, post in bare if text]
    return Religion(
        _labelled(fitted), _labelled(readable), _labelled(groups.test),
        Labelled([text for text, _ in left], [CLASSES[post.label] for _, post in left]), foreign,
        frozenset(word for word in foreign if common[word] >= COMMON), len(held) - len(readable), len(bare) - len(left))


def _labelled(some: Sequence[Post]) -> Labelled:
    return Labelled([post.text for post in some], [CLASSES[post.label] for post in some])


@cache
def chosen(folder: str, cleaned: bool) -> dict[str, float]:
    """The hyper-parameters of a model, from its training posts."""
    data = prepared(folder)
    vectoriser = CountVectorizer(binary=True, lowercase=False, token_pattern=TOKEN)
    matrix = vectoriser.fit_transform(data.training.inputs)
    kept = [place for word, place in vectoriser.vocabulary_.items() if not (cleaned and word in data.cleaned)]
    assert data.training.labels is not None
    return tuned(matrix[:, sorted(kept)], data.training.labels)
