"""Where long work is done: options that every command with a run has."""

from __future__ import annotations

import argparse
import math
from typing import Any

from whytrust.engine import Dask, Engine, Here, Processes


def whole_jobs(text: str) -> int:
    """What --jobs may be."""
    if not (text.isascii() and text.isdecimal() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"must be a whole number >= 1, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    """What --timeout may be."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of seconds above 0, got {text!r}")
    return found


def add_engine_options(command: Any) -> None:
    """How many work at once, and where."""
    command.add_argument("--jobs", type=whole_jobs, default=1, help="worker processes (default 1)")
    command.add_argument("--engine", choices=("local", "dask"), default="local",
                         help="local: processes of this machine (the default); dask: a dask cluster, of this machine's cores "
                         "unless --scheduler names another")
    command.add_argument("--scheduler", metavar="ADDRESS", help="of a dask cluster, such as tcp://10.0.0.1:8786")
    command.add_argument("--timeout", type=_seconds, metavar="SECONDS",
                         help="how long one case may take; one that takes longer is ended and set aside. Cases of a block are "
                         "worked on together, and may take so long for each of them before they are tried one by one")
    command.add_argument("--retry-failed", action="store_true", help="a run that is continued: try cases again that failed, "
                         "with the others of their block")


def chosen(options: argparse.Namespace) -> int | Engine:
    """What was asked for: a number of processes, or an engine."""
    if options.engine == "dask":
        if options.scheduler is not None and options.jobs != 1:
            raise ValueError("--jobs is for this machine; a cluster has as many workers as were begun for it: leave --jobs out")
        return Dask(options.scheduler, options.jobs, options.timeout, options.retry_failed)
    if options.scheduler is not None:
        raise ValueError("--scheduler is a dask cluster's: say --engine dask too, or leave it out")
    if options.jobs == 1 and options.timeout is None:
        return Here(retry_failed=True) if options.retry_failed else 1
    return Processes(options.jobs, options.timeout, options.retry_failed)
