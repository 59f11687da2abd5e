"""How the pieces of a word become one score (Sinha et al. 2021, Figure 4): their mean, or the one of largest size.

Where pieces of one word speak for and against, a mean waters them down; the largest one hides that they disagree.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from whytrust.checked import CheckedModel
from whytrust.core import generator
from whytrust.explainers.gradients import Pooled
from whytrust.swapping.asking import Asking, read_by

FILE = "merging.json"
LOOKED_AT, KEPT, MOST_WORDS = 20, 2, 35


@dataclass(frozen=True)
class Merged:
    """A text with a score a word, the pieces of words merged in two ways."""

    model: str
    label: str
    text: str
    spans: tuple[tuple[int, int], ...]
    mean: tuple[float, ...]
    largest: tuple[float, ...]
    pieces: dict[str, list[str]]

    @property
    def apart(self) -> float:
        """How far the two ways differ, in parts of the largest score."""
        sizes = np.abs(self.largest)
        return float(np.abs(np.subtract(self.mean, self.largest)).max() / (sizes.max() or 1.0))


def merged(model: CheckedModel, explainer: Pooled, text: str, seed: int = 0) -> Merged | None:
    """One text; None where every word is one piece."""
    ask, read = Asking(model), read_by(model, text)
    scores = np.asarray(ask([read.text])[0])
    label = ask.label(scores)
    values, spans, _ = explainer.of_tokens(ask.question(read, label, scores), generator(seed, "merging"))
    means, largest, pieces = list[float](), list[float](), dict[str, list[str]]()
    for word, (start, end) in zip(read.words, read.spans, strict=True):
        own = [(float(value), span) for value, span in zip(values, spans, strict=True)
               if span is not None and span[0] < end and span[1] > start]
        found = [value for value, _ in own] or [0.0]
        means.append(float(np.mean(found)))
        largest.append(max(found, key=abs))
        if len(own) > 1:
            pieces[word] = [read.text[max(a, start):min(b, end)] for _, (a, b) in own]
    if not pieces:
        return None
    return Merged(model.name, model.class_name(label, len(scores)), read.text, read.spans, tuple(means), tuple(largest), pieces)


def examples(model: CheckedModel, explainer: Pooled, texts: Sequence[str], seed: int = 0) -> list[Merged]:
    """Of the first short texts that have words of several pieces, those where it matters most how these are merged."""
    short = [text for text in texts if len(text.split()) <= MOST_WORDS]
    found = [one for text in short[:LOOKED_AT] if (one := merged(model, explainer, text, seed)) is not None]
    return sorted(found, key=lambda one: -one.apart)[:KEPT]


def write(found: Sequence[Merged], folder: Path) -> None:
    """Keep examples beside the runs of their model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps([asdict(one) for one in found]), encoding="utf-8")


def read(folder: Path) -> list[Merged]:
    """The examples that are kept in a model's folder; none where there is no such file."""
    if not (folder / FILE).is_file():
        return []
    held: list[dict[str, Any]] = json.loads((folder / FILE).read_text(encoding="utf-8"))
    return [Merged(one["model"], one["label"], one["text"], tuple((int(a), int(b)) for a, b in one["spans"]),
                   tuple(one["mean"]), tuple(one["largest"]), one["pieces"]) for one in held]
