"""The rival of LIME that fits the whole model at once: Parzen windows over training inputs, and their gradient."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whytrust.checked import CheckedModel
from whytrust.core import Floats
from whytrust.explainers.greedy import most
from whytrust.explainers.windows import Rows, Windows, cross_validated, folds_of, tried
from whytrust.explanation import Explanation
from whytrust.question import Question
from whytrust.rehearsal import earnest

STANDS_IN = 0.8
"""An agreement with the model below this is told as a warning."""
FOLLOWS = 0.5
"""… and so is a share of its variance below this, where the model has no labels."""
NOTHING = 1e-12
"""A slope of a probability below this is none."""
AT_ONCE = 4 << 20
"""Bytes of training inputs that the model is asked about at once, unless a batch size is given."""
NEEDS = ("parzen needs training inputs: pass background=, a list of texts, rows of a table, or arrays shaped like the input "
         "(in an audit of images or sounds as its own option, {'method': 'parzen', 'background': arrays})")
CAUTION = ("It explains windows that stand in for the model, not the model: what they miss, the scores miss. A slope is flat "
           "where the windows are sure, however much a part matters.")


@dataclass(frozen=True, repr=False, eq=False)
class Parzen:
    """How would the probability of the target move with each part, if the model were a smooth average over training inputs?

    Parzen windows (Baehrens et al. 2010), as Ribeiro et al. (2016) set them against LIME: the model labels the training inputs
    in `background`, a Gaussian of width σ around each spreads its label, P(target | x) is the target's share at x, and a part's
    score is the gradient of that. Inputs are compared by their own features: texts by which words they have (a word's score is
    the gradient with respect to its being there; a sentence has the sum over its words), rows by their columns in standard
    deviations (categories by 0 and 1), images and sounds value by value, in standard deviations too, and the mean of a part.

    `width` is σ in these units, or "auto": the one of a grid that best predicts held-out labels by cross-validation, of equals
    the largest. `soft` fits the model's scores and not its labels; `labels` are fitted in place of what the model says, and
    it is then not asked. `features` keeps the parts of largest slope. `local_prediction` is the windows' own P(target) at the
    input, and `settings["agreement"]` how often they say of held-out training inputs what they were fitted to.

    It misleads where the windows are not the model: distances over thousands of words or pixels say little, and a low agreement
    means that something else is explained. Far from the training inputs the nearest one decides alone, and all slopes are 0.
    The slope of a number, or of a pixel, says which way it would have to move: one that speaks for the target by being low has
    a negative slope. Only of what is there or not, words and categories, is it for or against.
    """

    background: Any = None
    width: float | Literal["auto"] = "auto"
    labels: Any = None
    soft: bool = False
    features: int | Literal["all"] | None = None
    needs: ClassVar[str] = NEEDS

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        if self.background is not None and (isinstance(self.background, str) or not hasattr(self.background, "__len__")):
            raise TypeError("background must be the training inputs themselves, a list of texts, rows of a table or arrays, "
                            f"got {type(self.background).__name__}")
        number = isinstance(self.width, int | float | np.number) and not isinstance(self.width, bool)
        if self.width != "auto" and not (number and 0 < float(self.width) < np.inf):
            raise ValueError(f"width must be a number > 0, or 'auto', got {self.width!r}")
        if self.soft not in (True, False):
            raise ValueError(f"soft must be True (fit the model's scores) or False (fit its labels), got {self.soft!r}")
        if self.soft and self.labels is not None:
            raise ValueError("soft fits the model's scores and labels= are fitted instead of what it says: pass one of the two")
        most(self.features)

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One model call, and one for each training input, which are shared by all inputs that this object explains."""
        fitted, parts = self._fit(question), question.parts
        x, worth = fitted.vectors.vector(parts), fitted.worth(question.target)
        prediction = fitted.windows.value(x, worth)
        slope = fitted.windows.gradient(x, worth)
        scores, origin = fitted.vectors.per_part(slope, parts), fitted.vectors.origin(parts)
        scores = np.where(np.abs(scores) > NOTHING, scores, 0.0)
        limit, kept = most(self.features), np.ones(question.d, dtype=bool)
        if limit is not None and limit < question.d:
            kept[np.argsort(-np.abs(scores if origin is None else scores * origin), kind="stable")[limit:]] = False
            scores = np.where(kept, scores, 0.0)
        added = float(scores.sum() if origin is None else scores @ origin)
        return Explanation.of(
            question, "parzen", scores, intercept=prediction - added, local_prediction=prediction, origin=origin,
            selected=None if limit is None else kept, caution=CAUTION, notes=tuple(fitted.notes(question, scores)),
            # As if this input were explained alone: another number here whenever it comes first would be no fact about it.
            calls=question.memory.calls + fitted.asked,
            settings={"width": fitted.windows.width, "chosen": "by cross-validation" if self.width == "auto" else "given",
                      "background": len(fitted.windows.rows), "fitted_to": fitted.fitted_to, "agreement": fitted.agreement,
                      **({} if fitted.follows is None else {"r2": fitted.follows})})

    # --- what is worked out once --------------------------------------------------------------------------------------

    @cached_property
    def _kept(self) -> list[tuple[tuple[Any, ...], tuple[Any, ...], _Fitted]]:
        """The model that was fitted last, how and for which kind of inputs, and the fit."""
        return []

    def _fit(self, question: Question) -> _Fitted:
        if self.background is None:
            raise ValueError(NEEDS)
        model = question.model
        function, rehearsed = earnest(model.function)
        same, alike = (function, model.preprocess), (rehearsed, model.threshold, model.output, _kind(question))
        for known, equal, fitted in self._kept:
            if all(a is b for a, b in zip(known, same, strict=True)) and equal == alike:
                return fitted
        self._kept[:] = [(same, alike, _fitted(self, question))]
        return self._kept[0][2]

    def __getstate__(self) -> dict[str, Any]:
        """What it was made from; windows can be fitted again, and models may not pickle."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __repr__(self) -> str:
        """Its options; training inputs by a hash, so that others show as others."""
        own = ((one.name, getattr(self, one.name)) for one in fields(self))
        return f"Parzen({', '.join(f'{name}={_told(value)}' for name, value in own)})"

    def __eq__(self, other: object) -> bool:
        """Equal when made from the same."""
        return isinstance(other, Parzen) and repr(self) == repr(other)

    def __hash__(self) -> int:
        """By what it was made from."""
        return hash(repr(self))


# --- training inputs ----------------------------------------------------------------------------------------------------


class Vectors(Protocol):
    """Training inputs as vectors, and what a gradient with respect to such a vector says of an input's parts."""

    @property
    def matrix(self) -> Any:
        """(n, features), sparse, or Rows."""
        ...

    def batch(self, part: slice) -> Any:
        """Some training inputs, as the model takes them."""
        ...

    def vector(self, parts: Any) -> Floats:
        """The input that these parts are of."""
        ...

    def per_part(self, gradient: Floats, parts: Any) -> Floats:
        """A number a feature -> a number a part."""
        ...

    def origin(self, parts: Any) -> Floats | None:
        """What the numbers are multiplied by where they are added up; None is 1."""
        ...

    def strange(self, parts: Any) -> bool:
        """Has the input nothing in common with any training input?"""
        ...


@dataclass(frozen=True, eq=False)
class Arrays:
    """Images, spectrograms or waveforms, value by value."""

    matrix: Rows
    inputs: NDArray[Any]

    @classmethod
    def of(cls, background: Any, question: Question) -> Arrays:
        """Training arrays, which must be shaped like the input."""
        shape = np.shape(question.input[0])
        if hasattr(background, "detach"):
            background = background.detach().cpu().numpy()
        wrong = next((np.shape(one) for one in background if np.shape(one) != shape), None)
        array = np.asarray(background) if wrong is None else np.empty(0)
        if question.model.layout == "NCHW" and wrong is not None and wrong == (*shape[1:], shape[0]):
            array, wrong = np.moveaxis(np.stack([np.asarray(one) for one in background]), -1, 1), None
        if wrong is not None or array.dtype.kind not in "biuf":
            what = f"one of shape {wrong}" if wrong is not None else f"an array of {array.dtype}"
            raise ValueError(f"background must be arrays of numbers shaped like the input, {shape}, got {what}")
        return cls(Rows.standardised(array.reshape(len(array), -1)), array)

    def batch(self, part: slice) -> Any:
        """Some of the inputs."""
        return self.inputs[part]

    def vector(self, parts: Any) -> Floats:
        """The input that these parts are of."""
        own = parts.compose(np.ones((1, len(parts.names)), dtype=bool), np.random.default_rng(0))
        return self.matrix.in_units(own[0]).ravel()

    def per_part(self, gradient: Floats, parts: Any) -> Floats:
        """The mean over each part; of a sound cut in frequency, of the gradient with respect to how loud each is."""
        map, dials = gradient.reshape(self.inputs.shape[1:]), getattr(parts, "dials", None)
        return np.asarray(parts.pool(map, "mean") if dials is None else dials.pool(dials.pulled(map[None])[0], "mean"))

    def origin(self, parts: Any) -> Floats | None:
        """The parts of an array are not multiplied by anything."""
        return None

    def strange(self, parts: Any) -> bool:
        """Arrays of one shape have all their places in common."""
        return False


# --- the fit --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Windows over training inputs, and how well they stand in for the model."""

    vectors: Vectors
    windows: Windows
    values: NDArray[Any]  # (n,) labels, or (n, classes) scores
    fitted_to: str
    agreement: float | None
    follows: float | None  # a model without labels: the share of its variance
    asked: int

    def worth(self, target: int) -> Floats:
        """What each training input is worth to the target: its score, or whether it has the label."""
        return self.values[:, target] if self.values.ndim == 2 else (self.values == target).astype(np.float64)

    def notes(self, question: Question, scores: Floats) -> Iterator[str]:
        """What to know before believing it."""
        model, classes = question.model, len(question.original)
        if self.values.ndim == 1 and (self.values == self.values[0]).all():
            yield (f"Every training input is labelled {model.class_name(int(self.values[0]), classes)}: nothing tells the "
                   "windows what speaks for or against it, and there is nothing to explain. Pass a background of several "
                   "labels.")
            return
        if self.values.ndim == 1 and not (self.values == question.target).any():
            yield (f"No training input is labelled {model.class_name(question.target, classes)}, so the windows give it no "
                   "probability anywhere: nothing to explain.")
        elif self.vectors.strange(question.parts):
            yield "No training text has any of this text's words: the windows know nothing of it, and every score is 0."
        elif not (np.abs(scores) > NOTHING).any():
            yield ("Every score is 0, or as good as 0: at this width the nearest training inputs, all of one label, decide "
                   "alone.")
        if self.agreement is not None and self.agreement < STANDS_IN:
            yield (f"The windows say of {self.agreement:.0%} of the held-out training inputs what they were fitted to "
                   f"({self.fitted_to}): they hardly stand in for the model, and what is explained is them.")
        if self.follows is not None and self.follows < FOLLOWS:
            yield (f"The windows explain {max(self.follows, 0):.0%} of the variance of the model's scores on held-out training "
                   "inputs: they hardly stand in for the model, and what is explained is them.")


def _fitted(how: Parzen, question: Question) -> _Fitted:
    """Ask about every training input, and choose a width."""
    vectors, model = _vectors(how.background, question), question.model
    rows = vectors.matrix if isinstance(vectors.matrix, Rows) else Rows(vectors.matrix)
    if len(rows) < 2:
        raise ValueError(f"{NEEDS}; got {len(rows)}")
    classes = len(question.original)
    soft = how.soft or (classes == 1 and how.labels is None)  # one output has no label
    if how.labels is not None:
        values, asked = _given(how.labels, model, classes, len(rows)), 0
    else:
        values, asked = _asked(vectors, len(rows), question, soft), len(rows)
    widths = tried(rows) if how.width == "auto" else np.array([float(how.width)])
    judge, truth, worth = _judged(values, model)
    said = cross_validated(rows, worth, widths, judge)
    held_out = folds_of(len(rows))[1]
    if classes == 1:
        errors = [float(((one - truth[held_out]) ** 2).mean()) for one in said]
        best, spread = _last(np.argmin, errors), float(truth[held_out].var())
        agreement, follows = None, 1 - errors[best] / spread if spread > 0 else 1.0
    else:
        rates = [float((one == truth[held_out]).mean()) for one in said]
        best = _last(np.argmax, rates)
        agreement, follows = rates[best], None
    told = "labels that were given" if how.labels is not None else "the model's scores" if soft else "the model's labels"
    return _Fitted(vectors, Windows(rows, float(widths[best])), values, told, agreement, follows, asked)


def _last(best: Callable[[Any], Any], values: list[float]) -> int:
    """Of equally good widths the largest: windows that are narrower than they need be are flat nearly everywhere."""
    return len(values) - 1 - int(best(values[::-1]))


def _judged(values: NDArray[Any], model: CheckedModel) -> tuple[Callable[[Floats], Any], NDArray[Any], Any]:
    """(what windows decide for by what they give each column, what they should have decided, the columns)."""
    if values.ndim == 2 and values.shape[1] == 1:
        return lambda given: given[:, 0], values[:, 0], values
    if values.ndim == 2:
        return model.labels, model.labels(values), values
    names, codes = np.unique(values, return_inverse=True)
    ones = sparse.csr_array((np.ones(len(codes)), codes, np.arange(len(codes) + 1)), shape=(len(codes), len(names)))
    return lambda given: given.argmax(axis=1), codes, ones


def _vectors(background: Any, question: Question) -> Vectors:
    offer = getattr(question.parts, "vectors", None)
    if len(background) == 0:
        raise ValueError(f"{NEEDS}; got none")
    made: Vectors = Arrays.of(background, question) if offer is None else offer(background, question.model.reads)
    return made


def _asked(vectors: Vectors, n: int, question: Question, soft: bool) -> NDArray[Any]:
    """The model's labels of all training inputs, or its scores."""
    one = vectors.batch(slice(0, 1))
    size = one.nbytes if isinstance(one, np.ndarray) else len(one[0]) if isinstance(one, list) else 1024
    step = question.batch_size or int(np.clip(AT_ONCE // max(size, 1), 1, 1024))
    # A study counts its calls case by case, and its records must not depend on which came first: only progress is told.
    tell = question.on_calls if hasattr(question.on_calls, "expect") else None
    found = []
    with question.expecting(n):
        for start in range(0, n, step):
            scores = question.model(vectors.batch(slice(start, min(start + step, n))))
            found.append(scores if soft else question.model.labels(scores))
            if tell is not None:
                tell(len(scores))
    return np.concatenate(found)


def _given(labels: Any, model: CheckedModel, classes: int, n: int) -> NDArray[np.intp]:
    """Labels by name or number, as numbers of the model's classes."""
    if classes == 1:
        raise ValueError(f"labels are for models with classes, and {model.name} has one output; leave labels out")
    if isinstance(labels, str) or not hasattr(labels, "__len__") or len(labels) != n:
        raise ValueError(f"labels must have one entry for each training input: expected {n}, got "
                         f"{len(labels) if hasattr(labels, '__len__') and not isinstance(labels, str) else repr(labels)}")
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    numbers = {label: model.class_index(label, classes) for label in dict.fromkeys(plain)}
    return np.array([numbers[label] for label in plain], dtype=np.intp)


def _kind(question: Question) -> Any:
    """What of the input the fit depends on: the units of a table's columns, or the shape of an array."""
    statistics = getattr(question.parts, "statistics", None)
    if statistics is not None or hasattr(question.parts, "vectors"):
        return statistics
    return np.shape(question.input[0])


def _told(value: Any) -> str:
    """Plain options as they are; training inputs and labels by their kind, their number and a hash of what they hold."""
    if isinstance(value, str | int | float | bool | None):
        return repr(value)
    array = np.asarray(value.detach().cpu() if hasattr(value, "detach") else value, dtype=object if isinstance(
        value, list | tuple) and len({np.shape(one) for one in value}) > 1 else None)
    content = str(array.tolist()).encode() if array.dtype.kind in "OU" else np.ascontiguousarray(array).tobytes()
    return f"{type(value).__name__} {array.shape} {hashlib.blake2b(content, digest_size=6).hexdigest()}"
