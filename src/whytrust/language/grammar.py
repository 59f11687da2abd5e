"""Which errors of grammar does a text have, and which of them are new since its words were swapped?

Data sets are often in lower case and cut into tokens, so a checker finds an error at every name, every "i" and every comma.
Texts are therefore put together again first (`joined`), and what a checker says of spelling, capitals, spaces, punctuation and
style is not counted: none of it is grammar.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar, Protocol, runtime_checkable

from whytrust.core import MissingExtra, near, need
from whytrust.domains.text import sentences, words
from whytrust.language.joined import joined

GRAMMARS = {
    "harper": "harper's rules, in process; fast, and misses many errors",
    "link-grammar": "link-grammar's parser as a command; strict, about a second a sentence",
    "none": "no check of grammar",
}
REMEMBERED = 1 << 14
"""Texts whose errors are kept, for an original is asked about with each of its changes."""


@runtime_checkable
class Grammar(Protocol):
    """Which errors of grammar does a text have?"""

    @property
    def name(self) -> str:
        """A few words for a reader: which checker it is."""
        ...

    def __call__(self, text: str) -> list[str]:
        """A short word for each error, its kind, in the order of the text."""
        ...


@dataclass(frozen=True)
class NewErrors:
    """What a change of words did to the grammar: errors of a kind that was not there as often, and the change of their number.

    `difference` is what papers report: it is absolute, so mending an error counts as much as making one. `new` says how many
    were made.
    """

    new: int
    difference: int

    @classmethod
    def between(cls, before: Sequence[str], after: Sequence[str]) -> NewErrors:
        """From the kinds of the errors before and after."""
        return cls((Counter(after) - Counter(before)).total(), abs(len(after) - len(before)))


def new_errors(grammar: Grammar, before: str, after: str) -> NewErrors:
    """Which errors does one text have that the other had not?"""
    return NewErrors.between(grammar(before), grammar(after))


# --- harper -----------------------------------------------------------------------------------------------------------

COUNTED = frozenset({"Agreement", "BoundaryError", "Grammar", "Malapropism", "Miscellaneous", "Nonstandard", "Repetition",
                     "Usage", "WordChoice"})
"""Kinds of harper's findings that are about grammar. Articles ("a entertaining film") are among its Miscellaneous, verbs after
"to" among its WordChoice. Not counted: Capitalization, Eggcorn, Enhancement, Formatting, Punctuation, Readability, Redundancy,
Regionalism, Spelling, Style, Typo."""
COUNTED_RULES = frozenset({"AdjectiveDoubleDegree"})
"""Rules of other kinds that are about grammar nevertheless: "more better" is filed under Redundancy."""
SWITCHED_OFF = frozenset({"AvoidCurses", "CapitalizePersonalPronouns", "CommaFixes", "CompoundNouns", "LongSentences",
                          "MergeWords", "Months", "OrthographicConsistency", "SentenceCapitalization", "Spaces", "SpellCheck",
                          "SplitWords", "ToTwoToo", "TransposedSpace"})
"""Rules of spelling, spaces, capitals and taste that find much in texts of this sort, and one of grammar that takes "too slow
to care" for a mistake. Off rather than uncounted, for of two findings at one place harper tells one."""


@dataclass(frozen=True)
class Harper:
    """Which of harper's rules of grammar does a text break? Each error goes by its rule: AnA, PronounVerbAgreement, …

    It knows agreement with pronouns ("he go") and articles ("a entertaining film"), but says nothing of "the film are good":
    read its numbers as a lower bound. English alone.
    """

    name: ClassVar[str] = "harper"

    def __call__(self, text: str) -> list[str]:
        """The rules broken, in the order of the text."""
        return list(_broken(joined(text)))


@lru_cache(maxsize=REMEMBERED)
def _broken(text: str) -> tuple[str, ...]:
    linter = _linter()
    with _ONE_AT_A_TIME:
        found = linter.organized_lints(text, language="plaintext")
    counted = [(lint.span.start, rule) for rule, lints in found.items() for lint in lints
               if lint.lint_kind in COUNTED or rule in COUNTED_RULES]
    return tuple(rule for _, rule in sorted(counted))


_ONE_AT_A_TIME = threading.Lock()
"""harper's linter raises where two threads ask it at once."""


@cache
def _linter() -> Any:
    linter = need("harper", "language").Linter()
    rules = linter.get_default_lint_config()
    linter.set_lint_config({rule: on and rule not in SWITCHED_OFF for rule, on in rules.items()})
    return linter


# --- link-grammar -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinkGrammar:
    """Which words find no place when a sentence is parsed? Each is an error, "unlinked".

    By the command link-parser (Sleator and Temperley 1991), a new process for each sentence, for the library ends the process
    that asks it about what it does not expect. It is strict: two of three sentences in film reviews have an error, and a wrong
    verb can unlink all that hangs on it. A sentence that takes it more than `seconds`, or has more words than it takes, is one
    error, "unparsed"; which ones take too long depends on the machine.
    """

    seconds: float = 30.0
    name: ClassVar[str] = "link-grammar"

    def __post_init__(self) -> None:
        """Refuse a limit that leaves no time."""
        if not self.seconds > 0:
            raise ValueError(f"seconds must be above 0, got {self.seconds!r}")

    def __call__(self, text: str) -> list[str]:
        """One word an error, sentence by sentence."""
        whole = _FIRST_PERSON.sub("I", joined(text))
        found = [_unlinked(sentence, self.seconds) for sentence in _one_line_each(whole)]
        return [word for count in found for word in (["unparsed"] if count is None else ["unlinked"] * count)]


_FIRST_PERSON = re.compile(r"\bi\b")
_AT_NULL_COUNT = re.compile(r"^Found \d+ linkages?\b.*?(?: at null count (\d+))?$", re.MULTILINE)
_OPTIONS = ("-limit=1", "-graphics=0", "-panic=0", "-spell=0")


def _one_line_each(text: str) -> list[str]:
    """Sentences from their first word on: what begins with ! or % would be a command."""
    found = []
    for first, last in sentences(text):
        start = next((start for start, _ in words(text[first:last])), None)
        if start is not None:
            found.append(" ".join("".join(c if c.isprintable() else " " for c in text[first + start:last]).split()))
    return found


@lru_cache(maxsize=REMEMBERED)
def _unlinked(sentence: str, seconds: float) -> int | None:
    """How many words of a sentence are left over; None where it was not parsed."""
    command = shutil.which("link-parser")
    if command is None:
        raise MissingExtra("this needs the command link-parser, which was not found; install it with: apt install link-grammar")
    try:
        told = subprocess.run([command, "en", *_OPTIONS], input=f"{sentence}\n", capture_output=True, timeout=seconds,
                              encoding="utf-8", errors="replace", check=False).stdout
    except subprocess.TimeoutExpired:
        return None
    found = _AT_NULL_COUNT.search(told)
    return int(found[1] or 0) if found else None


# --- by name ----------------------------------------------------------------------------------------------------------


def grammar_of(given: Any) -> Grammar | None:
    """A checker of grammar by its name, or one as it is; None for none."""
    if given is None or given == "none":
        return None
    if isinstance(given, str):
        if given in ("harper", "link-grammar"):
            return Harper() if given == "harper" else LinkGrammar()
    elif isinstance(given, Grammar) and not isinstance(given, type):
        return given
    known = near(given, GRAMMARS) if isinstance(given, str) else ""
    raise ValueError(f"grammar must be one of {', '.join(GRAMMARS)}, or an object with a name that takes a text and lists its "
                     f"errors, got {given!r}{known}")
