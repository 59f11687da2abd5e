"""From values of any shape to one score a part: which axis is what, and how many values become one.

Values that add up to a prediction (Shapley values, lime's weights) are summed over a part. All others are averaged over a
part's pixels or samples, and of the sub-words of a word the one of largest magnitude counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Sense, pool_labels
from whytrust.question import Question
from whytrust.views import ImageView, TextView

POOLINGS = ("mean", "mean_abs", "mean_pos", "sum", "signed_max")
Span = tuple[int, int]


@dataclass(frozen=True)
class Laid:
    """One score a part, the sum of what lay on no part (punctuation, special tokens), and what was assumed."""

    scores: Floats
    outside: float = 0.0
    notes: tuple[str, ...] = ()


def sense_of(pooling: str | None, method: Sense = "signed") -> Sense:
    """What scores say after a pooling of values that said `method`."""
    by_pooling: dict[str | None, Sense] = {"mean_abs": "size", "mean_pos": "for"}
    return by_pooling.get(pooling, "signed") if method == "signed" else method


@dataclass(frozen=True)
class Laying:
    """How values from `name` are laid over the parts of a question; `stretch` lets maps of another size be resized."""

    question: Question
    name: str
    pooling: str | None = None
    additive: bool = False
    stretch: bool = False

    def __call__(self, raw: Any) -> Laid:
        """Values shaped like the input, or one a part, or (tokens, values) of a text."""
        view = self.question.parts.view
        if isinstance(view, TextView) and _is_pair(raw):
            tokens, values = raw
            return self.tokens(self.numbers(values), located(list(tokens), view.text))
        values = self.numbers(raw)
        if values.ndim > 1 and len(values) == 1 and values.shape[1:] == (self.question.d,):
            values = values[0]
        if values.shape == (self.question.d,):
            how = self._how("mean")
            return Laid(pool_labels(values, np.arange(self.question.d), self.question.d, how))
        if isinstance(view, TextView):
            return self._text(values, view)
        if isinstance(view, ImageView):
            return self._image(values, view)
        return self._other(values)

    def numbers(self, raw: Any) -> Floats:
        """Finite real numbers, or one clear error."""
        try:
            array = np.asarray(raw.detach().cpu() if hasattr(raw, "detach") else raw)
        except ValueError as error:
            raise ValueError(f"{self.name} must give an array of numbers, got a {type(raw).__name__} with entries of different "
                             "lengths") from error
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{self.name} must give real numbers, got {array.dtype} of shape {array.shape}")
        values = array.astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"{self.name} must give finite values, got {int((~np.isfinite(values)).sum())} of {values.size} "
                             "that are NaN or infinite")
        return values

    def tokens(self, values: Floats, spans: Sequence[Sequence[Span]]) -> Laid:
        """One value a token, each at its character spans, merged onto the parts.

        With the sum a token is shared by the characters it has in parts, so that nothing counts twice.
        """
        view = self.question.parts.view
        assert isinstance(view, TextView)
        how = self._how("signed_max")
        part_of = np.full(len(view.text), -1, dtype=np.intp)
        for part, start, end in ((i, *span) for i, places in enumerate(view.spans) for span in places):
            part_of[start:end] = part
        characters, outside = np.zeros(len(view.text)), 0.0
        for value, places in zip(values, spans, strict=True):
            held = np.zeros(len(view.text), bool)
            for start, end in places:
                held[start:end] = True
            held &= part_of >= 0
            if not held.any():
                outside += float(value)
            elif how == "sum":
                characters += shared(float(value), held, part_of)
            else:
                characters[held] = np.where(np.abs(characters[held]) > abs(value), characters[held], value)
        merged = {"sum": "A part's score is the sum over its tokens.",
                  "signed_max": "A part's score is that of its token of largest magnitude."}
        pooled = merged.get(how, f"Values are one a token; a part's score is their {how} over its characters.")
        several = any(sum(start < e and s < end for piece in spans for s, e in piece) > 1
                      for part in view.spans for start, end in part)
        return Laid(self.question.parts.pool(characters, how), outside, (pooled,) if several else ())

    def _text(self, values: Floats, view: TextView) -> Laid:
        text = self.question.input[0]
        find = getattr(self.question.model.function, "tokens", None)
        spans = [] if find is None or self.question.model.preprocess is not None else [(tuple(s),) for s in find(text)]
        if values.ndim > 1 and len(values) == 1:
            values = values[0]
        notes: tuple[str, ...] = ()
        if values.ndim == 2 and len(values) in (self.question.d, len(spans), len(view.text)):
            notes = (f"Values are summed over the last axis of {values.shape[1]} (embedding).",)
            values = values.sum(axis=1)
        if values.shape == (self.question.d,):
            return Laid(pool_labels(values, np.arange(self.question.d), self.question.d, self._how("mean")), notes=notes)
        if spans and values.shape == (len(spans),):
            laid = self.tokens(values, spans)
            return Laid(laid.scores, laid.outside, notes + laid.notes)
        if values.shape in ((len(view.text),), (len(text),)):
            how = self._how("mean")
            characters = np.zeros(len(view.text))
            characters[:len(values)] = values
            scores = self.question.parts.pool(characters, how)
            return Laid(scores, float(values.sum() - scores.sum()) if how == "sum" else 0.0,
                        (*notes, f"Values are one a character; a part's score is their {how}."))
        raise self._misfit(values, f"({len(spans)},) one a token, special ones left out" if spans else "",
                           f"({len(view.text)},) one a character", "a pair (tokens, values)")

    def _image(self, values: Floats, view: ImageView) -> Laid:
        shape, parts = view.labels.shape, self.question.parts
        first = bool(getattr(parts, "channels_first", False))
        input_shape = np.shape(self.question.input[0])
        how = self._how("mean")
        if values.ndim >= 2 and len(values) == 1 and values.ndim != len(input_shape):
            values = values[0]
        if values.ndim == 1 and values.size == int(np.prod(input_shape)):
            values = values.reshape(input_shape)
        note = f"Values are one a pixel; a part's score is their {how}."
        if values.shape == shape:
            return Laid(parts.pool(values, how), notes=(note,))
        at_end, at_start = values.ndim == 3 and values.shape[:2] == shape, values.ndim == 3 and values.shape[1:] == shape
        if at_end or at_start:
            stands_first = at_start and (first or not at_end)
            last = np.moveaxis(values, 0, -1) if stands_first else values
            return Laid(parts.pool(np.moveaxis(last, -1, 0) if first else last, how), notes=(note,))
        if self.stretch and values.ndim in (2, 3):
            return self._stretched(values if values.ndim == 3 else values[None], view, how)
        raise self._misfit(values, f"{shape}", f"{(*shape, 'C')}", f"{('C', *shape)}, each also with a leading 1")

    def _stretched(self, maps: Floats, view: ImageView, how: str) -> Laid:
        """Coarse maps are enlarged to the image; where the net saw a larger image, the segments are."""
        shape, size = view.labels.shape, maps.shape[1:]
        note = (f"A map of {size[0]} × {size[1]} was laid over the image of {shape[0]} × {shape[1]} pixels: right where the "
                f"net sees the whole image, wrong where it sees a crop; a part's score is the {how} over it.")
        if size[0] >= shape[0] and size[1] >= shape[1]:
            rows, columns = (((np.arange(n) + 0.5) * s / n).astype(np.intp) for n, s in zip(size, shape, strict=True))
            labels = view.labels[rows[:, None], columns].astype(np.intp)
            return Laid(pool_labels(np.moveaxis(maps, 0, -1), labels, self.question.d, how), notes=(note,))
        if how != "sum":
            changed = np.abs(maps) if how == "mean_abs" else np.maximum(maps, 0) if how == "mean_pos" else maps
            return Laid(self.question.parts.pool(enlarged(changed.mean(axis=0), shape), how), notes=(note,))
        down, across = (overlaps(n, s) * s for n, s in zip(shape, size, strict=True))
        return Laid(self.question.parts.pool(down @ maps.sum(axis=0) @ across.T, how), notes=(note,))

    def _other(self, values: Floats) -> Laid:
        """Sounds and rows: shaped like the input, batch and channel axes of one aside."""
        shape = np.shape(self.question.input)[1:]
        squeezed = values
        while squeezed.ndim > len(shape) and len(squeezed) == 1:
            squeezed = squeezed[0]
        if squeezed.shape != shape or self.question.parts.domain == "tabular":
            raise self._misfit(values, "" if self.question.parts.domain == "tabular" else f"{shape}")
        how = self._how("mean")
        note = f"Values are one a sample; a part's score is their {how}."
        return Laid(self.question.parts.pool(squeezed, how), notes=(note,))

    def _how(self, usual: str) -> str:
        return self.pooling or ("sum" if self.additive else usual)

    def _misfit(self, values: Floats, *shapes: str) -> ValueError:
        accepted = "; ".join([f"({self.question.d},) one a part", *(s for s in shapes if s)])
        return ValueError(f"{self.name} must give values shaped like the input or one a part: accepted are {accepted}; "
                          f"got {values.shape}")


def shared(value: float, held: NDArray[np.bool_], part_of: NDArray[Any]) -> Floats:
    """A map that sums to the value: spread over the places held, or all in one where they are of one part, to keep its bits."""
    map, places = np.zeros(held.shape), np.flatnonzero(held)
    whole = (part_of.ravel()[places] == part_of.ravel()[places[0]]).all()
    map.ravel()[places[:1] if whole else places] = value if whole else value / len(places)
    return map


def overlaps(places: int, cells: int) -> Floats:
    """(places, cells): how much of the whole lies in both a place and a cell."""
    i, c = np.arange(places)[:, None], np.arange(cells)
    return np.asarray(np.maximum(np.minimum((i + 1) / places, (c + 1) / cells) - np.maximum(i / places, c / cells), 0))


def enlarged(map: Floats, shape: tuple[int, ...]) -> Floats:
    """A coarse map in a finer shape, linear between the middles of its cells, as nets are usually enlarged."""
    for axis, (size, wanted) in enumerate(zip(map.shape, shape, strict=True)):
        place = np.clip((np.arange(wanted) + 0.5) * size / wanted - 0.5, 0, size - 1)
        below = np.floor(place).astype(np.intp)
        share = (place - below).reshape([-1 if a == axis else 1 for a in range(map.ndim)])
        map = map.take(below, axis) * (1 - share) + map.take(np.minimum(below + 1, size - 1), axis) * share
    return map


def located(tokens: Sequence[Any], text: str) -> list[tuple[Span, ...]]:
    """Where tokens stand in a text, in order; spaces around them and marks of sub-words (##, ▁, Ġ) aside.

    A token that is not found after the one before it (a special token, say) stands nowhere.
    """
    spans: list[tuple[Span, ...]] = []
    past, lowered = 0, text.lower() if len(text.lower()) == len(text) else text
    for token in tokens:
        bare = str(token).strip().removeprefix("##").removesuffix("##").lstrip("▁Ġ")
        found = lowered.find(bare.lower() if lowered is not text else bare, past) if bare else -1
        spans.append(((found, found + len(bare)),) if found >= 0 else ())
        past = found + len(bare) if found >= 0 else past
    return spans


def _is_pair(raw: Any) -> bool:
    """(tokens, values)?"""
    if not isinstance(raw, tuple | list) or len(raw) != 2 or isinstance(raw[0], str):
        return False
    tokens: Sequence[Any] | NDArray[Any] = raw[0] if isinstance(raw[0], list | tuple | np.ndarray) else ()
    return len(tokens) > 0 and all(isinstance(token, str) for token in tokens) and len(tokens) == np.size(raw[1])
