"""Models of the insight experiment: one that is made to go by an artefact, and one that is not; trained here and asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import api
from whytrust.checked import CheckedModel
from whytrust.core import Parts, generator
from whytrust.engine import single_threaded
from whytrust.explanation import Explanation

SAME = 0.02
"""How far, beside the range of an input's values, they may lie from one that is as good as the same."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A model and the class of each of its outputs."""

    model: CheckedModel
    classes: Sequence[Any]

    @classmethod
    def by(cls, train: Any, inputs: Any, labels: Sequence[Any], seed: int, options: Mapping[str, Any]) -> Trained:
        """By a function of (inputs, labels, seed), or a copy of an unfitted scikit-learn estimator; the same each time.

        Outputs are known by their names where these are the labels', else they are the labels in sorted order.
        """
        with single_threaded():
            if hasattr(train, "fit") and hasattr(train, "get_params"):
                made = _fresh(train, seed).fit(inputs, labels)
            elif callable(train):
                made = takes(train, "inputs", "labels", "seed")(inputs, labels, seed)
            else:
                raise TypeError("train must be a function of (inputs, labels, seed) that returns a model, or an unfitted "
                                f"scikit-learn estimator, got {type(train).__name__}")
        model, known = api.model(made, **options), sorted(set(labels))
        by_name = {str(label): label for label in known}
        named = model.classes is not None and set(model.classes) == set(by_name)
        return cls(model, [by_name[name] for name in model.classes or ()] if named else known)

    def label(self, scores: Any) -> Any:
        """The class that the model decides for, by the scores of one input."""
        place = int(self.model.labels(np.reshape(scores, (1, -1)))[0])
        if place >= len(self.classes):
            raise ValueError(f"the model must have one output for each of {len(self.classes)} classes, got {np.size(scores)}")
        return self.classes[place]


def takes(train: Any, *names: str) -> Any:
    """The function itself, if it can be called with so many arguments: a model that is trained already takes one."""
    try:
        signature(train).bind(*names)
    except TypeError as error:
        came = f"{getattr(train, '__name__', type(train).__name__)}{signature(train)}"
        raise TypeError(f"a function that trains must take ({', '.join(names)}) and return a model, got {came}: {error}; a "
                        "model that is trained already cannot be used here") from None
    except ValueError:  # of some functions written in C nothing is known
        return train
    return train


def _fresh(given: Any, seed: int) -> Any:
    """A copy of a scikit-learn estimator that knows nothing yet, its random states set."""
    from sklearn.base import clone

    made = clone(given)
    states = {name: seed for name in made.get_params() if name == "random_state" or name.endswith("__random_state")}
    return made.set_params(**states) if states else made


def checked(e: Any, d: int) -> Explanation:
    """An explanation of d parts, or one clear error."""
    if not isinstance(e, Explanation) or np.shape(e.scores) != (d,) or not np.isfinite(e.scores).all():
        raise TypeError(f"an explainer must return an Explanation with one finite score a part, ({d},), got {type(e).__name__}")
    return e


def stays(parts: Parts, held: NDArray[np.bool_]) -> bool:
    """Is the input the same when all parts that hold the artefact are hidden? Then no method that hides parts can find it."""
    if not held.any() or not parts.deterministic or parts.domain not in ("image", "audio"):
        return False
    hidden, whole = parts.compose(np.stack([~held, np.ones_like(held)]), generator(0))
    return bool(np.allclose(hidden, whole, rtol=0, atol=SAME * max(float(np.ptp(whole)), 1e-12)))


def content(item: Any) -> bytes:
    """What an input is, to notice that it changed."""
    if isinstance(item, np.ndarray) and item.dtype.kind != "O":
        return str((item.dtype, item.shape)).encode() + np.ascontiguousarray(item).tobytes()
    return str(item.to_json() if hasattr(item, "to_json") else item).encode()
