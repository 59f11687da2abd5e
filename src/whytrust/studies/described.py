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
    """Plain values as they are, arrays and tables by a hash, functions by their code and what they hold, objects by theirs.

    The same the next time, in another process too. `within` is what this value was found in, which may hold itself.
    """
    if isinstance(value, PLAIN):
        return value
    if any(one is value for one in within):
        return type(value).__name__
    inside = (*within, value)
    if isinstance(value, list | tuple):
        return [told(one, inside) for one in value]
    if isinstance(value, set | frozenset):
        return sorted((told(one, inside) for one in value), key=str)
    if isinstance(value, Mapping):
        return {str(key): told(one, inside) for key, one in value.items()}
    if isinstance(value, np.ndarray) or hasattr(value, "iloc"):
        return f"{type(value).__name__} {np.shape(value)} {_hash(_content(value))}"
    return _object(value, inside)


def _object(value: Any, inside: tuple[Any, ...]) -> str:
    """Something with a type of its own; what it is made of is hashed where its repr does not say all of it."""
    if isinstance(value, partial):
        return f"partial of {told(value.func, inside)}{_held([*value.args, *sorted(value.keywords.items())], inside)}"
    if getattr(value, "__self__", None) is not None and getattr(value, "__func__", None) is not None:
        return f"{told(value.__func__, inside)} of {told(value.__self__, inside)}"
    if getattr(value, "__code__", None) is not None:
        return _function(value, inside)
    if is_dataclass(value) and not isinstance(value, type):
        own = {one.name: getattr(value, one.name) for one in fields(value) if one.repr}
        if not all(isinstance(one, PLAIN) for one in own.values()):
            return f"{type(value).__name__}({', '.join(f'{name}={told(one, inside)!r}' for name, one in own.items())})"
    shown = " ".join(_ADDRESS.sub("", repr(value)).split())
    if not isinstance(value, type) and hasattr(value, "get_params"):  # scikit-learn leaves out what is long
        return shown + _held(sorted(value.get_params(deep=False).items()), inside, (list, tuple, Mapping))
    if _ADDRESS.search(repr(value)) and hasattr(value, "__dict__"):
        return shown + _held(sorted((name, one) for name, one in vars(value).items() if not name.startswith("_")), inside)
    return shown


def _content(value: Any) -> bytes:
    """What is in an array, or in a table and the names of its columns."""
    array, columns = np.asarray(value), str(list(getattr(value, "columns", ()))).encode()
    return columns + (str(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes())


def code_of(*models: CheckedModel) -> dict[str, str]:
    """What functions that are asked as models do, by their code; other models are told by what they say of some inputs."""
    plain = [model for model in models if hasattr(model.function, "__code__")]
    return {f"the code of {model.name}": _hash(str(told(model.function)).encode()) for model in plain}


def words(value: Any) -> Any:
    """The same, what is not plain in a line; what is long, by a hash."""
    if isinstance(value, PLAIN):
        return value
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


def _held(values: Sequence[Any], inside: tuple[Any, ...], counted: tuple[type, ...] = (tuple,)) -> str:
    """A hash of these; of lists, dicts and sets the kind alone, for functions and objects write into them while a run goes on.

    Settings of an estimator are not written into: there, such kinds are `counted`.
    """
    def one(value: Any) -> Any:
        if isinstance(value, ModuleType):
            return value.__name__
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str):  # a name and its value
            return [value[0], one(value[1])]
        scratch = isinstance(value, list | dict | set) and not isinstance(value, counted)
        return type(value).__name__ if scratch else told(value, inside)

    return f" with {_hash(str([one(value) for value in values]).encode())}" if values else ""


def _attack(attack: Any) -> Any:
    if is_dataclass(attack) and not isinstance(attack, type):
        return {"method": type(attack).__name__, **{name: told(value) for name, value in asdict(attack).items()}}
    return {key: told(value) for key, value in attack.items()} if isinstance(attack, Mapping) else told(attack)


def _bytes(code: CodeType) -> bytes:
    """What a function does, without where its code lies."""
    def constant(one: Any) -> bytes:
        if isinstance(one, CodeType):
            return _bytes(one)
        if isinstance(one, frozenset):  # whose order is another one in every process
            return b"".join(sorted(map(constant, one)))
        return b"".join(map(constant, one)) if isinstance(one, tuple) else repr(one).encode()

    return code.co_code + b"".join(map(constant, code.co_consts)) + " ".join(code.co_names).encode()


def _hash(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=6).hexdigest()
