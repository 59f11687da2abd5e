"""Explanations as neighbouring libraries hold them, so that their plots and measures can be used.

The numbers stay what they are. A LIME score is a term of a local linear model, a Shapley value a fair share of the
difference from a base value: both add up to a prediction from an intercept, but with interacting parts they differ, and a
LIME explanation adds up to the *local* prediction, which misses the model's by the gap. Axis titles in shap's plots
(E[f(X)], SHAP value) do not know that.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, MissingExtra, View
from whytrust.views import ImageView, TableView, TextView


class Explained(Protocol):
    """What an explanation has that its exports need."""

    @property
    def scores(self) -> Floats:
        """One a part."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parts."""
        ...

    @property
    def view(self) -> View:
        """The input as a reader knows it."""
        ...

    @property
    def intercept(self) -> float:
        """What the scores are added to."""
        ...

    @property
    def standard_errors(self) -> Floats | None:
        """Of the scores."""
        ...


def to_shap(explanations: Sequence[Explained], single: bool) -> Any:
    """A shap.Explanation of one explanation, or of several inputs of one kind as a batch."""
    shap = _shap()
    kinds = {e.view.kind for e in explanations}
    if len(kinds) > 1:
        raise ValueError(f"explanations of one kind of input can be stacked for shap, got {' and '.join(sorted(kinds))}")
    rows = [_row(e) for e in explanations]
    values, data, names = [row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]
    bases = [float(e.intercept) for e in explanations]
    if single:
        errors = explanations[0].standard_errors
        stds = None if errors is None or errors.shape != values[0].shape else errors
        return shap.Explanation(values[0], base_values=bases[0], data=data[0], feature_names=names[0], error_std=stds)
    if isinstance(explanations[0].view, TableView) and len({tuple(n or ()) for n in names}) > 1:
        raise ValueError("rows of one table can be stacked for shap, and these have different columns")
    if isinstance(explanations[0].view, ImageView) and len({v.shape for v in values}) > 1:
        raise ValueError(f"images of one size can be stacked for shap, got {', '.join(str(v.shape) for v in values[:4])}")
    own_parts = not isinstance(explanations[0].view, ImageView | TableView)  # then every input has features of its own
    stack = _ragged if own_parts else np.stack
    return shap.Explanation(stack(values), base_values=np.array(bases), data=stack(data),
                            feature_names=[list(n or ()) for n in names] if own_parts else names[0])


def to_captum(explained: Explained, spread: Floats, like: Any = None) -> Any:
    """Attributions of a batch of one as captum returns them; `spread` is the map over the input."""
    picture = isinstance(explained.view, ImageView)
    if like is None:
        if not picture:
            return spread[None] if explained.view.kind == "sound" else np.array(explained.scores)[None]
        return spread[None, None]
    shape = tuple(like.shape)
    for values in (spread,) if picture else (np.asarray(explained.scores), spread):
        fitted = _broadcast(values, shape, picture)
        if fitted is not None:
            if not hasattr(like, "new_tensor"):
                return fitted
            # Token ids are whole numbers, and so would their attributions be.
            return (like if like.is_floating_point() else like.float()).new_tensor(fitted)
    accepted = (f"{spread.shape} with a channel axis first or last" if picture
                else f"({len(explained.scores)},) or {spread.shape}")
    raise ValueError(f"like must have the input's shape, {accepted}, with or without a leading 1, got {shape}; for a net that "
                     "sees a resized image, resize what to_captum() returns")


def _broadcast(values: Floats, shape: tuple[int, ...], channels: bool) -> Floats | None:
    """The values in that shape: batch axes of one are added; channels, first or last, all get the same value."""
    inner = shape[1:] if len(shape) > values.ndim and shape[0] == 1 and len(shape) > values.ndim + int(channels) else shape
    if inner == values.shape:
        return np.array(values).reshape(shape)
    if len(inner) == values.ndim + 1 and inner[1:] == values.shape and (channels or inner[0] == 1):
        return np.array(np.broadcast_to(values, inner)).reshape(shape)
    if channels and len(inner) == values.ndim + 1 and inner[:-1] == values.shape:
        return np.array(np.broadcast_to(values[..., None], inner)).reshape(shape)
    return None


def _row(explained: Explained) -> tuple[Floats, Any, list[str] | None]:
    """(values, data, feature names) of one input, shaped as shap's plots of that kind of input take them."""
    view, added = explained.view, explained.scores
    if isinstance(view, ImageView):
        # A part's score is shared by its pixels and channels, so that base value and values still add up.
        shares = np.bincount(view.labels.ravel(), minlength=len(added))[view.labels] * view.pixels.shape[-1]
        return np.repeat((view.spread(added) / shares)[..., None], view.pixels.shape[-1], axis=-1), view.pixels, None
    if isinstance(view, TextView):
        return np.array(added), np.array(_running(view), dtype=object), list(explained.names)
    if isinstance(view, TableView):
        return np.array(added), _row_values(view.values), list(view.columns)
    return np.array(added), np.array(explained.names, dtype=object), list(explained.names)


def _running(view: TextView) -> list[str]:
    """Each part's text with what follows it, so that the parts in a row read as the text; a bag's words once each."""
    starts = sorted(start for spans in view.spans for start, _ in spans)
    ends = dict(zip(starts, [*starts[1:], len(view.text)], strict=True))
    once = [spans[0][0] for spans in view.spans]
    pieces = [view.text[start:ends[start]] for start in once]
    bag = len(starts) > len(once)
    pieces = [f"{view.text[spans[0][0]:spans[0][1]]} " for spans in view.spans] if bag else pieces
    return pieces if bag else [view.text[:starts[0]] + pieces[0], *pieces[1:]]


def _row_values(values: tuple[str, ...]) -> NDArray[Any]:
    """Numbers where all of a row are numbers (colours in shap's plots need them), else what is shown."""
    found = [_number(value) for value in values]
    if all(isinstance(value, float) for value in found):
        return np.array(found, dtype=np.float64)
    return np.array(found, dtype=object)


def _number(value: str) -> float | str:
    try:
        return float(value.replace("−", "-").replace(",", ""))
    except ValueError:
        return value


def _ragged(rows: list[Any]) -> NDArray[Any]:
    """Rows of different lengths as one array of arrays."""
    out = np.empty(len(rows), dtype=object)
    for i, row in enumerate(rows):
        out[i] = row
    return out


def _shap() -> Any:
    try:
        return importlib.import_module("shap")
    except ImportError as error:
        raise MissingExtra(f"this needs shap, which could not be imported ({error}); install it with: "
                           "pip install shap") from error
