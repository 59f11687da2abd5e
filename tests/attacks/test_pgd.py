"""PGD against captum's, and against what is known in closed form."""

import numpy as np
import pytest
import torch
from captum.robust import PGD as CaptumPGD
from fooled import linear, random_linear, small_net, tangle

import whytrust as wt
from whytrust.attacks import PGD

BATCH = np.random.default_rng(1).uniform(size=(5, 1, 6, 6))


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("targeted", [True, False])
@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_every_step_is_captums(norm, targeted, bounds):
    net = small_net()
    labels = net(torch.from_numpy(BATCH)).argmax(1)
    goals = (labels + 1) % 4 if targeted else labels
    epsilon, step = (0.1, 0.02) if norm == "linf" else (0.8, 0.05)
    low, high = bounds or (-np.inf, np.inf)
    peer = CaptumPGD(net, torch.nn.CrossEntropyLoss(reduction="none"), low, high)
    peer.fgsm.zero_thresh = 0  # captum leaves gradients below 1e-6 alone, which nobody else does
    theirs = peer.perturb(torch.from_numpy(BATCH), epsilon, step, 12, goals, targeted=targeted, norm={"linf": "Linf", "l2": "L2"}[norm])
    # captum takes signed steps in the L2 ball too
    ours = PGD(norm, epsilon, step, 12, units="input", bounds=bounds, stop="never", direction="sign")(
        wt.model(net, output="logit"), BATCH, goals.numpy() if targeted else None)
    np.testing.assert_allclose(ours.adversarial, theirs.numpy(), atol=1e-5)
    assert np.abs(ours.adversarial - BATCH).max() > step  # the claim is not empty


@pytest.mark.parametrize("targeted", [True, False])
def test_the_cross_entropy_of_floats_is_captums_on_a_net_that_saturates(targeted):
    """Logits hundreds apart: the softmax is 0 or 1 in 32 bits, the cross-entropy has no slope left, and captum stops there."""
    net, batch = small_net().float(), BATCH.astype(np.float32)
    with torch.no_grad():
        net[-1].weight *= 3000
        net[-1].bias *= 3000
        logits = net(torch.from_numpy(batch))
    labels = logits.argmax(1)
    goals = (labels + 1) % 4 if targeted else labels
    peer = CaptumPGD(net, torch.nn.CrossEntropyLoss(reduction="none"))
    peer.fgsm.zero_thresh = 0
    theirs = peer.perturb(torch.from_numpy(batch), 0.3, 0.02, 40, goals, targeted=targeted).numpy()
    given = {"epsilon": 0.3, "step": 0.02, "iterations": 40, "units": "input", "bounds": None, "stop": "never"}
    model, asked = wt.model(net, output="logit"), goals.numpy() if targeted else None
    ours = PGD(**given, loss="cross_entropy")(model, batch, asked)
    np.testing.assert_allclose(np.stack(ours.adversarial), theirs, atol=1e-5)
    stronger = PGD(**given)(model, batch, asked)
    moved, further = (np.abs(np.stack(found.adversarial) - batch).max(axis=(1, 2, 3)) for found in (ours, stronger))
    assert (moved < further).any()  # −log p is followed where the cross-entropy is flat
    assert (ours.margins < stronger.margins).any()
    if not targeted:
        assert not moved.any()


def test_the_cross_entropy_is_the_usual_loss_where_nothing_saturates():
    model = wt.model(small_net(), output="logit")
    given = {"epsilon": 0.1, "step": 0.02, "iterations": 8, "units": "input", "bounds": None, "stop": "never"}
    for targets in (None, "random"):
        a, b = (PGD(**given, loss=loss)(model, BATCH, targets).adversarial for loss in ("cross_entropy", "log_probability"))
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_one_logit_of_two_classes_has_the_same_cross_entropy():
    weights = np.random.default_rng(0).normal(size=(1, 9))
    net = torch.nn.Linear(9, 1, bias=False).double()
    with torch.no_grad():
        net.weight.copy_(torch.from_numpy(weights))
    found = PGD(epsilon=0.3, step=0.1, units="input", bounds=None, stop="never", iterations=5, loss="cross_entropy")(
        wt.model(net, output="logit"), np.full((1, 9), 0.1))
    away = -1 if weights.sum() > 0 else 1
    np.testing.assert_allclose(found[0], 0.1 + 0.3 * away * np.sign(weights[0]), atol=1e-12)


def test_the_cross_entropy_of_probabilities_is_refused():
    net = torch.nn.Sequential(torch.nn.Linear(9, 3), torch.nn.Softmax(1))
    with pytest.raises(ValueError, match="must be given logits"):
        PGD(loss="cross_entropy")(wt.model(net, output="probability"), np.zeros((1, 9), dtype=np.float32))
    with pytest.raises(ValueError, match="loss must be"):
        PGD(loss="hinge")


def test_a_mask_confines_it_as_captums_does():
    net = small_net()
    labels = net(torch.from_numpy(BATCH)).argmax(1)
    inside = np.zeros((1, 6, 6), dtype=bool)
    inside[0, 2:5, 1:4] = True
    peer = CaptumPGD(net, torch.nn.CrossEntropyLoss(reduction="none"))
    peer.fgsm.zero_thresh = 0
    mask = torch.from_numpy(inside.astype(np.float64))[None].expand(5, -1, -1, -1)
    theirs = peer.perturb(torch.from_numpy(BATCH), 0.3, 0.04, 10, labels, norm="L2", mask=mask)
    ours = PGD("l2", 0.3, 0.04, 10, units="input", bounds=None, stop="never", direction="sign")(
        wt.model(net, output="logit"), BATCH, inside=inside)
    np.testing.assert_allclose(ours.adversarial, theirs.numpy(), atol=1e-5)


def test_on_a_linear_model_it_finds_the_linf_optimum():
    weights = np.random.default_rng(0).normal(size=(2, 9))
    found = PGD(epsilon=0.3, step=0.1, units="input", bounds=None, stop="never", iterations=5)(linear(weights), np.zeros((1, 9)), 1 if
        linear(weights)(np.zeros((1, 9)))[0].argmax() == 0 else 0)
    goal = found.targets[0]
    np.testing.assert_allclose(found[0], 0.3 * np.sign(weights[goal] - weights[1 - goal]), atol=1e-12)


def test_on_a_linear_model_it_finds_the_l2_optimum():
    weights = np.random.default_rng(0).normal(size=(2, 9))
    found = PGD("l2", 0.3, 0.1, units="input", bounds=None, stop="never", iterations=5)(linear(weights), np.zeros((1, 9)))
    away = weights[1 - found.clean_labels[0]] - weights[found.clean_labels[0]]
    np.testing.assert_allclose(found[0], 0.3 * away / np.linalg.norm(away), atol=1e-12)


@pytest.mark.parametrize(("norm", "dual"), [("linf", 1), ("l2", 2)])
def test_a_linear_model_is_fooled_exactly_from_the_known_distance_on(norm, dual):
    model = random_linear(2, 20, seed=3)
    x = np.random.default_rng(4).normal(size=(1, 20))
    scores = model.raw(x)[0]
    difference = model.function.weights[0] - model.function.weights[1]
    distance = abs(scores[0] - scores[1]) / np.linalg.norm(difference, dual)
    for share, fooled in ((0.999, False), (1.001, True)):
        attack = PGD(norm, share * distance, share * distance / 4, 50, units="input", bounds=None)
        assert attack(model, x).success[0] == fooled


def test_it_runs_on_until_the_margin_is_reached():
    model = random_linear(3, 20, seed=5)
    x = np.random.default_rng(6).normal(size=(4, 20))
    plain = PGD(epsilon=1.0, step=0.01, units="input")(model, x)
    ahead = PGD(epsilon=1.0, step=0.01, units="input", margin=3.0)(model, x)
    assert plain.success.all()
    assert ahead.success.all()
    assert (plain.margins < 3).any()
    assert (ahead.margins >= 3).all()
    assert (ahead.iterations > plain.iterations).any()
    labels = np.argmax(model.raw(ahead.adversarial), axis=1)
    np.testing.assert_array_equal(labels, ahead.labels)


def test_a_margin_out_of_reach_is_no_success():
    found = PGD(epsilon=0.2, units="input", margin=1e3, iterations=5)(random_linear(3, 20), np.zeros((1, 20)))
    assert not found.success.any()
    assert found.iterations[0] == 5


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_random_start_lies_in_the_ball_and_is_the_inputs_own(norm):
    model, x = tangle(3, 16), np.random.default_rng(0).uniform(size=(6, 4, 4)).astype(np.float32)
    attack = PGD(norm, 0.2, 1e-9, 1, units="input", random_start=True, stop="never", bounds=None)
    all_at_once, one = attack(model, x, seed=3), attack(model, x[4:5], seed=3, ids=[4])
    assert all_at_once.within.all()
    assert (all_at_once.l2 > 0.05).all()
    np.testing.assert_array_equal(all_at_once[4], one[0])
    assert not np.array_equal(attack(model, x, seed=4)[4], one[0])


def test_a_confident_net_can_be_left_although_its_probabilities_saturate():
    # 1 - p of the label is e^-120: float32, in which nets pull back, has nothing so small.
    net = torch.nn.Linear(2, 3, bias=False)
    with torch.no_grad():
        net.weight.copy_(torch.tensor([[120.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
    found = PGD(epsilon=2.0, step=0.1, units="input")(wt.model(net, output="logit"), np.array([[1.0, 0.0]], dtype=np.float32))
    assert found.success.all()


# --- units ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("x", "epsilon", "bounds"), [
    (np.full((1, 4, 4), 100, dtype=np.uint8), 12.75, (0.0, 255.0)),
    (np.full((1, 4, 4), 0.5, dtype=np.float32), 0.05, (0.0, 1.0)),
    (np.full((1, 2, 2, 4), 99.5), 12.75, (0.0, 255.0)),
    (np.full((1, 4, 4, 1), 99.5), 0.05, None),
    (np.full((1, 1, 4, 4), 12.0), 0.05, None),
    (np.full((1, 4, 4), -1.5), 0.05, None),
    (np.full((1, 16), 0.5), 0.05, None),
    (np.full((1, 4, 4), 12.0), 0.05, None),
], ids=["bytes", "0-1", "0-255 floats in colour", "0-255 floats with one channel", "0-16 with one channel", "normalised", "a waveform", "0-16 without channels"])
def test_the_default_epsilon_suits_the_input(x, epsilon, bounds):
    found = PGD(iterations=1)(random_linear(2, 16), x)
    assert found.epsilon[0] == pytest.approx(epsilon)
    assert found.outcomes[0].step == pytest.approx(epsilon / 5)
    assert found.bounds == bounds


def test_the_default_l2_epsilon_is_a_change_of_a_hundredth_in_the_mean():
    assert PGD("l2", iterations=1)(random_linear(2, 400), np.full((1, 20, 20), 0.5)).epsilon[0] == pytest.approx(0.01 * 20)


def test_units_input_means_grey_levels():
    assert PGD(epsilon=4, units="input", iterations=1)(random_linear(2, 16), np.full((1, 4, 4), 9, np.uint8)).epsilon[0] == 4


def test_bytes_come_back_as_float32():
    assert PGD()(random_linear(2, 16), np.full((2, 4, 4), 100, dtype=np.uint8)).adversarial.dtype == np.float32
    large = np.full((1, 16), 2**24 + 1)
    assert PGD(units="input")(random_linear(2, 16), large).adversarial.dtype == np.float64


@pytest.mark.parametrize(("options", "message"), [
    ({"norm": "l1"}, "norm must be one of"), ({"epsilon": 0}, "epsilon must be a finite number above 0"),
    ({"step": float("nan")}, "step must be a finite"), ({"iterations": 0}, "iterations must be a whole number"),
    ({"bounds": (1, 0)}, "bounds must be"), ({"bounds": np.array([1.0, 0.0])}, "bounds must be"), ({"bounds": "0-1"}, "bounds must be"),
    ({"bounds": (0, 1, 2)}, "bounds must be"), ({"bounds": (None, float("nan"))}, "bounds must be"), ({"bounds": 3}, "bounds must be"),
    ({"stop": "never!"}, "stop must be"), ({"margin": -1}, "margin must be"),
    ({"units": "grey"}, "units must be"), ({"direction": "up"}, "direction must be"), ({"random_start": "yes"}, "random_start must be"),
])
def test_a_setting_that_means_nothing_is_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        PGD(**options)


@pytest.mark.parametrize(("options", "x", "message"), [
    ({"epsilon": 8}, np.full((1, 4, 4), 9, dtype=np.uint8), "units='input'"),
    ({"epsilon": 1}, np.full((1, 4, 4), 9, dtype=np.uint8), "units='input'"),
    ({"units": "range"}, np.full((1, 16), 9.0), "pass bounds="),
    ({"units": "range", "bounds": (0, None)}, np.full((1, 16), 9.0), "open end"),
])
def test_units_that_do_not_fit_the_inputs_are_refused(options, x, message):
    with pytest.raises(ValueError, match=message):
        PGD(**options)(random_linear(2, 16), x)


@pytest.mark.parametrize("bounds", [np.array([0.0, 1.0]), [0, 1], (0, 1), torch.tensor([0, 1]), np.array([0, 1], dtype=np.float32)])
def test_bounds_may_be_any_pair_of_numbers(bounds):
    x = np.full((1, 4, 4), 0.5)
    assert PGD(bounds=bounds) == PGD(bounds=(0.0, 1.0))
    found = PGD(bounds=bounds, iterations=1)(random_linear(2, 16), x)
    assert found.to_json()["settings"]["bounds"] == found.to_json()["bounds"] == [0.0, 1.0]
    assert wt.attack(random_linear(2, 16), x, bounds=bounds, iterations=1).bounds == (0.0, 1.0)


@pytest.mark.parametrize(("bounds", "low", "high"), [((0, None), 0, np.inf), ((None, 3), -np.inf, 3), ((0, np.inf), 0, np.inf)])
@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_bounds_may_have_an_open_end(bounds, low, high, norm):
    x = np.random.default_rng(0).uniform(0, 3, size=(3, 16)).astype(np.float32)
    found = PGD(norm, 5.0, 1.0, bounds=bounds, stop="never", iterations=8)(random_linear(2, 16), x)
    assert found.within.all()
    assert found.adversarial.min() >= low
    assert found.adversarial.max() <= high
    assert found.adversarial.max() > 3 or found.adversarial.min() < 0  # the other end is open
    assert (found.epsilon == 5).all()  # units of the input, for there is no range
    assert np.isfinite(found.relative_linf).all()
    assert None in found.bounds
    assert None in found.to_json()["bounds"]
    assert "inf" in str(found)
    assert PGD(bounds=(None, None)).bounds is None


def test_an_input_beyond_the_one_bound_is_told():
    with pytest.raises(ValueError, match="within the bounds 0 to inf"):
        PGD(bounds=(0, None))(random_linear(2, 16), np.full((1, 16), -1.0))
