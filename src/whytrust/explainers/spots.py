"""Where a gradient is taken: at the input itself, or at what a layer of the model makes of it.

Texts have no gradient, their embeddings have; the time and frequency of a waveform show behind its front end, or, of a net
without one, in the sound's own transform. Wherever it is taken, a map over those values is laid over the same parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from whytrust.checked import Cut, DifferentiableModel, RawModel, Refused, one_hot
from whytrust.core import Dials, Floats, generator, near, need, over_channels
from whytrust.explainers.dialled import Dialled
from whytrust.explainers.laying import Laid, Laying, enlarged
from whytrust.question import Question
from whytrust.views import ImageView, SoundView, TextView

Explains = Literal["logit", "score"]
"""The model's own output before a softmax or sigmoid that was asked for, or the score as wt.model gives it."""
AT_ONCE = 5 << 18
"""Bytes of inputs, as 32-bit floats, that go through a net at once on a processor: what its caches hold."""
SAME = 1e-3
"""How far, in parts of their scale, what a preprocessing makes of whole numbers may lie from what it makes of floats."""
CROPPED = ("The model's preprocessing cuts off the border, and the map of what is left was laid over the whole image: scores "
           "near the border are those of places further in.")
BASELINES = ("black", "mean", "blurred", "noise", "pad")


@dataclass(frozen=True, eq=False)
class Spot:
    """The values at which one question is differentiated, and the model as a function of them."""

    question: Question
    model: DifferentiableModel
    own: Floats  # the input's values, as a batch of one; whoever may change it (a preprocessing in place) gets a copy
    seed: int
    name: str  # of the method that asks
    cut: Cut | None = None
    rule: str = ""  # of the backward pass, where it is not the derivative
    dials: Dials | None = None  # what the values are, where the input is made of them by adding up

    @classmethod
    def of(cls, question: Question, name: str, explains: Explains, rng: np.random.Generator, of_places: bool = False) -> Spot:
        """Where the question's input can be moved by a little; one clear error where it cannot.

        `of_places` is for maps that are no slopes: they cannot be pulled back to what the input is made of.
        """
        model, seed = question.model, int(rng.integers(2**63))
        if explains not in ("logit", "score"):
            raise ValueError(f"explains must be 'logit' (before a softmax) or 'score' (as it comes), got {explains!r}")
        if not isinstance(model, DifferentiableModel):
            kind = getattr(model.function, "kind", "a function of a batch")
            raise TypeError(f"{name} needs a model with gradients, and {model.name} is a black box ({kind}); pass the torch "
                            "module or the Hugging Face model itself to wt.model, or use a method that only asks: lime, "
                            "kernel_shap, occlusion")
        asked: DifferentiableModel = model.raw if explains == "logit" else model
        in_bands, processed = getattr(question.parts, "changes", None) is not None, hasattr(model.function, "processor")
        dials: Dials | None = None if of_places else getattr(question.parts, "dials", None)
        if isinstance(question.parts.view, TextView) or in_bands or processed:
            cut = question.once(f"cut {explains} {dials is None}", lambda: _cut(asked, question, dials is None or processed))
            if cut is not None:
                return cls(question, cut.tail, cut.values[None], seed, name, cut)
        own = question.once("numbers", lambda: _numbers(question, name)[None])
        asked = asked.settled(question.input)
        spot = cls(question, asked, own, seed, name)
        question.once("whole numbers", spot._check_whole_numbers)
        return spot if dials is None else replace(
            spot, model=replace(asked, function=Dialled(asked, dials), preprocess=None), own=dials.own[None], dials=dials)

    @property
    def values(self) -> Floats:
        """The input's values, without the axis of a batch."""
        return np.asarray(self.own[0])

    @property
    def size(self) -> int:
        """How many inputs go through the model at once."""
        most, largest = getattr(self.model.function, "most", None), self.values.size
        if self.dials is not None:  # a few gains may stand for a long sound
            largest = max(largest, self.question.once("samples", lambda: np.size(self.question.input)))
        if self.question.batch_size is not None or most is not None:
            return min(self.question.batch_size or 8192, most or 8192)
        on_processor = str(getattr(self.model.function, "home", "cpu")) == "cpu"
        return int(np.clip((AT_ONCE if on_processor else 1 << 25) // max(4 * largest, 1), 1, 8192))

    def ruled(self, rule: str) -> Spot:
        """The same, with another backward pass."""
        return replace(self, model=self.model.ruled(rule), rule=rule)

    def own_scores(self) -> Floats:
        """The scores of the input itself, (1, columns), by the model that is differentiated: asked once.

        They are also the model's answer to the question, so that nobody else need ask.
        """
        scores, _ = self.question.once(self._key, lambda: (self._counted(self.model(self.own.copy())), None))
        return self._told(scores)

    def gradients(self, values: Floats) -> Iterator[Floats]:
        """The gradient of the target's score at each of the values; at the input itself it is worked out once."""
        if values is not self.own:
            yield from (gradient for _, gradient in self.pulled(len(values), lambda part: values[part]))
            return
        yield self.question.once(f"gradient {self.question.target} {self._key}", self._own_gradient)

    def linearise(self) -> None:
        """Run the model at the input itself and keep what a gradient takes: it is pulled from there, whatever the target is."""
        _, pull = self.question.once(self._key, lambda: (None, None))
        if pull is None:
            scores, pull = self.model.linearised(self.own)
            self.question.memory.worked[self._key] = self._counted(scores), pull
            self._told(scores)

    def _own_gradient(self) -> Floats:
        self.linearise()
        scores, pull = self.question.memory.worked[self._key]
        last = len(self.question.memory.watched) == 1
        if last:
            self.question.memory.worked[self._key] = scores, None  # what the model keeps for a gradient is large
        return np.asarray(pull(self.weights(scores), last=last)[0])

    @property
    def _key(self) -> str:
        where = "the dials" if self.dials is not None else "the input"
        return f"at {where} {type(self.model).__name__} {self.rule}"

    def _counted(self, scores: Floats) -> Floats:
        self.question.count(len(scores))
        return scores

    def _told(self, scores: Floats) -> Floats:
        """The same scores; the question has its answer from them, where it has none yet."""
        raw = isinstance(self.model, RawModel)
        if raw:
            self.question.memory.worked["own outputs"] = scores[0]
        if self.question.memory.original is None:
            self.question.memory.original = (self.question.model.squashed(scores) if raw else scores)[0]  # type: ignore[attr-defined]
        return scores

    def pulled(self, n: int, make: Callable[[slice], Floats]) -> Iterator[tuple[Floats, Floats]]:
        """(the target's score, its gradient) at each of n values, which `make` gives a batch at a time."""
        with self.question.expecting(n):
            for start in range(0, n, self.size):
                values = make(slice(start, min(start + self.size, n)))
                scores, gradients = self.model.vjp(values, self.weights)
                self._counted(scores)
                yield from zip(self.of_target(scores), gradients, strict=True)

    def scores(self, values: Floats) -> Floats:
        """The target's score at each of a few values."""
        parts = [values[start:start + self.size] for start in range(0, len(values), self.size)]
        scores = np.concatenate([self.model(part) for part in parts])
        return self.of_target(self._counted(scores))

    def of_target(self, scores: Floats) -> Floats:
        """The target's score in each row."""
        return np.asarray((self.weights(scores) * scores).sum(axis=1))

    def baseline(self, given: Any = None) -> Floats:
        """What stands for the absence of the input: by name, a number, or an array shaped like the values."""
        shape, parts = self.values.shape, self.question.parts
        given = self.usual_baseline if given is None else given
        if isinstance(given, str) and given not in self._baselines:
            which = f", which {parts.domain} inputs do not have" if given in BASELINES else near(given, self._baselines)
            raise ValueError(f"baseline must be one of {', '.join(self._baselines)}, a number or an array of shape {shape}, "
                             f"got {given!r}{which}")
        if not isinstance(given, str):
            last = getattr(parts, "channels_first", False) and _shape(given) == (*self.places, *shape[:1])
            what = "the input" if self.dials is None else self.dials.called
            return _like(np.moveaxis(np.asarray(given), -1, 0) if last else given, shape, self._spatial, self._baselines, what)
        if given == "black":
            return np.zeros(shape)
        if given == "mean":
            typical = getattr(parts, "typical", None)
            return np.asarray(typical, dtype=np.float64) if typical is not None else np.broadcast_to(
                self.values.mean(axis=self._spatial, keepdims=True), shape).copy()
        if given == "blurred":
            sigma = [max(shape[a] for a in self._spatial) / 16 if a in self._spatial else 0.0 for a in range(len(shape))]
            return np.asarray(need("scipy.ndimage", "image").gaussian_filter(self.values, sigma))
        if given == "noise":
            low, high = self.values.min(), self.values.max()
            return np.asarray(generator(self.seed, "baseline").uniform(low, high, shape))
        assert self.cut is not None
        assert self.cut.absent is not None
        return self.cut.absent

    @property
    def _baselines(self) -> list[str]:
        """Those by name that an input like this one has."""
        if self.dials is not None and self.values.ndim == 1:  # gains have no neighbours, and no range but their own
            return ["black"]
        padded = self.cut is not None and self.cut.absent is not None
        blurs = (self.cut is None or self.cut.spans is None) and self.question.parts.domain != "tabular"
        return [name for name in BASELINES if (name != "pad" or padded) and (name != "blurred" or blurs)]

    @property
    def usual_baseline(self) -> str:
        """Padding for a text, the training data's mean for a row, the mean for a spectrogram; black, or silence, otherwise."""
        if self.cut is not None and self.cut.absent is not None:
            return "pad"
        if self.dials is not None:
            return "black"
        return "mean" if self.question.parts.domain == "tabular" or self._is_spectrogram else "black"

    @property
    def spread(self) -> Floats:
        """The range that a share of noise is of: the input's own, or of each column in training."""
        ranges = getattr(self.question.parts, "ranges", None)
        if ranges is not None:
            return np.asarray(ranges, dtype=np.float64)
        return np.asarray(self.values.max() - self.values.min() if self.dials is None else self.dials.spread)

    def lay(self, map: Floats, how: str) -> Laid:
        """A map over the values (or over their places alone), as one score a part."""
        if self.dials is not None:
            return Laid(self.dials.pool(map, how), notes=(self.dials.told,))
        if self.cut is None:
            return Laid(self.question.parts.pool(map, how))
        if self.cut.hertz is not None:
            pool_at: Any = getattr(self.question.parts, "pool_at", None)
            assert pool_at is not None, "parts cut in frequency say where a frequency lies"
            return Laid(pool_at(map, self.cut.seconds, self.cut.hertz, how))
        if self._behind_processor:
            laid = Laying(self.question, self.name, how, stretch=True)(map)
            processor: Any = getattr(self.question.model.function, "processor", None)
            crops = getattr(processor, "do_center_crop", False) or (getattr(processor, "crop_pct", None) or 1) < 1
            return replace(laid, notes=(*laid.notes, CROPPED)) if crops else laid
        if self.cut.spans is None:
            raise ValueError(f"{self.name} must know where the {len(map)} values of {self.cut.layer!r} stand in the text, and "
                             "the model does not say; pass wt.model((model, tokenizer)) of a Hugging Face model")
        laying = Laying(self.question, self.name, how)
        return laying.tokens(over_embedding(map, how), [() if span is None else (span,) for span in self.cut.spans])

    def finest(self, map: Floats, how: str) -> Floats | None:
        """The map as one number a place, whose pooling is the scores; None where the input is no picture.

        Channels are summed where values add up, else averaged, as pooling does.
        """
        view = self.question.parts.view
        if not isinstance(view, ImageView | SoundView) or (self.cut is not None and not self._behind_processor):
            return None
        channels = tuple(a for a in range(map.ndim) if a not in self._spatial) if map.ndim == self.values.ndim else ()
        shown = np.abs(map) if how == "mean_abs" else np.maximum(map, 0) if how == "mean_pos" else map
        flat = over_channels(shown) if channels == (map.ndim - 1,) else shown.sum(axis=channels)
        flat = flat if how == "sum" else flat / max(math.prod(map.shape[a] for a in channels), 1)
        flat = enlarged(flat, view.labels.shape) if self._behind_processor else flat
        return flat.astype(np.float32) if flat.shape == view.labels.shape else None

    @property
    def places(self) -> tuple[int, ...]:
        """The shape of the values without channels: what a coarse map is enlarged to."""
        return tuple(self.values.shape[a] for a in self._spatial)

    @property
    def _spatial(self) -> tuple[int, ...]:
        axes = tuple(range(self.values.ndim))
        if self._behind_processor:
            return axes[1:]
        if isinstance(self.question.parts.view, ImageView) and len(axes) == 3:
            return axes[1:] if getattr(self.question.parts, "channels_first", False) else axes[:2]
        return axes[:1] if self.cut is not None and self.cut.spans is not None else axes

    @property
    def _behind_processor(self) -> bool:
        """Are the values what an image processor made of an image, channels first and of a size of their own?"""
        return self.cut is not None and isinstance(self.question.parts.view, ImageView)

    @property
    def _is_spectrogram(self) -> bool:
        return isinstance(self.question.parts.view, SoundView) and self.values.ndim == 2

    def weights(self, scores: Floats) -> Floats:
        """What to pull back for the gradient of the target's score."""
        targets = np.full(len(scores), self.question.target, dtype=np.intp)
        if isinstance(self.model, RawModel):
            return self.model.toward(scores, targets)
        return one_hot(scores.shape, targets)

    def _check_whole_numbers(self) -> None:
        """Gradients are taken at floats: a preprocessing in which bytes wrap around would be explained at another place."""
        given, preprocess = self.question.input, self.question.model.preparation
        of_tensors = hasattr(preprocess, "forward") or getattr(preprocess, "takes_tensors", False)
        if preprocess is None or getattr(given, "dtype", np.dtype(float)).kind not in "iu" or of_tensors:
            return  # what a torch module makes of bytes, the model itself finds out
        whole = _array(preprocess(given))
        try:
            halved = self.own.astype(np.float32)  # faster, where it holds the whole numbers
            floats = _array(preprocess(halved if np.array_equal(halved, self.own) else self.own.copy()))
        except Exception as error:  # whatever a user's function may raise
            raise TypeError(f"preprocess must work on floats too, where gradients are taken, not on {given.dtype} alone; there "
                            f"it raised {type(error).__name__}: {error}") from error
        close = SAME * max(np.abs(floats).max(initial=0), 1e-30)
        if whole.shape != floats.shape or not np.abs(whole - floats).max(initial=0) <= close:
            raise ValueError(f"preprocess must do the same to an input as {given.dtype} and as floats, where gradients are, "
                             "and does not: whole numbers may wrap around in it; begin with a float, as in "
                             "(x - 127.0) / 128")


def _cut(asked: DifferentiableModel, question: Question, must: bool) -> Cut | None:
    """The model behind what makes numbers of its inputs; None where that need not be and would not say where they are."""
    if must:
        return asked.cut(question.input)
    hears_where = getattr(asked.function, "hears_where", None)
    if hears_where is None or not hears_where(asked.preparation):
        return None
    try:
        cut = asked.cut(question.input)
    except Refused:  # a layer that is used twice, say
        return None
    return cut if cut.hertz is not None else None


def over_embedding(map: Floats, how: str) -> Floats:
    """A map over the embeddings of tokens as one number a token."""
    changed = np.abs(map) if how == "mean_abs" else np.maximum(map, 0) if how == "mean_pos" else map
    return np.asarray(changed.mean(axis=1) if how.startswith("mean") else map.sum(axis=1))


def _numbers(question: Question, name: str) -> Floats:
    """The input as an array of float64, without the axis of a batch."""
    try:
        return np.asarray(np.asarray(question.input)[0], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} needs inputs that are numbers, and this one is not ({error}); encode categories as numbers, "
                        "or use a method that only asks: lime, kernel_shap, occlusion") from error


def _array(made: Any) -> Floats:
    array = np.asarray(made.detach().cpu().float() if "bfloat16" in str(getattr(made, "dtype", "")) else
                       made.detach().cpu() if hasattr(made, "detach") else made)
    return array.astype(np.float64) if array.dtype.kind in "biuO" else array


def _shape(given: Any) -> tuple[int, ...] | str:
    try:
        return tuple(np.shape(given))
    except ValueError:
        return "that is uneven"


def _like(given: Any, shape: tuple[int, ...], spatial: tuple[int, ...], named: list[str], what: str) -> Floats:
    """A number, a value a channel, or an array as one shaped like the values."""
    try:
        array = _array(given)
        if array.dtype.kind != "f":
            raise TypeError(f"{array.dtype} is not a number")
        array = array.astype(np.float64)
        if array.ndim == 1 and array.ndim < len(shape) and len(array) == math.prod(
                n for axis, n in enumerate(shape) if axis not in spatial):
            array = array.reshape([n if axis not in spatial else 1 for axis, n in enumerate(shape)])
        array = np.broadcast_to(array, shape).copy()
    except (TypeError, ValueError) as error:
        raise ValueError(f"baseline must be one of {', '.join(named)}, a number or an array shaped like {what}, "
                         f"{shape}, got {type(given).__name__} of shape {_shape(given)}") from error
    if not np.isfinite(array).all():
        raise ValueError("baseline must be finite, got NaN or infinite values")
    return array
