"""Hidden pixels painted from those around them, so that a hole does not stand out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats


def painted(pixels: Floats, shown: NDArray[Any]) -> Floats:
    """(H, W, C) pixels and (n, H, W), true where they show -> (n, H, W, C): shown pixels as they are, smooth between them.

    Averages of what shows are taken over ever larger squares until every square has some, and carried back down between the
    centres of squares (pull and push, Gortler et al. 1996). Where nothing shows, the mean of all pixels does.
    """
    weights = shown[..., None].astype(np.float64)
    values = np.where(shown[..., None], pixels[None], 0.0)
    out = _filled(values, weights)
    empty = ~shown.any(axis=(1, 2))
    out[empty] = pixels.mean(axis=(0, 1))
    return np.where(shown[..., None], pixels[None], out)


def _filled(values: Floats, weights: Floats) -> Floats:
    """Values times weights of squares, and the weights, up to 1 -> values everywhere."""
    height, width = values.shape[1:3]
    whole = np.divide(values, weights, out=np.zeros_like(values), where=weights > 0)
    if max(height, width) == 1 or (weights >= 1).all():
        return whole
    above = _halved(weights)
    share = np.minimum(above, 1.0)
    mean = np.divide(_halved(values), above, out=np.zeros_like(values[:, :(height + 1) // 2, :(width + 1) // 2]),
                     where=above > 0)
    coarse = _filled(mean * share, share)
    below = _doubled(_doubled(coarse, 1)[:, :height], 2)[:, :, :width]
    return np.asarray(np.minimum(weights, 1) * whole + (1 - np.minimum(weights, 1)) * below)


def _halved(values: Floats) -> Floats:
    """Sums over squares of 2 × 2; what is left over at an odd edge is a square of its own."""
    n, height, width, channels = values.shape
    even = np.pad(values, ((0, 0), (0, height % 2), (0, width % 2), (0, 0)))
    return np.asarray(even.reshape(n, (height + 1) // 2, 2, (width + 1) // 2, 2, channels).sum(axis=(2, 4)))


def _doubled(values: Floats, axis: int) -> Floats:
    """Twice as many along an axis, in straight lines between the centres."""
    ahead = np.concatenate([values.take(range(1, values.shape[axis]), axis), values.take([-1], axis)], axis)
    before = np.concatenate([values.take([0], axis), values.take(range(values.shape[axis] - 1), axis)], axis)
    pairs = np.stack([0.75 * values + 0.25 * before, 0.75 * values + 0.25 * ahead], axis + 1)
    shape = list(values.shape)
    shape[axis] *= 2
    return pairs.reshape(shape)
