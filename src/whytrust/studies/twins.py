"""How far does an explainer tell a trained net from its untrained twin, when both are right?

The twin was never trained, and inputs are enhanced until it is right (Wang & Wang 2022). Its explanation must follow the net:
like that of the same net on the input as it was, and unlike that of the trained net, though that gives the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from whytrust import stats
from whytrust.core import Floats
from whytrust.measures.agreement import rank_correlation

SETTINGS = ("raw", "enhanced", "trained")
"""The untrained twin on the input as it is, the same on the enhanced input, and the trained net on the input as it is."""
BLIND = 0.99
"""An explanation that is the same for a trained net and an untrained one, up to this correlation, does not see the net."""


def alike(scores: Mapping[str, Floats]) -> dict[str, float]:
    """Rank correlations of one explainer's scores in the three settings."""
    return {"trained": rank_correlation(scores["enhanced"], scores["trained"]),
            "raw": rank_correlation(scores["enhanced"], scores["raw"]),
            "nets": rank_correlation(scores["raw"], scores["trained"])}


@dataclass(frozen=True)
class Followed:
    """Of one explainer: how like its explanations of the enhanced twin are to the trained net's, and to the twin's own."""

    like_trained: stats.Rate | None
    like_untrained: stats.Rate | None
    nearer: stats.Difference  # on how many inputs it is more like the twin's own, less a half
    words: str


def followed(pairs: Sequence[Mapping[str, float]]) -> Followed:
    """What correlations of several inputs say together."""
    trained, raw, same = (np.array([pair[which] for pair in pairs]) for which in ("trained", "raw", "nets"))
    nearer = stats.paired((raw > trained).astype(float) + 0.5 * (raw == trained), np.full(len(pairs), 0.5))
    words = "undecided"
    if len(pairs) and float(np.mean(same)) > BLIND:
        words = "does not see the net"
    elif nearer.p <= stats.LEVEL:
        words = "follows the net" if nearer.value > 0 else "looks like the trained net's"
    return Followed(_mean(trained), _mean(raw), nearer, words)


def as_share(nearer: stats.Difference) -> str:
    """On how many inputs, beside a half, with its interval."""
    value, low, high = (100 * (0.5 + one) for one in (nearer.value, nearer.low, nearer.high))
    return f"{value:.0f} % ({max(low, 0):.0f} to {min(high, 100):.0f})"


def as_correlation(mean: stats.Rate | None) -> str:
    """A mean correlation with its interval; a dash where there is none."""
    return "–" if mean is None else f"{mean.value:.2f} ({mean.low:.2f} to {mean.high:.2f})"


def _mean(values: Floats) -> stats.Rate | None:
    return None if len(values) < 2 else stats.bounded(values, -1.0, 1.0)
