import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whytrust.attacks.carlini_wagner import CarliniWagner
from whytrust.attacks.song import attack_song

HOP = 10


@dataclass(frozen=True)
class Linear:
    """A detector whose logit of frame t is the weighted sum of that frame's own samples: all is known of it."""

    weights: np.ndarray  # (HOP,)
    bias: float = 0.0

    def checked(self, song):
        return np.asarray(song, dtype=np.float32)

    def logits(self, song):
        return np.asarray(song, dtype=np.float64).reshape(-1, HOP) @ self.weights + self.bias

    def vjp(self, song, weights):
        logits = self.logits(song)
        pulled = weights(logits, slice(0, len(logits)))
        return logits, np.outer(pulled, self.weights).astype(np.float32).ravel()


def song(frames=12, scale=0.02, seed=0):
    return (scale * np.random.default_rng(seed).standard_normal(frames * HOP)).astype(np.float32)


detector = Linear(np.linspace(-1, 1, HOP))


def test_exactly_the_frames_within_reach_turn():
    method = CarliniWagner(epsilon=0.01, step=0.001, alpha=1e6, iterations=60)
    found = attack_song(method, detector, song())
    reach = 0.01 * np.abs(detector.weights).sum()  # how far a logit can be moved
    before = detector.logits(song())
    np.testing.assert_array_equal(found.flipped, np.abs(before) < reach)
    assert 0 < found.flipped.sum() < 12
    assert found.iterations == 60


@pytest.mark.parametrize("variant", ["paper", "authors"])
def test_the_first_step_is_one_step_against_the_gradient(variant):
    method = CarliniWagner(epsilon=1.0, step=0.001, alpha=1e6, iterations=1, variant=variant, stop="never")
    found = attack_song(method, detector, song())
    up = np.where(found.sung, -1, 1)[:, None]
    np.testing.assert_allclose((found.adversarial - found.clean).reshape(-1, HOP),
                               0.001 * up * np.sign(detector.weights), atol=1e-7)


def test_adam_goes_on_in_the_direction_it_had():
    # A frame far from its border keeps its gradient's sign, so Adam's steps are all of size `step`.
    method = CarliniWagner(epsilon=1.0, step=1e-4, alpha=1e6, iterations=5, variant="authors", stop="never")
    found = attack_song(method, Linear(np.ones(HOP), 5.0), song())
    np.testing.assert_allclose(found.adversarial - found.clean, -5e-4, atol=1e-6)


def test_a_small_alpha_keeps_the_change_at_zero():
    # Σδ² pulls back as soon as δ has grown: with alpha near 0 the song only swings about itself.
    found = attack_song(CarliniWagner(epsilon=0.01, step=0.001, alpha=1e-9, iterations=41), detector, song())
    assert np.abs(found.adversarial - found.clean).max() <= 0.001 + 1e-8
    np.testing.assert_array_equal(found.flipped & (np.abs(detector.logits(song())) > 0.01), False)


def test_it_stops_when_every_frame_has_turned_and_goes_on_where_told_to():
    easy = song(scale=1e-4)
    stopped = attack_song(CarliniWagner(epsilon=0.01, step=0.001, alpha=1e6), detector, easy)
    assert stopped.flipped.all()
    assert stopped.iterations <= 2
    kept = attack_song(CarliniWagner(epsilon=0.01, step=0.001, alpha=1e6, iterations=20, stop="never"), detector, easy)
    assert kept.iterations == 20
    margin = attack_song(CarliniWagner(epsilon=0.01, step=0.001, alpha=1e6, margin=0.04), detector, easy)
    assert stopped.iterations < margin.iterations < 1000
    ahead = np.where(margin.sung, -1, 1) * detector.logits(margin.adversarial)
    assert ahead.min() >= 0.04


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-6, 0.5), st.floats(1e-6, 0.5), st.integers(0, 99), st.sampled_from(["paper", "authors"]))
def test_epsilon_holds_exactly(epsilon, step, seed, variant):
    clean = song(scale=1.0, seed=seed)
    found = attack_song(CarliniWagner(epsilon=epsilon, step=step, alpha=10.0, iterations=7, variant=variant, stop="never"),
                        detector, clean)
    assert np.abs(found.adversarial.astype(np.float64) - clean.astype(np.float64)).max() <= epsilon


def test_bounds_hold():
    clean = np.abs(song(scale=0.005))
    found = attack_song(CarliniWagner(epsilon=0.01, step=0.001, alpha=1e6, iterations=30, bounds=(0, None)), detector, clean)
    assert found.adversarial.min() >= 0


@dataclass(frozen=True)
class LinearInMagnitudes(Linear):
    signal: str = "magnitude"


def test_magnitudes_stop_at_zero_and_the_share_there_is_counted():
    """The logit is a sum with known weights, and every frame is to go up, so each value goes its way by 30 steps of 0.001 but
    ends at 0.01 from where it was, or at 0: what ends where can be counted without the attack."""
    clean = np.abs(song(scale=0.01))
    heard = LinearInMagnitudes(detector.weights, bias=-1.0)
    method = CarliniWagner(epsilon=0.01, step=0.001, alpha=1e6, iterations=30, stop="never")
    found = attack_song(method, heard, clean)
    wanted = np.maximum(clean.reshape(-1, HOP) + 0.01 * np.sign(detector.weights), 0)
    np.testing.assert_allclose(found.adversarial.reshape(-1, HOP), wanted, atol=2e-8)
    down = np.broadcast_to(detector.weights < 0, (12, HOP)).ravel()
    share = np.mean(down & (clean < 0.01))
    assert 0.2 < share < 0.5
    assert found.at_floor == found.facts()["at_floor"] == pytest.approx(share)
    assert f"{100 * share:.2g} % of its values moved to the floor 0" in repr(found)


def test_a_method_with_bounds_of_its_own_and_a_waveform_may_go_below_zero():
    clean = np.abs(song(scale=0.005))
    method = CarliniWagner(epsilon=0.01, step=0.001, alpha=1e6, iterations=30, stop="never", bounds=(-1, None))
    lower = attack_song(method, LinearInMagnitudes(detector.weights, -1.0), clean)
    wave = attack_song(CarliniWagner(epsilon=0.01, step=0.001, alpha=1e6, iterations=30), detector, clean)
    assert lower.adversarial.min() < 0
    assert lower.at_floor == 0  # none reaches -1
    assert wave.adversarial.min() < 0
    assert wave.at_floor is None


def test_the_threshold_decides_what_must_turn():
    clean = song()
    found = attack_song(CarliniWagner(epsilon=1.0, step=0.01, alpha=1e6), detector, clean, threshold=0.51)
    border = math.log(0.51 / 0.49)
    np.testing.assert_array_equal(found.sung, detector.logits(clean) > border)
    np.testing.assert_array_equal(detector.logits(found.adversarial) > border, ~found.sung)
    with pytest.raises(ValueError, match="between 0 and 1"):
        attack_song(CarliniWagner(), detector, clean, threshold=1.0)


def test_a_gradient_that_is_no_number_moves_nothing():
    class Broken(Linear):
        def vjp(self, song, weights):
            logits, gradient = super().vjp(song, weights)
            gradient[:HOP] = np.nan
            return logits, gradient

    found = attack_song(CarliniWagner(epsilon=0.1, step=0.01, alpha=1e6, iterations=3), Broken(detector.weights), song())
    np.testing.assert_array_equal(found.adversarial[:HOP], found.clean[:HOP])
    assert (found.adversarial[HOP:] != found.clean[HOP:]).any()


def test_facts_count_and_measure():
    found = attack_song(CarliniWagner(epsilon=0.01, step=0.001, alpha=1e6, iterations=60), detector, song())
    facts = found.facts()
    change = found.adversarial.astype(float) - found.clean
    assert facts["flipped"] == found.flipped.sum()
    assert facts["sung_flipped"] == (found.flipped & found.sung).sum()
    np.testing.assert_allclose(facts["signal_to_noise"], 10 * np.log10((found.clean.astype(float)**2).sum() / (change**2).sum()))
    unmoved = attack_song(CarliniWagner(iterations=1, epsilon=1e-9, step=1e-12), detector, song())
    assert unmoved.signal_to_noise == math.inf


def test_every_pass_is_told():
    told = []
    attack_song(CarliniWagner(iterations=5, stop="never"), detector, song(), on_calls=told.append)
    assert told == [12] * 6


def test_the_attacked_song_survives_the_disk(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    found = attack_song(CarliniWagner(epsilon=0.01, step=0.001, alpha=1e6, iterations=5), detector, song())
    path = found.save(tmp_path / "attacked.wav")
    again, rate = soundfile.read(path, dtype="float32")
    np.testing.assert_array_equal(again, found.adversarial)
    assert rate == 22050
    with pytest.raises(ValueError, match=r"must end in \.wav"):
        found.save(tmp_path / "attacked.mp3")
