"""The tables of docs/reproduce-metrics.md: `python docs/make_metrics.py runs/mnist runs/photos runs/digits runs/metrics-trial`.

The first three are of `whytrust reproduce metrics`, on MNIST, photographs and scikit-learn's digits; the last is of `whytrust
metrics`. Figures of numbers are copied; pictures are of scikit-learn's digits alone, for the others are other people's.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

from make_lime import rows
from make_tables import rewrite, small

from whytrust.judging import Tried
from whytrust.studies import pitfalls_figures, pitfalls_run

PAGE = Path(__file__).parent / "reproduce-metrics.md"
FIGURES = {"mnist": ("metrics-fig4", "metrics-fig6"), "photos": ("metrics-fig4", "metrics-fig6"),
           "digits": ("metrics-fig3", "metrics-boxes", "metrics-fig1", "metrics-fig4", "metrics-fig5", "metrics-fig6",
                      "metrics-twins-deep-grad_cam")}
ABOUT = {"metrics-fig1": "accuracy and score while pixels are hidden, Grad-CAM and random (Figure 1)",
         "metrics-fig3": "weight times pixel before and after the manipulation (Figure 3)",
         "metrics-boxes": "digits with their boxes (appendix, Figure 6)",
         "metrics-fig4": "pixel flipping with two baselines (Figure 4)", "metrics-fig5": "three maskings (Figure 5)",
         "metrics-fig6": "random masking among the pixels that Grad-CAM ranks first (Figure 6)",
         "metrics-twins-deep-grad_cam": "Grad-CAM, untrained and trained (Figure 2)"}


SHORT = {"falls further than random": "falls further", "like the trained net's": "like the trained",
         "like the same untrained net's on raw images": "like the untrained", "more like the latter": "more like the latter",
         "lowest difference of the score (of whole images')": "lowest difference", "where, as n / N": "at n / N",
         "mean Dice, furthest from n / N": "Dice off n / N by", "most important hidden": "first hidden"}


def heading(words: str) -> str:
    """A column's heading in few letters."""
    for long, short in (("score left, ", "left "), ("accuracy, ", "right "), (" hidden", "")):
        words = words.replace(long, short)
    return SHORT.get(words, words)


def told(kind: str, folder: Path) -> str:
    """Sentences, tables and figures of one run."""
    stores = pitfalls_run.opened(folder)
    found = pitfalls_run.findings(stores)
    pitfalls_figures.draw(stores, folder / "figures", "all")
    pieces = ["\n".join(_wrapped(f"- {one}") for one in found["answer"])]
    for table in found["tables"]:
        cells = [[str(cell).replace(" to ", "–") for cell in row] for row in table["rows"]]
        pieces.append(f"#### {table['title']}\n\n{rows([[heading(one) for one in table['columns']], *cells])}")
        if table["about"]:
            pieces.append(_wrapped(table["about"]))
    for name in FIGURES[kind]:
        drawn = folder / "figures" / f"{name}.png"
        if drawn.is_file():
            place = f"{name}-{kind}.png"
            small(drawn, PAGE.parent / "pictures" / place)
            pieces.append(f"![{kind}: {ABOUT[name]}](pictures/{place})")
    return "\n\n".join(pieces)


SIGNS = {"passed": "+", "failed": "✗", "undecided": "?"}


def tried(folder: str) -> str:
    """What the lie detector says: the answers, and a table a domain."""
    found = Tried.open(folder).findings
    pieces = ["\n".join(_wrapped(f"- {one}") for one in found["answer"]),
              _wrapped("A + is passed, ✗ failed and ? undecided, with the number of labs of which that is true; a dash is a "
                       "test that the metric cannot be put to.")]
    for one in found["matrices"]:
        lines = [["metric", "may crown", *one["tests"]]]
        lines += [[row["metric"], "yes" if row["admitted"] else "no", *map(_sign, row["cells"])] for row in one["rows"]]
        pieces.append(f"#### {one['title']}\n\n{rows(lines)}")
    return "\n\n".join(pieces)


def _sign(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "–"
    sign = SIGNS[cell["outcome"]]
    return sign if cell["outcome"] == "passed" else f"{sign} {cell['labs']}/{cell['of']}"


def _wrapped(words: str) -> str:
    return textwrap.fill(words, 126, subsequent_indent="  " if words.startswith("- ") else "", break_long_words=False,
                         break_on_hyphens=False)


if __name__ == "__main__":
    kinds = {"mnist": "MNIST", "photos": "Photographs", "digits": "scikit-learn's digits"}
    parts = [f"### {title}\n\n{told(kind, Path(folder))}"
             for (kind, title), folder in zip(kinds.items(), sys.argv[1:4], strict=True)]
    rewrite(PAGE, "\n\n".join([*parts, f"### The metrics in the lie detector\n\n{tried(sys.argv[4])}"]) + "\n")
