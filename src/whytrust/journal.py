"""How a run went: when it was begun and gone on with, where, and what is worth knowing of that. Nothing in it is a result."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from whytrust import folders
from whytrust.shards import Block
from whytrust.surroundings import changes, surroundings


class Journal:
    """A run's sessions.jsonl, and the file that says which block is in hand. What cannot be read of them is left out."""

    def __init__(self, folder: Path) -> None:
        """Nothing is read or written yet."""
        self.path, self.in_hand = folder / "sessions.jsonl", folder / "in_hand"
        self.here: dict[str, str] = {}
        self._noted: set[str] = set()

    def _entries(self) -> list[dict[str, Any]]:
        found = []
        for line in self._read(self.path).splitlines():
            with suppress(ValueError, RecursionError):
                found.append(json.loads(line))
        return [one for one in found if isinstance(one, dict)]

    def _write(self, entry: Mapping[str, Any]) -> None:
        """Add a line; where the one before was cut off, it alone is lost."""
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):
            folders.put(self.path, [])  # what is no file of the run is made one
        with open(self.path, "a+b") as file:
            cut_off = file.tell() and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n"
            file.write(b"\n" * bool(cut_off) + json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @staticmethod
    def _read(path: Path) -> bytes:
        try:
            return folders.read(path)
        except (ValueError, OSError):  # what is no file is made one when it is written
            return b""

    def sessions(self) -> list[dict[str, Any]]:
        """When the run was begun and continued, and with which versions."""
        return [one for one in self._entries() if "note" not in one]

    def notes(self) -> list[str]:
        """What was noted."""
        return [str(one["note"]) for one in self._entries() if "note" in one]

    def begin(self) -> str:
        """A new session; how its surroundings differ from the first one's, in words."""
        self.here, self._noted = surroundings(), set(self.notes())
        self._write({"time": datetime.now(UTC).isoformat(timespec="seconds"), **self.here})
        return self.mixed()

    def mixed(self) -> str:
        """How the processor or the versions changed while the run was made, in words; empty where they did not."""
        sessions = self.sessions()
        return next((told for one in sessions[1:] if (told := changes(sessions[0], one))), "")

    def note(self, text: str) -> bool:
        """Keep a note; whether it is new."""
        if text in self._noted:
            return False
        self._noted.add(text)
        self._write({"note": text})
        return True

    def elsewhere(self, there: Mapping[str, str]) -> list[str]:
        """What is to be noted of work that was done in such surroundings."""
        other = changes(self.here, there)
        return [f"part of it was made elsewhere ({other}): the last digits may differ"] if other else []

    def _in_hand(self) -> tuple[str, int]:
        """Which block a session that ended without a word had in hand, and how often that happened."""
        name, _, times = self._read(self.in_hand).decode("ascii", errors="replace").partition(" ")
        return (name, int(times)) if times.isdecimal() and len(times) < 9 else ("", 0)

    def cut_short(self) -> str:
        """What is to be said of a session that ended in the middle of a block, in words; empty where none did."""
        name, times = self._in_hand()
        if not times:
            return ""
        return (f"the process ended while it worked on block {name}, {times} time{'s' if times > 1 else ''} now: after the "
                "second time a worker process does it, which can be lost; with --jobs or --timeout workers do every block")

    def taken_up(self, block: Block) -> int:
        """Note that a block is in hand; how often it has been without getting done, this time included."""
        name, times = self._in_hand()
        number = times + 1 if name == block.id else 1
        folders.put(self.in_hand, [f"{block.id} {number}".encode()], lasting=False)
        return number

    def put_down(self) -> None:
        """Nothing is in hand."""
        self.in_hand.unlink(missing_ok=True)
