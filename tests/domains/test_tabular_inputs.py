"""What tables may come as, what is kept of them, and every error."""


from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from domains.tables import ALL, mixed_frame
from whytrust.core import Draws, generator
from whytrust.domains.tabular import TableParts, TableStatistics


@pytest.fixture
def rng() -> np.random.Generator:
    return generator(7)


# --- containers and dtypes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", ["training", "normal"])
def test_frames_keep_their_dtypes(values: Any, rng: np.random.Generator) -> None:
    frame = mixed_frame()
    parts = TableParts.cut(frame.iloc[0], frame, values=values)
    for batch in (parts.draw(60, rng).rows(slice(3, 50)), parts.compose(rng.random((9, 12)) < 0.5, rng)):
        assert list(batch.columns) == list(frame.columns)
        assert (batch.dtypes == frame.dtypes).all()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "int8", "uint8", "bool", "<U3", "object"])
@pytest.mark.parametrize("values", ["training", "normal"])
def test_arrays_keep_their_dtype(dtype: str, values: Any, rng: np.random.Generator) -> None:
    data = (rng.random((200, 3)) * (1 if dtype == "bool" else 100)).round().astype(dtype)
    for bins in ("quartile", None):
        parts = TableParts.cut(data[0], data, values=values, bins=bins)  # type: ignore[arg-type]
        batch = parts.draw(40, rng).rows(ALL)
        assert isinstance(batch, np.ndarray)
        assert batch.dtype == data.dtype
        np.testing.assert_array_equal(parts.compose(np.ones((1, 3), bool), rng), data[:1])


def test_whole_numbers_stay_in_their_bin_when_rounded(rng: np.random.Generator) -> None:
    data = rng.integers(0, 12, (500, 4))
    parts = TableParts.cut(data[0], data, bins="decile", values="normal")
    draws = parts.draw(2000, rng)
    rows = draws.rows(ALL)
    for j, column in enumerate(parts.statistics.columns):
        own = column.locate(data[0, j])[0]
        np.testing.assert_array_equal([column.locate(v)[0] == own for v in rows[:, j]], draws.design[:, j] == 1)


def test_object_arrays_keep_python_objects(rng: np.random.Generator) -> None:
    data = np.array([[1, "a", None, True, 2.5], [2, "b", "x", False, np.nan], [3, "a", "x", True, 7.0]], dtype=object)
    parts = TableParts.cut(data[0], data)
    assert [c.kind for c in parts.statistics.columns] == ["binned", "categorical", "categorical", "categorical", "binned"]
    rows = parts.draw(200, rng).rows(ALL)
    assert {type(v) for v in rows[:, 0]} == {int}
    assert set(rows[:, 1]) == {"a", "b"}
    assert set(rows[:, 2]) == {None, "x"}
    assert {type(v) for v in rows[:, 3]} == {bool}
    assert {type(v) for v in rows[:, 4]} == {float}
    assert any(v != v for v in rows[:, 4])


def test_lists_of_rows_become_arrays(rng: np.random.Generator) -> None:
    assert TableParts.cut([1, 2], [[1, 2], [3, 4]]).draw(3, rng).rows(ALL).dtype.kind == "i"
    assert TableParts.cut([1, 2], [[1, 2.5], [3, None]]).draw(3, rng).rows(ALL).dtype == np.float64
    assert TableParts.cut(["u", 2], [["u", 2], ["v", 4]]).draw(3, rng).rows(ALL).dtype == object


def test_listed_columns_are_categorical_by_name_or_index(rng: np.random.Generator) -> None:
    data = rng.integers(0, 4, (100, 3)).astype(np.float32)
    data[:, 1] /= 10
    parts = TableParts.cut([1, 0.1, 3], data, categorical=["b", 2], names=["a", "b", "c"])
    assert [c.kind for c in parts.statistics.columns] == ["binned", "categorical", "categorical"]
    assert parts.names[2] == "c = 3"


def test_rows_of_every_kind_mean_the_same() -> None:
    frame = mixed_frame()
    fitted = TableStatistics.fit(frame)
    row = frame.iloc[7]
    shuffled = frame[list(frame.columns)[::-1]]
    truth = TableParts(row, fitted)
    for other in (row.to_dict(), row.tolist(), tuple(row), frame.iloc[[7]], shuffled.iloc[7], shuffled.iloc[[7]],
                  row.to_numpy(), row.to_numpy()[None], dict(reversed(list(row.to_dict().items())))):
        assert TableParts.cut(other, fitted) == truth
    data = np.arange(12.0).reshape(6, 2)
    assert TableParts.cut(pd.Series([3.0, 4.0]), data) == TableParts.cut([3.0, 4.0], data)


def test_missing_values_are_a_state_of_their_own(rng: np.random.Generator) -> None:
    frame = mixed_frame()
    i = int(np.flatnonzero(frame["height"].isna())[0])
    parts = TableParts.cut(frame.iloc[i], frame)
    draws = parts.draw(300, rng)
    for name in ("height", "children", "asked", "note"):
        j = list(frame.columns).index(name)
        assert parts.names[j] == f"{name} is missing"
        np.testing.assert_array_equal(draws.design[:, j] == 1, draws.rows(ALL)[name].isna())
    assert parts.view.values[7] == "missing"


def test_constant_columns_stay_as_they_are(rng: np.random.Generator) -> None:
    data = np.column_stack([np.full(50, 0.1), np.arange(50.0), np.full(50, np.nan)])
    for values in ("training", "normal"):
        parts = TableParts.cut([0.1, 3, np.nan], data, values=values)  # type: ignore[arg-type]
        draws = parts.draw(100, rng)
        assert (draws.design[:, [0, 2]] == 1).all()
        assert (draws.rows(ALL)[:, 0] == 0.1).all()
        assert draws.controls.shape[1] == 4  # all of the column that varies
        assert parts.names[2] == "column 2 is missing"


@pytest.mark.parametrize("column", [
    np.linspace(-1e300, 1e300, 99), np.linspace(-1e-300, 1e-300, 99),
    np.arange(99, dtype=np.uint64) * np.uint64(2**56) + np.uint64(2**63 + 1),
    np.arange(-49, 50) * 2**56 + 1], ids=["huge", "tiny", "uint64", "int64"])
@pytest.mark.filterwarnings("error")
def test_extreme_numbers_are_kept_exactly(column: np.ndarray, rng: np.random.Generator) -> None:
    data = column[:, None]
    for values in ("training", "normal"):
        parts = TableParts.cut(data[40], data, values=values)  # type: ignore[arg-type]
        np.testing.assert_array_equal(parts.compose(np.ones((1, 1), bool), rng), data[40:41])
        rows = parts.draw(50, rng).rows(ALL)
        assert (rows >= data.min()).all()
        assert (rows <= data.max()).all()
        assert values == "normal" or np.isin(rows, data).all()


def test_values_outside_the_training_range_fall_in_the_outer_bins() -> None:
    data = np.arange(100.0)[:, None]
    assert TableParts.cut([-1e9], data).names == ("column 0 ≤ 24.75",)
    assert TableParts.cut([1e9], data).names == ("column 0 > 74.25",)


# --- statistics -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", ["training", "normal"])
@pytest.mark.parametrize("bins", ["quartile", "decile", None, {"age": [30, 50], "wage": None}])
def test_saved_statistics_draw_the_same(values: Any, bins: Any, tmp_path: Any) -> None:
    frame = mixed_frame()
    fitted = TableStatistics.fit(frame, bins=bins)
    fitted.save(tmp_path / "table.json")
    loaded = TableStatistics.load(tmp_path / "table.json")
    assert loaded == fitted
    assert pickle.loads(pickle.dumps(fitted)) == fitted
    before, after = (TableParts.cut(frame.iloc[0], s, values=values).draw(50, generator(2)) for s in (fitted, loaded))
    pd.testing.assert_frame_equal(before.rows(ALL), after.rows(ALL))
    np.testing.assert_array_equal(before.design, after.design)
    np.testing.assert_array_equal(before.controls, after.controls)


def test_array_statistics_survive_json(rng: np.random.Generator) -> None:
    for data in (rng.normal(size=(90, 2)), rng.integers(0, 300, (90, 2)), np.array([["a", 1], ["b", None]], dtype=object)):
        fitted = TableStatistics.fit(data)
        assert TableStatistics.from_json(json.loads(json.dumps(fitted.to_json()))) == fitted


@pytest.mark.parametrize("data", [
    np.array([["a", "b" * 3000], ["c", "d"]]), np.array([["a"], ["b"]], dtype="<U900"), np.array([["1.5"], ["x"]], dtype=object), np.array([[1], [2]], dtype=">i2"),
    np.array([[True], [False]]), pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), pd.DataFrame({"a": ["x", "y"]}, dtype="category"),
    pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2021-01-01"]).tz_localize("Europe/Vienna")}), pd.DataFrame({"a": pd.to_timedelta([1, 2], "s")}),
    pd.DataFrame({"a": ["x", "y"]}, dtype="string"), pd.DataFrame({"a": ["x", "y"]}, dtype=object), pd.DataFrame({"a": [1.0, 2.0]}, dtype="double[pyarrow]")])
def test_statistics_of_every_dtype_are_read_again(data: Any, tmp_path: Path) -> None:
    fitted = TableStatistics.fit(data)
    fitted.save(tmp_path / "x.json")
    assert TableStatistics.load(tmp_path / "x.json") == fitted


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("dtype", ["<U1000000", "S99999999", "V100000000", "i8,f8", "complex128", "category", "bad", "", 5, "<U" + "9" * 30])
def test_a_dtype_that_no_training_data_has_is_refused_by_its_column(dtype: Any, frame: bool, tmp_path: Path) -> None:
    told = TableStatistics.fit(pd.DataFrame({"age": [1.0, 2.0]}) if frame else np.array([[1.0], [2.0]]), names=None if frame else ["age"]).to_json()
    told["columns"][0]["storage"]["dtype"] = dtype
    (tmp_path / "x.json").write_text(json.dumps(told))
    with pytest.raises(ValueError, match="dtype of column 'age'"):
        TableStatistics.load(tmp_path / "x.json")
    if not frame:
        told = TableStatistics.fit(np.array([[1.0], [2.0]])).to_json() | {"dtype": dtype}
        (tmp_path / "x.json").write_text(json.dumps(told))
        with pytest.raises(ValueError, match="dtype of the table"):
            TableStatistics.load(tmp_path / "x.json")


def test_statistics_do_not_grow_with_the_training_data(rng: np.random.Generator) -> None:
    small, large = (len(json.dumps(TableStatistics.fit(rng.normal(size=(n, 1))).to_json())) for n in (50_000, 200_000))
    assert large < 1.1 * small


def test_parts_and_draws_pickle() -> None:
    frame = mixed_frame()
    for values in ("training", "normal"):
        parts = TableParts.cut(frame.iloc[0], frame, values=values)  # type: ignore[arg-type]
        again: Draws = pickle.loads(pickle.dumps(parts)).draw(20, generator(1))
        pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(again)).rows(ALL), parts.draw(20, generator(1)).rows(ALL))


def test_arrays_need_no_pandas() -> None:
    code = ("import sys; sys.modules['pandas'] = None; import numpy as np; from whytrust.domains.tabular import TableParts;"
            "x = np.random.default_rng(0).normal(size=(50, 2)); p = TableParts.cut(x[0], x);"
            "print(p.draw(5, np.random.default_rng(1)).rows(slice(0, 5)).shape)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(5, 2)"


# --- errors -----------------------------------------------------------------------------------------------------------

GRID = np.arange(20.0).reshape(10, 2)
FRAME = pd.DataFrame({"age": range(20), "work": ["private", "state"] * 10})


@pytest.mark.parametrize(("background", "options", "message"), [
    (np.arange(5.0), {}, r"shape \(rows, columns\), got \(5,\)"),
    (np.empty((0, 3)), {}, "rows and columns"),
    ([], {}, "rows and columns|list of rows"),
    ([1.0, 2.0], {}, "not rows"),
    ([[1, 2], [3]], {}, r"rows of \[1, 2\] values"),
    (np.ones((5, 2)), {}, "all 2 are constant"),
    (np.array([[1.0], [np.inf]]), {}, "'column 0' of the background must be finite, got inf"),
    (np.ones((3, 2), complex), {}, "complex"),
    (GRID, {"bins": "thirds"}, "'quartile', 'decile'.*'thirds'"),
    (GRID, {"bins": {"wage": [3]}}, r"bins must name columns.*\(column 0, column 1\).*'wage'"),
    (GRID, {"bins": {0: ["a"]}}, "list of numbers"),
    (GRID, {"bins": {0: [np.nan]}}, "finite numbers"),
    (GRID, {"bins": {0: [99]}}, "go from 0 to 18.*99"),
    (GRID, {"categorical": [7]}, "categorical must name columns"),
    (GRID, {"names": ["a"]}, "has 2, got 1"),
    (GRID, {"names": ["a", "a"]}, "got a more than once"),
    (FRAME, {"names": ["a", "b"]}, "leave names out"),
    (pd.DataFrame({"z": [1j, 2j]}), {}, "'z' must hold real numbers"),
    (pd.DataFrame({"lists": [[1], [2]]}), {}, "'lists'.*cannot be counted"),
])
def test_a_wrong_background_is_a_clear_error(background: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableStatistics.fit(background, **options)


@pytest.mark.parametrize(("row", "message"), [
    ({"age": 3}, "missing work"),
    ({"age": 3, "work": "state", "wage": 1}, "extra wage"),
    (pd.Series({"age": 3, "job": "state"}), "missing work; extra job"),
    ([3], "training data's 2 columns, got 1"),
    (FRAME.iloc[:2], "DataFrame of 2"),
    ({"age": 3, "work": "self"}, "'work' must hold a category.*'private', 'state'.*'self'"),
    ({"age": np.nan, "work": "state"}, "'age' is never missing"),
    ({"age": 3, "work": None}, "'work' is never missing"),
    ({"age": np.inf, "work": "state"}, "'age' must be finite"),
    ({"age": "old", "work": "state"}, "'age' is numeric.*'old'"),
    ({"age": 3.5, "work": "state"}, "'age' is stored as int64, which cannot hold 3.5"),
    ({"age": 2**70, "work": "state"}, "'age' is stored as int64, which cannot hold"),
])
def test_a_wrong_row_is_a_clear_error(row: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TableParts.cut(row, FRAME)


def test_wrong_types_and_options_are_clear_errors(tmp_path: Any) -> None:
    fitted = TableStatistics.fit(FRAME)
    with pytest.raises(TypeError, match="got str"):
        TableParts.cut("row", fitted)
    with pytest.raises(TypeError, match="got dict"):
        TableStatistics.fit({"a": [1, 2]})
    with pytest.raises(ValueError, match="'uniform'"):
        TableParts.cut(FRAME.iloc[0], fitted, values="uniform")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="fitted already"):
        TableParts.cut(FRAME.iloc[0], fitted, bins="decile")
    with pytest.raises(ValueError, match=r"expected \(n, 2\)"):
        TableParts.cut(FRAME.iloc[0], fitted).compose(np.ones((1, 3), bool), generator(0))
    with pytest.raises(ValueError, match="wider dtype"):
        TableParts.cut([1e300], np.arange(9, dtype=np.float32)[:, None])


def test_unreadable_statistics_are_clear_errors(tmp_path: Any) -> None:
    for text in ("{", "[]", "{}", '{"kind": "table statistics", "version": 1}'):
        (tmp_path / "x.json").write_text(text)
        with pytest.raises(ValueError, match=r"TableStatistics\.(save|to_json) wrote"):
            TableStatistics.load(tmp_path / "x.json")
    months = pd.DataFrame({"when": pd.period_range("2020-01", periods=3, freq="M")})
    with pytest.raises(TypeError, match=r"'when' must hold text.*pickle"):
        TableStatistics.fit(months).to_json()


# --- dates and spans of time ------------------------------------------------------------------------------------------


def times_frame(unit: str = "ns", zone: str | None = None, n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    joined = pd.Series(pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D")).dt.tz_localize(zone)
    frame = pd.DataFrame({"joined": joined.dt.as_unit(unit), "age": rng.integers(18, 80, n),
                          "wait": pd.to_timedelta(rng.integers(0, 10**6, n), unit="s").as_unit(unit)})
    frame.loc[::5, "joined"] = pd.NaT
    return frame


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
@pytest.mark.parametrize("zone", [None, "Europe/Vienna"])
@pytest.mark.parametrize("values", ["training", "normal"])
@pytest.mark.parametrize("bins", ["quartile", None])
def test_dates_are_numbers_that_the_model_gets_as_dates(unit: str, zone: Any, values: Any, bins: Any,
                                                        rng: np.random.Generator) -> None:
    frame = times_frame(unit, zone)
    parts = TableParts.cut(frame.iloc[1], frame, values=values, bins=bins)
    assert [c.kind for c in parts.statistics.columns] == ["binned" if bins else "continuous"] * 3
    drawn = parts.draw(300, rng).rows(ALL)
    assert (drawn.dtypes == frame.dtypes).all()
    assert 0.1 < drawn["joined"].isna().mean() < 0.3
    assert not drawn["wait"].isna().any()
    if bins:
        assert drawn["joined"].min() >= frame["joined"].min()
        assert drawn["joined"].max() <= frame["joined"].max()
    pd.testing.assert_frame_equal(parts.compose(np.ones((1, 3), bool), rng), frame.iloc[[1]].reset_index(drop=True))


@pytest.mark.parametrize("zone", [None, "Europe/Vienna"])
def test_conditions_on_dates_are_readable_and_true(zone: Any) -> None:
    frame = times_frame(zone=zone)
    column = TableStatistics.fit(frame).columns[0]
    inside = [frame["joined"][i] for i in range(len(frame)) if column.locate(frame["joined"][i])[0] == 1]
    low, _, _, _, high = column.condition(1, column.locate(inside[0])[1]).split()
    assert len(low) == len("2020-01-03")
    assert low < str(min(inside))[:10]
    assert str(max(inside))[:10] <= high
    parts = TableParts.cut(frame.iloc[0], frame)
    assert parts.names[0] == "joined is missing"
    assert parts.view.values[0] == "missing"
    assert TableParts.cut({"joined": "2019-05-01 06:30", "age": 30, "wait": pd.Timedelta("2D")}, frame).view.values == (
        "2019-05-01 06:30:00", "30", "2 days")


def test_dates_that_days_cannot_tell_apart_are_shown_finer() -> None:
    hours = pd.DataFrame({"at": pd.date_range("2020-01-03", periods=24, freq="h")})
    assert TableParts.cut([pd.Timestamp("2020-01-03 03:00")], hours).names == ("at ≤ 2020-01-03 05:45:00",)


def test_dates_go_through_json_and_edges_may_be_dates() -> None:
    frame = times_frame(zone="Europe/Vienna")
    fitted = TableStatistics.fit(frame, bins={"joined": ["2019-01-01", pd.Timestamp("2021-01-01", tz="Europe/Vienna")]})
    again = TableStatistics.from_json(json.loads(json.dumps(fitted.to_json())))
    assert again == fitted
    row = {"joined": pd.Timestamp("2020-07-01", tz="UTC"), "age": 30, "wait": pd.Timedelta("2D")}
    assert TableParts.cut(row, again).names[0] == "2019-01-01 < joined ≤ 2021-01-01"
    listed = TableStatistics.fit(frame, categorical=["joined"])
    assert TableParts.cut(frame.iloc[1], listed).names[0] == f"joined = {str(frame['joined'][1])[:10]}"


@pytest.mark.parametrize(("value", "message"), [
    (2020, "'joined' is stored as datetime64.*such a time, got 2020.*bare number"),
    ("soon", "'joined' is stored as datetime64.*'soon'"),
    (pd.Timestamp("2020", tz="UTC"), "'joined' is stored as datetime64.*timezone"),
    (pd.Timedelta("1D"), "'joined' is stored as datetime64.*Timedelta"),
])
def test_what_is_no_date_is_refused_in_a_column_of_dates(value: Any, message: str) -> None:
    frame = times_frame()
    with pytest.raises(ValueError, match=message):
        TableParts.cut({"joined": value, "age": 30, "wait": pd.Timedelta("2D")}, frame)
    with pytest.raises(ValueError, match="'joined' must be a list of times"):
        TableStatistics.fit(frame, bins={"joined": [2019, 2020]})
    with pytest.raises(ValueError, match=r"go from 2018-.* give an edge between"):
        TableStatistics.fit(frame, bins={"joined": ["2050-01-01"]})
    with pytest.raises(ValueError, match=r"'joined' must have a time zone that can be named.*tz_convert"):
        TableStatistics.fit(times_frame(zone="dateutil/Europe/Vienna"))
