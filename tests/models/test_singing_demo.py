"""The embedded detector: right on music it never heard, trained once, and read again as it was."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from whytrust.models import detection, singing_demo  # noqa: E402
from whytrust.models.singing_demo import Recipe, detector  # noqa: E402
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
