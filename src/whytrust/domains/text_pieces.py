"""A text in pieces, each of which reads one way or another: how thousands of masks become thousands of texts, quickly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Masks

_PIECES_AT_ONCE = 1 << 20  # bounds the memory of compose at a few MB beside the texts themselves
_WORTH_WRITING_OUT = 512  # masks: for so many, all 256 readings of each eight words in a row are written out beforehand
_LONG = 1 << 15  # characters: they would take 128 times as many


@dataclass(frozen=True, eq=False)
class Pieces:
    """What stands before all pieces; then of each whose part it belongs to, and how it reads where that is shown, or hidden."""

    head: str
    owner: NDArray[np.intp]
    shown: NDArray[Any]
    hidden: NDArray[Any]

    @classmethod
    def of(cls, head: str, owner: Sequence[int], shown: Sequence[str], hidden: Sequence[str]) -> Pieces:
        """From plain lists."""
        both = np.empty((2, len(owner)), dtype=object)
        both[0], both[1] = shown, hidden
        return cls(head, np.array(owner, dtype=np.intp), both[0], both[1])

    def compose(self, masks: Masks) -> list[str]:
        """(n, d) masks -> n texts."""
        written_out = len(masks) >= _WORTH_WRITING_OUT and self._characters <= _LONG
        texts: list[str] = []
        step = max(_PIECES_AT_ONCE // len(self.owner), 1)
        for first in range(0, len(masks), step):
            kept = masks[first:first + step].take(self.owner, axis=1)
            if written_out:
                chosen = self._octets[np.arange(len(self._octets)), np.packbits(kept, axis=1)]
            else:
                chosen = np.where(kept, self.shown, self.hidden)
            texts += [self.head + "".join(row) for row in chosen.tolist()]
        return texts

    @cached_property
    def _characters(self) -> int:
        return sum(max(len(one), len(other)) for one, other in zip(self.shown, self.hidden, strict=True))

    @cached_property
    def _octets(self) -> NDArray[Any]:
        """(m / 8, 256): how eight pieces in a row read, by the bits that say which of them show."""
        octets = np.empty((-(-len(self.shown) // 8), 256), dtype=object)
        for block, first in zip(octets, range(0, len(self.shown), 8), strict=True):
            readings = [""]
            for both in zip(self.hidden[first:first + 8], self.shown[first:first + 8], strict=True):
                readings = [reading + piece for reading in readings for piece in both]
            # numpy packs the first of fewer than eight into the highest bits.
            block[:: 256 // len(readings)] = readings
        return octets
