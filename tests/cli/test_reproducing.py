"""`whytrust reproduce`: one command for two papers, and what its runs are good for afterwards."""

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from studies.humming import demo, hums
from whytrust.cli import main
from whytrust.models import demos
from whytrust.studies import veracity_run


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
    (["plausible", "--data", "nowhere", "--few", "-1"], "few must be a whole number >= 0")])
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
