"""Parzen windows over table rows, images and sounds, beside other methods and in audits."""


import numpy as np
import pytest

import whytrust as wt
from explainers.parzen_truth import (
    MODEL,
    Slanted,
    bright_corner,
    clouds,
    mixed_frame,
    naive_probability,
    reviews,
)

# --- tables -----------------------------------------------------------------------------------------------------------


def test_between_two_clouds_the_gradient_points_from_one_to_the_other():
    table, axis = clouds(2000)
    model = wt.model(lambda rows: 1 / (1 + np.exp(-3 * np.asarray(rows) @ axis)), threshold=0.5)
    found = wt.explain(model, table.mean(axis=0), "parzen", target=1, background=table, width=0.8)
    slope = found.slopes / table.std(axis=0)  # from standard deviations back to the columns' own units
    assert slope @ axis / np.linalg.norm(slope) > 0.98
    assert found.names[0].startswith("column 0 = ")
    assert found.intercept + found.scores.sum() == pytest.approx(found.local_prediction)
    np.testing.assert_allclose(found.scores, found.slopes * found.origin)


def test_a_table_of_numbers_is_the_naive_probability_in_standard_deviations(rng):
    table, axis = clouds(90)
    model = wt.model(lambda rows: 1 / (1 + np.exp(-np.asarray(rows) @ axis)), threshold=0.5)
    found = wt.explain(model, table[3], "parzen", target=1, background=table, width=0.7)
    units = (table - table.mean(axis=0)) / table.std(axis=0)
    assert found.local_prediction == pytest.approx(naive_probability(units[3], units, (table @ axis > 0).astype(float), 0.7))


def test_categories_dates_and_missing_values_have_features_of_their_own():
    frame = mixed_frame(400)
    model = wt.model(lambda rows: (rows["town"] == "Wien").to_numpy(float) * 0.8 + 0.1, threshold=0.5)
    inside = frame[frame["town"] == "Wien"].iloc[0]
    found = wt.explain(model, inside, "parzen", background=frame)
    assert found.as_list(1)[0] == ("town = Wien", pytest.approx(found.scores.max()))
    assert found.scores[1] > 0
    missing = frame[frame["age"].isna() & frame["town"].notna()].iloc[0]
    known = wt.explain(model, missing, "parzen", target=1, background=frame)
    assert np.isfinite(known.scores).all()
    assert known.origin[0] == 1.0  # missing is a category


def test_features_of_a_frame_are_what_they_should_be():
    from whytrust.domains.tabular import TableParts
    frame = mixed_frame(60)
    parts = TableParts.cut(frame.iloc[5], frame)
    made = parts.vectors(frame)
    dense = made.matrix.toarray()
    age = frame["age"].to_numpy()
    units = np.where(np.isnan(age), 0, (age - np.nanmean(age)) / np.nanstd(age))
    np.testing.assert_allclose(dense[:, 0], units)
    np.testing.assert_array_equal(dense[:, 1], np.isnan(age))
    atoms = parts.statistics.columns[1].atoms
    truth = [[(town is None and atom is None) or town == atom for atom in atoms]
             for town in frame["town"].astype(object).where(frame["town"].notna(), None)]
    np.testing.assert_array_equal(dense[:, 2:2 + len(atoms)], truth)
    np.testing.assert_allclose(made.vector(parts), dense[5])
    assert dense.shape[1] == 2 + len(atoms) + 1 + 2
    assert made.batch(slice(2, 4)).equals(frame.iloc[2:4])


def test_lists_of_rows_and_arrays_are_the_same(rng):
    table, axis = clouds(60)
    model = wt.model(lambda rows: 1 / (1 + np.exp(-np.asarray(rows, dtype=float) @ axis)), threshold=0.5)
    first = wt.explain(model, table[0], "parzen", background=table)
    second = wt.explain(model, table[0], "parzen", background=table.tolist())
    np.testing.assert_allclose(first.scores, second.scores)


# --- images and sounds ------------------------------------------------------------------------------------------------


def test_the_part_of_an_image_that_matters_comes_first(rng):
    images = rng.random((600, 4, 4))
    images[:, :2, :2] = rng.random((600, 1, 1))
    model = wt.model(bright_corner, threshold=0.5)
    found = wt.explain(model, images[0], "parzen", target=1, background=images, parts="grid:2x2")
    assert found.order[0] == 0
    assert found.scores[0] > 0
    listed = wt.explain(model, images[0], "parzen", target=1, background=list(images), parts="grid:2x2")
    assert listed == found
    guessed = wt.explain(model, images[0], "parzen", target=1, background=images)  # no parts: still no table
    assert guessed.view.kind == "image"


def test_channels_come_first_where_the_model_wants_them(rng):
    pictures = rng.random((80, 6, 6, 3))
    model = wt.model(lambda batch: 1 / (1 + np.exp(-20 * (batch[:, 0].mean(axis=(1, 2)) - 0.5))), threshold=0.5, layout="NCHW")
    first = wt.explain(model, np.moveaxis(pictures[0], -1, 0), "parzen", background=np.moveaxis(pictures, -1, 1), parts="grid:2x2")
    second = wt.explain(model, np.moveaxis(pictures[0], -1, 0), "parzen", background=pictures, parts="grid:2x2")
    assert first.scores.tolist() == second.scores.tolist()


@pytest.mark.parametrize("parts", ["time:4", "tf:2x2"])
def test_sounds_are_compared_sample_by_sample(rng, parts):
    waves = rng.normal(size=(60, 800)) * rng.random((60, 1))
    waves[:, :200] += rng.choice([-1, 1], 60)[:, None]
    model = wt.model(lambda batch: 1 / (1 + np.exp(-5 * batch[:, :200].mean(axis=1))), threshold=0.5)
    found = wt.explain(model, waves[0], "parzen", target=1, background=waves, parts=parts, rate=800)
    assert np.isfinite(found.scores).all()
    assert found.view.kind == "sound"
    if parts == "time:4":
        assert found.order[0] == 0


# --- several methods, audits --------------------------------------------------------------------------------------------


def test_others_beside_it_get_what_they_want(rng):
    table, axis = clouds(60)
    model = wt.model(lambda rows: 1 / (1 + np.exp(-np.asarray(rows) @ axis)), threshold=0.5)
    lime, parzen, greedy = wt.explain(model, table[0], ["lime", "parzen", "greedy"], background=table)
    assert lime == wt.explain(model, table[0], "lime", background=table)
    assert parzen.scores.tolist() == wt.explain(model, table[0], "parzen", background=table).scores.tolist()
    assert greedy.method == "greedy"
    text = wt.explain(MODEL, "good film", ["occlusion", "parzen"], background=reviews(40))
    assert [e.method for e in text] == ["occlusion", "parzen"]


def test_ready_made_parts_keep_their_own_background(rng):
    from whytrust.domains.tabular import TableParts
    table, axis = clouds(60)
    model = wt.model(lambda rows: 1 / (1 + np.exp(-np.asarray(rows) @ axis)), threshold=0.5)
    found = wt.explain(model, table[0], "parzen", parts=TableParts.cut(table[0], table), background=table)
    assert found.scores.tolist() == wt.explain(model, table[0], "parzen", background=table).scores.tolist()


def test_rows_of_a_table_are_audited_with_the_audit_s_background(tmp_path):
    table, axis = clouds(120)
    model = wt.model(Slanted(axis), threshold=0.5)
    runs = [wt.audit(model, table[:8], ["parzen", "greedy"], background=table, out=tmp_path / str(jobs), jobs=jobs, block=2,
                     draws=2) for jobs in (1, 2)]
    first, second = ({row["name"]: row for row in run.table()} for run in runs)
    assert {"parzen", "greedy"} <= set(first)
    assert first == second
    assert not [note for note in runs[0].to_json().get("notes", ()) if "parzen" in note]


