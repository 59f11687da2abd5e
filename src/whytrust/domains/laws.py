"""How one column of a table is drawn around a row: from its atoms, which are training values or slices of a normal.

A law draws for all rows at once, says how the interpretable model sees each draw, and gives controls: columns whose mean is
zero given that, so that taking off what they explain leaves the weights' meaning alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from whytrust.core import Floats
from whytrust.domains.columns import Column

MOST_CATEGORIES = 8  # other categories with a control of their own
NO_VARIATION = 1e-9  # in standard deviations of the column
FEW_EDGES = 4  # so many are compared one by one; more are looked up
FEW_STATES = 16  # so many bins or categories a column may have for its tables to be kept
SLICES, FEWEST_SLICES = 1024, 8  # of equal chance, in which the normals of a column's bins are drawn together, and of each
FLAT, NOTHING = 1e-3, 1e-12  # limits so close, in standard deviations; a chance so small
R = TypeVar("R")


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
class Atoms:
    """What a column is drawn from: some values, the chance and the state of each, and how to choose among them."""

    numbers: Floats  # NaN where one is missing, or no number
    chances: Floats
    states: NDArray[np.intp]
    array: Any  # the values as the model gets them
    choose: Chooser
    plain: Sequence[Any] = ()  # the training values
    every: Any = None  # all training values, sorted, where these only stand for them

    def some(self, column: Column, place: Floats) -> Atoms:
        """The training values that these numbers choose, one each; missing ones are last in the order of values."""
        there = 1 - column.chances[-1] if column.atoms[-1] is None else 1.0
        missing, last = place >= there, len(self.every) - 1
        chosen = self.every[np.minimum(place / there * len(self.every), last).astype(np.intp)]
        numbers = np.where(missing, np.nan, chosen.astype(np.float64))
        states = np.where(missing, len(column.edges) + 1, np.searchsorted(column.edges, numbers))
        plain = [None if gone else value for gone, value in zip(missing.tolist(), chosen.tolist(), strict=True)]
        return Atoms(numbers, np.full(len(place), 1 / len(place)), states, column.storage.array(plain), self.choose, plain)

    @classmethod
    def from_training(cls, column: Column) -> Atoms:
        """Values that occur in training."""
        return _once(column, "training", lambda: cls(
            np.array([np.nan if atom is None or not column.numeric else float(atom) for atom in column.atoms]),
            np.array(column.chances), np.array(column.states), column.storage.array(column.atoms), Chooser.by(column.chances),
            column.atoms, column.values))

    @classmethod
    def from_normals(cls, column: Column) -> Atoms:
        """A normal fitted to each bin and cut off at its edges, or, without bins, the normal of all values.

        It is drawn in slices of equal chance, each at its mean: so the mean of a bin is the normal's own.
        """
        return _once(column, "normals", lambda: cls._sliced(column))

    @classmethod
    def _sliced(cls, column: Column) -> Atoms:
        lows, highs, centres, sds = map(np.array, (column.mins, column.maxs, column.means, column.sds))
        lows[1:] = np.nextafter(lows[1:], np.inf)  # a lower edge belongs to the bin below
        if column.kind == "continuous":
            lows, highs, centres, sds = np.array([[-np.inf], [np.inf], [column.mean], [column.sd]])
        slices = max(SLICES // len(sds), FEWEST_SLICES)
        scale = np.where(sds > 0, sds, 1.0)
        means = centres[:, None] + sds[:, None] * slice_means((lows - centres) / scale, (highs - centres) / scale, slices)
        numbers = np.clip(means, lows[:, None], highs[:, None])
        if column.storage.whole:  # rounded without leaving the bin
            numbers = column.storage.within_limits(np.clip(np.rint(numbers), np.ceil(lows)[:, None], np.floor(highs)[:, None]))
        numbers, states = numbers.ravel(), np.repeat(np.arange(len(sds)), slices)
        chances = column.frequencies[states] / slices
        if column.atoms[-1] is None:
            numbers, states = np.append(numbers, np.nan), np.append(states, len(sds))
            chances = np.append(chances, column.chances[-1])
        return cls(numbers, chances, states, column.storage.numbers(numbers), Chooser.by(chances))


def slice_means(lows: Floats, highs: Floats, slices: int) -> Floats:
    """(pairs of limits, slices): the means of slices, of equal chance, of the standard normal between two limits."""
    lows, highs, steps = lows[:, None], highs[:, None], np.arange(slices + 1) / slices
    below, above = ndtr(lows), ndtr(highs)
    limits = ndtri(below + (above - below) * steps)
    limits[:, :1], limits[:, -1:] = lows, highs
    heights = np.exp(-(limits**2) / 2) / math.sqrt(2 * math.pi)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.clip((heights[:, :-1] - heights[:, 1:]) * slices / (above - below), limits[:, :-1], limits[:, 1:])
        even = lows + (highs - lows) * (steps[:-1] + 0.5 / slices)
    # Between limits that lie close together a normal is flat, and differences of its values are rounding; far out is nothing.
    return np.where(highs - lows < FLAT, even, np.where(above - below > NOTHING, means, np.clip(0.0, lows, highs)))


@dataclass(frozen=True, eq=False)
class AtomLaw:
    """One column drawn from atoms, around a row whose value is in state `own`; a draw is the number of an atom."""

    column: Column
    own: int
    value: Any
    atoms: Atoms
    known: Atoms | None = None  # where the atoms are values that were drawn of very many: those that stand for all of them

    def draw(self, place: Floats) -> tuple[AtomLaw, NDArray[np.intp]]:
        """The atoms that these numbers, uniform in [0, 1), choose, and the law that has them: of very many values any one."""
        if self.atoms.every is None:
            return self, self.atoms.choose(place)
        return replace(self, atoms=self.atoms.some(self.column, place), known=self.atoms), np.arange(len(place))

    @property
    def origin(self) -> float:
        """Where the row itself stands in the design."""
        column, value = self.column, self.value
        return 1.0 if column.kind != "continuous" else 0.0 if value is None else (float(value) - column.mean) / column.sd

    @property
    def complete(self) -> int:
        """How many controls there are when none is left out."""
        return self._known("complete", lambda: len(self._fully()))

    def controls(self, brief: bool) -> NDArray[Any]:
        """(columns, atoms): mean zero given the design; in fewer columns, and roughly, where there are many in all."""
        return self._known(f"controls {brief}", self._briefly if brief else self._fully)

    def _known(self, what: str, work_out: Callable[[], R]) -> R:
        few = len(self.column.frequencies) <= FEW_STATES  # tables for each of many states would outgrow the training data
        return _once(self.atoms, f"{what} {self.own}", work_out) if few else work_out()

    def seen(self, drawn: NDArray[np.intp]) -> Any:
        """How the interpretable model sees each draw."""
        if self.column.kind == "continuous":  # a missing value stands at the mean
            return np.nan_to_num((self.atoms.numbers.take(drawn) - self.column.mean) / self.column.sd)
        return self.atoms.states.take(drawn) == self.own

    def array_of(self, drawn: NDArray[np.integer[Any]]) -> Any:
        """The drawn column as the model gets it; a number beyond the last atom's stands for the row's own value."""
        if (drawn == len(self.atoms.chances)).any():
            return self._with_own.take(drawn)
        return self.atoms.array.take(drawn)

    @cached_property
    def _with_own(self) -> Any:
        """The training values as the model gets them, then the row's own value."""
        storage = self.column.storage
        if storage.dtype == "object" or storage.frame:
            return storage.array([*self.atoms.plain, self.value])
        return np.concatenate([self.atoms.array, storage.array([self.value])])

    def _fully(self) -> Floats:
        known = self.known or self.atoms
        if self.column.kind == "continuous":
            return np.empty((0, len(self.atoms.states)))
        frequencies = np.maximum(np.bincount(known.states, known.chances), 1e-300)
        means = np.bincount(known.states, known.chances * np.nan_to_num(known.numbers)) / frequencies

        def parts(atoms: Atoms) -> tuple[Floats, Floats]:
            deviations, mine = np.nan_to_num(atoms.numbers - means[atoms.states]) / self.column.sd, atoms.states == self.own
            return deviations * mine, deviations * ~mine

        vary = [np.abs(part).max() > NO_VARIATION for part in parts(known)]  # for all draws the same columns
        inside = [part for part, varies in zip(parts(self.atoms), vary, strict=True) if varies]
        return np.vstack([_state_controls(self.column, self.own)[:, self.atoms.states], *inside])

    def _briefly(self) -> NDArray[np.float32]:
        known = self.known or self.atoms
        if not self.column.numeric or self.column.kind == "continuous":
            return self._fully().astype(np.float32)

        def sides(atoms: Atoms) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
            mine, there = atoms.states == self.own, ~np.isnan(atoms.numbers)
            return mine & there, ~mine & there

        found = []
        for side, drawn in zip(sides(known), sides(self.atoms), strict=True):
            if known.chances[side].sum() > 0:
                mean = np.average(known.numbers[side], weights=known.chances[side])
                if np.abs(np.where(side, known.numbers - mean, 0.0) / self.column.sd).max() > NO_VARIATION:
                    found.append(np.where(drawn, self.atoms.numbers - mean, 0.0) / self.column.sd)
        return np.array(found, np.float32).reshape(-1, len(self.atoms.numbers))


def _once(holder: Any, what: str, work_out: Callable[[], R]) -> R:
    """What follows from a column's summary alone is kept beside it, for the next row that is explained."""
    kept = vars(holder)
    if what not in kept:
        kept[what] = work_out()
    return cast(R, kept[what])


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
