"""How a column of training data keeps its values."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from whytrust.core import Floats, need

NOT_A_TIME, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""What numpy and pandas keep in place of a date that is missing, and the last that they can keep."""


class Instant(int):
    """A date or a span of time as its column counts it; a type of its own, so that no bare number is taken for a date."""


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

    @property
    def timed(self) -> bool:
        """Whether the values are dates or spans of time: whole numbers of the dtype's unit, which the model gets as times."""
        return self.frame and self.dtype.startswith(("datetime64", "timedelta64"))

    def array(self, values: Iterable[Any]) -> Any:
        """Python values (None is missing) as an array of this dtype."""
        if self.timed:
            counts = [NOT_A_TIME if value is None else min(max(value, NOT_A_TIME + 1), LATEST) for value in values]
            return need("pandas", "tables").Series(np.array(counts, dtype=np.int64), dtype=self.dtype).array
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
            return self.array(None if v != v else round(v) if self.whole else v for v in values.tolist())
        exact = np.rint(values).astype(np.int64) if self.whole else values
        if self.frame:
            return need("pandas", "tables").Series(exact, dtype=self.dtype).array
        return exact.astype(self.dtype)

    def within_limits(self, values: Floats) -> Floats:
        """Numbers that this dtype can hold: whole ones rounded and inside its range, others as they are."""
        if not self.whole or self.dtype in ("object", "|O"):
            return values
        limits = np.iinfo("int64" if self.timed else self.dtype.lower().split("[")[0])
        least = float(limits.min) if not self.timed else np.nextafter(float(NOT_A_TIME), 0)
        return np.clip(np.rint(values), least, np.nextafter(float(limits.max), 0))

    # --- dates and spans of time --------------------------------------------------------------------------------------

    def counted(self, value: Any) -> Instant:
        """A date or a span of time (or how one is written) in this dtype's unit; ValueError or TypeError where it is none."""
        if isinstance(value, Instant):
            return value
        if isinstance(value, numbers.Real) and not isinstance(value, np.timedelta64):  # which numpy counts among the integers
            raise TypeError(f"a {'date' if self.dtype.startswith('d') else 'span of time'} is needed, not a bare number")
        made = need("pandas", "tables").Series([value], dtype=self.dtype)
        if made.isna()[0]:
            raise ValueError("there is no time in it")
        return Instant(made.astype("int64")[0])

    def time_word(self, count: float) -> str:
        """One date or span of time as text, to the second."""
        return self._time_words([count], "s")[0]

    def times_told_apart(self, counts: Sequence[float]) -> list[str]:
        """Dates or spans of time as text: dates as days, or as much finer as tells them apart."""
        for step in ("D", "s", "us", "ns") if self.dtype.startswith("d") else ("s", "us", "ns"):
            texts = self._time_words(counts, step)
            if len(set(texts)) == len(set(counts)):
                break
        return texts

    def _time_words(self, counts: Sequence[float], step: str) -> list[str]:
        least = NOT_A_TIME + 86_400 * 10**9  # a day later, so that flooring stays within what can be kept
        times = need("pandas", "tables").Series(self.array(max(round(count), least) for count in counts)).dt
        # On the clock of the column's own zone, where flooring meets no hour that is there twice.
        floored = (times.tz_localize(None).dt if getattr(times, "tz", None) is not None else times).floor(step)
        return [str(time).removesuffix(" 00:00:00").removesuffix(" +00:00:00") for time in floored]
