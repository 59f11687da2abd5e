"""What is stretched, shifted and equalised must come out where arithmetic says; scipy and the front end are the oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from whytrust.core import generator
from whytrust.models.augmentation import BINS, Warp, span
from whytrust.models.front_end import FrontEnd, mel_points

torch = pytest.importorskip("torch")
PEAKS = mel_points(80, 27.5, 8000.0)[1:-1]


def magnitudes(wave):
    return FrontEnd().magnitude(torch.from_numpy(wave.astype(np.float32))[None])[0].numpy()


def tone(hertz, seconds=3.0):
    return 0.1 * np.sin(2 * np.pi * hertz * np.arange(int(22050 * seconds)) / 22050)


def test_an_excerpt_of_115_frames_needs_164_and_a_longer_one_reaches_its_ends():
    assert span(115) == 164
    assert span(295) == 421
    slowest, fastest = Warp(stretch=1.3).moments(164, 115), Warp(stretch=0.7).moments(164, 115)
    assert fastest[0] >= 0
    assert fastest[-1] <= 163
    assert slowest[-1] - slowest[0] == pytest.approx(114 / 1.3)


@given(st.integers(115, 2000))
def test_no_stretch_reads_beyond_what_is_spanned(frames):
    moments = Warp(stretch=0.7).moments(span(frames), frames)
    assert moments[0] >= -1e-9
    assert moments[-1] <= span(frames) - 1 + 1e-9
    assert Warp(stretch=0.7).moments(span(frames) - 1, frames)[0] < 0


def test_nothing_changed_is_what_the_front_end_gives(rng):
    wave = rng.normal(size=40_000).astype(np.float32) * 0.1
    wanted = FrontEnd()(torch.from_numpy(wave)[None])[0].numpy()
    np.testing.assert_allclose(Warp()(magnitudes(wave), len(wanted)), wanted, atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.7, 1.3), st.floats(0.7, 1.3), st.integers(0, 2**20))
def test_stretch_and_shift_are_one_affine_transform_with_linear_interpolation(stretch, shift, seed):
    given_frames, frames = 164, 115
    spectrum = generator(seed).uniform(size=(given_frames, BINS)).astype(np.float32)
    offset = [(given_frames - 1) / 2 - (frames - 1) / 2 / stretch, 0]
    moved = ndimage.affine_transform(spectrum.astype(float), [1 / stretch, 1 / shift], offset, (frames, BINS), order=1, mode="nearest")
    np.testing.assert_allclose(Warp(stretch, shift)(spectrum, frames), Warp()(moved.astype(np.float32), frames), atol=2e-4)


@pytest.mark.parametrize("shift", [0.75, 0.9, 1.2, 1.3])
def test_a_pure_tone_moves_to_its_frequency_times_the_shift(shift):
    heard = Warp(shift=shift)(magnitudes(tone(2000))[:164], 115)
    assert np.argmax(heard[57]) == np.argmin(np.abs(PEAKS - 2000 * shift))


@pytest.mark.parametrize("stretch", [0.7, 1.25])
def test_clicks_lie_so_many_times_farther_apart(stretch):
    wave = np.zeros(22050 * 3)
    wave[315 * 20::315 * 20] = 1  # a click every 20 frames
    loud = Warp(stretch=stretch)(magnitudes(wave)[:164], 115).mean(axis=1)
    found = [t for t in range(1, 114) if loud[t] >= loud[t - 1] and loud[t] > loud[t + 1] and loud[t] > loud.mean()]
    np.testing.assert_allclose(np.diff(found).mean(), 20 * stretch, atol=0.5)


def test_the_equaliser_gives_its_gain_at_its_middle_and_exp_half_of_it_one_width_away():
    hertz = np.arange(BINS) * 22050 / 1024
    gains = 20 * np.log10(Warp(gain=8.0, centre=hertz[100], width=6.0).gains)
    assert np.argmax(gains) == 100
    assert gains[100] == pytest.approx(8.0)
    assert np.interp(hertz[100] * 2 ** (6 / 12), hertz, gains) == pytest.approx(8 * np.exp(-0.5), abs=0.01)
    assert gains[0] == pytest.approx(0)


def test_a_tone_under_the_equalisers_middle_gets_louder_by_its_gain_and_one_far_away_does_not():
    louder = Warp(gain=-10.0, centre=1000.0, width=5.0)
    for hertz, decibels in ((1000, -10.0), (6000, 0.0)):
        spectrum, band = magnitudes(tone(hertz)), int(np.argmin(np.abs(PEAKS - hertz)))
        change = louder(spectrum, 115)[57, band] - Warp()(spectrum, 115)[57, band]
        assert 20 * np.log10(np.exp(change)) == pytest.approx(decibels, abs=0.5)


def test_draws_fill_the_ranges_and_centres_are_even_in_the_logarithm():
    drawn = [Warp.drawn(generator(0, i)) for i in range(2000)]
    for name, low, high in (("stretch", 0.7, 1.3), ("shift", 0.7, 1.3), ("gain", -10, 10), ("width", 5, 7), ("centre", 150, 8000)):
        values = np.array([getattr(one, name) for one in drawn])
        middle = np.sqrt(low * high) if name == "centre" else (low + high) / 2
        assert values.min() >= low
        assert values.max() <= high
        assert np.mean(values < middle) == pytest.approx(0.5, abs=0.05)


def test_magnitudes_of_another_transform_are_refused():
    with pytest.raises(ValueError, match=r"magnitudes must be \(frames, 513\), got shape \(164, 80\)"):
        Warp()(np.zeros((164, 80), dtype=np.float32), 115)
