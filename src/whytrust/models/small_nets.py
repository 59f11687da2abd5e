"""Small nets of three kinds, untrained or trained on small grey images; torch is imported here, when one is made."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from whytrust.backends.torch_modes import threads
from whytrust.core import Floats, need
from whytrust.models.nets import learn

torch = need("torch", "torch")
nn = torch.nn

Kind = Literal["shallow", "deep", "slim"]
KINDS: tuple[Kind, ...] = ("shallow", "deep", "slim")
"""Few wide convolutions, many narrow ones, and convolutions of single channels: AlexNet, VGG and MnasNet made small."""


def untrained(kind: Kind, classes: int = 10, seed: int = 0) -> Any:
    """A net with weights drawn after He et al. (2015), and nothing learnt; torch's global state stays as it was."""
    with torch.random.fork_rng(devices=[]), threads(1):
        torch.manual_seed(seed)
        net = nn.Sequential(*_layers(kind), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.LazyLinear(classes))
        net(torch.zeros(1, 1, 28, 28))
        for layer in net.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)
    return net.eval()


def trained(kind: Kind, images: Floats, labels: NDArray[Any], epochs: int = 4, seed: int = 0) -> Any:
    """The same net after its training on (n, H, W) images; the same weights every time."""
    net = untrained(kind, int(np.max(labels)) + 1, seed).train()
    with torch.random.fork_rng(devices=[]), threads(1):
        torch.manual_seed(seed + 1)
        learn(net, np.asarray(images, dtype=np.float32)[:, None], labels, epochs, 1e-3)
    return net.eval()


def _layers(kind: Kind) -> list[Any]:
    if kind == "shallow":
        return [nn.Conv2d(1, 24, 7, stride=2, padding=3), nn.ReLU(), nn.Conv2d(24, 48, 5, padding=2), nn.ReLU(),
                nn.MaxPool2d(2)]
    if kind == "deep":
        layers: list[Any] = []
        for inner, outer in ((1, 16), (16, 32), (32, 48)):
            layers += [nn.Conv2d(inner, outer, 3, padding=1), nn.ReLU(), nn.Conv2d(outer, outer, 3, padding=1), nn.ReLU(),
                       nn.MaxPool2d(2)]
        return layers
    if kind == "slim":
        layers = [nn.Conv2d(1, 16, 3, stride=2, padding=1), nn.ReLU()]
        for inner, outer, stride in ((16, 24, 1), (24, 32, 2), (32, 48, 1)):
            layers += [nn.Conv2d(inner, 2 * inner, 1), nn.ReLU(),
                       nn.Conv2d(2 * inner, 2 * inner, 3, stride=stride, padding=1, groups=2 * inner), nn.ReLU(),
                       nn.Conv2d(2 * inner, outer, 1)]
        return [*layers, nn.ReLU()]
    raise ValueError(f"a small net must be one of {', '.join(KINDS)}, got {kind!r}")
