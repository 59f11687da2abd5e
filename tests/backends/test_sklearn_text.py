import re

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import LinearSVC

import whytrust as wt
from whytrust.backends.sklearn_text import Joins, OpenedText, open_text
from whytrust.core import generator
from whytrust.domains.text import TextParts

RNG = generator(0)
REVIEW = ("I didn't expect much, but this film is wonderful: the acting, the pace (and the well-known score!) are good. "
          "Good films cost $3.50 or more... It is not bad, not bad at all; see it at 8 p.m. 😀 the end?")
CORPUS = [REVIEW, "a bad film with bad acting", "not good, not bad", "wonderful pace and wonderful score", "see the film at all",
          "the end of the pace is not bad at all", "café déjà vu naïve", "[MASK] film", "UNKWORDZ bad"]
LABELS = ["good", "bad", "bad", "good", "good", "good", "bad", "bad", "bad"]
WORDS = ["good", "Bad", "not", "the", "a", "I", "don't", "well-known", "film", "café", "CAFÉ", "naïve", "e\u0301te\u0301", "İstanbul",
         "ﬁne", "3.14", "42", "x_y", "U.S.", "北京", "ラーメン", "नमस्ते", "😀", "👩‍👧", "½", "ΣΑΣ", "straße", "\u0130", "[MASK]"]
BETWEEN = [" ", " ", " ", " ", ", ", ". ", "! ", "\n\n", "-", "'", "", "_", "\u0301", "…", " (", ") ", "\ud800"]
TEXTS = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(BETWEEN)), min_size=1, max_size=14).map(
    lambda pairs: "".join(word + gap for word, gap in pairs))
COMMON = {
    "lowercase": st.booleans(), "strip_accents": st.sampled_from([None, "unicode", "ascii"]),
    "stop_words": st.sampled_from([None, "english", ["good", "film"]]), "binary": st.booleans(),
    "ngram_range": st.sampled_from([(1, 1), (1, 2), (1, 3), (2, 2), (2, 3)]), "dtype": st.sampled_from([np.float64, np.float32]),
    "token_pattern": st.sampled_from([r"(?u)\b\w\w+\b", r"(?u)\b\w\w+\b", r"\w+", r"\S+", r"[a-z]+", r"(?i)\b([a-z])\w+", r"(?a)\b\w+\b",
                                      r"\w+(?:'\w+)?", r"\w+|[^\w\s]", r"(?<!\w )\w+", r"\w+(?=\W*\w)", r"\w*", r".\w"]),
}
NORM = st.sampled_from([None, "l1", "l2"])
VECTORISERS = st.one_of(
    st.fixed_dictionaries(COMMON).map(lambda o: CountVectorizer(**o)),
    st.fixed_dictionaries({**COMMON, "norm": NORM, "use_idf": st.booleans(), "sublinear_tf": st.booleans()}).map(
        lambda o: TfidfVectorizer(**o)),
    st.fixed_dictionaries({**COMMON, "norm": NORM, "alternate_sign": st.booleans(), "n_features": st.sampled_from([4, 64, 2**20])}).map(
        lambda o: HashingVectorizer(**o)),
)


class Rest(LinearRegression):
    """Stands where a model stands, and is never asked."""


def masks_for(parts, rows=12, seed=0):
    d = len(parts.names)
    drawn = generator(seed).random((rows, d)) < 0.5
    return np.concatenate([drawn, np.ones((1, d), bool), np.zeros((1, d), bool), np.eye(d, dtype=bool), ~np.eye(d, dtype=bool)])


def fitted(vectoriser, text=REVIEW, model=None):
    return make_pipeline(vectoriser.fit([*CORPUS, text, text + " words"]), Rest() if model is None else model)


def assert_same_matrix(ours, theirs):
    assert type(ours) is type(theirs)
    assert (ours.shape, ours.dtype, ours.indices.dtype) == (theirs.shape, theirs.dtype, theirs.indices.dtype)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


@pytest.mark.filterwarnings("ignore:Your stop_words may be inconsistent")
@settings(max_examples=250, suppress_health_check=[HealthCheck.filter_too_much])
@given(TEXTS, VECTORISERS, st.sampled_from(["words", "bag", "sentences"]), st.sampled_from([None, None, "", "[MASK]", "UNKWORDZ", " "]),
       st.sampled_from([None, None, 5]))
def test_an_opened_vectoriser_makes_the_very_matrix_that_the_texts_give(text, vectoriser, unit, fill, reads):
    parts = TextParts.cut(text + " end", unit, fill=fill, reads=len if reads is None else lambda _: reads)
    pipe = fitted(vectoriser, text)
    opened = open_text(pipe, "predict", parts)
    assume(opened is not None)
    masks = masks_for(parts)
    try:
        truth = pipe[0].transform(parts.compose(masks, RNG))
    except UnicodeEncodeError:  # a hashing vectoriser cannot read lone surrogates
        assume(False)
    assert_same_matrix(opened.matrix(masks), truth)


@pytest.mark.parametrize("unit", ["words", "bag", "sentences"])
@pytest.mark.parametrize("fill", [None, "[MASK]", "UNKWORDZ"])
@pytest.mark.parametrize("vectoriser", [
    TfidfVectorizer(), CountVectorizer(), HashingVectorizer(), CountVectorizer(binary=True), CountVectorizer(vocabulary=["bad", "film"]),
    TfidfVectorizer(ngram_range=(1, 2)), TfidfVectorizer(ngram_range=(2, 3)), TfidfVectorizer(stop_words="english", sublinear_tf=True),
    TfidfVectorizer(strip_accents="unicode", lowercase=False, norm=None), TfidfVectorizer(max_features=8, norm="l1", dtype=np.float32),
    TfidfVectorizer(token_pattern=r"(?u)\b\w+\b"), CountVectorizer(token_pattern="[a-z]+"), HashingVectorizer(ngram_range=(1, 2), n_features=32),
    CountVectorizer(ngram_range=(3, 3), stop_words="english"), CountVectorizer(vocabulary=["nothing here"], ngram_range=(1, 2)),
], ids=lambda v: re.sub(r"\s+", " ", str(v)))
def test_ordinary_english_is_opened_and_gives_the_same_matrix(vectoriser, fill, unit):
    parts = TextParts.cut(REVIEW, unit, fill=fill)
    pipe = fitted(vectoriser)
    opened = open_text(pipe, "predict", parts)
    assert isinstance(opened, OpenedText)
    masks = masks_for(parts, 60)
    assert_same_matrix(opened.matrix(masks), pipe[0].transform(parts.compose(masks, RNG)))


@pytest.mark.parametrize("model", [LogisticRegression(), RandomForestClassifier(20, random_state=0), LinearSVC()], ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("steps", [[TfidfVectorizer(ngram_range=(1, 2))], [CountVectorizer(), TfidfTransformer()]], ids=["tfidf", "count+tfidf"])
def test_scores_of_masks_are_those_of_the_composed_texts(steps, model):
    pipe = make_pipeline(*steps, model).fit(CORPUS, LABELS)
    parts = TextParts.cut(REVIEW)
    masks = masks_for(parts, 100)
    for method in [m for m in ("predict_proba", "decision_function", "predict") if hasattr(pipe, m)]:
        opened = open_text(pipe, method, parts)
        np.testing.assert_array_equal(opened(masks), getattr(pipe, method)(parts.compose(masks, RNG)))


def test_a_search_over_pipelines_is_opened():
    search = GridSearchCV(make_pipeline(TfidfVectorizer(), LogisticRegression()), {"logisticregression__C": [1, 10]}, cv=2).fit(CORPUS, LABELS)
    parts = TextParts.cut(REVIEW)
    masks = masks_for(parts)
    np.testing.assert_array_equal(open_text(search, "predict_proba", parts)(masks), search.predict_proba(parts.compose(masks, RNG)))


def test_a_vocabulary_that_was_given_needs_no_fitting():
    parts, vectoriser = TextParts.cut(REVIEW), CountVectorizer(vocabulary=["bad", "film"])
    masks = masks_for(parts)
    assert_same_matrix(open_text(make_pipeline(vectoriser, Rest()), "predict", parts).matrix(masks),
                       vectoriser.transform(parts.compose(masks, RNG)))


def test_many_masks_are_counted_in_blocks_with_the_same_result(monkeypatch):
    parts = TextParts.cut(REVIEW)
    masks = masks_for(parts, 50)
    for vectoriser in (TfidfVectorizer(), TfidfVectorizer(ngram_range=(1, 2))):
        pipe = fitted(vectoriser)
        opened = open_text(pipe, "predict", parts)
        monkeypatch.setattr("whytrust.backends.sklearn_text._CELLS_AT_ONCE", 600)
        monkeypatch.setattr("whytrust.backends.sklearn_text._TABLE", 10)
        assert_same_matrix(opened.matrix(masks), pipe[0].transform(parts.compose(masks, RNG)))


class OwnAnalysis(TfidfVectorizer):
    def build_analyzer(self):
        return str.split


class OwnName(TfidfVectorizer):
    """A subclass that analyses as its base does."""


class OwnPipeline(Pipeline):
    def predict(self, X):
        return super().predict([text[::-1] for text in X])


@pytest.mark.parametrize("vectoriser", [
    CountVectorizer(analyzer="char"), CountVectorizer(analyzer="char_wb"), CountVectorizer(analyzer=str.split),
    CountVectorizer(tokenizer=str.split, token_pattern=None), CountVectorizer(preprocessor=str.lower),
    CountVectorizer(strip_accents=str.lower), OwnAnalysis(),
    CountVectorizer(token_pattern=r"\w+(?= )"), CountVectorizer(token_pattern=r"(?<!not )\b\w+"), CountVectorizer(token_pattern=r"\w+$|\w+"),
    CountVectorizer(token_pattern=r".+"), CountVectorizer(token_pattern=r"\S+"),
], ids=lambda v: re.sub(r"\s+", " ", str(v)))
def test_what_could_read_beyond_a_part_is_not_opened(vectoriser):
    assert open_text(fitted(vectoriser), "predict", TextParts.cut(REVIEW)) is None


def test_a_subclass_is_opened_unless_it_changes_the_analysis_or_an_instance_does():
    assert open_text(fitted(OwnName()), "predict", TextParts.cut(REVIEW)) is not None
    changed = fitted(TfidfVectorizer())
    changed[0].decode = lambda text: text[::-1]
    assert open_text(changed, "predict", TextParts.cut(REVIEW)) is None


@pytest.mark.parametrize("estimator", [
    LogisticRegression(), make_pipeline(TfidfVectorizer()), make_pipeline(ColumnTransformer([]), LogisticRegression()),
    make_pipeline("passthrough", LogisticRegression()), OwnPipeline([("v", TfidfVectorizer()), ("m", LinearRegression())]),
], ids=["model", "vectoriser", "columns", "passthrough", "subclass"])
def test_estimators_that_are_no_text_pipelines_are_not_opened(estimator):
    assert open_text(estimator, "predict", TextParts.cut(REVIEW)) is None


@pytest.mark.parametrize(("text", "options"), [
    ("我爱北京 good", {}),  # every character is a word, and all of them one token
    ("good bad", {"split": "go|od|bad"}),  # parts inside a token
    ("good bad", {"split": "bad| "}),  # a space that can be hidden: "goodbad"
    ("good,bad", {"fill": "x"} | {"split": "good|,"}),  # x would grow onto bad
    ("ΟΔΟΣ good", {}),  # the lower case of the last letter depends on what follows
])
def test_texts_whose_tokens_could_grow_together_are_not_opened(text, options):
    assert open_text(fitted(TfidfVectorizer()), "predict", TextParts.cut(text, **options)) is None


def test_parts_that_are_no_texts_are_not_opened():
    class Rows:
        names = ("a", "b")

    assert open_text(fitted(TfidfVectorizer()), "predict", Rows()) is None


@pytest.mark.parametrize(("pattern", "characters"), [
    (r"(?u)\b\w\w+\b", "aÉ9_北"), (r"\w+(?:['-]\w+)*", "a_9'-"), (r"[^\s]+", "a.-"), (r"(?a)\b\w+\b", "a"), (r"\b[a-z]+\b", "a9_É"), (r"(?i)\b([A-Z]{2,}|\d+\.?)\b", "zZ9."),
])
def test_characters_that_a_token_can_take_or_feel_join(pattern, characters):
    joins = Joins.of(pattern)
    assert all(joins[character] for character in characters)
    assert not any(joins[character] for character in " \n")


@pytest.mark.parametrize("pattern", [r"\w*", r"\b\w*\b", r"(\w+)?", r"a|", r"\w+(?!x)", r"(?<=a)b", r"^a", r"a$", r"\Aa", r"(a)\1", r"a\B", r"(?x) a", r"(?P<n>a)"])
def test_patterns_that_match_nothing_or_look_around_are_left_alone(pattern):
    assert Joins.of(pattern) is None


# --- from outside -----------------------------------------------------------------------------------------------------


def test_explaining_a_pipeline_is_explaining_the_function_it_is(monkeypatch):
    pipe = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression()).fit(CORPUS, LABELS)
    vectorised = []
    plain = CountVectorizer._count_vocab
    monkeypatch.setattr(CountVectorizer, "_count_vocab", lambda self, texts, fixed_vocab: (
        vectorised.append(len(texts)) or plain(self, texts, fixed_vocab)))
    by_function = wt.explain(lambda texts: pipe.predict_proba(texts), REVIEW, target=1, samples=1000)
    assert sum(vectorised) > 900
    for given_as in (pipe, pipe.predict_proba):
        vectorised.clear()
        opened = wt.explain(given_as, REVIEW, target="good", samples=1000)
        np.testing.assert_allclose(opened.scores, by_function.scores, rtol=0, atol=1e-9)
        assert sum(vectorised) < 20  # the text itself, a few masks to check the shortcut with, an empty text


def test_margins_and_labels_are_opened_with_their_meaning():
    pipe = make_pipeline(TfidfVectorizer(), LinearSVC()).fit(CORPUS, LABELS)
    parts = TextParts.cut(REVIEW)
    masks = masks_for(parts)
    for given_as in (pipe, pipe.predict):
        model = wt.model(given_as)
        np.testing.assert_array_equal(model.opened(parts)(masks), model(parts.compose(masks, RNG)))


def test_a_model_with_its_own_preprocessing_is_not_opened():
    pipe = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(CORPUS, LABELS)
    parts = TextParts.cut(REVIEW)
    assert wt.model(pipe).opened(parts) is not None
    assert wt.model(pipe, preprocess=lambda texts: [t.upper() for t in texts]).opened(parts) is None
