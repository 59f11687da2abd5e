"""One example of everything in the catalogue, for the suites that every entry must pass."""

import numpy as np

from whytrust.domains.audio import AudioParts
from whytrust.domains.image import ImageParts
from whytrust.domains.stems import StemParts
from whytrust.domains.tabular import TableParts
from whytrust.domains.text import TextParts
from whytrust.explainers import CATALOGUE

RNG = np.random.default_rng(7)
IMAGE = RNG.random((12, 10, 3))
BYTES = RNG.integers(0, 256, (16, 16, 4), dtype=np.uint8)
WAVE = RNG.normal(size=3000)
LOW = np.convolve(WAVE, np.ones(9) / 9, "same")
HISS = np.random.default_rng(8).normal(size=3000)
MEL = RNG.normal(size=(23, 16)).astype(np.float32)
TABLE = np.column_stack([RNG.normal(size=80), RNG.integers(0, 3, 80), RNG.integers(0, 2, 80)])
TEXT = "It is, all in all, a good film; a very good film — नमस्ते 映画 👍🏽!"

PARTS = {
    "image grid, segment mean": lambda: ImageParts.cut(IMAGE, "grid:3x2"),
    "image slic, blur": lambda: ImageParts.cut(IMAGE, "slic:6", "blur"),
    "image grey bytes, image mean": lambda: ImageParts.cut(BYTES[..., 0], "grid:2x2", "image_mean"),
    "image RGBA bytes, black": lambda: ImageParts.cut(BYTES, "grid:2x3", "black"),
    "image one channel, constant": lambda: ImageParts.cut(IMAGE[..., :1], "grid:2x2", 0.5),
    "image channels first": lambda: ImageParts.cut(np.moveaxis(IMAGE, -1, 0), "grid:2x2", (0.1, 0.2, 0.3), "NCHW"),
    "image noise": lambda: ImageParts.cut(IMAGE, "grid:2x2", "noise"),
    "image quickshift": lambda: ImageParts.cut(np.kron(IMAGE[:4, :4], np.ones((8, 8, 1))), "quickshift:6"),
    "image felzenszwalb": lambda: ImageParts.cut(np.kron(IMAGE[:4, :4], np.ones((8, 8, 1))), "felzenszwalb:10"),
    "text words": lambda: TextParts.cut(TEXT, "words"),
    "text bag, mask": lambda: TextParts.cut(TEXT, "bag", fill="[MASK]"),
    "text sentences": lambda: TextParts.cut("One thing. Another thing! A third?", "sentences"),
    "wave time": lambda: AudioParts.cut(WAVE, "time:6", rate=8000),
    "wave tf": lambda: AudioParts.cut(WAVE, "tf:3x2", rate=8000),
    "wave slic": lambda: AudioParts.cut(WAVE, "slic:6", rate=8000),
    "mel tf": lambda: AudioParts.cut(MEL, "tf:3x2"),
    "mel slic": lambda: AudioParts.cut(MEL, "slic:6"),
    "mel labels": lambda: AudioParts.cut(MEL, np.add.outer(np.arange(23), np.arange(16)) // 9),
    "stems": lambda: StemParts.of({"low": LOW, "high": WAVE - LOW}, mix=WAVE + 0.3 * HISS, rate=8000),
    "table bins": lambda: TableParts.cut(TABLE[0], TABLE, categorical=[1, 2]),
    "table continuous, normal": lambda: TableParts.cut(TABLE[0], TABLE, bins=None, categorical=[1, 2], values="normal"),
}
TEXTS = [TEXT, "a good film", "a very long film, and no good one", "नमस्ते", "One thing. A third?", "very, very long"]


def background(parts):
    """Training inputs like the one that the parts are of: it itself, and others that a model labels otherwise."""
    if parts.domain == "tabular":
        return TABLE
    if parts.domain == "text":
        return TEXTS
    whole = parts.compose(np.ones((1, len(parts.names)), bool), np.random.default_rng(0))[0]
    return np.stack([whole, *(np.random.default_rng(seed).permuted(whole, axis=0) for seed in range(12)), whole[::-1]])


EXPLAINERS = {e.name: e.make() for e in CATALOGUE if not e.gradients and e.name != "edges"}
"""Those that only ask work on every model and all parts; edges are where there is a picture, gradients where there is a net."""


def linear_model(parts):
    """A model of two classes that weighs everything in the input, in an order the batch size cannot change."""
    one = parts.compose(np.ones((1, len(parts.names)), bool), np.random.default_rng(0))
    if isinstance(one, list):
        return lambda texts: np.array([[len(t) / 100, t.count("good") / 10 + t.count(" ") / 50] for t in texts])
    weights = np.random.default_rng(3).normal(size=np.shape(one)[1:])

    def model(batch):
        rows = (np.asarray(batch, dtype=np.float64) * weights).reshape(len(batch), -1)
        return np.array([[np.tanh(row.sum()), row.mean()] for row in rows])

    return model
