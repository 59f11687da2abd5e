import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whitebox import COSINE, all_masks, examples
from whytrust.core import generator
from whytrust.designs import SAMPLING, Kernel, MaskPlan, _random_masks, allocate, law, plain_masks, strata


def asked(plan, n):
    return plan.ask(n, lambda masks: masks.sum(axis=1).astype(float), [])


@pytest.mark.parametrize("sampling", SAMPLING)
def test_a_law_is_a_probability_and_gives_the_input_its_share(sampling):
    chances = law(sampling, 7, 100)
    assert chances.sum() == pytest.approx(1)
    assert chances[7] >= 1 / 100


def test_the_paper_keeps_one_to_all_but_one_part_with_equal_chance():
    np.testing.assert_allclose(law("uniform_kept", 5, 10**12)[:5], [0, 0.25, 0.25, 0.25, 0.25], atol=1e-9)


def test_bernoulli_is_binomial():
    expected = [math.comb(6, k) / 64 for k in range(7)]
    np.testing.assert_allclose(law("bernoulli", 6, 10**12), expected, atol=1e-9)


def test_kernels_are_the_written_formulas():
    kept = np.arange(5)
    cosine = 1 - np.sqrt(kept / 4)
    np.testing.assert_allclose(Kernel("cosine", 0.25).of_sizes(4), np.exp(-(cosine**2) / 0.25**2))
    np.testing.assert_allclose(Kernel("l2", 1.5, root=True).of_sizes(4), np.sqrt(np.exp(-(4 - kept) / 1.5**2)))


def test_kernels_of_rows_and_of_sizes_agree():
    masks = all_masks(5)[1:].astype(float)
    for kernel in (Kernel("cosine", 0.3), Kernel("l2", 1.2, root=True)):
        np.testing.assert_allclose(kernel.of_rows(masks, np.ones(5)), kernel.of_sizes(5)[masks.sum(axis=1).astype(int)])


@examples(60)
@given(d=st.integers(2, 40), samples=st.integers(8, 3000), sampling=st.sampled_from(SAMPLING), seed=st.integers(0, 5))
def test_a_plan_never_repeats_a_mask_nor_exceeds_what_was_asked(d, samples, sampling, seed):
    plan = MaskPlan.make(d, sampling, COSINE, samples, True, generator(seed))
    sample = asked(plan, samples)
    assert len(sample.rows) <= max(samples, 2 * len(plan.cells))
    alone = np.isin(sample.stratum, [i for i, c in enumerate(plan.cells) if len(c.sizes) == 1])
    assert len(np.unique(sample.rows[alone], axis=0)) == alone.sum()
    assert sample.rows.any(axis=1).all() or sampling != "uniform_kept"


@examples(40)
@given(d=st.integers(2, 9), sampling=st.sampled_from(SAMPLING), extra=st.integers(0, 50))
def test_enough_samples_enumerate_every_mask_the_law_allows(d, sampling, extra):
    plan = MaskPlan.make(d, sampling, COSINE, 2**d + extra, True, generator(0))
    sample = asked(plan, 2**d + extra)
    assert sample.exact
    assert len(sample.rows) == 2**d - (sampling == "uniform_kept")


@examples(40)
@given(d=st.integers(2, 30), samples=st.integers(40, 2000), sampling=st.sampled_from(SAMPLING))
def test_weights_of_a_stratum_add_up_to_its_share_of_the_law(d, samples, sampling):
    plan = MaskPlan.make(d, sampling, COSINE, samples, True, generator(1))
    sample = asked(plan, samples)
    expected = samples * law(sampling, d, samples) * COSINE.of_sizes(d)
    kept = sample.rows.sum(axis=1).astype(int)
    assert sample.weights.sum() == pytest.approx(expected.sum())
    if all(len(c.sizes) == 1 for c in plan.cells):
        np.testing.assert_allclose(np.bincount(kept, sample.weights, minlength=d + 1), expected, rtol=1e-9)


def test_masks_of_one_size_are_equally_likely():
    counts = np.zeros(10)
    masks = all_masks(5)
    two = masks[masks.sum(axis=1) == 2]
    for seed in range(2000):
        plan = MaskPlan.make(5, "uniform_kept", Kernel("l2", 100.0), 20, True, generator(seed))
        drawn = np.vstack([s for c, s in zip(plan.cells, plan.sequences, strict=True) if c.sizes[0] == 2])
        counts += (two[:, None] == drawn[None]).all(axis=2).sum(axis=1)
    expected = counts.sum() / 10
    assert ((counts - expected) ** 2 / expected).sum() < 27.9  # chi-square, 9 degrees of freedom, 0.1 %


@pytest.mark.parametrize("d", [6, 300, 3000])
def test_drawn_masks_have_the_sizes_asked_for(d, rng):
    sizes = rng.integers(0, d + 1, 2000)
    np.testing.assert_array_equal(_random_masks(sizes, d, rng).sum(axis=1), sizes)


def test_every_pair_of_parts_is_drawn_together_equally_often(rng):
    d, n = 12, 60_000
    masks = _random_masks(np.full(n, 4), d, rng).astype(float)
    together = (masks.T @ masks)[np.triu_indices(d, 1)]
    share = 4 * 3 / (d * (d - 1))
    # Counts of pairs are correlated: their number in a mask is fixed. Each by itself is binomial.
    assert np.abs(together - n * share).max() < 4.5 * np.sqrt(n * share * (1 - share))


def test_a_larger_sample_begins_with_the_smaller_one():
    plan = MaskPlan.make(12, "uniform_kept", COSINE, 400, True, generator(0))
    small, large = asked(plan, 100), asked(plan, 400)
    for cell in range(len(plan.cells)):
        few = small.rows[small.stratum == cell]
        np.testing.assert_array_equal(few, large.rows[large.stratum == cell][: len(few)])


def test_drawing_on_asks_only_for_what_is_new():
    plan = MaskPlan.make(12, "uniform_kept", COSINE, 400, True, generator(0))
    calls = []
    known = []
    for n in (50, 100, 400):
        plan.ask(n, lambda masks: calls.append(len(masks)) or np.zeros(len(masks)), known)
    assert sum(calls) == 400


@examples(150)
@given(d=st.integers(2, 400), samples=st.integers(20, 3000), sampling=st.sampled_from(SAMPLING),
       width=st.sampled_from([0.03, 0.06, 0.25, 1.0]), root=st.booleans(), distinct=st.booleans())
def test_exactly_the_samples_asked_for_are_spent(d, samples, sampling, width, root, distinct):
    try:
        cells = strata(d, law(sampling, d, samples), Kernel("cosine", width, root), samples)
    except ValueError:
        return  # so narrow that nothing counts: refused in words
    counts = allocate(cells, samples, distinct)
    available = sum(c.population for c in cells) if distinct else samples
    assert counts.sum() == min(samples, available)


def test_the_law_of_a_coin_is_finite_for_any_number_of_parts():
    chances = law("bernoulli", 3000, 100)
    assert np.isfinite(chances).all()
    assert chances.sum() == pytest.approx(1)


def test_small_shares_are_joined_so_that_they_cost_little():
    cells = strata(60, law("bernoulli", 60, 150), Kernel("l2", 5.8), 150)
    assert len(cells) < 20
    assert min(c.share for c in cells[:-1]) > 2 * sum(c.share for c in cells) / 150


def test_a_kernel_that_sees_nothing_is_refused():
    with pytest.raises(ValueError, match="so narrow that hardly any changed input counts"):
        strata(20, law("uniform_kept", 20, 500), Kernel("cosine", 0.001), 500)


def test_allocation_follows_the_shares():
    cells = strata(20, law("uniform_kept", 20, 10000), COSINE, 10000)
    counts = allocate(cells, 10000, True)
    open_cells = [i for i, c in enumerate(cells) if 50 < counts[i] < c.population]
    ratio = counts[open_cells] / np.array([cells[i].share for i in open_cells])
    assert ratio.max() / ratio.min() < 1.05
    assert counts.sum() == 10000


def test_plain_masks_begin_with_the_input_and_follow_the_law(rng):
    masks, weights = plain_masks(6, "uniform_removed", COSINE, 60000, rng)
    assert masks[0].all()
    shares = np.bincount(masks[1:].sum(axis=1), minlength=7) / 59999
    np.testing.assert_allclose(shares, [1 / 6] * 6 + [0], atol=0.01)
    np.testing.assert_allclose(weights, COSINE.of_sizes(6)[masks.sum(axis=1)])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: law("gaussian", 3, 10), "sampling must be one of"),
    (lambda: Kernel("manhattan", 1.0), "distance must be"),
    (lambda: Kernel("l2", 0.0), "width must be"),
])
def test_wrong_choices_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
