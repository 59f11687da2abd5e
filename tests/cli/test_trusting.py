"""`whytrust trust`: from files to an answer, and one clear line where there is none."""

import json

import numpy as np
import pytest

from whytrust.cli import main

CODE = """
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

fresh = make_pipeline(CountVectorizer(), LogisticRegression(C=10))


def score(texts):
    return [[0.2, 0.8] if "good" in text else [0.9, 0.1] for text in texts]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    words = ["good", "bad", *(f"word{i}" for i in range(12))]
    texts = [" ".join(rng.choice(words, 6, replace=False)) for _ in range(80)]
    (tmp_path / "model.py").write_text(CODE)
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    (tmp_path / "labels.txt").write_text("\n".join(str(int(i)) for i in rng.integers(0, 2, 80)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_trust_in_predictions(folder):
    assert main(["trust", "model.py:score", "texts.txt", "--limit", "8", "--rounds", "10", "--explainers", "lime,occlusion", "--html", "t.html"]) == 0
    assert "Should I trust this prediction?" in (folder / "t.html").read_text()
    assert main(["trust", "model.py:score", "texts.txt", "--limit", "4", "--rounds", "5", "--json", "--out", "run"]) == 0
    assert (folder / "run" / "manifest.json").is_file()
    assert main(["report", "run", "--html", "again.html"]) == 0
    assert "Should I trust this prediction?" in (folder / "again.html").read_text()
    assert main(["gate", "run", "--require", "lime.flip > random"]) == 2


def test_what_comes_out_as_json_is_json(folder, capsys):
    main(["trust", "model.py:score", "texts.txt", "--limit", "4", "--rounds", "5", "--json"])
    assert json.loads(capsys.readouterr().out)["experiment"] == "prediction"


def test_insight_trains_the_estimator_that_is_named(folder, capsys):
    assert main(["trust", "model.py:fresh", "texts.txt", "--experiment", "insight", "--labels", "labels.txt", "--explainers", "occlusion"]) == 0
    assert "occlusion" in capsys.readouterr().out


@pytest.mark.parametrize(("arguments", "message"), [
    (["model.py:score", "nowhere.txt"], "there is no 'nowhere.txt'"),
    (["model.py:fresh", "texts.txt", "--experiment", "repair"], "needs --labels"),
    (["model.py:fresh", "texts.txt", "--experiment", "repair", "--labels", "nowhere.txt"], "does not exist"),
    (["model.py:fresh", "texts.txt", "--experiment", "model", "--labels", "labels.txt", "--world", "texts.txt"], "--world needs --world-labels"),
    (["demo:sound", "demo", "--experiment", "insight"], "cannot be trained again here"),
    (["model.py:score", "texts.txt", "--explainers", "limee"], "did you mean 'lime'"),
    (["model.py:score", "texts.txt", "--tries", "3"], "experiment 'prediction' has no option 'tries'"),
    (["model.py:score", "texts.txt", "--share", "2"], "share must lie between 0 and 1"),
    (["model.py:fresh", "texts.txt", "--experiment", "insight", "--labels", "labels.txt", "--readers", "3,4"], "readers must be"),
    (["model.py:fresh", "texts.txt", "--experiment", "repair", "--labels", "labels.txt", "--readers", "3,0"], "readers must be")])
def test_a_wrong_argument_is_one_line(folder, arguments, message, capsys):
    assert main(["trust", *arguments]) == 2
    told = capsys.readouterr().err.strip()
    assert message in told
    assert "\n" not in told


def test_every_experiment_takes_its_numbers(folder, capsys):
    trains = ["trust", "model.py:fresh", "texts.txt", "--labels", "labels.txt", "--explainers", "occlusion", "--json", "--experiment"]
    assert main([*trains, "insight", "--readers", "5", "--training", "20", "--top", "2"]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert (settings["readers"], settings["training"], settings["top"]) == (5, 20, 2)
    assert main([*trains, "repair", "--readers", "2,1", "--instances", "3", "--out", "repair"]) == 0
    capsys.readouterr()
    spec = json.loads((folder / "repair" / "manifest.json").read_text())["spec"]
    assert (spec["readers"], spec["instances"]) == ([2, 1], 3)
    main([*trains, "model", "--tries", "9", "--pairs", "1", "--budgets", "1,2", "--out", "model"])  # noise: there may be no pair
    spec = json.loads((folder / "model" / "manifest.json").read_text())["spec"]
    assert (spec["tries"], spec["pairs"], spec["budgets"]) == (9, 1, [1, 2])
    with pytest.raises(SystemExit, match="2"):
        main([*trains, "repair", "--readers", "some"])
    assert "such as 10,5,5, got 'some'" in capsys.readouterr().err


TABLE = """
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

fresh = make_pipeline(StandardScaler(), LogisticRegression())
"""


def test_the_column_of_the_labels_is_none_of_the_inputs(folder, capsys):
    rng = np.random.default_rng(1)
    rows = [f"{a:.3f},{b:.3f},{label}" for (a, b), label in zip(rng.normal(size=(120, 2)), rng.choice(["no", "yes"], 120), strict=True)]
    (folder / "rows.csv").write_text("\n".join(["a,b,y", *rows]))
    (folder / "table.py").write_text(TABLE)
    assert main(["trust", "table.py:fresh", "rows.csv", "--experiment", "insight", "--labels", "y", "--explainers", "occlusion", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    model = next(table for table in found["tables"] if "bad model" in table["title"])
    innocent = next(row for row in model["rows"] if row[0].startswith("innocent model: right"))
    assert innocent[1]["value"] < 0.75  # the labels are noise: a model that sees them would be right always
