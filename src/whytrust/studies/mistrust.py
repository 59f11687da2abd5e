"""Should this prediction be trusted? What readers of explanations say, beside what is true (Ribeiro et al. 2016, § 5.3).

A quarter of all features is declared untrustworthy. A prediction is truly trustworthy when the model still makes it without
them; a reader sees only the explanation. Both answers are given for many draws of the untrustworthy features at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import stats
from whytrust.core import Floats, generator
from whytrust.question import Question
from whytrust.readers import Marked, Reading, f1

EVERYTHING = "trust everything"
REPEATS = 25
"""How often hidden parts are drawn anew where they are drawn at random; the mean decides."""
PIECE = 4096
LEAST = 0.25
"""The least error that is believed, in cases: with fewer than forty cases, or all alike, their spread says too little."""
Flags = NDArray[np.bool_]


def untrusted(features: int, rounds: int, share: float, seed: int) -> Marked:
    """(rounds, features): in each round, this share of the features, drawn at random."""
    count = max(round(share * features), 1)
    marked = np.zeros((rounds, features), dtype=bool)
    for number in range(rounds):
        marked[number, generator(seed, "untrusted", number).permutation(features)[:count]] = True
    return marked


def refuse_numbers(scores: Floats) -> None:
    """A model with one output is not asked."""
    if len(scores) < 2:
        raise TypeError("trust in a prediction is about decisions, and a model with one output decides nothing; for a model of "
                        "two classes pass threshold=0.5 to wt.model")


def truly_trusted(question: Question, features: NDArray[np.intp], marked: Marked, rng: np.random.Generator) -> Flags:
    """For each row of `marked`: does the model decide as it does when the parts of these features are hidden?"""
    classes = len(question.original)
    refuse_numbers(question.original)
    label = int(question.model.labels(question.original[None])[0])
    masks, row = np.unique(~marked[:, features], axis=0, return_inverse=True)
    scores = _scores(question, masks, classes, rng)
    return np.asarray(question.model.labels(scores) == label)[row.ravel()]


def _scores(question: Question, masks: NDArray[np.bool_], classes: int, rng: np.random.Generator) -> Floats:
    """Of every class; where hidden parts are drawn at random, the mean over several draws."""
    every = question.watching(range(classes))
    if question.parts.deterministic:
        return every[0].outputs(masks)
    found = np.empty((len(masks), classes))
    for start in range(0, len(masks), max(PIECE // REPEATS, 1)):
        some = np.repeat(masks[start:start + max(PIECE // REPEATS, 1)], REPEATS, axis=0)
        state = rng.bit_generator.state
        for one in every:  # the same draws for each class, which the question remembers
            rng.bit_generator.state = state
            found[start:start + len(some) // REPEATS, one.target] = one.score(some, rng).reshape(-1, REPEATS).mean(axis=1)
    return found


def judged(readings: Mapping[str, Reading], truly: Flags, marked: Marked) -> dict[str, Any]:
    """What a record keeps of one prediction: who trusted it in which round."""
    return {"truly": packed(truly), "trusts": {name: packed(one.trusts(marked)) for name, one in readings.items()}}


def packed(flags: Flags) -> str:
    """Yes and no as hexadecimal digits."""
    return np.packbits(flags).tobytes().hex()


def unpacked(digits: str, count: int) -> Flags:
    """The flags that `packed` wrote."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8))[:count].astype(bool)


# --- what comes out -----------------------------------------------------------------------------------------------------


def tables(records: Sequence[Mapping[str, Any]], rounds: int) -> tuple[Flags, dict[str, Flags]]:
    """(rounds, predictions): what is true, and what the reader of each explainer said, with one who trusts everything."""
    if type(rounds) is not int or rounds < 1:
        raise ValueError(f"a run of readers must have at least one round, got {rounds!r:.40}; it was changed since it was made")
    truly = np.array([unpacked(r["truly"], rounds) for r in records]).T
    names = list(records[0]["trusts"])
    said = {name: np.array([unpacked(r["trusts"][name], rounds) for r in records]).T for name in names}
    return truly, {**said, EVERYTHING: np.ones_like(truly)}


def scored(truly: Flags, said: Flags, sources: Sequence[Hashable] | None = None) -> tuple[float, Floats]:
    """F1 of "trustworthy", the mean over rounds; and the same without each source in turn (without each prediction)."""
    return float(f1(said, truly).mean()), without_each(truly, said, sources)


def without_each(truly: Flags, said: Flags, sources: Sequence[Hashable] | None = None) -> Floats:
    """(sources,): the mean F1 over rounds when the predictions of one source are left out."""
    hits, every = (said & truly).astype(np.int64), said.astype(np.int64) + truly
    if sources is not None:
        place = {source: i for i, source in enumerate(dict.fromkeys(sources))}
        of = np.array([place[source] for source in sources])
        order = np.argsort(of, kind="stable")
        starts = np.searchsorted(of[order], np.arange(len(place)))
        own_hits, own_every = (np.add.reduceat(one[:, order], starts, axis=1) for one in (hits, every))
    else:
        own_hits, own_every = hits, every
    both = 2.0 * (hits.sum(axis=1, keepdims=True) - own_hits)
    all_ = every.sum(axis=1, keepdims=True) - own_every
    return np.asarray(np.divide(both, all_, out=np.ones(both.shape), where=all_ > 0).mean(axis=0))


def summary(records: Sequence[Mapping[str, Any]], rounds: int, rivals: Sequence[str] = (),
            sources: Sequence[Hashable] | None = None) -> dict[str, Any]:
    """F1, precision and recall of each explainer's reader; and by how much each is above trusting everything, and its rivals.

    Intervals leave out one prediction at a time, or all of one source (the same input twice is one source): they say what other
    inputs would give, not other rounds. p-values of all comparisons share their 5 % (Holm).
    """
    truly, said = tables(records, rounds)
    values = {name: scored(truly, one, sources) for name, one in said.items()}
    rows = {name: {**_within(stats.jackknife(*values[name], LEAST)), "precision": _ratio(one & truly, one),
                   "recall": _ratio(one & truly, truly), "trusted": float(one.mean())} for name, one in said.items()}
    pairs = {}
    for name in said:
        for rival in (EVERYTHING, *rivals):
            if name not in (rival, EVERYTHING) and rival in said:
                pairs[name, rival] = stats.jackknife(values[name][0] - values[rival][0], values[name][1] - values[rival][1],
                                                     LEAST)
    adjusted = stats.holm([one.p for one in pairs.values()])
    tests = [{"name": name, "rival": rival, **asdict(one), "p": float(p), "low": max(one.low, -1.0), "high": min(one.high, 1.0)}
             for ((name, rival), one), p in zip(pairs.items(), adjusted, strict=True)]
    return {"n": truly.shape[1], "rounds": rounds, "trustworthy": float(truly.mean()), "rows": rows, "tests": tests}


def _within(one: stats.Estimate) -> dict[str, Any]:
    """An F1 lies between 0 and 1, and so does what it may be."""
    return {**asdict(one), "low": max(one.low, 0.0), "high": min(one.high, 1.0)}


def _ratio(hits: Flags, of: Flags) -> float:
    return float(hits.sum() / of.sum()) if of.any() else float("nan")
