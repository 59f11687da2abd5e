"""What the commands say: names and texts of others are shown on the screen, and neither steer it nor forge a line."""

from __future__ import annotations

import sys
from typing import Any, TextIO

from whytrust.legible import harmless, in_line

LONGEST = 2000
"""Characters of a message."""


class Screen:
    """Standard output on which control characters are written out, whoever prints them; all else is the stream's own."""

    def __init__(self, stream: TextIO) -> None:
        """Around the stream that was there."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Show it; as many characters as came are told to be written."""
        self._stream.write(harmless(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        """Whatever else a stream can do."""
        return getattr(self._stream, name)


def complain(words: str) -> None:
    """One line on standard error, whatever the words hold; of a message that fills screens, how it begins and ends."""
    line = in_line(" ".join(words.split()))
    print(f"whytrust: {line if len(line) <= LONGEST else f'{line[:LONGEST // 2]} … {line[-LONGEST // 2:]}'}", file=sys.stderr)
