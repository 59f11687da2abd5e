"""A model as everything here sees it: a function from n inputs to (n, classes) scores, checked at every call."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from whytrust.logits import Floats as Floats
from whytrust.logits import are_shares, log_odds_of_logits, log_odds_of_rows, sigmoid, softmax
from whytrust.logits import one_hot as one_hot
from whytrust.memory import RanOut, in_pieces, piece, ran_out

Batch = Any
"""n inputs as one model takes them: a list of texts, an array with n rows, a DataFrame."""
LONG = 400
"""Numbers from which on an input with one axis is a waveform rather than a row."""
Weights = Floats | Callable[[Floats], Floats]
"""What to pull back: a number for each score, or a function of the scores, so that a loss costs no second forward pass."""


IMAGES = ("NHWC", "NCHW")
SOUNDS = ("NT", "NCT", "NTF", "NFT", "NCTF", "NCFT")
"""Layouts of waveforms and spectrograms: n inputs, one channel (C), samples or frames (T), bands (F)."""


@dataclass(frozen=True)
class LaidOut:
    """A batch of sounds, (n, samples) or (n, frames, bands), with its axes as a model wants them; then its preprocessing."""

    layout: str
    then: Callable[[Batch], Batch] | None = None

    def __call__(self, batch: Batch) -> Batch:
        """The same numbers; arrays and tensors alike."""
        turned = batch.swapaxes(1, 2) if "FT" in self.layout else batch
        found = turned[:, None] if "C" in self.layout else turned
        return found if self.then is None else self.then(found)


class Refused(ValueError):
    """What was asked of a model cannot be had; the message is whytrust's own and says all there is to say."""


class RefusedKind(Refused, TypeError):
    """The same, because of the kind of thing that came."""


@runtime_checkable
class Differentiable(Protocol):
    """A model that can also pull a change of its scores back to its inputs."""

    def __call__(self, batch: Batch) -> Floats:
        """Scores of n inputs, (n, classes)."""
        ...

    def vjp(self, batch: Batch, weights: Weights) -> tuple[Floats, Floats]:
        """(scores, gradient of (weights * scores).sum() with respect to the inputs)."""
        ...


@dataclass(frozen=True)
class Cut:
    """A model seen from one of its layers: what the layer gave for one input, and the rest of the model as a function of that.

    `tail` is a model of arrays shaped (n, *values.shape). Where the values have a place in the input, it is said: character
    spans of a text, one for each row of values (None for a special token); seconds and hertz of the middle of each frame and
    band of a sound. `absent` is what the layer gives for nothing: the embedding of a text's padding.
    """

    values: Floats
    tail: DifferentiableModel
    spans: tuple[tuple[int, int] | None, ...] | None = None
    seconds: Floats | None = None
    hertz: Floats | None = None
    absent: Floats | None = None
    layer: str = ""
    seen: tuple[int, ...] = ()  # the shape of what the net itself is given for the input
    cropped: bool = False  # does the net not see the edge of the image?
    channels: int = 0  # the axis of `values` that has the channels of a feature map
    grid: tuple[int, int, int] | None = None  # of a transformer's tokens: height, width, tokens before the first place


@dataclass(frozen=True)
class CheckedModel:
    """A model whose every answer is checked: n inputs in, an (n, classes) array of finite scores out.

    One column is a regressor, unless `threshold` or `output` says that it is the score of the second of two classes;
    then it becomes [1 - p, p] and the label is decided by the threshold.
    """

    function: Callable[[Batch], Any]
    classes: tuple[str, ...] | None = None
    threshold: float | None = None
    output: Literal["probability", "logit"] | None = None
    layout: str = "NHWC"  # of images, or one of SOUNDS
    preprocess: Callable[[Batch], Batch] | None = None
    name: str = "model"

    def __post_init__(self) -> None:
        """Refuse options that mean nothing, before any model call."""
        if self.output not in (None, "probability", "logit"):
            raise ValueError(f"output must be 'probability' or 'logit' (what the model returns), got {self.output!r}")
        if self.layout not in (*IMAGES, *SOUNDS):
            raise ValueError(f"layout must be 'NHWC' or 'NCHW' for images, 'NT' or 'NCT' for waveforms, 'NTF', 'NFT', 'NCTF' "
                             f"or 'NCFT' for spectrograms, got {self.layout!r}")
        if self.moves and hasattr(self.preprocess, "forward"):
            raise ValueError(f"layout {self.layout!r} cannot come with a module as preprocess, which decides what the net "
                             "gets; move the axes in that module")
        if self.classes is not None and len(set(self.classes)) < len(self.classes):
            raise ValueError("classes must have different names, so that a name means one class; got "
                             f"{next(c for c in self.classes if self.classes.count(c) > 1)!r} more than once")
        is_number = isinstance(self.threshold, int | float | np.number) and not isinstance(self.threshold, bool)
        if self.threshold is not None and not (is_number and 0 < self.threshold < 1):
            raise ValueError(f"threshold must be a probability between 0 and 1, got {self.threshold!r}; leave it out for "
                             "margins, which are cut at 0")

    def __call__(self, batch: Batch) -> Floats:
        """Scores of n inputs, (n, classes); anything else the model returns is one clear ValueError."""
        found = in_pieces(self.name, len(batch), lambda at: self._scored(piece(batch, at)))
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _scored(self, batch: Batch) -> Floats:
        prepared = self.prepared(batch)
        raw = self.guarded(lambda: self.function(prepared), batch)
        return self._columns(self._array(raw, len(batch)))

    def __str__(self) -> str:
        """What this model is, what its scores mean and how a label is decided."""
        kind = getattr(self.function, "kind", "a function of a batch")
        classes = "classes not named" if self.classes is None else (
            f"{len(self.classes)} classes ({', '.join(self.classes[:4])}{', …' if len(self.classes) > 4 else ''})")
        scores = {"probability": "probabilities", "logit": "probabilities from its logits", None: "scores as they come"}
        label = (f"label: {(self.classes or ('class 0', 'class 1'))[1]} above {self.threshold:g}"
                 if self.threshold is not None else "label: the largest score; one column is a number without a label")
        if self.classes is not None and self.threshold is None:
            label = "label: the largest score"
        gradients = "gradients" if isinstance(self, Differentiable) else "no gradients"
        return f"{self.name} ({kind}): {scores[self.output]}, {classes}, {label}, {gradients}"

    def opened(self, parts: Any) -> Callable[[NDArray[np.bool_]], Floats] | None:
        """A shortcut from masks over these parts to scores, where the model has one; the caller checks what it says."""
        offer = getattr(self.function, "open", None)
        shortcut = None if offer is None or self.preprocess is not None else offer(parts)
        if shortcut is None:
            return None
        return lambda masks: self._columns(self._array(shortcut(masks), len(masks)))

    def settled(self, given: Any) -> Self:
        """The same model for floats in the units of these inputs, where its preprocess tells bytes from floats."""
        offer = getattr(self.function, "settled", None)
        return self if offer is None else replace(self, function=offer(given, self.preprocess))

    def asking(self) -> AbstractContextManager[None]:
        """Inside, one explanation asks batch after batch; what a framework must see to for each is seen to once."""
        held: Callable[[], AbstractContextManager[None]] = getattr(self.function, "asking", nullcontext)
        return held()

    def reads(self, text: str) -> int:
        """How many characters of a text the model reads; what lies beyond them cannot matter to it."""
        limit = getattr(self.function, "reads", None)
        return len(text) if limit is None or self.preprocess is not None else int(limit(text))

    def gives_probabilities(self, scores: Floats) -> bool:
        """Whether the scores of one input are probabilities: the model says so, or they are shares of 1."""
        return self.output is not None or self.threshold is not None or are_shares(scores)

    @property
    def log_odds(self) -> LogOdds:
        """The same model with log-odds for scores."""
        return LogOdds(**{f.name: getattr(self, f.name) for f in fields(CheckedModel)})

    def labels(self, scores: Floats) -> NDArray[np.intp]:
        """The class each row of scores decides for."""
        if scores.shape[1] == 1:
            raise TypeError(f"{self.name} has one output and is read as a regressor, which has no labels; "
                            "for a two-class model pass threshold=0.5 to wt.model")
        if self.threshold is not None:
            return (scores[:, 1] > self.threshold).astype(np.intp)
        return np.asarray(scores.argmax(axis=1), dtype=np.intp)

    def class_name(self, index: int, columns: int) -> str:
        """What to call output column `index`."""
        if self.classes is not None:
            return self.classes[index]
        return "output" if columns == 1 else f"class {index}"

    def class_index(self, target: int | str, columns: int) -> int:
        """The column a class name or an index (negative counts from the end) stands for."""
        names = self.classes or ()
        if isinstance(target, str) and target in names:
            return names.index(target)
        if isinstance(target, str) and not re.fullmatch("-?[0-9]+", target):
            if not names:
                raise ValueError(f"target must be an index from 0 to {columns - 1}, for the model's classes have no names, got "
                                 f"{target!r}; name them with classes= (--classes on the command line)")
            raise ValueError(f"target must be one of the model's classes ({_listed(names)}), got {target!r}")
        if isinstance(target, bool) or not isinstance(target, int | np.integer | str):
            raise TypeError(f"target must be a class name as text, an index or None, got {target!r}")
        index = int(target)
        if not -columns <= index < columns:
            names_too = f", or one of the classes ({_listed(names)}) as text" if names else ""
            raise ValueError(f"target must be an index from 0 to {columns - 1}{names_too}, got {index}")
        if not isinstance(target, str) and str(index) in names and names[index] != str(index):
            raise ValueError(f"target={index} could mean the class named {str(index)!r} or the one at position {index}, "
                             f"named {names[index]!r}; pass the name as text")
        return index % columns

    def prepared(self, batch: Batch) -> Batch:
        """What the model's function is given: the batch, or what `preprocess` makes of it."""
        first, prepare = self.preparation, getattr(self.function, "prepare", None)
        if first is None:
            return batch
        # A framework may know better how its own functions are called.
        return blaming("preprocess", lambda: first(batch) if prepare is None else prepare(batch, first), batch,
                       lambda error: self._hint(batch, error))

    @property
    def moves(self) -> bool:
        """Does the model want a sound's axes in another order than (n, samples) or (n, frames, bands)?"""
        return self.layout in SOUNDS and ("C" in self.layout or "FT" in self.layout)

    @property
    def preparation(self) -> Callable[[Batch], Batch] | None:
        """What is done to a batch before the model's function has it: axes moved as `layout` says, then `preprocess`."""
        return LaidOut(self.layout, self.preprocess) if self.moves else self.preprocess

    def guarded(self, ask: Callable[[], Any], batch: Batch) -> Any:
        """What `ask` gives, or whatever it raises as one clear error about this batch."""
        try:
            return ask()
        except (Refused, RanOut):
            raise
        except (Exception, SystemExit) as error:
            raise (RanOut if ran_out(error) else ValueError)(
                f"{self.name} raised {type(error).__name__}: {' '.join(str(error).split())} on a batch of {len(batch)} inputs ("
                f"{_kind(batch)}); it must accept such a batch and return one row of scores for each input"
                f"{self._hint(batch, error)}") from error

    def _hint(self, batch: Batch, error: BaseException) -> str:
        """What to try where a net was given images or sounds of a shape that it does not take."""
        telling = "channel|shape|size|dimension|axis|axes|[Ee]xpected|should contain"
        if not isinstance(batch, np.ndarray) or not re.search(telling, str(error)):
            return ""
        if self.layout in SOUNDS or (batch.ndim == 2 and batch.shape[1] >= LONG):
            asked = {2: "'NCT' (n, 1, samples)", 3: "'NFT' (n, bands, frames), 'NCTF' or 'NCFT' (with an axis of one channel)"}
            axes = "(samples,)" if batch.ndim == 2 else "(frames, bands)"
            return (f"; each input came as {axes} = {batch.shape[1:]}, with layout {self.layout!r}: if the model wants other "
                    f"axes, pass wt.model(…, layout=…), one of {asked[batch.ndim]}" if batch.ndim in asked else "")
        grey = batch.ndim == 3 and self.layout == "NHWC" and hasattr(self.function, "takes_floats")
        if batch.ndim != 4 and not grey:
            return ""
        first, shape = self.layout == "NCHW", batch.shape[1:]
        place = "no channels" if grey else "channels first" if first else "channels last"
        mode = "L" if not grey and shape[0 if first else -1] == 3 else "RGB"
        turned = "layout='NHWC')" if first else "layout='NCHW') or channels moved in preprocess"
        return (f"; each input came with shape {shape}, {place}: if the model wants another, try image.convert('{mode}'), "
                f"wt.model(…, {turned}, or a preprocess= that makes the size it wants")

    def _array(self, raw: Any, n: int) -> Floats:
        if raw is None:
            raise ValueError(f"{self.name} must return one row of scores for each input, got None; does its code return them?")
        try:
            values = np.asarray(raw.detach().cpu().double() if hasattr(raw, "detach") else raw)
            if values.dtype.kind not in "biufO" or isinstance(raw, np.ma.MaskedArray):
                raise TypeError(f"{type(raw).__name__} of {values.dtype}")
            scores = np.array(values, dtype=np.float64)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(f"{self.name} must return numbers, one row for each input, "
                             f"got {type(raw).__name__} ({error})") from error
        if n == 1 and scores.ndim < 2:
            scores = scores.reshape(1, -1)  # nets that squeeze their outputs drop the axis of a single input
        elif scores.ndim == 1 and len(scores) == n:
            scores = scores[:, None]
        if scores.ndim != 2 or len(scores) != n or scores.shape[1] == 0:
            raise ValueError(f"{self.name} must return one row of scores for each input: expected ({n}, classes), "
                             f"got shape {scores.shape}")
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
            raise ValueError(f"{self.name} must return finite scores, got {scores[row][~np.isfinite(scores[row])][0]} "
                             f"for input {row} of a batch of {n}; look at what the model does with that input")
        return scores

    def _columns(self, scores: Floats) -> Floats:
        single = scores.shape[1] == 1
        if self.threshold is not None and scores.shape[1] > 2:
            raise ValueError(f"threshold is for models with one output or two classes, {self.name} returns "
                             f"{scores.shape[1]} columns; leave threshold out")
        if self.output == "logit":
            scores = sigmoid(scores) if single else softmax(scores)
        is_probability = self.output == "probability" or (self.threshold is not None and self.output is None)
        if is_probability and (scores.min() < -1e-6 or scores.max() > 1 + 1e-6):
            cut = "" if self.threshold is None else ", if they are margins or a regressor's numbers leave threshold out"
            raise ValueError(f"{self.name} must return probabilities between 0 and 1, got values from {scores.min():.4g} "
                             f"to {scores.max():.4g}; if these are logits pass output='logit'{cut}")
        if single and (self.output is not None or self.threshold is not None):
            scores = np.hstack([1 - scores, scores])
        if self.classes is not None and len(self.classes) != scores.shape[1]:
            raise ValueError(f"classes must name every output: {self.name} returns {scores.shape[1]} columns, "
                             f"got {len(self.classes)} names")
        return scores


@dataclass(frozen=True)
class LogOdds(CheckedModel):
    """The same model, whose scores are each class's log-odds: from its logits where it gives those, else from probabilities."""

    def _columns(self, scores: Floats) -> Floats:
        if self.output == "logit":
            return np.hstack([-scores, scores]) if scores.shape[1] == 1 else log_odds_of_logits(scores)
        shares = super()._columns(scores)
        if shares.min() < -1e-6 or shares.max() > 1 + 1e-6:
            raise ValueError(f"{self.name} must return probabilities between 0 and 1 for explains='logit', got values from "
                             f"{shares.min():.4g} to {shares.max():.4g}; leave explains out")
        return log_odds_of_rows(shares)


@dataclass(frozen=True)
class DifferentiableModel(CheckedModel):
    """A checked model whose function has `pullback(batch, preprocess)` -> (outputs, weights of outputs -> gradient).

    The gradient may have a method `last`, for whoever will not ask again; the function may have `cut(at, batch, preprocess)`
    (see Cut) and `ruled(rule)`, itself with another backward pass.
    """

    def vjp(self, batch: Batch, weights: Weights) -> tuple[Floats, Floats]:
        """(scores, gradient of (weights * scores).sum()), the gradient shaped like the batch: the one gradient primitive."""
        whole = slice(0, len(batch))
        of_all: list[Floats] = []  # a function of the scores may ask for those of all inputs together

        def pulled(at: slice) -> tuple[Floats, Floats]:
            scores, pull = self.linearised(piece(batch, at))
            if callable(weights) and at != whole:
                of_all[:] = of_all or [weights(self(batch))]
                return scores, pull(of_all[0][at], last=True)
            return scores, pull(weights(scores) if callable(weights) else piece(weights, at), last=True)

        scores, gradients = zip(*in_pieces(self.name, len(batch), pulled), strict=True)
        return (scores[0], gradients[0]) if len(scores) == 1 else (np.concatenate(scores), np.concatenate(gradients))

    def linearised(self, batch: Batch) -> tuple[Floats, Callable[..., Floats]]:
        """(scores, weights of the scores -> gradient): one forward pass, and a backward pass for each time it is pulled."""
        function: Any = self.function
        outputs, pull = self.guarded(lambda: function.pullback(batch, self.preparation), batch)
        scores = self._columns(raw := self._array(outputs, len(batch)))

        def gradient_of(weights: Floats, last: bool = False) -> Floats:
            wanted = np.asarray(weights, dtype=np.float64)
            if wanted.shape != scores.shape:
                raise ValueError(f"weights must have one number for each score: expected {scores.shape}, got {wanted.shape}")
            back: Any = getattr(pull, "last", pull) if last else pull
            gradient = np.asarray(self.guarded(lambda: back(self._pulled(raw, scores, wanted)), batch))
            if gradient.shape != np.shape(batch) or not np.isfinite(gradient).all():
                raise ValueError(f"{self.name} must give finite gradients shaped like its inputs, {np.shape(batch)}, got "
                                 f"{gradient.shape}{'' if np.isfinite(gradient).all() else ' with NaN or infinite values'}; a "
                                 "square root, a logarithm or a norm at 0 in the model is the usual cause")
            return gradient

        return scores, gradient_of

    def squashed(self, raw: Floats) -> Floats:
        """Outputs of `raw` as this model's scores."""
        return self._columns(raw)

    def cut(self, batch: Batch, at: str | None = None) -> Cut:
        """The model seen from the layer of that name, for a batch of one input; None is where its inputs become numbers."""
        offer = getattr(self.function, "cut", None)
        if offer is None:
            raise TypeError(f"{self.name} must be a torch module or a Hugging Face model to be cut at a layer, "
                            f"got {getattr(self.function, 'kind', 'a function')}; leave the layer out")
        values, function, places = self.guarded(lambda: offer(at, batch, self.preparation), batch)
        layout = "NTF" if self.moves else self.layout  # the tail takes what the layer gives
        return Cut(values, replace(self, function=function, preprocess=None, layout=layout), **places)

    def ruled(self, rule: str) -> DifferentiableModel:
        """The same model, whose gradients follow a rule of their own: guided, deconvnet or excitation."""
        offer = getattr(self.function, "ruled", None)
        if offer is None:
            raise TypeError(f"{rule} changes how a net is run backwards, and {self.name} must be a torch module for that, "
                            f"got {getattr(self.function, 'kind', 'a function')}; saliency takes its gradients as they are")
        return replace(self, function=offer(rule))

    @property
    def raw(self) -> RawModel:
        """The model's own outputs, before the softmax or sigmoid that `output="logit"` asks for."""
        kept = {f.name: getattr(self, f.name) for f in fields(CheckedModel)}
        squashed = self.output == "logit"
        return RawModel(**{**kept, "output": None if squashed else self.output, "threshold": None if squashed else
                           self.threshold, "classes": None}, link="logit" if squashed else "probability" if self.output or
                        self.threshold else None, cutoff=self.threshold)

    def _pulled(self, raw: Floats, scores: Floats, weights: Floats) -> Floats:
        """Weights of the scores -> weights of the model's own outputs, through what `_columns` did to them."""
        if scores.shape[1] != raw.shape[1]:
            weights, scores = weights[:, 1:] - weights[:, :1], scores[:, 1:]
            return np.asarray(weights * scores * (1 - scores) if self.output == "logit" else weights)
        if self.output == "logit":
            return np.asarray(scores * (weights - (weights * scores).sum(axis=1, keepdims=True)))
        return weights


@dataclass(frozen=True)
class RawModel(DifferentiableModel):
    """A model's own outputs: logits where they are known to be, which never saturate as probabilities do.

    One logit of two classes stays one column: it speaks for class 1, and its negative for class 0. So whoever asks goes through
    `toward`, `surprise`, `margins` and `labels`, which know.
    """

    link: Literal["logit", "probability"] | None = None
    cutoff: float | None = None  # the threshold, as a probability

    def toward(self, scores: Floats, targets: NDArray[np.intp]) -> Floats:
        """Weights whose pull-back is the gradient of each target's score; one row a score row."""
        if scores.shape[1] == 1:
            return np.where(targets == 0, -1.0, 1.0)[:, None] if self.link == "logit" else np.ones((len(targets), 1))
        return one_hot(scores.shape, targets)

    def surprise(self, scores: Floats, targets: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """(−log p of each target, its derivative with respect to the scores); scores that are not known to be probabilities
        are taken for logits."""
        rows = np.arange(len(scores))
        if self.link == "probability":
            p = np.maximum(scores[rows, targets], 1e-300)
            weights = np.zeros_like(scores)
            weights[rows, targets] = -1 / p
            return -np.log(p), weights
        if scores.shape[1] == 1:
            sign = self.toward(scores, targets)
            return np.logaddexp(0, -sign * scores)[:, 0], -sign * sigmoid(-sign * scores)
        shifted = scores - scores.max(axis=1, keepdims=True)
        log_sum = np.log(np.exp(shifted).sum(axis=1))
        return log_sum - shifted[rows, targets], np.exp(shifted - log_sum[:, None]) - self.toward(scores, targets)

    def margins(self, scores: Floats, targets: NDArray[np.intp]) -> Floats:
        """How far each target is ahead of the best other class (behind, where negative), in the units of the scores."""
        if scores.shape[1] == 1:
            return np.asarray((self.toward(scores, targets) * (scores - self._edge))[:, 0])
        rows = np.arange(len(scores))
        if scores.shape[1] == 2 and self.cutoff is not None:
            ahead = (scores[:, 1] - scores[:, 0] - self._edge if self.link == "logit" else 2 * (scores[:, 1] - self.cutoff))
            return np.asarray(np.where(targets == 1, ahead, -ahead))
        others = scores.copy()
        others[rows, targets] = -np.inf
        return np.asarray(scores[rows, targets] - others.max(axis=1))

    def labels(self, scores: Floats) -> NDArray[np.intp]:
        """The class each row decides for, as the model itself decides."""
        if scores.shape[1] == 1 and self.link != "logit":
            return super().labels(scores)
        if scores.shape[1] == 1 or (scores.shape[1] == 2 and self.cutoff is not None):
            ones = np.ones(len(scores), dtype=np.intp)
            return np.asarray(self.margins(scores, ones) > 0, dtype=np.intp)
        return np.asarray(scores.argmax(axis=1), dtype=np.intp)

    @property
    def _edge(self) -> float:
        """The logit at which the label changes."""
        p = 0.5 if self.cutoff is None else self.cutoff
        return float(np.log(p / (1 - p)))


def blaming(who: str, ask: Callable[[], Any], batch: Batch, hint: Callable[[BaseException], str] = lambda error: "") -> Any:
    """What `ask` gives, or what it raises as one clear error about who raised it on this batch."""
    try:
        return ask()
    except (Refused, RanOut):
        raise
    except (Exception, SystemExit) as error:
        raise (RanOut if ran_out(error) else Refused)(
            f"{who} raised {type(error).__name__}: {' '.join(str(error).split())} on a batch of {len(batch)} inputs ("
            f"{_kind(batch)}); it must accept such a batch and return what the model takes{hint(error)}") from error


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def _kind(batch: Batch) -> str:
    if isinstance(batch, np.ndarray):
        return f"array {batch.shape} of {batch.dtype}"
    if hasattr(batch, "columns"):
        return f"DataFrame with columns {', '.join(map(str, list(batch.columns)[:6]))}{'…' if len(batch.columns) > 6 else ''}"
    return f"{type(batch).__name__} of {type(batch[0]).__name__}" if len(batch) else f"empty {type(batch).__name__}"
