"""What was set up in Python, as plain data: what makes a run this run and no other."""

from __future__ import annotations

import dis
import hashlib
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass
from functools import cached_property, partial
from pathlib import Path
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from whytrust.backends import boosters
from whytrust.checked import CheckedModel

PLAIN = str | int | float | bool | None
LONG = 500
"""Letters of a setting that a run's manifest has room for."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_MAKING = ("__init__", "__new__", "__post_init__", "__setstate__")
_WRITING = {"append", "add", "extend", "insert", "update", "setdefault", "pop", "popitem", "remove", "discard", "clear"}
_INSTALLED = ("site-packages", "dist-packages")


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
            return (f"{type(value).__name__}({', '.join(f'{name}={told(one, inside)!r}' for name, one in own.items())})"
                    f"{_done_by(type(value), inside)}")
    shown = " ".join(_ADDRESS.sub("", repr(value)).split())
    if not isinstance(value, type) and hasattr(value, "get_params"):  # scikit-learn leaves out what is long
        return shown + _held(sorted(value.get_params(deep=False).items()), inside, (list, tuple, Mapping))
    done = "" if isinstance(value, type) else _done_by(type(value), inside)
    if _ADDRESS.search(repr(value)) and (hasattr(value, "__dict__") or hasattr(value, "__slots__")):
        if done:
            return shown + _kept(value, inside) + done
        public = [(name, one) for name, one in _attributes(value).items() if not name.startswith("_")]
        return shown + _held(sorted(public), inside)
    return shown + done


def _attributes(value: Any) -> dict[str, Any]:
    """What an object holds, by name, in its dictionary or in slots."""
    slots = [f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") else name for kind in type(value).__mro__
             for given in [vars(kind).get("__slots__", ())] for name in ([given] if isinstance(given, str) else given)
             if not name.endswith("__")]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})


def homemade(kind: type) -> bool:
    """Is this a class of the user's own, of no package that is installed? Its name then does not say what it does."""
    name = kind.__module__
    module = sys.modules.get(name)
    if name.partition(".")[0] in ("builtins", "whytrust"):
        return False
    if module is None or name == "__main__":  # whatever that is in a worker
        return True
    path = Path(getattr(module, "__file__", None) or sysconfig.get_path("stdlib"))
    return not set(_INSTALLED) & set(path.parts) and not path.is_relative_to(sysconfig.get_path("stdlib"))


def _done_by(kind: type, inside: tuple[Any, ...]) -> str:
    """A hash of the code of a user's own class and of its bases, and of the plain values that they hold; else nothing."""
    found: list[Any] = []
    for one in (base for base in kind.__mro__ if homemade(base)):
        for name, member in sorted(vars(one).items()):
            functions = _functions(member)
            found += [(name, _hash(_bytes(each.__code__)) + _held(_around(each), inside)) for each in functions]
            simple = isinstance(member, PLAIN | tuple | np.ndarray) or (is_dataclass(member) and not isinstance(member, type))
            if simple and not name.startswith("__"):
                found.append((name, told(member, inside)))
    return f", code {_hash(str(found).encode())}" if found else ""


def _functions(member: Any) -> list[Any]:
    """The functions of a member of a class: methods of every kind, and what a property does."""
    names = ("fget", "fset") if isinstance(member, property) else ("func",) if isinstance(member, cached_property) else (
        ("__func__",) if isinstance(member, staticmethod | classmethod) else ())
    each = [getattr(member, name) for name in names] if names else [member]
    return [one for one in each if getattr(one, "__code__", None) is not None]


def _kept(value: Any, inside: tuple[Any, ...]) -> str:
    """A hash of what an object of the user's own class holds, but for what its methods write down while a run goes on.

    That is: plain values that they set (counters, times), what a property keeps, and, where they write into containers, all of
    those.
    """
    members = [(name, member) for one in type(value).__mro__ if homemade(one) for name, member in vars(one).items()]
    written, scratch = set[str](), False
    for code in (code for name, member in members if name not in _MAKING for each in _functions(member)
                 for code in _codes(each.__code__)):
        for step in dis.get_instructions(code):
            written |= {str(step.argval)} if step.opname == "STORE_ATTR" else set()
            scratch |= step.opname in ("STORE_SUBSCR", "DELETE_SUBSCR") or step.argval in _WRITING
    lazy = {name for name, member in members if isinstance(member, cached_property)}
    held = [(name, one) for name, one in sorted(_attributes(value).items())
            if name not in lazy and not (name in written and isinstance(one, PLAIN))]
    return _held(held, inside) if scratch else _held(held, inside, (list, tuple, dict, set))


def _codes(code: CodeType) -> list[CodeType]:
    """The code of a function, and of the functions in it."""
    return [code, *(inner for one in code.co_consts if isinstance(one, CodeType) for inner in _codes(one))]


def _content(value: Any) -> bytes:
    """What is in an array, or in a table and the names of its columns."""
    array, columns = np.asarray(value), str(list(getattr(value, "columns", ()))).encode()
    return columns + (str(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes())


def code_of(*models: CheckedModel) -> dict[str, str]:
    """What models are, beside what they say of some inputs: the code of functions, what nets and estimators have learnt, and
    which classes and threshold their scores are read by.

    Two trees, or two nets that are sure of themselves, often say the same of a few inputs.
    """
    plain = [model for model in models if not type(model.function).__module__.startswith("whytrust.")]
    found = {f"the code of {model.name}": _hash(str([told(model.function), *_learnt_within(model.function)]).encode())
             for model in plain}
    learnt = {f"the weights of {model.name}": _learnt(model.function) for model in models}
    read = {f"the classes and the threshold of {model.name}": _hash(
        str((model.classes, model.threshold and float(model.threshold))).encode()) for model in models}
    return found | read | {name: digest for name, digest in learnt.items() if digest is not None}


def code_in(module: ModuleType) -> str:
    """A hash of what a module of Python does; the name of any other."""
    path = Path(getattr(module, "__file__", None) or "")
    if path.suffix != ".py":
        return module.__name__
    return _hash(_bytes(compile(path.read_bytes(), str(path), "exec", dont_inherit=True)))


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


def _learnt_within(function: Any) -> list[str]:
    """Hashes of the weights of nets and estimators that a function or an object of the user's own uses."""
    owner = getattr(function, "__self__", None)
    inner = getattr(function, "__func__", function)
    if not hasattr(inner, "__code__"):
        inner = next((vars(one)["__call__"] for one in type(inner).__mro__ if "__call__" in vars(one)), None)
    code, names = getattr(inner, "__code__", None), getattr(inner, "__globals__", {})
    held = [owner, *getattr(function, "args", ()), *getattr(function, "keywords", {}).values()]
    held += [one for holder in (owner, function) if holder is not None and homemade(type(holder))
             for _, one in sorted(_attributes(holder).items())] if not isinstance(function, partial) else []
    if code is not None:
        held += _around(inner) + [names[name] for name in sorted(set(code.co_names)) if name in names]
    found = []
    for one in held:
        if hasattr(one, "state_dict"):
            found.append(_learnt(SimpleNamespace(module=one)))
        elif not isinstance(one, type) and (boosters.accepts(one) or hasattr(one, "get_params")):
            found.append(_learnt(SimpleNamespace(estimator=one)))
    return [digest for digest in found if digest is not None]


def _learnt(function: Any) -> str | None:
    """A hash of the weights of a torch net, a fitted scikit-learn estimator, a booster or an ONNX graph; else None."""
    digest = hashlib.blake2b(digest_size=8)
    net = next((one for name in ("module", "model") if hasattr(one := getattr(function, name, None), "state_dict")), None)
    graph, estimator = getattr(function, "origin", None), getattr(function, "estimator", getattr(function, "booster", None))
    if net is not None:
        for name, tensor in net.state_dict().items():
            if hasattr(tensor, "detach"):
                plain = tensor.detach().cpu()
                _weigh([name, str(plain.dtype), (plain.float() if plain.is_floating_point() else plain).numpy()], digest.update)
    elif isinstance(graph, str | bytes):
        digest.update(graph if isinstance(graph, bytes) else Path(graph).read_bytes())
    elif boosters.accepts(estimator) or hasattr(estimator, "get_params"):
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
    if boosters.accepts(value):
        return [boosters.content(value)]
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
    return f"{function.__module__}.{function.__qualname__} {_hash(_bytes(function.__code__))}{_held(_around(function), inside)}"


def _around(function: Any) -> list[Any]:
    """The defaults of a function, and the variables around it."""
    held = [*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())]
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # a variable that has no value yet
            held.append("empty")
    return held


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
