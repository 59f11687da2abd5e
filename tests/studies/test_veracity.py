"""Praher et al. (2021) again, from end to end, with a detector whose only reason is known: one segment of twenty."""

import io
import json
import pickle
import shutil

import numpy as np
import pytest
from joblib.externals import loky
from PIL import Image

pytest.importorskip("torch")
pytest.importorskip("matplotlib")

from studies.humming import REASON, WhiteBox, demo, hum, hums
from whytrust import engine
from whytrust.models import demos
from whytrust.models.songs import Songs, SongSet
from whytrust.store import Store, encode
from whytrust.studies import reproductions, veracity, veracity_run
from whytrust.studies.excerpts import SIGNALS
from whytrust.studies.veracity_run import Asked

SMALL = {"each": 2, "samples": 64, "iterations": 32}


def as_in_tests(patch):
    """Hums instead of synthesised pieces, a grid of two settings, and steps so large that 32 of them turn either answer."""
    patch.setitem(SIGNALS, "magnitude", {**SIGNALS["magnitude"], "step": 0.002})
    patch.setitem(demos.DEMOS, "singing", demo(0, 1))
    patch.setattr(veracity_run, "synthesised", lambda seed, count, seconds: hums(7))
    patch.setattr(veracity_run, "AROUND", {"epsilon": (1.0,), "step": (1.0,), "alpha": (1.0, 4.0)})
    patch.setattr(veracity_run, "TUNED", 4)


@pytest.fixture
def small(monkeypatch):
    as_in_tests(monkeypatch)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run on two hums, with every kind of block."""
    folder = tmp_path_factory.mktemp("run") / "veracity"
    with pytest.MonkeyPatch.context() as patch:
        as_in_tests(patch)
        yield veracity_run.veracity(Asked(**SMALL, tune=True, out=str(folder)))


@pytest.fixture(scope="module")
def records(run):
    return list(Store.open(run).records())


@pytest.fixture(scope="module")
def found(run):
    return json.loads(veracity_run.report(run, as_json=True))


def trials(records, direction):
    return [r["trial"] for r in records if r["kind"] == "excerpts" and r["status"] == "ok" and r["direction"] == direction]


# --- the run ----------------------------------------------------------------------------------------------------------


def test_a_run_has_every_kind_and_nothing_failed(records):
    assert {r["kind"] for r in records} == set(veracity.KINDS)
    assert {r["status"] for r in records} == {"ok", "not found"}
    assert {r["direction"] for r in records if r["kind"] == "excerpts" and r["status"] == "ok"} == {"no sing", "sing"}


def test_lime_finds_the_one_segment_that_singing_was_put_into(records):
    made = trials(records, "no sing")
    assert len(made) >= 3
    for trial in made:
        assert trial["order"]["lime"][0] == REASON
        assert trial["flip"]["any"]["lime"] == trial["flip"]["any"]["oracle"] == "1" * 20
        for k, one in trial["recovery"].items():
            if one["flipped"]:
                assert REASON in one["parts"]
                assert one["found"]["lime"] >= 1, k


def test_the_largest_change_flips_exactly_from_where_it_holds_the_reason(records):
    sung = trials(records, "sing")
    assert len(sung) >= 3
    for trial in trials(records, "no sing") + sung:
        first = trial["order"]["magnitude"].index(REASON)
        assert trial["flip"]["any"]["magnitude"] == "0" * first + "1" * (20 - first)


def test_drawings_on_a_quiet_hum_are_found(records):
    made = [r for r in records if r["kind"] == "drawings"]
    assert [r["status"] for r in made] == ["ok", "ok"]
    for record in made:
        assert record["order"][0] == REASON
        assert REASON in record["touched"]
        assert record["prediction_before"] < 0.5 < record["prediction"]


def test_the_detector_is_as_right_as_numpy_counts(found):
    from whytrust.models.detection import smoothed

    answers, truths = [], []
    for number in (0, 1):
        answers.append(smoothed(WhiteBox().hearing.probabilities(hum(number).wave)) > 0.5)
        truths.append(hum(number).labels)
    said, true = np.concatenate(answers), np.concatenate(truths)
    rates = found["detector"]["rates"]
    assert rates["error"]["value"] == pytest.approx((said != true).mean())
    assert rates["recall"]["value"] == pytest.approx(said[true].mean())
    assert rates["specificity"]["value"] == pytest.approx((~said[~true]).mean())
    assert rates["error"]["sources"] == 2
    assert found["detector"]["own_test"]["error"] == 0.125


def test_the_attack_is_counted_once_a_song(records, found):
    for signal in ("waveform", "magnitude"):
        songs = {r["song"]: r["attack"] for r in records if r["kind"] == "excerpts" and r["signal"] == signal}
        turned, frames = (sum(a[what] for a in songs.values()) for what in ("flipped", "frames"))
        assert found["attack"]["signals"][signal]["success"]["value"] == pytest.approx(turned / frames)
        assert found["attack"]["signals"][signal]["success"]["n"] == frames


def test_every_figure_is_drawn_and_nothing_touches_the_edges(run):
    names = {path.stem for path in (run / "figures").glob("*.png")}
    assert names == {"figure-1-drawings", "figure-2-flips", "figure-3-recovery", "figure-adversaries", "figure-settling",
                     "figure-tuning"} | ({"figure-4-fidelity"} & names)
    for name in names:
        with Image.open(run / "figures" / f"{name}.png") as picture:
            pixels = np.asarray(picture.convert("L"))
        assert pixels.std() > 5
        for edge in (pixels[:3], pixels[-3:], pixels[:, :3], pixels[:, -3:]):
            assert (edge == 255).all(), name


def test_a_report_says_what_it_was_run_on_and_has_the_published_numbers(run):
    text = (run / "tables.md").read_text()
    assert text == veracity_run.report(run)
    assert text.index("This is no recorded music") < text.index("##")
    for number in ("11.54 ± 0.96", "| 53 | 41 | 21 | 32 |", "60.5", "28.4", "published 52", "| 86 | 99 |", "ε 0.1, η 0.0005, α 15"):
        assert number in text
    assert "LIME with 64 samples instead of 8192" in text


# --- going on, and parts of it ----------------------------------------------------------------------------------------


def test_a_run_that_was_interrupted_goes_on_to_the_same_records(run, tmp_path, small):
    again = tmp_path / "again"
    shutil.copytree(run, again)
    lost = ["excerpts-001-magnitude", "drawings-000", "settling-001", "detector-001"]
    for block in lost:
        (again / "records" / f"{block}.jsonl").unlink()
    assert "26 of 26 cases are done; 0 failed" in veracity_run.report(run)
    assert "19 of 26 cases are done, 7 are not: every number below is of those that are" in veracity_run.report(again)
    veracity_run.veracity(Asked(out=str(again)))  # nothing is said, so it goes on as it was begun
    for block in lost:
        for place in ("records", "arrays"):
            suffix = "jsonl" if place == "records" else "npz"
            assert (again / place / f"{block}.{suffix}").read_bytes() == (run / place / f"{block}.{suffix}").read_bytes()
    assert (again / "tables.md").read_text() == (run / "tables.md").read_text()


@pytest.mark.parametrize("experiment", veracity_run.EXPERIMENTS)
def test_each_experiment_is_told_by_itself(run, experiment):
    told = json.loads(veracity_run.report(run, True, experiment))
    sections = set(told) & set(veracity_run.EXPERIMENTS)
    assert sections == (set(veracity_run.EXPERIMENTS) - {"all"} if experiment == "all" else {experiment})
    assert {claim["experiment"] for claim in told["claims"]} <= sections
    text = veracity_run.report(run, False, experiment)
    assert text.count("\n## ") >= 1
    assert ("## Figures" in text) == (experiment == "all")


def test_drawings_can_be_had_alone(tmp_path, small):
    folder = veracity_run.veracity(Asked("drawings", **SMALL, out=str(tmp_path / "alone")))
    assert {r["kind"] for r in Store.open(folder).records()} == {"drawings"}
    assert [path.name for path in (folder / "figures").glob("*.png")] == ["figure-1-drawings.png"]
    text = (folder / "tables.md").read_text()
    assert "Figure 1" in text
    assert "Table 1:" not in text
    with pytest.raises(ValueError, match="holds a run with drawings, and nothing of flips; choose another folder"):
        veracity_run.report(folder, False, "flips")
    with pytest.raises(ValueError, match="nothing of flips"):
        veracity_run.veracity(Asked("flips", out=str(folder)))


def test_other_settings_than_those_of_the_run_are_refused(run, tmp_path, small):
    again = tmp_path / "again"
    shutil.copytree(run, again)
    with pytest.raises(ValueError, match="samples was 64, now 128"):
        veracity_run.veracity(Asked(samples=128, out=str(again)))


def test_a_share_of_the_songs_can_be_asked_for(tmp_path, small):
    folder = veracity_run.veracity(Asked("detector", scale=0.5, out=str(tmp_path / "half")))
    assert [r["song"] for r in Store.open(folder).records()] == ["hum 0"]


def test_a_study_that_was_sent_to_a_worker_does_the_same(run, small):
    packed = io.BytesIO()
    loky.backend.reduction.dump(veracity_run._study(Asked(**SMALL, tune=True), None), packed)  # as the engine does
    sent = pickle.loads(packed.getvalue())
    for block in [block for block in sent.blocks() if block.id in ("settling-001", "detector-000")]:
        with engine.single_threaded():
            records, _ = encode(block, list(sent.work(block, lambda calls: None)), Store.open(run).form)
        assert records == (run / "records" / f"{block.id}.jsonl").read_bytes()


# --- a user's own songs, or a spectrogram ------------------------------------------------------------------------------


@pytest.fixture
def annotated(tmp_path):
    """Hums as the Jamendo songs lie on disk."""
    soundfile = pytest.importorskip("soundfile")
    for split, number in (("train", 3), ("valid", 4), ("test", 5)):
        (tmp_path / "songs" / split).mkdir(parents=True)
        soundfile.write(tmp_path / "songs" / split / f"{split}.wav", hum(number).wave, 22050, subtype="FLOAT")
        (tmp_path / "songs" / f"{split}.lab").write_text("0 1.8 nosing\n1.8 3.2 sing\n3.2 4 nosing\n")
    return tmp_path / "songs"


def test_songs_of_one_s_own_are_run_once_and_then_reported(annotated, tmp_path, monkeypatch):
    monkeypatch.setattr(veracity_run, "_read", lambda model: WhiteBox())
    out = str(tmp_path / "own")
    folder = veracity_run.veracity(Asked("detector", data=str(annotated), model="net.safetensors", out=out))
    text = (folder / "tables.md").read_text()
    assert "Run on 1 of 1 test songs (songs: 1 + 1 + 1 songs to train, tune and test on, with the detector net.safetensors)" in text
    assert "not comparable one to one" in text
    monkeypatch.setattr(veracity_run, "_study", lambda *args: pytest.fail("a run of a user's songs is reported on, not begun again"))
    assert veracity_run.veracity(Asked("detector", out=out)) == folder


def test_songs_need_a_detector_that_was_trained_on_such(annotated, tmp_path):
    with pytest.raises(ValueError, match=r"--model must name a detector .* whytrust train singing-voice --data"):
        veracity_run.veracity(Asked(data=str(annotated), out=str(tmp_path / "none")))
    with pytest.raises(ValueError, match="must name the file of a detector"):
        veracity_run.veracity(Asked(data=str(annotated), model=str(tmp_path / "no.safetensors"), out=str(tmp_path / "none")))
    assert not (tmp_path / "none").exists()


def test_a_spectrogram_is_drawn_on_in_every_excerpt_with_every_shape(tmp_path, small):
    whole = WhiteBox().hearing.log_mel(hum(5).wave)
    piece = np.concatenate([whole[:60], whole[-60:], whole[:115]])  # nobody sings in the first excerpt's middle
    np.save(tmp_path / "piece.npy", piece)
    asked = Asked("drawings", data=str(tmp_path / "piece.npy"), samples=64, out=str(tmp_path / "drawn"))
    folder = veracity_run.veracity(asked)
    made = list(Store.open(folder).records())
    assert len(made) == 2 * 7
    assert {r["shape"] for r in made} == {"wave", "heart", "star", "house", "smile", "fish", "horse"}
    hits = [r for r in made if r["status"] == "ok"]
    assert hits
    assert all(r["order"][0] == REASON and r["shape"] == r["case"].rpartition(".")[2] for r in hits)
    assert "piece.npy, a log-mel spectrogram of 235 frames" in (folder / "tables.md").read_text()
    assert (folder / "figures" / "figure-1-drawings.png").is_file()
    assert veracity_run.veracity(Asked("drawings", out=str(tmp_path / "drawn"))) == folder  # reported on again


@pytest.mark.parametrize(("wrong", "message"), [
    ({"experiment": "flip"}, r"got 'flip' \(did you mean 'flips'\?\)"),
    ({"samples": 63}, "samples must be a whole number >= 64, got 63"),
    ({"each": 0}, "each must be a whole number >= 1"),
    ({"iterations": True}, "iterations must be a whole number"),
    ({"scale": 1.5}, r"scale must lie in \(0, 1\]"),
    ({"variant": "mine"}, "variant must be authors"),
    ({"data": "piece.npy"}, "can be drawn on and no more: ask for drawings")])
def test_what_cannot_be_asked_is_told_at_once(wrong, message):
    with pytest.raises(ValueError, match=message):
        Asked(**wrong)


def test_a_run_knows_which_paper_it_is_of(run, tmp_path):
    assert reproductions.report_of(run).args == (veracity_run.report,)
    assert reproductions.report_of(tmp_path) is None


def test_the_study_refuses_no_song_that_has_no_labels():
    from dataclasses import replace

    from whytrust.models.songs import Songs

    silent = Songs(("hum 0",), lambda i: replace(hum(0), sung=None))
    study = veracity.VeracityStudy(WhiteBox(), SongSet("hums", hums(), hums(), silent), kinds=("detector",))
    (result,) = study.work(study.blocks()[0], lambda calls: None)
    assert result.record["status"] == "not found"


def one_bad(*numbers):
    """Songs of which the first cannot be read."""
    def make(number):
        if not number:
            raise ValueError("song 0 must hold finite samples, got some that are not")
        return hum(numbers[number - 1])

    return Songs(("bad", *(f"hum {n}" for n in numbers)), make)


def test_a_first_song_that_cannot_be_read_does_not_hide_the_others(tmp_path):
    grid = {"waveform": ({"epsilon": 0.01, "step": 0.0003, "alpha": 2.0},), "magnitude": ()}
    study = veracity.VeracityStudy(WhiteBox(), SongSet("hums", hums(), one_bad(2), one_bad(1)), each=1, samples=64, iterations=8,
                                   grid=grid, tuned_iterations=2, kinds=("detector", "tuning"))
    records = {r["case"]: r for r in engine.run(study, tmp_path / "run").records()}
    assert "must hold finite samples" in records["detector.000"]["error"]
    assert records["detector.001"]["status"] == "ok"
    assert (records["tuning.waveform.000"]["status"], records["tuning.waveform.000"]["songs"]) == ("ok", 1)


def test_where_no_song_can_be_read_the_first_error_is_told(tmp_path):
    study = veracity.VeracityStudy(WhiteBox(), SongSet("hums", hums(), one_bad(), one_bad()), each=1, samples=64, iterations=8)
    with pytest.raises(ValueError, match="song 0 must hold finite samples"):
        engine.run(study, tmp_path / "run")
