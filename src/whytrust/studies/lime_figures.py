"""Figures 6, 7 and 8 and Table 1 of Ribeiro et al. (2016) drawn from runs, with the published numbers as diamonds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from whytrust.core import need
from whytrust.studies.figures import write
from whytrust.studies.lime_published import FAITHFUL, TRUST, published
from whytrust.studies.mistrust import EVERYTHING

BLUE, ORANGE, GREY, DARK = "#0072b2", "#d55e00", "#8c959f", "#24292f"
BARS = {"random": ("random", GREY), "parzen": ("Parzen", GREY), "greedy": ("greedy", GREY),
        "authors": ("LIME,\nauthors", ORANGE), "lime": ("LIME,\nintercept", BLUE)}
LINES = {"SP-lime": (BLUE, "o", "-"), "RP-lime": (BLUE, "s", "--"), "SP-greedy": (ORANGE, "o", "-"),
         "RP-greedy": (ORANGE, "s", "--"), "SP-random": (GREY, "", "-"), "RP-random": (GREY, "", ":"),
         "knows all": (DARK, "", "-.")}
Found = Mapping[str, Any]


def draw(found: Found, experiment: str, folder: Path) -> list[Path]:
    """Write the figure of an experiment; none while nothing is known yet."""
    return write(_figures(found, experiment), folder)


def _figures(found: Found, experiment: str) -> Iterator[tuple[str, str, Any]]:
    if experiment in ("fig6", "fig7") and found["cells"]:
        yield experiment, f"lime-{experiment}", faithful(found)
    elif experiment == "table1" and found["cells"]:
        yield experiment, "lime-table1", trust(found)
    elif experiment == "fig8" and found["charts"]:
        yield experiment, "lime-fig8", choice(found)


def _new(wide: float, high: float) -> Any:
    return need("matplotlib.figure", "report").Figure(figsize=(wide, high), layout="constrained")


def faithful(found: Found) -> Any:
    """Figures 6 and 7: recall, a panel a readable model; the line is what could be found at all."""
    figure = _new(4.3 * len(found["cells"]), 3.9)
    panels = figure.subplots(1, len(found["cells"]), squeeze=False, sharey=True)[0]
    for axes, (key, cell) in zip(panels, found["cells"].items(), strict=True):
        name, kind = key.split(" ")
        _bars(axes, {row: cell[row] for row in BARS}, {row: published(FAITHFUL, name, kind, "lime" if row == "authors" else row)
                                                       for row in BARS if row != "lime"})
        ceiling = 100 * cell["ceiling"]["value"]
        axes.axhline(ceiling, color=DARK, linewidth=1, linestyle=":")
        axes.annotate(f"can be found: {ceiling:.0f}", (-0.45, ceiling), fontsize=8, va="bottom", xytext=(0, 1.5),
                      textcoords="offset points")
        if kind == "tree":
            empty = 100 * cell["authors, empty path"]["value"]
            axes.plot([3], [empty], marker="_", markersize=26, color=ORANGE, markeredgewidth=2)
            axes.annotate(f"{empty:.0f} if an empty\npath names all", (3, empty), fontsize=7.5, ha="center", va="bottom",
                          xytext=(0, 5), textcoords="offset points")
        axes.set_title(f"{name}: {'sparse logistic regression' if kind != 'tree' else 'decision tree'}", fontsize=10)
        axes.set_ylim(0, 112)
    panels[0].set_ylabel("recall of the words that the model uses (%)", fontsize=9)
    return figure


def _bars(axes: Any, rates: Mapping[str, Any], theirs: Mapping[str, float | None]) -> None:
    for place, (row, rate) in enumerate(rates.items()):
        value, low, high = (100 * rate[key] for key in ("value", "low", "high"))
        axes.bar(place, value, 0.68, color=BARS[row][1])
        axes.errorbar(place, value, [[value - low], [high - value]], fmt="none", ecolor=DARK, capsize=3, elinewidth=1.2)
        axes.text(place, 3, f"{value:.1f}", ha="center", va="bottom", fontsize=8.5, color="white", fontweight="bold")
        if theirs.get(row) is not None:
            axes.plot([place], [theirs[row]], marker="D", markersize=6, markerfacecolor="white", markeredgecolor=DARK,
                      linestyle="none", zorder=5)
    axes.set_xticks(range(len(rates)), [BARS[row][0] for row in rates], fontsize=8.5)
    if theirs.get("random") is not None:  # the lowest bar, with room above it
        axes.annotate("published", (0, theirs["random"]), xytext=(0, 8), textcoords="offset points", ha="center", fontsize=7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def trust(found: Found) -> Any:
    """Table 1 as bars: F1 a model and data set, the line of trusting everything across them."""
    names = list(dict.fromkeys(key.split(" ")[0] for key in found["cells"]))
    kinds = list(dict.fromkeys(key.split(" ")[1] for key in found["cells"]))
    figure = _new(2.9 * len(kinds), 3.3 * len(names))
    panels = figure.subplots(len(names), len(kinds), squeeze=False, sharey=True)
    for row, name in enumerate(names):
        for column, kind in enumerate(kinds):
            axes, cell = panels[row][column], found["cells"].get(f"{name} {kind}")
            if cell is None:
                axes.set_visible(False)
                continue
            _bars(axes, {r: cell["rows"][r] for r in BARS}, {r: published(TRUST, name, kind, "lime" if r == "authors" else r)
                                                            for r in BARS if r != "lime"})
            line = 100 * cell["rows"][EVERYTHING]["value"]
            axes.axhline(line, color=DARK, linewidth=1, linestyle=":")
            axes.annotate(f"trust everything: {line:.1f}", (-0.45, line), fontsize=7.5, va="bottom", xytext=(0, 1.5),
                          textcoords="offset points")
            axes.set_title(f"{name}: {kind}", fontsize=10)
            axes.set_ylim(0, 114)
            axes.tick_params(axis="x", labelsize=7)
        panels[row][0].set_ylabel("F1 of “trustworthy” (%)", fontsize=9)
    return figure


def choice(found: Found) -> Any:
    """Figure 8: right choices by how many explanations are read; bands are 95 % intervals of SP-LIME and RP-LIME."""
    figure = _new(4.6 * len(found["charts"]), 4.0)
    panels = figure.subplots(1, len(found["charts"]), squeeze=False, sharey=True)[0]
    for axes, chart in zip(panels, found["charts"], strict=True):
        for line in chart["series"]:
            colour, mark, style = LINES.get(line["name"], (DARK, "x", "-"))
            x, y = np.array(line["x"]), 100 * np.array(line["y"])
            axes.plot(x, y, color=colour, marker=mark, markersize=3.5, linestyle=style, linewidth=1.6, label=line["name"])
            if line["name"].endswith("lime"):
                axes.fill_between(x, 100 * np.array(line["low"]), 100 * np.array(line["high"]), color=colour, alpha=0.1,
                                  linewidth=0)
        axes.set_title(chart["title"], fontsize=10)
        axes.set_xlabel("explanations seen by the reader", fontsize=9)
        axes.set_ylim(40, 102)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0].set_ylabel("right choices (%)", fontsize=9)
    panels[-1].legend(fontsize=8, frameon=False, loc="upper right", ncols=2)
    return figure


