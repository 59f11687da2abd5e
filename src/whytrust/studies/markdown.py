"""Findings of an experiment as Markdown: what a reproduction writes beside its figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from whytrust.legible import in_line

_ACTIVE = re.compile(r"<(?=[A-Za-z/!?])|(?<=\])[(:]|:(?=//)|(?i:(?<=www)\.)")
"""What begins an element of HTML, or the address of a link or a picture, and what makes a link of an address by itself."""

_PIPE = re.compile(r"\\*\|")
"""A backslash before a pipe would take the one away that keeps it inside its cell."""


def told(found: Mapping[str, Any], pictures: Sequence[str] = ()) -> str:
    """Question, answers, pictures, tables, notes and what failed."""
    return "\n".join(_lines(found, pictures)) + "\n"


def _lines(found: Mapping[str, Any], pictures: Sequence[str]) -> Iterator[str]:
    cases = found["cases"]
    yield from (f"# {found['paper']}", "", f"**{inert(found['question'])}**", "")
    yield f"{cases['done']:,} of {cases['of']:,} cases are done, {cases['failed']:,} failed."
    yield from ("", *(f"- {inert(one)}" for one in found["answer"]), "")
    yield from (line for path in pictures for line in (f"![]({path})", ""))
    for one in found["tables"]:
        yield from (f"## {inert(one['title'])}", "")
        yield from table(one["columns"], [[cell(value) for value in row] for row in one["rows"]])
        yield from ("", *([inert(one["about"]), ""] if one["about"] else []))
    yield from ("## Notes", "", *(f"- {inert(one)}" for one in found["notes"]))
    yield from (f"- failed: {inert(one['case'])}: {inert(one['error'])}" for one in found["failures"])


def inert(text: str) -> str:
    """Words as one line of Markdown that is shown and makes no element, no link and no picture."""
    return _ACTIVE.sub(lambda found: "&lt;" if found[0] == "<" else f"&#{ord(found[0])};", in_line(str(text)))


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table; a cell stays one, whatever is in it."""
    return ["| " + " | ".join(_PIPE.sub(_kept, inert(cell)) for cell in line) + " |" for line in
            (header, ["---"] * len(header), *rows)]


def _kept(pipe: re.Match[str]) -> str:
    return "&#92;" * (len(pipe[0]) - 1) + "\\|"


def cell(value: Any) -> str:
    """A rate with its interval and its number of cases, or whatever else stands there."""
    if isinstance(value, Mapping):
        if value["value"] is None:
            return "–"
        return f"{100 * value['value']:.1f} % ({100 * value['low']:.1f} to {100 * value['high']:.1f}, n = {value['n']})"
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
