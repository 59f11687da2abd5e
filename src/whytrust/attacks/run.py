"""One attack from end to end: prepare, ask the model, search, and ask it afresh whether it was fooled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whytrust.attacks import prepare
from whytrust.attacks.ball import Bounds, check_whole, norms, own_bounds, settle_bounds, span_of
from whytrust.attacks.engine import Found, Item, Method, OnCalls, Pursuit, batch_size_for, reached
from whytrust.attacks.result import Attacked, Outcome
from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import Floats, generator


def run(method: Method, model: CheckedModel, inputs: Any, targets: Any, seed: int, *, inside: Any = None,
        ids: Sequence[str | int] | None = None, batch_size: int | None = None, on_calls: OnCalls | None = None) -> Attacked:
    """Attack every input, and report each with what the model says of it before and after.

    `inputs` is an array with one input a row or a list of arrays. `targets` is None (away from what the model says now),
    "random", a class, or one class (or None) each. `inside` says where inputs may change: booleans shaped like an input or
    like its pixels, or one such array each. The random start and target of input i come from (seed, ids[i]); ids are positions
    unless given, and with ids of your own an input has the same ones in any order. A failed input is in `errors`, the others go
    on; if all fail the first error is raised.
    """
    work = _Work(method, prepare.differentiable(model), int(seed), batch_size, on_calls or (lambda calls: None), {})
    generator(seed)
    if batch_size is not None:
        check_whole("batch_size", batch_size)
    if method.seeks_truth and targets is None:
        raise ValueError(f"{type(method).__name__} moves inputs towards their true labels; pass them as targets, one each")
    return work(inputs, targets, inside, ids)


@dataclass(frozen=True)
class _Work:
    """One call of an attack."""

    method: Method
    model: DifferentiableModel
    seed: int
    batch_size: int | None
    on_calls: OnCalls
    errors: prepare.Errors

    def __call__(self, inputs: Any, targets: Any, inside: Any, ids: Sequence[str | int] | None) -> Attacked:
        given = prepare.arrays(inputs, self.errors)
        n = len(given)
        known = prepare.settle_ids(ids, n)
        arrays = [a for a in given if a is not None]
        bounds = settle_bounds(own_bounds(self.method, getattr(self.model.function, "limits", None), arrays), arrays)
        clean: dict[int, Floats] = {}
        for i, array in enumerate(given):
            if array is not None:
                try:
                    clean[i] = prepare.floats(array, bounds)
                except ValueError as error:
                    self.errors[i] = error
        self._raise_if_all(n)
        # Inputs of bytes are attacked as floats, which must mean the same grey levels to the model.
        model = self.model.settled(max((a for i in clean if (a := given[i]) is not None), key=lambda a: float(a.max()))[None])
        with model.asking():
            return replace(self, model=model)._attacked(clean, targets, inside, known, n, bounds)

    def _attacked(self, clean: dict[int, Floats], targets: Any, inside: Any, known: list[Any], n: int,
                  bounds: Bounds) -> Attacked:
        items = self._items(clean, targets, inside, known, n)
        outcomes: dict[int, Outcome] = {}
        passes = 0
        for group in _by_shape(items):
            ball = self.method.ball(group[0].clean.shape, bounds)
            pursuit = Pursuit(self.method, self.model.raw, ball, self._size(group[0].clean), self.on_calls)
            pursuit.run(group)
            self.errors.update(pursuit.errors)
            passes += pursuit.passes
            outcomes.update(self._verified(group, pursuit))
        self._raise_if_all(n)
        return Attacked(self.method, tuple(outcomes.get(i) for i in range(n)), dict(sorted(self.errors.items())), passes,
                        self.model.name, self.model.classes, bounds, self.seed,
                        logits=self.model.output == "logit")

    def _size(self, array: Floats) -> int:
        return batch_size_for(array.size, self.batch_size)

    def _raise_if_all(self, n: int) -> None:
        if len(self.errors) == n:
            raise self.errors[min(self.errors)]

    def _items(self, clean: dict[int, Floats], targets: Any, inside: Any, ids: list[Any], n: int) -> list[Item]:
        """The inputs that can be attacked: what the model says of them, where they shall go, where they may change."""
        self._raise_if_all(n)
        scores = self._asked(self.model, clean)
        self._raise_if_all(n)
        columns = next(iter(scores.values())).size
        labels = {i: int(self.model.labels(row[None])[0]) for i, row in scores.items()}
        places = prepare.settle_inside(inside, {i: clean[i].shape for i in labels}, n, self.model.layout, self.errors)
        wanted = prepare.settle_targets(self.model, targets, {i: labels[i] for i in places}, columns, n, (self.seed, ids),
                                        self.method.seeks_truth, self.errors)
        return [Item(i, clean[i], places[i], generator(self.seed, "attack", ids[i]), scores[i], labels[i], wanted[i])
                for i in sorted(wanted)]

    def _asked(self, model: CheckedModel, batch: dict[int, Floats]) -> dict[int, Floats]:
        """The scores of each input; of a batch that fails the inputs are asked one by one."""
        found: dict[int, Floats] = {}
        for indices in _batches(batch, self._size):
            for part in (indices, *([i] for i in indices if len(indices) > 1)):
                if part[0] in found:
                    break
                try:
                    rows = model(np.stack([batch[i] for i in part]))
                    self.on_calls(len(part))
                    found.update(zip(part, rows, strict=True))
                except ValueError as error:
                    if len(part) == 1:
                        self.errors[part[0]] = error
        return found

    def _verified(self, items: list[Item], pursuit: Pursuit) -> dict[int, Outcome]:
        """What the model itself, asked afresh, says of the arrays that are returned."""
        moved = {i: found.adversarial for i, found in pursuit.found.items()}
        # Margins are of the model's own scores; where it answers with their softmax, that is worked out from them.
        squashes = self.model.output == "logit"
        own = self._asked(self.model.raw if squashes else self.model, moved)
        scores = {i: self.model.squashed(row[None])[0] for i, row in own.items()} if squashes else own
        return {item.index: self._outcome(item, pursuit, scores[item.index], own[item.index])
                for item in items if item.index in scores and item.index in own}

    def _outcome(self, item: Item, pursuit: Pursuit, scores: Floats, own: Floats) -> Outcome:
        found: Found = pursuit.found[item.index]
        goal, towards = (item.label, False) if item.target is None else (item.target, True)
        label = int(self.model.labels(scores[None])[0])
        goals, way = np.array([goal]), np.array([towards])
        right = (label == goal) == towards
        if self.method.margin > 0:
            right = right and bool(reached(self.model.raw, own[None], goals, way, self.method.margin)[0])
        ahead = float(self.model.raw.margins(own[None], goals)[0])
        linf, l2 = norms(item.clean, found.adversarial)
        span = span_of(pursuit.ball.bounds) or float(item.clean.max()) - float(item.clean.min())
        length = float(np.linalg.norm(item.clean.astype(np.float64)))
        return Outcome(
            item.clean, found.adversarial, right, found.believed, found.iterations, found.flat, item.target, item.label, label,
            item.scores, scores, ahead if towards else -ahead, linf, l2, linf / span if span else float("nan"),
            l2 / length if length else float("nan"), pursuit.ball.radius, pursuit.ball.step,
            pursuit.ball.holds(found.adversarial, linf, l2))


def _by_shape(items: list[Item]) -> Iterator[list[Item]]:
    """Inputs of one shape and type go into one batch; in the order of their first."""
    groups: dict[Any, list[Item]] = {}
    for item in items:
        groups.setdefault((item.clean.shape, item.clean.dtype), []).append(item)
    yield from groups.values()


def _batches(arrays: dict[int, Floats], size: Any) -> Iterator[list[int]]:
    groups: dict[Any, list[int]] = {}
    for i, array in arrays.items():
        groups.setdefault((array.shape, array.dtype), []).append(i)
    for indices in groups.values():
        step = size(arrays[indices[0]])
        for start in range(0, len(indices), step):
            yield indices[start:start + step]
