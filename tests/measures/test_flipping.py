"""Metrics that hide parts in an order: by hand, in closed form for additive models, and what must always hold."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from whitebox import Additive, Bits, Net, question
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.domains.text import TextParts
from whytrust.measures.flipping import (
    Comprehensiveness,
    Deletion,
    ImpactScore,
    Insertion,
    PixelFlipping,
    Sufficiency,
    TopKAblation,
    WordDeletion,
    counts,
    walk,
)
from whytrust.measures.judged import REMEMBERED, Judged
from whytrust.question import Question

WEIGHTS = (4.0, 2.0, 1.0, -3.0)
"""With the constant 0.3 the whole scores 4.3."""


def judged(scores, weights=WEIGHTS):
    return Judged(question(Additive(weights), Bits(len(weights))), np.array(scores, float))


def rng():
    return generator(0, "metric")


def two_classes(batch):
    """The label is 1 while more than two of four parts are shown."""
    shown = np.asarray(batch).sum(axis=1)
    return np.column_stack([2.5 - shown, shown - 2.5])


def test_pixel_flipping_by_hand():
    # 4.3 -> 0.3 -> -1.7 -> -2.7 -> 0.3: falls of 0, 4, 6, 7, 4
    assert PixelFlipping()(judged(WEIGHTS), rng()) == pytest.approx((0 + 4 + 6 + 7 + 4) / 5)
    assert PixelFlipping(order="least")(judged(WEIGHTS), rng()) == pytest.approx((0 - 3 - 2 + 0 + 4) / 5)
    assert PixelFlipping(share=0.5)(judged(WEIGHTS), rng()) == pytest.approx((0 + 4 + 6) / 3)
    assert PixelFlipping(steps=2)(judged(WEIGHTS), rng()) == pytest.approx((0 + 6 + 4) / 3)


def test_the_accuracy_as_indicator_by_hand():
    case = Judged(Question(CheckedModel(two_classes), Bits(4), 1), np.arange(4.0))
    assert PixelFlipping(indicator="accuracy")(case, rng()) == pytest.approx((0 + 0 + 1 + 1 + 1) / 5)


def test_deletion_and_insertion_by_hand():
    assert Deletion()(judged(WEIGHTS), rng()) == pytest.approx(((4.3 + 0.3) / 2 + 0.3 - 1.7 - 2.7) / 4)
    # 0.3 -> 4.3 -> 6.3 -> 7.3 -> 4.3
    assert Insertion()(judged(WEIGHTS), rng()) == pytest.approx(((0.3 + 4.3) / 2 + 4.3 + 6.3 + 7.3) / 4)


def test_top_k_ablation_by_hand():
    assert TopKAblation(2)(judged(WEIGHTS), rng()) == pytest.approx(6.0)
    assert TopKAblation(0.75)(judged(WEIGHTS), rng()) == pytest.approx(7.0)
    assert TopKAblation(0.01)(judged(WEIGHTS), rng()) == pytest.approx(4.0)  # at least one
    assert TopKAblation(9)(judged(WEIGHTS), rng()) == pytest.approx(4.0)  # at most all


def test_comprehensiveness_and_sufficiency_by_hand():
    shares = (0.25, 0.3)  # one part, and two: rounded up
    assert Comprehensiveness(shares)(judged(WEIGHTS), rng()) == pytest.approx((4.0 + 6.0) / 2)
    assert Sufficiency(shares)(judged(WEIGHTS), rng()) == pytest.approx(((4.3 - 4.3) + (4.3 - 6.3)) / 2)


@pytest.mark.parametrize(("scores", "expected"), [([1, 0, 0, 0], 1.0), ([0, 1, 0, 0], 0.0), ([0, 0, 0, 1], 0.0)])
def test_the_impact_score_by_hand(scores, expected):
    # Without the first part the score falls from 4.3 to 0.3, less than half; without the second it is 2.3, more.
    assert ImpactScore(1)(judged(scores), rng()) == expected


def test_the_impact_score_counts_labels_and_makes_confidences_of_logits():
    case = Judged(Question(CheckedModel(two_classes), Bits(4), 1), np.arange(4.0))
    assert ImpactScore(2)(case, rng()) == 1.0  # the label is lost
    # With one part hidden the probability falls from 1 / (1 + e^-3) = 0.953 to 1 / (1 + e^-1) = 0.731.
    assert ImpactScore(1, left=0.77)(case, rng()) == 1.0
    assert ImpactScore(1, left=0.76)(case, rng()) == 0.0
    raised = Judged(Question(CheckedModel(lambda batch: two_classes(batch) + 9.0), Bits(4), 1), np.arange(4.0))
    assert ImpactScore(1, left=0.77)(raised, rng()) == 1.0


def test_the_impact_score_knows_no_negative_confidence():
    below = Judged(Question(CheckedModel(lambda batch: np.asarray(batch).sum(axis=1) - 9.0), Bits(4), 0), np.arange(4.0))
    assert math.isnan(ImpactScore(1)(below, rng()))


def test_word_deletion_by_hand():
    def says_good(texts):
        good = np.array([text.count("good") for text in texts], float)
        return np.column_stack([0.5 + 0 * good, good])

    case = Judged(Question(CheckedModel(says_good), TextParts.cut("good plot and good cast"), 1), np.array([3.0, 2, 1, 0, 0]))
    # The second "good" is the fourth or the fifth to go: until then the label is kept.
    assert WordDeletion(3)(case, rng()) == 1.0
    assert WordDeletion(5)(case, rng()) in (3 / 5, 4 / 5)
    assert WordDeletion(2)(case.with_scores(np.array([3.0, 0, 0, 2, 0])), rng()) == 0.5
    assert math.isnan(WordDeletion()(case.with_scores(case.scores, label=0), rng()))  # wrong from the start


@given(arrays(np.float64, 6, elements=st.floats(-3, 3)), arrays(np.float64, 6, elements=st.floats(-3, 3)))
def test_no_order_beats_the_true_contributions_of_an_additive_model(weights, scores):
    best, other = judged(weights, tuple(weights)), judged(scores, tuple(weights))
    for metric in (PixelFlipping(), Deletion(), Insertion(), TopKAblation(2), Comprehensiveness((0.5,)), Sufficiency((0.5,))):
        gain = metric(best, rng()) - metric(other, rng())
        assert (gain if metric.about.higher else -gain) >= -1e-9


def test_the_curve_of_an_additive_model_is_the_sum_of_what_is_left():
    weights = np.array([1.0, 5, -2, 3, 0.5])
    curve = walk(judged(weights, tuple(weights)), rng(), 100)
    np.testing.assert_allclose(curve.scores, 0.3 + weights.sum() - np.concatenate([[0], np.cumsum([5, 3, 1, 0.5, -2])]))
    np.testing.assert_allclose(curve.shares, np.arange(6) / 5)


def test_the_least_first_is_the_most_first_of_the_negative():
    net, scores = question(Net(6, 3), Bits(6)), np.array([3.0, 1, 4, -1, 5, 9])
    assert (PixelFlipping(order="least")(Judged(net, scores), rng())
            == PixelFlipping()(Judged(net, -scores), rng()))


def test_equal_scores_give_every_order_the_same_chance():
    case = judged([1.0, 1.0, 1.0, 1.0])
    mean = np.mean([PixelFlipping()(case, generator(0, i)) for i in range(400)])
    every = [np.cumsum([WEIGHTS[i] for i in order]).sum() / 5 for order in itertools.permutations(range(4))]
    assert mean == pytest.approx(np.mean(every), abs=4 * np.std(every) / 20)


@given(st.integers(1, 300), st.integers(1, 120), st.floats(0.01, 1))
def test_steps_rise_to_the_share_asked_for(d, steps, share):
    hidden = counts(d, steps, share)
    assert (np.diff(hidden) > 0).all()
    assert hidden[0] >= 1
    assert hidden[-1] == max(round(share * d), 1)
    assert len(hidden) <= steps


def test_metrics_share_what_the_model_has_said():
    case = judged(WEIGHTS)
    PixelFlipping()(case, rng())
    asked = case.question.memory.calls
    for metric in (Deletion(), TopKAblation(2), Comprehensiveness(), PixelFlipping(share=0.5)):
        metric(case, rng())
    assert case.question.memory.calls == asked == 5


def test_long_walks_are_asked_in_batches_forgotten_and_the_same():
    d = 2048
    weights = tuple(np.random.default_rng(0).normal(size=d))
    model = CheckedModel(lambda batch: np.asarray(batch) @ np.array(weights))
    steps = REMEMBERED // d + 1
    long = Judged(Question(model, Bits(d), batch_size=512), np.array(weights))
    assert steps > d  # so that a share of the steps is all there is
    scores, kept = long.walked(np.argsort(np.argsort(-np.array(weights))), np.resize(np.arange(d), steps), rng())
    expected = np.sum(weights) - np.concatenate([[0], np.cumsum(np.sort(weights)[::-1])])[:d]
    np.testing.assert_allclose(scores, np.resize(expected, steps), atol=1e-9)
    assert kept.all()
    assert len(long.question.memory.known) == 1


@pytest.mark.parametrize("wrong", [
    lambda: PixelFlipping(order="best"), lambda: PixelFlipping(indicator="loss"), lambda: PixelFlipping(steps=0),
    lambda: PixelFlipping(share=0.0), lambda: Deletion(True), lambda: Insertion(2.5), lambda: TopKAblation(1.5),
    lambda: TopKAblation(0), lambda: ImpactScore(True), lambda: ImpactScore(left=1.0), lambda: WordDeletion(0),
    lambda: Comprehensiveness(()), lambda: Sufficiency((0.0,))])
def test_what_is_no_walk_is_refused(wrong):
    with pytest.raises(ValueError, match="must"):
        wrong()


def test_a_label_that_is_wrong_from_the_start_cannot_be_lost():
    case = Judged(Question(CheckedModel(two_classes), Bits(4), 1), np.arange(4.0), label=0)
    assert math.isnan(PixelFlipping(indicator="accuracy")(case, rng()))
    assert math.isnan(ImpactScore(2)(case, rng()))


def test_a_model_without_labels_has_no_accuracy():
    with pytest.raises(ValueError, match="pixel_flipping/accuracy watches the label, and model has one output"):
        PixelFlipping(indicator="accuracy")(judged(WEIGHTS), rng())
