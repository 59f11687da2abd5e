"""What people say matters in an input, as they say it: a mask, boxes, words, spans, seconds or columns, made into a mask."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import View

FORMS = {"image": {"boxes": "[(left, top, right, bottom), …] in pixels, right and bottom past the last one"},
         "text": {"words": "[word, …] wherever they stand", "spans": "[(start, end), …] in characters"},
         "sound": {"seconds": "[(start, end), …]"}, "table": {"columns": "[name, …]"}}
"""By kind of input, how an annotation may be given instead of a mask."""
PLACES = {"image": "a place for each pixel", "text": "one for each character", "table": "one for each column",
          "sound": "one for each sample, or each frame and band of the spectrogram where frequencies are cut"}
"""By kind of input, what a mask has places for."""
Mask = NDArray[np.bool_]


def mask_of(truth: Any, view: View, shape: tuple[int, ...]) -> Mask:
    """Yes or no of every place of an input as a reader knows it; an annotation that is none, or marks nothing, is refused."""
    if isinstance(truth, Mapping):
        return _marked(truth, view, shape)
    mask = np.asarray(truth)
    if mask.shape != shape or not np.isin(mask, (0, 1)).all() or not mask.any():
        raise ValueError(f"truth must say yes or no of every place of the input, and yes of one at least: expected {shape}, "
                         f"{PLACES[view.kind]}, got {mask.dtype} {mask.shape} with "
                         f"{int(np.count_nonzero(mask))} that are not 0{_or(view)}")
    return mask.astype(bool)


def _marked(truth: Mapping[str, Any], view: View, shape: tuple[int, ...]) -> Mask:
    forms = FORMS[view.kind]
    if len(truth) != 1 or next(iter(truth)) not in forms:
        raise ValueError(f"truth must be a mask{_or(view)}, got a mapping with {', '.join(map(repr, truth)) or 'nothing'}")
    (form, given), = truth.items()
    marks = given if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else [given]
    if form in ("boxes", "spans", "seconds") and len(marks) and np.ndim(marks[0]) == 0:
        marks = [marks]  # one box, or span, by itself
    mask: Mask = np.zeros(shape, dtype=bool)
    mark: Callable[[Mask, Any, Any], None] = {"boxes": _box, "spans": _span, "seconds": _seconds, "words": _word,
                                               "columns": _column}[form]
    for one in marks:
        mark(mask, one, view)
    if not mask.any():
        raise ValueError(f"truth must mark one place of the input at least, and {form} {_short(given)} mark none")
    return mask


def _box(mask: Mask, box: Any, view: Any) -> None:
    left, top, right, bottom = _numbers(box, 4, "a box must be (left, top, right, bottom)")
    high, wide = mask.shape
    if not (0 <= left < right <= wide and 0 <= top < bottom <= high):
        raise ValueError(f"a box must be (left, top, right, bottom) with left < right <= {wide} and top < bottom <= {high}, in "
                         f"pixels of the image as it is explained, got {_short(box)}")
    mask[int(np.floor(top)):int(np.ceil(bottom)), int(np.floor(left)):int(np.ceil(right))] = True


def _span(mask: Mask, span: Any, view: Any) -> None:
    start, end = _numbers(span, 2, "a span must be (start, end)")
    if not (0 <= start < end <= len(mask) and start == int(start) and end == int(end)):
        raise ValueError(f"a span must be (start, end) in characters, with start < end <= {len(mask)}, got {_short(span)}")
    mask[int(start):int(end)] = True


def _word(mask: Mask, word: Any, view: Any) -> None:
    if not isinstance(word, str) or not word.strip():
        raise ValueError(f"words must be a list of words of the text, got {_short(word)}")
    found = list(re.finditer(rf"(?<!\w){re.escape(word)}(?!\w)", view.text, re.IGNORECASE))
    if not found:
        raise ValueError(f"words must stand in the text, and {_short(word)} does not")
    for match in found:
        mask[match.start():match.end()] = True


def _seconds(mask: Mask, span: Any, view: Any) -> None:
    length = view.seconds
    if length is None:
        raise ValueError("seconds need a sound whose rate is known: pass rate= (of a spectrogram hop_seconds=), or a mask of "
                         "its frames and bands")
    start, end = _numbers(span, 2, "seconds must be (start, end)")
    if not 0 <= start < end <= length + 1e-9:
        raise ValueError(f"seconds must be (start, end) with start < end <= {length:g}, got {_short(span)}")
    places = len(mask) / length  # samples, or frames, a second
    mask[int(np.floor(start * places)):int(np.ceil(end * places - 1e-9))] = True


def _column(mask: Mask, name: Any, view: Any) -> None:
    if name not in view.columns:
        raise ValueError(f"columns must be among {', '.join(view.columns)}, got {_short(name)}")
    mask[view.columns.index(name)] = True


def _numbers(given: Any, count: int, words: str) -> list[float]:
    try:
        values = [float(one) for one in given]
    except (TypeError, ValueError):
        values = []
    if len(values) != count or not np.isfinite(values).all():
        raise ValueError(f"{words}, {count} numbers, got {_short(given)}")
    return values


def _or(view: View) -> str:
    """The other ways to say it."""
    return "".join(f", or {{{name!r}: {what}}}" for name, what in FORMS[view.kind].items())


def _short(value: Any) -> str:
    told = repr(value)
    return told if len(told) <= 60 else told[:57] + "…"
