"""`whytrust explain`: from what was typed to explanations, shown or written."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from typing import Any

from whytrust import api, inputs, loading
from whytrust.cli import reading
from whytrust.cli.screen import complain
from whytrust.explanation import Explanation, Gallery
from whytrust.models.songs import RATE


def add_to(commands: Any) -> None:
    """The command and its options."""
    explain = commands.add_parser("explain", help="explain predictions of a model",
                                  formatter_class=argparse.RawTextHelpFormatter)
    explain.add_argument("model", metavar="MODEL", help=reading.MODELS)
    explain.add_argument("input", metavar="INPUT", help="a text, an image, sound or .txt file, a folder of them, rows.csv\n"
                                                        "(rows.csv:3 is one row; song.wav@12.5 the moment that a\n"
                                                        "detector of singing is asked about), or a number: that\n"
                                                        "input of the demo")
    explain.add_argument("--column", help="of a .csv or .tsv file: the column with the texts (texts.csv:3 is one of them)")
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
    explain.add_argument("--layer", help="grad_cam: the layer to look at (default: the last feature map that everything flows "
                                         "through)")
    explain.add_argument("--explains", choices=("logit", "score"), help="the log-odds, before a softmax, or the score after it")
    explain.add_argument("--fill", help="what hidden parts show, such as segment_mean, blur, black, zero, [MASK]")
    explain.add_argument("--variant", choices=("paper", "reference"), help="LIME as its paper, or as the lime package, has it")
    explain.add_argument("--family", choices=("linear", "tree", "auto"), help="the local model (default linear)")
    explain.add_argument("--background", help="training data for table rows: a .csv file, or statistics saved as .json")
    reading.add_model_options(explain)
    explain.add_argument("--seed", type=int, default=0)
    explain.add_argument("--out", help="write e.html, e.png, e.svg, e.pdf or e.json instead of printing")
    explain.set_defaults(run=_explain)


def _explain(options: argparse.Namespace) -> int:
    loaded = loading.load(options.model, options.trust_pickle, options.device, **reading.model_options(options))
    model, examples, given = loaded.model, loaded.inputs, dict(loaded.explain_options)
    names = ("parts", "budget", "fill", "variant", "family", "batch_size", "steps", "noise", "sigma", "pooling", "layer",
             "explains")
    given.update({n: getattr(options, n) for n in names if getattr(options, n) is not None})
    if isinstance(given.get("fill"), str) and (given.get("parts") or "").partition(":")[0] not in inputs.SPECS["text"]:
        given["fill"] = reading.number(given["fill"])
    for name in ("samples", "features"):
        if getattr(options, name) is not None:
            given[name] = reading.number(getattr(options, name))
    if options.baseline is not None:
        given["baseline"] = reading.baseline(options.baseline)
    if options.background:
        given["background"] = reading.table(options.background)
    if options.column is not None:
        item, source, wave = reading.texts_of(options.input, options.column), "", None
    elif loaded.detector is None:
        item, source, wave = reading.item_of(options.input, examples, given), "", None
    else:
        item, source, wave = reading.excerpt(options.input, loaded, given)
    given |= {} if options.rate is None else {"rate": options.rate}
    code = 0
    try:
        method = [name.strip() for name in options.method.split(",")] if "," in options.method else options.method
        found = api.explain(model, item, method, options.target, seed=options.seed, **given)
    except api.SomeFailed as failed:
        for index, error in failed.errors.items():
            complain(f"input {index}: {error}")
        found, code = [e for e in failed.explanations if e is not None], 1
    found = [replace(e, source=source or e.source) for e in _flat(found)]
    _show(found if wave is None else [replace(e, view=replace(e.view, wave=wave, rate=RATE)) for e in found], options)
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
