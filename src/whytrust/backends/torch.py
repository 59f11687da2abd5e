"""torch modules as models: asked in eval mode and without gradients of their own, and left as they were found.

How arrays become tensors. They go where the module's parameters are, and become floats of the parameters' type (float32 for a
module without any; bytes of an image too). Whole numbers stay whole (int64) where the first layer with parameters is an
Embedding: they are token ids. A `preprocess` that returns an int32 or int64 tensor means it, whatever the first layer is.

How arrays become tensors for a `preprocess` that is a torch module. Bytes stay bytes (uint8), because transforms such as
torchvision's scale bytes to 0–1 and leave floats alone; all other numbers become floats. Gradients and attacks work on floats,
also for an image of bytes: where `preprocess` makes of bytes what it makes of the same values divided by 255, floats that count
grey levels are divided by 255 first.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np

from whytrust.backends.torch_backward import follow
from whytrust.backends.torch_cuts import Pull, Tail, as_array, cut, find_layer, says_where
from whytrust.backends.torch_fast import FastCopy, difference, tolerance
from whytrust.backends.torch_modes import evaluating, uncompiled
from whytrust.checked import Refused, RefusedKind, blaming
from whytrust.core import Batch, Floats, generator, need

OPTIONS = ("device", "fast")
Preprocess = Callable[[Any], Any]
"""What is done to a batch before the module has it."""
SAME_INPUTS = 1e-3
"""How far, in parts of their scale, what `preprocess` makes of integers may lie from what it makes of the same floats."""
LEVELS = 255.0
"""The largest byte: transforms that scale bytes map it to 1."""
EDGES = 8
"""An axis that is longer has an edge, and is not one of channels."""
GREY_LEVELS = 2.0
"""An image of floats with a value above this counts grey levels up to 255; others go from 0 to 1, give or take some noise."""


def accepts(obj: Any) -> bool:
    """Is this a torch module? (torch is not imported to find out.)"""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(obj, torch.nn.Module)


def adapt(obj: Any, device: Any = None, fast: bool | str = False) -> tuple[TorchScores, dict[str, Any]]:
    """The module as a function of arrays; without preprocessing its images have channels first, as torch has them."""
    name = _name(obj)
    if fast not in (False, True, "compile"):
        raise ValueError(f"fast must be False, True or 'compile', got {fast!r}")
    if fast and (hasattr(obj, "_orig_mod") or hasattr(obj, "original_name")):
        raise ValueError(f"fast is for modules of Python code, {name} is compiled or scripted already; leave fast out")
    _check_parameters(obj, name)
    if device is not None:
        device = _device(obj, name, device)
    return TorchScores(obj, device, fast), {"name": name, "layout": "NCHW"}


class Fresh(NamedTuple):
    """An array that a preprocessing has just made: what the module does to it harms nobody."""

    array: Any


@dataclass(frozen=True, eq=False)
class TorchScores:
    """A module called on arrays: every submodule's mode, the parameters, their gradients and the batch are left alone.

    What the module itself does when called (a counter it keeps, random numbers it draws in eval mode) it does here too.
    """

    module: Any
    device: str | None = None
    fast: bool | str = False
    rule: str | None = None  # of the backward pass, where it is not the derivative
    levels: float | None = None  # what stands for 1 in images of floats: 255, or 1; None: by the values of each image
    _copy: FastCopy | None = field(init=False, repr=False, default=None)
    _laid: dict[str, bool] = field(init=False, repr=False, default_factory=dict)  # may images come as they lie in memory?
    _found: tuple[int, Any] = field(init=False, repr=False, default=(0, None))  # a thread that is asking, and what it found
    _scaling: dict[str, Any] = field(init=False, repr=False, default_factory=dict)  # a preprocess, and whether it scales bytes

    def __post_init__(self) -> None:
        """Make room for the fast copy; it is built at the first call."""
        if self.fast:
            object.__setattr__(self, "_copy", FastCopy(self.module, scores_of, self.fast == "compile"))

    @property
    def kind(self) -> str:
        """What this is, in a few words."""
        return f"a torch module on {self.home}{', fast' if self.fast else ''}"

    @property
    def takes_floats(self) -> bool:
        """Whether whole numbers of an image become floats as they are."""
        return True

    @property
    def source(self) -> Any:
        """The user's module."""
        return self.module

    @property
    def bands(self) -> int | None:
        """How many numbers of one moment the first layer takes, where it goes along time: of a spectrogram, its bands."""
        layer = first_layer(self.module)
        for kind, width in (("Conv1d", "in_channels"), ("Linear", "in_features"), ("LSTM", "input_size"), ("GRU", "input_size"),
                            ("RNN", "input_size")):
            if _is(layer, kind) and getattr(layer, width, 1) > 1:
                return int(getattr(layer, width))
        return None

    def lacks_channel(self, inputs: Batch) -> bool:
        """Does the module take such sounds with an axis of one channel, and not without?

        Only where its first layer is a convolution or a normalisation of one channel is the module asked. It is asked about two
        inputs, because torch takes one input without the axis for an input without the batch's axis, and answers.
        """
        layer, array = first_layer(self.module), np.asarray(inputs)
        kinds = {2: ("Conv1d", "BatchNorm1d"), 3: ("Conv2d", "BatchNorm2d")}.get(array.ndim, ())
        channels = getattr(layer, "in_channels", getattr(layer, "num_features", 0))
        if channels != 1 or not any(_is(layer, kind) for kind in kinds):
            return False
        two = np.repeat(array[:1], 2, axis=0)
        return not self._answers(two) and self._answers(two[:, None])

    def _answers(self, batch: Batch) -> bool:
        try:
            return len(self(batch)) == len(batch)
        except Exception:  # whatever a user's module may raise
            return False

    def hears_where(self, preprocess: Any) -> bool:
        """Does a layer, or the preprocessing, say which time and frequency its outputs stand for?"""
        return says_where(preprocess) or find_layer(self.module, says_where) is not None

    def __call__(self, batch: Batch) -> Floats:
        """The module's outputs as an array of float64."""
        torch = need("torch", "torch")
        with evaluating(self.module), torch.no_grad():
            return as_array(self._outputs(self._inputs(batch)))

    @property
    def _as_laid(self) -> bool | None:
        """May images come as they lie in memory? None before that was tried."""
        return self._laid.get("as it is")

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Inside, for this thread, the module stays where it is, and the copy stays right."""
        if self._copy is not None:
            self._copy.look_again()
        before = self._found if self._is_asking else (0, None)  # whoever asks may begin another asking inside
        object.__setattr__(self, "_found", (threading.get_ident(), self._place))
        try:
            yield
        finally:
            object.__setattr__(self, "_found", before)

    @property
    def _is_asking(self) -> bool:
        return self._found[0] == threading.get_ident()

    def _outputs(self, inputs: Any) -> Any:
        if self._copy is not None:
            return self._copy(inputs, self._is_asking)
        if self._as_laid is not None or inputs.is_contiguous():
            return scores_of(self.module(inputs))
        # Convolutions are fastest on images whose channels lie side by side, but a module may count on the usual order.
        in_order = scores_of(self.module(inputs.contiguous()))
        try:
            outputs = scores_of(self.module(inputs))
            wrong = difference(outputs, in_order, tolerance(inputs, in_order))
        except Exception as error:  # whatever a user's module may raise
            wrong = str(error)
        self._laid["as it is"] = not wrong
        return in_order if wrong else outputs

    def prepare(self, batch: Batch, preprocess: Preprocess) -> Any:
        """What the module is to be fed: a function gets the batch as it is, a torch module gets it as a tensor."""
        torch = need("torch", "torch")
        if not _takes_tensors(preprocess):
            made = preprocess(batch)
            arrays = isinstance(made, np.ndarray) and isinstance(batch, np.ndarray)
            return Fresh(made) if arrays and not np.may_share_memory(made, batch) else made
        with _evaluating(preprocess), torch.no_grad():
            if _dtype_of(batch) == np.uint16 and self._scales_16_bits(batch, preprocess):
                return preprocess(torch.from_numpy(np.array(batch, order="C")).to(self.home))
            if _dtype_of(batch) != np.uint8:
                return preprocess(self._in_units(self._floats(batch), preprocess))
            if self._scales(batch, preprocess) is None:
                warnings.warn("preprocess makes other numbers of bytes than of the same values as floats, from 0 to 255 or "
                              "from 0 to 1: bytes may wrap around in it, as in x - 127; begin with x.float() if that is not "
                              "meant",
                              stacklevel=2)
            return preprocess(_bytes_tensor(batch).to(self.home))

    def settled(self, given: Any, preprocess: Preprocess | None) -> TorchScores:
        """The same module for floats in the units of these inputs, however far noise or a path from a baseline takes them."""
        if preprocess is None or not _takes_tensors(preprocess) or not len(given):
            return self
        array = given.detach().cpu().numpy() if hasattr(given, "detach") else np.asarray(given)
        if array.dtype.kind not in "biuf" or array.ndim < 3:
            return self
        if array.dtype == np.uint8 and self._scales(array, preprocess) is None:
            raise Refused("preprocess must do the same to bytes and to floats, from 0 to 255 or from 0 to 1, for gradients, "
                          "and does not: bytes may wrap around in it, as in x - 127; begin with x.float()")
        if array.dtype == np.uint16 and self._scales_16_bits(array, preprocess):
            raise Refused("gradients and attacks need images of bytes or of floats where preprocess scales whole numbers, got "
                          "uint16; pass image / 65535 as float32")
        whole = array.dtype.kind in "iu"
        return self._alike(levels=LEVELS if whole or float(array.max(initial=0)) > GREY_LEVELS else 1.0)

    def _alike(self, **changes: Any) -> TorchScores:
        """The same module, asked in another way; what is found out of the module holds for both."""
        other = replace(self, **changes)
        for name in ("_laid", "_scaling", "_copy"):
            object.__setattr__(other, name, getattr(self, name))
        return other

    def pullback(self, batch: Batch, preprocess: Preprocess | None = None) -> tuple[Floats, Pull]:
        """(outputs, pull): `pull(weights)` is the gradient of (weights * outputs).sum() with respect to the batch.

        With respect to the batch before `preprocess`, which must work on tensors. It says how the outputs move for very small
        changes alone: where a net saturates or a ReLU is off it is zero, however much the input matters.
        """
        torch = need("torch", "torch")
        modules = tuple(m for m in (self.module, preprocess) if isinstance(m, torch.nn.Module))
        with evaluating(*modules), torch.inference_mode(False), torch.enable_grad():
            leaf = self._leaf(batch)
            if preprocess is not None and leaf.ndim == 4 and self._as_laid is None and self._copy is None:
                made = self._preprocessed(leaf[:1].clone(), preprocess, batch[:1]).to(self._dtype).to(self.home)
                if not made.is_contiguous():
                    with torch.no_grad():
                        self._outputs(made.detach())  # once: is what the preprocessing makes taken as it lies in memory?

            def run(inputs: Any) -> Any:
                # A copy, because layers that work in place refuse a leaf, and would change it.
                copy = inputs.clone()
                prepared = copy if preprocess is None else self._preprocessed(copy, preprocess, batch)
                prepared = prepared.to(self._dtype).to(self.home)
                return scores_of(self.module(prepared if self._as_laid else prepared.contiguous()))

            if self.rule is None:
                outputs = run(leaf)
            else:
                with uncompiled():
                    outputs = follow(self.rule, run, leaf, must_change=True)
        return as_array(outputs), Pull(outputs, leaf, modules, _name(self.module))

    def ruled(self, rule: str) -> TorchScores:
        """The same module with another backward pass."""
        return self._alike(rule=rule)

    def cut(self, at: str | None, batch: Batch,
            preprocess: Preprocess | None) -> tuple[Floats, Tail | TorchScores, dict[str, Any]]:
        """The module cut at a layer, for a batch of one input; None is behind what says where its frequencies are."""
        torch = need("torch", "torch")
        modules = tuple(m for m in (self.module, preprocess) if isinstance(m, torch.nn.Module))
        with evaluating(*modules), torch.no_grad():
            made = batch if preprocess is None else blaming("preprocess", lambda: self.prepare(batch, preprocess), batch)
            prepared = self._inputs(made).contiguous()
        if at is None and says_where(preprocess) and prepared.ndim == 3:
            seconds, hertz = preprocess.coordinates(*prepared.shape[1:])  # type: ignore[union-attr]
            return as_array(prepared)[0], self, {"layer": "preprocess", "seconds": seconds, "hertz": hertz,
                                                 "seen": tuple(prepared.shape[1:])}
        repeats, net = [1] * (prepared.ndim - 1), getattr(self.module, "_orig_mod", self.module)  # before torch.compile
        at = at.removeprefix("_orig_mod.") if at is not None else None

        def followed() -> tuple[Any, Any]:
            leaf = prepared.detach().clone().requires_grad_()
            with uncompiled():
                return leaf, scores_of(net(leaf.clone()))  # layers that work in place refuse a leaf

        def run(n: int) -> Any:
            with uncompiled():
                return scores_of(net(prepared.repeat(n, *repeats)))

        values, tail, places = cut(net, at, run, modules, seen=tuple(prepared.shape[1:]),
                                   followed=followed if prepared.is_floating_point() else None)
        return values, tail, {**places, "cropped": preprocess is not None and self._crops(batch, preprocess, prepared)}

    def _crops(self, batch: Batch, preprocess: Preprocess, prepared: Any) -> bool:
        """Does changing the edge of an image, as wide as one pixel of what a preprocess makes of it, change nothing there?"""
        long = [axis for axis in (1, 2, 3) if batch.ndim == 4 and batch.shape[axis] > EDGES]
        if not isinstance(batch, np.ndarray) or len(long) != 2 or prepared.ndim != 4 or batch.min() == batch.max():
            return False
        other, middle = batch.copy(), batch.min() / 2 + batch.max() / 2
        wide = -(-max(batch.shape[axis] for axis in long) // min(prepared.shape[-2:]))
        for axis in long:
            at = [*range(wide), *range(-wide, 0)]
            edge = np.take(batch, at, axis)
            np.moveaxis(other, axis, 0)[at] = np.moveaxis(np.where(edge > middle, batch.min(), batch.max()), axis, 0)
        with evaluating(self.module), need("torch", "torch").no_grad():
            return bool((self._inputs(self.prepare(other, preprocess)) == prepared).all())

    @property
    def home(self) -> Any:
        """Where inputs go: looked up at every call, because the user may move the module."""
        return self._place[0]

    @property
    def single_precision(self) -> bool:
        """Whether the module counts in floats of 32 bits or fewer."""
        return str(self._dtype) != "torch.float64"

    @property
    def _dtype(self) -> Any:
        return self._place[1]

    @property
    def _place(self) -> tuple[Any, Any]:
        """(device, dtype) of the module's inputs."""
        asking, place = self._found  # of one moment, whatever other threads do
        if asking == threading.get_ident():
            found: tuple[Any, Any] = place
            return found
        torch = need("torch", "torch")
        tensors = _tensors(self.module)
        first = next(tensors, None)
        real = next((t for t in chain([first], tensors) if t is not None and t.is_floating_point()), None)
        return (self.device or ("cpu" if first is None else str(first.device)), torch.float32 if real is None else real.dtype)

    def _inputs(self, batch: Batch) -> Any:
        """A batch as the module takes it; a copy of what others hold, because a layer may work in place."""
        torch = need("torch", "torch")
        fresh, batch = (True, batch.array) if isinstance(batch, Fresh) else (False, batch)
        if not isinstance(batch, torch.Tensor):
            array = _numbers(batch)
            if array.dtype.kind in "iu" and _takes_tokens(self.module):
                return torch.from_numpy(np.array(array, dtype=np.int64)).to(self.home)
            home, dtype = self._place
            as_laid = array.ndim == 4 and self._copy is None and self._as_laid is not False
            return _tensor(array, dtype, "K" if as_laid else "C", fresh).to(home, dtype)
        whole = not (batch.is_floating_point() or batch.is_complex() or batch.dtype == torch.bool)
        meant = batch.dtype in (torch.int64, torch.int32) or _takes_tokens(self.module)
        inputs = batch.to(torch.int64 if whole and meant else self._dtype, copy=True).to(self.home)
        return inputs.contiguous() if self._as_laid is False or self._copy is not None else inputs

    def _floats(self, batch: Batch) -> Any:
        """A copy in float32, or float64 where the module has that: half precision is for the module alone."""
        home, dtype = self._place
        return _tensor(batch, dtype, "C").to(home)

    def _leaf(self, batch: Batch) -> Any:
        if _takes_tokens(self.module) and "int" in str(getattr(batch, "dtype", None) or np.asarray(batch).dtype):
            raise TypeError(f"gradients need inputs that are real numbers, {_name(self.module)} takes token ids; "
                            "ask for gradients behind its embedding instead")
        return self._floats(batch).requires_grad_()

    def _preprocessed(self, inputs: Any, preprocess: Preprocess, batch: Batch) -> Any:
        torch = need("torch", "torch")
        if _takes_tensors(preprocess):
            inputs = (self.settled(batch, preprocess) if _dtype_of(batch) == np.uint8 else self)._in_units(inputs, preprocess)
        must = ("preprocess must work on torch tensors for gradients, as (x - 127.0) / 128 does; write it so, "
                "or put it into the module: ")
        try:
            prepared = preprocess(inputs)
        except Exception as error:
            raise RefusedKind(f"{must}on a tensor it raised {type(error).__name__}: {error}") from error
        if not isinstance(prepared, torch.Tensor) or not prepared.requires_grad:
            what = f"{type(prepared).__module__.split('.')[0]}.{type(prepared).__name__}"
            raise RefusedKind(f"{must}for a tensor it returned a {what} that gradients cannot be followed through")
        # Bytes wrap around in numpy (np.uint8(3) - 127 is 132) and not in torch: then scores and gradients have two functions.
        # Of floats, one comparison tells whether tensors are treated as arrays are.
        unsure = isinstance(batch, np.ndarray) and (batch.dtype.kind in "iu" or not self._laid.get("followed", False))
        if unsure and not _takes_tensors(preprocess):
            made = preprocess(batch.copy())
            asked = as_array(made) if isinstance(made, torch.Tensor) else np.asarray(made, dtype=np.float64)
            followed = as_array(prepared)
            near = SAME_INPUTS * max(np.abs(followed).max(initial=0), 1e-30)
            if asked.shape != followed.shape or not np.allclose(asked, followed, rtol=0, atol=near):
                raise Refused(f"preprocess must do the same to {batch.dtype} arrays and to tensors of floats, and does not: "
                              "whole numbers may wrap around in it (begin with a float, as in (x - 127.0) / 128), and some "
                              "functions, as std, differ between numpy and torch")
        self._laid["followed"] = True
        return prepared

    def _in_units(self, floats: Any, preprocess: Preprocess) -> Any:
        """Images of floats as a preprocess wants them: those in grey levels go from 0 to 1, where it would scale bytes so."""
        torch = need("torch", "torch")
        if floats.ndim < 3 or self.levels == 1 or not len(floats):
            return floats
        grey = floats.detach().flatten(1).amax(1) > GREY_LEVELS
        grey = torch.ones_like(grey) if self.levels is not None else grey
        if not grey.any() or not self._scales(floats, preprocess):
            return floats
        ones = torch.ones(len(floats), dtype=floats.dtype, device=floats.device)
        return floats / torch.where(grey, LEVELS * ones, ones).reshape(-1, *[1] * (floats.ndim - 1))

    def _scales(self, batch: Any, preprocess: Preprocess) -> bool | None:
        """Does a preprocess make of bytes what it makes of the same values divided by 255? None: nor of them as they are.

        Found out once, on an image from dark to bright with a little noise, a black and a white one: where an image is rough
        and black or white, a bicubic resize goes beyond what bytes can hold. What lies within one grey level is the same: a
        resized image of bytes is rounded to bytes. A preprocess that fails on bytes or on floats does not scale; it fails by
        itself where it is used.
        """
        torch = need("torch", "torch")
        key = (tuple(batch.shape[1:]), preprocess)
        if self._scaling.get("tried") != key:
            noise = generator(0, "bytes").integers(-8, 9, (1, *batch.shape[1:]))
            ramp = np.linspace(24, 231, batch.shape[-2]).round().astype(int)[:, None] + noise
            tried = torch.from_numpy(np.concatenate([ramp, 0 * ramp, 0 * ramp + 255]).astype(np.uint8)).to(self.home)
            kind = torch.float64 if self._dtype == torch.float64 else torch.float32
            made = []
            with _evaluating(preprocess), torch.no_grad():
                for inputs in (tried, *(tried.to(kind) / unit + more for unit in (1.0, LEVELS) for more in (0.0, 1 / unit))):
                    try:
                        made.append(torch.as_tensor(preprocess(inputs)).detach().double())
                    except Exception:  # whatever a user's module may raise
                        made.append(None)
            of_bytes, as_they_are, one_up, divided, one_up_divided = made
            same = _within_a_level(of_bytes, as_they_are, one_up)
            scales = not same and _within_a_level(of_bytes, divided, one_up_divided)
            known = of_bytes is not None and (as_they_are is not None or divided is not None)
            self._scaling.update(tried=key, scales=bool(scales) if same or scales or not known else None)
        found: bool | None = self._scaling["scales"]
        return found

    def _scales_16_bits(self, batch: Any, preprocess: Preprocess) -> bool:
        """Does a preprocess make of images of 16 bits what it makes of the same values divided by 65535?"""
        torch, some = need("torch", "torch"), np.array(batch[:1], order="C")
        with _evaluating(preprocess), torch.no_grad():
            try:
                made, wanted = (preprocess(one.to(self.home)) for one in (
                    torch.from_numpy(some), torch.from_numpy(some.astype(np.float32) / np.float32(65535))))
                return bool(made.shape == wanted.shape and torch.allclose(made.float(), wanted.float(), 1e-3, 1e-3))
            except Exception:  # whatever a user's module may raise: few of torch's functions take uint16
                return False


def scores_of(output: Any) -> Any:
    """The tensor of scores in what a module returned."""
    torch = need("torch", "torch")
    found = getattr(output, "logits", None)
    if isinstance(output, Mapping) and not isinstance(found, torch.Tensor):
        tensors = [v for v in output.values() if isinstance(v, torch.Tensor)]
        found = output["logits"] if "logits" in output else tensors[0] if len(tensors) == 1 else None
    elif isinstance(output, tuple) and output and not isinstance(found, torch.Tensor):
        found = output[0]
    elif isinstance(output, torch.Tensor):
        found = output
    if not isinstance(found, torch.Tensor) or found.is_complex():
        raise TypeError("a torch module must return a tensor of real scores, something with logits, a dict with one tensor, "
                        f"or a tuple that begins with a tensor; got {_what(output)}")
    return found


def _takes_tensors(preprocess: Any) -> bool:
    """Is this preprocess a torch module, or one that wants tensors as such a module does?"""
    return isinstance(preprocess, need("torch", "torch").nn.Module) or bool(getattr(preprocess, "takes_tensors", False))


def _evaluating(preprocess: Any) -> AbstractContextManager[None]:
    return evaluating(preprocess) if hasattr(preprocess, "modules") else nullcontext()


def _dtype_of(batch: Any) -> Any:
    """The type of an array's or a tensor's numbers as numpy calls it; None where it has none."""
    kind = getattr(batch, "dtype", None)
    return np.uint8 if str(kind) in ("torch.uint8", "uint8") else kind


def _bytes_tensor(batch: Any) -> Any:
    """A copy of a batch of bytes, as a tensor of bytes."""
    torch = need("torch", "torch")
    return batch.detach().clone() if isinstance(batch, torch.Tensor) else torch.from_numpy(np.array(batch, order="C"))


def _within_a_level(made: Any, other: Any, one_up: Any) -> bool:
    """Do two inputs lie no further apart than one grey level more would move the second?"""
    if made is None or other is None or one_up is None or not made.shape == other.shape == one_up.shape:
        return False
    level = float((one_up - other).abs().max()) if other.numel() else 0.0
    near = level + SAME_INPUTS * float(other.abs().max() if other.numel() else 0.0)
    return bool((made - other).abs().max() <= near) if other.numel() else True


def _tensors(module: Any) -> Iterator[Any]:
    return chain(module.parameters(), module.buffers())


def _takes_tokens(module: Any) -> bool:
    """Is the first layer with parameters an embedding? (A scripted module keeps its class's name alone.)"""
    first = first_layer(module)
    return _is(first, "Embedding") or _is(first, "EmbeddingBag")


def first_layer(module: Any) -> Any:
    """The first layer with parameters of its own, None where there is none."""
    return next((m for m in module.modules() if next(m.parameters(recurse=False), None) is not None), None)


def _is(layer: Any, kind: str) -> bool:
    torch = need("torch", "torch")
    return bool(kind) and (isinstance(layer, getattr(torch.nn, kind)) or getattr(layer, "original_name", None) == kind)


def _check_parameters(module: Any, name: str) -> None:
    torch = need("torch", "torch")
    for tensor in _tensors(module):
        if torch.nn.parameter.is_lazy(tensor):
            raise ValueError(f"{name} must know its shapes, it has lazy layers; call it once on a batch first")
        if tensor.device.type == "meta":
            raise ValueError(f"{name} must have its weights, they are on the meta device, which holds none; load them first")


def _device(module: Any, name: str, device: Any) -> str:
    """The asked device as torch calls it, where it exists and the module is on it; a user's module is never moved."""
    torch = need("torch", "torch")
    try:
        asked = torch.empty(0, device=torch.device(device)).device
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        raise ValueError(f"device must be one that torch has here, such as 'cpu', got {str(device)!r} "
                         f"({str(error).splitlines()[0]})") from error
    elsewhere = next((str(t.device) for t in _tensors(module) if t.device != asked), None)
    if elsewhere is not None:
        raise ValueError(f"device={str(device)!r} was asked for, but {name} has weights on {elsewhere}, and a module is never "
                         f"moved here; call module.to({str(device)!r}) first, or leave device out to use it where it is")
    return str(asked)


def _numbers(batch: Batch) -> Any:
    try:
        array = np.asarray(batch)
        array = array.astype(np.float64) if array.dtype.kind == "O" else array
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"a torch module takes an array of numbers, got {_what(batch)} ({error})") from error
    if array.dtype.kind not in "biuf":
        raise TypeError(f"a torch module takes an array of numbers, got {_what(batch)} ({array.dtype}); "
                        "turn it into numbers with preprocess")
    return array


def _tensor(batch: Batch, dtype: Any, order: Literal["C", "K"], fresh: bool = False) -> Any:
    """In float64 for modules of that, else in float32; a copy, unless the batch is fresh and so already."""
    torch = need("torch", "torch")
    array = batch.detach().cpu().double().numpy() if isinstance(batch, torch.Tensor) else _numbers(batch)
    kind = np.dtype(np.float64 if dtype == torch.float64 else np.float32)
    as_it_is = fresh and array.dtype == kind and array.flags.writeable and min(array.strides, default=0) > 0
    if as_it_is and (order == "K" or array.flags.c_contiguous):
        return torch.from_numpy(array)
    return torch.from_numpy(np.array(array, dtype=kind, order=order))


def _what(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{type(value).__name__} with {', '.join(map(str, value)) or 'nothing'}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} of {', '.join(type(v).__name__ for v in value[:4]) or 'nothing'}"
    return f"{type(value).__name__}{f' of {value.dtype}' if hasattr(value, 'dtype') else ''}"


def _name(module: Any) -> str:
    inner = getattr(module, "_orig_mod", module)
    return str(getattr(inner, "original_name", type(inner).__name__))
