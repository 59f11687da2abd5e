"""The tables of docs/reproduce-lime.md from runs and their figures: `python docs/make_lime.py runs`.

`runs` holds some of lime-fig6, lime-fig7, lime-table1 and lime-fig8, as `whytrust reproduce lime` writes them; what is not
there is left out.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import Any

from make_tables import rewrite, small

from whytrust.studies import lime_run
from whytrust.studies.lime_findings import LABELS, PUBLISHED_AS
from whytrust.studies.lime_published import FAITHFUL, TRUST, published
from whytrust.studies.mistrust import EVERYTHING

PAGE = Path(__file__).parent / "reproduce-lime.md"
SHORT = {**LABELS, "authors": "LIME, authors", "authors, empty path": "… an empty path names all", "lime": "LIME, intercept",
         "ceiling": "can be found at all", EVERYTHING: "trust everything"}


def rows(lines: list[list[str]]) -> str:
    """A table of Markdown; the first line is its head."""
    head, *body = (f"| {' | '.join(one)} |" for one in lines)
    return "\n".join([head, "|" + "---|" * len(lines[0]), *body])


def head(key: str) -> list[str]:
    """What is told of one readable model."""
    kind = key.split(" ")[1]
    return [f"{kind.replace('-', ' ')}, here", *(["five trees"] if kind == "tree" else []), "published"]


def faithful(found: dict[str, Any]) -> str:
    """Figures 6 and 7: the authors' split, then all splits."""
    kinds = list(found["cells"])
    lines = [["", *(word for key in kinds for word in head(key))]]
    for row in next(iter(found["cells"].values())):
        cells = []
        for key in kinds:
            one, (name, kind) = found["cells"][key][row], key.split(" ")
            theirs = published(FAITHFUL, name, kind, PUBLISHED_AS.get(row, ""))
            beside = theirs is not None and (row != "authors, empty path" or kind == "tree")
            cells.append(f"{100 * one['value']:.1f} ({100 * one['low']:.1f}–{100 * one['high']:.1f})")
            cells += [f"{100 * one['least']:.1f}–{100 * one['most']:.1f}"] if kind == "tree" else []
            cells.append(f"{theirs:.1f}" if beside else "")
        lines.append([SHORT[row], *cells])
    splits = next((table for table in found["tables"] if table["title"] == "Over splits"), None)
    more = "" if splits is None else "\n\nOver splits:\n\n" + rows([splits["columns"], *splits["rows"]])
    return rows(lines) + more + "\n"


def trust(found: dict[str, Any]) -> str:
    """Table 1, a table a data set, and LIME's differences."""
    pieces = []
    for name in dict.fromkeys(key.split(" ")[0] for key in found["cells"]):
        own = {key.split(" ")[1]: cell for key, cell in found["cells"].items() if key.startswith(f"{name} ")}
        lines = [[name, *(word for kind in own for word in (kind, "published"))]]
        for row in ("random", "parzen", "greedy", "authors", "lime", EVERYTHING):
            cells = []
            for kind, cell in own.items():
                one, theirs = cell["rows"][row], published(TRUST, name, kind, PUBLISHED_AS.get(row, ""))
                cells += [f"{100 * one['value']:.1f} ± {50 * (one['high'] - one['low']):.1f}",
                          "" if theirs is None else f"{theirs:.1f}"]
            lines.append([SHORT[row], *cells])
        lines.append(["the model is right", *(word for cell in own.values() for word in (f"{100 * cell['accuracy']:.1f}", ""))])
        pieces.append(rows(lines))
    tests = next(table for table in found["tables"] if table["title"].startswith("LIME above"))
    pieces.append("LIME above …, in points:\n\n" + rows([tests["columns"], *tests["rows"]]))
    return "\n\n".join(pieces) + "\n"


def cell(one: Any) -> str:
    """A rate in per cent, or what else stands there."""
    if not isinstance(one, dict):
        return str(one)
    return f"{100 * one['value']:.0f} ({100 * one['low']:.0f}–{100 * one['high']:.0f})"


def choice(found: dict[str, Any]) -> str:
    """Figure 8: right choices, differences and the pairs."""
    pieces = []
    for table in found["tables"]:
        columns = [str(column).replace("artefacts named", "named") for column in table["columns"]]
        lines = [columns, *([cell(one) for one in row] for row in table["rows"])]
        pieces.append(f"{table['title']}:\n\n{rows(lines)}")
    return "\n\n".join(pieces) + "\n"


if __name__ == "__main__":
    place = Path(sys.argv[1])
    made = []
    for experiment, title, tell in (("fig6", "Figure 6: books", faithful), ("fig7", "Figure 7: DVDs", faithful),
                                    ("table1", "Table 1", trust), ("fig8", "Figure 8", choice)):
        folder = place / f"lime-{experiment}"
        if not folder.is_dir():
            continue
        lime_run.lime(lime_run.Asked(experiment, out=str(folder)))
        picture = PAGE.parent / "pictures" / f"lime-{experiment}.png"
        small(folder / "figures" / f"lime-{experiment}.png", picture)
        found = lime_run.findings(folder)
        said = found["answer"] if experiment != "fig8" else []
        words = "\n".join(textwrap.fill(one, 126, initial_indent="- ", subsequent_indent="  ") for one in said)
        shown = [f"## {title}", f"![{title}](pictures/{picture.name})", *([words] if words else []), tell(found)]
        made.append("\n\n".join(shown))
    rewrite(PAGE, "\n".join(made))
