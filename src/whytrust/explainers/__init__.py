"""Explainers: each answers a Question with one score a part. To add one, write a file and add a line here."""

from whytrust.explainers.baselines import Random
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion

CATALOGUE = (
    ("lime", Lime, "a weighted linear model (or small tree) of the black box around the input, with standard errors"),
    ("occlusion", Occlusion, "how much the score falls when one part alone is hidden"),
    ("random", Random, "random scores: the floor that every explainer must beat"),
)
