"""What is said of a run of word swaps: numbers worked out on paper or by scipy, and sentences that name the right ones."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from studies import fragile_records as made
from studies.fragile_records import level, record
from whytrust.studies import fragile_findings as findings
from whytrust.studies.fragile_findings import clipped, comparisons, curves, fragile, mean_of, number, rows

TOLD = {"value": 0.12, "low": 0.05, "high": 0.19, "n": 9, "sources": 3, "p": 0.01}
"""A test as sentences read it; its call is added."""


def drawn(m, words, rank, **more):
    """A level of a random path: nothing chose it, so that nothing was seen."""
    return {**level(m, words, rank, **more), "seen": None, "moved": None}


def text(case, lom=(), *, models=None, chance=(), words=10, text=None, **more):
    """A text of its own, with rank correlations of levels 1, 2, …; `chance` is a list of such lists, `models` the model's own."""
    levels = [level(m, words, rank, model=own) for m, (rank, own) in
              enumerate(zip(lom, models or [1.0] * len(lom), strict=True), 1)]
    draws = [[drawn(m, words, rank) for m, rank in enumerate(draw, 1)] for draw in chance]
    return record(case, words, {"lom": [levels], "random": draws}, text=text or f"{case} says so", **more)


def given_rows(some, objective="lom"):
    return list(rows(some, objective))


def rank_of(row):
    return clipped(row.level["rank"])


def by_holm(p_values):
    """Holm's adjustment step by step, as it is done on paper."""
    adjusted, largest = [0.0] * len(p_values), 0.0
    for done, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min((len(p_values) - done) * p_values[place], 1.0))
        adjusted[place] = largest
    return adjusted


# --- rows -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "bucket"), [(0.01, 0), (0.1, 0), (0.10001, 1), (0.2, 1), (0.1 + 0.2, 2), (0.5, 4), (0.50001, None),
                                               (1.0, None)])
def test_a_share_on_the_edge_belongs_to_the_lower_bucket(ratio, bucket):
    assert [row.bucket for row in given_rows([record("a", 10, {"lom": [[{**level(1, 10), "ratio": ratio}]]})])] == [bucket]


def test_rows_are_the_levels_of_texts_that_went_well_in_every_draw():
    some = [text("a", (0.8, 0.6), noise=0.9, chance=[(0.9, 0.7), (0.5,)]), text("b", (0.1,), status="wrong"), record("c", 10, {}, status="failed"), text("d", (0.4,))]
    assert [(row.case, row.m, row.ratio, row.level["rank"], row.noise["rank"]) for row in given_rows(some)] == [
        ("a", 1, 0.1, 0.8, 0.9), ("a", 2, 0.2, 0.6, 0.9), ("d", 1, 0.1, 0.4, 1.0)]
    assert [(row.m, row.level["rank"]) for row in given_rows(some, "random")] == [(1, 0.9), (2, 0.7), (1, 0.5)]
    assert given_rows(some, "l2") == []


def test_chance_is_the_mean_over_draws_that_got_so_far_each_clipped_first():
    some = given_rows([text("a", (0.8, 0.6, 0.4), chance=[(-0.4, 0.7), (0.4,)])])
    assert [row.chance for row in some] == [{"rank": 0.2, "top": 0.2}, {"rank": 0.7, "top": 0.7}, {}]


def test_a_correlation_below_0_counts_as_0():
    assert [clipped(value) for value in (-1, -0.01, 0, 0.3, 1)] == [0, 0, 0, 0.3, 1]


# --- means ----------------------------------------------------------------------------------------------------------------


def test_a_mean_counts_levels_and_texts():
    some = given_rows([text("a", (0.8, 0.6)), text("b", (-0.5,)), *(text(case, (0.4,), text="again") for case in "cd")])
    found = mean_of(some, rank_of)
    assert (found["value"], found["n"], found["sources"]) == (pytest.approx(2.2 / 5), 5, 3)
    assert 0 <= found["low"] < found["value"] < found["high"] <= 1


def test_a_mean_of_nothing_says_nothing():
    assert mean_of([], rank_of) == {"value": None, "low": None, "high": None, "n": 0, "sources": 0}


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12), st.integers(2, 6))
def test_the_same_again_within_a_text_never_narrows_the_interval(values, times):
    once, often = (mean_of(given_rows([text(f"t{i}", (value,) * n) for i, value in enumerate(values)]), rank_of) for n in (1, times))
    assert often["value"] == pytest.approx(once["value"])
    assert often["low"] <= once["low"] + 1e-9
    assert often["high"] >= once["high"] - 1e-9
    assert (often["n"], often["sources"]) == (times * len(values), len(values))


# --- comparisons ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_attacks():
    """Seven texts with three levels an attack, alike within a text; and what each test compares, a mean a text."""
    rng, some, pairs = np.random.default_rng(4), [], {}
    for i in range(7):
        noise, paths = rng.uniform(0.4, 1), {"random": []}
        draws = rng.uniform(0.2, 0.9, 2)[:, None] + rng.uniform(-0.05, 0.05, (2, 3))
        paths["random"] = [[drawn(m, 10, rank) for m, rank in enumerate(draw, 1)] for draw in draws]
        for name, at in (("lom", 0.25), ("l2", 0.4)):
            ranks = at + rng.uniform(-0.4, 0.3) + rng.uniform(-0.05, 0.05, 3)
            own = rng.uniform(0.2, 0.8) + rng.uniform(-0.05, 0.05, 3)
            paths[name] = [[level(m, 10, rank, model=value) for m, (rank, value) in enumerate(zip(ranks, own, strict=True), 1)]]
            for beside, other in (("chance", draws.mean()), ("noise", noise), ("model", own.mean())):
                pairs.setdefault((name, beside), []).append((other, np.maximum(ranks, 0).mean()))
        some.append(record(f"t{i}", 10, paths, text=f"text {i}", noise=noise))
    return {name: given_rows(some, name) for name in ("lom", "l2")}, pairs


def test_differences_are_of_texts_and_all_tests_of_a_run_share_their_5_percent(two_attacks):
    attacked, pairs = two_attacks
    found = comparisons(attacked)
    assert [(t["objective"], t["beside"]) for t in found] == list(pairs)
    raw = []
    for test, pair in zip(found, pairs.values(), strict=True):
        other, attack = np.transpose(pair)
        assert np.std(other - attack, ddof=1) > 0.1  # wide enough for the test to be Student's own
        raw.append(scipy_stats.ttest_rel(other, attack).pvalue)
        assert (test["value"], test["n"], test["sources"]) == (pytest.approx((other - attack).mean()), 21, 7)
    assert np.ptp([p for p in by_holm(raw) if p < 1]) > 0.01
    assert [t["p"] for t in found] == pytest.approx(by_holm(raw))


def test_a_difference_that_only_one_test_alone_would_call_is_undecided():
    apart = (0.33, -0.02, 0.28, 0.04, 0.24, 0.1)
    some = [text(f"t{i}", (0.4,), chance=[(0.4 + d,)], models=(0.4 + d,), noise=0.4 + d) for i, d in enumerate(apart)]
    alone = scipy_stats.ttest_1samp(apart, 0).pvalue
    assert 0.02 < alone <= 0.05
    for test in comparisons({"lom": given_rows(some)}):
        assert (test["p"], test["call"]) == (pytest.approx(3 * alone), "undecided")


def test_each_call_has_its_word():
    """Random swaps leave less, the same text again leaves more, and the model moves as far; of many texts, and of two."""
    some = [text(f"t{i}", (0.5 + 0.1 * (i % 3),), chance=[(0.2 + 0.1 * (i % 3),)], models=(0.5 + 0.1 * (i % 3),)) for i in range(150)]
    chance, noise, model = comparisons({"lom": given_rows(some)})
    assert (chance["call"], chance["value"]) == ("less", pytest.approx(-0.3))
    assert (noise["call"], noise["value"]) == ("more", pytest.approx(0.4))
    assert (model["call"], model["value"]) == ("none", pytest.approx(0))
    assert [t["call"] for t in comparisons({"lom": given_rows(some[:2])})] == ["undecided"] * 3
    assert [t["call"] for t in comparisons({"lom": given_rows(some[:80])})] == ["less", "more", "undecided"]  # .02 thrice is too much


def test_a_level_that_no_random_draw_reached_is_held_against_none():
    some = given_rows([text("a", (0.5, 0.5), chance=[(0.9,)]), text("b", (0.5,), chance=[(0.7,)]), text("c", (0.5,))])
    chance, noise, _ = comparisons({"lom": some})
    assert (chance["value"], chance["n"], chance["sources"]) == (pytest.approx(0.3), 2, 2)
    assert (noise["n"], noise["sources"]) == (4, 3)


def test_random_swaps_are_not_held_against_themselves():
    some = [text(case, (0.5,), chance=[(0.9,), (0.4,)]) for case in "abc"]
    found = comparisons({"random": given_rows(some, "random")})
    assert [(t["objective"], t["beside"], t["n"], t["sources"]) for t in found] == [("random", "noise", 6, 3), ("random", "model", 6, 3)]


def test_the_same_text_under_another_name_adds_no_evidence():
    ranks = (0.2, 0.5, 0.3, 0.6)
    once = [text(f"a{i}", (rank,), chance=[(0.9,)], text=f"text {i}") for i, rank in enumerate(ranks)]
    again = [text(f"b{i}", (rank,), chance=[(0.9,)], text=f"text {i}") for i, rank in enumerate(ranks)]
    for one, two in zip(comparisons({"lom": given_rows(once)}), comparisons({"lom": given_rows(once + again)}), strict=True):
        assert (two["n"], two["sources"]) == (8, 4)
        assert [two[k] for k in ("value", "low", "high", "p")] == pytest.approx([one[k] for k in ("value", "low", "high", "p")])


# --- sentences ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("value", "told", "signed"), [
    (-0.05, "−.05", "−.05"), (0.65, ".65", "+.65"), (0.999, "1.00", "+1.00"), (1, "1.00", "+1.00"), (-1, "−1.00", "−1.00"),
    (0, ".00", "+.00"), (None, "–", "–"), (math.nan, "–", "–"), (math.inf, "–", "–")])
def test_a_number_is_printed_as_correlations_are(value, told, signed):
    assert (number(value), number(value, signed=True)) == (told, signed)


@pytest.mark.parametrize(("call", "changed", "words"), [
    ("more", {}, "That is fragility above chance: random swaps of as many words leave +.12 more (+.05 to +.19)."),
    ("less", {"value": -0.12}, "That is less than chance does: random swaps of as many words leave .12 less."),
    ("none", {"value": 0.01, "low": -0.02}, "No fragility above chance: random swaps of as many words do as much, to within .05 (+.01 (−.02 to +.19))."),
    ("undecided", {"low": -0.05}, "Whether that is more than random swaps of as many words do is undecided: the difference is +.12 (−.05 to +.19)."),
    ("undecided", {"value": math.nan, "n": 0}, "There were no random swaps to hold it against.")])
def test_what_is_said_of_chance_follows_the_call(call, changed, words):
    assert findings._beyond_chance({**TOLD, **changed, "call": call}) == words


@pytest.mark.parametrize(("call", "noise", "model", "words"), [
    ("more", 0.95, 0.8, "Of a drop of .65, .20 is the model's, which reasons otherwise, and .45 the explainer's (.05 is what it varies by about the same text)."),
    ("more", 0.996, 0.8, "Of a drop of .65, .20 is the model's, which reasons otherwise, and .45 the explainer's."),
    ("less", 0.9, 0.1, "Of a drop of .65, all may be the model's: its answers moved as far as what lime says of them."),
    ("none", 0.9, 0.37, "Of a drop of .65, all may be the model's: its answers moved as far as what lime says of them."),
    ("undecided", 0.9, 0.352, "Of a drop of .65, all may be the model's: its answers moved as far as what lime says of them."),
    ("undecided", 0.9, 0.6, "Of a drop of .65, .40 is the model's; whether the rest is the explainer's is undecided.")])
def test_whose_fault_it_is_follows_the_call_and_the_means(call, noise, model, words):
    some = given_rows([text("a", (0.2,), models=(model + 0.1,), noise=noise + 0.004), text("b", (0.5,), models=(model - 0.1,), noise=noise - 0.004)])
    told = findings._blame(some, {**TOLD, "call": call}, "lime")
    assert told.startswith(f"Whose fault? The model's own answers without each word keep a rank correlation of {number(model)} (")
    assert told.endswith(words)


@pytest.mark.parametrize(("call", "words"), [
    ("more", "the swaps do more than that"), ("none", "its noise explains all of the drop"), ("less", "the swaps do less than that"),
    ("undecided", "whether the swaps do more is undecided")])
def test_what_is_said_of_noise_follows_the_call(call, words):
    some = given_rows([text("a", (0.2, 0.4), noise=0.9), text("b", (0.6, 0.4), noise=0.7)])
    tests = [{**TOLD, "objective": "lom", "beside": beside, "call": call if beside == "noise" else "less"} for beside in ("chance", "noise", "model")]
    left, _, noise, blame = findings._said("lom", some, [{**tests[1], "objective": "l2", "call": "never read"}, *tests], "lime")
    assert left.startswith("Swaps chosen by centre of mass (ΔLOM) keep the label, and of the order of words by lime a rank correlation of .40 (")
    assert "is left, over 2 texts and all shares of words; with up to 10 % of the words .40 (" in left
    assert noise.startswith("Asked twice about the same text, lime agrees with itself to .80 (")
    assert noise.endswith(f"): {words} (+.12 (+.05 to +.19)).")
    assert "all may be the model's" in blame  # by its own test


def test_of_an_explainer_that_never_varies_no_noise_is_told():
    some = given_rows([text("a", (0.2,), words=5), text("b", (0.6,), words=5)])
    left, chance, noise, _ = findings._said("lom", some, comparisons({"lom": some}), "occlusion")
    assert left.endswith("over 2 texts and all shares of words.")  # one word of five is more than a tenth
    assert chance == "There were no random swaps to hold it against."
    assert noise == "occlusion draws nothing here: asked twice about the same text it says the same."


def test_cautions_name_what_lies_outside_repeats_and_what_is_cut():
    some = [text("a", (0.5, 0.5), text="one"), text("b", (0.5, 0.5), text="one", left_out=7), text("c", (0.5,), text="two", left_out=1)]
    calm = findings._cautions({"constraints": []}, some[1:2], {"lom": given_rows(some[1:2])})
    assert [note.split(" ")[:3] for note in calm] == [["Texts", "are", "chosen"], ["Words", "count", "alike"], ["Of", "1", "text,"]]
    some[0]["paths"]["lom"][0][1]["outside"] = True
    notes = findings._cautions({"constraints": ["SentenceSimilarity()"]}, some, {"lom": given_rows(some)})
    assert notes[2].endswith("in 20 % of the levels chosen by it. There it measures cancellation, not place.")
    assert notes[3:5] == ["Of 3 texts 2 differ; the same text again is no new evidence.",
                          "Of 2 texts, longer than what the model reads, the rest was left out."]
    assert notes[5].startswith("Swapped words mean the same by a thesaurus and a sentence encoder")
    assert len(findings._cautions({"constraints": []}, some, {"l2": []})) == 4  # the centre of mass chose nothing


# --- tables and curves ----------------------------------------------------------------------------------------------------


@pytest.fixture
def judged():
    """Three texts, two of them equal: of ten words and of five."""
    def both(case, words, ranks, seen, own, chance, said, **more):
        lom = [{**level(m, words, rank, seen=saw, model=model), "top": (rank + 1) / 2} for m, (rank, saw, model) in
               enumerate(zip(ranks, seen, own, strict=True), 1)]
        draws = [[drawn(m, words, rank, top=0.25) for m, rank in enumerate(draw, 1)] for draw in chance]
        return record(case, words, {"lom": [lom], "random": draws}, text=said, **more)
    return [both("a", 10, (0.8, 0.6), (0.7, -0.1), (0.9, 0.5), [(0.9, 0.7), (0.5, -0.3)], "same", noise=0.9),
            both("b", 10, (-0.5,), (-0.8,), (-0.2,), [(0.3,)], "same", noise=0.7),
            both("c", 5, (0.2,), (0.1,), (0.4,), [], "other", noise=0.6)]


def test_a_table_has_a_mean_a_bucket_of_what_was_judged_seen_drawn_repeated_and_modelled(judged):
    table = findings._table("lom", given_rows(judged), "rank")
    assert table["title"] == "Rank correlation by share of words swapped, chosen by centre of mass (ΔLOM)"
    assert table["columns"] == ["words swapped", "texts", "as judged", "as the attack saw it", "random swaps", "the same text again",
                                "the model's own answers"]
    first, second = table["rows"]  # shares that no text came to have no row
    assert first[:2] == ["0–10 %", 1]  # both say the same
    assert [cell["value"] for cell in first[2:]] == pytest.approx([0.4, 0.35, (0.7 + 0.3) / 2, 0.8, 0.45])
    assert second[:2] == ["10–20 %", 2]
    assert [cell["value"] for cell in second[2:]] == pytest.approx([0.4, 0.05, 0.35, 0.75, 0.45])
    assert [cell["n"] for cell in second[2:]] == [2, 2, 1, 2, 2]  # of the short text nothing was drawn


def test_a_table_of_top_halves_leaves_the_model_out(judged):
    table = findings._table("lom", given_rows(judged), "top")
    assert table["title"].startswith("Overlap of the top halves by share")
    assert table["columns"][-1] == "the same text again"
    assert [cell["value"] for cell in table["rows"][0][2:]] == pytest.approx([(0.9 + 0.25) / 2, (0.8 + 0) / 2, 0.25, 0.8])


def test_curves_have_a_mean_a_bucket_for_each_that_is_drawn(judged):
    found = curves(judged, {"lom": given_rows(judged)}, "rank")
    assert {name: [one["value"] for one in some[:2]] for name, some in found.items()} == {
        "lom": pytest.approx([0.4, 0.4]), "lom, as it saw it": pytest.approx([0.35, 0.05]), "random": pytest.approx([1.7 / 3, 0.35]),
        "noise": pytest.approx([0.8, 0.75]), "model": pytest.approx([0.45, 0.45])}
    assert all(len(some) == 5 and [one["value"] for one in some[2:]] == [None] * 3 for some in found.values())
    top = curves(judged, {"lom": given_rows(judged)}, "top")
    assert list(top) == ["lom", "lom, as it saw it", "random", "noise"]
    assert top["random"][0]["value"] == pytest.approx(0.25)


def test_the_chart_has_points_where_there_are_levels(judged):
    attacked = {"lom": given_rows(judged)}
    series = {one["name"]: one for one in findings._chart(curves(judged, attacked, "rank"), attacked, "rank")["series"]}
    assert list(series) == ["centre of mass (ΔLOM)", "random", "the same text again", "the model itself"]
    assert all(one["x"] == [10, 20] for one in series.values())
    assert series["random"]["y"] == pytest.approx([1.7 / 3, 0.35])
    assert all(low <= y <= high for one in series.values() for low, y, high in zip(one["low"], one["y"], one["high"], strict=True))


def test_the_table_of_tests_says_in_words_what_was_called():
    tests = [{**TOLD, "objective": "lom", "beside": "chance", "call": "more"}, {**TOLD, "objective": "l2", "beside": "noise", "call": "less", "p": 1e-5},
             {**TOLD, "objective": "l2", "beside": "model", "call": "none"}, {**TOLD, "objective": "random", "beside": "noise", "call": "undecided", "n": 0}]
    told = "+.12 (+.05 to +.19)"
    assert findings._test_table(tests)["rows"] == [
        ["centre of mass (ΔLOM)", "random swaps of as many words", told, "p = .010", "the attack leaves less"],
        ["distance (L2)", "the same text explained again", told, "p < .001", "the attack leaves more"],
        ["distance (L2)", "the model's own answers", told, "p = .010", "no difference within .05"],
        ["random swaps", "the same text explained again", "–", "p = .010", "undecided"]]


def test_confidence_stands_under_the_number_of_words_swapped():
    some = [record("a", 10, {"lom": [[level(m, 10, score=0.9 - m / 10) for m in range(1, 6)]], "random": [[level(1, 10, score=score)] for score in (0.6, 0.7)]}, text="a", score=0.95),
            record("b", 10, {"lom": [[level(1, 10, score=0.7), level(2, 10, score=1.5)]], "random": [[level(1, 10, score=0.8)]]}, text="b", score=0.85)]
    table = findings._confidence(some, ["lom"])
    assert table["columns"] == ["chosen by", "0", "1", "2", "3", "4"]
    lom, random = table["rows"]
    assert (lom[0], random[0]) == ("centre of mass (ΔLOM)", "random swaps")
    assert [(cell["value"], cell["n"], cell["sources"]) if cell else None for cell in lom[1:]] == [
        (pytest.approx(0.9), 2, 2), (pytest.approx(0.75), 2, 2), None, (pytest.approx(0.6), 1, 1), (pytest.approx(0.5), 1, 1)]  # 1.5 is no probability
    assert [(cell["value"], cell["n"], cell["sources"]) if cell else None for cell in random[1:]] == [
        (pytest.approx(0.9), 2, 2), (pytest.approx(0.7), 3, 2), None, None, None]


def quality(perplexity, new, difference=0, similarity=0.9):
    return {"perplexity": perplexity, "new_errors": new, "error_difference": difference, "similarity": similarity}


def test_the_table_of_quality_has_the_median_of_perplexity_and_means_of_the_rest():
    levels = [level(1, 10, quality=quality(20.0, 0, -1, 0.8), pool_quality=[quality(30.0, 1), quality(10.0, 0)]),
              level(2, 10, quality=quality(90.0, 3, 2, 0.6), pool_quality=[quality(40.0, 1)]), level(3, 10, quality=quality(10.0, 0, 0, None)), level(4, 10)]
    some = [record("a", 10, {"lom": [levels], "random": [[level(1, 10, quality=quality(5.0, 1))]]}, quality=quality(7.0, 0, 0, 1.0)),
            record("b", 10, {"lom": [[]]})]
    (table,) = findings._quality(some, ["lom"])
    assert table["columns"] == ["texts", "levels", "perplexity (median)", "new grammar errors", "difference in errors", "similarity"]
    assert table["rows"] == [["the original", 1, 7, 0, 0, 1], ["centre of mass (ΔLOM)", 3, 20, 1, pytest.approx(1 / 3), pytest.approx(0.7)],
                             ["random swaps", 1, 5, 1, 0, 0.9], ["all candidates", 3, 30, pytest.approx(2 / 3), 0, pytest.approx(0.9)]]
    assert findings._quality(some[1:], ["lom"]) == []


# --- all of it ------------------------------------------------------------------------------------------------------------


def found_of(folder, some, objectives=("lom",), **about):
    spec = {"explainer": "lime", "victim": "Lime()", "objectives": list(objectives), "max_ratio": 0.5, "constraints": [], "variant": "paper",
            "controls": 1, "racing": None}
    told = {"model": "made up", "inputs": "texts", "command": "", "candidates": "a list", "constraints": [], "quality": None, **about}
    found = fragile(made.write(folder, [(one, {}) for one in some], spec=spec, about=told))
    json.dumps(found, allow_nan=False)
    return found


def test_a_run_is_counted_answered_and_drawn(tmp_path):
    ranks = (0.1, 0.3, 0.2, 0.4, 0.1, 0.3)
    some = [text(f"t{i}", (rank,), chance=[(0.9,)], models=(0.8,), noise=0.95) for i, rank in enumerate(ranks)]
    some += [text("u", status="nothing to swap"), text("v", status="nothing to swap"), text("w", status="wrong"), record("x", 10, {}, status="failed")]
    found = found_of(tmp_path / "run", some, not_judged=["grammar was not judged"])
    assert (found["cases"], found["failures"]) == ({"done": 10, "of": 10, "failed": 1}, [{"case": "x", "error": "ValueError: too short"}])
    assert (found["nothing to swap"], found["wrong"], found["explainer"], found["settings"]["racing"]) == (2, 1, "lime", "no")
    left, chance, noise, blame = found["answer"]
    assert "rank correlation of .23 (" in left
    assert chance.startswith("That is fragility above chance: random swaps of as many words leave +.67 more (")
    assert "agrees with itself to .95 (" in noise
    assert ": the swaps do more than that (+.72 (" in noise
    assert "Of a drop of .77, .20 is the model's, which reasons otherwise, and .57 the explainer's (.05 is" in blame
    assert [(t["beside"], t["call"], t["sources"]) for t in found["tests"]] == [("chance", "more", 6), ("noise", "more", 6), ("model", "more", 6)]
    assert found["curves"]["rank"]["lom"][0]["value"] == pytest.approx(1.4 / 6)
    assert [table["title"].split(" ")[0] for table in found["tables"]] == ["Rank", "Overlap", "How", "How"]
    assert found["charts"][0]["series"][0]["y"] == pytest.approx([1.4 / 6])
    assert found["notes"][0].startswith("In 2 texts there was nothing to swap: ")
    assert found["notes"][1].startswith("1 text is left out, for the model does not give the true label")
    assert found["notes"][-1] == "grammar was not judged"


def test_an_objective_that_chose_nothing_is_named(tmp_path):
    some = [record(case, 10, {"lom": [[]], "l2": [[level(1, 10, 0.5)]], "random": [[drawn(1, 10, 0.6)]]}, text=case) for case in "ab"]
    found = found_of(tmp_path / "run", some, ("lom", "l2"))
    assert found["answer"][0] == "No swap could be chosen by centre of mass (ΔLOM): the scores of every candidate cancel out, or are all 0."
    assert found["answer"][1].startswith("Swaps chosen by distance (L2) keep the label")
    assert {t["objective"] for t in found["tests"]} == {"l2"}


def test_random_swaps_alone_are_told_without_a_test_against_chance(tmp_path):
    some = [text(case, chance=[(0.5,), (0.9,)], noise=0.8) for case in "abc"]
    found = found_of(tmp_path / "run", some, ("random",))
    assert [t["beside"] for t in found["tests"]] == ["noise", "model"]
    assert not any("chance" in words for words in found["answer"])
    assert "a rank correlation of .70 (" in found["answer"][0]


def test_of_fewer_than_two_different_texts_nothing_is_said(tmp_path):
    some = [text("a", (0.5,), text="same"), text("b", (0.5,), text="same"), text("c", status="nothing to swap")]
    found = found_of(tmp_path / "run", some)
    assert found["answer"] == ["Nothing can be said: words could be swapped in 2 of 3 texts, and at least 2 different ones are needed."]
    assert (found["tables"], found["charts"], "tests" in found) == ([], [], False)
    assert [note.split(":")[0] for note in found["notes"]] == ["In 1 text there was nothing to swap"]
