"""A line on stderr that says how far a long piece of work is; silent where nobody watches."""

from __future__ import annotations

import sys
import time
from types import TracebackType


class Progress:
    """Counts model calls; writes at most ten times a second, only to a terminal, and wipes its line at the end."""

    def __init__(self, label: str) -> None:
        """Nothing is shown before a second has passed."""
        self.label = label
        self.done = 0
        self.start = self.last = time.monotonic()
        self.watched = sys.stderr is not None and sys.stderr.isatty()
        self.shown = False

    def __call__(self, calls: int) -> None:
        """`calls` more inputs were answered."""
        self.done += calls
        now = time.monotonic()
        if self.watched and now - self.start > 1 and now - self.last > 0.1:
            rate = self.done / (now - self.start)
            sys.stderr.write(f"\r\x1b[K{self.label}: {self.done:,} model calls, {rate:,.0f} a second, {now - self.start:.0f} s")
            sys.stderr.flush()
            self.last, self.shown = now, True

    def __enter__(self) -> Progress:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave the terminal as it was."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
