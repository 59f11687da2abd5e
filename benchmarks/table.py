"""Results as tables to read, in Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from benchmarks.calls import TARGET_RATIO


def calls_table(results: Sequence[dict[str, Any]]) -> str:
    """A row a domain, peer and number of samples."""
    head = ("case", "peer", "N", "peer's error", "ours at the same calls", "calls we need", "ratio [95 %]", "single inputs",
            f"≤ {TARGET_RATIO}")
    rows = [(f"{row['domain']}, d {result['parts']}", row["peer"], str(row["samples"]), _short(row["error"]),
             _short(row["ours_at_same_calls"]), _calls(row["calls_we_need"]),
             f"**{row['ratio']:.2f}** [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]",
             f"{min(row['ratio_of_each_input']):.2f} – {max(row['ratio_of_each_input']):.2f}",
             "yes" if row["reached"] else "**no**")
            for result in results for row in result["rows"]]
    return _markdown(head, rows)


def speed_table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a job, a column a method."""
    jobs = list(dict.fromkeys(row["job"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    found = {(row["job"], row["method"]): row for row in rows}
    body = [(job, f"{found[job, methods[0]]['seconds']:.3f} s", *(_ratio(found.get((job, m))) for m in methods[1:]))
            for job in jobs]
    return _markdown(("job", *methods), body)


def _ratio(row: dict[str, Any] | None) -> str:
    return "—" if row is None else f"{row['ratio']:.2f} [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]"


def _calls(calls: float) -> str:
    return "more than tried" if math.isinf(calls) else f"{calls:.0f}"


def _short(error: float) -> str:
    return f"{error:.2e}"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in padded)
