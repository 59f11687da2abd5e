"""A spec of an audit whose cause is known, and commands as a user gives them."""

from whytrust.cli import main
from whytrust.store import Store

MODEL = """
import numpy as np
from whytrust import model
from whytrust.models.whitebox import MarkedCause, PlantedCause
GRID = np.arange(16).reshape(4, 4).repeat(2, axis=0).repeat(2, axis=1)
box = model(MarkedCause(GRID), output="logit", classes=["dark", "bright"])
bytes_box = model(PlantedCause(GRID == 5, threshold=0.1 * 255**2, gain=60 / 255**2, whisper=1e-4 / 255), output="logit",
                  classes=["dark", "bright"])
"""
SPEC = """
model = "model.py:box"
inputs = "inputs.npy"
parts = "grid:4x4"
fill = 0.0
draws = 3
block = 4

[explainers]
occlusion = {}
lime = { samples = 60 }
made_up = { method = "random" }

[attack]
method = "pgd"
epsilon = 0.5
units = "input"
iterations = 15
"""


def stop_after(monkeypatch, blocks):
    """Ctrl-C when so many blocks are kept."""
    puts, left = Store.put, [blocks]

    def interrupted(self, block, shard):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        puts(self, block, shard)

    monkeypatch.setattr(Store, "put", interrupted)


def written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return str(path)


def told(capsys, *words):
    code = main([str(word) for word in words])
    found = capsys.readouterr()
    return code, found.out, found.err
