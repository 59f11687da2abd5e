"""A net cut at one of its layers: what the layer gives for one input, and the rest of the net as a function of that.

An embedding, an audio front end and the layer that Grad-CAM looks at are three cuts of one kind. While a cut is asked, the
layer has a forward hook, for the asking thread alone; it is gone afterwards, whatever happens.
"""

from __future__ import annotations

import difflib
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whytrust.backends.torch_backward import follow
from whytrust.backends.torch_modes import evaluating
from whytrust.checked import Refused, RefusedKind
from whytrust.core import Floats, need

LAST_CONVOLUTION = "last convolution"
"""Stands for the last convolution that a forward pass meets and whose output still has places."""
Run = Callable[[int], Any]
"""A net's scores for n copies of one input, as a tensor."""


@dataclass(frozen=True, eq=False)
class Tail:
    """The rest of a net behind one of its layers, as a model of arrays: what the layer gives is replaced by them."""

    modules: tuple[Any, ...]
    layer: Any
    layer_name: str
    run: Run
    own: Any  # the layer's output for the input itself
    rule: str | None = None
    module: Any = None  # the whole net
    most: int | None = None  # inputs that the net takes at once, where that is limited

    @property
    def kind(self) -> str:
        """What this is, in a few words."""
        return f"the rest of a torch module behind {self.layer_name}"

    @property
    def home(self) -> str:
        """Where the net is."""
        return str(self.own.device)

    def __call__(self, values: Floats) -> Floats:
        """(n, classes) for n arrays in the place of the layer's output."""
        torch = need("torch", "torch")
        with evaluating(*self.modules), torch.no_grad():
            return as_array(self._outputs(self._tensor(values)))

    def pullback(self, values: Floats, preprocess: None = None) -> tuple[Floats, Pull]:
        """(outputs, pull): `pull(weights)` is the gradient of (weights * outputs).sum() with respect to the values."""
        torch = need("torch", "torch")
        with evaluating(*self.modules), torch.inference_mode(False), torch.enable_grad():
            leaf = self._tensor(values).requires_grad_()
            outputs = self._outputs(leaf) if self.rule is None else follow(self.rule, self._outputs, leaf, must_change=True)
        return as_array(outputs), Pull(outputs, leaf, self.modules, type(self.modules[0]).__name__)

    def ruled(self, rule: str) -> Tail:
        """The same with another backward pass."""
        return replace(self, rule=rule)

    def cut(self, at: str | None, values: Floats, preprocess: None) -> tuple[Floats, Tail, dict[str, Any]]:
        """The rest, cut once more."""
        given = self._tensor(values)
        repeats = [1] * (given.ndim - 1)
        return cut(self.module, at, lambda n: self._outputs(given.repeat(n, *repeats)), self.modules, self.most,
                   tuple(given.shape[1:]))

    def _tensor(self, values: Floats) -> Any:
        torch = need("torch", "torch")
        array = np.array(values, dtype=np.float64 if self.own.dtype == torch.float64 else np.float32)
        if array.shape[1:] != tuple(self.own.shape[1:]):
            raise Refused(f"values for {self.layer_name} must be shaped like its output, (n, "
                             f"{', '.join(map(str, self.own.shape[1:]))}), got {array.shape}")
        return torch.from_numpy(array).to(self.own.device, self.own.dtype)

    def _outputs(self, values: Any) -> Any:
        # A copy, because what follows the layer may work in place, and a leaf must not be changed.
        with _watched([self.layer], lambda _layer, _output: values.clone()):
            return self.run(len(values))


def cut(module: Any, at: str | None, run: Run, modules: tuple[Any, ...],
        most: int | None = None, seen: tuple[int, ...] = ()) -> tuple[Floats, Tail, dict[str, Any]]:
    """(what the layer gives for the input, the rest of the net, where the values lie in the input)."""
    name = _last_convolution(module, run, modules) if at == LAST_CONVOLUTION else _layer_name(module, at)
    layer, outputs = dict(module.named_modules())[name], []

    def keep(_layer: Any, output: Any) -> None:
        torch = need("torch", "torch")
        if not isinstance(output, torch.Tensor) or not output.is_floating_point() or len(output) != 1:
            what = f"a tensor of shape {tuple(output.shape)}" if isinstance(output, torch.Tensor) else type(output).__name__
            raise Refused(f"a net can be cut at a layer that gives one tensor of real numbers with a row an input, {name!r} "
                             f"gives {what}; name another layer")
        outputs.append(output.detach().clone())  # what follows may change it in place

    _run_once([layer], keep, run, modules)
    if len(outputs) != 1:
        raise Refused(f"a net can be cut at a layer that it uses once, {name!r} was used {len(outputs)} times for an "
                         "input; name another layer" + ("" if outputs else ", outside of what is scripted or compiled"))
    own, places = outputs[0], {"layer": name, "seen": seen}
    coordinates = getattr(layer, "coordinates", None)
    if coordinates is not None and own.ndim == 3:
        places["seconds"], places["hertz"] = coordinates(own.shape[1], own.shape[2])
    return as_array(own)[0], Tail(modules, layer, name, run, own, module=module, most=most), places


def used(module: Any, name: str, run: Run, modules: tuple[Any, ...]) -> int:
    """How often a forward pass for one input meets a layer."""
    met: list[Any] = []
    _run_once([dict(module.named_modules())[name]], lambda layer, _output: met.append(layer), run, modules)
    return len(met)


def find_layer(module: Any, has: Callable[[Any], bool]) -> str | None:
    """The name of the first layer with a property; the outermost of those that stand inside each other."""
    return next((name for name, layer in module.named_modules() if name and has(layer)), None)


def says_where(layer: Any) -> bool:
    """Is this an audio front end, whose outputs have a time and a frequency?"""
    return callable(getattr(layer, "coordinates", None))


@dataclass(frozen=True, eq=False)
class Pull:
    """From weights of the outputs to the gradient of their weighted sum with respect to the leaf."""

    outputs: Any
    leaf: Any
    modules: tuple[Any, ...]
    name: str

    def __call__(self, weights: Floats) -> Floats:
        """What the forward pass kept stays, so that others can be pulled."""
        return self._pulled(weights, keep=True)

    def last(self, weights: Floats) -> Floats:
        """What the forward pass kept is let go piece by piece: memory that can be used again at once is faster."""
        return self._pulled(weights, keep=False)

    def _pulled(self, weights: Floats, keep: bool) -> Floats:
        torch, outputs, found = need("torch", "torch"), self.outputs, None
        # Checkpointed modules run forward again here, so they must be in eval mode here too.
        with evaluating(*self.modules), torch.inference_mode(False), torch.enable_grad():
            seeds = torch.from_numpy(np.array(weights, dtype=np.float64).reshape(tuple(outputs.shape)))
            seeds = seeds.to(outputs.dtype).to(outputs.device)
            if outputs.requires_grad:
                (found,) = torch.autograd.grad(outputs, self.leaf, seeds, retain_graph=keep, allow_unused=True)
        if found is None:
            raise RefusedKind(f"{self.name} must be differentiable for gradients, but nothing connects its outputs "
                            "with its inputs; look for detach(), no_grad(), argmax or rounding in its forward")
        return as_array(found)


def as_array(tensor: Any) -> Floats:
    """A tensor as an array of float64."""
    return np.asarray(tensor.detach().cpu().double().numpy())


def _layer_name(module: Any, at: str | None) -> str:
    names = [name for name, _ in module.named_modules() if name]
    if at is None:
        found = find_layer(module, says_where)
        if found is None:
            raise Refused("only an audio front end (whytrust.models.front_end.FrontEnd, or a layer with a method "
                             "coordinates) says which time and frequency its outputs stand for, and the net has none; cut the "
                             "sound in time alone (parts='time:16'), explain the spectrogram itself, or use a method of "
                             "slopes: saliency, integrated_gradients")
        return found
    if at not in names:
        close = [] if at.isdigit() else difflib.get_close_matches(at, names, 3, 0.3)
        which = f"{'the nearest' if close else 'its last'} are {', '.join(map(repr, close or names[-3:]))}"
        raise Refused(f"layer must name a layer of {type(module).__name__}, got {at!r}; {which}" if names else
                      f"{type(module).__name__} has no layers to name")
    return at


def _last_convolution(module: Any, run: Run, modules: tuple[Any, ...]) -> str:
    torch = need("torch", "torch")
    kinds = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
    names = {layer: name for name, layer in module.named_modules() if isinstance(layer, kinds)}
    met: list[tuple[str, bool]] = []
    _run_once(list(names), lambda layer, output: met.append((names[layer], output.shape[2:].numel() > 1)), run, modules)
    once = [(name, wide) for name, wide in met if [n for n, _ in met].count(name) == 1]
    placed = [name for name, wide in once if wide] or [name for name, _ in once]
    if not placed:
        raise Refused(f"{type(module).__name__} must have a convolution (a module of torch.nn, used once) for Grad-CAM, and "
                         "a forward pass met none; name a layer with layer=…, or use another method")
    return placed[-1]


def _run_once(layers: list[Any], see: Callable[[Any, Any], None], run: Run, modules: tuple[Any, ...]) -> None:
    torch = need("torch", "torch")
    with evaluating(*modules), torch.no_grad(), _watched(layers, see):
        run(1)


@contextmanager
def _watched(layers: list[Any], see: Callable[[Any, Any], Any]) -> Iterator[None]:
    """Inside, and for this thread, `see(layer, output)` is told what layers give; what it returns takes the output's place."""
    asking = threading.get_ident()

    def hook(layer: Any, _inputs: Any, output: Any) -> Any:
        return see(layer, output) if threading.get_ident() == asking else None

    with ExitStack() as stack:
        for layer in layers:
            stack.callback(layer.register_forward_hook(hook).remove)
        yield
