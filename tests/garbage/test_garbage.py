"""Malformed files of every kind: each is read, or refused with one clear error; none hangs, crashes, warns or takes all memory.

SOAK=1 tries ten thousand, in processes of their own, so that a crash of a library is found and told, and says what came of them.
"""

import concurrent.futures
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from garbage.bombs import BOMBS, ROOM
from garbage.kinds import BY_NAME, KINDS, recorded
from garbage.trying import malformed, prepared, tried, whole
from whytrust import limits
from whytrust.domains import audio, image

TESTS = Path(__file__).parents[1]
SHORT, LONG, FEW = 8, 240, 40
by_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
MAY_LACK = ("safetensors, a checkpoint", "Hugging Face tokenizer_config.json")
"""Without these, one begins anew, or does without."""


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@by_kind
def test_a_malformed_file_is_read_or_refused_in_one_clear_error(kind, tmp_path):
    path = prepared(kind, tmp_path)
    path.write_bytes(whole(kind.name))
    assert tried(kind.door, path).read == kind.whole
    wrong = {}
    for number in range(SHORT):
        path.write_bytes(malformed(kind, number))
        found = tried(kind.door, path)
        wrong |= {number: found.wrong} if found.wrong else {}
    assert wrong == {}


def put(path, what):
    """Something else where a file is expected."""
    path.unlink(missing_ok=True)
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    elif what in ("empty", "closed"):
        path.write_bytes(b"")
        path.chmod(0 if what == "closed" else 0o600)  # which is nothing to root
    elif what != "nothing":
        path.symlink_to({"circle": path.name, "device": "/dev/zero", "nowhere": "no such file"}[what])


@pytest.mark.parametrize("what", ["nothing", "folder", "pipe", "circle", "device", "nowhere", "empty", "closed"])
@by_kind
def test_what_is_no_file_is_refused_and_not_waited_for(kind, what, tmp_path):
    path = prepared(kind, tmp_path)
    put(path, what)
    found = tried(kind.door, path)
    assert found.wrong == ""
    assert kind.name in MAY_LACK or not found.read


# --- more than there is memory for ------------------------------------------------------------------------------------


def own_process(*words):
    folders = os.pathsep.join([str(TESTS), *sys.path])
    return subprocess.run([sys.executable, "-m", *map(str, words)], capture_output=True, text=True, check=False, timeout=3000, cwd=TESTS,
                          env={**os.environ, "PYTHONPATH": folders, "OMP_NUM_THREADS": "1"})


def test_what_claims_more_than_there_is_memory_for_is_refused_before_any_is_taken():
    ran = own_process("garbage.bombs")
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ROOM < 1 << 29
    assert [one["what"] for one in told] == [what for what, *_ in BOMBS]
    for one, (*_, words) in zip(told, BOMBS, strict=True):
        assert one["said"], f"{one['what']} was read"
        assert words in one["said"], one
        assert "MemoryError" not in one["said"], one
        assert one["said"].startswith("ValueError: "), one


def test_a_photograph_of_a_hundred_megapixels_is_read(tmp_path):
    from PIL import Image
    Image.new("1", (10_000, 10_000), 1).save(tmp_path / "x.png")
    found = image.read(tmp_path / "x.png")
    assert found.shape == (10_000, 10_000, 3)
    assert found[::1000, ::1000].min() == 255


def test_an_hour_of_sound_is_read(tmp_path):
    raw = bytearray(recorded("WAV", "PCM_16", 1)())
    samples = 3600 * 8000
    raw[40:44] = (2 * samples).to_bytes(4, "little")
    raw[4:8] = (2 * samples + 36).to_bytes(4, "little")
    (tmp_path / "x.wav").write_bytes(raw)
    os.truncate(tmp_path / "x.wav", 44 + 2 * samples)
    wave, rate = audio.read(tmp_path / "x.wav")
    assert (len(wave), rate) == (samples, 8000)
    assert np.abs(wave[:4000]).max() > 0.1


def test_of_an_animation_the_first_picture_is_read(tmp_path):
    from PIL import Image
    first = Image.fromarray(np.full((40, 40), 255, np.uint8))
    first.save(tmp_path / "x.gif", save_all=True, append_images=[Image.fromarray(np.full((40, 40), i % 200, np.uint8)) for i in range(2000)])
    found = image.read(tmp_path / "x.gif")
    assert found.shape[:2] == (40, 40)
    assert found.min() == 255


def test_limits_leave_room_for_what_is_met_in_earnest():
    assert limits.PIXELS >= 100_000_000
    assert limits.SAMPLES >= 3600 * 96_000
    assert limits.VECTORS >= 20 * limits.GIB
    assert limits.TABLE >= limits.GIB


# --- ten thousand -----------------------------------------------------------------------------------------------------


def all_of(kind):
    """(kind, what came of each, what went wrong with the process), begun again behind what crashed it."""
    count, done, crashes, first = round(LONG * kind.share), [], [], 0
    while first < count:
        ran = own_process("garbage", kind.name, first, count - first)
        lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        done += [line for line in lines if "number" in line]
        first = count
        if ran.returncode:
            first = max((line["begun"] for line in lines if "begun" in line), default=count) + 1
            crashes.append(f"{kind.name} #{first - 1} ends the process with {ran.returncode}: {ran.stderr[-500:]}")
    return kind, done, crashes


@pytest.mark.skipif(not os.environ.get("SOAK"), reason="takes a quarter of an hour; SOAK=1")
def test_ten_thousand_malformed_files(capsys):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(all_of, KINDS))
    rows, wrong = [], []
    for kind, done, crashes in found:
        read = sum(one["read"] for one in done)
        rows.append((kind.name, len(done), read, len(done) - read, max(one["seconds"] for one in done)))
        wrong += crashes + [f"{kind.name} #{one['number']}: {one['wrong']}" for one in done if one["wrong"]]
    with capsys.disabled():
        print("\n| kind | tried | read | refused | slowest, s |\n|---|---|---|---|---|")
        for name, *counts, slowest in [*rows, ("all", *np.array([row[1:4] for row in rows]).sum(axis=0), max(row[4] for row in rows))]:
            print(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} | {slowest:.1f} |")
    assert not wrong, "\n".join(one[:400] for one in wrong)
    assert sum(row[1] for row in rows) >= 10_000
    assert all(row[1] >= FEW for row in rows)


def test_every_kind_has_a_name_of_its_own():
    assert len(BY_NAME) == len(KINDS)
