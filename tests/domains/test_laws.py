"""How columns are drawn, and what many controls do to the weights of a wide table: against truths in closed form."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whytrust as wt
from whitebox import examples
from whytrust.core import generator
from whytrust.domains.laws import Atoms, Chooser, slice_means
from whytrust.domains.tabular import TableParts, TableStatistics
from whytrust.question import Question

ROW = 5


@examples(100)
@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=80), st.integers(0, 100))
def test_a_chooser_finds_what_a_search_in_the_cumulated_chances_finds(shares: list[float], seed: int) -> None:
    chances = np.array(shares) / sum(shares)
    limits = np.cumsum(chances)[:-1]
    place = np.concatenate([generator(seed).random(200), limits[limits < 1], [0.0, 0.25, 1 - 2.0**-53]])
    np.testing.assert_array_equal(Chooser.by(chances)(place), np.searchsorted(limits, place, side="right"))


def wide_table() -> np.ndarray[Any, Any]:
    return np.asarray(generator(1).normal(size=(400, 20)))


def curve(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Additive, so that the weights are known: one number a column, bent differently in each."""
    return np.asarray((np.sin(rows * np.linspace(0.5, 2, rows.shape[1])) + 0.2 * rows**2).sum(axis=1))


def additive_truth(background: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Columns are drawn independently, so a weight is the column's mean effect in the row's bin less that elsewhere."""
    parts = TableParts.cut(background[ROW], background)
    truth = []
    for j, (column, value) in enumerate(zip(parts.statistics.columns, background[ROW], strict=True)):
        atoms, chances = np.array(column.atoms, dtype=float), np.array(column.chances)
        only = np.zeros((len(atoms), background.shape[1]))
        only[:, j] = atoms
        effect, mine = curve(only), np.array(column.states) == column.locate(value)[0]
        truth.append(np.average(effect[mine], weights=chances[mine]) - np.average(effect[~mine], weights=chances[~mine]))
    return np.array(truth)


def test_many_controls_leave_the_weights_of_an_additive_model_what_they_are_and_take_noise_away() -> None:
    background, options = wide_table(), {"samples": 1500, "selection": "none", "features": "all"}
    truth = additive_truth(background)
    errors = {}
    for surrogate in (True, False):
        runs = [wt.explain(curve, background[ROW], background=background, surrogate=surrogate, seed=seed, **options)
                for seed in range(25)]
        off = np.array([run.scores - truth for run in runs])
        errors[surrogate] = np.sqrt((off**2).mean())
        inside = np.abs(off) <= 1.96 * np.array([run.standard_errors for run in runs])
        assert 0.92 < inside.mean() < 0.98  # 500 intervals
        assert np.abs(off.mean(axis=0) / (off.std(axis=0, ddof=1) / 5)).max() < 4.5  # no bias
        assert runs[0].settings["surrogate"] is surrogate
    assert errors[True] < 0.75 * errors[False]


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("values", ["training", "normal"])
def test_what_is_asked_ahead_is_what_would_have_been_asked(frame: bool, values: Any) -> None:
    background: Any = wide_table()[:, :4]
    if frame:
        background = pytest.importorskip("pandas").DataFrame(background, columns=list("abcd")).assign(e=["x", "y"] * 200)
    row = background.iloc[ROW] if frame else background[ROW]
    asked: list[int] = []

    def model(rows: Any) -> Any:
        asked.append(len(rows))
        return np.asarray(rows["a"] * rows["b"] + (rows["e"] == "x") if frame else rows[:, 0] * rows[:, 1])

    def question() -> Question:
        return Question(wt.model(model), TableParts.cut(row, background, values=values), batch_size=100)

    plain, foreseen = question(), question()
    draws, scores = plain.draw(250, generator(3))
    original = plain.original
    asked.clear()
    foreseen.ask_ahead(foreseen.foresee("draw-250", rng := generator(3), lambda: foreseen.parts.draw(250, rng)))
    assert asked == [100]
    again, same = foreseen.watching([0])[0].draw(250, rng := generator(3))
    assert asked == [100, 100, 51]
    np.testing.assert_array_equal(foreseen.original, original)
    np.testing.assert_array_equal(again.design, draws.design)
    np.testing.assert_array_equal(same, scores)
    plain.draw(250, other := generator(3))
    assert rng.bit_generator.state == other.bit_generator.state


def test_explaining_rows_does_not_make_the_statistics_grow() -> None:
    table = np.array([[f"v{i % 300}", float(i % 7)] for i in range(900)], dtype=object)
    statistics = TableStatistics.fit(table)
    before = len(pickle.dumps(statistics))
    for row in table[:50]:
        wt.explain(lambda rows: np.array([float(r[1]) for r in rows]), list(row), background=statistics, samples=50)
    assert len(pickle.dumps(statistics)) == before
    held = [key for column in statistics.columns for key in vars(Atoms.from_training(column))]
    assert sum(key.startswith(("complete", "controls")) for key in held) <= 2 * 7  # none for 300 categories


@pytest.mark.parametrize("rule", ["quartile", "decile", None])
def test_slices_of_a_normal_have_its_mean_and_nearly_its_spread(rule: Any) -> None:
    stats = pytest.importorskip("scipy.stats")
    column = TableStatistics.fit(generator(4).lognormal(size=(900, 1)), bins=rule).columns[0]
    atoms = Atoms.from_normals(column)
    assert np.bincount(atoms.states, atoms.chances) == pytest.approx(column.frequencies, abs=1e-12)
    for state, (mean, sd, low, high) in enumerate(zip(column.means, column.sds, column.mins, column.maxs, strict=True)):
        limits = (-np.inf, np.inf) if rule is None else ((low - mean) / sd, (high - mean) / sd)
        truth = stats.truncnorm(*limits, loc=mean, scale=sd)
        mine = atoms.numbers[atoms.states == state]
        assert mine.mean() == pytest.approx(truth.mean(), abs=1e-9)
        assert mine.std() == pytest.approx(truth.std(), rel=5e-3)
        assert np.abs(truth.cdf(np.sort(mine)) - (np.arange(len(mine)) + 0.5) / len(mine)).max() < 0.5 / len(mine)


def test_slices_of_whole_numbers_are_whole_and_stay_in_their_bins() -> None:
    column = TableStatistics.fit(generator(4).integers(-40, 90, (500, 1))).columns[0]
    atoms = Atoms.from_normals(column)
    assert atoms.array.dtype == np.int64
    np.testing.assert_array_equal(np.searchsorted(column.edges, atoms.array), atoms.states)


@pytest.mark.parametrize("wide", [1e-3, 1e-2, 1, 1e2, 1e5, 1e9, 1e12])
def test_slices_between_limits_that_are_close_together_are_even(wide: float) -> None:
    stats = pytest.importorskip("scipy.stats")
    for middle in (0.0, 0.4, -2.0):
        low, high = middle - 0.5 / wide, middle + 0.5 / wide
        means = slice_means(np.array([low]), np.array([high]), 64)[0]
        assert (np.diff(means) > 0).all()
        if wide > 10:
            np.testing.assert_allclose((means - low) * wide, (np.arange(64) + 0.5) / 64, atol=0.02)
        else:
            np.testing.assert_allclose(stats.norm.cdf(means), stats.norm.cdf(low) + np.diff(stats.norm.cdf([low, high]))
                                       * (np.arange(64) + 0.5) / 64, atol=0.01)


def test_a_bin_of_one_value_or_without_any_has_slices_inside_it() -> None:
    means = slice_means(np.array([0.0, -1e12, 3e11, -np.inf]), np.array([0.0, -1e11, 4e11, np.inf]), 8)
    np.testing.assert_array_equal(means[:3], [[0.0] * 8, [-1e11] * 8, [3e11] * 8])
    assert means[3] == pytest.approx(-means[3][::-1])


def test_a_table_of_many_bins_is_kept_small() -> None:
    table = generator(2).normal(size=(600, 20))
    statistics = TableStatistics.fit(table, bins="decile")
    for row in table[:60]:
        parts = TableParts(row, statistics, "normal")
        parts.draw(5, generator(0))
    assert len(pickle.dumps(parts)) < 1.2 * len(pickle.dumps(statistics))
    kept = sum(held.nbytes for column in statistics.columns for atoms in vars(column).values() if isinstance(atoms, Atoms)
               for held in (*vars(atoms).values(), *vars(atoms.choose).values()) if isinstance(held, np.ndarray))
    assert kept < 20 * 200_000
