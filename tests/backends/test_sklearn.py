import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import (
    cluster,
    discriminant_analysis,
    ensemble,
    gaussian_process,
    linear_model,
    mixture,
    naive_bayes,
    neighbors,
    neural_network,
    svm,
    tree,
)
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_transformer
from sklearn.covariance import EllipticEnvelope
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import whytrust as wt

ROWS, NUMBERS = load_iris(return_X_y=True)
LABELS = np.array(["setosa", "versicolor", "virginica"])[NUMBERS]
SOME = ROWS[::7]
COLUMNS = ["sepal length", "sepal width", "petal length", "petal width"]
FRAME = pd.DataFrame(ROWS, columns=COLUMNS)

WITH_PROBABILITIES = [
    linear_model.LogisticRegression(max_iter=500), naive_bayes.GaussianNB(), tree.DecisionTreeClassifier(random_state=0),
    ensemble.RandomForestClassifier(5, random_state=0), ensemble.HistGradientBoostingClassifier(max_iter=3), neighbors.KNeighborsClassifier(),
    discriminant_analysis.QuadraticDiscriminantAnalysis(), neural_network.MLPClassifier(max_iter=2000, random_state=0),
    gaussian_process.GaussianProcessClassifier(), CalibratedClassifierCV(svm.LinearSVC(), cv=2), DummyClassifier(),
    ensemble.VotingClassifier([("a", naive_bayes.GaussianNB()), ("b", tree.DecisionTreeClassifier())], voting="soft"),
    ensemble.StackingClassifier([("a", naive_bayes.GaussianNB())], cv=2), ensemble.BaggingClassifier(random_state=0),
    GridSearchCV(make_pipeline(StandardScaler(), linear_model.LogisticRegression()), {"logisticregression__C": [1, 10]}, cv=2),
    make_pipeline(StandardScaler(), linear_model.LogisticRegression()), OneVsRestClassifier(naive_bayes.GaussianNB()),
]
WITH_MARGINS = [svm.LinearSVC(), svm.SVC(), linear_model.RidgeClassifier(), linear_model.SGDClassifier(random_state=0),
                OneVsOneClassifier(svm.LinearSVC()), make_pipeline(StandardScaler(), svm.SVC()), linear_model.Perceptron()]
WITH_LABELS = [ensemble.VotingClassifier([("a", naive_bayes.GaussianNB()), ("b", tree.DecisionTreeClassifier())])]
REGRESSORS = [linear_model.LinearRegression(), ensemble.RandomForestRegressor(5), svm.SVR(), neighbors.KNeighborsRegressor(),
              neural_network.MLPRegressor(max_iter=2000, random_state=0), make_pipeline(StandardScaler(), linear_model.Ridge()),
              GridSearchCV(tree.DecisionTreeRegressor(), {"max_depth": [1, 2]}, cv=2),
              TransformedTargetRegressor(linear_model.Ridge(), func=np.sqrt, inverse_func=np.square), gaussian_process.GaussianProcessRegressor(alpha=0.1)]
DETECTORS = [ensemble.IsolationForest(n_estimators=10, random_state=0), svm.OneClassSVM(), neighbors.LocalOutlierFactor(novelty=True),
             EllipticEnvelope(random_state=0), make_pipeline(StandardScaler(), ensemble.IsolationForest(n_estimators=10, random_state=0))]


def name(estimator):
    inner = getattr(estimator, "steps", None)
    return type(estimator).__name__ + (":" + type(inner[-1][1]).__name__ if inner else "")


# --- scores -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", WITH_PROBABILITIES, ids=name)
def test_scores_are_the_probabilities_of_the_named_classes(estimator):
    estimator.fit(ROWS, LABELS)
    model = wt.model(estimator)
    np.testing.assert_array_equal(model(SOME), estimator.predict_proba(SOME))
    assert model.classes == ("setosa", "versicolor", "virginica")


@pytest.mark.parametrize("estimator", WITH_MARGINS, ids=name)
def test_scores_are_margins_where_there_are_no_probabilities(estimator):
    estimator.fit(ROWS, LABELS)
    model = wt.model(estimator)
    np.testing.assert_array_equal(model(SOME), estimator.decision_function(SOME))
    assert np.mean(np.array(model.classes)[model.labels(model(SOME))] == estimator.predict(SOME)) == 1


@pytest.mark.parametrize("estimator", WITH_MARGINS, ids=name)
def test_the_one_margin_of_two_classes_becomes_two_columns(estimator):
    estimator.fit(ROWS[50:], LABELS[50:])
    model = wt.model(estimator)
    margin = estimator.decision_function(SOME)
    np.testing.assert_array_equal(model(SOME), np.column_stack([-margin, margin]))
    np.testing.assert_array_equal(np.array(model.classes)[model.labels(model(SOME))], estimator.predict(SOME))


@pytest.mark.parametrize("estimator", WITH_LABELS, ids=name)
def test_scores_are_the_predicted_label_where_there_is_nothing_else(estimator):
    estimator.fit(ROWS, LABELS)
    scores = wt.model(estimator)(SOME)
    assert set(np.unique(scores)) == {0, 1}
    np.testing.assert_array_equal(estimator.classes_[scores.argmax(axis=1)], estimator.predict(SOME))


@pytest.mark.parametrize("estimator", REGRESSORS, ids=name)
def test_a_regressor_is_one_column_of_its_predictions(estimator):
    estimator.fit(ROWS[:, :3], ROWS[:, 3])
    scores = wt.model(estimator)(SOME[:, :3])
    np.testing.assert_array_equal(scores, estimator.predict(SOME[:, :3])[:, None])


@pytest.mark.parametrize("estimator", DETECTORS, ids=name)
def test_an_outlier_detector_is_one_column_that_says_how_normal_a_row_is(estimator):
    estimator.fit(ROWS)
    model = wt.model(estimator)
    np.testing.assert_array_equal(model(SOME), estimator.decision_function(SOME)[:, None])
    assert model.classes is None


def test_components_of_a_mixture_are_classes_without_names():
    estimator = mixture.GaussianMixture(2, random_state=0).fit(ROWS)
    model = wt.model(estimator)
    np.testing.assert_array_equal(model(SOME), estimator.predict_proba(SOME))
    assert model.classes is None


def test_a_row_of_a_regressor_and_of_a_detector_can_be_explained():
    for estimator in (linear_model.LinearRegression().fit(ROWS[:, :3], ROWS[:, 3]), ensemble.IsolationForest(n_estimators=10, random_state=0).fit(ROWS[:, :3])):
        explanation = wt.explain(estimator, ROWS[0, :3], background=ROWS[:, :3], samples=200)
        assert len(explanation.scores) == 3


# --- single methods, as lime is given them ----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba", "decision_function"])
@pytest.mark.parametrize("make", [lambda: linear_model.LogisticRegression(max_iter=500), lambda: make_pipeline(StandardScaler(), linear_model.LogisticRegression())], ids=["estimator", "pipeline"])
def test_a_bound_method_is_asked_itself_and_its_classes_are_known(make, method):
    bound = getattr(make().fit(ROWS, LABELS), method)
    model = wt.model(bound)
    np.testing.assert_array_equal(model(SOME), bound(SOME))
    assert model.classes == ("setosa", "versicolor", "virginica")
    assert model.function.source is bound


def test_bound_predictions_are_labels_of_a_classifier_and_numbers_of_a_regressor():
    classifier = linear_model.LogisticRegression(max_iter=500).fit(ROWS, LABELS)
    scores = wt.model(classifier.predict)(SOME)
    np.testing.assert_array_equal(classifier.classes_[scores.argmax(axis=1)], classifier.predict(SOME))
    assert (scores.sum(axis=1) == 1).all()
    regressor = linear_model.LinearRegression().fit(ROWS, NUMBERS)
    np.testing.assert_array_equal(wt.model(regressor.predict)(SOME), regressor.predict(SOME)[:, None])


def test_a_method_of_something_else_is_just_a_function():
    class Rule:
        def predict_proba(self, batch):
            return np.tile([0.25, 0.75], (len(batch), 1))

    model = wt.model(Rule().predict_proba)
    assert (model(SOME) == [0.25, 0.75]).all()
    assert model.name == "predict_proba"


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [
    linear_model.LogisticRegression(), make_pipeline(StandardScaler(), linear_model.Ridge()), GridSearchCV(svm.SVC(), {"C": [1]}),
    ensemble.VotingClassifier([("a", naive_bayes.GaussianNB())]), ensemble.IsolationForest(), make_pipeline(TfidfVectorizer(), svm.LinearSVC()),
], ids=name)
def test_an_estimator_that_was_never_fitted_is_refused_when_it_is_wrapped(estimator):
    with pytest.raises(ValueError, match=f"{type(estimator).__name__} must be fitted before it can be explained"):
        wt.model(estimator)


TWO = np.column_stack([NUMBERS > 0, NUMBERS > 1]).astype(int)


@pytest.mark.parametrize(("estimator", "message"), [
    (cluster.KMeans(2, n_init=1).fit(ROWS), "KMeans finds clusters"),
    (make_pipeline(StandardScaler(), cluster.KMeans(2, n_init=1)).fit(ROWS), "KMeans finds clusters"),
    (cluster.DBSCAN().fit(ROWS), "DBSCAN finds clusters"),
    (StandardScaler().fit(ROWS), "StandardScaler must have predict_proba, decision_function or predict"),
    (neighbors.LocalOutlierFactor().fit(ROWS), "LocalOutlierFactor must have"),
    (svm.SVC(decision_function_shape="ovo").fit(ROWS, LABELS), r"scores pairs of them.*decision_function_shape='ovr'"),
    (make_pipeline(StandardScaler(), svm.NuSVC(decision_function_shape="ovo")).fit(ROWS, LABELS), "NuSVC must score classes"),
    (tree.DecisionTreeClassifier().fit(ROWS, TWO), "several outputs at once"),
    (MultiOutputClassifier(naive_bayes.GaussianNB()).fit(ROWS, TWO), "several outputs at once"),
    (linear_model.LinearRegression().fit(ROWS, TWO), "several outputs at once"),
    (GridSearchCV(tree.DecisionTreeClassifier(), {"max_depth": [1, 2]}, refit=False, cv=2).fit(ROWS, LABELS),
     "GridSearchCV must have a best_estimator_.*refit=True"),
    (make_pipeline(StandardScaler(), tree.DecisionTreeRegressor()).fit(ROWS, TWO), "several outputs at once"),
], ids=lambda v: v if isinstance(v, str) else name(v))
def test_estimators_without_scores_of_classes_are_refused_when_they_are_wrapped(estimator, message):
    with pytest.raises(TypeError, match=message):
        wt.model(estimator)


def test_several_outputs_that_show_only_in_answers_are_refused_then():
    with pytest.raises(ValueError, match="MultiOutputRegressor must predict one thing"):
        wt.model(MultiOutputRegressor(linear_model.Ridge()).fit(ROWS, TWO))(SOME)


def test_what_the_refusal_of_pairs_advises_works():
    estimator = svm.SVC(decision_function_shape="ovo").fit(ROWS, LABELS)
    assert wt.model(estimator.predict)(SOME).shape == (len(SOME), 3)
    estimator.set_params(decision_function_shape="ovr")
    model = wt.model(estimator)
    np.testing.assert_array_equal(np.array(model.classes)[model.labels(model(SOME))], estimator.predict(SOME))


def test_two_classes_have_one_pair_and_are_not_refused():
    estimator = svm.SVC(decision_function_shape="ovo").fit(ROWS[50:], LABELS[50:])
    assert wt.model(estimator)(SOME).shape == (len(SOME), 2)


# --- estimators of others ---------------------------------------------------------------------------------------------


class Quack:
    """No base class of scikit-learn's, and no tags."""

    classes_ = ("no", "yes")

    def fit(self, rows, labels):
        return self

    def predict_proba(self, rows):
        return np.tile([0.25, 0.75], (len(rows), 1))


class QuackingRegressor:
    _estimator_type = "regressor"
    steps = 3  # of its own, no pipeline's

    def fit(self, rows, numbers):
        return self

    def predict(self, rows):
        return np.asarray(rows)[:, 0]


class Stateless(BaseEstimator, ClassifierMixin):
    """Inherits in the wrong order, and has nothing that ends in an underscore but is ready."""

    classes_ = np.array([0, 1])

    def fit(self, rows, labels):
        return self

    def predict(self, rows):
        return (np.asarray(rows)[:, 0] > 5).astype(int)


class StatelessRegressor(BaseEstimator, RegressorMixin):
    def fit(self, rows, labels):
        return self

    def predict(self, rows):
        return np.asarray(rows)[:, 0]


def test_estimators_of_others_need_no_base_class_and_no_state():
    quack = wt.model(Quack())
    assert quack.classes == ("no", "yes")
    assert (quack(SOME) == [0.25, 0.75]).all()
    for regressor in (QuackingRegressor(), StatelessRegressor()):
        np.testing.assert_array_equal(wt.model(regressor)(SOME), SOME[:, :1])
    np.testing.assert_array_equal(wt.model(Stateless())(SOME).argmax(axis=1), SOME[:, 0] > 5)


# --- tables -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("estimator", [
    linear_model.LogisticRegression(max_iter=500), make_pipeline(StandardScaler(), svm.LinearSVC()), ensemble.RandomForestClassifier(5, random_state=0),
    GridSearchCV(make_pipeline(StandardScaler(), linear_model.LogisticRegression()), {"logisticregression__C": [1]}, cv=2),
    CalibratedClassifierCV(naive_bayes.GaussianNB(), cv=2), ensemble.VotingClassifier([("a", naive_bayes.GaussianNB())], voting="soft"),
    ensemble.IsolationForest(n_estimators=5, random_state=0),
], ids=name)
def test_names_of_columns_are_given_as_the_estimator_was_fitted(estimator, strict):
    with_names = wt.model(clone(estimator).fit(FRAME, LABELS))
    truth = with_names(FRAME)
    np.testing.assert_array_equal(with_names(ROWS), truth)
    np.testing.assert_array_equal(with_names(FRAME[COLUMNS[::-1]]), truth)
    without = wt.model(clone(estimator).fit(ROWS, LABELS))
    np.testing.assert_array_equal(without(FRAME), without(ROWS))


def people(n=120):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, n).astype(float), "city": rng.choice(["Linz", "Graz", "Wien"], n), "children": rng.integers(0, 4, n)})
    frame.loc[::10, "age"] = np.nan
    frame["city"] = frame["city"].astype(object)
    frame.loc[::15, "city"] = None
    return frame, (frame["city"] == "Linz") ^ (frame["age"] > 50)


def people_pipeline():
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["age", "children"]),
        (OneHotEncoder(handle_unknown="ignore"), ["city"]))
    return make_pipeline(columns, ensemble.RandomForestClassifier(20, random_state=0))


def test_a_pipeline_over_columns_of_text_and_gaps_is_asked_with_a_frame_and_with_an_array(strict):
    frame, labels = people()
    pipe = people_pipeline().fit(frame, labels)
    truth = pipe.predict_proba(frame)
    np.testing.assert_array_equal(wt.model(pipe)(frame), truth)
    np.testing.assert_array_equal(wt.model(pipe)(frame.to_numpy(dtype=object)), truth)


def test_a_row_with_text_and_a_gap_is_explained_by_its_columns(strict):
    frame, labels = people()
    pipe = people_pipeline().fit(frame, labels)
    explanation = wt.explain(pipe, frame.iloc[0], background=frame, samples=300)
    assert len(explanation.names) == 3
    assert explanation.prediction == pytest.approx(pipe.predict_proba(frame.iloc[[0]]).max())


def test_columns_chosen_by_position_get_an_array_that_keeps_its_text(strict):
    frame, labels = people()
    frame["city"] = frame["city"].fillna("?")
    columns = ColumnTransformer([("city", OneHotEncoder(), [1]), ("age", SimpleImputer(), [0])])
    pipe = make_pipeline(columns, tree.DecisionTreeClassifier(random_state=0)).fit(frame.to_numpy(dtype=object), labels)
    np.testing.assert_array_equal(wt.model(pipe)(frame), pipe.predict_proba(frame.to_numpy(dtype=object)))


def test_missing_values_of_pandas_become_nan_in_an_array(strict):
    frame = FRAME.round().astype("Int64")
    frame.iloc[0, 0] = pd.NA
    rows = frame.to_numpy(dtype=float, na_value=np.nan)
    estimator = ensemble.HistGradientBoostingClassifier(max_iter=2).fit(rows, LABELS)
    np.testing.assert_array_equal(wt.model(estimator)(frame), estimator.predict_proba(rows))


# --- what it says, and what it leaves alone ---------------------------------------------------------------------------


@pytest.mark.parametrize(("estimator", "kind"), [
    (make_pipeline(StandardScaler(), linear_model.LogisticRegression()), "scikit-learn Pipeline ending in LogisticRegression, predict_proba"),
    (svm.LinearSVC(), "scikit-learn LinearSVC, decision_function"),
    (GridSearchCV(make_pipeline(StandardScaler(), svm.SVC()), {"svc__C": [1]}, cv=2),
     "scikit-learn GridSearchCV of a Pipeline ending in SVC, decision_function"),
    (Quack(), "Quack, predict_proba"),
], ids=lambda v: v if isinstance(v, str) else name(v))
def test_a_model_says_what_it_is(estimator, kind):
    assert f"({kind})" in str(wt.model(estimator.fit(ROWS, LABELS)))


def test_the_name_is_of_the_estimator_with_the_last_word():
    search = GridSearchCV(make_pipeline(StandardScaler(), svm.SVC()), {"svc__C": [1]}, cv=2).fit(ROWS, LABELS)
    assert wt.model(search).name == wt.model(search.best_estimator_).name == wt.model(search.decision_function).name == "SVC"


def test_the_users_estimator_is_left_alone_and_pickles():
    forest = ensemble.RandomForestClassifier(5, random_state=0, n_jobs=2, verbose=0).fit(FRAME, LABELS)
    before, state = forest.get_params(), pickle.dumps(forest)
    model = wt.model(forest)
    scores = model(ROWS)
    assert forest.get_params() == before
    assert pickle.dumps(forest) == state
    assert model.function.source is forest
    for given_as in (forest, forest.predict_proba, make_pipeline(StandardScaler(), clone(forest)).fit(FRAME, LABELS).predict_proba):
        again = pickle.loads(pickle.dumps(wt.model(given_as)))
        np.testing.assert_array_equal(again(ROWS), wt.model(given_as)(ROWS))
    np.testing.assert_array_equal(model(ROWS), scores)
