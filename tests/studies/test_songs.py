"""Annotated songs on disk: what is read is what was written, and each fault is told with its file and line."""

import numpy as np
import pytest

from whytrust.models.songs import RATE
from whytrust.studies.songs import SPLITS, annotated, jamendo, readable, synthesised

soundfile = pytest.importorskip("soundfile")
SECONDS = 3.0


def sound(path, seconds=SECONDS, rate=RATE, seed=0, samples=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    wave = np.random.default_rng(seed).normal(size=int(seconds * rate)) * 0.1 if samples is None else samples
    soundfile.write(path, wave.astype(np.float32), rate, subtype="FLOAT" if path.suffix == ".wav" else None)
    return path


def lab(path, *lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines or ("0 1.25 nosing", "1.25 2 sing", f"2 {SECONDS} nosing")))
    return path


@pytest.fixture
def folder(tmp_path):
    for split in SPLITS:
        sound(tmp_path / "audio" / f"a {split}.wav", rate=44100)
        lab(tmp_path / "labels" / f"a {split}.lab")
        (tmp_path / "filelists").mkdir(exist_ok=True)
        (tmp_path / "filelists" / split).write_text(f"a {split}.wav\n")
    return tmp_path


def test_sounds_are_resampled_and_frames_labelled_by_the_moments_written_down(folder):
    songs = jamendo(folder)
    assert [getattr(songs, split).names for split in SPLITS] == [("a train",), ("a valid",), ("a test",)]
    song = songs.train[0]
    assert song.seconds == pytest.approx(SECONDS)
    assert song.sung == ((1.25, 2.0),)
    np.testing.assert_array_equal(np.flatnonzero(song.labels), np.arange(88, 140))  # 1.25 s · 70 = 87.5; 2 s · 70 = 140
    assert readable(songs)[1] == ()


def test_folders_of_sounds_with_labels_beside_them_need_no_lists(tmp_path):
    for split in SPLITS:
        sound(tmp_path / "audio" / split / f"{split}.flac")
        lab(tmp_path / "audio" / split / f"{split}.lab")
    assert jamendo(tmp_path).test[0].name == "test"


def test_lists_may_lie_beside_the_sounds_and_titles_may_have_dots(tmp_path):
    for split in SPLITS:
        sound(tmp_path / f"01 - Mr. {split}.ogg")
        lab(tmp_path / "jamendo_lab" / f"01 - Mr. {split}.lab")
        (tmp_path / f"{split}.txt").write_text(f"\n# songs\n  # a note\naudio/01 - Mr. {split}\n")
    assert jamendo(tmp_path).valid.names == ("01 - Mr. valid",)
    assert jamendo(tmp_path).valid[0].sung == ((1.25, 2.0),)


def test_stretches_that_touch_are_one(tmp_path):
    assert annotated(lab(tmp_path / "a.lab", "0 1 sing", "1.005 2 sing", "2 2.8 nosing"), 3.0) == ((0.0, 2.0),)
    assert annotated(lab(tmp_path / "a.lab", "# by ear", "0 1 sing # loud", "1 3 nosing"), 3.0) == ((0.0, 1.0),)


@pytest.mark.parametrize(("lines", "words"), [
    (("0 1 nosing", "0.5 3 sing"), "line 2, must begin where the one before it ends, at 1 s, got 0.5: they overlap or are out of order"),
    (("0 1 nosing", "", "1.2 3 sing"), "line 3, must begin where the one before it ends, at 1 s, got 1.2: they leave a gap"),
    (("0 1 nosing", "1 0.5 sing"), "line 2, must end after it begins"),
    (("-1 3 sing",), "line 1, must end after it begins, at 0 s or later"),
    (("0 nan sing",), "line 1, must end after it begins"),
    (("0 3 singing",), "line 1, must end with one of sing, nosing, got 'singing'"),
    (("0 three sing",), "line 1, must begin with two numbers of seconds, got '0 three sing'"),
    (("0 3",), "line 1, must be 'start end sing|nosing'"),
    (("0 2.4 sing",), "must cover the song, 0 to 3.00 s, within 0.5 s, got 0 to 2.4 s"),
    (("0 9 sing",), "does it belong to this song?"),
    (("0.6 3 sing",), "must cover the song"),
    (("",), "must have lines 'start end sing|nosing', and is empty"),
])
def test_a_wrong_lab_file_says_where(tmp_path, lines, words):
    path = lab(tmp_path / "a.lab", *lines)
    with pytest.raises(ValueError) as error:
        annotated(path, 3.0)
    assert str(path) in str(error.value)
    assert words in str(error.value)


def damaged(folder, how):
    """One more training song, which is wrong; what its error must say."""
    path, labels = folder / "audio" / "bad.wav", folder / "labels" / "bad.lab"
    sound(path)
    lab(labels)
    with open(folder / "filelists" / "train", "a") as file:
        file.write("bad.wav\n")
    how(path, labels)


@pytest.mark.parametrize(("how", "words"), [
    (lambda path, labels: path.unlink(), "must have a sound file of its name"),
    (lambda path, labels: labels.unlink(), "must have a .lab file of its name"),
    (lambda path, labels: lab(labels.parent / "again" / "bad.lab"), "got several"),
    (lambda path, labels: path.write_bytes(b"no sound"), "must be a sound file"),
    (lambda path, labels: path.write_bytes(b""), "must be a sound file"),
    (lambda path, labels: sound(path, samples=np.zeros(0)), "at least one sample"),
    (lambda path, labels: sound(path, samples=np.full(66150, np.nan)), "must hold finite samples, got some that are not; mend the recording"),
    (lambda path, labels: sound(path, samples=np.zeros(66150)), "must not be silent"),
    (lambda path, labels: (sound(path, 1.0), lab(labels, "0 1 sing")), "must be at least an excerpt long, 1.64 s, got 1.00 s"),
    (lambda path, labels: (sound(path, 2.0), lab(labels, "0 2 sing")), "at least 164 frames (2.34 s) long to be trained on, got 141"),
])
def test_a_bad_song_fails_alone_and_says_why(folder, how, words):
    damaged(folder, how)
    kept, problems = readable(jamendo(folder), least=164)
    assert kept.train.names == ("a train",)
    assert kept.train[0].name == "a train"
    assert len(problems) == 1
    assert words in problems[0]
    assert "bad" in problems[0]


def test_a_part_without_a_readable_song_is_an_error(folder):
    (folder / "audio" / "a valid.wav").write_bytes(b"")
    with pytest.raises(ValueError, match=r"at least one valid song of .* must be readable, got none of 1, the first because .*a valid.wav"):
        readable(jamendo(folder))


def test_a_song_in_two_parts_is_an_error_that_names_both(folder):
    (folder / "filelists" / "test").write_text("a test\nA other\na train.mp3\n")
    with pytest.raises(ValueError, match=r"'a train' is in .*train, line 1 and in .*test, line 3"):
        jamendo(folder)


@pytest.mark.parametrize(("change", "words"), [
    (lambda folder: (folder / "filelists" / "test").unlink(), "has none for test"),
    (lambda folder: (folder / "filelists" / "test").write_text("\n"), "must name a song a line, and is empty"),
    (lambda folder: [(folder / "filelists" / split).unlink() for split in SPLITS], "must say which songs to train, tune and test on"),
    (lambda folder: [path.unlink() for path in (folder / "audio").iterdir()], "must hold songs"),
])
def test_a_set_without_parts_or_songs_is_one_clear_error(folder, change, words):
    change(folder)
    with pytest.raises(ValueError, match=words):
        jamendo(folder)


def test_no_folder_is_one_clear_error(tmp_path):
    with pytest.raises(ValueError, match="must be in a folder"):
        jamendo(tmp_path / "nowhere")


def test_synthesised_parts_share_no_piece_and_more_of_one_change_no_other():
    one, other = synthesised(0, 2, 1, 1, seconds=2.0), synthesised(0, 3, 1, 1, seconds=2.0)
    waves = [song.wave for split in SPLITS for song in getattr(one, split)]
    assert all(not np.array_equal(a, b) for i, a in enumerate(waves) for b in waves[:i])
    np.testing.assert_array_equal(one.test[0].wave, other.test[0].wave)
    assert not set(one.train.names) & set(synthesised(1, 2, 1, 1, 2.0).train.names)
