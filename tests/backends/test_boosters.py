"""Boosters say what their own libraries say of the same rows, in arrays and tables, with gaps and categories."""

import itertools
import json
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import whytrust as wt
from whytrust.backends import boosters
from whytrust.cli import main
from whytrust.studies.described import code_of

xgboost = pytest.importorskip("xgboost")
lightgbm = pytest.importorskip("lightgbm")

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(300, 3))
ROWS[::7, 1] = np.nan
TWO = ((ROWS[:, 0] > 0) | (np.isnan(ROWS[:, 1]))).astype(int)
THREE = np.digitize(ROWS[:, 2], [-0.5, 0.5])
SOME = ROWS[:20]
FRAME = pd.DataFrame({"age": ROWS[:, 0], "income": ROWS[:, 1], "city": pd.Categorical(RNG.choice(["Graz", "Linz", "Wien"], 300)),
                      "size": pd.Categorical(RNG.choice([3, 5, 9], 300)), "children": RNG.integers(0, 4, 300), "new": ROWS[:, 2] > 0})
BUYS = ((FRAME["city"] == "Linz") | (FRAME["size"] == 9) | (FRAME["age"] > 1)).astype(int)
QUIET = {"verbosity": -1, "min_data_in_leaf": 3, "min_data_per_group": 3}


def matrix(rows, **more):
    return xgboost.DMatrix(rows, enable_categorical=True, **more)


def trained(objective, labels, rows=ROWS, rounds=6, **more):
    data = matrix(rows, label=labels)
    if objective.startswith("rank:"):
        data.set_group([100, 200])
    depth = {} if more.get("booster") == "gblinear" else {"max_depth": 3}
    return xgboost.train({"objective": objective, **depth, **more}, data, rounds)


def light(objective, labels, rows=ROWS, rounds=6, **more):
    return lightgbm.train({"objective": objective, **QUIET, **more}, lightgbm.Dataset(rows, label=labels), rounds)


BUYERS = trained("binary:logistic", BUYS, FRAME)
LIGHT_BUYERS = light("binary", BUYS, FRAME)
BOTH = pytest.mark.parametrize(("booster", "says"), [
    (BUYERS, lambda rows: BUYERS.predict(matrix(rows))), (LIGHT_BUYERS, LIGHT_BUYERS.predict)], ids=["xgboost", "lightgbm"])

# --- scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("booster", [trained("binary:logistic", TWO), light("binary", TWO), light("binary", TWO, sigmoid=2.0)])
def test_the_probability_of_the_second_class_becomes_two_columns(booster):
    model = wt.model(booster, classes=["no", "yes"])
    p = booster.predict(matrix(SOME) if boosters._library(booster) == "xgboost" else SOME)
    np.testing.assert_allclose(model(SOME), np.column_stack([1 - p, p]), atol=1e-6)
    np.testing.assert_array_equal(model.labels(model(SOME)), p > 0.5)
    assert wt.model(booster, threshold=0.3).labels(model(SOME)).tolist() == (p > 0.3).tolist()
    assert "probabilities, 2 classes (no, yes), label: the largest score, no gradients" in str(model)


@pytest.mark.parametrize("objective", ["multi:softprob", "multi:softmax"])
def test_classes_have_their_probabilities_whether_the_booster_gives_them_or_labels(objective):
    booster = trained(objective, THREE, num_class=3)
    scores = wt.model(booster)(SOME)
    np.testing.assert_allclose(scores, trained("multi:softprob", THREE, num_class=3).predict(matrix(SOME)), atol=1e-6)
    said = booster.predict(matrix(SOME))
    np.testing.assert_array_equal(scores.argmax(axis=1), said if objective == "multi:softmax" else said.argmax(axis=1))


@pytest.mark.parametrize("objective", ["multiclass", "multiclassova"])
def test_classes_of_lightgbm_have_its_probabilities(objective):
    booster = light(objective, THREE, num_class=3)
    np.testing.assert_array_equal(wt.model(booster)(SOME), booster.predict(SOME))


@pytest.mark.parametrize(("objective", "labels"), [
    ("reg:squarederror", ROWS[:, 2]), ("reg:absoluteerror", ROWS[:, 2]), ("reg:logistic", TWO), ("count:poisson", TWO), ("reg:gamma", TWO + 1.0),
    ("rank:pairwise", TWO), ("rank:ndcg", TWO), ("survival:cox", TWO + 1.0), ("binary:logitraw", TWO)])
def test_anything_else_is_one_number(objective, labels):
    booster = trained(objective, labels)
    model = wt.model(booster)
    np.testing.assert_array_equal(model(SOME), booster.predict(matrix(SOME))[:, None])
    with pytest.raises(TypeError, match="one output"):
        model.labels(model(SOME))


@pytest.mark.parametrize("objective", ["regression", "poisson", "cross_entropy"])
def test_anything_else_of_lightgbm_is_one_number(objective):
    booster = light(objective, TWO)
    np.testing.assert_array_equal(wt.model(booster)(SOME), booster.predict(SOME)[:, None])


def test_a_hinge_has_margins_whose_sign_is_its_label():
    booster = trained("binary:hinge", TWO)
    model, margins = wt.model(booster), booster.predict(matrix(SOME), output_margin=True)
    np.testing.assert_array_equal(model(SOME), np.column_stack([-margins, margins]))
    np.testing.assert_array_equal(model.labels(model(SOME)), booster.predict(matrix(SOME)))


def test_a_linear_booster_and_an_objective_of_ones_own():
    linear = trained("reg:squarederror", TWO, np.nan_to_num(ROWS), booster="gblinear")
    np.testing.assert_array_equal(wt.model(linear)(np.nan_to_num(SOME))[:, 0], linear.predict(matrix(np.nan_to_num(SOME))))

    def logistic(margins, data):
        p = 1 / (1 + np.exp(-margins))
        return p - data.get_label(), p * (1 - p)

    own = xgboost.train({"max_depth": 2, "base_score": 0.0}, matrix(ROWS, label=TWO), 5, obj=logistic)
    p = 1 / (1 + np.exp(-own.predict(matrix(SOME)).astype(float)))
    np.testing.assert_allclose(wt.model(own, output="logit")(SOME), np.column_stack([1 - p, p]), atol=1e-12)
    lights = lightgbm.train({"objective": logistic, **QUIET}, lightgbm.Dataset(ROWS, label=TWO), 5)
    np.testing.assert_array_equal(wt.model(lights)(SOME)[:, 0], lights.predict(SOME))


def test_certain_probabilities_keep_their_log_odds():
    sure = trained("binary:logistic", TWO, rounds=60, eta=1.0, min_child_weight=0, reg_lambda=0)
    margins = sure.predict(matrix(SOME), output_margin=True)
    assert np.abs(margins).max() > 17
    assert sure.predict(matrix(SOME)).max() == 1  # in single precision
    near = np.abs(margins) < 20
    np.testing.assert_allclose(wt.model(sure).log_odds(SOME)[near, 1], margins[near], rtol=1e-6)


# --- explanations against the trees -----------------------------------------------------------------------------------


def test_kernel_shap_is_the_trees_own_contributions():
    """Stumps add up, and those of a regression count rows: XGBoost's contributions are the exact Shapley values over them."""
    rows = np.nan_to_num(ROWS)[:60]
    stumps = trained("reg:squarederror", rows[:, 0] + np.abs(rows[:, 2]), rows, rounds=12, max_depth=1)
    e = wt.explain(stumps, rows[3], "kernel_shap", background=rows, samples=20_000)
    truth = stumps.predict(matrix(rows[3:4]), pred_contribs=True)[0]
    assert np.abs(truth[:3]).max() > 0.5
    assert (np.abs(e.scores - truth[:3]) < 4 * e.standard_errors + 1e-6).all()
    assert e.standard_errors.max() < 0.02
    assert e.prediction == pytest.approx(truth.sum(), abs=1e-5)


def test_kernel_shap_of_trees_is_the_mean_over_background_rows():
    """A tiny table, every set of columns and every background row put to XGBoost itself."""
    rows = np.array([[0.0, 0, 0], [1, 0, 1], [0, 1, 1], [1, 1, 0], [0.5, 1, 1]])
    booster = trained("reg:squarederror", rows[:, 0] * rows[:, 1] + 2 * rows[:, 2], rows, min_child_weight=0)
    shown = {}
    for some in itertools.product([False, True], repeat=3):
        masked = np.where(some, rows[3], rows)
        shown[some] = booster.predict(matrix(masked)).astype(float).mean()
    truth = np.zeros(3)
    for order in itertools.permutations(range(3)):
        for place, column in enumerate(order):
            before = tuple(i in order[:place] for i in range(3))
            after = tuple(i in order[:place + 1] for i in range(3))
            truth[column] += (shown[after] - shown[before]) / 6
    e = wt.explain(booster, rows[3], "kernel_shap", background=rows, samples=20_000)
    assert (np.abs(e.scores - truth) < 4 * e.standard_errors + 1e-6).all()
    assert e.standard_errors.max() < 0.02


@BOTH
@pytest.mark.parametrize("method", ["lime", "kernel_shap", "occlusion"])
def test_explanations_are_those_of_the_same_function(booster, says, method):
    def function(rows):
        p = says(rows)
        return np.column_stack([1 - p, p])

    given = {"method": method, "target": 1, "background": FRAME, **({} if method == "occlusion" else {"samples": 300})}
    mine, theirs = wt.explain(booster, FRAME.iloc[4], **given), wt.explain(function, FRAME.iloc[4], **given)
    np.testing.assert_allclose(mine.scores, theirs.scores, atol=1e-5)
    assert mine.names == theirs.names


# --- tables -----------------------------------------------------------------------------------------------------------


@BOTH
def test_a_table_is_read_by_the_names_of_its_columns(booster, says):
    model, truth = wt.model(booster), says(FRAME[:30])
    for rows in (FRAME[:30], FRAME[:30][list(FRAME.columns[::-1])]):
        np.testing.assert_allclose(model(rows)[:, 1], truth, atol=1e-6)


@BOTH
def test_text_and_objects_become_what_the_booster_was_trained_on(booster, says):
    """As a table comes out of a file, or an array of objects: categories of a few rows are the booster's all the same."""
    some = FRAME[:30].assign(income=np.where(FRAME["income"][:30].isna(), None, FRAME["income"][:30]))
    plain = some.assign(city=some["city"].astype(str), size=some["size"].astype(int))
    model = wt.model(booster)
    wanted = says(FRAME[:30])
    np.testing.assert_allclose(model(plain)[:, 1], wanted, atol=1e-6)
    np.testing.assert_allclose(model(plain[:1])[:, 1], wanted[:1], atol=1e-6)
    np.testing.assert_allclose(model(plain.to_numpy(dtype=object))[:, 1], wanted, atol=1e-6)
    np.testing.assert_allclose(model(plain.assign(size=FRAME["size"][:30]))[:, 1], wanted, atol=1e-6)


def test_an_array_stands_for_the_columns_in_their_order_and_categories_are_codes():
    codes = np.column_stack([FRAME[c].cat.codes if str(FRAME[c].dtype) == "category" else FRAME[c].astype(float) for c in FRAME])
    for booster, truth in ((BUYERS, BUYERS.predict(matrix(FRAME))), (LIGHT_BUYERS, LIGHT_BUYERS.predict(FRAME))):
        np.testing.assert_allclose(wt.model(booster)(codes)[:, 1], truth, atol=1e-6)
    by_code = xgboost.train({"objective": "binary:logistic"}, matrix(codes, label=BUYS, feature_types=BUYERS.feature_types, feature_names=BUYERS.feature_names), 5)
    rows = pd.DataFrame(codes, columns=list(FRAME.columns))
    np.testing.assert_allclose(wt.model(by_code)(rows)[:, 1], by_code.predict(matrix(rows)), atol=1e-6)
    with pytest.raises(TypeError, match=r"column 'city' must hold the codes of categories that the booster was trained on, got (str|object)"):
        wt.model(by_code)(rows.assign(city="Wien"))


def test_a_booster_of_an_array_takes_tables_too():
    booster, rows = trained("binary:logistic", TWO), pd.DataFrame(SOME, columns=["a", "b", "c"]).astype({"b": "Float64"})
    np.testing.assert_array_equal(wt.model(booster)(rows), wt.model(booster)(SOME))
    numbered = trained("binary:logistic", TWO, pd.DataFrame(ROWS))
    np.testing.assert_array_equal(wt.model(numbered)(pd.DataFrame(SOME)), wt.model(numbered)(SOME))
    spaced = light("binary", TWO, pd.DataFrame(ROWS, columns=["a b", "c", "d"]))
    np.testing.assert_array_equal(wt.model(spaced)(pd.DataFrame(SOME, columns=["a b", "c", "d"])), wt.model(spaced)(SOME))


@pytest.mark.parametrize(("rows", "message"), [
    (FRAME.drop(columns="city"), r"must be given rows with its 6 columns \(age, income, city, size, children, new\), got a DataFrame with age, income, size"),
    (FRAME.assign(label=1), "got a DataFrame with age, income, city, size, children, new, label; leave out"),
    (FRAME.rename(columns={"city": "town"}), "got a DataFrame with age, income, town, .*: it lacks city; name the columns"),
    (SOME, r"rows with its 6 columns .*, got an array \(20, 3\)"),
    (FRAME.assign(age="old"), "column 'age' must hold numbers, got (str|object)"),
    (FRAME.assign(age=pd.Categorical(["old"] * 300)), "column 'age' must hold numbers, got category"),
    (FRAME.assign(age=pd.Timestamp("2020-01-01")), "column 'age' must hold numbers, got datetime64"),
])
@pytest.mark.parametrize("booster", [BUYERS, LIGHT_BUYERS])
def test_a_table_that_does_not_fit_is_one_clear_error(booster, rows, message):
    with pytest.raises((ValueError, TypeError), match=message):
        wt.model(booster)(rows)


def test_what_the_library_refuses_is_one_line_that_is_the_same_every_time():
    with pytest.raises(ValueError, match="Input data contains `inf`") as found:
        wt.model(trained("binary:logistic", TWO))(np.full((2, 3), np.inf))
    assert "Stack trace" not in str(found.value)
    assert "RuntimeError: Check failed" in str(found.value)


@pytest.mark.parametrize(("booster", "message"), [
    (lambda: xgboost.Booster(), "must be trained"), (lambda: trained("reg:squarederror", TWO, rounds=0), "must be trained"),
    (lambda: trained("reg:squarederror", np.column_stack([TWO, THREE])), "must predict one thing"),
    (lambda: trained("reg:quantileerror", ROWS[:, 0], quantile_alpha=[0.1, 0.9]), "must predict one thing")])
def test_what_cannot_be_explained_is_told_at_once(booster, message):
    with pytest.raises((ValueError, TypeError), match=message):
        wt.model(booster())


def test_options_of_other_frameworks_are_refused():
    with pytest.raises(TypeError, match="device cannot be set for Booster"):
        wt.model(BUYERS, device="cpu")


# --- where a model is taken -------------------------------------------------------------------------------------------


@BOTH
def test_a_booster_survives_pickling_and_does_not_change_what_it_is(booster, says):
    model = wt.model(booster)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again(FRAME), model(FRAME))
    assert code_of(again) == code_of(model) == code_of(wt.model(booster))
    assert list(code_of(model)) == ["the classes and the threshold of Booster", "the weights of Booster"]


def test_a_run_has_the_same_records_with_workers_and_is_not_continued_with_another_booster(tmp_path):
    audit = {"inputs": FRAME[:12], "explainers": ["occlusion"], "background": FRAME[:60], "trials": ["flip"], "block": 4}
    one, two = (wt.audit(BUYERS, **audit, out=tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    assert one.to_json()["counts"]["failed"] == 0
    assert list(one.store.records()) == list(two.store.records())
    with pytest.raises(ValueError, match=r"other content of .*the weights of Booster"):
        wt.audit(trained("binary:logistic", BUYS, FRAME, rounds=5), **audit, out=tmp_path / "1")


@pytest.mark.parametrize("estimator", [xgboost.XGBClassifier(n_estimators=3), lightgbm.LGBMClassifier(n_estimators=3, verbosity=-1)])
def test_estimators_of_these_libraries_are_known_by_their_trees(estimator):
    one = code_of(wt.model(estimator.fit(ROWS, TWO)))
    assert code_of(wt.model(estimator.fit(ROWS, TWO))) == one
    assert code_of(wt.model(estimator.fit(ROWS, 1 - TWO))) != one


def test_a_booster_is_a_model_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("rows.csv", index=False)
    BUYERS.save_model("buyers.ubj")
    (tmp_path / "mine.py").write_text("import xgboost\nbuyers = xgboost.Booster(model_file='buyers.ubj')\n")
    assert main(["explain", "mine.py:buyers", "rows.csv:4", "--background", "rows.csv", "--method", "occlusion", "--target", "1", "--json"]) == 0
    e = json.loads(capsys.readouterr().out)
    assert e["prediction"] == pytest.approx(BUYERS.predict(matrix(FRAME[4:5]))[0], abs=1e-6)
    (tmp_path / "spec.toml").write_text('model = "mine.py:buyers"\ninputs = "rows.csv"\nbackground = "rows.csv"\nlimit = 6\nexplainers = ["occlusion"]\n')
    assert main(["audit", "spec.toml", "--out", "run"]) == 0
    assert main(["explain", "buyers.ubj", "rows.csv:4"]) == 2
    assert "buyers.ubj is of a framework that is not read directly; write a file.py" in capsys.readouterr().err


def test_neither_library_is_imported_before_a_booster_of_it_is_there():
    code = "import sys, whytrust; whytrust.model(lambda rows: rows); print([m for m in ('xgboost', 'lightgbm') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
