"""Parzen windows: what is known of some inputs, spread over all others by a Gaussian kernel.

With k_i = exp(−‖x − x_i‖² / 2σ²), an input x is given the mean of what the training inputs are worth, each weighed by k_i. The
kernels themselves are never computed: far from all training inputs every one of them is 0. What matters are their shares, and
those are those of exp(−(‖x − x_i‖² − the least of these) / 2σ²), of which one is always 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp

from whytrust.core import Floats, generator

FOLDS = 5
"""Each training input is predicted from the other folds."""
PAIRS = 1 << 24
"""Pairs of training inputs that are compared to choose a width; of more, some inputs are predicted and not all …"""
LEAST_HELD_OUT = 500
"""… but so many at least."""
STEPS = np.arange(-10, 3) / 2
"""The widths that are tried: the usual distance between two training inputs, times two to the power of these."""
AT_ONCE = 1 << 24
"""Bytes of numbers that are worked on at once."""


@dataclass(frozen=True, eq=False)
class Rows:
    """n vectors, one a training input: sparse ones as they are, arrays of any type standardised a few at a time."""

    values: Any  # a sparse matrix or an array, (n, features)
    mean: float = 0.0
    sd: float = 1.0

    @classmethod
    def standardised(cls, values: NDArray[Any]) -> Rows:
        """Arrays of one unit throughout, such as pixels: one mean and one deviation for all of them."""
        made, total, squares = cls(values), 0.0, 0.0
        for _, some in made._pieces():
            total += float(some.sum())
        made = cls(values, total / values.size)
        for _, some in made._pieces():
            squares += float((some**2).sum())
        sd = (squares / values.size) ** 0.5
        return cls(values, made.mean, sd if sd > 0 else 1.0)

    def __len__(self) -> int:
        """How many vectors."""
        return int(self.values.shape[0])

    def in_units(self, values: Any) -> Floats:
        """Numbers as these vectors have them."""
        return (np.asarray(values, dtype=np.float64) - self.mean) / self.sd

    def take(self, places: NDArray[np.intp]) -> Any:
        """Some of the vectors, (len(places), features)."""
        return self.values[places] if sparse.issparse(self.values) else self.in_units(self.values[places])

    @cached_property
    def squares(self) -> Floats:
        """(n,): the squared length of each vector."""
        return np.concatenate([_summed(some.multiply(some)) if sparse.issparse(some) else np.einsum("ij,ij->i", some, some)
                               for _, some in self._pieces()])

    def times(self, vectors: Any) -> Floats:
        """(m, features) vectors -> (m, n) products with these."""
        found = np.empty((vectors.shape[0], len(self)))
        for part, some in self._pieces():
            product = vectors @ some.T
            found[:, part] = product.toarray() if sparse.issparse(product) else product
        return found

    def weighed(self, weights: Floats) -> Floats:
        """(n,) weights -> (features,): the sum of the vectors, each times its weight."""
        found: Floats = np.zeros(self.values.shape[1])
        for part, some in self._pieces():
            found = found + some.T @ weights[part]
        return found

    @property
    def scale(self) -> float:
        """The usual distance between two of the vectors: the root of the mean of its square."""
        middle = self.weighed(np.full(len(self), 1 / len(self)))
        mean_square = 2 * (float(self.squares.mean()) - float(middle @ middle))
        return mean_square**0.5 if mean_square > 1e-12 * float(self.squares.mean()) else 1.0

    def _pieces(self) -> Iterator[tuple[slice, Any]]:
        if sparse.issparse(self.values):
            yield slice(0, len(self)), self.values
            return
        step = max(AT_ONCE // (8 * self.values.shape[1]), 1)
        for start in range(0, len(self), step):
            part = slice(start, min(start + step, len(self)))
            yield part, self.in_units(self.values[part])


@dataclass(frozen=True, eq=False)
class Windows:
    """The mean of what training inputs are worth around an input, as a Gaussian of this width weighs them."""

    rows: Rows
    width: float

    def shares(self, x: Floats) -> Floats:
        """(n,): how much each training input counts at x; they add up to 1."""
        apart = self._apart(x)
        kernels = np.exp(-_over_squared(apart - apart.min(), self.width) / 2)
        return np.asarray(kernels / kernels.sum())

    def value(self, x: Floats, worth: Floats) -> float:
        """What x is given, where the training inputs are worth so much each."""
        return float(self.shares(x) @ worth)

    def gradient(self, x: Floats, worth: Floats) -> Floats:
        """(features,): how that moves with x.

        Σ sᵢ (wᵢ − w̄) (xᵢ − x) / σ², with the shares s; of two classes, worth 1 and 0, this is (S₀T₁ − S₁T₀) / σ²(S₀ + S₁)² with
        S the sums of their kernels and T those of k (xᵢ − x). The deviations add up to 0, so x itself drops out.
        """
        shares = self.shares(x)
        with np.errstate(over="ignore"):
            slope = _over_squared(self.rows.weighed(shares * (worth - shares @ worth)), self.width)
        if not np.isfinite(slope).all():
            raise ValueError(f"width must not be so small that slopes are beyond any number, got {self.width:g}; leave it out, "
                             "and it is chosen by cross-validation")
        return np.asarray(slope)

    def log_density(self, x: Floats) -> float:
        """The logarithm of the mean of the Gaussians at x, each with an integral of 1."""
        m = self.rows.values.shape[1]
        exponents = -_over_squared(self._apart(x) + float(x @ x), self.width) / 2
        return float(logsumexp(exponents) - np.log(len(self.rows)) - m / 2 * np.log(2 * np.pi) - m * np.log(self.width))

    def _apart(self, x: Floats) -> Floats:
        """(n,): squared distances less ‖x‖², which all have in common and which swallows the rest where x is far away."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self.rows.squares - 2 * self.rows.times(x[None])[0]
        if not np.isfinite(found).all():
            raise ValueError("the input must lie within reach of the training inputs, and its distance from them is beyond any "
                             "number; look for a value that was not scaled, or was marked missing by a huge one")
        return np.asarray(found)


def tried(rows: Rows) -> Floats:
    """The widths that cross-validation chooses from, rising."""
    return np.asarray(rows.scale * 2.0**STEPS)


def folds_of(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(the fold of each of n training inputs, those that are predicted).

    Drawn from a generator of their own: windows are fitted once for all inputs, whichever is explained first.
    """
    rng = generator(0, "windows")
    folds = rng.permutation(n) % min(FOLDS, n)
    count = int(np.clip(PAIRS // n, min(LEAST_HELD_OUT, n), n))
    return folds, np.sort(rng.permutation(n)[:count])


def cross_validated(rows: Rows, worth: Any, widths: Sequence[float] | Floats, judge: Callable[[Floats], Any]) -> list[Any]:
    """What windows of each width say of training inputs that are held out, from those of the other folds.

    `worth` is (n, columns), sparse or not; `judge` makes one number an input of the columns that the windows give it.
    """
    folds, held_out = folds_of(len(rows))
    said: list[list[Any]] = [[] for _ in widths]
    step = max(AT_ONCE // (8 * len(rows)), 1)
    for start in range(0, len(held_out), step):
        places = held_out[start:start + step]
        apart = rows.squares - 2 * rows.times(rows.take(places))
        apart[folds[places][:, None] == folds] = np.inf
        apart -= apart.min(axis=1, keepdims=True)
        for found, width in zip(said, widths, strict=True):
            kernels = np.exp(-_over_squared(apart, float(width)) / 2)
            found.append(judge(np.asarray(kernels @ worth) / kernels.sum(axis=1, keepdims=True)))
    return [np.concatenate(found) for found in said]


def _over_squared(values: Any, width: float) -> Any:
    """Divided by the square of the width, which itself may be too small for a number."""
    with np.errstate(over="ignore"):
        return values / width / width


def _summed(squares: Any) -> Floats:
    return np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
