"""Annotations as people give them: boxes, words, spans, seconds and columns become masks of the right places."""

import numpy as np
import pytest

import whytrust as wt
from whytrust.core import generator
from whytrust.domains.audio import AudioParts
from whytrust.domains.image import ImageParts
from whytrust.domains.tabular import TableParts, TableStatistics
from whytrust.domains.text import TextParts
from whytrust.measures.annotations import mask_of
from whytrust.measures.judged import Judged, judge
from whytrust.measures.pointing import PointingGame
from whytrust.question import Question

IMAGE = ImageParts.cut(np.zeros((6, 8)), "grid:2x2")
TEXT = TextParts.cut("A fine film, a Fine cast")
ROW = TableParts(np.array([1.0, 2.0, 3.0]), TableStatistics.fit(np.eye(3), names=["age", "pay", "debt"]))
SOUND = AudioParts.cut(np.sin(np.arange(800.0)), "time:4", rate=400)


def marked(truth, parts):
    return mask_of(truth, parts.view, parts.view.spread(np.zeros(len(parts.names))).shape)


def test_boxes_are_left_top_right_bottom():
    expected = np.zeros((6, 8), bool)
    expected[1:3, 2:7] = True
    np.testing.assert_array_equal(marked({"boxes": [(2, 1, 7, 3)]}, IMAGE), expected)
    np.testing.assert_array_equal(marked({"boxes": (2, 1, 7, 3)}, IMAGE), expected)  # one by itself
    np.testing.assert_array_equal(marked({"boxes": np.array([[2.4, 1.0, 6.1, 2.5]])}, IMAGE), expected)  # pixels it touches
    assert marked({"boxes": [(0, 0, 1, 1), (7, 5, 8, 6)]}, IMAGE).sum() == 2


def test_words_are_marked_wherever_they_stand_and_whole():
    mask = marked({"words": ["fine"]}, TEXT)
    assert "".join(np.array(list(TEXT.text))[mask]) == "fineFine"
    assert marked({"words": "film"}, TEXT).sum() == 4
    assert "".join(np.array(list(TEXT.text))[marked({"spans": [(2, 11)]}, TEXT)]) == "fine film"


def test_seconds_are_samples_of_a_waveform_and_frames_of_a_spectrogram():
    mask = marked({"seconds": [(0.5, 1.0)]}, SOUND)
    np.testing.assert_array_equal(np.flatnonzero(mask), np.arange(200, 400))
    cells = AudioParts.cut(np.zeros((20, 6), np.float32), "tf:4x3", hop_seconds=0.1)
    np.testing.assert_array_equal(np.flatnonzero(marked({"seconds": (0.5, 0.7)}, cells).all(axis=1)), [5, 6])


def test_columns_go_by_their_names():
    np.testing.assert_array_equal(marked({"columns": ["pay", "debt"]}, ROW), [False, True, True])


def test_masks_are_taken_as_they_are():
    mask = np.zeros((6, 8), int)
    mask[0, 0] = 1
    assert marked(mask, IMAGE).dtype == bool
    assert marked(mask, IMAGE).sum() == 1


@pytest.mark.parametrize(("truth", "parts", "words"), [
    ({"boxes": [(2, 1, 9, 3)]}, IMAGE, "right <= 8 and top < bottom <= 6"), ({"boxes": [(2, 1, 2, 3)]}, IMAGE, "left < right"),
    ({"boxes": [(1, 2, 3)]}, IMAGE, "4 numbers, got"), ({"boxes": ["abcd"]}, IMAGE, "4 numbers"),
    ({"words": ["fine"]}, IMAGE, r"truth must be a mask, or \{'boxes'"), ({}, TEXT, "a mapping with nothing"),
    ({"words": ["bad"]}, TEXT, "'bad' does not"), ({"words": [3]}, TEXT, "a list of words"), ({"words": []}, TEXT, "mark none"),
    ({"spans": [(3, 99)]}, TEXT, "end <= 24"), ({"columns": ["rent"]}, ROW, "among age, pay, debt, got 'rent'"),
    ({"seconds": (1.5, 9)}, SOUND, "end <= 2, got"), (np.ones(7), TEXT, r"expected \(24,\), one for each character, got"),
    (np.zeros((6, 8)), IMAGE, "with 0 that are not 0, or {'boxes'"), (255 * np.ones((6, 8)), IMAGE, "yes or no of every place")])
def test_what_marks_nothing_is_refused(truth, parts, words):
    with pytest.raises(ValueError, match=words):
        marked(truth, parts)


def test_a_sound_without_a_rate_has_no_seconds():
    with pytest.raises(ValueError, match="whose rate is known: pass rate="):
        marked({"seconds": (0, 1)}, AudioParts.cut(np.zeros((20, 6), np.float32), "tf:4x3"))


def test_the_pointing_game_takes_boxes():
    model = wt.model(lambda batch: np.asarray(batch, float).sum(axis=(1, 2)))
    scores = np.array([0.0, 1.0, 0, 0])  # upper right
    for box, hit in (((4, 0, 8, 3), 1.0), ((0, 0, 4, 3), 0.0), ((4, 0, 6, 3), 0.5)):
        judged = Judged(Question(model, IMAGE, 0), scores, truth={"boxes": box})
        assert judge(PointingGame(), judged, generator(0)) == hit
