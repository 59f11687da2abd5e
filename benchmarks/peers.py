"""The same question put to whytrust, lime and captum: lime's law of draws, lime's kernel, least squares without a ridge.

Every method is a function of (number of samples, seed) that returns one weight a part and how many inputs the model was asked.
captum has no law for texts or tables, so there its LimeBase gets lime's; its first sample is the input itself, as in lime.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

import numpy as np
import torch
from captum._utils.models.linear_model import SkLearnLinearRegression
from captum.attr import Lime as CaptumLime
from captum.attr import LimeBase
from lime.lime_image import LimeImageExplainer
from lime.lime_tabular import LimeTabularExplainer
from lime.lime_text import LimeTextExplainer
from sklearn.linear_model import LinearRegression

import whytrust as wt
from benchmarks.cases import LIME_WIDTH, Case, Floats, MaskCase, TableCase, lime_kernel

TARGET = 1
"""The column of a case's answers that is explained."""
Method = Callable[[int, int], tuple[Floats, int]]
SAME_ESTIMAND = {"variant": "reference", "features": "all", "selection": "none", "ridge": 0.0}


class Counted:
    """A model that counts the inputs it is asked about."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        """Nothing was asked yet."""
        self.function, self.inputs = function, 0

    def __call__(self, batch: Any) -> Any:
        """The answers of the function."""
        self.inputs += len(batch)
        return self.function(batch)


def methods_of(case: Case) -> dict[str, Method]:
    """whytrust first, then its peers."""
    if isinstance(case, TableCase):
        return _on_tables(case)
    return _on_texts(case) if case.kind == "text" else _on_images(case)


def _on_texts(case: MaskCase) -> dict[str, Method]:
    def ours(samples: int, seed: int) -> tuple[Floats, int]:
        model = Counted(case.of_texts)
        found = wt.explain(model, case.item, parts="bag", target=TARGET, seed=seed, samples=samples, **SAME_ESTIMAND)
        return found.scores, model.inputs

    def lime(samples: int, seed: int) -> tuple[Floats, int]:
        model = Counted(case.of_texts)
        explainer = LimeTextExplainer(feature_selection="none", bow=True, random_state=seed)
        found = explainer.explain_instance(case.item, model, num_samples=samples, model_regressor=LinearRegression())
        return _by_part(found.local_exp[TARGET]), model.inputs

    def captum(samples: int, seed: int) -> tuple[Floats, int]:
        random = np.random.default_rng(seed)
        kept = random.integers(0, case.d, samples)
        order = np.argsort(random.random((samples, case.d)), axis=1)
        return _captum_base(case.answers, order < kept[:, None], lambda rows: rows, _mask_similarity)

    return {"whytrust": ours, "lime": lime, "captum": captum}


def _on_images(case: MaskCase) -> dict[str, Method]:
    def ours(samples: int, seed: int) -> tuple[Floats, int]:
        model = Counted(case.of_images)
        found = wt.explain(model, case.item, parts=case.labels, fill=0.0, target=TARGET, seed=seed, samples=samples,
                           **SAME_ESTIMAND)
        return found.scores, model.inputs

    def lime(samples: int, seed: int) -> tuple[Floats, int]:
        model = Counted(case.of_images)
        explainer = LimeImageExplainer(feature_selection="none", random_state=seed)
        with redirect_stderr(StringIO()):  # its progress bar cannot be turned off
            found = explainer.explain_instance(case.item, model, labels=(TARGET,), top_labels=None, hide_color=0,
                                               num_samples=samples, batch_size=256, segmentation_fn=lambda _: case.labels,
                                               model_regressor=LinearRegression())
        return _by_part(found.local_exp[TARGET]), model.inputs

    def captum(samples: int, seed: int) -> tuple[Floats, int]:
        model = Counted(lambda images: torch.from_numpy(case.of_images(images.numpy())))
        masks = np.random.default_rng(seed).random((samples, case.d)) < 0.5
        explainer = CaptumLime(model, SkLearnLinearRegression(), _mask_similarity, _generator(masks))
        labels = case.labels if case.item.ndim == 2 else np.repeat(case.labels[..., None], case.item.shape[2], axis=2)
        found = explainer.attribute(torch.from_numpy(case.item)[None], target=TARGET, baselines=0, n_samples=samples,
                                    feature_mask=torch.from_numpy(labels.astype(np.int64))[None],
                                    perturbations_per_eval=256, return_input_shape=False)
        return found.numpy().ravel().astype(np.float64), model.inputs

    return {"whytrust": ours, "lime": lime, "captum": captum}


def _on_tables(case: TableCase) -> dict[str, Method]:
    every = list(range(case.d))

    def ours(samples: int, seed: int) -> tuple[Floats, int]:
        model = Counted(case.answers)
        found = wt.explain(model, case.row, background=case.background, categorical=every, target=TARGET, seed=seed,
                           samples=samples, **SAME_ESTIMAND)
        return found.scores, model.inputs

    def lime(samples: int, seed: int) -> tuple[Floats, int]:
        model = Counted(case.answers)
        explainer = LimeTabularExplainer(case.background, categorical_features=every, discretize_continuous=False,
                                         feature_selection="none", random_state=seed)
        found = explainer.explain_instance(case.row, model, labels=(TARGET,), num_features=case.d, num_samples=samples,
                                           model_regressor=LinearRegression())
        return _by_part(found.local_exp[TARGET]), model.inputs

    def captum(samples: int, seed: int) -> tuple[Floats, int]:
        random = np.random.default_rng(seed)
        drawn = np.column_stack([random.choice(len(f), samples, p=f) for f in case.frequencies])
        width = 0.75 * math.sqrt(case.d)
        own = torch.from_numpy(case.row)
        return _captum_base(case.answers, drawn, lambda rows: rows == own,
                            lambda _, __, same: float(lime_kernel(np.sqrt(case.d - float(same.sum())), width)), case.row)

    return {"whytrust": ours, "lime": lime, "captum": captum}


def _captum_base(answers: Callable[[Any], Floats], drawn: Any, interpret: Callable[[torch.Tensor], torch.Tensor],
                 similarity: Callable[..., float], original: Any = None) -> tuple[Floats, int]:
    """captum on inputs that are masks or rows themselves; `interpret` says how its linear model sees them."""
    model = Counted(lambda rows: torch.from_numpy(answers(rows.numpy())))
    original = np.ones_like(drawn[0]) if original is None else original
    explainer = LimeBase(model, SkLearnLinearRegression(), similarity, _generator(drawn, original),
                         perturb_interpretable_space=False, from_interp_rep_transform=None,
                         to_interp_rep_transform=lambda rows, _: interpret(rows))
    found = explainer.attribute(torch.from_numpy(original)[None], target=TARGET, n_samples=len(drawn),
                                perturbations_per_eval=256)
    return found.numpy().ravel().astype(np.float64), model.inputs


def _generator(drawn: Any, original: Any = 1) -> Callable[..., Iterator[torch.Tensor]]:
    """The draws one by one, as captum takes them; the first is the input itself."""
    rows = torch.from_numpy(np.vstack([np.broadcast_to(original, drawn[:1].shape), drawn[1:]]).astype(np.int64))

    def draw(*_: Any, **__: Any) -> Iterator[torch.Tensor]:
        yield from rows.split(1)

    return draw


def _mask_similarity(_: Any, __: Any, mask: torch.Tensor, **___: Any) -> float:
    return float(lime_kernel(1 - math.sqrt(float(mask.sum()) / mask.numel()), LIME_WIDTH))


def _by_part(pairs: list[tuple[int, float]]) -> Floats:
    return np.array([weight for _, weight in sorted(pairs)])
