"""Boosters as xgboost.train and lightgbm.train return them: trees without an estimator that knows what they were trained on.

A booster itself knows its columns, and so a table may have them in any order; text becomes the categories it was trained with.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust.checked import Refused, RefusedKind
from whytrust.core import Batch, Floats, need
from whytrust.logits import sigmoid, softmax

OPTIONS = ()
LIBRARIES = {"xgboost": "XGBoost", "lightgbm": "LightGBM"}
PROBABILITIES = ("binary:logistic", "multi:softprob", "multi:softmax", "binary", "multiclass", "multiclassova")
"""Objectives of either library whose scores are probabilities of classes."""


def accepts(obj: Any) -> bool:
    """Is this a booster of XGBoost or LightGBM?"""
    return _library(obj) is not None


def adapt(obj: Any) -> tuple[BoosterScores, dict[str, Any]]:
    """The booster as a function, and whether its scores are probabilities."""
    scores = _xgboost(obj) if _library(obj) == "xgboost" else _lightgbm(obj)
    return scores, {"name": "Booster", **({"output": "probability"} if scores.objective in PROBABILITIES else {})}


def content(booster: Any) -> bytes:
    """What a booster has learnt, the same bytes in any process."""
    return bytes(booster.save_raw("json")) if _library(booster) == "xgboost" else booster.model_to_string().encode()


@dataclass(frozen=True, eq=False)
class BoosterScores:
    """A booster's scores: probabilities of classes, the margin of a hinge, or one number.

    They are XGBoost's own in double precision, so that probabilities near 0 and 1 keep their log-odds.
    """

    booster: Any
    objective: str
    width: int
    columns: tuple[str, ...] | None  # None where it was trained on an array
    categorical: tuple[bool | None, ...] | None  # whether each column is; None where nobody knows
    by_value: bool  # does it know its categories by their names, and not by numbers alone?

    @property
    def kind(self) -> str:
        """What this is, in a few words."""
        library = LIBRARIES[str(_library(self.booster))]
        return f"{'an' if library == 'XGBoost' else 'a'} {library} booster, {self.objective}"

    def __call__(self, batch: Batch) -> Floats:
        """(n, classes), or (n,) for the second of two classes or a number."""
        rows = self._rows(batch)
        try:
            return self._xgboost(rows) if _library(self.booster) == "xgboost" else np.asarray(self.booster.predict(rows))
        except ValueError as error:  # what comes of XGBoost's C++ has the time before it and a list of addresses after it
            raise RuntimeError(re.sub(r"^\[[\d:]+\] \S+: ", "", str(error)).partition("Stack trace:")[0]) from error

    def _xgboost(self, rows: Any) -> Floats:
        given = {} if hasattr(rows, "columns") else {"feature_names": self.columns, "feature_types": self.booster.feature_types}
        matrix = sys.modules["xgboost"].DMatrix(rows, enable_categorical=True, **given)
        classes = self.objective in PROBABILITIES
        found = self.booster.predict(matrix, output_margin=classes or self.objective == "binary:hinge").astype(np.float64)
        if classes:
            return sigmoid(found) if found.ndim == 1 else softmax(found)
        return np.column_stack([-found, found]) if self.objective == "binary:hinge" else np.asarray(found)

    # --- rows as the booster was trained on them ----------------------------------------------------------------------

    def _rows(self, batch: Batch) -> Any:
        """An array of numbers, or a DataFrame with the booster's columns in its order."""
        framed = hasattr(batch, "columns")
        rows: Any = batch if framed else np.asarray(batch)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise Refused(f"the booster must be given rows with its {self.width} columns{self._listed()}, got "
                          f"{_described(rows)}; leave out what it was not trained on, such as a label")
        if not framed and rows.dtype.kind != "O":
            return rows
        frame = rows if framed else need("pandas", "tables").DataFrame(rows, columns=self.columns)
        if self.columns is not None:
            named = {self._name(column): i for i, column in enumerate(frame.columns)}
            if lacks := [column for column in self.columns if column not in named]:
                raise Refused(f"the booster must be given the columns it was trained on{self._listed()}, got "
                              f"{_described(frame)}: it lacks {', '.join(lacks)[:200]}; name the columns as in its training")
            frame = frame.iloc[:, [named[column] for column in self.columns]]
        made = {i: self._column(frame.iloc[:, i], i) for i in range(self.width)}
        if self.columns is None and not any(str(one.dtype) == "category" for one in made.values()):
            return np.column_stack([one.to_numpy(dtype=np.float64, na_value=np.nan) for one in made.values()])
        pandas = need("pandas", "tables")
        return pandas.DataFrame(dict(zip(self.columns or frame.columns, made.values(), strict=True)))

    def _column(self, values: Any, place: int) -> Any:
        """Numbers, or the categories that the booster has there; objects may be either."""
        types = need("pandas", "tables").api.types
        asked, has = None if self.categorical is None else self.categorical[place], str(values.dtype) == "category"
        if types.is_numeric_dtype(values.dtype) and not (asked and self.by_value):
            return values
        if values.dtype == object and not asked:
            try:
                return values.astype(np.float64)
            except (TypeError, ValueError):  # text
                pass
        if asked is False or not (has or self.by_value):
            wanted = "the codes of categories that the booster was trained on" if asked else "numbers"
            raise RefusedKind(f"column {values.name!r} must hold {wanted}, got {values.dtype}; encode it as in the booster's "
                              "training")
        return values if has else values.astype("category")

    def _name(self, column: Any) -> str:
        return str(column) if _library(self.booster) == "xgboost" else re.sub(r"\s", "_", str(column))  # as it has them

    def _listed(self) -> str:
        return "" if self.columns is None else f" ({_few(self.columns)})"


def _library(obj: Any) -> str | None:
    tops = (c.__module__.partition(".")[0] for c in type(obj).__mro__ if c.__name__ == "Booster")
    return next((top for top in tops if top in LIBRARIES), None)


def _xgboost(booster: Any) -> BoosterScores:
    try:
        trained = booster.num_boosted_rounds() > 0
    except sys.modules["xgboost"].core.XGBoostError:  # it has no columns yet
        trained = False
    _check_trained(trained)
    told = json.loads(booster.save_config())["learner"]
    if int(told["learner_model_param"].get("num_target", 1)) > 1:
        raise TypeError("a booster must predict one thing, it predicts several at once; pass a function that returns the "
                        "scores of one, such as lambda rows: booster.predict(xgboost.DMatrix(rows))[:, 0]")
    names, types = booster.feature_names, booster.feature_types
    # Before XGBoost 3.1 boosters know codes alone; one that is linear has no categories and refuses to say so.
    by_value = "c" in (types or ()) and hasattr(booster, "get_categories") and not booster.get_categories().empty()
    return BoosterScores(booster, told["objective"]["name"], booster.num_features(), None if names is None else tuple(names),
                         None if types is None else tuple(one == "c" for one in types), by_value)


def _lightgbm(booster: Any) -> BoosterScores:
    _check_trained(booster.num_trees() > 0)
    head = booster.model_to_string(num_iteration=1)
    found = {name: re.search(rf"^{name}=(.*)$", head, re.M) for name in ("objective", "feature_infos")}
    objective = found["objective"][1].split()[0] if found["objective"] else "an objective of its own"
    ranges = found["feature_infos"][1].split() if found["feature_infos"] else []
    names = tuple(booster.feature_name())
    unnamed = names == tuple(f"Column_{i}" for i in range(len(names)))
    return BoosterScores(booster, objective, len(names), None if unnamed else names,
                         tuple(None if one == "none" else one[0] != "[" for one in ranges) or None,
                         bool(booster.pandas_categorical))


def _check_trained(trained: bool) -> None:
    if not trained:
        raise ValueError("a booster must be trained before it can be explained, got one without trees; pass what train returns")


def _described(rows: Any) -> str:
    return f"a DataFrame with {_few(list(map(str, rows.columns)))}" if hasattr(rows, "columns") else f"an array {rows.shape}"


def _few(names: Sequence[str]) -> str:
    return f"{', '.join(names[:12])[:400]}{', …' if len(names) > 12 else ''}"
