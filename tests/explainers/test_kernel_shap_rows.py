"""Kernel SHAP of table rows is about whole background rows, as in shap; held against enumeration and against shap itself."""

from itertools import combinations
from math import factorial

import numpy as np
import pandas as pd
import pytest

import whytrust as wt
from whytrust.domains.tabular import TableStatistics

RNG = np.random.default_rng(5)
BASE = RNG.normal(size=(60, 1))
ROWS = np.hstack([BASE, BASE + 0.05 * RNG.normal(size=(60, 1)), RNG.normal(size=(60, 1))])  # the first two are nearly the same
ROW = np.array([1.2, -0.7, 0.4])


def product(batch):
    """Depends on how the first two columns go together."""
    x = np.asarray(batch, dtype=np.float64)
    return x[:, 0] * x[:, 1] + 0.5 * x[:, 2]


def shapley(function, row, rows):
    """By definition: v(S) is the mean over background rows of the score with the columns of S set to the row's."""
    d, values = len(row), {}
    for size in range(d + 1):
        for shown in combinations(range(d), size):
            mixed = rows.copy()
            mixed[:, list(shown)] = row[list(shown)]
            values[shown] = function(mixed).mean()
    found = np.zeros(d)
    for j in range(d):
        for shown in (s for s in values if j not in s):
            weight = factorial(len(shown)) * factorial(d - len(shown) - 1) / factorial(d)
            found[j] += weight * (values[tuple(sorted((*shown, j)))] - values[shown])
    return found, values[()]


def independent(rows):
    """Every combination of the columns' values: what drawing columns one by one averages over."""
    few = rows[:20]
    return np.array(np.meshgrid(*few.T)).reshape(few.shape[1], -1).T


def test_values_are_those_of_whole_background_rows():
    truth, base = shapley(product, ROW, ROWS)
    found = wt.explain(product, ROW, method="kernel_shap", background=ROWS, samples=20_000)
    assert found.intercept == pytest.approx(base, abs=0.05)
    assert (np.abs(found.scores - truth) < 4 * found.standard_errors).all()
    assert found.standard_errors.max() < 0.03
    assert any("one training row together" in note for note in found.notes)


def test_columns_one_by_one_are_another_game():
    truth, _ = shapley(product, ROW, ROWS[:20])
    other, _ = shapley(product, ROW, independent(ROWS))
    found = wt.explain(product, ROW, method="kernel_shap", background=ROWS[:20], samples=20_000, hidden="columns")
    assert np.abs(truth - other).max() > 0.1
    assert (np.abs(found.scores - other) < 4 * found.standard_errors).all()
    assert np.abs(found.scores - truth).max() > 4 * found.standard_errors.max()
    assert any("each column drawn by itself" in note for note in found.notes)


def test_values_agree_with_shap_s_kernel_explainer():
    shap = pytest.importorskip("shap")
    theirs = shap.KernelExplainer(product, ROWS).shap_values(ROW, silent=True)
    found = wt.explain(product, ROW, method="kernel_shap", background=ROWS, samples=20_000)
    assert (np.abs(found.scores - theirs) < 4 * found.standard_errors).all()


@pytest.mark.parametrize("batch_size", [None, 7])
def test_hidden_columns_of_a_frame_keep_the_pairs_of_the_training_rows(batch_size):
    frame = pd.DataFrame({"town": pd.Categorical(["Wien", "Linz", None] * 20), "code": [1010, 4020, 0] * 20,
                          "when": list(pd.date_range("2020-01-01", periods=3)) * 20, "size": np.arange(60) / 10})
    pairs = set(zip(frame["town"].astype(object).where(frame["town"].notna(), None), frame["code"], strict=True))
    seen = []

    def model(batch):
        assert batch.dtypes.to_dict() == frame.dtypes.to_dict()
        seen.append(batch)
        return batch["size"].to_numpy()

    row = frame.iloc[0]
    found = wt.explain(model, row, method="kernel_shap", background=frame, samples=200, batch_size=batch_size)
    asked = pd.concat(seen)
    both_hidden = asked[(asked["code"] != 1010) & (asked["town"] != "Wien")]
    came = set(zip(both_hidden["town"].astype(object).where(both_hidden["town"].notna(), None), both_hidden["code"], strict=True))
    assert came <= pairs
    assert len(came) == 2
    assert found.scores[3] == pytest.approx(0 - frame["size"].mean(), abs=4 * found.standard_errors[3])
    same = wt.explain(model, row, method="kernel_shap", background=frame, samples=200)
    np.testing.assert_array_equal(found.scores, same.scores)


def test_saved_statistics_hold_no_rows_and_the_note_says_how_columns_are_drawn(tmp_path):
    fitted = TableStatistics.fit(ROWS)
    fitted.save(tmp_path / "s.json")
    loaded = TableStatistics.load(tmp_path / "s.json")
    assert "rows" not in fitted.to_json()
    assert loaded == fitted
    found = wt.explain(product, ROW, method="kernel_shap", background=loaded, samples=200)
    assert any("each column drawn by itself" in note for note in found.notes)


def test_of_many_training_rows_a_note_says_how_many_are_drawn_from():
    many = np.tile(ROWS, (20_000 // len(ROWS) + 2, 1))
    found = wt.explain(product, ROW, method="kernel_shap", background=many, samples=100)
    assert any(f"beside these 20,000, of {len(many):,}, would change is not in the ±" in note for note in found.notes)
    assert not any("beside these" in note for note in
                   wt.explain(product, ROW, method="kernel_shap", background=ROWS, samples=100).notes)


def test_rows_that_change_later_do_not_change_the_statistics():
    mine = ROWS.copy()
    fitted = TableStatistics.fit(mine)
    mine[:] = 0
    np.testing.assert_array_equal(fitted.rows, ROWS)


def test_hidden_must_be_rows_or_columns():
    with pytest.raises(ValueError, match="hidden must be 'rows'"):
        wt.explain(product, ROW, method="kernel_shap", background=ROWS, hidden="both")
