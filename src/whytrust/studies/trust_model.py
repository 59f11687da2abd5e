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
from whytrust import api
from whytrust.checked import CheckedModel
from whytrust.core import Parts, generator
from whytrust.explanation import Explanation
from whytrust.features import SharedFeatures, shared_features
from whytrust.planting import Plant, planted
from whytrust.question import Question
from whytrust.readers import limit_of, read
from whytrust.store import Block, Result
from whytrust.studies.choosing import BUDGETS, Explained, chosen
from whytrust.studies.described import told
from whytrust.studies.trust_trainers import column_names, trainer

TRIES = 400
"""Models that are trained, at most, until a pair is found."""
VALIDATED = 0.2
"""The share of the given inputs that models are validated, and explained, on."""
ALIKE, APART = 0.001, 0.05
"""Validation accuracies of a pair differ by no more than the one, accuracies in the world by no less than the other."""
IN_TRAINING, IN_THE_WORLD = (0.1, 0.2), (0.1, 0.1)
"""Shares of the inputs of each class that an artefact is planted in."""
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
    features: int | None = None  # parts that a reader takes from an explanation; None is all that it names
    seed: int = 0
    spec: Mapping[str, Any] | None = None

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        digest = hashlib.blake2b(digest_size=8)
        for item, label in zip([*self.inputs, *self.world], [*self.labels, *self.world_labels], strict=True):
            digest.update(f"{label}|{item if isinstance(item, str) else np.asarray(item).tobytes()!r}".encode())
        return {"study": "trust", "seed": self.seed, "hashes": {"inputs": digest.hexdigest()}, "spec": {
            "experiment": "model", "plants": [plant.name for plant in self.plants], "train": told(self.train),
            "explainers": {name: told(one) for name, one in self.explainers.items()},
            "of_parts": {name: told(one) for name, one in (self.of_parts or {}).items()},
            "pairs": self.pairs, "explained": self.explained, "budgets": list(self.budgets), "tries": self.tries,
            "parts": str(self.parts), "features": self.features, **(self.spec or {})}}

    def blocks(self) -> Sequence[Block]:
        """A pair each."""
        return [Block(f"{number:04d}", (f"pair-{number:04d}",)) for number in range(self.pairs)]

    def work(self, block: Block, on_calls: Callable[[int], None]) -> Iterator[Result]:
        """Find the pair, explain both on the validation inputs, and let readers choose."""
        for case in block.cases:
            yield Result(self._pair(case, on_calls))

    def _pair(self, case: str, on_calls: Callable[[int], None]) -> dict[str, Any]:
        drawn = self._drawn(case)
        better, worse, facts = self._found(case, drawn)
        cutting = self._cutting(drawn)
        items = _each(drawn.validated[0])[:self.explained]
        cuts = [reading.cut(item, self.parts, better.layout, dict(cutting), better.reads) for item in items]
        shared = shared_features(better, cuts, seed=self.seed)
        suspects = self._suspects(cuts, shared)
        failures: dict[str, str] = {}
        changed = [0, 0]
        both = []
        for side, model in enumerate((better, worse)):
            questions = [Question(model, cut, 1, on_calls=on_calls) for cut in cuts]
            both.append(self._explained(questions, shared, case, failures))
            changed[side] = self._changed(questions, shared, suspects, case)
        names = [name for name in self.explainers if name not in failures]
        if not names:
            raise ValueError(f"no explainer could explain this pair: {'; '.join(failures.values())}")
        right = {name: chosen(both[0][name], both[1][name], shared.of_parts, suspects, self.budgets,
                              generator(self.seed, case, name)) for name in names}
        named = {name: [float(np.mean([np.isin(suspects, r.features).any() for r in one[name].readings])) for one in both]
                 for name in names}
        return {"case": case, "status": "ok", **facts, "suspects": len(suspects), "right": right, "named": named,
                "failures": failures, "inputs": len(items), "changed": changed,
                "oracle": 0.5 if changed[0] == changed[1] else float(changed[0] < changed[1])}

    def _changed(self, questions: Sequence[Question], shared: SharedFeatures, suspects: NDArray[np.intp], case: str) -> int:
        """How many decisions change when all suspects are hidden: what a reader would go by who knew everything."""
        count = 0
        for number, (question, features) in enumerate(zip(questions, shared.of_parts, strict=True)):
            limit = limit_of(question.model, question.original, 1)
            without = question.score(~np.isin(features, suspects)[None], generator(self.seed, case, "changed", number))[0]
            count += int((question.original[1] > limit) != (without > limit))
        return count

    def _explained(self, questions: Sequence[Question], shared: SharedFeatures, case: str,
                   failures: dict[str, str]) -> dict[str, Explained]:
        """Every explainer on every input; they share what the model says of an input. One that fails is left out and told."""
        found: dict[str, list[Explanation]] = {name: [] for name in self.explainers}
        for number, question in enumerate(questions):
            for name, explainer in self.explainers.items():
                if name in failures:
                    continue
                try:
                    found[name].append(explainer(question, generator(self.seed, case, name, number)))
                except (ValueError, TypeError) as error:
                    failures[name] = f"{type(error).__name__}: {error}"
        model = questions[0].model
        return {name: self._read(tuple(some), shared, model) for name, some in found.items() if name not in failures}

    def _read(self, explanations: tuple[Explanation, ...], shared: SharedFeatures, model: CheckedModel) -> Explained:
        limit = limit_of(model, np.zeros(2), 1)
        readings = tuple(read(e, features, limit, self.features)
                         for e, features in zip(explanations, shared.of_parts, strict=True))
        return Explained(explanations, readings, shared.matrix(explanations))

    # --- data and models ------------------------------------------------------------------------------------------------

    def _drawn(self, case: str) -> _Drawn:
        """Split the inputs anew, and plant the artefacts anew."""
        rng = generator(self.seed, case, "data")
        order = rng.permutation(len(self.labels))
        end = len(order) - round(VALIDATED * len(order))
        every = [(_some(self.inputs, order[:end]), self.labels[order[:end]]), (_some(self.inputs, order[end:]),
                 self.labels[order[end:]]), (self.world, self.world_labels)]
        classes = sorted(set(self.labels.tolist()))
        if len(classes) != 2:
            raise ValueError(f"labels must be of two classes, got {len(classes)}; choose two of them")
        sets = []
        for (items, labels), shares in zip(every, (IN_TRAINING, IN_TRAINING, IN_THE_WORLD), strict=True):
            for plant in self.plants:
                items, _ = planted(items, labels.tolist(), plant, dict(zip(classes, shares, strict=True)), rng)
            sets.append((items, labels))
        return _Drawn(sets[0], sets[1], sets[2], tuple(classes))

    def _found(self, case: str, drawn: _Drawn) -> tuple[CheckedModel, CheckedModel, dict[str, Any]]:
        """(the better, the worse, what is known of them): the first two of many models that make a pair."""
        seen: list[tuple[int, float, float]] = []
        for attempt in range(self.tries):
            seed = int(generator(self.seed, case, "model", attempt).integers(2**31))
            model = self._trained(drawn, seed)
            here = (seed, drawn.accuracy(model, drawn.validated), drawn.accuracy(model, drawn.world))
            for other in seen:
                if abs(here[1] - other[1]) <= ALIKE and abs(here[2] - other[2]) >= APART:
                    best, last = sorted((here, other), key=lambda one: -one[2])
                    facts = {"validation": [best[1], last[1]], "world": [best[2], last[2]], "trained": attempt + 1}
                    return self._trained(drawn, best[0]), self._trained(drawn, last[0]), facts
            seen.append(here)
        raise ValueError(f"no two of {self.tries} models were equal on validation and {APART:.0%} apart in the world (they had "
                         f"{min(s[2] for s in seen):.1%} to {max(s[2] for s in seen):.1%} there); plant more artefacts, use a "
                         "model that differs more from seed to seed, or try more (tries=)")

    def _trained(self, drawn: _Drawn, seed: int) -> CheckedModel:
        if hasattr(self.train, "fit"):
            domain = self.plants[0].domain
            names = column_names(self.inputs) if domain == "tabular" and not hasattr(self.inputs, "columns") else None
            items, labels = drawn.trained
            return api.model(trainer(self.train, domain, names)(items, labels.tolist(), frozenset(), seed))
        return api.model(self.train(*drawn.trained, seed))

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
    classes: tuple[Any, ...]

    def accuracy(self, model: CheckedModel, data: tuple[Any, NDArray[Any]]) -> float:
        """How often the model is right."""
        said = model.labels(model(data[0]))
        return float(np.mean([self.classes[one] == truth for one, truth in zip(said.tolist(), data[1].tolist(), strict=True)]))


def _each(items: Any) -> list[Any]:
    return [items.iloc[i] for i in range(len(items))] if hasattr(items, "iloc") else list(items)


def _some(items: Any, which: NDArray[np.intp]) -> Any:
    if hasattr(items, "iloc"):
        return items.iloc[which].reset_index(drop=True)
    return items[which] if isinstance(items, np.ndarray) else [items[i] for i in which.tolist()]
