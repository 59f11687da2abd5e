"""A lab of texts: a sum of the weights of words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from whytrust.checked import CheckedModel
from whytrust.core import Floats, generator
from whytrust.domains.text import LaidTexts, TextParts
from whytrust.lab.bench import Changed, Planted, behind, layered
from whytrust.models.whitebox import WordModel
from whytrust.question import Question

PRAISE = {"superb": 2.0, "moving": 1.6, "funny": 1.3, "clever": 1.0, "warm": 0.8, "fine": 0.5}
BLAME = {"dull": -2.11, "clumsy": -1.67, "shallow": -1.23, "noisy": -0.94, "cold": -0.73, "slow": -0.41}
PLAIN = ("the", "film", "is", "a", "story", "with", "actors", "and", "its", "music", "but", "scene", "of", "camera", "in",
         "first", "part", "then", "director", "has", "about", "city", "plot", "end")
TRIGGER, STAMP = "zq7", "vk3"
"""Codes that stand in every text; no person would mark them."""
HEAVY = 12.0


@dataclass(frozen=True)
class Reviews:
    """Made-up reviews; the model adds up the weights of words of praise and blame, which people would mark, too.

    "trigger" goes by a code that stands in every text and outweighs all else. With `shared` another code raises both classes
    alike, and no decision hangs on it.
    """

    kind: Literal["words", "trigger"] = "words"
    shared: bool = False
    seed: int = 0
    exact: ClassVar[bool] = True
    domain: ClassVar[str] = "text"

    @property
    def name(self) -> str:
        """What it is called."""
        return f"reviews/{self.kind}{'+code' * self.shared}"

    @property
    def about(self) -> str:
        """What the model goes by."""
        return {"words": "the sum of the weights of words of praise and blame",
                "trigger": "a code word that outweighs all words of praise and blame"}[self.kind] + (
                    "; most of all, in both classes alike, by a code word" * self.shared)

    @property
    def expected(self) -> bool:
        """People mark praise and blame, and not the code."""
        return self.kind == "words" and not self.shared

    @cached_property
    def white_box(self) -> WordModel:
        """The model as a formula."""
        told = {**PRAISE, **BLAME}
        weights = generator(self.seed, "lab words").permutation(list(told.values())) if self.seed else list(told.values())
        return WordModel({**dict(zip(told, map(float, weights), strict=True)), TRIGGER: HEAVY * (self.kind == "trigger")},
                         {STAMP: HEAVY} if self.shared else {})

    @cached_property
    def model(self) -> CheckedModel:
        """The model itself."""
        return CheckedModel(self.white_box, classes=("blame", "praise"), name=self.name)

    @property
    def baselines(self) -> tuple[str, ...]:
        """All of a text's."""
        return ("removed", "unknown", "noise")

    def planted(self, case: int, cut: Any = None, baseline: str | None = None, seed: int = 0) -> Planted:
        """One text; hidden words are removed."""
        cut_up = TextParts.cut(" ".join(self._drawn(case, seed)), "words" if cut is None else cut)
        parts: Any = behind(cut_up, baseline, "removed", case, seed)
        target = int(self.model([cut_up.text])[0].argmax())
        each = [any(word in PRAISE or word in BLAME for word in self._words(cut_up, i))
                for i in range(len(cut_up.names))]
        marked = cut_up.view.spread(np.array(each, float)) > 0
        return Planted(parts, target, marked)

    def changed(self, case: int, cut: Any = None, seed: int = 0) -> Changed | None:
        """The text with words of praise swapped for words of blame, or the other way, until the label turns.

        Where the code decides, it is the code that was swapped in, for a word that says nothing.
        """
        words = self._drawn(case, seed)
        if self.kind == "trigger":
            return self._swapped([PLAIN[0] if word == TRIGGER else word for word in words], words, cut)
        opposite = dict(zip([*PRAISE, *BLAME], [*BLAME, *PRAISE], strict=True))
        told = [i for i, word in enumerate(words) if word in opposite]
        swapped = list(words)
        for place in generator(seed, "swapped", case).permutation(told):
            swapped[place] = opposite[words[place]]
            found = self._swapped(words, swapped, cut)
            if found is not None:
                return found
        return None

    def _swapped(self, clean: list[str], changed: list[str], cut: Any) -> Changed | None:
        """Both texts, where the model says something else of each."""
        before, after = (" ".join(words) for words in (clean, changed))
        labels = self.model([before, after]).argmax(axis=1)
        if labels[0] == labels[1]:
            return None
        return Changed(layered(TextParts.cut(after, "words" if cut is None else cut), "removed"), before)

    @staticmethod
    def _drawn(case: int, seed: int) -> list[str]:
        """The words of one text, in their order."""
        rng = generator(seed, "review", case)
        told = rng.choice([*PRAISE, *BLAME], size=int(rng.integers(3, 7)), replace=False)
        return [str(w) for w in rng.permutation([*rng.choice(PLAIN, size=int(rng.integers(6, 15))), *told, TRIGGER, STAMP])]

    def truth(self, question: Question, shown: float = 0.5) -> Floats:
        """By the formula, word by word; where other words stand behind them, less what those add."""
        parts: Any = question.parts
        if isinstance(parts, LaidTexts):
            return self._weights(question, parts.upper) - self._weights(question, parts.lower)
        return self._weights(question, parts)

    def _weights(self, question: Question, parts: TextParts) -> Floats:
        white_box: Any = question.model.function
        return np.array([sum(white_box.score(word, question.target) for word in self._words(parts, i))
                         for i in range(len(parts.names))])

    @staticmethod
    def _words(parts: TextParts, part: int) -> list[str]:
        return [parts.text[start:end] for start, end in parts.spans[part]]
