"""Every byte of a run looked at: is it as it was written, and is it the same as another run's?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from whytrust import packs
from whytrust.shards import Block, Shard, checksum, verified
from whytrust.store import Store, refuse_trouble


@dataclass
class Checked:
    """What came of looking at every byte of a run."""

    records: int = 0
    arrays: int = 0
    left: int = 0  # cases that are not done yet
    lost: int = 0  # cases of blocks that are damaged
    damaged: list[str] = field(default_factory=list)
    fingerprint: str = ""  # of the results, in the order of cases: runs that have it in common have every byte in common

    def __str__(self) -> str:
        """In words."""
        told = f"{self.records:,} records and {self.arrays:,} arrays are as they were written"
        told += f"; {_cases(self.lost)} damaged: give the run's command again, which does them anew" if self.lost else ""
        told += f"; {_cases(self.left)} not done yet: the run's command goes on" if self.left else ""
        return "\n".join([*self.damaged, told, f"fingerprint of the results: {self.fingerprint}"])


def _cases(number: int) -> str:
    return f"{number:,} case{' is' if number == 1 else 's are'}"


def check(store: Store) -> Checked:
    """Look at every byte of a run's results."""
    found, sums = Checked(damaged=[f"{name}: {why}" for name, why in store.damaged_packs()]), []
    absent: list[Block] = []
    for block, shard in _shards(store, found):
        if shard is None:
            absent.append(block)
            continue
        records, arrays = shard
        try:
            seal = verified(block, records)
            seal.check(arrays)
        except Exception as why:
            refuse_trouble(why)
            _lose(found, block, f"block {block.id}: {why}")
            continue
        found.records, found.arrays = found.records + len(block.cases), found.arrays + seal.arrays
        sums.append(checksum(records) + checksum(arrays))
    _look_for(absent, store, found)
    found.fingerprint = checksum(b"".join(sums)).decode()
    return found


def _shards(store: Store, found: Checked) -> Iterator[tuple[Block, Shard | None]]:
    """Each block with its records and arrays as they are, None where it has no records."""
    for block in store.blocks:
        try:
            shard = store.shard(block)
        except Exception as why:
            refuse_trouble(why)
            _lose(found, block, f"block {block.id}: {why}")
        else:
            yield block, shard


def _look_for(blocks: Sequence[Block], store: Store, found: Checked) -> None:
    """Of blocks without records: they are not done yet, or their records are lost where their arrays are there.

    This is looked at last: whoever fills the run meanwhile writes arrays first, and the records a moment later.
    """
    pack_of = {block.id: number for number, some in enumerate(packs.ranges(store.blocks)) for block in some}
    for block in blocks:
        pack = store.folder / "packs" / f"{pack_of.get(block.id, -1):05d}.jsonl"
        if _alone(pack.with_suffix(".zip"), pack):
            _lose(found, block, f"packs/{pack.name} is gone, and the arrays beside it are not")
        elif _alone(store.folder / "arrays" / f"{block.id}.npz", store.folder / "records" / f"{block.id}.jsonl"):
            _lose(found, block, f"block {block.id}: its arrays are there, and its records were lost or never written")
        else:
            found.left += len(block.cases)


def _alone(arrays: Path, records: Path) -> bool:
    return arrays.exists() and not records.exists()


def _lose(found: Checked, block: Block, why: str) -> None:
    found.lost += len(block.cases)
    if why not in found.damaged[-1:]:  # of a pack it is said once
        found.damaged.append(why)
