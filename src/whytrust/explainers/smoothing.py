"""Smoothing: the same map at many noisy copies of the input, and their mean, mean square or variance."""

from __future__ import annotations

import hashlib
import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from whytrust.core import Floats, Sense, generator
from whytrust.explainers.gradients import Mapping
from whytrust.explainers.spots import Spot

REDUCTIONS = {"smoothgrad": "mean", "smoothgrad2": "square", "vargrad": "variance"}
"""What follows the method's name in the catalogue, and what is taken over the noisy maps."""


@dataclass(frozen=True)
class Smoothed:
    """What is left of a map when the input trembles?

    Maps at `samples` copies of the input with Gaussian noise: their mean (SmoothGrad, Smilkov et al. 2017), mean square
    (SmoothGrad², Hooker et al. 2019) or variance (VarGrad, Adebayo et al. 2018). The noise's standard deviation is `noise`, a
    share of the input's range (of each column's range in training, for a table), or `sigma`, in the input's own units. A
    smooth map looks better; whether it is better is another question. All three come from one stream of maps where one call
    of wt.explain asks for them together.
    """

    method: Mapping
    reduce: Literal["mean", "square", "variance"] = "mean"
    samples: int = 25
    noise: float = 0.15
    sigma: float | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that mean nothing, before any model call."""
        whole = isinstance(self.samples, int | np.integer) and not isinstance(self.samples, bool)
        if not whole or self.samples < 1 + (self.reduce == "variance"):
            raise ValueError(f"samples must be a whole number >= {1 + (self.reduce == 'variance')}, got {self.samples!r}")
        for name, value in (("noise", self.noise), ("sigma", self.sigma)):
            number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if value is not None and not (number and math.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be a number >= 0, got {value!r}")
        if self.sigma is not None and self.noise != type(self).noise:
            raise ValueError(f"noise is a share of the input's range and sigma is in its own units: pass one of them, got "
                             f"noise={self.noise!r} and sigma={self.sigma!r}")
        if self.reduce not in REDUCTIONS.values():
            raise ValueError(f"reduce must be one of {', '.join(REDUCTIONS.values())}, got {self.reduce!r}")

    @property
    def name(self) -> str:
        """The method's name and what is done to its maps."""
        return f"{self.method.name}/{next(name for name, how in REDUCTIONS.items() if how == self.reduce)}"

    @property
    def pooling(self) -> str:
        """As the method's own; squares and variances are averaged, for nothing of them adds up."""
        return self.method.pooling if self.reduce == "mean" else "mean"

    @property
    def caution(self) -> str:
        """How it misleads."""
        own = "A smooth map looks better; whether it is better is another question." if self.reduce == "mean" else (
            "There is no sign left; a variance shows where a map is unsteady, not where it is large." if
            self.reduce == "variance" else "There is no sign left, and squares make what is large look larger.")
        return f"{getattr(self.method, 'caution', '')} {own}".strip()

    def account(self, spot: Spot, map: Floats) -> tuple[dict[str, Any], tuple[str, ...]]:
        """What the method inside has to state, and whether there was any noise."""
        stated: dict[str, Any] = getattr(self.method, "stated", lambda spot: {})(spot)
        trembles = np.any(self.noise * spot.spread if self.sigma is None else self.sigma)
        return stated, () if trembles else ("No noise was added, for the input has no range that it could be a share of; pass "
                                            "sigma=…, in the input's own units.",)

    @property
    def sense(self) -> Sense:
        """A square says nothing of for or against."""
        return getattr(self.method, "sense", "signed") if self.reduce == "mean" else "size"

    def maps(self, spot: Spot, values: Floats) -> Iterator[Floats]:
        """A smoothed map for each of the values."""
        for value in values:
            mean, variance = self._moments(spot, value, values is spot.own)
            yield {"mean": mean, "square": variance + mean**2, "variance": variance}[self.reduce]

    def _moments(self, spot: Spot, value: Floats, own: bool) -> tuple[Floats, Floats]:
        """(mean, variance) of the noisy maps, worked out once for the three that may be made of them."""
        if hasattr(self.method, "baseline"):
            spot.baseline(self.method.baseline)  # what is no baseline is said here
        stated = (self.method, self.samples, self.noise, self.sigma, spot.question.target, spot.seed, type(spot.model).__name__)
        key = hashlib.blake2b(pickle.dumps(stated) + (b"" if own else value.tobytes())).hexdigest()
        return spot.question.once(f"smoothed {key}", lambda: self._stream(spot, value))

    def _stream(self, spot: Spot, value: Floats) -> tuple[Floats, Floats]:
        """Running moments: no more than one batch of noisy inputs is ever there."""
        rng, scale = generator(spot.seed, "noise"), self.noise * spot.spread if self.sigma is None else self.sigma
        seen, noisy = 0, np.empty((min(spot.size, self.samples), *value.shape))
        mean: Floats = np.zeros(())
        squares = step = rest = mean
        with spot.question.expecting(self.samples * getattr(self.method, "passes", 1)):
            while seen < self.samples:
                some = noisy[:self.samples - seen]
                rng.standard_normal(out=some)
                some *= scale
                some += value
                for map in self.method.maps(spot, some):
                    if not seen:
                        mean, squares, step, rest = (np.zeros(map.shape) for _ in range(4))
                    seen += 1
                    # Running sums in place: arrays as large as an image are slow to get anew for every sample.
                    np.subtract(map, mean, out=step)
                    mean += np.divide(step, seen, out=rest)
                    np.subtract(map, mean, out=rest)
                    squares += np.multiply(rest, step, out=rest)
        return mean, squares / self.samples
