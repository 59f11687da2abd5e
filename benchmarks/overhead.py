"""How much of an audit's time goes elsewhere than into models, and how does the time grow with inputs, parts, k and explainers?

Time in the model is time in calls of the model's own function, forward and backward, of one thread, and in the short cuts by
which a scikit-learn pipeline that was opened answers masks; for texts, time in the net that judges whether a swapped word keeps
the meaning is told beside it. A preset's audit is done in a process of its own, without a report. Growth is that of an audit of
digits: with twice as many inputs, four times as many parts, twice as many numbers of parts that are kept (the k of recovery),
and twice as many explainers of one kind; a slope of 1 is linear (both axes logarithmic).

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
PRESETS = (("photos", 2, "EfficientNet-Lite0, 224 × 224", {}),
           ("reviews", 4, "MiniLM, fine-tuned", {"model": "demo:reviews/minilm"}),
           ("digits", 64, "a small CNN, 8 × 8", {}), ("tabular", 32, "a forest of 100 trees", {}),
           ("reviews", 16, "a linear model of words", {}))
SMALL = 2
"""From here on they are quick."""


def _study(preset: str, **changes: Any) -> Any:
    from whytrust.studies import spec

    return spec.load(preset, changes)


class _Clock:
    """Seconds inside some functions; calls within calls count once."""

    def __init__(self) -> None:
        self.spent, self.inside = 0.0, False

    def of(self, function: Any) -> Any:
        """The function, timed."""
        def timed(*args: Any, **options: Any) -> Any:
            if self.inside:
                return function(*args, **options)
            self.inside, begun = True, time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                self.inside, self.spent = False, self.spent + time.perf_counter() - begun

        return timed


def _work(study: Any) -> dict[str, Any]:
    """Seconds, of these in the model and in the net that judges swaps, model calls and inputs of all blocks of a study."""
    from whytrust.backends.language import SentenceEncoder
    from whytrust.checked import CheckedModel
    from whytrust.engine.work import attempt
    from whytrust.shards import Form

    model, judge, calls = _Clock(), _Clock(), 0

    def count(more: int) -> None:
        nonlocal calls
        calls += more

    opened = CheckedModel.opened
    places = ((CheckedModel, "guarded", model.of(CheckedModel.guarded)), (SentenceEncoder, "_encoded", judge.of(
        SentenceEncoder._encoded)), (CheckedModel, "opened", lambda self, parts: (
            None if (shortcut := opened(self, parts)) is None else model.of(shortcut))))
    before = [(place, name, getattr(place, name)) for place, name, _ in places]
    for place, name, timed in places:
        setattr(place, name, timed)
    try:
        blocks, begun = study.blocks(), time.perf_counter()
        for block in blocks:
            attempt(study, block, Form("", tuple(study.explainers)), count)
        return {"seconds": time.perf_counter() - begun, "model": model.spent, "judge": judge.spent, "calls": calls,
                "inputs": sum(len(block.cases) for block in blocks)}
    finally:
        for place, name, own in before:
            setattr(place, name, own)


def share(number: int, limit: int) -> dict[str, Any]:
    """One preset."""
    preset, _, what, changes = PRESETS[number]
    study = _study(preset, limit=limit, **changes)
    study.manifest()  # loads the model
    return {"preset": preset, "what": what, "explainers": len(study.explainers), **_work(study)}


def growth(quick: bool) -> list[dict[str, Any]]:
    """How the time of an audit of digits grows."""
    few = {"limit": 16 if quick else 32}
    cheap = ["lime", "saliency", "integrated_gradients", "occlusion", "grad_cam", "guided_backprop"]
    rows = []
    for what, steps in (
            ("inputs", [(n * few["limit"], {"limit": few["limit"] * n}) for n in (1, 2, 4)]),
            ("parts", [(n * n, {**few, "parts": f"grid:{n}x{n}", "explainers": cheap}) for n in (2, 4, 8)]),
            ("k", [(n, {**few, "ks": list(range(1, n + 1))}) for n in (2, 4, 8)]),
            ("explainers: LIME", [(n, {**few, "explainers": _alike("lime", n)}) for n in (2, 4, 8)]),
            ("explainers: Kernel SHAP", [(n, {**few, "explainers": _alike("kernel_shap", n)}) for n in (2, 4, 8)])):
        found = []
        for _, step in steps:
            study = _study("digits", **step)
            study.manifest()
            found.append(_work(study))
        sizes, times = [size for size, _ in steps], [one["seconds"] for one in found]
        rows.append({"what": what, "sizes": sizes, "seconds": times, "calls": [one["calls"] for one in found],
                     "slope": float(np.polyfit(np.log(sizes), np.log(times), 1)[0])})
    return rows


def _alike(method: str, number: int) -> dict[str, Any]:
    """So many explainers of a kind, each of which asks for one sample more."""
    return {f"{method} {i}": {"method": method, "samples": 500 + i} for i in range(number)}


def measure(quick: bool = False) -> dict[str, Any]:
    """All of it, each preset in a process of its own."""
    found = []
    for number, (_, limit, *_) in [*enumerate(PRESETS)][SMALL if quick else 0:]:
        done = subprocess.run([sys.executable, "-m", "benchmarks.overhead", "--preset", str(number), "--limit",
                               str(4 if quick else limit)], check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout.splitlines()[-1]))
    return {"goal": GOAL, "shares": found, "growth": growth(quick)}


def table(found: dict[str, Any]) -> str:
    """For the page on performance."""
    lines = ["| preset | model | explainers | seconds an input | in the model | in the judge of swaps | elsewhere |",
             "|---|---|---|---|---|---|---|"]
    for one in found["shares"]:
        each, model, judge = (one[name] / one["inputs"] for name in ("seconds", "model", "judge"))
        other = each - model - judge
        lines.append(f"| `{one['preset']}` | {one['what']} | {one['explainers']} | {each:.2f} | {model:.2f} | "
                     f"{f'{judge:.2f}' if judge else '–'} | {other:.2f} ({other / each:.0%}) |")
    lines += ["", "| with more | sizes | seconds | model calls | slope |", "|---|---|---|---|---|"]
    for one in found["growth"]:
        cells = [", ".join(f"{value:,.0f}" if name != "seconds" else f"{value:.1f}" for value in one[name])
                 for name in ("sizes", "seconds", "calls")]
        lines.append(f"| {one['what']} | {' | '.join(cells)} | {one['slope']:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--preset", type=int)
    parser.add_argument("--limit", type=int, default=16)
    asked = parser.parse_args()
    if asked.preset is not None:
        print(json.dumps(share(asked.preset, asked.limit)))
    else:
        result = measure(asked.quick)
        print(json.dumps(result, indent=1), file=sys.stderr)
        print(table(result))
