"""Label-flipping word swaps after TextFooler (Jin et al. 2020): few words swapped until the model decides otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whytrust.checked import CheckedModel
from whytrust.language.written import Candidates, Written
from whytrust.swapping.asking import Asking, OnCalls, Swap, importance, most_swaps, read_by
from whytrust.swapping.constraints import Constraint, proposed


@dataclass(frozen=True)
class Flipped:
    """A text whose words were swapped to change the label, and whether that worked; scores are the clean label's."""

    text: Written
    original: Written
    swaps: tuple[Swap, ...]
    label: int
    clean_label: int
    score: float
    clean_score: float
    calls: int

    @property
    def flipped(self) -> bool:
        """Whether the model decides otherwise."""
        return self.label != self.clean_label


def flip(model: CheckedModel, text: str, candidates: Candidates, constraints: Sequence[Constraint], most: float = 0.5,
         on_calls: OnCalls | None = None) -> Flipped:
    """Swap words, those first without which the label's score falls most, until the label is another one.

    At each place the candidate that lowers the label's score most is taken, where any does; of several that flip the label,
    the one that the source names first. At most a share `most` of the words is swapped; what the model does not read is left
    out.
    """
    original, ask = read_by(model, text), Asking(model, on_calls)
    scores = ask([original.text])[0]
    label = ask.label(scores)
    current, now, reached, swaps = original, float(scores[label]), label, list[Swap]()
    limit = most_swaps(original, most)
    for place in importance(ask.question(original, label, scores)).tolist():
        if len(swaps) >= limit or reached != label:
            break
        words = proposed(candidates, constraints, original, current, place)
        if not words:
            continue
        answers = ask([current.swap(place, word).text for word in words])
        labels = model.labels(answers)
        flips = np.flatnonzero(labels != label)
        best = int(flips[0]) if len(flips) else int(np.argmin(answers[:, label]))
        if not len(flips) and answers[best, label] >= now:
            continue
        swaps.append(Swap(place, current.words[place], words[best]))
        current, now, reached = current.swap(place, words[best]), float(answers[best, label]), int(labels[best])
    return Flipped(current, original, tuple(swaps), reached, label, now, float(scores[label]), ask.calls)
