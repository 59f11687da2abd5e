"""ImageNet classifiers by name, each with the size and the normalisation it was trained with."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import api, loading
from whytrust.backends import torchvision
from whytrust.checked import DifferentiableModel
from whytrust.core import Floats, MissingExtra, near
from whytrust.studies.data import square

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's, of pixels between 0 and 1: what most nets were trained with."""


@dataclass(frozen=True)
class Architecture:
    """A net that takes normalised images, and how a photograph becomes one."""

    name: str
    load: Callable[[], Any]
    size: int = 224
    resize: int = 256
    mean: tuple[float, ...] = MEAN
    std: tuple[float, ...] = STD

    def model(self) -> DifferentiableModel:
        """The net as a model of normalised (3, size, size) arrays."""
        made = api.model(self.load(), output="logit", layout="NCHW", name=self.name, fast=True)
        if not isinstance(made, DifferentiableModel):
            raise TypeError(f"{self.name} must be a torch net, for the attack and most explainers follow its gradients")
        return made

    def normalised(self, photograph: Any) -> Floats:
        """The middle of a photograph as the net takes it."""
        pixels = square(photograph, self.size, self.resize) / 255.0
        return np.ascontiguousarray(((pixels - self.mean) / self.std).transpose(2, 0, 1), dtype=np.float32)

    def shown(self, normalised: Floats) -> NDArray[np.uint8]:
        """The other way round, to look at."""
        pixels = normalised.transpose(1, 2, 0) * np.array(self.std) + np.array(self.mean)
        return np.asarray(np.rint(np.clip(pixels, 0, 1) * 255), dtype=np.uint8)


def _lite(number: int) -> Architecture:
    size = (224, 240, 260)[number]
    load = partial(_efficientnet, number)
    return Architecture(f"efficientnet-lite{number}", load, size, round(size * 256 / 224), (127 / 255,) * 3, (128 / 255,) * 3)


def _efficientnet(number: int) -> Any:
    nets = importlib.import_module("whytrust.models.nets")  # which imports torch
    return nets.efficientnet_lite(number)


KNOWN = {f"efficientnet-lite{n}": _lite(n) for n in (0, 1, 2)}
PAPER = ("alexnet", "vgg16", "resnet50", "densenet161", "inception_v3")


WEIGHTS = "IMAGENET1K_V1"
"""torchvision's weights of the paper's nets; its default ones are newer and better, 80.9 % instead of 76.1 % for ResNet-50."""
SIZES = {"inception_v3": (299, 342)}
"""What nets were trained on, and what the photograph is resized to, where that is not 224 and 256."""


def full_name(name: str) -> str:
    """torchvision:NAME with the weights that it means here, torchvision:NAME@WEIGHTS; other names as they are."""
    return f"{name}@{WEIGHTS}" if name.startswith("torchvision:") and "@" not in name else name


def _of_torchvision(name: str) -> Architecture:
    """With the size and the normalisation of the weights' own transforms; where torchvision is not installed, so that nothing
    but reports can be made, with those of the paper's nets."""
    net = name.partition("@")[0]
    load = partial(_from_torchvision, name)
    size, resize = SIZES.get(net, (224, 256))
    try:
        own = torchvision.published(name).transforms()
    except MissingExtra:
        return Architecture(net, load, size, resize)
    return Architecture(net, load, own.crop_size[0], own.resize_size[0], tuple(own.mean), tuple(own.std))


def _from_torchvision(name: str) -> Any:
    return torchvision.load(name)[0]


def architecture(name: str) -> Architecture:
    """By a known name, torchvision:NAME or torchvision:NAME@WEIGHTS, or file.py:attribute of a net that takes ImageNet's usual
    normalisation."""
    if name in KNOWN:
        return KNOWN[name]
    kind, _, rest = name.partition(":")
    if kind == "torchvision":
        return _of_torchvision(full_name(name).partition(":")[2])
    if not rest:
        raise ValueError(f"models must be among {', '.join(KNOWN)}, torchvision:NAME[@WEIGHTS] or file.py:attribute, got "
                         f"{name!r}{near(name, KNOWN)}")
    return Architecture(name, lambda: loading.attribute(name))
