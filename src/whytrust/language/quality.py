"""How good are texts with swapped words as texts: how fluent, how grammatical, how near in meaning to the original?

None of the three says whether a reader would be fooled. An explanation that changed because the text became nonsense is no
finding about explanations, so they stand beside every result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust.core import MissingExtra, near
from whytrust.language import sentences
from whytrust.language.fluency import FLUENCIES, Fluency, Trigram, fluency_of
from whytrust.language.grammar import GRAMMARS, Grammar, Harper, NewErrors, grammar_of
from whytrust.language.joined import writable

Encode = Callable[[Sequence[str]], Any]
"""n texts -> (n, dimensions)."""
Judgement = dict[str, float | int | None]
"""Of one text: perplexity, original_perplexity, new_errors, error_difference, similarity; None for what was not asked, and for
the perplexity of a text with nothing to predict."""

ENCODERS = {
    sentences.USUAL: "MiniLM, a small sentence encoder, out of its package",
    "encoder:FOLDER_OR_NAME": "any transformer that encodes texts",
}


@dataclass(frozen=True)
class Quality:
    """How good are texts with swapped words as texts? Perplexity, new errors of grammar, similarity to the original.

    Each of the three can be None. The models are named here, not held: they are loaded where they are first asked, once a
    process. `left_out` says in words what was wished and is not installed. Similarity is the cosine of two whole texts (of long
    ones the beginning, as much as the encoder reads); encoders hold opposites for alike.
    """

    fluency: Fluency | None = None
    grammar: Grammar | None = None
    encoder: str | Encode | None = None
    left_out: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A few words for a reader: who judges what."""
        encoder = {sentences.USUAL: "MiniLM"}.get(self.encoder, self.encoder) if isinstance(self.encoder, str) else "an encoder"
        told = [("perplexity", self.fluency and self.fluency.name), ("grammar", self.grammar and self.grammar.name),
                ("similarity", encoder if self.encoder is not None else None)]
        return ", ".join(f"{what} by {whom}" for what, whom in told if whom) or "nothing"

    def judge(self, original: str, changed: Sequence[str]) -> list[Judgement]:
        """One judgement for each changed text; the original is asked about once."""
        texts = [writable(text) for text in (original, *changed)]
        perplexities = [None] * len(texts) if self.fluency is None else self.fluency(texts)
        errors = self._errors(texts)
        similarities = self._similarities(texts)
        return [{"perplexity": _settled(perplexities[i]), "original_perplexity": _settled(perplexities[0]),
                 "new_errors": None if errors is None else errors[i].new,
                 "error_difference": None if errors is None else errors[i].difference,
                 "similarity": None if similarities is None else _settled(similarities[i])} for i in range(1, len(texts))]

    def _errors(self, texts: Sequence[str]) -> list[NewErrors] | None:
        if self.grammar is None:
            return None
        found = [self.grammar(text) for text in texts]
        return [NewErrors.between(found[0], kinds) for kinds in found]

    def _similarities(self, texts: Sequence[str]) -> list[float] | None:
        """Cosines to the first text; 0 where one of the two has no direction."""
        if self.encoder is None:
            return None
        encode = sentences.encoder(self.encoder) if isinstance(self.encoder, str) else self.encoder
        vectors = np.asarray(encode(list(texts)), dtype=np.float64)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise ValueError(f"an encoder must give one vector a text: expected ({len(texts)}, dimensions), got "
                             f"{vectors.shape}")
        lengths = np.linalg.norm(vectors, axis=1)
        products = vectors @ vectors[0]
        cosines = np.divide(products, lengths * lengths[0], out=np.zeros_like(products), where=lengths * lengths[0] > 0)
        return [float(cosine) for cosine in np.clip(cosines, -1, 1)]


def quality_of(given: Any = "usual") -> Quality | None:
    """A judge of texts: "usual" for what is installed of trigram, harper and minilm; names with commas or in a list; or none.

    What is asked for by name is tried at once, so that what is missing is told before the work begins and not after.
    """
    if isinstance(given, Quality):
        return given
    if isinstance(given, str) and given == "usual":
        return _usual()
    if given is None or (isinstance(given, str) and given == "none"):
        return None
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ValueError("quality must be \"usual\", names with commas between them, a list of names, None or a "
                         f"Quality(fluency, grammar, encoder), got {given!r}")
    found = _named([name.strip() for name in names])
    found.judge("a film", ["a film"])
    return found


def _named(names: Sequence[str]) -> Quality:
    parts: dict[str, Any] = {}
    for name in names:
        kind, part = _part(name)
        if kind in parts:
            raise ValueError(f"quality takes one {kind} at most, got {', '.join(names)}")
        parts[kind] = part
    return Quality(**parts)


def _part(name: str) -> tuple[str, Any]:
    """Which field of a judge a name is for, and what belongs there."""
    kind, _, rest = name.partition(":")
    if kind in ("trigram", "smollm2", "causal"):
        return "fluency", fluency_of(name)
    if name in ("harper", "link-grammar"):
        return "grammar", grammar_of(name)
    if name == sentences.USUAL or (kind == "encoder" and rest.strip()):
        return "encoder", rest.strip() or name
    known = [one for one in (*FLUENCIES, *GRAMMARS, *ENCODERS) if one != "none"]
    raise ValueError(f"quality is made of {', '.join(known)}; or it is \"usual\" or \"none\" alone; got {name!r}"
                     f"{near(name, ['usual', 'none', *known])}")


def _usual() -> Quality:
    """What is installed of the usual three, and words for what is not."""
    usual = {"perplexity": Quality(fluency=Trigram()), "grammar": Quality(grammar=Harper()),
             "similarity": Quality(encoder=sentences.USUAL)}
    parts: dict[str, Any] = {}
    left_out = []
    for what, one in usual.items():
        try:
            one.judge("a film", ["a film"])
        except MissingExtra as error:
            left_out.append(f"{what} is not told: {error}")
        else:
            parts.update({field: value for field, value in vars(one).items() if value})
    return Quality(**parts, left_out=tuple(left_out))


def _settled(value: float | None) -> float | None:
    """To six digits: nets count in single precision, and the last ones depend on which texts they were asked together."""
    return None if value is None else float(f"{value:.6g}")
