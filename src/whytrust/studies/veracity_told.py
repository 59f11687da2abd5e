"""A run of `VeracityStudy` as Markdown: the papers' tables, theirs beside ours, and what may be said of their findings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from whytrust.studies import veracity_published as published
from whytrust.studies.markdown import inert, table
from whytrust.studies.published import points
from whytrust.studies.veracity_outcomes import KS, NAMES, cell_name
from whytrust.studies.veracity_published import DIRECTIONS, SIGNALS

Found = Mapping[str, Any]
SYMBOLS = {"epsilon": "ε", "step": "η", "alpha": "α"}


def told(found: Found, pictures: Sequence[str] = ()) -> str:
    """The findings as Markdown, section by section; whatever was not asked for is not there."""
    cases = found["cases"]
    short = cases["of"] - cases["done"]
    lines = ["# Praher et al. (2021), and Hoedt et al. (2022) on sound, again", "",
             f"Run on {found['data']}. {_compared(found)}", "", f"{cases['done']} of {cases['of']} cases are done"
             + (f", {short} are not: every number below is of those that are" if short else "")
             + f"; {cases['failed']} failed{_reason(found)}. Rates are in per cent with their 95 % interval. Excerpts of one "
             "song share its perturbation, so intervals and tests count songs.", "",
             "Published: " + " ".join(f"{words}." for words in found["papers"].values())]
    lines += [f"\n**{inert(problem)}**" for problem in found["problems"]]
    lines += ["", *_claims(found), "", *_different(found)] if found["claims"] else []
    for name, section in SECTIONS.items():
        if name in found:
            lines += ["", *section(found[name])]
    if pictures:
        lines += ["", "## Figures", "", *(f"![{path}]({path})\n" for path in pictures)]
    return "\n".join(lines).rstrip() + "\n"


def _compared(found: Found) -> str:
    if found["synthesised"]:
        return ("**This is no recorded music:** the songs come out of a synthesiser. The published numbers are of the Jamendo "
                "songs and a net trained on them; they stand beside ours to be looked at, not to be met.")
    return ("The published numbers are of the 16 test songs of Jamendo and a net trained on that set: on other songs, or of "
            "another net, they are not comparable one to one.")


def _reason(found: Found) -> str:
    return f" (the first: {found['failures'][0]['case']}, {inert(found['failures'][0]['error'])})" if found["failures"] else ""


def _cell(rate: Found | None) -> str:
    if not rate or not rate["n"]:
        return "–"
    return f"{100 * rate['value']:.1f} [{100 * rate['low']:.0f}, {100 * rate['high']:.0f}] n {rate['n']}"


def _number(value: float | None, digits: int = 3) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _middle(one: Found, digits: int = 2) -> str:
    """A median with its range."""
    return f"{one['median']:.{digits}f} ({one['least']:.{digits}f} to {one['most']:.{digits}f})" if one["n"] else "–"


def _heads(cells: Sequence[Found]) -> list[str]:
    return [cell_name(cell["signal"], cell["direction"]) for cell in cells]


# --- what the papers found --------------------------------------------------------------------------------------------


def _claims(found: Found) -> list[str]:
    rows = [[one["where"], one["said"], f"**{one['verdict']}**",
             "; ".join(f"{name} {points(test)}" for name, test in one["tests"].items()) or "–",
             str(max((test["n"] for test in one["tests"].values()), default=0))] for one in found["claims"]]
    return ["## What the papers found, asked of this detector", "",
            "Differences in points, above 0 where the papers’ finding is seen here: ✓ beyond chance, ✗ the opposite beyond "
            "chance, = shown to be no more than 5 points apart, ? undecided (Holm over the tests of a line). “Ours” is a "
            "question that the papers do not ask.", "", *table(["paper", "finding", "here", "differences", "most n"], rows)]


def _different(found: Found) -> list[str]:
    used = found["settings"]
    lines = ["What is not as in the papers:", ""]
    if found["synthesised"]:
        lines.append("- the music and the detector (see above);")
    if used["each"] and (found["songs"], used["each"]) != (published.SONGS, published.EACH):
        lines.append(f"- {found['songs']} songs and up to {used['each']} excerpts of each direction from each, instead of "
                     f"{published.SONGS} and {published.EACH};")
    if used["samples"] != published.SAMPLES:
        lines.append(f"- LIME with {used['samples']} samples instead of {published.SAMPLES};")
    if used["iterations"] and used["iterations"] != published.ITERATIONS:
        lines.append(f"- up to {used['iterations']} steps of the attack instead of {published.ITERATIONS:,};")
    if used["variant"] == "authors":
        lines.append("- the attack is that of the authors’ code, where the sign of the gradient goes through Adam, not that of "
                     "the papers’ formula (--variant paper);")
    elif used["variant"]:
        lines.append("- the attack is that of the papers’ formula; in the authors’ code the sign of the gradient goes through "
                     "Adam (--variant authors);")
    return [*lines, "- shapes are drawn and made louder by a program until the answer turns, not by hand;",
            "- drawings, settling and other contents are tried on as many excerpts as their tables say;",
            "- random and the oracle stand beside LIME and the norm."]


# --- the tables -------------------------------------------------------------------------------------------------------


def _detector(one: Found) -> list[str]:
    own = one["own_test"] or {}
    rows = [[name, _cell(one["rates"][name]), "–" if own.get(name) is None else f"{100 * own[name]:.1f}",
             "{:.2f} ± {:.2f}".format(*one["published"][name])] for name in published.DETECTOR]
    rows.append(["threshold", f"{one['threshold']:g}", "–", f"{one['published']['threshold']:g}"])
    trained = f" It was trained on {one['trained_on']}." if one["trained_on"] else ""
    return ["## § 4.2: the detector", "", f"Per cent of the frames, after smoothing.{trained} “When trained” is what it did on "
            "the test songs of its own training.", "", *table(["", "on the songs here", "when trained", "published"], rows)]


def _attack(one: Found) -> list[str]:
    rows = []
    for signal, words in SIGNALS.items():
        ours, theirs = one["signals"][signal], one["published"]
        setting = ", ".join(f"{SYMBOLS[name]} {ours[name]:g}" for name in SYMBOLS)
        rows.append([words, setting, *(_cell(ours[what]) for what in ("success", *DIRECTIONS)),
                     f"{theirs['success'][signal]}", _cell(ours["played"]), _floor(ours["at_floor"]),
                     _middle(ours["signal_to_noise"], 1), str(ours["iterations"])])
    return ["## § 4.3: how many frames the attack turns", "",
            "One perturbation for a whole song; n counts frames. The signal-to-noise ratio, median and range over songs in "
            "decibels, is of what was attacked: of a spectrogram’s magnitudes it is not what a listener would hear. “As a "
            "sound” is of the waveform that is played: few changed magnitudes are those of a waveform, so that one made from "
            "them has others. Magnitudes stay at or above 0; “at 0” is the share of them that the attack brings there, median "
            "and range over songs.", "",
            *table(["attacked", "settings", "frames turned", *DIRECTIONS.values(), "*published*", "as a sound, turned", "at 0",
                    "signal to noise", "steps"], rows)]


def _floor(one: Found) -> str:
    """Per cent, median and range."""
    return _middle({"n": one["n"], **{k: 100 * one[k] for k in ("median", "least", "most") if k in one}}, 1)


def _flips(one: Found) -> list[str]:
    cells = one["cells"]
    rows = [[label, *(_cell(cell["rates"][name]) for cell in cells)] for name, label in NAMES.items()]
    rows.append(["*LIME, published*", *(f"{cell['published']:g}" for cell in cells)])
    lines = [f"## Table 1: label flips with k = {one['k']} segments", "", *table(["", *_heads(cells)], rows), "",
             *_beyond(one["tests"]), "", "## Figure 2: label flips over k", ""]
    ks = [k for k in one["ks"] if k in (1, 2, 3, 4, 5, 7, 10, 13, 16, 18, 19)]
    body = [[head, label, *(f"{100 * cell['curves'][name]['value'][k - 1]:.0f}" for k in ks), str(cell["excerpts"])]
            for cell, head in zip(cells, _heads(cells), strict=True) for name, label in NAMES.items() if cell["excerpts"]]
    enough = [f"{head}: LIME {cell['enough']['lime']}, norm {cell['enough']['magnitude']}, oracle {cell['enough']['oracle']}, "
              f"and the norm is above LIME at {cell['above']} of 19 k, below at {cell['below']}"
              for cell, head in zip(cells, _heads(cells), strict=True) if cell["excerpts"]]
    return [*lines, *table(["", "segments by", *(f"k = {k}" for k in ks), "n"], body), "",
            "Segments from which on 95 % of the labels flip (all 20 are the whole perturbation): "
            f"{'; '.join(enough) or 'nothing is known yet'}. The papers print the curves without numbers."]


def _beyond(tests: Sequence[Found]) -> list[str]:
    """LIME beside its rivals at k = 3."""
    lines = []
    for rival in ("magnitude", "random"):
        each = [f"{cell_name(t['signal'], t['direction'])} {points(t)}" for t in tests if t["rival"] == rival]
        lines.append(f"- LIME beside {NAMES[rival].partition(',')[0]}: {'; '.join(each) or '–'}.")
    return [*lines, "", "(Points, paired, Holm over these tests.)"]


def _positive(one: Found) -> list[str]:
    rows = [[cell_name(cell["signal"], cell["direction"]), _middle(cell["k"], 0),
             *(_cell(cell["rates"][name]) for name in ("lime", "magnitude", "random")),
             *(f"{cell['published'][name]:g}" for name in ("lime", "magnitude"))] for cell in one["cells"]]
    return ["## Table 2: all segments of positive weight", "", *table(
        ["", "segments", "LIME", "norm, as many", "random, as many", "*LIME, published*", "*norm, published*"], rows)]


def _recovery(one: Found) -> list[str]:
    lines = ["## Figure 3: finding the only k changed segments", "",
             "Of the excerpts whose answer the k segments of largest norm alone still turn. A cell is the share in which LIME "
             "found all k, and the mean share of the k that it found."]
    for k in map(str, KS):
        rows = [[cell_name(cell["signal"], cell["direction"]), f"{its['n']} of {cell['excerpts']}",
                 " / ".join(map(str, its["counts"])), _cell(its["all"]), _cell(its["share"])]
                for cell in one["cells"] for its in [cell["k"][k]]]
        its = one["cells"][0]["k"][k]
        rows.append(["*random, expected*", "–", " / ".join(f"{100 * share:.0f} %" for share in its["random"]),
                     f"{100 * its['random'][-1]:.1f}", f"{100 * its['random_share']:.1f}"])
        counted = "0 / 1" if k == "1" else f"0 / … / {k}"
        lines += ["", f"### k = {k}", "", *table(["", "still turned", f"found {counted}", "all found", "share found"], rows)]
    still = "; ".join(f"k = {k}: {its['still']} of {its['excerpts']}, published {one['published']['still'][k]}"
                      for k, its in one["spectrogram"].items())
    return [*lines, "", f"Adversaries of the spectrogram in Figure 3 of Hoedt et al., both directions: {still}. In the papers "
            "less than half are found for k = 1; they print no other numbers."]


def _fidelity(one: Found) -> list[str]:
    rows = []
    for cell in one["cells"]:
        head = "all" if cell["signal"] == "all" else cell_name(cell["signal"], cell["direction"])
        apart = cell["auc"]
        rows.append([head, *(f"{_spread(cell[side])}" for side in ("hit", "miss")), "–" if apart is None else
                     f"{apart['value']:.2f} [{apart['low']:.2f}, {apart['high']:.2f}]",
                     "–" if apart is None else str(apart["sources"])])
    return ["## Figure 4: fidelity of right and wrong explanations, k = 1", "",
            "R² of LIME’s local model where the best segment is the changed one, and where it is not: median, range, n. The "
            "area is the chance that a right explanation has the larger R² (½: a coin); its interval is as wide as the songs "
            "differ.", "", *table(["", "right", "wrong", "area", "songs"], rows), "",
            "The papers print no numbers: on average right ones are slightly higher, and the ranges overlap strongly."]


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "– n 0"
    low, *_, high = sorted(values) if len(values) > 1 else (values[0], values[0])
    middle = sorted(values)[len(values) // 2]
    return f"{middle:.2f} ({low:.2f} to {high:.2f}) n {len(values)}"


def _drawings(one: Found) -> list[str]:
    rows = [[made["song"], made["shape"], str(made["tries"]), f"{made['prediction_before']:.2f} → {made['prediction']:.2f}",
             _number(made["fidelity"], 2), f"{made['hits']} of {one['top']}", str(made["hits_before"]),
             f"{made['expected']:.1f}", str(len(made["touched"]))] for made in one["made"]]
    whole = [[f"LIME’s best {one['top']} that hold some of the drawing", _cell(one["found"])],
             [f"its best {one['top']} of the same excerpts before they were drawn on", _cell(one["before"])],
             ["as many random segments, expected", _cell(one["expected"])],
             [f"share of the drawn cells in LIME’s best {one['top']}", _cell(one["covered"])],
             ["fidelity, median and range", _middle(one["fidelity"])], ["fidelity of adversaries", _middle(one["adversaries"])]]
    return ["## Figure 1: shapes drawn onto “no sing”", "",
            f"{one['turned']} of {one['tried']} times the answer could be turned to “sing” by drawing"
            + (f"; {one['sung']} times it was “sing” before, and nothing was drawn." if one["sung"] else "."), "",
            *table(["", ""], whole), "",
            *table(["song", "shape", "tries", "p(sing)", "fidelity", "best 3 on it", "before", "by chance", "segments touched"],
                   rows)]


def _contents(one: Found) -> list[str]:
    rows = [[fill, _cell(its["flip"]), _cell(its["area"]), _cell(its["shared"]), _middle(its["fidelity"])]
            for fill, its in one["fills"].items()]
    return ["## § 4.4: what hidden segments hold", "", f"The same {one['excerpts']} excerpts explained with each.", "",
            *table(["hidden", f"flips, k = {one['k']}", "flips, mean of k = 1 … 19", f"best {one['k']} shared with mean",
                    "fidelity"], rows), "", "The papers give no numbers: results appeared similar."]


def _settling(one: Found) -> list[str]:
    if not one["excerpts"]:
        return ["## § 4.4: how many samples are enough", "", "Nothing is known yet."]
    rows = [[f"{size:,}", *(f"{one['mean'][what][i]:.2f}" for what in ("top", "order", "spread"))]
            for i, size in enumerate(one["sizes"])]
    enough = f"{one['enough']:,}" if one["enough"] else f"more than {one['sizes'][-1]:,}"
    return ["## § 4.4: how many samples are enough", "",
            f"Independent explanations of one excerpt, mean over {one['excerpts']} excerpts: the share of their best three "
            "segments that two have in common, the rank correlation of their weights, and how far a weight varies, relative to "
            "how far weights differ among themselves.", "",
            *table(["samples", "best three in common", "rank correlation", "spread"], rows), "",
            f"At least {100 * one['agreed']:.0f} % in common: from {enough} samples on. The papers took {one['published']:,}."]


def _tuning(one: Found) -> list[str]:
    lines = ["## § 4.3 and Table 5: settings of the attack", ""]
    for signal, words in SIGNALS.items():
        its = one["signals"][signal]
        theirs = ", ".join(f"{SYMBOLS[name]} {its['published'][name]:g}" for name in SYMBOLS)
        if not its["rows"]:
            lines += [f"No grid was tried for the {words} (--tune, or the experiment tuning, does); published: {theirs}.", ""]
            continue
        rows = [[*(f"{row[name]:g}" for name in SYMBOLS), f"{100 * row['share']:.1f}", _number(row["signal_to_noise"], 1),
                 "most" if row == its["best"] else ""] for row in sorted(its["rows"], key=lambda row: -row["share"])]
        lines += [f"### {words}", "", *table([*SYMBOLS.values(), "frames turned", "signal to noise", ""], rows), "",
                  f"{its['songs']} validation song{'' if its['songs'] == 1 else 's'}, {one['iterations']} steps. Published: "
                  f"{theirs}.", ""]
    return [*lines, "A larger ε leaves more room: what turns the most frames is mostly the loudest setting that was tried."]


SECTIONS: dict[str, Callable[[Found], list[str]]] = {
    "detector": _detector, "attack": _attack, "flips": _flips, "positive": _positive, "recovery": _recovery,
    "fidelity": _fidelity, "drawings": _drawings, "contents": _contents, "settling": _settling, "tuning": _tuning}
