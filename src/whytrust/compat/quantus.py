"""Quantus' way of calling a metric, for ours; and Quantus' metrics in our lie detector.

    from whytrust.compat.quantus import FromQuantus, Styled
    values = Styled("pixel_flipping")(model=net, x_batch=x, y_batch=y, a_batch=a)
    tried = wt.metrics([FromQuantus(quantus.FaithfulnessCorrelation(...))], "image")

Quantus itself is never imported here: whoever has one of its metrics has it.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from whytrust import api, inputs, judging
from whytrust.backends.torch_asked import net_of
from whytrust.checked import CheckedModel
from whytrust.core import CoveredParts, Floats, generator
from whytrust.measures.judged import ANY, About, Goal, Judged, judge
from whytrust.question import Memory, Question

ARRAYS = ("image", "audio", "tabular")
"""What Quantus can be given."""


@dataclass(frozen=True)
class Styled:
    """One of our metrics, called as those of Quantus are: batches of inputs, labels, attributions and masks in, a list out.

    `x_batch` is (n, channels, height, width), (n, height, width) or (n, samples); every pixel, or sample, is a part, hidden
    behind `baseline`. `y_batch` are classes, or one-hot rows of them. Attributions with channels are summed over them; without
    `a_batch` they are asked of `explain_func`. A model is whatever wt.model takes; with `softmax` its outputs are logits.
    """

    metric: Any
    baseline: str = "zeros"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse at once what is no metric of ours."""
        judging.chosen(self.metric)

    def __call__(self, model: Any, x_batch: Any, y_batch: Any, a_batch: Any = None, s_batch: Any = None,
                 explain_func: Callable[..., Any] | None = None, softmax: bool = False, channel_first: bool = True,
                 **options: Any) -> list[float]:
        """One number for each input."""
        metric, x, y = judging.chosen(self.metric)[0], np.asarray(x_batch), np.asarray(y_batch)
        if not channel_first:
            raise ValueError("x_batch must have its channels first, (n, channels, height, width); move them with np.moveaxis")
        y = y.ravel() if y.ndim == 2 and y.shape[1] == 1 else y.argmax(axis=1) if y.ndim == 2 else y
        if softmax and isinstance(model, CheckedModel):
            raise ValueError("softmax is for a net as it is; of a model of wt.model say output='logit' where it is wrapped")
        if a_batch is None and explain_func is None:
            raise ValueError("a_batch must be given, or explain_func(model, inputs, targets), which makes it")
        a = np.asarray(explain_func(model=model, inputs=x, targets=y) if a_batch is None and explain_func is not None
                       else a_batch, dtype=np.float64)
        if y.ndim != 1 or a.ndim < 1 or len(x) != len(a) or len(x) != len(y):
            raise ValueError(f"x_batch, y_batch and a_batch must have one entry for each input, got {x.shape}, {y.shape} and "
                             f"{a.shape}")
        missing = {"truth": s_batch, "explain": explain_func}
        for need, called in (("truth", "s_batch"), ("explain", "explain_func")):
            if need in metric.about.needs and missing[need] is None:
                raise ValueError(f"{metric.about.name} needs {called}")
        layout = "NCHW" if x.ndim == 4 else "NHWC"
        given = {**({"layout": layout} if x.ndim == 4 else {}), **({"output": "logit"} if softmax else {}), **options}
        wrapped = model if isinstance(model, CheckedModel) else api.model(model, **given)
        found = []
        for i, (one, target) in enumerate(zip(x, y, strict=True)):
            question = Question(wrapped, self._parts(one, layout, i), int(target))
            truth = None if s_batch is None else np.asarray(s_batch)[i].reshape(question.parts.view.spread(
                np.zeros(question.d)).shape) > 0
            judged = Judged(question, _scores(a[i], question.d), truth=truth,
                            explain=None if explain_func is None else _explaining(explain_func, wrapped, model))
            found.append(judge(metric, judged, generator(self.seed, metric.about.name, i)))
        return found

    def _parts(self, one: Any, layout: str, case: int) -> Any:
        spec = np.arange(one.shape[-1] * one.shape[-2], dtype=np.int64).reshape(one.shape[-2:]) if one.ndim > 1 else (
            np.arange(len(one)))
        parts = inputs.cut(one, spec, layout, {})
        if not isinstance(parts, CoveredParts):
            raise TypeError(f"inputs must be images or sounds to be hidden behind a baseline, got {type(parts).__name__}")
        return parts.behind(self.baseline, generator(self.seed, "baseline", case))


def _scores(map: Floats, d: int) -> Floats:
    values = map.reshape(-1, d) if map.size % d == 0 and map.size else None
    if values is None:
        raise ValueError(f"an attribution must have one number for each of {d} pixels or samples, or for each of their "
                         f"channels, got shape {map.shape}")
    return np.asarray(values.sum(axis=0))


def _explaining(explain: Callable[..., Any], wrapped: CheckedModel, model: Any) -> Callable[[Question], Floats]:
    """Quantus' explain_func(model, inputs, targets) as ours; another model is handed on as it is wrapped here."""
    def explained(question: Question) -> Floats:
        asked = model if question.model is wrapped else question.model
        batch = np.asarray(question.input)
        maps = explain(model=asked, inputs=batch, targets=np.array([question.target]))
        return _scores(np.asarray(maps, dtype=np.float64)[0], question.d)

    return explained


@dataclass(frozen=True)
class FromQuantus:
    """A metric of Quantus as one of ours, so that the lie detector can try it on arrays: pictures, sounds and rows.

    `higher` is taken from the metric where it says so. What it returns for one input is averaged to one number.
    """

    metric: Any
    name: str = ""
    higher: bool | None = None
    goals: tuple[Goal, ...] = ("contribution",)
    aspect: Any = "faithfulness"
    needs: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        """Refuse a class, of which no metric has been made yet."""
        if isinstance(self.metric, type) or not callable(self.metric):
            what = f"the class {self.metric.__name__}" if isinstance(self.metric, type) else type(self.metric).__name__
            raise TypeError(f"a metric of Quantus must be made first, FromQuantus(quantus.PixelFlipping(…)), got {what}")

    def __repr__(self) -> str:
        """What it is made of, without addresses: the same settings are written the same in every run."""
        own = {name: value for name, value in sorted(getattr(self.metric, "__dict__", {}).items()) if not name.startswith("_")}
        return (f"FromQuantus({type(self.metric).__name__}({', '.join(f'{k}={_written(v)}' for k, v in own.items())}), "
                f"{self.name!r}, {self.higher}, {self.goals}, {self.aspect!r}, {self.needs}, {_written(self.options)})")

    @property
    def about(self) -> About:
        """What it is, as far as it says."""
        kind = type(self.metric).__name__
        direction = str(getattr(getattr(self.metric, "score_direction", None), "value", "")).lower()
        if self.higher is None and direction not in ("higher", "lower"):
            raise ValueError(f"{kind} does not say which way is better; pass higher=True or higher=False")
        plausible = self.aspect == "plausibility"
        return About(self.name or f"quantus/{kind}", f"{kind} of Quantus", direction == "higher" if self.higher is None else
                     self.higher, ANY if plausible else self.goals, "alignment" if plausible else "performance", self.aspect,
                     "Hedström et al. 2023", self.needs, ARRAYS, own_baseline=True)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The mean of what it returns for this one input; numpy's global state, which it draws from, is set and put back."""
        question, last = judged.question, _channels_last(judged)
        own = np.asarray(question.input[0], dtype=np.float32)
        x = np.moveaxis(own, -1, 0) if last else own
        shape = x.shape if x.ndim == 3 else (1, *x.shape)
        map = np.asarray(judged.map, dtype=np.float64).reshape(1, *x.shape[-2:] if x.ndim > 1 else x.shape)

        def ask(batch: Any) -> Floats:
            return question.model(np.moveaxis(batch, 1, -1) if last else batch)
        given: dict[str, Any] = {"s_batch": None if judged.truth is None else judged.truth.reshape(1, *map.shape)}
        if judged.explain is not None:
            given["explain_func"] = _as_theirs(judged)
        before = np.random.get_state()  # noqa: NPY002, Quantus draws from nothing else
        try:
            np.random.seed(int(rng.integers(2**32)))  # noqa: NPY002
            found = self.metric(model=net_of(ask, x.shape), x_batch=x.reshape(1, *shape),
                                y_batch=np.array([question.target]), a_batch=map[None], device="cpu", softmax=False,
                                channel_first=True, **given, **self.options)
            return float(np.mean(np.asarray(found, dtype=np.float64)))
        except Exception as error:  # whatever it raises is told of this metric, and the others go on
            raise ValueError(f"{type(self.metric).__name__} of Quantus raised {type(error).__name__}: {error}") from error
        finally:
            np.random.set_state(before)  # noqa: NPY002


def _written(value: Any) -> str:
    """A setting in words that are the same in every run: functions by name, partial ones and collections by what they hold."""
    if isinstance(value, functools.partial):
        return f"partial({_written(value.func)}, {_written(value.args)}, {_written(value.keywords)})"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {_written(one)}" for key, one in sorted(value.items(), key=str)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_written, value)) + "]"
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {hashlib.blake2b(value.tobytes(), digest_size=8).hexdigest()}"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return repr(value)


def _channels_last(judged: Judged) -> bool:
    """Has the input channels, where Quantus does not want them?"""
    return np.ndim(judged.question.input[0]) == 3 and not getattr(judged.question.parts, "channels_first", False)


def _as_theirs(judged: Judged) -> Callable[..., Any]:
    """Our explainer as Quantus calls one: explain_func(model, inputs, targets) -> maps."""
    def explained(model: Any, inputs: Any, targets: Any, **_: Any) -> Any:
        parts: Any = judged.question.parts
        own = np.asarray(judged.question.input[0])
        last = _channels_last(judged)
        maps = []
        for one, target in zip(np.asarray(inputs), np.asarray(targets), strict=True):
            picture = (np.moveaxis(one, 0, -1) if last else one).reshape(own.shape)
            asked = replace(judged.question, parts=parts.like(picture.astype(own.dtype)), target=int(target),
                            memory=Memory((int(target),)))
            maps.append(asked.parts.view.spread(judged.explain(asked)))  # type: ignore[misc]
        return np.asarray(maps)[:, None]

    return explained

