"""`whytrust pick`: what it reads, what it prints and writes, how it ends."""

import json
import os

import numpy as np
import pytest

import whytrust as wt
from whytrust import cli

MODEL = """
import numpy as np

def words(texts):
    p = np.array([0.5 + 0.3 * ("good" in t) - 0.3 * ("dull" in t) for t in texts])
    return np.column_stack([1 - p, p])

def film(texts):
    p = np.array([0.5 + 0.4 * ("film" in t) for t in texts])
    return np.column_stack([1 - p, p])

def bright(images):
    return images.reshape(len(images), -1).mean(axis=1)

def rows(batch):
    return np.asarray(batch)[:, 0] * 2.0 - np.asarray(batch)[:, 1]
"""
LINES = "a plain film\n\na good film\nthe good end\na dull film\nnothing at all\ngood and dull\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "texts.txt").write_text(LINES)
    return tmp_path


def run(capsys, *words):
    code = cli.main(["pick", *words])
    out, err = capsys.readouterr()
    return code, out, err


EXACT = ("--explainer", "occlusion", "--target", "1")


def test_lines_of_a_file_are_picked_from(folder, capsys):
    code, out, err = run(capsys, "model.py:words", "texts.txt", "--budget", "2", *EXACT)
    assert code == 0
    assert "1. input 5 (texts.txt, line 7): class 1 = 0.5; adds 100%: good, dull" in out
    assert "explaining 6 inputs with occlusion" in err
    code, out, _ = run(capsys, "model.py:words", "texts.txt", "--method", "random", "--seed", "3", "--budget", "2", *EXACT, "--json")
    found = json.loads(out)
    assert found["method"] == "random"
    assert len(found["indices"]) == len(found["picks"]) == 2


def test_pages_are_written_and_a_second_model_stands_beside(folder, capsys):
    code, out, _ = run(capsys, "model.py:words", "texts.txt", "--other", "model.py:film", "--budget", "2", "--out", "pick.html", *EXACT)
    assert (code, out.strip()) == (0, "pick.html")
    page = (folder / "pick.html").read_text(encoding="utf-8")
    assert "What matters to words and film" in page
    assert "texts.txt, line 7" in page


def test_rows_arrays_and_folders(folder, capsys):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    table.to_csv("train.csv", index=False)
    table.head(5).assign(label=1).to_csv("rows.csv", index=False)
    code, out, _ = run(capsys, "model.py:rows", "rows.csv", "--background", "train.csv", "--budget", "2", "--samples", "60", "--limit", "3")
    assert code == 0
    assert out.startswith("2 of 3 explanations")
    np.save("images.npy", rng.random((5, 8, 8)))
    code, out, _ = run(capsys, "model.py:bright", "images.npy", "--parts", "grid:2x2", "--fill", "0", "--components", "3", "--describe",
                       "colour,model", "--budget", "2", "--explainer", "occlusion")
    assert code == 0
    assert "images.npy, entry" in out
    (folder / "some").mkdir()
    for name in "ab":
        (folder / "some" / f"{name}.txt").write_text(f"a good {name} film")
    code, out, _ = run(capsys, "model.py:words", "some", "--budget", "1", *EXACT)
    assert "(a.txt)" in out


def test_some_failures_are_told_and_exit_with_one(folder, capsys):
    (folder / "some").mkdir()
    (folder / "some" / "a.txt").write_text("a good film")
    (folder / "some" / "b.txt").write_text("  ")
    code, out, err = run(capsys, "model.py:words", "some", "--budget", "1", *EXACT)
    assert code == 1
    assert "b.txt: a text must have at least one word" in err
    assert "1 input of 2 could not be explained and is left out: input 1 (b.txt); " in out


def test_a_pipe_among_the_inputs_is_told_and_not_waited_for(folder, capsys):
    (folder / "some").mkdir()
    (folder / "some" / "a.txt").write_text("a good film")
    os.mkfifo(folder / "some" / "b.txt")
    code, out, err = run(capsys, "model.py:words", "some", "--budget", "1", "--run", "kept", *EXACT)
    assert code == 1
    assert "b.txt must be" in err
    assert "is a pipe" in err
    assert "1 input of 2 could not be explained" in out


def test_demos_bring_their_inputs(capsys, folder):
    code, out, _ = run(capsys, "demo:sound", "demo", "--budget", "2", "--explainer", "occlusion", "--components", "4")
    assert code == 0
    assert "(input " in out


@pytest.mark.parametrize(("words", "message"), [
    (["model.py:words", "nowhere"], "there is no 'nowhere'"), (["model.py:words", "demo"], "where MODEL is embedded"),
    (["model.py:words", "model.py"], "must hold several inputs"), (["model.py:words", "texts.txt", "--budget", "0"], "--budget must be"),
    (["model.py:words", "texts.txt", "--limit", "0"], "--limit must be"), (["model.py:words", "texts.txt", "--out", "p.doc"], "--out must end"),
    (["model.py:words", "texts.txt", "--explainer", "nosuch"], "method must be one of"),
])
def test_wrong_arguments_are_one_line_and_exit_with_two(folder, capsys, words, message):
    code, out, err = run(capsys, *words)
    assert code == 2
    assert message in err
    assert out == ""


def test_a_run_of_a_pick_is_told_as_that_and_not_as_a_changed_audit(folder, capsys):
    assert run(capsys, "model.py:words", "texts.txt", "--budget", "2", "--run", "kept", *EXACT)[0] == 0
    for words in (["report", "kept"], ["gate", "kept", "--require", "lime.flip > random"], ["diff", "kept", "kept"]):
        assert cli.main(words) == 2
        told = capsys.readouterr().err
        assert "kept is one of wt.pick" in told
        assert "give its command again, `whytrust pick … --run kept --out pick.html`, which makes its page" in told
    with pytest.raises(ValueError, match="kept must hold the run of an audit, and holds one of 'pick'; open it with what made it"):
        _ = wt.Audit.open("kept").findings


def test_nothing_is_said_of_explaining_before_a_folder_is_refused(folder, capsys):
    asked = ("model.py:words", "texts.txt", "--budget", "2", "--run", "kept", *EXACT)
    assert run(capsys, *asked)[0] == 0
    code, _, err = run(capsys, *asked, "--seed", "1")
    assert (code, err.count("\n")) == (2, 1)
    assert "holds a run of another spec" in err
