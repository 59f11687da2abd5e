"""Statistics of a table that were kept in a file, checked: rows are drawn by every number of them, and it may be anyone's."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from whytrust.core import need
from whytrust.domains.columns import Column

_KINDS = ("binned", "continuous", "categorical")
_DTYPE = 60
"""Letters of the longest name of a dtype."""
_WIDE = 1000
"""Letters that every array of texts may have room for; for more there must be a text that needs it."""
_ARRAYS, _FRAMES = "biufOUS", "biufOmM"
"""Kinds of dtypes that an array of training data may have, and a column of a frame where its dtype is one of numpy's."""


def check(columns: Sequence[Column], dtype: Any, frame: bool) -> None:
    """Refuse columns that do not fit together, and dtypes that are none."""
    texts = (value for column in columns for value in column.atoms if isinstance(value, str))
    longest = max(map(len, texts), default=0)
    if not frame:
        _check_array(dtype, longest, "the table")
    for column in columns:
        _check_storage(column, longest)
        _check(column)


def _check_storage(column: Column, longest: int) -> None:
    stored, where = column.storage, f"column {column.name!r:.60}"
    if not stored.frame:
        return _check_array(stored.dtype, longest, where)
    names = [stored.dtype] if stored.categories is None else [stored.dtype, stored.category_dtype]
    if (stored.dtype == "category") != (stored.categories is not None):
        raise ValueError(f"the dtype of {where} must be category where its categories are told, and no other, got "
                         f"{stored.dtype!r:.60}")
    for name in names:
        known = _known(need("pandas", "tables").api.types.pandas_dtype, name, where)
        if isinstance(known, np.dtype) and known.kind not in _FRAMES:
            raise ValueError(f"the dtype of {where} must be of real numbers, texts, objects or times, got {name!r}")
    return None


def _check_array(name: Any, longest: int, where: str) -> None:
    """An array has room for as much in every cell as its dtype says, whatever is in it."""
    known = _known(np.dtype, name, where)
    if known.kind not in _ARRAYS:
        raise ValueError(f"the dtype of {where} must be of real numbers, texts or objects, got {name!r}")
    most = max(longest, _WIDE) * (4 if known.kind == "U" else 1)
    if known.kind in "US" and known.itemsize > most:
        raise ValueError(f"the dtype of {where} must have room for its texts, {max(longest, _WIDE):,} letters, got {name!r}")


def _known(read: Callable[[str], Any], name: Any, where: str) -> Any:
    if not isinstance(name, str) or not 0 < len(name) <= _DTYPE:
        raise ValueError(f"the dtype of {where} must be told by its name, got {name!r:.60}")
    try:
        return read(name)
    except (TypeError, ValueError, SyntaxError) as error:
        raise ValueError(f"the dtype of {where} must be one that numpy or pandas has, got {name!r}") from error


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
