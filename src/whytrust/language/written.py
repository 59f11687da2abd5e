"""A text as its words, each of which can be swapped for another while all that stands between them stays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from whytrust.domains.text import Span, TextParts, words


@dataclass(frozen=True)
class Written:
    """A text and where its words stand; a swapped text has as many words at the same places in their order."""

    text: str
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, text: str) -> Written:
        """A text by the words that an explanation of it would have."""
        return cls(text, tuple(words(text)))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words as they are written."""
        return tuple(self.text[start:end] for start, end in self.spans)

    def __len__(self) -> int:
        """How many words it has."""
        return len(self.spans)

    def swap(self, place: int, word: str) -> Written:
        """The same text with another word at a place."""
        if not is_one_word(word):
            raise ValueError(f"what is swapped in must be one word, for the words of both texts are compared, got {word!r}")
        start, end = self.spans[place]
        moved = len(word) - (end - start)
        spans = (*self.spans[:place], (start, end + moved), *((s + moved, e + moved) for s, e in self.spans[place + 1:]))
        return Written(self.text[:start] + word + self.text[end:], spans)

    def window(self, place: int, size: int) -> str:
        """The text of `size` words around a place, as many of them before as behind where the text has them."""
        if len(self) <= size:
            return self.text
        first = min(max(place - size // 2, 0), len(self) - size)
        return self.text[self.spans[first][0]:self.spans[first + size - 1][1]]

    def changed(self, original: Written) -> tuple[int, ...]:
        """The places at which this text has another word than the original."""
        return tuple(i for i, (ours, theirs) in enumerate(zip(self.words, original.words, strict=True)) if ours != theirs)

    def parts(self, reads: Callable[[str], int] = len) -> TextParts:
        """The text cut at these words; those that begin beyond what the model takes in are no parts."""
        return TextParts.cut(self.text, split=lambda _: self.spans, reads=reads)


class Candidates(Protocol):
    """Where words that may stand for another come from."""

    @property
    def name(self) -> str:
        """A few words for a reader: which source it is."""
        ...

    def __call__(self, text: Written, place: int) -> list[str]:
        """Words that may stand at this place of the text, best first: other words, one word each, in its case and form."""
        ...


def is_one_word(word: str) -> bool:
    """Would the word be one word in a text?"""
    return list(words(word)) == [(0, len(word))]


def fit_to_stand(found: Any, word: str, source: str) -> list[str]:
    """A source's words without what cannot be swapped in: the word itself, what is no one word, repeats."""
    if found is None or isinstance(found, str | set | frozenset | Mapping) or not isinstance(found, Iterable):
        raise TypeError(f"{source} must give a list of words, best first, for a text and a place, got {found!r:.60}")
    words = list(found)
    if not all(isinstance(one, str) for one in words):
        raise TypeError(f"{source} must give words, got {next(one for one in words if not isinstance(one, str))!r:.60}")
    kept = dict[str, str]()
    for one in words:
        if is_one_word(one) and one.lower() != word.lower():
            kept.setdefault(one.lower(), one)
    return list(kept.values())
