"""What a part of an image or a sound is like, in numbers that compare across inputs: how it looks, and what it is to a model.

Each block of numbers answers one question, (parts, k). They are taken from what a reader is shown (`views`), so that they are
the same for every way an input can be stored, and from the model itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from whytrust.checked import CheckedModel, Cut, DifferentiableModel
from whytrust.core import Floats, Parts, generator
from whytrust.question import Question
from whytrust.views import ImageView, SoundView

LOOKS = ("colour", "texture")
SOUNDS = ("level", "spectrum", "change", "band")
MODEL = "model"
PLACE = "place"
LAST_CONVOLUTION = "last convolution"
SCALES = (0.0, 1.0, 2.0)
"""Widths of the blur, in pixels, behind which the roughness of a segment is measured."""
PROJECTED = 64
"""A model may have thousands of activations or classes: more than this are projected at random, which keeps distances."""
_TINY = 1e-12


# --- images -----------------------------------------------------------------------------------------------------------


def look(view: ImageView, d: int) -> dict[str, Floats]:
    """Colour (mean and spread of lightness, red–green, blue–yellow) and texture (roughness at three scales, directions).

    Edges to other segments count for neither's texture, where a segment has pixels that touch no other one. Colours are those
    that are seen, so a shadow makes another colour of the same thing.
    """
    pixels = view.pixels.astype(np.float64) / 255
    light = pixels.mean(axis=2)
    opponent = np.stack([light, pixels[..., 0] - pixels[..., 1], pixels[..., 2] - pixels[..., :2].mean(axis=2)], axis=2)
    inside = _inside(view.labels, d)
    return {"colour": np.hstack(_mean_and_spread(opponent, view.labels, d)), "texture": _texture(light, inside, d)}


def _texture(light: Floats, labels: NDArray[Any], d: int) -> Floats:
    """(d, 3 + 4): logarithms of the slope's strength at each scale, and the share of four directions in the finest."""
    columns, strengths = [], None
    for scale in SCALES:
        smooth = ndimage.gaussian_filter(light, scale) if scale else light
        down, across = np.gradient(smooth)
        size = np.hypot(down, across)
        columns.append(np.log(_means(size, labels, d) + 1e-3))
        if strengths is None:
            angle = np.mod(np.arctan2(down, across), np.pi)  # of the slope: stripes run across it
            sector = np.mod(np.rint(angle / (np.pi / 4)), 4)
            strengths = [_means(np.where(sector == s, size, 0), labels, d) for s in range(4)]
            whole = _means(size, labels, d)
    # In a segment that is nearly flat a direction means nothing.
    columns += [share / (whole + 0.02) for share in strengths or ()]
    return np.stack(columns, axis=1)


def _inside(labels: NDArray[Any], d: int) -> NDArray[Any]:
    """Labels with -1 on pixels that touch another segment, but for segments that have no other pixels."""
    edge = np.zeros(labels.shape, bool)
    for axis in (0, 1):
        ahead = np.diff(labels, axis=axis) != 0
        first, last = [slice(None)] * 2, [slice(None)] * 2
        first[axis], last[axis] = slice(None, -1), slice(1, None)
        edge[tuple(first)] |= ahead
        edge[tuple(last)] |= ahead
    left = np.bincount(labels[~edge], minlength=d) > 0
    return np.where(edge & left[labels], -1, labels)


# --- sounds -----------------------------------------------------------------------------------------------------------


def heard(view: SoundView, d: int) -> dict[str, Floats]:
    """How loud a part is, where its energy lies and how tonal it is, how fast it changes, and the band it was cut from.

    When it happens is left out: a moment of one sound is no moment of another. Levels are those of the picture, below the
    peak of a waveform; a spectrogram's values as they are.
    """
    levels, labels = view.spectrogram.astype(np.float64), view.labels
    frames, bands = levels.shape
    power = _power(view, levels)
    height = np.broadcast_to((np.arange(bands) + 0.5) / bands, levels.shape)
    total = _sums(power, labels, d) + _TINY
    centroid = _sums(power * height, labels, d) / total
    spread = np.sqrt(np.maximum(_sums(power * height**2, labels, d) / total - centroid**2, 0))
    flat = np.exp(_means(np.log(power + _TINY), labels, d)) / (_means(power, labels, d) + _TINY)
    step = np.abs(np.diff(levels, axis=0, prepend=levels[:1]))
    same = np.vstack([np.zeros((1, bands), bool), labels[1:] == labels[:-1]])
    change = _means(step, np.where(same, labels, -1), d)
    mean, varied = _mean_and_spread(levels[..., None], labels, d)
    middle, extent = _mean_and_spread(height[..., None], labels, d)
    if view.wave is not None:  # as loud as its energy says: a note over silence is loud
        mean = 10 * np.log10(_means(power, labels, d)[:, None] + 1e-8)
    return {"level": np.hstack([mean, varied]), "spectrum": np.stack([centroid, spread, flat], axis=1),
            "change": change[:, None] if frames > 1 else np.zeros((d, 1)), "band": np.hstack([middle, extent])}


def _power(view: SoundView, levels: Floats) -> Floats:
    """Energy behind the picture: of decibels, of values that are none already, or of logarithms."""
    if view.wave is not None:
        return np.asarray(10 ** (levels / 10))
    return np.asarray(levels if levels.min() >= 0 else np.exp(np.clip(levels - levels.max(), -50, 0)))


# --- the model --------------------------------------------------------------------------------------------------------


@dataclass
class Embedding:
    """What is each part to the model? Of a net its last convolution there; of any other model its scores with and without it.

    A net's activations are averaged over the part's place, or taken with the part alone shown where places are not known (a
    waveform). A black box is asked for its scores when the part alone is shown and for their change when it alone is hidden.
    Alone on its fill a part is an input like no other: two parts that a model has never seen alone may look alike to it.
    """

    model: CheckedModel
    seed: int = 0
    batch_size: int | None = None
    by_layer: bool = True  # until that turns out to be impossible
    layer: str = LAST_CONVOLUTION
    projections: dict[int, Floats] = field(default_factory=dict)

    def __call__(self, parts: Parts) -> list[Floats]:
        """Blocks of (d, k); k is the same for every input."""
        with self.model.asking():
            if self.by_layer and isinstance(self.model, DifferentiableModel):
                try:
                    return [self._narrow(self._activations(parts))]
                except (ValueError, TypeError):  # it has no convolution, or cannot be cut: it is asked like any other model
                    self.by_layer = False
            return [self._narrow(block) for block in self._asked(parts)]

    @property
    def told(self) -> str:
        """What was taken, in a few words."""
        by_layer = self.by_layer and isinstance(self.model, DifferentiableModel)
        return f"the net's activations ({self.layer})" if by_layer else "the model's scores with and without the part"

    def _cut(self, batch: Any) -> Cut:
        assert isinstance(self.model, DifferentiableModel)
        cut = self.model.cut(batch, self.layer)
        if cut.values.ndim < 2:
            raise ValueError(f"{cut.layer!r} must give places")
        self.layer = cut.layer  # found once
        return cut

    def _activations(self, parts: Parts) -> Floats:
        d, view = len(parts.names), parts.view
        if isinstance(view, ImageView) or (isinstance(view, SoundView) and view.wave is None):
            cut = self._cut(parts.compose(np.ones((1, d), bool), generator(0)))
            if cut.values.ndim == 3:
                turned = cut.seen[-2:] == view.labels.shape[::-1] != view.labels.shape
                values = cut.values.transpose(0, 2, 1) if turned else cut.values
                return _placed(view.labels, d, values.shape[1:]) @ values.reshape(len(values), -1).T
        rng = generator(self.seed, "features")
        alone = [self._cut(parts.compose(row[None], rng)).values for row in np.eye(d, dtype=bool)]
        return np.array([values.reshape(len(values), -1).mean(axis=1) for values in alone])

    def _asked(self, parts: Parts) -> list[Floats]:
        question = Question(self.model, parts, 0, self.batch_size)
        questions = question.watching(range(len(question.original)))
        eye = np.eye(question.d, dtype=bool)
        masks = np.vstack([eye, ~eye])
        if parts.deterministic:
            scores = questions[0].outputs(masks)
        else:  # the same draws for each class, which are asked about once
            scores = np.stack([one.score(masks, generator(self.seed, "features")) for one in questions], axis=1)
        return [scores[:question.d], question.original - scores[question.d:]]

    def _narrow(self, block: Floats) -> Floats:
        wide = block.shape[1]
        if wide <= PROJECTED:
            return block
        if wide not in self.projections:
            drawn = generator(self.seed, "projection", wide).standard_normal((wide, PROJECTED))
            self.projections[wide] = drawn / np.sqrt(PROJECTED)
        return np.asarray(block @ self.projections[wide])


def _placed(labels: NDArray[Any], d: int, shape: tuple[int, ...]) -> Floats:
    """(d, cells): the share of each part that lies in each cell of a coarser grid, or the other way round of a finer one."""
    tall, wide = (int(n) for n in shape)
    height, width = labels.shape
    if tall <= height and wide <= width:
        cell = (np.arange(height) * tall // height)[:, None] * wide + np.arange(width) * wide // width
        owner = labels
    else:
        rows, columns = (np.arange(tall) * height) // tall, (np.arange(wide) * width) // wide
        owner, cell = labels[rows[:, None], columns], np.arange(tall * wide).reshape(tall, wide)
    shares = np.bincount(owner.ravel().astype(np.intp) * tall * wide + cell.ravel(), minlength=d * tall * wide)
    held = shares.reshape(d, tall * wide).astype(np.float64)
    return np.asarray(held / np.maximum(held.sum(axis=1, keepdims=True), 1))


# --- over parts -------------------------------------------------------------------------------------------------------


def _sums(values: Floats, labels: NDArray[Any], d: int) -> Floats:
    """The sum over each part; labels below 0 belong to none."""
    flat = labels.ravel()
    kept = flat >= 0
    return np.asarray(np.bincount(flat[kept], weights=np.ravel(values)[kept], minlength=d), dtype=np.float64)


def _means(values: Floats, labels: NDArray[Any], d: int) -> Floats:
    return _sums(values, labels, d) / np.maximum(np.bincount(labels[labels >= 0].ravel(), minlength=d), 1)


def _mean_and_spread(values: Floats, labels: NDArray[Any], d: int) -> tuple[Floats, Floats]:
    """(d, channels) each."""
    channels: Sequence[Floats] = [values[..., c] for c in range(values.shape[-1])]
    means = np.stack([_means(c, labels, d) for c in channels], axis=1)
    away = [(c - means[labels, i]) ** 2 for i, c in enumerate(channels)]
    return means, np.sqrt(np.stack([_means(a, labels, d) for a in away], axis=1))
