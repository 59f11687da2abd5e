"""What an audit may claim from the cases it saw: rates, paired differences, and how many more cases would be needed.

Cases cut from one source (photographs from one film, rows of one patient) are not news of each other: where sources are named,
every interval and every test counts sources, not cases.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special

from whytrust.core import Floats

LEVEL = 0.05
"""How often a test may call different what is not; an interval holds the truth the rest of the time."""
MARGIN = 0.05
"""Differences smaller than this are as good as none."""
ROUNDING = 1e-9
"""Numbers that differ by no more are equal: means of the same numbers, added up in another order."""
FINE = 0.01
"""The grain of numbers that are neither yes/no nor counts, such as probabilities and correlations."""
Codes = NDArray[np.intp]
"""For each case, the number of its source."""


@dataclass(frozen=True)
class Rate:
    """A mean with its 95 % interval; `n` cases from `sources` independent sources."""

    value: float
    low: float
    high: float
    n: int
    sources: int


@dataclass(frozen=True)
class Difference:
    """A mean difference of pairs with its 95 % interval, and the two-sided p of "no difference on average".

    `p` <= .05 exactly where the interval leaves 0 out. `error` is the standard error behind the interval, on `freedom` degrees
    of freedom. The interval is centred a little nearer to 0 than `value`, for two made-up pairs were added (see `paired`);
    `grain` is the least that one case can show.
    """

    value: float
    low: float
    high: float
    p: float
    n: int
    sources: int
    error: float
    freedom: float
    grain: float = 1.0

    @property
    def made_up(self) -> float:
        """How many cases each of the two made-up pairs counts for."""
        return self.grain * self.n / (self.freedom + 1)


# --- one mean ---------------------------------------------------------------------------------------------------------


def rate(values: ArrayLike, sources: Sequence[Hashable] | None = None, *, grain: float = 1.0) -> Rate:
    """How large is a mean of numbers in [0, 1], and how far off may it be? NaN values (not applicable) are left out.

    Independent yes/no values get Wilson's interval. Everything else gets Wilson's interval for as many yes/no cases as would be
    equally uncertain, judging by the variance between source totals and one more source whose cases all agree, with Student's
    quantile for the number of sources. A case that can show steps of `grain` (1 for yes/no, 1/3 for "how many of 3") never
    counts for more than 1/grain yes/no cases, and cases that share a source never for more than cases that do not. Where all
    values are equal, and so say nothing about their spread, each source counts for one. A source of None is one of its own.
    (Resampling whole sources, the usual way, covers 20 to 90 % instead of 95 where a rate is near 0 or 1.)

    It misleads where the cases are not drawn from what the reader has in mind: it knows nothing of inputs never audited. For
    rates within .02 of 0 or 1 it may cover 88 to 93 % where cases share sources, and with five yes/no cases 90 %.
    """
    (array,), codes = _complete(sources, grain, values=values)
    if array.size and not (array.min() >= -ROUNDING and array.max() <= 1 + ROUNDING):
        raise ValueError(f"values must lie in [0, 1], got {array.min():g} to {array.max():g}; divide by the largest possible")
    array, n = np.clip(array, 0, 1), len(array)
    if not n:
        return Rate(math.nan, 0.0, 1.0, 0, 0)
    totals, sizes = np.bincount(codes, weights=array), np.bincount(codes)
    found, value = len(sizes), float(array.mean())
    if found == n and np.isin(array, (0, 1)).all():
        return Rate(value, *_wilson(value, n, _quantile(math.inf)), n, n)
    alike = _alike(sizes)
    if alike <= 1:
        return Rate(value, 0.0, 1.0, n, found)
    worth = alike
    if np.ptp(array) > ROUNDING:
        one_more = (n / alike) ** 2 * value * (1 - value)
        squares = float(((totals - value * sizes) ** 2).sum()) + one_more
        variance = max(alike / (alike - 1) * squares / n**2, float(array.var()) / n)
        worth = min(value * (1 - value) / variance, n / grain)
    return Rate(value, *_wilson(value, worth, _quantile(alike - 1)), n, found)


def bounded(values: ArrayLike, low: float | None, high: float | None, sources: Sequence[Hashable] | None = None) -> Rate:
    """A mean of numbers that cannot leave [low, high], with a 95 % interval that does not leave it either; NaNs are left out.

    None is no bound. With both bounds it is the interval of `rate` for fine numbers, moved to this range: two or three cases
    give nearly the whole range, and many give Student's interval. With one bound it is Student's interval, cut there; without a
    bound it is Student's. `sources` need both bounds.

    Student's interval alone would leave the range, and hold the truth far too seldom where the mean is near a bound (in a
    simulation of 5 skewed numbers with a mean of .05, 50 % of the time instead of 95).
    """
    array = np.asarray(values, dtype=np.float64)
    known = array[~np.isnan(array)]
    mean = float(known.mean()) if len(known) else math.nan
    if low is not None and high is not None:
        found = rate((array - low) / (high - low), sources, grain=FINE)
        return Rate(mean, low + (high - low) * found.low, low + (high - low) * found.high, found.n, found.sources)
    if sources is not None:
        raise ValueError("sources must come with both bounds, low and high; leave sources out")
    least, most = -math.inf if low is None else low, math.inf if high is None else high
    if len(known) < 2:
        return Rate(mean, least, most, len(known), len(known))
    reach = jackknife(mean, (known.sum() - known) / (len(known) - 1))
    return Rate(mean, max(reach.low, least), min(reach.high, most), len(known), len(known))


def area(values: Floats, ks: Sequence[int], d: int) -> float:
    """The mean of a curve over k = 1 … d − 1; where not every k was asked, between those that were."""
    return float(np.interp(np.arange(1, d), ks, values).mean()) if d > 1 else math.nan


def areas(curves: Floats, ks: Sequence[int], d: int) -> Floats:
    """The same of many curves, one a row."""
    if d > 1 and list(ks[:d - 1]) == list(range(1, d)):
        return np.asarray(curves[:, :d - 1].mean(axis=1))
    return np.array([area(curve, ks, d) for curve in curves])


def auc(hits: ArrayLike, misses: ArrayLike) -> Rate | None:
    """How often is a number larger for a hit than for a miss, a tie counting half? .5 is no better than a coin.

    None where there are no hits or no misses; NaNs are left out. The 95 % interval reaches as far as either of two does:
    Newcombe's (2006, his method 5), honest for few numbers and where hits and misses are perfectly apart, and DeLong's on the
    logit scale, honest where hits spread more than misses or the other way round; both with Student's quantile.

    It misleads where one side has two or three numbers that spread far more than the other side's (coverage 80 to 90 %), and
    it takes the numbers for independent of each other.
    """
    above, below = (np.asarray(side, dtype=np.float64).ravel() for side in (hits, misses))
    above, below = above[~np.isnan(above)], below[~np.isnan(below)]
    if not (len(above) and len(below)):
        return None
    each_hit = (_ranks_among(above, below, "left") + _ranks_among(above, below, "right")) / (2 * len(below))
    each_miss = 1 - (_ranks_among(below, above, "left") + _ranks_among(below, above, "right")) / (2 * len(above))
    value, n = float(each_hit.mean()), len(above) + len(below)
    if n == 2:
        return Rate(value, 0.0, 1.0, n, n)
    low, high = _newcombe(value, len(above), len(below))
    if 0 < value < 1 and min(len(above), len(below)) > 1:
        shares = [float(side.var(ddof=1)) / len(side) for side in (each_hit, each_miss)]
        parts = sum(share**2 / (len(side) - 1) for share, side in zip(shares, (above, below), strict=True))
        reach = _quantile(sum(shares) ** 2 / parts) * math.sqrt(sum(shares)) / (value * (1 - value)) if parts else 0.0
        place = float(special.logit(value))
        low, high = min(low, float(special.expit(place - reach))), max(high, float(special.expit(place + reach)))
    return Rate(value, low, high, n, n)


# --- pairs ------------------------------------------------------------------------------------------------------------


def paired(first: ArrayLike, second: ArrayLike, sources: Sequence[Hashable] | None = None, *, grain: float = 1.0,
           chance: ArrayLike | None = None) -> Difference:
    """By how much is the mean of `first` larger than that of `second`, case by case? Pairs with a NaN are left out.

    One method for all: a t interval on source totals, after two made-up pairs were added that differ by +grain and -grain and
    count for `grain` of a case each (of a whole source, where cases share sources). For yes/no pairs its centre and error are
    exactly those of Bonett & Price (2012), so that "no pair differed" does not mean certainty; for fine numbers it is Student's
    interval. The variance is never below Student's own, nor below the mean of `chance`: the variance each difference would have
    if `first` were drawn at random, p(1 - p) where `second` is random's exact expectation p. Freedom is the number of sources,
    in equally large ones (Kish), less 1; with one source anything is possible. A source of None is a source of its own.

    The test is this interval's (p <= .05 exactly where 0 is outside). No sign-flip test is added: with the made-up pairs the
    error of the first kind stays at 5 % or below without. It is careful rather than sharp: with 5 yes/no pairs it calls no
    difference, with few sources of many cases seldom. It misleads for a handful of fine-grained and very skewed differences
    (false calls: 8 % for n = 5, 6 % for n = 20).
    """
    columns = {"first": first, "second": second} | ({} if chance is None else {"chance": chance})
    arrays, codes = _complete(sources, grain, **columns)
    differences, n = arrays[0] - arrays[1], len(codes)
    if n and not np.abs(differences).max() <= 1 + ROUNDING:
        raise ValueError(f"differences must lie in [-1, 1], got one of {np.abs(differences).max():g}; pass numbers in [0, 1]")
    if not n:
        return Difference(math.nan, -1.0, 1.0, 1.0, 0, 0, math.nan, 0.0, grain)
    totals, sizes = np.bincount(codes, weights=differences), np.bincount(codes)
    value, alike = float(differences.mean()), _alike(sizes)
    made_up = grain * n / alike  # cases that each made-up pair counts for; it totals as much, or its negative
    cases = n + 2 * made_up
    centre = value * n / cases
    squares = float(((totals - centre * sizes) ** 2).sum()) + 2 * made_up**2 * (1 + centre**2)
    if chance is not None:
        squares = max(squares, float(arrays[2].sum()))
    if alike <= 1:
        return Difference(value, -1.0, 1.0, 1.0, n, len(sizes), math.sqrt(squares) / cases, 0.0, grain)
    student = alike / (alike - 1) * float(((totals - value * sizes) ** 2).sum())
    error, freedom = math.sqrt(max(squares, student)) / cases, alike - 1
    reach = _quantile(freedom) * error
    p = 2 * float(special.stdtr(freedom, -abs(centre) / error))
    low, high = max(centre - reach, -1.0), min(centre + reach, 1.0)
    return Difference(value, low, high, p, n, len(sizes), error, freedom, grain)


def equivalent(difference: Difference, margin: float = MARGIN) -> float:
    """The p of "the difference is `margin` or more, one way or the other": small where it is as good as none.

    Two one-sided t tests (the larger p of both). Seeing few differences is no proof that there are few: the error is never
    taken to be less than that of yes/no differences, all one way, whose share is the margin, and the difference is taken half a
    step further from 0. So within ± .05 nothing is called equivalent from fewer than 72 yes/no cases, or 54 fine ones.
    """
    if not 0 < margin < 1:
        raise ValueError(f"margin must lie between 0 and 1, got {margin!r}; the default is {MARGIN}")
    return _below(difference, abs(difference.value), margin)


def _below(difference: Difference, value: float, margin: float) -> float:
    """The p of "`value` is `margin` or more"."""
    if difference.freedom <= 0:
        return 1.0
    alike = difference.freedom + 1
    error = max(difference.error, math.sqrt(margin * (1 - margin) / alike))
    nearest = margin - value - 0.5 * difference.grain / alike
    return float(special.stdtr(difference.freedom, -nearest / error))


def no_better(difference: Difference, margin: float = MARGIN) -> float:
    """The p of "the difference is `margin` or more": small where it is shown to be less, or negative.

    The upper one of the two tests of `equivalent`, with the same care.
    """
    if not 0 < margin < 1:
        raise ValueError(f"margin must lie between 0 and 1, got {margin!r}; the default is {MARGIN}")
    return _below(difference, difference.value, margin)


def beyond(difference: Difference, margin: float = MARGIN) -> float:
    """The p of "the difference is no more than `margin`, one way or the other": small where it is shown to be larger.

    A t test with both sides counted, as in `paired`, which it comes to as the margin shrinks. It is not the opposite of
    `equivalent`: with few cases neither is small.
    """
    if not 0 < margin < 1:
        raise ValueError(f"margin must lie between 0 and 1, got {margin!r}; the default is {MARGIN}")
    if difference.freedom <= 0 or abs(difference.value) <= margin:
        return 1.0
    centre = (difference.low + difference.high) / 2  # a little nearer to 0, as the interval is
    return min(1.0, 2 * float(special.stdtr(difference.freedom, -(abs(centre) - margin) / max(difference.error, 1e-300))))


def holm(p_values: ArrayLike) -> Floats:
    """p-values adjusted for being many (Holm 1979): calling those <= .05 is wrong about any of them at most 5 % of the time."""
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"p_values must be a list of numbers in [0, 1], got {p_values!r}")
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1)
    return adjusted


# --- how many cases ---------------------------------------------------------------------------------------------------


def needed(difference: Difference, effect: float = MARGIN, power: float = 0.8, tests: int = 1) -> int:
    """How many cases would find a true difference of `effect` with this power, given the spread of those seen?

    Two-sided, at .05 shared among so many tests. Counts cases like those seen, as many a source: correlation within sources is
    in the error already. It is no better than the spread it starts from: from n = 40 it may be off by a quarter.
    """
    _check_goal(effect, power, tests)
    if difference.freedom <= 0:
        raise ValueError(f"needed() must know the spread between sources: got {difference.sources} of them; see plan()")
    squares = (difference.error * (difference.n + 2 * difference.made_up)) ** 2
    seen = max(squares - 2 * difference.made_up**2, squares / 2)  # no pair differed? That does not mean that none ever will
    per_source = difference.n / (difference.freedom + 1)
    return _enough(seen / difference.n, effect, power, tests, per_source, difference.grain)


def needed_to_equate(difference: Difference, tests: int = 1, margin: float = MARGIN) -> int:
    """How many cases would show that a difference as small as the one seen is none (see `equivalent`)? 0 where none would."""
    if difference.freedom <= 0 or abs(difference.value) >= margin:
        return 0
    per_source = difference.n / (difference.freedom + 1)
    for cases in np.unique(np.geomspace(2 * per_source, 1e6, 2000).astype(int)).tolist():
        alike = cases / per_source
        error = difference.error * math.sqrt(difference.n / cases)
        if equivalent(replace(difference, n=cases, freedom=alike - 1, error=error), margin) * tests <= LEVEL:
            return int(cases)
    return 0


def plan(effect: float, power: float = 0.8, discordant: float = 0.25, tests: int = 1) -> int:
    """The same before a run: how many independent yes/no pairs, of which a share `discordant` differs one way or the other?"""
    _check_goal(effect, power, tests)
    if not effect <= discordant <= 1:
        raise ValueError(f"discordant must lie between the effect and 1, got {discordant!r} with an effect of {effect!r}; "
                         "pairs that do not differ make no difference")
    return _enough(discordant - effect**2, effect, power, tests)


def _check_goal(effect: float, power: float, tests: int) -> None:
    if not 0 < effect <= 1:
        raise ValueError(f"effect must lie in (0, 1], got {effect!r}; it is a difference of two rates, such as 0.05")
    if not 0 < power < 1:
        raise ValueError(f"power must lie between 0 and 1, got {power!r}; 0.8 is usual")
    if tests < 1:
        raise ValueError(f"tests must be a whole number >= 1, got {tests!r}")


def _enough(variance: float, effect: float, power: float, tests: int, per_source: float = 1.0, grain: float = 1.0) -> int:
    """The least number of cases whose total is called a difference with this power; made-up pairs do not make it vary."""

    def reached(n: int) -> bool:
        freedom = n / per_source - 1
        if freedom <= 0:
            return False
        called = _quantile(freedom, LEVEL / tests) * math.sqrt(n * variance + 2 * (grain * per_source) ** 2 * (1 + effect**2))
        return n * effect >= called + float(special.stdtrit(freedom, power)) * math.sqrt(n * variance)

    most = 2
    while not reached(most):
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if reached(middle) else (middle, most)
    return most


# --- pieces -----------------------------------------------------------------------------------------------------------


def _complete(sources: Sequence[Hashable] | None, grain: float, **columns: ArrayLike) -> tuple[list[Floats], Codes]:
    """The columns without cases in which any is NaN, and the number of each case's source; or one clear error."""
    if not 0 < grain <= 1:
        raise ValueError(f"grain must lie in (0, 1], got {grain!r}; it is the least that one case can show, 1 for yes/no")
    arrays = {name: np.asarray(column, dtype=np.float64) for name, column in columns.items()}
    name, leading = next(iter(arrays.items()))
    if leading.ndim != 1:
        raise ValueError(f"{name} must be a list of numbers, one a case, got shape {leading.shape}")
    for other, array in arrays.items():
        if array.shape != leading.shape:
            raise ValueError(f"{other} must have one number a case: expected {leading.shape}, got {array.shape}")
    if sources is not None and len(sources) != len(leading):
        raise ValueError(f"sources must have one entry a case: expected {len(leading)}, got {len(sources)}")
    kept = ~np.isnan(list(arrays.values())).any(axis=0)
    if sources is None:
        return [array[kept] for array in arrays.values()], np.arange(int(kept.sum()), dtype=np.intp)
    names = list(sources)
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault((case,) if names[case] is None else (0, names[case]), len(numbers))
             for case in np.flatnonzero(kept).tolist()]
    return [array[kept] for array in arrays.values()], np.array(codes, dtype=np.intp)


def _alike(sizes: NDArray[Any]) -> float:
    """As how many equally large sources are sources of these sizes worth (Kish)?"""
    return float(sizes.sum()) ** 2 / float((sizes.astype(np.float64) ** 2).sum())


def _quantile(freedom: float, level: float = LEVEL) -> float:
    """Student's two-sided quantile; kept finite where there is next to no freedom."""
    if math.isinf(freedom):
        return float(special.ndtri(1 - level / 2))
    return min(float(special.stdtrit(freedom, 1 - level / 2)), 1e6)


def _wilson(value: float, n: float, z: float) -> tuple[float, float]:
    """Wilson's score interval for a share seen in n cases; it holds the share itself, whatever the rounding."""
    shrunk = 1 + z * z / n
    centre = (value + z * z / (2 * n)) / shrunk
    reach = z * math.sqrt(value * (1 - value) / n + (z / (2 * n)) ** 2) / shrunk
    return max(min(centre - reach, value), 0.0), min(max(centre + reach, value), 1.0)


def _ranks_among(these: Floats, others: Floats, side: Literal["left", "right"]) -> NDArray[np.intp]:
    """How many of the others lie below each of these (left), or not above it (right)?"""
    return np.searchsorted(np.sort(others), these, side)


def _newcombe(value: float, hits: int, misses: int) -> tuple[float, float]:
    """The areas that lie within Student's quantile of the one seen, in standard errors that they would have themselves."""
    pairs, more, z = hits * misses, (hits + misses) / 2 - 1, _quantile(hits + misses - 2)

    def too_far(area: float) -> float:
        variance = area * (1 - area) * (1 + more * (1 - area) / (2 - area) + more * area / (1 + area)) / pairs
        return (area - value) ** 2 - z * z * variance

    # An area of 0 or 1 has no variance, so that one border lies on each side of the value.
    low = 0.0 if value == 0 else float(optimize.brentq(too_far, 0.0, min(value, 1 - 1e-12)))
    high = 1.0 if value == 1 else float(optimize.brentq(too_far, max(value, 1e-12), 1.0))
    return low, high


# --- numbers that are no means ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval, and the p of "it is 0"."""

    value: float
    low: float
    high: float
    p: float
    n: int


def jackknife(whole: float, without: ArrayLike, least: float = 0.0) -> Estimate:
    """How sure is a number worked out from n cases (an F1, a ratio, a difference of such), given its n values without each?

    Tukey's: the spread of the leave-one-out values, blown up by n - 1, with Student's quantile. For a mean it is Student's
    interval exactly. `least` is the least error that is believed, as a share of one case: where cases are few and alike the
    spread says next to nothing, and no spread at all is no certainty. It misleads for numbers that jump when a case is left out
    (a median, a best of several).
    """
    values = np.asarray(without, dtype=np.float64)
    n = len(values)
    if values.ndim != 1 or n < 2 or not np.isfinite(values).all() or not math.isfinite(whole):
        raise ValueError(f"jackknife needs a finite value without each of at least 2 cases, got shape {values.shape}")
    error = max(math.sqrt((n - 1) / n * float(((values - values.mean()) ** 2).sum())), least / n)
    reach = _quantile(n - 1) * error
    p = 2 * float(special.stdtr(n - 1, -abs(whole) / error)) if error > 0 else float(whole == 0)
    return Estimate(whole, whole - reach, whole + reach, p, n)
