"""What was set up in Python, as plain data: what makes a run this run and no other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from pathlib import Path
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
    """What models are, beside what they say of some inputs: the code of functions, and what nets and estimators have learnt.

    Two trees, or two nets that are sure of themselves, often say the same of a few inputs.
    """
    plain = [model for model in models if hasattr(model.function, "__code__")]
    found = {f"the code of {model.name}": _hash(str(told(model.function)).encode()) for model in plain}
    learnt = {f"the weights of {model.name}": _learnt(model.function) for model in models}
    return found | {name: digest for name, digest in learnt.items() if digest is not None}


def saved_told(adversaries: Any) -> dict[str, str]:
    """Hashes of adversaries that were saved, and of a target for each input, where there are such."""
    given = {"adversaries": getattr(adversaries, "changed", None), "targets": getattr(adversaries, "targets", None)}
    return {name: _hash(str([told(one) for one in each]).encode()) for name, each in given.items()
            if isinstance(each, list)}


def scores_told(model: CheckedModel, batches: Iterable[Any]) -> str:
    """A hash of what a model says of some batches of one input, to three digits; what it does not take is left out."""
    said = []
    for batch in batches:
        try:
            scores = model(batch)[0]
        except (ValueError, TypeError):  # it is recorded as failed when its turn comes
            continue
        said.append(" ".join(f"{score:.2e}" for score in scores[:64]))
    return _hash("\n".join(said).encode())


def _learnt(function: Any) -> str | None:
    """A hash of the weights of a torch net, of a fitted scikit-learn estimator or of an ONNX graph; None for other models."""
    digest = hashlib.blake2b(digest_size=8)
    net = next((one for name in ("module", "model") if hasattr(one := getattr(function, name, None), "state_dict")), None)
    graph, estimator = getattr(function, "origin", None), getattr(function, "estimator", None)
    if net is not None:
        for name, tensor in net.state_dict().items():
            if hasattr(tensor, "detach"):
                plain = tensor.detach().cpu()
                _weigh([name, str(plain.dtype), (plain.float() if plain.is_floating_point() else plain).numpy()], digest.update)
    elif isinstance(graph, str | bytes):
        digest.update(graph if isinstance(graph, bytes) else Path(graph).read_bytes())
    elif estimator is not None and hasattr(estimator, "get_params"):
        _weigh(estimator, digest.update)
    else:
        return None
    return digest.hexdigest()


def _weigh(value: Any, update: Callable[[bytes], None], within: tuple[Any, ...] = ()) -> None:
    """Give the content of what an estimator holds to a hash: arrays, numbers, texts, and objects by what they hold."""
    update(type(value).__name__.encode())
    if isinstance(value, PLAIN | bytes | np.generic):
        update(repr(value).encode())
    elif any(one is value for one in within):
        return
    elif isinstance(value, np.ndarray) and value.dtype.names:  # what lies between the fields of a tree's nodes is arbitrary
        for name in value.dtype.names:
            _weigh(value[name], update)
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        update(f"{value.dtype} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    else:
        for one in _members(value):
            _weigh(one, update, (*within, value))


def _members(value: Any) -> list[Any]:
    """What a container or an object holds, in a fixed order; of an object of another library nothing."""
    if isinstance(value, np.ndarray | list | tuple):
        return list(value.ravel() if isinstance(value, np.ndarray) else value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, Mapping):
        return [one for key in sorted(value, key=repr) for one in (key, value[key])]
    if getattr(value, "__code__", None) is not None:
        return [told(value)]
    if hasattr(value, "best_estimator_"):  # a search also holds how long it took
        return [value.best_estimator_]
    known = type(value).__module__.partition(".")[0] in ("sklearn", "scipy") or hasattr(value, "get_params")
    if isinstance(value, type | ModuleType) or not known:
        return []
    if not hasattr(value, "__dict__"):
        return [value.__getstate__()]  # trees and their like, written in C
    return [one for name in sorted(vars(value)) for one in (name, vars(value)[name])]


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
