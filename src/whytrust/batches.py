"""How many inputs go to a model at once, and two batches made one."""

from __future__ import annotations

from typing import Any

import numpy as np

from whytrust.core import Parts, generator, need


def one_batch(first: Any, second: Any) -> Any:
    """Two batches of one kind, one after the other."""
    if isinstance(first, list):
        return first + second
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    return need("pandas", "tables").concat([first, second], ignore_index=True)


def default_batch(parts: Parts, device: str) -> int:
    """So many inputs that a model works on what its processor keeps at hand; a small model still gets thousands.

    Nets take images as 32-bit floats, and on a processor their layers are fastest while a layer's values stay in its cache:
    two images of 224 × 224 pixels took half the time an image of batches of eight and more.
    """
    if parts.domain == "tabular":
        size, limit = 8 * len(parts.names), 4 << 20
    else:
        one = parts.compose(np.ones((1, len(parts.names)), bool), generator(0))
        size, limit = one.nbytes if isinstance(one, np.ndarray) else len(one[0]) if isinstance(one, list) else 1024, 4 << 20
        if parts.domain == "image" and isinstance(one, np.ndarray):
            size, limit = 4 * one.size, 5 << 18 if device == "cpu" else 1 << 25
    return int(np.clip(limit // max(size, 1), 1, 8192))
