"""Calling what others wrote: on the user's own object, with the same random numbers each time, and leaving no trace."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from whytrust.backends.torch import Fresh
from whytrust.backends.torch_modes import evaluating
from whytrust.core import Batch, MissingExtra
from whytrust.question import Question


def source_of(function: Any) -> Any:
    """The user's own object behind a model: the net, the estimator, or the function itself."""
    for name in ("source", "module", "estimator"):
        found = getattr(function, name, None)
        if found is not None:
            return found
    return function


def taken_by_source(question: Question) -> Batch:
    """A batch of one as the user's own object takes it: after the model's preprocessing, and in order in memory."""
    batch = question.input
    if question.model.preparation is None:
        return batch
    prepared: Any = question.model.prepared(batch)
    made: Any = prepared.array if isinstance(prepared, Fresh) else prepared
    if hasattr(made, "contiguous"):
        return made.contiguous()
    return np.ascontiguousarray(made) if isinstance(made, np.ndarray) else made


def plain_settings(options: dict[str, Any], pooling: str | None) -> dict[str, Any]:
    """Options as plain data that can be written down; arrays and objects by their type."""
    plain = {k: v if isinstance(v, str | int | float | bool | None) else type(v).__name__ for k, v in options.items()}
    return plain if pooling is None else {"pooling": pooling, **plain}


def called(name: str, call: Callable[[], Any], question: Question, rng: np.random.Generator, *objects: Any) -> Any:
    """What the call returns; whatever it raises is one clear error with its name."""
    with seeded(rng), left_alone(source_of(question.model.function), *objects):
        try:
            return call()
        except MissingExtra:
            raise
        except Exception as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{name} raised {type(error).__name__}: {error}; look at the options given with method=, and at what "
                       "it takes as input") from error


@contextlib.contextmanager
def seeded(rng: np.random.Generator) -> Iterator[None]:
    """Global random states (Python's, numpy's, torch's) seeded from `rng`, and put back as they were."""
    seed = int(rng.integers(2**32))
    torch = sys.modules.get("torch")
    before, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 - the state that foreign code draws from
    with contextlib.ExitStack() as stack:
        if torch is not None:
            stack.enter_context(torch.random.fork_rng(devices=range(torch.cuda.device_count())))
            torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            random.setstate(before)
            np.random.set_state(legacy)  # noqa: NPY002


@contextlib.contextmanager
def left_alone(*objects: Any) -> Iterator[None]:
    """torch modules among the objects, in a tuple or as `.model` (Hugging Face) too, are in eval mode inside; afterwards their
    mode and gradients are what they were.

    An object's own RandomState (lime's explainers have one) is put back too, so that a second call draws the same.
    """
    torch = sys.modules.get("torch")
    held = [h for o in objects for h in (*(o if isinstance(o, tuple) else (o,)), getattr(o, "model", None))]
    nets = [] if torch is None else [h for h in held if isinstance(h, torch.nn.Module)]
    gradients = [(p, p.grad) for net in nets for p in net.parameters()]
    streams = [o.random_state for o in objects if isinstance(getattr(o, "random_state", None), np.random.RandomState)]
    states = [stream.get_state() for stream in streams]
    for parameter, _ in gradients:
        parameter.grad = None  # so that nothing is added to the user's own
    try:
        with evaluating(*nets):
            yield
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
        for stream, state in zip(streams, states, strict=True):
            stream.set_state(state)
