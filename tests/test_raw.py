"""A model's own outputs: labels, margins and losses that agree with the model, and never saturate."""

import numpy as np
import pytest
import torch
from torch import nn

import whytrust as wt

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)).astype(np.float32)


class Outputs(nn.Module):
    def __init__(self, columns, squash=None):
        super().__init__()
        torch.manual_seed(1)
        self.linear, self.squash = nn.Linear(4, columns), squash

    def forward(self, x):
        z = self.linear(x)
        return z if self.squash is None else self.squash(z)


MODELS = {
    "logits": wt.model(Outputs(3), output="logit"), "raw scores": wt.model(Outputs(3)),
    "two logits, threshold": wt.model(Outputs(2), output="logit", threshold=0.3),
    "one logit": wt.model(Outputs(1), output="logit"), "one logit, threshold": wt.model(Outputs(1), output="logit", threshold=0.7),
    "one probability": wt.model(Outputs(1, torch.sigmoid), threshold=0.6),
    "probabilities": wt.model(Outputs(3, lambda z: z.softmax(1)), output="probability"),
    "two sigmoids, threshold": wt.model(Outputs(2, torch.sigmoid), threshold=0.5),
}


@pytest.mark.parametrize("name", MODELS)
def test_raw_outputs_decide_for_the_models_own_labels(name):
    model = MODELS[name]
    scores, raw = model(X), model.raw(X)
    labels = model.labels(scores)
    np.testing.assert_array_equal(model.raw.labels(raw), labels)
    np.testing.assert_allclose(model.squashed(raw), scores, rtol=1e-6)
    assert (model.raw.margins(raw, labels) >= 0).all()
    for other in range(scores.shape[1]):
        ahead = model.raw.margins(raw, np.full(len(X), other)) > 0
        np.testing.assert_array_equal(ahead, labels == other)


@pytest.mark.parametrize("name", MODELS)
def test_the_surprise_is_minus_the_log_of_the_probability_and_its_derivative_is_right(name):
    model = MODELS[name].raw
    raw = model(X)
    columns = MODELS[name](X).shape[1]
    targets = RNG.integers(0, columns, len(X))
    loss, weights = model.surprise(raw, targets)
    p = MODELS[name](X)
    if name == "raw scores":
        p = np.exp(p) / np.exp(p).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(loss, -np.log(p[np.arange(len(X)), targets]), rtol=1e-6)
    for column in range(raw.shape[1]):
        up, down = raw.copy(), raw.copy()
        up[:, column] += 1e-6
        down[:, column] -= 1e-6
        slope = (model.surprise(up, targets)[0] - model.surprise(down, targets)[0]) / 2e-6
        np.testing.assert_allclose(weights[:, column], slope, rtol=1e-4, atol=1e-8)


def test_a_very_sure_net_can_still_be_attacked():
    for columns, bias in ((1, [0.0]), (2, [0.0, 0.0])):
        net = nn.Linear(4, columns)
        with torch.no_grad():
            net.weight[:] = torch.tensor([[30.0] * 4] if columns == 1 else [[0.0] * 4, [30.0] * 4])
            net.bias[:] = torch.tensor(bias)
        found = wt.attack(wt.model(net, output="logit"), np.full((1, 4), 10.0, np.float32), epsilon=20, step=5, units="input",
                          bounds=None)
        assert found.success.all()


def test_a_net_that_squeezes_its_outputs_has_gradients():
    class Squeezed(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(192, 3)

        def forward(self, x):
            return self.linear(x.flatten(1)).squeeze()

    net = Squeezed()
    image = RNG.random((3, 8, 8)).astype("f")
    found = wt.explain(wt.model(net), image, "saliency", target=2, parts="grid:1x1", pooling="mean")
    assert found.scores[0] == pytest.approx(float(net.linear.weight[2].mean()), rel=1e-5)
