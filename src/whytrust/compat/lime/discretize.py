"""Cutting numeric columns into bins: lime's discretizers, on whytrust's summaries of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from whytrust.compat.lime.seeds import seed_of
from whytrust.core import Floats, generator
from whytrust.domains.columns import PERCENTILES, Column, RawColumn, fit_numbers, read_table
from whytrust.domains.laws import Atoms

ENTROPY_DEPTH = 3  # at most eight bins
STATISTICS = ("means", "stds", "mins", "maxs")


class BaseDiscretizer:
    """To cut columns in a way of your own, inherit from this and write `bins`.

    `columns` holds whytrust's summary of each column that is cut, and everything else is read from it. Edges that would leave a
    bin without training values are dropped: no draw could fall into it. Missing values have a bin of their own, the last one.
    """

    def __init__(self, data: Any, categorical_features: Sequence[int], feature_names: Sequence[str], labels: Any = None,
                 random_state: Any = None, data_stats: Mapping[str, Any] | None = None) -> None:
        """Find the bins of every column that is numeric and not listed as categorical."""
        self.seed = seed_of(random_state)
        self.random_state = generator(self.seed, "undiscretize")
        self.data_stats = data_stats
        raw, _, _ = read_table(data, None)
        self.to_discretize = [i for i, column in enumerate(raw) if column.numeric and i not in set(categorical_features)]
        # A method of the user's own gets what lime would hand it.
        found = list(self.bins(_as_array(data), labels))
        if len(found) != len(self.to_discretize):
            raise ValueError(f"bins must give edges for each of the {len(self.to_discretize)} columns in to_discretize, "
                             f"got {len(found)}")
        self.columns: dict[int, Column] = {i: self._column(i, raw[i], np.unique(np.asarray(edges, dtype=np.float64)))
                                           for i, edges in zip(self.to_discretize, found, strict=True)}
        self.names = {i: bin_names(str(feature_names[i]), c) for i, c in self.columns.items()}
        self.means, self.stds, self.mins, self.maxs = ({i: list(getattr(c, field)) for i, c in self.columns.items()}
                                                       for field in ("means", "sds", "mins", "maxs"))
        self.lambdas = {i: partial(_bin_of, c.edges) for i, c in self.columns.items()}

    def bins(self, data: NDArray[Any], labels: Any) -> Sequence[Any]:
        """The edges of each column in `to_discretize`, in their order."""
        raise NotImplementedError("write a method bins(data, labels) that returns the edges of each column in to_discretize")

    def discretize(self, data: Any) -> NDArray[Any]:
        """A row, or rows, with the number of the bin in place of each value that is cut."""
        out = np.array(_as_array(data))
        for feature, place in self.lambdas.items():
            out[..., feature] = place(np.asarray(out[..., feature], dtype=np.float64))
        return out

    def undiscretize(self, data: Any) -> NDArray[Any]:
        """A row, or rows, with a value drawn from each bin: from a normal fitted to it and cut off at its edges."""
        out = np.array(data)
        for feature in self.columns:
            drawn = self.get_undiscretize_values(feature, np.atleast_1d(out[..., feature]).astype(np.intp))
            out[..., feature] = drawn if out.ndim > 1 else drawn[0]
        return out

    def get_undiscretize_values(self, feature: int, values: Any) -> Floats:
        """One value drawn from each of these bins of a column."""
        atoms, states = Atoms.from_normals(self.columns[feature]), np.asarray(values, dtype=np.intp)
        first, counts = np.searchsorted(atoms.states, states), np.bincount(atoms.states)[states]
        return np.asarray(atoms.numbers[first + (self.random_state.random(states.shape) * counts).astype(np.intp)])

    def _column(self, feature: int, raw: RawColumn, edges: Floats) -> Column:
        if self.data_stats is not None:
            return column_of(raw, feature, self.data_stats, edges)
        values = np.asarray(raw.present, dtype=np.float64)
        low, high = values.min(), values.max()
        if not ((edges >= low) & (edges < high)).any() and low < high:
            edges = np.array([values[values < high].max()])  # else the column would never be seen to vary
        return fit_numbers(raw, edges)


class QuartileDiscretizer(BaseDiscretizer):
    """Four bins with as many training values each."""

    def bins(self, data: NDArray[Any], labels: Any) -> list[Floats]:
        """The quartiles of each column."""
        return [np.percentile(_present(data, i), PERCENTILES["quartile"]) for i in self.to_discretize]


class DecileDiscretizer(BaseDiscretizer):
    """Ten bins with as many training values each."""

    def bins(self, data: NDArray[Any], labels: Any) -> list[Floats]:
        """The deciles of each column."""
        return [np.percentile(_present(data, i), PERCENTILES["decile"]) for i in self.to_discretize]


class EntropyDiscretizer(BaseDiscretizer):
    """Bins that tell the training labels apart: the thresholds of a small tree on each column alone."""

    def bins(self, data: NDArray[Any], labels: Any) -> list[Floats]:
        """The trees' thresholds; the median where a tree finds none."""
        if labels is None:
            raise ValueError("the entropy discretizer needs the labels of the training data; pass training_labels")
        return [self._thresholds(data, np.asarray(labels), i) for i in self.to_discretize]

    def _thresholds(self, data: NDArray[Any], labels: NDArray[Any], feature: int) -> Floats:
        values = np.asarray(data[:, feature], dtype=np.float64)
        there = ~np.isnan(values)
        tree = DecisionTreeClassifier(criterion="entropy", max_depth=ENTROPY_DEPTH, random_state=self.seed % 2**32)
        tree.fit(values[there, None], labels[there])
        found = tree.tree_.threshold[tree.tree_.children_left > -1]
        return np.asarray(found if len(found) else [np.median(values[there])])


class StatsDiscretizer(BaseDiscretizer):
    """Bins from statistics that were computed before, without the training data."""

    def bins(self, data: NDArray[Any], labels: Any) -> list[Any]:
        """The edges under "bins", else those between "maxs"."""
        stats = self.data_stats
        lacking = [key for key in STATISTICS if stats is None or key not in stats]
        if stats is None or lacking:
            raise ValueError(f"data_stats must have {', '.join(STATISTICS)} for each column, it lacks {', '.join(lacking)}")
        given = stats.get("bins") or {}
        return [given[i] if i in given else stats["maxs"][i][:-1] for i in self.to_discretize]


def column_of(raw: RawColumn, feature: int, stats: Mapping[str, Any], edges: Floats) -> Column:
    """A column from its statistics alone: one atom a bin, its mean, as often as the bin occurs."""
    parts = {key: tuple(float(v) for v in stats[key][feature]) for key in STATISTICS}
    counts = np.full(len(edges) + 1, 1.0)
    if "feature_frequencies" in stats:
        counts[:] = 0.0
        for state, count in zip(stats["feature_values"][feature], stats["feature_frequencies"][feature], strict=True):
            counts[int(state)] = count
    wrong = [key for key, values in parts.items() if len(values) != len(counts)]
    if wrong or not counts.sum() > 0:
        raise ValueError(f"training_data_stats of column {feature} must have one number for each of its {len(counts)} bins, "
                         f"got {', '.join(f'{len(parts[key])} {key}' for key in wrong) or 'frequencies that are all 0'}")
    chances = np.maximum(counts / counts.sum(), 1e-15)  # a bin that never occurs would be divided by
    means, sds = np.array(parts["means"]), np.array(parts["stds"])
    mean = float(chances @ means)
    sd = float(np.sqrt(chances @ (sds**2 + (means - mean) ** 2))) or 1.0
    return Column(raw.label, "binned", raw.storage, parts["means"], tuple(chances.tolist()), tuple(range(len(counts))),
                  tuple(edges.tolist()), parts["means"], parts["stds"], parts["mins"], parts["maxs"], mean, sd)


def bin_names(name: str, column: Column) -> list[str]:
    """Each bin in words, `0.30 < petal width (cm) <= 1.30`; with more than two decimals where two cannot tell edges apart."""
    edges, timed = column.edges, column.storage.timed
    if not edges:
        return [f"{name} <= {column.word(column.means[0]) if timed else f'{column.means[0]:.2f}'}"]
    texts = column.storage.times_told_apart(edges) if timed else _decimals(edges)
    inner = [f"{low} < {name} <= {high}" for low, high in pairwise(texts)]
    return [f"{name} <= {texts[0]}", *inner, f"{name} > {texts[-1]}"]


def _decimals(edges: Sequence[float]) -> list[str]:
    for decimals in range(2, 18):
        texts = [f"{edge:.{decimals}f}" for edge in edges]
        if len(set(texts)) == len(texts) and not any(float(t) == 0 != e for t, e in zip(texts, edges, strict=True)):
            break
    return texts


def _as_array(data: Any) -> NDArray[Any]:
    """A table as lime hands it around: an array, with dates and spans of time as numbers."""
    if not hasattr(data, "select_dtypes"):
        return np.asarray(data)
    data = data.copy(deep=False)
    for label in data.select_dtypes(["datetime", "datetimetz", "timedelta"]).columns:
        data[label] = np.where(data[label].isna(), np.nan, data[label].array.asi8)
    return np.asarray(data)


def _bin_of(edges: Sequence[float], values: Any) -> Any:
    """The bin of each value; missing ones are in the last, after all others."""
    return np.searchsorted(edges, values) + np.isnan(values)


def _present(data: NDArray[Any], feature: int) -> Floats:
    values = np.asarray(data[:, feature], dtype=np.float64)
    return values[~np.isnan(values)]
