import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can import `whitebox`, their shared models

# One thread is faster than two on the small nets of the tests, and two test workers do not fight over the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Some virtual machines say that they have Intel's AMX and end a process that uses it: one test of bfloat16 would take all after it along.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")

# How long an example takes depends on what else the machine does: no test is timed.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def singing_detector():
    """(net, facts) of the embedded singing-voice detector; the first time of all it is trained, which takes minutes."""
    pytest.importorskip("torch")
    from whytrust.models.singing_demo import detector
    return detector()
