"""The drop-in for lime's table explainers."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LinearRegression

from compat.models import last_step, linear, own_kernel, total
from whytrust.compat.lime import lime_tabular as ours
from whytrust.compat.lime.discretize import BaseDiscretizer, QuartileDiscretizer
from whytrust.compat.lime.exceptions import LimeError
from whytrust.compat.lime.lime_tabular import LimeTabularExplainer, RecurrentTabularExplainer

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def table(rng):
    return rng.normal(size=(400, 4)) * [1, 2, 1, 1] + [0, 1, 0, 5]


@pytest.fixture
def mixed(rng):
    """Numbers with holes, texts with holes, codes and whole numbers; and a model of them that wants a DataFrame."""
    frame = pd.DataFrame({"age": rng.integers(20, 60, 300), "income": rng.normal(30, 5, 300), "odor": rng.choice(["foul", "none", "almond"], 300),
                          "cap": rng.integers(0, 3, 300)})
    frame.loc[::7, "income"] = np.nan
    frame.loc[::11, "odor"] = None
    frame["odor"] = frame["odor"].astype(object)
    return frame


def mushrooms(frame):
    assert list(frame.columns) == ["age", "income", "odor", "cap"]
    assert frame["age"].dtype == np.int64
    p = 0.5 + 0.3 * (frame["odor"] == "foul") - 0.1 * frame["income"].isna() + 0.1 * (frame["cap"] == 2)
    return np.column_stack([1 - p, p])


def explain(table, row=None, model=linear, *, call=None, **options):
    options = {"feature_names": NAMES, **options} if isinstance(table, np.ndarray) and table.shape[1] == 4 else options
    row = table[0] if row is None else row
    return LimeTabularExplainer(table, **options).explain_instance(row, model, **{"num_samples": 1500, **(call or {})})


# --- what is computed -------------------------------------------------------------------------------------------------


def test_a_linear_model_is_recovered_in_standard_units(table):
    """Without bins a weight is the slope times the column's standard deviation."""
    for around in (False, True):
        e = explain(table, discretize_continuous=False, sample_around_instance=around)
        truth = {"a": 0.1 * table[:, 0].std(), "b": -0.05 * table[:, 1].std(), "c": 0.0, "d": 0.0}
        assert dict(e.as_list()) == pytest.approx(truth, abs=2e-3)
        assert e.local_pred[0] == pytest.approx(linear(table[:1])[0, 1], abs=0.01)
        assert e.score > 0.99


def test_binned_weights_of_a_linear_model_are_differences_of_bin_means(table):
    """The mean of the row's own bin less the mean over the other bins, times the slope."""
    found = dict(explain(table, call={"num_samples": 20000}).whytrust[1].as_list())
    for column, slope in ((0, 0.1), (1, -0.05)):
        edges = np.percentile(table[:, column], [25, 50, 75])
        here = np.searchsorted(edges, table[:, column]) == np.searchsorted(edges, table[0, column])
        truth = slope * (table[here, column].mean() - table[~here, column].mean())
        (weight,) = (w for name, w in found.items() if f"{NAMES[column]} " in name or name.startswith(NAMES[column]))
        assert weight == pytest.approx(truth, abs=0.02)


@pytest.mark.parametrize("options", [{}, {"discretizer": "decile"}, {"discretizer": "entropy"}, {"discretize_continuous": False},
                                     {"discretize_continuous": False, "sample_around_instance": True}, {"kernel_width": 3.0},
                                     {"categorical_features": [3]}])
def test_weights_are_limes_up_to_noise(rng, options):
    from lime.lime_tabular import LimeTabularExplainer as Original

    table = np.column_stack([rng.normal(size=(400, 3)), rng.integers(0, 3, 400)])

    def curved(rows):
        p = 1 / (1 + np.exp(-rows[:, 0] - rows[:, 1] * rows[:, 2] - (np.abs(rows[:, 3] - 1) < 0.1)))  # lime draws 0.99999999999 for 1
        return np.column_stack([1 - p, p])

    options = {**options, "feature_names": NAMES, "training_labels": curved(table).argmax(axis=1)}
    call = {"num_samples": 20000, "num_features": 4}
    row = np.array([0.5, 1.0, -1.0, 1.0])
    theirs = Original(table, random_state=1, **options).explain_instance(row, curved, **call)
    ours = LimeTabularExplainer(table, **options).explain_instance(row, curved, **call)
    assert dict(ours.as_list()) == pytest.approx(dict(theirs.as_list()), abs=0.015)
    assert ours.score == pytest.approx(theirs.score, abs=0.02)
    assert ours.intercept[1] == pytest.approx(theirs.intercept[1], abs=0.03)
    assert dict(ours.local_exp[1]) == pytest.approx({int(i): w for i, w in theirs.local_exp[1]}, abs=0.015)


def test_regressions_have_limes_two_labels(table):
    e = explain(table, model=total, mode="regression")
    assert e.local_exp[0] == [(i, -w) for i, w in e.local_exp[1]]
    assert e.intercept[0] == e.intercept[1]
    assert e.predicted_value == pytest.approx(total(table[:1])[0])
    assert e.min_value < e.predicted_value < e.max_value
    assert e.as_list() == e.as_list(label=0)
    assert e.class_names == ["negative", "positive"]
    with pytest.raises(NotImplementedError, match="no labels"):
        e.available_labels()
    assert explain(table, model=lambda rows: total(rows)[:, None], mode="regression").as_list() == e.as_list()


def test_a_classifiers_labels_can_be_explained_as_numbers(table):
    from sklearn.linear_model import LogisticRegression

    labels = 2 * (table[:, 0] > 0)
    e = explain(table, model=LogisticRegression().fit(table, labels).predict, mode="regression")
    assert e.max_value == 2
    assert e.as_map()[1][0][0] == 0
    assert e.whytrust[1].model == "LogisticRegression"


def test_discretizers_of_ones_own_say_where_to_cut(table):
    class AtZero(BaseDiscretizer):
        def bins(self, data, labels):
            return [[0.0, 5.0] if i == 3 else [0.0] for i in self.to_discretize]

    e = explain(table, row=np.array([1.0, -1.0, 1.0, 4.0]), discretizer=AtZero(table, [], NAMES))
    assert {name for name, _ in e.as_list()} == {"a > 0.00", "b <= 0.00", "c > 0.00", "d <= 5.00"}  # no value of d is below 0


@pytest.mark.parametrize("kind", [float, int])
def test_statistics_of_lime_with_a_bin_of_one_value_are_drawn_from(kind):
    lime_tabular = pytest.importorskip("lime.lime_tabular")
    rng = np.random.default_rng(0)
    table = np.column_stack([np.where(rng.random(800) < 0.6, 0, 1000 * rng.exponential(size=800)), 100 * rng.normal(size=800)]).astype(kind)
    cut = lime_tabular.LimeTabularExplainer(table, random_state=0).discretizer
    discrete = cut.discretize(table)
    counts = [np.unique(discrete[:, i], return_counts=True) for i in (0, 1)]
    stats = {name: getattr(cut, name) for name in ("means", "stds", "mins", "maxs")}  # lime adds 1e-11 to every one of the stds
    stats |= {"bins": {i: np.unique(np.percentile(table[:, i], [25, 50, 75])).tolist() for i in (0, 1)},
              "feature_values": {i: v.tolist() for i, (v, _) in enumerate(counts)},
              "feature_frequencies": {i: (n / 800).tolist() for i, (_, n) in enumerate(counts)}}

    def model(rows):
        assert np.isfinite(rows).all()
        return np.column_stack([rows[:, 0] <= 100, rows[:, 0] > 100]).astype(float)

    found = [module.LimeTabularExplainer(table, training_data_stats=stats, random_state=0).explain_instance(
        np.zeros(2, kind), model, num_samples=2000).as_list() for module in (lime_tabular, ours)]
    assert dict(found[1]) == pytest.approx(dict(found[0]), abs=0.03)


def test_statistics_stand_in_for_training_data(table):
    cut = QuartileDiscretizer(table, [], NAMES)
    discrete = cut.discretize(table)
    counts = {i: np.unique(discrete[:, i], return_counts=True) for i in range(4)}
    stats = {"means": cut.means, "stds": cut.stds, "mins": cut.mins, "maxs": cut.maxs, "feature_values": {i: list(v) for i, (v, _) in counts.items()},
             "feature_frequencies": {i: list(n) for i, (_, n) in counts.items()}}
    without = explain(np.zeros((2, 4)), row=table[0], training_data_stats=stats)
    assert dict(without.as_list()) == pytest.approx(dict(explain(table).as_list()))
    del stats["means"]
    with pytest.raises(ValueError, match="it lacks means"):
        explain(np.zeros((2, 4)), row=table[0], training_data_stats=stats)


def test_sparse_rows_are_explained_by_what_they_hold(rng):
    dense = rng.poisson(1.0, (200, 12)).astype(float)
    table = sparse.csr_matrix(dense)
    seen = []

    def model(rows):
        assert sparse.isspmatrix_csr(rows)
        seen.append(np.asarray((rows != 0).sum(axis=0)).ravel() > 0)
        return linear(np.asarray(rows[:, :2].todense()))

    row = next(i for i in range(200) if dense[i, 0] and dense[i, 1])
    e = LimeTabularExplainer(table, kernel_width=5).explain_instance(table[row], model, num_samples=2000)
    assert dict(e.as_map()[1])[0] == pytest.approx(0.1 * dense[:, 0].std(), abs=2e-3)
    assert {i for i, _ in e.as_map()[1]} <= set(np.flatnonzero(dense[row]))
    assert not np.any(seen, axis=0)[dense[row] == 0].any()
    pickle.loads(pickle.dumps(e))


def test_sequences_are_explained_step_by_step(rng):
    data = rng.normal(size=(100, 5, 2))
    e = RecurrentTabularExplainer(data, feature_names=["x", "y"], discretize_continuous=False).explain_instance(
        data[0], last_step, num_features=3, num_samples=2000)
    assert e.as_list()[0] == ("x_t-0", pytest.approx(0.1 * data[:, -1, 0].std(), abs=2e-3))
    with pytest.raises(ValueError, match=r"\(5, 2\)"):
        RecurrentTabularExplainer(data).explain_instance(data[0].T, last_step)


# --- what lime cannot do ----------------------------------------------------------------------------------------------


def test_frames_with_texts_and_holes_need_no_encoding(mixed):
    row = mixed.iloc[3].copy()
    row["odor"], row["income"], row["cap"] = "foul", np.nan, 2
    e = explain(mixed, row=row, model=mushrooms, categorical_features=["cap"], call={"num_samples": 4000})
    found = dict(e.as_list())
    assert {"odor=foul", "income is missing", "cap=2"} <= set(found)
    assert found["odor=foul"] == pytest.approx(0.3, abs=0.02)
    assert found["income is missing"] == pytest.approx(-0.1, abs=0.02)
    assert found["cap=2"] == pytest.approx(0.1, abs=0.02)


def test_object_arrays_with_texts_work_and_stay_object_arrays(mixed):
    array = mixed.to_numpy(dtype=object)

    def model(rows):
        assert rows.dtype == object
        assert all(isinstance(v, str) or v is None or v != v for v in rows[:, 2])
        p = 0.5 + 0.3 * (rows[:, 2] == "foul")
        return np.column_stack([1 - p, p])

    e = explain(array, row=array[1], model=model, feature_names=list(mixed.columns))
    assert any(name.startswith("odor") for name, _ in e.as_list()[:1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_arrays_reach_the_model_in_their_own_dtype(table, dtype):
    def model(rows):
        assert rows.dtype == dtype
        assert rows.ndim == 2
        return linear(rows)

    explain((table * 10).astype(dtype), model=model, call={"num_samples": 200})


def test_hand_encoded_categories_show_their_names(rng):
    table = np.column_stack([rng.integers(0, 3, 300), rng.normal(size=300)]).astype(float)
    e = LimeTabularExplainer(table, feature_names=["odor", "x"], categorical_features=[0], categorical_names={0: ["foul", "none", "mild"]})
    found = e.explain_instance(np.array([2.0, 0.0]), linear, num_samples=500)
    assert any(name == "odor=mild" for name, _ in found.as_list())
    assert "odor=mild" in found.as_html()
    assert found.whytrust[1].names[0] == "odor=mild"


def test_long_numbers_that_are_categories_are_shortened(rng):
    table = np.column_stack([rng.choice([-0.044641636506989144, 0.05068011873981862], 300), rng.normal(size=300)])
    exp = explain(table, model=total, mode="regression", feature_names=["sex", "age"], categorical_features=[0])
    assert {"sex=-0.04464", "sex=0.05068"} & {name for name, _ in exp.as_list()}


@pytest.mark.parametrize("options", [{}, {"discretizer": "entropy"}, {"discretize_continuous": False},
                                     {"discretize_continuous": False, "sample_around_instance": True},
                                     {"categorical_features": ["joined"]}])
def test_dates_need_no_encoding(rng, options):
    joined = pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.choice([0, 200, 400, 900, 1000], 300), unit="D")
    frame = pd.DataFrame({"joined": joined, "age": rng.normal(size=300)})
    frame.loc[::7, "joined"] = pd.NaT

    def late(batch):
        assert (batch.dtypes == frame.dtypes).all()
        p = np.where(batch["joined"].isna(), 0.5, 0.9 * (batch["joined"].dt.year >= 2020))
        return np.column_stack([1 - p, p])

    if options.get("discretizer"):
        options = {**options, "training_labels": (joined.year >= 2020).astype(int)}
    exp = explain(frame, frame.iloc[1], late, **options)
    day = r"20\d\d-\d\d-\d\d"
    assert re.fullmatch(f"({day} < )?joined|joined={day}|joined > {day}|({day} < )?joined <= {day}", exp.as_list()[0][0])
    assert explain(frame, frame.iloc[0], late, **options).domain_mapper.feature_values[0] in ("missing", "True")


def test_a_category_that_training_data_lack_has_no_weight(rng):
    table = np.column_stack([rng.integers(0, 3, 300), rng.normal(size=(300, 2))])
    found = LimeTabularExplainer(table, categorical_features=[0]).explain_instance(np.array([7.0, 0.0, 0.0]), linear, num_samples=500)
    assert {i for i, _ in found.as_map()[1]} == {1, 2}


def test_columns_too_fine_for_two_decimals_get_more(rng):
    e = explain(rng.random((300, 4)) / 1000, call={"num_samples": 300})
    for name, _ in e.as_list():
        numbers = [word for word in name.split() if word[0].isdigit()]
        assert len(set(numbers)) == len(numbers)
        assert all(float(number) > 0 for number in numbers)


def test_a_column_that_is_mostly_its_greatest_value_still_varies(rng):
    table = np.column_stack([rng.random(300) < 0.9, rng.normal(size=300)]).astype(float)
    e = LimeTabularExplainer(table, feature_names=["flag", "x"]).explain_instance(np.array([1.0, 0.0]), linear, num_samples=1000)
    assert e.as_list()[0] == ("flag > 0.00", pytest.approx(0.1, abs=0.02))


def test_results_repeat_and_objects_pickle(table):
    explainer = LimeTabularExplainer(table, feature_names=NAMES)
    once, twice = (explainer.explain_instance(table[0], linear, num_samples=300) for _ in range(2))
    later = pickle.loads(pickle.dumps(explainer)).explain_instance(table[0], linear, num_samples=300)
    assert once.as_map() == twice.as_map() == later.as_map()
    assert pickle.loads(pickle.dumps(once)).as_list() == once.as_list()
    assert explain(table, random_state=1, call={"num_samples": 300}).as_map() != once.as_map()


def test_every_label_keeps_its_own_numbers(table):
    def three(rows):
        p = linear(rows)[:, 1].clip(0.1, 0.9)
        return np.column_stack([p**2, 1 - p, p - p**2])

    e = explain(table, model=three, call={"top_labels": 3})
    assert e.top_labels == np.argsort(-three(table[:1])[0]).tolist()
    assert e.score == e.scores[e.top_labels[0]]
    assert len(set(e.scores.values())) == len({float(p[0]) for p in e.local_preds.values()}) == 3


# --- what users touch -------------------------------------------------------------------------------------------------


def test_explainers_have_limes_attributes(table):
    e = LimeTabularExplainer(table, feature_names=NAMES, class_names=["no", "yes"], categorical_features=[2])
    assert (e.feature_names, e.class_names, e.mode) == (NAMES, ["no", "yes"], "classification")
    assert e.discretizer.names[0][0] == f"a <= {np.percentile(table[:, 0], 25):.2f}"
    assert e.feature_values[0] == [0, 1, 2, 3]
    assert e.feature_frequencies[0] == pytest.approx(np.full(4, 0.25))
    assert e.categorical_features == [0, 1, 2, 3]
    bare = LimeTabularExplainer(table, discretize_continuous=False, categorical_features=[2])
    assert bare.discretizer is None
    assert bare.scaler.scale_ == pytest.approx([*table[:, :2].std(axis=0), 1, table[:, 3].std()])
    assert bare.scaler.mean_[3] == pytest.approx(table[:, 3].mean())


def test_the_domain_mapper_knows_the_row(table):
    mapper = explain(table).domain_mapper
    assert mapper.feature_names == NAMES
    assert mapper.all_categorical
    assert len(mapper.feature_values) == 4


def test_an_own_kernel_metric_and_regressor_are_used(table):
    e = explain(table, discretize_continuous=False, call={"model_regressor": LinearRegression()})
    assert dict(e.as_list())["a"] == pytest.approx(0.1 * table[:, 0].std(), rel=1e-9)
    assert e.whytrust[1].standard_errors is None
    e = explain(table, discretize_continuous=False, kernel=own_kernel, call={"distance_metric": "manhattan"})
    assert e.whytrust[1].settings["distance"] == "manhattan"
    assert dict(e.as_list())["a"] == pytest.approx(0.1 * table[:, 0].std(), rel=0.02)


@pytest.mark.parametrize(("options", "call", "says"), [
    ({"mode": "ranking"}, {}, "mode must be"),
    ({"discretizer": "octile"}, {}, "quartile, decile, entropy"),
    ({"discretizer": "entropy"}, {}, "training_labels"),
    ({"feature_names": ["a"]}, {}, "name every column"),
    ({"categorical_features": [9]}, {}, "numbers of columns, 0 to 3"),
    ({"feature_selection": "best"}, {}, "feature_selection must be"),
    ({}, {"sampling_method": "lhs"}, "must be 'gaussian'"),
    ({}, {"labels": (5,)}, "0 to 1"),
    ({"mode": "regression"}, {}, "one number for each row"),
])
def test_wrong_arguments_are_named(table, options, call, says):
    with pytest.raises(ValueError, match=says):
        explain(table, call=call, **options)


def test_a_wrong_mode_is_limes_own_error(table):
    with pytest.raises(LimeError):
        LimeTabularExplainer(table, mode="ranking")


def test_what_has_no_effect_is_said(table):
    with pytest.warns(UserWarning, match="discretize_continuous=False"):
        LimeTabularExplainer(table, sample_around_instance=True)
    with pytest.warns(UserWarning, match="add up to"):
        explain(table, model=lambda rows: 2 * linear(rows), call={"num_samples": 100})


def test_classifiers_of_one_column_are_refused(table):
    with pytest.raises(ValueError, match="mode='regression'"):
        explain(table, model=total)


def test_tree_regressors_are_refused(table):
    from sklearn.tree import DecisionTreeRegressor
    with pytest.raises(TypeError, match="coef_"):
        explain(table, call={"model_regressor": DecisionTreeRegressor(), "num_samples": 100})
