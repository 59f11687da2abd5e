"""`whytrust fool`: texts from files, a page, a run that goes on, and errors in one line."""

import json

import pytest

from whytrust.cli import main
from whytrust.cli.reading import column

MODEL = '''
import numpy as np
def predict(texts):
    weights = {"good": 0.3, "movie": 0.1, "dull": -0.2, "bad": -0.3}
    scores = np.array([0.45 + sum(weights.get(w, 0.0) for w in t.split()) for t in texts])
    return np.stack([1 - scores, scores], axis=1)
'''


@pytest.fixture
def place(tmp_path):
    (tmp_path / "model.py").write_text(MODEL, encoding="utf-8")
    (tmp_path / "texts.txt").write_text("a good film with a long story\n\nthe acting in this film is bad\n", encoding="utf-8")
    (tmp_path / "texts.tsv").write_text("label\tsentence\n1\ta \"good film with a story\n0\ta bad film with a story\n", encoding="utf-8")
    return tmp_path


def run(place, *more, data="texts.txt"):
    return main(["fool", f"{place}/model.py:predict", f"{place}/{data}", "--samples", "60", "--constraints", "stop_words", "--quality",
                 "none", "--controls", "1", *more])


def test_a_file_of_texts_is_fooled_and_a_page_written(place, capsys):
    assert run(place, "--out", f"{place}/run", "--html", f"{place}/page.html") == 0
    said = capsys.readouterr().out
    assert "rank correlation" in said
    assert "good" in (place / "page.html").read_text(encoding="utf-8")
    assert main(["report", f"{place}/run"]) == 0
    assert "rank correlation" in capsys.readouterr().out
    assert main(["report", f"{place}/run", "--html", f"{place}/again.html"]) == 0
    assert (place / "again.html").read_bytes() == (place / "page.html").read_bytes()


def test_json_has_every_number_and_how_to_do_it_again(place, capsys):
    assert run(place, "--json", "--objective", "l2,lom") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["experiment"] == "fragile"
    assert {t["objective"] for t in found["tests"]} == {"l2", "lom"}
    assert "--objective l2,lom" in found["settings"]["command"]
    assert [len(found["texts"][name]) for name in ("l2", "lom")] == [2, 2]
    assert {"text", "fooled", "swaps", "rank"} <= set(found["texts"]["lom"][0])


def test_a_column_of_a_table_holds_the_texts(place, capsys):
    assert run(place, "--column", "sentence", "--json", data="texts.tsv") == 0
    assert json.loads(capsys.readouterr().out)["cases"]["done"] == 2


@pytest.mark.parametrize(("lines", "texts"), [
    ("a good film with a story\t1\na bad film with a story\t0\n", 2),  # a label is no heading
    ("good film\tpos\na bad film with a story\tneg\nfine film here\tpos\n", 3),  # it comes again
    ("text\tlabel\na good film with a story\t1\n", 1), ("text\na good film with a story\n", 1),
    ("a good film with a story\na bad film with a story\n", 2), ("text\tlabel\t\na good film\t1\t\na bad film\t0\t\n", 2),
    ("sentence\tsplit\nwe split a film\tsplit\n", 1)])
def test_a_first_line_is_a_heading_only_where_it_looks_like_one(place, lines, texts):
    (place / "some.tsv").write_text(lines, encoding="utf-8")
    assert len(column(place / "some.tsv", None)) == texts


def test_files_that_are_not_utf_8_are_named(place, capsys):
    (place / "latin.txt").write_bytes("un film très bon et très long\n".encode("latin-1"))
    for more in ((), ("--variant", "authors", "--labels", f"{place}/latin.txt")):
        assert run(place, *more, data="texts.txt" if more else "latin.txt") == 2
        assert "latin.txt must be a text file in UTF-8" in capsys.readouterr().err


def test_two_runs_are_not_compared_as_if_they_were_audits(place, capsys):
    run(place, "--out", f"{place}/run")
    assert main(["diff", f"{place}/run", f"{place}/run"]) == 2
    assert "wt.fool" in capsys.readouterr().err


def test_a_gate_is_for_audits(place, capsys):
    run(place, "--out", f"{place}/run")
    assert main(["gate", f"{place}/run", "--require", "lime.flip > random"]) == 2
    assert "wt.fool" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "data", "words"), [
    (("--column", "nothing"), "texts.tsv", "--column must be one of label, sentence"), (("--column", "a"), "texts.txt", "--column is for"),
    ((), "missing.txt", "there is no"), ((), "missing.tsv", "does not exist"), (("--objective", "lomm"), "texts.txt", "did you mean"),
    (("--html", "nowhere/page.html"), "texts.txt", "--html must name"), (("--candidates", "wordnet:/nowhere"), "texts.txt", "nowhere"),
    (("--vectors", "/nowhere.txt"), "texts.txt", "nowhere"), (("--max-ratio", "7"), "texts.txt", "share of words")])
def test_odd_options_are_one_line(place, capsys, more, data, words):
    assert run(place, *more, data=data) == 2
    told = capsys.readouterr().err.strip()
    assert words in told
    assert "\n" not in told


def test_an_empty_file_of_vectors_is_told_as_that(place, capsys):
    (place / "empty.txt").write_text("", encoding="utf-8")
    assert run(place, "--candidates", f"vectors:{place}/empty.txt") == 2
    assert "empty.txt" in capsys.readouterr().err


def test_failed_texts_are_told_beside_a_page_and_a_missing_file_of_labels_is_named(place, capsys):
    (place / "texts.txt").write_text("a good film with a long story\nword\nthe acting in this film is bad\n", encoding="utf-8")
    assert run(place, "--html", f"{place}/page.html") == 1
    assert "text 00001 failed: ValueError: a text must have at least two words" in capsys.readouterr().err
    assert run(place, "--labels", "nowhere.txt") == 2
    assert "--labels must name a file" in capsys.readouterr().err
