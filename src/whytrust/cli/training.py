"""`whytrust train`: the detector of singing of Praher et al. (2021), or a classifier of texts and its adversarial twin."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import replace
from typing import Any

from whytrust.cli.engines import whole_jobs
from whytrust.cli.screen import complain
from whytrust.core import near
from whytrust.store import plain
from whytrust.studies.songs import SPLITS, synthesised

NETS = ("singing-voice", "text")
EPOCHS, UPDATES, BATCH = 20, 2000, 32
"""The paper's; spelt out, since torch is not loaded to say what options there are."""
OF_SONGS, OF_TEXTS = ("updates", "batch", "seeds", "quick"), ("kind", "adversarial", "candidates", "jobs")
"""Options that only one of them has; None where they were not given."""
ALL = "all"


def add_to(commands: Any) -> None:
    """The command and its options."""
    train = commands.add_parser("train", help="train a model that the toolkit brings along: singing-voice, or text")
    train.add_argument("net", metavar="NET", help="singing-voice (Praher et al. 2021), or text: a classifier of labelled texts")
    train.add_argument("--data", help="singing-voice: a folder of songs with .lab files ('start end sing|nosing' a line) and "
                       f"lists of those to train, tune and test on, filelists/{{{','.join(SPLITS)}}}.txt, or folders of these "
                       "names; by default synthesised music. text: a .tsv with a text, a tab and a label a line, or a folder "
                       "with train.tsv and test.tsv, which is held out")
    train.add_argument("--out", required=True, metavar="MODEL", help="singing-voice: MODEL.safetensors, with a table (.md) and "
                       "a picture (.png) beside it; text: a folder for hf:FOLDER, or MODEL.joblib for tfidf")
    train.add_argument("--epochs", type=int, help=f"default {EPOCHS}; of minilm 1")
    train.add_argument("--updates", type=int, help=f"singing-voice: an epoch (default {UPDATES})")
    train.add_argument("--batch", type=int, help=f"singing-voice: default {BATCH}")
    train.add_argument("--seeds", type=int, help="singing-voice: train so many nets, keep the one that errs least on the "
                       "validation songs, and report mean ± standard deviation")
    train.add_argument("--seed", type=int, default=0, help="the first of them")
    train.add_argument("--quick", action="store_true", default=None, help="singing-voice: a small training of some minutes "
                       "instead of the paper's of hours")
    train.add_argument("--kind", help="text: minilm (fine-tuned, the default) or tfidf (with a logistic regression)")
    train.add_argument("--adversarial", metavar="N", help="text: attack so many of the training texts, or all, by word swaps, "
                       "and train again on those that flip as well")
    train.add_argument("--candidates", help="text: where swapped words come from, as in whytrust fool (default thesaurus)")
    train.add_argument("--jobs", type=whole_jobs, help="text: processes that attack (default 1)")
    train.set_defaults(run=_train)


def _train(options: argparse.Namespace) -> int:
    if options.net not in NETS:
        raise ValueError(f"NET must be one that can be trained here, {', '.join(NETS)}, got {options.net!r}"
                         f"{near(options.net, NETS)}; for a net of your own, pass the trained one to wt.explain")
    strange = [name for name in (OF_SONGS if options.net == "text" else OF_TEXTS) if getattr(options, name) is not None]
    if strange:
        raise ValueError(f"--{strange[0]} says nothing of {options.net}; leave it out")
    if options.adversarial is None and (options.candidates is not None or options.jobs is not None):
        raise ValueError("--candidates and --jobs are of an attack; say how many texts to attack, --adversarial N, or leave "
                         "them out")
    if options.kind == "tfidf" and options.epochs is not None:
        raise ValueError("--epochs says nothing of tfidf, which is fitted at once; leave it out")
    return _train_text(options) if options.net == "text" else _train_detector(options)


def _train_text(options: argparse.Namespace) -> int:
    if options.data is None:
        raise ValueError("--data must name the texts to train on: a .tsv with a text, a tab and a label a line, or a folder "
                         "with train.tsv and test.tsv")
    from whytrust.studies import text_files  # only now: this loads scikit-learn, and may load torch

    given = {name: getattr(options, name) for name in ("epochs", "jobs") if getattr(options, name) is not None}
    given |= {} if options.candidates is None else {"candidates": [one.strip() for one in options.candidates.split(",")]}
    try:
        made = text_files.train(options.data, options.out, options.kind or "minilm", _attacked(options.adversarial),
                                seed=options.seed, **given)
    except KeyboardInterrupt:
        print(f"whytrust: interrupted; texts attacked and weights trained so far are kept; go on with: {_same(options)}",
              file=sys.stderr)
        return 130
    if options.json:
        print(json.dumps({"path": str(made.path), "model": made.model, **plain(made.facts)}))
    else:
        print(f"{made}\n\nmodel {made.path}\nexplain it with: whytrust explain {made.model} TEXT")
    return 0


def _attacked(given: str | None) -> int | None:
    """How many training texts to attack: 0 for none, None for all."""
    if given is None or given == ALL:
        return 0 if given is None else None
    if not given.isdecimal() or int(given) < 1:
        raise ValueError(f"--adversarial must be a number of texts to attack, at least 1, or {ALL}, got {given!r}")
    return int(given)


def _train_detector(options: argparse.Namespace) -> int:
    # Only now: these load torch.
    from whytrust.models.singing_demo import RECIPE
    from whytrust.models.training import Schedule
    from whytrust.studies.detector import train_detector, working_folder

    asked = {name: getattr(options, name) for name in ("epochs", "updates", "batch") if getattr(options, name) is not None}
    schedule = replace(RECIPE.schedule if options.quick else Schedule(), seed=options.seed, **asked)
    data = options.data if options.data is not None else synthesised(0, *RECIPE.pieces, RECIPE.seconds) if options.quick \
        else synthesised()
    if options.data is None:
        complain(f"no --data, so the net learns from {data.what}, not from recordings")
    try:
        made = train_detector(data, options.out, schedule, 1 if options.seeds is None else options.seeds, _left_out)
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
    complain(f"a song is left out: {problem}")


def _same(options: argparse.Namespace) -> str:
    """The command that goes on."""
    words = ["whytrust", "train", options.net]
    for name in ("data", "out", "epochs", "updates", "batch", "seeds", "seed", "kind", "adversarial", "candidates", "jobs"):
        value = getattr(options, name)
        if value is not None and (name, value) != ("seed", 0):
            words += [f"--{name}", str(value)]
    return shlex.join([*words, *(["--quick"] if options.quick else [])])
