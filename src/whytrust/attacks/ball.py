"""How far an input may be moved: a ball around it, the bounds of its values, and the arithmetic that keeps both exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats

Bounds = tuple[float | None, float | None] | None
"""(least, largest) value, None for an open end; None is no bounds at all."""
Inside = NDArray[np.bool_] | None
"""Where an input may change; None is everywhere."""


@dataclass(frozen=True)
class Ball:
    """At most `radius` away in `norm`, within `bounds`, `step` at a time; all in the units of the input."""

    norm: str
    radius: float
    step: float
    bounds: Bounds

    def box(self, clean: Floats, inside: Inside) -> tuple[Floats, Floats]:
        """(least, largest) value that each number may take; both in the input's own type, and rounded towards the input.

        A caller who computes |x' − x| in float64 finds it at most `radius`, whatever the type of x'.
        """
        if self.norm == "linf":
            low = _inward(clean, clean.astype(np.float64) - self.radius, self.radius, np.inf)
            high = _inward(clean, clean.astype(np.float64) + self.radius, self.radius, -np.inf)
        else:
            low, high = np.full_like(clean, -np.inf), np.full_like(clean, np.inf)
        least, most = ends(self.bounds)
        np.maximum(low, _least(least, clean.dtype), out=low)
        np.minimum(high, -_least(-most, clean.dtype), out=high)
        if inside is not None:
            low[~inside], high[~inside] = clean[~inside], clean[~inside]
        return low, high

    def reach(self, clean: Floats) -> float:
        """The radius to project onto, so that rounding to the input's type cannot carry an input out of an L2 ball.

        Rounding moves a value by at most half a unit in its last place, so all values together by that share of their norm.
        """
        if self.norm == "linf":
            return self.radius  # the box holds it
        length = float(np.linalg.norm(clean.astype(np.float64)))
        rounding = float(np.finfo(clean.dtype).eps) / 2 * (length + self.radius)
        summing = (clean.size + 8) * float(np.finfo(np.float64).eps) * self.radius
        return max(0.0, self.radius - rounding - summing)

    def holds(self, moved: Floats, linf: float, l2: float) -> bool:
        """Is this input, whose change has these norms, within the ball and the bounds, as anyone would compute it?"""
        low, high = ends(self.bounds)
        near = (linf if self.norm == "linf" else l2) <= self.radius
        return bool(near and moved.min() >= low and moved.max() <= high)


def norms(clean: Floats, moved: Floats) -> tuple[float, float]:
    """(L∞, L2) of the change, in float64."""
    change = moved.astype(np.float64) - clean.astype(np.float64)
    return float(np.abs(change).max()), float(np.linalg.norm(change))


def _inward(clean: Floats, edge: Floats, radius: float, centre: float) -> Floats:
    """The edge in the input's type, one number nearer to the input where rounding went too far; `centre` is which way."""
    rounded = edge.astype(clean.dtype)
    far = np.abs(clean.astype(np.float64) - rounded.astype(np.float64)) > radius
    nearer = np.nextafter(rounded, clean.dtype.type(centre))
    return np.where(far, nearer, rounded)


def _least(bound: float, dtype: np.dtype[Any]) -> Any:
    """The least number of this type that is not below the bound."""
    number = dtype.type(bound)
    return np.nextafter(number, dtype.type(np.inf)) if float(number) < bound else number


# --- bounds and units -------------------------------------------------------------------------------------------------


def ends(bounds: Bounds) -> tuple[float, float]:
    """The bounds as numbers: an open end is infinite."""
    low, high = bounds or (None, None)
    return -math.inf if low is None else low, math.inf if high is None else high


def span_of(bounds: Bounds) -> float | None:
    """high − low; None where an end is open."""
    low, high = ends(bounds)
    return high - low if math.isfinite(high - low) else None


def own_bounds(method: Any, limits: Any, arrays: list[NDArray[Any]]) -> Any:
    """The bounds of an attack; where none were asked for, the limits of what the model takes, if the inputs keep them."""
    if limits is None or method.bounds != getattr(type(method), "bounds", limits):  # the default
        return method.bounds
    low, high = ends(limits)
    return limits if all(a.min() >= low and a.max() <= high for a in arrays) else method.bounds


def settle_bounds(bounds: Any, arrays: list[NDArray[Any]]) -> Bounds:
    """The bounds of the inputs' values: as given, or ("auto") 0–255 for bytes and colour floats like them, 0–1 for floats
    within it, and none for everything else: normalised images, waveforms, spectrograms with negative values.

    All inputs of a call are looked at together: one dark picture does not make a normalised data set.
    """
    if not isinstance(bounds, str):
        found: Bounds = check_bounds(bounds)
        return found
    if not arrays or any(a.ndim < 2 for a in arrays):
        return None
    if all(a.dtype == np.uint8 for a in arrays):
        return 0.0, 255.0
    low, high = min(float(a.min()) for a in arrays), max(float(a.max()) for a in arrays)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    # Without colour an array may be a spectrogram or a digit of 0–16, whose range nobody can know. One channel is no colour:
    # whether it is there hangs on how the model is wrapped.
    return (0.0, 255.0) if low >= 0 and 2 < high <= 255 and all(a.squeeze().ndim >= 3 for a in arrays) else None


def unit_of(units: str, bounds: Bounds, epsilon: float | None) -> float:
    """What an epsilon of 1 means in the units of the input: 1, or the range of the bounds where there are any."""
    whole = span_of(bounds)
    if units == "input" or (units == "auto" and whole is None):
        return 1.0
    if whole is None:
        known = "none are known for these inputs" if bounds is None else f"got {bounds}, which has an open end and no range"
        raise ValueError(f"units='range' must come with bounds, and {known}; pass bounds=(low, high), or units='input'")
    if epsilon is not None and (epsilon > 1 or (epsilon == 1 and units == "auto" and whole > 1)):
        low, high = ends(bounds)
        raise ValueError(f"epsilon must be a share of the range {low:g}–{high:g}, below 1, got {epsilon:g}; for the units of "
                         "the input pass units='input'")
    return whole


# --- checks -----------------------------------------------------------------------------------------------------------


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Refuse a word that means nothing."""
    if not any(value is a or (isinstance(value, str) and value == a) for a in allowed):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def check_number(name: str, value: Any, least: float = 0.0, above: bool = False) -> None:
    """Refuse what is no finite number, or too small."""
    good = isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)
    if not good or value < least or (above and value == least):
        raise ValueError(f"{name} must be a finite number {'above' if above else '>='} {least:g}, got {value!r}")


def check_whole(name: str, value: Any) -> None:
    """Refuse what is no whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}")


def check_shared(attack: Any) -> None:
    """Refuse at once, of the settings that every attack has, what could only fail later; bounds as they are used."""
    one_of("units", attack.units, ("auto", "range", "input"))
    one_of("stop", attack.stop, ("success", "never"))
    check_whole("iterations", attack.iterations)
    check_number("margin", attack.margin)
    object.__setattr__(attack, "bounds", check_bounds(attack.bounds))


def check_bounds(bounds: Any) -> Any:
    """Bounds as they are used: "auto", None, or a pair of floats with None for an open end; refuse what bounds nothing."""
    if bounds is None or (isinstance(bounds, str) and bounds == "auto"):
        return bounds
    pair = bounds.tolist() if hasattr(bounds, "tolist") else bounds
    good = isinstance(pair, list | tuple) and len(pair) == 2 and all(
        b is None or (isinstance(b, int | float | np.number) and not math.isnan(b)) for b in pair)
    low, high = ends((pair[0], pair[1])) if good else (0.0, 0.0)
    if not low < high:
        raise ValueError(f"bounds must be (low, high) with low < high, 'auto' or None, got {bounds!r}; an end may be open, "
                         "such as (0, None)")
    found = (float(low) if math.isfinite(low) else None, float(high) if math.isfinite(high) else None)
    return None if found == (None, None) else found
