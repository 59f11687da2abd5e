"""torchvision's own models by name, with the weights, preprocessing and class names that belong together."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, ClassVar

from whytrust.core import Batch, MissingExtra


@dataclass(frozen=True)
class Preset:
    """Images as tensors (n, H, W, channels) -> the batch a net was trained on: resized, cropped, normalised by its weights.

    It gets tensors as a torch module does: bytes as bytes, which the weights' transforms scale to 0–1, and floats from 0 to 1.
    """

    transforms: Any
    takes_tensors: ClassVar[bool] = True

    def __call__(self, batch: Batch) -> Any:
        """A tensor with channels first; grey images get three equal channels, as ImageNet's nets expect."""
        images = batch[..., None] if batch.ndim == 3 else batch
        return self.transforms(images[..., :3].movedim(-1, 1).expand(-1, 3, -1, -1))


def load(name: str, device: str | None = None) -> tuple[Any, dict[str, Any]]:
    """(net, options for wt.model) of `torchvision:NAME`, with its best published weights, or of `torchvision:NAME@WEIGHTS`."""
    models = _models()
    weights, name = published(name), name.partition("@")[0]
    try:
        net = models.get_model(name, weights=weights)
    except OSError as error:  # URLError is one
        raise ValueError(f"the weights of torchvision:{name} are neither cached nor could they be downloaded ({error}); "
                         "run this once with a network, or pass a file.py:attribute that loads your own") from error
    categories = [str(c) for c in weights.meta.get("categories", ())]
    classes = [f"{c} ({i})" if categories.count(c) > 1 else c for i, c in enumerate(categories)] or None
    net = net.eval() if device is None else net.eval().to(device)
    return net, {"preprocess": Preset(weights.transforms()), "output": "logit", "classes": classes, "name": name}


def published(name: str) -> Any:
    """The weights that NAME or NAME@WEIGHTS means: torchvision's default, or those of that name, such as IMAGENET1K_V1."""
    net, _, which = name.partition("@")
    try:
        known = _models().get_model_weights(net)
    except ValueError as error:
        raise ValueError(f"torchvision has no classifier named {net!r} ({error}); "
                         "see torchvision.models.list_models()") from error
    found = known.__members__.get(which or "DEFAULT")
    if found is None:
        raise ValueError(f"the weights of torchvision:{net} must be one of {', '.join(known.__members__)}, got "
                         f"{which!r}; leave @{which} out for its default")
    return found


def _models() -> Any:
    try:
        return importlib.import_module("torchvision.models")
    except (ImportError, RuntimeError, AttributeError) as error:  # a build for another torch fails with RuntimeError
        raise MissingExtra(f"torchvision:NAME needs a torchvision that matches torch, and it could not be imported ({error}); "
                           "install the pair as https://pytorch.org says, or pass a file.py:attribute") from error
