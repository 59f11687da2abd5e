"""What Ribeiro, Singh and Guestrin (2016) published of their simulated users, in per cent."""

from __future__ import annotations

CITATION = ("M. T. Ribeiro, S. Singh, C. Guestrin: “Why Should I Trust You?” Explaining the Predictions of Any Classifier. "
            "KDD 2016")
ROWS = ("random", "parzen", "greedy", "lime")
Table = dict[str, dict[str, tuple[float, ...]]]
FAITHFUL: Table = {
    "books": {"sparse-LR": (17.4, 72.8, 64.3, 92.1), "tree": (20.6, 78.9, 37.0, 97.0)},
    "dvd": {"sparse-LR": (19.2, 60.8, 63.4, 90.2), "tree": (17.4, 80.6, 47.6, 97.8)},
}
"""Figures 6 and 7: recall of truly important features."""
TRUST: Table = {
    "books": {"LR": (14.6, 84.0, 53.7, 96.6), "NN": (14.8, 87.6, 47.4, 94.5), "RF": (14.7, 94.3, 45.0, 96.2),
              "SVM": (14.7, 92.3, 53.3, 96.7)},
    "dvd": {"LR": (14.2, 87.0, 52.4, 96.6), "NN": (14.3, 81.7, 58.1, 91.8), "RF": (14.5, 94.2, 46.6, 96.1),
            "SVM": (14.4, 87.3, 55.1, 95.6)},
}
"""Table 1: F1 of trustworthiness."""


def published(table: Table, dataset: str, model: str, row: str) -> float | None:
    """One published number; None where there is none."""
    values = table.get(dataset, {}).get(model)
    return None if values is None or row not in ROWS else values[ROWS.index(row)]
