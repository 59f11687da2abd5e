"""Scores of continuous columns are contributions: slope times the distance of the row's value from the column's mean."""

import json

import numpy as np
import pandas as pd
import pytest

import whytrust as wt
from whytrust.compat.lime.lime_tabular import LimeTabularExplainer
from whytrust.readers import read

ROWS = np.random.default_rng(3).uniform(0, 10, (800, 2))
COEFFICIENTS = np.array([0.5, -2.0])
ROW = np.array([3.0, 9.0])  # the first value is below its mean, the second above


def linear(batch):
    return np.asarray(batch) @ COEFFICIENTS + 1


@pytest.fixture(scope="module")
def explained():
    return wt.explain(linear, ROW, background=ROWS, bins=None, samples=500, surrogate=False)


def test_the_scores_of_a_linear_model_are_coefficient_times_distance_from_the_mean(explained):
    truth = COEFFICIENTS * (ROW - ROWS.mean(axis=0))
    np.testing.assert_allclose(explained.scores, truth, rtol=1e-6)
    assert (np.sign(explained.scores) == [-1, -1]).all()  # the slopes have the signs + and −
    np.testing.assert_allclose(explained.slopes, COEFFICIENTS * ROWS.std(axis=0), rtol=1e-6)
    assert explained.intercept + explained.scores.sum() == pytest.approx(linear(ROW[None])[0])
    assert dict(explained.as_list()) == pytest.approx(dict(zip(explained.names, truth, strict=True)))


def test_below_the_middle_of_a_rising_curve_the_contribution_is_negative():
    found = wt.explain(lambda b: 1 / (1 + np.exp(-(b[:, 0] - 5))), [3.0, 5.0], background=ROWS, bins=None)
    pytest.importorskip("shap")
    np.testing.assert_array_equal(found.to_shap().values, found.scores)
    assert found.scores[0] < 0 < found.slopes[0]


def test_text_page_chart_and_file_have_the_contribution_and_the_slope_beside_it(explained, tmp_path):
    score, slope = explained.scores[1], explained.slopes[1]
    line = next(one for one in str(explained).splitlines() if "column 1 " in one)
    assert f"{score:+.3f}"[:6] in line
    assert f"(slope {slope:+.4g})" in line
    page = explained.as_html()
    assert "<th scope=\"col\">Slope</th>" in page
    assert f"−{abs(score):.2f}" in page
    assert f"column 1 (slope −{abs(slope):.3g})" in page
    assert "A slope is what one standard deviation" in page
    drawn = [text.get_text() for axes in explained.plot().axes for text in axes.texts]
    assert any(f"column 1 (slope −{abs(slope):.3g})" in text for text in drawn)
    explained.save(tmp_path / "e.json")
    assert json.loads((tmp_path / "e.json").read_text())["scores"] == explained.scores.tolist()
    assert wt.Explanation.load(tmp_path / "e.json") == explained


def test_standard_errors_are_those_of_contributions():
    def bent(batch):
        return batch[:, 0] ** 2 + batch[:, 1]

    several = [wt.explain(bent, [9.5, 5.1], background=ROWS, bins=None, samples=300, surrogate=False, seed=seed) for seed in range(60)]
    scores = np.array([e.scores for e in several])
    claimed = np.mean([e.standard_errors for e in several], axis=0)
    ratio = claimed / scores.std(axis=0)
    assert (np.abs(np.log(ratio)) < np.log(1.5)).all(), ratio
    assert claimed[0] > 20 * claimed[1]  # the second value stands near its mean: hardly any contribution, and hardly any error


def test_undecided_ranks_are_those_of_contributions():
    # Slopes of 1 and 1.02, too near to tell apart with noise; contributions of about 4 and 0.1.
    noise = np.random.default_rng(0)
    found = wt.explain(lambda b: b[:, 0] + 1.02 * b[:, 1] + noise.normal(0, 1, len(b)), [9.0, ROWS[:, 1].mean() + 0.1],
                       background=ROWS, bins=None, samples=200, surrogate=False)
    assert abs(found.slopes[0] - found.slopes[1]) < 2 * found.standard_errors[0] / abs(found.origin[0])
    assert found.undecided == ()


def test_measure_judges_the_contributions():
    """Contributions of a linear model add up to what hiding columns behind their means takes from the score; slopes do not."""
    found = wt.measure(linear, ROW, "lime", ["completeness", "infidelity/scaled"], background=ROWS, bins=None)
    assert found.values["completeness"]["lime"][0] < 1e-9
    assert found.values["infidelity/scaled"]["lime"][0] < 1e-9


def test_a_simulated_reader_takes_the_contributions(explained):
    taken = read(explained, np.arange(2), 0.0)
    np.testing.assert_allclose(taken.contributions, (COEFFICIENTS * (ROW - ROWS.mean(axis=0)))[taken.features], rtol=1e-6)


def test_a_tree_s_scores_are_steps_on_its_path_and_are_not_multiplied():
    found = wt.explain(linear, ROW, background=ROWS, bins=None, family="tree")
    assert found.slopes is None
    assert found.intercept + found.scores.sum() == pytest.approx(found.local_prediction)


def test_a_difference_subtracts_contributions_and_slopes(explained):
    other = wt.explain(lambda b: linear(b) * 3, ROW, background=ROWS, bins=None, samples=500, surrogate=False)
    found = other.minus(explained)
    np.testing.assert_allclose(found.scores, 2 * explained.scores, rtol=1e-6)
    np.testing.assert_allclose(found.slopes, 2 * explained.slopes, rtol=1e-6)
    binned = wt.explain(linear, ROW, background=ROWS, features="all", samples=500)
    assert binned.minus(explained).slopes is None


def test_the_lime_drop_in_keeps_lime_s_weights():
    lime = pytest.importorskip("lime.lime_tabular")
    options = {"mode": "regression", "discretize_continuous": False, "random_state": 0}
    ours, theirs = (module(ROWS, **options).explain_instance(ROW, linear, num_samples=4000)
                    for module in (LimeTabularExplainer, lime.LimeTabularExplainer))
    assert dict(ours.as_map()[1]) == pytest.approx(dict(theirs.as_map()[1]), rel=0.01)
    assert [name for name, _ in ours.as_list()] == [name for name, _ in theirs.as_list()]
    np.testing.assert_allclose(ours.whytrust[1].scores, COEFFICIENTS * (ROW - ROWS.mean(axis=0)), rtol=0.01)


def as_saved_by_0_1(e):
    """What version 0.1 wrote of the same explanation: slopes as scores."""
    data = json.loads(json.dumps(e.to_json()))
    slopes, origin = data.pop("slopes"), data["origin"]
    errors = [error / abs(own) for error, own in zip(data["standard_errors"], origin, strict=True)]
    return data | {"format": 1, "scores": slopes, "standard_errors": errors}


def test_an_explanation_of_version_0_1_is_read_as_contributions(explained):
    read_again = wt.Explanation.from_json(as_saved_by_0_1(explained))
    np.testing.assert_allclose(read_again.scores, explained.scores)
    np.testing.assert_allclose(read_again.slopes, explained.slopes)
    np.testing.assert_allclose(read_again.standard_errors, explained.standard_errors)
    assert any("0.1" in note for note in read_again.notes)


def test_a_tree_of_version_0_1_keeps_its_scores():
    tree = wt.explain(linear, ROW, background=ROWS, bins=None, family="tree")
    data = json.loads(json.dumps(tree.to_json())) | {"format": 1, "origin": [-0.6, 1.3]}
    del data["slopes"]
    assert wt.Explanation.from_json(data) == tree


def test_a_missing_cell_is_said_to_stand_at_the_mean():
    frame = pd.DataFrame({"age": np.where(np.arange(400) % 5 == 0, np.nan, np.arange(400) % 61.0), "size": np.arange(400) % 7.0})
    mean = frame["age"].mean()

    def model(batch):
        return np.where(batch["age"].isna(), 5.0, 0.0) + batch["size"].to_numpy()

    gone = wt.explain(model, {"age": None, "size": 3.0}, background=frame, bins=None)
    assert gone.scores[0] == 0
    note = next(one for one in gone.notes if "missing" in one)
    assert f"age: {mean:.4g}" in note
    assert "has no age" in note
    there = wt.explain(model, {"age": 7.0, "size": 3.0}, background=frame, bins=None)
    note = next(one for one in there.notes if "missing" in one)
    assert f"age: {mean:.4g}" in note
    assert "has no" not in note
    assert not any("missing" in one for one in wt.explain(model, {"age": 7.0, "size": 3.0}, background=frame).notes)
