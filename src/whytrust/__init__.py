"""Explain any model's prediction, and find out whether the explanation can be trusted."""

from whytrust.api import SomeFailed, explain, methods, model
from whytrust.attacking import attack
from whytrust.attacks import Attacked
from whytrust.auditing import audit
from whytrust.core import MissingExtra
from whytrust.explanation import Explanation, Gallery
from whytrust.fooling import Fooled, fool
from whytrust.judging import Tried, metrics
from whytrust.measuring import Measured, measure
from whytrust.picking import Picked, pick
from whytrust.report.audit import Audit
from whytrust.retraining import Retrained, roar
from whytrust.trusting import Trust, trust
from whytrust.twinning import Twins, twins
from whytrust.universes import Multiverse, multiverse

__version__ = "0.1.0"
__all__ = ["Attacked", "Audit", "Explanation", "Fooled", "Gallery", "Measured", "MissingExtra", "Multiverse", "Picked",
           "Retrained", "SomeFailed", "Tried", "Trust", "Twins", "attack", "audit", "explain", "fool", "measure", "methods",
           "metrics", "model", "multiverse", "pick", "roar", "trust", "twins"]
