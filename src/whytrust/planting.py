"""An artefact planted into an input, whose place is known: what a model should not go by, and an explanation should give away.

Ribeiro, Singh and Guestrin (2016) train models on data with a flaw that is known: noisy words in some of the training texts
(§ 5.4), snow in every picture of one class (§ 6.4). A plant is such a flaw for any domain: a token in a text, a 0/1 column of a
table, a patch in an image or a spectrogram, a beep in a waveform.

Plants keep nothing of the inputs that they were put into: where one is, `parts_of` finds by its looks. So it misleads where an
input has something of its own that looks the same (a white corner and a white patch, a tone of the beep's pitch).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, Parts

Which = NDArray[np.bool_]
HELD = 0.25
"""A part holds an artefact that has at least this share of its area, or energy, in it …"""
FILLED = 0.5
"""… and so does a part of which at least this share is the artefact's."""
LOOKS = 32  # pixels of a patch that are looked for everywhere; where all are found, the others are looked at too
CORNERS = {"top left": (0, 0), "top right": (0, 1), "bottom left": (1, 0), "bottom right": (1, 1)}
At = Literal["top left", "top right", "bottom left", "bottom right", "random"] | tuple[float, float]
"""A corner, anywhere, or how far down and across, from 0 to 1."""


class Plant(Protocol):
    """An artefact that can be put into the inputs of one domain, and be found again in the parts they are cut into."""

    @property
    def domain(self) -> str:
        """image, text, audio or tabular."""
        ...

    @property
    def name(self) -> str:
        """What it is, in a few words."""
        ...

    def into(self, item: Any, rng: np.random.Generator) -> Any:
        """A copy of the input with the artefact in it."""
        ...

    def without(self, item: Any) -> Any:
        """The input as it is beside those with the artefact: itself, or with a column that says that it is not there."""
        ...

    def parts_of(self, parts: Parts) -> Which:
        """Which parts hold the artefact; none where it is not there."""
        ...


def planted(items: Any, labels: Sequence[Any], plant: Plant, shares: Mapping[Any, float],
            rng: np.random.Generator) -> tuple[Any, Which]:
    """Plant an artefact into a share of the inputs of each class; which ones, is drawn. Classes that are not named get none.

    Of 30 inputs and a share of 0.1 exactly three get it. A list gives a list, an array an array and a DataFrame a DataFrame.
    """
    known, count = list(labels), len(items)
    if len(known) != count or not count:
        raise ValueError(f"labels must have one entry for each input, and there must be one: got {len(known)} labels and "
                         f"{count} inputs")
    strange = [label for label in shares if label not in known]
    if strange:
        raise ValueError(f"shares must name classes of the labels, got {strange[0]!r}, and the labels are "
                         f"{', '.join(map(repr, dict.fromkeys(known)))}")
    which = np.zeros(count, dtype=bool)
    for label, share in shares.items():
        if not 0 <= share <= 1:
            raise ValueError(f"a share must lie between 0 and 1, got {share!r} for class {label!r}")
        own = [i for i, one in enumerate(known) if one == label]
        which[rng.permutation(own)[:round(share * len(own))]] = True
    if hasattr(items, "columns"):
        out, marked = plant.without(items), plant.into(items, rng)
        out[which] = marked[which]
        return out, which
    made = [plant.into(item, rng) if chosen else plant.without(item) for item, chosen in zip(items, which, strict=True)]
    if not isinstance(items, np.ndarray):
        return made, which
    return np.array(made, dtype=items.dtype if items.dtype.kind not in "US" else None), which


@dataclass(frozen=True)
class Tokens:
    """Words that stand in a text at random places between its own."""

    words: tuple[str, ...] = ("zq7",)
    domain: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        """Take one word as well, and refuse what could not be found again."""
        if isinstance(self.words, str):
            object.__setattr__(self, "words", (self.words,))
        wrong = [word for word in self.words if not isinstance(word, str) or not word or word.split() != [word]]
        if wrong or not self.words:
            raise ValueError(f"words to plant must be one or more words without spaces, got {self.words!r}")

    @property
    def name(self) -> str:
        """The words themselves."""
        return f"the word{'s' * (len(self.words) > 1)} {', '.join(map(repr, self.words))}"

    def into(self, item: Any, rng: np.random.Generator) -> str:
        """The text with each word once, before, between or after its own words; nothing else is changed."""
        text = self.without(item)
        for word in self.words:
            gaps = [0, *(match.end() for match in re.finditer(r"\s+", text)), len(text)]
            place = gaps[int(rng.integers(len(gaps)))]
            before, after = text[:place], text[place:]
            text = (f"{before}{' ' * bool(before and not before[-1].isspace())}{word}"
                    f"{' ' * bool(after and not after[0].isspace())}{after}")
        return text

    def without(self, item: Any) -> str:
        """The text itself."""
        if not isinstance(item, str):
            raise TypeError(f"words are planted into a text, a str, got {type(item).__name__}; read files first")
        return item

    def parts_of(self, parts: Parts) -> Which:
        """The words themselves; of sentences those in which one stands."""
        text, spans = _own(parts, "text"), _own(parts, "spans")
        looks = re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, self.words)) + r")(?!\w)")
        return np.array([any(looks.search(text, start, end) for start, end in some) for some in spans], dtype=bool)


@dataclass(frozen=True)
class Column:
    """A further column of a table: 1 in rows that have the artefact, 0 in the others.

    Rows without names of columns get it as their last value; `index` says which it is where other columns were added after it.
    """

    column: str = "planted"
    index: int | None = None
    domain: ClassVar[str] = "tabular"

    @property
    def name(self) -> str:
        """The column's name."""
        return f"the column {self.column!r}"

    def into(self, item: Any, rng: np.random.Generator) -> Any:
        """A row, or several, with the column at 1."""
        return self._with(item, 1)

    def without(self, item: Any) -> Any:
        """A row, or several, with the column at 0."""
        return self._with(item, 0)

    def parts_of(self, parts: Parts) -> Which:
        """The column, whatever its value is: a 0 is a reason, too."""
        columns = list(getattr(parts.view, "columns", ()))
        if not columns:
            raise TypeError(f"a planted column must be looked for in the parts of a table row, got {type(parts).__name__}")
        place = columns.index(self.column) if self.column in columns else len(columns) - 1 if self.index is None else self.index
        if not 0 <= place < len(columns):
            raise ValueError(f"index must be a column's, 0 to {len(columns) - 1}, got {self.index!r}")
        return np.asarray(np.arange(len(columns)) == place)

    def _with(self, item: Any, value: int) -> Any:
        names = item if isinstance(item, Mapping) else getattr(item, "columns", getattr(item, "index", ()))
        if hasattr(names, "__contains__") and self.column in names:
            raise ValueError(f"the planted column must have a name of its own, and there is a {self.column!r} already; choose "
                             "another")
        if isinstance(item, Mapping):
            return {**item, self.column: value}
        if hasattr(item, "iloc"):
            row = item.copy()
            row[self.column] = value
            return row
        if isinstance(item, list | tuple) and (not item or np.ndim(item[0]) == 0):
            return type(item)([*item, value])
        rows = np.asarray(item)
        if rows.ndim not in (1, 2) or rows.dtype.kind not in "biufO":
            raise TypeError("a column is planted into rows of numbers or objects, dicts or DataFrames, got "
                            f"{rows.dtype} {rows.shape}; turn text columns into a DataFrame")
        return np.concatenate([rows, np.full((*rows.shape[:-1], 1), value, dtype=rows.dtype)], axis=-1)


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
        last, drawn, shown = self._drawn(picture)
        high, wide = shown.shape
        room = last.shape[0] - high, last.shape[1] - wide
        down, across = self._place(room) or (int(rng.integers(one + 1)) for one in room)
        last[down:down + high, across:across + wide][shown] = drawn[shown]  # a view: the copy itself is drawn on
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
        picture = _own(parts, "sound" if self.domain == "audio" else "image")
        labels = np.asarray(_own(parts, "labels"))
        where = self.where(picture)
        if where.shape != labels.shape:
            raise ValueError(f"parts must be cut from the picture that the patch is in: expected {where.shape}, got "
                             f"{labels.shape}; a patch is not found in a waveform")
        return holding(where, labels, len(parts.names))

    def where(self, item: Any) -> Which:
        """The pixels, or cells, that are the patch's: of several places that look like it, the first; none where it is not."""
        last, drawn, shown = self._drawn(np.asarray(self.without(item)))
        high, wide = shown.shape
        there = np.ones((last.shape[0] - high + 1, last.shape[1] - wide + 1), dtype=bool)
        place = self._place((there.shape[0] - 1, there.shape[1] - 1))
        if place is not None:
            there &= np.arange(there.size).reshape(there.shape) == place[0] * there.shape[1] + place[1]
        near = 1e-2 * max(float(np.ptp(last)), 1e-12) if last.dtype.kind == "f" else 0
        values, wanted = (one.reshape(*one.shape[:2], -1).astype(np.float64) for one in (last, drawn))
        pixels = np.argwhere(shown)
        for y, x in pixels[np.linspace(0, len(pixels) - 1, min(len(pixels), LOOKS)).astype(int)]:
            there &= np.abs(values[y:y + there.shape[0], x:x + there.shape[1]] - wanted[y, x]).max(axis=-1) <= near
        found = np.zeros(last.shape[:2], dtype=bool)
        for down, across in np.argwhere(there):
            if (np.abs(values[down:down + high, across:across + wide] - wanted)[shown] <= near).all():
                found[down:down + high, across:across + wide] = shown
                break
        return found

    def _place(self, room: tuple[int, int]) -> tuple[int, int] | None:
        """Its first row and column, where they are not drawn."""
        share = self.at if isinstance(self.at, tuple) else CORNERS.get(self.at)
        return None if share is None else (round(room[0] * share[0]), round(room[1] * share[1]))

    def _drawn(self, picture: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], Which]:
        """The picture with channels last, and the patch: its values, and which of its pixels are drawn."""
        first = picture.ndim == 3 and picture.shape[0] in (1, 3, 4) and picture.shape[-1] not in (1, 3, 4)
        last = np.moveaxis(picture, 0, -1) if first else picture
        high, wide = (max(round(self.share * side), 1) for side in last.shape[:2])
        if high >= last.shape[0] or wide >= last.shape[1]:
            raise ValueError(f"a patch must be smaller than the picture, {last.shape[:2]}, got {(high, wide)}")
        low, top = _range(picture)
        channels = last.shape[2] if last.ndim == 3 else 0
        colour = np.array((*self.colour, 1.0)[:channels] if channels in (3, 4) else
                          [1.0 if self.domain == "audio" else float(np.mean(self.colour))])
        values = np.broadcast_to(low + (top - low) * colour, (high, wide, len(colour)))
        shown = np.ones((high, wide), dtype=bool)
        edge = max(round(min(high, wide) / 5), 1)
        if self.looks == "frame":
            shown[edge:high - edge, edge:wide - edge] = False
        elif self.looks == "stripes":
            shown[(np.arange(high) // edge) % 2 == 1] = False
        whole = np.rint(values) if picture.dtype.kind in "ui" else values
        return last, whole.astype(picture.dtype).reshape(high, wide, *last.shape[2:]), shown


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
        sound = _own(parts, "sound")
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


def holding(where: Which, labels: NDArray[Any], d: int) -> Which:
    """Which of d parts hold an area: those with a good share of it, and those that mostly consist of it."""
    area = np.bincount(labels[where].ravel(), minlength=d)
    whole = np.maximum(np.bincount(labels.ravel(), minlength=d), 1)
    return np.asarray((area > 0) & ((area >= HELD * max(area.sum(), 1)) | (area >= FILLED * whole)))


def _own(parts: Parts, what: str) -> Any:
    found = getattr(parts, what, None)
    if found is None:
        raise TypeError(f"an artefact must be looked for in parts of its own domain, got {type(parts).__name__}, which have no "
                        f"{what}")
    return found
