"""Candidates that race: a few answers of each say how it would end, those clearly behind are given up, the others go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from whytrust.core import Floats, Masks, generator
from whytrust.question import Question
from whytrust.swapping.sharing import imagined, together

RIDGE = 3.0
"""How hard the guess is held back where few answers are known; masks are 0 or 1."""
WIDTH = 0.25
"""How fast masks count for less the fewer words they show: as in LIME's kernel for texts."""


@dataclass(frozen=True)
class Racing:
    """Which candidate comes out furthest, without asking everything about all of them?

    A candidate differs from the text before it in one word, and that text has answered every mask. How far the candidate's
    answers differ is seen on a share of the masks, and on the whole text, and guessed for the others by the words they show.
    So each can be explained early as if all were known; after each share those go on that are among the best `keep` of all who
    began. Who is left at the end is asked everything. It may give up the one that would have won.
    """

    shares: tuple[float, ...] = (0.3, 0.6)
    keep: tuple[float, ...] = (0.5, 0.25)
    least: int = 6  # that go on in any case

    def __post_init__(self) -> None:
        """Refuse what is no race."""
        rising = all(a < b for a, b in zip((0.0, *self.shares), (*self.shares, 1.0), strict=True))
        if len(self.shares) != len(self.keep) or not rising or not all(0 < one <= 1 for one in self.keep) or self.least < 1:
            raise ValueError("a race must have rising shares of the samples between 0 and 1, for each the share of candidates "
                             f"that go on, and at least one that does, got {self}")

    def __call__(self, questions: Sequence[Question], parent: Question, place: int, masks: Masks,
                 far: Callable[[Question], float]) -> list[int]:
        """Which of the questions are left; they differ from the parent at `place`, and all will be asked these masks.

        `far` is how far the explanation of a question has moved.
        """
        shown = masks[masks[:, place]]  # the others show the parent's text, and what it says of them is known
        shown = shown[generator(0, "race").permutation(len(shown))]  # an explainer may go from small masks to large ones
        if not len(shown):
            return list(range(len(questions)))
        together(questions, masks[~masks[:, place]])  # where nothing was handed on
        before = parent.outputs(shown)[:, 0]
        running = list(range(len(questions)))
        for share, keep in zip(self.shares, self.keep, strict=True):
            most, asked = max(math.ceil(keep * len(questions)), self.least), math.ceil(share * len(shown))
            if most >= len(running):
                continue
            together([questions[i] for i in running], shown[:asked])
            moved = np.array([questions[i].outputs(shown[:asked])[:, 0] - before[:asked] for i in running])
            whole = np.array([questions[i].original[parent.target] for i in running]) - parent.original[parent.target]
            guessed = before[asked:] + _guessed(shown, moved, whole)
            now = [far(imagined(questions[i], shown[asked:], one)) for i, one in zip(running, guessed, strict=True)]
            order = sorted(range(len(running)), key=lambda k: (-math.inf if math.isnan(now[k]) else now[k], -k), reverse=True)
            running = sorted(running[k] for k in order[:most])
        return running


def _guessed(masks: Masks, moved: Floats, whole: Floats) -> Floats:
    """How far answers to the later masks would move, from how far those to the first did, and to the whole text.

    By ridge regression on the words that are shown and on their share, in which texts nearly whole count most: explainers
    weigh them so, and many models divide by a text's length in some way.
    """
    asked = moved.shape[1]
    known = np.vstack([masks[:asked], np.ones((1, masks.shape[1]), bool)])
    rows, rest, found = _features(known), _features(masks[asked:]), np.column_stack([moved, whole])
    weights = np.exp(-0.5 * ((1 - np.sqrt(known.mean(axis=1))) / WIDTH) ** 2)
    centre, middle = weights @ rows / weights.sum(), (found @ weights / weights.sum())[:, None]
    rows, rest = rows - centre, rest - centre
    weighted = rows.T * weights
    slopes = np.linalg.solve(weighted @ rows + RIDGE * weights.mean() * np.eye(rows.shape[1]), weighted @ (found - middle).T)
    return np.asarray(middle + (rest @ slopes).T)


def _features(masks: Masks) -> Floats:
    """Which words are shown, and two curves of their share, as large as all words together."""
    share = masks.mean(axis=1, keepdims=True)
    curves = np.hstack([share**2, 1 / np.sqrt(np.maximum(share, 0.05))])
    return np.hstack([masks.astype(np.float64), math.sqrt(masks.shape[1]) * curves])
