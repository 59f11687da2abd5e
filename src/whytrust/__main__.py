"""python -m whytrust, and the command whytrust: the command line."""

import sys


def main() -> int:
    """Run what was typed; an interrupt while the modules are still read, which takes seconds, is no error either."""
    try:
        from whytrust.cli import main as command

        return command()
    except KeyboardInterrupt:
        print("whytrust: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
