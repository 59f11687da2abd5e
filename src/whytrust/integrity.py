"""Every byte of a run looked at: is it as it was written, and is it the same as another run's?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from whytrust.shards import Block, checksum, verified
from whytrust.store import Store, refuse_trouble


@dataclass
class Checked:
    """What came of looking at every byte of a run."""

    records: int = 0
    arrays: int = 0
    left: int = 0  # cases that are not done, or damaged
    damaged: list[str] = field(default_factory=list)
    fingerprint: str = ""  # of the results, in the order of cases: runs that have it in common have every byte in common

    def __str__(self) -> str:
        """In words."""
        whole = f"{self.records:,} records and {self.arrays:,} arrays are as they were written"
        left = f"; {self.left:,} cases are not done, or damaged: give the run's command again" if self.left else ""
        return "\n".join([*self.damaged, f"{whole}{left}", f"fingerprint of the results: {self.fingerprint}"])


def check(store: Store) -> Checked:
    """Look at every byte of a run's results."""
    found, sums = Checked(damaged=[f"{name}: {why}" for name, why in store.damaged_packs()]), []
    for block, records, arrays in _shards(store, found):
        try:
            seal = verified(block, records)
            seal.check(arrays)
        except Exception as why:
            refuse_trouble(why)
            found.damaged.append(f"block {block.id}: {why}")
            continue
        found.records, found.arrays = found.records + len(block.cases), found.arrays + seal.arrays
        sums.append(checksum(records) + checksum(arrays))
    found.left = sum(len(block.cases) for block in store.blocks) - found.records
    found.fingerprint = checksum(b"".join(sums)).decode()
    return found


def _shards(store: Store, found: Checked) -> Iterator[tuple[Block, bytes, bytes]]:
    """Each block that is there, with its records and arrays as they are."""
    for block in store.blocks:
        try:
            records = store.shard(block)
        except Exception as why:
            refuse_trouble(why)
            found.damaged.append(f"block {block.id}: {why}")
            continue
        if records is not None:
            yield block, *records
