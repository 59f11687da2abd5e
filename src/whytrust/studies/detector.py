"""The singing-voice detector of Praher et al. (2021) trained again: its errors over seeds, and a look at one song."""

from __future__ import annotations

import math
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from whytrust.core import need
from whytrust.domains import audio
from whytrust.models import detection, singing_voice
from whytrust.models.detection import Performance
from whytrust.models.hearing import Hearing
from whytrust.models.songs import RATE, SongSet, Stretches, sung_frames
from whytrust.models.training import Schedule, train
from whytrust.studies.detector_picture import draw
from whytrust.studies.markdown import table
from whytrust.studies.songs import jamendo, readable, synthesised

PUBLISHED = {"error": (11.54, 0.96), "recall": (89.61, 1.71), "specificity": (87.46, 1.00)}
"""Per cent, mean and standard deviation over 5 runs on Jamendo (Praher et al. 2021, section 4.2)."""
JAMENDO = (61, 16, 16)
"""Its songs to train, tune and test on."""
MEASURES = ("error", "recall", "specificity", "precision", "f1")


@dataclass(frozen=True, eq=False)
class Trained:
    """What came out of training a detector, and where it lies."""

    path: Path
    table: Path
    picture: Path
    facts: dict[str, Any]
    problems: tuple[str, ...]

    def __str__(self) -> str:
        """The table."""
        return self.table.read_text(encoding="utf-8").strip()


@dataclass(frozen=True, eq=False)
class _Run:
    """One seed: the net, the threshold that suits the validation songs, and its performance on those and on the test songs."""

    net: Any
    seed: int
    threshold: float
    valid: Performance
    test: Performance
    errors: list[float]  # of each test song


def train_detector(data: str | os.PathLike[str] | SongSet | None, out: str | os.PathLike[str], schedule: Schedule,
                   seeds: int = 1, on_problem: Callable[[str], None] = warnings.warn) -> Trained:
    """Train on a folder of annotated songs, on a set, or (None) on synthesised pieces, and write down how well it does.

    Seeds count up from the schedule's. Of several nets the one that errs least on the validation songs is kept. Beside `out` a
    table (.md), a picture of one test song (.png) and, in a folder, what an interrupted run goes on from are written. Songs
    that cannot be read are told to `on_problem` and left out.
    """
    place = Path(out)
    if place.suffix != ".safetensors":
        raise ValueError(f"out must name a .safetensors file, got {os.fspath(out)!r}")
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise ValueError(f"seeds must be a whole number of at least 1, got {seeds!r}")
    need("matplotlib.figure", "report")  # better missed now than after hours
    listed = synthesised() if data is None else data if isinstance(data, SongSet) else jamendo(data)
    songs, problems = readable(listed, schedule.span)
    for problem in problems:
        on_problem(problem)
    runs = [_run(songs, replace(schedule, seed=schedule.seed + i), working_folder(place)) for i in range(seeds)]
    best = min(runs, key=lambda run: run.valid.error)
    facts = _facts(songs, schedule, runs, best, problems)
    singing_voice.save(best.net, place, facts)
    written = place.with_suffix(".md")
    written.write_text(report(facts, _sizes(listed)), encoding="utf-8")
    _drawn(best, songs, place.with_suffix(".png"))
    shutil.rmtree(working_folder(place) / "magnitudes", ignore_errors=True)  # gigabytes, and made again in minutes
    return Trained(place, written, place.with_suffix(".png"), facts, problems)


def working_folder(out: str | os.PathLike[str]) -> Path:
    """Where spectrograms and checkpoints of a training are kept."""
    return Path(out).with_suffix(".training")


def _run(songs: SongSet, schedule: Schedule, folder: Path) -> _Run:
    net = train(songs.train, schedule, folder)
    probabilities, labels = detection.heard(net, songs.valid)
    threshold = detection.tuned_threshold(probabilities, labels)
    tested = detection.heard(net, songs.test)
    errors = [detection.judged([p], [truth], threshold).error for p, truth in zip(*tested, strict=True)]
    return _Run(net, schedule.seed, threshold, detection.judged(probabilities, labels, threshold),
                detection.judged(*tested, threshold), errors)


def _sizes(songs: SongSet) -> tuple[int, int, int]:
    return len(songs.train), len(songs.valid), len(songs.test)


def _facts(songs: SongSet, schedule: Schedule, runs: Sequence[_Run], best: _Run, problems: Sequence[str]) -> dict[str, Any]:
    return {
        "threshold": best.threshold, "seed": best.seed, **{name: best.test.to_json()[name] for name in PUBLISHED},
        "data": songs.what, "songs": _sizes(songs), "left_out": list(problems), "schedule": asdict(schedule),
        "valid": best.valid.to_json(), "test": best.test.to_json(), "seeds": [run.seed for run in runs],
        "runs": [{"seed": run.seed, "threshold": run.threshold, "valid": run.valid.to_json(), "test": run.test.to_json()}
                 for run in runs],
    }


# --- written down -----------------------------------------------------------------------------------------------------


def report(facts: Mapping[str, Any], listed: tuple[int, int, int]) -> str:
    """A page of Markdown: what was trained on what, and its errors, on Jamendo beside those published."""
    runs = [Performance.from_json(run["test"]) for run in facts["runs"]]
    found, jamendos = detection.over_seeds(runs), tuple(listed) == JAMENDO
    schedule = Schedule(**facts["schedule"])
    header = ["on the test songs, %", f"here ({_counted(len(runs), 'run')})", *(["published (5 runs)"] if jamendos else [])]
    rows = [[name if name != "f1" else "F1", _spread(*(100 * value for value in found[name])),
             *([_spread(*PUBLISHED[name]) if name in PUBLISHED else "–"] if jamendos else [])] for name in MEASURES]
    left_out = facts["left_out"]
    lines = [
        "# Singing-voice detector", "",
        f"Trained on {facts['data']}: {schedule.total:,} updates of {schedule.batch} segments of {schedule.frames} frames, "
        f"{'with' if schedule.augment else 'without'} augmentation. Answers are smoothed by a median over "
        f"{detection.SMOOTHED} frames; the threshold is tuned on the validation songs. The weights are of seed "
        f"{facts['seed']}, which errs least on those; its threshold is {facts['threshold']:g}.", "",
        *table(header, rows), "",
        f"{runs[0].frames:,} frames are judged. ± is the standard deviation over runs, not over songs.",
    ]
    if left_out:
        lines += ["", f"{_counted(len(left_out), 'song')} left out:", "", *(f"- {problem}" for problem in left_out)]
    return "\n".join(lines) + "\n"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _spread(mean: float, deviation: float) -> str:
    if math.isnan(mean):
        return "–"
    return f"{mean:.2f}" if math.isnan(deviation) else f"{mean:.2f} ± {deviation:.2f}"


def _drawn(run: _Run, songs: SongSet, path: Path) -> None:
    """The test song on which the net errs as on most: neither the best nor the worst."""
    typical = int(np.argsort(run.errors, kind="stable")[len(run.errors) // 2])
    song, hearing = songs.test[typical], Hearing(run.net)
    draw(song, hearing.log_mel(song.wave), hearing.probabilities(song.wave), run.threshold, path)


# --- on recordings ----------------------------------------------------------------------------------------------------


def tried_on(net: Any, threshold: float, truths: Mapping[str, Stretches | None]) -> list[dict[str, Any]]:
    """What a detector says to recordings: for each file the share of frames that it calls singing, and its error where known.

    `truths` are the stretches with singing in seconds, () where nobody sings, None where somebody does and nobody wrote down
    when. A share says little of a song of which it is not known how much of it is sung.
    """
    hearing, found = Hearing(net), []
    for path, sung in truths.items():
        wave = audio.read(path, RATE)[0]
        probabilities = detection.smoothed(hearing.probabilities(wave))
        answers = probabilities > threshold
        row: dict[str, Any] = {"name": Path(path).name, "seconds": len(wave) / RATE, "called_singing": float(answers.mean()),
                               "mean_probability": float(probabilities.mean()), "sung": None, "error": None}
        if sung is not None:
            truth = sung_frames(sung, len(answers))
            row |= {"sung": float(truth.mean()), "error": Performance.of(answers, truth).error}
        found.append(row)
    return found
