"""Sounds with their axes in another order: what the net gets, and what its parts are called."""

import numpy as np
import pytest

import whytrust as wt
from whytrust.domains.audio import as_heard

torch = pytest.importorskip("torch")
nn = torch.nn

RNG = np.random.default_rng(0)
BANDS, FRAMES = 80, 120
LOG_MEL = RNG.normal(size=(BANDS, FRAMES)).astype(np.float32)  # (mels, frames), as librosa and torchaudio give it
LOG_MEL[60:80, 30:60] += 3.0
HZ = np.linspace(0, 8000, BANDS + 1)
HIGH_EARLY = "frames 30–59, bands 60–79"


def high_and_early(batch):
    """(n, mels, frames) -> P: how loud the top quarter of the bands is in the second quarter of the time."""
    array = np.asarray(batch, dtype=np.float64)
    assert array.shape[1:] == (BANDS, FRAMES)
    loud = array[:, 60:80, 30:60].mean(axis=(1, 2))
    p = 1 / (1 + np.exp(1 - loud))
    return np.stack([1 - p, p], axis=1)


class OverTime(nn.Module):
    """Conv1d over 80 bands as channels, as nets of log-mels often begin: it hears band 70 alone."""

    def __init__(self, turned=False):
        super().__init__()
        self.conv = nn.Conv1d(BANDS, 1, 1, bias=False)
        self.conv.weight.data.zero_()
        self.conv.weight.data[0, 70, 0] = 1.0
        self.turned = turned

    def forward(self, x):
        x = self.conv(x.transpose(1, 2) if self.turned else x)
        loud = x[:, 0, 30:60].mean(dim=1)
        return torch.stack([-loud, loud], dim=1)


class OfWaves(nn.Module):
    """Conv1d of one channel on (n, 1, samples): the energy of the third quarter."""

    def __init__(self, own_axis=False):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, 1, bias=False)
        self.conv.weight.data.fill_(1.0)
        self.own_axis = own_axis

    def forward(self, x):
        x = self.conv(x[:, None] if self.own_axis else x)
        part = (x[..., 1000:1500] ** 2).mean(dim=(1, 2)) - 0.05
        return torch.stack([-part, part], dim=1)


def wave():
    found = (0.1 * RNG.normal(size=2000)).astype(np.float32)
    found[1000:1500] += 0.5 * np.sin(np.arange(500) / 5)
    return found.astype(np.float32)


def best(e):
    return e.names[int(np.argmax(e.scores))]


def test_a_spectrogram_with_bands_first_is_labelled_as_what_it_is():
    model = wt.model(high_and_early, output="probability", layout="NFT")
    e = wt.explain(model, LOG_MEL, parts="tf:4x4", samples=300)
    assert best(e) == HIGH_EARLY
    assert e.notes == () or not any("rows" in note for note in e.notes)
    assert e.prediction == pytest.approx(high_and_early(LOG_MEL[None])[0, 1])


def test_without_a_word_of_the_axes_a_note_says_what_was_guessed():
    e = wt.explain(wt.model(high_and_early, output="probability"), LOG_MEL, parts="tf:4x4", samples=300)
    assert any("80 rows were taken for moments" in note and "layout='NFT'" in note for note in e.notes)
    tall = wt.model(lambda batch: high_and_early(np.swapaxes(batch, 1, 2)), output="probability")
    assert not any("rows" in note for note in wt.explain(tall, LOG_MEL.T, parts="tf:4x4", samples=50).notes)


def test_edges_of_the_bands_tell_which_axis_is_which():
    e = wt.explain(wt.model(high_and_early, output="probability"), LOG_MEL, parts="tf:4x4", band_edges_hz=HZ, hop_seconds=0.01,
                   samples=300)
    assert best(e) == "0.30–0.60 s, 6000–8000 Hz"


@pytest.mark.parametrize("turned", [False, True])
def test_the_first_layer_tells_which_axis_is_which(turned):
    """It takes 80 bands: where 80 are rows they are the bands, where they are columns likewise (the net turns them itself)."""
    sound = LOG_MEL.T if turned else LOG_MEL
    for method in ("lime", "saliency"):
        e = wt.explain(wt.model(OverTime(turned), output="logit"), sound, method, target=1, parts="tf:4x4")
        assert best(e) == HIGH_EARLY
    np.testing.assert_allclose(e.prediction, torch.sigmoid(2 * torch.from_numpy(LOG_MEL)[70, 30:60].mean()), rtol=1e-5)


def test_a_net_of_waves_with_a_channel_gets_the_axis():
    sound = wave()
    p = torch.sigmoid(2 * (torch.from_numpy(sound)[1000:1500] ** 2).mean() - 0.1).item()
    for model in (wt.model(OfWaves(), output="logit"), wt.model(OfWaves(), output="logit", layout="NCT"),
                  wt.model(OfWaves(own_axis=True), output="logit"),
                  wt.model(lambda x: OfWaves()(torch.from_numpy(np.ascontiguousarray(x))), output="logit", layout="NCT")):
        e = wt.explain(model, sound, target=1, parts="time:4", samples=64)
        assert best(e) == "samples 1000–1499"
        assert e.prediction == pytest.approx(p, rel=1e-5)
    e = wt.explain(wt.model(OfWaves(), output="logit"), sound, "saliency", target=1, parts="time:4")
    assert best(e) == "samples 1000–1499"
    same = wt.explain(wt.model(OfWaves(), output="logit", layout="NCT"), sound[None], target=1, parts="time:4", samples=64)
    assert same.prediction == pytest.approx(p, rel=1e-5)


def test_a_net_of_spectrograms_with_a_channel_gets_the_axis():
    class Picture(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(1, 1, 1, bias=False)
            self.conv.weight.data.fill_(1.0)

        def forward(self, x):
            loud = self.conv(x)[:, 0, 60:80, 30:60].mean(dim=(1, 2))
            return torch.stack([-loud, loud], dim=1)

    for layout in (None, "NCFT"):
        model = wt.model(Picture(), output="logit", **({} if layout is None else {"layout": layout}))
        given = {} if layout else {"band_edges_hz": HZ}
        e = wt.explain(model, LOG_MEL, target=1, parts="tf:4x4", samples=300, **given)
        assert best(e).startswith("frames 30–59, ")
        np.testing.assert_allclose(e.prediction, torch.sigmoid(2 * torch.from_numpy(LOG_MEL)[60:80, 30:60].mean()), rtol=1e-5)


def test_a_net_that_begins_with_a_normalisation_gets_its_channel_too():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.BatchNorm1d(1), torch.nn.Conv1d(1, 4, 9, 4), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool1d(1),
                              torch.nn.Flatten(), torch.nn.Linear(4, 2)).eval()
    sound = wave().astype(np.float32)
    e = wt.explain(wt.model(net, output="logit"), sound, target=1, parts="time:4", method="occlusion", rate=2000)
    with torch.no_grad():
        truth = torch.softmax(net(torch.from_numpy(sound)[None, None]), 1)[0, 1]
    np.testing.assert_allclose(e.prediction, float(truth), rtol=1e-5)


def test_a_normalisation_of_other_channels_is_an_error_that_names_the_layouts():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Identity(), torch.nn.BatchNorm1d(2), torch.nn.Flatten(), torch.nn.LazyLinear(2)).eval()
    net(torch.zeros(1, 2, 2000))
    with pytest.raises(ValueError, match=r"running_mean should contain.*'NCT' \(n, 1, samples\)"):
        wt.explain(wt.model(net, output="logit"), wave().astype(np.float32), parts="time:4")


def test_where_no_axis_helps_the_error_names_the_layouts():
    def of_channels(batch):
        if np.ndim(batch) != 3:
            raise ValueError(f"expected 3 dimensions, got {np.ndim(batch)}")
        return np.full((len(batch), 1), 0.5)

    with pytest.raises(ValueError, match=r"\(samples,\) = \(2000,\).*'NCT' \(n, 1, samples\)"):
        wt.explain(wt.model(of_channels, output="probability"), wave(), parts="time:4")
    with pytest.raises(ValueError, match="'NTF', 'NFT', 'NCTF' or 'NCFT' for spectrograms, got 'BCT'"):
        wt.model(of_channels, layout="BCT")


@pytest.mark.parametrize(("kind", "scale"), [(np.int16, 2**15), (np.int32, 2**31), (np.int8, 2**7)])
def test_whole_samples_are_brought_to_one(kind, scale):
    whole = np.clip(np.rint(wave() * (scale - 1)), -scale, scale - 1).astype(kind)
    floats = (whole / scale).astype(np.float32)
    model = wt.model(OfWaves(), output="logit")
    e, other = (wt.explain(model, one, target=1, parts="time:4", samples=64) for one in (whole, floats))
    assert e.prediction == other.prediction
    np.testing.assert_array_equal(e.scores, other.scores)
    assert any(f"whole numbers ({np.dtype(kind)})" in note for note in e.notes)
    assert not any("whole numbers" in note for note in other.notes)


def test_bytes_have_their_silence_in_the_middle_and_long_integers_are_refused():
    np.testing.assert_allclose(as_heard(np.array([0, 128, 192], np.uint8)), [-1, 0, 0.5])
    with pytest.raises(TypeError, match=r"int8, int16 or int32.*got int64"):
        as_heard(np.zeros(3, np.int64))


def test_an_attack_gives_back_what_it_was_given():
    """The logit is the mean of band 70 over 30 frames, so exactly those cells move, in the orientation that was given."""
    found = wt.attack(wt.model(OverTime(), output="logit", layout="NFT"), LOG_MEL, "pgd", epsilon=5.0, step=1.0, targets=0,
                      bounds=None, iterations=20)
    changed = np.asarray(found.adversarial[0] if isinstance(found.adversarial, list) else found.adversarial).reshape(BANDS, FRAMES)
    moved = np.argwhere(np.abs(changed - LOG_MEL) > 1e-3)
    assert set(moved[:, 0]) == {70}
    assert set(moved[:, 1]) == set(range(30, 60))


def test_an_audit_of_whole_samples_with_a_channel_finds_the_cause(tmp_path):
    whole = [np.rint(wave() * 32767).astype(np.int16) for _ in range(4)]
    audit = wt.audit(wt.model(OfWaves(), output="logit", classes=["quiet", "loud"]), whole, explainers={"saliency": {}},
                     attack={"method": "pgd", "epsilon": 0.5, "norm": "linf"}, parts="time:4", rate=8000, out=tmp_path / "run")
    records = [r for r in audit.store.records() if r["status"] == "ok"]
    assert len(records) == 4
    assert all(r["trials"][0]["order"]["saliency"][0] == 2 for r in records)


def test_every_verb_finds_the_layout_that_explain_finds():
    model, cut = wt.model(OverTime(), output="logit"), {"parts": "time:4", "hop_seconds": 0.01, "fill": "zero", "target": 1}
    said = wt.model(OverTime(), output="logit", layout="NFT")
    loud = {"truth": {"seconds": [(0.3, 0.6)]}}
    found, named = (wt.measure(one, LOG_MEL, "occlusion", ["relevance_mass"], **loud, **cut) for one in (model, said))
    assert found.values["relevance_mass"]["occlusion"] == named.values["relevance_mass"]["occlusion"]
    pictures = [LOG_MEL, LOG_MEL + 0.1, LOG_MEL - 0.1]
    first, second = (wt.pick(one, pictures, budget=1, explainer="occlusion", **cut) for one in (model, said))
    assert str(first) == str(second)
    readers = [wt.trust(one, pictures, ["occlusion"], parts="time:4", fill="zero", hop_seconds=0.01) for one in (model, said)]
    assert readers[0].to_json()["tables"] == readers[1].to_json()["tables"]


def test_what_is_removed_for_a_training_lies_where_the_explanation_says():
    """Loud in the second quarter of the time: where that is removed, nothing is left to learn from."""
    sides = [((1 + RNG.normal(size=(12, BANDS, FRAMES))).astype(np.float32), list(np.arange(12) % 2)) for _ in range(2)]
    kept = []

    def train(inputs, labels, seed):
        kept.append(np.array(inputs))
        return lambda batch: np.tile([0.5, 0.5], (len(batch), 1))

    for layout in ({}, {"layout": "NFT"}):
        model = wt.model(OverTime(), output="logit", **layout)
        wt.roar(train, model, *sides, "occlusion", parts="time:4", fill="zero", shares=(0.25,), trainings=1)
    first, second = kept[:len(kept) // 2], kept[len(kept) // 2:]
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("verb", ["measure", "pick", "trust"])
def test_a_net_of_waves_with_a_channel_gets_the_axis_in_every_verb(verb):
    waves, cut = [wave() * by for by in (0.5, 1.0, 1.5)], {"parts": "time:4", "rate": 8000}
    model = wt.model(OfWaves(), output="logit")
    run = {"measure": lambda: wt.measure(model, waves, "occlusion", ["deletion"], **cut),
           "pick": lambda: wt.pick(model, waves, budget=1, explainer="occlusion", **cut),
           "trust": lambda: wt.trust(model, waves, ["occlusion"], **cut)}[verb]
    assert str(run())
