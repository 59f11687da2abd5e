"""Texts of data sets that were cut into tokens ("it 's good , is n't it ?"), put together as people write them.

Checkers of grammar and models of words read "wo n't" and a space before a comma as mistakes, and they are none of a swap's.
"""

from __future__ import annotations

import re

_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}
_BRACKET = re.compile("|".join(_BRACKETS), re.IGNORECASE)
_QUOTE = re.compile(r"``|''")
_CLITIC = re.compile(r"(?<=\w) (?=(?:n['’]t|['’](?:s|m|re|ve|ll|d))(?!\w))", re.IGNORECASE)
_BEFORE = re.compile(r"(?<=\S) +(?=[,.;:!?%)\]}])")
_BEHIND = re.compile(r"(?<=[(\[{]) +(?=\S)")


def joined(text: str) -> str:
    """The text with contractions, brackets and punctuation where people write them; what people wrote is left as it is."""
    text = _BRACKET.sub(lambda found: _BRACKETS[found[0].lower()], writable(text))
    text = _QUOTE.sub('"', text)
    return _BEHIND.sub("", _BEFORE.sub("", _CLITIC.sub("", text)))


def writable(text: str) -> str:
    """The text without halves of characters, which no file can hold and no library in another language takes."""
    return text.encode("utf-8", "replace").decode()
