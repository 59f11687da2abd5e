"""`whytrust trust`: do explanations help somebody decide? Experiments with simulated readers."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator, clone

from whytrust import inputs, loading
from whytrust.cli import reading
from whytrust.cli.engines import add_engine_options, chosen
from whytrust.cli.runs import page_place, safe
from whytrust.cli.screen import complain
from whytrust.legible import lines
from whytrust.models import demos
from whytrust.trusting import EXPERIMENTS, Trust, trust

TRAINING = ("model", "repair", "insight")
"""Experiments that train models of their own."""
NUMBERS = {"rounds": "prediction: how often untrustworthy features are drawn (default 100)",
           "share": "prediction: the share of features that is untrustworthy (default 0.25); insight: of the\n"
                    "training inputs of one class, the share with the artefact (default 1)",
           "pairs": "model: how many pairs of models (default 100)", "explained": "model: inputs that are explained, at most",
           "tries": "model: how many models are trained at most until a pair is found (default 400)",
           "instances": "repair: explanations that a reader sees in a round (default 10)",
           "training": "insight: inputs of each class to train on (default half of them)",
           "top": "insight: parts that a reader takes from an explanation (default 3)",
           "features": "parts that a reader takes from an explanation (default 10)"}
LISTS = {"budgets": "model: how many explanations readers see, such as 1,5,10",
         "readers": "repair: readers of each round, such as 10,5,5; insight: how many (default 27)"}


def add_to(commands: Any) -> None:
    """The command and its options."""
    command = commands.add_parser("trust", help="do explanations help somebody decide? Experiments with simulated readers",
                                  formatter_class=argparse.RawTextHelpFormatter)
    command.add_argument("model", metavar="MODEL", help="as in explain; for the experiments model, repair and insight an\n"
                         "unfitted scikit-learn estimator or a function (inputs, labels, seed)\n"
                         "-> model, as file.py:attribute, or a demo")
    command.add_argument("data", metavar="DATA", help="a folder, rows.csv, texts.txt with one text a line, inputs.npy, or demo")
    command.add_argument("--column", help="of a .csv or .tsv file, and of one for --world: the column with the texts")
    command.add_argument("--experiment", choices=tuple(EXPERIMENTS), default="prediction",
                         help="\n".join(f"{name}: {about}" for name, about in EXPERIMENTS.items()))
    command.add_argument("--explainers", help="a,b,c (default lime,greedy; random is always there)")
    command.add_argument("--labels", metavar="FILE", help="a class an input: .txt with one a line, or a column of a table")
    command.add_argument("--world", metavar="DATA", help="inputs that the model will meet, for model and repair")
    command.add_argument("--world-labels", metavar="FILE", help="their classes")
    command.add_argument("--parts", help="slic:16, grid:4x4, words, bag, sentences, tf:5x4, time:16, columns, …")
    command.add_argument("--rate", type=int, help="sounds: samples a second")
    command.add_argument("--fill", help="what hidden parts show")
    command.add_argument("--background", help="training data for table rows: a .csv file")
    for name, about in NUMBERS.items():
        command.add_argument(f"--{name}", type=float if name == "share" else int, help=about)
    for name, about in LISTS.items():
        command.add_argument(f"--{name}", type=_numbers, metavar="N,N,…", help=about)
    command.add_argument("--limit", type=int, help="so many of the inputs, evenly spread")
    reading.add_model_options(command)
    command.add_argument("--out", help="the run's folder; resumes what is there (default: a temporary one)")
    command.add_argument("--html", metavar="trust.html", help="also write the page")
    add_engine_options(command)
    command.add_argument("--seed", type=int, default=0)
    command.set_defaults(run=_trust)


def _trust(options: argparse.Namespace) -> int:
    trains = options.experiment in TRAINING
    loaded = _loaded(options, trains)
    given = dict(loaded.explain_options)
    given.update({n: getattr(options, n) for n in ("parts", "rate", *NUMBERS, *LISTS) if getattr(options, n) is not None})
    if options.experiment == "insight" and len(given.get("readers", ())) == 1:
        given["readers"] = given["readers"][0]  # there are no rounds
    if options.fill is not None:
        given["fill"] = reading.number(options.fill)
    if options.background and trains:
        raise ValueError(f"--background means nothing in experiment {options.experiment}: hidden columns take values of the "
                         "rows that models are trained on; leave it out")
    if options.background:
        given["background"] = reading.table(options.background)
    if options.html:
        page_place(Path(options.html))  # before the work, not after
    items = reading.items_of(options.data, loaded, given, None, options.column)[0]
    labels = _labels(options.labels, options.data) if options.labels else _truths(options, loaded, trains)
    items = _together(_without(items, options.labels), trains)
    if trains:
        given.pop("background", None)
    elif hasattr(given.get("background"), "columns"):
        given["background"] = given["background"].drop(columns=options.labels or [], errors="ignore")
    world = None
    if options.world is not None:
        if options.world_labels is None:
            raise ValueError("--world needs --world-labels, the classes of its inputs")
        of_texts = options.column if Path(options.world).suffix.lower() in reading.TABLES else None
        met = _without(reading.items_of(options.world, loaded, {}, None, of_texts)[0], options.world_labels)
        world = (_together(met, True), _labels(options.world_labels, options.world))
    explainers = None if options.explainers is None else [one.strip() for one in options.explainers.split(",")]
    try:
        found = trust(loaded.model, items, explainers, options.experiment, world=world, out=options.out, jobs=chosen(options),
                      labels=labels if trains or options.labels else None, seed=options.seed, limit=options.limit, **given)
    except KeyboardInterrupt:
        kept = "; without --out nothing was kept" if options.out is None else f"; {safe(options.out)}"
        complain(f"interrupted{kept}")
        return 130
    return _show(found, options)


def _numbers(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between them."""
    try:
        return tuple(int(one) for one in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError("must be whole numbers with commas between them, such as 10,5,5, got "
                                         f"{text!r}") from None


def _show(found: Trust, options: argparse.Namespace) -> int:
    if options.html:
        print(found.save_html(options.html), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(found.to_json()))
    else:
        print(found if not options.html else lines(found.verdicts()))
    return 1 if found.findings["cases"]["failed"] else 0


def _loaded(options: argparse.Namespace, trains: bool) -> loading.Loaded:
    """A trained model, or what trains one: an estimator is taken as it would be before it was fitted."""
    said = reading.model_options(options)
    if not trains:
        return loading.load(options.model, options.trust_pickle, options.device, **said)
    demo = demos.load(options.model.partition(":")[2]) if options.model.startswith("demo:") else None
    made = loading.attribute(options.model) if demo is None else demo.model
    if isinstance(made, BaseEstimator):
        if hasattr(made, "classes_"):
            complain(f"{options.model} is fitted, and is trained anew here")
        made = clone(made)
    elif demo is not None or not callable(made):
        raise ValueError(f"experiment {options.experiment} trains models, and {options.model} cannot be trained again here; "
                         "name an unfitted scikit-learn estimator or a function (inputs, labels, seed) -> model, as "
                         "file.py:attribute")
    if demo is None:
        return loading.Loaded(made)
    return loading.Loaded(made, demo.inputs, {k: v for k, v in demo.explain_options.items() if k != "background"}, demo)


def _labels(path: str, data: str) -> list[Any]:
    if Path(data).suffix.lower() in reading.TABLES and not Path(path).is_file():
        rows = reading.table(data)
        if path not in rows:
            raise ValueError(f"--labels must name a file or a column of {data}, got {path!r}")
        return list(rows[path])
    if not Path(path).is_file():
        raise ValueError(f"--labels must name a file with one class a line, got {path!r}, which does not exist")
    return [reading.number(line.strip()) for line in inputs.read_text(path).splitlines() if line.strip()]


def _truths(options: argparse.Namespace, loaded: loading.Loaded, trains: bool) -> list[Any] | None:
    """The classes that a demo's inputs are known to have."""
    known = None if loaded.demo is None or options.data != "demo" else loaded.demo.truths
    if trains and known is None:
        raise ValueError(f"experiment {options.experiment} trains models, so it needs --labels, a class for each input")
    return known


def _without(items: list[Any], column: str | None) -> list[Any]:
    """Rows without the column that holds their class: a model that sees it has nothing to learn."""
    if column is None or not items or not hasattr(items[0], "to_frame"):
        return items
    return [row.drop(column) if column in row.index else row for row in items]


def _together(items: list[Any], trains: bool) -> Any:
    """Rows as a table again where models are trained on them; else inputs as they are."""
    return reading.frame(items) if trains and items and hasattr(items[0], "to_frame") else items
