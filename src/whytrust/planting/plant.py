"""What every artefact can do, and which of some inputs get one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Parts

Which = NDArray[np.bool_]
HELD = 0.25
"""A part holds an artefact that has at least this share of its area, or energy, in it …"""
FILLED = 0.5
"""… and so does a part of which at least this share is the artefact's."""


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
        same = [i for i, one in enumerate(known) if one == label]
        which[rng.permutation(same)[:round(share * len(same))]] = True
    if hasattr(items, "columns"):
        out, marked = plant.without(items), plant.into(items, rng)
        out[which] = marked[which]
        return out, which
    made = [plant.into(item, rng) if chosen else plant.without(item) for item, chosen in zip(items, which, strict=True)]
    if not isinstance(items, np.ndarray):
        return made, which
    return np.array(made, dtype=items.dtype if items.dtype.kind not in "US" else None), which


def holding(where: Which, labels: NDArray[Any], d: int) -> Which:
    """Which of d parts hold an area: those with a good share of it, and those that mostly consist of it."""
    area = np.bincount(labels[where].ravel(), minlength=d)
    whole = np.maximum(np.bincount(labels.ravel(), minlength=d), 1)
    return np.asarray((area > 0) & ((area >= HELD * max(area.sum(), 1)) | (area >= FILLED * whole)))


def own(parts: Parts, what: str) -> Any:
    """What these parts have of the input itself, or one clear error."""
    found = getattr(parts, what, None)
    if found is None:
        raise TypeError(f"an artefact must be looked for in parts of its own domain, got {type(parts).__name__}, which have no "
                        f"{what}")
    return found
