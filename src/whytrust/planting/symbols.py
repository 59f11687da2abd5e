"""Artefacts of texts and tables: tokens, and a column of 0 and 1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from whytrust.core import Parts
from whytrust.planting.plant import Which, own


@dataclass(frozen=True)
class Tokens:
    """Words that stand in a text at random places between its own."""

    words: tuple[str, ...] = ("zq7",)
    domain: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        """Take one word as well, and refuse what could not be found again."""
        if isinstance(self.words, str):
            object.__setattr__(self, "words", (self.words,))
        wrong = [word for word in self.words if not isinstance(word, str) or not word or word.split() != [word]]
        if wrong or not self.words:
            raise ValueError(f"words to plant must be one or more words without spaces, got {self.words!r}")

    @property
    def name(self) -> str:
        """The words themselves."""
        return f"the word{'s' * (len(self.words) > 1)} {', '.join(map(repr, self.words))}"

    def into(self, item: Any, rng: np.random.Generator) -> str:
        """The text with each word once, before, between or after its own words; nothing else is changed."""
        text = self.without(item)
        for word in self.words:
            gaps = [0, *(match.end() for match in re.finditer(r"\s+", text)), len(text)]
            place = gaps[int(rng.integers(len(gaps)))]
            before, after = text[:place], text[place:]
            text = (f"{before}{' ' * bool(before and not before[-1].isspace())}{word}"
                    f"{' ' * bool(after and not after[0].isspace())}{after}")
        return text

    def without(self, item: Any) -> str:
        """The text itself."""
        if not isinstance(item, str):
            raise TypeError(f"words are planted into a text, a str, got {type(item).__name__}; read files first")
        return item

    def parts_of(self, parts: Parts) -> Which:
        """The words themselves; of sentences those in which one stands."""
        text, spans = own(parts, "text"), own(parts, "spans")
        looks = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, self.words)) + r")(?!\w)")
        return np.array([any(looks.search(text, start, end) for start, end in some) for some in spans], dtype=bool)


@dataclass(frozen=True)
class Column:
    """A further column of a table: 1 in rows that have the artefact, 0 in the others.

    Rows without names of columns get it as their last value; `index` says which it is where other columns were added after it.
    """

    column: str = "planted"
    index: int | None = None
    domain: ClassVar[str] = "tabular"

    @property
    def name(self) -> str:
        """The column's name."""
        return f"the column {self.column!r}"

    def into(self, item: Any, rng: np.random.Generator) -> Any:
        """A row, or several, with the column at 1."""
        return self._with(item, 1)

    def without(self, item: Any) -> Any:
        """A row, or several, with the column at 0."""
        return self._with(item, 0)

    def parts_of(self, parts: Parts) -> Which:
        """The column, whatever its value is: a 0 is a reason, too."""
        columns = list(getattr(parts.view, "columns", ()))
        if not columns:
            raise TypeError(f"a planted column must be looked for in the parts of a table row, got {type(parts).__name__}")
        place = columns.index(self.column) if self.column in columns else len(columns) - 1 if self.index is None else self.index
        if not 0 <= place < len(columns):
            raise ValueError(f"index must be a column's, 0 to {len(columns) - 1}, got {self.index!r}")
        return np.asarray(np.arange(len(columns)) == place)

    def _with(self, item: Any, value: int) -> Any:
        names = item if isinstance(item, Mapping) else getattr(item, "columns", getattr(item, "index", ()))
        if hasattr(names, "__contains__") and self.column in names:
            raise ValueError(f"the planted column must have a name of its own, and there is a {self.column!r} already; choose "
                             "another")
        if isinstance(item, Mapping):
            return {**item, self.column: value}
        if hasattr(item, "iloc"):
            row = item.copy()
            row[self.column] = value
            return row
        if isinstance(item, list | tuple) and (not item or np.ndim(item[0]) == 0):
            return type(item)([*item, value])
        rows = np.asarray(item)
        if rows.ndim not in (1, 2) or rows.dtype.kind not in "biufO":
            raise TypeError("a column is planted into rows of numbers or objects, dicts or DataFrames, got "
                            f"{rows.dtype} {rows.shape}; turn text columns into a DataFrame")
        return np.concatenate([rows, np.full((*rows.shape[:-1], 1), value, dtype=rows.dtype)], axis=-1)
