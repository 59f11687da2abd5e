"""What a user types to see a model as a whole: `pick`, a few explanations out of many that show most of what matters to it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import api, engine
from whytrust import inputs as reading
from whytrust.backends import BACKENDS
from whytrust.checked import CheckedModel
from whytrust.core import AllFailed
from whytrust.explanation import Explanation
from whytrust.features import Made, SharedFeatures, features_of, shared_features
from whytrust.picked import METHODS as METHODS
from whytrust.picked import Picked as Picked
from whytrust.picked import Side, check_method, settled
from whytrust.store import Store
from whytrust.studies.picks import PickStudy, explained

ALIKE = ("image", "sound")
"""Kinds of inputs whose parts have no name that holds for others: what they share must be found out."""


def pick(model: Any, inputs: Any, budget: int = 10, method: str = "submodular", explainer: Any = "lime", target: Any = None,
         parts: Any = None, components: int | None = None, seed: int = 0, *, describe: Sequence[str] | None = None,
         out: str | os.PathLike[str] | None = None, jobs: engine.Jobs = 1, **hyper_parameters: Any) -> Picked:
    """Which `budget` of these inputs should one look at, to see as much as possible of what matters to the model?

    Every input is explained, and those are picked whose explanations together cover the most important features (submodular
    pick: Ribeiro, Singh, Guestrin 2016, §4), or some at random. `inputs` is what wt.explain takes as several: a list, a folder,
    a DataFrame, an array of rows with background=. The target is the predicted class of each input, or one class for all.
    Words and columns are features by name; of images and sounds, parts that are alike are one, in so many `components` (None is
    found out), compared by `describe` (see `features.shared_features`; ("place",) takes places as they are).

    With model=(a, b) both are explained, greedy steps take turns, and each input is shown with both explanations. With
    explanations as `inputs` these are picked from; model is None then. Inputs that cannot be explained are left out and told.

    With `out`, explanations are kept in that folder as they get done, and the same call goes on where it stopped; `jobs` is a
    number of processes, or an engine (see `whytrust.engine`).

    It misleads where few explanations are right: it shows what explanations say matters, not what does.
    """
    check_method(method)
    ready = _explanations(inputs)
    if ready is not None:
        _refuse(explainer != "lime" or target is not None or parts is not None or bool(hyper_parameters))
        return Picked.of(ready, budget, method, components, seed, describe)
    models = _models(model)
    if target is not None and (isinstance(target, list | tuple | np.ndarray) or str(target).startswith("top:")):
        raise ValueError(f"target must be one class for all inputs, or None for the predicted one of each, got {target!r}")
    if isinstance(explainer, list | tuple):
        raise ValueError(f"explainer must be one explainer, whose explanations are then picked from, got {len(explainer)}")
    if isinstance(inputs, str) and not Path(inputs).is_dir():
        what = "this is one file" if Path(inputs).is_file() else "there is no such folder"
        raise ValueError(f"inputs must be several to pick from, got {inputs!r}: {what}; pass a folder, a list or a DataFrame")
    items = reading.several(Path(inputs) if isinstance(inputs, str) else inputs, hyper_parameters)
    if items is None:
        raise ValueError(f"inputs must be several to pick from, got {type(inputs).__name__}; pass a list, a folder, a "
                         "DataFrame, or for rows of an array background=")
    models = [reading.for_sounds(one, items, parts, _of_parts(hyper_parameters)) for one in models]
    if out is None and jobs == 1:
        found, failed = _explained(models, items, explainer, target, parts, seed, hyper_parameters)
    else:
        study = PickStudy(tuple(models), items, explainer, target, parts, int(seed), hyper_parameters)
        found, failed = _kept(study, out, jobs)
    if len(failed) == len(items):
        raise AllFailed(f"no input could be explained for every model; the first: {failed[0]}")
    sides = []
    for one, explanations in zip(models, found, strict=True):
        some = [e for e in explanations if e is not None]
        cuts = _cuts(one, [item for item, e in zip(items, explanations, strict=True) if e is not None], parts, hyper_parameters)
        own = hasattr(explainer, "own_parts") and parts is None
        of_model = some[0].view.kind in ALIKE and not own and tuple(describe or ()) != ("place",)
        shared: SharedFeatures = (
            shared_features(one, cuts, components, seed, hyper_parameters.get("batch_size"), describe) if of_model
            else features_of(some, components, seed, describe))
        sides.append(Side(one.name, tuple(explanations), shared))
    names = {i: source for i in failed if (source := reading.source_of(items[i]))}
    return settled(tuple(sides), budget, method, seed, failed, names)


def is_pick(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a run of wt.pick, finished or not."""
    return (Path(folder) / "manifest.json").is_file() and Store.open(Path(folder)).manifest.get("study") == "pick"


def _explained(models: Sequence[CheckedModel], items: list[Any], explainer: Any, target: Any, parts: Any, seed: int,
               options: dict[str, Any]) -> tuple[list[list[Explanation | None]], dict[int, str]]:
    """The explanations of each model, None for inputs that failed for one of them, and why those did."""
    found: list[list[Explanation | None]] = []
    failed: dict[int, str] = {}
    for model in models:
        try:
            found.append(list(api.explain(model, items, explainer, target, parts, seed, **options)))
        except api.SomeFailed as some:
            found.append(list(some.explanations))
            failed |= {index: " ".join(str(error).split()) for index, error in some.errors.items() if index not in failed}
    return [[None if i in failed else e for i, e in enumerate(one)] for one in found], dict(sorted(failed.items()))


def _kept(study: PickStudy, out: str | os.PathLike[str] | None,
          jobs: engine.Jobs) -> tuple[list[list[Explanation | None]], dict[int, str]]:
    with tempfile.TemporaryDirectory(prefix="whytrust-pick-") as folder:
        store = engine.run(study, Path(folder) / "run" if out is None else Path(out), jobs, label="explaining")
        return explained(store, len(study.models), len(study.items))


def _of_parts(options: dict[str, Any]) -> dict[str, Any]:
    """The options that say how inputs are cut."""
    known = {name for names in reading.OPTIONS.values() for name in names}
    return {name: value for name, value in options.items() if name in known}


def _cuts(model: CheckedModel, items: list[Any], parts: Any, options: dict[str, Any]) -> Made:
    given = _of_parts(options)
    return Made(len(items), lambda index: reading.cut(items[index], parts, model.layout, given, model.reads))


def _models(model: Any) -> list[CheckedModel]:
    """One model, or each of several; a Hugging Face model with its tokenizer is one."""
    if not isinstance(model, list | tuple) or any(backend.accepts(model) for backend in BACKENDS):
        if model is None:
            raise TypeError("model must be what wt.model takes, got None; that is for explanations, as wt.explain returns them")
        return [api.model(model)]
    if len(model) < 2:
        raise ValueError(f"several models to compare must be two or more, as in wt.pick((a, b), inputs), got {len(model)}")
    wrapped = [api.model(one) for one in model]
    names = [one.name for one in wrapped]
    if len(set(names)) == len(names):
        return wrapped
    return [api.model(one, name=f"{one.name} ({'ABCDEFGHIJKLMNOPQRSTUVWXYZ'[i % 26]})") for i, one in enumerate(wrapped)]


def _explanations(inputs: Any) -> list[Any] | None:
    """Ready-made explanations: a list of them, or of such lists for several models; None for anything else."""
    if not isinstance(inputs, Sequence) or isinstance(inputs, str) or not len(inputs):
        return None
    if all(isinstance(one, Explanation) for one in inputs):
        return list(inputs)
    lists = all(isinstance(one, Sequence) and not isinstance(one, str) and len(one) and
                all(isinstance(e, Explanation) for e in one) for one in inputs)
    return [list(one) for one in inputs] if lists else None


def _refuse(given: bool) -> None:
    if given:
        raise TypeError("explanations that are ready cannot be made in another way: leave out explainer, target, parts and "
                        "options of theirs, or pass the inputs themselves")
