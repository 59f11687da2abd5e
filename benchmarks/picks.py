"""How long does the submodular pick take: beside lime's own loop on the same explanations, and on far more of them?

Explanations are made once and handed out ready, so that both constructors do the rest alone: weights into a matrix, and the
greedy loop. On the large matrix, which lime's loop could not hold, time and peak memory are counted in a process of its own.

    .venv/bin/python -m benchmarks.picks
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

for _library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is imported
    os.environ[f"{_library}_NUM_THREADS"] = "1"

N, PICKS = 300, 10
FASTER = 300.0
"""At least so many times as fast as lime."""
LARGE = (100_000, 20_000, 10)
"""Rows, features, entries a row."""
SECONDS = 10.0


class Ready:
    """An explainer that hands out explanations which were made before."""

    def __init__(self, explanations: dict[int, Any]) -> None:
        """By the inputs' numbers."""
        self.explanations, self.seed = explanations, 0

    def explain_instance(self, item: int, *_: Any, **__: Any) -> Any:
        """The explanation of the input of this number."""
        return self.explanations[int(item)]


def measure(quick: bool) -> list[dict[str, Any]]:
    """A row for lime's loop, and one for the large matrix."""
    return [_beside_lime(60 if quick else N), _large(quick)]


def _beside_lime(n: int) -> dict[str, Any]:
    from lime.submodular_pick import SubmodularPick as Peer

    from whytrust.compat.lime.lime_text import LimeTextExplainer
    from whytrust.compat.lime.submodular_pick import SubmodularPick, explanation_matrix
    from whytrust.coverage import submodular
    from whytrust.models import demos

    demo = demos.load("reviews")
    explainer = LimeTextExplainer(class_names=["fresh", "rotten"])
    made = {i: explainer.explain_instance(demo.inputs[i], demo.model.predict_proba, num_features=10, num_samples=500,
                                          top_labels=1) for i in range(n)}
    ready, numbers = Ready(made), list(range(n))

    def run(kind: Any, picks: int) -> Callable[[], list[int]]:
        return lambda: kind(ready, numbers, None, method="full", num_exps_desired=picks).V

    # With no picks lime makes its matrix and nothing else: what is left is its loop.
    (whole, theirs), (before, _) = _timed(run(Peer, PICKS), 5), _timed(run(Peer, 0), 5)
    ours_whole, ours = _timed(run(SubmodularPick, PICKS), 15)
    weights = explanation_matrix(list(made.values()))
    loop, _ = _timed(lambda: submodular(weights, PICKS), 31)
    return {"job": f"{PICKS} of {n} explanations of film reviews, 10 words each: the loop", "lime_seconds": whole - before,
            "seconds": loop, "times": (whole - before) / loop, "same": list(theirs) == list(ours),
            "goal": FASTER if n == N else None, "reached": (whole - before) / loop >= FASTER,
            "whole_seconds": {"lime": whole, "whytrust": ours_whole}}


def _timed(run: Callable[[], Any], turns: int) -> tuple[float, Any]:
    """(median seconds, what it gives)."""
    taken, found = [], None
    for _ in range(turns):
        start = time.perf_counter()
        found = run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken), found


def _large(quick: bool) -> dict[str, Any]:
    scale = 10 if quick else 1
    ran = subprocess.run([sys.executable, "-m", "benchmarks.picks", "large", str(scale)], capture_output=True, text=True,
                         check=True)
    seconds, base, peak = map(float, ran.stdout.split())
    rows, features, entries = LARGE[0] // scale, LARGE[1] // scale, LARGE[2]
    return {"job": f"100 of {rows:,} explanations × {features:,} features, {entries} each", "lime_seconds": None,
            "seconds": seconds, "times": None, "same": None, "megabytes": peak - base, "goal": SECONDS,
            "reached": seconds <= SECONDS}


def large(scale: int) -> None:
    """Print the seconds of the pick, and megabytes of this process before it and at its peak."""
    import numpy as np
    from scipy import sparse

    from benchmarks.memory import peak_of
    from whytrust.coverage import submodular

    rng = np.random.default_rng(0)
    rows, features, entries = LARGE[0] // scale, LARGE[1] // scale, LARGE[2]
    columns = (features * rng.random(rows * entries) ** 3).astype(int)  # some in many rows, as words are
    places = np.repeat(np.arange(rows), entries), columns
    table = sparse.csr_matrix((rng.exponential(size=rows * entries), places), shape=(rows, features))
    base = peak_of(lambda: None)
    start = time.perf_counter()
    peak = peak_of(lambda: submodular(table, 100))
    print(time.perf_counter() - start, base, peak)


if __name__ == "__main__":
    if sys.argv[1:2] == ["large"]:
        large(int(sys.argv[2]))
    else:
        from benchmarks import table

        print(table.picks_table(measure(quick="--quick" in sys.argv)))
