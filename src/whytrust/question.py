"""A question about a model in terms of an input's parts; what it has answered is remembered, and shared by all who ask."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from whytrust.batches import default_batch, one_batch
from whytrust.checked import CheckedModel
from whytrust.core import Batch, DrawnParts, Draws, Floats, Masks, Parts, check_masks, generator

R = TypeVar("R")
WORTH_OPENING = 64
"""With fewer masks than this a model is not opened: checking the shortcut would cost as much as it saves."""
PROBES = 5
"""Masks on which a shortcut must say what the model says before it is believed."""
BLOCK = 1 << 22
"""Bytes of inputs that are composed at once where batches are smaller."""
ROUNDED, ROUNDED_SINGLE = 1e-12, 1e-6
"""Scores that differ by no more than this share of them differ by rounding: of a model in double, and in single precision."""
FINE = 2.0**-28
"""What is left of 1 beside a score nearer to 1 than this fits into single precision, whatever the model counts in."""
_NOTHING = np.empty((0, 0))
_UNUSED = generator(0)
"""For parts that draw nothing."""


@dataclass
class Shortcut:
    """A model asked about masks themselves; believed as soon as it says of `masks` what the model said, `scores`."""

    opened: Callable[[Masks], Floats]
    masks: Masks
    scores: Floats
    believed: bool = False

    def __call__(self, masks: Masks) -> Floats | None:
        """The scores of these masks; None where the shortcut is wrong. It is checked in the same batch as it is first used."""
        if self.believed:
            return self.opened(masks)
        try:
            found = self.opened(np.vstack([self.masks, masks]))
        except Exception:  # whatever it may raise, the model itself will be asked
            return None
        single = np.array_equal(self.scores, self.scores.astype(np.float32))  # then batches of other sizes round differently
        near = (1e-5 if single else 1e-9) * max(np.abs(self.scores).max(initial=0.0), 1)
        same_shape = found.shape == (len(self.masks) + len(masks), self.scores.shape[1])
        self.believed = same_shape and np.allclose(found[:len(self.masks)], self.scores, rtol=0, atol=near)
        return found[len(self.masks):] if self.believed else None


@dataclass
class Range:
    """The least and the greatest score of each class over all inputs that the model was asked about."""

    least: Floats = field(default_factory=lambda: np.empty(0))
    greatest: Floats = field(default_factory=lambda: np.empty(0))
    asked: int = 0
    single: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=bool))  # does every score come of float32?
    shares: bool = True  # do the scores of two classes add up to 1?
    whole: bool = True  # is every score a whole number?
    unit: float = 0.0  # changes are held against this, where it is more than the scores: 1 of log-odds, which may be near 0

    def add(self, scores: Floats, single: bool = False) -> None:
        """Take in scores, (n, classes); `single` where they come from a model that counts in single precision."""
        if not len(scores):
            return
        first = self.asked == 0 or self.least.shape != scores.shape[1:]
        low, high = scores.min(axis=0), scores.max(axis=0)
        self.least = low if first else np.minimum(self.least, low)
        self.greatest = high if first else np.maximum(self.greatest, high)
        self.asked = len(scores) + (0 if first else self.asked)
        with np.errstate(over="ignore"):
            fits = (scores.astype(np.float32) == scores).all(axis=0) | single
        self.single = fits if first else self.single & fits
        self.shares = self.shares and scores.shape[1:] == (2,) and bool((np.abs(scores.sum(axis=1) - 1) < 1e-15).all())
        self.whole = self.whole and bool((scores == np.rint(scores)).all())

    def constant(self, target: int) -> bool:
        """Was the score of this class the same, but for rounding, whenever the model was asked?"""
        if self.asked < 2:
            return False
        low, high = float(self.least[target]), float(self.greatest[target])
        return high - low <= self.rounding(target) * max(abs(low), abs(high), self.unit)

    def rounding(self, target: int) -> float:
        """The share of a class's scores that is rounding."""
        other = self.shares and bool(self.single[1 - target]) and float(self.greatest[target]) < 1 - FINE
        return ROUNDED_SINGLE if (bool(self.single[target]) or other) and not self.whole else ROUNDED

    def beyond(self, target: int, limit: float) -> bool:
        """Did the score of this class come to ± `limit`?"""
        return self.asked > 0 and bool(max(-self.least[target], self.greatest[target]) >= limit)


@dataclass
class Memory:
    """What a model has already said about one input; shared by every question about it."""

    watched: tuple[int, ...]
    answers: Floats = field(default_factory=lambda: np.empty((0, 0)))
    streams: dict[str, tuple[Floats, dict[str, Any]]] = field(default_factory=dict)
    foreseen: dict[str, tuple[Any, dict[str, Any]]] = field(default_factory=dict)
    worked: dict[str, Any] = field(default_factory=dict)  # what explainers have worked out and may share
    ahead: tuple[Any, Floats] | None = None  # what was asked beside the input itself, and the scores of all classes
    shortcut: Shortcut | None = None
    sought: bool = False  # was a shortcut looked for?
    original: Floats | None = None
    calls: int = 0
    seen: Range = field(default_factory=Range)
    batch: int = 0  # the default batch size, once it is known
    filed: dict[bytes, int] = field(default_factory=dict)  # a mask's row of `answers`
    unfiled: list[Iterable[bytes]] = field(default_factory=list)  # the masks of the rows that follow, until one is looked up

    @property
    def known(self) -> dict[bytes, int]:
        """A mask's row of `answers`."""
        for keys in self.unfiled:
            self.filed.update(zip(keys, itertools.count(len(self.filed))))
        self.unfiled.clear()
        return self.filed

    def learn(self, keys: Iterable[bytes], scores: Floats) -> None:
        """Keep the scores, of the watched classes, of masks that were not known before."""
        self.answers = np.concatenate([self.answers, scores]) if len(self.answers) else scores
        self.unfiled.append(keys)


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
        before = self.memory
        memory = Memory(tuple(targets), original=before.original, calls=before.calls, shortcut=before.shortcut,
                        sought=before.sought, foreseen=before.foreseen, ahead=before.ahead, batch=before.batch,
                        worked=before.worked, seen=before.seen)
        if before.original is not None and before.ahead is not None and isinstance(before.ahead[0], list):
            memory.learn([_whole(self.d), *before.ahead[0]],
                         np.vstack([before.original, before.ahead[1]])[:, list(targets)])
            memory.ahead = None
        return [replace(self, target=t, memory=memory) for t in targets]

    def of_log_odds(self) -> Question:
        """The same question about the target's log-odds; what is answered is shared by all who ask so."""
        watched = self.memory.watched
        memory = self.once(f"log-odds {watched}", lambda: Memory(watched, foreseen=self.memory.foreseen, seen=Range(unit=1.0)))
        return replace(self, model=self.model.log_odds, memory=memory)

    def swapped(self, parts: Parts, place: int, original: Floats) -> Question:
        """The same question of parts that differ at one place alone; `original` is what the model says of that input.

        Masks that hide the place show the same input as before, so what was answered of them is known.
        """
        memory = Memory(self.memory.watched, original=original, foreseen=self.memory.foreseen, batch=self.memory.batch,
                        seen=replace(self.memory.seen))
        memory.seen.add(original[None])
        known, width = self.memory.known, -(-self.d // 8)
        octets = np.frombuffer(b"".join(known), np.uint8).reshape(-1, width)
        hidden = np.flatnonzero((octets[:, place // 8] >> (7 - place % 8)) & 1 == 0)
        keys = list(known)
        memory.learn([_whole(self.d), *(keys[i] for i in hidden)],
                     np.vstack([original[None, list(memory.watched)], self.memory.answers[hidden]]))
        return replace(self, parts=parts, memory=memory)

    def only_rounding(self, changes: Floats) -> bool:
        """Are these changes of the target's score nothing but rounding, since it was the same whenever the model was asked?"""
        small = np.abs(changes) <= 10 * ROUNDED_SINGLE * max(abs(float(self.original[self.target])), self.memory.seen.unit)
        return bool(small.all()) and self.memory.seen.constant(self.target)

    def unmoved(self, changes: Floats, rng: np.random.Generator) -> bool:
        """The same, where hiding every part does not change the score either.

        For methods that hide few parts at once: parts that stand in for each other move the score only together.
        """
        if self.only_rounding(changes):
            self.score(np.zeros((1, self.d), dtype=bool), rng)
        return self.only_rounding(changes)

    def calls_beside(self, other: Question) -> int:
        """Model calls of this question and of the other, which may be the same."""
        return self.memory.calls + (other.memory.calls if other.memory is not self.memory else 0)

    @property
    def d(self) -> int:
        """The number of parts."""
        return len(self.parts.names)

    @property
    def input(self) -> Batch:
        """A batch of one: the input itself, as the parts compose it."""
        return self.parts.compose(np.ones((1, self.d), bool), _UNUSED if self.parts.deterministic else generator(0))

    @property
    def original(self) -> Floats:
        """The model's scores of the input itself, (classes,)."""
        if self.memory.original is None:
            self.memory.original = self._model(self.input)[0]
        # Kept as the answer to the mask of ones too, so that the input itself is never asked twice.
        if not len(self.memory.answers):
            self.memory.learn([_whole(self.d)], self.memory.original[None, list(self.memory.watched)])
        return self.memory.original

    def score(self, masks: Masks, rng: np.random.Generator) -> Floats:
        """The target's score for each mask; `rng` is used only by fills that draw."""
        return self.answers(masks, rng)[:, self._column]

    def answers(self, masks: Masks, rng: np.random.Generator) -> Floats:
        """(n, watched) scores of every class that is watched; `rng` is used only by fills that draw."""
        masks = check_masks(masks, self.d)
        if self.parts.deterministic:
            return self._remembered(masks, rng)
        answers = np.empty((len(masks), len(self.memory.watched)))
        whole = masks.all(axis=1)
        if whole.any():
            answers[whole] = self.original[list(self.memory.watched)]
        asked = masks[~whole]
        key = hashlib.blake2b(np.packbits(asked).tobytes(), digest_size=16).hexdigest()
        answers[~whole] = self._streamed(f"{type(self.parts).__name__}-{key}-{len(asked)}", rng, lambda: self._ask(
            len(asked), _InBlocks(self.parts, asked, rng)))
        return answers

    def passing(self, n: int, masks: Callable[[slice], Masks], rng: np.random.Generator) -> Iterator[tuple[slice, Floats]]:
        """(which, their scores of the watched classes) of n masks made batch by batch, asked and forgotten.

        For walks over so many parts, or steps, that to remember each mask would take more room than it saves calls.
        """
        for part in self._chunks(n):
            yield part, self._model(self.parts.compose(masks(part), rng))[:, list(self.memory.watched)]

    def outputs(self, masks: Masks) -> Floats:
        """(n, watched) scores of every class that is watched; of masks that are there twice, or known, none is asked again."""
        if not self.parts.deterministic:
            raise TypeError(f"{type(self.parts).__name__} fills hidden parts at random; only parts that do not are remembered")
        return self.answers(masks, _UNUSED)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Draws, Floats]:
        """n drawn inputs and the target's score of each."""
        if not isinstance(self.parts, DrawnParts):
            raise TypeError(f"{type(self.parts).__name__} hides parts; only parts with draw() can be drawn from")
        start = rng.bit_generator.state
        draws = self.foresee(f"draw-{n}", rng, lambda: cast(DrawnParts, self.parts).draw(n, rng))
        after, rng.bit_generator.state = rng.bit_generator.state, start
        answered = self.memory.ahead[1] if self.memory.ahead is not None and self.memory.ahead[0] is draws else _NOTHING
        scores = self._streamed(f"draw-{n}", rng, lambda: self._ask(n, draws.rows, answered=answered))
        rng.bit_generator.state = after
        return draws, scores[:, self._column]

    def foresee(self, what: str, rng: np.random.Generator, work_out: Callable[[], R]) -> R:
        """What `work_out` draws from `rng`, worked out once and the same for every target."""
        key = f"{what}-{rng.bit_generator.state}"
        if key not in self.memory.foreseen:
            self.memory.foreseen[key] = work_out(), dict(rng.bit_generator.state)
        found, rng.bit_generator.state = self.memory.foreseen[key]
        return cast(R, found)

    def once(self, key: str, work: Callable[[], R]) -> R:
        """What `work` gives, worked out once for all who ask about this input."""
        if key not in self.memory.worked:
            self.memory.worked[key] = work()
        return cast(R, self.memory.worked[key])

    def ask_ahead(self, first: Masks | Draws) -> None:
        """Ask about the input itself and the first of these in one batch, before the target is known.

        Some models (a forest of many trees) take as long for one input as for a thousand.
        """
        if self.memory.original is not None or self.batch_size == 1:
            return
        rng, ones = generator(0), np.ones((1, self.d), bool)
        if isinstance(first, Draws):
            most = next(self._chunks(len(first))).stop - (self.batch_size is not None)  # a user's size holds for both together
            scores = self._model(one_batch(self.parts.compose(ones, rng), first.rows(slice(0, most))))
            self.memory.original, self.memory.ahead = scores[0], (first, scores[1:])
        elif self.parts.deterministic and len(first):
            opened = self.model.opened(self.parts) if len(first) >= WORTH_OPENING else None
            keys, masks = distinct(first if opened is None else _probes(first))
            masks = masks[: next(self._chunks(len(masks) + 1)).stop - 1]
            scores = self._model(self.parts.compose(np.vstack([ones, masks]), rng))
            self.memory.original, self.memory.ahead = scores[0], (keys[:len(masks)], scores[1:])
            self.memory.shortcut = Shortcut(opened, masks, scores[1:]) if opened is not None and len(masks) else None
            self.memory.sought = len(first) >= WORTH_OPENING

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
        keys, known = _keys(masks), self.memory.known
        if len(known) >= len(keys) and None not in (rows := list(map(known.get, keys))):
            return self.memory.answers[np.array(rows, np.intp)]
        new = dict(zip(keys, range(len(keys)), strict=True))
        old = {key: new.pop(key) for key in new.keys() & known.keys()}
        if not self.memory.sought and len(new) >= WORTH_OPENING:
            self._seek_shortcut(masks[list(new.values())], rng)
            known = self.memory.known
            old |= {key: new.pop(key) for key in new.keys() & known.keys()}
        asked = np.fromiter(new.values(), np.intp, len(new))
        answers = self._ask_masks(masks[asked], rng)
        self.memory.learn(new, answers)
        if len(new) + len(old) < len(keys):  # some are there twice
            return self.memory.answers[np.fromiter(map(self.memory.known.__getitem__, keys), np.intp, len(keys))]
        found = np.empty((len(keys), answers.shape[1]))
        found[asked] = answers
        found[list(old.values())] = self.memory.answers[[known[key] for key in old]]
        return found

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
        shortcut = self.memory.shortcut
        if shortcut is not None and len(masks):
            probes = 0 if shortcut.believed else len(shortcut.masks)
            first = shortcut(masks[:max(next(self._chunks(len(masks) + probes)).stop - probes, 1)])
            if first is not None:
                return self._ask(len(masks), lambda part: masks[part], shortcut.opened, self._counted(first))
            self.memory.shortcut = None
        return self._ask(len(masks), _InBlocks(self.parts, masks, rng))

    def _seek_shortcut(self, masks: Masks, rng: np.random.Generator) -> None:
        """Open the model where that can be done, and ask it what the shortcut will be checked on."""
        opened, (keys, probes) = self.model.opened(self.parts), distinct(_probes(masks))
        if opened is not None and len(probes):
            scores = self._model(self.parts.compose(probes, rng))
            self.memory.shortcut = Shortcut(opened, probes, scores)
            self.memory.learn(keys, scores[:, list(self.memory.watched)])
        self.memory.sought = True

    def _ask(self, n: int, rows: Callable[[slice], Batch], model: Callable[[Any], Floats] | None = None,
             answered: Floats = _NOTHING) -> Floats:
        """(n, watched) answers; `answered` are those of the first inputs, for all classes, where they are known already."""
        answers = np.empty((n, len(self.memory.watched)))
        answers[:len(answered)] = answered[:, list(self.memory.watched)] if len(answered) else 0
        for part in self._chunks(n, len(answered)):
            answers[part] = self._model(rows(part), model)[:, list(self.memory.watched)]
        return answers

    def _model(self, batch: Batch, model: Callable[[Any], Floats] | None = None) -> Floats:
        return self._counted((model or self.model)(batch))

    def _counted(self, scores: Floats) -> Floats:
        """The same scores, with the right number of classes, and counted."""
        if max(self.memory.watched) >= scores.shape[1]:
            raise ValueError(f"target must be an index from 0 to {scores.shape[1] - 1}, got {max(self.memory.watched)}")
        self.count(len(scores))
        self.memory.seen.add(scores, getattr(self.model.function, "single_precision", False))
        return scores

    def count(self, calls: int) -> None:
        """The model was asked about so many inputs."""
        self.memory.calls += calls
        if self.on_calls is not None:
            self.on_calls(calls)

    @contextmanager
    def expecting(self, calls: int) -> Iterator[None]:
        """Inside, the model will be asked about so many inputs: whoever shows progress may say how long that takes."""
        expect = getattr(self.on_calls, "expect", None)
        with nullcontext() if expect is None else expect(calls):
            yield

    def _chunks(self, n: int, first: int = 0) -> Iterator[slice]:
        if not self.batch_size and not self.memory.batch:
            self.memory.batch = default_batch(self.parts, str(getattr(self.model.function, "home", "cpu")))
        size = self.batch_size or self.memory.batch
        for start in range(first, n, size):
            yield slice(start, min(start + size, n))


@dataclass
class _InBlocks:
    """The inputs of batch after batch of masks, composed for several batches at once while their pieces are in the cache."""

    parts: Parts
    masks: Masks
    rng: np.random.Generator
    start: int = 0
    block: Any = ()
    room: int = 0  # inputs that a block may have; not known before the first

    def __call__(self, part: slice) -> Batch:
        if part.stop > self.start + len(self.block):
            stop = part.start + max(self.room // (part.stop - part.start), 1) * (part.stop - part.start)
            self.start, self.block = part.start, self.parts.compose(self.masks[part.start:stop], self.rng)
            self.room = BLOCK // max(self.block[0].nbytes, 1) if isinstance(self.block, np.ndarray) else 0
        whole = part.stop - part.start == len(self.block)
        return self.block if whole else self.block[part.start - self.start:part.stop - self.start]


def _keys(masks: Masks) -> list[bytes]:
    """A name for each mask."""
    packed = np.packbits(masks, axis=1)
    return cast(list[bytes], packed.view(f"V{packed.shape[1]}").ravel().tolist())


def _whole(d: int) -> bytes:
    """The name of the mask that hides nothing."""
    return np.packbits(np.ones(d, bool)).tobytes()


def _probes(masks: Masks) -> Masks:
    """A few masks out of many, to check a shortcut on; not the input itself."""
    changed = np.flatnonzero(~masks.all(axis=1))
    return masks[changed[np.linspace(0, len(changed) - 1, PROBES).astype(np.intp)] if len(changed) else changed]


def distinct(masks: Masks) -> tuple[list[bytes], Masks]:
    """Each mask once, and its name, without the one that hides nothing."""
    each = dict(zip(_keys(masks), range(len(masks)), strict=True))
    each.pop(_whole(masks.shape[1]), None)
    return list(each), masks[np.fromiter(each.values(), np.intp, len(each))]
