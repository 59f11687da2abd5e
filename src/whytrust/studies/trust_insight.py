"""Do explanations give away that a model goes by an artefact? (Ribeiro, Singh and Guestrin 2016, § 6.4, in any domain)

A model is trained on data in which an artefact stands in the inputs of one class and in none of the other. On data like that it
is right; where the artefact is missing, or stands elsewhere, it is wrong. Simulated readers see ten of its predictions, two of
them such mistakes, first alone and then with explanations: do they name the artefact, and do they trust the model? The same
inputs are explained for an innocent model, too: whoever names the artefact there has not found out about the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import whytrust.inputs as reading
from whytrust import api
from whytrust.checked import DifferentiableModel
from whytrust.core import Parts, generator
from whytrust.domains.image import laid_out
from whytrust.engine import Block, Result, single_threaded
from whytrust.explainers import NAMES
from whytrust.explanation import Explanation
from whytrust.planting import Plant, planted
from whytrust.question import Question
from whytrust.readers import named_parts
from whytrust.studies.described import scores_told, words
from whytrust.studies.insight_findings import findings as findings
from whytrust.studies.insight_models import Trained, checked, content, stays
from whytrust.studies.insight_readers import RANDOM, RIGHT, WRONG, traits

EXPLAINERS = ("lime", "occlusion", "greedy", "saliency", "grad_cam")
"""What is tried where nothing else is asked for; those that need gradients only where the model has them."""
TESTED = 60
"""Test inputs of each class that the model is asked about, at most."""
ASKED = 4
"""Of these, inputs of each class whose scores stand for the models in a run's manifest."""
SETTINGS = ("training", "share", "readers", "right", "wrong", "top", "looks", "overlooks", "block")
Answers = dict[str, Explanation | Exception]
OnCalls = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class InsightStudy:
    """Which explanations give an artefact away that a model was made to go by?

    `train` is (inputs, labels, seed) -> model, whose outputs are the two classes in sorted order, or an unfitted scikit-learn
    estimator. Half of the inputs of each class, or `training` of them, are trained on; the artefact stands in a `share` of
    those of the class `with_it` (None is the later one in order). The innocent model is trained by `innocent`, or in the same
    way, on the same inputs without the artefact. Each prediction is explained once, and readers share it.

    It misleads where the cut is coarse: a part that holds the artefact and half of the picture besides is named for either.
    And where hiding a part leaves the artefact as it was: the mean colour of a plain patch is the patch.
    """

    train: Any
    inputs: Any
    labels: Sequence[Any]
    plant: Plant
    explainers: Mapping[str, Any]
    with_it: Any = None
    training: int | None = None
    share: float = 1.0
    innocent: Any = None
    parts: Any = None
    of_parts: Mapping[str, Any] | None = None
    model_options: Mapping[str, Any] | None = None
    readers: int = 27
    right: int = 6  # predictions of each class that are right, and of each kind of mistake, that readers draw from
    wrong: int = 4
    top: int = 3  # parts that a reader takes from an explanation at most, and never more than a quarter of them
    looks: float = 0.5  # what a reader takes in of inputs without explanations, and overlooks of what explanations name
    overlooks: float = 0.05
    bars: tuple[float, ...] = (0.7, 0.8, 0.9)
    batch_size: int | None = None
    seed: int = 0
    block: int = 2
    keep_arrays: bool = False  # pictures, cuts and scores, for figures
    spec: Mapping[str, Any] | None = None
    command: str = ""

    def __post_init__(self) -> None:
        """Refuse what makes no experiment, before anything is trained."""
        if len(self.labels) != len(self.inputs):
            raise ValueError(f"labels must have one entry for each input: expected {len(self.inputs)}, got {len(self.labels)}")
        if len(set(self.labels)) != 2:
            raise ValueError(f"labels must be of two classes, got {len(set(self.labels))}; choose two of them")
        if self.with_it is not None and self.with_it not in self._classes:
            raise ValueError(f"with_it must be one of the classes {self._classes}, got {self.with_it!r}")
        for name in ("readers", "top", "right", "wrong", "training"):
            value = getattr(self, name)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole and not (value is None and name == "training"):
                raise ValueError(f"{name} must be a whole number, got {value!r}")
        if min(self.readers, self.top) < 1 or self.right < RIGHT or self.wrong < WRONG or not self.bars:
            raise ValueError(f"there must be at least one reader, top part and bar, right >= {RIGHT} and wrong >= {WRONG}, got "
                             f"{self.readers}, {self.top}, {self.bars}, {self.right} and {self.wrong}")
        if not (0 <= self.overlooks <= 1 and 0 <= self.looks <= 1 and 0 <= self.share <= 1):
            raise ValueError("looks, overlooks and share must lie between 0 and 1, got "
                             f"{self.looks}, {self.overlooks} and {self.share}")
        least = min(len(some) for some in self._tested.values())
        if least < RIGHT + WRONG or (self.training is not None and self.training < 1):
            raise ValueError(f"each class must have inputs to train on, and at least {RIGHT + WRONG} to test on, for {RIGHT} "
                             f"right predictions and {WRONG} wrong one, got {least} of one class; pass more inputs, or train "
                             "on fewer of each class (training=)")

    def __getstate__(self) -> dict[str, Any]:
        """What was worked out, the models first of all, is worked out again where it is needed."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    # --- what a run is ------------------------------------------------------------------------------------------------

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        spec = {"experiment": "insight", "plant": words(self.plant), "model": words(self.train),
                "innocent": words(self.innocent), "with_it": str(self._has_it),
                "parts": self.parts if isinstance(self.parts, str | None) else words(self.parts),
                "of_parts": words(self.of_parts or {}), "model_options": words(self.model_options or {}),
                **{name: getattr(self, name) for name in SETTINGS}, "bars": list(self.bars),
                "explainers": {name: words(one) for name, one in self.explainers.items()}, **(self.spec or {})}
        digest = hashlib.blake2b(digest_size=8)
        for index, label in enumerate(self.labels):
            digest.update(f"{label}\n".encode() + content(self._item(index)))
        said = str([[(key, str(label)) for key, label in some.items()] for some in (self._predicted, self._acquitted)] +
                   [self._scores_told(by) for by in (self.guilty, self.acquitted)])
        return {"format": 1, "study": "insight", "spec": spec, "seed": self.seed,
                "hashes": {"inputs": digest.hexdigest(), "model": hashlib.blake2b(said.encode(), digest_size=8).hexdigest()},
                "about": {"model": self.guilty.model.name, "inputs": len(self.labels), "plant": self.plant.name,
                          "domain": self.plant.domain, "with_it": str(self._has_it), "without_it": str(self._has_not),
                          "explainers": list(self._asked), "left_out": [n for n in self.explainers if n not in self._asked],
                          "trained": len(self._trained_on), "checks": self._checks, "mistakes": self._mistaken,
                          "unasked": [{"case": _case(*key), "error": f"{type(e).__name__}: {e}"}
                                      for key, e in self._predicted.items() if isinstance(e, Exception)],
                          "command": self.command}}

    def blocks(self) -> list[Block]:
        """The predictions that readers draw from, a few at a time."""
        ids = list(self._cases)
        return [Block(f"{start // self.block:04d}", tuple(ids[start:start + self.block]))
                for start in range(0, len(ids), self.block)]

    def work(self, block: Block, on_calls: OnCalls) -> Iterator[Result]:
        """Explain each prediction of a block by every explainer."""
        for case in block.cases:
            index, with_artefact = self._cases[case]
            record: dict[str, Any] = {"case": case, "input": index, "planted": with_artefact, "status": "failed",
                                      "error": None, "truth": str(self.labels[index]),
                                      "of_class": bool(self.labels[index] == self._has_it)}
            try:
                yield self._explained(record, on_calls)
            except (ValueError, TypeError, OSError) as error:
                yield Result({**record, "error": f"{type(error).__name__}: {error}"})

    # --- one prediction -----------------------------------------------------------------------------------------------

    def _explained(self, record: dict[str, Any], on_calls: OnCalls) -> Result:
        parts = self._cut(self._version(record["input"], record["planted"]))
        d = len(parts.names)
        top = max(min(self.top, d // 4), 1)
        held = self.plant.parts_of(parts) if record["planted"] else np.zeros(d, dtype=bool)
        score, label, answers = self._answers(self.guilty, parts, record["case"], on_calls)
        first = {name: named_parts(e, top) for name, e in answers.items() if isinstance(e, Explanation)}
        record |= {"status": "ok", "d": d, "held": int(held.sum()), "top": top, "predicted": str(label), "score": score,
                   "says": bool(label == self._has_it), "wrong": str(label) != record["truth"], "stays": stays(parts, held),
                   "traits": traits(self._item(record["input"]), self.plant.domain), "named": _held(answers, held, top),
                   "first": {name: some.tolist() for name, some in first.items()}, "innocent": {}, "errors": _errors(answers),
                   "sense": {name: e.sense for name, e in answers.items() if isinstance(e, Explanation)}}
        if record["planted"]:
            try:
                others = self._answers(self.acquitted, parts, record["case"], on_calls)[2]
            except ValueError as error:  # the innocent model cannot take this input
                others = dict.fromkeys(self._asked, error)
            record["innocent"] = _held(others, held, top)
            record["errors"] |= {f"{name}, innocent model": told for name, told in _errors(others).items()}
        if not self.keep_arrays:
            return Result(record)
        seen = {what: getattr(parts, what) for what in ("image", "labels") if hasattr(parts, what)}
        scores = {name.replace("/", "-"): e.scores for name, e in answers.items() if isinstance(e, Explanation)}
        return Result(record, {**scores, **seen, "held": held})

    def _answers(self, by: Trained, parts: Parts, case: str, on_calls: OnCalls) -> tuple[float, Any, Answers]:
        """How sure a model is of what it decides for, what that is, and what each explainer makes of it."""
        found: Answers = {}
        with by.model.asking():
            whole = Question(by.model, parts, 0, self.batch_size, on_calls=on_calls)
            label = by.label(whole.original)
            (question,) = whole.watching([list(by.classes).index(label)])
            for name, explainer in self._asked.items():
                try:
                    found[name] = checked(explainer(question, generator(self.seed, "explain", case, name)), question.d)
                except Exception as error:  # an explainer that fails on an input is recorded, and the others go on
                    found[name] = error
        return float(whole.original[question.target]), label, found

    def _cut(self, item: Any) -> Parts:
        model = self.guilty.model
        return reading.cut(item, self.parts, model.layout, dict(self._of_parts), model.reads)

    @cached_property
    def _of_parts(self) -> dict[str, Any]:
        """A row is explained against the rows that were trained on, unless others are given."""
        given = dict(self.of_parts or {})
        if self.plant.domain == "tabular" and given.get("background") is None:
            given["background"] = self._training_set(self.share)
        return reading.prepare(given)

    # --- data ---------------------------------------------------------------------------------------------------------

    @cached_property
    def _classes(self) -> list[Any]:
        return sorted(set(self.labels))

    @property
    def _has_it(self) -> Any:
        """The class that has the artefact in training."""
        return self._classes[1] if self.with_it is None else self.with_it

    @property
    def _has_not(self) -> Any:
        return next(one for one in self._classes if one != self._has_it)

    @cached_property
    def _shuffled(self) -> dict[Any, list[int]]:
        """The inputs of each class in an order of their own; the first ones are trained on."""
        return {label: [i for i in generator(self.seed, "split", str(label)).permutation(len(self.labels)).tolist()
                        if self.labels[i] == label] for label in self._classes}

    def _trained_of(self, label: Any) -> int:
        return len(self._shuffled[label]) // 2 if self.training is None else self.training

    @property
    def _trained_on(self) -> list[int]:
        return sorted(i for label, some in self._shuffled.items() for i in some[:self._trained_of(label)])

    @property
    def _tested(self) -> dict[Any, list[int]]:
        return {label: some[self._trained_of(label):][:TESTED] for label, some in self._shuffled.items()}

    def _training_set(self, share: float) -> Any:
        chosen, given = self._trained_on, self.inputs
        some = given.iloc[chosen] if hasattr(given, "iloc") else (
            given[chosen] if isinstance(given, np.ndarray) else [given[i] for i in chosen])
        return planted(some, self._training_labels, self.plant, {self._has_it: share}, generator(self.seed, "training"))[0]

    @property
    def _training_labels(self) -> list[Any]:
        return [self.labels[i] for i in self._trained_on]

    def _item(self, index: int) -> Any:
        """An input without the artefact, and without a word about it."""
        return self.inputs.iloc[index] if hasattr(self.inputs, "iloc") else self.inputs[index]

    def _version(self, index: int, with_artefact: bool) -> Any:
        item = self._item(index)
        return self.plant.into(item, generator(self.seed, "plant", index)) if with_artefact else self.plant.without(item)

    # --- the models, and what they get right --------------------------------------------------------------------------

    @cached_property
    def guilty(self) -> Trained:
        """The model that is made to go by the artefact."""
        return self._trained(self.train, self.share)

    @cached_property
    def acquitted(self) -> Trained:
        """The model that never saw it."""
        return self._trained(self.train if self.innocent is None else self.innocent, 0.0)

    def _trained(self, by: Any, share: float) -> Trained:
        return Trained.by(by, self._training_set(share), self._training_labels, self.seed, self.model_options or {})

    @cached_property
    def _asked(self) -> dict[str, Any]:
        """The explainers that can be asked: without gradients, none that needs them; random is every reader's own."""
        differentiable = isinstance(self.guilty.model, DifferentiableModel)
        return {name: one for name, one in self.explainers.items()
                if name != RANDOM and (differentiable or name not in NAMES or not NAMES[name].gradients)}

    @cached_property
    def _predicted(self) -> dict[tuple[int, bool], Any]:
        """What the model says of every test input without and with the artefact, or the error."""
        found = self._said(self.guilty)
        errors = [one for one in found.values() if isinstance(one, Exception)]
        if len(errors) == len(found):
            raise errors[0]
        return found

    @cached_property
    def _acquitted(self) -> dict[tuple[int, bool], Any]:
        """The same of the innocent model."""
        return self._said(self.acquitted)

    def _said(self, by: Trained) -> dict[tuple[int, bool], Any]:
        found: dict[tuple[int, bool], Any] = {}
        with single_threaded(), by.model.asking():
            for index in sorted(i for some in self._tested.values() for i in some):
                for with_artefact in (False, True):
                    try:
                        found[index, with_artefact] = by.label(by.model(self._whole(self._version(index, with_artefact)))[0])
                    except (ValueError, OSError) as error:
                        found[index, with_artefact] = error
        return found

    def _scores_told(self, by: Trained) -> str:
        """What a model says of some test inputs: models with the same labels everywhere can have other scores."""
        some = sorted(i for tested in self._tested.values() for i in tested[:ASKED])
        with single_threaded(), by.model.asking():
            return scores_told(by.model, (self._whole(self._version(i, planted)) for i in some for planted in (False, True)
                                          if not isinstance(self._predicted[i, planted], Exception)))

    def _whole(self, item: Any) -> Any:
        """A batch of one; a row goes through its table, which knows the types of its columns."""
        if self.plant.domain == "tabular":
            parts = self._cut(item)
            return parts.compose(np.ones((1, len(parts.names)), dtype=bool), generator(0))
        return ([item] if self.plant.domain == "text" else laid_out(item, self.guilty.model.layout)[None]
                if self.plant.domain == "image" else np.asarray(item)[None])

    def _of(self, label: Any) -> list[int]:
        """The test inputs of a class that the model could be asked about in both versions."""
        return [i for i in self._tested[label]
                if not any(isinstance(self._predicted[i, version], Exception) for version in (False, True))]

    @cached_property
    def _checks(self) -> dict[str, list[int]]:
        """How often the model is right and wrong, [so many, of so many]: is it the bad model that it is meant to be?"""
        mine, others, said, free = self._of(self._has_it), self._of(self._has_not), self._predicted, self._acquitted
        both = [i for i in mine + others if not any(isinstance(free[i, version], Exception) for version in (False, True))]
        like = [said[i, True] == self._has_it for i in mine] + [said[i, False] == self._has_not for i in others]
        found = {"like_training": like, "missing": [said[i, False] != self._has_it for i in mine],
                 "elsewhere": [said[i, True] != self._has_not for i in others],
                 "changed": [said[i, True] != said[i, False] for i in mine + others],
                 "innocent_right": [free[i, False] == self.labels[i] for i in both],
                 "innocent_changed": [free[i, True] != free[i, False] for i in both]}
        return {what: [sum(some), len(some)] for what, some in found.items()}

    @cached_property
    def _pools(self) -> tuple[dict[bool, list[int]], dict[bool, list[int]]]:
        """Of the class that has the artefact and of the other: whom the model gets right, and wrong because of the artefact."""
        right, wrong = dict[bool, list[int]](), dict[bool, list[int]]()
        for mine in (True, False):
            label = self._has_it if mine else self._has_not
            right[mine] = [i for i in self._of(label) if self._predicted[i, mine] == label]
            wrong[mine] = [i for i in right[mine] if self._predicted[i, not mine] != label]
        return right, wrong

    @cached_property
    def _mistaken(self) -> bool:
        """Does the model make enough mistakes because of the artefact to show one of each kind, among enough that is right?"""
        right, wrong = self._pools
        return all(len(wrong[mine]) >= WRONG and len(right[mine]) >= RIGHT + WRONG for mine in (True, False))

    @cached_property
    def _cases(self) -> dict[str, tuple[int, bool]]:
        """The predictions that are explained; an input is shown with the artefact or without, never both."""
        right, wrong = self._pools
        if not self._mistaken:  # nothing to find: predictions of the same kinds of inputs, right or not
            right = wrong = {True: self._of(self._has_it), False: self._of(self._has_not)}
        found: dict[str, tuple[int, bool]] = {}
        for mine in (True, False):
            odd = wrong[mine][:min(self.wrong, max(len(right[mine]) - RIGHT, 0))]
            usual = [i for i in right[mine] if i not in odd][:self.right]
            found |= {_case(i, mine): (i, mine) for i in usual} | {_case(i, not mine): (i, not mine) for i in odd}
        return dict(sorted(found.items()))


def explainers(names: Sequence[str] | None = None, options: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Explainers by their names, with options for some; without names, those of EXPLAINERS that the catalogue has."""
    wanted = [name for name in EXPLAINERS if name in NAMES] if names is None else list(names)
    return {name: api.explainer_of(name, dict((options or {}).get(name, {})), set()) for name in wanted}


def _case(index: int, with_artefact: bool) -> str:
    return f"{index:05d}-{'with' if with_artefact else 'without'}"


def _held(answers: Answers, held: NDArray[np.bool_], top: int) -> dict[str, list[bool] | None]:
    """For each explanation, which of its first parts hold the artefact; None where it failed."""
    return {name: held[named_parts(e, top)].tolist() if isinstance(e, Explanation) else None for name, e in answers.items()}


def _errors(answers: Answers) -> dict[str, str]:
    return {name: f"{type(e).__name__}: {e}" for name, e in answers.items() if isinstance(e, Exception)}
