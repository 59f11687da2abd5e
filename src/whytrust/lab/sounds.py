"""A lab of sounds: how much of a tone is there?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import Parts, generator
from whytrust.domains.audio import AudioParts
from whytrust.lab.arrays import behind
from whytrust.lab.bench import Planted
from whytrust.models.whitebox import ToneModel

RATE = 2000
STRETCHES = 16
SECONDS = 1.6
CALL, BEEP = 250.0, 700.0
"""Hertz of the call that people listen for, and of the beep that somebody left in the recordings."""


@dataclass(frozen=True)
class Beeps:
    """Noise with calls of one pitch in some stretches and beeps of another in others; the model hears one of the two.

    "calls" hears the calls, which people would mark; "planted" hears the beeps.
    """

    kind: Literal["calls", "planted"] = "calls"
    domain: str = "audio"

    @property
    def name(self) -> str:
        """What it is called."""
        return f"sounds/{self.kind}"

    @property
    def about(self) -> str:
        """What the model goes by."""
        return {"calls": f"how much of a call at {CALL:g} Hz there is",
                "planted": f"how much of a beep at {BEEP:g} Hz there is, beside calls that it does not hear"}[self.kind]

    @property
    def expected(self) -> bool:
        """People mark calls, and not beeps."""
        return self.kind == "calls"

    @cached_property
    def white_box(self) -> ToneModel:
        """The model as a formula."""
        return ToneModel(RATE, CALL if self.kind == "calls" else BEEP, round(SECONDS * RATE / STRETCHES), 0.2, 4.0)

    @cached_property
    def model(self) -> CheckedModel:
        """The model itself."""
        return DifferentiableModel(self.white_box, classes=("nothing", "heard"), name=self.name)

    def planted(self, case: int, cut: Any = None, seed: int = 0) -> Planted:
        """One sound; hidden stretches are silent."""
        rng = generator(seed, "sound", case)
        sound = rng.normal(0, 0.1, round(SECONDS * RATE))
        stretch = self.white_box.stretch
        times = np.arange(stretch) / RATE
        heard = np.zeros(len(sound), bool)
        places = rng.permutation(STRETCHES)
        for hertz, chosen in ((CALL, places[:4]), (BEEP, places[4:8])):
            for place, loud in zip(chosen, rng.uniform(0.2, 1.0, len(chosen)), strict=True):
                where = slice(place * stretch, (place + 1) * stretch)
                sound[where] += loud * np.sin(2 * np.pi * hertz * times + rng.uniform(0, 2 * np.pi))
                heard[where] |= hertz == CALL
        parts = AudioParts.cut(sound, f"time:{STRETCHES}" if cut is None else cut, fill=0.0, rate=RATE)
        target = int(self.model(sound[None])[0].argmax())
        sign = 0.5 if target == 1 else -0.5
        truth = sign * self.white_box.gain * self.white_box.energies(sound[None])[0]
        if len(truth) != len(parts.names):
            raise ValueError(f"the truth of these sounds is known for time:{STRETCHES}, got {cut!r}")
        weights = np.array([[1.0, 0.0] if target == 0 else [0.0, 1.0]])
        slopes = self.white_box.pullback(sound[None])[1](weights)[0]
        return Planted(parts, target, truth, parts.pool(slopes, "sum"), heard)

    def hidden_otherwise(self, planted: Planted, baseline: str, seed: int = 0) -> Parts:
        """The same stretches behind another baseline."""
        return behind(planted.parts, baseline, seed)
