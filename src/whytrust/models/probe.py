"""A logistic regression on what a layer of a net finds anywhere in a picture.

Through an early layer such a model sees colours and edges and no animals, so that twenty pictures are enough to teach it
something wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.backends.torch_modes import threads
from whytrust.core import Floats, need
from whytrust.models.nets import efficientnet_lite

torch = need("torch", "torch")
nn = torch.nn
EARLY, ALL = 4, 16
"""Blocks of EfficientNet-Lite0: about where Inception has its first poolings, and the last one."""
BATCH = 8


class Probe(nn.Module):  # type: ignore[misc, name-defined]
    """The largest value of each feature map of a net's first layers, and two logits from those."""

    def __init__(self, layers: Any, weights: Floats, bias: float) -> None:
        """A logistic regression's weights of the features, for the second class."""
        super().__init__()
        self.layers, self.head = layers, nn.Linear(len(weights), 2)
        half = torch.tensor(np.asarray(weights) / 2, dtype=torch.float32)
        self.head.weight = nn.Parameter(torch.stack([-half, half]))
        self.head.bias = nn.Parameter(torch.tensor([-bias / 2, bias / 2], dtype=torch.float32))

    def forward(self, images: Any) -> Any:
        """(n, 3, H, W) -> (n, 2) logits."""
        return self.head(pooled(self.layers, images))


def pooled(layers: Any, images: Any) -> Any:
    """The largest value of each feature map, wherever it is."""
    return layers(images).amax(dim=(2, 3))


def layers(blocks: int) -> Any:
    """The first layers of EfficientNet-Lite0 with its ImageNet weights."""
    net = efficientnet_lite(0)
    return nn.Sequential(net._conv_stem, net._bn0, net._swish, *net._blocks[:blocks]).eval()


def fit(layers: Any, images: NDArray[Any], labels: Any, prepared: Callable[[Any], Any]) -> Probe:
    """A logistic regression on standardised features of the images, as one net; the same weights every time."""
    from sklearn.linear_model import LogisticRegression

    with threads(1), torch.no_grad():
        features = np.concatenate([pooled(layers, torch.as_tensor(prepared(images[i:i + BATCH]))).numpy()
                                   for i in range(0, len(images), BATCH)]).astype(np.float64)
    mean, spread = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-6)
    found = LogisticRegression(max_iter=2000).fit((features - mean) / spread, labels)
    weights = found.coef_[0] / spread
    made = Probe(layers, weights, float(found.intercept_[0] - weights @ mean))
    made.eval()
    return made
