"""Training inputs as vectors, for whoever measures how far apart inputs are: texts as bags of words, rows in common units."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whytrust.core import Floats
from whytrust.domains.columns import Column, is_missing

Span = tuple[int, int]


# --- texts ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Bags:
    """Texts as bags of words: 1 for every word that a text has, however often and wherever, and 0 for every other."""

    matrix: Any  # sparse, (texts, words)
    texts: list[str]
    vocabulary: dict[str, int]
    cut: Callable[[str], list[Span]]
    called = "words"

    @classmethod
    def of(cls, texts: Any, cut: Callable[[str], list[Span]]) -> Bags:
        """The bags of these texts; `cut` says where the words of a text are."""
        given = list(texts)
        wrong = next((one for one in given if not isinstance(one, str)), None)
        if wrong is not None:
            raise TypeError(f"background must be a list of texts, as the input is a text, got {type(wrong).__name__}")
        vocabulary: dict[str, int] = {}
        rows = [[vocabulary.setdefault(word, len(vocabulary)) for word in dict.fromkeys(text[start:end] for start, end in cut(
            text))] for text in given]
        ends = np.cumsum([0, *map(len, rows)])
        columns = np.fromiter((column for row in rows for column in row), np.intp, ends[-1])
        matrix = sparse.csr_array((np.ones(ends[-1]), columns, ends), shape=(len(given), len(vocabulary)))
        return cls(matrix, given, vocabulary, cut)

    def batch(self, part: slice) -> list[str]:
        """Some of the texts, as a model takes them."""
        return self.texts[part]

    def vector(self, parts: Any) -> Floats:
        """The text that these parts are of; a word that no training text has is as far from all of them, and left out."""
        found = np.zeros(len(self.vocabulary))
        found[[self.vocabulary[word] for word, _ in self._words(parts) if word in self.vocabulary]] = 1.0
        return found

    def per_part(self, gradient: Floats, parts: Any) -> Floats:
        """A number a word of the vocabulary -> a number a part: the sum over the different words in it."""
        words = self._words(parts)
        starts, ends = [span[0] for _, span in words], [span[1] for _, span in words]
        scores = np.zeros(len(parts.names))
        for part, spans in enumerate(parts.spans):
            inside = {word for first, last in spans for word, _ in words[bisect_right(ends, first):bisect_left(starts, last)]}
            scores[part] = sum(gradient[self.vocabulary[word]] for word in sorted(inside) if word in self.vocabulary)
        return scores

    def origin(self, parts: Any) -> Floats | None:
        """What the numbers are multiplied by: a word that is there is 1."""
        return None

    def strange(self, parts: Any) -> bool:
        """Has the text no word that any training text has?"""
        return not any(word in self.vocabulary for word, _ in self._words(parts))

    def _words(self, parts: Any) -> list[tuple[str, Span]]:
        return [(parts.text[start:end], (start, end)) for start, end in self.cut(parts.text)]


# --- rows of a table --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowVectors:
    """Rows of a table as vectors: numbers in standard deviations from their mean, categories as 0 and 1, missing as another."""

    matrix: Any  # sparse, (rows, features)
    table: Any  # the rows as a model takes them
    columns: tuple[Column, ...]
    offsets: tuple[int, ...]  # where the features of each column begin
    called = "columns"

    @classmethod
    def of(cls, background: Any, columns: tuple[Column, ...], frame: bool, dtype: str) -> RowVectors:
        """The rows of training data whose columns were summed up as these."""
        table = _table(background, columns, frame, dtype)
        pieces = [_features(column, table[column.label] if frame else table[:, j]) for j, column in enumerate(columns)]
        offsets = np.cumsum([0, *(piece.shape[1] for piece in pieces)])[:-1]
        return cls(sparse.csr_array(sparse.hstack(pieces, format="csr")), table, columns, tuple(offsets.tolist()))

    def batch(self, part: slice) -> Any:
        """Some of the rows, as a model takes them."""
        return self.table.iloc[part] if hasattr(self.table, "iloc") else self.table[part]

    def vector(self, parts: Any) -> Floats:
        """The row that these parts are of."""
        found = np.zeros(self.matrix.shape[1])
        places, values = self._own(parts)
        found[places] = values
        return found

    def per_part(self, gradient: Floats, parts: Any) -> Floats:
        """A number a feature -> a number a column: that of its number, or of the category that the row has."""
        return np.asarray(parts.pool(gradient[self._own(parts)[0]], "mean"))

    def origin(self, parts: Any) -> Floats | None:
        """What the numbers are multiplied by: the row in standard deviations, 1 for a category."""
        return self._own(parts)[1]

    def strange(self, parts: Any) -> bool:
        """A row always has its columns."""
        return False

    def _own(self, parts: Any) -> tuple[NDArray[np.intp], Floats]:
        """The one feature of each column that is not 0 for this row, or may be moved, and its value."""
        places, values = [], []
        for column, offset, value in zip(self.columns, self.offsets, parts.row, strict=True):
            if column.numeric:
                places.append(offset + (value is None))
                values.append(1.0 if value is None else (float(value) - column.mean) / column.sd)
            else:
                places.append(offset + column.locate(value)[0])
                values.append(1.0)
        return np.array(places, dtype=np.intp), np.array(values)


def _table(background: Any, columns: tuple[Column, ...], frame: bool, dtype: str) -> Any:
    """Training rows as a model takes them, or one clear error."""
    labels = [column.label for column in columns]
    if frame:
        missing = [str(x) for x in labels if x not in getattr(background, "columns", ())]
        if missing:
            raise ValueError("background must be a DataFrame with the columns of the input, got "
                             f"{type(background).__name__} without {', '.join(missing[:6])}")
        return background[labels]
    array = background.to_numpy() if hasattr(background, "iloc") else background
    if not isinstance(array, np.ndarray):
        widths = {len(row) if isinstance(row, Sequence | np.ndarray) and not isinstance(row, str) else -1 for row in array}
        if widths != {len(labels)}:
            raise ValueError(f"background must be rows of the input's {len(labels)} columns, got "
                             f"{'values that are no rows' if -1 in widths else f'rows of {sorted(widths)} values'}")
        rows = np.empty((len(array), len(labels)), dtype=object)
        for i, row in enumerate(array):
            rows[i] = row
        array = rows.astype(dtype)
    if array.ndim != 2 or array.shape[1] != len(labels):
        raise ValueError(f"background must be rows of the input's {len(labels)} columns, got shape {array.shape}")
    return array


def _features(column: Column, values: Any) -> Any:
    """One column of training rows as features: (rows, 1), or more where it has categories or missing values."""
    if not column.numeric:
        states = {atom: state for state, atom in enumerate(column.atoms)}
        found = [states[value] if value in states else column.locate(value)[0] for value in _plain(values)]
        return _ones(np.array(found, dtype=np.intp), len(column.atoms))
    numbers = _numbers(column, values)
    gone = np.isnan(numbers)
    units = np.where(gone, 0.0, (numbers - column.mean) / column.sd)[:, None]
    if column.atoms[-1] is not None:
        if gone.any():
            raise ValueError(f"column {column.name!r} must never be missing, for it never was where the parts were cut, and "
                             f"{gone.sum()} rows of the background lack it; pass the same background for both")
        return sparse.csr_array(units)
    return sparse.csr_array(np.hstack([units, gone[:, None].astype(np.float64)]))


def _ones(codes: NDArray[np.intp], count: int) -> Any:
    return sparse.csr_array((np.ones(len(codes)), codes, np.arange(len(codes) + 1)), shape=(len(codes), count))


def _plain(values: Any) -> Iterable[Any]:
    """A column's values as Python has them, None where one is missing."""
    return (None if is_missing(value) else value for value in (values.tolist() if hasattr(values, "tolist") else values))


def _numbers(column: Column, values: Any) -> Floats:
    """A numeric column as floats, NaN where one is missing; dates as their column counts them."""
    if column.storage.timed:
        found = np.full(len(values), np.nan)
        there = values.notna().to_numpy(bool)
        found[there] = values[there].astype(column.storage.dtype).astype("int64").to_numpy(np.float64)
        return found
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
    if values.dtype.kind == "O":
        return np.array([np.nan if value is None else float(value) for value in _plain(values)], dtype=np.float64)
    return np.asarray(values, dtype=np.float64)
