"""Parts that are the sources of a mix."""

import pickle

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

import whytrust as wt
from domains.sounds import RATE, RNG, SECOND, laid, loudness, noise
from whitebox import examples
from whytrust.checked import CheckedModel
from whytrust.core import LayeredParts, generator
from whytrust.domains.stems import StemParts
from whytrust.measures import Case

LOW, HIGH = 0.5 * np.sin(2 * np.pi * 200 * SECOND), 0.4 * np.sin(2 * np.pi * 3000 * SECOND)
TYPES = st.sampled_from([np.float32, np.float64, np.int16])


def stems(seed, count, length, kind=np.float64):
    return {f"stem {i}": noise(100 * seed + i, length, kind) for i in range(count)}


# --- hiding -----------------------------------------------------------------------------------------------------------


@examples(40)
@given(st.integers(1, 5), st.integers(1, 600), TYPES, st.integers(0, 99))
def test_a_mask_gives_the_sum_of_the_shown_stems_and_all_of_them_the_mix_bit_for_bit(count, length, kind, seed):
    given = stems(seed, count, length, kind)
    parts = StemParts.of(given)
    masks = generator(seed).random((4, count)) < 0.5
    masks[0], masks[1] = True, False
    batch = parts.compose(masks, RNG)
    assert (batch.dtype, batch.shape) == (kind, (4, length))
    assert batch[0].tobytes() == parts.sound.tobytes()
    assert not batch[1].any()
    for mask, mixed in zip(masks, batch, strict=True):
        expected = sum((w.astype(float) for w, shows in zip(given.values(), mask, strict=True) if shows), np.zeros(length))
        np.testing.assert_allclose(mixed, expected, rtol=1e-6, atol=1e-6)


def test_what_the_mix_has_beyond_its_stems_is_one_more_part():
    rest = noise(7, RATE) / 50
    parts = StemParts.of({"low": LOW, "high": HIGH}, mix=LOW + HIGH + rest, rate=RATE)
    assert parts.names == ("low", "high", "rest")
    np.testing.assert_allclose(laid(parts, 2), rest, atol=1e-12)
    assert laid(parts, 0, 1, 2).tobytes() == (LOW + HIGH + rest).tobytes()


@pytest.mark.parametrize("kind", [np.float32, np.int16])
def test_what_rounding_left_over_is_no_part(kind):
    exact = {name: 3000 * wave for name, wave in (("low", LOW), ("high", HIGH), ("noise", noise(8, RATE) / 9))}
    mix = np.rint(sum(exact.values())).astype(kind) if kind == np.int16 else sum(exact.values()).astype(kind)
    rounded = {name: (np.rint(wave) if kind == np.int16 else wave).astype(kind) for name, wave in exact.items()}
    parts = StemParts.of(rounded, mix=mix)
    assert parts.names == ("low", "high", "noise")
    assert laid(parts, 0, 1, 2).tobytes() == mix.tobytes()
    assert StemParts.of(rounded, mix=mix, tolerance=0).names[-1] == "rest"


# --- laid over another mix --------------------------------------------------------------------------------------------


@examples(40)
@given(st.integers(1, 4), st.integers(1, 900), TYPES, TYPES, st.integers(0, 99))
def test_all_stems_shown_are_this_mix_none_the_one_below_and_disjoint_changes_add_up(count, length, kind, other, seed):
    parts = StemParts.of(stems(seed, count, length, kind)).over(noise(seed + 5000, length, other))
    this, below = parts.sound, parts.below
    assert laid(parts, *range(count)).tobytes() == this.tobytes()
    assert laid(parts).tobytes() == below.tobytes() == noise(seed + 5000, length, other).astype(this.dtype).tobytes()
    alone = np.array([laid(parts, part) for part in range(count)], dtype=float) - below
    tolerance = count if this.dtype.kind == "i" else 1e-6 * max(np.abs(this).max(), np.abs(below).max(), 1e-3) * count
    np.testing.assert_allclose(alone.sum(axis=0), this.astype(float) - below, atol=tolerance)  # the shares are the change


def test_a_change_goes_to_the_stem_that_sounds_where_it_is():
    clean = StemParts.of({"low": LOW, "high": HIGH}, rate=RATE)
    change = 0.05 * np.sin(2 * np.pi * 3000 * SECOND + 1)
    parts = clean.like(clean.sound + change).over(clean.sound)
    assert loudness(laid(parts, 1) - parts.sound) < 0.02 * loudness(change)
    assert loudness(laid(parts, 0) - clean.sound) < 0.02 * loudness(change)
    pooled = parts.pool(parts.squared_change(clean.sound), "sum")
    assert pooled[1] > 0.99 * pooled.sum()


def test_where_all_are_silent_a_change_is_shared_equally():
    silent = np.zeros(1000)
    below = StemParts.of({"a": silent, "b": silent, "c": silent})
    change = noise(9, 1000)
    for part in range(3):
        np.testing.assert_allclose(laid(below.like(change).over(silent), part), change / 3, atol=1e-12)
        np.testing.assert_allclose(laid(below.like(change), part), change / 3, atol=1e-12)


def test_stems_of_two_powers_share_a_change_as_those_powers():
    tone = np.sin(2 * np.pi * 1000 * SECOND)
    parts = StemParts.of({"loud": 0.3 * tone, "quiet": 0.1 * tone})
    change = 0.2 * np.sin(2 * np.pi * 1000 * SECOND + 2)
    np.testing.assert_allclose(laid(parts.like(parts.sound + change).over(parts.sound), 0) - parts.sound, 0.9 * change, atol=1e-9)


@examples(20)
@given(st.integers(1, 4), st.integers(1, 900), st.integers(0, 99))
def test_another_mix_is_cut_alike_whatever_it_was_cut_as_before(count, length, seed):
    first, second, third = StemParts.of(stems(seed, count, length)), noise(seed + 1, length), noise(seed + 2, length)
    once, twice = first.like(third), first.like(second).like(third)
    masks = generator(seed).random((3, count)) < 0.5
    assert once.compose(masks, RNG).tobytes() == twice.compose(masks, RNG).tobytes()
    assert laid(once, *range(count)).tobytes() == third.tobytes()
    back = once.like(first.sound)
    assert back.compose(masks, RNG).tobytes() == first.compose(masks, RNG).tobytes()


def test_in_a_trial_the_sets_that_hold_the_cause_flip_the_label():
    clean = StemParts.of({"low": LOW, "high": HIGH, "middle": 0.3 * np.sin(2 * np.pi * 900 * SECOND)}, rate=RATE)
    hz = np.fft.rfftfreq(RATE, 1 / RATE)

    def loud_and_high(batch):
        energy = (np.abs(np.fft.rfft(batch, axis=1))[:, (hz > 2500) & (hz < 3500)] ** 2).sum(axis=1)
        share = energy / (energy + 1.5 * np.sum(np.abs(np.fft.rfft(HIGH)) ** 2))
        return np.stack([1 - share, share], axis=1)

    changed = clean.like(clean.sound + 0.5 * HIGH)
    case = Case(CheckedModel(loud_and_high), changed, clean.sound, 0, 1)
    masks = np.array(list(np.ndindex(2, 2, 2)), dtype=bool)
    np.testing.assert_array_equal(case.labels(masks), masks[:, 1])
    assert np.argmax(case.change) == 1
    assert case.localised(np.array([False, True, False])).label == 1
    assert case.localised(np.array([True, False, True])) is None


# --- pooling and showing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("over", ["samples", "transform"])
def test_pooled_sums_add_up_and_a_map_that_is_the_same_everywhere_is_that_for_every_stem(over):
    parts = StemParts.of(stems(0, 3, 5000), rate=RATE)
    shape = parts.sound.shape if over == "samples" else parts.labels.shape
    map = noise(1, shape)
    assert parts.pool(map, "sum").sum() == pytest.approx(map.sum())
    for how in ("mean", "mean_abs", "mean_pos"):
        np.testing.assert_allclose(parts.pool(np.full(shape, 2.5), how), 2.5)
    np.testing.assert_allclose(parts.pool(map, "mean_abs"), parts.pool(np.abs(map), "mean"))
    np.testing.assert_allclose(parts.pool(map, "mean_pos"), parts.pool(np.maximum(map, 0), "mean"))


def test_a_map_over_samples_goes_to_whoever_sounds_then():
    early, late = np.where(SECOND < 0.5, LOW, 0), np.where(SECOND < 0.5, 0, HIGH)
    parts = StemParts.of({"early": early, "late": late})
    map = np.where(SECOND < 0.4, 1.0, np.where(SECOND < 0.6, 0, -3.0))
    np.testing.assert_allclose(parts.pool(map, "sum"), [0.4 * RATE, -3 * 0.4 * RATE], rtol=1e-6)
    np.testing.assert_allclose(parts.pool(map, "signed_max"), [1, -3])


def test_a_silent_stem_gets_nothing_of_what_others_sound():
    parts = StemParts.of({"low": LOW, "nothing": np.zeros(RATE)}, rate=RATE)
    assert parts.pool(np.ones(RATE), "sum")[1] == pytest.approx(0, abs=1e-6)
    explained = wt.explain(lambda batch: np.abs(batch).mean(axis=1), LOW, parts=parts, method="occlusion")
    assert explained.scores[1] == 0
    assert explained.scores[0] == pytest.approx(np.abs(LOW).mean())


def test_the_picture_shows_the_loudest_stem_of_each_place():
    parts = StemParts.of({"high": np.where(SECOND < 0.5, 0, HIGH), "low": LOW}, rate=RATE)
    view = parts.view
    frames = len(view.labels)
    for moment, hz, loudest in ((0.25, 200, 1), (0.75, 200, 1), (0.75, 3000, 0)):
        mel = np.log1p(hz / 700) / np.log1p(4000 / 700)
        assert view.labels[int(moment * frames), int(mel * view.labels.shape[1])] == loudest
    assert (view.seconds, view.top_hz, view.rate, view.wave_labels) == (1.0, 4000.0, RATE, None)


def test_explain_takes_stems_and_finds_the_one_that_the_model_hears(tmp_path):
    parts = StemParts.of({"low": LOW, "high": HIGH}, mix=LOW + HIGH + noise(3, RATE) / 100, rate=RATE)
    hz = np.fft.rfftfreq(RATE, 1 / RATE)

    def high(batch):
        return (np.abs(np.fft.rfft(batch, axis=1))[:, hz > 2000] ** 2).sum(axis=1) / RATE

    found = wt.explain(high, parts.sound, parts=parts, method="lime")
    assert found.as_list(1)[0][0] == "high"
    assert "high" in found.save(tmp_path / "a.html").read_text(encoding="utf-8")
    assert found.save(tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_parts_satisfy_the_protocol_and_pickle():
    parts = StemParts.of({"low": LOW, "high": HIGH}, rate=RATE)
    assert isinstance(parts, LayeredParts)
    again = pickle.loads(pickle.dumps(parts.over(LOW)))
    np.testing.assert_array_equal(laid(again, 1), laid(parts.over(LOW), 1))


# --- files ------------------------------------------------------------------------------------------------------------


def written(folder, rate=RATE, **waves):
    for name, wave in waves.items():
        soundfile.write(folder / f"{name}.wav", wave, rate, subtype="PCM_16")
    return {name: folder / f"{name}.wav" for name in waves}


def test_files_of_16_bits_whose_sum_was_rounded_have_no_rest(tmp_path):
    paths = written(tmp_path, low=LOW, high=HIGH)
    mix = written(tmp_path, mix=LOW + HIGH)["mix"]
    parts = StemParts.read(paths, mix)
    assert (parts.names, parts.rate) == (("low", "high"), RATE)
    np.testing.assert_array_equal(laid(parts, 0, 1), soundfile.read(mix, dtype="float32")[0])
    assert StemParts.read(paths, written(tmp_path, other=LOW)["other"]).names == ("low", "high", "rest")


def test_files_of_several_rates_are_one_clear_error_until_a_rate_is_given(tmp_path):
    paths = written(tmp_path, low=LOW) | written(tmp_path, 16000, high=np.repeat(HIGH, 2))
    with pytest.raises(ValueError, match=r"one rate, got 'low' 8000, 'high' 16000; pass rate="):
        StemParts.read(paths)
    assert StemParts.read(paths, rate=16000).sound.shape == (16000,)


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "options", "error", "message"), [
    ({}, {}, ValueError, "at least one waveform, got an empty dict"),
    ([LOW, HIGH], {}, TypeError, "a dict of waveforms by name.*got list"),
    ({1: LOW}, {}, TypeError, "names that are no words"),
    ({"a": LOW, "b": LOW[:-1]}, {}, ValueError, "one length, got samples: 'a' 8000, 'b' 7999"),
    ({"a": LOW}, {"mix": LOW[:-1]}, ValueError, "'a' 8000, the mix 7999"),
    ({"a": [0.0, np.nan]}, {}, ValueError, "the stem 'a': a sound must be finite, got nan at 1"),
    ({"a": LOW}, {"mix": [np.inf]}, ValueError, "the mix: a sound must be finite"),
    ({"a": "voice.wav"}, {}, TypeError, "the stem 'a': .*real numbers"),
    ({"a": []}, {}, ValueError, "the stem 'a': .*not empty"),
    ({"a": np.zeros((40, 30))}, {}, ValueError, r"the stem 'a' must be a waveform \(samples,\), got shape \(40, 30\)"),
    ({"a": LOW, "b": np.zeros(RATE, np.int16)}, {}, TypeError, "another scale, got 'a' float64, 'b' int16"),
    ({"a": np.full(9, 30000, np.int16), "b": np.full(9, 9000, np.int16)}, {}, ValueError, "must fit their type, int16, got samples from 39000"),
    ({"rest": LOW}, {"mix": LOW + HIGH}, ValueError, "a part named 'rest', and a stem has that name already"),
    ({"a": LOW}, {"rate": 0}, ValueError, "rate must be a whole number"),
    ({"a": LOW}, {"mix": HIGH, "tolerance": float("nan")}, ValueError, "tolerance must be a number of at least 0, got nan"),
])
def test_what_cannot_be_mixed_is_one_clear_error(given, options, error, message):
    with pytest.raises(error, match=message):
        StemParts.of(given, **options)


def test_what_does_not_fit_is_one_clear_error(tmp_path):
    parts = StemParts.of({"low": LOW})
    for does in (parts.like, parts.over, parts.squared_change):
        with pytest.raises(ValueError, match=r"this one's shape, \(8000,\), got \(7,\)"):
            does(np.zeros(7))
    with pytest.raises(ValueError, match=r"shaped like the mix, \(8000,\), or like its transform, \(\d+, 513\), got \(3,\)"):
        parts.pool(np.zeros(3), "mean")
    with pytest.raises(ValueError, match="pooling must be one of"):
        parts.pool(LOW, "median")
    with pytest.raises(TypeError, match=r"paths of sound files, got ndarray for 'low'; pass arrays to StemParts\.of"):
        StemParts.read({"low": LOW})
    with pytest.raises(ValueError, match="must exist"):
        StemParts.read({"low": tmp_path / "none.wav"})


def test_a_stem_may_be_called_rest_where_the_mix_has_none():
    assert StemParts.of({"rest": LOW, "mix": HIGH}, mix=LOW + HIGH).names == ("rest", "mix")
