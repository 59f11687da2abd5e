"""One sound laid over another: what a trial asks of the parts of a sound."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domains.sounds import RATE, RNG, SECOND, laid, loudness, noise, sine
from whitebox import examples
from whytrust.checked import CheckedModel
from whytrust.core import LayeredParts, generator
from whytrust.domains.audio import AudioParts, band_edges
from whytrust.measures import Case

PATCHES = np.array([[0, 0, 1, 1, 1], [0, 2, 2, 1, 3], [4, 2, 3, 3, 3]])
CUTS = ["time:5", "freq:3", "tf:3x2", "slic:5", PATCHES]
TYPES = st.sampled_from([np.float32, np.float64, np.int16])


# --- over -------------------------------------------------------------------------------------------------------------


@examples(40)
@given(st.integers(200, 900), st.sampled_from(range(len(CUTS))), TYPES, TYPES, st.integers(0, 99))
def test_all_parts_shown_are_this_wave_and_none_the_one_below_bit_for_bit(length, cut, kind, other_kind, seed):
    this, below = noise(seed, length, kind), noise(seed + 1000, length, other_kind)
    exact = np.result_type(this, below)
    parts = AudioParts.cut(this, CUTS[cut], rate=RATE).over(below)
    d = len(parts.names)
    assert laid(parts, *range(d)).tobytes() == this.astype(exact).tobytes()
    assert laid(parts).tobytes() == below.astype(exact).tobytes()
    masks = generator(seed).random((4, d)) < 0.5
    batch = parts.compose(masks, RNG)
    assert (batch.dtype, batch.shape) == (exact, (4, length))
    assert all(batch[i].tobytes() == parts.compose(masks[i:i + 1], RNG)[0].tobytes() for i in range(4))


@examples(30)
@given(st.integers(200, 900), st.sampled_from(range(len(CUTS))), st.integers(0, 99))
def test_changes_of_disjoint_masks_add_up(length, cut, seed):
    this, below = noise(seed, length), noise(seed + 1000, length)
    parts = AudioParts.cut(this, CUTS[cut], rate=RATE).over(below)
    which = generator(seed).integers(0, 3, len(parts.names))  # the first mask's, the second's, nobody's
    one, two, both = parts.compose(np.stack([which == 0, which == 1, which < 2]), RNG) - below
    np.testing.assert_allclose(one + two, both, atol=1e-9)


@pytest.mark.parametrize("grid", ["tf:3x2", "slic:6", "labels"])
def test_cells_of_an_excerpt_are_replaced_and_no_others(grid):
    this, below = noise(0, (12, 9), np.float32), noise(1, (12, 9), np.float32)
    cut = generator(3).integers(0, 5, (12, 9)) if grid == "labels" else grid
    parts = AudioParts.cut(this, cut)
    masks = generator(2).random((6, len(parts.names))) < 0.5
    for mask, mixed in zip(masks, parts.over(below).compose(masks, RNG), strict=True):
        for t, f in np.ndindex(this.shape):
            assert mixed[t, f] == (this if mask[parts.labels[t, f]] else below)[t, f]


def test_samples_of_a_wave_cut_in_time_are_replaced():
    parts = AudioParts.cut(np.arange(6.0), "time:3").over(-np.arange(6.0))
    np.testing.assert_array_equal(laid(parts, 0, 2), [0, 1, -2, -3, 4, 5])


def test_a_tone_that_is_new_sounds_with_its_own_cell_and_no_other():
    below = sine(300)
    this = below + np.where(SECOND < 0.5, 0, sine(2500))
    parts = AudioParts.cut(this, "tf:2x2", rate=RATE).over(below)  # the edge lies at 1114 Hz
    assert loudness(laid(parts, 3) - this) < 0.05 * loudness(this - below)
    assert loudness(laid(parts, 0, 1, 2) - below) < 0.05 * loudness(this - below)


def test_integers_are_clipped_and_not_wrapped():
    this = np.where(np.arange(4000) // 100 % 2, 32767, -32768).astype(np.int16)
    mixed = laid(AudioParts.cut(this, "freq:2", rate=RATE).over(np.zeros(4000, np.int16)), 0)
    assert np.abs(this.astype(int) - mixed).max() < 45000  # a wrapped sample is off by 65536


# --- like -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(900,), (30, 20)])
@pytest.mark.parametrize("fill", ["zero", "min", "mean", 0.25])
@pytest.mark.parametrize("grid", ["time:5", "tf:3x2"])
def test_the_same_cut_of_another_sound_is_what_cutting_that_one_gives(shape, fill, grid):
    first, second = noise(0, shape), 1 + 3 * noise(1, shape)
    options = {"rate": RATE} if len(shape) == 1 else {"hop_seconds": 0.1}
    moved, own = AudioParts.cut(first, grid, fill, **options).like(second), AudioParts.cut(second, grid, fill, **options)
    masks = generator(4).random((5, len(own.names))) < 0.5
    assert moved.compose(masks, RNG).tobytes() == own.compose(masks, RNG).tobytes()  # a statistic is the other sound's too
    assert moved.names == own.names


@pytest.mark.parametrize("shape", [(900,), (30, 20)])
def test_super_pixels_stay_where_they_were_cut(shape):
    parts = AudioParts.cut(noise(0, shape), "slic:8")
    moved = parts.like(noise(1, shape))
    np.testing.assert_array_equal(moved.labels, parts.labels)
    np.testing.assert_array_equal(laid(moved, *range(len(parts.names))), noise(1, shape))
    assert isinstance(moved, LayeredParts)


# --- the change -------------------------------------------------------------------------------------------------------


def test_of_samples_and_cells_the_change_is_squared_and_summed():
    for shape, grid in (((12,), "time:3"), ((6, 4), "tf:3x2")):
        this, since = noise(0, shape), noise(1, shape)
        parts = AudioParts.cut(this, grid)
        expected = [((this - since)[parts.labels == part] ** 2).sum() for part in range(len(parts.names))]
        np.testing.assert_allclose(parts.pool(parts.squared_change(since), "sum"), expected)
        assert not parts.squared_change(this).any()


@pytest.mark.parametrize("grid", ["freq:3", "slic:6"])
def test_of_a_transform_the_change_holds_the_energy_of_the_samples(grid):
    this, since = noise(0, 3000), noise(1, 3000)
    parts = AudioParts.cut(this, grid, rate=RATE)
    squares = parts.squared_change(since)
    assert squares.shape == parts.labels.shape
    both_sides = 2 * squares.sum() - squares[:, [0, -1]].sum()  # the transform of real samples holds all others twice
    # Parseval: windows of Hann, squared, add up to 3/2; the transform is divided by half the window's length.
    assert both_sides == pytest.approx(6 / parts.window * np.sum((this - since) ** 2))


@pytest.mark.parametrize(("moment", "hz"), [(0.25, 300), (0.25, 2500), (0.75, 300), (0.75, 2500)])
def test_the_change_is_largest_in_the_part_that_holds_it(moment, hz):
    since = noise(0, RATE) / 100
    this = since + np.where(np.abs(SECOND - moment) < 0.15, sine(hz), 0)
    parts = AudioParts.cut(this, "tf:2x2", rate=RATE)
    pooled = parts.pool(parts.squared_change(since), "sum")
    assert np.argmax(pooled) == 2 * (moment > 0.5) + (hz > band_edges(2, RATE)[1])
    assert pooled.max() > 0.98 * pooled.sum()


# --- in a trial -------------------------------------------------------------------------------------------------------


def hears(low, high, begin, end):
    """A model of two classes: is there anything between two frequencies and two moments?"""
    def model(batch):
        spectrum = np.fft.rfft(np.asarray(batch, dtype=np.float64)[:, int(begin * RATE):int(end * RATE)], axis=1)
        hz = np.fft.rfftfreq(int((end - begin) * RATE), 1 / RATE)
        energy = (np.abs(spectrum[:, (hz > low) & (hz < high)]) ** 2).sum(axis=1)
        share = energy / (energy + 1e4)
        return np.stack([1 - share, share], axis=1)
    return model


@pytest.mark.parametrize("grid", ["tf:2x2", "slic:6"])
def test_exactly_the_sets_that_hold_the_cause_flip_the_label(grid):
    clean = sine(300).astype(np.float32)
    changed = (clean + np.where(SECOND < 0.55, 0, sine(2500))).astype(np.float32)
    parts = AudioParts.cut(changed, grid, rate=RATE)
    case = Case(CheckedModel(hears(2000, 3000, 0.6, 0.95)), parts, clean, 0, 1)
    masks = np.array(list(itertools.product([False, True], repeat=case.d)))
    cause = int(np.argmax(case.change))
    np.testing.assert_array_equal(case.labels(masks), masks[:, cause])
    alone = case.localised(np.arange(case.d) == cause)
    assert (alone.label, int(np.argmax(alone.change))) == (1, cause)
    assert case.localised(np.arange(case.d) != cause) is None


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("does", ["like", "over", "squared_change"])
@pytest.mark.parametrize(("sound", "grid", "other", "error", "message"), [
    (np.zeros(800), "time:4", np.zeros(801), ValueError, r"this one's shape, \(800,\), got \(801,\); pass one with as many samples"),
    (np.zeros(800), "tf:2x2", np.zeros((80, 10)), ValueError, r"\(800,\), got \(80, 10\)"),
    (np.zeros((80, 10)), "slic:4", np.zeros((80, 11)), ValueError, r"\(80, 10\), got \(80, 11\); pass one with as many frames and bands"),
    (np.zeros(3), "time:1", np.array([0, np.nan, 0]), ValueError, "must be finite, got nan at 1"),
    (np.zeros(3), "time:1", ["a", "b", "c"], TypeError, "real numbers"),
])
def test_what_cannot_be_laid_over_it_is_one_clear_error(does, sound, grid, other, error, message):
    with pytest.raises(error, match=message):
        getattr(AudioParts.cut(sound, grid), does)(other)


def test_an_excerpt_that_looks_like_two_channels_can_be_laid_over_another():
    this, below = np.ones((1000, 2)), np.zeros((1000, 2))
    parts = AudioParts.cut(this, "time:2", hop_seconds=0.01).over(below)
    np.testing.assert_array_equal(laid(parts, 1)[:, 0], np.arange(1000) >= 500)
