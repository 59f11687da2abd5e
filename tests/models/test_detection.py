"""Smoothing, thresholds and scores, with numpy written out, scipy and scikit-learn as the truth."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics

from whytrust.models.detection import MEASURES, THRESHOLDS, Performance, over_seeds, smoothed, tuned_threshold

bits = hnp.arrays(bool, 60)


def test_smoothing_is_the_upper_median_of_28_frames_before_to_27_after(rng):
    for length in (1, 30, 57, 200):
        p = rng.uniform(size=length)
        held = np.concatenate([np.full(28, p[0]), p, np.full(27, p[-1])])
        wanted = [np.sort(held[t:t + 56])[28] for t in range(length)]
        np.testing.assert_array_equal(smoothed(p), wanted)


def test_a_gap_of_less_than_half_the_filter_closes_and_a_longer_one_does_not():
    p = np.ones(300)
    p[100:125] = 0
    assert smoothed(p).min() == 1
    p[100:140] = 0
    assert smoothed(p).min() == 0


def test_the_thresholds_are_105_between_0_and_1():
    assert len(THRESHOLDS) == 105
    assert list(THRESHOLDS) == sorted(THRESHOLDS)
    assert {0.51, 1e-5, 1 - 1e-5} <= set(THRESHOLDS)


@settings(max_examples=50, deadline=None)
@given(hnp.arrays(float, 40, elements=st.floats(0, 1)), hnp.arrays(bool, 40))
def test_no_threshold_of_the_list_is_better_than_the_tuned_one(p, labels):
    found = tuned_threshold([p[:15], p[15:]], [labels[:15], labels[15:]])
    best = max(metrics.accuracy_score(labels, p > threshold) for threshold in THRESHOLDS)
    assert metrics.accuracy_score(labels, p > found) == pytest.approx(best)


def test_of_equally_good_thresholds_the_middle_of_the_longest_row_is_taken():
    p, labels = np.array([0.305, 0.705]), np.array([False, True])
    assert tuned_threshold([p], [labels]) == 0.5  # .31 … .70
    p, labels = np.array([0.9, 0.605, 0.1]), np.array([True, False, False])
    assert tuned_threshold([p], [labels]) == 0.75  # .61 … .89


def test_what_lies_on_the_threshold_is_not_above_it():
    # Only 0.5 splits these: at .49 the first would be called singing, at .51 the second would not.
    assert tuned_threshold([np.array([0.5, 0.505])], [np.array([False, True])]) == 0.5


@settings(max_examples=50, deadline=None)
@given(bits, bits)
def test_performance_is_scikit_learns(answers, labels):
    found = Performance.of(answers, labels)
    wanted = {
        "error": 1 - metrics.accuracy_score(labels, answers),
        "recall": metrics.recall_score(labels, answers, zero_division=np.nan),
        "specificity": metrics.recall_score(~labels, ~answers, zero_division=np.nan),
        "precision": metrics.precision_score(labels, answers, zero_division=np.nan),
        "f1": metrics.f1_score(labels, answers, zero_division=np.nan),
    }
    assert {name: getattr(found, name) for name in MEASURES} == pytest.approx(wanted, nan_ok=True)
    assert found.frames == 60


def test_what_cannot_be_judged_is_nan_and_null_in_json():
    nobody = Performance.of(np.zeros(5, bool), np.zeros(5, bool))
    assert math.isnan(nobody.recall)
    assert nobody.to_json() == {"error": 0.0, "recall": None, "specificity": 1.0, "precision": None, "f1": None, "frames": 5}


def test_over_seeds_is_mean_and_sample_deviation():
    runs = [Performance(e, 0.9, 0.8, 0.7, 0.6, 10) for e in (0.1, 0.2, 0.4)]
    mean, deviation = over_seeds(runs)["error"]
    assert mean == pytest.approx(0.7 / 3)
    assert deviation == pytest.approx(np.std([0.1, 0.2, 0.4], ddof=1))
    assert math.isnan(over_seeds(runs[:1])["error"][1])


@pytest.mark.parametrize(("values", "labels", "words"), [
    ([np.ones(3)], [np.ones(4, bool)], "one label for each frame"),
    ([], [], "at least one frame"),
    ([np.array([0.1, np.nan])], [np.ones(2, bool)], "must be finite"),
])
def test_what_does_not_fit_is_one_clear_error(values, labels, words):
    with pytest.raises(ValueError, match=words):
        tuned_threshold(values, labels)
