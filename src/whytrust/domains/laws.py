"""How one column of a table is drawn around a row: from its atoms, or from a normal fitted to each bin.

A law draws for all rows at once, says how the interpretable model sees each draw, and gives controls: columns whose mean is
zero given that, so that taking off what they explain leaves the weights' meaning alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
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
GUIDE = 256


@dataclass(frozen=True, eq=False)
class Chooser:
    """Which of several things a number, uniform in [0, 1), chooses: the first whose cumulated chances exceed it."""

    cumulative: Floats  # without the last, which is 1
    guide: NDArray[np.intp]  # what the lower end of each of 256 equal pieces chooses
    steps: int  # from there to what the upper end chooses

    @classmethod
    def by(cls, chances: Any) -> Chooser:
        """Choose by these chances."""
        cumulative = np.cumsum(chances)[:-1]
        guide = np.searchsorted(cumulative, np.arange(GUIDE + 1) / GUIDE, side="right")
        return cls(cumulative, guide[:-1], int(np.diff(guide).max()))

    def __call__(self, place: Floats) -> NDArray[np.intp]:
        """The number of the thing that each place chooses."""
        if len(self.cumulative) <= FEW_EDGES:
            passed = np.zeros(len(place), np.int8)
            for limit in self.cumulative:
                passed += place >= limit
            return passed.astype(np.intp)
        if self.steps > 8:  # many rare things
            return np.searchsorted(self.cumulative, place, side="right")
        chosen = self.guide.take((place * GUIDE).astype(np.intp))
        beyond = np.append(self.cumulative, np.inf)
        for _ in range(self.steps):
            chosen += place >= beyond.take(chosen)
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

    @cached_property
    def palette(self) -> Any:
        """The atoms and, last, the row's own value, as the model gets them."""
        return self.column.storage.array([*self.column.atoms, self.value])

    def width(self, brief: bool) -> int:
        """How many controls there are."""
        return len(self.briefly if brief else self.controls)

    def draw(self, place: Floats, normal: Floats, rng: np.random.Generator) -> NDArray[Any]:
        """Atoms whose cumulated chances enclose each number of `place`, uniform in [0, 1)."""
        return self.choose(place).astype(np.int32)

    def seen(self, drawn: NDArray[Any], controls: NDArray[Any], brief: bool) -> Floats:
        """How the interpretable model sees each draw; the controls are written into (width, draws)."""
        table = self.briefly if brief else self.controls
        table.astype(controls.dtype).take(drawn, axis=1, out=controls, mode="clip")
        return np.asarray(self.design.take(drawn))

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
    choose: Chooser
    lows: Floats  # one a bin, as are the next five
    highs: Floats
    centres: Floats
    sds: Floats
    below: Floats  # chance of the whole normal below the bin
    mass: Floats  # … and inside it
    means: Floats  # of a bin's draws: truncation moves it away from the bin's own
    indicators: Floats
    others_mean: float  # of draws that are in a bin other than the row's own
    sides: tuple[bool, ...]  # where values vary within a state: in the row's own (True), in others; by the law, not the draws

    @classmethod
    def around(cls, column: Column, own: int, value: Any) -> NormalLaw:
        """The law of a column for a row that has `value` there."""
        return cls(column, own, _origin(column, value), *_once(column, f"normal {own}", lambda: cls._parts(column, own)))

    @staticmethod
    def _parts(column: Column, own: int) -> tuple[Any, ...]:
        lows, highs, centres, sds = map(np.array, (column.mins, column.maxs, column.means, column.sds))
        lows[1:] = np.nextafter(lows[1:], np.inf)  # a lower edge belongs to the bin below
        scale = np.where(sds > 0, sds, np.inf)  # no spread: both limits are at the middle, and so is every draw
        below = ndtr((lows - centres) / scale)
        mass = ndtr((highs - centres) / scale) - below
        scale = np.where(sds > 0, sds, 1.0)
        low, high = (np.exp(-(((end - centres) / scale) ** 2) / 2) for end in (lows, highs))
        shift = (low - high) / math.sqrt(2 * math.pi) / np.where(sds > 0, mass, 1.0)
        means, others = centres + sds * shift, np.arange(len(sds)) != own
        chances = column.frequencies[:len(sds)][others]
        others_mean = float(chances @ means[others] / chances.sum()) if chances.sum() > 0 else 0.0
        sides = tuple(mine for mine in (True, False) if (sds[others != mine] > 0).any())
        return (Chooser.by(column.frequencies), lows, highs, centres, sds, below, mass, means, _state_controls(column, own),
                others_mean, sides)

    @property
    def plain(self) -> bool:
        """Whether the column is cut into bins and has no missing values."""
        return self.column.kind == "binned" and self.column.atoms[-1] is not None

    def width(self, brief: bool) -> int:
        """How many controls there are."""
        return 0 if self.column.kind == "continuous" else 2 if brief else len(self.indicators) + len(self.sides)

    def draw(self, place: Floats, normal: Floats, rng: np.random.Generator) -> NDArray[Any]:
        """A bin by `place`; in it a standard normal number where that falls inside, else one drawn anew; NaN is missing."""
        column, states = self.column, self.choose(place)
        if column.kind == "continuous":
            values = column.storage.within_limits(column.mean + column.sd * normal)
        else:
            values = self.centres.take(states, mode="clip") + self.sds.take(states, mode="clip") * normal
            inside = (values >= self.lows.take(states, mode="clip")) & (values <= self.highs.take(states, mode="clip"))
            again = np.flatnonzero(~inside)
            bins = np.minimum(states[again], len(self.lows) - 1)
            within = np.maximum(rng.random(len(again)), 2.0**-54)  # at 0 the normal is at minus infinity
            drawn = self.centres[bins] + self.sds[bins] * ndtri(self.below[bins] + within * self.mass[bins])
            values[again] = np.clip(drawn, self.lows[bins], self.highs[bins])
        return values if column.atoms[-1] is not None else np.where(states == len(self.lows), np.nan, values)

    def seen(self, drawn: NDArray[Any], controls: NDArray[Any], brief: bool) -> Floats:
        """How the interpretable model sees each draw; the controls are written into (width, draws)."""
        if self.column.kind == "continuous":
            return _standardised(self.column, drawn)
        if brief:
            return self._seen_briefly(drawn, controls)
        states = self._states(drawn)
        mine = states == self.own
        first = len(self.indicators)
        self.indicators.astype(controls.dtype).take(states, axis=1, out=controls[:first], mode="clip")
        deviations = (drawn - np.append(self.means, np.nan).take(states)) / self.column.sd
        if self.column.atoms[-1] is None:
            deviations = np.nan_to_num(deviations)
        for row, side in zip(controls[first:], self.sides, strict=True):
            np.multiply(deviations, mine if side else ~mine, out=row)
        return np.asarray(mine, dtype=np.float64)

    def _seen_briefly(self, drawn: Floats, controls: NDArray[Any]) -> Floats:
        """Controls are the value's distance from the mean of its side: in the row's own bin, and outside of it."""
        edges = (-np.inf, *self.column.edges, np.inf)
        mine = np.isnan(drawn) if self.own == len(self.means) else (drawn > edges[self.own]) & (drawn <= edges[self.own + 1])
        own_mean = self.means[self.own] if self.own < len(self.means) else 0.0
        for row, centre, side in zip(controls, (own_mean, self.others_mean), (mine, ~mine), strict=True):
            np.multiply(drawn - centre, side / self.column.sd, out=row, casting="same_kind")
        if self.column.atoms[-1] is None:
            np.nan_to_num(controls, copy=False)
        return np.asarray(mine, dtype=np.float64)

    def array_of(self, drawn: NDArray[Any]) -> Any:
        """The drawn column as the model gets it; whole numbers are rounded without leaving their bin."""
        if self.column.storage.whole and self.column.kind == "binned":
            bins = np.minimum(self._states(drawn), len(self.lows) - 1)
            drawn = np.clip(np.rint(drawn), np.ceil(self.lows)[bins], np.floor(self.highs)[bins])
        return self.column.storage.numbers(drawn)

    def _states(self, drawn: Floats) -> NDArray[np.intp]:
        """The bin of each value; NaN is above every edge, and one more is added for the missing state."""
        if len(self.column.edges) > FEW_EDGES:
            return np.asarray(np.searchsorted(self.column.edges, drawn) + np.isnan(drawn), dtype=np.intp)
        passed = np.zeros(len(drawn), np.int8)
        for edge in self.column.edges:
            passed += ~(drawn <= edge)
        return (passed + np.isnan(drawn) if self.column.atoms[-1] is None else passed).astype(np.intp)


@dataclass(frozen=True, eq=False)
class NormalLaws:
    """Several binned columns drawn from normals, none with missing values: the same as one by one, in fewer steps."""

    laws: tuple[NormalLaw, ...]

    @cached_property
    def _tables(self) -> dict[str, NDArray[Any]]:
        """(columns × bins) numbers of all laws in a row, columns with fewer bins filled up; and the limits of choices."""
        most = max(len(law.lows) for law in self.laws)
        names = ("lows", "highs", "centres", "sds", "below", "mass")
        found = {}
        for name in names:
            rows = [getattr(law, name) for law in self.laws]
            found[name] = np.concatenate([row if len(row) == most else np.resize(row, most) for row in rows])
        limits = np.full((len(self.laws), most - 1), np.inf)
        for row, law in zip(limits, self.laws, strict=True):
            row[: len(law.choose.cumulative)] = law.choose.cumulative
        return {**found, "limits": limits}

    def draw(self, places: Floats, normals: Floats, rng: np.random.Generator) -> Floats:
        """(columns, draws) values, from as many uniform and standard normal numbers."""
        tables = self._tables
        bins = np.zeros(places.shape, np.int8)
        for limit in tables["limits"].T:
            bins += places >= limit[:, None]
        at = bins + (len(tables["limits"].T) + 1) * np.arange(len(self.laws))[:, None]
        values = tables["sds"].take(at)
        values *= normals
        values += tables["centres"].take(at)
        outside = np.flatnonzero((values < tables["lows"].take(at)) | (values > tables["highs"].take(at)))
        again = at.ravel()[outside]
        within = np.maximum(rng.random(len(again)), 2.0**-54)  # at 0 the normal is at minus infinity
        drawn = tables["centres"][again] + tables["sds"][again] * ndtri(tables["below"][again] + within * tables["mass"][again])
        values.ravel()[outside] = np.clip(drawn, tables["lows"][again], tables["highs"][again])
        return values

    def seen(self, drawn: Floats, controls: NDArray[Any]) -> Floats:
        """(columns, draws): how the interpretable model sees each draw; two controls a column are written."""
        edges = np.array([(-np.inf, *law.column.edges, np.inf)[law.own:law.own + 2] for law in self.laws])
        mine = (drawn > edges[:, :1]) & (drawn <= edges[:, 1:])
        scales = 1 / np.array([law.column.sd for law in self.laws])
        for row, centres in enumerate(np.array([(law.means[law.own], law.others_mean) for law in self.laws]).T):
            scaled = drawn - centres[:, None]
            scaled *= scales[:, None]
            np.multiply(scaled, mine if row == 0 else ~mine, out=controls[row::2], casting="same_kind")
        return mine.astype(np.float64)


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
