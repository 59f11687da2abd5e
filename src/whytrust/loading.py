"""From what MODEL names on the command line to a model: embedded demos, files, packages, hubs."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import joblib

from whytrust import api
from whytrust.backends import huggingface, torchvision
from whytrust.checked import CheckedModel
from whytrust.domains import audio
from whytrust.models import demos
from whytrust.models.songs import RATE

FORMS = ("demo:NAME, file.py:attribute, package.module:attribute, model.onnx, hf:NAME_OR_FOLDER, torchvision:NAME or "
         "torchvision:NAME@WEIGHTS, "
         "singing.safetensors as whytrust train writes it, or model.joblib with --trust-pickle")


class Wanted(NamedTuple):
    """What file.py:attribute is to be, in the words of errors."""

    who: str
    forms: str
    what: str
    example: str
    kinds: str


MODEL = Wanted("MODEL", FORMS, "the model", "predict", "a callable or an estimator")
EXPLAINER = Wanted("an explainer", "a name from `whytrust methods`, file.py:attribute or package.module:attribute",
                   "the explainer", "explain", "a function (question, rng) -> Explanation, or what makes one")
PICKLES = (".joblib", ".pkl", ".pickle")
UNKNOWN = {
    (".pt", ".pth", ".bin", ".ckpt"): "holds weights without the code of their net",
    (".h5", ".keras", ".pb", ".tflite", ".ubj"): "is of a framework that is not read directly",
}
"""Files people will try, and why they cannot be a model by themselves."""


@dataclass(frozen=True)
class Loaded:
    """A model, and what comes with an embedded one: inputs to pick by number, and options of wt.explain."""

    model: CheckedModel
    inputs: Sequence[Any] | None = None
    explain_options: dict[str, Any] = field(default_factory=dict)
    demo: demos.Demo | None = None
    detector: Any = None  # of singing in whole songs

    def read_sound(self, path: str | Path, at: float | None = None) -> tuple[Any, float, Any]:
        """(an excerpt of a sound file as a detector of singing takes it, its middle in seconds, its samples at RATE)."""
        wave = audio.read(path, RATE)[0]
        excerpt = self.detector.excerpt(wave, at)
        return excerpt, len(wave) / RATE / 2 if at is None else at, self.detector.played(wave, at)


def load(spec: str, trust_pickle: bool = False, device: str | None = None, modules: dict[str, Any] | None = None,
         trained: bool = True, **options: Any) -> Loaded:
    """The model that MODEL names; `options` are those of wt.model and outweigh what the model's source says.

    Without `trained`, an embedded net that would have to be trained first is taken as it is before that, which is enough to see
    how long it takes to answer.
    A pickle runs whatever code its author put in: it is read only when the user vouches for it with `trust_pickle`. For
    `modules` see `attribute`.
    """
    kind, _, name = spec.partition(":")
    of_device = {} if device is None else {"device": device}
    if kind == "demo":
        demo = demos.load(name, trained)
        return Loaded(api.model(demo.model, **{**demo.model_options, **of_device, **options}), demo.inputs,
                      dict(demo.explain_options), demo, demo.detector)
    if kind == "hf":
        return Loaded(api.model(huggingface.load(name, device), **options))
    if kind == "torchvision":
        net, found = torchvision.load(name, device)
        return Loaded(api.model(net, **{**found, **options}))
    if spec.lower().endswith(".onnx"):
        return Loaded(api.model(Path(spec), **of_device, **options))
    if spec.lower().endswith(".safetensors"):
        found = importlib.import_module("whytrust.models.detector").Detector.read(spec)
        return Loaded(api.model(found.net, **{**found.model_options, **of_device, **options}),
                      explain_options=dict(found.explain_options), detector=found)
    if spec.lower().endswith(PICKLES):
        return Loaded(api.model(_unpickled(spec, trust_pickle), **of_device, **options))
    return Loaded(api.model(attribute(spec, MODEL, modules), **of_device, **options))


def attribute(spec: str, wanted: Wanted = MODEL, modules: dict[str, Any] | None = None) -> Any:
    """What file.py:name or package.module:name stands for; files whose code is among the `modules` do not run again."""
    place, _, attribute = spec.rpartition(":")
    if not place or not attribute:
        for suffixes, why in UNKNOWN.items() if wanted is MODEL else ():
            if spec.lower().endswith(suffixes):
                raise ValueError(f"{spec} {why}; write a file.py that makes the model and name it as file.py:attribute")
        if spec.endswith(".py"):
            raise ValueError(f"{wanted.who} must name what in the file is {wanted.what}, such as {spec}:{wanted.example}, got "
                             f"{spec!r}")
        raise ValueError(f"{wanted.who} must be {wanted.forms}, got {spec!r}")
    modules = {} if modules is None else modules
    found: Any = modules[place] if place in modules else modules.setdefault(place, _module(place, wanted.who))
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise ValueError(f"{place} has no attribute {attribute!r}; it must hold {wanted.what}, {wanted.kinds}")
        found = getattr(found, name)
    return found


def _module(place: str, who: str) -> Any:
    """A module by its dotted name, or the code of a .py file, which runs: only name files you trust."""
    if not place.endswith(".py"):
        with _importing_from(str(Path.cwd())):
            return importlib.import_module(place)
    path = Path(place)
    if not path.is_file():
        raise ValueError(f"{who} names the file {place}, which does not exist")
    spec = importlib.util.spec_from_file_location(f"_whytrust_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    _check_python(path, who)
    with _importing_from(str(path.parent.resolve())):
        spec.loader.exec_module(module)
    _send_as_code(module)
    return module


def _check_python(path: Path, who: str) -> None:
    """Refuse a file that is no Python before anything of it runs; what its code raises is its own."""
    try:
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:  # the latter of files with NUL in them
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        why = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ValueError(f"{who} must name a file of Python code, and {path}{where} is none ({why}); correct it") from error


def _send_as_code(module: Any) -> None:
    """A worker process cannot import what has no place among the modules: what such a file defines goes there as code."""
    for name in ("cloudpickle", "joblib.externals.cloudpickle"):  # joblib has it inside, or beside it, by its version
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name).register_pickle_by_value(module)


@contextmanager
def _importing_from(folder: str) -> Iterator[None]:
    before = folder in sys.path
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder in sys.path:  # the code that ran may have changed the list itself
            sys.path.remove(folder)
        if not before and folder not in sys.path:
            sys.path.append(folder)  # last: what the model imports later, here or in a worker, must still be found


def _unpickled(path: str, trusted: bool) -> Any:
    if not Path(path).is_file():
        raise ValueError(f"MODEL names the file {path}, which does not exist")
    if not trusted:
        raise ValueError(f"{path} is a pickle, and reading one runs whatever code its author put in; "
                         "if you know where it comes from, say --trust-pickle")
    try:
        return joblib.load(path)  # reads plain pickles too
    except Exception as error:
        raise ValueError(f"{path} must be a model that joblib or pickle can read here; "
                         f"reading it gave {type(error).__name__}: {error}") from error
