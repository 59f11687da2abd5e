import numpy as np
import pytest
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import whytrust as wt
from whytrust.backends import sklearn_kernels
from whytrust.backends.sklearn_kernels import QuickSVC, quickened
from whytrust.backends.sklearn_text import open_text
from whytrust.core import generator
from whytrust.domains.text import TextParts

pytestmark = pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
RNG = generator(0)
WORDS = ["good", "bad", "film", "pace", "score", "acting", "end", "wonderful", "awful", "the", "not", "café"]


def corpus(n=60, classes=2):
    """Made-up reviews: some words lean to a class, the others are noise."""
    rng = generator(1)
    labels = np.arange(n) % classes
    texts = [" ".join([*rng.choice(WORDS, 8), *rng.choice(WORDS[k::classes], 3)]) for k in labels]
    return texts, np.array(["bad", "good", "so-so"])[labels]


TEXTS, LABELS = corpus()


def masks_for(parts, rows=300):
    d = len(parts.names)
    return np.concatenate([generator(0).random((rows, d)) < 0.5, np.ones((1, d), bool), np.zeros((1, d), bool)])


def assert_same(pipe, method, parts, quick=True):
    """Masks through the shortcut say what the composed texts say; and it is the shortcut that was asked."""
    opened = open_text(pipe, method, parts)
    assert isinstance(opened.rest[-1], QuickSVC) == quick
    masks = masks_for(parts)
    truth = getattr(pipe, method)(parts.compose(masks, RNG))
    found = opened(masks)
    assert (found.shape, found.dtype) == (truth.shape, truth.dtype)
    if truth.dtype.kind == "f":
        np.testing.assert_allclose(found, truth, rtol=0, atol=1e-9)
    else:
        assert (found == truth).all()


@pytest.mark.parametrize("vectoriser", [
    CountVectorizer(), CountVectorizer(binary=True), TfidfVectorizer(), TfidfVectorizer(ngram_range=(1, 2), dtype=np.float32),
    HashingVectorizer(n_features=64)], ids=["counts", "binary", "tfidf", "bigrams32", "hashed"])
@pytest.mark.parametrize("options", [
    {}, {"gamma": 0.3, "C": 20.0}, {"gamma": "auto"}, {"kernel": "linear"}, {"kernel": "poly", "degree": 2, "coef0": 1.5}, {"kernel": "poly"},
    {"kernel": "sigmoid", "coef0": -0.2}, {"class_weight": {"bad": 3.0}}], ids=str)
def test_margins_and_probabilities_are_those_of_libsvm(vectoriser, options):
    pipe = make_pipeline(vectoriser, SVC(probability=True, random_state=0, **options)).fit(TEXTS, LABELS)
    parts = TextParts.cut(TEXTS[0] + " and unknown words")
    for method in ("predict_proba", "decision_function", "predict", "predict_log_proba"):
        assert_same(pipe, method, parts)


def test_steps_between_and_dense_rows():
    parts = TextParts.cut(TEXTS[3])
    for steps in ([CountVectorizer(), TfidfTransformer()], [TfidfVectorizer(), TruncatedSVD(5, random_state=0)]):
        pipe = make_pipeline(*steps, SVC(probability=True, random_state=0)).fit(TEXTS, LABELS)
        assert_same(pipe, "predict_proba", parts)
        assert_same(pipe, "decision_function", parts)


def test_probabilities_near_a_half_are_as_odd_as_those_of_libsvm():
    """It stops at 0.5 for whatever is nearer to it than 0.005; a formula of one's own would not."""
    machine = SVC(probability=True, random_state=0, gamma=0.05).fit(CountVectorizer().fit_transform(TEXTS), LABELS)
    quick = quickened(machine)
    a, b = machine._probA[0], machine._probB[0]
    for p in (1e-9, 0.4, 0.4949, 0.497, 0.5, 0.503, 0.5051, 0.7, 1 - 1e-9):
        value = (np.log(1 / p - 1) - b) / a  # libsvm: p of the first class = 1 / (1 + exp(a v + b))
        line = SVC(probability=True, kernel="linear").fit(np.array([[-1.0], [1.0]] * 5), ["bad", "good"] * 5)
        line._probA, line._probB = machine._probA, machine._probB
        line.__dict__.update(support_=np.zeros(1, np.int32), support_vectors_=np.ones((1, 1)), _dual_coef_=np.ones((1, 1)),
                             _intercept_=np.zeros(1), _n_support=np.array([1, 0], np.int32))
        np.testing.assert_array_equal(quick._platt(np.array([[value]])), line.predict_proba([[value]]))


def test_a_calibrated_machine_is_quickened_inside():
    parts = TextParts.cut(TEXTS[1])
    masks = masks_for(parts)
    for ensemble in (True, False):
        pipe = make_pipeline(TfidfVectorizer(), CalibratedClassifierCV(SVC(gamma=0.5), ensemble=ensemble, cv=3)).fit(TEXTS, LABELS)
        opened = open_text(pipe, "predict_proba", parts)
        inside = opened.rest[-1].calibrated_classifiers_
        assert all(type(one.estimator) is QuickSVC for one in inside)
        assert all(type(one.estimator) is SVC for one in pipe[-1].calibrated_classifiers_), "the user's own must stay as it was"
        np.testing.assert_allclose(opened(masks), pipe.predict_proba(parts.compose(masks, RNG)), rtol=0, atol=1e-9)


def test_a_search_is_quickened():
    search = GridSearchCV(make_pipeline(TfidfVectorizer(), SVC()), {"svc__C": [1, 10]}, cv=2).fit(TEXTS, LABELS)
    parts = TextParts.cut(TEXTS[2])
    masks = masks_for(parts)
    opened = open_text(search, "decision_function", parts)
    assert isinstance(opened.rest[-1], QuickSVC)
    np.testing.assert_allclose(opened(masks), search.decision_function(parts.compose(masks, RNG)), rtol=0, atol=1e-9)


class OwnSVC(SVC):
    """A subclass may decide as it likes."""


def test_what_is_not_certain_is_left_to_libsvm():
    parts = TextParts.cut(TEXTS[0])
    assert_same(make_pipeline(CountVectorizer(), OwnSVC()).fit(TEXTS, LABELS), "decision_function", parts, quick=False)
    texts, labels = corpus(classes=3)
    assert_same(make_pipeline(CountVectorizer(), SVC(probability=True, random_state=0)).fit(texts, labels), "predict_proba", parts, quick=False)

    def dots(x, y):
        return (x @ y.T).toarray()

    assert type(quickened(SVC(kernel=dots).fit(CountVectorizer().fit_transform(TEXTS), LABELS))) is SVC
    assert type(quickened(SVC())) is SVC
    logistic = LogisticRegression()
    assert quickened(logistic) is logistic


def test_where_rounding_could_show_libsvm_is_asked():
    """A word that stands there a million times: what is left of ‖x‖² − 2 x·s + ‖s‖² is rounding."""
    rng = generator(3)
    rows = sparse.csr_matrix(1e6 + rng.random((40, 3)))
    machine = SVC(gamma=5.0, C=10.0).fit(rows, np.arange(40) % 2)
    quick = quickened(machine)
    assert quick._values(rows) is None
    np.testing.assert_array_equal(quick.decision_function(rows), machine.decision_function(rows))


def test_rows_of_many_words_and_no_rows_are_left_to_libsvm(monkeypatch):
    matrix = TfidfVectorizer().fit_transform(TEXTS)
    machine = SVC().fit(matrix, LABELS)
    quick = quickened(machine)
    assert quick._values(matrix[:0]) is None
    monkeypatch.setattr(sklearn_kernels, "_WIDE", 3)
    assert quick._values(matrix) is None
    np.testing.assert_array_equal(quick.decision_function(matrix), machine.decision_function(matrix))


def test_blocks_of_rows_change_nothing(monkeypatch):
    matrix = TfidfVectorizer().fit_transform(TEXTS)
    machine = SVC().fit(matrix, LABELS)
    whole = quickened(machine).decision_function(matrix)
    monkeypatch.setattr(sklearn_kernels, "_CELLS_AT_ONCE", 100)
    np.testing.assert_allclose(quickened(machine).decision_function(matrix), whole, rtol=0, atol=1e-12)


def test_an_explanation_asks_the_quick_machine_and_says_the_same(monkeypatch):
    pipe = make_pipeline(TfidfVectorizer(), SVC(probability=True, random_state=0)).fit(TEXTS, LABELS)
    asked = []
    values = QuickSVC._values
    monkeypatch.setattr(QuickSVC, "_values", lambda self, X: asked.append(X.shape[0]) or values(self, X))
    quick = wt.explain(pipe, TEXTS[0], method="lime", samples=500)
    assert sum(asked) >= 200
    monkeypatch.setattr("whytrust.backends.sklearn_text._quick", list)
    np.testing.assert_allclose(wt.explain(pipe, TEXTS[0], method="lime", samples=500).scores, quick.scores, atol=1e-9)
