"""`whytrust reproduce`: a paper's experiments again, its tables and figures with the published numbers beside ours."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from whytrust.cli.engines import add_engine_options, chosen
from whytrust.cli.runs import safe
from whytrust.cli.screen import complain
from whytrust.store import Store
from whytrust.studies import fragile_run, lime_run, pitfalls_run, reproduce, veracity_run
from whytrust.swapping.victims import LIME

PAPERS = {"fragile": "Sinha et al. 2021, word swaps", "lime": "Ribeiro et al. 2016, simulated users",
          "metrics": "Wang & Wang 2022, how metrics of explanations mislead",
          "plausible": "Hoedt et al. 2022, images", "veracity": "Praher et al. 2021, and Hoedt et al. 2022 on sound"}
OWN = {"fragile": ("samples", "models", "candidates", "quality", "variant", "racing"), "lime": ("samples",),
       "metrics": (), "plausible": ("few", "models", "protocol"),
       "veracity": ("model", "each", "samples", "iterations", "variant", "quick", "tune")}
"""Options that some papers alone have."""
SCALE, SEED = 1.0, 0


def add_to(commands: Any) -> None:
    """The command and its options."""
    again = commands.add_parser("reproduce", help="a paper's tables from one command")
    again.add_argument("paper", metavar="PAPER", choices=tuple(PAPERS),
                       help="; ".join(f"{name} ({what})" for name, what in PAPERS.items()))
    again.add_argument("experiment", metavar="EXPERIMENT", nargs="?", default="all",
                       help=f"fragile: {', '.join(fragile_run.EXPERIMENTS)}; lime: {', '.join(lime_run.EXPERIMENTS)}; "
                       f"metrics: {', '.join(pitfalls_run.EXPERIMENTS)}; plausible: {', '.join(reproduce.EXPERIMENTS)}; "
                       f"veracity: {', '.join(veracity_run.EXPERIMENTS)} (default all)")
    again.add_argument("--data", help="fragile: a folder of SST-2, AG News or IMDB, one that holds folders sst2, ag_news and "
                       "imdb, or any with train.tsv and test.tsv of text, tab, label. lime: the reviews (fig6, fig7, table1, "
                       "fig8), 20 newsgroups (fig9, fig10) or pets (fig11, table2). metrics: a folder with mnist.npz, or one "
                       "of ImageNet images (default: scikit-learn's digits). plausible: a folder of ImageNet images. "
                       "veracity: a folder of songs with .lab files, as Jamendo has them (default: synthesised ones), or for "
                       "drawings a log-mel spectrogram, piece.npy")
    again.add_argument("--scale", type=float, help="share of the texts, reviews, pairs, readers, images or test songs "
                       "(default 1)")
    again.add_argument("--out", help="the run's folder; resumes what is there (default runs/PAPER)")
    add_engine_options(again)
    again.add_argument("--seed", type=int, help=f"default {SEED}")
    again.add_argument("--samples", type=int, help=f"of LIME (default: fragile {LIME['samples']}; lime 15000, fig8 "
                       f"2000; veracity {veracity_run.USUAL['samples']})")
    again.add_argument("--models", help="a,b,c. fragile: minilm, tfidf, their adversarially trained twins minilm-adv and "
                       f"tfidf-adv, hf:FOLDER_OR_NAME (default {','.join(fragile_run.MODELS)}). plausible: efficientnet-lite0, "
                       "torchvision:NAME (the paper's weights, IMAGENET1K_V1) or torchvision:NAME@WEIGHTS, … (default "
                       f"{','.join(reproduce.MODELS)})")
    again.add_argument("--variant", help="of the attack. fragile: paper (its Algorithm 1, the default) or authors (their code)"
                       "; veracity: authors (their code, the default) or paper (its formula)")
    texts = again.add_argument_group("fragile")
    texts.add_argument("--candidates", metavar="SOURCE", help="where words to swap in come from, as for `whytrust fool` "
                       "(default thesaurus)")
    texts.add_argument("--quality", help="who judges texts as texts: usual (the default), none, or of trigram, smollm2, "
                       "causal:MODEL, harper, link-grammar, minilm, a,b")
    texts.add_argument("--racing", action="store_true", default=None, help="LIME: give up candidates early that are behind")
    images = again.add_argument_group("plausible")
    images.add_argument("--few", type=int, help="images for recovery and for smoothed integrated gradients (default "
                        f"{reproduce.FEW}; all by the paper's protocol)")
    images.add_argument("--protocol", help="usual (the default), or paper: smoothed integrated gradients of 50 steps, "
                        "adversaries cut to the range of pixels, mean_pos of the positive pixels alone")
    songs = again.add_argument_group("veracity")
    songs.add_argument("--model", metavar="MODEL.safetensors", help="from whytrust train singing-voice; needed with a folder "
                       "of songs")
    usual, quick = veracity_run.USUAL, veracity_run.QUICK
    songs.add_argument("--each", type=int, help=f"excerpts of either answer from each song (default {usual['each']})")
    songs.add_argument("--iterations", type=int, help=f"steps of the attack, at most (default {usual['iterations']})")
    songs.add_argument("--quick", action="store_true", default=None,
                       help=f"{veracity_run.QUICK_SONGS} songs, each {quick['each']}, {quick['samples']} samples, "
                       f"{quick['iterations']} iterations: to see what comes out, not to believe it")
    songs.add_argument("--tune", action="store_true", default=None, help="also compare settings of the attack")
    again.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    for name in sorted(set().union(*OWN.values()) - set(OWN[options.paper])):
        if getattr(options, name) is not None:
            papers = " or ".join(f"`whytrust reproduce {paper}`" for paper, names in OWN.items() if name in names)
            raise ValueError(f"--{name} belongs to {papers}, and is nothing that {options.paper} has")
    asked = {"fragile": _fragile, "lime": _lime, "metrics": _metrics, "plausible": _plausible, "veracity": _veracity}
    return asked[options.paper](options)


def _given(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """What was said; the rest is left to what is usual."""
    return {name: value for name in names if (value := getattr(options, name)) is not None}


def _fragile(options: argparse.Namespace) -> int:
    given = _given(options, "data", "scale", "out", "seed", "samples", "candidates", "quality", "variant", "racing")
    if options.models is not None:
        given["models"] = tuple(name.strip() for name in options.models.split(",") if name.strip())
    asked = fragile_run.Asked(options.experiment, jobs=chosen(options), **given)
    try:
        fragile_run.fragile(asked)
    except KeyboardInterrupt:
        complain(f"interrupted; {fragile_run.kept(asked.folder)}")
        return 130
    print(fragile_run.report(asked.folder, options.json, asked.experiment))
    return _failed(asked.folder)


def _lime(options: argparse.Namespace) -> int:
    given = _given(options, "data", "scale", "out", "seed", "samples")
    asked = lime_run.Asked(options.experiment, jobs=chosen(options), **given)
    try:
        lime_run.lime(asked)
    except KeyboardInterrupt:
        return _interrupted(asked.folder)
    print(lime_run.report(asked.folder, options.json))
    return _failed(asked.folder)


def _metrics(options: argparse.Namespace) -> int:
    asked = pitfalls_run.Asked(options.experiment, jobs=chosen(options), **_given(options, "data", "scale", "out", "seed"))
    try:
        pitfalls_run.reproduce(asked)
    except KeyboardInterrupt:
        complain(f"interrupted; the same command goes on with {asked.folder}")
        return 130
    print(pitfalls_run.report(asked.folder, options.json, asked.experiment))
    print(f"written: {asked.folder / 'tables.md'}, {asked.folder / 'figures'}", file=sys.stderr)
    return _failed(asked.folder)


def _plausible(options: argparse.Namespace) -> int:
    folder = options.out or "runs/plausible"
    models = [name.strip() for name in options.models.split(",")] if options.models is not None else None
    scale = SCALE if options.scale is None else options.scale
    seed = SEED if options.seed is None else options.seed
    try:
        reproduce.plausible(options.experiment, options.data, scale, options.few, models, folder, chosen(options), seed,
                            options.protocol)
    except KeyboardInterrupt:
        return _interrupted(folder)
    print(reproduce.report(folder, options.json, options.experiment))
    return _failed(folder)


def _veracity(options: argparse.Namespace) -> int:
    names = ("experiment", "data", "scale", "out", "seed", "model", "each", "samples", "iterations", "variant", "tune")
    asked = veracity_run.Asked(**{name: getattr(options, name) for name in names}, quick=bool(options.quick),
                               jobs=chosen(options))
    if asked.data is None and not (asked.folder / "manifest.json").is_file():
        complain("no --data, so this is run on synthesised music, not on recordings")
    try:
        veracity_run.veracity(asked)
    except KeyboardInterrupt:
        return _interrupted(asked.folder)
    print(veracity_run.report(asked.folder, options.json, asked.experiment))
    return _failed(asked.folder)


def _failed(folder: str | Path) -> int:
    """The exit code: 1 where a case failed in any of the runs that a folder holds, as of an audit."""
    stores = [Store.open(path.parent) for path in sorted(Path(folder).rglob("manifest.json"))]
    return int(any(record.get("status") == "failed" for store in stores for record in store.records(only=())))


def _interrupted(folder: str | Path) -> int:
    complain(f"interrupted; {safe(str(folder))}")
    return 130
