"""Enhancement makes a net that has learnt nothing right."""

import numpy as np
import pytest
import torch
from fooled import random_linear
from sklearn.datasets import load_digits
from torch import nn

import whytrust as wt
from whytrust.attacks import Enhance


def untrained():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                            nn.MaxPool2d(2), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 49, 10))
        for parameter in net.parameters():
            nn.init.kaiming_normal_(parameter) if parameter.ndim > 1 else nn.init.zeros_(parameter)
    return net


def test_an_untrained_net_classifies_enhanced_digits():
    digits = load_digits()
    small = torch.from_numpy(digits.images[:300] / 16).float()[:, None]
    images, truth = nn.functional.interpolate(small, size=28, mode="bilinear").numpy(), digits.target[:300]
    net = untrained()
    found = Enhance()(wt.model(net, output="logit"), images, truth)
    with torch.no_grad():
        before, after = ((net(torch.from_numpy(x)).argmax(1).numpy() == truth).mean() for x in (images, found.adversarial))
    assert before < 0.4
    assert after >= 0.95
    assert found.success_rate == after
    assert (found.iterations == 30).all()
    assert np.abs(found.adversarial.astype(np.float64) - images).max() <= 0.3


def test_an_input_that_is_right_already_is_enhanced_too():
    model, x = random_linear(3, 16), np.random.default_rng(0).uniform(size=(2, 4, 4))
    right = model(x).argmax(axis=1)
    found = Enhance()(model, x, right)
    assert found.success.all()
    assert (found.scores[[0, 1], right] > found.clean_scores[[0, 1], right]).all()


def test_it_needs_the_truth():
    with pytest.raises(ValueError, match="pass them as targets"):
        Enhance()(random_linear(3, 16), np.zeros((1, 4, 4)))
