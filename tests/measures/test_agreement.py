"""Agreement of two explanations: by hand, by scipy, and what must always hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr

from whytrust.measures.agreement import distance, location_of_mass, mass_shift, moment, rank_correlation, top_overlap, unit

scores = arrays(np.float64, st.integers(2, 12), elements=st.floats(-5, 5).map(lambda x: round(x, 3)))
pairs = st.integers(2, 12).flatmap(lambda n: st.tuples(*[arrays(np.float64, n, elements=st.integers(-4, 4).map(float))] * 2))


def test_the_centre_of_mass_of_the_papers_formula_by_hand():
    assert location_of_mass(np.array([1.0, 0.0, 3.0])) == pytest.approx((0 * 1 + 2 * 3) / 4)
    assert location_of_mass(np.array([0.5, -0.25, 0.25])) == pytest.approx((-0.25 + 0.5) / 0.5)
    assert mass_shift(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 1.0])) == pytest.approx(1.5)


def test_the_authors_moment_by_hand():
    assert moment(np.array([1.0, 0.0, 3.0])) == pytest.approx(2 * 3 / 3)
    assert moment(np.array([0.3, -0.1, -0.2])) == pytest.approx((-0.1 - 0.4) / 3)  # where the scores cancel out, too


def test_scores_that_cancel_out_lie_nowhere_rather_than_infinitely_far():
    assert math.isnan(location_of_mass(np.array([0.3, -0.1, -0.2])))
    assert math.isnan(location_of_mass(np.zeros(4)))
    assert math.isnan(mass_shift(np.array([1.0, -1.0]), np.array([1.0, 0.0])))


def test_distance_and_unit_length_by_hand():
    assert distance(np.array([1.0, 2.0]), np.array([4.0, -2.0])) == 5.0
    np.testing.assert_allclose(unit(np.array([3.0, -4.0])), [0.6, -0.8])
    assert not unit(np.zeros(3)).any()


def test_the_overlap_of_top_halves_by_hand():
    assert top_overlap(np.array([9.0, -8.0, 1.0, 0.0]), np.array([5.0, 0.1, -7.0, 0.0])) == 0.5
    assert top_overlap(np.array([3.0, 2.0, 1.0]), np.array([3.0, 1.0, 2.0])) == 1.0  # the first of three
    assert top_overlap(np.array([1.0]), np.array([-2.0])) == 1.0
    assert top_overlap(np.array([1.0, 1.0, 1.0, 1.0]), np.array([4.0, 3.0, 2.0, 1.0])) == 0.5  # a tie says nothing: chance


@given(pairs)
def test_rank_correlation_is_spearmans_with_ties(pair):
    one, other = pair
    if np.ptp(one) and np.ptp(other):
        assert rank_correlation(one, other) == pytest.approx(float(spearmanr(one, other)[0]), abs=1e-12)


def test_an_order_that_is_no_order_agrees_with_its_like_alone():
    assert rank_correlation(np.zeros(4), np.ones(4)) == 1.0
    assert rank_correlation(np.zeros(4), np.arange(4.0)) == 0.0


@given(scores, st.integers(0, 2**32 - 1))
def test_roundings_make_no_order(values, seed):
    noise = 1e-15 * np.abs(values).max() * np.random.default_rng(seed).standard_normal(len(values))
    assert rank_correlation(values, values + noise) == 1.0
    assert top_overlap(values, values + noise) == pytest.approx(1.0)


@given(pairs)
def test_agreement_is_symmetric_and_bounded(pair):
    one, other = pair
    assert rank_correlation(one, other) == pytest.approx(rank_correlation(other, one))
    assert -1 <= rank_correlation(one, other) <= 1
    assert top_overlap(one, other) == pytest.approx(top_overlap(other, one))
    assert 0 <= top_overlap(one, other) <= 1 + 1e-12


@given(pairs, st.floats(0.01, 100))
def test_the_scale_of_scores_does_not_matter_to_ranks_tops_and_places(pair, scale):
    one, other = pair
    assert rank_correlation(one, scale * other) == pytest.approx(rank_correlation(one, other))
    assert top_overlap(one, scale * other) == pytest.approx(top_overlap(one, other))
    np.testing.assert_allclose(location_of_mass(scale * one), location_of_mass(one), atol=1e-9)


@pytest.mark.parametrize(("one", "other"), [([1.0, 2.0], [1.0]), ([[1.0]], [[1.0]])])
def test_explanations_of_other_parts_are_refused(one, other):
    with pytest.raises(ValueError, match="the same parts"):
        rank_correlation(np.array(one), np.array(other))


@pytest.mark.parametrize("values", [[math.nan, 1.0], [math.inf, 0.0], []])
def test_what_is_no_list_of_numbers_is_refused(values):
    with pytest.raises(ValueError, match="finite"):
        rank_correlation(np.array(values), np.array(values))


def test_a_share_must_be_one():
    with pytest.raises(ValueError, match="share must lie"):
        top_overlap(np.ones(2), np.ones(2), 0.0)
