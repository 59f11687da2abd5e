import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from toy import Toy, gone, shards
from whitebox import soak
from whytrust import folders
from whytrust.core import generator
from whytrust.engine import Result, run
from whytrust.progress import CaseProgress, duration, often
from whytrust.store import Store

for name in (__name__, "toy"):
    cloudpickle.register_pickle_by_value(sys.modules[name])  # workers do not know these files by their names


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The shards of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    run(Toy(), folder)
    return shards(folder)


def test_every_case_is_done_with_its_own_numbers(tmp_path):
    store = run(Toy(), tmp_path / "new" / "run")
    assert [(r["case"], r["score"]) for r in store.records()] == [(f"{b:02d}{c}", generator(0, f"{b:02d}{c}").normal()) for b in range(5) for c in "ab"]
    assert store.arrays("03b", "clean")["clean"].shape == (4, 5)


# --- interrupted ------------------------------------------------------------------------------------------------------


class Crash(BaseException):
    """As if the process were gone: nothing after it tidies up."""


class Steps:
    """Counts the steps that a run takes on the disk and in its work, and crashes at one of them."""

    def __init__(self, monkeypatch):
        self.left, self.gone = -1, False
        unlink, replace = Path.unlink, os.replace
        monkeypatch.setattr(folders, "open", self.open, raising=False)
        monkeypatch.setattr(os, "fsync", lambda file: self.step())
        monkeypatch.setattr(os, "replace", lambda a, b: (self.step(), replace(a, b), self.step()))
        monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: None if self.gone else unlink(path, missing_ok))

    def step(self, *case):
        self.left -= 1
        if self.left == 0:
            self.gone = True
            raise Crash

    def open(self, path, mode, opener=None):
        if mode == "rb":
            return io.FileIO(path, mode)
        self.step()
        file, step = io.FileIO(path, mode, opener=opener), self.step

        class InHalves(io.BufferedWriter):
            def write(self, data):
                super().write(data[:len(data) // 2])
                self.flush()
                step()
                super().write(data[len(data) // 2:])

        return InHalves(file)


@pytest.mark.parametrize("seed", range(20))
def test_a_run_that_crashes_at_any_step_ends_in_the_same_bytes(tmp_path, monkeypatch, whole, seed):
    rng, steps, crashes = np.random.default_rng(seed), Steps(monkeypatch), 0
    while True:
        steps.left, steps.gone = int(rng.integers(1, 70)), False
        try:
            store = run(Toy(trouble=steps.step), tmp_path / "run")
        except Crash:
            crashes += 1
            if (tmp_path / "run" / "manifest.json").exists():  # what a report reads meanwhile is right, if not all
                assert all(r["score"] == generator(0, r["case"]).normal() for r in Store.open(tmp_path / "run").records())
        else:
            break
    assert crashes > 0
    assert shards(tmp_path / "run") == whole
    assert not list(tmp_path.rglob("*.part"))
    assert all("had arrays and no records" in told for told in store.problems)


def forked(study, folder, jobs=1):
    """A process that does a run; a copy of this one, since starting another takes a second."""
    child = os.fork()
    if child == 0:
        try:
            run(study, folder, jobs)
        finally:
            os._exit(0)
    return child


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_killed_at_any_time_ends_in_the_same_bytes(tmp_path, whole, seed):
    rng, killed = np.random.default_rng(seed), 0
    study = Toy(trouble=lambda case: time.sleep(0.01))
    for _ in range(100 if soak() else 25):
        child = forked(study, tmp_path / "run")
        time.sleep(rng.uniform(0.005, 0.15))
        if os.waitpid(child, os.WNOHANG)[0]:
            break
        os.kill(child, signal.SIGKILL)
        killed += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    run(study, tmp_path / "run")
    assert killed > 0
    assert shards(tmp_path / "run") == whole


def test_an_interrupt_loses_the_block_in_hand_and_no_other(tmp_path, whole):
    def interrupt(case):
        if case == "02b":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Toy(trouble=interrupt), tmp_path)
    assert Store.open(tmp_path).finished() == {"00", "01"}
    done = []
    run(Toy(trouble=done.append), tmp_path)
    assert done == ["02a", "02b", "03a", "03b", "04a", "04b"]
    assert shards(tmp_path) == whole


# --- several processes ------------------------------------------------------------------------------------------------


def test_two_jobs_give_the_same_bytes_and_open_the_study_once_each(tmp_path, whole):
    me = os.getpid()

    def only_elsewhere(case):
        if os.getpid() == me:
            raise RuntimeError("this is the parent")
        if any(lib["num_threads"] > 1 for lib in threadpool_info()):
            raise RuntimeError("more than one thread")

    store = run(Toy(trouble=only_elsewhere, diary=str(tmp_path / "diary")), tmp_path / "run", jobs=2)
    assert shards(tmp_path / "run") == whole
    opened = (tmp_path / "diary").read_text().split()
    assert len(opened) == len(set(opened)) <= 2
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["arrays", "lock", "manifest.json", "records", "sessions.jsonl"]
    assert len(list(store.records())) == 10


def test_a_worker_that_dies_is_replaced_and_its_block_done_again(tmp_path, whole, capsys):
    flag = str(tmp_path / "flag")

    def die_once(case):
        if case == "03a" and not os.path.exists(flag):
            open(flag, "w").close()
            time.sleep(0.3)  # so that the other has done something
            os.kill(os.getpid(), signal.SIGKILL)

    study = Toy(trouble=die_once, diary=str(tmp_path / "diary"))
    store = run(study, tmp_path / "run", jobs=2)
    assert store.journal.notes() == ["block 03 was tried again: the worker process was ended by SIGKILL, as the system does where memory runs out"]
    assert "auditing: block 03 was tried again" in capsys.readouterr().err
    assert len((tmp_path / "diary").read_text().split()) == 3  # two, and one in the place of the lost one
    assert gone((tmp_path / "diary").read_text().split())
    assert shards(tmp_path / "run") == whole


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_an_interrupt_stops_the_workers_promptly(tmp_path, monkeypatch):
    def slow(case):
        if case[:2] != "00":
            time.sleep(60)

    put = Store.put

    def put_and_be_interrupted(self, block, shard):
        put(self, block, shard)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "put", put_and_be_interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(Toy(trouble=slow, diary=str(tmp_path / "diary")), tmp_path / "run", jobs=2)
    assert gone((tmp_path / "diary").read_text().split())
    assert Store.open(tmp_path / "run").finished() == {"00"}
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_workers_do_not_outlive_a_run_that_was_killed(tmp_path):
    diary, job = tmp_path / "diary", tmp_path / "job"
    study = Toy(trouble=lambda case: time.sleep(600), diary=str(diary))
    job.write_bytes(cloudpickle.dumps((run, study, tmp_path / "run")))
    # a process of its own, not a fork: a fork of one that has threads may wait for ever for a lock that one of them held
    does = "import pickle, sys; run, study, folder = pickle.load(open(sys.argv[1], 'rb')); run(study, folder, 2)"
    child = subprocess.Popen([sys.executable, "-c", does, job])
    workers = []
    for _ in range(6000):  # workers load slowly where the machine is busy
        workers = [int(pid) for pid in diary.read_text().split() if int(pid) != child.pid] if diary.exists() else []
        if workers:
            break
        assert child.poll() is None, f"the run ended with exit code {child.returncode}"
        time.sleep(0.05)
    with pytest.raises(BlockingIOError, match=f"process {child.pid}"):
        run(Toy(), tmp_path / "run")
    child.kill()
    child.wait()
    assert gone(workers)
    run(Toy(), tmp_path / "run")  # and the folder is free
    assert not list(tmp_path.rglob("*.part"))


def test_a_study_that_cannot_be_sent_says_so_and_works_with_one_job(tmp_path):
    study = Toy(trouble=[threading.Lock()].append)
    with pytest.raises(TypeError, match=r"must be picklable to be sent to worker processes .*use jobs=1"):
        run(study, tmp_path, jobs=2)
    assert not list(tmp_path.rglob("*.part"))
    assert len(list(run(study, tmp_path, jobs=1).records())) == 10


@pytest.mark.parametrize("jobs", [0, -1, 1.5, True, "2"])
def test_jobs_are_a_whole_number(tmp_path, jobs):
    with pytest.raises(ValueError, match="jobs must be a whole number >= 1"):
        run(Toy(), tmp_path, jobs=jobs)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_block_that_raises_is_recorded_as_failed_and_the_others_go_on(tmp_path, whole):
    def fail(case):
        if case == "01b":
            raise ValueError("no such thing")

    store = run(Toy(trouble=fail), tmp_path)
    failed = [r for r in store.records() if r.get("status") == "failed"]
    assert failed == [{"case": c, "status": "failed", "error": "ValueError: no such thing"} for c in ("01a", "01b")]
    rest = {name: data for name, data in shards(tmp_path).items() if "01" not in name}
    assert rest == {name: data for name, data in whole.items() if "01" not in name}
    again = []
    run(Toy(trouble=again.append), tmp_path)
    assert not again


def test_a_full_disk_stops_the_run_and_the_same_command_goes_on(tmp_path, monkeypatch, whole):
    replace = os.replace

    def full(source, target):
        if Path(target).name == "03.npz":
            raise OSError(28, "No space left on device")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(OSError, match=r"block 03 could not be written .* 3 of 5 blocks are finished and safe"):
            run(Toy(), tmp_path)
    run(Toy(), tmp_path)
    assert shards(tmp_path) == whole


def test_a_damaged_block_is_done_again(tmp_path, whole):
    run(Toy(), tmp_path)
    path = tmp_path / "records" / "02.jsonl"
    path.write_bytes(path.read_bytes().replace(b"0.", b"1.", 1))
    again = []
    store = run(Toy(trouble=again.append), tmp_path)
    assert again == ["02a", "02b"]
    assert "block 02 was damaged" in store.problems[0]
    assert {name: data for name, data in shards(tmp_path).items() if not name.endswith(".damaged")} == whole


def test_work_that_gives_other_cases_is_a_mistake_of_the_study_and_stops_the_run(tmp_path):
    class Wrong(Toy):
        def work(self, block, on_calls):
            return [Result({"case": "other"})]

    with pytest.raises(ValueError, match="one result for each case"):
        run(Wrong(), tmp_path)


# --- threads and progress ---------------------------------------------------------------------------------------------


def test_work_has_one_thread_and_afterwards_as_many_as_before(tmp_path, monkeypatch):
    class Torch:
        __version__, threads = "9.9", 4

        def get_num_threads(self):
            return self.threads

        def set_num_threads(self, number):
            self.threads = number

    seen, torch = [], Torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)

    def look(case):
        seen.append((torch.threads, os.environ["OMP_NUM_THREADS"], os.environ["MKL_NUM_THREADS"], *[lib["num_threads"] for lib in threadpool_info()]))

    with threadpool_limits(2):
        before = [lib["num_threads"] for lib in threadpool_info()]
        store = run(Toy(trouble=look), tmp_path)
        assert [lib["num_threads"] for lib in threadpool_info()] == before
    assert set(seen) == {(1, "1", "1", *[1] * len(before))}
    assert max(before) == 2
    assert torch.threads == 4
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "MKL_NUM_THREADS" not in os.environ
    assert store.sessions()[0]["torch"] == "9.9"


def test_the_time_left_is_from_what_this_run_did():
    progress = CaseProgress("auditing", total=300, before=200)
    progress.start = 100.0
    assert progress.words(101.0) == "200 of 300 inputs, at the next ones for 1 s"
    progress(2400)
    progress.finished(20)
    assert progress.words(120.0) == "220 of 300 inputs, 1.0 a second, 120 model calls a second, about 1 min 20 s left"  # 80 to go
    progress.finished(80)
    progress.workers = 2
    assert progress.words(200.0) == "300 of 300 inputs, 1.0 a second on 2 workers, 24 model calls a second, in 1 min 40 s"


@pytest.mark.parametrize(("seconds", "words"), [(0.2, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (80, "1 min 20 s"), (3599.7, "1 h 0 min"), (7500, "2 h 5 min")])
def test_a_duration_is_told_as_one_says_it(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_to_a_terminal_only_and_wiped(tmp_path, monkeypatch, terminal):
    class Screen(io.StringIO):
        def isatty(self):
            return terminal

    clock = iter(range(10**6))
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr("whytrust.progress.time.monotonic", lambda: float(next(clock)))
    run(Toy(), tmp_path, label="auditing")
    shown = screen.getvalue()
    assert ("auditing: 4 of 10 inputs" in shown) == terminal
    if terminal:
        assert shown.endswith("\r\x1b[K")
    else:  # it took long, by that clock
        assert shown.startswith("auditing: 10 of 10 inputs, ")
        assert shown.count("\n") == 1


def test_a_short_run_that_nobody_watches_says_nothing(tmp_path, capsys):
    run(Toy(), tmp_path)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("rate", "words"), [(25.3, "25 a second"), (1.25, "1.2 a second"), (0.5, "30 a minute"), (0.02, "1.2 a minute"), (0.001, "3.6 an hour")])
def test_a_rate_is_told_as_one_says_it(rate, words):
    assert often(rate) == words
