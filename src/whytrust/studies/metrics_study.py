"""The metrics themselves on trial, as a study: every metric before true, spoilt and random explanations of the lab's models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from whytrust.engine import Block, Result
from whytrust.lab import Lab, every_lab
from whytrust.measures.judged import Metric
from whytrust.studies.metrics_cases import LabCase, settings

FORMAT = 1
RECORDS = 2
"""Of what a record says: a run whose labs were asked otherwise is another run."""
CASES = 120
"""Inputs of each lab: enough to tell a rate of .65 from tossing a coin after the adjustment for all metrics and labs."""
BLOCK = 10


@dataclass(frozen=True, eq=False)
class MetricsStudy:
    """Does each metric find the truth where it is known?"""

    metrics: Sequence[Metric]
    labs: Sequence[Lab] = field(default_factory=every_lab)
    cases: int = CASES
    seed: int = 0
    command: str = ""

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        return {"format": FORMAT, "study": "metrics", "seed": self.seed, "hashes": {},
                "spec": {"records": RECORDS, "metrics": dict(settings(self.metrics)), "labs": [lab.name for lab in self.labs],
                         "cases": self.cases},
                "about": {"labs": {lab.name: {"about": lab.about, "domain": lab.domain, "expected": lab.expected,
                                              "exact": lab.exact}
                                   for lab in self.labs}, "command": self.command,
                          "metrics": {metric.about.name: asdict(metric.about) for metric in self.metrics}}}

    def blocks(self) -> list[Block]:
        """Inputs of one lab, ten at a time."""
        return [Block(f"{_filed(lab)}-{start:04d}", tuple(f"{_filed(lab)}-{i:04d}" for i in
                                                          range(start, min(start + BLOCK, self.cases))))
                for lab in self.labs for start in range(0, self.cases, BLOCK)]

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterator[Result]:
        """Every metric on every input of a block."""
        for case in block.cases:
            name, _, number = case.rpartition("-")
            lab = self._by_name[name]
            yield Result({"case": case, "status": "ok", "lab": lab.name,
                          **LabCase(lab, int(number), self.metrics, self.seed).record()})

    @property
    def _by_name(self) -> Mapping[str, Lab]:
        return {_filed(lab): lab for lab in self.labs}


def _filed(lab: Lab) -> str:
    """A lab's name as a part of a file's name."""
    return re.sub(r"[^a-z]+", "_", lab.name)
