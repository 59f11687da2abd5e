"""wt.fool: what a user types, what comes back, and what is refused."""

import json
import pickle

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import whytrust as wt
from synonyms import Bag, Synonyms, bag
from whytrust.explainers.lime import Lime
from whytrust.fooling import Fooled, is_fooled
from whytrust.swapping.constraints import NoStopWords

SAME = Synonyms({"film": ["movie", "picture"], "long": ["lengthy", "slow"], "plot": ["story"], "good": ["fine", "great"]})
IGNORED = Synonyms({"film": ["movie", "picture"], "long": ["lengthy", "slow"], "plot": ["story"]})
TEXTS = ["a good film with a long plot", "a long and good film", "the plot of this film is good and long", "good film , good plot"]
EXACT = Lime(samples=5000, features="all", ridge=0.0)


def fool(model, texts=TEXTS, **more):
    return wt.fool(model, texts, **{"candidates": SAME, "constraints": "stop_words", "quality": None, "controls": 2, **more})


def test_swaps_of_words_that_the_model_ignores_are_no_fragility_above_chance():
    rng, nouns = np.random.default_rng(0), ["film", "plot"]
    texts = [f"good {nouns[rng.integers(2)]} long {nouns[rng.integers(2)]} number {i}" for i in range(140)]
    found = fool(bag({"good": 0.3, "number": -0.1}), texts, explainer=EXACT, objective=["lom", "l2"], candidates=IGNORED)
    tests = {(t["objective"], t["beside"]): t for t in found.findings["tests"]}
    for objective in ("lom", "l2"):
        chance = tests[objective, "chance"]
        assert chance["n"] >= 140
        assert chance["value"] == pytest.approx(0, abs=1e-9)
        assert chance["call"] == "none"
    assert sum("No fragility above chance" in words for words in found.verdicts()) == 2
    assert all(row["rank"] == 1.0 for row in found.texts())


def test_what_moves_on_purpose_is_fragility_above_chance():
    # One synonym in six is heavy: the attack finds it each time, chance one time in six.
    same = Synonyms({"film": ["m1", "m2", "m3", "m4", "m5", "heavy"]})
    texts = [f"a good film of w{i} and w{i + 1} and w{i + 2} here" for i in range(40)]
    weights = {"good": 0.1, "heavy": 0.25, "here": -0.05} | {f"w{i}": 0.01 * (i % 5) for i in range(50)}
    found = fool(bag(weights, 0.6), texts, explainer=EXACT, objective="l2", candidates=same, max_ratio=0.15)
    (chance,) = [t for t in found.findings["tests"] if t["beside"] == "chance"]
    assert chance["call"] == "more"
    assert chance["value"] > 0.05
    (model,) = [t for t in found.findings["tests"] if t["beside"] == "model"]
    assert model["value"] == pytest.approx(0, abs=1e-9)  # an additive model really reasons otherwise then
    assert any("fragility above chance" in words for words in found.verdicts())
    assert any("all may be the model's" in words for words in found.verdicts())


def test_a_pipeline_of_scikit_learn_is_fooled_end_to_end(tmp_path):
    texts = ["a good film", "a fine movie", "a dull film", "a slow story", "good plot", "a slow picture"] * 5
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 1, 0, 0, 1, 0] * 5)
    found = fool(pipeline, samples=100, objective=["lom", "l2"], out=tmp_path / "run")
    assert is_fooled(tmp_path / "run")
    again = Fooled.open(tmp_path / "run")
    assert json.dumps(again.to_json()) == json.dumps(found.to_json())
    assert found.findings["cases"] == {"done": 4, "of": 4, "failed": 0}
    model = wt.model(pipeline)
    for row in found.texts("l2"):
        assert row["fooled"] != row["text"]
        before, after = model.labels(model([row["text"], row["fooled"]]))
        assert before == after
        assert len(row["swaps"]) <= 0.5 * len(row["text"].split())
    assert "rank correlation" in str(found)
    assert found.table()[0]["words swapped"] == "10–20 %"  # no text has ten words
    assert [row["fooled"] for row in found.to_json()["texts"]["l2"]] == [row["fooled"] for row in found.texts("l2")]
    assert len(found) == len(found.texts()) == len(TEXTS)
    assert json.loads(found.save(tmp_path / "page.json").read_text(encoding="utf-8")) == json.loads(json.dumps(found.to_json()))
    page = found.save_html(tmp_path / "page.html").read_text(encoding="utf-8")
    assert found.save(tmp_path / "again.html").read_text(encoding="utf-8") == page
    assert "<script" not in page
    assert "of 4 texts" in repr(found)


def test_the_same_call_gives_the_same_bytes_for_any_number_of_jobs_and_after_an_interruption(tmp_path):
    model = Bag({"good": 0.1, "picture": 0.05, "slow": -0.05, "story": 0.02}, 0.6)

    def run(folder, **more):
        fool(wt.model(model, threshold=0.5, output="probability"), out=tmp_path / folder, samples=60, block=1, seed=2, **more)
        return {path.relative_to(tmp_path / folder): path.read_bytes() for path in sorted((tmp_path / folder).rglob("*"))
                if path.is_file() and path.parent.name in ("records", "arrays")}

    once = run("once")
    assert run("twice", jobs=2) == once
    again = run("again")
    for path in list((tmp_path / "again" / "records").iterdir())[:2]:
        path.unlink()  # what an interruption would have left undone
    assert run("again") == once == again
    assert len(once) == 8


def test_a_batch_size_changes_nothing_and_is_kept_to():
    largest = []

    def model(texts):
        largest.append(len(texts))
        return Bag({"good": 0.1, "picture": 0.05}, 0.6)(texts)

    found = [fool(wt.model(model, threshold=0.5, output="probability"), samples=60, batch_size=size).texts() for size in (None, 7)]
    assert found[0] == found[1]
    count = len(largest)
    fool(wt.model(model, threshold=0.5, output="probability"), samples=60, batch_size=7)
    assert max(largest[count + 1:]) <= 7  # but for the texts themselves, which tell a run from others


def test_another_call_on_the_same_folder_is_refused(tmp_path):
    fool(bag({"good": 0.2}), out=tmp_path / "run", samples=50)
    with pytest.raises(ValueError, match="max_ratio"):
        fool(bag({"good": 0.2}), out=tmp_path / "run", samples=50, max_ratio=0.3)
    with pytest.raises(ValueError, match="model"):
        fool(bag({"good": 0.1}), out=tmp_path / "run", samples=50)


def test_texts_that_cannot_be_attacked_are_told_and_the_others_go_on():
    found = fool(bag({"good": 0.2}), [*TEXTS, "word", "nothing here is swappable", "", 3], samples=50)
    rows = {row["case"]: row for row in found.texts()}
    assert "at least two words" in rows["00004"]["error"]
    assert rows["00005"]["status"] == "nothing to swap"
    assert rows["00006"]["status"] == "failed"
    assert "must be a str, got int" in rows["00007"]["error"]
    assert found.findings["cases"] == {"done": 8, "of": 8, "failed": 3}
    assert found.findings["nothing to swap"] == 1
    assert any("nothing to swap" in note for note in found.findings["notes"])


def test_models_that_misbehave_are_one_clear_error():
    with pytest.raises(ValueError, match="must return finite scores, got nan"):
        fool(wt.model(lambda texts: np.full(len(texts), np.nan), threshold=0.5, output="probability"))
    with pytest.raises(TypeError, match="regressor"):
        fool(lambda texts: np.array([float(len(text)) for text in texts]))

    def moody(texts):
        if any("lengthy" in text or "slow" in text for text in texts):
            raise RuntimeError("no more")
        return np.full(len(texts), 0.6)

    found = fool(wt.model(moody, threshold=0.5, output="probability"), samples=50)
    assert all("no more" in row["error"] for row in found.texts() if row["status"] == "failed")
    assert found.findings["cases"]["failed"] == 3


def test_nothing_is_said_of_too_few_texts():
    assert "Nothing can be said" in fool(bag({}), ["nothing here", "nor there"], samples=50).verdicts()[0]
    assert fool(bag({}), ["nothing here", "nor there"], samples=50).table() == []


def test_a_limit_takes_texts_evenly_spread():
    found = fool(bag({"good": 0.2}), [f"{text} w{i}" for i in range(5) for text in TEXTS], samples=50, limit=4)
    assert [row["name"] for row in found.texts()] == ["text 1", "text 6", "text 11", "text 16"]


def test_labels_are_for_the_authors_variant(tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *sorted({w for t in TEXTS for w in t.split()}), "movie", "story", "slow"]
    tokenizer = transformers.BertTokenizer(vocab={w: i for i, w in enumerate(words)}, model_max_length=40)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = transformers.BertForSequenceClassification(transformers.BertConfig(
            vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            initializer_range=0.4, max_position_embeddings=48)).eval()
    model = wt.model((net, tokenizer))
    labels = model.labels(model(TEXTS)).tolist()
    wrong = [labels[0], 1 - labels[1], *labels[2:]]
    found = fool(model, explainer="integrated_gradients", steps=5, variant="authors", labels=wrong, objective=["l2", "lom"])
    states = [row["status"] for row in found.texts()]
    assert states[1] == "wrong"
    assert states[0] == "ok"
    assert found.findings["wrong"] == 1
    with pytest.raises(ValueError, match="pass labels="):
        fool(model, explainer="integrated_gradients", variant="authors")
    with pytest.raises(ValueError, match="numbers from 0, got -1"):
        fool(model, explainer="integrated_gradients", variant="authors", labels=[0, 1, -1, 0])
    for row in found.texts("lom"):
        if row["status"] == "ok":
            pairs = zip(row["text"].split(), row["fooled"].split(), strict=True)
            assert row["swaps"] == [(old, new) for old, new in pairs if old != new]
    chance = fool(model, explainer="integrated_gradients", steps=5, variant="authors", labels=labels, objective=["lom", "random"])
    assert chance.findings["cases"]["failed"] == 0


@pytest.mark.parametrize(("more", "error", "words"), [
    ({"objective": "lomm"}, ValueError, "did you mean 'lom'"), ({"objective": []}, ValueError, "at least one"),
    ({"max_ratio": 0}, ValueError, "share of words"), ({"max_ratio": 2}, ValueError, "share of words"),
    ({"variant": "author"}, ValueError, "did you mean 'authors'"), ({"controls": -1}, ValueError, "controls"),
    ({"racing": "yes"}, ValueError, "racing must be"), ({"samples": "auto", "racing": True}, ValueError, "no fixed number"),
    ({"explainer": "greedy", "racing": True}, ValueError, "no fixed number"),
    ({"explainer": "random"}, ValueError, "nothing to fool"), ({"explainer": "limee"}, ValueError, "did you mean 'lime'"),
    ({"explainer": "saliency"}, TypeError, "black box"), ({"limit": 0}, ValueError, "limit"), ({"seed": -1}, ValueError, "seed"),
    ({"normalise": "no"}, ValueError, "normalise"), ({"candidates": "rogett"}, ValueError, "thesaurus"),
    ({"constraints": "stop"}, ValueError, "constraints must be"), ({"labels": [1]}, ValueError, "labels are for variant"),
    ({"stepps": 3}, TypeError, "no option"), ({"objectiv": "l2"}, TypeError, "did you mean 'objective'"),
    ({"explainer": "limee"}, ValueError, "explainer must be"), ({"quality": "nonsense"}, ValueError, "nonsense")])
def test_odd_options_are_refused(more, error, words):
    with pytest.raises(error, match=words):
        fool(bag({"good": 0.2}), **more)


@pytest.mark.parametrize(("texts", "words"), [("one text", "pass \\[text\\]"), ([], "at least one"), (3, "a list of texts"),
                                              ([np.zeros(3)], "for texts")])
def test_what_is_no_list_of_texts_is_refused(texts, words):
    with pytest.raises((TypeError, ValueError), match=words):
        fool(bag({}), texts)


def test_an_objective_may_be_chance_alone():
    found = fool(bag({"good": 0.2}), objective="random", samples=50)
    assert found.findings["cases"]["failed"] == 0
    assert found.texts("random")[0]["fooled"]


def test_rules_and_sources_pickle():
    for one in (NoStopWords(), EXACT, SAME):
        assert pickle.loads(pickle.dumps(one)) == one


# --- odd models and odd calls that once went wrong -----------------------------------------------------------------------


@pytest.mark.parametrize("explainer", ["lime", "occlusion"])
def test_a_model_that_ignores_the_text_is_not_called_fragile(explainer):
    """Its scores are roundings, which must not be blown up to something."""
    constant = wt.model(lambda texts: np.full(len(texts), 0.7), threshold=0.5, output="probability")
    found = fool(constant, explainer=explainer, objective=["lom", "l2"], **({"samples": 60} if explainer == "lime" else {}))
    assert any("No swap could be chosen by centre of mass" in words for words in found.verdicts())
    for row in found.texts("l2"):
        assert (row["rank"], row["l2"]) == (1.0, 0.0)
    json.dumps(found.to_json())
    assert "rank correlation" in str(found)


def test_the_same_text_again_is_no_new_evidence():
    model = bag({"good": 0.2, "picture": 0.1, "slow": -0.05})
    once, often = (fool(model, TEXTS[:2] * times, objective="l2", samples=60).findings["tests"] for times in (1, 15))
    assert [t["sources"] for t in often] == [t["sources"] for t in once] == [2, 2, 2]
    found = fool(model, TEXTS[:2] * 2, objective="l2", samples=60)
    assert any("Of 4 texts 2 differ" in note for note in found.findings["notes"])
    assert "2 different ones" in fool(model, TEXTS[:1] * 3, samples=60).verdicts()[0]


def test_one_bad_text_among_the_first_is_that_texts_failure():
    def picky(texts):
        if any("trap" in text for text in texts):
            raise RuntimeError("a trap")
        return np.full(len(texts), 0.6) + 0.1 * np.array(["good" in text for text in texts])

    found = fool(wt.model(picky, threshold=0.5, output="probability"), ["a trap here", *TEXTS], samples=60)
    assert [row["status"] for row in found.texts()] == ["failed", "ok", "ok", "ok", "ok"]


def test_texts_may_come_from_a_generator_and_a_table_is_refused():
    pandas = pytest.importorskip("pandas")
    assert len(fool(bag({"good": 0.2}), (text for text in TEXTS), samples=60).texts()) == 4
    with pytest.raises(TypeError, match=r"frame\['text'\]"):
        fool(bag({}), pandas.DataFrame({"text": TEXTS}))
    with pytest.raises(TypeError, match="got dict"):
        fool(bag({}), {"a": TEXTS[0]})
    assert len(fool(bag({"good": 0.2}), pandas.Series(TEXTS, index=[7, 5, 3, 1]), samples=60).texts()) == 4


def test_a_very_long_text_gets_as_many_samples_as_it_has_words():
    found = fool(bag({"good": 0.2}), ["a good film " + "and so on " * 60, *TEXTS], samples=60, max_ratio=0.01)
    assert found.texts()[0]["status"] in ("ok", "nothing to swap")


@pytest.mark.parametrize(("words", "swapped"), [
    (lambda text, place: (w for w in ("movie", "picture")) if text.words[place] == "film" else (), True),
    (lambda text, place: [text.words[place], text.words[place].upper(), "two words", ""], False)])
def test_sources_of_ones_own_are_held_to_what_can_be_swapped(words, swapped):
    found = fool(bag({"good": 0.2}), candidates=words, samples=60)
    assert {row["status"] for row in found.texts()} == ({"ok"} if swapped else {"nothing to swap"})


@pytest.mark.parametrize("words", [lambda text, place: None, lambda text, place: {"movie"}, lambda text, place: "movie", lambda text, place: [3]])
def test_sources_that_give_no_list_are_told_as_that(words):
    assert all("must give" in row["error"] for row in fool(bag({"good": 0.2}), candidates=words, samples=60).texts())


def test_a_changed_list_of_pairs_or_stop_words_is_another_run(tmp_path):
    pairs = tmp_path / "my_synonyms.txt"
    pairs.write_text("film movie\nlong lengthy\n", encoding="utf-8")
    fool(bag({"good": 0.2}), candidates=f"pairs:{pairs}", out=tmp_path / "run", samples=60)
    pairs.write_text("film picture\nlong lengthy\n", encoding="utf-8")
    with pytest.raises(ValueError, match="candidates"):
        fool(bag({"good": 0.2}), candidates=f"pairs:{pairs}", out=tmp_path / "run", samples=60)
    fool(bag({"good": 0.2}), constraints=NoStopWords(), out=tmp_path / "other", samples=60)
    with pytest.raises(ValueError, match="constraints"):
        fool(bag({"good": 0.2}), constraints=NoStopWords(frozenset({"film"})), out=tmp_path / "other", samples=60)


@pytest.mark.parametrize(("more", "words"), [
    ({"labels": [0, 1, 0, -1], "variant": "authors"}, "integrated gradients"), ({"labels": [0, 1, 0, 1]}, "labels are for variant"),
    ({"objective": None}, "objective must be among"), ({"objective": 3}, "objective must be among"), ({"vectors": 3}, "name of a file"),
    ({"racing": True, "samples": "auto", "design": "stratified"}, "no fixed number")])
def test_more_odd_options_are_refused_at_once(more, words):
    with pytest.raises((ValueError, TypeError), match=words):
        fool(bag({"good": 0.2}), **more)


def test_an_objective_that_was_not_asked_for_is_refused():
    found = fool(bag({"good": 0.2}), samples=60, max_ratio=np.float32(0.5))
    with pytest.raises(ValueError, match="one of this run's"):
        found.texts("l2")


def test_where_nothing_can_be_chosen_that_is_said_and_nothing_else():
    constant = wt.model(lambda texts: np.full(len(texts), 0.7), threshold=0.5, output="probability")
    found = fool(constant, explainer="occlusion", objective=["lom", "random"])
    assert found.verdicts() == ["No swap could be chosen by centre of mass (ΔLOM): the scores of every candidate cancel out, or are all 0."]
    alone = fool(constant, explainer="occlusion", objective="lom")
    assert all("scores cancel out" in row["error"] for row in alone.texts())


def test_a_run_that_is_not_finished_says_so(tmp_path):
    fool(bag({"good": 0.2}), out=tmp_path / "run", samples=60, block=1)
    next((tmp_path / "run" / "records").iterdir()).unlink()
    assert Fooled.open(tmp_path / "run").findings["notes"][0] == "The run is not finished: 3 of 4 texts so far."


def test_rows_of_texts_have_the_same_keys_whatever_came_of_them():
    rows = fool(bag({"good": 0.2}), [*TEXTS[:2], "word", "nothing here"], samples="auto").texts()
    assert [row["status"] for row in rows] == ["ok", "ok", "failed", "nothing to swap"]
    assert len({tuple(sorted(row)) for row in rows}) == 1
