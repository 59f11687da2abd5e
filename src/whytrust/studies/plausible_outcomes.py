"""What a run of `PlausibleStudy` holds: flips and recoveries of each adversary, as arrays to test and average."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust.core import Floats
from whytrust.measures.flips import PERCENT
from whytrust.report import outcomes

K = 3
"""Parts whose perturbation is laid over the image in the paper's tables."""
BASELINES = ("oracle", "magnitude", "magnitude_mean", "random")
KS = (1, 3, 5)
Record = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Run:
    """The cases of one net, or of all nets, that are done."""

    records: tuple[Record, ...]
    rows: tuple[Record, ...]  # those of them that were fooled, and so have trials

    @property
    def images(self) -> list[str]:
        """The image of each row: what is independent where several nets saw the same image."""
        return [record["case"].partition(".")[2] for record in self.rows]

    def at(self, cut: str, name: str, k: int = K) -> Floats:
        """Whether the k best parts flip each row's label; NaN where there are no more than k, or the explainer was not run."""
        return np.array([outcomes.at(row["trials"][cut], name, "any", k) if row["d"][cut] > k else math.nan
                         for row in self.rows])

    def curve(self, cut: str, name: str) -> Floats:
        """(rows, 9): whether int(d·p) parts flip the label, for p of 20 … 100 %; no part flips nothing."""
        return np.array([[outcomes.at(row["trials"][cut], name, "any", k) if (k := row["d"][cut] * p // 100) else 0.0
                          for p in PERCENT] for row in self.rows]).reshape(len(self.rows), len(PERCENT))

    def recovered(self, cut: str, name: str) -> Floats:
        """(rows, 3): the share of the only k changed parts found among the first k, for k = 1, 3, 5; NaN where not tried."""
        return np.array([[_recovered(row["trials"][cut].get("recovery", {}).get(str(k), {}), name, k, row["d"][cut])
                          for k in KS] for row in self.rows]).reshape(len(self.rows), len(KS))


def _recovered(tried: Mapping[str, Any], name: str, k: int, d: int) -> float:
    if not tried.get("flipped"):
        return math.nan
    return k / d if name == "random" else tried["found"].get(name, math.nan) / k


def pooled(name: str, how: str) -> str:
    """What an explainer with a pooling is called in the records."""
    return name if how == "mean_abs" else f"{name}:{how}"
