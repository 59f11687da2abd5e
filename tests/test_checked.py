import pickle

import numpy as np
import pytest

import whytrust as wt
from whitebox import Additive, Bits, question
from whytrust.core import generator

BATCH = np.zeros((3, 2))


@pytest.mark.parametrize(("returned", "message"), [
    (np.zeros((2, 2)), r"expected \(3, classes\), got shape \(2, 2\)"),
    (np.zeros((3, 2, 1)), "got shape"),
    (np.zeros((3, 0)), "got shape"),
    (0.5, "got shape"),
    ([[1, np.nan]] * 3, "finite scores, got nan for input 0"),
    ([[1.0, 2.0], [np.inf, 0.0], [0.0, 0.0]], "got inf for input 1 of a batch of 3"),
    ("yes", "must return numbers"), (["1", "0", "1"], "must return numbers"), ([1j, 2j, 3j], "must return numbers"),
    ([[1], [1, 2], [3]], "must return numbers"),
    (None, "finite scores|must return"),
])
def test_answers_that_are_not_scores_are_one_clear_error(returned, message):
    with pytest.raises(ValueError, match=message):
        wt.model(lambda batch: returned)(BATCH)


def test_a_model_that_raises_is_named_with_what_it_was_given():
    def broken(batch):
        raise KeyError("missing column")

    with pytest.raises(ValueError, match=r"broken raised KeyError: 'missing column' on a batch of 3 inputs \(array \(3, 2\)"):
        wt.model(broken)(BATCH)


def test_one_column_is_a_regressor_without_labels():
    model = wt.model(lambda batch: np.arange(len(batch)))
    assert model(BATCH).shape == (3, 1)
    with pytest.raises(TypeError, match="has no labels"):
        model.labels(model(BATCH))


def test_a_threshold_makes_one_output_two_classes():
    model = wt.model(lambda batch: [0.2, 0.51, 0.7], threshold=0.51)
    np.testing.assert_allclose(model(BATCH), [[0.8, 0.2], [0.49, 0.51], [0.3, 0.7]])
    np.testing.assert_array_equal(model.labels(model(BATCH)), [0, 0, 1])


def test_logits_become_probabilities():
    one = wt.model(lambda batch: [0.0, 2.0, -1000.0], output="logit")
    np.testing.assert_allclose(one(BATCH)[:, 1], [0.5, 1 / (1 + np.exp(-2)), 0])
    many = wt.model(lambda batch: [[1.0, 2.0, 3.0]] * 3, output="logit")
    np.testing.assert_allclose(many(BATCH).sum(axis=1), 1)
    np.testing.assert_allclose(many(BATCH)[0, 2] / many(BATCH)[0, 1], np.e)


@pytest.mark.parametrize(("options", "message"), [
    ({"output": "probability"}, "if these are logits pass output='logit'"),
    ({"classes": ["a", "b", "c"]}, "returns 2 columns, got 3 names"),
    ({"classes": ["a", "a"]}, "'a' more than once"), ({"threshold": 1.5}, "probability between 0 and 1.*leave it out for margins"),
    ({"threshold": "0.5"}, "between 0 and 1, got '0.5'"), ({"threshold": 0.5}, "output='logit', if they are margins.*leave threshold out"),
    ({"output": "odds"}, "output must be"), ({"layout": "HWC"}, "layout must be"),
])
def test_options_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        wt.model(lambda batch: [[-3.0, 4.0]] * len(batch), **options)(BATCH)


def test_a_misspelt_option_names_its_neighbour():
    with pytest.raises(TypeError, match="did you mean 'threshold'"):
        wt.model(len, treshold=0.5)


@pytest.mark.parametrize("thing", [3, "model", None, Additive])
def test_things_that_are_no_models_are_refused(thing):
    with pytest.raises(TypeError, match="a model must be"):
        wt.model(thing)


def test_scikit_learn_models_of_every_kind():
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    rows, labels = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, labels)
    model = wt.model(pipeline)
    np.testing.assert_array_equal(model(rows), pipeline.predict_proba(rows))
    assert model.classes == ("0", "1", "2")
    assert model.name == "LogisticRegression"
    np.testing.assert_array_equal(wt.model(LinearRegression().fit(rows, labels))(rows)[:, 0],
                                  LinearRegression().fit(rows, labels).predict(rows))
    margin = RidgeClassifier().fit(rows, labels)
    np.testing.assert_array_equal(wt.model(margin)(rows), margin.decision_function(rows))
    two = LinearSVC().fit(rows[:100], labels[:100])
    model = wt.model(two)
    np.testing.assert_array_equal(model.labels(model(rows[:100])), two.predict(rows[:100]))


def test_class_names_that_are_numbers_mean_the_class():
    model = wt.model(lambda batch: np.tile([0.1, 0.2, 0.7], (len(batch), 1)), classes=[1, 2, 3])
    assert [model.class_index(name, 3) for name in ("1", "3", "0", "-1")] == [0, 2, 0, 2]
    with pytest.raises(ValueError, match="could mean the class named '1' or the one at position 1"):
        model.class_index(1, 3)
    with pytest.raises(ValueError, match="one of the model's classes"):
        model.class_index("²", 3)


def test_an_unfitted_estimator_says_so():
    from sklearn.linear_model import LogisticRegression

    with pytest.raises(ValueError, match="NotFittedError"):
        wt.model(LogisticRegression())(BATCH)


def test_a_torch_module_is_left_as_it_was_found():
    import torch

    net = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 3))
    net.train()
    net[2].eval()
    model = wt.model(net)
    first = model(BATCH)
    np.testing.assert_array_equal(first, model(BATCH))  # dropout is off
    assert [m.training for m in net] == [True, True, False]
    assert all(p.grad is None for p in net.parameters())
    assert net.training


def test_a_wrapped_model_pickles():
    model = wt.model(Additive((1.0, 2.0)), classes=["x"])
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again(BATCH), model(BATCH))


def test_a_mask_is_asked_once_whoever_asks(rng):
    calls = []
    asked = question(lambda b: calls.append(len(b)) or Additive((1.0, 2.0, 3.0))(b), Bits(3))
    masks = np.array([[1, 0, 1], [1, 0, 1], [0, 0, 1], [1, 1, 1]], bool)
    first = asked.score(masks, rng)
    np.testing.assert_allclose(first, [4.3, 4.3, 3.3, 6.3])
    np.testing.assert_array_equal(asked.score(masks[::-1], rng), first[::-1])
    assert sum(calls) == 3  # two different masks, and the input itself


def test_random_fills_are_remembered_by_the_state_of_the_generator():
    calls = []
    parts = Bits(3, deterministic=False, noise=1.0)
    asked = question(lambda b: calls.append(len(b)) or Additive((1.0, 2.0, 3.0))(b), parts)
    masks = np.zeros((5, 3), bool)
    one, two = generator(1), generator(1)
    np.testing.assert_array_equal(asked.score(masks, one), asked.score(masks, two))
    assert one.random() == two.random()
    assert sum(calls) == 5
    assert (asked.score(masks, generator(2)) != asked.score(masks, generator(1))).any()


@pytest.mark.parametrize("size", [0, -1, 2.5, "8", True])
def test_batch_sizes_are_whole_and_positive(size):
    with pytest.raises(ValueError, match="batch_size must be"):
        question(Additive((1.0,)), Bits(1), batch_size=size)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", True])
def test_seeds_are_whole_and_not_negative(seed):
    with pytest.raises(ValueError, match="seed must be"):
        generator(seed)


def test_generators_of_different_cases_differ_and_repeat():
    draws = {case: generator(0, *case).random() for case in [(), (1,), (2,), ("a",), ("a", 1)]}
    assert len(set(draws.values())) == 5
    assert draws[("a", 1)] == generator(0, "a", 1).random()


def test_a_model_that_returns_nothing_is_told_so():
    with pytest.raises(ValueError, match="must return one row of scores for each input, got None"):
        wt.model(lambda batch: None)([1])


def test_what_a_model_raises_comes_in_one_line():
    def model(batch):
        raise ValueError("first\n  second")

    with pytest.raises(ValueError, match="raised ValueError: first second on a batch of 1"):
        wt.model(model)([1])
