import errno
import json
import os
import signal
import sys
import time
import zipfile
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whytrust import folders
from whytrust import store as storing
from whytrust.core import generator
from whytrust.store import Block, Result, Store, decode, encode, plain

BLOCKS = (Block("b0", ("00", "01")), Block("b1", ("02",)), Block("b2", ("03", "04")))
MANIFEST = {"spec": {"attack": {"method": "pgd", "epsilon": 0.05}, "parts": 16}, "seed": 3, "hashes": {"model": "ab"}, "blocks": BLOCKS}


def result(case):
    rng = generator(3, case)
    return Result({"case": case, "status": "ok", "d": np.int64(4), "score": rng.random(), "name": "é\t\n"},
                  {"clean": rng.random((3, 4)), "labels": rng.integers(0, 4, (3, 4))})


def filled(folder, blocks=BLOCKS):
    store = Store.create(folder, MANIFEST)
    for block in blocks:
        store.write(block, map(result, block.cases))
    store.close()
    return store


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}


def test_what_was_written_is_read_in_the_order_of_the_blocks(tmp_path):
    filled(tmp_path / "run", BLOCKS[::-1])
    store = Store.open(tmp_path / "run")
    assert store.finished() == {"b0", "b1", "b2"}
    assert list(store.records()) == [{**result(c).record, "d": 4} for c in ("00", "01", "02", "03", "04")]
    for case in ("00", "03"):
        for name, array in store.arrays(case).items():
            np.testing.assert_array_equal(array, result(case).arrays[name], strict=True)
    assert list(store.arrays("01")) == ["clean", "labels"]
    assert list(store.arrays("01", "labels")) == ["labels"]
    assert not store.problems


def test_every_line_carries_its_own_checksum_and_the_last_their_number(tmp_path):
    filled(tmp_path)
    *lines, last = (tmp_path / "records" / "b0.jsonl").read_bytes().splitlines()
    for line in [*lines, last]:
        text, told = line.split(b"\t")
        assert blake2b(text, digest_size=8).hexdigest().encode() == told
    assert json.loads(last.split(b"\t")[0])["lines"] == len(lines) == 2


def test_arrays_are_what_numpy_reads_by_itself(tmp_path):
    filled(tmp_path)
    with np.load(tmp_path / "arrays" / "b0.npz") as archive:
        assert archive.files == ["00/clean", "00/labels", "01/clean", "01/labels"]
        np.testing.assert_array_equal(archive["01/clean"], result("01").arrays["clean"])


def test_bytes_depend_neither_on_the_order_of_results_nor_on_memory_layout_nor_on_the_time(monkeypatch):
    first = encode(BLOCKS[0], map(result, ("00", "01")))
    monkeypatch.setattr("time.time", lambda: 1e9)
    turned = [Result(dict(result(c).record), {n: np.asfortranarray(a) for n, a in result(c).arrays.items()}) for c in ("01", "00")]
    assert encode(BLOCKS[0], turned) == first


values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.floats(width=32).map(np.float32)
                      | st.integers(-9, 9).map(np.int16) | st.booleans().map(np.bool_),
                      lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8)


@settings(max_examples=60, deadline=None)
@given(values)
def test_any_record_comes_back_as_plain_values_with_null_for_what_is_not_finite(value):
    def naive(v):
        v = v.item() if isinstance(v, np.generic) else v
        if isinstance(v, dict):
            return {k: naive(w) for k, w in v.items()}
        if isinstance(v, list):
            return [naive(w) for w in v]
        return None if isinstance(v, float) and not np.isfinite(v) else v

    block = Block("b", ("c",))
    (back,), _ = decode(block, encode(block, [Result({"case": "c", "value": value})])[0])
    assert back == {"case": "c", "value": naive(value)}


@pytest.mark.parametrize(("record", "message"), [
    ({"path": Path("x")}, r"the record of case c\.path is \w*Path"), ({"a": [1, {2j}]}, r"case c\.a\.1 is set"),
    ({"a": {None: 1}}, "dicts with strings for keys"), ({"a": b"x"}, "is bytes"),
])
def test_what_json_does_not_know_is_named(record, message):
    with pytest.raises(TypeError, match=message):
        encode(Block("b", ("c",)), [Result({"case": "c", **record})])


def test_an_array_of_objects_is_never_pickled():
    with pytest.raises(TypeError, match="hold numbers"):
        encode(Block("b", ("c",)), [Result({"case": "c"}, {"words": np.array(["a", None], object)})])


@pytest.mark.parametrize("cases", [(), ("00",), ("00", "00"), ("00", "01", "02"), ("00", "zz")])
def test_a_block_has_one_result_a_case(cases):
    with pytest.raises(ValueError, match="one result for each case"):
        encode(BLOCKS[0], [Result({"case": c}) for c in cases])


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["records/b0.jsonl", "arrays/b0.npz"])
def test_a_shard_cut_off_at_any_length_is_seen(tmp_path, kind):
    filled(tmp_path)
    whole, store = (tmp_path / kind).read_bytes(), Store.open(tmp_path)
    for length in range(len(whole)):
        (tmp_path / kind).write_bytes(whole[:length])
        assert store.finished() == {"b1", "b2"}, length
    (tmp_path / kind).write_bytes(whole)
    assert store.finished() == {"b0", "b1", "b2"}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_flipped_bit_anywhere_in_the_records_is_seen(data):
    whole = bytearray(encode(BLOCKS[0], map(result, BLOCKS[0].cases))[0])
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match=r"cut off|checksum|lines"):
        decode(BLOCKS[0], bytes(whole))


def test_lines_that_are_whole_but_moved_doubled_or_of_another_block_are_seen():
    first, second, last = encode(BLOCKS[0], map(result, BLOCKS[0].cases))[0].splitlines(keepends=True)
    for wrong in ([second, first, last], [first, last], [first, first, last], [first, second, second, last], [last], [first, second]):
        with pytest.raises(ValueError, match=r"lines|checksum"):
            decode(BLOCKS[0], b"".join(wrong))
    with pytest.raises(ValueError, match="lines"):
        decode(Block("b1", ("00",)), encode(BLOCKS[2], map(result, BLOCKS[2].cases))[0])


def test_a_damaged_shard_is_left_alone_by_a_reader_and_told(tmp_path):
    filled(tmp_path)
    path = tmp_path / "records" / "b1.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    before, store = tree(tmp_path), Store.open(tmp_path)
    assert [r["case"] for r in store.records()] == ["00", "01", "03", "04"]
    assert store.finished() == {"b0", "b2"}
    assert len(store.problems) == 1
    assert "block b1 is damaged (it is cut off)" in store.problems[0]
    assert tree(tmp_path) == before


@pytest.mark.parametrize("harm", [lambda r, a: r.write_bytes(b"x"), lambda r, a: a.unlink(), lambda r, a: a.write_bytes(b"PK"),
                                  lambda r, a: a.write_bytes(a.parent.joinpath("b1.npz").read_bytes())])
def test_a_damaged_shard_is_put_aside_and_done_again(tmp_path, harm):
    filled(tmp_path)
    whole = tree(tmp_path)
    harm(tmp_path / "records" / "b0.jsonl", tmp_path / "arrays" / "b0.npz")
    store = Store.create(tmp_path, MANIFEST)
    assert store.finished() == {"b1", "b2"}
    assert "put aside" in store.problems[0]
    assert (tmp_path / "records" / "b0.jsonl.damaged").exists()
    store.write(BLOCKS[0], map(result, BLOCKS[0].cases))
    assert store.finished() == {"b0", "b1", "b2"}
    store.close()
    after = tree(tmp_path)
    assert all(after[name] == data for name, data in whole.items() if name.startswith(("records", "arrays")))


def test_a_machine_in_trouble_is_not_taken_for_damage(tmp_path, monkeypatch):
    filled(tmp_path)
    store = Store.create(tmp_path, MANIFEST)

    def refuse(*args):
        raise OSError(errno.EMFILE, "Too many open files")

    for place, call in ((storing.folders, "read"), (storing.zipfile, "ZipFile")):
        with monkeypatch.context() as patch:
            patch.setattr(place, call, refuse)
            with pytest.raises(OSError, match="Too many open files"):
                store.finished()
    assert store.finished() == {"b0", "b1", "b2"}
    assert not store.problems
    store.close()


def test_only_the_arrays_that_are_asked_for_are_read(tmp_path):
    filled(tmp_path)
    path = tmp_path / "arrays" / "b0.npz"
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo("00/clean.npy").header_offset + 120
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)
    store = Store.open(tmp_path)
    np.testing.assert_array_equal(store.arrays("00", "labels")["labels"], result("00").arrays["labels"])
    assert list(store.arrays("01")) == ["clean", "labels"]
    with pytest.raises(ValueError, match=r"arrays of case 00 in .* are damaged .*; give the run's command again, which does this block anew"):
        store.arrays("00")
    store = Store.create(tmp_path, MANIFEST)
    assert store.finished() == {"b1", "b2"}
    assert "its arrays do not have their checksum" in store.problems[0]
    store.close()


def test_arrays_that_are_not_there_are_one_clear_error(tmp_path):
    filled(tmp_path, BLOCKS[:1])
    store = Store.open(tmp_path)
    with pytest.raises(ValueError, match=r"case 02 has no arrays .* so far"):
        store.arrays("02")
    with pytest.raises(ValueError, match="case 00 has the arrays clean, labels, got 'adversarial'"):
        store.arrays("00", "clean", "adversarial")
    with pytest.raises(ValueError, match=r"the case must be one of the run in .*, got '0'"):
        store.arrays("0")


# --- whose folder it is -----------------------------------------------------------------------------------------------


def test_the_same_run_goes_on_and_left_over_files_are_taken_away(tmp_path):
    filled(tmp_path, BLOCKS[:1])
    for name in ("study.part", "records/b1.jsonl.part", "arrays/b1.npz.part", "sessions.jsonl.part"):
        (tmp_path / name).write_bytes(b"half")
    (tmp_path / "arrays" / "b1.npz").write_bytes(b"arrays without records are of a block that was not finished")
    store = Store.create(tmp_path, {**MANIFEST, "command": "another way to say it"})
    assert store.finished() == {"b0"}
    assert not list(tmp_path.rglob("*.part"))
    store.write(BLOCKS[1], map(result, BLOCKS[1].cases))
    assert store.finished() == {"b0", "b1"}
    assert store.problems == ["block b1 had arrays and no records, which were lost or never written: it is done again"]
    assert [set(one) >= {"time", "python", "numpy", "whytrust"} for one in store.sessions()] == [True, True]
    store.close()


def test_a_run_of_another_kind_is_refused_in_one_sentence(tmp_path):
    Store.create(tmp_path, {**MANIFEST, "study": "audit"}).close()
    with pytest.raises(ValueError, match="holds a run of another kind, 'audit', and this is one of 'metrics'; choose another folder"):
        Store.create(tmp_path, {**MANIFEST, "study": "metrics"})


@pytest.mark.parametrize(("change", "message"), [
    ({"spec": {"attack": {"method": "pgd", "epsilon": 0.1}, "parts": 16}}, r"another spec: attack\.epsilon was 0\.05, now 0\.1; choose another folder \(out=, --out, --run\), or delete it"),
    ({"spec": {"attack": {"method": "pgd", "epsilon": 0.05}}}, "parts was 16, now not there"),
    ({"spec": {**MANIFEST["spec"], "parts": 16.0}}, r"parts was 16, now 16\.0"),
    ({"seed": 4}, "seed was 3, now 4"), ({"hashes": {"model": "cd"}}, "another spec: other content of model; choose"),
    ({"hashes": {"model": "ab", **{f"text-{i}": "x" for i in range(5)}}},
     "another spec: not there before: text-0, text-1, text-2 and 2 more; choose"),
    ({"hashes": {}}, "another spec: no longer there: model; choose"),
    ({"blocks": BLOCKS[:2]}, "blocks was 3, now 2, cases was 5, now 3"),
    ({"blocks": (*BLOCKS[:2], Block("b2", ("03", "05")))}, "as many cases, but other ones"),
    ({"spec": {str(k): k for k in range(9)}}, "attack.method .* and 8 more"),
])
def test_a_run_of_another_spec_is_refused_with_what_differs(tmp_path, change, message):
    filled(tmp_path)
    before = tree(tmp_path)
    with pytest.raises(ValueError, match=message):
        Store.create(tmp_path, {**MANIFEST, **change})
    assert {**tree(tmp_path), "lock": b""} == {**before, "lock": b""}
    Store.create(tmp_path, MANIFEST).close()  # and the lock was let go


def test_a_folder_with_something_else_is_never_filled(tmp_path):
    (tmp_path / "lock").write_text("my door")
    with pytest.raises(ValueError, match=r"holds lock and no run \(no manifest\.json\)"):
        Store.create(tmp_path, MANIFEST)
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match="choose another folder"):
        Store.create(tmp_path, MANIFEST)
    assert tree(tmp_path) == {"lock": b"my door", "thesis.tex": b"years of work"}
    with pytest.raises(NotADirectoryError, match="is a file; choose another folder"):
        Store.create(tmp_path / "thesis.tex", MANIFEST)


def test_a_run_that_ended_before_its_manifest_begins_again(tmp_path):
    (tmp_path / "lock").write_text("whytrust, process 1 on here\n")
    (tmp_path / "manifest.json.part").write_text('{"form')
    Store.create(tmp_path, MANIFEST).close()
    assert Store.open(tmp_path).manifest["spec"] == MANIFEST["spec"]


@pytest.mark.parametrize(("harm", "message"), [
    (lambda text: text[:-9], "manifest.json is damaged"), (lambda text: "", "damaged"), (lambda text: "[1]", "damaged"), (lambda text: "{}", "damaged"),
    (lambda text: text.replace("0.05", "0.06"), "its checksum is not that of what it says"), (lambda text: "\0" * 40, "damaged"),
    (lambda text: text.replace('"format": 2', '"format": 3'), "written by a newer whytrust .*update whytrust"),
])
def test_a_manifest_that_cannot_be_believed_is_one_clear_error(tmp_path, harm, message):
    filled(tmp_path)
    text = (tmp_path / "manifest.json").read_text()
    (tmp_path / "manifest.json").write_text(harm(text))
    for attempt in (lambda: Store.open(tmp_path), lambda: Store.create(tmp_path, MANIFEST)):
        with pytest.raises(ValueError, match=message):
            attempt()


def test_where_there_is_no_run_the_reader_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(FileNotFoundError, match=f"there is no run in {place}"):
            Store.open(place)


@pytest.mark.parametrize("blocks", [[Block("../b", ("c",))], [Block("", ("c",))], [Block("b", ("c", "c"))], [Block("b", ())], [Block("b", ("a/b",))],
                                    [Block("b", ("c",)), Block("b", ("d",))], [Block("b", ("c",)), Block("B", ("d",))], [Block(".b", ("c",))]])
def test_names_that_cannot_be_files_are_refused_before_anything_is_made(tmp_path, blocks):
    with pytest.raises(ValueError, match="must have a name of its own"):
        Store.create(tmp_path / "run", {**MANIFEST, "blocks": blocks})
    assert not (tmp_path / "run").exists()


def test_two_runs_at_once_are_one_clear_error_and_a_reader_is_none(tmp_path):
    store = Store.create(tmp_path, MANIFEST)
    store.write(BLOCKS[0], map(result, BLOCKS[0].cases))
    with pytest.raises(BlockingIOError, match=f"being filled by another run .*process {os.getpid()} on"):
        Store.create(tmp_path, MANIFEST)
    reader = Store.open(tmp_path)
    assert [r["case"] for r in reader.records()] == ["00", "01"]
    store.write(BLOCKS[1], map(result, BLOCKS[1].cases))
    assert reader.finished() == {"b0", "b1"}
    store.close()
    Store.create(tmp_path, MANIFEST).close()


def test_a_shard_is_written_once_and_only_by_its_run(tmp_path):
    store = Store.create(tmp_path, MANIFEST)
    store.write(BLOCKS[0], map(result, BLOCKS[0].cases))
    for block in (BLOCKS[0], Block("b1", ("02", "05"))):
        with pytest.raises(ValueError, match="a block is written once"):
            store.write(block, [Result({"case": c}) for c in block.cases])
    store.close()
    with pytest.raises(ValueError, match="or the store is closed"):
        store.write(BLOCKS[1], map(result, BLOCKS[1].cases))


# --- full disks -------------------------------------------------------------------------------------------------------


def safe_after(store, message):
    """Writing b1 fails as `message` says; b0 is safe, nothing half done is left, and afterwards it can be written."""
    with pytest.raises(OSError, match=message) as caught:
        store.write(BLOCKS[1], [Result({"case": "02"}, {"noise": generator(0).random(5000)})])
    assert "1 of 3 blocks are finished and safe, nothing is lost" in str(caught.value)
    assert "give the same command again" in str(caught.value)
    assert not list(store.folder.rglob("*.part"))
    assert store.finished() == {"b0"}
    return caught.value.errno


@pytest.mark.parametrize(("number", "remedy"), [(errno.ENOSPC, "free space"), (errno.EDQUOT, "free space"), (errno.EROFS, "make the folder writable")])
@pytest.mark.parametrize("call", ["replace", "fsync"])
def test_a_disk_that_refuses_is_told_with_what_is_safe(tmp_path, monkeypatch, number, remedy, call):
    filled(tmp_path, BLOCKS[:1])
    store = Store.create(tmp_path, MANIFEST)

    def refuse(*args):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(storing.os, call, refuse)
        assert safe_after(store, rf"block b1 could not be written to .*{os.strerror(number)}.*{remedy}") == number
    store.write(BLOCKS[1], map(result, BLOCKS[1].cases))
    store.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full is needed")
@pytest.mark.parametrize("file", ["arrays/b1.npz", "records/b1.jsonl"])
def test_a_really_full_device_is_told_with_what_is_safe(tmp_path, file, monkeypatch):
    monkeypatch.setattr(folders, "NOFOLLOW", 0)  # a link to a full device is how one is made here
    filled(tmp_path, BLOCKS[:1])
    store = Store.create(tmp_path, MANIFEST)
    (tmp_path / f"{file}.part").symlink_to("/dev/full")
    assert safe_after(store, "block b1 could not be written .*No space left on device.*free space") == errno.ENOSPC
    store.write(BLOCKS[1], map(result, BLOCKS[1].cases))
    assert store.finished() == {"b0", "b1"}
    store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="limits are POSIX")
def test_a_limit_on_the_size_of_files_is_told_with_what_is_safe(tmp_path):
    filled(tmp_path, BLOCKS[:1])
    store = Store.create(tmp_path, MANIFEST)
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        assert safe_after(store, "File too large.*raise the limit on the size of files") == errno.EFBIG
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        store.close()


def test_plain_leaves_no_numpy_behind():
    told = plain({"a": np.arange(3), "b": (np.float32(0.5), np.nan), 1: np.array(np.inf)})
    assert told == {"a": [0, 1, 2], "b": [0.5, None], "1": None}
    assert type(told["a"][0]) is int


# --- folders of somebody else -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lock", "manifest.json", "sessions.jsonl", "records", "arrays", "packs", "in_hand"])
def test_a_link_in_a_run_s_folder_is_refused_and_what_it_leads_to_is_left_as_it_is(tmp_path, name):
    run, mine = tmp_path / "run", tmp_path / "mine"
    filled(run, BLOCKS[:1])
    path = run / name
    if name in ("records", "arrays", "packs"):
        mine.mkdir()
        (mine / "letter.part").write_text("dear")
        for inner in path.iterdir() if path.exists() else ():
            inner.unlink()
        if path.exists():
            path.rmdir()
    else:
        mine.write_text("dear")
        path.unlink(missing_ok=True)
    path.symlink_to(mine)
    with pytest.raises(ValueError, match="is a link, and a run has none; delete it and give the same command again, or choose another folder"):
        Store.create(run, MANIFEST)
    assert (mine / "letter.part" if mine.is_dir() else mine).read_text() == "dear"


def test_a_file_larger_than_any_run_writes_is_not_read(tmp_path, monkeypatch):
    filled(tmp_path)
    with open(tmp_path / "records" / "b1.jsonl", "r+b") as file:
        file.truncate(folders.limits.RUN + 1)  # it has hardly anything in it
    store = Store.open(tmp_path)
    assert store.finished() == {"b0", "b2"}
    assert "block b1 is damaged (it is larger than 2048 MB)" in store.problems[0]


def test_a_child_that_a_model_forks_does_not_hold_the_folder_when_the_run_is_gone(tmp_path):
    ready, tell = os.pipe()
    runner = os.fork()
    if runner == 0:
        Store.create(tmp_path, MANIFEST)
        child = os.fork()
        if child == 0:
            os.write(tell, b"%d\n" % os.getpid())
            time.sleep(60)  # the model's own child stays
        os._exit(0)  # the run is gone, however it went
    os.waitpid(runner, 0)
    child = int(os.read(ready, 20))
    try:
        Store.create(tmp_path, MANIFEST).close()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_lock_that_could_not_be_written_is_let_go(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(folders.os, "ftruncate", lambda *args: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")))
        with pytest.raises(OSError, match="free space and give the same command again"):
            Store.create(tmp_path, MANIFEST)
    Store.create(tmp_path, MANIFEST).close()


def test_a_model_that_changes_the_working_directory_takes_the_folder_nowhere(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    store = Store.create("run", MANIFEST)
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.write(BLOCKS[0], map(result, BLOCKS[0].cases))
    store.close()
    assert (tmp_path / "run" / "records" / "b0.jsonl").exists()


def test_a_folder_inside_a_file_is_told_as_that(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"Not a directory.*choose another folder"):
        Store.create(tmp_path / "file" / "run", MANIFEST)


@pytest.mark.parametrize("done", [0, 1])
def test_a_manifest_that_is_deleted_before_much_is_done_is_written_anew(tmp_path, done):
    filled(tmp_path, BLOCKS[:done])
    (tmp_path / "manifest.json").unlink()
    if done:
        path = tmp_path / "records" / "b0.jsonl"
        path.write_bytes(path.read_bytes()[:-4] + b"zzz\n")  # and its seal is damaged
    store = Store.create(tmp_path, MANIFEST)
    assert "manifest.json was gone: it was written again from this command" in store.problems
    store.close()
