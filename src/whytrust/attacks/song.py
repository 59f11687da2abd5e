"""One perturbation for a whole song: every frame's answer is to become the opposite of what it was (Praher et al. 2021)."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from whytrust.attacks.ball import Bounds, norms
from whytrust.attacks.carlini_wagner import CarliniWagner, adam
from whytrust.core import Floats, need

Song = NDArray[np.float32]
OnCalls = Callable[[int], None]


class Heard(Protocol):
    """A detector that answers for every frame of a song; `models.hearing.Hearing` is one."""

    def checked(self, song: Any) -> Song:
        """The song as an array, or one clear error."""
        ...

    def logits(self, song: Any) -> Floats:
        """(frames,)."""
        ...

    def vjp(self, song: Any, weights: Callable[[Floats, slice], Floats]) -> tuple[Floats, Song]:
        """(logits, gradient of Σ weight · logit with respect to the song)."""
        ...


@dataclass(frozen=True, eq=False)
class AttackedSong:
    """A song before and after; whether it worked is a question for each frame."""

    clean: Song
    adversarial: Song
    before: Floats  # (frames,) probabilities
    after: Floats
    threshold: float
    iterations: int
    floor: float | None = None  # the least value that was allowed

    def __repr__(self) -> str:
        """In a line."""
        return (f"<AttackedSong: {self.flipped.sum()} of {len(self.before)} frames turned in {self.iterations} steps, "
                f"{self.signal_to_noise:.1f} dB{self._at_floor}>")

    @property
    def _at_floor(self) -> str:
        return "" if self.at_floor is None else f", {100 * self.at_floor:.2g} % of its values moved to the floor {self.floor:g}"

    @property
    def sung(self) -> NDArray[np.bool_]:
        """(frames,): did the detector hear singing before?"""
        return np.asarray(self.before > self.threshold)

    @property
    def flipped(self) -> NDArray[np.bool_]:
        """(frames,): does it say the opposite now?"""
        return np.asarray((self.after > self.threshold) != self.sung)

    @property
    def signal_to_noise(self) -> float:
        """In decibels: how much stronger the song is than its perturbation; infinite where nothing changed."""
        change = self.adversarial.astype(np.float64) - self.clean
        noise = float(np.sum(change**2))
        return 10 * math.log10(float(np.sum(self.clean.astype(np.float64)**2)) / noise) if noise else math.inf

    @property
    def at_floor(self) -> float | None:
        """Share of the values that the attack moved down to the least allowed one; None where there is none."""
        if self.floor is None:
            return None
        return float(np.mean((self.adversarial <= self.floor) & (self.clean > self.floor)))

    def save(self, path: str | os.PathLike[str], rate: int = 22050) -> Path:
        """The attacked waveform as a WAV file of floats: 16 bits would round away a part of the perturbation."""
        if self.adversarial.ndim != 1:
            raise ValueError(f"a WAV file holds a waveform, got magnitudes {self.adversarial.shape}; make one of them with "
                             "Hearing.resynthesised first")
        place = Path(path)
        if place.suffix.lower() != ".wav":
            raise ValueError(f"the file must end in .wav, got {place.name!r}")
        need("soundfile", "audio").write(place, self.adversarial, rate, subtype="FLOAT")
        return place

    def facts(self) -> dict[str, Any]:
        """Numbers for a record."""
        linf, l2 = norms(self.clean, self.adversarial)
        return {"iterations": self.iterations, "linf": linf, "l2": l2, "signal_to_noise": self.signal_to_noise,
                "frames": len(self.before), "flipped": int(self.flipped.sum()),
                "sung": int(self.sung.sum()), "sung_flipped": int((self.sung & self.flipped).sum()),
                "at_floor": self.at_floor}


def attack_song(method: CarliniWagner, heard: Heard, song: Any, threshold: float = 0.5,
                on_calls: OnCalls | None = None) -> AttackedSong:
    """Move the whole song down Σδ² + alpha · mean surprise of its frames, until every frame has turned or steps run out.

    The mean is over all frames, also those that have turned already, as in the paper: an easy frame can hold back a hard one,
    and a longer song moves more slowly for the same alpha. The settings, both variants included, are CarliniWagner's; `stop`
    "never" takes every step. Each frame is looked at afresh in the end. Magnitudes stay at or above 0, as those of every sound
    do, unless the method has bounds of its own: bounds=(-1, None) gives the attack of the papers, which allows them below 0.
    """
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must be a probability between 0 and 1, got {threshold!r}")
    clean = heard.checked(song)
    before = _probabilities(heard.logits(clean))
    wanted = before <= threshold  # singing where there was none, and none where there was
    bounds = _bounds(method, heard)
    ball = method.ball(clean.shape, bounds)
    low, high = ball.box(clean, None)
    now, memory = clean.copy(), (np.zeros_like(clean), np.zeros_like(clean))
    border, tell = math.log(threshold / (1 - threshold)), on_calls or (lambda calls: None)
    tell(len(before))
    taken = 0
    while taken < method.iterations:
        logits, slope = heard.vjp(now, lambda found, frames: method.alpha / len(wanted) * (
            _probabilities(found) - wanted[frames]))
        tell(len(before))
        ahead = np.where(wanted, 1, -1) * (logits - border)
        if method.stop == "success" and ahead.min() > method.margin:
            break
        slope += 2 * (now - clean)
        signs = np.sign(np.nan_to_num(slope, copy=False), out=slope)
        now -= signs * np.float32(ball.step) if method.variant == "paper" else adam(signs[None], memory[0][None],
                                                                                    memory[1][None], [taken], ball.step)[0]
        np.clip(now, low, high, out=now)
        taken += 1
    return AttackedSong(clean, now, before, _probabilities(heard.logits(now)), threshold, taken,
                        None if bounds is None else bounds[0])


def _bounds(method: CarliniWagner, heard: Heard) -> Bounds:
    """The method's own, or those of what is attacked."""
    if method.bounds is not None and not isinstance(method.bounds, str):
        own: Bounds = method.bounds
        return own
    return (0.0, None) if getattr(heard, "signal", None) == "magnitude" else None


def _probabilities(logits: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0, -logits)))
