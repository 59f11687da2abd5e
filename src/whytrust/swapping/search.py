"""The attack on explanations (Sinha et al. 2021, Algorithm 1): swap words one by one, keep the label, move the explanation.

Words come in the order in which the model would miss them; at each the candidate that moves the victim's explanation
furthest is kept. Candidates differ from the text before them in one word, so that every mask that hides this word has been
answered already: about half of what each explanation would ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel
from whytrust.core import Floats, Masks, generator
from whytrust.language.written import Candidates, Written
from whytrust.measures.agreement import distance, mass_shift, moment
from whytrust.question import Question
from whytrust.swapping.asking import Asking, OnCalls, Swap, importance, most_swaps, read_by
from whytrust.swapping.constraints import AT_ONCE, Constraint, allowed, looked_up, proposed
from whytrust.swapping.racing import Racing
from whytrust.swapping.sharing import Noted, together
from whytrust.swapping.victims import Attribution, Victim

Objective = Callable[[Attribution, Attribution], float]
OBJECTIVES: dict[str, Objective] = {
    "lom": lambda before, after: mass_shift(before.places, after.places),
    "l2": lambda before, after: distance(before.words, after.words)}
"""How far a candidate moves the explanation; NaN where that cannot be said, and the candidate is passed over."""
AUTHORS: dict[str, Objective] = {
    **OBJECTIVES, "lom": lambda before, after: abs(moment(before.places) - moment(after.places))}
"""The same as the authors' code has it."""
RANDOM = "random"
"""The control: the same candidates and constraints, one of them by chance."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A text with one word more swapped, that keeps the label; with its question, and what was explained of it."""

    text: Written
    swap: Swap
    scores: Floats
    question: Question = field(repr=False)
    said: Attribution | None = None


@dataclass(frozen=True, eq=False)
class Level:
    """A text with m words swapped: the best of those that kept the label."""

    chosen: Candidate
    proposed: int | None = None  # candidates that the constraints allowed; the control does not look at all of them
    keeping: int | None = None  # of these, so many keep the label
    moved: float | None = None  # by the objective; the control has none
    pool: tuple[str, ...] = ()  # all that kept the label, as texts


@dataclass(frozen=True, eq=False)
class Search:
    """An attack on what one victim says of one text.

    Whatever is drawn for explanations is drawn the same for all candidates, so that they are compared under the same masks.
    `racing` gives up candidates early that are clearly behind.
    """

    model: CheckedModel
    text: Written
    victim: Victim
    candidates: Candidates
    constraints: tuple[Constraint, ...]
    max_ratio: float = 0.5
    racing: Racing | None = None
    seed: int = 0
    case: str = ""
    on_calls: OnCalls | None = None
    label: int | None = None  # that must be kept; None is what the model says
    batch_size: int | None = None
    ask: Asking = field(init=False, repr=False)
    pools: dict[int, tuple[int, list[Candidate]]] = field(default_factory=dict, init=False, repr=False)  # of the text itself

    def __post_init__(self) -> None:
        """One counter of calls for the whole search."""
        object.__setattr__(self, "ask", Asking(self.model, self.on_calls, self.batch_size))

    @classmethod
    def of(cls, model: CheckedModel, text: str, *rest: object, **more: object) -> Search:
        """A search on a text as far as the model reads it."""
        return cls(model, read_by(model, text), *rest, **more)  # type: ignore[arg-type]

    # --- the text itself ----------------------------------------------------------------------------------------------

    @cached_property
    def scores(self) -> Floats:
        """What the model says of the text."""
        return np.asarray(self.ask([self.text.text])[0])

    @cached_property
    def target(self) -> int:
        """The class that is explained and must stay."""
        return self.ask.label(self.scores) if self.label is None else self.label

    @cached_property
    def question(self) -> Question:
        """Why does the model decide so?"""
        return self.ask.question(self.text, self.target, self.scores)

    @cached_property
    def said(self) -> Attribution:
        """What the victim says of the text itself."""
        return self._noted[0]

    @cached_property
    def _noted(self) -> tuple[Attribution, Masks]:
        """(what the victim says of the text itself, the masks that it asks): it will ask the same of every candidate."""
        noted = Noted.of(self.question)
        return self.explained(noted), noted.asked

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """In which order words are tried."""
        return importance(self.question)

    def explained(self, question: Question, draw: str = "search") -> Attribution:
        """What the victim says, drawn as all are in the search, or anew."""
        return self.victim(question, generator(self.seed, self.case, draw), len(self.text))

    # --- paths ----------------------------------------------------------------------------------------------------------

    def attack(self, objective: str) -> Iterator[Level]:
        """Level by level, the texts that move the explanation furthest."""
        _ = self.said
        yield from self._path(lambda current, question, place: self._best(current, question, place, OBJECTIVES[objective]))

    def control(self, draw: int) -> Iterator[Level]:
        """Level by level, one of the candidates by chance; the victim is not asked."""
        rng = generator(self.seed, self.case, RANDOM, draw)
        yield from self._path(lambda current, question, place: self._by_chance(current, question, place, rng))

    def _path(self, choose: Callable[[Written, Question, int], Level | None]) -> Iterator[Level]:
        current, question, levels = self.text, self.question, 0
        for place in self.order.tolist():
            if levels >= most_swaps(self.text, self.max_ratio):
                return
            level = choose(current, question, place)
            if level is not None:
                levels += 1
                yield level
                current, question = level.chosen.text, level.chosen.question

    def _best(self, current: Written, question: Question, place: int, objective: Objective) -> Level | None:
        """The candidate for a place that moves the explanation furthest."""
        asked, pool = self.pool(current, question, place)
        found = self.furthest(pool, question, objective) if pool else None
        return None if found is None else Level(found[0], asked, len(pool), found[1], tuple(one.text.text for one in pool))

    def _by_chance(self, current: Written, question: Question, place: int, rng: np.random.Generator) -> Level | None:
        """One of the candidates for a place, each as likely; words are drawn until one passes, so that few are looked at."""
        words = looked_up(self.candidates, self.constraints, self.text, current, place)
        shuffled = [words[i] for i in rng.permutation(len(words))]
        for start in range(0, len(shuffled), AT_ONCE):
            some = allowed(self.constraints, self.text, current, place, shuffled[start:start + AT_ONCE])
            pool = self._keeping(current, question, place, some)
            if pool:
                return Level(pool[0])
        return None

    def pool(self, current: Written, question: Question, place: int) -> tuple[int, list[Candidate]]:
        """(how many words the constraints allow at a place, the candidates that keep the label).

        Every path begins at the text itself: what was asked of its candidates is kept for the next path.
        """
        if current is self.text and place in self.pools:
            return self.pools[place]
        words = proposed(self.candidates, self.constraints, self.text, current, place)
        found = len(words), self._keeping(current, question, place, words)
        if current is self.text:
            self.pools[place] = found
        return found

    def _keeping(self, current: Written, question: Question, place: int, words: Sequence[str]) -> list[Candidate]:
        """Those of the words that keep the label: that is looked at before anything is explained."""
        if not words:
            return []
        texts = [current.swap(place, word) for word in words]
        scores = self.ask([text.text for text in texts])
        kept = np.flatnonzero(self.model.labels(scores) == self.target).tolist()
        return [Candidate(texts[i], Swap(place, current.words[place], words[i]), scores[i],
                          self.ask.swapped(question, texts[i], place, scores[i])) for i in kept]

    def authors(self, objectives: Sequence[str], leader: Victim) -> Iterator[dict[str, Level]]:
        """The way of the authors' code: the path follows the centre of mass of what `leader` says, whatever the objective is.

        At each level every objective, and chance, picks from the same candidates; the path goes on from the leader's pick.
        """
        ahead = Search(self.model, self.text, leader, self.candidates, self.constraints, self.max_ratio, None, self.seed,
                       self.case, self.ask.count, self.target, self.batch_size)
        rng = generator(self.seed, self.case, RANDOM, 0)
        picked: dict[str, Level] = {}

        def choose(current: Written, question: Question, place: int) -> Level | None:
            asked, pool = self.pool(current, question, place)
            lead = ahead.furthest(pool, question, AUTHORS["lom"]) if pool else None
            texts = tuple(one.text.text for one in pool)
            picked.clear()
            for name in (name for name in objectives if lead is not None and name != RANDOM):
                found = self.furthest(pool, question, AUTHORS[name])
                if found is not None:
                    picked[name] = Level(found[0], asked, len(pool), found[1], texts)
            if lead is not None:
                picked[RANDOM] = Level(pool[int(rng.integers(len(pool)))], asked, len(pool))
            return None if lead is None else Level(lead[0], asked, len(pool), lead[1])

        for _ in self._path(choose):
            yield dict(picked)

    def furthest(self, pool: list[Candidate], question: Question, objective: Objective) -> tuple[Candidate, float] | None:
        """The candidate whose explanation is furthest from the original's; the first of equals, None where none can be told."""
        masks = self._noted[1]
        alike = all(one.d == len(masks.T) for one in (question, *(one.question for one in pool)))  # no word was pushed out
        if self.racing is not None and self.victim.races and alike:
            left = self.racing([one.question for one in pool], question, pool[0].swap.place, masks,
                               lambda one: objective(self.said, self.explained(one)))
            pool = [pool[i] for i in left]
        if self.victim.races:  # others may not need what the original was asked
            together([one.question for one in pool if one.question.d == masks.shape[1]], masks)
        said = [self.explained(one.question) for one in pool]
        far = np.array([objective(self.said, one) for one in said])
        if np.isnan(far).all():
            return None
        best = int(np.nanargmax(far))
        return replace(pool[best], said=said[best]), float(far[best])
