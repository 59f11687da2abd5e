"""A line on stderr that says how far a long piece of work is; silent where nobody watches."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
        self.item = ""  # which of several inputs this is
        self.end: int | None = None  # of the piece of work in hand, where that is known

    @contextmanager
    def expect(self, calls: int) -> Iterator[None]:
        """Inside, so many calls are to come; who expects first knows of the whole, and those within it are its pieces."""
        outermost = self.end is None
        if outermost:
            self.end = self.done + calls
        try:
            yield
        finally:
            self.end = None if outermost else self.end

    def __call__(self, calls: int) -> None:
        """`calls` more inputs were answered."""
        self.done += calls
        now = time.monotonic()
        if self.watched and now - self.start > 1 and now - self.last > 0.1:
            sys.stderr.write(f"\r\x1b[K{self.label}: {self.words(now)}")
            sys.stderr.flush()
            self.last, self.shown = now, True

    def words(self, now: float) -> str:
        """How far it is: the calls that are done, and where the end is known how long it will take."""
        took = now - self.start
        rate = self.done / took
        if self.end is None or self.end <= self.done:
            return f"{self.item}{self.done:,} model calls, {rate:,.0f} a second, {took:.0f} s"
        left = (self.end - self.done) / max(rate, 1e-9)
        return f"{self.item}{self.done:,} of {self.end:,} model calls, {rate:,.0f} a second, {left:.0f} s left"

    def __enter__(self) -> Progress:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave the terminal as it was."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
