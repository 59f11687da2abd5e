"""Enhancement (Wang & Wang 2022): an attack turned round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from whytrust.attacks.ball import Ball, Bounds, check_number, check_shared, unit_of
from whytrust.attacks.engine import Item, Loss, Slots
from whytrust.attacks.pgd import step_along
from whytrust.attacks.result import Attacked
from whytrust.attacks.run import run
from whytrust.checked import CheckedModel
from whytrust.core import Floats


@dataclass(frozen=True)
class Enhance:
    """Which small change makes a model, even one that was never trained, give the true label?

    Signed steps down −log p of the true label, within ±epsilon and the bounds; all steps are taken unless stop="success", and
    inputs that are right already are moved too. `targets` must give the true labels. Units are those of PGD. A net that is
    right on enhanced inputs has learnt nothing: that is the point, for explanations of it must show nothing but the change.
    """

    seeks_truth: ClassVar[bool] = True

    epsilon: float = 0.3
    step: float = 0.03
    iterations: int = 30
    units: str = "auto"
    bounds: Any = "auto"
    stop: str = "never"
    margin: float = 0.0

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        check_number("epsilon", self.epsilon, above=True)
        check_number("step", self.step, above=True)
        check_shared(self)

    def __call__(self, model: CheckedModel, inputs: Any, targets: Any = None, seed: int = 0, **more: Any) -> Attacked:
        """Enhance every input; see `run` for what the arguments may be."""
        return run(self, model, inputs, targets, seed, **more)

    def ball(self, shape: tuple[int, ...], bounds: Bounds) -> Ball:
        """Epsilon and step in the units of the input."""
        unit = unit_of(self.units, bounds, self.epsilon)
        return Ball("linf", float(self.epsilon) * unit, float(self.step) * unit, bounds)

    def aim(self, target: int | None, label: int, classes: int) -> tuple[int, bool]:
        """Towards the truth, which `run` has asked for."""
        return (label if target is None else target), True

    def start(self, item: Item, ball: Ball) -> Floats:
        """The input itself."""
        return item.clean

    def move(self, slots: Slots, loss: Loss, ball: Ball) -> None:
        """A signed step down the loss."""
        step_along(slots, loss.gradient, ball, "sign")
