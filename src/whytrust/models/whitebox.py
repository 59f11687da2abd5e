"""Models whose reasons are known, to put explainers and trials on trial themselves."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, generator


@dataclass(frozen=True, eq=False)
class PlantedCause:
    """Two classes, and one part of the image that decides between them: class 1 where that part is bright.

    The part's mean square drives the logit, so it is curved: a gradient at one point is not the whole story. Every other pixel
    has a slope `whisper` times its own, drawn from `seed`: an attack that follows signs changes all of them as much as the
    cause, so the size of a change says nothing, while no number of other parts can turn the label.
    """

    where: NDArray[np.bool_]  # (H, W), true in the part that decides
    threshold: float = 0.1  # of the mean square
    gain: float = 60.0
    whisper: float = 1e-4
    seed: int = 0

    kind = "a white box"

    def __call__(self, batch: Any) -> Floats:
        """(n, 2) logits."""
        return self._logits(np.asarray(batch, dtype=np.float64))

    def pullback(self, batch: Any, preprocess: Any = None) -> tuple[Floats, Callable[[Floats], Floats]]:
        """(logits, weights of the logits -> gradient of their weighted sum), in closed form."""
        values = np.asarray(batch, dtype=np.float64)
        slope = 2 * self.gain * values * self._share + self._slopes

        def pull(weights: Floats) -> Floats:
            return np.asarray((weights[:, 1] - weights[:, 0])[:, None, None] * slope / 2)

        return self._logits(values), pull

    def _logits(self, values: Floats) -> Floats:
        decided = self.gain * ((values**2 * self._share).sum(axis=(1, 2)) - self.threshold)
        logit = decided + (values * self._slopes).sum(axis=(1, 2))
        return np.column_stack([-logit / 2, logit / 2])

    @property
    def _share(self) -> Floats:
        return np.asarray(self.where / self.where.sum(), dtype=np.float64)

    @property
    def _slopes(self) -> Floats:
        signs = generator(self.seed, "whisper").choice([-1.0, 1.0], self.where.shape)
        return np.asarray(np.where(self.where, 0.0, signs * self.whisper), dtype=np.float64)

    def inputs(self, n: int, seed: int = 0) -> NDArray[np.float64]:
        """Dark images of class 0, which a change of 0.5 a pixel turns into class 1."""
        return generator(seed, "planted").uniform(0.05, 0.25, (n, *self.where.shape))


@dataclass(frozen=True, eq=False)
class MarkedCause:
    """Two classes, and in every image another part that decides: the one whose first pixel is beyond 2 or below −2.

    In that part the second pixel is nearer to the rest, in the others it is the first. The mean of the decisive part's other
    pixels, each with a sign drawn from `seed`, drives the logit; those of the other parts have slopes of the same signs,
    `whisper` times their own, so that an attack that follows signs changes every part alike. So neither other images nor edges
    or brightness of this one name the part that decides: an explainer that does must have asked the model about this image.
    """

    parts: NDArray[np.intp]  # (H, W): the part of each pixel, of three pixels or more each
    threshold: float = 0.25  # of the mean
    gain: float = 60.0
    whisper: float = 1e-4
    seed: int = 0

    kind = "a white box"

    def __call__(self, batch: Any) -> Floats:
        """(n, 2) logits."""
        values = np.asarray(batch, dtype=np.float64)
        logit = (values * self._slopes(values)).sum(axis=(1, 2)) - self.gain * self.threshold
        return np.column_stack([-logit / 2, logit / 2])

    def pullback(self, batch: Any, preprocess: Any = None) -> tuple[Floats, Callable[[Floats], Floats]]:
        """(logits, weights of the logits -> gradient of their weighted sum), in closed form."""
        slopes = self._slopes(np.asarray(batch, dtype=np.float64))

        def pull(weights: Floats) -> Floats:
            return np.asarray((weights[:, 1] - weights[:, 0])[:, None, None] * slopes / 2)

        return self(batch), pull

    def inputs(self, n: int, seed: int = 0, among: Sequence[int] | None = None) -> NDArray[np.float64]:
        """Dark images of class 0, each with a marker in one part (of `among`); a change of 0.5 turns them into class 1."""
        rng = generator(seed, "marked")
        images = rng.uniform(0.1, 0.2, (n, *self.parts.shape))
        chosen = rng.choice(np.unique(self.parts) if among is None else np.asarray(among), n)
        far = (chosen[:, None, None] == self.parts) == (self._markers == 1)
        step = rng.uniform(1.0, 1.7, images.shape) + 1.3 * far  # from 0.15, the mean of the other pixels
        return np.where(self._markers > 0, 0.15 + rng.choice([-1.0, 1.0], images.shape) * step, images)

    @property
    def _markers(self) -> NDArray[np.intp]:
        """1 at the first pixel of each part, 2 at the second, else 0."""
        markers = np.zeros(self.parts.size, dtype=np.intp)
        for part in np.unique(self.parts):
            markers[np.flatnonzero(self.parts.ravel() == part)[:2]] = 1, 2
        return markers.reshape(self.parts.shape)

    def _slopes(self, values: Floats) -> Floats:
        """(n, H, W): what each pixel adds to the logit, for one of its units."""
        names, places, sizes = np.unique(self.parts, return_index=True, return_counts=True)
        marked = np.abs(values.reshape(len(values), -1)[:, places]) > 2
        weights = np.where(marked, self.gain / (sizes - 2), self.whisper)[:, np.searchsorted(names, self.parts)]
        signs = generator(self.seed, "signs").choice([-1.0, 1.0], self.parts.shape)
        return np.asarray(np.where(self._markers > 0, 0.0, signs * weights))


Curve = Literal["line", "square", "bend", "wave"]
CURVES: Mapping[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "line": (lambda x: x, np.ones_like), "square": (np.square, lambda x: 2 * x),
    "bend": (lambda x: np.tanh(2 * x), lambda x: 2 / np.cosh(2 * x) ** 2),
    "wave": (lambda x: np.sin(3 * x), lambda x: 3 * np.cos(3 * x))}
"""Each curve and its slope."""


@dataclass(frozen=True, eq=False)
class AdditiveModel:
    """Σ weight · curve(value) for each class: what each value contributes is known, whatever the others are.

    `common` is added to every class: no decision hangs on it, and every class's score does.
    """

    weights: Floats  # (classes, *shape of an input)
    curve: Curve = "line"
    common: Floats | None = None  # (*shape of an input)
    constants: Floats | None = None  # (classes,)

    kind = "a white box"

    def __call__(self, batch: Any) -> Floats:
        """(n, classes) scores."""
        return self._scores(self._bent(batch))

    def pullback(self, batch: Any, preprocess: Any = None) -> tuple[Floats, Callable[[Floats], Floats]]:
        """(scores, weights of the scores -> gradient of their weighted sum), in closed form."""
        values = np.asarray(batch, dtype=np.float64)
        slope = CURVES[self.curve][1](values)

        def pull(weights: Floats) -> Floats:
            return np.asarray(np.tensordot(weights, self.each, axes=1) * slope)

        return self(batch), pull

    @property
    def each(self) -> Floats:
        """(classes, *shape): the weights with what they have in common."""
        return np.asarray(self.weights if self.common is None else self.weights + self.common, dtype=np.float64)

    def contributions(self, item: Any, hidden: Any, target: int) -> Floats:
        """What each value adds to the target's score when it is shown rather than hidden behind another input."""
        return np.asarray(self.each[target] * (self._bent(item) - self._bent(hidden)))

    def _bent(self, values: Any) -> Floats:
        return CURVES[self.curve][0](np.asarray(values, dtype=np.float64))

    def _scores(self, bent: Floats) -> Floats:
        scores = bent.reshape(len(bent), -1) @ self.each.reshape(len(self.weights), -1).T
        return np.asarray(scores if self.constants is None else scores + self.constants)


Joint = Literal["product", "edge"]


def _joint(how: Joint, one: Floats, other: Floats) -> Floats:
    """What a pair of values makes together: their product, or the height of the edge between them."""
    return np.asarray(one * other if how == "product" else np.abs(one - other))


@dataclass(frozen=True, eq=False)
class InteractingModel:
    """An additive model and what pairs of values make together: there the whole is not the sum of its parts.

    Pairs count by their product, or, as "edge", by the difference between them. Each pair is shared out as Shapley's value does
    it: either of the two has the mean of what it adds before and after the other is shown.
    """

    plain: AdditiveModel
    pairs: NDArray[np.intp]  # (k, 2) places in the flattened input
    amounts: Floats  # (classes, k)
    joint: Joint = "product"

    kind = "a white box"

    def __call__(self, batch: Any) -> Floats:
        """(n, classes) scores."""
        flat = np.asarray(batch, dtype=np.float64).reshape(len(batch), -1)
        return np.asarray(self.plain(batch) + _joint(self.joint, *flat[:, self.pairs].transpose(2, 0, 1)) @ self.amounts.T)

    def pullback(self, batch: Any, preprocess: Any = None) -> tuple[Floats, Callable[[Floats], Floats]]:
        """(scores, weights of the scores -> gradient of their weighted sum), in closed form."""
        _, plain = self.plain.pullback(batch)
        flat = np.asarray(batch, dtype=np.float64).reshape(len(batch), -1)

        def pull(weights: Floats) -> Floats:
            amounts, out = weights @ self.amounts, plain(weights).reshape(len(flat), -1)
            for here, there in (self.pairs.T, self.pairs[:, ::-1].T):
                slope = flat[:, there] if self.joint == "product" else np.sign(flat[:, here] - flat[:, there])
                np.add.at(out.T, here, (amounts * slope).T)
            return np.asarray(out.reshape(np.shape(batch)))

        return self(batch), pull

    def contributions(self, item: Any, hidden: Any, target: int) -> Floats:
        """Shapley's value of each value; those of the values of a part add up to the part's."""
        own, other = (np.asarray(one, dtype=np.float64).ravel() for one in (item, hidden))
        out = self.plain.contributions(item, hidden, target).ravel()
        for here, there in (self.pairs.T, self.pairs[:, ::-1].T):
            added = [_joint(self.joint, own[here], beside[there]) - _joint(self.joint, other[here], beside[there])
                     for beside in (own, other)]
            np.add.at(out, here, self.amounts[target] * (added[0] + added[1]) / 2)
        return np.asarray(out.reshape(np.shape(item)))

    def synergies(self, item: Any, hidden: Any, target: int) -> Floats:
        """(k,): by how much more either value of a pair adds where the other is shown than where it is hidden."""
        own, other = (np.asarray(one, dtype=np.float64).ravel() for one in (item, hidden))
        here, there = self.pairs.T
        added = [_joint(self.joint, own[here], beside[there]) - _joint(self.joint, other[here], beside[there])
                 for beside in (own, other)]
        return np.asarray(self.amounts[target] * (added[0] - added[1]))


@dataclass(frozen=True, eq=False)
class WordModel:
    """Two classes; the second's logit is the sum of the weights of a text's words, each time they occur.

    Words that are not in the list weigh nothing, so that most of a text may be taken out without a trace. `common` is added to
    both classes: no decision hangs on it.
    """

    weights: Mapping[str, float]
    common: Mapping[str, float] = field(default_factory=dict)
    words: re.Pattern[str] = field(default=re.compile(r"\w+"), repr=False)

    kind = "a white box"

    def __call__(self, texts: Any) -> Floats:
        """(n, 2) logits."""
        return np.array([[self.score(text, target) for target in (0, 1)] for text in texts]).reshape(-1, 2)

    def score(self, text: str, target: int) -> float:
        """What the words of a text add to one class's score: half of the logit, for or against, and what both share."""
        sign = 0.5 if target == 1 else -0.5
        return sum(sign * self.weights.get(word, 0.0) + self.common.get(word, 0.0) for word in self.words.findall(text.lower()))


@dataclass(frozen=True, eq=False)
class ToneModel:
    """Two classes of waveforms; the second's logit is how much of one tone there is, summed over stretches of equal length.

    In each stretch it is the energy along the tone, whatever its phase: curved in the samples, and additive over stretches.
    `common` is another such model, whose tone is added to both classes: no decision hangs on it.
    """

    rate: int
    hertz: float
    stretch: int  # samples
    gain: float = 1.0
    threshold: float = 1.0
    common: ToneModel | None = None

    kind = "a white box"

    def __call__(self, batch: Any) -> Floats:
        """(n, 2) logits."""
        logits = self.gain * (self.energies(batch).sum(axis=1) - self.threshold)
        shared = 0.0 if self.common is None else self.common.gain * self.common.energies(batch).sum(axis=1)
        return np.column_stack([shared - logits / 2, shared + logits / 2])

    def contributions(self, item: Any, hidden: Any, target: int) -> Floats:
        """(stretches,): what each adds to the target's score when it is shown rather than hidden behind another sound."""
        own, other = self.energies(np.stack([item, hidden]))
        out = (0.5 if target == 1 else -0.5) * self.gain * (own - other)
        if self.common is not None:
            own, other = self.common.energies(np.stack([item, hidden]))
            out = out + self.common.gain * (own - other)
        return np.asarray(out)

    def pullback(self, batch: Any, preprocess: Any = None) -> tuple[Floats, Callable[[Floats], Floats]]:
        """(logits, weights of the logits -> gradient of their weighted sum), in closed form."""
        waves = np.asarray(batch, dtype=np.float64)
        slope, shared = self._slope(waves), np.zeros_like(waves) if self.common is None else self.common._slope(waves)

        def pull(weights: Floats) -> Floats:
            return np.asarray((weights[:, 1] - weights[:, 0])[:, None] * slope / 2 + weights.sum(axis=1)[:, None] * shared)

        return self(batch), pull

    def _slope(self, waves: Floats) -> Floats:
        """How the energy, times the gain, moves with each sample."""
        cut, tones, slope = self._cut(waves), self._tones, np.zeros_like(waves)
        slope[:, :cut.shape[1] * self.stretch] = (2 * self.gain * (cut @ tones.T) @ tones).reshape(len(waves), -1)
        return slope

    def energies(self, batch: Any) -> Floats:
        """(n, stretches): how much of the tone there is in each."""
        return np.asarray(((self._cut(np.asarray(batch, dtype=np.float64)) @ self._tones.T) ** 2).sum(axis=2))

    def _cut(self, waves: Floats) -> Floats:
        count = waves.shape[1] // self.stretch
        return waves[:, :count * self.stretch].reshape(len(waves), count, self.stretch)

    @property
    def _tones(self) -> Floats:
        """(2, samples of a stretch): sine and cosine of unit length."""
        angles = 2 * np.pi * self.hertz * np.arange(self.stretch) / self.rate
        waves = np.stack([np.sin(angles), np.cos(angles)])
        return np.asarray(waves / np.linalg.norm(waves, axis=1, keepdims=True))
