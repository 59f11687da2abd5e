"""Gradient explainers on sounds: closed forms where the model is linear, and what hiding parts says."""

import numpy as np
import pytest
import torch
from torch import nn

import whytrust as wt
from whytrust.domains.audio import AudioParts
from whytrust.domains.stems import StemParts
from whytrust.models.front_end import FrontEnd

RNG = np.random.default_rng(3)
RATE = 8000
WAVE = np.random.default_rng(0).normal(size=4000) * 0.1
FRONT = {"rate": RATE, "n_fft": 256, "hop": 80, "bands": 20, "low": 50.0, "high": 3900.0}


class Hearing(nn.Module):
    """The front end, and a linear reading of its log-mel that listens to one stretch and band alone."""

    def __init__(self, frames, bands):
        super().__init__()
        self.front = FrontEnd(**FRONT)
        self.frames, self.bands = frames, bands

    def forward(self, waves):
        heard = self.front(waves)[:, self.frames, self.bands].mean((1, 2))
        return torch.stack([heard, -heard], 1)


def test_a_waveform_cut_in_time_and_frequency_is_explained_behind_the_front_end():
    model = wt.model(Hearing(slice(13, 22), slice(15, 20)).double())
    found = wt.explain(model, WAVE, "saliency", target=0, parts="tf:4x3", rate=RATE)
    heard = np.flatnonzero(found.scores)
    assert [found.names[i] for i in heard] == [n for n in found.names if n.startswith("0.12–0.25")][-1:]


def test_input_times_gradient_behind_the_front_end_adds_up_to_a_linear_score():
    model = wt.model(Hearing(slice(0, 51), slice(0, 20)).double())
    found = wt.explain(model, WAVE, "input_x_gradient", target=0, parts="tf:4x3", rate=RATE)
    assert found.scores.sum() == pytest.approx(model(WAVE[None])[0, 0], rel=1e-9)


def test_a_waveform_cut_in_time_is_explained_at_its_samples():
    net = nn.Sequential(nn.Linear(4000, 2)).double()
    weights = net[0].weight.detach().numpy()
    found = wt.explain(wt.model(net), WAVE, "saliency", target=1, parts="time:8", rate=RATE, pooling="mean")
    np.testing.assert_allclose(found.scores, weights[1].reshape(8, -1).mean(axis=1), rtol=1e-10)


def test_a_spectrogram_is_explained_at_its_cells():
    mel = RNG.normal(size=(20, 12))
    weights = RNG.normal(size=(2, 240))
    net = nn.Sequential(nn.Flatten(), nn.Linear(240, 2)).double()
    with torch.no_grad():
        net[1].weight.copy_(torch.from_numpy(weights))
    found = wt.explain(wt.model(net), mel, "saliency", target=0, parts="tf:4x3", pooling="mean")
    np.testing.assert_allclose(found.scores, weights[0].reshape(4, 5, 3, 4).mean(axis=(1, 3)).ravel(), rtol=1e-10)
    assert found.map.shape == (20, 12)


class Convolved(nn.Module):
    """A spectrogram with its axes turned, as many nets want them: frequency first."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.out = nn.Conv2d(1, 5, 3, stride=2), nn.Linear(5, 2)

    def forward(self, x):
        return self.out(torch.relu(self.conv(x)).mean((2, 3)))


def test_grad_cam_turns_its_map_where_the_net_sees_the_axes_the_other_way_round():
    mel = RNG.normal(size=(24, 12)).astype(np.float32)
    net = Convolved()
    turned = wt.model(net, preprocess=lambda x: x.swapaxes(1, 2)[:, None])
    upright = wt.model(net, preprocess=lambda x: x[:, None])
    a = wt.explain(turned, mel, "grad_cam", target=0, parts="tf:4x3")
    b = wt.explain(upright, np.ascontiguousarray(mel.T), "grad_cam", target=0, parts="tf:3x4")
    np.testing.assert_allclose(a.map, b.map.T, rtol=1e-5)


def test_grad_cam_works_on_a_waveform_behind_its_front_end():
    net = nn.Sequential(FrontEnd(**FRONT), nn.Unflatten(1, (1, 51)), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 49 * 18, 2))
    found = wt.explain(wt.model(net), WAVE.astype(np.float32), "grad_cam", parts="tf:4x3", rate=RATE)
    assert (found.scores >= 0).all()
    assert found.settings["layer"] == "3"


def test_grad_cam_behind_a_front_end_does_not_depend_on_how_the_net_turns_its_spectrogram():
    class Turning(nn.Module):
        def __init__(self, turned):
            super().__init__()
            torch.manual_seed(0)
            self.front, self.conv, self.out, self.turned = FrontEnd(**FRONT), nn.Conv2d(1, 4, 3), nn.Linear(4, 2), turned
            if turned:
                self.conv.weight.data = self.conv.weight.data.transpose(2, 3).contiguous()

        def forward(self, waves):
            mel = self.front(waves)[:, None]
            return self.out(torch.relu(self.conv(mel.transpose(2, 3) if self.turned else mel)).mean((2, 3)))

    given = {"target": 0, "parts": "tf:4x3", "rate": RATE}
    upright, turned = (wt.explain(wt.model(Turning(t)), WAVE.astype(np.float32), "grad_cam", **given) for t in (False, True))
    np.testing.assert_allclose(turned.scores, upright.scores, rtol=1e-4, atol=1e-6)


# --- nets without a front end ------------------------------------------------------------------------------------------

PLAIN = nn.Sequential(nn.Unflatten(1, (1, 4000)), nn.Conv1d(1, 4, 9, stride=4), nn.Tanh(), nn.Flatten(), nn.Linear(4 * 998, 2)).double()


@pytest.mark.parametrize("parts", ["tf:4x3", "freq:5", "slic:8", np.arange(12).reshape(4, 3) // 2])
@pytest.mark.parametrize("method", ["input_x_gradient", "integrated_gradients"])
def test_without_a_front_end_contributions_to_a_linear_score_are_what_hiding_takes_away(parts, method):
    linear = wt.model(nn.Linear(4000, 2).double())
    given = {"target": 1, "parts": parts, "rate": RATE}
    hidden = wt.explain(linear, WAVE, "occlusion", **given)
    found = wt.explain(linear, WAVE, method, **given)
    np.testing.assert_allclose(found.scores, hidden.scores, atol=1e-12)
    assert any("no front end" in note for note in found.notes)


def test_without_a_front_end_integrated_gradients_add_up_to_what_silence_takes_away():
    found = wt.explain(wt.model(PLAIN), WAVE, "integrated_gradients", target=0, parts="tf:4x3", rate=RATE)
    scores = wt.model(PLAIN)(np.stack([WAVE, np.zeros(4000)]))[:, 0]
    assert found.scores.sum() == pytest.approx(scores[0] - scores[1], rel=1e-9)
    assert found.settings["baseline"] == "black"


def test_without_a_front_end_a_tone_is_heard_where_it_sounds():
    time = np.arange(4000) / RATE
    tone = np.where((time > 0.27) & (time < 0.35), np.sin(2 * np.pi * 3000 * time), 0)

    class Listens(nn.Module):
        def forward(self, waves):
            heard = (waves * torch.from_numpy(tone)).sum(1) ** 2
            return torch.stack([heard, -heard], 1)

    sound = 0.5 * tone + 0.1 * np.sin(2 * np.pi * 200 * time)
    for method in ("saliency", "input_x_gradient", "integrated_gradients", "saliency/smoothgrad"):
        found = wt.explain(wt.model(Listens()), sound, method, target=0, parts="tf:4x3", rate=RATE)
        assert found.names[found.order[0]].startswith("0.25–0.38 s"), method
        assert found.names[found.order[0]].endswith("4000 Hz"), method


class Samples(nn.Module):
    """Two samples of the sound, so that its bits show."""

    def forward(self, waves):
        return waves.double()[:, 1000:1002]


def test_the_scores_of_the_sound_itself_are_the_same_bits_whoever_asks_first():
    model, given = wt.model(Samples()), {"parts": "tf:4x3", "rate": RATE, "samples": 40}
    alone = wt.explain(model, WAVE, "lime", **given)
    _, after = wt.explain(model, WAVE, ["saliency", "lime"], **given)
    assert alone.prediction == after.prediction
    assert np.array_equal(alone.scores, after.scores)


@pytest.mark.parametrize("method", ["grad_cam", "excitation_backprop"])
def test_a_map_of_places_needs_a_front_end_that_says_where_its_bands_are(method):
    with pytest.raises(ValueError, match=r"only an audio front end .*parts='time:16'"):
        wt.explain(wt.model(PLAIN), WAVE, method, parts="tf:4x3", rate=RATE)


class FourAxes(nn.Module):
    """A front end whose outputs have a channel."""

    def __init__(self):
        super().__init__()
        self.front = FrontEnd(**FRONT).double()

    def coordinates(self, frames, bands):
        return self.front.coordinates(frames, bands)

    def forward(self, waves):
        return self.front(waves)[:, None]


class Twice(nn.Module):
    """A front end that is used twice."""

    def __init__(self):
        super().__init__()
        self.front = FrontEnd(**FRONT).double()

    def forward(self, waves):
        return torch.stack([self.front(waves).mean((1, 2)), self.front(-2 * waves).sum((1, 2))], 1)


class Coordinates(nn.Module):
    """A net that has something else of that name."""

    def __init__(self):
        super().__init__()
        self.register_buffer("coordinates", torch.linspace(0, 1, 4000).double())
        self.inner = nn.Linear(4000, 2).double()

    def forward(self, waves):
        return self.inner(waves * self.coordinates)


@pytest.mark.parametrize("net", [nn.Sequential(FourAxes(), nn.Flatten(), nn.Linear(51 * 20, 2).double()), Twice(),
                                 nn.Sequential(Coordinates())])
def test_where_a_front_end_cannot_be_cut_at_the_sounds_own_transform_will_do(net):
    model, given = wt.model(net), {"target": 1, "parts": "tf:4x3", "rate": RATE}
    found = wt.explain(model, WAVE, "input_x_gradient", **given)
    assert any("no front end in it" in note for note in found.notes)
    step = 1e-6  # all parts together: the slope of the score as the whole sound gets louder
    slope = np.diff(model(np.stack([WAVE * (1 - step), WAVE * (1 + step)]))[:, 1])[0] / (2 * step)
    assert found.scores.sum() == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("method", ["saliency", "integrated_gradients", "guided_backprop", "grad_cam"])
def test_a_front_end_as_preprocessing_is_cut_behind_as_one_in_the_net_is(method):
    torch.manual_seed(0)
    front, net = FrontEnd(**FRONT), nn.Sequential(nn.Unflatten(1, (1, 51)), nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 49 * 18, 2))
    given = {"target": 1, "parts": "tf:4x3", "rate": RATE}
    before = wt.explain(wt.model(net, preprocess=front), WAVE.astype(np.float32), method, **given)
    inside = wt.explain(wt.model(nn.Sequential(front, net)), WAVE.astype(np.float32), method, **given)
    np.testing.assert_allclose(before.scores, inside.scores, rtol=1e-5, atol=1e-7)
    assert before.scores.any()


def test_no_stretch_of_a_sound_is_wronged_by_lying_at_its_end():
    means = np.mean([wt.explain(nn.Linear(8000, 1), np.random.default_rng(i).normal(size=8000), "saliency", parts="tf:5x4",
                                rate=RATE).scores.reshape(5, 4).mean(axis=1) for i in range(10)], axis=0)
    assert means.min() > 0.9 * means.max()


def test_noise_on_a_sound_is_as_loud_as_noise_on_its_samples_would_be():
    for sound in (np.sin(np.arange(4000)), RNG.normal(size=4000)):
        for parts in ("tf:4x3", "tf:20x3"):
            dials = AudioParts.cut(sound, parts, rate=RATE).dials
            noisy = dials.inputs((dials.own + dials.spread * RNG.normal(size=dials.own.shape))[None])[0]
            assert (noisy - sound).std() == pytest.approx(np.ptp(sound), rel=0.1)


def test_long_mixes_go_through_a_net_one_by_one():
    seen = []

    class Counting(nn.Module):
        def forward(self, waves):
            seen.append(len(waves))
            return waves.mean(1, keepdim=True)

    parts = StemParts.of({"a": np.ones(400_000), "b": np.ones(400_000)})
    wt.explain(wt.model(Counting()), parts.sound, "integrated_gradients", parts=parts, steps=6)
    assert max(seen) == 1


def test_errors_speak_of_the_sound_and_of_what_it_is_made_of():
    with pytest.raises(ValueError, match=r"on a batch of 1 inputs \(array \(1, 4000\)"):
        wt.explain(nn.Linear(1000, 2), WAVE, "saliency", parts="tf:4x3", rate=RATE)
    with pytest.raises(ValueError, match=r"shaped like the magnitudes of its transform, \(frames, frequencies\)"):
        wt.explain(nn.Linear(4000, 2), WAVE, "integrated_gradients", parts="tf:4x3", rate=RATE, baseline=np.zeros(4000))
    parts = StemParts.of({"a": WAVE, "b": WAVE[::-1].copy()})
    with pytest.raises(ValueError, match="baseline must be one of black, a number or an array of shape"):
        wt.explain(nn.Linear(4000, 2), parts.sound, "integrated_gradients", parts=parts, baseline="blurred")


def test_gradients_of_stems_are_those_of_their_gains():
    stems = {"low": RNG.normal(size=4000), "high": RNG.normal(size=4000), "hum": 0.01 * RNG.normal(size=4000)}
    parts, mix = StemParts.of(stems), sum(stems.values())
    linear = wt.model(nn.Linear(4000, 2).double())
    weights = linear.function.module.weight.detach().numpy()[1]
    truth = [float(weights @ stem) for stem in stems.values()]
    for method in ("saliency", "input_x_gradient", "integrated_gradients"):
        found = wt.explain(linear, mix, method, target=1, parts=parts, pooling="sum")
        np.testing.assert_allclose(found.scores, truth, rtol=1e-9)
    assert wt.explain(linear, mix, "saliency/vargrad", target=1, parts=parts).scores.max() < 1e-20  # no slope changes
    found = wt.explain(wt.model(PLAIN), mix, "integrated_gradients", target=0, parts=parts)
    scores = wt.model(PLAIN)(np.stack([mix, np.zeros(4000)]))[:, 0]
    assert found.scores.sum() == pytest.approx(scores[0] - scores[1], rel=1e-6)


def test_grad_cam_of_a_mix_is_shared_out_in_time():
    parts = StemParts.of({"first": np.where(np.arange(4000) < 2000, WAVE, 0), "last": np.where(np.arange(4000) < 2000, 0, WAVE)})
    found = wt.explain(wt.model(PLAIN), parts.sound, "grad_cam", parts=parts)
    assert found.scores.shape == (2,)
    assert (found.scores >= 0).all()


# --- attacks behind a front end ----------------------------------------------------------------------------------------


class Detector(nn.Module):
    """The front end and a small net on its log-mel, which is a little for the second class."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.front = FrontEnd(**FRONT)
        self.out = nn.Sequential(nn.Flatten(), nn.Linear(51 * 20, 1))
        with torch.no_grad():
            self.out[1].bias += 0.1 - self(torch.from_numpy(WAVE[None].astype(np.float32)))[0]

    def forward(self, waves):
        return self.out(self.front(waves) / 10)


@pytest.mark.parametrize("variant", ["paper", "authors"])
@pytest.mark.parametrize("place", ["waveform", "spectrogram"])
def test_the_audio_attack_works_on_the_waveform_and_on_the_spectrogram(place, variant):
    model = wt.model(Detector(), output="logit", threshold=0.5)
    wave = WAVE.astype(np.float32)
    before = model.labels(model(wave[None]))[0]
    if place == "waveform":
        found = wt.attack(model, wave[None], "carlini_wagner", epsilon=0.02, step=0.002, alpha=1000, variant=variant, iterations=200)
        assert np.abs(found[0] - wave).max() <= 0.02
    else:
        cut = model.cut(wave[None], "front.magnitude")
        assert cut.values.shape == (51, 129)
        found = wt.attack(cut.tail, cut.values[None], "carlini_wagner", epsilon=0.5, step=0.02, alpha=1000, variant=variant, iterations=200)
    assert found.success.all()
    after = (model if place == "waveform" else cut.tail)
    assert after.labels(after(np.asarray(found[0])[None]))[0] != before
