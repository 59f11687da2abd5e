"""A model asked about a text and its swapped versions: what of it is read, which words matter, what is known already."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel
from whytrust.core import Floats, generator
from whytrust.domains.text import TextParts
from whytrust.language.written import Written
from whytrust.question import Question

OnCalls = Callable[[int], None]


@dataclass(frozen=True)
class Swap:
    """One word of a text that stands for another."""

    place: int
    before: str
    after: str


@dataclass
class Asking:
    """A model asked about texts, equal ones once; calls are counted."""

    model: CheckedModel
    on_calls: OnCalls | None = None
    batch_size: int | None = None
    calls: int = 0

    def __call__(self, texts: Sequence[str]) -> Floats:
        """(n, classes) scores."""
        places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        asked, size = list(places), self.batch_size or max(len(places), 1)
        scores = np.concatenate([self.model(asked[start:start + size]) for start in range(0, len(asked), size)])
        self.count(len(places))
        return np.asarray(scores[[places[text] for text in texts]])

    def count(self, calls: int) -> None:
        """The model was asked about so many texts."""
        self.calls += calls
        if self.on_calls is not None:
            self.on_calls(calls)

    def label(self, scores: Floats) -> int:
        """The class that one row of scores decides for."""
        return int(self.model.labels(scores[None])[0])

    def question(self, text: Written, target: int, original: Floats | None = None) -> Question:
        """Why does the model score the target so, in terms of the text's words?"""
        first = Question(self.model, text.parts(self.model.reads), target, self.batch_size, on_calls=self.count)
        question = first.watching([target])[0]
        if original is not None:
            question.memory.original = original
        return question

    def swapped(self, parent: Question, text: Written, place: int, scores: Floats) -> Question:
        """The question of a text that differs from the parent's at one place; what is known of that is known of it, too."""
        parts = text.parts(self.model.reads)
        assert isinstance(parent.parts, TextParts)
        if not _alike_but(parts, parent.parts, place):
            return self.question(text, parent.target, scores)  # another word moved what is read of the text
        return parent.swapped(parts, place, scores)


def _alike_but(parts: TextParts, other: TextParts, place: int) -> bool:
    """Do two texts read the same wherever the word at one place is left out?"""
    if len(parts.names) != len(other.names) or place >= len(parts.names):
        return False
    (start, end), (begin, stop) = parts.spans[place][0], other.spans[place][0]
    return parts.text[:start] == other.text[:begin] and parts.text[end:parts.seen] == other.text[stop:other.seen]


def read_by(model: CheckedModel, text: str) -> Written:
    """A text as far as a model reads it, or one clear error where it has too few words to swap any of them."""
    if not isinstance(text, str):
        raise TypeError(f"a text must be a str, got {type(text).__name__}; pass one text at a time")
    until = model.reads(text)
    whole = Written.of(text)
    if until < len(text):
        spans = tuple(span for span in whole.spans if span[0] < until)
        whole = Written(text[:max([until, *(end for _, end in spans)])], spans)
    if len(whole) < 2:
        read = "" if until >= len(text) else f" that the model reads (its first {until} characters)"
        raise ValueError(f"a text must have at least two words{read}, so that words can be compared, got {len(whole)} in "
                         f"{text[:60]!r}; leave such texts out")
    return whole


def drops(question: Question) -> Floats:
    """How far the target's score falls without each word: leave one out."""
    masks = ~np.eye(question.d, dtype=bool)
    return np.asarray(question.original[question.target] - question.score(masks, generator(0)))


def importance(question: Question) -> NDArray[np.intp]:
    """The places of a text's words, first those without which the target's score falls most; equal ones in their order."""
    return np.argsort(-drops(question), kind="stable")


def most_swaps(text: Written, share: float) -> int:
    """How many words a share of them is, at the most."""
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise ValueError(f"the share of words that may be swapped must lie in (0, 1], got {share!r}; a half, 0.5, is usual")
    return int(share * len(text) + 1e-9)
