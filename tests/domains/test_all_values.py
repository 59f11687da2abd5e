"""Columns are drawn from all of their training values, so that averages over draws are averages over training rows."""

import numpy as np
import pandas as pd
import pytest

import whytrust as wt
from whytrust.domains.columns import MOST_VALUES
from whytrust.domains.tabular import TableStatistics


def drawn_mean(column, function=lambda v: v):
    return float(np.dot(column.chances, function(np.array(column.atoms, dtype=np.float64))))


@pytest.mark.parametrize("bins", ["quartile", None])
def test_every_training_value_is_drawn_as_often_as_it_occurs(bins):
    values = np.repeat(np.random.default_rng(0).pareto(1.5, 900) + 1, 3)
    column = TableStatistics.fit(np.column_stack([values, values]), bins=bins).columns[0]
    assert column.atoms == tuple(np.unique(values).tolist())
    np.testing.assert_allclose(column.chances, 1 / 900)


def test_a_score_is_the_difference_of_training_means_in_a_heavy_tailed_column():
    """f = x: the weight of the row's bin is the mean of the bin less the mean of all other rows, by definition."""
    rows = np.random.default_rng(1).pareto(1.5, (1500, 2)) + 1
    rows[:, 1] = np.arange(1500) % 2
    found = wt.explain(lambda b: b[:, 0], [50.0, 1.0], background=rows, samples=4000)
    x = rows[:, 0]
    inside = x > np.percentile(x, 75)
    truth = x[inside].mean() - x[~inside].mean()
    assert abs(found.scores[0] - truth) < 4 * found.standard_errors[0] + 1e-6 * truth


def test_kernel_shap_of_a_heavy_tailed_column_is_the_distance_from_the_training_mean():
    rows = np.random.default_rng(2).pareto(2.5, (1000, 2)) + 1
    found = wt.explain(lambda b: b[:, 0] + b[:, 1], [7.0, 2.0], method="kernel_shap", background=rows)
    assert (np.abs(found.scores - ([7.0, 2.0] - rows.mean(axis=0))) < 4 * found.standard_errors).all()


@pytest.mark.parametrize("rule", ["quartile", "decile", None])
def test_of_very_many_values_fewer_are_drawn_that_keep_the_mean_of_each_bin(rule):
    values = np.random.default_rng(3).pareto(1.5, 3 * MOST_VALUES) + 1
    column = TableStatistics.fit(np.column_stack([values, values]), bins=rule).columns[0]
    assert len(column.atoms) <= MOST_VALUES
    assert set(column.atoms) <= set(values.tolist())
    assert sum(column.chances) == pytest.approx(1)
    assert min(column.chances) >= 0
    states = np.array(column.states)
    for state, mean in enumerate(column.means):
        mine = states == state
        assert np.average(np.array(column.atoms)[mine], weights=np.array(column.chances)[mine]) == pytest.approx(mean)
    for function in (np.log, np.sqrt, lambda v: v > 2.5):
        assert drawn_mean(column, function) == pytest.approx(function(values).mean(), rel=2e-4)


def heavy(gaps=False, spread=2.0):
    """60,000 rows of a heavy tail beside a coin; a row in the middle; (the score of f(x), by definition) -> number."""
    rng = np.random.default_rng(2)
    x = np.exp(spread * rng.normal(size=3 * MOST_VALUES))
    rows = np.column_stack([x, rng.integers(0, 2, len(x))])
    row = rows[np.argsort(x)[len(x) // 2]]
    if gaps:
        rows[::7, 0] = np.nan
    there = rows[~np.isnan(rows[:, 0]), 0]
    edges = np.append(np.quantile(there, [0.25, 0.5, 0.75]), np.inf)
    mine = np.searchsorted(edges, rows[:, 0]) == np.searchsorted(edges, row[0])
    return rows, row, lambda f: f(rows[mine, 0]).mean() - f(rows[~mine, 0]).mean()


SHAPES = {"squares": lambda v: np.nan_to_num(v) ** 2, "roots": lambda v: np.sqrt(np.nan_to_num(v)), "steps": lambda v: (v > 10.0) * 1.0}


@pytest.mark.parametrize("shape", SHAPES)
def test_of_very_many_values_any_is_drawn_and_none_are_said_to_be_all(shape):
    rows, row, truth = heavy()
    found = wt.explain(lambda b: SHAPES[shape](b[:, 0]), row, background=rows, samples=5 * MOST_VALUES)
    assert 0 < found.standard_errors[0] < abs(truth(SHAPES[shape]))
    assert abs(found.scores[0] - truth(SHAPES[shape])) < 3 * found.standard_errors[0]
    assert not any("come from a file" in note for note in found.notes)


@pytest.mark.parametrize("gaps", [False, True])
def test_the_error_of_very_many_values_is_as_large_as_it_is_said_to_be(gaps):
    rows, row, truth = heavy(gaps, spread=1.0)
    statistics = TableStatistics.fit(rows)
    found = [wt.explain(lambda b: SHAPES["roots"](b[:, 0]), row, background=statistics, samples=2000, seed=seed) for seed in range(40)]
    z = [(one.scores[0] - truth(SHAPES["roots"])) / one.standard_errors[0] for one in found]
    assert 0.75 < np.std(z) < 1.3
    assert abs(np.mean(z)) < 0.5


def test_saved_statistics_of_very_many_values_say_what_the_error_leaves_out(tmp_path):
    rows, row, _ = heavy()
    statistics = TableStatistics.fit(rows)
    statistics.save(tmp_path / "kept.json")
    read = TableStatistics.load(tmp_path / "kept.json")
    assert read == statistics
    assert (tmp_path / "kept.json").stat().st_size < 80 * MOST_VALUES
    found = wt.explain(lambda b: np.sqrt(b[:, 0]), row, background=read, samples=5 * MOST_VALUES)
    assert found.standard_errors[0] > 0
    assert any("come from a file" in note and "is not in the ±" in note for note in found.notes)


def test_very_many_values_keep_their_type_wherever_they_are_shown():
    n = MOST_VALUES + 1000
    rng = np.random.default_rng(5)
    table = pd.DataFrame({"count": rng.permutation(n) * 3, "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(n), "h"),
                          "coin": rng.choice(["head", "tail"], n)})
    asked = []

    def score(batch):
        asked.append(batch)
        return batch["count"].to_numpy() % 2 + (batch["coin"] == "head").to_numpy()

    for method, options in (("lime", {"samples": 500}), ("kernel_shap", {"samples": 500, "hidden": "columns"}), ("occlusion", {})):
        wt.explain(score, table.iloc[3], method, background=table, **options)
    seen = pd.concat(asked)
    assert (seen.dtypes == table.dtypes).all()
    for name in table:
        assert set(seen[name]) <= set(table[name])


def test_very_many_large_numbers_and_whole_numbers_keep_their_mean():
    large = np.linspace(-1, 1, MOST_VALUES + 5) * 1.5e308
    column = TableStatistics.fit(np.column_stack([large, large])).columns[0]
    assert np.isfinite(column.chances).all()
    assert sum(column.chances) == pytest.approx(1)
    whole = pd.DataFrame({"a": np.arange(MOST_VALUES + 7) ** 2, "b": 1.0})
    column = TableStatistics.fit(whole).columns[0]
    assert all(isinstance(atom, int) for atom in column.atoms)
    assert drawn_mean(column) == pytest.approx(whole["a"].mean())
