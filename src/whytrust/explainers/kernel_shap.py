"""KernelSHAP (Lundberg and Lee 2017): the Shapley values of an input's parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh, qr
from scipy.special import comb, ndtri, stdtrit

from whytrust import local
from whytrust.core import Floats, Masks
from whytrust.designs import Kernel, Stratum, allocate, draw_strata, strata
from whytrust.explanation import Explanation
from whytrust.moments import one_thread
from whytrust.question import Question
from whytrust.surrogate import PAYS_BELOW

BEYOND = 2048
"""By default so many model calls more than two a part, as shap's KernelExplainer."""
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
FEW = 10
"""With fewer drawn pairs than this nothing honest can be said about their spread."""


@dataclass(frozen=True)
class KernelShap:
    """How is the score shared out fairly among the parts, over all orders in which they could be shown?

    A part's Shapley value is what showing it adds to the score, averaged over all coalitions of other parts (Lundberg and Lee
    2017). Values and intercept, the score with nothing shown, add up to the prediction exactly. `samples` counts every model
    call, that for the input itself included; with 2^d or more the values are exact.

    How it misleads: parts that are absent are filled, so most coalitions are inputs that the model was never trained on, and
    another fill is another game with other values. Parts that stand in for each other share the credit, parts that only work
    together share it too: a value says nothing about what happens when that part alone is changed. Intervals know of the
    sampling alone.
    """

    samples: int | None = None
    surrogate: bool = True

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        whole = isinstance(self.samples, int | np.integer) and not isinstance(self.samples, bool) and self.samples >= 1
        if self.samples is not None and not whole:
            raise ValueError(f"samples must be a whole number >= 1, got {self.samples!r}")
        if self.surrogate not in (True, False):
            raise ValueError(f"surrogate must be True or False, got {self.surrogate!r}")

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """Ask coalitions and their complements, and average by size what each part adds."""
        design = self._design(question, rng)
        nothing = question.score(np.zeros((design.empties, question.d), bool), rng)
        scores = question.score(design.masks, rng).reshape(2, -1)
        prediction = float(question.original[question.target])
        found = _shapley(design, scores[0] - scores[1], prediction, nothing, self.surrogate)
        errors = None if found.covariance is None else np.sqrt(np.maximum(found.covariance.diagonal(), 0))
        fit = local.Fit(float(nothing.mean()), found.values, np.arange(question.d), "linear", 1.0, 1.0, prediction,
                        found.covariance)
        everything = np.concatenate([[prediction], nothing, scores.ravel()])
        return Explanation.of(
            question, "kernel_shap", found.values, intercept=fit.intercept, local_prediction=prediction, standard_errors=errors,
            undecided=local.undecided_ranks(fit, design.exact), notes=tuple(_notes(question, design, everything)),
            settings={"samples": len(everything), "design": "every coalition" if design.exact else "pairs, by size",
                      "surrogate": found.surrogate})

    def ahead(self, question: Question, rng: np.random.Generator) -> None:
        """Have the first coalitions asked together with the input itself, before the target is known."""
        if question.parts.deterministic:
            design = self._design(question, rng)
            question.ask_ahead(np.vstack([np.zeros((1, question.d), bool), design.masks]))

    def _design(self, question: Question, rng: np.random.Generator) -> Design:
        d, fixed = question.d, question.parts.deterministic
        samples = 2 * d + BEYOND if self.samples is None else int(self.samples)
        if samples < 2 * d + 2 and not (fixed and d < 63 and 2**d <= samples):
            raise ValueError(f"samples must be at least {2 * d + 2} for {d} parts (each part shown alone and hidden alone, "
                             f"all and none), got {samples}; ask for more samples, or cut coarser parts")
        return question.foresee(f"shap {samples}", rng, lambda: Design.make(d, samples, fixed, rng))


# --- which coalitions ---------------------------------------------------------------------------------------------------


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
        worth = np.sqrt(_size_weights(d)[1:]) / np.sqrt(d)  # what a size adds to the error is 1 / √(s (d−s))
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


def _size_weights(d: int) -> Floats:
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
    return np.asarray(_size_weights(d)[sizes] / chances[stratum, sizes])


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


# --- what they say ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Values:
    """Shapley values, their covariance over repetitions of the sampling where it is known, and what took noise out."""

    values: Floats
    covariance: Floats | None
    surrogate: str


@one_thread
def _shapley(design: Design, differences: Floats, prediction: float, nothing: Floats, surrogate: bool) -> Values:
    """Averages by size of what a surrogate leaves over; what it says of all coalitions of a size is known exactly."""
    found = None
    if design.open.any() and (surrogate or design.thin):
        found = _best(design, differences, float(nothing.mean()) - prediction)
    known, left, errors = ((np.zeros(design.d), differences, differences) if found is None
                           else _over_all(design, found, differences))
    values = known + (left / design.counts[design.stratum]) @ design.pull
    # What is pulled adds up to 0 but for rounding, so values and intercept add up to the prediction.
    values += (prediction - nothing.mean() - values.sum()) / design.d
    covariance = None if design.thin else _covariance(design, errors, nothing)
    return Values(values, covariance, "none" if found is None else "bent" if found.bend else "linear")


def _covariance(design: Design, errors: Floats, nothing: Floats) -> Floats:
    """Of stratified means with finite-population correction, and of the mean with nothing shown.

    Widened as Student's t is wider than the normal: so that 1.96 standard errors hold 95 % after few draws too. The degrees of
    freedom are Satterthwaite's, from how much the squares themselves vary; those of a part that few pairs tell of vary much.
    """
    covariance, doubt = np.zeros((design.d, design.d)), np.zeros(design.d)
    for cell in np.flatnonzero(design.open & (design.counts > 1)):
        inside = design.stratum == cell
        n = int(design.counts[cell])
        pull = design.pull[inside] * errors[inside, None]
        pull -= pull.mean(axis=0)
        factor = (1 - design.sampled[cell]) / (n * (n - 1))
        covariance += factor * (pull.T @ pull)
        doubt += factor**2 * n * np.maximum((pull**2).var(axis=0), 2 * ((pull**2).mean(axis=0)) ** 2 * n / (n - 1))
    if len(nothing) > 1:
        covariance += nothing.var(ddof=1) / len(nothing) / design.d**2
        doubt += 2 / (len(nothing) - 1) * (nothing.var(ddof=1) / len(nothing) / design.d**2) ** 2
    square = 2 * covariance.diagonal() ** 2
    free = np.divide(square, doubt, out=np.full(design.d, np.inf), where=doubt > 0)
    wider = stdtrit(np.clip(free, 3, 1e6), 0.975) / ndtri(0.975)
    return np.asarray(covariance * np.outer(wider, wider))


# --- the surrogate ------------------------------------------------------------------------------------------------------
# A ridge regression in the space of odd functions of ±1 rows, with a free linear part: sinh(bend · x·x′ / d) holds every
# product of an odd number of parts, the more of them the less. Products of two parts cancel in a pair. Its leave-one-out
# predictions, and its mean over all coalitions of a size, have closed forms.


@dataclass(frozen=True)
class Taught:
    """A surrogate of the pairs' differences, taught on some of them; `unseen` are its leave-one-out errors on those."""

    rows: Floats  # (m, d) of ±1
    places: NDArray[np.intp]  # which pairs they are; −1: the pair of nothing and everything
    targets: Floats
    bend: float
    ridge: float
    vectors: Floats
    eigenvalues: Floats
    inverse: Floats  # (d, m): least squares on the rows

    @cached_property
    def unseen(self) -> Floats:
        """Leave-one-out errors."""
        pulled = self.vectors / (self.eigenvalues + self.ridge)
        return np.asarray(pulled @ (self.targets @ self.vectors) / np.einsum("ij,ij->i", pulled, self.vectors))

    def solve(self, targets: Floats) -> tuple[Floats, Floats]:
        """Coefficients of the kernel (m, k) and of the parts (d, k), for k columns of targets."""
        bent = self.vectors @ ((self.vectors.T @ targets) / (self.eigenvalues + self.ridge)[:, None])
        return bent, self.inverse @ (targets - _sinh(self.rows, self.rows, self.bend) @ bent)


def _sinh(rows: Floats, others: Floats, bend: float) -> Floats:
    """(n, m) values of the kernel, at most 1."""
    products = rows @ others.T
    return np.asarray(np.sinh(bend * products / rows.shape[1]) / np.sinh(bend)) if bend else np.zeros_like(products)


def _best(design: Design, differences: Floats, whole: float) -> Taught | None:
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
    basis, triangle = qr(rows)
    pivots = np.abs(triangle.diagonal())
    if len(rows) <= d or pivots.min() < 1e-9 * pivots.max():
        return None
    inverse = np.linalg.solve(triangle[:d], basis[:, :d].T)
    spread = (1 - design.sampled[design.stratum]) * (design.pull**2).sum(axis=1) / design.counts[design.stratum] ** 2
    worth = np.append(spread[order], 0.0)
    linear = Taught(rows, np.append(order, -1), targets, 0.0, 1.0, basis[:, d:], np.zeros(len(rows) - d), inverse)
    with np.errstate(all="ignore"):  # NaN: a pair that alone tells of a part
        if worth.any() and not worth @ linear.unseen**2 < worth @ targets**2:
            return None
    if d > MOST_BENT or open_.sum() < DRAWN_A_PART * d or not worth.any():
        return linear
    eigenvalues, vectors = eigh(basis[:, d:].T @ _sinh(rows, rows, BEND) @ basis[:, d:], driver="evd")
    eigenvalues, vectors = np.maximum(eigenvalues, 0), basis[:, d:] @ vectors
    bent = [replace(linear, bend=BEND, ridge=float(ridge), vectors=vectors, eigenvalues=eigenvalues)
            for ridge in RIDGES * max(float(eigenvalues.mean()), 1e-300)]
    best = min(bent, key=lambda one: float(worth @ one.unseen**2))
    return best if worth @ best.unseen**2 < PAYS_BELOW * (worth @ linear.unseen**2) else linear


def _over_all(design: Design, taught: Taught, differences: Floats) -> tuple[Floats, Floats, Floats]:
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
            known += _size_weights(design.d)[size] * _mean_of_size(taught, int(size), bent[:, 1 + cell], linear[:, 1 + cell])
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


# --- in words -----------------------------------------------------------------------------------------------------------


def _notes(question: Question, design: Design, scores: Floats) -> Iterator[str]:
    if np.ptp(scores) <= 1e-12 * np.abs(scores).max():
        yield ("The score never changed, whatever was hidden: the model does not use these parts here, "
               "and there is nothing to explain.")
        return
    if not question.parts.deterministic:
        yield (f"Hidden parts are drawn at random, so values are averages over draws and never exact; the score with nothing "
               f"shown is the mean of {design.empties} draws.")
    if design.thin:
        yield (f"{len(scores)} model calls are few for {design.d} parts: how far these values may be off is not known; "
               f"ask for {2 * design.d + 2 + 2 * FEW} or more.")
