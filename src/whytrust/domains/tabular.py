"""Rows of a table, cut into columns whose values are drawn from training data.

Tabular LIME as its reference implementation defines it: a numeric column's interpretable feature is "the drawn value lies
in the row's bin", a categorical column's is "the drawn value is the row's". Each column is drawn by itself, first its bin
or category by training frequency, then a value inside the bin; so drawn rows may combine values that never occur together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from whytrust.core import Batch, Draws, Floats, Masks, check_masks, need, pool_labels
from whytrust.domains.columns import Bins, Column, Storage, default_names, fit_categories, fit_numbers, read_table, short
from whytrust.views import TableView

Values = Literal["training", "normal"]
"""What is drawn inside a bin: training values, or a normal fitted to the bin (the reference implementation's way)."""

MOST_CATEGORIES = 8  # other categories with a control of their own
NO_VARIATION = 1e-9  # in standard deviations of the column


@dataclass(frozen=True)
class TableStatistics:
    """All that explaining rows of a table takes from training data; small, and free of training rows.

    Numeric columns are cut at quantiles, as LIME's reference implementation does. An edge that would leave a bin without
    training values is dropped, for no draw could fall in that bin.
    """

    columns: tuple[Column, ...]
    frame: bool = False  # rows go to the model as a DataFrame, else as an array
    dtype: str = "<f8"  # of that array

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
        return cls(fitted, frame, dtype)

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
        out = np.empty((len(arrays[0]), len(arrays)), dtype=self.dtype)
        for j, array in enumerate(arrays):
            out[:, j] = array
        return out

    def to_json(self) -> dict[str, Any]:
        """Plain data, from which `from_json` makes the same statistics."""
        for column in self.columns:
            for value in (column.label, *column.atoms, *(column.storage.categories or ())):
                if not isinstance(value, str | int | float | None):
                    raise TypeError(f"column {column.name!r} must hold text, numbers or booleans to be written as JSON, "
                                    f"got {type(value).__name__} {value!r}; pickle the statistics instead")
        return {"kind": "table statistics", "version": 1, **asdict(self)}

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
        try:
            return cls.from_json(json.loads(Path(path).read_text(encoding="utf-8")))
        except (KeyError, TypeError, json.JSONDecodeError) as error:
            raise ValueError(f"{path} must be a file that TableStatistics.save wrote, reading it gave "
                             f"{type(error).__name__}: {error}; fit the statistics again and save them") from error


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


# --- how one column is drawn ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class AtomLaw:
    """One column drawn from its atoms, around a row whose value is in state `own`; a draw is the number of an atom."""

    cumulative: Floats
    chances: Floats
    design: Floats  # of each atom
    controls: Floats  # (columns, atoms): mean zero given the design
    palette: Any  # the atoms and, last, the row's own value, as the model gets them
    origin: float

    @classmethod
    def around(cls, column: Column, own: int, value: Any) -> AtomLaw:
        """The law of a column for a row that has `value` there."""
        chances, states = np.array(column.chances), np.array(column.states)
        numbers = np.array([np.nan if atom is None or not column.numeric else float(atom) for atom in column.atoms])
        mine = states == own
        if column.kind == "continuous":
            design, controls = _standardised(column, numbers), np.empty((0, len(states)))
        else:
            sums = np.bincount(states, chances * np.nan_to_num(numbers))
            deviations = np.nan_to_num(numbers - (sums / column.frequencies)[states]) / column.sd
            inside = [part for part in (deviations * mine, deviations * ~mine) if np.abs(part).max() > NO_VARIATION]
            design, controls = mine.astype(np.float64), np.vstack([_state_controls(column, own)[:, states], *inside])
        palette = column.storage.array([*column.atoms, value])
        return cls(np.cumsum(chances)[:-1], chances, design, controls, palette, _origin(column, value))

    def draw(self, place: Floats, within: Floats) -> NDArray[Any]:
        """Atoms whose cumulated chances enclose each number of `place`, uniform in [0, 1)."""
        return np.searchsorted(self.cumulative, place, side="right").astype(np.int32)

    def design_of(self, drawn: NDArray[Any]) -> Floats:
        """How the interpretable model sees each draw."""
        return np.asarray(self.design.take(drawn))

    def controls_of(self, drawn: NDArray[Any]) -> Floats:
        """(columns, draws): the controls of each draw."""
        return np.asarray(self.controls.take(drawn, axis=1))

    def array_of(self, drawn: NDArray[Any]) -> Any:
        """The drawn column as the model gets it."""
        return self.palette.take(drawn)


@dataclass(frozen=True, eq=False)
class NormalLaw:
    """One numeric column drawn from a normal: truncated to the bin where there are bins; a draw is a number.

    Bounds are the bin's edges, or the column's least and greatest value; a bin's mean lies between them, so the inverse
    of the cumulative distribution never works in a tail.
    """

    column: Column
    own: int
    origin: float
    cumulative: Floats
    lows: Floats  # one a bin, as are the next five
    highs: Floats
    centres: Floats
    sds: Floats
    below: Floats  # chance of the whole normal below the bin
    mass: Floats  # … and inside it
    indicators: Floats

    @classmethod
    def around(cls, column: Column, own: int, value: Any) -> NormalLaw:
        """The law of a column for a row that has `value` there."""
        lows, highs, centres, sds = map(np.array, (column.mins, column.maxs, column.means, column.sds))
        lows[1:] = np.nextafter(lows[1:], np.inf)  # a lower edge belongs to the bin below
        scale = np.where(sds > 0, sds, np.inf)  # no spread: both limits are at the middle, and so is every draw
        below = ndtr((lows - centres) / scale)
        mass = ndtr((highs - centres) / scale) - below
        return cls(column, own, _origin(column, value), np.cumsum(column.frequencies)[:-1], lows, highs, centres, sds,
                   below, mass, _state_controls(column, own))

    @property
    def means(self) -> Floats:
        """The mean of each bin's draws: truncation moves it away from the bin's own."""
        scale = np.where(self.sds > 0, self.sds, 1.0)
        low, high = (np.exp(-(((end - self.centres) / scale) ** 2) / 2) for end in (self.lows, self.highs))
        shift = (low - high) / math.sqrt(2 * math.pi) / np.where(self.sds > 0, self.mass, 1.0)
        return np.asarray(self.centres + self.sds * shift)

    def draw(self, place: Floats, within: Floats) -> NDArray[Any]:
        """A bin by `place`, a value inside it by `within`; NaN is missing."""
        column, states = self.column, np.searchsorted(self.cumulative, place, side="right")
        within = np.maximum(within, 2.0**-54)  # at 0 the normal is at minus infinity
        if column.kind == "continuous":
            values = column.storage.within_limits(column.mean + column.sd * ndtri(within))
        else:
            bins = np.minimum(states, len(self.lows) - 1)
            values = self.centres[bins] + self.sds[bins] * ndtri(self.below[bins] + within * self.mass[bins])
            values = np.clip(values, self.lows[bins], self.highs[bins])
        return np.where(states == len(self.lows), np.nan, values)

    def design_of(self, drawn: NDArray[Any]) -> Floats:
        """How the interpretable model sees each draw."""
        if self.column.kind == "continuous":
            return _standardised(self.column, drawn)
        return np.asarray(self._states(drawn) == self.own, dtype=np.float64)

    def controls_of(self, drawn: NDArray[Any]) -> Floats:
        """(columns, draws): the controls of each draw."""
        if self.column.kind == "continuous":
            return np.empty((0, len(drawn)))
        states, bins = self._states(drawn), np.arange(len(self.sds))
        deviations = np.nan_to_num(drawn - np.append(self.means, np.nan)[states]) / self.column.sd
        # Which columns there are depends on the law alone: two sets of draws must have the same ones.
        sides = [mine for mine in (True, False) if (self.sds[(bins == self.own) == mine] > 0).any()]
        return np.vstack([self.indicators[:, states], *(deviations * ((states == self.own) == mine) for mine in sides)])

    def array_of(self, drawn: NDArray[Any]) -> Any:
        """The drawn column as the model gets it; whole numbers are rounded without leaving their bin."""
        if self.column.storage.whole and self.column.kind == "binned":
            bins = np.minimum(self._states(drawn), len(self.lows) - 1)
            drawn = np.clip(np.rint(drawn), np.ceil(self.lows)[bins], np.floor(self.highs)[bins])
        return self.column.storage.numbers(drawn)

    def _states(self, drawn: Floats) -> NDArray[np.intp]:
        """The bin of each value; searchsorted puts NaN above every edge, so one is added for the missing state."""
        return np.asarray(np.searchsorted(self.column.edges, drawn) + np.isnan(drawn), dtype=np.intp)


def _standardised(column: Column, values: Floats) -> Floats:
    """(value − mean) / sd; a missing value stands at the mean."""
    return np.asarray(np.nan_to_num((values - column.mean) / column.sd))


def _origin(column: Column, value: Any) -> float:
    """Where the row itself stands in the design."""
    return 1.0 if column.kind != "continuous" else 0.0 if value is None else (float(value) - column.mean) / column.sd


def _state_controls(column: Column, own: int) -> Floats:
    """(columns, states): is the draw in state b, less how often it is when it is not in the row's own state.

    One of the other states has no column, for the sum over all of them is zero.
    """
    frequencies = column.frequencies
    others = sorted((s for s in range(len(frequencies)) if s != own and frequencies[s] > 0), key=lambda s: -frequencies[s])
    chosen = others[:-1] if column.numeric else others[:-1][:MOST_CATEGORIES]
    states, rest = np.arange(len(frequencies)), frequencies[others].sum()
    rows = [(states == b) - frequencies[b] / rest * (states != own) for b in chosen]
    return np.array(rows).reshape(len(chosen), len(states))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Drawn rows, kept as one small array a column and made into a batch only when asked for."""

    statistics: TableStatistics
    laws: tuple[AtomLaw | NormalLaw, ...]
    drawn: tuple[NDArray[Any], ...]

    def __call__(self, part: slice) -> Batch:
        return self.statistics.batch([law.array_of(one[part]) for law, one in zip(self.laws, self.drawn, strict=True)])


# --- the parts --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TableParts:
    """One row of a table; every column is a part.

    Hidden columns show training values, drawn anew for each mask. How it misleads: columns are drawn independently of each
    other, so the model is also asked about rows that could not occur.
    """

    domain: ClassVar[str] = "tabular"
    deterministic: ClassVar[bool] = False
    row: Any  # a tuple of plain values once made, None where missing
    statistics: TableStatistics
    values: Values = "training"
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    view: TableView = field(init=False, repr=False, compare=False)
    _atoms: tuple[AtomLaw, ...] = field(init=False, repr=False, compare=False)
    _laws: tuple[AtomLaw | NormalLaw, ...] = field(init=False, repr=False, compare=False)

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
        atoms = tuple(AtomLaw.around(c, *here) for c, here in zip(columns, located, strict=True))
        laws = tuple(NormalLaw.around(c, *here) if c.numeric and self.values == "normal" else law
                     for c, here, law in zip(columns, located, atoms, strict=True))
        names = tuple(c.condition(*here) for c, here in zip(columns, located, strict=True))
        shown = tuple("missing" if value is None else short(value) for _, value in located)
        made = {"row": tuple(value for _, value in located), "names": names, "_atoms": atoms, "_laws": laws,
                "view": TableView(self.statistics.names, shown, names)}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def compose(self, masks: Masks, rng: np.random.Generator) -> Batch:
        """Rows that keep the columns a mask shows and draw the others from training values, by frequency."""
        masks = check_masks(masks, len(self.names))
        places = rng.random(masks.shape).T
        codes = (np.where(masks[:, j], len(law.chances), law.draw(places[j], places[j])) for j, law in enumerate(self._atoms))
        return _Rows(self.statistics, self._atoms, tuple(codes))(slice(None))

    def pool(self, map: Floats, how: str) -> Floats:
        """A number a column -> the same numbers, for a column is a part."""
        d = len(self.names)
        return pool_labels(map, np.arange(d), d, how)

    def draw(self, n: int, rng: np.random.Generator) -> Draws:
        """n rows, every column drawn by itself."""
        places = np.ascontiguousarray(rng.random((n, len(self.names))).T)
        within = np.ascontiguousarray(rng.random(places.shape[::-1]).T) if self.values == "normal" else places
        return self._draws(tuple(law.draw(u, v) for law, u, v in zip(self._laws, places, within, strict=True)))

    def support(self, limit: int) -> Draws | None:
        """Every row that can be drawn, where each column has finitely many values and there are at most `limit` rows."""
        laws = [law for law in self._laws if isinstance(law, AtomLaw)]
        sizes = [len(law.chances) for law in laws]
        if len(laws) < len(self.names) or math.prod(sizes) > limit:
            return None
        codes = tuple(np.indices(sizes, dtype=np.int32).reshape(len(sizes), -1))
        chances = np.prod([law.chances[code] for law, code in zip(laws, codes, strict=True)], axis=0)
        return self._draws(codes, chances / chances.sum())

    def _draws(self, drawn: tuple[NDArray[Any], ...], chances: Floats | None = None) -> Draws:
        pairs = list(zip(self._laws, drawn, strict=True))
        design = np.column_stack([law.design_of(one) for law, one in pairs])
        blocks = [law.controls_of(one) for law, one in pairs]
        controls, owner = np.concatenate(blocks).T, np.repeat(np.arange(len(blocks)), [len(b) for b in blocks])
        origin = np.array([law.origin for law in self._laws])
        rows = _Rows(self.statistics, self._laws, drawn)
        return Draws(design, rows, origin, controls if controls.shape[1] else None, owner, chances)


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
