"""Explainers that others wrote, as explainers of ours: captum, shap, lime, functions of (model, inputs, targets), arrays."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any

import numpy as np

from whytrust.explainers.foreign.arrays import Function, Given, Results
from whytrust.explainers.foreign.captum import Captum
from whytrust.explainers.foreign.lime import LimePackage, LimeResult
from whytrust.explainers.foreign.shap import Shap, ShapResult
from whytrust.explainers.laying import POOLINGS
from whytrust.explanation import Explanation
from whytrust.question import Question


def adapt(method: Any, options: dict[str, Any]) -> Callable[[Question, np.random.Generator], Explanation] | None:
    """Someone else's explainer, values or explanation as an explainer of ours; None for what is no such thing.

    `options` go to the foreign object, all but `pooling`: how values become one a part.
    """
    kind = _kind(method)
    if kind is None:
        return None
    own = dict(options)
    pooling = own.pop("pooling", None)
    if pooling not in (None, *POOLINGS):
        raise ValueError(f"pooling must be one of {', '.join(POOLINGS)}, got {pooling!r}")
    if kind in (Given, LimeResult, ShapResult, Results) and own:
        raise TypeError(f"values that are already there take no options but pooling, got {', '.join(own)}")
    if kind is Results:
        return Results(tuple(_kind(result)(result, pooling) for result in method))
    if kind in (Given, LimeResult, ShapResult):
        return kind(method, pooling)  # type: ignore[no-any-return]
    return kind(method, pooling, own)  # type: ignore[no-any-return]


def is_ready_made(method: Any) -> bool:
    """Are these values, or an explanation, of inputs that were explained already?"""
    return _kind(method) in (Given, LimeResult, ShapResult, Results)


def is_explainer(method: Any) -> bool:
    """Is this someone else's explainer, which can explain anew?"""
    return not isinstance(method, list | tuple) and _kind(method) in (Captum, Shap, LimePackage, Function)


def _kind(method: Any) -> Any:
    """Which of the adapters has it, by what it can do; the libraries are not imported to find out."""
    if hasattr(method, "local_exp"):
        return LimeResult
    if hasattr(method, "base_values") and hasattr(method, "values"):
        return ShapResult
    if isinstance(method, list | tuple):
        if method and all(_kind(one) in (LimeResult, ShapResult) for one in method):
            return Results
        makers = any(isinstance(one, str) or callable(one) or is_explainer(one) for one in method)
        return Given if method and not makers else None
    if isinstance(method, np.ndarray) or (hasattr(method, "detach") and not callable(method)):
        return Given
    if callable(getattr(method, "attribute", None)):
        return Captum
    if isinstance(method, type):
        return None
    shap = sys.modules.get("shap")
    if hasattr(method, "shap_values") or (shap is not None and isinstance(method, shap.Explainer)):
        return Shap
    if callable(getattr(method, "explain_instance", None)):
        return LimePackage
    return Function if callable(method) and not is_dataclass(method) and _takes_targets(method) else None


def _takes_targets(function: Any) -> bool:
    """Three positional parameters without a default, or one named targets; ours take (question, rng)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # builtins do not say
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return sum(p.default is p.empty for p in positional) >= 3 or any(p.name == "targets" for p in parameters)
