"""Questions of texts that differ in a word: which masks an explainer asks, asked of many at once, or imagined for now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from whytrust.core import Floats, Masks, generator
from whytrust.question import Question, distinct

AT_ONCE = 4096
"""Texts that are written out at once."""


@dataclass(frozen=True)
class Noted(Question):
    """A question that notes which masks are asked of it; what it answers is known to the one it was made of."""

    masks: list[Masks] = field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(cls, question: Question) -> Noted:
        """The same question, with notes."""
        return cls(**{one.name: getattr(question, one.name) for one in fields(Question)})

    def answers(self, masks: Masks, rng: np.random.Generator) -> Floats:
        """(n, watched) scores of every class that is watched."""
        self.masks.append(np.array(masks, bool))
        return super().answers(masks, rng)

    @property
    def asked(self) -> Masks:
        """Every mask that was asked, once, without the one that hides nothing."""
        return distinct(np.concatenate([np.empty((0, self.d), bool), *self.masks]))[1]


def together(questions: Sequence[Question], masks: Masks) -> None:
    """Have every question answer these masks; texts of all of them go to the model at once.

    A net takes texts of one length in one pass: of many questions there are many of each length.
    """
    if not questions or not len(masks):
        return
    model, batch_size = questions[0].model, questions[0].batch_size
    if len(questions) == 1 or not questions[0].parts.deterministic or model.opened(questions[0].parts) is not None:
        for question in questions:
            question.outputs(masks)
        return
    names, each = distinct(masks)
    waiting: list[tuple[Question, list[int]]] = []

    def ask() -> None:
        texts = [text for question, rows in waiting for text in question.parts.compose(each[rows], generator(0))]
        size = batch_size or max(len(texts), 1)
        found = [model(texts[start:start + size]) for start in range(0, len(texts), size)]
        scores, start = np.concatenate(found) if found else np.empty((0, 0)), 0
        for question, rows in waiting:
            if rows:
                question.count(len(rows))
                question.memory.learn([names[i] for i in rows], scores[start:start + len(rows), list(question.memory.watched)])
                start += len(rows)
        waiting.clear()

    for question in questions:
        _ = question.original  # it is the first that is remembered
        known = question.memory.known
        waiting.append((question, [i for i, name in enumerate(names) if name not in known]))
        if sum(len(rows) for _, rows in waiting) >= AT_ONCE:
            ask()
    ask()


def imagined(question: Question, masks: Masks, scores: Floats) -> Question:
    """The question as if it had answered these masks so, whatever it has answered; none of this is kept.

    What others have asked it before must not matter: a guess is a guess, or who was asked more would be told better.
    """
    (names, _), known = distinct(masks), question.memory.known
    assert len(names) == len(masks), "each mask once, and none that hides nothing"
    memory = replace(question.memory, answers=question.memory.answers.copy(), filed=dict(known), unfiled=[], streams={},
                     worked={}, shortcut=None, sought=True, calls=0)
    old = [(i, known[name]) for i, name in enumerate(names) if name in known]
    memory.answers[[row for _, row in old], 0] = scores[[i for i, _ in old]]
    new = [i for i, name in enumerate(names) if name not in known]
    if new:
        memory.learn([names[i] for i in new], scores[new, None])
    return replace(question, memory=memory)
