"""The figures of Praher et al. (2021), and of Hoedt et al. (2022) on sound, drawn from a run, with random and oracle beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from whytrust.core import need
from whytrust.store import Store
from whytrust.studies import veracity_pictures as pictures
from whytrust.studies.figures import write
from whytrust.studies.plausible_figures import FAINT, LOOKS
from whytrust.studies.veracity_outcomes import KS, NAMES, cell_name
from whytrust.studies.veracity_pictures import finished, new
from whytrust.studies.veracity_published import SIGNALS

Found = Mapping[str, Any]
BLUE, ORANGE = "#0072b2", "#d55e00"
GRID = "#d0d7de"


def draw(found: Found, store: Store, folder: Path, experiment: str = "all") -> list[Path]:
    """Write the figures that an experiment has, as PNG files; those that nothing is known of yet are left out."""
    return write(_figures(found, store), folder, experiment)


def _figures(found: Found, store: Store) -> Iterator[tuple[str, str, Any]]:
    if found.get("drawings", {}).get("made"):
        yield "drawings", "figure-1-drawings", pictures.drawings(store, found["drawings"]["made"])
    if any(cell["excerpts"] for cell in found.get("flips", {}).get("cells", ())):
        yield "flips", "figure-2-flips", flips(found["flips"])
        example = pictures.adversaries(store)
        if example is not None:
            yield "attack", "figure-adversaries", example
    if any(one["n"] for cell in found.get("recovery", {}).get("cells", ()) for one in cell["k"].values()):
        yield "recovery", "figure-3-recovery", recovery(found["recovery"])
    if any(cell["hit"] or cell["miss"] for cell in found.get("fidelity", {}).get("cells", ())):
        yield "fidelity", "figure-4-fidelity", fidelity(found["fidelity"])
    if found.get("settling", {}).get("excerpts"):
        yield "settling", "figure-settling", settling(found["settling"])
    if any(one["rows"] for one in found.get("tuning", {}).get("signals", {}).values()):
        yield "tuning", "figure-tuning", tuning(found["tuning"])


def _per_cent(axes: Any) -> None:
    axes.set_ylim(-3, 103)
    axes.set_yticks(range(0, 101, 25), [f"{p} %" for p in range(0, 101, 25)], fontsize=8)
    _plain(axes)


def _plain(axes: Any) -> None:
    axes.grid(axis="y", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


# --- figures 2 to 4 ---------------------------------------------------------------------------------------------------


def flips(found: Found) -> Any:
    """Figure 2: how many labels flip with k segments, by LIME or by the norm?"""
    fig = new(9.0, 7.2)
    grid = fig.subplots(2, 2, sharex=True, sharey=True)
    for axes, cell in zip(np.ravel(grid), found["cells"], strict=True):
        _per_cent(axes)
        axes.set_xlim(0.5, found["ks"][-1] + 0.5)
        axes.set_xticks([1, 3, 5, 10, 15, 20], ["1", "3", "5", "10", "15", "20"], fontsize=8)
        axes.set_title(f"{cell_name(cell['signal'], cell['direction'])}, n = {cell['excerpts']}", fontsize=9.5, loc="left")
        for name, (colour, mark, style) in ((name, LOOKS[name]) for name in NAMES):
            line = cell["curves"][name]
            if not line["n"]:
                continue
            value, low, high = (100 * np.array(line[what], dtype=np.float64) for what in ("value", "low", "high"))
            axes.plot(found["ks"], value, color=colour, marker=mark, markersize=3.5, linestyle=style, linewidth=1.5,
                      label=NAMES[name])
            if name == "lime":
                # With all segments every label flips, by the choice of the excerpts: that is no estimate.
                axes.fill_between(found["ks"][:-1], low[:-1], high[:-1], color=colour, alpha=0.14, linewidth=0,
                                  label="95 % interval of LIME")
        axes.plot(found["k"], cell["published"], marker="*", markersize=12, color=ORANGE, linestyle="none",
                  markeredgecolor="white", label="LIME, published (Table 1)", zorder=5)
    for axes in grid[1]:
        axes.set_xlabel("segments of the perturbation", fontsize=8.5, color=FAINT)
    for axes in grid[:, 0]:
        axes.set_ylabel("labels that flip", fontsize=8.5, color=FAINT)
    return finished(fig, "Figure 2: labels that flip with k segments of the perturbation, chosen by LIME or by their norm",
                    legend=_legend(grid), columns=3)


def _legend(grid: Any) -> tuple[list[Any], list[str]]:
    """The entries of whichever panel has the most."""
    each: list[tuple[list[Any], list[str]]] = [axes.get_legend_handles_labels() for axes in np.ravel(grid)]
    return max(each, key=lambda one: len(one[1]))


def recovery(found: Found) -> Any:
    """Figure 3: of the only k changed segments, how many does LIME find?"""
    cells = found["cells"]
    fig = new(9.6, 9.2)
    grid = fig.subplots(len(cells), len(KS), sharey=True)
    for row, cell in zip(grid, cells, strict=True):
        for axes, k in zip(row, KS, strict=True):
            one = cell["k"][str(k)]
            _per_cent(axes)
            counts = np.array(one["counts"], dtype=np.float64)
            places = np.arange(k + 1)
            axes.bar(places, 100 * counts / max(counts.sum(), 1), width=0.72, color=BLUE, label="LIME")
            axes.plot(places, 100 * np.array(one["random"]), marker="D", markersize=6, linestyle="none", color=ORANGE,
                      markeredgecolor="white", label="random, expected")
            for place, count in zip(places, one["counts"], strict=True):
                axes.text(place, 103, str(count), ha="center", va="bottom", fontsize=7.5, color=BLUE)
            axes.set_xticks(places, [str(j) for j in places], fontsize=8)
            axes.set_xlim(-0.6, k + 0.6)
            axes.set_title(f"k = {k}: {one['n']} of {cell['excerpts']} still turned", fontsize=8.5, loc="right", color=FAINT)
            axes.set_ylim(-3, 114)
        row[0].set_ylabel(cell_name(cell["signal"], cell["direction"]).replace(" (", "\n("), fontsize=8.5)
    for axes in grid[-1]:
        axes.set_xlabel("changed segments that were found", fontsize=8.5, color=FAINT)
    return finished(fig, "Figure 3: how many of the only k changed segments LIME finds (number above a bar: excerpts)",
                    legend=_legend(grid[:1]), columns=2, gaps=(0.08, 0.5))


def fidelity(found: Found) -> Any:
    """Figure 4: is the local model better where the explanation is right?"""
    cells = found["cells"]
    fig = new(9.6, 4.6)
    axes = fig.subplots()
    _plain(axes)
    rng, heads = np.random.default_rng(0), []  # only to keep dots from hiding each other
    for place, cell in enumerate(cells):
        for side, colour, mark, shift in (("hit", BLUE, "o", -0.2), ("miss", ORANGE, "s", 0.2)):
            values = np.array(cell[side], dtype=np.float64)
            if not len(values):
                continue
            axes.boxplot(values, positions=[place + shift], widths=0.3, showfliers=False, manage_ticks=False,
                         medianprops={"color": "black", "linewidth": 1.6}, boxprops={"color": FAINT},
                         whiskerprops={"color": FAINT}, capprops={"color": FAINT})
            axes.plot(place + shift + rng.uniform(-0.09, 0.09, len(values)), values, mark, color=colour, markersize=3.5,
                      alpha=0.6, markeredgewidth=0)
        words = "all" if cell["signal"] == "all" else cell_name(cell["signal"], cell["direction"]).replace(" (", "\n(")
        apart = cell["auc"]
        area = "" if apart is None else f"area {apart['value']:.2f} [{apart['low']:.2f}, {apart['high']:.2f}]"
        heads.append(f"{words}\nn {len(cell['hit'])} and {len(cell['miss'])}\n{area}")
    axes.set_xticks(range(len(cells)), heads, fontsize=8)
    axes.set_xlim(-0.6, len(cells) - 0.4)
    axes.set_ylabel("R² of LIME’s local model", fontsize=8.5, color=FAINT)
    axes.tick_params(axis="y", labelsize=8)
    for colour, mark, label in ((BLUE, "o", "right: the changed segment is the best"), (ORANGE, "s", "wrong")):
        axes.plot([], [], mark, color=colour, label=label)
    return finished(fig, "Figure 4: fidelity of right and of wrong explanations (k = 1; area ½: fidelity tells nothing)",
                    legend=axes.get_legend_handles_labels(), columns=2, below=0.62)


# --- settling and tuning ----------------------------------------------------------------------------------------------


def settling(found: Found) -> Any:
    """§ 4.4: from how many samples on do explanations of one excerpt say the same?"""
    fig = new(9.6, 4.2)
    shown = {"top": "best three segments in common", "spread": "spread of a weight, relative"}
    for axes, (what, words) in zip(fig.subplots(1, len(shown)), shown.items(), strict=True):
        for i, each in enumerate(found["each"]):
            axes.plot(found["sizes"], each[what], color=FAINT, linewidth=0.7, alpha=0.7, label="" if i else "one excerpt")
        axes.plot(found["sizes"], found["mean"][what], color=BLUE, marker="o", linewidth=1.8, label="mean")
        axes.set_xscale("log", base=2)
        axes.set_xticks(found["sizes"], [f"{size:,}" for size in found["sizes"]], fontsize=7.5, rotation=35)
        axes.minorticks_off()
        axes.tick_params(axis="y", labelsize=8)
        axes.set_ylim(0, None)
        _plain(axes)
        axes.set_title(words, fontsize=9.5, loc="left")
        axes.set_xlabel("samples", fontsize=8.5, color=FAINT)
    first = fig.axes[0]
    first.axhline(found["agreed"], color=ORANGE, linestyle="--", linewidth=1.2, label=f"{100 * found['agreed']:.0f} %")
    return finished(fig, "How explanations settle: independent ones of the same excerpt, by number of samples",
                    legend=first.get_legend_handles_labels(), columns=3, below=0.45)


def tuning(found: Found) -> Any:
    """§ 4.3: which setting of the attack turns the most frames? The published one has a frame."""
    fig = new(9.6, 4.0)
    shown = {signal: words for signal, words in SIGNALS.items() if found["signals"][signal]["rows"]}
    for axes, (signal, words) in zip(np.ravel(fig.subplots(1, len(shown))), shown.items(), strict=True):
        _heat(axes, found["signals"][signal])
        axes.set_title(f"{words}, {found['signals'][signal]['songs']} validation songs", fontsize=9.5, loc="left")
    return finished(fig, f"Frames turned by settings of the attack, {found['iterations']} steps (thick border: published)",
                    left=1.25, gaps=(0.45, 0.3))


def _heat(axes: Any, its: Found) -> None:
    alphas = sorted({row["alpha"] for row in its["rows"]})
    lines = sorted({(row["epsilon"], row["step"]) for row in its["rows"]})
    values = np.full((len(lines), len(alphas)), np.nan)
    for row in its["rows"]:
        values[lines.index((row["epsilon"], row["step"])), alphas.index(row["alpha"])] = 100 * row["share"]
    axes.imshow(values, cmap="Blues", vmin=0, vmax=100, aspect="auto")
    for i, j in np.ndindex(*values.shape):
        if not np.isnan(values[i, j]):
            axes.text(j, i, f"{values[i, j]:.1f} %", ha="center", va="center", fontsize=9,
                      color="white" if values[i, j] > 55 else "black")
    theirs = its["published"]
    if theirs["alpha"] in alphas and (theirs["epsilon"], theirs["step"]) in lines:
        corner = alphas.index(theirs["alpha"]) - 0.5, lines.index((theirs["epsilon"], theirs["step"])) - 0.5
        axes.add_patch(need("matplotlib.patches", "report").Rectangle(corner, 1, 1, fill=False, edgecolor=ORANGE, linewidth=3))
    axes.set_xticks(range(len(alphas)), [f"α {alpha:g}" for alpha in alphas], fontsize=8)
    axes.set_yticks(range(len(lines)), [f"ε {epsilon:g}, η {step:g}" for epsilon, step in lines], fontsize=8)

