"""The lime package: its explainers, and the explanations they have made (those of whytrust.compat.lime too)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Batch, Floats
from whytrust.explainers.foreign.calling import called, plain_settings
from whytrust.explainers.laying import Laid, Laying, shared
from whytrust.explanation import Explanation
from whytrust.question import Question
from whytrust.views import ImageView, TextView


@dataclass(frozen=True, eq=False)
class LimeResult:
    """What does an explanation that lime has made say of the parts? Nothing is computed anew.

    Weights add up, so they are summed over a part; an image's segments become the parts where no others are asked for. lime
    keeps R² and local prediction of the last label it explained only; for others the fidelity stays unknown.
    """

    result: Any
    pooling: str | None = None
    calls: int = 0
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def own_parts(self) -> NDArray[Any] | None:
        """lime's segments, for an image."""
        segments = getattr(self.result, "segments", None)
        return None if segments is None else np.asarray(segments)

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One score a part from the weights of the question's target."""
        result, label = self.result, self._label(question)
        weights = {int(i): float(w) for i, w in result.local_exp[label]}
        name = f"lime ({self._kind()})"
        lay = Laying(question, name, self.pooling, additive=True)
        origin, chosen = None, None
        if self._kind() == "lime_image":
            laid = self._image(lay, weights, question)
        elif self._kind() == "lime_text":
            laid, chosen = self._text(lay, weights, question)
        else:
            laid, origin, chosen = self._row(weights, question, name)
        intercept = float(np.ravel(result.intercept[label])[0]) + laid.outside
        used = laid.scores if origin is None else laid.scores * origin
        local, score, notes = self._fit(label, intercept + float(used.sum()))
        return Explanation.of(
            question, name, laid.scores, conditions=True, intercept=intercept, local_prediction=local, fidelity=score,
            origin=origin, selected=chosen, notes=(*notes, *laid.notes), calls=question.memory.calls + self.calls,
            settings={**plain_settings({}, self.pooling), **self.settings})

    def _kind(self) -> str:
        if hasattr(self.result, "segments"):
            return "lime_image"
        return "lime_text" if hasattr(getattr(self.result, "domain_mapper", None), "indexed_string") else "lime_tabular"

    def _label(self, question: Question) -> Any:
        # lime files a regressor's weights under 1, and the same with the sign turned under 0.
        label = 1 if getattr(self.result, "mode", None) == "regression" else question.target
        if label not in self.result.local_exp:
            had = ", ".join(str(k) for k in self.result.local_exp)
            raise ValueError(f"this lime explanation has labels {had}, not {question.target} "
                             f"({question.model.class_name(question.target, len(question.original))}); pass target= one of "
                             "them, or explain that label too with labels= or top_labels=")
        return label

    def _fit(self, label: Any, added: float) -> tuple[float, float | None, list[str]]:
        """(local prediction, R², notes) of a label."""
        score, local = (getattr(self.result, many, None) or getattr(self.result, one, None)
                        for many, one in (("scores", "score"), ("local_preds", "local_pred")))
        if isinstance(score, dict) and isinstance(local, dict):
            return float(np.ravel(local[label])[0]), float(score[label]), []
        if score is None or local is None or label != list(self.result.local_exp)[-1]:
            return added, None, ["lime keeps the fit of the last label it explained only: no fidelity is known for this one."]
        return float(np.ravel(local)[0]), float(score), []

    def _image(self, lay: Laying, weights: dict[int, float], question: Question) -> Laid:
        view, segments = question.parts.view, np.asarray(self.result.segments)
        if not isinstance(view, ImageView) or segments.shape != view.labels.shape:
            raise ValueError(f"this lime explanation is of an image of {segments.shape} pixels; explain that image with it")
        map = np.zeros(segments.shape)
        for segment, weight in weights.items():
            here = segments == segment
            if lay.pooling in (None, "sum") and here.any():
                map += shared(weight, here, view.labels)
            else:
                map[here] = weight
        return Laid(question.parts.pool(map, lay.pooling or "sum"))

    def _text(self, lay: Laying, weights: dict[int, float], question: Question) -> tuple[Laid, NDArray[np.bool_]]:
        view, indexed = question.parts.view, self.result.domain_mapper.indexed_string
        raw = indexed.raw_string()
        if not isinstance(view, TextView) or raw not in (view.text, question.input[0]):
            raise ValueError(f"this lime explanation is of another text ({raw[:40]!r}…); explain that text with it")
        spans: list[tuple[tuple[int, int], ...]] = []
        for index in weights:
            length = len(indexed.word(index))
            spans.append(tuple((int(start), int(start) + length) for start in np.ravel(indexed.string_position(index))))
        touched = lay.tokens(np.ones(len(spans)), spans).scores > 0
        return lay.tokens(np.array(list(weights.values())), spans), touched

    def _row(self, weights: dict[int, float], question: Question,
             name: str) -> tuple[Laid, Floats | None, NDArray[np.bool_]]:
        mapper = getattr(self.result, "domain_mapper", None)
        names = getattr(mapper, "feature_names", None)
        if question.parts.domain != "tabular" or (names is not None and len(names) != question.d) or max(
                weights, default=0) >= question.d:
            raise ValueError(f"{name} explains a row of {'?' if names is None else len(names)} columns, and this input has "
                             f"{question.d} parts of {question.parts.domain}; explain that row with it")
        scores, chosen = np.zeros(question.d), np.zeros(question.d, bool)
        for column, weight in weights.items():
            scores[column], chosen[column] = weight, True
        scaled = getattr(mapper, "scaled_row", None)
        origin = None if scaled is None else np.asarray(scaled.toarray() if hasattr(scaled, "toarray") else scaled).ravel()
        return Laid(scores), None if origin is None or (origin == 1).all() else origin.astype(np.float64), chosen


@dataclass(frozen=True, eq=False)
class LimePackage:
    """What does one of lime's own explainers say of the parts?

    It asks the model as whytrust sees it. An image is cut into the question's parts unless the options say otherwise.
    """

    explainer: Any
    pooling: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One call of `explain_instance`, with lime's defaults where nothing else is said."""
        name, view, batch, asked = type(self.explainer).__name__, question.parts.view, question.input, [0]

        def predict(rows: Any) -> Floats:
            asked[0] += len(rows)
            scores = question.model(_as_taken(rows, batch, question))
            question.memory.seen.add(scores)
            return scores

        options: dict[str, Any] = {"labels": (question.target,), "top_labels": None, **self.options}
        if isinstance(view, ImageView):
            options.setdefault("segmentation_fn", lambda image: view.labels)
            item: Any = _channels_last(batch, question)[0]
        elif isinstance(view, TextView):
            item = batch[0]
        else:
            item = np.asarray(batch.to_numpy()[0] if hasattr(batch, "columns") else batch[0])
        result = called(f"lime {name}", lambda: self.explainer.explain_instance(item, predict, **options), question, rng,
                        self.explainer)
        return LimeResult(result, self.pooling, asked[0], plain_settings(self.options, None))(question, rng)


def _channels_last(batch: Any, question: Question) -> Any:
    return np.moveaxis(batch, 1, -1) if getattr(question.parts, "channels_first", False) else batch


def _as_taken(rows: Any, batch: Any, question: Question) -> Batch:
    """What lime hands out -> what the model takes: lime turns grey into RGB, and tables into plain matrices."""
    if isinstance(batch, list):
        return [str(row) for row in rows]
    if hasattr(batch, "columns"):
        return type(batch)(np.asarray(rows), columns=batch.columns).astype(batch.dtypes.to_dict())
    rows = np.asarray(rows)
    if question.parts.domain == "image":
        grey = _channels_last(batch, question)
        rows = rows[..., 0] if grey.ndim == 3 else rows[..., :1] if grey.shape[-1] == 1 else rows
        rows = np.moveaxis(rows, -1, 1) if getattr(question.parts, "channels_first", False) else rows
    return rows.astype(batch.dtype)
