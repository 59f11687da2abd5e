"""The drop-in for lime's text explainer."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline

from compat.models import TEXT, WEIGHTS, additive, order_matters, own_kernel, three_classes
from whytrust.compat.lime.lime_text import IndexedCharacters, IndexedString, LimeTextExplainer


def explain(text=TEXT, model=additive, *, call=None, **options):
    return LimeTextExplainer(**options).explain_instance(text, model, **{"num_samples": 600, **(call or {})})


def test_an_additive_model_is_recovered():
    found = dict(explain(call={"num_features": 20}).as_list())
    assert {word: found[word] for word in WEIGHTS} == pytest.approx(WEIGHTS, abs=0.01)


def test_weights_are_limes_up_to_noise():
    from lime.lime_text import LimeTextExplainer as Original

    def curved(texts):
        p = additive(texts)[:, 1] ** 2
        return np.column_stack([1 - p, p])

    call = {"num_features": 20, "num_samples": 10000}
    theirs = dict(Original(random_state=1).explain_instance(TEXT, curved, **call).as_list())
    ours = explain(model=curved, call=call)
    assert dict(ours.as_list()) == pytest.approx(theirs, abs=0.01)
    assert set(dict(ours.as_list())) == set(theirs)


@pytest.mark.parametrize("selection", ["auto", "forward_selection", "highest_weights", "lasso_path", "none"])
def test_every_selection_finds_the_words_that_count(selection):
    found = explain(feature_selection=selection, call={"num_features": 4}).as_list()
    assert {word for word, _ in found[:4]} == set(WEIGHTS)
    assert len(found) == (IndexedString(TEXT).num_words() if selection == "none" else 4)


def test_the_same_call_gives_the_same_answer_and_another_seed_another():
    assert explain().as_map() == explain().as_map() == explain(random_state=0).as_map()
    assert explain(random_state=1).as_map() != explain().as_map()
    assert explain(random_state=np.random.RandomState(7)).as_map() == explain(random_state=np.random.RandomState(7)).as_map()
    assert explain(random_state=np.random.default_rng(7)).as_map() != explain().as_map()


def test_one_explainer_repeats_itself():
    explainer = LimeTextExplainer(random_state=np.random.RandomState(3))
    first, second = (explainer.explain_instance(TEXT, additive, num_samples=300) for _ in range(2))
    assert first.as_map() == second.as_map()


def test_explainers_and_explanations_pickle():
    explainer = LimeTextExplainer(class_names=["no", "yes"])
    again = pickle.loads(pickle.dumps(explainer)).explain_instance(TEXT, additive, num_samples=300)
    kept = pickle.loads(pickle.dumps(again))
    assert kept.as_list() == explainer.explain_instance(TEXT, additive, num_samples=300).as_list()
    assert kept.whytrust == again.whytrust


def test_every_label_keeps_its_own_score_intercept_and_local_prediction():
    both = explain(model=three_classes, call={"labels": (2, 1)})
    alone = {label: explain(model=three_classes, call={"labels": (label,)}) for label in (1, 2)}
    assert both.scores == {label: one.score for label, one in alone.items()}
    assert both.score == alone[2].score
    assert both.local_pred.shape == (1,)
    assert both.local_pred == both.local_preds[2] != both.local_preds[1]
    assert both.intercept == {label: one.intercept[label] for label, one in alone.items()}
    assert both.available_labels() == [2, 1]


def test_top_labels_come_most_probable_first():
    e = explain(model=three_classes, call={"top_labels": 2})
    assert e.top_labels == e.available_labels() == sorted(e.local_exp, key=lambda i: -e.predict_proba[i])
    assert explain(model=three_classes, call={"top_labels": 9}).top_labels[0] == e.top_labels[0]
    assert e.class_names == ["0", "1", "2"]
    np.testing.assert_array_equal(e.predict_proba, three_classes([TEXT])[0])


@pytest.mark.parametrize("options", [{}, {"bow": False}, {"char_level": True}, {"char_level": True, "bow": False}])
def test_the_model_gets_the_texts_that_inverse_removing_writes(options):
    seen = []

    def recorded(texts):
        assert isinstance(texts, list)
        seen.extend(texts)
        return np.full((len(texts), 2), 0.5) + [[0.001 * len(t), 0] for t in texts]

    e = explain("bad, not good: bad", recorded, call={"num_samples": 2000, "labels": (0,)}, **options)
    text = e.domain_mapper.indexed_string
    masks = np.indices((2,) * text.num_words()).reshape(text.num_words(), -1).T if text.num_words() < 12 else np.eye(text.num_words())
    written = {text.inverse_removing(np.flatnonzero(mask)) for mask in masks.astype(bool)}
    assert text.raw_string() in seen
    assert len(written & set(seen)) > 3
    assert set(seen) <= written or text.num_words() >= 12


def test_word_order_needs_positions():
    e = explain("not good and not bad", order_matters, bow=False, mask_string="___", call={"num_samples": 2000})
    assert e.as_list(positions=True)[0][0] == "not_0"
    assert e.domain_mapper.indexed_string.inverse_removing([0]) == "___ good and not bad"
    assert LimeTextExplainer(bow=False).explain_instance("not good", order_matters).domain_mapper.indexed_string.mask_string == "UNKWORDZ"


@pytest.mark.parametrize("split", [",", re.compile(","), lambda text: text.split(",")])
def test_split_expressions_cut_where_they_say(split):
    text = IndexedString("one two,three,one two", split)
    assert text.inverse_vocab == ["one two", "three"]
    assert text.string_position(0).tolist() == [0, 14]
    assert text.as_list == ["one two", ",", "three", ",", "one two"]


def test_characters_know_their_places():
    text = IndexedCharacters("abca", bow=False)
    assert (text.num_words(), text.word(3), text.string_position(3).tolist()) == (4, "a", [3])
    assert text.inverse_removing([0, 3]) == "\0bc\0"


@settings(max_examples=25, deadline=None)
@given(st.text(alphabet="ab ,.é", min_size=1, max_size=30).filter(lambda t: re.search(r"\w", t)), st.booleans())
def test_lists_maps_and_words_agree(text, bow):
    e = explain(text, lambda ts: np.array([[0.01 * len(t), 1 - 0.01 * len(t)] for t in ts]), bow=bow, call={"num_samples": 60})
    words = e.domain_mapper.indexed_string
    assert e.as_list() == [(words.word(i), weight) for i, weight in e.as_map()[1]]
    assert [abs(w) for _, w in e.as_list()] == sorted((abs(w) for _, w in e.as_list()), reverse=True)
    assert "".join(words.as_list) == words.raw_string() == words.inverse_removing([]) == text
    for i in range(words.num_words()):
        assert all(text.startswith(words.word(i), start) for start in words.string_position(i))


def test_kernel_widths_of_texts_are_hundredths_of_the_cosine_distance():
    narrow, wide = (explain(kernel_width=w).whytrust[1].settings["width"] for w in (10, 50))
    assert (narrow, wide) == (0.1, 0.5)


def test_an_own_kernel_metric_and_regressor_are_used():
    asked = []

    def kernel(d, kernel_width):
        asked.append((d.max(), kernel_width))
        return own_kernel(d, kernel_width)

    e = explain(kernel=kernel, kernel_width=30, call={"num_features": 20})
    assert asked == [(pytest.approx(100), 30.0)]  # lime's distances of texts run to 100
    assert dict(e.as_list())["good"] == pytest.approx(0.3, abs=0.02)
    regressor = Ridge(alpha=1e-9)
    e = explain(call={"model_regressor": regressor, "num_features": 4})
    assert dict(e.as_list()) == pytest.approx(WEIGHTS, abs=1e-6)
    assert regressor.coef_.shape == (4,)
    e = explain(call={"distance_metric": "jaccard", "num_features": 4}, kernel_width=60)
    assert dict(e.as_list()) == pytest.approx(WEIGHTS, abs=0.02)


def test_a_text_of_one_word_and_very_few_samples_work_as_in_lime():
    (only,) = explain("good").as_list()
    assert only[0] == "good"
    assert only[1] > 0
    few = explain(call={"num_samples": 5, "num_features": 10})
    assert len(few.as_list()) == 10
    assert any("5 samples are few" in note for note in few.whytrust[1].notes)


def test_pipelines_are_explained_through_their_predict_proba():
    texts = [TEXT, "good good film", "a bad end", "dull", "good plot", "bad film in a room"]
    pipeline = make_pipeline(CountVectorizer(binary=True), LogisticRegression()).fit(texts, [1, 1, 0, 0, 1, 0])
    e = explain(model=pipeline.predict_proba, class_names=["rotten", "fresh"])
    words = dict(e.as_list())
    assert words["good"] > 0 > words["bad"]
    assert e.whytrust[1].target_name == "fresh"


def test_verbose_says_what_lime_says(capsys):
    explain(verbose=True)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["Intercept", "Prediction_local", "Right:"]


@pytest.mark.parametrize(("options", "call", "says"), [
    ({"feature_selection": "best"}, {}, "feature_selection must be one of"),
    ({"kernel": 3}, {}, "kernel must be a function"),
    ({"kernel": lambda d, kernel_width: d[:3]}, {}, "as many finite weights"),
    ({"random_state": "x"}, {}, "random_state must be"),
    ({"split_expression": "("}, {}, "split_expression must be"),
    ({"split_expression": lambda t: ["absent"]}, {}, "pieces of the text"),
    ({}, {"labels": (2,)}, "0 to 1"),
    ({}, {"labels": ()}, "top_labels"),
    ({}, {"num_samples": 0}, "num_samples must be"),
    ({}, {"num_features": 0}, "num_features must be"),
])
def test_wrong_arguments_are_named(options, call, says):
    with pytest.raises((ValueError, TypeError), match=says):
        explain(call=call, **options)


def test_a_label_that_was_not_explained_is_named():
    for ask in ("as_list", "as_pyplot_figure"):
        with pytest.raises(KeyError, match="label 0 was not explained, only 1"):
            getattr(explain(), ask)(0)


def test_scores_without_classes_are_refused():
    with pytest.raises(ValueError, match="one column of probabilities for each class"):
        explain(model=lambda texts: np.ones(len(texts)))
