"""The attack on explanations: what it returns holds, what it chooses is the furthest, and nothing is asked twice."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synonyms import Synonyms, bag
from whytrust import api
from whytrust.core import generator
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.measures.agreement import distance, mass_shift, unit
from whytrust.swapping.constraints import NoRepeat, NoStopWords, Own
from whytrust.swapping.racing import Racing
from whytrust.swapping.search import OBJECTIVES, Search
from whytrust.swapping.victims import Victim

TABLE = {"good": ["fine", "great", "dull"], "fun": ["witty", "mirth"], "film": ["movie", "picture"], "plot": ["story"],
         "very": ["really", "truly"]}
SAME = Synonyms(TABLE)
WORDS = ["good", "fun", "film", "plot", "very", "a", "the", "odd"]
LIME = Victim(Lime(samples=500, features="all", variant="reference", design="plain", surrogate=False), True)
EXACT = Victim(Lime(samples=5000, features="all", ridge=0.0), True)


def crooked(texts):
    """No two texts share a score by chance, and most keep the label."""
    return np.array([0.75 + 0.24 * math.sin(sum((i + 1) * ord(c) for i, c in enumerate(text))) for text in texts])


def crooked_model():
    return api.model(crooked, threshold=0.55, output="probability")


def search(model, text, victim=EXACT, **more):
    return Search.of(model, text, victim, SAME, (NoRepeat(), NoStopWords()), **more)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(WORDS), min_size=2, max_size=8), st.sampled_from(["lom", "l2", "random"]),
       st.sampled_from([0.25, 0.5, 1.0]))
def test_every_text_keeps_the_label_and_the_constraints_and_the_ratio(words, objective, ratio):
    model, text = crooked_model(), " ".join(words)
    found = search(model, text, max_ratio=ratio)
    label = int(model.labels(model([text]))[0])
    levels = list(found.control(0) if objective == "random" else found.attack(objective))
    assert len(levels) <= ratio * len(words) + 1e-9
    for m, level in enumerate(levels, 1):
        one = level.chosen.text
        changed = one.changed(found.text)
        assert len(changed) == m
        assert int(model.labels(model([one.text]))[0]) == label
        for place in changed:
            assert one.words[place] in TABLE[words[place]]
        assert objective == "random" or (one.text in level.pool and 1 <= level.keeping <= level.proposed)


@pytest.mark.parametrize("objective", ["lom", "l2"])
def test_at_each_level_the_candidate_that_moves_the_explanation_furthest_is_kept(objective):
    model, text = crooked_model(), "a very good film with fun"

    def alone(words):  # each text explained by itself, with nothing shared
        e = api.explain(model, words, method=Lime(samples=5000, features="all", ridge=0.0), parts="words", target=1)
        return unit(e.scores)

    before = alone(text)
    far = {"l2": distance, "lom": mass_shift}[objective]
    found = search(model, text, max_ratio=0.5)
    levels = list(found.attack(objective))
    assert len(levels) == 3
    for level in levels:
        moved = {one: far(before, alone(one)) for one in level.pool}
        assert level.moved == pytest.approx(max(moved.values()), rel=1e-8)
        assert moved[level.chosen.text.text] == pytest.approx(level.moved, rel=1e-8)


def test_words_are_tried_in_the_order_in_which_the_model_misses_them():
    model = bag({"good": 0.1, "fun": 0.2, "film": 0.05}, 0.6)
    found = search(model, "a good fun film", Victim(Occlusion()), max_ratio=1.0)
    assert [found.text.words[i] for i in found.order[:3]] == ["fun", "good", "film"]
    assert [level.chosen.swap.before for level in found.attack("l2")] == ["fun", "good", "film"]


def test_a_word_without_a_candidate_is_passed_over():
    model = bag({"odd": 0.3, "good": 0.1})
    found = search(model, "an odd good film here", max_ratio=0.5)
    assert [level.chosen.swap.before for level in found.attack("l2")] == ["good", "film"]


def test_candidates_that_change_the_label_are_never_kept():
    model = bag({"good": 0.3, "fine": 0.3, "great": -0.2, "dull": -0.3}, 0.4)
    (level,) = search(model, "a good thing", max_ratio=0.5).attack("l2")
    assert (level.proposed, level.keeping) == (3, 1)
    assert level.chosen.text.text == "a fine thing"


def test_scores_that_cancel_out_are_not_chosen_by_their_centre_of_mass():
    model = bag({"good": 0.1, "thing": 0.1, "fine": -0.1, "great": 0.15, "dull": 0.1})
    (level,) = search(model, "good thing", Victim(Occlusion()), max_ratio=0.5).attack("lom")
    assert level.chosen.swap.after in ("great", "dull")  # with "fine" the two words cancel out
    only = Synonyms({"good": ["fine"]})
    model = bag({"good": 0.1, "thing": 0.1, "fine": -0.1})
    assert not list(Search.of(model, "good thing", Victim(Occlusion()), only, (NoRepeat(),), 0.5).attack("lom"))


def test_sharing_asks_half_of_what_explaining_each_alone_would():
    counted = []
    model, text = crooked_model(), "a very good film with some fun and a plot that is odd and very long"
    found = search(model, text, LIME, max_ratio=0.3, on_calls=counted.append)
    explained = sum(level.keeping for level in found.attack("l2"))
    assert explained >= 6
    assert found.ask.calls == sum(counted) < 500 + 0.55 * 500 * explained + 100


def test_racing_chooses_the_same_and_asks_less():
    text = "a very good film with some fun and a plot that is odd and very long"
    model = bag({"good": 0.1, "fine": -0.2, "great": 0.08, "dull": 0.09, "very": 0.05, "fun": 0.1, "mirth": 0.09}, 0.6)
    whole, raced = (search(model, text, LIME, max_ratio=0.3, racing=one) for one in (None, Racing(least=1)))
    chosen = [[level.chosen.swap for level in one.attack("l2")] for one in (whole, raced)]
    assert raced.ask.calls < whole.ask.calls
    assert chosen[0] == chosen[1]


@pytest.mark.parametrize("odd", [{"shares": (0.5, 0.25)}, {"shares": (0.5,)}, {"keep": (0.0, 0.5, 0.5)}, {"least": 0},
                                 {"shares": (0.2, 0.4, 1.0)}])
def test_what_is_no_race_is_refused(odd):
    with pytest.raises(ValueError, match="a race must have"):
        Racing(**odd)


def test_the_same_search_gives_the_same_path_whatever_was_asked_before():
    text = "a very good film with fun"
    victim = Victim(Lime(samples=40, features="all", variant="reference"), True)
    one, other = (search(crooked_model(), text, victim, seed=3, case="7") for _ in range(2))
    list(other.control(1))
    list(other.attack("lom"))
    assert ([(level.chosen.text.text, level.moved) for level in one.attack("l2")]
            == [(level.chosen.text.text, level.moved) for level in other.attack("l2")])


def test_random_swaps_are_drawn_anew_for_each_draw_and_each_is_as_likely():
    model = bag({})
    firsts = [next(search(model, "a good thing", Victim(Occlusion()), max_ratio=0.5, seed=s).control(d)).chosen.swap.after
              for s in range(40) for d in range(3)]
    counts = {word: firsts.count(word) for word in TABLE["good"]}
    assert all(20 <= count <= 60 for count in counts.values())  # 40 expected; beyond 4 standard deviations


def test_random_swaps_keep_to_what_may_stand_and_are_as_likely_as_each_other():
    model = bag({"dull": -0.3}, 0.6)  # which would change the label
    same = Synonyms({"good": ["w1", "w2", "w3", "dull", "w4", "w5", "odd", "w6"]})
    rules = (NoRepeat(), Own(lambda before, after: "odd" not in after))
    firsts = [next(Search.of(model, "a good thing", Victim(Occlusion()), same, rules, 0.5, seed=s).control(0)).chosen.swap.after
              for s in range(300)]
    counts = [firsts.count(f"w{i}") for i in range(1, 7)]
    assert sum(counts) == 300
    assert all(22 <= count <= 78 for count in counts)  # 50 expected; beyond 4 standard deviations


def test_the_authors_variant_follows_its_leader_whatever_the_objective():
    model, text = crooked_model(), "a very good film with fun"
    leader = Victim(Occlusion())
    found = search(model, text, max_ratio=0.5)
    levels = list(found.authors(("l2", "lom"), leader))
    lead = search(model, text, leader, max_ratio=0.5)
    path = [level.chosen.text.text for level in lead.attack("lom")]
    assert len(levels) == len(path)
    for m, by_objective in enumerate(levels):
        assert set(by_objective) == {"l2", "lom", "random"}
        before = text if m == 0 else path[m - 1]
        for level in by_objective.values():
            changed = level.chosen.text.changed(type(level.chosen.text).of(before))
            assert len(changed) == 1  # one word from where the leader's path stands


def test_a_label_that_is_not_the_models_can_be_kept():
    model = bag({"good": 0.3, "fine": 0.1, "great": 0.3, "dull": -0.3}, 0.3)
    found = search(model, "a good thing", label=0, max_ratio=0.5)
    assert found.target == 0
    assert {level.chosen.swap.after for level in found.attack("l2")} <= {"fine", "dull"}


def test_what_the_model_does_not_read_is_left_out():
    class Short:
        kind = "short"

        def __call__(self, texts):
            return np.array([0.6 + 0.1 * ("good" in text[:11]) for text in texts])

        def reads(self, text):
            return min(len(text), 11)

    model = api.model(Short(), threshold=0.5, output="probability")
    found = search(model, "a very good film with fun", max_ratio=1.0)
    assert found.text.words == ("a", "very", "good")
    assert all(len(level.chosen.text.words) == 3 for level in found.attack("l2"))


def test_objectives_are_the_papers():
    assert set(OBJECTIVES) == {"lom", "l2"}


def test_user_rules_hold_at_every_level():
    rule = Own(lambda before, after: len(after) <= len(before))
    found = Search.of(crooked_model(), "a very good film with fun", EXACT, SAME, (NoRepeat(), rule), 1.0)
    for level in found.attack("l2"):
        assert len(level.chosen.text.text) <= len(found.text.text)


def test_generators_are_named_by_seed_and_case():
    found = search(crooked_model(), "a very good film with fun", Victim(Lime(samples=40, features="all"), True), seed=5, case="9")
    other = search(crooked_model(), "a very good film with fun", Victim(Lime(samples=40, features="all"), True), seed=5, case="8")
    assert found.said.words.tobytes() != other.said.words.tobytes()
    again = found.victim(found.question, generator(5, "9", "search"), 6)
    np.testing.assert_array_equal(found.said.words, again.words)
