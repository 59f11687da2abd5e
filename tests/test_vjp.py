"""Gradients through what CheckedModel does to a model's outputs, against central differences of the scores."""

from dataclasses import dataclass

import numpy as np
import pytest

import whytrust as wt
from whytrust.checked import CheckedModel, Differentiable, DifferentiableModel

BATCH = np.random.default_rng(0).normal(size=(3, 4))


@dataclass(frozen=True)
class Quadratic:
    """outputs[k] = xᵀ A_k x: the gradient is (A_k + A_kᵀ) x."""

    matrices: tuple

    def __call__(self, batch):
        return np.stack([np.einsum("ni,ij,nj->n", batch, np.array(a), batch) for a in self.matrices], axis=1)

    def pullback(self, batch, preprocess):
        assert preprocess is None
        return self(batch), lambda weights: sum(
            weights[:, k, None] * (batch @ (np.array(a) + np.array(a).T)) for k, a in enumerate(self.matrices))


def quadratic(outputs, **options):
    random = np.random.default_rng(1)
    return DifferentiableModel(Quadratic(tuple(tuple(map(tuple, random.normal(size=(4, 4)))) for _ in range(outputs))), **options)


def central_differences(model, batch, weights, step=1e-6):
    gradient = np.empty_like(batch)
    for index in np.ndindex(*batch.shape):
        moved = []
        for sign in (1, -1):
            shifted = batch.copy()
            shifted[index] += sign * step
            moved.append((weights * model(shifted)).sum())
        gradient[index] = (moved[0] - moved[1]) / (2 * step)
    return gradient


@pytest.mark.parametrize("model", [
    quadratic(3), quadratic(1), quadratic(3, output="logit"), quadratic(1, output="logit"),
    quadratic(1, output="logit", threshold=0.3), quadratic(2, output="logit", threshold=0.7),
], ids=str)
def test_vjp_is_the_gradient_of_the_weighted_scores(model):
    weights = np.random.default_rng(2).normal(size=model(BATCH).shape)
    scores, gradient = model.vjp(BATCH, weights)
    np.testing.assert_array_equal(scores, model(BATCH))
    np.testing.assert_allclose(gradient, central_differences(model, BATCH, weights), rtol=1e-5, atol=1e-7)


def test_one_probability_pulls_back_through_both_of_its_columns():
    @dataclass(frozen=True)
    class Share:
        def __call__(self, batch):
            return batch.mean(axis=1) / 10 + 0.5

        def pullback(self, batch, preprocess):
            return self(batch), lambda weights: np.repeat(weights, 4, axis=1) / 40

    model = DifferentiableModel(Share(), threshold=0.5)
    weights = np.array([[0.2, 0.7], [0.0, 1.0], [1.0, 0.0]])
    np.testing.assert_allclose(model.vjp(BATCH, weights)[1], central_differences(model, BATCH, weights), atol=1e-8)


def test_weights_may_be_a_function_of_the_scores():
    model = quadratic(3, output="logit")
    loss_weights = -1 / model(BATCH) * np.eye(3)  # of the cross-entropy with targets 0, 1, 2
    np.testing.assert_array_equal(model.vjp(BATCH, lambda scores: -1 / scores * np.eye(3))[1], model.vjp(BATCH, loss_weights)[1])


def test_differentiable_is_a_type():
    assert isinstance(quadratic(2), Differentiable)
    assert not isinstance(CheckedModel(Quadratic(())), Differentiable)
    assert isinstance(wt.model(quadratic(2), classes=["a", "b"]), Differentiable)


@pytest.mark.parametrize(("pull", "message"), [
    (lambda w: np.zeros((3, 5)), r"gradients shaped like its inputs, \(3, 4\), got \(3, 5\)"),
    (lambda w: np.full((3, 4), np.nan), "NaN or infinite"),
])
def test_a_gradient_that_is_none_is_one_clear_error(pull, message):
    @dataclass(frozen=True)
    class Bad:
        def pullback(self, batch, preprocess):
            return np.zeros((3, 2)), pull

    with pytest.raises(ValueError, match=message):
        DifferentiableModel(Bad()).vjp(BATCH, np.ones((3, 2)))


def test_weights_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"one number for each score: expected \(3, 2\), got \(3,\)"):
        quadratic(2).vjp(BATCH, np.ones(3))


@pytest.mark.parametrize(("model", "words"), [
    (CheckedModel(len, name="f"), "f (a function of a batch): scores as they come, classes not named"),
    (CheckedModel(len, classes=("no", "yes"), threshold=0.4, name="f"), "2 classes (no, yes), label: yes above 0.4, no gradients"),
    (quadratic(3, output="logit", classes=("a", "b", "c")), "probabilities from its logits, 3 classes (a, b, c), label: the largest"),
])
def test_a_model_says_what_it_is_and_how_labels_are_decided(model, words):
    assert words in str(model)
