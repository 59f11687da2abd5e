"""Measures: each judges scores by what is known of a case. To add one, write a file and add an entry here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whytrust.measures.amounts import Completeness, FaithfulnessCorrelation, Infidelity
from whytrust.measures.case import Case as Case
from whytrust.measures.flipping import (
    Comprehensiveness,
    Deletion,
    ImpactScore,
    Insertion,
    PixelFlipping,
    Sufficiency,
    TopKAblation,
    WordDeletion,
)
from whytrust.measures.flips import Flips as Flips
from whytrust.measures.judged import Aspect, Kind, Metric
from whytrust.measures.judged import Judged as Judged
from whytrust.measures.pointing import Localisation, PointingGame, RelevanceMass, RelevanceRank
from whytrust.measures.recovery import Recovery as Recovery
from whytrust.measures.roar import Roar as Roar
from whytrust.measures.stability import LabelRandomisation, MaxSensitivity, ModelRandomisation
from whytrust.measures.trials import AllPositive, LabelFlips, Recovered


@dataclass(frozen=True)
class Entry:
    """One trial of the catalogue: what it asks, which goal of an explanation it judges, and who proposed it.

    All of them hold an explanation against the model, and speak of how faithful it is to what turned the label.
    """

    name: str
    about: str
    goal: str
    paper: str
    measure: Any
    kind: Kind = "performance"
    aspect: Aspect = "faithfulness"


CATALOGUE = (
    Entry("flip", "the perturbation of the k best parts, laid over the clean input: does the label change?", "ranking",
          "Hoedt et al. 2022", Flips),
    Entry("all_positive", "the same with all parts of positive score, against as many by magnitude", "contribution",
          "Praher et al. 2021", Flips),
    Entry("recovery", "only k parts are changed: how many of them are among the k best?", "ranking", "Hoedt et al. 2022",
          Recovery),
    Entry("fidelity", "does the fidelity of a local model tell hits from misses?", "fidelity", "Praher et al. 2021", Recovery),
)
BASELINES = {"magnitude": "the parts that were changed most, by the sum of squared changes",
             "magnitude_mean": "the same per value",
             "blind": "the best ranking that cannot know the cause: other inputs' explanations, the centre, size, edges, …",
             "oracle": "the smallest set of parts that was found to change the label: what nobody can beat"}
"""What every audit has beside random."""
NAMES = {entry.name: entry for entry in CATALOGUE}
METRICS: tuple[Metric, ...] = (
    PixelFlipping(), PixelFlipping(order="least"), PixelFlipping(indicator="accuracy"), Deletion(), Insertion(), TopKAblation(),
    WordDeletion(), ImpactScore(), Comprehensiveness(), Sufficiency(), Infidelity(), Infidelity(scaled=True),
    FaithfulnessCorrelation(), Completeness(), ModelRandomisation(), LabelRandomisation(), MaxSensitivity(), PointingGame(),
    Localisation(), RelevanceMass(), RelevanceRank(), LabelFlips(), AllPositive(), Recovered())
"""Every metric of single explanations, with its usual settings; each says of itself what it is."""
METRIC_NAMES = {metric.about.name: metric for metric in METRICS}
