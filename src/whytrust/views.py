"""What a reader is shown of an input: plain data, one small class a domain, that survives JSON.

A view knows the input as a person sees or hears it and where each part lies in it; `pictures` draws scores over it.
"""

from __future__ import annotations

import base64
import math
import re
import zlib
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from whytrust import limits
from whytrust.core import Floats, View


@dataclass(frozen=True)
class ImageView:
    """An image as 8-bit RGB, and the part that each pixel belongs to."""

    kind: ClassVar[str] = "image"
    pixels: NDArray[np.uint8]  # (H, W, 3)
    labels: NDArray[np.int32]  # (H, W), part of each pixel

    def spread(self, scores: Floats) -> Floats:
        """(H, W): each pixel has its part's score."""
        return np.asarray(np.asarray(scores)[self.labels])

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return _fields(self)


@dataclass(frozen=True)
class TextView:
    """A text, and the character spans of each part (several where a word is one part wherever it stands).

    `seen` is how many characters the model took in, where it did not take in all of them.
    """

    kind: ClassVar[str] = "text"
    text: str
    spans: tuple[tuple[tuple[int, int], ...], ...]  # spans[part] = ((start, end), …)
    seen: int | None = None

    def spread(self, scores: Floats) -> Floats:
        """(characters,): each character has its part's score, 0 between parts."""
        out = np.zeros(len(self.text))
        for score, spans in zip(np.asarray(scores), self.spans, strict=True):
            for start, end in spans:
                out[start:end] = score
        return out

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return _fields(self)


@dataclass(frozen=True)
class SoundView:
    """A spectrogram (frames × bands, larger is louder), the part of each cell, and the sound itself where there is one.

    Bands are mel-spaced where the rate of a waveform is known. `wave_labels` gives the part of each sample of a waveform that
    is cut in time alone.
    """

    kind: ClassVar[str] = "sound"
    spectrogram: NDArray[np.float32]  # (T, F)
    labels: NDArray[np.int32]  # (T, F)
    seconds: float | None  # length; None where the input came as bare frames
    top_hz: float | None  # frequency of the highest band; None where unknown
    wave: NDArray[np.float32] | None
    rate: int | None
    wave_labels: NDArray[np.int32] | None

    def spread(self, scores: Floats) -> Floats:
        """Shaped like the waveform where it was cut in time, else (T, F)."""
        labels = self.labels if self.wave_labels is None else self.wave_labels
        return np.asarray(np.asarray(scores)[labels])

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return _fields(self)


@dataclass(frozen=True)
class TableView:
    """One row: each column's name and value as text, and the condition that its part stands for."""

    kind: ClassVar[str] = "table"
    columns: tuple[str, ...]
    values: tuple[str, ...]
    conditions: tuple[str, ...]

    def spread(self, scores: Floats) -> Floats:
        """(columns,): a part is a column."""
        return np.asarray(scores)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return _fields(self)


FASTEST = 10**7
"""Samples a second of a sound, at most: the head of a .wav file, as pages hold it, has no room for a thousand times that."""
_LARGEST = 1e9
"""Seconds and hertz of a sound, at most."""
_PLAIN = re.compile(r"bool|u?int(8|16|32|64)|float(16|32|64)")
VIEWS: dict[str, type[Any]] = {v.kind: v for v in (ImageView, TextView, SoundView, TableView)}


def from_json(data: dict[str, Any]) -> View:
    """The view that `to_json` wrote."""
    if data.get("kind") not in VIEWS:
        raise ValueError(f"a view must be one of {', '.join(VIEWS)}, got {data.get('kind')!r}; is this an explanation's JSON?")
    cls = VIEWS[data["kind"]]
    held = sum(_promised(value)[2] for value in data.values() if isinstance(value, dict) and "zlib" in value)
    if held > limits.VIEW:
        raise ValueError(f"the arrays of a view must have at most {limits.VIEW:,} bytes together, got {held:,}")
    view: View = cls(**{f.name: decode(data[f.name]) for f in fields(cls) if f.name in data or f.default is MISSING})
    return view


def check(view: View, parts: int) -> None:
    """Refuse a view whose arrays do not fit each other or the number of parts: it may come from anyone's file."""
    if isinstance(view, ImageView):
        good = (view.pixels.dtype == np.uint8 and view.labels.ndim == 2 and view.pixels.shape == (*view.labels.shape, 3)
                and _fit(view.labels, parts))
    elif isinstance(view, SoundView):
        good = (view.spectrogram.ndim == 2 and view.spectrogram.shape == view.labels.shape and _fit(view.labels, parts)
                and _finite(view.spectrogram)
                and (view.wave is None or (view.wave.ndim == 1 and view.wave.size > 0 and _finite(view.wave)))
                and (view.wave_labels is None or (view.wave_labels.ndim == 1 and _fit(view.wave_labels, parts)))
                and _above_nought(view.seconds, _LARGEST) and _above_nought(view.top_hz, _LARGEST)
                and _above_nought(view.rate, FASTEST) and isinstance(view.rate, int | None))
    elif isinstance(view, TextView):
        inside = all(isinstance(start, int) and isinstance(end, int) and 0 <= start <= end <= len(view.text)
                     for spans in view.spans for start, end in spans)
        good = isinstance(view.text, str) and len(view.spans) == parts and inside
        good = good and (view.seen is None or (isinstance(view.seen, int) and 0 <= view.seen <= len(view.text)))
    else:
        assert isinstance(view, TableView)
        told = (view.columns, view.values, view.conditions)
        good = all(isinstance(some, tuple) and len(some) == parts for some in told)
        good = good and all(isinstance(one, str) for some in told for one in some)
    if not good:
        raise ValueError(f"the {view.kind} in this file does not fit its {parts} parts")


def caveats(view: View) -> tuple[str, ...]:
    """What a reader must know of the input itself: that a model did not take in all of a text."""
    if not isinstance(view, TextView) or view.seen is None:
        return ()
    unseen = view.text[view.seen:].split()
    beginning = " ".join(unseen[:5]) + (" …" if len(unseen) > 5 else "")
    return (f"The model reads only the first {view.seen} of {len(view.text)} characters: the last {len(unseen)} words (from "
            f"“{beginning}”) are unseen by it and cannot matter.",)


def _fit(labels: NDArray[np.int32], parts: int) -> bool:
    return labels.size > 0 and labels.dtype.kind in "iu" and int(labels.min()) >= 0 and int(labels.max()) < parts


def _finite(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "iuf" and bool(np.isfinite(values).all())


def _above_nought(value: Any, most: float) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most)


def encode(value: Any) -> Any:
    """Arrays as compressed base64 with their shape; tuples as lists; everything else as it is."""
    if isinstance(value, np.ndarray):
        packed = base64.b64encode(zlib.compress(np.ascontiguousarray(value).tobytes(), 6)).decode()
        return {"dtype": str(value.dtype), "shape": list(value.shape), "zlib": packed}
    return [encode(v) for v in value] if isinstance(value, tuple | list) else value


def _fields(view: Any) -> dict[str, Any]:
    return {"kind": view.kind, **{f.name: encode(getattr(view, f.name)) for f in fields(view)}}


def decode(value: Any) -> Any:
    """What `encode` wrote."""
    if isinstance(value, dict) and "zlib" in value:
        dtype, shape, size = _promised(value)
        # Never unpacks more than the shape says, whatever the file would unpack to.
        raw = zlib.decompressobj().decompress(base64.b64decode(value["zlib"], validate=True), size + 1)
        if len(raw) != size:
            came = "more" if len(raw) > size else len(raw)
            raise ValueError(f"an array of {dtype} {shape} must have {size} bytes, got {came}")
        return np.frombuffer(raw, dtype=dtype).reshape(shape).copy()
    return tuple(decode(v) for v in value) if isinstance(value, list) else value


def _promised(value: dict[str, Any]) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """(dtype, shape, bytes) of an array as it was written down, before it is unpacked."""
    if not isinstance(value["dtype"], str) or not _PLAIN.fullmatch(value["dtype"]):
        raise ValueError(f"an array must be plain numbers, got {value['dtype']!r:.60}")
    dtype, shape = np.dtype(value["dtype"]), tuple(int(n) for n in value["shape"])
    size = dtype.itemsize * math.prod(shape)
    if len(shape) > 3 or min(shape, default=0) < 0 or size > limits.VIEW:
        raise ValueError(f"an array must be plain numbers of at most {limits.VIEW:,} bytes, got {dtype} {shape!s:.60}")
    return dtype, shape, size
