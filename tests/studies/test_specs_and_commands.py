"""Audits from the command line: specs, reports, gates, plans and comparisons."""

import json
import re
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

from planted import GRID
from studies.specs import SPEC, stop_after, told, written
from whytrust.models.whitebox import MarkedCause, PlantedCause
from whytrust.report import compare
from whytrust.report.audit import Audit
from whytrust.shards import Result, encode
from whytrust.store import Store


def test_an_audit_prints_its_verdicts_and_writes_its_page(place, capsys):
    code, out, _ = told(capsys, "audit", place / "spec.toml", "--out", place / "run")  # done already: read again
    assert code == 0
    assert "better than magnitude" in out
    assert str(place / "run" / "report.html") in out
    assert (place / "run" / "report.html").stat().st_size > 10_000
    assert f"whytrust audit {place / 'spec.toml'} --out {place / 'run'}" in (place / "run" / "report.html").read_text()


def test_a_seed_on_the_command_line_outweighs_the_spec_s(place, tmp_path, capsys):
    code, out, _ = told(capsys, "audit", place / "spec.toml", "--out", tmp_path / "run", "--seed", 3, "--limit", 5, "--json")
    assert code == 0
    assert json.loads(out)["seed"] == 3
    assert json.loads(out)["counts"]["inputs"] == 5


def test_a_dry_run_counts_and_writes_nothing(place, tmp_path, capsys):
    code, out, _ = told(capsys, "audit", place / "spec.toml", "--out", tmp_path / "run", "--dry-run", "--jobs", 2)
    assert code == 0
    assert "24 inputs in blocks of up to 4" in out
    assert "model calls" in out
    assert not (tmp_path / "run").exists()
    code, out, _ = told(capsys, "audit", place / "spec.toml", "--dry-run", "--json")
    expected = json.loads(out)
    # Asked of a block of four and taken times six; the real number is known from the run itself.
    records = list(Store.open(place / "run").records())
    assert expected["calls"] > sum(r["trials"][0]["distinct"] for r in records)


@pytest.mark.parametrize(("text", "message"), [
    (SPEC.replace("draws", "drawz"), r"has the key 'drawz' \(did you mean 'draws'\?\)"),
    (SPEC.replace("model =", "modle ="), r"has the key 'modle' \(did you mean 'model'\?\)"),
    (SPEC.replace('model = "model.py:box"\n', ""), "must say which model"),
    (SPEC.replace("epsilon", "epsilom"), r"did you mean 'epsilon'"),
    (SPEC.replace("inputs.npy", "elsewhere.npy"), "which does not exist"),
    ("model = = 3", "must be a TOML file"),
])
def test_a_spec_that_is_written_wrong_is_one_line_and_exit_2(place, capsys, text, message):
    path = written(place, "wrong.toml", text)
    code, out, err = told(capsys, "audit", path, "--out", place / "wrong")
    assert code == 2
    assert out == ""
    assert len(err.strip().splitlines()) == 1
    assert re.search(message, err)
    assert not (place / "wrong").exists()


def test_a_preset_that_does_not_exist_is_told(capsys):
    code, _, err = told(capsys, "audit", "digitz")
    assert code == 2
    assert "a preset (digits, photos, reviews, singing, tabular) or a .toml file" in err


def test_a_run_folder_of_another_spec_is_refused_and_left_alone(place, capsys):
    before = {p: p.read_bytes() for p in (place / "run").rglob("*") if p.is_file()}
    path = written(place, "other.toml", SPEC.replace("epsilon = 0.5", "epsilon = 0.4"))
    code, _, err = told(capsys, "audit", path, "--out", place / "run")
    assert code == 2
    assert "holds a run of another spec: attack.epsilon was 0.5, now 0.4" in err
    assert {p: p.read_bytes() for p in before} == before


def test_a_full_disk_is_told_and_the_same_command_goes_on(place, tmp_path, capsys, monkeypatch):
    from whytrust import store
    puts, left = store.Store.put, [2]

    def full(self, block, shard):
        if not left[0]:
            with self.telling(f"block {block.id}"):
                raise OSError(28, "No space left on device")
        left[0] -= 1
        puts(self, block, shard)

    monkeypatch.setattr(store.Store, "put", full)
    code, _, err = told(capsys, "audit", place / "spec.toml", "--out", tmp_path / "run")
    assert code == 75  # the same command may go on later
    assert "No space left on device" in err
    assert "2 of 6 blocks are finished and safe" in err
    monkeypatch.setattr(store.Store, "put", puts)
    assert told(capsys, "audit", place / "spec.toml", "--out", tmp_path / "run")[0] == 0
    same = [(tmp_path / "run" / "records" / p.name).read_bytes() == p.read_bytes() for p in (place / "run" / "records").iterdir()]
    assert all(same)


def test_ctrl_c_says_what_is_safe(place, tmp_path, capsys, monkeypatch):
    stop_after(monkeypatch, 3)
    code, _, err = told(capsys, "audit", place / "spec.toml", "--out", tmp_path / "run")
    assert code == 130
    assert "interrupted; 3 of 6 blocks are finished and safe" in err
    assert "the same command goes on from there" in err


# --- reports, gates, plans, comparisons -------------------------------------------------------------------------------


def test_a_report_is_read_from_the_run_alone(place, tmp_path, capsys):
    code, out, _ = told(capsys, "report", place / "run")
    assert code == 0
    assert "better than magnitude" in out
    code, out, _ = told(capsys, "report", place / "run", "--html", tmp_path / "p.html", "--json")
    assert json.loads(out)["verdicts"][0]["kind"] == "better_than_magnitude"
    assert (tmp_path / "p.html").is_file()
    code, _, err = told(capsys, "report", tmp_path)
    assert code == 2
    assert len(err.splitlines()) == 1


def with_lost_case(run, case):
    """Make a case of a run one whose worker was lost: then the record says no name."""
    store = Store.open(run)
    block = next(block for block in store.blocks if case in block.cases)
    results = [Result(store.record(one) if one != case else {"case": one, "status": "failed", "error": "set aside: it was lost"})
               for one in block.cases]
    for path, data in zip((run / f"records/{block.id}.jsonl", run / f"arrays/{block.id}.npz"), encode(block, results, store.form), strict=True):
        path.write_bytes(data)


def test_an_input_that_was_set_aside_is_called_by_its_name(place, tmp_path, capsys):
    shutil.copytree(place / "run", tmp_path / "run")
    with_lost_case(tmp_path / "run", "00005")
    _, out, _ = told(capsys, "report", tmp_path / "run", "--html", tmp_path / "page.html", "--json")
    assert json.loads(out)["failures"] == [{"case": "00005", "name": "input 5", "error": "set aside: it was lost"}]
    assert re.search("input 5.{0,80}set aside", (tmp_path / "page.html").read_text(), re.DOTALL)
    assert "the first failed input, input 5: set aside: it was lost" in told(capsys, "report", tmp_path / "run")[1]
    store = Store.open(tmp_path / "run")
    del store.manifest["hashes"]["inputs"]["input 3"]  # then which name is whose is not known
    assert Audit(store).findings["failures"][0]["name"] == "case 00005"


@pytest.mark.parametrize(("rule", "code", "words"), [
    ("occlusion.flip@3 > random", 0, "holds"),
    ("occlusion.flip > magnitude", 0, "holds"),
    ("occlusion.recovery > 0.9", 0, "holds"),
    ("occlusion.flip < 0.5", 1, "the other way round"),
    ("random.flip > occlusion", 1, "the other way round"),
    ("made_up.flip > random", 2, "undecided"),
    ("lime.flip@1 > occlusion", 2, "undecided"),
])
def test_a_gate_holds_or_does_not_or_cannot_tell(place, capsys, rule, code, words):
    found, out, _ = told(capsys, "gate", place / "run", "--require", rule)
    assert (found, words in out) == (code, True)
    found, out, _ = told(capsys, "gate", place / "run", "--require", rule, "--json")
    assert json.loads(out)[0]["code"] == found == code


def test_a_gate_of_several_rules_is_as_strong_as_the_weakest(place, capsys):
    assert told(capsys, "gate", place / "run", "--require", "occlusion.flip > random", "--require", "lime.flip > random")[0] == 0
    assert told(capsys, "gate", place / "run", "--require", "occlusion.flip > random", "--require", "occlusion.flip < 0.5")[0] == 1


def test_a_gate_does_not_pass_a_run_that_is_not_finished_or_damaged(place, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(place / "run", run)
    for file in ("records/00001.jsonl", "arrays/00001.npz"):
        (run / file).unlink()
    holds = ("gate", run, "--require", "occlusion.flip > random")
    code, out, err = told(capsys, *holds)
    assert (code, err) == (2, "")
    assert "undecided: 4 of 24 inputs are not done yet; give the run's command again, which goes on. What is there holds: " in out
    code, out, _ = told(capsys, "gate", run, "--require", "occlusion.flip < 0.5")
    assert (code, "; 4 of 24 inputs are not done yet" in out) == (1, True)
    path = run / "records/00003.jsonl"
    path.write_bytes(path.read_bytes().replace(b"0.", b"1.", 1))
    code, out, err = told(capsys, *holds)
    assert code == 2
    assert "undecided: 8 of 24 inputs are not done, or damaged" in out
    assert "block 00003 is damaged (the line of 00012 does not have its checksum)" in err
    assert "8 of 24 inputs are not done, or damaged" in told(capsys, "report", run)[1]


@pytest.mark.parametrize(("gone", "code", "words"), [
    (("records/00001.jsonl", "arrays/00001.npz"), 0, "; 4 cases are not done yet: the run's command goes on"),
    (("records/00001.jsonl",), 1, "block 00001: its arrays are there, and its records were lost or never written"),
    (("arrays/00001.npz",), 1, "; 4 cases are damaged: give the run's command again, which does them anew\n")])
def test_a_check_tells_what_is_not_done_from_what_is_damaged(place, tmp_path, capsys, gone, code, words):
    shutil.copytree(place / "run", tmp_path / "run")
    for file in gone:
        (tmp_path / "run" / file).unlink()
    found, out, _ = told(capsys, "check", tmp_path / "run")
    assert (found, words in out, "20 records and" in out) == (code, True, True)
    told_in_numbers = json.loads(told(capsys, "check", tmp_path / "run", "--json")[1])[str(tmp_path / "run")]
    assert (told_in_numbers["left"], told_in_numbers["lost"]) == ((4, 0) if code == 0 else (0, 4))


@pytest.mark.parametrize(("rule", "message"), [
    ("lime > random", "EXPLAINER.MEASURE > OTHER"), ("lime.flop > random", "did you mean 'flip'"),
    ("lmie.flip > random", "did you mean 'lime'"), ("lime.flip > rnadom", "did you mean 'random'"),
])
def test_a_rule_that_is_written_wrong_is_told(place, capsys, rule, message):
    code, _, err = told(capsys, "gate", place / "run", "--require", rule)
    assert code == 2
    assert message in err


def test_equal_explainers_do_not_pass_a_gate_and_with_enough_cases_fail_it(place):
    import whytrust as wt
    from whytrust.explainers.baselines import Random
    from whytrust.report import gates
    box = wt.model(PlantedCause(GRID == 5), output="logit")
    attack = {"method": "pgd", "epsilon": 0.5, "units": "input", "iterations": 10}
    found = wt.audit(box, list(PlantedCause(GRID == 5).inputs(600)), {"chance": Random()}, "grid:4x4", attack, "flip",
                     place / "blind", fill=0.0, draws=3)
    assert gates.check(found.store, ["chance.flip > random"])[0].code == 1


def test_a_plan_says_how_many_inputs_are_needed(capsys):
    code, out, _ = told(capsys, "plan", "--effect", 0.05, "--power", 0.8, "--discordant", 0.11, "--json")
    assert code == 0
    # (1.96 + 0.84)² · (0.11 − 0.05²) / 0.05² for large n, and a little more for Student and the made-up pairs
    assert 337 <= json.loads(out)["inputs"]["0.11"] <= 370
    code, out, _ = told(capsys, "plan")
    assert "adversaries, where the two differ on 25% of the inputs" in out
    assert told(capsys, "plan", "--effect", 2)[0] == 2


def test_two_runs_are_compared_case_by_case_where_their_inputs_are_the_same(place, tmp_path, capsys):
    path = written(place, "more.toml", SPEC.replace("samples = 60", "samples = 200"))
    assert told(capsys, "audit", path, "--out", tmp_path / "more")[0] == 0
    code, out, _ = told(capsys, "diff", place / "run", tmp_path / "more", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["paired"] is True
    assert {row["name"]: row["value"] for row in found["rows"]}["occlusion"] == 0
    assert [s for s in found["settings"] if s["key"] == "explainers.lime.samples"] == [
        {"key": "explainers.lime.samples", "first": 60, "second": 200}]
    code, out, _ = told(capsys, "diff", place / "run", tmp_path / "more")
    assert "explainers.lime.samples was 60, is 200" in out
    assert "no difference beyond chance" in out


def test_other_inputs_are_one_line_of_a_comparison_and_no_other_model(place, tmp_path, capsys):
    for limit in (14, 12):
        assert told(capsys, "audit", place / "spec.toml", "--limit", limit, "--out", tmp_path / f"of{limit}")[0] == 0
    chosen = [set(np.linspace(0, 23, limit).round().astype(int).tolist()) for limit in (14, 12)]
    one, other = (Store.open(tmp_path / f"of{limit}").manifest["hashes"]["model"] for limit in (14, 12))
    assert one != other  # what the model says of the first inputs, which are others
    _, out, _ = told(capsys, "diff", tmp_path / "of14", tmp_path / "of12")
    line, = [line for line in out.splitlines() if line.startswith("  inputs: ")]
    first = sorted(chosen[0] - chosen[1])
    assert f"{len(first)} are only in the first ({', '.join(f'input {i}' for i in first[:3])}, …)" in line
    assert f"{len(chosen[1] - chosen[0])} are only in the second (" in line
    assert [line for line in out.splitlines() if "settings" in line] == ["  settings: limit was 14, is 12"]


def test_an_input_that_was_changed_and_another_model_are_told():
    one, other = ({"hashes": {"inputs": {"a": "1", "b": changed}, "model": model}} for changed, model in (("2", "x"), ("3", "x")))
    assert compare._inputs(one, other) == {"only_first": [], "only_second": [], "changed": ["b"]}
    assert compare._of_inputs(compare._inputs(one, other)) == ["  inputs: 1 has another content, class or place (b)"]
    again = {"hashes": {"inputs": {"a": "1", "b": "2"}, "model": "y"}}
    assert compare._settings(one, again) == [{"key": "content.model", "first": "x", "second": "y"}]


def test_runs_of_other_inputs_are_compared_by_their_rates(place, tmp_path, capsys):
    np.save(place / "others.npy", MarkedCause(GRID).inputs(10, seed=9))
    path = written(place, "others.toml", SPEC.replace("inputs.npy", "others.npy"))
    told(capsys, "audit", path, "--out", tmp_path / "run")
    _, out, _ = told(capsys, "diff", place / "run", tmp_path / "run", "--json")
    assert json.loads(out)["paired"] is False


def test_a_run_that_was_killed_goes_on_from_the_command_line(place, tmp_path):
    run = tmp_path / "run"
    words = [sys.executable, "-m", "whytrust", "audit", str(place / "spec.toml"), "--out", str(run)]
    first = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while first.poll() is None and not list(run.glob("records/*.jsonl")):
        time.sleep(0.01)
    first.kill()
    first.wait()
    assert list(run.glob("records/*.jsonl"))
    assert "better than magnitude" in subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert {p.name: p.read_bytes() for p in run.glob("records/*")} == {p.name: p.read_bytes() for p in place.glob("run/records/*")}
