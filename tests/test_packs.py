"""Runs of very many blocks: shards put together, read by explainer, damaged and mended."""

import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whytrust import integrity, packs
from whytrust.shards import Block, Form, Result, decode, encode, merged, plain, split
from whytrust.store import Store

BLOCKS = tuple(Block(f"{b:02d}", tuple(f"{b:02d}{c}" for c in "abc"[: 1 + b % 3])) for b in range(10))  # 1, 2, 3, 1, … cases
NAMES = ["lime", 'a "quoted", {name}', "saliency"]
MANIFEST = {"spec": {}, "seed": 0, "blocks": BLOCKS, "shares": NAMES}


def result(case):
    rng = np.random.default_rng(int(case[:2]))
    flip = {name: f"{case} by {name}" for name in NAMES if not (name == "lime" and case == "04b")} | {"oracle": case}
    return Result({"case": case, "status": "ok", "trials": [{"flip": {"any": flip}, "k": [1, 2]}, {"flip": {}}], "lime": "not a share up here"},
                  {"map": rng.random((2, 3))})


@pytest.fixture
def small(monkeypatch):
    """Packs of at least five cases: 00-02, 03-05, 06-08, and 09 is left over."""
    monkeypatch.setattr(packs, "CASES", 5)


def filled(folder, order=None):
    store = Store.create(folder, MANIFEST)
    store.finished()
    for block in order or BLOCKS:
        store.write(block, map(result, block.cases))
    store.close()
    return store


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file() and p.name not in ("lock", "sessions.jsonl")}


def records():
    return [plain(result(case).record) for block in BLOCKS for case in block.cases]


# --- shares -----------------------------------------------------------------------------------------------------------

trees = st.recursive(st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3)
                     | st.dictionaries(st.sampled_from(["a", "b", "lime", "x y", "0"]), inner, max_size=4), max_leaves=12)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from(["case", "lime", "trials", "more"]), trees, max_size=4))
def test_what_was_split_is_merged_again_and_no_share_is_in_the_rest(record):
    rest, shares = split(record, ["lime", "x y"])
    assert merged(rest, list(shares.values())) == record
    assert not any(name in text for name in ('"lime":', '"x y":') for text in map(json.dumps, rest.values()))
    assert set(rest) == set(record)  # the topmost keys are nobody's


@pytest.mark.parametrize("only", [None, [], ["lime"], ["saliency", "lime"], ["unknown"]])
def test_one_explainers_share_is_what_the_record_says_of_it(only):
    block, form = BLOCKS[4], Form("run", tuple(NAMES))
    found, seal = decode(block, encode(block, map(result, block.cases), form)[0], only)
    assert (seal.run, seal.arrays) == ("run", 2)
    for case, record in zip(block.cases, found, strict=True):
        told = record["trials"][0]["flip"]["any"]
        wanted = NAMES if only is None else only
        assert told == {k: v for k, v in result(case).record["trials"][0]["flip"]["any"].items() if k in wanted or k == "oracle"}
        assert record["lime"] == "not a share up here"


def test_the_first_formats_shards_are_read(tmp_path):
    """As they were written before there were shares."""
    from hashlib import blake2b

    def line(value):
        text = json.dumps(value).encode()
        return text + b"\t" + blake2b(text, digest_size=8).hexdigest().encode() + b"\n"

    found, seal = decode(Block("b", ("x", "y")), line({"case": "x"}) + line({"case": "y", "a": 1}) + line({"block": "b", "lines": 2, "arrays": 3}))
    assert found == [{"case": "x"}, {"case": "y", "a": 1}]
    assert (seal.arrays, seal.size) == (3, None)


# --- packs ------------------------------------------------------------------------------------------------------------


def test_packs_hold_fixed_ranges_whatever_the_order_and_read_the_same(tmp_path, small):
    filled(tmp_path / "a")
    rng = np.random.default_rng(0)
    filled(tmp_path / "b", [BLOCKS[i] for i in rng.permutation(len(BLOCKS))])
    assert files(tmp_path / "a") == files(tmp_path / "b")
    names = list(files(tmp_path / "a"))
    assert names == ["arrays/09.npz", "manifest.json", *[f"packs/0000{i}.{kind}" for i in range(3) for kind in ("jsonl", "zip")], "records/09.jsonl"]
    store = Store.open(tmp_path / "b")
    assert store.finished() == {block.id for block in BLOCKS}
    assert list(store.records()) == records()
    for case in ("00a", "05c", "09a"):
        np.testing.assert_array_equal(store.arrays(case)["map"], result(case).arrays["map"])
    assert not store.problems


def test_a_pack_and_loose_shards_have_one_fingerprint(tmp_path, monkeypatch):
    filled(tmp_path / "loose")
    monkeypatch.setattr(packs, "CASES", 5)
    filled(tmp_path / "packed")
    packed, = integrity.check(Store.open(tmp_path / "packed")),
    monkeypatch.setattr(packs, "CASES", 4096)
    loose = integrity.check(Store.open(tmp_path / "loose"))
    assert packed == loose
    assert (loose.records, loose.arrays, loose.left, loose.damaged) == (19, 19, 0, [])


def test_arrays_of_a_pack_without_its_records_are_damage(tmp_path, small):
    filled(tmp_path)
    (tmp_path / "packs" / "00001.jsonl").unlink()
    cases = sum(len(block.cases) for block in packs.ranges(BLOCKS)[1])
    found = integrity.check(Store.open(tmp_path))
    assert found.damaged == ["packs/00001.jsonl is gone, and the arrays beside it are not"]
    assert (found.records, found.left, found.lost) == (19 - cases, 0, cases)
    (tmp_path / "packs" / "00001.zip").unlink()
    found = integrity.check(Store.open(tmp_path))
    assert (found.damaged, found.left, found.lost) == ([], cases, 0)


@pytest.mark.parametrize("only", [["lime"], ["saliency", NAMES[1]], []])
def test_one_explainer_is_read_from_packs_without_the_others(tmp_path, small, only):
    filled(tmp_path)
    for path in (tmp_path / "packs").glob("*.jsonl"):  # what is not asked for may be damaged: it is not looked at
        lines = path.read_bytes().splitlines(keepends=True)
        other = next(name for name in NAMES if name not in only)
        mark = b'"of": ' + json.dumps(other).encode()
        path.write_bytes(b"".join(line.replace(b"flip", b"flap", 1) if mark in line else line for line in lines))
    store = Store.open(tmp_path)
    for record, whole in zip(store.records(only), records(), strict=True):
        flip = whole["trials"][0]["flip"]["any"]
        assert record["trials"][0]["flip"]["any"] == {k: v for k, v in flip.items() if k in (*only, "oracle")}
    assert not store.problems


def test_a_run_that_ended_between_a_pack_and_the_end_of_its_shards_goes_on(tmp_path, small, monkeypatch):
    whole = files(filled(tmp_path / "whole").folder)
    monkeypatch.setattr(Path, "unlink", lambda path, missing_ok=False: 1 / 0)
    store = Store.create(tmp_path / "run", MANIFEST)
    store.finished()
    for block in BLOCKS[:2]:
        store.write(block, map(result, block.cases))
    with pytest.raises(ZeroDivisionError):
        store.write(BLOCKS[2], map(result, BLOCKS[2].cases))
    store.close()
    monkeypatch.undo()
    monkeypatch.setattr(packs, "CASES", 5)
    store = Store.create(tmp_path / "run", MANIFEST)
    left = {block.id for block in BLOCKS} - store.finished()
    for block in BLOCKS:
        if block.id in left:
            store.write(block, map(result, block.cases))
    store.close()
    assert files(tmp_path / "run") == whole


def test_what_is_too_large_for_a_pack_keeps_files_of_its_own(tmp_path, small, monkeypatch):
    monkeypatch.setattr(packs, "LARGEST", 2000)
    filled(tmp_path / "arrays")
    assert not list((tmp_path / "arrays" / "packs").glob("*.jsonl"))
    store = Store.open(tmp_path / "arrays")
    assert list(store.records()) == records()
    monkeypatch.setattr(packs, "LARGEST", 10**9)
    one = Store.create(tmp_path / "arrays", MANIFEST)  # a newer version may have another limit
    assert len(one.finished()) == 10
    one.close()
    assert len(list((tmp_path / "arrays" / "packs").glob("*.jsonl"))) == 3


def test_a_flipped_byte_anywhere_in_a_pack_is_found_and_at_most_its_block_is_done_again(tmp_path, small):
    filled(tmp_path / "whole")
    whole = files(tmp_path / "whole")
    rng = np.random.default_rng(1)
    for name in ("packs/00001.jsonl", "packs/00001.zip"):
        size = len(whole[name])
        for place in sorted({0, size - 1, *rng.integers(0, size, 40).tolist()}):
            run = tmp_path / "run"
            shutil.copytree(tmp_path / "whole", run)
            data = bytearray(whole[name])
            data[place] ^= 1 << int(rng.integers(8))
            (run / name).write_bytes(data)
            reader = Store.open(run)
            seen = list(reader.records())
            assert all(record in records() for record in seen)  # never a wrong one
            checked = integrity.check(Store.open(run))
            store = Store.create(run, MANIFEST)
            left = {block.id for block in BLOCKS} - store.finished()
            assert len(left) <= 1, (name, place)
            assert bool(store.problems) == bool(checked.damaged) or name.endswith("zip"), (name, place)
            assert store.problems or name.endswith("zip")  # the zip's own book-keeping has bytes that mean nothing
            for block in BLOCKS:
                if block.id in left:
                    store.write(block, map(result, block.cases))
            store.close()
            assert not [told for told in store.problems if "says something else" in told]
            mended = {n: d for n, d in files(run).items() if not n.endswith(".damaged")}
            assert mended == whole or (name.endswith("zip") and not left)
            shutil.rmtree(run)


@pytest.mark.parametrize("name", ["packs/00000.jsonl", "packs/00000.zip", "records/09.jsonl", "arrays/09.npz", "manifest.json", "sessions.jsonl", "lock"])
def test_deleting_any_single_file_costs_at_most_that_work(tmp_path, small, name):
    filled(tmp_path)
    whole = files(tmp_path)
    (tmp_path / name).unlink()
    if name == "manifest.json":
        with pytest.raises(FileNotFoundError, match=r"it has no manifest\.json; give the run's command again, which writes it anew"):
            Store.open(tmp_path)
    else:
        seen = list(Store.open(tmp_path).records())
        assert all(record in records() for record in seen)
    store = Store.create(tmp_path, MANIFEST)
    left = {block.id for block in BLOCKS} - store.finished()
    assert left == {"packs": {"00", "01", "02"}, "records": {"09"}, "arrays": {"09"}}.get(name.split("/")[0], set())
    if name.split("/")[0] in ("packs", "arrays", "manifest.json", "records"):
        assert store.problems, "it is said"
    for block in BLOCKS:
        if block.id in left:
            store.write(block, map(result, block.cases))
    store.close()
    assert {n: d for n, d in files(tmp_path).items() if not n.endswith(".damaged")} == whole


def test_results_of_another_run_are_not_taken_in_where_the_manifest_is_gone(tmp_path):
    filled(tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(ValueError, match=r"holds .* and no run \(no manifest.json\)"):
        Store.create(tmp_path, {**MANIFEST, "seed": 1})
    store = Store.create(tmp_path, MANIFEST)
    assert store.problems == ["manifest.json was gone: it was written again from this command"]
    assert len(store.finished()) == 10
    store.close()


def test_files_of_another_run_are_not_believed(tmp_path, small):
    filled(tmp_path / "mine")
    other = Store.create(tmp_path / "theirs", {**MANIFEST, "seed": 1})
    other.finished()
    for block in BLOCKS:
        other.write(block, [Result({"case": case, "status": "forged"}) for case in block.cases])
    other.close()
    for name in ("records/09.jsonl", "arrays/09.npz", "packs/00001.jsonl", "packs/00001.zip"):
        shutil.copy(tmp_path / "theirs" / name, tmp_path / "mine" / name)
    store = Store.open(tmp_path / "mine")
    assert "forged" not in {record["status"] for record in store.records()}
    assert all("it is of another run" in told for told in store.problems)
    assert len(store.problems) == 2


def test_a_reader_misses_nothing_while_blocks_are_packed(tmp_path, small, monkeypatch):
    """A block's own files may go, into a pack, between the reader's look for the pack and its look for them."""
    store = Store.create(tmp_path, MANIFEST)
    store.finished()
    for block in BLOCKS[:4]:
        store.write(block, map(result, block.cases))
    reader, read = Store.open(tmp_path), Store._read
    later = iter(BLOCKS[4:6])

    def meanwhile(self, block, only):
        if block == BLOCKS[3]:
            for one in later:  # the second of them completes the pack of 03 to 05
                store.write(one, map(result, one.cases))
        return read(self, block, only)

    monkeypatch.setattr(Store, "_read", meanwhile)
    assert list(reader.records()) == records()[:12]
    assert not reader.problems
    store.close()


def test_a_lock_that_is_deleted_is_made_again_and_a_second_run_is_noticed(tmp_path):
    store = Store.create(tmp_path, MANIFEST)
    store.write(BLOCKS[0], map(result, BLOCKS[0].cases))
    (tmp_path / "lock").unlink()
    store.write(BLOCKS[1], map(result, BLOCKS[1].cases))
    assert "the lock was deleted while this run went on" in store.problems[0]
    with pytest.raises(BlockingIOError, match="being filled by another run"):
        Store.create(tmp_path, MANIFEST)
    (tmp_path / "lock").unlink()
    second = Store.create(tmp_path, MANIFEST)  # it was quicker
    with pytest.raises(BlockingIOError, match="being filled by another run"):
        store.write(BLOCKS[2], map(result, BLOCKS[2].cases))
    second.write(BLOCKS[2], map(result, BLOCKS[2].cases))
    second.close()
    assert len(list(Store.open(tmp_path).records())) == 6


def test_a_damaged_block_that_comes_out_otherwise_is_told(tmp_path):
    filled(tmp_path)
    path = tmp_path / "arrays" / "04.npz"
    path.write_bytes(path.read_bytes()[:-1])
    store = Store.create(tmp_path, MANIFEST)
    assert "04" not in store.finished()
    store.write(BLOCKS[4], [Result({**result(case).record, "status": "other"}) for case in BLOCKS[4].cases])
    assert "block 04 was done again and says something else than before" in store.problems[-1]
    store.close()


def test_arrays_are_stored_as_they_are_and_a_hostile_pack_is_no_way_out_of_the_folder(tmp_path, small):
    filled(tmp_path)
    with zipfile.ZipFile(tmp_path / "packs" / "00000.zip") as archive:
        assert archive.namelist() == ["00", "01", "02"]
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_STORED}
    with zipfile.ZipFile(tmp_path / "packs" / "00000.zip", "a") as archive:
        archive.writestr("../../escaped", b"x")
    store = Store.create(tmp_path, MANIFEST)
    store.finished()
    store.close()
    assert not list(tmp_path.parent.rglob("escaped"))


@pytest.mark.parametrize("harm", ["flipped", "share", "cut", "gone", "arrays"])
def test_a_block_that_is_damaged_before_it_is_packed_is_not_sealed_in_and_is_done_again(tmp_path, small, harm):
    filled(tmp_path / "whole")
    store = Store.create(tmp_path / "run", MANIFEST)
    store.finished()
    for block in BLOCKS[:2]:
        store.write(block, map(result, block.cases))
    path = tmp_path / "run" / ("arrays/01.npz" if harm == "arrays" else "records/01.jsonl")
    data = path.read_bytes()
    changed = {"flipped": data.replace(b'"k": [1', b'"k": [7', 1), "share": data.replace(b'"of": "lime"', b'"of": "lame"', 1), "cut": data[:-9], "arrays": data[:40] + b"?" + data[41:]}
    path.unlink() if harm == "gone" else path.write_bytes(changed[harm])
    store.write(BLOCKS[2], map(result, BLOCKS[2].cases))
    (told,) = store.problems
    assert told.startswith("a block of packs/00000.jsonl was damaged or deleted after it was written (")
    assert "give the run's command again, which does that block anew" in told
    store.close()
    again = Store.create(tmp_path / "run", MANIFEST)
    done = again.finished()
    assert done == {"00", "02"}
    for block in BLOCKS:
        if block.id not in done:
            again.write(block, map(result, block.cases))
    again.close()
    assert integrity.check(again).fingerprint == integrity.check(Store.open(tmp_path / "whole")).fingerprint


def test_a_pack_whose_line_was_damaged_before_it_was_sealed_is_found_on_going_on(tmp_path, small, monkeypatch):
    """Its parts have their checksums, and a line in one has not."""
    monkeypatch.setattr(packs.shards, "verified", lambda block, data: packs.Seal.read(packs.opened(data.splitlines()[-1])))
    harmed = packs.packed
    monkeypatch.setattr(packs, "packed", lambda found, form: harmed([data.replace(b'"k": [1', b'"k": [7', 1) for data in found], form))
    filled(tmp_path)
    monkeypatch.undo()
    monkeypatch.setattr(packs, "CASES", 5)
    again = Store.create(tmp_path, MANIFEST)
    assert again.finished() < {block.id for block in BLOCKS}
    again.close()


@pytest.mark.parametrize("ask", ["record", "arrays", "check", "finished"])
def test_who_asks_for_a_block_while_it_is_packed_misses_nothing(tmp_path, small, monkeypatch, ask):
    """The pack is made, and the single files taken away, between a reader's first look for a pack and its look for them."""
    store = Store.create(tmp_path, MANIFEST)
    store.finished()
    for block in BLOCKS[:2]:
        store.write(block, map(result, block.cases))
    reader, exists, late = Store.open(tmp_path), Path.exists, [True]

    def packed_meanwhile(path, *args, **options):
        found = exists(path, *args, **options)
        if late[0] and path.name == "00000.jsonl" and path.parent.name == "packs":
            late[0] = False
            store.write(BLOCKS[2], map(result, BLOCKS[2].cases))
        return found

    monkeypatch.setattr(Path, "exists", packed_meanwhile)
    asked = {"record": lambda: reader.record("00a")["case"] == "00a", "arrays": lambda: reader.arrays("00a")["map"].shape == (2, 3),
             "check": lambda: integrity.check(reader).records >= 3 and not integrity.check(reader).damaged, "finished": lambda: reader.finished() >= {"00", "01"}}
    assert asked[ask]()
    assert ask == "arrays" or not late[0]  # who asks for arrays looks for the single file first


def test_a_hostile_packs_arrays_do_not_unpack(tmp_path, small):
    filled(tmp_path)
    with zipfile.ZipFile(tmp_path / "packs" / "00000.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("00", bytes(1 << 20))
    with pytest.raises(ValueError, match="not as a pack holds them"):
        Store.open(tmp_path).arrays("00a")


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
@pytest.mark.parametrize("name", ["00001.jsonl", "00001.zip"])
def test_what_stands_in_the_place_of_a_pack_is_put_aside_and_its_blocks_are_done_again(tmp_path, small, kind, name):
    filled(tmp_path / "run")
    whole = integrity.check(Store.open(tmp_path / "run")).fingerprint
    path = tmp_path / "run" / "packs" / name
    path.unlink()
    {"folder": path.mkdir, "pipe": lambda: os.mkfifo(path), "link": lambda: path.symlink_to("/etc/passwd")}[kind]()
    again = Store.create(tmp_path / "run", MANIFEST)
    done = again.finished()
    assert not done & {"03", "04", "05"}
    for block in BLOCKS[3:6]:
        again.write(block, map(result, block.cases))
    again.close()
    assert integrity.check(again).fingerprint == whole
