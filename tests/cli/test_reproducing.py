"""`whytrust reproduce`: one command for several papers, and what its runs are good for afterwards."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from studies import fragile_records
from studies.humming import demo, hums
from whytrust.cli import main
from whytrust.models import demos
from whytrust.studies import fragile_run, veracity_run


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(demos.DEMOS, "singing", demo(0, 1, 2))
    monkeypatch.setattr(veracity_run, "synthesised", lambda seed, count, seconds: hums(7))


def told(*words, code=0):
    def run(capsys):
        assert main([str(word) for word in words]) == code
        return capsys.readouterr()
    return run


def test_drawings_from_the_command_line(small, tmp_path, capsys):
    said = told("reproduce", "veracity", "drawings", "--samples", 64, "--scale", 0.4, "--out", tmp_path / "run")(capsys)
    assert "no --data, so this is run on synthesised music, not on recordings" in said.err
    assert "## Figure 1: shapes drawn onto “no sing”" in said.out
    assert "This is no recorded music" in said.out
    found = json.loads(told("reproduce", "veracity", "drawings", "--out", tmp_path / "run", "--json")(capsys).out)
    assert found["drawings"]["tried"] == 1
    assert found["settings"]["samples"] == 64  # as it was begun, for nothing else was said
    report = told("report", tmp_path / "run")(capsys).out
    assert "figures/figure-1-drawings.png" in report
    assert json.loads(told("report", tmp_path / "run", "--json")(capsys).out)["study"] == "veracity"
    assert "a gate is for the run of an audit" in told("gate", tmp_path / "run", "--require", "lime.flip > random", code=2)(capsys).err


def test_quick_is_two_songs_and_little_of_each(small, tmp_path, capsys):
    told("reproduce", "veracity", "detector", "--quick", "--out", tmp_path / "run")(capsys)
    held = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert held["spec"] | {"each": 2, "samples": 256, "iterations": 60, "variant": "authors"} == held["spec"]
    assert held["spec"]["test"] == ["hum 0", "hum 2"]  # evenly spread
    assert held["spec"]["kinds"] == ["detector"]


@pytest.mark.parametrize(("words", "message"), [
    (["veracity", "flip"], "did you mean 'flips'"),
    (["plausible", "settling"], "experiment must be one of all, accuracy"),
    (["plausible", "--quick"], "--quick belongs to `whytrust reproduce veracity`"),
    (["veracity", "--few", "3"], "--few belongs to `whytrust reproduce plausible`"),
    (["veracity", "--data", "songs"], "--model must name a detector beside --data songs; train one on the same songs with: whytrust "
     "train singing-voice --data songs --out model.safetensors"),
    (["veracity", "--data", "piece.npy"], "ask for drawings"),
    (["veracity", "drawings", "--data", "piece.npy"], "piece.npy"),
    (["veracity", "--samples", "8"], "samples must be a whole number >= 64, got 8"),
    (["plausible", "--data", "nowhere", "--few", "-1"], "few must be a whole number >= 0"),
    (["veracity", "--candidates", "wordnet"], "--candidates belongs to `whytrust reproduce fragile`"),
    (["plausible", "--variant", "authors"], "--variant belongs to `whytrust reproduce fragile` or `whytrust reproduce veracity`"),
    (["fragile", "--few", "3"], "--few belongs to `whytrust reproduce plausible`"),
    (["fragile", "fig2"], "experiment must be one of all, table1"),
    (["fragile"], "--data must name a folder of texts, for runs/fragile holds no run to report on"),
    (["fragile", "--data", "nowhere"], "--data must name a folder, got 'nowhere', which is none"),
    (["fragile", "--models", "minilm,tfidff"], "did you mean 'tfidf'"),
    (["fragile", "--models", ","], "models must name at least one of"),
    (["fragile", "--samples", "8"], "samples must be a whole number >= 50, got 8")])
def test_what_is_wrong_is_one_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    said = told("reproduce", *words, code=2)(capsys)
    assert message in said.err.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_a_run_has_a_folder_by_paper_and_those_that_stand_alone_one_of_their_own():
    assert veracity_run.Asked().folder.as_posix() == "runs/veracity"
    assert veracity_run.Asked("flips").folder.as_posix() == "runs/veracity"
    assert veracity_run.Asked("settling").folder.as_posix() == "runs/veracity-settling"


def test_an_interrupt_says_what_is_safe(small, tmp_path, monkeypatch, capsys):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(veracity_run.engine, "run", interrupted)
    assert "interrupted; nothing had been done yet" in told("reproduce", "veracity", "--out", tmp_path / "run", code=130)(capsys).err


# --- fragile --------------------------------------------------------------------------------------------------------------


def test_fragile_runs_are_reported_on_without_their_data(tmp_path, capsys):
    place = fragile_records.folder_of_runs(tmp_path / "runs", models=("minilm", "tfidf"))
    said = told("reproduce", "fragile", "table3", "--out", place)(capsys).out
    assert "## Table 3: SST-2, LIME, rank correlation" in said
    assert "## Table 1:" not in said
    found = json.loads(told("reproduce", "fragile", "table3", "--out", place, "--json")(capsys).out)
    assert set(found["runs"]) == {"sst2/minilm/lime", "sst2/tfidf/lime"}
    whole = told("report", place)(capsys).out
    assert whole.rstrip("\n") == (place / "tables.md").read_text().rstrip("\n")
    assert "## Table 5: perplexity" in whole
    assert "## Table 7: grammar errors" in whole
    assert "a gate is for the run of an audit" in told("gate", place, "--require", "lime.flip > random", code=2)(capsys).err


def test_an_interrupted_fragile_run_says_what_is_safe(tmp_path, monkeypatch, capsys):
    place = fragile_records.folder_of_runs(tmp_path / "runs", models=("tfidf",))

    def interrupted(asked):
        raise KeyboardInterrupt

    monkeypatch.setattr(fragile_run, "fragile", interrupted)
    said = told("reproduce", "fragile", "--out", place, code=130)(capsys).err
    assert "interrupted; sst2/tfidf/lime: 1 of 1 blocks are finished and safe" in said
    assert "the same command goes on from there" in said
