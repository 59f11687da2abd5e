"""How long does an explanation take, in units of the bare model on as many inputs of the same kind?

1.0 is the model alone. Methods take turns, so that a slow minute of the machine hits all of them; the median counts.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from typing import Any

import numpy as np
import torch
from captum._utils.models.linear_model import SkLearnRidge
from captum.attr import Lime as CaptumLime
from lime.lime_image import LimeImageExplainer
from lime.lime_tabular import LimeTabularExplainer
from lime.lime_text import LimeTextExplainer
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import whytrust as wt
from whytrust.domains.image import ImageParts
from whytrust.domains.tabular import TableParts, TableStatistics
from whytrust.domains.text import TextParts
from whytrust.models import demos

BARE = "model alone"
Job = dict[str, Callable[[], Any]]
"""What to time, by name; the model alone is one of them."""


def text_job(samples: int) -> Job:
    """The longest review to TF-IDF + logistic regression; ten words wanted."""
    demo = demos.load("reviews")
    text = max(demo.inputs, key=lambda t: len(set(t.split())))
    random = np.random.default_rng(0)
    parts = TextParts.cut(text, "bag")
    d = len(parts.names)
    kept = np.argsort(random.random((samples, d)), axis=1) < random.integers(0, d, samples)[:, None]
    texts = parts.compose(kept, random)
    model = wt.model(demo.model, **demo.model_options)
    lime = LimeTextExplainer(random_state=0)
    return {
        BARE: lambda: demo.model.predict_proba(texts),
        "whytrust": lambda: wt.explain(model, text, parts="bag", samples=samples, variant="reference"),
        "lime": lambda: lime.explain_instance(text, demo.model.predict_proba, num_samples=samples),
    }


def table_job(samples: int) -> Job:
    """A row of 30 numbers to a forest of 100 trees; ten columns wanted, training data summed up beforehand for all."""
    data = load_breast_cancer()
    forest = RandomForestClassifier(100, random_state=0).fit(data.data, data.target)
    row, summed_up = data.data[0], TableStatistics.fit(data.data)
    rows = TableParts.cut(row, summed_up).draw(samples, np.random.default_rng(0)).rows(slice(None))
    lime = LimeTabularExplainer(data.data, random_state=0)
    return {
        BARE: lambda: forest.predict_proba(rows),
        "whytrust": lambda: wt.explain(forest, row, background=summed_up, samples=samples, variant="reference"),
        "lime": lambda: lime.explain_instance(row, forest.predict_proba, num_samples=samples),
    }


def image_job(demo_name: str, samples: int, batch_size: int) -> Job:
    """An image in a grid of 30 parts to a torch net, in batches of the same size for all; hidden parts show their mean."""
    demo = demos.load(demo_name)
    model = wt.model(demo.model, **demo.model_options)
    image = np.asarray(demo.inputs[0])
    parts = ImageParts.cut(image, "grid:6x5")
    random = np.random.default_rng(0)
    images = parts.compose(random.random((samples, len(parts.names))) < 0.5, random)
    target = int(model(image[None])[0].argmax())
    lime = LimeImageExplainer(random_state=0)
    captum = CaptumLime(lambda batch: demo.model(batch).softmax(dim=1), SkLearnRidge(alpha=1.0))
    prepare = demo.model_options["preprocess"]
    hidden = parts.compose(np.zeros((1, len(parts.names)), bool), random)
    as_input, baseline = torch.from_numpy(prepare(image[None])), torch.from_numpy(prepare(hidden))
    labels = torch.from_numpy(parts.labels.astype(np.int64))[None, None]

    def ask_lime() -> None:
        with redirect_stderr(StringIO()):  # its progress bar cannot be turned off
            lime.explain_instance(image, lambda batch: model(batch if image.ndim == 3 else batch[..., 0]), labels=(target,),
                                  top_labels=None, num_samples=samples, batch_size=batch_size,
                                  segmentation_fn=lambda _: parts.labels)

    return {
        BARE: lambda: [model(images[first:first + batch_size]) for first in range(0, samples, batch_size)],
        "whytrust": lambda: wt.explain(model, image, parts=parts.labels, target=target, samples=samples, variant="reference",
                                       batch_size=batch_size),
        "lime": ask_lime,
        "captum": lambda: captum.attribute(as_input, target=target, baselines=baseline, feature_mask=labels, n_samples=samples,
                                           perturbations_per_eval=batch_size, return_input_shape=False),
    }


def measure(quick: bool) -> list[dict[str, Any]]:
    """A row a job and method: the median ratio to the model alone, and its range."""
    repeats = 3 if quick else 9
    samples = 1000 if quick else 5000
    jobs: list[tuple[str, Callable[[], Job]]] = [
        (f"text, TF-IDF + logistic regression, N {samples}", lambda: text_job(samples)),
        (f"table, 30 columns, forest of 100, N {samples}", lambda: table_job(samples)),
        ("image, digits CNN, 30 parts, N 64", lambda: image_job("digits", 64, 64)),
    ]
    if not quick:
        jobs.append(("image, EfficientNet-Lite0, 30 parts, N 64, batches of 8", lambda: image_job("photos", 64, 8)))
    rows = []
    for name, make in jobs:
        print(f"  {name}: {repeats} turns", file=sys.stderr, flush=True)
        rows += _timed(name, make(), repeats)
    return rows


def _timed(name: str, job: Job, repeats: int) -> list[dict[str, Any]]:
    seconds: dict[str, list[float]] = {method: [] for method in job}
    for turn in range(repeats + 1):
        for method, run in job.items():
            start = time.perf_counter()
            run()
            if turn:  # the first turn warms up
                seconds[method].append(time.perf_counter() - start)
    bare = statistics.median(seconds[BARE])
    return [{"job": name, "method": method, "seconds": statistics.median(times), "ratio": statistics.median(times) / bare,
             "ratio_low": min(times) / bare, "ratio_high": max(times) / bare, "turns": repeats}
            for method, times in seconds.items()]
