"""Faults, caused: kills at any moment, full and read-only disks, clocks that go back, inputs that are renamed, memory that runs out."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import cloudpickle
import distributed.utils
import numpy as np
import pytest

import whytrust as wt
from toy import Toy, shards
from whitebox import soak
from whytrust import engine, integrity, journal, memory
from whytrust.engine import Dask, Here, Processes, run
from whytrust.memory import sparing
from whytrust.store import Store

for name in (__name__, "toy"):
    cloudpickle.register_pickle_by_value(sys.modules[name])

KILLS = 100 if soak() else 8
ENGINES = {"here": Here, "processes": lambda: Processes(2), "dask": lambda: Dask(workers=2)}


# --- kills ------------------------------------------------------------------------------------------------------------


def slowly(case):
    time.sleep(0.01)


def children(pid):
    """The processes that a process began."""
    found = []
    for place in Path("/proc").iterdir():
        try:
            if place.name.isdigit() and int((place / "stat").read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(place.name))
        except (OSError, IndexError):
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists() or not hasattr(os, "fork"), reason="looks at processes in /proc")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ENGINES)
def test_the_run_or_its_workers_killed_at_random_moments_ends_in_the_same_bytes(tmp_path, name):
    """A victim at each of so many random moments: the run itself, or one of its workers where it has any."""
    study, folder, rng = Toy(40, trouble=slowly), tmp_path / "run", random.Random(name)
    run(Toy(40), tmp_path / "whole")
    kills = {"the run": 0, "a worker": 0}
    while sum(kills.values()) < KILLS:
        child, killed = os.fork(), False
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                if name == "dask":  # a fork has no threads but its own: that of dask's pool, begun by an earlier test, is not there
                    distributed.utils._offload_executor = ThreadPoolExecutor(1)
                run(study, folder, ENGINES[name]())
                os._exit(0)
            finally:
                os._exit(1)
        while True:
            time.sleep(rng.uniform(0.02, 0.5 if name == "here" else 1.2))
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended and os.waitstatus_to_exitcode(status):
                assert killed  # a cluster may be gone with a process of its own that was killed: the run ends, and goes on later
                break
            if ended:
                assert shards(folder)  # all was done: begin again, there are kills left
                shutil.rmtree(folder)
                break
            workers = children(child)
            victim = rng.choice(workers) if workers and rng.random() < 0.6 else child
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                continue
            kills["the run" if victim == child else "a worker"] += 1
            killed = True
            if victim == child:
                os.waitpid(child, 0)
                break
            if sum(kills.values()) >= KILLS:
                os.waitpid(child, 0)
                break
        if (folder / "manifest.json").exists():  # what a report would read at this moment is right, if not all
            assert all(record.get("status") == "failed" or record["score"] is not None for record in Store.open(folder).records())
    store = run(study, folder, ENGINES[name]())
    failed = [record for record in store.records() if record.get("status") == "failed"]
    if failed:  # a case may be at hand three times when its worker is killed: then it is set aside with its reason, and no other
        assert all("it was tried 3 times" in record["error"] for record in failed)
        lost = {record["case"][:2] for record in failed}
    else:
        lost = set()
    whole = {n: data for n, data in shards(tmp_path / "whole").items() if Path(n).stem not in lost}
    assert {n: data for n, data in shards(folder).items() if Path(n).stem not in lost} == whole
    assert not integrity.check(store).damaged
    assert kills["the run"] > 0
    if soak():
        print(f"\n{name}: {kills}, {len(failed)} set aside")


# --- disks ------------------------------------------------------------------------------------------------------------


@contextmanager
def disk(place, size):
    """A disk of so many bytes, of its own."""
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be made here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")
@pytest.mark.parametrize("name", ["here", "processes"])
def test_a_disk_that_runs_full_stops_the_run_and_the_same_command_goes_on_when_there_is_room(tmp_path, name):
    def bulky(block):
        return {case: np.random.default_rng(int(block.id)).random(4000) for case in block.cases}

    class Bulky(Toy):
        def work(self, block, on_calls):
            for result in super().work(block, on_calls):
                yield engine.Result(result.record, {**result.arrays, "noise": bulky(block)[result.record["case"]]})

    run(Bulky(8), tmp_path / "whole")
    with disk(tmp_path / "small", 256 << 10) as small:
        (small / "ballast").write_bytes(b"x" * (100 << 10))
        with pytest.raises(OSError, match=r"could not be written to .*No space left on device.* blocks are finished and safe, nothing is lost: free space and give the same command again"):
            run(Bulky(8), small / "run", ENGINES[name]())
        done = Store.open(small / "run").finished()
        assert 0 < len(done) < 8
        subprocess.run(["mount", "-o", "remount,size=4m", str(small)], check=True)
        store = run(Bulky(8), small / "run", ENGINES[name]())
        assert shards(small / "run") == shards(tmp_path / "whole")
        assert all("had arrays and no records" in told for told in store.problems)


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")
def test_a_read_only_folder_is_told_before_any_work_and_can_be_read(tmp_path):
    with disk(tmp_path / "disk", 1 << 20) as place:
        run(Toy(), place / "done")
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        worked = []
        for folder in (place / "new", place / "done"):
            with pytest.raises(OSError, match=r"could not be written .*[Rr]ead-only.*: make the folder writable and give the same command again"):
                run(Toy(trouble=worked.append), folder)
        assert not worked
        store = Store.open(place / "done")
        assert len(list(store.records())) == 10
        assert not integrity.check(store).damaged


# --- clocks, names, other machines ------------------------------------------------------------------------------------


def test_a_clock_that_goes_back_changes_no_result(tmp_path, monkeypatch):
    run(Toy(), tmp_path / "whole")
    clocks = iter([datetime(2030, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)])

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return next(clocks)

    monkeypatch.setattr(journal, "datetime", Clock)

    def interrupt(case):
        if case == "02b":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Toy(trouble=interrupt), tmp_path / "run")
    for path in (tmp_path / "run" / "records").iterdir():
        os.utime(path, (2e9, 2e9))  # of the future
    store = run(Toy(), tmp_path / "run")
    assert shards(tmp_path / "run") == shards(tmp_path / "whole")
    assert [one["time"][:4] for one in store.sessions()] == ["2030", "1970"]


def test_another_machine_or_version_is_told_on_going_on_and_in_the_report(tmp_path, monkeypatch, capsys):
    def interrupt(case):
        if case == "02b":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Toy(trouble=interrupt), tmp_path)
    monkeypatch.setattr(journal, "surroundings", lambda: {"cpu": "Abacus 3", "python": "9.9", "numpy": np.__version__})
    store = run(Toy(), tmp_path)
    assert "Abacus 3" in store.journal.mixed()
    assert "python" in store.journal.mixed()
    assert "numpy" not in store.journal.mixed()
    assert "this run was begun elsewhere (cpu " in capsys.readouterr().err


def test_work_that_was_done_on_another_kind_of_machine_is_noted(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(journal, "surroundings", lambda: {"cpu": "Abacus 3", "numpy": "0.1"})
    store = run(Toy(), tmp_path, Processes(1))  # its worker says what it really is
    (note,) = store.journal.notes()
    assert note.startswith("part of it was made elsewhere (cpu Abacus 3, now ")
    assert f"numpy 0.1, now {np.__version__}" in note
    assert "part of it was made elsewhere" in capsys.readouterr().err


def test_an_input_that_is_renamed_between_two_runs_is_named(tmp_path):
    from PIL import Image

    pictures = tmp_path / "pictures"
    pictures.mkdir()
    rng = np.random.default_rng(0)
    for name in ("ant", "bee", "cat"):
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(pictures / f"{name}.png")

    def audited():
        model = wt.model(lambda batch: np.column_stack([batch.mean(axis=(1, 2, 3)) / 255, 1 - batch.mean(axis=(1, 2, 3)) / 255]))
        return engine.run(_study(model, pictures), tmp_path / "run")

    audited()
    before = shards(tmp_path / "run")
    (pictures / "bee.png").rename(pictures / "wasp.png")
    with pytest.raises(ValueError, match=r"holds a run of another spec: .*no longer there: inputs\.bee\.png.*not there before: inputs\.wasp\.png; choose another folder"):
        audited()
    (pictures / "wasp.png").rename(pictures / "bee.png")
    audited()
    assert shards(tmp_path / "run") == before


def _study(model, pictures):
    from whytrust.studies.audit import AuditStudy
    from whytrust.studies.data import gather

    def unfooled(model, inputs, ids, strength, seed, on_calls):
        return {i: ValueError("not attacked in this test") for i in range(len(inputs))}

    return AuditStudy(model, gather(pictures), {}, unfooled, parts="grid:2x2")


def test_notes_are_added_line_by_line_and_one_that_is_cut_off_costs_no_other(tmp_path):
    store = run(Toy(), tmp_path)
    diary = tmp_path / "sessions.jsonl"
    diary.write_bytes(diary.read_bytes() + b'{"note": "cut o')
    for number in range(3):
        store.journal.note(f"note {number}")
    assert Store.open(tmp_path).journal.notes() == ["note 0", "note 1", "note 2"]
    assert len(store.sessions()) == 1
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    diary.unlink()
    diary.symlink_to(elsewhere)
    store.journal.note("after")
    assert elsewhere.read_text() == "mine\n"
    assert store.journal.notes() == ["after"]


def test_notes_are_kept_before_the_block_that_they_are_of_counts_as_done(tmp_path, monkeypatch):
    def halves(case):
        if case == "01a":
            memory._SPARE.get().listener("memory ran out")

    put = Store.put

    def gone(self, block, shard):
        if block.id == "01":
            raise KeyboardInterrupt
        put(self, block, shard)

    monkeypatch.setattr(Store, "put", gone)
    with pytest.raises(KeyboardInterrupt):
        run(Toy(trouble=halves), tmp_path)
    assert Store.open(tmp_path).journal.notes() == ["memory ran out"]


def test_what_is_found_out_while_a_run_goes_on_is_said_and_kept(tmp_path, capsys):
    def delete(case):
        if case == "03a":
            (tmp_path / "lock").unlink()

    run(Toy(trouble=delete), tmp_path)
    told = "the lock was deleted while this run went on: it was made again"
    assert told in capsys.readouterr().err
    assert Store.open(tmp_path).journal.notes() == [told]


def test_a_session_that_ended_without_a_word_is_told_on_going_on(tmp_path, capsys):
    def die(case):
        if case == "02a":
            os._exit(7)

    child = os.fork()
    if child == 0:
        run(Toy(trouble=die), tmp_path)
    os.waitpid(child, 0)
    run(Toy(), tmp_path)
    assert "the process ended while it worked on block 02, 1 time now: after the second time a worker process does it" in capsys.readouterr().err


def test_a_forest_that_adds_up_its_trees_as_they_come_gives_the_same_bytes(tmp_path):
    from sklearn.ensemble import RandomForestClassifier

    rows = np.random.default_rng(0).normal(size=(300, 6))
    forest = RandomForestClassifier(60, n_jobs=4, random_state=0).fit(rows, rows[:, 0] + 0.3 * rows[:, 1] > 0)
    with engine.single_threaded():
        assert len({forest.predict_proba(rows).tobytes() for _ in range(30)}) == 1


def test_another_model_is_another_run_also_where_it_differs_on_later_inputs_alone(tmp_path):
    texts = [f"text number {i}" for i in range(40)]

    def first(batch):
        return np.array([[len(t), 20.0] for t in batch])

    def second(batch):
        return np.array([[len(t) + 5 * ("17" in t), 20.0] for t in batch])

    wt.pick(first, texts, budget=1, samples=20, out=tmp_path)
    with pytest.raises(ValueError, match="holds a run of another spec"):
        wt.pick(second, texts, budget=1, samples=20, out=tmp_path)
    wt.pick(first, texts, budget=1, samples=20, out=tmp_path)


# --- memory -----------------------------------------------------------------------------------------------------------


class Greedy:
    """A model that can take so many inputs at once, and raises as several libraries do beyond that."""

    def __init__(self, most, error=MemoryError):
        self.most, self.error, self.sizes = most, error, []

    def __call__(self, batch):
        self.sizes.append(len(batch))
        if len(batch) > self.most:
            raise self.error
        sums = np.array([np.sum(one) for one in batch])
        return np.column_stack([sums, -sums])


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
                                   RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")])
@pytest.mark.parametrize("most", [1, 3, 5])
def test_a_batch_that_is_too_large_for_memory_is_halved_and_that_is_said(error, most):
    batch, notes = np.arange(44.0).reshape(11, 4), []
    greedy = Greedy(most, error)
    with sparing(notes.append):
        scores = wt.model(greedy)(batch)
    np.testing.assert_array_equal(scores, Greedy(99)(batch))
    assert max(size for size in greedy.sizes if size <= most) >= most // 2
    assert notes[0].startswith("memory ran out in model on a batch of 11: it goes on with half as many at once") or "memory ran out" in notes[0]
    with pytest.warns(RuntimeWarning, match="memory ran out"):
        wt.model(greedy)(batch)


def test_one_input_that_is_too_large_for_memory_is_one_clear_error():
    with pytest.raises(ValueError, match="raised MemoryError"), sparing(list.append.__get__([])):
        wt.model(Greedy(0))(np.ones((3, 2)))


def test_lists_and_tables_are_halved_too():
    pandas = pytest.importorskip("pandas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        lengths = wt.model(lambda texts: Greedy(2)([[len(t)] for t in texts]))(["a", "bb", "ccc", "dddd", "eeeee"])
        frame = pandas.DataFrame({"a": [1.0, 2, 3], "b": [4.0, 5, 6]})
        sums = wt.model(lambda rows: Greedy(1)(rows.to_numpy()))(frame)
    assert lengths[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert sums[:, 0].tolist() == [5, 7, 9]


def test_gradients_are_halved_too():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        most = 99

        def forward(self, x):
            if len(x) > self.most:
                raise RuntimeError("CUDA out of memory")
            return torch.stack([(x ** 2).sum((1, 2, 3)), x.sum((1, 2, 3))], 1)

    net = Net()
    model, batch = wt.model(net), np.random.default_rng(0).random((7, 1, 3, 3), dtype=np.float32)
    weights = np.arange(14.0).reshape(7, 2)
    whole = model.vjp(batch, weights)
    of_scores = model.vjp(batch, lambda scores: scores - scores.mean())
    net.most, notes = 2, []
    with sparing(notes.append):
        for before, now in ((whole, model.vjp(batch, weights)), (of_scores, model.vjp(batch, lambda scores: scores - scores.mean()))):
            np.testing.assert_allclose(now[0], before[0], rtol=1e-6)
            np.testing.assert_allclose(now[1], before[1], rtol=1e-6)
    assert "memory ran out" in notes[0]


def test_inside_a_run_what_was_too_large_once_is_not_tried_again():
    greedy, notes = Greedy(3), []
    with sparing(notes.append):
        model = wt.model(greedy)
        for _ in range(3):
            model(np.ones((12, 4)))
    assert greedy.sizes == [12, 6, 3, 3, 3, 3] + [3] * 8
    assert len(notes) == 2


@pytest.mark.parametrize("pieces", [1, 2, 5, 100])
def test_batches_can_be_cut_into_pieces_from_the_beginning(pieces):
    batch, greedy = np.arange(28.0).reshape(7, 4), Greedy(99)
    with sparing(pytest.fail, pieces):
        np.testing.assert_array_equal(wt.model(greedy)(batch), Greedy(99)(batch))
    assert sum(greedy.sizes) == 7
    assert max(greedy.sizes) == -(-7 // pieces)
    with sparing(pytest.fail, pieces):
        assert wt.model(lambda rows: np.ones((len(rows), 2)))(batch[:0]).shape == (0, 2)


def test_a_run_whose_memory_runs_out_goes_on_and_notes_it(tmp_path, capsys):
    inputs, model = np.random.default_rng(0).random((9, 4)), wt.model(Greedy(4))

    class Study(Toy):
        def work(self, block, on_calls):
            scores = model(inputs)
            for result in super().work(block, on_calls):
                yield engine.Result({**result.record, "score": float(scores.sum())})

    store = run(Study(3), tmp_path)
    (first, second) = store.journal.notes()  # once each, however often it happens: nine are too many, and five
    assert "on a batch of 9" in first
    assert "on a batch of 5" in second
    assert capsys.readouterr().err.count("memory ran out") == 2
    assert not [record for record in store.records() if record.get("status") == "failed"]
