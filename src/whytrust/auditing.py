"""What a user types to put explanations on trial: `audit`."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from whytrust import api, engine
from whytrust.models import demos
from whytrust.progress import Progress
from whytrust.rehearsal import Clock, Rehearsed, Watched, slowed
from whytrust.report.audit import Audit
from whytrust.studies import spec
from whytrust.studies.audit import AuditStudy
from whytrust.studies.data import NotRead, gather

A_MOMENT = 2.0
"""Seconds after which a dry run has seen enough."""


def audit(model: Any, inputs: Any, explainers: Any = None, parts: Any = None, attack: Any = None, trials: Any = None,
          out: str | os.PathLike[str] | None = None, jobs: engine.Jobs = 1, seed: int = 0, *, groups: Any = None,
          labels: Any = None, adversaries: Any = None, targets: Any = None, limit: int | None = None,
          size: int | None = None, resize: int | None = None,
          seconds: float | None = None, **options: Any) -> Audit:
    """Which explainers find what made the model change its mind? Every input is attacked, and the cause is then known.

    `inputs` is a folder of images or sounds (class folders or flat), a list of them, an array with one input a row, texts
    (a list, a .txt file with one a line, a folder of such), or, with background= training rows, table rows. `explainers`
    are names, objects, or {label: name, object or {"method": …, options}}; random, magnitude and oracle are always there.
    `attack` is a name, an attack object, or {"method": "pgd", "targets": "random", "strengths": [0, 2], …}; table rows are
    led to the nearest training row of another class, and words of texts are swapped until the label changes. `groups` names
    the source of each input, where some share one (frames of one film); `labels` are true classes, for the accuracy.

    Instead of an attack, `adversaries` are inputs that were changed before, one for each: arrays, texts, rows, or a .npy, .npz,
    .csv or .txt file of them. One that does not change the label did not fool the model. `targets` is a class for each input,
    which the attack, or the saved adversary, must lead to.

    The run is kept in `out`: the same call goes on where it stopped, and another one there is refused. Without `out` it is
    kept in a temporary folder, `audit.store.folder`. `jobs` is a number of processes, or an engine (see `whytrust.engine`).
    Further options: fill, background, ks (recovery), draws (random orders a case), cut_on, batch_size, block, keep ("maps", or
    "scores" to leave out inputs, adversaries and cuts, and with them the page's pictures); for images of any size, size (the
    middle square) and resize; for sounds rate (samples a second), seconds (their middle) and explain_on: "input", or
    "preprocessed" to attack waveforms and explain the spectrograms that the model's preprocess makes of them.
    """
    wrapped = api.model(model)
    data = gather(inputs, options.get("background"), groups, labels)
    made = spec.one_for_each({"attack": attack, "adversaries": adversaries, "targets": targets}, len(data.items))
    data = replace(data, size=size, resize=resize, seconds=seconds).limited(limit)
    study = spec.settle(wrapped, data, explainers=explainers, parts=parts, trials=trials, seed=seed, **made, **options)
    study = replace(study, command=f"wt.audit(model, inputs, …, out={str(out)!r}), with the settings below")
    return run(study, Path(tempfile.mkdtemp(prefix="whytrust-audit-")) / "run" if out is None else out, jobs)


def run(study: AuditStudy, folder: str | os.PathLike[str], jobs: engine.Jobs = 1) -> Audit:
    """Do what is left of a study; an error where no input could be worked on."""
    found = Audit(engine.run(study, Path(folder), jobs))
    _ = found.findings
    return found


def estimate(study: AuditStudy, jobs: engine.Jobs = 1, clock: Clock | None = None) -> dict[str, Any]:
    """How many model calls and how long a run would take, from working on the first inputs; nothing is kept.

    One input, then four times as many as before while that takes but a moment (small models are fastest in large batches) or
    none was fooled. The explainers are rehearsed. So are the attack and the trials where the model is slow, after some hundred
    calls of a kind. Attacks on whole songs are reckoned by the length of the songs, and by the steps where `brief` made few.
    """
    workers = engine.chosen(jobs).workers
    items = [item for item in study.data.items if not isinstance(item.value, NotRead)]
    clock, tried = clock or Clock(), sum(item.source == items[0].source for item in items) if study.by_source else 1
    rehearsed = replace(study, explainers={name: Rehearsed(one, clock) for name, one in study.explainers.items()},
                        model=slowed(study.model, clock), attacked=slowed(study.attacked, clock), rehearsed=True)
    with Progress("estimating") as progress, engine.single_threaded():  # as in a run: two threads take another time than one
        while True:
            attack = Watched(study.adversaries, clock)
            some = replace(rehearsed, data=replace(study.data, items=tuple(items[:tried])), adversaries=attack)
            before, start, calls = clock.skipped, clock.now(), progress.done
            states = [result.record["status"] for block in some.blocks() for result in some.work(block, progress)]
            took = clock.now() - start
            if (took > A_MOMENT and "ok" in states) or tried >= min(len(items), study.block):
                break
            tried *= 4
    share = len(study.data.items) / len(states)
    of_attack = attack.share([item.id for item in study.data.items], len(states))
    of_calls, of_time = progress.done - calls, took + clock.skipped - before
    name, kind = str((study.spec or {}).get("model", "")), "demo:"
    return {"training": demos.training(name.removeprefix(kind)) if name.startswith(kind) else "",
            "brief": getattr(study.adversaries, "whole", None) is not None,
            "inputs": len(study.data.items), "tried": len(states), "fooled": states.count("ok"), "failed":
            states.count("failed"), "block": study.block, "jobs": workers, "blocks": len(study.blocks()),
            "calls": round(attack.calls * of_attack + (of_calls - attack.calls) * share),
            "seconds": (attack.seconds * of_attack + (of_time - attack.seconds) * share) / workers}
