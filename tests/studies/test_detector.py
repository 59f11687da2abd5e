"""A detector trained on next to nothing: what is written down must be what was measured."""

import json
import math
import warnings

import numpy as np
import pytest

from noisy_songs import song, song_set

pytest.importorskip("torch")
pytest.importorskip("matplotlib")
soundfile = pytest.importorskip("soundfile")

from whytrust.models import detection, singing_voice  # noqa: E402
from whytrust.models.detection import Performance  # noqa: E402
from whytrust.models.songs import RATE, Song, Songs, SongSet, sung_frames  # noqa: E402
from whytrust.models.training import Schedule, train  # noqa: E402
from whytrust.studies.detector import PUBLISHED, report, train_detector, tried_on, working_folder  # noqa: E402
from whytrust.studies.detector_picture import draw  # noqa: E402

TINY = Schedule(epochs=1, updates=2, batch=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return train_detector(song_set(), tmp_path_factory.mktemp("detector") / "net.safetensors", TINY, seeds=2)


def test_the_saved_net_has_the_errors_that_are_saved_with_it(made):
    net, facts = singing_voice.load(made.path)
    assert detection.evaluate(net, song_set().test, facts["threshold"]).to_json() == facts["test"]
    assert facts["threshold"] == detection.tuned(net, song_set().valid)
    assert facts["error"] == facts["test"]["error"]
    assert facts["seeds"] == [0, 1]
    assert json.loads(json.dumps(made.facts)) == facts


def test_of_several_seeds_the_one_that_errs_least_on_the_validation_songs_is_kept(made):
    errors = {run["seed"]: run["valid"]["error"] for run in made.facts["runs"]}
    assert errors[made.facts["seed"]] == min(errors.values())
    kept = train(song_set().train, Schedule(epochs=1, updates=2, batch=2, seed=made.facts["seed"]))
    net = singing_voice.load(made.path)[0]
    for name, value in kept.state_dict().items():
        np.testing.assert_array_equal(net.state_dict()[name].numpy(), value.numpy())


def test_the_table_holds_mean_and_deviation_in_per_cent(made):
    text = made.table.read_text()
    errors = [100 * run["test"]["error"] for run in made.facts["runs"]]
    assert f"| error | {np.mean(errors):.2f} ± {np.std(errors, ddof=1):.2f} |" in text
    assert "published" not in text  # these are not Jamendo's songs
    assert "2 updates of 2 segments" in text


def test_on_jamendo_the_published_errors_stand_beside(made):
    text = report(made.facts, (61, 16, 16))
    assert PUBLISHED == {"error": (11.54, 0.96), "recall": (89.61, 1.71), "specificity": (87.46, 1.00)}
    for line in ("11.54 ± 0.96", "89.61 ± 1.71", "87.46 ± 1.00"):
        assert line in text


def test_gigabytes_are_not_left_behind_and_running_again_trains_nothing(made, monkeypatch):
    assert not (working_folder(made.path) / "magnitudes").exists()
    monkeypatch.setattr("whytrust.models.training._update", None)  # nothing may call it
    again = train_detector(song_set(), made.path, TINY, seeds=2)
    assert again.facts == made.facts


def test_songs_that_cannot_be_read_are_left_out_and_named(tmp_path):
    songs = song_set()
    def broken(number):
        if number == 1:
            raise ValueError("song 1 is torn")
        return songs.train[number]
    told = []
    made = train_detector(SongSet("torn", Songs(("song 0", "song 1"), broken), songs.valid, songs.test), tmp_path / "net.safetensors",
                          Schedule(epochs=1, updates=1, batch=2), on_problem=told.append)
    assert told == ["song 1 is torn"] == made.facts["left_out"]
    assert "- song 1 is torn" in str(made)
    assert made.facts["songs"] == (1, 1, 3)


@pytest.mark.parametrize(("out", "seeds", "words"), [("net.pt", 1, "out must name a .safetensors file"), ("net.safetensors", 0, "seeds must be")])
def test_wrong_arguments_are_refused_before_anything_is_trained(tmp_path, out, seeds, words):
    with pytest.raises(ValueError, match=words):
        train_detector(song_set(), tmp_path / out, TINY, seeds)


def test_the_picture_is_drawn_with_annotation_and_without(tmp_path, rng):
    image = pytest.importorskip("PIL.Image")
    one = song(0)
    for which in (one, Song(one.name, one.wave, None)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # matplotlib warns of glyphs and layouts that do not fit
            draw(which, rng.normal(size=(one.frames, 80)).astype(np.float32), rng.uniform(size=one.frames), 0.51, tmp_path / "song.png")
        pixels = np.asarray(image.open(tmp_path / "song.png").convert("RGB")).astype(int)
        orange = (np.abs(pixels - (221, 107, 0)).sum(axis=2) < 30).sum()
        assert (orange > 1000) == (which.sung is not None)
        assert (pixels[:3] == 255).all()
        assert (pixels[:, :3] == 255).all()  # nothing is cut off at the edges
        assert (pixels[:, -3:] == 255).all()


class Loud:
    """Stands in for a net's hearing: somebody sings where it is loud."""

    def __init__(self, net):
        pass

    def probabilities(self, wave):
        frames = 1 + len(wave) // 315
        return np.array([float(np.abs(wave[max(0, t * 315 - 157):t * 315 + 158]).max() > 0.5) for t in range(frames)])


def test_recordings_are_judged_by_share_and_error(tmp_path, monkeypatch):
    wave = np.full(RATE * 4, 0.1, dtype=np.float32)
    wave[RATE:RATE * 3] = 0.9
    for name in ("a.wav", "b.wav", "c.wav"):
        soundfile.write(tmp_path / name, wave, RATE, subtype="FLOAT")
    monkeypatch.setattr("whytrust.studies.detector.Hearing", Loud)
    known, nobody, unknown = tried_on(None, 0.5, {str(tmp_path / "a.wav"): ((1.0, 3.0),), str(tmp_path / "b.wav"): (), str(tmp_path / "c.wav"): None})
    assert known["called_singing"] == pytest.approx(0.5, abs=0.01)
    assert known["error"] == pytest.approx(0, abs=0.01)
    assert known["sung"] == sung_frames(((1.0, 3.0),), 281).mean()
    assert nobody["error"] == nobody["called_singing"] == known["called_singing"]
    assert unknown["error"] is None
    assert unknown["name"] == "c.wav"


def test_a_performance_without_singing_is_a_dash_in_the_table(made):
    nobody = Performance(0.1, math.nan, 0.9, math.nan, math.nan, 10).to_json()
    facts = {**made.facts, "runs": [{"test": nobody}]}
    assert "| recall | – |" in report(facts, (1, 1, 1))
    assert "| error | 10.00 |" in report(facts, (1, 1, 1))


def test_test_songs_in_which_nobody_sings_have_no_recall_and_the_facts_are_still_json(tmp_path):
    whole = song_set()
    silent = Songs(("quiet",), lambda number: Song("quiet", whole.test[0].wave, ()))
    facts = train_detector(SongSet("one of them quiet", whole.train, whole.valid, silent), tmp_path / "net.safetensors", TINY).facts
    assert facts["recall"] is None
    json.dumps(facts, allow_nan=False)
