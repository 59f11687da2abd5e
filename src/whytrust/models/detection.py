"""From the probabilities of a singing-voice detector to its answers, and how often they are right (Praher et al. 2021, 4.2)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from whytrust.core import Floats
from whytrust.progress import CaseProgress

if TYPE_CHECKING:
    from whytrust.models.songs import Song

SMOOTHED = 56
"""Frames of the median filter: 0.8 s."""
THRESHOLDS: tuple[float, ...] = (1e-5, 1e-4, 1e-3, *(i / 100 for i in range(1, 100)), 1 - 1e-3, 1 - 1e-4, 1 - 1e-5)
Answers = NDArray[np.bool_]


def smoothed(probabilities: Floats) -> Floats:
    """The median of the 56 frames around each one, from 28 before it to 27 after it; the ends are held.

    Of an even number the upper one of the two middle values is taken. Who sings for less than 0.4 s is not heard any more.
    """
    if probabilities.ndim != 1 or not len(probabilities):
        raise ValueError(f"probabilities must be those of one song's frames, (frames,), got shape {probabilities.shape}")
    return np.asarray(ndimage.median_filter(probabilities, SMOOTHED, mode="nearest"))


def tuned_threshold(probabilities: Sequence[Floats], labels: Sequence[Answers]) -> float:
    """The threshold above which to say "sing", so that the most frames of all songs together are answered rightly.

    Of several that are equally good, the middle one of the longest row of neighbours (the lower of two middles, the first of
    two rows): the farther it is from where it errs, the better it bears other songs. Pass smoothed probabilities where answers
    are smoothed.
    """
    pooled, truth = _pooled(probabilities, labels)
    rows = np.array(THRESHOLDS)
    # In float32 a 0.51 is not the 0.51 of the list; all comparisons are in float64.
    right = [int(((pooled > threshold) == truth).sum()) for threshold in rows]
    places = [[i for i, _ in run] for best, run in groupby(enumerate(right), key=lambda one: one[1] == max(right)) if best]
    longest = max(places, key=len)
    return float(rows[longest[(len(longest) - 1) // 2]])


@dataclass(frozen=True)
class Performance:
    """How often the answers were right, as shares of the frames; NaN where there was nothing to judge.

    Errors in long songs weigh more, since frames are pooled. Precision and F1 change with the share of singing in the songs.
    """

    error: float
    recall: float  # of the frames with singing, those called so
    specificity: float  # of the frames without, those called so
    precision: float  # of the frames called singing, those with
    f1: float
    frames: int

    @classmethod
    def of(cls, answers: Answers, labels: Answers) -> Performance:
        """Compare answers with labels, frame by frame."""
        (given, true) = _pooled([answers], [labels])
        hits, false_alarms = int((given & true).sum()), int((given & ~true).sum())
        misses, silences = int((~given & true).sum()), int((~given & ~true).sum())
        return cls((false_alarms + misses) / len(true), _share(hits, hits + misses), _share(silences, silences + false_alarms),
                   _share(hits, hits + false_alarms), _share(2 * hits, 2 * hits + false_alarms + misses), len(true))

    def to_json(self) -> dict[str, float | None]:
        """Numbers by name; None where there was nothing to judge."""
        return {name: None if math.isnan(value) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Performance:
        """As `to_json` gave it."""
        numbers: dict[str, Any] = {name: math.nan if value is None else value for name, value in found.items()}
        return cls(**numbers)


MEASURES = tuple(one.name for one in fields(Performance) if one.name != "frames")


def over_seeds(runs: Sequence[Performance]) -> dict[str, tuple[float, float]]:
    """Mean and standard deviation (of a sample, n − 1) of each measure over runs; the deviation of one run is NaN."""
    if not runs:
        raise ValueError("runs must hold at least one performance, got none")
    found = {name: np.array([getattr(run, name) for run in runs]) for name in MEASURES}
    return {name: (float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else math.nan)
            for name, values in found.items()}


# --- a net on songs ---------------------------------------------------------------------------------------------------


def heard(net: Any, songs: Sequence[Song]) -> tuple[list[Floats], list[Answers]]:
    """(smoothed probabilities, labels) of each song, made one after another."""
    from whytrust.models.hearing import Hearing  # torch is not needed to judge probabilities

    hearing = Hearing(net)
    probabilities, labels = [], []
    progress = CaseProgress("listening to songs", len(songs))
    with progress:
        for number in range(len(songs)):
            song = songs[number]
            probabilities.append(smoothed(hearing.probabilities(song.wave)))
            labels.append(song.labels)
            progress.finished(1)
    return probabilities, labels


def tuned(net: Any, songs: Sequence[Song]) -> float:
    """The threshold that suits these songs best; tune on others than those that are trained or tested on."""
    return tuned_threshold(*heard(net, songs))


def evaluate(net: Any, songs: Sequence[Song], threshold: float) -> Performance:
    """How often is the net right on the frames of all songs, after smoothing and the threshold?"""
    return judged(*heard(net, songs), threshold)


def judged(probabilities: Sequence[Floats], labels: Sequence[Answers], threshold: float) -> Performance:
    """How often are probabilities above the threshold where somebody sings, over the frames of all songs?"""
    pooled, truth = _pooled(probabilities, labels)
    return Performance.of(pooled > threshold, truth)


def _pooled(values: Sequence[NDArray[Any]], labels: Sequence[Answers]) -> tuple[NDArray[Any], Answers]:
    """All songs one after another, or one clear error."""
    sizes: Mapping[str, list[tuple[int, ...]]] = {"values": [v.shape for v in values], "labels": [v.shape for v in labels]}
    if sizes["values"] != sizes["labels"] or not sum(len(v) for v in labels):
        raise ValueError(f"there must be one label for each frame of each song, and at least one frame; got {sizes['values']} "
                         f"values and {sizes['labels']} labels")
    pooled, truth = np.concatenate(values), np.concatenate(labels).astype(bool)
    if pooled.dtype.kind == "f" and not np.isfinite(pooled).all():
        raise ValueError("probabilities must be finite, got NaN or infinite ones; was the net trained?")
    return pooled.astype(np.float64) if pooled.dtype.kind == "f" else pooled.astype(bool), truth


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
