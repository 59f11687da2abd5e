"""Small nets in float64 with everything that trips peers up: convolutions, residuals, batch norm, pooling."""

import numpy as np
import torch
from torch import nn


class Residual(nn.Module):
    """Two convolutions with batch norm, a residual sum, max and average pooling, a linear layer."""

    def __init__(self, channels=3, classes=4, smooth=False):
        super().__init__()
        self.first, self.norm1 = nn.Conv2d(channels, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.second, self.norm2 = nn.Conv2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.act1, self.act2, self.act3 = (nn.Softplus() if smooth else nn.ReLU() for _ in range(3))
        self.pool, self.mean, self.out = nn.MaxPool2d(2) if not smooth else nn.AvgPool2d(2), nn.AvgPool2d(2), nn.Linear(24, classes)

    def forward(self, x):
        x = self.pool(self.act1(self.norm1(self.first(x))))
        x = self.act3(x + self.act2(self.norm2(self.second(x))))
        return self.out(self.mean(x).flatten(1))


def residual(seed=0, **options):
    """For images of 8 × 8 pixels, with running statistics that are not 0 and 1."""
    torch.manual_seed(seed)
    net = Residual(**options).double()
    for norm in (net.norm1, net.norm2):
        nn.init.uniform_(norm.running_mean, -0.5, 0.5)
        nn.init.uniform_(norm.running_var, 0.5, 2)
        nn.init.uniform_(norm.weight, -1, 1)
        nn.init.uniform_(norm.bias, -0.5, 0.5)
    return net.eval()


def linear(weights):
    """One linear layer without an intercept, for inputs of any shape."""
    layer = nn.Linear(weights[0].size, len(weights), bias=False).double()
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(np.stack([w.ravel() for w in weights])))
    return nn.Sequential(nn.Flatten(), layer)
