"""Words that a masked language model would write in a word's place."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from whytrust.backends.language import MaskedModel
from whytrust.language.forms import MOST, fitting, stem_of
from whytrust.language.tags import penn_at
from whytrust.language.written import Written

_GUESSES = 4
"""Times as many are asked for as are wanted: many are stop words, or have another form."""


@dataclass(frozen=True, eq=False)
class MaskedWords:
    """What a masked language model would write there, likeliest first, in the word's case and form.

    It reads the text around the word and not the word: what fits there may well mean the opposite.
    """

    model: Any
    tokenizer: Any
    k: int = MOST
    source: str | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot fill gaps."""
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ValueError(f"k must be a whole number of words >= 1, got {self.k!r}")
        MaskedModel(self.model, self.tokenizer, self.source)

    @classmethod
    def load(cls, name: str, k: int = MOST) -> MaskedWords:
        """By a folder made with save_pretrained, or a name on the Hugging Face hub."""
        found = MaskedModel.load(name)
        return cls(found.model, found.tokenizer, k, found.source)

    def __reduce__(self) -> tuple[Any, ...]:
        """Where it was loaded from rather than its weights."""
        return (type(self).load, (self.source, self.k)) if self.source else (type(self), (self.model, self.tokenizer, self.k))

    @property
    def name(self) -> str:
        """A few words for a reader."""
        return self._model.name

    def __call__(self, text: Written, place: int) -> list[str]:
        """The model's words for this place."""
        word, start = text.words[place], text.spans[place][0]
        guesses = self._model.guesses(text.text, start, start + len(stem_of(word)[0]), most=_GUESSES * self.k)
        return fitting(guesses, word, penn_at(text, place), min(self.k, MOST))

    @cached_property
    def _model(self) -> MaskedModel:
        return MaskedModel(self.model, self.tokenizer, self.source)
