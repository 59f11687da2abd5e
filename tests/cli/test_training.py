"""`whytrust train`, as it is typed."""

import json
import signal
import subprocess
import sys
import time

import pytest

from noisy_songs import song
from whytrust.cli import main

pytest.importorskip("torch")
soundfile = pytest.importorskip("soundfile")
SMALL = ("--epochs", "1", "--updates", "2", "--batch", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("songs")
    for number, split in enumerate(("train", "valid", "test")):
        one = song(number)
        (place / split).mkdir()
        soundfile.write(place / split / f"{split}.wav", one.wave, 22050, subtype="FLOAT")
        (place / split / f"{split}.lab").write_text("0 1 nosing\n1 2.5 sing\n2.5 4 nosing\n")
    return place


def test_a_folder_of_songs_becomes_a_model_a_table_and_a_picture(folder, tmp_path, capsys):
    assert main(["train", "singing-voice", "--data", str(folder), "--out", str(tmp_path / "net.safetensors"), *SMALL, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["songs"] == [1, 1, 1]
    assert found["schedule"]["updates"] == 2
    for name in ("model", "table", "picture"):
        assert (tmp_path / found[name]).stat().st_size > 100
    assert main(["train", "singing-voice", "--data", str(folder), "--out", str(tmp_path / "net.safetensors"), *SMALL]) == 0
    said = capsys.readouterr()
    assert "| error |" in said.out
    assert "synthesised" not in said.out + said.err


def test_a_song_that_is_left_out_is_named_and_the_exit_code_says_so(folder, tmp_path, capsys):
    (folder / "train" / "torn.wav").write_bytes(b"torn")
    assert main(["train", "singing-voice", "--data", str(folder), "--out", str(tmp_path / "net.safetensors"), *SMALL]) == 1
    (folder / "train" / "torn.wav").unlink()
    assert "a song is left out: 'torn'" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "words"), [
    (["train", "singing-voise", "--out", "a.safetensors"], "NET must be one that can be trained here, singing-voice, got 'singing-voise'"),
    (["train", "singing-voice", "--out", "a.pt", "--quick"], "out must name a .safetensors file"),
    (["train", "singing-voice", "--out", "a.safetensors", "--data", "nowhere"], "must be in a folder, got 'nowhere'"),
    (["train", "singing-voice", "--out", "a.safetensors", "--epochs", "0"], "epochs must be a whole number of at least 1"),
])
def test_what_cannot_be_done_is_one_line(arguments, words, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert words in said[-1]
    assert list(tmp_path.iterdir()) == []


def test_without_data_it_says_that_the_music_is_synthesised(monkeypatch, capsys):
    asked = []
    def stop(data, *rest):
        asked.append(data)
        raise KeyboardInterrupt
    monkeypatch.setattr("whytrust.studies.detector.train_detector", stop)
    assert main(["train", "singing-voice", "--quick", "--out", "a.safetensors"]) == 130
    said = capsys.readouterr().err
    assert f"no --data, so the net learns from {asked[0].what}, not from recordings" in said
    assert "synthesised pieces" in asked[0].what
    assert "interrupted; nothing had been learnt yet" in said


def test_ctrl_c_leaves_a_checkpoint_and_the_command_that_goes_on(folder, tmp_path):
    out = tmp_path / "net.safetensors"
    command = ["train", "singing-voice", "--data", str(folder), "--out", str(out), "--epochs", "500", "--updates", "1", "--batch", "2"]
    process = subprocess.Popen([sys.executable, "-c", "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
                                "from whytrust.cli import main; sys.exit(main(sys.argv[1:]))", *command], stderr=subprocess.PIPE, text=True)
    kept = tmp_path / "net.training" / "checkpoint-seed-0.safetensors"
    deadline = time.monotonic() + 100
    while not kept.is_file() and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert f"interrupted; what was learnt so far is kept in {tmp_path / 'net.training'}" in said
    assert f"go on with: whytrust {' '.join(command)}" in said
    assert not out.exists()
