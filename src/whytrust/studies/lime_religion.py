"""Figures 9 and 10 of Ribeiro et al. (2016): can readers choose the model that generalises, and repair one that does not?

Atheism against Christianity on 20 newsgroups, where a model reads headers, signatures and names. Simulated readers take the
place of the paper's crowd: they know which words belong to the frame of a post rather than to what people write, from training
posts alone, and they make mistakes. The paper's web pages are not to be had; test posts without their frame stand in for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from whytrust import api, engine, inputs
from whytrust.checked import CheckedModel
from whytrust.core import generator, near, need
from whytrust.engine import Block, Result
from whytrust.explainers.baselines import Random
from whytrust.explainers.greedy import Greedy
from whytrust.question import Question
from whytrust.readers import named_parts
from whytrust.store import Store
from whytrust.studies import lime_religion_figures as figures
from whytrust.studies import lime_religion_findings as found_in
from whytrust.studies import markdown
from whytrust.studies.lime_faithful import paper_lime
from whytrust.studies.lime_religion_data import TOKEN
from whytrust.studies.lime_religion_models import HELD_OUT, Religion, chosen, pipeline, prepared
from whytrust.studies.lime_religion_readers import FLOOR
from whytrust.studies.trust_repair import RepairStudy, accuracy
from whytrust.studies.trust_trainers import TextTrainer

EXPERIMENTS = ("fig9", "fig10")
SAMPLES = {"fig9": 5000, "fig10": 2000}
"""Masks of LIME for each explanation."""
READERS, DOCUMENTS, WORDS = 100, 6, 6
PATHS = (10, 5, 5)
OnCalls = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class ChoiceStudy:
    """Figure 9: both models explained on the same held-out posts; what readers make of it costs nothing and is told later."""

    folder: str
    readers: int = READERS
    samples: int = SAMPLES["fig9"]
    seed: int = 0
    block: int = 10

    @cached_property
    def data(self) -> Religion:
        """The posts."""
        return prepared(self.folder)

    @cached_property
    def explainers(self) -> dict[str, Any]:
        """Those of the figure; random explanations are drawn for each reader when a run is told."""
        return {"greedy": Greedy(features=WORDS), "lime": paper_lime(self.samples, WORDS)}

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        data = self.data
        spec = {"experiment": "fig9", "explainers": {name: repr(one) for name, one in self.explainers.items()},
                "readers": self.readers, "documents": DOCUMENTS, "features": WORDS, "held_out": HELD_OUT,
                "original": chosen(self.folder, False), "cleaned": chosen(self.folder, True)}
        hashes = {name: getattr(data, name).digest() for name in ("training", "validation", "test", "world")}
        return {"format": 1, "study": "lime-religion", "spec": spec, "seed": self.seed, "hashes": hashes,
                "about": data.counts()}

    def blocks(self) -> list[Block]:
        """The models themselves, then a few posts at a time."""
        cases = [f"{i:04d}" for i in range(len(self.data.validation))]
        return [Block("models", ("models",)), *(Block(f"{name}-{cases[start]}", tuple(f"{name}.{case}" for case in
                                                                                      cases[start:start + self.block]))
                                                for start in range(0, len(cases), self.block)
                                                for name in (*self.explainers, FLOOR))]

    def work(self, block: Block, on_calls: OnCalls) -> Iterator[Result]:
        """What an explainer names for both models."""
        if block.id == "models":
            yield Result({"case": "models", "status": "ok", **{name: self._measured(name) for name in ("original", "cleaned")}})
            return
        for case in block.cases:
            explainer, _, index = case.partition(".")
            yield Result({"case": case, "status": "ok", "explainer": explainer, "index": int(index),
                          **{name: self._shown(name, explainer, int(index), on_calls) for name in self._models}})

    def _measured(self, name: str) -> dict[str, Any]:
        model, known = self._models[name], self.data.training.labels
        assert known is not None
        return {**{what: accuracy(model, data, known) for what, data in (
            ("test", self.data.test), ("world", self.data.world), ("held_out", self.data.validation))},
            **chosen(self.folder, name == "cleaned")}

    def _shown(self, name: str, explainer: str, index: int, on_calls: OnCalls) -> list[list[Any]]:
        """[word, weight, is it foreign?] of the words that an explanation of one post has, the largest first; else of all."""
        model, data = self._models[name], self.data
        parts = inputs.cut(data.validation.item(index), "bag", model.layout, {"split": TOKEN})
        if explainer == FLOOR:
            return [[word, 0.0, not data.generalises(word)] for word in parts.names]
        question = Question(model, parts, on_calls=on_calls)
        label = int(model.labels(question.original[None])[0])
        e = self.explainers[explainer](question.watching([label])[0], generator(self.seed, "explain", index, explainer, name))
        return [[parts.names[part], float(e.scores[part]), not data.generalises(parts.names[part])]
                for part in named_parts(e, WORDS)]

    @cached_property
    def _models(self) -> dict[str, CheckedModel]:
        """The original and the cleaned one, as they were tuned."""
        found, data = {}, self.data
        assert data.training.labels is not None
        for name, without in {"original": frozenset[str](), "cleaned": data.cleaned}.items():
            train = TextTrainer(pipeline(**chosen(self.folder, name == "cleaned")))
            found[name] = api.model(train(data.training.inputs, data.training.labels, without, self.seed))
        return found

    def __getstate__(self) -> dict[str, Any]:
        """Without what was worked out: another process does that for itself."""
        return {name: value for name, value in vars(self).items() if name not in ("data", "explainers", "_models")}


@dataclass(frozen=True, eq=False)
class ReligionRepair(RepairStudy):
    """Figure 10: the original model, repaired by readers of its explanations."""

    told: dict[str, int] = field(default_factory=dict)

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run, and how many posts there are."""
        base = super().manifest()
        spec = {**base["spec"], "experiment": "fig10"}
        return {**base, "study": "lime-religion", "spec": spec, "about": {**base["about"], **self.told}}


def repair(folder: str, scale: float = 1.0, seed: int = 0, samples: int | None = None) -> ReligionRepair:
    """The study behind Figure 10, with a share of the paper's readers."""
    data = prepared(folder)
    study = ReligionRepair(
        pipeline(**chosen(folder, False)), data.training, data.validation, data.world, data.generalises,
        {"lime": paper_lime(samples or SAMPLES["fig10"], 10), "random": Random()}, readers=PATHS, parts="bag",
        options={"split": TOKEN}, seed=seed, about="atheism and Christianity of 20 newsgroups", told=data.counts())
    return replace(study, readers=study.scaled(scale))


# --- running and telling ----------------------------------------------------------------------------------------------


def run(experiment: str, data: str | Path | None, scale: float, out: str | Path, jobs: engine.Jobs, seed: int,
        samples: int | None = None) -> Path:
    """Run an experiment, or go on with it, and write its tables (tables.md) and figure beside it; the run's folder comes back.

    Without data nothing is run: tables and figure are made from what the folder holds.
    """
    _check(experiment)
    need("matplotlib.figure", "report")  # before the work, not after
    folder = Path(out)
    if data is not None:
        if not 0 < scale <= 1:
            raise ValueError(f"scale must be a share of the readers, above 0 and at most 1, got {scale!r}")
        study = (repair(str(data), scale, seed, samples) if experiment == "fig10" else
                 ChoiceStudy(str(data), max(round(scale * READERS), 2), samples or SAMPLES["fig9"], seed))
        engine.run(study, folder, jobs, label="reproducing")
    elif not is_reproduction(folder):
        raise ValueError(f"--data must name a folder of 20 newsgroups, for {folder} holds no run of this study to report on")
    store = Store.open(folder)
    found = findings(store)
    pictures = figures.draw(found, store, folder / "figures")
    told = markdown.told(found, [path.relative_to(folder).as_posix() for path in pictures])
    (folder / "tables.md").write_text(told, encoding="utf-8")
    return folder


def is_reproduction(folder: str | Path) -> bool:
    """Whether a folder holds a run of one of these, finished or not."""
    if not (Path(folder) / "manifest.json").is_file():
        return False
    return bool(Store.open(folder).manifest.get("study") == "lime-religion")


def findings(store: Store) -> dict[str, Any]:
    """What a run has found so far, in the form that all experiments on trust have, beside what was published."""
    return found_in.choice(store) if store.manifest["spec"]["experiment"] == "fig9" else found_in.repaired(store)


def report(folder: str | Path, as_json: bool = False, experiment: str = "all") -> str:
    """What a run has found so far beside what was published, as Markdown or JSON."""
    store = Store.open(folder)
    held = store.manifest["spec"]["experiment"]
    if experiment != "all":
        _check(experiment)
        if experiment != held:
            raise ValueError(f"{folder} holds a run of {held}, not of {experiment}; name the folder of that one")
    found = findings(store)
    pictures = sorted(path.relative_to(folder).as_posix() for path in Path(folder).glob("figures/*.png"))
    return json.dumps(found) if as_json else markdown.told(found, pictures)


def _check(experiment: str) -> None:
    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}"
                         f"{near(experiment, EXPERIMENTS)}")
