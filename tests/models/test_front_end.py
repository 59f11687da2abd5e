import copy
import io
import pickle

import numpy as np
import pytest
import scipy.signal
import torch

import whytrust as wt
from whytrust.core import generator
from whytrust.models.front_end import FrontEnd, LogMel, Magnitude

RATE, N_FFT, HOP, BANDS = 22050, 1024, 315, 80
TINY = {"rate": 100, "n_fft": 16, "hop": 5, "bands": 3, "low": 5.0, "high": 45.0, "floor": 1e-3}
T = np.arange(RATE) / RATE
NOISE = generator(0).normal(size=RATE)
CLIPS = {
    "noise": 0.3 * NOISE,
    "two tones": 0.5 * np.sin(2 * np.pi * 440 * T) + 0.2 * np.sin(2 * np.pi * 3000 * T),
    "a sweep": 0.7 * np.sin(2 * np.pi * (50 * T + 3900 * T**2)),
    "noise with a silent gap": np.where((T > 0.3) & (T < 0.6), 0, 0.3 * NOISE),
    "a click": np.where(np.arange(RATE) == 9000, 1.0, 0),
    "shorter than a window": 0.3 * NOISE[:100],
    "silence": np.zeros(5000),
}


@pytest.fixture(scope="module")
def librosa():
    import librosa
    return librosa


@pytest.fixture(scope="module")
def mel(librosa):
    return lambda dtype: librosa.filters.mel(sr=RATE, n_fft=N_FFT, n_mels=BANDS, fmin=27.5, fmax=8000, htk=True, norm=1, dtype=dtype)


def batch(*waves):
    return torch.from_numpy(np.stack(waves))


def tone(hz, rate=RATE, seconds=1.0):
    return np.sin(2 * np.pi * hz * np.arange(int(rate * seconds)) / rate)


# --- against other implementations ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:n_fft=1024 is too large")
@pytest.mark.parametrize("clip", CLIPS)
def test_the_front_end_is_librosas(librosa, mel, clip):
    wave = CLIPS[clip]
    spectrum = librosa.stft(wave, n_fft=N_FFT, hop_length=HOP, center=True, pad_mode="constant")
    expected = np.log(np.maximum(1e-7, mel(np.float64) @ np.abs(spectrum))).T
    np.testing.assert_allclose(FrontEnd().double()(batch(wave))[0], expected, rtol=0, atol=1e-6)

    single = wave.astype(np.float32)
    expected = (mel(np.float32) @ np.abs(librosa.stft(single, n_fft=N_FFT, hop_length=HOP, pad_mode="constant"))).T
    found = FrontEnd(floor=1e-30)(batch(single))[0].exp()
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6 * expected.max() + 1e-29)


def test_the_filters_and_their_frequencies_are_librosas_whose_mel_has_another_constant(librosa, mel):
    half = LogMel().double()
    np.testing.assert_allclose(half.filters.T, mel(np.float64), rtol=0, atol=1e-13)
    np.testing.assert_allclose(half.filters.sum(0), np.ones(BANDS), rtol=1e-14)
    np.testing.assert_allclose(half.coordinates(1, BANDS)[1], librosa.mel_frequencies(BANDS + 2, fmin=27.5, fmax=8000, htk=True)[1:-1])


def test_magnitudes_are_scipys():
    padded = np.pad(NOISE, N_FFT // 2)
    *_, expected = scipy.signal.stft(padded, RATE, "hann", N_FFT, N_FFT - HOP, boundary=None, padded=False)
    found = Magnitude()(batch(NOISE))[0].numpy()
    np.testing.assert_allclose(found, np.abs(expected).T * (N_FFT / 2), rtol=0, atol=1e-9)  # scipy divides by the window's sum


# --- where its outputs lie --------------------------------------------------------------------------------------------


def test_a_tone_is_loudest_in_the_band_and_the_bin_whose_frequency_is_nearest():
    front = FrontEnd().double()
    waves = batch(*(tone(hz) for hz in (220, 440, 1000, 2500, 4000, 7000)))
    for half, outputs in ((front, front(waves)), (front.log_mel, front(waves)), (front.magnitude, front.magnitude(waves))):
        seconds, hertz = half.coordinates(*outputs.shape[1:])
        assert seconds.shape + hertz.shape == outputs.shape[1:]
        loudest = outputs.mean(1).argmax(1).numpy()
        np.testing.assert_array_equal(loudest, [np.abs(hertz - hz).argmin() for hz in (220, 440, 1000, 2500, 4000, 7000)])


def test_a_click_is_loudest_in_the_frame_whose_middle_is_nearest():
    front = FrontEnd()
    for sample in (0, 3000, 12345, RATE - 1):
        wave = torch.zeros(1, RATE)
        wave[0, sample] = 1
        for outputs in (front(wave), front.magnitude(wave)):
            seconds, _ = front.coordinates(outputs.shape[1], BANDS)
            assert int(outputs[0].sum(1).argmax()) == np.abs(seconds - sample / RATE).argmin()


def test_there_are_70_frames_a_second():
    seconds, _ = FrontEnd().coordinates(141, BANDS)
    np.testing.assert_allclose(seconds, np.arange(141) / 70)


@pytest.mark.parametrize(("samples", "frames"), [(1, 1), (314, 1), (315, 2), (1023, 4), (22050, 71)])
def test_every_hop_of_a_wave_has_a_frame_however_short_it_is(samples, frames):
    assert FrontEnd()(torch.zeros(2, samples)).shape == (2, frames, BANDS)
    assert FrontEnd()(torch.zeros(0, samples)).shape == (0, frames, BANDS)


# --- gradients --------------------------------------------------------------------------------------------------------


def test_gradients_are_those_of_finite_differences():
    tiny, waves = FrontEnd(**TINY).double(), batch(NOISE[:37], NOISE[100:137]).requires_grad_()
    assert torch.autograd.gradcheck(tiny, waves)
    assert torch.autograd.gradcheck(tiny.magnitude, waves)
    front, weights = FrontEnd().double(), torch.from_numpy(generator(1).normal(size=(13, BANDS)))
    wave, direction = batch(CLIPS["a sweep"][:4000] + 0.01 * NOISE[:4000]), batch(generator(2).normal(size=4000))

    def loss(x):
        return (front(x)[0] * weights).sum()

    leaf = wave.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf), leaf)
    slope = (loss(wave + 1e-6 * direction) - loss(wave - 1e-6 * direction)) / 2e-6
    assert float((gradient * direction).sum()) == pytest.approx(float(slope), rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("clip", CLIPS)
def test_gradients_are_finite_and_silence_has_none(clip, dtype):
    front = FrontEnd().to(dtype)
    wave = batch(CLIPS[clip]).to(dtype).requires_grad_()
    front(wave).sum().backward()
    assert wave.grad.isfinite().all()
    if clip == "silence":
        assert not wave.grad.any()
        np.testing.assert_allclose(front(wave).detach(), np.full((1, 16, BANDS), np.log(1e-7)), rtol=1e-7)
    magnitudes = front.magnitude(wave).detach().requires_grad_()
    front.log_mel(magnitudes).sum().backward()
    assert magnitudes.grad.isfinite().all()


def test_the_gradient_of_a_magnitude_of_zero_is_zero():
    silence = torch.zeros(1, 2000, requires_grad=True)
    Magnitude()(silence).sum().backward()
    assert not silence.grad.any()


def test_a_net_behind_it_is_explained_down_to_the_samples():
    net = torch.nn.Sequential(FrontEnd(), torch.nn.Flatten(), torch.nn.LazyLinear(2)).double()
    net(batch(NOISE[:4000]))
    model, wave, direction = wt.model(net), NOISE[None, :4000], generator(3).normal(size=(1, 4000))
    _, gradient = model.vjp(wave, np.array([[1.0, -1.0]]))
    change = np.diff(model(wave - 1e-6 * direction) - model(wave + 1e-6 * direction))[0, 0] / 2e-6
    assert (gradient * direction).sum() == pytest.approx(change, rel=1e-5)


# --- types, places, checkpoints ---------------------------------------------------------------------------------------


def saved(module):
    kept = io.BytesIO()
    torch.save(module, kept)
    kept.seek(0)
    return torch.load(kept, weights_only=False)


def from_meta(module):
    with torch.device("meta"):
        made = FrontEnd()
    return made.to_empty(device="cpu")


@pytest.mark.parametrize("change", [
    lambda m: m, lambda m: m.half().float(), lambda m: m.half(), copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), saved,
    from_meta, lambda m: torch.nn.Sequential(m).double()[0].float(), lambda m: m.to("cpu", torch.bfloat16),
])
def test_a_front_end_made_double_has_all_of_its_digits_whatever_was_done_to_it_before(change):
    made = change(FrontEnd()).double()
    assert made.log_mel.filters.dtype == torch.float64
    np.testing.assert_allclose(made.log_mel.filters.sum(0), np.ones(BANDS), rtol=1e-14)
    np.testing.assert_array_equal(made.log_mel.filters, FrontEnd().log_mel.double().filters)
    np.testing.assert_array_equal(copy.deepcopy(made).log_mel.filters, made.log_mel.filters)
    assert not made.log_mel.filters.requires_grad


def test_a_checkpoint_does_not_hold_it_and_fits_a_net_of_another_type():
    net = torch.nn.Sequential(FrontEnd(), torch.nn.Linear(BANDS, 1))
    assert set(net.state_dict()) == {"1.weight", "1.bias"}
    assert [tuple(p.shape) for p in net.parameters()] == [(1, BANDS), (1,)]
    other = torch.nn.Sequential(FrontEnd(), torch.nn.Linear(BANDS, 1)).double()
    other.load_state_dict(net.state_dict())
    assert float((other(batch(NOISE)) - net(batch(NOISE).float())).detach().abs().max()) < 1e-4


@pytest.mark.parametrize(("dtype", "near"), [(torch.float16, 0.05), (torch.bfloat16, 0.1)])
def test_half_precision_is_roughly_right(dtype, near):
    expected = FrontEnd()(batch(NOISE).float())
    found = FrontEnd().to(dtype)(batch(NOISE).to(dtype))
    assert found.dtype == dtype
    assert float((found.float() - expected).abs().max()) < near


# --- sounds as they come ----------------------------------------------------------------------------------------------


def test_a_440_hz_tone_at_another_rate_stays_at_440_hz():
    for rate in (44100, 16000, 48000.0):
        wave = FrontEnd().prepare(tone(440, int(rate)), rate)
        assert (wave.dtype, wave.shape) == (np.float32, (RATE,))
        assert np.abs(np.fft.rfft(wave)).argmax() == 440  # a second long: a bin is 1 Hz
        np.testing.assert_allclose(wave[500:-500], tone(440)[500:-500], atol=1e-3)


def test_channels_are_averaged_and_whole_numbers_scaled():
    left, right = (0.5 * tone(hz).astype(np.float32) for hz in (440, 880))
    front = FrontEnd()
    np.testing.assert_array_equal(front.prepare(left, RATE), left)
    for stereo in (np.stack([left, right]), np.stack([left, right], axis=1), torch.from_numpy(np.stack([left, right]))):
        np.testing.assert_allclose(front.prepare(stereo, RATE), (left + right) / 2, atol=1e-7)
    np.testing.assert_array_equal(front.prepare(np.array([-32768, 0, 16384], np.int16), RATE), [-1, 0, 0.5])


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("settings", "message"), [
    ({"rate": 0}, "rate must be a whole number of at least 1, got 0"),
    ({"hop": 2.5}, "hop must be a whole number"),
    ({"n_fft": 1023}, "n_fft must be even"),
    ({"bands": "80"}, "bands must be a whole number"),
    ({"rate": 8000}, "high <= 4000, half the rate"),
    ({"low": -1}, "0 <= low"),
    ({"low": 500, "high": 500}, "low < high"),
    ({"floor": 0}, "floor must be a magnitude above 0"),
    ({"bands": 400}, r"each band must hold .* 513 .* got 400 bands.*larger n_fft"),
])
def test_settings_that_make_no_front_end_are_one_clear_error(settings, message):
    with pytest.raises(ValueError, match=message):
        FrontEnd(**settings)


@pytest.mark.parametrize(("waves", "error", "message"), [
    (torch.zeros(100), ValueError, r"must be \(n, samples\), got shape \(100,\); pass waves\[None\]"),
    (torch.zeros(1, 2, 100), ValueError, "average the channels"),
    (torch.zeros(1, 0), ValueError, "at least one sample"),
    (torch.zeros(1, 100, dtype=torch.int16), TypeError, "tensor of floats, got torch.int16"),
    (np.zeros((1, 100)), TypeError, "got ndarray; make one with torch.from_numpy"),
    (torch.zeros(1, 100).double(), TypeError, r"torch.float32, got torch.float64; call .to\(torch.float64\)"),
])
def test_waves_it_cannot_take_are_one_clear_error(waves, error, message):
    with pytest.raises(error, match=message):
        FrontEnd()(waves)


def test_its_halves_must_fit_each_other_and_their_coordinates():
    with pytest.raises(ValueError, match="513 bins, got 257"):
        LogMel()(Magnitude(n_fft=512)(torch.zeros(1, 1000)))
    with pytest.raises(ValueError, match="80 frequencies, got 513"):
        FrontEnd().coordinates(3, 513)
    with pytest.raises(ValueError, match=r"must be \(n, frames, bins\)"):
        LogMel()(torch.zeros(3, 513))


@pytest.mark.parametrize(("wave", "rate", "error", "message"), [
    (np.zeros(0), RATE, ValueError, r"not be empty, got shape \(0,\)"),
    (np.zeros((20, 1000)), RATE, ValueError, "one sound at a time"),
    (np.array([0.0, np.nan]), RATE, ValueError, "must be finite"),
    (np.zeros(9, np.uint8), RATE, TypeError, "got uint8"),
    ([0, 1, 2], RATE, TypeError, "got int64, whose loudest value is unknown"),
    (np.zeros(9), 0, ValueError, "samples a second, above 0, got 0"),
    (np.zeros(9), None, ValueError, "got None"),
    (np.zeros(1), 96000, ValueError, "at least one sample at 22050"),
])
def test_sounds_that_cannot_be_prepared_are_one_clear_error(wave, rate, error, message):
    with pytest.raises(error, match=message):
        FrontEnd().prepare(wave, rate)
