"""One text attacked and judged: known answers on models whose reasons are known."""

import json

import numpy as np
import pytest

from synonyms import Synonyms, bag
from whytrust import api
from whytrust.explainers.baselines import Random
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.store import plain
from whytrust.swapping.constraints import NoRepeat
from whytrust.swapping.fragility import NOTHING, Fragility
from whytrust.swapping.victims import Victim

EXACT = Victim(Lime(samples=5000, features="all", ridge=0.0), True)
IGNORED = Synonyms({"film": ["movie", "picture"], "long": ["lengthy", "slow"], "plot": ["story"], "very": ["really"]})
TEXT = "a very good film with a long plot"


def levels(record, name):
    return [level for path in record["paths"][name] for level in path]


def test_swaps_of_words_that_the_model_ignores_change_nothing_that_exact_lime_says():
    attack = Fragility(bag({"good": 0.3, "bad": -0.3}), EXACT, IGNORED, (NoRepeat(),), ("lom", "l2"))
    record, arrays = attack("0", TEXT)
    assert record["deterministic"]
    for name in ("lom", "l2", "random"):
        assert levels(record, name)
        for level in levels(record, name):
            assert (level["rank"], level["model"]) == (1.0, 1.0)
            assert level["top"] == pytest.approx(1.0)
            assert level["lom"] == pytest.approx(0.0, abs=1e-8)
            assert level["l2"] == pytest.approx(0.0, abs=1e-8)
        np.testing.assert_allclose(arrays[name], np.tile(arrays["original"], (len(arrays[name]), 1)), atol=1e-8)


def test_where_lime_is_exact_on_an_additive_model_the_change_is_all_the_models():
    weights = {"good": 0.2, "film": 0.05, "movie": -0.04, "picture": 0.12, "long": -0.03, "lengthy": 0.06, "plot": 0.02}
    record, _ = Fragility(bag(weights), EXACT, IGNORED, (NoRepeat(),), ("l2",))("0", TEXT)
    found = levels(record, "l2")
    assert min(level["rank"] for level in found) < 0.9
    for level in found:  # leave one out is what an additive model does, and what LIME finds
        assert level["rank"] == pytest.approx(level["model"])


def test_noise_alone_is_told_as_noise():
    model = bag({"good": 0.3})
    record, _ = Fragility(model, Victim(Random()), IGNORED, (NoRepeat(),), ("l2",))("0", TEXT)
    assert not record["deterministic"]
    assert record["noise"]["rank"] < 0.9
    for level in levels(record, "l2"):
        # Random explanations know nothing of the text: chosen and judged under two draws, a swap changes nothing.
        assert level["rank"] == pytest.approx(record["noise"]["rank"])
        assert level["seen"]["rank"] == 1.0
        assert level["model"] == 1.0


def test_what_was_chosen_under_one_draw_is_judged_under_another():
    few = Victim(Lime(samples=20, features="all", variant="reference"), True)
    record, _ = Fragility(bag({"good": 0.3, "picture": 0.1, "slow": -0.1}), few, IGNORED, (NoRepeat(),), ("l2",))("0", TEXT)
    assert record["noise"]["rank"] < 1
    assert any(level["rank"] != level["seen"]["rank"] for level in levels(record, "l2"))


def test_a_text_in_which_nothing_can_be_swapped_says_so():
    record, arrays = Fragility(bag({"good": 0.3}), EXACT, Synonyms({}), (NoRepeat(),))("0", TEXT)
    assert record["status"] == NOTHING
    assert "no word could be swapped" in record["error"]
    assert set(arrays) == {"original"}


def test_the_authors_variant_needs_gradients_and_true_labels():
    attack = Fragility(bag({"good": 0.3}), EXACT, IGNORED, (NoRepeat(),), variant="authors")
    with pytest.raises(TypeError, match="integrated gradients"):
        attack("0", TEXT, truth=1)
    record, _ = attack("0", TEXT, truth=0)
    assert record["status"] == "wrong"


def test_records_are_plain_and_the_same_again():
    attack = Fragility(bag({"good": 0.2, "movie": 0.1}), Victim(Lime(samples=30, features="all"), True), IGNORED, (NoRepeat(),), ("lom",), seed=4)
    one, other = (attack("3", TEXT) for _ in range(2))
    assert json.dumps(plain(one[0])) == json.dumps(plain(other[0]))
    for name in one[1]:
        assert one[1][name].tobytes() == other[1][name].tobytes()


def test_confidence_and_counts_are_the_models():
    model = bag({"good": 0.2, "movie": 0.1, "picture": -0.1})
    record, _ = Fragility(model, Victim(Occlusion()), IGNORED, (NoRepeat(),), ("l2",))("0", TEXT)
    assert record["score"] == pytest.approx(0.7)
    for level in levels(record, "l2"):
        assert level["score"] == pytest.approx(float(model([level["text"]])[0, 1]))
        assert level["ratio"] == level["m"] / 8
    assert record["calls"] > 8


def test_quality_is_judged_of_chosen_texts_and_of_a_few_candidates():
    class Length:
        name = "letters"

        def judge(self, original, changed):
            return [{"perplexity": float(len(text)), "new_errors": 0, "error_difference": 0, "similarity": 1.0} for text in changed]

    record, _ = Fragility(bag({"good": 0.2}), Victim(Occlusion()), IGNORED, (NoRepeat(),), ("l2",), quality=Length())("0", TEXT)
    assert record["quality"]["perplexity"] == len(TEXT)
    for level in levels(record, "l2"):
        assert level["quality"]["perplexity"] == len(level["text"])
        assert 1 <= len(level["pool_quality"]) <= 5
    assert "pool" not in json.dumps(levels(record, "random"))


def test_a_model_without_labels_is_refused_by_name():
    regressor = api.model(lambda texts: np.array([float(len(text)) for text in texts]), name="lengths")
    with pytest.raises(TypeError, match="lengths has one output"):
        Fragility(regressor, EXACT, IGNORED, (NoRepeat(),))("0", TEXT)


def test_a_one_word_text_is_refused():
    with pytest.raises(ValueError, match="at least two words"):
        Fragility(bag({}), EXACT, IGNORED, (NoRepeat(),))("0", "good")
