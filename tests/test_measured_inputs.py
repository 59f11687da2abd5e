"""wt.measure and wt.multiverse: units, chance, names of one's own, and whatever wt.explain takes."""

import json

import numpy as np
import pytest
from scipy import stats as scipy_stats

import whytrust as wt
from whytrust.explainers import NAMES
from whytrust.explainers.occlusion import Occlusion
from whytrust.measures.flipping import PixelFlipping
from whytrust.measures.judged import About
from whytrust.models.whitebox import AdditiveModel
from whytrust.universes import Universe

WEIGHTS = np.random.default_rng(0).normal(size=(16, 3))
PICTURES = list(np.random.default_rng(1).uniform(size=(5, 4, 4)))
LINEAR = wt.model(lambda batch: np.asarray(batch, float).reshape(len(batch), -1) @ WEIGHTS, name="linear")
SLOPES = AdditiveModel(WEIGHTS.T.reshape(3, 4, 4))  # the same with its gradient
CUT = {"parts": "grid:4x4", "fill": 0.0}


# --- units, chance, names, several of everything ------------------------------------------------------------------------


def test_amounts_of_a_logit_are_not_held_against_a_probability():
    model = wt.model(SLOPES, output="logit", name="logits")
    found = wt.measure(model, PICTURES[:3], ["integrated_gradients", "occlusion"], ["infidelity", "pixel_flipping"], **CUT)
    assert "amounts of the logit; pass explains='score'" in found.refused["infidelity"]["integrated_gradients"]
    assert "integrated_gradients" in found.values["pixel_flipping"]  # which reads an order, and that has no unit
    asked = wt.measure(model, PICTURES[:3], "integrated_gradients", ["completeness"], explains="score", baseline="zeros", **CUT)
    assert np.nanmax(asked.values["completeness"]["integrated_gradients"]) < 0.05


def test_random_scores_of_metrics_that_read_amounts_are_the_explainers_own_in_another_order():
    def tiny(question, rng):
        return wt.Explanation.of(question, "tiny", 1e-3 * rng.standard_normal(question.d))

    found = wt.measure(LINEAR, PICTURES * 8, {"tiny": tiny, "true": "occlusion"}, ["infidelity", "completeness"], **CUT)
    rows = {(row["metric"], row["explainer"]): row for row in found.table()}
    assert 0.2 < rows["infidelity", "tiny"]["beats_random"] < 0.8  # nearly 0 is nearly as good in any order
    assert rows["infidelity", "true"]["beats_random"] == 1.0
    assert rows["completeness", "tiny"]["beats_random"] is None  # a sum does not see an order
    assert "random" not in str(found).partition("completeness")[2]
    assert rows["infidelity", "true"]["random"] > rows["infidelity", "true"]["mean"]


def test_random_scores_of_each_explainer_have_its_unit_and_there_is_no_random_of_several_units():
    def scaled(by):
        return lambda question, rng: wt.Explanation.of(question, f"times {by:g}", by * np.linspace(-1, 1, question.d))

    metrics = ["infidelity", "pixel_flipping"]
    found = wt.measure(LINEAR, PICTURES, {"tiny": scaled(1e-6), "large": scaled(1e3), "true": "occlusion"}, metrics, **CUT)
    rows = {(row["metric"], row["explainer"]): row for row in found.table()}
    assert ("infidelity", "random") not in rows
    assert ("pixel_flipping", "random") in rows  # which reads an order: one for all
    squared = np.mean([(LINEAR(p[None]).max() - _shown(p)) ** 2 for p in PICTURES])  # what scores of 0 have, by other draws
    assert rows["infidelity", "tiny"]["random"] == pytest.approx(rows["infidelity", "tiny"]["mean"], rel=1e-3)
    assert rows["infidelity", "tiny"]["random"] == pytest.approx(squared, rel=0.25)
    assert rows["infidelity", "large"]["random"] > 1e4 * rows["infidelity", "tiny"]["random"]
    lines = str(found).split("pixel_flipping")[0].splitlines()
    assert sum("its scores in random order" in line for line in lines) == 3
    assert not any(line.strip().startswith("random") for line in lines)
    survey = wt.multiverse(LINEAR, PICTURES, "occlusion > random", "infidelity", **{name: [one] for name, one in CUT.items()})
    assert survey.universes[0].share == 1.0


def _shown(picture):
    """The target's score with a quarter of the pixels hidden, of many random sets."""
    rng, target = np.random.default_rng(5), int(LINEAR(picture[None]).argmax())
    shown = np.argsort(rng.random((3000, 16)), axis=1) >= 4
    return LINEAR((picture.ravel() * shown).reshape(-1, 4, 4))[:, target]


def test_methods_and_metrics_may_have_names_of_ones_own():
    found = wt.measure(LINEAR, PICTURES[:2], {"a": "occlusion", "b": Occlusion()},
                       {"few": PixelFlipping(share=0.2), "many": PixelFlipping(share=0.8)}, **CUT)
    assert set(found.values) == {"few", "many"}
    assert set(found.values["few"]) == {"a", "b", "random"}
    np.testing.assert_array_equal(found.values["few"]["a"], found.values["few"]["b"])
    assert (found.values["few"]["a"] != found.values["many"]["a"]).all()
    with pytest.raises(ValueError, match=r"name them: \{'a'"):
        wt.measure(LINEAR, PICTURES[:2], [Occlusion(), Occlusion()], "deletion", **CUT)


def test_objects_are_judged_by_what_their_scores_mean_like_names():
    model = wt.model(SLOPES, name="slope")
    found = wt.measure(model, PICTURES[:2], {"own": NAMES["saliency"].make()}, "faithfulness_correlation", **CUT)
    assert "how the prediction moves" in found.refused["faithfulness_correlation"]["own"]


def test_a_target_may_be_given_for_each_input():
    found = wt.measure(LINEAR, PICTURES[:3], "occlusion", "top_k_ablation", target=[0, 1, 2], **CUT)
    for i in range(3):
        alone = wt.measure(LINEAR, PICTURES[i], "occlusion", "top_k_ablation", target=i, **CUT)
        assert alone.values["top_k_ablation"]["occlusion"][0] == found.values["top_k_ablation"]["occlusion"][i]
    with pytest.raises(ValueError, match="target must have one entry for each of 3 inputs, got 2"):
        wt.measure(LINEAR, PICTURES[:3], "occlusion", "deletion", target=[0, 1], **CUT)


def test_random_is_the_same_whatever_stands_beside_it():
    twin = wt.model(lambda batch: np.asarray(batch, float).reshape(len(batch), -1) @ WEIGHTS[:, ::-1], name="other")
    given = {"untrained": twin, **CUT}
    alone = wt.measure(LINEAR, PICTURES[:4], "occlusion", "model_randomisation", **given)
    beside = wt.measure(LINEAR, PICTURES[:4], "occlusion", ["max_sensitivity", "model_randomisation"], **given)
    np.testing.assert_array_equal(alone.values["model_randomisation"]["random"], beside.values["model_randomisation"]["random"])


def test_shares_have_intervals_within_their_range_and_what_is_not_defined_is_counted():
    truth = [picture > 0.5 for picture in PICTURES]
    found = wt.measure(LINEAR, PICTURES, "occlusion", ["pointing_game", "pixel_flipping/accuracy"], truth=truth,
                       labels=[2, 0, 1, 0, 1], **CUT)
    for row in found.table():
        assert row["low"] is None or 0 <= row["low"] <= row["high"] <= 1
        assert row["n"] + row["undefined"] == 5
    assert any(row["undefined"] for row in found.table())
    assert ", not defined on " in str(found)
    assert json.loads(json.dumps(found.to_json()))["rows"][0]["metric"] == "pointing_game"


@pytest.mark.parametrize("n", [2, 3, 5])
def test_no_interval_leaves_what_its_number_can_be(n):
    steep = WEIGHTS * 6
    logits = wt.model(lambda batch: np.asarray(batch, float).reshape(len(batch), -1) @ steep, output="logit", name="logits")
    shares = wt.model(lambda batch: np.asarray(logits(batch)), name="softmax inside")  # which says nothing of itself
    bounds = {"pixel_flipping": (-1, 1), "pixel_flipping/least": (-1, 1), "insertion": (0, 1), "deletion": (0, 1),
              "comprehensiveness": (-1, 1), "sufficiency": (-1, 1), "top_k_ablation": (-1, 1), "infidelity/scaled": (0, 1),
              "infidelity": (0, np.inf), "completeness": (0, np.inf), "faithfulness_correlation": (-1, 1)}
    for model in (logits, shares):
        for row in wt.measure(model, PICTURES[:n], ["occlusion", "lime"], list(bounds), samples=60, **CUT).table():
            low, high = bounds[row["metric"]]
            assert low <= row["low"] <= row["mean"] <= row["high"] <= high, row
    free = wt.measure(LINEAR, PICTURES[:n], "occlusion", "pixel_flipping", **CUT).table()[0]  # a score without bounds
    values = wt.measure(LINEAR, PICTURES[:n], "occlusion", "pixel_flipping", **CUT).values["pixel_flipping"]["occlusion"]
    student = scipy_stats.t.interval(0.95, n - 1, values.mean(), values.std(ddof=1) / np.sqrt(n))
    np.testing.assert_allclose([free["low"], free["high"]], student)


def test_whatever_a_metric_raises_is_told_of_the_input_and_the_others_go_on():
    class Torn:
        about = About("torn", "", True, ("ranking",), "performance", "faithfulness", "me")

        def __call__(self, judged, rng):
            if judged.whole < np.median([LINEAR(p[None]).max() for p in PICTURES]):
                raise RuntimeError("out of luck")
            return 1.0

    found = wt.measure(LINEAR, PICTURES, "occlusion", Torn(), **CUT)
    assert len(found.errors) == 2
    assert "RuntimeError" in str(found.to_json()["errors"])


@pytest.mark.parametrize(("metric", "words"), [
    (lambda judged, rng: 1.0, "says what it is"), (type("Odd", (), {"about": "hello", "__call__": lambda *_: 1.0})(), "about = About"),
    (type("Odd", (), {"about": About("odd", "", True, ("foo",), "performance", "faithfulness", "me"),
                      "__call__": lambda *_: 1.0})(), "goals of odd must be among"),
    (type("Odd", (), {"about": About("odd", "", True, ("ranking",), "performance", "faithfulness", "me"),
                      "__call__": lambda *_: "good"})(), "must return one number"),
    (type("Odd", (), {"about": About("odd", "", True, ("ranking",), "performance", "faithfulness", "me"),
                      "__call__": lambda *_: np.ones(3)})(), "must return one number")])
def test_what_is_no_metric_is_refused_with_what_is_missing(metric, words):
    with pytest.raises((TypeError, ValueError), match=words):
        wt.measure(LINEAR, PICTURES[0], "occlusion", metric, **CUT)


@pytest.mark.parametrize(("given", "words"), [
    ({"baseline": 0.5}, "a baseline must be one of zeros"), ({"untrained": lambda b: np.zeros(len(b))}, "as many outputs"),
    ({"truth": [(1, 1, 3, 3)]}, "truth must"), ({"method": {}}, "at least one")])
def test_odd_options_get_one_clear_error(given, words):
    with pytest.raises(ValueError, match=words):
        wt.measure(LINEAR, PICTURES[0], **{"method": "occlusion", "metrics": ["model_randomisation", "pointing_game"],
                                           "truth": PICTURES[0] > 0.5, "untrained": LINEAR, **CUT, **given})


def test_captum_objects_stand_in_a_list_and_over_several_inputs():
    captum = pytest.importorskip("captum.attr")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3)).eval()
    pictures = [picture[None].astype(np.float32) for picture in PICTURES[:3]]
    found = wt.measure(net, pictures, [captum.IntegratedGradients(net), captum.InputXGradient(net)],
                       ["pixel_flipping", "infidelity"], parts="grid:4x4", fill=0.0)
    assert set(found.values["infidelity"]) == {"IntegratedGradients", "InputXGradient"}
    both = wt.explain(net, pictures[0], [captum.IntegratedGradients(net), captum.InputXGradient(net)], parts="grid:4x4")
    assert len(both) == 2


def test_choices_that_a_metric_cannot_see_are_no_specifications():
    with pytest.raises(ValueError, match="pointing_game hides nothing behind a baseline"):
        wt.multiverse(LINEAR, PICTURES, "occlusion > random", "pointing_game", baseline=["zeros", "mean"], truth=PICTURES)
    found = wt.multiverse(LINEAR, PICTURES, "occlusion > random", parts=["grid:4x4", "grid:4x4"], fill=[0.0, 0.0])
    assert len(found.universes) == 1
    assert found.interval == (0.0, 1.0)  # five inputs say nothing of how far it would move
    assert json.dumps(found.to_json())


def test_five_wins_of_five_are_not_beyond_chance():
    assert Universe({}, np.ones(5)).words == "undecided"
    assert Universe({}, np.ones(12)).words == "holds"


def test_only_domains_that_were_tried_have_admitted_metrics(tmp_path):
    tried = wt.metrics(["infidelity"], "text", cases=4, out=tmp_path / "run")
    with pytest.raises(ValueError, match="were tried on text, and not on 'image'"):
        tried.admitted("image")
    with pytest.raises(ValueError, match="domain must be one of"):
        wt.metrics(["infidelity"], ["text"])


def test_the_same_numbers_for_any_number_of_workers(tmp_path):
    one, two = (wt.metrics(["infidelity", "flip", "pixel_flipping"], "tabular", cases=12, out=tmp_path / str(jobs), jobs=jobs)
                for jobs in (1, 2))
    assert one.to_json()["tests"] == two.to_json()["tests"]
    assert list(one.store.records()) == list(two.store.records())
    assert len(list(one.store.records())) == 12 * 5  # inputs of each lab of rows


# --- whatever explain takes ---------------------------------------------------------------------------------------------


def test_values_that_are_there_already_are_judged_and_cannot_be_explained_anew():
    truth = np.array([WEIGHTS[:, LINEAR(p[None])[0].argmax()].reshape(4, 4) * p for p in PICTURES[:3]])
    found = wt.measure(LINEAR, PICTURES[:3], {"mine": truth, "again": list(truth), "occlusion": "occlusion"},
                       ["infidelity", "max_sensitivity"], **CUT)
    np.testing.assert_allclose(found.values["infidelity"]["mine"], 0, atol=1e-20)
    np.testing.assert_array_equal(found.values["infidelity"]["mine"], found.values["infidelity"]["again"])
    assert "values that are there already" in found.refused["max_sensitivity"]["mine"]
    assert "occlusion" in found.values["max_sensitivity"]
    alone = wt.measure(LINEAR, PICTURES[0], truth[0], "infidelity", **CUT)
    assert next(iter(alone.values["infidelity"].values()))[0] == pytest.approx(0, abs=1e-20)


def test_methods_may_have_options_of_their_own():
    found = wt.measure(LINEAR, PICTURES[:2], {"few": {"method": "lime", "samples": 30}, "many": {"method": "lime", "samples": 900}},
                       "infidelity", **CUT)
    assert (found.values["infidelity"]["many"] <= found.values["infidelity"]["few"] + 1e-12).all()
    for wrong in ({"a": None}, {"a": 3.0}):
        with pytest.raises(TypeError, match="method must be a name"):
            wt.measure(LINEAR, PICTURES[0], wrong, "infidelity", **CUT)


@pytest.mark.parametrize(("metrics", "error"), [({}, ValueError), ({"a": None}, TypeError), ({"a": ["deletion", "insertion"]}, TypeError)])
def test_metrics_by_names_of_ones_own_are_one_each(metrics, error):
    with pytest.raises(error, match="metrics"):
        wt.measure(LINEAR, PICTURES[0], "occlusion", metrics, **CUT)


def test_batches_of_one_and_series_are_taken_apart():
    pandas = pytest.importorskip("pandas")
    batch = np.array(PICTURES[:1])[..., None]
    model = wt.model(lambda b: np.asarray(b, float).reshape(len(b), -1) @ WEIGHTS, name="linear")
    label = int(model(batch)[0].argmax())
    for labels in (np.array([label]), [label], pandas.Series([label], index=[7])):
        found = wt.measure(model, batch, "occlusion", ["pixel_flipping/accuracy", "pointing_game"], labels=labels, target=labels,
                           truth=(np.array(PICTURES[:1]) > 0.5), **CUT)
        assert np.isfinite(found.values["pixel_flipping/accuracy"]["occlusion"]).all()
    with pytest.raises(ValueError, match="labels must have one entry for each of 3 inputs, got one, 1"):
        wt.measure(LINEAR, PICTURES[:3], "occlusion", "pixel_flipping/accuracy", labels=1, **CUT)


def test_clean_rows_and_files_are_read_as_their_changed_ones(tmp_path):
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "c"])
    model = wt.model(lambda batch: np.column_stack([-np.asarray(batch, float)[:, 0], np.asarray(batch, float)[:, 0]]), name="first")
    above, below = rows[rows.a > 0.3].head(3), rows[rows.a < -0.3].head(3)
    found = wt.measure(model, above, "occlusion", ["flip", "pixel_flipping"], clean=below, background=rows)
    np.testing.assert_array_equal(found.values["flip"]["occlusion"], 1.0)  # the first column turns it, and is the best
    texts = wt.model(lambda some: np.array([[0.5, float("good" in text)] for text in some]), name="good")
    for name, text in (("after", "a good film"), ("before", "a dull film")):
        (tmp_path / f"{name}.txt").write_text(text)
    told = wt.measure(texts, tmp_path / "after.txt", "occlusion", "flip", clean=tmp_path / "before.txt")
    assert told.values["flip"]["occlusion"][0] == 1.0


def test_an_adversary_that_did_not_turn_the_label_loses_the_trials_alone():
    labels = LINEAR(np.array(PICTURES)).argmax(axis=1)
    i = next(i for i in range(5) for j in range(5) if labels[i] != labels[j])
    j = next(j for j in range(5) if labels[i] != labels[j])
    found = wt.measure(LINEAR, [PICTURES[i], PICTURES[i]], "occlusion", ["flip", "pixel_flipping"], clean=[PICTURES[j], PICTURES[i]],
                       **CUT)
    assert np.isnan(found.values["flip"]["occlusion"]).tolist() == [False, True]
    assert np.isfinite(found.values["pixel_flipping"]["occlusion"]).all()


def test_captums_values_of_a_logit_are_not_held_against_a_probability():
    captum = pytest.importorskip("captum.attr")
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 3)).eval()
    picture = PICTURES[0][None].astype(np.float32)
    found = wt.measure(wt.model(net, output="logit"), picture, [captum.IntegratedGradients(net)], ["completeness"], parts="grid:4x4")
    assert "amounts of the logit" in found.refused["completeness"]["IntegratedGradients"]


@pytest.mark.parametrize(("about", "words"), [
    (About("odd", "", True, ("ranking",), "performance", "faithfulness", "me", share=True), "says that its number is a share"),
    (About("odd", "", True, ("ranking",), "performance", "faithfulness", "me", ("train",)), "odd needs a function that trains")])
def test_what_a_metric_says_of_itself_is_held_against_it(about, words):
    odd = type("Odd", (), {"about": about, "__call__": lambda *_: 7.0})()
    with pytest.raises(ValueError, match=words):
        wt.measure(LINEAR, PICTURES[0], "occlusion", odd, **CUT)
