"""A run folder: what a long study has found so far, block by block, so that nothing finished is lost whatever ends the process.

manifest.json says what the run is; records/<block>.jsonl holds the records of a block and arrays/<block>.npz the arrays beside
them. These two are its shard: each is written once and whole, the records last, so that where records are, arrays are. Where
thousands of cases in a row are done, their shards are put together in packs/.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from numpy.typing import NDArray

from whytrust import files, folders, limits, packs
from whytrust.core import near
from whytrust.folders import refuse_trouble as refuse_trouble
from whytrust.journal import Journal
from whytrust.manifests import differences
from whytrust.packs import Pack
from whytrust.shards import Block as Block
from whytrust.shards import Form, Seal, Shard, decode, encode, verified, whole_lines
from whytrust.shards import Result as Result
from whytrust.shards import plain as plain

T = TypeVar("T")


class Store:
    """A run's folder: made or continued by one process at a time, read by any number, also while it is being filled.

    Records of a block that is damaged are left out when it is only read: `problems` says so, a count of records does not.
    """

    def __init__(self, folder: str | Path, manifest: dict[str, Any]) -> None:
        """Use `create` or `open`."""
        self.folder, self.manifest = Path(folder).absolute(), manifest  # a model may change the working directory
        self.problems: list[str] = []
        self._told: set[str] = set()
        self.blocks = tuple(Block(block["id"], tuple(block["cases"])) for block in manifest["blocks"])
        self._by_id = {block.id: block for block in self.blocks}
        self.form = Form(manifest["identity"], tuple(manifest.get("shares", ())))
        self._lock: int | None = None
        self.journal = Journal(self.folder)
        self._undone: dict[int, int] = {}  # how many blocks each pack still waits for, while the run is filled
        self._kept_lines: dict[str, set[bytes]] = {}  # of damaged blocks, what was whole
        self._salvaged: tuple[Pack | None, dict[str, bytes]] = (None, {})  # the pack that was looked into last

    @classmethod
    def create(cls, folder: str | Path, manifest: Mapping[str, Any]) -> Store:
        """Begin a run in a new or empty folder, or go on with the same run; the folder is this process's until `close`."""
        store = cls(folder, folders.checked(manifest))
        lost = folders.refuse_foreign(store.folder, store.form.run)
        try:
            with store.telling("the folder"):
                store.folder.mkdir(parents=True, exist_ok=True)
                folders.refuse_links(store.folder)
                store._lock = folders.locked(store.folder)
                store._begin()
        except BaseException:
            store.close()
            raise
        store.problems += ["manifest.json was gone: it was written again from this command"] * lost
        return store

    @classmethod
    def open(cls, folder: str | Path) -> Store:
        """A run to read, finished or not; nothing in its folder is changed."""
        return cls(folder, folders.read_manifest(Path(folder)))

    def _begin(self) -> None:
        """Say what the run is, or find that it is this one; take away what an earlier process left half done."""
        if (self.folder / "manifest.json").exists():
            held = folders.read_manifest(self.folder)
            if held.get("study") != self.manifest.get("study"):
                raise ValueError(f"{self.folder} holds a run of another kind, {held.get('study')!r}, and this is one of "
                                 f"{self.manifest.get('study')!r}; choose another folder (out=, --out, --run)")
            if held["identity"] != self.manifest["identity"]:
                raise ValueError(f"{self.folder} holds a run of another spec: {differences(held, self.manifest)}; "
                                 "choose another folder (out=, --out, --run), or delete it")
            self.manifest = held
            self.form = Form(held["identity"], tuple(held.get("shares", ())))
        else:
            folders.put(self.folder / "manifest.json", [json.dumps(self.manifest, indent=1, allow_nan=False).encode()])
        for place in (self.folder, *(self.folder / name for name in ("records", "arrays"))):
            place.mkdir(exist_ok=True)
        for part in [*self.folder.glob("*.part"), *self.folder.glob("*/*.part")]:
            part.unlink()
        folders.sync(self.folder)
        if other := self.journal.begin():
            self._tell(f"this run was begun elsewhere ({other}): the last digits of what is added may differ")

    # --- what is done -------------------------------------------------------------------------------------------------

    def finished(self) -> set[str]:
        """The blocks whose shard is whole; in a run that is continued, a damaged one is put aside to be done again."""
        done: set[str] = set()
        for pack in self._packs:
            done |= self._of_pack(pack)
        done |= {block.id for block in self.blocks if block.id not in done and self._whole(block)}
        if self._lock is None:  # who only reads may have missed what was packed meanwhile
            missed = {self._pack_of[block.id] for block in self.blocks if block.id not in done and block.id in self._pack_of}
            for number in missed:
                done |= self._of_pack(self._packs[number])
        if self._lock is not None:
            self._undone = {i: sum(block.id not in done for block in pack.blocks) for i, pack in enumerate(self._packs)}
            for number in [number for number, left in self._undone.items() if not left]:
                self._pack(number)
        return done

    def set_failed_aside(self) -> tuple[int, int]:
        """Give up the blocks in which a case failed, so that they are done again: (failed cases, blocks).

        Their files are kept under another name, until they fail again.
        """
        failed = [record["case"] for record in self.records(only=()) if record.get("status") == "failed"]
        blocks = {self._home[case] for case in failed}
        for pack in [self._packs[i] for i in {self._pack_of[block.id] for block in blocks if self._packed(block) is not None}]:
            with self.telling("the blocks of a pack"):
                whole = pack.salvaged(self.form.run)
                pack.take_apart(self._of(pack), whole, keep=len(whole) < len(pack.blocks))
        for block in blocks:
            with self.telling(f"the new name of block {block.id}"):
                for path in filter(Path.exists, self._files(block)):
                    os.replace(path, f"{path}.failed")
        return len(failed), len(blocks)

    def _of_pack(self, pack: Pack) -> set[str]:
        """The blocks that are whole in a pack; a damaged one is taken apart again where the run is continued."""
        if not pack.records.exists():
            if pack.arrays.exists() and not self._files(pack.blocks[0])[0].exists():
                self._tell(f"packs/{pack.records.name} is gone, and the arrays beside it are not: its {len(pack.blocks)} "
                           f"blocks are {'done again' if self._lock is not None else 'left out'}")
            return set()
        try:
            pack.check(self._of(pack), self.form.run, deeply=self._lock is not None)
        except Exception as why:  # of bytes that are no zip file, zipfile raises nearly anything
            refuse_trouble(why)
            whole = pack.salvaged(self.form.run)
            if self._lock is None:
                return set(whole)
            lost = [block.id for block in pack.blocks if block.id not in whole]
            self._tell(f"packs/{pack.records.name} was damaged ({why}): it was put aside as .damaged; {_some(lost)} done again")
            with self.telling("the whole blocks of a damaged pack"):
                pack.take_apart(self._of(pack), whole)
            return set()  # they have files of their own now
        return {block.id for block in pack.blocks}

    def kept(self) -> str:
        """How many blocks have a shard, for a sentence; the shards are not looked into."""
        there = {path.stem for path in (self.folder / "records").glob("*.jsonl")}
        there |= {block.id for pack in self._packs if pack.records.exists() for block in pack.blocks}
        return f"{len(there & set(self._by_id))} of {len(self.blocks)} blocks are finished and safe"

    # --- writing ------------------------------------------------------------------------------------------------------

    def write(self, block: Block, results: Iterable[Result]) -> None:
        """Keep the results of a block."""
        self.put(block, encode(block, results, self.form))

    def put(self, block: Block, shard: Shard) -> None:
        """Keep a block's shard, which another process may have encoded."""
        files = self._files(block)
        if self._lock is None or self._by_id.get(block.id) != block or files[0].exists():
            raise ValueError(f"a block is written once, by the run that was begun with Store.create: {block.id} is not of the "
                             f"run in {self.folder}, is written already, or the store is closed")
        if not folders.held(self.folder, self._lock):
            self._lock_again()
        with self.telling(f"block {block.id}"):
            for path, data in reversed([*zip(files, shard, strict=True)]):  # the records last
                folders.put(path, [data])
        self._compare(block, shard[0])
        number = self._pack_of.get(block.id)
        if number in self._undone:
            self._undone[number] -= 1
            if not self._undone[number]:
                self._pack(number)

    def _lock_again(self) -> None:
        """Somebody deleted the lock: take it anew, or stop where another run was quicker."""
        lock, self._lock = self._lock, None
        if lock is not None:
            folders.unlocked(lock)
        with self.telling("the lock"):
            self._lock = folders.locked(self.folder)
        self._tell("the lock was deleted while this run went on: it was made again")

    def _compare(self, block: Block, records: bytes) -> None:
        """A block that was damaged and is done again must say again what it said where it was whole."""
        before = self._kept_lines.pop(block.id, set())
        if before - set(records.splitlines()):
            self._tell(f"block {block.id} was done again and says something else than before, where that was whole: compare "
                       f"records/{block.id}.jsonl and .damaged; it was made by other versions, or is not deterministic")

    def _pack(self, number: int) -> None:
        pack = self._packs[number]
        try:
            with self.telling(f"packs/{pack.records.name}"):
                pack.take_in(self._of(pack), self.form)
        except (ValueError, FileNotFoundError, zipfile.BadZipFile) as why:
            self._tell(f"a block of packs/{pack.records.name} was damaged or deleted after it was written ({why}): give the "
                       "run's command again, which does that block anew")

    # --- reading ------------------------------------------------------------------------------------------------------

    def records(self, only: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """What was found about each case that is done, in the order of the blocks.

        With `only`, what the records say of those explainers alone, and of none by name: less is read then.
        """
        blocks = iter(self.blocks)
        for block in blocks:
            found = self._read(block, only) if self._packed(block) is None else None
            if found is not None:
                yield from found
            elif (pack := self._packed(block)) is not None:  # also where it was packed while its own files were looked for
                at = pack.blocks.index(block)
                yield from self._of_pack_read(pack, only, at)
                for _ in pack.blocks[at + 1:]:
                    next(blocks)

    def _packed(self, block: Block) -> Pack | None:
        """The pack that a block is in, where it is in one."""
        number = self._pack_of.get(block.id)
        return self._packs[number] if number is not None and self._packs[number].records.exists() else None

    def _of_pack_read(self, pack: Pack, only: Sequence[str] | None, done: int) -> Iterator[dict[str, Any]]:
        """The records of a pack, but of so many blocks at its beginning."""
        try:
            for records in islice(pack.read(self.form.run, only), done, None):
                yield from records
                done += 1
        except (ValueError, KeyError, TypeError, AttributeError) as why:
            whole = pack.salvaged(self.form.run)
            self._tell(f"packs/{pack.records.name} is damaged ({why}): {len(pack.blocks) - len(whole)} of its "
                       f"{len(pack.blocks)} blocks are left out; give the run's command again to do them anew")
            for block in pack.blocks[done:]:
                yield from decode(block, whole[block.id], only)[0] if block.id in whole else ()

    def record(self, case: str) -> dict[str, Any]:
        """What was found about one case."""
        shard = self.shard(self._block_of(case))
        if shard is None:
            raise ValueError(f"case {case} is not done in {self.folder} so far; let the run finish")
        return next(one for one in decode(self._home[case], shard[0])[0] if one["case"] == case)

    def _block_of(self, case: str) -> Block:
        if case not in self._home:
            raise ValueError(f"the case must be one of the run in {self.folder}, got {case!r}{near(case, self._home)}")
        return self._home[case]

    def arrays(self, case: str, *names: str) -> dict[str, NDArray[Any]]:
        """The arrays of one case: those named, or all."""
        block = self._block_of(case)
        try:
            with self._opened_arrays(block) as file, zipfile.ZipFile(file) as archive:
                there = [one[len(case) + 1:-4] for one in archive.namelist() if one.startswith(f"{case}/")]
                wanted = [name for name in there if name in names or not names]
                found = {name: files.member(archive, f"{case}/{name}.npy", empty=True) for name in wanted}
        except FileNotFoundError:
            raise ValueError(f"case {case} has no arrays in {self.folder} so far; let the run finish") from None
        except (ValueError, EOFError, KeyError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
            raise ValueError(f"the arrays of case {case} in {self.folder} are damaged ({error}); give the run's command again, "
                             "which does this block anew") from error
        if not set(names) <= set(found):
            raise ValueError(f"case {case} has the arrays {', '.join(there) or '(none)'}, got {min(set(names) - set(found))!r}")
        return found

    def _opened_arrays(self, block: Block) -> BinaryIO:
        try:
            return folders.opened(self._files(block)[1])
        except FileNotFoundError:
            pack = self._packed(block)  # looked for after its own file, which is taken away when the pack is there
            if pack is None or not pack.arrays.exists():
                raise
            return io.BytesIO(pack.arrays_of(block))

    def shard(self, block: Block) -> Shard | None:
        """A block's two files as they were written; None where there are none, an error where they cannot be read."""
        records = b""
        if self._packed(block) is None:
            try:
                records = folders.read(self._files(block)[0])
            except FileNotFoundError:
                if self._packed(block) is None:  # it may have been packed meanwhile
                    return None
        if not records and (pack := self._packed(block)) is not None:
            if self._salvaged[0] is not pack:
                self._salvaged = pack, pack.salvaged(self.form.run)
            if block.id not in self._salvaged[1]:
                raise ValueError(f"it is damaged in packs/{pack.records.name}")
            records = self._salvaged[1][block.id]
        with self._opened_arrays(block) as file:
            return records, file.read()

    def damaged_packs(self) -> Iterator[tuple[str, Exception]]:
        """Packs that are not as they were written, and why."""
        for pack in self._packs:
            try:
                if pack.records.exists():
                    pack.check(self._of(pack), self.form.run)
            except Exception as why:
                refuse_trouble(why)
                yield f"packs/{pack.records.name}", why

    def sessions(self) -> list[dict[str, Any]]:
        """When the run was begun and continued, and with which versions."""
        return self.journal.sessions()

    def close(self) -> None:
        """Let others continue the run; it can still be read."""
        if self._lock is not None:
            folders.unlocked(self._lock)
            self._lock = None

    @contextmanager
    def telling(self, what: str) -> Iterator[None]:
        """Inside, `what` is written to the folder; where that cannot be done the error says what is safe and how to go on."""
        try:
            yield
        except (BlockingIOError, FileNotFoundError) as error:  # another run has the folder; or somebody took a file away
            if isinstance(error, FileNotFoundError) and not self.folder.is_dir():
                raise FileNotFoundError(f"{what} could not be written: {self.folder} was deleted or renamed while the run went "
                                        "on; put it back, or give the same command again to begin anew") from error
            raise
        except OSError as error:
            raise folders.cannot_write(what, self.folder, self.kept(), error) from error

    # --- the folder ---------------------------------------------------------------------------------------------------

    @cached_property
    def _home(self) -> dict[str, Block]:
        return {case: block for block in self.blocks for case in block.cases}

    @cached_property
    def _packs(self) -> list[Pack]:
        some, place = packs.ranges(self.blocks), self.folder / "packs"
        return [Pack(place / f"{i:05d}.jsonl", place / f"{i:05d}.zip", blocks) for i, blocks in enumerate(some)]

    @cached_property
    def _pack_of(self) -> dict[str, int]:
        return {block.id: i for i, pack in enumerate(self._packs) for block in pack.blocks}

    def _files(self, block: Block) -> tuple[Path, Path]:
        return self.folder / "records" / f"{block.id}.jsonl", self.folder / "arrays" / f"{block.id}.npz"

    def _of(self, pack: Pack) -> list[tuple[Path, Path]]:
        return [self._files(block) for block in pack.blocks]

    def _whole(self, block: Block) -> bool:
        """Whether a block's own files are there and as they were written; its arrays to the byte where the run goes on."""
        return self._looked_at(block, lambda data: (verified(block, data), True)) is not None

    def _read(self, block: Block, only: Sequence[str] | None) -> list[dict[str, Any]] | None:
        """A block's records, from its own files; None where it is not done, or damaged."""
        return self._looked_at(block, lambda data: decode(block, data, only)[::-1])

    def _looked_at(self, block: Block, look: Callable[[bytes], tuple[Seal, T]]) -> T | None:
        records, arrays = self._files(block)
        if not records.exists():
            if self._lock is not None and arrays.exists():
                self._tell(f"block {block.id} had arrays and no records, which were lost or never written: it is done again")
            return None
        data = b""
        try:
            data = folders.read(records)
            seal, found = look(data)
            if seal.run not in ("", self.form.run):
                raise ValueError("it is of another run")
            with folders.opened(arrays) as file, zipfile.ZipFile(file) as archive:
                if len(archive.namelist()) != seal.arrays or seal.size not in (None, arrays.stat().st_size):
                    raise ValueError(f"it had {seal.arrays} arrays, there are {len(archive.namelist())}, or others")
            if self._lock is not None:
                seal.check(folders.read(arrays, limits.ARRAY))
        except Exception as why:  # of bytes that are no zip file, zipfile raises nearly anything
            refuse_trouble(why)
            if self._lock is None and not records.exists():
                return None  # whoever fills the run has just packed it
            self._put_aside(block, str(why), data)
            return None
        return found

    def _put_aside(self, block: Block, why: str, data: bytes) -> None:
        """A damaged shard is kept under another name where the run is being continued; who only reads leaves it alone."""
        if self._lock is None:
            self._tell(f"block {block.id} is damaged ({why}): it is left out; give the run's command again to do it anew")
            return
        self._tell(f"block {block.id} was damaged ({why}): it was put aside as .damaged and is done again")
        self._kept_lines[block.id] = whole_lines(data)
        with self.telling(f"the new name of the damaged block {block.id}"):
            for path in filter(Path.exists, self._files(block)):
                os.replace(path, f"{path}.damaged")

    def _tell(self, problem: str) -> None:
        if problem not in self._told:
            self._told.add(problem)
            self.problems.append(problem)


def _some(names: Sequence[str]) -> str:
    if not names:
        return "no block is"
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"block{'s' if len(names) > 1 else ''} {', '.join(names[:3])}{more} {'are' if len(names) > 1 else 'is'}"
