"""Numbers that are no means: leave-one-out against Student's interval and against what it promises."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from whytrust.stats import jackknife


def test_of_a_mean_the_jackknife_is_students_interval(rng):
    values = rng.normal(0.3, 1, 25)
    found = jackknife(values.mean(), (values.sum() - values) / 24)
    expected = scipy_stats.ttest_1samp(values, 0)
    assert found.p == pytest.approx(expected.pvalue)
    np.testing.assert_allclose([found.low, found.high], expected.confidence_interval(0.95))


def test_the_jackknife_of_a_ratio_covers_it_most_of_the_time(rng):
    hits = 0
    for _ in range(400):
        x, y = rng.gamma(4, size=60), rng.gamma(8, size=60)
        whole = x.sum() / y.sum()
        found = jackknife(whole, (x.sum() - x) / (y.sum() - y))
        hits += found.low <= 0.5 <= found.high
    assert 0.92 <= hits / 400 <= 0.98


def test_few_cases_that_are_all_alike_are_no_certainty(rng):
    assert jackknife(1.0, [1.0] * 5, 1.0).low < 0.5
    missed = 0
    for _ in range(300):  # 15 cases, of which each fails one time in ten: F1 of "right" is 2 p / (1 + p)
        right = rng.random(15) < 0.9
        whole = 2 * right.sum() / (15 + right.sum())
        found = jackknife(whole, (2 * (right.sum() - right)) / (14 + right.sum() - right), 1.0)
        missed += not found.low <= 2 * 0.9 / 1.9 <= found.high
    assert missed / 300 <= 0.09


def test_a_number_that_never_moves_is_certain_and_nonsense_is_refused():
    same = jackknife(0.5, [0.5] * 4)
    assert (same.low, same.high, same.p) == (0.5, 0.5, 0.0)
    assert jackknife(0.0, [0.0] * 4).p == 1.0
    for wrong in ([0.5], [[0.5, 0.5]], [0.5, math.nan]):
        with pytest.raises(ValueError, match="at least 2 cases"):
            jackknife(0.5, wrong)
