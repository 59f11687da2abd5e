"""Why does a classifier read a text as it does? lime's names, whytrust's answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust.checked import CheckedModel
from whytrust.compat.lime.asking import Neighbourhood, ask
from whytrust.compat.lime.explanation import DomainMapper, Explanation
from whytrust.compat.lime.lime_base import LimeBase
from whytrust.compat.lime.seeds import seed_of
from whytrust.core import generator
from whytrust.domains.text import Span, TextParts

SplitExpression = str | re.Pattern[str] | Callable[[str], Iterable[str]]


class IndexedString:
    """A text cut into words and what stands between them; a word is known by a number.

    With `bow` a word has one number wherever it stands, and removing it removes every occurrence; else each occurrence has its
    own, and is replaced by `mask_string`.
    """

    def __init__(self, raw_string: str, split_expression: SplitExpression = r"\W+", bow: bool = True,
                 mask_string: str | None = None) -> None:
        """`split_expression` matches what stands between words, or is a function that returns the words in order."""
        find = _tokens if callable(split_expression) else _between
        spans = find(raw_string, split_expression)  # type: ignore[arg-type]
        self._index(raw_string, spans, bow, "UNKWORDZ" if mask_string is None else mask_string)

    def _index(self, raw: str, spans: list[Span], bow: bool, mask_string: str) -> None:
        self.raw, self.bow, self.mask_string = raw, bow, mask_string
        self.as_list: list[str] = []
        self.inverse_vocab: list[str] = []
        self.positions: Any = []
        numbers: dict[str, int] = {}
        past = 0
        for start, end in spans:
            self.as_list += [raw[past:start]] if start > past else []
            word, past = raw[start:end], end
            if not bow or word not in numbers:
                numbers[word] = len(self.inverse_vocab)
                self.inverse_vocab.append(word)
                self.positions.append([])
            self.positions[numbers[word]].append(len(self.as_list))
            self.as_list.append(word)
        self.as_list += [raw[past:]] if past < len(raw) else []
        self.as_np = np.array(self.as_list)
        self.string_start = np.cumsum([0, *map(len, self.as_list)])[: len(self.as_list)]
        if not bow:
            self.positions = np.array([place for (place,) in self.positions], dtype=np.intp)

    @property
    def spans(self) -> list[Span]:
        """Where the words stand, in the order of the text."""
        places = np.sort(np.concatenate([np.ravel(p) for p in self.positions])) if self.inverse_vocab else np.empty(0)
        return [(int(self.string_start[i]), int(self.string_start[i]) + len(self.as_list[i])) for i in places.astype(np.intp)]

    def raw_string(self) -> str:
        """The text."""
        return self.raw

    def num_words(self) -> int:
        """How many words have a number."""
        return len(self.inverse_vocab)

    def word(self, id_: int) -> str:
        """The word of a number."""
        return self.inverse_vocab[id_]

    def string_position(self, id_: int) -> Any:
        """The characters at which the word begins."""
        return self.string_start[np.atleast_1d(self.positions[id_])]

    def inverse_removing(self, words_to_remove: Sequence[int]) -> str:
        """The text without these words, or with `mask_string` in their places."""
        gone = {int(place) for word in words_to_remove for place in np.atleast_1d(self.positions[word])}
        hidden = "" if self.bow else self.mask_string
        return "".join(hidden if place in gone else piece for place, piece in enumerate(self.as_list))


class IndexedCharacters(IndexedString):
    """A text whose every character counts as a word."""

    def __init__(self, raw_string: str, bow: bool = True, mask_string: str | None = None) -> None:
        """Characters are masked by chr(0) where nothing else is said."""
        spans = [(i, i + 1) for i in range(len(raw_string))]
        self._index(raw_string, spans, bow, chr(0) if mask_string is None else mask_string)


def _between(text: str, separators: str | re.Pattern[str]) -> list[Span]:
    try:
        found = [m.span() for m in re.finditer(separators, text) if m.group()]
    except (re.error, TypeError) as error:
        raise ValueError("split_expression must be a regular expression that matches what stands between words, or a function "
                         f"that returns the words, got {separators!r} ({error})") from error
    ends = [*found, (len(text), len(text))]
    starts = [0, *(end for _, end in found)]
    return [(start, end) for start, (end, _) in zip(starts, ends, strict=True) if end > start]


def _tokens(text: str, split: Callable[[str], Iterable[str]]) -> list[Span]:
    spans: list[Span] = []
    for token in split(text):
        past = spans[-1][1] if spans else 0
        start = text.find(token, past)
        if start < 0:
            raise ValueError(f"split_expression must return pieces of the text in their order: {token!r} does not occur after "
                             f"character {past}")
        spans += [(start, start + len(token))] if token else []
    return spans


@dataclass(frozen=True, eq=False)
class TextDomainMapper(DomainMapper):
    """Numbers of words -> words, or words with their places."""

    indexed_string: IndexedString

    def map_exp_ids(self, exp: list[tuple[int, float]], positions: bool = False, **kwargs: Any) -> list[tuple[Any, float]]:
        """("bad", weight), or with positions ("bad_3-6-12", weight)."""
        text = self.indexed_string
        places = {i: "_" + "-".join(map(str, text.string_position(i))) if positions else "" for i, _ in exp}
        return [(text.word(i) + places[i], weight) for i, weight in exp]


class LimeTextExplainer:
    """Which words speak for a class? lime's constructor; the same call gives the same answer, and explainers pickle."""

    def __init__(self, kernel_width: float = 25, kernel: Callable[..., Any] | None = None, verbose: bool = False,
                 class_names: Sequence[Any] | None = None, feature_selection: str = "auto",
                 split_expression: SplitExpression = r"\W+", bow: bool = True, mask_string: str | None = None,
                 random_state: Any = None, char_level: bool = False) -> None:
        """random_state: None is seed 0."""
        self.seed = self.random_state = seed_of(random_state)
        self.class_names = None if class_names is None else list(class_names)
        self.feature_selection, self.verbose = feature_selection, verbose
        self.split_expression, self.bow, self.mask_string, self.char_level = split_expression, bow, mask_string, char_level
        self.kernel, self.kernel_width = kernel, float(kernel_width)
        self.base = LimeBase(self._neighbourhood().kernel_function, verbose, self.seed)

    def explain_instance(self, text_instance: str, classifier_fn: Any, labels: Iterable[int] = (1,),
                         top_labels: int | None = None, num_features: int = 10, num_samples: int = 5000,
                         distance_metric: Any = "cosine", model_regressor: Any = None) -> Explanation:
        """Explain `labels`, or the `top_labels` most probable classes; classifier_fn gets lists of texts."""
        if not isinstance(text_instance, str):
            raise TypeError(f"text_instance must be a str, got {type(text_instance).__name__}; pass one text at a time")
        text = (IndexedCharacters(text_instance, self.bow, self.mask_string) if self.char_level else
                IndexedString(text_instance, self.split_expression, self.bow, self.mask_string))

        def cut(model: CheckedModel) -> TextParts:
            return TextParts.cut(text_instance, bag=self.bow, fill=None if self.bow else text.mask_string,
                                 split=lambda _: text.spans, reads=model.reads)

        how = self._neighbourhood(samples=num_samples, features=num_features, metric=distance_metric, regressor=model_regressor)
        answers = ask(classifier_fn, cut, how, lambda: generator(self.seed, "explain"), labels=labels, top_labels=top_labels,
                      class_names=self.class_names, verbose=self.verbose, seed=self.seed)
        return Explanation(TextDomainMapper(text), "classification", self.class_names, self.seed).fill(answers)

    def _neighbourhood(self, **of_a_call: Any) -> Neighbourhood:
        return Neighbourhood(self.kernel_width, self.kernel, self.feature_selection, scale=100.0, **of_a_call)
