"""Shapes on spectrograms: what is touched, when a detector is turned, and whether LIME points at the drawing."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.humming import WhiteBox, hum
from whytrust import api
from whytrust.core import generator
from whytrust.domains.audio import AudioParts
from whytrust.explainers.lime import Lime
from whytrust.studies.drawing import LOUDNESSES, SHAPES, SIZES, THICKNESSES, drawn, drawn_until, read_piece, spread
from whytrust.studies.veracity_piece import PieceStudy

TRIES = len(SIZES) * len(THICKNESSES) * len(LOUDNESSES)
LIME = Lime(samples=400, variant="reference", design="plain", surrogate=False)


def cut(excerpt):
    return AudioParts.cut(excerpt, "tf:5x4", fill="mean")


def quiet(seed=0):
    """An excerpt of noise around −8."""
    return np.random.default_rng(seed).normal(-8, 0.3, (115, 80)).astype(np.float32)


def detector(loudness, threshold=0.5):
    """Hears singing where loudness(excerpts) is above 0."""
    return api.model(lambda batch: 1 / (1 + np.exp(-loudness(np.asarray(batch, dtype=np.float64)))), output="probability",
                     threshold=threshold, classes=["no sing", "sing"], name="loudness")


def anywhere(batch):
    """Every cell speaks for itself, by how far it is above all of the noise: the truth is additive over segments."""
    return 40 * (np.maximum(batch + 6.5, 0).mean(axis=(1, 2)) - 0.02)


def segment_nine(batch):
    return 20 * (batch[:, 46:69, 20:40].mean(axis=(1, 2)) + 7.7)


# --- drawing ----------------------------------------------------------------------------------------------------------


def test_shapes_lie_in_the_unit_square_and_have_names_of_their_own():
    assert len({shape.name for shape in SHAPES}) == len(SHAPES) >= 6
    for shape in SHAPES:
        points = np.array([point for stroke in shape.strokes for point in stroke])
        assert points.min() >= 0
        assert points.max() <= 1
        assert (np.ptp(points, axis=0) >= 0.69).all()  # it fills its square
        assert all(len(stroke) >= 2 for stroke in shape.strokes)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SHAPES), st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 1), st.floats(-3, 5), st.integers(1, 4))
def test_a_drawing_makes_nothing_quieter_and_changes_only_what_it_says(shape, time, height, size, loudness, thickness):
    excerpt = quiet()
    changed, touched = drawn(excerpt, shape, (time, height), size, loudness, thickness)
    assert changed.dtype == excerpt.dtype
    assert (changed >= excerpt).all()
    np.testing.assert_array_equal(changed != excerpt, touched)
    level = np.float32(np.quantile(excerpt, 0.99) + loudness)
    assert (changed[touched] == level).all()
    if touched.any():
        times, bands = np.nonzero(touched)
        assert np.ptp(times) <= size * 114 + thickness
        assert np.ptp(bands) <= size * 79 + thickness


def test_a_line_has_no_gaps_and_the_place_is_kept():
    wave = SHAPES[0]
    assert wave.name == "wave"
    touched = drawn(quiet(), wave, (0.0, 1.0), 0.5, 5.0, 1)[1]
    assert touched[:58].any(axis=1).all()  # every frame of its half
    assert not touched[58:].any()
    assert not touched[:, :39].any()


def test_thicker_is_more_and_contains_thinner():
    for shape in SHAPES:
        thin, thick = (drawn(quiet(), shape, (0.5, 0.5), 0.8, 5.0, thickness)[1] for thickness in (1, 3))
        assert thick[thin].all()
        assert thick.sum() > 1.5 * thin.sum()


@pytest.mark.parametrize("wrong", [{"size": 0.0}, {"size": 1.2}, {"place": (0.5, -0.1)}, {"thickness": 0}])
def test_what_cannot_be_drawn_is_told(wrong):
    options = {"place": (0.5, 0.5), "size": 0.5, "loudness": 1.0, "thickness": 1} | wrong
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}.* must|must .*{next(iter(wrong))}"):
        drawn(quiet(), SHAPES[0], **options)


# --- until the answer turns -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_where_every_loud_cell_speaks_for_itself_lime_s_best_are_those_that_were_drawn_on_most(shape):
    excerpt = quiet()
    found = drawn_until(detector(anywhere), cut, excerpt, shape, LIME, generator(0, shape.name))
    record = found.record
    assert record["shape"] == shape.name
    assert record["prediction_before"] <= 0.5 < record["prediction"]
    assert record["hits"] == 3
    share = np.array(record["share"])
    assert share.sum() == pytest.approx(1)
    assert np.flatnonzero(share).tolist() == record["touched"]
    assert record["expected"] == pytest.approx(3 * len(record["touched"]) / 20)
    assert set(record["order"][:2]) <= set(np.argsort(-share)[:4].tolist())
    inked = found.drawn != excerpt
    labels = cut(excerpt).labels
    np.testing.assert_allclose(share, np.bincount(labels[inked], minlength=20) / inked.sum())


def test_the_one_segment_that_a_detector_listens_to_comes_first():
    for number, shape in enumerate(SHAPES):
        found = drawn_until(detector(segment_nine), cut, quiet(number), shape, LIME, generator(1, number))
        assert found.record["order"][0] == 9
        assert 9 in found.record["touched"]
        assert found.record["fidelity"] > 0.5


def test_a_detector_that_always_listens_to_the_same_segments_shows_in_what_was_named_before():
    found = drawn_until(detector(segment_nine), cut, quiet(), SHAPES[0], LIME, generator(6)).record
    assert found["order_before"][0] == 9
    assert found["hits_before"] == sum(part in found["touched"] for part in found["order_before"][:3]) >= 1


def test_the_least_drawing_that_turns_the_answer_is_taken():
    excerpt, model = quiet(), detector(anywhere)
    record = drawn_until(model, cut, excerpt, SHAPES[1], LIME, generator(2)).record
    assert record["tries"] > 1
    smaller = [(size, thickness, loudness) for size in SIZES for thickness in THICKNESSES for loudness in LOUDNESSES]
    chosen = smaller.index((record["size"], record["thickness"], record["loudness"]))
    assert chosen == record["tries"] - 1
    for size, thickness, loudness in smaller[:chosen]:
        tried = drawn(excerpt, SHAPES[1], tuple(record["place"]), size, loudness, thickness)[0]
        assert model.labels(model(tried[None]))[0] == 0


def test_a_deaf_detector_is_tried_with_every_shape_and_then_given_up():
    calls = []
    deaf = detector(lambda batch: np.full(len(batch), -5.0))
    assert drawn_until(deaf, cut, quiet(), SHAPES[0], LIME, generator(0), calls.append) is None
    assert sum(calls) == 1 + TRIES * len(SHAPES)
    calls.clear()
    assert drawn_until(deaf, cut, quiet(), SHAPES[0], LIME, generator(0), calls.append, others=False) is None
    assert sum(calls) == 1 + TRIES


def test_another_shape_is_taken_where_the_first_one_turns_nothing():
    def many_frames_at_once(batch):  # three long lines are what it takes; a house has none
        return 10 * (((batch > -7).sum(axis=2) >= 3).mean(axis=1) - 0.9)

    found = drawn_until(detector(many_frames_at_once), cut, quiet(), SHAPES[3], LIME, generator(3))
    assert SHAPES[3].name == "house"
    assert found.record["shape"] != "house"
    assert found.record["tries"] > TRIES


def test_what_is_called_singing_already_is_left_alone():
    calls = []
    assert drawn_until(detector(lambda batch: np.full(len(batch), 5.0)), cut, quiet(), SHAPES[0], LIME, generator(0),
                       calls.append) is None
    assert sum(calls) == 1


def test_the_same_seed_gives_the_same_drawing():
    first, second = (drawn_until(detector(anywhere), cut, quiet(), SHAPES[2], LIME, generator(5)) for _ in range(2))
    assert first.record == second.record
    np.testing.assert_array_equal(first.drawn, second.drawn)


# --- a piece in a file ------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(115, 900), st.none() | st.integers(1, 9))
def test_excerpts_of_a_piece_lie_in_it_and_do_not_overlap(frames, most):
    piece = np.arange(frames, dtype=np.float32)[:, None].repeat(80, axis=1)
    found = list(spread(piece, most))
    assert len(found) == min(frames // 115, most or frames)
    starts = [int(excerpt[0, 0]) for _, excerpt in found]
    assert all(later - earlier >= 115 for earlier, later in pairwise(starts))
    for (middle, excerpt), start in zip(found, starts, strict=True):
        np.testing.assert_array_equal(excerpt, piece[start:start + 115])
        assert middle == start + 57


def test_a_piece_is_read_as_it_was_written(tmp_path):
    piece = np.random.default_rng(0).normal(size=(130, 80))
    np.save(tmp_path / "piece.npy", piece)
    np.testing.assert_array_equal(read_piece(tmp_path / "piece.npy"), piece.astype(np.float32))


@pytest.mark.parametrize(("array", "message"), [
    (np.zeros((80, 130)), "frames × 80, got float64 of shape"), (np.zeros((114, 80)), "at least 115 frames"),
    (np.zeros(80), "frames × 80"), (np.full((130, 80), np.nan), "10400 numbers that are not finite"), (np.zeros((130, 80), int), "as floats")])
def test_a_file_of_anything_else_is_told(tmp_path, array, message):
    np.save(tmp_path / "piece.npy", array)
    with pytest.raises(ValueError, match=message):
        read_piece(tmp_path / "piece.npy")


def test_a_file_that_is_no_array_is_told(tmp_path):
    (tmp_path / "piece.npy").write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match=r"must be a .npy file of numbers"):
        read_piece(tmp_path / "piece.npy")


def test_every_shape_is_drawn_on_an_excerpt_that_is_explained_as_it_was_only_once():
    known, samples, asked = WhiteBox(), 64, []
    piece = PieceStudy(known, "piece", known.hearing.log_mel(hum(0).wave)[:115], shapes=4, samples=samples)
    (block,) = piece.blocks()
    records = [result.record for result in piece.work(block, asked.append)]
    turned = [record for record in records if record["status"] == "ok"]
    assert len(turned) > 1
    assert len({tuple(record["order_before"]) for record in turned}) == 1
    assert sum(asked) <= (len(turned) + 1) * samples + len(records) * (1 + TRIES)
