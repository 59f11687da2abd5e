"""How long does the attack on explanations of texts take beside the naive loop, with LIME of 500 samples as its victim?

The naive loop explains every candidate that the constraints allow by itself: 500 texts, in the order they were drawn, padded
to the longest of each batch, labels looked at afterwards. It walks the same path, so that both explain the same candidates.
What counts is the time inside the model's forward passes, the model calls, and how often a race ends on the same path.

    .venv/bin/python -m benchmarks.fragile
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any

for _library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is imported
    os.environ[f"{_library}_NUM_THREADS"] = "1"

SENTENCES, RACED, RATIO, BATCH = 8, 30, 0.3, 32
"""Sentences beside the naive loop, sentences raced, share of words that may be swapped, texts the naive loop asks at once."""
GOALS = {"exact": 1 / 3, "racing": 1 / 4}
SAME_PATHS = 0.9


class Stopwatch:
    """Time inside a net's forward passes, and how many texts went through."""

    def __init__(self, net: Any) -> None:
        """Time every forward pass of this net from now on."""
        self.seconds, self.texts, forward = 0.0, 0, net.forward

        def timed(*args: Any, **inputs: Any) -> Any:
            start = time.perf_counter()
            found = forward(*args, **inputs)
            self.seconds += time.perf_counter() - start
            self.texts += len(inputs["input_ids"])
            return found

        net.forward = timed

    def lap(self) -> tuple[float, int]:
        """(seconds, texts) since the last lap."""
        found = self.seconds, self.texts
        self.seconds, self.texts = 0.0, 0
        return found


def measure(quick: bool) -> list[dict[str, Any]]:
    """A row for each way to search."""
    import torch

    from whytrust import api
    from whytrust.fooling import victim_of
    from whytrust.language.sources import candidates_of
    from whytrust.models import demos
    from whytrust.swapping.constraints import constraints_of
    from whytrust.swapping.racing import Racing
    from whytrust.swapping.search import Search

    demo = demos.load("reviews/minilm")
    model = api.model(demo.model, **demo.model_options)
    # Behind those on which the race's shares were chosen.
    sentences = [text.lower() for text in demo.inputs if 8 <= len(text.split()) <= 20][16:]
    victim, source, rules = victim_of("lime")[1], candidates_of("thesaurus"), constraints_of()
    watch, taken, same, whole = Stopwatch(demo.model[0]), [], [], 0.0
    rows = 2 if quick else RACED
    for place, text in enumerate(sentences[:rows]):
        found: dict[str, Any] = {}
        for name, racing in (("exact", None), ("racing", Racing())):
            start = time.perf_counter()
            search = Search.of(model, text, victim, source, rules, RATIO, racing, 0, str(place))
            watch.lap()
            levels = list(search.attack("l2"))
            found[name] = (*watch.lap(), [level.chosen.text.text for level in levels], levels)
            whole += time.perf_counter() - start if name == "racing" else 0.0
        same.append(found["exact"][2] == found["racing"][2])
        if place < (1 if quick else SENTENCES) and found["exact"][3]:
            with torch.no_grad():
                naive(demo.model, search.text, found["exact"][3], source, rules)
            taken.append({"naive": watch.lap(), "exact": found["exact"][:2], "racing": found["racing"][:2]})
    return [_row(name, taken, same, len(same) / whole * 3600) for name in GOALS]


def naive(pair: Any, original: Any, levels: Any, source: Any, rules: Any, samples: int = 500) -> None:
    """Every allowed candidate of the path explained by itself."""
    import numpy as np

    from whytrust.swapping.constraints import proposed

    net, tokenizer = pair
    rng, current = np.random.default_rng(0), original
    texts = [current]
    for level in levels:
        place = level.chosen.swap.place
        texts += [current.swap(place, word) for word in proposed(source, rules, original, current, place)]
        current = level.chosen.text
    for text in texts:
        parts = text.parts()
        removed = rng.integers(1, len(text), samples - 1)
        masks = np.ones((samples, len(text)), bool)
        for mask, count in zip(masks[1:], removed, strict=True):
            mask[rng.choice(len(text), count, replace=False)] = False
        written = parts.compose(masks, rng)
        for start in range(0, samples, BATCH):
            net(**tokenizer(written[start:start + BATCH], padding=True, truncation=True, return_tensors="pt"))


def _row(name: str, taken: list[dict[str, Any]], same: list[bool], an_hour: float) -> dict[str, Any]:
    ratios = [one[name][0] / one["naive"][0] for one in taken]
    ratio = sum(one[name][0] for one in taken) / sum(one["naive"][0] for one in taken)
    calls = sum(one[name][1] for one in taken) / sum(one["naive"][1] for one in taken)
    paths = sum(same) / len(same) if name == "racing" else None
    return {"way": name, "sentences": len(taken), "ratio": ratio, "median": statistics.median(ratios), "least": min(ratios),
            "most": max(ratios), "calls": calls, "goal": GOALS[name], "same_paths": paths, "raced": len(same),
            "an_hour": an_hour if name == "racing" else None,
            "reached": ratio <= GOALS[name] and (paths is None or paths >= SAME_PATHS)}


if __name__ == "__main__":
    import torch

    from benchmarks import table

    torch.set_num_threads(1)
    print(table.fragile_table(measure(quick="--quick" in sys.argv)))
