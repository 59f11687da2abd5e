"""Parzen windows themselves, against finite differences, naive loops and scipy's densities."""


import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import gaussian_kde

from explainers.parzen_truth import naive_probability
from whitebox import examples
from whytrust.explainers import windows
from whytrust.explainers.windows import Rows, Windows, cross_validated, folds_of


@examples(30)
@given(st.integers(0, 10**6), st.sampled_from([0.5, 1.0, 3.0]), st.booleans())
def test_the_gradient_is_that_of_finite_differences(seed, width, as_sparse):
    rng = np.random.default_rng(seed)
    vectors, x = (rng.random((30, 4)) < 0.5).astype(float) if as_sparse else rng.normal(size=(30, 4)), rng.normal(size=4)
    worth = (rng.random(30) < 0.4).astype(float)
    made = Windows(Rows(sparse.csr_array(vectors) if as_sparse else vectors), width)
    assert made.value(x, worth) == pytest.approx(naive_probability(x, vectors, worth, width), abs=1e-10)
    step = 1e-5 * np.eye(4)
    slopes = [(naive_probability(x + s, vectors, worth, width) - naive_probability(x - s, vectors, worth, width)) / 2e-5
              for s in step]
    np.testing.assert_allclose(made.gradient(x, worth), slopes, atol=1e-6)


def test_the_gradient_is_the_closed_form_of_two_classes(rng):
    vectors, x, width = rng.normal(size=(40, 3)), rng.normal(size=3), 0.8
    ones = rng.random(40) < 0.5
    kernels = np.exp(-((x - vectors) ** 2).sum(axis=1) / (2 * width**2))
    sums = [kernels[ones == c].sum() for c in (False, True)]
    moments = [kernels[ones == c] @ (vectors[ones == c] - x) for c in (False, True)]
    truth = (sums[0] * moments[1] - sums[1] * moments[0]) / (width**2 * sum(sums) ** 2)
    np.testing.assert_allclose(Windows(Rows(vectors), width).gradient(x, ones.astype(float)), truth, rtol=1e-9)


@pytest.mark.parametrize("width", [0.3, 1.0])
def test_the_density_is_scipys(rng, width):
    # Whitened, so that scipy's kernel, which follows the data's covariance, is the same in all directions.
    values = rng.normal(size=(200, 2))
    values -= values.mean(axis=0)
    values = values @ np.linalg.inv(np.linalg.cholesky(np.cov(values.T))).T
    theirs, ours = gaussian_kde(values.T, bw_method=width), Windows(Rows(values), width)
    for x in rng.normal(size=(5, 2)):
        assert ours.log_density(x) == pytest.approx(float(theirs.logpdf(x)[0]), rel=1e-9)


@pytest.mark.parametrize("far", [10.0, 1e3, 1e8, 1e150])
@pytest.mark.parametrize("width", [1e-300, 1e-3, 1.0, 1e200])
def test_nothing_is_nan_however_far_away_or_narrow(rng, far, width):
    vectors = rng.normal(size=(20, 2))
    worth = (vectors[:, 0] > 0).astype(float)
    made = Windows(Rows(vectors), width)
    x = np.array([far, 0.1])
    assert -1e-12 <= made.value(x, worth) <= 1 + 1e-12
    assert np.isfinite(made.gradient(x, worth)).all()
    if width <= 1:
        assert made.value(x, worth) == pytest.approx(1.0, abs=1e-5)  # the nearest are all on that side


def test_slopes_beyond_any_number_are_refused():
    made = Windows(Rows(np.array([[1.0], [-1.0]])), 1e-200)
    with pytest.raises(ValueError, match="width must not be so small"):
        made.gradient(np.zeros(1), np.array([1.0, 0.0]))


def test_a_distance_beyond_any_number_is_refused():
    with pytest.raises(ValueError, match="within reach"):
        Windows(Rows(np.array([[1e10], [-1.0]])), 1.0).gradient(np.array([1e305]), np.array([1.0, 0.0]))


def test_arrays_are_standardised_as_one_in_pieces(rng, monkeypatch):
    values = rng.integers(0, 256, (50, 12)).astype(np.uint8)
    whole = Rows.standardised(values)
    monkeypatch.setattr(windows, "AT_ONCE", 8 * 12 * 7)
    pieces = Rows.standardised(values)
    units = (values - values.mean()) / values.std()
    for made in (whole, pieces):
        np.testing.assert_allclose(made.squares, (units**2).sum(axis=1))
        np.testing.assert_allclose(made.times(units[:3]), units[:3] @ units.T)
        np.testing.assert_allclose(made.weighed(np.arange(50.0)), np.arange(50.0) @ units)
        apart = ((units[:, None] - units[None]) ** 2).sum(axis=2)
        assert made.scale == pytest.approx(np.sqrt(apart.mean()))


def test_what_held_out_inputs_are_given_is_a_naive_loop_s(rng, monkeypatch):
    monkeypatch.setattr(windows, "AT_ONCE", 8 * 41 * 3)
    vectors, worth = rng.normal(size=(41, 3)), rng.random((41, 2))
    folds, held_out = folds_of(41)
    assert held_out.tolist() == list(range(41))
    assert sorted(np.bincount(folds)) == [8, 8, 8, 8, 9]
    found = cross_validated(Rows(vectors), worth, [0.4, 2.0], lambda given: given)
    for width, said in zip([0.4, 2.0], found, strict=True):
        truth = [naive_probability(vectors[i], vectors[folds != folds[i]], worth[folds != folds[i]], width) for i in held_out]
        np.testing.assert_allclose(said, truth, rtol=1e-9)


def test_of_very_many_inputs_some_are_predicted():
    folds, held_out = folds_of(200_000)
    assert len(folds) == 200_000
    assert len(held_out) == windows.LEAST_HELD_OUT
    assert len(set(held_out.tolist())) == len(held_out)
