"""How far do two explanations of the same parts agree? Ranks, top halves, distances and centres of mass."""

from __future__ import annotations

import math

import numpy as np

from whytrust.core import Floats

ROUNDING = 1e-9
"""Scores that differ by no more than this share of the largest are equal: a rank among roundings says nothing."""


def settled(scores: Floats) -> Floats:
    """The scores with roundings taken off, so that what is equal but for the last bits has one rank."""
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise ValueError(f"scores must be a list of finite numbers, at least one, got shape {values.shape}"
                         f"{'' if np.isfinite(values).all() else ' with NaN or infinite ones'}")
    grain = ROUNDING * float(np.abs(values).max())
    return np.asarray(np.rint(values / grain) if grain > 0 else values)


def rank_correlation(first: Floats, second: Floats) -> float:
    """Do both put the parts in the same order? Spearman's, from -1 to 1; equal scores share their mean rank.

    Where one of the two gives every part the same score it puts nothing in order: two such agree, 1, and one alone says
    nothing of the other's order, 0. It weighs all parts alike: among many parts that hardly matter, noise decides the order.
    """
    ranks = [_ranks(settled(scores)) for scores in _pair(first, second)]
    apart = [rank - rank.mean() for rank in ranks]
    squares = [float(one @ one) for one in apart]
    if not all(squares):
        return float(not any(squares))
    return float(np.clip(apart[0] @ apart[1] / math.sqrt(squares[0] * squares[1]), -1, 1))


def _ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values have the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place])


def top_overlap(first: Floats, second: Floats, share: float = 0.5) -> float:
    """Which share of the parts that matter most to one, by size, are among those that matter most to the other?

    The top half by default, rounded down, but at least one. Where scores are equal at the border each of them belongs to it in
    part, so that the order of the parts decides nothing. Two random orders share about as many as `share` says.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must lie in (0, 1], got {share!r}; a half is usual")
    one, other = (_membership(np.abs(settled(scores)), share) for scores in _pair(first, second))
    # Equal scores of both are taken alike, as far as that goes: what is equal in both is no disagreement.
    return float(np.minimum(one, other).sum() / one.sum())


def _membership(sizes: Floats, share: float) -> Floats:
    """How far each part belongs to the top: 1, 0, or in part where it ties at the border."""
    k = max(int(share * len(sizes) + 1e-9), 1)
    border = np.sort(sizes)[::-1][k - 1]
    above, tied = sizes > border, sizes == border
    return np.asarray(above + tied * (k - above.sum()) / tied.sum())


def distance(first: Floats, second: Floats) -> float:
    """The Euclidean distance of two lists of scores. It grows with their scale: `unit` takes that off."""
    one, other = _pair(first, second)
    return float(np.linalg.norm(one - other))


def unit(scores: Floats) -> Floats:
    """The scores divided by their length; zeros stay zeros."""
    values = np.asarray(scores, dtype=np.float64)
    length = float(np.linalg.norm(values))
    return values / length if length > 0 else values


def location_of_mass(scores: Floats) -> float:
    """Around which place do the scores lie? The mean place, each weighed by its score (Sinha et al. 2021); NaN for a sum of 0.

    Scores have signs, so this is no mean place in general: where they nearly cancel out it lies far outside of the text, and
    a little noise moves it far. What cancels out altogether has no such place.
    """
    values = np.asarray(scores, dtype=np.float64)
    total = float(values.sum())
    if abs(total) <= ROUNDING * float(np.abs(values).sum()):
        return math.nan
    return float(values @ np.arange(len(values)) / total)


def moment(scores: Floats) -> float:
    """Σ score · place / number of places: what the code of Sinha et al. (2021) takes for the location of mass.

    It is not divided by the sum of the scores, so that it always exists, and grows with them.
    """
    values = np.asarray(scores, dtype=np.float64)
    return float(values @ np.arange(len(values)) / len(values))


def mass_shift(first: Floats, second: Floats) -> float:
    """How many places apart do two lists of scores lie? NaN where one of them lies nowhere."""
    return abs(location_of_mass(first) - location_of_mass(second))


def _pair(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape or one.ndim != 1:
        raise ValueError(f"explanations can be compared where they have the same parts, got scores of shapes {one.shape} and "
                         f"{other.shape}")
    return one, other
