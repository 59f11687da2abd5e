"""A line on stderr that says how far a long piece of work is; most are silent where stderr is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from whytrust.legible import in_line

EVERY = 30.0
"""Seconds between two lines of a training that writes to a file."""
LONG, SELDOM = 10.0, 900.0
"""Seconds after which a run that nobody watches leaves a line at its end, and between two lines on its way."""


class Progress:
    """Counts model calls; writes at most ten times a second to a terminal, and wipes its line at the end.

    With `every`, it also writes a line to a file or a pipe each so many seconds.
    """

    def __init__(self, label: str, every: float | None = None) -> None:
        """Nothing is shown before a second has passed."""
        self.label = label
        self.done = 0
        self.start = self.last = time.monotonic()
        self.watched = sys.stderr is not None and sys.stderr.isatty()
        self.shown = False
        self.every, self.logged = every, self.start
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
            sys.stderr.write("\r\x1b[K" + in_line(f"{self.label}: {self.words(now)}"))
            sys.stderr.flush()
            self.last, self.shown = now, True
        elif not self.watched and self.every is not None and now - self.logged > self.every:
            self.logged = now
            self._line(self.words(now))

    def _line(self, words: str) -> None:
        if sys.stderr is not None:
            print(in_line(f"{self.label}: {words}"), file=sys.stderr, flush=True)  # errors of others' data may be told in it

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


class CaseProgress(Progress):
    """Counts the cases of a run as well as its model calls; the time left is from the cases done since this run was begun.

    It misleads where the cases that are left take longer than those done. Where nobody watches, a run that takes long leaves a
    line when it ends, and one now and then before that.
    """

    def __init__(self, label: str, total: int, before: int = 0, workers: int = 1) -> None:
        """`before` of the `total` cases were done by an earlier run."""
        super().__init__(label)
        self.total, self.before, self.workers, self.cases = total, before, workers, 0

    def finished(self, cases: int) -> None:
        """So many more cases are done."""
        self.cases += cases
        self(0)
        now = time.monotonic()
        if not self.watched and now - self.logged > SELDOM:
            self.logged = now
            self._line(self.words(now))

    def aside(self, note: str) -> None:
        """Say something besides, without losing the line."""
        if self.shown:
            sys.stderr.write("\r\x1b[K")
        self._line(note)

    def words(self, now: float) -> str:
        """How far the run is, how fast, and how long it will take where something is known of that."""
        took = max(now - self.start, 1e-9)
        told = [f"{self.before + self.cases:,} of {self.total:,} inputs"]
        if not self.cases:
            told.append(f"at the next ones for {duration(took)}")
        else:
            told.append(f"{often(self.cases / took)}{f' on {self.workers} workers' if self.workers > 1 else ''}")
        if self.done:
            told.append(f"{self.done / took:,.0f} model calls a second")
        left = self.total - self.before - self.cases
        if self.cases and left:
            told.append(f"about {duration(left * took / self.cases)} left")
        elif self.cases:
            told.append(f"in {duration(took)}")
        return ", ".join(told)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Leave the terminal as it was; without one, a line that says how it went."""
        super().__exit__(kind, error, trace)
        now = time.monotonic()
        if not self.watched and now - self.start > LONG and self.cases:
            self._line(self.words(now))


def often(rate: float) -> str:
    """So many a second as one says it: 12 a second, 40 a minute, 7 an hour."""
    for seconds, unit in ((1, "a second"), (60, "a minute")):
        if rate * seconds >= 1:
            return f"{rate * seconds:,.{0 if rate * seconds >= 10 else 1}f} {unit}"
    return f"{rate * 3600:,.1f} an hour"


def duration(seconds: float) -> str:
    """A length of time as one says it: 40 s, 1 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {whole % 60} s"
