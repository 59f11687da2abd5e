"""Which coalitions KernelSHAP asks: pairs of one and its complement, by size, without repeats where that can be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Masks
from whytrust.designs import Kernel, Stratum, allocate, draw_strata, strata

FEW = 10
"""With fewer drawn pairs than this nothing honest can be said about their spread."""


@dataclass(frozen=True)
class Design:
    """Pairs of a coalition and its complement, by the size of the smaller one.

    A pair counts by the difference of its two scores, so that whatever is alike in both (every interaction of two parts) is
    taken out. `weights` are what a pair counts in its stratum's mean.
    """

    small: Masks
    stratum: NDArray[np.intp]
    weights: Floats
    cells: list[Stratum]
    sampled: Floats  # the fraction of each stratum that was asked; 0 = of an endless one
    empties: int  # how often to ask with nothing shown

    @classmethod
    def make(cls, d: int, samples: int, fixed: bool, rng: np.random.Generator) -> Design:
        """Sizes 1 and d−1 whole, then strata without repeats; independent draws where the fill draws at random too."""
        least = 2 if fixed else 1
        worth = np.sqrt(size_weights(d)[1:]) / np.sqrt(d)  # what a size adds to the error is 1 / √(s (d−s))
        # With nothing shown a random fill has no one answer. Its share of the calls makes the whole error least.
        empties = 1 if fixed else _share_of_empties(d, samples - 1, float(worth.sum()))
        pairs = (samples - 1 - empties) // 2
        first = [_first(d)] if fixed and d > 1 else []
        cells = [Stratum(np.array([1]), np.ones(1), 1.0, len(m)) for m in first]
        pairs -= sum(map(len, first))
        drawn: list[Masks] = []
        if d // 2 >= least:
            more = _strata(d, least, worth, max(pairs, 2))
            counts = allocate(more, pairs + 1, fixed)[:-1] if pairs >= 2 else np.zeros(len(more) - 1, np.int64)
            drawn = _draw(more[:-1], counts, d, fixed, rng)
            cells += more[:-1]
        small = np.vstack([*first, *drawn, np.empty((0, d), bool)])
        stratum = np.repeat(np.arange(len(cells)), [len(m) for m in (*first, *drawn)])
        sampled = np.array([len(m) / c.population if fixed and len(c.sizes) == 1 else 0.0
                            for m, c in zip((*first, *drawn), cells, strict=True)])
        weights = _pair_weights(cells, d, small.sum(axis=1), stratum)
        return cls(small, stratum, weights, cells, sampled, empties)

    @property
    def d(self) -> int:
        """The number of parts."""
        return int(self.small.shape[1])

    @property
    def masks(self) -> Masks:
        """The smaller coalitions, then their complements."""
        return np.vstack([self.small, ~self.small])

    @cached_property
    def counts(self) -> NDArray[np.intp]:
        """How many pairs of each stratum are asked."""
        return np.bincount(self.stratum, minlength=len(self.cells))

    @property
    def open(self) -> NDArray[np.bool_]:
        """The strata of which not every pair is asked."""
        return self.sampled < 1

    @property
    def exact(self) -> bool:
        """Is every coalition asked, and has one answer?"""
        return self.empties == 1 and not self.open.any()

    @property
    def thin(self) -> bool:
        """Are there too few draws to tell how much they spread?"""
        return bool(self.open.any()) and int(self.counts[self.open].sum()) < FEW

    @cached_property
    def pull(self) -> Floats:
        """(n, d): what a pair's difference adds to each part's value."""
        return np.asarray((self.small - self.small.mean(axis=1, keepdims=True)) * self.weights[:, None])


def size_weights(d: int) -> Floats:
    """Of pairs whose smaller coalition has 0 … d//2 parts.

    A Shapley value is (v(all) − v(none)) / d plus, over sizes s from 1 to d−1, the mean of (z − s/d) · v(S) · d / (s (d−s)):
    the solution of KernelSHAP's weighted least squares, written out. A pair stands for s and for d−s at once.
    """
    sizes = np.arange(1, d // 2 + 1)
    return np.concatenate([[0.0], d / (sizes * (d - sizes)) * np.where(2 * sizes == d, 0.5, 1.0)])


def _pair_weights(cells: list[Stratum], d: int, sizes: NDArray[np.intp], stratum: NDArray[np.intp]) -> Floats:
    """A size's weight, more where sizes share a stratum in which this one is rare."""
    chances = np.ones((len(cells), d + 1))
    for i, cell in enumerate(cells):
        chances[i, cell.sizes] = cell.chances
    return np.asarray(size_weights(d)[sizes] / chances[stratum, sizes])


def _share_of_empties(d: int, calls: int, worth: float) -> int:
    if d == 1:
        return calls
    share = 1 / d / worth
    return int(np.clip(round(calls * share / (2 + share)), 2, calls - 2))


def _first(d: int) -> Masks:
    """Every part alone; of two parts one pair is all."""
    return np.eye(d, dtype=bool) if d > 2 else np.array([[True, False]])


def _strata(d: int, least: int, worth: Floats, pairs: int) -> list[Stratum]:
    """Sizes from `least` to d//2, neighbours joined where each would have too few draws; last one that stands for nothing."""
    shares = np.zeros(d + 1)
    shares[least:d // 2 + 1] = worth[least - 1:]
    shares[d] = 1e-9 * shares.sum()
    cells = strata(d, shares, Kernel("l2", 1e150), pairs)
    return [replace(c, population=c.population // 2) if len(c.sizes) == 1 and 2 * c.sizes[0] == d else c for c in cells]


def _draw(cells: list[Stratum], counts: NDArray[np.int64], d: int, fixed: bool, rng: np.random.Generator) -> list[Masks]:
    halves = [fixed and len(c.sizes) == 1 and 2 * int(c.sizes[0]) == d for c in cells]
    whole = [i for i, half in enumerate(halves) if not half]
    drawn = dict(zip(whole, draw_strata([cells[i] for i in whole], counts[whole], d, fixed, rng), strict=True))
    for i in np.flatnonzero(halves).tolist():
        # The coalition of a pair of halves that lacks the first part: else a pair could come twice, once from either side.
        masks = draw_strata([cells[i]], counts[[i]], d - 1, fixed, rng)[0]
        drawn[i] = np.hstack([np.zeros((len(masks), 1), bool), masks])
    return [drawn[i] for i in range(len(cells))]
