"""Spectrograms of a run: shapes that were drawn with what LIME says of them, and adversaries with what was changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from whytrust.core import need
from whytrust.domains.audio import AudioParts
from whytrust.pictures import colours, lettering
from whytrust.store import Store
from whytrust.studies.drawing import TOP
from whytrust.studies.veracity_outcomes import CELLS, cell_name
from whytrust.studies.veracity_published import SIGNALS

MOST = 6
"""Drawings that are shown."""
OUTLINE, FAINT = "#dd6b00", "#57606a"
Found = Mapping[str, Any]
Legend = tuple[list[Any], list[str]]


def new(wide: float, high: float) -> Any:
    """An empty figure of so many inches."""
    return need("matplotlib.figure", "report").Figure(figsize=(wide, high), dpi=lettering.DPI, facecolor="white")


def finished(fig: Any, title: str, legend: Legend | None = None, columns: int = 3, below: float = 0.0, left: float = 0.85,
             gaps: tuple[float, float] = (0.12, 0.3)) -> Any:
    """The title above, the names of lines below, and room for both; `below` is more room for what stands under the axes."""
    wide, high = fig.get_size_inches()
    lines = lettering.wrap(title, wide - 0.3, 12.8)  # bold letters of 11 points are about as wide
    fig.text(0.12 / wide, 1 - 0.1 / high, "\n".join(lines), fontsize=11, fontweight="bold", va="top", **lettering.plain())
    rows = 0
    if legend is not None:
        rows = -(-len(legend[1]) // columns)
        fig.legend(*legend, loc="lower center", ncols=columns, fontsize=8.5, frameon=False, handlelength=2.6)
    fig.subplots_adjust(left=left / wide, right=1 - 0.2 / wide, top=1 - (0.55 + 0.2 * len(lines)) / high,
                        bottom=(0.5 + 0.22 * rows + below) / high, wspace=gaps[0], hspace=gaps[1])
    return fig


def drawings(store: Store, made: Sequence[Found]) -> Any:
    """Figure 1: can a reader see the drawing, and does LIME point at it?"""
    chosen = _varied(made)
    fig = new(9.0, 1.0 + 1.95 * len(chosen))
    grid = np.reshape(fig.subplots(len(chosen), 3), (len(chosen), 3))
    for row, one in zip(grid, chosen, strict=True):
        arrays = store.arrays(one["case"], "clean", "drawn")
        low, high = float(arrays["clean"].min()), float(arrays["drawn"].max())
        for axes, what in zip(row, ("clean", "drawn", "drawn"), strict=True):
            _spectrogram(axes, arrays[what], low, high)
        _outlined(row[2], arrays["drawn"], one["order"][:TOP])
        fidelity = "" if one["fidelity"] is None else f", fidelity {one['fidelity']:.2f}"
        song = lettering.fit(one["song"], 1.4, 8.5)
        for axes, words in zip(row, (f"{song}: p(sing) = {one['prediction_before']:.2f}",
                                     f"{one['shape']}: p(sing) = {one['prediction']:.2f}",
                                     f"best {TOP}: {one['hits']} on it (before: {one['hits_before']}){fidelity}"), strict=True):
            _titled(axes, words)
    _axes_named(grid)
    return finished(fig, f"Figure 1: “no sing”, a shape drawn until it is “sing”, and LIME’s best {TOP} segments (numbered)",
                    left=0.4)


def _varied(made: Sequence[Found]) -> list[Found]:
    """The first drawing of each shape, then others, up to as many as are shown."""
    by_shape: dict[str, Found] = {}
    for one in made:
        by_shape.setdefault(one["shape"], one)
    first = list(by_shape.values())
    return [*first, *(one for one in made if one not in first)][:MOST]


def adversaries(store: Store) -> Any | None:
    """What an attack changes: an excerpt before and after, and the difference; the first of each setting that was kept."""
    shown: dict[tuple[str, str], Found] = {}
    for found in store.records():
        if found.get("kind") == "excerpts" and found["status"] == "ok" and found["case"].endswith(".0"):
            shown.setdefault((found["signal"], found["direction"]), found)
    if not shown:
        return None
    fig = new(9.0, 1.0 + 1.95 * len(shown))
    grid = np.reshape(fig.subplots(len(shown), 3), (len(shown), 3))
    for row, (signal, direction) in zip(grid, (cell for cell in CELLS if cell in shown), strict=True):
        record = shown[signal, direction]
        arrays = store.arrays(record["case"], "clean", "adversarial")
        low, high = float(arrays["clean"].min()), float(arrays["clean"].max())
        change = arrays["adversarial"].astype(np.float64) - arrays["clean"]
        most = max(float(np.quantile(np.abs(change), 0.99)), 1e-300)
        for axes, what in zip(row, ("clean", "adversarial"), strict=False):
            _spectrogram(axes, arrays[what], low, high)
        row[2].imshow(colours.rgb(np.clip(change / most, -1, 1)).swapaxes(0, 1), origin="lower", aspect="auto",
                      interpolation="nearest")
        _bare(row[2])
        decibels = record["attack"].get("signal_to_noise")
        noise = "" if decibels is None else f", {decibels:.0f} dB"
        for axes, words in zip(row, (f"{record['song']}: {direction}", f"{cell_name(signal, direction)}{noise}",
                                     f"change, full colour ± {most:.2g}"), strict=True):
            _titled(axes, words)
    _axes_named(grid)
    return finished(fig, f"Adversaries of {' and '.join(SIGNALS.values())}: log-mel before and after, and the change (blue: "
                    "louder, orange: quieter)", left=0.4)


def _spectrogram(axes: Any, excerpt: Any, low: float, high: float) -> None:
    axes.imshow(np.asarray(excerpt).T, origin="lower", aspect="auto", cmap="gray_r", vmin=low, vmax=high,
                interpolation="nearest")
    _bare(axes)


def _bare(axes: Any) -> None:
    axes.set_xticks([])
    axes.set_yticks([])


def _axes_named(grid: Any) -> None:
    """Which way time and frequency run, once."""
    grid[-1, 0].set_xlabel("1.6 seconds →", fontsize=8, color=FAINT)
    grid[-1, 0].set_ylabel("27.5 to 8000 Hz →", fontsize=8, color=FAINT)


def _titled(axes: Any, words: str) -> None:
    axes.set_title(lettering.fit(words, 2.75, 8.5), fontsize=8.5, loc="left", pad=3, **lettering.plain())


def _outlined(axes: Any, excerpt: Any, parts: Sequence[int]) -> None:
    """Borders of segments, each with its rank."""
    labels = AudioParts.cut(excerpt, "tf:5x4").labels
    for rank, part in enumerate(parts, 1):
        times, bands = np.nonzero(labels == part)
        corner = times.min() - 0.5, bands.min() - 0.5
        axes.add_patch(need("matplotlib.patches", "report").Rectangle(
            corner, np.ptp(times) + 1, np.ptp(bands) + 1, fill=False, edgecolor=OUTLINE, linewidth=2.4))
        axes.text(corner[0] + 2.5, corner[1] + np.ptp(bands) - 1, str(rank), fontsize=9, fontweight="bold", va="top",
                  color="white", bbox={"facecolor": OUTLINE, "edgecolor": "none", "boxstyle": "square,pad=0.15"})
