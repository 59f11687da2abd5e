"""The audio papers' attack against a loop written with torch's own autograd and optimiser."""

import numpy as np
import pytest
import torch
from fooled import random_linear, small_net

import whytrust as wt
from whytrust.attacks.carlini_wagner import SPECTROGRAM, CarliniWagner, adam

BATCH = np.random.default_rng(1).uniform(size=(3, 1, 6, 6))


def by_hand(net, x, loss_of, epsilon, rate, alpha, steps, authors):
    """One input: δ by signed descent, or by Adam on the signs, clamped after every step."""
    delta = torch.zeros_like(x, requires_grad=True)
    optimiser = torch.optim.Adam([delta], lr=rate)
    for _ in range(steps):
        loss = (delta**2).sum() + alpha * loss_of(net((x + delta)[None]))
        signs = torch.autograd.grad(loss, delta)[0].sign()
        if authors:
            delta.grad = signs
            optimiser.step()
        with torch.no_grad():
            if not authors:
                delta -= rate * signs
            delta.clamp_(-epsilon, epsilon)
    return (x + delta).detach().numpy()


@pytest.mark.parametrize("variant", ["paper", "authors"])
@pytest.mark.parametrize(("classes", "targeted"), [(4, True), (4, False), (2, False)])
def test_it_is_the_loop_of_the_paper(variant, classes, targeted):
    net = small_net(classes)
    labels = net(torch.from_numpy(BATCH)).argmax(1)
    attack = CarliniWagner(0.05, 0.004, 2.0, 25, variant, stop="never")
    found = attack(wt.model(net, output="logit"), BATCH, ((labels + 1) % classes).numpy() if targeted else None)
    for i, x in enumerate(torch.from_numpy(BATCH)):
        toward = (labels[i:i + 1] + 1) % classes  # of two classes the next is the other
        if targeted or classes == 2:
            def loss(scores, goal=toward):
                return torch.nn.functional.cross_entropy(scores, goal)
        else:
            def loss(scores, goal=labels[i:i + 1]):
                return -torch.nn.functional.cross_entropy(scores, goal)
        expected = by_hand(net, x, loss, 0.05, 0.004, 2.0, 25, variant == "authors")
        np.testing.assert_allclose(found[i], expected, atol=1e-9)


def test_adam_is_torchs_adam():
    random = np.random.default_rng(0)
    parameter = torch.zeros(2, 5, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([parameter], lr=0.01, betas=(0.9, 0.999), eps=1e-8)
    ours, mean, square = np.zeros((2, 5)), np.zeros((2, 5)), np.zeros((2, 5))
    for step in range(40):
        signs = random.integers(-1, 2, size=(2, 5)).astype(np.float64)
        parameter.grad = torch.from_numpy(signs.copy())
        optimiser.step()
        ours -= adam(signs, mean, square, np.full(2, step), 0.01)
        np.testing.assert_allclose(ours, parameter.detach().numpy(), rtol=0, atol=1e-12)


def test_adams_memory_is_the_inputs_own_when_others_take_the_places_of_those_that_left():
    model = random_linear(3, 36, seed=2)
    x = np.random.default_rng(3).uniform(size=(7, 36))
    attack = CarliniWagner(0.5, 0.01, 5.0, 60, "authors")
    together = attack(model, x, batch_size=2)
    assert len(set(together.iterations.tolist())) > 2  # inputs do leave at different times
    for i in range(7):
        np.testing.assert_array_equal(together[i], attack(model, x[i:i + 1])[0])


def test_a_larger_alpha_changes_more():
    model, x = random_linear(2, 36, seed=2), np.random.default_rng(3).normal(size=(4, 36))
    small, large = (CarliniWagner(1.0, 0.01, alpha, 200, stop="never")(model, x) for alpha in (0.5, 5.0))
    assert (small.l2 < large.l2).all()


def test_the_spectrogram_preset_is_the_papers():
    assert CarliniWagner(**SPECTROGRAM) == CarliniWagner(0.1, 0.0005, 15.0, bounds=(0, None))
    assert (CarliniWagner().epsilon, CarliniWagner().step, CarliniWagner().alpha, CarliniWagner().iterations) == (0.01, 0.0003, 2.0, 1000)


@pytest.mark.parametrize("variant", ["paper", "authors"])
@pytest.mark.parametrize("iterations", [30, 31])
def test_a_change_that_swings_about_zero_is_told_to_raise_alpha(variant, iterations):
    model, x = random_linear(2, 36, seed=2), np.random.default_rng(3).normal(size=(4, 36))
    timid, bold = (CarliniWagner(1.0, 0.01, alpha, iterations, variant)(model, x) for alpha in (1e-6, 50.0))
    assert any("raise alpha (now 1e-06)" in note for note in timid.notes)
    assert f"{4 - timid.success.sum()} inputs were hardly moved" in str(timid)
    assert not any("alpha" in note for note in bold.notes)


def test_too_few_steps_are_not_blamed_on_alpha():
    model, x = random_linear(2, 36, seed=2), np.random.default_rng(3).normal(size=(4, 36))
    short, narrow = CarliniWagner(1.0, 1e-4, 50.0, 2)(model, x), CarliniWagner(1e-4, 1e-4, 50.0, 20)(model, x)
    assert not short.success.all()
    assert not narrow.success.all()
    for weak in (short, narrow):
        assert not weak.success.any()
        (note,) = weak.notes
        assert note.startswith("no input was fooled within epsilon")
        assert "alpha" not in note


@pytest.fixture
def behind():
    """A net of quiet sounds, cut behind its magnitudes."""
    from whytrust.models.front_end import FrontEnd

    torch.manual_seed(0)
    front_end = FrontEnd(rate=8000, n_fft=256, hop=80, bands=20, high=4000)
    ear = wt.model(torch.nn.Sequential(front_end, torch.nn.Flatten(), torch.nn.Linear(21 * 20, 2)), output="logit")
    return ear.cut(0.05 * np.sin(2 * np.pi * 440 * np.arange(1600) / 8000)[None], "0.magnitude")


@pytest.mark.parametrize(("method", "options"), [("carlini_wagner", {"step": 0.0005, "alpha": 15}), ("pgd", {"step": 0.01})])
def test_magnitudes_of_a_front_end_stay_at_or_above_zero_and_the_share_there_is_told(behind, method, options):
    found = wt.attack(behind.tail, behind.values[None], method=method, epsilon=0.1, **options)
    assert found.bounds == (0, None)
    assert found.adversarial.min() == 0
    share = np.mean((found.adversarial[0] == 0) & (behind.values > 0))
    assert 0.1 < share == found.at_floor[0] == found.table()[0]["at_floor"]
    assert f"{share:.1%} of the values brought down to 0" in str(found)


def test_magnitudes_go_below_zero_where_that_is_asked_for(behind):
    attack = {"method": "carlini_wagner", "epsilon": 0.1, "step": 0.0005, "alpha": 15}
    below = wt.attack(behind.tail, behind.values[None], bounds=(-1, None), **attack)
    assert below.adversarial.min() < 0
    assert below.at_floor[0] == 0
    again = wt.attack(behind.tail, [behind.values - 0.01], **attack)  # no magnitudes
    assert again.bounds is None is again.at_floor
    assert "at_floor" not in again.table()[0]
    assert wt.attack(behind.tail, behind.values[None], "pgd", epsilon=0.1, bounds=None).bounds is None
