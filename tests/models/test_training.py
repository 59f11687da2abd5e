"""Training that goes on where it stopped, and says what it cannot be trained on; schedules of a few updates alone."""

import math
import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from noisy_songs import song

torch = pytest.importorskip("torch")

from whytrust.models import training  # noqa: E402
from whytrust.models.augmentation import Warp  # noqa: E402
from whytrust.models.front_end import FrontEnd  # noqa: E402
from whytrust.models.training import Schedule, prepared, train  # noqa: E402

TINY = Schedule(epochs=2, updates=2, batch=2)
RATE = 22050


def weights(net):
    return {name: value.clone() for name, value in net.state_dict().items()}


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one) and set(one) == set(other)


def stopped_after(updates):
    def stop(done, loss):
        if done == updates:
            raise KeyboardInterrupt
    return stop


def test_the_schedule_as_it_stands_is_the_papers():
    paper = Schedule()
    assert (paper.total, paper.batch, paper.rate, paper.decay, paper.frames, paper.span) == (40_000, 32, 1e-3, 0.85, 115, 164)
    assert training.TARGETS == (0.02, 0.98)


@pytest.mark.parametrize("after", [1, 3])
def test_a_run_that_is_interrupted_and_resumed_gives_the_same_bits(tmp_path, after):
    songs = [song(0), song(1)]
    at_once = weights(train(songs, TINY))
    with pytest.raises(KeyboardInterrupt):
        train(songs, TINY, tmp_path, stopped_after(after))
    told = []
    resumed = train(songs, TINY, tmp_path, lambda done, loss: told.append(done))
    assert told == list(range(after + 1, 5))
    assert same(weights(resumed), at_once)
    assert same(weights(train(songs, TINY, tmp_path, stopped_after(1))), at_once)  # it is done: nothing is left to interrupt


def test_ctrl_c_waits_for_the_update_in_hand(tmp_path):
    def press(done, loss):
        if done == 1:
            os.kill(os.getpid(), signal.SIGINT)
    found = signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in the background it may be ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            train([song()], TINY, tmp_path, press)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, found)
    told = []
    train([song()], TINY, tmp_path, lambda done, loss: told.append(done))
    assert told == [2, 3, 4]


def test_a_checkpoint_of_another_schedule_or_of_other_songs_is_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train([song()], TINY, tmp_path, stopped_after(1))
    with pytest.raises(ValueError, match="batch was 2 and is 3"):
        train([song()], replace(TINY, batch=3), tmp_path)
    with pytest.raises(ValueError, match=r"data was '[0-9a-f]{12}' and is '[0-9a-f]{12}'"):
        train([song(5)], TINY, tmp_path)
    with pytest.raises(ValueError, match="data was"):  # the same sound with other labels is other data
        train([replace(song(), sung=((0.5, 2.0),))], TINY, tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint"])
def test_a_broken_checkpoint_is_one_clear_error(tmp_path, content):
    (tmp_path / "checkpoint-seed-0.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=r"must be the checkpoint of a training.* delete it to begin again"):
        train([song()], TINY, tmp_path)


def test_seeds_differ_and_the_same_seed_does_not():
    one = Schedule(epochs=1, updates=1, batch=2)
    assert same(weights(train([song()], one)), weights(train([song()], one)))
    assert not same(weights(train([song()], one)), weights(train([song()], replace(one, seed=1))))


def test_torch_is_left_as_it_was_found():
    torch.manual_seed(5)
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    train([song()], replace(TINY, threads=threads + 1, epochs=1, updates=1))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_the_rate_falls_by_the_decay_from_epoch_to_epoch(monkeypatch):
    rates, step = [], torch.optim.Adam.step
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: (rates.append(self.param_groups[0]["lr"]), step(self))[1])
    train([song()], TINY)
    assert rates == pytest.approx([1e-3, 1e-3, 0.85e-3, 0.85e-3])


def test_magnitudes_are_kept_as_maps_that_only_their_own_sound_is_read_from(tmp_path):
    kept = prepared([song(0), song(1)], TINY, tmp_path)
    assert all(isinstance(one, np.memmap) for one in kept.magnitudes)
    held = prepared([song(0), song(1)], TINY, None)
    assert kept.digest == held.digest
    for one, other in zip(kept.magnitudes, held.magnitudes, strict=True):
        np.testing.assert_array_equal(one, other)
    for path in (tmp_path / "magnitudes").iterdir():
        path.write_bytes(path.read_bytes()[:1000])  # as after a full disk
    np.testing.assert_array_equal(prepared([song(0)], TINY, tmp_path).magnitudes[0], held.magnitudes[0])


def test_segments_are_the_front_ends_and_labels_those_of_their_ninth_frames():
    schedule = Schedule(batch=6, frames=133, augment=False)
    one = song(0, 4.0)
    heard, wanted, _ = prepared([one], schedule, None).segments(schedule, 3)
    assert heard.shape == (6, 133, 80)
    assert wanted.shape == (6, 3)
    log_mel = FrontEnd()(torch.from_numpy(one.wave)[None])[0].numpy()
    for segment, labels in zip(heard, wanted, strict=True):
        start = int(np.argmin([np.abs(log_mel[t:t + 133] - segment).max() for t in range(len(log_mel) - 132)]))
        np.testing.assert_allclose(segment, log_mel[start:start + 133], atol=1e-3)
        np.testing.assert_array_equal(labels, one.labels[start + 57:start + 133 - 57:9])


def test_labels_follow_a_stretch(monkeypatch):
    monkeypatch.setattr(Warp, "drawn", lambda rng: Warp(stretch=0.7))
    schedule = Schedule(batch=1, frames=295)
    one = song(0, 421 * 315 / RATE - 0.001, ((3.0, 3.2),))  # one place alone fits
    _, wanted, _ = prepared([one], schedule, None).segments(schedule, 0)
    np.testing.assert_array_equal(wanted[0], one.labels[np.rint(210 + (np.arange(57, 238, 9) - 147) / 0.7).astype(int)])


def test_every_place_of_every_song_is_as_likely_as_any_other():
    schedule = Schedule(batch=3000, augment=False)
    class Places:
        def __init__(self, number, frames): self.number, self.frames = number, frames
        def __len__(self): return self.frames
        def __getitem__(self, there):
            drawn.append((self.number, there.start))
            return np.zeros((115, 513), dtype=np.float32)
    drawn, lengths = [], (115, 120, 130)
    training.Material(tuple(Places(i, n) for i, n in enumerate(lengths)), tuple(np.zeros(n, bool) for n in lengths), "").segments(schedule, 0)
    counts = np.array([drawn.count((song, start)) for song, n in enumerate(lengths) for start in range(n - 114)])
    assert len(drawn) == counts.sum() == 3000
    assert ((counts - 3000 / 23) ** 2 / (3000 / 23)).sum() < 48.3  # chi² with 22 degrees of freedom, p = .001


@pytest.mark.parametrize(("songs", "words"), [
    ([], "at least one song to train on, got none"),
    ([song(0, 2.0)], r"song 0 must be at least 164 frames \(2.34 s\) long"),
    ([replace(song(0), wave=np.zeros(4 * RATE, dtype=np.float32))], "song 0: .*silent"),
    ([replace(song(0), wave=np.full(4 * RATE, np.nan, dtype=np.float32))], "song 0: .*finite"),
    ([song(0, sung=None)], "song 0 must come with the stretches in which somebody sings"),
    ([song(0, sung=())], "frames with singing and frames without, got 1 songs with no singing"),
    ([song(0, sung=((0.0, 9.0),))], "nothing but singing"),
])
def test_songs_that_cannot_be_trained_on_are_one_clear_error(songs, words):
    with pytest.raises(ValueError, match=words):
        train(songs, TINY)


def test_a_loss_that_is_no_number_ends_the_training():
    with pytest.raises(ValueError, match=r"the loss must stay finite, got (nan|inf) at update \d+; train with a lower rate"):
        train([song()], replace(TINY, rate=1e30, updates=4))


@pytest.mark.parametrize(("change", "words"), [({"frames": 114}, "frames must be a whole number of at least 115"), ({"batch": 0}, "batch"), ({"batch": 1}, "at least two answers"),
                                               ({"rate": math.nan}, "rate must be above 0"), ({"decay": 0}, "decay"), ({"dropout": 1.0}, "dropout must be a share"), ({"epochs": 1.5}, "epochs")])
def test_schedules_that_could_only_fail_later_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        replace(TINY, **change)
