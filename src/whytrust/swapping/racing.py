"""Candidates that race: all are explained from a few samples, those clearly behind are given up, the others go on."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from whytrust.swapping.victims import Attribution

Runner = Callable[[Sequence[float]], Iterator[Attribution]]
"""From growing shares of the samples to explanations from them."""


@dataclass(frozen=True)
class Racing:
    """Which candidate comes out furthest, without asking everything about all of them?

    After each share of the samples those go on that are among the best `keep` of all who began. All see the same masks, so
    that what noise there is moves them alike. It may give up the one that would have won: by the distance of scores hardly
    ever, by centres of mass, which jump where scores nearly cancel out, now and then.
    """

    shares: tuple[float, ...] = (0.2, 0.4, 0.75)
    keep: tuple[float, ...] = (0.8, 0.5, 0.4)
    least: int = 8  # that go on in any case

    def __post_init__(self) -> None:
        """Refuse what is no race."""
        rising = all(a < b for a, b in zip((0.0, *self.shares), (*self.shares, 1.0), strict=True))
        if len(self.shares) != len(self.keep) or not rising or not all(0 < one <= 1 for one in self.keep) or self.least < 1:
            raise ValueError("a race must have rising shares of the samples between 0 and 1, for each the share of candidates "
                             f"that go on, and at least one that does, got {self}")

    def __call__(self, runners: Sequence[Runner], original: Runner,
                 objective: Callable[[Attribution, Attribution], float]) -> list[Attribution | None]:
        """What was said at last of each; None of those that were given up.

        Each is held against the original from as many samples. Where an explainer cannot say anything early, all go on.
        """
        running, before = {i: runner(self.shares) for i, runner in enumerate(runners)}, list(original(self.shares))
        if len(before) <= len(self.keep):
            return [list(one)[-1] for one in running.values()]
        for keep, then in zip(self.keep, before, strict=False):
            now = {i: objective(then, next(one)) for i, one in running.items()}
            most = max(math.ceil(keep * len(runners)), self.least)
            order = sorted(now, key=lambda i: (-math.inf if math.isnan(now[i]) else now[i], -i), reverse=True)
            running = {i: running[i] for i in sorted(order[:most])}
        said = {i: next(one) for i, one in running.items()}
        return [said.get(i) for i in range(len(runners))]
