"""The same bytes on every engine, whatever happens to those who work: killed, hung, grown too large, gone with their machine."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from toy import Toy, gone, shards
from whytrust import engine, integrity
from whytrust.engine import Dask, Here, Processes, run
from whytrust.engine import supervised as watching
from whytrust.store import Store

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(sys.modules["toy"])

ENGINES = {"here": Here(), "one process": Processes(1), "two processes": Processes(2), "dask": Dask(), "dask, two": Dask(workers=2)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The shards of a run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    run(Toy(), folder)
    return shards(folder)


def failures(store):
    return {record["case"]: record["error"] for record in store.records() if record.get("status") == "failed"}


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_gives_the_same_bytes(tmp_path, whole, name):
    store = run(Toy(), tmp_path, ENGINES[name])
    assert shards(tmp_path) == whole
    assert not store.problems
    assert not store.journal.notes()


@pytest.mark.parametrize("order", [("here", "two processes", "dask"), ("dask, two", "here", "one process")])
def test_a_run_may_change_its_engine_whenever_it_is_interrupted(tmp_path, whole, order, monkeypatch):
    put, left = Store.put, [2]

    def interrupted(self, block, shard):
        put(self, block, shard)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    monkeypatch.setattr(Store, "put", interrupted)
    for name in order[:-1]:
        left[0] = 2
        with pytest.raises(KeyboardInterrupt):
            run(Toy(), tmp_path, ENGINES[name])
    left[0] = -1
    store = run(Toy(), tmp_path, ENGINES[order[-1]])
    assert shards(tmp_path) == whole
    assert len(store.sessions()) == 3


# --- workers that are lost --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["two processes", "dask"])
def test_a_case_that_kills_workers_three_times_is_set_aside_and_the_others_are_done(tmp_path, whole, name):
    diary = tmp_path / "deaths"

    def die(case):
        if case == "02b":
            with open(diary, "a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGSEGV)

    store = run(Toy(trouble=die), tmp_path / "run", ENGINES[name])
    assert diary.read_text() == "xxx"
    assert failures(store) == {"02b": "set aside: the worker process was ended by SIGSEGV; it was tried 3 times"}
    assert store.journal.notes() == ["block 02 was worked on one by one: the worker process was ended by SIGSEGV",
                                     "case 02b was set aside: the worker process was ended by SIGSEGV; it was tried 3 times"]
    found = {record["case"]: record for record in store.records()}
    assert found["02a"] == {record["case"]: record for record in Store.open(run(Toy(), tmp_path / "sound").folder).records()}["02a"]
    rest = {n: data for n, data in shards(tmp_path / "run").items() if "/02." not in n}
    assert rest == {n: data for n, data in whole.items() if "/02." not in n}
    assert not integrity.check(store).damaged


@pytest.mark.parametrize(("how", "words"), [(os._exit, "SystemExit|ended by itself"), (sys.exit, "SystemExit: 3")])
def test_a_model_that_exits_takes_its_case_with_it_and_no_more(tmp_path, how, words):
    def leave(case):
        if case == "01a":
            how(3)

    store = run(Toy(trouble=leave), tmp_path / "run", Processes(2))
    told = failures(store)
    assert set(told) == ({"01a"} if how is os._exit else {"01a", "01b"})  # who raises fails with its block, as any error does
    assert re.search(words, told["01a"])
    if how is sys.exit:
        here = run(Toy(trouble=leave), tmp_path / "here")
        assert failures(here) == told


def test_a_model_that_hangs_is_ended_after_its_time_and_set_aside(tmp_path):
    def hang(case):
        if case == "03a":
            time.sleep(1000)

    start = time.monotonic()
    store = run(Toy(trouble=hang), tmp_path / "run", Processes(2, seconds=1.0))
    assert time.monotonic() - start < 60
    assert failures(store) == {"03a": "set aside: it took longer than 1 s; it was tried 2 times"}
    assert store.journal.notes()[0] == "block 03 was worked on one by one: it took longer than 2 s, 1 for each of 2"


def test_a_model_that_hangs_on_a_cluster_is_ended_too(tmp_path):
    def hang(case):
        if case == "00b":
            time.sleep(1000)

    store = run(Toy(2, trouble=hang), tmp_path / "run", Dask(seconds=0.5))
    assert failures(store) == {"00b": "set aside: it took longer than 0.5 s; it was tried 2 times"}


def test_a_worker_that_leaks_is_replaced_between_blocks(tmp_path, whole, monkeypatch):
    diary = tmp_path / "diary"
    kept = []

    def leak(case):
        kept.append(bytearray(40 << 20))

    monkeypatch.setattr(watching, "installed", lambda: 10**12)
    before = run(Toy(trouble=leak, diary=str(diary)), tmp_path / "large", Processes(1))
    assert len(diary.read_text().split()) == 1
    assert not before.journal.notes()
    diary.unlink()
    monkeypatch.setattr(watching, "installed", lambda: int(300e6 / watching.SHARE))
    store = run(Toy(trouble=leak, diary=str(diary)), tmp_path / "run", Processes(1))
    assert 2 <= len(diary.read_text().split()) <= 5
    assert shards(tmp_path / "run") == whole
    assert not failures(store)


def test_a_case_that_outgrows_its_memory_is_ended_before_the_machine_is_full(tmp_path, monkeypatch):
    def swell(case):
        kept = []
        while case == "01a":
            kept.append(bytearray(os.urandom(1024) * (16 << 10)))
            time.sleep(0.02)

    monkeypatch.setattr(watching, "installed", lambda: int(600e6 / watching.SHARE))
    store = run(Toy(3, trouble=swell), tmp_path / "run", Processes(1))
    told = failures(store)
    assert set(told) == {"01a"}
    assert "the worker process had grown to 0." in told["01a"]
    assert "and may have 0.6" in told["01a"]


class Talking(Toy):
    """A study that never ends at one case, and never falls silent either."""

    def work(self, block, on_calls):
        kept = []
        while "01a" in block.cases:
            on_calls(1)
            time.sleep(0.01)
            if self.trouble:
                kept.append(bytearray(os.urandom(1024) * (8 << 10)))
        yield from super().work(block, on_calls) if not self.trouble else Toy(self.blocks_).work(block, on_calls)


def test_a_model_that_goes_on_answering_for_ever_is_ended_after_its_time_too(tmp_path):
    store = run(Talking(3), tmp_path / "run", Processes(1, seconds=1.0))
    assert failures(store) == {"01a": "set aside: it took longer than 1 s; it was tried 2 times"}


def test_one_that_grows_while_it_answers_is_ended_too(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "installed", lambda: int(500e6 / watching.SHARE))
    store = run(Talking(3, trouble=len), tmp_path / "run", Processes(1, seconds=60))
    assert set(failures(store)) == {"01a"}
    assert "the worker process had grown to 0." in failures(store)["01a"]


class Heavy(Toy):
    """A model whose memory grows with its batch, beyond what a worker may have."""

    def work(self, block, on_calls):
        import whytrust as wt

        def sums(batch):
            held = [bytearray(os.urandom(1024) * (16 << 10)) for _ in batch]  # 16 MB an input
            time.sleep(0.5 * len(held) / len(batch))
            return np.column_stack([batch.sum(axis=1), -batch.sum(axis=1)])

        scores = wt.model(sums)(np.ones((64 if block.id == "01" else 4, 3)))
        for result in super().work(block, on_calls):
            yield engine.Result({**result.record, "score": float(scores.sum())})


def test_where_a_batch_outgrows_the_worker_it_is_tried_again_with_half_and_that_is_said(tmp_path, monkeypatch):
    """64 inputs take 1 GB and 32 half of that: a worker may have 900 MB."""
    monkeypatch.setattr(watching, "installed", lambda: int(720e6 / watching.SHARE))
    store = run(Heavy(3), tmp_path / "run", Processes(1))
    assert not failures(store)
    (note,) = store.journal.notes()
    assert note.startswith("block 01 was tried again, with 1/2 of the inputs a model call: the worker process had grown to ")


def test_in_this_process_a_block_that_ended_the_run_twice_is_given_to_a_worker(tmp_path, whole):
    def die(case):
        if case == "02a":
            os._exit(7)

    study = Toy(trouble=die)
    for _ in range(2):
        child = os.fork()
        if child == 0:
            run(study, tmp_path / "run")
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    store = run(study, tmp_path / "run")
    assert set(failures(store)) == {"02a"}
    assert "ended by itself (exit code 7)" in failures(store)["02a"]
    assert not (tmp_path / "run" / "in_hand").exists()
    assert len(list(store.records())) == 10


class Stubborn(Toy):
    """A study that ends every process that opens it."""

    def __setstate__(self, state):
        super().__setstate__(state)
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_study_that_ends_those_who_load_it_stops_the_run_and_no_case_is_blamed(tmp_path):
    study = Stubborn(diary=str(tmp_path / "diary"))
    with pytest.raises(TypeError, match=r"could not be opened in a worker process \(the worker process was ended by SIGKILL, .* 3 times, while it loaded the study\); use jobs=1"):
        run(study, tmp_path / "run", Processes(1))
    assert len((tmp_path / "diary").read_text().split()) == 3
    assert not list(Store.open(tmp_path / "run").records())


def test_a_run_that_is_done_asks_nobody(tmp_path, whole):
    run(Toy(), tmp_path)
    for name in ("two processes", "dask"):
        run(Stubborn(), tmp_path, ENGINES[name])
    assert shards(tmp_path) == whole


def test_what_a_model_prints_and_reads_does_not_disturb_the_work(tmp_path, whole, capfd):
    def chatter(case):
        print("hello from", case)
        sys.stdout.flush()
        os.write(1, b"raw bytes\n")
        assert sys.stdin.read() == ""

    store = run(Toy(trouble=chatter), tmp_path, Processes(2))
    assert not failures(store)
    assert shards(tmp_path) == whole
    out, err = capfd.readouterr()
    assert out == ""
    assert "hello from 00a" in err


def test_a_process_that_the_model_began_does_not_outlive_it(tmp_path):
    diary = tmp_path / "children"

    def begin(case):
        child = subprocess.Popen(["sleep", "1000"])
        with open(diary, "a") as file:
            file.write(f"{child.pid}\n")

    run(Toy(1, trouble=begin), tmp_path / "run", Processes(1))
    assert gone(diary.read_text().split())


class Asking(Toy):
    """A study that asks the model about some inputs to say what it is."""

    first = 0

    def manifest(self):
        self.trouble(f"{self.first:02d}a")
        return {**super().manifest(), "hashes": {"first": str(self.first)}}

    def shifted(self, by):
        other = type(self)(self.blocks_, self.seed, self.trouble)
        other.first = by
        return other


@pytest.mark.parametrize("how", ["hangs", "exits"])
@pytest.mark.parametrize("name", ["processes", "dask"])
def test_a_model_that_fails_on_the_first_inputs_does_not_take_the_run_with_it(tmp_path, how, name, monkeypatch):
    monkeypatch.setattr(watching, "SETTLING", 0.5)

    def trouble(case):
        if case in ("00a", "01a"):
            time.sleep(1000) if how == "hangs" else os._exit(3)

    seconds = 0.2 if how == "hangs" else None
    engines = {"processes": Processes(1, seconds=seconds), "dask": Dask(seconds=seconds)}
    store = run(Asking(3, trouble=trouble), tmp_path, engines[name])
    assert set(failures(store)) == {"00a", "01a"}
    assert store.manifest["hashes"] == {"first": "2"}
    assert len(run(Asking(3, trouble=trouble), tmp_path, engines[name]).sessions()) == 2  # it asks the same, and is the same run


def test_where_the_model_answers_for_no_input_that_is_told_before_there_is_a_run(tmp_path):
    with pytest.raises(ValueError, match=r"the model must answer for some of the inputs .* others were asked about 3 times \(the worker process ended by itself \(exit code 3\)\)"):
        run(Asking(3, trouble=lambda case: os._exit(3)), tmp_path / "run", Processes(1))
    assert not (tmp_path / "run").exists()


def test_an_audit_whose_first_row_ends_the_process_is_done_but_for_that_row(tmp_path):
    import whytrust as wt

    rows = np.random.default_rng(0).normal(size=(40, 3))
    rows[0] = 100.0

    def model(batch):
        if (np.asarray(batch) == 100.0).all(axis=1).any():
            os._exit(3)
        return np.column_stack([batch @ [1, 1, 1] > 0, batch @ [1, 1, 1] <= 0]).astype(float)

    audit = wt.audit(model, rows[:4], ["occlusion"], background=rows[1:], block=2, out=tmp_path / "run", jobs=Processes(1))
    assert list(failures(audit.store)) == ["00000"]


class Chorus(Toy):
    """A study that asks its model from many threads at once."""

    def work(self, block, on_calls):
        threads = [threading.Thread(target=lambda: [on_calls(1) or time.sleep(0.001) for _ in range(300)]) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        yield from super().work(block, on_calls)


def test_model_calls_may_be_told_from_many_threads(tmp_path, whole, monkeypatch):
    counted = []
    monkeypatch.setattr(engine.CaseProgress, "__call__", lambda self, calls: counted.append(calls))
    store = run(Chorus(), tmp_path, Processes(2))
    assert not store.journal.notes()
    assert shards(tmp_path) == whole
    assert sum(counted) == 5 * (16 * 300 + 2 * 7)


def test_an_answer_that_cannot_be_read_costs_its_worker_and_no_more(tmp_path):
    """The worker is made to send, at one block, a message that raises where it is read."""
    class Poisoned(Toy):
        def work(self, block, on_calls):
            if "01a" in block.cases:
                import whytrust.engine.worker as mine

                mine.send_pickled(on_calls.answers, b"cnowhere\nmissing\n.")
                time.sleep(1000)
            yield from super().work(block, on_calls)

    store = run(Poisoned(3), tmp_path, Processes(1))
    assert set(failures(store)) == {"01a"}
    assert "the answer of the worker process could not be read (ModuleNotFoundError" in failures(store)["01a"]


def test_a_model_that_closes_every_file_costs_its_case_and_no_more(tmp_path):
    def close(case):
        if case == "01a":
            os.closerange(3, 200)

    store = run(Toy(2, trouble=close), tmp_path, Processes(1))
    assert set(failures(store)) == {"01a"}


def test_what_a_model_began_goes_when_the_model_dies_by_itself(tmp_path):
    diary = tmp_path / "children"

    def begin_and_die(case):
        child = subprocess.Popen(["sleep", "1000"])
        with open(diary, "a") as file:
            file.write(f"{child.pid}\n")
        os._exit(1)

    store = run(Toy(1, trouble=begin_and_die), tmp_path / "run", Processes(1))
    assert len(failures(store)) == 2
    assert gone(diary.read_text().split())


def busy(case):
    import re

    re.match("(a|a)*b", "a" * 60)  # for ever, and no other thread gets a turn


def test_a_worker_whose_model_lets_nobody_else_run_ends_with_the_run(tmp_path):
    diary = tmp_path / "diary"
    child = os.fork()
    if child == 0:
        run(Toy(trouble=busy, diary=str(diary)), tmp_path / "run", Processes(1))
        os._exit(0)
    while not diary.exists() or len(diary.read_text().split()) < 1:
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert gone(diary.read_text().split())


def test_an_interrupt_is_not_taken_for_the_end_of_the_process(tmp_path, whole):
    def interrupt(case):
        if case == "02b":
            raise KeyboardInterrupt

    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            run(Toy(trouble=interrupt), tmp_path)
        assert not (tmp_path / "in_hand").exists()
    run(Toy(), tmp_path)
    assert shards(tmp_path) == whole


def test_more_workers_than_there_is_memory_for_are_refused_before_any_is_begun(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "installed", lambda: 8 << 30)
    with pytest.raises(ValueError, match=r"jobs must leave each worker 256 MB of memory, and 1000 would have 6 MB each; as many jobs as there are cores"):
        run(Toy(), tmp_path / "run", Processes(1000))
    assert not (tmp_path / "run").exists()


# --- a cluster --------------------------------------------------------------------------------------------------------


def dask(*words):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DASK_DISTRIBUTED__WORKER__MEMORY__TERMINATE": "False"}
    return subprocess.Popen([sys.executable, "-m", "dask", *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def another(address, place):
    """One more worker."""
    return dask("worker", address, "--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(place))


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A scheduler and two workers, as processes of their own; (address, workers)."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", address.rsplit(":", 1)[1], "--no-dashboard", "--no-show")
    workers = [another(address, tmp_path / f"w{i}") for i in range(2)]
    yield address, workers
    for process in (*workers, scheduler):
        process.kill()
        process.wait()


def test_a_cluster_gives_the_same_bytes_and_its_lost_workers_blocks_are_done_by_others(tmp_path, whole, cluster):
    address, workers = cluster
    victim = tmp_path / "first"

    def slow(case):
        time.sleep(0.1)
        if case[:2] == "01":
            victim.touch()

    def kill():
        while not victim.exists():
            time.sleep(0.02)
        workers[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    store = run(Toy(trouble=slow), tmp_path / "run", Dask(address))
    killer.join()
    assert workers[0].wait(5) == -signal.SIGKILL
    assert shards(tmp_path / "run") == whole
    assert not failures(store)


def test_a_cluster_can_be_used_again_after_an_interrupt_and_loses_all_of_its_workers_in_between(tmp_path, whole, cluster, monkeypatch):
    address, workers = cluster
    put = Store.put

    def interrupted(self, block, shard):
        put(self, block, shard)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "put", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(Toy(), tmp_path / "run", Dask(address))
    begun = tmp_path / "begun"

    def slow(case):
        begun.touch()
        time.sleep(0.2)

    def replaced():
        while not begun.exists():
            time.sleep(0.02)
        for worker in workers:
            worker.kill()
        workers.append(another(address, tmp_path / "new"))

    killer = threading.Thread(target=replaced)
    killer.start()
    store = run(Toy(trouble=slow), tmp_path / "run", Dask(address))
    killer.join()
    assert shards(tmp_path / "run") == whole
    assert not failures(store)


@pytest.mark.parametrize("address", ["nonsense", "http://nowhere", "tcp://127.0.0.1:22x", "tcp://", "", 5])
def test_what_is_no_address_is_told_at_once(address):
    with pytest.raises(ValueError, match="scheduler must be an address such as tcp://10"):
        Dask(address)
    with pytest.raises(ValueError, match="a scheduler has workers of its own: leave workers=2 out"):
        Dask("tcp://10.0.0.1:8786", workers=2)


def test_the_cluster_of_this_machine_listens_to_this_machine_alone(tmp_path):
    psutil = pytest.importorskip("psutil")
    seen = set()
    study, put = Toy(2), Store.put

    def looked(self, block, shard):
        seen.update(c.laddr.ip for c in psutil.Process().net_connections("tcp") if c.status == psutil.CONN_LISTEN)
        put(self, block, shard)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Store, "put", looked)
        run(study, tmp_path, Dask())
    assert seen == {"127.0.0.1"}


def test_a_scheduler_that_is_not_there_is_one_clear_error(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["whytrust.engine.dask"], "WAIT", 0.5)
    with pytest.raises(ConnectionError, match=r"a dask scheduler with at least one worker must answer at tcp://127\.0\.0\.1:9 within .*begin them with `dask scheduler`"):
        run(Toy(), tmp_path, Dask("tcp://127.0.0.1:9"))


@pytest.mark.parametrize(("make", "message"), [(lambda: Processes(0), "jobs must be"), (lambda: Processes(2, seconds=0), "--timeout"), (lambda: Dask(workers="2"), "jobs must be"),
                                               (lambda: Dask(seconds=float("nan")), "--timeout"), (lambda: engine.chosen("dask"), "an engine of whytrust")])
def test_engines_refuse_what_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_without_dask_the_extra_is_named(tmp_path, monkeypatch):
    import whytrust

    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(whytrust.MissingExtra, match=r"whytrust\[dask\]"):
        run(Toy(), tmp_path, Dask())
    assert Path(tmp_path).exists()
