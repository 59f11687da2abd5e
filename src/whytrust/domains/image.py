"""Images cut into segments: a grid, super-pixels, or the user's own label array."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Batch, Floats, Masks, check_masks, need, pool_labels, runs
from whytrust.views import ImageView

DARK = 64.0
"""Floats that nowhere exceed this are shown on their own scale; on that of bytes they would look black."""
FILLS = ("segment_mean", "image_mean", "blur", "noise", "black")
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")


def read(path: str | os.PathLike[str]) -> NDArray[Any]:
    """An image file as (H, W, 3) bytes, or (H, W) where it is grey."""
    image_module = need("PIL.Image", "image")
    try:
        with image_module.open(path) as image:
            return _pixels(image)
    except (OSError, ValueError) as error:
        raise ValueError(f"{str(path)!r} must be an image file that Pillow can read: {error}") from error


def _pixels(image: Any) -> NDArray[Any]:
    """A PIL image, opened from a file or not: grey stays grey, everything else (palettes, alpha, CMYK) becomes RGB.

    Pillow clips deep grey to white when it converts; here 16 bits are brought to 8, and floats stay as they are.
    """
    if image.mode == "F":
        return np.asarray(image)
    if image.mode.startswith("I"):
        deep = np.asarray(image).astype(np.int64)
        if deep.min() < 0 or deep.max() > 65535:
            raise ValueError(f"grey values must lie between 0 and 65535, got {deep.min()} to {deep.max()}; pass an array")
        return (deep // 257 if deep.max() > 255 else deep).astype(np.uint8)
    return np.asarray(image if image.mode == "L" else image.convert("RGB"))


@dataclass(frozen=True, eq=False)
class ImageParts:
    """An image and the segment of each of its pixels; hidden segments take their values from `fill`.

    A fill is never neutral: a black or a blurred segment says something to most nets. `segment_mean` leaves the colour and
    takes the shape away, `noise` (drawn anew for each input) takes both.
    """

    image: NDArray[Any]  # as the model gets it: (H, W), (H, W, C) or, with channels_first, (C, H, W)
    labels: NDArray[np.int32]  # (H, W), 0 … d-1
    fill: str | float | tuple[float, ...] | NDArray[Any] = "segment_mean"
    channels_first: bool = False
    notes: tuple[str, ...] = ()  # what a reader must know of the cut

    domain = "image"

    @classmethod
    def cut(cls, image: Any, spec: str | NDArray[Any] = "slic:16", fill: Any = "segment_mean",
            layout: str = "NHWC") -> ImageParts:
        """Cut by "grid:4x4", "slic:16", "quickshift", "felzenszwalb[:scale]", or an (H, W) array of labels."""
        array, first = laid_out(image, layout), layout == "NCHW"
        last = np.moveaxis(array, 0, -1) if first else array
        labels = segment(last, spec)
        return cls(array, labels, _check_fill(fill, last), first, _few_segments(spec, int(labels.max()) + 1))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Segments by number and where they lie."""
        height, width = self.labels.shape
        # Labels are told apart from row to row too, so that no run goes on into the next.
        starts, lengths = runs((self.labels + np.arange(height)[:, None] % 2 * (self.labels.max() + 1)).ravel())
        labels, rows, columns = self.labels.ravel()[starts], starts // width + 0.5, starts % width + lengths / 2
        count = np.bincount(labels, weights=lengths)
        down = np.bincount(labels, weights=lengths * rows) / count / height
        across = np.bincount(labels, weights=lengths * columns) / count / width
        return tuple(f"segment {i + 1} ({_place(y, x)})" for i, (y, x) in enumerate(zip(down, across, strict=True)))

    @property
    def deterministic(self) -> bool:
        """Noise is drawn anew for each input; every other fill is fixed."""
        return not self._noisy

    @property
    def _noisy(self) -> bool:
        return isinstance(self.fill, str) and self.fill == "noise"

    @cached_property
    def view(self) -> ImageView:
        """The image as 8-bit RGB with its segments."""
        return ImageView(to_rgb(self._last), self.labels)

    def compose(self, masks: Masks, rng: np.random.Generator) -> Batch:
        """Images that show the kept segments and the fill elsewhere."""
        masks = check_masks(masks, len(self.names))
        if masks.all() and not self._noisy:  # which draws for inputs that need none too
            return np.repeat(self.image[None], len(masks), axis=0)
        owners, lengths, image = self._runs
        if self._noisy:
            hidden = _bytes(self._noise(len(masks), rng)).reshape(len(masks), self.image.nbytes)
            change = image ^ hidden
        else:
            hidden, change = self._hidden_and_change
        # Bytes of ones where the image shows; image and fill are mixed bit by bit, which is exact for numbers of every type.
        mixed = np.repeat(np.where(masks, np.uint8(255), np.uint8(0)).take(owners, axis=1), lengths, axis=1)
        mixed &= change
        mixed ^= hidden
        return mixed.view(self.image.dtype).reshape(len(masks), *self.image.shape)

    def like(self, other: Any) -> ImageParts:
        """Another image of this shape, cut where this one is."""
        return replace(self, image=self._fitting(other), notes=())

    def over(self, below: Any) -> ImageParts:
        """This image with another of its shape showing through where segments are hidden."""
        lower = self._fitting(below)
        exact = np.result_type(self.image, lower)
        return replace(self, image=self.image.astype(exact, copy=False), fill=lower.astype(exact, copy=False))

    def squared_change(self, since: Any) -> Floats:
        """Squared differences of pixels, shaped like the image."""
        return np.asarray((self.image.astype(np.float64) - self._fitting(since)) ** 2)

    def near(self, radius: float, rng: np.random.Generator) -> ImageParts:
        """This image with noise of up to `radius` of its range, cut where it is."""
        low, high = value_range(self.image)
        moved = np.clip(self.image + radius * (high - low) * rng.uniform(-1, 1, self.image.shape), low, high)
        whole = self.image.dtype.kind in "ui"
        return self.like((np.rint(moved) if whole else moved).astype(self.image.dtype))

    def _fitting(self, other: Any) -> NDArray[Any]:
        array = np.asarray(other)
        if array.shape != self.image.shape:
            raise ValueError(f"the other image must have this one's shape, {self.image.shape}, got {array.shape}")
        return array

    def pool(self, map: Floats, how: str) -> Floats:
        """One number a segment; a map may have channels, where the image has them."""
        values = np.asarray(map)
        return pool_labels(np.moveaxis(values, 0, -1) if self.channels_first and values.ndim == 3 else values,
                           self.labels, len(self.names), how)

    @cached_property
    def _runs(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.uint8]]:
        """The image's bytes as they lie in memory: runs that belong to one segment (which, and how long), and the bytes."""
        channels = self.image.size // self.labels.size
        of_values = np.tile(self.labels.ravel(), channels) if self.channels_first else np.repeat(self.labels.ravel(), channels)
        starts, lengths = runs(of_values)
        return of_values[starts].astype(np.intp), lengths * self.image.itemsize, _bytes(self.image)

    @cached_property
    def _hidden_and_change(self) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The bytes of the fill, and what turns them into the image's."""
        hidden = _bytes(self._hidden)
        return hidden, _bytes(self.image) ^ hidden

    @property
    def _last(self) -> NDArray[Any]:
        return np.moveaxis(self.image, 0, -1) if self.channels_first else self.image

    @cached_property
    def _hidden(self) -> NDArray[Any]:
        """The image with every segment hidden; what is transparent stays so."""
        if isinstance(self.fill, np.ndarray):
            return self.fill
        last = self._last
        pixels = last.reshape(*self.labels.shape, -1).astype(np.float64)
        hidden = pixels.copy()
        colours = _colours(pixels)
        if self.fill == "segment_mean":
            flat = self.labels.ravel()
            for c in range(colours.shape[-1]):
                means = np.bincount(flat, weights=colours[..., c].ravel()) / np.bincount(flat)
                hidden[..., c] = means[self.labels]
        elif self.fill == "image_mean":
            hidden[..., : colours.shape[-1]] = colours.mean(axis=(0, 1))
        elif self.fill == "blur":
            ndimage = need("scipy.ndimage", "image")
            sigma = max(self.labels.shape) / 16
            hidden[..., : colours.shape[-1]] = ndimage.gaussian_filter(colours, (sigma, sigma, 0))
        else:
            hidden[..., : colours.shape[-1]] = 0.0 if self.fill == "black" else self.fill
        return self._like_image(hidden.reshape(last.shape))

    def _noise(self, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Uniform noise over the image's own range, row by row."""
        last = self._last
        low, high = value_range(last)
        drawn = low + (high - low) * rng.random((n, *last.shape))
        if last.ndim == 3 and last.shape[-1] == 4:
            drawn[..., 3] = last[..., 3]
        return np.stack([self._like_image(d) for d in drawn]) if n else np.empty((0, *self.image.shape), self.image.dtype)

    def _like_image(self, values: Floats) -> NDArray[Any]:
        if self.image.dtype.kind in "ui":
            values = np.rint(values)
        return np.moveaxis(values, -1, 0).astype(self.image.dtype) if self.channels_first else values.astype(self.image.dtype)


def _bytes(image: NDArray[Any]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(image).reshape(-1).view(np.uint8)


def check_image(image: Any) -> NDArray[Any]:
    """A file, a PIL image or an array, as a finite numeric array."""
    if hasattr(image, "detach"):
        image = image.detach().cpu()
    if hasattr(image, "mode") and hasattr(image, "convert"):
        image = _pixels(image)
    array = read(image) if isinstance(image, str | os.PathLike) else np.asarray(image)
    if array.dtype == bool:
        array = array.astype(np.uint8)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind not in "uif" or array.ndim not in (2, 3):
        raise ValueError(f"an image must be a numeric array (H, W) or (H, W, channels), got {array.dtype} {array.shape}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"an image must have finite pixels, got {int((~np.isfinite(array)).sum())} that are NaN or infinite; "
                         "replace them first, for example with np.nan_to_num")
    return array


def laid_out(image: Any, layout: str) -> NDArray[Any]:
    """An image as the model takes it, with channels where it wants them."""
    array, first = check_image(image), layout == "NCHW"
    if first and array.ndim == 2:
        array = array[None]  # a net that wants channels first wants a channel
    if first and array.shape[0] not in (1, 3, 4):
        if array.shape[-1] not in (1, 3, 4):
            raise ValueError(f"an image must have 1, 3 or 4 channels, first or last, got shape {array.shape}")
        array = np.ascontiguousarray(np.moveaxis(array, -1, 0))
    if not first and array.ndim == 3 and array.shape[-1] not in (1, 3, 4):
        hint = ("; for channels first pass layout='NCHW' to wt.model" if array.shape[0] in (1, 3, 4)
                else "; pass several images as a list")
        raise ValueError(f"an image must be (H, W) or (H, W, channels) with 1, 3 or 4 channels, got {array.shape}{hint}")
    if min(array.shape[1:] if first else array.shape[:2]) < 2:
        raise ValueError(f"an image must have at least 2 × 2 pixels, got shape {array.shape}")
    return array


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
    cutters = {"grid": _grid, "slic": _slic, "quickshift": _quickshift, "felzenszwalb": _felzenszwalb}
    if name not in cutters:
        raise ValueError(f"image parts must be grid:4x4, slic:16, quickshift, felzenszwalb or a label array, got {spec!r}")
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


def _slic(image: NDArray[Any], argument: str, spec: str) -> NDArray[Any]:
    pixels = _colours(_unit(image))
    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[-1] == 1 else pixels
    channel = -1 if pixels.ndim == 3 else None
    return np.asarray(_segmentation().slic(pixels, n_segments=_whole(argument or "16", spec), compactness=10, sigma=1,
                                           start_label=0, channel_axis=channel))


def _few_segments(spec: str | NDArray[Any], found: int) -> tuple[str, ...]:
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
    if not argument.isdigit() or int(argument) < 1:
        raise ValueError(f"parts such as {spec.partition(':')[0]}:16 take a whole number >= 1, got {spec!r}")
    return int(argument)


def _unit(image: NDArray[Any]) -> Floats:
    low, high = value_range(image)
    return np.asarray((image.astype(np.float64) - low) / (high - low))


def _three(image: NDArray[Any]) -> Floats:
    return to_rgb(image) / 255.0


def _colours(pixels: Floats) -> Floats:
    """Without the alpha channel."""
    return pixels[..., :3] if pixels.ndim == 3 and pixels.shape[-1] == 4 else pixels


def _renumber(labels: NDArray[Any]) -> NDArray[np.int32]:
    """0 … d-1 without gaps, in the order of the old numbers."""
    if labels.dtype.kind in "ui" and labels.min() == 0 and np.bincount(labels.ravel()).all():
        return labels.astype(np.int32)
    return np.unique(labels, return_inverse=True)[1].reshape(labels.shape).astype(np.int32)


def _place(down: float, across: float) -> str:
    vertical = ("top", "middle", "bottom")[min(int(down * 3), 2)]
    horizontal = ("left", "centre", "right")[min(int(across * 3), 2)]
    return "centre" if (vertical, horizontal) == ("middle", "centre") else f"{vertical} {horizontal}"


def _check_fill(fill: Any, image: NDArray[Any]) -> str | float | tuple[float, ...]:
    if isinstance(fill, str):
        if fill not in FILLS:
            raise ValueError(f"fill must be one of {', '.join(FILLS)}, a number, or one number a channel, got {fill!r}")
        return fill
    values = np.asarray(fill, dtype=np.float64)
    channels = min(image.shape[2], 3) if image.ndim == 3 else 1
    if values.ndim > 1 or (values.ndim == 1 and len(values) != channels) or not np.isfinite(values).all():
        raise ValueError(f"a constant fill must be one number or {channels} (one a channel), got {fill!r}")
    if image.dtype.kind in "ui" and (values.min() < np.iinfo(image.dtype).min or values.max() > np.iinfo(image.dtype).max):
        raise ValueError(f"a constant fill must fit the image's {image.dtype} pixels, got {fill!r}")
    return float(values) if values.ndim == 0 else tuple(float(v) for v in values)
