"""The reviews, the models and the studies of Figures 6 to 8 and Table 1, on reviews made up on the spot."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier

import whytrust as wt
from studies import reviews as made
from whytrust import engine
from whytrust.cli import main
from whytrust.question import Question
from whytrust.store import Store
from whytrust.studies import lime_choice, lime_findings, lime_reviews, lime_run
from whytrust.studies.choosing import correct
from whytrust.studies.interpretable import used_by
from whytrust.studies.lime_faithful import FaithfulStudy, authors_lime, paper_lime
from whytrust.studies.lime_published import FAITHFUL, TRUST, published
from whytrust.studies.lime_trust import TrustStudy
from whytrust.studies.mistrust import EVERYTHING

REAL = Path(os.environ.get("WHYTRUST_REVIEWS", Path(__file__).parents[3] / "shared" / "data" / "reviews"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return made.write(tmp_path_factory.mktemp("reviews"))


@pytest.fixture(scope="module")
def small(folder, tmp_path_factory):
    """A whole run of Figure 6 on the made-up books."""
    out = tmp_path_factory.mktemp("run") / "fig6"
    return engine.run(FaithfulStudy(str(folder), ("books",), splits=2, trees=2, samples=400), out)


# --- data and models ------------------------------------------------------------------------------------------------------


def test_reviews_are_single_words_split_by_class(folder):
    books = lime_reviews.Reviews.read(folder, "books")
    assert len(books.train) == 96
    assert len(books.test) == 24
    assert books.test_labels.tolist() == [1] * 12 + [0] * 12
    assert not any("_" in word or "num" in word for text in books.train for word in text.split())
    other = lime_reviews.Reviews.read(folder, "books", split=2)
    assert set(other.train) != set(books.train)
    assert sorted((*other.train, *other.test)) == sorted((*books.train, *books.test))


def test_words_of_one_letter_and_words_unknown_in_training_are_no_parts(folder):
    books = lime_reviews.Reviews.read(folder, "books")
    parts = books.parts("good1 good1 neverseen a bad2")
    assert parts.names == ("bad2", "good1")


@pytest.mark.parametrize(("change", "message"), [
    (lambda f: (f / "books" / "positive.review").unlink(), "must be a file of reviews"),
    (lambda f: (f / "books" / "positive.review").write_text("good:1\n"), "at least 10 reviews")])
def test_a_wrong_folder_is_one_clear_error(tmp_path, change, message):
    change(made.write(tmp_path))
    with pytest.raises(ValueError, match=message):
        lime_reviews.Reviews.read(tmp_path, "books")


def test_no_training_review_has_more_active_words_than_a_reader_can_look_at(folder):
    books = lime_reviews.Reviews.read(folder, "books")
    pipeline = lime_reviews.sparse_regression(books.train, books.train_labels)
    active = [used_by(pipeline, books.parts(text)).used.sum() for text in books.train]
    assert 0 < max(active) <= lime_reviews.MOST_ACTIVE


def test_neighbours_are_scikit_learns_where_nothing_is_tied():
    texts = ["aa bb cc dd", "aa bb cc", "aa bb", "aa", "ee ff", "ee ff gg", "aa bb cc dd ee ff gg hh"]
    X = CountVectorizer(binary=True).fit_transform(texts)
    y = np.array([0, 0, 0, 1, 1, 1, 1])
    ours = lime_reviews.PartitionedNeighbours(3, algorithm="brute").fit(X, y)
    theirs = KNeighborsClassifier(3, algorithm="brute").fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X[[0, 1]]), theirs.predict_proba(X[[0, 1]]))
    assert ours.predict(X[[3]]).tolist() == [0]


@given(st.integers(0, 10_000), st.integers(1, 7))
def test_neighbours_are_nearest_and_the_same_alone_and_in_a_crowd(seed, k):
    rng = np.random.default_rng(seed)
    X, rows = (sparse.csr_matrix((rng.random((n, 12)) < 0.4).astype(np.int64)) for n in (40, 9))
    ours = lime_reviews.PartitionedNeighbours(k, algorithm="brute").fit(X, np.arange(40) % 2)
    near = ours._nearest(rows)
    distances = ((rows.toarray()[:, None] - X.toarray()[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(np.sort(np.take_along_axis(distances, near, 1), axis=1), np.sort(distances, axis=1)[:, :k])
    np.testing.assert_array_equal(np.vstack([ours._nearest(rows[i]) for i in range(9)]), near)


def test_a_review_of_too_many_words_for_the_neighbours_is_refused():
    X = sparse.csr_matrix(np.ones((3, 32_768), dtype=np.int64))
    with pytest.raises(ValueError, match="at most 32,767 different words"):
        lime_reviews.PartitionedNeighbours(1, algorithm="brute").fit(X, [0, 1, 0]).predict(X)


# --- Figures 6 and 7 ------------------------------------------------------------------------------------------------------


def test_lime_finds_what_a_sparse_model_uses_and_random_finds_what_chance_does(small):
    cells = lime_findings.faithful(small)["cells"]
    assert cells["books sparse-LR"]["lime"]["value"] > 0.99
    assert cells["books sparse-LR"]["ceiling"]["value"] == 1.0
    drawn = [len(set(r["truth"]) & set(r["named"]["random"])) / len(r["truth"]) for r in small.records() if r["truth"]]
    expected = [1 - (1 - 1 / r["d"]) ** 10 for r in small.records() if r["truth"]]
    assert np.mean(drawn) == pytest.approx(np.mean(expected), abs=4 * np.std(drawn) / np.sqrt(len(drawn)))
    tree = cells["books tree"]
    assert tree["lime"]["value"] == pytest.approx(tree["ceiling"]["value"], abs=0.06)
    assert tree["authors, empty path"]["value"] >= tree["authors"]["value"]


def test_the_run_tells_of_every_split_and_of_the_published_numbers(small):
    found = lime_findings.faithful(small)
    assert found["cases"] == {"done": 24 * 5, "of": 24 * 5, "failed": 0}  # two trees on the first split
    assert [table["title"] for table in found["tables"]] == ["Figure 6, books: sparse LR", "Figure 6, books: tree", "Over splits"]
    assert "92.1 %" in str(found["tables"][0]["rows"])
    json.dumps(found)


def test_published_numbers_are_those_of_the_paper():
    assert published(FAITHFUL, "dvd", "tree", "greedy") == 47.6
    assert published(TRUST, "books", "SVM", "lime") == 96.7
    assert published(TRUST, "books", "SVM", EVERYTHING) is None


# --- Table 1 --------------------------------------------------------------------------------------------------------------


def test_table_1_in_small(folder, tmp_path):
    study = TrustStudy(str(folder), ("books",), ("LR", "NN"), scale=0.5, samples=300, rounds=20)
    store = engine.run(study, tmp_path / "one")
    found = lime_findings.trust(store)
    assert found["cases"]["failed"] == 0
    rows = found["cells"]["books LR"]["rows"]
    assert rows["lime"]["value"] > rows["greedy"]["value"] > rows["random"]["value"]
    assert rows["lime"]["value"] > 0.9
    again = engine.run(study, tmp_path / "two", jobs=2)
    assert list(again.records()) == list(store.records())


def test_greedy_goes_on_where_nothing_changes_as_the_authors_did():
    """A model that never changes its mind: every removal is a tie, and the first ten words are named."""
    parts = lime_reviews.TextParts.cut(" ".join(f"word{i:02d}" for i in range(15)), "bag", split=r"\S+")
    question = Question(wt.model(lambda texts: np.tile([0.2, 0.8], (len(texts), 1))), parts, 1)
    reading = TrustStudy("nowhere")._reading("greedy", question, np.arange(100, 115), "books.NN.0")
    assert reading.features.tolist() == list(range(100, 110))
    marked = np.zeros((3, 200), dtype=bool)
    marked[0, 109] = marked[1, 110] = True
    assert reading.trusts(marked).tolist() == [False, True, True]


# --- Figure 8 -------------------------------------------------------------------------------------------------------------


def test_readers_choose_between_forests(folder, tmp_path):
    study = lime_choice.study(str(folder), "books", pairs=2, samples=200)
    store = engine.run(study, tmp_path / "books")
    records = list(store.records())
    done = [r for r in records if r["status"] == "ok"]
    for r in done:
        assert r["validation"][0] == pytest.approx(r["validation"][1], abs=0.001)
        assert r["world"][0] - r["world"][1] >= 0.05 - 1e-9
    if done:
        assert correct(done, "lime", "submodular").shape == (len(done), 30)
    for r in records:
        assert r["status"] == "ok" or "no two of" in r["error"]


class Made:
    """A store of pairs whose answers are known: submodular picks are right in these shares, random ones in half."""

    problems = ()

    def __init__(self, lime, pairs):
        budgets = [1, 2]
        self.manifest = {"seed": 0, "spec": {"explainers": ["lime", "greedy"], "budgets": budgets, "plants": ["a"]}}
        right = {"lime": {"submodular": [lime] * 2, "random": [0.5] * 2}, "greedy": dict.fromkeys(("submodular", "random"), [0.5] * 2)}
        self.made = [{"case": f"pair-{i}", "status": "ok", "right": right, "inputs": 5, "oracle": 1.0, "changed": [0, 1], "trained": 2,
                      "validation": [0.7, 0.7], "world": [0.8, 0.7], "named": {"lime": [0.1, 0.2], "greedy": [0.1, 0.1]},
                      "failures": {}} for i in range(pairs)]
        self.blocks = [engine.Block(r["case"], (r["case"],)) for r in self.made]

    def records(self):
        return iter(self.made)


def test_pairs_of_both_data_sets_are_told_together():
    found = lime_findings.choice({"books": Made(1.0, 30), "dvd": Made(0.9, 10)})
    table = found["tables"][0]
    assert table["title"] == "Both data sets: Differences, in points"
    rows = {row[0]: row for row in table["rows"]}
    assert rows["SP − RP, lime"][2].startswith("+47.5 ")  # (30 × .5 + 10 × .4) / 40
    assert rows["SP − RP, greedy"][2].startswith("+0.0 ")
    assert rows["lime − greedy, SP"][2].startswith("+47.5 ")
    assert found["answer"][0] == "Both data sets together, 40 pairs: SP − RP, lime (B ≤ 2): +47.5 points, above zero beyond chance."
    alone = lime_findings.choice({"books": Made(1.0, 30)})
    assert not any("Both" in one["title"] for one in alone["tables"])


# --- the command ----------------------------------------------------------------------------------------------------------


def test_the_command_runs_resumes_and_reports(folder, tmp_path, capsys):
    out = tmp_path / "fig7"
    arguments = ["reproduce", "lime", "fig7", "--data", str(folder), "--scale", "0.25", "--samples", "100", "--out", str(out)]
    assert main(arguments) == 0
    first = capsys.readouterr().out
    assert "Figure 7, dvd: tree" in first
    assert (out / "figures" / "lime-fig7.png").stat().st_size > 10_000
    assert (out / "tables.md").is_file()
    assert main(["reproduce", "lime", "fig7", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cases"]["done"] > 0
    assert main(["reproduce", "lime", "fig6", "--out", str(out)]) == 2
    assert "holds a run of fig7" in capsys.readouterr().err
    assert main(["report", str(out)]) == 0
    assert "Figure 7" in capsys.readouterr().out
    assert len(list(Store.open(out).records())) == lime_run.findings(out)["cases"]["done"]


@pytest.mark.parametrize(("arguments", "message"), [
    (["fig5"], "experiment must be one of fig6"), ([], "which have data of their own"), (["fig6"], "--data must name the reviews"),
    (["fig9"], "--data must name 20 newsgroups"), (["table2"], "--data must name pets"),
    (["fig6", "--data", "nowhere"], "must be a file of reviews"), (["fig6", "--data", ".", "--scale", "2"], "scale must lie"),
    (["fig6", "--data", ".", "--few", "3"], "--few belongs to `whytrust reproduce plausible`"),
    (["fig6", "--data", ".", "--samples", "3"], "samples must be a whole number >= 50")])
def test_what_cannot_be_reproduced_is_one_clear_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "lime", *arguments]) == 2
    told = capsys.readouterr().err.strip()
    assert message in told
    assert "\n" not in told


@pytest.mark.skipif(not REAL.is_dir(), reason="the reviews of the paper are not here")
def test_with_the_real_reviews_the_authors_numbers_come_out(tmp_path):
    """A few of the books."""
    study = FaithfulStudy(str(REAL), ("books",), splits=1, trees=1, scale=0.05, samples=1000)
    cells = lime_findings.faithful(engine.run(study, tmp_path / "real"))["cells"]
    assert cells["books sparse-LR"]["lime"]["value"] > 0.97
    assert cells["books sparse-LR"]["authors"]["value"] < cells["books sparse-LR"]["lime"]["value"]
    assert cells["books sparse-LR"]["greedy"]["value"] == pytest.approx(0.643, abs=0.25)


def test_a_forest_on_word_vectors_can_be_fitted_to_some_of_the_reviews_alone(folder, monkeypatch):
    monkeypatch.setattr(lime_reviews.minilm, "word_vectors", lambda words: np.random.default_rng(0).normal(size=(len(words), 8)).astype(np.float32))
    monkeypatch.setattr(lime_reviews, "RandomForestClassifier", lambda trees, random_state: RandomForestClassifier(5, random_state=random_state))
    books = lime_reviews.Reviews.read(folder, "books")
    pipeline = lime_reviews.MODELS["RF"](books)
    assert len(cross_val_predict(pipeline, list(books.train), books.train_labels, cv=3)) == len(books.train)
    assert pipeline.score(books.train, books.train_labels) > 0.8
    np.testing.assert_allclose(pipeline[:-1].transform(["good1 bad1"])[0],
                               pipeline[1].vectors[[pipeline[1].words.index(w) for w in ("good1", "bad1")]].mean(axis=0), rtol=1e-6)


def test_words_are_chosen_as_in_the_paper():
    """Whatever texts are explained by otherwise."""
    assert paper_lime().selection == authors_lime().selection == "lasso_path"
