"""Why does a classifier see this in an image? lime's names, whytrust's answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel
from whytrust.compat.lime.asking import Neighbourhood, ask
from whytrust.compat.lime.explanation import explained, fill, pyplot_figure
from whytrust.compat.lime.lime_base import LimeBase
from whytrust.compat.lime.seeds import seed_of
from whytrust.compat.lime.wrappers.scikit_image import SegmentationAlgorithm
from whytrust.core import Floats, generator
from whytrust.domains.image import ImageParts, check_image
from whytrust.explanation import Explanation, Gallery


class ImageExplanation:
    """Weights of an image's segments; numbers of features are the labels in `segments`.

    As with texts and tables, every label keeps its own score and local prediction, and `whytrust` its full explanation.
    """

    def __init__(self, image: NDArray[Any], segments: NDArray[Any]) -> None:
        """Empty: explain_instance puts the answers in."""
        self.image, self.segments = image, segments
        self.top_labels: list[int] | None = None
        self.predict_proba: Floats | None = None
        self.local_exp: dict[int, list[tuple[int, float]]] = {}
        self.intercept: dict[int, float] = {}
        self.score: float | None = None
        self.local_pred: Floats | None = None
        self.scores: dict[int, float] = {}
        self.local_preds: dict[int, Floats] = {}
        self.whytrust: dict[int, Explanation] = {}

    def available_labels(self) -> list[int]:
        """The labels that were explained, the most probable first where top_labels was given."""
        return list(self.top_labels or self.local_exp)

    def get_image_and_mask(self, label: int, positive_only: bool = True, negative_only: bool = False, hide_rest: bool = False,
                           num_features: int = 5, min_weight: float = 0.0) -> tuple[NDArray[Any], NDArray[Any]]:
        """(image, mask): mask is 1 on the segments chosen, −1 where they speak against the label.

        With neither of the two, segments of both signs are chosen, and painted green (for) and red (against).
        """
        weights = explained(self, label)
        if positive_only and negative_only:
            raise ValueError("positive_only and negative_only cannot both be True; pass positive_only=False with negative_only")
        one_sided = positive_only or negative_only
        sign = 1 if positive_only else -1
        if one_sided:
            chosen = [(i, w) for i, w in weights if sign * w > max(min_weight, 0.0)][:num_features]
        else:
            chosen = [(i, w) for i, w in weights[:num_features] if abs(w) >= min_weight]
        shown, mask = self.image.copy(), np.zeros(self.segments.shape, dtype=np.int64)
        if hide_rest:
            shown[..., :3] = 0
        for i, weight in chosen:
            here = self.segments == i
            shown[here] = self.image[here]
            mask[here] = 1 if one_sided or weight >= 0 else -1
            if not one_sided and self.image.shape[-1] >= 3:
                shown[here, 1 if weight >= 0 else 0] = self.image[..., :3].max()
        return shown, mask

    def as_pyplot_figure(self, label: int | None = None, figsize: tuple[float, float] | None = None) -> Any:
        """whytrust's figure of a label; None is the first one."""
        chosen = self.available_labels()[0] if label is None else label
        explained(self, chosen)
        return pyplot_figure(self.whytrust[chosen], figsize)

    def as_html(self) -> str:
        """whytrust's page of every label that was explained."""
        return Gallery(tuple(self.whytrust[label] for label in self.available_labels())).as_html()


class LimeImageExplainer:
    """Which segments speak for a class? lime's constructor; the same call gives the same answer, and explainers pickle."""

    def __init__(self, kernel_width: float = 0.25, kernel: Callable[..., Any] | None = None, verbose: bool = False,
                 feature_selection: str = "auto", random_state: Any = None) -> None:
        """random_state: None is seed 0."""
        self.seed = self.random_state = seed_of(random_state)
        self.kernel, self.kernel_width = kernel, float(kernel_width)
        self.feature_selection, self.verbose = feature_selection, verbose
        self.base = LimeBase(self._neighbourhood().kernel_function, verbose, self.seed)

    def explain_instance(self, image: Any, classifier_fn: Any, labels: Iterable[int] = (1,), hide_color: Any = None,
                         top_labels: int | None = 5, num_features: int = 100000, num_samples: int = 1000, batch_size: int = 10,
                         segmentation_fn: Callable[[Any], Any] | None = None, distance_metric: Any = "cosine",
                         model_regressor: Any = None, random_seed: int | None = None,
                         progress_bar: bool = True) -> ImageExplanation:
        """Explain the `top_labels` most probable classes, or `labels`; classifier_fn gets arrays (n, H, W, channels).

        A grey image (H, W) becomes three equal channels, as in lime; an alpha channel is passed on and never hidden.
        """
        pixels = check_image(image)
        if pixels.ndim == 2:
            pixels = np.repeat(pixels[..., None], 3, axis=2)
        if hide_color is not None and np.ndim(hide_color) > 1:
            raise ValueError("hide_color must be None (each segment's mean), a number or one number a channel, got an array of "
                             f"shape {np.shape(hide_color)}; whytrust.explain(…, fill='blur') hides behind a blurred image")
        segment = segmentation_fn or SegmentationAlgorithm("quickshift", kernel_size=4, max_dist=200, ratio=0.2,
                                                           random_seed=self.seed if random_seed is None else random_seed)
        segments = np.asarray(segment(pixels))

        def cut(model: CheckedModel) -> ImageParts:
            return ImageParts.cut(pixels, segments, "segment_mean" if hide_color is None else hide_color, model.layout)

        how = self._neighbourhood(samples=num_samples, features=num_features, metric=distance_metric, regressor=model_regressor)
        answers = ask(classifier_fn, cut, how, lambda: generator(self.seed, "explain"), labels=labels, top_labels=top_labels,
                      batch_size=batch_size, watched=progress_bar, verbose=self.verbose, seed=self.seed)
        ids = np.unique(segments).tolist()
        renamed = {label: replace(e, names=_called(e.names, ids)) for label, e in answers.explanations.items()}
        found = ImageExplanation(pixels, segments)
        fill(found, replace(answers, explanations=renamed), ids)
        found.predict_proba = answers.scores
        return found

    def _neighbourhood(self, **of_a_call: Any) -> Neighbourhood:
        return Neighbourhood(self.kernel_width, self.kernel, self.feature_selection, **of_a_call)


def _called(names: Iterable[str], ids: Iterable[int]) -> tuple[str, ...]:
    """Segments by their own labels, as local_exp has them; whytrust counts from 1."""
    return tuple(re.sub(r"\d+", str(i), name, count=1) for i, name in zip(ids, names, strict=True))
