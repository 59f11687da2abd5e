"""Label-flipping word swaps after TextFooler (Jin et al. 2020): few words swapped until the model decides otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from whytrust.checked import CheckedModel
from whytrust.language.written import Candidates, Written
from whytrust.swapping.asking import Asking, OnCalls, Swap, importance, most_swaps, read_by
from whytrust.swapping.constraints import Constraint, by_cost, first_allowed, proposed


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
    limit, (cheap, costly) = most_swaps(original, most), by_cost(constraints)
    for place in importance(ask.question(original, label, scores)).tolist():
        if len(swaps) >= limit or reached != label:
            break
        words = proposed(candidates, cheap, original, current, place)
        if not words:
            continue
        answers = ask([current.swap(place, word).text for word in words])
        labels, scores_now = model.labels(answers), answers[:, label]
        flips, lower = np.flatnonzero(labels != label), np.flatnonzero((labels == label) & (scores_now < now))
        order = [*flips.tolist(), *lower[np.argsort(scores_now[lower], kind="stable")].tolist()]
        # Best first, so that a costly constraint is asked about few of them.
        word = first_allowed(costly, original, current, place, [words[i] for i in order])
        if word is None:
            continue
        best = words.index(word)
        swaps.append(Swap(place, current.words[place], word))
        current, now, reached = current.swap(place, word), float(scores_now[best]), int(labels[best])
    return Flipped(current, original, tuple(swaps), reached, label, now, float(scores[label]), ask.calls)
