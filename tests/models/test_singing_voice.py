import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from whytrust.models.front_end import FrontEnd  # noqa: E402
from whytrust.models.hearing import Hearing  # noqa: E402
from whytrust.models.singing_voice import SingingVoiceNet, load, save  # noqa: E402
from whytrust.models.songs import SILENT  # noqa: E402


@pytest.fixture(scope="module")
def net():
    """A net with statistics of its own in every normalisation, so that none of them is the identity."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        made = SingingVoiceNet().train()
        for _ in range(3):
            made.strided(torch.randn(4, 200, 80) * 2 - 5)
            for norm in made.norms:
                norm.weight.uniform_(0.5, 1.5)
                norm.bias.uniform_(-0.5, 0.5)
    return made.eval()


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(0)
    time = np.arange(22050 * 4) / 22050
    return (0.2 * np.sin(2 * np.pi * 300 * time * (1 + 0.1 * time)) + 0.05 * rng.standard_normal(len(time))).astype(np.float32)


def test_the_net_has_the_published_number_of_parameters():
    # 3×3 kernels, dense layers of 64·11·7 → 256 → 64 → 1, a scale and a shift for each normalised channel, one bias.
    kernels = 9 * (64 + 64 * 32 + 32 * 128 + 128 * 64)
    dense = 64 * 11 * 7 * 256 + 256 * 64 + 64 + 1
    norms = 2 * (64 + 32 + 128 + 64 + 256 + 64)
    assert sum(p.numel() for p in SingingVoiceNet().parameters()) == kernels + dense + norms == 1_408_833


def test_a_whole_song_gives_what_its_excerpts_give(net):
    song = torch.randn(1, 187, 80, generator=torch.Generator().manual_seed(1)) * 2 - 5
    with torch.no_grad():
        each = net(torch.cat([song[:, i:i + 115] for i in range(73)]))[:, 0]
        torch.testing.assert_close(net.song(song)[0], each, atol=1e-5, rtol=0)
        torch.testing.assert_close(net.strided(song)[0], each[::9], atol=1e-5, rtol=0)
    assert each.std() > 1e-3


def test_the_first_layer_does_not_hear_a_gain(net):
    assert net.kernels.sum(dim=(1, 2, 3)).abs().max() < 1e-6
    with torch.no_grad():
        inputs = torch.randn(1, 1, 20, 20)
        torch.testing.assert_close(net.layers[0](inputs), net.layers[0](inputs + 3), atol=1e-5, rtol=0)


def test_kernels_sum_to_zero_after_training_steps():
    torch.manual_seed(0)
    made = SingingVoiceNet().train()
    optimiser = torch.optim.Adam(made.parameters(), lr=1e-2)
    before = made.kernels.detach().clone()
    for _ in range(2):
        made(torch.randn(4, 115, 80)).square().sum().backward()
        optimiser.step()
    assert (made.kernels - before).abs().max() > 1e-3
    assert made.kernels.sum(dim=(1, 2, 3)).abs().max() < 1e-6


@pytest.mark.parametrize("shape", [(115, 80), (2, 114, 80), (2, 115, 79), (2, 116, 80)])
def test_excerpts_of_another_shape_are_refused(net, shape):
    with pytest.raises(ValueError, match=r"excerpts must be \(n, 115, 80\)"):
        net(torch.zeros(shape))
    with pytest.raises(ValueError, match="at least 115 frames"):
        net.song(torch.zeros(1, 114, 80))


def test_weights_survive_the_disk(net, tmp_path):
    save(net, tmp_path / "a" / "net.safetensors", {"threshold": 0.51})
    again, facts = load(tmp_path / "a" / "net.safetensors")
    song = torch.randn(1, 130, 80)
    with torch.no_grad():
        assert torch.equal(net.song(song), again.song(song))
    assert facts == {"threshold": 0.51}
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["net.safetensors"]


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        load(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"nonsense" * 20)
    with pytest.raises(ValueError, match="must be a safetensors file"):
        load(tmp_path / "bad.safetensors")
    from safetensors.torch import save_file
    save_file({"a": torch.zeros(1)}, tmp_path / "other.safetensors", metadata={"format": "pt", "facts": json.dumps({})})
    with pytest.raises(ValueError, match="must hold a singing-voice detector"):
        load(tmp_path / "other.safetensors")


# --- whole songs ------------------------------------------------------------------------------------------------------


def plainly(net, wave):
    """The whole song at once, by autograd."""
    leaf = torch.from_numpy(wave).requires_grad_()
    padded = torch.nn.functional.pad(FrontEnd()(leaf[None])[0], (0, 0, 57, 57), value=SILENT)
    return net.song(padded[None])[0], leaf


@pytest.mark.parametrize("chunk", [37, 100, 5000])
def test_chunks_give_the_answers_and_gradients_of_the_whole(net, wave, chunk):
    whole, leaf = plainly(net, wave)
    weights = np.random.default_rng(0).standard_normal(len(whole))
    gradient = torch.autograd.grad((whole * torch.from_numpy(weights).float()).sum(), leaf)[0].numpy()
    logits, found = Hearing(net, chunk=chunk).vjp(wave, lambda logits, frames: weights[frames])
    np.testing.assert_allclose(logits, whole.detach().numpy(), atol=1e-5)
    inside = slice(20 * 315, -20 * 315)  # beside the silence around a song values of a pooling tie, and processors choose differently
    np.testing.assert_allclose(found[inside], gradient[inside], atol=1e-3 * np.abs(gradient).max())
    assert np.linalg.norm(found - gradient) < 0.02 * np.linalg.norm(gradient)
    np.testing.assert_allclose(Hearing(net, chunk=chunk).logits(wave), logits, atol=1e-6)


def test_magnitudes_are_heard_as_their_waveform_is(net, wave):
    by_wave, by_magnitude = Hearing(net, chunk=64), Hearing(net, "magnitude", chunk=64)
    magnitude = by_wave.magnitude(wave)
    assert magnitude.shape == (1 + len(wave) // 315, 513)
    np.testing.assert_allclose(by_magnitude.logits(magnitude), by_wave.logits(wave), atol=1e-5)
    np.testing.assert_allclose(by_magnitude.log_mel(magnitude), by_wave.log_mel(wave), atol=1e-5)
    _, gradient = by_magnitude.vjp(magnitude, lambda logits, frames: np.ones(len(logits)))
    step = gradient / np.linalg.norm(gradient)
    moved = by_magnitude.logits(magnitude + 1e-2 * step).sum() - by_magnitude.logits(magnitude - 1e-2 * step).sum()
    np.testing.assert_allclose(moved / 2e-2, np.linalg.norm(gradient), rtol=0.05)


def test_weights_may_depend_on_the_answers(net, wave):
    seen = []
    logits, _ = Hearing(net, chunk=100).vjp(wave, lambda logits, frames: seen.append((frames, logits.copy())) or logits)
    np.testing.assert_array_equal(np.concatenate([some for _, some in seen]), logits)
    assert [frames.start for frames, _ in seen] == [0, 100, 200]


def test_a_song_can_be_made_again_from_its_magnitudes(net, wave):
    hearing = Hearing(net)
    again = hearing.resynthesised(wave, hearing.magnitude(wave))
    np.testing.assert_allclose(again, wave, atol=1e-4)
    half = hearing.resynthesised(wave, hearing.magnitude(wave) / 2)
    np.testing.assert_allclose(half, wave / 2, atol=1e-4)
    assert np.isfinite(hearing.resynthesised(wave, -hearing.magnitude(wave))).all()


@pytest.mark.parametrize(("song", "words"), [
    (np.zeros(22050 * 3, dtype=np.float32), "silent"),
    (np.full(22050 * 3, np.nan, dtype=np.float32), "finite"),
    (np.ones(22050, dtype=np.float32), "at least an excerpt long"),
    (np.ones((2, 22050 * 3), dtype=np.float32), r"\(samples,\)"),
    (np.ones(22050 * 3, dtype=np.int16), "floats"),
])
def test_songs_that_cannot_be_heard_are_refused(net, song, words):
    with pytest.raises(ValueError, match=words):
        Hearing(net).probabilities(song)


def test_a_net_in_training_is_asked_in_eval_mode_and_left_as_it_was(net, wave):
    before = Hearing(net).logits(wave)
    net.train()
    try:
        np.testing.assert_array_equal(Hearing(net).logits(wave), before)
        assert all(module.training for module in net.modules())
    finally:
        net.eval()


def test_settings_that_mean_nothing_are_refused(net):
    with pytest.raises(ValueError, match="waveform, magnitude"):
        Hearing(net, "spectrum")
    with pytest.raises(ValueError, match="chunk"):
        Hearing(net, chunk=0)
