"""What was measured, and of which code: results.json."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FILE = HERE / "results.json"
PACKAGES = ("whytrust", "lime", "captum", "numpy", "scipy", "scikit-learn", "torch")


def fingerprint() -> str:
    """Which code was measured: a hash of whytrust's source files."""
    files = sorted((HERE.parent / "src" / "whytrust").rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def versions() -> dict[str, str]:
    """Of Python and of what was measured with."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in PACKAGES}}


def write(whole: dict[str, Any], file: Path) -> None:
    """Everything anew."""
    file.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def keep_part(name: str, found: Any, code: str, file: Path = FILE) -> None:
    """One part measured alone, into what was measured earlier; of which code it is stands beside it."""
    whole = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    alone = whole.get("measured_alone", {}) | {name: {"source_sha256": code, "versions": versions()}}
    write(whole | {name: found, "measured_alone": alone}, file)
