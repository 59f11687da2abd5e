import numpy as np
import pytest

torch = pytest.importorskip("torch")
soundfile = pytest.importorskip("soundfile")

import whytrust as wt  # noqa: E402
from singing import CAUSE, KnownDetector, song, songs  # noqa: E402
from whytrust import auditing  # noqa: E402
from whytrust.models.songs import CLASSES, FRAMES, REACH, SILENT, Songs  # noqa: E402
from whytrust.studies import spec  # noqa: E402
from whytrust.studies.adversaries import FULL  # noqa: E402
from whytrust.studies.excerpts import (  # noqa: E402
    OfSongs,
    chosen,
    drawn,
    excerpts_of,
    frame_of,
    song_attack,
    song_of,
    songs_in,
    stretch,
)

detector = KnownDetector()


def study(some=None, **attack):
    given = songs() if some is None else some
    signal, method, _ = song_attack({"iterations": 40, **attack})
    data = drawn(given, detector.hearing, detector.threshold, 3, 0, "excerpts of songs")
    made = OfSongs(given, detector.hearing, detector.threshold, method, signal)
    model = wt.model(detector.net, **detector.model_options)
    return spec.settle(model, data, explainers={"lime": {"samples": 200}, "saliency": {}}, attack=made,
                       **detector.explain_options)


def test_an_excerpt_is_the_log_mel_around_its_frame():
    log_mel = np.random.default_rng(0).normal(size=(200, 80)).astype(np.float32)
    of = excerpts_of(log_mel)
    np.testing.assert_array_equal(of(100), log_mel[43:158])
    assert of(0).shape == (FRAMES, 80)
    assert of(0).base is None  # it does not keep the song
    np.testing.assert_array_equal(of(0)[:REACH], np.float32(SILENT))
    np.testing.assert_array_equal(of(0)[REACH:], log_mel[:FRAMES - REACH])


def test_a_stretch_has_its_frame_in_the_middle():
    wave = np.arange(100_000, dtype=np.float32)
    found = stretch(wave, 150)
    assert len(found) == FRAMES * 315
    assert found[len(found) // 2] == 150 * 315
    assert not stretch(wave, 10)[:100].any()


def test_chosen_frames_are_of_both_answers_and_inside_of_the_song():
    sung = np.zeros(1000, dtype=bool)
    sung[300:400] = True
    frames = chosen(sung, 5, seed=0, number=3)
    assert len(frames) == len(set(frames)) == 10
    assert sum(sung[frames]) == 5
    assert min(frames) >= REACH
    assert max(frames) < 1000 - REACH
    assert frames == chosen(sung, 5, seed=0, number=3) != chosen(sung, 5, seed=1, number=3)
    assert len(chosen(np.zeros(1000, dtype=bool), 5, 0, 0)) == 5  # of one answer there is none


@pytest.mark.parametrize("signal", ["waveform", "magnitude"])
def test_adversaries_are_within_epsilon_and_heard_as_their_song_is(signal):
    found = study(signal=signal, alpha=2.0)
    cases = [case for case in found.blocks()[0].cases if song_of(case) == 0]
    made = found.adversaries
    given = [item.value for item in found.data.items[:len(cases)]]
    answers = made(found.model, given, cases, FULL, 0, lambda calls: None)
    attacked = made.attacked(song(0), FULL, lambda calls: None)
    assert np.abs(attacked.adversarial.astype(float) - attacked.clean.astype(float)).max() <= made.attack.epsilon
    for i, case in enumerate(cases):
        frame = frame_of(case)
        assert answers[i].clean_label == int(attacked.sung[frame])
        assert answers[i].label == int(attacked.after[frame] > detector.threshold)
        assert answers[i].reached == attacked.flipped[frame]
        assert answers[i].played.clean.shape == answers[i].played.changed.shape == (FRAMES * 315,)
    assert any(one.reached for one in answers.values())
    if signal == "magnitude":
        assert attacked.adversarial.min() >= 0
        waves = detector.hearing.resynthesised(song(0).wave, attacked.adversarial)
        heard = detector.hearing.probabilities(waves) > detector.threshold
        assert [one.played.label for one in answers.values()] == [int(heard[frame_of(case)]) for case in cases]
        assert answers[0].facts["played_flipped"] == int((heard != attacked.sung).sum())
        assert answers[0].facts["at_floor"] == np.mean((attacked.adversarial == 0) & (attacked.clean > 0))
    else:
        assert answers[0].facts["at_floor"] is None
        assert answers[0].played.label is None  # it is played as the net got it
        assert answers[0].facts["played_flipped"] == attacked.flipped.sum()


def test_an_audit_of_songs_finds_the_planted_cause_in_both_directions(tmp_path):
    audit = auditing.run(study(), tmp_path / "run")
    records = [r for r in audit.store.records() if r["status"] == "ok"]
    assert {r["clean_name"] for r in records} == set(CLASSES)
    assert len({r["source"] for r in records}) == 3
    for record in records:
        trial = record["trials"][0]
        assert trial["order"]["saliency"][0] == CAUSE
        assert trial["flip"]["any"]["saliency"][0] == "1"
        lime = np.array(trial["scores"]["lime"])
        assert np.argmax(np.abs(lime)) == CAUSE  # of "no sing" it may speak against that, as what it is hidden behind is quieter still
        if record["label_name"] == "sing":
            assert trial["order"]["lime"][0] == CAUSE
            assert trial["flip"]["any"]["lime"][0] == "1"
        assert record["sound"]["rate"] == 22050
        assert record["sound"]["hertz"][0] < 40 < 7800 < record["sound"]["hertz"][-1]
    audit.save_html(tmp_path / "page.html")
    arrays = audit.store.arrays(records[0]["case"])
    assert set(arrays) == {"clean", "adversarial", "labels", "clean_wave", "adversarial_wave"}


def test_the_page_says_what_the_net_says_of_the_sound_that_is_played(tmp_path):
    audit = auditing.run(study(songs(1), signal="magnitude", alpha=2.0), tmp_path / "run")
    records = [r for r in audit.store.records() if r["status"] == "ok"]
    assert records
    page = audit.save_html(tmp_path / "page.html").read_text()
    for record in records:
        said = "also says" if record["sound"]["played"] == record["label_name"] else "says"
        assert f"Of the sound that is played the model {said} “{record['sound']['played']}”" in page


def test_records_do_not_depend_on_the_number_of_jobs_nor_on_interruptions(tmp_path):
    def records(folder):
        return list(auditing.run(study(), folder).store.records())

    once = records(tmp_path / "once")
    auditing.run(study(), tmp_path / "two", jobs=2)
    assert records(tmp_path / "two") == once


def test_a_song_that_cannot_be_read_fails_alone(tmp_path):
    def make(number):
        if number == 1:
            raise ValueError("song 1 is scratched")
        return song(number)

    audit = auditing.run(study(Songs(("a", "b", "c"), make)), tmp_path / "run")
    failed = [r for r in audit.store.records() if r["status"] == "failed"]
    assert [r["source"] for r in failed] == ["b"]
    assert "scratched" in failed[0]["error"]


def test_a_folder_of_sounds_is_songs(tmp_path):
    for number, rate, suffix in ((0, 22050, "wav"), (1, 44100, "flac"), (2, 16000, "ogg")):
        wave = song(number, 3.0).wave
        soundfile.write(tmp_path / f"{number}.{suffix}", np.stack([wave, wave], axis=1), rate)
    found = songs_in(tmp_path)
    assert found.names == ("0.wav", "1.flac", "2.ogg")
    assert found[0].seconds == pytest.approx(3.0)
    assert found[1].seconds == pytest.approx(1.5)
    assert found[0].sung is None
    assert [found.frames(i) for i in range(3)] == [song.frames for song in found]  # what the files say is what they hold
    assert found[1:].frames(0) == found.frames(1)
    assert found.limited(2).frames(1) == found.frames(2)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="must hold songs"):
        songs_in(tmp_path / "empty")
    with pytest.raises(ValueError, match="which is none"):
        songs_in(tmp_path / "nowhere")


@pytest.mark.parametrize(("given", "words"), [
    ({"method": "pgd"}, "attacked as a whole"),
    ({"signal": "spectrum"}, "waveform, magnitude"),
    ({"epsilonn": 1.0}, "did you mean 'epsilon'"),
])
def test_attacks_that_songs_do_not_know_are_refused(given, words):
    with pytest.raises((ValueError, TypeError), match=words):
        song_attack(given)


def test_the_papers_settings_are_the_defaults():
    assert (song_attack(None)[1].epsilon, song_attack(None)[1].step, song_attack(None)[1].alpha) == (0.01, 0.0003, 2.0)
    other = song_attack({"signal": "magnitude"})[1]
    assert (other.epsilon, other.step, other.alpha, other.bounds) == (0.1, 0.0005, 15.0, (0.0, None))
    assert song_attack({"signal": "magnitude", "bounds": [-1, None]})[1].bounds == (-1.0, None)
    assert other.stop == "never"


def test_limits_and_slices_are_songs_too():
    found = songs(5)
    assert found.limited(2).names == ("song 0", "song 4")
    assert found.limited(2)[1].name == "song 4"
    assert found[1:3].names == ("song 1", "song 2")
    assert found[1:3][0].name == "song 1"
    assert [one.name for one in found] == list(found.names)
    with pytest.raises(ValueError, match="limit"):
        found.limited(0)


def test_what_an_audit_of_songs_will_take_goes_by_their_length(monkeypatch):
    monkeypatch.setattr(auditing, "A_MOMENT", 0.0)  # one song must do

    def make(number):
        if number == 2:
            raise ValueError("c must be readable")
        return song(number, (4.0, 20.0)[number])

    made, calls = study(Songs(("a", "b", "c"), make)), []
    for block in made.blocks():
        list(made.work(block, calls.append))
    assert auditing.estimate(made)["calls"] == pytest.approx(sum(calls), rel=0.2)
