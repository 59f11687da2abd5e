"""One diverging scale for every picture: blue speaks for the target, orange against it, white is zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.core import Floats

FOR = (0, 114, 178)
"""Blue: told apart from the orange by readers with any of the common colour-vision deficiencies."""
AGAINST = (221, 107, 0)
"""Orange."""
PLUS, MINUS = "+", "−"
"""Colour never stands alone: these marks go with it."""


def strength(scores: Any) -> Floats:
    """Scores as numbers from -1 to 1: divided by the largest |score|; all 0 where every score is 0."""
    values = np.nan_to_num(np.asarray(scores, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    largest = float(np.abs(values).max(initial=0.0))
    return np.asarray(values / largest) if largest > 0 else np.zeros_like(values)


def rgb(strengths: Any) -> NDArray[np.uint8]:
    """(…,) strengths from -1 to 1 -> (…, 3) colours: white at 0, full orange at -1, full blue at 1, straight between."""
    return _bytes(blend(np.full((*np.shape(strengths), 3), 255.0), strengths, full=1.0))


def blend(base: Any, strengths: Any, full: float = 0.8) -> Floats:
    """Colour laid over a picture (…, 3): nothing at strength 0, `full` of the colour at strength ±1."""
    signed = np.clip(np.asarray(strengths, dtype=np.float64), -1, 1)[..., None]
    colour = np.where(signed >= 0, np.array(FOR, float), np.array(AGAINST, float))
    share = full * np.abs(signed)
    return np.asarray(np.asarray(base, dtype=np.float64) * (1 - share) + colour * share)


def css(strength: float) -> str:
    """The colour of one strength, as #rrggbb."""
    red, green, blue = (int(c) for c in rgb(strength))
    return f"#{red:02x}{green:02x}{blue:02x}"


def text_css(strength: float) -> str:
    """Black or white, whichever reads better on `css(strength)`; the contrast is at least 4.5 to 1 everywhere."""
    light = luminance(rgb(strength))
    return "#000000" if (light + 0.05) / 0.05 >= 1.05 / (light + 0.05) else "#ffffff"


def luminance(colour: Any) -> float:
    """Relative luminance as the Web Content Accessibility Guidelines define it, 0 (black) to 1 (white)."""
    c = np.asarray(colour, dtype=np.float64) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ np.array([0.2126, 0.7152, 0.0722]))


def sign(score: float) -> str:
    """The mark that goes with the colour of a score; nothing at 0."""
    return PLUS if score > 0 else MINUS if score < 0 else ""


def _bytes(colours: Floats) -> NDArray[np.uint8]:
    return np.clip(np.rint(colours), 0, 255).astype(np.uint8)
