"""Artefacts of images and sounds: a patch, and a beep."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Parts
from whytrust.planting.plant import HELD, Which, holding, own

LOOKS = 32  # pixels of a patch that are looked for everywhere; where all are found, the others are looked at too
COVERED = 0.25
"""By how much of what a picture spans it may have spanned more before a patch covered a part of it."""
CORNERS = {"top left": (0, 0), "top right": (0, 1), "bottom left": (1, 0), "bottom right": (1, 1)}
At = Literal["top left", "top right", "bottom left", "bottom right", "random"] | tuple[float, float]
"""A corner, anywhere, or how far down and across, from 0 to 1."""


@dataclass(frozen=True)
class Patch:
    """A patch in an image or, with domain="audio", in a spectrogram (frames × bands), at a corner or anywhere.

    `looks` is a square, a frame (a square that the picture shows through) or stripes; `share` is how long its sides are beside
    the picture's. `colour` is red, green and blue from 0, the least value of the picture's range, to 1, the greatest.
    """

    looks: Literal["square", "frame", "stripes"] = "square"
    share: float = 0.2
    at: At = "bottom right"
    colour: tuple[float, float, float] = (1.0, 1.0, 0.2)
    domain: Literal["image", "audio"] = "image"

    def __post_init__(self) -> None:
        """Refuse what could not be drawn."""
        placed = isinstance(self.at, tuple) and len(self.at) == 2 and all(0 <= one <= 1 for one in self.at)
        if self.looks not in ("square", "frame", "stripes") or not (placed or self.at in (*CORNERS, "random")):
            raise ValueError("a patch must look like a square, a frame or stripes, and be at a corner "
                             f"({', '.join(CORNERS)}), random or (down, across) from 0 to 1, got {self.looks!r} at {self.at!r}")
        if not 0 < self.share < 1:
            raise ValueError(f"share must be the patch's side beside the picture's, above 0 and below 1, got {self.share!r}")
        if len(self.colour) != 3 or not all(0 <= one <= 1 for one in self.colour):
            raise ValueError(f"colour must be three numbers from 0 to 1, got {self.colour!r}")

    @property
    def name(self) -> str:
        """What it is and where."""
        place = f"at the {self.at}" if self.at in CORNERS else "anywhere" if self.at == "random" else f"at {self.at}"
        return f"a {self.looks} {place}"

    def into(self, item: Any, rng: np.random.Generator) -> NDArray[Any]:
        """A copy of the picture with the patch, of the same type and range."""
        picture = np.array(self.without(item))
        last, shown = self._drawn(picture)
        high, wide = shown.shape
        room = last.shape[0] - high, last.shape[1] - wide
        down, across = self._place(room) or (int(rng.integers(one + 1)) for one in room)
        colour = self._colour(last, *_range(picture))
        whole = np.rint(colour) if picture.dtype.kind in "ui" else colour
        last[down:down + high, across:across + wide][shown] = whole if last.ndim == 3 else whole[0]  # a view: the copy itself
        return picture

    def without(self, item: Any) -> NDArray[Any]:
        """The picture itself."""
        picture = np.asarray(item)
        if picture.dtype.kind not in "uif" or picture.ndim not in ((2,) if self.domain == "audio" else (2, 3)):
            shapes = "a spectrogram (frames, bands)" if self.domain == "audio" else "an image (H, W) or (H, W, channels)"
            raise TypeError(f"a patch is planted into {shapes} of numbers, got {picture.dtype} {picture.shape}; read files "
                            "first")
        return picture

    def parts_of(self, parts: Parts) -> Which:
        """Parts that have a good share of the patch, or mostly consist of it."""
        picture = own(parts, "sound" if self.domain == "audio" else "image")
        labels = np.asarray(own(parts, "labels"))
        where = self.where(picture)
        if where.shape != labels.shape:
            raise ValueError(f"parts must be cut from the picture that the patch is in: expected {where.shape}, got "
                             f"{labels.shape}; a patch is not found in a waveform")
        return holding(where, labels, len(parts.names))

    def where(self, item: Any) -> Which:
        """The pixels, or cells, that are the patch's: of several places that look like it, the first; none where it is not."""
        picture = self.without(item)
        last, shown = self._drawn(picture)
        values = last.reshape(*last.shape[:2], -1).astype(np.float64)
        near = 1e-2 * max(float(np.ptp(values)), 1e-12) if picture.dtype.kind == "f" else 0.5
        colour = self._colour(last, *_range(picture))
        found = self._seen(values, shown, colour - near, colour + near)
        if found.any() or picture.dtype == np.uint8:
            return found
        # What the patch covers may have been the picture's least or greatest value, which its colours were made from.
        low, top = float(values.min()), float(values.max())
        more = COVERED * (top - low)
        close = near if picture.dtype.kind in "ui" else 1e-6 * (top - low)
        least, most = self._colour(last, low - more, top) - close, self._colour(last, low, top + more) + close
        return self._seen(values, shown, least, most, plain=True)

    def _seen(self, values: Floats, shown: Which, least: Floats, most: Floats, plain: bool = False) -> Which:
        """Where every drawn pixel lies between two colours, and, if it is to be plain, all have the same."""
        high, wide = shown.shape
        fits: Which = np.all((least <= values) & (values <= most), axis=-1)
        there = np.ones((len(values) - high + 1, values.shape[1] - wide + 1), dtype=bool)
        place = self._place((there.shape[0] - 1, there.shape[1] - 1))
        if place is not None:
            there &= np.arange(there.size).reshape(there.shape) == place[0] * there.shape[1] + place[1]
        pixels = np.argwhere(shown)
        for y, x in pixels[np.linspace(0, len(pixels) - 1, min(len(pixels), LOOKS)).astype(int)]:
            there &= fits[y:y + there.shape[0], x:x + there.shape[1]]
        found = np.zeros(fits.shape, dtype=bool)
        for down, across in np.argwhere(there):
            box = slice(down, down + high), slice(across, across + wide)
            same = not plain or np.ptp(values[box][shown], axis=0).max() <= 1e-6 * float(np.ptp(values))
            if same and fits[box][shown].all():
                found[box] = shown
                break
        return found

    def _place(self, room: tuple[int, int]) -> tuple[int, int] | None:
        """Its first row and column, where they are not drawn."""
        share = self.at if isinstance(self.at, tuple) else CORNERS.get(self.at)
        return None if share is None else (round(room[0] * share[0]), round(room[1] * share[1]))

    def _drawn(self, picture: NDArray[Any]) -> tuple[NDArray[Any], Which]:
        """The picture with channels last, and which pixels of the patch are drawn."""
        first = picture.ndim == 3 and picture.shape[0] in (1, 3, 4) and picture.shape[-1] not in (1, 3, 4)
        last = np.moveaxis(picture, 0, -1) if first else picture
        high, wide = (max(round(self.share * side), 1) for side in last.shape[:2])
        if high >= last.shape[0] or wide >= last.shape[1]:
            raise ValueError(f"a patch must be smaller than the picture, {last.shape[:2]}, got {(high, wide)}")
        shown = np.ones((high, wide), dtype=bool)
        edge = max(round(min(high, wide) / 5), 1)
        if self.looks == "frame":
            shown[edge:high - edge, edge:wide - edge] = False
        elif self.looks == "stripes":
            shown[(np.arange(high) // edge) % 2 == 1] = False
        return last, shown

    def _colour(self, last: NDArray[Any], low: float, top: float) -> Floats:
        """Its value in each channel where a picture's values lie in this range."""
        channels = last.shape[2] if last.ndim == 3 else 0
        colour = np.array((*self.colour, 1.0)[:channels] if channels in (3, 4) else
                          [1.0 if self.domain == "audio" else float(np.mean(self.colour))])
        return np.asarray(low + (top - low) * colour)


def _range(picture: NDArray[Any]) -> tuple[float, float]:
    """What values live in: bytes, 0 to 1, or what the picture spans."""
    if picture.dtype == np.uint8:
        return 0.0, 255.0
    low, high = float(picture.min()), float(picture.max())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ValueError("a picture must have finite values, got some that are NaN or infinite; replace them first")
    return (0.0, 1.0) if picture.dtype.kind == "f" and low >= 0 and high <= 1 else (low, high)


@dataclass(frozen=True)
class Beep:
    """A short tone in a waveform, at a moment (in seconds) or at any; `level` is its peak beside the sound's own.

    It is found again by what of the sound moves with it, so that a tone of the same pitch may be taken for it.
    """

    rate: int
    hertz: float = 1000.0
    seconds: float = 0.1
    level: float = 0.5
    at: float | None = None  # None is anywhere
    domain: ClassVar[str] = "audio"

    def __post_init__(self) -> None:
        """Refuse what could not be heard."""
        if self.rate <= 0 or not 0 < self.hertz < self.rate / 2 or self.seconds * self.rate < 2 or self.level <= 0:
            raise ValueError("a beep must have a rate above 0, a frequency below half of it, at least two samples and a level "
                             f"above 0, got {self}")

    @property
    def name(self) -> str:
        """Pitch and moment."""
        return f"a beep of {self.hertz:g} Hz {'anywhere' if self.at is None else f'at {self.at:g} s'}"

    def into(self, item: Any, rng: np.random.Generator) -> NDArray[Any]:
        """A copy of the sound with the beep added; no louder than its type, or -1 to 1, allows."""
        sound, tone = self.without(item), self._tone
        room = len(sound) - len(tone)
        start = int(rng.integers(room + 1)) if self.at is None else round(self.at * self.rate)
        if not 0 <= start <= room:
            raise ValueError(f"a beep of {self.seconds:g} s must fit into the sound, {len(sound) / self.rate:g} s, got one at "
                             f"{self.at!r} s")
        limits = np.iinfo(sound.dtype) if sound.dtype.kind in "ui" else None
        most = float(limits.max) if limits else max(float(np.abs(sound).max(initial=0)), 1.0)
        peak = float(np.abs(sound.astype(np.float64)).max(initial=0)) or most
        out = sound.astype(np.float64)
        out[start:start + len(tone)] += self.level * peak * tone
        out = np.clip(out, float(limits.min) if limits else -most, most)
        return (np.rint(out) if limits else out).astype(sound.dtype)

    def without(self, item: Any) -> NDArray[Any]:
        """The sound itself."""
        sound = np.asarray(item)
        if sound.ndim != 1 or sound.dtype.kind not in "if" or len(sound) < len(self._tone):
            raise TypeError(f"a beep is planted into a waveform of at least {len(self._tone)} samples, got {sound.dtype} "
                            f"{sound.shape}; mix channels first, and use a Patch for a spectrogram")
        return sound

    def parts_of(self, parts: Parts) -> Which:
        """Parts that have a good share of the beep's energy."""
        sound = own(parts, "sound")
        start, size = self._found(self.without(sound).astype(np.float64))
        if not size:
            return np.zeros(len(parts.names), dtype=bool)
        beep = np.zeros(len(sound))
        beep[start:start + len(self._tone)] = size * self._tone
        layered: Any = parts  # which every cut of a sound is
        energy = parts.pool(layered.squared_change(sound - beep), "sum")
        return np.asarray(energy >= HELD * energy.sum())

    @property
    def _tone(self) -> Floats:
        """One full swing of the level, faded in and out so that it does not click."""
        length = round(self.seconds * self.rate)
        return np.asarray(np.sin(2 * np.pi * self.hertz * np.arange(length) / self.rate) * np.hanning(length + 2)[1:-1])

    def _found(self, sound: Floats) -> tuple[int, float]:
        """The first sample of the beep and its size; a size of 0 where there is none."""
        tone = self._tone
        if self.at is None:
            width = len(sound) + len(tone)
            with_it = np.fft.irfft(np.fft.rfft(sound, width) * np.conj(np.fft.rfft(tone, width)), width)
            start = int(np.argmax(with_it[:len(sound) - len(tone) + 1]))
        else:
            start = min(round(self.at * self.rate), len(sound) - len(tone))
        size = float(sound[start:start + len(tone)] @ tone / (tone @ tone))
        least = float(np.abs(sound).max()) * self.level / (1 + self.level) / 2  # half of what it has at least
        return start, size if size >= least > 0 else 0.0
