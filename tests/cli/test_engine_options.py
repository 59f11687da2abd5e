"""`--jobs`, `--engine`, `--scheduler` and `--timeout`, and what is done with a run: `check`, `export`."""

import errno
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from whytrust import cli
from whytrust.store import Store

AUDIT = ["audit", "tabular", "--limit", "4", "--explainers", "occlusion", "--keep", "scores"]


def said(capsys, *arguments):
    """(exit code, standard output, standard error)."""
    try:
        code = cli.main([str(one) for one in arguments])
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines") / "run"
    assert cli.main([*AUDIT, "--out", str(folder)]) == 0
    return folder


def fingerprint(capsys, folder):
    code, out, _ = said(capsys, "check", folder, "--json")
    assert code == 0
    return json.loads(out)[str(folder)]["fingerprint"]


@pytest.mark.parametrize("options", [("--jobs", 2, "--timeout", 100), ("--engine", "dask")])
def test_engines_of_the_command_line_give_the_same_bytes(tmp_path, capsys, run, options):
    assert said(capsys, *AUDIT, "--out", tmp_path / "run", *options)[0] == 0
    assert fingerprint(capsys, tmp_path / "run") == fingerprint(capsys, run)


@pytest.mark.parametrize(("options", "message"), [
    (("--scheduler", "tcp://127.0.0.1:1"), "--scheduler is a dask cluster's: say --engine dask too, or leave it out"),
    (("--engine", "dask", "--scheduler", "tcp://127.0.0.1:1", "--jobs", 2), "leave --jobs out"), (("--timeout", 0), "audit: --timeout must be a number of seconds above 0, got '0'; see"),
    (("--timeout", "soon"), "--timeout must be a number of seconds above 0, got 'soon'"), (("--timeout", "inf"), "above 0, got 'inf'"),
    (("--jobs", 0), "audit: --jobs must be a whole number >= 1, got '0'; see"), (("--jobs", "two"), "--jobs must be a whole number >= 1, got 'two'"), (("--engine", "ray"), "invalid choice"), (("--keep", "some"), "invalid choice")])
def test_what_cannot_be_is_one_line(tmp_path, capsys, options, message):
    code, out, err = said(capsys, *AUDIT, "--out", tmp_path / "run", *options)
    assert (code, out) == (2, "")
    assert message in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("error", "code"), [
    (ConnectionError("the dask cluster is gone"), 75), (OSError(errno.ENOSPC, "full"), 75), (OSError(errno.EDQUOT, "full"), 75),
    (OSError(errno.EIO, "faulty"), 75), (PermissionError(errno.EACCES, "no"), 2), (FileNotFoundError(errno.ENOENT, "no"), 2), (ValueError("no"), 2)])
def test_what_may_work_later_has_an_exit_code_of_its_own(tmp_path, capsys, monkeypatch, error, code):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr("whytrust.auditing.run", fails)
    found, out, err = said(capsys, *AUDIT, "--out", tmp_path / "run")
    assert (found, out, err.count("\n")) == (code, "", 1)


def test_scores_alone_are_kept_and_the_page_is_made_without_pictures(run, capsys, tmp_path):
    store = Store.open(run)
    assert all(not store.arrays(record["case"]) for record in store.records())
    assert said(capsys, "report", run, "--html", tmp_path / "page.html")[0] == 0
    assert "occlusion" in (tmp_path / "page.html").read_text()


def test_a_damaged_run_is_named_and_exits_with_1(run, capsys, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    path = next((tmp_path / "run" / "records").iterdir())
    path.write_bytes(path.read_bytes().replace(b"0.", b"1.", 1))
    code, out, _ = said(capsys, "check", tmp_path / "run")
    assert code == 1
    assert "block 00000: the line of 0" in out
    assert "4 cases are damaged: give the run's command again, which does them anew" in out
    code, _, err = said(capsys, "check", tmp_path / "nowhere")
    assert (code, err.count("\n")) == (2, 1)


def test_the_folder_of_a_paper_is_checked_part_by_part(run, capsys, tmp_path):
    for name in ("one", "two"):
        shutil.copytree(run, tmp_path / "paper" / name)
    code, out, _ = said(capsys, "check", tmp_path / "paper")
    assert code == 0
    assert out.count("are as they were written") == 2


def test_a_run_is_exported_as_one_table(run, capsys, tmp_path):
    pandas = pytest.importorskip("pandas")
    code, out, _ = said(capsys, "export", run, tmp_path / "run.parquet", "--json")
    table = pandas.read_parquet(tmp_path / "run.parquet")
    assert code == 0
    assert json.loads(out)["rows"] == len(table)
    records = {record["case"]: record for record in Store.open(run).records()}
    for case, record in records.items():
        own = table[(table.case == case) & (table.explainer == "occlusion")].set_index("key")
        trial = record["trials"][0]
        assert own.text["trials.0.flip.any"] == trial["flip"]["any"]["occlusion"]
        assert json.loads(own.text["trials.0.scores"]) == trial["scores"]["occlusion"]
        of_case = table[(table.case == case) & table.explainer.isna()].set_index("key")
        assert of_case.value["d"] == record["d"]
        assert of_case.text["trials.0.flip.any.oracle"] == trial["flip"]["any"]["oracle"]
    for name in ("run.csv", "nowhere/run.parquet"):
        code, _, err = said(capsys, "export", run, tmp_path / name)
        assert (code, "must" in err or "is exported to a .parquet file" in err) == (2, True)


def test_pick_goes_on_with_its_folder_and_says_the_same(capsys, tmp_path):
    asked = ["pick", "demo:tabular", "demo", "--limit", 20, "--samples", 100, "--budget", 3, "--json"]
    plain = json.loads(said(capsys, *asked)[1])
    kept = json.loads(said(capsys, *asked, "--run", tmp_path / "run", "--jobs", 2)[1])
    assert kept == plain
    again = json.loads(said(capsys, *asked, "--run", tmp_path / "run")[1])
    assert again == plain
    assert len(Store.open(tmp_path / "run").sessions()) == 2
    code, _, err = said(capsys, *asked[:-1], "--run", tmp_path / "run", "--seed", 1)
    assert code == 2
    assert "holds a run of another spec: seed was 0, now 1" in err


@pytest.mark.skipif(shutil.which("sh") is None, reason="the recipe is for a shell")
@pytest.mark.parametrize(("codes", "end"), [((75, 137, 0), 0), ((75, 1, 0), 1), ((2, 0), 2), ((143, 130, 0), 130)])
def test_the_loop_for_a_weekend_goes_on_and_ends_as_its_table_says(tmp_path, codes, end):
    page = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
    (tmp_path / "weekend.sh").write_text(page.partition("```sh\n")[2].partition("```")[0])
    (tmp_path / "left").write_text("".join(f"{code}\n" for code in codes))
    takes = "code=$(head -n 1 left); tail -n +2 left > rest; mv rest left; echo asked >> asked; exit $code"
    for name, body in (("whytrust", takes), ("sleep", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(["sh", "weekend.sh"], cwd=tmp_path, check=False, timeout=20, capture_output=True,
                          env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"})
    assert done.returncode == end
    assert (tmp_path / "asked").read_text().count("asked") == codes.index(end) + 1
