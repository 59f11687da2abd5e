"""Freed memory is kept: seen in the page faults of a process of its own, which count what the system had to clear."""

import subprocess
import sys

import pytest

from whytrust import memory

PAGES = """
import resource, sys
import numpy as np
from whytrust.memory import keep_freed

if "keep" in sys.argv and not keep_freed():
    sys.exit(7)

def batch():
    held = [np.ones(2_500_000) for _ in range(4)]  # 80 MB, freed together

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

batch()
before = faults()
for _ in range(10):
    batch()
print(faults() - before)
"""


def faults(*arguments):
    done = subprocess.run([sys.executable, "-c", PAGES, *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode == 7:
        pytest.skip("not glibc")
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="no page faults to count")
def test_the_next_batch_finds_the_memory_of_the_last():
    usual, kept = faults(), faults("keep")
    assert kept < 0.1 * usual  # 800 MB: 200 000 pages, or 400 huge ones


def test_other_systems_are_left_as_they_are(monkeypatch):
    monkeypatch.setattr(memory, "_c_library", lambda: None)
    assert memory.keep_freed() is False
