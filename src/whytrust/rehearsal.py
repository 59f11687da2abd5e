"""How long would it take? A model that is asked in earnest a few times, and then repeats itself while a clock runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from whytrust.core import Batch, Floats
from whytrust.explanation import Explanation
from whytrust.question import Question

EARNEST = 3
"""How often a kind of call is made in earnest at least."""
ENOUGH = 0.5
"""Seconds in earnest after which the time of a kind of call is known."""


@dataclass(frozen=True)
class Patience:
    """How much of a kind of call is made in earnest: so many inputs at least, and so many seconds at least."""

    inputs: int = 1
    seconds: float = ENOUGH


EXPLAINING = Patience()
TRYING = Patience(250, 3.0)
"""Of attacks and trials: what comes of them decides what is asked next, so that only slow models repeat themselves."""


@dataclass
class Clock:
    """What calls have cost, and the time of those that were not made."""

    now: Callable[[], float] = time.monotonic
    skipped: float = 0.0
    earnest: int = 0  # calls that were made
    _known: dict[Any, list[tuple[int, float]]] = field(default_factory=dict)  # (inputs, seconds) of each call of a kind
    _said: dict[Any, Any] = field(default_factory=dict)

    def call(self, kind: Any, make: Callable[[], Any], inputs: int = 1, patience: Patience = EXPLAINING) -> Any:
        """What `make` gives; once the time of this kind of call is known, what it gave before."""
        return self.again(kind, inputs) if self.knows(kind, inputs, patience) else self.made(kind, make, inputs)

    def knows(self, kind: Any, inputs: int, patience: Patience = EXPLAINING) -> bool:
        """Were enough calls of this kind made? Batches are of one kind while less than twice as large as each other."""
        took = self._known.get((kind, inputs.bit_length()), [])
        return (len(took) >= EARNEST and sum(asked for asked, _ in took) >= patience.inputs
                and sum(seconds for _, seconds in took) >= patience.seconds)

    def made(self, kind: Any, make: Callable[[], Any], inputs: int = 1) -> Any:
        """What `make` gives, and the time is taken."""
        start, key = self.now(), (kind, inputs.bit_length())
        self._said[key] = make()
        self._known.setdefault(key, []).append((inputs, self.now() - start))
        self.earnest += 1
        return self._said[key]

    def again(self, kind: Any, inputs: int = 1) -> Any:
        """What a call of a known kind gave; its time, which goes by the number of inputs, is put on the clock."""
        key = kind, inputs.bit_length()
        asked, seconds = (sum(values) for values in zip(*self._known[key][1:], strict=True))  # the first one warms up
        self.skipped += inputs * seconds / asked
        return self._said[key]


def slowed(model: Any, clock: Clock) -> Any:
    """A model for attacks and trials in a dry run: it repeats itself only where it is slow; None stays None."""
    return None if model is None else replace(model, function=_Repeating(model.function, clock, patience=TRYING))


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """An explainer that is counted and timed, whatever it finds: it asks as often as ever, and is soon answered from memory."""

    explainer: Any
    clock: Clock

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """An explanation that is worth nothing, at the price of a true one on the clock."""
        model = replace(question.model, function=_Repeating(earnest(question.model.function)[0], self.clock))
        found: Explanation = self.explainer(replace(question, model=model), rng)
        return found


@dataclass(frozen=True, eq=False)
class _Repeating:
    """A model's function, whose calls and gradients go by the clock; everything else of it is as it was."""

    function: Any
    clock: Clock
    of_rule: str = ""
    patience: Patience = EXPLAINING

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # whoever copies or prints this means this
        return getattr(self.function, name)

    def __call__(self, batch: Batch) -> Any:
        """Scores, which are as many as inputs, whatever batch they were given for."""
        kind, inputs = _kind(batch)
        return _of(inputs, self.clock.call(("scores", *kind), lambda: self.function(batch), inputs, self.patience))

    def pullback(self, batch: Batch, preprocess: Any = None) -> tuple[Floats, Any]:
        """Outputs, and a gradient that is taken at once, so that forward and backward pass are one call.

        Whose patience is longer, such as an attack, gets the gradient that it asks for while calls are in earnest.
        """
        kind, inputs = _kind(batch)
        if self.patience is not EXPLAINING:
            return self._step(batch, preprocess, (self.of_rule, *kind), inputs)

        def both() -> tuple[Any, Any]:
            outputs, pull = self.function.pullback(batch, preprocess)
            return outputs, getattr(pull, "last", pull)(np.ones(np.shape(outputs)))

        outputs, gradient = self.clock.call(("gradient", self.of_rule, *kind), both, inputs)
        return _of(inputs, outputs), lambda weights: np.array(_of(inputs, gradient))

    def _step(self, batch: Batch, preprocess: Any, kind: Any, inputs: int) -> tuple[Floats, Any]:
        forward, backward = ("forward", *kind), ("backward", *kind)
        if self.clock.knows(forward, inputs, self.patience) and self.clock.knows(backward, inputs):
            outputs, _ = self.clock.again(forward, inputs)
            return _of(inputs, outputs), lambda weights: np.array(_of(inputs, self.clock.again(backward, inputs)))
        outputs, pull = self.clock.made(forward, lambda: self.function.pullback(batch, preprocess), inputs)
        return outputs, lambda weights: self.clock.made(backward, lambda: getattr(pull, "last", pull)(weights), inputs)

    def ruled(self, rule: str) -> _Repeating:
        """The same with another backward pass."""
        return replace(self, function=self.function.ruled(rule), of_rule=rule)

    def settled(self, given: Any, preprocess: Any) -> _Repeating:
        """The same for floats in the units of these inputs, where the function makes a difference."""
        offer = getattr(self.function, "settled", None)
        return self if offer is None else replace(self, function=offer(given, preprocess))


def earnest(function: Any) -> tuple[Any, bool]:
    """(a model's function itself, whether this one only rehearses it): what is kept for one must not serve the other."""
    return (function.function, True) if isinstance(function, _Repeating) else (function, False)


@dataclass
class Watched:
    """The adversaries of a study, and what it took to make them."""

    adversaries: Any
    clock: Clock
    calls: int = 0
    seconds: float = 0.0

    def __call__(self, model: Any, given: Any, ids: Any, strength: str, seed: int, on_calls: Callable[[int], None]) -> Any:
        """As they come."""
        def counted(calls: int) -> None:
            self.calls += calls
            on_calls(calls)

        start = self.clock.now() + self.clock.skipped
        found = self.adversaries(model, given, ids, strength, seed, counted)
        self.seconds += self.clock.now() + self.clock.skipped - start
        return found

    def share(self, ids: Sequence[str], tried: int) -> float:
        """How much more work all inputs are than the first few: by their number, or by the length of what is attacked."""
        length: Callable[[Sequence[str]], int] = getattr(self.adversaries, "length", len)
        whole: Callable[[Sequence[str]], int] = getattr(getattr(self.adversaries, "whole", None), "length", length)
        return whole(ids) / max(length(ids[:tried]), 1)


def _kind(batch: Batch) -> tuple[tuple[Any, ...], int]:
    """(what the time of a call depends on beside the number of inputs, as far as is known; that number)."""
    given = batch.array if isinstance(batch, tuple) and hasattr(batch, "array") else batch
    if isinstance(given, Mapping) and given:
        kinds = {name: _kind(values) for name, values in given.items()}
        return (type(given), *((name, *kind) for name, (kind, _) in kinds.items())), next(iter(kinds.values()))[1]
    shape = getattr(given, "shape", (len(given),))
    return (type(given), *shape[1:]), int(shape[0])


def _of(inputs: int, said: Any) -> Any:
    """What was said of a batch of another size, for so many inputs."""
    return said if len(said) == inputs else np.take(said, np.arange(inputs) % len(said), axis=0)
