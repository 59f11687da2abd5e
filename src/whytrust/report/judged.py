"""The metrics on trial as a page: who may be believed, which tests each passed, and what each failure was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from whytrust.pictures.html import Markup, tag
from whytrust.report import trust as form
from whytrust.report.words import Findings, section, table

TITLE = "Which metrics of explanations may be believed?"
HINT = "Inputs of models whose reasons are known. A metric that failed nothing has not been caught, and no more."
STYLE = """
.whytrust .matrix td, .whytrust .matrix th { text-align: center; padding: .3em .45em; vertical-align: middle; }
.whytrust .matrix th:first-child, .whytrust .matrix td:first-child { text-align: start; }
.whytrust .matrix .passed { background: #e7f0f9; color: #0b4f8a; }
.whytrust .matrix .failed { background: #fbe9dc; color: #8a3b00; font-weight: 600; }
.whytrust .matrix .undecided { background: #f0f1f3; color: #57606a; }
.whytrust .matrix .unasked { color: #8c959f; }
.whytrust .matrix .labs { display: block; font-size: .78em; font-weight: 400; }
.whytrust .legend span { padding: .05em .5em; margin-inline-end: .4em; }
"""
SIGNS = {"passed": "+", "failed": "✗", "undecided": "?"}


def document(found: Findings) -> str:
    """A whole page that needs nothing else."""
    sections = [form.header(TITLE, found, "input", HINT), form.answer(found), _tests(found),
                *(_matrix(one) for one in found.get("matrices") or []), *_details(found),
                *form.remarks(found)]
    return form.whole(TITLE, sections, STYLE)


def _tests(found: Findings) -> Markup:
    items = [tag("li", tag("b", name), ": ", what) for name, what in (found.get("asked") or {}).items()]
    legend = tag("p", tag("span", "+ passed", class_="passed"), tag("span", "✗ failed", class_="failed"),
                 tag("span", "? undecided", class_="undecided"), "– cannot be put to this test. Below a sign: in how many of "
                 "the labs of the domain that were asked.", class_="matrix legend")
    return section("tests", "What a metric must pass", tag("ul", *items), legend)


def _matrix(one: Mapping[str, Any]) -> Markup:
    """A domain: a row a metric, a cell a test."""
    heads = [tag("th", head, scope="col") for head in ("metric", "may crown a winner", *one["tests"])]
    rows = [tag("tr", tag("th", row["metric"], scope="row"), _may(row["admitted"]), *(_cell(cell) for cell in row["cells"]))
            for row in one["rows"]]
    whole = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *rows), class_="matrix")
    return section(f"domain-{one['domain']}", one["title"], tag("div", whole, class_="box", tabindex=0, role="region",
                                                                 aria_label=one["title"]), _whys(one["rows"]))


def _details(found: Findings) -> list[Markup]:
    """Tables of words: what each failure was, what the metrics and the labs are."""
    return [section(f"details-{i}", one["title"], tag("p", one["about"], class_="hint") if one["about"] else None,
                    table(one["columns"], one["rows"], one["title"]))
            for i, one in enumerate(found.get("details") or [], 1)]


def _may(admitted: bool) -> Markup:
    return tag("td", "yes" if admitted else "no", class_="passed" if admitted else "failed")


def _cell(cell: Mapping[str, Any] | None) -> Markup:
    if cell is None:
        return tag("td", "–", class_="unasked")
    some = cell["outcome"] != "passed" and cell["of"] > 1
    labs = tag("span", f"{cell['labs']} of {cell['of']}", class_="labs") if some else None
    return tag("td", tag("span", SIGNS[cell["outcome"]], title=cell["words"]), labs, class_=cell["outcome"])


def _whys(rows: Sequence[Mapping[str, Any]]) -> Markup:
    """Why each metric may not, or may."""
    listed = [[row["metric"], row["why"]] for row in rows]
    return tag("details", tag("summary", "Why"), table(["metric", "why"], listed, "Why a metric may crown a winner, or not"))
