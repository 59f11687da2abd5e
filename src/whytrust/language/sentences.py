"""One sentence encoder for all who compare meanings: loaded once in a process, by its name."""

from __future__ import annotations

from functools import cache

from whytrust.backends.language import SentenceEncoder

USUAL = "minilm"
"""MiniLM, as it comes with its package."""


@cache
def encoder(name: str = USUAL) -> SentenceEncoder:
    """The encoder of that name or folder."""
    return SentenceEncoder.load(None if name == USUAL else name)
