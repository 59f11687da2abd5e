"""Text pipelines of scikit-learn, opened: from masks straight to the vectoriser's matrix, without making the texts.

A word vectoriser turns a text into tokens, and hiding parts of a text usually just takes some tokens away. Then the tokens are
found once, a mask says which of them remain, and the rest of the pipeline gets the very matrix it would have got.

When that is exact. A composed text is a row of pieces: parts that are shown or hidden, and what stands between them, always
there. Its tokens are those of its pieces, one after the other, wherever pieces meet at a character that ends every token:

- lowering and stripping accents work on one character at a time, so the pieces may be changed before they are joined. (Only
  the lower case of "Σ" depends on its neighbours; texts with it are not opened. What Unicode would reorder is stripped.)
- the token pattern consists of elements that each take one character, of groups, alternatives, repeats and \\b. Then a search
  cannot look past a character that no element takes, and where that is no word character either, \\b cannot tell it from the
  end of the text. Patterns that look further (lookarounds, anchors, references) are not opened, nor those that match nothing.
- of any two pieces that can come to stand side by side, one has such a character where they meet.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import get_config
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import normalize

from whytrust.core import Masks, check_masks

Whole = NDArray[np.intp]
Grams = tuple[Whole, Whole, list[str]]
"""n-grams of the texts: the row each stands in, which one it is, and how the different ones are written."""

_ANALYSIS = ("build_analyzer", "build_preprocessor", "build_tokenizer", "decode", "get_stop_words", "_word_ngrams",
             "_count_vocab", "_check_vocabulary", "_get_hasher", "transform")
_PARTS = ("text", "spans", "fill", "seen")  # what says how a text is composed
_CELLS_AT_ONCE = 1 << 23  # bounds the memory beside the matrix itself
_TABLE = 1 << 22  # codes below this are told apart by a table, larger ones by sorting


def open_text(estimator: Any, method: str, parts: Any) -> Callable[[Masks], Any] | None:
    """masks -> what the pipeline's `method` returns on the texts they compose; None where that is not certain to be exact."""
    selection = sys.modules.get("sklearn.model_selection")  # slow to import, and in memory wherever there is a search
    if selection and type(estimator) in (selection.GridSearchCV, selection.RandomizedSearchCV):
        estimator = getattr(estimator, "best_estimator_", None)
    if not isinstance(estimator, Pipeline) or _overrides(estimator, Pipeline, (method, "_iter")):
        return None
    vectoriser = estimator.steps[0][1]
    if len(estimator.steps) < 2 or not _is_plain(vectoriser) or not all(hasattr(parts, a) for a in _PARTS):
        return None
    tokens = Tokens.of(vectoriser, parts)
    return None if tokens is None else OpenedText(Pipeline(_quick(estimator.steps[1:])), method, vectoriser, tokens)


def _quick(steps: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The steps after the vectoriser; machines with kernels, and trees, are asked about many masks in ways of their own."""
    *before, (name, last) = steps
    home = type(last).__module__  # only who has such a model waits for what handles it
    if home.startswith(("sklearn.svm", "sklearn.calibration")):
        from whytrust.backends import sklearn_kernels

        last = sklearn_kernels.quickened(last)
    elif home.startswith(("sklearn.tree", "sklearn.ensemble")) and not before:  # what comes between makes many numbers
        from whytrust.backends import sklearn_trees

        last = sklearn_trees.quickened(last)
    return [*before, (name, last)]


def _is_plain(vectoriser: Any) -> bool:
    """Whether it finds words as scikit-learn does: no function of the user's, no method of a subclass."""
    base = next((c for c in (TfidfVectorizer, CountVectorizer, HashingVectorizer) if isinstance(vectoriser, c)), None)
    if base is None or _overrides(vectoriser, base, _ANALYSIS):
        return False
    own = (vectoriser.preprocessor, vectoriser.tokenizer)
    return (own == (None, None) and vectoriser.analyzer == "word" and vectoriser.input == "content"
            and not callable(vectoriser.strip_accents) and isinstance(vectoriser.token_pattern, str)
            and type(getattr(vectoriser, "vocabulary_", {})) is dict)


def _overrides(obj: Any, base: type, names: Sequence[str]) -> bool:
    classes = type(obj).__mro__[: type(obj).__mro__.index(base)]
    return any(name in vars(place) for place in (obj, *classes) for name in names)


# --- tokens -----------------------------------------------------------------------------------------------------------

_FLAGS = re.compile(r"(?:\(\?[aiu]+\))?")
_ELEMENT = re.compile(
    r"(?P<frame>\(\?:|\((?!\?)|\)|\||\\b(?![*+?{])|[*+?]|\{(?:\d+(?:,\d*)?|,\d+)\})"
    r"|(?P<one>\[\^?\]?(?:\\.|[^\\\]])*\]|\\[wWdDsSnrt]|\\[^\w]|[^\\()\[\]{}|*+?^$])", re.DOTALL)


class Joins(dict[str, bool]):
    """Can a token reach over this character, or be told where it ends by it? Looked up once a character."""

    def __init__(self, flags: str, elements: Sequence[str]) -> None:
        """The pattern's elements that take one character, under its flags."""
        super().__init__()
        self.takes = tuple(re.compile(flags + element) for element in dict.fromkeys((r"\w", *elements)))

    @classmethod
    def of(cls, pattern: str) -> Joins | None:
        """None for a pattern that could look past a character it does not take, or match nothing at all."""
        found = _FLAGS.match(pattern)
        flags = found.group() if found else ""
        elements, frame, at = [], "", len(flags)
        while at < len(pattern):
            element = _ELEMENT.match(pattern, at)
            if element is None:
                return None
            at = element.end()
            elements += [element["one"]] if element["one"] else []
            frame += "" if element.group() == r"\b" else element.group()
        if re.match(flags + frame, "") or re.compile(pattern).groups > 1:
            return None
        return cls(flags, elements)

    def __missing__(self, character: str) -> bool:
        """Ask the elements."""
        self[character] = joins = any(take.match(character) for take in self.takes)
        return joins


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens of every piece of a text, in order: which word each is, and when it is there.

    Columns 0 … d-1 stand for a part that is shown, d … 2d-1 for one that is hidden, 2d for always.
    """

    words: tuple[str, ...]
    code: Whole
    column: Whole
    d: int

    @classmethod
    def of(cls, vectoriser: Any, parts: Any) -> Tokens | None:
        """None where tokens of neighbouring pieces could grow together, or change each other."""
        joins = Joins.of(vectoriser.token_pattern)
        if joins is None or (vectoriser.lowercase and "Σ" in parts.text + (parts.fill or "")):
            return None
        prepare, find = vectoriser.build_preprocessor(), vectoriser.build_tokenizer()
        stop_words = vectoriser.get_stop_words() or ()
        number: dict[str, int] = {}
        code, column = [], []
        unfinished = False  # may the text so far end in a character that joins?
        prepare, find = cache(prepare), cache(find)  # most of what stands between words is a space
        for alternatives in _pieces(parts):
            prepared = [(prepare(piece), when) for piece, when in alternatives]
            if unfinished and any(piece and joins[piece[0]] for piece, _ in prepared):
                return None
            unfinished = any(joins[piece[-1]] if piece else unfinished for piece, _ in prepared)
            for piece, when in prepared:
                found = [word for word in find(piece) if word not in stop_words]
                code += [number.setdefault(word, len(number)) for word in found]
                column += [when] * len(found)
        return cls(tuple(number), np.array(code, dtype=np.intp), np.array(column, dtype=np.intp), len(parts.spans))

    def present(self, masks: Masks, column: Whole) -> Masks:
        """(n, columns): is what stands there, when these columns say, in the text that the mask composes?"""
        if len(column) and column.max() >= self.d:
            masks = np.concatenate([masks, ~masks, np.ones((len(masks), 1), bool)], axis=1)
        return masks if np.array_equal(column, np.arange(masks.shape[1])) else masks.take(column, axis=1)


def _pieces(parts: Any) -> Iterator[list[tuple[str, int]]]:
    """A text from left to right: what can stand in each place, and when (see Tokens)."""
    d, text = len(parts.spans), parts.text if parts.seen is None else parts.text[:parts.seen]
    places = sorted((start, end, part) for part, spans in enumerate(parts.spans) for start, end in spans)
    past = 0
    for start, end, part in places:
        yield [(text[past:start], 2 * d)]
        yield [(text[start:end], part), (parts.fill or "", d + part)]
        past = end
    yield [(text[past:], 2 * d)]


# --- the matrix -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OpenedText:
    """A pipeline asked about masks: the vectoriser's matrix from tokens, then its remaining steps, unchanged."""

    rest: Any
    method: str
    vectoriser: Any
    tokens: Tokens

    def __call__(self, masks: Masks) -> Any:
        """What the pipeline's method returns on the texts that the masks compose."""
        return getattr(self.rest, self.method)(self.matrix(masks))

    def matrix(self, masks: Masks) -> Any:
        """What the vectoriser's transform returns on those texts."""
        masks = check_masks(masks, self.tokens.d)
        count = self._unigrams if tuple(self.vectoriser.ngram_range) == (1, 1) else self._ngrams
        step = max(_CELLS_AT_ONCE // max(len(self.tokens.code) * self.vectoriser.ngram_range[1], 1), 1)
        blocks = [count(masks[first:first + step]) for first in range(0, max(len(masks), 1), step)]
        counts = blocks[0] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")
        if self.vectoriser.binary:
            counts.data.fill(1)
        if isinstance(self.vectoriser, TfidfVectorizer):
            return self.vectoriser._tfidf.transform(counts, copy=False)
        if isinstance(self.vectoriser, HashingVectorizer) and self.vectoriser.norm is not None:
            return normalize(counts, norm=self.vectoriser.norm, copy=False)
        return counts

    def _unigrams(self, masks: Masks) -> Any:
        """Every token is a feature by itself: no need to know which tokens stand side by side."""
        column, place, features, counted, signed = self._of_unigrams
        present = self.tokens.present(masks, column)
        counts = _summed(present, place, counted)
        return self._csr(counts, counts if counted is signed else _summed(present, place, signed), features)

    @cached_property
    def _of_unigrams(self) -> tuple[Whole, Whole, Whole, Whole, Whole]:
        """Tokens of a feature that come and go together count as one: when, for which feature, and how much they add."""
        feature, sign = self._features(self.tokens.words)
        feature, sign = feature[self.tokens.code], sign[self.tokens.code]
        known = feature >= 0
        groups, which = np.unique(feature[known] * (2 * self.tokens.d + 1) + self.tokens.column[known], return_inverse=True)
        of_group, column = np.divmod(groups, 2 * self.tokens.d + 1)
        features, place = np.unique(of_group, return_inverse=True)
        counted = np.bincount(which, minlength=len(groups))
        signed = np.bincount(which, sign[known], minlength=len(groups)).astype(np.intp) if (sign[known] < 0).any() else counted
        return column, place, features, counted, signed

    def _ngrams(self, masks: Masks) -> Any:
        """Every n-gram is looked up once, then counted in the column it has here; those not known share one that is dropped."""
        low, high = self.vectoriser.ngram_range
        found = [grams for n, grams in enumerate(self._grams(masks, high), 1) if n >= low]
        looked_up = [self._features(written) for _, _, written in found]
        features = np.unique(np.concatenate([feature[feature >= 0] for feature, _ in looked_up]))
        wide = len(features) + 1
        local = [np.where(feature < 0, wide - 1, np.searchsorted(features, feature)) for feature, _ in looked_up]
        cells = np.concatenate([row * wide + here[which] for (row, which, _), here in zip(found, local, strict=True)])
        counts = np.bincount(cells, minlength=len(masks) * wide)
        values = counts
        if any((sign < 0).any() for _, sign in looked_up):
            signs = np.concatenate([sign[which] for (_, which, _), (_, sign) in zip(found, looked_up, strict=True)])
            values = np.bincount(cells, signs, minlength=len(counts))
        known = [np.ascontiguousarray(table.reshape(len(masks), wide)[:, :-1]) for table in (counts, values)]
        return self._csr(known[0], known[1], features)

    def _grams(self, masks: Masks, high: int) -> Iterator[Grams]:
        """The 1-grams of all the texts, then their 2-grams, …; an n-gram is a shorter one and the word after it."""
        row, place = np.nonzero(self.tokens.present(masks, self.tokens.column))
        word = self.tokens.code[place]
        left = np.cumsum(np.bincount(row, minlength=len(masks)))[row] - np.arange(len(row))  # words from here to the row's end
        at, which, written = np.arange(len(row)), word, list(self.tokens.words)
        yield row, which, written
        for n in range(2, high + 1):
            longer = left[at] >= n
            at, vocabulary = at[longer], max(len(self.tokens.words), 1)
            pairs, which = _distinct(which[longer] * vocabulary + word[at + n - 1], len(written) * vocabulary)
            written = [f"{written[i]} {self.tokens.words[j]}" for i, j in zip(*(p.tolist() for p in divmod(pairs, vocabulary)),
                                                                             strict=True)]
            yield row[at], which, written

    def _features(self, written: Sequence[str]) -> tuple[Whole, Any]:
        """The vectoriser's column of each n-gram, -1 for those it does not know, and the sign it counts with."""
        if not written:
            return np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int8)
        if isinstance(self.vectoriser, HashingVectorizer):
            hashed = self.vectoriser._get_hasher().transform([gram] for gram in written)
            return hashed.indices.astype(np.intp), hashed.data.astype(np.int8)
        self.vectoriser._check_vocabulary()  # one that was given is not there before it is first used
        known = self.vectoriser.vocabulary_
        return (np.fromiter((known.get(gram, -1) for gram in written), dtype=np.intp, count=len(written)),
                np.ones(len(written), dtype=np.int8))

    @cached_property
    def _width(self) -> int:
        if isinstance(self.vectoriser, HashingVectorizer):
            return int(self.vectoriser.n_features)
        self.vectoriser._check_vocabulary()
        return len(self.vectoriser.vocabulary_)

    def _csr(self, counts: Any, values: Any, features: Whole) -> Any:
        """Cells that count something, as sparse rows; a hashed feature may count and still add up to zero."""
        cells = np.flatnonzero(counts != 0)  # of booleans, which is several times faster
        index = np.int32 if max(self._width, len(cells)) < np.iinfo(np.int32).max else np.int64
        columns = np.tile(features.astype(index), len(counts)).take(cells)
        data = values.reshape(-1).take(cells).astype(self.vectoriser.dtype)
        ends = np.searchsorted(cells, np.arange(len(counts) + 1) * len(features)).astype(index)
        return _matrix_class(get_config().get("sparse_interface"))((data, columns, ends), shape=(len(counts), self._width))


@cache
def _matrix_class(setting: str | None) -> Any:
    """Which of scipy's sparse classes vectorisers return under scikit-learn's present setting."""
    return type(CountVectorizer().fit_transform(["text"]))


def _summed(present: Masks, place: Whole, weights: Whole) -> Any:
    """(n, features): what is present adds its weight in its place; places are in order, and mostly of one thing each."""
    first = np.flatnonzero(np.diff(place, prepend=-1))
    here = present if np.array_equal(first, np.arange(present.shape[1])) else present.take(first, axis=1)
    if len(first) == len(place) and (weights == 1).all():
        return here
    sums: Any = here * weights[first].astype(np.int32)
    for more in np.setdiff1d(np.arange(len(place)), first):
        sums[:, place[more]] += present[:, more] * np.int32(weights[more])
    return sums


def _distinct(codes: Whole, size: int) -> tuple[Whole, Whole]:
    """The different codes in order, and which of them each one is; codes lie below `size`."""
    if size > _TABLE:
        different, which = np.unique(codes, return_inverse=True)
        return different, which
    there = np.zeros(size, dtype=bool)
    there[codes] = True
    different = np.flatnonzero(there)
    rank = np.empty(size, dtype=np.intp)
    rank[different] = np.arange(len(different))
    return different, rank[codes]
