"""Inputs whose right explanation is known: the model is asked about everything that lime could ever draw, once.

A case is small enough to enumerate (at most 14 parts), so that the weights lime would find with endless samples are a weighted
least-squares fit over every mask, or every row of a table. Afterwards every method asks a table of those answers instead of
the model; a repeat then costs little, and the answers are the same for all. That the table says what the model says is checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from lime.lime_text import IndexedString
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import whytrust as wt
from whytrust.domains.image import ImageParts, segment
from whytrust.domains.text import TextParts
from whytrust.models import demos

Floats = NDArray[np.float64]

LIME_WIDTH = 0.25
"""Of lime's kernel over texts and images, on the cosine distance; a table's is 0.75 √d, on the Euclidean one."""
CHECKED_INPUTS = 64


@dataclass(frozen=True)
class MaskCase:
    """A text or an image of d parts: `scores[i]` is the target's score with the parts kept that are the bits of i."""

    kind: str  # text, image or photo
    about: str
    item: Any
    labels: NDArray[np.int32] | None  # of an image's pixels
    sampling: str  # uniform_removed (lime's texts) or bernoulli (its images)
    scores: Floats

    @property
    def d(self) -> int:
        """The number of parts."""
        return int(math.log2(len(self.scores)))

    def truth(self, samples: int) -> Floats:
        """What lime estimates with `samples` samples: the input itself once, every mask by its chance in the other draws."""
        masks = all_masks(self.d).astype(np.float64)
        kept = masks.sum(axis=1)
        if self.sampling == "bernoulli":
            chances = np.full(len(masks), 1 / len(masks))
        else:
            chances = np.where(kept < self.d, 1 / self.d, 0) / np.array([math.comb(self.d, int(k)) for k in kept])
        chances = chances * (1 - 1 / samples) + (kept == self.d) / samples
        return weighted_least_squares(masks, self.scores, chances * lime_kernel(1 - np.sqrt(kept / self.d), LIME_WIDTH))

    def answers(self, masks: Any) -> Floats:
        """(n, 2): the other classes together, and the target."""
        target = self.scores[np.asarray(masks, dtype=np.int64) @ (1 << np.arange(self.d))]
        return np.column_stack([1 - target, target])

    @cached_property
    def numbered_texts(self) -> dict[str, int]:
        """Every text that can be composed -> its mask's number."""
        texts = TextParts.cut(self.item, "bag").compose(all_masks(self.d), np.random.default_rng(0))
        return {text: i for i, text in enumerate(texts)}

    def of_texts(self, texts: list[str]) -> Floats:
        """The model on texts, looked up."""
        target = self.scores[[self.numbered_texts[text] for text in texts]]
        return np.column_stack([1 - target, target])

    def of_images(self, images: Any) -> Floats:
        """The model on images, looked up: a part is shown where its brightest pixel is not black."""
        pixels = np.asarray(images).reshape(len(images), *self.labels.shape, -1).max(axis=3).reshape(len(images), -1)
        return self.answers(pixels[:, self.brightest] > 0)

    @cached_property
    def brightest(self) -> NDArray[np.intp]:
        """The place of each part's brightest pixel."""
        grey = self.item.reshape(*self.labels.shape, -1).max(axis=2).ravel().astype(np.float64)
        flat = self.labels.ravel()
        places = np.array([np.flatnonzero(flat == part)[grey[flat == part].argmax()] for part in range(self.d)])
        if not (grey[places] > 0).all():
            raise ValueError("every part of the image must have a pixel that is not black, or hiding it would not show")
        return places


@dataclass(frozen=True)
class TableCase:
    """A row of whole-number categories: `scores` has one axis a column, indexed by its categories 0 … k-1."""

    about: str
    row: NDArray[np.int64]
    background: NDArray[np.int64]
    scores: Floats
    kind: str = "table"

    @property
    def d(self) -> int:
        """The number of columns."""
        return len(self.row)

    @cached_property
    def frequencies(self) -> list[Floats]:
        """How often each category of each column is in the training data."""
        return [np.bincount(column, minlength=k) / len(column)
                for column, k in zip(self.background.T, self.scores.shape, strict=True)]

    def truth(self, samples: int) -> Floats:
        """As for masks; a row's chance is the product of its columns' training frequencies."""
        rows = all_rows(self.scores.shape)
        chances = np.prod([f[column] for f, column in zip(self.frequencies, rows.T, strict=True)], axis=0)
        same = (rows == self.row).astype(np.float64)
        chances = chances * (1 - 1 / samples) + same.all(axis=1) / samples
        kernel = lime_kernel(np.sqrt((1 - same).sum(axis=1)), 0.75 * math.sqrt(self.d))
        return weighted_least_squares(same, self.scores.ravel(), chances * kernel)

    def answers(self, rows: Any) -> Floats:
        """(n, 2): the other class, and the target."""
        target = self.scores[tuple(np.asarray(rows, dtype=np.int64).T)]
        return np.column_stack([1 - target, target])


Case = MaskCase | TableCase


# --- the cases --------------------------------------------------------------------------------------------------------
# Inputs are not picked by hand: they are the first of the test set that have as many parts as wanted.


def text_cases(demo: str, d: int, count: int) -> list[MaskCase]:
    """Film reviews of d different words, those that lime and whytrust cut into the same ones."""
    chosen = demos.load(demo)
    found = []
    for text in chosen.inputs:
        parts, theirs = TextParts.cut(text, "bag"), IndexedString(text, bow=True)
        if len(parts.names) == d and parts.names == tuple(theirs.word(i) for i in range(theirs.num_words())):
            found.append(_text_case(chosen, text, parts, theirs))
        if len(found) == count:
            break
    return found


def _text_case(chosen: demos.Demo, text: str, parts: TextParts, theirs: IndexedString) -> MaskCase:
    target = int(chosen.model.predict_proba([text])[0].argmax())

    def score(texts: list[str]) -> Floats:
        return chosen.model.predict_proba(texts)[:, target]

    scores = _asked(lambda masks: score(parts.compose(masks, np.random.default_rng(0))), len(parts.names), 1024)
    case = MaskCase("text", f"{chosen.about}: {text}", text, None, "uniform_removed", scores)
    _check(case.of_texts, score, [theirs.inverse_removing(np.flatnonzero(~mask)) for mask in _some_masks(case.d)])
    return case


def image_cases(kind: str, demo: str, cut: str, count: int) -> list[MaskCase]:
    """Images none of whose parts is black all over, for a hidden part is black."""
    chosen = demos.load(demo)
    model = wt.model(chosen.model, **chosen.model_options)
    found = []
    for index, image in enumerate(map(np.asarray, chosen.inputs)):
        labels = segment(image, cut)
        if all(image[labels == part].max() > 0 for part in range(labels.max() + 1)):
            found.append(_image_case(kind, f"{chosen.about}: test image {index}, {cut}", model, image, labels))
        if len(found) == count:
            break
    return found


def _image_case(kind: str, about: str, model: Any, image: NDArray[Any], labels: NDArray[np.int32]) -> MaskCase:
    parts = ImageParts(image, labels, 0.0)
    target = int(model(image[None])[0].argmax())
    at_once = 1024 if image.size < 4096 else 8  # large nets are fastest in small batches
    scores = _asked(lambda masks: model(parts.compose(masks, np.random.default_rng(0)))[:, target], len(parts.names), at_once)
    case = MaskCase(kind, about, image, labels, "bernoulli", scores)
    shown = _some_masks(case.d)[:, labels]
    _check(case.of_images, lambda images: model(images)[:, target],
           image * (shown if image.ndim == 2 else shown[..., None]).astype(image.dtype))
    return case


def table_cases(columns: int, count: int) -> list[TableCase]:
    """Columns of scikit-learn's breast cancer data, cut into quarters beforehand: to every method they are categories."""
    data = load_breast_cancer()
    edges = np.quantile(data.data[:, :columns], (0.25, 0.5, 0.75), axis=0)
    codes = np.column_stack([np.searchsorted(edges[:, j], data.data[:, j]) for j in range(columns)])
    train, test, labels, _ = train_test_split(codes, data.target, test_size=0.25, random_state=0)
    forest = RandomForestClassifier(100, random_state=0).fit(train, labels)
    rows = all_rows((4,) * columns)
    scores = forest.predict_proba(rows)
    checked = rows[np.random.default_rng(1).integers(len(rows), size=CHECKED_INPUTS)]
    found = []
    for index, row in enumerate(test[:count]):
        target = int(forest.predict_proba(row[None])[0].argmax())
        case = TableCase(f"a random forest on {columns} columns of breast cancer data in quarters: test row {index}",
                         row, train, scores[:, target].reshape((4,) * columns))
        _check(case.answers, lambda some, target=target: forest.predict_proba(some)[:, target], checked)
        found.append(case)
    return found


# --- what they are made of --------------------------------------------------------------------------------------------


def all_masks(d: int) -> NDArray[np.bool_]:
    """(2^d, d): row i has the bits of i."""
    return (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1


def all_rows(sizes: tuple[int, ...]) -> NDArray[np.int64]:
    """Every combination of categories."""
    return np.indices(sizes).reshape(len(sizes), -1).T


def lime_kernel(distances: Floats, width: float) -> Floats:
    """√exp(−D²/width²): written out here, so that the truth takes nothing from what is measured."""
    return np.sqrt(np.exp(-(distances**2) / width**2))


def weighted_least_squares(design: Floats, scores: Floats, weights: Floats) -> Floats:
    """The slopes of the weighted linear fit with intercept."""
    root = np.sqrt(weights)[:, None]
    columns = np.column_stack([np.ones(len(design)), design])
    return np.linalg.lstsq(columns * root, scores * root[:, 0], rcond=None)[0][1:]


def _asked(score: Callable[[NDArray[np.bool_]], Floats], d: int, at_once: int) -> Floats:
    masks = all_masks(d)
    return np.concatenate([score(masks[first:first + at_once]) for first in range(0, len(masks), at_once)])


def _some_masks(d: int) -> NDArray[np.bool_]:
    return np.random.default_rng(1).random((CHECKED_INPUTS, d)) < 0.5


def _check(looked_up: Callable[[Any], Floats], model: Callable[[Any], Floats], inputs: Any) -> None:
    """The table must say what the model says, on inputs made by other code than made the table."""
    np.testing.assert_allclose(looked_up(inputs)[:, 1], model(inputs), atol=1e-6)
