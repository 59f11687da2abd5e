"""Does a run's folder slow down as it grows? Appending, finding out what is left, reading one explainer, and the report.

Two runs are made up: a small audit of digits with the thirteen explainers of Hoedt et al. is done in earnest, and then
its records are dealt out anew to as many inputs as are asked for, every number of each moved a little, so that their size and
shape are those of real ones. The first run has ten million lines (a line a record, and one for each explainer's share of it),
kept small so that the disk is not what is measured; the second has 50 000 inputs as they are.

    python -m benchmarks.store [--cases 50000] [--lines 10000000] [--folder /tmp/big]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

BLOCK, STEPS = 16, 10


def templates(folder: Path) -> list[dict[str, Any]]:
    """Records of a real audit."""
    from whytrust.store import Store

    if not (folder / "manifest.json").is_file():
        subprocess.run([sys.executable, "-m", "whytrust", "audit", "digits", "--explainers", "all13", "--limit", "48", "--out",
                        str(folder)], check=True, stdout=subprocess.DEVNULL)
    return [record for record in Store.open(folder).records() if record["status"] == "ok"]


def moved(value: Any, rng: Any) -> Any:
    """The same, every fraction of it moved a little."""
    if isinstance(value, float):
        return value * (0.9 + 0.1 * rng.random())
    if isinstance(value, dict):
        return {key: moved(inner, rng) for key, inner in value.items()}
    if isinstance(value, list):
        return [moved(inner, rng) for inner in value]
    return value


def whole(given: list[dict[str, Any]], case: str, rng: Any) -> dict[str, Any]:
    """A record as an audit makes it."""
    return {**moved(rng.choice(given), rng), "case": case, "name": f"input {case}"}


def lean(given: list[dict[str, Any]], case: str, rng: Any) -> dict[str, Any]:
    """One trial, and of that the flips alone."""
    record = rng.choice(given)
    flips = record["trials"][0]["flip"]
    return {"case": case, "name": f"input {case}", "status": "ok", "trials": [{"strength": "full", "flip": flips}]}


def filled(folder: Path, cases: int, make: Callable[..., dict[str, Any]], given: list[dict[str, Any]]) -> dict[str, Any]:
    """Make a run of so many cases; how long each tenth of the appending took, by the record."""
    import random

    from whytrust.shards import Block, Result, encode
    from whytrust.store import Store

    names = [name for name in given[0]["trials"][0]["flip"]["any"] if name not in ("magnitude", "magnitude_mean", "oracle")]
    ids = [f"{i:07d}" for i in range(cases)]
    blocks = [Block(f"{i // BLOCK:06d}", tuple(ids[i:i + BLOCK])) for i in range(0, cases, BLOCK)]
    about = {"model": "made up", "data": "made up", "inputs": cases, "sources": cases, "explainers": names,
             "strengths": ["full", "margin 0", "margin 2"], "trials": ["flip", "all_positive", "recovery", "fidelity"],
             "command": "", "notes": [], "named": [], "metrics": []}
    store = Store.create(folder, {"study": "audit", "spec": {}, "seed": 0, "shares": names, "about": about, "blocks": blocks})
    store.finished()
    rng, took, step = random.Random(0), [0.0] * STEPS, 0
    for i, block in enumerate(blocks):
        shard = encode(block, [Result(make(given, case, rng)) for case in block.cases], store.form)
        step = i * STEPS // len(blocks)
        start = time.perf_counter()
        store.put(block, shard)
        took[step] += time.perf_counter() - start
    store.close()
    each = len(blocks) / STEPS * BLOCK
    return {"cases": cases, "lines": cases * (1 + len(names)), "explainers": len(names),
            "append_us_a_case": [round(1e6 * one / each, 1) for one in took]}


def in_process(code: str, folder: Path) -> dict[str, Any]:
    """Seconds and peak memory of a piece of work in a process of its own."""
    script = ("import json, re, sys, time\nfrom whytrust.store import Store\nstart = time.perf_counter()\n"
              f"{code}\nprint(json.dumps({{'seconds': time.perf_counter() - start, "
              "'peak_mb': int(re.search('VmHWM: *([0-9]+)', open('/proc/self/status').read().replace('\\t', ' '))[1]) / 1024, "
              "'found': found}))")
    done = subprocess.run([sys.executable, "-c", script, str(folder)], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


WORK = {
    "resume set": "store = Store.open(sys.argv[1]); found = len(store.finished())",
    "one explainer": "found = sum('lime' in r['trials'][0]['flip']['any'] for r in Store.open(sys.argv[1]).records(['lime']))",
    "all of it": "found = sum(1 for r in Store.open(sys.argv[1]).records())",
    "every byte": "from whytrust.integrity import check\nfound = check(Store.open(sys.argv[1])).records",
}
REPORT = ("from whytrust.report.audit import Audit\naudit = Audit.open(sys.argv[1])\n"
          "found = audit.save_html(sys.argv[1] + '/report.html').stat().st_size")


def measured(folder: Path, cases: int, make: Callable[..., dict[str, Any]], given: list[dict[str, Any]],
             work: dict[str, str]) -> dict[str, Any]:
    """One size of run."""
    shutil.rmtree(folder, ignore_errors=True)
    found = filled(folder, cases, make, given)
    found["files"] = sum(len(names) for _, _, names in os.walk(folder))
    found["bytes"] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    for name, code in work.items():
        found[name] = in_process(code, folder)
    return found


def measure(quick: bool = False, cases: int = 50_000, lines: int = 10_000_000, folder: str | None = None) -> dict[str, Any]:
    """A tenth and the whole of either run."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        given, rows = templates(Path(place) / "real"), []
        if quick:
            cases, lines = 640, 64_000
        for label, number, make, work in _plan(cases, lines):
            rows.append({"run": label, **measured(Path(place) / "run", number, make, given, work)})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
            shutil.rmtree(Path(place) / "run")
    return {"rows": rows}


def _plan(cases: int, lines: int) -> Iterator[tuple[str, int, Callable[..., dict[str, Any]], dict[str, str]]]:
    many = lines // 14
    yield "lines", many // 10, lean, WORK
    yield "lines", many, lean, WORK
    yield "inputs", cases // 10, whole, {**WORK, "report": REPORT}
    yield "inputs", cases, whole, {**WORK, "report": REPORT}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--cases", type=int, default=50_000)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--folder")
    print(json.dumps(measure(**vars(parser.parse_args())), indent=1))
