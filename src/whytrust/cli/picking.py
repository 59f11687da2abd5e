"""`whytrust pick`: a few explanations out of many that show most of what matters to a model."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from whytrust import inputs, loading
from whytrust.cli import reading
from whytrust.cli.engines import add_engine_options, chosen
from whytrust.cli.screen import complain
from whytrust.picking import METHODS, Picked, pick

ENDINGS = (".html", ".htm", ".png", ".svg", ".pdf", ".json")


def add_to(commands: Any) -> None:
    """The command and its options."""
    command = commands.add_parser("pick", help="explain many predictions, and pick the few that show most of what matters",
                                  formatter_class=argparse.RawTextHelpFormatter)
    command.add_argument("model", metavar="MODEL", help=reading.MODELS)
    command.add_argument("data", metavar="DATA", help="a folder, rows.csv, texts.txt with one text a line, inputs.npy,\n"
                                                      "or demo: the inputs of an embedded model")
    command.add_argument("--column", help="of a .csv or .tsv file: the column with the texts")
    command.add_argument("--budget", type=int, default=10, help="how many explanations to look at (default 10)")
    command.add_argument("--method", choices=METHODS, default="submodular", help="how to pick (default submodular)")
    command.add_argument("--explainer", default="lime", help="see `whytrust methods` (default lime)")
    command.add_argument("--other", metavar="MODEL2", help="a second model, to be shown beside the first on the same inputs")
    command.add_argument("--target", help="one class for all inputs (default: the predicted class of each)")
    command.add_argument("--parts", help="slic:16, grid:4x4, words, bag, sentences, tf:5x4, time:16, columns, …")
    command.add_argument("--components", type=int, help="images and sounds: into how many groups like parts are put")
    command.add_argument("--describe", metavar="A,B,C",
                         help="images and sounds: what parts are compared by: colour, texture, level,\n"
                              "spectrum, change, band, model; or place alone, where all are cut alike")
    command.add_argument("--rate", type=int, help="sounds: samples a second that the model was made for; files are resampled")
    command.add_argument("--samples", help="auto, or how many model calls each explanation may take")
    command.add_argument("--features", help="how many parts to keep in each explanation, or all")
    command.add_argument("--fill", help="what hidden parts show, such as segment_mean, blur, black, zero, [MASK]")
    command.add_argument("--background", help="training data for table rows: a .csv file, or statistics saved as .json")
    reading.add_model_options(command)
    command.add_argument("--limit", type=int, help="so many of the inputs, evenly spread")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--run", metavar="FOLDER", dest="folder",
                         help="keep explanations there as they get done; the same command goes on")
    add_engine_options(command)
    command.add_argument("--out", help="write pick.html, .png, .svg, .pdf or .json instead of printing")
    command.set_defaults(run=_pick)


def _pick(options: argparse.Namespace) -> int:
    if options.out is not None and Path(options.out).suffix.lower() not in ENDINGS:
        raise ValueError(f"--out must end in {', '.join(ENDINGS)}, got {options.out!r}")  # before an hour of explaining
    if options.budget < 1:
        raise ValueError(f"--budget must be at least 1, got {options.budget}")
    said = reading.model_options(options)
    loaded = loading.load(options.model, options.trust_pickle, options.device, **said)
    models = [loaded.model]
    if options.other is not None:
        models.append(loading.load(options.other, options.trust_pickle, options.device, **said).model)
    given = _given(options, loaded)
    items, called = reading.heard(*reading.items_of(options.data, loaded, given, options.limit, options.column), loaded)
    if options.folder is None:  # a run says how far it is itself, once its folder is found to be its own
        complain(f"explaining {len(items)} inputs with {options.explainer}")
    found = pick(tuple(models) if len(models) > 1 else models[0], items, options.budget, options.method, options.explainer,
                 options.target, seed=options.seed, components=options.components,
                 describe=None if options.describe is None else [one.strip() for one in options.describe.split(",")],
                 out=options.folder, jobs=chosen(options), **given)
    for index, error in found.failed.items():
        complain(f"{called[index] or items[index]}: {error}")
    _show(found.renamed(called), options)
    return 1 if found.failed else 0


def _given(options: argparse.Namespace, loaded: loading.Loaded) -> dict[str, Any]:
    """Options of the explanations: those of a demo, and what was typed."""
    given = dict(loaded.explain_options)
    given.update({n: getattr(options, n) for n in ("parts", "fill", "batch_size", "rate") if getattr(options, n) is not None})
    if isinstance(given.get("fill"), str) and (given.get("parts") or "").partition(":")[0] not in inputs.SPECS["text"]:
        given["fill"] = reading.number(given["fill"])
    for name in ("samples", "features"):
        if getattr(options, name) is not None:
            given[name] = reading.number(getattr(options, name))
    if options.background:
        given["background"] = reading.table(options.background)
    return given


def _show(found: Picked, options: argparse.Namespace) -> None:
    if options.out:
        print(found.save(options.out), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(found.summary()))
    elif not options.out:
        print(found)
