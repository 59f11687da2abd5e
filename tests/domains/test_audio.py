import pickle

import numpy as np
import pytest
import scipy.signal
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from domains import sounds
from domains.sounds import RATE, RNG, SECOND, loudness, without
from whitebox import examples
from whytrust.core import Parts, generator
from whytrust.domains.audio import AudioParts, band_edges, parse_grid, read

WAVES = arrays.arrays(st.sampled_from([np.float32, np.float64, np.int16]), st.integers(200, 700),
                      elements=st.integers(-1000, 1000), fill=st.nothing())


def sine(hz, amplitude=0.5):
    return sounds.sine(hz, amplitude).astype(np.float32)


# --- what holds for every cut -----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(WAVES, st.sampled_from(["time:7", "freq:3", "tf:3x2"]), st.sampled_from(["zero", "min", "mean"]), st.integers(0, 9))
def test_waves_keep_type_and_shape_show_the_input_and_do_not_depend_on_their_batch(wave, grid, fill, seed):
    parts = AudioParts.cut(wave, grid, fill=fill, rate=RATE)
    masks = generator(seed).random((5, len(parts.names))) < 0.5
    masks[2] = True
    batch = parts.compose(masks, RNG)
    assert (batch.dtype, batch.shape) == (wave.dtype, (5, len(wave)))
    assert batch[2].tobytes() == wave.tobytes()
    for i in range(5):
        assert batch[i].tobytes() == parts.compose(masks[i:i + 1], RNG)[0].tobytes()
    assert parts.compose(masks[:0], RNG).shape == (0, len(wave))


@given(arrays.arrays(st.sampled_from([np.float16, np.float32, np.uint8]), st.tuples(st.integers(5, 12), st.integers(4, 9)),
                     elements=st.integers(0, 100)), st.sampled_from(["time:5", "freq:4", "tf:3x2"]), st.integers(0, 9))
def test_hidden_cells_of_an_excerpt_take_its_mean_and_all_others_stay(excerpt, grid, seed):
    parts = AudioParts.cut(excerpt, grid)
    masks = generator(seed).random((4, len(parts.names))) < 0.5
    mean = excerpt.astype(float).mean()
    mean = excerpt.dtype.type(round(mean) if excerpt.dtype == np.uint8 else mean)
    for mask, composed in zip(masks, parts.compose(masks, RNG), strict=True):
        assert (composed.dtype, composed.shape) == (excerpt.dtype, excerpt.shape)
        for t, f in np.ndindex(excerpt.shape):
            assert composed[t, f] == (excerpt[t, f] if mask[parts.labels[t, f]] else mean)


def test_the_cells_of_the_singing_voice_papers_are_23_frames_by_20_bands_time_first():
    excerpt = np.zeros((115, 80), np.float32)
    parts = AudioParts.cut(excerpt, "tf:5x4")
    t, f = np.indices(excerpt.shape)
    np.testing.assert_array_equal(parts.labels, (t // 23) * 4 + f // 20)
    assert parts.names[:5] == ("frames 0–22, bands 0–19", "frames 0–22, bands 20–39", "frames 0–22, bands 40–59",
                               "frames 0–22, bands 60–79", "frames 23–45, bands 0–19")


def test_the_remainder_of_an_uneven_division_joins_the_last_cell():
    parts = AudioParts.cut(np.zeros((11, 5)), "tf:3x2")
    np.testing.assert_array_equal(parts.labels[:, 0], [0, 0, 0, 2, 2, 2, 4, 4, 4, 4, 4])
    np.testing.assert_array_equal(parts.labels[0], [0, 0, 1, 1, 1])
    wave = np.arange(1, 12.0)
    np.testing.assert_array_equal(without(AudioParts.cut(wave, "time:3"), 2), [1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0])


@pytest.mark.parametrize(("fill", "expected"), [("zero", 0), ("min", -6), ("mean", 2), (5, 5), (None, 0)])
def test_hidden_samples_take_the_fill(fill, expected):
    wave = np.array([-6, 2, 4, 8], np.int16)
    np.testing.assert_array_equal(without(AudioParts.cut(wave, "time:2", fill=fill), 0), [expected, expected, 4, 8])


# --- waveforms cut in frequency ---------------------------------------------------------------------------------------


@examples(30)
@given(st.integers(64, 3000), st.sampled_from(["freq:4", "tf:1x1", "tf:3x2", "tf:4x3"]), st.integers(0, 9))
def test_parts_add_up_to_the_wave_and_hiding_all_of_them_is_silence(length, grid, seed):
    wave = generator(seed).normal(size=length)
    parts = AudioParts.cut(wave, grid, rate=RATE)
    d = len(parts.names)
    components = [wave - without(parts, part) for part in range(d)]
    np.testing.assert_allclose(np.sum(components, axis=0), wave, atol=1e-9)
    assert np.abs(without(parts, *range(d))).max() < 1e-6 * np.abs(wave).max()


def test_a_tone_disappears_with_its_band_and_no_other():
    tone = sine(440)
    parts = AudioParts.cut(tone, "freq:3", rate=RATE)
    own = int(np.searchsorted(band_edges(3, RATE), 440)) - 1
    for band in range(3):
        left = loudness(without(parts, band)) / loudness(tone)
        assert left < 0.02 if band == own else left > 0.99


def test_of_two_tones_one_after_the_other_each_is_hidden_in_its_own_cell():
    low, high = sine(300), sine(2500)
    wave = np.where(SECOND < 0.5, low, high)
    parts = AudioParts.cut(wave, "tf:2x2", rate=RATE)  # the edge lies at 1114 Hz
    middles = slice(500, 3500), slice(4500, 7500)  # away from the seam and the ends
    for part, tone in enumerate([(0, True), (0, False), (1, False), (1, True)]):
        composed = without(parts, part)
        for half, middle in enumerate(middles):
            gone = tone == (half, True)
            assert (loudness(composed[middle]) < 0.02 * loudness(wave[middle])) == gone


def test_the_hidden_band_of_noise_is_the_one_a_reference_transform_finds_empty():
    wave = generator(1).normal(size=RATE)
    parts = AudioParts.cut(wave, "freq:3", rate=RATE)
    edges = band_edges(3, RATE)
    hz, before = scipy.signal.welch(wave, RATE)
    _, after = scipy.signal.welch(without(parts, 1), RATE)
    inside = (hz > edges[1] + 100) & (hz < edges[2] - 100)
    outside = (hz < edges[1] - 100) | (hz > edges[2] + 100)
    assert (after[inside] < 1e-3 * before[inside].mean()).all()
    np.testing.assert_allclose(after[outside], before[outside], rtol=0.02)


def test_a_hidden_cell_can_keep_the_mean_magnitude_instead_of_silence():
    wave = generator(2).normal(size=RATE)
    silent, mean = (AudioParts.cut(wave, "freq:2", fill=fill, rate=RATE) for fill in ("zero", "mean"))
    assert loudness(without(silent, 0, 1)) < 1e-9
    assert 0.7 < loudness(without(mean, 0, 1)) / loudness(wave) < 1.1


def test_integers_that_leave_their_range_are_clipped_not_wrapped():
    square = np.where(np.arange(4000) // 100 % 2, 32767, -32768)  # overshoots without its overtones
    wave = square.astype(np.int16)
    composed = without(AudioParts.cut(wave, "freq:2", rate=RATE), 1)
    loud = np.abs(wave.astype(int) - composed).max()
    assert composed.max() == 32767
    assert loud < 45000  # a wrapped sample is off by 65536


def test_a_64_bit_integer_too_large_for_a_float_survives_where_nothing_is_hidden():
    wave = np.full(100, 2**62 + 1, np.int64)
    np.testing.assert_array_equal(without(AudioParts.cut(wave, "freq:2")), wave)


def test_a_frequency_on_an_edge_belongs_to_the_band_above():
    labels = AudioParts.cut(np.zeros(1024), "freq:2").labels
    np.testing.assert_array_equal(labels[0], np.arange(513) >= 256)


def test_bands_are_equally_wide_in_mel_and_reach_the_highest_frequency():
    edges = band_edges(5, 22050)
    mel = 1127 * np.log(1 + edges / 700)
    np.testing.assert_allclose(np.diff(mel), mel[-1] / 5)
    np.testing.assert_allclose(edges[[0, -1]], [0, 11025])


# --- names, views, pooling --------------------------------------------------------------------------------------------


def test_names_carry_units_where_they_are_known():
    wave = np.zeros(RATE)
    assert AudioParts.cut(wave, "time:4", rate=RATE).names == ("0.00–0.25 s", "0.25–0.50 s", "0.50–0.75 s", "0.75–1.00 s")
    assert AudioParts.cut(wave, "time:2").names == ("samples 0–3999", "samples 4000–7999")
    assert AudioParts.cut(wave, "tf:2x2", rate=RATE).names[1] == "0.00–0.50 s, 1114–4000 Hz"
    assert AudioParts.cut(wave, "freq:2").names == ("0–50 % of the highest frequency", "50–100 % of the highest frequency")
    excerpt = AudioParts.cut(np.zeros((10, 4)), "tf:2x2", hop_seconds=0.1, band_edges_hz=[0, 100, 300, 700, 1500])
    assert excerpt.names == ("0.00–0.50 s, 0–300 Hz", "0.00–0.50 s, 300–1500 Hz",
                             "0.50–1.00 s, 0–300 Hz", "0.50–1.00 s, 300–1500 Hz")


@given(st.integers(1, 60), st.integers(1, 96000))
def test_names_of_short_stretches_are_distinct(cells, rate):
    assert len(set(AudioParts.cut(np.zeros(300), f"time:{cells}", rate=rate).names)) == cells


@pytest.mark.parametrize("grid", ["time:5", "freq:5", "tf:5x4", "tf:3x7"])
def test_the_view_shows_every_part_where_it_sounds(grid):
    parts = AudioParts.cut(np.where(SECOND < 0.5, sine(300), sine(2500)), grid, rate=RATE)
    view = parts.view
    frames, bands = view.spectrogram.shape
    assert view.labels.shape == (frames, bands)
    assert frames <= 400
    assert bands <= 128
    assert set(np.unique(view.labels)) == set(range(len(parts.names)))
    assert (view.seconds, view.top_hz, view.rate) == (1.0, 4000.0, RATE)
    assert (view.wave_labels is not None) == grid.startswith("time")
    for moment, hz in ((0.1, 300), (0.9, 2500)):  # the loudest band of the picture belongs to the part that silences the tone
        frame = int(moment * frames)
        loudest = view.labels[frame, view.spectrogram[frame].argmax()]
        around = slice(int(moment * RATE) - 100, int(moment * RATE) + 100)
        assert loudness(without(parts, loudest)[around]) < 0.05 * loudness(sine(hz))


def test_the_view_of_an_excerpt_is_the_excerpt_and_has_no_sound():
    excerpt = generator(0).normal(size=(10, 6))
    view = AudioParts.cut(excerpt, "tf:2x3", hop_seconds=0.02).view
    np.testing.assert_array_equal(view.spectrogram, excerpt.astype(np.float32))
    np.testing.assert_array_equal(view.spread(np.arange(6.0)), np.repeat(np.repeat(np.arange(6.0).reshape(2, 3), 5, 0), 2, 1))
    assert (view.wave, view.rate, view.wave_labels, view.seconds) == (None, None, None, 0.2)


def test_integers_are_scaled_for_playing_and_loud_floats_too():
    np.testing.assert_allclose(AudioParts.cut(np.array([0, 16384], np.int16), "time:1").view.wave, [0, 0.5])
    np.testing.assert_allclose(AudioParts.cut(np.array([0.0, -4, 2]), "time:1").view.wave, [0, -1, 0.5])


def test_pooling_averages_each_part():
    parts = AudioParts.cut(np.zeros(6), "time:2")
    np.testing.assert_allclose(parts.pool(np.array([1.0, -2, 4, 5, 6, 7]), "mean"), [1, 6])
    np.testing.assert_allclose(parts.pool(np.array([1.0, -2, 4, 5, 6, 7]), "mean_pos"), [5 / 3, 6])
    excerpt = AudioParts.cut(np.zeros((4, 2)), "tf:2x2")
    np.testing.assert_allclose(excerpt.pool(np.arange(8.0).reshape(4, 2), "mean"), [1, 2, 5, 6])
    filtered = AudioParts.cut(np.zeros(100), "freq:2")
    np.testing.assert_allclose(filtered.pool(filtered.labels * 10.0, "mean"), [0, 10])
    with pytest.raises(ValueError, match="tell frequencies apart"):
        filtered.pool(np.zeros(100), "mean")


@pytest.mark.parametrize("grid", ["time:4", "tf:2x2"])
def test_parts_satisfy_the_protocol_and_pickle(grid):
    parts = AudioParts.cut(sine(440), grid, rate=RATE)
    assert isinstance(parts, Parts)
    assert (parts.domain, parts.deterministic) == ("audio", True)
    again = pickle.loads(pickle.dumps(parts))
    np.testing.assert_array_equal(without(again, 1), without(parts, 1))


def test_parts_do_not_change_when_the_array_they_were_cut_from_does():
    wave = np.ones(10)
    parts = AudioParts.cut(wave, "time:2")
    wave[:] = 7
    np.testing.assert_array_equal(without(parts), np.ones(10))


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sound", "options", "error", "message"), [
    ([], {}, ValueError, r"not empty, got shape \(0,\)"),
    (np.zeros((2, 3, 4)), {}, ValueError, r"got shape \(2, 3, 4\)"),
    (np.zeros(5), {"grid": "time:6"}, ValueError, "expected at least 6, got 5"),
    (np.zeros((3, 9)), {"grid": "tf:4x4"}, ValueError, "at least one of its frames"),
    (np.zeros(50), {"grid": "tf:4x4"}, ValueError, "at least 16 samples in each stretch of time, got 12"),
    (np.zeros(64), {"grid": "freq:60", "rate": 8000}, ValueError, "fewer bands"),
    ([0.0, np.nan], {"grid": "time:1"}, ValueError, "must be finite, got nan at 1"),
    ([[0.0, 1], [np.inf, 1]], {"grid": "time:1"}, ValueError, r"got inf at \(1, 0\)"),
    (np.zeros((4000, 2)), {"rate": 8000}, ValueError, r"must be \(samples,\), got shape \(4000, 2\); average .*axis=1"),
    (np.zeros((2, 4000)), {}, ValueError, r"axis=0"),
    (np.zeros(100, np.uint8), {}, TypeError, "signed"),
    (["a"], {}, TypeError, "real numbers"),
    (np.zeros(100), {"rate": 0}, ValueError, "rate must be a whole number"),
    (np.zeros(100), {"rate": 0.5}, ValueError, "rate must be a whole number"),
    (np.zeros(100), {"hop_seconds": 0.1}, ValueError, "pass rate"),
    (np.zeros((20, 8)), {"hop_seconds": 0}, ValueError, "hop_seconds"),
    (np.zeros((20, 8)), {"band_edges_hz": [0, 1]}, ValueError, "9 rising frequencies"),
    (np.zeros(100), {"fill": "max"}, ValueError, "zero, min, mean or a number, got 'max'"),
    (np.zeros(100), {"fill": float("nan")}, TypeError, "finite number"),
    (np.zeros(100, np.int16), {"fill": 40000}, ValueError, "int16"),
    (np.zeros(100), {"grid": "freq:2", "fill": -1}, ValueError, "magnitude of at least 0"),
])
def test_what_cannot_be_cut_is_one_clear_error(sound, options, error, message):
    with pytest.raises(error, match=message):
        AudioParts.cut(sound, **options)


@pytest.mark.parametrize("grid", ["time", "time:0", "tf:4", "tf:4x0", "grid:4x4", "time:-1", "", None])
def test_a_grid_that_is_none_is_refused(grid):
    with pytest.raises(ValueError, match="'time:16', 'freq:4' or 'tf:5x4'"):
        parse_grid(grid)


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_stereo_file_is_read_as_the_mean_of_its_channels(tmp_path):
    stereo = np.stack([sine(440), np.zeros(RATE, np.float32)], axis=1)
    soundfile.write(tmp_path / "a.wav", stereo, RATE, subtype="FLOAT")
    wave, rate = read(tmp_path / "a.wav")
    assert (wave.dtype, rate) == (np.float32, RATE)
    np.testing.assert_array_equal(wave, stereo[:, 0] / 2)


def test_another_rate_keeps_the_pitch(tmp_path):
    soundfile.write(tmp_path / "a.wav", sine(440), RATE, subtype="FLOAT")
    wave, rate = read(str(tmp_path / "a.wav"), rate=16000)
    assert (rate, len(wave)) == (16000, 16000)
    hz = np.fft.rfftfreq(len(wave), 1 / rate)
    assert hz[np.abs(np.fft.rfft(wave)).argmax()] == 440


def test_files_that_cannot_be_heard_are_one_clear_error(tmp_path):
    with pytest.raises(ValueError, match="must exist"):
        read(tmp_path / "none.wav")
    (tmp_path / "text.wav").write_text("no sound")
    with pytest.raises(ValueError, match="must be a sound file that libsndfile reads"):
        read(tmp_path / "text.wav")
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), RATE)
    with pytest.raises(ValueError, match="at least one sample"):
        read(tmp_path / "empty.wav", rate=16000)


# --- maps over another grid -------------------------------------------------------------------------------------------


def part_at(second, hz, length, stretches, bands):
    """The part that holds a moment and a frequency, looked for one after the other."""
    stretch = max(k for k in range(stretches) if k == 0 or second >= k * (length // stretches) / RATE)
    top = 1127 * np.log(1 + RATE / 2 / 700)
    band = max(k for k in range(bands) if k == 0 or 1127 * np.log(1 + hz / 700) >= k * top / bands)
    return stretch * bands + band


@pytest.mark.parametrize(("grid", "stretches", "bands"), [("time:16", 16, 1), ("freq:4", 1, 4), ("tf:5x4", 5, 4), ("tf:1x1", 1, 1)])
def test_a_map_of_another_grid_that_is_1_in_one_part_alone_pools_to_that_part(grid, stretches, bands):
    length = 9001
    parts = AudioParts.cut(generator(0).normal(size=length), grid, rate=RATE)
    # A centred transform's grid: the last frame lies beyond the end, some bands above the highest frequency.
    seconds, hertz = np.arange(0, length + 90, 90) / RATE, np.geomspace(27.5, 4500, 61)
    where = np.array([[part_at(s, hz, length, stretches, bands) for hz in hertz] for s in seconds])
    for part in range(len(parts.names)):
        np.testing.assert_array_equal(parts.pool_at(where == part, seconds, hertz, "mean"), np.arange(len(parts.names)) == part)
    noise = generator(1).normal(size=where.shape)
    assert parts.pool_at(noise, seconds, hertz, "sum").sum() == pytest.approx(noise.sum())
    expected = [np.abs(noise[where == part]).mean() for part in range(len(parts.names))]
    np.testing.assert_allclose(parts.pool_at(noise, seconds, hertz, "mean_abs"), expected)
    channels = np.stack([noise, 2 * noise], axis=2)
    np.testing.assert_allclose(parts.pool_at(channels, seconds, hertz, "sum"), 3 * parts.pool_at(noise, seconds, hertz, "sum"))


def test_a_frame_on_an_edge_belongs_to_the_stretch_that_begins_there():
    for rate in (RATE, 22050, 44100):
        parts = AudioParts.cut(np.zeros(315 * 64), "time:64", rate=rate)  # each begins where a frame of hop 315 has its middle
        seconds, hertz = np.arange(65) * 315 / rate, np.array([100.0, 1000])
        np.testing.assert_array_equal(parts.pool_at(np.ones((65, 2)), seconds, hertz, "sum"), [2] * 63 + [4])


@pytest.mark.parametrize("grid", ["freq:3", "tf:3x2"])
def test_on_the_grid_of_its_own_transform_it_is_the_other_way_of_pooling(grid):
    parts = AudioParts.cut(generator(2).normal(size=RATE), grid, rate=RATE)
    frames, bins = parts.labels.shape
    hop = (bins - 1) // 2  # a quarter of the window
    map = generator(3).normal(size=(frames, bins))
    seconds, hertz = (np.arange(frames) - 1) * hop / RATE, np.arange(bins) * RATE / (4 * hop)
    np.testing.assert_array_equal(parts.pool_at(map, seconds, hertz, "signed_max"), parts.pool(map, "signed_max"))


def test_the_energy_of_a_tone_in_a_reference_transform_lands_in_the_part_that_silences_it():
    wave = np.where(SECOND < 0.5, sine(300), 0)
    parts = AudioParts.cut(wave, "tf:2x2", rate=RATE)
    hertz, seconds, power = scipy.signal.spectrogram(wave, RATE)
    pooled = parts.pool_at(power.T, seconds, hertz, "sum")
    assert loudness(without(parts, int(pooled.argmax()))) < 0.1 * loudness(wave)
    assert pooled.max() > 0.99 * pooled.sum()


@pytest.mark.parametrize(("sound", "options", "arguments", "message"), [
    (np.zeros(800), {"grid": "time:2"}, {}, "rate must be known"),
    (np.zeros(800), {"grid": "freq:2"}, {}, "rate must be known"),
    (np.zeros((40, 30)), {"grid": "tf:2x2"}, {}, "must be of a waveform, got a spectrogram"),
    (np.zeros(800), {"grid": "time:20", "rate": RATE}, {}, r"'0.0050–0.0100 s' holds none: the parts, 20 in time by 1 in frequency, are too fine for 11 frames \(0–0.1 s\) and 4 bands"),
    (np.zeros(800), {"grid": "freq:6", "rate": RATE}, {}, r"4 bands \(100–3000 Hz\); ask for fewer parts"),
    (np.zeros(800), {"grid": "time:2", "rate": RATE}, {"map": np.ones((4, 11))}, r"expected \(11, 4\), got \(4, 11\)"),
    (np.zeros(800), {"grid": "time:2", "rate": RATE}, {"seconds": np.full(11, np.nan)}, "seconds must be one finite number"),
    (np.zeros(800), {"grid": "time:2", "rate": RATE}, {"hertz": np.ones((4, 1))}, r"hertz must be .* got shape \(4, 1\)"),
    (np.zeros(800), {"grid": "time:2", "rate": RATE}, {"how": "median"}, "signed_max, got 'median'"),
])
def test_maps_that_cannot_be_placed_are_one_clear_error(sound, options, arguments, message):
    given = {"map": np.ones((11, 4)), "seconds": np.arange(11) / 100, "hertz": np.array([100.0, 500, 1500, 3000]), "how": "sum"}
    with pytest.raises(ValueError, match=message):
        AudioParts.cut(sound, **options).pool_at(**{**given, **arguments})


def test_a_sound_in_one_part_needs_no_rate():
    assert AudioParts.cut(np.zeros(800), "time:1").pool_at(np.ones((3, 2)), np.arange(3), np.arange(2), "sum") == [6]
