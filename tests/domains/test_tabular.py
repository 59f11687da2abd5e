"""Rows of a table as parts: bins and draws against lime and scipy, controls by enumeration."""


from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lime.discretize import DecileDiscretizer, QuartileDiscretizer
from scipy import stats

from domains.tables import ALL, mixed_frame, small_parts, states_of
from whitebox import examples
from whytrust.core import DrawnParts, generator
from whytrust.domains.tabular import TableParts, TableStatistics
from whytrust.views import TableView, from_json


@pytest.fixture
def rng() -> np.random.Generator:
    return generator(7)


# --- bins -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rule", "oracle"), [("quartile", QuartileDiscretizer), ("decile", DecileDiscretizer)])
def test_bins_and_their_moments_are_limes(rule: Any, oracle: Any, rng: np.random.Generator) -> None:
    data = rng.normal(size=(501, 4))
    reference = oracle(data, [], [str(j) for j in range(4)])
    bins = reference.discretize(data)
    for j, column in enumerate(TableStatistics.fit(data, bins=rule).columns):
        assert [column.locate(v)[0] for v in data[:, j]] == bins[:, j].astype(int).tolist()
        np.testing.assert_allclose(column.frequencies, np.bincount(bins[:, j].astype(int)) / len(data), rtol=1e-12)
        np.testing.assert_allclose(column.means, reference.means[j], rtol=1e-12)
        np.testing.assert_allclose(column.sds, reference.stds[j], rtol=1e-9)
        np.testing.assert_array_equal(column.mins, reference.mins[j])
        np.testing.assert_array_equal(column.maxs, reference.maxs[j])


numbers = st.one_of(st.integers(-50, 50).map(float), st.floats(-1e6, 1e6, allow_nan=False).map(lambda v: round(v, 3)))


@examples(150)
@given(st.lists(numbers, min_size=2, max_size=200).filter(lambda v: len(set(v)) > 1), st.sampled_from(["quartile", "decile"]))
def test_every_value_lies_in_exactly_one_bin_and_no_bin_is_empty(values: list[float], rule: Any) -> None:
    column = TableStatistics.fit(np.array(values)[:, None], bins=rule).columns[0]
    assert list(column.edges) == sorted(set(column.edges))
    limits = [-np.inf, *column.edges, np.inf]
    inside = np.array([[low < v <= high for low, high in pairwise(limits)] for v in values])
    assert (inside.sum(axis=1) == 1).all()
    assert inside.any(axis=0).all()
    assert len(column.edges) >= 1, "a column that varies must be seen to vary"
    np.testing.assert_allclose(column.frequencies, inside.mean(axis=0))
    assert [column.locate(v)[0] for v in values] == inside.argmax(axis=1).tolist()
    np.testing.assert_allclose(sum(column.chances), 1)
    assert set(column.atoms) <= set(values)
    for atom, state in zip(column.atoms, column.states, strict=True):
        assert column.locate(atom)[0] == state


def test_own_bins_are_taken_and_other_columns_keep_quartiles() -> None:
    data = np.column_stack([np.arange(100.0), np.arange(100.0), np.arange(100.0)])
    fitted = TableStatistics.fit(data, bins={"b": [10, 90, 200], 2: None}, names=["a", "b", "c"])
    assert fitted.columns[0].edges == (24.75, 49.5, 74.25)
    assert fitted.columns[1].edges == (10.0, 90.0)  # above 200 there is nothing to draw
    assert fitted.columns[2].kind == "continuous"


def test_a_column_that_is_mostly_its_greatest_value_still_varies() -> None:
    parts = TableParts.cut([1], np.array([[0]] * 5 + [[1]] * 95))
    assert parts.names == ("column 0 > 0",)


# --- names and view ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "name"), [
    ({"age": 30, "work": "private"}, "age ≤ 30"), ({"age": 31, "work": "private"}, "30 < age ≤ 45"),
    ({"age": 99, "work": "private"}, "age > 45"), ({"age": np.nan, "work": "private"}, "age is missing")])
def test_names_are_conditions(row: dict[str, Any], name: str) -> None:
    frame = pd.DataFrame({"age": [20, 30, 40, 50, np.nan] * 20, "work": ["private", "state"] * 50})
    parts = TableParts.cut(row, frame, bins={"age": [30, 45]})
    assert parts.names == (name, "work = private")
    assert parts.view.columns == ("age", "work")
    assert parts.view.conditions == parts.names
    assert isinstance(parts.view, TableView)
    assert from_json(json.loads(json.dumps(parts.view.to_json()))) == parts.view


def test_names_tell_close_edges_apart() -> None:
    data = 1000 + np.linspace(0, 1e-3, 101)[:, None]
    name = TableParts.cut([1000.0004], data).names[0]
    low, high = name.split(" < ")[0], name.split(" ≤ ")[1]
    assert float(low) < 1000.0004 <= float(high)


def test_a_continuous_column_is_called_by_its_name() -> None:
    parts = TableParts.cut([0.5, 1], np.random.default_rng(0).normal(size=(99, 2)), bins=None, names=["u", "v"])
    assert parts.names == ("u", "v")


# --- draws ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", ["training", "normal"])
def test_states_are_drawn_by_training_frequency(values: Any, rng: np.random.Generator) -> None:
    frame = mixed_frame()
    parts = TableParts.cut(frame.iloc[0], frame, values=values)
    rows = parts.draw(5000, rng).rows(ALL)
    for column in parts.statistics.columns:
        counts = np.bincount(states_of(column, rows[column.label]), minlength=len(column.frequencies))
        assert stats.chisquare(counts, column.frequencies * len(rows)).pvalue > 1e-4, column.name


@pytest.mark.parametrize("values", ["training", "normal"])
def test_the_design_says_whether_the_drawn_value_shares_the_rows_state(values: Any, rng: np.random.Generator) -> None:
    frame = mixed_frame()
    parts = TableParts.cut(frame.iloc[5], frame, values=values)
    draws = parts.draw(300, rng)
    rows = draws.rows(ALL)
    np.testing.assert_array_equal(draws.origin, 1)
    for j, column in enumerate(parts.statistics.columns):
        own = column.locate(frame[column.label].iloc[5])[0]
        same = [column.locate(v)[0] == own for v in rows[column.label]]
        np.testing.assert_array_equal(draws.design[:, j], np.array(same, float), err_msg=column.name)


def test_drawn_bins_have_limes_frequencies(rng: np.random.Generator) -> None:
    data = rng.normal(size=(400, 3))
    reference = QuartileDiscretizer(data, [], list("abc")).discretize(data)
    parts = TableParts.cut(data[0], data)
    share = parts.draw(40_000, rng).design.mean(axis=0)
    np.testing.assert_allclose(share, (reference == reference[0]).mean(axis=0), atol=0.01)


def test_training_draws_are_values_of_the_training_data(rng: np.random.Generator) -> None:
    data = np.column_stack([rng.normal(size=1000), rng.integers(0, 9, 1000)])
    rows = TableParts.cut(data[0], data).draw(500, rng).rows(ALL)
    assert all(np.isin(rows[:, j], data[:, j]).all() for j in range(2))


def test_normal_draws_follow_scipys_truncated_normal(rng: np.random.Generator) -> None:
    data = rng.lognormal(size=(2000, 1))
    parts = TableParts.cut(data[0], data, values="normal")
    column = parts.statistics.columns[0]
    drawn = parts.draw(40_000, rng).rows(ALL)[:, 0]
    for b, (mean, sd, low, high) in enumerate(zip(column.means, column.sds, column.mins, column.maxs, strict=True)):
        truth = stats.truncnorm((low - mean) / sd, (high - mean) / sd, loc=mean, scale=sd)
        inside = drawn[(drawn > low) & (drawn <= high)]
        assert abs(len(inside) / len(drawn) - column.frequencies[b]) < 0.01
        # 32 cells of equal chance: each is 8 of the slices in which a normal is drawn.
        assert stats.chisquare(np.histogram(truth.cdf(inside), 32, (0, 1))[0]).pvalue > 1e-3
    assert drawn.min() >= data.min()
    assert drawn.max() <= data.max()


@pytest.mark.parametrize("values", ["training", "normal"])
def test_continuous_columns_are_standardised(values: Any, rng: np.random.Generator) -> None:
    data = rng.normal([5, -2], [3, 0.1], size=(3000, 2))
    parts = TableParts.cut(data[1], data, bins=None, values=values)
    draws = parts.draw(20_000, rng)
    np.testing.assert_allclose(draws.origin, (data[1] - data.mean(axis=0)) / data.std(axis=0))
    np.testing.assert_allclose(draws.design, (draws.rows(ALL) - data.mean(axis=0)) / data.std(axis=0), atol=1e-9)
    np.testing.assert_allclose(draws.design.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose(draws.design.std(axis=0), 1, atol=0.05)
    assert draws.controls is None


def test_a_missing_value_of_a_continuous_column_stands_at_the_mean(rng: np.random.Generator) -> None:
    data = np.where(rng.random((500, 2)) < 0.3, np.nan, rng.normal(size=(500, 2)))
    for values in ("training", "normal"):
        parts = TableParts.cut([np.nan, 0.3], data, bins=None, values=values)  # type: ignore[arg-type]
        draws = parts.draw(300, rng)
        gone = np.isnan(draws.rows(ALL))
        assert 0.2 < gone.mean() < 0.4
        assert (draws.design[gone] == 0).all()
        assert draws.origin[0] == 0


@pytest.mark.parametrize("values", ["training", "normal"])
def test_slices_are_the_rows(values: Any, rng: np.random.Generator) -> None:
    frame = mixed_frame()
    draws = TableParts.cut(frame.iloc[0], frame, values=values).draw(50, rng)
    pieces = pd.concat([draws.rows(slice(i, i + 7)) for i in range(0, 50, 7)], ignore_index=True)
    pd.testing.assert_frame_equal(pieces, draws.rows(ALL))


@pytest.mark.parametrize("values", ["training", "normal"])
def test_the_same_seed_gives_the_same_draws(values: Any) -> None:
    frame = mixed_frame()
    first, second = (TableParts.cut(frame.iloc[0], frame, values=values).draw(40, generator(1)) for _ in range(2))
    pd.testing.assert_frame_equal(first.rows(ALL), second.rows(ALL))
    np.testing.assert_array_equal(first.design, second.design)


# --- support and controls ---------------------------------------------------------------------------------------------


def patterns(design: np.ndarray) -> np.ndarray:
    return np.unique(design, axis=0, return_inverse=True)[1].ravel()


def test_support_lists_every_draw_with_its_chance(rng: np.random.Generator) -> None:
    parts = small_parts()
    every = parts.support(10_000)
    assert every is not None
    assert every.chances is not None
    assert len(every) == 7 * 5 * 4
    np.testing.assert_allclose(every.chances.sum(), 1, rtol=1e-12)
    assert len(every.rows(ALL).drop_duplicates()) == len(every)
    listed = every.rows(ALL).assign(chance=every.chances)
    drawn = parts.draw(60_000, rng).rows(ALL).groupby(["a", "b", "c"], dropna=False).size().reset_index(name="count")
    both = listed.merge(drawn, on=["a", "b", "c"], how="outer")
    assert both["chance"].notna().all()
    assert stats.chisquare(both["count"].fillna(0), both["chance"] * 60_000).pvalue > 1e-4


@pytest.mark.parametrize("limit", [0, 139])
def test_support_is_none_above_the_limit(limit: int) -> None:
    assert small_parts().support(limit) is None


def test_support_is_none_where_values_come_from_a_normal() -> None:
    assert small_parts("normal").support(10**9) is None


def test_controls_have_mean_zero_given_the_design() -> None:
    every = small_parts().support(10_000)
    assert every is not None
    assert every.controls is not None
    which = patterns(every.design)
    for pattern in range(which.max() + 1):
        here = which == pattern
        np.testing.assert_allclose(every.chances[here] @ every.controls[here], 0, atol=1e-14)


def test_controls_and_design_explain_every_additive_model() -> None:
    """Few states: indicators and deviations span each column's values up to curvature inside a bin, of which c has none."""
    every = small_parts().support(10_000)
    assert every is not None
    effect = every.rows(ALL)["c"].map({"x": 1.0, "y": -2.0, "z": 0.3, "w": 7.0}).to_numpy()
    columns = np.hstack([np.ones((len(every), 1)), every.design, every.controls])
    rest = effect - columns @ np.linalg.lstsq(columns, effect, rcond=None)[0]
    np.testing.assert_allclose(rest, 0, atol=1e-10)
    assert np.linalg.matrix_rank(columns) == columns.shape[1]


def test_controls_of_normal_draws_have_mean_zero_given_the_design(rng: np.random.Generator) -> None:
    frame = mixed_frame()
    draws = TableParts.cut(frame.iloc[0], frame, values="normal").draw(60_000, rng)
    for j in range(draws.design.shape[1]):
        for z in (0.0, 1.0):
            inside = draws.controls[draws.design[:, j] == z]
            error = inside.mean(axis=0) / (inside.std(axis=0) / np.sqrt(len(inside)) + 1e-12)
            assert np.abs(error).max() < 5


def test_two_sets_of_draws_have_the_same_control_columns(rng: np.random.Generator) -> None:
    frame = mixed_frame()
    for values in ("training", "normal"):
        parts = TableParts.cut(frame.iloc[0], frame, values=values)  # type: ignore[arg-type]
        assert parts.draw(1, rng).controls.shape[1] == parts.draw(900, rng).controls.shape[1]


def test_many_categories_have_few_controls(rng: np.random.Generator) -> None:
    frame = pd.DataFrame({"c": rng.choice([f"c{i}" for i in range(40)], 2000)})
    draws = TableParts.cut({"c": "c3"}, frame).draw(10, rng)
    assert draws.controls.shape == (10, 8)


# --- compose ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", ["training", "normal"])
def test_a_mask_of_ones_composes_the_row(values: Any, rng: np.random.Generator) -> None:
    frame = mixed_frame()
    for i in range(12):
        parts = TableParts.cut(frame.iloc[i], frame, values=values)
        assert isinstance(parts, DrawnParts)
        assert not parts.deterministic
        pd.testing.assert_frame_equal(parts.compose(np.ones((1, 12), bool), rng), frame.iloc[[i]].reset_index(drop=True))


def test_kept_columns_show_a_value_that_is_not_in_the_training_data(rng: np.random.Generator) -> None:
    data = rng.normal(size=(300, 2))
    row = np.array([17.123456789, -9.0])
    masks = rng.random((50, 2)) < 0.5
    out = TableParts.cut(row, data).compose(masks, rng)
    np.testing.assert_array_equal(out[masks], np.broadcast_to(row, (50, 2))[masks])
    assert np.isin(out[~masks[:, 0], 0], data[:, 0]).all()


def test_hidden_columns_are_drawn_by_training_frequency(rng: np.random.Generator) -> None:
    parts = small_parts("normal")
    hidden = parts.compose(np.zeros((20_000, 3), bool), rng)
    for column in parts.statistics.columns:
        states = states_of(column, hidden[column.label])
        assert stats.chisquare(np.bincount(states), column.frequencies * len(hidden)).pvalue > 1e-4


def test_composing_in_batches_gives_the_same_rows(rng: np.random.Generator) -> None:
    frame = mixed_frame()
    parts = TableParts.cut(frame.iloc[0], frame)
    masks = rng.random((30, 12)) < 0.5
    batched = generator(4)
    pieces = pd.concat([parts.compose(masks[i:i + 11], batched) for i in range(0, 30, 11)], ignore_index=True)
    pd.testing.assert_frame_equal(pieces, parts.compose(masks, generator(4)))


def test_pool_is_a_number_a_column() -> None:
    parts = small_parts()
    np.testing.assert_array_equal(parts.pool(np.array([1.0, -2, 3]), "mean_abs"), [1, 2, 3])
    with pytest.raises(ValueError, match="shaped like the input"):
        parts.pool(np.ones(4), "mean")
