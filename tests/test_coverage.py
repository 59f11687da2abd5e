"""The pick on weights alone: against brute force, naive greedy, and cases made by hand."""

import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

from whytrust import pick as function
from whytrust.core import generator
from whytrust.coverage import GREEDY, Pick, alternating, importance_of, random, random_coverage, submodular
from whytrust.coverage import given as follow

TOY = np.array([[1, 1, 0, 0, 0],
                [0, 1, 1, 0, 0],
                [0, 1, 1, 0, 0],
                [0, 1, 0, 0, 0],
                [0, 0, 0, 1, 1]])
"""As in the paper's Figure 5: f2 explains most, and the third row shows nothing that the second does not."""

weights = arrays.arrays(np.float64, st.tuples(st.integers(1, 7), st.integers(1, 7)),
                        elements=st.sampled_from([0.0, 0.0, 0.0, 1.0, 0.25, 4.0, 2.0, 1e-9, -1.0, 3e5]))


def exact(table):
    """Importances as exact fractions of the floats that they are."""
    return [Fraction(float(np.sqrt(math.fsum(np.abs(column).tolist())))) for column in np.asarray(table).T]


def covered(table, rows, importance):
    return sum((importance[j] for j in range(table.shape[1]) if any(table[i, j] != 0 for i in rows)), Fraction(0))


def test_the_toy_example_of_the_paper():
    found = submodular(TOY, 2)
    assert found.indices == (1, 4)
    assert [f.tolist() for f in found.new] == [[1, 2], [3, 4]]
    assert found.covered.tolist() == [False, True, True, True, True]
    assert found.importance.argmax() == 1
    np.testing.assert_allclose(found.importance, np.sqrt([1, 4, 2, 1, 1]))
    assert submodular(TOY, 3).indices == (1, 4, 0)
    fourth = submodular(TOY, 5)
    assert fourth.indices == (1, 4, 0, 2, 3)  # the third row adds nothing any more
    assert fourth.gains[3:].tolist() == [0, 0]
    assert "2 of the 5 picks add nothing" in fourth.notes[0]


@settings(max_examples=120, deadline=None)
@given(weights, st.integers(1, 4))
def test_greedy_is_that_of_exact_arithmetic_and_within_its_bounds(table, budget):
    """Against naive greedy on fractions, and the best of all sets."""
    importance, found = exact(table), submodular(table, budget)
    budget = min(budget, len(table))
    chosen = []
    for _ in range(budget):
        rest = [i for i in range(len(table)) if i not in chosen]
        chosen.append(max(rest, key=lambda i: (covered(table, [*chosen, i], importance), -i)))
    reached, total = covered(table, found.indices, importance), sum(importance)
    best = max(covered(table, rows, importance) for rows in itertools.combinations(range(len(table)), budget))
    assert len(set(found.indices)) == budget
    if total and all(importance[j] == 0 or importance[j] > total / 10**12 for j in range(len(importance))):
        assert list(found.indices) == chosen
        np.testing.assert_allclose(found.coverage[-1], float(reached / total), atol=1e-12)
    assert reached >= (1 - 1 / math.e) * float(best) * (1 - 1e-9)
    assert found.bound * float(best) <= float(reached) * (1 + 1e-9)
    assert 0 < found.bound <= 1
    np.testing.assert_allclose(np.cumsum(found.gains), found.coverage, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(weights, st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_order_of_columns_and_the_storage_change_nothing(table, budget, chance):
    order = list(range(table.shape[1]))
    chance.shuffle(order)
    found, turned = submodular(table, budget), submodular(sparse.csc_array(table[:, order]), budget)
    assert found.indices == turned.indices
    assert found.gains.tolist() == turned.gains.tolist()
    assert found.bound == turned.bound
    assert [sorted(np.array(order)[f]) for f in turned.new] == [sorted(f) for f in found.new]


def test_ties_go_to_the_earlier_row_though_floats_would_round_apart():
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are different floats, and the same coverage."""
    squares = np.square([0.1, 0.2, 0.3, 0.3, 0.2, 0.1])
    table = np.zeros((2, 6))
    table[0, :3], table[1, 3:] = squares[:3], squares[3:]
    assert submodular(table, 1).indices == (0,)
    assert submodular(table[::-1], 1).indices == (0,)
    assert submodular(table[:, ::-1], 2).gains.tolist() == [0.5, 0.5]


def test_tiny_and_huge_weights_all_count():
    found = submodular([[1e-300, 0, 0], [0, 1e300, 0], [0, 0, 1.0]], 3)
    assert found.indices == (1, 0, 2)  # beside 1e300, 1 and 1e-300 are as good as equal, and more than nothing
    assert (found.gains > 0).all()
    assert submodular([[1e-30, 0, 0], [0, 1, 0], [0, 0, 1e-20]], 3).indices == (1, 2, 0)
    np.testing.assert_allclose(found.importance[1:], [1e150, 1])
    assert np.isfinite(importance_of([[1e308], [1e308]])).all()


def test_the_bound_of_the_data_is_sharper_than_the_promise():
    separate = submodular(np.eye(10), 3)  # nothing overlaps: greedy is best, and the bound knows
    assert separate.bound == 1.0
    assert separate.promised == GREEDY == pytest.approx(1 - 1 / math.e)
    assert separate.coverage.tolist() == pytest.approx([0.1, 0.2, 0.3])


def test_greedy_can_be_beaten_and_says_by_how_much_at_most():
    """The first row is the largest, and the other two together cover more."""
    table = np.array([[1, 1, 0, 1, 1, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    found = submodular(table, 2)
    assert found.indices[0] == 0
    assert found.coverage[-1] < 1
    assert found.bound == pytest.approx(found.coverage[-1])


def test_random_picks_are_seeded_and_their_coverage_is_counted_alike(rng):
    table = rng.random((30, 40)) * (rng.random((30, 40)) < 0.1)
    one, two = (random(table, 6, generator(7, "pick")) for _ in range(2))
    assert one.indices == two.indices != random(table, 6, generator(8, "pick")).indices
    assert one.promised is None
    (again,) = follow([table], one.indices)
    np.testing.assert_array_equal(one.coverage, again.coverage)
    curves = random_coverage(table, 6, generator(0), 50)
    assert curves.shape == (50, 6)
    assert (np.diff(curves, axis=1) >= 0).all()
    assert curves[:, -1].mean() < submodular(table, 6).coverage[-1]
    drawn = generator(0).permutation(30)[:6]
    np.testing.assert_array_equal(curves[0], follow([table], drawn)[0].coverage)


def test_two_models_take_turns_and_share_the_inputs():
    """The first model's reasons are in rows 0 and 1, the second's in rows 2 and 3."""
    first, second = np.zeros((5, 3)), np.zeros((5, 4))
    first[0, 0], first[1, 1] = 9, 4
    second[2, 0], second[3, 1] = 9, 4
    one, two = alternating([first, second], 4)
    assert one.indices == two.indices == (0, 2, 1, 3)
    assert one.by == (0, 1, 0, 1)
    assert one.coverage.tolist() == pytest.approx([0.6, 0.6, 1, 1])
    assert two.coverage.tolist() == pytest.approx([0, 0.6, 0.6, 1])
    assert one.promised == pytest.approx(1 - math.exp(-0.5))


def test_a_model_with_nothing_left_to_add_passes_its_turn_on():
    first, second = np.zeros((4, 1)), np.eye(4)
    first[3] = 1
    one, two = alternating([first, second], 4)
    assert one.indices == (3, 0, 1, 2)
    assert one.by == (0, 1, 1, 1)
    assert two.coverage[-1] == 1
    assert alternating([TOY], 2)[0].indices == (1, 4)


@settings(max_examples=40, deadline=None)
@given(weights, st.integers(1, 5), st.integers(0, 99))
def test_turns_are_greedy_for_whose_turn_it_is(table, budget, seed):
    other = np.random.default_rng(seed).permuted(table, axis=0)
    sides = alternating([table, other], budget)
    for place, (turn, gain) in enumerate(zip(sides[0].by, np.array([s.gains for s in sides]).T, strict=True)):
        before = list(sides[0].indices[:place])
        rest = [i for i in range(len(table)) if i not in before]
        could = [follow([(table, other)[turn]], [*before, i])[0].gains[-1] for i in rest]
        assert gain[turn] == pytest.approx(max(could), abs=1e-12)


# --- what cannot be picked from ---------------------------------------------------------------------------------------


def test_too_large_a_budget_picks_all_and_says_so():
    found = submodular(TOY, 9)
    assert sorted(found.indices) == [0, 1, 2, 3, 4]
    assert found.notes[0] == "9 explanations were asked for, and there are 5: all are picked."
    assert found.bound == 1
    assert len(found) == 5


def test_empty_explanations_and_all_zero_weights_are_told():
    nothing = submodular(np.zeros((4, 3)), 2)
    assert nothing.indices == (0, 1)
    assert nothing.coverage.tolist() == [0, 0]
    assert nothing.bound == 1.0
    assert "Every weight is 0" in nothing.notes[0]
    assert submodular(np.zeros((3, 0)), 1).indices == (0,)
    some = submodular([[0, 0], [1, 2]], 1)
    assert some.indices == (1,)
    assert some.notes == ("1 of 2 explanations is empty (every weight is 0) and can add nothing.",)


@pytest.mark.parametrize(("table", "budget", "words"), [
    (TOY, 0, "budget must be a whole number >= 1"), (TOY, 2.5, "budget must be a whole number"), (TOY, True, "budget must be"),
    (np.ones(3), 1, "matrix \\(explanations, features\\)"), (np.ones((0, 3)), 1, "at least one explanation"),
    ([[1.0, np.nan]], 1, "must be finite, got NaN or infinity in explanation 0"), ([[1, 2], [np.inf, 1]], 1, "explanation 1"),
    (np.ones((2, 2, 2)), 1, "matrix"),
])
def test_bad_weights_and_budgets_are_one_clear_error(table, budget, words):
    with pytest.raises(ValueError, match=words):
        submodular(table, budget)


def test_other_bad_input():
    with pytest.raises(TypeError, match="real numbers"):
        submodular([["a", "b"]], 1)
    with pytest.raises(ValueError, match="same inputs, got 4 and 5 rows"):
        alternating([TOY, TOY[:4]], 2)
    with pytest.raises(ValueError, match="different rows from 0 to 4"):
        follow([TOY], [1, 1])
    with pytest.raises(ValueError, match="turn of one of 1"):
        follow([TOY], [1, 2], [0, 1])
    with pytest.raises(ValueError, match="at least one model"):
        alternating([], 2)


def test_weights_are_left_as_they_are_and_signs_do_not_count():
    table = sparse.csr_matrix(-TOY.astype(float))
    before = table.copy()
    assert submodular(table, 2).indices == (1, 4)
    assert (table != before).nnz == 0
    doubled = sparse.coo_matrix(([1.0, -1.0, 2.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))
    assert submodular(doubled, 1).indices == (1,)  # entries for one place are added up before their size counts


def test_many_sparse_rows_take_little_memory_and_time(rng):
    """A tenth of what the benchmark has, without a dense matrix anywhere."""
    n, features = 10_000, 2_000
    places = np.repeat(np.arange(n), 10), rng.integers(0, features, 10 * n)
    table = sparse.csr_matrix((rng.exponential(size=10 * n), places), shape=(n, features))
    tracemalloc.start()
    found = submodular(table, 100)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 * 2**20  # a dense matrix would take 160
    assert isinstance(found, Pick)
    dense, importance, left, naive = table.toarray() > 0, importance_of(table), np.ones(features, bool), []
    for _ in range(5):
        naive.append(int((dense[:, left] @ importance[left]).argmax()))
        left &= ~dense[naive[-1]]
    assert list(found.indices[:5]) == naive


def test_the_public_name_is_the_function():
    assert callable(function)
