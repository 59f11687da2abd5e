"""An audit that was set up in Python, as plain data: what makes it this audit and no other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from types import CodeType
from typing import Any

import numpy as np

from whytrust.checked import CheckedModel

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


def told(value: Any) -> Any:
    """Plain values as they are, arrays and tables by a hash, functions by their code, objects by their repr."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if isinstance(value, list | tuple) and all(isinstance(one, str | int | float | bool | None) for one in value):
        return list(value)
    if isinstance(value, np.ndarray) or hasattr(value, "iloc"):
        array = np.asarray(value)
        content = str(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes()
        return f"{type(value).__name__} {np.shape(value)} {_hash(content)}"
    code = getattr(value, "__code__", None)
    if code is not None:
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')} {_hash(_bytes(code))}"
    inner = getattr(value, "function", None) or getattr(value, "method", None)
    more = f" of {told(inner)}" if callable(inner) and getattr(inner, "__code__", None) is not None else ""
    return _ADDRESS.sub("", repr(value)) + more


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
