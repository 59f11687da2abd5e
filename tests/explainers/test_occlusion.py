"""Occlusion against captum's."""

import numpy as np
import pytest

import whytrust as wt

torch = pytest.importorskip("torch")
attr = pytest.importorskip("captum.attr")


class Small(torch.nn.Module):
    """Two convolutions and a softmax over three classes."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(5)
        self.first, self.second = torch.nn.Conv2d(3, 6, 3, padding=1), torch.nn.Conv2d(6, 8, 3, stride=2)
        self.last = torch.nn.Linear(8, 3)

    def forward(self, batch):
        hidden = torch.tanh(self.second(torch.relu(self.first(batch))))
        return torch.softmax(3 * self.last(hidden.mean(dim=(2, 3))), dim=1)


@pytest.fixture
def net():
    return Small().eval()


@pytest.fixture
def image(rng):
    return rng.random((3, 12, 8)).astype(np.float32)


@pytest.mark.parametrize("target", [0, 2])
def test_it_is_captums_occlusion_where_the_window_is_a_cell(net, image, target):
    found = wt.explain(wt.model(net), image, "occlusion", target=target, parts="grid:3x2", fill=0.0)
    theirs = attr.Occlusion(net).attribute(torch.tensor(image)[None], sliding_window_shapes=(3, 4, 4), strides=(3, 4, 4),
                                           baselines=0, target=target).detach().numpy()[0, 0]
    np.testing.assert_allclose(found.scores, theirs[::4, ::4].ravel(), atol=1e-5)
    np.testing.assert_allclose(found.as_map(), theirs, atol=1e-5)
    assert np.abs(found.scores).max() > 1e-3  # there is something to compare


@pytest.mark.parametrize("target", [0, 2])
def test_it_is_captums_feature_ablation_whatever_the_shape_of_the_parts(net, image, target, rng):
    labels = rng.integers(0, 5, (12, 8))
    found = wt.explain(wt.model(net), image, "occlusion", target=target, parts=labels, fill=0.0)
    theirs = attr.FeatureAblation(net).attribute(torch.tensor(image)[None], baselines=0, target=target,
                                                 feature_mask=torch.tensor(labels)[None, None]).detach().numpy()[0, 0]
    np.testing.assert_allclose(found.as_map(), theirs, atol=1e-5)
    assert np.abs(found.scores).max() > 1e-3


def test_what_it_says_of_a_part_is_the_fall_of_the_score_without_it(net, image):
    found = wt.explain(wt.model(net), image, "occlusion", target=1, parts="grid:3x2", fill=0.0)
    hidden = image.copy()
    hidden[:, 4:8, 4:] = 0
    with torch.no_grad():
        scores = net(torch.tensor(np.stack([image, hidden])))[:, 1].numpy()
    assert found.scores[3] == pytest.approx(float(scores[0] - scores[1]), abs=1e-6)
    assert found.calls == 7
