"""A folder with a model, inputs, a spec, and the run of it."""

import numpy as np
import pytest

from planted import GRID
from studies.specs import MODEL, SPEC
from whytrust.cli import main
from whytrust.models.whitebox import MarkedCause


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("place")
    (folder / "model.py").write_text(MODEL)
    (folder / "spec.toml").write_text(SPEC)
    np.save(folder / "inputs.npy", MarkedCause(GRID).inputs(24))
    assert main(["audit", str(folder / "spec.toml"), "--out", str(folder / "run")]) == 0
    return folder
