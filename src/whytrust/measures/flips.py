"""The label-flip trial: does the part of the perturbation that an explainer points at change the label?"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Masks
from whytrust.explanation import Explanation
from whytrust.measures.case import Answers, Blind, Case, Explain, Order, first, no_controls, ranked, streams
from whytrust.stats import area

EXHAUSTIVE = 10
"""Of at most so many parts every set is asked: then random's expectation and the oracle are exact."""
EVERY_K = 32
"""Of more parts than this not every k is asked."""
PERCENT = tuple(range(20, 101, 10))
BASELINES = ("oracle", "magnitude", "magnitude_mean", "blind", "random")
JUDGES = ("any", "target")
"""A flip is any label but the clean one (as in the papers), or the label that the whole perturbation led to."""


@dataclass(frozen=True)
class Flips:
    """Do the k best parts of an adversary, laid over the clean input, flip the label?

    1 is a flip; the mean over inputs is the label-flip rate (Hoedt et al. 2022). A k that covers every changed part flips
    trivially: read the curve over k, never one point, and beside what stands around it. `random` is the expectation over all
    sets of k parts (exact for up to 10 parts, else the mean over `draws` random orders), `magnitude` takes parts by their
    squared change (summed; `magnitude_mean` a pixel), and `oracle` says whether any set of at most k parts is known to flip:
    all sets for up to 10 parts, else those that a greedy search or anybody else has asked about.

    With `positive`, all parts with a positive score are laid over the input together, against as many by magnitude.

    `blind` gives rankings that know nothing of the cause (see studies.blind); the flips of one with several rows are averaged.
    """

    draws: int = 10
    positive: bool = True

    def __post_init__(self) -> None:
        """Refuse what is no number of draws, before any model call."""
        if isinstance(self.draws, bool) or not isinstance(self.draws, int) or self.draws < 2:
            raise ValueError(f"draws must be a whole number >= 2, got {self.draws!r}")

    def __call__(self, case: Case, explain: Explain, rng: np.random.Generator, blind: Blind = no_controls) -> dict[str, Any]:
        """The flips of every explainer, baseline and blind control, for every k: plain data."""
        answers, of = explain(case.question), streams(rng)
        found = {name: answer for name, answer in answers.items() if isinstance(answer, Explanation)}
        orders = {name: ranked(e.scores, of(name)) for name, e in found.items()}
        orders |= {name: ranked(change, of(f"{name} of the change")) for name, change in
                   (("magnitude", case.change), ("magnitude_mean", case.mean_change))}
        ks = settled_ks(case.d)
        everything = case.d <= EXHAUSTIVE
        drawn = [of(f"random {i}").permutation(case.d) for i in range(self.draws)]
        curves = {name: nested(order, ks) for name, order in orders.items()}
        guesses = blind_orders(blind(case.parts), of)
        guessed = {name: np.vstack([nested(order, ks) for order in some]) for name, some in guesses.items()}
        sets = {name: e.scores > 0 for name, e in found.items() if self.positive and e.sense == "signed"}
        as_many = {name: first(orders["magnitude"], int(chosen.sum())) for name, chosen in sets.items()}
        around = all_masks(case.d) if everything else np.vstack([nested(order, ks) for order in drawn])
        every = [*curves.values(), *guessed.values(), *(chosen[None] for chosen in (*sets.values(), *as_many.values())), around]
        case.outputs(np.vstack(every))  # one batch, each set once
        distinct = case.laid.memory.calls
        for judge in () if everything else JUDGES:
            greedy(case, judge, orders["magnitude"])
        best = {judge: smallest(case, judge) for judge in JUDGES}
        orders["oracle"] = ranked_by_set(case, best["any"])
        flip = {judge: {name: bits(flipped(case, masks, judge)) for name, masks in curves.items()} for judge in JUDGES}
        for judge in JUDGES:
            flip[judge]["oracle"] = bits(np.array(ks) >= best[judge].sum())
        expected = {judge: _expected(case, ks, around, judge, everything, self.draws) for judge in JUDGES}
        return {"k": ks, "flip": flip, "random": expected,
                "blind": {judge: {name: _mean_curve(flipped(case, masks, judge), len(ks)) for name, masks in guessed.items()}
                          for judge in JUDGES},
                "random_variance": {judge: _variance(case, drawn, ks, judge) for judge in JUDGES},
                "order": {n: o.tolist() for n, o in orders.items()},
                "scores": {n: e.scores.tolist() for n, e in found.items()}, "magnitude": case.change.tolist(),
                "magnitude_mean": case.mean_change.tolist(), "positive": _positive(case, sets, as_many, expected, ks),
                "fidelity": fidelities(answers), "failed": failures(answers),
                "asked": int(sum(map(len, (*curves.values(), *guessed.values()))) + 2 * len(sets) + len(around)),
                "distinct": distinct,
                "searched": case.laid.memory.calls - distinct}


def blind_orders(blind: Mapping[str, Sequence[Floats]],
                 of: Callable[[str], np.random.Generator]) -> dict[str, list[Order]]:
    """The order of the parts by each row of scores of each blind control."""
    return {name: [ranked(np.asarray(scores), of(f"blind {name} {i}")) for i, scores in enumerate(rows)]
            for name, rows in blind.items()}


def _mean_curve(flips: NDArray[np.bool_], ks: int) -> list[float]:
    """The share of several orders that flip the label, for each k."""
    return [float(v) for v in flips.reshape(-1, ks).mean(axis=0)]


def settled_ks(d: int) -> list[int]:
    """Every k; of very many parts a few small ones and 20 … 100 %."""
    if d <= EVERY_K:
        return list(range(1, d + 1))
    return sorted({1, 2, 3, 4, 5, 7, 10, *(share(d, p) for p in PERCENT)})


def share(d: int, percent: int) -> int:
    """How many parts so many per cent are, at least one."""
    return max(d * percent // 100, 1)


def nested(order: Order, ks: list[int]) -> Masks:
    """(len(ks), d): the first k parts of an order, for each k."""
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return np.asarray(rank[None] < np.array(ks)[:, None])


def all_masks(d: int) -> Masks:
    """Every set of parts but the empty one."""
    return np.asarray((np.arange(1, 2**d)[:, None] >> np.arange(d)) & 1, dtype=bool)


def flipped(case: Case, masks: Masks, judge: str) -> NDArray[np.bool_]:
    """Whether each set of parts changes the label, as this judge sees it."""
    labels = case.labels(masks)
    return np.asarray(labels != case.clean_label if judge == "any" else labels == case.label)


def bits(flips: NDArray[np.bool_]) -> str:
    """Flips as a short text, one character each."""
    return "".join("1" if flip else "0" for flip in flips)


def greedy(case: Case, judge: str, preferred: Order) -> Masks:
    """A small set of parts that flips the label: part by part the one that brings it nearest, of equals the preferred."""
    chosen = np.zeros(case.d, dtype=bool)
    left = preferred.copy()
    while len(left):
        masks = np.repeat(chosen[None], len(left), axis=0)
        masks[np.arange(len(left)), left] = True
        best = int(np.argmax(case.lead(masks, None if judge == "any" else case.label)))
        chosen, left = masks[best], np.delete(left, best)
        if flipped(case, chosen[None], judge)[0]:
            break
    return chosen


def smallest(case: Case, judge: str) -> Masks:
    """The smallest set of parts that is known to flip the label; all parts where none is."""
    masks = known_masks(case)
    hits = masks[flipped(case, masks, judge)]
    return np.asarray(hits[int(np.argmin(hits.sum(axis=1)))] if len(hits) else np.ones(case.d, dtype=bool))


def ranked_by_set(case: Case, chosen: Masks) -> Order:
    """The parts of a set, then the others; each by how much they were changed."""
    return np.lexsort((-case.change, ~chosen))


def known_masks(case: Case) -> Masks:
    """Every set of parts that was asked about, in the order it was first asked."""
    packed = np.frombuffer(b"".join(case.laid.memory.known), dtype=np.uint8).reshape(-1, -(-case.d // 8))
    return np.unpackbits(packed, axis=1)[:, :case.d].astype(bool)


def _expected(case: Case, ks: list[int], around: Masks, judge: str, everything: bool, draws: int) -> list[float]:
    """The chance that k parts drawn at random flip the label, for each k."""
    hits = flipped(case, around, judge)
    if not everything:
        return [float(v) for v in hits.reshape(draws, len(ks)).mean(axis=0)]
    sizes = around.sum(axis=1)
    totals = np.bincount(sizes, weights=hits, minlength=case.d + 1)
    return [float(totals[k] / math.comb(case.d, k)) for k in ks]


def _variance(case: Case, drawn: list[Order], ks: list[int], judge: str) -> float:
    """How much the area under a random order's curve varies from draw to draw."""
    areas = [area(flipped(case, nested(order, ks), judge).astype(np.float64), ks, case.d) for order in drawn]
    return float(np.var(areas, ddof=1))


def _positive(case: Case, sets: Mapping[str, Masks], as_many: Mapping[str, Masks], expected: Mapping[str, list[float]],
              ks: list[int]) -> dict[str, dict[str, Any]]:
    """All parts with a positive score, against as many by magnitude and at random."""
    found: dict[str, dict[str, Any]] = {}
    for name, chosen in sets.items():
        k = int(chosen.sum())
        found[name] = {"k": k}
        for judge in JUDGES:
            own, theirs = (bool(k) and bool(flipped(case, some[None], judge)[0]) for some in (chosen, as_many[name]))
            chance = float(np.interp(k, [0, *ks], [0.0, *expected[judge]]))
            found[name][judge] = {"flip": int(own), "magnitude": int(theirs), "random": chance}
    return found


def fidelities(answers: Answers) -> dict[str, dict[str, float | None]]:
    """How well each local model, where an explainer has one, follows the model."""
    return {name: {"fidelity": e.fidelity, "fresh": e.fidelity_fresh} for name, e in answers.items()
            if isinstance(e, Explanation) and e.fidelity is not None}


def failures(answers: Answers) -> dict[str, str]:
    """Explainers that could not answer, and why."""
    return {name: f"{type(e).__name__}: {e}" for name, e in answers.items() if isinstance(e, Exception)}
