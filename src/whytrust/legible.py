"""Text that comes from others, as it may be shown: what it would do unseen is written out, the way Python writes it."""

from __future__ import annotations

import re
from collections.abc import Iterable

WIDEST = 60
"""Characters that a column of names takes in a table of plain text."""
_TURNING = "\u202a-\u202e\u2066-\u2069"  # they reorder what stands around them
_HIDDEN = "\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # nothing is seen of them
_UNSEEN = re.compile(f"[{_TURNING}{_HIDDEN}]")
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff" f"{_TURNING}{_HIDDEN}]")
_BREAKING = re.compile(f"[\t\n]|{_STEERING.pattern}")


def seen(text: str) -> str:
    """The text with what turns or hides words written out: U+202E is shown as \\u202e.

    Marks that scripts and emoji are written with (joiners, directions of single letters) stay as they are.
    """
    return _UNSEEN.sub(_written, text)


def harmless(text: str) -> str:
    """Lines that a terminal shows and does not obey; the line breaks stay."""
    return _STEERING.sub(_written, text)


def in_line(text: str) -> str:
    """The same in one line: no name can begin a line of its own."""
    return _BREAKING.sub(_written, text)


def lines(several: Iterable[str]) -> str:
    """Lines under each other, each of which stays one."""
    return "\n".join(in_line(one) for one in several)


def width(names: Iterable[str]) -> int:
    """How wide a column of names is: a very long one stands out of it, and moves no other line."""
    return max((min(len(in_line(one)), WIDEST) for one in names), default=0)


def cut(text: str, most: int = 400) -> str:
    """The beginning and the end of a text that is longer than anybody reads; what is measured letter by letter stays short."""
    return text if len(text) <= most else f"{text[:most - most // 3 - 1]}…{text[-(most // 3):]}"


def _written(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")
