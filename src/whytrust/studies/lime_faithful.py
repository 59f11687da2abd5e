"""Figures 6 and 7 of Ribeiro et al. (2016): do explanations find the features that a readable model really uses?

Every test review is explained for a sparse logistic regression and for decision trees by LIME with an intercept that is fitted
(as ours is), by LIME as the authors ran it, by their rivals, and at random; a part of the truth that is named is a hit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.model_selection import cross_val_predict

from whytrust.core import generator
from whytrust.explainers.greedy import Greedy
from whytrust.explainers.lime import Lime
from whytrust.explainers.parzen import Parzen
from whytrust.explanation import Explanation
from whytrust.question import Question
from whytrust.readers import named_parts
from whytrust.store import Block, Result
from whytrust.studies.casewise import each, in_blocks
from whytrust.studies.interpretable import used_by
from whytrust.studies.lime_reviews import TREES, digest, read, spread, trained

K, SAMPLES, BLOCK = 10, 15_000, 20
WIDTHS = {("books", "sparse-LR"): 2.0, ("books", "tree"): 2.0, ("dvd", "sparse-LR"): 1.0, ("dvd", "tree"): 8.0}
"""σ of the Parzen windows, as the authors chose them by cross-validation."""
EXPLAINERS = ("random", "parzen", "greedy", "authors", "lime")


@dataclass(frozen=True)
class FaithfulStudy:
    """The whole of both figures: data sets × splits × readable models × test reviews.

    Split 1 is the authors'. There, several trees are grown, which differ only in how ties between splits of a node are broken:
    the published numbers are of one of which nobody knows how they were. Each further split has one tree.
    """

    data: str
    datasets: tuple[str, ...] = ("books", "dvd")
    splits: int = 5
    trees: int = 5
    scale: float = 1.0
    samples: int = SAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        spread(100, self.scale)
        if not 1 <= self.trees <= TREES or self.splits < 1 or self.samples < 2 * K:
            raise ValueError(f"there must be at least one split, 1 to {TREES} trees and {2 * K} samples, got {self.splits}, "
                             f"{self.trees} and {self.samples}")

    def manifest(self) -> dict[str, Any]:
        """What makes this run another one."""
        return {"study": "lime", "seed": self.seed, "hashes": {"reviews": digest(self.data, self.datasets)}, "spec": {
            "kind": "faithful", "datasets": list(self.datasets), "splits": self.splits, "trees": self.trees,
            "scale": self.scale, "samples": self.samples, "features": K}}

    def blocks(self) -> Sequence[Block]:
        """Twenty reviews of one model each; a scale below 1 takes every so many of the test reviews."""
        found = []
        for name in self.datasets:
            for split in range(1, self.splits + 1):
                chosen = spread(len(read(self.data, name, split).test), self.scale)
                for model in ("sparse-LR", *(f"tree-{tree}" for tree in range(1, (self.trees if split == 1 else 1) + 1))):
                    found += in_blocks(f"{name}-{split}-{model}", [f"{name}.{split}.{model}.{i}" for i in chosen], BLOCK)
        return found

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterator[Result]:
        """Every explainer on each review of a block."""
        return each(block, lambda case: self._case(case, on_calls))

    def _case(self, case: str, on_calls: Callable[[int], None]) -> dict[str, Any]:
        name, split, kind, index = case.rsplit(".", 3)
        reviews, pipeline, model = trained(self.data, name, int(split), kind)
        parts = reviews.parts(reviews.test[int(index)])
        truth = used_by(pipeline, parts)
        record = {"case": case, "status": "ok", "dataset": name, "split": int(split), "model": kind, "review": int(index),
                  "d": len(parts.names), "truth": np.flatnonzero(truth.used).tolist(),
                  "matter": np.flatnonzero(truth.matter).tolist()}
        if not truth.used.any():  # nothing to find, nothing to ask
            return record
        label = int(reviews.test_labels[int(index)])
        for_label, for_one = Question(model, parts, 1, on_calls=on_calls).watching([label, 1])
        named: dict[str, list[int]] = {}
        for explainer in EXPLAINERS:
            rng = generator(self.seed, case, explainer)
            # The authors' greedy removal looks at the true label, which need not be the predicted one.
            question = for_label if explainer == "greedy" else for_one
            named[explainer] = self._named(explainer, question, rng, name, int(split), kind)
        return {**record, "named": named, "calls": for_one.memory.calls}

    def _named(self, explainer: str, question: Question, rng: np.random.Generator, name: str, split: int,
               kind: str) -> list[int]:
        if explainer == "random":
            return sorted(set(rng.integers(0, question.d, K).tolist()))  # with replacement, as the authors drew
        if explainer == "greedy":
            return removed(Greedy(features=K, stop="never")(question, rng))
        if explainer == "parzen":
            return [int(part) for part in named_parts(windows(self.data, name, split, kind)(question, rng), K)]
        lime = authors_lime(self.samples) if explainer == "authors" else paper_lime(self.samples)
        return [int(part) for part in named_parts(lime(question, rng), K)]


def paper_lime(samples: int = SAMPLES, features: int = K, **options: Any) -> Lime:
    """LIME as the paper describes it, whatever `Lime` does by itself: words are chosen by K-LASSO."""
    return Lime(samples=samples, features=features, selection="lasso_path", **options)


def authors_lime(samples: int = SAMPLES, features: int = K) -> Lime:
    """LIME as the paper's experiments ran it."""
    return paper_lime(samples, features, design="plain", surrogate=False, intercept="mean")


def removed(e: Explanation) -> list[int]:
    """The parts that greedy removal took, up to the step at which every removal would have raised the score."""
    found = list[int]()
    for part in e.settings["removed"]:
        if e.scores[part] < 0:
            break
        found.append(int(part))
    return found


@lru_cache(maxsize=4)
def windows(data: str, name: str, split: int, kind: str, width: float | None = None, folds: int = 3) -> Parzen:
    """Parzen windows over the training reviews, fitted to labels that a model of the same kind predicts for unseen folds."""
    reviews, pipeline, _ = trained(data, name, split, kind)
    texts = [reviews.parts(text).text for text in reviews.train]
    labels = cross_val_predict(pipeline, list(reviews.train), reviews.train_labels, cv=folds)
    chosen = WIDTHS[name, "tree" if kind.startswith("tree") else kind] if width is None else width
    return Parzen(background=texts, labels=labels, width=chosen, features=K)

