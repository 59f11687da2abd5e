"""A lab of sounds: how much of a tone is there?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import DifferentiableModel
from whytrust.core import Floats, generator
from whytrust.domains.audio import AudioParts
from whytrust.lab.bench import Changed, Planted, behind, layered, shown_and_hidden, stepped
from whytrust.models.whitebox import ToneModel
from whytrust.question import Question

RATE = 2000
STRETCHES = 16
SECONDS = 1.6
CALL, BEEP, HUM = 250.0, 700.0, 50.0
"""Hertz of the call that people listen for, of the beep that somebody left in the recordings, and of the mains."""


@dataclass(frozen=True)
class Beeps:
    """Noise with calls of one pitch in some stretches and beeps of another in others; the model hears one of the two.

    "calls" hears the calls, which people would mark; "planted" hears the beeps. With `shared` a hum that is everywhere, and
    louder in places, raises both classes alike, and no decision hangs on it.
    """

    kind: Literal["calls", "planted"] = "calls"
    shared: bool = False
    seed: int = 0
    exact: ClassVar[bool] = True
    domain: ClassVar[str] = "audio"

    @property
    def name(self) -> str:
        """What it is called."""
        return f"sounds/{self.kind}{'+hum' * self.shared}"

    @property
    def about(self) -> str:
        """What the model goes by."""
        return {"calls": f"how much of a call at {CALL:g} Hz there is",
                "planted": f"how much of a beep at {BEEP:g} Hz there is, beside calls that it does not hear"}[self.kind] + (
                    "; most of all, in both classes alike, a hum" * self.shared)

    @property
    def expected(self) -> bool:
        """People mark calls, and not beeps."""
        return self.kind == "calls" and not self.shared

    @cached_property
    def white_box(self) -> ToneModel:
        """The model as a formula."""
        stretch = round(SECONDS * RATE / STRETCHES)
        hertz = (CALL if self.kind == "calls" else BEEP) + 40.0 * self.seed
        return ToneModel(RATE, hertz, stretch, 0.2, 4.0, ToneModel(RATE, HUM, stretch, 0.5) if self.shared else None)

    @cached_property
    def model(self) -> DifferentiableModel:
        """The model itself."""
        return DifferentiableModel(self.white_box, classes=("nothing", "heard"), name=self.name)

    @property
    def baselines(self) -> tuple[str, ...]:
        """All of a sound's."""
        return ("zeros", "mean", "min", "noise")

    def planted(self, case: int, cut: Any = None, baseline: str | None = None, seed: int = 0) -> Planted:
        """One sound; hidden stretches are silent."""
        sound, heard = self._drawn(generator(seed, "sound", case))
        parts = behind(self._cut(sound, cut), baseline, "zeros", case, seed)
        target = int(self.model(sound[None])[0].argmax())
        return Planted(parts, target, heard)

    def changed(self, case: int, cut: Any = None, seed: int = 0) -> Changed | None:
        """The sound after signed steps up the gradient, as the attacks on sounds take them."""
        sound, _ = self._drawn(generator(seed, "sound", case))
        changed = stepped(self.model, sound, 0.02, -np.inf, np.inf)
        return None if changed is None else Changed(layered(self._cut(changed, cut), "zeros"), sound)

    @staticmethod
    def _cut(sound: Floats, cut: Any) -> AudioParts:
        parts = AudioParts.cut(sound, f"time:{STRETCHES}" if cut is None else cut, rate=RATE)
        if len(parts.names) != STRETCHES:
            raise ValueError(f"the truth of these sounds is known for time:{STRETCHES}, got {cut!r}")
        return parts

    def truth(self, question: Question, shown: float = 0.5) -> Floats:
        """By the formula, stretch by stretch."""
        white_box: Any = question.model.function
        return np.asarray(white_box.contributions(*shown_and_hidden(question), question.target))

    def _drawn(self, rng: np.random.Generator) -> tuple[Floats, NDArray[np.bool_]]:
        """(sound, where calls are): noise, with calls and beeps in stretches of their own."""
        stretch = self.white_box.stretch
        sound, heard = rng.normal(0, 0.1, STRETCHES * stretch), np.zeros(STRETCHES * stretch, bool)
        times, places = np.arange(stretch) / RATE, rng.permutation(STRETCHES)
        for hertz, chosen in ((CALL, places[:4]), (BEEP, places[4:8]), (HUM, places[8:12])):
            for place, loud in zip(chosen, rng.uniform(0.2, 1.0, len(chosen)), strict=True):
                where = slice(place * stretch, (place + 1) * stretch)
                sound[where] += loud * np.sin(2 * np.pi * hertz * times + rng.uniform(0, 2 * np.pi))
                heard[where] |= hertz == CALL
        return sound, heard
