"""Remove and retrain: one informative pixel, where it is known what must happen."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from whytrust.domains.image import ImageParts
from whytrust.domains.text import TextParts
from whytrust.measures.roar import Explained, Roar


def train(inputs, labels, seed):
    flat = np.array(inputs).reshape(len(inputs), -1)
    fitted = LogisticRegression(C=100).fit(flat, labels)
    return lambda batch: fitted.predict_proba(np.array(batch).reshape(len(batch), -1))


def inputs(n, seed, copies=1):
    """Pictures whose first pixels say the class, each by itself; the others say nothing."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        picture = rng.uniform(0.4, 0.6, (4, 4))
        picture.ravel()[:copies] = i % 2
        truth = np.zeros(16)
        truth[:copies] = 1 + np.arange(copies)[::-1]
        found.append(Explained(ImageParts.cut(picture, "pixels", fill=0.5), i % 2, {"truth": truth, "lie": -truth}))
    return found


def test_without_the_one_pixel_that_says_it_nothing_can_be_learnt():
    found = Roar((0.1, 0.5))(train, inputs(120, 0), inputs(80, 1))
    assert found["truth"]["whole"] == 1.0
    assert max(found["truth"]["accuracy"]) < 0.75
    assert found["lie"]["accuracy"] == [1.0, 1.0]  # it keeps the pixel to the last
    assert found["lie"]["fall"] == 0 <= found["random"]["fall"] < found["truth"]["fall"]
    assert found["truth"]["above_random"] > 0 > found["lie"]["above_random"] - 1e-12


def test_what_is_removed_can_be_had_from_a_copy():
    found = Roar((0.07,))(train, inputs(120, 0, copies=2), inputs(80, 1, copies=2))
    assert found["truth"]["accuracy"] == [1.0]  # one of two pixels is gone, and the explanation is blamed


def test_it_is_the_same_each_time_and_other_with_another_seed():
    data = inputs(40, 0), inputs(40, 1)
    assert Roar((0.5,))(train, *data) == Roar((0.5,))(train, *data)
    assert Roar((0.5,))(train, *data)["random"] != Roar((0.5,))(train, *data, seed=3)["random"]


def test_texts_can_be_removed_from_too():
    some = [Explained(TextParts.cut(text), label, {"truth": np.array([1.0, 0.0])})
            for text, label in [("good film", 1), ("bad film", 0)] * 10]

    def bag(texts, labels, seed):
        says = {}
        for text, label in zip(texts, labels, strict=True):
            says.setdefault(text, []).append(label)
        return lambda batch: np.array([[1 - np.mean(says[text]), np.mean(says[text])] for text in batch])

    found = Roar((0.5,))(bag, some, some)
    assert found["truth"]["whole"] == 1.0
    assert found["truth"]["accuracy"] == [0.5]


@pytest.mark.parametrize("wrong", [lambda: Roar(()), lambda: Roar((1.0,)), lambda: Roar(trainings=0)])
def test_what_cannot_be_trained_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        wrong()


def test_bad_scores_and_no_inputs_are_refused():
    with pytest.raises(ValueError, match="inputs to learn from"):
        Roar()(train, [], inputs(4, 0))
    bad = [Explained(one.parts, one.label, {"truth": np.zeros(3)}) for one in inputs(4, 0)]
    with pytest.raises(ValueError, match=r"one a part: expected \(16,\), got \(3,\)"):
        Roar()(train, bad, bad)
    random = [Explained(one.parts, one.label, {"random": np.zeros(16)}) for one in inputs(4, 0)]
    with pytest.raises(ValueError, match="leave random out"):
        Roar()(train, random, random)


def test_rows_of_a_table_may_be_frames():
    pandas = pytest.importorskip("pandas")
    from whytrust.domains.tabular import TableParts, TableStatistics

    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"says": np.arange(60) % 2, "noise": rng.normal(size=60)})
    statistics = TableStatistics.fit(frame)
    some = [Explained(TableParts(frame.iloc[[i]], statistics), i % 2, {"truth": np.array([1.0, 0.0])}) for i in range(60)]

    def fit(rows, labels, seed):
        fitted = LogisticRegression(C=100).fit(rows, labels)
        return fitted.predict_proba

    found = Roar((0.5,))(fit, some, some)
    assert found["truth"]["whole"] == 1.0
    assert found["truth"]["accuracy"][0] < 0.8
