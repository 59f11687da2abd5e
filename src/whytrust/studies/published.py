"""The image numbers of Hoedt, Praher, Flexer, Widmer (2022), as printed, and tables that set a run of ours beside them.

Their nets, images and sizes of perturbation are not ours, so a number of theirs is no target: it says what they saw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whytrust.studies.markdown import inert, table

CITATION = ("K. Hoedt, V. Praher, A. Flexer, G. Widmer: Constructing adversarial examples to investigate the plausibility of "
            "explanations in deep audio and image classifiers. Neural Computing and Applications, 2022")
NETS = ("AlexNet", "VGG16", "ResNet-50", "DenseNet161", "Inception v3")
STANDARD = ("lime", "integrated_gradients", "saliency", "guided_backprop")
GRADIENTS = STANDARD[1:]
SMOOTHINGS = {"smoothgrad": "SG", "smoothgrad2": "SG²", "vargrad": "VG"}
ENSEMBLES = tuple(f"{base}/{how}" for how in SMOOTHINGS for base in GRADIENTS)
"""In the order of the columns of Tables 3 and 8."""
_SHORT = {"lime": "LIME", "integrated_gradients": "IG", "saliency": "Sal", "guided_backprop": "GBP"}
NAMES = _SHORT | {f"{base}/{how}": f"{_SHORT[base]}-{short}" for how, short in SMOOTHINGS.items() for base in GRADIENTS}
"""What the paper calls each of the thirteen explainers."""


def _rows(text: str, names: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """A line a net, a number an explainer."""
    lines = [[float(number) for number in line.split()] for line in text.strip().splitlines()]
    return {net: dict(zip(names, line, strict=True)) for net, line in zip(NETS, lines, strict=True)}


ACCURACY: Mapping[str, Mapping[str, float]] = {
    net: {"before": before, "after": after, "adversaries": adversaries, "images": 50_000} for net, before, after, adversaries in
    zip(NETS, (56.52, 71.59, 76.13, 77.14, 77.21), (0.19, 0.17, 0.16, 0.19, 0.38), (49_879, 49_912, 49_925, 49_899, 49_846),
        strict=True)}
"""Table 1: per cent of the 50,000 validation images, before and after the attack, and the adversaries that were found."""

_SLIC = _rows("""
    68.54 52.16 57.78 60.18
    55.44 40.90 40.60 49.44
    44.70 27.18 27.10 36.20
    37.82 22.42 22.84 19.42
    40.86 28.14 26.52 27.90""", STANDARD)
_SLIC_ENSEMBLES = _rows("""
    50.68 54.32 49.60 50.70 54.84 47.84 50.34 54.82 47.34
    39.42 43.32 39.72 40.84 43.30 38.22 41.68 44.36 40.82
    33.26 34.28 33.74 34.06 35.54 33.56 33.82 35.40 32.38
    27.24 28.10 14.10 27.18 29.28 14.62 26.48 29.04 14.52
    33.74 35.38 25.22 33.60 36.04 24.18 35.50 36.66 23.46""", ENSEMBLES)
_GRID = _rows("""
    41.14 38.90 41.52 43.80
    28.14 27.72 27.74 31.84
    17.52 15.56 15.36 17.60
    13.90 12.96 12.34 9.34
    15.10 14.98 14.54 13.00""", STANDARD)
_GRID_ENSEMBLES = _rows("""
    32.96 34.92 30.08 34.62 35.02 29.52 33.76 35.56 30.58
    24.36 24.30 21.60 23.74 25.28 22.08 25.24 24.86 21.82
    17.78 16.90 16.72 17.10 17.16 16.38 17.24 17.24 16.46
    13.92 14.44 6.48 13.66 14.90 6.20 14.22 14.22 6.62
    17.80 17.64 13.36 17.62 18.20 11.24 17.52 17.94 11.12""", ENSEMBLES)

FLIPS: Mapping[str, Mapping[str, Mapping[str, float]]] = {
    "slic": {net: _SLIC[net] | _SLIC_ENSEMBLES[net] for net in NETS},
    "grid": {net: _GRID[net] | _GRID_ENSEMBLES[net] for net in NETS}}
"""Tables 2 and 3 (SLIC), 7 and 8 (rectangles): label-flip rates in per cent for k = 3, on 10 % of the validation images."""
FLIP_TABLES = {"slic": "Tables 2 and 3", "grid": "Tables 7 and 8"}

ATTACK: Mapping[str, Mapping[str, float]] = {
    net: {"epsilon": 0.10 if net == "AlexNet" else 0.05, "step": 0.01, "iterations": 100} for net in NETS}
"""Table 4, and the iterations of § 3; in units of the normalised image."""
STD = (0.229, 0.224, 0.225)
"""One unit of a normalised image in the paper, channel by channel, as a share of the range of a pixel."""

SEGMENTS: Mapping[str, Mapping[str, float]] = {
    net: {"mean": mean, "sd": sd} for net, mean, sd in
    zip(NETS, (11.039, 11.048, 11.042, 11.046, 10.837), (2.307, 2.305, 2.307, 2.300, 2.384), strict=True)}
"""Table 6: how many segments SLIC finds on adversaries."""

# --- ours beside theirs, as Markdown ----------------------------------------------------------------------------------

CUTS = {"slic": "SLIC segments", "grid": "4 × 4 rectangles"}
ROWS = NAMES | {"oracle": "*oracle: best set known*", "magnitude": "*magnitude*", "magnitude_mean": "*magnitude a pixel*",
                "random": "*random, expected*"}
ALL = "all nets"
Found = Mapping[str, Any]


def told(found: Found, pictures: Sequence[str] = ()) -> str:
    """The findings as Markdown, section by section; whatever was not asked for is not there."""
    cases = found["cases"]
    short = cases["of"] - cases["done"]
    lines = [f"# Hoedt et al. (2022), images, again: {', '.join(found['models'])}", "",
             f"{found['data']}, {len(found['models'])} nets: {cases['done']} of {cases['of']} cases are done"
             + (f", {short} are not: every number below is of those that are" if short else "")
             + f"; {cases['failed']} failed{_reason(found)}. Rates are in per cent with their 95 % interval. “{ALL}” counts an "
             "image once, however many nets saw it.", "", f"Published: {found['paper']}."]
    lines += [f"\n**{inert(problem)}**" for problem in found["problems"]]
    lines += ["", *_claims(found), "", *_different(found)] if found["claims"] else []
    for name, section in SECTIONS.items():
        if name in found:
            lines += ["", *section(found)]
    if pictures:
        lines += ["", "## Figures", "", *(f"![{path}]({path})\n" for path in pictures)]
    return "\n".join(lines).rstrip() + "\n"


def _reason(found: Found) -> str:
    return f" (the first: {found['failures'][0]['case']}, {inert(found['failures'][0]['error'])})" if found["failures"] else ""


def _nets(found: Found) -> list[str]:
    """Ours, and all of them together where there are several."""
    return [*found["models"], *([ALL] if len(found["models"]) > 1 else [])]


def _cell(rate: Found) -> str:
    if not rate["n"]:
        return "–"
    return f"{100 * rate['value']:.1f} [{100 * rate['low']:.0f}, {100 * rate['high']:.0f}] n {rate['n']}"


def points(test: Found) -> str:
    """What may be said of a difference, as a sign, and the difference in points with its interval."""
    mark = {"above": "✓ ", "on par": "= ", "below": "✗ "}.get(test["call"], "? ")
    value, low, high = (f"{100 * test[what]:+.0f}".replace("-", "−") for what in ("value", "low", "high"))
    return f"{mark}{value} [{low}, {high}]"


def _claims(found: Found) -> list[str]:
    rows = [[one["where"], one["said"], f"**{one['verdict']}**",
             "; ".join(f"{name} {points(test)}" for name, test in one["tests"].items()) or "–",
             str(max((test["n"] for test in one["tests"].values()), default=0))] for one in found["claims"]]
    return ["## What the paper found, asked of these nets", "",
            "Paired differences in points over all nets, above 0 where the paper's finding is seen here: ✓ beyond chance, ✗ "
            "the opposite beyond chance, = no more than 5 points apart, ? undecided (Holm over the tests of a line). “Ours” is "
            "a question that the paper does not ask.", "", *table(["paper", "finding", "here", "differences", "most n"], rows)]


def _different(found: Found) -> list[str]:
    used = found["settings"]
    return ["What is not as in the paper:", "",
            "- other nets, and their normalisation, so that the same ε (Table 4) and the same noise of smoothing (σ = "
            f"{used['noise']:g}) are other numbers of grey levels;",
            f"- {found['images']} images instead of 5,000 (50,000 for Tables 1 and 6); smoothed IG takes {used['noisy_steps']} "
            f"steps (the paper: {used['steps']}), and is tried on the first {found['few']} images, as recovery is, which "
            "the paper has on 10 or 100 % of its adversaries;",
            *([] if used.get("protocol") == "paper" else [
                "- as in the paper’s formula, adversaries are kept near the image, but not within the range of pixels, to "
                "which the authors’ code cuts them; and the attack follows −log p where a cross-entropy in floats of 32 bits "
                "is flat;",
                "- mean_pos counts negative pixels as 0; in the paper they are left out of the mean;"]),
            "- LIME is ranked by its signed weights throughout; the authors’ code ranks them by size for recovery;",
            "- images with no more than k segments are left out, for flips at k = 3 as for recovery;",
            "- the share of parts is rounded down (Figures 5 to 7), which leaves 4 × 4 rectangles a larger share than the "
            "fewer SLIC segments."]


def _accuracy(found: Found) -> list[str]:
    nets, theirs = found["accuracy"]["nets"], found["accuracy"]["published"]
    rows = [[net, *(_cell(one[what]) for what in ("before", "after")), str(one["adversaries"]), _cell(one["fooled"]),
             str(one["failed"])] for net, one in nets.items() if net in _nets(found)]
    rows += [[f"*{net}, published*", f"{one['before']:.2f}", f"{one['after']:.2f}", f"{one['adversaries']:,.0f}",
              f"{100 * one['adversaries'] / one['images']:.2f} n {one['images']:,.0f}", "–"] for net, one in theirs.items()]
    return ["## Table 1: accuracy before and after the attack", "",
            *table(["net", "clean", "attacked", "adversaries", "share fooled", "failed"], rows)]


def _flips(found: Found) -> list[str]:
    lines: list[str] = []
    for cut, one in found["flips"].items():
        theirs = one["published"]
        rows = [[label, *(_cell(one["nets"][net]["rates"][name]) for net in _nets(found)),
                 *(f"{theirs[net][name]:.2f}" if name in theirs[net] else "–" for net in NETS)] for name, label in ROWS.items()]
        left = ", ".join(f"{one['nets'][net]['left_out']} of {net}" for net in found["models"])
        lines += ["", f"## {FLIP_TABLES[cut]}: label-flip rates, {CUTS[cut]}, k = {one['k']}", "",
                  *table(["explainer", *_nets(found), *(f"*{net}*" for net in NETS)], rows), "",
                  f"Nets in italics are published. Left out, for they have {one['k']} segments or fewer: {left}. Smoothings of "
                  f"IG were tried on the first {found['few']} images. Random is exact for up to 10 segments, else the mean of "
                  f"{found['draws']} draws.", "", *_beyond(one["tests"], found)]
    return lines[1:]


def _beyond(tests: Sequence[Found], found: Found) -> list[str]:
    lines = []
    several = len(found["models"]) > 1
    for rival in ("magnitude", "random"):
        for call in ("above", "below"):
            hits = [t for t in tests if (t["rival"], t["call"]) == (rival, call)]
            each = [f"{NAMES[t['name']]} ({t['net']})" for t in hits if t["net"] != ALL]
            lines.append(f"- {call.capitalize()} {rival} beyond chance, net by net: {', '.join(each) or 'none'}."
                         + (f" Over {ALL}: {', '.join(NAMES[t['name']] for t in hits if t['net'] == ALL) or 'none'}."
                            if several else ""))
    return [*lines, "", "(Paired, Holm over the table’s tests; those over all nets by themselves. Whoever is not named is not "
            "told apart from it.)"]


def _segments(found: Found) -> list[str]:
    nets, theirs = found["segments"]["nets"], found["segments"]["published"]
    rows = [[net, f"{nets[net]['mean']:.3f} ± {nets[net]['sd']:.3f} ({nets[net]['least']} to {nets[net]['most']})",
             str(nets[net]["n"])] for net in found["models"] if nets[net]["n"]]
    rows += [[f"*{net}, published*", f"{one['mean']:.3f} ± {one['sd']:.3f}", "–"] for net, one in theirs.items()]
    return ["## Table 6: segments that SLIC finds on adversaries, mean ± standard deviation", "",
            *table(["net", "segments", "n"], rows)]


def _attack(found: Found) -> list[str]:
    nets, theirs = found["attack"]["nets"], found["attack"]["published"]
    rows = [[net, f"{one['epsilon']:g}", f"{one['step']:g}", str(one["iterations"]), f"{one['grey_levels']:.1f}",
             f"{one['linf']:.3f}", f"{one['l2']:.1f}"] for net, one in nets.items()]
    rows += [[f"*{net}, published*", f"{one['epsilon']:g}", f"{one['step']:g}", f"{one['iterations']:.0f}",
              f"{one['grey_levels']:.1f}", "–", "–"] for net, one in theirs.items()]
    return ["## Table 4: the attack", "", "ε and η are in units of the normalised image, as in the authors’ code. A unit is "
            "not the same for every net: “grey levels” is ε in steps of 255, the mean of the channels; rates at unequal grey "
            "levels are hard to compare.", "",
            *table(["net", "ε", "η", "steps", "grey levels", "median L∞", "median L2"], rows)]


def _poolings(found: Found) -> list[str]:
    lines: list[str] = []
    for cut, one in found["poolings"].items():
        names = one["nets"][found["models"][0]]
        rows = [[NAMES[name], how, *(_cell(one["nets"][net][name][how]) for net in _nets(found))]
                for name, hows in names.items() for how in hows]
        lines += ["", f"## § 6.1: from pixels to parts, label-flip rates, {CUTS[cut]}, k = {one['k']}", "",
                  *table(["explainer", "pooling", *_nets(found)], rows)]
    return [*lines[1:], "", "The paper gives no numbers: it says that mean_abs led to the highest rates."]


def _curves(found: Found) -> list[str]:
    curves, lines = found["curves"], list[str]()
    for cut, words in CUTS.items():
        rows = [[net, ROWS[name], *(f"{100 * v:.0f}" for v in line["value"]), str(line["n"])]
                for net in _nets(found) for name, line in curves[cut][net].items() if line["n"]]
        lines += ["", f"## Figures 5 to 7: label-flip rates over the share of parts, {words}", "",
                  *table(["net", "explainer", *(f"{p} %" for p in curves["percent"]), "n"], rows)]
    return lines[1:]


def _recovery(found: Found) -> list[str]:
    lines = ["## Figures 8, 13 and 14: finding the only k changed segments", "",
             f"Of the first {found['few']} images, where the k segments of largest perturbation alone still flip the label. A "
             "cell is the share of cases in which all k were found, and the mean share of the k that was found."]
    for cut, words in CUTS.items():
        nets = found["recovery"][cut]
        for k in nets[ALL]:
            if not nets[ALL][k]["n"]:
                lines += ["", f"### {words}, k = {k}: none of {nets[ALL][k]['tried']} still flips"]
                continue
            rows = [[label, *(_both(nets[net][k], name) for net in _nets(found))] for name, label in NAMES.items()]
            rows.append([ROWS["random"], *(_chance(nets[net][k]) for net in _nets(found))])
            heads = [f"{net} ({nets[net][k]['n']} of {nets[net][k]['tried']} still flip)" for net in _nets(found)]
            lines += ["", f"### {words}, k = {k}", "", *table(["explainer", *heads], rows)]
    return lines


def _both(one: Found, name: str) -> str:
    whole, share = one["all"][name], one["share"][name]
    if not whole["n"]:
        return "–"
    return _cell(whole) + _of_them(one, share["value"])


def _chance(one: Found) -> str:
    if not one["n"]:
        return "–"
    return f"{100 * one['random'][-1]:.1f}" + _of_them(one, one["random_share"])


def _of_them(one: Found, share: float) -> str:
    """The mean share found, which of a single segment says nothing new."""
    return f"; {100 * share:.0f} % of them" if len(one["random"]) > 2 else ""


def _adversaries(found: Found) -> list[str]:
    rows = [[net, one["name"], one["before"], one["after"], f"{one['linf']:.3f}"]
            for net, kept in found["adversaries"].items() for one in kept]
    return ["## Figures 10 to 12: adversaries kept to look at", "", *table(["net", "image", "before", "after", "L∞"], rows)]


SECTIONS = {"accuracy": _accuracy, "flips": _flips, "segments": _segments, "attack": _attack, "poolings": _poolings,
            "curves": _curves, "recovery": _recovery, "adversaries": _adversaries}
