"""Readable stand-ins for a model that cannot be read: trained on a user's own inputs, with the model's own decisions as labels.

What explanations find in them can be counted, for it is known what they use. They say how an explainer does on inputs and on
decisions like these; they do not say what the model itself goes by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

from whytrust import api
from whytrust.checked import CheckedModel
from whytrust.core import Batch, Floats, Parts, generator
from whytrust.domains.audio import AudioParts
from whytrust.domains.image import segment
from whytrust.domains.spectra import stft, waves
from whytrust.domains.tabular import TableParts
from whytrust.domains.vectors import RowVectors
from whytrust.studies.interpretable import Columns, Features, Used, WordFeatures, truth_of

OWN, LINEAR, TREE = "the model itself", "sparse linear model", "decision tree"
SHORT = {OWN: "own", LINEAR: "linear", TREE: "tree"}
"""What a model is called in a case's name."""
WORD = r"\w+(?:['’-]\w+)*"
"""A word as parts of a text have it, near enough: what counts is that its features are words as they are written."""
STEPS = 45
"""How often C is lowered, by a fifth each time, from 1."""
SLIGHT = 0.05
"""Coefficients smaller than this share of the largest are none: nobody could be blamed for not finding them."""
QUIET = 0.01
"""Energies are told apart down to this share of their mean; below, everything is silence."""


@dataclass(frozen=True, eq=False)
class StandIn:
    """A model whose reasons are known: itself as any other model, and what it is made of."""

    name: str
    model: CheckedModel
    estimator: Any
    features: Features
    agrees: float | None = None  # with the decisions it was trained on

    def truth(self, parts: Parts, target: int) -> Used:
        """Which parts it uses for an input, and which of them can change the target's score."""
        return truth_of(self.estimator, self.features, parts, target)


# --- features of images, sounds and rows --------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def _means(labels: bytes, count: int) -> Any:
    """(places, parts), sparse: what takes the mean over each part."""
    flat = np.frombuffer(labels, dtype=np.int32)
    sizes = np.bincount(flat, minlength=count)
    return sparse.csr_array((1 / sizes[flat], (np.arange(len(flat)), flat)), shape=(len(flat), count))


def _averaging(labels: NDArray[Any]) -> Any:
    return _means(np.ascontiguousarray(labels.ravel(), dtype=np.int32).tobytes(), int(labels.max()) + 1)


@dataclass(frozen=True)
class Brightness:
    """The mean brightness of each cell of a grid, channel by channel; what is transparent does not count."""

    grid: str
    channels_first: bool = False

    def _pixels(self, batch: Batch) -> tuple[Floats, Any]:
        """(n, places, channels), and what averages over places."""
        images = np.asarray(batch, dtype=np.float64)
        if images.ndim == 4 and self.channels_first:
            images = np.moveaxis(images, 1, -1)
        images = images.reshape(*images.shape[:3], -1)
        mean = _averaging(segment(np.empty(images.shape[1:3]), self.grid))
        return images.reshape(len(images), -1, images.shape[-1]), mean

    def __call__(self, batch: Batch) -> Floats:
        """(n, cells × channels), the channels of a cell side by side."""
        pixels, mean = self._pixels(batch)
        colours = pixels[..., :3] if pixels.shape[-1] == 4 else pixels
        return np.stack([colours[..., c] @ mean for c in range(colours.shape[-1])], axis=-1).reshape(len(pixels), -1)

    def pulled(self, batch: Batch, slopes: Floats) -> Floats:
        """Slopes of the features -> of the pixels."""
        pixels, mean = self._pixels(batch)
        of_pixels = np.zeros_like(pixels)
        by_cell = slopes.reshape(len(pixels), mean.shape[1], -1)
        for c in range(by_cell.shape[-1]):
            of_pixels[..., c] = by_cell[..., c] @ mean.T
        shape = np.shape(batch)
        if self.channels_first and len(shape) == 4:
            return np.moveaxis(of_pixels.reshape(shape[0], *shape[2:], shape[1]), -1, 1)
        return of_pixels.reshape(shape)

    def owned(self, parts: Any) -> Columns:
        """The channels of a cell."""
        channels = self(parts.compose(np.ones((1, len(parts.names)), bool), generator(0))).shape[1] // len(parts.names)
        return tuple(np.arange(part * channels, (part + 1) * channels) for part in range(len(parts.names)))


@lru_cache(maxsize=16)
def _charted(shape: tuple[int, ...], grid: str, rate: int | None) -> AudioParts:
    """Where the parts of any sound of this shape lie."""
    return AudioParts.cut(np.zeros(shape), grid, rate=rate if len(shape) == 1 else None, fill=0.0)


@dataclass(frozen=True)
class Energy:
    """How loud a waveform is in each part, on a logarithmic scale with silence at 0; of a spectrogram, the mean of each part.

    A waveform's frequencies are cut as its parts are. There windows overlap: hiding a part is heard, a little, in the next.
    """

    grid: str
    rate: int | None = None
    floor: float = 1.0  # what counts as next to silence

    def _spectra(self, batch: Floats) -> tuple[AudioParts, Any, Any]:
        """The chart, what averages over its parts, and the transforms of waveforms cut in frequency."""
        chart = _charted(batch.shape[1:], self.grid, self.rate)
        made = None if chart.window is None else np.stack([stft(wave, chart.window) for wave in batch])
        return chart, _averaging(chart.labels), made

    def energies(self, batch: Batch) -> Floats:
        """(n, parts), as they are."""
        sounds = np.asarray(batch, dtype=np.float64)
        _, mean, spectra = self._spectra(sounds)
        return np.asarray((sounds**2 if spectra is None else np.abs(spectra) ** 2).reshape(len(sounds), -1) @ mean)

    def __call__(self, batch: Batch) -> Floats:
        """(n, parts)."""
        sounds = np.asarray(batch, dtype=np.float64)
        if sounds.ndim == 3:
            return np.asarray(sounds.reshape(len(sounds), -1) @ self._spectra(sounds)[1])
        return np.asarray(np.log1p(self.energies(sounds) / self.floor))

    def pulled(self, batch: Batch, slopes: Floats) -> Floats:
        """Slopes of the features -> of samples, or of cells."""
        sounds = np.asarray(batch, dtype=np.float64)
        chart, mean, spectra = self._spectra(sounds)
        if sounds.ndim == 3:
            return np.asarray(slopes @ mean.T).reshape(sounds.shape)
        of_energy = (slopes / (self.floor + self.energies(sounds))) @ mean.T
        if spectra is None or chart.window is None:
            return np.asarray(2 * sounds * of_energy)
        weighted = of_energy.reshape(spectra.shape) * spectra
        weighted[..., 1:-1] /= 2  # the way back counts each frequency but the first and the last twice
        begin = 3 * (chart.window // 4)
        return np.asarray(waves(weighted, chart.window)[:, begin:begin + sounds.shape[1]] * (12 / chart.window))

    def owned(self, parts: Any) -> Columns:
        """A number each."""
        return tuple(np.array([part]) for part in range(len(parts.names)))

    @classmethod
    def fitted(cls, grid: str, rate: int | None, whole: Sequence[Batch]) -> Energy:
        """With a floor that fits these sounds."""
        if np.ndim(whole[0]) == 3:
            return cls(grid, rate)
        mean = float(np.mean([cls(grid, rate).energies(one).mean() for one in whole]))
        return cls(grid, rate, max(QUIET * mean, 1e-12))


@dataclass(frozen=True, eq=False)
class RowFeatures:
    """A row's numbers in standard deviations from their mean, its categories as 0 and 1, what is missing as another."""

    columns: tuple[Any, ...]
    frame: bool
    dtype: str

    def _vectors(self, batch: Batch) -> RowVectors:
        return RowVectors.of(batch, self.columns, self.frame, self.dtype)

    def __call__(self, batch: Batch) -> Floats:
        """(n, features)."""
        return np.asarray(self._vectors(batch).matrix.toarray(), dtype=np.float64)

    @property
    def numbers(self) -> bool:
        """Is every column a number in an array, so that rows have slopes?"""
        return not self.frame and all(column.numeric and column.atoms[-1] is not None for column in self.columns)

    def pulled(self, batch: Batch, slopes: Floats) -> Floats:
        """Slopes of standardised columns -> of the columns."""
        return np.asarray(slopes / np.array([column.sd for column in self.columns]))

    def owned(self, parts: TableParts) -> Columns:
        """All features of a column."""
        vectors = self._vectors(parts.compose(np.ones((1, len(parts.names)), bool), generator(0)))
        ends = [*vectors.offsets[1:], vectors.matrix.shape[1]]
        return tuple(np.arange(start, end) for start, end in zip(vectors.offsets, ends, strict=True))


# --- models -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Linear:
    """A logistic regression on standardised features: one logit, for the second of two classes."""

    features: Any
    estimator: Any
    mean: Floats
    scale: Floats
    kind = "a sparse linear model of known features"

    def __call__(self, batch: Batch) -> Floats:
        """(n, 1) logits."""
        return np.asarray(self.estimator.decision_function((self.features(batch) - self.mean) / self.scale)[:, None])


@dataclass(frozen=True, eq=False)
class SlopedLinear(Linear):
    """The same of inputs that are numbers: it has gradients, in closed form."""

    def pullback(self, batch: Batch, preprocess: None = None) -> tuple[Floats, Callable[[Floats], Floats]]:
        """(logits, weights of the logits -> gradient)."""
        slopes = self.estimator.coef_ / self.scale
        return self(batch), lambda weights: np.asarray(self.features.pulled(batch, weights @ slopes))


@dataclass(frozen=True, eq=False)
class Tree:
    """A decision tree of features: the shares of two classes in each leaf."""

    features: Any
    estimator: Any
    kind = "a decision tree of known features"

    def __call__(self, batch: Batch) -> Floats:
        """(n, 2) probabilities."""
        return np.asarray(self.estimator.predict_proba(self.features(batch)))


# --- training -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lesson:
    """What stand-ins are trained on: inputs as a model takes them, the decision on each (0 or 1), and how many features of each
    may be active: as many as an explanation may name."""

    parts: Sequence[Any]
    decisions: NDArray[np.intp]
    most: NDArray[np.intp]
    classes: tuple[str, str]
    seed: int = 0

    @property
    def whole(self) -> list[Batch]:
        """Each input, a batch of one."""
        return [one.compose(np.ones((1, len(one.names)), bool), generator(0)) for one in self.parts]


def stand_ins(lesson: Lesson, domain: str, cut: str | None, layout: str, rate: int | None = None) -> list[StandIn]:
    """A sparse linear model and a tree, each of features that parts can be held against."""
    if domain == "text":
        return _of_texts(lesson)
    whole, first = lesson.whole, lesson.parts[0]
    features: Any
    if domain == "image":
        features = Brightness(str(cut), layout == "NCHW")
    elif domain == "audio":
        features = Energy.fitted(str(cut), rate, whole)
    else:
        features = RowFeatures(first.statistics.columns, first.statistics.frame, first.statistics.dtype)
    made = [features(one)[0] for one in whole]
    if len({len(one) for one in made}) > 1:
        raise ValueError("all inputs must have the same features for a stand-in to be trained on them, got "
                         f"{min(map(len, made))} to {max(map(len, made))}; pass images that are all grey or all in colour")
    matrix, owned = np.array(made), features.owned(first)
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)

    def active(weighty: NDArray[np.bool_]) -> NDArray[np.intp]:
        return np.full(len(matrix), sum(bool(weighty[mine].any()) for mine in owned), dtype=np.intp)

    linear, tree = sparse_linear((matrix - mean) / scale, lesson, active), grown(matrix, lesson)
    sloped = domain != "tabular" or features.numbers
    function = (SlopedLinear if sloped else Linear)(features, linear, mean, scale)
    answers = [api.model(function, output="logit", classes=lesson.classes, layout=layout, name=LINEAR),
               api.model(Tree(features, tree), classes=lesson.classes, layout=layout, name=TREE)]
    agreed = [_agreed(linear, (matrix - mean) / scale, lesson), _agreed(tree, matrix, lesson)]
    return [StandIn(name, model, estimator, features, agrees) for name, model, estimator, agrees in
            zip((LINEAR, TREE), answers, (linear, tree), agreed, strict=True)]


def _of_texts(lesson: Lesson) -> list[StandIn]:
    bag = CountVectorizer(lowercase=False, binary=True, token_pattern=WORD)
    matrix = bag.fit_transform([one[0] for one in lesson.whole])

    def active(weighty: NDArray[np.bool_]) -> NDArray[np.intp]:
        return np.asarray(matrix[:, weighty].sum(axis=1), dtype=np.intp).ravel()

    found = []
    for name, estimator in ((LINEAR, sparse_linear(matrix, lesson, active)), (TREE, grown(matrix, lesson))):
        pipeline = Pipeline([("bag", bag), ("model", estimator)])
        model = api.model(pipeline, classes=lesson.classes, name=name)
        found.append(StandIn(name, model, estimator, WordFeatures(pipeline), _agreed(estimator, matrix, lesson)))
    return found


def _agreed(estimator: Any, matrix: Any, lesson: Lesson) -> float:
    return float(np.mean(estimator.predict(matrix) == lesson.decisions))


def sparse_linear(matrix: Any, lesson: Lesson, active: Callable[[NDArray[np.bool_]], NDArray[np.intp]]) -> LogisticRegression:
    """L1 logistic regression, its C lowered from 1 until no input has more active features than it may have.

    Slight coefficients are set to 0. The last that uses anything at all is kept where none is both sparse enough and not empty.
    Rare decisions weigh as much as frequent ones: else a model of few exceptions would use nothing.
    """
    kept = None
    for step in range(STEPS):
        estimator = LogisticRegression(C=0.8**step, l1_ratio=1.0, solver="liblinear", class_weight="balanced",
                                       max_iter=1000, random_state=lesson.seed % 2**32).fit(matrix, lesson.decisions)
        estimator.coef_[np.abs(estimator.coef_) < SLIGHT * np.abs(estimator.coef_).max()] = 0.0
        weighty = estimator.coef_[0] != 0
        if kept is not None and not weighty.any():
            return kept
        kept = estimator
        if (active(weighty) <= lesson.most).all():
            break
    assert kept is not None
    return kept


def grown(matrix: Any, lesson: Lesson) -> DecisionTreeClassifier:
    """A decision tree on whose ways there are no more features than an explanation may name."""
    return DecisionTreeClassifier(max_depth=int(lesson.most.max()), class_weight="balanced",
                                  random_state=lesson.seed % 2**32).fit(matrix, lesson.decisions)
