"""How long would it take? A model that is asked in earnest a few times, and then repeats itself while a clock runs on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
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


@dataclass
class Clock:
    """What calls have cost, and the time of those that were not made."""

    now: Callable[[], float] = time.monotonic
    skipped: float = 0.0
    _known: dict[Any, list[float]] = field(default_factory=dict)
    _said: dict[Any, Any] = field(default_factory=dict)

    def call(self, kind: Any, make: Callable[[], Any]) -> Any:
        """What `make` gives; once the time of this kind of call is known, what it gave before."""
        took = self._known.setdefault(kind, [])
        if len(took) >= EARNEST and sum(took) >= ENOUGH:
            self.skipped += sum(took[1:]) / len(took[1:])  # the first one warms up
            return self._said[kind]
        start = self.now()
        self._said[kind] = make()
        took.append(self.now() - start)
        return self._said[kind]


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """An explainer that is counted and timed, whatever it finds: it asks as often as ever, and is soon answered from memory."""

    explainer: Any
    clock: Clock

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """An explanation that is worth nothing, at the price of a true one on the clock."""
        model = replace(question.model, function=_Repeating(question.model.function, self.clock))
        found: Explanation = self.explainer(replace(question, model=model), rng)
        return found


@dataclass(frozen=True, eq=False)
class _Repeating:
    """A model's function, whose calls and gradients go by the clock; everything else of it is as it was."""

    function: Any
    clock: Clock
    of_rule: str = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # whoever copies or prints this means this
        return getattr(self.function, name)

    def __call__(self, batch: Batch) -> Any:
        return self.clock.call(("scores", *_shape(batch)), lambda: self.function(batch))

    def pullback(self, batch: Batch, preprocess: Any = None) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Outputs, and a gradient that is taken at once, so that forward and backward pass are one call."""
        def both() -> tuple[Any, Any]:
            outputs, pull = self.function.pullback(batch, preprocess)
            return outputs, getattr(pull, "last", pull)(np.ones(np.shape(outputs)))

        outputs, gradient = self.clock.call(("gradient", self.of_rule, *_shape(batch)), both)
        return outputs, lambda weights: np.array(gradient)

    def ruled(self, rule: str) -> _Repeating:
        """The same with another backward pass."""
        return _Repeating(self.function.ruled(rule), self.clock, rule)


def earnest(function: Any) -> tuple[Any, bool]:
    """(a model's function itself, whether this one only rehearses it): what is kept for one must not serve the other."""
    return (function.function, True) if isinstance(function, _Repeating) else (function, False)


@dataclass
class Watched:
    """The adversaries of a study, made in earnest, and what it took to make them."""

    adversaries: Any
    now: Callable[[], float]
    calls: int = 0
    seconds: float = 0.0

    def __call__(self, model: Any, given: Any, ids: Any, strength: str, seed: int, on_calls: Callable[[int], None]) -> Any:
        """As they come."""
        def counted(calls: int) -> None:
            self.calls += calls
            on_calls(calls)

        start = self.now()
        found = self.adversaries(model, given, ids, strength, seed, counted)
        self.seconds += self.now() - start
        return found

    def share(self, ids: Sequence[str], tried: int) -> float:
        """How much more work all inputs are than the first few: by their number, or by the length of what is attacked."""
        length: Callable[[Sequence[str]], int] = getattr(self.adversaries, "length", len)
        return length(ids) / max(length(ids[:tried]), 1)


def _shape(batch: Batch) -> tuple[Any, ...]:
    """What the time of a call depends on, as far as is known."""
    return np.shape(batch) if isinstance(batch, np.ndarray) else (type(batch), len(batch))
