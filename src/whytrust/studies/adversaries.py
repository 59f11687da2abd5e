"""Where a trial's adversaries come from: an attack that follows gradients, the nearest row of another class, or a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.attacks import prepare
from whytrust.checked import CheckedModel
from whytrust.core import Floats
from whytrust.domains.columns import Column
from whytrust.domains.image import laid_out
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
    targets: Any = "random"  # or one for each input, in a list

    def __call__(self, model: CheckedModel, given: Sequence[Any], ids: Sequence[str], strength: str, seed: int,
                 on_calls: OnCalls) -> Found:
        """One adversary an input, or its error."""
        attack = self.attack if strength == FULL else replace(self.attack, stop="success", margin=margin_of(strength))
        try:
            targets = [self.targets[int(one)] for one in ids] if isinstance(self.targets, list) else self.targets
            result = attack(model, list(given), targets, seed, ids=list(ids), on_calls=on_calls)
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


@dataclass(frozen=True, eq=False)
class Saved:
    """Adversaries that were made before, one for each input in the order of the inputs.

    The model is asked about both. One whose label is that of the clean input, or is not its target, did not fool the model.
    """

    changed: Sequence[Any]
    targets: list[Any] | None = None
    layout: str | None = None  # of images: where the model has its channels
    statistics: TableStatistics | None = None  # of table rows

    def __call__(self, model: CheckedModel, given: Sequence[Any], ids: Sequence[str], strength: str, seed: int,
                 on_calls: OnCalls) -> Found:
        """One adversary an input, or its error."""
        if strength != FULL:
            raise ValueError(f"saved adversaries have one strength, got {strength!r}")
        found: Found = {}
        for i, (clean, case) in enumerate(zip(given, ids, strict=True)):
            try:
                found[i] = self._asked(model, clean, self.changed[int(case)], int(case), on_calls)
            except (ValueError, TypeError) as error:
                found[i] = error
        return found

    def _asked(self, model: CheckedModel, clean: Any, changed: Any, place: int, on_calls: OnCalls) -> Adversary:
        if self.statistics is not None:
            scores = model(row_batch(self.statistics, [plain_row(self.statistics, row) for row in (clean, changed)]))
            facts: dict[str, Any] = {}
        else:
            clean, changed = numbers(clean), numbers(changed if self.layout is None else laid_out(changed, self.layout))
            if clean.shape != changed.shape:
                raise ValueError(f"a saved adversary must have its input's shape: expected {clean.shape}, got {changed.shape}")
            scores = model(np.stack([clean, changed]))
            facts = _sizes(clean, changed)
        on_calls(2)
        here, there = (int(label) for label in model.labels(scores))
        reached, target = hit(model, self.targets, place, here, there, scores.shape[1])
        margin = float(scores[1, there] - np.delete(scores[1], there).max(initial=-np.inf))
        return Adversary(clean, changed, here, there, reached, {"saved": True, "target": target, "margin": margin, **facts})


def hit(model: CheckedModel, targets: Sequence[Any] | None, place: int, here: int, there: int,
        columns: int) -> tuple[bool, int | None]:
    """(whether a change of the label from `here` to `there` is what was wanted, the target's number)"""
    target = None if targets is None else model.class_index(targets[place], columns)
    return there != here and target in (None, there), target


def numbers(value: Any) -> Floats:
    """An input in the type that attacks give it."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise ValueError(f"a saved adversary and its input must have finite numbers, got {array.dtype} of shape {array.shape}")
    return prepare.floats(array, None)


def _sizes(clean: Floats, changed: Floats) -> dict[str, float]:
    """How large the change is, as attacks tell it."""
    change, own = (np.asarray(one, dtype=np.float64) for one in (changed - clean, clean))
    l2, linf, length, span = (float(one) for one in (np.linalg.norm(change), np.abs(change).max(), np.linalg.norm(own),
                                                     np.ptp(own)))
    return {"linf": linf, "l2": l2, "relative_linf": linf / max(span, 1e-12), "relative_l2": l2 / max(length, 1e-12)}


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
        return row_batch(self.statistics, rows)

    def _row(self, index: int) -> Any:
        return self.rows.iloc[index] if hasattr(self.rows, "iloc") else self.rows[index]

    def _plain(self, row: Any) -> tuple[Any, ...]:
        return plain_row(self.statistics, row)


def plain_row(statistics: TableStatistics, row: Any) -> tuple[Any, ...]:
    """The values of a row, a category by its own name."""
    return tuple(column.locate(value)[1] for column, value in zip(statistics.columns, read_row(row, statistics), strict=True))


def row_batch(statistics: TableStatistics, rows: Sequence[tuple[Any, ...]]) -> Any:
    """Rows as one batch for a model."""
    return statistics.batch([column.storage.array(list(values)) for column, values in
                             zip(statistics.columns, zip(*rows, strict=True), strict=True)])


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
