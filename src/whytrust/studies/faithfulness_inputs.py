"""Inputs of the faithfulness experiment, cut so that it can be known what a model uses of them: words, columns or places."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import whytrust.inputs as reading
from whytrust.checked import CheckedModel
from whytrust.core import Parts, need
from whytrust.studies.data import Data, Item

GRID, SLICES = "grid:4x4", "time:16"
SHARE = 4
"""One in so many parts may be named at most."""
HARDLY_HIDDEN = ("segment_mean", "noise")
"""Fills under which a mean does not change, or changes by chance."""


def at_most(features: int, d: int) -> int:
    """How many of d parts an explanation may name."""
    return min(features, max(d // SHARE, 1))


def cut(data: Data, item: Item, parts: Any, model: CheckedModel, of_parts: Mapping[str, Any]) -> Parts:
    """The parts of one input."""
    return reading.cut(data.read(item), parts, model.layout, dict(of_parts), model.reads)


def table(rows: Sequence[Any]) -> Any:
    """Rows as one table."""
    if isinstance(rows[0], dict) or (hasattr(rows[0], "index") and hasattr(rows[0], "iloc")):
        return need("pandas", "tables").DataFrame(list(rows)).infer_objects().reset_index(drop=True)
    return np.stack([np.asarray(row) for row in rows])


def first_of(data: Data) -> Any:
    """An input that can be read, to see what inputs are."""
    for item in data.items:
        try:
            return data.read(item)
        except (ValueError, OSError):  # it will be told of with the others
            continue
    return data.read(data.items[0])


def domain_of(first: Any, parts: Any, of_parts: Mapping[str, Any]) -> str:
    """Of which domain inputs are; short arrays are rows, for here the inputs themselves can be their background."""
    row = isinstance(first, dict) or (not isinstance(first, str | os.PathLike) and np.ndim(first) == 1
                                      and np.size(first) < reading.WHOLE_SOUND)
    return "tabular" if parts == "columns" or (parts is None and row) else reading.domain_of(first, parts, dict(of_parts))


def placed(domain: str, parts: Any, of_parts: dict[str, Any], axes: int) -> tuple[Any, dict[str, Any], list[str]]:
    """Parts whose truth can be known: places that all images or sounds have, and a fill that changes features."""
    if domain in ("text", "tabular"):
        if not isinstance(parts, str | None):
            raise TypeError(f"parts of {domain} inputs must be named here, as in {' or '.join(reading.SPECS[domain])}, got "
                            f"{type(parts).__name__}; leave it out")
        return parts, of_parts, []
    kinds, usual = (("grid",), GRID) if domain == "image" else (("time", "freq", "tf"), SLICES)
    told = []
    if not isinstance(parts, str) or parts.partition(":")[0] not in kinds:
        if parts is not None or domain == "image":
            given = parts if isinstance(parts, str) else "the usual super-pixels" if parts is None else "parts cut by hand"
            told.append(f"Inputs are cut by {usual} and not by {given}: what a model uses must be known by its place, the same "
                        "in every input.")
        parts = usual
    fill = of_parts.get("fill")
    if domain == "image" and (fill is None or (isinstance(fill, str) and fill in HARDLY_HIDDEN)):
        told.append(f"Hidden parts are black and not {fill or 'of their mean colour, as usual'}: the stand-ins look at mean "
                    "brightness, which that would not change.")
        of_parts = {**of_parts, "fill": "black"}
    if domain == "audio" and axes == 2 and fill is None:
        told.append("Hidden parts take the least value of their spectrogram and not its mean, as usual: the stand-ins look at "
                    "the mean of each part, which that would hardly change.")
        of_parts = {**of_parts, "fill": "min"}
    if domain == "audio" and axes == 1 and parts.partition(":")[0] != "time":
        told.append("Where waveforms are cut in frequency, windows overlap: hiding a part is heard in the next ones too, and "
                    "an explainer that names those is not all wrong.")
    return parts, of_parts, told
