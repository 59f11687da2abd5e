"""A study whose results are known, for tests of those who run studies."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from whytrust.core import generator
from whytrust.engine import Block, Result


@dataclass
class Toy:
    """Random numbers that depend on the seed and the case alone; what else happens is up to `trouble`."""

    blocks_: int = 5
    seed: int = 0
    trouble: object = None  # called with each case before it is worked on
    diary: str = ""  # a file in which each process that opens the study leaves its number

    def manifest(self):
        return {"spec": {"blocks": self.blocks_}, "seed": self.seed}

    def blocks(self):
        return [Block(f"{b:02d}", (f"{b:02d}a", f"{b:02d}b")) for b in range(self.blocks_)]

    def work(self, block, on_calls):
        for case in block.cases:
            if self.trouble is not None:
                self.trouble(case)
            rng = generator(self.seed, case)
            on_calls(7)
            yield Result({"case": case, "score": rng.normal(), "product": np.float32(rng.normal(size=50) @ rng.normal(size=50))},
                         {"clean": rng.random((4, 5)), "labels": rng.integers(0, 9, 6)})

    def __setstate__(self, state):
        self.__dict__.update(state)
        if self.diary:
            with open(self.diary, "a") as file:
                file.write(f"{os.getpid()}\n")


def shards(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for kind in ("records", "arrays") for p in sorted((Path(folder) / kind).iterdir())}


def gone(pids):
    """Are all of these processes at an end, within a few seconds? Who is a zombie has ended."""
    for _ in range(60):
        alive = [p for p in pids if Path(f"/proc/{p}").exists() and Path(f"/proc/{p}/stat").read_text().split()[2] != "Z"]
        if not alive:
            return True
        time.sleep(0.05)
    return False
