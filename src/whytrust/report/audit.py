"""A finished (or growing) run as an object: its verdicts, tables, page and gates. It reads the store and nothing else."""

from __future__ import annotations

import math
import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import legible
from whytrust.report import page
from whytrust.report.findings import findings
from whytrust.report.records import understood
from whytrust.report.shown import Shown, shown
from whytrust.store import Store

GALLERY = 12
"""Cases that a page shows."""


class Audit:
    """What an audit found: `print(audit)` says it in words, `save_html` shows it, `to_json` has every number."""

    def __init__(self, store: Store) -> None:
        """From a run's store; the records are read when first asked for."""
        self.store = store

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Audit:
        """The audit in a run folder."""
        return cls(Store.open(Path(folder)))

    @cached_property
    def findings(self) -> dict[str, Any]:
        """Every number, as plain data."""
        with understood(self.store.folder):
            return findings(self.store)

    def to_json(self) -> dict[str, Any]:
        """Every number, as plain data: rates with intervals, comparisons, verdicts, curves, settings."""
        return self.findings

    def verdicts(self) -> dict[str, str]:
        """What is said of each explainer, best first."""
        return {row["name"]: row["words"] for row in self.findings["verdicts"]}

    def table(self) -> list[dict[str, Any]]:
        """One row of plain data a contender: its verdict, and its rates with intervals."""
        said = {row["name"]: row for row in self.findings["verdicts"]}
        rows = []
        for contender in self.findings["contenders"]:
            name = contender["name"]
            row: dict[str, Any] = {"name": name, "role": contender["role"], "verdict": said.get(name, {}).get("words")}
            for measure, found in self.findings["measures"].items():
                rate = found["rates"].get(name)
                label, _, of = measure.partition(":")  # all_positive has a rival of its own for each explainer
                if rate is not None and of in ("", name):
                    row |= {label: rate["value"], f"{label}_low": rate["low"], f"{label}_high": rate["high"],
                            f"{label}_n": rate["n"]}
            row["normalised"] = self.findings["measures"].get("flip", {"normalised": {}})["normalised"].get(name)
            rows.append(row)
        return rows

    def gallery(self, most: int = GALLERY) -> list[Shown]:
        """Some cases with their pictures, evenly spread over the run."""
        tried = [record["case"] for record in self.store.records(only=()) if record["status"] == "ok"]
        places = np.linspace(0, max(len(tried) - 1, 0), min(most, len(tried))).round().astype(int)
        found = []
        for i in sorted(set(places.tolist())):
            arrays = self.store.arrays(tried[i])
            if {"clean", "adversarial"} <= set(arrays):
                found.append(shown(self.store.record(tried[i]), arrays))
        return found

    def save_html(self, path: str | os.PathLike[str] = "audit.html") -> Path:
        """Write one page that holds all it shows."""
        found = self.findings
        with understood(self.store.folder):
            return page.save(Path(path), found, self.gallery())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write audit.html (the page) or audit.json (every number), by the file's ending."""
        return page.save_by_suffix(path, self.save_html, self.to_json)

    def __repr__(self) -> str:
        """One line."""
        counts = self.findings["counts"]
        return f"<audit of {self.findings['model']['name']}: {counts['adversaries']} adversaries of {counts['inputs']} inputs>"

    def __str__(self) -> str:
        """The verdicts as a table in plain text, and what a reader must know before believing it."""
        found = self.findings
        counts, measures = found["counts"], found["measures"]
        shown = {"flip": "flips, all k", "flip@3": "flips, k = 3", "recovery": "recovered"}
        columns = {heading: measures[name]["rates"] for name, heading in shown.items() if name in measures}
        said = {row["name"]: row["words"] for row in found["verdicts"]}
        names = [contender["name"] for contender in found["contenders"]]
        wide = legible.width(names) + 2
        lines = [f"{found['title']} {counts['adversaries']} of {counts['inputs']} inputs were fooled"
                 + (f", {counts['failed']} failed" if counts["failed"] else "")
                 + ".",
                 f"  {'':{wide}}{''.join(f'{heading:<24}' for heading in columns)}verdict"]
        lines += [f"  {name:{wide}}{''.join(f'{_told(rates.get(name)):<24}' for rates in columns.values())}"
                  f"{said.get(name, 'baseline')}" for name in names]
        attack = found["attack"]
        if attack["accuracy_before"] is not None:
            lines.append(f"  The model was right on {attack['accuracy_before']:.0%} of the inputs before the attack, on "
                         f"{attack['accuracy_after']:.0%} after it.")
        lines += [f"  {note}" for note in found["notes"]]
        if found["strengths"]["words"]:
            lines.append(f"  {found['strengths']['words']}")
        for name, failed in found["explainer_failures"].items():
            lines.append(f"  {name} failed on {failed['count']} inputs; the first: {failed['first']}")
        if counts["failed"]:
            lines.append(f"  the first failed input, {found['failures'][0]['name']}: {found['failures'][0]['error']}")
        return legible.lines(lines + [f"  {problem}" for problem in found["problems"]])


def _told(rate: dict[str, Any] | None) -> str:
    if rate is None or rate["value"] is None or math.isnan(rate["value"]):
        return "–"
    return f"{rate['value']:.3f} ({rate['low']:.3f}–{rate['high']:.3f})"
