"""Where words that may stand for others come from, as users write it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from whytrust.core import near
from whytrust.language import SOURCES as SOURCES
from whytrust.language.masked import MaskedWords
from whytrust.language.thesaurus import Thesaurus
from whytrust.language.vectors import NearestWords, WordVectors
from whytrust.language.wordnet import WordNet
from whytrust.language.written import Candidates, Written, fit_to_stand

_MADE: dict[str, Callable[[str], Candidates]] = {
    "thesaurus": lambda _: Thesaurus.roget(), "pairs": Thesaurus.pairs, "wordnet": lambda folder: WordNet(folder or None),
    "vectors": lambda file: NearestWords(WordVectors.open(file)), "masked": MaskedWords.load}
_ALONE = ("thesaurus", "wordnet")  # need no folder


@dataclass(frozen=True)
class Several:
    """The words of several sources, all of the first before those of the next, none twice."""

    sources: tuple[Candidates, ...]

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return ", then ".join(source.name for source in self.sources)

    @property
    def vectors(self) -> WordVectors | None:
        """The word vectors of the first source that has some."""
        return next((found for source in self.sources if (found := getattr(source, "vectors", None)) is not None), None)

    def __call__(self, text: Written, place: int) -> list[str]:
        """Asked one after the other."""
        kept = dict[str, str]()
        for word in (word for source in self.sources for word in source(text, place)):
            kept.setdefault(word.lower(), word)
        return list(kept.values())


@dataclass(frozen=True)
class OwnWords:
    """A function of the user's, (text, place) -> words, best first."""

    words: Callable[[Written, int], Sequence[str]]

    @property
    def name(self) -> str:
        """What the function is called."""
        return str(getattr(self.words, "__name__", type(self.words).__name__))

    def __call__(self, text: Written, place: int) -> list[str]:
        """The function's words in its order, without what cannot stand there."""
        try:
            words = self.words(text, place)
        except Exception as error:  # whatever it raises, whose fault it is must be told
            raise ValueError(f"candidates {self.name} failed on {text.words[place]!r}: {type(error).__name__}: "
                             f"{error}") from error
        return fit_to_stand(words, text.words[place], self.name)


def candidates_of(given: Any = None) -> Candidates:
    """A source by its name, as an object, as a function (text, place) -> words, or a list of such; None is the thesaurus."""
    if given is None:
        return candidates_of("thesaurus")
    if isinstance(given, list | tuple):
        if not given:
            raise ValueError(f"candidates must come from somewhere: {', '.join(SOURCES)}; got an empty list")
        return candidates_of(given[0]) if len(given) == 1 else Several(tuple(candidates_of(one) for one in given))
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, WordVectors):
        return NearestWords(given)
    if not callable(given) or isinstance(given, type):
        raise TypeError(f"candidates must be a name ({', '.join(SOURCES)}), an object or a function (text, place) -> words, or "
                        f"a list of such, got {given!r:.60}")
    made: Candidates = given if isinstance(getattr(given, "name", None), str) else OwnWords(given)
    return made


def describe(source: Candidates) -> str:
    """A few words for a reader: where candidates came from."""
    return source.name


def _named(given: str) -> Candidates:
    kind, _, place = given.partition(":")
    if kind not in _MADE:
        raise ValueError(f"candidates must be among {', '.join(SOURCES)}, got {given!r}{near(kind, _MADE)}")
    if kind == "thesaurus" and place:
        raise ValueError(f"the thesaurus has no other place, got {given!r}; for a list of your own write 'pairs:{place}'")
    if not place and kind not in _ALONE:
        usage = next(name for name in SOURCES if name.startswith(kind))
        raise ValueError(f"candidates {kind!r} must say where its words are: {usage}, got {given!r}")
    return _MADE[kind](place)
