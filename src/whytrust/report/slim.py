"""Records without what only pictures need, and with what they have in common held once: a report reads very many of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

DROPPED = {"parts", "channels_first"}
DROPPED_OF_TRIALS = {"scores", "order", "magnitude", "magnitude_mean", "searched", "label"}
ALONE = {"sound", "text", "columns"}
"""Of these a report asks only whether they are there."""
LIMIT = 100_000
"""So many different things are held in common at most."""


class Row(Mapping[str, Any]):
    """A dict that shares its keys with others of the same keys; read only."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: dict[str, int], values: tuple[Any, ...]) -> None:
        """`places` says where each key's value is."""
        self._places, self._values = places, values

    def __getitem__(self, key: str) -> Any:
        """One value."""
        return self._values[self._places[key]]

    def __iter__(self) -> Iterator[str]:
        """The keys in their order."""
        return iter(self._places)

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._values)


def slim(records: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The records, each as it is told in numbers; equal pieces of them are one object."""
    common = _Common()
    for record in records:
        kept = {key: True if key in ALONE else value for key, value in record.items() if key not in DROPPED}
        if isinstance(record.get("trials"), list):
            kept["trials"] = [{key: value for key, value in trial.items() if key not in DROPPED_OF_TRIALS}
                              if isinstance(trial, Mapping) else trial for trial in record["trials"]]
        yield common.one(kept)


class _Common:
    """Holds what was seen: equal texts, and lists and rows of the same pieces in the same order, become one object."""

    def __init__(self) -> None:
        self.seen: dict[Any, Any] = {}

    def one(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._held((str, value), value)
        if isinstance(value, list):
            if len(value) > 3 and all(isinstance(item, float) for item in value):
                return np.array(value)
            inner = [self.one(item) for item in value]
            return self._held((list, *map(_key, inner)), inner)
        if isinstance(value, dict):
            names = tuple(self.one(key) for key in value)
            places = self._held((tuple, *map(id, names)), {name: i for i, name in enumerate(names)})
            inside = tuple(self.one(item) for item in value.values())
            return self._held((Row, id(places), *map(_key, inside)), Row(places, inside))
        return value

    def _held(self, key: Any, value: Any) -> Any:
        found = self.seen.get(key)
        if found is None:
            if len(self.seen) >= LIMIT:
                return value
            self.seen[key] = found = value
        return found


def _key(value: Any) -> Any:
    """What tells a piece apart: a number by its kind and value, anything held in common by where it is."""
    return (type(value), value) if value is None or isinstance(value, bool | int | float) else id(value)
