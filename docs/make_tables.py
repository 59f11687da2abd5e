"""The tables of docs/reproduce-plausible.md from a run and its figures: `python docs/make_tables.py runs/plausible`.

They are the run's own `tables.md` made narrow: whole per cents, and the curves and poolings of all nets together. Of its
figures the one of the curves, which shows numbers alone and no photograph, is copied.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from whytrust.store import Store
from whytrust.studies import published, reproduce
from whytrust.studies.plausible import cut_image

PAGE = Path(__file__).parent / "reproduce-plausible.md"
BEGIN, END = "<!-- made by docs/make_tables.py -->", "<!-- until here -->"
CUTS = {"slic": "SLIC segments", "grid": "4 × 4 rectangles"}
ALL = "all nets"
FIGURE = Path("pictures") / "plausible-curves.png"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join(published.table(header, rows)) + "\n"


def rate(found: dict[str, Any]) -> str:
    """A rate in per cent and its interval."""
    return f"{100 * found['value']:.0f} [{100 * found['low']:.0f}, {100 * found['high']:.0f}]" if found["n"] else "–"


def short(net: str) -> str:
    """A net's name that leaves room for numbers."""
    return net.replace("efficientnet-lite", "Lite")


def claims(found: dict[str, Any]) -> str:
    """What the paper found, and whether it is so here."""
    made = []
    for claim in found["claims"]:
        tests = "; ".join(f"{name} {published.points(test)}".replace(" ", "\xa0")  # each on one line
                          for name, test in claim["tests"].items())
        most = max((t["n"] for t in claim["tests"].values()), default=0)
        text = f"**{claim['verdict']}** ({claim['where']}): {claim['said']}; n up to {most}. {tests}"
        made.append(textwrap.fill(text, 126, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False))
    return "\n".join(made).replace("\xa0", " ") + "\n"


def accuracy(found: dict[str, Any]) -> str:
    """Table 1."""
    rows = [[short(net), rate(one["before"]), rate(one["after"]), f"{one['adversaries']} of {one['fooled']['n']}"]
            for net, one in found["accuracy"]["nets"].items() if net != ALL]
    rows += [[f"*{net}*", f"{one['before']}", f"{one['after']}", f"{one['adversaries']:,} of {one['images']:,}"]
             for net, one in found["accuracy"]["published"].items()]
    return table(("net", "accuracy, clean", "accuracy, attacked", "adversaries"), rows)


def flips(found: dict[str, Any], cut: str) -> str:
    """Tables 2 and 3, or 7 and 8."""
    one = found["flips"][cut]
    theirs, nets = one["published"], one["nets"]
    rows = []
    for name, label in published.ROWS.items():
        said = " ".join(f"{rates[name]:.1f}" for rates in theirs.values()) if name in published.NAMES else "–"
        rows.append([label, *(rate(net["rates"][name]) for net in nets.values()), str(nets[ALL]["rates"][name]["n"]), said])
    return table(("explainer", *map(short, nets), "n", "*AlexNet VGG16 ResNet DenseNet Inc.*"), rows)


def against(found: dict[str, Any], cut: str) -> str:
    """Who is told apart from magnitude and from random, over all nets."""
    made = []
    for rival in ("magnitude", "random"):
        for call in ("above", "below"):
            names = [published.NAMES[t["name"]] for t in found["flips"][cut]["tests"]
                     if (t["net"], t["rival"], t["call"]) == (ALL, rival, call)]
            made.append(f"{call} {rival}: {', '.join(names) or 'none'}")
    return textwrap.fill(f"Beyond chance, over all nets: {'; '.join(made)}.", 126, break_on_hyphens=False) + "\n"


def segments(found: dict[str, Any]) -> str:
    """Tables 4 and 6."""
    attack, cut = found["attack"], found["segments"]
    rows = [[name, f"{one['epsilon']}", f"{one['grey_levels']:.1f}", f"{seg['mean']:.2f} ± {seg['sd']:.2f}"]
            for nets, parts, mark in ((attack["nets"], cut["nets"], ""), (attack["published"], cut["published"], "*"))
            for net, one in nets.items() for seg, name in [(parts[net], f"{mark}{short(net)}{mark}")]]
    return table(("net", "ε, normalised", "ε, grey levels", "SLIC segments"), rows)


def poolings(found: dict[str, Any]) -> str:
    """§ 6.1, over all nets."""
    hows = ("mean_abs", "mean", "mean_pos")
    rows = [[published.NAMES[name], *(rate(found["poolings"][cut]["nets"][ALL][name][how]) for cut in CUTS for how in hows)]
            for name in found["poolings"]["slic"]["nets"][ALL]]
    return table(("explainer", *(f"{how}, {words}" for words in ("SLIC", "rect.") for how in hows)), rows)


def same_parts(store: Store) -> str:
    """Does it matter that `mean_pos` counts negative pixels, where the paper leaves them out?"""
    same = []
    for kept in filter(None, (store.arrays(record["case"]) for record in store.records())):
        for parts in (cut_image(kept["adversarial"], cut) for cut in CUTS):
            ours, positive = parts.pool(kept["map"], "mean_pos"), parts.pool((kept["map"] > 0).astype(float), "mean")
            theirs = ours / np.maximum(positive, 1e-300)
            same.append(set(np.argsort(-ours)[:3]) == set(np.argsort(-theirs)[:3]))
    said = (f"With `mean_pos` as in the paper, the three largest parts are the same on {sum(same)} of {len(same)} maps of "
            "integrated gradients (the images that the run keeps to look at, each net, both cuts).")
    return textwrap.fill(said, 126) + "\n"


def curves(found: dict[str, Any], cut: str) -> str:
    """Figures 5 to 7, over all nets."""
    rows = [[published.ROWS[name], *(f"{100 * v:.0f}" for v in line["value"]), str(line["n"])]
            for name, line in found["curves"][cut][ALL].items()]
    return table(("explainer", *(f"{p} %" for p in found["curves"]["percent"]), "n"), rows)


def recovery(found: dict[str, Any], cut: str) -> str:
    """Figures 8, 13 and 14."""
    nets = found["recovery"][cut]

    def cell(one: dict[str, Any], name: str) -> str:
        values = [one[k]["share"][name]["value"] if one[k]["n"] else None for k in one]
        return " / ".join("–" if v is None else f"{100 * v:.0f}" for v in values)

    rows = [[label, *(cell(one, name) for one in nets.values()), *(rate(nets[ALL][k]["share"][name]) for k in ("3", "5"))]
            for name, label in published.NAMES.items()]
    chance = [" / ".join(f"{100 * one[k]['random_share']:.0f}" if one[k]["n"] else "–" for k in one) for one in nets.values()]
    still = [" / ".join(f"{one[k]['n']}" for k in one) for one in nets.values()]
    rows += [["*random, expected*", *chance, *(f"{100 * nets[ALL][k]['random_share']:.0f}" for k in ("3", "5"))],
             ["*cases that still flip*", *still, *(str(nets[ALL][k]["n"]) for k in ("3", "5"))]]
    return table(("k = 1 / 3 / 5", *map(short, nets), "all, k = 3", "all, k = 5"), rows)


def small(figure: Path, place: Path) -> None:
    """A figure in 64 colours."""
    with Image.open(figure) as whole:
        whole.convert("RGB").quantize(64).save(place, optimize=True)


def rewrite(page: Path, made: str) -> None:
    """Put what was made between the marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{made}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def sections(found: dict[str, Any], store: Store) -> str:
    """Everything between the two marks."""
    pieces = ["### What the paper found, asked of these nets\n", claims(found), "### Accuracy (Table 1)\n", accuracy(found)]
    for cut, tables in (("slic", "Tables 2 and 3"), ("grid", "Tables 7 and 8")):
        pieces += [f"### Label-flip rates at k = 3, {CUTS[cut]} ({tables})\n", flips(found, cut), against(found, cut)]
    pieces += ["### The attack and the segments (Tables 4 and 6)\n", segments(found),
               "### From pixels to parts (§ 6.1), all nets, k = 3\n", poolings(found), same_parts(store)]
    pieces += ["### Label-flip rates over the share of parts (Figures 5 to 7)\n",
               f"![Label-flip rates of four explainers between random, magnitude and the oracle]({FIGURE})\n"]
    for cut, words in CUTS.items():
        pieces += [f"All nets, {words}:\n", curves(found, cut)]
    for cut, words in CUTS.items():
        pieces += [f"### The mean share found of k changed parts, {words} (Figures 8, 13 and 14)\n", recovery(found, cut)]
    return "\n".join(pieces)


if __name__ == "__main__":
    run = Path(sys.argv[1])
    found = json.loads(reproduce.report(run, True))
    small(run / "figures" / "figure-06-baselines.png", PAGE.parent / FIGURE)
    rewrite(PAGE, sections(found, Store.open(run)))
