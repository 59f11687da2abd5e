"""Projected gradient descent (Madry et al. 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from whytrust.attacks.ball import Ball, Bounds, check_number, check_shared, one_of, unit_of
from whytrust.attacks.engine import Item, Loss, Slots
from whytrust.attacks.result import Attacked
from whytrust.attacks.run import run
from whytrust.checked import CheckedModel
from whytrust.core import Floats


@dataclass(frozen=True)
class PGD:
    """How little must an input change, step by step along the gradient, before the model says something else?

    Each step goes down the loss −log p of the target (or up that of the clean label, where there is no target), then back into
    the ball of radius `epsilon` and the `bounds`. With norm "linf" a step follows the sign of the gradient, with "l2" the
    gradient itself; `direction` ("sign", "gradient") overrules that.

    Units. With units="auto", epsilon and step are shares of high − low where the bounds of the values are known: an epsilon of
    0.05 is 12.75 grey levels of 0–255 and 0.05 of 0–1. Where they are not (normalised arrays, waveforms) both are in the
    input's own units, as in Hoedt et al. (2022), whose images were normalised; so is everything with units="input". bounds
    "auto" are 0–255 for bytes, 0–1 for images of floats within that, 0–255 for colour ones, else none: say so where you know
    better. (0, None) has an open end, and no range to have a share of. Left unset, epsilon is 0.05 (linf) or 0.01·√numbers (l2:
    a root-mean-square change of 0.01), and step a fifth of it.

    stop="success" leaves an input at the first success, "never" takes all iterations; `margin` asks for the target to be ahead
    (the clean label to be behind) by so much in the model's own scores, logits where it has them.

    loss="log_probability" follows −log p as far as floats of 64 bits go, however sure the model is. loss="cross_entropy" is the
    cross-entropy of the logits in floats of 32 bits, as captum and most papers have it: its gradient is zero where the softmax
    is 0 or 1 to within rounding, so that the input stays where it is. It is the weaker attack.

    Integers are attacked, and come back, as float32 (float64 where that would not hold them): rounded back to bytes an
    adversary may lose its effect. It misleads where gradients do: a model that saturates, rounds or draws at random can look
    robust and is not. That PGD failed proves nothing about other attacks.
    """

    seeks_truth: ClassVar[bool] = False

    norm: str = "linf"
    epsilon: float | None = None
    step: float | None = None
    iterations: int = 100
    units: str = "auto"
    bounds: Any = "auto"
    random_start: bool = False
    stop: str = "success"
    margin: float = 0.0
    direction: str | None = None
    loss: str = "log_probability"

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        one_of("norm", self.norm, ("linf", "l2"))
        one_of("direction", self.direction, (None, "sign", "gradient"))
        one_of("loss", self.loss, ("log_probability", "cross_entropy"))
        one_of("random_start", self.random_start, (True, False))
        for name in ("epsilon", "step"):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), above=True)
        check_shared(self)

    def __call__(self, model: CheckedModel, inputs: Any, targets: Any = None, seed: int = 0, **more: Any) -> Attacked:
        """Attack every input; see `run` for what the arguments may be."""
        return run(self, model, inputs, targets, seed, **more)

    def ball(self, shape: tuple[int, ...], bounds: Bounds) -> Ball:
        """Epsilon and step in the units of the input."""
        unit = unit_of(self.units, bounds, self.epsilon if self.norm == "linf" else None)
        usual = 0.05 if self.norm == "linf" else 0.01 * math.sqrt(math.prod(shape))
        epsilon = usual if self.epsilon is None else float(self.epsilon)
        return Ball(self.norm, epsilon * unit, (epsilon / 5 if self.step is None else float(self.step)) * unit, bounds)

    def aim(self, target: int | None, label: int, classes: int) -> tuple[int, bool]:
        """Towards the target, or away from the label."""
        return (label, False) if target is None else (target, True)

    def start(self, item: Item, ball: Ball) -> Floats:
        """The input itself, or a point drawn evenly from the ball around it."""
        if not self.random_start:
            return item.clean
        where = np.ones(item.clean.shape, dtype=bool) if item.inside is None else item.inside
        if ball.norm == "linf":
            drawn = item.rng.uniform(-ball.radius, ball.radius, item.clean.shape)
        else:
            drawn = item.rng.standard_normal(item.clean.shape) * where
            share = item.rng.random() ** (1 / max(int(where.sum()), 1))
            drawn *= ball.reach(item.clean) * share / max(float(np.linalg.norm(drawn)), 1e-300)
        return np.asarray(item.clean + drawn * where, dtype=item.clean.dtype)

    def move(self, slots: Slots, loss: Loss, ball: Ball) -> None:
        """x − step · direction, and back into the ball (the box of an L∞ ball is clipped to by the engine)."""
        step_along(slots, loss.gradient, ball, self.direction or ("sign" if self.norm == "linf" else "gradient"))


def step_along(slots: Slots, gradient: Floats, ball: Ball, direction: str) -> None:
    """One step down the gradient of every input, in place; its length is `step` in every number or in all together."""
    moves = np.empty_like(slots.now)
    if direction == "sign":
        np.sign(gradient, out=moves, casting="same_kind")
        moves *= ball.step
        if ball.norm == "l2" and slots.inside is not None:
            moves *= slots.inside
    else:
        # What lies outside `inside` cannot move and must not shorten the step of the rest.
        kept = gradient if slots.inside is None else gradient * slots.inside
        lengths = _lengths(kept)
        factors = np.divide(ball.step, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        np.multiply(kept, _column(factors, kept), out=moves, casting="same_kind")
    slots.now -= moves
    if ball.norm == "l2":
        _into_ball(slots)


def _into_ball(slots: Slots) -> None:
    """The nearest point of the L2 ball. Clipping to the bounds afterwards keeps it in the ball: the clean input is within the
    bounds, so clipping brings every number nearer to the clean one or leaves it, and no distance grows."""
    change = np.subtract(slots.now, slots.clean, dtype=np.float64)
    lengths = _lengths(change)
    factors = np.divide(slots.reach, lengths, out=np.ones_like(lengths), where=lengths > slots.reach)
    outside = factors < 1
    if outside.any():
        change[outside] *= _column(factors[outside], change)
        slots.now[outside] = slots.clean[outside] + change[outside]


def _lengths(rows: Floats) -> Floats:
    flat = rows.reshape(len(rows), -1)
    return np.asarray(np.sqrt(np.einsum("nd,nd->n", flat, flat)))


def _column(values: Floats, like: Floats) -> Floats:
    return values.reshape(-1, *[1] * (like.ndim - 1))
