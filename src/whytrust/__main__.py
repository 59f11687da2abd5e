"""python -m whytrust, and the command whytrust: the command line."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130


def main() -> int:
    """Run what was typed; an interrupt while the modules are still read, which takes seconds, is one line too."""
    try:
        with _leaving_at_once():
            from whytrust.cli import main as command
        return command()
    except KeyboardInterrupt:
        _tell()
        return INTERRUPTED


@contextmanager
def _leaving_at_once() -> Iterator[None]:
    """Inside, an interrupt ends the process: there is nothing to tidy yet, and libraries take it for a bad install."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # who ignores interrupts, as nohup may, goes on doing so
        yield
        return
    signal.signal(signal.SIGINT, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave(number: int, frame: FrameType | None) -> None:
    _tell()
    os._exit(INTERRUPTED)


def _tell() -> None:
    print("whytrust: interrupted", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
