"""What do parts of different inputs have in common? Only features that inputs share can be counted over many explanations.

- A text's feature is the word as it is written, wherever it stands; a sentence is one unless another text has the same.
- A table's feature is the column. Not the bin: what a row's bin is differs from row to row, so "age > 50" in one and
  "age <= 50" in the next would be two features where the model has one reason, and a column cut finer would count for more.
- Segments of images and stretches of sounds have no names that hold beyond their input. Each is described by how it looks or
  sounds and by what it is to the model (`descriptors`); what is described alike is one feature, a component.

A component is as good as its description: two things that look alike to it, and to the model, are one, and what a person would
call one thing may be several. Names of components are words for their middle, not for every part in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whytrust.checked import CheckedModel
from whytrust.components import clustered, named
from whytrust.core import Floats, Parts, View
from whytrust.descriptors import LOOKS, MODEL, PLACE, SOUNDS, Embedding, heard, look
from whytrust.explanation import Explanation
from whytrust.views import TableView, TextView

BLOCKS = {"image": (*LOOKS, MODEL), "sound": (*SOUNDS, MODEL)}
"""What parts are described by, unless told otherwise."""
NEAR = 0.03
"""Shares of an input's width by which places may differ and still be one: sizes leave different remainders."""
NOISE = 1e-7
"""Of the largest score: what is smaller is what 32-bit numbers round, and no reason to call a feature seen."""
ROUNDED = 1e-11
"""Of the prediction: a model that never changes its mind still gets scores, of the last digits of its sums."""
_NAME = 60


@dataclass(frozen=True, eq=False)
class SharedFeatures:
    """Features that several inputs have in common: their names, and which of them each part of each input is."""

    names: tuple[str, ...]  # of each feature
    of_parts: tuple[NDArray[np.intp], ...]  # for each input, the feature that each of its parts is
    about: str = ""  # what a feature is here, for a reader
    written: tuple[str, ...] = ()  # features that have names of their own as these are written, where `names` are cut short

    @property
    def keys(self) -> tuple[str, ...]:
        """What features are known by: names are for reading, and may be cut short or numbered."""
        return self.written or self.names

    def matrix(self, explanations: Iterable[Explanation]) -> Any:
        """(n, features), sparse: the sum of |score| of the parts in each explanation, by feature.

        One explanation for each input, in the same order. Parts that an explanation leaves out count as 0, and so do scores
        that are what numbers round: below NOISE of the largest of all, or beside the prediction itself.
        """
        rows, columns, values = [], [], []
        given = list(explanations)
        if len(given) != len(self.of_parts):
            raise ValueError(f"there must be one explanation for each of the {len(self.of_parts)} inputs, got {len(given)}")
        for row, (e, features) in enumerate(zip(given, self.of_parts, strict=True)):
            if len(e.scores) != len(features):
                raise ValueError(f"explanation {row} must have the {len(features)} parts that its features were found for, got "
                                 f"{len(e.scores)}; cut it in the same way")
            kept = np.flatnonzero(np.ones(len(features), bool) if e.selected is None else e.selected)
            rows.append(np.full(len(kept), row))
            columns.append(features[kept])
            size = np.abs(e.scores[kept])
            values.append(np.where(size > ROUNDED * abs(e.prediction), size, 0.0))
        sizes = np.concatenate(values)
        sizes[sizes < NOISE * sizes.max(initial=0.0)] = 0.0
        cells = (sizes, (np.concatenate(rows), np.concatenate(columns)))
        matrix = sparse.csr_matrix(cells, shape=(len(given), len(self.names)))  # which adds up what is of one feature
        matrix.eliminate_zeros()
        return matrix


@dataclass(frozen=True, eq=False)
class Made(Sequence[Parts]):
    """The parts of so many inputs, each cut when it is asked for: nobody keeps all of them."""

    size: int
    cut: Callable[[int], Parts]

    def __len__(self) -> int:
        """How many inputs."""
        return self.size

    def __getitem__(self, index: Any) -> Any:
        """The parts of one input, or of some."""
        if isinstance(index, slice):
            return [self.cut(place) for place in range(*index.indices(self.size))]
        if not -self.size <= index < self.size:
            raise IndexError(f"there are {self.size} inputs, got {index}")
        return self.cut(index % self.size)


def shared_features(model: CheckedModel, parts: Sequence[Parts], components: int | None = None, seed: int = 0,
                    batch_size: int | None = None, describe: Sequence[str] | None = None) -> SharedFeatures:
    """The features that these inputs share; each input is looked at once, in order, and nothing composed of it is kept.

    `components` says how many there are to be of images and sounds; None is found out (see `components.clustered`).
    `describe` says what their parts are compared by: some of colour, texture and model for images, of level, spectrum, change,
    band and model for sounds; or place alone, where all inputs are cut alike, and each place is a feature. A net is asked
    about each input once (about each part of a waveform), a black box twice for each part.
    """
    return _shared(parts, components, seed, describe, Embedding(model, seed, batch_size))


def features_of(explanations: Sequence[Explanation], components: int | None = None, seed: int = 0,
                describe: Sequence[str] | None = None) -> SharedFeatures:
    """The same for explanations that are there already, without their model: images and sounds by their looks alone."""
    return _shared(explanations, components, seed, describe, None)


def _shared(items: Sequence[Any], components: int | None, seed: int, describe: Sequence[str] | None,
            embedding: Embedding | None) -> SharedFeatures:
    whole = isinstance(components, int | np.integer) and not isinstance(components, bool)
    if components is not None and (not whole or components < 1):
        raise ValueError(f"components must be a whole number >= 1, or None to find out how many there are, got {components!r}")
    if not len(items):
        raise ValueError("there must be at least one input to find features in, got none")
    kind = items[0].view.kind
    if kind in ("text", "table"):
        if describe is not None:
            raise ValueError(f"describe says how images and sounds are compared; the features of a {kind} are its "
                             f"{'words' if kind == 'text' else 'columns'}, so leave it out, got {list(describe)}")
        if components is not None:
            raise ValueError(f"components are groups of parts that are alike, for images and sounds; the features of a {kind} "
                             f"are its {'words' if kind == 'text' else 'columns'}, so leave it out, got {components}")
        words, told = (_words, "a word (or sentence) as it is written") if kind == "text" else (_columns, "a column")
        return _by_name((words(_same_kind(item, kind)) for item in items), told)
    if all(hasattr(item, "stems") for item in items):
        return _by_name((list(item.names) for item in items), "a stem, by its name")
    blocks = _chosen(describe, kind, embedding)
    if blocks == (PLACE,):
        return _by_place([_same_kind(item, kind) for item in items], [tuple(item.names) for item in items])
    return _by_likeness(items, kind, blocks, components, seed, embedding)


def _same_kind(item: Any, kind: str) -> Any:
    if item.view.kind != kind:
        raise ValueError(f"all inputs must be of one kind to share features, got a {kind} and a {item.view.kind}; pick from "
                         "each kind by itself")
    return item.view


# --- features that have names -----------------------------------------------------------------------------------------


def _by_name(inputs: Iterable[list[str]], about: str) -> SharedFeatures:
    numbers: dict[str, int] = {}
    of_parts = tuple(np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.intp) for names in inputs)
    return SharedFeatures(_distinct([_short(name) for name in numbers]), of_parts, about, tuple(numbers))


def _words(view: TextView) -> list[str]:
    """Each part as it is written; "good [2]" is the name of a place, the word there is "good"."""
    return [view.text[spans[0][0]:spans[0][1]] if spans else "" for spans in view.spans]


def _columns(view: TableView) -> list[str]:
    return list(view.columns)


def _short(name: str) -> str:
    line = " ".join(name.split()) or "(blank)"
    return line if len(line) <= _NAME else line[:_NAME - 1].rstrip() + "…"


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Long sentences that begin alike are told apart by a number."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(out)


# --- places -----------------------------------------------------------------------------------------------------------


def _by_place(views: Sequence[View], names: Sequence[tuple[str, ...]]) -> SharedFeatures:
    first = _places(views[0], len(names[0]))
    for index, (view, own) in enumerate(zip(views, names, strict=True)):
        here = _places(view, len(own))
        if here.shape != first.shape or np.abs(here - first).max() > NEAR:
            raise ValueError(f"inputs must all be cut alike for their places to be features, and input {index} is not cut as "
                             "the first one is; cut all by one grid (parts='grid:4x4'), or leave describe=('place',) out")
    each = np.arange(len(names[0]), dtype=np.intp)
    return SharedFeatures(names[0], (each,) * len(names), "a place")


def _places(view: Any, d: int) -> Floats:
    """(d, 4): middle and extent of each part, as shares of the input's height and width."""
    columns = []
    count = np.maximum(np.bincount(view.labels.ravel(), minlength=d), 1)
    for axis, size in enumerate(view.labels.shape):
        at = np.broadcast_to(((np.arange(size) + 0.5) / size).reshape((-1, 1) if axis == 0 else (1, -1)), view.labels.shape)
        mean = np.bincount(view.labels.ravel(), weights=at.ravel(), minlength=d) / count
        square = np.bincount(view.labels.ravel(), weights=at.ravel() ** 2, minlength=d) / count
        columns += [mean, np.sqrt(np.maximum(square - mean**2, 0))]
    return np.stack(columns, axis=1)


# --- likeness ---------------------------------------------------------------------------------------------------------


def _chosen(describe: Sequence[str] | None, kind: str, embedding: Embedding | None) -> tuple[str, ...]:
    known = tuple(b for b in BLOCKS[kind] if b != MODEL or embedding is not None)
    if describe is None:
        return known
    asked = (describe,) if isinstance(describe, str) else tuple(describe)
    if asked == (PLACE,):
        return asked
    if not asked or any(block not in known for block in asked):
        without = " (ready-made explanations bring no model to ask)" if MODEL in asked and embedding is None else ""
        raise ValueError(f"describe must be some of {', '.join(known)} for {kind}s, or place alone, got {list(asked)}{without}")
    return tuple(dict.fromkeys(asked))


def _by_likeness(items: Sequence[Any], kind: str, blocks: tuple[str, ...], components: int | None, seed: int,
                 embedding: Embedding | None) -> SharedFeatures:
    describe: Callable[[Any, int], dict[str, Floats]] = look if kind == "image" else heard
    described: dict[str, list[Floats]] = {}
    asked: list[list[Floats]] = []
    sizes = []
    for item in items:
        view = _same_kind(item, kind)
        sizes.append(len(item.names))
        for name, block in describe(view, sizes[-1]).items():
            described.setdefault(name, []).append(block)
        if MODEL in blocks and embedding is not None:
            asked.append(embedding(item))
    raw = {name: np.vstack(found) for name, found in described.items()}
    found = clustered([raw[b] for b in blocks if b != MODEL], _stacked(asked), components, seed)
    by_model = f", {embedding.told}" if MODEL in blocks and embedding is not None else ""
    about = f"a component: parts alike by {', '.join(b for b in blocks if b != MODEL)}{by_model}; {found.told}"
    ends = np.cumsum(sizes)[:-1]
    return SharedFeatures(named(found, raw, kind), tuple(np.split(found.labels, ends)), about.replace("by , ", "by "))


def _stacked(asked: list[list[Floats]]) -> list[Floats]:
    """Blocks of all inputs, one below the other; a net that could not be cut for some is a black box for all."""
    kinds = min((len(one) for one in asked), default=0)
    if any(len(one) != kinds for one in asked):
        raise ValueError("the model could be cut at a layer for some inputs and not for others; leave model out of describe")
    return [np.vstack([one[place] for one in asked]) for place in range(kinds)]

