"""With the lime package's own design matrix and model outputs, our fits are its fits."""

import numpy as np
import pytest

from whytrust import local


@pytest.fixture
def lime_fits(monkeypatch):
    """What lime gives its regression, and what it makes of it."""
    from lime import lime_base

    fits = []
    original = lime_base.LimeBase.explain_instance_with_data

    def recorded(self, data, labels, distances, label, num_features, *rest, **named):
        found = original(self, data, labels, distances, label, num_features, *rest, **named)
        fits.append((np.asarray(data), labels[:, label], self.kernel_fn(distances), num_features, found))
        return found

    monkeypatch.setattr(lime_base.LimeBase, "explain_instance_with_data", recorded)
    return fits


def check_against(fit, selection):
    data, scores, weights, features, (intercept, exp, score, local_prediction) = fit
    how = local.Fitting(selection, features, 1.0, "linear")
    ours = local.fit(local.plain_sample(data, scores, weights), None, how, data[0])
    theirs = np.zeros(data.shape[1])
    for part, weight in exp:
        theirs[part] = weight
    np.testing.assert_allclose(ours.weights, theirs, atol=1e-6)
    assert ours.intercept == pytest.approx(intercept, abs=1e-6)
    assert ours.fidelity == pytest.approx(score, abs=1e-6)
    assert ours.intercept + ours.weights @ data[0] == pytest.approx(np.ravel(local_prediction)[0], abs=1e-6)


TEXT = "a plain story told with great warmth and an eye for the small things that make a life worth watching"


@pytest.mark.parametrize(("selection", "theirs", "features"), [
    ("auto", "auto", 4), ("auto", "auto", 9), ("forward", "forward_selection", 5), ("highest_weights", "highest_weights", 5),
    ("lasso_path", "lasso_path", 6), ("none", "none", 100)])
def test_text_fits_are_limes(lime_fits, selection, theirs, features):
    from lime.lime_text import LimeTextExplainer

    def model(texts):
        p = np.array([1 / (1 + np.exp(-("great" in t) + 2 * ("plain" in t) - 0.3 * len(t.split()) + 3)) for t in texts])
        return np.column_stack([1 - p, p])

    LimeTextExplainer(feature_selection=theirs, random_state=0).explain_instance(TEXT, model, num_features=features,
                                                                                 num_samples=500)
    check_against(lime_fits[0], selection)


def test_image_fits_are_limes(lime_fits, rng):
    from lime.lime_image import LimeImageExplainer

    image = rng.random((12, 12, 3))
    labels = np.arange(144).reshape(12, 12) // 16
    weights = rng.normal(size=(12, 12, 3))
    model = lambda b: np.column_stack([v := np.tanh((b * weights).sum(axis=(1, 2, 3))), -v])  # noqa: E731
    LimeImageExplainer(random_state=0).explain_instance(image, model, top_labels=1, num_samples=300, num_features=9,
                                                        segmentation_fn=lambda _: labels)
    check_against(lime_fits[0], "auto")


def test_table_fits_are_limes(lime_fits, rng):
    from lime.lime_tabular import LimeTabularExplainer

    background = rng.normal(size=(300, 7))
    model = lambda b: np.column_stack([p := 1 / (1 + np.exp(-b[:, 0] + b[:, 1] * b[:, 2])), 1 - p])  # noqa: E731
    for discretize in (True, False):
        LimeTabularExplainer(background, random_state=0, discretize_continuous=discretize).explain_instance(
            background[0], model, num_features=5, num_samples=600)
    for fit in lime_fits:
        check_against(fit, "auto")
