"""Which parts are alike? Descriptions brought to one scale, put into clusters, and each cluster named in words."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

from whytrust.core import Floats, generator

SIZES = (2, 3, 4, 5, 6, 8, 10, 12)
"""Numbers of components that are tried where none is asked for."""
CLEAR = 0.5
"""A silhouette from which clusters stand apart; below it no number of them is the right one."""
MOST = 64
"""Components that are made where nobody asked for a number."""
SAMPLE = 1500
"""Parts on which numbers of components are tried: silhouettes take time with the square of them."""
STARTS = 4
FAR = 4.0
"""Standard deviations beyond which a description counts as this far: one odd part shall not make a scale for all."""
_SAME = 1e-6


@dataclass(frozen=True, eq=False)
class Components:
    """The cluster of each part, the largest cluster first, and how their number came about."""

    labels: NDArray[np.intp]
    count: int
    told: str


def clustered(plain: Sequence[Floats], model: Sequence[Floats], components: int | None, seed: int) -> Components:
    """Parts by likeness (k-means, which thread or run does not change).

    Each block counts as much as any other, however many numbers it has. Where no number of components is asked for, it is the
    one of SIZES whose clusters stand apart best (their silhouette); where none stand apart (below CLEAR), the square root of
    half the number of parts, as a rule of thumb: then borders between components are arbitrary, and a name is a middle.
    """
    points = np.hstack([_scaled(block, each=True) for block in plain] + [_scaled(block, each=False) for block in model])
    different = len(np.unique(points, axis=0))
    with threadpool_limits(1):  # sums in another order would be other sums
        count, told = _number(points, different, components, seed)
        labels = np.zeros(len(points), np.intp) if count == 1 else _fit(points, count, seed)
    return Components(*_by_size(labels), told)


def _scaled(block: Floats, each: bool) -> Floats:
    """A block whose parts are √2 apart on average: by each of its numbers, or by all of them where they have one unit."""
    centred = block - block.mean(axis=0)
    spreads = centred.std(axis=0)
    varied = spreads > _SAME * (np.abs(block).max(axis=0, initial=0) + _SAME)
    if not varied.any():
        return np.zeros((len(block), 1))
    kept = centred[:, varied]
    if each:
        return np.asarray(np.clip(kept / spreads[varied], -FAR, FAR) / math.sqrt(varied.sum()))
    size = math.sqrt(float((kept**2).sum(axis=1).mean()))
    lengths = np.linalg.norm(kept, axis=1, keepdims=True) / size
    return np.asarray(kept / size * np.minimum(1, FAR / np.maximum(lengths, _SAME)))


def _number(points: Floats, different: int, components: int | None, seed: int) -> tuple[int, str]:
    if components is not None:
        few = f", for no more parts are different (of {components} asked for)" if different < components else ""
        return min(int(components), different), f"{min(int(components), different)} of them{few}"
    if different <= 2:
        return different, f"{different} of them, for no more parts are different"
    rng = generator(seed, "components")
    some = points if len(points) <= SAMPLE else points[np.sort(rng.choice(len(points), SAMPLE, replace=False))]
    most = len(np.unique(some, axis=0)) - 1
    tried = {}
    for size in SIZES:
        if size <= most:
            tried[size] = float(silhouette_score(some, _fit(some, size, seed)))
    best = max(tried, key=lambda size: tried[size], default=1)
    if tried and tried[best] >= CLEAR:
        return best, f"{best} of them, which stand apart best (silhouette {tried[best]:.2f})"
    count = min(max(round(math.sqrt(len(points) / 2)), 2), different, MOST)
    return count, f"{count} of them by a rule of thumb, for they do not fall into clear groups"


def _fit(points: Floats, count: int, seed: int) -> NDArray[np.intp]:
    drawn = int(generator(seed, "k-means", count).integers(2**31 - 1))
    return np.asarray(KMeans(count, n_init=STARTS, random_state=drawn).fit_predict(points), dtype=np.intp)


def _by_size(labels: NDArray[np.intp]) -> tuple[NDArray[np.intp], int]:
    """Clusters numbered by how many parts they have, of equals the one that is met first."""
    found, first, inverse, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((first, -counts))
    rank = np.empty(len(found), np.intp)
    rank[order] = np.arange(len(found))
    return rank[inverse.ravel()], len(found)


# --- names ------------------------------------------------------------------------------------------------------------


def named(found: Components, raw: dict[str, Floats], kind: str) -> tuple[str, ...]:
    """Words for the middle of each component; those that have the same words, or none, get a number too."""
    means = {name: np.stack([block[found.labels == c].mean(axis=0) for c in range(found.count)]) for name, block in raw.items()}
    if kind == "image":
        relative = _thirds(raw["texture"][:, 0], means["texture"][:, 0])
        words = [_look(means["colour"][c], means["texture"][c], relative[c]) for c in range(found.count)]
    else:
        relative = _thirds(raw["level"][:, 0], means["level"][:, 0])
        moving = _thirds(raw["change"][:, 0], means["change"][:, 0])
        words = [_sound(means["band"][c], relative[c], moving[c]) for c in range(found.count)]
    return tuple(w if w and words.count(w) == 1 else f"component {c + 1}{': ' if w else ''}{w}" for c, w in enumerate(words))


def _thirds(values: Floats, means: Floats) -> list[int]:
    """-1, 0 or 1: is a component's mean in the lower, middle or upper third of all parts'? 0 where they hardly differ."""
    low, high = np.quantile(values, (1 / 3, 2 / 3))
    if values.max() - values.min() <= _SAME * (1 + np.abs(values).max()):
        return [0] * len(means)
    if high - low <= _SAME:  # most are one value
        low = high = float(np.median(values))
    return [int(mean > high) - int(mean < low) for mean in means]


def _look(colour: Floats, texture: Floats, rough: int) -> str:
    light, red_green, blue_yellow = (float(v) for v in colour[:3])
    blue = light + 2 * blue_yellow / 3
    both = (3 * light - blue) / 2
    rgb = [min(max(v, 0.0), 1.0) for v in (both + red_green / 2, both - red_green / 2, blue)]
    hue, _, _ = colorsys.rgb_to_hsv(*rgb)
    tone = "dark" if light < 0.3 else "bright" if light > 0.7 else ""
    chroma = max(rgb) - min(rgb)
    name = "" if chroma < 0.12 else next(word for end, word in _HUES if 360 * hue < end)
    painted = " ".join(w for w in (tone, name or ("grey" if not tone else "")) if w)
    shares = texture[-4:]
    strongest = int(np.argmax(shares))
    striped = rough >= 0 and shares[strongest] > 0.6
    surface = _STRIPES[strongest] if striped else ("smooth", "", "rough")[rough + 1]
    return ", ".join(w for w in (painted, surface) if w)


_HUES = ((20, "red"), (45, "orange"), (70, "yellow"), (170, "green"), (260, "blue"), (330, "purple"), (361, "red"))
_STRIPES = ("upright stripes", "slanting stripes", "level stripes", "slanting stripes")
"""By the direction of the slope, across which stripes run."""


def _sound(band: Floats, loud: int, moving: int) -> str:
    middle, extent = float(band[0]), float(band[1])
    # A part that spans every band has a spread of 1/√12 of them.
    where = "" if extent > 0.25 else "low band" if middle < 1 / 3 else "high band" if middle > 2 / 3 else "middle band"
    return ", ".join(w for w in (where, ("quiet", "", "loud")[loud + 1], ("steady", "", "changing")[moving + 1]) if w)
