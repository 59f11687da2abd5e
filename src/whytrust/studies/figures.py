"""Figures of a paper that is done again, onto disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from whytrust.pictures import lettering

Figures = Iterable[tuple[str, str, Any]]
"""(experiment, file name, matplotlib figure), made one after the other."""


def write(figures: Figures, folder: Path, experiment: str = "all") -> list[Path]:
    """The figures that an experiment has, as PNG files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for of, name, figure in figures:
        if experiment in ("all", of):
            written.append(folder / f"{name}.png")
            figure.savefig(written[-1], dpi=lettering.DPI, facecolor="white")
    return written
