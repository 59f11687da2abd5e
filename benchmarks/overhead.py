"""How much of an audit's time goes elsewhere than into the model, and how does the time grow with inputs, parts and explainers?

Time in the model is time in calls of the model's own function, forward and backward, of one thread. A preset's audit is done in
a process of its own, without a report. Growth is that of an audit of digits: twice as many inputs, four times as many parts,
twice as many explainers; a slope of 1 is linear (both axes logarithmic), of the time per input for parts and explainers.

    python -m benchmarks.overhead [--quick]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

GOAL = 0.10
PRESETS = (("photos", 2, "EfficientNet-Lite0, 224 × 224"),
           ("digits", 64, "a small CNN, 8 × 8"), ("tabular", 32, "a forest of 100 trees"),
           ("reviews", 16, "a linear model of words"))
EXPLAINERS = ("saliency", "lime", "integrated_gradients", "occlusion", "grad_cam", "guided_backprop", "deconvnet",
              "kernel_shap")


def _study(preset: str, **changes: Any) -> Any:
    from whytrust.studies import spec

    return spec.load(preset, changes)


def _work(study: Any) -> tuple[float, float, int, int]:
    """(seconds, seconds in the model, model calls, inputs) of all blocks of a study."""
    from whytrust.checked import CheckedModel
    from whytrust.engine.work import attempt
    from whytrust.shards import Form

    spent, inside, calls = 0.0, False, 0
    guarded = CheckedModel.guarded

    def timed(self: Any, ask: Any, batch: Any) -> Any:
        nonlocal spent, inside
        if inside:
            return guarded(self, ask, batch)
        inside, begun = True, time.perf_counter()
        try:
            return guarded(self, ask, batch)
        finally:
            inside, spent = False, spent + time.perf_counter() - begun

    def count(more: int) -> None:
        nonlocal calls
        calls += more

    CheckedModel.guarded = timed  # type: ignore[method-assign]
    try:
        blocks, begun = study.blocks(), time.perf_counter()
        for block in blocks:
            attempt(study, block, Form("", tuple(study.explainers)), count)
        return time.perf_counter() - begun, spent, calls, sum(len(block.cases) for block in blocks)
    finally:
        CheckedModel.guarded = guarded  # type: ignore[method-assign]


def share(preset: str, limit: int) -> dict[str, Any]:
    """One preset."""
    study = _study(preset, limit=limit)
    study.manifest()  # loads the model
    seconds, model, calls, inputs = _work(study)
    return {"preset": preset, "inputs": inputs, "explainers": len(study.explainers), "seconds": seconds, "model": model,
            "calls": calls}


def growth(quick: bool) -> list[dict[str, Any]]:
    """How the time of an audit of digits grows."""
    few = {"limit": 16 if quick else 32}
    rows = []
    for what, steps in (("inputs", [{"limit": few["limit"] * n} for n in (1, 2, 4)]),
                        ("parts", [{**few, "parts": f"grid:{n}x{n}", "explainers": list(EXPLAINERS[:6])} for n in (2, 4, 8)]),
                        ("explainers", [{**few, "explainers": list(EXPLAINERS[:n])} for n in (2, 4, 8)])):
        sizes, times, asked = [], [], []
        for step in steps:
            study = _study("digits", **step)
            study.manifest()
            seconds, _, calls, inputs = _work(study)
            parts = int(str(step.get("parts", "grid:4x4"))[5]) ** 2
            sizes.append({"inputs": inputs, "parts": parts, "explainers": len(study.explainers)}[what])
            times.append(seconds)
            asked.append(calls)
        rows.append({"what": what, "sizes": sizes, "seconds": times, "calls": asked,
                     "slope": float(np.polyfit(np.log(sizes), np.log(times), 1)[0])})
    return rows


def measure(quick: bool = False) -> dict[str, Any]:
    """All of it, each preset in a process of its own."""
    found = []
    for preset, limit, what in PRESETS[2 if quick else 0:]:
        done = subprocess.run([sys.executable, "-m", "benchmarks.overhead", "--preset", preset, "--limit",
                               str(4 if quick else limit)], check=True, capture_output=True, text=True)
        found.append({**json.loads(done.stdout.splitlines()[-1]), "what": what})
    return {"goal": GOAL, "shares": found, "growth": growth(quick)}


def table(found: dict[str, Any]) -> str:
    """For the page on performance."""
    lines = ["| preset | model | explainers | seconds an input | in the model | elsewhere |", "|---|---|---|---|---|---|"]
    for one in found["shares"]:
        each, model = one["seconds"] / one["inputs"], one["model"] / one["inputs"]
        lines.append(f"| `{one['preset']}` | {one['what']} | {one['explainers']} | {each:.2f} | {model:.2f} | "
                     f"{each - model:.2f} ({1 - model / each:.0%}) |")
    lines += ["", "| with more | sizes | seconds | model calls | slope |", "|---|---|---|---|---|"]
    for one in found["growth"]:
        cells = [", ".join(f"{value:,.0f}" if name != "seconds" else f"{value:.1f}" for value in one[name])
                 for name in ("sizes", "seconds", "calls")]
        lines.append(f"| {one['what']} | {' | '.join(cells)} | {one['slope']:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--preset")
    parser.add_argument("--limit", type=int, default=16)
    asked = parser.parse_args()
    if asked.preset:
        print(json.dumps(share(asked.preset, asked.limit)))
    else:
        result = measure(asked.quick)
        print(json.dumps(result, indent=1), file=sys.stderr)
        print(table(result))
