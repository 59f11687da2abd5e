"""How fluent is a text? Its perplexity under a language model: how many words the model wavers between at each place.

Numbers are comparable only under one model: a trigram model counts words, a causal one pieces of words. Perplexity takes the
usual for the fluent: a rare name costs as much as a blunder.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from whytrust import files
from whytrust.backends.language import CausalModel
from whytrust.core import MissingExtra, near
from whytrust.domains.text import sentences, words
from whytrust.language.joined import joined, writable

FLUENCIES = {
    "trigram": "a trigram model of spoken and written English, in the pocketsphinx package; fast",
    "smollm2": "SmolLM2-135M, a small causal language model, out of its package",
    "causal:FOLDER_OR_NAME": "any causal language model, gpt2 for example",
    "none": "no perplexity",
}
REMEMBERED = 1 << 14
"""Texts whose perplexity is kept, for an original is asked about with each of its changes."""


@runtime_checkable
class Fluency(Protocol):
    """How many words does a language model waver between at each place of a text?"""

    @property
    def name(self) -> str:
        """A few words for a reader: under which model."""
        ...

    def __call__(self, texts: Sequence[str]) -> list[float | None]:
        """The perplexity of each text, at least 1; None where a text has nothing to predict."""
        ...


# --- words in threes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trigram:
    """How surprising is each word after the two before it, and the end of each sentence?

    By the model in the pocketsphinx package (72,000 words of English in lower case), or an ARPA file. A word it does not know
    is taken for one as rare as its rarest (`unknown`, a probability): left out, it would make a text more fluent, and swaps to
    words that nobody uses would pay. What lies further apart than three words goes unnoticed.
    """

    file: str | None = None
    unknown: float = 3e-10

    def __post_init__(self) -> None:
        """Refuse what is no probability."""
        if not 0 < self.unknown < 1:
            raise ValueError(f"the probability of unknown words must lie between 0 and 1, got {self.unknown!r}")

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return "a trigram model" if self.file is None else f"the language model {Path(self.file).name}"

    def __call__(self, texts: Sequence[str]) -> list[float | None]:
        """exp of the mean negative log-probability of a word, the ends of sentences included."""
        return [_perplexity(*self._log_probability(text)) for text in texts]

    def unknown_share(self, text: str) -> float:
        """Which share of a text's words does the model not know? 0 for a text without words."""
        ngrams = _ngrams(self.file)
        found = [ngrams.knows(word) for sentence in _read(text, ngrams) for word in sentence]
        return 1 - sum(found) / len(found) if found else 0.0

    def _log_probability(self, text: str) -> tuple[float, int]:
        ngrams = _ngrams(self.file)
        rare, total, count = math.log(self.unknown), 0.0, 0
        for sentence in _read(text, ngrams):
            before = ["<s>"]
            for word in [*sentence, "</s>"]:
                total += ngrams.log_probability(word, before) if ngrams.knows(word) else rare
                before.append(word)
            count += len(sentence) + 1
        return total, count


@dataclass(frozen=True)
class _NGrams:
    """A loaded model; pocketsphinx counts in whole steps of a logarithm of its own."""

    model: Any
    steps: Any

    def log_probability(self, word: str, before: Sequence[str]) -> float:
        """Of a word after others; it looks back as far as it goes."""
        nearest_first = list(reversed(before))[:self.model.size() - 1]
        return float(self.steps.log_to_ln(self.model.prob([word, *nearest_first])))

    def knows(self, word: str) -> bool:
        """Has it ever seen the word?"""
        return bool(self.model.prob([word]) > self.steps.get_zero())


@cache
def _ngrams(file: str | None) -> _NGrams:
    library = _pocketsphinx()
    if file is not None:
        _check_arpa(Path(file))
    place = file or library.get_model_path("en-us/en-us.lm.bin")
    with files.telling(place, "a language model in ARPA format"), files.hushed():
        return _NGrams(library.NGramModel.readfile(place), library.LogMath())


def _pocketsphinx() -> Any:
    try:
        return importlib.import_module("pocketsphinx")
    except ImportError as error:
        raise MissingExtra(f"the trigram model comes with pocketsphinx, which could not be imported ({error}); install it "
                           "with: pip install --no-deps pocketsphinx==5.1.1") from error


def _read(text: str, ngrams: _NGrams) -> Iterator[list[str]]:
    """The words of each sentence that has some, as the model writes them."""
    text = joined(text).lower().replace("’", "'")
    for first, last in sentences(text):
        found = [piece for start, end in words(text[first:last]) for piece in _pieces(text[first:last][start:end], ngrams)]
        if found:
            yield found


def _pieces(word: str, ngrams: _NGrams) -> list[str]:
    """A word the model knows; or else the pieces of a compound, without an 's that was put to a name."""
    if ngrams.knows(word):
        return [word]
    return [piece if ngrams.knows(piece) else piece.removesuffix("'s") for piece in re.split(r"[-‐‑]", word)]


def _check_arpa(file: Path) -> None:
    """Refuse a file that is not whole: the library would not raise but end the process."""
    lines = [line.strip() for line in files.text(file, "a language model, a text file in ARPA format").splitlines()]
    told = {int(n): int(count) for line in lines for n, count in re.findall(r"^ngram (\d+) ?= ?(\d+)$", line)}
    held, order = dict.fromkeys(told, 0), 0
    for line in lines:
        title = re.fullmatch(r"\\(\d+)-grams:", line)
        if title or line == "\\end\\":
            order = int(title[1]) if title else 0
        elif order in held and len(line.split()) in (order + 1, order + 2):
            held[order] += 1
    if not told or told != held or "\\data\\" not in lines or "\\end\\" not in lines:
        raise ValueError(f"the language model must be a whole text file in ARPA format, {file} promises {told or 'nothing'} "
                         f"(n: n-grams) and holds {held or 'nothing'}")


# --- causal models ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Causal:
    """How surprising is each piece of a word to a causal language model that has read all before it?

    `model` is a folder, a name on the Hugging Face hub ("gpt2" is what papers often ask), or "smollm2". It reads the text as it
    is, tokenised or not. Loaded once a process.
    """

    model: str = "smollm2"

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return "SmolLM2-135M" if self.model == "smollm2" else self.model

    def __call__(self, texts: Sequence[str]) -> list[float | None]:
        """exp of the mean negative log-probability of a token."""
        model, seen = _causal(self.model)
        asked = [writable(text) for text in texts]
        found = {text: seen[text] for text in asked if text in seen}
        new = [text for text in dict.fromkeys(asked) if text not in found]
        found.update(zip(new, (_perplexity(*told) for told in model.log_probabilities(new)), strict=True))
        if len(seen) + len(new) > REMEMBERED:
            seen.clear()
        seen.update((text, found[text]) for text in new[:REMEMBERED])
        return [found[text] for text in asked]


@cache
def _causal(name: str) -> tuple[CausalModel, dict[str, float | None]]:
    """A model, and what it said of the texts it has seen."""
    return CausalModel.load(name), {}


def _perplexity(log_probability: float, count: int) -> float | None:
    return math.exp(-log_probability / count) if count else None


# --- by name ----------------------------------------------------------------------------------------------------------


def fluency_of(given: Any) -> Fluency | None:
    """A measure of fluency by its name, or one as it is; None for none."""
    if given is None or given == "none":
        return None
    if isinstance(given, str):
        kind, _, rest = given.partition(":")
        if given == "trigram":
            return Trigram()
        if given == "smollm2" or (kind == "causal" and rest.strip()):
            return Causal(rest.strip() or given)
    elif isinstance(given, Fluency) and not isinstance(given, type):
        return given
    known = near(given, FLUENCIES) if isinstance(given, str) else ""
    raise ValueError(f"fluency must be one of {', '.join(FLUENCIES)}, or an object with a name that takes texts and gives a "
                     f"perplexity for each, got {given!r}{known}")
