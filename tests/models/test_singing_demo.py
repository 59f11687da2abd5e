"""The embedded detector: right on music it never heard, trained once, and read again as it was."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from whytrust.models import demos, detection, singing_demo, songs, training  # noqa: E402
from whytrust.models.singing_demo import Recipe, detector  # noqa: E402
from whytrust.models.singing_voice import SingingVoiceNet, save  # noqa: E402
from whytrust.models.songs import synthesised  # noqa: E402
from whytrust.models.training import Schedule  # noqa: E402

TINY = Recipe(Schedule(epochs=1, updates=1, batch=2), pieces=(4, 2, 2), seconds=4.0)


def test_the_embedded_detector_errs_on_at_most_a_tenth_of_the_frames_of_unseen_pieces(singing_detector):
    net, facts = singing_detector
    assert facts["test"]["error"] <= 0.10
    again = detection.evaluate(net, synthesised(12345, 12, 10.0), facts["threshold"])
    assert again.error <= 0.2
    assert facts["test"]["frames"] == 100 * (1 + 220500 // 315)


def test_its_facts_say_what_it_is(singing_detector):
    _, facts = singing_detector
    assert facts["threshold"] in detection.THRESHOLDS
    assert set(facts) == {"threshold", "data", "schedule", "valid", "test"}
    assert "synthesised" in facts["data"]


def test_it_is_trained_once_and_the_same_net_is_read_again(tmp_path, monkeypatch):
    first, facts = detector(TINY, tmp_path)
    monkeypatch.setattr(singing_demo, "train", None)  # nothing may call it
    again, same = detector(TINY, tmp_path)
    assert facts == same
    for name, value in first.state_dict().items():
        assert torch.equal(again.state_dict()[name], value)


def test_a_dry_run_does_without_training(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(singing_demo, "train", None)  # nothing may call it
    made = []
    monkeypatch.setattr(songs, "piece", lambda *which: made.append(which))
    found = demos.load("singing", trained=False)
    assert isinstance(found.model, SingingVoiceNet)
    assert len(found.inputs) == 8
    assert found.songs.frames(3) == 701
    assert made == []
    assert "is not trained yet" in demos.training("singing")
    assert not list(tmp_path.iterdir())


def test_a_net_that_was_trained_is_the_one_that_is_timed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    place = singing_demo.place_of()
    place.parent.mkdir(parents=True)
    save(SingingVoiceNet(), place, {"threshold": 0.25})
    assert demos.load("singing", trained=False).detector.threshold == 0.25
    assert demos.training("singing") == demos.training("digits") == demos.training("no demo") == ""


LONGER = Recipe(Schedule(epochs=3, updates=2, batch=2), pieces=(4, 2, 2), seconds=4.0)


class Killed(BaseException):
    """What no code expects, as a signal that ends the process."""


def test_a_training_that_was_killed_goes_on_and_ends_with_the_same_weights(tmp_path, monkeypatch):
    whole, facts = detector(LONGER, tmp_path / "at once")
    update, asked = training._update, []

    def killed(*given):
        asked.append(given[-1])
        if len(asked) == 4:  # in the second epoch
            raise Killed
        return update(*given)

    monkeypatch.setattr(training, "_update", killed)
    with pytest.raises(Killed):
        detector(LONGER, tmp_path / "killed")
    (checkpoint,) = (tmp_path / "killed").glob("*.checkpoint")
    net, same = detector(LONGER, tmp_path / "killed")
    assert asked == [0, 1, 2, 3, 2, 3, 4, 5]  # from the end of the first epoch
    assert same == facts
    for name, value in whole.state_dict().items():
        assert torch.equal(net.state_dict()[name], value)
    assert not checkpoint.exists()


def test_a_checkpoint_that_cannot_be_read_is_deleted_and_the_training_begins_again(tmp_path):
    place = singing_demo.place_of(TINY, tmp_path).with_suffix(".checkpoint")
    place.write_bytes(b"half of a file")
    with pytest.warns(UserWarning, match="the training begins again"):
        detector(TINY, tmp_path)
    assert not place.exists()


def test_what_cannot_be_read_is_made_again(tmp_path):
    _, facts = detector(TINY, tmp_path)
    (kept,) = tmp_path.glob("*.safetensors")
    kept.write_bytes(kept.read_bytes()[:500])
    with pytest.warns(UserWarning, match="could not be read and is made again"):
        assert detector(TINY, tmp_path)[1] == facts


def test_another_recipe_or_another_synthesiser_is_another_net(tmp_path, monkeypatch):
    detector(TINY, tmp_path)
    monkeypatch.setattr(singing_demo.inspect, "getsource", lambda module: "another")
    detector(TINY, tmp_path)
    detector(Recipe(TINY.schedule, (5, 6, 7), TINY.pieces, TINY.seconds), tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) == 3


def test_its_pieces_are_told_apart():
    assert len(set(singing_demo.RECIPE.seeds)) == 3
    assert not np.array_equal(synthesised(0, 1, 2.0)[0].wave, synthesised(1, 1, 2.0)[0].wave)
