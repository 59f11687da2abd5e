"""How two runs differ, in words: what a user reads who goes on with a run in another way than it was begun."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MOST, SHOWN = 4, 3
"""Settings, and names of inputs, that a message has room for."""


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between two manifests; cases by their number, and content by its name, since a hash says nothing."""
    old, new = ({**dict(_leaves(one.get("spec"), "")), "seed": json.dumps(one.get("seed")), "blocks": str(len(one["blocks"])),
                 "cases": str(sum(len(block["cases"]) for block in one["blocks"]))} for one in (was, now))
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    told = [f"{key} was {old.get(key, 'not there'):.60}, now {new.get(key, 'not there'):.60}" for key in keys[:MOST]]
    told += [f"and {len(keys) - MOST} more"] * (len(keys) > MOST) + _content(was.get("hashes"), now.get("hashes"))
    return ", ".join(told) or "as many cases, but other ones"


def _content(was: Any, now: Any) -> list[str]:
    """Whose content is another one, what is no longer there, and what was not there before."""
    old, new = (dict(_leaves(one, "")) if one else {} for one in (was, now))
    other = [name for name in old if name in new and old[name] != new[name]]
    gone, added = [name for name in old if name not in new], [name for name in new if name not in old]
    return [f"{words} {_named(names)}" for words, names in (("other content of", other), ("no longer there:", gone),
                                                            ("not there before:", added)) if names]


def _named(names: Sequence[str]) -> str:
    more = len(names) - SHOWN
    return " and ".join(names[:SHOWN]) if more <= 0 else f"{', '.join(names[:SHOWN])} and {more} more"


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path or "spec", json.dumps(value, sort_keys=True)
