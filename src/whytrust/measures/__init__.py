"""Measures: each judges scores by what is known of a case. To add one, write a file and add an entry here."""

from __future__ import annotations

from dataclasses import dataclass

from whytrust.measures.case import Case as Case
from whytrust.measures.flips import Flips as Flips
from whytrust.measures.recovery import Recovery as Recovery


@dataclass(frozen=True)
class Entry:
    """One trial of the catalogue: what it asks, which goal of an explanation it judges, and who proposed it."""

    name: str
    about: str
    goal: str
    paper: str


CATALOGUE = (
    Entry("flip", "the perturbation of the k best parts, laid over the clean input: does the label change?", "ranking",
          "Hoedt et al. 2022"),
    Entry("all_positive", "the same with all parts of positive score, against as many by magnitude", "contribution",
          "Praher et al. 2021"),
    Entry("recovery", "only k parts are changed: how many of them are among the k best?", "ranking", "Hoedt et al. 2022"),
    Entry("fidelity", "does the fidelity of a local model tell hits from misses?", "fidelity", "Praher et al. 2021"),
)
NAMES = {entry.name: entry for entry in CATALOGUE}
