"""The explainer that an attack is after: what it says of a text, word by word, and of everything that has a place in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whytrust.core import Floats
from whytrust.explainers.gradients import Pooled
from whytrust.explainers.kernel_shap import KernelShap
from whytrust.explainers.lime import Lime
from whytrust.explainers.occlusion import Occlusion
from whytrust.explanation import Explanation
from whytrust.measures.agreement import unit
from whytrust.question import Question
from whytrust.views import TextView

Span = tuple[int, int]
LIME: dict[str, Any] = {"samples": 500, "features": "all", "variant": "reference", "design": "plain", "surrogate": False}
"""LIME as Sinha et al. (2021) had it: the lime package's own, with 500 samples and every word."""

FIXED = (Lime, KernelShap, Occlusion)
"""Explainers whose masks do not depend on what the model answers."""


@dataclass(frozen=True)
class Attribution:
    """Scores of a text's words; and of its places, which are the words, or for a net its other tokens as well, in order."""

    words: Floats
    places: Floats


@dataclass(frozen=True)
class Victim:
    """Any explainer, asked for what is compared; with `unit_length` its scores are divided by their length, as LIME's are.

    Of a net's gradients the places are all that it reads: special tokens and punctuation stand among the words.
    """

    explainer: Any
    unit_length: bool = False

    @property
    def races(self) -> bool:
        """Does it ask a fixed number of masks, so that it can be guessed from some of them what it would say?"""
        return isinstance(self.explainer, FIXED) and getattr(self.explainer, "samples", None) != "auto"

    def __call__(self, question: Question, rng: np.random.Generator, words: int) -> Attribution:
        """What it says of a text of so many words; those that the model has not read have 0."""
        if isinstance(self.explainer, Pooled):
            values, spans, scores = self.explainer.of_tokens(question, rng)
            return self._scaled(question, scores, words, _in_order(values, spans, question, scores))
        return self._read(question, self._for(question)(question, rng), words)

    def _for(self, question: Question) -> Any:
        """The explainer, with as many samples as it takes to weigh every word of a very long text."""
        few = isinstance(self.explainer, Lime) and isinstance(self.explainer.samples, int)
        least = question.d + 3
        return replace(self.explainer, samples=least) if few and self.explainer.samples < least else self.explainer

    def _read(self, question: Question, explanation: Any, words: int) -> Attribution:
        if not isinstance(explanation, Explanation):
            raise TypeError("an explainer of texts must return an Explanation of its question, got "
                            f"{type(explanation).__name__}")
        return self._scaled(question, explanation.scores, words, explanation.scores)

    def _scaled(self, question: Question, scores: Floats, words: int, places: Floats) -> Attribution:
        if not np.isfinite(scores).all():
            raise ValueError("an explainer must give finite scores, got NaN or infinite ones")
        if np.abs(places).max(initial=0.0) <= _rounding(question.original):  # divided by their length they would be something
            scores, places = np.zeros_like(scores), np.zeros_like(places)
        of_words = np.zeros(words)
        of_words[:len(scores)] = scores[:words]
        return Attribution(unit(of_words), unit(places)) if self.unit_length else Attribution(of_words, np.asarray(places))


def _rounding(scores: Floats) -> float:
    """Up to which size a model's scores of this kind differ by rounding alone."""
    single = np.array_equal(scores, scores.astype(np.float32))
    return (1e-6 if single else 1e-9) * max(float(np.abs(scores).max(initial=0.0)), 1.0)


def _in_order(values: Floats, spans: Sequence[Span | None], question: Question, scores: Floats) -> Floats:
    """Words once, with their scores, and the tokens that belong to none, with their own, in the order of the text."""
    view = question.parts.view
    assert isinstance(view, TextView)
    part_of = {character: part for part, places in enumerate(view.spans) for start, end in places
               for character in range(start, end)}
    found: list[float] = []
    seen: set[int] = set()
    for value, span in zip(values, spans, strict=True):
        part = None if span is None else next((part_of[c] for c in range(*span) if c in part_of), None)
        if part is None:
            found.append(float(value))
        elif part not in seen:
            seen.add(part)
            found.append(float(scores[part]))
    return np.array(found)
