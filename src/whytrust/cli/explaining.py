"""`whytrust explain`: from what was typed to explanations, shown or written."""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import api, inputs, loading
from whytrust.core import need
from whytrust.domains import audio
from whytrust.explanation import Explanation, Gallery


def add_to(commands: Any) -> None:
    """The command and its options."""
    explain = commands.add_parser("explain", help="explain predictions of a model",
                                  formatter_class=argparse.RawTextHelpFormatter)
    explain.add_argument("model", metavar="MODEL", help="demo:digits|photos|reviews|reviews/forest|reviews/minilm|\n"
                                                        "tabular|sound|singing, file.py:attribute, package.module:attribute,\n"
                                                        "model.onnx, hf:NAME_OR_FOLDER, torchvision:NAME, model.joblib,\n"
                                                        "singing.safetensors (from whytrust train singing-voice)")
    explain.add_argument("input", metavar="INPUT", help="a text, an image, sound or .txt file, a folder of them, rows.csv\n"
                                                        "(rows.csv:3 is one row; song.wav@12.5 the moment that a\n"
                                                        "detector of singing is asked about), or a number: that\n"
                                                        "input of the demo")
    explain.add_argument("--method", default="lime", help="see `whytrust methods` (default lime); a,b,c for several")
    explain.add_argument("--target", help="class name or index; top:3 for the three likeliest (default: the predicted class)")
    explain.add_argument("--parts", help="slic:16, grid:4x4, words, bag, sentences, tf:5x4, time:16, columns, …")
    explain.add_argument("--rate", type=int, help="sounds: samples a second that the model was made for; files are resampled")
    explain.add_argument("--samples", help="auto, or how many model calls may be spent")
    explain.add_argument("--budget", type=int, help="with --samples auto: the most model calls")
    explain.add_argument("--features", help="how many parts to keep in the explanation, or all")
    explain.add_argument("--steps", type=int, help="integrated_gradients: points on the way from the baseline (default 50)")
    explain.add_argument("--baseline", help="integrated_gradients: black, mean, blurred, noise, pad, a number or a .npy file")
    explain.add_argument("--noise", type=float, help="smoothing: the noise's standard deviation, as a share of the range")
    explain.add_argument("--sigma", type=float, help="smoothing: the same in the input's own units")
    explain.add_argument("--pooling", choices=("mean", "mean_abs", "mean_pos", "sum", "signed_max"), help="from a map to parts")
    explain.add_argument("--layer", help="grad_cam: the layer to look at (default: the last convolution)")
    explain.add_argument("--explains", choices=("logit", "score"), help="gradients of the output before a softmax, or after it")
    explain.add_argument("--fill", help="what hidden parts show, such as segment_mean, blur, black, zero, [MASK]")
    explain.add_argument("--variant", choices=("paper", "reference"), help="LIME as its paper, or as the lime package, has it")
    explain.add_argument("--family", choices=("linear", "tree", "auto"), help="the local model (default linear)")
    explain.add_argument("--background", help="training data for table rows: a .csv file, or statistics saved as .json")
    explain.add_argument("--layout", choices=("NHWC", "NCHW"), help="how the model takes images (default: what its kind does)")
    explain.add_argument("--output", choices=("probability", "logit"), help="what the model returns")
    explain.add_argument("--threshold", type=float, help="one output or two classes: the second class above it")
    explain.add_argument("--classes", help="names of the model's outputs, a,b,c or a .txt file with one a line")
    explain.add_argument("--device", help="where the model runs, such as cpu, cuda or cuda:1")
    explain.add_argument("--fast", action="store_true", default=None, help="torch nets: fused and channels last, checked first")
    explain.add_argument("--trust-pickle", action="store_true", help="read MODEL even if it is a pickle (runs any code)")
    explain.add_argument("--batch-size", type=int, help="inputs a model call gets at once")
    explain.add_argument("--seed", type=int, default=0)
    explain.add_argument("--out", help="write e.html, e.png, e.svg, e.pdf or e.json instead of printing")
    explain.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> int:
    loaded = loading.load(options.model, options.trust_pickle, options.device, **_model_options(options))
    model, examples, given = loaded.model, loaded.inputs, dict(loaded.explain_options)
    names = ("parts", "budget", "fill", "variant", "family", "batch_size", "steps", "noise", "sigma", "pooling", "layer",
             "explains")
    given.update({n: getattr(options, n) for n in names if getattr(options, n) is not None})
    if isinstance(given.get("fill"), str) and (given.get("parts") or "").partition(":")[0] not in inputs.SPECS["text"]:
        given["fill"] = _number(given["fill"])
    for name in ("samples", "features"):
        if getattr(options, name) is not None:
            given[name] = _number(getattr(options, name))
    if options.baseline is not None:
        given["baseline"] = _baseline(options.baseline)
    if options.background:
        given["background"] = _table(options.background)
    item, source = (_input(options.input, examples, given), "") if loaded.detector is None else _excerpt(
        options.input, loaded, given)
    given |= {} if options.rate is None else {"rate": options.rate}
    code = 0
    try:
        method = [name.strip() for name in options.method.split(",")] if "," in options.method else options.method
        found = api.explain(model, item, method, options.target, seed=options.seed, **given)
    except api.SomeFailed as failed:
        for index, error in failed.errors.items():
            print(f"whytrust: input {index}: {' '.join(str(error).split())}", file=sys.stderr)
        found, code = [e for e in failed.explanations if e is not None], 1
    _show([replace(e, source=source or e.source) for e in _flat(found)], options)
    return code


def _flat(found: Any) -> list[Explanation]:
    """Explanations of several inputs, methods and targets, one after the other."""
    return [found] if isinstance(found, Explanation) else [e for one in found for e in _flat(one)]


def diff(options: argparse.Namespace) -> int:
    """Two saved explanations of the same parts: the first minus the second."""
    first, second = Explanation.load(options.first), Explanation.load(options.second)
    difference = first.minus(second)
    _show([first, second, difference] if options.out else [difference], options)
    return 0


def _show(explanations: list[Explanation], options: argparse.Namespace) -> None:
    if options.out:
        same = len({e.target_name for e in explanations}) == 1
        title = f"Why {explanations[0].target_name}?" if same else "Explanations"
        print(Gallery(tuple(explanations), title).save(options.out), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        data = [e.to_json() for e in explanations]
        print(json.dumps(data[0] if len(data) == 1 else data))
    elif not options.out:
        print("\n\n".join(map(str, explanations)))


def _model_options(options: argparse.Namespace) -> dict[str, Any]:
    """What the user says of the model, for wt.model."""
    given = {n: getattr(options, n) for n in ("layout", "output", "threshold", "fast") if getattr(options, n) is not None}
    if options.classes is not None:
        path = Path(options.classes)
        given["classes"] = (path.read_text(encoding="utf-8").splitlines() if path.suffix == ".txt" and path.is_file()
                            else [name.strip() for name in options.classes.split(",")])
    return given


def _input(text: str, demo_inputs: list[Any] | None, given: dict[str, Any]) -> Any:
    """What INPUT stands for: a number picks a demo's input, a .csv file is rows; other files and texts are as they are."""
    if demo_inputs is not None and text.isdigit():
        if int(text) >= len(demo_inputs):
            raise ValueError(f"this demo has inputs 0 to {len(demo_inputs) - 1}, got {text}")
        return demo_inputs[int(text)]
    if demo_inputs is not None and "background" in given and ".csv" not in text:
        raise ValueError(f"this demo explains table rows: give a number from 0 to {len(demo_inputs) - 1}, or rows.csv:3, "
                         f"got {text!r}")
    place, _, row = text.rpartition(":")
    if place.endswith(".csv") and re.fullmatch(r"-?\d+", row):
        table = _table(place)
        if not 0 <= int(row) < len(table):
            raise ValueError(f"{place} has rows 0 to {len(table) - 1}, got {row}")
        return _like_background(table.iloc[int(row)], given)
    if text.endswith(".csv"):
        return _like_background(_table(text), given)
    path = Path(text)
    exists = 0 < len(text) < 4096 and "\0" not in text and path.exists()
    if not exists and " " not in text and path.suffix.lower() in (*inputs.FILES, ".npy"):
        raise ValueError(f"INPUT names the file {text}, which does not exist")
    if exists and path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if exists and path.is_file() and path.suffix.lower() not in audio.SUFFIXES:
        given.pop("rate", None)  # of a demo of sounds: what this is will be told by what it is
    whole, sign, _ = text.rpartition("@")
    if sign and not exists and Path(whole).suffix.lower() in audio.SUFFIXES:
        raise ValueError(f"INPUT may name a moment, as in song.wav@12.5, for a detector of singing only, got {text!r}; leave "
                         "the moment out")
    return path if exists else text


def _excerpt(text: str, loaded: loading.Loaded, given: dict[str, Any]) -> tuple[Any, str]:
    """(the excerpt, what it is called): of song.wav the one in its middle, of song.wav@12.5 the one around 12.5 seconds."""
    place, sign, moment = text.rpartition("@")
    path, at = (place, moment) if sign and not Path(text).exists() else (text, None)
    if Path(path).is_dir():
        raise ValueError(f"INPUT must be one sound file for a detector of singing, which is asked about a moment, as in "
                         f"song.wav@12.5, got the folder {path}; `whytrust audit` takes folders of songs")
    if Path(path).suffix.lower() not in audio.SUFFIXES:
        return _input(text, loaded.inputs, given), ""
    if at is not None and not re.fullmatch(r"\d+(\.\d*)?", at):
        raise ValueError(f"a moment must be a number of seconds, as in song.wav@12.5, got {at!r}")
    excerpt, middle = loaded.read_sound(path, None if at is None else float(at))
    return excerpt, f"{Path(path).name} around {middle:.2f} s"


def _baseline(text: str) -> Any:
    """A name, a number, or the array in a file."""
    if not text.endswith(".npy"):
        return _number(text)
    if not Path(text).is_file():
        raise ValueError(f"--baseline names the file {text}, which does not exist")
    return np.load(text, allow_pickle=False)


def _table(path: str) -> Any:
    if path.endswith(".json"):
        return importlib.import_module("whytrust.domains.tabular").TableStatistics.load(path)
    return need("pandas", "tables").read_csv(path)


def _like_background(table: Any, given: dict[str, Any]) -> Any:
    """Rows with the background's columns: a label column that only the file has is left out."""
    background: Any = given.get("background")
    names = list(getattr(background, "names", getattr(background, "columns", ())))
    return table[names] if names and all(name in table for name in names) else table


def _number(text: str) -> Any:
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text) else text

