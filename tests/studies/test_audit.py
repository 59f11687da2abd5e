"""Whole audits of models whose reasons are known, from Python: verdicts, resume, jobs, and what a user can get wrong."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import whytrust as wt
from planted import GRID, marked_box, planted_net, white_box
from whytrust import engine
from whytrust.attacks import PGD
from whytrust.cli import main
from whytrust.explainers import NAMES
from whytrust.explainers.baselines import Random
from whytrust.explainers.occlusion import Occlusion
from whytrust.explanation import Explanation
from whytrust.models.whitebox import MarkedCause, PlantedCause
from whytrust.report import compare, gates

BOX, MARKED = white_box(part=5), marked_box()
INPUTS, MOVING = PlantedCause(GRID == 5).inputs(160), MarkedCause(GRID).inputs(160)
ATTACK = PGD(epsilon=0.5, units="input", bounds=None, iterations=20, stop="never")
FAR = 4 * np.sqrt((15**2 - 1) / 12) / 15 / np.sqrt(160)
"""Four standard errors of a blind order's mean flips: the part that decides comes at any of 16 places."""
SOUND = {"lime": {"samples": 120}, "saliency": {}, "integrated_gradients": {"steps": 6}, "occlusion": {}}


class Inverted:
    """Occlusion upside down."""

    def __call__(self, question, rng):
        found = Occlusion()(question, rng)
        return Explanation.of(question, "inverted", -found.scores)


@pytest.fixture(scope="module")
def audit(tmp_path_factory):
    explainers = {**SOUND, "random scores": Random(), "inverted": Inverted()}
    return wt.audit(MARKED, list(MOVING), explainers, "grid:4x4", ATTACK, fill=0.0, draws=10, out=tmp_path_factory.mktemp("audit") / "run")


def test_sound_explainers_recover_the_planted_cause(audit):
    rates = {row["name"]: row for row in audit.table()}
    for name in SOUND:
        assert rates[name]["flip@1"] >= 0.95
        assert rates[name]["recovery@1"] >= 0.95
        assert rates[name]["verdict"].startswith("better than magnitude")
    assert rates["oracle"]["flip@1"] == 1.0


def test_random_is_at_its_expectation(audit):
    rates = {row["name"]: row for row in audit.table()}
    # k of 16 parts hold the one that decides with chance k / 16, so that the mean over k = 1 … 15 is ½.
    assert rates["random"]["flip"] == pytest.approx(0.5, abs=FAR / np.sqrt(10))
    assert rates["random"]["recovery@1"] == pytest.approx(1 / 16)
    assert rates["random scores"]["flip"] == pytest.approx(0.5, abs=FAR)


def test_random_scores_and_inverted_ones_are_told(audit):
    verdicts = audit.verdicts()
    assert verdicts["random scores"].startswith(("no better than a blind guess", "undecided"))
    assert not verdicts["random scores"].startswith(("better", "worse"))
    assert verdicts["inverted"].startswith("worse than random")


def test_with_enough_cases_random_scores_are_no_better_than_random(tmp_path):
    many = PlantedCause(GRID == 5).inputs(900, seed=1)
    found = wt.audit(BOX, list(many), {"random scores": Random()}, "grid:4x4", ATTACK, "flip", tmp_path / "run", fill=0.0, draws=3)
    assert found.verdicts()["random scores"] == "no better than a blind guess"


class Fixed:
    """A map that is the same for every input and every model."""

    def __init__(self, where):
        self.where = where

    def __call__(self, question, rng):
        return Explanation.of(question, "fixed", question.parts.pool(self.where, "mean"), sense="nothing", map=self.where.astype(np.float32))


def test_an_explainer_that_sees_nothing_never_wins_where_causes_lie_in_the_middle(tmp_path):
    middle = MarkedCause(GRID).inputs(160, among=(5, 6, 9, 10))
    rows, columns = np.mgrid[:8, :8] - 3.5
    explainers = {"occlusion": {}, "blob": Fixed(np.exp(-(rows**2 + columns**2) / 8)), "edges": {}}
    found = wt.audit(MARKED, list(middle), explainers, "grid:4x4", ATTACK, out=tmp_path / "run", fill=0.0, draws=10)
    rates = {row["name"]: row for row in found.table()}
    flip = found.findings["measures"]["flip"]
    assert flip["against_random"]["blob"]["p"] < 1e-6  # random parts are too weak a floor
    assert flip["against_magnitude"]["blob"]["p"] < 1e-6
    assert rates["blind"]["flip"] >= rates["blob"]["flip"] - 0.02
    assert rates["blob"]["verdict"].startswith("no better than a blind guess")
    assert not rates["edges"]["verdict"].startswith("better")
    assert rates["occlusion"]["verdict"] == "better than magnitude"


def test_a_cause_that_never_moves_can_be_guessed(tmp_path):
    found = wt.audit(BOX, list(INPUTS), {"occlusion": {}}, "grid:4x4", ATTACK, "flip", tmp_path / "run", fill=0.0, draws=10)
    assert found.verdicts()["occlusion"] == "no better than a blind guess (which finds all there is)"
    assert found.findings["measures"]["flip"]["blind"]["shuffled:occlusion"]["value"] == 1.0


def test_gates_and_comparisons_know_the_blind_controls(audit):
    codes = {text: gates.check(audit.store, [text])[0].code for text in (
        "occlusion.flip > blind", "occlusion.flip > blind:centre", "occlusion.recovery > blind:shuffled", "random scores.flip > blind",
        "inverted.flip@3 > blind", "blind.flip < oracle")}
    assert list(codes.values()) == [gates.HOLDS] * 3 + [codes["random scores.flip > blind"], gates.FAILS, gates.HOLDS]
    assert codes["random scores.flip > blind"] != gates.HOLDS
    with pytest.raises(ValueError, match="blind:cente"):
        gates.check(audit.store, ["occlusion.flip > blind:cente"])
    assert "blind" in {row["name"] for row in compare.compared(audit.store, audit.store)["rows"]}


def test_magnitude_knows_nothing_where_everything_is_changed_alike(audit):
    rates = {row["name"]: row for row in audit.table()}
    assert rates["magnitude"]["flip"] == pytest.approx(0.5, abs=FAR)
    assert rates["magnitude"]["recovery@1"] == 1.0


def test_the_normalised_score_runs_from_random_to_the_oracle(audit):
    normalised = {row["name"]: row["normalised"] for row in audit.table()}
    assert normalised["occlusion"] == pytest.approx(1.0)
    assert abs(normalised["random scores"]) < 0.2
    assert normalised["inverted"] == pytest.approx(-1.0, abs=0.1)


def test_the_page_and_the_json_hold_what_was_found(audit, tmp_path):
    page = audit.save_html(tmp_path / "audit.html").read_text(encoding="utf-8")
    assert audit.save(tmp_path / "a.html").read_text(encoding="utf-8") == page
    assert json.loads(audit.save(tmp_path / "a.json").read_text(encoding="utf-8")) == json.loads(json.dumps(audit.to_json()))
    with pytest.raises(ValueError, match=r"must end in .html or .json, got 'a.docx'"):
        audit.save(tmp_path / "a.docx")
    for words in ("better than magnitude", "worse than random", "occlusion", "inverted"):
        assert words in page
    data = json.loads(json.dumps(audit.to_json(), allow_nan=False))
    assert data["counts"] == {"inputs": 160, "adversaries": 160, "not_fooled": 0, "failed": 0, "left": 0}
    assert "worse than random" in str(audit)
    assert repr(audit) == "<audit of MarkedCause: 160 adversaries of 160 inputs>"


def test_every_method_of_the_catalogue_that_explains_the_model_recovers_a_net_s_cause(tmp_path):
    """As a torch net, for those that need its layers; the two of the catalogue that do not look at a model are left out."""
    net, inputs = planted_net(), INPUTS[:20, None].astype(np.float32)
    model = wt.model(net, output="logit", layout="NCHW", classes=["dark", "bright"])
    np.testing.assert_allclose(model.raw(inputs), PlantedCause(GRID == 5)(INPUTS[:20]), atol=1e-5)
    fewer = {"lime": {"samples": 120}, "kernel_shap": {"samples": 120}, "integrated_gradients": {"steps": 6}}
    sound = {name: {**fewer.get(entry.name.partition("/")[0], {}), **({"samples": 4} if entry.smoothing else {})}
             for name, entry in NAMES.items() if entry.goal != "nothing"}
    bright = INPUTS + 0.5 * (GRID == 5)  # all inputs are dark, and windows learn from training inputs of both labels
    sound["parzen"] = {"background": np.concatenate([INPUTS, bright])[:, None].astype(np.float32), "width": 4.0}
    assert {"guided_backprop", "grad_cam", "excitation_backprop/vargrad"} <= set(sound)
    found = wt.audit(model, list(inputs), sound, "grid:4x4", ATTACK, ["flip", "recovery"], tmp_path / "run", fill=0.0, draws=3)
    rates = {row["name"]: row for row in found.table()}
    for name in sound:
        assert rates[name]["flip@1"] >= 0.95, name
        assert rates[name]["recovery@1"] >= 0.95, name
    assert rates["oracle"]["flip@1"] == 1.0
    assert rates["magnitude"]["flip@1"] < 0.5


# --- the same bits ----------------------------------------------------------------------------------------------------


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for kind in ("records", "arrays") for p in sorted((folder / kind).iterdir())}


def run(folder, **options):
    return wt.audit(BOX, list(INPUTS[:11]), SOUND, "grid:4x4", ATTACK, fill=0.0, draws=2, block=3, out=folder, **options)


def test_jobs_change_nothing(tmp_path):
    run(tmp_path / "one", jobs=1)
    run(tmp_path / "two", jobs=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_an_interrupted_audit_goes_on_to_the_same_records(tmp_path, monkeypatch):
    run(tmp_path / "whole")
    puts = engine.Store.put
    for stop in range(4):
        def put(store, block, shard, left=[stop]):  # noqa: B006
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            puts(store, block, shard)

        folder = tmp_path / f"stopped {stop}"
        monkeypatch.setattr(engine.Store, "put", put)
        with pytest.raises(KeyboardInterrupt):
            run(folder)
        monkeypatch.setattr(engine.Store, "put", puts)
        assert len(list((folder / "records").iterdir())) == stop
        run(folder)
        assert contents(folder) == contents(tmp_path / "whole")


@pytest.mark.parametrize("seed", range(20))
def test_an_audit_interrupted_at_a_random_model_call_goes_on_to_the_same_records(tmp_path, monkeypatch, seed, calls_and_records):
    calls, records = calls_and_records
    left = Countdown(monkeypatch, int(np.random.default_rng(seed).integers(calls)))
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run")
    assert left.count < 0
    monkeypatch.undo()
    before = contents(tmp_path / "run")
    run(tmp_path / "run")
    assert contents(tmp_path / "run") == records
    assert before.items() <= records.items()  # what was there stayed


@pytest.fixture(scope="module")
def calls_and_records(tmp_path_factory):
    """How often the model is called in a whole run, and the run's files."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        count = Countdown(patch, 10**9)
        run(folder)
    return 10**9 - count.count, contents(folder)


class Countdown:
    """Ctrl-C at a call of the white box, whoever asks it."""

    def __init__(self, patch, count):
        self.count, plain = count, PlantedCause._logits

        def logits(box, values):
            self.count -= 1
            if self.count < 0:
                raise KeyboardInterrupt
            return plain(box, values)

        patch.setattr(PlantedCause, "_logits", logits)


def test_another_seed_is_another_run(tmp_path):
    run(tmp_path / "a", seed=0)
    with pytest.raises(ValueError, match=r"holds a run of another spec.*seed"):
        run(tmp_path / "a", seed=1)
    run(tmp_path / "b", seed=1)
    assert contents(tmp_path / "a") != contents(tmp_path / "b")


def test_another_model_or_other_inputs_are_another_run(tmp_path):
    wt.audit(BOX, list(INPUTS[:2]), ["occlusion"], "grid:4x4", ATTACK, out=tmp_path / "run", fill=0.0)
    with pytest.raises(ValueError, match="another spec"):
        wt.audit(white_box(part=6), list(INPUTS[:2]), ["occlusion"], "grid:4x4", ATTACK, out=tmp_path / "run", fill=0.0)
    with pytest.raises(ValueError, match="another spec"):
        wt.audit(BOX, list(INPUTS[1:3]), ["occlusion"], "grid:4x4", ATTACK, out=tmp_path / "run", fill=0.0)
    with pytest.raises(ValueError, match=r"another spec.*explainers"):
        wt.audit(BOX, list(INPUTS[:2]), ["saliency"], "grid:4x4", ATTACK, out=tmp_path / "run", fill=0.0)


# --- strengths and sources --------------------------------------------------------------------------------------------


def test_strengths_are_tried_on_the_same_parts_and_told(tmp_path):
    attack = {"method": "pgd", "epsilon": 0.5, "units": "input", "bounds": None, "iterations": 20, "strengths": [0, 4.0]}
    found = wt.audit(BOX, list(INPUTS[:20]), SOUND, "grid:4x4", attack, out=tmp_path / "run", fill=0.0, draws=3)
    told = found.findings["strengths"]
    assert told["names"] == ["margin 0", "margin 4", "full"]
    assert told["adversaries"] == [20, 20, 20]
    assert told["stable"] is True
    margins = {t["strength"]: t["attack"]["margin"] for t in next(iter(found.store.records()))["trials"]}
    assert 0 < margins["margin 0"] < margins["margin 4"] < margins["full"]
    assert margins["margin 4"] >= 4


def test_a_ranking_that_turns_with_strength_is_no_finding(tmp_path):
    class Fickle:
        """Right where the change is large, wrong where it is small."""

        def __call__(self, question, rng):
            scores = Occlusion()(question, rng).scores
            return Explanation.of(question, "fickle", scores if question.input.max() > 0.6 else -scores)

    attack = {"method": "pgd", "epsilon": 0.5, "step": 0.02, "units": "input", "bounds": None, "iterations": 40, "strengths": [0]}
    found = wt.audit(BOX, list(INPUTS[:40]), {"fickle": Fickle(), "saliency": "saliency"}, "grid:4x4", attack, "flip",
                     tmp_path / "run", fill=0.0, draws=3)
    assert found.findings["strengths"]["stable"] is False
    assert found.findings["strengths"]["unstable"] == ["fickle"]
    assert "unstable" in found.verdicts()["fickle"]
    assert "Unstable, and no finding" in str(found)


def test_inputs_that_share_a_source_widen_the_intervals(tmp_path):
    apart = wt.audit(BOX, list(INPUTS[:40]), {"random scores": Random()}, "grid:4x4", ATTACK, out=tmp_path / "a", fill=0.0)
    shared = wt.audit(BOX, list(INPUTS[:40]), {"random scores": Random()}, "grid:4x4", ATTACK, out=tmp_path / "b", fill=0.0,
                      groups=[f"film {i % 4}" for i in range(40)])
    wide = [found.findings["measures"]["flip"]["rates"]["random scores"] for found in (apart, shared)]
    assert wide[0]["sources"] == 40
    assert wide[1]["sources"] == 4
    assert wide[1]["high"] - wide[1]["low"] > wide[0]["high"] - wide[0]["low"]


def test_true_labels_give_the_accuracy_before_and_after(tmp_path):
    found = wt.audit(BOX, list(INPUTS[:8]), ["occlusion"], "grid:4x4", ATTACK, "flip", tmp_path / "run", fill=0.0,
                     labels=["dark"] * 6 + ["bright"] * 2)
    assert found.findings["attack"]["accuracy_before"] == 0.75
    assert found.findings["attack"]["accuracy_after"] == 0.25


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_one_failing_input_is_recorded_and_the_others_go_on(tmp_path):
    inputs = [INPUTS[0], np.full((8, 8), np.nan), INPUTS[1]]
    found = wt.audit(BOX, inputs, ["occlusion"], "grid:4x4", ATTACK, out=tmp_path / "run", fill=0.0)
    assert found.findings["counts"]["failed"] == 1
    assert "must have finite pixels" in found.findings["failures"][0]["error"]
    assert "1 failed" in str(found)


def test_an_explainer_that_always_fails_is_told_and_judged_by_nobody(tmp_path):
    def broken(question, rng):
        raise RuntimeError("no luck")

    found = wt.audit(BOX, list(INPUTS[:3]), {"occlusion": "occlusion", "broken": broken}, "grid:4x4", ATTACK,
                     out=tmp_path / "run", fill=0.0)
    assert found.findings["explainer_failures"]["broken"]["count"] == 3
    assert "no luck" in str(found)
    assert found.verdicts()["broken"] == "undecided: it explained none of the cases"


TINY = PGD(epsilon=1e-6, units="input", bounds=None, iterations=2)
NONE = "no input could be fooled with this attack; try a stronger one"


def test_no_adversary_at_all_is_a_finding(tmp_path):
    found = wt.audit(BOX, list(INPUTS[:3]), ["occlusion", "saliency"], "grid:4x4", TINY, out=tmp_path / "run", fill=0.0)
    assert found.findings["counts"] == {"inputs": 3, "adversaries": 0, "not_fooled": 3, "failed": 0, "left": 0}
    assert {name: words[:len("undecided: ") + len(NONE)] for name, words in found.verdicts().items()} == dict.fromkeys(
        ("occlusion", "saliency"), f"undecided: {NONE}")
    assert [(row["name"], row["verdict"][:9]) for row in found.table()] == [("occlusion", "undecided"), ("saliency", "undecided")]
    assert "0 of 3 inputs were fooled" in str(found)
    assert "No input could be fooled" in str(found)
    assert json.loads(json.dumps(found.to_json()))["attack"]["success"]["value"] == 0
    page = found.save_html(tmp_path / "page.html").read_text()
    assert "None of 3 inputs could be changed" in page
    assert "No input could be fooled with this attack" in page
    assert re.search(r"\bnan\b", page, re.IGNORECASE) is None
    assert str(wt.Audit.open(tmp_path / "run")) == str(found)


def test_a_gate_on_no_adversary_is_undecided_and_a_comparison_says_what_there_is(tmp_path, capsys):
    wt.audit(BOX, list(INPUTS[:3]), ["occlusion"], "grid:4x4", TINY, out=tmp_path / "none", fill=0.0)
    wt.audit(BOX, list(INPUTS[:3]), ["occlusion"], "grid:4x4", ATTACK, out=tmp_path / "some", fill=0.0)
    for rule in ("occlusion.flip > random", "occlusion.flip@3 < .5"):
        assert main(["gate", str(tmp_path / "none"), "--require", rule]) == 2
        assert f"{rule}: undecided: {NONE}" in capsys.readouterr().out
    for wrong, message in (("occlusion.flip", "a requirement is written"), ("oclusion.flip > random", "did you mean 'occlusion'")):
        assert main(["gate", str(tmp_path / "none"), "--require", wrong]) == 2
        assert message in capsys.readouterr().err
    assert main(["diff", str(tmp_path / "none"), str(tmp_path / "some")]) == 0
    assert main(["report", str(tmp_path / "none")]) == 0
    assert "No input could be fooled" in capsys.readouterr().out


def test_inputs_that_failed_beside_those_that_were_not_fooled_are_told(tmp_path):
    inputs = [*INPUTS[:2], np.full_like(INPUTS[0], np.nan)]
    found = wt.audit(BOX, inputs, ["occlusion"], "grid:4x4", TINY, out=tmp_path / "run", fill=0.0)
    assert (found.findings["counts"]["not_fooled"], found.findings["counts"]["failed"]) == (2, 1)
    assert "must have finite pixels" in str(found)
    assert "all 2 inputs that were attacked" in str(found)


def test_a_regressor_is_refused_by_name(tmp_path):
    with pytest.raises(TypeError, match=r"has one output and is read as a regressor"):
        wt.audit(PlantedRegressor(), list(INPUTS[:3]), ["occlusion"], "grid:4x4", ATTACK, out=tmp_path / "run")


class PlantedRegressor(PlantedCause):
    def __init__(self):
        super().__init__(GRID == 5)

    def __call__(self, batch):
        return super().__call__(batch)[:, 1]


@pytest.mark.parametrize(("wrong", "message"), [
    ({"explainers": ["lmie"]}, r"did you mean 'lime'"),
    ({"explainers": []}, "at least one explainer beside the baselines"),
    ({"explainers": ["lime", "lime"]}, "different names, got 'lime' twice"),
    ({"explainers": {"oracle": Random()}}, "'oracle' is a baseline that an audit always has"),
    ({"explainers": {"lime": {"smaples": 5}}}, r"did you mean 'samples'"),
    ({"attack": "pdg"}, r"did you mean 'pgd'"),
    ({"attack": {"method": "pgd", "epsilom": 1}}, r"did you mean 'epsilon'"),
    ({"attack": {"method": "pgd", "strengths": [-1]}}, "strengths must be margins"),
    ({"attack": "nearest"}, "pass background="),
    ({"trials": ["flips"]}, r"did you mean 'flip'"),
    ({"cut_on": "both"}, "cut_on must be"),
    ({"seed": -1}, "seed must be a whole number"),
    ({"block": 0}, "block must be a whole number"),
    ({"fil": 0.0}, r"no option 'fil' \(did you mean 'fill'"),
    ({"draws": 0}, "draws must be"),
    ({"groups": ["a"]}, "groups must have one entry for each input: expected 3, got 1"),
    ({"labels": ["dark", "bright", "grey"]}, "1 of 3 are not, such as 'grey'"),
    ({"labels": [0, 1, 7]}, "labels must be classes of the model, 0 to 1, got 7"),
])
def test_what_is_written_wrong_is_told_before_anything_is_done(tmp_path, wrong, message):
    options = {"explainers": ["occlusion"], "parts": "grid:4x4", "attack": ATTACK, "fill": 0.0, **wrong}
    with pytest.raises((ValueError, TypeError), match=message):
        wt.audit(BOX, list(INPUTS[:3]), out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


def test_one_input_is_no_audit():
    with pytest.raises(ValueError, match="this needs several inputs"):
        wt.audit(BOX, INPUTS[0], ["occlusion"])


def test_an_audit_without_a_folder_is_kept_in_a_temporary_one():
    found = wt.audit(BOX, list(INPUTS[:2]), ["occlusion"], "grid:4x4", ATTACK, "flip", fill=0.0)
    assert Path(found.store.folder, "manifest.json").is_file()


def test_the_full_trial_can_be_cut_on_the_adversary(tmp_path):
    found = wt.audit(BOX, list(INPUTS[:3]), ["occlusion"], "slic:9", ATTACK, "flip", tmp_path / "run", fill=0.0,
                     cut_on="adversarial")
    assert found.findings["counts"]["adversaries"] == 3


# --- what a run is, and what it is not ----------------------------------------------------------------------------------


@pytest.mark.parametrize("other", [{"ks": (3,)}, {"draws": 3}, {"cut_on": "adversarial"}, {"keep": "scores"},
                                   {"batch_size": 2}, {"trials": "flip"}, {"fill": "blur"}])
def test_no_setting_can_change_unnoticed(tmp_path, other):
    options = {"explainers": ["occlusion"], "parts": "grid:4x4", "attack": ATTACK, "fill": 0.0, "draws": 2, "out": tmp_path / "run"}
    wt.audit(BOX, list(INPUTS[:2]), **options)
    with pytest.raises(ValueError, match="another spec"):
        wt.audit(BOX, list(INPUTS[:2]), **{**options, **other})


def test_a_threshold_of_the_model_is_part_of_the_run(tmp_path):
    for limit, error in ((0.5, None), (0.2, "another spec")):
        model = wt.model(PlantedCause(GRID == 5), output="logit", threshold=limit)
        call = lambda: wt.audit(model, list(INPUTS[:2]), ["occlusion"], "grid:4x4", ATTACK, "flip", tmp_path / "run", fill=0.0)  # noqa: B023, E731
        if error is None:
            call()
        else:
            with pytest.raises(ValueError, match=error):
                call()


def test_the_same_call_with_a_function_goes_on(tmp_path):
    def again():
        def mine(question, rng):
            return Explanation.of(question, "mine", np.arange(16.0))
        return mine

    for _ in range(2):
        found = wt.audit(BOX, list(INPUTS[:2]), {"mine": again()}, "grid:4x4", ATTACK, "flip", tmp_path / "run", fill=0.0)
    assert found.findings["sessions"] == 2
    with pytest.raises(ValueError, match="another spec"):
        wt.audit(BOX, list(INPUTS[:2]), {"mine": lambda question, rng: Explanation.of(question, "mine", -np.arange(16.0))}, "grid:4x4",
                 ATTACK, "flip", tmp_path / "run", fill=0.0)


def test_inputs_without_a_source_are_each_one_of_their_own(tmp_path):
    found = wt.audit(BOX, list(INPUTS[:6]), ["occlusion"], "grid:4x4", ATTACK, "flip", tmp_path / "run", fill=0.0,
                     groups=[None, "", float("nan"), "a", "a", "b"])
    assert found.findings["data"]["sources"] == 5


def test_scores_of_the_wrong_shape_are_that_explainer_s_failure_alone(tmp_path):
    bad = {"short": lambda question, rng: Explanation.of(question, "short", np.arange(3.0)),
           "nothing": lambda question, rng: None}
    found = wt.audit(BOX, list(INPUTS[:3]), {"occlusion": "occlusion", **bad}, "grid:4x4", ATTACK, "flip", tmp_path / "run", fill=0.0)
    assert found.findings["counts"]["adversaries"] == 3
    assert found.findings["explainer_failures"]["short"]["count"] == 3
    assert found.verdicts()["nothing"] == "undecided: it explained none of the cases"
    assert "explained none of the cases" in found.save_html(tmp_path / "a.html").read_text()


def test_an_explainer_that_fails_on_half_of_the_cases_is_judged_on_the_others(tmp_path):
    def choosy(question, rng):
        scores = Random()(question, rng)
        if int(question.input.sum() * 1e6) % 2:
            raise ValueError("too hard")
        return scores

    found = wt.audit(BOX, list(INPUTS[:60]), {"choosy": choosy, "random scores": Random()}, "grid:4x4", ATTACK, "flip",
                     tmp_path / "run", fill=0.0, draws=3)
    row = next(row for row in found.findings["verdicts"] if row["name"] == "choosy")
    answered = found.findings["measures"]["flip"]["rates"]["choosy"]["n"]
    assert 0 < answered < 60
    assert f"on the {answered} of 60 cases that it explained" in row["why"]
    values = found.findings["measures"]["flip"]
    assert abs(values["normalised"]["choosy"]) < 0.5
    assert values["against_random"]["choosy"]["n"] == answered


def test_only_parts_that_were_changed_are_to_be_recovered(tmp_path):
    """Two of eight columns differ from the nearest row of the other class; no more than two can be recovered."""
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    rows = pandas.DataFrame(np.ones((40, 8)), columns=list("abcdefgh"))
    rows["a"], rows["b"] = random.uniform(1, 2, 40), random.uniform(1, 2, 40)

    def model(frame):
        above = (frame["a"] + frame["b"] > 3).to_numpy(float)
        return np.column_stack([1 - above, above])

    found = wt.audit(model, rows.iloc[:10], ["occlusion"], background=rows, out=tmp_path / "run")
    for record in found.store.records():
        assert set(record["trials"][0]["recovery"]) == {"1"}
        assert record["trials"][0]["recovery"]["1"].get("found", {"magnitude": 1})["magnitude"] == 1


def test_accuracy_counts_labels_that_turned_elsewhere(tmp_path):
    class Three(PlantedCause):
        """Bright is class 1 of three; the third is never predicted, so that a target of 2 cannot be reached."""

        def __call__(self, batch):
            return np.column_stack([super().__call__(batch), np.full(len(batch), -50.0)])

        def pullback(self, batch, preprocess=None):
            logits, pull = super().pullback(batch)
            return np.column_stack([logits, np.full(len(logits), -50.0)]), lambda weights: pull(weights[:, :2])

    model = wt.model(Three(GRID == 5), output="logit", classes=["dark", "bright", "never"])
    found = wt.audit(model, list(INPUTS[:30]), ["occlusion"], "grid:4x4", {"method": ATTACK, "targets": "random"}, "flip",
                     tmp_path / "run", fill=0.0, labels=["dark"] * 30)
    records = list(found.store.records())
    turned = np.mean([r["label"] != 0 for r in records])
    assert 0 < found.findings["counts"]["not_fooled"] < 30
    assert found.findings["attack"]["accuracy_after"] == pytest.approx(1 - turned)


def test_trials_that_were_not_asked_for_have_no_say(tmp_path):
    found = wt.audit(BOX, list(INPUTS[:6]), {"lime": {"samples": 60}}, "grid:4x4", ATTACK, ["flip", "fidelity"], tmp_path / "a", fill=0.0)
    assert found.findings["admitted"] == ["flip"]
    assert found.findings["fidelity"]
    found = wt.audit(BOX, list(INPUTS[:6]), {"lime": {"samples": 60}}, "grid:4x4", ATTACK, ["flip"], tmp_path / "b", fill=0.0)
    assert found.findings["fidelity"] == []


def test_an_attack_passed_as_an_object_takes_all_its_steps(tmp_path):
    found = wt.audit(BOX, list(INPUTS[:3]), ["occlusion"], "grid:4x4", PGD(epsilon=0.5, units="input", bounds=None, iterations=20), "flip",
                     tmp_path / "run", fill=0.0)
    assert {r["attack"]["iterations"] for r in found.store.records()} == {20}


def test_one_part_and_several_strengths_are_no_crash(tmp_path):
    attack = {"method": "pgd", "epsilon": 0.5, "units": "input", "bounds": None, "strengths": [0]}
    found = wt.audit(BOX, list(INPUTS[:3]), ["occlusion", "saliency"], "grid:1x1", attack, out=tmp_path / "run", fill=0.0)
    assert set(found.verdicts()) == {"occlusion", "saliency"}
    found.save_html(tmp_path / "page.html")
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(("wrong", "message"), [
    ({"explainers": {"one": np.zeros((8, 8))}}, "must be able to explain anew"),
    ({"attack": {"method": "pgd", "targets": [1, 1]}}, "targets must be one class for each input: expected 3, got 2"),
    ({"batch_size": 0}, "batch_size must be a whole number"),
    ({"limit": -1}, "limit must be a whole number >= 1"),
    ({"groups": "folder"}, "'folder' is for a folder of images"),
])
def test_more_that_is_written_wrong(tmp_path, wrong, message):
    options = {"explainers": ["occlusion"], "parts": "grid:4x4", "attack": ATTACK, "fill": 0.0, **wrong}
    with pytest.raises((ValueError, TypeError), match=message):
        wt.audit(BOX, list(INPUTS[:3]), out=tmp_path / "run", **options)


def test_one_number_does_for_ks_and_strengths(tmp_path):
    attack = {"method": "pgd", "epsilon": 0.5, "units": "input", "bounds": None, "targets": "none", "strengths": 1.0}
    found = wt.audit(BOX, list(INPUTS[:3]), {1: "occlusion"}, "grid:4x4", attack, out=tmp_path / "run", fill=0.0, ks=2)
    assert found.findings["strengths"]["names"] == ["margin 1", "full"]
    assert list(found.verdicts()) == ["1"]
    assert [row["k"] for row in found.findings["recovery"]] == [2]


def test_a_marked_cause_has_the_slopes_of_differences_and_moves_from_image_to_image():
    box, images = MarkedCause(GRID), MarkedCause(GRID).inputs(12)
    _, pull = box.pullback(images)
    slopes, step = pull(np.tile([0.0, 1.0], (12, 1))), 1e-6
    for i, pixel in ((0, (1, 1)), (3, (4, 7)), (7, (6, 3))):
        nudge = np.zeros(GRID.shape)
        nudge[pixel] = step
        moved = (box(images[i:i + 1] + nudge) - box(images[i:i + 1] - nudge))[0, 1] / (2 * step)
        assert slopes[i][pixel] == pytest.approx(moved, rel=1e-4, abs=1e-9)
    causes = [int(GRID[np.unravel_index(np.argmax(np.abs(one)), GRID.shape)]) for one in slopes]
    assert len(set(causes)) > 5
    assert (box(images)[:, 0] > box(images)[:, 1]).all()
