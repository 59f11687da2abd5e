"""Clean, adversarial and what lies between them, side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from whytrust.attacks.ball import Bounds
from whytrust.core import Floats, need

UP, DOWN = (0 / 255, 114 / 255, 178 / 255), (221 / 255, 107 / 255, 0 / 255)
"""Blue for more, orange for less: told apart by readers with any of the common colour-vision deficiencies."""

FEW = 100
"""Rows of so many numbers are drawn as bars; longer ones as a line."""
NOTHING = 1e-6
"""A change below this share of an input's range is not blown up: it could not be told from rounding."""


def figure(clean: Sequence[Floats], moved: Sequence[Floats], titles: Sequence[str], bounds: Bounds) -> Any:
    """A matplotlib Figure: one column an input, rows for before, after and the difference."""
    matplotlib = need("matplotlib.figure", "report")
    n = len(clean)
    if n == 0:
        raise ValueError("a figure needs at least one input that did not fail")
    sizes = [_size(array) for array in clean]
    wide, tall = max(w for w, _ in sizes), max(t for _, t in sizes)
    picture = matplotlib.Figure(figsize=(max(wide * n, 4.2), 3 * tall + 1.5), layout="constrained", facecolor="white")
    axes = picture.subplots(3, n, squeeze=False)
    pictures = [pair for pair in zip(clean, moved, strict=True) if _is_image(pair[0])]
    # One for all, so that the inputs' changes can be compared.
    larger = min((factor(after.astype(np.float64) - before, _range(before, after, bounds)[1]) for before, after in pictures),
                 default=1.0)
    for column, (before, after, title) in enumerate(zip(clean, moved, titles, strict=True)):
        below = [axes[row][column] for row in range(3)]
        if _is_image(before):
            _image(below, before, after, _range(before, after, bounds), larger)
        else:
            (_map if before.ndim == 2 else _bars if before.size <= FEW else _lines)(below, before, after)
        axes[0][column].set_title(title, fontsize=9)
    for row, name in enumerate(("before", "after", "difference")):
        axes[row][0].set_ylabel(name, fontsize=9)
    return picture


def _size(first: Floats) -> tuple[float, float]:
    """Inches of one picture: of an image as it is shaped, so that no white is left around it."""
    if not _is_image(first):
        return 4.0, 2.0
    axis = _channel_axis(first)
    height, width = (n for a, n in enumerate(first.shape) if a != axis)
    return (2.4, float(np.clip(2.4 * height / width, 0.8, 2.4))) if width >= height else (
        float(np.clip(2.4 * width / height, 1.8, 2.4)), 2.4)


def factor(change: Floats, room: float) -> float:
    """By how much a difference is made larger to fill `room`: a round number (1, 2, 5, 10, …), so that a reader can divide."""
    most = float(np.abs(change).max(initial=0))
    if most <= NOTHING * room or room <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(room / most))
    return max(m * power for m in (1, 2, 5) if m * power <= room / most * (1 + 1e-9))


def _largest(change: Floats, larger: float) -> str:
    return f"largest change {np.abs(change).max():.3g}" + ("" if larger == 1 else f",\nshown {larger:g} times as large")


def blue_orange(strengths: Floats) -> Floats:
    """(…,) from -1 to 1 -> (…, 3): white at 0, blue at 1, orange at -1."""
    signed = np.clip(strengths, -1, 1)[..., None]
    return np.asarray(1 - np.abs(signed) * (1 - np.where(signed >= 0, UP, DOWN)))


def _channel_axis(array: Floats) -> int | None:
    if array.ndim == 3:
        return 0 if array.shape[0] in (1, 3, 4) else 2 if array.shape[2] in (1, 3, 4) else None
    return None


def _is_image(array: Floats) -> bool:
    """Three axes, one of them channels, or two that are about equally long: a spectrogram is drawn another way."""
    return _channel_axis(array) is not None or (array.ndim == 2 and array.shape[0] == array.shape[1])


def _range(before: Floats, after: Floats, bounds: Bounds) -> tuple[float, float]:
    """(lowest, width) of what an image's numbers may be."""
    least, most = bounds or (None, None)
    low = float(min(before.min(), after.min())) if least is None else least
    high = float(max(before.max(), after.max())) if most is None else most
    return low, (high - low) or 1.0


def _image(axes: list[Any], before: Floats, after: Floats, scale: tuple[float, float], larger: float) -> None:
    low, span = scale
    change = after.astype(np.float64) - before
    axis = _channel_axis(change)
    # Channels are averaged: opposite changes of red and blue cancel to white, so the title names the largest change too.
    mean = change if axis is None else change.mean(axis=axis)
    for ax, picture in zip(axes, (_rgb(before, low, span), _rgb(after, low, span), blue_orange(mean * larger / span)),
                           strict=True):
        ax.imshow(picture, interpolation="nearest")
        ax.set_xticks([])
        ax.set_yticks([])
    axes[2].set_title(f"{_largest(change, larger)}\nblue: more, orange: less", fontsize=8)


def _rgb(array: Floats, low: float, span: float) -> Floats:
    axis = _channel_axis(array)
    values = np.clip((array.astype(np.float64) - low) / span, 0, 1)
    values = values[..., None] if axis is None else np.moveaxis(values, axis, -1)[..., :3]
    return np.repeat(values, 3, axis=-1) if values.shape[-1] == 1 else values


def _map(axes: list[Any], before: Floats, after: Floats) -> None:
    """A spectrogram (frames × bands): time to the right, frequency up."""
    change = after.astype(np.float64) - before
    low, high = float(min(before.min(), after.min())), float(max(before.max(), after.max()))
    for ax, values in zip(axes, (before, after), strict=False):
        ax.imshow(values.T, origin="lower", aspect="auto", cmap="gray", vmin=low, vmax=high, interpolation="nearest")
    most = float(np.abs(change).max()) or 1.0
    axes[2].imshow(blue_orange(change / most).swapaxes(0, 1), origin="lower", aspect="auto", interpolation="nearest")
    axes[2].set_title(f"full colour: ±{most:.3g} of {high - low:.3g} · blue: more, orange: less", fontsize=8)
    axes[2].set_xlabel("frame", fontsize=8)
    for ax in axes:
        ax.tick_params(labelsize=7)


def _bars(axes: list[Any], before: Floats, after: Floats) -> None:
    """A few numbers, as of a table row: before, after and by how much."""
    change = (after.astype(np.float64) - before).ravel()
    for ax, values in zip(axes, (before.ravel(), after.ravel(), change), strict=True):
        ax.bar(np.arange(len(values)), values, color=[UP if v >= 0 else DOWN for v in values] if ax is axes[2] else "0.35")
        ax.axhline(0, color="black", linewidth=0.6)
        ax.tick_params(labelsize=7)
        ax.xaxis.get_major_locator().set_params(integer=True)
    axes[2].set_title(f"largest change {np.abs(change).max():.3g} · blue: more, orange: less", fontsize=8)
    axes[2].set_xlabel("number, from 0", fontsize=8)


def _lines(axes: list[Any], before: Floats, after: Floats) -> None:
    """A waveform, or anything else as the row of its numbers."""
    change = (after.astype(np.float64) - before).ravel()
    highest = float(max(np.abs(before).max(), np.abs(after).max())) or 1.0
    larger = factor(change, highest)
    for ax, values, colour in zip(axes, (before.ravel(), after.ravel(), change * larger), ("black", "black", UP), strict=True):
        ax.plot(values, color=colour, linewidth=0.6)
        ax.set_ylim(-1.05 * highest, 1.05 * highest)
        ax.margins(x=0)
        ax.tick_params(labelsize=7)
    axes[2].set_title(_largest(change, larger), fontsize=8)
    axes[2].set_xlabel("sample", fontsize=8)
