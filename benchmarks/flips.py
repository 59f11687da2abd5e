"""What do flip curves cost beside the bare forward passes of the different inputs they ask about, and beside a naive loop?

Six explainers' orders, two of magnitude and ten random ones over 16 parts, all k; the naive loop composes and asks each set by
itself, as it comes. Bare is the net on exactly the batches that whytrust asked. The oracle's search is in neither: it needs the
answers to one step before it can ask the next. Methods take turns; the median of the turns' ratios counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import whytrust as wt
from benchmarks import table
from benchmarks.turns import beside_bare
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.explanation import Explanation
from whytrust.measures import Case, Flips
from whytrust.measures import flips as module
from whytrust.models import demos

EXPLAINERS, GOAL, TURNS = 6, 1.15, 7


def measure(quick: bool = False) -> list[dict[str, Any]]:
    """A row a net."""
    search, module.greedy = module.greedy, lambda case, judge, preferred: np.ones(case.d, bool)
    try:
        return [_job("EfficientNet-Lite0, 224 × 224", "photos", 1 if quick else TURNS, GOAL),
                _job("a small CNN, 8 × 8", "digits", 3 if quick else 3 * TURNS, None)]
    finally:
        module.greedy = search


def _job(name: str, demo_name: str, turns: int, goal: float | None) -> dict[str, Any]:
    demo = demos.load(demo_name)
    model = wt.model(demo.model, **demo.model_options)
    clean = np.asarray(demo.inputs[0], dtype=np.float32)
    changed = np.clip(clean + generator(0, "bench").normal(0, clean.max() / 12, clean.shape), 0, clean.max()).astype(np.float32)
    parts = ImageParts.cut(changed, "grid:4x4", 0.0)
    scores = {f"explainer {i}": generator(0, "scores", i).normal(size=16) for i in range(EXPLAINERS)}
    seen: list[Any] = []
    handle = demo.model.register_forward_pre_hook(lambda net, inputs: seen.append(inputs[0].detach().clone()))

    def explain(question: Any) -> dict[str, Any]:
        return {label: Explanation.of(question, label, given) for label, given in scores.items()}

    def case() -> Case:
        return Case(model, parts, clean, 0, 1)

    first = Flips()(case(), explain, generator(0))
    batches = list(seen)
    handle.remove()
    orders = list(first["order"].values())[:EXPLAINERS + 2] + [generator(0, "naive", i).permutation(16) for i in range(10)]
    assert _naive(case(), orders[:1])[0] == [b == "1" for b in first["flip"]["any"]["explainer 0"]]

    def bare() -> None:
        with torch.inference_mode():
            for batch in batches:
                demo.model(batch)

    ways: dict[str, Callable[[], Any]] = {"bare": bare, "whytrust": lambda: Flips()(case(), explain, generator(0)),
                                          "naive loop": lambda: _naive(case(), orders)}
    with model.asking():
        seconds, ratios = beside_bare(ways, turns)
    return {"job": name, "bare_seconds": seconds, "ratios": ratios, "asked": first["asked"],
            "distinct": first["distinct"], "goal": goal, "reached": goal is None or round(ratios["whytrust"], 2) <= goal}


def _naive(case: Case, orders: list[Any]) -> list[list[bool]]:
    """Order by order, k by k."""
    flips = []
    for order in orders:
        own = []
        for k in range(1, case.d + 1):
            mixed = np.array(case.clean)
            for part in order[:k]:
                where = case.parts.labels == part
                mixed[where] = case.parts.image[where]
            own.append(int(case.model.labels(case.model(mixed[None]))[0]) != case.clean_label)
        flips.append(own)
    return flips


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(table.flips_table(measure()))
