"""Many finished blocks of a run in one file, so that a run of millions of records is some thousand files and reads in order.

In a pack the lines of all records come first, then those of the first explainer's shares, and so on, then the blocks' seals:
who asks about one explainer reads its part of the file and no more. The last line says where each part is, with its checksum.
A pack holds a fixed range of the run's blocks, so its bytes depend neither on who did them nor on the order they got done in.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from whytrust import shards
from whytrust.folders import opened as opened_file
from whytrust.folders import put, read, refuse_trouble
from whytrust.shards import OF_A_SEAL, OF_A_SHARE, Block, Form, Seal, checksum, merged, of_explainer, opened, sealed, whose

CASES = 1024
"""Blocks with so many cases together make a pack."""
LARGEST = 64 << 20
"""Bytes of a pack: where blocks are larger their own files are large enough."""
FOOT = 1 << 16
"""Bytes from a file's end in which its last line is looked for first."""
SEALS = 0
"""What the part with the seals is called; those of shares are called by a name, and that of the records None."""
Where = tuple[str | int | None, int, int, str]
"""A part of a pack: its name, where it begins, how long it is and its checksum."""


def ranges(blocks: Sequence[Block]) -> list[tuple[Block, ...]]:
    """The blocks of each pack; what is left over at the end has files of its own."""
    found, some, cases = [], list[Block](), 0
    for block in blocks:
        some.append(block)
        cases += len(block.cases)
        if cases >= CASES:
            found.append(tuple(some))
            some, cases = [], 0
    return found


def packed(shards: Iterable[bytes], form: Form) -> Iterator[bytes]:
    """The bytes of a pack of these shards' records, in pieces."""
    parts: dict[str | int | None, list[bytes]] = {None: [], **{name: [] for name in form.shares}, SEALS: []}
    named = {of_explainer(name): name for name in form.shares}
    for data in shards:
        for line in data.splitlines(keepends=True):
            if line.startswith(OF_A_SHARE):
                after = whose(line)[1]
                parts[next(name for text, name in named.items() if after.startswith(text))].append(line)
            else:
                parts[SEALS if line.startswith(OF_A_SEAL) else None].append(line)
    at, where = 0, list[Where]()
    for name, lines in parts.items():
        body = b"".join(lines)
        where.append((name, at, len(body), checksum(body).decode()))
        at += len(body)
        lines.clear()
        yield body
    yield sealed({"run": form.run, "parts": where, "size": at})


@dataclass(frozen=True)
class Pack:
    """One pack's two files, as they are or should be."""

    records: Path
    arrays: Path
    blocks: tuple[Block, ...]

    def take_in(self, files: Sequence[tuple[Path, Path]], form: Form) -> None:
        """Put the blocks' shards together, where they are not too large for that; then their own files go.

        An error, and nothing is done, where a file is no longer as it was written: a pack would seal that.
        """
        self.records.parent.mkdir(exist_ok=True)
        if not self.records.exists():
            of_records, of_arrays = (sum(path.stat().st_size for path in some) for some in zip(*files, strict=True))
            if of_records > LARGEST:
                return
            found = []
            for block, (records, arrays) in zip(self.blocks, files, strict=True):
                found.append(read(records))
                shards.verified(block, found[-1]).check(read(arrays))
            if of_arrays <= LARGEST:
                put(self.arrays, [_stored((block.id, read(path)) for block, (_, path) in zip(self.blocks, files, strict=True))])
            put(self.records, packed(found, form))
        for records, arrays in files:
            records.unlink(missing_ok=True)
            if self.arrays.exists():
                arrays.unlink(missing_ok=True)

    def take_apart(self, files: Sequence[tuple[Path, Path]], whole: Mapping[str, bytes], keep: bool = True) -> None:
        """Give the whole blocks of a pack files of their own again; a damaged pack is kept under another name."""
        for block, (records, arrays) in zip(self.blocks, files, strict=True):
            if block.id in whole:
                with suppress(KeyError, ValueError, OSError, zipfile.BadZipFile, zlib.error, NotImplementedError):
                    if not arrays.exists():  # what cannot be read of the arrays is missed when the block is looked at
                        put(arrays, [self.arrays_of(block)])
                put(records, [whole[block.id]])
        for path in filter(Path.exists, (self.records, self.arrays)):
            os.replace(path, f"{path}.damaged") if keep else path.unlink()

    # --- reading ------------------------------------------------------------------------------------------------------

    def parts(self, run: str) -> dict[str | int | None, Where]:
        """Where each part is; an error where the last line cannot be believed, or is of another run."""
        with opened_file(self.records) as file:
            size, back = file.seek(0, os.SEEK_END), FOOT
            if size > 2 * LARGEST:
                raise ValueError("it is larger than any pack")
            while True:
                file.seek(max(size - back, 0))
                tail = file.read()
                if tail.count(b"\n", 0, -1) or back >= size:
                    break
                back *= 4
        line = tail[:-1].rpartition(b"\n")[2]
        told = json.loads(opened(line))
        if told["size"] + len(line) + 1 != size or tail[-1:] != b"\n":
            raise ValueError("it is not as long as it says")
        if told["run"] != run:
            raise ValueError("it is of another run")
        return {name: (name, int(start), int(length), str(total)) for name, start, length, total in told["parts"]}

    def check(self, files: Sequence[tuple[Path, Path]], run: str, deeply: bool = False) -> None:
        """An error where a byte of the records is not as it was written; of arrays the sizes alone count, unless `deeply`."""
        seals: list[Seal] = []
        with opened_file(self.records) as file:
            for name, start, length, total in self.parts(run).values():
                file.seek(start)
                data = file.read(length)
                if checksum(data).decode() != total:
                    raise ValueError("a part does not have its checksum")
                if deeply:
                    for line in data.splitlines():
                        opened(line)
                if name == SEALS:
                    seals = [Seal.read(opened(line)) for line in data.splitlines()]
        if [seal.block for seal in seals] != [block.id for block in self.blocks]:
            raise ValueError("it has not the blocks that it should have")
        if self.arrays.exists():
            with opened_file(self.arrays) as file, zipfile.ZipFile(file) as archive:
                sizes = {entry.filename: entry.file_size for entry in archive.infolist()}
        else:
            sizes = {path.stem: path.stat().st_size for _, path in files if path.exists()}
        if any(sizes.get(seal.block) != seal.size for seal in seals):
            raise ValueError("arrays are missing, or of another size")
        if deeply and self.arrays.exists():
            with opened_file(self.arrays) as file, zipfile.ZipFile(file) as archive:
                for seal in seals:
                    seal.check(_entry(archive, seal.block))
        elif deeply:
            for seal, (_, path) in zip(seals, files, strict=True):
                seal.check(read(path))

    def read(self, run: str, only: Sequence[str] | None = None) -> Iterator[list[dict[str, Any]]]:
        """Each block's records; where `only` is given, with the shares of those alone, and nothing else is read."""
        for cases in self._texts(run, only):
            found = [[json.loads(text) for text in texts] for texts in cases]
            yield [merged(rest, [share["is"] for share in shares]) for rest, *shares in found]

    def _texts(self, run: str, only: Sequence[str] | None) -> Iterator[list[list[bytes]]]:
        """Of each block's cases the record's text and those of the shares: parts are read side by side."""
        parts = self.parts(run)
        names = [None, *(name for name in parts if isinstance(name, str) and (only is None or name in only))]
        with ExitStack() as stack:
            rests, *shares = [_Part(stack.enter_context(opened_file(self.records)), parts[name]) for name in names]
            for block in self.blocks:
                found = []
                for case in block.cases:
                    if rests.case != case:
                        raise ValueError(f"where case {case} should be there is {rests.case or 'nothing'}")
                    found.append([rests.take(), *(one.take() for one in shares if one.case == case)])
                yield found
            if any(one.ahead for one in (rests, *shares)):
                raise ValueError("there are lines of no case")

    def arrays_of(self, block: Block) -> bytes:
        """The arrays of a block, as they were in its shard."""
        with opened_file(self.arrays) as file, zipfile.ZipFile(file) as archive:
            return _entry(archive, block.id)

    def salvaged(self, run: str) -> dict[str, bytes]:
        """The records' shards of those blocks of which every line is whole, as they were before they were packed."""
        lines: dict[str, list[bytes]] = {}
        seals: dict[str, bytes] = {}
        try:
            data = read(self.records)
        except (ValueError, OSError) as why:  # it is no file, or larger than any pack
            refuse_trouble(why)
            return {}
        for line in data.splitlines(keepends=True):
            with suppress(ValueError):  # what is damaged is left out, and so is its block
                opened(line)
                name = whose(line)[0]
                if line.startswith(OF_A_SEAL):
                    seals[name] = line
                else:
                    lines.setdefault(name, []).append(line)
        found = {}
        for block in self.blocks:
            body = [line for case in block.cases for line in lines.get(case, ())]
            seal = Seal.read(opened(seals[block.id])) if block.id in seals else None
            if seal is not None and (seal.run, seal.lines) == (run, len(body)):
                found[block.id] = b"".join([*body, seals[block.id]])
        return found


class _Part:
    """One part of a pack, a text at a time, with one looked ahead: a damaged line is told before its case is missed."""

    def __init__(self, file: BinaryIO, where: Where) -> None:
        self.file, self.left = file, where[2]
        file.seek(where[1])
        self.ahead, self.case = b"", ""
        self._step()

    def _step(self) -> None:
        line = self.file.readline(self.left) if self.left > 0 else b""
        self.left -= len(line)
        self.ahead = opened(line) if line else b""
        self.case = whose(self.ahead)[0]

    def take(self) -> bytes:
        """The text, and on to the next."""
        text = self.ahead
        self._step()
        return text


def _entry(archive: zipfile.ZipFile, name: str) -> bytes:
    """A block's arrays; packs do not compress them again, so one that would unpack is not of a pack."""
    told = archive.getinfo(name)
    if told.compress_type != zipfile.ZIP_STORED or told.file_size > LARGEST:
        raise ValueError(f"the arrays of block {name} are not as a pack holds them")
    return archive.read(name)


def _stored(shards: Iterable[tuple[str, bytes]]) -> bytes:
    """A pack's arrays: each block's own as one entry, not compressed again."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, data in shards:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, data)
    return packed.getvalue()
