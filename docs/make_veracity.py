"""The tables of docs/reproduce-veracity.md from a run and its figures: `python docs/make_veracity.py runs/veracity`.

They are the run's own `tables.md` made narrow. A run of the settings of the attack may be named after it. How many samples are
enough is told only by a run with as many as the papers have; what such a run said before stands on the page by itself.
"""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from make_tables import claims, rate, rewrite, small, table

from whytrust.studies import veracity_run
from whytrust.studies.published import points
from whytrust.studies.veracity import SAMPLES
from whytrust.studies.veracity_outcomes import NAMES

PAGE = Path(__file__).parent / "reproduce-veracity.md"
PICTURES = {"figure-1-drawings": "what was drawn onto spectrograms, and what LIME made of it",
            "figure-2-flips": "label-flip rates over the number of segments",
            "figure-settling": "how explanations settle as samples grow"}
SIGNALS = {"waveform": "wave", "magnitude": "spectr."}
DIRECTIONS = {"no sing": "→ sing", "sing": "→ no sing"}
KS = (1, 2, 3, 4, 5, 7, 10, 13, 16, 19)


def name(cell: dict[str, Any]) -> str:
    """What became of the answer, and what was attacked."""
    return "all" if cell["signal"] == "all" else f"{DIRECTIONS[cell['direction']]}, {SIGNALS[cell['signal']]}"


def middle(found: dict[str, Any], digits: int = 2) -> str:
    """A median with its range."""
    if not found["n"]:
        return "–"
    return f"{found['median']:.{digits}f} ({found['least']:.{digits}f} to {found['most']:.{digits}f})"


def picture(key: str) -> str:
    """A figure of the run."""
    return f"![{PICTURES[key][0].upper()}{PICTURES[key][1:]}](pictures/veracity-{key.removeprefix('figure-')}.png)\n"


def told(text: str) -> str:
    """A paragraph."""
    return textwrap.fill(text, 126, break_on_hyphens=False) + "\n"


def detector(found: dict[str, Any]) -> str:
    """§ 4.2."""
    one = found["detector"]
    rows = [[what, rate(one["rates"][what]), f"{100 * one['own_test'][what]:.1f}",
             "{:.2f} ± {:.2f}".format(*one["published"][what])] for what in ("error", "recall", "specificity")]
    return table(("", "on these pieces", "on 100 others", "*published*"), rows)


def attack(found: dict[str, Any]) -> str:
    """§ 4.3."""
    one = found["attack"]
    rows = [[SIGNALS[signal], *(rate(its[what]) for what in ("success", *DIRECTIONS, "played")), middle(
        {k: v if k == "n" else 100 * v for k, v in its["at_floor"].items()}, 1), middle(its["signal_to_noise"], 1),
             f"{one['published']['success'][signal]}"] for signal, its in one["signals"].items()]
    return table(("attacked", "frames turned", *DIRECTIONS.values(), "as a sound", "at 0", "signal to noise, dB",
                  "*published*"), rows)


def flips(found: dict[str, Any]) -> str:
    """Table 1, and who is told apart."""
    one = found["flips"]
    rows = [[label, *(rate(cell["rates"][key]) for cell in one["cells"])] for key, label in NAMES.items()]
    rows += [["excerpts", *(str(cell["excerpts"]) for cell in one["cells"])],
             ["*LIME, published*", *(f"{cell['published']}" for cell in one["cells"])]]
    beside = []
    for rival, words in (("magnitude", "the norm"), ("random", "random")):
        each = "; ".join(f"{name(test)} {points(test)}" for test in one["tests"] if test["rival"] == rival)
        beside.append(f"LIME beside {words}: {each}.")
    return table(("", *map(name, one["cells"])), rows) + "\n" + told(" ".join(beside))


def curves(found: dict[str, Any]) -> str:
    """Figure 2."""
    rows = [[name(cell), label.partition(":")[0].partition(",")[0],
             *(f"{100 * cell['curves'][key]['value'][k - 1]:.0f}" for k in KS)]
            for cell in found["flips"]["cells"] for key, label in NAMES.items()]
    return table(("", "segments by", *(f"k = {k}" if k == 1 else str(k) for k in KS)), rows)


def positive(found: dict[str, Any]) -> str:
    """Table 2."""
    rows = [[name(cell), middle(cell["k"], 0), *(rate(cell["rates"][key]) for key in ("lime", "magnitude", "random")),
             f"{cell['published']['lime']}", f"{cell['published']['magnitude']}"] for cell in found["positive"]["cells"]]
    return table(("", "segments", "LIME", "norm", "random", "*LIME*", "*norm*"), rows)


def recovery(found: dict[str, Any]) -> str:
    """Figure 3."""
    rows = [[k, name(cell), f"{its['n']} of {cell['excerpts']}", " / ".join(map(str, its["counts"])), rate(its["all"]),
             rate(its["share"]), f"{100 * its['random_share']:.0f}"]
            for k in ("1", "3", "5") for cell in found["recovery"]["cells"] for its in [cell["k"][k]]]
    return table(("k", "", "still turned", "found 0 / … / k", "all found", "share found", "by chance"), rows)


def fidelity(found: dict[str, Any]) -> str:
    """Figure 4."""
    def of(values: Sequence[float]) -> str:
        return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f}), {len(values)}" if values else "–"

    rows = [[name(cell), of(cell["hit"]), of(cell["miss"]), "–" if cell["auc"] is None else
             "{value:.2f} [{low:.2f}, {high:.2f}]".format(**cell["auc"])] for cell in found["fidelity"]["cells"]]
    return table(("", "R², found", "R², missed", "area"), rows)


def drawings(found: dict[str, Any]) -> str:
    """Figure 1."""
    one = found["drawings"]
    rows = [[made["shape"], str(made["tries"]), f"{made['prediction_before']:.2f} → {made['prediction']:.2f}",
             f"{made['hits']} of {one['top']}", f"{made['hits_before']}", f"{made['expected']:.1f}",
             f"{len(made['touched'])} of 20", f"{made['fidelity']:.2f}"] for made in one["made"]]
    said = (f"{one['turned']} of {one['tried']} shapes turned the answer. Of LIME’s best three segments {rate(one['found'])} "
            f"per cent hold some of the shape, of those that it named before the drawing {rate(one['before'])}, of random ones "
            f"{rate(one['expected'])}; they cover {rate(one['covered'])} per cent of what was drawn.")
    made = table(("shape", "tries", "p(sing)", "best 3 on it", "before", "by chance", "touched", "R²"), rows)
    return f"{made}\n{told(said)}"


def contents(found: dict[str, Any]) -> str:
    """§ 4.4, what hidden segments hold."""
    rows = [[fill, rate(its["flip"]), rate(its["area"]), rate(its["shared"]), middle(its["fidelity"])]
            for fill, its in found["contents"]["fills"].items()]
    return table(("hidden", "flips, k = 3", "flips, mean of k = 1 … 19", "best 3 shared with mean", "R²"), rows)


def settling(found: dict[str, Any]) -> str:
    """§ 4.4, how many samples."""
    one = found["settling"]
    rows = [[f"{size:,}", *(f"{one['mean'][what][i]:.2f}" for what in ("top", "order", "spread"))]
            for i, size in enumerate(one["sizes"])]
    enough = f"from {one['enough']:,} samples on" if one["enough"] else f"not with {one['sizes'][-1]:,} samples"
    return (table(("samples", "best three in common", "rank correlation", "spread"), rows) + "\n"
            + told(f"95 % in common: {enough} (mean over {one['excerpts']} excerpts)."))


def tuning(found: dict[str, Any]) -> str:
    """§ 4.3 and Table 5."""
    rows = [[SIGNALS[signal], *(f"{row[key]:g}" for key in ("epsilon", "step", "alpha")), f"{100 * row['share']:.1f}",
             f"{row['signal_to_noise']:.1f}"] for signal, its in found["tuning"]["signals"].items()
            for row in sorted(its["rows"], key=lambda row: -row["share"])]
    songs = max(its["songs"] for its in found["tuning"]["signals"].values())
    said = f"{songs} validation piece{'' if songs == 1 else 's'}, {found['tuning']['iterations']} steps."
    return table(("attacked", "ε", "η", "α", "frames turned", "signal to noise, dB"), rows) + "\n" + told(said)


def tells_how_many(found: dict[str, Any]) -> bool:
    """Was it tried with as many samples as in the papers?"""
    return bool(found["settling"]["sizes"]) and found["settling"]["sizes"][-1] >= SAMPLES


def sections(found: dict[str, Any], tuned: dict[str, Any] | None) -> str:
    """Everything between the two marks."""
    pieces = ["### What the papers found, asked of this detector\n", claims(found),
              "### The detector (§ 4.2), per cent of frames\n", detector(found),
              "### Frames that the attack turns (§ 4.3), per cent\n", attack(found),
              "### Label flips with k = 3 segments (Table 1)\n", flips(found),
              "### Label flips over k (Figure 2)\n", picture("figure-2-flips"), curves(found),
              "### All segments of positive weight (Table 2)\n", positive(found),
              "### Finding the only k changed segments (Figure 3)\n", recovery(found),
              "### Fidelity where the one changed segment was found, and where not (Figure 4)\n", fidelity(found),
              "### Shapes drawn onto “no sing” (Figure 1)\n", picture("figure-1-drawings"), drawings(found),
              "### What hidden segments hold (§ 4.4)\n", contents(found)]
    if tells_how_many(found):
        pieces += ["### How many samples are enough (§ 4.4)\n", picture("figure-settling"), settling(found)]
    if tuned is not None:
        pieces += ["### Settings of the attack (§ 4.3, and Table 5 of Hoedt et al.)\n", tuning(tuned)]
    return "\n".join(pieces)


if __name__ == "__main__":
    run = Path(sys.argv[1])
    tuned = json.loads(veracity_run.report(sys.argv[2], True)) if len(sys.argv) > 2 else None
    found = json.loads(veracity_run.report(run, True))
    for key in (key for key in PICTURES if key != "figure-settling" or tells_how_many(found)):
        small(run / "figures" / f"{key}.png", PAGE.parent / "pictures" / f"veracity-{key.removeprefix('figure-')}.png")
    rewrite(PAGE, sections(found, tuned))
