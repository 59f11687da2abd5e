"""A model trained again without some of its features: what a reader of explanations asks for who does not trust them.

A trainer is train(inputs, labels, deleted, seed) -> model, with the names of the deleted features. An unfitted scikit-learn
pipeline of texts, or an estimator of tables, is made into one here. A deleted feature is deleted for good: the model does not
see it in training, nor when it is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline

from whytrust import api
from whytrust.checked import CheckedModel
from whytrust.domains.columns import default_names
from whytrust.studies.insight_models import takes

Trainer = Callable[[Any, Sequence[Any], frozenset[str], int], Any]
"""(inputs, labels, names of deleted features, seed) -> whatever wt.model takes."""


def trainer(given: Any, domain: str, names: Sequence[str] | None = None) -> Trainer:
    """The trainer that was given, or one that fits a scikit-learn estimator again; `names` are those of an array's columns."""
    if isinstance(given, BaseEstimator) or (hasattr(given, "fit") and hasattr(given, "get_params")):
        return TextTrainer(given) if domain == "text" else TableTrainer(given, None if names is None else tuple(names))
    if callable(given) and not isinstance(given, type):
        return takes(given, "inputs", "labels", "deleted", "seed")  # type: ignore[no-any-return]
    raise TypeError("train must be a function (inputs, labels, deleted, seed) -> model, or an unfitted scikit-learn pipeline "
                    f"or estimator, got {type(given).__name__}")


@dataclass(frozen=True, eq=False)
class TextTrainer:
    """Fits a pipeline of texts; deleted words leave the vocabulary where it begins with a vectoriser of words.

    Else they are taken out of every text, in training and when the model is asked.
    """

    estimator: Any
    known: list[tuple[Any, list[str]]] = field(default_factory=list, repr=False)  # inputs seen last, and their vocabulary

    def __call__(self, inputs: Sequence[str], labels: Sequence[Any], deleted: frozenset[str], seed: int) -> CheckedModel:
        """A fitted model that knows nothing of the deleted words."""
        estimator = _seeded(self.estimator, seed)
        first = estimator.steps[0] if isinstance(estimator, Pipeline) else ("", None)
        texts = list(inputs)
        if not deleted:
            return api.model(estimator.fit(texts, labels))
        if not isinstance(first[1], CountVectorizer) or first[1].analyzer != "word":
            without = partial(_taken_out, re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(deleted)))})\b", re.IGNORECASE))
            return api.model(estimator.fit(without(texts), labels), preprocess=without)
        kept = self._kept(first[1], inputs, texts, deleted)
        if not kept:
            return _guess(texts, labels)
        return api.model(estimator.set_params(**{f"{first[0]}__vocabulary": kept}).fit(texts, labels))

    def _kept(self, vectoriser: CountVectorizer, inputs: Any, texts: list[str], deleted: frozenset[str]) -> list[str]:
        """What remains of the vocabulary: a term of several words goes with any of them."""
        if not self.known or self.known[0][0] is not inputs:
            self.known[:] = [(inputs, sorted(clone(vectoriser).fit(texts).vocabulary_))]
        words = clone(vectoriser).set_params(ngram_range=(1, 1), vocabulary=None).build_analyzer()
        dead = {word for name in deleted for word in words(name)}
        return [term for term in self.known[0][1] if dead.isdisjoint(term.split(" "))]


def _taken_out(pattern: re.Pattern[str], texts: Sequence[str]) -> list[str]:
    return [pattern.sub(" ", text) for text in texts]


def _guess(inputs: Any, labels: Sequence[Any]) -> CheckedModel:
    """What can be said without any feature: how frequent the classes are."""
    return api.model(DummyClassifier(strategy="prior").fit(np.zeros((len(inputs), 1)), labels), preprocess=_nothing)


def _nothing(batch: Any) -> Any:
    return np.zeros((len(batch), 1))


@dataclass(frozen=True, eq=False)
class TableTrainer:
    """Fits an estimator of tables; a deleted column is the same in every row, in training and when the model is asked.

    The value is the column's mean, or what is most frequent where there are no numbers.
    """

    estimator: Any
    names: tuple[str, ...] | None = None

    def __call__(self, inputs: Any, labels: Sequence[Any], deleted: frozenset[str], seed: int) -> CheckedModel:
        """A fitted model to which the deleted columns say nothing."""
        estimator = _seeded(self.estimator, seed)
        if not deleted:
            return api.model(estimator.fit(inputs, labels))
        names = column_names(inputs, self.names)
        values = {place: _typical(inputs.iloc[:, place] if hasattr(inputs, "iloc") else inputs[:, place])
                  for place, name in enumerate(names) if name in deleted}
        constant = partial(_constant, values)
        return api.model(estimator.fit(constant(inputs), labels), preprocess=constant)


def column_names(table: Any, names: Sequence[str] | None = None) -> list[str]:
    """What the columns of a table are called, as explanations of its rows call them."""
    if hasattr(table, "columns"):
        return [str(name) for name in table.columns]
    return list(names or default_names(np.shape(table)[1]))


def _typical(column: Any) -> Any:
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        mean = float(np.nanmean(values))
        return values.dtype.type(round(mean)) if values.dtype.kind in "biu" else mean
    different, count = np.unique(values.astype(str), return_counts=True)
    return next(value for value in values if str(value) == different[count.argmax()])


def _constant(values: dict[int, Any], batch: Any) -> Any:
    """A copy of the rows with these columns set."""
    changed = batch.copy()
    for place, value in values.items():
        if hasattr(changed, "iloc"):
            changed[changed.columns[place]] = value
        else:
            changed[:, place] = value
    return changed


def _seeded(estimator: Any, seed: int) -> Any:
    """An unfitted copy; whatever in it draws at random and was not told how takes this seed."""
    fresh = clone(estimator)
    free = [name for name, value in fresh.get_params().items() if name.split("__")[-1] == "random_state" and value is None]
    return fresh.set_params(**dict.fromkeys(free, seed)) if free else fresh
