"""Parts of a sound in any shape: super-pixels and the user's own labels."""

import sys
import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import whytrust as wt
from domains.sounds import RATE, RNG, SECOND, loudness, without
from whitebox import examples
from whytrust.core import MissingExtra, generator
from whytrust.domains.audio import AudioParts


def burst(hz, begin, end):
    return np.where((begin <= SECOND) & (end > SECOND), 0.5 * np.sin(2 * np.pi * hz * SECOND), 0)


def energy(batch):
    return np.abs(np.asarray(batch, dtype=np.float64)).reshape(len(batch), -1).mean(axis=1)


# --- super-pixels -----------------------------------------------------------------------------------------------------


def test_a_block_that_is_loud_is_a_part_and_its_name_says_where_it_is():
    excerpt = generator(1).normal(size=(100, 40))
    excerpt[30:60, 10:25] += 20
    parts = AudioParts.cut(excerpt, "slic:12", hop_seconds=0.01, band_edges_hz=np.arange(41) * 100)
    block = np.zeros(excerpt.shape, bool)
    block[30:60, 10:25] = True
    part = np.bincount(parts.labels[block]).argmax()
    mine = parts.labels == part
    assert (mine & block).sum() > 0.9 * (mine | block).sum()
    times, bands = parts.names[part].split(", ")
    begin, end = map(float, times.removesuffix(" s").split("–"))
    low, high = map(float, bands.removesuffix(" Hz").split("–"))
    np.testing.assert_allclose([begin, end], [0.3, 0.6], atol=0.02)
    np.testing.assert_allclose([low, high], [1000, 2500], atol=200)


@pytest.mark.parametrize("sound", [generator(2).normal(size=9000), generator(2).normal(size=(115, 80))], ids=["wave", "excerpt"])
@pytest.mark.parametrize("count", [1, 6, 20, 50])
def test_about_as_many_parts_as_were_asked_for_each_connected_and_with_a_name_of_its_own(sound, count):
    import scipy.ndimage
    parts = AudioParts.cut(sound, f"slic:{count}")
    assert 0.6 * count <= len(parts.names) <= 1.5 * count
    assert len(set(parts.names)) == len(parts.names)
    for part in range(len(parts.names)):
        assert scipy.ndimage.label(parts.chart.cells == part)[1] == 1
    assert not parts.notes


def test_a_burst_disappears_with_the_parts_that_hold_it_and_they_do_with_it():
    wave = burst(2000, 0.3, 0.6) + 1e-3 * generator(3).normal(size=RATE)
    parts = AudioParts.cut(wave, "slic:12", rate=RATE)
    power = np.array([loudness(wave - without(parts, part)) for part in range(len(parts.names))])
    loudest = int(power.argmax())
    view = parts.view
    frames = len(view.spectrogram)
    in_picture = view.labels[int(0.45 * frames), view.spectrogram[int(0.45 * frames)].argmax()]
    assert in_picture == loudest
    middle = slice(int(0.38 * RATE), int(0.52 * RATE))
    assert loudness(without(parts, loudest)[middle]) < 0.1 * loudness(wave[middle])


@examples(25)
@given(st.integers(64, 3000), st.integers(1, 30), st.sampled_from([None, RATE, 44100]), st.integers(0, 9))
def test_parts_add_up_to_the_wave_each_is_seen_and_hiding_all_is_silence(length, count, rate, seed):
    wave = generator(seed).normal(size=length)
    assume(length // np.sqrt(count) >= 20)  # shorter ones are an error
    parts = AudioParts.cut(wave, f"slic:{count}", rate=rate)
    d = len(parts.names)
    np.testing.assert_allclose(np.sum([wave - without(parts, part) for part in range(d)], axis=0), wave, atol=1e-9)
    assert np.abs(without(parts, *range(d))).max() < 1e-6 * np.abs(wave).max()
    assert set(np.unique(parts.view.labels)) == set(range(d)) == set(np.unique(parts.labels))
    assert without(parts).tobytes() == wave.tobytes()


def test_silence_is_cut_explained_and_drawn_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for sound, units in ((np.zeros(RATE, np.float32), {"rate": RATE}), (np.zeros((40, 30)), {"hop_seconds": 0.01})):
            for grid in ("time:4", "freq:4", "tf:2x2", "slic:6", np.arange(sound.size).reshape(sound.shape) // (sound.size // 4)):
                found = wt.explain(energy, sound, parts=grid, method="occlusion", **units)
                assert not found.scores.any()
                assert "Every score is 0" in found.as_html()


def test_a_reader_is_told_when_far_fewer_parts_came_out():
    parts = AudioParts.cut(np.zeros((2, 2)), "slic:20")
    assert f"cut into {len(parts.names)} parts where 20 were asked for" in parts.notes[0]
    assert wt.explain(energy, np.zeros((2, 2)), parts="slic:20", hop_seconds=1, method="occlusion").notes[:1] == parts.notes


def test_without_scikit_image_one_line_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "skimage.segmentation", None)
    with pytest.raises(MissingExtra, match=r"whytrust\[image\]"):
        AudioParts.cut(np.zeros((20, 20)), "slic:4")


# --- labels -----------------------------------------------------------------------------------------------------------


def test_labels_that_are_a_grid_are_that_grid():
    wave = generator(4).normal(size=RATE)
    by_name, by_labels = AudioParts.cut(wave, "tf:5x4", rate=RATE), AudioParts.cut(wave, np.arange(20).reshape(5, 4), rate=RATE)
    masks = generator(5).random((6, 20)) < 0.5
    assert by_name.names == by_labels.names
    assert by_name.compose(masks, RNG).tobytes() == by_labels.compose(masks, RNG).tobytes()
    np.testing.assert_array_equal(by_name.view.labels, by_labels.view.labels)
    in_time = AudioParts.cut(wave, np.arange(RATE) // 2000, rate=RATE)
    assert in_time.names == AudioParts.cut(wave, "time:4", rate=RATE).names
    np.testing.assert_array_equal(without(in_time, 1), np.where((SECOND >= 0.25) & (SECOND < 0.5), 0, wave))


@given(st.integers(1, 8), st.integers(1, 6), st.integers(1, 9), st.integers(0, 99))
def test_any_labels_hide_their_own_cells_and_have_distinct_names(frames, bands, most, seed):
    labels = generator(seed).integers(0, most, (frames, bands)) * 7 - 3  # gaps and negative numbers
    excerpt = generator(seed, "cells").normal(size=(frames, bands))
    parts = AudioParts.cut(excerpt, labels, fill=9.0)
    numbers = np.unique(labels)
    assert len(set(parts.names)) == len(parts.names) == len(numbers)
    for part, number in enumerate(numbers):
        np.testing.assert_array_equal(without(parts, part), np.where(labels == number, 9.0, excerpt))
    np.testing.assert_array_equal(parts.pool(labels, "mean"), numbers)


def test_parts_in_several_pieces_are_called_by_the_box_around_them():
    parts = AudioParts.cut(np.zeros((4, 4)), np.array([[0, 1, 0, 1], [1, 0, 1, 0], [2, 2, 2, 2], [3, 3, 3, 3]]), hop_seconds=0.5)
    assert parts.names == ("0.00–1.00 s (1)", "0.00–1.00 s (2)", "1.00–1.50 s", "1.50–2.00 s")


def test_samples_may_belong_to_one_part_in_several_places():
    parts = AudioParts.cut(np.arange(1, 7.0), np.array([5, 5, 2, 2, 5, 5]), rate=2)
    np.testing.assert_array_equal(without(parts, 1), [0, 0, 3, 4, 0, 0])
    assert parts.names == ("1.00–2.00 s", "0.00–3.00 s")
    np.testing.assert_array_equal(parts.view.wave_labels, [1, 1, 0, 0, 1, 1])


@pytest.mark.parametrize("grid", ["slic:9", np.array([[0, 1, 1], [0, 2, 1], [2, 2, 3]])], ids=["slic", "labels"])
def test_a_map_over_the_parts_own_transform_is_pooled_alike_by_shape_and_by_place(grid):
    parts = AudioParts.cut(generator(6).normal(size=RATE), grid, rate=RATE)
    frames, bins = parts.labels.shape
    map = generator(7).normal(size=(frames, bins))
    seconds, hertz = (np.arange(frames) - 1) * (parts.window // 4) / RATE, np.arange(bins) * RATE / parts.window
    np.testing.assert_array_equal(parts.pool_at(map, seconds, hertz, "signed_max"), parts.pool(map, "signed_max"))
    with pytest.raises(ValueError, match=r"the parts are too fine for 2 frames"):
        parts.pool_at(np.ones((2, 2)), np.array([0, 0.1]), np.array([0, 99.0]), "sum")


@pytest.mark.parametrize(("sound", "grid", "message"), [
    (np.zeros((20, 20)), "slic:0", "slic:20, with a whole number >= 1, got 'slic:0'"),
    (np.zeros((20, 20)), "slic:²", "slic:20, with a whole number >= 1, got 'slic:²'"),
    (np.zeros((20, 20)), "slic:many", "got 'slic:many'"),
    (np.zeros((20, 20)), "slices", "slic:20"),
    (np.zeros(100), "slic:100", "at least 16 samples in each stretch of time, got 10"),
    (np.zeros(5), "slic:1", "at least 16 samples"),
    (np.zeros((4, 5)), np.zeros((5, 4), int), r"\(frames, bands\) = \(4, 5\), got int64 \(5, 4\)"),
    (np.zeros((4, 5)), np.zeros((4, 5)), "must be whole numbers"),
    (np.zeros(50), np.zeros(49, int), r"each of its 50 samples, or an array stretches of time × bands, got int64 \(49,\)"),
    (np.zeros(50), np.zeros((30, 2), int), "expected at most 25 rows, got 30"),
    (np.zeros(50), np.zeros((0, 2), int), r"got int64 \(0, 2\)"),
    (np.zeros(640), np.arange(600)[None], r"'.* % of the highest frequency' holds none; ask for fewer parts"),
    ([0.0, np.nan] * 50, "slic:2", "must be finite, got nan at 1"),
], ids=lambda value: str(value)[:30])
def test_what_cannot_be_cut_is_one_clear_error(sound, grid, message):
    with pytest.raises(ValueError, match=message):
        AudioParts.cut(sound, grid)


# --- pages ------------------------------------------------------------------------------------------------------------


def test_a_page_and_a_picture_show_the_super_pixels_of_a_sound(tmp_path):
    wave = (burst(2000, 0.3, 0.6) + 1e-3 * generator(8).normal(size=RATE)).astype(np.float32)
    found = wt.explain(energy, wave, parts="slic:12", rate=RATE, method="occlusion")
    page = found.save(tmp_path / "sound.html").read_text(encoding="utf-8")
    assert found.names[int(found.scores.argmax())] in page
    assert found.save(tmp_path / "sound.png").read_bytes().startswith(b"\x89PNG")
    assert wt.Explanation.load(found.save(tmp_path / "sound.json")) == found
