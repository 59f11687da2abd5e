"""Pictures and sounds as bytes that stand inside a page, written with zlib and wave alone."""

from __future__ import annotations

import base64
import io
import struct
import wave
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]


def png(pixels: Any) -> bytes:
    """An 8-bit PNG of a grey (H, W) or RGB (H, W, 3) array."""
    array = np.asarray(pixels)
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3) or array.size == 0:
        raise ValueError(f"a PNG is made of uint8 (H, W) or (H, W, 3), got {array.dtype} {array.shape}")
    height, width = array.shape[:2]
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if array.ndim == 2 else 2, 0, 0, 0)
    data = zlib.compress(_filtered(array.reshape(height, -1), 1 if array.ndim == 2 else 3), 9)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def wav(samples: Any, rate: int) -> bytes:
    """A 16-bit mono WAV; samples beyond ±1 are clipped rather than wrapped around."""
    values = np.nan_to_num(np.asarray(samples, dtype=np.float64).ravel(), nan=0.0, posinf=1.0, neginf=-1.0)
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(int(rate))
        file.writeframes(np.clip(np.rint(values * 32768), -32768, 32767).astype("<i2").tobytes())
    return out.getvalue()


def data_uri(data: bytes, kind: str) -> str:
    """Bytes as an address that holds them, for src="…"."""
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def png_uri(pixels: Any) -> str:
    """A PNG that stands inside a page."""
    return data_uri(png(pixels), "image/png")


def zoom(height: int, width: int, smallest: int = 300, largest: int = 640) -> tuple[int, int]:
    """(enlarge, shrink) factors, one of them 1, that bring the longer side between the two sizes where that is possible."""
    longer = max(height, width)
    if longer > largest:
        return 1, -(-longer // largest)
    return max(1, -(-smallest // longer)), 1


def resize(array: Any, up: tuple[int, int], down: tuple[int, int], mean: bool = True) -> NDArray[Any]:
    """Each block of `down` cells becomes one (its mean; mean=False, for labels: its middle cell), then `up` copies of it."""
    values = np.asarray(array)
    for axis in (0, 1):
        if down[axis] > 1:
            values = _shrunk(values, down[axis], axis, mean)
        if up[axis] > 1:
            values = np.repeat(values, up[axis], axis=axis)
    return values


def outlines(labels: Any) -> NDArray[np.bool_]:
    """(H, W): the pixels whose right or lower neighbour belongs to another part."""
    parts = np.asarray(labels)
    edge = np.zeros(parts.shape, dtype=bool)
    edge[:, :-1] |= parts[:, :-1] != parts[:, 1:]
    edge[:-1] |= parts[:-1] != parts[1:]
    return edge


def middles(labels: Any, parts: Sequence[int]) -> dict[int, tuple[float, float]]:
    """The (x, y) deepest inside each of these parts, as shares of width and height; parts without pixels are left out.

    Peels one layer of pixels off every part at a time; the layer a pixel goes with is its depth. A centre of mass could lie
    outside a ring or a crescent, this point cannot.
    """
    whole = np.asarray(labels)
    step = -(-max(whole.shape) // 200)
    coarse = whole[::step, ::step]
    grid = coarse if len(np.unique(coarse)) == len(np.unique(whole)) else whole  # no part may fall between the coarse cells
    depth = _depths(grid)
    found = {}
    for part in parts:
        ys, xs = np.nonzero(grid == part)
        if len(ys) == 0:
            continue
        deepest = depth[ys, xs] == depth[ys, xs].max()
        ys, xs = ys[deepest], xs[deepest]
        middle = int(np.argmin((ys - ys.mean()) ** 2 + (xs - xs.mean()) ** 2))
        found[part] = ((float(xs[middle]) + 0.5) / grid.shape[1], (float(ys[middle]) + 0.5) / grid.shape[0])
    return found


def _depths(parts: NDArray[Any]) -> NDArray[np.int32]:
    padded = np.pad(parts, 1, constant_values=-1)
    same = [padded[1 + dy: padded.shape[0] - 1 + dy, 1 + dx: padded.shape[1] - 1 + dx] == parts
            for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0))]
    alive = np.logical_and.reduce(same)
    depth = np.zeros(parts.shape, dtype=np.int32)
    while alive.any():
        depth += alive
        around = np.pad(alive, 1)
        alive = alive & around[1:-1, 2:] & around[1:-1, :-2] & around[2:, 1:-1] & around[:-2, 1:-1]
    return depth


def _shrunk(values: NDArray[Any], factor: int, axis: int, mean: bool) -> NDArray[Any]:
    starts = np.arange(0, values.shape[axis], factor)
    if not mean:
        return np.asarray(values.take(np.minimum(starts + factor // 2, values.shape[axis] - 1), axis=axis))
    sums = np.add.reduceat(values.astype(np.float64), starts, axis=axis)
    counts = np.diff(np.append(starts, values.shape[axis]))
    means = sums / counts.reshape([-1 if a == axis else 1 for a in range(values.ndim)])
    return np.asarray(np.rint(means).astype(values.dtype) if values.dtype == np.uint8 else means)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _filtered(rows: NDArray[np.uint8], step: int) -> bytes:
    """Each row as its difference from its neighbours, in the way that leaves the smallest numbers: zlib packs those best."""
    here = rows.astype(np.int16)
    up = np.vstack([np.zeros_like(here[:1]), here[:-1]])
    left, corner = (np.pad(a, ((0, 0), (step, 0)))[:, : here.shape[1]] for a in (here, up))
    away = [abs(left + up - corner - near) for near in (left, up, corner)]
    nearest = np.where((away[0] <= away[1]) & (away[0] <= away[2]), left, np.where(away[1] <= away[2], up, corner))
    guesses = (np.zeros_like(here), left, up, (left + up) // 2, nearest)
    ways = np.stack([(here - guess).astype(np.uint8) for guess in guesses])
    cost = np.abs(ways.view(np.int8).astype(np.int32)).sum(axis=2)
    best = cost.argmin(axis=0)
    chosen = ways[best, np.arange(len(rows))]
    return np.hstack([best.astype(np.uint8)[:, None], chosen]).tobytes()
