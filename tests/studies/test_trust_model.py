"""The choice between two models: white boxes whose better one is known, and whole runs in several domains."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import whytrust as wt
from whitebox import Additive, Bits, question
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.planting import Patch, Tokens
from whytrust.readers import Reading, read
from whytrust.studies import trust_model
from whytrust.studies.choosing import Explained, chosen
from whytrust.studies.trust_findings import comparisons, complete


def explained(weights, explainer, rng, inputs=8):
    """Explanations of a white box in which part i is feature i."""
    asked = question(Additive(weights, 0.2), Bits(len(weights)))
    found = tuple(explainer(asked, rng) for _ in range(inputs))
    readings = tuple(read(e, np.arange(len(weights)), 0.5) for e in found)
    return Explained(readings, len(weights))


@pytest.mark.parametrize("explainer", [Lime(samples=64), Occlusion()])
def test_the_model_that_rests_on_the_suspect_is_not_chosen(explainer, rng):
    sound, rotten = explained((0.6, 0.0, 0.0), explainer, rng), explained((0.0, 0.0, 0.6), explainer, rng)
    found = chosen(sound, rotten, np.array([2]), (1, 3), rng)
    assert found == {"submodular": [1.0, 1.0], "random": [1.0, 1.0]}
    turned = chosen(rotten, sound, np.array([2]), (1, 3), rng)
    assert turned == {"submodular": [0.0, 0.0], "random": [0.0, 0.0]}


def test_equal_models_and_no_suspects_are_a_coin(rng):
    same = explained((0.3, 0.0, 0.3), Lime(samples=64), rng)
    assert chosen(same, same, np.array([2]), (2,), rng)["submodular"] == [0.5]
    assert chosen(same, same, np.array([], dtype=int), (2,), rng)["random"] == [0.5]


def texts(rng, n):
    words = [f"word{i:02d}" for i in range(30)]
    found = [" ".join(rng.choice(words, 10, replace=False)) for _ in range(n)]
    noisy = np.array([("word01" in t) + ("word02" in t) - ("word03" in t) - ("word04" in t) for t in found]) + rng.normal(size=n) * 1.2
    return found, (noisy > 0).astype(int)


def leaky(items, targets, seed):
    """A model that goes by what was planted where the seed is odd, and by words that tell the truth where it is even."""
    words = [f"planted{i}" for i in range(6)] if seed % 2 else [f"word{i:02d}" for i in range(5)]
    some = np.random.default_rng(seed).permutation(words)[:4]
    return make_pipeline(CountVectorizer(vocabulary=sorted(some), binary=True), LogisticRegression(C=100)).fit(items, targets)


def test_readers_of_lime_choose_the_model_that_does_not_go_by_the_artefacts(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(trust_model, "ALIKE", 0.08)  # leaks and truth are never equally good to the last input
    inputs, labels = texts(rng, 500)
    options = {"labels": labels, "plant": [Tokens((f"planted{i}",)) for i in range(6)], "pairs": 6, "explained": 40, "tries": 60,
               "budgets": (1, 5, 10), "out": tmp_path / "run"}
    found = wt.trust(leaky, inputs, {"lime": {"samples": 200}}, "model", **options)
    rows = {row["readers of"]: row for row in found.table()}
    assert found.findings["cases"]["failed"] == 0
    assert rows["SP-lime"]["B = 10"]["value"] > 0.8
    assert rows["knows all"]["B = 10"]["value"] > 0.8
    assert wt.trust(leaky, inputs, {"lime": {"samples": 200}}, "model", **options).findings == found.findings


def test_classes_of_a_model_are_known_by_their_names(rng, monkeypatch):
    monkeypatch.setattr(trust_model, "ALIKE", 0.04)
    inputs, labels = texts(rng, 300)

    def turned(items, targets, seed):
        pipeline = leaky(items, targets, seed)
        return wt.model(lambda batch: pipeline.predict_proba(batch)[:, ::-1], classes=("1", "0"))

    study = {"labels": labels, "plant": [Tokens((f"planted{i}",)) for i in range(6)], "pairs": 2, "explained": 10, "tries": 60,
             "budgets": (1, 5)}
    plain, swapped = (list(wt.trust(train, inputs, ["occlusion"], "model", **study).store.records()) for train in (leaky, turned))
    assert [r["world"] for r in plain] == [r["world"] for r in swapped]
    assert [r["right"]["occlusion"] for r in plain] == [r["right"]["occlusion"] for r in swapped]


def test_table_rows(rng):
    rows = rng.normal(size=(240, 4))
    labels = (rows[:, 0] + rng.normal(size=240) > 0).astype(int)
    tree = DecisionTreeClassifier(max_depth=4, max_features=2)
    found = wt.trust(tree, rows, ["occlusion"], "model", labels=labels, pairs=1, explained=6, budgets=(1, 3))
    assert found.findings["cases"] == {"done": 1, "of": 1, "failed": 0}


def test_images(rng):
    images = rng.random((120, 12, 12)) * 0.4
    bright = (images.mean(axis=(1, 2)) + rng.normal(size=120) * 0.02 > 0.2).astype(int)

    def train(items, targets, seed):
        flat = np.asarray(items).reshape(len(items), -1)
        some = np.random.default_rng(seed).permutation(flat.shape[1])[:60]
        fitted = LogisticRegression(max_iter=200).fit(flat[:, some], targets)
        return wt.model(lambda batch: fitted.predict_proba(np.asarray(batch).reshape(len(batch), -1)[:, some]), name="bright")

    seen = wt.trust(train, images, ["occlusion"], "model", labels=bright, plant=[Patch(at="bottom right", share=0.34, colour=(1, 1, 1))],
                    pairs=1, explained=5, budgets=(1, 3), parts="grid:3x3", fill=0.0, tries=60)
    assert seen.findings["cases"] == {"done": 1, "of": 1, "failed": 0}


def test_models_that_never_differ_are_told_so(rng):
    inputs, labels = texts(rng, 60)
    found = wt.trust(make_pipeline(CountVectorizer(), LogisticRegression()), inputs, ["lime"], "model", labels=labels, pairs=2, tries=3)
    assert found.findings["cases"]["failed"] == 2
    assert "no two of 3 models" in found.findings["failures"][0]["error"]
    assert "Nothing can be said" in found.verdicts()[0]


@pytest.mark.parametrize(("change", "message"), [
    ({"labels": None}, "needs labels="), ({"labels": [0, 1]}, "one entry for each input"), ({"labels": [0, 1, 2] * 20}, "two classes"),
    ({"pairs": 0}, "pairs must be a whole number >= 1"), ({"budgets": ()}, "budgets must be"), ({"tries": 1}, "tries must be"),
    ({"world": (["word01"], [7])}, "the same in the world"), ({"judge": bool}, "judge means nothing")])
def test_what_makes_no_experiment_is_refused_at_once(rng, change, message):
    inputs, labels = texts(rng, 60)
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
    with pytest.raises((ValueError, TypeError), match=message):
        wt.trust(pipeline, inputs, ["lime"], "model", **{"labels": labels, "pairs": 1, **change})


def test_a_frame_of_rows_and_a_series_of_texts(rng):
    frame = pd.DataFrame({"a": rng.normal(size=160), "b": rng.choice(["x", "y"], 160)})
    labels = (frame["a"] + rng.normal(size=160) > 0).astype(int).to_numpy()

    def train(rows, targets, seed):
        some = np.random.default_rng(seed).permutation([c for c in rows if c != "b"])[:6]
        fitted = DecisionTreeClassifier(max_depth=3, random_state=seed).fit(rows[some], targets)
        return wt.model(lambda batch: fitted.predict_proba(batch[some]), name="tree")

    found = wt.trust(train, frame, ["occlusion"], "model", labels=labels, pairs=1, explained=4, budgets=(1, 2))
    assert found.findings["cases"]["failed"] == 0
    inputs, targets = texts(rng, 80)
    told = wt.trust(make_pipeline(CountVectorizer(), LogisticRegression()), pd.Series(inputs), ["occlusion"], "insight", labels=targets)
    assert told.findings["cases"]["failed"] == 0


def test_a_fitted_model_is_refused(rng):
    inputs, labels = texts(rng, 40)
    with pytest.raises(ValueError, match="not fitted"):
        wt.trust(make_pipeline(CountVectorizer(), LogisticRegression()).fit(inputs, labels), inputs, ["lime"], "model", labels=labels)


def test_differences_are_paired_by_pair_of_models():
    records = [{"right": {"lime": {"submodular": [1.0, 1.0], "random": [0.5, 0.5]}, "greedy": {"submodular": [0.5, 0.5], "random": [0.5, 0.5]}}}
               for _ in range(40)]
    tests = {(t["what"], t["span"]): t for t in comparisons(records, ["lime", "greedy"], (5, 20))}
    assert tests["SP − RP, lime", "B ≤ 10"]["call"] == "above"
    assert tests["SP − RP, greedy", "B ≤ 20"]["call"] == "undecided"
    assert tests["lime − greedy, SP", "B ≤ 10"]["value"] == pytest.approx(0.5)


def test_models_that_are_all_the_same_are_noticed_at_once(rng):
    inputs, labels = texts(rng, 60)
    calls = []

    def same(items, targets, seed):
        calls.append(seed)
        return make_pipeline(CountVectorizer(), LogisticRegression()).fit(items, targets)

    found = wt.trust(same, inputs, ["lime"], "model", labels=labels, pairs=1)
    assert "same model for every seed" in found.findings["failures"][0]["error"]
    assert len(calls) < 20


def test_an_explainer_that_fails_on_one_pair_is_compared_on_the_others():
    def pair(names):
        return {"status": "ok", "right": {name: {"submodular": [1.0], "random": [0.5]} for name in names}}

    records = [pair(["lime", "random"])] * 9 + [pair(["random"])] + [{"status": "failed"}]
    done, names, left = complete(records, ["lime", "broken", "random"])
    assert (len(done), names) == (9, ["lime", "random"])
    assert left[0] == "broken failed on every pair and is left out."
    assert left[1].startswith("1 of 10 pairs are left out")


def test_picks_are_for_coverage_of_what_is_read():
    """The second explanation has more parts, but its reader takes one; a part that is a feature twice counts twice."""
    readings = (Reading(np.array([0, 1]), np.array([-1.0, 2.0])), Reading(np.array([2, 2]), np.array([3.0, -1.0])),
                Reading(np.array([], dtype=np.intp), np.array([])))
    np.testing.assert_array_equal(Explained(readings, 4).matrix.toarray(), [[1, 2, 0, 0], [0, 0, 4, 0], [0, 0, 0, 0]])
