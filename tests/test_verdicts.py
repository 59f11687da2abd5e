"""Each rule of the verdicts by itself, and all of them on simulated audits whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats as scipy_stats

from whytrust.stats import Difference, holm, no_better, paired
from whytrust.verdicts import Adjusted, Compared, Verdict, adjusted, judge, overall, table

FOUND, NOT_FOUND = 0.01, 0.6


def difference(value=0.1, n=400, error=0.02):
    return Difference(value, value - 2 * error, value + 2 * error, 0.5, n, n, error, n - 1, grain=0.01)


def judged(random, p_guess, magnitude=None, p_magnitude=None, p_no_better=NOT_FOUND, blind=True, **options):
    """One explainer's verdict from p-values that are adjusted already."""
    guesses = {"x": {"centre": random, "blind": random}} if blind else {}
    compared = Compared({"x": random}, {} if magnitude is None else {"x": magnitude}, guesses)
    return judge(compared, "x", Adjusted({"x": p_guess}, {"x": p_magnitude}, {"x": p_no_better}), **options)


def verdict(kind, n=100, needed=None, with_magnitude=True):
    return Verdict(kind, f"{kind} in words", n, needed, with_magnitude)


# --- one measure ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("random", "p_guess", "magnitude", "p_magnitude", "p_no_better", "kind", "words"), [
    (0.1, FOUND, 0.1, FOUND, NOT_FOUND, "better_than_magnitude", "better than magnitude"),
    (0.1, FOUND, 0.1, NOT_FOUND, NOT_FOUND, "better_than_blind", "better than blind guesses, not than magnitude"),
    (0.1, FOUND, -0.1, FOUND, NOT_FOUND, "better_than_blind", "better than blind guesses, and worse than magnitude"),
    (0.1, FOUND, None, None, NOT_FOUND, "better_than_blind", "better than blind guesses"),
    (-0.1, FOUND, None, None, NOT_FOUND, "worse", "worse than random"),
    (-0.1, FOUND, 0.1, FOUND, NOT_FOUND, "worse", "worse than random"),
    (-0.1, FOUND, -0.1, FOUND, NOT_FOUND, "worse", "worse than random, and worse than magnitude"),
    (0.0, NOT_FOUND, 0.1, FOUND, FOUND, "no_better", "no better than a blind guess"),
    (0.0, NOT_FOUND, -0.1, FOUND, FOUND, "no_better", "no better than a blind guess, and worse than magnitude"),
    (0.02, FOUND, None, None, FOUND, "no_better", "no better than a blind guess"),
    (0.02, FOUND, 0.2, FOUND, FOUND, "no_better", "no better than a blind guess"),
    (0.02, FOUND, -0.2, FOUND, FOUND, "no_better", "no better than a blind guess, and worse than magnitude"),
])
def test_each_rule(random, p_guess, magnitude, p_magnitude, p_no_better, kind, words):
    found = judged(difference(random), p_guess, None if magnitude is None else difference(magnitude), p_magnitude, p_no_better)
    assert (found.kind, found.words, found.n, found.needed) == (kind, words, 400, None)
    assert found.with_magnitude == (magnitude is not None)


def test_a_lead_below_the_margin_over_a_blind_guess_is_none_however_certain():
    found = judged(difference(0.02), FOUND, difference(0.2), FOUND, NOT_FOUND)
    assert (found.kind, found.words) == ("undecided", "undecided: n = 400, about 500 needed")
    assert judged(difference(0.05), FOUND, difference(0.2), FOUND, NOT_FOUND).kind == "better_than_magnitude"


def test_where_a_guess_leaves_little_to_be_found_half_of_that_is_a_lead():
    """A guess that names one of two places is as good as the truth from the second part on: the truth leads by .01 and no more."""
    small, certain = replace(difference(0.01, error=0.001), p=1e-9), Adjusted({"x": FOUND}, {}, {"x": NOT_FOUND})
    guesses = {"x": {"centre": small, "blind": small}}
    for left, kind in ((0.01, "better_than_blind"), (0.02, "better_than_blind"), (0.03, "undecided"), (0.0, "undecided"), (-0.01, "undecided")):
        assert judge(Compared({"x": difference(0.5)}, {}, guesses, {"x": left}), "x", certain).kind == kind
    assert judge(Compared({"x": difference(0.5)}, {}, guesses), "x", certain).kind == "undecided"


def test_the_guess_that_is_spoken_of_is_the_one_that_decides():
    small, clear = difference(0.02, error=0.0001), replace(difference(0.2, error=0.05), p=0.001)
    small = replace(small, p=1e-9)
    assert Compared({"x": clear}, blind={"x": {"centre": clear, "blind": small}}).closest("x") == ("blind", small)  # the lead is too small
    sure, barely = (replace(difference(value), p=p) for value, p in ((0.06, 1e-9), (0.2, 0.04)))
    assert Compared({"x": sure}, blind={"x": {"centre": barely, "blind": sure}}).closest("x") == ("centre", barely)  # hardest to beat
    below = difference(-0.1)
    assert Compared({"x": below}, blind={"x": {"blind": difference(-0.3)}}).closest("x") == ("random", below)


def test_without_blind_controls_nothing_is_called_better_than_a_blind_guess():
    found = judged(difference(0.1), FOUND, difference(0.1), FOUND, blind=False)
    assert (found.kind, found.words) == ("better_than_random", "better than random")
    assert judged(difference(0.0), NOT_FOUND, p_no_better=FOUND, blind=False).words == "no better than random"


def test_every_blind_control_must_be_beaten():
    wins, even, loses = (replace(difference(value), p=p) for value, p in ((0.2, 1e-6), (0.01, 0.4), (-0.2, 1e-6)))
    for guess in (even, loses):
        compared = Compared({"x": wins}, blind={"x": {"centre": wins, "edges": guess, "blind": wins}})
        assert compared.closest("x") == ("edges", guess)
        assert not table({"flip": compared})["flip"]["x"].kind.startswith("better")
    assert table({"flip": Compared({"x": wins}, blind={"x": {"centre": wins, "blind": wins}})})["flip"]["x"].kind == "better_than_blind"
    # Whatever it does against controls, what is below random is worse.
    assert table({"flip": Compared({"x": loses}, blind={"x": {"blind": loses}})})["flip"]["x"].kind == "worse"


def test_no_better_is_about_the_best_blind_control_not_about_random():
    wins, loses = difference(0.2), difference(-0.1)
    assert table({"flip": Compared({"x": wins}, blind={"x": {"blind": loses}})})["flip"]["x"].kind == "no_better"


def test_the_level_itself_counts_as_found():
    assert judged(difference(), 0.05).kind == "better_than_blind"
    assert judged(difference(), 0.0501).kind == "undecided"


def test_undecided_says_how_many_cases_would_do_and_against_which_control():
    open_ = difference(0.03, n=40, error=0.33 / 40**0.5)
    assert judged(open_, NOT_FOUND, blind=False) == Verdict("undecided", "undecided: n = 40, about 340 needed", 40, 340, with_magnitude=False)
    assert judged(open_, NOT_FOUND).words == "undecided: n = 40, about 340 needed"
    compared = Compared({"x": difference(0.3)}, blind={"x": {"shuffled:x": open_, "blind": difference(0.2)}})
    found = judge(compared, "x", Adjusted({"x": NOT_FOUND}, {}, {"x": NOT_FOUND}))
    assert found.words == "undecided: n = 40, about 340 needed against x's scores of other inputs"


def test_what_is_needed_is_counted_in_adversaries_of_which_a_measure_may_apply_to_some():
    few, all_ = difference(0.1, n=8, error=0.08), difference(0.03, n=60, error=0.05)
    recovery = judge(Compared({"x": few}, of=60), "x", Adjusted({"x": NOT_FOUND}, {}, {"x": NOT_FOUND}))
    alone = judge(Compared({"x": few}, of=8), "x", Adjusted({"x": NOT_FOUND}, {}, {"x": NOT_FOUND}))
    assert recovery.words.startswith("undecided: n = 8 of 60, about ")
    assert recovery.needed == pytest.approx(alone.needed * 60 / 8, rel=0.1)
    flip = judge(Compared({"x": all_}, of=60), "x", Adjusted({"x": NOT_FOUND}, {}, {"x": NOT_FOUND}))
    assert overall({"flip": flip, "recovery": recovery}).needed == min(flip.needed, recovery.needed)


def test_a_large_lead_needs_no_more_than_show_it():
    for value in (0.4, -0.4):
        large = judged(difference(value, n=10, error=0.15), NOT_FOUND, tests=12)
        assert 10 < large.needed < 40


def test_where_a_blind_guess_finds_all_there_is_nobody_is_better_and_few_cases_show_it():
    even = paired(np.full(40, 0.97), np.full(40, 0.97), grain=1 / 15)
    guesses = {"x": {"centre": even, "blind": even}}
    for left in (0.0, 0.0003, 0.004):
        found = table({"flip": Compared({"x": difference(0.5)}, {}, guesses, {"x": left})})["flip"]["x"]
        assert found.kind == "undecided"
        assert found.needed < 100
        several = paired(np.full(found.needed, 0.97), np.full(found.needed, 0.97), grain=1 / 15)
        more = {"x": {"centre": several, "blind": several}}
        enough = table({"flip": Compared({"x": difference(0.5)}, {}, more, {"x": left})})["flip"]["x"]
        assert enough.words == "no better than a blind guess (which finds all there is)"


def test_more_tests_need_more_cases():
    few, many = (judged(difference(0.03, n=40, error=0.05), 0.6, p_no_better=0.6, tests=tests) for tests in (1, 24))
    assert many.needed > 1.5 * few.needed


def test_where_enough_were_seen_for_the_margin_the_number_is_for_the_difference_seen():
    found = judged(difference(0.025, n=800, error=0.33 / 800**0.5), NOT_FOUND)
    assert found.needed == pytest.approx((1.96 + 0.84) ** 2 * (0.33 / 0.025) ** 2, rel=0.05)  # half the margin: four times as many


def test_where_no_number_would_be_true_none_is_given():
    found = judged(difference(0.05, n=4000, error=0.33 / 4000**0.5), NOT_FOUND)
    assert (found.words, found.needed) == ("undecided: n = 4000 should do, but the difference lies near a border", None)
    lone = judged(paired([1], [0]), 1.0, p_no_better=1.0)
    assert (lone.words, lone.needed) == ("undecided: n = 1, too few to say how many are needed", None)
    assert judged(paired([], []), 1.0, p_no_better=1.0).kind == "undecided"


def test_a_comparison_without_random_is_refused():
    with pytest.raises(ValueError, match=r"magnitude must be compared with random too, got \['lime'\]"):
        Compared({}, {"lime": difference()})
    with pytest.raises(ValueError, match=r"blind controls must be compared with random too, got \['lime'\]"):
        Compared({}, {}, {"lime": {"centre": difference()}})


# --- all measures -----------------------------------------------------------------------------------------------------


def test_the_weakest_decided_verdict_stands():
    for weaker, stronger in (("worse", "no_better"), ("no_better", "better_than_random"), ("no_better", "better_than_magnitude"),
                             ("no_better", "better_than_blind"), ("better_than_blind", "better_than_magnitude")):
        assert overall({"flip": verdict(stronger), "recovery@3": verdict(weaker)}).kind == weaker
        assert overall({"flip": verdict(weaker), "recovery@3": verdict(stronger)}).kind == weaker


def test_the_words_never_hide_what_another_measure_says():
    recovery = Verdict("better_than_blind", "better than blind guesses", 14, with_magnitude=False)
    flip = Verdict("undecided", "undecided: n = 64, about 900 needed", 64, 900, below_magnitude=True)
    found = overall({"flip": flip, "recovery": recovery})
    assert found.words == "better than blind guesses in recovery (n = 14); undecided, and worse than magnitude in flip"
    flip = Verdict("no_better", "no better than a blind guess", 64)
    assert overall({"flip": flip, "recovery": recovery}).words == "no better than a blind guess in flip (n = 64); better than blind guesses in recovery"
    same = Verdict("better_than_blind", "better than blind guesses, not than magnitude", 64)
    assert overall({"flip": same, "recovery": recovery}).words == "better than blind guesses, not than magnitude"


def test_measures_that_contradict_each_other_decide_nothing():
    found = overall({"flip": verdict("better_than_blind", n=100), "recovery@1": verdict("no_better", n=7), "recovery@3": verdict("worse", n=80)})
    assert found == Verdict("undecided", "undecided: the measures disagree (flip better, recovery@3 worse)", 80)


def test_a_measure_without_magnitude_or_blind_controls_does_not_speak_against_what_it_could_not_say():
    flip, recovery = verdict("better_than_magnitude"), verdict("better_than_blind", with_magnitude=False)
    metric = verdict("better_than_random", with_magnitude=False)
    assert overall({"flip": flip, "recovery@3": recovery, "deletion": metric}) == flip
    assert overall({"recovery@3": recovery, "deletion": metric}) == recovery
    assert overall({"recovery@3": recovery}) == recovery
    assert overall({"flip": verdict("undecided"), "recovery@3": recovery}).kind == "better_than_blind"
    assert overall({"flip": flip, "recovery@3": verdict("no_better", with_magnitude=False)}).kind == "no_better"


def test_where_nothing_is_decided_the_nearest_measure_speaks():
    assert overall({"flip": verdict("undecided", needed=340), "b": verdict("undecided"), "c": verdict("undecided", needed=90)}).needed == 90
    few, many = Verdict("undecided", "undecided: n = 4, about 79 needed", 4, 79), Verdict("undecided", "undecided: n = 40, about 340 needed", 40, 340)
    assert overall({"flip": many, "recovery": few}).words == "undecided: in recovery n = 4, about 79 needed"  # not of the 40 of flip
    assert overall({"flip": many}) == many
    assert overall({}) == Verdict("undecided", "undecided: no measure applies", 0)


def test_holm_is_applied_once_over_every_difference_and_once_over_every_no_better():
    ps = iter([0.001, 0.02, 0.004, 0.3, 0.012, 0.04])
    rows = [replace(difference(0.1 * i, error=0.02 * i), p=next(ps)) for i in range(1, 7)]
    blind = {"lime": {"blind": rows[0]}, "shap": {"blind": rows[1]}}
    measures = {"flip": Compared({"lime": rows[0], "shap": rows[1]}, {"lime": rows[2], "shap": rows[3]}, blind),
                "recovery@3": Compared({"lime": rows[4], "shap": rows[5]})}
    found = adjusted(measures)
    ordered = [rows[i].p for i in (0, 1, 4, 5, 2, 3)]
    every, same = holm(ordered), holm([no_better(rows[i]) for i in (0, 1, 4, 5)])
    assert found["flip"] == Adjusted({"lime": every[0], "shap": every[1]}, {"lime": every[4], "shap": every[5]}, {"lime": same[0], "shap": same[1]})
    assert found["recovery@3"] == Adjusted({"lime": every[2], "shap": every[3]}, {}, {"lime": same[2], "shap": same[3]})
    verdicts = table(measures)
    assert verdicts["flip"]["lime"].kind == "better_than_magnitude"  # .001 × 6 and .004 × 5
    assert verdicts["recovery@3"] == {name: judge(measures["recovery@3"], name, found["recovery@3"], tests=6) for name in ("lime", "shap")}


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
                             {name: paired(one, magnitude) for name, one in every.items()},
                             {name: {"blind": paired(one, flips(0))} for name, one in every.items()})}


def test_an_audit_of_random_rankings_seldom_calls_any_of_them_different():
    rng, runs = np.random.default_rng(0), 400
    wrong = sum(any(v.kind not in ("no_better", "undecided") for v in table(audit(rng, 100, 0, 0))["flip"].values())
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
    found = judged(nothing, 1.0, p_no_better=no_better(nothing))
    assert found.words == "undecided: n = 30, about 55 needed"
    assert no_better(paired(np.full(55, 0.5), np.full(55, 0.5), grain=1 / 15)) <= 0.05
