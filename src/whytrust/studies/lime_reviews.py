"""The reviews of Ribeiro, Singh and Guestrin (2016), and the classifiers that their simulated users are asked about.

Books and DVDs of the multi-domain sentiment set (Blitzer, Dredze and Pereira 2007) in its processed form: lines of `word:count`
that end in the label, of which the single words count. What the paper does not say (how tokens are found, how the split is
drawn, how trees and neighbours break ties) is said here.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from whytrust import api, files
from whytrust.checked import CheckedModel
from whytrust.domains.text import TextParts
from whytrust.models import minilm

DATASETS = ("books", "dvd")
TOKEN = re.compile(r"(\w*?):\d")
WORD = r"\b\w\w+\b"
AUTHORS_SPLIT = 1
TRAINED_ON = 0.8
TREES = 5
"""Trees that differ only in how ties are broken."""
MOST_ACTIVE = 10
"""No training review may have more active features than this for a sparse model to count as readable."""


@dataclass(frozen=True)
class Reviews:
    """One data set, split: texts of single words, labels 1 (positive) and 0."""

    name: str
    split: int
    train: tuple[str, ...]
    train_labels: NDArray[np.intp]
    test: tuple[str, ...]
    test_labels: NDArray[np.intp]

    @classmethod
    def read(cls, folder: str | Path, name: str, split: int = AUTHORS_SPLIT) -> Reviews:
        """`folder/name/{positive,negative}.review`; split 1 is the one that the published numbers are of."""
        rng = random.Random(split)
        sides = [_shuffled(_lines(Path(folder) / name / f"{side}.review"), rng) for side in ("positive", "negative")]
        ends = [int(len(side) * TRAINED_ON) for side in sides]
        train, test = ([text for side, end in zip(sides, ends, strict=True) for text in side[part(end)]]
                       for part in (lambda end: slice(0, end), lambda end: slice(end, None)))
        labels = [np.repeat([1, 0], [n[0], n[1]]) for n in (ends, [len(s) - e for s, e in zip(sides, ends, strict=True)])]
        return cls(name, split, tuple(train), labels[0], tuple(test), labels[1])

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """The words of the training reviews: all that any of the models knows."""
        return frozenset(CountVectorizer(lowercase=False, token_pattern=WORD).fit(self.train).vocabulary_)

    def parts(self, text: str) -> TextParts:
        """The words of a review that the models know, each once: as the paper has it, nothing else is there to be explained."""
        known = sorted(set(re.findall(WORD, text)) & self.vocabulary)
        return TextParts.cut(" ".join(known), "bag", split=r"\S+")


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        raise ValueError(f"{path} must be a file of reviews as the multi-domain sentiment set has them (processed_acl); --data "
                         f"names the folder that holds {' and '.join(DATASETS)}")
    lines = [" ".join(word for word in TOKEN.findall(line) if "_" not in word)
             for line in files.text(path, "a file of reviews", encoding="latin-1").splitlines() if line.strip()]
    if len(lines) < 10:
        raise ValueError(f"{path} must hold at least 10 reviews, one a line, got {len(lines)}")
    return lines


def _shuffled(items: list[str], rng: random.Random) -> list[str]:
    """As Python 2 shuffled, whose split the published numbers are of."""
    for last in range(len(items) - 1, 0, -1):
        other = int(rng.random() * (last + 1))
        items[last], items[other] = items[other], items[last]
    return items


def digest(folder: str | Path, names: Sequence[str]) -> str:
    """A short hash of the files that a study rests on."""
    content = hashlib.blake2b(digest_size=8)
    for name in names:
        for side in ("positive", "negative"):
            path = Path(folder) / name / f"{side}.review"
            if path.is_file():
                files.digest_into(path, "a file of reviews", content.update)
    return content.hexdigest()


def spread(count: int, scale: float) -> list[int]:
    """A share of so many reviews, evenly spread: the first half is of one class."""
    if not 0 < scale <= 1:
        raise ValueError(f"scale must lie in (0, 1], got {scale!r}; it is the share of the test reviews")
    return [int(i) for i in np.unique(np.linspace(0, count - 1, max(round(count * scale), 1)).astype(int))]


# --- readable models --------------------------------------------------------------------------------------------------


def bag(words: Sequence[str] | None = None) -> CountVectorizer:
    """Which words are there, however often: those of the texts it is fitted to, or just these."""
    return CountVectorizer(lowercase=False, binary=True, token_pattern=WORD, vocabulary=words)


def sparse_regression(texts: Sequence[str], labels: NDArray[np.intp]) -> Pipeline:
    """L1 logistic regression, its C lowered from .1 until no training text has more than 10 active words."""
    vectoriser = bag()
    matrix = vectoriser.fit_transform(texts)
    for step in range(10, 0, -1):
        estimator = LogisticRegression(C=step / 100, l1_ratio=1.0, solver="liblinear", random_state=1).fit(matrix, labels)
        if matrix[:, estimator.coef_[0] != 0].sum(axis=1).max() <= MOST_ACTIVE:
            break
    return Pipeline([("bag", vectoriser), ("model", estimator)])


def tree(texts: Sequence[str], labels: NDArray[np.intp], seed: int = 1) -> Pipeline:
    """A full decision tree; of equally good splits the seed decides, and the published numbers are of an unknown one."""
    return make_pipeline(bag(), DecisionTreeClassifier(random_state=seed)).fit(texts, labels)


# --- the models of Table 1 --------------------------------------------------------------------------------------------


class PartitionedNeighbours(KNeighborsClassifier):  # type: ignore[misc]
    """Nearest neighbours of bags of words; of equally near ones those count that numpy's partial sort leaves in front.

    Distances of binary bags are roots of whole numbers, and ties are the rule: what breaks them decides a good part of the
    answers. So did scikit-learn when the paper was written. Its search by today hangs on chunks and processors; a partial sort
    of short whole numbers does not, for it is the plain one everywhere.
    """

    def predict_proba(self, X: Any) -> Any:
        """The share of each class among the nearest, for rows in chunks."""
        near = np.concatenate([self._nearest(X[start:start + 1024]) for start in range(0, X.shape[0], 1024)])
        votes = self._y[near]
        return np.stack([(votes == c).mean(axis=1) for c in range(len(self.classes_))], axis=1)

    def predict(self, X: Any) -> Any:
        """The class of most neighbours."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _nearest(self, rows: Any) -> NDArray[np.intp]:
        trained = self._fit_X
        used = np.unique(rows.indices)
        # Whole numbers up to 2^24 are exact in single precision, and so are these.
        shared = rows[:, used].toarray().astype(np.float32) @ trained[:, used].toarray().T.astype(np.float32)
        far = np.asarray(trained.sum(axis=1)).ravel().astype(np.int32)[None] - 2 * shared.astype(np.int32)
        if far.size and max(-int(far.min()), int(far.max())) > np.iinfo(np.int16).max:
            raise ValueError("a review must have at most 32,767 different words for its neighbours to be found")
        # A row's own length moves all its distances alike, and is left out.
        return np.argpartition(far.astype(np.int16), self.n_neighbors - 1, axis=1)[:, :self.n_neighbors]


class MeanVector(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A bag of words as the mean of its words' vectors: MiniLM's input embeddings, averaged over the pieces of a word."""

    def __init__(self, words: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """One vector for each column of the bag."""
        self.words, self.vectors = words, vectors

    def fit(self, X: Any, y: Any = None) -> MeanVector:
        """Nothing is learnt."""
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """(n, words) 0 or 1 -> (n, vector)."""
        counts = np.asarray(X.sum(axis=1)).ravel()
        return np.asarray(X @ self.vectors) / np.maximum(counts, 1)[:, None]


def _regression(reviews: Reviews) -> Any:
    return make_pipeline(bag(), LogisticRegression()).fit(reviews.train, reviews.train_labels)


def _neighbours(reviews: Reviews) -> Any:
    return make_pipeline(bag(), PartitionedNeighbours(algorithm="brute")).fit(reviews.train, reviews.train_labels)


def _machine(reviews: Reviews) -> Any:
    """Platt's probabilities from five folds, the machine itself from all of the training set: what libsvm did by itself."""
    machine = CalibratedClassifierCV(SVC(C=10, gamma=0.001), ensemble=False)
    return make_pipeline(bag(), machine).fit(reviews.train, reviews.train_labels)


def _forest(reviews: Reviews) -> Any:
    words = sorted(reviews.vocabulary)  # fixed, so that a copy fitted to some of the reviews still has a vector for each
    forest = RandomForestClassifier(1000, random_state=1)
    return make_pipeline(bag(words), MeanVector(words, minilm.word_vectors(words)), forest).fit(
        reviews.train, reviews.train_labels)


def _tree(seed: int, reviews: Reviews) -> Any:
    return tree(reviews.train, reviews.train_labels, seed)


MODELS: dict[str, Callable[[Reviews], Any]] = {
    "LR": _regression, "NN": _neighbours, "RF": _forest, "SVM": _machine}
READABLE: dict[str, Callable[[Reviews], Any]] = {
    "sparse-LR": lambda reviews: sparse_regression(reviews.train, reviews.train_labels),
    **{f"tree-{seed}": partial(_tree, seed) for seed in range(1, TREES + 1)}}


@lru_cache(maxsize=4)
def read(folder: str, name: str, split: int) -> Reviews:
    """Read once a process."""
    return Reviews.read(folder, name, split)


@lru_cache(maxsize=4)
def trained(folder: str, name: str, split: int, model: str) -> tuple[Reviews, Any, CheckedModel]:
    """The reviews, a fitted pipeline, and the same as a model that can be asked; trained once a process."""
    reviews = read(folder, name, split)
    pipeline = {**MODELS, **READABLE}[model](reviews)
    return reviews, pipeline, api.model(pipeline, classes=("negative", "positive"), name=f"{model} on {name}")
