"""explains="logit" for methods that only ask the model: a logistic white box, whose log-odds are linear, has known weights."""

import numpy as np
import pytest
from scipy.special import logsumexp

import whytrust as wt
from whitebox import Bits
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.explainers.kernel_shap import KernelShap
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.logits import log_odds, log_odds_of_logits
from whytrust.question import Question

WEIGHTS = np.array([1.5, -0.7, 0.4, 0.0, -1.1, 0.9])
METHODS = [Lime(features="all", explains="logit"), KernelShap(explains="logit"), Occlusion(explains="logit")]
NAMES = ["lime", "kernel_shap", "occlusion"]


def margin(batch, constant):
    return np.asarray(batch, float) @ WEIGHTS + constant


def model(kind, constant=0.3):
    """The same logistic model, as it may come: one probability, two, one logit, two logits."""
    def shares(batch):
        p = 1 / (1 + np.exp(-margin(batch, constant)))
        return np.stack([1 - p, p], axis=1)

    def logits(batch):
        z = margin(batch, constant)
        return np.stack([0.2 * z, 1.2 * z], axis=1)  # of which the difference counts

    return {"one": CheckedModel(lambda b: shares(b)[:, 1], output="probability"), "two": CheckedModel(shares),
            "logit": CheckedModel(lambda b: margin(b, constant), output="logit"),
            "two logits": CheckedModel(logits, output="logit")}[kind]


def explain(method, kind, target=1, **more):
    return method(Question(model(kind, **more), Bits(6), target), generator(0))


@pytest.mark.parametrize("kind", ["one", "two", "logit", "two logits"])
@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_the_log_odds_of_a_logistic_model_have_its_weights(method, kind):
    found = explain(method, kind)
    np.testing.assert_allclose(found.scores, WEIGHTS, atol=1e-6)
    np.testing.assert_allclose(explain(method, kind, target=0).scores, -WEIGHTS, atol=1e-6)
    p = 1 / (1 + np.exp(-(WEIGHTS.sum() + 0.3)))
    assert found.prediction == pytest.approx(p)  # which stays what the model says
    assert found.local_prediction is None or found.local_prediction == pytest.approx(p, abs=1e-6)
    assert found.settings["explains"] == "logit"
    assert "of the logit" in str(found)


@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_where_a_probability_is_saturated_a_note_says_what_to_do_and_it_helps(method):
    plain = explain(type(method)(), "one", constant=14.0)
    assert np.abs(plain.scores).max() < 1e-4
    (note,) = [note for note in plain.notes if "saturated" in note]
    assert "Pass explains='logit'" in note
    found = explain(method, "one", constant=14.0)
    np.testing.assert_allclose(found.scores, WEIGHTS, atol=1e-5)
    assert not any("saturated" in note for note in found.notes)
    np.testing.assert_allclose(explain(method, "logit", constant=60.0).scores, WEIGHTS, atol=1e-6)  # where p is 1 in floats


@pytest.mark.parametrize("constant", [13.0, 15.0, 17.0])
@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_two_probabilities_in_single_precision_have_exact_log_odds(method, constant):
    """Of the smaller one everything is known; 1 − p of the larger one is rounded to 6e-8."""
    def shares(batch):
        q = 1 / (1 + np.exp(margin(batch, constant)))
        return np.stack([q, 1 - q], axis=1).astype(np.float32)

    for target, sign in ((1, 1.0), (0, -1.0)):
        found = method(Question(CheckedModel(shares), Bits(6), target), generator(0))
        np.testing.assert_allclose(found.scores, sign * WEIGHTS, atol=1e-4)
        assert not found.notes


def test_probabilities_that_were_rounded_are_read_as_they_are():
    """Of those of which the small ones were rounded away nothing is known but 1 − p."""
    rounded = CheckedModel(lambda b: np.tile([0.9999, 0.0, 0.0, 0.0], (len(b), 1)), output="probability")
    assert rounded.log_odds(np.zeros((1, 2)))[0, 0] == pytest.approx(np.log(0.9999 / 0.0001))


def test_one_probability_in_single_precision_is_said_to_be_rough():
    def one(batch):
        return (1 / (1 + np.exp(-margin(batch, 13.0)))).astype(np.float32)

    found = Occlusion(explains="logit")(Question(CheckedModel(one, output="probability"), Bits(6), 1), generator(0))
    assert any("single precision" in note for note in found.notes)
    fine = CheckedModel(lambda batch: 1 / (1 + np.exp(-margin(batch, 13.0))), output="probability")
    assert not Occlusion(explains="logit")(Question(fine, Bits(6), 1), generator(0)).notes
    small = CheckedModel(lambda batch: (1 / (1 + np.exp(15 - margin(batch, 0)))).astype(np.float32), output="probability")
    assert not Occlusion(explains="logit")(Question(small, Bits(6), 1), generator(0)).notes  # near 0 it is as fine as anywhere


@pytest.mark.parametrize("method", METHODS, ids=NAMES)
def test_where_the_probability_is_one_in_floats_the_note_says_so_and_the_logit_has_the_answer(method):
    plain = explain(type(method)(), "logit", constant=60.0)
    assert not plain.scores.any()
    assert any("too sure to be explained by its probability: it was 1" in note for note in plain.notes)
    assert not any("does not depend" in note for note in plain.notes)
    found = explain(method, "logit", constant=60.0)
    np.testing.assert_allclose(found.scores, WEIGHTS, atol=1e-6)
    assert not found.notes  # nothing was cut: these are the model's own logits
    constant = method(Question(CheckedModel(lambda b: np.full(len(b), 30.0), output="logit"), Bits(6), 1), generator(0))
    assert any("does not depend" in note for note in constant.notes)


@pytest.mark.parametrize("method", [Lime(), KernelShap(), Occlusion()], ids=NAMES)
def test_what_is_not_saturated_has_no_such_note(method):
    assert not any("saturated" in note for note in explain(method, "one").notes)


def test_of_several_classes_it_is_the_log_odds_against_all_others():
    weights = np.random.default_rng(3).normal(size=(6, 4))
    given = Question(CheckedModel(lambda b: np.asarray(b, float) @ weights, output="logit"), Bits(6), 2)
    found = Occlusion(explains="logit")(given, generator(0)).scores

    def odds(z):
        return z[2] - logsumexp(np.delete(z, 2))

    whole = weights.sum(axis=0)
    np.testing.assert_allclose(found, [odds(whole) - odds(whole - row) for row in weights])


def test_log_odds_of_logits_are_exact_where_probabilities_round_to_one():
    z = np.array([[80.0, 1.0, -3.0], [0.0, 0.1, 0.2], [-700.0, 700.0, 699.0], [5.0, 5.0, 5.0]])
    truth = [[row[i] - logsumexp(np.delete(row, i)) for i in range(3)] for row in z]
    np.testing.assert_allclose(log_odds_of_logits(z), truth, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(log_odds(np.array([0.0, 0.5, 1.0])), [-20.723, 0, 20.723], atol=1e-3)


@pytest.mark.parametrize("method", ["lime", "kernel_shap", "occlusion"])
def test_scores_that_are_no_probabilities_have_no_log_odds(method):
    with pytest.raises(ValueError, match="explains='logit' needs probabilities"):
        wt.explain(lambda texts: [len(t) for t in texts], "a good film", method=method, explains="logit")
    with pytest.raises(ValueError, match="explains must be 'logit'"):
        wt.explain(lambda texts: [len(t) for t in texts], "a good film", method=method, explains="odds")


def test_amounts_of_log_odds_are_not_held_against_a_probability():
    pictures = list(np.random.default_rng(1).uniform(size=(2, 2, 2)))
    asked = wt.model(lambda batch: 1 / (1 + np.exp(-np.asarray(batch).reshape(len(batch), -1).sum(axis=1))), threshold=0.5)
    cut = {"parts": "grid:2x2", "fill": 0.0}
    found = wt.measure(asked, pictures, "occlusion", ["infidelity", "pixel_flipping"], explains="logit", **cut)
    assert "amounts of the logit" in found.refused["infidelity"]["occlusion"]
    assert "occlusion" in found.values["pixel_flipping"]
