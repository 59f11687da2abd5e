"""Texts in a study: where they come from, what of them the model takes in, and what of a case is kept to look at."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import inputs as reading
from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.domains.text import TextParts
from whytrust.studies.adversaries import Adversary

SUFFIX = ".txt"
TITLE = 48
"""Letters of a text that stand for it in a list."""


def is_text(value: Any) -> bool:
    """Is this a text, or the path of a file that holds one?"""
    return isinstance(value, str | os.PathLike) and reading.domain_of(value, None, {}) == "text"


def read(value: Any) -> Any:
    """The text itself, also where it lies in a file of its own."""
    if not isinstance(value, str | os.PathLike) or not reading.source_of(value):
        return str(value) if isinstance(value, reading.Said) else value
    return reading.read_text(Path(value))


def lines(path: Path) -> list[str]:
    """The texts of a file with one a line; empty lines are left out."""
    if not path.is_file():
        raise ValueError(f"inputs names the file {path}, which does not exist")
    found = [line.strip("\r") for line in reading.read_text(path).split("\n")]
    texts: list[str] = [reading.Said(line) for line in found if line.strip()]
    if not texts:
        raise ValueError(f"{path} must hold a text a line, got none")
    return texts


def title(text: str) -> str:
    """A text's beginning, on one line."""
    line = " ".join(text[:8 * TITLE].split())
    return line if len(line) <= TITLE else f"{line[:TITLE].rsplit(' ', 1)[0].rstrip(' ,;:')} …"


def taken_in(model: CheckedModel, text: Any) -> str:
    """What the model takes in of a text: words beyond that can neither fool it nor explain what it says."""
    parts = TextParts.cut(text, "words", reads=model.reads)
    if len(parts.names) < 2:
        raise ValueError(f"a text must have at least two words that the model reads, got {title(text)!r}: of one there is "
                         "nothing to choose; leave such texts out")
    return parts.compose(np.ones((1, len(parts.names)), dtype=bool), generator(0))[0]


# --- what is kept -----------------------------------------------------------------------------------------------------


def facts(found: Adversary, whole: str) -> dict[str, Any]:
    """How many characters of the text there are that the model does not read."""
    return {"characters": len(whole), "unread": len(whole) - len(found.clean)}


def arrays(cut: TextParts, found: Adversary) -> dict[str, NDArray[Any]]:
    """Both texts as bytes, and where their words are, in characters."""
    kept: dict[str, NDArray[Any]] = {}
    for name, text in (("clean", found.clean), ("adversarial", found.changed)):
        kept[name] = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
        kept[f"{name}_spans"] = np.array([spans[0] for spans in cut.like(text).spans], dtype=np.int32)
    return kept
