"""A stand-in for the model over pairs of coalitions, used to take noise out of Shapley values.

A ridge regression in the space of odd functions of ±1 rows, with a free linear part: sinh(bend · x·x′ / d) holds every product
of an odd number of parts, the more of them the less. Products of two parts cancel in a pair. Its leave-one-out predictions, and
its mean over all coalitions of a size, have closed forms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtri
from scipy.special import comb

from whytrust.core import Floats
from whytrust.explainers.shap_pairs import Design, size_weights
from whytrust.surrogate import PAYS_BELOW

BEND = 3.0
"""How strongly the surrogate may bend: larger lets more parts act together. Errors are flat around it, from 1 to 5."""
RIDGES = np.array([0.03, 0.3, 3.0])
"""To choose from, as multiples of the mean eigenvalue; among more, the luckiest would look better than it is."""
MOST_TAUGHT = 1000
"""Pairs that the surrogate learns from; its cost grows with their cube, and further pairs only check it."""
MOST_BENT = 64
"""With more parts than this, functions of several parts at once cannot be learnt from a few thousand calls."""
DRAWN_A_PART = 10
"""Nor with fewer drawn pairs a part than this; the little that is gained would cost honest intervals."""


@dataclass(frozen=True)
class Taught:
    """A surrogate of the pairs' differences, taught on some of them; `unseen` are its leave-one-out errors on those."""

    rows: Floats  # (m, d) of ±1
    places: NDArray[np.intp]  # which pairs they are; −1: the pair of nothing and everything
    targets: Floats
    basis: Floats  # (m, d): orthonormal, of what the parts alone can say of the rows
    inverse: Floats  # (d, m): least squares on the rows
    kernel: Floats | None = None  # (m, m): None where the parts alone are all there is
    ridge: float = 1.0

    @property
    def bend(self) -> float:
        """How strongly it bends."""
        return 0.0 if self.kernel is None else BEND

    @cached_property
    def _roots(self) -> tuple[Floats | None, Floats]:
        """(S, U) where SᵀS is the inverse of kernel + ridge, and U an orthonormal basis of the parts seen through S."""
        if self.kernel is None:
            return None, self.basis
        inner = self.kernel.copy()
        inner[np.diag_indices(len(inner))] += self.ridge
        factor, failed = dpotrf(inner.T, lower=1, clean=1, overwrite_a=1)  # symmetric: turned, it is not copied
        if failed:
            raise np.linalg.LinAlgError("kernel + ridge is not positive definite")
        root = dtrtri(factor, lower=1, overwrite_c=1)[0]
        return root, np.linalg.qr(root @ self.basis)[0]

    def _left_over(self, targets: Floats) -> Floats:
        """The kernel's coefficients, for k columns of targets (m, k): what of them the parts cannot say, by the ridge."""
        root, known = self._roots
        through = targets if root is None else root @ targets
        through = through - known @ (known.T @ through)
        return np.asarray(through if root is None else root.T @ through)

    @cached_property
    def unseen(self) -> Floats:
        """Leave-one-out errors; infinite where a pair alone tells of a part, so that without it nothing can be said of it."""
        root, known = self._roots
        seen = known.T if root is None else known.T @ root
        whole = np.ones(len(self.rows)) if root is None else np.einsum("ij,ij->j", root, root)
        free = whole - np.einsum("ij,ij->j", seen, seen)
        errors = self._left_over(self.targets[:, None])[:, 0]
        return np.asarray(np.divide(errors, free, out=np.full(len(free), np.inf), where=free > 1e-9 * whole))

    def solve(self, targets: Floats) -> tuple[Floats, Floats]:
        """Coefficients of the kernel (m, k) and of the parts (d, k), for k columns of targets."""
        bent = self._left_over(targets)
        return bent, self.inverse @ (targets if self.kernel is None else targets - self.kernel @ bent)


def _sinh(rows: Floats, others: Floats, bend: float) -> Floats:
    """(n, m) values of the kernel, at most 1; products of ±1 rows are whole numbers, so there are few."""
    d = rows.shape[1]
    values = np.sinh(bend * np.arange(-d, d + 1) / d) / np.sinh(bend) if bend else np.zeros(2 * d + 1)
    return np.asarray(values[(rows @ others.T).astype(np.intp) + d])


def best(design: Design, differences: Floats, whole: float) -> Taught | None:
    """The surrogate under which the values' estimated variance is least; None where the parts cannot be told apart."""
    d, open_ = design.d, design.open[design.stratum]
    # Parts shown alone always, for without them the linear part may be unsettled; then of what the others are drawn from.
    alone, drawn = np.flatnonzero(~open_ & (design.stratum == 0)), np.flatnonzero(open_)
    room = max(MOST_TAUGHT, 2 * d) - len(alone)
    if len(drawn) > room:
        drawn = drawn[np.linspace(0, len(drawn) - 1, room).astype(np.intp)]  # in random order within their strata
    rest = np.flatnonzero(~open_ & (design.stratum > 0))[:room - len(drawn)]
    order = np.concatenate([alone, drawn, rest])
    rows = np.vstack([2.0 * design.small[order] - 1, -np.ones((1, d))])
    targets = np.append(differences[order], whole)
    basis, triangle = np.linalg.qr(rows)
    pivots = np.abs(triangle.diagonal())
    if len(rows) <= d or pivots.min() < 1e-9 * pivots.max():
        return None
    spread = (1 - design.sampled[design.stratum]) * (design.pull**2).sum(axis=1) / design.counts[design.stratum] ** 2
    worth = np.append(spread[order], 0.0)
    linear = Taught(rows, np.append(order, -1), targets, basis, np.linalg.solve(triangle, basis.T))
    with np.errstate(all="ignore"):  # infinite: a pair that alone tells of a part
        if worth.any() and not worth @ linear.unseen**2 < worth @ targets**2:
            return None
    if d > MOST_BENT or open_.sum() < DRAWN_A_PART * d or not worth.any():
        return linear
    kernel = _sinh(rows, rows, BEND)
    beyond = float(np.trace(kernel) - (basis * (kernel @ basis)).sum()) / (len(rows) - d)  # the mean of its eigenvalues there
    if beyond < 1e-9:  # of one or two parts every odd function is linear
        return linear
    bent = [replace(linear, kernel=kernel, ridge=float(ridge)) for ridge in RIDGES * beyond]
    best = min(bent, key=lambda one: float(worth @ one.unseen**2))
    return best if worth @ best.unseen**2 < PAYS_BELOW * (worth @ linear.unseen**2) else linear


def over_all(design: Design, taught: Taught, differences: Floats) -> tuple[Floats, Floats, Floats]:
    """What the surrogate adds to the values; what it leaves over; and its errors on pairs it has not seen.

    As in `surrogate.py`: asked pairs count with the model's own answer and the others with the surrogate's, corrected by its
    held-out errors. Strata that were asked completely do without it.
    """
    x = 2.0 * design.small - 1
    own = taught.places >= 0
    mine = design.stratum[taught.places[own]]
    # A surrogate that was not taught a row is the one that was taught its own unseen prediction there; and means of such
    # surrogates over a stratum are taught the means.
    missed = np.zeros((len(own), len(design.cells)))
    missed[np.flatnonzero(own), mine] = taught.unseen[own] / design.counts[mine]
    bent, linear = taught.solve(np.column_stack([taught.targets, taught.targets[:, None] - missed]))
    said = _sinh(x, taught.rows, taught.bend) @ bent + x @ linear
    errors = differences - said[:, 0]
    errors[taught.places[own]] = taught.unseen[own]
    seen = differences - said[np.arange(len(x)), 1 + design.stratum]
    sampled = design.sampled[design.stratum]
    left = np.where(sampled < 1, sampled * seen + (1 - sampled) * errors, differences)
    known = np.zeros(design.d)
    for cell in np.flatnonzero(design.open):
        for size in design.cells[cell].sizes:
            known += size_weights(design.d)[size] * _mean_of_size(taught, int(size), bent[:, 1 + cell], linear[:, 1 + cell])
    return known, left, errors


def _mean_of_size(taught: Taught, size: int, bent: Floats, linear: Floats) -> Floats:
    """The mean of (z − s/d) · surrogate over all coalitions of a size: of a row only its overlap with them matters."""
    d = len(linear)
    mean = 2 * size * (d - size) / (d * (d - 1)) * (linear - linear.mean())
    shown = taught.rows > 0
    kept = shown.sum(axis=1)
    for other in np.unique(kept[kept > 0]) if taught.bend else ():
        both = np.arange(max(0, size + other - d), min(size, other) + 1)
        chances = comb(other, both) * comb(d - other, size - both) / comb(d, size)
        near = np.sinh(taught.bend * (d - 2 * (size + other - 2 * both)) / d) / np.sinh(taught.bend)
        inside = float(chances @ ((both / other - size / d) * near))
        rows, pulls = shown[kept == other], bent[kept == other]
        mean = mean + inside * (pulls @ rows - other / (d - other) * (pulls @ ~rows))
    return np.asarray(mean)
