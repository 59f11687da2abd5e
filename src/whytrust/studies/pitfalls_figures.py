"""Figures 1 to 6 of Wang & Wang (2022), and those of their appendix, from runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whytrust.core import Floats, need
from whytrust.domains.segments import to_rgb
from whytrust.pictures import lettering
from whytrust.store import Store
from whytrust.studies.figures import write
from whytrust.studies.pitfalls_flipping import BASELINES, RANDOM
from whytrust.studies.pitfalls_told import CALLED

ADJOINING, SCATTERED = "#0072b2", "#d55e00"
LOOKS = {RANDOM: ("#24292f", "-"), "grad_cam": (ADJOINING, "-"), "excitation_backprop": (ADJOINING, "--"),
         "linear_approximation": (ADJOINING, ":"), "saliency": (SCATTERED, "-"), "guided_backprop": (SCATTERED, "--"),
         "deconvnet": (SCATTERED, ":")}
"""Blue lines for explainers whose pixels adjoin, orange ones for those whose pixels are scattered."""
HIDDEN = (0, 114, 178)
LEAST = 1e-2
"""Below this share a curve is cut, for the logarithm of 0 is nowhere."""
WHICH = {"raw": "untrained, raw", "enhanced": "untrained, enhanced", "trained": "trained, raw"}


def draw(stores: Mapping[str, Store], folder: Path, experiment: str) -> list[Path]:
    """Every figure of an experiment that the runs have something for."""
    return write(_figures(stores), folder, experiment)


def _figures(stores: Mapping[str, Store]) -> Iterator[tuple[str, str, Any]]:
    if "linear" in stores:
        for record, arrays in _with_arrays(stores["linear"]):
            if record["case"] == "pointing":
                yield "fig3", "metrics-fig3", pointed(arrays)
                yield "table3", "metrics-boxes", boxes(arrays)
    if "flipping" in stores:
        done = [r for r in stores["flipping"].records() if r["status"] == "ok" and r["right"] and r["score"] > 0]
        if done:
            yield "fig1", "metrics-fig1", curves(done, ("zeros",), ("grad_cam", RANDOM))
            yield "fig4", "metrics-fig4", curves(done, BASELINES)
            yield "fig6", "metrics-fig6", references(done)
        shown = [(r, a) for r, a in _with_arrays(stores["flipping"]) if "picture" in a]
        if shown:
            yield "fig5", "metrics-fig5", masked(shown)
    if "enhanced" in stores:
        yield from _twins(stores["enhanced"])


def _with_arrays(store: Store) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    for record in store.records():
        if record["status"] == "ok":
            arrays = store.arrays(record["case"])
            if arrays:
                yield record, arrays


def _new(wide: float, high: float, rows: int, columns: int, title: str, **more: Any) -> tuple[Any, Any]:
    figure = need("matplotlib.figure", "report").Figure(figsize=(wide, high), layout="constrained")
    figure.suptitle("\n".join(lettering.wrap(title, wide - 0.4, 9.5)), fontsize=9.5, **lettering.plain())
    return figure, figure.subplots(rows, columns, squeeze=False, **more)


def _plain(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(labelsize=8)


def curves(done: Sequence[Mapping[str, Any]], baselines: Sequence[str], names: Sequence[str] = tuple(LOOKS)) -> Any:
    """Accuracy and score while pixels are hidden, as shares of the beginning, on a logarithmic scale."""
    columns, ticker = 2 * len(baselines), need("matplotlib.ticker", "report")
    scattered = any(LOOKS[name][0] == SCATTERED for name in names)
    figure, axes = _new(3.1 * columns + 0.6, 3.6, 1, columns, f"Pixel flipping of {len(done)} images: lower is said to be "
                        f"better. Blue: pixels adjoin;{' orange: they are scattered;' * scattered} black: random masking",
                        sharex=True)
    for place, (baseline, what) in enumerate((b, w) for b in baselines for w in ("right", "score")):
        one = axes[0][place]
        for name in names:
            if name not in done[0]["curves"][baseline]:
                continue
            hidden, mean = _mean_curve(done, baseline, name, what)
            one.plot(100 * hidden, np.maximum(mean, LEAST), color=LOOKS[name][0], linestyle=LOOKS[name][1],
                     linewidth=2.2 if name == RANDOM else 1.4, label=CALLED[name])
        one.set_yscale("log")
        one.yaxis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10]))
        one.yaxis.set_minor_locator(ticker.NullLocator())
        one.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:.2g}".removeprefix("0")))
        one.set_title(f"{baseline} baseline, {'accuracy' if what == 'right' else 'score'}", fontsize=9)
        one.set_xlabel("pixels hidden, %", fontsize=8.5)
        _plain(one)
    axes[0][0].set_ylabel("share of the beginning", fontsize=8.5)
    axes[0][-1].legend(fontsize=7.5, frameon=False)
    return figure


def _mean_curve(done: Sequence[Mapping[str, Any]], baseline: str, name: str, what: str) -> tuple[Floats, Floats]:
    hidden = np.array(done[0]["curves"][baseline]["hidden"]) / done[0]["d"]
    mean = np.mean([r["curves"][baseline][name][what] for r in done], axis=0)
    return hidden, np.asarray(mean / max(mean[0], 1e-12))


def references(done: Sequence[Mapping[str, Any]]) -> Any:
    """Random masking among the N pixels that Grad-CAM ranks first, and how much lower it lies than Grad-CAM's own."""
    figure, axes = _new(9.4, 3.8, 1, 2, f"Reference pixel flipping of {len(done)} images: pixels are hidden at random among "
                        "the N that Grad-CAM ranks first (orange, wider for larger N). Right: below 0 that hurts more than "
                        "Grad-CAM's order")
    usual = float(np.mean([r["score"] for r in done]))
    for name in ("grad_cam", RANDOM):
        hidden = np.array(done[0]["references"]["hidden"]) / done[0]["d"]
        mean = np.mean([r["references"][name]["score"] for r in done], axis=0) / usual
        axes[0][0].plot(100 * hidden, mean, color=LOOKS[name][0], label=CALLED[name], linewidth=1.6)
    for width, n in enumerate(done[0]["references"]["drawn"]):
        drawn = [r["references"]["drawn"][n] for r in done]
        hidden = np.array(drawn[0]["hidden"]) / done[0]["d"]
        for place, what in ((0, "score"), (1, "less")):
            mean = np.mean([one[what] for one in drawn], axis=0) / usual
            axes[0][place].plot(100 * hidden, mean, color="#d55e00", linewidth=0.8 + 0.6 * width,
                                label=f"random, N = {int(n):,}")
    axes[0][0].set_ylabel("score, share of whole images'", fontsize=8.5)
    axes[0][1].set_ylabel("difference to Grad-CAM's order", fontsize=8.5)
    axes[0][1].axhline(0, color=LOOKS["grad_cam"][0], linewidth=1)
    for one in axes[0]:
        one.set_xlabel("pixels hidden, %", fontsize=8.5)
        _plain(one)
    axes[0][0].legend(fontsize=7.5, frameon=False)
    return figure


def masked(shown: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Any:
    """What the three maskings hide of a few images."""
    kinds = {"random": "random masking", "reference": "random, among Grad-CAM's first", "grad_cam": "Grad-CAM masking"}
    figure, axes = _new(2.2 * len(shown) + 0.6, 7.0, 3, len(shown), "As many pixels hidden in three ways (blue)")
    for column, (record, arrays) in enumerate(shown):
        for row, (kind, words) in enumerate(kinds.items()):
            picture = _picture(arrays["picture"])
            picture[np.asarray(arrays[f"hidden_{kind}"], bool)] = HIDDEN
            _image(axes[row][column], picture)
            if not row:
                axes[row][column].set_title(_short(str(record["name"])), fontsize=8.5, **lettering.plain())
            if not column:
                axes[row][column].set_ylabel(words, fontsize=8.5)
    return figure


def pointed(arrays: Mapping[str, Any]) -> Any:
    """Weight times pixel of a seven, before and after the manipulation."""
    figure, axes = _new(7.4, 3.0, 1, 3, "Weight times pixel, what each pixel contributes to the score of the true class")
    _image(axes[0][0], to_rgb(np.asarray(arrays["shown"])))
    axes[0][0].set_title("the digit", fontsize=9)
    for place, name in ((1, "standard"), (2, "manipulated")):
        map = np.asarray(arrays[f"map_{name}"])
        size = float(np.abs(map).max())
        drawn = axes[0][place].imshow(map, cmap="PuOr_r", vmin=-size, vmax=size)
        axes[0][place].set_title(f"{name} model", fontsize=9)
        axes[0][place].set_xticks([])
        axes[0][place].set_yticks([])
        bar = figure.colorbar(drawn, ax=axes[0][place], shrink=0.8)
        bar.ax.tick_params(labelsize=7)
    return figure


def boxes(arrays: Mapping[str, Any]) -> Any:
    """Digits with the tight boxes that stand for an annotation (appendix, Figure 6)."""
    digits, inside = np.asarray(arrays["digits"]), np.asarray(arrays["boxes"], bool)
    figure, axes = _new(1.5 * len(digits) + 0.4, 2.0, 1, len(digits), "Boxes around all that is not black")
    rectangle = need("matplotlib.patches", "report").Rectangle
    for one, digit, box in zip(axes[0], digits, inside, strict=True):
        _image(one, to_rgb(digit))
        rows, columns = (np.flatnonzero(box.any(axis=axis)) for axis in (1, 0))
        if len(rows):
            one.add_patch(rectangle((columns[0] - 0.5, rows[0] - 0.5), len(columns), len(rows), fill=False, edgecolor="#d55e00",
                                    linewidth=1.6))
    return figure


def _twins(store: Store) -> Iterator[tuple[str, str, Any]]:
    by_net: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = {}
    for record, arrays in _with_arrays(store):
        by_net.setdefault(record["net"], []).append((record, arrays))
    for net, some in by_net.items():
        names = dict.fromkeys(name for record, _ in some for name in record["alike"])
        for name in names:
            yield ("fig2" if name == "grad_cam" else "appendix"), f"metrics-twins-{net}-{name}", thrice(net, name, some)


def thrice(net: str, name: str, some: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Any:
    """One explainer's maps of an untrained net on raw and enhanced images, and of the trained one."""
    figure, axes = _new(2.1 * len(some) + 0.9, 6.4, 3, len(some), f"{net}, {CALLED.get(name, name)}: the middle row should be "
                        "like the upper one, which is of the same net, and not like the lower one. Orange speaks for the "
                        "class, purple against it")
    for column, (record, arrays) in enumerate(some):
        for row, (which, words) in enumerate(WHICH.items()):
            one = axes[row][column]
            picture = _picture(arrays["enhanced" if which == "enhanced" else "raw"])
            map = arrays.get(f"map_{name}_{which}")
            high, wide = picture.shape[:2]
            one.imshow(picture.mean(axis=2), cmap="gray", extent=(0, wide, high, 0), vmin=0, vmax=255)
            if map is not None:
                size = max(float(np.abs(map).max()), 1e-12)
                one.imshow(map, cmap="PuOr_r", vmin=-size, vmax=size, alpha=0.6, extent=(0, wide, high, 0),
                           interpolation="nearest")
            right = record["labels"][which] == record["truth"]
            one.set_title(f"{'right' if right else 'wrong'}", fontsize=8, color="#0072b2" if right else "#d55e00")
            one.set_xticks([])
            one.set_yticks([])
            if not column:
                one.set_ylabel(words, fontsize=8.5)
    return figure


def _picture(array: Any) -> Any:
    """(C, H, W) or (H, W) as bytes to look at."""
    values = np.asarray(array, dtype=np.float64)
    return to_rgb(np.moveaxis(values, 0, -1) if values.ndim == 3 else values)


def _image(axes: Any, picture: Any) -> None:
    axes.imshow(picture)
    axes.set_xticks([])
    axes.set_yticks([])


def _short(name: str, most: int = 24) -> str:
    name = name.partition("_")[2].replace("_", " ") if name.startswith("n0") or name.startswith("n1") else name
    return name if len(name) <= most else name[:most - 1] + "…"
