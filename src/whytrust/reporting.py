"""What a run has found, to print, to show and to compute with: what runs of every kind have in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from whytrust.report import trust as form
from whytrust.report.page import save_by_suffix
from whytrust.report.records import understood
from whytrust.store import Store


class Reported(ABC):
    """A run's findings; kinds of runs say how they are found, and how they are shown."""

    page = "report.html"
    """What a page is called where nobody says."""

    def __init__(self, store: Store) -> None:
        """From a run's store; the records are read when first asked for."""
        self.store = store

    @property
    @abstractmethod
    def findings(self) -> dict[str, Any]:
        """Every number, as plain data."""

    def to_json(self) -> dict[str, Any]:
        """The same."""
        return self.findings

    def verdicts(self) -> list[str]:
        """What may be said, in plain words."""
        return list(self.findings["answer"])

    def table(self) -> list[dict[str, Any]]:
        """The first table, a dict a row."""
        if not self.findings["tables"]:
            return []
        first = self.findings["tables"][0]
        return [dict(zip(first["columns"], row, strict=True)) for row in first["rows"]]

    def as_html(self) -> str:
        """One page that holds all it shows."""
        with understood(self.store.folder):
            return form.document(self.findings)

    def save_html(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write that page."""
        file = Path(self.page if path is None else path)
        if not file.parent.is_dir():
            raise FileNotFoundError(f"the folder {file.parent} must exist before {file.name} can be written into it")
        file.write_text(self.as_html(), encoding="utf-8", newline="\n")
        return file

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write report.html (the page) or report.json (every number), by the file's ending."""
        return save_by_suffix(path, self.save_html, self.to_json)

    def __str__(self) -> str:
        """The answer and its tables, in plain text."""
        with understood(self.store.folder):
            return form.told(self.findings)
