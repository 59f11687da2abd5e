"""Explain any model's prediction, and find out whether the explanation can be trusted."""

from whytrust.api import SomeFailed, explain, methods, model
from whytrust.attacking import attack
from whytrust.attacks import Attacked
from whytrust.core import MissingExtra
from whytrust.explanation import Explanation, Gallery

__version__ = "0.1.0"
__all__ = ["Attacked", "Explanation", "Gallery", "MissingExtra", "SomeFailed", "attack", "explain", "methods", "model"]
