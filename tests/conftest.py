import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # so that tests can import `whitebox`, their shared models


@pytest.fixture
def rng():
    return np.random.default_rng(0)
