"""Tables that the tests of tabular parts share."""


from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from whytrust.domains.columns import Column
from whytrust.domains.tabular import TableParts

ALL = slice(None)


def mixed_frame(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    gone = rng.random(n) < 0.2
    return pd.DataFrame({
        "age": rng.integers(17, 90, n),
        "wage": rng.lognormal(size=n),
        "small": rng.normal(size=n).astype("float32"),
        "byte": rng.integers(0, 255, n).astype("uint8"),
        "work": pd.Categorical(rng.choice(["private", "state", "none"], n), categories=["none", "state", "private", "never"]),
        "city": rng.choice(["Linz", "Wien"], n),
        "flag": rng.random(n) < 0.3,
        "height": np.where(gone, np.nan, rng.normal(170, 10, n)),
        "children": pd.array(np.where(gone, None, rng.integers(0, 5, n)), dtype="Int64"),
        "asked": pd.array(np.where(gone, None, rng.random(n) < 0.5), dtype="boolean"),
        "note": pd.array(np.where(gone, None, rng.choice(["u", "v"], n)), dtype="string"),
        "odd": np.array([1, "a", None, 2.5] * (n // 4), dtype=object),
    })


def small_parts(values: Any = "training") -> TableParts:
    """A row over few values, so that every draw can be listed: two numeric columns, one with gaps, and a category."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({
        "a": rng.choice([1, 2, 3, 5, 8, 13, 21], 300, p=[.3, .2, .1, .1, .1, .1, .1]),
        "b": rng.choice([0.5, 1.5, 2.5, 4.0, np.nan], 300),
        "c": rng.choice(["x", "y", "z", "w"], 300, p=[.4, .3, .2, .1]),
    })
    return TableParts.cut({"a": 3, "b": 1.5, "c": "y"}, frame, values=values)


def states_of(column: Column, values: pd.Series) -> np.ndarray:
    """The state of each value, by `locate`, which the first test below holds against lime."""
    codes, distinct = pd.factorize(values, use_na_sentinel=False)
    return np.array([column.locate(v)[0] for v in distinct])[codes]
