"""Metrics that explain again: closed forms of linear models, and who must pass or fail."""

import math

import numpy as np
import pytest

from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.domains.audio import AudioParts
from whytrust.domains.image import ImageParts
from whytrust.domains.tabular import TableParts
from whytrust.domains.text import TextParts
from whytrust.measures.judged import Judged
from whytrust.measures.stability import LabelRandomisation, MaxSensitivity, ModelRandomisation
from whytrust.question import Question

WEIGHTS = np.random.default_rng(0).normal(size=16)
PICTURE = np.random.default_rng(1).uniform(size=(4, 4))
LINEAR = CheckedModel(lambda batch: np.asarray(batch, float).reshape(len(batch), -1) @ WEIGHTS)


def rng():
    return generator(0)


def weights_times_input(question):
    return WEIGHTS * np.asarray(question.input[0], float).ravel()


def of_picture(explain, **more):
    question = Question(LINEAR, ImageParts.cut(PICTURE, "grid:4x4", fill=0.0))
    return Judged(question, explain(question), explain=explain, **more)


def test_weights_times_input_moves_by_weights_times_noise():
    case = of_picture(weights_times_input)
    moved = []
    for stream in (rng(),):
        for _ in range(5):
            noisy = np.clip(PICTURE + 0.1 * stream.uniform(-1, 1, (4, 4)), 0, 1)
            moved.append(np.linalg.norm(WEIGHTS * (noisy - PICTURE).ravel()))
    assert MaxSensitivity(0.1, 5)(case, rng()) == pytest.approx(max(moved) / np.linalg.norm(WEIGHTS * PICTURE.ravel()))


def test_what_never_moves_is_best_whatever_it_says():
    assert MaxSensitivity()(of_picture(lambda question: np.arange(16.0)), rng()) == 0
    assert math.isnan(MaxSensitivity()(of_picture(lambda question: np.zeros(16)), rng()))


def test_words_that_trade_places_move_nothing_of_a_bag_of_words():
    def counted(question):
        return np.array([len(name) for name in question.parts.names], float)

    question = Question(CheckedModel(lambda texts: np.array([len(t) for t in texts], float)), TextParts.cut("one or three, two"))
    assert MaxSensitivity()(Judged(question, counted(question), explain=counted), rng()) == 0


@pytest.mark.parametrize("parts", [
    ImageParts.cut(np.arange(64, dtype=np.uint8).reshape(8, 8), "grid:2x2"),
    AudioParts.cut(np.sin(np.arange(400.0)), "time:4"), AudioParts.cut(np.arange(40, dtype=np.int16).repeat(10), "time:4"),
    TextParts.cut("a b c d e"), TextParts.cut("a b a d e", "bag"),
    TableParts.cut([0.5, 2.0], np.random.default_rng(0).normal(size=(50, 2)))], ids=lambda p: f"{type(p).__name__} {len(p.names)}")
def test_inputs_nearby_have_the_same_parts_and_hardly_differ(parts):
    near = parts.near(0.05, rng())
    assert len(near.names) == len(parts.names)
    one, other = (p.compose(np.ones((1, len(p.names)), bool), rng())[0] for p in (parts, near))
    if parts.domain == "text":
        assert sorted(one.split()) == sorted(other.split())
        assert one != other
        for mask in np.eye(len(parts.names), dtype=bool):  # each part is still itself
            shown = [sorted(p.compose(mask[None], rng())[0].split()) for p in (parts, near)]
            assert shown[0] == shown[1]
    else:
        assert type(one) is type(other)
        assert one.dtype == other.dtype
        assert np.abs(other.astype(float) - one).max() > 0


def test_a_text_of_one_word_has_no_other_nearby():
    assert TextParts.cut("good").near(0.1, rng()).text == "good"


def test_randomisation_tells_edges_from_weights():
    other = np.random.default_rng(5).normal(size=16)
    untrained = CheckedModel(lambda batch: np.asarray(batch, float).reshape(len(batch), -1) @ other)

    def looks_at_the_model(question):
        each = np.eye(16).reshape(16, 4, 4)
        return question.model(each)[:, 0]

    def looks_at_the_picture(question):
        return np.asarray(question.input[0]).ravel()

    for metric, name in ((ModelRandomisation(), "untrained"), (LabelRandomisation(), "relabelled")):
        assert metric(of_picture(looks_at_the_picture, **{name: untrained}), rng()) == 1
        assert metric(of_picture(looks_at_the_model, **{name: untrained}), rng()) < 0.6
        assert metric(of_picture(looks_at_the_model, **{name: LINEAR}), rng()) == 1


def test_an_explainer_that_answers_otherwise_is_told():
    case = of_picture(weights_times_input)
    with pytest.raises(ValueError, match=r"one a part: expected \(16,\), got \(3,\)"):
        MaxSensitivity()(case.with_scores(case.scores, explain=lambda question: np.zeros(3)), rng())


@pytest.mark.parametrize("wrong", [lambda: MaxSensitivity(0.0), lambda: MaxSensitivity(samples=0)])
def test_what_is_no_neighbourhood_is_refused(wrong):
    with pytest.raises(ValueError, match="must be"):
        wrong()


def test_explaining_again_asks_as_the_explainer_did_whatever_metrics_hide_parts_behind():
    question = Question(LINEAR, ImageParts.cut(PICTURE, "grid:4x4", fill=0.0))
    behind = Question(LINEAR, ImageParts.cut(PICTURE, "grid:4x4", fill=0.7))

    def falls(asked):
        return asked.original[0] - asked.score(~np.eye(16, dtype=bool), rng())

    apart = Judged(behind, falls(question), explain=falls, asked=question, untrained=LINEAR)
    plain = Judged(question, falls(question), explain=falls, untrained=LINEAR)
    assert ModelRandomisation()(apart, rng()) == ModelRandomisation()(plain, rng()) == 1
    assert MaxSensitivity()(apart, rng()) == MaxSensitivity()(plain, rng())
