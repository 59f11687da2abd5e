"""What a user types to attack a model: `attack`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import inputs as reading
from whytrust.api import model as wrap
from whytrust.attacks import CATALOGUE, Attacked, search
from whytrust.attacks.prepare import differentiable
from whytrust.attacks.result import Outcome
from whytrust.attacks.search import grid
from whytrust.checked import SOUNDS, CheckedModel
from whytrust.core import Parts, generator, near
from whytrust.domains.image import laid_out
from whytrust.progress import Progress

_OF_PARTS = ("rate", "fill", "hop_seconds", "band_edges_hz")


def attack(model: Any, inputs: Any, method: Any = "pgd", targets: Any = None, seed: int = 0, *, parts: Any = None,
           inside: Any = None, ids: Sequence[str | int] | None = None, batch_size: int | None = None,
           **hyper_parameters: Any) -> Attacked:
    """Which small change of an input makes the model say something else? Adversarial inputs, verified by a fresh model call.

    `inputs` is one image, sound or array, a list of them, an array with one input a row, or a path or folder of images or
    sounds. `method` is "pgd", "carlini_wagner", "enhance", or an attack object; hyper-parameters are its fields (epsilon, step,
    norm, iterations, …), and any given as a list are searched over: most successes, least change; `.search` has every trial.

    `targets` is None (away from what the model says now), "random" (another class, from the seed), a class name or index, or
    one (or None) for each input. `inside` limits where inputs change: booleans shaped like an input or its pixels (or one such
    array each), or with parts="grid:4x4" numbers (from 0) or names of parts, 3 or [0, 5]. `rate` and the like say how
    sounds are read, as in explain.

    Arrays come back in the shape and layout they were given in; files and pictures as the model takes them.

    An input that cannot be attacked is in `.errors` and stops no other; where all fail the first error is raised. The same call
    gives the same bits; random starts and targets come from (seed, ids[i]), and ids are positions unless given.
    """
    wrapped = differentiable(wrap(model))
    generator(seed)
    methods, settings, of_parts = _methods(method, hyper_parameters)
    if parts is not None and inside is None:
        raise ValueError("parts must come with inside, the numbers of the parts that may change, such as inside=[0, 5]")
    read, wrapped = _read(wrapped, inputs, parts, of_parts)
    places = inside if parts is None else _of_parts(read, inside)
    with Progress("attacking") as progress, wrapped.asking():
        def go(attacker: Any) -> Attacked:
            result: Attacked = attacker(wrapped, read.arrays, targets, seed, inside=places, ids=ids, batch_size=batch_size,
                                        on_calls=progress)
            return result

        return _as_given(go(methods[0]) if len(methods) == 1 else search(methods, settings, go), read.shapes, wrapped.layout)


# --- methods ----------------------------------------------------------------------------------------------------------


def _methods(method: Any, options: dict[str, Any]) -> tuple[list[Any], list[dict[str, Any]], dict[str, Any]]:
    """(attacks to try, what was searched in each, options of reading); an unknown option is an error naming its neighbour."""
    known = {name: cls for name, cls, *_ in CATALOGUE}
    if isinstance(method, str):
        if method not in known:
            raise ValueError(f"method must be one of {', '.join(known)}, got {method!r}{near(method, known)}")
        make: Callable[..., Any] = known[method]
        allowed, name = {f.name for f in fields(known[method])}, method
    elif callable(method) and is_dataclass(method) and not isinstance(method, type):
        make, allowed, name = partial(replace, method), {f.name for f in fields(method)}, type(method).__name__
    else:
        raise TypeError(f"method must be one of {', '.join(known)} or an attack such as PGD(epsilon=0.1), got "
                        f"{'the class ' + method.__name__ if isinstance(method, type) else type(method).__name__}")
    of_parts = {k: v for k, v in options.items() if k in _OF_PARTS and k not in allowed}
    own = {k: v for k, v in options.items() if k not in of_parts}
    for option in own:
        if option not in allowed:
            more = {"parts", "inside", "ids", "batch_size", "targets", "seed", *_OF_PARTS}
            raise TypeError(f"{name} has no option {option!r}{near(option, allowed | more)}; it has "
                            f"{', '.join(sorted(allowed))}, and inputs have {', '.join(_OF_PARTS)}, batch_size")
    settings = grid(own)
    return [make(**{**own, **setting}) for setting in settings], settings, of_parts


# --- inputs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Read:
    """Inputs as the model takes them, and how they were cut; an error in the place of one that could not be read."""

    arrays: list[Any]
    cuts: list[Parts | None]
    shapes: list[tuple[int, ...] | None]  # as they were given; None for files and pictures, which have none of their own


def _read(model: CheckedModel, given: Any, parts: Any, options: dict[str, Any]) -> tuple[_Read, Any]:
    """The inputs in the one of several possible readings that the model accepts, and the model with the layout of sounds.

    A bare array may be one input or a row each, and an array with two axes may be a grey image, which a net with channels first
    wants an axis more of, or a spectrogram. Nobody but the model knows, so it is asked about the first input of each reading.
    """
    _refuse_words(given)
    given = given.to_numpy() if hasattr(given, "to_numpy") else given
    several = reading.several(given, options)
    array = _array(given)
    groups = [[given]] if several is None else [several]
    if several is None and array is not None and array.ndim >= 2:
        groups.append(list(array))
    first: Exception | None = None
    for items in groups:
        for in_order in (True, False):
            asked = reading.fitted(model, items[0], parts, options)
            read = _laid_out(asked, items, parts, options) if in_order else _as_they_are(asked, items, parts, options)
            sounds = [] if read is None else [sound for cut in read.cuts if (sound := getattr(cut, "sound", None)) is not None]
            asked = reading.with_channel(asked, sounds[0] if sounds else None)
            error = None if read is None else _refused(asked, read)
            if read is not None and error is None:
                return read, asked
            first = first or error
    assert first is not None
    raise first


def _refused(model: CheckedModel, read: _Read) -> Exception | None:
    """Why the model will not have inputs like these; None where it takes one of them, for the others are told one by one."""
    first: Exception | None = None
    for array in read.arrays:
        try:
            if isinstance(array, Exception):
                raise array
            model(array[None].copy())  # a preprocessing may work in place
            return None
        except (ValueError, TypeError, OSError) as error:
            first = first or error
    return first


def _laid_out(model: CheckedModel, items: list[Any], parts: Any, options: dict[str, Any]) -> _Read:
    """Every input cut as explain cuts it, which reads files and moves channels to where the model wants them."""
    arrays: list[Any] = []
    cuts: list[Parts | None] = []
    for item in items:
        try:
            _refuse_words(item)
            if parts is None and not options and model.layout not in SOUNDS and reading.domain_of(item, None, {}) == "image":
                arrays.append(np.array(laid_out(item, model.layout)))
                cuts.append(None)
                continue
            wanted = _whole(item, options, model.layout) if parts is None else parts
            cut = reading.cut(item, wanted, model.layout, dict(options))
            whole = next((held for name in ("image", "sound") if (held := getattr(cut, name, None)) is not None), None)
            if whole is None:
                whole = cut.compose(np.ones((1, len(cut.names)), dtype=bool), generator(0, "attack"))[0]
            arrays.append(np.array(whole))
            cuts.append(cut)
        except (ValueError, TypeError, OSError) as error:
            arrays.append(error)
            cuts.append(None)
    return _Read(arrays, cuts, [_shape(item) for item in items])


def _as_they_are(model: CheckedModel, items: list[Any], parts: Any, options: dict[str, Any]) -> _Read | None:
    """Arrays as they came; None where they did not come as arrays, or are to be cut."""
    arrays = [_array(item) for item in items]
    if parts is not None or options or model.layout in SOUNDS or any(a is None for a in arrays):
        return None
    return _Read(arrays, [None] * len(arrays), [None] * len(arrays))


def _as_given(result: Attacked, shapes: list[tuple[int, ...] | None], layout: str) -> Attacked:
    """The inputs before and after in the shape that the user gave; norms and labels are of what the model got."""
    back = _sound_back if layout in SOUNDS else _put_back
    outcomes = [o if o is None or s is None or (s == o.clean.shape and "FT" not in layout) else back(o, s)
                for o, s in zip(result.outcomes, shapes, strict=True)]
    return replace(result, outcomes=tuple(outcomes))


def _put_back(outcome: Outcome, shape: tuple[int, ...]) -> Outcome:
    """Without the axis of channels that was added, or with channels last again."""
    clean, moved = (a[0] if len(shape) == 2 else np.ascontiguousarray(np.moveaxis(a, 0, -1))
                    for a in (outcome.clean, outcome.adversarial))
    return replace(outcome, clean=clean, adversarial=moved, grey=len(shape) == 2)


def _sound_back(outcome: Outcome, shape: tuple[int, ...]) -> Outcome:
    """With bands first again, and the axis of one channel where it came with one."""
    clean, moved = (np.ascontiguousarray((a.T if a.T.shape == shape[-2:] and a.ndim == 2 else a).reshape(shape))
                    for a in (outcome.clean, outcome.adversarial))
    return replace(outcome, clean=clean, adversarial=moved)


def _shape(item: Any) -> tuple[int, ...] | None:
    """The axes of an array, a tensor or nested lists; None for files, pictures and words."""
    if isinstance(item, str | os.PathLike | dict) or hasattr(item, "convert"):
        return None
    try:
        return tuple(np.shape(item))
    except ValueError:  # rows of several lengths, which have been reported
        return None


def _whole(item: Any, options: dict[str, Any], layout: str) -> str:
    """Parts that only read the input: one for all of it."""
    return "time:1" if layout in SOUNDS or reading.domain_of(item, None, options) == "audio" else "grid:1x1"


def _array(item: Any) -> NDArray[Any] | None:
    """Numbers as an array; None for files, pictures and words."""
    if isinstance(item, str | os.PathLike | dict) or hasattr(item, "convert"):
        return None
    if hasattr(item, "detach"):
        item = item.detach().cpu()
    if isinstance(item, list | tuple) and item and not np.isscalar(item[0]):
        return None
    array = np.asarray(item)
    return array if array.dtype.kind in "biuf" else None


def _refuse_words(given: Any) -> None:
    """Texts and tables with strings have no gradient."""
    one = given[0] if isinstance(given, list | tuple) and given else given
    table = one.to_numpy() if hasattr(one, "to_numpy") else one
    strings = isinstance(table, np.ndarray) and table.dtype.kind in "OUST"
    path = isinstance(one, str | os.PathLike)
    text = path and reading.several(one, {}) is None and reading.domain_of(one, None, {}) == "text"
    if strings or text or isinstance(one, dict):
        what = "a text" if text else f"a {type(one).__name__} with words in it" if strings else "a dict"
        raise TypeError(f"an attack follows gradients and needs inputs that are numbers, images or sounds, got {what}; texts "
                        "are attacked by swapping words, and tables must be turned into numbers first")


# --- where ------------------------------------------------------------------------------------------------------------


def _of_parts(read: _Read, inside: Any) -> list[Any]:
    """Numbers of parts -> booleans shaped like each input's pixels, samples or cells; wrong ones are that input's error."""
    single = isinstance(inside, int | str | np.generic) or getattr(inside, "ndim", 1) == 0
    inside = [inside.item() if hasattr(inside, "item") else inside] if single else list(inside)
    chosen = [inside] * len(read.cuts) if all(isinstance(i, int | np.integer | str) for i in inside) else list(inside)
    if len(chosen) != len(read.cuts):
        raise ValueError(f"inside must be numbers of parts, or such a list for each input: expected {len(read.cuts)}, got "
                         f"{len(chosen)}")
    places: list[Any] = []
    for index, (cut, numbers) in enumerate(zip(read.cuts, chosen, strict=True)):
        places.append(None)
        if cut is not None:
            try:
                places[index] = _covered(cut, numbers, read.arrays[index].shape)
            except ValueError as error:
                read.arrays[index] = error
    return places


def _covered(cut: Parts, numbers: Any, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    d = len(cut.names)
    numbers = [numbers] if isinstance(numbers, int | str | np.integer) else [] if numbers is None else numbers
    numbers = [cut.names.index(i) if isinstance(i, str) and i in cut.names else i for i in numbers]
    wrong = [i for i in numbers if isinstance(i, bool) or not isinstance(i, int | np.integer) or not 0 <= i < d]
    if wrong or not len(numbers):
        raise ValueError(f"inside must be numbers of parts from 0 to {d - 1} (0 is {cut.names[0]!r}) or their names, at least "
                         f"one, got {wrong[0] if wrong else []!r}")
    where = np.isin(np.asarray(cut.view.spread(np.arange(d, dtype=np.float64))), list(numbers))
    if where.shape not in (shape, shape[1:], shape[:-1]):
        raise ValueError(f"parts must be places in the input, {shape}, got parts shaped {where.shape}: a waveform that is cut "
                         "in frequency has none; cut it in time, parts='time:16'")
    return where
