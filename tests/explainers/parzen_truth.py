"""What Parzen windows are tested against: a naive sum over all windows, and reviews whose word of the truth is known."""

import numpy as np
import pytest

import whytrust as wt

WORDS = ["good", "bad", "film", "plot", "long", "short", "actor", "scene", "music", "night", "old", "new"]


def reviews(n, seed=0, words=WORDS):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, rng.integers(2, 7), replace=False)) for _ in range(n)]


def says_good(texts):
    """The word of the truth is "good"; "bad" speaks against it; others say nothing."""
    return [0.5 + 0.4 * ("good" in t.split()) - 0.4 * ("bad" in t.split()) + 0.01 * ("film" in t.split()) for t in texts]


MODEL = wt.model(says_good, threshold=0.51, classes=["rotten", "fresh"])


def naive_probability(x, vectors, worth, width):
    kernels = [np.exp(-np.sum((x - v) ** 2) / (2 * width**2)) for v in vectors]
    return np.dot(kernels, worth) / np.sum(kernels)


def clouds(n, seed=0):
    """Two Gaussian clouds, apart along (3, -1) / √10 of equal variances, and a third column that says nothing."""
    rng = np.random.default_rng(seed)
    axis = np.array([3, -1, 0]) / np.sqrt(10)
    return rng.normal(size=(n, 3)) + np.outer(rng.choice([-1.5, 1.5], n), axis), axis


def mixed_frame(n, seed=0):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    frame = pandas.DataFrame({"age": rng.normal(40, 10, n), "town": rng.choice(["Linz", "Wien", "Graz"], n),
                              "since": pandas.Timestamp("2020-01-01") + pandas.to_timedelta(rng.integers(0, 900, n), "D"),
                              "kids": pandas.array(rng.integers(0, 4, n), dtype="Int64")})
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "kids"] = pandas.NA
    frame.loc[::13, "town"] = None
    return frame


def bright_corner(images):
    return 1 / (1 + np.exp(-20 * (np.asarray(images, dtype=float)[:, :2, :2].mean(axis=(1, 2)) - 0.5)))


class Slanted:
    """A model that goes to worker processes."""

    def __init__(self, axis):
        self.axis = axis

    def __call__(self, rows):
        return 1 / (1 + np.exp(-2 * np.asarray(rows, dtype=float) @ self.axis))
