import base64
import io
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
soundfile = pytest.importorskip("soundfile")

from singing import KnownDetector, song  # noqa: E402
from whytrust import auditing, cli  # noqa: E402
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


def test_a_dry_run_says_what_it_was_of_and_what_comes_first(capsys, tmp_path, monkeypatch):
    expected = {"training": "the net is not trained yet", "brief": True, "inputs": 64, "tried": 4, "fooled": 4, "failed": 0,
                "block": 16, "jobs": 1, "blocks": 8, "calls": 3_700_000, "seconds": 60.0}
    monkeypatch.setattr(auditing, "estimate", lambda *_: expected)
    monkeypatch.setattr(spec, "load", lambda *given, **more: None)
    _, out, _ = told(capsys, "audit", "singing", "--dry-run")
    assert out.startswith("up to 64 inputs in blocks of up to 16: about 3,700,000 model calls")
    assert "of a stretch of one song; all are taken as fooled" in out
    assert "Before that, the net is not trained yet. Nothing was written." in out


def test_a_moment_of_a_song_is_explained(capsys, weights, recording):
    code, out, _ = told(capsys, "explain", weights, f"{recording}@1.5", "--samples", "60", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["target_name"] in ("sing", "no sing")
    assert len(found["names"]) == 20
    assert "Hz" in found["names"][0]
    first = Detector.read(weights).excerpt(song(0).wave, 1.5)
    np.testing.assert_allclose(first.shape, (115, 80))
    assert found["source"] == "song.flac around 1.50 s"
    middle = json.loads(told(capsys, "explain", weights, recording, "--samples", "60", "--json")[1])
    assert middle["scores"] != found["scores"]
    assert middle["source"] == "song.flac around 2.00 s"
    assert "song.flac around 1.50 s: " in told(capsys, "explain", weights, f"{recording}@1.5", "--samples", "60")[1]


def test_the_page_says_which_moment_it_is_about(capsys, weights, recording, tmp_path):
    assert told(capsys, "explain", weights, f"{recording}@1.5", "--samples", "60", "--out", str(tmp_path / "e.html"))[0] == 0
    page = (tmp_path / "e.html").read_text()
    assert "for song.flac around 1.50 s: " in page
    packed = base64.b64decode(page.partition("data:audio/wav;base64,")[2].partition('"')[0])
    heard, rate = soundfile.read(io.BytesIO(packed))
    assert (len(heard), rate) == (115 * 315, 22050)
    wave = soundfile.read(recording)[0].mean(axis=1)
    start = round(1.5 * 70) * 315 - len(heard) // 2  # the moment is in the middle of what is played
    near = max(range(start - 2, start + 3), key=lambda at: np.corrcoef(heard, wave[at:at + len(heard)])[0, 1])
    np.testing.assert_allclose(heard, wave[near:near + len(heard)], atol=1e-3)


def test_a_folder_is_no_moment(capsys, weights, recording, tmp_path):
    for text in (str(tmp_path), f"{tmp_path}@1.5"):
        code, _, err = told(capsys, "explain", weights, text)
        assert (code, "must be one sound file for a detector of singing" in err) == (2, True)


def test_parts_of_something_else_are_told_to_be_so(capsys, weights, recording):
    for parts, kind in (("words", "text"), ("grid:4x4", "image")):
        code, _, err = told(capsys, "explain", weights, f"{recording}@1.5", "--parts", parts)
        assert code == 2
        assert f"are of {kind} inputs, got a sound; audio inputs take time, freq, tf, slic" in err


def test_files_are_brought_to_the_rate_that_a_model_was_made_for(capsys, tmp_path):
    for rate in (16000, 44100):
        time = np.arange(2 * rate) / rate
        soundfile.write(tmp_path / f"{rate}.wav", 0.5 * np.sin(2 * np.pi * 3000 * time), rate)
    said = [json.loads(told(capsys, "explain", "demo:sound", str(tmp_path / f"{rate}.wav"), "--samples", "60", "--json")[1])
            for rate in (16000, 44100)]
    assert [one["target_name"] for one in said] == ["whistle", "whistle"]
    assert said[1]["prediction"] == pytest.approx(said[0]["prediction"], abs=0.01)
    (tmp_path / "mine.py").write_text("import numpy as np\ndef length(waves):\n    return np.full((len(waves), 1), waves.shape[1] / 1e4)\n")
    words = ("explain", f"{tmp_path}/mine.py:length", str(tmp_path / "44100.wav"), "--parts", "time:4", "--json")
    assert json.loads(told(capsys, *words, "--rate", "8000")[1])["prediction"] == pytest.approx(1.6)
    assert json.loads(told(capsys, *words)[1])["prediction"] == pytest.approx(8.82)


def test_moments_are_for_detectors_of_singing(capsys, recording):
    code, _, err = told(capsys, "explain", "demo:sound", f"{recording}@1.5")
    assert code == 2
    assert "for a detector of singing only" in err


def test_an_answer_that_one_half_would_not_give_says_where_the_border_is(capsys, tmp_path, recording):
    def explained(threshold):
        torch.manual_seed(0)
        save(SingingVoiceNet(), tmp_path / "net.safetensors", {"threshold": threshold})
        return json.loads(told(capsys, "explain", str(tmp_path / "net.safetensors"), recording, "--samples", "60", "--target", "sing", "--json")[1])

    usual = explained(0.5)
    chance = usual["prediction"]
    border = round(chance / 2 if chance < 0.5 else (1 + chance) / 2, 3)
    assert not any("not above one half" in note for note in usual["notes"])
    assert f"The model says sing above a score of {border:g}, not above one half." in explained(border)["notes"]


@pytest.mark.parametrize(("moment", "words"), [
    ("@0.2", "its middle must be between 0.81 and"), ("@99", "must lie in the song"), ("@soon", "song.wav@12.5, got 'soon'"), ("@-3", "got '-3'")])
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
    assert [len(block.cases) for block in study.blocks()] == [8, 5]  # whole songs together, eight excerpts or more where there are so many
    code, out, _ = told(capsys, "audit", str(tmp_path / "a.toml"), "--out", str(tmp_path / "run"))
    assert code == 1  # one song is silent
    assert "silent from beginning to end" in out
    assert "occlusion, least" in out
    with pytest.raises(ValueError, match="cannot be said of songs"):
        spec.load(str(tmp_path / "a.toml"), {"rate": 8000})
