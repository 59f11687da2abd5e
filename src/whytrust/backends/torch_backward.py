"""Backward passes of torch nets that follow a rule instead of the derivative, without a touch to the net.

Guided backpropagation and the deconvolution network change what rectifiers do to gradients. Their hooks are on the nodes of
the autograd graph of one forward pass, not on modules: so they see a ReLU however it is written (a module, a function, in
place, a clamp, a maximum with zeros, one module used twice), and die with the graph. A rectifier that is put together from
other operations, as x * (x > 0) or torch.where, is not known for one: its gradient is torch's. For excitation
backpropagation see torch_excitation.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from whytrust.backends.torch_excitation import Excitation, Paths, hidden, stem
from whytrust.checked import Refused
from whytrust.core import need

RULES = ("guided", "deconvnet", "excitation")
"""What a backward pass may follow: two rules for rectifiers, and the probability of winning."""
NAMES = {"guided": "guided backpropagation", "deconvnet": "deconvnet", "excitation": "excitation backpropagation"}
FALLING = {"Gelu": "GELU", "Silu": "SiLU (Swish)", "Mish": "Mish", "Hardswish": "Hardswish", "Erf": "erf (as in GELU)"}
"""Activations that fall somewhere, by the node: the sign of a gradient means another thing there."""
SMOOTH = {"Elu": "ELU or SELU", "Celu": "CELU", "Softplus": "Softplus", "PreluKernel": "PReLU", "RreluWithNoise": "RReLU"}
"""Activations that never fall, with a slope of their own for what is negative."""
BENT = re.compile("celu|clamp|clamp_min|clip|elu|hardswish|hardtanh|leaky_relu|mish|relu|relu6|rrelu|selu|silu|threshold")
"""Functions that have an in-place form and matter to the rules."""


class Rectifier(NamedTuple):
    """A node of the graph that a rule changes."""

    slot: int  # which of its inputs is rectified
    slope: float = 0.0  # what LeakyReLU does to negative numbers
    smooth: str = ""  # its name, if it has no reverse that the deconvnet could use
    plain: bool = False  # number by number: what it passes down is a new tensor, which may be changed where it lies


def follow(rule: str, run: Callable[[Any], Any], leaf: Any, must_change: bool = False) -> Any:
    """The outputs of run(leaf), whose autograd backward to `leaf` follows the rule instead of the true derivative.

    With `must_change`, a module in which guided or deconvnet find nothing to change is refused.
    """
    if rule not in RULES:
        raise Refused(f"rule must be one of {', '.join(RULES)}, got {rule!r}")
    if rule == "excitation":
        answer = Excitation(leaf)
        outputs = _watched(rule, run, leaf, answer)
        answer.check([_tensor(outputs)])
    else:
        # Most nets show all that they do in the graph; what hides is run again, with every torch function watched.
        apart, outputs = Apart(), _tensor(run(leaf))
        paths = Paths(leaf)
        paths.lead_to(outputs)
        if any(stem(node) == "CopySlices" or hidden(node) for node in paths.new):
            outputs, paths = _tensor(_watched(rule, run, leaf, apart)), Paths(leaf)
            paths.lead_to(outputs)
        changed = _hook(rule, paths, apart.copies)
        if must_change and not changed:
            raise Refused(f"{NAMES[rule]} changes what rectifiers do to gradients, and must see at least one, as ReLU; this "
                          "module has none that can be seen, so its gradients would be those of saliency: use that")
    return outputs


def _watched(rule: str, run: Callable[[Any], Any], leaf: Any, answer: Callable[[Any, Any, Any], Any]) -> Any:
    """The outputs of run(leaf), with this thread's torch functions answered by `answer(function, args, kwargs)`."""
    try:
        with watching(answer):
            return run(leaf)
    except Exception as error:
        if type(error).__module__ != "torch._dynamo.exc":
            raise
        why = str(error).splitlines()[0]
        raise Refused(f"{NAMES[rule]} needs a module whose operations can be seen, and this one is compiled as a whole: "
                         f"{why}; give the module before it was compiled, or leave fullgraph out") from error


def watching(answer: Callable[[Any, Any, Any], Any]) -> Any:
    """Inside, this thread's torch functions are answered by `answer(function, args, kwargs)`."""
    return _mode(sys.modules.get("torch._dynamo"))(answer)


@cache
def _mode(dynamo: Any) -> Any:
    """One class for all: a class made for each call would be a reference cycle, and keep the graph alive."""
    torch = need("torch", "torch")

    def begin(self: Any, answer: Callable[[Any, Any, Any], Any]) -> None:
        torch.overrides.TorchFunctionMode.__init__(self)
        self.answer = answer

    def ask(self: Any, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.answer(function, args, kwargs or {})

    # A compiled module runs as Python in here: what its compiler may not read, it leaves to be called one by one.
    asked = ask if dynamo is None else dynamo.disable(ask)
    return type("Watch", (torch.overrides.TorchFunctionMode,), {"__init__": begin, "__torch_function__": asked})


class Apart:
    """Answers torch functions: activations that work in place on a view are done beside it.

    The graph would hide them in a node that puts numbers into a part of a tensor. Such nodes that were made by functions seen
    here are harmless then, and kept in `copies`.
    """

    def __init__(self) -> None:
        """Begin with nothing seen."""
        self.copies: set[Any] = set()

    def __call__(self, function: Any, args: Any, kwargs: Any) -> Any:
        """What the function returns."""
        torch = need("torch", "torch")
        first = args[0] if args else kwargs.get("input")
        if not isinstance(first, torch.Tensor) or not torch.is_grad_enabled():
            return function(*args, **kwargs)
        whole = first._base if first._is_view() else first
        before = whole.grad_fn
        if BENT.fullmatch(str(getattr(function, "__name__", "")).strip("_")) and first._is_view() and first.requires_grad:
            beside = first.clone()
            result = function(beside, *args[1:], **{key: value for key, value in kwargs.items() if key != "input"})
            result = first.copy_(result) if result is beside else result
        else:
            result = function(*args, **kwargs)
        if whole.grad_fn is not before:
            self.copies.add(whole.grad_fn)
        return result


def _tensor(outputs: Any) -> Any:
    if not isinstance(outputs, need("torch", "torch").Tensor):
        raise TypeError(f"run must return a tensor of scores, got {type(outputs).__name__}")
    return outputs


def _hook(rule: str, paths: Paths, copies: set[Any]) -> int:
    """Change what every rectifier on the way does to gradients; how many there are."""
    found = [(node, kind) for node in paths.new if (kind := _rectifier(node, paths)) is not None]
    wrong = {kind for _, kind in found if isinstance(kind, str)}
    if rule == "deconvnet":
        wrong |= {kind.smooth for _, kind in found if isinstance(kind, Rectifier) and kind.smooth}
    if any(stem(node) == "CopySlices" and node not in copies for node in paths.new):
        wrong |= {"in-place work on a view where Python does not see it (in a scripted or traced module?)"}
    if wrong:
        needs = ("ReLU, ReLU6 or LeakyReLU where it has rectifiers" if rule == "deconvnet" else
                 "activations that never fall, as ReLU, ELU or tanh")
        raise Refused(f"{NAMES[rule]} needs a module whose operations can be seen, with {needs}; this one has "
                         f"{', '.join(sorted(wrong))}; use saliency or integrated_gradients instead")
    for node, kind in found:
        if isinstance(kind, Rectifier):
            # The hooks know numbers alone: with the node in them, the graph would hold itself.
            if rule == "guided" and kind.plain:
                node.register_hook(_positive_below)
            elif rule == "guided":
                node.register_prehook(_positive)
            else:
                node.register_hook(_reverse(kind.slot, kind.slope))
    return len(found)


def _positive(gradients: Any) -> Any:
    """For a node that never falls: only gradients that raise the output go on, by its own derivative."""
    return tuple(gradient if gradient is None else gradient.clamp(min=0) for gradient in gradients)


def _positive_below(below: Any, above: Any) -> None:
    """The same, after a derivative that is a factor >= 0 for each number; in place, for memory is what this costs."""
    if below[0] is not None:
        below[0].clamp_(min=0)


def _reverse(slot: int, slope: float) -> Callable[[Any, Any], Any]:
    """The rectifier done to the gradient itself, whatever was done to the input."""
    torch = need("torch", "torch")

    def hook(below: Any, above: Any) -> Any:
        if below[slot] is None or above[0] is None:
            return None
        rectified = torch.nn.functional.leaky_relu(above[0], slope) if slope else above[0].clamp(min=0)
        return (*below[:slot], rectified.sum_to_size(below[slot].shape), *below[slot + 1:])

    return hook


def _rectifier(node: Any, paths: Paths) -> Rectifier | str | None:
    """What a node is: a rectifier, in words something that a rule cannot pass, or nothing that matters."""
    name = stem(node)
    if words := hidden(node) or FALLING.get(name, ""):
        return words
    if name == "Mul" and _is_swish(node):
        return "x * sigmoid(x), which is SiLU (Swish)"
    if name in ("Maximum", "Fmax", "Clamp", "ClampMin"):
        return _clamp(node, name, paths)
    if name == "Relu" or (name == "Hardtanh" and node._saved_min_val == 0):
        return Rectifier(0, plain=True)
    if name == "Threshold":
        at = node._saved_threshold
        return Rectifier(0, plain=True) if at == 0 else f"a threshold at {at:g}, which may fall"
    if name == "LeakyRelu":
        slope = float(node._saved_negative_slope)
        return Rectifier(0, slope, plain=True) if slope >= 0 else f"LeakyReLU with the negative slope {slope:g}"
    if name not in SMOOTH:
        return None
    return Rectifier(0, smooth=SMOOTH[name]) if _least_slope(node, name) >= 0 else f"{SMOOTH[name]} with a negative slope"


def _least_slope(node: Any, name: str) -> float:
    """A number that is negative where an activation falls."""
    if name == "PreluKernel":
        return float(node._saved_weight.min())
    if name == "RreluWithNoise":
        return float(node._saved_lower)
    return float(node._saved_alpha) * float(node._saved_scale) * float(node._saved_input_scale) if name == "Elu" else 0.0


def _clamp(node: Any, name: str, paths: Paths) -> Rectifier | None:
    """A rectifier where numbers stop at a constant zero; elsewhere, as for clamp(min=1e-6), nothing that matters."""
    ways = [n is not None and paths.has(n) for n, _ in node.next_functions]
    if sum(ways) != 1:
        return None
    slot = ways.index(True)
    if name in ("Maximum", "Fmax"):
        least = node._saved_self if slot else node._saved_other
    else:
        least = node._saved_min if slot == 0 else None
    zero = least is not None and (bool((least == 0).all()) if hasattr(least, "all") else least == 0)
    return Rectifier(slot) if zero else None


def _is_swish(node: Any) -> bool:
    """A product of something and its own sigmoid."""
    edges = [edge for edge in node.next_functions if edge[0] is not None]
    return len(edges) == 2 and any(stem(one[0]) == "Sigmoid" and one[0].next_functions[0] == other
                                   for one, other in (edges, edges[::-1]))
