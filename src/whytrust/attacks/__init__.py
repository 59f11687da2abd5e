"""Attacks: each moves inputs a little so that a model says something else. To add one, write a file and add a line here."""

from whytrust.attacks.carlini_wagner import CarliniWagner
from whytrust.attacks.enhance import Enhance
from whytrust.attacks.pgd import PGD
from whytrust.attacks.result import Attacked as Attacked
from whytrust.attacks.search import search as search

CATALOGUE = (
    ("pgd", PGD, "steps along the gradient, kept within a ball around the input", "Madry et al. 2018"),
    ("carlini_wagner", CarliniWagner, "least change plus the target's loss, as against sounds", "Carlini & Wagner 2018"),
    ("enhance", Enhance, "towards the true label: inputs that even an untrained net classifies", "Wang & Wang 2022"),
)
