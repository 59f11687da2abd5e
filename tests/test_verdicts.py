"""Each rule of the verdicts by itself, and all of them on simulated audits whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from whytrust.stats import Difference, equivalent, holm, paired
from whytrust.verdicts import Adjusted, Compared, Verdict, adjusted, judge, overall, table

FOUND, NOT_FOUND = 0.01, 0.6


def difference(value=0.1, n=400, error=0.02):
    return Difference(value, value - 2 * error, value + 2 * error, 0.5, n, n, error, n - 1, grain=0.01)


def verdict(kind, n=100, needed=None, with_magnitude=True):
    return Verdict(kind, f"{kind} in words", n, needed, with_magnitude)


# --- one measure ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("random", "p_random", "magnitude", "p_magnitude", "p_equivalent", "kind", "words"), [
    (0.1, FOUND, 0.1, FOUND, NOT_FOUND, "better_than_magnitude", "better than magnitude"),
    (0.1, FOUND, 0.1, NOT_FOUND, NOT_FOUND, "better_than_random", "better than random, not than magnitude"),
    (0.1, FOUND, -0.1, FOUND, NOT_FOUND, "better_than_random", "better than random, not than magnitude"),
    (0.1, FOUND, None, None, NOT_FOUND, "better_than_random", "better than random"),
    (-0.1, FOUND, None, None, NOT_FOUND, "worse", "worse than random"),
    (-0.1, FOUND, 0.1, FOUND, NOT_FOUND, "worse", "worse than random"),
    (0.0, NOT_FOUND, 0.1, FOUND, FOUND, "no_better", "no better than random (within ± .05)"),
    (0.02, FOUND, None, None, FOUND, "better_than_random", "better than random by less than .05"),
    (0.02, FOUND, -0.2, FOUND, FOUND, "better_than_random", "better than random by less than .05, not than magnitude"),
    (0.02, FOUND, 0.2, FOUND, FOUND, "better_than_magnitude", "better than magnitude, than random by less than .05"),
    (-0.02, FOUND, None, None, FOUND, "worse", "worse than random by less than .05"),
])
def test_each_rule(random, p_random, magnitude, p_magnitude, p_equivalent, kind, words):
    found = judge(difference(random), p_random, None if magnitude is None else difference(magnitude), p_magnitude, p_equivalent)
    assert (found.kind, found.words, found.n, found.needed) == (kind, words, 400, None)
    assert found.with_magnitude == (magnitude is not None)


def test_the_level_itself_counts_as_found():
    assert judge(difference(), 0.05, None, None, 1.0).kind == "better_than_random"
    assert judge(difference(), 0.0501, None, None, 1.0).kind == "undecided"


def test_undecided_says_how_many_cases_would_do():
    found = judge(difference(0.03, n=40, error=0.33 / 40**0.5), NOT_FOUND, None, None, NOT_FOUND)
    assert found == Verdict("undecided", "undecided: n = 40, about 340 needed", 40, 340, with_magnitude=False)


def test_more_tests_need_more_cases():
    few, many = (judge(difference(0.03, n=40, error=0.05), 0.6, None, None, 0.6, tests=tests) for tests in (1, 24))
    assert many.needed > 1.5 * few.needed


def test_where_enough_were_seen_for_the_margin_the_number_is_for_the_difference_seen():
    found = judge(difference(0.025, n=800, error=0.33 / 800**0.5), NOT_FOUND, None, None, NOT_FOUND)
    assert found.needed == pytest.approx((1.96 + 0.84) ** 2 * (0.33 / 0.025) ** 2, rel=0.05)  # half the margin: four times as many


def test_where_no_number_would_be_true_none_is_given():
    found = judge(difference(0.05, n=4000, error=0.33 / 4000**0.5), NOT_FOUND, None, None, NOT_FOUND)
    assert (found.words, found.needed) == ("undecided: n = 4000 should do, but the difference lies near a border", None)
    lone = judge(paired([1], [0]), 1.0, None, None, 1.0)
    assert (lone.words, lone.needed) == ("undecided: n = 1, too few to say how many are needed", None)
    assert judge(paired([], []), 1.0, None, None, 1.0).kind == "undecided"


def test_half_a_comparison_with_magnitude_is_refused():
    with pytest.raises(ValueError, match="must come together"):
        judge(difference(), 0.1, difference(), None, 0.1)
    with pytest.raises(ValueError, match=r"must be compared with random too, got \['lime'\]"):
        Compared({}, {"lime": difference()})


# --- all measures -----------------------------------------------------------------------------------------------------


def test_the_weakest_decided_verdict_stands():
    order = ["worse", "no_better", "better_than_random", "better_than_magnitude"]
    for weaker, stronger in (("worse", "no_better"), ("no_better", "better_than_random"), ("no_better", "better_than_magnitude"),
                             ("better_than_random", "better_than_magnitude")):
        assert overall({"flip": verdict(stronger), "recovery@3": verdict(weaker)}) == verdict(weaker)
        assert overall({"flip": verdict(weaker), "recovery@3": verdict(stronger)}) == verdict(weaker)
    for kind in order:
        assert overall({"flip": verdict(kind), "recovery@3": verdict("undecided", needed=9)}) == verdict(kind)


def test_measures_that_contradict_each_other_decide_nothing():
    found = overall({"flip": verdict("better_than_random", n=100), "recovery@1": verdict("no_better", n=7), "recovery@3": verdict("worse", n=80)})
    assert found == Verdict("undecided", "undecided: the measures disagree (flip better, recovery@3 worse)", 80)


def test_a_measure_without_magnitude_does_not_speak_against_better_than_magnitude():
    flip, recovery = verdict("better_than_magnitude"), verdict("better_than_random", with_magnitude=False)
    assert overall({"flip": flip, "recovery@3": recovery}) == flip
    assert overall({"recovery@3": recovery}) == recovery
    assert overall({"flip": verdict("undecided"), "recovery@3": recovery}) == recovery
    assert overall({"flip": flip, "recovery@3": verdict("no_better", with_magnitude=False)}).kind == "no_better"


def test_where_nothing_is_decided_the_nearest_measure_speaks():
    assert overall({"flip": verdict("undecided", needed=340), "b": verdict("undecided"), "c": verdict("undecided", needed=90)}).needed == 90
    few, many = Verdict("undecided", "undecided: n = 4, about 79 needed", 4, 79), Verdict("undecided", "undecided: n = 40, about 340 needed", 40, 340)
    assert overall({"flip": many, "recovery": few}).words == "undecided: in recovery n = 4, about 79 needed"  # not of the 40 of flip
    assert overall({"flip": many}) == many
    assert overall({}) == Verdict("undecided", "undecided: no measure applies", 0)


def test_holm_is_applied_once_over_every_difference_and_once_over_every_equivalence():
    ps = iter([0.001, 0.02, 0.004, 0.3, 0.012, 0.04])
    rows = [replace(difference(0.01 * i, error=0.01 * i), p=next(ps)) for i in range(1, 7)]
    measures = {"flip": Compared({"lime": rows[0], "shap": rows[1]}, {"lime": rows[2], "shap": rows[3]}), "recovery@3": Compared({"lime": rows[4], "shap": rows[5]})}
    found = adjusted(measures)
    every, same = holm([row.p for row in rows]), holm([equivalent(rows[i]) for i in (0, 1, 4, 5)])
    assert found["flip"] == Adjusted({"lime": every[0], "shap": every[1]}, {"lime": every[2], "shap": every[3]}, {"lime": same[0], "shap": same[1]})
    assert found["recovery@3"] == Adjusted({"lime": every[4], "shap": every[5]}, {}, {"lime": same[2], "shap": same[3]})
    verdicts = table(measures)
    assert verdicts["flip"]["lime"].kind == "better_than_magnitude"  # .001 × 6 and .004 × 5
    assert verdicts["recovery@3"] == {name: judge(measures["recovery@3"].random[name], found["recovery@3"].random[name], None, None, found["recovery@3"].equivalent[name], tests=6)
                                      for name in ("lime", "shap")}


def test_an_audit_without_measures_has_no_verdicts():
    assert table({}) == {}


# --- simulated audits -------------------------------------------------------------------------------------------------


def audit(rng, n, lift_over_random, lift_of_magnitude, explainers=6):
    """Flips of explainers that share the difficulty of each case, against random's exact expectation and against magnitude."""
    chances = np.clip(rng.beta(1, 2, n), 0, 0.8)

    shared, ease = rng.random(n) < 0.5, rng.random(n)

    def flips(lift):  # in half the cases the luck is the same for all
        return np.where(shared, ease < chances + lift, rng.random(n) < chances + lift).astype(float)

    magnitude = flips(lift_of_magnitude)
    every = {f"explainer {i}": flips(lift_over_random) for i in range(explainers)}
    return {"flip": Compared({name: paired(one, chances, chance=chances * (1 - chances)) for name, one in every.items()},
                             {name: paired(one, magnitude) for name, one in every.items()})}


def test_an_audit_of_random_rankings_seldom_calls_any_of_them_different():
    rng, runs = np.random.default_rng(0), 400
    wrong = sum(any(v.kind in ("worse", "better_than_random", "better_than_magnitude") for v in table(audit(rng, 100, 0, 0))["flip"].values())
                for _ in range(runs))
    assert wrong <= scipy_stats.binom.ppf(0.999, runs, 0.05)


def test_an_audit_of_rankings_as_good_as_magnitude_seldom_calls_any_of_them_different_from_it():
    rng, runs = np.random.default_rng(1), 400
    wrong = sum(min(adjusted(audit(rng, 100, 0.15, 0.15))["flip"].magnitude.values()) <= 0.05 for _ in range(runs))
    assert wrong <= scipy_stats.binom.ppf(0.999, runs, 0.05)


def test_an_explainer_clearly_above_random_is_called_better():
    rng, runs = np.random.default_rng(2), 200
    kinds = [table(audit(rng, 400, 0.15, 0.15))["flip"]["explainer 0"].kind for _ in range(runs)]
    assert np.mean([kind.startswith("better") for kind in kinds]) >= 0.8
    assert np.mean([kind == "better_than_magnitude" for kind in kinds]) <= scipy_stats.binom.ppf(0.999, runs, 0.05) / runs


def test_an_explainer_above_magnitude_too_is_called_that():
    rng, runs = np.random.default_rng(3), 100
    kinds = [table(audit(rng, 400, 0.2, 0.05))["flip"]["explainer 0"].kind for _ in range(runs)]
    assert np.mean([kind == "better_than_magnitude" for kind in kinds]) >= 0.8


def test_with_enough_cases_a_random_ranking_is_called_no_better():
    rng = np.random.default_rng(4)
    chances = np.full(4000, 0.1)
    kinds = [table({"flip": Compared({"x": paired(rng.random(4000) < chances, chances, chance=chances * 0.9)})})["flip"]["x"].kind for _ in range(100)]
    assert kinds.count("no_better") >= 85


def test_a_difference_of_nothing_says_how_many_cases_would_show_that():
    nothing = paired(np.full(30, 0.5), np.full(30, 0.5), grain=1 / 15)
    found = judge(nothing, 1.0, None, None, equivalent(nothing))
    assert found.words == "undecided: n = 30, about 55 needed"
    assert equivalent(paired(np.full(55, 0.5), np.full(55, 0.5), grain=1 / 15)) <= 0.05
