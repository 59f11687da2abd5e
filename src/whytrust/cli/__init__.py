"""The command line: `whytrust explain`, `audit`, `report`, `gate`, `plan`, `diff`, `pick`, `reproduce`, `train`, …"""

from __future__ import annotations

import argparse
import errno
import re
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import NoReturn

import whytrust
from whytrust.cli import catalogue, explaining, fooling, judging, picking, reproducing, runs, training, trusting
from whytrust.cli.screen import Screen, complain
from whytrust.core import AllFailed
from whytrust.memory import keep_freed

LATER = 75
"""The exit code of what may work later: sysexits.h calls it EX_TEMPFAIL."""
FULL_OR_FAULTY = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""A disk or a quota that is full, and a device that fails."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: 0 it worked, 1 some or all inputs failed, 2 a wrong argument, with one line that says what to do.

    75 where the machine or a cluster is the reason, so that the same command may go on later.
    """
    if arguments is None:  # a process of our own
        keep_freed()
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        with redirect_stdout(Screen(sys.stdout)):
            return int(options.run(options))
    except KeyboardInterrupt:
        print("whytrust: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output (head, less) has left; that is no fault.
        sys.stderr.close()
        return 0
    except MemoryError as error:
        complain(f"there is not enough memory for this ({str(error) or 'no more is said'}); take fewer or smaller inputs, "
                 "coarser parts, or fewer samples")
        return 2
    except AllFailed as error:
        complain(str(error))
        return 1
    except (ValueError, TypeError, ImportError, OSError) as error:
        complain(str(error))
        return LATER if _may_pass(error) else 2


def _may_pass(error: Exception) -> bool:
    """Whether what went wrong is no mistake of the user's, and may be over when the same command is given again."""
    return isinstance(error, ConnectionError) or (isinstance(error, OSError) and error.errno in FULL_OR_FAULTY)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, like every other error here."""

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        told = re.sub(r"^argument (--\S+): must ", r"\1 must ", message)
        self.exit(2, f"{self.prog}: {told}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="whytrust", description=whytrust.__doc__)
    parser.add_argument("--version", action="version", version=f"whytrust {whytrust.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for group in (explaining, runs, trusting, picking, fooling, judging, reproducing, training, catalogue):
        group.add_to(commands)
    for command in commands.choices.values():
        command.add_argument("--json", action="store_true", help="machine-readable output on stdout")
    return parser
