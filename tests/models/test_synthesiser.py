import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whytrust.core import generator
from whytrust.models import instruments, voices
from whytrust.models.instruments import STRUCK, SUSTAINED
from whytrust.models.synthesiser import RATE, piece
from whytrust.models.voices import BANDWIDTHS, HERTZ, VOWELS, Manner, Note, Singer

STEMS = ["voice", "instruments", "percussion"]


@pytest.fixture(scope="module")
def pieces():
    return [piece(7, number, 5.0) for number in range(24)]


@pytest.fixture
def rng():
    return generator(0)


def sung_samples(made):
    time = np.arange(len(made.wave)) / RATE
    return np.any([np.zeros(len(time), dtype=bool), *((begin <= time) & (time < end) for begin, end in made.sung)], axis=0)


def amplitudes(sound):
    """Of the sine waves of 0, 1, 2 … hertz, in a second from the middle of the sound."""
    begin = (len(sound) - RATE) // 2
    return 2 * np.abs(np.fft.rfft(sound[begin:begin + RATE].astype(float))) / RATE


def auc(scores, labels):
    from scipy.stats import mannwhitneyu
    return mannwhitneyu(scores[labels], scores[~labels]).statistic / (labels.sum() * (~labels).sum())


# --- pieces -----------------------------------------------------------------------------------------------------------


def test_the_same_arguments_give_the_same_bits_whatever_was_made_before():
    first = piece(3, 5, 2.5)
    piece(4, 0, 2), piece(3, 6, 2)
    np.random.seed(1)  # noqa: NPY002
    again = piece(3, 5, 2.5)
    assert first.sung == again.sung
    for name in STEMS:
        assert first.stems[name].tobytes() == again.stems[name].tobytes()
    assert first.wave.tobytes() == again.wave.tobytes()


def test_numbers_and_seeds_tell_pieces_apart():
    made = [piece(0, 0, 2), piece(0, 1, 2), piece(1, 0, 2), piece(1, 1, 2)]
    assert len({p.wave.tobytes() for p in made}) == 4


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(2, 5))
def test_any_piece_is_a_sound_with_stems_and_stretches(seed, number, seconds):
    made = piece(seed, number, seconds)
    assert made.wave.dtype == np.float32
    assert made.wave.shape == (round(seconds * RATE),)
    assert np.isfinite(made.wave).all()
    assert 0 < np.abs(made.wave).max() <= 1
    assert list(made.stems) == STEMS
    np.testing.assert_allclose(sum(stem.astype(float) for stem in made.stems.values()), made.wave, atol=1e-6)
    edges = np.ravel(made.sung)
    assert (np.diff(edges) > 0).all()
    assert all(0 <= t <= seconds + 1 / RATE for t in edges)


def test_the_voice_is_heard_where_it_is_said_to_be(pieces):
    for made in pieces:
        sung, voice = sung_samples(made), made.stems["voice"].astype(float)
        assert made.sung or not voice.any()
        if made.sung:
            assert np.square(voice[sung]).sum() > 0.9 * np.square(voice).sum()
            loud = np.sqrt(np.mean(np.square(voice[sung])))
            for begin, end in made.sung:
                assert np.sqrt(np.mean(np.square(voice[round(begin * RATE):round(end * RATE)]))) > 0.01 * loud


def test_stretches_lie_apart_by_a_tenth_of_a_second(pieces):
    gaps = [later[0] - earlier[1] for made in pieces for earlier, later in zip(made.sung, made.sung[1:], strict=False)]
    assert len(gaps) > 10
    assert min(gaps) >= 0.1 - 1e-9


def test_about_half_of_the_time_somebody_sings():
    share = np.mean([sum(end - begin for begin, end in piece(0, number, 3).sung) / 3 for number in range(30)])
    assert 0.35 < share < 0.65


def test_neither_loudness_nor_a_band_tells_singing(pieces):
    """A detector must have to listen: no single frequency, nor all of them together, may give the voice away."""
    spectra = [np.abs(np.lib.stride_tricks.sliding_window_view(p.wave, 1024)[::2205] @ np.exp(
        -2j * np.pi * np.outer(np.arange(1024), np.arange(4, 400, 6)) / 1024)) for p in pieces]
    labels = np.concatenate([sung_samples(p)[512:][::2205][:len(s)] for p, s in zip(pieces, spectra, strict=True)])
    levels = np.log(np.concatenate(spectra) + 1e-9)
    assert 0.2 < auc(levels.mean(axis=1), labels) < 0.8
    assert all(0.15 < auc(band, labels) < 0.85 for band in levels.T)


def test_there_are_pieces_with_and_without_voice_and_accompaniment(pieces):
    kinds = {(bool(p.sung), np.abs(p.stems["percussion"]).max() > 0) for p in pieces}
    assert kinds == {(True, True), (True, False), (False, True), (False, False)}


def test_no_piece_is_free_of_noise(pieces):
    alone = [p for p in pieces if np.abs(p.stems["instruments"]).max() < 0.05 * np.abs(p.wave).max()]
    assert alone  # voices without instruments
    assert all(np.count_nonzero(p.stems["instruments"]) > 0.99 * len(p.wave) for p in pieces)


@pytest.mark.parametrize(("arguments", "message"), [
    ((-1, 0), "seed"), ((0.5, 0), "seed"), ((0, -1), "number"), ((0, 1.5), "number"), ((0, True), "number"), ((0, 0, 1.9), "seconds"),
    ((0, 0, float("nan")), "seconds"), ((0, 0, 1e9), "seconds"), ((0, 0, "long"), "seconds"), ((0, 0, None), "seconds"),
])
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=f"^{message} must"):
        piece(*arguments)


# --- voices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(VOWELS))
def test_a_vowels_harmonics_are_the_buzz_times_the_tract(name):
    hertz, formants = 110, np.asarray(VOWELS[name])[:, None]
    found = amplitudes(voices.vowel(hertz, VOWELS[name], 1.2))
    order = np.arange(1, 46)
    there = 1j * order * hertz  # the tract as a row of resonators, in the Laplace variable over 2 pi
    tract = np.prod(formants**2 / (there**2 + there * np.asarray(BANDWIDTHS)[:, None] + formants**2), axis=0)
    asked = np.abs(tract) / order
    heard = asked > 1e-3 * asked.max()
    np.testing.assert_allclose(found[order * hertz][heard], asked[heard], rtol=0.03)
    found[np.arange(0, len(found), hertz)] = 0
    assert found.max() < 1e-3 * asked.max()


@pytest.mark.parametrize("name", ["i", "E", "a", "u"])
def test_a_vowels_spectrum_peaks_at_its_formants(name):
    hertz = 35
    found = amplitudes(voices.vowel(hertz, VOWELS[name], 1.2))[::hertz][1:]
    envelope = np.log(found * np.arange(1, len(found) + 1))  # without the buzz's own fall
    peaks = 1 + np.flatnonzero((envelope[1:-1] > envelope[:-2]) & (envelope[1:-1] > envelope[2:]))
    for formant in VOWELS[name]:
        assert np.abs((peaks + 1) * hertz - formant).min() <= hertz


def test_a_longer_tract_has_lower_formants_and_an_effort_more_treble(rng):
    def centroid(scale, effort):
        calm = Singer(40, 80, scale, Manner(vibrato_depth=0), effort, 0.0, 0.0, 0.0)
        power = np.square(amplitudes(voices.sing([Note(0, 1.2, 48)], round(1.2 * RATE), calm, generator(1))))
        return (power * np.arange(len(power))).sum() / power.sum()

    assert centroid(0.9, 0.5) < centroid(1.1, 0.5) < centroid(1.3, 0.5)
    assert centroid(1.0, 0.0) < centroid(1.0, 1.0)


def test_a_trained_voice_rings_around_three_kilohertz():
    def share(ring):
        who = Singer(40, 80, 1.0, Manner(vibrato_depth=0), 0.5, 0.0, ring, 0.0)
        power = np.square(amplitudes(voices.sing([Note(0, 1.2, 48)], round(1.2 * RATE), who, generator(1))))
        return power[2500:3500].sum() / power.sum()

    assert share(1.0) > 2 * share(0.0)


@pytest.mark.parametrize("pitch", [45, 57, 69])
def test_a_singer_sings_the_note(pitch, rng):
    calm = Singer(40, 80, 1.0, Manner(vibrato_depth=0.3), 0.5, 0.01, 0.0, 0.5)
    power = np.square(amplitudes(voices.sing([Note(0, 1.5, pitch)], round(1.5 * RATE), calm, rng)))
    hertz = 440 * 2 ** ((pitch - 69) / 12)
    order = np.arange(len(power)) / hertz
    assert power[(np.abs(order - np.rint(order)) < 0.04 * np.maximum(order, 1)) & (order > 0.5)].sum() > 0.95 * power.sum()


def test_vibrato_has_its_rate_and_depth(rng):
    length = voices.curve_length(4 * RATE)
    curve = voices.pitch_curve([Note(0, 4, 60)], length, Manner(vibrato_rate=6, vibrato_depth=0.5, vibrato_delay=0.01), rng)[210:840]
    swing = np.abs(np.fft.rfft(curve - curve.mean()))
    assert np.argmax(swing) / 3 == pytest.approx(6, abs=0.7)  # the rate wanders by a few per cent
    assert 0.25 < np.abs(curve - 60).max() < 0.75
    still = voices.pitch_curve([Note(0, 4, 60)], length, Manner(vibrato_depth=0), rng)
    np.testing.assert_allclose(still, 60)


def test_a_pitch_glides_from_note_to_note(rng):
    notes = [Note(0, 1, 60), Note(1, 1, 64, slurred=True)]
    curve = voices.pitch_curve(notes, 421, Manner(glide=0.2, vibrato_depth=0), rng)
    np.testing.assert_allclose(curve[[0, 180, 240, 400]], [60, 60, 64, 64])
    assert (np.diff(curve) >= -1e-9).all()
    assert curve[209] < 62.2 < curve[213]


# --- what both are made of --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hertz", [83, 440, 1237, 3001])
def test_an_oscillator_has_its_harmonics_and_no_others(hertz):
    found = amplitudes(voices.oscillate(np.full(RATE, hertz, dtype=np.float32), 1 / np.arange(1.0, 201.0)))
    order = np.arange(1, int(8000 / hertz) + 1)  # whatever its pitch, nothing is missing below 8 kHz
    np.testing.assert_allclose(found[order * hertz], 1 / order, rtol=0.02)
    found[np.arange(1, int(10800 / hertz) + 1) * hertz] = 0
    assert found.max() < 2e-3


def test_a_filter_that_does_not_change_is_applied_exactly(rng):
    sound = rng.normal(size=5000).astype(np.float32)
    np.testing.assert_allclose(voices.shaped(sound, lambda rows: np.ones((1, len(HERTZ)), dtype=complex)), sound, atol=1e-5)
    late = np.exp(-2j * np.pi * HERTZ[None] * 100 / RATE)
    np.testing.assert_allclose(voices.shaped(sound, lambda rows: late)[100:], sound[:-100], atol=1e-5)


def test_ringing_partials_are_their_closed_form(rng):
    hertz, loud, lasting, phases = rng.uniform(50, 9000, 7), rng.random(7), rng.uniform(0.05, 1, 7), rng.uniform(0, 6, 7)
    time = np.arange(3000)[:, None] / RATE
    truth = (loud * np.exp(-time / lasting) * np.cos(2 * np.pi * hertz * time + phases)).sum(axis=1)
    np.testing.assert_allclose(instruments.ring(hertz, loud, lasting, 3000, phases), truth, atol=1e-4)


@pytest.mark.parametrize("name", list(SUSTAINED))
def test_a_sustained_instrument_plays_the_note(name, rng):
    kind = SUSTAINED[name].__class__(**{**SUSTAINED[name].__dict__, "manner": Manner(vibrato_depth=0)})
    power = np.square(amplitudes(instruments.play([Note(0, 1.3, 69)], round(1.3 * RATE), kind, rng)))
    order = np.arange(len(power)) / 440
    assert power[(np.abs(order - np.rint(order)) < 0.03 * np.maximum(order, 1)) & (order > 0.5)].sum() > 0.9 * power.sum()


@pytest.mark.parametrize("name", list(STRUCK))
def test_a_struck_instrument_plays_the_note_and_fades(name, rng):
    sound = instruments.strike([Note(0, 1.3, 57)], round(1.3 * RATE), instruments.struck(name, rng), rng)
    power = np.square(amplitudes(sound))
    partials = 220 * STRUCK[name].ratios
    assert min(np.abs(partials - np.argmax(power))) < 5
    assert np.abs(sound[RATE:]).max() < 0.7 * np.abs(sound[:RATE // 4]).max()


def test_each_drum_of_a_kit_is_heard_and_over_soon():
    for hit in instruments.drum_kit(generator(5)).values():
        assert np.isfinite(hit).all()
        assert 0.01 < np.abs(hit).max() < 10
        assert len(hit) < 2 * RATE
        assert np.square(hit[-len(hit) // 4:]).sum() < 0.1 * np.square(hit).sum()
