"""Why does a model score a table row as it does? lime's names, whytrust's answers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whytrust.checked import CheckedModel
from whytrust.compat.lime.asking import Neighbourhood, ask
from whytrust.compat.lime.discretize import (
    BaseDiscretizer,
    DecileDiscretizer,
    EntropyDiscretizer,
    QuartileDiscretizer,
    StatsDiscretizer,
)
from whytrust.compat.lime.exceptions import LimeError
from whytrust.compat.lime.explanation import DomainMapper, Explanation
from whytrust.compat.lime.lime_base import LimeBase
from whytrust.compat.lime.seeds import seed_of
from whytrust.compat.lime.tables import AroundRow, SparseRows, Wording, sparse_columns, with_category
from whytrust.core import Floats, Parts, generator
from whytrust.domains.columns import Column, RawColumn, fit_categories, fit_numbers, read_table
from whytrust.domains.tabular import TableParts, TableStatistics, read_row

DISCRETIZERS = {"quartile": QuartileDiscretizer, "decile": DecileDiscretizer, "entropy": EntropyDiscretizer}
NEEDED = ("means", "mins", "maxs", "stds", "feature_values", "feature_frequencies")


@dataclass(frozen=True, eq=False)
class TableDomainMapper(DomainMapper):
    """Numbers of columns -> their names and conditions."""

    feature_names: list[str]
    feature_values: list[str]
    scaled_row: Floats
    categorical_features: list[int]
    discretized_feature_names: list[str] | None = None
    feature_indexes: list[int] | None = None

    @property
    def exp_feature_names(self) -> list[str]:
        """As `feature_names`."""
        return self.feature_names

    @property
    def all_categorical(self) -> bool:
        """Whether no column is a number as it comes."""
        return len(self.categorical_features) == len(self.scaled_row)

    def map_exp_ids(self, exp: list[tuple[int, float]], **kwargs: Any) -> list[tuple[Any, float]]:
        """("0.30 < petal width (cm) <= 1.30", weight)."""
        names = self.discretized_feature_names or self.feature_names
        return [(names[i], weight) for i, weight in exp]


@dataclass(frozen=True, eq=False)
class Scaler:
    """Mean and scale of each column; categories have 0 and 1."""

    mean_: Floats
    scale_: Floats


class LimeTabularExplainer:
    """Which columns speak for a class, or for a higher number? lime's constructor.

    Unlike lime: DataFrames, text categories and missing values need no encoding, predict_fn gets rows in the container and
    dtypes of the training data (so whole numbers stay whole), the same call gives the same answer, and explainers pickle.
    """

    def __init__(self, training_data: Any, mode: str = "classification", training_labels: Any = None,
                 feature_names: Sequence[Any] | None = None, categorical_features: Sequence[Any] | None = None,
                 categorical_names: Mapping[int, Any] | None = None, kernel_width: float | None = None,
                 kernel: Callable[..., Any] | None = None, verbose: bool = False, class_names: Sequence[Any] | None = None,
                 feature_selection: str = "auto", discretize_continuous: bool = True,
                 discretizer: str | BaseDiscretizer = "quartile", sample_around_instance: bool = False,
                 random_state: Any = None, training_data_stats: Mapping[str, Any] | None = None) -> None:
        """Sum the training data up; no row of them is kept. random_state: None is seed 0."""
        if mode not in ("classification", "regression"):
            raise LimeError(f"mode must be 'classification' or 'regression', got {mode!r}")
        self.seed = self.random_state = seed_of(random_state)
        self.mode, self.verbose, self.feature_selection = mode, verbose, feature_selection
        self.class_names = None if class_names is None else list(class_names)
        self.categorical_names = dict(categorical_names or {})
        self.sample_around_instance, self.training_data_stats = sample_around_instance, training_data_stats
        self.sparse = sparse.issparse(training_data)
        width = np.shape(training_data)[1]
        self.feature_names = _names(training_data, feature_names, width)
        self.kernel, self.kernel_width = kernel, 0.75 * math.sqrt(width) if kernel_width is None else float(kernel_width)
        self.base = LimeBase(self._neighbourhood().kernel_function, verbose, self.seed)
        self.discretizer: BaseDiscretizer | None = None
        self.categorical_features: list[int] = []
        self.feature_values: dict[int, list[Any]] = {}
        self.feature_frequencies: dict[int, Floats] = {}
        if self.sparse:
            self._sum_up_sparse(training_data, categorical_features)
        else:
            self._sum_up(training_data, training_labels, categorical_features, discretizer if discretize_continuous else None)
        if sample_around_instance and self.discretizer is not None:
            warnings.warn("sample_around_instance means nothing where columns are cut into bins; pass "
                          "discretize_continuous=False with it", stacklevel=2)
        columns = self.statistics.columns
        self.scaler = Scaler(*(np.array([getattr(c, a) if c.kind == "continuous" else plain for c in columns])
                               for a, plain in (("mean", 0.0), ("sd", 1.0))))

    def explain_instance(self, data_row: Any, predict_fn: Any, labels: Iterable[int] = (1,), top_labels: int | None = None,
                         num_features: int = 10, num_samples: int = 5000, distance_metric: Any = "euclidean",
                         model_regressor: Any = None, sampling_method: str = "gaussian") -> Explanation:
        """Explain `labels`, or the `top_labels` most probable classes; a regression has no labels."""
        if sampling_method != "gaussian":
            raise ValueError(f"sampling_method must be 'gaussian', got {sampling_method!r}; Latin hypercubes are not drawn "
                             "here, for less noise ask for more num_samples")
        ids, parts, ask_model = self._row(data_row, predict_fn)
        wording = Wording.of(parts, self.feature_names, self.categorical_names, ids)

        def cut(model: CheckedModel) -> Parts:
            return AroundRow.of(parts) if self.sample_around_instance and self.discretizer is None else parts

        how = self._neighbourhood(samples=num_samples, features=num_features, metric=distance_metric, regressor=model_regressor)
        # A discretizer of the user's own brings its own seed along.
        more = () if self._built_in else (getattr(self.discretizer, "seed", 0),)
        answers = ask(ask_model, cut, how, lambda: generator(self.seed, "explain", *more), labels=labels, top_labels=top_labels,
                      class_names=self.class_names if self.mode == "classification" else None,
                      regression=self.mode == "regression", verbose=self.verbose, seed=self.seed)
        if self.mode == "classification" and abs(answers.scores.sum() - 1) > 1e-3:
            warnings.warn(f"predict_fn must return probabilities that add up to 1 for a classifier, they add up to "
                          f"{answers.scores.sum():.4g}; the scores are explained as they are", stacklevel=2)
        answers = replace(answers, explanations={k: wording.reworded(e) for k, e in answers.explanations.items()})
        mapper = self._mapper(parts, wording, ids)
        return Explanation(mapper, self.mode, self.class_names, self.seed).fill(answers, ids)

    @staticmethod
    def validate_training_data_stats(training_data_stats: Mapping[str, Any]) -> None:
        """Refuse statistics that lack a key."""
        lacking = [key for key in NEEDED if key not in training_data_stats]
        if lacking:
            raise ValueError(f"training_data_stats must have {', '.join(NEEDED)}; it lacks {', '.join(lacking)}")

    @staticmethod
    def convert_and_round(values: Iterable[float]) -> list[str]:
        """Numbers with two decimals, as text."""
        return [f"{value:.2f}" for value in values]

    def _sum_up(self, table: Any, labels: Any, categorical: Sequence[Any] | None, discretizer: Any) -> None:
        frame = hasattr(table, "columns")
        unique = len(set(self.feature_names)) == len(self.feature_names)
        raw, frame, dtype = read_table(table, self.feature_names if unique and not frame else None)
        listed = [_position(key, raw) for key in (() if categorical is None else categorical)]
        categories = {*listed, *(i for i, column in enumerate(raw) if not column.numeric)}
        self._built_in = not isinstance(discretizer, BaseDiscretizer)
        self.discretizer = self._cutter(table, sorted(categories), labels, discretizer)
        cut = {} if self.discretizer is None else self.discretizer.columns
        columns = tuple(cut[i] if i in cut else self._categories(i, column) if i in categories else fit_numbers(column, None)
                        for i, column in enumerate(raw))
        columns = tuple(replace(c, label=column.label, storage=column.storage) for c, column in zip(columns, raw, strict=True))
        if not any(c.varies for c in columns):
            raise ValueError(f"at least one column of training_data must vary, all {len(columns)} are constant")
        self.statistics = TableStatistics(columns, frame, dtype)
        self.categorical_features = list(range(len(raw))) if self.discretizer is not None else (
            [*listed, *sorted(categories - set(listed))])
        for i in self.categorical_features:
            self.feature_values[i], self.feature_frequencies[i] = _states(columns[i])

    def _cutter(self, table: Any, categories: list[int], labels: Any, discretizer: Any) -> BaseDiscretizer | None:
        if discretizer is None:
            return None
        if self.training_data_stats is not None:
            self.validate_training_data_stats(self.training_data_stats)
            return StatsDiscretizer(table, categories, self.feature_names, labels, self.seed, self.training_data_stats)
        if isinstance(discretizer, BaseDiscretizer):
            return discretizer
        if not isinstance(discretizer, str) or discretizer not in DISCRETIZERS:
            raise ValueError(f"discretizer must be one of {', '.join(DISCRETIZERS)} or a BaseDiscretizer, got {discretizer!r}")
        return DISCRETIZERS[discretizer](table, categories, self.feature_names, labels, self.seed)

    def _categories(self, feature: int, raw: RawColumn) -> Column:
        found = fit_categories(raw)
        if self.training_data_stats is None:
            return found
        values, counts = (list(self.training_data_stats[key][feature]) for key in ("feature_values", "feature_frequencies"))
        chances = tuple(count / sum(counts) for count in counts)
        return replace(found, atoms=tuple(values), chances=chances, states=tuple(range(len(values))))

    def _sum_up_sparse(self, table: Any, categorical: Sequence[Any] | None) -> None:
        if categorical is not None and len(categorical):
            raise ValueError("a sparse table has no categorical columns here; pass training_data.toarray() to use them")
        self._built_in = True
        columns = sparse_columns(table.tocsc())
        self.statistics = TableStatistics(columns, False, columns[0].storage.dtype)

    def _row(self, row: Any, predict_fn: Any) -> tuple[list[int], TableParts, Any]:
        """(the columns that are parts, the parts, the model as asked); of a sparse row only what is not 0 is a part."""
        columns = self.statistics.columns
        if self.sparse:
            compressed = sparse.csr_matrix(row)
            if compressed.shape != (1, len(columns)) or not compressed.nnz:
                raise ValueError(f"data_row must be one row of {len(columns)} columns with a value that is not 0, got "
                                 f"{compressed.shape} with {compressed.nnz} such values")
            ids = [int(i) for i in compressed.indices]
            some = replace(self.statistics, columns=tuple(columns[i] for i in ids))
            rows = SparseRows(predict_fn, compressed.indices, len(columns))
            return ids, TableParts(compressed.data.tolist(), some, "normal"), rows
        if not self.statistics.frame and hasattr(row, "iloc"):
            row = row.to_numpy().ravel()
        if sparse.issparse(row):
            row = row.toarray()[0]
        values = read_row(row, self.statistics)
        columns = tuple(with_category(column, value) for column, value in zip(columns, values, strict=True))
        return list(range(len(values))), TableParts(values, replace(self.statistics, columns=columns), "normal"), predict_fn

    def _mapper(self, parts: TableParts, wording: Wording, ids: list[int]) -> TableDomainMapper:
        names, values = list(self.feature_names), list(wording.values)
        for place, (i, column) in enumerate(zip(ids, parts.statistics.columns, strict=True)):
            if column.kind == "categorical":
                names[i], values[place] = wording.conditions[place], "True"
        whole = list(names)
        for i, condition in zip(ids, wording.conditions, strict=True):
            whole[i] = condition
        origin = parts.draw(0, generator(0)).origin
        return TableDomainMapper(names, values, origin, self.categorical_features, whole, ids if self.sparse else None)

    def _neighbourhood(self, **of_a_call: Any) -> Neighbourhood:
        return Neighbourhood(self.kernel_width, self.kernel, self.feature_selection, **{"metric": "euclidean", **of_a_call})


class RecurrentTabularExplainer(LimeTabularExplainer):
    """Rows that are (time steps, features): explained as one long row of features at each step."""

    def __init__(self, training_data: Any, mode: str = "classification", training_labels: Any = None,
                 feature_names: Sequence[Any] | None = None, *args: Any, **kwargs: Any) -> None:
        """training_data: (rows, time steps, features); all else is as for LimeTabularExplainer."""
        table = np.asarray(training_data)
        if table.ndim != 3:
            raise ValueError(f"training_data must be (rows, time steps, features), got shape {table.shape}")
        _, self.n_timesteps, self.n_features = table.shape
        names = [str(i) for i in range(self.n_features)] if feature_names is None else feature_names
        each = [f"{name}_t-{self.n_timesteps - 1 - step}" for name in names for step in range(self.n_timesteps)]
        flat = table.transpose(0, 2, 1).reshape(len(table), -1)
        super().__init__(flat, mode, training_labels, each, *args, **kwargs)

    def explain_instance(self, data_row: Any, classifier_fn: Any, *args: Any,  # type: ignore[override]
                         **kwargs: Any) -> Explanation:
        """data_row: (time steps, features); classifier_fn gets (n, time steps, features)."""
        row = np.asarray(data_row)
        if row.shape != (self.n_timesteps, self.n_features):
            raise ValueError(f"data_row must be (time steps, features) = ({self.n_timesteps}, {self.n_features}), "
                             f"got {row.shape}")
        return super().explain_instance(row.T.ravel(), Steps(classifier_fn, self.n_timesteps, self.n_features), *args, **kwargs)


@dataclass(frozen=True, eq=False)
class Steps:
    """A model of (n, time steps, features), asked about flat rows."""

    predict_fn: Callable[[Any], Any]
    steps: int
    features: int

    def __call__(self, batch: Any) -> Any:
        """Flat rows -> scores."""
        return self.predict_fn(batch.reshape(len(batch), self.features, self.steps).transpose(0, 2, 1))


def _names(table: Any, given: Sequence[Any] | None, width: int) -> list[str]:
    names = list(table.columns) if given is None and hasattr(table, "columns") else range(width) if given is None else given
    if len(names) != width:
        raise ValueError(f"feature_names must name every column: training_data have {width}, got {len(names)}")
    return [str(name) for name in names]


def _position(key: Any, raw: list[RawColumn]) -> int:
    """lime's numbers are places; with a DataFrame names are understood too."""
    labels: list[Any] = [column.label for column in raw]
    if isinstance(key, str) and key in labels:
        return labels.index(key)
    if isinstance(key, int | np.integer) and 0 <= key < len(labels):
        return int(key)
    raise ValueError(f"categorical_features must be numbers of columns, 0 to {len(labels) - 1}, or their names, got {key!r}")


def _states(column: Column) -> tuple[list[Any], NDArray[Any]]:
    """The values (categories, or numbers of bins) and how often each occurs."""
    if column.kind == "binned":
        return list(range(len(column.frequencies))), column.frequencies
    atoms = column.atoms
    order = sorted(range(len(atoms)), key=lambda i: (atoms[i] is None, str(type(atoms[i])), atoms[i]))
    return [atoms[i] for i in order], np.array([column.chances[i] for i in order])
