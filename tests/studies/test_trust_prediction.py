"""The experiment on predictions, whole: in four domains, with bad inputs, interrupted, and with several workers."""

import json

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import whytrust as wt
from whytrust.store import Store

WORDS = [f"word{i}" for i in range(24)]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    return [" ".join(rng.choice(WORDS, size=9, replace=False)) for _ in range(60)]


@pytest.fixture(scope="module")
def pipeline(texts):
    labels = [("word1" in t.split()) + ("word2" in t.split()) - ("word3" in t.split()) > 0 for t in texts]
    return make_pipeline(CountVectorizer(), LogisticRegression(C=100)).fit(texts, labels)


def test_readers_of_lime_know_what_a_linear_model_rests_on_and_readers_of_random_do_not(pipeline, texts):
    found = wt.trust(pipeline, texts[:24], ["lime", "occlusion"], rounds=30)
    rows = {row["explainer"]: row for row in found.table()}
    assert rows["lime"]["F1"]["value"] > 0.97
    assert rows["random"]["F1"]["value"] < rows["trust everything"]["F1"]["value"] < rows["lime"]["F1"]["value"]
    assert rows["lime"]["its reader"] == "weighs"
    assert rows["random"]["its reader"] == "names"
    assert found.findings["cases"] == {"done": 24, "of": 24, "failed": 0}
    assert "trusting everything" in str(found).lower()
    json.dumps(found.to_json())


def test_the_same_call_gives_the_same_records_for_any_number_of_jobs_and_after_an_interrupt(pipeline, texts, tmp_path, monkeypatch):
    options = {"rounds": 10, "block": 4, "seed": 5}
    one = wt.trust(pipeline, texts[:12], ["lime"], out=tmp_path / "one", **options)
    two = wt.trust(pipeline, texts[:12], ["lime"], out=tmp_path / "two", jobs=2, **options)
    real, left = Store.put, [2]

    def interrupted(store, block, shard):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        real(store, block, shard)

    monkeypatch.setattr(Store, "put", interrupted)
    with pytest.raises(KeyboardInterrupt):
        wt.trust(pipeline, texts[:12], ["lime"], out=tmp_path / "three", **options)
    monkeypatch.setattr(Store, "put", real)
    assert len(list(Store.open(tmp_path / "three").records())) == 8
    three = wt.trust(pipeline, texts[:12], ["lime"], out=tmp_path / "three", **options)
    assert list(one.store.records()) == list(two.store.records()) == list(three.store.records())
    assert wt.Trust.open(tmp_path / "one").verdicts() == one.verdicts()


def test_bad_inputs_are_reported_and_the_others_go_on(pipeline, texts):
    found = wt.trust(pipeline, [texts[0], "!!!", texts[1], texts[2]], ["lime"], rounds=5)
    assert found.findings["cases"]["failed"] == 1
    assert "at least one word" in found.findings["failures"][0]["error"]
    assert found.verdicts()


def test_a_model_that_returns_nan_for_some_inputs_fails_for_these_alone(pipeline, texts):
    bad = texts[1].split()[0]

    def sometimes(batch):
        scores = pipeline.predict_proba(batch)
        scores[[text.startswith(bad) for text in batch]] = np.nan
        return scores

    found = wt.trust(sometimes, texts[:6], ["occlusion"], rounds=5)
    assert 1 <= found.findings["cases"]["failed"] < 6
    assert "finite" in found.findings["failures"][0]["error"] or "NaN" in found.findings["failures"][0]["error"]


def test_an_explainer_that_fails_leaves_the_others_compared_on_the_same_inputs(pipeline, texts):
    def picky(question, rng):
        if "word5" in question.parts.names:
            raise ValueError("not this one")
        return wt.Explanation.of(question, "picky", np.ones(question.d))

    found = wt.trust(pipeline, texts[:20], {"lime": "lime", "picky": picky}, rounds=5)
    assert found.findings["failures"]
    assert any("left out" in note for note in found.findings["notes"])
    assert {row["F1"]["n"] for row in found.table()} == {20 - len(found.findings["failures"])}


def test_a_model_that_never_changes_its_mind_is_told(texts):
    found = wt.trust(lambda batch: np.tile([0.1, 0.9], (len(batch), 1)), texts[:6], ["lime"], rounds=5)
    assert any("never changes its mind" in note for note in found.findings["notes"])


def test_a_regressor_is_refused_by_name(texts):
    with pytest.raises(TypeError, match="decides nothing"):
        wt.trust(lambda batch: np.array([len(t) for t in batch]), texts[:3], ["lime"], rounds=5)


def test_table_rows(rng):
    X = rng.normal(size=(150, 5))
    forest = RandomForestClassifier(30, random_state=0).fit(X, X[:, 0] + X[:, 1] > 0)
    found = wt.trust(forest, X[:15], ["lime"], background=X, rounds=10)
    assert found.findings["cases"]["failed"] == 0
    assert found.findings["settings"]["features"] == 5


def test_images_and_sounds_by_components(rng):
    def bright(batch):
        p = np.clip(batch[:, :8, :8].mean(axis=(1, 2, 3)), 0, 1)
        return np.column_stack([1 - p, p])

    images = [rng.random((16, 16, 3)) for _ in range(6)]
    found = wt.trust(bright, images, ["occlusion"], parts="grid:4x4", fill=0.0, rounds=8, components=4)
    assert found.findings["cases"]["failed"] == 0
    assert found.findings["settings"]["features"] == 4

    def treble(waves):
        energy = np.abs(np.fft.rfft(waves, axis=1)) ** 2
        p = energy[:, 500:].sum(axis=1) / energy.sum(axis=1).clip(1e-9)
        return np.column_stack([1 - p, p])

    waves = [rng.normal(size=2000) for _ in range(5)]
    heard = wt.trust(treble, waves, ["occlusion"], parts="time:6", rate=2000, rounds=8, components=3)
    assert heard.findings["cases"]["failed"] == 0


@pytest.mark.parametrize(("options", "message"), [
    ({"share": 0}, "share must lie between 0 and 1"), ({"rounds": 0}, "rounds must be a whole number"),
    ({"round": 3}, "has no option 'round' \\(did you mean 'rounds'"), ({"experiment": "predictions"}, "did you mean 'prediction'"),
    ({"seed": -1}, "seed must be"), ({"explainers": []}, "at least one explainer")])
def test_what_cannot_be_done_is_one_clear_error(pipeline, texts, options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        wt.trust(pipeline, texts[:3], **{"explainers": ["lime"], **options})


def test_no_input_that_can_be_used_is_an_error(pipeline):
    with pytest.raises(ValueError, match="none of the 2 inputs can be used"):
        wt.trust(pipeline, ["!!", "??"], ["lime"])


def test_the_same_input_again_is_no_new_evidence(pipeline, texts):
    once = wt.trust(pipeline, texts[:8], ["lime", "occlusion"], rounds=10)
    often = wt.trust(pipeline, texts[:8] * 5, ["lime", "occlusion"], rounds=10)
    assert any("8 differ" in note for note in often.findings["notes"])
    widths = [row["F1"]["high"] - row["F1"]["low"] for found in (once, often) for row in found.table() if row["explainer"] == "trust everything"]
    assert widths[1] > 0.6 * widths[0]  # not less than half of it, as forty different inputs would give
    assert "Nothing can be said" in wt.trust(pipeline, texts[:1] * 4, ["occlusion"], rounds=5).verdicts()[0]


def test_an_explainer_that_explains_nothing_is_left_out_and_named(pipeline, texts):
    def never(question, rng):
        raise ValueError("not today")

    found = wt.trust(pipeline, texts[:6], {"lime": "lime", "never": never}, rounds=5)
    assert {row["explainer"] for row in found.table()} == {"lime", "random", "trust everything"}
    assert any("never explained none" in note for note in found.findings["notes"])


def test_windows_get_their_training_texts(pipeline, texts):
    found = wt.trust(pipeline, texts[:6], ["parzen"], rounds=5, background=texts)
    assert found.findings["cases"]["failed"] == 0
    assert not found.findings["failures"]
