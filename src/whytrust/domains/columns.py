"""What drawing rows needs to know of training data: one summary a column, never a row.

A column has *states* (bins, categories, "missing") and *atoms*, the finite set of values that draws are made from.
"""

from __future__ import annotations

import math
import numbers
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, need
from whytrust.domains.storage import Instant, Storage

Bins = Literal["quartile", "decile"] | Mapping[Any, Any] | None
"""How numeric columns are cut: a rule, {column: edges, rule or None} (others: quartile), or None for no bins at all."""

PERCENTILES = {"quartile": (25, 50, 75), "decile": tuple(range(10, 100, 10))}
MOST_VALUES = 20_000
"""Up to so many distinct values of a column are told one by one. Of more, so many stand for all of them, and leave the mean of
each bin exact. As long as the training data are there, draws are from every value; these are what is saved."""


@dataclass(frozen=True)
class Column:
    """One column's summary: its atoms with their chances, the state of each atom, and each bin's mean, sd and limits."""

    label: Any
    kind: Literal["binned", "continuous", "categorical"]
    storage: Storage
    atoms: tuple[Any, ...]  # None is missing, and last
    chances: tuple[float, ...]
    states: tuple[int, ...]
    edges: tuple[float, ...] = ()
    means: tuple[float, ...] = ()  # one a bin, as are the next three
    sds: tuple[float, ...] = ()
    mins: tuple[float, ...] = ()  # the column's least value, then the edges
    maxs: tuple[float, ...] = ()  # the edges, then the column's greatest value
    mean: float = 0.0
    sd: float = 1.0
    thinned: bool = False  # do the atoms stand for more values than they are?
    values: Any = field(default=None, compare=False, repr=False)  # then: all of them, sorted; None in saved statistics

    def __getstate__(self) -> dict[str, Any]:
        """What the column is; what was worked out from it can be worked out again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def name(self) -> str:
        """The column's label as text."""
        return str(self.label)

    @property
    def numeric(self) -> bool:
        """Whether the values are numbers."""
        return self.kind != "categorical"

    @cached_property
    def frequencies(self) -> Floats:
        """How often each state occurs in training: bins or categories, then missing where there were any."""
        return np.asarray(np.bincount(self.states, weights=self.chances), dtype=np.float64)

    @property
    def varies(self) -> bool:
        """Whether an interpretable feature of this column can change at all."""
        return len(self.atoms) > 1 if self.kind == "continuous" else len(set(self.states)) > 1

    def locate(self, value: Any) -> tuple[int, Any]:
        """The state a row's value is in, and the value as the column would keep it (None is missing)."""
        if is_missing(value):
            if self.atoms[-1] is not None:
                raise ValueError(f"column {self.name!r} is never missing in the training data, so the row must have a value, "
                                 f"got {value!r}; fill it in, or fit on training data with missing values")
            return self.states[-1], None
        plain = self.counted(value) if self.storage.timed else value.item() if isinstance(value, np.generic) else value
        return self._bin(plain) if self.numeric else self._category(plain)

    def held(self, number: float) -> Any:
        """A number as this column can hold it: rounded in a column of whole numbers, as a time in a column of times."""
        kept = float(self.storage.within_limits(np.array([number]))[0])
        if not self.storage.whole:
            return kept
        return Instant(round(kept)) if self.storage.timed else round(kept)

    def counted(self, value: Any) -> Instant:
        """A date or a span of time as the column counts it."""
        try:
            return self.storage.counted(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"column {self.name!r} is stored as {self.storage.dtype}, its value must be such a time, got "
                             f"{value!r} ({error}); pass pd.Timestamp(…), or pd.Timedelta(…) for a span") from error

    def word(self, value: Any) -> str:
        """A value that the column keeps, in few characters."""
        return self.storage.time_word(value) if self.storage.timed else short(value)

    def condition(self, state: int, value: Any) -> str:
        """What the part stands for, in words: `30 < age ≤ 45`."""
        if self.kind == "continuous":
            return self.name
        if value is None:
            return f"{self.name} is missing"
        if self.kind == "categorical":
            return f"{self.name} = {self.word(value)}"
        tell_apart = self.storage.times_told_apart if self.storage.timed else _told_apart
        *edges, _ = tell_apart([*self.edges, float(value)])
        if not edges:
            return f"{self.name} is known" if self.varies else self.name
        if state == 0:
            return f"{self.name} ≤ {edges[0]}"
        return f"{self.name} > {edges[-1]}" if state == len(edges) else f"{edges[state - 1]} < {self.name} ≤ {edges[state]}"

    def _bin(self, value: Any) -> tuple[int, Any]:
        if not isinstance(value, numbers.Real):
            raise ValueError(f"column {self.name!r:.60} is numeric, its value must be a number, got {value!r:.60}; "
                             f"if it holds categories fit with categorical=[{self.label!r}]")
        if not math.isfinite(value):
            raise ValueError(f"column {self.name!r} must be finite, got {value!r}; clip it, or mark it missing with NaN")
        with np.errstate(over="ignore"):
            kept = self._kept(value)
        state = int(np.searchsorted(self.edges, float(kept))) if self.kind == "binned" else 0
        return state, kept

    def _kept(self, value: Any) -> Any:
        wrong = f"column {self.name!r} is stored as {self.storage.dtype}, which cannot hold {value!r}; "
        if self.storage.dtype in ("object", "|O") or self.storage.timed:
            return value
        if self.storage.whole and value != int(value):
            raise ValueError(wrong + "fit on training data of a float dtype, or round the value")
        if self.storage.dtype == "float64":  # what a Python float is already
            return float(value)
        try:
            kept = self.storage.array([int(value) if self.storage.whole else float(value)])[0]
        except (OverflowError, ValueError, TypeError) as error:
            raise ValueError(wrong + f"fit on training data of a wider dtype ({error})") from error
        if not math.isfinite(kept):
            raise ValueError(wrong + "fit on training data of a wider dtype")
        return kept.item() if isinstance(kept, np.generic) else kept

    def _category(self, value: Any) -> tuple[int, Any]:
        if isinstance(value, numbers.Real) and isinstance(self.atoms[0], float):
            value = float(self.storage.array([float(value)])[0])  # 0.1 must find the 0.1 that float32 had stored
        for state, atom in enumerate(self.atoms):
            if atom is not None and atom == value:
                return state, atom
        said = self.word if self.storage.timed else repr
        known = ", ".join("missing" if atom is None else f"{said(atom):.60}" for atom in self.atoms[:6])
        more = f", … ({len(self.atoms)} in all)" if len(self.atoms) > 6 else ""
        raise ValueError(f"column {self.name!r:.60} must hold a category of the training data ({known}{more}), got "
                         f"{said(value):.60}; fit on training data that has it, or map it to a known category")


# --- fitting one column -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RawColumn:
    """One column as it came: the values that are there, and how many are not."""

    label: Any
    storage: Storage
    numeric: bool
    present: NDArray[Any]
    absent: int


def fit_categories(raw: RawColumn) -> Column:
    """Values by falling frequency, each a state of its own, missing last."""
    try:
        counts = Counter(raw.present.tolist())
    except TypeError as error:
        raise ValueError(f"column {raw.label!r} must hold numbers or categories such as text, got values that cannot be "
                         f"counted ({error}); drop the column or turn it into text") from error
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    if raw.absent:
        ordered.append((None, raw.absent))
    total = len(raw.present) + raw.absent
    return Column(raw.label, "categorical", raw.storage, tuple(value for value, _ in ordered),
                  tuple(count / total for _, count in ordered), tuple(range(len(ordered))))


def fit_numbers(raw: RawColumn, rule: Any) -> Column:
    """Bins with their moments, and the atoms inside each bin; rule None leaves the column continuous."""
    values = raw.present.astype(np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"column {raw.label!r} of the background must be finite, got "
                         f"{values[~np.isfinite(values)][0]}; clip it, or mark it missing with NaN")
    order = np.argsort(values, kind="stable")
    values, originals = values[order], raw.present[order]
    edges = () if rule is None else _edges(values, rule, raw)
    ends = [0, *np.searchsorted(values, edges, side="right").tolist(), len(values)]
    bins = [values[start:end] for start, end in pairwise(ends)]
    where, shares = _atoms(values, ends)
    total, thinned = len(values) + raw.absent, bool(len(where) <= np.count_nonzero(values[1:] != values[:-1]))
    atoms, chances = originals[where].tolist(), (shares / total).tolist()
    states = np.searchsorted(edges, values[where]).tolist()
    if raw.absent:
        atoms, chances, states = [*atoms, None], [*chances, raw.absent / total], [*states, len(bins)]
    return Column(raw.label, "continuous" if rule is None else "binned", raw.storage, tuple(atoms), tuple(chances),
                  tuple(states), edges, tuple(_moments(b)[0] for b in bins), tuple(_moments(b)[1] for b in bins),
                  (float(values[0]), *edges), (*edges, float(values[-1])), _moments(values)[0], _moments(values)[1] or 1.0,
                  thinned, originals if thinned else None)


def _moments(values: Floats) -> tuple[float, float]:
    """Mean and sd of sorted values; those of a constant are exact, which the sums are not."""
    if values[0] == values[-1]:
        return float(values[0]), 0.0
    scale = max(1.0, float(np.abs(values).max()) / 1e150)  # squares of larger numbers overflow
    return float((values / scale).mean() * scale), float((values / scale).std() * scale)


def _edges(values: Floats, rule: Any, raw: RawColumn) -> tuple[float, ...]:
    """Sorted edges with training values between every two of them, below the first and above the last."""
    label, timed = raw.label, raw.storage.timed
    if isinstance(rule, str):
        if rule not in PERCENTILES:
            raise ValueError(f"bins must be 'quartile', 'decile', {{column: edges}} or None, got {rule!r}")
        wanted = np.percentile(values, PERCENTILES[rule])
    else:
        try:
            counted = timed and getattr(rule, "dtype", None) != np.float64
            wanted = np.asarray([raw.storage.counted(edge) for edge in rule] if counted else rule, dtype=np.float64)
        except (TypeError, ValueError) as error:
            what = "times" if timed else "numbers"
            raise ValueError(f"bins of column {label!r} must be a list of {what}, got {rule!r}") from error
        if wanted.ndim != 1 or not np.isfinite(wanted).all():
            raise ValueError(f"bins of column {label!r} must be a list of finite numbers, got {rule!r}")
    kept: list[float] = []
    below = 0
    for edge in np.unique(wanted).tolist():
        up_to = int(np.searchsorted(values, edge, side="right"))
        if below < up_to < len(values):
            kept.append(edge)
            below = up_to
    if kept or values[0] == values[-1]:
        return tuple(kept)
    if not isinstance(rule, str):
        low, high = (raw.storage.time_word(end) if timed else short(end) for end in (values[0], values[-1]))
        raise ValueError(f"bins of column {label!r} must part its training values, which go from {low} to {high}, got "
                         f"{rule!r}; give an edge between them, or None for no bins")
    # Most values are the greatest one: the quantiles all fall on it, and the column would never be seen to vary.
    return (float(values[values < values[-1]][-1]),)


def _atoms(values: Floats, ends: list[int]) -> tuple[NDArray[np.intp], Floats]:
    """Positions in the sorted values that stand for all of them, and how many values each stands for.

    They are training values, never interpolations: a whole number stays whole and a price stays a price that occurs. Very many
    values are put into small groups of neighbours; the least and the greatest of a group share its weight so that its mean
    stays exact.
    """
    _, where, counts = np.unique(values, return_index=True, return_counts=True)
    if len(where) <= MOST_VALUES:
        return where, counts.astype(np.float64)
    groups = MOST_VALUES // 2 // (len(ends) - 1)
    starts = np.unique(np.concatenate([np.linspace(start, end, min(groups, end - start), endpoint=False).astype(np.intp)
                                       for start, end in pairwise(ends)]))
    sizes = np.diff(starts, append=len(values))
    least, greatest = values[starts] / 2, values[starts + sizes - 1] / 2  # halves, for differences of large numbers overflow
    width = np.repeat(np.where(greatest > least, greatest - least, 1.0), sizes)
    upper = np.add.reduceat((values / 2 - np.repeat(least, sizes)) / width, starts)
    points, shares = np.concatenate([starts, starts + sizes - 1]), np.concatenate([sizes - upper, upper])
    _, where, group = np.unique(values[points], return_index=True, return_inverse=True)
    return points[where], np.asarray(np.bincount(group, weights=shares), dtype=np.float64)


# --- reading tables ---------------------------------------------------------------------------------------------------


def read_table(background: Any, names: Sequence[str] | None) -> tuple[list[RawColumn], bool, str]:
    """The columns of an array, a list of rows or a DataFrame; whether it was a DataFrame; the array's dtype."""
    frame = hasattr(background, "iloc") and hasattr(background, "columns")
    if not frame and not isinstance(background, np.ndarray | list | tuple):
        raise TypeError("background must be a 2-D array, a list of rows or a pandas DataFrame, "
                        f"got {type(background).__name__}; convert it first"
                        f"{', with background.toarray()' if hasattr(background, 'toarray') else ''}")
    table: Any = background if frame else as_array(background)
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"background must have rows and columns: expected shape (rows, columns), got {table.shape}; "
                         "pass the training data, or a sample of it")
    if names is not None and (frame or len(names) != table.shape[1]):
        raise ValueError("names are for arrays, a DataFrame has its own; leave names out" if frame else
                         f"names must name every column: the background has {table.shape[1]}, got {len(names)}")
    labels = list(table.columns) if frame else [str(n) for n in names or default_names(table.shape[1])]
    twice = [str(label) for label, count in Counter(labels).items() if count > 1]
    if twice:
        raise ValueError(f"columns must have different names, got {', '.join(twice)} more than once; rename them")
    read = _frame_column if frame else _array_column
    columns = [read(table[label] if frame else table[:, j], label) for j, label in enumerate(labels)]
    return columns, frame, "" if frame else table.dtype.str


def default_names(d: int) -> list[str]:
    """What columns of a nameless array are called."""
    return [f"column {j}" for j in range(d)]


def as_array(background: Any) -> NDArray[Any]:
    """An array or a list of rows as one array, or one clear error."""
    if isinstance(background, np.ndarray):
        if background.dtype.kind not in "biufOUS":
            raise ValueError("background must hold numbers, booleans, text or objects, "
                             f"got an array of {background.dtype}; convert it")
        return background
    widths = {len(row) if isinstance(row, Sequence | np.ndarray) and not isinstance(row, str) else -1 for row in background}
    if len(widths) > 1 or -1 in widths:
        raise ValueError("background must be a list of rows of one length, got "
                         + ("values that are not rows" if -1 in widths else f"rows of {sorted(widths)} values"))
    rows = np.empty((len(background), *widths), dtype=object)
    for i, row in enumerate(background):
        rows[i] = row
    if all(isinstance(v, numbers.Real) or v is None for v in rows.ravel()):
        return np.asarray(rows.tolist(), dtype=float if None in rows.ravel() else None)
    return rows


def _array_column(values: NDArray[Any], label: Any) -> RawColumn:
    kind = values.dtype.kind
    if kind == "O":
        return _object_column(values, label, Storage("|O"))
    gone = np.isnan(values) if kind == "f" else np.zeros(len(values), bool)
    storage = Storage(values.dtype.str, whole=kind in "iu")
    return RawColumn(label, storage, kind in "iuf" and not gone.all(), values[~gone], int(gone.sum()))


def _object_column(values: NDArray[Any], label: Any, storage: Storage) -> RawColumn:
    gone = np.fromiter((is_missing(v) for v in values), bool, len(values))
    present = np.empty(len(values) - int(gone.sum()), dtype=object)
    for i, value in enumerate(values[~gone]):
        present[i] = value.item() if isinstance(value, np.generic) else value
    numeric = len(present) > 0 and all(isinstance(v, numbers.Real) and not isinstance(v, bool) for v in present)
    first = values[gone][0] if gone.any() else np.nan
    missing: Literal["nan", "none", "NA"] = "none" if first is None else "nan" if isinstance(first, float) else "NA"
    whole = numeric and all(isinstance(v, int) for v in present)
    return RawColumn(label, Storage(storage.dtype, storage.frame, whole, missing), numeric, present, int(gone.sum()))


def _frame_column(series: Any, label: Any) -> RawColumn:
    pandas = need("pandas", "tables")
    dtype, types = series.dtype, pandas.api.types
    if dtype.kind == "O" and str(dtype) == "object":
        return _object_column(series.to_numpy(), label, Storage("object", frame=True))
    gone = series.isna().to_numpy(bool)
    is_category = isinstance(dtype, pandas.CategoricalDtype)
    present = series[~gone]
    if not is_category and types.is_numeric_dtype(dtype) and not types.is_bool_dtype(dtype) and not gone.all():
        if types.is_complex_dtype(dtype):
            raise ValueError(f"column {label!r} must hold real numbers, got {dtype}; split it in two columns")
        whole = types.is_integer_dtype(dtype)
        kind = "float64" if not whole else "uint64" if types.is_unsigned_integer_dtype(dtype) else "int64"
        return RawColumn(label, Storage(str(dtype), True, whole), True, present.to_numpy(dtype=kind), int(gone.sum()))
    if dtype.kind in "mM" and isinstance(dtype, np.dtype | pandas.DatetimeTZDtype) and not gone.all():
        return RawColumn(label, _timed(dtype, label), True, present.astype("int64").to_numpy(), int(gone.sum()))
    plain = np.empty(len(present), dtype=object)
    for i, value in enumerate(present.tolist()):
        plain[i] = value
    storage = Storage("category", True, categories=tuple(dtype.categories.tolist()), ordered=bool(dtype.ordered),
                      category_dtype=str(dtype.categories.dtype)) if is_category else Storage(str(dtype), True)
    return RawColumn(label, storage, False, plain, int(gone.sum()))


def _timed(dtype: Any, label: Any) -> Storage:
    """How dates are kept: by the dtype's name, so a time zone must have one."""
    try:
        need("pandas", "tables").api.types.pandas_dtype(str(dtype))
    except TypeError as error:
        raise ValueError(f"column {label!r} must have a time zone that can be named, got {dtype}; convert it with "
                         f"frame[{label!r}].dt.tz_convert('UTC'), or a zone such as 'Europe/Vienna'") from error
    return Storage(str(dtype), True, whole=True)


def is_missing(value: Any) -> bool:
    """Whether nothing is there: None, NaN, and pandas' NA and NaT (known by name: pandas may not be installed)."""
    return value is None or (isinstance(value, float | np.floating) and bool(value != value)) or (
        type(value).__name__ in ("NAType", "NaTType")) or (
        isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value)))


# --- small things -----------------------------------------------------------------------------------------------------


def short(value: Any, digits: int = 4) -> str:
    """A value in few characters: numbers with `digits` digits and no exponent where one can do without."""
    if not isinstance(value, float) and (isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real)):
        text = str(value)
        return text if len(text) <= 60 else text[:59] + "…"
    return _written(float(value), digits)


@lru_cache(maxsize=4096)  # the edges of bins are written again for every row
def _written(number: float, digits: int) -> str:
    if not math.isfinite(number) or not (number == 0 or 1e-4 <= abs(number) < 1e15):
        return f"{number:.{digits}g}"
    if number == int(number):
        return str(int(number))
    return repr(float(f"{number:.{max(digits, len(str(int(abs(number)))))}g}")).removesuffix(".0")  # no exponent in this range


def _told_apart(values: list[float]) -> list[str]:
    """Numbers as text with as few digits as keep different numbers different."""
    for digits in range(4, 18):
        texts = [short(value, digits) for value in values]
        if len(set(texts)) == len(set(values)):
            break
    return texts
