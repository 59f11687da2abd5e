"""Which part of speech is a word in its sentence?

textblob's tagger gives each word its most frequent tag, whatever stands around it; a few rules mend what the neighbours decide
("to film" is a verb, "was made" a participle). It is for English, and errs more often than taggers that read the sentence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from whytrust.core import need
from whytrust.language.forms import can_be
from whytrust.language.written import Written

UNIVERSAL = {
    **dict.fromkeys(("NN", "NNS", "NNP", "NNPS"), "NOUN"),
    **dict.fromkeys(("MD", "VB", "VBD", "VBG", "VBN", "VBP", "VBZ"), "VERB"),
    **dict.fromkeys(("JJ", "JJR", "JJS"), "ADJ"), **dict.fromkeys(("RB", "RBR", "RBS", "WRB"), "ADV"),
    **dict.fromkeys(("PRP", "PRP$", "WP", "WP$", "EX"), "PRON"), **dict.fromkeys(("DT", "PDT", "WDT"), "DET"),
    "IN": "ADP", "CD": "NUM", "CC": "CONJ", **dict.fromkeys(("POS", "RP", "TO"), "PRT")}
"""Penn Treebank's tags in the twelve universal ones (Petrov et al. 2012); all others are X, punctuation does not occur."""
_CLITIC = re.compile(r"(?i)(?<=\w)(n['’]t|['’](?:s|m|re|ve|ll|d))$")
_HAVE_OR_BE = {"have", "has", "had", "having", "'ve", "be", "am", "is", "are", "was", "were", "been", "being", "'s", "'re",
               "'m"}
_DO = {"do", "does", "did"}
_SUBJECTS = {"VBP": {"i", "you", "we", "they", "who"}, "VBZ": {"he", "she", "it", "who"}}
_VERB_FOR = {"NN": "VBP", "NNS": "VBZ"}
_NEIGHBOURS = 25
_SENTENCE_END = re.compile(r"[.!?…:;\n]")


def tag(words: Sequence[str]) -> list[str]:
    """The universal part of speech of each word of a sentence."""
    return [UNIVERSAL.get(one, "X") for one in _penn(tuple(words))]


def penn(words: Sequence[str]) -> list[str]:
    """The Penn Treebank tag of each word of a sentence: finer, a plural is told from a singular."""
    return list(_penn(tuple(words)))


def penn_at(text: Written, place: int) -> str:
    """The Penn Treebank tag of one word of a text, by the sentence that it stands in, or what is near in a very long one."""
    first = last = place
    while place - first < _NEIGHBOURS and first and not _between(text, first - 1):
        first -= 1
    while last - place < _NEIGHBOURS and last + 1 < len(text) and not _between(text, last):
        last += 1
    return _penn(text.words[first:last + 1])[place - first]


def _between(text: Written, place: int) -> bool:
    """Does a sentence end between a word and the next?"""
    return _SENTENCE_END.search(text.text, text.spans[place][1], text.spans[place + 1][0]) is not None


@lru_cache(maxsize=1 << 14)
def _penn(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words:
        return ()
    tokens, places = list[str](), list[int]()
    for word in words:
        places.append(len(tokens))
        piece = _CLITIC.search(word)
        tokens += [word] if piece is None else [word[:piece.start()], piece[0].replace("’", "'")]
    tagger = need("textblob.en", "language")
    tags = [found for _, found in tagger.tag(" ".join(_plain(tokens, tagger.lexicon)), tokenize=False)]
    mended = _mended([token.lower() for token in tokens], tags)
    return tuple(mended[place] for place in places)


def _plain(tokens: list[str], lexicon: Any) -> list[str]:
    """Words that are capitalised because a sentence begins or somebody shouts are no names."""
    shouted = len(tokens) > 1 and all(token == token.upper() for token in tokens)
    return [token.lower() if lexicon.get(token.lower()) and (i == 0 or shouted or (token.isupper() and not lexicon.get(token)))
            else token for i, token in enumerate(tokens)]


def _mended(tokens: list[str], tags: list[str]) -> list[str]:
    """Tags that the neighbours decide; from left to right, so that a mended tag counts for the next."""
    tags = list(tags)
    for i in range(1, len(tags)):
        back = i - 2 if tags[i - 1] == "RB" and i > 1 else i - 1  # "did not jump", "was never made"
        before, next_tag = tags[i - 1], tags[i + 1] if i + 1 < len(tags) else ""
        if tags[back] in ("TO", "MD") or tokens[back] in _DO:
            if tags[i] in ("NN", "VBP", "VBD", "VBN") and can_be(tokens[i], "VB"):
                tags[i] = "VB"
        elif tags[i] == "VBD" and tokens[back] in _HAVE_OR_BE:
            tags[i] = "VBN"
        elif tags[i] == "VBN" and before in ("PRP", "NNP") and tokens[back] not in _HAVE_OR_BE:
            tags[i] = "VBD"
        elif tags[i] == "VBG" and before in ("DT", "PRP$"):
            tags[i] = "JJ" if next_tag in ("NN", "NNS", "NNP", "JJ") else "NN"
        elif tags[i] in _VERB_FOR:
            verb = _VERB_FOR[tags[i]]
            if tokens[back] in _SUBJECTS[verb] and can_be(tokens[i], verb):
                tags[i] = verb
    return tags
