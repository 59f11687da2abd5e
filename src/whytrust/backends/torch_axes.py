"""Which axis of a feature map has its channels? Read off autograd's graph: what was done to a map says how it lies.

Convolutions and batch normalisation have channels behind the batch, linear layers and layer normalisation last; permuted and
reshaped, they are followed from there.
"""

from __future__ import annotations

from typing import Any

FIRST = ("ConvolutionBackward", "BatchNormBackward", "NativeGroupNormBackward")
"""Nodes whose results have channels behind the batch."""
PRODUCTS = ("MmBackward", "AddmmBackward", "BmmBackward", "BaddbmmBackward")
"""Nodes whose last two inputs are the factors of a matrix product."""
DEEPEST = 100
"""Steps back that are followed: what is further away says little about how a map lies."""


def channel_axes(node: Any, index: int = 0, known: dict[tuple[Any, int], set[int]] | None = None, depth: int = 0) -> set[int]:
    """The axes that may have the channels of what a node of the graph gives: none where nothing says it, several in doubt."""
    known = {} if known is None else known
    shape = shape_of(node, index)
    if not shape or depth > DEEPEST:
        return set()
    if (node, index) not in known:
        known[node, index] = set()
        known[node, index] = _axes_of(node, shape, known, depth + 1)
    return known[node, index]


def _axes_of(node: Any, shape: tuple[int, ...], known: dict[tuple[Any, int], set[int]], depth: int) -> set[int]:
    name, last = node.name().rstrip("0123456789"), len(shape) - 1
    if name.endswith(FIRST):
        return {1}
    if name == "NativeLayerNormBackward" and len(node._saved_normalized_shape) == 1:
        return {last}
    before = [(channel_axes(parent, slot, known, depth), shape_of(parent, slot)) for parent, slot in node.next_functions]
    if name in PRODUCTS:  # rows are the first factor's, columns the second's; a weight makes channels of what it turns to
        of_weights = [not _is_made(parent) for parent, _ in node.next_functions[-2:]]
        if any(of_weights):
            return {last if of_weights[1] else last - 1}
        return {axis for (axes, _), axis in zip(before[-2:], (last - 1, last), strict=True) if axis in axes}
    if name in ("PermuteBackward", "TransposeBackward", "TBackward"):
        order = list(range(len(shape)))
        if name == "PermuteBackward":
            order = [_signed(dim) % len(shape) for dim in node._saved_dims]
        else:
            one, other = (_signed(getattr(node, f"_saved_dim{i}", i)) for i in (0, 1))
            order[one], order[other] = order[other], order[one]
        return {order.index(axis) for axes, _ in before for axis in axes}
    moved = {_moved(axis, was, shape, "View" in name or "Reshape" in name) for axes, was in before for axis in axes}
    return {axis for axis in moved if axis is not None}


def _is_made(node: Any) -> bool:
    """Is something computed here, other than a weight turned or enlarged?"""
    while node is not None and node.name().startswith(("TBackward", "TransposeBackward", "PermuteBackward", "ExpandBackward",
                                                       "ViewBackward", "UnsafeViewBackward", "UnsqueezeBackward")):
        node = node.next_functions[0][0]
    return node is not None and not node.name().endswith("AccumulateGrad")


def _moved(axis: int, was: tuple[int, ...], shape: tuple[int, ...], reshaped: bool) -> int | None:
    """Where an axis is after a function, or after a change of shape; None where it was split, joined or summed away."""
    if len(was) == len(shape) and not reshaped:
        return axis
    if was[:axis + 1] == shape[:axis + 1]:
        return axis
    behind = len(was) - axis
    return len(shape) - behind if behind <= len(shape) and was[axis:] == shape[-behind:] else None


def places_begin(node: Any, tokens: int, places: int) -> int | None:
    """Where those of places begin among tokens, if this node joins them with tokens of no place."""
    shape = shape_of(node)
    axis = _signed(node._saved_dim) % len(shape) if node.name().startswith("CatBackward") else 0
    if not node.name().startswith("CatBackward") or shape[axis] != tokens:
        return None
    sizes = [next(iter(shape_of(piece, slot)[axis:]), None) for piece, slot in node.next_functions]  # None: of a constant
    if sizes.count(places) != 1:
        return None
    before, behind = sizes[:sizes.index(places)], sizes[sizes.index(places) + 1:]
    if None in before:
        return None if None in behind else tokens - places - sum(size or 0 for size in behind)
    return sum(size or 0 for size in before)


def shape_of(node: Any, index: int = 0) -> tuple[int, ...]:
    """Of a node's result."""
    found = node._input_metadata if node is not None else ()
    return tuple(int(n) for n in found[index].shape) if index < len(found) else ()


def _signed(dim: int) -> int:
    """The graph keeps -1 as the largest number of 64 bits."""
    return dim - 2 ** 64 if dim >= 2 ** 63 else dim
