"""Bytes that other programs read as what was put in."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from whitebox import examples
from whytrust.pictures import raster

SHAPES = st.one_of(hnp.array_shapes(min_dims=2, max_dims=2, max_side=12),
                   hnp.array_shapes(min_dims=2, max_dims=2, max_side=12).map(lambda s: (*s, 3)))


@examples(60)
@given(hnp.arrays(np.uint8, SHAPES))
def test_pillow_reads_the_png_back(pixels: np.ndarray) -> None:
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(raster.png(pixels)))), pixels)


def test_smooth_pictures_are_packed_well() -> None:
    smooth = np.add.outer(np.arange(200), np.arange(200)).astype(np.uint8)
    assert len(raster.png(smooth)) < 2000
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(raster.png(smooth)))), smooth)


@pytest.mark.parametrize("wrong", [np.zeros((2, 2)), np.zeros((2, 2, 4), np.uint8), np.zeros((0, 3), np.uint8)])
def test_a_png_is_made_of_grey_or_rgb_bytes(wrong: np.ndarray) -> None:
    with pytest.raises(ValueError, match="uint8"):
        raster.png(wrong)


def test_soundfile_reads_the_wav_back_and_loud_samples_are_clipped() -> None:
    samples = np.concatenate([np.random.default_rng(0).uniform(-1, 1, 500), [1.0, -1.0, 3.0, -3.0, np.nan]])
    data, rate = soundfile.read(io.BytesIO(raster.wav(samples, 8000)))
    assert rate == 8000
    assert np.abs(data - np.clip(np.nan_to_num(samples), -1, 1)).max() <= 1 / 32767


def test_a_data_uri_holds_the_bytes() -> None:
    head, body = raster.data_uri(b"\x00\xff", "audio/wav").split(",")
    assert head == "data:audio/wav;base64"
    assert base64.b64decode(body) == b"\x00\xff"


@pytest.mark.parametrize(("shape", "longer"), [((8, 8), 304), ((1, 1), 300), ((224, 224), 448), ((500, 400), 500),
                                               ((2000, 1000), 500), ((641, 10), 321), ((640, 640), 640)])
def test_pictures_are_large_enough_to_see_and_small_enough_to_send(shape: tuple[int, int], longer: int) -> None:
    up, down = raster.zoom(*shape)
    assert max(raster.resize(np.zeros(shape), (up, up), (down, down)).shape) == longer


def test_resizing_takes_means_of_pixels_but_never_mixes_labels() -> None:
    assert raster.resize(np.array([[0, 4], [8, 12], [7, 9]], np.uint8), (1, 1), (2, 2)).tolist() == [[6], [8]]
    labels = np.array([[0, 9], [0, 9], [9, 9]])
    assert set(raster.resize(labels, (1, 1), (2, 2), mean=False).ravel().tolist()) <= {0, 9}
    assert raster.resize(np.array([[1, 2]]), (2, 3), (1, 1)).tolist() == [[1, 1, 1, 2, 2, 2]] * 2


def test_outlines_lie_between_parts() -> None:
    assert raster.outlines(np.zeros((3, 3))).sum() == 0
    assert raster.outlines(np.array([[0, 0, 1], [0, 0, 1]])).tolist() == [[False, True, False]] * 2


@examples(40)
@given(hnp.arrays(np.int32, hnp.array_shapes(min_dims=2, max_dims=2, max_side=9), elements=st.integers(0, 5)))
def test_the_middle_of_a_part_lies_in_the_part(labels: np.ndarray) -> None:
    found = raster.middles(labels, range(6))
    assert set(found) == set(labels.ravel().tolist())
    for part, (x, y) in found.items():
        assert labels[int(y * labels.shape[0]), int(x * labels.shape[1])] == part


def test_tiny_parts_of_large_pictures_have_a_middle_too() -> None:
    labels = np.zeros((901, 700), np.int32)
    labels[401, 403] = 1
    x, y = raster.middles(labels, [1])[1]
    assert (int(y * 901), int(x * 700)) == (401, 403)
