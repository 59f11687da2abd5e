"""scikit-learn estimators and pipelines as models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from whytrust.core import Batch, Floats

OPTIONS = ()

@dataclass(frozen=True)
class SklearnScores:
    """An estimator's scores: probabilities, margins where it has none, a one-hot label where it has neither, or predictions."""

    estimator: Any
    method: str

    def __call__(self, batch: Batch) -> Floats:
        """(n, classes), or (n, 1) for a regressor."""
        raw = np.asarray(getattr(self.estimator, self.method)(batch))
        if self.method == "decision_function" and raw.ndim == 1:
            return np.column_stack([-raw, raw])
        if self.method == "predict" and not is_regressor(self.estimator):
            return np.asarray(raw[:, None] == np.asarray(self.estimator.classes_)[None], dtype=np.float64)
        return raw


def accepts(obj: Any) -> bool:
    """Is this a scikit-learn estimator, or something that quacks like one?"""
    scores = any(hasattr(obj, m) for m in ("predict_proba", "decision_function"))
    return scores or (hasattr(obj, "predict") and hasattr(obj, "fit"))


def adapt(obj: Any) -> tuple[SklearnScores, dict[str, Any]]:
    """The estimator as a function; its name and its classes' names."""
    name = _name(obj)
    if is_regressor(obj):
        return SklearnScores(obj, "predict"), {"name": name}
    methods = [m for m in ("predict_proba", "decision_function", "predict") if hasattr(obj, m)]
    classes = getattr(obj, "classes_", None)
    if classes is None and methods[0] == "predict":
        raise TypeError(f"{type(obj).__name__} must be a fitted classifier or a regressor; it has neither classes_ nor scores")
    if isinstance(classes, list):
        raise TypeError(f"{type(obj).__name__} predicts {len(classes)} outputs at once; "
                        "pass a function that returns the scores of one")
    names = None if classes is None else tuple(str(c) for c in classes)
    return SklearnScores(obj, methods[0]), {"name": name, "classes": names}


def _name(obj: Any) -> str:
    steps = getattr(obj, "steps", None)
    return _name(steps[-1][1]) if steps else type(obj).__name__
