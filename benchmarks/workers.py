"""How many inputs an hour does an audit do, with one worker and with two, and how many would it with more?

The same audit by one worker process and by two, in turns; what starting and loading take is in it. Beyond two workers nothing
can be measured on two cores. There the rate is modelled: N workers do N times as many as one, times what the second of two
brought, until the one process that writes has no time left; how long that takes for an input is measured. Cores of one machine
share its memory, so a model that moves much memory will stay below this.

    python -m benchmarks.workers [--quick] [--turns 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

GOAL = 1.7
RUNS = (("photos", 8, "EfficientNet-Lite0, 2 explainers", {"explainers": ["saliency", "grad_cam"], "block": 1}),
        ("digits", 256, "a small CNN, 6 explainers", {}),
        ("tabular", 128, "a forest, 2 explainers", {"explainers": ["lime", "occlusion"]}))
MORE = (4, 16, 64, 256)


def once(preset: str, limit: int, changes: dict[str, Any], workers: int) -> tuple[float, float]:
    """(seconds of a run, seconds of it in which a result was written)."""
    from whytrust import engine
    from whytrust.store import Store
    from whytrust.studies import spec

    study, writing, put = spec.load(preset, {"limit": limit, **changes}), 0.0, Store.put

    def timed(self: Any, block: Any, shard: Any) -> None:
        nonlocal writing
        begun = time.perf_counter()
        put(self, block, shard)
        writing += time.perf_counter() - begun

    Store.put = timed  # type: ignore[method-assign]
    try:
        with tempfile.TemporaryDirectory() as folder:
            begun = time.perf_counter()
            engine.run(study, Path(folder) / "run", engine.Processes(workers))
            return time.perf_counter() - begun, writing
    finally:
        Store.put = put  # type: ignore[method-assign]


def measure(quick: bool = False, turns: int = 3) -> dict[str, Any]:
    """Each run by one and by two, in turns."""
    rows = []
    for preset, limit, what, changes in RUNS[1 if quick else 0:]:
        inputs = limit // 16 if quick else limit
        taken = [(once(preset, inputs, changes, 1), once(preset, inputs, changes, 2)) for _ in range(1 if quick else turns)]
        one, two = (statistics.median(turn[i][0] for turn in taken) for i in range(2))
        writing = statistics.median(turn[0][1] for turn in taken) / inputs
        rows.append({"preset": preset, "what": what, "inputs": inputs, "one": 3600 * inputs / one, "two": 3600 * inputs / two,
                     "gain": statistics.median(turn[0][0] / turn[1][0] for turn in taken), "writing": writing})
    return {"goal": GOAL, "rows": rows}


def modelled(row: dict[str, Any], workers: int) -> float:
    """Inputs an hour of so many workers."""
    return min(row["one"] * workers * row["gain"] / 2, 3600 / row["writing"])


def table(found: dict[str, Any]) -> str:
    """For the page on scaling."""
    lines = [f"| inputs an hour | 1 worker | 2 workers | gain | {' | '.join(f'{n} (modelled)' for n in MORE)} |",
             f"|---|---|---|---|{'---|' * len(MORE)}"]
    for row in found["rows"]:
        more = " | ".join(f"{float(f'{modelled(row, n):.2g}'):,.0f}" for n in MORE)
        lines.append(f"| `{row['preset']}`: {row['what']} | {row['one']:,.0f} | {row['two']:,.0f} | {row['gain']:.2f} | "
                     f"{more} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--turns", type=int, default=3)
    result = measure(**vars(parser.parse_args()))
    print(json.dumps(result, indent=1), file=sys.stderr)
    print(table(result))
