"""The active set: batches are kept full of inputs that have not reached their goal yet.

A net rounds differently in a batch of another size. So an input's last bits may depend on which others were attacked with it;
the same call always gives the same bits, and a model that computes row by row gives the same bits in any company.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from whytrust.attacks.ball import Ball, Bounds, Inside
from whytrust.checked import RawModel, Refused
from whytrust.core import Floats

OnCalls = Callable[[int], None]
BUDGET = 8 * 3 * 224 * 224
"""Numbers in one batch: 8 colour images of 224 pixels. A net's activations are tens of times that."""
LARGEST = 128
"""Inputs in one batch, however small they are."""


@dataclass(frozen=True, eq=False)
class Item:
    """One input to be attacked, and what the model says of it as it is."""

    index: int
    clean: Floats
    inside: Inside
    rng: np.random.Generator
    scores: Floats  # (classes,)
    label: int
    target: int | None  # None: away from the label


@dataclass(frozen=True, eq=False)
class Found:
    """What the search for one input came to; whether it worked is for a fresh look at the model to say."""

    adversarial: Floats
    iterations: int
    believed: bool  # did the search itself see the goal reached?
    flat: bool  # was the very first gradient zero everywhere?


class Method(Protocol):
    """What the engine needs to know of an attack."""

    seeks_truth: ClassVar[bool]  # towards true labels, which an input may have already

    @property
    def iterations(self) -> int:
        """Steps at most."""
        ...

    @property
    def stop(self) -> str:
        """success: leave at once when the goal is reached; never: take every step."""
        ...

    @property
    def margin(self) -> float:
        """By how much the goal must be reached, in the model's own scores."""
        ...

    @property
    def bounds(self) -> Any:
        """(low, high), None or auto."""
        ...

    def ball(self, shape: tuple[int, ...], bounds: Bounds) -> Ball:
        """How far inputs of this shape may move."""
        ...

    def aim(self, target: int | None, label: int, classes: int) -> tuple[int, bool]:
        """(class, True to move towards it or False to move away)."""
        ...

    def start(self, item: Item, ball: Ball) -> Floats:
        """Where to begin; what leaves the box is clipped."""
        ...

    def move(self, slots: Slots, loss: Loss, ball: Ball) -> None:
        """One step of every input, in place, before it is clipped to its box."""
        ...


@dataclass(frozen=True)
class Loss:
    """Gradient of the loss of every input, as `gradient` × `scale`; the loss is what an attack makes small."""

    gradient: Floats
    scale: Floats  # (n,): the pulled-back weights were divided by this

    def whole(self) -> Floats:
        """The gradient itself."""
        return self.gradient * self.scale.reshape(-1, *[1] * (self.gradient.ndim - 1))


@dataclass
class Slots:
    """The inputs that are attacked now, one row each."""

    items: list[Item]
    clean: Floats
    now: Floats
    low: Floats
    high: Floats
    inside: Inside
    reach: Floats  # (n,) radius of the ball, less what rounding may add
    goals: NDArray[np.intp]
    towards: NDArray[np.bool_]
    taken: NDArray[np.intp]
    flat: NDArray[np.bool_]
    memory: dict[str, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        """How many inputs there are."""
        return len(self.items)

    def remembered(self, name: str) -> Floats:
        """An array like the inputs that a method keeps from step to step; zero for an input that has just come."""
        if name not in self.memory:
            self.memory[name] = np.zeros_like(self.now)
        return self.memory[name]

    def clip(self) -> None:
        """Back into the box; outside `inside` the box is a point."""
        np.maximum(self.now, self.low, out=self.now)
        np.minimum(self.now, self.high, out=self.now)

    def released(self, row: int) -> Floats:
        """The input as it is now. Where it may not change it is the clean one to the bit, signs of zeros too."""
        kept = self.now[row].copy()
        if self.inside is not None:
            kept[~self.inside[row]] = self.clean[row][~self.inside[row]]
        return np.asarray(kept)

    def arrays(self) -> Iterator[tuple[str, Any]]:
        """Every array that has one row an input."""
        for name in ("clean", "now", "low", "high", "inside", "reach", "goals", "towards", "taken", "flat"):
            if getattr(self, name) is not None:
                yield name, getattr(self, name)


def _stacked(masks: list[Inside]) -> Inside:
    given = [mask for mask in masks if mask is not None]  # one call limits all of its inputs or none
    return np.stack(given) if given else None


def batch_size_for(size: int, asked: int | None) -> int:
    """Inputs of `size` numbers that go into one batch, so that memory stays flat."""
    return asked if asked is not None else max(1, min(LARGEST, BUDGET // max(size, 1)))


def reached(model: RawModel, scores: Floats, goals: NDArray[np.intp], towards: NDArray[np.bool_],
            margin: float) -> NDArray[np.bool_]:
    """Which rows have their goal: the class decided for (or not any more), and ahead (or behind) by the margin."""
    right = (model.labels(scores) == goals) == towards
    if margin > 0:
        right &= np.where(towards, 1, -1) * model.margins(scores, goals) >= margin
    return np.asarray(right)


def cross_entropy_slopes(model: RawModel, scores: Floats, goals: NDArray[np.intp]) -> Floats:
    """The derivative of the cross-entropy of logits in floats of 32 bits: 0 where the softmax is 0 or 1 to within rounding."""
    if model.link == "probability":
        raise Refused(f"loss='cross_entropy' must be given logits, {model.name} returns probabilities; pass the net without "
                      "its softmax as wt.model(net, output='logit'), or leave loss out")
    logits = scores.astype(np.float32)
    if scores.shape[1] == 1:
        logits = np.hstack([np.zeros_like(logits), logits])
    shifted = logits - logits.max(axis=1, keepdims=True)
    slopes = np.exp(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
    slopes[np.arange(len(slopes)), goals] -= 1
    return np.asarray(slopes[:, -scores.shape[1]:], dtype=np.float64)


@dataclass
class Pursuit:
    """One method at work on inputs of one shape."""

    method: Method
    model: RawModel
    ball: Ball
    batch_size: int
    on_calls: OnCalls
    found: dict[int, Found] = field(default_factory=dict)
    errors: dict[int, Exception] = field(default_factory=dict)
    passes: int = 0

    def run(self, items: Sequence[Item]) -> None:
        """Attack every item; `found` and `errors` have them all in the end."""
        waiting = iter(items)
        slots = self._load(list(islice(waiting, self.batch_size)))
        while len(slots):
            scores, loss, failed = self._pull(slots)
            done = np.zeros(len(slots), dtype=bool)
            if self.method.stop == "success" and not failed.all():
                done = reached(self.model, scores, slots.goals, slots.towards, self.method.margin) & ~failed
                self._release(slots, done, believed=True)
            # Rows that are done move too: they have been copied, and picking out the others would cost more.
            self.method.move(slots, loss, self.ball)
            slots.clip()
            slots.taken += 1
            spent = (slots.taken >= self.method.iterations) & ~done & ~failed
            self._release(slots, spent, believed=False)
            leaving = done | spent | failed
            if leaving.any():
                slots = self._refill(slots, leaving, waiting)

    def _load(self, items: list[Item]) -> Slots:
        """Rows for these items, at their starting points."""
        clean, inside = np.stack([item.clean for item in items]), _stacked([item.inside for item in items])
        low, high = self.ball.box(clean, inside)
        starts = [self.method.start(item, self.ball) for item in items]
        aims = [self.method.aim(item.target, item.label, len(item.scores)) for item in items]
        n = len(items)
        slots = Slots(
            items, clean, np.stack(starts), low, high, inside, np.array([self.ball.reach(i.clean) for i in items]),
            np.array([a[0] for a in aims], dtype=np.intp), np.array([a[1] for a in aims], dtype=bool),
            np.zeros(n, dtype=np.intp), np.zeros(n, dtype=bool))
        slots.clip()
        return slots

    def _pull(self, slots: Slots) -> tuple[Floats, Loss, NDArray[np.bool_]]:
        """(scores, loss, which inputs failed). Where a batch fails its inputs are asked one by one, to find the bad ones."""
        failed = np.zeros(len(slots), dtype=bool)
        try:
            scores, loss = self._pass(slots.now, slots.goals, slots.towards)
        except ValueError:
            scores, loss = self._one_by_one(slots, failed)
        fresh = slots.taken == 0
        if fresh.any():
            slots.flat[fresh] = ~loss.gradient[fresh].any(axis=tuple(range(1, loss.gradient.ndim)))
        return scores, loss, failed

    def _pass(self, batch: Floats, goals: NDArray[np.intp], towards: NDArray[np.bool_]) -> tuple[Floats, Loss]:
        """One forward and one backward pass.

        Weights are brought to 1 before they are pulled back: a confident net's are so small that float32 would lose them.
        """
        rows, scale = np.arange(len(batch)), np.ones(len(batch))

        def weights(scores: Floats) -> Floats:
            way = np.where(towards, 1.0, -1.0)[:, None]
            if getattr(self.method, "loss", "") == "cross_entropy":
                return cross_entropy_slopes(self.model, scores, goals) * way
            if self.model.link != "probability":
                sign = self.model.toward(scores, goals)
                if scores.shape[1] == 1:
                    scale[:] = np.exp(-np.logaddexp(0, sign * scores))[:, 0]
                    return np.asarray(-sign * way)
                others = scores.copy()
                others[rows, goals] = -np.inf
                ahead = others.max(axis=1)
                shares = np.exp(others - ahead[:, None])
                total = shares.sum(axis=1)
                scale[:] = np.exp(-np.logaddexp(0, scores[rows, goals] - ahead - np.log(total)))
                return np.asarray((shares / total[:, None] - sign) * way)
            slopes = self.model.surprise(scores, goals)[1] * way
            scale[:] = np.abs(slopes).max(axis=1)
            scale[scale == 0] = 1
            return np.asarray(slopes / scale[:, None])

        self.passes += len(batch)
        scores, gradient = self.model.vjp(batch, weights)
        self.on_calls(len(batch))
        return scores, Loss(gradient, scale)

    def _one_by_one(self, slots: Slots, failed: NDArray[np.bool_]) -> tuple[Floats, Loss]:
        scores = np.zeros((len(slots), 1))
        gradient, scale = np.zeros(slots.now.shape), np.ones(len(slots))
        for row in range(len(slots)):
            one = slice(row, row + 1)
            try:
                score, loss = self._pass(slots.now[one], slots.goals[one], slots.towards[one])
            except ValueError as error:
                failed[row] = True
                self.errors[slots.items[row].index] = error
                continue
            if scores.shape[1] != score.shape[1]:
                scores = np.zeros((len(slots), score.shape[1]))
            scores[row], gradient[row], scale[row] = score[0], loss.gradient[0], loss.scale[0]
        return scores, Loss(gradient, scale)

    def _release(self, slots: Slots, rows: NDArray[np.bool_], believed: bool) -> None:
        for row in np.flatnonzero(rows).tolist():
            self.found[slots.items[row].index] = Found(
                slots.released(row), int(slots.taken[row]), believed, bool(slots.flat[row]))

    def _refill(self, slots: Slots, leaving: NDArray[np.bool_], waiting: Iterator[Item]) -> Slots:
        """The next inputs take the places of those that leave; places that nobody takes are closed."""
        places = np.flatnonzero(leaving)
        coming = list(islice(waiting, len(places)))
        if coming:
            filled, fresh = places[: len(coming)], self._load(coming)
            for (_, old), (_, new) in zip(slots.arrays(), fresh.arrays(), strict=True):
                old[filled] = new
            for kept in slots.memory.values():
                kept[filled] = 0
            for row, item in zip(filled, coming, strict=True):
                slots.items[row] = item
        if len(coming) == len(places):
            return slots
        stay = np.ones(len(slots), dtype=bool)
        stay[places[len(coming):]] = False
        for name, array in slots.arrays():
            setattr(slots, name, array[stay])
        slots.memory = {name: kept[stay] for name, kept in slots.memory.items()}
        slots.items = [item for item, s in zip(slots.items, stay, strict=True) if s]
        return slots
