"""Several methods in one call: the same answers as alone, for fewer model calls."""

import importlib
import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

import whytrust as wt

sys.path.insert(0, str(Path(__file__).parent))
nets = importlib.import_module("nets")
IMAGE = np.random.default_rng(0).normal(size=(3, 8, 8))
MODEL = wt.model(nets.residual(), output="logit")
SOME = ["lime", "saliency", "integrated_gradients", "input_x_gradient", "occlusion", "saliency/vargrad", "grad_cam", "kernel_shap"]
OPTIONS = {"parts": "grid:3x3", "seed": 4, "target": 1}


def explained(methods, **more):
    return wt.explain(MODEL, IMAGE, methods, **{**OPTIONS, **more})


def test_an_answer_does_not_depend_on_what_else_is_asked_nor_on_the_order():
    alone = {name: explained(name) for name in SOME}
    for order in (SOME, SOME[::-1], SOME[3:] + SOME[:3]):
        for found in explained(order):
            np.testing.assert_allclose(found.scores, alone[found.method].scores, rtol=1e-12, atol=1e-15)
            assert found.settings == pytest.approx(alone[found.method].settings) or found.method == "lime"


def test_masks_and_gradients_are_shared():
    together = explained(SOME)
    assert sum(e.calls for e in together) < sum(explained(name).calls for name in SOME)
    again = dict(zip(SOME, together, strict=True))
    assert again["input_x_gradient"].calls == 0  # the gradient is saliency's


def test_several_targets_cost_one_forward_pass_of_saliency():
    found = explained("saliency", target=[0, 1, 2, 3])
    assert found[-1].calls == 1
    for target, e in enumerate(found):
        np.testing.assert_array_equal(e.scores, explained("saliency", target=target).scores)


def test_methods_by_targets_by_inputs_come_in_that_nesting():
    found = wt.explain(MODEL, [IMAGE, -IMAGE], ["saliency", "occlusion"], **{**OPTIONS, "target": [0, 2]})
    names = [[[(e.method, e.target) for e in of_method] for of_method in of_input] for of_input in found]
    assert names == [[[("saliency", 0), ("saliency", 2)], [("occlusion", 0), ("occlusion", 2)]]] * 2
    assert isinstance(explained(["saliency"]), list)


def test_each_takes_the_options_that_it_knows():
    lime, smooth = explained(["lime", "saliency/smoothgrad"], samples=30, pooling="mean", features=4)
    assert lime.calls <= 31
    assert smooth.settings["samples"] == 30
    assert smooth.settings["pooling"] == "mean"
    assert lime.selected.sum() == 4


def test_options_of_one_method_are_told_apart_in_one_call():
    from whytrust.explainers.gradients import IntegratedGradients, Pooled
    from whytrust.explainers.smoothing import Smoothed
    baselines = [np.zeros((3, 8, 8)), np.ones((3, 8, 8))]
    methods = [Pooled(Smoothed(IntegratedGradients(3, b), samples=4)) for b in baselines]
    together, alone = explained(methods), [explained(m) for m in methods]
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_array_equal(a.scores, b.scores)
    assert not np.array_equal(together[0].scores, together[1].scores)


def test_explaining_the_score_and_the_logit_in_one_call_are_two_things():
    from whytrust.explainers.gradients import Pooled, Saliency
    methods = [Pooled(Saliency(), explains="logit"), Pooled(Saliency(), explains="score")]
    for order in itertools.permutations(methods):
        for method, found in zip(order, explained(list(order)), strict=True):
            np.testing.assert_array_equal(found.scores, explained(method).scores)
