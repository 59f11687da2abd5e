"""From what a user calls explainers (names, objects, options) to explainers with labels of their own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from whytrust import api, loading
from whytrust import inputs as reading
from whytrust.explainers import foreign
from whytrust.studies.contents import Refilled
from whytrust.studies.described import code_in, words


def named(given: Any, background: Any, always: Collection[str], what: str) -> dict[str, Any]:
    """{label: explainer} of names, objects, {label: name, object or {method, options}}; those that `what` has anyway go."""
    made: dict[str, Any] = {}
    for label, one in _labelled(given).items():
        if label in always and (isinstance(one, str) or one == {}):
            continue
        if label in always:
            raise ValueError(f"{label!r} is a baseline that {what} always has; give the explainer another name")
        made[label] = _taught(_made(label, one, what), background)
    if not made:
        raise ValueError(f"{what} needs at least one explainer beside the baselines, which it always has, got none")
    return made


def _labelled(given: Any) -> dict[str, Any]:
    """{label: what was said of the explainer}"""
    if isinstance(given, str) or callable(given):
        given = [given]
    if not isinstance(given, Iterable):
        raise TypeError(f"explainers must be names or explainers in a list, or {{label: explainer}}, got {given!r:.60}")
    found: dict[str, Any] = {}
    for name, one in given.items() if isinstance(given, Mapping) else [(label_of(one), one) for one in given]:
        if str(name) in found:
            raise ValueError(f"explainers must have different names, got {str(name)!r} twice; name them: {{'a': …, 'b': …}}")
        found[str(name)] = one
    return found


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


# --- explainers that a file holds -------------------------------------------------------------------------------------


def located(given: Any, beside: Callable[[str], str]) -> Any:
    """Explainers as a spec has them, where a file of file.py:attribute lies `beside` it; others as they are."""
    said = _labelled(given)
    for label, one in said.items():
        place, colon, attribute = _method(label, one).rpartition(":")
        if place.endswith(".py"):
            said[label] = {**(one if isinstance(one, Mapping) else {}), "method": f"{beside(place)}{colon}{attribute}"}
    return given if all(one is two for one, two in zip(said.values(), _labelled(given).values(), strict=True)) else said


def from_files(given: Any, modules: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """(explainers with what file.py:attribute stands for in place of that, what is known of the code of each such)."""
    said, code = _labelled(given), dict[str, str]()
    for label, one in said.items():
        method = _method(label, one)
        if ":" not in method and not method.endswith(".py"):
            continue
        options = {key: value for key, value in one.items() if key != "method"} if isinstance(one, Mapping) else {}
        fill = {"fill": options.pop("fill")} if "fill" in options else {}
        made = _of_code(method, loading.attribute(method, loading.EXPLAINER, modules), options)
        said[label] = {**made, **fill}
        code[label] = f"{words(made['method'])} in {code_in(modules[method.rpartition(':')[0]])}"
    return (said, code) if code else (given, {})


def _method(label: str, one: Any) -> str:
    """The name of an explainer, by which it is looked up; of objects none."""
    method = one.get("method", label) if isinstance(one, Mapping) else one
    return method if isinstance(method, str) else ""


def _of_code(method: str, found: Any, options: dict[str, Any]) -> dict[str, Any]:
    """What a file holds, and the options that it takes later: a class, or a function that makes explainers, takes them now."""
    if not isinstance(found, type) and (not hasattr(found, "__code__") or foreign.is_explainer(found)):
        return {"method": found, **options}
    asked = inspect.signature(found)
    if not isinstance(found, type) and not options and _refused(asked, None, None) is None:  # (question, rng)
        return {"method": found}
    if (why := _refused(asked, **options)) is not None:
        raise TypeError(f"{method} must be a function (question, rng) -> Explanation, or a class or a function that makes an "
                        f"explainer of the options in its table ({', '.join(options) or 'none'}), got "
                        f"{method.rpartition(':')[2]}{asked} ({why})")
    return {"method": found(**options)}


def _refused(asked: inspect.Signature, *arguments: None, **options: Any) -> str | None:
    """Why a function cannot be called so; None where it can."""
    try:
        asked.bind(*arguments, **options)
    except TypeError as error:
        return str(error)
    return None
