"""One song as a singing-voice detector hears it: spectrogram, probability, answers beside the annotation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, need
from whytrust.models.detection import smoothed
from whytrust.models.songs import BANDS, FRAME_RATE, Song
from whytrust.pictures import colours, lettering

HERTZ = (100, 300, 1000, 3000, 7000)
_BLUE, _ORANGE, _FAINT = (tuple(part / 255 for part in colour) for colour in (colours.FOR, colours.AGAINST, (87, 96, 106)))


def draw(song: Song, log_mel: NDArray[np.float32], probabilities: Floats, threshold: float, path: Path) -> None:
    """Write the picture as PNG; a song without annotation has no row for it."""
    fig = need("matplotlib.figure", "report").Figure(figsize=(10, 5.6), dpi=lettering.DPI, facecolor="white")
    top, middle, bottom = fig.subplots(3, 1, sharex=True, height_ratios=(3, 2, 1.1))
    fig.subplots_adjust(left=0.15, right=0.91, top=0.93, bottom=0.1, hspace=0.12)
    seconds = len(log_mel) / FRAME_RATE
    top.set_title(lettering.fit(song.name, 8.5, 11), loc="left", fontsize=11, **lettering.plain())
    _spectrogram(top, log_mel, seconds)
    moments = np.arange(len(probabilities)) / FRAME_RATE
    middle.plot(moments, probabilities, color=_BLUE, linewidth=0.9)
    middle.axhline(threshold, color=_FAINT, linewidth=0.9, linestyle="--")
    middle.set(ylim=(-0.03, 1.03), yticks=(0, 0.5, 1), ylabel="probability\nof singing")
    middle.text(1.008, threshold, f"threshold\n{threshold:g}", transform=middle.get_yaxis_transform(), ha="left", va="center",
                fontsize=8.5, color=_FAINT)
    _bars(bottom, smoothed(probabilities) > threshold, song.labels if song.sung is not None else None)
    bottom.set(xlim=(0, seconds), xlabel="seconds")
    for axes in (top, middle, bottom):
        axes.spines[["top", "right"]].set_visible(False)
    fig.savefig(path, facecolor="white")


def _spectrogram(axes: Any, log_mel: NDArray[np.float32], seconds: float) -> None:
    """Grey, so that blue and orange keep their meaning; the darkest thousandth of the cells are as dark as can be."""
    from whytrust.models.front_end import mel_points  # needs torch, as whoever made the log-mel did

    low, high = np.quantile(log_mel, (0.05, 0.999))
    axes.imshow(log_mel.T, origin="lower", aspect="auto", cmap="Greys", vmin=low, vmax=max(high, low + 1e-3),
                extent=(0, seconds, -0.5, BANDS - 0.5), interpolation="antialiased")
    peaks = mel_points(BANDS, 27.5, 8000.0)[1:-1]
    axes.set_yticks(np.interp(HERTZ, peaks, np.arange(BANDS)), [f"{hertz:,}" for hertz in HERTZ])
    axes.set_ylabel("Hz (mel bands)")
    axes.tick_params(labelbottom=False)


def _bars(axes: Any, answers: NDArray[np.bool_], labels: NDArray[np.bool_] | None) -> None:
    rows = [("detector", answers, _BLUE, ""), *([] if labels is None else [("annotation", labels, _ORANGE, "////")])]
    for row, (_, sung, colour, hatch) in enumerate(rows):
        edges = np.flatnonzero(np.diff(np.concatenate([[0], sung, [0]]).astype(int))).reshape(-1, 2) / FRAME_RATE
        axes.broken_barh([(start, end - start) for start, end in edges], (row - 0.36, 0.72), facecolor=colour, hatch=hatch,
                         edgecolor="white" if hatch else colour, linewidth=0)
    axes.set(ylim=(len(rows) - 0.4, -0.6), yticks=range(len(rows)), yticklabels=[f"sings: {name}" for name, *_ in rows])
    axes.tick_params(axis="y", length=0)
