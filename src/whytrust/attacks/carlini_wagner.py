"""The attack of the singing-voice papers, after Carlini & Wagner (2018): the least change that still turns the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from whytrust.attacks.ball import Ball, Bounds, check_number, check_shared, one_of, unit_of
from whytrust.attacks.engine import Item, Loss, Slots
from whytrust.attacks.result import Attacked, Outcome
from whytrust.attacks.run import run
from whytrust.checked import CheckedModel
from whytrust.core import Floats

SPECTROGRAM: dict[str, Any] = {"epsilon": 0.1, "step": 0.0005, "alpha": 15.0, "bounds": (0.0, None)}
"""What the papers used for magnitude spectrograms: attack(model, x, "carlini_wagner", **SPECTROGRAM). The bounds are ours:
no sound has a magnitude below 0, and most magnitudes of quiet music are smaller than epsilon."""
SWING = 2.5
"""Steps that δ may end away from zero and still only have swung about it."""
_BETAS, _TINY = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class CarliniWagner:
    """What is the smallest change, in Σδ², that a gradient finds and that makes the model say something else?

    Each step goes down Σδ² + alpha · L by the sign of the gradient, then clips δ to ±epsilon. L is −log p of the target;
    without a target it is −log p of the other class where there are two, and log p of the clean label where there are more.
    variant "paper" is δ ← clip(δ − step · sign); "authors" is what the published code does (Praher et al. 2021): the sign is
    fed to Adam with `step` as its learning rate.

    Where no `bounds` are given, magnitudes of a cut front end stay at or above 0; bounds=(-1, None) lets them go below, as the
    papers do. The defaults are those for waveforms; `SPECTROGRAM` has those for spectrograms (epsilon 0.1, step 0.0005, alpha
    15, and no magnitude below 0). The papers move a whole song with one δ, as `attacks.song.attack_song` does; here every
    input has its own. It misleads as every gradient attack does: see PGD. The first success is taken, so the change is small,
    not smallest: a larger alpha succeeds sooner with a larger change.
    """

    seeks_truth: ClassVar[bool] = False

    epsilon: float = 0.01
    step: float = 0.0003
    alpha: float = 2.0
    iterations: int = 1000
    variant: str = "paper"
    units: str = "input"
    bounds: Any = None
    stop: str = "success"
    margin: float = 0.0

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        one_of("variant", self.variant, ("paper", "authors"))
        for name in ("epsilon", "step", "alpha"):
            check_number(name, getattr(self, name), above=True)
        check_shared(self)

    def __call__(self, model: CheckedModel, inputs: Any, targets: Any = None, seed: int = 0, **more: Any) -> Attacked:
        """Attack every input; see `run` for what the arguments may be."""
        return run(self, model, inputs, targets, seed, **more)

    def ball(self, shape: tuple[int, ...], bounds: Bounds) -> Ball:
        """Epsilon and step in the units of the input."""
        unit = unit_of(self.units, bounds, self.epsilon)
        return Ball("linf", float(self.epsilon) * unit, float(self.step) * unit, bounds)

    def aim(self, target: int | None, label: int, classes: int) -> tuple[int, bool]:
        """Towards the target; without one towards the other of two classes, or away from the label."""
        if target is None and classes == 2:
            return 1 - label, True
        return (label, False) if target is None else (target, True)

    def notes(self, outcomes: Sequence[Outcome]) -> list[str]:
        """Where the search failed and δ only swung about zero, because the loss was too flat to hold against Σδ²."""
        still = sum(not o.success and not o.flat and o.iterations > SWING and o.epsilon > SWING * o.step
                    and o.linf <= SWING * o.step for o in outcomes)
        return [f"{still} inputs were hardly moved, and not turned: the model is so sure that the loss is flat beside Σδ², and "
                f"δ swings about zero, which is no robustness; raise alpha (now {self.alpha:g})"] if still else []

    def start(self, item: Item, ball: Ball) -> Floats:
        """No change at all."""
        return item.clean

    def move(self, slots: Slots, loss: Loss, ball: Ball) -> None:
        """δ − step · sign, by itself or through Adam."""
        slope = loss.whole()
        slope *= self.alpha
        change = np.subtract(slots.now, slots.clean, dtype=slope.dtype)
        change *= 2
        slope += change
        signs = np.sign(slope, out=slope).astype(slots.now.dtype, copy=False)
        slots.now -= (signs * ball.step if self.variant == "paper"
                      else adam(signs, slots.remembered("mean"), slots.remembered("square"), slots.taken, ball.step))


def adam(gradient: Floats, mean: Floats, square: Floats, taken: Any, rate: float) -> Floats:
    """What Adam (Kingma & Ba 2015) takes off each number; `mean` and `square` are its memory, `taken` its steps so far."""
    mean *= _BETAS[0]
    mean += (1 - _BETAS[0]) * gradient
    square *= _BETAS[1]
    square += (1 - _BETAS[1]) * gradient * gradient
    steps = np.asarray(taken, dtype=np.float64).reshape(-1, *[1] * (gradient.ndim - 1)) + 1
    rates = (rate / (1 - _BETAS[0]**steps)).astype(gradient.dtype)
    spread = np.sqrt(square)
    spread /= np.sqrt(1 - _BETAS[1]**steps).astype(gradient.dtype)
    spread += _TINY
    return np.asarray(rates * mean / spread)
