"""The nets of the demonstrations, by name: small ones on digits, and EfficientNet-Lite on photographs; trained, and not."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import api
from whytrust.checked import DifferentiableModel
from whytrust.core import Floats, need
from whytrust.engine import single_threaded
from whytrust.studies import pitfalls_linear
from whytrust.studies.architectures import KNOWN, Architecture
from whytrust.studies.data import Data, Item
from whytrust.studies.described import scores_told
from whytrust.studies.pitfalls_linear import Digits
from whytrust.studies.plausible import imagenet_folder

SMALL = ("shallow", "deep", "slim")
SIDE = 28
ASKED = 4
"""Images whose scores stand for a net in a run's manifest."""
LEARNT = 6000
"""Training images of a small net, at most."""


@dataclass(frozen=True)
class Pictures:
    """Inputs as nets take them, each with its true class: digits, or photographs of ImageNet's classes."""

    data: str | None = None
    scale: float = 1.0

    @property
    def digits(self) -> bool:
        """Are they digits?"""
        return self.data is None or (Path(self.data) / "mnist.npz").is_file() or Path(self.data).suffix == ".npz"

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """All of them, in a fixed order."""
        if not self.digits:
            found: Data = imagenet_folder(str(self.data), self.scale)
            return tuple(item for item in found.items if item.truth is not None)
        read = large(pitfalls_linear.read(self.data))
        kept = max(round(self.scale * len(read.test)), 1)
        return tuple(Item(f"{i:05d}", image[None].astype(np.float32), f"digit {label}", truth=int(label))
                     for i, (image, label) in enumerate(zip(read.test[:kept], read.test_labels[:kept], strict=True)))

    @property
    def what(self) -> str:
        """In words."""
        if self.digits:
            return f"{len(self.items)} images of {pitfalls_linear.read(self.data).name}"
        return f"{len(self.items)} photographs"

    def hashes(self, *nets: Net) -> dict[str, str]:
        """What the inputs are, and what each net says of the first of them: nets are trained here, or come with whytrust."""
        each = "".join(f"{item.name}{item.truth}{item.digest()}" for item in self.items)
        found = {"inputs": hashlib.blake2b(each.encode(), digest_size=8).hexdigest()}
        for net in nets:
            with single_threaded():
                found[f"what {net.shown} says of some images"] = scores_told(net.model(), islice(self._readable(net), ASKED))
        return found

    def _readable(self, net: Net) -> Iterator[Floats]:
        """Batches of one; what cannot be read is recorded as failed when its turn comes."""
        for item in self.items:
            with suppress(ValueError, OSError):
                yield self.taken(net, item)[None]

    def taken(self, net: Net, item: Item) -> Floats:
        """One input as a net takes it."""
        if self.digits:
            return np.asarray(item.value)
        assert net.architecture is not None
        return net.architecture.normalised(item.value)


@dataclass(frozen=True)
class Net:
    """A net by name, trained or as it was before its training."""

    name: str
    trained: bool = True
    data: str | None = None

    @property
    def architecture(self) -> Architecture | None:
        """How photographs become inputs; None for nets of digits."""
        return KNOWN.get(self.name)

    @property
    def shown(self) -> str:
        """Its name in tables."""
        return f"{self.name}, {'trained' if self.trained else 'untrained'}"

    def model(self) -> DifferentiableModel:
        """The net as a model, made once."""
        return _model(self)


def nets(digits: bool) -> tuple[str, ...]:
    """Which nets there are for such inputs."""
    return SMALL if digits else ("efficientnet-lite0",)


def large(digits: Digits) -> Digits:
    """The same digits with values from 0 to 1, and 28 pixels wide."""
    def enlarged(images: Floats) -> Floats:
        if images.shape[1] < SIDE:
            zoom = need("scipy.ndimage", "image").zoom
            images = np.stack([zoom(one, SIDE / one.shape[0], order=1) for one in images])
        return np.asarray(np.clip(images / max(float(digits.train.max()), 1e-12), 0, 1))

    return Digits(digits.name, enlarged(digits.train[:LEARNT]), digits.train_labels[:LEARNT], enlarged(digits.test),
                  digits.test_labels)


@cache
def _model(net: Net) -> DifferentiableModel:
    if net.name in SMALL:
        module: Any = importlib.import_module("whytrust.models.small_nets")  # which imports torch
        if net.trained:
            read = large(pitfalls_linear.read(net.data))
            made = module.trained(net.name, read.train, read.train_labels)
        else:
            made = module.untrained(net.name)
    else:
        module = importlib.import_module("whytrust.models.nets")
        number = int(net.name[-1])
        made = module.efficientnet_lite(number) if net.trained else module.untrained_lite(number)
    found = api.model(made, output="logit", layout="NCHW", name=net.shown)
    assert isinstance(found, DifferentiableModel)
    return found
