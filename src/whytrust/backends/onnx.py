"""ONNX graphs as models: a .onnx file or an onnxruntime session. Nothing but the graph is run.

A graph runs with onnxruntime's own number of threads; with another number sums may round differently in the last digits.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import limits
from whytrust.core import Batch, Floats, need

OPTIONS = ("device", "output_name")
PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
_TYPES = {"float": "f4", "double": "f8", "float16": "f2", "uint8": "u1", "int8": "i1", "uint16": "u2", "int16": "i2",
          "uint32": "u4", "int32": "i4", "uint64": "u8", "int64": "i8", "bool": "?", "string": "O"}
_FLOATS = ("tensor(float)", "tensor(double)", "tensor(float16)")


def accepts(obj: Any) -> bool:
    """Is this the name of a .onnx file, or an onnxruntime session?"""
    if isinstance(obj, str | os.PathLike):
        return str(obj).lower().endswith(".onnx")
    return _is_session(obj)


def adapt(obj: Any, device: str | None = None, output_name: str | None = None) -> tuple[OnnxScores, dict[str, Any]]:
    """The graph as a function; the layout of its images, and its classes' names where its output carries them."""
    if _is_session(obj):
        session, origin, name = obj, _origin(obj), "ONNX session"
        have = session.get_providers()
        if device is not None and PROVIDERS.get(str(device).split(":")[0]) != have[0]:
            raise ValueError(f"device must be where the session runs, {have[0]}, got {device!r}; leave it out")
    else:
        path = Path(obj).absolute()
        if not path.is_file():
            raise ValueError(f"{str(obj)!r} must be a .onnx file, but there is none of that name")
        session, origin, name = _session(str(path), _providers(str(device or "cpu"))), str(path), path.stem
    _check_shapes(session)
    output = _output(session, output_name)
    scores = OnnxScores(session, output.name, origin, source=obj)
    found: dict[str, Any] = {"name": name, "layout": _layout(session)}
    if output.type.startswith("seq(map("):
        found["classes"] = scores.keys()
    return scores, found


@dataclass(frozen=True, eq=False)
class OnnxScores:
    """One output of a graph, whose inputs are given the types and the number of rows that it asks for.

    A graph made for k rows at a time is run in pieces of k, the last filled up with copies that are dropped again.
    """

    session: Any
    output: str
    origin: str | bytes | None = field(default=None, repr=False)  # where a session can be made from again
    source: Any = field(default=None, repr=False)

    @property
    def kind(self) -> str:
        """A few words for a reader."""
        return f"an ONNX graph run by onnxruntime, output {self.output!r}"

    @property
    def takes_floats(self) -> bool:
        """Whether whole numbers of an image become floats as they are."""
        return bool(self.session.get_inputs()[0].type in _FLOATS)

    def __call__(self, batch: Batch) -> Floats:
        """(n, columns), as the graph gives them."""
        inputs = self.session.get_inputs()
        if len(inputs) == 1:
            feed = {inputs[0].name: _converted(batch, inputs[0])}
        else:
            feed = {one.name: _converted(_column(batch, one, inputs), one) for one in inputs}
        return np.concatenate([_table(self._run(piece), self.output)[:rows] for piece, rows in self._pieces(feed, len(batch))])

    def keys(self) -> tuple[str, ...] | None:
        """Class names of an output that is a map for each row, found by asking about zeros; None where that cannot be asked."""
        feed = {}
        for one in self.session.get_inputs():
            shape = [1 if i == 0 and not isinstance(size, int) else size for i, size in enumerate(one.shape)]
            if not all(isinstance(size, int) for size in shape):
                return None
            feed[one.name] = np.full(shape, "", dtype=object) if one.type == "tensor(string)" else np.zeros(shape, _type(one))
        try:
            return tuple(str(key) for key in _keys(self._run(feed)))
        except ValueError:  # a graph may refuse zeros or an empty text; then its columns have no names, in the same order
            return None

    def _run(self, feed: dict[str, NDArray[Any]]) -> Any:
        try:
            return self.session.run([self.output], feed)[0]
        except Exception as error:
            raise ValueError(_line(error)) from error

    def _pieces(self, feed: dict[str, NDArray[Any]], n: int) -> Iterator[tuple[dict[str, NDArray[Any]], int]]:
        """(inputs of as many rows as the graph asks for, how many of them are meant)."""
        fixed = {one.shape[0] for one in self.session.get_inputs() if one.shape and isinstance(one.shape[0], int)}
        size = min(fixed, default=max(n, 1))
        for start in range(0, n, size):
            rows = np.minimum(np.arange(start, start + size), n - 1)
            yield {name: values[rows] for name, values in feed.items()}, min(size, n - start)

    def __reduce__(self) -> tuple[Any, ...]:
        """A session does not pickle; what it was made from does."""
        if self.origin is None:
            raise TypeError("this onnxruntime session does not say what it was made from and so cannot be pickled; "
                            "pass the path of its .onnx file to wt.model instead")
        return _reopened, (self.origin, tuple(self.session.get_providers()), self.output)


# --- sessions ---------------------------------------------------------------------------------------------------------


def _is_session(obj: Any) -> bool:
    return any(c.__name__ == "InferenceSession" and c.__module__.split(".")[0] == "onnxruntime" for c in type(obj).__mro__)


def _origin(session: Any) -> str | bytes | None:
    path = getattr(session, "_model_path", None)
    return str(Path(path).absolute()) if path else getattr(session, "_model_bytes", None)


def _session(origin: str | bytes, providers: list[Any]) -> Any:
    runtime = need("onnxruntime", "onnx")
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # errors are raised; warnings about a graph's leftovers are for whoever exported it
    try:
        return runtime.InferenceSession(origin, options, providers=providers)
    except Exception as error:
        what = origin if isinstance(origin, str) else "the model"
        raise ValueError(f"{what} must be an ONNX model that onnxruntime {runtime.__version__} can run: "
                         f"{_line(error)}") from error


def _reopened(origin: str | bytes, providers: tuple[str, ...], output: str) -> OnnxScores:
    session = _session(origin, list(providers))
    return OnnxScores(session, output, origin, source=origin if isinstance(origin, str) else session)


def _providers(device: str) -> list[Any]:
    runtime = need("onnxruntime", "onnx")
    kind, _, number = device.partition(":")
    available = runtime.get_available_providers()
    here = [name for name, provider in PROVIDERS.items() if provider in available]
    if kind not in here or not (number.isdigit() or not number):
        raise ValueError(f"device must be one that this onnxruntime can use ({', '.join(here)}), got {device!r}")
    return [(PROVIDERS[kind], {"device_id": number}) if number else PROVIDERS[kind]]


def _line(error: Exception) -> str:
    """What onnxruntime says, without its own source's names."""
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", " ".join(str(error).split()))
    return re.sub(r"/\S*onnxruntime\S*:\d+ .*?\) (?=[A-Z])", "", text)[:300]


def _check_shapes(session: Any) -> None:
    """A graph may ask for anything, and what it asks for is made: rows to fill it up, and zeros to ask for its classes."""
    if not session.get_inputs():
        raise ValueError("the graph must have an input, and has none")
    for one in session.get_inputs():
        sizes = [size for size in one.shape if isinstance(size, int)]
        if min(sizes, default=1) < 1 or math.prod(sizes) > limits.FEED:
            raise ValueError(f"the graph's input {one.name!r} must have a shape of sizes from 1 on and at most {limits.FEED:,} "
                             f"numbers, got {one.shape!s:.60}")


# --- inputs -----------------------------------------------------------------------------------------------------------


def _layout(session: Any) -> str:
    shape = session.get_inputs()[0].shape
    return "NCHW" if len(shape) == 4 and shape[1] in (1, 3, 4) else "NHWC"


def _type(one: Any) -> np.dtype[Any]:
    name = one.type.removeprefix("tensor(").removesuffix(")")
    if name not in _TYPES:
        raise ValueError(f"the graph's input {one.name!r} must be a tensor of numbers or strings, got {one.type}")
    return np.dtype(_TYPES[name])


def _column(batch: Batch, one: Any, inputs: Any) -> Any:
    """What a graph with one input a column is fed: the table's column of that name."""
    names = [each.name for each in inputs]
    some = f"{', '.join(names[:6])}{', …' if len(names) > 6 else ''}"
    if not hasattr(batch, "columns"):
        raise TypeError(f"the graph has {len(names)} inputs ({some}) and takes "
                        f"them from a DataFrame's columns of these names, got {type(batch).__name__}")
    if one.name not in batch.columns:
        raise ValueError(f"the graph needs a column {one.name!r}, got {', '.join(map(str, batch.columns))}")
    return batch[one.name]


def _converted(batch: Batch, one: Any) -> NDArray[Any]:
    """The batch as the graph's input asks for it, or one clear error."""
    wanted, kind = one.shape, _type(one)
    values = np.asarray(batch.to_numpy() if hasattr(batch, "to_numpy") else batch)
    if values.ndim == 1 and len(wanted) == 2:
        values = values[:, None]  # one column: a list of texts, a column of a table
    if wanted and (values.ndim != len(wanted) or any(
            isinstance(size, int) and size != got for size, got in zip(wanted[1:], values.shape[1:], strict=False))):
        expected = ", ".join(["n", *(str(size) if isinstance(size, int) else "any" for size in wanted[1:])])
        raise ValueError(f"the graph's input {one.name!r} must have shape ({expected}), got {values.shape}")
    if kind.kind == "O":
        return np.array([str(v) for v in values.ravel()], dtype=object).reshape(values.shape)
    if kind.kind in "iu" and values.dtype.kind in "fO":
        values = _whole(np.asarray(values, dtype=np.float64), kind, one.name)
    try:
        return np.ascontiguousarray(values, dtype=kind)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the graph's input {one.name!r} takes {one.type}, got {values.dtype} ({error})") from error


def _whole(values: Floats, kind: np.dtype[Any], name: str) -> Floats:
    """Bytes of a picture may be rounded; any other whole number that is none is somebody's mistake."""
    rounded = np.rint(values)
    limits = np.iinfo(kind)
    if not (np.isfinite(values).all() and rounded.min(initial=0) >= limits.min and rounded.max(initial=0) <= limits.max):
        raise ValueError(f"the graph's input {name!r} takes whole numbers from {limits.min} to {limits.max}, got values from "
                         f"{values.min():.4g} to {values.max():.4g}")
    if kind != np.uint8 and not np.array_equal(rounded, values):
        raise ValueError(f"the graph's input {name!r} takes whole numbers, got {values[rounded != values][0]:.6g}")
    return np.asarray(rounded)


# --- outputs ----------------------------------------------------------------------------------------------------------


def _output(session: Any, asked: str | None) -> Any:
    """The output that holds the scores: the one asked for, a map of probabilities, one called so, or the only one of floats."""
    outputs = session.get_outputs()
    listed = ", ".join(f"{one.name} ({one.type})" for one in outputs)
    scores = [one for one in outputs if one.type.startswith("seq(map(") or (one.type in _FLOATS and len(one.shape) <= 2)]
    if asked is not None:
        if asked not in [one.name for one in scores]:
            raise ValueError(f"output_name must be an output with scores, one row for each input: {listed}; got {asked!r}")
        return next(one for one in scores if one.name == asked)
    if not scores:
        raise ValueError(f"the graph must have an output with scores, one row for each input, and has {listed}; "
                         "export the model with its probabilities")
    maps = [one for one in scores if one.type.startswith("seq(map(")]
    named = [one for one in scores if "prob" in one.name.lower()]
    for few in (maps, named, scores):
        if len(few) == 1:
            return few[0]
    raise ValueError(f"the graph has several outputs that could be scores: {listed}; "
                     "say which with output_name='…'")


def _table(raw: Any, output: str) -> Floats:
    """A row of numbers for each input, from an array or from a list of maps."""
    if isinstance(raw, list):
        keys = _keys(raw)
        return np.array([[row[key] for key in keys] for row in raw], dtype=np.float64)
    values = np.asarray(raw, dtype=np.float64)
    if values.ndim not in (1, 2):
        raise ValueError(f"the graph's output {output!r} must have one row of scores for each input, got shape {values.shape}")
    return values


def _keys(rows: Any) -> list[Any]:
    keys = sorted(rows[0])
    if any(sorted(row) != keys for row in rows):
        raise ValueError("the graph must give every input a score for the same classes")
    return keys
