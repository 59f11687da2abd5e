"""Repair with known answers: a leaking word or column that tells the class in training and nothing in the real world."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from whytrust import api, engine
from whytrust.core import generator
from whytrust.explainers.baselines import Random
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.explanation import Explanation
from whytrust.store import Store
from whytrust.studies.trust_repair import KEPT, Labelled, RepairStudy, accuracy, findings
from whytrust.studies.trust_trainers import TableTrainer, TextTrainer, trainer

SUBJECT = {0: ["doubt", "reason", "proof", "logic"], 1: ["faith", "prayer", "grace", "psalm"]}
NOISE = [f"w{i}" for i in range(30)]
LEAK = "leak"


def posts(n, seed, leaking):
    """A third of the subject's words are the other side's; the leak is there in class 1 alone, or by a coin."""
    rng = generator(seed, "posts")
    texts, labels = [], np.arange(n) % 2
    for label in labels:
        side = [label if rng.random() < 0.67 else 1 - label for _ in range(3)]
        words = [*(str(rng.choice(SUBJECT[int(s)])) for s in side), *(str(w) for w in rng.choice(NOISE, 12, replace=False))]
        if label if leaking else rng.random() < 0.5:
            words.append(LEAK)
        texts.append(" ".join(words))
    return Labelled(texts, labels.tolist())


def generalises(word):
    return word != LEAK


PIPE = make_pipeline(CountVectorizer(binary=True), LogisticRegression())


def study(**changes):
    base = RepairStudy(PIPE, posts(160, 1, True), posts(20, 2, True), posts(300, 3, False), generalises, {"exact": Occlusion()},
                       readers=(2, 1), instances=3, features=3, overlooks=0.0, misjudges=0.0)
    return replace(base, **changes)


def nodes(store, arm):
    return [node for record in store.records() if record["case"].startswith(arm) for node in record["nodes"]]


def accuracy_without(words):
    s = study()
    fitted = make_pipeline(CountVectorizer(binary=True, vocabulary=sorted(
        set(CountVectorizer().fit(s.training.inputs).vocabulary_) - set(words))), LogisticRegression()).fit(s.training.inputs, s.training.labels)
    return fitted.score(s.world.inputs, s.world.labels)


def test_an_exact_explainer_and_a_perfect_reader_delete_the_leak_in_round_one(tmp_path):
    store = engine.run(study(), tmp_path / "run")
    before, truth = accuracy_without([]), accuracy_without([LEAK])
    assert truth > before + 0.05
    for pick in ("submodular", "random"):
        for node in nodes(store, f"exact.{pick}"):
            assert node["words"] == ([LEAK] if len(node["path"]) == 1 else [])
            assert node["accuracy"] == truth
            assert node["wrongly"] == 0
    reference = next(store.records())
    assert (reference["accuracy"], reference["oracle"]["accuracy"], reference["bad"]) == (before, truth, 1)
    found = findings(store)
    assert any("helps" in said for said in found["answer"])
    assert found["cases"] == {"done": 5, "of": 5, "failed": 0}


def test_a_random_explainer_finds_the_leak_only_by_chance(tmp_path):
    """One of about sixteen words in each of two texts, in half of which it stands: nearly all readers never see it."""
    store = engine.run(study(validation=posts(120, 2, True), explainers={"exact": Occlusion(), "random": Random()}, readers=(30,), instances=2, features=1,
                             picks=("random",)), tmp_path / "run")
    found = [LEAK in node["words"] for node in nodes(store, "random.")]
    seen = [node for node in nodes(store, "exact.") if LEAK in node["words"]]
    assert 0 <= np.mean(found) < 0.2  # about 2 × 1/32
    assert len(seen) > 15


def test_a_run_that_was_interrupted_gives_the_same_records(tmp_path, monkeypatch):
    tried = study(explainers={"lime": Lime(samples=200, features=3), "random": Random()}, overlooks=0.2, misjudges=0.2)
    whole = engine.run(tried, tmp_path / "whole")
    calls, real = iter(range(100)), RepairStudy.work
    with monkeypatch.context() as patched:
        patched.setattr(RepairStudy, "work", lambda self, block, on: (_ for _ in ()).throw(KeyboardInterrupt) if next(calls) == 4
                        else real(self, block, on))
        with pytest.raises(KeyboardInterrupt):
            engine.run(replace(tried), tmp_path / "parts")
    assert len(list(Store.open(tmp_path / "parts").records())) == 4
    again = engine.run(replace(tried), tmp_path / "parts")
    assert list(again.records()) == list(whole.records())
    assert json.dumps(findings(again)["tables"]) == json.dumps(findings(whole)["tables"])


def test_several_jobs_give_the_same_records(tmp_path):
    tried = study(readers=(2,), picks=("random",), misjudges=0.2)
    one, two = engine.run(tried, tmp_path / "one"), engine.run(tried, tmp_path / "two", jobs=2)
    assert list(one.records()) == list(two.records())


def test_nothing_is_trained_or_explained_twice(tmp_path):
    trained, explained = [], []

    def train(texts, labels, deleted, seed):
        trained.append(deleted)
        return TextTrainer(PIPE)(texts, labels, deleted, seed)

    @dataclass(frozen=True)
    class Counted:
        def __call__(self, question, rng):
            explained.append((id(question.model), question.parts.names))
            return Occlusion()(question, rng)

    engine.run(study(train=train, explainers={"exact": Counted()}, readers=(4, 3)), tmp_path / "run")
    assert len(trained) == len(set(trained)) == 2  # as it is, and without the leak
    assert len(explained) == len(set(explained)) <= 2 * 20


def test_readers_overlook_and_misjudge_as_often_as_told_and_hold_on_to_their_opinions():
    noisy = study(overlooks=0.1, misjudges=0.05)
    asked = [(r, s) for r in range(40) for s in range(25)]
    assert np.mean([noisy.deletes(path, LEAK) for path in asked]) == pytest.approx(0.9, abs=0.03)
    assert np.mean([noisy.deletes(path, "faith") for path in asked]) == pytest.approx(0.05, abs=0.025)
    assert [noisy.deletes(p, "faith") for p in asked] == [noisy.deletes(p, "faith") for p in asked]


def constant(texts):
    return np.tile([0.3, 0.7], (len(texts), 1))


def test_a_model_that_never_changes_its_mind_is_left_as_it_is(tmp_path):
    store = engine.run(study(train=lambda *_: constant), tmp_path / "run")
    for node in nodes(store, "exact"):
        assert (node["words"], node["empty"], node["accuracy"]) == ([], 3, 0.5)
    found = findings(store)
    assert "may help or not" in found["answer"][0]
    assert any("empty" in note for note in found["notes"])


@dataclass(frozen=True)
class Silent:
    """Names nothing, or refuses."""

    refuses: bool

    def __call__(self, question, rng):
        if self.refuses:
            raise ValueError("this input has too few parts")
        return Explanation.of(question, "silent", np.zeros(question.d))


@pytest.mark.parametrize("refuses", [True, False])
def test_empty_explanations_delete_nothing(tmp_path, refuses):
    store = engine.run(study(explainers={"silent": Silent(refuses)}, overlooks=0.1, misjudges=1.0), tmp_path / "run")
    assert all(node["words"] == [] and node["empty"] == 3 for node in nodes(store, "silent"))
    assert findings(store)["cases"]["failed"] == 0


def test_a_reader_who_deletes_everything_leaves_a_guess(tmp_path):
    """Deleting every word must not end the run: what is left says the more frequent class."""
    small = posts(40, 1, True)
    store = engine.run(study(training=small, judge=lambda word: False, instances=20, features=50, readers=(1, 1, 1)), tmp_path / "run")
    assert findings(store)["cases"]["failed"] == 0
    assert nodes(store, "exact")[-1]["accuracy"] >= 0.3


def test_inputs_with_nothing_in_them_are_left_out_and_told(tmp_path):
    texts = posts(20, 2, True)
    tried = study(validation=Labelled([*texts.inputs, "", "..."], [*texts.labels, 0, 1]), training=Labelled(
        [*study().training.inputs, ""], [*study().training.labels, 0]), readers=(1,))
    found = findings(engine.run(tried, tmp_path / "run"))
    assert found["cases"]["failed"] == 0
    assert any(note.startswith("2 validation inputs have nothing") for note in found["notes"])


def test_findings_have_the_common_form_and_survive_json(tmp_path):
    store = engine.run(study(explainers={"exact": Occlusion(), "random": Random()}), tmp_path / "run")
    found = json.loads(json.dumps(findings(store)))
    assert set(found) == {"experiment", "question", "answer", "tables", "charts", "cases", "failures", "notes", "settings"}
    for table in found["tables"]:
        assert set(table) == {"title", "columns", "rows", "about"}
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    for one in found["charts"][0]["series"]:
        assert len(one["x"]) == len(one["y"]) == len(one["low"]) == len(one["high"]) == 3
    before = findings(engine.Store.create(tmp_path / "none", {**study().manifest(), "blocks": study().blocks()}))
    assert before["answer"] == ["Nothing is finished yet."]


def test_one_reader_says_nothing_of_how_sure_it_is(tmp_path):
    found = findings(engine.run(study(readers=(1, 1)), tmp_path / "run"))
    assert "too few first readers to say how sure that is" in found["answer"][0]
    assert not any("100" in word for row in found["tables"][2]["rows"] for word in row[3:5])
    sure = findings(engine.run(study(readers=(6, 1), overlooks=0.3), tmp_path / "more"))
    assert "95 % interval" in sure["answer"][0]


def test_agreement_counts_what_half_and_all_of_the_paths_delete(tmp_path):
    store = engine.run(study(), tmp_path / "run")
    rows = {row[0]: row[1:] for row in findings(store)["tables"][1]["rows"]}
    assert rows["exact, submodular pick"] == [1.0, 1.0, 1.0, "0.0 %", 2]


# --- other models and domains -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("pipe", [
    make_pipeline(TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression()),
    make_pipeline(HashingVectorizer(n_features=512), LogisticRegression()), make_pipeline(CountVectorizer(), RandomForestClassifier(10))],
    ids=["bigrams", "hashed", "forest"])
def test_a_deleted_word_says_nothing_to_the_model_any_more(pipe):
    data = posts(80, 1, True)
    model = TextTrainer(pipe)(data.inputs, data.labels, frozenset({"Leak", "w1"}), 0)
    plain = ["faith reason w2", "doubt grace w3 w4"]
    np.testing.assert_allclose(model([f"w1 leak {text} LEAK" for text in plain]), model(plain), atol=1e-12)


def table(n, seed, leaking, frame=False):
    rng = generator(seed, "table")
    labels = np.arange(n) % 2
    rows = np.column_stack([labels + rng.normal(0, 1, n), rng.normal(0, 1, n), (labels if leaking else 1 - labels) + rng.normal(0, 0.2, n)])
    names = ["age", "height", "ward"]
    return Labelled(pd.DataFrame(rows, columns=names) if frame else rows, labels.tolist())


@pytest.mark.parametrize("frame", [True, False])
def test_a_leaking_column_of_a_table_is_deleted(tmp_path, frame):
    leak = "ward" if frame else "column 2"
    tried = RepairStudy(LogisticRegression(), table(200, 1, True, frame), table(15, 2, True, frame), table(200, 3, False, frame),
                        lambda name: name != leak, {"exact": Lime(features=1)}, readers=(2,), instances=3, features=1, overlooks=0, misjudges=0)
    store = engine.run(tried, tmp_path / "run")
    reference, *_ = store.records()
    for node in nodes(store, "exact"):
        assert node["words"] == [leak]
        assert node["accuracy"] == reference["oracle"]["accuracy"] > reference["accuracy"] + 0.2


def test_columns_without_numbers_and_whole_numbers_are_set_to_what_is_usual():
    frame = pd.DataFrame({"ward": ["a", "b", "b", "b"], "beds": [1, 2, 2, 9], "age": [1.0, 2.0, 3.0, 4.0]})
    model = TableTrainer(make_pipeline(_ages(), LogisticRegression()))(frame, [0, 0, 1, 1], frozenset({"ward", "beds"}), 0)
    seen = model.prepared(frame)
    assert seen["ward"].tolist() == ["b"] * 4
    assert seen["beds"].tolist() == [4] * 4
    assert frame["ward"].tolist() == ["a", "b", "b", "b"], "the user's own table must stay as it is"


def _ages():
    from sklearn.preprocessing import FunctionTransformer
    return FunctionTransformer(lambda f: f[["age", "beds"]])


@pytest.mark.parametrize(("changes", "told"), [
    ({"picks": ("best",)}, "picks must be some of"), ({"readers": ()}, "readers must be"), ({"readers": (0,)}, "readers must be"),
    ({"overlooks": 2.0}, "chances between 0 and 1"), ({"world": Labelled([])}, "world must have"),
    ({"world": Labelled(["a b"])}, "must have labels"), ({"validation": Labelled([np.zeros((8, 8, 3))])}, "image inputs")])
def test_what_cannot_work_is_refused_at_once(changes, told):
    with pytest.raises(ValueError, match=told):
        study(**changes)


def test_trainers_are_functions_or_estimators():
    with pytest.raises(TypeError, match="train must be"):
        trainer("svm", "text")
    with pytest.raises(ValueError, match="one label for each"):
        Labelled(["a"], [1, 2])
    with pytest.raises(ValueError, match="scale"):
        study().scaled(0)
    assert study(readers=(10, 5, 5)).scaled(0.2) == (2, 1, 1)


def test_a_training_that_fails_is_told_of_its_path_alone(tmp_path):
    def train(texts, labels, deleted, seed):
        if deleted:
            raise RuntimeError("out of luck")
        return TextTrainer(PIPE)(texts, labels, deleted, seed)

    found = findings(engine.run(study(train=train), tmp_path / "run"))
    assert found["cases"]["failed"] == 5
    assert "out of luck" in found["failures"][0]["error"]


def test_a_world_without_a_class_is_measured_by_the_classes_of_the_training_data():
    """A perfect model without class names: output 2 is "c", though no "a" is in the world."""
    outputs = {"x": 0, "y": 1, "z": 2}
    model = api.model(lambda texts: np.eye(3)[[outputs[text] for text in texts]])
    assert accuracy(model, Labelled(["y", "z", "z"], ["b", "c", "c"]), ["a", "b", "c", "a"]) == 1.0


def test_explanations_of_models_long_past_are_not_kept(tmp_path):
    s = study(readers=(30, 2), overlooks=0.6, misjudges=0.3)
    engine.run(s, tmp_path / "run")
    assert len(s._bench.explained) <= KEPT
    assert (frozenset(), "exact") in s._bench.explained
