"""Which metrics may crown a winner in an audit: those that failed nothing in the lab, which is tried once and remembered."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from whytrust import files
from whytrust.lab import every_lab
from whytrust.measures.judged import Metric
from whytrust.models.minilm import cache_folder
from whytrust.progress import CaseProgress
from whytrust.store import plain
from whytrust.studies.metrics_cases import LabCase, settings, wrapped
from whytrust.studies.metrics_findings import findings
from whytrust.studies.metrics_told import Admission, admissions

CASES = 60
"""Inputs of each lab."""
FEW_PARTS = 64
"""Of more parts than this an image's are as good as pixels."""
FORMAT = 1  # of what is remembered; what the lab finds changes with its code


def cut_like(d: int) -> str | None:
    """How the lab cuts its pictures for an audit of d parts: into pixels (None) where there are many, else into 4 x 4 cells.

    Metrics that hide parts are caught on many small ones, which scatter, and not on a few large ones.
    """
    return None if d > FEW_PARTS else "grid:4x4"


def admitted(metrics: Sequence[Metric], domain: str, cut: str | None = None, cache: Path | None = None) -> list[Admission]:
    """Of each metric, whether it failed anything in the labs of this domain, cut in this way; from the cache where it is there.

    A cache that cannot be written is no fault: the lab is then asked again the next time.
    """
    key = _key(metrics, domain, cut)
    file = None if key is None else (cache_folder() if cache is None else cache) / f"metrics-{key}.json"
    remembered = None if file is None else _read(file, metrics)
    if remembered is not None:
        return remembered
    labs = [lab for lab in every_lab() if lab.domain == domain]
    records: list[Mapping[str, Any]] = []
    progress = CaseProgress("trying metrics", CASES * len(labs), 0)
    with progress:
        for lab in labs:
            for case in range(CASES):
                records.append({"lab": lab.name, **LabCase(lab, case, metrics, cut=cut).record()})
                progress.finished(1)
    abouts = {metric.about.name: metric.about for metric in metrics}
    how = f"; on {CASES} inputs of each lab" + (f", cut as {cut}" if cut else "")
    told = [replace(one, why=one.why + how) for one in admissions(
        findings(records, abouts), domain, {lab.name: {"domain": lab.domain} for lab in labs}, abouts)]
    with suppress(OSError):
        if file is None:
            return told
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(plain([one.__dict__ for one in told])), encoding="utf-8")
        os.replace(part, file)
    return told


def _key(metrics: Sequence[Metric], domain: str, cut: str | None) -> str | None:
    """What the answer depends on: the metrics with their settings and their code, the labs, our code and what it rests on.

    None where a metric's code cannot be read, as of one that was typed in: then nothing is remembered.
    """
    here = Path(__file__).parent.parent
    code = sorted(here.rglob("*.py"))
    for metric in metrics:
        for one in wrapped(metric):
            for kind in type(one).__mro__[:-1]:
                try:
                    code.append(Path(inspect.getfile(kind)))
                except (TypeError, OSError):
                    return None
    if any(" at 0x" in repr(metric) for metric in metrics):
        return None  # an address says nothing of what stands there in another run
    parts = [str(FORMAT), domain, str(cut), json.dumps(dict(settings(metrics))), *(lab.name for lab in every_lab()),
             *(f"{name} {installed(name)}" for name in ("numpy", "scipy", "scikit-learn", "torch", "quantus"))]
    digest = hashlib.blake2b("\n".join(parts).encode(), digest_size=8)
    for path in code:
        try:
            digest.update(path.read_bytes())
        except OSError:
            return None
    return digest.hexdigest()


def installed(name: str) -> str | None:
    """The version of a package; None where it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _read(file: Path, metrics: Sequence[Metric]) -> list[Admission] | None:
    try:
        found = [Admission(**one) for one in files.plain(file, "what was found out about metrics")]
        known = {one.metric for one in found} <= {metric.about.name for metric in metrics}
    except (OSError, ValueError, TypeError):
        return None
    return found if known else None
