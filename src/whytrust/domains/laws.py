"""How one column of a table is drawn around a row: from its atoms, which are training values or slices of a normal.

A law draws for all rows at once, says how the interpretable model sees each draw, and gives controls: columns whose mean is
zero given that, so that taking off what they explain leaves the weights' meaning alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from whytrust.core import Floats
from whytrust.domains.columns import Column

MOST_CATEGORIES = 8  # other categories with a control of their own
NO_VARIATION = 1e-9  # in standard deviations of the column
FEW_EDGES = 4  # so many are compared one by one; more are looked up
FEW_STATES = 16  # so many bins or categories a column may have for its tables to be kept
SLICES = 256  # of equal chance, in which the normal of a bin is drawn


@dataclass(frozen=True, eq=False)
class Chooser:
    """Which of several things a number, uniform in [0, 1), chooses: the first whose cumulated chances exceed it."""

    cumulative: Floats  # the last is beyond all numbers
    guide: NDArray[np.intp]  # what the lower end of each of many equal pieces chooses
    steps: int  # from there to what the upper end chooses

    @classmethod
    def by(cls, chances: Any) -> Chooser:
        """Choose by these chances."""
        cumulative = np.append(np.cumsum(chances)[:-1], np.inf)
        pieces = max(256, 1 << (2 * len(cumulative) - 1).bit_length())
        guide = np.searchsorted(cumulative, np.arange(pieces + 1) / pieces, side="right")
        return cls(cumulative, guide[:-1], int(np.diff(guide).max()))

    def __call__(self, place: Floats) -> NDArray[np.intp]:
        """The number of the thing that each place chooses."""
        if len(self.cumulative) <= FEW_EDGES + 1:
            passed = np.zeros(len(place), np.int8)
            for limit in self.cumulative[:-1]:
                passed += place >= limit
            return passed.astype(np.intp)
        if self.steps > 8:  # many rare things
            return np.searchsorted(self.cumulative, place, side="right")
        chosen = self.guide.take((place * len(self.guide)).astype(np.intp))
        for _ in range(self.steps):
            chosen += place >= self.cumulative.take(chosen)
        return chosen


@dataclass(frozen=True, eq=False)
class AtomLaw:
    """One column drawn from its atoms, around a row whose value is in state `own`; a draw is the number of an atom."""

    column: Column
    value: Any
    origin: float
    choose: Chooser
    chances: Floats
    design: Floats  # of each atom
    controls: Floats  # (columns, atoms): mean zero given the design
    briefly: Floats  # the same in fewer columns, where there are many in all

    @classmethod
    def around(cls, column: Column, own: int, value: Any) -> AtomLaw:
        """The law of a column for a row that has `value` there."""
        return cls(column, value, _origin(column, value), *_once(column, f"atoms {own}", lambda: cls._parts(column, own)))

    @staticmethod
    def _parts(column: Column, own: int) -> tuple[Chooser, Floats, Floats, Floats, Floats]:
        chances, states = np.array(column.chances), np.array(column.states)
        numbers = np.array([np.nan if atom is None or not column.numeric else float(atom) for atom in column.atoms])
        mine = states == own
        if column.kind == "continuous":
            none = np.empty((0, len(states)))
            return Chooser.by(chances), chances, _standardised(column, numbers), none, none
        sums = np.bincount(states, chances * np.nan_to_num(numbers))
        deviations = np.nan_to_num(numbers - (sums / column.frequencies)[states]) / column.sd
        inside = [part for part in (deviations * mine, deviations * ~mine) if np.abs(part).max() > NO_VARIATION]
        controls = np.vstack([_state_controls(column, own)[:, states], *inside])
        briefly = controls
        if column.numeric:
            there = ~np.isnan(numbers)
            sides = [np.where(side, numbers - np.average(numbers[side], weights=chances[side]), 0.0) / column.sd
                     for side in (mine & there, ~mine & there) if side.any()]
            briefly = np.array([side for side in sides if np.abs(side).max() > NO_VARIATION]).reshape(-1, len(states))
        return Chooser.by(chances), chances, mine.astype(np.float64), controls, briefly

    def width(self, brief: bool) -> int:
        """How many controls there are."""
        return len(self.briefly if brief else self.controls)

    def draw(self, place: Floats) -> NDArray[np.intp]:
        """Atoms whose cumulated chances enclose each number of `place`, uniform in [0, 1)."""
        return self.choose(place)

    def seen(self, drawn: NDArray[np.intp], controls: NDArray[Any], brief: bool) -> Floats:
        """How the interpretable model sees each draw; the controls are written into (width, draws)."""
        table = self.briefly if brief else self.controls
        table.astype(controls.dtype).take(drawn, axis=1, out=controls, mode="clip")
        return np.asarray(self.design.take(drawn))

    def array_of(self, drawn: NDArray[np.integer[Any]]) -> Any:
        """The drawn column as the model gets it; a number beyond the last atom's stands for the row's own value."""
        storage, atoms = self.column.storage, self.column.atoms
        if (drawn == len(atoms)).any():
            return storage.array([*atoms, self.value]).take(drawn)
        return _once(self.column, "array", lambda: storage.array(atoms)).take(drawn)


def from_normals(column: Column) -> Column:
    """The same column drawn from a normal fitted to each bin and cut off at the bin's edges, in place of training values.

    A normal is drawn in slices of equal chance, each at its mean: no draw is farther from a normal number than a slice is wide,
    and the mean of a bin is the normal's own. Without bins it is the normal of all values.
    """
    kept: Column = _once(column, "normals", lambda: _sliced(column))
    return kept


def _sliced(column: Column) -> Column:
    lows, highs, centres, sds = map(np.array, (column.mins, column.maxs, column.means, column.sds))
    lows[1:] = np.nextafter(lows[1:], np.inf)  # a lower edge belongs to the bin below
    slices = SLICES
    if column.kind == "continuous":
        lows, highs, centres, sds = np.array([[-np.inf], [np.inf], [column.mean], [column.sd]])
        slices = 4 * SLICES
    atoms: list[Any] = []
    chances: list[float] = []
    states: list[int] = []
    for state, (low, high, centre, sd) in enumerate(zip(lows, highs, centres, sds, strict=True)):
        found = np.array([centre])
        if sd > 0:
            found = np.clip(centre + sd * _slice_means((low - centre) / sd, (high - centre) / sd, slices), low, high)
        if column.storage.whole:  # rounded without leaving the bin
            found = column.storage.within_limits(np.clip(np.rint(found), np.ceil(low), np.floor(high)))
        atoms += map(int, found) if column.storage.whole else found.tolist()
        chances += [float(column.frequencies[state]) / len(found)] * len(found)
        states += [state] * len(found)
    if column.atoms[-1] is None:
        atoms, chances, states = [*atoms, None], [*chances, column.chances[-1]], [*states, column.states[-1]]
    return replace(column, atoms=tuple(atoms), chances=tuple(chances), states=tuple(states))


def _slice_means(low: float, high: float, slices: int) -> Floats:
    """The means of so many slices, of equal chance, of the standard normal between two limits."""
    below, above = ndtr(low), ndtr(high)
    limits = ndtri(below + (above - below) * np.arange(slices + 1) / slices)
    limits[0], limits[-1] = low, high
    heights = np.exp(-(limits**2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray((heights[:-1] - heights[1:]) * slices / (above - below))


def _once(column: Column, what: str, work_out: Callable[[], Any]) -> Any:
    """What follows from a column's summary alone is kept beside it, for the next row that is explained."""
    if len(column.frequencies) > FEW_STATES:
        return work_out()  # a table for each of thousands of categories would outgrow the training data
    kept = vars(column)
    if what not in kept:
        kept[what] = work_out()
    return kept[what]


def _standardised(column: Column, values: Floats) -> Floats:
    """(value − mean) / sd; a missing value stands at the mean."""
    return np.asarray(np.nan_to_num((values - column.mean) / column.sd))


def _origin(column: Column, value: Any) -> float:
    """Where the row itself stands in the design."""
    return 1.0 if column.kind != "continuous" else 0.0 if value is None else (float(value) - column.mean) / column.sd


def _state_controls(column: Column, own: int) -> Floats:
    """(columns, states): is the draw in state b, less how often it is when it is not in the row's own state.

    One of the other states has no column, for the sum over all of them is zero. Columns are made orthogonal to each other.
    """
    frequencies = column.frequencies
    others = sorted((s for s in range(len(frequencies)) if s != own and frequencies[s] > 0), key=lambda s: -frequencies[s])
    chosen = others[:-1] if column.numeric else others[:-1][:MOST_CATEGORIES]
    states, rest = np.arange(len(frequencies)), frequencies[others].sum()
    rows = np.array([(states == b) - frequencies[b] / rest * (states != own) for b in chosen]).reshape(len(chosen), len(states))
    return np.asarray(np.linalg.solve(np.linalg.cholesky(rows * (frequencies / rest) @ rows.T), rows)) if len(rows) else rows
