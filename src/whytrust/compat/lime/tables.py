"""What whytrust's table parts need so that they answer as lime's table explainer asks: names, sparse rows, other centres."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from whytrust.compat.lime.discretize import bin_names
from whytrust.core import Batch, Draws, Floats, Masks
from whytrust.domains.columns import Column, is_missing, short
from whytrust.domains.storage import Storage
from whytrust.domains.tabular import TableParts
from whytrust.explanation import Explanation
from whytrust.views import TableView

NEVER = 1e-15
"""The chance of what does not occur: 0 would be divided by."""


@dataclass(frozen=True, eq=False)
class AroundRow:
    """Parts whose continuous columns are drawn around the row itself, not around the training data's mean.

    `moved` draws there; `shift` brings its design, which stands at the row, back to the training data's standard units.
    """

    domain: ClassVar[str] = "tabular"
    deterministic: ClassVar[bool] = False
    moved: TableParts
    shift: Floats

    @classmethod
    def of(cls, parts: TableParts) -> AroundRow:
        """The same row and statistics, drawn around the row."""
        columns, shift = [], []
        for column, value in zip(parts.statistics.columns, parts.row, strict=True):
            moves = column.kind == "continuous" and value is not None
            columns.append(replace(column, mean=float(value)) if moves else column)
            shift.append((float(value) - column.mean) / column.sd if moves else 0.0)
        return cls(TableParts(parts.row, replace(parts.statistics, columns=tuple(columns)), parts.values), np.array(shift))

    @property
    def names(self) -> tuple[str, ...]:
        """One a column."""
        return self.moved.names

    @property
    def view(self) -> TableView:
        """The row."""
        return self.moved.view

    def compose(self, masks: Masks, rng: np.random.Generator) -> Batch:
        """Rows that keep the columns a mask shows."""
        return self.moved.compose(masks, rng)

    def pool(self, map: Floats, how: str) -> Floats:
        """A column is a part."""
        return self.moved.pool(map, how)

    def draw(self, n: int, rng: np.random.Generator) -> Draws:
        """n rows around the row."""
        drawn = self.moved.draw(n, rng)
        return replace(drawn, design=drawn.design + self.shift, origin=drawn.origin + self.shift)

    def support(self, limit: int) -> Draws | None:
        """Every row that can be drawn, where no column is a number."""
        return None if self.shift.any() else self.moved.support(limit)


@dataclass(frozen=True, eq=False)
class SparseRows:
    """A model of sparse rows, asked about some of their columns; the others are 0."""

    predict_fn: Callable[[Any], Any]
    columns: Any
    width: int

    def __call__(self, batch: Any) -> Any:
        """Dense rows of those columns -> scores."""
        n, k = batch.shape
        starts = np.arange(0, n * k + 1, k)
        whole = (np.ascontiguousarray(batch).ravel(), np.tile(self.columns, n), starts)
        return self.predict_fn(sparse.csr_matrix(whole, shape=(n, self.width)))


def sparse_columns(table: Any) -> tuple[Column, ...]:
    """Mean and standard deviation of each column of a sparse matrix, zeros included."""
    means = np.asarray(table.mean(axis=0), dtype=np.float64).ravel()
    squares = np.asarray(table.multiply(table).mean(axis=0), dtype=np.float64).ravel()
    sds = np.sqrt(np.maximum(squares - means**2, 0))
    lows, highs = (np.asarray(end.todense(), dtype=np.float64).ravel() for end in (table.min(axis=0), table.max(axis=0)))
    each = enumerate(zip(*(part.tolist() for part in (means, sds, lows, highs)), strict=True))
    storage = Storage(np.dtype(table.dtype if table.dtype.kind == "f" else np.float64).str)
    return tuple(Column(str(i), "continuous", storage, atoms=(mean,), chances=(1.0,), states=(0,), means=(mean,), sds=(sd,),
                        mins=(low,), maxs=(high,), mean=mean, sd=sd or 1.0) for i, (mean, sd, low, high) in each)


def with_category(column: Column, value: Any) -> Column:
    """The same column, where a category that training data do not have counts as one that never occurs."""
    if column.kind != "categorical" or is_missing(value):
        return column
    plain = column.counted(value) if column.storage.timed else value.item() if isinstance(value, np.generic) else value
    if any(atom is not None and atom == plain for atom in column.atoms):
        return column
    at = len(column.atoms) - (column.atoms[-1] is None)
    return replace(column, atoms=(*column.atoms[:at], plain, *column.atoms[at:]),
                   chances=(*column.chances[:at], NEVER, *column.chances[at:]), states=tuple(range(len(column.atoms) + 1)))


@dataclass(frozen=True)
class Wording:
    """What lime calls the columns of one row: their names, conditions and values as text."""

    columns: tuple[str, ...]
    conditions: tuple[str, ...]
    values: tuple[str, ...]

    @classmethod
    def of(cls, parts: TableParts, names: Sequence[str], categories: Mapping[int, Any], ids: Sequence[int]) -> Wording:
        """`names` of all columns and lime's `categorical_names`; `ids` are the columns that are parts."""
        conditions, values = [], []
        for i, column, value in zip(ids, parts.statistics.columns, parts.row, strict=True):
            known = categories.get(i)
            named = (known is not None or column.kind == "categorical") and not column.storage.timed
            word = "missing" if value is None else category_word(value, known) if named else column.word(value)
            values.append(word)
            if value is None:
                conditions.append(f"{names[i]} is missing")
            elif column.kind == "categorical":
                conditions.append(f"{names[i]}={word}")
            elif column.kind == "binned":
                conditions.append(bin_names(names[i], column)[column.locate(value)[0]])
            else:
                conditions.append(names[i])
        return cls(tuple(names[i] for i in ids), tuple(conditions), tuple(values))

    def reworded(self, e: Explanation) -> Explanation:
        """The explanation in these words."""
        return replace(e, names=self.conditions, view=TableView(self.columns, self.values, self.conditions))


def category_word(value: Any, known: Any) -> str:
    """A category as text: by its number in lime's list of names, where there is one."""
    whole = isinstance(value, int | float | np.number) and not isinstance(value, bool) and value == int(value)
    if known is not None and whole:
        try:
            return str(known[int(value)])
        except (IndexError, KeyError) as error:
            raise ValueError(f"categorical_names must have a name for category {int(value)}, got {len(known)} names") from error
    return str(int(value)) if whole else short(value) if isinstance(value, float) else str(value)
