import numpy as np
import pytest

torch = pytest.importorskip("torch")
soundfile = pytest.importorskip("soundfile")

import whytrust as wt  # noqa: E402
from whytrust.domains.stems import StemParts  # noqa: E402
from whytrust.models.front_end import FrontEnd  # noqa: E402
from whytrust.studies.data import gather  # noqa: E402
from whytrust.studies.sounds import fitted, preprocessed  # noqa: E402

RATE, SAMPLES = 8000, 6400
FRONT_END = FrontEnd(rate=RATE, n_fft=256, hop=80, bands=40, low=60.0, high=3800.0)  # 81 frames of 40 bands
FRAMES, BANDS = slice(34, 46), slice(12, 18)  # within part (2, 1) of 5 × 4
CAUSE = 2 * 4 + 1


class TwoBands(torch.nn.Module):
    """Three classes by how loud the bands in question are: quiet, middling, loud. All that counts lies in one part."""

    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.tensor(3.0))

    def forward(self, log_mel):
        heard = log_mel[:, FRAMES, BANDS].mean(dim=(1, 2))
        return torch.stack([self.gain * (-heard - 1.5), 0.05 * heard, self.gain * (heard - 1.0)], dim=1)


class FromWaves(torch.nn.Module):
    """The same with the front end inside."""

    def __init__(self):
        super().__init__()
        self.front_end, self.net = FRONT_END, TwoBands()

    def forward(self, waves):
        return self.net(self.front_end(waves))


def waves(count=6):
    rng = np.random.default_rng(0)
    time = np.arange(SAMPLES) / RATE
    tone = np.sin(2 * np.pi * 600 * time)
    return np.stack([0.01 * rng.standard_normal(SAMPLES) + level * tone for level in np.geomspace(0.003, 0.2, count)]
                    ).astype(np.float32)


ATTACK = {"method": "carlini_wagner", "epsilon": 0.05, "step": 0.005, "alpha": 1e4, "iterations": 40}
CLASSES = ["quiet", "middling", "loud"]


def test_a_waveform_is_attacked_and_its_spectrogram_explained(tmp_path):
    model = wt.model(TwoBands(), preprocess=FRONT_END, output="logit", classes=CLASSES)
    audit = wt.audit(model, waves(), ["saliency", "occlusion"], attack=ATTACK, explain_on="preprocessed", out=tmp_path / "run")
    records = [r for r in audit.store.records() if r["status"] == "ok"]
    assert len(records) >= 4
    for record in records:
        assert record["trials"][0]["order"]["saliency"][0] == CAUSE
        assert record["trials"][0]["flip"]["any"]["saliency"][0] == "1"
        assert "Hz" in record["parts"][0]
        assert record["sound"]["seconds"] == pytest.approx(0.81)
        arrays = audit.store.arrays(record["case"])
        assert arrays["clean"].shape == (81, 40)
        assert arrays["clean_wave"].shape == (SAMPLES,)
        np.testing.assert_allclose(arrays["clean"], preprocessed(model, arrays["clean_wave"]), atol=1e-6)
        assert np.abs(arrays["adversarial_wave"].astype(float) - arrays["clean_wave"].astype(float)).max() <= 0.05


def test_a_waveform_can_be_explained_itself(tmp_path):
    model = wt.model(FromWaves(), output="logit", classes=CLASSES)
    audit = wt.audit(model, waves(), ["occlusion", "lime"], attack=ATTACK, rate=RATE, out=tmp_path / "run")
    records = [r for r in audit.store.records() if r["status"] == "ok"]
    assert len(records) >= 4
    for record in records:
        assert record["d"] == 20
        assert record["trials"][0]["flip"]["any"]["oracle"][3] == "1"
        assert record["sound"]["hertz"][-1] == pytest.approx(RATE / 2)
        assert set(audit.store.arrays(record["case"])) >= {"clean", "adversarial", "labels", "clean_wave", "adversarial_wave"}
    audit.save_html(tmp_path / "page.html")


class Hidden(torch.nn.Module):
    """The same, with a front end that does not say where its bands are."""

    def __init__(self):
        super().__init__()
        self.net, self._front = TwoBands(), [FRONT_END]  # in a list, where no layer is looked for

    def forward(self, waves):
        return self.net(self._front[0](waves))


def test_a_net_that_does_not_say_where_its_bands_are_is_explained_by_gradients_all_the_same(tmp_path):
    model = wt.model(Hidden(), output="logit", classes=CLASSES)
    named = ["saliency", "integrated_gradients", "input_x_gradient", "edges", "grad_cam"]
    audit = wt.audit(model, waves(), named, attack=ATTACK, rate=RATE, out=tmp_path / "run")
    records = [r for r in audit.store.records() if r["status"] == "ok"]
    assert len(records) >= 4
    for record in records:
        trial = record["trials"][0]
        assert set(trial["order"]) >= set(named[:4])
        for name in ("saliency", "integrated_gradients"):  # the neighbours hear what windows leak
            assert CAUSE in trial["order"][name][:2]
    assert audit.findings["explainer_failures"]["grad_cam"]["count"] == len(records)


def test_spectrograms_are_audited_as_sounds(tmp_path):
    spectrograms = FRONT_END(torch.from_numpy(waves())).numpy()
    attack = {"method": "pgd", "epsilon": 2.0, "units": "input", "bounds": None}
    audit = wt.audit(wt.model(TwoBands(), output="logit", classes=CLASSES), spectrograms, ["saliency"], parts="tf:5x4",
                     attack=attack, out=tmp_path / "run")
    records = [r for r in audit.store.records() if r["status"] == "ok"]
    assert records
    assert all(r["trials"][0]["order"]["saliency"][0] == CAUSE for r in records)
    assert records[0]["sound"]["hertz"] is None
    assert "clean_wave" not in audit.store.arrays(records[0]["case"])


def test_a_folder_of_sounds_of_any_rate_and_length(tmp_path):
    folder = tmp_path / "sounds"
    folder.mkdir()
    for i, wave in enumerate(waves(4)):
        soundfile.write(folder / f"{i}.wav", np.tile(wave, 2)[:5000 + 2000 * i], RATE, subtype="FLOAT")
    (folder / "bad.wav").write_bytes(b"nothing")
    model = wt.model(TwoBands(), preprocess=FRONT_END, output="logit", classes=CLASSES)
    audit = wt.audit(model, folder, ["saliency"], attack=ATTACK, explain_on="preprocessed", seconds=0.8, out=tmp_path / "run")
    states = {r["name"]: r["status"] for r in audit.store.records()}
    assert states.pop("bad.wav") == "failed"
    assert len(states) == 4
    assert "ok" in states.values()


def test_the_middle_of_long_sounds_and_silence_after_short_ones():
    np.testing.assert_array_equal(fitted(np.arange(10), 4), [3, 4, 5, 6])
    np.testing.assert_array_equal(fitted(np.arange(3), 5), [0, 1, 2, 0, 0])


def test_what_is_missing_is_told(tmp_path):
    soundfile.write(tmp_path / "a.wav", waves(1)[0], RATE)
    with pytest.raises(ValueError, match="pass rate="):
        wt.audit(wt.model(FromWaves(), output="logit"), tmp_path, ["saliency"])
    with pytest.raises(ValueError, match="must come with a model that has a preprocess"):
        wt.audit(wt.model(FromWaves(), output="logit"), waves(), ["saliency"], explain_on="preprocessed")
    with pytest.raises(ValueError, match="explain_on must be one of"):
        wt.audit(wt.model(FromWaves(), output="logit"), waves(), ["saliency"], explain_on="spectrogram")
    (tmp_path / "b.png").write_bytes(b"")
    with pytest.raises(ValueError, match="images or sounds"):
        gather(tmp_path)


def test_stems_that_the_user_brings_are_parts(tmp_path):
    rng, time = np.random.default_rng(0), np.arange(SAMPLES) / RATE
    stems = [{"tone": (level * np.sin(2 * np.pi * 600 * time)).astype(np.float32),
              "hiss": (0.02 * rng.standard_normal(SAMPLES)).astype(np.float32),
              "hum": (0.1 * np.sin(2 * np.pi * 100 * time)).astype(np.float32)} for level in np.geomspace(0.01, 0.2, 5)]
    cuts = [StemParts.of(one, rate=RATE) for one in stems]
    mixes = np.stack([cut.compose(np.ones((1, 3), dtype=bool), rng)[0] for cut in cuts])
    model = wt.model(FromWaves(), output="logit", classes=CLASSES)
    with pytest.raises(ValueError, match="must be cut from the input that is explained"):
        wt.explain(model, mixes[1], "occlusion", parts=cuts[0])
    with pytest.raises(ValueError, match="must be cut from the input that is explained"):
        wt.audit(model, mixes[::-1][:2], ["occlusion"], parts=cuts, attack=ATTACK, rate=RATE, out=tmp_path / "wrong")
    audit = wt.audit(model, mixes, ["occlusion"], parts=cuts, attack=ATTACK, rate=RATE, limit=4, out=tmp_path / "run")
    records = [r for r in audit.store.records() if r["status"] == "ok"]
    assert len(records) >= 2
    for record in records:
        assert record["parts"] == ["tone", "hiss", "hum"]
        assert record["trials"][0]["flip"]["any"]["oracle"][-1] == "1"
    audit.save_html(tmp_path / "page.html")
    with pytest.raises(TypeError, match="one for each input"):
        wt.audit(model, mixes, ["occlusion"], parts=cuts[:3], attack=ATTACK, rate=RATE)
    with pytest.raises(TypeError, match="must come as a list"):
        wt.audit(model, mixes, ["occlusion"], parts=cuts[0], attack=ATTACK, rate=RATE)


def test_an_explainer_may_hide_parts_in_its_own_way(tmp_path):
    model = wt.model(TwoBands(), preprocess=FRONT_END, output="logit", classes=CLASSES)
    audit = wt.audit(model, waves(4), {"mean": {"method": "occlusion"}, "zero": {"method": "occlusion", "fill": "zero"},
                                       "min": {"method": "occlusion", "fill": "min"}},
                     attack=ATTACK, explain_on="preprocessed", out=tmp_path / "run")
    record = next(r for r in audit.store.records() if r["status"] == "ok")
    scores = record["trials"][0]["scores"]
    changed = audit.store.arrays(record["case"])["adversarial"]
    hidden = {"mean": changed.mean(), "zero": 0.0, "min": changed.min()}
    after = record["label"]
    for name, level in hidden.items():
        without = changed.copy()
        without[32:48, 10:20] = level
        both = wt.model(TwoBands(), output="logit", classes=CLASSES)(np.stack([changed, without]))[:, after]
        np.testing.assert_allclose(scores[name][CAUSE], both[0] - both[1], atol=1e-5)
