"""What every attack promises; one table of cases drives all of it."""

import json
import pickle
from dataclasses import FrozenInstanceError, dataclass, replace
from typing import Any

import numpy as np
import pytest
from fooled import linear, random_linear, tangle
from hypothesis import given, settings
from hypothesis import strategies as st

from whytrust.attacks import CATALOGUE, PGD, Enhance
from whytrust.attacks.carlini_wagner import CarliniWagner


@dataclass(frozen=True)
class Case:
    """An attack, how its targets are given, and whether it counts distance in L∞."""

    attack: Any
    targets: Any = None
    norm: str = "linf"

    def __str__(self):
        return f"{self.attack!r:.60} {self.targets}"


CASES = (
    Case(PGD(iterations=12)),
    Case(PGD(iterations=12), "random"),
    Case(PGD(iterations=12, random_start=True, stop="never"), "random"),
    Case(PGD(iterations=12, margin=0.5, epsilon=0.1)),
    Case(PGD("l2", iterations=12), "random", "l2"),
    Case(PGD("l2", 0.4, 0.1, iterations=8, random_start=True), None, "l2"),
    Case(PGD("l2", 0.4, 0.1, iterations=8, direction="sign", stop="never"), None, "l2"),
    Case(CarliniWagner(0.1, 0.01, 5.0, 15, bounds="auto")),
    Case(CarliniWagner(0.1, 0.01, 5.0, 15, "authors", units="auto", bounds="auto"), "random"),
    Case(Enhance(), 1),
    Case(Enhance(stop="success"), 1),
)
every_case = pytest.mark.parametrize("case", CASES, ids=str)
IMAGES = np.random.default_rng(0).uniform(size=(7, 4, 4)).astype(np.float32)


def test_every_attack_of_the_catalogue_has_a_case():
    assert {cls for _, cls, *_ in CATALOGUE} == {type(case.attack) for case in CASES}
    assert all(name == name.lower() and line for name, _, line, _ in CATALOGUE)


@every_case
def test_success_is_what_the_model_says(case):
    model = tangle(3, 16)
    found = case.attack(model, IMAGES, case.targets)
    labels = np.argmax(model(found.adversarial), axis=1)
    np.testing.assert_array_equal(found.labels, labels)
    reached = labels == found.targets if case.targets is not None else labels != found.clean_labels
    margin = getattr(case.attack, "margin", 0)
    np.testing.assert_array_equal(found.success, reached & ((found.margins >= margin) | (margin == 0)))
    np.testing.assert_array_equal(found.scores, model(found.adversarial))
    np.testing.assert_array_equal(found.clean_scores, model(IMAGES))


@every_case
def test_norms_are_of_the_returned_arrays(case):
    found = case.attack(tangle(3, 16), IMAGES, case.targets)
    change = (found.adversarial.astype(np.float64) - IMAGES).reshape(7, -1)
    np.testing.assert_array_equal(found.linf, np.abs(change).max(axis=1))
    np.testing.assert_allclose(found.l2, np.linalg.norm(change, axis=1), rtol=1e-14)
    np.testing.assert_allclose(found.relative_l2, found.l2 / np.linalg.norm(IMAGES.reshape(7, -1), axis=1), rtol=1e-6)
    assert found.within.all()


@every_case
def test_the_same_call_gives_the_same_bits_and_no_global_state_moves(case):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, second = (case.attack(tangle(3, 16), IMAGES, case.targets, 5) for _ in range(2))
    np.testing.assert_array_equal(first.adversarial, second.adversarial)
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@every_case
def test_the_inputs_are_left_alone(case):
    images = IMAGES.copy()
    images.setflags(write=False)
    case.attack(tangle(3, 16), images, case.targets)
    np.testing.assert_array_equal(images, IMAGES)


@every_case
@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_with_a_model_that_computes_row_by_row_the_batch_size_changes_nothing(case, batch_size):
    whole, parts = (case.attack(tangle(3, 16), IMAGES, case.targets, batch_size=b) for b in (None, batch_size))
    np.testing.assert_array_equal(whole.adversarial, parts.adversarial)
    np.testing.assert_array_equal(whole.iterations, parts.iterations)
    assert whole.passes == parts.passes


@every_case
def test_a_result_survives_pickle_and_json(case):
    found = case.attack(tangle(3, 16, classes=("cat", "dog", "owl")), IMAGES, case.targets)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.adversarial, found.adversarial)
    assert again.method == found.method == case.attack
    data = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert data["successes"] == found.success.sum()
    assert len(data["table"]) == 7
    assert data["table"][0]["before"] in ("cat", "dog", "owl")
    assert str(again) == str(found)


@every_case
def test_an_attack_is_frozen_and_equal_to_its_like(case):
    assert replace(case.attack) == case.attack
    assert eval(repr(case.attack)) == case.attack
    with pytest.raises(FrozenInstanceError):
        case.attack.iterations = 1


numbers = st.integers(0, 2**32 - 1)


@every_case
@settings(max_examples=12, deadline=None)
@given(seed=numbers, dtype=st.sampled_from([np.float32, np.float64, np.uint8]), masked=st.booleans(), size=st.integers(2, 5))
def test_nothing_leaves_the_ball_or_the_bounds_or_changes_outside(case, seed, dtype, masked, size):
    random = np.random.default_rng(seed)
    high = 255 if dtype == np.uint8 else 1
    images = (random.uniform(size=(4, size, size)) * high).astype(dtype)
    images[random.uniform(size=images.shape) < 0.2] = 0
    images[random.uniform(size=images.shape) < 0.2] = high
    if dtype != np.uint8:
        images[0, 0, 0] = -0.0
    inside = random.uniform(size=(size, size)) < 0.6 if masked else None
    if masked:
        inside[random.integers(size), random.integers(size)] = True
    found = case.attack(tangle(3, size * size, seed=seed % 7), images, case.targets, seed, inside=inside)
    for i, moved in enumerate(found):
        change = moved.astype(np.float64) - images[i].astype(np.float64)
        length = np.abs(change).max() if case.norm == "linf" else np.linalg.norm(change)
        assert length <= found.epsilon[i]
        assert moved.min() >= 0
        assert moved.max() <= high
        if masked:
            outside = images[i].astype(moved.dtype)[~inside]
            assert moved[~inside].tobytes() == outside.tobytes()


@every_case
@settings(max_examples=8, deadline=None)
@given(order=st.permutations(range(6)), batch_size=st.integers(1, 7), seed=numbers)
def test_the_order_of_the_inputs_changes_no_bit(case, order, batch_size, seed):
    random = np.random.default_rng(seed)
    images, model = random.uniform(size=(6, 3, 3)).astype(np.float32), tangle(4, 9)
    images[0, 0, 0] = 1  # so that "auto" bounds never hang on chance
    straight = case.attack(model, images, case.targets, seed)
    shuffled = case.attack(model, images[order], case.targets, seed, ids=order, batch_size=batch_size)
    for place, i in enumerate(order):
        assert shuffled[place].tobytes() == straight[i].tobytes()


@settings(max_examples=40, deadline=None)
@given(seed=numbers, epsilon=st.floats(1e-6, 3), low=st.floats(-2, 0), high=st.floats(0.1, 2))
def test_odd_bounds_hold_in_float32_too(seed, epsilon, low, high):
    x = np.random.default_rng(seed).uniform(low, high, size=(3, 5)).astype(np.float32)
    x = np.clip(x, np.nextafter(np.float32(low), np.float32(np.inf)), np.nextafter(np.float32(high), np.float32(-np.inf)))
    for norm in ("linf", "l2"):
        found = PGD(norm, epsilon, epsilon / 2, 6, "input", (low, high), stop="never")(random_linear(2, 5), x)
        change = found.adversarial.astype(np.float64) - x.astype(np.float64)
        size = np.abs(change).max(axis=1) if norm == "linf" else np.array([np.linalg.norm(c) for c in change])
        assert (size <= epsilon).all()
        assert found.adversarial.astype(np.float64).min() >= low
        assert found.adversarial.astype(np.float64).max() <= high


# --- targets and places -----------------------------------------------------------------------------------------------


def test_random_targets_are_other_classes_evenly_and_the_inputs_own():
    model, x = random_linear(4, 16), np.random.default_rng(0).normal(size=(300, 16))
    found = PGD(iterations=1)(model, x, "random", 7)
    assert (found.targets != found.clean_labels).all()
    steps = (found.targets - found.clean_labels) % 4
    assert np.bincount(steps, minlength=4)[1:].min() > 60
    assert PGD(iterations=1)(model, x[9:10], "random", 7, ids=[9]).targets[0] == found.targets[9]


@pytest.mark.parametrize(("shape", "mask", "layout"), [
    ((4, 5, 3), (4, 5), "NHWC"), ((3, 4, 5), (4, 5), "NCHW"), ((3, 3, 3), (3, 3), "NCHW"), ((3, 3, 3), (3, 3), "NHWC"),
    ((3, 4, 5), (1, 4, 5), "NHWC"), ((3, 4, 5), (3, 4, 5), "NHWC")])
def test_a_mask_of_pixels_is_spread_over_the_channels(shape, mask, layout):
    x, inside = np.random.default_rng(0).uniform(size=(2, *shape)), np.random.default_rng(1).uniform(size=mask) < 0.5
    found = PGD(iterations=2, stop="never")(random_linear(2, int(np.prod(shape)), layout=layout), x, inside=inside)
    full = inside if mask == shape or len(mask) == 3 else inside if layout == "NCHW" else inside[..., None]
    np.testing.assert_array_equal(found.adversarial != x, np.broadcast_to(full, x.shape))


def test_every_input_may_have_its_own_mask():
    x = np.full((2, 3, 3), 0.5)
    inside = np.zeros((2, 3, 3), dtype=bool)
    inside[0, 0], inside[1, 2] = True, True
    for given_as in (inside, list(inside)):
        found = PGD(iterations=2, stop="never")(random_linear(2, 9), x, inside=given_as)
        np.testing.assert_array_equal(found.adversarial != x, inside)


def test_l2_steps_keep_their_length_within_a_mask():
    inside = np.zeros(16, dtype=bool)
    inside[3] = True
    found = PGD("l2", 10.0, 0.25, 1, "input", None, stop="never")(random_linear(2, 16), np.zeros((1, 16)), inside=inside)
    assert found.l2[0] == pytest.approx(0.25)


def test_a_threshold_decides_what_a_success_is():
    """One logit, threshold 0.9: the label changes where the logit passes log 9, and not before."""
    model = linear([[1.0]], threshold=0.9, classes=("no", "yes"))
    edge = float(np.log(9))
    for epsilon, fooled in ((edge - 0.01, False), (edge + 0.01, True)):
        found = PGD(epsilon=epsilon, step=0.02, iterations=300, units="input")(model, np.array([[0.0]]))
        assert found.success[0] == fooled
        assert found.class_name(found.clean_labels[0]) == "no"
