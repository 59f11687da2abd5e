"""python -m whytrust: the command line."""

import sys

from whytrust.cli import main

sys.exit(main())
