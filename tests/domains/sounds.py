"""Small sounds, and what is heard of them when parts are hidden or laid over one another."""

import numpy as np

from whytrust.core import generator

RNG = generator(0)
RATE = 8000
SECOND = np.arange(RATE) / RATE


def sine(hz, amplitude=0.5):
    return amplitude * np.sin(2 * np.pi * hz * SECOND)


def noise(seed, shape, kind=np.float64):
    drawn = generator(seed, "noise").normal(size=shape)
    return (1000 * drawn).astype(kind) if np.dtype(kind).kind == "i" else drawn.astype(kind)


def laid(parts, *shown):
    """The sound of these parts alone."""
    mask = np.zeros((1, len(parts.names)), bool)
    mask[0, list(shown)] = True
    return parts.compose(mask, RNG)[0]


def without(parts, *hidden):
    """The sound of all but these parts."""
    return laid(parts, *sorted(set(range(len(parts.names))) - set(hidden)))


def loudness(wave):
    return float(np.sqrt(np.mean(np.square(wave, dtype=np.float64))))
