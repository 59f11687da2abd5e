"""The curves of error against model calls, one panel a domain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

STYLES: dict[str, dict[str, Any]] = {  # Okabe and Ito's colours; markers and dashes tell the lines apart without them
    "lime": {"color": "#D55E00", "marker": "s", "linestyle": "--", "markersize": 7, "markerfacecolor": "none"},
    "captum": {"color": "#009E73", "marker": "^", "linestyle": ":", "markersize": 6},
    "whytrust": {"color": "#0072B2", "marker": "o", "linestyle": "-", "markersize": 5},
}


def draw(results: Sequence[dict[str, Any]], path: Path) -> None:
    """Write the picture."""
    figure, panels = plt.subplots(1, len(results), figsize=(4.6 * len(results), 4.2), squeeze=False, layout="constrained")
    for panel, result in zip(panels[0], results, strict=True):
        _panel(panel, result)
    panels[0][0].set_ylabel("root-mean-square error of a weight")
    panels[0][0].legend(frameon=False, loc="lower left")
    figure.suptitle("Error against the enumerated truth by number of model calls", fontsize=13)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _panel(panel: Axes, result: dict[str, Any]) -> None:
    for method, style in STYLES.items():
        points = result["curves"][method]
        panel.plot([p["calls"] for p in points], [p["error"] for p in points], label=method, **style)
    panel.set(xscale="log", yscale="log", xlabel="model calls", title=f"{result['domain']}, {result['parts']} parts")
    ticks = [100, 200, 400, 800, 1600, 3200, 6400]
    panel.set_xticks(ticks)
    panel.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.grid(True, which="major", color="#dddddd", linewidth=0.7)
    panel.spines[["top", "right"]].set_visible(False)
