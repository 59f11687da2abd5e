"""Gradient explainers: captum as an oracle, and closed forms."""

import contextlib
import importlib
import sys
from pathlib import Path

import captum.attr as captum
import numpy as np
import pytest
import torch
from torch import nn

import whytrust as wt
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.explainers import CATALOGUE, NAMES
from whytrust.explainers.grad_cam import GradCam
from whytrust.explainers.gradients import InputXGradient, IntegratedGradients, Saliency
from whytrust.explainers.smoothing import Smoothed
from whytrust.explainers.spots import Spot
from whytrust.question import Question

sys.path.insert(0, str(Path(__file__).parent))
nets = importlib.import_module("nets")

IMAGE = np.random.default_rng(0).normal(size=(3, 8, 8))
TENSOR = torch.from_numpy(IMAGE)[None]
NET = nets.residual()
MODEL = wt.model(NET)
TARGET = 2
GRADIENT = [e for e in CATALOGUE if e.gradients]


def spot(model=MODEL, image=IMAGE, target=TARGET, batch_size=None, parts="grid:2x2", explains="logit"):
    cut = ImageParts.cut(image, parts, layout=model.layout)
    return Spot.of(Question(model, cut, target, batch_size), "test", explains, generator(5))


def one(method, where=None):
    where = where or spot()
    return next(iter(method.maps(where, where.values[None])))


# --- captum ------------------------------------------------------------------------------------------------------------


def test_saliency_is_captums():
    expected = captum.Saliency(NET).attribute(TENSOR, target=TARGET, abs=False)[0].numpy()
    np.testing.assert_allclose(one(Saliency()), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one(Saliency(absolute=True)), np.abs(expected), rtol=1e-9, atol=1e-12)


def test_input_x_gradient_is_captums():
    expected = captum.InputXGradient(NET).attribute(TENSOR, target=TARGET)[0].detach().numpy()
    np.testing.assert_allclose(one(InputXGradient()), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("quadrature", "captums"), [("gauss_legendre", "gausslegendre"), ("riemann", "riemann_right")])
@pytest.mark.parametrize("baseline", [None, 0.3, "array"])
def test_integrated_gradients_are_captums(quadrature, captums, baseline):
    given = np.random.default_rng(1).normal(size=IMAGE.shape) if baseline == "array" else baseline
    theirs = 0 if given is None else torch.from_numpy(given)[None] if baseline == "array" else given
    expected = captum.IntegratedGradients(NET).attribute(TENSOR, baselines=theirs, target=TARGET, n_steps=20, method=captums)
    # captum averages the right sum over n + 1 points of which the first has no weight
    np.testing.assert_allclose(one(IntegratedGradients(20, given, quadrature)), expected[0].numpy(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("layer", ["first", "second", "norm2", "pool"])
def test_grad_cam_is_captums_at_any_layer(layer):
    theirs = captum.LayerGradCam(NET, getattr(NET, layer)).attribute(TENSOR, target=TARGET, relu_attributions=True)[0, 0]
    np.testing.assert_allclose(GradCam(layer).coarse(spot(), IMAGE), theirs.detach().numpy(), rtol=1e-9, atol=1e-12)


def test_grad_cam_finds_what_feeds_the_pooling_by_itself_and_enlarges_as_torch_does():
    theirs = captum.LayerGradCam(NET, NET.act3).attribute(TENSOR, target=0, relu_attributions=True)
    large = nn.functional.interpolate(theirs, IMAGE.shape[1:], mode="bilinear", align_corners=False)[0, 0]
    found = wt.explain(MODEL, IMAGE, "grad_cam", target=0, parts="grid:2x2")
    assert large.any()
    np.testing.assert_allclose(found.map, large.detach().numpy(), rtol=1e-5, atol=1e-12)
    assert found.settings["layer"] == "act3"  # second, the last convolution, is added to what goes around it


@pytest.mark.parametrize(("reduce", "captums"), [("mean", "smoothgrad"), ("square", "smoothgrad_sq"), ("variance", "vargrad")])
@pytest.mark.parametrize(("ours", "theirs", "more"), [
    (Saliency(), captum.Saliency, {"abs": False}), (IntegratedGradients(7), captum.IntegratedGradients, {"n_steps": 7})])
def test_smoothing_is_captums_noise_tunnel_with_the_same_noise(monkeypatch, reduce, captums, ours, theirs, more):
    here = spot()
    noise = 0.2 * generator(here.seed, "noise").standard_normal((25, *IMAGE.shape))
    monkeypatch.setattr(torch, "normal", lambda mean, std: torch.from_numpy(noise))
    expected = captum.NoiseTunnel(theirs(NET)).attribute(TENSOR, nt_type=captums, nt_samples=25, stdevs=0.2, target=TARGET, **more)
    np.testing.assert_allclose(one(Smoothed(ours, reduce, sigma=0.2), here), expected[0].detach().numpy(), rtol=1e-5, atol=1e-9)


# --- closed forms ------------------------------------------------------------------------------------------------------


WEIGHTS = np.random.default_rng(2).normal(size=(4, *IMAGE.shape))
LINEAR = wt.model(nets.linear(WEIGHTS))


def test_on_a_linear_model_saliency_is_the_weights_and_the_others_weights_times_input():
    where = spot(LINEAR)
    np.testing.assert_allclose(one(Saliency(), where), WEIGHTS[TARGET], rtol=1e-14)
    np.testing.assert_allclose(one(InputXGradient(), where), WEIGHTS[TARGET] * IMAGE, rtol=1e-14)
    np.testing.assert_allclose(one(IntegratedGradients(), where), WEIGHTS[TARGET] * IMAGE, rtol=1e-12, atol=1e-14)
    assert np.abs(one(Smoothed(Saliency(), "variance"), where)).max() < 1e-25


def test_integrated_gradients_are_complete_on_smooth_nets():
    model = wt.model(nets.residual(smooth=True))
    found = wt.explain(model, IMAGE, "integrated_gradients", target=TARGET, parts="grid:2x2")
    assert abs(found.settings["completeness_gap"]) < 1e-3
    scores = model(np.stack([IMAGE, np.zeros_like(IMAGE)]))[:, TARGET]
    assert found.scores.sum() == pytest.approx(scores[0] - scores[1], abs=1e-3)
    assert not found.notes


def test_on_relu_nets_the_gap_is_reported_and_shrinks_with_steps():
    gaps = [np.mean([abs(wt.explain(wt.model(nets.residual(seed)), IMAGE, "integrated_gradients", target=TARGET, steps=steps,
                                    parts="grid:2x2").settings["completeness_gap"]) for seed in range(6)])
            for steps in (2, 10, 300)]
    assert gaps[0] > 3 * gaps[1] > 9 * gaps[2]
    few = wt.explain(MODEL, IMAGE, "integrated_gradients", target=TARGET, steps=1, parts="grid:2x2")
    assert "not accounted for" in few.notes[0]


def test_the_logit_is_explained_unless_the_score_is_asked_for():
    squashed = wt.model(NET, output="logit")
    raw = captum.Saliency(NET).attribute(TENSOR, target=TARGET, abs=False)[0].numpy()
    of_probability = captum.Saliency(nn.Sequential(NET, nn.Softmax(1))).attribute(TENSOR, target=TARGET, abs=False)[0].numpy()
    np.testing.assert_allclose(one(Saliency(), spot(squashed)), raw, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one(Saliency(), spot(squashed, explains="score")), of_probability, rtol=1e-7, atol=1e-12)


def test_one_logit_speaks_for_the_second_class_and_against_the_first():
    model = wt.model(nets.linear(WEIGHTS[:1]), output="logit", threshold=0.4)
    np.testing.assert_allclose(one(Saliency(), spot(model, target=1)), WEIGHTS[0], rtol=1e-14)
    np.testing.assert_allclose(one(Saliency(), spot(model, target=0)), -WEIGHTS[0], rtol=1e-14)


@pytest.mark.parametrize("pooling", ["mean", "mean_abs", "mean_pos"])
def test_a_map_is_pooled_over_the_pixels_and_channels_of_a_part(pooling):
    found = wt.explain(MODEL, IMAGE, "saliency", target=TARGET, parts="grid:2x2", pooling=pooling)
    map = one(Saliency())
    change = {"mean": lambda m: m, "mean_abs": np.abs, "mean_pos": lambda m: np.maximum(m, 0)}[pooling]
    expected = [change(map[:, r:r + 4, c:c + 4]).mean() for r in (0, 4) for c in (0, 4)]
    np.testing.assert_allclose(found.scores, expected, rtol=1e-12)
    assert found.sense == {"mean": "signed", "mean_abs": "size", "mean_pos": "for"}[pooling]
    assert found.unsigned == (pooling != "mean")


@pytest.mark.parametrize(("spec", "expected"), [
    ("black", np.zeros_like(IMAGE)), ("mean", np.broadcast_to(IMAGE.mean((1, 2), keepdims=True), IMAGE.shape)),
    ((1.0, 2.0, 3.0), np.broadcast_to(np.array([1.0, 2, 3])[:, None, None], IMAGE.shape)), (0.5, np.full_like(IMAGE, 0.5))])
def test_baselines_are_what_they_are_called(spec, expected):
    np.testing.assert_array_equal(spot().baseline(spec), expected)


def test_a_blurred_baseline_keeps_the_mean_and_a_noisy_one_stays_in_the_range():
    where = spot()
    assert where.baseline("blurred").std() < IMAGE.std()
    np.testing.assert_allclose(where.baseline("blurred").mean((1, 2)), IMAGE.mean((1, 2)), atol=0.05)
    drawn = where.baseline("noise")
    assert IMAGE.min() <= drawn.min() < drawn.max() <= IMAGE.max()
    np.testing.assert_array_equal(drawn, where.baseline("noise"))


# --- one stream, few calls, the same bits ------------------------------------------------------------------------------


def test_the_three_smoothings_asked_together_cost_one():
    names = ["saliency/smoothgrad", "saliency/smoothgrad2", "saliency/vargrad"]
    together = wt.explain(MODEL, IMAGE, names, target=TARGET, parts="grid:2x2")
    alone = [wt.explain(MODEL, IMAGE, name, target=TARGET, parts="grid:2x2") for name in names]
    assert [e.calls for e in together] == [26, 0, 0]
    for a, b in zip(together, alone, strict=True):
        assert a.scores.tobytes() == b.scores.tobytes()
    mean, square, variance = (e.map for e in together)
    assert mean.shape == square.shape == variance.shape == (8, 8)


class RowByRow(nn.Module):
    """A net whose answer to a row cannot depend on the batch: it is asked one row at a time."""

    def __init__(self):
        super().__init__()
        self.net = nets.residual()

    def forward(self, x):
        return torch.cat([self.net(row[None]) for row in x])


@pytest.mark.parametrize("name", [n for n in NAMES if NAMES[n].gradients and "excitation" not in n])
def test_the_batch_size_changes_no_bit(name):
    model = MODEL if "cam" in name else wt.model(RowByRow())  # Grad-CAM asks about one input at a time as it is
    more = ({"steps": 4} if "integrated" in name else {}) | ({"samples": 5} if "/" in name else {})
    first, *others = (wt.explain(model, IMAGE, name, target=TARGET, parts="grid:2x2", batch_size=size, **more) for size in (1, 3, 64))
    assert all(e.scores.tobytes() == first.scores.tobytes() and e == first for e in others)


@pytest.mark.parametrize("name", [e.name for e in GRADIENT])
def test_every_gradient_method_leaves_the_net_as_it_was(name):
    net = nets.residual().train()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    wt.explain(wt.model(net), IMAGE, name, target=TARGET, parts="grid:2x2")
    assert all(m.training for m in net.modules())
    assert not any(m._forward_hooks or m._backward_hooks or m._forward_pre_hooks for m in net.modules())
    assert all(torch.equal(v, net.state_dict()[k]) for k, v in before.items())
    assert all(p.grad is None for p in net.parameters())


@pytest.mark.parametrize("passes", [0, 1, 2])
@pytest.mark.parametrize("name", [e.name for e in GRADIENT])
def test_hooks_are_gone_after_an_exception(name, passes):
    class Failing(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.left = nets.residual(), passes

        def forward(self, x):
            out = self.net(x)
            self.left -= 1
            if self.left < 0:
                raise RuntimeError("no more")
            return out

    failing = Failing()
    needed = 1 if name not in ("integrated_gradients", "grad_cam", "linear_approximation") else 3
    with pytest.raises(ValueError, match="no more") if passes < needed else contextlib.nullcontext():
        wt.explain(wt.model(failing), IMAGE, name, target=TARGET, parts="grid:2x2")
    assert not any(m._forward_hooks or m._backward_hooks or m._forward_pre_hooks for m in failing.modules())


def test_an_explanation_with_a_map_survives_json(tmp_path):
    found = wt.explain(MODEL, IMAGE, "saliency", target=TARGET, parts="grid:2x2")
    assert found.map.shape == (8, 8)
    found.save(tmp_path / "e.json")
    again = wt.Explanation.load(tmp_path / "e.json")
    assert again == found
    np.testing.assert_array_equal(again.map, found.map)


# --- errors ------------------------------------------------------------------------------------------------------------


def test_a_black_box_is_told_what_to_do():
    with pytest.raises(TypeError, match=r"saliency needs a model with gradients, and .* is a black box .* lime, kernel_shap"):
        wt.explain(lambda images: images.reshape(len(images), -1)[:, :3], np.moveaxis(IMAGE, 0, -1), "saliency", parts="grid:2x2")


def test_a_layer_that_does_not_exist_names_its_neighbours():
    with pytest.raises(ValueError, match=r"layer must name a layer of Residual, got 'secnd'; the nearest are 'second'"):
        wt.explain(MODEL, IMAGE, "grad_cam", layer="secnd", parts="grid:2x2")


def test_a_layer_without_places_is_refused():
    with pytest.raises(ValueError, match=r"output is \(channels, height, width\) or \(height, width, channels\), 'out' gives \(4,\)"):
        wt.explain(MODEL, IMAGE, "grad_cam", layer="out", parts="grid:2x2")


def test_a_layer_that_is_used_twice_is_refused():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 3, 3, padding=1)

        def forward(self, x):
            return self.conv(self.conv(x)).mean((2, 3))

    with pytest.raises(ValueError, match="used 2 times"):
        wt.explain(wt.model(Twice()), IMAGE, "grad_cam", layer="conv", parts="grid:2x2")
    assert wt.explain(wt.model(Twice()), IMAGE, "grad_cam", parts="grid:2x2").settings["layer"] == "conv2d[2]"  # its second use


def test_a_target_out_of_range_and_an_unknown_option_are_one_line_each():
    with pytest.raises(ValueError, match="target must be an index from 0 to 3, got 9"):
        wt.explain(MODEL, IMAGE, "saliency", target=9, parts="grid:2x2")
    with pytest.raises(TypeError, match=r"integrated_gradients has no option 'step' \(did you mean 'steps'\?\)"):
        wt.explain(MODEL, IMAGE, "integrated_gradients", step=3, parts="grid:2x2")
    with pytest.raises(ValueError, match="did you mean 'saliency/smoothgrad'"):
        wt.explain(MODEL, IMAGE, "saliency/smothgrad", parts="grid:2x2")
    with pytest.raises(TypeError, match="none of saliency, lime has an option 'nosie'"):
        wt.explain(MODEL, IMAGE, ["saliency", "lime"], nosie=3, parts="grid:2x2")


@pytest.mark.parametrize(("options", "words"), [
    ({"steps": 0}, "steps must be"), ({"baseline": "grey"}, "baseline must be one of black, mean"),
    ({"baseline": np.ones(5)}, "shaped like the input"), ({"baseline": np.nan}, "finite"), ({"quadrature": "simpson"}, "quadrature"),
    ({"pooling": "max"}, "pooling must be one of"), ({"explains": "odds"}, "explains must be"), ({"baseline": "pad"}, "do not have")])
def test_options_that_mean_nothing_are_refused(options, words):
    with pytest.raises(ValueError, match=words):
        wt.explain(MODEL, IMAGE, "integrated_gradients", parts="grid:2x2", **options)


@pytest.mark.parametrize(("options", "words"), [({"samples": 0}, "samples"), ({"noise": -1}, "noise"), ({"sigma": np.inf}, "sigma")])
def test_noise_that_means_nothing_is_refused(options, words):
    with pytest.raises(ValueError, match=f"{words} must be"):
        wt.explain(MODEL, IMAGE, "saliency/vargrad", parts="grid:2x2", **options)


def test_nan_gradients_are_one_clear_error():
    class Root(nn.Module):
        def forward(self, x):
            return torch.stack([torch.sqrt((x * 0).sum((1, 2, 3))), x.sum((1, 2, 3))], 1)

    with pytest.raises(ValueError, match=r"finite gradients .* with NaN or infinite values; a square root"):
        wt.explain(wt.model(Root()), IMAGE, "saliency", target=0, parts="grid:2x2")


def test_bytes_that_wrap_around_in_the_preprocessing_are_noticed():
    model = wt.model(nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), preprocess=lambda x: (x - 127) / 128, layout="NHWC")
    with pytest.raises(ValueError, match="wrap around"):
        wt.explain(model, np.random.default_rng(0).integers(0, 255, (8, 8, 3), dtype=np.uint8), "saliency", parts="grid:2x2")


# --- what a reviewer broke ---------------------------------------------------------------------------------------------


def test_excitation_needs_an_output_of_the_nets_own():
    background = np.random.default_rng(0).random((50, 4))
    torch.manual_seed(0)
    one = wt.model(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 1)), output="logit")
    assert wt.explain(one, background[0], "excitation_backprop", target=1, background=background).scores.min() >= 0
    for model, more in ((one, {"target": 0}), (wt.model(nets.residual(), output="logit"), {"target": 1, "explains": "score"})):
        given = {"background": background} if model is one else {"parts": "grid:2x2"}
        with pytest.raises(ValueError, match="one of the net's own outputs"):
            wt.explain(model, background[0] if model is one else IMAGE, "excitation_backprop", **more, **given)


def test_a_net_without_rectifiers_is_told_to_use_saliency():
    with pytest.raises(ValueError, match=r"must see at least one, as ReLU.*saliency"):
        wt.explain(LINEAR, IMAGE, "guided_backprop", target=TARGET, parts="grid:2x2")


def test_a_difference_has_the_difference_of_the_maps_and_a_sign():
    a, b = wt.explain(MODEL, IMAGE, "saliency", target=[0, 1], parts="grid:2x2")
    difference = a.minus(b)
    np.testing.assert_allclose(difference.map, a.map - b.map)
    assert not difference.unsigned
    assert difference.sense == "signed"


def test_settings_are_plain_numbers_whatever_came():
    found = wt.explain(MODEL, IMAGE, "saliency/smoothgrad", samples=np.int64(3), sigma=np.float32(0.5), parts="grid:2x2", target=0)
    assert found.settings["samples"] == 3
    assert found.settings["sigma"] == 0.5
    assert "noise" not in found.settings


def test_a_baseline_may_come_with_channels_last_as_the_image_did():
    last = np.random.default_rng(1).normal(size=(8, 8, 3))
    np.testing.assert_array_equal(spot().baseline(last), np.moveaxis(last, -1, 0))


def test_saturated_gradients_are_noted():
    class Flat(nn.Module):
        def forward(self, x):
            return torch.sigmoid(200 + x.flatten(1)[:, :2])

    found = wt.explain(wt.model(Flat(), output="probability"), IMAGE, "saliency", target=0, parts="grid:2x2")
    assert any("gradients vanish" in note for note in found.notes)


def test_a_preprocessing_that_differs_between_arrays_and_tensors_is_noticed():
    model = wt.model(nets.residual(), preprocess=lambda x: x / x.std(), layout="NCHW")  # numpy divides by n, torch by n - 1
    with pytest.raises(ValueError, match=r"preprocess must do the same .*std"):
        wt.explain(model, IMAGE[:, :4], "saliency", target=0, parts="grid:2x2")


def test_a_foreign_method_in_a_list_gets_its_options_and_a_stray_one_is_an_error():
    found = wt.explain(MODEL, IMAGE, ["saliency", captum.IntegratedGradients(NET)], target=0, parts="grid:2x2", pooling="mean", n_steps=7)
    assert found[1].settings == {"pooling": "mean", "n_steps": 7}
    with pytest.raises(TypeError, match="stepz"):
        wt.explain(MODEL, IMAGE, ["saliency", captum.IntegratedGradients(NET)], target=0, parts="grid:2x2", stepz=7)


def test_grad_cam_counts_every_pass():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.net, self.passes = nets.residual(), 0

        def forward(self, x):
            self.passes += len(x)
            return self.net(x)

    for more in ({}, {"layer": "net.second"}):
        net = Counting()
        found = wt.explain(wt.model(net), IMAGE, "grad_cam", target=0, parts="grid:2x2", **more)
        assert found.calls == net.passes


def test_the_last_pull_is_the_same_and_lets_the_graph_go():
    scores, pull = MODEL.linearised(IMAGE[None])
    weights = np.eye(scores.shape[1])[[TARGET]]
    first, again, last = pull(weights), pull(weights), pull(weights, last=True)
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(first, last)
    with pytest.raises(ValueError, match="second time"):
        pull(weights)


@pytest.mark.parametrize(("scale", "said"), [(50.0, True), (0.01, False)])
def test_a_softmax_that_nobody_mentioned_is_noticed_where_it_is_flat(scale, said):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Flatten(), nn.Linear(192, 3), nn.Softmax(1)).double()
    net[1].weight.data *= scale
    found = wt.explain(wt.model(net), IMAGE, "saliency", parts="grid:2x2")
    assert any("output='logit'" in note for note in found.notes) == said


@pytest.mark.parametrize(("options", "message"), [
    ({"samples": 9}, r"saliency has no option 'samples' \(saliency/smoothgrad has\)"),
    ({"internal_batch_size": 9}, r"did you mean 'batch_size'\?.*image: fill; text: fill, split"),
])
def test_an_option_of_a_neighbour_is_named(options, message):
    with pytest.raises(TypeError, match=message):
        wt.explain(MODEL, IMAGE, "saliency", target=0, **options)


def test_a_baseline_that_images_do_not_have_is_not_offered():
    with pytest.raises(ValueError, match=r"black, mean, blurred, noise, a number .* got 'pad', which image inputs do not have"):
        wt.explain(MODEL, IMAGE, "integrated_gradients", target=0, baseline="pad")


def test_grad_cam_finds_and_speaks_against_nothing():
    text = wt.explain(MODEL, IMAGE, "grad_cam", target=TARGET, parts="grid:2x2", layer="second").as_html()
    assert "speaks against class 2" not in text
    assert "speaks for class 2; what speaks against it is left out" in text
    assert "What speaks for it<" in text


def in_place(batch):
    batch -= 0.5
    return batch


@pytest.mark.parametrize("methods", [[e.name for e in GRADIENT], [e.name for e in GRADIENT][::-1], *([e.name] for e in GRADIENT),
                                     ["saliency/smoothgrad", "grad_cam/smoothgrad", "integrated_gradients"]], ids=str)
def test_a_preprocessing_that_works_in_place_changes_no_number(methods):
    models = [wt.model(nets.residual(), preprocess=p, layout="NCHW") for p in (in_place, lambda batch: batch - 0.5)]
    image = IMAGE.copy()
    mine, theirs = (wt.explain(m, image, methods, target=1, parts="grid:2x2") for m in models)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(a.scores, b.scores)
        assert a.prediction == b.prediction
    np.testing.assert_array_equal(image, IMAGE)


@pytest.mark.parametrize("how", ["mean", "mean_abs", "mean_pos", "sum", "signed_max"])
@pytest.mark.parametrize("method", ["saliency", "integrated_gradients", "guided_backprop", "saliency/vargrad"])
def test_the_map_pooled_as_it_says_is_the_scores(method, how):
    labels = np.random.default_rng(2).integers(0, 5, (8, 8))
    found = wt.explain(MODEL, IMAGE, method, target=TARGET, parts=labels, pooling=how)
    parts = ImageParts.cut(IMAGE, labels, layout="NCHW")
    np.testing.assert_allclose(parts.pool(found.map, how), found.scores, rtol=1e-5, atol=1e-7 * np.abs(found.scores).max())


def test_whole_numbers_that_float32_does_not_hold_are_no_wrapping():
    image = (2**30 + np.random.default_rng(0).integers(0, 100, (3, 8, 8))).astype(np.int32)
    model = wt.model(nets.residual(), preprocess=lambda z: (z - float(2**30)) / 100, layout="NCHW")
    found = wt.explain(model, image, "saliency", target=1, parts="grid:2x2")
    same = wt.explain(wt.model(nets.residual(), layout="NCHW"), (image - float(2**30)) / 100, "saliency", target=1, parts="grid:2x2")
    np.testing.assert_allclose(found.scores * 100, same.scores, rtol=1e-6)


@pytest.mark.parametrize("baseline", [1j, [[1, 2], [3]], "blak", np.ones((2, 2)), np.nan, "text"])
def test_what_is_no_baseline_is_one_error(baseline):
    with pytest.raises(ValueError, match="baseline must be"):
        wt.explain(MODEL, IMAGE, "integrated_gradients", target=0, baseline=baseline)


def test_a_small_baseline_is_recorded():
    found = wt.explain(MODEL, IMAGE, "integrated_gradients", target=0, baseline=[0.1, 0.2, 0.3])
    assert found.settings["baseline"] == [0.1, 0.2, 0.3]


def test_noise_of_an_input_without_a_range_is_said_to_be_none():
    flat = np.full((3, 8, 8), 0.4)
    for method in ("saliency/smoothgrad", "saliency/vargrad"):
        found = wt.explain(MODEL, flat, method, target=0, parts="grid:2x2", samples=2)
        assert [note for note in found.notes if "sigma=" in note]
        assert not any("saturates" in note for note in found.notes)
    assert not wt.explain(MODEL, flat, "saliency/vargrad", target=0, parts="grid:2x2", samples=2, sigma=0.1).notes
    with pytest.raises(ValueError, match="pass one of them"):
        wt.explain(MODEL, flat, "saliency/vargrad", target=0, noise=0.1, sigma=0.1)


def test_a_smoothed_grad_cam_states_its_layer():
    assert wt.explain(MODEL, IMAGE, "grad_cam/smoothgrad", target=0, parts="grid:2x2", samples=2).settings["layer"] == "act3"


def test_a_softmax_that_is_called_a_logit_is_noticed():
    net = nn.Sequential(nets.residual(), nn.Softmax(1))
    for method in ("saliency", "guided_backprop", "integrated_gradients", "grad_cam"):
        found = wt.explain(wt.model(net, output="logit"), IMAGE, method, parts="grid:2x2")
        assert any("squashes it once more" in note for note in found.notes)
        assert not any("squashes" in note for note in wt.explain(wt.model(nets.residual(), output="logit"), IMAGE, method,
                                                                 parts="grid:2x2").notes)


def test_a_page_says_how_a_method_misleads():
    assert "flat where the net saturates" in wt.explain(MODEL, IMAGE, "saliency", target=0, parts="grid:2x2").as_html()


@pytest.mark.parametrize(("method", "message"), [
    ("saliency,grad_cam", r"pass a list, \['saliency', 'grad_cam'\]"), ("pgd", r"is an attack.*wt\.attack"), ("LIME", "did you mean 'lime'")])
def test_a_method_that_is_none_is_told_what_it_may_be(method, message):
    with pytest.raises(ValueError, match=message):
        wt.explain(MODEL, IMAGE, method)


@pytest.mark.parametrize(("method", "options", "sense"), [
    ("saliency", {"pooling": "mean"}, "signed"), ("saliency", {"pooling": "mean", "absolute": True}, "size"),
    ("saliency/vargrad", {}, "size"), ("saliency/smoothgrad", {"pooling": "mean"}, "signed"), ("grad_cam", {}, "for"),
    ("grad_cam", {"pooling": "mean_abs"}, "for"), ("grad_cam/smoothgrad", {}, "for"), ("excitation_backprop", {}, "for"),
    ("integrated_gradients", {}, "signed"), ("edges", {}, "nothing"), ("random", {}, "nothing"), ("lime", {"samples": 20}, "signed")])
def test_every_explanation_knows_what_its_scores_say(method, options, sense):
    found = wt.explain(MODEL, IMAGE, method, target=0, parts="grid:2x2", **options)
    assert found.sense == sense
    assert wt.Explanation.from_json(found.to_json()).sense == sense
    assert ("speaks against" in found.as_html().replace("what speaks against it is left out", "").replace("what speaks against the target", "")
            ) == (sense == "signed")
    with pytest.raises(ValueError, match="sense one of signed, size, for, nothing"):
        wt.Explanation.from_json({**found.to_json(), "sense": "loud"})
