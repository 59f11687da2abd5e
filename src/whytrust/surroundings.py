"""What a run's last digits hang on besides its spec: the kind of processor, and the versions of the libraries that reckon."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import metadata
from pathlib import Path

LIBRARIES = ("whytrust", "numpy", "scipy", "scikit-learn", "torch", "onnxruntime", "transformers", "xgboost",
             "lightgbm")
MODULES = {"scikit-learn": "sklearn"}


def surroundings() -> dict[str, str]:
    """The processor, Python, and each of the libraries that is in use; those that are only installed are not."""
    told = {"cpu": processor(), "python": platform.python_version()}
    for name in LIBRARIES:
        module = sys.modules.get(MODULES.get(name, name))
        with suppress(metadata.PackageNotFoundError):  # whytrust may be run from a folder that is not installed
            if module is not None:
                told[name] = str(getattr(module, "__version__", None) or metadata.version(name))
    return told


@cache
def processor() -> str:
    """The processor's model, as the system calls it; its kind where the system has no name for it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def changes(was: Mapping[str, str], now: Mapping[str, str]) -> str:
    """What differs of what both name, in words; empty where nothing does."""
    other = [name for name in was if name != "time" and now.get(name, was[name]) != was[name]]
    return ", ".join(f"{name} {was[name]}, now {now[name]}" for name in other)
