"""Where the segments of an image are, and the range its pixels live in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, need

DARK = 64.0
"""Floats that nowhere exceed this are shown on their own scale; on that of bytes they would look black."""


def segment(image: NDArray[Any], spec: str | NDArray[Any]) -> NDArray[np.int32]:
    """Labels 0 … d-1 of an (H, W[, C]) image."""
    shape = image.shape[:2]
    if not isinstance(spec, str):
        labels = np.asarray(spec)
        if labels.shape != shape or labels.dtype.kind not in "uib":
            raise ValueError(f"a label array must have one whole number a pixel: expected {shape}, "
                             f"got {labels.dtype} {labels.shape}")
        return _renumber(labels)
    name, _, argument = spec.partition(":")
    cutters = {"grid": _grid, "slic": _slic, "quickshift": _quickshift, "felzenszwalb": _felzenszwalb, "pixels": _pixels}
    if name not in cutters:
        raise ValueError(f"image parts must be grid:4x4, slic:16, quickshift, felzenszwalb, pixels or a label array, got "
                         f"{spec!r}")
    return _renumber(cutters[name](image, argument, spec))


def to_rgb(image: NDArray[Any]) -> NDArray[np.uint8]:
    """(H, W[, C]) of any type as (H, W, 3) bytes to look at; transparent pixels on white."""
    if image.dtype == np.uint8 and image.ndim == 3 and image.shape[2] == 3:
        return image.copy()
    low, high = value_range(image)
    if image.dtype.kind == "f" and high == 255 and 0 < image.max() <= DARK:
        high = float(image.max())  # as 0–16 of scikit-learn's digits: on a scale to 255 it would be a black square
    values = (image.astype(np.float64).reshape(*image.shape[:2], -1) - low) / (high - low)
    if values.shape[-1] == 4:
        values = values[..., :3] * values[..., 3:] + 1 - values[..., 3:]
    values = np.repeat(values, 3, axis=2) if values.shape[-1] == 1 else values
    return np.asarray(np.rint(np.clip(values, 0, 1) * 255), dtype=np.uint8)


def value_range(image: NDArray[Any]) -> tuple[float, float]:
    """The range pixels live in: 0–255 for bytes, 0–1 or 0–255 for floats within it, else what the image spans."""
    if image.dtype == np.uint8:
        return 0.0, 255.0
    low, high = float(image.min()), float(image.max())
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and 2 < high <= 255:
        return 0.0, 255.0
    return (low, high) if high > low else (low, low + max(1.0, abs(low)))


def _grid(image: NDArray[Any], argument: str, spec: str) -> NDArray[Any]:
    try:
        rows, columns = (int(n) for n in (argument or "4x4").split("x"))
    except ValueError:
        raise ValueError(f"a grid is written grid:ROWSxCOLUMNS, such as grid:4x4, got {spec!r}") from None
    height, width = image.shape[:2]
    if not (1 <= rows <= height and 1 <= columns <= width):
        raise ValueError(f"a grid must have 1 to {height} rows and 1 to {width} columns for this image, got {spec!r}")
    # What an uneven division leaves over joins the last cell.
    down = np.minimum(np.arange(height) // (height // rows), rows - 1)
    across = np.minimum(np.arange(width) // (width // columns), columns - 1)
    return np.asarray(down[:, None] * columns + across[None])


def _pixels(image: NDArray[Any], argument: str, spec: str) -> NDArray[Any]:
    if argument:
        raise ValueError(f"parts=pixels takes no number, got {spec!r}; a coarser cut is grid:ROWSxCOLUMNS")
    return np.arange(image.shape[0] * image.shape[1], dtype=np.int32).reshape(image.shape[:2])


def _slic(image: NDArray[Any], argument: str, spec: str) -> NDArray[Any]:
    pixels = colours_of(_unit(image))
    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[-1] == 1 else pixels
    channel = -1 if pixels.ndim == 3 else None
    return np.asarray(_segmentation().slic(pixels, n_segments=_whole(argument or "16", spec), compactness=10, sigma=1,
                                           start_label=0, channel_axis=channel))


def few_segments(spec: str | NDArray[Any], found: int) -> tuple[str, ...]:
    """SLIC joins what looks alike, however many segments it was asked for; nothing else would show that it did."""
    asked = int(spec.partition(":")[2] or "16") if isinstance(spec, str) and spec.startswith("slic") else 0
    return () if 2 * found >= asked else (
        f"The image was cut into {found} segments where {asked} were asked for: SLIC joins what looks alike, so a score speaks "
        "for a large area; parts='grid:4x4' cuts evenly.",)


def _quickshift(image: NDArray[Any], argument: str, spec: str) -> NDArray[Any]:
    distance = float(_whole(argument, spec)) if argument else 200.0
    return np.asarray(_segmentation().quickshift(_three(image), kernel_size=4, max_dist=distance, ratio=0.2))


def _felzenszwalb(image: NDArray[Any], argument: str, spec: str) -> NDArray[Any]:
    scale = _whole(argument, spec) if argument else 100
    return np.asarray(_segmentation().felzenszwalb(_three(image), scale=scale, sigma=0.5, min_size=50))


def _segmentation() -> Any:
    return need("skimage.segmentation", "image")


def _whole(argument: str, spec: str) -> int:
    if not argument.isdecimal() or int(argument) < 1:
        raise ValueError(f"parts such as {spec.partition(':')[0]}:16 take a whole number >= 1, got {spec!r}")
    return int(argument)


def _unit(image: NDArray[Any]) -> Floats:
    low, high = value_range(image)
    return np.asarray((image.astype(np.float64) - low) / (high - low))


def _three(image: NDArray[Any]) -> Floats:
    return to_rgb(image) / 255.0


def colours_of(pixels: Floats) -> Floats:
    """Without the alpha channel."""
    return pixels[..., :3] if pixels.ndim == 3 and pixels.shape[-1] == 4 else pixels


def _renumber(labels: NDArray[Any]) -> NDArray[np.int32]:
    """0 … d-1 without gaps, in the order of the old numbers."""
    if labels.dtype.kind in "ui" and labels.min() == 0 and np.bincount(labels.ravel()).all():
        return labels.astype(np.int32)
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape).astype(np.int32)
