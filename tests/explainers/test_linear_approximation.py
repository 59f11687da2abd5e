"""Gradient times value at a layer: captum as an oracle, and nets whose rest is linear, where nothing is missing."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
captum = pytest.importorskip("captum.attr")

import whytrust as wt  # noqa: E402
from whytrust.core import generator  # noqa: E402
from whytrust.domains.image import ImageParts  # noqa: E402
from whytrust.explainers import NAMES  # noqa: E402
from whytrust.explainers.grad_cam import LinearApproximation  # noqa: E402
from whytrust.question import Question  # noqa: E402

torch.manual_seed(0)
NET = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(4, 3, 3, padding=1),
                          torch.nn.Flatten(), torch.nn.Linear(3 * 36, 2)).eval()
BENT = torch.nn.Sequential(*NET[:3], torch.nn.Tanh(), *NET[3:]).eval()
IMAGE = np.random.default_rng(1).normal(size=(1, 6, 6)).astype(np.float32)


def scores(net, layer=None, cut="pixels"):
    question = Question(wt.model(net, layout="NCHW"), ImageParts.cut(IMAGE, cut, fill=0.0, layout="NCHW"), 1)
    return NAMES["linear_approximation"].make(**({} if layer is None else {"layer": layer}))(question, generator(0))


@pytest.mark.parametrize("net", [NET, BENT], ids=["linear", "bent"])
@pytest.mark.parametrize("layer", ["0", "2"])
def test_it_is_captums_gradient_times_activation(net, layer):
    oracle = captum.LayerGradientXActivation(net, dict(net.named_modules())[layer])
    expected = oracle.attribute(torch.from_numpy(IMAGE[None]), target=1).detach().numpy()[0].sum(axis=0)
    np.testing.assert_allclose(scores(net, layer).scores.reshape(6, 6), expected, atol=1e-5)


def test_where_the_rest_is_linear_the_scores_add_up():
    found = scores(NET)
    with torch.no_grad():
        bias = float(NET[-1].bias[1])
        whole = float(NET(torch.from_numpy(IMAGE[None]))[0, 1])
    assert found.scores.sum() == pytest.approx(whole - bias, abs=1e-4)
    assert (found.scores < 0).any()
    assert found.sense == "signed"


def test_it_is_in_the_catalogue_as_a_contribution():
    assert LinearApproximation().name == "linear_approximation"
    assert NAMES["linear_approximation"].goal == "contribution"
