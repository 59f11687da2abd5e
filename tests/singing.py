"""A detector of singing whose reasons are known: it hears the loudness of some bands around the middle frame, and no more."""

from dataclasses import dataclass, field

import numpy as np
import torch

from whytrust.models.detector import Detector
from whytrust.models.songs import BANDS, FRAMES, REACH, Song, Songs

BAND_RANGE, FRAME_RANGE = slice(24, 36), slice(50, 65)
CAUSE = 2 * 4 + 1
"""The part of a 5 × 4 cut that holds all that matters."""


class BandNet(torch.nn.Module):
    """logit = gain · (mean log-mel of 12 bands in the 15 middle frames − level)."""

    def __init__(self, gain=4.0, level=-3.7):
        super().__init__()
        self.gain, self.level = torch.nn.Parameter(torch.tensor(gain)), level

    def forward(self, log_mel):
        heard = log_mel[:, FRAME_RANGE, BAND_RANGE].mean(dim=(1, 2))
        return self.gain * (heard - self.level)[:, None]

    def song(self, log_mel):
        loud = log_mel[:, :, BAND_RANGE].mean(dim=2)
        frames = loud.shape[1] - FRAMES + 1
        return self.gain * (torch.stack([loud[:, i:i + frames] for i in range(FRAME_RANGE.start, FRAME_RANGE.stop)]).mean(dim=0)
                            - self.level)


@dataclass(frozen=True, eq=False)
class KnownDetector(Detector):
    """BandNet as a detector."""

    net: torch.nn.Module = field(default_factory=BandNet)
    threshold: float = 0.51
    facts: dict = field(default_factory=dict)


def song(number, seconds=4.0):
    """Noise, in which a tone within the detector's bands comes and goes."""
    rng = np.random.default_rng(number)
    time = np.arange(int(seconds * 22050)) / 22050
    there = np.sin(2 * np.pi * (0.4 + 0.05 * number) * time) > 0
    wave = 0.001 * rng.standard_normal(len(time)) + 0.01 * there * np.sin(2 * np.pi * 1200 * time)
    return Song(f"song {number}", wave.astype(np.float32), ((0.0, 1.0),))


def songs(count=3, seconds=4.0):
    """Songs that differ."""
    return Songs(tuple(f"song {i}" for i in range(count)), lambda i: song(i, seconds))


__all__ = ["BANDS", "BAND_RANGE", "CAUSE", "FRAMES", "FRAME_RANGE", "REACH", "BandNet", "KnownDetector", "song", "songs"]
