"""Metrics hide columns of whole numbers and of dates behind values that such columns can hold."""

import numpy as np
import pandas as pd
import pytest

import whytrust as wt
from whytrust.domains.tabular import TableParts

FRAME = pd.DataFrame({"age": np.arange(200) % 61 + 1, "small": (np.arange(200) % 7).astype("uint8"),
                      "joined": pd.date_range("2018-01-01", periods=200), "size": np.arange(200) / 3})
ROW = FRAME.iloc[[7]]


def model(batch):
    assert batch.dtypes.to_dict() == FRAME.dtypes.to_dict()
    return 2.0 * batch["age"].to_numpy() - batch["small"].to_numpy() + batch["size"].to_numpy()


def test_the_typical_row_has_rounded_means_that_its_columns_can_hold():
    parts = TableParts.cut(ROW, FRAME)
    behind = parts.behind("mean", np.random.default_rng(0)).compose(np.zeros((1, 4), bool), np.random.default_rng(0))
    assert behind.dtypes.to_dict() == FRAME.dtypes.to_dict()
    assert behind["age"][0] == round(FRAME["age"].mean())
    assert behind["small"][0] == round(FRAME["small"].mean())
    assert behind["joined"][0] == FRAME["joined"].mean()
    assert behind["size"][0] == pytest.approx(FRAME["size"].mean())


@pytest.mark.parametrize("baseline", [None, "mean", "zeros", "noise"])
def test_metrics_judge_rows_with_whole_numbers_and_dates(baseline):
    found = wt.measure(model, ROW, "occlusion", ["pixel_flipping", "max_sensitivity"], background=FRAME, baseline=baseline)
    assert not found.errors
    assert np.isfinite(found.values["pixel_flipping"]["occlusion"]).all()


def test_contributions_to_the_rounded_means_are_complete():
    truth = np.array([2.0 * (8 - round(FRAME["age"].mean())), -(0.0 - round(FRAME["small"].mean())), 0.0, 7 / 3 - FRAME["size"].mean()])
    found = wt.measure(model, ROW.iloc[0], {"truth": truth}, ["completeness"], background=FRAME)
    assert found.values["completeness"]["truth"][0] == pytest.approx(0, abs=1e-9)


def test_rows_near_a_row_keep_whole_numbers_whole():
    parts = TableParts.cut(ROW, FRAME)
    near = [parts.near(0.2, np.random.default_rng(seed)).row for seed in range(20)]
    assert all(isinstance(row[0], int) and isinstance(row[1], int) and row[1] >= 0 for row in near)
    assert len({row[0] for row in near}) > 3
