"""Grad-CAM: where in a layer's feature maps does the evidence for the target lie?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from whytrust.backends.torch_cuts import LAST_MAP
from whytrust.checked import Cut
from whytrust.core import Floats, Sense
from whytrust.explainers.laying import enlarged
from whytrust.explainers.spots import CROPPED, Spot


@dataclass(frozen=True)
class GradCam:
    """Where do the features of a layer speak for the target? (Selvaraju et al. 2017)

    Each feature map is weighted by its mean gradient, the sum is cut at 0 and enlarged to the input. `layer` is a layer's name;
    without it the last feature map is taken through which everything flows, which feeds the pooling of most nets; a
    transformer's tokens are laid out as the image is. The map is as coarse as the layer: its smooth blobs hide that it knows no
    detail, and where the mean gradient of a map is not what acts at each place, it points beside.
    """

    layer: str | None = None
    name: ClassVar[str] = "grad_cam"
    pooling: ClassVar[str] = "mean"
    sense: ClassVar[Sense] = "for"
    of_places: ClassVar[bool] = True
    passes: ClassVar[int] = 2  # of a map: to the layer, and from it
    caution: ClassVar[str] = ("The map is as coarse as its layer, however smooth it is drawn, and what speaks against the "
                              "target is cut off.")

    def __post_init__(self) -> None:
        """Refuse what is no name, before any model call."""
        if not isinstance(self.layer, str | None):
            raise TypeError(f"layer must be a layer's name as text, as in net.named_modules(), got {self.layer!r}")

    def maps(self, spot: Spot, values: Floats) -> Iterator[Floats]:
        """Maps over the places of the input, without channels."""
        if spot.cut is not None and spot.cut.spans is not None:
            raise ValueError(f"{self.name} looks at feature maps with places, and a text has words; use integrated_gradients, "
                             "input_x_gradient or lime")
        return (enlarged(self.coarse(spot, value), spot.places) for value in values)

    def coarse(self, spot: Spot, value: Floats) -> Floats:
        """The map as large as the layer's."""
        own = self._cut_once(spot)
        cut = own if np.may_share_memory(value, spot.own) else spot.model.cut(value[None], own.layer)
        shown = _laid_out(cut, len(spot.places))
        if shown is None:
            wanted = "places" if len(spot.places) == 1 else "height, width"
            tokens = ("; tokens must form a grid shaped as the image, and others be joined to their ends with torch.cat"
                      if cut.values.ndim == 2 == len(spot.places) else "")
            raise ValueError(f"{self.name} needs a layer whose output is (channels, {wanted}) or ({wanted}, channels), "
                             f"{cut.layer!r} gives {cut.values.shape}{tokens}; name a convolution with layer=…")
        spot.question.count(1 + (cut is not own))
        _, gradient = cut.tail.vjp(cut.values[None], spot.weights)
        turned = shown(cut.values)
        map = self.combined(shown(gradient[0]), turned)
        return map.T if self._turned(spot, cut, turned.shape[1:]) else map

    def combined(self, gradient: Floats, values: Floats) -> Floats:
        """One number a place of the layer, from (channels, *places) gradients and values."""
        weights = gradient.mean(axis=tuple(range(1, values.ndim)))
        return np.asarray(np.maximum(np.tensordot(weights, values, 1), 0))

    def stated(self, spot: Spot) -> dict[str, Any]:
        """Which layer it was."""
        return {"layer": self._cut_once(spot).layer}

    def account(self, spot: Spot, map: Floats) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Which layer it was, whether it found anything, and whether its places are the input's."""
        cut, notes = self._cut_once(spot), []
        if not map.any():
            notes.append(self._why_empty(spot, cut))
        here, there = spot.places, cut.seen[-len(spot.places):]
        if cut.cropped:
            notes.append(CROPPED)
        elif not {there, cut.seen[:len(here)]} & {here, here[::-1]}:
            notes.append(f"The net sees {_times(there)} of an input of {_times(here)}: the map was "
                         "stretched over the whole input, which is wrong where the net sees a crop of it.")
        return self.stated(spot), tuple(notes)

    def _why_empty(self, spot: Spot, cut: Cut) -> str:
        """Why no place of the layer has a score."""
        spot.question.count(1)
        _, gradient = cut.tail.vjp(cut.values[None], spot.weights)
        shown = _laid_out(cut, len(spot.places))
        if shown is None or shown(gradient[0]).any():
            return ("No place of the layer speaks for the target on balance, so every score is 0"
                    f"{': Grad-CAM cuts off what is negative' * (self.sense == 'for')}.")
        others = ": from there on only other tokens are read, such as one of the class. Name an earlier layer"
        return ("The target's score does not depend on the places of this layer (its gradient is 0 at each of them), so every "
                f"score is 0{others * bool(gradient.any())}.")

    def _cut_once(self, spot: Spot) -> Cut:
        """The cut at the input itself: it says which layer is meant, and what the net sees."""
        def made() -> Cut:
            spot.question.count(1 + (self.layer is None))  # the last feature map is looked for in a pass of its own
            return spot.model.cut(spot.own.copy(), LAST_MAP if self.layer is None else self.layer)

        return spot.question.once(f"grad_cam {self.layer} {type(spot.model).__name__}", made)

    def _turned(self, spot: Spot, cut: Cut, found: tuple[int, ...]) -> bool:
        """Does the net see the two axes of the input the other way round?"""
        if len(spot.places) != 2:
            return False
        if cut.seen[-2:] == spot.places[::-1] != spot.places:
            return True
        (high, wide), (tall, broad) = spot.places, found
        shape, own = np.log(tall / broad), np.log(high / wide)
        return bool(abs(shape + own) + 0.1 < abs(shape - own))


@dataclass(frozen=True)
class LinearApproximation(GradCam):
    """What do the features of a layer add to the target's score, place by place, if the rest of the net were linear?

    Gradient times value, summed over the feature maps: a first-order approximation at a layer, as input times gradient is at
    the input. The map is as coarse as the layer, and right only as far as the net is a straight line from there on.
    """

    name: ClassVar[str] = "linear_approximation"
    sense: ClassVar[Sense] = "signed"
    caution: ClassVar[str] = "The map is as coarse as its layer, however smooth it is drawn."

    def combined(self, gradient: Floats, values: Floats) -> Floats:
        """Σ gradient · value over channels."""
        return np.asarray((gradient * values).sum(axis=0))


def _laid_out(cut: Cut, places: int) -> Callable[[Floats], Floats] | None:
    """To (channels, *places): channels may come last, and a transformer's (tokens, channels) are laid out without tokens of no
    place. None where the layer gives neither a map of so many places nor tokens of an image."""
    if cut.values.ndim == 1 + places:
        return lambda values: np.moveaxis(values, cut.channels, 0)
    if cut.grid is None or places != 2:
        return None
    high, wide, first = cut.grid
    return lambda values: np.asarray(
        np.moveaxis(values, cut.channels, 0)[:, first:first + high * wide].reshape(-1, high, wide))


def _times(shape: tuple[int, ...]) -> str:
    return " × ".join(str(n) for n in shape)
