"""`whytrust metrics`: the metrics of explanations themselves on trial."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from whytrust import judging
from whytrust.cli.engines import add_engine_options, chosen
from whytrust.cli.runs import page_place, safe
from whytrust.cli.screen import complain
from whytrust.studies.metrics_study import CASES


def add_to(commands: Any) -> None:
    """The command and its options."""
    command = commands.add_parser("metrics", help="put the metrics of explanations themselves on trial")
    command.add_argument("names", metavar="METRIC", nargs="*", help="metrics by name (default: all; `whytrust methods` lists "
                         "them)")
    command.add_argument("--domain", help="image, text, audio or tabular (default: all)")
    command.add_argument("--cases", type=int, default=CASES, help=f"inputs of each lab (default {CASES})")
    command.add_argument("--out", help="the run's folder; resumes what is there (default runs/metrics-trial)")
    command.add_argument("--html", metavar="FILE", help="write the page there")
    add_engine_options(command)
    command.add_argument("--seed", type=int, default=0)
    command.set_defaults(run=_metrics)


def _metrics(options: argparse.Namespace) -> int:
    out = options.out or "runs/metrics-trial"
    if options.html is not None:
        page_place(Path(options.html))
    try:
        tried = judging.metrics(options.names or None, options.domain, cases=options.cases, out=out, jobs=chosen(options),
                                seed=options.seed, command="whytrust metrics")
    except KeyboardInterrupt:
        complain(f"interrupted; {safe(out)}")
        return 130
    print(json.dumps(tried.to_json()) if options.json else tried)
    if options.html is not None:
        print(f"written: {tried.save_html(options.html)}", file=sys.stderr)
    return 1 if tried.findings["cases"]["failed"] else 0
