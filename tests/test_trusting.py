"""wt.trust as a user types it: experiments that train, defaults that work, pages that hold what they say."""

import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import whytrust as wt
from whytrust.planting import Column
from whytrust.report import trust as page
from whytrust.studies import trust_findings
from whytrust.trusting import EXPERIMENTS, FINDINGS


def texts(rng, n=120):
    words = [f"word{i:02d}" for i in range(25)]
    found = [" ".join(rng.choice(words, 8, replace=False)) for _ in range(n)]
    return found, np.array([int("word01" in t or "word02" in t) for t in found])


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline(CountVectorizer(), LogisticRegression(C=10))


def test_every_experiment_has_findings_and_a_title():
    assert set(EXPERIMENTS) == set(FINDINGS) == set(page.TITLES)


def test_repair_with_planted_leaks_gets_better_when_readers_of_lime_delete_them(pipeline, rng):
    inputs, labels = texts(rng, 500)
    labels = np.where(rng.random(500) < 0.2, 1 - labels, labels)  # so that leaks are tempting
    found = wt.trust(pipeline, inputs, {"lime": {"samples": 150}}, "repair", labels=labels, readers=(3, 1), instances=8, features=6,
                     overlooks=0.0, misjudges=0.0)
    assert found.findings["cases"]["failed"] == 0
    assert found.experiment == "repair"
    rows = {row[""]: row for row in found.table()}
    before = float(rows["no repair"]["before"].split()[0]) / 100
    assert rows["LIME, submodular pick"]["round 2"]["value"] > before + 0.02


def test_insight_into_a_planted_word(pipeline, rng):
    inputs, labels = texts(rng, 160)
    noise = rng.permutation(labels)  # nothing but the planted word tells the classes apart
    found = wt.trust(pipeline, inputs, {"lime": {"samples": 150}}, "insight", labels=noise, readers=6)
    assert found.experiment == "insight"
    assert found.findings["cases"]["failed"] == 0
    assert any("lime gives it away" in words for words in found.verdicts())


def test_faithfulness_of_explanations_of_the_pipeline_itself(pipeline, rng):
    inputs, labels = texts(rng, 80)
    found = wt.trust(pipeline.fit(inputs, labels), inputs[:12], ["occlusion"], "faithfulness")
    assert found.findings["cases"]["failed"] == 0
    assert found.verdicts()


def test_insight_on_table_rows(rng):
    rows = rng.normal(size=(120, 4))
    labels = rng.integers(0, 2, 120)
    found = wt.trust(DecisionTreeClassifier(max_depth=3), rows, ["occlusion"], "insight", labels=labels, readers=4)
    assert found.findings["cases"]["failed"] == 0


HOSTILE = "<script>alert(1)</script>"


def findings(**change):
    rate = {"value": 0.75, "low": 0.5, "high": 0.9, "n": 12}
    return {"experiment": "model", "question": f"Which? {HOSTILE}", "answer": [f"This one. {HOSTILE}"], "tables": [
        {"title": f"T {HOSTILE}", "columns": ["a", HOSTILE], "rows": [[HOSTILE, rate], ["b", None], ["c", 0.25], ["d", 3]], "about": HOSTILE}],
        "charts": [{"title": "C", "x_label": "B", "y_label": "right", "about": "", "series": [
            {"name": HOSTILE, "x": [1, 2, 3], "y": [0.5, None, 0.9], "low": [0.4, None, 0.8], "high": [0.6, None, 1.0]}]},
            {"title": "D", "kind": "bars", "x_label": "", "y_label": "F1", "about": "", "series": [
                {"name": "random", "x": [0], "y": [0.1], "low": [0.0], "high": [0.2]}, {"name": HOSTILE, "x": [0], "y": [None]}]}],
        "cases": {"done": 2, "of": 3, "failed": 1}, "failures": [{"case": HOSTILE, "error": HOSTILE}], "notes": [HOSTILE],
        "settings": {HOSTILE: HOSTILE}, **change}


def test_text_from_data_is_escaped_everywhere():
    written = page.document(findings())
    assert "<script" not in written
    assert "&lt;script&gt;" in written
    assert "2 of 3 cases" in written
    assert "1 of which failed" in written
    told = page.told(findings())
    assert "75% (50 to 90%)" in told
    assert "1 failure" in told


def test_a_run_that_found_nothing_is_a_page_all_the_same():
    written = page.document(findings(tables=[], charts=[], failures=[], notes=[], answer=["Nothing can be said."]))
    assert "Nothing can be said." in written
    assert not re.search(r"\bnan\b|None", written)


def test_the_page_is_written_and_the_same_twice(pipeline, rng, tmp_path):
    inputs, labels = texts(rng, 60)
    found = wt.trust(pipeline.fit(inputs, labels), inputs[:6], ["lime"], rounds=5, out=tmp_path / "run")
    first = found.save_html(tmp_path / "a.html").read_bytes()
    assert first == wt.Trust.open(tmp_path / "run").save_html(tmp_path / "b.html").read_bytes()
    assert repr(found) == "<trust, experiment prediction: 6 of 6 cases, 0 failed>"


def test_a_folder_of_another_run_is_refused(tmp_path, rng):
    from whytrust.store import Store

    Store.create(tmp_path / "run", {"study": "audit", "spec": {}, "seed": 0, "hashes": {}, "blocks": []}).close()
    with pytest.raises(ValueError, match="must hold a run of"):
        wt.Trust.open(tmp_path / "run")


@pytest.mark.parametrize(("experiment", "options", "message"), [
    ("repair", {}, "needs labels="), ("insight", {}, "needs labels="), ("repair", {"labels": [0, 1] * 30, "pairs": 3}, "has no option 'pairs'"),
    ("prediction", {"readers": 3}, "has no option 'readers'")])
def test_what_is_missing_or_too_much_is_one_clear_error(pipeline, rng, experiment, options, message):
    inputs, _ = texts(rng, 60)
    model = (lambda batch: np.tile([0.4, 0.6], (len(batch), 1))) if experiment == "prediction" else make_pipeline(CountVectorizer(), LogisticRegression())
    with pytest.raises((ValueError, TypeError), match=message):
        wt.trust(model, inputs, ["lime"], experiment, **options)


def test_another_model_or_explainer_does_not_go_on_with_a_run(pipeline, rng, tmp_path):
    inputs, labels = texts(rng, 60)
    fitted = make_pipeline(CountVectorizer(), LogisticRegression()).fit(inputs, labels)
    wt.trust(fitted, inputs[:4], ["lime"], rounds=3, out=tmp_path / "run")
    other = make_pipeline(CountVectorizer(), LogisticRegression(C=0.01)).fit(inputs, labels)
    for model, explainers in ((other, ["lime"]), (fitted, {"lime": {"samples": 99}})):
        with pytest.raises(ValueError, match="another"):
            wt.trust(model, inputs[:4], explainers, rounds=3, out=tmp_path / "run")


def test_repair_of_a_bare_array_deletes_the_columns_that_were_planted(rng):
    rows = rng.normal(size=(200, 3))
    labels = (rows[:, 0] + rng.normal(size=200) > 0).astype(int)
    found = wt.trust(DecisionTreeClassifier(max_depth=4), rows, ["occlusion"], "repair", labels=labels, readers=(2,), instances=4,
                     features=4, overlooks=0.0, misjudges=0.0)
    deleted = {name for r in found.store.records() for name in str(r).split("'") if name.startswith("column ")}
    assert deleted
    assert all(int(name.split()[1]) >= 3 for name in deleted)


@pytest.mark.parametrize(("options", "name"), [({}, "column 3"), ({"names": ["a", "b", "c", "ward"]}, "ward")])
def test_a_column_of_ones_own_is_known_by_what_explanations_call_it(options, name, rng):
    rows = rng.normal(size=(120, 3))
    found = wt.trust(DecisionTreeClassifier(max_depth=4), rows, ["occlusion"], "repair", labels=(rows[:, 0] > 0).astype(int),
                     plant=Column("ward"), readers=(1,), instances=4, features=4, overlooks=0.0, misjudges=0.0, **options)
    reference = next(r for r in found.store.records() if r["case"] == "reference")
    assert reference["bad"] == 1
    assert {word for r in found.store.records() for node in r.get("nodes", ()) for word in node["words"]} <= {name}


ODD = [
    ({"inputs": []}, "at least one input"), ({"explainers": 5}, "explainers must be names"),
    ({"experiment": "model", "budgets": 5}, "budgets must be whole numbers"), ({"share": "a"}, "share must lie"),
    ({"experiment": "model", "world": (["a"],)}, "world must be"), ({"experiment": "repair", "world": (["a", "b"], [1])}, "world must be"),
    ({"experiment": "model", "plant": "word"}, "plant must be artefacts"), ({"experiment": "insight", "plant": {"a": 1}}, "plant must be"),
    ({"experiment": "repair", "judge": 5}, "judge must be a function"), ({"experiment": "insight", "labels": "yes"}, "labels must be one class"),
    ({"experiment": "insight", "labels": [[1]] * 120}, "labels must be one class"),
    ({"experiment": "insight", "model": lambda texts: np.ones(len(texts))}, r"must take \(inputs, labels, seed\)"),
    ({"experiment": "repair", "model": lambda texts, labels, seed: None}, r"must take \(inputs, labels, deleted, seed\)"),
    ({"experiment": "repair", "labels": [1] * 120}, "two classes or more"),
    ({"experiment": "insight", "background": ["a text"]}, "background means nothing"), ({"components": 3}, "components are groups"),
]


@pytest.mark.parametrize(("given", "message"), ODD, ids=[message[:24] + str(i) for i, (_, message) in enumerate(ODD)])
def test_what_is_odd_is_one_clear_error(pipeline, rng, given, message):
    inputs, labels = texts(rng)
    asked = {"experiment": "prediction", "inputs": inputs, "explainers": ["lime"], "model": clone(pipeline), **given}
    if asked["experiment"] != "prediction":
        asked.setdefault("labels", labels)
    else:
        asked["model"] = make_pipeline(CountVectorizer(), LogisticRegression()).fit(inputs, labels)
    model, some, explainers = (asked.pop(name) for name in ("model", "inputs", "explainers"))
    with pytest.raises((ValueError, TypeError), match=message):
        wt.trust(model, some, explainers, **asked)


def test_a_world_that_was_seen_in_training_is_told(pipeline, rng):
    inputs, labels = texts(rng)
    found = wt.trust(clone(pipeline), inputs, {"lime": {"samples": 60}}, "repair", labels=labels, world=(inputs[:40], labels[:40]),
                     judge=lambda word: word != "word01", readers=(1,), instances=2, features=3)
    assert any("40 inputs, of which 40 are among those that models are trained on" in note for note in found.findings["notes"])


@pytest.mark.parametrize("budgets", [(3,), (2, 7), tuple(range(1, 31))])
def test_every_number_of_explanations_that_was_asked_for_is_told(budgets):
    records = [{"case": f"{i}", "status": "ok", "right": {"lime": {how: [1.0] * len(budgets) for how in ("submodular", "random")}},
                "inputs": 40, "oracle": 1.0} for i in range(3)]
    table = trust_findings._choice_table(records, ["lime"], list(budgets))
    expected = ["B = 1", "B = 5", "B = 10", "B = 20", "B = 30"] if len(budgets) == 30 else [f"B = {b}" for b in budgets]
    assert table["columns"][1:] == expected
