"""Metrics of annotations: by hand, and what must always hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.domains.image import ImageParts
from whytrust.domains.text import TextParts
from whytrust.measures.judged import Judged
from whytrust.measures.pointing import Localisation, PointingGame, RelevanceMass, RelevanceRank
from whytrust.question import Question

IMAGE = Question(CheckedModel(lambda batch: np.asarray(batch, float).reshape(len(batch), -1).mean(axis=1)),
                 ImageParts.cut(np.arange(16.0).reshape(4, 4), "grid:4x4", fill=0.0))
BOX = np.zeros((4, 4), bool)
BOX[:2, :2] = True


def case(scores, truth=BOX, question=IMAGE):
    return Judged(question, np.array(scores, float).ravel(), truth=truth)


def rng():
    return generator(0)


def at(row, column):
    scores = np.zeros((4, 4))
    scores[row, column] = 1
    return scores


def test_the_pointing_game_by_hand():
    assert PointingGame()(case(at(1, 1)), rng()) == 1
    assert PointingGame()(case(at(2, 1)), rng()) == 0
    assert PointingGame(1.0)(case(at(2, 1)), rng()) == 1
    assert PointingGame(1.0)(case(at(2, 2)), rng()) == 0  # √2 away
    assert PointingGame(1.5)(case(at(2, 2)), rng()) == 1
    assert PointingGame()(case(at(1, 1) + at(3, 3)), rng()) == 0.5  # two places share the largest score


def test_the_pixels_of_a_segment_share_its_score():
    halves = Question(IMAGE.model, ImageParts.cut(np.arange(16.0).reshape(4, 4), "grid:2x1", fill=0.0))
    assert PointingGame()(case([1.0, 0.0], question=halves), rng()) == 0.5
    assert RelevanceMass()(case([3.0, 1.0], question=halves), rng()) == pytest.approx(4 * 3 / (8 * 3 + 8))


def test_localisation_by_hand():
    scores = np.zeros((4, 4))
    scores[0] = [1.0, 0.5, 0.2, 0.1]
    assert Localisation(0.15)(case(scores), rng()) == pytest.approx(2 / 5)  # three large, two of them in a box of four
    assert Localisation(0.6)(case(scores), rng()) == pytest.approx(1 / 4)
    assert math.isnan(Localisation()(case(-np.ones((4, 4))), rng()))


def test_relevance_mass_and_rank_by_hand():
    scores = np.full((4, 4), -1.0)
    scores[0], scores[2, 2] = [3.0, 1.0, 2.0, 0.0], 2.0
    assert RelevanceMass()(case(scores), rng()) == pytest.approx(4 / 8)
    assert RelevanceRank()(case(scores), rng()) == pytest.approx(2 / 4)  # 3, 2, 2 and 1 are the four largest
    assert RelevanceRank()(case(np.ones((4, 4))), rng()) == pytest.approx(4 / 16)  # all alike: as many as by chance
    assert math.isnan(RelevanceMass()(case(np.zeros((4, 4))), rng()))


def test_words_are_annotated_by_their_characters():
    text = "bad but funny"
    question = Question(CheckedModel(lambda texts: np.array([len(t) for t in texts], float)), TextParts.cut(text))
    truth = np.array([text.index("funny") <= i for i in range(len(text))])
    assert PointingGame()(case([0.0, 1.0, 2.0], truth, question), rng()) == 1
    assert PointingGame()(case([0.0, 2.0, 1.0], truth, question), rng()) == 0
    assert RelevanceMass()(case([1.0, 0.0, 1.0], truth, question), rng()) == pytest.approx(5 / 8)


@given(arrays(np.float64, 16, elements=st.floats(-4, 4).map(lambda x: round(x, 1))), st.floats(0.01, 100))
def test_scale_does_not_matter_and_values_lie_between_0_and_1(scores, scale):
    for metric in (PointingGame(), Localisation(), RelevanceMass(), RelevanceRank()):
        one, other = metric(case(scores), rng()), metric(case(scale * scores), rng())
        assert math.isnan(one) or 0 <= one <= 1
        np.testing.assert_allclose(other, one, rtol=1e-9)


@given(arrays(np.bool_, (4, 4)).filter(lambda truth: truth.any()))
def test_the_annotation_itself_scores_1(truth):
    for metric in (PointingGame(), Localisation(), RelevanceMass(), RelevanceRank()):
        assert metric(case(truth, truth), rng()) == 1


@pytest.mark.parametrize("truth", [np.zeros((4, 4), bool), np.ones((3, 4), bool), np.full((4, 4), 0.5)])
def test_what_is_no_annotation_is_refused(truth):
    with pytest.raises(ValueError, match="yes or no of every place"):
        case(at(0, 0), truth)


@pytest.mark.parametrize("wrong", [lambda: PointingGame(-1), lambda: PointingGame(math.nan), lambda: Localisation(1.0)])
def test_what_is_no_distance_or_share_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        wrong()


def test_what_stands_between_words_is_no_place():
    text = "good bad ugly"
    question = Question(CheckedModel(lambda texts: np.array([len(t) for t in texts], float)), TextParts.cut(text))
    truth = np.arange(len(text)) < 4
    assert RelevanceRank()(case([-1.0, -2.0, -3.0], truth, question), rng()) == 1
    assert PointingGame()(case([0.0, -2.0, -3.0], truth, question), rng()) == 1
    between = np.arange(len(text)) == 4
    assert math.isnan(RelevanceRank()(case([1.0, 2.0, 3.0], between, question), rng()))
