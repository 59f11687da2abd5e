"""shap's explanations, and its explainers: called as explainer(batch) -> shap.Explanation, or by `.shap_values(batch)`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whytrust.core import Floats
from whytrust.explainers.foreign.calling import called, plain_settings, source_of, taken_by_source
from whytrust.explainers.laying import Laid, Laying, located
from whytrust.explanation import Explanation
from whytrust.question import Question
from whytrust.views import TableView, TextView

NEAR = 0.01
"""Shapley values add up to the explained output; one that is farther than this from the model's score is another quantity."""


@dataclass(frozen=True, eq=False)
class Shap:
    """What do a shap explainer's values say of the parts?

    They add up to the output that the explainer was made for, so they are summed over each part; what lies on no part
    (punctuation, special tokens) is counted to the intercept. That output need not be the model's score: tree and linear
    explainers often explain log odds; then there is no local prediction, and a note says so.
    """

    explainer: Any
    pooling: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One call of the explainer on a batch of one."""
        name = f"shap {type(self.explainer).__name__}"
        batch = self._batch(question)
        answer = called(name, lambda: self._ask(batch), question, rng, self.explainer)
        lay = Laying(question, name, self.pooling, additive=True, stretch=True)
        return _explained(lay, answer, np.ndim(batch), plain_settings(self.options, self.pooling))

    def _batch(self, question: Question) -> Any:
        batch, torch = taken_by_source(question), sys.modules.get("torch")
        net = source_of(question.model.function)
        wants_tensor = type(self.explainer).__name__ in ("DeepExplainer", "GradientExplainer")
        if torch is None or not wants_tensor or not isinstance(net, torch.nn.Module) or isinstance(batch, torch.Tensor):
            return batch
        tensor = torch.from_numpy(np.ascontiguousarray(batch, dtype=np.float32))
        weights = next(iter(net.parameters()), None)
        return tensor if weights is None else tensor.to(weights.device, weights.dtype)

    def _ask(self, batch: Any) -> tuple[Any, Any, Any]:
        """(values, base values, data), by whichever of shap's two ways the explainer has."""
        explain = self._way()
        # Progress bars are shap's default and say nothing about a batch of one. KernelExplainer.shap_values takes any keyword.
        known = set(inspect.signature(explain).parameters)
        if "kwargs" in known and callable(self.explainer):
            known |= set(inspect.signature(self.explainer).parameters)
        quiet = {"silent": True} if "silent" in known else {}
        answer = explain(batch, **{**quiet, **self.options})
        if hasattr(answer, "values") and hasattr(answer, "base_values"):
            return answer.values, answer.base_values, answer.data
        stacked = np.stack(answer, axis=-1) if isinstance(answer, list) else answer
        return stacked, getattr(self.explainer, "expected_value", None), None

    def _way(self) -> Any:
        """The call that knows the options: KernelExplainer takes nsamples in `shap_values` alone."""
        ways = [w for w in (self.explainer, getattr(self.explainer, "shap_values", None)) if callable(w)]
        for way in ways:
            parameters = inspect.signature(way).parameters
            if any(p.kind is p.VAR_KEYWORD for p in parameters.values()) or set(self.options) <= set(parameters):
                return way
        return ways[0]


@dataclass(frozen=True, eq=False)
class ShapResult:
    """What does a shap.Explanation that is already there say of the parts? Nothing is computed; that it belongs to this input
    and this model is the caller's word.

    One output alone is that of the class whose score it adds up to; of more than two classes it is taken for the target's.
    """

    result: Any
    pooling: str | None = None

    def each(self, count: int) -> list[ShapResult]:
        """One an input: the explanation's rows."""
        if count == 1:
            return [self]
        if len(self.result.values) != count:
            raise ValueError(f"with {count} inputs, method must hold one row of shap values for each, got "
                             f"{len(self.result.values)}")
        return [ShapResult(self.result[i], self.pooling) for i in range(count)]

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One score a part from the values of the question's target; the model is asked only for its prediction."""
        values, data, shape = self.result.values, getattr(self.result, "data", None), np.shape(question.input)[1:]
        if isinstance(question.parts.view, TextView):
            if data is None or not len(data):
                raise ValueError("a shap.Explanation of a text must have the text's tokens as its data, got none; make it with "
                                 "shap.maskers.Text")
            alone = isinstance(data[0], str)
        else:
            alone = np.shape(values)[:len(shape)] == shape if data is None else np.ndim(data) == len(shape)
        if alone:
            values, data = np.asarray(values)[None], None if data is None else [data]
        elif len(values) != 1:
            raise ValueError(f"method must explain one input, got a shap.Explanation of {len(values)}; pass explanation[i]")
        if isinstance(question.parts.view, TableView):
            order = _by_name(getattr(self.result, "feature_names", None), question.parts.view.columns)
            values, data = np.asarray(values)[:, order], None if data is None else [np.asarray(data[0], object)[order]]
        lay = Laying(question, "shap Explanation", self.pooling, additive=True, stretch=True)
        answer, dimensions = (values, self.result.base_values, data), len(shape) + 1 if data is None else np.ndim(data)
        return _explained(lay, answer, dimensions, plain_settings({}, self.pooling), given=True)


def _by_name(named: Any, columns: Sequence[str]) -> list[int]:
    """Where the values of each column are: by their names where these are the columns', else in the same order."""
    names = [] if named is None else [str(name) for name in named]
    return [names.index(column) for column in columns] if set(names) == set(columns) else list(range(len(columns)))


def _explained(lay: Laying, answer: tuple[Any, Any, Any], dimensions: int, settings: dict[str, Any],
               given: bool = False) -> Explanation:
    """An explanation from (values, base values, data) of a batch of one; `dimensions` are the batch's."""
    question, name, text = lay.question, lay.name, isinstance(lay.question.parts.view, TextView)
    values, base, sign, notes = _of_target(answer, 2 if text else dimensions, question, name, given)
    tokens = answer[2] if text else None
    laid = _over_tokens(lay, values, tokens, question) if tokens is not None else lay(values)
    total = None if base is None else base + float(values.sum())
    prediction = float(question.original[question.target])
    complement = sign < 0 and total is not None and abs(1 - total - prediction) <= NEAR
    if sign < 0 and base is not None and total is not None:
        base, total = (1 - base, 1 - total) if complement else (-base, -total)
    if base is None:
        notes.append(f"{name} states no base value: the intercept is not known (0 stands there), nor is a local prediction.")
    if total is not None and abs(total - prediction) > NEAR * max(1.0, abs(prediction)):
        notes.append(f"Base value and values add up to {total:.4g} and the model's score is {prediction:.4g}: {name} "
                     "explains another quantity (log odds, say), or another input, so there is no local prediction.")
        total = None
    if laid.outside:
        notes.append(f"{sign * laid.outside:+.3g} lies on no part and is counted to the intercept.")
    return Explanation.of(
        question, name, sign * laid.scores, intercept=0.0 if base is None else base + sign * laid.outside,
        local_prediction=total, notes=(*notes, *laid.notes), settings=settings)


def _of_target(answer: tuple[Any, Any, Any], dimensions: int, question: Question, name: str,
               given: bool) -> tuple[Floats, float | None, float, list[str]]:
    """(values, base value, sign, notes) of the question's target; an axis beyond the input's own is the classes'."""
    values = np.asarray(answer[0])
    values = np.asarray(values[0]) if values.dtype == object else values[0] if values.ndim else values
    values = Laying(question, name).numbers(values)
    bases = None if answer[1] is None else np.ravel(np.asarray(answer[1], dtype=np.float64))
    classes = len(question.original)
    outputs = values.shape[-1] if values.ndim == dimensions else 1
    too_few = outputs == 1 and classes > 2 and not given
    if values.ndim not in (dimensions - 1, dimensions) or outputs not in (1, classes) or too_few:
        raise ValueError(f"{name} must explain every output of the model ({classes}), or the one of a two-class model or a "
                         f"regressor; got values of shape {values.shape} for one input; leave out options that choose outputs "
                         "or ask for interactions")
    target = question.target if outputs == classes else 0
    if values.ndim == dimensions:
        values = values[..., target]
    base = None if bases is None or not len(bases) else float(bases[target] if len(bases) > 1 else bases[0])
    if outputs == classes or classes == 1:
        return values, base, 1.0, []
    score = float(question.original[question.target])
    misses = [np.inf] if base is None else [abs(base + values.sum() - s) for s in (score, 1 - score)]
    if classes > 2 and base is not None:
        nearest = int(np.abs(question.original - base - values.sum()).argmin())
        if nearest != question.target and abs(question.original[nearest] - base - values.sum()) <= NEAR < misses[0]:
            found = question.model.class_name(nearest, classes)
            raise ValueError(f"{name} has values of one output, which add up to the score of {found}; ask for that target, or "
                             f"pass the values of the target's own output, explanation[..., {question.target}]")
    if classes > 2 or (given and misses[0] <= NEAR < misses[-1]):
        own = question.model.class_name(question.target, classes)
        return values, base, 1.0, [f"{name} has values of one output, taken to be that of {own}."]
    other = question.model.class_name(1 - question.target, 2)
    if question.target == 1 and not (given and misses[-1] <= NEAR < misses[0]):
        return values, base, 1.0, [f"{name} explains one output, taken to be that of {question.model.class_name(1, 2)}."]
    return values, base, -1.0, [f"{name} explains one output, taken to be that of {other}: its values are negated."]


def _over_tokens(lay: Laying, values: Floats, tokens: Sequence[Any], question: Question) -> Laid:
    """One value a token of shap's own masker; tokens spell the text, so they are found in order."""
    view = question.parts.view
    assert isinstance(view, TextView)
    words = [str(token) for token in tokens[0]]
    if len(words) != len(values):
        raise ValueError(f"{lay.name} must give one value for each of its {len(words)} tokens, got {values.shape}")
    return lay.tokens(values, located(words, view.text))
