"""Every interval and test against a closed form, another implementation, or what it promises in simulated audits."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats
from sklearn.metrics import roc_auc_score

from whitebox import examples
from whytrust.stats import Difference, auc, beyond, bounded, equivalent, holm, needed, paired, plan, rate

shares = st.lists(st.floats(0, 1), min_size=1, max_size=40)


def at_least(truth, runs):
    """The least share of runs that a method with this true share shows, but for one time in a thousand."""
    return scipy_stats.binom.ppf(0.001, runs, truth) / runs


def at_most(truth, runs):
    return scipy_stats.binom.ppf(0.999, runs, truth) / runs


def clustered(rng, sources, size, share, correlation=0.3):
    """Yes/no values with this intraclass correlation (beta-binomial), and each value's source."""
    within = (1 - correlation) / correlation
    chances = np.repeat(rng.beta(share * within, (1 - share) * within, sources), size)
    return (rng.random(sources * size) < chances).astype(float), np.repeat(np.arange(sources), size).tolist()


# --- rate -------------------------------------------------------------------------------------------------------------


@examples(60)
@given(values=st.lists(st.booleans(), min_size=1, max_size=300))
def test_independent_yes_and_no_get_wilsons_interval(values):
    found = rate(values)
    peer = scipy_stats.binomtest(sum(values), len(values)).proportion_ci(method="wilson")
    np.testing.assert_allclose([found.value, found.low, found.high], [np.mean(values), peer.low, peer.high], atol=1e-12)
    assert (found.n, found.sources) == (len(values), len(values))


def test_naming_every_source_once_changes_nothing():
    assert rate([1, 0, 1, 1], sources=["a", "b", "c", "d"]) == rate([1, 0, 1, 1]) == rate([1, 0, 1, 1], sources=[None] * 4)


def test_values_that_do_not_apply_are_left_out():
    assert rate([1, math.nan, 0, math.nan], sources=["a", "a", "b", "c"]) == rate([1, 0])
    nothing = rate([math.nan])
    assert math.isnan(nothing.value)
    assert (nothing.low, nothing.high, nothing.n, nothing.sources) == (0, 1, 0, 0)


@examples(100)
@given(values=shares, seed=st.integers(0, 99), grain=st.sampled_from([1.0, 1 / 3, 0.01]))
def test_an_interval_holds_its_mean_and_stays_in_range(values, seed, grain):
    sources = np.random.default_rng(seed).integers(0, len(values), len(values)).tolist()
    found = rate(values, sources, grain=grain)
    assert 0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1
    assert found.high - found.low > 0
    assert found.sources == len(set(sources))


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_equal_values_count_one_a_source(value):
    found = rate([value] * 60, [i // 3 for i in range(60)], grain=1 / 3)
    t = scipy_stats.t.ppf(0.975, 19)
    root = np.roots([1 + t * t / 20, -2 * value - t * t / 20, value**2])  # Wilson: (value - p)² = t² p (1 - p) / 20
    np.testing.assert_allclose([found.low, found.high], sorted(root.real), atol=1e-6)


def test_nearly_equal_values_are_not_taken_for_certain():
    values = np.full(30, 0.5) + np.linspace(-1, 1, 30) * 1e-6
    assert rate(values, grain=1 / 3).high - rate(values, grain=1 / 3).low > 0.9 * 2 * 1.96 * math.sqrt(0.25 / 90)


def test_cases_of_one_source_say_nothing_of_others():
    assert (rate([1, 1, 0], ["film"] * 3).low, rate([1, 1, 0], ["film"] * 3).high) == (0, 1)


def test_copies_of_a_case_bring_no_certainty():
    values = np.random.default_rng(0).random(40) < 0.6
    once, copied = rate(values), rate(np.repeat(values, 10), np.repeat(np.arange(40), 10).tolist())
    assert copied.value == pytest.approx(once.value)
    assert copied.low <= once.low
    assert copied.high >= once.high


@pytest.mark.parametrize(("sources", "size", "share"), [(10, 5, 0.1), (20, 5, 0.1), (20, 5, 0.5), (40, 5, 0.9), (100, 5, 0.5)])
def test_the_interval_of_clustered_values_covers(sources, size, share):
    rng, runs = np.random.default_rng(1), 1000
    found = [rate(*clustered(rng, sources, size, share)) for _ in range(runs)]
    covered = np.mean([one.low <= share <= one.high for one in found])
    assert at_least(0.95, runs) <= covered <= 0.995
    if (sources, share) == (100, 0.5):  # nor is it wide for nothing: the design effect is 1 + 4 × .3
        assert np.mean([one.high - one.low for one in found]) < 1.05 * 2 * 1.96 * math.sqrt(0.25 * 2.2 / 500)


@pytest.mark.parametrize(("share", "sources", "covered"), [
    (0.02, 5, 0.24), (0.02, 20, 0.65), (0.02, 40, 0.78), (0.02, 100, 0.91), (0.5, 5, 0.84), (0.5, 100, 0.965)])
def test_resampling_sources_covers_far_less_where_rates_are_small(share, sources, covered):
    """Why `rate` does not do it: the numbers of docs/decisions/0016, each within what 300 runs can show."""
    def covers(rng):
        values, names = clustered(rng, sources, 5, share)
        by_source = values.reshape(sources, 5).mean(axis=1)
        low, high = np.quantile(by_source[rng.integers(0, sources, (400, sources))].mean(axis=1), (0.025, 0.975))
        ours = rate(values, names)
        return low <= share <= high, ours.low <= share <= ours.high

    found = np.mean([covers(np.random.default_rng(seed)) for seed in range(300)], axis=0)
    assert found[0] == pytest.approx(covered, abs=4 * np.sqrt(covered * (1 - covered) / 300))
    assert found[1] >= at_least(0.93, 300)


def test_the_interval_covers_where_sources_are_of_very_unequal_size():
    rng, runs, covered = np.random.default_rng(14), 1000, 0
    for _ in range(runs):
        names = np.repeat(np.arange(20), rng.choice([1, 1, 2, 5, 10, 20], 20))
        found = rate(rng.binomial(3, rng.beta(0.2, 1.8, 20)[names]) / 3, names.tolist(), grain=1 / 3)
        covered += found.low <= 0.1 <= found.high
    assert at_least(0.95, runs) <= covered / runs


def test_cases_that_share_a_source_never_count_for_more_than_others():
    found = rate([0.25, 0.75] * 20, [i // 2 for i in range(40)], grain=0.01)  # the totals of all sources agree
    assert found.high - found.low >= 2 * 1.96 * math.sqrt(0.0625 / 40)


@pytest.mark.parametrize(("n", "share"), [(20, 0.1), (20, 0.5), (100, 0.1), (100, 0.5)])
def test_the_interval_of_fractions_covers(n, share):
    rng, runs = np.random.default_rng(2), 1000
    tables = rng.binomial(3, rng.beta(2 * share, 2 * (1 - share), (runs, n))) / 3
    covered = np.mean([(r := rate(row, grain=1 / 3)).low <= share <= r.high for row in tables])
    assert at_least(0.95, runs) <= covered <= 0.995


@pytest.mark.parametrize("n", [3, 5, 10, 30])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (95, 5), (1.8, 0.2), (0.2, 0.2), (200, 200)])
def test_the_interval_of_a_bounded_mean_covers_and_stays_within_its_bounds(n, a, b):
    rng, runs = np.random.default_rng(7), 600
    truth = 2 * a / (a + b) - 1  # correlations by a beta law from -1 to 1
    found = [bounded(row, -1, 1) for row in 2 * rng.beta(a, b, (runs, n)) - 1]
    assert all(-1 <= one.low <= one.value <= one.high <= 1 for one in found)
    assert np.mean([one.low <= truth <= one.high for one in found]) >= at_least(0.95, runs)


@pytest.mark.parametrize("n", [5, 30])
def test_the_interval_of_a_mean_near_its_bound_covers_where_students_does_not(n):
    rng, runs = np.random.default_rng(8), 600
    rows = rng.beta(0.05, 0.95, (runs, n))
    ours = np.mean([(one := bounded(row, 0, 1)).low <= 0.05 <= one.high for row in rows])
    reach = scipy_stats.t.ppf(0.975, n - 1) * rows.std(axis=1, ddof=1) / math.sqrt(n)
    students = np.mean(np.abs(rows.mean(axis=1) - 0.05) <= reach)
    assert ours >= 0.87  # see `rate`: 88 to 93 % within .05 of a bound
    assert students <= 0.85
    assert ours >= students + 0.05


def test_a_bounded_mean_of_two_numbers_may_be_nearly_anything_and_of_many_is_students():
    few = bounded([0.1, 0.566], -1, 1)
    assert (few.low, few.high) == (pytest.approx(-1, abs=0.02), pytest.approx(1, abs=0.02))
    many = np.random.default_rng(9).uniform(-1, 1, 2000)
    peer = scipy_stats.t.interval(0.95, 1999, many.mean(), many.std(ddof=1) / math.sqrt(2000))
    np.testing.assert_allclose([bounded(many, -1, 1).low, bounded(many, -1, 1).high], peer, atol=1e-3)


def test_with_one_bound_it_is_students_interval_cut_there():
    values = [0.1, 0.2, 3.0]
    peer = scipy_stats.t.interval(0.95, 2, np.mean(values), np.std(values, ddof=1) / math.sqrt(3))
    np.testing.assert_allclose([bounded(values, None, None).low, bounded(values, None, None).high], peer)
    assert bounded(values, 0, None).low == 0 > peer[0]
    assert bounded(values, 0, None).high == pytest.approx(peer[1])
    assert bounded([0.3, math.nan], 0, None) == bounded([0.3], 0, None)
    assert bounded([0.3], 0, None).high == math.inf
    with pytest.raises(ValueError, match="sources must come with both bounds"):
        bounded(values, 0, None, ["a", "b", "c"])


@pytest.mark.parametrize(("arguments", "options", "message"), [
    (([2.0],), {}, "values must lie in"),
    (([[1.0]],), {}, "values must be a list of numbers"),
    (([1.0, 0.0], ["a"]), {}, "sources must have one entry a case: expected 2, got 1"),
    (([1.0],), {"grain": 0}, "grain must lie in"),
])
def test_a_rate_of_something_else_is_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        rate(*arguments, **options)


# --- auc --------------------------------------------------------------------------------------------------------------


@examples(60)
@given(hits=st.lists(st.integers(0, 9), min_size=1, max_size=30), misses=st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_the_area_is_scikit_learns_ties_included(hits, misses):
    found = auc(hits, misses)
    assert found.value == pytest.approx(roc_auc_score([1] * len(hits) + [0] * len(misses), hits + misses))
    assert 0 <= found.low <= found.value + 1e-12
    assert found.value - 1e-12 <= found.high <= 1
    turned = auc(misses, hits)
    np.testing.assert_allclose([turned.low, turned.high], [1 - found.high, 1 - found.low], atol=1e-6)


def test_without_hits_or_misses_there_is_no_area():
    assert auc([], [1.0]) is None
    assert auc([1.0], [math.nan]) is None


def test_being_perfectly_apart_is_no_certainty():
    assert (auc([1], [0]).low, auc([1], [0]).high) == (0, 1)
    assert auc([4, 5, 6], [1, 2, 3]).low < 0.5  # chance does that one time in ten, counting both directions
    assert 0.8 < auc(range(100, 130), range(30)).low < 0.95


@pytest.mark.parametrize(("hits", "misses", "area", "spread"), [
    (3, 3, 0.7, 1), (5, 20, 0.9, 1), (10, 10, 0.7, 3), (20, 20, 0.97, 1), (50, 50, 0.5, 1), (20, 60, 0.7, 2)])
def test_the_interval_of_an_area_covers(hits, misses, area, spread):
    rng, runs = np.random.default_rng(3), 600
    shift = scipy_stats.norm.ppf(area) * math.hypot(1, spread)
    found = [auc(shift + spread * rng.normal(size=hits), rng.normal(size=misses)) for _ in range(runs)]
    assert np.mean([one.low <= area <= one.high for one in found]) >= at_least(0.95, runs)


# --- paired -----------------------------------------------------------------------------------------------------------


@examples(80)
@given(counts=st.tuples(*[st.integers(0, 60)] * 4).filter(lambda c: sum(c) > 1))
def test_for_yes_and_no_it_is_bonett_and_price(counts):
    both, first_only, second_only, neither = counts
    first = [1] * (both + first_only) + [0] * (second_only + neither)
    second = [1] * both + [0] * first_only + [1] * second_only + [0] * neither
    n, found = sum(counts), paired(first, second)
    here, there = (first_only + 1) / (n + 2), (second_only + 1) / (n + 2)
    error = math.sqrt((here + there - (here - there) ** 2) / (n + 2))
    t = scipy_stats.t.ppf(0.975, n - 1)  # the paper has the normal quantile: the same for many pairs, less careful for few
    assert found.error == pytest.approx(error)
    assert found.low == pytest.approx(max(here - there - t * error, -1))
    assert found.high == pytest.approx(min(here - there + t * error, 1))
    assert found.value == pytest.approx((first_only - second_only) / n)


def test_for_fine_numbers_it_is_students_test():
    rng = np.random.default_rng(4)
    first, second = rng.random(30), rng.random(30)
    found, peer = paired(first, second, grain=1e-6), scipy_stats.ttest_rel(first, second)
    assert found.p == pytest.approx(peer.pvalue, rel=1e-3)
    np.testing.assert_allclose([found.low, found.high], peer.confidence_interval(), atol=1e-4)


@examples(100)
@given(seed=st.integers(0, 10_000), n=st.integers(2, 60), grain=st.sampled_from([1.0, 1 / 3, 0.01]), grouped=st.booleans())
def test_p_is_small_exactly_where_the_interval_leaves_out_no_difference(seed, n, grain, grouped):
    rng = np.random.default_rng(seed)
    first, second = np.clip(rng.random(n) + 0.3 * rng.random(), 0, 1), rng.random(n)
    sources = rng.integers(0, n, n).tolist() if grouped else None
    found, turned = paired(first, second, sources, grain=grain), paired(second, first, sources, grain=grain)
    assert (found.p <= 0.05) == (not found.low <= 0 <= found.high)
    np.testing.assert_allclose([found.value, found.low, found.p], [-turned.value, -turned.high, turned.p])


def test_pairs_with_a_gap_are_left_out():
    assert paired([1, math.nan, 0, 1], [0, 1, math.nan, 1], list("abca")) == paired([1, 1], [0, 1], ["a", "a"])
    nothing = paired([math.nan], [1])
    assert (nothing.low, nothing.high, nothing.p, nothing.n) == (-1, 1, 1, 0)
    alone = paired([1, 1], [0, 0], ["a", "a"])
    assert (alone.value, alone.low, alone.high, alone.p, equivalent(alone)) == (1, -1, 1, 1, 1)


def test_ten_copies_of_every_pair_are_no_news():
    rng = np.random.default_rng(5)
    first, second = (rng.random(50) < 0.6).astype(float), (rng.random(50) < 0.4).astype(float)
    copied = paired(np.repeat(first, 10), np.repeat(second, 10), np.repeat(np.arange(50), 10).tolist())
    once = paired(first, second)
    np.testing.assert_allclose([copied.value, copied.low, copied.high, copied.p, copied.error, copied.freedom],
                               [once.value, once.low, once.high, once.p, once.error, once.freedom])


NULLS = {
    "rare flips": lambda rng, n: (lambda u: ((u < 0.01) * 1.0, (u > 0.99) * 1.0, None, 1.0))(rng.random(n)),
    "flips": lambda rng, n: (lambda u: ((u < 0.25) * 1.0, (u > 0.75) * 1.0, None, 1.0))(rng.random(n)),
    "correlated": lambda rng, n: (lambda ease: (*((ease + rng.normal(size=n) > 1.2) * 1.0 for _ in range(2)), None, 1.0))(rng.normal(size=n)),
    "sources": lambda rng, n: (lambda a, b: (a[0], b[0], a[1], 1.0))(clustered(rng, n, 5, 0.3), clustered(rng, n, 5, 0.3)),
    "thirds": lambda rng, n: (*(rng.binomial(3, rng.beta(0.6, 1.4, n)) / 3 for _ in range(2)), None, 1 / 3),
    "fine": lambda rng, n: (*(rng.beta(1.5, 1.5, n) for _ in range(2)), None, 0.01),
}


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("n", [5, 20, 100, 400])
def test_no_difference_is_called_one_at_most_five_times_in_a_hundred(null, n):
    rng, runs = np.random.default_rng(6), 1000 if n < 400 else 500
    wrong = 0
    for _ in range(runs):
        first, second, sources, grain = NULLS[null](rng, n)
        wrong += paired(first, second, sources, grain=grain).p <= 0.05
    assert wrong / runs <= at_most(0.05, runs)


@pytest.mark.parametrize(("here", "there", "n"), [(0.05, 0, 100), (0.3, 0.1, 20), (0.5, 0.1, 40), (0.9, 0.02, 100), (0.1, 0.05, 400)])
def test_the_interval_of_a_difference_covers(here, there, n):
    rng, runs = np.random.default_rng(7), 1000
    draws = rng.random((runs, n))
    found = [paired((row < here) * 1.0, (row > 1 - there) * 1.0) for row in draws]
    assert np.mean([one.low <= here - there <= one.high for one in found]) >= at_least(0.95, runs)


@pytest.mark.parametrize(("mean", "spread", "n"), [(0.3, 0.1, 10), (0.3, 0.02, 40), (0.05, 0.2, 20), (0.3, 0.1, 100)])
def test_the_interval_of_a_difference_of_fine_numbers_covers(mean, spread, n):
    rng, runs = np.random.default_rng(8), 1000
    found = [paired(mean + spread * row, np.zeros(n), grain=1 / 15) for row in rng.normal(size=(runs, n))]
    assert np.mean([one.low <= mean <= one.high for one in found]) >= at_least(0.95, runs)


@pytest.mark.parametrize("n", [20, 100, 400])
@pytest.mark.parametrize("share", [0.005, 0.02, 0.1, 0.5, 0.98, None])
def test_what_is_drawn_at_random_differs_from_its_expectation_at_most_one_time_in_forty_each_way(n, share):
    rng, runs = np.random.default_rng(9), 1000
    better = worse = 0
    for _ in range(runs):
        chances = np.full(n, share) if share else rng.beta(0.2, 0.8, n)
        found = paired(rng.random(n) < chances, chances, chance=chances * (1 - chances))
        better, worse = better + (found.low > 0), worse + (found.high < 0)
    assert max(better, worse) / runs <= at_most(0.025, runs)


def test_no_flip_where_two_were_expected_is_not_worse_than_random():
    expected = np.full(100, 0.02)
    assert paired(np.zeros(100), expected, chance=expected * (1 - expected)).p > 0.13  # no flip at all: e^-2


def test_the_variance_is_never_below_chance():
    expected = np.full(100, 0.3)
    found = paired(np.full(100, 0.3), expected, chance=expected * (1 - expected), grain=0.01)
    assert found.error == pytest.approx(math.sqrt(100 * 0.21) / 100.02)


@pytest.mark.parametrize(("arguments", "options", "message"), [
    (([1, 0], [1]), {}, r"second must have one number a case: expected \(2,\), got \(1,\)"),
    (([3.0], [1.0]), {}, "differences must lie in"),
    (([1.0], [1.0]), {"chance": [0.1, 0.1]}, "chance must have one number a case"),
])
def test_pairs_that_do_not_match_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        paired(*arguments, **options)


# --- many tests, and equivalence --------------------------------------------------------------------------------------

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=12)


@examples(100)
@given(values=p_values)
def test_holm_is_the_closed_test_of_bonferroni(values):
    """A hypothesis falls exactly where every set of hypotheses that holds it falls: its p is the largest of theirs."""
    values = values[:7]
    sets = [[i for i in range(len(values)) if mask >> i & 1] for mask in range(1, 1 << len(values))]
    closed = [max(min(len(s) * min(values[j] for j in s), 1) for s in sets if i in s) for i in range(len(values))]
    np.testing.assert_allclose(holm(values), closed)


@examples(100)
@given(values=p_values)
def test_holm_only_raises_and_keeps_the_order(values):
    adjusted = holm(values)
    assert (adjusted >= values).all()
    assert (adjusted <= 1).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(adjusted[order]) >= 0).all()
    assert adjusted.min() == pytest.approx(min(len(values) * min(values), 1))
    turned = values[::-1]
    np.testing.assert_array_equal(holm(turned), adjusted[::-1])


def test_holm_knows_a_textbook_table():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm([]).shape == (0,)
    with pytest.raises(ValueError, match="p_values must be"):
        holm([0.5, math.nan])


@examples(60)
@given(value=st.floats(-0.2, 0.2), error=st.floats(0.02, 0.1))
def test_equivalence_is_two_one_sided_tests(value, error):
    found = equivalent(Difference(value, -1, 1, 1, 400, 400, error, 399, grain=1e-9))
    above = scipy_stats.t.sf((value + 0.05) / error, 399)
    below = scipy_stats.t.cdf((value - 0.05) / error, 399)
    assert found == pytest.approx(max(above, below), abs=1e-6)


@examples(60)
@given(value=st.floats(0.051, 0.4), error=st.floats(0.01, 0.1), sign=st.sampled_from([-1, 1]))
def test_beyond_the_margin_is_a_t_test_of_both_sides(value, error, sign):
    found = beyond(Difference(sign * value, sign * value - 1, sign * value + 1, 1, 40, 40, error, 39))
    assert found == pytest.approx(min(1, 2 * scipy_stats.t.sf((value - 0.05) / error, 39)), abs=1e-9)


def test_a_difference_within_the_margin_is_never_called_beyond_it_however_sure():
    rng = np.random.default_rng(3)
    first = 0.5 + rng.normal(0, 0.005, 400)
    small = paired(first, first - 0.03 + rng.normal(0, 0.005, 400), grain=0.01)
    assert small.p < 1e-6
    assert beyond(small) == 1
    assert beyond(paired([1.0], [0.0])) == 1  # one source says nothing


@pytest.mark.parametrize("true", [0.05, 0.02])
def test_seldom_is_a_difference_of_the_margin_called_beyond_it(true):
    rng, runs = np.random.default_rng(12), 500
    called = [beyond(paired(np.clip(row, 0, 1), np.full(40, 0.5), grain=0.01)) <= 0.05
              for row in rng.normal(0.5 + true, 0.1, (runs, 40))]
    assert np.mean(called) <= at_most(0.05, runs)


@pytest.mark.parametrize("n", [54, 58, 72, 90, 93, 130, 181, 200, 234, 300, 400])
def test_rare_differences_that_average_the_margin_are_seldom_called_none(n):
    """Exactly, over all counts of differences; all go one way, which is hardest to tell from none."""
    same = [equivalent(paired([1] * count + [0] * (n - count), [0] * n)) <= 0.05 for count in range(n // 20 + 1)]
    assert scipy_stats.binom.pmf(np.arange(n // 20 + 1), n, 0.05) @ same <= 0.05


@pytest.mark.parametrize(("here", "there", "n"), [(0.06, 0.01, 130), (0.1, 0.05, 400)])
def test_a_difference_of_the_margin_is_seldom_called_none(here, there, n):
    rng, runs = np.random.default_rng(10), 1000
    same = [equivalent(paired((row < here) * 1.0, (row > 1 - there) * 1.0)) <= 0.05 for row in rng.random((runs, n))]
    assert np.mean(same) <= at_most(0.05, runs)


def test_no_difference_in_many_cases_is_called_none():
    rng = np.random.default_rng(11)
    same = [equivalent(paired((row < 0.05) * 1.0, (row > 0.95) * 1.0)) <= 0.05 for row in rng.random((200, 800))]
    assert np.mean(same) > 0.9
    with pytest.raises(ValueError, match="margin must lie"):
        equivalent(paired([1, 0], [0, 1]), margin=0)


# --- how many ---------------------------------------------------------------------------------------------------------


def test_a_spread_of_a_third_needs_about_340_cases():
    seen = Difference(0.0, -0.1, 0.1, 1.0, 400, 400, 0.33 / 20, 399, grain=1 / 15)
    textbook = (scipy_stats.norm.ppf(0.975) + scipy_stats.norm.ppf(0.8)) ** 2 * (0.33 / 0.05) ** 2
    assert textbook == pytest.approx(340, rel=0.01)
    assert textbook <= needed(seen) <= 1.02 * textbook
    strict = (scipy_stats.norm.ppf(1 - 0.025 / 12) + scipy_stats.norm.ppf(0.9)) ** 2 * 3.3**2
    assert strict <= needed(seen, effect=0.1, power=0.9, tests=12) <= 1.05 * strict


def exact_power(n, effect, discordant, level):
    """How often n yes/no pairs are called better: over all counts of pairs that differ one way and the other."""
    here, there = (counts.ravel() for counts in np.meshgrid(np.arange(n + 1), np.arange(n + 1)))
    here, there = here[here + there <= n], there[here + there <= n]
    chances = [(discordant + effect) / 2, (discordant - effect) / 2, 1 - discordant]
    weights = scipy_stats.multinomial.pmf(np.stack([here, there, n - here - there], axis=1), n, chances)
    t = (here - there) / np.sqrt(here + there + 2 - (here - there) ** 2 / (n + 2))  # Bonett & Price
    return weights[t >= scipy_stats.t.isf(level / 2, n - 1)].sum()


@pytest.mark.parametrize(("effect", "discordant", "power", "tests"), [
    (0.15, 0.25, 0.8, 1), (0.2, 0.4, 0.8, 12), (0.3, 0.5, 0.9, 1), (0.5, 0.6, 0.8, 1), (0.05, 0.06, 0.8, 1), (0.4, 0.9, 0.8, 1),
    (0.9, 0.95, 0.8, 1), (0.7, 0.8, 0.8, 12)])
def test_the_planned_number_reaches_its_power_and_a_fifth_less_does_not(effect, discordant, power, tests):
    n = plan(effect, power, discordant, tests)
    assert exact_power(n, effect, discordant, 0.05 / tests) >= power - 0.01
    assert exact_power(math.floor(0.8 * n), effect, discordant, 0.05 / tests) < power


def test_what_is_needed_after_a_run_is_what_is_planned_before_one_like_it():
    run = paired([1] * 8 + [0] * 32, [0] * 8 + [1] * 2 + [0] * 30)
    assert abs(needed(run, effect=0.15) - plan(0.15, discordant=0.25)) <= 2


def test_the_needed_number_reaches_its_power_where_cases_share_sources():
    rng, runs = np.random.default_rng(13), 500

    def draw(sources):
        easy, names = clustered(rng, sources, 5, 0.5)
        return np.where(rng.random(5 * sources) < 0.3, rng.random(5 * sources) < 0.9, easy), easy, names  # about .12 better

    pilot = paired(*draw(1000))
    cases = needed(pilot, effect=pilot.value)
    found = [paired(*draw(math.ceil(cases / 5))).p <= 0.05 for _ in range(runs)]
    assert at_least(0.77, runs) <= np.mean(found) < 0.95


@pytest.mark.parametrize(("arguments", "message"), [
    ((0, 0.8), "effect must lie in"), ((1.5, 0.8), "effect must lie in"), ((0.1, 1.0), "power must lie between"),
    ((0.1, 0.0), "power must lie between"), ((0.3, 0.8, 0.2), "discordant must lie between the effect and 1"),
    ((0.3, 0.8, 0.4, 0), "tests must be")])
def test_a_plan_for_the_impossible_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan(*arguments)


def test_one_source_cannot_say_how_many_are_needed():
    with pytest.raises(ValueError, match="spread between sources"):
        needed(paired([1], [0]))


def test_sources_of_unequal_size_count_for_fewer():
    sizes = Counter("aaaaaaaabc")
    found = paired([1, 0] * 5, [0.5] * 10, list("aaaaaaaabc"))
    assert found.sources == 3
    assert found.freedom == pytest.approx(100 / sum(size**2 for size in sizes.values()) - 1)
