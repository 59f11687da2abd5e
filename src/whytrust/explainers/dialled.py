"""A model as a function of what its inputs are made of, so that gradients speak of that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whytrust.checked import DifferentiableModel, Refused
from whytrust.core import Dials, Floats


@dataclass(frozen=True, eq=False)
class Dialled:
    """A model as a function of what its inputs are made of."""

    model: DifferentiableModel
    dials: Dials

    @property
    def kind(self) -> str:
        """What this is, in a few words."""
        return str(getattr(self.model.function, "kind", "a function of a batch"))

    @property
    def home(self) -> str:
        """Where the model is."""
        return str(getattr(self.model.function, "home", "cpu"))

    def __call__(self, values: Floats) -> Any:
        """The model's own outputs."""
        made = self.dials.inputs(values)
        return self._asked(lambda: self.model.function(self.model.prepared(made)), made)

    def pullback(self, values: Floats, preprocess: None = None) -> tuple[Any, _Pull]:
        """(outputs, weights of the outputs -> gradient with respect to the values)."""
        function: Any = self.model.function
        made = self.dials.inputs(values)
        outputs, pull = self._asked(lambda: function.pullback(made, self.model.preparation), made)
        return outputs, _Pull(pull, self.dials)

    def _asked(self, ask: Callable[[], Any], made: Floats) -> Any:
        try:
            return self.model.guarded(ask, made)
        except ValueError as error:
            raise Refused(str(error)) from error  # it speaks of the inputs, not of what they are made of: nothing to add

    def ruled(self, rule: str) -> Dialled:
        """The same with another backward pass."""
        return replace(self, model=self.model.ruled(rule))


@dataclass(frozen=True, eq=False)
class _Pull:
    """A model's own pull, and then through what the input is made of."""

    pull: Any
    dials: Dials

    def __call__(self, weights: Floats) -> Floats:
        """What the forward pass kept stays."""
        return self.dials.pulled(np.asarray(self.pull(weights), dtype=np.float64))

    def last(self, weights: Floats) -> Floats:
        """For whoever will not ask again."""
        return self.dials.pulled(np.asarray(getattr(self.pull, "last", self.pull)(weights), dtype=np.float64))
