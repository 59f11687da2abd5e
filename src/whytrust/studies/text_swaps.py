"""Adversaries of texts: a few words swapped until the model decides otherwise; which ones is then known."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from whytrust.checked import CheckedModel
from whytrust.core import generator, near
from whytrust.domains.text import TextParts
from whytrust.studies import text_cases
from whytrust.studies.adversaries import FULL, Adversary, Found, OnCalls, hit

METHOD = "word_swap"
Attack = Callable[..., Any]
"""(model, text, on_calls=) -> a Flipped: the text before and after, the swaps, and what the model says of both."""


@dataclass(frozen=True, eq=False)
class WordSwap:
    """Which few words, swapped for others that could stand there, change what the model says?

    `candidates` says where those others come from and `constraints` what they must keep, by name or as objects; at most a share
    `most` of the words is swapped. Both are made when first used, and anew in every process.
    """

    candidates: Any = "thesaurus"
    constraints: Any = None
    most: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what is no share, before any model call."""
        if isinstance(self.most, bool) or not isinstance(self.most, int | float) or not 0 < self.most <= 1:
            raise ValueError(f"most must be the share of words that may be swapped, above 0 and up to 1, got {self.most!r}")

    def __call__(self, model: CheckedModel, text: str, on_calls: OnCalls | None = None) -> Any:
        """The text with its words swapped, whether or not that was enough."""
        candidates, constraints = self.made
        flip = importlib.import_module("whytrust.swapping.flipping").flip
        return flip(model, text, candidates, constraints, self.most, on_calls)

    @cached_property
    def made(self) -> tuple[Any, tuple[Any, ...]]:
        """(where candidates come from, what they must keep)"""
        # Word sources read files and models: imported by who audits texts alone.
        candidates = importlib.import_module("whytrust.language.sources").candidates_of(self.candidates)
        make = importlib.import_module("whytrust.swapping.constraints").constraints_of
        return candidates, make(self.constraints, getattr(candidates, "vectors", None))

    def rehearse(self) -> None:
        """Ask once about a text of ours: what is missing is told before a run begins, and loading is no input's time."""
        candidates, constraints = self.made
        given = [*_several(self.candidates), *_several(self.constraints)]
        if all(isinstance(one, str) for one in given):  # objects of the user's are asked about the user's texts alone
            text = importlib.import_module("whytrust.language.written").Written.of("It was a good film.")
            importlib.import_module("whytrust.swapping.constraints").proposed(candidates, constraints, text, text, 3)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what was made."""
        return WordSwap, (self.candidates, self.constraints, self.most)


@dataclass(frozen=True, eq=False)
class WordSwaps:
    """The adversary of a text is the same text with a few words swapped; the words that were are the cause.

    It stops as soon as the label changes, so there is one strength. How it misleads: words are swapped in the order in which
    leaving them out lowers the score, which is what `occlusion` ranks by. And a swap can work by taking a word away rather
    than by putting one in: then the new word says nothing, and no explanation of the changed text alone can point at it.
    """

    attack: Attack

    def __call__(self, model: CheckedModel, given: Sequence[Any], ids: Sequence[str], strength: str, seed: int,
                 on_calls: OnCalls) -> Found:
        """One adversary a text, or its error."""
        if strength != FULL:
            raise ValueError(f"word swaps stop where the label changes and have no other strength, got {strength!r}")
        found: Found = {}
        for i, text in enumerate(given):
            try:
                found[i] = self._swapped(model, text, on_calls)
            except (ValueError, TypeError) as error:
                found[i] = error
        return found

    def _swapped(self, model: CheckedModel, text: str, on_calls: OnCalls) -> Adversary:
        made = self.attack(model, text, on_calls=on_calls)
        return self._told(model, text, made.text.text, int(made.clean_label), on_calls)

    def _told(self, model: CheckedModel, text: str, other: str, own: int, on_calls: OnCalls) -> Adversary:
        clean, changed = TextParts.cut(text, "words"), TextParts.cut(other, "words")
        swapped = changed.pool(changed.squared_change(text), "sum") > 0
        # The attack's word is not taken for it: what the model says is asked here.
        asked = [changed.text, *self._without(changed, swapped)]
        scores = model(asked)
        on_calls(len(asked))
        labels = model.labels(scores)
        others = np.delete(scores[0], labels[0])
        pairs = [f"{clean.text[a:b]} → {changed.text[c:d]}" for ((a, b),), ((c, d),), other in
                 zip(clean.spans, changed.spans, swapped, strict=True) if other]
        facts = {"target": None, "swapped": int(swapped.sum()), "words": len(swapped), "share": float(swapped.mean()),
                 "swaps": ", ".join(pairs), "margin": float(scores[0][labels[0]] - others.max(initial=-np.inf)),
                 "absence": bool(labels[1] == labels[0]) if len(asked) > 1 else None}
        return Adversary(text, changed.text, own, int(labels[0]), bool(labels[0] != own), facts)

    @staticmethod
    def _without(changed: TextParts, swapped: Any) -> list[str]:
        """The changed text without the words that were put in, where that leaves any."""
        if swapped.all() or not swapped.any():
            return []
        return changed.compose(~swapped[None], generator(0))


@dataclass(frozen=True, eq=False)
class SavedTexts(WordSwaps):
    """Texts that were changed before, one for each input in the order of the inputs, word for word."""

    attack: Attack = field(init=False, default=WordSwap)  # none is made
    changed: Sequence[str] = ()
    targets: list[Any] | None = None

    def __call__(self, model: CheckedModel, given: Sequence[Any], ids: Sequence[str], strength: str, seed: int,
                 on_calls: OnCalls) -> Found:
        """One adversary a text, or its error."""
        found: Found = {}
        for i, (text, case) in enumerate(zip(given, ids, strict=True)):
            try:
                found[i] = self._asked(model, text, int(case), on_calls)
            except (ValueError, TypeError) as error:
                found[i] = error
        return found

    def _asked(self, model: CheckedModel, text: str, place: int, on_calls: OnCalls) -> Adversary:
        other = text_cases.taken_in(model, self.changed[place])
        words = [len(TextParts.cut(one, "words").names) for one in (text, other)]
        if words[0] != words[1]:
            raise ValueError("a saved text must have as many words as its input, of which some are swapped: expected "
                             f"{words[0]}, got {words[1]}")
        scores = model([text])
        on_calls(1)
        told = self._told(model, text, other, int(model.labels(scores)[0]), on_calls)
        reached, target = hit(model, self.targets, place, told.clean_label, told.label, scores.shape[1])
        return replace(told, reached=reached, facts={**told.facts, "saved": True, "target": target})


def adversaries_of(given: Any) -> tuple[WordSwaps, Any]:
    """(what makes adversaries of texts, how it was set): from None, a name, a table with options, or an attack."""
    options = dict(given) if isinstance(given, Mapping) else {} if given is None else {"method": given}
    method = options.pop("method", METHOD)
    if options.pop("strengths", ()):
        raise ValueError("word swaps stop where the label changes and have no strengths; leave strengths out for texts")
    if "targets" in options:
        raise ValueError("words are swapped until the label is any other one; leave targets out for texts")
    if callable(method) and not isinstance(method, type):
        if options:
            raise TypeError(f"an attack of your own is set where it is made, so {', '.join(options)} cannot be set here")
        return WordSwaps(method), {"method": method}
    if method != METHOD:
        raise ValueError(f"texts are audited with attack={METHOD!r}, got {method!r}{near(str(method), [METHOD])}")
    known = [one.name for one in fields(WordSwap)]
    for name in options:
        if name not in known:
            raise TypeError(f"{METHOD} has no option {name!r}{near(name, known)}; it has {', '.join(known)}")
    attack = WordSwap(**options)
    attack.rehearse()
    told = attack.constraints if attack.constraints is not None else [one.name for one in attack.made[1]]
    return WordSwaps(attack), {"method": METHOD, "candidates": attack.candidates, "constraints": told, "most": attack.most}


def _several(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [] if given is None else [given]


def check(parts: Any, of_parts: Mapping[str, Any], cut_on: str) -> str:
    """How texts are cut: into words, always, for words are what is swapped."""
    if parts is not None and not (isinstance(parts, str) and parts == "words"):
        raise ValueError("texts are audited by their words, which are what is swapped: parts must be 'words', got "
                         f"{parts!r:.60}")
    wrong = [name for name in of_parts if name != "fill"]
    if wrong:
        raise TypeError(f"{wrong[0]} cannot be used with texts in an audit; they take fill, what stands for a hidden word")
    if cut_on != "clean":
        raise ValueError("a text has the same words' places before and after the attack: leave cut_on out for texts")
    return "words"
