"""Models whose adversaries are known, and one small net."""

import itertools
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import nn

from whytrust.checked import DifferentiableModel


@dataclass(frozen=True)
class Linear:
    """Scores W·x + b, computed row by row so that neither order nor batch size changes a bit."""

    weights: np.ndarray  # (classes, numbers)
    constants: np.ndarray

    def __call__(self, batch):
        return np.stack([self.weights @ x.ravel().astype(np.float64) + self.constants for x in batch])

    def pullback(self, batch, preprocess):
        return self(batch), lambda pulled: np.stack([(p @ self.weights).reshape(batch.shape[1:]) for p in pulled])


def linear(weights, constants=None, **options):
    weights = np.asarray(weights, dtype=np.float64)
    constants = np.zeros(len(weights)) if constants is None else np.asarray(constants, dtype=np.float64)
    return DifferentiableModel(Linear(weights, constants), **{"output": "logit", "name": "linear", **options})


def random_linear(outputs, size, seed=0, **options):
    return linear(np.random.default_rng(seed).normal(size=(outputs, size)), **options)


@dataclass(frozen=True)
class Tangle:
    """A smooth net of two layers, computed row by row."""

    first: np.ndarray
    second: np.ndarray

    def __call__(self, batch):
        return np.stack([self.second @ np.tanh(self.first @ x.ravel().astype(np.float64)) for x in batch])

    def pullback(self, batch, preprocess):
        def back(x, p):
            hidden = np.tanh(self.first @ x.ravel().astype(np.float64))
            return (((p @ self.second) * (1 - hidden**2)) @ self.first).reshape(x.shape)

        return self(batch), lambda pulled: np.stack([back(x, p) for x, p in zip(batch, pulled, strict=True)])


def tangle(outputs, size, seed=0, **options):
    random = np.random.default_rng(seed)
    net = Tangle(random.normal(size=(12, size)) / np.sqrt(size), random.normal(size=(outputs, 12)))
    return DifferentiableModel(net, **{"output": "logit", "name": "tangle", **options})


@dataclass(frozen=True)
class Fickle:
    """Gradients of a model, and answers that are another's from the second plain call on."""

    honest: Linear
    calls: itertools.count = field(default_factory=itertools.count)

    def __call__(self, batch):
        scores = self.honest(batch)
        return scores if next(self.calls) == 0 else np.tile([[1.0, 0.0]], (len(batch), 1))

    def pullback(self, batch, preprocess):
        return self.honest.pullback(batch, preprocess)


@dataclass(frozen=True)
class Poisoned:
    """A linear model whose gradient is NaN for a batch that holds an input which begins with `poison`."""

    honest: Linear
    poison: float

    def __call__(self, batch):
        return self.honest(batch)

    def pullback(self, batch, preprocess):
        scores, pull = self.honest.pullback(batch, preprocess)
        bad = any(abs(x.ravel()[0] - self.poison) < 0.5 for x in batch)
        return scores, lambda weights: pull(weights) * (np.nan if bad else 1.0)


def small_net(classes=4, dtype=torch.float64, seed=0):
    """A convolution and a linear layer on (1, 6, 6), with tanh: gradients are never exactly zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Conv2d(1, 6, 3), nn.Tanh(), nn.Flatten(), nn.Linear(96, classes))
        for parameter in net.parameters():
            nn.init.normal_(parameter, std=0.4)
    return net.to(dtype).eval()
