"""A run's records as one long table, for other tools: a row for each number that a case, or an explainer of it, has."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from whytrust.core import need
from whytrust.store import Store

COLUMNS = ("case", "explainer", "key", "value", "text")
ROWS = 50_000
"""Rows that are held before they are written."""
Row = tuple[str, str | None, str, float | None, str | None]


def export(store: Store, path: str | os.PathLike[str]) -> int:
    """Write a run as a .parquet file, a part at a time; how many rows it has.

    `key` is where in the record a number stands, without the explainer's name: trials.0.positive.k. Numbers, and true and false
    as 1 and 0, are in `value`; anything else is in `text`. Lists of numbers are one text, as JSON. An explainer's rows have its
    name; the others are of the case.
    """
    target = Path(path)
    if target.suffix != ".parquet" or not target.parent.is_dir():
        raise ValueError(f"a run is exported to a .parquet file in a folder that exists, got {str(target)!r}")
    arrow, parquet = need("pyarrow", "tables"), need("pyarrow.parquet", "tables")
    schema = arrow.schema([(name, arrow.float64() if name == "value" else arrow.string()) for name in COLUMNS])
    rows, count = _rows(store), 0
    writing = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with parquet.ParquetWriter(writing, schema) as file:
            while some := list(islice(rows, ROWS)):
                columns = [list(column) for column in zip(*some, strict=True)]
                file.write_table(arrow.table(dict(zip(COLUMNS, columns, strict=True)), schema=schema))
                count += len(some)
        os.replace(writing, target)
    finally:
        writing.unlink(missing_ok=True)
    return count


def _rows(store: Store) -> Iterator[Row]:
    names = frozenset(store.form.shares)
    for record in store.records():
        case = str(record["case"])
        for key, value in record.items():
            if key != "case":
                yield from _leaves(case, None, key, value, names)


def _leaves(case: str, explainer: str | None, key: str, value: Any, names: frozenset[str]) -> Iterator[Row]:
    if isinstance(value, Mapping):
        for inner, one in value.items():
            if inner in names:
                yield from _leaves(case, inner, key, one, names)
            else:
                yield from _leaves(case, explainer, f"{key}.{inner}", one, names)
    elif isinstance(value, Sequence) and not isinstance(value, str) and any(isinstance(one, Mapping) for one in value):
        for i, one in enumerate(value):
            yield from _leaves(case, explainer, f"{key}.{i}", one, names)
    elif isinstance(value, int | float):
        yield case, explainer, key, float(value), None
    elif value is not None:
        yield case, explainer, key, None, value if isinstance(value, str) else json.dumps(value)
