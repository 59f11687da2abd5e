"""Which few explanations show most of what a model does? (Ribeiro, Singh, Guestrin 2016, SP-LIME)"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from whytrust.api import model as wrap
from whytrust.compat.lime.lime_image import ImageExplanation
from whytrust.core import generator
from whytrust.coverage import submodular
from whytrust.domains.image import ImageParts
from whytrust.features import shared_features


class SubmodularPick:
    """Explain many inputs, then pick few that together cover the features that matter most.

    A feature's importance is √Σ|weight| over all explanations; picks are greedy, ties go to the earlier input, and the same
    call picks the same. Features are matched by their words: the bins or categories of a table, the words of a text. Segments
    of images that are all cut alike (a grid) are matched by their place. Where they are not, segments that look alike, also to
    the model, are one feature, which lime cannot do; the model is then asked about each segment alone and the rest without it.
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
        if num_exps_desired > len(self.explanations):
            warnings.warn(f"num_exps_desired is {num_exps_desired} and there are {len(self.explanations)} explanations: "
                          "all are picked", stacklevel=2)
        if not self.explanations or _cut_alike(self.explanations):
            weights: Any = explanation_matrix(self.explanations)
        else:
            weights = image_matrix(self.explanations, predict_fn, explainer.seed, kwargs.get("hide_color"))
        self.V = picked(weights, min(int(num_exps_desired), len(self.explanations)))
        self.sp_explanations = [self.explanations[i] for i in self.V]


def explanation_matrix(explanations: Sequence[Any]) -> Any:
    """(explanations, features), sparse: the summed |weight| of each feature over the labels of each explanation."""
    columns: dict[Any, int] = {}
    cells = [(row, columns.setdefault(name, len(columns)), abs(weight))
             for row, e in enumerate(explanations) for name, weight in _features(e)]
    rows, features, weights = zip(*cells, strict=True) if cells else ((), (), ())
    return sparse.csr_matrix((weights, (rows, features)), shape=(len(explanations), max(len(columns), 1)), dtype=np.float64)


def image_matrix(explanations: Sequence[ImageExplanation], predict_fn: Any, seed: int, hide_color: Any = None) -> Any:
    """The same for images that are cut in different ways: a feature is a group of segments that are alike."""
    model = wrap(predict_fn)
    fill = "segment_mean" if hide_color is None else hide_color
    parts = [ImageParts.cut(e.image, e.segments, fill, model.layout) for e in explanations]
    shared = shared_features(model, parts, seed=seed)
    # Of every image as many labels, the likeliest first: explain_instance explains as many of each.
    labels = zip(*(e.available_labels() for e in explanations), strict=True)
    return sum(shared.matrix([e.whytrust[own] for e, own in zip(explanations, row, strict=True)]) for row in labels)


def picked(weights: Any, budget: int) -> list[int]:
    """Greedy: each pick adds the most importance not yet covered."""
    return [] if budget == 0 else list(submodular(weights, budget).indices)


def _features(e: Any) -> list[tuple[Any, float]]:
    if isinstance(e, ImageExplanation):
        return [pair for label in e.available_labels() for pair in e.local_exp[label]]
    labels = e.available_labels() if e.mode == "classification" else [1]
    return [pair for label in labels for pair in e.as_list(label=label)]


def _cut_alike(explanations: Sequence[Any]) -> bool:
    """Are features of one explanation features of the others, by their names or, of images, by their places?"""
    first = explanations[0]
    return not isinstance(first, ImageExplanation) or all(np.array_equal(first.segments, e.segments) for e in explanations)
