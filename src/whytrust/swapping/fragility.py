"""How fragile is what an explainer says of one text? The attack, and all that it must be held against.

A drop of agreement means something only beside three others: that of random swaps of as many words (chance), that of the
explainer asked twice about the same text (its own noise), and that of the model's own answers (which may really be others).
Candidates are chosen under one draw of masks and judged under another, so that nobody is rewarded for noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import Floats, generator
from whytrust.explainers import NAMES
from whytrust.language.quality import Quality
from whytrust.language.written import Candidates
from whytrust.measures.agreement import distance, location_of_mass, mass_shift, rank_correlation, top_overlap
from whytrust.swapping.asking import OnCalls, drops, read_by
from whytrust.swapping.constraints import Constraint
from whytrust.swapping.racing import Racing
from whytrust.swapping.search import RANDOM, Level, Search
from whytrust.swapping.victims import Attribution, Victim

FRESH = "fresh"
"""The draw of masks under which texts are judged, other than that under which they were chosen."""
SAME = 1e-9
"""Scores that differ by less from draw to draw are not drawn at all."""
NOTHING = "nothing to swap"
POOLED = 5
"""Candidates a level whose fluency stands for that of all."""


@dataclass(frozen=True, eq=False)
class Fragility:
    """One text after another: attacked, and judged beside random swaps, the explainer's noise and the model's own answers."""

    model: CheckedModel
    victim: Victim
    candidates: Candidates
    constraints: tuple[Constraint, ...]
    objectives: tuple[str, ...] = ("lom",)
    max_ratio: float = 0.5
    controls: int = 3
    racing: Racing | None = None
    variant: str = "paper"
    quality: Quality | None = None
    seed: int = 0
    batch_size: int | None = None

    def __call__(self, case: str, text: str, on_calls: OnCalls | None = None,
                 truth: int | None = None) -> tuple[dict[str, Any], dict[str, Floats]]:
        """(record, arrays): everything that was found of one text; `truth` is the label that the authors' variant keeps."""
        read = read_by(self.model, text)
        search = Search(self.model, read, self.victim, self.candidates, self.constraints, self.max_ratio, self.racing,
                        self.seed, case, on_calls, truth if self.variant == "authors" else None, self.batch_size)
        columns = len(search.scores)
        predicted = search.ask.label(search.scores)
        record: dict[str, Any] = {
            "case": case, "status": "ok", "text": read.text, "words": list(read.words), "spans": [list(s) for s in read.spans],
            "label": search.target, "label_name": self.model.class_name(search.target, columns),
            "score": float(search.scores[search.target]), "left_out": len(text) - len(read.text)}
        if predicted != search.target:
            return {**record, "status": "wrong", "error": "the model does not give it its true label"}, {}
        judge = _Judge.of(search)
        record |= {"order": search.order.tolist(), "noise": judge.noise(), "deterministic": judge.steady,
                   "outside": judge.outside(search.said)}
        record["paths"] = {}
        arrays: dict[str, Floats] = {"original": search.said.words}
        paths = self._authors(search, judge) if self.variant == "authors" else self._paper(search, judge)
        for name, found in paths:
            levels, said = [level for level, _ in found], [scores for _, scores in found]
            record["paths"].setdefault(name, []).append(levels)
            if said and name not in arrays:
                arrays[name] = np.array(said)
        if not any(levels for name in self.objectives for levels in record["paths"].get(name, [])):
            swappable = any(levels for levels in record["paths"].get(RANDOM, []))
            record |= {"status": NOTHING, "error": "words could be swapped, but of no candidate could be said how far it moves "
                       "the explanation, whose scores cancel out or are all 0" if swappable else
                       "no word could be swapped with the label and every constraint kept"}
        self._judge_texts(record)
        return {**record, "calls": search.ask.calls}, arrays

    def _paper(self, search: Search, judge: _Judge) -> Iterator[tuple[str, list[tuple[dict[str, Any], Floats]]]]:
        """Each objective its own path, and some by chance."""
        for name in self.objectives:
            if name == RANDOM:
                continue  # it is there in any case
            yield name, [judge.level(level, m) for m, level in enumerate(search.attack(name), 1)]
        for draw in range(max(self.controls, int(RANDOM in self.objectives))):
            yield RANDOM, [judge.level(level, m) for m, level in enumerate(search.control(draw), 1)]

    def _authors(self, search: Search, judge: _Judge) -> Iterator[tuple[str, list[tuple[dict[str, Any], Floats]]]]:
        """One path, from whose candidates every objective picks."""
        if not isinstance(self.model, DifferentiableModel):
            raise TypeError(f"variant 'authors' follows integrated gradients, and {self.model.name} has no gradients; use the "
                            "paper's variant")
        own = getattr(getattr(self.victim.explainer, "method", None), "steps", None)
        leader = Victim(NAMES["integrated_gradients"].make(**({} if own is None else {"steps": own})), unit_length=True)
        found: dict[str, list[tuple[dict[str, Any], Floats]]] = {name: [] for name in (*self.objectives, RANDOM)}
        for m, levels in enumerate(search.authors(self.objectives, leader), 1):
            for name, level in levels.items():
                found[name].append(judge.level(level, m))
        yield from found.items()

    def _judge_texts(self, record: dict[str, Any]) -> None:
        """How good the texts are as texts; of each level's candidates a few stand for all."""
        rng = generator(self.seed, record["case"], "quality")
        for name, paths in record["paths"].items():
            for levels in paths:
                pools = [level.pop("pool") for level in levels]
                if self.quality is None:
                    continue
                own = self.quality.judge(record["text"], [level["text"] for level in levels])
                for level, found, pool in zip(levels, own, pools, strict=True):
                    level["quality"] = found
                    if name != RANDOM:
                        some = [pool[i] for i in sorted(rng.permutation(len(pool))[:POOLED].tolist())]
                        level["pool_quality"] = self.quality.judge(record["text"], some)
        if self.quality is not None:
            record["quality"] = self.quality.judge(record["text"], [record["text"]])[0]


@dataclass(frozen=True, eq=False)
class _Judge:
    """What is known of the text itself, against which swapped ones are held."""

    search: Search
    again: Attribution  # the text explained anew, under the other draw
    drops: Floats  # how far the score falls without each word
    steady: bool  # does the explainer say the same whatever is drawn?

    @classmethod
    def of(cls, search: Search) -> _Judge:
        """The text explained under both draws, and the model asked without each word."""
        again, said = search.explained(search.question, FRESH), search.said.words
        steady = np.allclose(again.words, said, rtol=0, atol=SAME * float(np.abs(said).max(initial=0.0)))
        return cls(search, again, drops(search.question), bool(steady))

    def noise(self) -> dict[str, float]:
        """How far the explainer agrees with itself about the same text."""
        return compared(self.search.said, self.search.said if self.steady else self.again)

    def level(self, level: Level, m: int) -> tuple[dict[str, Any], Floats]:
        """(what is found of one level, what the explainer says of its words)."""
        search, one = self.search, level.chosen
        fresh = search.explained(one.question) if self.steady else search.explained(one.question, FRESH)
        said = fresh if one.said is None else one.said
        own = np.zeros(len(self.drops))
        found = drops(one.question)
        own[:len(found)] = found[:len(own)]
        return {"m": m, "ratio": m / len(search.text), "place": one.swap.place, "before": one.swap.before,
                "after": one.swap.after, "text": one.text.text, "score": float(one.scores[search.target]),
                "proposed": level.proposed, "keeping": level.keeping, "moved": level.moved, "pool": level.pool,
                "outside": self.outside(said), "seen": None if one.said is None else compared(search.said, said),
                **compared(search.said, fresh), "model": rank_correlation(self.drops, own)}, fresh.words

    @staticmethod
    def outside(said: Attribution) -> bool:
        """Does the centre of mass lie nowhere, or outside of the text?"""
        return not 0 <= location_of_mass(said.places) <= len(said.places) - 1


def compared(before: Attribution, after: Attribution) -> dict[str, float]:
    """How far two explanations agree, by every measure."""
    return {"rank": rank_correlation(before.words, after.words), "top": top_overlap(before.words, after.words),
            "lom": mass_shift(before.places, after.places), "l2": distance(before.words, after.words)}
