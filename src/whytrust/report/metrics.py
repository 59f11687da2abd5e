"""The section on metrics: what they say of each explainer, which were admitted to the verdict, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whytrust.pictures.html import Markup, tag
from whytrust.report.words import Findings, known, percent, section, table


def metrics(findings: Findings) -> Markup | None:
    """Every metric of the audit: whether it may crown a winner, why, and how often each explanation is before random."""
    given = findings.get("metrics") or []
    if not given:
        return None
    measures: Mapping[str, Any] = findings.get("measures") or {}
    names = [one["name"] for one in findings.get("contenders") or [] if one.get("role") == "explainer"]
    rows = [[str(one.get("metric")), "yes" if one.get("admitted") else "no",
             *(_cell(measures.get(str(one.get("metric"))), name) for name in names), str(one.get("why") or "")]
            for one in given]
    about = tag("p", "Each metric was first tried where the truth is known. One that failed there, or was not shown to "
                "find the truth, has no say in the verdicts above: it may not crown a winner. Shares: on how many comparisons "
                "with random scores the metric prefers the explanation (95% range); half is what random scores have. A dash: "
                "the metric cannot judge what those scores mean, or not in their unit.", class_="aside")
    return section("metrics", "Which metrics were admitted, and why", about,
                   table(["Metric", "May crown a winner", *names, "Why"], rows, "Metrics"))


def _cell(measure: Mapping[str, Any] | None, name: str) -> str:
    rate = ((measure or {}).get("rates") or {}).get(name)
    if not rate or known(rate.get("value")) is None:
        return "–"
    return f"{percent(rate['value'])} ({percent(rate['low'])}–{percent(rate['high'])})"
