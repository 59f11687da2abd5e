"""A detector of singing whose only reason is known, one segment of twenty, and songs for it: hums that get louder in a band."""

from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import numpy as np
import torch

from whytrust.models.detector import Detector
from whytrust.models.songs import FRAMES, RATE, Song, Songs

REASON = 9
"""The segment that the detector listens to: the middle one in time, the second lowest in frequency."""
LOUD, QUIET = 0.02, 0.002
SECONDS = 4
"""Of which those from 1.8 to 3.2 are sung."""


class Listening(torch.nn.Module):
    """A logit that rises with the mean of the log-mel in one segment of the excerpt, and with nothing else."""

    def forward(self, log_mel):
        return self.song(log_mel)

    def song(self, log_mel):
        heard = log_mel[..., 20:40].mean(dim=-1)
        return 3 * (torch.nn.functional.avg_pool1d(heard, 23, 1)[..., 46:46 + log_mel.shape[1] - FRAMES + 1] + 2.5)


@dataclass(frozen=True, eq=False)
class WhiteBox(Detector):
    """Listening as a detector."""

    net: torch.nn.Module = field(default_factory=Listening)
    threshold: float = 0.5
    facts: dict = field(default_factory=lambda: {"data": "nothing at all", "test": {"error": 0.125, "recall": 0.9, "specificity": 0.8}})


def hum(number):
    """Noise, with a band of louder noise in the middle: that is what singing is here."""
    rng = np.random.default_rng(number)
    time = np.arange(SECONDS * RATE) / RATE
    noise = rng.standard_normal(len(time))
    spectrum, hertz = np.fft.rfft(noise), np.fft.rfftfreq(len(time), 1 / RATE)
    band = np.fft.irfft(np.where((hertz > 400) & (hertz < 1600), spectrum, 0), len(time))
    sung = (time > 1.8) & (time < 3.2)
    return Song(f"hum {number}", (QUIET * noise + np.where(sung, LOUD * band / band.std(), 0)).astype(np.float32), ((1.8, 3.2),))


def hums(*numbers):
    return Songs(tuple(f"hum {n}" for n in numbers), partial(_nth, numbers))


def _nth(numbers, index):
    return hum(numbers[index])


def demo(*numbers):
    """As the embedded demo of this name, in no time."""
    return lambda: SimpleNamespace(detector=WhiteBox(), songs=hums(*numbers))
