"""The papers that can be done again, and which of them a run's folder is of."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from whytrust.report.records import understood
from whytrust.store import Store
from whytrust.studies import fragile_run, lime_run, pitfalls_run, reproduce, veracity_run

Report = Callable[[Path, bool, str], str]
"""(folder, as JSON?, experiment) -> what a run has found so far beside what was published."""
REPORTS: dict[str, Report] = {"plausible": reproduce.report, "veracity": veracity_run.report}


def report_of(folder: str | Path) -> Report | None:
    """How the run in a folder is reported on, finished or not; None where it is no reproduction of a paper."""
    with understood(folder):
        found = _report_of(folder)
    return None if found is None else partial(_reported, found)


def _reported(report: Report, folder: Path, as_json: bool, experiment: str) -> str:
    with understood(folder):
        return report(folder, as_json, experiment)


def _report_of(folder: str | Path) -> Report | None:
    if lime_run.is_reproduction(folder):
        return lime_run.report
    if fragile_run.is_reproduction(folder):
        return fragile_run.report
    if pitfalls_run.is_reproduction(folder):
        return pitfalls_run.report
    if not (Path(folder) / "manifest.json").is_file():
        return None
    return REPORTS.get(str(Store.open(folder).manifest.get("study")))
