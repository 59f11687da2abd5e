"""Figures of a paper that is done again, onto disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whytrust.legible import in_line
from whytrust.pictures import lettering

Figures = Iterable[tuple[str, str, Any]]
"""(experiment, file name, matplotlib figure), made one after the other."""


def write(figures: Figures, folder: Path, experiment: str = "all") -> list[Path]:
    """The figures that an experiment has, as PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for of, name, figure in figures:
        if experiment in ("all", of):
            # A run's own names are part of it, and a run may come from anyone.
            if Path(name).name != name or "\\" in name or name in ("", ".."):
                raise ValueError(f"a figure must be called by a plain name, got {in_line(name)[:80]!r}; the run in "
                                 f"{folder.parent} was changed since it was made")
            written.append(folder / f"{name}.png")
            figure.savefig(written[-1], dpi=lettering.DPI, facecolor="white")
    return written
