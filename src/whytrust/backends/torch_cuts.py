"""A net cut at one of its layers: what the layer gives for one input, and the rest of the net as a function of that.

An embedding, an audio front end and the layer that Grad-CAM looks at are three cuts of one kind. While a cut is asked, the
layer has a forward hook, for the asking thread alone; it is gone afterwards, whatever happens.
"""

from __future__ import annotations

import difflib
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from types import FunctionType
from typing import Any

import numpy as np

from whytrust.backends.torch_axes import channel_axes, places_begin, shape_of
from whytrust.backends.torch_backward import follow, watching
from whytrust.backends.torch_modes import evaluating
from whytrust.checked import Refused, RefusedKind
from whytrust.core import Floats, need

LAST_CONVOLUTION = "last convolution"
"""Stands for the last convolution that a forward pass meets and whose output still has places."""
LAST_MAP = "last feature map"
"""Stands for the last layer whose output has places and through which everything flows from the input to the scores."""
POOLS = ("Pool", "Mean", "Upsample")
"""In the names of autograd's nodes: these make another size of a feature map, and no new features."""
SHAPES = ("View", "Squeeze", "Reshape", "Permute", "Transpose", "Clone", "Alias")
"""In the names of autograd's nodes: these give the same values in another shape."""
FEATURES = ("Conv", "Mm", "Addmm", "Linear")
"""In the names of autograd's nodes: these have weights."""
BENDS = ("Relu", "Prelu", "Elu", "Gelu", "Silu", "Mish", "Hardswish", "Hardtanh", "Softplus", "Tanh")
"""In the names of autograd's nodes: activations."""
GATES = ("Softmax", "Sigmoid")
"""In the names of autograd's nodes: what goes through these alone says how much a feature counts, and is none."""
CALLED = re.compile(r"(\w+)\[(\d+)\]")
"""The result of a torch function that is no layer's: its name, and which call of a forward pass it is, from 1."""
SAME_SHAPE = 0.1
"""Logarithms of height : width that lie no further apart are those of one shape."""
NAMED = 5
"""Candidates that a refusal lists."""
Run = Callable[[int], Any]
"""A net's scores for n copies of one input, as a tensor."""
Follow = Callable[[], tuple[Any, Any]]
"""(the net's input as a leaf of autograd's graph, the scores that are made of it)."""


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
    call: tuple[str, int] | None = None  # instead of a layer: a torch function, and which call of it

    @property
    def kind(self) -> str:
        """What this is, in a few words."""
        return f"the rest of a torch module behind {self.layer_name}"

    @property
    def limits(self) -> tuple[float | None, float | None] | None:
        """Between which numbers all lie that the layer can give, where it says so."""
        return getattr(self.layer, "limits", None)

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

        def followed() -> tuple[Any, Any]:
            leaf = given.clone().requires_grad_()
            return leaf, self._outputs(leaf)

        return cut(self.module, at, lambda n: self._outputs(given.repeat(n, *repeats)), self.modules, self.most,
                   tuple(given.shape[1:]), followed)

    def _tensor(self, values: Floats) -> Any:
        torch = need("torch", "torch")
        array = np.array(values, dtype=np.float64 if self.own.dtype == torch.float64 else np.float32)
        if array.shape[1:] != tuple(self.own.shape[1:]):
            raise Refused(f"values for {self.layer_name} must be shaped like its output, (n, "
                             f"{', '.join(map(str, self.own.shape[1:]))}), got {array.shape}")
        return torch.from_numpy(array).to(self.own.device, self.own.dtype)

    def _outputs(self, values: Any) -> Any:
        # A copy, because what follows the layer may work in place, and a leaf must not be changed.
        if self.call is None:
            with _watched([self.layer], lambda _layer, _output: values.clone()):
                return self.run(len(values))
        calls, replaced = Counter[str](), []

        def answer(function: Any, args: Any, kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            if _counted(calls, function) != self.call or result.shape != values.shape:
                return result
            replaced.append(self.call)
            return result.copy_(values) if any(result is one for one in (*args, *kwargs.values())) else values.clone()

        with watching(answer):
            scores = self.run(len(values))
        if not replaced:
            raise Refused(f"a forward pass met no {self.layer_name} with such a result again; name a layer with layer=…")
        return scores


def cut(module: Any, at: str | None, run: Run, modules: tuple[Any, ...],
        most: int | None = None, seen: tuple[int, ...] = (), followed: Follow | None = None,
        ) -> tuple[Floats, Tail, dict[str, Any]]:
    """(what the layer gives for the input, the rest of the net, where the values lie in the input)."""
    if at == LAST_MAP:
        if followed is None:
            raise Refused("Grad-CAM looks at feature maps with places, and this model has none; use another method")
        at = _last_map(module, followed, modules)
    match = None if at is None else CALLED.fullmatch(at)
    call = (match[1], int(match[2])) if match and followed is not None else None
    if call is not None and call[1] == 0:
        raise Refused(f"layer {at!r} must say which call of {call[0]!r} it is, and counting begins at 1: '{call[0]}[1]' is the "
                      "first of a forward pass")
    name = (str(at) if call else
            _last_convolution(module, run, modules) if at == LAST_CONVOLUTION else _layer_name(module, at))
    layer, outputs = dict(module.named_modules()).get(name), []

    def keep(_layer: Any, output: Any) -> None:
        torch = need("torch", "torch")
        if not isinstance(output, torch.Tensor) or not output.is_floating_point() or len(output) != 1:
            what = f"a tensor of shape {tuple(output.shape)}" if isinstance(output, torch.Tensor) else type(output).__name__
            raise Refused(f"a net can be cut at a layer that gives one tensor of real numbers with a row an input, {name!r} "
                             f"gives {what}; name another layer")
        outputs.append((output.detach().clone(), output.grad_fn))  # what follows may change it in place

    if followed is None or at in (None, LAST_CONVOLUTION):
        _run_once([layer], keep, run, modules)
    else:  # autograd's graph says which axis has channels
        torch, calls = need("torch", "torch"), Counter[str]()

        def answer(function: Any, args: Any, kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            if _counted(calls, function) == call:
                keep(None, result)
            return result

        with evaluating(*modules), torch.inference_mode(False), torch.enable_grad(), (
                watching(answer) if call else _watched([layer], keep)):
            followed()
    if len(outputs) != 1:
        raise Refused(f"a net can be cut at a layer that it uses once, {name!r} was used {len(outputs)} times for an "
                         "input; name another layer" + ("" if outputs else ", outside of what is scripted or compiled"))
    own, node = outputs[0]
    channels = 1 if node is None else _channels(node, own, seen) or 1
    places: dict[str, Any] = {"layer": name.replace("_orig_mod.", ""), "seen": seen, "channels": channels - 1}
    if own.ndim == len(seen) == 3:
        places["grid"] = _grid(node, own, seen)
    coordinates = getattr(layer, "coordinates", None)
    if coordinates is not None and own.ndim == 3:
        places["seconds"], places["hertz"] = coordinates(own.shape[1], own.shape[2])
    return as_array(own)[0], Tail(modules, layer, name, run, own, module=module, most=most, call=call), places


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
    uncompiled = {name.replace("_orig_mod.", ""): name for name in names}  # as layers were called before torch.compile
    if at not in names and at not in uncompiled:
        close = [] if at.isdigit() else difflib.get_close_matches(at, names, 3, 0.3)
        which = f"{'the nearest' if close else 'its last'} are {', '.join(map(repr, close or names[-3:]))}"
        raise Refused(f"layer must name a layer of {type(module).__name__}, got {at!r}; {which}" if names else
                      f"{type(module).__name__} has no layers to name")
    return at if at in names else uncompiled[at]


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


@dataclass(frozen=True, eq=False)
class _Met:
    """What a layer or a function gave in a forward pass, and where that stands in autograd's graph."""

    name: str
    output: Any
    node: Any


def _last_map(module: Any, followed: Follow, modules: tuple[Any, ...]) -> str:
    """The last feature map through which everything flows: what feeds the pooling of most nets.

    A layer in one of several branches, in a shortcut or before a residual sum sees a part of what the scores are made of; where
    no layer gives the sum, the function does. What a pooling gives is passed over for what it is given. Of a transformer's
    tokens, those of places must still matter: where a class token alone is read, the last layer before that has them.
    """
    torch = need("torch", "torch")
    met, uses, called, calls = [], Counter[Any](), list[_Met](), Counter[str]()
    names = {layer: name for name, layer in module.named_modules() if name}

    def feature(output: Any) -> bool:
        return (isinstance(output, torch.Tensor) and output.is_floating_point() and output.grad_fn is not None
                and output.ndim > 2 and len(output) == 1)

    def see(layer: Any, output: Any) -> None:
        uses[layer] += 1
        if feature(output):
            met.append((layer, _Met(names[layer], output, output.grad_fn)))

    def hear(function: Any, args: Any, kwargs: Any) -> Any:
        result, (name, number) = function(*args, **kwargs), _counted(calls, function)
        if feature(result):
            called.append(_Met(f"{name}[{number}]", result, result.grad_fn))
        return result

    with evaluating(*modules), torch.inference_mode(False), torch.enable_grad(), _watched(list(names), see), watching(hear):
        leaf, scores = followed()
    with torch.inference_mode(False), torch.enable_grad():
        maps = _of_one_kind([one for layer, one in met if uses[layer] == 1], leaf)
        start = _node_of(leaf)
        idle = False  # tokens that come later do not matter: then the projection of the patches is no choice either
        found: _Met | None = None
        for one in reversed(maps):
            if _is_pooled(one.node) or _reaches(scores.grad_fn, start, one.node) or not _is_laid_out(one, leaf):
                continue
            tokens = _are_tokens(one, leaf)
            if not tokens and idle:
                break
            if not tokens or _tokens_matter(one, scores, leaf):
                found = one
                break
            idle = True
        if found is not None or not idle:
            found = _behind(found, called, scores, leaf) or found
    who = type(module).__name__
    listed = [repr(one.name) for one in islice((one for one in reversed(maps) if _is_laid_out(one, leaf)), NAMED)]
    candidates = (f"name the layer to look at with layer=…, such as one of {', '.join(reversed(listed))}" if listed else
                  "name a layer with layer=…, or use another method")
    if found is None:
        raise Refused(f"{who} must have a layer with a feature map through which everything flows, and which it uses once, for "
                      f"Grad-CAM, and a forward pass met none; {candidates}")
    flaw = ("convolutions make other features beside it" if not _are_tokens(found, leaf) and _is_passed(found, scores) else
            "attention still mixes the places, in tokens that do not lie as (inputs, tokens, channels) or do not say which of "
            "them are places" if _is_mixed(found, scores, leaf) else None)
    if flaw is not None:
        raise Refused(f"{who} must have a layer with a feature map through which everything flows, for Grad-CAM, and behind "
                      f"{found.name!r}, the last, {flaw}; {candidates}")
    if _channels(found.node, found.output, tuple(leaf.shape[1:])) is None:
        raise Refused(f"Grad-CAM must know which axis of a feature map has its channels, and nothing says it of {found.name!r} "
                      f"in {who}, which gives {tuple(found.output.shape[1:])}; {candidates}; what you name is taken for "
                      "(channels, height, width)")
    return found.name


def _behind(found: _Met | None, called: list[_Met], scores: Any, leaf: Any) -> _Met | None:
    """The last map that everything flows through, if it is no layer's and has features that the layer found has not, or is
    what an activation makes of them."""
    start = _node_of(leaf)
    for one in reversed(called):
        if found is not None and one.node is found.node:
            break
        if (any(kind in one.node.name() for kind in (*SHAPES, *POOLS, "mm", "Mm", "Linear", "ScaledDotProduct"))
                or one.output.ndim > 4 or not _of_one_kind([one], leaf) or _reaches(scores.grad_fn, start, one.node)
                or (_are_tokens(one, leaf) and not _tokens_matter(one, scores, leaf))):
            continue
        between = list(_ancestors(one.node, None if found is None else found.node))
        later = found is None or any(before is found.node for node in between for before, _ in node.next_functions)
        return one if later and any(kind in node.name() for node in between for kind in (*FEATURES, *BENDS)) else None
    return None


def _is_passed(found: _Met, scores: Any) -> bool:
    """Are the scores made of features that a later convolution has made of a map, and of that map itself? What only weighs the
    places of a map, as attention does, makes no features."""
    def stops(node: Any) -> bool:
        gates = any(kind in node.name() for kind in GATES) and len(shape_of(node)) > 2
        return node is found.node or gates

    return any("Conv" in node.name() and any(n > 1 for n in shape_of(node)[2:])
               for node in _ancestors(scores.grad_fn, stops))


def _is_mixed(found: _Met, scores: Any, leaf: Any) -> bool:
    """Does attention behind a map mix its places, as seen from the scores? What a class token alone reads is a pooling."""
    torch, start, seen = need("torch", "torch"), _node_of(leaf), tuple(leaf.shape[1:])
    grid = grid_of_tokens(found.output.shape[_token_axis(found.node, found.output, seen)], seen[1:]) if _are_tokens(
        found, leaf) else None
    others = max(1, grid[2]) if grid else 1

    def weighs(node: Any) -> bool:
        return any(kind in node.name() for kind in (*FEATURES, "Bmm", "Baddbmm"))

    for node in _ancestors(scores.grad_fn, found.node):
        shape, name = shape_of(node), node.name()
        if len(shape) < 3 or shape[-2] == 1 or not ("Softmax" in name or "ScaledDotProduct" in name):
            continue
        factors = [node.next_functions[:2]] if "Scaled" in name else [
            product.next_functions[-2:] for before in _ancestors(node, weighs) for product, _ in before.next_functions
            if product is not None and weighs(product)]
        if any(all(_reaches(factor, start, None) for factor, _ in pair) for pair in factors):
            gradient = _gradient(scores, torch.autograd.graph.GradientEdge(node, 0))
            if gradient is None or not 1 <= int(gradient.movedim(-2, 0).flatten(1).any(1).sum()) <= others:
                return True
    return False


def _gradient(scores: Any, of: Any) -> Any:
    """Of all the scores, weighted so that they do not cancel; None where they do not depend on it."""
    torch = need("torch", "torch")
    weights = torch.linspace(1, 2, scores.numel(), dtype=scores.dtype, device=scores.device).reshape(scores.shape)
    return torch.autograd.grad(scores, of, weights, retain_graph=True, allow_unused=True)[0]


def _of_one_kind(met: list[_Met], leaf: Any) -> list[_Met]:
    """The feature maps among outputs: (1, channels, *places) or (1, *places, channels), of an image also tokens.

    Of a sound, which may become a spectrogram in the net, those with most axes; in time alone only what follows a convolution.
    """
    found = [one for one in met if _has_places(one, leaf) and _follows(one.node, FEATURES)]
    if leaf.ndim == 4:
        return found
    most = max((one.output.ndim for one in found), default=0)
    return [one for one in found if one.output.ndim == most and (most > 3 or _follows(one.node, ("Conv",)))]


def _has_places(one: _Met, leaf: Any) -> bool:
    shape, channels = tuple(one.output.shape), _channels(one.node, one.output, tuple(leaf.shape[1:])) or 1
    if _are_tokens(one, leaf):
        return shape[channels] > 1 and grid_of_tokens(shape[3 - channels], tuple(leaf.shape[2:])) is not None
    return 3 <= len(shape) <= 5 and one.output.numel() > shape[channels]


def _are_tokens(one: _Met, leaf: Any) -> bool:
    return bool(one.output.ndim == 3 and leaf.ndim == 4)


def _channels(node: Any, output: Any, seen: tuple[int, ...]) -> int | None:
    """The axis of a map's channels; None where nothing says it: neither what was done to it nor the shape of the input."""
    axes = {axis for axis in channel_axes(node) if axis} if node is not None and output.ndim > 2 else set()
    if output.ndim == len(seen) == 3:
        return 1 if axes == {1} else 2  # tokens
    if output.ndim != 4 or len(seen) != 3:
        return axes.pop() if len(axes) == 1 else 1
    first, last = (abs(np.log(a / b * seen[2] / seen[1])) < SAME_SHAPE for a, b in (output.shape[1:3], output.shape[2:]))
    if len(axes) == 1 and (axes != {3} or first or not last):  # a linear layer may also mix the places of a row
        return axes.pop()
    return None if axes == {3} or (first and last) else 3 if first else 1


def grid_of_tokens(tokens: int, size: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(height, width, tokens of no place) of a transformer's tokens for an image of that size; None where they form no grid
    of its shape. There are few tokens of no place (of the class, registers)."""
    for extra in range(min(9, tokens - 3)):
        high = round(float(np.sqrt((tokens - extra) * size[0] / size[1])))
        wide = (tokens - extra) // max(high, 1)
        if high > 0 and high * wide == tokens - extra and high * size[1] == wide * size[0]:
            return high, wide, extra
    return None


def _is_laid_out(one: _Met, leaf: Any) -> bool:
    return not _are_tokens(one, leaf) or _grid(one.node, one.output, tuple(leaf.shape[1:])) is not None


def _grid(node: Any, output: Any, seen: tuple[int, ...]) -> tuple[int, int, int] | None:
    """(height, width, tokens before the first place) of tokens; None where they form no grid, or where nothing says at which
    end the tokens of no place were joined to it."""
    tokens = output.shape[_token_axis(node, output, seen)]
    grid = grid_of_tokens(tokens, seen[1:])
    if grid is None or grid[2] == 0:
        return grid
    found = (places_begin(before, tokens, grid[0] * grid[1]) for before in _ancestors(node))
    begins = {first for first in found if first is not None}
    return (*grid[:2], begins.pop()) if len(begins) == 1 else None


def _token_axis(node: Any, output: Any, seen: tuple[int, ...]) -> int:
    return 3 - (_channels(node, output, seen) or 2)


def _tokens_matter(one: _Met, scores: Any, leaf: Any) -> bool:
    """Do the scores depend on tokens of places at this layer?"""
    seen = tuple(leaf.shape[1:])
    grid, gradient = _grid(one.node, one.output, seen), _gradient(scores, one.output)
    if grid is None or gradient is None:
        return False
    high, wide, first = grid
    tokens = gradient.movedim(_token_axis(one.node, one.output, seen), 1)
    return bool(tokens[:, first:first + high * wide].any())


def _is_pooled(node: Any) -> bool:
    """Does a pooling give this, reshaped or not?"""
    while any(kind in node.name() for kind in SHAPES):
        node = node.next_functions[0][0]
    return any(kind in node.name() for kind in POOLS)


def _node_of(leaf: Any) -> Any:
    """Where autograd adds up a leaf's gradient."""
    return leaf.view_as(leaf).grad_fn.next_functions[0][0]


def _reaches(start: Any, end: Any, without: Any) -> bool:
    """Does a path lead from the scores back to the input that does not go through a node?"""
    return any(node is end for node in _ancestors(start, without))


def _counted(calls: Counter[str], function: Any) -> tuple[str, int]:
    """A torch function's name, and which call of that name this is in a forward pass."""
    name = str(getattr(function, "__name__", "")).strip("_")
    calls[name] += 1
    return name, calls[name]


def _follows(node: Any, kinds: tuple[str, ...]) -> bool:
    """Is something of one of these kinds done to the input before this node, or by it?"""
    return any(kind in before.name() for before in _ancestors(node) for kind in kinds)


def _ancestors(start: Any, without: Any = None) -> Iterator[Any]:
    """The nodes of autograd's graph behind one, itself first; what lies behind `without` alone is left out.

    `without` is a node, or a function that says of a node whether it is left out.
    """
    seen, waiting = set(), [start]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen or (without(node) if isinstance(without, FunctionType) else node is without):
            continue
        seen.add(node)
        yield node
        waiting += [before for before, _ in node.next_functions]


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
