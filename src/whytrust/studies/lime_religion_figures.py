"""Figures 9 and 10 of Ribeiro et al. (2016) drawn from a run: simulated readers, with the people of the paper beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whytrust.core import need
from whytrust.pictures import lettering
from whytrust.store import Store
from whytrust.studies.figures import write
from whytrust.studies.lime_religion_findings import CHOICES
from whytrust.studies.lime_religion_readers import NOISE, PICKS
from whytrust.studies.trust_repair_findings import PICK_WORDS, Arm, arms_of, cell, reference_of

LOOKS = {"submodular": ("#0072b2", "o"), "random": ("#d55e00", "s")}
"""Okabe and Ito's colours, with a mark of their own each."""
FAINT = "#57606a"
Found = Mapping[str, Any]


def draw(found: Found, store: Store, folder: Path) -> list[Path]:
    """Write the figure of an experiment as a PNG file; none while nothing is known yet."""
    return write(_figures(found, store), folder)


def _figures(found: Found, store: Store) -> Iterator[tuple[str, str, Any]]:
    if found["experiment"] == "fig9" and found["tables"]:
        yield "fig9", "lime-fig9", choices(found)
    elif found["experiment"] == "fig10" and reference_of(store) and any(arm.nodes for arm in arms_of(store)):
        yield "fig10", "lime-fig10", rounds(store)


def choices(found: Found) -> Any:
    """Figure 9: how often is the model chosen that generalises? Bars with 95 % intervals; a diamond is the paper's people."""
    rows = {table["title"]: table["rows"] for table in found["tables"]}
    careful = next(some for title, some in rows.items() if title.startswith("Figure 9"))
    careless = next(some for title, some in rows.items() if title.endswith("careless readers"))
    panels = {"careful readers": [(*row[:2], row[2]) for row in careful],
              "very careless readers": [(*row[:2], row[-1]) for row in careless]}
    fig = _new(9.4, 4.4)
    grid = list(fig.subplots(1, 2, sharey=True))
    for axes, (words, cells) in zip(grid, panels.items(), strict=True):
        _bars(axes, cells)
        overlook, mistrust = NOISE[words.removesuffix(" readers")]
        axes.set_title(f"{words} (overlook {100 * overlook:.0f} %, mistrust {100 * mistrust:.0f} %; n = {cells[0][2]['n']})",
                       fontsize=9, loc="left")
    grid[0].set_ylabel("readers who choose rightly", fontsize=9, color=FAINT)
    return _finished(fig, grid, "Figure 9: simulated readers who choose the model that generalises, by explainer and pick", 4)


def _bars(axes: Any, cells: Sequence[tuple[str, str, Found]]) -> None:
    values = {(name, how): value for name, words, value in cells for how in PICKS if PICK_WORDS[how] == words}
    names = list(dict.fromkeys(name for name, _ in values))
    for side, how in enumerate(PICKS):
        x = np.arange(len(names)) + 0.38 * (side - 0.5)
        y, low, high = (100 * np.array([values[name, how][what] for name in names]) for what in ("value", "low", "high"))
        axes.bar(x, y, 0.35, color=LOOKS[how][0], label=PICK_WORDS[how])
        axes.errorbar(x, y, [y - low, high - y], fmt="none", ecolor="#24292f", elinewidth=1.2, capsize=3)
        for place, value in zip(x, y, strict=True):
            axes.text(place, 2.5, f"{value:.0f}", ha="center", va="bottom", fontsize=9.5, color="white", fontweight="bold")
        theirs = [(place + 0.1, 100 * CHOICES[name.lower(), how]) for place, name in zip(x, names, strict=True)
                  if (name.lower(), how) in CHOICES]
        axes.plot(*zip(*theirs, strict=True), linestyle="none", marker="D", markersize=6, markerfacecolor="white",
                  markeredgecolor="#24292f", label="people, in the paper" if side else None)
    axes.axhline(50, color=FAINT, linewidth=1, linestyle=":", label="chance")
    axes.set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names], fontsize=9.5)
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.set_ylim(0, 104)
    axes.set_yticks(range(0, 101, 20), [f"{p} %" for p in range(0, 101, 20)], fontsize=8.5)


def rounds(store: Store) -> Any:
    """Figure 10: accuracy in the real world by round; thin lines are the paths of one first reader, thick ones all."""
    reference = reference_of(store)
    assert reference is not None
    last = len(store.manifest["spec"]["readers"])
    fig = _new(6.4, 5.0)
    axes = fig.subplots()
    grain = 1 / store.manifest["about"]["world"]
    for arm in arms_of(store):
        if arm.explainer == "lime" and arm.nodes:
            _paths(axes, arm, last, reference["accuracy"], grain)
    for arm in arms_of(store):
        if arm.explainer == "random" and arm.nodes:
            style = "--" if arm.pick == "submodular" else ":"
            axes.plot(range(last + 1), _means(arm, last, reference["accuracy"]), color=FAINT, linewidth=1.4, linestyle=style,
                      label=f"random explanations, {PICK_WORDS[arm.pick]}")
    axes.plot([0, last], [100 * reference["accuracy"]] * 2, color="#24292f", linewidth=1.6, label="no cleaning")
    axes.plot([0, last], [100 * reference["oracle"]["accuracy"]] * 2, color="#009e73", linewidth=1.4, linestyle="-.",
              label="all foreign words deleted")
    axes.set_xlim(-0.05, last + 0.05)
    axes.set_xticks(range(last + 1), [str(r) for r in range(last + 1)], fontsize=9)
    axes.set_xlabel("rounds of reading and deleting", fontsize=9, color=FAINT)
    low, high = axes.get_ylim()
    ticks = range(5 * int(low // 5), 5 * int(high // 5) + 6, 5)
    axes.set_yticks(ticks, [f"{p} %" for p in ticks], fontsize=8.5)
    axes.set_ylim(ticks[0], ticks[-1])
    axes.set_ylabel("accuracy in the real world", fontsize=9, color=FAINT)
    return _finished(fig, [axes], "Figure 10: simulated readers repair the model, round by round", 2)


def _means(arm: Arm, last: int, start: float, reader: int | None = None) -> list[float]:
    """Per cent by round, of all paths or of those that begin with one reader; ends where nothing is done yet."""
    found = [start]
    for r in range(1, last + 1):
        values = [value for path, value in arm.accuracies(r).items() if reader is None or path[0] == reader]
        found.append(float(np.mean(values)) if values else np.nan)
    return [100 * value for value in found]


def _paths(axes: Any, arm: Arm, last: int, start: float, grain: float) -> None:
    colour, mark = LOOKS[arm.pick]
    for reader in sorted({path[0] for path in arm.accuracies(1)}):
        axes.plot(range(last + 1), _means(arm, last, start, reader), color=colour, linewidth=0.8, alpha=0.35)
    cells = [cell(arm.accuracies(r), start, grain) for r in range(1, last + 1) if arm.after(r)]
    means = _means(arm, last, start)
    reach = [[0.0, *(100 * abs(one[end] - one["value"]) for one in cells)] for end in ("low", "high")]
    shift = 0.015 if arm.pick == "submodular" else -0.015  # so that intervals of both do not cover each other
    axes.errorbar(np.arange(len(cells) + 1) + shift, means[:len(cells) + 1], reach, color=colour, linewidth=2.6, marker=mark,
                  markersize=6, elinewidth=1.2, capsize=3, zorder=3, label=f"LIME, {PICK_WORDS[arm.pick]}")


def _new(wide: float, high: float) -> Any:
    return need("matplotlib.figure", "report").Figure(figsize=(wide, high), dpi=lettering.DPI, facecolor="white")


def _finished(fig: Any, panels: Sequence[Any], title: str, columns: int) -> Any:
    """The title above, the names below, and nothing over anything else."""
    for axes in panels:
        axes.grid(axis="y", color="#d0d7de", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    found = zip(*panels[0].get_legend_handles_labels(), strict=True)
    handles, labels = zip(*sorted(found, key=lambda one: hasattr(one[0], "get_linestyle")), strict=True)  # mere lines last
    fig.legend(handles, labels, loc="lower center", ncols=columns, fontsize=8.5, frameon=False)
    wide, high = fig.get_size_inches()
    lines: Sequence[str] = lettering.wrap(title, wide - 0.3, 12.8)
    fig.text(0.12 / wide, 1 - 0.1 / high, "\n".join(lines), fontsize=11, fontweight="bold", va="top", **lettering.plain())
    rows = -(-len(labels) // columns)
    above = 0.25 + 0.2 * len(lines) + (0.2 if len(panels) > 1 else 0)
    fig.subplots_adjust(left=0.8 / wide, right=1 - 0.15 / wide, top=1 - above / high, bottom=(0.55 + 0.2 * rows) / high,
                        wspace=0.06)
    return fig
