"""wt.measure, wt.multiverse and wt.metrics: what users type, by known answers and by what must be refused."""

import json

import numpy as np
import pytest

import whytrust as wt
from whytrust.cli import main
from whytrust.measures import Roar
from whytrust.measures.flipping import PixelFlipping
from whytrust.models.whitebox import AdditiveModel
from whytrust.universes import Universe

WEIGHTS = np.random.default_rng(0).normal(size=(16, 3))
PICTURES = list(np.random.default_rng(1).uniform(size=(5, 4, 4)))
LINEAR = wt.model(lambda batch: np.asarray(batch, float).reshape(len(batch), -1) @ WEIGHTS, name="linear")
SLOPES = AdditiveModel(WEIGHTS.T.reshape(3, 4, 4))  # the same with its gradient
CUT = {"parts": "grid:4x4", "fill": 0.0}


def test_occlusion_is_the_truth_of_a_linear_model_and_random_is_not():
    found = wt.measure(LINEAR, PICTURES, "occlusion", ["pixel_flipping", "infidelity", "completeness"], **CUT)
    np.testing.assert_allclose(found.values["infidelity"]["occlusion"], 0, atol=1e-20)
    np.testing.assert_allclose(found.values["completeness"]["occlusion"], 0, atol=1e-9)
    assert (found.values["pixel_flipping"]["occlusion"] >= found.values["pixel_flipping"]["random"]).all()
    rows = {(row["metric"], row["explainer"]): row for row in found.table()}
    assert rows["pixel_flipping", "occlusion"]["beats_random"] == 1.0
    assert rows["pixel_flipping", "random"]["beats_random"] is None
    assert "better than random on 100 %" in str(found)


def test_what_a_metric_cannot_judge_is_said_unless_the_user_insists():
    model = wt.model(SLOPES, name="slope")
    found = wt.measure(model, PICTURES[:2], ["saliency", "occlusion"], "infidelity/scaled", **CUT)
    assert "saliency" not in found.values["infidelity/scaled"]
    assert "how the prediction moves" in found.refused["infidelity/scaled"]["saliency"]
    (line,) = [line for line in str(found).splitlines() if "not judged" in line]
    assert line.endswith("pass insist=True to have its number all the same")
    insisted = wt.measure(model, PICTURES[:2], ["saliency", "occlusion"], "infidelity/scaled", insist=True, **CUT)
    assert np.isfinite(insisted.values["infidelity/scaled"]["saliency"]).all()


def test_metrics_that_use_an_order_alone_judge_the_order_of_gradients():
    model = wt.model(SLOPES, name="slope")
    found = wt.measure(model, PICTURES, "saliency", ["pixel_flipping", "insertion", "deletion"], **CUT)
    assert not found.refused
    for i, picture in enumerate(PICTURES):
        weights = WEIGHTS[:, (picture.ravel() @ WEIGHTS).argmax()]
        falls = np.concatenate([[0], np.cumsum((weights * picture.ravel())[np.argsort(-np.abs(weights))])])
        rest = falls[-1] - falls
        assert found.values["pixel_flipping"]["saliency"][i] == pytest.approx(falls.mean())
        assert found.values["deletion"]["saliency"][i] == pytest.approx(np.trapezoid(rest) / 16)
        assert found.values["insertion"]["saliency"][i] == pytest.approx(np.trapezoid(falls) / 16)


def test_annotations_labels_and_twins_go_where_they_are_needed():
    truth = [picture > 0.5 for picture in PICTURES]
    found = wt.measure(LINEAR, PICTURES, "occlusion", ["pointing_game", "relevance_rank"], truth=truth, **CUT)
    assert ((found.values["pointing_game"]["occlusion"] >= 0) & (found.values["pointing_game"]["occlusion"] <= 1)).all()
    other = wt.model(lambda batch: np.asarray(batch, float).reshape(len(batch), -1) @ WEIGHTS[:, ::-1], name="other")
    alike = wt.measure(LINEAR, PICTURES, "occlusion", "model_randomisation", untrained=other, **CUT)
    assert (alike.values["model_randomisation"]["occlusion"] < 1).all()
    with pytest.raises(ValueError, match="pointing_game needs truth="):
        wt.measure(LINEAR, PICTURES[0], "occlusion", "pointing_game", **CUT)
    with pytest.raises(ValueError, match="truth must have one entry for each of 5 inputs, got 2"):
        wt.measure(LINEAR, PICTURES, "occlusion", "pointing_game", truth=truth[:2], **CUT)


def test_a_baseline_is_what_metrics_hide_parts_behind():
    plain, noisy = (wt.measure(LINEAR, PICTURES, "occlusion", "infidelity", baseline=one, **CUT) for one in ("zeros", "noise"))
    np.testing.assert_allclose(plain.values["infidelity"]["occlusion"], 0, atol=1e-20)
    assert (noisy.values["infidelity"]["occlusion"] > 1e-3).all()  # the truth behind zeros is none behind noise
    with pytest.raises(ValueError, match="a baseline must be one of zeros"):
        wt.measure(LINEAR, PICTURES[0], "occlusion", "infidelity", baseline="zebra", **CUT)


def test_an_input_that_fails_is_told_and_the_others_are_judged():
    found = wt.measure(LINEAR, [*PICTURES[:2], np.full((4, 4), np.nan)], "occlusion", "pixel_flipping", **CUT)
    assert list(found.errors) == [2]
    assert np.isnan(found.values["pixel_flipping"]["occlusion"][2])
    assert "input 2 failed" in str(found)


def test_the_same_call_gives_the_same_numbers():
    one, again = (wt.measure(LINEAR, PICTURES, ["lime"], ["pixel_flipping", "infidelity"], samples=60, seed=4, **CUT)
                  for _ in range(2))
    for metric, by_name in one.values.items():
        for name, numbers in by_name.items():
            np.testing.assert_array_equal(numbers, again.values[metric][name])


@pytest.mark.parametrize(("change", "words"), [
    ({"metrics": "pixle_flipping"}, r"did you mean 'pixel_flipping'"), ({"metrics": []}, "at least one"),
    ({"metrics": [PixelFlipping(), "pixel_flipping"]}, "told apart"), ({"method": ["occlusion", "random"]}, "leave random out"),
    ({"method": ["occlusion", "occlusion"]}, "told apart"), ({"metrics": "word_deletion"}, "is for text inputs")])
def test_what_cannot_be_measured_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        wt.measure(LINEAR, PICTURES[0], **{"method": "occlusion", "metrics": "pixel_flipping", **change}, **CUT)
    with pytest.raises(TypeError, match="a metric must be a name"):
        wt.measure(LINEAR, PICTURES[0], "occlusion", PixelFlipping, **CUT)


def test_the_truth_survives_every_specification_and_the_claim_turned_round_in_none():
    options = {"parts": ["grid:4x4", "grid:2x2"], "fill": [0.0], "baseline": ["zeros"]}
    found = wt.multiverse(LINEAR, PICTURES * 4, "occlusion > random", **options)
    assert found.survives == 1.0
    assert found.count("holds") == 2
    assert "100 % (" in str(found)
    turned = wt.multiverse(LINEAR, PICTURES * 4, "random > occlusion", **options)
    assert turned.survives == 0.0
    assert turned.count("the other way round") == 2
    assert [row["verdict"] for row in turned.table()] == ["the other way round"] * 2


def test_specifications_that_fail_are_told_and_the_others_count():
    found = wt.multiverse(LINEAR, PICTURES, "occlusion > random", parts=["grid:4x4", "grid:9x9"], fill=[0.0])
    assert [bool(one.error) for one in found.universes] == [False, True]
    assert "failed" in str(found)
    with pytest.raises(ValueError, match="no specification could be tried"):
        wt.multiverse(LINEAR, PICTURES, "occlusion > random", parts=["grid:9x9"], fill=[0.0])


@pytest.mark.parametrize("claim", ["occlusion", "occlusion > occlusion", "> lime", 3])
def test_what_is_no_claim_is_refused(claim):
    with pytest.raises(ValueError, match="claim must say"):
        wt.multiverse(LINEAR, PICTURES, claim)


def test_a_list_of_choices_is_a_list():
    with pytest.raises(TypeError, match="must be a list of choices"):
        wt.multiverse(LINEAR, PICTURES, "occlusion > random", parts="grid:4x4")


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics") / "run"
    return wt.metrics(["infidelity", "pointing_game", "word_deletion"], "text", cases=30, out=folder)


def test_metrics_are_admitted_or_not_and_the_run_says_why(tried):
    assert tried.admitted("text") == ["infidelity"]
    why = {one["metric"]: one["why"] for one in tried.findings["admitted"]}
    assert "what every class has more of" in why["word_deletion"]
    assert "Texts: 1 of 3 metrics may crown a winner (infidelity)" in str(tried)
    assert repr(tried) == "<metrics on trial: 90 of 90 inputs, 0 failed>"


def test_the_page_and_the_commands_show_it(tried, tmp_path, capsys):
    page = tried.save_html(tmp_path / "metrics.html").read_text()
    assert "may crown a winner" in page
    assert "<script" not in page
    folder = str(tried.store.folder)
    assert main(["report", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["admitted"]
    assert main(["metrics", "infidelity", "pointing_game", "word_deletion", "--domain", "text", "--cases", "30", "--out",
                 folder]) == 0
    assert "may crown a winner" in capsys.readouterr().out
    for wrong, words in ((["metrics", "infidelty"], "did you mean 'infidelity'"), (["metrics", "--domain", "vido"], "domain must"),
                         (["metrics", "--cases", "1"], "cases must be"), (["gate", folder, "--require", "x > y"], "wt.metrics"),
                         (["diff", folder, folder], "wt.metrics")):
        assert main([*wrong, *(["--out", str(tmp_path / "none")] if wrong[0] == "metrics" else [])]) == 2
        assert words in capsys.readouterr().err


def test_rows_are_hidden_behind_means_so_that_true_contributions_are_perfect():
    rows = np.random.default_rng(3).normal(size=(60, 4))
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    model = wt.model(lambda batch: np.asarray(batch, float) @ weights, name="rows")

    def truth(question, rng):
        return wt.Explanation.of(question, "truth", weights * (rows[0] - rows.mean(axis=0)))

    found = wt.measure(model, rows[0], truth, ["infidelity", "completeness", "faithfulness_correlation"], background=rows)
    assert found.values["infidelity"]["truth"][0] == pytest.approx(0, abs=1e-20)
    assert found.values["completeness"]["truth"][0] == pytest.approx(0, abs=1e-9)
    assert found.values["faithfulness_correlation"]["truth"][0] == pytest.approx(1)


def test_a_baseline_moves_what_metrics_hide_and_not_what_explainers_say():
    plain, noisy = (wt.measure(LINEAR, PICTURES, "occlusion", ["max_sensitivity", "model_randomisation"], baseline=one,
                               untrained=LINEAR, **CUT) for one in (None, "noise"))
    for metric in ("max_sensitivity", "model_randomisation"):
        np.testing.assert_allclose(plain.values[metric]["occlusion"], noisy.values[metric]["occlusion"])
    np.testing.assert_allclose(plain.values["model_randomisation"]["occlusion"], 1)


def test_what_is_missing_is_told_before_anything_is_explained():
    asked = []
    model = wt.model(lambda batch: asked.append(len(batch)) or np.zeros((len(batch), 2)))
    with pytest.raises(ValueError, match="needs truth="):
        wt.measure(model, PICTURES[0], "lime", "pointing_game", **CUT)
    assert sum(asked) <= 1


def test_a_coin_survives_nowhere_for_certain():
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shared = rng.random((1, 20)) < 0.5
        wins = np.where(rng.random((8, 20)) < 0.7, shared, rng.random((8, 20)) < 0.5).astype(float)
        low, high = wt.Multiverse("a > b", "m", tuple(Universe({}, row) for row in wins)).interval
        covered.append(low <= 0.5 <= high)
    assert np.mean(covered) > 0.85


def test_roar_says_how_it_is_called():
    for one in ("roar", Roar()):
        with pytest.raises(ValueError, match=r"call wt\.roar\(train, model, learnt, tested\)"):
            wt.measure(LINEAR, PICTURES[0], "occlusion", one, **CUT)


def test_a_metric_of_your_own_stands_trial_and_one_for_another_domain_is_refused():
    found = wt.metrics([PixelFlipping(order="least", indicator="accuracy")], "text", cases=12)
    assert [one["metric"] for one in found.findings["admitted"]] == ["pixel_flipping/least/accuracy"]
    with pytest.raises(ValueError, match="word_deletion is for text inputs, and the labs asked for are of image inputs"):
        wt.metrics("word_deletion", "image")
