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
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

for _library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is imported
    os.environ[f"{_library}_NUM_THREADS"] = "1"

TIMED, RACED, BATCH, SAMPLES = 4, 20, 32, 500
"""Sentences timed beside the naive loop, sentences whose paths are compared, texts the naive loop asks at once, LIME's."""
LEAST, MOST = 8, 12
"""Words of a sentence: longer ones take the naive loop half an hour each."""
OBJECTIVES = ("lom", "l2")
GOALS = {"exact": 1 / 3, "racing": 1 / 4}
SAME_PATHS = 0.9


class Stopwatch:
    """Time of the processor inside a net's forward passes (others may use the machine), and how many texts went through."""

    def __init__(self, net: Any) -> None:
        """Time every forward pass of this net from now on."""
        self.seconds, self.texts, forward = 0.0, 0, net.forward

        def timed(*args: Any, **inputs: Any) -> Any:
            start = time.thread_time()
            found = forward(*args, **inputs)
            self.seconds += time.thread_time() - start
            self.texts += len(inputs["input_ids"])
            return found

        net.forward = timed

    def lap(self) -> tuple[float, int]:
        """(seconds, texts) since the last lap."""
        found = self.seconds, self.texts
        self.seconds, self.texts = 0.0, 0
        return found


@dataclass
class Remembering:
    """A model that is asked about each text once: paths can be compared without paying twice."""

    ask: Callable[[list[str]], Any]
    known: dict[str, Any] = field(default_factory=dict)

    def __call__(self, texts: list[str]) -> Any:
        """What the model says of each text, now or earlier."""
        import numpy as np

        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        if new:
            self.known.update(zip(new, self.ask(new), strict=True))
        return np.array([self.known[text] for text in texts])


@dataclass(frozen=True)
class Case:
    """What is attacked, and how."""

    demo: Any
    model: Any
    sentences: list[str]
    given: tuple[Any, ...]  # the victim, candidates and constraints
    ways: dict[str, Any]  # to search, and how each races
    samples: int

    @classmethod
    def usual(cls, quick: bool) -> Case:
        """Short film reviews, MiniLM, LIME of 500 samples, the thesaurus and every constraint."""
        from whytrust import api
        from whytrust.fooling import victim_of
        from whytrust.language.sources import candidates_of
        from whytrust.models import demos
        from whytrust.swapping.constraints import constraints_of
        from whytrust.swapping.racing import Racing

        demo, samples = demos.load("reviews/minilm"), 50 if quick else SAMPLES
        sentences = [text.lower() for text in demo.inputs if LEAST <= len(text.split()) <= MOST]
        given = victim_of("lime", {"samples": samples})[1], candidates_of("thesaurus"), constraints_of()
        model, ways = api.model(demo.model, **demo.model_options), {"exact": None, "racing": Racing()}
        return cls(demo, model, sentences, given, ways, samples)

    def search(self, model: Any, place: int, way: str) -> Any:
        """An attack on one of the sentences."""
        from whytrust.swapping.search import Search

        return Search.of(model, self.sentences[place], *self.given, racing=self.ways[way], case=str(place))


def measure(quick: bool) -> list[dict[str, Any]]:
    """A row for each way to search and objective."""
    case = Case.usual(quick)
    return told(timed(case, 1 if quick else TIMED), raced(case, 1 if quick else RACED))


def timed(case: Case, sentences: int) -> list[dict[str, Any]]:
    """Each sentence and objective: (seconds inside the net, texts asked, seconds in all) of each way, and of the naive loop."""
    import torch

    watch, taken = Stopwatch(case.demo.model[0]), list[dict[str, Any]]()
    for place in range(sentences):
        for objective in OBJECTIVES:
            found: dict[str, Any] = {"objective": objective}
            for way in case.ways:
                start = time.process_time()
                search = case.search(case.model, place, way)
                watch.lap()
                levels = list(search.attack(objective))
                found[way] = (*watch.lap(), time.process_time() - start)
                found["levels"] = len(levels)
                if way == "exact":
                    with torch.no_grad():
                        naive(case.demo.model, search.text, levels, *case.given[1:], case.samples)
                    found["naive"] = watch.lap()
            taken.append(found)
        print(f"  {place + 1} of {sentences} sentences timed", file=sys.stderr, flush=True)
    return taken


def raced(case: Case, sentences: int) -> list[dict[str, Any]]:
    """Each sentence and objective: does the race end on the same path?"""
    from whytrust import api

    same = list[dict[str, Any]]()
    for place in range(sentences):
        known = api.model(Remembering(case.model), name="remembering")
        for objective in OBJECTIVES:
            exact, other = ([level.chosen.text.text for level in case.search(known, place, way).attack(objective)]
                            for way in case.ways)
            same.append({"objective": objective, "same": exact == other, "levels": len(exact)})
        print(f"  {place + 1} of {sentences} sentences raced", file=sys.stderr, flush=True)
    return same


def told(taken: list[dict[str, Any]], same: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each way to search and objective."""
    return [_row(way, objective, taken, same) for way in GOALS for objective in OBJECTIVES]


def naive(pair: Any, original: Any, levels: Any, source: Any, rules: Any, samples: int) -> None:
    """Every allowed candidate of the path explained by itself, after each word was left out once for the order."""
    import numpy as np

    from whytrust.swapping.constraints import proposed

    net, tokenizer = pair
    rng, current = np.random.default_rng(0), original
    texts = [current]
    for level in levels:
        place = level.chosen.swap.place
        texts += [current.swap(place, word) for word in proposed(source, rules, original, current, place)]
        current = level.chosen.text
    def ask(written: list[str]) -> None:
        for start in range(0, len(written), BATCH):
            net(**tokenizer(written[start:start + BATCH], padding=True, truncation=True, return_tensors="pt"))

    ask(original.parts().compose(~np.eye(len(original), dtype=bool), rng))
    for text in texts:
        removed = rng.integers(1, len(text) + 1, samples - 1)
        masks = np.ones((samples, len(text)), bool)
        for mask, count in zip(masks[1:], removed, strict=True):
            mask[rng.choice(len(text), count, replace=False)] = False
        ask(text.parts().compose(masks, rng))


def _row(way: str, objective: str, taken: list[dict[str, Any]], same: list[dict[str, Any]]) -> dict[str, Any]:
    mine = [one for one in taken if one["objective"] == objective and one["levels"]]
    ratios = [one[way][0] / one["naive"][0] for one in mine]
    ratio, calls = (sum(one[way][k] for one in mine) / sum(one["naive"][k] for one in mine) for k in (0, 1))
    raced = [one["same"] for one in same if one["objective"] == objective and one["levels"]]
    paths = sum(raced) / len(raced) if way == "racing" else None
    return {"way": way, "objective": objective, "sentences": len(mine), "ratio": ratio, "median": statistics.median(ratios),
            "least": min(ratios), "most": max(ratios), "calls": calls, "goal": GOALS[way], "same_paths": paths,
            "raced": len(raced), "an_hour": len(mine) / sum(one[way][2] for one in mine) * 3600,
            "reached": ratio <= GOALS[way] and (paths is None or paths >= SAME_PATHS)}


if __name__ == "__main__":
    import torch

    from benchmarks import kept, table

    torch.set_num_threads(1)
    code, found = kept.fingerprint(), measure(quick="--quick" in sys.argv)
    print(table.fragile_table(found))
    if "--quick" not in sys.argv:
        kept.keep_part("fragile", found, code)
