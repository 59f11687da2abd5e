"""What a user types: `model`, `explain` and `methods`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from whytrust import inputs
from whytrust.attacks import CATALOGUE as ATTACKS
from whytrust.backends import BACKENDS
from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import ALIASES, Parts, generator, near
from whytrust.explainers import CATALOGUE, NAMES, foreign
from whytrust.explainers.gradients import Pooled
from whytrust.explanation import Explanation
from whytrust.language import SOURCES
from whytrust.measures import BASELINES, METRICS, Roar
from whytrust.measures import CATALOGUE as TRIALS
from whytrust.progress import Progress
from whytrust.question import Question
from whytrust.swapping import RULES

FAR_FROM_ONE = 64.0
"""Floats above this are no image that was scaled or normalised for a net."""


class SomeFailed(ValueError):
    """Some of several inputs could not be explained; the others were.

    `explanations` has None in their places, `errors` says why, by position.
    """

    def __init__(self, explanations: list[Any], errors: dict[int, Exception]) -> None:
        """Say the first failure in full and count the rest."""
        self.explanations, self.errors = explanations, errors
        first = min(errors)
        more = f" (and {len(errors) - 1} more: see .errors)" if len(errors) > 1 else ""
        super().__init__(f"{len(errors)} of {len(explanations)} inputs could not be explained; the other "
                         f"{len(explanations) - len(errors)} are in .explanations. Input {first}: {errors[first]}{more}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by what it holds, not by its message."""
        return type(self), (self.explanations, self.errors)


def model(obj: Any, **options: Any) -> CheckedModel:
    """Any model as one that whytrust can ask: a callable on a batch, a scikit-learn estimator or pipeline, an XGBoost or
    LightGBM booster, a torch module, a Hugging Face pipeline or (model, tokenizer), an ONNX file or session.

    Options: classes (names of the outputs), threshold (one output or two classes: label 1 above it), output ("probability" or
    "logit": what the model returns; logits are turned into probabilities), layout ("NHWC" or "NCHW" for
    images; "NT", "NCT" for waveforms; "NTF", "NFT", "NCTF", "NCFT" for spectrograms: T samples or frames, F bands, C an axis of
    one channel), preprocess (applied to each batch before the model), name; and those of single frameworks, such as device.
    """
    general = {f.name for f in fields(CheckedModel)} - {"function"}
    known = general.union(*(backend.OPTIONS for backend in BACKENDS))
    for name in options:
        if name not in known:
            raise TypeError(f"wt.model has no option {name!r}{near(name, known)}; it has {', '.join(sorted(known))}")
    if options.get("classes") is not None:
        options["classes"] = tuple(str(c) for c in options["classes"])
    own = {name: options.pop(name) for name in list(options) if name not in general}
    if isinstance(obj, CheckedModel):
        _refuse(own, obj.name, "set it where the model is first wrapped")
        return replace(obj, **options)
    for backend in BACKENDS:
        if not isinstance(obj, type) and backend.accepts(obj):
            _refuse({k: v for k, v in own.items() if k not in backend.OPTIONS}, type(obj).__name__, "leave it out")
            function, found = backend.adapt(obj, **own)
            if options.get("preprocess") is not None:
                found.pop("layout", None)  # what a framework usually takes is not what a preprocessing does
            kind = DifferentiableModel if hasattr(function, "pullback") else CheckedModel
            return kind(function, **{**found, **options})
    if callable(obj) and not isinstance(obj, type):
        _refuse(own, "a callable", "leave it out")
        kind = DifferentiableModel if hasattr(obj, "pullback") else CheckedModel
        return kind(obj, **{"name": getattr(obj, "__name__", type(obj).__name__).strip("<>"), **options})
    if hasattr(obj, "predict") and not isinstance(obj, type):
        raise TypeError(f"a model must be a callable on a batch, {type(obj).__name__} is none; pass its method, obj.predict")
    raise TypeError("a model must be a callable on a batch, a scikit-learn estimator, an XGBoost or LightGBM booster, a torch "
                    f"module, a Hugging Face pipeline or (model, tokenizer), or an ONNX file or session, got {_what(obj)}")


def _refuse(options: dict[str, Any], what: str, advice: str) -> None:
    if options:
        raise TypeError(f"{', '.join(options)} cannot be set for {what}; {advice}")


_wrap = model  # `explain` has an argument of that name


def explain(model: Any, x: Any, method: Any = "lime", target: Any = None, parts: Any = None, seed: int = 0,
            **hyper_parameters: Any) -> Any:
    """Why does the model score `x` as it does? One Explanation, or a list for several inputs or targets.

    `target` is an index, a class name, None (the predicted class), "top:3", or a list of targets, which share one set of model
    calls. Hyper-parameters go where they belong: to the parts (fill, background, bins, …), the model calls (batch_size), or
    the method (samples, variant, family, …); training data, `background`, to the method too, where it wants that.

    `method` is a name from wt.methods(), an explainer (question, rng) -> Explanation, or what others made: captum's, shap's and
    lime's explainers, shap's and lime's explanations, f(model, inputs, targets, **options) -> array, or an array of values (for
    several inputs, one entry each). Hyper-parameters then go to them, and `pooling` says how their values become one a part.
    A list of methods gives a list of explanations that share model calls; each takes the hyper-parameters that it knows.
    """
    wrapped = _wrap(model)
    generator(seed)
    given = sort_out(method, hyper_parameters, parts)
    of_parts = inputs.prepare(given.of_parts)
    items = None if isinstance(parts, Parts) and not isinstance(parts, str | np.ndarray) else inputs.several(x, of_parts)
    ask = Asking(wrapped, given.explainers, given.several, target, parts, int(seed), of_parts, given.batch_size)
    with Progress("explaining") as progress:
        if items is None:
            return ask(x, progress)
        results: list[Any] = []
        errors: dict[int, Exception] = {}
        each = [e.each(len(items)) if hasattr(e, "each") else [e] * len(items) for e in given.explainers]
        for index, item in enumerate(items):
            progress.item = f"input {index + 1} of {len(items)}, "
            try:
                results.append(replace(ask, explainers=tuple(e[index] for e in each))(item, progress))
            except (ValueError, TypeError, OSError) as error:
                results.append(None)
                errors[index] = error
    if errors:
        if len(errors) == len(items):
            raise errors[0]
        raise SomeFailed(results, errors)
    return results


@dataclass(frozen=True)
class Asking:
    """One call of explain, for each of its inputs."""

    model: CheckedModel
    explainers: tuple[Callable[[Question, np.random.Generator], Explanation], ...]
    several: bool  # were several methods asked for?
    target: Any
    parts: Any
    seed: int
    of_parts: dict[str, Any]
    batch_size: int | None

    def __call__(self, item: Any, progress: Progress) -> Any:
        """The explanation of one input, or several of it."""
        with self.model.asking():
            try:
                return self._answered(item, progress)
            except MemoryError as error:
                raise ValueError(f"there is not enough memory to explain this input ({error}); cut it into fewer parts, or "
                                 "give a smaller one") from error

    def _answered(self, item: Any, progress: Progress) -> Any:
        own = next((e.own_parts for e in self.explainers if hasattr(e, "own_parts")), None)
        parts = own if self.parts is None else self.parts
        model = inputs.fitted(self.model, item, parts, self.of_parts)
        cut = inputs.cut(item, parts, model.layout, dict(self.of_parts), self.model.reads)
        model = inputs.with_channel(model, getattr(cut, "sound", None))
        if model is not self.model:
            return replace(self, model=model)._asked_of(cut, item, progress)
        return self._asked_of(cut, item, progress)

    def _asked_of(self, cut: Parts, item: Any, progress: Progress) -> Any:
        first = Question(self.model, cut, 0, self.batch_size, on_calls=progress)
        early = next((e for e in self.explainers if hasattr(e, "ahead")), None)
        if early is not None and (isinstance(early, Pooled) or self._surely_a_target()):
            early.ahead(first, generator(self.seed, "explain"))
        targets, single = self._targets(first)
        # The same generator for every method, target and input: but for rounding, an explanation is what it would be alone.
        questions = first.watching(targets)
        found = []
        for place, explainer in enumerate(self.explainers):
            before = questions[0].memory.calls if place else 0
            some = [self._explained(explainer, question, before, inputs.source_of(item)) for question in questions]
            found.append(some[0] if single else some)
        return found if self.several else found[0]

    def _explained(self, explainer: Callable[[Question, np.random.Generator], Explanation], question: Question,
                   before: int, source: str) -> Explanation:
        e = explainer(question, generator(self.seed, "explain"))
        if not isinstance(e, Explanation):
            raise TypeError(f"method must return an Explanation of its question, got {_what(e)}; a function of your own that "
                            "returns an array takes (model, inputs, targets)")
        more = bytes_note(self.model, getattr(question.parts, "image", None))
        return replace(e, seed=self.seed, calls=e.calls - before, notes=(*e.notes, *more), source=e.source or source)

    def _surely_a_target(self) -> bool:
        """Can no call be wasted on a target that does not exist? (A name that no class has is an error at once.)"""
        if isinstance(self.target, str) and not self.target.startswith("top:") and self.model.classes is not None:
            self.model.class_index(self.target, len(self.model.classes))
            return True
        return self.target is None

    def _targets(self, question: Question) -> tuple[list[int], bool]:
        scores = question.original
        columns = len(scores)
        if self.target is None:
            return [0 if columns == 1 else int(self.model.labels(scores[None])[0])], True
        if isinstance(self.target, str) and self.target.startswith("top:"):
            count = self.target[4:]
            if not count.isdecimal() or not 1 <= int(count) <= columns:
                raise ValueError(f"target top:K takes a K from 1 to the number of classes, {columns}, got {self.target!r}")
            return [int(i) for i in np.argsort(-scores, kind="stable")[: int(count)]], False
        many = isinstance(self.target, Sequence | np.ndarray) and not isinstance(self.target, str)
        wanted = list(self.target) if many else [self.target]
        if not wanted:
            raise ValueError("target must name at least one class, got an empty list")
        return [self.model.class_index(t, columns) for t in wanted], not many


def bytes_note(model: CheckedModel, image: Any) -> tuple[str, ...]:
    """Nets are rarely trained on 0–255, and nothing else would show that they were given that."""
    if model.preprocess is not None or not getattr(model.function, "takes_floats", False):
        return ()
    if image is None or image.max() <= (1 if image.dtype.kind in "ui" else FAR_FROM_ONE):
        return ()
    return (f"The net was given pixels as they are, up to {image.max():g}: if it was trained on other numbers, such as 0 "
            "to 1, this explains a prediction that means nothing; say how to scale them with wt.model(net, preprocess=…).",)


def methods() -> list[dict[str, Any]]:
    """The catalogue: every explainer, baseline, trial, attack and way to cut an input into parts, with one line each.

    An explainer also has a goal (what its scores are meant to say), whether it needs gradients, and the paper it comes from.
    """
    rows: list[dict[str, Any]] = [
        {"name": e.name, "kind": "explainer", "about": e.about, "goal": e.goal, "gradients": e.gradients, "paper": e.paper}
        for e in NAMES.values()]
    rows += [{"name": name, "kind": "baseline of audits", "about": about} for name, about in BASELINES.items()]
    rows += [{"name": trial.name, "kind": "trial", "about": trial.about, "goals": [trial.goal], "against": trial.kind,
              "speaks of": trial.aspect, "paper": trial.paper} for trial in TRIALS]
    rows += [{"name": one.name, "kind": "metric", "about": one.words, "better": "larger" if one.higher else "smaller",
              "goals": list(one.goals), "against": one.kind, "speaks of": one.aspect, "needs": list(one.needs),
              "paper": one.paper} for one in [*(metric.about for metric in METRICS if not metric.about.of_change), Roar.about]]
    rows += [{"name": "nearest", "kind": "adversary of table rows", "about": "the nearest training row that the model labels "
              "otherwise, by standard deviations; another category counts as one"}]
    rows += [{"name": "word_swap", "kind": "adversary of texts", "about": "words swapped for others that mean much the "
              "same, until the label changes", "paper": "Jin et al. 2020"}]
    rows += [{"name": name, "kind": "attack", "about": about, "gradients": True, "paper": paper}
             for name, _, about, paper in ATTACKS]
    about = {
        "grid": "grid:4x4 · rectangles of an image", "slic": "slic:16 · compact super-pixels",
        "quickshift": "quickshift · super-pixels that follow colour (lime's default)",
        "felzenszwalb": "felzenszwalb:100 · super-pixels of very different sizes", "pixels": "pixels · every pixel by itself",
        "words": "words · every word where it stands", "bag": "bag · every different word, wherever it stands",
        "sentences": "sentences · for long documents", "time": "time:16 · slices of a sound",
        "freq": "freq:4 · frequency bands", "tf": "tf:5x4 · time × frequency", "columns": "columns · of a table row",
    }
    rows += [{"name": n, "kind": f"parts of {d}", "about": about[n]} for d, names in inputs.SPECS.items() for n in names]
    rows += [{"name": name, "kind": "candidates of word swaps", "about": line} for name, line in SOURCES.items()]
    rows += [{"name": name, "kind": "constraint on word swaps", "about": line} for name, line in RULES.items()]
    return rows


@dataclass(frozen=True)
class _Sorted:
    """What the options of one call of explain were for."""

    explainers: tuple[Any, ...]
    several: bool
    of_parts: dict[str, Any]
    batch_size: int | None


def sort_out(method: Any, options: dict[str, Any], parts: Any = None) -> _Sorted:
    """Explainers, options of the parts, batch size; an option nobody knows is an error that names its neighbour."""
    options = dict(options)
    batch_size = options.pop("batch_size", None)
    part_names = {name for names in inputs.OPTIONS.values() for name in names}
    of_parts = {k: options.pop(k) for k in list(options) if k in part_names}
    several = isinstance(method, list | tuple) and any(isinstance(one, str) or callable(one) or foreign.is_explainer(one)
                                                       for one in method)
    if not several:
        explainers: tuple[Any, ...] = (explainer_of(method, options, part_names),)
    else:
        # Each takes the options that it knows, and others' objects those that nobody else does; none may be left over.
        own = {place: NAMES[one].options for place, one in enumerate(method) if isinstance(one, str) and one in NAMES}
        claimed = set().union(*own.values())
        foreigners = any(not isinstance(one, str) and foreign.adapt(one, {}) is not None for one in method)
        stray = next((name for name in options if name not in claimed and not foreigners), None)
        if stray is not None:
            names = ", ".join(one if isinstance(one, str) else type(one).__name__ for one in method)
            raise TypeError(f"none of {names} has an option {stray!r}{near(stray, claimed | part_names | {'batch_size'})}")
        explainers = tuple(explainer_of(one, _taken(one, options, own.get(place), claimed), part_names)
                           for place, one in enumerate(method))
    background = of_parts.get("background")
    if any(wants_background(one) for one in explainers):
        explainers = tuple(with_background(one, background) for one in explainers)
        if background is not None and not inputs.is_table(background, parts, of_parts):
            del of_parts["background"]  # training texts, images or sounds, of which parts know nothing
    if any(getattr(one, "variant", None) == "reference" for one in explainers) and "background" in of_parts:
        of_parts.setdefault("values", "normal")
    return _Sorted(explainers, several, of_parts, batch_size)


def _taken(method: Any, options: dict[str, Any], known: set[str] | None, claimed: set[str]) -> dict[str, Any]:
    """The options that go to one of several methods."""
    if known is not None:
        return {k: v for k, v in options.items() if k in known}
    if isinstance(method, str) or foreign.adapt(method, {}) is None:
        return {}
    return {k: v for k, v in options.items() if k == "pooling" or k not in claimed}


def wants_background(explainer: Any) -> bool:
    """Does an explainer compare inputs with training data, and has it none yet?"""
    return is_dataclass(explainer) and getattr(explainer, "background", explainer) is None


def with_background(explainer: Any, background: Any) -> Any:
    """The same explainer with the training data that it wants, which some cannot do without; others as they are."""
    if not wants_background(explainer):
        return explainer
    if background is None and hasattr(explainer, "needs"):
        raise ValueError(explainer.needs)
    return replace(explainer, background=background)


def explainer_of(method: Any, options: dict[str, Any], part_names: set[str]) -> Any:
    """An explainer (question, rng) -> Explanation by its name, or whatever else can be one."""
    if isinstance(method, str):
        if method not in NAMES:
            if method in {name for name, *_ in ATTACKS}:
                raise ValueError(f"{method} is an attack, which changes inputs and explains nothing: wt.attack(model, inputs, "
                                 f"{method!r}), in Python")
            if method in BASELINES:
                raise ValueError(f"{method} is a baseline of audits, where the change of an input is known; every "
                                 "wt.audit(model, inputs) has it")
            listed = [name.strip() for name in method.split(",")]
            hint = f"; for several pass a list, {listed}" if len(listed) > 1 and all(n in NAMES for n in listed) else near(
                method, NAMES)
            raise ValueError(f"method must be one of {', '.join(e.name for e in CATALOGUE)}, those with gradients also with "
                             f"/smoothgrad, /smoothgrad2 or /vargrad, got {method!r}{hint}")
        allowed = NAMES[method].options
        for name in options:
            if name not in allowed:
                smooth = f"{method}/smoothgrad"
                hint = near(name, allowed | part_names | {"batch_size"})
                if smooth in NAMES and (theirs := {name, *ALIASES.get(name, ())} & (NAMES[smooth].options - allowed)):
                    hint = f" ({smooth} has{'' if name in theirs else ' ' + repr(min(theirs))})"
                inputs_have = "; ".join(f"{domain}: {', '.join(names)}" for domain, names in inputs.OPTIONS.items())
                raise TypeError(f"{method} has no option {name!r}{hint}; it has {', '.join(sorted(allowed)) or 'none'}; every "
                                f"method has batch_size, and by the input ({inputs_have})")
        return NAMES[method].make(**options)
    adapted = foreign.adapt(method, options)
    if adapted is not None:
        return adapted
    if isinstance(method, type) or not callable(method):
        raise TypeError("method must be a name from wt.methods(), an explainer (question, rng) -> Explanation, a captum, shap "
                        f"or lime object, f(model, inputs, targets) or an array of values, got {_what(method)}")
    if options and (not is_dataclass(method) or isinstance(method, type)):
        raise TypeError(f"{_what(method)} takes no options here, got {', '.join(options)}")
    return replace(method, **options) if options else method


def _what(obj: Any) -> str:
    return f"the class {obj.__name__}; make an instance of it" if isinstance(obj, type) else type(obj).__name__
