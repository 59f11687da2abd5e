"""Explain any model's prediction, and find out whether the explanation can be trusted."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "api": "SomeFailed explain methods model", "attacking": "attack", "attacks": "Attacked", "auditing": "audit",
    "core": "MissingExtra", "explanation": "Explanation Gallery", "fooling": "Fooled fool", "judging": "Tried metrics",
    "measuring": "Measured measure", "picking": "Picked pick", "report.audit": "Audit", "retraining": "Retrained roar",
    "trusting": "Trust trust", "twinning": "Twins twins", "universes": "Multiverse multiverse"}
"""Where each name lives. It is fetched when it is first used: a worker process, or who asks for the version, waits for none."""


def __getattr__(name: str) -> Any:
    home = next((home for home, names in _HOMES.items() if name in names.split()), None)
    if home is not None:
        globals()[name] = value = getattr(import_module(f"whytrust.{home}"), name)
        return value
    if not name.startswith("_") and find_spec(f"whytrust.{name}") is not None:
        return import_module(f"whytrust.{name}")
    raise AttributeError(f"module 'whytrust' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
