"""Readers act by fixed rules: what they decide can be worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whitebox import Additive, Bits, question
from whytrust.checked import CheckedModel
from whytrust.explainers.baselines import Random
from whytrust.explainers.greedy import Greedy
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.explanation import Explanation
from whytrust.readers import Reading, at_most, f1, limit_of, mistrusted, named_parts, read

FEATURES = np.arange(4)


def asked(weights=(0.4, 0.3, -0.2, 0.0), constant=0.2):
    """A white box of four parts that says 0.7 of the whole input."""
    return question(Additive(weights, constant), Bits(4))


def test_a_reader_takes_off_what_marked_features_contribute(rng):
    reading = read(Lime(samples=64)(asked(), rng), FEATURES, 0.5)
    marked = np.array([[False] * 4, [True, False, False, False], [False, True, False, False], [False, False, True, False]])
    np.testing.assert_array_equal(reading.trusts(marked), [True, False, False, True])  # 0.7, 0.3, 0.4, 0.9


def test_a_reader_without_contributions_mistrusts_whatever_names_a_marked_feature(rng):
    reading = read(Greedy(features=1, stop="never")(asked(), rng), FEATURES, 0.5)
    assert reading.prediction is None
    assert reading.features.tolist() == [0]
    np.testing.assert_array_equal(reading.trusts(np.eye(4, dtype=bool)), [False, True, True, True])


def test_occlusion_has_no_local_model_and_starts_from_the_score_itself(rng):
    reading = read(Occlusion()(asked(), rng), FEATURES, 0.5)
    assert reading.prediction == pytest.approx(0.7)
    np.testing.assert_allclose(sorted(reading.contributions), [-0.2, 0.3, 0.4])


def test_scores_that_say_nothing_are_not_weighed(rng):
    assert read(Random()(asked(), rng), FEATURES, 0.5).prediction is None


def test_contributions_to_a_logit_are_taken_off_the_logit(rng):
    e = Explanation.of(asked(), "integrated_gradients", np.array([0.5, 0.5, 0.0, 0.0]), settings={"explains": "logit"})
    reading = read(e, FEATURES, 0.5)
    assert reading.prediction == pytest.approx(np.log(0.7 / 0.3))
    np.testing.assert_array_equal(reading.trusts(np.array([[True, False, False, False], [True, True, False, False]])), [True, False])


def test_parts_of_a_score_of_nought_are_not_named(rng):
    e = Lime(samples=64)(asked(), rng)
    assert 3 not in named_parts(e)
    assert len(named_parts(e, 2)) == 2
    nothing = Explanation.of(asked(), "own", np.zeros(4))
    assert len(named_parts(nothing)) == 0
    assert read(nothing, FEATURES, 0.5).trusts(np.ones((1, 4), bool)).all()


def test_features_must_be_those_of_the_parts(rng):
    with pytest.raises(ValueError, match="one entry a part: expected 4, got 3"):
        read(Occlusion()(asked(), rng), np.arange(3), 0.5)


@pytest.mark.parametrize(("scores", "target", "threshold", "expected"), [
    ([0.3, 0.7], 1, None, 0.5), ([0.8, 0.2], 0, None, 0.5), ([0.3, 0.7], 1, 0.6, 0.6), ([0.8, 0.2], 0, 0.6, 0.4),
    ([0.5, 0.3, 0.2], 0, None, 0.3), ([-5.0, -2.0], 1, None, -5.0), ([3.0, 1.0], 0, None, 1.0)])
def test_the_limit_is_where_the_decision_would_be_another(scores, target, threshold, expected):
    model = CheckedModel(lambda batch: np.tile(scores, (len(batch), 1)), threshold=threshold)
    assert limit_of(model, np.array(scores), target) == pytest.approx(expected)


@given(st.integers(0, 2**31))
def test_counting_all_readers_at_once_gives_what_each_says(seed):
    rng = np.random.default_rng(seed)
    readings = [Reading(rng.permutation(6)[:3], rng.normal(size=3), *((rng.random(), 0.5, bool(rng.integers(2))) if rng.integers(2) else ()))
                for _ in range(5)]
    suspects = np.array([1, 4, 5])
    marks = rng.random((7, 3)) < 0.5
    each = []
    for row in marks:
        marked = np.zeros(6, bool)
        marked[suspects[row]] = True
        each.append(sum(not reading.trusts(marked)[0] for reading in readings))
    np.testing.assert_array_equal(mistrusted(readings, suspects, marks), each)


def test_f1_by_hand():
    trusted = np.array([[True, True, False, False], [False] * 4, [True] * 4])
    truly = np.array([[True, False, True, False], [False] * 4, [True] * 4])
    np.testing.assert_allclose(f1(trusted, truly), [0.5, 1.0, 1.0])


def test_a_tie_is_decided_as_the_model_decides_it(rng):
    e = Explanation.of(question(lambda batch: np.full((len(batch), 2), 0.5), Bits(4)), "own", np.zeros(4), local_prediction=0.5)
    assert read(e, FEATURES, 0.5, stands=True).stands
    assert not read(e, FEATURES, 0.5).stands
    nothing = np.zeros((1, 4), dtype=bool)
    for stands in (True, False):
        reading = read(e, FEATURES, 0.5, stands=stands)
        assert reading.trusts(nothing).all()
        assert mistrusted([reading], np.array([1]), np.ones((1, 1), dtype=bool)).tolist() == [0]


def test_a_reader_does_not_take_nearly_all_parts_unless_told():
    assert [at_most(None, d) for d in (1, 8, 16, 100)] == [1, 2, 4, 10]
    assert at_most(7, 8) == 7
