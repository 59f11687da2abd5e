"""A model and its twin, text by text, from records made by hand."""

import json

import pytest

from studies import fragile_records as made
from studies.fragile_records import level, record
from whytrust.studies import fragile_told, fragile_twins
from whytrust.studies.fragile_tables import Run
from whytrust.studies.fragile_told import CHOSEN


def run_of(model, values, chance=0.8, explainer="lime", dataset="sst2"):
    """A text each, of ten words with one or two swapped; by both objectives the same."""
    records = []
    for i, some in enumerate(values):
        paths = {name: [[level(m, 10, value) for m, value in enumerate(some, 1)]] for name in ("lom", "l2")}
        paths["random"] = [[level(m, 10, chance) for m in range(1, len(some) + 1)]]
        records.append(record(f"{i}", 10, paths, text=f"text {i} with ten words"))
    return Run(dataset, model, explainer, records, made.manifest([r["case"] for r in records]))


def pair(plain, twin, **more):
    (found,) = fragile_twins.twins([run_of("minilm", plain), run_of("minilm-adv", twin, **more)])
    return found


def test_only_texts_and_levels_that_both_have_are_compared():
    rows = {row["objective"]: row for row in pair([[0.5, 0.4], [0.6], [0.2]], [[0.7], [0.9, 0.1]]).compared()}
    for name in ("lom", "l2"):
        assert (rows[name]["texts"], rows[name]["levels"]) == (2, 2)
        assert rows[name]["plain"]["value"] == pytest.approx(0.55)
        assert rows[name]["twin"]["value"] == pytest.approx(0.8)
        assert rows[name]["difference"]["value"] == pytest.approx(0.25)
    assert rows["random"]["difference"]["value"] == pytest.approx(0)
    assert rows["random"]["above_chance"] is None


def test_what_random_swaps_do_to_each_model_is_taken_off():
    row = pair([[0.5], [0.5]], [[0.7], [0.7]], chance=1.0).compared()[0]
    assert row["difference"]["value"] == pytest.approx(0.2)
    assert row["above_chance"]["value"] == pytest.approx((0.7 - 1.0) - (0.5 - 0.8))


@pytest.mark.parametrize(("shift", "words"), [(0.2, "by ΔLOM yes, +.20"), (0, "by ΔLOM no, alike, +.00"),
                                             (-0.2, "by ΔLOM no, less, −.20")])
def test_the_answer_is_told(shift, words):
    plain = [[0.5 + 0.002 * (i % 7)] for i in range(150)]
    said = fragile_twins.said(pair(plain, [[one[0] + shift] for one in plain]), "SST-2, LIME", CHOSEN)
    assert words in said
    assert "minilm-adv" in said
    assert "150 texts" in said


def test_what_chance_explains_is_no_answer_and_is_told_beside_it():
    plain = [[0.5 + 0.002 * (i % 7)] for i in range(150)]
    said = fragile_twins.said(pair(plain, [[one[0] + 0.05] for one in plain], chance=1.0), "here", CHOSEN)
    assert "by L2 yes, +.05" in said
    assert "above chance no, less, −.15" in said


def test_differences_above_chance_may_be_wider_than_a_correlation():
    row = pair([[0.1], [0.1]], [[0.9], [0.9]], chance=0.4).compared()[0]  # the plain model's chance is .8
    assert row["above_chance"]["value"] == pytest.approx(0.5 + 0.7)
    assert row["above_chance"]["high"] <= 2


def test_a_text_that_is_there_twice_counts_by_its_mean():
    plain, twin = run_of("minilm", [[0.9], [0.1]]), run_of("minilm-adv", [[0.2], [0.9]])
    for run in (plain, twin):
        for one in run.records:
            one["text"] = "the same text"
    (found,) = fragile_twins.twins([plain, twin])
    row = found.compared()[0]
    assert row["texts"] == row["levels"] == 1
    assert row["difference"]["value"] == pytest.approx(0.55 - 0.5)


def test_runs_that_were_set_otherwise_are_no_twins():
    plain, twin = run_of("minilm", [[0.9]]), run_of("minilm-adv", [[0.2]])
    twin.manifest["spec"] |= {"max_ratio": 0.3}
    assert not list(fragile_twins.twins([plain, twin]))


def test_few_texts_decide_nothing():
    assert "by L2 undecided" in fragile_twins.said(pair([[0.5], [0.2]], [[0.1], [0.9]]), "SST-2, LIME", CHOSEN)
    assert "no levels in common" in fragile_twins.said(pair([[0.5]], [[], [0.1]]), "here", CHOSEN)


def test_twins_are_of_one_data_set_and_one_explainer():
    one = run_of("minilm", [[0.5]])
    others = [run_of("minilm-adv", [[0.5]], dataset="imdb"), run_of("minilm-adv", [[0.5]], explainer="integrated_gradients"),
              run_of("tfidf-adv", [[0.5]])]
    assert not list(fragile_twins.twins([one, *others]))


def test_the_report_has_the_table_and_the_answer():
    runs = [run_of("minilm", [[0.5, 0.4], [0.6, 0.5]]), run_of("minilm-adv", [[0.7, 0.5], [0.9, 0.6]])]
    found = fragile_told.findings(runs)
    assert any("does minilm-adv" in one for one in found["answer"])
    (table,) = [one for one in found["tables"] if "more robust" in one["title"]]
    assert [row[0] for row in table["rows"]] == ["L2", "ΔLOM", "random"]
    assert found["twins"][0]["twin"] == "minilm-adv"
    json.dumps(found, allow_nan=False)
    assert fragile_told.findings(runs[:1])["twins"] == []
