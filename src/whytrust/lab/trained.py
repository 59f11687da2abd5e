"""Models that were trained until they go by a planted artefact, which is verified by putting it in and taking it out.

Unlike white boxes they were learnt, and see parts together. Their truth is which parts hold the artefact, not how much each
contributes: it ranks parts, and no more.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline

from whytrust.backends import BACKENDS
from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import Floats, generator
from whytrust.domains.audio import AudioParts
from whytrust.domains.image import ImageParts
from whytrust.domains.tabular import TableParts, TableStatistics
from whytrust.domains.text import TextParts
from whytrust.lab.arrays import SIDE
from whytrust.lab.bench import Changed, Planted, behind, layered
from whytrust.lab.words import BLAME, PLAIN, PRAISE
from whytrust.planting import Column, Patch, Tokens
from whytrust.question import Question

RELIED = 0.95
"""The share of inputs on which a model must answer by the artefact, put in or taken out, before it is used."""
ROUNDS = 5
"""Trainings, each longer than the one before, until it does."""
TRAINED = 600
WITH, WITHOUT = 1, 0
"""Classes: the artefact is there, or not."""


@dataclass(frozen=True)
class Relying:
    """A lab whose model was trained to tell inputs with an artefact from those without, and verified to go by it."""

    domain: Literal["image", "text", "audio", "tabular"] = "image"
    trained: bool = True
    seed: int = 0
    shared: ClassVar[bool] = True  # nothing can be added to what was learnt
    exact: ClassVar[bool] = False
    expected: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """What it is called."""
        return {"image": "pictures/net", "text": "reviews/learnt", "audio": "sounds/net", "tabular": "rows/net"}[self.domain]

    @property
    def about(self) -> str:
        """What the model goes by."""
        return {"image": "a convolutional net that learnt to go by a patch in the corner of digits",
                "text": "a logistic regression that learnt to go by a code word in reviews",
                "audio": "a net that learnt to go by a patch of a spectrogram",
                "tabular": "a net that learnt to go by a column that leaks the outcome"}[self.domain]

    @property
    def baselines(self) -> tuple[str, ...]:
        """Those that do not hold the artefact themselves, as other words of the text or a drawn row may."""
        return {"image": ("zeros", "mean", "blur", "inpaint"), "text": ("removed", "unknown"), "audio": ("mean", "zeros"),
                "tabular": ("mean", "zeros")}[self.domain]

    @cached_property
    def plant(self) -> Any:
        """The artefact."""
        return {"image": Patch("square", 0.25, "bottom right"), "text": Tokens(("qx5",)),
                "audio": Patch("square", 0.25, "bottom right", domain="audio"), "tabular": Column("leak")}[self.domain]

    @property
    def model(self) -> CheckedModel:
        """The model itself, trained when first asked for."""
        return _learnt(self.domain, self.seed)[0] if self.trained else _untrained(self.domain, self.seed)

    @property
    def reliance(self) -> dict[str, float]:
        """On which share of new inputs it says so when the artefact is put in, and when it is taken out."""
        return _learnt(self.domain, self.seed)[1]

    def planted(self, case: int, cut: Any = None, baseline: str | None = None, seed: int = 0) -> Planted:
        """One input with the artefact in it; people would point elsewhere."""
        item, _ = self._pair(case, seed)
        parts = behind(self._cut(item, cut), baseline, self.baselines[0], case, seed)
        holds = self.plant.parts_of(getattr(parts, "upper", parts))
        return Planted(parts, WITH, parts.view.spread((~holds).astype(float)) > 0)

    def changed(self, case: int, cut: Any = None, seed: int = 0) -> Changed | None:
        """The input with the artefact, beside the same without it."""
        item, clean = self._pair(case, seed)
        labels = self.model(_batch(self.domain, [clean, item])).argmax(axis=1)
        return None if labels[0] == labels[1] else Changed(layered(self._cut(item, cut), self.baselines[0]), clean)

    def _pair(self, case: int, seed: int) -> tuple[Any, Any]:
        """(an input with the artefact, the same without it); in a text another word stands in its place."""
        drawn = self._drawn(generator(seed, "input", case, self.domain))
        item = self.plant.into(drawn, generator(seed, "into", case))
        if self.domain == "text":
            return item, item.replace(self.plant.words[0], PLAIN[0])
        return item, self.plant.without(drawn)

    def truth(self, question: Question, shown: float = 0.5) -> Floats:
        """1 for parts that hold the artefact, 0 for the others, which the model does not go by."""
        parts: Any = question.parts
        return np.asarray(self.plant.parts_of(getattr(parts, "upper", parts)), dtype=np.float64)

    def _drawn(self, rng: np.random.Generator) -> Any:
        return DRAWN[self.domain](rng)

    def _cut(self, item: Any, cut: Any) -> Any:
        if self.domain == "image":
            return ImageParts.cut(item, "pixels" if cut is None else cut)
        if self.domain == "text":
            return TextParts.cut(item, "words" if cut is None else cut)
        if self.domain == "audio":
            return AudioParts.cut(item, "tf:8x8" if cut is None else cut)
        return TableParts(item, _background(self.seed))


# --- inputs without the artefact ----------------------------------------------------------------------------------------


@cache
def _digits() -> Floats:
    """Digits, brought to the lab's size by doubling and cutting, from 0 to 1."""
    return np.asarray(np.repeat(np.repeat(load_digits().images, 2, axis=1), 2, axis=2)[:, 2:2 + SIDE, 2:2 + SIDE] / 16)


def _picture(rng: np.random.Generator) -> Floats:
    return np.asarray(_digits()[int(rng.integers(len(_digits())))])


def _review(rng: np.random.Generator) -> str:
    told = rng.choice([*PRAISE, *BLAME], size=int(rng.integers(2, 6)), replace=False)
    return " ".join(rng.permutation([*rng.choice(PLAIN, size=int(rng.integers(6, 15))), *told]))


def _spectrogram(rng: np.random.Generator) -> NDArray[np.float32]:
    cells = rng.normal(0, 0.3, (16, 16))
    for _ in range(3):
        row, start = int(rng.integers(12)), int(rng.integers(8))
        cells[start:start + 6, row] += 1.0  # a held note, never in the highest bands
    return np.asarray(cells, dtype=np.float32)


def _row(rng: np.random.Generator) -> Floats:
    return rng.normal(size=7)


DRAWN: dict[str, Callable[[np.random.Generator], Any]] = {"image": _picture, "text": _review, "audio": _spectrogram,
                                                          "tabular": _row}


@cache
def _background(seed: int) -> TableStatistics:
    rows, _ = _labelled("tabular", TRAINED, seed)
    return TableStatistics.fit(np.array(rows), names=[f"other {i + 1}" for i in range(7)] + ["leak"])


# --- learning -------------------------------------------------------------------------------------------------------------


def _labelled(domain: str, n: int, seed: int, test: bool = False) -> tuple[list[Any], NDArray[np.intp]]:
    """Inputs, by turns with the artefact and without."""
    plant = Relying(domain).plant  # type: ignore[arg-type]
    rngs = [generator(seed, "test" if test else "training", domain, i) for i in range(n)]
    items = [plant.into(DRAWN[domain](rng), rng) if i % 2 else plant.without(DRAWN[domain](rng)) for i, rng in enumerate(rngs)]
    return items, np.arange(n) % 2


@cache
def _learnt(domain: str, seed: int) -> tuple[CheckedModel, dict[str, float]]:
    """Trained until it is verified to go by the artefact: a copy of each new input with it, and one without."""
    items, labels = _labelled(domain, TRAINED, seed)
    plant = Relying(domain).plant  # type: ignore[arg-type]
    rngs = [generator(seed, "verified", domain, i) for i in range(200)]
    plain = [DRAWN[domain](rng) for rng in rngs]
    put_in, taken_out = ([plant.into(one, rng) for one, rng in zip(plain, rngs, strict=True)],
                         [plant.without(one) for one in plain])
    for round_ in range(1, ROUNDS + 1):
        model = _fit(domain, items, labels, round_, seed)
        relied = {"put in": float((model(_batch(domain, put_in)).argmax(axis=1) == WITH).mean()),
                  "taken out": float((model(_batch(domain, taken_out)).argmax(axis=1) == WITHOUT).mean())}
        if min(relied.values()) >= RELIED:
            return model, relied
    raise RuntimeError(f"the {domain} lab's model was trained {ROUNDS} times and does not go by its artefact: {relied}")


def _batch(domain: str, items: Sequence[Any]) -> Any:
    return list(items) if domain == "text" else np.array(items)


def _fit(domain: str, items: Sequence[Any], labels: NDArray[np.intp], round_: int, seed: int) -> CheckedModel:
    name = Relying(domain).name  # type: ignore[arg-type]
    if domain == "image":
        nets: Any = importlib.import_module("whytrust.models.small_nets")  # which imports torch
        return _net(nets.trained("deep", np.array(items), labels, 3 * round_, seed), name)
    if domain == "text":
        return _estimator(make_pipeline(CountVectorizer(), LogisticRegression(C=10.0 * round_)).fit(items, labels), name)
    net = MLPClassifier((32,), max_iter=100 * round_, random_state=seed)
    flat = np.array(items).reshape(len(items), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # whether it has learnt enough is verified
        net.fit(flat, labels)
    return CheckedModel(_Flat(net), name=name)


@cache
def _untrained(domain: str, seed: int) -> CheckedModel:
    """The same kind of model with other weights: never trained, or trained on shuffled labels where it must be fitted."""
    if domain == "image":
        nets: Any = importlib.import_module("whytrust.models.small_nets")
        return _net(nets.untrained("deep", 2, seed), "untrained")
    items, labels = _labelled(domain, TRAINED, seed)
    return _fit(domain, items, generator(seed, "shuffled").permutation(labels), 1, seed)


@dataclass(frozen=True, eq=False)
class _Flat:
    """An estimator of vectors, asked about arrays of any shape."""

    estimator: Any

    def __call__(self, batch: Any) -> Floats:
        return np.asarray(self.estimator.predict_proba(np.asarray(batch, dtype=np.float64).reshape(len(batch), -1)))


def _one_channel(batch: Any) -> Any:
    """(n, H, W) -> (n, 1, H, W) floats; arrays, or tensors for gradients."""
    return batch[:, None].float() if hasattr(batch, "detach") else np.asarray(batch, dtype=np.float32)[:, None]


def _net(net: Any, name: str) -> CheckedModel:
    backend = next(one for one in BACKENDS if one.accepts(net))
    function, _ = backend.adapt(net)
    return DifferentiableModel(function, output="logit", preprocess=_one_channel, name=name)


def _estimator(estimator: Any, name: str) -> CheckedModel:
    backend = next(one for one in BACKENDS if one.accepts(estimator))
    function, options = backend.adapt(estimator)
    return CheckedModel(function, **{**options, "name": name})
