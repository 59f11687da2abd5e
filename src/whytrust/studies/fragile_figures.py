"""Figures 5 to 10 of Sinha et al. (2021) from runs, as violins beside random swaps, and all coloured sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whytrust.core import need
from whytrust.pictures import lettering
from whytrust.studies import fragile_merging, fragile_sentences
from whytrust.studies import fragile_published as published
from whytrust.studies.figures import write
from whytrust.studies.fragile_tables import OBJECTIVES, SPANS, WHOLE, Run, cells, single
from whytrust.studies.fragile_told import CHOSEN, EXPLAINERS
from whytrust.swapping.search import RANDOM

COLOURS = {"l2": "#d55e00", "lom": "#0072b2", RANDOM: "#8c959f"}
DARK = "#24292f"
LEAST_WIDE = 5.5
FEW = 5
"""Values below which there is no shape to see: they are drawn as dots."""
PUBLISHED = {"DistilBERT": "o", "RoBERTa": "s", "BERT-adv": "^"}
TENTHS = [span.replace("0.0–", "0–").replace("0.", ".") for span in SPANS[:WHOLE]]
SENTENCES, VIOLINS = "sentences", "violins"
KINDS = (VIOLINS, SENTENCES)


def draw(runs: Sequence[Run], folder: Path, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Write every figure of these kinds that the runs have something for."""
    return write(_figures(runs, kinds), folder)


def drawn(folder: Path, runs: Sequence[Run], kinds: Sequence[str] = KINDS) -> list[Path]:
    """The figures of these runs that a folder holds, in their order."""
    wanted = [folder / f"{name}.png" for name in _names(runs, kinds)]
    return [path for path in wanted if path.is_file()]


def _groups(runs: Sequence[Run]) -> dict[tuple[str, str], list[Run]]:
    """Runs that share a figure: of one data set and one explainer."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        if run.done:
            groups.setdefault((run.dataset, run.explainer), []).append(run)
    return groups


def _names(runs: Sequence[Run], kinds: Sequence[str]) -> Iterator[str]:
    for (dataset, explainer), some in _groups(runs).items():
        if VIOLINS in kinds:
            yield from (f"fragile-violins-{dataset}-{explainer}{end}" for end in ("", *(f"-{name}" for name in OBJECTIVES)))
        if SENTENCES in kinds:
            yield from (f"fragile-sentences-{dataset}-{explainer}-{run.model}" for run in some)
            yield from (f"fragile-merging-{dataset}-{run.model}" for run in some if explainer == "integrated_gradients")


def _figures(runs: Sequence[Run], kinds: Sequence[str]) -> Iterator[tuple[str, str, Any]]:
    for (dataset, explainer), some in _groups(runs).items():
        if VIOLINS in kinds:
            yield VIOLINS, f"fragile-violins-{dataset}-{explainer}", choices(some)
            yield from ((VIOLINS, f"fragile-violins-{dataset}-{explainer}-{name}", shares(some, name)) for name in OBJECTIVES)
        stored = [run for run in some if run.store is not None] if SENTENCES in kinds else []
        cases = fragile_sentences.alike(stored)
        for run in stored if cases else ():
            yield SENTENCES, f"fragile-sentences-{dataset}-{explainer}-{run.model}", fragile_sentences.figure(run, cases)
        for run in stored if explainer == "integrated_gradients" else ():
            assert run.store is not None
            examples = fragile_merging.read(run.store.folder.parent)
            if examples:
                yield SENTENCES, f"fragile-merging-{dataset}-{run.model}", fragile_sentences.merging(examples)


def _axes(panels: int, each: float, title: str) -> tuple[Any, Any]:
    wide = max(each * panels + 0.5, LEAST_WIDE)
    figure = need("matplotlib.figure", "report").Figure(figsize=(wide, 3.9), layout="constrained")
    figure.suptitle("\n".join(lettering.wrap(title, wide - 0.4, 9.5)), fontsize=9.5, **lettering.plain())
    axes = figure.subplots(1, panels, squeeze=False, sharey=True)[0]
    for one in axes:
        one.axhline(0, color=DARK, linewidth=0.6, linestyle=":")
        one.set_ylim(-1.05, 1.05)
        one.tick_params(labelsize=8)
        for side in ("top", "right"):
            one.spines[side].set_visible(False)
    axes[0].set_ylabel("rank correlation with the original's explanation", fontsize=8.5)
    return figure, axes


# --- Figures 5 and 6 ----------------------------------------------------------------------------------------------------


def choices(runs: Sequence[Run]) -> Any:
    """Do swaps that were chosen change explanations more than random ones? All shares of words together, a panel a model."""
    figure, axes = _axes(len(runs), 2.9, f"{_of(runs[0])}: all shares of words. Bars: means, clipped at 0 as in the tables")
    names = (*OBJECTIVES, RANDOM)
    for one, run in zip(axes, runs, strict=True):
        means = cells(run, "rank")
        for place, name in enumerate(names):
            values = [value for _, value in single(run.done, name, "raw")]
            _shape(one, values, place, 0.8, COLOURS[name])
            _mean(one, means[name][WHOLE], place, 0.26, 0.26)
        one.set_xticks(range(len(names)), [CHOSEN[name] for name in names])
        one.set_xlim(-0.6, len(names) - 0.4)
        one.set_title(_short(run.model), fontsize=9.5, **lettering.plain())
    return figure


# --- Figures 7 to 10 ------------------------------------------------------------------------------------------------------


def shares(runs: Sequence[Run], objective: str) -> Any:
    """What is left of explanations by share of words swapped: on the left of each place chosen swaps, on the right random."""
    table = published.table_of(runs[0].dataset, runs[0].explainer, "rank")
    figure, axes = _axes(len(runs) + (table is not None), 3.2,
                         f"{_of(runs[0])}: swaps chosen by {CHOSEN[objective]} (left, coloured) and random ones (right, grey). "
                         "Bars: means, clipped at 0")
    for one, run in zip(axes, runs, strict=False):
        means = cells(run, "rank")
        for name, side in ((objective, -1), (RANDOM, 1)):
            values = single(run.done, name, "raw")
            for span in range(WHOLE):
                _shape(one, [value for bucket, value in values if bucket == span], span, 0.86, COLOURS[name], side)
                _mean(one, means[name][span], span, 0.3 if side < 0 else 0, 0.3 if side > 0 else 0)
        texts = [0 if cell is None else cell["texts"] for cell in means[objective][:WHOLE]]
        one.set_xticks(range(WHOLE), [f"{span}\n{n}" for span, n in zip(TENTHS, texts, strict=True)])
        one.set_xlim(-0.6, WHOLE - 0.4)
        one.set_title(_short(run.model), fontsize=9.5, **lettering.plain())
    if table is not None:
        _published(axes[-1], table, objective)
    figure.supxlabel("share of words swapped, and how many texts", fontsize=8.5)
    return figure


def _published(axes: Any, table: published.Table, objective: str) -> None:
    """The published means, which are clipped, too."""
    for model, mark in PUBLISHED.items():
        for name, style in ((objective, "-"), (RANDOM, ":")):
            axes.plot(range(WHOLE), [table.value(model, name, span) for span in range(WHOLE)], color=COLOURS[name],
                      linestyle=style, marker=mark, markersize=4.5, markerfacecolor="white", linewidth=1.1,
                      label=f"{model}{', random' if name == RANDOM else ''}")
    axes.set_xticks(range(WHOLE), TENTHS)
    axes.set_xlim(-0.6, WHOLE - 0.4)
    axes.set_title(f"published means, Table {table.number}", fontsize=9.5)
    axes.legend(fontsize=7, frameon=False, loc="lower left", ncols=2)


def _shape(axes: Any, values: Sequence[float], place: float, width: float, colour: str, side: int = 0) -> None:
    """A violin, or its left or right half; dots where there are too few values to have a shape."""
    if len(values) < FEW or np.ptp(values) < 1e-9:
        offset = side * width / 6
        axes.plot([place + offset] * len(values), values, linestyle="none", marker="o", markersize=3, color=colour, alpha=0.7)
        return
    body = axes.violinplot([values], positions=[place], widths=width, showextrema=False)["bodies"][0]
    body.set_facecolor(colour)
    body.set_edgecolor(colour)
    body.set_alpha(0.6)
    if side:
        points = body.get_paths()[0].vertices
        points[:, 0] = np.clip(points[:, 0], place if side > 0 else -np.inf, place if side < 0 else np.inf)


def _mean(axes: Any, cell: Mapping[str, Any] | None, place: float, left: float, right: float) -> None:
    """A bar at the mean, and its interval."""
    if cell is None:
        return
    axes.plot([place - left, place + right], [cell["mean"]] * 2, color=DARK, linewidth=1.6, solid_capstyle="butt")
    axes.plot([place + (right - left) / 2] * 2, [cell["low"], cell["high"]], color=DARK, linewidth=0.8)


def _of(run: Run) -> str:
    return f"{published.TITLES.get(run.dataset, run.dataset)}, {EXPLAINERS.get(run.explainer, run.explainer)}"


def _short(name: str, most: int = 32) -> str:
    return name if len(name) <= most else f"{name[:most // 2 - 1]}…{name[-most // 2:]}"


CAPTIONS = {"violins": "Figures 5 to 10: rank correlations by what chose the swaps, beside random swaps",
            "sentences": "Figures 1, 3, 11 and 12: words coloured by their scores, swap by swap",
            "merging": "Figure 4: the pieces of a word as their mean, and as the one of largest size"}


def caption(stem: str) -> str:
    """What a figure shows, by its file's name."""
    kind, _, of = stem.removeprefix("fragile-").partition("-")
    return f"{CAPTIONS.get(kind, kind)} ({of})"
