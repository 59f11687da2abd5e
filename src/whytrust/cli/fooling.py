"""`whytrust fool`: swap a few words, keep the label, and see what is left of the explanation."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whytrust import inputs, loading
from whytrust.cli import reading
from whytrust.cli.engines import add_engine_options, chosen
from whytrust.cli.runs import page_place, safe
from whytrust.cli.screen import complain
from whytrust.fooling import CONTROLS, VARIANTS, Fooled, fool
from whytrust.language import SOURCES
from whytrust.legible import lines
from whytrust.swapping import RULES


def add_to(commands: Any) -> None:
    """The command and its options."""
    command = commands.add_parser("fool", help="swap a few words, keep the label, and see what is left of the explanation",
                                  formatter_class=argparse.RawTextHelpFormatter)
    command.add_argument("model", metavar="MODEL", help=reading.MODELS)
    command.add_argument("data", metavar="DATA", help="texts.txt with one text a line, texts.tsv or .csv (see --column),\n"
                                                      "a folder of .txt files, or demo: the texts of an embedded model")
    command.add_argument("--explainer", default="lime", help="see `whytrust methods` (default lime)")
    command.add_argument("--objective", default="lom", help="lom, l2, random, or several, a,b (default lom)")
    command.add_argument("--max-ratio", type=float, default=0.5, help="share of the words that may be swapped (default 0.5)")
    command.add_argument("--candidates", default="thesaurus", metavar="SOURCE",
                         help=_listing(SOURCES) + "\nor several, a,b (default thesaurus)")
    command.add_argument("--constraints", metavar="A,B,C", help=_listing(RULES) + "\n(default: all)")
    command.add_argument("--vectors", metavar="FILE", help="word vectors in text format, for the constraint word_distance")
    command.add_argument("--samples", help="of LIME (default 500) and other explainers that draw")
    command.add_argument("--steps", type=int, help="of integrated gradients (default 50)")
    command.add_argument("--pooling", help="how sub-words become words: signed_max (default) or mean")
    command.add_argument("--variant", choices=VARIANTS, default="paper",
                         help="paper (default), or authors: as their code does it")
    command.add_argument("--labels", metavar="FILE", help="true classes, one a line: variant authors keeps these")
    command.add_argument("--column", help="of a .csv or .tsv file: the column with the texts (default: the first)")
    command.add_argument("--controls", type=int, default=CONTROLS, help=f"draws of random swaps (default {CONTROLS})")
    command.add_argument("--racing", action="store_true", help="give up candidates early that are behind: fewer model calls")
    command.add_argument("--quality", default="usual",
                         help="who judges texts as texts: usual (default), none, or of trigram, smollm2,\n"
                              "causal:MODEL (perplexity), harper, link-grammar (grammar), minilm,\n"
                              "encoder:MODEL (likeness), a,b")
    command.add_argument("--limit", type=int, help="so many of the texts, evenly spread")
    reading.add_model_options(command, images=False)
    command.add_argument("--out", help="the run's folder; resumes what is there (default: a temporary one)")
    command.add_argument("--html", metavar="fooled.html", help="also write the page")
    add_engine_options(command)
    command.add_argument("--seed", type=int, default=0)
    command.set_defaults(run=_fool)


def _listing(about: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {line}" for name, line in about.items())


def _fool(options: argparse.Namespace) -> int:
    if options.html:
        page_place(Path(options.html))  # before the work, not after
    loaded = loading.load(options.model, options.trust_pickle, options.device, **reading.model_options(options))
    given = {name: getattr(options, name) for name in ("steps", "pooling") if getattr(options, name) is not None}
    if options.samples is not None:
        given["samples"] = reading.number(options.samples)
    if options.labels is not None and not Path(options.labels).is_file():
        raise ValueError(f"--labels must name a file with one class a line, got {options.labels!r}, which does not exist")
    labels = None if options.labels is None else [reading.number(line.strip()) for line in
                                                  inputs.read_text(options.labels).splitlines() if line.strip()]
    try:
        found = fool(
            loaded.model, _texts(options, loaded), options.explainer, _listed(options.objective), options.max_ratio,
            candidates=_listed(options.candidates),
            constraints=None if options.constraints is None else _listed(options.constraints), vectors=options.vectors,
            variant=options.variant, labels=labels, controls=options.controls, racing=options.racing, quality=options.quality,
            out=options.out, jobs=chosen(options), seed=options.seed, limit=options.limit, batch_size=options.batch_size,
            command=_command(options), **given)
    except KeyboardInterrupt:
        kept = "; without --out nothing was kept" if options.out is None else f"; {safe(options.out)}"
        complain(f"interrupted{kept}")
        return 130
    return _show(found, options)


def _texts(options: argparse.Namespace, loaded: loading.Loaded) -> list[Any]:
    """The texts that DATA stands for; rows of a table by one of its columns."""
    if options.column is None and Path(options.data).suffix.lower() not in reading.TABLES:
        return reading.items_of(options.data, loaded, {}, None)[0]
    return reading.column(options.data, options.column)


def _listed(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _command(options: argparse.Namespace) -> str:
    """How to do the same again."""
    said = ["whytrust", "fool", options.model, options.data]
    usual = {"objective": "lom", "max_ratio": 0.5, "candidates": "thesaurus", "variant": "paper", "controls": CONTROLS,
             "quality": "usual", "explainer": "lime", "seed": 0}
    names = (*usual, "constraints", "vectors", "samples", "steps", "pooling", "labels", "column", "limit", "out",
             "output", "threshold", "classes", "device", "batch_size")
    for name in names:
        value = getattr(options, name)
        if value is not None and value != usual.get(name):
            said += [f"--{name.replace('_', '-')}", str(value)]
    flags = [f"--{name.replace('_', '-')}" for name in ("racing", "trust_pickle") if getattr(options, name)]
    return shlex.join(said + flags)


def _show(found: Fooled, options: argparse.Namespace) -> int:
    if options.html:
        print(found.save_html(options.html), file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(json.dumps(found.to_json()))
    else:
        print(found if not options.html else lines(found.verdicts()))
    for one in found.findings["failures"] if options.html or options.json else ():
        complain(f"text {one['case']} failed: {one['error']}")
    return 1 if found.findings["cases"]["failed"] else 0
