"""A spec names explainers of the user's own as file.py:attribute; a run knows their code, and workers find it."""

import json
import re

import numpy as np
import pytest

import whytrust as wt
from planted import GRID
from studies.specs import MODEL, told
from whytrust.models.whitebox import MarkedCause
from whytrust.store import Store

SPEC = """
model = "model.py:box"
inputs = "inputs.npy"
parts = "grid:4x4"
fill = 0.0
draws = 3
block = 4
trials = ["flip"]
{explainers}

[attack]
method = "pgd"
epsilon = 0.5
units = "input"
iterations = 15
"""
MINE = """
import numpy as np
import whytrust as wt
from helping import place

print("mine.py runs")


def last(question, rng):
    return wt.Explanation.of(question, "last", place(question.d, question.d - 1))


class At:
    def __init__(self, part=0, noise=0.0):
        self.part, self.noise = part, noise

    def __call__(self, question, rng):
        return wt.Explanation.of(question, "at", place(question.d, self.part) + self.noise * rng.random(question.d))


def at(part):
    return At(part)


def made():
    return At(2)


fifth = At(5)


def theirs(model, inputs, targets, scale=1.0):
    return scale * np.abs(np.asarray(inputs))


def one(question):
    return None


number = 3
"""
HELPING = """
import numpy as np


def place(d, i):
    return (np.arange(d) == i) * 1.0
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "model.py").write_text(MODEL)
    (tmp_path / "spec" / "mine.py").write_text(MINE)
    (tmp_path / "spec" / "helping.py").write_text(HELPING)
    np.save(tmp_path / "spec" / "inputs.npy", MarkedCause(GRID).inputs(8))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audited(folder, capsys, explainers, *more, out="run"):
    (folder / "spec" / "spec.toml").write_text(SPEC.format(explainers=explainers))
    return told(capsys, "audit", "spec/spec.toml", "--out", out, *more)


def rankings(folder, out="run"):
    found = {}
    for record in Store.open(folder / out).records():
        for name, one in record["trials"][0]["scores"].items():
            found.setdefault(name, set()).add(int(np.argmax(one)))
    return found


def test_functions_objects_classes_and_what_makes_them(folder, capsys):
    table = """
[explainers]
"mine.py:last" = {}
fifth = "mine.py:fifth"
class = "mine.py:At"
third = { method = "mine.py:At", part = 3 }
fourth = { method = "mine.py:at", part = 4 }
second = { method = "mine.py:made" }
theirs = { method = "mine.py:theirs", scale = 2.0, pooling = "mean" }
occlusion = {}
"""
    code, out, err = audited(folder, capsys, table)
    assert code == 0, err
    assert out.count("mine.py runs") == 1  # once for all of them
    found = rankings(folder)
    assert {name: found[name] for name in ("mine.py:last", "fifth", "class", "third", "fourth", "second")} == {
        "mine.py:last": {15}, "fifth": {5}, "class": {0}, "third": {3}, "fourth": {4}, "second": {2}}
    assert "theirs" in found


def test_a_list_of_names_and_the_command_line(folder, capsys):
    code, _, err = audited(folder, capsys, 'explainers = ["occlusion", "mine.py:last"]')
    assert code == 0, err
    assert rankings(folder)["mine.py:last"] == {15}
    code, _, err = audited(folder, capsys, "", "--explainers", "spec/mine.py:fifth,occlusion", out="typed")
    assert code == 0, err
    assert rankings(folder, "typed")["spec/mine.py:fifth"] == {5}
    page = (folder / "typed" / "report.html").read_text()
    assert "--explainers=spec/mine.py:fifth,occlusion" in page


def test_workers_find_the_code_and_what_it_imports(folder, capsys):
    table = '[explainers]\nthird = { method = "mine.py:At", part = 3, noise = 0.1 }\n"mine.py:last" = {}\n'
    for jobs in (1, 2):
        code, _, err = audited(folder, capsys, table, "--jobs", jobs, out=f"run{jobs}")
        assert code == 0, err
    one, two = (list(Store.open(folder / f"run{jobs}").records()) for jobs in (1, 2))
    assert one == two
    assert rankings(folder, "run2") == {"third": {3}, "mine.py:last": {15}}


@pytest.mark.parametrize("change", [
    ("d - 1", "d - 2"), ("self.part, self.noise = part, noise", "self.part, self.noise = part + 1, noise")])
def test_a_run_is_not_continued_with_other_code(folder, capsys, change):
    table = '[explainers]\nthird = { method = "mine.py:At", part = 3 }\nlast = "mine.py:last"\n'
    assert audited(folder, capsys, table)[0] == 0
    assert audited(folder, capsys, table)[0] == 0
    (folder / "spec" / "mine.py").write_text(MINE.replace("import numpy as np", "import numpy as np  # as usual"))
    assert audited(folder, capsys, table)[0] == 0  # a remark changes nothing
    (folder / "spec" / "mine.py").write_text(MINE.replace(*change))
    code, _, err = audited(folder, capsys, table)
    assert code == 2
    assert re.search("holds a run of another spec: code of explainers", err)


def test_another_option_is_another_run(folder, capsys):
    table = '[explainers]\nthird = { method = "mine.py:At", part = 3 }\n'
    assert audited(folder, capsys, table)[0] == 0
    code, _, err = audited(folder, capsys, table.replace("3", "4"))
    assert (code, "explainers.third.part was 3, now 4" in err) == (2, True), err


def test_a_file_that_holds_model_and_explainer_runs_once(folder, capsys):
    (folder / "spec" / "model.py").write_text(MODEL + MINE.replace("mine.py runs", "model.py runs"))
    code, out, err = audited(folder, capsys, 'explainers = ["model.py:last", "model.py:fifth"]')
    assert code == 0, err
    assert out.count("model.py runs") == 1


def test_a_dry_run_counts_them_too(folder, capsys):
    code, out, _ = audited(folder, capsys, 'explainers = ["mine.py:last"]', "--dry-run", "--json")
    assert code == 0
    assert json.loads(out.splitlines()[-1])["inputs"] == 8


@pytest.mark.parametrize(("explainers", "message"), [
    ('["gone.py:mine"]', "an explainer names the file spec/gone.py, which does not exist"),
    ('["mine.py:lost"]', "spec/mine.py has no attribute 'lost'; it must hold the explainer, a function (question, rng) -> Explanation, or what makes one"),
    ('["mine.py"]', "an explainer must name what in the file is the explainer, such as mine.py:explain, got 'mine.py'"),
    ('["inputs.py:x"]', "an explainer must name a file of Python code, and spec/inputs.py, line 1 is none"),
    ('{ mine = { method = "mine.py:At", prat = 3 } }', "explainer of the options in its table (prat), got At(part=0, noise=0.0) (got an unexpected keyword argument 'prat')"),
    ('{ mine = { method = "mine.py:last", part = 3 } }', "in its table (part), got last(question, rng) (missing a required argument: 'question')"),
    ('{ mine = { method = "mine.py:at" } }', "in its table (none), got at(part) (missing a required argument: 'part')"),
    ('["mine.py:one"]', "mine.py:one must be a function (question, rng) -> Explanation, or"),
    ('["mine.py:number"]', "method must be a name from wt.methods(), an explainer (question, rng) -> Explanation"),
    ('["mine.py:last", "mine.py:last"]', "explainers must have different names, got 'mine.py:last' twice"),
])
def test_what_is_none_is_one_line(folder, capsys, explainers, message):
    (folder / "spec" / "inputs.py").write_text("def broken(:\n")
    code, _, err = audited(folder, capsys, f"explainers = {explainers}")
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1
    assert not (folder / "run").exists()


def test_a_text_in_python_names_no_file(folder, capsys):
    with pytest.raises(ValueError, match=r"method must be one of .*, got 'spec/mine.py:last'"):
        wt.explain(lambda images: images.mean(axis=(1, 2, 3)), np.zeros((8, 8, 3)), "spec/mine.py:last")
    assert "mine.py runs" not in capsys.readouterr().out
