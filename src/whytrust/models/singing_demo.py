"""The embedded singing-voice detector: trained on synthesised music the first time it is asked for, then kept on disk."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from whytrust.core import need
from whytrust.models import checkpoints, detection, instruments, synthesiser, voices
from whytrust.models.minilm import cache_folder
from whytrust.models.singing_voice import SingingVoiceNet, load, save
from whytrust.models.songs import synthesised
from whytrust.models.training import Schedule, train

FORMAT = 1
"""Raise it when training or tuning change, so that weights trained before are not taken for new ones."""
QUICK = Schedule(epochs=30, updates=10, batch=12, frames=205, rate=3e-3, decay=0.89, dropout=0.0)
"""A small training, three minutes of one core: 300 updates of eleven answers each, whose rate falls fast."""

TRAINING = "the net is not trained yet: the run begins by training it, once, in about 4 minutes of one core"
"""What to say where a dry run did without."""


@dataclass(frozen=True)
class Recipe:
    """What the detector is trained, tuned and tested on; the seeds are the synthesiser's."""

    schedule: Schedule = field(default=QUICK)
    seeds: tuple[int, int, int] = (0, 1, 1000)  # nothing was chosen by looking at the last
    pieces: tuple[int, int, int] = (200, 40, 100)
    seconds: float = 10.0


RECIPE = Recipe()


def detector(recipe: Recipe = RECIPE, cache: Path | None = None) -> tuple[SingingVoiceNet, dict[str, Any]]:
    """(net, facts): from the cache, or trained in a few minutes and put there.

    The facts are its threshold, what it was trained on, and how it does on validation and test pieces. It knows the voices and
    instruments of a synthesiser: what it answers to recordings is no measure of what such nets can do.
    """
    place = place_of(recipe, cache)
    with _alone(place):
        found = _kept(place)
        if found is not None:
            return found
        checkpoint = place.with_suffix(".checkpoint")
        net, facts = _trained(recipe, _usable(checkpoint))
        try:
            save(net, place, facts)
            checkpoint.unlink(missing_ok=True)
        except OSError as error:
            warnings.warn(f"the singing-voice detector could not be kept and will be trained again ({error})", stacklevel=2)
        # Weights as a later call reads them: where they lie in memory can change how sums round.
        return _kept(place) or (net, facts)


def kept(recipe: Recipe = RECIPE, cache: Path | None = None) -> tuple[SingingVoiceNet, dict[str, Any]] | None:
    """(net, facts) where it was trained before."""
    return _kept(place_of(recipe, cache))


def untrained() -> tuple[SingingVoiceNet, dict[str, Any]]:
    """(net, facts) before training: its answers mean nothing, and take as long as those of the trained net."""
    torch = need("torch", "torch")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return SingingVoiceNet().eval(), {"threshold": 0.5}


def place_of(recipe: Recipe = RECIPE, cache: Path | None = None) -> Path:
    """The file that the trained detector is kept in."""
    torch = need("torch", "torch")
    # A synthesiser that was changed makes other music, and nobody would remember to raise a number for that.
    music = [inspect.getsource(module) for module in (synthesiser, voices, instruments)]
    made_of = [FORMAT, music, asdict(recipe), torch.__version__]
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]
    return (cache_folder() if cache is None else cache) / f"singing-voice-{key}.safetensors"


def _usable(checkpoint: Path) -> Path | None:
    """Where a training may keep its state; None where the folder cannot be written to. What cannot be read is deleted."""
    checkpoints.readable(checkpoint)
    return checkpoint if os.access(checkpoint.parent, os.W_OK) else None


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """One process trains, and others that ask meanwhile wait for it; where files cannot be locked, each trains its own."""
    try:
        fcntl: Any = importlib.import_module("fcntl")
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = place.with_suffix(".lock").open("w")
    except (ImportError, OSError):
        yield
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # given back when the file is closed, whatever happens
        yield


def _trained(recipe: Recipe, checkpoint: Path | None = None) -> tuple[SingingVoiceNet, dict[str, Any]]:
    songs, valid, test = (synthesised(seed, count, recipe.seconds)
                          for seed, count in zip(recipe.seeds, recipe.pieces, strict=True))
    net = train(songs, recipe.schedule, checkpoint=checkpoint)
    probabilities, labels = detection.heard(net, valid)
    threshold = detection.tuned_threshold(probabilities, labels)
    return net, {
        "threshold": threshold,
        "data": f"{len(songs)} synthesised pieces of {recipe.seconds:g} s",
        "schedule": asdict(recipe.schedule),
        "valid": detection.judged(probabilities, labels, threshold).to_json(),
        "test": detection.evaluate(net, test, threshold).to_json(),
    }


def _kept(place: Path) -> tuple[SingingVoiceNet, dict[str, Any]] | None:
    """What was put there, or None: weights that cannot be read, whatever the reason, are trained again."""
    if not place.is_file():
        return None
    try:
        return load(place)
    except (ValueError, RuntimeError, KeyError) as error:
        warnings.warn(f"{place} could not be read and is made again ({type(error).__name__})", stacklevel=3)
        return None
