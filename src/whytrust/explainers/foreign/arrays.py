"""Values that someone else has computed, or computes: arrays, and functions of (model, inputs, targets)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from whytrust.explainers.foreign.calling import called, plain_settings, source_of, taken_by_source
from whytrust.explainers.laying import Laid, Laying, sense_of
from whytrust.explanation import Explanation
from whytrust.question import Question


@dataclass(frozen=True, eq=False)
class Given:
    """What do values that are already there say of the parts? Nothing is computed; that they belong to this input and this
    target is the caller's word.
    """

    values: Any
    pooling: str | None = None

    def each(self, count: int) -> list[Given]:
        """One explainer an input: the first axis is the inputs."""
        if not hasattr(self.values, "__len__") or len(self.values) != count:
            came = np.shape(self.values) if hasattr(self.values, "shape") else f"{len(self.values)} entries"
            raise ValueError(f"with {count} inputs, method must hold one array for each: expected {count} entries, got {came}")
        return [Given(values, self.pooling) for values in self.values]

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One score a part; the model is asked only for its prediction."""
        if len(question.memory.watched) > 1:
            raise ValueError("values that are given speak of one target; ask for one target at a time")
        laid = Laying(question, "the given array", self.pooling)(self.values)
        return Explanation.of(question, "given values", laid.scores, notes=laid.notes, sense=sense_of(self.pooling),
                              settings=plain_settings({}, self.pooling))


@dataclass(frozen=True, eq=False)
class Results:
    """Explanations that others made of several inputs, one each."""

    results: tuple[Callable[[Question, np.random.Generator], Explanation], ...]

    def each(self, count: int) -> Sequence[Callable[[Question, np.random.Generator], Explanation]]:
        """One an input."""
        if len(self.results) != count:
            raise ValueError(f"with {count} inputs, method must hold one explanation for each, got {len(self.results)}")
        return self.results

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """For one input there must be one."""
        return self.each(1)[0](question, rng)


@dataclass(frozen=True, eq=False)
class Function:
    """What does f(model, inputs, targets, **options) -> array say of the parts?

    That is the signature of Quantus and of much research code. `model` is the user's own object, `inputs` a batch of one as
    that object takes it, `targets` an array of one index; what returns is a batch of one map.
    """

    function: Callable[..., Any]
    pooling: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One call of the function."""
        name = str(getattr(self.function, "__name__", type(self.function).__name__)).strip("<>")
        inputs, targets = taken_by_source(question), np.array([question.target])
        source = source_of(question.model.function)
        raw = called(name, lambda: self.function(source, inputs, targets, **self.options), question, rng, self.function)
        laid = self._laid(raw, Laying(question, name, self.pooling))
        return Explanation.of(question, name, laid.scores, notes=laid.notes, sense=sense_of(self.pooling),
                              settings=plain_settings(self.options, self.pooling))

    def _laid(self, raw: Any, lay: Laying) -> Laid:
        if isinstance(raw, Sequence) and len(raw) == 1 and not isinstance(raw, str):
            return lay(raw[0])
        if hasattr(raw, "shape") and len(raw.shape) > 1 and raw.shape[0] == 1:
            return lay(raw[0])
        return lay(raw)
