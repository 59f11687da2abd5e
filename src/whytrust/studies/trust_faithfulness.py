"""Do explanations find the features that a readable model really uses? (Ribeiro, Singh and Guestrin 2016, § 5.2, in any domain)

Of a sparse linear model, or a small tree, it is known what it uses for an input. Where a user's model is of that kind it is
taken as it is; else readable stand-ins are trained on the user's inputs and the model's decisions. Each explainer names its
first parts, and the share of the used ones among them is its recall.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import whytrust.inputs as reading
from whytrust import api
from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import generator
from whytrust.engine import Block, Result, single_threaded
from whytrust.explainers import NAMES
from whytrust.explainers.gradients import Pooled
from whytrust.explanation import Explanation
from whytrust.question import Question
from whytrust.readers import named_parts
from whytrust.studies.data import Data, check_classes, gather
from whytrust.studies.described import words
from whytrust.studies.faithfulness_findings import findings as findings
from whytrust.studies.faithfulness_inputs import at_most, cut, domain_of, first_of, placed, table
from whytrust.studies.faithfulness_models import OWN, SHORT, Lesson, StandIn, stand_ins
from whytrust.studies.interpretable import readable, truth_of

K, BLOCK = 10, 8
RANDOM = "random"
NETS = ("grad_cam", "guided_backprop", "deconvnet", "excitation_backprop")
"""Methods that look into a net, which no readable model is."""
OnCalls = Callable[[int], None]


@dataclass(frozen=True, eq=False)
class Ready:
    """What a study needs beside what was asked for."""

    models: tuple[StandIn, ...]
    used: tuple[str, ...]  # the inputs that are explained, by their ids
    explainers: Mapping[str, Any]
    parts: Any
    of_parts: Mapping[str, Any]
    about: Mapping[str, Any]
    hashes: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class FaithfulnessStudy:
    """How many of the features that readable models use do explanations name?

    `study` makes one: it finds or trains the models. An explanation may name `features` parts, and never more than a quarter
    of them: else random parts would find nearly everything. It misleads where the readable models are unlike the model that
    matters: an explainer that is faithful to a sparse linear model need not be to a deep net. But one that fails here fails
    where it is easiest.

    `own` says whether the model's own truth is taken: None where it can be read and uses few enough features for an explanation
    to name, True always, False never.
    """

    model: CheckedModel
    data: Data
    explainers: Mapping[str, Any]
    parts: Any = None
    of_parts: Mapping[str, Any] | None = None
    labels: Sequence[Any] | None = None
    features: int = K
    own: bool | None = None
    batch_size: int | None = None
    seed: int = 0
    block: int = BLOCK

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        generator(self.seed)
        for what in ("features", "block"):
            value = getattr(self, what)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"{what} must be a whole number >= 1, got {value!r}")

    def __getstate__(self) -> dict[str, Any]:
        """With the readable models, which cost model calls; the model itself has been asked all that it will be."""
        _ = self.ready
        return {**self.__dict__, "model": None}

    @cached_property
    def ready(self) -> Ready:
        """The readable models, and everything else that follows from what the model decides; the same each time."""
        data = self._labelled()
        with single_threaded():
            asked = _Asked.of(self.model, data, self.parts, dict(self.of_parts or {}), self.features)
            models, used, told = asked.models(self.own, self.seed)
            right, doubts = asked.right(models, used)
        explained = {name: api.explainer_of(one, {}, set()) for name, one in self.explainers.items() if name != RANDOM}
        about = {"model": self.model.name, "inputs": data.what, "domain": asked.domain, "notes": [*asked.told, *told, *doubts],
                 "agrees": {one.name: one.agrees for one in models}, "right": right,
                 "unasked": [{"case": name, "error": error} for name, error in asked.failed.items()]}
        return Ready(tuple(models), tuple(used), _with_background(explained, asked), asked.parts, asked.of_parts, about,
                     {"inputs": _digest(data), "decisions": asked.digest(any(one.name == OWN for one in models))})

    def _labelled(self) -> Data:
        """The inputs with their true classes; ids are places in what the user passed, of which some may have been left out."""
        if self.labels is None:
            return self.data
        last = max(int(item.id) for item in self.data.items)
        if len(self.labels) <= last:
            raise ValueError(f"labels must have one entry for each input: expected {last + 1}, got {len(self.labels)}")
        plain = [one.item() if isinstance(one, np.generic) else one for one in self.labels]
        return replace(self.data, items=tuple(replace(item, truth=plain[int(item.id)]) for item in self.data.items))

    def manifest(self) -> dict[str, Any]:
        """What makes this run this run."""
        spec = {"experiment": "faithfulness", "explainers": {name: words(one) for name, one in self.ready.explainers.items()},
                "models": [one.name for one in self.ready.models], "parts": words(self.ready.parts), "features": self.features,
                "block": self.block, "of_parts": {name: words(one) for name, one in (self.of_parts or {}).items()}}
        return {"format": 1, "study": "trust", "spec": spec, "seed": self.seed, "hashes": dict(self.ready.hashes),
                "about": {**self.ready.about, "left_out": {one.name: self._left_out(one) for one in self.ready.models}}}

    def blocks(self) -> Sequence[Block]:
        """A few cases at a time; a case is an input and a readable model."""
        cases = [f"{one}.{SHORT[model.name]}" for one in self.ready.used for model in self.ready.models]
        return [Block(f"{start // self.block:04d}", tuple(cases[start:start + self.block]))
                for start in range(0, len(cases), self.block)]

    def work(self, block: Block, on_calls: OnCalls) -> Iterator[Result]:
        """What each model uses for each input, and what every explainer names."""
        for case in block.cases:
            try:
                yield Result(self._case(case, on_calls))
            except Exception as error:  # one input's fault is no other's
                yield Result({"case": case, "status": "failed", "error": f"{type(error).__name__}: {error}"})

    def _case(self, case: str, on_calls: OnCalls) -> dict[str, Any]:
        which, _, short = case.rpartition(".")
        item = next(one for one in self.data.items if one.id == which)
        readable = next(one for one in self.ready.models if SHORT[one.name] == short)
        parts = cut(self.data, item, self.ready.parts, readable.model, self.ready.of_parts)
        whole = Question(readable.model, parts, 0, self.batch_size, on_calls=on_calls)
        target = int(readable.model.labels(whole.original[None])[0])
        truth, d = readable.truth(parts, target), len(parts.names)
        most = at_most(self.features, d)
        record: dict[str, Any] = {
            "case": case, "status": "ok", "input": item.id, "name": item.name, "source": item.source or item.id, "d": d,
            "model": readable.name, "most": most, "used": np.flatnonzero(truth.used).tolist(), "named": {}, "failures": {},
            "matter": np.flatnonzero(truth.matter).tolist(), "target": readable.model.class_name(target, len(whole.original))}
        if not truth.used.any():  # nothing to find, nothing to ask
            return record
        (question,) = whole.watching([target])
        left_out = self._left_out(readable)
        record["named"][RANDOM] = generator(self.seed, case, RANDOM).permutation(d)[:most].tolist()
        for name, explainer in self.ready.explainers.items():
            if name in left_out:
                continue
            try:
                e = _checked(explainer(question, generator(self.seed, case, name)), d)
                record["named"][name] = named_parts(e, most).tolist()
            except Exception as error:  # an explainer that fails on an input is recorded, and the others go on
                record["failures"][name] = f"{type(error).__name__}: {error}"
        return {**record, "calls": question.memory.calls}

    def _left_out(self, readable: StandIn) -> dict[str, str]:
        """The explainers that cannot be asked about a readable model, and why."""
        told = {}
        for name, explainer in self.ready.explainers.items():
            method = getattr(getattr(explainer, "method", None), "name", name).partition("/")[0]
            gradients = isinstance(explainer, Pooled) or (name in NAMES and NAMES[name].gradients)
            if gradients and not isinstance(readable.model, DifferentiableModel):
                told[name] = "it needs gradients, which this model does not have"
            elif gradients and method in NETS:
                told[name] = "it looks into the layers of a net, which this model is not"
        return told


def _checked(e: Any, d: int) -> Explanation:
    if not isinstance(e, Explanation) or np.shape(e.scores) != (d,) or not np.isfinite(e.scores).all():
        raise TypeError(f"an explainer must return an Explanation with one finite score a part, ({d},), got {type(e).__name__}")
    return e


# --- making a study -------------------------------------------------------------------------------------------------------


def study(model: CheckedModel, data: Any, explainers: Mapping[str, Any], parts: Any = None,
          of_parts: Mapping[str, Any] | None = None, labels: Sequence[Any] | None = None, seed: int = 0,
          **options: Any) -> FaithfulnessStudy:
    """The experiment for a model and inputs of any domain; stand-ins are trained here, where the model cannot be read.

    True classes, `labels`, only serve to say how often each model is right. Options are features, own, batch_size and block.
    """
    rows = list(data) if isinstance(data, np.ndarray) and data.ndim == 2 else data
    found = FaithfulnessStudy(api.model(model), gather(rows, (of_parts or {}).get("background")), explainers, parts, of_parts,
                              labels, seed=seed, **options)
    _ = found.ready  # what cannot be measured is told now
    return found


def _digest(data: Data) -> str:
    told = hashlib.blake2b(digest_size=8)
    for item in data.items:
        text = isinstance(item.value, str) and not Path(item.value[:255]).is_file()
        told.update(item.value.encode() + b"\0" if text else item.digest().encode())
    return told.hexdigest()


def _with_background(explainers: dict[str, Any], asked: _Asked) -> dict[str, Any]:
    """Those that compare inputs with training data get the inputs themselves."""
    if not any(api.wants_background(one) for one in explainers.values()):
        return explainers
    every = [asked.data.read(one) for one in asked.data.items if one.id in asked.cuts]
    background = table(every) if asked.domain == "tabular" else every
    return {name: api.with_background(one, background) for name, one in explainers.items()}


@dataclass(frozen=True, eq=False)
class _Asked:
    """What a user's model decides on each of the inputs, and how these are cut."""

    model: CheckedModel
    data: Data
    domain: str
    parts: Any
    of_parts: dict[str, Any]
    features: int
    cuts: dict[str, Any]
    scores: dict[str, NDArray[Any]]
    failed: dict[str, str]
    told: tuple[str, ...]

    @classmethod
    def of(cls, model: CheckedModel, data: Data, parts: Any, of_parts: dict[str, Any], features: int) -> _Asked:
        """Every input asked once; one that cannot be read, cut or asked is left out and told."""
        first = first_of(data)
        domain = domain_of(first, parts, of_parts)
        told: list[str] = []
        if domain == "tabular" and of_parts.get("background") is None:
            of_parts["background"] = table([data.read(one) for one in data.items])
            told.append("Hidden columns take values of the inputs themselves, for no background was given.")
        if domain == "audio" and data.rate is not None:
            of_parts.setdefault("rate", data.rate)
        parts, of_parts, more = placed(domain, parts, reading.prepare(of_parts), np.ndim(first))
        cuts, scores, failed, errors = dict[str, Any](), dict[str, NDArray[Any]](), dict[str, str](), list[Exception]()
        with model.asking():
            for item in data.items:
                try:
                    made = cut(data, item, parts, model, of_parts)
                    scores[item.id] = Question(model, made).original
                    cuts[item.id] = made
                except (ValueError, TypeError, OSError) as error:
                    failed[item.id] = f"{type(error).__name__}: {error}"
                    errors.append(error)
        if errors and not cuts:
            raise errors[0]
        if len(next(iter(scores.values()))) < 2:
            raise TypeError(f"faithfulness is measured on decisions, and {model.name} has one output, a number, which decides "
                            "nothing; for a model of two classes pass threshold=0.5 to wt.model")
        return cls(model, data, domain, parts, of_parts, features, cuts, scores, failed, (*told, *more))

    @property
    def decisions(self) -> dict[str, int]:
        """The class that the model decides for, by input."""
        return {one: int(self.model.labels(scores[None])[0]) for one, scores in self.scores.items()}

    def digest(self, own: bool) -> str:
        """The same for the same decisions, which is all that stand-ins learn from; of the model's own truth, for its scores."""
        scores = [" ".join(f"{score:.2e}" for score in one) for one in self.scores.values()] if own else []
        return hashlib.blake2b(f"{self.decisions}{scores or ''}".encode(), digest_size=8).hexdigest()

    def models(self, own: bool | None, seed: int) -> tuple[list[StandIn], list[str], list[str]]:
        """The readable models, the inputs that they are asked about, and what to know of them."""
        found = None if own is False else readable(self.model, self.domain)
        if own is True and found is None:
            raise TypeError("own=True asks for a model that can be read: a scikit-learn pipeline of a word vectoriser and a "
                            "linear model or a decision tree, or such a model of a table, behind scalers or not; got "
                            f"{self.model}; leave own out to have stand-ins trained")
        if found is not None:
            most = {one: at_most(self.features, len(parts.names)) for one, parts in self.cuts.items()}
            counts = np.array([int(truth_of(*found, parts).used.sum()) for parts in self.cuts.values()])
            few = counts.any() and np.mean(counts <= list(most.values())) >= 0.5
            if own or few:
                return [StandIn(OWN, self.model, *found)], list(self.cuts), [
                    "The model can be read, so its own truth is what explanations are measured by."]
            told = [f"The model could be read, but uses {np.median(counts):g} features of an input, more than an explanation "
                    "may name; so stand-ins were trained that use fewer (own=True takes the model all the same)."
                    if counts.any() else "The model could be read, but uses no feature of any input."]
        else:
            told = ["The model cannot be read itself." if own is None else "The model's own truth was not asked for."]
        return self._trained(seed, told)

    def _trained(self, seed: int, told: list[str]) -> tuple[list[StandIn], list[str], list[str]]:
        decisions = self.decisions
        classes, counts = np.unique(list(decisions.values()), return_counts=True)
        names = [self.model.class_name(int(one), len(next(iter(self.scores.values())))) for one in classes]
        if len(classes) < 2:
            raise ValueError(f"the model must decide for at least two classes, so that a stand-in can learn its decisions: "
                             f"{self.model.name} says {names[0]} of all {len(decisions)} inputs; pass inputs of which it says "
                             "different things")
        first, second = sorted(np.argsort(-counts, kind="stable")[:2].tolist())
        used = [one for one, label in decisions.items() if label in (classes[first], classes[second])]
        cuts = [self.cuts[one] for one in used]
        lesson = Lesson(cuts, np.array([int(decisions[one] == classes[second]) for one in used], dtype=np.intp),
                        np.array([at_most(self.features, len(one.names)) for one in cuts], dtype=np.intp),
                        (names[first], names[second]), seed)
        told.append(f"Readable stand-ins were trained on {len(used)} inputs, with the model's own decisions between "
                    f"{names[first]} and {names[second]} as labels. What is measured is how explainers do on the stand-ins.")
        if len(used) < len(decisions):
            told.append(f"{len(decisions) - len(used)} inputs, of which the model says something else, were left out: the two "
                        "most frequent decisions are told apart.")
        if min(counts[first], counts[second]) < 10:
            told.append(f"One of the two decisions was seen {min(counts[first], counts[second])} times only: what stand-ins "
                        "learn from so few says little of the model.")
        rate = self.of_parts.get("rate")
        return stand_ins(lesson, self.domain, self.parts, self.model.layout, rate), used, told

    def right(self, models: Sequence[StandIn], used: Sequence[str]) -> tuple[dict[str, float], list[str]]:
        """How often each model decides for an input's true class, where those are known; and what is wrong with them."""
        columns = len(next(iter(self.scores.values())))
        try:
            truths = check_classes(self.model, self.data, columns)
        except ValueError as error:  # nothing else hangs on them here
            return {}, [f"How often models are right is not known: {error}."]
        known = [one for one in used if one in truths]
        if not known:
            return {}, []
        names = [self.model.class_name(truths[one], columns) for one in known]
        found = {"the model": [self.model.class_name(self.decisions[one], columns) for one in known]}
        for readable_ in models:
            if readable_.name == OWN:
                continue
            said = [readable_.model(self.cuts[one].compose(np.ones((1, len(self.cuts[one].names)), bool), generator(0)))
                    for one in known]
            found[readable_.name] = [readable_.model.class_name(int(readable_.model.labels(one)[0]), 2) for one in said]
        return {who: float(np.mean([a == b for a, b in zip(one, names, strict=True)])) for who, one in found.items()}, []
