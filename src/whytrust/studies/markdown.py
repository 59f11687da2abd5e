"""Findings of an experiment as Markdown: what a reproduction writes beside its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def told(found: Mapping[str, Any], pictures: Sequence[str] = ()) -> str:
    """Question, answers, pictures, tables, notes and what failed."""
    return "\n".join(_lines(found, pictures)) + "\n"


def _lines(found: Mapping[str, Any], pictures: Sequence[str]) -> Iterator[str]:
    cases = found["cases"]
    yield from (f"# {found['paper']}", "", f"**{found['question']}**", "")
    yield f"{cases['done']:,} of {cases['of']:,} cases are done, {cases['failed']:,} failed."
    yield from ("", *(f"- {one}" for one in found["answer"]), "")
    yield from (line for path in pictures for line in (f"![]({path})", ""))
    for table in found["tables"]:
        yield from (f"## {table['title']}", "", f"| {' | '.join(table['columns'])} |", "|" + "---|" * len(table["columns"]))
        yield from (f"| {' | '.join(cell(value) for value in row)} |" for row in table["rows"])
        yield from ("", *([table["about"], ""] if table["about"] else []))
    yield from ("## Notes", "", *(f"- {one}" for one in found["notes"]))
    yield from (f"- failed: {one['case']}: {one['error']}" for one in found["failures"])


def cell(value: Any) -> str:
    """A rate with its interval and its number of cases, or whatever else stands there."""
    if isinstance(value, Mapping):
        if value["value"] is None:
            return "–"
        return f"{100 * value['value']:.1f} % ({100 * value['low']:.1f} to {100 * value['high']:.1f}, n = {value['n']})"
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
