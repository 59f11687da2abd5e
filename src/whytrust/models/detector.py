"""A trained singing-voice net with all that is needed to explain it: its threshold, its units, and excerpts of songs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust import files
from whytrust.models.hearing import Hearing
from whytrust.models.singing_voice import REMADE, SingingVoiceNet, load
from whytrust.models.songs import BANDS, CLASSES, FRAME_RATE, FRAMES, HOP, RATE, REACH, Song, edges_between


def _share(threshold: Any) -> float:
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise ValueError(f"its threshold must be a number between 0 and 1, got {threshold!r:.60}")
    return float(threshold)


def _frame(frames: int, at: float | None) -> int:
    return frames // 2 if at is None else round(at * FRAME_RATE)


@dataclass(frozen=True, eq=False)
class Detector:
    """Is somebody singing? A net, and the probability above which it says so."""

    net: SingingVoiceNet
    threshold: float
    facts: dict[str, Any] = field(default_factory=dict)  # what it was trained on, and how it did

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Detector:
        """From the file that `whytrust train singing-voice` writes."""
        net, facts = load(path)
        with files.telling(path, "a singing-voice detector", REMADE):
            return cls(net, _share(facts["threshold"]), facts)

    @cached_property
    def hearing(self) -> Hearing:
        """The net on whole songs."""
        return Hearing(self.net)

    @property
    def model_options(self) -> dict[str, Any]:
        """How wt.model is to read its answers."""
        return {"output": "logit", "threshold": self.threshold, "classes": list(CLASSES), "name": "singing-voice CNN"}

    @cached_property
    def explain_options(self) -> dict[str, Any]:
        """Parts as in Praher et al. (2021), with seconds and hertz."""
        hertz = self.hearing.front_end.coordinates(2, BANDS)[1]
        return {"parts": "tf:5x4", "hop_seconds": HOP / RATE, "band_edges_hz": edges_between(hertz)}

    def excerpt(self, wave: Any, at: float | None = None) -> NDArray[np.float32]:
        """(115, 80): the log-mel excerpt around a moment in seconds, by default the middle; all of it must lie in the song."""
        log_mel = self.hearing.log_mel(wave)
        frame = _frame(len(log_mel), at)
        if not REACH <= frame < len(log_mel) - REACH:
            raise ValueError(f"an excerpt is {FRAMES / FRAME_RATE:.2f} s long and must lie in the song: its middle must be "
                             f"between {REACH / FRAME_RATE:.2f} and {(len(log_mel) - REACH - 1) / FRAME_RATE:.2f} s, got "
                             f"{frame / FRAME_RATE:.2f}")
        return np.ascontiguousarray(log_mel[frame - REACH:frame + REACH + 1])

    def played(self, wave: Any, at: float | None = None) -> NDArray[np.float32]:
        """The samples of that excerpt, to listen to: those of its frames, half a hop before and behind each one's middle."""
        samples = np.asarray(wave, dtype=np.float32)
        start = (_frame(1 + len(samples) // HOP, at) - REACH) * HOP - HOP // 2
        return samples[max(start, 0):start + FRAMES * HOP]

    def examples(self, songs: Iterable[Song]) -> list[NDArray[np.float32]]:
        """Of each song the excerpt in which the net is surest of singing, then the one in which it is surest of none."""
        found = []
        for song in songs:
            inside = self.hearing.logits(song.wave)[REACH:-REACH]
            found += [self.excerpt(song.wave, (REACH + int(frame)) / FRAME_RATE)
                      for frame in (np.argmax(inside), np.argmin(inside))]
        return found
