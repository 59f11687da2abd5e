"""Stored arrays become pictures on one scale, whatever their layout and range."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from PIL import Image

from report import made
from whytrust.report.shown import LONGEST, packed, shown

RECORD = {"case": "0001", "d": 4, "channels_first": False, "trials": [{}]}


def arrays(clean, adversarial):
    sides = clean.shape[:2] if clean.ndim == 2 or clean.shape[-1] in (1, 3, 4) else clean.shape[1:]
    return {"clean": clean, "adversarial": adversarial, "labels": np.zeros(sides, dtype=np.int32)}


def opened(uri):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.split(",", 1)[1]))))


def test_channels_first_or_last_give_the_same_pictures(rng):
    clean = rng.random((12, 10, 3))
    adversarial = np.clip(clean + rng.normal(0, 0.05, clean.shape), 0, 1)
    last = shown(RECORD, arrays(clean, adversarial))
    first = shown({**RECORD, "channels_first": True}, {
        "clean": np.moveaxis(clean, -1, 0), "adversarial": np.moveaxis(adversarial, -1, 0), "labels": np.zeros((12, 10), int)})
    for name in ("clean", "adversarial", "change"):
        assert np.array_equal(getattr(last, name), getattr(first, name))


@pytest.mark.parametrize(("top", "dtype"), [(1.0, np.float32), (255.0, np.float32), (255, np.uint8), (16.0, np.float64)])
def test_the_brightest_pixel_of_each_usual_range_is_white_and_zero_is_black(top, dtype):
    clean = np.array([[0, top], [top, 0]], dtype=dtype)
    adversarial = clean[::-1].copy()
    one = shown(RECORD, arrays(clean, adversarial))
    assert one.clean[..., 0].tolist() == [[0, 255], [255, 0]]
    assert one.adversarial[..., 0].tolist() == [[255, 0], [0, 255]]


def test_a_change_of_bytes_does_not_wrap_around():
    clean = np.full((2, 2, 3), 100, dtype=np.uint8)
    adversarial = clean.copy()
    adversarial[0, 0], adversarial[1, 1] = 95, 105
    one = shown(RECORD, arrays(clean, adversarial))
    assert one.magnified.startswith("× 20")  # 5/255 × 20 stays below one half, × 30 would not
    assert one.change[0, 0, 0] == round((0.5 - 20 * 5 / 255) * 255)
    assert one.change[1, 1, 0] == round((0.5 + 20 * 5 / 255) * 255)
    assert one.change[0, 1, 0] in (127, 128)


def test_both_pictures_share_one_scale_also_where_only_one_leaves_the_usual_range():
    clean, adversarial = np.array([[-1.0, 1.0]]), np.array([[-1.0, 3.0]])
    one = shown(RECORD, arrays(clean, adversarial))
    assert one.clean[0, :, 0].tolist() == [0, 128]
    assert one.adversarial[0, :, 0].tolist() == [0, 255]


def test_nothing_changed_is_said():
    clean = np.ones((2, 2))
    assert shown(RECORD, arrays(clean, clean)).magnified == "nothing changed"


def test_a_large_picture_is_shrunk_and_its_labels_are_kept(rng):
    clean = rng.random((500, 400, 3))
    one = shown(RECORD, {"clean": clean, "adversarial": clean, "labels": np.zeros((500, 400), int)})
    assert max(one.clean.shape) <= LONGEST
    assert one.labels.shape == (500, 400)


def test_a_row_has_values_and_no_pictures():
    one = shown(*made.row_cases(1)[0])
    assert one.clean is None
    assert len(one.before) == len(one.after) == one.parts == 8


@pytest.mark.parametrize(("wrong", "message"), [
    ({"clean": np.ones((2, 2))}, "adversarial of case '0001' is missing"),
    ({"clean": np.ones((2, 2)), "adversarial": np.ones((3, 2))}, "one shape"),
    ({"clean": np.ones((2, 2)), "adversarial": np.ones((2, 2)), "labels": np.zeros((3, 3), int)}, "labels must name the part"),
    ({"clean": np.ones((2, 2, 2, 2)), "adversarial": np.ones((2, 2, 2, 2))}, "a picture must be")])
def test_arrays_that_do_not_fit_are_refused_in_a_sentence(wrong, message):
    with pytest.raises(ValueError, match=message):
        shown(RECORD, wrong)


def test_pictures_that_have_room_are_packed_to_the_bit(rng):
    pixels = rng.integers(0, 256, (20, 30, 3), dtype=np.uint8)
    assert np.array_equal(opened(packed([pixels], 100_000)[0]), pixels)


@pytest.mark.parametrize("room", [150_000, 90_000, 40_000, 8_000])
def test_pictures_fit_their_room_are_packed_alike_and_still_show_the_same(room):
    pixels = (made.photo_like(1) * 255).astype(np.uint8)
    uris = packed([pixels, pixels[::-1].copy()], room)
    assert sum(map(len, uris)) <= room
    one, other = (opened(uri).astype(float) for uri in uris)
    assert one.shape == other.shape
    assert abs(one.mean(axis=(0, 1)) - pixels.mean(axis=(0, 1))).max() < 6
