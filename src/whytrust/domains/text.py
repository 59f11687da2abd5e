"""A text cut into words or sentences, each of which can be kept, removed or replaced.

Whatever lies between parts (spaces, punctuation) is always kept, as lime keeps it: removing "bad" from "not bad, really"
leaves "not , really". A model that reads punctuation or spacing sees inputs that nobody wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np

from whytrust.core import Floats, Masks, check_baseline, check_masks, pool_labels
from whytrust.domains.text_pieces import Pieces
from whytrust.domains.text_spans import Span as Span
from whytrust.domains.text_spans import has_word
from whytrust.domains.text_spans import sentences as sentences
from whytrust.domains.text_spans import words as words
from whytrust.domains.vectors import Bags
from whytrust.views import TextView

Split = str | Callable[[str], Iterable[str] | Iterable[Span]]
"""A regular expression whose matches are the parts, or a function of the text that returns strings or (start, end) spans."""
Find = Callable[[str], Iterable[Span]]

SPECS = ("words", "words:bag", "bag", "sentences")
UNKNOWN = "[UNK]"
_NAME_LENGTH = 60


@dataclass(frozen=True)
class TextParts:
    """Which words, or sentences, does the model's score of this text depend on?

    Hidden parts are removed, or replaced by `fill`. A word that occurs again is a part of its own, named "good [2]"; in a bag
    all occurrences are one part. Text without a word is often no text to a model: scores of nearly empty masks mislead.
    """

    domain: ClassVar[str] = "text"
    deterministic: ClassVar[bool] = True
    text: str
    names: tuple[str, ...]
    spans: tuple[tuple[Span, ...], ...]  # of each part, several in a bag
    fill: str | None = None
    seen: int | None = None  # characters that the model takes in; None is all of them
    find: Find | None = field(default=None, compare=False, repr=False)  # what finds such parts in another text

    @classmethod
    def cut(cls, text: str, unit: str = "words", bag: bool | None = None, fill: str | None = None,
            split: Split | None = None, reads: Callable[[str], int] = len) -> TextParts:
        """Cut a text into "words", a "bag" of words ("words:bag") or "sentences"; `split` replaces the rule that finds them.

        `reads` says how many characters of the text the model takes in. What begins beyond them is no part and is left out of
        every composed text: else removing early words would move later ones into view.
        """
        _check_text(text, fill)
        if unit not in SPECS:
            raise ValueError(f"parts of a text must be one of {', '.join(SPECS)}, got {unit!r}; for others pass split")
        if unit.endswith("bag") and bag is False:
            raise ValueError(f"a {unit} must not come with bag=False; for one part an occurrence ask for 'words'")
        find = _rule(unit, split)
        spans = _custom(text, split) if find is None else list(find(text))
        if not spans or (unit == "sentences" and split is None and not has_word(text)):
            raise ValueError(f"the text must have at least one word, got {_shorten(text)!r}; "
                             "if its parts are no words, pass split to say where they are")
        until = _read_until(text, reads(text))
        if until is not None:
            spans = [(start, min(end, until)) for start, end in spans if start < until]
            if not spans:
                raise ValueError(f"the model reads only the first {until} characters of this text, and there is no word in "
                                 "them; leave out what comes before the first word, or let the model read more (max_length)")
        written = [text[start:end] for start, end in spans]
        label = _label(find)
        if bag or unit.endswith("bag"):
            grouped: dict[str, list[Span]] = {}
            for word, span in zip(written, spans, strict=True):
                grouped.setdefault(word, []).append(span)
            return cls(text, _distinct(map(label, grouped)), tuple(map(tuple, grouped.values())), fill, until, find)
        return cls(text, _distinct(map(label, written)), tuple((span,) for span in spans), fill, until, find)

    @cached_property
    def view(self) -> TextView:
        """The text and where its parts stand."""
        return TextView(self.text, self.spans, self.seen)

    def compose(self, masks: Masks, rng: np.random.Generator) -> list[str]:
        """(n, d) masks -> n texts; a hidden part's characters are deleted or replaced, all others are kept."""
        return self._pieces.compose(check_masks(masks, len(self.names)))

    def like(self, other: Any) -> TextParts:
        """What stands at the same places, in their order, of another text with as many words (or sentences, or matches)."""
        if self.find is None:
            raise TypeError("parts that a function of your own found in one text cannot be found in another; pass split as a "
                            "regular expression, or leave it out")
        _check_text(other, self.fill)
        own, found = list(self.find(self.text)), list(self.find(other))
        if len(own) != len(found):
            raise ValueError(f"another text must have as many parts, for each stands for the one at its place: expected "
                             f"{len(own)}, got {len(found)} in {_shorten(other)!r}")
        spans: list[list[Span]] = [[] for _ in self.names]
        for (_, _, part), span in zip(self._places, found, strict=False):  # those that the model does not take in are no parts
            spans[part].append(span)
        last = max(end for each in spans for _, end in each)
        # What stands between the last part and where the model stops reading is the same in both, or they cannot be laid over
        # each other.
        seen = None if self.seen is None else min(last + max(self.seen - own[len(self._places) - 1][1], 0), len(other))
        names = _distinct(_label(self.find)(other[each[0][0]:each[0][1]]) for each in spans)
        return TextParts(other, names, tuple(map(tuple, spans)), self.fill, seen, self.find)

    def near(self, radius: float, rng: np.random.Generator) -> TextParts:
        """This text with two neighbouring words, or sentences, in each other's place; `radius` means nothing here."""
        return self if len(self._places) < 2 else self._traded(int(rng.integers(len(self._places) - 1)))

    def _traded(self, at: int) -> TextParts:
        """This text with the word at one place and the next one in each other's."""
        (start, end, _), (first, last, _) = self._places[at:at + 2]
        text = self.text[:start] + self.text[first:last] + self.text[end:first] + self.text[start:end] + self.text[last:]
        moved = {(start, end): (last - (end - start), last), (first, last): (start, start + last - first)}
        return replace(self, text=text, spans=tuple(tuple(moved.get(span, span) for span in spans) for spans in self.spans))

    @property
    def baselines(self) -> tuple[str, ...]:
        """What words can be hidden behind: nothing, a sign that stands for any word, or other words of the text."""
        return ("removed", "unknown", "noise")

    def behind(self, baseline: str, rng: np.random.Generator) -> TextParts | LaidTexts:
        """The same cut, hidden behind that; the other words are drawn once."""
        check_baseline(baseline, self.baselines)
        if baseline != "noise":
            return replace(self, fill=UNKNOWN if baseline == "unknown" else None)
        before, *after = self._between
        drawn = [self.text[slice(*self._places[i][:2])] for i in rng.permutation(len(self._places))]
        other = before + "".join(word + gap for word, gap in zip(drawn, after, strict=True))
        return self.over(other if self.seen is None else other + self.text[self.seen:])

    def over(self, below: Any) -> LaidTexts:
        """This text with another one's words in the places that are hidden."""
        return LaidTexts(self, self.like(below))

    def squared_change(self, since: Any) -> Floats:
        """1 at the first character of every word that is another one: summed over parts, how many of their words changed."""
        other, change = self.like(since), np.zeros(len(self.text))
        for (start, end, _), (first, last, _) in zip(self._places, other._places, strict=True):
            change[start] = float(self.text[start:end] != other.text[first:last])
        return change

    def pool(self, map: Floats, how: str) -> Floats:
        """One number a character -> one number a part; `how` is mean, mean_abs or mean_pos."""
        d = len(self.names)
        labels = np.full(len(self.text), d, dtype=np.intp)  # characters between parts count for a part that is dropped
        for part, spans in enumerate(self.spans):
            for start, end in spans:
                labels[start:end] = part
        return pool_labels(map, labels, d + 1, how)[:d]

    def vectors(self, texts: Any, reads: Callable[[str], int] = len) -> Bags:
        """Texts as bags of words, whatever the parts of this one are; of each, what the model takes in."""
        return Bags.of(texts, lambda text: _read_words(text, reads))

    @cached_property
    def _places(self) -> list[tuple[int, int, int]]:
        """(start, end, part) of every occurrence, in the order of the text."""
        return sorted((start, end, part) for part, spans in enumerate(self.spans) for start, end in spans)

    @cached_property
    def _pieces(self) -> Pieces:
        """The text before all parts; then each occurrence with what follows it: its part, how it reads shown and hidden."""
        before, *after = self._between
        shown = [self.text[start:end] + gap for (start, end, _), gap in zip(self._places, after, strict=True)]
        hidden = [(self.fill or "") + gap for gap in after]
        return Pieces.of(before, [part for _, _, part in self._places], shown, hidden)

    @cached_property
    def _between(self) -> list[str]:
        """What stands before, between and behind the parts."""
        ends = [0, *(end for _, end, _ in self._places)]
        starts = [*(start for start, _, _ in self._places), len(self.text) if self.seen is None else self.seen]
        return [self.text[end:start] for end, start in zip(ends, starts, strict=True)]


@dataclass(frozen=True, eq=False)
class LaidTexts:
    """Two texts, one over the other: the upper one's words where parts are shown, the lower one's at the same places elsewhere.

    What stands between the words must be the same in both: there is but one text around them.
    """

    upper: TextParts
    lower: TextParts
    domain: ClassVar[str] = "text"
    deterministic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse texts that differ in more than their words."""
        pairs = enumerate(zip(self.upper._between, self.lower._between, strict=True))
        for place, (ours, theirs) in pairs:
            if ours != theirs:
                where = f"before part {place + 1}" if place < len(self.upper._places) else "at the end"
                raise ValueError("one text can be laid over another only where what stands between their words is the same: "
                                 f"{where} one has {_quoted(ours)}, the other {_quoted(theirs)}; swap words, and leave "
                                 "spaces and punctuation alone")

    @property
    def names(self) -> tuple[str, ...]:
        """What the upper text's parts are called."""
        return self.upper.names

    @property
    def view(self) -> TextView:
        """The upper text."""
        return self.upper.view

    def compose(self, masks: Masks, rng: np.random.Generator) -> list[str]:
        """Texts mixed of the two."""
        return self._pieces.compose(check_masks(masks, len(self.names)))

    def near(self, radius: float, rng: np.random.Generator) -> LaidTexts:
        """Both texts with two neighbouring words in each other's place."""
        count = len(self.upper._places)
        at = int(rng.integers(count - 1)) if count > 1 else None
        return self if at is None else LaidTexts(self.upper._traded(at), self.lower._traded(at))

    def pool(self, map: Floats, how: str) -> Floats:
        """One number a character of the upper text -> one number a part."""
        return self.upper.pool(map, how)

    @cached_property
    def _pieces(self) -> Pieces:
        upper, lower = self.upper._pieces, self.lower._pieces
        return Pieces(upper.head, upper.owner, upper.shown, lower.shown)


def _read_until(text: str, limit: int) -> int | None:
    """Where composed texts end: at the limit, or at the end of the word that it cuts; None where all of the text is read."""
    if limit >= len(text):
        return None
    return next((end for start, end in words(text) if start < limit < end), max(limit, 0))


def _read_words(text: str, reads: Callable[[str], int]) -> list[Span]:
    until = _read_until(text, reads(text))
    return [(start, min(end, until or end)) for start, end in words(text) if until is None or start < until]


def _check_text(text: Any, fill: Any) -> None:
    if not isinstance(text, str):
        raise TypeError(f"a text must be a str, got {type(text).__name__}; decode bytes, and pass one text at a time")
    if not text.strip():
        raise ValueError(f"a text must have at least one word, got {text[:20]!r}, which is empty; leave such texts out")
    if fill is not None and not isinstance(fill, str):
        raise TypeError(f"fill must be a string that stands for a hidden part, or None to remove it, got {fill!r}")


def _rule(unit: str, split: Any) -> Find | None:
    """What finds the parts of any text; None where a function of the user's does, which may know one text alone."""
    if split is None:
        return sentences if unit == "sentences" else words
    return partial(_matches, split) if isinstance(split, str) else None


def _matches(pattern: str, text: str) -> list[Span]:
    try:
        return [m.span() for m in re.finditer(pattern, text) if m.group()]
    except re.error as error:
        raise ValueError(f"split must be a regular expression whose matches are the parts, got {pattern!r} "
                         f"({error})") from error


def _label(find: Find | None) -> Callable[[str], str]:
    """How a part is called: a word by itself, anything longer by its beginning."""
    return str if find is words else _shorten


def _custom(text: str, split: Any) -> list[Span]:
    """The spans that the user's own function finds: in order, inside the text and apart from each other."""
    if not callable(split):
        raise TypeError(f"split must be a regular expression or a function of the text, got {type(split).__name__}")
    spans: list[Span] = []
    for piece in split(text):
        past = spans[-1][1] if spans else 0
        start, end = _located(text, piece, past) if isinstance(piece, str) else _checked_span(text, piece, past)
        if end > start:
            spans.append((start, end))
    return spans


def _located(text: str, piece: str, past: int) -> Span:
    start = text.find(piece, past)
    if start < 0:
        raise ValueError(f"split must return pieces of the text in their order: {_shorten(piece)!r} does not occur "
                         f"after character {past}; return (start, end) spans if the pieces are changed")
    return start, start + len(piece)


def _checked_span(text: str, span: Any, past: int) -> Span:
    if not isinstance(span, Sequence) or len(span) != 2 or not all(isinstance(i, int | np.integer) for i in span):
        raise TypeError(f"split must return strings or (start, end) spans, got {span!r}")
    start, end = int(span[0]), int(span[1])
    if not past <= start <= end <= len(text):
        raise ValueError(f"spans must be in order, apart and inside the text: expected {past} <= start <= end <= {len(text)}, "
                         f"got ({start}, {end})")
    return start, end


def _shorten(text: str) -> str:
    """A name for a long part: its beginning, on one line."""
    line = " ".join(text[:4 * _NAME_LENGTH].split()) or repr(text[:_NAME_LENGTH])
    return line if len(line) <= _NAME_LENGTH and len(text) <= 4 * _NAME_LENGTH else line[:_NAME_LENGTH - 1].rstrip() + "…"


def _quoted(between: str) -> str:
    return repr(between if len(between) <= _NAME_LENGTH else between[:_NAME_LENGTH - 1] + "…")


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    """The second "good" becomes "good [2]", the third "good [3]"."""
    counts: dict[str, int] = {}
    given: dict[str, None] = {}
    for name in names:
        counts[name] = count = counts.get(name, 0) + 1
        candidate = name if count == 1 else f"{name} [{count}]"
        while candidate in given:
            counts[name] = count = count + 1
            candidate = f"{name} [{count}]"
        given[candidate] = None
    return tuple(given)
