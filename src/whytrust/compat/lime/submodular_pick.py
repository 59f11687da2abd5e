"""Which few explanations show most of what a model does? (Ribeiro, Singh, Guestrin 2016, SP-LIME)"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from whytrust.compat.lime.lime_image import ImageExplanation
from whytrust.core import Floats, generator


class SubmodularPick:
    """Explain many inputs, then pick few that together cover the features that matter most.

    A feature's importance is √Σ|weight| over all explanations; picks are greedy, ties go to the earlier input, and the same
    call picks the same. Features are matched by their words: the bins or categories of a table, the words of a text. Segments
    of different images have nothing in common, so images need a segmentation that cuts all of them alike (a grid).
    """

    def __init__(self, explainer: Any, data: Any, predict_fn: Any, method: str = "sample", sample_size: int = 1000,
                 num_exps_desired: int = 5, num_features: int = 10, **kwargs: Any) -> None:
        """Further arguments go to explain_instance; top_labels is 1 unless it or labels says otherwise."""
        if method not in ("sample", "full"):
            raise ValueError(f"method must be 'sample' or 'full', got {method!r}")
        if isinstance(num_exps_desired, bool) or int(num_exps_desired) < 1:
            raise ValueError(f"num_exps_desired must be a whole number >= 1, got {num_exps_desired!r}")
        if "labels" not in kwargs:
            kwargs.setdefault("top_labels", 1)
        order = np.arange(len(data))
        if method == "sample":
            if sample_size > len(data):
                warnings.warn(f"sample_size is {sample_size} and there are {len(data)} inputs: all are explained", stacklevel=2)
            order = generator(explainer.seed, "submodular pick").permutation(len(data))[:sample_size]
        self.explanations: list[Any] = []
        for i in order:
            row = data.iloc[int(i)] if hasattr(data, "iloc") else data[int(i)]
            self.explanations.append(explainer.explain_instance(row, predict_fn, num_features=num_features, **kwargs))
            _check_cut_alike(self.explanations)
        if num_exps_desired > len(self.explanations):
            warnings.warn(f"num_exps_desired is {num_exps_desired} and there are {len(self.explanations)} explanations: "
                          "all are picked", stacklevel=2)
        self.V = picked(explanation_matrix(self.explanations), min(int(num_exps_desired), len(self.explanations)))
        self.sp_explanations = [self.explanations[i] for i in self.V]


def explanation_matrix(explanations: Sequence[Any]) -> Floats:
    """(explanations, features): the summed |weight| of each feature over the labels of each explanation."""
    columns: dict[Any, int] = {}
    cells = [(row, columns.setdefault(name, len(columns)), abs(weight))
             for row, e in enumerate(explanations) for name, weight in _features(e)]
    matrix = np.zeros((len(explanations), len(columns)))
    for row, column, weight in cells:
        matrix[row, column] += weight
    return matrix


def picked(weights: Floats, budget: int) -> list[int]:
    """Greedy: each pick adds the most importance not yet covered."""
    covers, importance = weights > 0, np.sqrt(weights.sum(axis=0))
    left, chosen = np.ones(weights.shape[1], bool), list[int]()
    for _ in range(budget):
        gains = (covers & left) @ importance
        gains[chosen] = -1.0
        best = int(gains.argmax())
        chosen.append(best)
        left &= ~covers[best]
    return chosen


def _features(e: Any) -> list[tuple[Any, float]]:
    if isinstance(e, ImageExplanation):
        return [pair for label in e.available_labels() for pair in e.local_exp[label]]
    labels = e.available_labels() if e.mode == "classification" else [1]
    return [pair for label in labels for pair in e.as_list(label=label)]


def _check_cut_alike(explanations: Sequence[Any]) -> None:
    first, last = explanations[0], explanations[-1]
    if isinstance(last, ImageExplanation) and not np.array_equal(first.segments, last.segments):
        raise ValueError("images can be picked from only where all of them are cut alike, for a segment of one image is no "
                         "feature of another: pass images of one size and a segmentation_fn that returns the same labels for "
                         "each, such as a grid")
