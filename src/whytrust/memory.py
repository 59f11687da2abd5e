"""Memory that was freed is kept for the next batch, in processes that are ours alone."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Of glibc's mallopt."""
_KEPT, _LARGEST = 2**31 - 1, 2**30


def keep_freed() -> bool:
    """Stop the C library from giving freed memory back to the system; False where it is not glibc, and nothing is done.

    The activations of a net are tens of megabytes, freed after each layer and wanted again for the next batch. glibc gives such
    blocks back at once, and the system must then clear them page by page again, which can cost as much as the arithmetic. The
    peak stays what it was; what is lost is that other programs get the memory back before the process ends. That is for the
    process to decide, so this is for commands and workers, and not for a library inside somebody's program.
    """
    mallopt = getattr(_c_library(), "mallopt", None)
    return mallopt is not None and bool(mallopt(_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_TRIM_THRESHOLD, _KEPT))


def _c_library() -> ctypes.CDLL | None:
    try:
        return ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows
        return None
