import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
soundfile = pytest.importorskip("soundfile")

from singing import KnownDetector, song  # noqa: E402
from whytrust import cli  # noqa: E402
from whytrust.models.detector import Detector  # noqa: E402
from whytrust.models.singing_voice import SingingVoiceNet, save  # noqa: E402
from whytrust.studies import spec  # noqa: E402


@pytest.fixture
def weights(tmp_path):
    torch.manual_seed(0)
    path = tmp_path / "net.safetensors"
    save(SingingVoiceNet(), path, {"threshold": 0.5})
    return str(path)


@pytest.fixture
def recording(tmp_path):
    path = tmp_path / "song.flac"
    soundfile.write(path, np.stack([song(0).wave] * 2, axis=1), 22050)
    return str(path)


def told(capsys, *words):
    code = cli.main(list(words))
    out, err = capsys.readouterr()
    return code, out, err


def test_a_moment_of_a_song_is_explained(capsys, weights, recording):
    code, out, _ = told(capsys, "explain", weights, f"{recording}@1.5", "--samples", "60", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["target_name"] in ("sing", "no sing")
    assert len(found["names"]) == 20
    assert "Hz" in found["names"][0]
    first = Detector.read(weights).excerpt(song(0).wave, 1.5)
    np.testing.assert_allclose(first.shape, (115, 80))
    assert told(capsys, "explain", weights, recording, "--samples", "60", "--json")[1] != out  # its middle is another moment


@pytest.mark.parametrize(("moment", "words"), [
    ("@0.2", "its middle must be between 0.81 and"), ("@99", "must lie in the song"), ("@soon", "song.wav@12.5")])
def test_moments_that_a_song_does_not_have_are_refused(capsys, weights, recording, moment, words):
    code, _, err = told(capsys, "explain", weights, recording + moment)
    assert code == 2
    assert words in err


def test_weights_of_anything_else_are_refused(capsys, tmp_path, recording):
    (tmp_path / "other.safetensors").write_bytes(b"no weights at all")
    code, _, err = told(capsys, "explain", str(tmp_path / "other.safetensors"), recording)
    assert code == 2
    assert "must be a safetensors file" in err


def test_a_spec_names_weights_and_a_folder_of_songs(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(Detector, "read", classmethod(lambda cls, path: KnownDetector()))
    folder = tmp_path / "songs"
    folder.mkdir()
    for number in range(3):
        soundfile.write(folder / f"{number}.wav", song(number).wave, 22050, subtype="FLOAT")
    soundfile.write(folder / "silent.wav", np.zeros(22050 * 3), 22050)
    (tmp_path / "a.toml").write_text('model = "net.safetensors"\ninputs = "songs"\nexcerpts = 2\nparts = "tf:5x4"\n'
                                     'attack = { signal = "waveform", iterations = 40 }\n[explainers]\nsaliency = {}\n'
                                     '"occlusion, least" = { method = "occlusion", fill = "min" }\n')
    study = spec.load(str(tmp_path / "a.toml"))
    assert [len(block.cases) for block in study.blocks()] == [4, 4, 4, 1]
    code, out, _ = told(capsys, "audit", str(tmp_path / "a.toml"), "--out", str(tmp_path / "run"))
    assert code == 1  # one song is silent
    assert "silent from beginning to end" in out
    assert "occlusion, least" in out
    with pytest.raises(ValueError, match="cannot be said of songs"):
        spec.load(str(tmp_path / "a.toml"), {"rate": 8000})
