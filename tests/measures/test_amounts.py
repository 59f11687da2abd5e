"""Scores as amounts: closed forms for additive models, and what must always hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import pearsonr

from whitebox import Additive, Bits, Net, all_masks, question
from whytrust.core import generator
from whytrust.measures.amounts import Completeness, FaithfulnessCorrelation, Infidelity, hidden_sets, pearson
from whytrust.measures.judged import Judged

WEIGHTS = (4.0, 2.0, 1.0, -3.0)
some = arrays(np.float64, 6, elements=st.floats(-3, 3).map(lambda x: round(x, 2)))


def rng():
    return generator(0, "metric")


def judged(scores, weights=WEIGHTS):
    return Judged(question(Additive(weights), Bits(len(weights))), np.array(scores, float))


def test_true_contributions_of_an_additive_model_are_perfect():
    case = judged(WEIGHTS)
    assert Infidelity()(case, rng()) == pytest.approx(0, abs=1e-25)
    assert FaithfulnessCorrelation()(case, rng()) == pytest.approx(1)
    assert Completeness()(case, rng()) == pytest.approx(0, abs=1e-12)


def test_infidelity_by_hand():
    # One of four parts is hidden; scores that are off by 1, 0, 0 and 2 are off by as much in one set each.
    value = np.mean([Infidelity(2000, 0.25)(judged([5.0, 2.0, 1.0, -1.0]), generator(0, i)) for i in range(20)])
    assert value == pytest.approx((1 + 0 + 0 + 4) / 4, abs=0.03)


def test_infidelity_in_closed_form_over_sets_of_two():
    # E[(Σ_S e)²] over pairs of four parts = (3 Σ e² + 2 Σ_{i<j} e_i e_j) / 6
    off = np.array([1.0, -2.0, 0.5, 3.0])
    expected = (3 * (off**2).sum() + off.sum() ** 2 - (off**2).sum()) / 6
    assert Infidelity(40_000, 0.5)(judged(WEIGHTS + off), rng()) == pytest.approx(expected, rel=0.03)


@given(some, st.floats(0.1, 10))
def test_the_best_scaling_makes_units_irrelevant(scores, scale):
    case = judged(scores, (4.0, 2.0, 1.0, -3.0, 0.5, 0.1))
    plain, larger = (Infidelity(scaled=True)(case.with_scores(s), rng()) for s in (scores, scale * scores))
    assert larger == pytest.approx(plain, rel=1e-6, abs=1e-9)
    assert plain <= Infidelity()(case, rng()) + 1e-9


def test_zeros_are_scaled_to_nothing_and_stay_finite():
    assert math.isfinite(Infidelity(scaled=True)(judged([0.0, 0, 0, 0]), rng()))


@given(some, st.floats(0.1, 10), st.floats(-5, 5))
def test_the_correlation_knows_neither_unit_nor_a_constant_of_all_parts(scores, scale, shift):
    case = judged(scores, (4.0, 2.0, 1.0, -3.0, 0.5, 0.1))
    plain, other = (FaithfulnessCorrelation()(case.with_scores(s), rng()) for s in (scores, scale * scores + shift))
    if not math.isnan(plain) and np.ptp(scores) > 1e-3:
        assert other == pytest.approx(plain, abs=1e-6)


def test_a_correlation_with_what_does_not_vary_is_not_defined():
    assert math.isnan(FaithfulnessCorrelation()(judged([1.0, 1.0, 1.0, 1.0]), rng()))
    assert math.isnan(FaithfulnessCorrelation()(judged([1.0, 2.0, 3.0, 4.0], (0.0, 0.0, 0.0, 0.0)), rng()))


@given(arrays(np.float64, 9, elements=st.floats(-9, 9)), arrays(np.float64, 9, elements=st.floats(-9, 9)))
def test_the_correlation_is_pearsons(one, other):
    if np.ptp(one) > 1e-3 and np.ptp(other) > 1e-3:
        assert pearson(one, other) == pytest.approx(float(pearsonr(one, other)[0]), abs=1e-9)


def test_completeness_by_hand():
    assert Completeness()(judged([4.0, 2.0, 1.0, -1.0]), rng()) == pytest.approx(2 / 4)
    assert Completeness(relative=False)(judged([4.0, 2.0, 1.0, -1.0]), rng()) == pytest.approx(2.0)
    assert math.isnan(Completeness()(judged([1.0, 0, 0, 0], (1.0, -1.0, 2.0, -2.0)), rng()))  # nothing to add up to


def test_shapley_values_of_a_net_are_complete():
    net, d = Net(5, 2), 5
    value = {tuple(mask): float(net(mask[None].astype(float))[0]) for mask in all_masks(d)}
    shapley = np.zeros(d)
    for mask in all_masks(d):
        for i in np.flatnonzero(~mask):
            joined = mask.copy()
            joined[i] = True
            size = int(mask.sum())
            weight = math.factorial(size) * math.factorial(d - size - 1) / math.factorial(d)
            shapley[i] += weight * (value[tuple(joined)] - value[tuple(mask)])
    assert Completeness()(Judged(question(net, Bits(d)), shapley), rng()) == pytest.approx(0, abs=1e-9)


@given(st.integers(1, 40), st.floats(0.01, 0.99))
def test_sets_have_the_size_asked_for(d, share):
    hidden = hidden_sets(d, 7, share, rng())
    assert hidden.shape == (7, d)
    assert set(hidden.sum(axis=1)) == {min(max(round(share * d), 1), max(d - 1, 1))}


def test_every_part_is_hidden_as_often_as_any_other():
    often = hidden_sets(5, 20_000, 0.4, rng()).mean(axis=0)
    np.testing.assert_allclose(often, 0.4, atol=0.015)


@pytest.mark.parametrize("wrong", [lambda: Infidelity(0), lambda: Infidelity(share=1.0), lambda: FaithfulnessCorrelation(True),
                                   lambda: FaithfulnessCorrelation(share=0)])
def test_what_are_no_sets_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        wrong()


def test_the_best_scaling_does_not_turn_scores_round():
    truth = np.array(WEIGHTS)
    assert Infidelity(scaled=True)(judged(truth), rng()) == pytest.approx(0, abs=1e-20)
    assert Infidelity(scaled=True)(judged(-truth), rng()) == Infidelity(scaled=True)(judged(0 * truth), rng()) > 1
