"""`whytrust reproduce veracity`: Praher et al. (2021), and Hoedt et al. (2022) on sound, from songs or from a synthesiser.

Everything is made from the records of a run, finished or not, so a report can be had at any time.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from whytrust import engine
from whytrust.core import near, need
from whytrust.models.songs import SongSet, synthesised
from whytrust.store import Store
from whytrust.studies import veracity as study
from whytrust.studies import veracity_figures as figures
from whytrust.studies import veracity_findings as findings
from whytrust.studies.drawing import SHAPES, read_piece
from whytrust.studies.excerpts import SIGNALS
from whytrust.studies.settling import LEAST
from whytrust.studies.songs import jamendo
from whytrust.studies.veracity_piece import PieceStudy
from whytrust.studies.veracity_told import told

EXPERIMENTS = ("all", "detector", "attack", "flips", "positive", "recovery", "fidelity", "drawings", "contents", "settling",
               "tuning")
ALONE = ("detector", "drawings", "settling", "tuning")
"""Experiments with blocks of their own, which can be run without the others; all the others share the attacked songs."""
USUAL = {"each": study.EACH, "samples": study.SAMPLES, "iterations": study.ITERATIONS, "variant": "authors", "tune": False}
QUICK = {"each": 2, "samples": 256, "iterations": 60, "variant": "authors", "tune": False}
QUICK_SONGS, QUICK_SHAPES = 2, 2
TUNED, QUICK_TUNED = 200, 30
"""Steps of the attack for each setting of the grid."""
AROUND = {"epsilon": (0.5, 1.0), "step": (1.0, 2.0), "alpha": (1.0, 4.0)}
"""The grid: the published settings times these."""
TEST_SEED, VALID_SEED, TEST, VALID, SECONDS = 7, 8, 16, 8, 10.0
"""Of the synthesiser: pieces to test on, those of the demo, and to tune the attack on; its detector never heard either."""


@dataclass(frozen=True)
class Asked:
    """What a user wants; None where nothing was said: then it is as in the run that is there, or as usual."""

    experiment: str = "all"
    data: str | None = None  # a folder of annotated songs, or a log-mel spectrogram as .npy; else the synthesiser
    model: str | None = None
    scale: float | None = None  # share of the test songs
    each: int | None = None
    samples: int | None = None
    iterations: int | None = None
    variant: str | None = None
    tune: bool | None = None
    quick: bool = False
    out: str | None = None
    jobs: engine.Jobs = 1
    seed: int | None = None

    def __post_init__(self) -> None:
        """Refuse at once what could only fail later."""
        check(self.experiment)
        for name, least in (("each", 1), ("samples", LEAST), ("iterations", 1)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
                raise ValueError(f"{name} must be a whole number >= {least}, got {value!r}")
        if self.scale is not None and not 0 < self.scale <= 1:
            raise ValueError(f"scale must lie in (0, 1], got {self.scale!r}; it is the share of the test songs")
        if self.variant not in (None, "authors", "paper"):
            raise ValueError(f"variant must be authors (their code, by default) or paper (its formula), got {self.variant!r}")
        if self.piece and self.experiment != "drawings":
            raise ValueError(f"{self.data} is one spectrogram, which can be drawn on and no more: ask for drawings, or give a "
                             "folder of songs")

    @property
    def piece(self) -> bool:
        """Is it about one spectrogram?"""
        return self.data is not None and Path(self.data).suffix.lower() == ".npy"

    @property
    def folder(self) -> Path:
        """The run's folder."""
        alone = f"-{self.experiment}" if self.experiment in ALONE else ""
        return Path(f"runs/veracity{alone}" if self.out is None else self.out)


def check(experiment: str) -> None:
    """Refuse an experiment that the papers do not have."""
    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}"
                         f"{near(experiment, EXPERIMENTS)}")


def veracity(asked: Asked) -> Path:
    """Run the study, or go on with it, and write its tables (tables.md) and figures beside it; the run's folder comes back.

    Experiments that attack songs share the whole run; detector, drawings, settling and tuning can be had by themselves. Without
    data a run of a user's own songs is reported on as it is, and anything else is run on the synthesiser's.
    """
    need("matplotlib.figure", "report")  # before hours of work, not after
    folder = asked.folder
    kept = _kept(folder)
    if kept is not None:
        _check_holds(Store.open(folder), asked.experiment)
    if asked.data is not None or kept is None or kept["about"].get("synthesised"):
        engine.run(_study(asked, kept), folder, asked.jobs, label="reproducing")
    store = Store.open(folder)
    figures.draw(findings.findings(store), store, folder / "figures", asked.experiment)
    (folder / "tables.md").write_text(report(folder), encoding="utf-8")
    return folder


def report(folder: str | Path, as_json: bool = False, experiment: str = "all") -> str:
    """What a run has found so far beside what was published, as Markdown or JSON."""
    check(experiment)
    store = Store.open(folder)
    _check_holds(store, experiment)
    found = findings.findings(store, experiment)
    pictures = sorted(path.relative_to(folder).as_posix() for path in Path(folder).glob("figures/*.png"))
    return json.dumps(found) if as_json else told(found, pictures if experiment == "all" else [])


def _kept(folder: Path) -> Mapping[str, Any] | None:
    """The manifest of the run that is there already, if it is of this study."""
    if not (folder / "manifest.json").is_file():
        return None
    manifest: Mapping[str, Any] = Store.open(folder).manifest
    return manifest if manifest.get("study") == "veracity" else None


def _check_holds(store: Store, experiment: str) -> None:
    kinds = store.manifest["spec"]["kinds"]
    if experiment != "all" and findings.KIND[experiment] not in kinds:
        raise ValueError(f"{store.folder} holds a run with {', '.join(kinds)}, and nothing of {experiment}; choose another "
                         "folder (--out)")


# --- what is run ------------------------------------------------------------------------------------------------------


def _study(asked: Asked, kept: Mapping[str, Any] | None) -> engine.Study:
    was: Mapping[str, Any] = {} if kept is None else kept["about"].get("options", {})
    usual: Mapping[str, Any] = QUICK if asked.quick else {**USUAL, **was}
    chosen = {name: usual[name] if getattr(asked, name) is None else getattr(asked, name) for name in USUAL}
    seed = asked.seed if asked.seed is not None else 0 if kept is None else kept["seed"]
    if asked.piece:
        return _piece(asked, chosen["samples"], was, seed)
    detector, songs, made = _heard(asked)
    tune, tuned = chosen.pop("tune"), QUICK_TUNED if asked.quick else was.get("tuned", TUNED)
    kinds, count = _kinds(asked, was, tune), _songs_asked(asked, len(songs.test), was)
    valid = songs.valid.limited(max(math.ceil(len(songs.valid) * count / len(songs.test)), 1))
    what = f"{count} of {len(songs.test)} test songs ({songs.what})"
    options = {**chosen, "tune": tune, "tuned": tuned, "songs": count, "kinds": list(kinds)}
    return study.VeracityStudy(
        detector, SongSet(what, songs.train, valid, songs.test.limited(count)), **chosen, kinds=kinds, seed=seed,
        grid=_grid() if "tuning" in kinds else {}, tuned_iterations=min(tuned, chosen["iterations"]),
        facts={"synthesised": made, "options": options})


def _kinds(asked: Asked, was: Mapping[str, Any], tune: bool) -> tuple[str, ...]:
    """Those of the run that is there, if there is one; else what the experiment needs."""
    there = tuple(was.get("kinds", ()))
    if there and ("tuning" in there or not tune):
        return there
    return (asked.experiment,) if asked.experiment in ALONE else tuple(k for k in study.KINDS if k != "tuning" or tune)


def _songs_asked(asked: Asked, there: int, was: Mapping[str, Any]) -> int:
    if asked.scale is not None:
        return max(round(asked.scale * there), 1)
    return min(QUICK_SONGS, there) if asked.quick else int(was.get("songs", there))


def _heard(asked: Asked) -> tuple[Any, SongSet, bool]:
    """(detector, songs, are they synthesised?)."""
    if asked.data is not None and asked.model is None:
        raise ValueError(f"--model must name a detector beside --data {asked.data}; train one on the same songs with: whytrust "
                         f"train singing-voice --data {asked.data} --out model.safetensors")
    if asked.data is not None:
        songs = jamendo(asked.data)
        words = f"{songs.what} to train, tune and test on, with the detector {Path(str(asked.model)).name}"
        return _read(str(asked.model)), SongSet(words, songs.train, songs.valid, songs.test), False
    valid = synthesised(VALID_SEED, VALID, SECONDS)
    if asked.model is not None:  # the demo's own detector, which may not be trained yet, is not asked for
        detector, test = _read(asked.model), synthesised(TEST_SEED, TEST, SECONDS)
        learnt = f"the detector {Path(asked.model).name}"
    else:
        demo = importlib.import_module("whytrust.models.demos").load("singing")
        detector, test, learnt = demo.detector, demo.songs, "a detector that learnt from other such pieces"
    return detector, SongSet(f"synthesised pieces of {SECONDS:g} s, with {learnt}", test[:0], valid, test), True


def _read(model: str) -> Any:
    if not Path(model).is_file():
        raise ValueError(f"--model must name the file of a detector, got {model!r}, which is none; make one with: whytrust "
                         "train singing-voice --out model.safetensors")
    return importlib.import_module("whytrust.models.detector").Detector.read(model)


def _piece(asked: Asked, samples: int, was: Mapping[str, Any], seed: int) -> PieceStudy:
    piece = read_piece(str(asked.data))
    demo = asked.model is None
    detector = importlib.import_module("whytrust.models.demos").load("singing").detector if demo else _read(str(asked.model))
    shapes = QUICK_SHAPES if asked.quick else int(was.get("shapes", len(SHAPES)))
    words = (f"{Path(str(asked.data)).name}, a log-mel spectrogram of {len(piece)} frames, with "
             + ("a detector that learnt from synthesised pieces" if demo else f"the detector {Path(str(asked.model)).name}"))
    return PieceStudy(detector, Path(str(asked.data)).stem, piece, shapes, samples, seed,
                      {"data": words, "synthesised": False, "options": {"samples": samples, "shapes": shapes}})


def _grid() -> dict[str, tuple[dict[str, float], ...]]:
    """Settings around the published ones, for either signal."""
    return {signal: tuple({name: published[name] * factor for name, factor in zip(AROUND, factors, strict=True)}
                          for factors in product(*AROUND.values())) for signal, published in SIGNALS.items()}
