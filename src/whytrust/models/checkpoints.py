"""The state of a training that was interrupted: weights, Adam's moments, and what they belong to, as one safetensors file."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whytrust import files
from whytrust.core import need

torch = need("torch", "torch")
FORMAT = "whytrust training 1"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


def keep(path: Path, net: Any, optimiser: Any, done: int, about: Mapping[str, Any],
         drawing: Any = None) -> None:
    """Written beside its place and moved there, so that there is never half of one.

    `drawing` is the state of torch's random numbers, for a training that draws on from one update to the next.
    """
    tensors = {} if drawing is None else {"drawing": drawing}
    tensors |= {f"net.{name}": value.contiguous() for name, value in net.state_dict().items()}
    for number, weight in enumerate(net.parameters()):
        for name in _MOMENTS:
            if weight in optimiser.state:
                tensors[f"adam.{number}.{name}"] = optimiser.state[weight][name].contiguous()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    try:
        metadata = {"format": FORMAT, "done": str(done), "about": json.dumps(dict(about))}
        need("safetensors.torch", "torch").save_file(tensors, beside, metadata=metadata)
        os.replace(beside, path)
    finally:
        Path(beside).unlink(missing_ok=True)


def resumed(path: Path, net: Any, optimiser: Any, about: Mapping[str, Any]) -> int:
    """How many updates were done: 0 where nothing was kept; net and optimiser are then as they were.

    What was kept of another schedule, other data or another torch cannot be gone on from: one error says which.
    """
    if not path.is_file():
        return 0
    library = need("safetensors", "torch")
    what = "the checkpoint of a training", "delete it to begin again"
    with files.telling(path, *what), library.safe_open(os.fspath(path), framework="pt") as file:
        told = file.metadata() or {}
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118, it is no mapping
    if told.get("format") != FORMAT:
        raise ValueError(f"{path} must be the checkpoint of a training ({FORMAT}), got {told.get('format')!r}; delete it to "
                         "begin again")
    with files.telling(path, *what):
        kept, done = json.loads(told["about"]), int(told["done"])
        kept = {**kept, "schedule": dict(kept["schedule"])}
    _check_same(path, kept, about)
    with files.telling(path, *what):
        net.load_state_dict({name[4:]: value for name, value in tensors.items() if name.startswith("net.")})
        for number, weight in enumerate(net.parameters()):
            moments = {name: tensors[f"adam.{number}.{name}"] for name in _MOMENTS if f"adam.{number}.{name}" in tensors}
            if moments:
                # Laid out in memory as the weights are, as Adam itself would: otherwise sums might round differently.
                optimiser.state[weight] = {name: torch.zeros_like(weight, memory_format=torch.preserve_format).copy_(value)
                                           if value.ndim else value for name, value in moments.items()}
        if "drawing" in tensors:
            torch.set_rng_state(tensors["drawing"])
    return done


def readable(path: Path) -> None:
    """Delete what cannot be read, with a warning: the training then begins again."""
    try:
        if path.is_file():
            with need("safetensors", "torch").safe_open(os.fspath(path), framework="pt") as file:
                file.metadata()
    except Exception as error:  # half of a file, or none of ours
        warnings.warn(f"{path} could not be read: the training begins again ({type(error).__name__})", stacklevel=3)
        path.unlink(missing_ok=True)


def _check_same(path: Path, kept: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    flat_kept, flat_now = _flat(kept), _flat(json.loads(json.dumps(dict(now))))
    other = [f"{name} was {flat_kept.get(name)!r} and is {flat_now.get(name)!r}"
             for name in sorted(flat_kept | flat_now) if flat_kept.get(name) != flat_now.get(name)]
    if other:
        raise ValueError(f"an interrupted training goes on only with the schedule, songs and torch it was begun with; in "
                         f"{path} {'; '.join(other)}; ask for the same again, or delete the file to begin anew")


def _flat(about: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule's own entries beside the others, and a digest short enough to read."""
    flat = {**{name: value for name, value in about.items() if name != "schedule"}, **about["schedule"]}
    return {name: value[:12] if name == "data" else value for name, value in flat.items()}
