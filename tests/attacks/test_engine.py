"""The active set, the failures, and the fresh look at the model."""

import numpy as np
import pytest
from fooled import Fickle, Linear, Poisoned, linear, random_linear, small_net

import whytrust as wt
from whytrust.attacks import PGD, engine
from whytrust.checked import CheckedModel, DifferentiableModel

X = np.random.default_rng(100).normal(size=(20, 16))


def test_inputs_that_are_done_cost_nothing_more():
    model = random_linear(3, 16)
    stopping, running = (PGD(epsilon=1.0, step=0.02, iterations=60, units="input", stop=s)(model, X) for s in ("success", "never"))
    assert stopping.success.all()
    assert running.passes == 20 * 60
    assert stopping.passes == (stopping.iterations + 1).sum() < running.passes / 2


def test_batches_are_kept_full():
    sizes = []

    class Counting(Linear):
        def pullback(self, batch, preprocess):
            sizes.append(len(batch))
            return super().pullback(batch, preprocess)

    honest = random_linear(3, 16).function
    model = DifferentiableModel(Counting(honest.weights, honest.constants), output="logit")
    found = PGD(epsilon=1.0, step=0.02, iterations=60, units="input")(model, X, batch_size=4)
    assert max(sizes) == 4
    total = (found.iterations + 1).sum()
    assert sum(sizes) == found.passes == total
    # Only while the last inputs finish may a batch be smaller.
    assert [s for s in sizes if s < 4] == sorted((s for s in sizes if s < 4), reverse=True)
    assert sizes[-1] < 4
    assert sizes[: len(sizes) // 2] == [4] * (len(sizes) // 2)


def test_an_input_that_is_fooled_at_once_takes_no_step():
    found = PGD(random_start=True, epsilon=1.0, units="input", iterations=3)(linear([[1.0], [-1.0]]), np.full((40, 1), 1e-9))
    assert (found.iterations == 0).any()
    assert found.success[found.iterations == 0].all()


def test_memory_stays_flat():
    assert engine.batch_size_for(3 * 224 * 224, None) == 8
    assert engine.batch_size_for(28 * 28, None) == engine.LARGEST
    assert engine.batch_size_for(10**9, None) == 1
    assert engine.batch_size_for(28 * 28, 5) == 5


def test_verification_catches_a_model_that_answers_differently_when_asked_again():
    honest = linear([[1.0, 0.0], [0.0, 1.0]])
    model = DifferentiableModel(Fickle(honest.function), output="logit", name="fickle")
    found = PGD(epsilon=2.0, units="input")(model, np.array([[0.5, 0.0], [0.6, 0.0]]))
    assert not found.success.any()
    assert found.unconfirmed.tolist() == [0, 1]
    assert "not in a fresh forward pass" in str(found)


def test_a_flat_model_is_reported_as_flat_not_as_robust():
    found = PGD()(linear(np.zeros((2, 4)), [1.0, 0.0]), np.zeros((1, 4)))
    assert not found.success.any()
    assert "gradient of zero" in str(found)
    assert "output='logit'" not in str(found)  # it has that already


def test_a_flat_model_of_probabilities_is_told_of_logits():
    found = PGD()(linear(np.zeros((2, 4)), [1.0, 0.0], output="probability"), np.zeros((1, 4)))
    assert "give its logits with output='logit'" in str(found)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_nan_gradient_fails_one_input_and_no_other():
    honest = random_linear(3, 16)
    x = X.copy()
    x[5, 0] = 99.0
    model = DifferentiableModel(Poisoned(honest.function, 99.0), output="logit")
    attack = PGD(epsilon=0.6, step=0.02, units="input")
    found, without = attack(model, x), attack(honest, np.delete(x, 5, axis=0), ids=[i for i in range(20) if i != 5])
    assert list(found.errors) == [5]
    assert "finite gradients" in str(found.errors[5])
    assert found.adversarial[5] is None
    for ours, theirs in zip([a for a in found if a is not None], without, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert found.labels[5] == -1
    assert np.isnan(found.linf[5])
    assert found.success_rate == without.success_rate
    assert "1 failed" in str(found)
    with pytest.raises(ValueError, match="finite gradients"):
        found[5]
    with pytest.raises(ValueError, match="input 5 failed"):
        np.asarray(found)


@pytest.mark.parametrize(("bad", "kind", "message"), [
    (np.full(16, np.nan), ValueError, "finite numbers, got 16"),
    (np.full(16, 9.0), ValueError, "within the bounds"),
    (np.zeros(15), ValueError, "raised ValueError"),
    (np.array(["a"] * 16), TypeError, "changes numbers"),
    ("a text", TypeError, "swapping words"),
    (np.zeros(0), TypeError, "changes numbers"),
], ids=["NaN", "out of bounds", "wrong shape", "strings", "text", "empty"])
def test_a_bad_input_is_reported_and_the_others_go_on(bad, kind, message):
    good = np.clip(X[0], -5, 5)
    found = PGD(units="input", bounds=(-5, 5), epsilon=0.5)(random_linear(3, 16), [good, bad, good])
    assert list(found.errors) == [1]
    assert isinstance(found.errors[1], kind)
    assert message in str(found.errors[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert found.table()[1]["error"].startswith(kind.__name__)
    with pytest.raises(kind):
        PGD(units="input", bounds=(-5, 5), epsilon=0.5)(random_linear(3, 16), [bad])


def test_a_target_that_is_said_already_is_an_error_that_names_the_input():
    model = random_linear(3, 16, classes=("cat", "dog", "owl"))
    labels = model(X).argmax(axis=1)
    found = PGD(epsilon=1.0, units="input")(model, X, "dog")
    assert sorted(found.errors) == np.flatnonzero(labels == 1).tolist()
    first = min(found.errors)
    assert f"input {first} is classified as dog" in str(found.errors[first])
    assert all(found.targets[i] == 1 for i in range(20) if i not in found.errors)


@pytest.mark.parametrize(("targets", "message"), [
    (7, "index from 0 to 2"), ("fish", "must be an index"), ([0, 1], "expected 20, got 2"), ([7] * 20, "index from 0 to 2")])
def test_a_target_that_does_not_exist_is_refused(targets, message):
    with pytest.raises(ValueError, match=message):
        PGD()(random_linear(3, 16), X, targets)


def test_one_wrong_target_of_many_fails_its_input_alone():
    model = random_linear(3, 16)
    targets = ((model(X).argmax(axis=1) + 1) % 3).tolist()
    targets[4] = 17
    assert list(PGD(iterations=2)(model, X, targets).errors) == [4]


def test_a_regressor_has_no_labels_to_change():
    with pytest.raises(TypeError, match="regressor"):
        PGD()(linear(np.ones((1, 16)), output=None), X)


def test_a_black_box_has_no_gradients():
    with pytest.raises(TypeError, match="pass the torch module itself"):
        PGD()(CheckedModel(lambda batch: np.zeros((len(batch), 2)), name="box"), X)


@pytest.mark.parametrize(("options", "message"), [
    ({"inside": np.ones(15, dtype=bool)}, "inside must be booleans shaped like an input"),
    ({"inside": np.ones(16)}, "inside must be booleans"),
    ({"inside": np.zeros(16, dtype=bool)}, "true somewhere"),
    ({"inside": [np.ones(16, dtype=bool)]}, "expected 20, got 1"),
    ({"ids": [1]}, "ids must be"), ({"batch_size": 0}, "batch_size must be"), ({"seed": -1}, "seed must be"),
])
def test_arguments_that_do_not_fit_are_one_clear_error(options, message):
    with pytest.raises(ValueError, match=message):
        PGD()(random_linear(3, 16), X, **options)


def test_inputs_of_several_shapes_are_attacked_each_among_its_like():
    import torch

    class AnySize(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = small_net(3)[0]

        def forward(self, x):
            return self.inner(x).mean(dim=(2, 3))[:, :3] * 10

    images = [np.random.default_rng(i).uniform(size=(1, 6 + i % 2, 6)) for i in range(4)]
    found = PGD(iterations=3)(wt.model(AnySize(), output="logit"), images)
    assert [a.shape for a in found.adversarial] == [i.shape for i in images]
    with pytest.raises(ValueError, match="shapes differ"):
        np.asarray(found)
