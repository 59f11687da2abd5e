"""An explanation that never looks at the model: the edges in the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import ndimage

from whytrust.core import Floats
from whytrust.explanation import Explanation
from whytrust.question import Question


@dataclass(frozen=True)
class Edges:
    """Where are the edges in the input? It does not ask what the model makes of them, and must fail every honest test.

    The strength of edges (Sobel's gradient of an image or a spectrogram, the step from sample to sample of a waveform, and of
    one cut in frequency Sobel's gradient of its transform), averaged over each part; the same for every model and every target
    (Adebayo et al. 2018). It misleads always: it looks like an explanation because objects have edges. A test of explanations
    that it passes tests nothing.
    """

    def __call__(self, question: Question, rng: np.random.Generator) -> Explanation:
        """One mean strength a part; the model is asked only for its prediction."""
        edges = strength(question.parts, rng)
        shown = edges.shape == getattr(question.parts.view, "labels", edges).shape and edges.ndim == 2
        map = edges.astype(np.float32) if shown else None
        return Explanation.of(question, "edges", question.parts.pool(edges, "mean_abs"), sense="nothing", map=map, notes=(
            "These are the edges in the input, not an explanation: the model had no part in them, and they are the same for "
            "every model and every target.",))


def strength(parts: Any, rng: np.random.Generator) -> Floats:
    """How strong the edge is at each place: a map shaped like the input, without channels."""
    if parts.domain not in ("image", "audio"):
        raise ValueError(f"edges must be those of an image, a spectrogram or a waveform, got {_kind(parts.domain)}, which has "
                         "none; choose another method")
    dials = getattr(parts, "dials", None)
    if dials is not None and dials.own.ndim == 2:
        return _sobel(dials.own)  # of a waveform cut in frequency: those of its transform
    whole = np.asarray(parts.compose(np.ones((1, len(parts.names)), bool), rng)[0], dtype=np.float64)
    if parts.domain == "audio" and whole.ndim == 1:
        return np.asarray(np.abs(np.diff(whole, prepend=whole[:1])))
    if whole.ndim == 3:
        channels = whole if getattr(parts, "channels_first", False) else np.moveaxis(whole, -1, 0)
        return np.asarray(np.mean([_sobel(c) for c in channels[:3]], axis=0))  # a fourth one says how transparent a pixel is
    return _sobel(whole)


def _sobel(plane: Floats) -> Floats:
    return np.asarray(np.hypot(ndimage.sobel(plane, axis=0), ndimage.sobel(plane, axis=1)))


def _kind(domain: str) -> str:
    return {"text": "a text", "tabular": "a row of a table"}.get(domain, domain)
