"""Images as parts: what is composed, against the plain choice between image and fill, pixel by pixel."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whytrust.core import generator
from whytrust.domains.image import FILLS, ImageParts

MASKS = generator(3).random((5, 6)) < 0.5


def parts_of(dtype, layout, fill, channels=3):
    shape = (12, 9) if channels is None else (12, 9, channels)
    image = (generator(1).random(shape) * (1 if np.dtype(dtype).kind == "f" else 200)).astype(dtype)
    if layout == "NCHW":
        image = np.moveaxis(image, -1, 0)  # not contiguous, as a transposed image is not
    return ImageParts.cut(image, generator(2).integers(0, 6, (12, 9)), fill, layout)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.float16, np.float32, np.float64, np.longdouble])
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("fill", [f for f in FILLS if f not in ("noise", "inpaint")])
def test_every_pixel_is_the_images_where_its_segment_shows_and_the_fills_elsewhere(dtype, layout, fill):
    parts = parts_of(dtype, layout, fill)
    hidden, whole = (parts.compose(np.full((1, 6), shown), generator(0))[0] for shown in (False, True))
    np.testing.assert_array_equal(whole, parts.image)
    shown = MASKS[:, parts.labels]
    shown = shown[:, None] if layout == "NCHW" else shown[..., None]
    composed = parts.compose(MASKS, generator(0))
    assert composed.dtype == dtype
    np.testing.assert_array_equal(composed, np.where(shown, whole, hidden))


def test_noise_leaves_shown_segments_alone_and_is_drawn_anew_for_each_input():
    parts = parts_of(np.uint8, "NHWC", "noise")
    composed = parts.compose(np.repeat(MASKS[:1], 2, axis=0), generator(0))
    shown = MASKS[0][parts.labels]
    np.testing.assert_array_equal(composed[:, shown], np.repeat(parts.image[None], 2, axis=0)[:, shown])
    assert (composed[0][~shown] != composed[1][~shown]).any()


def test_grey_images_have_no_channel():
    parts = parts_of(np.float32, "NHWC", "black", channels=None)
    np.testing.assert_array_equal(parts.compose(MASKS, generator(0)), parts.image * MASKS[:, parts.labels])


def test_the_users_image_and_fill_are_not_written_to():
    parts = parts_of(np.uint8, "NHWC", "black")
    before = parts.image.copy()
    parts.compose(MASKS, generator(0))[:] = 7
    np.testing.assert_array_equal(parts.image, before)
    np.testing.assert_array_equal(parts.compose(np.ones((1, 6), bool), generator(0))[0], before)


def test_an_image_of_foreign_byte_order_is_the_same_image():
    image = generator(0).uniform(0.5, 199, (6, 6, 3))
    masks = generator(1).random((5, 4)) < 0.5
    for fill in ("noise", "segment_mean"):
        plain, foreign = (ImageParts.cut(image.astype(kind), "grid:2x2", fill).compose(masks, generator(2)) for kind in ("<f4", ">f4"))
        np.testing.assert_array_equal(plain, foreign)


@given(st.integers(2, 9), st.integers(2, 9), st.integers(0, 999))
def test_segments_are_named_by_their_middle_and_pooled_as_a_loop_would(height, width, seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, (height, width))
    parts, map = ImageParts.cut(random.random((height, width)), labels), random.normal(size=(height, width))
    for k, name in enumerate(parts.names):
        down, across = np.nonzero(parts.labels == k)
        y, x = (down.mean() + 0.5) / height, (across.mean() + 0.5) / width
        if min(abs(v * 3 - e) for v in (y, x) for e in (1, 2)) > 1e-6:
            place = f"{('top', 'middle', 'bottom')[int(y * 3)]} {('left', 'centre', 'right')[int(x * 3)]}"
            assert name == f"segment {k + 1} ({place.replace('middle centre', 'centre')})"
        for how, change in (("mean", lambda m: m), ("mean_abs", np.abs), ("mean_pos", lambda m: np.maximum(m, 0))):
            np.testing.assert_allclose(parts.pool(map, how)[k], change(map)[parts.labels == k].mean(), rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(parts.pool(map, "sum")[k], map[parts.labels == k].sum(), rtol=1e-12, atol=1e-14)


def test_deep_grey_pictures_are_not_clipped_to_white(tmp_path):
    from PIL import Image

    from whytrust.domains.image import read
    ramp = np.linspace(0, 65535, 64).reshape(8, 8).astype(np.uint16)
    Image.fromarray(ramp).save(tmp_path / "deep.png")
    found = read(tmp_path / "deep.png")
    assert found.shape == (8, 8)
    np.testing.assert_array_equal(found, ramp // 257)
    Image.fromarray((ramp // 257).astype(np.int32)).save(tmp_path / "shallow.tif")
    np.testing.assert_array_equal(read(tmp_path / "shallow.tif"), ramp // 257)
    Image.fromarray(np.linspace(0, 1, 64).reshape(8, 8).astype(np.float32)).save(tmp_path / "float.tif")
    assert read(tmp_path / "float.tif").max() == 1.0
