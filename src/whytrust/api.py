"""What a user types: `model`, `explain` and `methods`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from whytrust import inputs
from whytrust.backends import BACKENDS
from whytrust.checked import CheckedModel, DifferentiableModel
from whytrust.core import Parts, generator
from whytrust.explainers import CATALOGUE, foreign
from whytrust.explanation import Explanation
from whytrust.progress import Progress
from whytrust.question import Question


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
    """Any model as one that whytrust can ask: a callable on a batch, a scikit-learn estimator or pipeline, a torch module, a
    Hugging Face pipeline or (model, tokenizer), an ONNX file or session.

    Options: classes (names of the outputs), threshold (one output or two classes: label 1 above it), output ("probability" or
    "logit": what the model returns; logits are turned into probabilities), layout ("NHWC" or "NCHW"), preprocess (applied to
    each batch before the model), name; and those of single frameworks, such as device.
    """
    general = {f.name for f in fields(CheckedModel)} - {"function"}
    known = general.union(*(backend.OPTIONS for backend in BACKENDS))
    for name in options:
        if name not in known:
            raise TypeError(f"wt.model has no option {name!r}{_near(name, known)}; it has {', '.join(sorted(known))}")
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
        return CheckedModel(obj, **{"name": getattr(obj, "__name__", type(obj).__name__).strip("<>"), **options})
    if hasattr(obj, "predict") and not isinstance(obj, type):
        raise TypeError(f"a model must be a callable on a batch, {type(obj).__name__} is none; pass its method, obj.predict")
    raise TypeError("a model must be a callable on a batch, a scikit-learn estimator, a torch module, a Hugging Face pipeline "
                    f"or (model, tokenizer), or an ONNX file or session, got {_what(obj)}")


def _refuse(options: dict[str, Any], what: str, advice: str) -> None:
    if options:
        raise TypeError(f"{', '.join(options)} cannot be set for {what}; {advice}")


_wrap = model  # `explain` has an argument of that name


def explain(model: Any, x: Any, method: Any = "lime", target: Any = None, parts: Any = None, seed: int = 0,
            **hyper_parameters: Any) -> Any:
    """Why does the model score `x` as it does? One Explanation, or a list for several inputs or targets.

    `target` is an index, a class name, None (the predicted class), "top:3", or a list of targets, which share one set of model
    calls. Hyper-parameters go where they belong: to the parts (fill, background, bins, …), the model calls (batch_size), or
    the method (samples, variant, family, …).

    `method` is a name from wt.methods(), an explainer (question, rng) -> Explanation, or what others made: captum's, shap's and
    lime's explainers, shap's and lime's explanations, f(model, inputs, targets, **options) -> array, or an array of values (for
    several inputs, one entry each). Hyper-parameters then go to them, and `pooling` says how their values become one a part.
    """
    wrapped = _wrap(model)
    generator(seed)
    explainer, of_parts, batch_size = _sort_out(method, hyper_parameters)
    of_parts = inputs.prepare(of_parts)
    items = None if isinstance(parts, Parts) and not isinstance(parts, str | np.ndarray) else inputs.several(x, of_parts)
    ask = _Asking(wrapped, explainer, target, parts, int(seed), of_parts, batch_size)
    with Progress("explaining") as progress:
        if items is None:
            return ask(x, progress)
        results: list[Any] = []
        errors: dict[int, Exception] = {}
        explainers = explainer.each(len(items)) if hasattr(explainer, "each") else [explainer] * len(items)
        for index, item in enumerate(items):
            try:
                results.append(replace(ask, explainer=explainers[index])(item, progress))
            except (ValueError, TypeError, OSError) as error:
                results.append(None)
                errors[index] = error
    if errors:
        if len(errors) == len(items):
            raise errors[0]
        raise SomeFailed(results, errors)
    return results


@dataclass(frozen=True)
class _Asking:
    """One call of explain, for each of its inputs."""

    model: CheckedModel
    explainer: Callable[[Question, np.random.Generator], Explanation]
    target: Any
    parts: Any
    seed: int
    of_parts: dict[str, Any]
    batch_size: int | None

    def __call__(self, item: Any, progress: Progress) -> Any:
        with self.model.asking():
            return self._answered(item, progress)

    def _answered(self, item: Any, progress: Progress) -> Any:
        parts = getattr(self.explainer, "own_parts", None) if self.parts is None else self.parts
        cut = inputs.cut(item, parts, self.model.layout, dict(self.of_parts), self.model.reads)
        first = Question(self.model, cut, 0, self.batch_size, on_calls=progress)
        if hasattr(self.explainer, "ahead") and self._surely_a_target():
            self.explainer.ahead(first, generator(self.seed, "explain"))
        targets, single = self._targets(first)
        # The same generator for every target and every input: an input's explanation does not depend on its neighbours.
        found = [self._explained(question) for question in first.watching(targets)]
        return found[0] if single else found

    def _explained(self, question: Question) -> Explanation:
        e = self.explainer(question, generator(self.seed, "explain"))
        if not isinstance(e, Explanation):
            raise TypeError(f"method must return an Explanation of its question, got {_what(e)}; a function of your own that "
                            "returns an array takes (model, inputs, targets)")
        return replace(e, seed=self.seed, notes=(*e.notes, *self._bytes_note(question)))

    def _bytes_note(self, question: Question) -> tuple[str, ...]:
        """Nets are rarely trained on 0–255, and nothing else would show that they were given that."""
        image = getattr(question.parts, "image", None)
        if self.model.preprocess is not None or not getattr(self.model.function, "takes_floats", False):
            return ()
        if image is None or image.dtype.kind not in "ui" or image.max() <= 1:
            return ()
        return (f"The net was given pixels as they are, 0 to {image.max()}: if it was trained on other numbers, such as 0 to "
                "1, this explains a prediction that means nothing; say how to scale them with wt.model(net, preprocess=…).",)

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
            if not count.isdigit() or not 1 <= int(count) <= columns:
                raise ValueError(f"target top:K takes a K from 1 to the number of classes, {columns}, got {self.target!r}")
            return [int(i) for i in np.argsort(-scores, kind="stable")[: int(count)]], False
        many = isinstance(self.target, Sequence | np.ndarray) and not isinstance(self.target, str)
        wanted = list(self.target) if many else [self.target]
        if not wanted:
            raise ValueError("target must name at least one class, got an empty list")
        return [self.model.class_index(t, columns) for t in wanted], not many


def methods() -> list[dict[str, str]]:
    """The catalogue: name, kind and one line of every explainer and every way to cut an input into parts."""
    rows = [{"name": name, "kind": "explainer", "about": line} for name, _, line in CATALOGUE]
    about = {
        "grid": "grid:4x4 · rectangles of an image", "slic": "slic:16 · compact super-pixels",
        "quickshift": "quickshift · super-pixels that follow colour (lime's default)",
        "felzenszwalb": "felzenszwalb:100 · super-pixels of very different sizes",
        "words": "words · every word where it stands", "bag": "bag · every different word, wherever it stands",
        "sentences": "sentences · for long documents", "time": "time:16 · slices of a sound",
        "freq": "freq:4 · frequency bands", "tf": "tf:5x4 · time × frequency", "columns": "columns · of a table row",
    }
    rows += [{"name": n, "kind": f"parts of {d}", "about": about[n]} for d, names in inputs.SPECS.items() for n in names]
    return rows


def _sort_out(method: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any], int | None]:
    """(explainer, options of the parts, batch size); an option nobody knows is an error that names its neighbour."""
    options = dict(options)
    batch_size = options.pop("batch_size", None)
    part_names = {name for names in inputs.OPTIONS.values() for name in names}
    of_parts = {k: options.pop(k) for k in list(options) if k in part_names}
    if isinstance(method, str):
        known = {name: cls for name, cls, _ in CATALOGUE}
        if method not in known:
            raise ValueError(f"method must be one of {', '.join(known)}, got {method!r}{_near(method, known)}")
        allowed = {f.name for f in fields(known[method])}
        for name in options:
            if name not in allowed:
                near = _near(name, allowed | part_names | {"batch_size"})
                raise TypeError(f"{method} has no option {name!r}{near}; it has {', '.join(sorted(allowed)) or 'none'}, "
                                f"and inputs have {', '.join(sorted(part_names))}, batch_size")
        method, options = known[method](**options), {}
    else:
        adapted = foreign.adapt(method, options)
        if adapted is not None:
            return adapted, of_parts, batch_size
    if isinstance(method, type) or not callable(method):
        raise TypeError("method must be a name from wt.methods(), an explainer (question, rng) -> Explanation, a captum, shap "
                        f"or lime object, f(model, inputs, targets) or an array of values, got {_what(method)}")
    if options:
        if not is_dataclass(method) or isinstance(method, type):
            raise TypeError(f"{_what(method)} takes no options here, got {', '.join(options)}")
        method = replace(method, **options)
    if getattr(method, "variant", None) == "reference" and "background" in of_parts:
        of_parts.setdefault("values", "normal")
    return method, of_parts, batch_size


def _near(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, sorted(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _what(obj: Any) -> str:
    return f"the class {obj.__name__}; make an instance of it" if isinstance(obj, type) else type(obj).__name__
