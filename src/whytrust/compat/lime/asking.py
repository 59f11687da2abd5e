"""One call of explain_instance: lime's arguments on one side, whytrust's questions on the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from whytrust.api import model as wrap
from whytrust.checked import CheckedModel
from whytrust.compat.lime.lime_base import PlainLime, exponential, report, selection_of
from whytrust.core import Floats, Parts
from whytrust.explainers.lime import Lime
from whytrust.explanation import Explanation
from whytrust.progress import Progress
from whytrust.question import Question

DISTANCES = {"cosine": "cosine", "euclidean": "l2", "l2": "l2"}
"""Distances that whytrust's own LIME knows; any other metric of scikit-learn goes the plain way."""

ANONYMOUS = ("predict_proba", "predict", "decision_function", "__call__", "lambda", "SparseRows", "Steps")
"""Names of functions that say nothing about a model."""


@dataclass(frozen=True)
class Neighbourhood:
    """How an explainer samples and weighs: what lime's constructors are told, and what one call adds."""

    width: float
    kernel: Callable[..., Any] | None
    selection: str
    samples: int = 5000
    features: int = 10
    metric: Any = "cosine"
    regressor: Any = None
    scale: float = 1.0  # of distances: a width of 25 for texts is one of .25 here

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        selection_of(self.selection)
        if self.kernel is not None and not callable(self.kernel):
            raise TypeError(f"kernel must be a function of distances and kernel_width, got {self.kernel!r}")
        for name, value in (("num_samples", self.samples), ("num_features", self.features)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")

    def explainer(self, d: int) -> Lime | PlainLime:
        """whytrust's LIME where it can do what is asked for, else plain sampling."""
        own = self.kernel is not None or self.regressor is not None
        known = isinstance(self.metric, str) and self.metric in DISTANCES
        selection = selection_of(self.selection)
        weighed = d if selection == "none" else min(self.features, d)
        if own or not known or d < 2 or self.samples < weighed + 3:
            return PlainLime(self.kernel_function, int(self.samples), int(self.features), selection, self.metric, self.scale,
                             self.regressor)
        return Lime(samples=int(self.samples), variant="reference", features=int(self.features), selection=selection,
                    distance=DISTANCES[self.metric], width=self.width / self.scale)

    @property
    def kernel_function(self) -> Callable[[Floats], Floats]:
        """Distances to weights, the width filled in."""
        return partial(exponential if self.kernel is None else self.kernel, kernel_width=self.width)


@dataclass(frozen=True)
class Answers:
    """What was found out about one input: whytrust's explanations by label, and the model's scores of the input itself."""

    explanations: dict[int, Explanation]
    scores: Floats
    top: list[int] | None
    lowest: float
    highest: float


def ask(predict_fn: Any, cut: Callable[[CheckedModel], Parts], how: Neighbourhood, rng: Callable[[], np.random.Generator], *,
        labels: Iterable[int] = (1,), top_labels: int | None = None, class_names: Sequence[Any] | None = None,
        regression: bool = False, batch_size: int | None = None, watched: bool = True, verbose: bool = False,
        seed: int = 0) -> Answers:
    """Explain every label from one set of model calls, each with the same draws."""
    with Progress("explaining") as progress:
        model = _named(predict_fn, regression)
        question = Question(model, cut(model), 0, batch_size, on_calls=progress if watched else None)
        explainer = how.explainer(question.d)
        if isinstance(explainer, Lime):
            explainer.ahead(question, rng())
        scores = question.original
        wanted, top = _labels(len(scores), scores, labels, top_labels, regression)
        if class_names is not None and len(set(map(str, class_names))) == len(class_names) == len(scores):
            question = replace(question, model=replace(model, classes=tuple(map(str, class_names))))
        questions = question.watching(wanted)
        found = {}
        for one in questions:
            found[one.target] = e = replace(explainer(one, rng()), seed=seed)
            if verbose:
                report(e.intercept, np.array([e.local_prediction]), e.prediction)
    said = [scores[wanted]] + [answers.ravel() for answers, _ in questions[0].memory.streams.values()]
    return Answers(found, scores, top, float(min(s.min() for s in said)), float(max(s.max() for s in said)))


def _named(predict_fn: Any, regression: bool) -> CheckedModel:
    """The model under a name that says something: `forest.predict_proba` is RandomForestClassifier, not predict_proba."""
    model = wrap(predict_fn)
    if regression and callable(predict_fn):
        model = CheckedModel(predict_fn, name=model.name)  # a classifier's labels count as numbers, as in lime
    if model.name not in ANONYMOUS:
        return model
    owner = getattr(predict_fn, "__self__", None)
    steps = getattr(owner, "steps", None)  # of a pipeline
    return replace(model, name="the model" if owner is None else type(steps[-1][1] if steps else owner).__name__)


def _labels(columns: int, scores: Floats, labels: Any, top_labels: int | None, regression: bool) -> tuple[list[int], Any]:
    """(the columns to explain, the top labels where they were asked for)."""
    if regression:
        if columns != 1:
            raise ValueError(f"with mode='regression' predict_fn must return one number for each row, got {columns}; for class "
                             "probabilities use mode='classification', for several outputs pass a function that returns one")
        return [0], None
    if columns == 1:
        raise ValueError("predict_fn must return one column of probabilities for each class, got one number an input; for two "
                         "classes return np.column_stack([1 - p, p]), for a regressor use mode='regression'")
    if top_labels:
        top = [int(i) for i in np.argsort(-scores, kind="stable")[:top_labels]]
        return top, top
    wanted = [labels] if isinstance(labels, int | np.integer) else list(labels)
    if not wanted or not all(isinstance(i, int | np.integer) and 0 <= i < columns for i in wanted):
        raise ValueError(f"labels must be columns of predict_fn's output, 0 to {columns - 1}, got {wanted}; for the most "
                         "probable classes pass top_labels=1")
    return [int(i) for i in dict.fromkeys(wanted)], None
