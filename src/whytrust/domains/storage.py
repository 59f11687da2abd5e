"""How a column of training data keeps its values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from whytrust.core import Floats, need


@dataclass(frozen=True)
class Storage:
    """How a column keeps its values, so that drawn columns come in the dtype the model was trained on."""

    dtype: str
    frame: bool = False  # a pandas column, not a column of an array
    whole: bool = False  # whole numbers stay whole
    missing: Literal["nan", "none", "NA"] = "nan"  # what an object column writes where nothing is
    categories: tuple[Any, ...] | None = None  # of pandas' category dtype
    category_dtype: str = ""
    ordered: bool = False

    def array(self, values: Iterable[Any]) -> Any:
        """Python values (None is missing) as an array of this dtype."""
        pandas = need("pandas", "tables") if self.frame or self.missing == "NA" else None
        leave = self.missing == "none" or (self.frame and self.dtype != "object")  # pandas then knows what to write
        filler = None if leave else pandas.NA if pandas and self.missing == "NA" else np.nan
        filled = [filler if value is None else value for value in values]
        if not self.frame:
            out = np.empty(len(filled), dtype=self.dtype)
            for i, value in enumerate(filled):  # one by one: numpy would unpack values that are themselves sequences
                out[i] = value
            return out
        assert pandas is not None
        dtype: Any = self.dtype
        if self.categories is not None:
            index = pandas.Index(list(self.categories), dtype=self.category_dtype)
            dtype = pandas.CategoricalDtype(index, ordered=self.ordered)
        return pandas.Series(filled, dtype=dtype).array

    def numbers(self, values: Floats) -> Any:
        """Floats (NaN is missing) as an array of this dtype; whole numbers are rounded."""
        beyond_int64 = self.whole and (np.isnan(values).any() or np.abs(values).max(initial=0.0) >= 2.0**63)
        if self.dtype in ("object", "|O") or beyond_int64:
            return self.array(None if math.isnan(v) else round(v) if self.whole else v for v in values.tolist())
        exact = np.rint(values).astype(np.int64) if self.whole else values
        if self.frame:
            return need("pandas", "tables").Series(exact, dtype=self.dtype).array
        return exact.astype(self.dtype)

    def within_limits(self, values: Floats) -> Floats:
        """Numbers that this dtype can hold: whole ones rounded and inside its range, others as they are."""
        if not self.whole or self.dtype in ("object", "|O"):
            return values
        limits = np.iinfo(self.dtype.lower().split("[")[0])
        return np.clip(np.rint(values), float(limits.min), np.nextafter(float(limits.max), 0))
