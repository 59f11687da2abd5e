"""From what a caller holds to arrays that can be attacked, each checked by itself: one bad input stops no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.attacks.ball import Bounds, Inside, ends
from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import Floats, generator

Errors = dict[int, Exception]


def differentiable(model: Any) -> DifferentiableModel:
    """The model, if it has gradients."""
    if not isinstance(model, CheckedModel):
        raise TypeError(f"an attack must be given a model as wt.model makes it, got {type(model).__name__}; pass wt.model(obj)")
    if not isinstance(model, DifferentiableModel):
        raise TypeError(f"an attack follows gradients, and {model.name} must have them, got "
                        f"{getattr(model.function, 'kind', 'a function of a batch')}; pass the torch module itself, with what "
                        "is done before it as preprocess=")
    return model


def arrays(inputs: Any, errors: Errors) -> list[NDArray[Any] | None]:
    """Every input as a finite array of numbers; None, and its error, where it is none.

    Where an input could not even be read, the caller passes the exception in its place.
    """
    if isinstance(inputs, str | bytes) or not hasattr(inputs, "__len__") or not hasattr(inputs, "__getitem__"):
        raise TypeError(f"inputs must be an array with one input a row or a list of arrays, got {type(inputs).__name__}; pass "
                        "[x] for one input")
    if not len(inputs):
        raise ValueError("inputs must hold at least one input, got none")
    found: list[NDArray[Any] | None] = []
    for index in range(len(inputs)):
        try:
            found.append(_numbers(inputs[index]))
        except (TypeError, ValueError, OSError) as error:
            errors[index] = error
            found.append(None)
    return found


def _numbers(one: Any) -> NDArray[Any]:
    if isinstance(one, Exception):
        raise one
    if isinstance(one, str | bytes | dict):
        raise TypeError(f"an attack changes numbers, and an input must be an array of them, got {type(one).__name__}; texts "
                        "are attacked by swapping words")
    array = np.asarray(one.detach().cpu() if hasattr(one, "detach") else one)
    if array.dtype.kind not in "biuf" or not array.size or not array.ndim:
        raise TypeError(f"an attack changes numbers, and an input must be an array of them, got {array.dtype} {array.shape}; "
                        "texts and tables with strings have no gradient to follow")
    if not np.isfinite(array).all():
        raise ValueError(f"an input must have finite numbers, got {int((~np.isfinite(array)).sum())} that are NaN or infinite; "
                         "replace them first, for example with np.nan_to_num")
    return array


def floats(array: NDArray[Any], bounds: Bounds) -> Floats:
    """The input in the type it is attacked in: float32 and float64 as they are, else float32 where that holds every number."""
    low, high = ends(bounds)
    if array.min() < low or array.max() > high:
        raise ValueError(f"an input must lie within the bounds {low:g} to {high:g}, got numbers from {float(array.min()):g} to "
                         f"{float(array.max()):g}; pass bounds=(low, high) that hold for every input, or bounds=None")
    if array.dtype.kind == "f" and array.dtype.itemsize in (4, 8):
        return np.array(array, dtype=array.dtype.newbyteorder("="))
    narrow = array.astype(np.float32)
    return narrow if (narrow == array).all() else array.astype(np.float64)


def settle_ids(ids: Sequence[str | int] | None, n: int) -> list[str | int]:
    """What the randomness of each input is drawn from: its position, or what the caller calls it."""
    if ids is None:
        return list(range(n))
    if len(ids) != n or not all(isinstance(i, str | int | np.integer) for i in ids):
        raise ValueError(f"ids must be a number >= 0 or a name for each input: expected {n}, got {len(ids)}: {ids!r:.80}")
    return [i if isinstance(i, str) else int(i) for i in ids]


# --- targets ----------------------------------------------------------------------------------------------------------


def settle_targets(model: CheckedModel, targets: Any, labels: dict[int, int], columns: int, n: int,
                   seeds: tuple[int, list[Any]], may_agree: bool, errors: Errors) -> dict[int, int | None]:
    """The target of each input that still has no error; None is untargeted.

    A random target is drawn evenly from the classes that the model does not predict now, from the input's own seed.
    """
    if targets is None:
        return dict.fromkeys(labels, None)
    seed, ids = seeds
    if isinstance(targets, str) and targets == "random" and "random" not in (model.classes or ()):
        drawn = {i: int(generator(seed, "attack", ids[i], "target").integers(columns - 1)) for i in labels}
        return {i: t + (t >= labels[i]) for i, t in drawn.items()}
    single = np.ndim(targets) == 0
    each: Sequence[Any] = [_looked_up(model, targets, columns)] * n if single else _spread_targets(targets, n)
    found: dict[int, int | None] = {}
    for i, label in labels.items():
        try:
            target = each[i] if single else None if each[i] is None else _looked_up(model, each[i], columns)
            if target is None and may_agree:
                raise ValueError(f"a target must be the true label of its input, got None for input {i}")
            if target == label and not may_agree:
                raise ValueError(f"a target must differ from what the model says already, input {i} is classified as "
                                 f"{model.class_name(label, columns)}; pass another target for it, targets='random', or None")
            found[i] = target
        except (TypeError, ValueError) as error:
            errors[i] = error
    return found


def _looked_up(model: CheckedModel, target: Any, columns: int) -> int:
    return model.class_index(target.item() if isinstance(target, np.generic | np.ndarray) else target, columns)


def _spread_targets(targets: Any, n: int) -> Sequence[Any]:
    if len(targets) != n:
        raise ValueError(f"targets must be one class, or one for each input: expected {n}, got {len(targets)}")
    return list(targets.tolist() if hasattr(targets, "tolist") else targets)


# --- where ------------------------------------------------------------------------------------------------------------


def settle_inside(inside: Any, shapes: dict[int, tuple[int, ...]], n: int, layout: str, errors: Errors) -> dict[int, Inside]:
    """Where each input may change, shaped like it: one mask for all, or one each."""
    if inside is None:
        return dict.fromkeys(shapes, None)
    each = inside if isinstance(inside, list | tuple) else None
    if each is None:
        mask = np.asarray(inside)
        fits = any(_fitted(mask, shape, layout) is not None for shape in shapes.values())
        each = [mask] * n if fits or mask.ndim == 0 or len(mask) != n else list(mask)
    if len(each) != n:
        raise ValueError(f"inside must be one array of booleans, or one for each input: expected {n}, got {len(each)}")
    found: dict[int, Inside] = {}
    for i, shape in shapes.items():
        mask = np.asarray(each[i])
        fitted = _fitted(mask, shape, layout) if mask.dtype == bool else None
        if fitted is None:
            errors[i] = ValueError(f"inside must be booleans shaped like an input, {shape}, or like its pixels, got "
                                   f"{mask.dtype} {mask.shape}; for numbers of parts pass parts= too")
        elif not fitted.any():
            errors[i] = ValueError("inside must be true somewhere, got an array without a True: nothing could be changed")
        else:
            found[i] = np.ascontiguousarray(fitted)
    return found


def _fitted(mask: NDArray[Any], shape: tuple[int, ...], layout: str) -> NDArray[Any] | None:
    """The mask spread over the axis of channels, wherever that is; None where it does not fit."""
    if mask.shape == shape:
        return mask
    if mask.ndim == len(shape) and all(m in (1, s) for m, s in zip(mask.shape, shape, strict=True)):
        return np.broadcast_to(mask, shape)
    if layout == "NCHW" and mask.ndim == 3 and mask.shape == (*shape[1:], shape[0]):
        return np.moveaxis(mask, -1, 0)  # shaped like the image as it was given, channels last
    first, last = mask.shape == shape[1:], mask.shape == shape[:-1]
    if len(shape) < 2 or mask.ndim != len(shape) - 1 or not (first or last):
        return None
    leading = first and (layout == "NCHW" or not last)
    return np.broadcast_to(mask if leading else mask[..., None], shape)
