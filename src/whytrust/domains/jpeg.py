"""A JPEG file, looked through before it is decoded: a few bytes of it can ask for all of its pixels again and again."""

from __future__ import annotations

import mmap
import os
import re
import struct

from whytrust import files, limits

_BEGIN, _SCAN, _EXIF = b"\xff\xd8", b"\xff\xda", b"Exif\0\0"
_SEGMENT = 1 << 16  # bytes of the longest
_MARKER = re.compile(rb"\xff([^\x00\xff\xd0-\xd7])")
"""What begins a segment. Within a scan 0xFF is followed by 0, or by the number of a place where decoding may begin anew."""
_BARE = (0x01, 0xD8)  # markers that no segment follows
_END = 0xD9


def check(path: str | os.PathLike[str], what: str) -> None:
    """Refuse a JPEG of too many scans, or too much Exif, which Pillow adds up; whatever is no JPEG passes."""
    with files.opened(path, what) as file:
        if file.read(2) != _BEGIN:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
            few_scans = _at_most(raw, _SCAN, limits.SCANS)
            if few_scans and _at_most(raw, _EXIF, limits.EXIF // _SEGMENT):
                return  # nearly all: nothing else is asked of them
            scans, exif = _counted(raw)
    if scans > limits.SCANS:
        raise ValueError(f"it must have at most {limits.SCANS} scans, and has more; save it again")
    if exif > limits.EXIF:
        raise ValueError(f"it must have at most {files.size(limits.EXIF)} of Exif, and has {files.size(exif)}; save it again "
                         "without")


def _at_most(raw: mmap.mmap, mark: bytes, most: int) -> bool:
    """Does a mark stand in so many places at most? Some may be in what follows the picture, such as a film of its making."""
    at = -1
    for _ in range(most + 1):
        at = raw.find(mark, at + 1)
        if at < 0:
            return True
    return False


def _counted(raw: mmap.mmap) -> tuple[int, int]:
    """(scans, bytes of Exif) of the first picture of a file, from segment to segment."""
    scans = exif = 0
    at = len(_BEGIN)
    while scans <= limits.SCANS and (found := _MARKER.search(raw, at)):
        kind, at = found[1][0], found.end()
        if kind == _END:
            break
        if kind in _BARE:
            continue
        if len(length := raw[at:at + 2]) < 2:
            break
        (held,) = struct.unpack(">H", length)
        scans += kind == _SCAN[1]
        exif += held if kind == 0xE1 and raw[at + 2:at + 8] == _EXIF else 0
        at += max(held, 2)
    return scans, exif
