"""How much memory does a process take at its peak while it explains, beside one that only asks the model as many inputs?

Each method runs in a process of its own; the peak is counted from when the model is loaded (Linux), so that loading does not
hide it. The bare model's inputs are composed batch by batch, as by a caller who keeps none of them.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

for _library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is imported
    os.environ[f"{_library}_NUM_THREADS"] = "1"

BARE = "model alone"
TARGET = 1.10
JOBS = ("text", "table", "image")


def measure(quick: bool) -> list[dict[str, Any]]:
    """A row a job: the peak of each method in megabytes, and whether ours is within a tenth of the bare model's."""
    rows = []
    for job in JOBS[2:] if quick else JOBS:
        peaks = {}
        for method in (BARE, "whytrust", "lime", "captum")[: 4 if job == "image" else 3]:
            print(f"  {job}: {method}", file=sys.stderr, flush=True)
            found = subprocess.run([sys.executable, "-m", "benchmarks.memory", job, method, "64" if quick else "1000"],
                                   capture_output=True, text=True, check=True)
            peaks[method] = float(found.stdout.split()[-1])
        name = {"text": "text, TF-IDF + logistic regression, N 5000", "table": "table, 30 columns, forest of 100, N 5000",
                "image": f"image, 224 × 224, a net of five layers, 30 segments, N {64 if quick else 1000}"}[job]
        rows.append({"job": name, "megabytes": peaks, "target": TARGET, "reached": peaks["whytrust"] <= TARGET * peaks[BARE]})
    return rows


def peak(job_name: str, method: str, images: int) -> float:
    """Run one method; megabytes at its peak."""
    import torch

    from benchmarks import speed

    torch.set_num_threads(1)
    job = {"text": lambda: speed.text_job(5000), "table": lambda: speed.table_job(5000, 100, TARGET),
           "image": lambda: speed.photo_job("a net of five layers", images, TARGET)}[job_name]()
    return peak_of(lambda: _bare(job_name, job.model, images) if method == BARE else job.methods[method](job.model))


def peak_of(run: Callable[[], Any]) -> float:
    """Run; megabytes at the peak of this process since then."""
    with contextlib.suppress(OSError):  # elsewhere than on Linux: the peak of the whole process
        Path("/proc/self/clear_refs").write_text("5")
    run()
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s*(\d+)", status.read_text())[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _bare(job_name: str, model: Any, images: int) -> None:
    import numpy as np

    from benchmarks import speed
    from whytrust.domains.image import ImageParts
    from whytrust.domains.tabular import TableParts, TableStatistics
    from whytrust.domains.text import TextParts
    from whytrust.models import demos

    random = np.random.default_rng(0)
    if job_name == "table":
        data = speed.load_breast_cancer().data
        model(TableParts.cut(data[0], TableStatistics.fit(data)).draw(5000, random).rows(slice(None)))
        return
    image = np.asarray(demos.load("photos").inputs[0]) if job_name == "image" else None
    parts = TextParts.cut(speed.longest_review(), "bag") if image is None else ImageParts(image, speed.thirty_segments(image))
    n, size = (5000, 5000) if image is None else (images, 2)
    masks = random.random((n, len(parts.names))) < (0.7 if image is None else 0.5)
    for first in range(0, n, size):
        model(parts.compose(masks[first:first + size], random))


if __name__ == "__main__":
    print(peak(sys.argv[1], sys.argv[2], int(sys.argv[3])))
