import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge, lars_path, lars_path_gram

from whitebox import examples
from whytrust.moments import Moments, select, select_each, solve, symmetric_inverse


def data(seed, n=200, d=8):
    rng = np.random.default_rng(seed)
    rows = (rng.random((n, d)) < 0.5).astype(float)
    return rows, rows @ rng.normal(size=d) + rng.normal(size=n), rng.random(n) + 0.1


@examples(30)
@given(seed=st.integers(0, 1000), ridge=st.sampled_from([0.0, 0.01, 1.0, 30.0]))
def test_solve_is_scikit_learns_weighted_ridge(seed, ridge):
    rows, scores, weights = data(seed)
    intercept, found = solve(Moments.of(rows, scores, weights), np.arange(8), ridge)
    peer = Ridge(alpha=ridge).fit(rows, scores, sample_weight=weights)
    np.testing.assert_allclose(found, peer.coef_, atol=1e-8)
    assert intercept == pytest.approx(peer.intercept_, abs=1e-8)


@examples(30)
@given(seed=st.integers(0, 1000), most=st.integers(1, 7))
def test_forward_selection_is_the_naive_search(seed, most):
    rows, scores, weights = data(seed)
    chosen = []
    for _ in range(most):
        def error(part):
            columns = [*chosen, part]
            model = Ridge(alpha=0).fit(rows[:, columns], scores, sample_weight=weights)
            return weights @ (scores - model.predict(rows[:, columns])) ** 2
        chosen.append(min((p for p in range(8) if p not in chosen), key=error))
    np.testing.assert_array_equal(select(Moments.of(rows, scores, weights), "forward", most, np.ones(8)), sorted(chosen))


@examples(30)
@given(seed=st.integers(0, 1000), most=st.integers(1, 7))
def test_k_lasso_is_the_last_point_of_the_lars_path_with_k_parts(seed, most):
    rows, scores, weights = data(seed)
    centre = lambda a: (a - np.average(a, axis=0, weights=weights)) * np.sqrt(weights).reshape(-1, *[1] * (a.ndim - 1))  # noqa: E731
    _, _, path = lars_path(centre(rows), centre(scores), method="lasso")
    for point in path.T[::-1]:
        if np.count_nonzero(point) <= most:
            break
    found = select(Moments.of(rows, scores, weights), "lasso_path", most, np.ones(8))
    np.testing.assert_array_equal(found, np.flatnonzero(point))


@examples(20)
@given(seed=st.integers(0, 1000), most=st.integers(1, 12))
def test_k_lasso_agrees_with_scikit_learn_on_many_correlated_parts(seed, most):
    rng = np.random.default_rng(seed)
    common = rng.random((300, 1))
    rows = (0.6 * rng.random((300, 40)) + 0.4 * common < 0.5).astype(float)
    moments = Moments.of(rows, rows[:, :15] @ rng.normal(size=15) + 0.3 * rng.normal(size=300), rng.random(300) + 0.1)
    covariance, with_score, _ = moments.centred
    _, _, path = lars_path_gram(with_score, covariance, n_samples=300, method="lasso")
    sizes = (path != 0).sum(axis=0)
    early = np.flatnonzero(sizes > most + 3)[:1]  # far beyond, parts may leave again: the path is followed no longer
    last = np.flatnonzero(sizes[: early[0] if len(early) else None] <= most)[-1]
    np.testing.assert_array_equal(select(moments, "lasso_path", most, np.ones(40)), np.flatnonzero(path[:, last]))


def test_the_lasso_lets_a_part_that_left_come_back_with_the_other_sign():
    missed = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(3, 30))
        n, most = int(rng.integers(d + 5, 300)), int(rng.integers(1, d))
        rows = rng.normal(size=(n, d)) @ rng.normal(size=(d, d))
        scores = rows @ (rng.normal(size=d) * (rng.random(d) < 0.5)) + rng.normal(size=n) * rng.choice([0.01, 1])
        moments = Moments.of(rows, scores, rng.random(n))
        covariance, with_score, _ = moments.centred
        _, _, path = lars_path_gram(with_score.copy(), covariance.copy(), n_samples=n, method="lasso")
        sizes = (path != 0).sum(axis=0)
        stop = next((i for i in range(len(sizes)) if sizes[i] > most + 3), len(sizes))
        ends = [np.flatnonzero(path[:, np.flatnonzero(some <= most)[-1]]) for some in (sizes, sizes[:stop])]
        found = select(moments, "lasso_path", most, np.ones(d))
        missed += not any(np.array_equal(found, end) for end in ends)
    assert missed <= 2  # two paths may part at a tie; where a part may not turn back at once, five are missed


@pytest.mark.parametrize("how", ["lasso_path", "forward", "highest_weights", "none"])
def test_selecting_for_several_at_once_is_selecting_for_each(how):
    several = [Moments.of(*data(seed)) for seed in range(6)]
    for found, moments in zip(select_each(several, how, 3, np.ones(8)), several, strict=True):
        np.testing.assert_array_equal(found, select(moments, how, 3, np.ones(8)))


def test_two_parts_that_are_always_together_do_not_stop_the_lasso():
    rows, scores, weights = data(4)
    rows[:, 1] = rows[:, 0]
    found = select(Moments.of(rows, scores, weights), "lasso_path", 4, np.ones(8))
    assert len(found) == 4
    assert not {0, 1} <= set(found)


def test_the_moments_of_folds_are_those_of_their_rows():
    rows, scores, weights = data(5)
    fold = np.arange(200) % 3
    with_one = np.column_stack([np.ones(200), rows])
    for k, found in enumerate(Moments.of_folds(rows, scores, weights, 3)):
        mine = np.diag(weights * (fold == k))
        np.testing.assert_allclose(found.gram, with_one.T @ mine @ with_one)
        np.testing.assert_allclose(found.cross, with_one.T @ mine @ scores)
        np.testing.assert_allclose(found.square, scores @ mine @ scores)


def test_the_inverse_of_a_singular_matrix_is_its_pseudo_inverse():
    rows, scores, weights = data(6)
    gram = Moments.of(rows, scores, weights).gram
    np.testing.assert_allclose(symmetric_inverse(gram), np.linalg.inv(gram), atol=1e-12)
    rows[:, 1] = rows[:, 0]
    gram = Moments.of(rows, scores, weights).gram
    np.testing.assert_allclose(symmetric_inverse(gram), np.linalg.pinv(gram, hermitian=True, rcond=1e-12), atol=1e-9)


def test_an_empty_lasso_path_finds_nothing():
    rows, _, weights = data(0)
    assert len(select(Moments.of(rows, np.full(200, 0.4), weights), "lasso_path", 3, np.ones(8))) == 0


def test_constant_parts_get_no_weight():
    rows, scores, weights = data(1)
    rows[:, 3] = 1
    moments = Moments.of(rows, scores, weights)
    active = select(moments, "none", None, np.ones(8))
    assert 3 not in active
    assert solve(moments, active)[1][3] == 0


def test_the_difference_of_moments_is_that_of_the_rest():
    rows, scores, weights = data(2)
    rest = Moments.of(rows, scores, weights) - Moments.of(rows[:50], scores[:50], weights[:50])
    direct = Moments.of(rows[50:], scores[50:], weights[50:])
    np.testing.assert_allclose(rest.gram, direct.gram)
    np.testing.assert_allclose(rest.cross, direct.cross)


def test_parts_that_always_go_together_share_their_weight():
    rows, scores, weights = data(3)
    rows[:, 1] = rows[:, 0]
    _, found = solve(Moments.of(rows, scores, weights), np.arange(8))
    assert np.isfinite(found).all()
    assert found[0] == pytest.approx(found[1])
