"""The recovery trial: when only k parts were changed, and the label still flips, does an explainer find those k?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from whytrust.core import Floats, Masks
from whytrust.explanation import Explanation
from whytrust.measures.case import Blind, Case, Explain, first, no_controls, ranked, streams
from whytrust.measures.flips import blind_orders, failures, fidelities


@dataclass(frozen=True)
class Recovery:
    """Of the only k parts that were changed, how many are among an explainer's first k?

    The change is kept in the k parts where it is largest, and taken back everywhere else; inputs whose label is then the clean
    one again are left out, and the others are explained anew (Praher et al. 2021, Hoedt et al. 2022). Random finds k²/d of
    them; magnitude finds all by construction, so it is no rival here. Blind rankings are those of what the explainer sees, for
    a change in few parts can stand out without asking the model. How it misleads: the inputs that are left are those that a
    few parts can flip, and what is found of them need not hold for the rest.

    `overlap` judges the same explanations as Göpfert et al. (2020) did: as many pixels as were changed, those of the largest
    values, and the share of them that lies where the change is. It favours explanations that come in large pieces.
    """

    ks: tuple[int, ...] = (1, 3, 5)

    def __post_init__(self) -> None:
        """Refuse numbers of parts that mean nothing, before any model call."""
        if not self.ks or any(isinstance(k, bool) or not isinstance(k, int) or k < 1 for k in self.ks):
            raise ValueError(f"ks must be whole numbers >= 1, at least one, got {self.ks!r}")

    def __call__(self, case: Case, explain: Explain, rng: np.random.Generator, blind: Blind = no_controls) -> dict[str, Any]:
        """For each k: whether the label still flips, and then what was found.

        No k is asked that covers every part, or more parts than were changed at all.
        """
        of = streams(rng)
        by_size = ranked(case.change, of("magnitude of the change"))
        return {str(k): self._found(case, first(by_size, k), k, explain, streams(of(f"k = {k}")), blind) for k in self.ks
                if k < case.d and k <= np.count_nonzero(case.change)}

    def _found(self, case: Case, kept: Masks, k: int, explain: Explain,
               of: Callable[[str], np.random.Generator], blind: Blind) -> dict[str, Any]:
        local = case.localised(kept)
        if local is None:
            return {"flipped": False}
        answers = explain(local.question)
        found = {name: e for name, e in answers.items() if isinstance(e, Explanation)}
        orders = {name: ranked(e.scores, of(name)) for name, e in found.items()}
        orders["magnitude"] = ranked(local.change, of("magnitude of the change"))
        result: dict[str, Any] = {
            "flipped": True, "label": local.label, "parts": np.flatnonzero(kept).tolist(),
            "found": {name: int(kept[order[:k]].sum()) for name, order in orders.items()},
            "blind": {name: float(np.mean([kept[order[:k]].sum() for order in some]))
                      for name, some in blind_orders(blind(local.parts), of).items()},
            "order": {name: order.tolist() for name, order in orders.items()},
            "fidelity": fidelities(answers), "failed": failures(answers)}
        if local.parts.view.kind == "image":
            where = np.isin(local.parts.view.spread(np.arange(local.d, dtype=np.float64)), np.flatnonzero(kept))
            result["overlap"] = {name: overlap(_pixels(e), where, of(f"{name} by pixel")) for name, e in found.items()}
            result["overlap_random"] = float(where.mean())
        return result


def overlap(values: Floats, where: Masks, rng: np.random.Generator) -> float:
    """Of as many pixels as are True in `where`, those of the largest values: the share that lies there. Ties by chance."""
    count = int(where.sum())
    top = ranked(values.ravel(), rng)[:count]
    return float(where.ravel()[top].mean())


def _pixels(explanation: Explanation) -> Floats:
    """A value a pixel: the map's size where there is a map, else the score of the pixel's part."""
    if explanation.map is None:
        return explanation.as_map()
    return np.abs(explanation.map)
