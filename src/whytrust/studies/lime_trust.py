"""Table 1 of Ribeiro et al. (2016): do explanations tell which predictions rest on features that are not to be trusted?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import generator
from whytrust.explainers.greedy import Greedy
from whytrust.question import Question
from whytrust.readers import Marked, Reading, read
from whytrust.store import Block, Result
from whytrust.studies import lime_reviews
from whytrust.studies.casewise import each, in_blocks
from whytrust.studies.interpretable import bag_columns
from whytrust.studies.lime_faithful import BLOCK, SAMPLES, K, authors_lime, paper_lime, removed, windows
from whytrust.studies.mistrust import judged, truly_trusted, untrusted

ROUNDS, SHARE = 100, 0.25
WIDTHS = {"books": {"LR": 1.0, "NN": 0.5, "RF": 3.0, "SVM": 7.0}, "dvd": {"LR": 0.75, "NN": 0.5, "RF": 5.0, "SVM": 0.75}}
"""σ of the Parzen windows, as the authors chose them by cross-validation."""
EXPLAINERS = ("random", "parzen", "greedy", "authors", "lime")


@dataclass(frozen=True)
class TrustStudy:
    """The whole table: data sets × models × test reviews, each in all rounds."""

    data: str
    datasets: tuple[str, ...] = ("books", "dvd")
    models: tuple[str, ...] = ("LR", "NN", "SVM", "RF")  # the forest takes longer than all the others
    scale: float = 1.0
    samples: int = SAMPLES
    rounds: int = ROUNDS
    seed: int = 0

    def manifest(self) -> dict[str, Any]:
        """What makes this run another one."""
        hashes = {"reviews": lime_reviews.digest(self.data, self.datasets)}
        return {"study": "lime", "seed": self.seed, "hashes": hashes, "spec": {
            "kind": "trust", "datasets": list(self.datasets), "models": list(self.models), "scale": self.scale,
            "samples": self.samples, "rounds": self.rounds, "features": K}}

    def blocks(self) -> Sequence[Block]:
        """Twenty reviews of one model each."""
        found = []
        for name in self.datasets:
            count = len(lime_reviews.read(self.data, name, lime_reviews.AUTHORS_SPLIT).test)
            chosen = lime_reviews.spread(count, self.scale)
            for model in self.models:
                found += in_blocks(f"{name}-{model}", [f"{name}.{model}.{i}" for i in chosen], BLOCK)
        return found

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterator[Result]:
        """Every explainer's reader on each review of a block."""
        return each(block, lambda case: self._case(case, on_calls))

    def _case(self, case: str, on_calls: Callable[[int], None]) -> dict[str, Any]:
        name, kind, index = case.rsplit(".", 2)
        reviews, pipeline, model = lime_reviews.trained(self.data, name, lime_reviews.AUTHORS_SPLIT, kind)
        parts = reviews.parts(reviews.test[int(index)])
        features = bag_columns(pipeline, parts.names)
        marked = _marked(len(reviews.vocabulary), self.rounds, self.seed)
        question = Question(model, parts, 1, on_calls=on_calls)
        label = int(model.labels(question.original[None])[0])
        predicted, positive = question.watching([label, 1])
        readings = {explainer: self._reading(explainer, predicted if explainer == "greedy" else positive, features, case)
                    for explainer in EXPLAINERS}
        truly = truly_trusted(question, features, marked, generator(self.seed, case))
        return {"case": case, "status": "ok", "dataset": name, "model": kind, "review": int(index), "d": len(parts.names),
                "label": label, "truth": int(reviews.test_labels[int(index)]), "calls": positive.memory.calls,
                **judged(readings, truly, marked)}

    def _reading(self, explainer: str, question: Question, features: NDArray[np.intp], case: str) -> Reading:
        rng = generator(self.seed, case, explainer)
        name, kind, _ = case.rsplit(".", 2)
        if explainer == "random":
            drawn = np.unique(rng.integers(0, question.d, K))
            return Reading(features[drawn], np.ones(len(drawn)))
        if explainer == "greedy":
            named = removed(Greedy(features=K)(question, rng))  # with words that changed nothing: the authors' greedy goes on
            return Reading(features[named], np.ones(len(named)))
        if explainer == "parzen":
            fitted = windows(self.data, name, lime_reviews.AUTHORS_SPLIT, kind, WIDTHS[name][kind], 5)
            reading = read(fitted(question, rng), features, 0.5)
            assert reading.prediction is not None
            # The authors' reader of windows asks whether these would decide otherwise, not whether they agree with the model.
            return replace(reading, stands=reading.prediction > 0.5)
        lime = authors_lime(self.samples) if explainer == "authors" else paper_lime(self.samples)
        return read(lime(question, rng), features, 0.5)


@lru_cache(maxsize=2)
def _marked(features: int, rounds: int, seed: int) -> Marked:
    return untrusted(features, rounds, SHARE, seed)
