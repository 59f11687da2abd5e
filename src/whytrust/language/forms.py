"""A word in the form of the one that it is to replace: its case, and its inflection.

By dictionaries alone, lemminflect's and textblob's: where these do not know the form, there is none, for a guessed one may be
wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Set
from functools import lru_cache

from whytrust.core import need
from whytrust.language.stop_words import STOP_WORDS
from whytrust.language.written import is_one_word

MOST = 50
"""Candidates for one word."""
TAGS = ("NN", "NNS", "VB", "VBP", "VBZ", "VBN", "VBG", "VBD", "JJ", "JJR", "JJS", "RB", "RBR", "RBS")
"""Penn Treebank's tags of words that have forms, as they are tried where a tagger's does not fit the word."""
_PARTS = {"N": "NOUN", "V": "VERB", "J": "ADJ", "R": "ADV"}
_BASE = ("NN", "VB", "JJ", "RB")
_SAME_AS = {"VBN": "VBD", "VBP": "VB"}  # where the dictionary has no form of its own
_CLITIC = re.compile(r"(?i)(?<=\w)['’](?:s|m|re|ve|ll|d)$")
Opposites = Callable[[str], Set[str]]
"""What is known to mean the opposite of a word."""


def like(word: str, pattern: str, tag: str, base: bool = False) -> str | None:
    """The word as it would stand in the pattern's place, where the pattern has that Penn tag; None where it has no such form.

    A word that already has the form stays as it is; with `base` it is a dictionary's entry, and "found" is to set up. Of words
    that have no forms, and of two that no dictionary here knows (names, another language), only the case changes.
    """
    if not part_of(tag):
        return in_case(word, pattern)
    known = _reading(pattern.lower(), tag)
    form = _inflected(word.lower(), known or tag, base)
    if form is None and known is None and not base and not any(_entries(word.lower(), part) for part in _PARTS.values()):
        form = word
    return None if form is None else in_case(form, pattern)


def stem_of(word: str) -> tuple[str, str]:
    """A word and what hangs on it: ("film", "'s"), for "the film's end" must become "the movie's end"."""
    hanging = _CLITIC.search(word)
    return (word, "") if hanging is None else (word[:hanging.start()], hanging[0])


def in_case(word: str, pattern: str) -> str:
    """The word in lower case, Capitalised or in CAPITALS as the pattern is; as it is where the pattern is neither."""
    if pattern.islower():
        return word.lower()
    if pattern.isupper() and len(pattern) > 1:
        return word.upper()
    if pattern[:1].isupper() and (len(pattern) == 1 or pattern[1:].islower()):
        return word[:1].upper() + word[1:].lower()
    return word


def fitting(words: Iterable[str], pattern: str, tag: str, most: int = MOST, base: bool = False,
            opposites: Opposites | None = None) -> list[str]:
    """The words that may stand for the pattern, in their order, each in its form: none twice, not itself, no stop words."""
    stem, hanging = stem_of(pattern)
    own, kept = stem.lower(), dict[str, str]()
    against = {base for word in lemmas(own) for other in opposites(word) for base in lemmas(other)} if opposites else set()
    for word in words:
        form = like(word, stem, tag, base)
        if form is None or form.lower() == own or form.lower() in kept or not _may_stand(form, hanging):
            continue
        if not against or not against & lemmas(word.lower()):
            kept[form.lower()] = form + hanging
        if len(kept) == most:
            break
    return list(kept.values())


def _may_stand(form: str, hanging: str) -> bool:
    return (form.lower() not in STOP_WORDS and any(c.isalpha() for c in form) and not any(c.isdigit() for c in form)
            and is_one_word(form + hanging))


# --- the dictionary ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 16)
def lemmas(word: str) -> frozenset[str]:
    """The dictionary's entries that a word in lower case can be a form of, and itself."""
    found = need("lemminflect", "language").getAllLemmas(word)
    return frozenset({word, *(lemma for several in found.values() for lemma in several)})


def readings(word: str, tag: str) -> list[tuple[str, str]]:
    """(entry, part of speech) of a word with that tag; where the tag does not fit the word, by the first one that does."""
    known = _reading(word, tag)
    return [] if known is None else [(lemma, part_of(known)) for lemma in _entries(word, part_of(known))
                                     if word in _spellings(lemma, known)]


def can_be(word: str, tag: str) -> bool:
    """Is the word in lower case a form with that tag of any entry?"""
    return any(word in _spellings(lemma, tag) for lemma in _entries(word, part_of(tag)))


def part_of(tag: str) -> str:
    """NOUN, VERB, ADJ or ADV; nothing for names and for words without forms."""
    return "" if tag.startswith("NNP") or tag not in TAGS else _PARTS[tag[0]]


@lru_cache(maxsize=1 << 14)
def _reading(word: str, tag: str) -> str | None:
    """The tag, if the word can have it, or the first of its part of speech, or of all, that it can have."""
    part = part_of(tag)
    return next((one for one in (tag, *(t for t in TAGS if part_of(t) == part), *TAGS) if can_be(word, one)), None)


@lru_cache(maxsize=1 << 16)
def _entries(word: str, part: str) -> tuple[str, ...]:
    """The entries of that part of speech that the word can be a form of, the likeliest first."""
    if not part:
        return ()
    dictionary = need("lemminflect", "language")
    own = (word,) if dictionary.getAllInflections(word, part) else ()
    found = tuple(dict.fromkeys((*dictionary.getLemma(word, part, lemmatize_oov=False), *own)))
    return found or _more_entries(word, part)


@lru_cache(maxsize=1 << 16)
def _spellings(lemma: str, tag: str) -> tuple[str, ...]:
    """How the form of an entry with that tag is written, the usual way first."""
    found = need("lemminflect", "language").getAllInflections(lemma, part_of(tag))
    return tuple(found.get(tag) or found.get(_SAME_AS.get(tag, ""), ())) if found else _more_spellings(lemma, tag)


@lru_cache(maxsize=1 << 16)
def _inflected(word: str, tag: str, base: bool) -> str | None:
    """The word in the form with that tag, as it is usually written."""
    entries = _entries(word, part_of(tag))
    # A plural that is an entry of its own ("movies") is still the plural of another.
    likeliest = entries[:1] if tag == "NN" else entries
    if base:
        entries = (word,) if tag[:1] != "N" or entries[:1] == (word,) else ()
    elif any(word in _spellings(lemma, tag) and (word != lemma or tag != "NNS") for lemma in likeliest):
        return word
    return next((form for lemma in entries for form in _spellings(lemma, tag)[:1] if _written(form, lemma, tag)), None)


def _written(form: str, lemma: str, tag: str) -> bool:
    """The dictionary makes plurals of what is not counted, too ("informations"): those must have been seen somewhere."""
    return tag != "NNS" or form == lemma or lemma not in _spellings(lemma, tag) or _usual(form) is not None


# --- a second, smaller dictionary: the tagger's, for the dictionary of forms knows neither thrillers nor anything goofy ------


def _usual(word: str) -> str | None:
    """The tag that the word usually has, if the tagger knows it."""
    found = need("textblob.en", "language").lexicon.get(word)
    return None if found is None or len(word) < 3 else str(found)


def _more_entries(word: str, part: str) -> tuple[str, ...]:
    usual = _usual(word)
    if part == "NOUN" and usual == "NNS":
        single = str(need("textblob.en.inflect", "language").singularize(word))
        return (single,) if _usual(single) == "NN" else ()
    return (word,) if usual in _BASE and part_of(usual) == part else ()


def _more_spellings(lemma: str, tag: str) -> tuple[str, ...]:
    usual = _usual(lemma)
    if tag == "NNS" and usual == "NN":
        several = str(need("textblob.en.inflect", "language").pluralize(lemma))
        return (several,) if _usual(several) == "NNS" else ()
    return (lemma,) if usual == tag and tag in _BASE else ()
