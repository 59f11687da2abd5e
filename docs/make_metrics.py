"""The tables of docs/reproduce-metrics.md from runs: `python docs/make_metrics.py runs/mnist runs/photos runs/metrics-trial`.

The first two are of `whytrust reproduce metrics`, on digits and on photographs; the third is of `whytrust metrics`. Figures of
digits and of numbers alone are copied; photographs are not.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

from make_lime import rows
from make_tables import rewrite, small

from whytrust.judging import Tried
from whytrust.studies import pitfalls_run

PAGE = Path(__file__).parent / "reproduce-metrics.md"
FIGURES = {"digits": ("metrics-fig3", "metrics-boxes", "metrics-fig4", "metrics-fig5", "metrics-fig6",
                      "metrics-twins-deep-grad_cam"),
           "photos": ("metrics-fig1", "metrics-fig4", "metrics-fig6")}
ABOUT = {"metrics-fig1": "accuracy and score while pixels are hidden, Grad-CAM and random (Figure 1)",
         "metrics-fig3": "weight times pixel before and after the manipulation (Figure 3)",
         "metrics-boxes": "digits with their boxes (appendix, Figure 6)",
         "metrics-fig4": "pixel flipping with two baselines (Figure 4)", "metrics-fig5": "three maskings (Figure 5)",
         "metrics-fig6": "random masking among the pixels that Grad-CAM ranks first (Figure 6)",
         "metrics-twins-deep-grad_cam": "Grad-CAM of an untrained net on raw and enhanced digits, and of the trained one "
         "(Figure 2)"}


def told(found: dict[str, Any], kind: str, folder: Path) -> str:
    """Sentences, tables and figures of one run."""
    pieces = ["\n".join(_wrapped(f"- {one}") for one in found["answer"])]
    for table in found["tables"]:
        title = table["title"]
        pieces.append(f"#### {title}\n\n{rows([table['columns'], *[[str(cell) for cell in row] for row in table['rows']]])}")
        if table["about"]:
            pieces.append(_wrapped(table["about"]))
    for name in FIGURES[kind]:
        drawn = folder / "figures" / f"{name}.png"
        if drawn.is_file():
            place = f"{name}-{kind}.png"
            small(drawn, PAGE.parent / "pictures" / place)
            pieces.append(f"![{kind}: {ABOUT[name]}](pictures/{place})")
    return "\n\n".join(pieces)


def tried(folder: str) -> str:
    """What the lie detector says: the answers, and a table a domain."""
    found = Tried.open(folder).findings
    pieces = ["\n".join(_wrapped(f"- {one}") for one in found["answer"])]
    pieces += [f"#### {table['title']}\n\n{rows([table['columns'], *table['rows']])}" for table in found["tables"]
               if "which metrics pass" in table["title"]]
    return "\n\n".join(pieces)


def _wrapped(words: str) -> str:
    return textwrap.fill(words, 126, subsequent_indent="  " if words.startswith("- ") else "", break_long_words=False,
                         break_on_hyphens=False)


if __name__ == "__main__":
    parts = [f"### {title}\n\n{told(pitfalls_run.findings(pitfalls_run.opened(folder)), kind, Path(folder))}"
             for title, kind, folder in (("MNIST", "digits", sys.argv[1]), ("Photographs", "photos", sys.argv[2]))]
    rewrite(PAGE, "\n\n".join([*parts, f"### The metrics in the lie detector\n\n{tried(sys.argv[3])}"]) + "\n")
