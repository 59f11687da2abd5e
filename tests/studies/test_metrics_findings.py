"""The lie detector on made-up numbers whose verdict is known, and on the lab's smallest models."""

from pathlib import Path

import numpy as np
import pytest

from whytrust.core import generator
from whytrust.lab import Beeps, Pictures, Reviews, Rows
from whytrust.measures import METRIC_NAMES
from whytrust.measures.judged import About
from whytrust.studies.metrics_cases import GRADES, LabCase, scattered_and_adjoining
from whytrust.studies.metrics_findings import TESTS, findings
from whytrust.studies.metrics_told import admissions, outcome_of

ABOUT = About("made_up", "a made-up metric", True, ("contribution",), "performance", "faithfulness", "nobody")
LABS = {"lab/a": {"domain": "image", "about": "made up", "expected": True}}
PERFECT = np.array([1.0, 0.75, 0.5, 0.25, 0.0])


def records(n=120, order=lambda rng: PERFECT, shared=lambda rng: [1.0, 0.0], scale=None, constant=None,
            isolation=lambda rng: rng.normal(0, 0.05, 8), baseline=None, same=None, opposite=None, metric="made_up"):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(n):
        values = list(order(rng))
        found.append({"lab": "lab/a", "order": {metric: values}, "scale": {metric: scale(values) if scale else values},
                      "constant": {metric: constant(values, rng) if constant else values},
                      "shared": {metric: list(shared(rng))}, "isolation": {metric: list(isolation(rng))},
                      "baseline": {"noise": {metric: list((baseline or order)(rng))}}, "errors": {},
                      "same": {"noise": {metric: list(same(rng)) if same else values}},
                      "opposite": {metric: list(opposite(rng)) if opposite else [values[0], values[-1]]}})
    return found


def outcomes(some, about=ABOUT):
    found = findings(some, {about.name: about})
    return {test: outcome_of([one for one in found if one.test == test]) for test in dict.fromkeys(one.test for one in found)}


def noise(rng):
    return rng.normal(size=len(GRADES))


def test_the_docs_have_every_test_in_its_own_words():
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    for name, words in TESTS.items():
        assert f"| {name} | {words} |" in page


def test_a_perfect_metric_passes_everything():
    assert set(outcomes(records()).values()) == {"passed"}
    assert len(outcomes(records())) == 7  # every test there is


def test_a_metric_that_is_better_when_smaller_passes_turned_round():
    about = About("made_up", "", False, ("contribution",), "performance", "faithfulness", "nobody")
    turned = records(order=lambda rng: -PERFECT, shared=lambda rng: [0.0, 1.0])  # its opposite: the last of these
    assert set(outcomes(turned, about).values()) == {"passed"}
    assert outcomes(turned)["truth"] == outcomes(turned)["shared"] == "failed"


@pytest.mark.parametrize(("change", "test"), [
    ({"order": lambda rng: PERFECT[::-1]}, "truth"), ({"order": noise}, "truth"), ({"order": lambda rng: np.ones(5)}, "truth"),
    ({"baseline": noise}, "baseline"), ({"same": noise}, "baseline"), ({"same": lambda rng: PERFECT[::-1]}, "baseline"),
    ({"opposite": lambda rng: [1.0, 1.0]}, "truth"), ({"opposite": lambda rng: [0.0, 1.0]}, "truth"), ({"shared": lambda rng: [0.0, 1.0]}, "shared"),
    ({"scale": lambda values: [7 * v for v in values]}, "scale"),
    ({"constant": lambda values, rng: rng.permutation(values).tolist()}, "constant"),
    ({"isolation": lambda rng: np.tile([0.4, 0.0], 4) + rng.normal(0, 0.05, 8)}, "isolation"),
    ({"isolation": lambda rng: np.tile([0.0, 0.4], 4) + rng.normal(0, 0.05, 8)}, "isolation")])
def test_each_flaw_is_caught_by_its_test(change, test):
    assert outcomes(records(400, **change))[test] == "failed"


def test_a_metric_that_raises_is_not_admitted_and_says_why():
    some = records(30)
    some[4]["errors"] = {"made_up": "ValueError: no luck"}
    found = findings(some, {"made_up": ABOUT})
    assert [one.outcome for one in found] == ["failed"]
    assert "on 1 of 30 inputs it raised ValueError: no luck" in admissions(found, "image", LABS, {"made_up": ABOUT})[0].why


def test_a_metric_that_says_the_same_of_everything_is_blind_and_ranks_nothing():
    found = findings(records(30, order=lambda rng: np.ones(5)), {"made_up": ABOUT})
    truth = [one for one in found if one.test == "truth"]
    assert {one.outcome for one in truth} <= {"failed", "undecided"}
    assert any("the same number, whatever the input" in one.words for one in truth)
    assert next(one for one in found if one.test == "halves").outcome == "failed"


def test_what_is_certain_and_as_good_as_a_coin_does_not_pass():
    def nearly(rng):
        return PERFECT if rng.random() < 0.56 else PERFECT[::-1]

    assert outcomes(records(4000, order=nearly))["truth"] == "failed"


def test_halves_of_noise_rank_by_chance():
    assert outcomes(records(400, order=noise))["halves"] == "failed"
    assert outcomes(records(400, order=lambda rng: PERFECT + rng.normal(0, 0.3, 5)))["halves"] == "passed"


def test_few_inputs_decide_nothing_that_is_not_plain():
    few = outcomes(records(6, order=lambda rng: PERFECT + rng.normal(0, 0.6, 5)))
    assert few["truth"] == "undecided"


def test_scores_read_as_amounts_are_not_asked_about_their_unit():
    about = About("made_up", "", True, ("contribution",), "performance", "faithfulness", "nobody", amounts=True)
    assert "scale" not in outcomes(records(scale=lambda values: [7 * v for v in values]), about)


def test_what_is_not_defined_is_left_out_of_the_rates():
    some = records(order=lambda rng: [None, *PERFECT[1:]] if rng.random() < 0.5 else PERFECT)
    found = [one for one in findings(some, {"made_up": ABOUT}) if one.test == "truth" and one.what.startswith("the truth")]
    assert found[0].outcome == "passed"
    assert 30 < found[0].n < 90


@pytest.mark.parametrize(("test", "runs", "most"), [("truth", 100, 11), ("halves", 200, 16)])
def test_coins_are_called_true_at_most_one_time_in_twenty(test, runs, most):
    called = 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        some = records(40, order=lambda _, rng=rng: noise(rng))
        called += any(one.outcome == "passed" for one in findings(some, {"made_up": ABOUT}) if one.test == test)
    assert called <= most  # five in a hundred, and two standard errors and a half


def test_a_metric_is_admitted_that_failed_nothing_and_passed_what_it_must():
    def admitted(some):
        return admissions(findings(some, {"made_up": ABOUT}), "image", LABS, {"made_up": ABOUT})[0]

    assert admitted(records()).admitted
    assert "what every class has more of" in admitted(records(shared=lambda rng: [0.0, 1.0])).why
    assert not admitted(records(shared=lambda rng: [0.0, 1.0])).admitted
    unsure = admitted(records(8, shared=lambda rng: rng.permutation([0.0, 1.0])))
    assert not unsure.admitted
    assert "undecided" in unsure.why


def test_scattered_and_adjoining_have_the_same_numbers_and_differ_in_who_is_beside_whom():
    rng = generator(0)
    steps = [[], []]
    first = np.zeros((2, 144))
    for _ in range(300):
        for side, scores in enumerate(scattered_and_adjoining((12, 12), rng)):
            field = scores.reshape(12, 12)
            steps[side].append(np.abs(field - np.roll(field, 1, 0)).mean())
            first[side, scores.argmax()] += 1
    assert np.mean(steps[1]) < 0.6 * np.mean(steps[0])
    for side in first:  # every place comes first as often as any other, to within five standard errors
        assert np.abs(side - 300 / 144).max() < 5 * np.sqrt(300 / 144) + 1


@pytest.mark.parametrize(("lab", "metric", "test", "expected"), [
    (Pictures(), "pixel_flipping", "truth", "passed"), (Pictures(), "pixel_flipping", "shared", "passed"),
    (Pictures(), "pixel_flipping", "baseline", "passed"), (Pictures(), "pixel_flipping/accuracy", "shared", "failed"),
    (Pictures(), "pointing_game", "shared", "failed"), (Reviews(), "word_deletion", "shared", "failed"),
    (Reviews(), "infidelity", "truth", "passed"), (Reviews("trigger"), "relevance_mass", "shared", "failed")])
def test_the_known_flaws_are_caught_in_the_lab_and_pixel_flipping_of_scores_is_not(lab, metric, test, expected):
    chosen = METRIC_NAMES[metric]
    some = [{"lab": lab.name, **LabCase(lab, case, [chosen]).record()} for case in range(30)]
    found = findings(some, {metric: chosen.about})
    assert outcome_of([one for one in found if one.test == test]) == expected


def test_a_case_is_the_same_to_the_bit():
    metrics = [METRIC_NAMES[name] for name in ("pixel_flipping", "infidelity", "max_sensitivity")]
    assert LabCase(Reviews(), 3, metrics).record() == LabCase(Reviews(), 3, metrics).record()
    assert LabCase(Reviews(), 3, metrics).record() != LabCase(Reviews(), 3, metrics, seed=1).record()


def test_a_metric_that_raises_is_told_and_the_others_go_on():
    class Broken:
        about = ABOUT

        def __call__(self, judged, rng):
            raise ValueError("no luck")

    record = LabCase(Reviews(), 0, [Broken(), METRIC_NAMES["infidelity"]]).record()
    assert record["errors"] == {"made_up": "ValueError: no luck"}
    assert "infidelity" in record["order"]


@pytest.mark.parametrize("error", [RuntimeError, KeyError, IndexError])
def test_whatever_a_metric_raises_is_charged_to_it_alone(error):
    class Broken:
        about = ABOUT

        def __call__(self, judged, rng):
            if judged.d > 14:
                raise error("no")
            return float(judged.scores.max())

    some = [{"lab": "reviews/words", **LabCase(Reviews(), case, [Broken(), METRIC_NAMES["infidelity"]]).record()}
            for case in range(12)]
    assert 0 < sum(bool(record["errors"]) for record in some) < 12
    found = findings(some, {"made_up": ABOUT, "infidelity": METRIC_NAMES["infidelity"].about})
    assert {one.outcome for one in found if one.metric == "made_up"} == {"failed"}
    assert "it raised" in next(one.words for one in found if one.metric == "made_up")
    assert len([one for one in found if one.metric == "infidelity"]) > 4


def test_a_metric_cannot_spoil_the_scores_of_others():
    class Mutates:
        about = ABOUT

        def __call__(self, judged, rng):
            judged.scores[:] = 0
            return 0.0

    record = LabCase(Reviews(), 0, [Mutates(), METRIC_NAMES["infidelity"]]).record()
    assert "read-only" in record["errors"]["made_up"]
    assert record["order"]["infidelity"] == LabCase(Reviews(), 0, [METRIC_NAMES["infidelity"]]).record()["order"]["infidelity"]


@pytest.mark.parametrize(("lab", "expected"), [(Pictures("edges"), "failed"), (Pictures(), "passed")])
def test_the_isolation_effect_is_caught_where_it_is_and_not_where_it_is_not(lab, expected):
    chosen = METRIC_NAMES["pixel_flipping"]
    some = [{"lab": lab.name, **LabCase(lab, case, [chosen]).record()} for case in range(80 if expected == "passed" else 30)]
    found = findings(some, {"pixel_flipping": chosen.about})
    assert outcome_of([one for one in found if one.test == "isolation"]) == expected


@pytest.mark.parametrize("name", ["infidelity", "infidelity/scaled", "faithfulness_correlation"])
def test_metrics_that_hide_a_quarter_are_shown_what_hiding_takes_there(name):
    chosen, lab = METRIC_NAMES[name], Pictures("edges")
    some = [{"lab": lab.name, **LabCase(lab, case, [chosen], cut="grid:6x6").record()} for case in range(30)]
    found = findings(some, {name: chosen.about})
    assert outcome_of([one for one in found if one.test == "truth"]) == "passed"


@pytest.mark.parametrize("lab", [Pictures(), Rows("leak"), Reviews(), Beeps()], ids=lambda lab: lab.name)
def test_the_flip_trial_finds_what_turned_the_label_and_is_asked_nothing_else(lab):
    chosen = METRIC_NAMES["flip"]
    cut = "grid:4x4" if lab.domain == "image" else None
    some = [{"lab": lab.name, **LabCase(lab, case, [chosen], cut=cut).record()} for case in range(30)]
    found = findings(some, {"flip": chosen.about})
    assert outcome_of([one for one in found if one.test == "truth"]) == "passed"
    assert not {"shared", "baseline"} & {one.test for one in found}
    labs = {lab.name: {"domain": lab.domain}}
    admitted = admissions(found, lab.domain, labs, {"flip": chosen.about})[0]
    assert admitted.admitted
    asked = outcome_of([one for one in found if one.test == "asked"])
    assert (asked == "passed") != ("not who explains the score" in admitted.why)


def test_metrics_beside_each_other_are_what_they_are_alone():
    names = ("pixel_flipping", "infidelity", "pointing_game", "flip", "recovery")
    metrics = [METRIC_NAMES[name] for name in names]
    whole = LabCase(Rows(), 2, metrics).record()
    turned = LabCase(Rows(), 2, metrics[::-1]).record()
    for metric in metrics:
        alone = LabCase(Rows(), 2, [metric]).record()
        for test, values in alone.items():
            for key, value in values.items():
                if test in ("baseline", "same"):
                    for name, numbers in value.items():
                        np.testing.assert_allclose(np.array(whole[test][key][name], float), np.array(numbers, float), rtol=1e-9)
                        np.testing.assert_allclose(np.array(turned[test][key][name], float), np.array(numbers, float), rtol=1e-9)
                else:
                    np.testing.assert_allclose(np.array(whole[test][key], float), np.array(value, float), rtol=1e-9)
