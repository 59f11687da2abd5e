"""scikit-learn estimators and pipelines as models, what quacks like them, and single methods of theirs, as lime takes them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import MethodType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, OutlierMixin, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from whytrust.backends.sklearn_text import open_text
from whytrust.core import Batch, Floats, Masks, need

OPTIONS = ()
METHODS = ("predict_proba", "predict_log_proba", "decision_function", "predict")


@dataclass(frozen=True)
class SklearnScores:
    """An estimator's scores: probabilities, margins where it has none, a one-hot label where it has neither, or predictions.

    `number` says that an answer is one number and no class: of a regressor, or how normal an outlier detector finds a row.
    """

    estimator: Any
    method: str
    number: bool = False
    source: Any = None

    @property
    def kind(self) -> str:
        """What this is, in a few words."""
        ours = type(self.estimator).__module__.split(".")[0] == "sklearn"
        return f"{'scikit-learn ' if ours else ''}{_described(self.estimator)}, {self.method}"

    def __call__(self, batch: Batch) -> Floats:
        """(n, classes), or (n, 1) for a number."""
        return self._scores(getattr(self.estimator, self.method)(_as_fitted(self.estimator, batch)))

    def open(self, parts: Any) -> Callable[[Masks], Floats] | None:
        """Scores of masks over a text's parts without the texts, where the pipeline begins with a word vectoriser."""
        opened = open_text(self.estimator, self.method, parts)
        return None if opened is None else lambda masks: self._scores(opened(masks))

    def _scores(self, answers: Any) -> Floats:
        values = np.asarray(answers) if not isinstance(answers, list) else None
        several = values is None or values.ndim > 2 or (values.ndim == 2 and values.shape[1] > 1)
        if values is None or (several and (self.number or self.method == "predict")):
            raise TypeError(_several_outputs(self.estimator))
        if self.number:
            return values.reshape(-1, 1)
        if self.method == "predict":
            return np.asarray(values.reshape(-1, 1) == np.asarray(self.estimator.classes_)[None], dtype=np.float64)
        if self.method == "decision_function" and not several:
            return np.column_stack([-values.ravel(), values.ravel()])
        return values


def accepts(obj: Any) -> bool:
    """Is this a scikit-learn estimator or a method of one, or something that quacks like one?"""
    if isinstance(obj, MethodType):
        return isinstance(obj.__self__, BaseEstimator) and obj.__name__ in METHODS
    scores = any(hasattr(obj, m) for m in ("predict_proba", "decision_function"))
    return scores or (hasattr(obj, "predict") and hasattr(obj, "fit")) or (isinstance(obj, BaseEstimator) and not callable(obj))


def adapt(obj: Any) -> tuple[SklearnScores, dict[str, Any]]:
    """The estimator as a function; its name and its classes' names."""
    bound = isinstance(obj, MethodType)
    estimator = obj.__self__ if bound else obj
    _check_fitted(estimator)
    task = _task(estimator)
    number = task in ("regressor", "outlier_detector")
    order = {"regressor": ("predict",), "outlier_detector": ("decision_function", "predict")}.get(
        task, ("predict_proba", "decision_function", "predict"))
    methods = [obj.__name__] if bound else [m for m in order if hasattr(estimator, m)]
    name = type(_last(estimator)).__name__
    if task == "clusterer":
        raise TypeError(f"{name} finds clusters and has no scores to explain; pass a function that returns some, such as "
                        "lambda rows: -estimator.transform(rows), the closeness to each centre")
    if not methods and hasattr(_last(estimator), "cv_results_"):
        raise TypeError(f"{name} must have a best_estimator_ to be explained, it was fitted with refit=False and has none; fit "
                        "it with refit=True, or fit an estimator with the parameters it found and pass that")
    if not methods:
        raise TypeError(f"{name} must have predict_proba, decision_function or predict to be explained, it has none of them; "
                        "a pipeline must end in a classifier, a regressor or an outlier detector")
    found: dict[str, Any] = {"name": name}
    if number:
        if _outputs(estimator) > 1:
            raise TypeError(_several_outputs(estimator))
    else:
        found["classes"] = _classes(estimator, methods[0])
    return SklearnScores(estimator, methods[0], number, obj), found


def _classes(estimator: Any, method: str) -> tuple[str, ...] | None:
    """What the columns of this method's scores are called; refuses those that are no classes."""
    name, classes = type(_last(estimator)).__name__, getattr(estimator, "classes_", None)
    if classes is None and method == "predict":
        raise TypeError(f"{name} must be a fitted classifier or a regressor; it has neither classes_ nor scores")
    if isinstance(classes, list):
        raise TypeError(_several_outputs(estimator))
    inner = _last(estimator)
    inner = _last(getattr(inner, "final_estimator_", inner))
    pairs = getattr(inner, "decision_function_shape", None) == "ovo" and classes is not None and len(classes) > 2
    if method == "decision_function" and pairs:
        raise TypeError(f"{name} must score classes, its decision_function_shape='ovo' scores pairs of them; call "
                        "set_params(decision_function_shape='ovr') on it, which needs no refitting, or pass estimator.predict")
    return None if classes is None else tuple(str(c) for c in classes)


def _check_fitted(estimator: Any) -> None:
    """Refuse what was never fitted; estimators of others may have no state that would show it, so they are left to say so."""
    last = _last(estimator)
    if type(last).__module__.split(".")[0] == "sklearn":
        try:
            check_is_fitted(last)
        except NotFittedError as error:
            raise ValueError(f"{type(estimator).__name__} must be fitted before it can be explained, "
                             f"got NotFittedError: {error}") from error


def _task(estimator: Any) -> Any:
    """classifier, regressor, outlier_detector, clusterer or something else; asked in a way that any object survives."""
    last = _last(estimator)
    for task, mixin in (("classifier", ClassifierMixin), ("regressor", RegressorMixin), ("outlier_detector", OutlierMixin),
                        ("clusterer", ClusterMixin)):
        if isinstance(last, mixin):
            return task
    tags = last.__sklearn_tags__() if isinstance(last, BaseEstimator) and hasattr(last, "__sklearn_tags__") else None
    return getattr(tags, "estimator_type", None) or getattr(last, "_estimator_type", None)


def _outputs(estimator: Any) -> int:
    """How many numbers a regressor predicts at once, where that can be seen before it is asked."""
    last = _last(estimator)
    coefficients = np.shape(getattr(last, "coef_", ()))
    return int(getattr(last, "n_outputs_", coefficients[0] if len(coefficients) == 2 else 1))


def _several_outputs(estimator: Any) -> str:
    return (f"{type(_last(estimator)).__name__} must predict one thing, it predicts several outputs at once; "
            "pass a function that returns the scores of one, such as lambda rows: estimator.predict(rows)[:, 0]")


def _last(estimator: Any) -> Any:
    """Who has the last word in a pipeline or a search."""
    if isinstance(estimator, Pipeline):
        return _last(estimator.steps[-1][1])
    return _last(estimator.best_estimator_) if hasattr(estimator, "best_estimator_") else estimator


def _described(estimator: Any) -> str:
    name = type(estimator).__name__
    if isinstance(estimator, Pipeline):
        return f"{name} ending in {_described(estimator.steps[-1][1])}"
    return f"{name} of a {_described(estimator.best_estimator_)}" if hasattr(estimator, "best_estimator_") else name


def _as_fitted(estimator: Any, batch: Batch) -> Batch:
    """A table with the columns' names where the estimator was fitted with names, without them where it was not."""
    names = getattr(estimator, "feature_names_in_", None)
    pandas = sys.modules.get("pandas")
    if names is not None and isinstance(batch, np.ndarray) and batch.ndim == 2 and batch.shape[1] == len(names):
        pandas = need("pandas", "tables")
        frame = pandas.DataFrame(batch, columns=list(names), dtype=batch.dtype)
        if batch.dtype != object:
            return frame
        typed = frame.infer_objects().dtypes  # text stays as it is: pandas would change what is missing there
        return frame.astype({c: t for c, t in typed.items() if pandas.api.types.is_numeric_dtype(t)})
    if pandas is None or not isinstance(batch, pandas.DataFrame):
        return batch
    columns = list(batch.columns)
    if names is not None:
        moved = columns != list(names) and len(columns) == len(names) and set(columns) == set(names)
        return batch[list(names)] if moved else batch
    if getattr(estimator, "n_features_in_", None) != len(columns) or not all(isinstance(c, str) for c in columns):
        return batch
    plain = all(pandas.api.types.is_numeric_dtype(dtype) for dtype in batch.dtypes)
    return batch.to_numpy(dtype=np.float64, na_value=np.nan) if plain else batch.to_numpy(dtype=object)
