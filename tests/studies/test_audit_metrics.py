"""Metrics in an audit: who may vote, what is refused, and whether measures agree."""

import importlib
import json
import linecache
import shutil
import sys

import numpy as np
import pytest

import whytrust as wt
from planted import GRID
from whytrust.explainers.occlusion import Occlusion
from whytrust.measures import METRIC_NAMES
from whytrust.measures.flipping import PixelFlipping
from whytrust.measures.judged import About
from whytrust.models.whitebox import PlantedCause
from whytrust.report.agreement import agreement, agreements, by_chance
from whytrust.report.outcomes import Outcomes
from whytrust.studies import admitting

WHERE = np.asarray(GRID) == 5
CAUSE = PlantedCause(WHERE)
ATTACK = {"method": "pgd", "epsilon": 0.5, "bounds": None}


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(admitting, "CASES", 24)
        yield


@pytest.fixture(scope="module")
def audit(cache):
    return wt.audit(wt.model(CAUSE, name="planted"), list(CAUSE.inputs(8)), ["occlusion", "integrated_gradients", "saliency", "lime"],
                    parts="grid:4x4", attack=ATTACK, trials=["flip", "infidelity/scaled", "pixel_flipping/accuracy"])


def test_admitted_metrics_vote_and_caught_ones_do_not(audit):
    found = audit.findings
    admitted = {one["metric"]: one["admitted"] for one in found["metrics"]}
    assert admitted == {"infidelity/scaled": True, "pixel_flipping/accuracy": False}
    assert found["admitted"] == ["flip", "infidelity/scaled"]
    assert all("pixel_flipping/accuracy" not in row["by_measure"] for row in found["verdicts"])
    assert "pixel_flipping/accuracy" in found["measures"]  # it is shown all the same


def test_a_metric_refuses_what_it_cannot_judge(audit):
    rates = audit.findings["measures"]["infidelity/scaled"]["rates"]
    assert "saliency" not in rates
    assert rates["occlusion"]["value"] > 0.9
    assert rates["random"]["value"] == 0.5
    refused = next(iter(audit.store.records()))["trials"][0]["metrics"]["infidelity/scaled"]["refused"]
    assert "how the prediction moves" in refused["saliency"]


def test_the_page_says_which_metrics_were_admitted_and_why(audit, tmp_path):
    page = audit.save_html(tmp_path / "audit.html").read_text()
    assert "Which metrics were admitted, and why" in page
    assert "what every class has more of" in page
    json.dumps(audit.to_json())


def test_what_the_lab_found_is_remembered(audit, monkeypatch):
    monkeypatch.setattr(admitting, "findings", lambda *_: pytest.fail("the lab was asked again"))
    metrics = [METRIC_NAMES["infidelity/scaled"], METRIC_NAMES["pixel_flipping/accuracy"]]
    assert [one.admitted for one in admitting.admitted(metrics, "image", "grid:4x4")] == [True, False]


def test_a_broken_memory_is_no_memory(tmp_path, monkeypatch):
    metrics = [METRIC_NAMES["infidelity"]]
    monkeypatch.setattr(admitting, "CASES", 4)
    first = admitting.admitted(metrics, "text", cache=tmp_path)
    file = next(tmp_path.glob("metrics-*.json"))
    file.write_text("{not json")
    assert admitting.admitted(metrics, "text", cache=tmp_path) == first
    assert json.loads(file.read_text())


@pytest.mark.parametrize(("trials", "words"), [
    (["flip", "pointing_game"], "pointing_game needs truth, which an audit does not have"),
    (["word_deletion"], "is for text inputs"), (["pixel_fliping"], "did you mean 'pixel_flipping'")])
def test_what_an_audit_cannot_use_is_refused(trials, words):
    with pytest.raises(ValueError, match=words):
        wt.audit(wt.model(CAUSE), list(CAUSE.inputs(2)), [Occlusion()], parts="grid:4x4", attack=ATTACK, trials=trials)


def test_metrics_with_settings_of_their_own_may_be_passed():
    found = wt.audit(wt.model(CAUSE, name="planted"), list(CAUSE.inputs(3)), ["occlusion"], parts="grid:4x4", attack=ATTACK,
                     trials=[PixelFlipping(steps=4)])
    assert "pixel_flipping" in found.findings["measures"]
    assert {"flip", "recovery"} <= set(found.findings["measures"])  # metrics alone come beside every trial


def outcomes(values):
    """An audit's trials with these numbers: metric -> explainer -> a number a case."""
    n = len(next(iter(next(iter(values.values())).values())))
    names = tuple(next(iter(values.values())))
    trials = tuple({"metrics": {m: {"values": {e: float(numbers[i]) for e, numbers in some.items()}, "higher": not m.startswith("-")}
                                for m, some in values.items()}} for i in range(n))
    return Outcomes(({},) * n, trials, [None] * n, names, {})


def test_agreement_by_hand():
    rng = np.random.default_rng(0)
    rising = {name: i + rng.normal(0, 0.1, 30) for i, name in enumerate("abcd")}
    falling = {name: -numbers for name, numbers in rising.items()}
    found = {(one["first"], one["second"]): one for one in agreements(outcomes({"m": rising, "n": falling, "-k": falling}))}
    assert found["m", "n"]["value"] == -1
    assert found["m", "-k"]["value"] == 1  # smaller is better there
    assert found["m", "-k"]["low"] > 0.5
    noise = {name: rng.normal(size=30) for name in "abcd"}
    wide = agreements(outcomes({"m": rising, "n": noise}))[0]
    assert wide["low"] < 0 < wide["high"]


def test_measures_that_have_nothing_to_do_with_each_other_are_seldom_said_to_agree_or_not():
    rng, said = np.random.default_rng(1), []
    for _ in range(100):
        firm = [dict(zip("abcdef", rng.permutation(6)[:, None] + rng.normal(0, 0.1, (6, 20)), strict=True)) for _ in range(2)]
        row = agreements(outcomes({"m": firm[0], "n": firm[1]}))[0]
        said.append("they" in str(agreement({"agreements": [row]})).rpartition("<td>")[2])
    assert sum(said) <= 10


def test_how_often_chance_ranks_as_much_alike_is_exact():
    assert by_chance(np.arange(4.0), np.arange(4.0)) == pytest.approx(2 / 24)
    assert by_chance(np.arange(5.0), np.arange(5.0)[::-1]) == pytest.approx(2 / 120)
    assert by_chance(np.arange(5.0), np.array([1.0, 0, 2, 3, 4])) == pytest.approx(10 / 120)  # and the 4 swaps of neighbours, both ways
    assert by_chance(np.arange(12.0), np.arange(12.0)) < 1e-6


@pytest.mark.parametrize(("low", "high", "p", "words"), [
    (0.2, 1.0, 0.01, "they agree"), (-1.0, -0.1, 0.01, "contradict"), (-0.5, 0.9, 0.01, "undecided"),
    (0.9, 1.0, 0.08, "it could be chance")])
def test_the_section_says_whether_measures_agree(low, high, p, words):
    row = {"first": "flip", "second": "<b>", "value": (low + high) / 2, "low": low, "high": high, "explainers": 4, "n": 9, "p": p}
    shown = str(agreement({"agreements": [row]}))
    assert words in shown
    assert "<b>" not in shown
    assert agreement({}) is None


def test_two_explainers_have_no_ranking_to_speak_of():
    assert agreements(outcomes({"m": {"a": np.ones(5), "b": np.zeros(5)}, "n": {"a": np.ones(5), "b": np.zeros(5)}})) == []


def test_labels_of_your_own_are_parts_of_an_audit_as_before():
    labels = np.arange(64).reshape(8, 8) // 32
    found = wt.audit(wt.model(CAUSE, name="planted"), list(CAUSE.inputs(2)), ["occlusion"], parts=labels, attack=ATTACK)
    assert found.findings["counts"]["adversaries"] == 2


def test_measures_of_noise_are_said_to_agree_about_as_often_as_chance_allows():
    called = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        one = agreements(outcomes({m: {name: rng.normal(size=30) for name in "abcd"} for m in "mn"}))[0]
        called += one["low"] > 0 or one["high"] < 0
    assert called <= 9


def test_what_is_remembered_of_a_metric_goes_with_its_code(tmp_path, monkeypatch):
    monkeypatch.setattr(admitting, "CASES", 12)
    file = tmp_path / "own_metric.py"
    monkeypatch.syspath_prepend(tmp_path)
    code = """
from dataclasses import dataclass
from whytrust.measures.amounts import FaithfulnessCorrelation
from whytrust.measures.judged import About
@dataclass(frozen=True)
class Mine:
    about = About("mine", "", True, ("contribution",), "performance", "faithfulness", "me")
    def __call__(self, judged, rng):
        return {}
"""
    answers = []
    for body in ("FaithfulnessCorrelation()(judged, rng)", "float(rng.random())"):
        file.write_text(code.format(body))
        sys.modules.pop("own_metric", None)
        linecache.clearcache()
        importlib.invalidate_caches()
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        mine = importlib.import_module("own_metric").Mine()
        answers.append(admitting.admitted([mine], "text", cache=tmp_path / "cache")[0].why)
    assert len(list((tmp_path / "cache").glob("*.json"))) == 2
    assert answers[0] != answers[1]


def test_a_metric_that_was_typed_in_is_not_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr(admitting, "CASES", 4)
    typed = {}
    exec("class Typed:\n    def __call__(self, judged, rng):\n        return 1.0\n", typed)
    metric = typed["Typed"]()
    metric.about = About("typed", "", True, ("contribution",), "performance", "faithfulness", "me")
    typed["Typed"].__module__ = "nowhere"
    admitting.admitted([metric], "text", cache=tmp_path)
    assert not list(tmp_path.glob("*.json"))


def test_fine_cuts_are_tried_as_pixels():
    assert admitting.cut_like(16) == "grid:4x4"
    assert admitting.cut_like(784) is None
    found = wt.audit(wt.model(CAUSE, name="planted"), list(CAUSE.inputs(2)), ["occlusion"], parts="grid:8x8", attack=ATTACK,
                     trials=["flip", PixelFlipping(steps=4)])
    assert ", cut as grid:4x4" in found.findings["metrics"][0]["why"]


def test_amounts_of_logits_are_not_held_against_probabilities_in_an_audit():
    model = wt.model(CAUSE, name="planted", output="logit")
    found = wt.audit(model, list(CAUSE.inputs(3)), ["integrated_gradients", "occlusion"], parts="grid:4x4", attack=ATTACK,
                     trials=["flip", "infidelity"])
    judged = next(trial for record in found.store.records() for trial in record["trials"])["metrics"]["infidelity"]
    assert "amounts of the logit" in judged["refused"]["integrated_gradients"]
    assert "occlusion" in judged["wins"]
