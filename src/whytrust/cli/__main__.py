"""python -m whytrust.cli."""

import sys

from whytrust.cli import main

sys.exit(main())
