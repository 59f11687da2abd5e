"""Rows of a table, cut into columns whose values are drawn from training data.

Tabular LIME as its reference implementation defines it: a numeric column's interpretable feature is "the drawn value lies
in the row's bin", a categorical column's is "the drawn value is the row's". Each column is drawn by itself, first its bin
or category by training frequency, then a value inside the bin; so drawn rows may combine values that never occur together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from whytrust import files
from whytrust.core import Batch, Draws, Floats, Masks, check_baseline, check_masks, generator, need, pool_labels
from whytrust.domains import kept
from whytrust.domains.columns import MOST_VALUES, Bins, Column, as_array, default_names, fit_categories, fit_numbers, read_table
from whytrust.domains.laws import AtomLaw, Atoms
from whytrust.domains.storage import Storage
from whytrust.domains.vectors import RowVectors
from whytrust.views import TableView

MANY_CONTROLS = 64
"""So many controls are fitted together, and their products are tried; of more, two a column are fitted one by one."""
MOST_ROWS = 20_000
"""So many training rows are kept for methods that hide columns behind whole rows; of more, a random sample."""
Values = Literal["training", "normal"]
"""What is drawn inside a bin: training values, or a normal fitted to the bin (the reference implementation's way)."""


@dataclass(frozen=True)
class TableStatistics:
    """All that explaining rows of a table takes from training data. Saved as JSON it is free of training rows.

    Numeric columns are cut at quantiles, as LIME's reference implementation does. An edge that would leave a bin without
    training values is dropped, for no draw could fall in that bin.
    """

    columns: tuple[Column, ...]
    frame: bool = False  # rows go to the model as a DataFrame, else as an array
    dtype: str = "<f8"  # of that array
    rows: Any = field(default=None, compare=False, repr=False)  # training rows as a model takes them; None in saved statistics
    total: int = field(default=0, compare=False, repr=False)  # how many training rows there were; `rows` are some of many

    @classmethod
    def fit(cls, background: Any, bins: Bins = "quartile", categorical: Sequence[str | int] | None = None,
            names: Sequence[str] | None = None) -> TableStatistics:
        """Summarise training data: a 2-D array, a list of rows or a DataFrame; kinds of columns are found by themselves."""
        raw, frame, dtype = read_table(background, names)
        labels = [column.label for column in raw]
        listed = [categorical] if isinstance(categorical, str | int) else categorical or ()
        as_categories = {_position(key, labels, "categorical") for key in listed}
        rules: list[Any] = ["quartile" if isinstance(bins, Mapping) else bins] * len(raw)
        for key, rule in bins.items() if isinstance(bins, Mapping) else ():
            rules[_position(key, labels, "bins")] = rule
        fitted = tuple(fit_categories(column) if i in as_categories or not column.numeric else fit_numbers(column, rules[i])
                       for i, column in enumerate(raw))
        if not any(column.varies for column in fitted):
            raise ValueError(f"at least one column of the background must vary, all {len(fitted)} are constant; "
                             "pass the training data, or a sample of it")
        table: Any = background if frame else as_array(background)
        chosen = np.arange(len(table))
        if len(table) > MOST_ROWS:
            chosen = np.sort(generator(0, "training rows").choice(len(table), MOST_ROWS, replace=False))
        return cls(fitted, frame, dtype, table.iloc[chosen] if frame else table[chosen], len(table))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    def batch(self, arrays: Sequence[Any]) -> Batch:
        """One array a column -> the model's batch, in the container and dtypes of the training data."""
        if self.frame:
            pandas = need("pandas", "tables")  # which would turn a batch of texts from object to str, unless told not to
            return pandas.DataFrame({c.label: pandas.Series(array, dtype=object) if c.storage.dtype == "object" else array
                                     for c, array in zip(self.columns, arrays, strict=True)})
        out = np.empty((len(arrays), len(arrays[0])), dtype=self.dtype)
        for row, array in zip(out, arrays, strict=True):
            row[:] = array
        return np.ascontiguousarray(out.T)

    def to_json(self) -> dict[str, Any]:
        """Plain data without training rows, from which `from_json` makes the same statistics but for those."""
        for column in self.columns:
            for value in (column.label, *column.atoms, *(column.storage.categories or ())):
                if not isinstance(value, str | int | float | None):
                    raise TypeError(f"column {column.name!r} must hold text, numbers or booleans to be written as JSON, "
                                    f"got {type(value).__name__} {value!r}; pickle the statistics instead")
        columns = [asdict(replace(column, values=None)) for column in self.columns]
        for plain in columns:
            del plain["values"]
        return {"kind": "table statistics", "version": 1, "columns": columns,
                "frame": self.frame, "dtype": self.dtype}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TableStatistics:
        """The statistics that `to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("kind") != "table statistics" or data.get("version") != 1:
            raise ValueError("table statistics must be what TableStatistics.to_json wrote (version 1), "
                             f"got {str(data)[:60]!r}; fit them again on the training data")
        plain = ({**c, "storage": Storage(**_tuples(c["storage"]))} for c in data["columns"])
        return cls(tuple(Column(**_tuples(c)) for c in plain), data["frame"], data["dtype"])

    def save(self, path: str | Path) -> None:
        """Write a JSON file."""
        Path(path).write_text(json.dumps(self.to_json(), ensure_ascii=False, allow_nan=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> TableStatistics:
        """Read the JSON file that `save` wrote."""
        data = files.plain(path, "a file that TableStatistics.save wrote")
        with files.telling(path, "a file that TableStatistics.save wrote", "fit the statistics again and save them"):
            found = cls.from_json(data)
            kept.check(found.columns, found.dtype, found.frame)
            return found


def _position(key: Any, labels: list[Any], option: str) -> int:
    """Which column a name, or else an index, stands for."""
    if key in labels:
        return labels.index(key)
    if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < len(labels):
        return int(key)
    known = ", ".join(map(str, labels[:12])) + (", …" if len(labels) > 12 else "")
    raise ValueError(f"{option} must name columns of the background ({known}) or give their index, got {key!r}")


def _tuples(fields: Mapping[str, Any]) -> dict[str, Any]:  # JSON has lists only
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


# --- the parts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Rows:
    """Drawn rows, kept as one small array a column and made into a batch only when asked for."""

    statistics: TableStatistics
    laws: tuple[AtomLaw, ...]
    drawn: Sequence[NDArray[np.integer[Any]]]

    def __call__(self, part: slice) -> Batch:
        return self.statistics.batch([law.array_of(one[part]) for law, one in zip(self.laws, self.drawn, strict=True)])


@dataclass(frozen=True)
class TableParts:
    """One row of a table; every column is a part.

    Hidden columns show training values, drawn anew for each mask. How it misleads: columns are drawn independently of each
    other, so the model is also asked about rows that could not occur.
    """

    domain: ClassVar[str] = "tabular"
    deterministic: ClassVar[bool] = False
    hiding: ClassVar[str] = "Hidden columns show training values, each column drawn by itself"
    row: Any  # a tuple of plain values once made, None where missing
    statistics: TableStatistics
    values: Values = "training"
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    view: TableView = field(init=False, repr=False, compare=False)
    _states: tuple[int, ...] = field(init=False, repr=False, compare=False)
    _laws: tuple[AtomLaw, ...] = field(init=False, repr=False, compare=False)

    @classmethod
    def cut(cls, row: Any, background: Any, bins: Bins = "quartile", categorical: Sequence[str | int] | None = None,
            values: Values = "training", names: Sequence[str] | None = None) -> TableParts:
        """A row and training data, or statistics fitted before (then cheaper, and the other options are theirs)."""
        if not isinstance(background, TableStatistics):
            return cls(row, TableStatistics.fit(background, bins, categorical, names), values)
        if bins != "quartile" or categorical is not None or names is not None:
            raise ValueError("bins, categorical and names belong to TableStatistics.fit, and these statistics are fitted "
                             "already; leave them out here")
        return cls(row, background, values)

    def __post_init__(self) -> None:
        """Find the row's states, and how each column is drawn around them."""
        if self.values not in ("training", "normal"):
            raise ValueError(f"values must be 'training' or 'normal' (what is drawn inside a bin), got {self.values!r}")
        columns = self.statistics.columns
        located = [c.locate(v) for c, v in zip(columns, read_row(self.row, self.statistics), strict=True)]
        normal = self.values == "normal"
        laws = tuple(AtomLaw(c, *here, Atoms.from_normals(c) if normal and c.numeric else Atoms.from_training(c))
                     for c, here in zip(columns, located, strict=True))
        names = tuple(c.condition(*here) for c, here in zip(columns, located, strict=True))
        shown = tuple("missing" if value is None else c.word(value) for c, (_, value) in zip(columns, located, strict=True))
        made = {"row": tuple(value for _, value in located), "names": names, "_laws": laws,
                "_states": tuple(state for state, _ in located),
                "view": TableView(self.statistics.names, shown, names)}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @property
    def slope_notes(self) -> tuple[str, ...]:
        """What a local model of slopes takes a missing value for, where there are any."""
        means = [f"{c.name}: {c.word(round(c.mean) if c.storage.timed else c.mean)}" for c in self.statistics.columns
                 if c.kind == "continuous" and c.atoms[-1] is None]
        gone = [c.name for c, value in zip(self.statistics.columns, self.row, strict=True)
                if c.kind == "continuous" and value is None]
        own = f" This row has no {' and no '.join(gone)}: the contribution is 0 by that choice." if gone else ""
        return (f"The local model sets missing values to the column's mean ({', '.join(means)}); the model itself gets them as "
                f"missing.{own}",) if means else ()

    @property
    def value_notes(self) -> tuple[str, ...]:
        """Which columns are drawn from some of their training values only, for the others are no longer there."""
        some = [c.name for c in self.statistics.columns if c.thinned and c.values is None and self.values == "training"]
        return (f"these statistics come from a file, which keeps {MOST_VALUES:,} values of a column at most: what the others "
                f"of {', '.join(some[:3])}{', …' if len(some) > 3 else ''} would change is not in the ±",) if some else ()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by what it was made from."""
        return type(self), (self.row, self.statistics, self.values)

    def compose(self, masks: Masks, rng: np.random.Generator) -> Batch:
        """Rows that keep the columns a mask shows and draw the others from training values, by frequency."""
        masks = check_masks(masks, len(self.names))
        places = rng.random(masks.shape).T  # drawn for rows that need none too, so that batches do not matter
        if masks.all():
            return self.statistics.batch([c.storage.array([value] * len(masks))
                                          for c, value in zip(self.statistics.columns, self.row, strict=True)])
        laws, codes = [], []
        for law, shown, place in zip(self._training, masks.T, places, strict=True):
            law, drawn = (law, None) if shown.all() else law.draw(place)
            own = np.full(len(masks), len(law.atoms.chances))
            laws.append(law)
            codes.append(own if drawn is None else np.where(shown, own, drawn))
        return _Rows(self.statistics, tuple(laws), codes)(slice(None))

    @cached_property
    def _training(self) -> tuple[AtomLaw, ...]:
        """How each column is drawn where it is hidden: always from training values."""
        return tuple(AtomLaw(column, state, value, Atoms.from_training(column))
                     for column, state, value in zip(self.statistics.columns, self._states, self.row, strict=True))

    def like(self, other: Any) -> TableParts:
        """Another row of the same table."""
        return TableParts(other, self.statistics, self.values)

    def near(self, radius: float, rng: np.random.Generator) -> TableParts:
        """This row with every number moved by up to `radius` of its column's range; categories and missing values stay.

        Whole numbers stay whole.
        """
        steps = radius * self.ranges * rng.uniform(-1, 1, len(self.row))
        moved = [value if value is None or not column.numeric else column.held(value + step)
                 for column, value, step in zip(self.statistics.columns, self.row, steps, strict=True)]
        return self.like(moved)

    @property
    def baselines(self) -> tuple[str, ...]:
        """What columns can be hidden behind: a typical row, zeros, one training value each, or ever new ones."""
        return ("mean", "zeros", "noise", "training")

    def behind(self, baseline: str, rng: np.random.Generator) -> TableParts | LaidRows:
        """The same columns, hidden behind that; categories that cannot be 0 show their most frequent one."""
        check_baseline(baseline, self.baselines)
        if baseline == "training":
            return self
        if baseline == "noise":
            drawn = [law.draw(rng.random(1)) for law in self._training]
            return self.over([law.array_of(one).tolist()[0] for law, one in drawn])
        pairs = zip(self.typical, self.statistics.columns, strict=True)
        return self.over([column.held(0) if baseline == "zeros" and column.numeric else value for value, column in pairs])

    def over(self, below: Any) -> LaidRows:
        """This row with another one's values in the columns that are hidden."""
        return LaidRows(self, self.like(below).row)

    def behind_rows(self) -> TableParts | RowFill:
        """The same columns, hidden behind whole training rows; behind single values where the statistics hold no rows."""
        return self if self.statistics.rows is None else RowFill(self)

    def squared_change(self, since: Any) -> Floats:
        """Squared differences, in standard deviations of the training data; another category, or a missing value, counts 1."""
        other = self.like(since).row
        return np.array([_apart(column, a, b) for column, a, b in zip(self.statistics.columns, self.row, other, strict=True)])

    @property
    def typical(self) -> tuple[Any, ...]:
        """A row of averages: each column's mean in training, rounded where the column holds whole numbers, or its most
        frequent category."""
        return tuple(column.held(column.mean) if column.numeric else column.atoms[int(np.argmax(column.chances))]
                     for column in self.statistics.columns)

    @property
    def ranges(self) -> Floats:
        """From the least to the greatest training value of each column; 0 for categories, which are not more or less."""
        return np.array([column.maxs[-1] - column.mins[0] if column.numeric and column.maxs else 0.0
                         for column in self.statistics.columns])

    def pool(self, map: Floats, how: str) -> Floats:
        """A number a column -> the same numbers, for a column is a part."""
        d = len(self.names)
        return pool_labels(map, np.arange(d), d, how)

    def vectors(self, rows: Any, reads: Any = None) -> RowVectors:
        """Training rows as vectors, in the units of these columns."""
        return RowVectors.of(rows, self.statistics.columns, self.statistics.frame, self.statistics.dtype)

    def draw(self, n: int, rng: np.random.Generator) -> Draws:
        """n rows, every column drawn by itself."""
        places = rng.random((len(self.names), n))
        laws, drawn = zip(*(law.draw(place) for law, place in zip(self._laws, places, strict=True)), strict=True)
        return self._draws(laws, drawn)

    def support(self, limit: int) -> Draws | None:
        """Every row that can be drawn, where each column has finitely many values and there are at most `limit` rows."""
        if any(column.thinned or (self.values == "normal" and column.numeric) for column in self.statistics.columns):
            return None
        sizes = [len(law.atoms.chances) for law in self._laws]
        if math.prod(sizes) > limit:
            return None
        codes = tuple(np.indices(sizes).reshape(len(sizes), -1))
        chances = np.prod([law.atoms.chances[code] for law, code in zip(self._laws, codes, strict=True)], axis=0)
        return self._draws(self._laws, codes, chances / chances.sum())

    def _draws(self, laws: Sequence[AtomLaw], drawn: Sequence[NDArray[np.intp]], chances: Floats | None = None) -> Draws:
        # Many controls are only ever weighed roughly: two a column do, and half the bytes take half the time.
        brief = sum(law.complete for law in self._laws) > MANY_CONTROLS
        tables = [law.controls(brief) for law in laws]
        widths = [len(table) for table in tables]
        controls, ends = np.empty((sum(widths), len(drawn[0])), np.float32 if brief else np.float64), np.cumsum(widths)
        design = np.empty((len(drawn), len(drawn[0])))
        for j, (law, table, one) in enumerate(zip(laws, tables, drawn, strict=True)):
            design[j] = law.seen(one)
            table.take(one, axis=1, out=controls[ends[j] - widths[j]:ends[j]], mode="clip")
        design = np.ascontiguousarray(design.T)
        owner = np.repeat(np.arange(len(widths)), widths)
        origin = np.array([law.origin for law in laws])
        rows = _Rows(self.statistics, tuple(laws), [one.astype(np.int32) for one in drawn])  # kept as long as the draws are
        return Draws(design, rows, origin, controls.T if len(controls) else None, owner, brief, chances)


@dataclass(frozen=True, eq=False)
class RowFill:
    """A row of a table whose hidden columns, all together, show the values of one training row, drawn anew for each mask."""

    upper: TableParts
    domain: ClassVar[str] = "tabular"
    deterministic: ClassVar[bool] = False

    @property
    def hiding(self) -> str:
        """What hidden columns show, in words."""
        kept, total = len(self._table) - 1, self.upper.statistics.total
        some = f"; what the training rows beside these {kept:,}, of {total:,}, would change is not in the ±"
        return f"Hidden columns show the values of one training row together, as in shap{some if total > kept else ''}"

    @property
    def names(self) -> tuple[str, ...]:
        """As those of the row."""
        return self.upper.names

    @property
    def view(self) -> TableView:
        """The row."""
        return self.upper.view

    def compose(self, masks: Masks, rng: np.random.Generator) -> Batch:
        """Rows that keep the columns a mask shows and have the others of one training row."""
        masks = check_masks(masks, len(self.names))
        statistics, last = self.upper.statistics, len(self._table) - 1
        drawn = (rng.random(len(masks)) * last).astype(np.intp)  # for rows that need none too, so that batches do not matter
        places = np.where(masks, last, drawn[:, None])
        if statistics.frame:
            return statistics.batch([self._table[column.label].array.take(place)
                                     for column, place in zip(statistics.columns, places.T, strict=True)])
        return np.take_along_axis(self._table, places, axis=0)

    @cached_property
    def _table(self) -> Any:
        """The training rows, then the row itself."""
        rows = self.upper.statistics.rows
        own = self.upper.compose(np.ones((1, len(self.names)), bool), generator(0))
        if not self.upper.statistics.frame:
            return np.concatenate([rows, own])
        pandas = need("pandas", "tables")
        return pandas.concat([rows[list(own.columns)], own], ignore_index=True).astype(rows.dtypes.to_dict())

    def pool(self, map: Floats, how: str) -> Floats:
        """A number a column -> the same numbers."""
        return self.upper.pool(map, how)


@dataclass(frozen=True, eq=False)
class LaidRows:
    """Two rows of a table, one over the other: shown columns have the upper row's values, hidden ones the lower row's."""

    upper: TableParts
    lower: tuple[Any, ...]
    domain: ClassVar[str] = "tabular"
    deterministic: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names: bins mean nothing where two rows are mixed."""
        return self.upper.statistics.names

    @property
    def view(self) -> TableView:
        """The upper row."""
        return self.upper.view

    def compose(self, masks: Masks, rng: np.random.Generator) -> Batch:
        """Rows mixed of the two."""
        masks = check_masks(masks, len(self.names))
        columns = self.upper.statistics.columns
        return self.upper.statistics.batch([c.storage.array([high if shown else low for shown in mask]) for c, high, low, mask
                                            in zip(columns, self.upper.row, self.lower, masks.T, strict=True)])

    def near(self, radius: float, rng: np.random.Generator) -> LaidRows:
        """A row near the upper one over the same lower one."""
        return LaidRows(self.upper.near(radius, rng), self.lower)

    def pool(self, map: Floats, how: str) -> Floats:
        """A number a column -> the same numbers."""
        return self.upper.pool(map, how)


def _apart(column: Column, one: Any, other: Any) -> float:
    if one == other or (one is None and other is None):
        return 0.0
    if one is None or other is None or not column.numeric:
        return 1.0
    return float(((one - other) / column.sd) ** 2)


def read_row(row: Any, statistics: TableStatistics) -> list[Any]:
    """A row's values in the order of the training data's columns; rows with names are matched by name."""
    labels = [column.label for column in statistics.columns]
    if hasattr(row, "iloc") and hasattr(row, "columns"):
        if len(row) != 1:
            raise ValueError(f"a row must be one row, got a DataFrame of {len(row)}; pass frame.iloc[[i]]")
        row = row.astype(object).iloc[0]  # as objects, or whole numbers beside real ones would turn real
    nameless = not statistics.frame and labels == default_names(len(labels))
    if hasattr(row, "iloc"):
        row = row.tolist() if nameless and set(labels) != set(row.index) else dict(zip(row.index, row.tolist(), strict=True))
    if isinstance(row, Mapping):
        return [row[label] for label in _matched(labels, list(row))]
    if isinstance(row, np.ndarray):
        row = list(row[0] if row.ndim == 2 and len(row) == 1 else row) if row.ndim else row
    if not isinstance(row, list | tuple):
        raise TypeError("a row must be a 1-D array, a list, a dict, a pandas Series or a DataFrame of one row, "
                        f"got {type(row).__name__}")
    if len(row) != len(labels):
        raise ValueError(f"the row must have the training data's {len(labels)} columns, got {len(row)} values")
    return list(row)


def _matched(labels: list[Any], came: list[Any]) -> list[Any]:
    missing, extra = [x for x in labels if x not in came], [x for x in came if x not in labels]
    if missing or extra:
        faults = [f"{what} {', '.join(map(str, some[:8]))}{', …' if len(some) > 8 else ''}"
                  for what, some in (("missing", missing), ("extra", extra)) if some]
        raise ValueError(f"the row must have exactly the training data's columns: {'; '.join(faults)}; "
                         "change the row, or leave the column (a label, say) out of the training data")
    return labels
