"""Which masks to ask a model about, so that few calls say much.

A law says how likely each number of kept parts is; masks of one size are equally likely. So a size is a stratum: draws are
spread over the strata in proportion to what each weighs in the fit, never repeat a mask, and become an enumeration when there
are as many draws as masks. What is estimated does not change: every mask stands for its share of the law.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Masks

SAMPLING = ("uniform_kept", "uniform_removed", "bernoulli")
"""Number of kept parts uniform in 1 … d-1 (the LIME paper); number removed uniform in 1 … d (lime's texts); each part kept
with probability ½ (lime's images)."""

ENDLESS = 2**53
"""Populations beyond this are as good as endless (and no longer exact as floats)."""
FEW_PARTS = 2048
"""Up to so many parts random numbers of 16 bits put them in order with few ties."""
ENUMERATE_UP_TO = 4096
"""Strata of at most this many masks are listed and shuffled; larger ones are drawn and repeats thrown away."""


def law(sampling: str, d: int, samples: int) -> Floats:
    """(d + 1,) probabilities of 0 … d kept parts. The input itself is one of the samples, so it has at least 1 / samples."""
    sizes = np.arange(d + 1)
    if sampling == "uniform_kept":
        chances = ((sizes >= 1) & (sizes <= d - 1)).astype(np.float64)
    elif sampling == "uniform_removed":
        chances = (sizes <= d - 1).astype(np.float64)
    elif sampling == "bernoulli":
        logs = np.array([-math.lgamma(s + 1) - math.lgamma(d - s + 1) for s in sizes])
        chances = np.exp(logs - logs.max())
    else:
        raise ValueError(f"sampling must be one of {', '.join(SAMPLING)}, got {sampling!r}")
    chances = chances / chances.sum() * (1 - 1 / samples)
    chances[d] += 1 / samples
    return np.asarray(chances)


@dataclass(frozen=True)
class Kernel:
    """How much a mask counts, by how far it is from the whole input: exp(−D²/width²), or its square root.

    D depends only on how many parts are kept: cosine is 1 − √(kept / d), l2 is √(d − kept). `root` is the reference
    implementation's kernel; the paper's has none.
    """

    distance: str
    width: float
    root: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be a kernel."""
        if self.distance not in ("cosine", "l2"):
            raise ValueError(f"distance must be 'cosine' or 'l2', got {self.distance!r}")
        if not self.width > 0:
            raise ValueError(f"width must be a number > 0, got {self.width!r}")

    def weigh(self, distances: Floats) -> Floats:
        """exp(−D²/width²) or its root."""
        weights = np.exp(-((distances / self.width) ** 2))
        return np.asarray(np.sqrt(weights) if self.root else weights)

    def of_sizes(self, d: int) -> Floats:
        """The weight of a mask that keeps 0 … d parts."""
        kept = np.arange(d + 1) / d
        return self.weigh(1 - np.sqrt(kept) if self.distance == "cosine" else np.sqrt((1 - kept) * d))

    def of_rows(self, design: Floats, origin: Floats) -> Floats:
        """The weight of rows of any numbers, by their distance from `origin`."""
        if self.distance == "l2":
            apart = design - origin
            return self.weigh(np.sqrt(np.einsum("ij,ij->i", apart, apart)))
        norms = np.sqrt((design**2).sum(axis=1) * (origin**2).sum())
        cosine = np.divide(design @ origin, norms, out=np.zeros(len(design)), where=norms > 0)
        return self.weigh(1 - cosine)


@dataclass(frozen=True)
class Stratum:
    """Masks of one size, or of neighbouring sizes where there are too many sizes to sample each.

    `share` is what the stratum weighs in the fit: probability times kernel. `population` is how many masks it has.
    """

    sizes: NDArray[np.intp]
    chances: Floats
    share: float
    population: int


def strata(d: int, law_of_sizes: Floats, kernel: Kernel, samples: int) -> list[Stratum]:
    """The sizes that can occur, one a stratum; neighbours are joined where their shares are worth fewer than four samples."""
    shares = law_of_sizes * kernel.of_sizes(d)
    rest = np.flatnonzero(shares[:d] > 0)
    if shares[rest].sum() < 1e-9 * shares[d]:
        raise too_narrow(kernel, d)
    groups = [[int(s)] for s in rest]
    if not _fewer_masks_than(samples, d, rest):
        groups = _joined(rest, shares.tolist(), 4 * float(shares.sum()) / samples)
    return [_stratum(group, shares, d) for group in [*groups, [d]]]


def _stratum(sizes: list[int], shares: Floats, d: int) -> Stratum:
    if len(sizes) == 1:
        return Stratum(np.array(sizes), np.ones(1), float(shares[sizes[0]]), min(math.comb(d, sizes[0]), ENDLESS))
    share = shares[sizes].sum()
    return Stratum(np.array(sizes), shares[sizes] / share, float(share), ENDLESS)


def too_narrow(kernel: Kernel, d: int) -> ValueError:
    """The error for a kernel under which nothing but the input itself counts."""
    usual = 0.25 if kernel.distance == "cosine" else 0.75 * d**0.5
    return ValueError(f"width={kernel.width:.3g} is so narrow that hardly any changed input counts beside the input itself; "
                      f"use a wider kernel (the default for these parts is {usual:.3g})")


def _fewer_masks_than(samples: int, d: int, sizes: NDArray[np.intp]) -> bool:
    return d < 63 and sum(math.comb(d, int(s)) for s in sizes) < samples


def _joined(sizes: NDArray[np.intp], shares: list[float], enough: float) -> list[list[int]]:
    """Neighbouring sizes together until they have `enough` share, from the largest down; what is left joins the last."""
    groups: list[list[int]] = [[]]
    share = 0.0
    for size in sizes[::-1].tolist():
        if share >= enough:
            groups.append([])
            share = 0.0
        groups[-1].append(size)
        share += shares[size]
    if len(groups) > 1 and share < enough:
        last = groups.pop()
        groups[-1] += last
    return [sorted(g) for g in reversed(groups)]


def allocate(cells: list[Stratum], samples: int, distinct: bool) -> NDArray[np.int64]:
    """How many masks to draw from each stratum: in proportion to its share, at least two, never more than it has."""
    shares = np.log([c.share for c in cells])  # logarithms: far strata of a narrow kernel weigh 1e-100 of the near ones
    most = np.array([min(c.population, samples) if distinct else samples for c in cells])
    most[-1] = 1  # the input itself has one answer, whatever the fill
    least = np.minimum(2, most)
    # Water-filling: what a full stratum cannot take, or a small one needs beyond its share, is evened out over the others.
    low, high = float((np.log(least) - shares).min()), float((np.log(most) - shares).max())
    counts = least
    while low < (middle := (low + high) / 2) < high:
        counts = np.minimum(np.maximum(np.exp(np.minimum(middle + shares, 700)), least), most)
        low, high = (middle, high) if counts.sum() < samples else (low, middle)
    whole = np.floor(counts).astype(np.int64)
    room = np.argsort(-(counts - whole), kind="stable")
    room = room[whole[room] < most[room]]
    whole[room[: max(samples - whole.sum(), 0)]] += 1
    return np.asarray(whole)


def draw_strata(cells: list[Stratum], counts: NDArray[np.int64], d: int, distinct: bool,
                rng: np.random.Generator) -> list[Masks]:
    """So many masks of each stratum, in random order; the first m of a stratum are a sample of m in their own right."""
    drawn: list[Masks | None] = [_listed(cell, n, d, rng) if distinct else None for cell, n in zip(cells, counts, strict=True)]
    left = [i for i, masks in enumerate(drawn) if masks is None]
    sizes = [_random_sizes(cells[i], int(counts[i]), rng) for i in left]
    together = _random_masks(np.concatenate([np.empty(0, np.intp), *sizes]), d, rng)
    ends = np.cumsum([len(s) for s in sizes])
    again = set(np.searchsorted(ends, _repeats(together), side="right").tolist()) if distinct else set()
    for k, (i, masks) in enumerate(zip(left, np.split(together, ends[:-1]), strict=bool(left))):
        # Masks of joined sizes are not equally likely, so those are drawn independently.
        drawn[i] = _without_repeats(masks, cells[i], d, rng) if k in again and len(cells[i].sizes) == 1 else masks
    return [masks for masks in drawn if masks is not None]


def _listed(cell: Stratum, n: int, d: int, rng: np.random.Generator) -> Masks | None:
    """n of all the masks of a small stratum; None where there are too many to list."""
    if len(cell.sizes) > 1 or cell.population > max(ENUMERATE_UP_TO, 2 * n):
        return None
    size = int(cell.sizes[0])
    fewer = min(size, d - size)  # what is kept, or what is hidden, whichever is shorter to write down
    marked = np.fromiter(itertools.chain.from_iterable(itertools.combinations(range(d), fewer)), np.intp,
                         cell.population * fewer).reshape(cell.population, fewer)
    marked = marked if fewer == size else marked[::-1]  # in the order of what is kept, either way
    chosen = rng.permutation(cell.population)[:n]
    masks = np.full((len(chosen), d), fewer < size)
    np.put_along_axis(masks, marked[chosen], fewer == size, axis=1)
    return masks


def _without_repeats(masks: Masks, cell: Stratum, d: int, rng: np.random.Generator) -> Masks:
    """As many masks, each of them once: repeats are thrown away and drawn anew."""
    while len(again := _repeats(masks)):
        masks = np.delete(masks, again, axis=0)
        masks = np.vstack([masks, _random_masks(_random_sizes(cell, len(again), rng), d, rng)])
    return masks


def _repeats(masks: Masks) -> NDArray[np.intp]:
    """The rows that are there before."""
    codes = _codes(masks)
    ordered = np.sort(codes)
    twice = ordered[1:][ordered[1:] == ordered[:-1]]
    alike = np.flatnonzero(np.isin(codes, twice)) if len(twice) else np.empty(0, np.intp)  # equal codes: perhaps equal masks
    seen: set[bytes] = set()
    again = []
    for place, mask in zip(alike.tolist(), masks[alike], strict=True):
        key = mask.tobytes()
        if key in seen:
            again.append(place)
        seen.add(key)
    return np.array(again, np.intp)


def _codes(masks: Masks) -> NDArray[np.uint64]:
    """A number for each mask, the same for equal masks; for different ones hardly ever."""
    octets = np.packbits(masks, axis=1)
    words = np.zeros((len(masks), -(-octets.shape[1] // 8) * 8), np.uint8)
    words[:, :octets.shape[1]] = octets
    factors = np.cumprod(np.full(words.shape[1] // 8, 0x9E3779B97F4A7C15, np.uint64))  # odd, so that no bit is lost
    return np.asarray((words.view(np.uint64) * factors).sum(axis=1, dtype=np.uint64))


def _random_sizes(cell: Stratum, n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    if len(cell.sizes) == 1:
        return np.repeat(cell.sizes, n)
    return cell.sizes[np.searchsorted(np.cumsum(cell.chances)[:-1], rng.random(n), side="right")]


def _random_masks(sizes: NDArray[np.intp], d: int, rng: np.random.Generator) -> Masks:
    """A mask of each size, all masks of that size equally likely: the parts with the `size` smallest numbers are kept."""
    kind = np.uint16 if d <= FEW_PARTS else np.uint32
    numbers = rng.integers(np.iinfo(kind).max, size=(len(sizes), d), dtype=kind, endpoint=True)
    ordered, each = np.sort(numbers, axis=1), np.arange(len(sizes))
    limits, beyond = ordered[each, np.maximum(sizes - 1, 0)], ordered[each, np.minimum(sizes, d - 1)]
    masks: Masks = (numbers <= limits[:, None]) & (sizes > 0)[:, None]
    # A limit that is there twice keeps one part too many; settling who it is would favour some parts, so draw again.
    tied = np.flatnonzero((limits == beyond) & (sizes > 0) & (sizes < d))
    if len(tied):
        masks[tied] = _random_masks(sizes[tied], d, rng)
    return masks


@dataclass(frozen=True)
class Sample:
    """Asked masks (or drawn rows) and the model's answers, with what each stands for.

    `weights` add up to what as many plain draws would weigh; `stratum` says which stratum a row is from, `sampled` the fraction
    of that stratum that was asked (1 = all of it, so that it adds no uncertainty; 0 = an endless one).
    """

    rows: Floats
    scores: Floats
    weights: Floats
    stratum: NDArray[np.intp]
    sampled: Floats

    @property
    def exact(self) -> bool:
        """Was everything asked that could be asked?"""
        return bool((self.sampled == 1).all())


@dataclass(frozen=True)
class MaskPlan:
    """Nested samples of masks: a larger sample begins with the smaller one, so that drawing on wastes no call."""

    cells: list[Stratum]
    sequences: list[Masks]
    d: int
    most: int
    distinct: bool

    @classmethod
    def make(cls, d: int, sampling: str, kernel: Kernel, samples: int, distinct: bool, rng: np.random.Generator) -> MaskPlan:
        """Draw the masks of up to `samples` model calls; `distinct` where a mask has one answer and is asked once."""
        cells = strata(d, law(sampling, d, samples), kernel, samples)
        counts = allocate(cells, samples, distinct)
        return cls(cells, draw_strata(cells, counts, d, distinct, rng), d, samples, distinct)

    @property
    def total(self) -> int:
        """The masks that were planned; fewer than asked for where there are no more."""
        return sum(map(len, self.sequences))

    def masks(self, samples: int) -> Masks:
        """The first `samples` masks of the plan."""
        return np.vstack([s[:n] for s, n in zip(self.sequences, self._counts(samples), strict=True)])

    def _counts(self, samples: int) -> NDArray[np.int64]:
        """How many of the first `samples` masks are of each stratum."""
        counts = np.array([len(s) for s in self.sequences])
        if samples < counts.sum():
            counts = np.minimum(allocate(self.cells, samples, self.distinct), counts)
        return counts

    def ask(self, samples: int, score: Callable[[Masks], Floats], known: list[Floats]) -> Sample:
        """The first `samples` masks of the plan, answered; `known` holds earlier answers, a list a stratum, and is extended."""
        counts = self._counts(samples)
        known.extend(np.empty(0) for _ in self.cells[len(known):])
        new = [s[len(k):n] for s, k, n in zip(self.sequences, known, counts, strict=True)]
        answers = np.split(score(np.vstack(new)), np.cumsum([len(m) for m in new])[:-1])
        known[:] = [np.concatenate(pair) for pair in zip(known, answers, strict=True)]
        masks = self.masks(samples)
        stratum = np.repeat(np.arange(len(self.cells)), counts)
        shares = np.array([c.share for c in self.cells])
        sampled = np.array([n / c.population if self.distinct and len(c.sizes) == 1 else 0.0
                            for n, c in zip(counts, self.cells, strict=True)])
        sampled[-1] = 1.0
        weights = (self.most * shares / np.maximum(counts, 1))[stratum]
        scores = np.concatenate([k[:n] for k, n in zip(known, counts, strict=True)])
        return Sample(masks.astype(np.float64), scores, weights, stratum, sampled[stratum])


def plain_masks(d: int, sampling: str, kernel: Kernel, samples: int, rng: np.random.Generator) -> tuple[Masks, Floats]:
    """Masks drawn one by one from the law, the input itself first, as lime does; with their kernel weights."""
    chances = law(sampling, d, 10**9)[:-1] if sampling != "bernoulli" else law(sampling, d, 10**9)
    cell = Stratum(np.arange(len(chances)), chances / chances.sum(), 1.0, ENDLESS)
    masks = np.vstack([np.ones((1, d), bool), _random_masks(_random_sizes(cell, samples - 1, rng), d, rng)])
    return masks, kernel.of_sizes(d)[masks.sum(axis=1)]
