"""Statistics of a table that were kept in a file, checked: rows are drawn by every number of them, and it may be anyone's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from whytrust.domains.columns import Column

_KINDS = ("binned", "continuous", "categorical")
_DTYPE = 60
"""Letters of the longest name of a dtype."""


def check(columns: Sequence[Column], dtype: Any) -> None:
    """Refuse columns that do not fit together, and dtypes that are none."""
    for name in (dtype, *(column.storage.dtype for column in columns)):
        if not isinstance(name, str) or len(name) > _DTYPE:
            raise ValueError(f"a dtype must be told by its name, got {name!r:.60}")
    for column in columns:
        _check(column)


def _check(column: Column) -> None:
    bins = (column.means, column.sds, column.mins, column.maxs)
    if column.kind not in _KINDS:
        raise ValueError(f"a column must be one of {', '.join(_KINDS)}, got {column.kind!r:.60}")
    if not (isinstance(column.atoms, tuple) and 0 < len(column.atoms) == len(column.chances) == len(column.states)):
        raise ValueError(f"column {column.name!r:.60} must have a chance and a state for each of its values")
    if not all(_is_number(one) and one >= 0 for one in column.chances) or not sum(column.chances) > 0:
        raise ValueError(f"the chances of column {column.name!r:.60} must be numbers from 0 on, and not all be 0")
    if not all(isinstance(one, int) and 0 <= one < len(column.atoms) + len(column.edges) + 2 for one in column.states):
        raise ValueError(f"the states of column {column.name!r:.60} must be numbers of its bins or categories")
    if column.numeric and not all(one is None or _is_number(one) for one in column.atoms):
        raise ValueError(f"the values of column {column.name!r:.60} must be finite numbers, or missing")
    if not all(_is_number(one) for some in (column.edges, *bins, (column.mean, column.sd)) for one in some):
        raise ValueError(f"the bins of column {column.name!r:.60} must be told in finite numbers")


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < 1e300 and math.isfinite(value)
