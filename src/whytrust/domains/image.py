"""Images cut into segments: a grid, super-pixels, or the user's own label array."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import files, limits
from whytrust.core import Batch, Floats, Masks, check_baseline, check_masks, need, pool_labels, runs
from whytrust.domains import jpeg
from whytrust.domains.inpainting import painted
from whytrust.domains.segments import colours_of, few_segments, value_range
from whytrust.domains.segments import segment as segment
from whytrust.domains.segments import to_rgb as to_rgb
from whytrust.views import ImageView

FILLS = ("segment_mean", "image_mean", "blur", "inpaint", "noise", "black")
BASELINES: dict[str, str | float] = {"zeros": 0.0, "mean": "image_mean", "segment_mean": "segment_mean", "blur": "blur",
                                     "inpaint": "inpaint", "noise": "noise"}
"""What a metric may hide parts behind, and how that is called as a fill."""
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff")


FORMATS = ("PNG", "JPEG", "MPO", "BMP", "DIB", "GIF", "WEBP", "TIFF", "AVIF")
"""What a file with one of these endings may be: Pillow knows others, and runs a PostScript interpreter for one of them."""


def read(path: str | os.PathLike[str]) -> NDArray[Any]:
    """An image file as (H, W, 3) bytes, or (H, W) where it is grey."""
    library, what = need("PIL.Image", "image"), "an image file that Pillow can read"
    files.checked(path, what, limits.IMAGE)
    library.init()
    known = [one for one in FORMATS if one in library.OPEN]
    otherwise = "save it again, whole or smaller"
    with files.telling(path, what, otherwise):
        jpeg.check(path, what)
    with files.telling(path, what, otherwise), files.hushed(), library.open(path, formats=known) as image:
        wide, high = image.size
        if wide * high > limits.PIXELS:
            raise ValueError(f"it must have at most {limits.PIXELS:,} pixels, got {wide} × {high}; make it smaller, or cut it")
        covered = sum((right - left) * (low - top) for _, (left, top, right, low), *_ in image.tile)
        if image.format == "TIFF" and covered < wide * high:  # Pillow would leave the rest black, and say nothing
            raise ValueError(f"it is cut off: it has less than {wide} × {high} pixels")
        return _pixels(image)


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
    takes the shape away, `noise` (drawn anew for each input) takes both, `inpaint` goes on with what is around it.
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
        """Cut by "grid:4x4", "slic:16", "quickshift", "felzenszwalb[:scale]", "pixels", or an (H, W) array of labels."""
        array, first = laid_out(image, layout), layout == "NCHW"
        last = np.moveaxis(array, 0, -1) if first else array
        labels = segment(last, spec)
        return cls(array, labels, _check_fill(fill, last), first, few_segments(spec, int(labels.max()) + 1))

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
        if isinstance(self.fill, str) and self.fill == "inpaint":
            return self._inpainted(masks)
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
        colours = colours_of(pixels)
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

    def _inpainted(self, masks: Masks) -> NDArray[Any]:
        """Hidden pixels painted from those around them; what is transparent stays so."""
        pixels = self._last.reshape(*self.labels.shape, -1).astype(np.float64)
        out = np.repeat(pixels[None], len(masks), axis=0)
        colours = colours_of(pixels)
        out[..., : colours.shape[-1]] = painted(colours, masks[:, self.labels])
        made = np.stack([self._like_image(one.reshape(self._last.shape)) for one in out]) if len(out) else out
        made[masks.all(axis=1)] = self.image
        return made

    @property
    def baselines(self) -> tuple[str, ...]:
        """What segments can be hidden behind."""
        return tuple(BASELINES)

    def behind(self, baseline: str, rng: np.random.Generator) -> ImageParts:
        """The same cut, hidden behind that; noise is drawn once."""
        check_baseline(baseline, self.baselines)
        return self.over(self._noise(1, rng)[0]) if baseline == "noise" else replace(self, fill=BASELINES[baseline])

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
