"""Scores laid over an image or a spectrogram, as RGB arrays that page and plot share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats
from whytrust.pictures import colours, raster
from whytrust.pictures.bars import Bar
from whytrust.pictures.raster import Pixels
from whytrust.views import ImageView, SoundView

GREY = 160
"""What stands in for a part that a picture of the positive parts leaves out."""
BRIGHTEST = 99.0
"""The percentile of a map's values that gets the full colour: a few wild pixels would leave the rest white."""
_INK = 50.0


@dataclass(frozen=True)
class Canvas:
    """An input as a picture large enough to see and small enough to send, and the part of each of its pixels."""

    pixels: Pixels  # (H, W, 3), as a person knows the input
    labels: NDArray[np.int32]  # (H, W)

    def coloured(self, scores: Floats) -> Pixels:
        """The input in pale grey, each part tinted by its score and outlined: the only colours are the scores'."""
        strengths = colours.strength(scores)[self.labels]
        grey = self.pixels.astype(np.float64) @ np.array([0.299, 0.587, 0.114])
        pale = 255 - (255 - grey) * 0.65
        out = colours.blend(np.repeat(pale[..., None], 3, axis=2), strengths)
        edge = raster.outlines(self.labels)
        out[edge] = 0.5 * out[edge] + 0.5 * _INK
        return np.clip(np.rint(out), 0, 255).astype(np.uint8)

    def positive(self, scores: Floats) -> Pixels:
        """The input where its part's score is above 0, plain grey elsewhere."""
        keep = (np.asarray(scores) > 0)[self.labels]
        return np.where(keep[..., None], self.pixels, np.uint8(GREY)).astype(np.uint8)

    def places(self, rows: Sequence[Bar], size: float) -> list[tuple[Bar, float, float]]:
        """Where to write each part's rank, as shares of width and height; where two collide the larger score is written."""
        found = raster.middles(self.labels, [bar.part for bar in rows])
        height, width = self.labels.shape
        tall, wide = 1.1 * size * max(height, width) / height, 2.2 * size * max(height, width) / width
        out: list[tuple[Bar, float, float]] = []
        for bar in rows:
            if bar.score == 0 or bar.part not in found:
                continue
            x, y = found[bar.part]
            x, y = min(max(x, wide / 2), 1 - wide / 2), min(max(y, tall / 2), 1 - tall / 2)
            if all(abs(x - a) >= wide or abs(y - b) >= tall for _, a, b in out):
                out.append((bar, x, y))
        return out


def image_canvas(view: ImageView) -> Canvas:
    """An image between about 300 and 640 pixels on its longer side."""
    up, down = raster.zoom(*view.labels.shape)
    pixels = raster.resize(view.pixels, (up, up), (down, down))
    return Canvas(pixels.astype(np.uint8), raster.resize(view.labels, (up, up), (down, down), mean=False))


def sound_canvas(view: SoundView) -> Canvas:
    """A spectrogram: time to the right, low notes at the bottom, darker is louder."""
    loud = np.nan_to_num(np.asarray(view.spectrogram, dtype=np.float64).T[::-1])
    labels = np.asarray(view.labels).T[::-1]
    (tall, low), (wide, narrow) = raster.zoom(loud.shape[0], 1, 200, 320), raster.zoom(1, loud.shape[1], 480, 640)
    loud = raster.resize(loud, (tall, wide), (low, narrow))
    floor, ceiling = np.percentile(loud, (2, 99.8))
    share = np.clip((loud - floor) / (ceiling - floor), 0, 1) if ceiling > floor else np.zeros_like(loud)
    grey = np.rint(255 * (1 - share)).astype(np.uint8)
    return Canvas(np.repeat(grey[..., None], 3, axis=2), raster.resize(labels, (tall, wide), (low, narrow), mean=False))


def map_pixels(view: ImageView | SoundView, map: Floats) -> Pixels:
    """A map on white: blue above 0, orange below; the strongest colour stands for all but the largest few values."""
    values = np.asarray(map, dtype=np.float64)
    if isinstance(view, SoundView):
        values = values.T[::-1]
        (tall, low), (wide, narrow) = raster.zoom(values.shape[0], 1, 200, 320), raster.zoom(1, values.shape[1], 480, 640)
        up, down = (tall, wide), (low, narrow)
    else:
        enlarge, shrink = raster.zoom(*values.shape)
        up, down = (enlarge, enlarge), (shrink, shrink)
    largest = np.percentile(np.abs(values), BRIGHTEST) or np.abs(values).max() or 1.0
    return colours.rgb(np.clip(raster.resize(values, up, down) / largest, -1, 1))


def canvas(view: ImageView | SoundView) -> Canvas:
    """The picture of an image or a sound."""
    return image_canvas(view) if isinstance(view, ImageView) else sound_canvas(view)


def axis_ends(view: SoundView) -> tuple[tuple[str, str], tuple[str, str]]:
    """What stands at the two ends of the time axis and of the frequency axis."""
    frames, bands = view.spectrogram.shape
    time = ("frame 1", f"frame {frames}") if view.seconds is None else ("0 s", f"{view.seconds:.3g} s")
    if view.top_hz is None:
        return time, ("lowest band", "highest band") if bands > 1 else ("", "")
    top = f"{view.top_hz / 1000:.3g} kHz" if view.top_hz >= 1000 else f"{view.top_hz:.3g} Hz"
    return time, ("low", top)
