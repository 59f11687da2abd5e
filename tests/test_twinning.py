"""wt.twins and wt.roar: nets whose twin is known to be another, explainers that see it and those that cannot."""

import json

import numpy as np
import pytest

import whytrust as wt

torch = pytest.importorskip("torch")


class Linear:
    """Logits by one template a class, in closed form."""

    kind = "a white box"

    def __init__(self, seed):
        self.weights = np.random.default_rng(seed).normal(size=(3, 6, 6))

    def __call__(self, batch):
        return np.tensordot(np.asarray(batch, float), self.weights, axes=([1, 2], [1, 2]))

    def pullback(self, batch, preprocess=None):
        return self(batch), lambda weights: np.tensordot(weights, self.weights, axes=1)


TRAINED, TWIN = wt.model(Linear(0), name="trained"), wt.model(Linear(1), name="twin")
PICTURES = list(np.random.default_rng(2).uniform(size=(24, 6, 6)))
LABELS = TRAINED(np.array(PICTURES)).argmax(axis=1)  # on which the trained model is right


def edges(question, rng):
    """Looks at the input alone."""
    picture = np.asarray(question.input[0])
    return wt.Explanation.of(question, "edges", question.parts.pool(np.round(np.abs(picture - 0.5), 1), "mean"))


def answers(question, rng):
    """Knows nothing but which class is asked for."""
    return wt.Explanation.of(question, "answers", np.random.default_rng(question.target).normal(size=question.d))


@pytest.fixture(scope="module")
def found():
    return wt.twins(TRAINED, TWIN, PICTURES, LABELS, {"gradient": "saliency", "blind": answers}, parts="grid:6x6", epsilon=0.3)


def test_the_gradient_of_a_linear_model_is_its_template_and_follows_the_net(found):
    row = {one["explainer"]: one for one in found.table()}["gradient"]
    assert row["like_untrained"] == pytest.approx(1)  # the input does not count
    assert row["like_trained"] < 0.5
    assert row["more_like_untrained"] == 1.0
    assert row["verdict"] == "follows the net"


def test_what_knows_the_answer_alone_does_not_see_the_net(found):
    row = {one["explainer"]: one for one in found.table()}["blind"]
    assert row["like_trained"] == row["like_untrained"] == pytest.approx(1)
    assert row["verdict"] == "does not see the net"


def test_enhanced_inputs_make_the_twin_right_and_random_scores_stand_beside(found):
    assert found.right["trained"] == 1.0
    assert found.right["raw"] < 0.7 < found.right["enhanced"]
    assert 2 < found.n <= found.of == 24
    random = {one["explainer"]: one for one in found.table()}["random"]
    assert abs(random["like_trained"]) < 0.2
    assert abs(random["like_untrained"]) < 0.2
    assert "follows the net" in str(found)
    assert json.dumps(found.to_json())


def test_the_same_call_gives_the_same_numbers(found):
    again = wt.twins(TRAINED, TWIN, PICTURES, LABELS, {"gradient": "saliency", "blind": answers}, parts="grid:6x6", epsilon=0.3)
    assert again.to_json() == found.to_json()


def test_an_explainer_that_fails_is_told_and_the_others_are_tried():
    def broken(question, rng):
        raise ValueError("no luck")

    found = wt.twins(TRAINED, TWIN, PICTURES[:4], LABELS[:4], {"broken": broken, "edges": edges}, parts="grid:6x6")
    assert found.failed["broken"] == "4 of 4 inputs, the first: ValueError: no luck"
    assert "edges" in found.found
    assert "failed on 4 of 4 inputs" in str(found)


def test_an_explainer_that_fails_once_is_judged_by_the_others():
    def once(question, rng):
        if np.allclose(question.input[0], PICTURES[1]):
            raise RuntimeError("no luck")
        return edges(question, rng)

    found = wt.twins(TRAINED, TWIN, PICTURES[:8], LABELS[:8], {"once": once}, parts="grid:6x6")
    assert "once" in found.found
    assert found.failed["once"].startswith("1 of 8 inputs")


def test_labels_of_a_series_go_by_their_place():
    pandas = pytest.importorskip("pandas")
    turned = pandas.Series(LABELS[:8], index=range(8)[::-1])
    one, other = (wt.twins(TRAINED, TWIN, PICTURES[:8], labels, "saliency", parts="grid:6x6") for labels in (LABELS[:8], turned))
    assert one.to_json() == other.to_json()


def test_where_no_input_is_right_for_both_it_says_what_to_do():
    found = wt.twins(TRAINED, TWIN, PICTURES[:6], (LABELS[:6] + 1) % 3, "saliency", parts="grid:6x6", epsilon=1e-6, step=1e-7)
    assert found.n == 0
    assert "enhance with a larger epsilon" in str(found)


@pytest.mark.parametrize(("x", "labels", "words"), [
    (PICTURES[0], LABELS[:1], "several inputs"), (PICTURES[:4], LABELS[:3], "the true class of each of 4"), (PICTURES[:2], 0, "true class of each")])
def test_what_cannot_be_compared_is_refused(x, labels, words):
    with pytest.raises(ValueError, match=words):
        wt.twins(TRAINED, TWIN, x, labels, parts="grid:6x6")


def test_a_model_without_gradients_cannot_be_enhanced():
    with pytest.raises(TypeError, match="gradients"):
        wt.twins(TRAINED, lambda batch: np.zeros((len(batch), 3)), PICTURES[:3], LABELS[:3], "occlusion", parts="grid:6x6")


# --- remove and retrain ------------------------------------------------------------------------------------------------


def pictures(n, seed):
    """The first pixel says the class, and nothing else does."""
    rng = np.random.default_rng(seed)
    some, labels = rng.uniform(0.4, 0.6, (n, 4, 4)), np.arange(n) % 2
    some[:, 0, 0] = labels
    return some, labels


def train(inputs, labels, seed):
    """Class 1 where the first pixel is above the mean of what it was in training; a coin where it never varied."""
    first = np.array(inputs)[:, 0, 0]
    level = first.mean()
    return lambda batch: np.column_stack([level - np.array(batch)[:, 0, 0], np.array(batch)[:, 0, 0] - level])


def test_without_the_pixel_that_says_it_accuracy_falls_to_the_first_class():
    learnt, tested = pictures(20, 0), pictures(10, 1)
    model = wt.model(train(*learnt, 0), name="first pixel")
    found = wt.roar(train, model, learnt, tested, "occlusion", parts="pixels", fill=0.5, shares=(0.1, 0.5))
    row = {one["explainer"]: one for one in found.table()}["occlusion"]
    assert row["whole"] == 1.0
    # The pixel is gone everywhere: all scores are equal, and the first class, half of the inputs, is said of all.
    assert [row["0.1 removed"], row["0.5 removed"]] == [0.5, 0.5]
    assert row["fall"] == 0.5
    chance = {one["explainer"]: one for one in found.table()}["random"]
    assert row["above_random"] == pytest.approx(0.5 - chance["fall"])
    assert "points beside random" in str(found)
    assert json.dumps(found.to_json())


def test_trainings_are_averaged():
    def by_seed(inputs, labels, seed):
        return lambda batch: np.eye(2)[np.arange(len(batch)) % 2 if seed % 2 else np.zeros(len(batch), int)]

    learnt, tested = pictures(4, 0), pictures(10, 1)
    found = wt.roar(by_seed, lambda batch: np.eye(2)[np.zeros(len(batch), int)], learnt, tested, "occlusion", parts="pixels",
                    shares=(0.5,), trainings=2)
    assert found.table()[0]["whole"] == pytest.approx((0.5 + 1.0) / 2)  # all of class 0, and by turns as the labels are


@pytest.mark.parametrize(("change", "error", "words"), [
    ({"train": lambda inputs, labels, seed: None}, TypeError, "train must return a model"),
    ({"train": lambda inputs, labels, seed: lambda batch: np.zeros(len(batch))}, ValueError, r"expected \(4, classes\), got \(4,\)"),
    ({"learnt": (np.zeros((2, 4, 4)), [0])}, ValueError, "learnt must be"), ({"shares": 0.3}, ValueError, "a tuple"),
    ({"learnt": (pictures(4, 0)[0], [1, 2, 1, 2])}, ValueError, "from 0 to 1 for a model of 2 classes, got 1 to 2"),
    ({"learnt": (pictures(4, 0)[0], ["a", "b", "a", "b"])}, TypeError, "classes' numbers"),
    ({"method": np.zeros((4, 4, 4))}, TypeError, "values that are there already"),
    ({"trainings": 0}, ValueError, "trainings must be"), ({"tested": ([], [])}, ValueError, "to test on")])
def test_what_cannot_be_retrained_is_refused(change, error, words):
    given = {"train": train, "model": lambda batch: np.eye(2)[np.zeros(len(batch), int)], "learnt": pictures(4, 0),
             "tested": pictures(4, 1), "method": "occlusion", "parts": "pixels", **change}
    with pytest.raises(error, match=words):
        wt.roar(given.pop("train"), given.pop("model"), given.pop("learnt"), given.pop("tested"), **given)


def test_rows_of_a_data_frame_can_be_retrained_on():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    rows = pandas.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "c"])
    labels = (rows.a > 0).to_numpy().astype(int)

    def by_first(inputs, labels, seed):
        return lambda batch: np.column_stack([-np.asarray(batch, float)[:, 0], np.asarray(batch, float)[:, 0]])

    model = wt.model(by_first(rows, labels, 0), name="first")
    found = wt.roar(by_first, model, (rows[:40], labels[:40]), (rows[40:], labels[40:]), "occlusion", background=rows, shares=(0.34,))
    row = {one["explainer"]: one for one in found.table()}
    assert row["occlusion"]["whole"] == 1.0
    assert row["occlusion"]["fall"] >= row["random"]["fall"]
