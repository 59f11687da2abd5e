"""Run folders damaged in every way: what is read of them is right or refused, no command breaks, and going on mends them."""

import contextlib
import io
import os
import random
import shutil
import time
import warnings
from pathlib import Path

import pytest

import whytrust as wt
from planted import GRID, white_box
from whitebox import soak
from whytrust import cli, integrity, packs
from whytrust.models.whitebox import PlantedCause
from whytrust.store import Store

TRIED = 3000 if soak() else 120
ATTACK = {"method": "pgd", "epsilon": 0.5, "units": "input", "bounds": None, "iterations": 8}


def audited(folder):
    with contextlib.redirect_stderr(io.StringIO()):
        return wt.audit(white_box(part=5), list(PlantedCause(GRID == 5).inputs(7)), {"occlusion": {}, "lime": {"samples": 40}}, "grid:4x4", ATTACK,
                        fill=0.0, draws=2, block=1, out=folder).store


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A small audit, two of whose blocks are in a pack: (folder, its files, its fingerprint, its records)."""
    patch = pytest.MonkeyPatch()
    patch.setattr(packs, "CASES", 3)
    folder = tmp_path_factory.mktemp("whole") / "run"
    store = audited(folder)
    yield folder, sorted(p for p in folder.rglob("*") if p.is_file()), integrity.check(store).fingerprint, list(store.records())
    patch.undo()


# --- what is done to a file -------------------------------------------------------------------------------------------


def flipped(data, rng):
    at = rng.randrange(len(data)) if data else 0
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1:] if data else b"x"


def cut(data, rng):
    return data[:rng.randrange(len(data) + 1)]


def zeroed(data, rng):
    at = rng.randrange(len(data) + 1)
    length = rng.randrange(1, 200)
    return data[:at] + b"\0" * len(data[at:at + length]) + data[at + length:]


def spliced(data, rng):
    one, other = sorted(rng.randrange(len(data) + 1) for _ in range(2))
    return rng.choice([data[:one] + data[other:], data[:other] + data[one:], data + data[one:other]])


def digits(data, rng):
    places = [i for i, byte in enumerate(data) if 48 <= byte < 58]
    return data[:(at := rng.choice(places))] + rng.choice([b"9" * 30, b"-1", b"1e999", b"null"]) + data[at + 1:] if places else b""


def lines(data, rng):
    some = data.splitlines(keepends=True)
    rng.shuffle(some)
    return b"".join(some[:rng.randrange(len(some) + 1)])


def garbage(data, rng):
    return rng.choice([b"", b"\n", b"{}", b"[]", b"null", b"[" * 100_000, b"\xff\xfe\0", rng.randbytes(300), b'{"format": 99}', b'{"a":' * 5000])


CHANGES = (flipped, cut, zeroed, spliced, digits, lines, garbage)


def replaced(path, rng):
    """Something else in a file's place."""
    path.unlink()
    kind = rng.choice(["gone", "folder", "pipe", "link", "circle", "nowhere"])
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind != "gone":
        path.symlink_to({"link": "/etc/passwd", "circle": path, "nowhere": path.parent / "nowhere"}[kind])
    return kind


def told(arguments):
    """(exit code, what was printed) of a command; whatever it raises is a failure of this test."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            code = cli.main(arguments)
        except SystemExit as end:
            code = end.code
    assert "Traceback" not in err.getvalue()
    return code, out.getvalue(), err.getvalue()


def test_a_damaged_folder_is_read_right_or_refused_and_going_on_mends_it(tmp_path, whole):
    folder, files, fingerprint, records = whole
    rng, counts = random.Random(5), {"refused": 0, "mended": 0, "harmless": 0, "slowest": 0.0}
    for number in range(TRIED):
        run = tmp_path / f"run{number}"
        shutil.copytree(folder, run)
        path = run / rng.choice(files).relative_to(folder)
        if rng.random() < 0.25:
            how = replaced(path, rng)
        else:
            change = rng.choice(CHANGES)
            path.write_bytes(change(path.read_bytes(), rng))
            how = change.__name__
        what, begun = f"{path.relative_to(run)}, {how}, number {number}", time.monotonic()
        codes = {}
        for arguments in (["check", str(run)], ["report", str(run)], ["gate", str(run), "--require", "lime.flip > random"]):
            code, _, err = told(arguments)
            assert code in (0, 1, 2), what
            assert len(err.strip().splitlines()) <= 2, (what, err)
            codes[arguments[0]] = code
        try:
            seen = list(Store.open(run).records())
        except (ValueError, OSError):
            counts["refused"] += 1
        else:
            assert all(record in records for record in seen), f"a wrong record is believed: {what}"
        try:
            store = audited(run)
        except (ValueError, OSError) as error:  # what cannot be mended by going on says what to do
            advice = [word for word in ("choose another folder", "give the same command again", "update whytrust", "delete it") if word in str(error)]
            if not advice:
                pytest.fail(f"{what}: {error}")
        else:
            assert integrity.check(store).fingerprint == fingerprint, f"it was not mended: {what}"
            counts["mended" if store.problems else "harmless"] += 1
        counts["slowest"] = max(counts["slowest"], time.monotonic() - begun)
        shutil.rmtree(run)
    assert counts["mended"] > TRIED / 3
    assert counts["slowest"] < 20  # seconds: nothing waits without end
    if soak():
        print(f"\nrun folders: {TRIED} damaged, {counts}")


def test_deleting_any_single_file_costs_at_most_that_files_work(tmp_path, whole):
    folder, files, fingerprint, _ = whole
    for number, file in enumerate(files):
        run = tmp_path / f"run{number}"
        shutil.copytree(folder, run)
        (run / file.relative_to(folder)).unlink()
        code, _, err = told(["report", str(run)])
        assert code == (2 if file.name == "manifest.json" else 0), file
        if code:
            assert "give the run's command again, which writes it anew" in err
        store = audited(run)
        assert integrity.check(store).fingerprint == fingerprint
        bookkeeping = ("lock", "sessions.jsonl", "report.html")
        assert bool(store.problems) == (file.name not in bookkeeping), (file, store.problems)
        kept = [p for p in files if p != file and p.parent.name in ("records", "packs")]
        assert all((run / p.relative_to(folder)).read_bytes() == p.read_bytes() for p in kept)


def test_a_folder_made_to_lead_elsewhere_is_refused(tmp_path, whole):
    """Names in a manifest become paths: whoever wrote it knows how to make the checksums."""
    import json

    from whytrust import folders

    folder, *_ = whole
    for name in ("../../escape", "/etc/passwd", "a/b", "", ".", "x" * 300, 7, None, "a\0b"):
        run = tmp_path / "run"
        shutil.copytree(folder, run)
        manifest = json.loads((run / "manifest.json").read_text())
        manifest["blocks"][0]["id"] = name
        manifest["identity"] = folders._identity(manifest)
        manifest["sum"] = folders._total(manifest)
        (run / "manifest.json").write_text(json.dumps(manifest))
        code, _, err = told(["report", str(run)])
        assert code == 2
        assert "is damaged, or not of a run" in err
        shutil.rmtree(run)
    assert not list(Path(tmp_path).glob("**/escape*"))
