"""What lime's `random_state` means here: one number, so that the same call gives the same answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from whytrust.core import generator


def seed_of(random_state: Any) -> int:
    """None is seed 0, a whole number is itself; a RandomState or Generator is asked once for a number."""
    if random_state is None:
        return 0
    for name in ("integers", "randint"):
        if hasattr(random_state, name):
            return int(getattr(random_state, name)(2**31 - 1))
    if isinstance(random_state, bool) or not isinstance(random_state, int | np.integer):
        raise TypeError("random_state must be None, a whole number, a numpy RandomState or a Generator, "
                        f"got {type(random_state).__name__}")
    generator(int(random_state))
    return int(random_state)
