"""The same scores of a torch module sooner: on a private copy, checked against the module itself.

The copy has its batch norms folded into the layers before them, and images with their channels last; with "compile" it is
compiled too. It rounds differently, so it must agree with the module to within TOLERANCE on the first inputs of every new
shape, and on noise; where it does not, it is given up for good, with a warning.
"""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from whytrust.core import generator, need

TOLERANCE = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
"""How far the copy's scores may lie from the module's, in parts of the largest score, by the type of the inputs or scores."""
LINEAR = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "linear")
"""Functions into whose weights, their second tensor, a batch norm can be folded."""
PLAIN = frozenset((bool, int, float, str))
"""Types of settings that a module may hold."""
PROBES = 4
"""Inputs of each new shape on which the copy and the module are compared; as many of noise."""


@dataclass(eq=False)
class FastCopy:
    """A module's scores from a faster copy of it; built when first called, and anew when the module has changed.

    A change is seen in the parameters and buffers (replaced, or other values), in the submodules, and in numbers and texts
    that they hold; not in what lies deeper, such as a number in a list. The caller sees to eval mode, to no_grad,
    and to a batch of its own, since layers may work in place.
    """

    module: Any
    scores_of: Callable[[Any], Any]
    compile: bool = False
    given_up: bool = False
    _copy: Any = field(default=None, repr=False)
    _made_from: Any = field(default=None, repr=False)
    _checked: set[tuple[Any, ...]] = field(default_factory=set, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without the copy: it is built again where it is needed."""
        return {**self.__dict__, "_copy": None, "_made_from": None, "_checked": set()}

    def __call__(self, inputs: Any, unchanged: bool = False) -> Any:
        """The scores of a batch, from the copy where it is as good as the module; `unchanged`: since it was looked at again."""
        if self.given_up or not len(inputs):
            return self._plain(inputs)
        shape = (*inputs.shape, inputs.dtype)
        if shape in self._checked and (unchanged or self._made_from == state(self.module)):
            return self._fast(inputs)
        # Outside of `try`: what the module itself cannot do is the caller's to know, and no fault of the copy.
        plain = self._plain(inputs[:PROBES].clone())
        try:
            fast, wrong = self._compared(inputs, plain)
        except Exception as error:  # whatever a user's module or a compiler may raise
            wrong = f"it raised {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        if wrong:
            self._give_up(wrong)
            return self._plain(inputs)
        self._checked.add(shape)
        return fast

    def _compared(self, inputs: Any, plain: Any) -> tuple[Any, str]:
        """(the copy's scores, in words what is wrong with them)."""
        now = state(self.module)
        if now != self._made_from:
            self._copy, self._made_from, self._checked = self._made(inputs), now, set()
        fast, noise = self._fast(inputs.clone()), _noise_like(inputs)
        near = tolerance(inputs, plain)
        return fast, (difference(fast[:PROBES], plain, near)
                      or difference(self._fast(noise.clone())[:PROBES], self._plain(noise[:PROBES].clone()), near)
                      or ("" if state(self.module) == now else "the module changes itself when it is called"))

    def look_again(self) -> None:
        """Whether the module has changed: then nothing of the copy is believed."""
        if self._made_from is not None and self._made_from != state(self.module):
            self._checked = set()

    def _plain(self, inputs: Any) -> Any:
        return self.scores_of(self.module(inputs))

    def _fast(self, inputs: Any) -> Any:
        torch = need("torch", "torch")
        image = inputs.ndim == 4 and inputs.is_floating_point()
        return self.scores_of(self._copy(inputs.contiguous(memory_format=torch.channels_last) if image else inputs))

    def _made(self, inputs: Any) -> Any:
        torch = need("torch", "torch")
        made = copy.deepcopy(self.module).requires_grad_(False)
        for layer, norm in foldable(made, inputs[:PROBES].clone()):
            fold(made, layer, norm)
        for parameter in made.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=torch.channels_last)
        return torch.compile(made) if self.compile else made

    def _give_up(self, why: str) -> None:
        self.given_up, self._copy, self._made_from = True, None, None
        warnings.warn(f"fast is given up for {type(self.module).__name__}, which is now asked as it is: the faster copy must "
                      f"say what the module says, but {why}; leave fast out to be rid of this warning", stacklevel=2)


def state(module: Any) -> list[Any]:
    """What a module's answers depend on, as far as can be seen cheaply: two equal states are taken for the same module.

    Sums too, because changes through `.data` leave torch's version counters alone.
    """
    torch = need("torch", "torch")
    seen: list[Any] = []
    loose: list[Any] = []
    for part in module.modules():
        held = vars(part)
        seen.append((id(part), type(part), [(k, v) for k, v in held.items() if type(v) in PLAIN and k != "training"]))
        loose += [v for v in held.values() if type(v) is torch.Tensor]
    for tensor in chain(module.parameters(), module.buffers(), loose):
        version = 0 if tensor.is_inference() else tensor._version
        seen.append((tensor.data_ptr(), version, tensor.shape, str(tensor.detach().sum().item())))
    return seen


def foldable(module: Any, inputs: Any) -> list[tuple[Any, Any]]:
    """(layer, batch norm) pairs where, on these inputs, the norm takes what the layer's weights gave, and nothing else does.

    By running the module and watching which tensor is which: the norm, called once, must be given the very tensor that a
    convolution or linear function returned; the weights in it must be a layer's own, used there alone; and no other function
    may take the tensor. Hooks and modes are gone afterwards.
    """
    torch = need("torch", "torch")
    kinds = (torch.nn.modules.conv._ConvNd, torch.nn.Linear)
    layers = {id(part._parameters.get("weight")): part for part in module.modules() if isinstance(part, kinds)}
    seen: list[tuple[str, Any, list[Any]]] = []  # tensors are kept, so that no two of them can have one id
    into_norms: list[tuple[Any, Any]] = []

    def note(self: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if not isinstance(result, bool | int | torch.Size | torch.dtype | torch.device):  # asking for a shape is no use of it
            seen.append((getattr(function, "__name__", ""), result, _tensors_in((args, kwargs))))
        return result

    watch = type("Watch", (torch.overrides.TorchFunctionMode,), {"__torch_function__": note})
    handles = [part.register_forward_hook(lambda part, given, _: into_norms.append((part, given[0] if given else None)))
               for part in module.modules() if _is_plain_norm(part)]
    try:
        with watch():
            module(inputs)
    finally:
        for handle in handles:
            handle.remove()
    uses = Counter(id(tensor) for _, _, taken in seen for tensor in taken)
    norms = Counter(id(norm) for norm, _ in into_norms)
    made = {id(result): (name, layers[id(taken[1])], result) for name, result, taken in seen
            if name in LINEAR and len(taken) > 1 and id(taken[1]) in layers and uses[id(taken[1])] == 1}
    pairs = [(*made[id(given)], norm) for norm, given in into_norms
             if id(given) in made and uses[id(given)] == 1 and norms[id(norm)] == 1]
    return [(layer, norm) for name, layer, result, norm in pairs
            if (name != "linear" or result.ndim == 2)  # elsewhere the norm's channels are not the layer's outputs
            and not (getattr(layer, "transposed", False) and layer.groups > 1)]


def fold(module: Any, layer: Any, norm: Any) -> None:
    """Put a batch norm's scale and shift into the weights of the layer before it, and nothing in its place."""
    torch = need("torch", "torch")
    fusion = need("torch.nn.utils.fusion", "torch")
    of_norm = (norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias)
    if isinstance(layer, torch.nn.Linear):
        ones, zeros = torch.ones_like(norm.running_var), torch.zeros_like(norm.running_mean)
        of_norm = (*of_norm[:3], ones if norm.weight is None else norm.weight, zeros if norm.bias is None else norm.bias)
        layer.weight, layer.bias = fusion.fuse_linear_bn_weights(layer.weight, layer.bias, *of_norm)
    else:
        layer.weight, layer.bias = fusion.fuse_conv_bn_weights(layer.weight, layer.bias, *of_norm, transpose=layer.transposed)
    for parent in module.modules():
        for name, child in list(parent._modules.items()):
            if child is norm:
                setattr(parent, name, torch.nn.Identity())


def _is_plain_norm(part: Any) -> bool:
    """torch's own batch norm with running statistics, and no hooks of the user's that would be lost with it."""
    nn = need("torch", "torch").nn
    ours = type(part) in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d) and part.running_mean is not None
    return ours and not (part._forward_hooks or part._forward_pre_hooks)


def _tensors_in(value: Any) -> list[Any]:
    torch = need("torch", "torch")
    if isinstance(value, torch.Tensor):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else ()
    return [tensor for item in inside for tensor in _tensors_in(item)]


def _noise_like(inputs: Any) -> Any:
    """Values between the smallest and the largest of the batch: far from it, and yet such as the module takes."""
    torch = need("torch", "torch")
    rng = generator(0, "fast")
    low, high = inputs.min().item(), inputs.max().item()
    values = (rng.uniform(low, high, tuple(inputs.shape)).astype(np.float32) if inputs.is_floating_point()
              else rng.integers(low, high + 1, tuple(inputs.shape)))
    return torch.from_numpy(values).to(inputs.dtype).to(inputs.device)


def tolerance(inputs: Any, scores: Any) -> float:
    """How far two ways to the same scores may lie apart, in parts of the largest."""
    return max(TOLERANCE.get(str(kind).removeprefix("torch."), 0.0) for kind in (inputs.dtype, scores.dtype))


def difference(fast: Any, plain: Any, tolerance: float) -> str:
    """In words, where two answers differ by more than rounding; nothing where they do not."""
    torch = need("torch", "torch")
    if fast.shape != plain.shape:
        return f"its scores have shape {tuple(fast.shape)} and the module's {tuple(plain.shape)}"
    fast, plain = fast.detach().cpu().double(), plain.detach().cpu().double()
    scale = plain[plain.isfinite()].abs().max().item() if plain.isfinite().any() else 0.0
    if torch.allclose(fast, plain, rtol=0, atol=tolerance * scale, equal_nan=True):
        return ""
    return f"its scores differ by {(fast - plain).abs().max().item():.3g} where {tolerance * scale:.3g} is rounding"
