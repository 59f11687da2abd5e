"""Figure 11 and Table 2 of Ribeiro, Singh and Guestrin (2016), drawn from a run with pets: ours, with theirs beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import stats
from whytrust.core import need
from whytrust.pictures import lettering
from whytrust.store import Store
from whytrust.studies.figures import write
from whytrust.studies.insight_findings import Outcome, outcome, rates
from whytrust.studies.insight_readers import RANDOM
from whytrust.studies.lime_pets import PUBLISHED

NAMES = {"lime": "LIME", "grad_cam": "Grad-CAM", "occlusion": "leave one out", "edges": "edges (no model)"}
LINES = {"for": (0, 114, 178), "against": (213, 94, 0), "neither": (40, 40, 40)}
FAINT, OURS, THEIRS = "#57606a", "#0072b2", "#000000"
AGAINST = "#d55e00"
GREY = (160, 160, 160)
SIDES = ("trusted", "named")
TITLES = {"trusted": "trusted the bad model", "named": "named its reason"}


def draw(store: Store, folder: Path, experiment: str = "all") -> list[Path]:
    """Write the figures as PNG files; those that nothing is known of yet are left out."""
    return write(_figures(store), folder, experiment)


def _figures(store: Store) -> Iterator[tuple[str, str, Any]]:
    record = example(store)
    if record is not None:
        yield "fig11", "figure-11-explanation", explained(store, record)
    found = outcome(store)
    if found.before:
        yield "table2", "table-2-readers", readers(found)


# --- Figure 11 --------------------------------------------------------------------------------------------------------


def example(store: Store) -> dict[str, Any] | None:
    """A picture that is misclassified because the artefact is in it: the one that the model is surest of."""
    wrong = [r for r in store.records() if r["status"] == "ok" and r["planted"] and not r["of_class"] and r["wrong"]]
    return max(wrong, key=lambda r: (r["score"], r["case"]), default=None)


def explained(store: Store, record: Mapping[str, Any]) -> Any:
    """The picture, and the parts that each explanation names; everything else is grey."""
    arrays = store.arrays(record["case"])
    names = [name for name in store.manifest["about"]["explainers"] if name.replace("/", "-") in arrays]
    picture, labels = arrays["image"], arrays["labels"]
    columns = min(len(names) + 1, 4)
    rows = -(-(len(names) + 1) // columns)
    fig = _new(2.6 * columns + 0.2, 2.85 * rows + 0.85)
    grid = np.ravel(fig.subplots(rows, columns, squeeze=False))
    _picture(grid[0], picture, f"{record['truth']}, taken for {record['predicted']} ({record['score']:.2f})")
    for axes, name in zip(grid[1:], names, strict=False):
        parts, scores = record["first"][name], arrays[name.replace("/", "-")]
        signed = record["sense"][name] == "signed"
        sides = ["neither" if not signed else "for" if scores[part] > 0 else "against" for part in parts]
        count = "first part" if len(parts) == 1 else f"first {len(parts)} parts"
        _picture(axes, greyed(picture, labels, parts, sides), f"{NAMES.get(name, name)}: {count}")
    for axes in grid[len(names) + 1:]:
        axes.set_axis_off()
    _title(fig, "Figure 11: a dog misclassified because of the planted square, and what each explanation shows of it")
    wide, high = fig.get_size_inches()
    fig.text(0.12 / wide, 0.1 / high, fontsize=8, color=FAINT,
             s="Blue line: speaks for the prediction; orange: against it; black: a method without signs.")
    fig.subplots_adjust(left=0.1 / wide, right=1 - 0.1 / wide, top=1 - 0.75 / high, bottom=0.35 / high, wspace=0.05,
                        hspace=0.14)
    return fig


def greyed(picture: NDArray[Any], labels: NDArray[Any], parts: Sequence[int], sides: Sequence[str]) -> NDArray[np.uint8]:
    """The picture where these parts are, each with a line around it, and grey elsewhere."""
    shown = np.isin(labels, parts)
    out = np.where(shown[..., None], picture, np.array(GREY, dtype=np.uint8)).astype(np.uint8)
    for part, side in zip(parts, sides, strict=True):
        own = labels == part
        inside = np.pad(own, 1)
        inside = inside[:-2, 1:-1] & inside[2:, 1:-1] & inside[1:-1, :-2] & inside[1:-1, 2:]
        out[own & ~inside] = LINES[side]
    return out


# --- Table 2 ----------------------------------------------------------------------------------------------------------


def readers(found: Outcome) -> Any:
    """Before and after: who trusted the model and who named its reason; theirs above, ours below, 95 % intervals."""
    rows: list[tuple[str, str, list[stats.Rate], stats.Rate | None]] = [
        (f"paper, {when}", THEIRS, [_published(when, side) for side in SIDES], None) for when in ("before", "after")]
    rows.append(("ours, before", OURS, _ours(found.before), None))
    rows += [(f"ours, after {NAMES.get(name, name)}", FAINT if name == RANDOM else OURS, _ours(beliefs),
              rates(found.innocent[name])[0]) for name, beliefs in found.after.items()]
    rows = [row for row in rows if row[2][0].n]
    fig = _new(8.9, 0.34 * len(rows) + 1.95)
    for place, (axes, side) in enumerate(zip(fig.subplots(1, 2, sharey=True), SIDES, strict=True)):
        for y, (_, colour, both, accused) in enumerate(rows):
            rate = both[place]
            axes.plot([100 * rate.low, 100 * rate.high], [y, y], color=colour, linewidth=1.6, alpha=0.55)
            axes.plot(100 * rate.value, y, "s" if colour == THEIRS else "o", color=colour, markersize=6)
            axes.text(104, y, f"{rate.value * rate.n:.0f} of {rate.n}", va="center", fontsize=8, color=colour)
            if side == "named" and accused is not None and accused.n:
                axes.plot(100 * accused.value, y, "o", color=AGAINST, markersize=9, fillstyle="none", markeredgewidth=1.4)
        axes.axhline(1.5, color="#d0d7de", linewidth=0.8)
        _finished(axes, TITLES[side], [words for words, *_ in rows])
    _title(fig, "Table 2: readers of a bad model before and after explanations")
    wide, high = fig.get_size_inches()
    fig.text(0.12 / wide, 0.1 / high, fontsize=8, color=FAINT, linespacing=1.5, va="bottom",
             s="Paper: people and snow. Ours: simulated readers and a planted square. Lines: 95 % intervals over readers.\n"
               "Orange rings: readers who would name the square from explanations of an innocent model, of the same pictures.")
    fig.subplots_adjust(left=2.05 / wide, right=1 - 0.72 / wide, top=1 - 0.75 / high, bottom=0.92 / high, wspace=0.3)
    return fig


def _published(when: str, side: str) -> stats.Rate:
    counts: Any = PUBLISHED
    return stats.rate([1.0] * counts[when][side] + [0.0] * (counts["n"] - counts[when][side]))


def _ours(beliefs: Sequence[Any]) -> list[stats.Rate]:
    named, trusted = rates(beliefs)
    return [trusted, named]


def _finished(axes: Any, title: str, words: Sequence[str]) -> None:
    axes.set_title(title, fontsize=9.5, loc="left")
    axes.set_xlim(-3, 103)
    axes.set_ylim(len(words) - 0.4, -0.6)
    axes.set_xticks(range(0, 101, 25), [f"{p} %" for p in range(0, 101, 25)], fontsize=8)
    axes.set_yticks(range(len(words)), words, fontsize=8.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="#d0d7de", linewidth=0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)


# --- pieces -----------------------------------------------------------------------------------------------------------


def _new(wide: float, high: float) -> Any:
    return need("matplotlib.figure", "report").Figure(figsize=(wide, high), dpi=lettering.DPI, facecolor="white")


def _picture(axes: Any, pixels: Any, title: str) -> None:
    axes.imshow(pixels, interpolation="nearest")
    axes.set_axis_off()
    axes.set_title(lettering.fit(title, 2.5, 8.5), fontsize=8.5, loc="left", pad=3, **lettering.plain())


def _title(fig: Any, words: str) -> None:
    wide, high = fig.get_size_inches()
    lines = lettering.wrap(words, wide - 0.3, 12.8)  # bold letters of 11 points are about as wide
    fig.text(0.12 / wide, 1 - 0.1 / high, "\n".join(lines), fontsize=11, fontweight="bold", va="top", **lettering.plain())
