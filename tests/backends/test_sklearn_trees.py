"""Shrunk trees say what scikit-learn's say: of bags, counts and TF-IDF, of trees and forests, of classes and numbers."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import whytrust as wt
from whytrust.backends import sklearn_trees
from whytrust.domains.text import TextParts

WORDS = [f"word{i}" for i in range(60)]


def texts(rng, n=120):
    return [" ".join(rng.choice(WORDS, size=rng.integers(3, 25))) for _ in range(n)]


@pytest.mark.parametrize("vectoriser", [CountVectorizer(binary=True), CountVectorizer(), TfidfVectorizer(), CountVectorizer(ngram_range=(1, 2))])
@pytest.mark.parametrize("estimator", [RandomForestClassifier(20, random_state=0), ExtraTreesClassifier(10, random_state=0), DecisionTreeClassifier(random_state=0),
                                       RandomForestRegressor(10, random_state=0), DecisionTreeRegressor(random_state=0)])
def test_a_shrunk_tree_says_what_the_tree_says(vectoriser, estimator, rng):
    train = texts(rng)
    target = np.array([text.count("word1") + text.count("word7") > 2 for text in train]) + (rng.random(len(train)) < 0.1)
    pipeline = make_pipeline(vectoriser, estimator).fit(train, target)
    method = "predict_proba" if hasattr(estimator, "predict_proba") else "predict"
    text = texts(rng, 1)[0]
    parts = TextParts.cut(text, "words")
    masks = rng.random((200, len(parts.names))) < 0.6
    matrix = pipeline[0].transform(parts.compose(masks, rng))
    quick = sklearn_trees.quickened(pipeline[-1])
    assert isinstance(quick, sklearn_trees.QuickTrees)
    np.testing.assert_allclose(getattr(quick, method)(matrix), getattr(pipeline[-1], method)(matrix), rtol=0, atol=1e-12)


def test_every_word_of_the_rows_is_looked_at_again_when_other_rows_come(rng):
    X = sparse.random(300, 40, density=0.3, format="csr", random_state=0)
    forest = RandomForestClassifier(10, random_state=0).fit(X, np.arange(300) % 3)
    quick = sklearn_trees.quickened(forest)
    for rows in (X[:100], X[100:200][:, :].multiply(rng.random(40) < 0.2).tocsr(), X[:100]):
        np.testing.assert_allclose(quick.predict_proba(rows), forest.predict_proba(rows), atol=1e-12)


def test_explanations_do_not_change(rng):
    train = texts(rng)
    pipeline = make_pipeline(CountVectorizer(), RandomForestClassifier(30, random_state=0)).fit(train, ["word3" in t.split() for t in train])
    text = " ".join(WORDS[:20])
    opened = wt.explain(pipeline, text, samples=600)
    closed = wt.explain(wt.model(lambda batch: pipeline.predict_proba(batch), classes=["no", "yes"]), text, samples=600)
    np.testing.assert_allclose(opened.scores, closed.scores, atol=1e-9)
    assert opened.as_list()[0][0] == "word3"


def test_what_is_no_plain_forest_is_left_alone():
    class Own(RandomForestClassifier):
        pass

    fitted = Own(5).fit([[0], [1]], [0, 1])
    assert sklearn_trees.quickened(fitted) is fitted
    several = RandomForestClassifier(5).fit([[0], [1]], [[0, 1], [1, 0]])
    assert sklearn_trees.quickened(several) is several
