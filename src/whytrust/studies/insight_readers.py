"""Simulated readers of a model's predictions: what does one suspect before, and what after, it has seen explanations?

They stand in for the 27 graduate students of Ribeiro, Singh and Guestrin (2016, § 6.4). Each sees ten predictions and follows
fixed rules; what is drawn (which ten, what is overlooked, how many mistakes are forgiven) hangs on the reader's number alone:
the same reader sees the same ten before and after, whatever the explainer. How closely a reader looks at inputs without an
explanation is a choice, on which rates before explanations hang. So compare such rates with each other, not with people's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats, generator

RIGHT, WRONG = 4, 1
"""Of each class a reader sees so many predictions that are right, and so many that are wrong because of the artefact."""
RANDOM = "random"
CELLS = 4
"""Pictures are looked at in so many by so many places."""
STRETCHES = 8
"""Sounds are heard in so many stretches of time, and bands of frequency."""


@dataclass(frozen=True)
class Shown:
    """One prediction as readers see it.

    `says` is whether the model decides for the class that has the artefact in training. `traits` is what can be seen of the
    input but for the artefact. `named` has, for each explainer, one entry for each part that its explanation names: does that
    part hold the artefact? None where it failed; `innocent` has the same for a model that does not go by it. `d` parts there
    are, `held` of them hold the artefact, and `top` are named at most.
    """

    case: str
    of_class: bool  # is it of the class that has the artefact in training?
    planted: bool
    says: bool
    wrong: bool
    traits: Mapping[str, float]
    named: Mapping[str, Sequence[bool] | None]
    innocent: Mapping[str, Sequence[bool] | None]
    d: int
    held: int
    top: int
    stays: bool = False  # does the artefact stay when the parts that hold it are hidden?

    @property
    def chance(self) -> float:
        """How often do `top` parts drawn at random have one among them that holds the artefact?"""
        missed = math.comb(self.d - self.held, self.top) / math.comb(self.d, self.top)
        return 1 - missed if self.held else 0.0


@dataclass(frozen=True)
class Belief:
    """What a reader says: is the artefact a reason, and is the model to be trusted? None where there was nothing to go by."""

    named: bool | None
    trusts: bool | None
    candidates: int = 0  # before: how many features agreed with the predictions as well as any did


@dataclass(frozen=True)
class Reader:
    """One reader by its number.

    Of an input without an explanation it takes in a share, `looks`, of what there is to see; an explanation points at parts, of
    which it `overlooks` few. It trusts a model that is right as often as its own bar asks, unless it believes that the artefact
    is a reason.
    """

    number: int
    seed: int = 0
    looks: float = 0.5
    overlooks: float = 0.05
    bars: tuple[float, ...] = (0.7, 0.8, 0.9)

    def rng(self, what: str) -> np.random.Generator:
        """This reader's own dice."""
        return generator(self.seed, "reader", self.number, what)

    def draw(self, cases: Sequence[Shown]) -> tuple[Shown, ...] | None:
        """Ten predictions, five of each class: four with the artefact where it belongs and one where it does not.

        None where there are not enough.
        """
        rng, chosen = self.rng("draw"), list[Shown]()
        for of_class in (True, False):
            for usual, count in ((True, RIGHT), (False, WRONG)):
                pool = [c for c in cases if c.of_class == of_class and (c.planted == of_class) == usual]
                if len(pool) < count:
                    return None
                chosen += [pool[int(i)] for i in sorted(rng.permutation(len(pool))[:count])]
        return tuple(chosen)

    def before(self, shown: Sequence[Shown]) -> Belief:
        """Without explanations: a feature that agrees with as many predictions as any other does, drawn from all that do.

        The candidates are the artefact, every trait of the inputs, and the class that the model is meant to find. What was not
        taken in of an input is taken not to be there; the class is always seen.
        """
        rng = self.rng("before")
        says = np.array([one.says for one in shown])
        details = np.array([[one.planted for one in shown], *traits_of(shown)], dtype=bool)
        details &= rng.random(details.shape) < self.looks
        own, *others = (agreement(detail, says) for detail in details)
        others.append(agreement(np.array([one.of_class for one in shown]), says))
        best = max(own, *others)
        tied = [own, *others].count(best)
        named = own == best and rng.random() < 1 / tied
        return Belief(named, self._forgives(shown) and not named, tied)

    def after(self, shown: Sequence[Shown], explainer: str, innocent: bool = False) -> Belief:
        """With explanations: is the artefact named in most of those of inputs that have it, and more often than by chance?

        With `innocent` the explanations are those of the model that does not go by it, of the same inputs.
        """
        rng = self.rng(f"after {explainer}{' of an innocent model' * innocent}")
        count, expected, n = 0, 0.0, 0
        for one in (one for one in shown if one.planted):
            named = self._random(one, rng) if explainer == RANDOM else (one.innocent if innocent else one.named).get(explainer)
            if named is None:
                continue
            held = np.asarray(named, dtype=bool)
            count += bool((held & (rng.random(len(held)) >= self.overlooks)).any())
            expected, n = expected + one.chance, n + 1
        if not n:
            return Belief(None, None)
        named_it = count > n / 2 and count > expected
        return Belief(named_it, self._forgives(shown) and not named_it)

    def _forgives(self, shown: Sequence[Shown]) -> bool:
        """Is the model right often enough for this reader?"""
        bar = self.bars[int(self.rng("bar").integers(len(self.bars)))]
        return float(np.mean([not one.wrong for one in shown])) >= bar - 1e-9

    def _random(self, one: Shown, rng: np.random.Generator) -> list[bool]:
        """A random explanation, another one for every reader: what of it holds the artefact."""
        return [bool(part < one.held) for part in rng.permutation(one.d)[:one.top]]


def agreement(feature: NDArray[np.bool_], says: NDArray[np.bool_]) -> int:
    """With how many predictions does a feature agree, as a reason for the class or against it?"""
    same = int((feature == says).sum())
    return max(same, len(says) - same)


def traits_of(shown: Sequence[Shown]) -> list[NDArray[np.bool_]]:
    """Each trait of these inputs as there or not: of two values the larger one, of more those above the middle."""
    columns = []
    for name in sorted({name for one in shown for name in one.traits}):
        values = np.array([one.traits.get(name, 0.0) for one in shown], dtype=np.float64)
        distinct = np.unique(values)
        if len(distinct) > 1:
            columns.append(values > (distinct.mean() if len(distinct) == 2 else float(np.median(values))))
    return columns


# --- what can be seen of an input -------------------------------------------------------------------------------------


def traits(item: Any, domain: str) -> dict[str, float]:
    """What a reader could take for a reason in an input without the artefact.

    The words of a text, the values of a row, how light, colourful, warm and varied each of 4 × 4 places of a picture is, how
    loud each stretch and each band of a sound is. It misleads where people see what these do not say: ears, a pose, a voice.
    """
    if domain == "text":
        return dict.fromkeys(re.findall(r"\w+", str(item).lower()), 1.0)
    if domain == "tabular":
        return _of_row(item)
    values = np.asarray(item, dtype=np.float64)
    if domain == "image":
        return _of_picture(values)
    return _of_spectrogram(values, "louder") if values.ndim == 2 else _of_wave(values)


def _of_row(item: Any) -> dict[str, float]:
    if hasattr(item, "iloc"):
        row = item.iloc[0] if hasattr(item, "columns") else item
        pairs = list(zip(row.index, row.tolist(), strict=True))
    else:
        pairs = list(item.items() if isinstance(item, Mapping) else enumerate(np.asarray(item).ravel().tolist()))
    numbers = {str(name): float(value) for name, value in pairs if isinstance(value, int | float) and math.isfinite(value)}
    return numbers | {f"{name} = {value}": 1.0 for name, value in pairs if str(name) not in numbers}


def _of_picture(values: Floats) -> dict[str, float]:
    if values.ndim == 3 and values.shape[0] in (1, 3, 4) and values.shape[-1] not in (1, 3, 4):
        values = np.moveaxis(values, 0, -1)
    colours = values[..., :3] if values.ndim == 3 else values[..., None]
    light = colours.mean(axis=-1)
    seen = {"light": light, "varied": np.hypot(*np.gradient(light)) if min(light.shape) > 1 else light}
    if colours.shape[-1] == 3:
        seen |= {"colourful": np.ptp(colours, axis=-1), "warm": colours[..., 0] - colours[..., 2]}
    found = {f"{what} all over": float(map.mean()) for what, map in seen.items()}
    for what, map in seen.items():
        found |= _of_spectrogram(map, what)
    return found


def _of_spectrogram(map: Floats, what: str) -> dict[str, float]:
    rows, columns = (np.array_split(np.arange(size), min(CELLS, size)) for size in map.shape)
    return {f"{what} at {i}, {j}": float(map[np.ix_(some, others)].mean())
            for i, some in enumerate(rows) for j, others in enumerate(columns)}


def _of_wave(wave: Floats) -> dict[str, float]:
    power = np.abs(np.fft.rfft(wave)) ** 2
    each = {"stretch": np.array_split(wave ** 2, STRETCHES), "band": np.array_split(power, STRETCHES)}
    return {f"loud in {what} {i}": float(one.mean()) for what, some in each.items() for i, one in enumerate(some) if len(one)}
