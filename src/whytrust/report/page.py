"""The audit as one HTML page that needs nothing else: no network, no other files, and every number without a script."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from whytrust.pictures import html
from whytrust.pictures.html import join, tag
from whytrust.pictures.styles import FRAGMENT, PAGE
from whytrust.report.absences import absences
from whytrust.report.agreement import agreement
from whytrust.report.attack import attack
from whytrust.report.curves import flip_curves
from whytrust.report.directions import directions
from whytrust.report.footnotes import caveats, failures, foot, pairs, repeat
from whytrust.report.gallery import gallery
from whytrust.report.metrics import metrics
from whytrust.report.script import SCRIPT
from whytrust.report.shown import Shown as Shown
from whytrust.report.shown import shown as shown
from whytrust.report.styles import AUDIT
from whytrust.report.trials import fidelity, recovery
from whytrust.report.verdicts import lead, verdict_table
from whytrust.report.words import Findings


def document(findings: Findings, cases: Sequence[Shown] = ()) -> str:
    """A whole page: which explainers find the known cause, and how sure that is.

    What was not measured has no section. It misleads where it is read as a verdict on explainers in general: it is one on this
    model, these inputs and this attack, as the page itself says.
    """
    title = str(findings.get("title") or "Audit of explanations")
    sections = [verdict_table(findings), flip_curves(findings), absences(findings), directions(findings), recovery(findings),
                fidelity(findings), metrics(findings), agreement(findings), attack(findings), gallery(findings, cases),
                pairs(findings), repeat(findings), failures(findings), caveats(findings)]
    main = tag("main", tag("header", tag("h1", tag("bdi", title)), lead(findings)), join(sections), foot(findings),
               class_="whytrust audit", id="main")
    skip = tag("a", "Skip to the verdict", href="#verdicts", class_="skip")
    return html.document(title, PAGE + FRAGMENT + AUDIT, skip, main, code=SCRIPT)


def save_by_suffix(path: str | os.PathLike[str], html: Callable[[Path], Path], plain: Callable[[], Any]) -> Path:
    """Write the page to a file that ends in .html, or every number to one that ends in .json."""
    file = Path(path)
    kind = file.suffix.lower()
    if kind not in (".html", ".json"):
        raise ValueError(f"the file must end in .html or .json, got {file.name!r}")
    if kind == ".html":
        return html(file)
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder {file.parent} must exist before {file.name} can be written into it")
    file.write_text(json.dumps(plain(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n")
    return file


def save(path: str | Path, findings: Findings, cases: Sequence[Shown] = ()) -> Path:
    """Write the page; the same findings give the same bytes."""
    file = Path(path)
    file.write_text(document(findings, cases), encoding="utf-8", newline="\n")
    return file
