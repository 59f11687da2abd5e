"""The tables of docs/reproduce-fragile.md from runs and their figures: `python docs/make_fragile.py runs/fragile`.

They are the runs' own `tables.md` made narrow. Violins are copied, which show numbers alone; sentences are not, for they are
other people's texts.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from make_lime import rows
from make_tables import rewrite, small

from whytrust.studies import fragile_published as published
from whytrust.studies import fragile_run
from whytrust.studies.fragile_figures import TENTHS
from whytrust.studies.fragile_findings import number
from whytrust.studies.fragile_tables import OBJECTIVES, WHOLE
from whytrust.studies.fragile_told import CHOSEN, EXPLAINERS
from whytrust.studies.fragile_twins import reach

PAGE = Path(__file__).parent / "reproduce-fragile.md"
MEASURES = {"rank": "rank correlation, clipped at 0", "top": "top-50 % overlap"}
Found = dict[str, Any]


def cell(one: Found | None) -> str:
    """Mean ± standard deviation, and the interval of the mean."""
    if one is None:
        return "–"
    spread = "" if one["sd"] is None else f" ± {number(one['sd'])}"
    return f"{number(one['mean'])}{spread} ({number(one['low'])}–{number(one['high'])})"


def test(one: Found | None) -> str:
    """A difference with its interval; a star where it is called one."""
    if one is None:
        return "–"
    star = "\\*" if one["p"] <= 0.05 else ""
    return f"{number(one['value'], True)} ({number(one['low'], True)} to {number(one['high'], True)}){star}"


def agreement(some: list[Found], measure: str) -> str:
    """One of Tables 1 to 4 and 8 to 13."""
    table = published.table_of(some[0]["dataset"], some[0]["explainer"], measure)
    models = published.MODELS if table is not None else ()
    lines = [["words", "by", *(one["model"] for one in some), *models]]
    for span in range(WHOLE + 1):
        for name in (*OBJECTIVES, "random"):
            theirs = [number(table.value(model, name, span)) if table is not None and span < WHOLE else "" for model in models]
            lines.append([(*TENTHS, "all")[span], CHOSEN[name], *(cell(one["cells"][measure][name][span]) for one in some),
                          *theirs])
    odd = "" if table is None or not table.oddity else "\n\n" + textwrap.fill(table.oddity, 126)
    return rows(lines) + odd


def beside(some: list[Found]) -> str:
    """All shares of words together: below chance, below the explainer's noise, below the model's own answers."""
    lines = [["", "by", "than random swaps", "than the same text again", "than the model itself"]]
    for one in some:
        for name in OBJECTIVES:
            below = one["below"]["rank"]
            lines.append([one["model"], CHOSEN[name], test(below["chance"][name][WHOLE]),
                          "draws nothing" if one["deterministic"] else test(below["noise"][name][WHOLE]),
                          test(one["below_model"][name][WHOLE])])
    return rows(lines)


def sections(found: Found, figures: Path) -> Iterator[str]:
    """Everything between the two marks."""
    groups: dict[tuple[str, str], list[Found]] = {}
    for one in found["runs"].values():
        groups.setdefault((one["dataset"], one["explainer"]), []).append(one)
    yield "\n".join(textwrap.fill(one, 126, initial_indent="- ", subsequent_indent="  ") for one in found["answer"])
    for (dataset, explainer), some in groups.items():
        where = f"{published.TITLES.get(dataset, dataset)}, {EXPLAINERS[explainer]}"
        yield f"### {where}: how much less explanations agree than …\n\n{beside(some)}"
        for measure, called in MEASURES.items():
            table = published.table_of(dataset, explainer, measure)
            head = "not in the paper" if table is None else f"Table {table.number}"
            yield f"### {where}: {called} ({head})\n\n{agreement(some, measure)}"
        drawn = figures / f"fragile-violins-{dataset}-{explainer}.png"
        small(drawn, PAGE.parent / "pictures" / drawn.name)
        yield f"![{where}: rank correlations](pictures/{drawn.name})"
    if found["twins"]:
        yield f"### Does the more robust model have more robust explanations?\n\n{twins(found['twins'])}"
    judged = [one for one in found["runs"].values() if one["quality"]]
    if judged:
        yield f"### Perplexity, mean; median (Table 5)\n\n{quality(judged, 'perplexity', published.PERPLEXITY)}"
        yield f"### Grammar errors more or fewer, mean (Table 7)\n\n{quality(judged, 'error_difference', published.GRAMMAR)}"
    yield f"### The score of the label by words swapped, texts with four swaps (Table 6)\n\n{confidence(found)}"


def twins(pairs: list[Found]) -> str:
    """A model and its adversarially trained twin: rank correlations, and how far they differ."""
    lines = [["", "by", "texts", "plain", "twin", "twin − plain", "… above chance"]]
    for one in pairs:
        where = f"{published.TITLES.get(one['dataset'], one['dataset'])}, {EXPLAINERS[one['explainer']]}"
        lines += [[where, CHOSEN[row["objective"]], str(row["texts"]), number(row["plain"]["value"]),
                   number(row["twin"]["value"]), reach(row["difference"]), reach(row["above_chance"])] for row in one["rows"]]
    return rows(lines)


def called(one: Found) -> str:
    """A run in few letters."""
    return f"{published.TITLES.get(one['dataset'], one['dataset'])}, {EXPLAINERS[one['explainer']]}, {one['model']}"


def quality(judged: list[Found], what: str, theirs: dict[str, dict[str, tuple[float, ...]]]) -> str:
    """Table 5 or 7."""
    lines = [["", "originals", "all candidates", "ΔLOM", "L2", "random"]]
    for one in judged:
        values = [one["quality"][what][name] for name in ("original", "candidates", "lom", "l2", "random")]
        shown = [() if v is None else (v["mean"], v["median"]) if what == "perplexity" else (v["mean"],) for v in values]
        lines.append([called(one), *("; ".join(f"{number:,.3g}" if number < 100 else f"{number:,.0f}" for number in pair)
                                     for pair in shown)])
    for dataset in dict.fromkeys(one["dataset"] for one in judged):
        original = published.ORIGINAL_PERPLEXITY.get(dataset) if what == "perplexity" else None
        lines += [[f"{published.TITLES[dataset]}, {model}, published", "" if original is None else f"{original:g}",
                   *(f"{value:g}" for value in values), ""] for model, values in theirs.get(dataset, {}).items()]
    return rows(lines)


def confidence(found: Found) -> str:
    """Table 6."""
    lines = [["", "swaps", "0", "1", "2", "3", "4"]]
    for one in found["runs"].values():
        for who, words in (("attack, far", "chosen"), ("random, far", "random")):
            lines.append([called(one), words, *("–" if v is None else number(v["mean"]) for v in one["confidence"][who])])
    for dataset in dict.fromkeys(one["dataset"] for one in found["runs"].values()):
        lines += [[f"{published.TITLES[dataset]}, {model}, published", "chosen", *map(number, values)]
                  for model, values in published.CONFIDENCE.get(dataset, {}).items()]
    return rows(lines)


if __name__ == "__main__":
    place = fragile_run.fragile(fragile_run.Asked(out=sys.argv[1]))
    rewrite(PAGE, "\n\n".join(sections(fragile_run.findings(place), place / "figures")) + "\n")
