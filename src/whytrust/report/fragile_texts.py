"""Texts of a fragility run to look at: which ones, what was swapped in them, and what the explainer said level by level."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, zip_longest
from typing import Any

import numpy as np

from whytrust.core import Floats
from whytrust.report.words import known
from whytrust.store import Store

RANDOM = "random"
"""The path whose swaps were drawn by chance."""
MOST = 12
"""Texts on a page."""
REASONS = ("moved furthest", "typical", "moved least")
Level = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Trail:
    """One path through a text, level by level a word more swapped, and what the explainer said of the words at each level."""

    name: str  # the objective by which swaps were chosen, or "random"
    levels: tuple[Level, ...]
    scores: Floats  # (levels, words)


@dataclass(frozen=True, eq=False)
class FooledText:
    """One text of a run: its record, the scores of its words, and why it is shown."""

    record: Mapping[str, Any]
    original: Floats  # (words,), of the text as it was
    trails: tuple[Trail, ...]  # one an objective that swapped something
    control: Trail | None = None  # one draw of random swaps
    why: str = ""

    @property
    def name(self) -> str:
        """What the text is called."""
        return str(self.record.get("name") or f"text {self.record.get('case', '')}".strip())

    @cached_property
    def words(self) -> Sequence[str]:
        """Its words, as they were."""
        return [str(word) for word in self.record["words"]]

    @cached_property
    def gaps(self) -> list[str]:
        """What stands before each word and behind the last: one more than there are words."""
        text, spans = str(self.record["text"]), self.record["spans"]
        edges = [0, *(int(edge) for span in spans for edge in span), len(text)]
        return [text[start:end] for start, end in zip(edges[::2], edges[1::2], strict=True)]

    def swaps(self, trail: Trail, level: int) -> dict[int, tuple[str, str]]:
        """{place: (word before, word now)} at a level; -1 is the text as it was.

        Mostly these are the swaps of the levels so far; but a path of the authors' variant goes on from words that another
        objective chose, and there the text itself tells.
        """
        if level < 0:
            return {}
        added = {int(one["place"]): str(one["after"]) for one in trail.levels[:level + 1]}
        now, text = [added.get(i, word) for i, word in enumerate(self.words)], str(trail.levels[level]["text"])
        if joined(self.gaps, now) != text:
            now = reread(text, self.gaps, self.words) or now
        return {i: (before, after) for i, (before, after) in enumerate(zip(self.words, now, strict=True)) if before != after}

    def by_chance(self, m: int, what: str = "rank") -> float | None:
        """What random swaps of as many words leave, the mean over draws; None where none got so far."""
        levels = [level for path in self.record["paths"].get(RANDOM, []) for level in path if level["m"] == m]
        there = [value for level in levels if (value := known(level.get(what))) is not None]
        return sum(there) / len(there) if there else None


def joined(gaps: Sequence[str], words: Sequence[str]) -> str:
    """A text from its words and what stands around them."""
    return "".join(chain.from_iterable(zip_longest(gaps, words, fillvalue="")))


def reread(text: str, gaps: Sequence[str], words: Sequence[str]) -> list[str] | None:
    """The words of a swapped text, which may be others, while what stands between them is the same; None where it is not."""
    found, place = [], len(gaps[0])
    for i, word in enumerate(words):
        behind = gaps[i + 1] or words[i + 1] if i + 1 < len(words) else ""  # words of some scripts have nothing between them
        if i + 1 == len(words):
            end = len(text) - len(gaps[-1])
        elif text.startswith(word + behind, place):
            end = place + len(word)
        else:
            end = text.find(behind, place + 1)
        if end <= place:
            return None
        found.append(text[place:end])
        place = end + len(gaps[i + 1])
    return found if joined(gaps, found) == text else None


def fooled(record: Mapping[str, Any], arrays: Mapping[str, Any], why: str = "") -> FooledText:
    """A stored record and its arrays; refused where they do not belong together."""
    n, case, remedy = len(record["words"]), record.get("case"), "show records with their own arrays"
    said = np.asarray(arrays.get("original", ()), dtype=np.float64)
    if len(record["spans"]) != n or said.shape != (n,):
        raise ValueError(f"a text must have a span and a score a word: case {case!r} has {n} words, {len(record['spans'])} "
                         f"spans and scores of shape {said.shape}; {remedy}")
    trails = []
    for name, paths in record["paths"].items():
        levels = next((tuple(path) for path in paths if path), ())
        scores = np.asarray(arrays.get(name, ()), dtype=np.float64)
        if levels and scores.shape != (len(levels), n):
            raise ValueError(f"each level must have a score a word: path {name!r} of case {case!r} has {len(levels)} levels "
                             f"of {n} words and scores of shape {scores.shape}; {remedy}")
        trails += [Trail(str(name), levels, scores)] if levels else []
    control = next((trail for trail in trails if trail.name == RANDOM), None)
    return FooledText(record, said, tuple(trail for trail in trails if trail.name != RANDOM), control, why)


def shown(store: Store, limit: int = MOST) -> list[FooledText]:
    """Texts to look at: a third whose explanation moved furthest, a third typical ones, a third that moved least.

    How far it moved is judged at the last level of the first objective. Only the typical ones say what is usual.
    """
    if limit < 0:
        raise ValueError(f"limit must be 0 or more texts, got {limit}")
    left = {str(record["case"]): rank for record in store.records() if (rank := _left(record)) is not None}
    order = sorted(left, key=lambda case: (left[case], case))
    reasons = {order[i]: _reason(reason, i, len(order)) for reason, i in chosen(len(order), limit)}
    found = {str(record["case"]): record for record in store.records() if record["case"] in reasons}
    return [fooled(found[case], store.arrays(case), why) for case, why in reasons.items()]


def chosen(n: int, limit: int) -> list[tuple[str, int]]:
    """(why, place) of so many of n things in order: from the beginning, from the middle and from the end, none twice."""
    limit = min(n, limit)
    first, middle, last = ((limit + 2 - i) // 3 for i in range(3))
    start = min(max((n - middle) // 2, first), n - last - middle)
    places = (range(first), range(start, start + middle), range(n - last, n))
    return [(reason, i) for reason, some in zip(REASONS, places, strict=True) for i in some]


def _reason(reason: str, place: int, of: int) -> str:
    return f"{reason}: number {place + 1} of {of:,}, counted from the furthest moved"


def _left(record: Mapping[str, Any]) -> float | None:
    """What the last level of the first objective has left of the explanation; None where there is no level."""
    if record["status"] != "ok":
        return None
    paths = [path for _, paths in sorted(record["paths"].items(), key=lambda one: one[0] == RANDOM) for path in paths]
    return next((known(levels[-1].get("rank")) for levels in paths if levels), None)


# --- what of a long text or a long path is shown ----------------------------------------------------------------------


def spread(n: int, most: int) -> list[int]:
    """So many of n places at the most, evenly, the first and the last among them."""
    if n <= most:
        return list(range(n))
    return sorted({round(i * (n - 1) / max(most - 1, 1)) for i in range(most)})


def milestones(levels: Sequence[Level], most: int) -> list[int]:
    """The levels at which each tenth of the words begins, and the last: all where there are few."""
    if len(levels) <= most:
        return list(range(len(levels)))
    tenths = [math.ceil(10 * float(level["ratio"]) - 1e-9) for level in levels]
    begins = [i for i, tenth in enumerate(tenths) if i == 0 or tenth != tenths[i - 1]]
    places = sorted({*begins, len(levels) - 1})
    return [places[i] for i in spread(len(places), most)]


def excerpt(n: int, wanted: Iterable[int], most: int, around: int) -> list[int]:
    """The places of a text of n words to show: all of a short one; of a long one those wanted first, with their neighbours."""
    if n <= most:
        return list(range(n))
    places: set[int] = set()
    for place in wanted:
        near = {i for i in range(place - around, place + around + 1) if 0 <= i < n}
        if len(places | near) <= most:
            places |= near
    # A hole of a few words takes as much room to tell as to fill.
    found = sorted(places)
    for before, after in pairwise(found):
        if after - before <= 4:
            places.update(range(before, after))
    return sorted(places)
