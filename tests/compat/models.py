"""Models whose explanations are known, as functions that lime's users pass."""

import numpy as np

WEIGHTS = {"good": 0.3, "bad": -0.2, "plot": 0.1, "dull": -0.05}
TEXT = "a good film with a bad plot and a dull, dull end that nobody in the room will ever forget"


def additive(texts):
    """0.4 plus the weight of each word that occurs."""
    p = np.array([0.4 + sum(w for word, w in WEIGHTS.items() if word in text.split() or f"{word}," in text.split()) for text in texts])
    return np.column_stack([1 - p, p])


def three_classes(texts):
    p = additive(texts)[:, 1]
    return np.column_stack([p / 2, 1 - p, p / 2])


def order_matters(texts):
    """1 where the first word is "not"."""
    p = np.array([0.2 + 0.6 * text.startswith("not") for text in texts])
    return np.column_stack([1 - p, p])


def linear(rows):
    """Class 1 by the first two of any number of columns."""
    p = 0.5 + 0.1 * rows[:, 0] - 0.05 * rows[:, 1]
    return np.column_stack([1 - p, p])


def total(rows):
    return 3.0 * rows[:, 0] - 2.0 * rows[:, 1]


def bright(images):
    """Class 1 by how bright the upper left quarter is in the first channel."""
    height, width = images.shape[1] // 2, images.shape[2] // 2
    p = images[:, :height, :width, 0].mean(axis=(1, 2)) / (255 if images.dtype == np.uint8 else 1)
    return np.column_stack([1 - p, p])


def quarters(image):
    """Labels 1 to 4: lime took the first label for 0."""
    height, width = image.shape[0] // 2, image.shape[1] // 2
    rows, columns = np.indices(image.shape[:2])
    return 1 + 2 * (rows >= height) + (columns >= width)


def grid(image):
    """A label for each 4 × 4 pixels."""
    rows, columns = np.indices(image.shape[:2])
    return rows // 4 * (image.shape[1] // 4) + columns // 4


def last_step(sequences):
    p = 0.5 + 0.1 * sequences[:, -1, 0]
    return np.column_stack([1 - p, p])


def own_kernel(d, kernel_width):
    return 1 / (1 + (d / kernel_width) ** 2)
