"""Parzen windows over texts, against naive loops and white boxes; what is told, and what is refused."""

import pickle
import tracemalloc

import numpy as np
import pytest

import whytrust as wt
from explainers.parzen_truth import (
    MODEL,
    WORDS,
    Slanted,
    bright_corner,
    clouds,
    mixed_frame,
    naive_probability,
    reviews,
    says_good,
)
from whytrust.explainers.parzen import Parzen
from whytrust.explainers.windows import Rows, Windows, folds_of, tried

# --- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1.0, "auto"])
@pytest.mark.parametrize("parts", ["bag", "words"])
def test_the_word_of_the_truth_comes_first(width, parts):
    texts = reviews(300)
    found = wt.explain(MODEL, "good film with new plot and old music", "parzen", background=texts, width=width, parts=parts)
    assert found.as_list(1)[0][0] == "good"
    assert found.as_list(1)[0][1] > 0
    other = wt.explain(MODEL, "bad film with new plot and old music", "parzen", background=texts, width=width, parts=parts)
    assert other.target_name == "rotten"
    assert other.as_list(1)[0][0] == "bad"
    assert dict(other.as_list())["with"] == 0  # no training text has it
    assert found.intercept + found.scores.sum() == pytest.approx(found.local_prediction)


def test_scores_are_the_gradient_of_the_naive_probability_with_respect_to_words_that_are_there():
    texts, text, width = reviews(60), "good film bad plot", 1.5
    found = wt.explain(MODEL, text, "parzen", target="fresh", background=texts, width=width, parts="bag")
    bags = np.array([[word in t.split() for word in WORDS] for t in texts], dtype=float)
    own = np.array([word in text.split() for word in WORDS], dtype=float)
    labels = (np.array(says_good(texts)) > 0.51).astype(float)
    assert found.local_prediction == pytest.approx(naive_probability(own, bags, labels, width))
    for name, score in found.as_list():
        step = 1e-6 * (np.array(WORDS) == name)
        slope = (naive_probability(own + step, bags, labels, width) - naive_probability(own - step, bags, labels, width)) / 2e-6
        assert score == pytest.approx(slope, abs=1e-8)


def test_a_sentence_has_the_sum_over_its_words():
    texts = reviews(100)
    words = dict(wt.explain(MODEL, "good film. bad plot.", "parzen", background=texts, width=1.5).as_list())
    found = wt.explain(MODEL, "good film. bad plot.", "parzen", background=texts, width=1.5, parts="sentences")
    np.testing.assert_allclose(found.scores, [words["good"] + words["film"], words["bad"] + words["plot"]])


def test_the_width_is_the_naive_loop_s_choice():
    texts = reviews(80)
    vocabulary = sorted({word for t in texts for word in t.split()})
    bags = np.array([[word in t.split() for word in vocabulary] for t in texts], dtype=float)
    labels = np.array(says_good(texts)) > 0.51
    folds, _ = folds_of(80)
    apart = ((bags[:, None] - bags[None]) ** 2).sum(axis=2)
    scale = np.sqrt(apart.mean())
    best = (-1.0, 0.0)
    for width in scale * 2.0 ** (np.arange(-10, 3) / 2):
        right = 0
        for i in range(80):
            others = folds != folds[i]
            p = naive_probability(bags[i], bags[others], labels[others], width) if width > 0.3 else _nearest(
                apart[i][others], labels[others])
            right += (p > 0.5) == labels[i]
        best = max(best, (right / 80, -width))
    found = wt.explain(MODEL, "good film", "parzen", background=texts)
    assert found.settings["width"] == pytest.approx(-best[1])
    assert found.settings["agreement"] == pytest.approx(best[0])
    assert found.settings["chosen"] == "by cross-validation"


def _nearest(apart, labels):
    """The limit of narrow windows, for which the loop's kernels are all 0."""
    return float(np.mean(labels[apart == apart.min()]))


def test_one_set_of_calls_about_the_background_serves_every_input_and_target():
    asked = []
    model = wt.model(lambda texts: [asked.append(len(texts)), says_good(texts)][1], threshold=0.51)
    found = wt.explain(model, ["good film", "bad film", "old plot"], "parzen", target=[0, 1], background=reviews(50))
    assert sum(asked) == 50 + 3
    assert {e.calls for pair in found for e in pair} == {51}  # as if each were explained alone
    alone = wt.explain(model, "bad film", "parzen", target=[0, 1], background=reviews(50))
    assert alone == found[1]


def test_an_explainer_keeps_its_fit_for_a_model_and_makes_another_for_another():
    asked = []

    def counted(texts):
        asked.append(len(texts))
        return says_good(texts)

    model, explainer = wt.model(counted, threshold=0.51), Parzen(reviews(40))
    first, second = (wt.explain(model, "good film", explainer) for _ in range(2))
    assert first == second
    assert sum(asked) == 40 + 2
    other = wt.explain(wt.model(counted, threshold=0.2), "good film", explainer)
    assert sum(asked) == 80 + 3
    assert not np.allclose(other.scores, first.scores)
    copy = pickle.loads(pickle.dumps(explainer))
    assert copy == explainer
    assert wt.explain(model, "good film", copy) == first


def test_labels_may_be_given_and_the_model_is_then_not_asked():
    texts = reviews(120)
    names = ["fresh" if "plot" in t else "rotten" for t in texts]
    found = wt.explain(MODEL, "good film new plot", "parzen", target="fresh", background=texts, labels=names, width=1.0)
    assert found.as_list(1)[0][0] == "plot"
    assert found.calls == 1
    numbers = wt.explain(MODEL, "good film new plot", "parzen", target="fresh", background=texts, width=1.0,
                         labels=np.array([name == "fresh" for name in names]).astype(int))
    assert numbers.scores.tolist() == found.scores.tolist()


def test_scores_may_be_fitted_instead_of_labels():
    texts = reviews(200)
    found = wt.explain(MODEL, "good film new plot", "parzen", background=texts, soft=True, width=1.0)
    scores = np.array(says_good(texts))
    bags = np.array([[word in t.split() for word in WORDS] for t in texts], dtype=float)
    own = np.isin(WORDS, ["good", "film", "new", "plot"]).astype(float)
    assert found.local_prediction == pytest.approx(naive_probability(own, bags, scores, 1.0))
    assert found.settings["fitted_to"] == "the model's scores"
    assert found.as_list(1)[0][0] == "good"


def test_a_regressor_has_no_labels_and_is_fitted_by_its_scores():
    texts = reviews(200)
    found = wt.explain(says_good, "good film new plot", "parzen", background=texts)
    assert found.as_list(1)[0][0] == "good"
    assert found.settings["agreement"] is None
    assert found.settings["r2"] > 0.5
    noise = wt.explain(lambda some: [len(t) % 7 / 7 for t in some], "good film", "parzen", background=texts)
    assert any("of the variance" in note for note in noise.notes)


def test_the_largest_slopes_may_be_kept():
    texts = reviews(100)
    whole = wt.explain(MODEL, "good film new plot", "parzen", background=texts, width=1.0)
    found = wt.explain(MODEL, "good film new plot", "parzen", background=texts, width=1.0, features=2)
    assert found.as_list() == whole.as_list(2)
    assert found.selected.sum() == 2
    assert found.intercept + found.scores.sum() == pytest.approx(found.local_prediction)


# --- what is told -----------------------------------------------------------------------------------------------------


def test_windows_that_do_not_stand_in_for_the_model_are_told():
    rng = np.random.default_rng(3)
    texts = reviews(200)
    noisy = {t: float(rng.random()) for t in texts}
    model = wt.model(lambda some: [noisy.get(t, 0.7) for t in some], threshold=0.5)
    found = wt.explain(model, "good film", "parzen", background=texts)
    assert found.settings["agreement"] < 0.8
    assert any("hardly stand in for the model" in note for note in found.notes)
    assert "hardly stand in" not in str(wt.explain(MODEL, "good film", "parzen", background=texts))


def test_one_label_in_all_of_the_background_explains_nothing():
    texts = [t for t in reviews(100) if "good" in t and "bad" not in t]
    found = wt.explain(MODEL, "good film", "parzen", background=texts)
    assert not found.scores.any()
    assert any("nothing to explain" in note and "fresh" in note for note in found.notes)


def test_a_target_that_no_training_input_has_explains_nothing():
    model = wt.model(lambda texts: [[p, 1 - p, 0.0] for p in says_good(texts)])
    found = wt.explain(model, "good film", "parzen", target=2, background=reviews(60))
    assert not found.scores.any()
    assert found.local_prediction == 0
    assert any("No training input is labelled class 2" in note for note in found.notes)


def test_a_text_of_unknown_words_is_told():
    found = wt.explain(MODEL, "lorem ipsum", "parzen", background=reviews(60))
    assert not found.scores.any()
    assert any("has any of this text's words" in note for note in found.notes)


def test_a_training_text_without_a_word_is_an_empty_bag():
    found = wt.explain(MODEL, "good film", "parzen", background=[*reviews(60), "", "…"])
    assert np.isfinite(found.scores).all()
    assert found.settings["background"] == 62


# --- what goes wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("options", "words"), [
    ({"width": 0}, "width must be a number > 0, or 'auto', got 0"),
    ({"width": -1.0}, "width must be"),
    ({"width": float("nan")}, "width must be"),
    ({"width": "wide"}, "width must be"),
    ({"soft": "yes"}, "soft must be True"),
    ({"soft": True, "labels": [0]}, "pass one of the two"),
    ({"features": 0}, "features must be"),
])
def test_bad_options_say_what_must_hold(options, words):
    with pytest.raises(ValueError, match=words):
        Parzen(reviews(5), **options)


@pytest.mark.parametrize(("background", "words"), [
    (None, "parzen needs training inputs: pass background="),
    ([], "parzen needs training inputs"),
    (["good film"], "parzen needs training inputs.*got 1"),
    ("good film", "training inputs themselves, .* got str"),
    ((text for text in ["good", "bad"]), "training inputs themselves, .* got generator"),
    ([b"good"], "background must be a list of texts, .* got bytes"),
    (np.zeros((3, 4, 4)), "background must be a list of texts, .* got ndarray"),
])
def test_a_bad_background_of_texts_says_what_must_hold(background, words):
    with pytest.raises((ValueError, TypeError), match=words):
        wt.explain(MODEL, "good film", "parzen", background=background)


@pytest.mark.parametrize(("background", "words"), [
    (None, "parzen needs training inputs"),
    (np.zeros((5, 3, 3)), r"shaped like the input, \(4, 4\), got one of shape \(3, 3\)"),
    ([np.zeros((4, 4)), np.zeros((4, 3))], r"got one of shape \(4, 3\)"),
    (["good", "bad"], r"shaped like the input"),
    (np.zeros((5, 4, 4)).astype(object), "arrays of numbers"),
    (np.zeros((0, 4, 4)), "got none"),
])
def test_a_bad_background_of_images_says_what_must_hold(background, words):
    with pytest.raises(ValueError, match=words):
        wt.explain(wt.model(bright_corner, threshold=0.5), np.ones((4, 4)), "parzen", background=background, parts="grid:2x2")


def test_a_bad_background_of_rows_says_what_must_hold():
    from whytrust.domains.tabular import TableParts, TableStatistics
    table, axis = clouds(40)
    model = wt.model(Slanted(axis), threshold=0.5)
    with pytest.raises(TypeError, match=r"the training inputs themselves, .* got TableStatistics"):
        wt.explain(model, table[0], "parzen", background=TableStatistics.fit(table))
    with pytest.raises(ValueError, match="rows of the input's 3 columns"):
        wt.explain(model, table[0], Parzen(table[:, :2]), background=table)
    with pytest.raises(ValueError, match="rows of the input's 3 columns"):
        wt.explain(model, table[0], Parzen(["good", "bad"]), parts=TableParts.cut(table[0], table))
    frame = mixed_frame(30)
    with pytest.raises(ValueError, match="DataFrame with the columns of the input, got DataFrame without age"):
        wt.explain(lambda rows: np.ones(len(rows)), frame.iloc[0], Parzen(frame.drop(columns="age")), background=frame)


@pytest.mark.parametrize(("labels", "words"), [
    ([0, 1], "one entry for each training input: expected 5, got 2"),
    ("fresh", "one entry for each training input"),
    (["fresh", "stale", "fresh", "fresh", "rotten"], "target must be one of the model's classes"),
])
def test_bad_labels_say_what_must_hold(labels, words):
    with pytest.raises(ValueError, match=words):
        wt.explain(MODEL, "good film", "parzen", background=reviews(5), labels=labels)


def test_labels_of_a_regressor_are_refused():
    with pytest.raises(ValueError, match="labels are for models with classes"):
        wt.explain(says_good, "good film", "parzen", background=reviews(5), labels=[0, 1, 0, 1, 0])


def test_an_audit_of_images_says_at_once_that_training_inputs_are_missing(rng):
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
    with pytest.raises(ValueError, match=r"parzen needs training inputs: .*'method': 'parzen', 'background'"):
        wt.audit(wt.model(net, output="logit"), list(rng.random((3, 1, 4, 4))), ["parzen"], "grid:2x2")


# --- size ---------------------------------------------------------------------------------------------------------------


def test_twenty_thousand_training_texts_stay_within_memory():
    vocabulary = [f"word{i}" for i in range(2000)] + WORDS
    rng = np.random.default_rng(0)
    texts = [" ".join(vocabulary[i] for i in row) for row in rng.integers(0, len(vocabulary), (20_000, 12))]
    tracemalloc.start()
    try:
        found = wt.explain(MODEL, "good film new plot", "parzen", background=texts, width=1.5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.settings["background"] == 20_000
    assert peak < 150e6  # 20 000² distances would take 3.2 GB


def test_arrays_are_never_copied_whole():
    images = np.random.default_rng(0).integers(0, 256, (20_000, 24, 24), dtype=np.uint8)
    tracemalloc.start()
    try:
        rows = Rows.standardised(images.reshape(len(images), -1))
        Windows(rows, 5.0).gradient(rows.in_units(images[0]).ravel(), (np.arange(20_000) % 2).astype(float))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 60e6  # as floats they would take 92 MB
    assert len(tried(rows)) == 13
