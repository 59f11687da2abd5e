"""Can a reader of explanations repair a model? (Ribeiro, Singh and Guestrin 2016, § 6.3)

In each round a reader looks at a few explanations of a model and deletes the features that, to the reader's mind, do not
generalise; the model is trained again without them, and the next readers look at the new one. Accuracy is measured on data from
the real world, which no reader sees. Explanations are chosen by submodular pick or at random.

A reader is simulated: `judge` says of every feature whether it generalises, and a reader overlooks some that do not and deletes
some that do. What a reader thinks of a feature is the same in every arm, so that arms differ by what was shown alone. It
misleads where people would not know what `judge` knows, or would tire: it shows what the explanations had to offer.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from whytrust import api, inputs
from whytrust.checked import CheckedModel
from whytrust.core import Floats, Parts, generator
from whytrust.coverage import submodular
from whytrust.engine import Block, Result, single_threaded
from whytrust.explainers.baselines import Random
from whytrust.explainers.lime import Lime
from whytrust.features import SharedFeatures, shared_features
from whytrust.question import Question
from whytrust.readers import named_parts
from whytrust.studies.described import scores_told, words
from whytrust.studies.trust_repair_findings import findings as findings
from whytrust.studies.trust_trainers import Trainer, column_names, trainer

PICKS = ("submodular", "random")
DOMAINS = ("text", "tabular")
KEPT = 40
"""Trained models that are kept at hand; a tree of readers is walked so that more are seldom asked for again."""
ASKED = 8
"""Inputs whose scores stand for what is trained."""
OnCalls = Callable[[int], None]
Deleted = frozenset[str]
Shown = tuple[tuple[str, float], ...]
"""What an explanation shows: features and their weights, the largest first."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Inputs as a model takes them (a list of texts, an array or DataFrame of rows) and their labels."""

    inputs: Any
    labels: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        """As many labels as inputs."""
        if self.labels is not None and len(self.labels) != len(self.inputs):
            raise ValueError(f"there must be one label for each input, got {len(self.labels)} for {len(self.inputs)} inputs")

    def __len__(self) -> int:
        """How many inputs."""
        return len(self.inputs)

    def item(self, index: int) -> Any:
        """One input."""
        return self.inputs.iloc[index] if hasattr(self.inputs, "iloc") else self.inputs[index]

    def digest(self) -> str:
        """The same for the same inputs and labels."""
        told = hashlib.blake2b(digest_size=8)
        for row, label in zip(self._written(), self.labels if self.labels is not None else [None] * len(self), strict=True):
            told.update(f"{row}\t{label}\n".encode())
        return told.hexdigest()

    def rows(self) -> set[str]:
        """What the inputs are, each once."""
        return set(self._written())

    def _written(self) -> list[str]:
        rows = self.inputs.to_numpy().tolist() if hasattr(self.inputs, "to_numpy") else list(self.inputs)
        return [f"{row.tolist() if isinstance(row, np.ndarray) else row!r}" for row in rows]


@dataclass(frozen=True, eq=False)
class RepairStudy:
    """Rounds of reading, deleting and training, for every explainer and way to pick; a block is all that follows one reader.

    `readers` are how many look at each model, round by round: (10, 5, 5) ends in 250 models. `train` is a trainer (see
    trust_trainers) or an unfitted scikit-learn pipeline of texts or estimator of tables; `options` and `parts` say how inputs
    are cut, as in wt.explain. Nothing is trained or explained twice: the same deleted features are the same model.
    """

    train: Any
    training: Labelled
    validation: Labelled  # what explanations are of; with labels, accuracy on it is told beside
    world: Labelled
    judge: Callable[[str], bool]
    explainers: Mapping[str, Any] = field(default_factory=lambda: {"lime": Lime(), "random": Random()})
    picks: tuple[str, ...] = PICKS
    readers: tuple[int, ...] = (10, 5, 5)
    instances: int = 10
    features: int = 10
    overlooks: float = 0.1
    misjudges: float = 0.05
    parts: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    about: str = ""

    def __post_init__(self) -> None:
        """Refuse what could only fail after hours."""
        for name in ("training", "validation", "world"):
            if not len(getattr(self, name)):
                raise ValueError(f"{name} must have at least one input, got none")
        if self.training.labels is None or self.world.labels is None:
            raise ValueError("training and world must have labels: one is to learn from, the other to measure by")
        if len(set(self.training.labels)) < 2:
            raise ValueError("labels must be of two classes or more for a model to learn, got "
                             f"{len(set(self.training.labels))}")
        trainer(self.train, "text")  # which refuses what trains no model
        wrong = [one for one in self.picks if one not in PICKS]
        if wrong or not self.picks:
            raise ValueError(f"picks must be some of {', '.join(PICKS)}, got {list(self.picks)}")
        several = isinstance(self.readers, tuple | list) and len(self.readers) > 0
        if not several or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in self.readers):
            raise ValueError(f"readers must be whole numbers >= 1, one a round, such as (10, 5, 5), got {self.readers!r}")
        if not all(0 <= share <= 1 for share in (self.overlooks, self.misjudges)):
            raise ValueError("overlooks and misjudges must be chances between 0 and 1, got "
                             f"{self.overlooks} and {self.misjudges}")
        if self.domain not in DOMAINS:
            raise ValueError("a model can be repaired where features have names that training inputs share: the words of texts "
                             "and the columns of tables. Segments of images and stretches of sounds have none, so nothing "
                             f"could be taken out of the training data; got {self.domain} inputs")

    @property
    def domain(self) -> str:
        """text or tabular."""
        return inputs.domain_of(self.validation.item(0), self.parts, self._cutting)

    @cached_property
    def _cutting(self) -> dict[str, Any]:
        """How inputs are cut; rows are told apart from other arrays by the training data they are cut against."""
        given = dict(self.options)
        if getattr(self.training.inputs, "ndim", 1) == 2 and given.get("background") is None:
            given["background"] = self.training.inputs
        return inputs.prepare(given)

    def scaled(self, scale: float) -> tuple[int, ...]:
        """As many readers as a share of them, at least one a round."""
        if not 0 < scale <= 1:
            raise ValueError(f"scale must be a share of the readers, above 0 and at most 1, got {scale!r}")
        return tuple(max(round(scale * n), 1) for n in self.readers)

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        spec = {"experiment": "repair", "explainers": {name: words(one) for name, one in self.explainers.items()},
                "picks": list(self.picks), "readers": list(self.readers), "instances": self.instances,
                "features": self.features, "overlooks": self.overlooks, "misjudges": self.misjudges,
                "parts": words(self.parts), "train": words(self.train),
                "options": {name: words(value) for name, value in self.options.items()}}
        with single_threaded():  # the model is trained here, and asked later on
            spec["judge"], model = self._opinion(), self._bench.said()
        data = {name: getattr(self, name) for name in ("training", "validation", "world")}
        return {"format": 1, "study": "repair", "spec": spec, "seed": self.seed,
                "hashes": {"model": model, **{name: one.digest() for name, one in data.items()}},
                "about": {"what": self.about, "domain": self.domain, **{name: len(one) for name, one in data.items()},
                          "known": len(self.world.rows() & {*self.training.rows(), *self.validation.rows()})}}

    def _opinion(self) -> str:
        """What the judge says of every feature there can be, as a hash: another judge is another run."""
        said = "".join(f"{name}\t{bool(self.judge(name))}\n" for name in sorted(self._bench.names))
        return hashlib.blake2b(said.encode(), digest_size=8).hexdigest()

    def blocks(self) -> list[Block]:
        """What there is without readers, then one first reader after the other, each in every arm."""
        arms = [(name, how) for name in self.explainers for how in self.picks]
        return [Block("reference", ("reference",)),
                *(Block(case, (case,)) for reader in range(self.readers[0]) for name, how in arms
                  for case in [f"{name.replace('/', '_')}.{how}.{reader:03d}"])]

    def work(self, block: Block, on_calls: OnCalls) -> Iterator[Result]:
        """All models that follow from what one first reader deletes."""
        bench = self._bench
        bench.on_calls = on_calls
        if block.id == "reference":
            yield Result({"case": "reference", "status": "ok", **bench.reference()})
            return
        name, how, reader = block.id.rsplit(".", 2)
        name = next(one for one in self.explainers if one.replace("/", "_") == name)
        nodes: list[dict[str, Any]] = []
        self._grow(_Arm(name, how), (int(reader),), frozenset(), nodes)
        yield Result({"case": block.id, "status": "ok", "explainer": name, "pick": how, "reader": int(reader), "nodes": nodes})

    def _grow(self, arm: _Arm, path: tuple[int, ...], deleted: Deleted, nodes: list[dict[str, Any]]) -> None:
        """One reader's look at the model without `deleted`, and all that follows from it."""
        shown = self._bench.look(arm, path, deleted)
        marked = sorted({feature for one in shown for feature, _ in one} - deleted)
        new = [feature for feature in marked if self.deletes(path, feature)]
        after = deleted | set(new)
        nodes.append({"path": list(path), "words": new, "deleted": len(after), "seen": len(marked),
                      "wrongly": sum(self.judge(feature) for feature in new), "empty": sum(not one for one in shown),
                      **self._bench.scores(after)})
        if len(path) < len(self.readers):
            for reader in range(self.readers[len(path)]):
                self._grow(arm, (*path, reader), after, nodes)

    def deletes(self, path: tuple[int, ...], feature: str) -> bool:
        """Does this reader delete this feature once it is seen? The same wherever, and by whomever, it is shown."""
        drawn = generator(self.seed, "opinion", *path, feature).random()
        return bool(drawn < (self.misjudges if self.judge(feature) else 1 - self.overlooks))

    @cached_property
    def _bench(self) -> _Bench:
        return _Bench(self)

    def __getstate__(self) -> dict[str, Any]:
        """Without what was worked out: another process does that for itself."""
        return {name: value for name, value in vars(self).items() if name not in ("_bench", "_cutting")}


@dataclass(frozen=True)
class _Arm:
    explainer: str
    pick: str


@dataclass(eq=False)
class _Bench:
    """Models and explanations of one process, each made once."""

    study: RepairStudy
    on_calls: OnCalls = lambda calls: None
    models: OrderedDict[Deleted, CheckedModel] = field(default_factory=OrderedDict)
    measured: dict[Deleted, dict[str, Any]] = field(default_factory=dict)
    explained: OrderedDict[tuple[Deleted, str], dict[int, Shown]] = field(default_factory=OrderedDict)

    @cached_property
    def _trainer(self) -> Trainer:
        return trainer(self.study.train, self.study.domain, self.study.options.get("names"))

    @cached_property
    def _parts(self) -> list[Parts]:
        """The validation inputs, cut; every model is asked about the same parts."""
        found = list(self._cut(self.study.validation))
        if not found:
            raise ValueError("validation must have inputs with something in them to explain, got none that can be cut")
        return found

    @cached_property
    def _features(self) -> SharedFeatures:
        return shared_features(self.model(frozenset()), self._parts)

    @cached_property
    def names(self) -> frozenset[str]:
        """Every feature there is, as explanations know it: columns, or what training and validation texts are cut into."""
        if self.study.domain == "tabular":
            return frozenset(column_names(self.study.training.inputs, self.study.options.get("names")))
        trained = shared_features(self.model(frozenset()), list(self._cut(self.study.training)))
        return frozenset({*trained.keys, *self._features.keys})

    def _cut(self, data: Labelled) -> Iterator[Parts]:
        """Inputs that have nothing in them, such as empty texts, are left out."""
        study, base = self.study, self.model(frozenset())
        for index in range(len(data)):
            with suppress(ValueError):
                yield inputs.cut(data.item(index), study.parts, base.layout, dict(study._cutting), base.reads)

    def model(self, deleted: Deleted) -> CheckedModel:
        """The model without these features."""
        if deleted not in self.models:
            data = self.study.training
            assert data.labels is not None
            self.models[deleted] = api.model(self._trainer(data.inputs, data.labels, deleted, self.study.seed))
            if len(self.models) > KEPT:
                self.models.popitem(last=False)
        self.models.move_to_end(deleted)
        return self.models[deleted]

    def said(self) -> str:
        """What the model with all features says of some inputs, as a hash: a function may train another one than before."""
        return scores_told(self.model(frozenset()), (cut.compose(np.ones((1, len(cut.names)), dtype=bool), generator(0))
                                                     for cut in self._parts[:ASKED]))

    def scores(self, deleted: Deleted) -> dict[str, Any]:
        """How often that model is right, in the real world and on the validation data."""
        if deleted not in self.measured:
            model, data = self.model(deleted), self.study.validation
            known = self.study.training.labels
            assert known is not None
            self.measured[deleted] = {"accuracy": accuracy(model, self.study.world, known),
                                      "held_out": None if data.labels is None else accuracy(model, data, known)}
        return self.measured[deleted]

    def reference(self) -> dict[str, Any]:
        """The model as it is, and the one without every feature that does not generalise."""
        bad = frozenset(name for name in self.names if not self.study.judge(name))
        return {**self.scores(frozenset()), "oracle": self.scores(bad), "bad": len(bad),
                "left_out": len(self.study.validation) - len(self._parts)}

    def look(self, arm: _Arm, path: tuple[int, ...], deleted: Deleted) -> list[Shown]:
        """The explanations that a reader is given."""
        n = len(self._parts)
        if arm.pick == "random":
            chosen: Any = generator(self.study.seed, "pick", *path).permutation(n)[:self.study.instances]
        else:
            every = [self._shown(arm.explainer, deleted, i) for i in range(n)]
            chosen = submodular(_matrix(every), self.study.instances).indices
        return [self._shown(arm.explainer, deleted, int(i)) for i in chosen]

    def _shown(self, explainer: str, deleted: Deleted, index: int) -> Shown:
        """What one explanation names; nothing where there is none to be had."""
        known = self._known(deleted, explainer)
        if index not in known:
            question = Question(self.model(deleted), self._parts[index], on_calls=self.on_calls)
            scores = question.original
            target = int(question.model.labels(scores[None])[0]) if len(scores) > 1 else 0
            # Of the deleted features too: random explanations of the next model are to be others.
            rng = generator(self.study.seed, "explain", index, ",".join(sorted(deleted)))
            try:
                e = self._explainers[explainer](question.watching([target])[0], rng)
            except ValueError:  # too few parts, or too many for the samples: a reader is shown nothing
                known[index] = ()
            else:
                which = self._features.of_parts[index]
                known[index] = tuple((self._features.keys[which[part]], float(e.scores[part]))
                                     for part in named_parts(e, self.study.features))
        return known[index]

    def _known(self, deleted: Deleted, explainer: str) -> dict[int, Shown]:
        """What was explained of a model; of many models the last ones, and the first, which every reader begins with."""
        key = (deleted, explainer)
        if key not in self.explained:
            self.explained[key] = {}
            oldest = next((one for one in self.explained if one[0]), key)
            if len(self.explained) > KEPT and oldest != key:
                del self.explained[oldest]
        self.explained.move_to_end(key)
        return self.explained[key]

    @cached_property
    def _explainers(self) -> dict[str, Any]:
        return {name: api.explainer_of(one, {}, set()) for name, one in self.study.explainers.items()}


def _matrix(every: Sequence[Shown]) -> Any:
    """(explanations, features): the sizes of the weights shown."""
    names = {name: place for place, name in enumerate(dict.fromkeys(name for one in every for name, _ in one))}
    cells = [(row, names[name], abs(weight)) for row, one in enumerate(every) for name, weight in one]
    rows, columns, values = zip(*cells, strict=True) if cells else ((), (), ())
    return sparse.csr_matrix((values, (rows, columns)), shape=(len(every), max(len(names), 1)), dtype=np.float64)


def accuracy(model: CheckedModel, data: Labelled, trained: Sequence[Any]) -> float:
    """The share of labels that the model says; classes are compared by their names where they have any.

    Else outputs are the labels that it was `trained` on, in order, as scikit-learn has them: the data may lack some of them.
    """
    assert data.labels is not None
    found: Floats = model(data.inputs)
    labels, known = model.labels(found), sorted(set(trained))
    if model.classes is None:
        return float(np.mean([label < len(known) and known[label] == truth
                              for label, truth in zip(labels.tolist(), data.labels, strict=True)]))
    return float(np.mean([model.classes[label] == str(truth) for label, truth in zip(labels, data.labels, strict=True)]))
