"""What was set up in Python, as plain data: what makes a run this run and no other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from whytrust.checked import CheckedModel

PLAIN = str | int | float | bool | None
LONG = 500
"""Letters of a setting that a run's manifest has room for."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def described(model: CheckedModel, explainers: Mapping[str, Any], attack: Any, of_parts: dict[str, Any],
              settings: dict[str, Any]) -> dict[str, Any]:
    """What is known of the model, the explainers and the attack, and every setting.

    The same call gives the same data in another process: objects are told by what they are, not by where they lie.
    """
    own = {"name": model.name, "threshold": model.threshold, "output": model.output, "layout": model.layout,
           "classes": None if model.classes is None else list(model.classes), "preprocess": told(model.preprocess)}
    return {"model": own, "explainers": {label: told(one) for label, one in explainers.items()}, "attack": _attack(attack),
            **{name: told(value) for name, value in (settings | of_parts).items()}}


def told(value: Any, within: tuple[Any, ...] = ()) -> Any:
    """Plain values as they are, arrays and tables by a hash, functions by their code and what they hold, objects by repr.

    The same the next time, in another process too. `within` is what this value was found in, which may hold itself.
    """
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, list | tuple) and all(isinstance(one, PLAIN) for one in value):
        return list(value)
    if any(one is value for one in within):
        return type(value).__name__
    if isinstance(value, np.ndarray) or hasattr(value, "iloc"):
        array = np.asarray(value)
        content = str(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes()
        return f"{type(value).__name__} {np.shape(value)} {_hash(content)}"
    inside = (*within, value)
    if isinstance(value, partial):
        return f"partial of {told(value.func, inside)}{_held([*value.args, *sorted(value.keywords.items())], inside)}"
    if getattr(value, "__code__", None) is not None:
        return _function(value, inside)
    if is_dataclass(value) and not isinstance(value, type):
        own = {one.name: getattr(value, one.name) for one in fields(value) if one.repr}
        if not all(isinstance(one, PLAIN) for one in own.values()):
            return f"{type(value).__name__}({', '.join(f'{name}={told(one, inside)!r}' for name, one in own.items())})"
    inner = getattr(value, "function", None) or getattr(value, "method", None)
    more = f" of {told(inner, inside)}" if callable(inner) and getattr(inner, "__code__", None) is not None else ""
    return _ADDRESS.sub("", repr(value)) + more


def words(value: Any) -> str:
    """The same in a line; what is long, by a hash."""
    found = str(told(value))
    return found if len(found) < LONG else f"{type(value).__name__} {_hash(found.encode())}"


def _function(function: Any, inside: tuple[Any, ...]) -> str:
    """Its name, its code, and what it holds of the place it was made at: defaults, and variables around it."""
    held = [*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())]
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # a variable that has no value yet
            held.append("empty")
    return f"{function.__module__}.{function.__qualname__} {_hash(_bytes(function.__code__))}{_held(held, inside)}"


def _held(values: Sequence[Any], inside: tuple[Any, ...]) -> str:
    """A hash of these; of lists, dicts and sets the kind alone, for functions write into them while a run goes on."""
    known = [type(one).__name__ if isinstance(one, list | dict | set | ModuleType) else told(one, inside) for one in values]
    return f" with {_hash(str(known).encode())}" if known else ""


def _attack(attack: Any) -> Any:
    if is_dataclass(attack) and not isinstance(attack, type):
        return {"method": type(attack).__name__, **{name: told(value) for name, value in asdict(attack).items()}}
    return {key: told(value) for key, value in attack.items()} if isinstance(attack, Mapping) else told(attack)


def _bytes(code: CodeType) -> bytes:
    """What a function does, without where its code lies."""
    constants = [_bytes(one) if isinstance(one, CodeType) else repr(one).encode() for one in code.co_consts]
    return code.co_code + b"".join(constants) + " ".join(code.co_names).encode()


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=6).hexdigest()
