"""Can a reader of explanations tell the better of two models that validation cannot tell apart? In any domain.

Artefacts are planted more often in one class than in the other, in the data that models are trained and validated on, and
equally often in the data they will meet. Pairs of models are trained that are as good as each other on the first, and not on
the second: what a pair differs in is how much it goes by the artefacts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import whytrust.inputs as reading
from whytrust.core import Parts, generator
from whytrust.engine import single_threaded
from whytrust.features import SharedFeatures, shared_features
from whytrust.planting import Plant, planted
from whytrust.question import Question
from whytrust.readers import Reading, at_most, limit_of, read
from whytrust.store import Block, Result
from whytrust.studies.casewise import each
from whytrust.studies.choosing import BUDGETS, Explained, chosen
from whytrust.studies.described import scores_told, words
from whytrust.studies.insight_models import Trained, content
from whytrust.studies.mistrust import truly_trusted

TRIES = 400
"""Models that are trained, at most, until a pair is found."""
ENOUGH = 8
"""So many models that are all alike show that the seed changes nothing."""
VALIDATED = 0.2
"""The share of the given inputs that models are validated, and explained, on."""
ALIKE, APART = 0.001, 0.05
"""Validation accuracies of a pair differ by no more than the one, accuracies in the world by no less than the other."""
IN_TRAINING, IN_THE_WORLD = (0.1, 0.2), (0.1, 0.1)
"""Shares of the inputs of each class that an artefact is planted in."""
ASKED = 8
"""Inputs whose scores stand for what is trained."""
HELD = 0.5
"""A shared feature is an artefact's where at least this share of its parts hold it."""


@dataclass(frozen=True, eq=False)
class ChoiceStudy:
    """How often do readers of B explanations choose the better of two models that are equal on validation?

    `train` is (inputs, labels, seed) -> model or an unfitted scikit-learn estimator. `world` are inputs and labels of what the
    model will meet. Each pair is a case of its own: artefacts, split and models are drawn anew. It misleads where no planted
    artefact matters: then the pair differs by chance, which no explanation can show.
    """

    train: Any
    inputs: Any
    labels: NDArray[Any]
    world: Any
    world_labels: NDArray[Any]
    plants: tuple[Plant, ...]
    explainers: Mapping[str, Any]
    pairs: int = 100
    explained: int | None = None  # validation inputs that are explained, at most
    budgets: tuple[int, ...] = BUDGETS
    tries: int = TRIES
    parts: Any = None
    of_parts: Mapping[str, Any] | None = None
    features: int | None = None  # parts that a reader takes from an explanation; None is ten, but no more than a quarter
    seed: int = 0
    spec: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse at once what could only fail after models were trained."""
        for name in ("pairs", "tries", "explained", "features"):
            value, least = getattr(self, name), 2 if name == "tries" else 1
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least
            if not whole and not (value is None and name in ("explained", "features")):
                raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
        several = isinstance(self.budgets, tuple | list) and len(self.budgets) > 0
        if not several or any(isinstance(b, bool) or not isinstance(b, int | np.integer) or b < 1 for b in self.budgets):
            raise ValueError(f"budgets must be whole numbers >= 1, such as (1, 5, 10), got {self.budgets!r}")
        object.__setattr__(self, "budgets", tuple(sorted({int(b) for b in self.budgets})))
        if len(self.classes) != 2 or set(self.world_labels.tolist()) - set(self.classes):
            raise ValueError(f"labels must be of two classes, the same in the world, got {len(self.classes)} and "
                             f"{len(set(self.world_labels.tolist()))}; choose two of them")

    @property
    def classes(self) -> list[Any]:
        """The two labels, in order; artefacts are planted more often in inputs of the second, and it is what is explained."""
        return sorted(set(self.labels.tolist()))

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        digest = hashlib.blake2b(digest_size=8)
        for items, labels in ((self.inputs, self.labels), (self.world, self.world_labels)):
            for item, label in zip(_each(items), labels.tolist(), strict=True):
                digest.update(f"{label}|".encode() + content(item))
        return {"study": "trust", "seed": self.seed, "hashes": {"inputs": digest.hexdigest(), "model": self._said()}, "spec": {
            "experiment": "model", "plants": [words(plant) for plant in self.plants], "train": words(self.train),
            "explainers": {name: words(one) for name, one in self.explainers.items()},
            "of_parts": {name: words(one) for name, one in (self.of_parts or {}).items()},
            "pairs": self.pairs, "explained": self.explained, "budgets": [int(b) for b in self.budgets], "tries": self.tries,
            "parts": words(self.parts), "features": self.features, **(self.spec or {})}}

    def _said(self) -> str:
        """What one trained model says of some inputs, as a hash: a function may train other models than before."""
        drawn = self._drawn("pair-0000")
        trained, items = self._trained(drawn, self.seed), drawn.validated[0]
        with single_threaded():
            return scores_told(trained.model, (_some(items, np.array([i])) for i in range(min(len(items), ASKED))))

    def blocks(self) -> Sequence[Block]:
        """A pair each."""
        return [Block(f"{number:04d}", (f"pair-{number:04d}",)) for number in range(self.pairs)]

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterator[Result]:
        """Find the pair, explain both on the validation inputs, and let readers choose."""
        return each(block, lambda case: self._pair(case, on_calls))

    def _pair(self, case: str, on_calls: Callable[[int], None]) -> dict[str, Any]:
        drawn = self._drawn(case)
        better, worse, facts = self._found(case, drawn)
        cutting = self._cutting(drawn)
        items = _each(drawn.validated[0])[:self.explained]
        cuts = [reading.cut(item, self.parts, better.model.layout, dict(cutting), better.model.reads) for item in items]
        shared = shared_features(better.model, cuts, seed=self.seed)
        suspects = self._suspects(cuts, shared)
        failures: dict[str, str] = {}
        sides = [self._explained(one, cuts, shared, suspects, f"{case} {side}", failures, on_calls)
                 for side, one in (("better", better), ("worse", worse))]
        both, changed = [side[0] for side in sides], [side[1] for side in sides]
        names = [name for name in self.explainers if name not in failures]
        if not names:
            raise ValueError(f"no explainer could explain this pair: {'; '.join(failures.values())}")
        right = {name: chosen(both[0][name], both[1][name], suspects, self.budgets, generator(self.seed, case, name))
                 for name in names}
        named = {name: [float(np.mean([np.isin(suspects, r.features).any() for r in one[name].readings])) for one in both]
                 for name in names}
        return {"case": case, "status": "ok", **facts, "suspects": len(suspects), "right": right, "named": named,
                "failures": failures, "inputs": len(items), "changed": changed,
                "oracle": 0.5 if changed[0] == changed[1] else float(changed[0] < changed[1])}

    def _explained(self, trained: Trained, cuts: Sequence[Parts], shared: SharedFeatures, suspects: NDArray[np.intp], case: str,
                   failures: dict[str, str], on_calls: Callable[[int], None]) -> tuple[dict[str, Explained], int]:
        """What readers take from every explainer, and how many decisions change when all suspects are hidden.

        Explainers share what the model says of an input. One that fails is left out and told.
        """
        target = list(trained.classes).index(self.classes[1])
        readings: dict[str, list[Reading]] = {name: [] for name in self.explainers}
        marked = np.isin(np.arange(len(shared.names)), suspects)[None]
        changed = 0
        for number, (cut, features) in enumerate(zip(cuts, shared.of_parts, strict=True)):
            question = Question(trained.model, cut, target, on_calls=on_calls)
            stands = trained.label(question.original) == self.classes[1]
            limit = limit_of(trained.model, question.original, target)
            for name, explainer in self.explainers.items():
                if name in failures:
                    continue
                try:
                    e = explainer(question, generator(self.seed, case, name, number))
                    readings[name].append(read(e, features, limit, at_most(self.features, len(features)), stands))
                except (ValueError, TypeError) as error:
                    failures[name] = f"{type(error).__name__}: {error}"
            changed += not truly_trusted(question, features, marked, generator(self.seed, case, "changed", number))[0]
        return {name: Explained(tuple(readings[name]), len(shared.names)) for name in self.explainers
                if name not in failures}, int(changed)

    # --- data and models ------------------------------------------------------------------------------------------------

    def _drawn(self, case: str) -> _Drawn:
        """Split the inputs anew, and plant the artefacts anew."""
        rng = generator(self.seed, case, "data")
        order = rng.permutation(len(self.labels))
        end = len(order) - round(VALIDATED * len(order))
        every = [(_some(self.inputs, order[:end]), self.labels[order[:end]]), (_some(self.inputs, order[end:]),
                 self.labels[order[end:]]), (self.world, self.world_labels)]
        sets = []
        for (items, labels), shares in zip(every, (IN_TRAINING, IN_TRAINING, IN_THE_WORLD), strict=True):
            here = {label: share for label, share in zip(self.classes, shares, strict=True) if label in labels.tolist()}
            for plant in self.plants:
                items, _ = planted(items, labels.tolist(), plant, here, rng)
            sets.append((items, labels))
        return _Drawn(sets[0], sets[1], sets[2])

    def _found(self, case: str, drawn: _Drawn) -> tuple[Trained, Trained, dict[str, Any]]:
        """(the better, the worse, what is known of them): the first two of many models that make a pair."""
        seen: list[tuple[int, float, float]] = []
        for attempt in range(self.tries):
            seed = int(generator(self.seed, case, "model", attempt).integers(2**31))
            model = self._trained(drawn, seed)
            here = (seed, accuracy(model, drawn.validated), accuracy(model, drawn.world))
            for other in seen:
                if abs(here[1] - other[1]) <= ALIKE and abs(here[2] - other[2]) >= APART:
                    best, last = sorted((here, other), key=lambda one: -one[2])
                    facts = {"validation": [best[1], last[1]], "world": [best[2], last[2]], "trained": attempt + 1}
                    return self._trained(drawn, best[0]), self._trained(drawn, last[0]), facts
            seen.append(here)
            if len(seen) == ENOUGH and len({one[1:] for one in seen}) == 1:
                raise ValueError(f"the first {ENOUGH} models were right equally often everywhere: training gives the same "
                                 "model for every seed; pass an estimator that draws at random, or a function of its seed")
        raise ValueError(f"no two of {self.tries} models were equal on validation and {APART:.0%} apart in the world (they had "
                         f"{min(s[2] for s in seen):.1%} to {max(s[2] for s in seen):.1%} there); plant more artefacts, use a "
                         "model that differs more from seed to seed, or try more (tries=)")

    def _trained(self, drawn: _Drawn, seed: int) -> Trained:
        return Trained.by(self.train, drawn.trained[0], drawn.trained[1].tolist(), seed, {})

    def _cutting(self, drawn: _Drawn) -> dict[str, Any]:
        """How inputs are cut; rows of a table against those that the models are trained on, artefacts and all."""
        given = dict(self.of_parts or {})
        return reading.prepare({**given, "background": drawn.trained[0]} if self.plants[0].domain == "tabular" else given)

    def _suspects(self, cuts: Sequence[Parts], shared: SharedFeatures) -> NDArray[np.intp]:
        """The shared features that are an artefact's."""
        held, every = np.zeros(len(shared.names)), np.zeros(len(shared.names))
        for cut, features in zip(cuts, shared.of_parts, strict=True):
            holds = np.any([plant.parts_of(cut) for plant in self.plants], axis=0)
            np.add.at(held, features, holds)
            np.add.at(every, features, 1)
        return np.flatnonzero((held > 0) & (held >= HELD * every))


@dataclass(frozen=True)
class _Drawn:
    """What a pair is trained, validated and later met on: inputs and labels."""

    trained: tuple[Any, NDArray[Any]]
    validated: tuple[Any, NDArray[Any]]
    world: tuple[Any, NDArray[Any]]


def accuracy(trained: Trained, data: tuple[Any, NDArray[Any]]) -> float:
    """How often the model is right."""
    said = trained.model.labels(trained.model(data[0]))
    return float(np.mean([trained.classes[one] == truth for one, truth in zip(said.tolist(), data[1].tolist(), strict=True)]))


def _each(items: Any) -> list[Any]:
    return [items.iloc[i] for i in range(len(items))] if hasattr(items, "iloc") else list(items)


def _some(items: Any, which: NDArray[np.intp]) -> Any:
    if hasattr(items, "iloc"):
        return items.iloc[which].reset_index(drop=True)
    return items[which] if isinstance(items, np.ndarray) else [items[i] for i in which.tolist()]
