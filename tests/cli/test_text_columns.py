"""Texts in a column of a table: every command that takes them reads them in one way, and says the same where it cannot."""

import json

import numpy as np
import pytest

from whytrust import cli
from whytrust.cli import trusting

CODE = """
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

fresh = make_pipeline(CountVectorizer(), LogisticRegression(C=10))

def good(texts):
    return [[0.2, 0.8] if "good" in text else [0.9, 0.1] for text in texts]
"""
TEXTS = ["a good film, and long", "NA", "no good", "dull.txt", "001", 'she said "good"']


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(CODE)
    (tmp_path / "dull.txt").write_text("a good secret")  # a cell that could be taken for the name of this file
    quoted = ['"{}"'.format(text.replace('"', '""')) for text in TEXTS]
    (tmp_path / "texts.csv").write_text("stars,sentence\n" + "".join(f"{i % 2},{text}\n" for i, text in enumerate(quoted)))
    (tmp_path / "texts.tsv").write_text("stars\tsentence\n" + "".join(f"{i % 2}\t{text}\n" for i, text in enumerate(TEXTS)))
    return tmp_path


def run(capsys, *words):
    code = cli.main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


EXACT = ("--column", "sentence", "--target", "1")


@pytest.mark.parametrize("table", ["texts.csv", "texts.tsv"])
@pytest.mark.parametrize("row", range(len(TEXTS)))
def test_a_row_s_text_is_explained_as_it_stands_there(folder, capsys, table, row):
    code, out, _ = run(capsys, "explain", "model.py:good", f"{table}:{row}", *EXACT, "--method", "occlusion", "--json")
    assert code == 0
    e = json.loads(out)
    assert e["view"]["text"] == TEXTS[row]
    assert e["prediction"] == (0.8 if "good" in TEXTS[row] else 0.1)


def test_all_texts_of_a_column_are_explained(folder, capsys):
    code, out, _ = run(capsys, "explain", "model.py:good", "texts.csv", *EXACT, "--method", "occlusion", "--json")
    assert code == 0
    assert [e["view"]["text"] for e in json.loads(out)] == TEXTS


def test_texts_of_a_column_are_picked_from(folder, capsys):
    code, _, _ = run(capsys, "pick", "model.py:good", "texts.tsv", *EXACT, "--explainer", "occlusion", "--budget", "2", "--out", "picked.json")
    assert code == 0
    picked = json.loads((folder / "picked.json").read_text())
    assert "texts.tsv, row 0" in json.dumps(picked)
    assert TEXTS[0] in json.dumps(picked)


@pytest.mark.parametrize("table", ["texts.csv", "texts.tsv"])
def test_texts_of_a_column_are_trusted_with_labels_from_another(folder, capsys, table):
    rng = np.random.default_rng(0)
    sep, words = ("," if table.endswith("csv") else "\t"), ["good", "bad", *(f"word{i}" for i in range(12))]
    texts = [" ".join(rng.choice(words, 6, replace=False)) for _ in range(80)]
    (folder / table).write_text(f"stars{sep}sentence\n" + "".join(f"{i % 2}{sep}{text}\n" for i, text in enumerate(texts)))
    asked = ("model.py:fresh", table, "--column", "sentence", "--experiment", "insight", "--labels", "stars", "--explainers", "occlusion", "--json")
    code, out, err = run(capsys, "trust", *asked)
    assert code == 0, err
    assert json.loads(out)["experiment"] == "insight"
    code, out, err = run(capsys, "trust", "model.py:good", table, "--column", "sentence", "--limit", "6", "--rounds", "5", "--explainers", "occlusion", "--json")
    assert code == 0, err
    assert json.loads(out)["cases"]["done"] == 6


def test_the_world_may_be_a_table_of_texts_too(folder, capsys, monkeypatch):
    given = {}

    def trust(model, items, *more, **options):
        given.update(options, items=items)
        raise ValueError("that is all")

    monkeypatch.setattr(trusting, "trust", trust)
    words = ("trust", "model.py:fresh", "texts.csv", "--column", "sentence", "--experiment", "model", "--labels", "stars", "--world-labels", "stars")
    run(capsys, *words, "--world", "texts.tsv")
    assert (given["items"], given["labels"], given["world"]) == (TEXTS, [0, 1] * 3, (TEXTS, [0, 1] * 3))
    (folder / "lines.txt").write_text("one\ntwo\n")
    (folder / "classes.txt").write_text("0\n1\n")
    run(capsys, *words[:-1], "classes.txt", "--world", "lines.txt")
    assert given["world"] == (["one", "two"], [0, 1])


COMMANDS = [("explain",), ("pick",), ("trust",), ("fool", "--quality", "none")]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize(("data", "column", "message"), [
    ("texts.csv", "sentense", "--column must be one of stars, sentence, got 'sentense' (did you mean 'sentence'?)"),
    ("texts.tsv", "sentense", "--column must be one of stars, sentence, got 'sentense' (did you mean 'sentence'?)"),
    ("dull.txt", "sentence", "--column is for a .csv or .tsv file, got 'dull.txt'"),
    ("gone.tsv", "sentence", "gone.tsv must be a table in UTF-8 with a heading and a text in each row, and does not exist; check the path")])
def test_what_cannot_be_read_is_the_same_line_everywhere(folder, capsys, command, data, column, message):
    code, out, err = run(capsys, command[0], "model.py:good", data, "--column", column, *command[1:])
    assert (code, out) == (2, "")
    assert err.strip() == f"whytrust: {message}"


def test_a_row_that_is_not_there_is_told(folder, capsys):
    code, _, err = run(capsys, "explain", "model.py:good", "texts.csv:6", *EXACT)
    assert (code, err.strip()) == (2, "whytrust: texts.csv has rows 0 to 5, got 6")
    code, _, err = run(capsys, "explain", "model.py:good", "texts.csv:0", "--column", "nothing")
    assert "must be one of stars, sentence" in err
