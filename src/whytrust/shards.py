"""What is kept of one block of a run, as bytes that depend on the block's results and on nothing else.

A case's record is one line, and each explainer's share of it a line of its own, so that who asks about one explainer need not
read the others; every line has its checksum. The block's last line, its seal, says how many there are and what the arrays are.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # of a block, case or array: it is part of a file's name
OF_A_CASE, OF_A_SHARE, OF_A_SEAL = b'{"case": "', b'{"share": "', b'{"block": "'
"""How lines begin; what comes next is the case's or block's name, which has no quotes."""
Shard = tuple[bytes, bytes]
"""Records and arrays of a block."""


@dataclass(frozen=True)
class Block:
    """Cases that are worked on together, and kept or lost together."""

    id: str
    cases: tuple[str, ...]
    alone: bool = False  # is it one case of a block that could not be worked on? Then no other case may be touched


@dataclass(frozen=True)
class Result:
    """What was found about one case: a record of plain values with a "case", and the arrays a reader will want beside it."""

    record: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Form:
    """How a run's shards are written: which run they are of, and whose shares of a record have lines of their own."""

    run: str = ""
    shares: tuple[str, ...] = ()


PLAIN = Form()


def plain(value: Any, where: str = "record") -> Any:
    """The same value as JSON knows it: numpy's numbers become plain ones; what is not finite becomes None, infinity too."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping) and all(isinstance(key, str | int | np.integer) for key in value):
        return {str(key): plain(inner, f"{where}.{key}") for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner, f"{where}.{index}") for index, inner in enumerate(value)]
    raise TypeError(f"what is stored must be numbers, strings, lists, and dicts with strings for keys: {where} is "
                    f"{type(value).__name__} {value!r:.60}; convert it")


# --- lines ------------------------------------------------------------------------------------------------------------


def checksum(data: bytes) -> bytes:
    """Sixteen digits that another content rarely has."""
    return hashlib.blake2b(data, digest_size=8).hexdigest().encode()


def sealed(value: Any) -> bytes:
    """One line: the value, and a checksum of it; JSON has no bare tab, so the last one is the seam."""
    text = json.dumps(value, allow_nan=False).encode()
    return text + b"\t" + checksum(text) + b"\n"


def opened(line: bytes) -> bytes:
    """The text of a line, which must be the one that its checksum was made of."""
    text, _, told = line.rstrip(b"\n").rpartition(b"\t")
    if checksum(text) != told:
        raise ValueError(f"the line of {whose(line)[0] or 'a case'} does not have its checksum")
    return text


def whole_lines(data: bytes) -> set[bytes]:
    """Those lines of a shard that are as they were written."""
    found = set()
    for line in data.splitlines():
        with suppress(ValueError):
            opened(line)
            found.add(line)
    return found


def whose(line: bytes) -> tuple[str, bytes]:
    """(the case or block that a line is of, what comes after its name)."""
    parts = line.split(b'"', 4)
    return (parts[3].decode(errors="replace"), parts[4]) if len(parts) == 5 else ("", b"")


def of_explainer(name: str) -> bytes:
    """What comes after the case's name in the lines of one explainer's shares."""
    return b', "of": ' + json.dumps(name).encode() + b","


# --- shares -----------------------------------------------------------------------------------------------------------


def split(record: Mapping[str, Any], names: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(the record without what stands under one of the names, at any depth; the share of each name). `merged` undoes it."""
    shares: dict[str, Any] = {}
    wanted = frozenset(names)
    rest = {key: _without(value, wanted, (key,), shares) for key, value in record.items()}  # the topmost keys are nobody's
    return rest, {name: shares[name] for name in names if name in shares}


def _without(value: Any, names: frozenset[str], path: tuple[str, ...], shares: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_without(inner, names, (*path, str(i)), shares) if isinstance(inner, dict | list) else inner
                for i, inner in enumerate(value)]
    if not isinstance(value, dict):
        return value
    rest = {}
    for key, inner in value.items():
        if key in names:
            place = shares.setdefault(key, {})
            for step in path:
                place = place.setdefault(step, {})
            place[key] = inner
        else:
            rest[key] = _without(inner, names, (*path, key), shares) if isinstance(inner, dict | list) else inner
    return rest


def merged(rest: Any, shares: Sequence[Mapping[str, Any]]) -> Any:
    """The record of which these are the rest and some shares; under each key the shares come first, in their order."""
    if not shares:
        return rest
    if isinstance(rest, list):
        return [merged(inner, [share[str(i)] for share in shares if str(i) in share]) for i, inner in enumerate(rest)]
    own = {key: inner for share in shares for key, inner in share.items() if key not in rest}
    return own | {key: merged(inner, [share[key] for share in shares if key in share]) for key, inner in rest.items()}


# --- a block ----------------------------------------------------------------------------------------------------------


def encode(block: Block, results: Iterable[Result], form: Form = PLAIN) -> Shard:
    """The shard of a block; one result for each of its cases, in any order."""
    found = list(results)
    by_case = {str(result.record.get("case")): result for result in found}
    if len(found) != len(block.cases) or set(by_case) != set(block.cases):
        raise ValueError(f"work must give one result for each case of a block: block {block.id} has {', '.join(block.cases)}, "
                         f"got {', '.join(str(result.record.get('case')) for result in found) or 'none'}")
    lines: list[bytes] = []
    packed, count = io.BytesIO(), 0
    with zipfile.ZipFile(packed, "w") as archive:
        for case in block.cases:
            record = plain(by_case[case].record, f"the record of case {case}")
            rest, shares = split({"case": case, **record}, form.shares)
            lines.append(sealed(rest))
            lines += [sealed({"share": case, "of": name, "is": share}) for name, share in shares.items()]
            for name, array in by_case[case].arrays.items():
                _pack(archive, case, name, array)
                count += 1
    arrays = packed.getvalue()
    seal = {"block": block.id, "run": form.run, "lines": len(lines), "arrays": count, "size": len(arrays),
            "sum": checksum(arrays).decode()}
    return b"".join([*lines, sealed(seal)]), arrays


def _pack(archive: zipfile.ZipFile, case: str, name: str, array: Any) -> None:
    """Add an array as np.savez_compressed would, but never a pickle, and without the time of day or the memory's layout."""
    values = np.asarray(array, order="C")
    if not NAME.fullmatch(name) or values.dtype.hasobject:
        raise TypeError(f"an array must have a name of letters, digits, _ . - and hold numbers: case {case} gave {name!r} "
                        f"of {values.dtype}; convert it")
    entry = zipfile.ZipInfo(f"{case}/{name}.npy", (1980, 1, 1, 0, 0, 0))
    entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
    with archive.open(entry, "w", force_zip64=True) as file:
        np.lib.format.write_array(file, values, allow_pickle=False)


@dataclass(frozen=True)
class Seal:
    """The last line of a shard: what there must be before it and beside it."""

    block: str
    run: str
    lines: int
    arrays: int
    size: int | None
    sum: str | None

    @classmethod
    def read(cls, text: bytes) -> Seal:
        """From its line; the first format did not say what run a shard was of, nor how large its arrays are."""
        told = json.loads(text)
        if not text.startswith(OF_A_SEAL):
            raise ValueError("its last lines are missing")
        size, total = told.get("size"), told.get("sum")
        return cls(str(told["block"]), str(told.get("run", "")), int(told["lines"]), int(told["arrays"]),
                   None if size is None else int(size), None if total is None else str(total))

    def check(self, arrays: bytes) -> None:
        """An error where arrays are not those that were put beside the records."""
        if self.size is not None and (self.size, self.sum) != (len(arrays), checksum(arrays).decode()):
            raise ValueError("its arrays do not have their checksum")


def decode(block: Block, data: bytes, only: Sequence[str] | None = None) -> tuple[list[dict[str, Any]], Seal]:
    """The records of a shard, and its seal; of each record the rest and, where `only` is given, the shares of those alone.

    Shares that are not asked for are not looked at.
    """
    lines, seal = _lines(block, data)
    if only is not None:
        wanted = tuple(map(of_explainer, only))
        lines = [line for line in lines if not line.startswith(OF_A_SHARE) or whose(line)[1].startswith(wanted)]
    rests, shares = dict[str, Any](), dict[str, list[Any]]()
    for text in map(opened, lines):
        told = json.loads(text)
        if text.startswith(OF_A_SHARE):
            shares.setdefault(told["share"], []).append(told["is"])
        else:
            rests[told["case"]] = told
    if tuple(rests) != block.cases or not set(shares) <= set(rests):
        raise ValueError("it has not the lines of all of its cases, or others")
    return [merged(rest, shares.get(case, ())) for case, rest in rests.items()], seal


def verified(block: Block, data: bytes) -> Seal:
    """The seal of a shard of which every line is as it was written; what the lines say is not looked at."""
    lines, seal = _lines(block, data)
    for line in lines:
        opened(line)
    if tuple(whose(line)[0] for line in lines if line.startswith(OF_A_CASE)) != block.cases:
        raise ValueError("it has not the lines of all of its cases, or others")
    return seal


def _lines(block: Block, data: bytes) -> tuple[list[bytes], Seal]:
    lines = data.split(b"\n")
    if lines.pop() or not lines:
        raise ValueError("it is cut off")
    seal = Seal.read(opened(lines.pop()))
    if seal.lines != len(lines) or seal.block != block.id:
        raise ValueError("it has not all of its lines, or others")
    return lines, seal
