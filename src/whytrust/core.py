"""The nouns everything else is written in: the parts of an input, and a question about a model in terms of them.

Imports numpy and the checked model alone; every other module imports this one.
"""

from __future__ import annotations

import hashlib
import importlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import Batch as Batch
from whytrust.checked import CheckedModel
from whytrust.checked import Floats as Floats

WORTH_OPENING = 64
"""With fewer masks than this a model is not opened: checking the shortcut would cost as much as it saves."""
PROBES = 5
"""Masks on which a shortcut must say what the model says before it is used."""
Masks = NDArray[np.bool_]
"""(n, d): row i says which of the d parts input i shows."""


_NOTHING = np.empty((0, 0))


class MissingExtra(ImportError):
    """An optional library is needed and not installed; the message names the pip command."""


def need(module: str, extra: str) -> Any:
    """Import an optional library, or say in one line how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"this needs {module.split('.')[0]}, which could not be imported ({error}); "
            f"install it with: pip install 'whytrust[{extra}]'"
        ) from error


def generator(seed: int, *case: str | int) -> np.random.Generator:
    """The one source of randomness: the same (seed, case) gives the same stream, in any order of cases."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a whole number >= 0, got {seed!r}")
    words = [int(seed)] + [c if isinstance(c, int) else zlib.crc32(c.encode()) for c in case]
    return np.random.default_rng(words)


# --- parts ------------------------------------------------------------------------------------------------------------


class View(Protocol):
    """What a reader is shown of one input: enough to draw scores over it, and no more."""

    @property
    def kind(self) -> str:
        """image, text, sound or table."""
        ...

    def spread(self, scores: Floats) -> Floats:
        """One number a part -> an array shaped like the input as a reader knows it."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Plain data from which `views.from_json` makes the same view."""
        ...


@runtime_checkable
class Parts(Protocol):
    """One input, cut into d parts that can each be kept or hidden.

    A mask of ones composes the input itself. A fill that draws at random takes its numbers from `rng` row by row, so that
    the inputs do not depend on how the masks are split into batches.
    """

    @property
    def domain(self) -> str:
        """image, text, audio or tabular: which of a method's defaults apply."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """What each part is called; as many as there are parts."""
        ...

    @property
    def deterministic(self) -> bool:
        """May a mask be asked once and remembered? Not where the fill draws at random."""
        ...

    @property
    def view(self) -> View:
        """What a reader is shown."""
        ...

    def compose(self, masks: Masks, rng: np.random.Generator) -> Batch:
        """(n, d) masks -> a batch of n inputs; input i shows exactly the parts of masks[i]."""
        ...

    def pool(self, map: Floats, how: str) -> Floats:
        """A map shaped like the input -> one number a part; `how` is mean, mean_abs or mean_pos."""
        ...


@dataclass(frozen=True)
class Draws:
    """Inputs drawn at random around one input, and how an interpretable model sees them.

    `controls` are columns whose mean given the design row is known to be zero, each made from the part `control_of` names:
    taking off what they explain leaves the weights' meaning alone and takes noise away. `chances`, where given, says that the
    rows are all there is, each with its probability.
    """

    design: Floats
    rows: Callable[[slice], Batch]
    origin: Floats
    controls: Floats | None = None
    control_of: NDArray[np.intp] | None = None
    chances: Floats | None = None

    def __len__(self) -> int:
        """How many inputs were drawn."""
        return len(self.design)


@runtime_checkable
class DrawnParts(Parts, Protocol):
    """Parts whose values are drawn from training data rather than hidden: what LIME on a table needs."""

    def draw(self, n: int, rng: np.random.Generator) -> Draws:
        """n inputs drawn independently."""
        ...

    def support(self, limit: int) -> Draws | None:
        """Every input that could be drawn, with its probability; None where there are more than `limit`."""
        ...


def check_masks(masks: Any, d: int) -> Masks:
    """Masks as an (n, d) array of booleans, or one clear error."""
    array = np.asarray(masks)
    if array.ndim != 2 or array.shape[1] != d:
        hint = "; pass masks[None] to ask about a single mask" if array.ndim == 1 else ""
        raise ValueError(f"masks must have one column per part: expected (n, {d}), got {array.shape}{hint}")
    return array.astype(bool, copy=False)


def pool_labels(map: Floats, labels: NDArray[np.intp], d: int, how: str) -> Floats:
    """One number for each label 0 … d-1 of a map: the mean (of all, absolute or positive values), sum or signed maximum.

    The sum is right for values that add up, channels included; the signed maximum is the value of largest magnitude (the first
    of equals), as sub-words are merged onto words.
    """
    change: dict[str, Callable[[Floats], Floats]] = {
        "mean": lambda m: m, "mean_abs": np.abs, "mean_pos": lambda m: np.maximum(m, 0), "sum": lambda m: m,
        "signed_max": lambda m: m}
    if how not in change:
        raise ValueError(f"pooling must be one of {', '.join(change)}, got {how!r}")
    values = np.asarray(map, dtype=np.float64)
    if values.shape[: labels.ndim] != labels.shape:
        raise ValueError(f"the map must be shaped like the input: expected {labels.shape}, got {values.shape}")
    flat, by_place = labels.ravel(), change[how](values).reshape(labels.size, -1)
    if how == "sum":
        return np.asarray(np.bincount(flat, weights=by_place.sum(axis=1), minlength=d))
    values = by_place.mean(axis=1)
    if how == "signed_max":
        rising = np.argsort(np.abs(values[::-1]), kind="stable")
        largest = np.zeros(d)
        largest[flat[::-1][rising]] = values[::-1][rising]  # of several for one label, numpy keeps the last
        return largest
    return np.asarray(np.bincount(flat, weights=values, minlength=d) / np.maximum(np.bincount(flat, minlength=d), 1))


# --- the question -----------------------------------------------------------------------------------------------------


@dataclass
class Memory:
    """What a model has already said about one input; shared by every question about it."""

    watched: tuple[int, ...]
    known: dict[bytes, int] = field(default_factory=dict)  # a mask's row of `answers`
    answers: Floats = field(default_factory=lambda: np.empty((0, 0)))
    streams: dict[str, tuple[Floats, dict[str, Any]]] = field(default_factory=dict)
    ahead: dict[str, tuple[Draws, Floats, dict[str, Any]]] = field(default_factory=dict)
    shortcut: tuple[Callable[[Masks], Floats] | None] | None = None
    original: Floats | None = None
    calls: int = 0


@dataclass(frozen=True)
class Question:
    """Why does `model` score `target` so, in terms of `parts`?

    A mask is asked once and remembered, for every explainer and every target of the same input; inputs are composed in
    batches, so memory does not grow with the number of masks.
    """

    model: CheckedModel
    parts: Parts
    target: int = 0
    batch_size: int | None = None
    memory: Memory = field(default_factory=lambda: Memory(()), compare=False, repr=False)
    on_calls: Callable[[int], None] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the batch size here, where every caller passes."""
        whole = isinstance(self.batch_size, int | np.integer) and not isinstance(self.batch_size, bool)
        if self.batch_size is not None and (not whole or self.batch_size < 1):
            raise ValueError(f"batch_size must be a whole number >= 1, got {self.batch_size!r}")
        if not self.memory.watched:
            object.__setattr__(self, "memory", Memory((self.target,)))

    def watching(self, targets: Sequence[int]) -> list[Question]:
        """The same question about several targets; one set of model calls answers all of them."""
        memory = Memory(tuple(targets), original=self.memory.original, calls=self.memory.calls, shortcut=self.memory.shortcut,
                        ahead=self.memory.ahead)
        return [replace(self, target=t, memory=memory) for t in targets]

    @property
    def d(self) -> int:
        """The number of parts."""
        return len(self.parts.names)

    @property
    def original(self) -> Floats:
        """The model's scores of the input itself, (classes,)."""
        if self.memory.original is None:
            batch = self.parts.compose(np.ones((1, self.d), bool), generator(0))
            self.memory.original = self._model(batch)[0]
        # Kept as the answer to the mask of ones too, so that the input itself is never asked twice.
        if not self.memory.known:
            self.memory.known[np.packbits(np.ones(self.d, bool)).tobytes()] = 0
            self.memory.answers = self.memory.original[None, list(self.memory.watched)]
        return self.memory.original

    def score(self, masks: Masks, rng: np.random.Generator) -> Floats:
        """The target's score for each mask; `rng` is used only by fills that draw."""
        masks = check_masks(masks, self.d)
        if self.parts.deterministic:
            return self._remembered(masks, rng)[:, self._column]
        answers = np.empty(len(masks))
        whole = masks.all(axis=1)
        if whole.any():
            answers[whole] = self.original[self.target]
        asked = masks[~whole]
        key = hashlib.blake2b(np.packbits(asked).tobytes(), digest_size=16).hexdigest()
        answers[~whole] = self._streamed(f"{key}-{len(asked)}", rng, lambda: self._ask(
            len(asked), lambda part: self.parts.compose(asked[part], rng)))[:, self._column]
        return answers

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Draws, Floats]:
        """n drawn inputs and the target's score of each."""
        if not isinstance(self.parts, DrawnParts):
            raise TypeError(f"{type(self.parts).__name__} hides parts; only parts with draw() can be drawn from")
        start = rng.bit_generator.state
        if (found := self.memory.ahead.get(_drawing(n, rng))) is None:
            found = self.parts.draw(n, rng), np.empty((0, 0)), dict(rng.bit_generator.state)
        draws, answered, after = found
        rng.bit_generator.state = start
        scores = self._streamed(f"draw-{n}", rng, lambda: self._ask(n, draws.rows, answered=answered))
        rng.bit_generator.state = after
        return draws, scores[:, self._column]

    def foresee(self, n: int, rng: np.random.Generator) -> None:
        """Ask about the input itself and the first of the n inputs that will be drawn in one batch, whatever the target.

        Some models (a forest of many trees) take as long for one input as for a thousand.
        """
        if not isinstance(self.parts, DrawnParts) or self.memory.original is not None:
            return
        key, draws = _drawing(n, rng), self.parts.draw(n, rng)
        own = self.parts.compose(np.ones((1, self.d), bool), generator(0))
        scores = self._model(_one_batch(own, draws.rows(next(self._chunks(n)))))
        self.memory.original = scores[0]
        self.memory.ahead[key] = draws, scores[1:], dict(rng.bit_generator.state)

    def every(self, limit: int) -> tuple[Draws, Floats] | None:
        """Every input that can be drawn and its score, where there are at most `limit`."""
        draws = self.parts.support(limit) if isinstance(self.parts, DrawnParts) else None
        if draws is None:
            return None
        rng = generator(0, "support")
        return draws, self._streamed("support", rng, lambda: self._ask(len(draws), draws.rows))[:, self._column]

    @property
    def _column(self) -> int:
        if self.target not in self.memory.watched:
            raise ValueError(f"this question watches targets {self.memory.watched}, not {self.target}; "
                             "ask through question.watching([…])")
        return self.memory.watched.index(self.target)

    def _remembered(self, masks: Masks, rng: np.random.Generator) -> Floats:
        _ = self.original
        known = self.memory.known
        packed = np.packbits(masks, axis=1)
        keys: list[bytes] = packed.view(f"V{packed.shape[1]}").ravel().tolist()
        new = dict(zip(keys, range(len(keys)), strict=True))
        for key in new.keys() & known.keys():
            del new[key]
        answers = self._ask_masks(masks[np.fromiter(new.values(), np.intp, len(new))], rng)
        known.update(zip(new, range(len(known), len(known) + len(new)), strict=True))
        self.memory.answers = np.concatenate([self.memory.answers, answers])
        return self.memory.answers[np.fromiter(map(known.__getitem__, keys), np.intp, len(keys))]

    def _streamed(self, what: str, rng: np.random.Generator, ask: Callable[[], Floats]) -> Floats:
        """Random inputs are the same inputs only when asked with the generator in the same state: that is their key."""
        key = f"{what}-{rng.bit_generator.state}"
        if key not in self.memory.streams:
            self.memory.streams[key] = (ask(), dict(rng.bit_generator.state))
        answers, state = self.memory.streams[key]
        rng.bit_generator.state = state
        return answers

    def _ask_masks(self, masks: Masks, rng: np.random.Generator) -> Floats:
        """Through the model's shortcut for such parts where it has one that says what the model says, else by composing."""
        shortcut = self._shortcut(masks, rng) if len(masks) >= WORTH_OPENING else None
        if shortcut is None:
            return self._ask(len(masks), lambda part: self.parts.compose(masks[part], rng))
        return self._ask(len(masks), lambda part: masks[part], shortcut)

    def _shortcut(self, masks: Masks, rng: np.random.Generator) -> Callable[[Masks], Floats] | None:
        if self.memory.shortcut is None:
            found = self.model.opened(self.parts)
            if found is not None:
                probes = masks[np.linspace(0, len(masks) - 1, PROBES).astype(np.intp)]
                plain = self._model(self.parts.compose(probes, rng))
                found = found if np.allclose(found(probes), plain, rtol=0, atol=1e-9 * max(np.abs(plain).max(), 1)) else None
            self.memory.shortcut = (found,)
        return self.memory.shortcut[0]

    def _ask(self, n: int, rows: Callable[[slice], Batch], model: Callable[[Any], Floats] | None = None,
             answered: Floats = _NOTHING) -> Floats:
        """(n, watched) answers; `answered` are those of the first inputs, for all classes, where they are known already."""
        answers = np.empty((n, len(self.memory.watched)))
        answers[:len(answered)] = answered[:, list(self.memory.watched)] if len(answered) else 0
        for part in self._chunks(n, len(answered)):
            answers[part] = self._model(rows(part), model)[:, list(self.memory.watched)]
        return answers

    def _model(self, batch: Batch, model: Callable[[Any], Floats] | None = None) -> Floats:
        scores = (model or self.model)(batch)
        if max(self.memory.watched) >= scores.shape[1]:
            raise ValueError(f"target must be an index from 0 to {scores.shape[1] - 1}, got {max(self.memory.watched)}")
        self.memory.calls += len(scores)
        if self.on_calls is not None:
            self.on_calls(len(scores))
        return scores

    def _chunks(self, n: int, first: int = 0) -> Iterator[slice]:
        size = self.batch_size or _default_batch(self.parts, str(getattr(self.model.function, "home", "cpu")))
        for start in range(first, n, size):
            yield slice(start, min(start + size, n))


def _drawing(n: int, rng: np.random.Generator) -> str:
    return f"{n}-{rng.bit_generator.state}"


def _one_batch(first: Any, second: Any) -> Any:
    """Two batches of one kind, one after the other."""
    if isinstance(first, list):
        return first + second
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    return need("pandas", "tables").concat([first, second], ignore_index=True)


def _default_batch(parts: Parts, device: str) -> int:
    """So many inputs that a model works on what its processor keeps at hand; a small model still gets thousands.

    Nets take images as 32-bit floats, and on a processor their layers are fastest while a layer's values stay in its cache:
    two images of 224 × 224 pixels took half the time an image of batches of eight and more.
    """
    if parts.domain == "tabular":
        size, limit = 8 * len(parts.names), 4 << 20
    else:
        one = parts.compose(np.ones((1, len(parts.names)), bool), generator(0))
        size, limit = one.nbytes if isinstance(one, np.ndarray) else len(one[0]) if isinstance(one, list) else 1024, 4 << 20
        if parts.domain == "image" and isinstance(one, np.ndarray):
            size, limit = 4 * one.size, 5 << 18 if device == "cpu" else 1 << 25
    return int(np.clip(limit // max(size, 1), 1, 8192))
