"""Greedy removal against white boxes and naive enumeration."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whytrust as wt
from whitebox import Additive, Bits, Net, examples, question
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.explainers.greedy import Greedy, most
from whytrust.question import Question


def asked(function, d, target=0, threshold=None, **options):
    return Question(CheckedModel(function, threshold=threshold), Bits(d, **options), target)


def naive(function, d, count):
    """Written out: try every part that is left, keep the first of the best."""
    shown, removed, scores = np.ones(d), [], []
    for _ in range(count):
        tries = {}
        for part in range(d):
            if part not in removed:
                without = shown.copy()
                without[part] = 0
                tries[part] = float(function(without[None])[0])
        best = min(tries, key=lambda part: (tries[part], part))
        shown[best] = 0
        removed.append(best)
        scores.append(tries[best])
    return removed, scores


# --- the path ---------------------------------------------------------------------------------------------------------


def test_of_a_sum_it_removes_the_largest_parts_in_order():
    weights = (0.1, 0.4, -0.2, 0.3, 0.0)
    found = Greedy(features=3)(question(Additive(weights), Bits(5)), generator(0))
    assert found.settings["removed"] == [1, 3, 0]
    np.testing.assert_allclose(found.scores, [0.1, 0.4, 0, 0.3, 0], atol=1e-12)
    assert found.selected.tolist() == [True, True, False, True, False]
    assert [name for name, _ in found.as_list()] == ["part 1", "part 3", "part 0"]
    assert found.sense == "signed"


@examples(30)
@given(st.integers(1, 7), st.integers(0, 10**6), st.integers(1, 8))
def test_it_is_naive_enumeration(d, seed, count):
    net = Net(d, seed)
    found = Greedy(features=count, stop="never")(question(net, Bits(d)), generator(0))
    removed, scores = naive(net, d, min(count, d))
    assert found.settings["removed"] == removed
    np.testing.assert_allclose(found.settings["scores"], scores, rtol=1e-12)
    start = float(net(np.ones((1, d)))[0])
    np.testing.assert_allclose(found.scores[removed], -np.diff([start, *scores]), atol=1e-12)
    assert found.scores.sum() == pytest.approx(start - scores[-1])
    assert not found.scores[[part for part in range(d) if part not in removed]].any()


def test_each_step_asks_once_about_every_part_that_is_left():
    found = Greedy(features=3, stop="never")(question(Additive((0.1,) * 6), Bits(6)), generator(0))
    assert found.calls == 1 + 6 + 5 + 4


def test_many_masks_are_asked_a_few_at_a_time(monkeypatch):
    whole = Greedy(features=4)(question(Net(9, 1), Bits(9, noise=0.2, deterministic=False)), generator(3))
    monkeypatch.setattr("whytrust.explainers.greedy.AT_ONCE", 500)
    assert Greedy(features=4)(question(Net(9, 1), Bits(9, noise=0.2, deterministic=False)), generator(3)) == whole


def test_of_equals_the_earlier_goes_first():
    found = Greedy(features=2)(question(Additive((0.2, 0.2, 0.2)), Bits(3)), generator(0))
    assert found.settings["removed"] == [0, 1]


def test_one_part_can_be_explained():
    found = Greedy()(question(Additive((0.5,)), Bits(1)), generator(0))
    assert found.scores.tolist() == [0.5]


# --- how it misleads --------------------------------------------------------------------------------------------------


def either(batch):
    """Parts 2 and 3 are each reason enough."""
    return np.where((batch[:, 2] > 0) | (batch[:, 3] > 0), 0.9, 0.1)


def test_of_two_equal_reasons_it_finds_neither_at_once():
    found = Greedy(features=1)(question(either, Bits(5)), generator(0))
    assert found.settings["removed"] == [0]  # nothing lowers the score: the first part of all
    assert not found.scores.any()
    assert any("stand in for each other" in note for note in found.notes)


def test_with_more_steps_it_comes_upon_them_late_and_credits_the_last():
    found = Greedy(5, "never")(question(either, Bits(5)), generator(0))
    assert found.settings["removed"] == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(found.scores, [0, 0, 0, 0.8, 0], atol=1e-12)


# --- when it stops ----------------------------------------------------------------------------------------------------


def probability(batch):
    return Additive((0.2, 0.15, 0.1, 0.05), 0.4)(batch)


def test_it_stops_as_soon_as_the_label_changes():
    found = Greedy()(asked(probability, 4, 1, threshold=0.5), generator(0))
    assert found.settings["removed"] == [0, 1, 2]  # 0.9, 0.7, 0.55, 0.45
    assert found.settings["changed_its_mind"]
    assert not found.notes


def test_it_goes_on_where_it_is_told_to():
    found = Greedy(stop="never")(asked(probability, 4, 1, threshold=0.5), generator(0))
    assert found.settings["removed"] == [0, 1, 2, 3]
    assert found.settings["changed_its_mind"]


def test_another_threshold_is_the_model_s_own():
    found = Greedy()(asked(probability, 4, 1, threshold=0.75), generator(0))
    assert found.settings["removed"] == [0]


def test_the_other_class_is_explained_by_its_own_score():
    found = Greedy()(asked(lambda batch: 1 - probability(batch), 4, 0, threshold=0.5), generator(0))
    assert found.settings["removed"] == [0, 1, 2]
    np.testing.assert_allclose(found.scores[:3], [0.2, 0.15, 0.1], atol=1e-12)


def three(batch):
    """Three scores that are no shares: the largest wins, and the second leads once part 0 is gone."""
    return np.column_stack([1.0 + batch[:, 0] + 0.2 * batch[:, 1], np.full(len(batch), 1.5), np.zeros(len(batch))])


def test_of_several_classes_the_largest_score_decides():
    found = Greedy()(asked(three, 4, 0), generator(0))
    assert found.settings["removed"] == [0]
    assert found.calls == 1 + 4 + 1  # and one to see what the other classes say


def test_a_model_that_never_changes_its_mind_is_told():
    found = Greedy(features=2)(asked(lambda batch: 0.8 + 0.01 * batch[:, 0], 4, 1, threshold=0.5), generator(0))
    assert len(found.settings["removed"]) == 2
    assert any("still says class 1 when 2 parts are gone" in note for note in found.notes)
    whole = Greedy()(asked(lambda batch: 0.8 + 0.01 * batch[:, 0], 4, 1, threshold=0.5), generator(0))
    assert any("when every part is gone" in note for note in whole.notes)


def test_a_target_that_is_not_what_the_model_says_is_told():
    found = Greedy(features=2)(asked(probability, 4, 0, threshold=0.5), generator(0))
    assert any("does not decide for class 0 to begin with" in note for note in found.notes)


def test_a_regressor_has_no_label_to_change():
    found = Greedy(features=2)(question(Additive((0.2, 0.1, 0.0)), Bits(3)), generator(0))
    assert found.settings["removed"] == [0, 1]
    assert any("no label that could change" in note for note in found.notes)
    never = Greedy(features=2, stop="never")(question(Additive((0.2, 0.1, 0.0)), Bits(3)), generator(0))
    assert not never.notes


# --- fills that draw --------------------------------------------------------------------------------------------------


def test_random_fills_are_drawn_often_enough_to_find_the_largest(rng):
    parts = Bits(5, noise=0.3, deterministic=False)
    found = Greedy(features=2, stop="never", repeats=200)(question(Additive((0.1, 0.9, 0.0, 0.5, 0.0)), parts), generator(0))
    assert found.settings["removed"] == [1, 3]
    np.testing.assert_allclose(found.scores[[1, 3]], [0.9, 0.5], atol=0.1)
    assert found.settings["repeats"] == 200
    assert found.calls == 1 + 200 * (5 + 4)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_the_batch_size_changes_nothing_where_classes_are_drawn(size):
    def ask(batch_size):
        made = replace(asked(three, 4, 0, noise=0.5, deterministic=False), batch_size=batch_size)
        return Greedy(repeats=9)(made, generator(5))

    assert ask(size) == ask(None)


def test_a_table_row_is_explained_by_training_values(rng):
    table = rng.normal(size=(300, 3))
    row = np.array([0.0, 3.0, 0.0])
    found = wt.explain(lambda rows: 1 / (1 + np.exp(-rows[:, 1])), row, "greedy", background=table, features=1)
    assert found.settings["removed"] == [1]
    assert found.names[1] == "column 1 = 3"


# --- as a user meets it -----------------------------------------------------------------------------------------------


def test_words_of_a_text(rng):
    model = wt.model(lambda texts: [0.3 + 0.3 * ("good" in t) + 0.1 * ("fun" in t) for t in texts], threshold=0.5)
    found = wt.explain(model, "good and fun film", "greedy")
    assert found.as_list() == [("good", pytest.approx(0.3))]
    assert "greedy" in str(found)
    assert "<!DOCTYPE html>" in found.as_html()


def test_several_targets_share_their_first_step():
    targets = wt.explain(three, np.ones((4, 4)), "greedy", target=[0, 1], parts="grid:2x2", fill=0.0)
    assert [e.target for e in targets] == [0, 1]


def test_it_pickles_and_is_a_value():
    assert pickle.loads(pickle.dumps(Greedy(3, "never"))) == Greedy(3, "never")


@pytest.mark.parametrize(("options", "words"), [
    ({"features": 0}, "features must be a whole number >= 1, or 'all', got 0"),
    ({"features": True}, "features must be"),
    ({"features": 2.5}, "features must be"),
    ({"stop": "soon"}, "stop must be 'label'"),
    ({"repeats": 0}, "repeats must be a whole number >= 1, got 0"),
])
def test_bad_options_say_what_must_hold(options, words):
    with pytest.raises(ValueError, match=words):
        Greedy(**options)


def test_all_parts_may_be_removed():
    assert most("all") is None
    found = Greedy("all", "never")(question(Additive((0.1,) * 12), Bits(12)), generator(0))
    assert len(found.settings["removed"]) == 12
