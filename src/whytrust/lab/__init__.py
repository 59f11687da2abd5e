"""The lab: models whose reasons are known, inputs for them, and the true score of every part.

A metric that cannot tell the truth from a lie here cannot be believed elsewhere. What holds in the lab need not hold outside of
it: a metric that passes has not been caught, and no more.
"""

import importlib.util
from dataclasses import replace

from whytrust.lab.arrays import Pictures, Rows
from whytrust.lab.bench import Changed, Lab, Planted, added_on_average, corrupted, shapley
from whytrust.lab.sounds import Beeps
from whytrust.lab.trained import Relying
from whytrust.lab.words import Reviews

__all__ = ["LABS", "LEARNT", "Beeps", "Changed", "Lab", "Pictures", "Planted", "Relying", "Reviews", "Rows", "added_on_average",
           "corrupted", "every_lab", "other_weights", "shapley", "shifted"]

LABS: tuple[Lab, ...] = (
    Pictures(), Pictures("bend"), Pictures("interactions"), Pictures("edges"), Pictures(shared=True), Rows(), Rows("bend"),
    Rows("interactions"), Rows("leak"), Reviews(), Reviews("trigger"), Beeps(), Beeps("planted"))
"""Every white box, two and more a domain: one whose reasons are what people expect, and one that goes by something else."""
LEARNT: tuple[Lab, ...] = (Relying("image"), Relying("tabular"), Relying("text"), Relying("audio"))
"""One model a domain that was trained until it goes by an artefact."""


def every_lab() -> tuple[Lab, ...]:
    """White boxes, and models that learnt; the net of pictures where torch is installed."""
    torch = importlib.util.find_spec("torch") is not None
    return (*LABS, *(lab for lab in LEARNT if lab.domain != "image" or torch))


def shifted(lab: Lab) -> Lab:
    """The same lab with something added to every class alike: no decision changes, and every score has a new reason."""
    return replace(lab, shared=True)  # type: ignore[type-var]


def other_weights(lab: Lab) -> Lab:
    """The same lab with a model of other weights, as before its training."""
    if isinstance(lab, Relying):
        return replace(lab, trained=False)
    return replace(lab, seed=lab.seed + 1)  # type: ignore[type-var,attr-defined]
