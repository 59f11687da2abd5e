"""What a user types to find out whether explanations help somebody decide: `trust`, with simulated readers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import api, engine
from whytrust import inputs as reading
from whytrust.core import generator, near
from whytrust.domains.columns import default_names
from whytrust.explainers import NAMES
from whytrust.planting import Beep, Column, Patch, Plant, Tokens, planted
from whytrust.report.records import bounded, understood
from whytrust.reporting import Reported
from whytrust.store import Store
from whytrust.studies import contenders, trust_faithfulness, trust_findings, trust_insight, trust_repair
from whytrust.studies.data import gather
from whytrust.studies.mistrust import EVERYTHING
from whytrust.studies.trust_model import ChoiceStudy
from whytrust.studies.trust_prediction import PredictionStudy
from whytrust.studies.trust_repair import Labelled, RepairStudy

EXPERIMENTS = {
    "prediction": "does a reader mistrust the right predictions when some features are not to be trusted?",
    "model": "does a reader choose the better of two models that validation cannot tell apart?",
    "faithfulness": "do explanations find the features that a readable model really uses?",
    "repair": "does the model get better in the world when a reader deletes what explanations expose?",
    "insight": "do explanations give away that a model goes by an artefact?",
}
FINDINGS = {"prediction": trust_findings.prediction, "model": trust_findings.model, "repair": trust_repair.findings,
            "insight": trust_insight.findings, "faithfulness": trust_faithfulness.findings}
USUAL = ("lime", "greedy")
LEAKS, SPREADS = (0.05, 0.3), (0.1, 0.1)
"""For a repair: shares of the two classes that an artefact leaks into, in training and in the world."""
HELD_OUT = 1 / 3
"""The share of the inputs that plays the world where none is given."""


class Trust(Reported):
    """What an experiment found: `print(trust)` says it in words, `save_html` shows it, `to_json` has every number."""

    page = "trust.html"

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Trust:
        """The experiment in a run folder, finished or not."""
        found = cls(Store.open(Path(folder)))
        if found.experiment not in FINDINGS:
            raise ValueError(f"{folder} must hold a run of wt.trust, and holds one of {found.store.manifest.get('study')!r}")
        return found

    @property
    def experiment(self) -> str:
        """Which of the five it is."""
        with understood(self.store.folder):
            spec: Mapping[str, Any] = self.store.manifest.get("spec", {})
            return str(spec.get("experiment", self.store.manifest.get("study")))

    @cached_property
    def findings(self) -> dict[str, Any]:
        """Every number, as plain data."""
        with understood(self.store.folder):
            bounded(self.store)
            return FINDINGS[self.experiment](self.store)

    def __repr__(self) -> str:
        """One line."""
        cases = self.findings["cases"]
        return f"<trust, experiment {self.experiment}: {cases['done']} of {cases['of']} cases, {cases['failed']} failed>"


def is_trust(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a run of one of these experiments, finished or not."""
    if not (Path(folder) / "manifest.json").is_file():
        return False
    manifest = Store.open(Path(folder)).manifest
    with understood(folder):
        of_trust = manifest.get("study") in ("trust", "insight", "repair")
        return of_trust and manifest.get("spec", {}).get("experiment") in EXPERIMENTS


def trust(model: Any, inputs: Any, explainers: Any = None, experiment: str = "prediction", *, labels: Any = None,
          world: tuple[Any, Any] | None = None, plant: Any = None, judge: Any = None, parts: Any = None,
          out: str | os.PathLike[str] | None = None, jobs: engine.Jobs = 1, seed: int = 0, limit: int | None = None,
          **options: Any) -> Trust:
    """Do explanations help somebody decide? Simulated readers of each explainer's explanations, beside readers of random ones.

    `experiment` is one of prediction, faithfulness (a trained `model`, and inputs to explain), model, repair and insight. For
    these three `model` is what is trained again and again: an unfitted scikit-learn estimator, or a function (inputs, labels,
    seed) -> model (for repair: (inputs, labels, deleted, seed) -> model), and `labels` are needed. `world` is (inputs, labels)
    of what the model will meet; without it a part of the inputs is held out. `plant` is the artefact, or several (see
    whytrust.planting); without it a few are made up. `judge` is, for repair, a function that says of a feature whether it
    generalises; without it planted artefacts are what does not.

    The run is kept in `out`: the same call goes on where it stopped. Further options go to the parts (background, fill, …) and
    to the experiment: rounds, share, features, components (prediction); pairs, explained, budgets, tries (model); readers,
    instances, features, picks (repair); readers, training, top (insight).
    """
    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}"
                         f"{near(experiment, EXPERIMENTS)}")
    generator(seed)
    _refuse_unused(experiment, labels=labels, world=world, plant=plant, judge=judge)
    asked = _Asked(model, inputs, explainers, labels, world, plant, judge, parts, int(seed), limit, dict(options))
    asked.refuse_odd(experiment)
    study = asked.study(experiment)
    if asked.options:
        known = sorted({name for names in reading.OPTIONS.values() for name in names} | _own(type(study)))
        name = next(iter(asked.options))
        raise TypeError(f"experiment {experiment!r} has no option {name!r}{near(name, known)}; it has {', '.join(known)}")
    folder = Path(tempfile.mkdtemp(prefix="whytrust-trust-")) / "run" if out is None else Path(out)
    return Trust(engine.run(study, folder, jobs, label="reading"))


USED = {"prediction": (), "faithfulness": ("labels",), "model": ("labels", "world", "plant"), "insight": ("labels", "plant"),
        "repair": ("labels", "world", "plant", "judge")}
"""Which arguments mean something in which experiment."""


def _refuse_unused(experiment: str, **given: Any) -> None:
    for name, value in given.items():
        if value is not None and name not in USED[experiment]:
            fitting = ", ".join(one for one, names in USED.items() if name in names)
            raise TypeError(f"{name} means nothing in experiment {experiment!r}, which would ignore it; it is for {fitting}")
    if given["plant"] is not None and given["judge"] is not None:
        raise TypeError("plant makes artefacts that do not generalise, and judge says what does not: pass one of the two")


TAKEN = {"model", "train", "data", "inputs", "labels", "explainers", "plant", "plants", "parts", "of_parts", "options", "seed",
         "spec", "command", "world", "world_labels", "training", "validation", "judge", "about", "model_options"}
"""Fields of the studies that are no options of their own."""


def _own(kind: type) -> set[str]:
    """The options that are an experiment's own."""
    return {one.name for one in fields(kind)} - (TAKEN - {"training"} if kind is trust_insight.InsightStudy else TAKEN)


@dataclass
class _Asked:
    """One call of trust; what is taken from `options` is gone, so that what is left is nobody's."""

    given: Any
    inputs: Any
    explainers: Any
    labels: Any
    world: tuple[Any, Any] | None
    plant: Any
    judge: Any
    parts: Any
    seed: int
    limit: int | None
    options: dict[str, Any]
    background: Any = None

    def refuse_odd(self, experiment: str) -> None:
        """What could only fail later, or would be ignored."""
        if hasattr(self.inputs, "__len__") and not len(self.inputs):
            raise ValueError("inputs must hold at least one input, got none")
        if self.labels is not None and (isinstance(self.labels, str) or np.ndim(self.labels) != 1):
            raise ValueError("labels must be one class for each input, in a list or array, got "
                             f"{type(self.labels).__name__} of shape {np.shape(self.labels)}")
        sizes = [len(one) for one in self.world] if isinstance(self.world, tuple | list) else []
        if self.world is not None and (len(sizes) != 2 or sizes[0] != sizes[1]):
            came = f"{len(sizes)} of them, of {sizes} entries" if sizes else type(self.world).__name__
            raise ValueError(f"world must be (inputs, labels), one label for each input, got {came}")
        for one in self.plant if isinstance(self.plant, tuple | list) else [self.plant]:
            if one is not None and not all(hasattr(one, name) for name in ("domain", "into", "without", "parts_of")):
                raise TypeError("plant must be artefacts of whytrust.planting, such as Tokens(('word',)) or Patch(), got "
                                f"{one!r:.60}")
        if self.judge is not None and not callable(self.judge):
            raise TypeError("judge must be a function that says of a feature's name whether it generalises, got "
                            f"{self.judge!r:.60}")
        if self.options.get("background") is not None and experiment in ("model", "repair", "insight"):
            raise TypeError(f"background means nothing in experiment {experiment!r}: hidden columns take values of the rows "
                            "that models are trained on, artefacts and all; leave it out")

    def study(self, experiment: str) -> Any:
        """The study of an experiment."""
        makes: dict[str, Callable[[], Any]] = {
            "prediction": self._prediction, "faithfulness": self._faithfulness, "model": self._choice, "repair": self._repair,
            "insight": self._insight}
        return makes[experiment]()

    # --- about a trained model ----------------------------------------------------------------------------------------

    def _prediction(self) -> Any:
        model, data, of_parts = self._given()
        return PredictionStudy(model, data, self._contenders(USUAL, self.background), self.parts, of_parts,
                               seed=self.seed, **self._taken(PredictionStudy))

    def _faithfulness(self) -> Any:
        model, data, of_parts = self._given()
        own = self._taken(trust_faithfulness.FaithfulnessStudy)
        return trust_faithfulness.study(model, data, self._contenders(USUAL, self.background), self.parts, of_parts,
                                        self.labels, self.seed, **own)

    def _given(self) -> tuple[Any, Any, dict[str, Any]]:
        of_parts = self._of_parts()
        background, first = of_parts.get("background"), self.inputs[0] if isinstance(self.inputs, list | tuple) else None
        rows = None if isinstance(first, str) else background  # of texts it is for explainers that learn from training texts
        data = gather(self.inputs, rows).limited(self.limit)
        if rows is None:
            of_parts = {name: one for name, one in of_parts.items() if name != "background"}
        self.background = background
        return reading.for_sounds(api.model(self.given), data.items, self.parts, of_parts, data.read), data, of_parts

    # --- about models to be trained -----------------------------------------------------------------------------------

    def _choice(self) -> Any:
        of_parts, items, labels = self._of_parts(), *self._labelled()
        (items, labels), (world, world_labels) = self._worlds(items, labels)
        plants = self._plants(items, of_parts, 10)
        return ChoiceStudy(self.given, items, labels, world, world_labels, plants, self._contenders(USUAL, None),
                           parts=self.parts, of_parts=of_parts, seed=self.seed, **self._taken(ChoiceStudy))

    def _insight(self) -> Any:
        of_parts, items, labels = self._of_parts(), *self._labelled()
        plants = self._plants(items, of_parts, 1)
        if len(plants) > 1:
            raise ValueError(f"insight is about one artefact, got {len(plants)}; pass one plant")
        if plants[0].domain == "image":
            of_parts.setdefault("fill", "image_mean")  # the mean of a plain patch is the patch itself
        usual = [name for name in trust_insight.EXPLAINERS if name in NAMES]
        return trust_insight.InsightStudy(self.given, items, labels.tolist(), plants[0], self._contenders(usual, None),
                                          parts=self.parts, of_parts=of_parts, seed=self.seed,
                                          **self._taken(trust_insight.InsightStudy))

    def _repair(self) -> Any:
        of_parts, items, labels = self._of_parts(), *self._labelled()
        (items, labels), (world, world_labels) = self._worlds(items, labels)
        judge = self.judge
        if judge is None:
            plants, classes = self._plants(items, of_parts, 10), sorted(set(labels.tolist()))
            rng = generator(self.seed, "plant")
            known: list[str] = []
            for one in plants:
                items, _ = planted(items, labels, one, dict(zip(classes, LEAKS, strict=False)), rng)
                world, _ = planted(world, world_labels, one, dict(zip(classes, SPREADS, strict=False)), rng)
                known += _names(one, items, of_parts.get("names"))
            judge = _Knows(frozenset(known))
        order = generator(self.seed, "validation").permutation(len(labels))
        cut = len(order) - max(len(order) // 4, 1)
        train, valid = ((_some(items, part), labels[part]) for part in (order[:cut], order[cut:]))
        return RepairStudy(self.given, Labelled(*train), Labelled(*valid), Labelled(world, world_labels), judge,
                           self._contenders(("lime",), None) | {"random": NAMES["random"].make()}, parts=self.parts,
                           options=of_parts, seed=self.seed, **self._taken(RepairStudy))

    # --- pieces -------------------------------------------------------------------------------------------------------

    def _labelled(self) -> tuple[Any, np.ndarray[Any, Any]]:
        if self.labels is None:
            raise ValueError("this experiment trains models, so it needs labels=, one for each input")
        table = hasattr(self.inputs, "columns")
        items = self.inputs if table or isinstance(self.inputs, np.ndarray) else list(self.inputs)
        labels = np.asarray(self.labels)
        if len(labels) != len(items):
            raise ValueError(f"labels must have one entry for each input: expected {len(items)}, got {len(labels)}")
        if hasattr(self.given, "classes_"):
            raise ValueError("this experiment trains models itself: pass an estimator that is not fitted, such as "
                             "sklearn.base.clone(model), or a function (inputs, labels, seed) -> model")
        if self.limit is not None and self.limit < len(labels):
            if self.limit < 1:
                raise ValueError(f"limit must be a whole number >= 1, got {self.limit!r}")
            spread = np.linspace(0, len(labels) - 1, self.limit).round().astype(int)
            return _some(items, spread), labels[spread]
        return items, labels

    def _worlds(self, items: Any, labels: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
        if self.world is not None:
            return (items, labels), (self.world[0], np.asarray(self.world[1]))
        order = generator(self.seed, "world").permutation(len(labels))
        cut = round(len(order) * (1 - HELD_OUT))
        return (_some(items, order[:cut]), labels[order[:cut]]), (_some(items, order[cut:]), labels[order[cut:]])

    def _plants(self, items: Any, of_parts: Mapping[str, Any], count: int) -> tuple[Plant, ...]:
        if self.plant is not None:
            return tuple(self.plant) if isinstance(self.plant, Sequence) else (self.plant,)
        first = items.iloc[0] if hasattr(items, "iloc") else items[0]
        short = np.ndim(first) == 1 and len(first) < reading.WHOLE_SOUND
        rows = hasattr(items, "iloc") or short
        domain = "tabular" if rows else reading.domain_of(first, self.parts, dict(of_parts))
        if domain == "text":
            return tuple(Tokens((f"planted{i}",)) for i in range(count))
        if domain == "tabular":
            wide = len(first)
            return tuple(Column(f"planted {i}", wide + i) for i in range(count))
        if domain == "image":
            return tuple(Patch(at=at) for at in ("bottom right", "top left", "bottom left", "top right"))[:count]
        if np.ndim(first) == 2:
            return (Patch(domain="audio"),)
        if of_parts.get("rate") is None:
            raise ValueError("a beep is planted into sounds, and its pitch needs their rate: pass rate=, in samples a second")
        rate = int(of_parts["rate"])
        return tuple(Beep(rate, hertz=rate * share) for share in (0.11, 0.17, 0.23, 0.29))[:count]

    def _contenders(self, usual: Sequence[str], background: Any) -> dict[str, Any]:
        made = contenders.named(usual if self.explainers is None else self.explainers, background, ("random",), "wt.trust")
        if EVERYTHING in made:
            raise ValueError(f"{EVERYTHING!r} is a line that every experiment has; give the explainer another name")
        return {**made, "random": NAMES["random"].make()}

    def _of_parts(self) -> dict[str, Any]:
        known = {name for names in reading.OPTIONS.values() for name in names}
        return {name: self.options.pop(name) for name in list(self.options) if name in known}

    def _taken(self, kind: type) -> dict[str, Any]:
        return {name: self.options.pop(name) for name in list(self.options) if name in _own(kind)}



@dataclass(frozen=True)
class _Knows:
    """A reader's knowledge: what was planted does not generalise, and everything else does."""

    foreign: frozenset[str]

    def __call__(self, feature: str) -> bool:
        """Does it generalise?"""
        return feature not in self.foreign


def _names(plant: Any, items: Any, names: Sequence[str] | None) -> Sequence[str]:
    """What explanations call a word or column that was just planted; columns of a bare array go by their number, or `names`."""
    if not isinstance(plant, Column):
        return tuple(getattr(plant, "words", ()))
    if hasattr(items, "columns"):
        return (plant.column,)
    last = np.shape(items)[1] - 1
    return ((list(names) if names is not None and len(names) > last else default_names(last + 1))[last],)


def _some(items: Any, which: Any) -> Any:
    if hasattr(items, "iloc"):
        return items.iloc[which].reset_index(drop=True)
    return items[which] if isinstance(items, np.ndarray) else [items[i] for i in which.tolist()]
