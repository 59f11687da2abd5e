"""The faithfulness experiment: what readable models use is known, so exact explainers find all of it and random ones their share."""

import itertools
import json
import math
import shutil

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from whytrust import api, engine
from whytrust import inputs as reading
from whytrust.explainers import NAMES
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.explanation import Explanation
from whytrust.studies.faithfulness_inputs import placed
from whytrust.studies.faithfulness_models import LINEAR, OWN, TREE, Brightness, Energy, SlopedLinear
from whytrust.studies.interpretable import Versions, WordFeatures, readable, truth_of, used_by
from whytrust.studies.trust_faithfulness import findings, study

RNG = np.random.default_rng(0)
WORDS = [f"word{i}" for i in range(60)]
WEIGHTS = dict(zip(WORDS, RNG.normal(size=60), strict=True))


def texts(n=24, words=40):
    rng = np.random.default_rng(1)
    return [" ".join(rng.choice(WORDS, words, replace=False)) for _ in range(n)]


def of_words(batch):
    return [[0.0, sum(WEIGHTS.get(word, 0.0) for word in text.split())] for text in batch]


def sums(weights):
    """A model of two classes that adds up the inputs' values."""
    return lambda batch: np.column_stack([np.zeros(len(batch)), (np.asarray(batch) * weights).reshape(len(batch), -1).sum(axis=1)])


def loudness(batch):
    parts = (np.asarray(batch).reshape(len(batch), 16, -1) ** 2).mean(axis=2)
    return np.column_stack([np.zeros(len(batch)), parts[:, 1] + parts[:, 6] - parts[:, 9] - parts[:, 12]])


def centred(shape):
    weights = np.random.default_rng(3).normal(size=shape)
    return weights - weights.mean()


def sounds(n=20):
    rng = np.random.default_rng(2)
    return list(rng.normal(size=(n, 1600)) * np.repeat(rng.uniform(0.2, 1, (n, 16)), 100, axis=1))


GIVEN = {  # model, inputs, parts, options of the parts
    "text": (of_words, texts(), None, {}),
    "table": (sums(centred(30)), np.random.default_rng(4).normal(size=(24, 30)), None, {}),
    "image": (sums(centred((16, 16, 3))), list(np.random.default_rng(5).random((24, 16, 16, 3))), "grid:4x4", {}),
    "sound": (loudness, sounds(), "time:16", {"rate": 8000}),
    "spectrogram": (sums(centred((32, 20))), list(np.abs(np.random.default_rng(6).normal(size=(24, 32, 20)))), "tf:4x4",
                    {"hop_seconds": 0.01}),
}


def made(kind, explainers, **options):
    model, inputs, parts, of_parts = GIVEN[kind]
    return study(api.model(model), inputs, explainers, parts, of_parts, **options)


def run(found, tmp_path, jobs=1):
    return engine.run(found, tmp_path / "run", jobs)


def recalls(data, model=LINEAR, column=1):
    """The recall of each row of a model's table."""
    table = next(t for t in data["tables"] if t["title"].endswith(model))
    return {row[0]: row[column]["value"] for row in table["rows"] if isinstance(row[column], dict)}


# --- what must come out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", GIVEN)
def test_an_exact_explainer_finds_all_that_a_linear_stand_in_uses(kind, tmp_path):
    gradients = {} if kind == "text" else {"saliency": NAMES["saliency"].make(), "grad_cam": NAMES["grad_cam"].make()}
    data = findings(run(made(kind, {"occlusion": Occlusion(), **gradients}), tmp_path))
    assert recalls(data)["occlusion"] == 1.0
    assert recalls(data)["at best"] == 1.0
    assert recalls(data)["random, exactly"] <= 0.25
    if gradients:
        assert recalls(data)["saliency"] == 1.0
        assert "saliency" not in recalls(data, TREE)
        assert any("grad_cam; it looks into the layers of a net" in note for note in data["notes"])
    assert data["cases"]["failed"] == 0
    assert not data["failures"]
    assert data["answer"][0].startswith("occlusion names 100 % of what the sparse linear model uses")
    assert data["answer"][0].endswith("better than random.")


def test_lime_finds_what_a_linear_stand_in_uses_and_no_more_of_a_tree_than_can_matter(tmp_path):
    data = findings(run(made("text", {"lime": Lime(samples=5000, features=10)}), tmp_path))
    assert recalls(data)["lime"] >= 0.99
    assert recalls(data, TREE)["lime"] <= recalls(data, TREE)["at best"] + 0.1  # what is named to fill up may hit by chance
    assert recalls(data, TREE, 2)["lime"] >= 0.9


def test_what_random_finds_is_what_it_must_find(tmp_path):
    store = run(made("table", {"occlusion": Occlusion()}), tmp_path)
    found = [len(set(r["named"]["random"]) & set(r["used"])) / len(r["used"]) for r in store.records() if r["used"]]
    assert all(r["most"] == 7 == len(set(r["named"]["random"])) for r in store.records() if r["used"])
    assert abs(np.mean(found) - 7 / 30) < 4 * np.std(found) / math.sqrt(len(found))
    assert recalls(findings(store))["random, exactly"] == pytest.approx(7 / 30)


def test_no_stand_in_uses_more_than_an_explanation_may_name(tmp_path):
    for kind in ("text", "image", "spectrogram"):
        store = run(made(kind, {}), tmp_path / kind)
        assert all(len(r["used"]) <= r["most"] for r in store.records() if r["model"] == LINEAR)
        assert all(len(r["used"]) <= max(r["most"] for r in store.records()) for r in store.records())


def test_a_sparse_pipeline_is_taken_as_it_is(tmp_path):
    labels = [int(scores[1] > 0) for scores in of_words(texts(60))]
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression(C=0.3, l1_ratio=1.0, solver="liblinear")).fit(texts(60), labels)
    given = study(api.model(pipeline), texts(), {"occlusion": Occlusion()}, labels=labels[:24])
    data = findings(run(given, tmp_path))
    assert [one.name for one in given.ready.models] == [OWN]
    assert recalls(data, OWN)["occlusion"] == 1.0
    assert any("its own truth" in note for note in data["notes"])
    coefficients = dict(zip(pipeline[0].get_feature_names_out(), pipeline[1].coef_[0], strict=True))
    for record in engine.Store.open(tmp_path / "run").records():
        names = reading.cut(texts()[int(record["input"])], None, "NHWC", {}).names
        assert [names[i] for i in record["used"]] == [name for name in names if coefficients.get(name)]


def test_a_dense_pipeline_has_stand_ins_unless_it_is_insisted_on():
    labels = [int(scores[1] > 0) for scores in of_words(texts())]
    dense = api.model(make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts(), labels))
    assert [one.name for one in study(dense, texts(), {}).ready.models] == [LINEAR, TREE]
    insisted = study(dense, texts(), {}, own=True).ready
    assert [one.name for one in insisted.models] == [OWN]
    assert [one.name for one in study(dense, texts(), {}, own=False).ready.models] == [LINEAR, TREE]
    with pytest.raises(TypeError, match="own=True asks for a model that can be read"):
        study(api.model(of_words), texts(), {}, own=True)


def test_findings_are_plain_data_in_the_common_form(tmp_path):
    data = findings(run(made("text", {"occlusion": Occlusion(), "saliency": NAMES["saliency"].make()}), tmp_path))
    assert json.loads(json.dumps(data)) == data
    assert set(data) == {"experiment", "question", "answer", "tables", "charts", "cases", "failures", "notes", "settings"}
    for table in data["tables"]:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    for chart in data["charts"]:
        assert all(len({len(one[what]) for what in ("x", "y", "low", "high")}) == 1 for one in chart["series"])
    assert "saliency was left out: it needs gradients, which this model does not have." in data["answer"]


# --- what goes wrong ------------------------------------------------------------------------------------------------------


def sometimes(question, rng):
    if "word1 " in question.parts.text + " ":
        raise RuntimeError("out of order")
    return Occlusion()(question, rng)


def centre(question, rng):
    return Explanation.of(question, "centre", np.full(question.d, np.nan))


def test_an_explainer_that_fails_is_told_of_and_the_run_goes_on(tmp_path):
    data = findings(run(made("text", {"sometimes": sometimes, "never": centre, "occlusion": Occlusion()}), tmp_path))
    assert recalls(data)["sometimes"] == 1.0
    assert {f["error"].split(":")[0] for f in data["failures"]} == {"sometimes", "never"}
    assert data["cases"]["failed"] == 0
    assert "never failed on every input: nothing can be said of it." in data["answer"]


def test_models_that_cannot_be_measured_are_refused():
    with pytest.raises(ValueError, match="must return finite scores, got nan"):
        study(api.model(lambda batch: np.full((len(batch), 2), np.nan)), texts(), {})
    with pytest.raises(ValueError, match=r"must decide for at least two classes.*says class 1 of all 24 inputs"):
        study(api.model(lambda batch: [[0, 1]] * len(batch)), texts(), {})
    table = np.random.default_rng(0).normal(size=(20, 8))
    with pytest.raises(TypeError, match="one output, a number, which decides nothing"):
        study(api.model(LinearRegression().fit(table, table[:, 0])), table, {})
    with pytest.raises(ValueError, match="features must be a whole number >= 1"):
        made("text", {}, features=0)
    with pytest.raises(ValueError, match="labels must have one entry for each input"):
        made("text", {}, labels=[0, 1])


def test_inputs_that_cannot_be_asked_about_are_left_out_and_told(tmp_path):
    some = [*texts(), "...", "word1"]

    def picky(batch):
        if any(text == "word1" for text in batch):
            raise RuntimeError("too short")
        return of_words(batch)

    data = findings(run(study(api.model(picky), some, {"occlusion": Occlusion()}), tmp_path))
    assert [failure["case"] for failure in data["failures"]] == ["00024", "00025"]
    assert any("2 inputs were left out: they could not be read" in note for note in data["notes"])


def test_inputs_of_one_part_say_nothing_and_break_nothing(tmp_path):
    some = [f"word{i % 2}" for i in range(12)]
    model = api.model(lambda batch: [[0.5, float("word1" in text)] for text in batch])
    data = findings(run(study(model, some, {"occlusion": Occlusion()}), tmp_path))
    assert recalls(data)["occlusion"] == recalls(data)["random, exactly"] == 1.0
    assert "better" not in data["answer"][0]
    assert any("hardly tell explainers apart" in note for note in data["notes"])


def test_inputs_with_nothing_to_find_are_counted(tmp_path):
    some = [*texts(), "nothing known of these"]
    data = findings(run(study(api.model(of_words), some, {"occlusion": Occlusion()}), tmp_path))
    counts = {row[0]: (row[1], row[2]) for row in data["tables"][-1]["rows"]}
    assert sum(counts[LINEAR]) == 25
    assert counts[LINEAR][1] >= 1


def test_of_many_classes_the_two_most_frequent_count():
    def three(batch):
        first = [int(text.split()[0].removeprefix("word") or 0) if text.strip() else 0 for text in batch]
        return [[float(12 <= number < 36), float(number >= 36), float(number < 12)] for number in first]

    found = study(api.model(three, classes=["a", "b", "c"]), texts(40), {}).ready
    assert found.models[0].model.classes == ("a", "b")
    assert 0 < len(found.used) < 40
    assert any("were left out: the two most frequent" in note for note in found.about["notes"])


def test_cuts_and_fills_that_hide_the_truth_are_replaced_and_told():
    for parts, fill in ((None, None), ("slic:16", "segment_mean"), (np.zeros((8, 8), int), "noise")):
        cut, of_parts, told = placed("image", parts, {"fill": fill} if fill else {}, 3)
        assert (cut, of_parts["fill"], len(told)) == ("grid:4x4", "black", 2)
    assert placed("image", "grid:2x3", {"fill": 0.5}, 3) == ("grid:2x3", {"fill": 0.5}, [])
    assert placed("audio", None, {}, 1) == ("time:16", {}, [])
    assert placed("audio", "slic:20", {}, 2)[:2] == ("time:16", {"fill": "min"})
    with pytest.raises(TypeError, match="parts of text inputs must be named"):
        placed("text", [1, 2], {}, 0)


# --- the run --------------------------------------------------------------------------------------------------------------


def shards(folder):
    return {path.name: path.read_bytes() for path in sorted((folder / "run" / "records").iterdir())}


def test_a_run_that_was_stopped_goes_on_and_jobs_agree(tmp_path):
    explainers = {"lime": Lime(samples=100), "occlusion": Occlusion()}
    run(made("text", explainers, block=12), tmp_path / "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "again")
    for gone in ("0001.jsonl", "0003.jsonl"):
        (tmp_path / "again" / "run" / "records" / gone).unlink()
    run(made("text", explainers, block=12), tmp_path / "again")
    run(made("text", explainers, block=12), tmp_path / "two", jobs=2)
    assert shards(tmp_path / "whole") == shards(tmp_path / "again") == shards(tmp_path / "two")
    with pytest.raises(ValueError, match="another spec"):
        run(made("text", explainers, block=12, features=5), tmp_path / "whole")


# --- what stand-ins are made of -------------------------------------------------------------------------------------------


def numeric_slopes(function, batch, h=1e-5):
    slopes = np.zeros_like(batch)
    for place in itertools.product(*map(range, batch.shape)):
        moved = [batch.copy(), batch.copy()]
        moved[0][place] += h
        moved[1][place] -= h
        slopes[place] = (function(moved[0])[place[0]] - function(moved[1])[place[0]]) / (2 * h)
    return slopes


@pytest.mark.parametrize(("features", "shape"), [
    (Brightness("grid:2x2"), (2, 4, 5)), (Brightness("grid:2x2"), (2, 4, 4, 3)), (Brightness("grid:2x2", True), (2, 3, 4, 4)),
    (Brightness("grid:2x2"), (2, 4, 4, 4)), (Energy("time:3", None, 0.1), (2, 20)), (Energy("tf:2x2", None, 0.1), (2, 64)),
    (Energy("tf:2x2"), (2, 6, 4))])
def test_the_slopes_of_features_are_those_of_small_steps(features, shape):
    batch = np.random.default_rng(0).normal(size=shape)
    columns = features(batch).shape[1]

    class Estimator:
        coef_ = np.random.default_rng(1).normal(size=(1, columns))

        def decision_function(self, matrix):
            return matrix @ self.coef_[0]

    model = SlopedLinear(features, Estimator(), np.zeros(columns), np.ones(columns))
    outputs, pull = model.pullback(batch)
    assert np.allclose(outputs, model(batch))
    assert np.allclose(pull(np.ones((len(batch), 1))), numeric_slopes(lambda b: model(b)[:, 0], batch), atol=1e-6)


# --- truth ----------------------------------------------------------------------------------------------------------------


def depends(estimator, features, parts, target=None):
    """By asking about every mask: the parts that change an answer in any of them."""
    d = len(parts.names)
    masks = np.array(list(itertools.product([False, True], repeat=d)))
    answers = np.round(estimator.predict_proba(features(parts.compose(masks, np.random.default_rng(0)))), 9)
    answers = answers if target is None else answers[:, [target]]
    index = {tuple(mask): row for row, mask in enumerate(masks.tolist())}
    return np.array([any((answers[row] != answers[index[(*mask[:p], False, *mask[p + 1:])]]).any() for mask, row in index.items())
                     for p in range(d)])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("parts", ["bag", "words"])
def test_what_matters_to_a_tree_of_words_is_what_brute_force_finds(seed, parts):
    rng = np.random.default_rng(seed)
    some = [" ".join(rng.choice(WORDS[:7], 8)) for _ in range(40)]
    labels = rng.integers(0, 3, 40)
    vectoriser = CountVectorizer(binary=bool(seed % 2))
    pipeline = make_pipeline(vectoriser, DecisionTreeClassifier(max_depth=3 + seed % 3, random_state=seed)).fit(some, labels)
    cut = reading.cut(some[0], parts, "NHWC", {})
    for target in (None, 1):
        truth, real = used_by(pipeline, cut, target), depends(pipeline[-1], WordFeatures(pipeline), cut, target)
        assert not (truth.matter & ~(truth.used & real)).any()
        if parts == "bag":  # each part decides its features alone, and nothing is left to sampling
            assert np.array_equal(truth.matter, truth.used & real)
    way = pipeline[-1].decision_path(vectoriser.transform([some[0]])).indices
    asked = {vectoriser.get_feature_names_out()[f] for f in pipeline[-1].tree_.feature[way] if f >= 0}
    assert [n.split(" ")[0] in asked for n in cut.names] == truth.used.tolist()


@pytest.mark.parametrize("seed", range(6))
def test_what_matters_to_a_tree_of_columns_is_what_all_values_show(seed):
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 4, (40, 4)).astype(float)
    scaled = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=3, random_state=seed)).fit(table, rng.integers(0, 2, 40))
    estimator, features = readable(api.model(scaled), "tabular")
    parts = reading.cut(table[0], None, "NHWC", reading.prepare({"background": table}))
    truth = truth_of(estimator, features, parts)
    every = np.array(list(itertools.product(range(4), repeat=4)), dtype=float)
    answers = {tuple(row): tuple(answer) for row, answer in zip(every.tolist(), scaled.predict_proba(every).tolist(), strict=True)}
    real = [any(answers[row] != answers[(*row[:j], v, *row[j + 1:])] for row in answers for v in range(4)) for j in range(4)]
    way = estimator.decision_path(features(table[:1]).astype(np.float32)).indices
    asked = {int(f) for f in estimator.tree_.feature[way] if f >= 0}
    assert truth.used.tolist() == [j in asked for j in range(4)]
    assert truth.matter.tolist() == [j in asked and real[j] for j in range(4)]


def test_equal_trees_in_another_order_matter_to_nobody():
    """By exact enumeration, where comparing subtrees as they are written would be fooled: a is asked and decides nothing."""
    some = ["b c", "a b c", "b", "a b", "c", "a c", "", "a"] * 3
    labels = [int("b" in t and "c" in t) for t in some]
    tree = DecisionTreeClassifier(random_state=0)
    pipeline = make_pipeline(CountVectorizer(token_pattern=r"\w"), tree).fit(some, labels)
    truth = used_by(pipeline, reading.cut("a b c", "bag", "NHWC", {}))
    assert truth.matter.tolist() == [False, True, True]


def test_words_are_used_through_lower_case_terms_of_two_and_norms():
    some = ["Good film here", "not good film", "bad plot here", "not bad plot"] * 5
    labels = [1, 0, 0, 1] * 5
    pairs = make_pipeline(TfidfVectorizer(ngram_range=(2, 2)), LogisticRegression()).fit(some, labels)
    weights = dict(zip(pairs[0].get_feature_names_out(), pairs[1].coef_[0], strict=True))
    pairs[1].coef_[0] = [weight if term == "not good" else 0.0 for term, weight in weights.items()]
    cut = reading.cut("Not Good film here", "bag", "NHWC", {})
    assert used_by(pairs, cut).used.tolist() == [True, True, False, False]
    single = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(some, labels)
    names = single[0].get_feature_names_out()
    single[1].coef_[0] = names == "good"
    assert used_by(single, cut).used.tolist() == [False, True, False, False]


def test_hiding_a_black_cell_changes_nothing_so_it_is_not_used():
    image = np.zeros((8, 8))
    image[:4] = 0.5
    parts = reading.cut(image, "grid:2x2", "NHWC", {"fill": "black"})

    class Estimator:
        coef_ = np.array([[1.0, 0.0, 1.0, 1.0]])

    assert truth_of(Estimator(), Brightness("grid:2x2"), parts).used.tolist() == [True, False, False, False]
    versions = Versions.of(Brightness("grid:2x2"), parts)
    assert [len(one) for one in versions.changed(Brightness("grid:2x2").owned(parts))] == [1, 1, 0, 0]


def test_only_models_that_can_be_read_are():
    table, labels = np.random.default_rng(0).normal(size=(30, 5)), np.arange(30) % 2
    forest = RandomForestClassifier(3, random_state=0).fit(table, labels)
    assert readable(api.model(forest), "tabular") is None
    assert readable(api.model(of_words), "text") is None
    linear = LogisticRegression().fit(table, labels)
    assert readable(api.model(linear), "tabular")[0] is linear
    assert readable(api.model(linear), "image") is None
    assert readable(api.model(linear, preprocess=np.abs), "tabular") is None
    words = make_pipeline(CountVectorizer(analyzer="char"), LogisticRegression(max_iter=1000)).fit(texts(), np.arange(24) % 2)
    assert readable(api.model(words), "text") is None


def test_rows_of_a_frame_with_categories_are_told_by_column(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"colour": rng.choice(["red", "green", "blue"], 40), "size": rng.normal(size=40),
                              **{f"other{i}": rng.normal(size=40) for i in range(6)}})
    model = api.model(lambda rows: np.column_stack([np.full(len(rows), 0.5), (rows["colour"] == "red") * 1.0]))
    store = run(study(model, frame, {"occlusion": Occlusion()}, of_parts={"background": frame}), tmp_path)
    assert {tuple(r["used"]) for r in store.records() if r["model"] == LINEAR} == {(0,)}
    data = findings(store)
    assert recalls(data)["occlusion"] == 1.0
    assert any("uses the same 1 of 8 parts" in note for note in data["notes"])
