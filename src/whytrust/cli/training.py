"""`whytrust train singing-voice`: the detector of Praher et al. (2021), on annotated songs or on synthesised ones."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import replace
from typing import Any

from whytrust.core import near
from whytrust.studies.songs import SPLITS, synthesised

NETS = ("singing-voice",)
EPOCHS, UPDATES, BATCH = 20, 2000, 32
"""The paper's; spelt out, since torch is not loaded to say what options there are."""


def add_to(commands: Any) -> None:
    """The command and its options."""
    train = commands.add_parser("train", help="train a net that the toolkit brings along: singing-voice")
    train.add_argument("net", metavar="NET", help="singing-voice (Praher et al. 2021)")
    train.add_argument("--data", help="a folder of songs with .lab files ('start end sing|nosing' a line) and lists of those "
                       f"to train, tune and test on, filelists/{{{','.join(SPLITS)}}}.txt, or folders of these names; by "
                       "default synthesised music")
    train.add_argument("--out", required=True, metavar="MODEL.safetensors", help="the weights; a table (.md) and a picture "
                       "(.png) are written beside it")
    train.add_argument("--epochs", type=int, help=f"default {EPOCHS}")
    train.add_argument("--updates", type=int, help=f"an epoch (default {UPDATES})")
    train.add_argument("--batch", type=int, help=f"default {BATCH}")
    train.add_argument("--seeds", type=int, default=1, help="train so many nets, keep the one that errs least on the "
                       "validation songs, and report mean ± standard deviation")
    train.add_argument("--seed", type=int, default=0, help="the first of them")
    train.add_argument("--quick", action="store_true", help="a small training of some minutes instead of the paper's of hours")
    train.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> int:
    if options.net not in NETS:
        raise ValueError(f"NET must be one that can be trained here, {', '.join(NETS)}, got {options.net!r}"
                         f"{near(options.net, NETS)}; for a net of your own, pass the trained one to wt.explain")
    # Only now: these load torch.
    from whytrust.models.singing_demo import RECIPE
    from whytrust.models.training import Schedule
    from whytrust.studies.detector import train_detector, working_folder

    asked = {name: getattr(options, name) for name in ("epochs", "updates", "batch") if getattr(options, name) is not None}
    schedule = replace(RECIPE.schedule if options.quick else Schedule(), seed=options.seed, **asked)
    data = options.data if options.data is not None else synthesised(0, *RECIPE.pieces, RECIPE.seconds) if options.quick \
        else synthesised()
    if options.data is None:
        print(f"whytrust: no --data, so the net learns from {data.what}, not from recordings", file=sys.stderr)
    try:
        made = train_detector(data, options.out, schedule, options.seeds, _left_out)
    except KeyboardInterrupt:
        kept = sorted(working_folder(options.out).glob("checkpoint-*.safetensors"))
        safe = f"what was learnt so far is kept in {working_folder(options.out)}; go on with: {_same(options)}"
        print(f"whytrust: interrupted; {safe if kept else 'nothing had been learnt yet'}", file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps({"model": str(made.path), "table": str(made.table), "picture": str(made.picture), **made.facts}))
    else:
        print(f"{made}\n\nweights {made.path}\ntable   {made.table}\npicture {made.picture}\n"
              f"explain it with: whytrust explain {shlex.quote(str(made.path))} SONG")
    return 1 if made.problems else 0


def _left_out(problem: str) -> None:
    print(f"whytrust: a song is left out: {problem}", file=sys.stderr)


def _same(options: argparse.Namespace) -> str:
    """The command that goes on."""
    words = ["whytrust", "train", options.net]
    for name in ("data", "out", "epochs", "updates", "batch", "seeds", "seed"):
        value = getattr(options, name)
        if value is not None and (name, value) not in (("seeds", 1), ("seed", 0)):
            words += [f"--{name}", str(value)]
    return shlex.join([*words, *(["--quick"] if options.quick else [])])
