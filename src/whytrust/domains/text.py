"""A text cut into words or sentences, each of which can be kept, removed or replaced.

Whatever lies between parts (spaces, punctuation) is always kept, as lime keeps it: removing "bad" from "not bad, really"
leaves "not , really". A model that reads punctuation or spacing sees inputs that nobody wrote.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from whytrust.core import Floats, Masks, check_masks, pool_labels
from whytrust.domains.vectors import Bags
from whytrust.views import TextView

Span = tuple[int, int]
Split = str | Callable[[str], Iterable[str] | Iterable[Span]]
"""A regular expression whose matches are the parts, or a function of the text that returns strings or (start, end) spans."""

SPECS = ("words", "words:bag", "bag", "sentences")
_NAME_LENGTH = 60
_PIECES_AT_ONCE = 1 << 20  # bounds the memory of compose at a few MB beside the texts themselves
_WORTH_WRITING_OUT = 512  # masks: for so many, all 256 readings of each eight words in a row are written out beforehand
_LONG = 1 << 15  # characters: they would take 128 times as many


# --- words ------------------------------------------------------------------------------------------------------------
# Each character is translated to one letter that says how it behaves in a word, and one expression runs over those letters.
# Python's own \w splits Indic words at their vowel signs, joins Chinese sentences into one word, and knows no emoji.


class _Behaviours(dict[int, str]):
    """A table for str.translate that looks each character up once."""

    def __missing__(self, code: int) -> str:
        self[code] = behaviour = _behaviour(code)
        return behaviour


def _within(*ranges: tuple[int, int]) -> frozenset[int]:
    return frozenset(code for first, last in ranges for code in range(first, last + 1))


_SPECIAL = {
    **dict.fromkeys(map(ord, "'’＇·׳״"), "q"),  # inside a word between letters
    **dict.fromkeys(map(ord, "-‐‑\u00ad֊־"), "d"),  # … between letters or digits
    **dict.fromkeys(map(ord, ",٫٬"), ","),  # … between digits
    ord("."): ".",
    **dict.fromkeys((0x200C, 0x200D), "j"),  # joiners: inside Indic and Persian words and inside emoji
    **dict.fromkeys((0xFE0E, 0xFE0F), "v"),  # "show the character before as text / as an emoji"
    **dict.fromkeys((0x30FC, 0xFF70), "p"),  # the Japanese long-vowel mark, after kana of both kinds
    **dict.fromkeys(range(0x1F1E6, 0x1F200), "f"),  # letters of flags
    **dict.fromkeys(range(0x1F3FB, 0x1F400), "t"),  # skin tones
    **dict.fromkeys(range(0xE0020, 0xE0080), "g"),  # tags that spell the flags of regions
}
_ONE_WORD_EACH = _within((0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3038, 0x303B), (0x3041, 0x309F),
                         (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x1B132, 0x1B152), (0x20000, 0x3FFFD))
_KATAKANA = _within((0x30A1, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F), (0x1B155, 0x1B167))
_NO_SPACES = _within((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x1950, 0x19FF), (0xA9E0, 0xA9FF), (0xAA60, 0xAADF))
_PICTURES = _within((0x231A, 0x231B), (0x23E9, 0x23FA), (0x2600, 0x27BF), (0x2B1B, 0x2B1C), (0x2B50, 0x2B55),
                    (0x1F000, 0x1FAFF), (0x1FC00, 0x1FFFD))


def _behaviour(code: int) -> str:
    """a letter, n digit, _ connector, m mark, h ideograph, k katakana, s script without spaces, e emoji, o other, …"""
    if code in _SPECIAL:
        return _SPECIAL[code]
    category = unicodedata.category(chr(code))
    if category[0] == "M":
        return "m"
    if category[0] in "LN" or code in range(0x2E80, 0x2FE0):  # radicals count as symbols in Unicode
        for codes, behaviour in ((_ONE_WORD_EACH, "h"), (_KATAKANA, "k"), (_NO_SPACES, "s")):
            if code in codes:
                return behaviour
        return "a" if category[0] == "L" else "n"
    if category == "Pc":
        return "_"
    return "e" if code in _PICTURES and category[0] != "P" else "o"


_BEHAVIOURS = _Behaviours()
_WORD = re.compile(
    r"ff?"  # a flag
    r"|(?:[et]|[oqd.,]v)[tgvm]*(?:j(?:e|ov)[tgvm]*)*"  # an emoji with its tone, and those joined to it
    r"|h[mvjp]*"
    r"|[kp][kpmvj]*"
    r"|s[smvj]*"
    r"|a[mvj]*(?:\.a[mvj]*)+(?![an_])\.?"  # U.S., e.g.
    r"|[anmv_][anmvj_]*(?:(?:(?<=[amvj])q(?=a)|(?<=[anmvj])d(?=[an])|(?<=n)[.,](?=n))[anmvj_]+)*"
)


def words(text: str) -> Iterator[Span]:
    """Where are the words of a text in any script?

    Every letter, digit and mark lies in exactly one word. Han characters and hiragana are one word each; Thai, Lao, Khmer and
    Burmese write no spaces, so there a whole phrase is one word: pass `split` to use a segmenter.
    """
    return (match.span() for match in _WORD.finditer(text.translate(_BEHAVIOURS)))


# --- sentences --------------------------------------------------------------------------------------------------------

_CLOSERS = "\"'”’»›)\\]」』）】"
_SENTENCE_END = re.compile(
    # These end a sentence only before a space (3.14, example.com); possessive, or a row of dots takes quadratic time.
    rf"(?P<spaced>(?<![.!?…])[.!?…]++[{_CLOSERS}]*+)(?=\s|$)"
    rf"|[。！？｡।॥؟۔։።။។]+[{_CLOSERS}]*"
    r"|(?P<paragraph>(?:\r\n|\r|\n)[^\S\r\n]*+(?:\r\n|\r|\n)\s*|[\f\u2029]\s*)"
)
_LAST_TOKEN = re.compile(r"[^\s(\[\"'“‘«]*$")


def _vocabulary(words_in_a_row: str) -> frozenset[str]:
    return frozenset(words_in_a_row.split())


_NEVER_LAST = _vocabulary("dr mr mrs ms mx prof st gen col capt lt sgt maj rev hon gov sen rep pres messrs mme mlle sra dra "
                          "e.g i.e cf vs viz ca z.b d.h bzw")
_BEFORE_NUMBERS = _vocabulary("no nos nr fig figs vol ch sec art eq p pp jan feb mar apr jun jul aug sep sept oct nov dec")
_OFTEN_INSIDE = _vocabulary("etc inc ltd co corp jr sr al dept approx ed eds est bros ave blvd a.m p.m usw u.a")
_STARTERS = _vocabulary("the a an he she it they we i you this that these those there but and or so in on at if when while as "
                        "after before however then what who why how my his her its our their no not")
_FAR_ENOUGH_BACK = 40  # characters: no abbreviation is longer, and the search for one stays fast in a text without spaces


def sentences(text: str) -> list[Span]:
    """Where are the sentences of a text?

    They end at . ! ? … 。！？ and their like, and at empty lines; a single line break is taken for a wrapped line. The rules
    know common abbreviations of English and a few other languages; a rare one may still cut a sentence in two.
    """
    spans: list[Span] = []
    start, complete = 0, False
    for end in (*_sentence_ends(text), len(text)):
        piece = text[start:end]
        first, last = start + len(piece) - len(piece.lstrip()), start + len(piece.rstrip())
        if first >= last:
            continue
        has_word = _has_word(piece)
        if spans and not (has_word and complete):
            spans[-1] = spans[-1][0], last  # a stray ". ." is no sentence of its own
        else:
            spans.append((first, last))
        complete |= has_word
        start = end
    return spans


def _sentence_ends(text: str) -> Iterator[int]:
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match["spaced"] is None or _ends_here(text, start, match):
            start = match.end()
            yield start if match["paragraph"] is None else match.start()


def _ends_here(text: str, start: int, match: re.Match[str]) -> bool:
    """Whether a full stop (or ! ? …) before a space ends the sentence that began at `start`."""
    following = text[match.end():match.end() + _FAR_ENOUGH_BACK].split(maxsplit=1)
    next_word = following[0] if following else ""
    stop = match["spaced"]
    if next_word[:1].islower() and (stop[-1] in _CLOSERS or stop in ("…", "...", "....")):
        return False  # "Really?" he asked. Well … maybe.
    if stop != ".":
        return True
    before = text[max(start, match.start() - _FAR_ENOUGH_BACK):match.start()]
    found = _LAST_TOKEN.search(before)
    token = found.group() if found else ""
    word = token.lower()
    if before.strip() == token and (token.isdigit() or (len(token) == 1 and token.isalpha())):
        return False  # the number of a list's item
    if word in _NEVER_LAST or (len(token) == 1 and token.isupper() and token != "I"):
        return False
    if word in _BEFORE_NUMBERS:
        return not next_word[:1].isdigit()
    if word in _OFTEN_INSIDE or re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", token):
        return not next_word or (next_word[:1].isupper() and next_word.strip(",;:").lower() in _STARTERS)
    return True


def _has_word(text: str) -> bool:
    return any(True for _ in words(text))


# --- parts ------------------------------------------------------------------------------------------------------------


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
        spans = list(words(text) if unit != "sentences" else sentences(text)) if split is None else _custom(text, split)
        if not spans or (unit == "sentences" and split is None and not _has_word(text)):
            raise ValueError(f"the text must have at least one word, got {_shorten(text)!r}; "
                             "if its parts are no words, pass split to say where they are")
        until = _read_until(text, reads(text))
        if until is not None:
            spans = [(start, min(end, until)) for start, end in spans if start < until]
            if not spans:
                raise ValueError(f"the model reads only the first {until} characters of this text, and there is no word in "
                                 "them; leave out what comes before the first word, or let the model read more (max_length)")
        written = [text[start:end] for start, end in spans]
        label = str if split is None and unit != "sentences" else _shorten
        if bag or unit.endswith("bag"):
            grouped: dict[str, list[Span]] = {}
            for word, span in zip(written, spans, strict=True):
                grouped.setdefault(word, []).append(span)
            return cls(text, _distinct(map(label, grouped)), tuple(map(tuple, grouped.values())), fill, until)
        return cls(text, _distinct(map(label, written)), tuple((span,) for span in spans), fill, until)

    @cached_property
    def view(self) -> TextView:
        """The text and where its parts stand."""
        return TextView(self.text, self.spans, self.seen)

    def compose(self, masks: Masks, rng: np.random.Generator) -> list[str]:
        """(n, d) masks -> n texts; a hidden part's characters are deleted or replaced, all others are kept."""
        masks = check_masks(masks, len(self.names))
        head, owner, shown, hidden = self._pieces
        characters = len(self.text) + len(self.fill or "") * len(owner)
        written_out = len(masks) >= _WORTH_WRITING_OUT and characters <= _LONG
        texts: list[str] = []
        step = max(_PIECES_AT_ONCE // len(owner), 1)
        for first in range(0, len(masks), step):
            kept = masks[first:first + step].take(owner, axis=1)
            if written_out:
                chosen = self._octets[np.arange(len(self._octets)), np.packbits(kept, axis=1)]
            else:
                chosen = np.where(kept, shown, hidden)
            texts += [head + "".join(row) for row in chosen.tolist()]
        return texts

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
    def _pieces(self) -> tuple[str, Any, Any, Any]:
        """The text before all parts; then each occurrence with what follows it: its part, how it reads shown and hidden."""
        places = sorted((start, end, part) for part, spans in enumerate(self.spans) for start, end in spans)
        ends = [start for start, _, _ in places[1:]] + [len(self.text) if self.seen is None else self.seen]
        shown, hidden = np.empty((2, len(places)), dtype=object)
        for i, ((start, end, _), stop) in enumerate(zip(places, ends, strict=True)):
            shown[i], hidden[i] = self.text[start:stop], (self.fill or "") + self.text[end:stop]
        return self.text[:places[0][0]], np.array([part for _, _, part in places], dtype=np.intp), shown, hidden

    @cached_property
    def _octets(self) -> Any:
        """(m / 8, 256): how eight occurrences in a row read, by the bits that say which of them show."""
        _, _, shown, hidden = self._pieces
        octets = np.empty((-(-len(shown) // 8), 256), dtype=object)
        for block, first in zip(octets, range(0, len(shown), 8), strict=True):
            readings = [""]
            for both in zip(hidden[first:first + 8], shown[first:first + 8], strict=True):
                readings = [reading + piece for reading in readings for piece in both]
            # numpy packs the first of fewer than eight into the highest bits.
            block[:: 256 // len(readings)] = readings
        return octets


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
        raise ValueError(f"a text must have at least one word, got {text!r}, which is empty; leave such texts out")
    if fill is not None and not isinstance(fill, str):
        raise TypeError(f"fill must be a string that stands for a hidden part, or None to remove it, got {fill!r}")


def _custom(text: str, split: Any) -> list[Span]:
    """The spans that the user's own rule finds: in order, inside the text and apart from each other."""
    if isinstance(split, str):
        try:
            return [m.span() for m in re.finditer(split, text) if m.group()]
        except re.error as error:
            raise ValueError(f"split must be a regular expression whose matches are the parts, got {split!r} "
                             f"({error})") from error
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
