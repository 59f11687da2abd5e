"""What a word swap must keep: each rule says of candidates for one place which of them may stand there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from whytrust.core import near
from whytrust.language import sentences
from whytrust.language.stop_words import STOP_WORDS
from whytrust.language.tags import tag
from whytrust.language.vectors import WordVectors
from whytrust.language.written import Candidates, Written, fit_to_stand
from whytrust.swapping import RULES


@runtime_checkable
class Constraint(Protocol):
    """Which of several words may stand at one place of a text?"""

    @property
    def name(self) -> str:
        """As users write it."""
        ...

    def allows(self, original: Written, current: Written, place: int, words: Sequence[str]) -> list[bool]:
        """One answer a word; `current` is the original with the swaps that were made so far."""
        ...


@dataclass(frozen=True)
class NoRepeat:
    """No place is swapped twice: else a row of harmless steps leads anywhere."""

    name: ClassVar[str] = "repeat"

    def allows(self, original: Written, current: Written, place: int, words: Sequence[str]) -> list[bool]:
        """All, where the word is still the original's."""
        return [current.words[place] == original.words[place]] * len(words)


@dataclass(frozen=True)
class NoStopWords:
    """Words like "not", "the" and "but" stay: they carry the sentence, and few words can stand for them."""

    words: frozenset[str] = STOP_WORDS
    name: ClassVar[str] = "stop_words"

    def allows(self, original: Written, current: Written, place: int, words: Sequence[str]) -> list[bool]:
        """None where the word is a stop word; else all that are none."""
        swappable = current.words[place].lower() not in self.words
        return [swappable and word.lower() not in self.words for word in words]


@dataclass(frozen=True)
class WordDistance:
    """The word must be near the original's by word vectors: a cosine of at least `least`.

    Words that the vectors do not have are refused. Vectors made from what stands near what put opposites together; those that
    were counter-fitted (Mrkšić et al. 2016) do so less.
    """

    vectors: WordVectors
    least: float = 0.5
    name: ClassVar[str] = "word_distance"

    def __post_init__(self) -> None:
        """Refuse what is no cosine."""
        _check_share("least", self.least)

    def allows(self, original: Written, current: Written, place: int, words: Sequence[str]) -> list[bool]:
        """By the cosine to the original's word."""
        near_by = [self.vectors.similarity(original.words[place], word) for word in words]
        return [cosine is not None and cosine >= self.least for cosine in near_by]


@dataclass(frozen=True)
class SamePartOfSpeech:
    """In its place the word must be of the same part of speech as the original's; with `noun_or_verb` these two count as one.

    By a tagger that sees the whole sentence. It makes mistakes, more of them in lower-case and in broken sentences.
    """

    noun_or_verb: bool = True
    name: ClassVar[str] = "part_of_speech"

    def allows(self, original: Written, current: Written, place: int, words: Sequence[str]) -> list[bool]:
        """By tagging each swapped text."""
        own = self._kind(original, place)
        return [self._kind(current.swap(place, word), place) == own for word in words]

    def _kind(self, text: Written, place: int) -> str:
        # A tagger looks a few words around; a whole document for each of fifty candidates would take minutes.
        first = max(place - NEIGHBOURS, 0)
        found = tag(text.words[first:place + NEIGHBOURS + 1])[place - first]
        return "NOUN" if self.noun_or_verb and found == "VERB" else found


NEIGHBOURS = 12
"""Words on either side that a tagger is shown."""


@dataclass(frozen=True)
class SentenceSimilarity:
    """What stands around the word must mean the same as it did in the original: an angular similarity of at least `least`.

    Of a window of so many words, by a sentence encoder: 1 − angle / π, the cosine .88 at .84. Encoders hold opposites for
    alike ("a good film", "a bad film"): this keeps the topic more than the meaning.
    """

    least: float = 0.84
    window: int = 15
    encoder: str = sentences.USUAL
    name: ClassVar[str] = "sentence_similarity"
    costly: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse what is no similarity, or no window."""
        _check_share("least", self.least)
        if isinstance(self.window, bool) or not isinstance(self.window, int) or self.window < 1:
            raise ValueError(f"window must be a whole number of words >= 1, got {self.window!r}")

    def allows(self, original: Written, current: Written, place: int, words: Sequence[str]) -> list[bool]:
        """All candidates are encoded in one batch."""
        if not words:
            return []
        texts = [original.window(place, self.window), *(current.swap(place, word).window(place, self.window) for word in words)]
        vectors = sentences.encoder(self.encoder)(texts)
        angles = np.arccos(np.clip(vectors[1:] @ vectors[0], -1, 1))
        return [bool(alike) for alike in 1 - angles / math.pi >= self.least]


@dataclass(frozen=True)
class Own:
    """A rule of the user's: a function of the original and the swapped text that says whether that may stand."""

    rule: Callable[[str, str], bool]

    @cached_property
    def name(self) -> str:
        """What the function is called."""
        return str(getattr(self.rule, "__name__", type(self.rule).__name__))

    def allows(self, original: Written, current: Written, place: int, words: Sequence[str]) -> list[bool]:
        """The function's word, text by text."""
        return [self._says(original.text, current.swap(place, word).text) for word in words]

    def _says(self, original: str, swapped: str) -> bool:
        try:
            said = self.rule(original, swapped)
        except Exception as error:  # whatever it raises, whose fault it is must be told
            raise ValueError(f"constraint {self.name} failed on {swapped[:60]!r}: {type(error).__name__}: {error}") from error
        if not isinstance(said, bool | np.bool_ | int | np.integer):
            raise TypeError(f"constraint {self.name} must return True or False for (original, swapped), got "
                            f"{said!r:.60}; end it with a return, of bool(…) where it is something else")
        return bool(said)


NAMES: dict[str, Callable[[], Constraint]] = {
    "repeat": NoRepeat, "stop_words": NoStopWords, "part_of_speech": SamePartOfSpeech,
    "sentence_similarity": SentenceSimilarity}


def constraints_of(given: Any = None, vectors: WordVectors | None = None) -> tuple[Constraint, ...]:
    """Constraints by name, as objects, as functions (original, swapped) -> bool, or a list of such; None is all of the usual.

    With word vectors the words must be near by those, too.
    """
    if given is None:
        usual = [NAMES["repeat"](), NAMES["stop_words"](), *(() if vectors is None else (WordDistance(vectors),)),
                 NAMES["part_of_speech"](), NAMES["sentence_similarity"]()]
        return tuple(usual)
    several = given if isinstance(given, list | tuple) else [given]
    found = tuple(_constraint(one, vectors) for one in several)
    # Whatever else is asked for, a level is a number of words changed: a place that is swapped twice would count twice.
    return found if any(isinstance(one, NoRepeat) for one in found) else (NoRepeat(), *found)


def _constraint(one: Any, vectors: WordVectors | None) -> Constraint:
    if one == WordDistance.name:
        if vectors is None:
            raise ValueError("constraint 'word_distance' needs word vectors; pass vectors=, a file of them in text format")
        return WordDistance(vectors)
    if isinstance(one, str):
        if one not in NAMES:
            raise ValueError(f"constraints must be among {', '.join(RULES)}, got {one!r}{near(one, RULES)}")
        return NAMES[one]()
    if isinstance(one, Constraint) and not isinstance(one, type):
        return one
    if callable(one) and not isinstance(one, type):
        return Own(one)
    raise TypeError("a constraint must be a name, an object with name and allows, or a function (original text, swapped text) "
                    f"-> bool, got {one!r:.60}")


def allowed(constraints: Sequence[Constraint], original: Written, current: Written, place: int,
            words: Sequence[str]) -> list[str]:
    """The words that every constraint allows at this place; what one has refused is not asked of the next."""
    left = list(words)
    for constraint in constraints:
        if not left:
            break
        answers = constraint.allows(original, current, place, left)
        if not isinstance(answers, Sequence | np.ndarray) or len(answers) != len(left):
            came = len(answers) if isinstance(answers, Sequence | np.ndarray) else type(answers).__name__
            raise ValueError(f"constraint {constraint.name!r} must give one answer a word: expected {len(left)}, got {came}")
        left = [word for word, allowed in zip(left, answers, strict=True) if allowed]
    return left


def proposed(source: Candidates, constraints: Sequence[Constraint], original: Written, current: Written,
             place: int) -> list[str]:
    """What may stand at a place of the current text: the source's words that every constraint allows.

    What rules a place out whatever the word is asked first, for looking candidates up may cost a pass through a model.
    """
    return allowed(constraints, original, current, place, looked_up(source, constraints, original, current, place))


AT_ONCE = 4
"""Words that are held against costly constraints together, where one that passes is enough."""


def first_allowed(constraints: Sequence[Constraint], original: Written, current: Written, place: int,
                  words: Sequence[str]) -> str | None:
    """The first of the words that every constraint allows; no more of them are looked at than it takes."""
    for start in range(0, len(words), AT_ONCE):
        some = allowed(constraints, original, current, place, words[start:start + AT_ONCE])
        if some:
            return some[0]
    return None


def by_cost(constraints: Sequence[Constraint]) -> tuple[list[Constraint], list[Constraint]]:
    """(constraints that are cheap to ask, those that run a model of their own)."""
    costly = [one for one in constraints if getattr(one, "costly", False)]
    return [one for one in constraints if one not in costly], costly


def looked_up(source: Candidates, constraints: Sequence[Constraint], original: Written, current: Written,
              place: int) -> list[str]:
    """The source's words for a place, not yet held against the constraints; none where no word may stand there."""
    early = [one for one in constraints if isinstance(one, NoRepeat | NoStopWords)]
    open_to_all = all(one.allows(original, current, place, [""])[0] for one in early)
    return fit_to_stand(source(current, place), current.words[place], source.name) if open_to_all else []


def _check_share(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1 <= value <= 1:
        raise ValueError(f"{name} must be a similarity from -1 to 1, got {value!r}")
