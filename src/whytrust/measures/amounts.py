"""Metrics that take scores for amounts: do they add up to what the model does when parts are hidden?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whytrust.core import Floats, Masks
from whytrust.measures.flipping import check_whole
from whytrust.measures.judged import About, Judged


def hidden_sets(d: int, samples: int, share: float, rng: np.random.Generator) -> Masks:
    """So many random sets of a share of the parts, at least one and never all, unless there is but one; true where hidden."""
    size = min(max(round(share * d), 1), max(d - 1, 1))
    return np.asarray(np.argsort(rng.random((samples, d)), axis=1).argsort(axis=1) < size)


@dataclass(frozen=True)
class Infidelity:
    """How far is the sum of the scores of hidden parts from the fall of the target's score? (Yeh et al. 2019)

    The mean square over random sets of a `share` of the parts; 0 is best. The scores' unit counts: what is twice too large is
    wrong. With `scaled` it does not: the scores are first multiplied by what fits best, 0 or more, as the authors do for a
    ranking of explainers, which makes the scores 0 as good as any that say nothing. The square makes a few large falls decide.
    """

    samples: int = 200
    share: float = 0.25
    scaled: bool = False

    def __post_init__(self) -> None:
        """Refuse what are no sets."""
        check_whole("samples", self.samples)
        check_share(self.share)

    @property
    def about(self) -> About:
        """What it is."""
        return About("infidelity" + "/scaled" * self.scaled, "how far the scores of hidden parts are from the fall of the "
                     "target's score, squared" + ", after the best scaling" * self.scaled, False, ("contribution",),
                     "performance", "faithfulness", "Yeh et al. 2019", amounts=not self.scaled, within=(0.0, None),
                     of_probability=(0.0, 1.0) if self.scaled else None, shown=1 - self.share)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The mean square."""
        said, fell = _said_and_fell(judged, self.samples, self.share, rng)
        if self.scaled:
            said = said * max(float(said @ fell) / max(float(said @ said), 1e-300), 0.0)
        return float(np.mean((said - fell) ** 2))


@dataclass(frozen=True)
class FaithfulnessCorrelation:
    """Does the target's score fall more where the hidden parts have larger scores? (Bhatt et al. 2020)

    Pearson's correlation, over random sets of a `share` of the parts, of the sum of their scores and the fall. Units do not
    count. Not defined where all sums, or all falls, are equal.
    """

    samples: int = 200
    share: float = 0.25

    @property
    def about(self) -> About:
        """What it is."""
        return About("faithfulness_correlation", "the correlation of the scores of hidden parts with the fall of the target's "
                     "score", True, ("contribution",), "performance", "faithfulness", "Bhatt et al. 2020", within=(-1.0, 1.0),
                     shown=1 - self.share)

    def __post_init__(self) -> None:
        """Refuse what are no sets."""
        check_whole("samples", self.samples)
        check_share(self.share)

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """From -1 to 1."""
        said, fell = _said_and_fell(judged, self.samples, self.share, rng)
        return pearson(said, fell)


@dataclass(frozen=True)
class Completeness:
    """Do the scores add up to what all parts together make of the target's score? (Sundararajan et al. 2017)

    The size of what is missing or too much, beside that fall where `relative`; 0 is best. It looks at the sum alone: any scores
    become complete by adding the same to each.
    """

    relative: bool = True

    def __post_init__(self) -> None:
        """Refuse what is no yes or no."""
        if not isinstance(self.relative, bool):
            raise ValueError(f"relative must be True or False, got {self.relative!r}")

    about: ClassVar[About] = About(
        "completeness", "how far the sum of all scores is from what all parts together make of the target's score", False,
        ("contribution",), "performance", "faithfulness", "Sundararajan et al. 2017", amounts=True, within=(0.0, None))

    def __call__(self, judged: Judged, rng: np.random.Generator) -> float:
        """The gap; relative to no fall at all it is not defined."""
        fall = float(judged.drops(np.zeros((1, judged.d), bool), rng)[0])
        gap = abs(float(judged.scores.sum()) - fall)
        if not self.relative:
            return gap
        return gap / abs(fall) if abs(fall) > 1e-12 else math.nan


def pearson(first: Floats, second: Floats) -> float:
    """The correlation; NaN where one of the two does not vary beyond its rounding."""
    one, other = (values - values.mean() for values in (first, second))
    sizes = [float(np.linalg.norm(values)) for values in (one, other)]
    least = [1e-12 * max(float(np.abs(values).max(initial=0.0)), 1e-300) * math.sqrt(len(values)) for values in (first, second)]
    if sizes[0] <= least[0] or sizes[1] <= least[1]:
        return math.nan
    return float(np.clip(one @ other / (sizes[0] * sizes[1]), -1, 1))


def _said_and_fell(judged: Judged, samples: int, share: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """For random sets of hidden parts, the sum of their scores and the fall of the target's score."""
    hidden = hidden_sets(judged.d, samples, share, rng)
    return np.asarray(hidden @ judged.scores), judged.drops(~hidden, rng)


def check_share(share: float) -> None:
    """Refuse what is no share of the parts."""
    if not 0 < share < 1:
        raise ValueError(f"share must be the share of parts that are hidden at once, above 0 and below 1, got {share!r}")
