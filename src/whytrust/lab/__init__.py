"""The lab: models whose reasons are known, inputs for them, and the true score of every part.

A metric that cannot tell the truth from a lie here cannot be believed elsewhere. What holds in the lab need not hold outside of
it: a metric that passes has not been caught, and no more.
"""

from dataclasses import replace

from whytrust.lab.arrays import Pictures, Rows
from whytrust.lab.bench import Lab, Planted, corrupted, shapley
from whytrust.lab.sounds import Beeps
from whytrust.lab.words import Reviews

__all__ = ["LABS", "Beeps", "Lab", "Pictures", "Planted", "Reviews", "Rows", "corrupted", "other_weights", "shapley", "shifted"]

LABS: tuple[Lab, ...] = (
    Pictures(), Pictures("bend"), Pictures("interactions"), Pictures(shared=True), Rows(), Rows("bend"), Rows("interactions"),
    Rows("leak"), Reviews(), Reviews("trigger"), Beeps(), Beeps("planted"))
"""Every white box, two and more a domain: one whose reasons are what people expect, and one that goes by something else."""


def shifted(lab: Lab) -> Lab:
    """The same lab with something added to every class alike: no decision changes, and every score has a new reason."""
    return replace(lab, shared=True)  # type: ignore[type-var]


def other_weights(lab: Lab) -> Lab:
    """The same lab with a model of other weights, as before its training."""
    return replace(lab, seed=lab.seed + 1)  # type: ignore[type-var,attr-defined]
