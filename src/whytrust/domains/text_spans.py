"""Where the words and the sentences of a text are, in any script."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

Span = tuple[int, int]


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
        worded = has_word(piece)
        if spans and not (worded and complete):
            spans[-1] = spans[-1][0], last  # a stray ". ." is no sentence of its own
        else:
            spans.append((first, last))
        complete |= worded
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


def has_word(text: str) -> bool:
    """Is there any word at all?"""
    return any(True for _ in words(text))
