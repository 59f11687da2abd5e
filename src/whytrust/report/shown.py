"""A gallery case as pictures to look at: the input before and after the attack, what changed, and where its parts lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats
from whytrust.pictures import colours, raster
from whytrust.report import sound as sounds
from whytrust.report import texts
from whytrust.report.sound import Sound
from whytrust.report.texts import Text

Pixels = NDArray[np.uint8]
LONGEST = 224
"""Pixels of a picture's longer side; larger ones are shrunk."""
DARK = 64.0
"""Floats that nowhere exceed this are shown on their own scale; on that of bytes they would look black."""
PACKINGS = ((1, 6, 0.6), (1, 5, 0.4), (2, 8, 0.2), (2, 6, 0.1), (3, 6, 0.05), (4, 5, 0.0))
"""(shrink, bits of a shade, share of the size that can be hoped for)."""
FACTORS = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 500, 1000)


@dataclass(frozen=True)
class Shown:
    """One case of the gallery. A table's row and a text have no pictures: a row's values stand in `before` and `after`."""

    record: Mapping[str, Any]
    clean: Pixels | None
    adversarial: Pixels | None
    change: Pixels | None
    labels: NDArray[Any] | None  # (H, W), part of each pixel
    magnified: str = ""
    before: tuple[Any, ...] = ()
    after: tuple[Any, ...] = ()
    sound: Sound | None = None  # where the pictures are spectrograms
    text: Text | None = None

    @property
    def trial(self) -> Mapping[str, Any]:
        """The trial at full strength, else the first; empty where there is none."""
        trials = [trial for trial in self.record.get("trials") or [] if isinstance(trial, Mapping)]
        return next((trial for trial in trials if trial.get("strength") == "full"), trials[0] if trials else {})

    @property
    def parts(self) -> int:
        """How many parts the input has."""
        if self.record.get("d"):
            return int(self.record["d"])
        if self.text is not None:
            return len(self.text)
        return int(self.labels.max()) + 1 if self.labels is not None else len(self.before)


def shown(record: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Shown:
    """A stored record and its arrays as pictures; both pictures are on one scale, so that they can be compared.

    The change is magnified so that it can be seen at all, which makes it look larger than it is: the factor stands beside it.
    """
    missing = [name for name in ("clean", "adversarial") if name not in arrays]
    if missing:
        raise ValueError(f"a gallery case must have the arrays clean and adversarial: {', '.join(missing)} of case "
                         f"{record.get('case')!r} is missing; show cases whose status is ok")
    if record.get("text"):
        return Shown(record, None, None, None, None, text=texts.text(record, arrays))
    clean, adversarial = np.asarray(arrays["clean"]), np.asarray(arrays["adversarial"])
    if clean.shape != adversarial.shape:
        raise ValueError(f"clean and adversarial must have one shape, got {clean.shape} and {adversarial.shape} in case "
                         f"{record.get('case')!r}; store both as the model takes them")
    if record.get("sound"):
        heard = sounds.sound(record, arrays)
        return Shown(record, *sounds.spectrograms(clean, adversarial, heard.labels), sound=heard)
    if clean.ndim == 1:
        return Shown(record, None, None, None, None, before=tuple(clean.tolist()), after=tuple(adversarial.tolist()))
    labels = np.asarray(arrays["labels"]) if "labels" in arrays else np.zeros(_sides(clean, record), dtype=np.int32)
    first, second = (_last(a, record) for a in (clean, adversarial))
    if labels.shape != first.shape[:2]:
        raise ValueError(f"labels must name the part of each pixel: expected {first.shape[:2]}, got {labels.shape}; "
                         "record['channels_first'] says whether the channels come first")
    low, high = _range(np.stack([first, second]))
    values = [np.clip((a.astype(np.float64) - low) / (high - low), 0, 1) for a in (first, second)]
    change, words = _magnified(values[1] - values[0])
    down = -(-max(labels.shape) // LONGEST)
    pictures = [_small(picture, down) for picture in (_rgb(values[0]), _rgb(values[1]), change)]
    return Shown(record, pictures[0], pictures[1], pictures[2], labels, words)


def packed(pictures: Sequence[Pixels], room: int) -> list[str]:
    """PNGs as data URIs of at most `room` characters together where that can be, all packed alike so that they compare.

    First they lose shades, then pixels. Fewer shades leave bands in smooth skies: a picture here says which input it was, it is
    not the input.
    """
    best = [raster.png_uri(pixels) for pixels in pictures]
    whole = sum(map(len, best))
    for shrink, bits, hope in PACKINGS:
        if sum(map(len, best)) <= room:
            break
        if whole * hope <= room:  # each try costs time
            best = [raster.png_uri(_coarse(_small(pixels, shrink), bits)) for pixels in pictures]
    return best


def _coarse(pixels: Pixels, bits: int) -> Pixels:
    steps = 2 ** bits - 1
    return np.asarray(np.rint(np.rint(pixels / 255.0 * steps) / steps * 255), dtype=np.uint8)


def _small(pixels: Pixels, down: int) -> Pixels:
    return np.asarray(raster.resize(pixels, (1, 1), (down, down)), dtype=np.uint8)


def _sides(array: NDArray[Any], record: Mapping[str, Any]) -> tuple[int, int]:
    height, width = _last(array, record).shape[:2]
    return height, width


def _last(array: NDArray[Any], record: Mapping[str, Any]) -> NDArray[Any]:
    """(H, W, C), however it came."""
    if array.ndim == 2:
        return array[..., None]
    if array.ndim != 3:
        raise ValueError(f"a picture must be (H, W), (H, W, C) or (C, H, W), got {array.shape} in case {record.get('case')!r}")
    return np.moveaxis(array, 0, -1) if record.get("channels_first") else array


def _range(both: NDArray[Any]) -> tuple[float, float]:
    """The range that pixels live in: bytes, 0 to 1, 0 to 255, or what the two pictures span."""
    finite = both[np.isfinite(both)] if both.dtype.kind == "f" else both
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if both.dtype == np.uint8:
        return 0.0, 255.0
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and 2 < high <= 255:
        return 0.0, high if both.dtype.kind == "f" and high <= DARK else 255.0
    return (low, high) if high > low else (low, low + max(1.0, abs(low)))


def _rgb(values: Floats) -> Pixels:
    """(H, W, C) between 0 and 1 as bytes; of other than 1, 3 or 4 channels the mean is shown, transparent pixels on white."""
    values = np.nan_to_num(values)
    if values.shape[-1] == 4:
        values = values[..., :3] * values[..., 3:] + 1 - values[..., 3:]
    elif values.shape[-1] != 3:
        values = np.repeat(values.mean(axis=2, keepdims=True), 3, axis=2)
    return np.asarray(np.rint(np.clip(values, 0, 1) * 255), dtype=np.uint8)


def _magnified(change: Floats) -> tuple[Pixels, str]:
    """The change as large as a round factor makes it, and how to read it."""
    change = np.nan_to_num(change)
    largest = float(np.abs(change).max(initial=0.0))
    if largest == 0:
        return np.full((*change.shape[:2], 3), 255, dtype=np.uint8), "nothing changed"
    if change.shape[-1] != 3:
        grey = change.mean(axis=2)
        factor = _factor(1.0 / (float(np.abs(grey).max()) or 1.0))
        return colours.rgb(np.clip(grey * factor, -1, 1)), f"× {factor}; blue is brighter, orange darker"
    factor = _factor(0.5 / largest)
    return np.asarray(np.rint(np.clip(0.5 + change * factor, 0, 1) * 255), dtype=np.uint8), f"× {factor}; mid-grey is no change"


def _factor(most: float) -> int:
    return max((f for f in FACTORS if f <= most), default=1)
