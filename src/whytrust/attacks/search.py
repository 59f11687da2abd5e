"""Grid search: which settings fool the model most often, with the least change?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from whytrust.attacks.result import Attacked


def grid(options: dict[str, Any]) -> list[dict[str, Any]]:
    """Every combination of the settings that were given as lists; `bounds` is a pair and never searched."""
    searched = {name: value for name, value in options.items() if isinstance(value, list) and name != "bounds"}
    empty = [name for name, values in searched.items() if not values]
    if empty:
        raise ValueError(f"{empty[0]} must list at least one value to search over, got []")
    return [dict(zip(searched, values, strict=True)) for values in itertools.product(*searched.values())]


def search(methods: Sequence[Any], settings: Sequence[dict[str, Any]], attack: Callable[[Any], Attacked]) -> Attacked:
    """The best of several attacks on the same inputs: most successes, then the least mean change, then the fewest passes.

    The change is the mean L2 norm over the successes (over all inputs where nothing succeeded). The settings are chosen on the
    inputs that were attacked: the success rate of the best is that of the best on these, and other inputs may do worse.
    """
    best: Attacked | None = None
    least: tuple[float, ...] = ()
    trials: list[dict[str, Any]] = []
    for method, setting in zip(methods, settings, strict=True):
        tried = attack(method)
        counted = tried.success if tried.success.any() else np.isfinite(tried.l2)
        change = {"mean_linf": float(tried.linf[counted].mean()), "mean_l2": float(tried.l2[counted].mean())}
        trials.append({**setting, "successes": int(tried.success.sum()), **change, "passes": tried.passes})
        rank = (-trials[-1]["successes"], change["mean_l2"], tried.passes)
        if best is None or rank < least:
            best, least = tried, rank
    if best is None:
        raise ValueError("a search needs at least one setting, got none")
    return replace(best, search=tuple(trials))
