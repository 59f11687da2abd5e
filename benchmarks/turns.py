"""Ways to do the same job take turns, so that a machine that is slow for a while is slow for all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any


def beside_bare(ways: Mapping[str, Callable[[], Any]], turns: int) -> tuple[float, dict[str, float]]:
    """(median seconds of the way called "bare", median over the turns of every other way's time beside it)."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(turns):
        for way, run in ways.items():
            start = time.perf_counter()
            run()
            times[way].append(time.perf_counter() - start)
    return median(times["bare"]), {way: median(a / b for a, b in zip(times[way], times["bare"], strict=True))
                                   for way in ways if way != "bare"}
