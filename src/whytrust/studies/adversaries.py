"""Where a trial's adversaries come from: an attack that follows gradients, or the nearest training row of another class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel
from whytrust.core import Floats
from whytrust.domains.columns import Column
from whytrust.domains.tabular import TableStatistics, read_row

OnCalls = Callable[[int], None]
FULL = "full"
"""The strength of the attack as it was asked for."""


@dataclass(frozen=True, eq=False)
class Played:
    """The sounds behind two spectrograms, to listen to."""

    clean: NDArray[np.float32]
    changed: NDArray[np.float32]
    rate: int
    moment: str | None = None  # where in a longer sound this is
    label: int | None = None  # what the model says of `changed`, where it was given something else than that sound


@dataclass(frozen=True, eq=False)
class Adversary:
    """An input before and after, and what the model says of both; `reached` is whether it was fooled."""

    clean: Any
    changed: Any
    clean_label: int
    label: int
    reached: bool
    facts: dict[str, Any]
    played: Played | None = None


Found = dict[int, Adversary | Exception]


@dataclass(frozen=True, eq=False)
class ByGradient:
    """Adversaries by an attack of the catalogue; a strength is the margin at which it stops, or "full"."""

    attack: Any
    targets: Any = "random"

    def __call__(self, model: CheckedModel, given: Sequence[Any], ids: Sequence[str], strength: str, seed: int,
                 on_calls: OnCalls) -> Found:
        """One adversary an input, or its error."""
        attack = self.attack if strength == FULL else replace(self.attack, stop="success", margin=margin_of(strength))
        try:
            result = attack(model, list(given), self.targets, seed, ids=list(ids), on_calls=on_calls)
        except (ValueError, TypeError) as error:
            if len(given) == 1:
                return {0: error}
            # An attack refuses all of its inputs where each has failed; one by one each says why.
            return {i: self(model, [one], [ids[i]], strength, seed, on_calls)[0] for i, one in enumerate(given)}
        found: Found = {}
        for i, outcome in enumerate(result.outcomes):
            if outcome is None:
                found[i] = result.errors[i]
                continue
            facts = {name: getattr(outcome, name) for name in
                     ("target", "iterations", "margin", "linf", "l2", "relative_linf", "relative_l2", "epsilon")}
            reached = outcome.success and outcome.label != outcome.clean_label
            found[i] = Adversary(outcome.clean, outcome.adversarial, outcome.clean_label, outcome.label, reached, facts)
        return found


def margin_of(strength: str) -> float:
    """The number in "margin 2.5"."""
    return float(strength.removeprefix("margin "))


@dataclass(frozen=True, eq=False)
class NearestRow:
    """The adversary of a table row is the nearest training row to which the model gives another label.

    Near is in standard deviations of each column; another category, or a missing value, counts as one. It needs no gradient,
    and what it leads to is a row that really occurred; how far away that is differs from row to row.
    """

    statistics: TableStatistics
    rows: Any  # the training rows, a DataFrame or an array
    table: list[NDArray[Any]] = field(init=False, repr=False)  # plain values, an array a column
    labels: NDArray[np.intp] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        """Read the training rows."""
        plain = zip(*(self._plain(self._row(i)) for i in range(len(self.rows))), strict=True)
        table = [np.array([np.nan if v is None else v for v in values], dtype=np.float64) if column.numeric
                 else _objects(values) for column, values in zip(self.statistics.columns, plain, strict=True)]
        object.__setattr__(self, "table", table)

    def __call__(self, model: CheckedModel, given: Sequence[Any], ids: Sequence[str], strength: str, seed: int,
                 on_calls: OnCalls) -> Found:
        """One training row an input, or an error where no training row has another label."""
        labels = self._labels(model)
        found: Found = {}
        for i, row in enumerate(given):
            try:
                found[i] = self._nearest(model, row, labels, on_calls)
            except (ValueError, TypeError) as error:
                found[i] = error
        return found

    def _nearest(self, model: CheckedModel, row: Any, labels: NDArray[np.intp], on_calls: OnCalls) -> Adversary:
        own = self._plain(row)
        scores = model(self._batch([own]))
        on_calls(1)
        here = int(model.labels(scores)[0])
        if (labels == here).all():
            raise ValueError(f"every training row is labelled {model.class_name(here, scores.shape[1])}, as this one is, so "
                             "there is no adversary; pass a background with more than one predicted class")
        distances = np.sum([_apart(column, values, value) for column, values, value in
                            zip(self.statistics.columns, self.table, own, strict=True)], axis=0)
        nearest = int(np.argmin(np.where(labels == here, np.inf, distances)))
        return Adversary(row, self._row(nearest), here, int(labels[nearest]), True,
                         {"target": None, "row": nearest, "l2": float(np.sqrt(distances[nearest]))})

    def _labels(self, model: CheckedModel) -> NDArray[np.intp]:
        """What the model says of every training row; asked once in each process, and so no input's calls."""
        if self.labels is None:
            rows = [self._plain(self._row(i)) for i in range(len(self.rows))]
            object.__setattr__(self, "labels", model.labels(model(self._batch(rows))))
        assert self.labels is not None
        return self.labels

    def _batch(self, rows: Sequence[tuple[Any, ...]]) -> Any:
        return self.statistics.batch([c.storage.array(list(values)) for c, values in
                                      zip(self.statistics.columns, zip(*rows, strict=True), strict=True)])

    def _row(self, index: int) -> Any:
        return self.rows.iloc[index] if hasattr(self.rows, "iloc") else self.rows[index]

    def _plain(self, row: Any) -> tuple[Any, ...]:
        return tuple(column.locate(value)[1] for column, value in
                     zip(self.statistics.columns, read_row(row, self.statistics), strict=True))


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _apart(column: Column, values: NDArray[Any], value: Any) -> Floats:
    """Squared distances of a column's values from one of them; see TableParts.squared_change."""
    if not column.numeric:
        return np.array([v != value for v in values], dtype=np.float64)
    missing = np.isnan(values)
    if value is None:
        return np.where(missing, 0.0, 1.0)
    return np.where(missing, 1.0, ((values - value) / column.sd) ** 2)
