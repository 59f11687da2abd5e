"""Which few explanations show most of what a model does? (the submodular pick of Ribeiro, Singh and Guestrin 2016, §4)

Rows are explanations, columns are features that the inputs share. A feature is as important as its weights say all together,
I_j = √Σ|W_ij|, and covered as soon as one picked row has a weight there. Greedy picks add the most importance not yet covered.

Importances are turned into whole numbers that add up within 64 bits: sums of them are exact, whatever their order, so gains can
be counted down instead of counted anew, a tie is a tie, and neither the order of the columns nor of the rows that are added up
changes what is picked. The price is that importances below 2⁻⁶⁰ of their sum all count as that much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whytrust.core import Floats

GREEDY = 1 - 1 / math.e
"""The share of the best possible coverage that a greedy pick reaches at least, whatever the weights are."""
_BITS = 61
"""All importances together are below 2 to this: then sums of them, each rounded, stay within 64 bits."""
_PREFIXES = 256
"""After so many of its picks the best that could still be had is reckoned; after more it would take longer than the pick."""

Indices = NDArray[np.intp]
Counts = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pick:
    """Some of n explanations, in the order they were picked, and how much of what matters they show.

    Gains and coverage are shares of all importance. `bound` is the share of the best coverage possible with as many picks that
    this pick reaches at least, from these very weights; `promised` is what greedy picks reach on any weights (None where the
    picks were not greedy). Coverage misleads where a weight is small: a feature counts as seen however little it weighs there.
    """

    indices: tuple[int, ...]
    gains: Floats
    coverage: Floats
    new: tuple[Indices, ...]  # features that each pick is the first to cover, the most important first
    importance: Floats  # of each feature
    bound: float
    promised: float | None
    notes: tuple[str, ...] = ()
    by: tuple[int, ...] = ()  # of several matrices, the one whose turn each pick was

    def __len__(self) -> int:
        """How many were picked."""
        return len(self.indices)

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Which features are covered."""
        seen = np.zeros(len(self.importance), bool)
        for features in self.new:
            seen[features] = True
        return seen


def submodular(weights: Any, budget: int) -> Pick:
    """Greedy picks: each adds the most importance not yet covered; of equals the earlier row.

    When nothing is left to add, the earliest rows fill the budget. `weights` is (explanations, features), dense or sparse, of
    which sizes count; the time is in proportion to its entries, plus rows times picks.
    """
    tables, count, notes = _prepared([weights], budget)
    return _greedy(tables, count, notes)[0]


def random(weights: Any, budget: int, rng: np.random.Generator) -> Pick:
    """Picks drawn at random, each explanation as likely as any other: what every other way must beat."""
    tables, count, notes = _prepared([weights], budget)
    return _followed(tables, rng.permutation(tables[0].n)[:count].tolist(), [0] * count, False, notes)[0]


def alternating(weights: Sequence[Any], budget: int, rng: np.random.Generator | None = None) -> tuple[Pick, ...]:
    """One pick for several models, whose explanations are of the same inputs: greedy steps take turns (§6.2 of the paper).

    A Pick for each model, all of the same indices, for whoever looks at an input looks at all of its explanations. A model for
    which nothing is left to add passes its turn on. With `rng` the picks are drawn at random instead.
    """
    tables, count, notes = _prepared(weights, budget)
    if rng is None:
        return _greedy(tables, count, notes)
    return _followed(tables, rng.permutation(tables[0].n)[:count].tolist(), [0] * count, False, notes)


def given(weights: Sequence[Any], indices: Sequence[int], turns: Sequence[int] = (), greedy: bool = False,
          budget: int | None = None) -> tuple[Pick, ...]:
    """How much do picks that were made already show of each of several models? `turns` says whose each was.

    `budget` is how many were asked for, where there were fewer.
    """
    tables, count, notes = _prepared(weights, max(len(indices), 1) if budget is None else budget)
    order, by = np.asarray(indices, dtype=np.intp), [int(turn) for turn in turns] or [0] * len(indices)
    if len(order) != count or len(set(order.tolist())) != count or order.min() < 0 or order.max() >= tables[0].n:
        raise ValueError(f"picks must be different rows from 0 to {tables[0].n - 1}, at least one, got {list(indices)[:8]}")
    if len(by) != count or not set(by) <= set(range(len(tables))):
        raise ValueError(f"each pick must be the turn of one of {len(tables)} models, got {by[:8]}")
    return _followed(tables, order.tolist(), by, greedy, notes)


def random_coverage(weights: Any, budget: int, rng: np.random.Generator, repeats: int = 100) -> Floats:
    """(repeats, picks): coverage after each of so many random picks, to see what a greedy one is worth."""
    (table,), count, _ = _prepared([weights], budget)
    return np.array([table.shares(np.cumsum(table.first_seen(rng.permutation(table.n)[:count]))) for _ in range(repeats)])


def importance_of(weights: Any) -> Floats:
    """√Σ|weight| of each feature."""
    return _Table.of(weights).importance


# --- weights in whole numbers -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Table:
    """Which rows cover which features, and the worth of each feature as a whole number."""

    n: int
    features: Indices  # of each row, by `starts`
    starts: Indices
    rows: Indices  # of each feature, by `row_starts`
    row_starts: Indices
    importance: Floats
    worth: Counts

    @classmethod
    def of(cls, weights: Any) -> _Table:
        """From a matrix of weights, of which NaN and infinities are refused."""
        matrix = _checked(weights)
        by_feature = matrix.tocsc()
        # By a power of four: its root is a power of two, so that nothing is rounded, nothing too large, nothing too small.
        shift = 2 * (math.frexp(float(matrix.data.max(initial=0.0)))[1] // 2)
        roots = np.sqrt(_column_sums(np.ldexp(by_feature.data, -shift), by_feature.indptr))
        whole = np.maximum(np.rint(np.ldexp(roots, _BITS - 1 - math.frexp(math.fsum(roots.tolist()))[1])), 1)
        used = np.diff(by_feature.indptr) > 0
        return cls(matrix.shape[0], matrix.indices, matrix.indptr, by_feature.indices, by_feature.indptr,
                   np.ldexp(roots, shift // 2), np.where(used, whole, 0).astype(np.int64))

    @property
    def total(self) -> int:
        """The worth of all features."""
        return int(self.worth.sum())

    def gains(self) -> Counts:
        """What each row covers, nothing being covered yet."""
        sums = np.concatenate([[0], np.cumsum(self.worth[self.features])])  # wraps round beyond 64 bits, and back again
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]])

    def of_row(self, row: int) -> Indices:
        """The features that a row covers."""
        return np.asarray(self.features[self.starts[row]:self.starts[row + 1]])

    def of_features(self, features: Indices) -> tuple[Indices, Indices]:
        """The rows that cover these features, one feature after the other, and how many each has."""
        counts = self.row_starts[features + 1] - self.row_starts[features]
        places = np.repeat(self.row_starts[features] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        return self.rows[places + np.arange(len(places))], counts

    def first_seen(self, order: Indices) -> Counts:
        """What each of these rows adds to those before it."""
        lengths = self.starts[order + 1] - self.starts[order]
        seen = np.concatenate([self.of_row(int(row)) for row in order]) if len(order) else np.empty(0, np.intp)
        features, first = np.unique(seen, return_index=True)
        added = np.zeros(len(order), dtype=np.int64)
        np.add.at(added, np.repeat(np.arange(len(order)), lengths)[first], self.worth[features])
        return added

    def shares(self, worth: Any) -> Floats:
        """Whole numbers as shares of all importance; 0 where nothing is important."""
        return np.asarray(worth, dtype=np.float64) / max(self.total, 1)


def _column_sums(sizes: Floats, ends: Indices) -> Floats:
    """Correctly rounded, so that the order of the rows does not matter; two numbers are added so anyway."""
    counts = np.diff(ends)
    totals = np.zeros(len(counts))
    if len(sizes):
        totals[counts > 0] = np.add.reduceat(sizes, ends[:-1][counts > 0])
    for column in np.flatnonzero(counts > 2).tolist():
        totals[column] = math.fsum(sizes[ends[column]:ends[column + 1]].tolist())
    return totals


def _checked(weights: Any) -> Any:
    """Sizes of the weights as a sparse matrix without zeros, or one clear error."""
    matrix = weights if sparse.issparse(weights) else np.asarray(weights)
    if matrix.ndim != 2:
        raise ValueError(f"weights must be a matrix (explanations, features), got shape {matrix.shape}")
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"weights must be real numbers, got {matrix.dtype}")
    if matrix.shape[0] == 0:
        raise ValueError(f"there must be at least one explanation to pick from, got weights of shape {matrix.shape}")
    found = sparse.csr_matrix(matrix, dtype=np.float64, copy=True) if sparse.issparse(matrix) else _from_dense(matrix)
    if not np.isfinite(found.data).all():
        wrong = int(np.searchsorted(found.indptr, np.flatnonzero(~np.isfinite(found.data))[0], side="right")) - 1
        raise ValueError(f"weights must be finite, got NaN or infinity in explanation {wrong}; leave it out")
    found.sum_duplicates()
    found.data = np.abs(found.data)
    found.eliminate_zeros()
    return found


def _from_dense(matrix: NDArray[Any]) -> Any:
    """As scipy would have it, in a tenth of the time."""
    places = np.flatnonzero(matrix.ravel() != 0)
    starts = np.searchsorted(places, np.arange(matrix.shape[0] + 1) * matrix.shape[1])
    columns = places % max(matrix.shape[1], 1)
    return sparse.csr_matrix((matrix.ravel()[places].astype(np.float64), columns, starts), shape=matrix.shape)


def _prepared(weights: Sequence[Any], budget: Any) -> tuple[list[_Table], int, tuple[str, ...]]:
    """The tables, how many can be picked, and what a reader must know of that."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer) or budget < 1:
        raise ValueError(f"budget must be a whole number >= 1, how many explanations to look at, got {budget!r}")
    if not len(weights):
        raise ValueError("there must be weights of at least one model, got none")
    tables = [_Table.of(matrix) for matrix in weights]
    sizes = {table.n for table in tables}
    if len(sizes) > 1:
        raise ValueError(f"all models must be explained on the same inputs, got {' and '.join(map(str, sorted(sizes)))} rows")
    n, notes = tables[0].n, []
    if budget > n:
        notes.append(f"{budget} explanations were asked for, and there {_are(n)}: all are picked.")
    if not any(table.total for table in tables):
        notes.append("Every weight is 0: no explanation finds anything that matters, so there is nothing to cover.")
    elif blank := sum(int((np.diff(table.starts) == 0).sum()) for table in tables):
        notes.append(f"{blank} of {n * len(tables)} explanations {'is' if blank == 1 else 'are'} empty (every weight is 0) and "
                     "can add nothing.")
    return tables, min(int(budget), n), tuple(notes)


def _are(n: int) -> str:
    return f"is {n}" if n == 1 else f"are {n}"


# --- picking, and what it is worth ------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Side:
    """One model while it is picked for: what every row can still add, and what was added."""

    table: _Table
    count: int
    gains: Counts
    left: NDArray[np.bool_]  # features that no pick has covered
    new: list[Indices]
    added: list[int]
    most: int  # no set of `count` rows covers more

    @classmethod
    def of(cls, table: _Table, count: int) -> _Side:
        """Before the first pick."""
        side = cls(table, count, table.gains(), np.ones(len(table.worth), bool), [], [], table.total)
        side.reckon()
        return side

    def take(self, row: int) -> None:
        """Pick this row: count down what every other can still add."""
        mine = self.table.of_row(row)
        mine = mine[self.left[mine]]
        worth = self.table.worth[mine]
        self.new.append(mine[np.lexsort((mine, -worth))])
        self.added.append(int(worth.sum()))
        if len(mine):
            self.left[mine] = False
            rows, counts = self.table.of_features(mine)
            np.subtract.at(self.gains, rows, np.repeat(worth, counts))
        self.gains[row] = -1
        if len(self.added) % (self.count // _PREFIXES + 1) == 0:
            self.reckon()

    def reckon(self) -> None:
        """Beyond what is covered, `count` rows can add no more than the largest gains that are left."""
        self.most = min(self.most, sum(self.added) + _largest(self.gains, self.count))


def _greedy(tables: Sequence[_Table], count: int, notes: tuple[str, ...]) -> tuple[Pick, ...]:
    """Whoever's turn it is picks what adds the most for it; when nobody gains anything, the earliest rows fill up."""
    sides = [_Side.of(table, count) for table in tables]
    picked: list[int] = []
    turns: list[int] = []
    while len(picked) < count:
        best = [int(side.gains.argmax()) for side in sides]  # the first of equals; those picked are below 0
        order = [(len(picked) + i) % len(sides) for i in range(len(sides))]
        turn = next((i for i in order if sides[i].gains[best[i]] > 0), None)
        if turn is None:
            break
        turns.append(turn)
        picked.append(best[turn])
        for side in sides:
            side.take(picked[-1])
    rest = np.setdiff1d(np.arange(tables[0].n), picked)[:count - len(picked)].tolist() if len(picked) < count else []
    turns += [(len(turns) + i) % len(sides) for i in range(len(rest))]
    for side in sides:
        side.new += [np.empty(0, np.intp)] * len(rest)
        side.added += [0] * len(rest)
    return _told(sides, picked + rest, turns, True, notes)


def _followed(tables: Sequence[_Table], order: list[int], turns: list[int], greedy: bool,
              notes: tuple[str, ...]) -> tuple[Pick, ...]:
    """Rows that are picked already."""
    sides = [_Side.of(table, len(order)) for table in tables]
    for row in order:
        for side in sides:
            side.take(row)
    return _told(sides, order, turns, greedy, notes)


def _told(sides: Sequence[_Side], order: list[int], turns: list[int], greedy: bool, notes: tuple[str, ...]) -> tuple[Pick, ...]:
    """What the picks are worth for each model."""
    found = []
    for who, side in enumerate(sides):
        side.reckon()
        idle, shares = sum(gain == 0 for gain in side.added), side.table.shares
        told = f"{idle} of the {len(order)} picks add{'s' if idle == 1 else ''} nothing that was not covered before."
        found.append(Pick(tuple(order), shares(side.added), shares(np.cumsum(side.added)), tuple(side.new),
                          side.table.importance, sum(side.added) / side.most if side.most else 1.0,
                          _promised(turns.count(who), len(order)) if greedy else None,
                          (*notes, told) if len(sides) == 1 and idle and side.table.total else notes, tuple(turns)))
    return tuple(found)


def _promised(steps: int, count: int) -> float:
    """Of the best coverage with `count` picks, what so many greedy ones among them reach at least."""
    return GREEDY if steps == count else 1 - math.exp(-steps / count)


def _largest(gains: Counts, count: int) -> int:
    """The sum of the largest `count` gains, exactly: no set of that many rows can add more."""
    open_ = gains[gains > 0]
    top = open_ if len(open_) <= count else np.partition(open_, len(open_) - count)[len(open_) - count:]
    return (int((top >> 32).sum()) << 32) + int((top & 0xFFFFFFFF).sum())
