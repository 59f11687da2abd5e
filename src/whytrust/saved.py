"""What an explanation's JSON says, checked: it may come from anyone's file, and what is drawn of it rests on every field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from whytrust import limits, views
from whytrust.core import SENSES, Floats

_LISTS = ("names", "undecided", "notes")
_ARRAYS = ("scores", "standard_errors", "origin", "selected", "slopes")
_TEXTS = ("target_name", "method", "model", "caution", "source")
_NUMBERS = ("prediction", "intercept", "local_prediction", "fidelity", "fidelity_fresh")
_WHOLE = ("target", "seed", "calls")
_MAY_LACK = ("local_prediction", "fidelity", "fidelity_fresh", "seed", "rules", "predicted")


def fields(data: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an explanation, by name, of those that are known; arrays as arrays, and whatever is wrong as ValueError."""
    values = {name: value for name, value in data.items() if name in known}
    for name in _LISTS:
        values[name] = tuple(values.get(name) or ())
    parts = len(values["names"])
    if parts > limits.PARTS:
        raise ValueError(f"an explanation must have at most {limits.PARTS:,} parts, got {parts:,}; cut the input more coarsely")
    for name in _ARRAYS:
        dtype = bool if name == "selected" else np.float64
        values[name] = None if values.get(name) is None else np.array(values[name], dtype=dtype)
        if values[name] is not None and (values[name].shape != (parts,) or not np.isfinite(values[name]).all()):
            raise ValueError(f"{parts} parts must have as many finite scores, got {values[name].shape}")
    _check_plain(values)
    if data.get("format", 0) < 2 and values["origin"] is not None:
        _from_slopes(values)
    values["view"] = views.from_json(data["view"])
    views.check(values["view"], parts)
    values["map"] = views.decode(values.get("map"))
    if values["map"] is not None:
        _check_map(values["map"], values["view"])
    return values


def contributions(slopes: Floats, origin: Floats, errors: Floats | None) -> dict[str, Any]:
    """Slopes and their standard errors -> the fields of an explanation whose scores are contributions, slope × origin."""
    origin = np.asarray(origin, dtype=np.float64)
    return {"scores": slopes * origin, "slopes": slopes, "origin": origin,
            "standard_errors": None if errors is None else errors * np.abs(origin)}


def _from_slopes(values: dict[str, Any]) -> None:
    """Explanations of whytrust 0.1 hold slopes as the scores of continuous columns, but for trees, which have contributions."""
    if values.get("rules") is not None:
        values["origin"] = None
        return
    values.update(contributions(values["scores"], values["origin"], values["standard_errors"]), undecided=())
    values["notes"] += ("This explanation was saved by whytrust 0.1 with slopes as scores. The scores here are contributions; "
                        "which of their ranks are undecided is not known.",)


def _check_plain(values: Mapping[str, Any]) -> None:
    for names, what, good in ((_TEXTS, "text", _is_text), ((*_LISTS[:1], *_LISTS[2:]), "texts", _are_texts),
                              (("rules", "predicted"), "text", _is_text), (_NUMBERS, "a finite number", _is_number),
                              (_WHOLE, "a whole number", _is_whole)):
        for name in names:
            if name in values and not (values[name] is None and name in _MAY_LACK) and not good(values[name]):
                raise ValueError(f"{name} must be {what}, got {values[name]!r:.60}")
    parts = len(values["names"])
    if not all(_is_whole(one) and 0 <= one < parts for one in values["undecided"]):
        raise ValueError(f"undecided must be among the {parts} parts, got {values['undecided']!r:.60}")
    sense = values.get("sense", SENSES[0])
    if not isinstance(values.get("settings", {}), dict) or not isinstance(sense, str) or sense not in SENSES:
        raise ValueError(f"settings must be an object and sense one of {', '.join(SENSES)}, got "
                         f"{type(values.get('settings')).__name__} and {sense!r:.60}")


def _check_map(found: Any, view: Any) -> None:
    places = getattr(getattr(view, "labels", None), "shape", None)
    fits = isinstance(found, np.ndarray) and found.dtype.kind == "f" and found.shape == places
    if not fits or not np.isfinite(found).all():
        raise ValueError(f"a map must be one finite number for each of the view's places, {places}, got "
                         f"{getattr(found, 'shape', type(found).__name__)}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
