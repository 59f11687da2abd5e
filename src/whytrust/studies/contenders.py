"""From what a user calls explainers (names, objects, options) to explainers with labels of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from whytrust import api
from whytrust import inputs as reading
from whytrust.explainers import foreign
from whytrust.studies.contents import Refilled


def named(given: Any, background: Any, always: Collection[str], what: str) -> dict[str, Any]:
    """{label: explainer} of names, objects, {label: name, object or {method, options}}; those that `what` has anyway go."""
    if isinstance(given, str) or callable(given):
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"explainers must be names or explainers in a list, or {{label: explainer}}, got {given!r:.60}")
    pairs = given.items() if isinstance(given, Mapping) else [(label_of(one), one) for one in given]
    made: dict[str, Any] = {}
    for name, one in pairs:
        label = str(name)
        if label in made:
            raise ValueError(f"explainers must have different names, got {label!r} twice; name them: {{'a': …, 'b': …}}")
        if label in always and (isinstance(one, str) or one == {}):
            continue
        if label in always:
            raise ValueError(f"{label!r} is a baseline that {what} always has; give the explainer another name")
        made[label] = _taught(_made(label, one, what), background)
    if not made:
        raise ValueError(f"{what} needs at least one explainer beside the baselines, which it always has, got none")
    return made


def _made(label: str, one: Any, what: str) -> Any:
    part_names = {name for names in reading.OPTIONS.values() for name in names}
    options = dict(one) if isinstance(one, Mapping) else {"method": one}
    method = options.pop("method", label)
    if "fill" in options:  # of this explainer alone
        fill = options.pop("fill")
        return Refilled(_made(label, {**options, "method": method}, what), fill)
    if foreign.is_ready_made(method):
        raise TypeError(f"an explainer of {what} must be able to explain anew, and {label!r} is values that are there "
                        f"already, {type(method).__name__}; pass what makes them, such as f(model, inputs, targets)")
    return api.explainer_of(method, options, part_names)


def _taught(explainer: Any, background: Any) -> Any:
    """The explainer with the training rows of the audit, where it wants training data and has none of its own."""
    if isinstance(explainer, Refilled):
        return replace(explainer, explainer=_taught(explainer.explainer, background))
    return api.with_background(explainer, background)


def label_of(one: Any) -> str:
    """What to call an explainer: its name, or that of its function or class."""
    if isinstance(one, Mapping):
        return str(one.get("method", "explainer"))
    if isinstance(one, str):
        return one
    inner = getattr(getattr(one, "method", None), "name", None) or getattr(one, "name", None)
    return str(inner or getattr(one, "__name__", type(one).__name__))
