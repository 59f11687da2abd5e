"""Tables of fragile explanations from records made by hand, whose means and spreads can be worked out on paper."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from studies import fragile_records as made
from studies.fragile_records import level, record
from whytrust.studies import fragile_published as published
from whytrust.studies import fragile_tables, fragile_told
from whytrust.studies.fragile_findings import rows
from whytrust.studies.fragile_tables import SPANS, WHOLE, Run


def run_of(records, explainer="lime", dataset="sst2", model="tfidf"):
    return Run(dataset, model, explainer, records, made.manifest([r["case"] for r in records]))


@pytest.fixture
def two():
    """A text of ten words and one of four, which lose their explanation by hand."""
    ten = {"lom": [[level(1, 10, 0.8), level(2, 10, 0.6)]], "l2": [[level(1, 10, 0.7)]],
           "random": [[level(1, 10, 0.9), level(2, 10, 0.5)], [level(1, 10, 0.7)]]}
    four = {"lom": [[level(1, 4, -0.5), level(2, 4, 0.2)]], "l2": [[]], "random": [[level(1, 4, -0.2)], [level(1, 4, 0.4)]]}
    return run_of([record("a", 10, ten, noise=0.9), record("b", 4, four, noise=0.7)])


# --- buckets --------------------------------------------------------------------------------------------------------------


@given(st.integers(2, 400), st.data())
def test_a_share_belongs_to_the_tenth_whose_upper_end_it_does_not_pass(words, data):
    m = data.draw(st.integers(1, words))
    (row,) = rows([record("a", words, {"lom": [[level(m, words)]]})], "lom")
    share = Fraction(m, words)
    if share > Fraction(1, 2):
        assert row.bucket is None
    else:
        assert Fraction(row.bucket, 10) < share <= Fraction(row.bucket + 1, 10)


def test_a_tenth_of_the_words_is_in_the_first_bucket(two):
    cells = fragile_tables.cells(two, "rank")["lom"]
    assert [None if cell is None else cell["levels"] for cell in cells] == [1, 1, 1, None, 1, 4]
    assert cells[0]["mean"] == 0.8
    assert SPANS == ("0.0–0.1", "0.1–0.2", "0.2–0.3", "0.3–0.4", "0.4–0.5", "all")


def test_more_than_half_of_the_words_is_in_no_table():
    run = run_of([record("a", 4, {"lom": [[level(2, 4, 0.5), level(3, 4, 0.1)]]})])
    assert fragile_tables.cells(run, "rank")["lom"][WHOLE]["mean"] == 0.5


# --- means and spreads ----------------------------------------------------------------------------------------------------


def test_means_and_deviations_are_those_worked_out_by_hand(two):
    clipped, raw = (fragile_tables.cells(two, measure)["lom"][WHOLE] for measure in ("rank", "raw"))
    assert clipped["mean"] == pytest.approx((0.8 + 0.6 + 0 + 0.2) / 4)
    assert clipped["sd"] == pytest.approx(math.sqrt((0.4**2 + 0.2**2 + 0.4**2 + 0.2**2) / 3))
    assert raw["mean"] == pytest.approx((0.8 + 0.6 - 0.5 + 0.2) / 4)
    assert (clipped["levels"], clipped["texts"]) == (4, 2)
    assert 0 <= clipped["low"] < clipped["mean"] < clipped["high"] <= 1
    assert -1 <= raw["low"] < raw["mean"] < raw["high"] <= 1


def test_random_is_the_mean_over_draws_and_its_deviation_that_of_single_ones(two):
    cell = fragile_tables.cells(two, "rank")["random"][WHOLE]
    # a, one word: (.9 + .7) / 2; a, two words: .5 of the only draw that got there; b: (0 + .4) / 2, clipped before the mean
    assert cell["mean"] == pytest.approx((0.8 + 0.5 + 0.2) / 3)
    assert cell["levels"] == 3
    assert cell["sd"] == pytest.approx(np.std([0.9, 0.7, 0.5, 0.0, 0.4], ddof=1))


def test_the_same_text_twice_is_one_source():
    again = [record(case, 10, {"lom": [[level(1, 10, rank)]]}) for case, rank in (("a", 0.2), ("b", 0.4))]
    assert fragile_tables.cells(run_of(again), "rank")["lom"][0]["texts"] == 1


def test_a_centre_of_mass_that_is_nowhere_counts_for_nothing():
    some = [record("a", 10, {"lom": [[level(1, 10, lom=None), level(2, 10, lom=2.0), level(3, 10, lom=4.0)]]})]
    found = fragile_tables.cells(run_of(some), "lom")["lom"]
    assert found[0] is None
    assert found[WHOLE]["mean"] == 3.0
    assert found[WHOLE]["low"] is None  # one text says nothing of others


def test_numbers_without_a_range_get_students_interval_by_text():
    some = [record(str(i), 10, {"lom": [[level(1, 10, lom=float(i))]]}, text=f"text {'x ' * 9}{i}") for i in range(4)]
    cell = fragile_tables.cells(run_of(some), "lom")["lom"][WHOLE]
    # 0, 1, 2, 3: standard error sqrt(5/3/4), Student's quantile of 3 degrees of freedom 3.1824
    assert cell["high"] == pytest.approx(1.5 + 3.18245 * math.sqrt(5 / 12), abs=1e-4)


def test_what_the_attack_saw_is_kept_apart_from_what_is_judged():
    run = run_of([record("a", 10, {"lom": [[level(1, 10, 0.5, seen=0.2)]]})])
    assert fragile_tables.cells(run, "rank", seen=True)["lom"][0]["mean"] == 0.2
    assert fragile_tables.cells(run, "rank")["lom"][0]["mean"] == 0.5


# --- beside chance, noise and the model -----------------------------------------------------------------------------------


def many(texts=30, attack=0.4, chance=0.6, noise=0.9, model=0.5, rng=None):
    """Texts of ten words with one swapped, a little apart from each other."""
    found = []
    for i in range(texts):
        shift = 0.0 if rng is None else float(rng.normal(0, 0.02))
        paths = {"lom": [[level(1, 10, attack + shift, model=model)]], "l2": [[level(1, 10, chance + shift, model=model)]],
                 "random": [[level(1, 10, chance + shift, model=model)]]}
        found.append(record(f"{i:03d}", 10, paths, text=f"text {i} " + "w " * 8, noise=noise))
    return run_of(found)


def test_fragility_above_chance_is_what_random_swaps_leave_more():
    found = fragile_tables.differences(many(), "rank", "chance")
    assert found["lom"][0]["value"] == pytest.approx(0.2)
    assert found["lom"][0]["p"] < 0.001
    assert found["lom"][0]["sources"] == 30
    assert found["l2"][0]["value"] == pytest.approx(0.0)
    assert found["l2"][0]["p"] == 1.0
    assert found["lom"][3] is None  # no text had so many words swapped
    assert "random" not in found


def test_a_drop_is_held_against_the_explainers_noise_and_the_models_own_answers():
    noise = fragile_tables.differences(many(), "rank", "noise")
    assert noise["lom"][0]["value"] == pytest.approx(0.5)
    assert noise["random"][0]["value"] == pytest.approx(0.3)
    model = fragile_tables.differences(many(), "rank", "model")
    assert model["lom"][0]["value"] == pytest.approx(0.1)
    assert model["l2"][0]["value"] == pytest.approx(-0.1)


def test_differences_of_correlations_that_are_not_clipped_may_exceed_one():
    found = fragile_tables.differences(many(attack=-0.8, chance=0.7), "raw", "chance")["lom"][0]
    assert found["value"] == pytest.approx(1.5)
    assert found["low"] <= 1.5 <= found["high"] + 0.05  # two made-up pairs pull the interval towards 0


def test_pairs_without_a_random_swap_of_as_many_words_are_left_out(two):
    found = fragile_tables.differences(two, "rank", "chance")["lom"]
    assert found[WHOLE]["n"] == 3  # b, two words, has no random path so far
    assert found[WHOLE]["value"] == pytest.approx(((0.8 - 0.8) + (0.5 - 0.6) + (0.2 - 0.0)) / 3)


def test_tests_share_their_error_by_holm():
    run = many(12, attack=0.55, rng=np.random.default_rng(0))
    two_tests = fragile_tables.differences(run, "rank", "chance")["lom"]
    # Two spans (the first bucket, and all) with the same levels and two objectives: four tests, the smallest p times four
    alone = fragile_tables.stats.paired([0.6] * 12, [0.55] * 12, range(12), grain=fragile_tables.GRAIN).p
    assert two_tests[0]["p"] == pytest.approx(min(4 * alone, 1), rel=1e-6)
    assert two_tests[0]["p"] == two_tests[WHOLE]["p"]


def test_what_cannot_be_compared_with_is_refused(two):
    with pytest.raises(ValueError, match="against must be one of chance, noise, model"):
        fragile_tables.differences(two, "rank", "luck")


# --- Tables 5 to 7 --------------------------------------------------------------------------------------------------------


def judged(*values):
    return [{"perplexity": value, "error_difference": value / 100, "new_errors": 1, "similarity": 0.9} for value in values]


def test_perplexities_are_means_over_levels_and_candidates_over_all_that_stand_for_them():
    one = level(1, 10, quality=judged(200)[0], pool_quality=judged(300, 500))
    two = level(2, 10, quality=judged(400)[0], pool_quality=judged(100))
    by_chance = level(1, 10, quality=judged(800)[0])
    run = run_of([record("a", 10, {"lom": [[one, two]], "l2": [[one]], "random": [[by_chance]]}, quality=judged(100)[0])])
    found = fragile_tables.quality(run, "perplexity")
    assert {name: cell["mean"] for name, cell in found.items()} == {
        "original": 100, "lom": 300, "l2": 200, "random": 800, "candidates": pytest.approx((400 + 100 + 400) / 3)}
    assert fragile_tables.quality(run, "error_difference")["lom"]["mean"] == 3.0


def test_a_perplexity_that_is_not_known_is_left_out():
    one = level(1, 10, quality={"perplexity": None}, pool_quality=[{"perplexity": None}, {"perplexity": 7.0}])
    found = fragile_tables.quality(run_of([record("a", 10, {"lom": [[one]]}, quality={})]), "perplexity")
    assert found["lom"] is None
    assert found["original"] is None
    assert found["candidates"]["mean"] == 7.0


def test_intervals_of_confidences_and_cosines_stay_in_their_range():
    texts = {"a": (0.99, -0.9), "b": (0.1, 0.95), "c": (0.97, 0.9)}
    paths = {text: {"lom": [[level(1, 10, score=score, quality={"similarity": cosine})]]} for text, (score, cosine) in texts.items()}
    run = run_of([record(text, 10, path, text=" ".join(text * 10), score=texts[text][0], quality={}) for text, path in paths.items()])
    for cell in fragile_tables.confidence(run)["attack"][:2]:
        assert 0 <= cell["low"] <= cell["mean"] <= cell["high"] <= 1
    cell = fragile_tables.quality(run, "similarity")["lom"]
    assert -1 <= cell["low"] <= cell["mean"] <= cell["high"] <= 1
    assert cell["mean"] == pytest.approx(0.95 / 3)


def test_confidence_is_by_number_of_words_and_once_for_the_same_texts_throughout():
    far = {"lom": [[level(m, 20, score=1 - m / 10) for m in range(1, 5)]], "l2": [[level(1, 20, score=0.7)]]}
    near = {"lom": [[level(1, 5, score=0.5)]]}
    found = fragile_tables.confidence(run_of([record("a", 20, far, score=1.0), record("b", 5, near, score=0.8)]))
    # one word: a has .9 (lom) and .7 (l2), so .8; b has .5
    assert [cell["mean"] for cell in found["attack"]] == pytest.approx([0.9, 0.65, 0.8, 0.7, 0.6])
    assert [cell["mean"] for cell in found["attack, far"]] == pytest.approx([1.0, 0.8, 0.8, 0.7, 0.6])
    assert found["random"][1:] == [None] * 4


# --- published ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "model", "objective", "bucket", "value"), [
    (1, "DistilBERT", "l2", 0, 0.65), (1, "BERT-adv", "random", 4, 0.36), (2, "RoBERTa", "lom", 2, 0.69),
    (3, "DistilBERT", "random", 4, 0.46), (8, "RoBERTa", "lom", 3, 0.48), (9, "BERT-adv", "l2", 1, 0.37),
    (10, "RoBERTa", "random", 3, 0.36), (11, "DistilBERT", "lom", 4, 0.55), (12, "BERT-adv", "l2", 4, 0.12),
    (13, "RoBERTa", "random", 0, 0.76)])
def test_published_numbers_are_those_of_the_paper(number, model, objective, bucket, value):
    (table,) = (one for one in published.TABLES if one.number == number)
    assert table.value(model, objective, bucket) == value


def test_tables_5_to_7_as_published():
    assert published.PERPLEXITY["sst2"]["BERT-adv"] == (388.99, 237.76, 238.14)
    assert published.PERPLEXITY["imdb"]["DistilBERT"] == (101.71, 65.04, 65.1)
    assert published.ORIGINAL_PERPLEXITY["ag_news"] == 76.18
    assert published.CONFIDENCE["ag_news"]["DistilBERT"] == (0.98, 0.97, 0.93, 0.86, 0.82)
    assert published.GRAMMAR["sst2"]["BERT-adv"] == (0.60, 0.52, 0.51)  # all candidates, ΔLOM, L2: the paper has L2 first


def test_every_published_table_is_whole_and_nothing_was_published_of_lime_on_imdb():
    assert [one.number for one in published.TABLES] == [1, 2, 3, 4, 8, 9, 10, 11, 12, 13]
    assert all(len(row) == 9 and all(0 < value < 1 for value in row) for one in published.TABLES for row in one.rows)
    assert all(len(one.rows) == 5 for one in published.TABLES)
    assert published.table_of("imdb", "lime", "rank") is None


# --- told -----------------------------------------------------------------------------------------------------------------


def test_a_report_says_what_is_odd_about_the_published_tables():
    found = fragile_told.findings([many()])
    (four,) = (table for table in found["tables"] if table["title"].startswith("Table 4"))
    assert "repeats Table 3 number by number" in four["about"]
    assert sum("repeats Table 3" in note for note in found["notes"]) == 1
    imdb = run_of(many().records, "integrated_gradients", "imdb", "minilm")
    (thirteen,) = (table for table in fragile_told.findings([imdb])["tables"] if table["title"].startswith("Table 13"))
    assert "caption of the published Table 13 says rank correlation" in thirteen["about"]


def test_published_numbers_stand_beside_ours():
    found = fragile_told.findings([many()])
    (three,) = (table for table in found["tables"] if table["title"].startswith("Table 3"))
    assert three["columns"] == ["words swapped", "chosen by", "tfidf", "DistilBERT, published", "RoBERTa, published",
                                "BERT-adv, published"]
    l2, lom, by_chance = three["rows"][:3]
    assert l2[:2] == ["0.0–0.1", "L2"]
    assert l2[3:] == [".64", ".59", ".57"]
    assert lom[2].startswith(".40 ± .00 (")
    assert by_chance[2].startswith(".60 ± .00 (")
    assert by_chance[3:] == [".79", ".76", ".72"]
    assert three["rows"][-1][1] == "the same text again"
    assert three["rows"][-1][2].startswith(".90")


def test_a_run_is_told_in_words():
    (said,) = fragile_told.findings([many()])["answer"]
    assert said.startswith("SST-2, LIME, tfidf: over 30 texts and all shares of words explanations keep a rank correlation of .60 (L2) "
                           "and .40 (ΔLOM), with random swaps of as many words .60. L2: undecided whether above chance, +.00 (")
    assert "ΔLOM: fragility above chance, +.20 (+.1" in said
    assert "agrees with itself at .90" in said
    assert "keep .50 and .50" in said


def test_no_fragility_above_chance_is_said_where_enough_texts_show_it():
    (said,) = fragile_told.findings([many(120, attack=0.6)])["answer"]
    assert "ΔLOM: no fragility above chance, +.00 (" in said
    assert "within .05" in said


def test_an_attack_that_moves_explanations_less_than_chance_is_no_fragility():
    (said,) = fragile_told.findings([many(attack=0.8)])["answer"]
    assert "ΔLOM: less than chance does, −.20" in said


def test_what_failed_and_what_had_nothing_to_swap_is_told_and_left_out(two):
    more = [*two.records, record("c", 5, {}, status="nothing to swap"), record("d", 5, {}, status="failed")]
    found = fragile_told.findings([run_of(more)])
    assert found["cases"] == {"done": 4, "of": 4, "failed": 1}
    assert found["failures"] == [{"case": "sst2/tfidf/lime d", "error": "ValueError: too short"}]
    assert any("of 4 texts 1 had nothing to swap, 1 failed; they are in no table" in note for note in found["notes"])
    assert found["runs"]["sst2/tfidf/lime"]["cells"]["rank"]["lom"][WHOLE]["texts"] == 2


def test_nothing_done_yet_is_said_and_not_failed():
    found = fragile_told.findings([Run("sst2", "tfidf", "lime", [], made.manifest(["a", "b"]))])
    assert found["answer"] == ["Nothing can be said yet."]
    assert found["cases"] == {"done": 0, "of": 2, "failed": 0}
    json.dumps(found, allow_nan=False)


def test_tables_of_quality_have_the_published_ones_below(tmp_path):
    made.folder_of_runs(tmp_path, models=("minilm",))
    store = made.Store.open(tmp_path / "sst2" / "minilm" / "lime")
    found = fragile_told.findings([Run.open(store)])
    titles = [table["title"] for table in found["tables"]]
    assert [t for t in titles if t.startswith(("Table 5", "Table 6", "Table 7"))] == [
        "Table 5: perplexity (lower is more fluent)", "Table 7: grammar errors more or fewer than in the original",
        "Table 6: the model's score of the label, by number of words swapped"]
    five = found["tables"][titles.index("Table 5: perplexity (lower is more fluent)")]
    assert five["rows"][1] == ["SST-2, DistilBERT, published", "130.85", "352.55", "285.88", "286.62", "–"]
    assert five["rows"][0][1].startswith("110 (")
    json.dumps(found, allow_nan=False)


def test_texts_that_the_paper_does_not_have_are_told_without_published_numbers():
    found = fragile_told.findings([run_of(many().records, "lime", "my-texts", "hf-mine")])
    assert not [table["title"] for table in found["tables"] if "Table" in table["title"] and "Table 6" not in table["title"]]
    assert found["tables"][0]["title"] == "Not in the paper: my-texts, LIME, rank correlation, clipped at 0"
    assert "Nothing was published of these" in found["tables"][0]["about"]
    assert "published" not in str(found["tables"][0]["columns"])
