"""What parts are hidden behind: every baseline of every domain, and inpainting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from whytrust.core import CoveredParts, generator
from whytrust.domains.audio import AudioParts
from whytrust.domains.image import ImageParts
from whytrust.domains.inpainting import painted
from whytrust.domains.tabular import TableParts
from whytrust.domains.text import TextParts

PICTURE = np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8)
TABLE = np.random.default_rng(1).normal(3, 1, size=(60, 4))
ALL = {"image": ImageParts.cut(PICTURE, "grid:3x2"), "floats first": ImageParts.cut(PICTURE.transpose(2, 0, 1) / 255.0, "grid:3x2",
                                                                                    layout="NCHW"),
       "wave": AudioParts.cut(np.sin(np.arange(2000.0)), "time:5"), "spectrogram": AudioParts.cut(TABLE, "tf:3x2"),
       "text": TextParts.cut("a film, not a play: good"), "bag": TextParts.cut("a film, not a play: good", "bag"),
       "row": TableParts.cut(TABLE[0], TABLE)}
EACH = [(name, baseline) for name, parts in ALL.items() for baseline in parts.baselines]


@pytest.mark.parametrize(("name", "baseline"), EACH)
def test_what_is_shown_is_the_input_and_the_rest_is_the_baseline(name, baseline):
    parts = ALL[name]
    assert isinstance(parts, CoveredParts)
    covered = parts.behind(baseline, generator(0))
    d = len(parts.names)
    assert covered.names == parts.names or name == "row"
    whole, none = (covered.compose(np.full((1, d), show), generator(1))[0] for show in (True, False))
    own = parts.compose(np.ones((1, d), bool), generator(1))[0]
    assert whole == own if isinstance(own, str) else np.array_equal(np.asarray(whole), np.asarray(own))
    assert none != own if isinstance(own, str) else not np.array_equal(np.asarray(none), np.asarray(own))
    if covered.deterministic:
        again = parts.behind(baseline, generator(0)).compose(np.zeros((1, d), bool), generator(9))[0]
        assert np.array_equal(np.asarray(again), np.asarray(none))


def test_a_baseline_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match=r"zeros, mean, segment_mean, blur, inpaint, noise here, got 'blurr' \(did you mean 'blur'"):
        ALL["image"].behind("blurr", generator(0))


def test_what_some_baselines_are():
    nothing = np.zeros((1, 4), bool)
    row = ALL["row"]
    np.testing.assert_allclose(row.behind("mean", generator(0)).compose(nothing, generator(0))[0], TABLE.mean(axis=0))
    np.testing.assert_array_equal(row.behind("zeros", generator(0)).compose(nothing, generator(0))[0], 0)
    drawn = row.behind("noise", generator(0)).compose(nothing, generator(0))[0]
    assert all(value in TABLE[:, j] for j, value in enumerate(drawn))
    text, empty = ALL["text"], np.zeros((1, 6), bool)
    assert text.behind("unknown", generator(0)).compose(empty, generator(0)) == ["[UNK] [UNK], [UNK] [UNK] [UNK]: [UNK]"]
    other = text.behind("noise", generator(0)).compose(empty, generator(0))[0]
    assert sorted(other.replace(",", "").replace(":", "").split()) == sorted(["a", "film", "not", "a", "play", "good"])


def test_a_plain_image_is_inpainted_exactly_and_a_slope_nearly():
    hidden = np.ones((1, 9, 13), bool)
    hidden[0, 3:6, 4:9] = False
    np.testing.assert_allclose(painted(np.full((9, 13, 2), 7.0), hidden), 7.0)
    slope = np.add.outer(np.arange(9.0), 2 * np.arange(13.0))[..., None]
    assert np.abs(painted(slope, hidden)[0] - slope).max() < 2.5  # of a range of 32
    assert np.abs(painted(slope, hidden)[0] - slope).max() < np.abs(slope.mean() - slope)[3:6, 4:9].max() / 3


@given(arrays(np.bool_, (3, 7, 5)), st.integers(0, 99))
def test_inpainting_keeps_what_shows_stays_in_range_and_knows_no_batch(shown, seed):
    pixels = np.random.default_rng(seed).uniform(-1, 3, (7, 5, 2))
    out = painted(pixels, shown)
    assert np.array_equal(out[shown], np.broadcast_to(pixels, out.shape)[shown])
    assert out.min() >= pixels.min() - 1e-9
    assert out.max() <= pixels.max() + 1e-9
    np.testing.assert_array_equal(out[1:2], painted(pixels, shown[1:2]))
    empty = ~shown.any(axis=(1, 2))
    np.testing.assert_allclose(out[empty], np.broadcast_to(pixels.mean(axis=(0, 1)), out[empty].shape))


def test_every_pixel_may_be_a_part():
    parts = ImageParts.cut(PICTURE, "pixels", fill="inpaint")
    assert len(parts.names) == 120
    mask = np.ones((1, 120), bool)
    mask[0, 17] = False
    changed = (parts.compose(mask, generator(0))[0] != PICTURE).any(axis=2)
    assert changed.sum() == changed[1, 7] == 1
    with pytest.raises(ValueError, match="takes no number"):
        ImageParts.cut(PICTURE, "pixels:3")
