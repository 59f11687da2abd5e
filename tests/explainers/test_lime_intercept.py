"""LIME with scores centred by their plain mean, as the paper's experiments had it: scikit-learn's LARS is the oracle."""

import numpy as np
import pytest
from sklearn.linear_model import lars_path

from whitebox import Additive, Bits, question
from whytrust import local
from whytrust.designs import Kernel, plain_masks
from whytrust.explainers.lime import Lime


def oracle(masks, weights, scores, most):
    """The recipe in the language of scikit-learn: rows and centred scores times the root of the weights, no intercept."""
    roots = np.sqrt(weights)
    X, y = masks * roots[:, None], (scores - scores.mean()) * roots
    path = lars_path(X, y, method="lasso")[2].T
    chosen = next(np.flatnonzero(point) for point in path[::-1] if np.count_nonzero(point) <= most)
    return chosen, np.linalg.lstsq(X[:, chosen], y, rcond=None)[0]


@pytest.mark.parametrize("seed", range(4))
def test_centred_by_the_plain_mean_it_does_what_lars_does(seed):
    rng = np.random.default_rng(seed)
    masks, weights = plain_masks(14, "uniform_kept", Kernel("cosine", 0.25), 400, rng)
    scores = np.tanh(masks @ rng.normal(size=14) + masks[:, 0] * masks[:, 3])
    chosen, expected = oracle(masks.astype(float), weights, scores, 5)
    how = local.Fitting("lasso_path", 5, 0.0, "linear", "mean")
    fit = local.fit(local.plain_sample(masks.astype(float), scores, weights), None, how, np.ones(14))
    assert sorted(fit.active) == sorted(chosen)
    np.testing.assert_allclose(fit.weights[chosen], expected, rtol=1e-8)
    assert fit.intercept == pytest.approx(scores.mean())


def test_a_fixed_intercept_makes_weights_wrong_where_a_fitted_one_is_exact(rng):
    truth = np.linspace(0, 1, 12)
    asked = question(Additive(tuple(truth)), Bits(12))
    fitted = Lime(samples=800, design="plain", features="all")(asked, rng)
    fixed = Lime(samples=800, design="plain", features="all", intercept="mean")(asked, rng)
    np.testing.assert_allclose(fitted.scores, truth, atol=1e-8)
    assert np.abs(fixed.scores - truth).max() > 0.01
    assert fixed.standard_errors is not None
    assert np.isfinite(fixed.standard_errors).all()


def test_it_needs_masks_that_are_drawn_one_by_one():
    with pytest.raises(ValueError, match="needs design='plain'"):
        Lime(intercept="mean")
    with pytest.raises(ValueError, match="intercept must be one of fitted, mean"):
        Lime(intercept="none")
