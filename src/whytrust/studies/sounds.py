"""Sounds in a study: how files become arrays of one length, and what of a case is kept to look at and to listen to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.checked import CheckedModel
from whytrust.core import LayeredParts
from whytrust.domains import audio
from whytrust.models.songs import edges_between
from whytrust.studies.adversaries import Adversary, Played


def read(path: str | os.PathLike[str], rate: int | None, seconds: float | None) -> NDArray[np.float32]:
    """A sound file at `rate`, `seconds` long: the middle of a longer one, and silence after a shorter one."""
    wave, own = audio.read(path, rate)
    return wave if seconds is None else fitted(wave, round(seconds * own))


def fitted(wave: NDArray[Any], samples: int) -> NDArray[Any]:
    """So many samples: the middle, or all and then silence."""
    if len(wave) >= samples:
        start = (len(wave) - samples) // 2
        return wave[start:start + samples]
    return np.pad(wave, (0, samples - len(wave)))


def preprocessed(model: CheckedModel, value: Any) -> NDArray[Any]:
    """What the model's preprocessing makes of one input."""
    made: Any = model.prepared(np.asarray(value)[None])
    made = getattr(made, "array", made)
    array = made.detach().cpu().numpy() if hasattr(made, "detach") else np.asarray(made)
    if array.ndim < 2 or len(array) != 1:
        raise ValueError(f"preprocess must give one spectrogram for one sound, (1, frames, bands), got {array.shape}")
    return np.asarray(array[0])


def behind(model: CheckedModel, found: Adversary | Exception, rate: int | None) -> Adversary | Exception:
    """The adversary as the model's preprocessing shows it, with the sounds themselves kept to listen to."""
    if isinstance(found, Exception):
        return found
    played = None if rate is None or np.ndim(found.clean) != 1 else Played(found.clean, found.changed, rate)
    return replace(found, clean=preprocessed(model, found.clean), changed=preprocessed(model, found.changed), played=played)


# --- what is kept -----------------------------------------------------------------------------------------------------


def facts(cut: LayeredParts, found: Adversary, of_parts: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds, rate and frequencies of what is shown, where they are known."""
    view: Any = cut.view
    bands = view.spectrogram.shape[1]
    edges = of_parts.get("band_edges_hz")
    if edges is None and view.wave is not None and view.rate is not None:
        edges = audio.band_edges(bands, view.rate)
    return {"rate": view.rate if found.played is None else found.played.rate,
            "seconds": view.seconds, "hertz": None if edges is None else [float(edge) for edge in edges],
            "moment": None if found.played is None else found.played.moment}


def arrays(cut: LayeredParts, found: Adversary) -> dict[str, NDArray[Any]]:
    """Spectrograms before and after, the part of each of their cells, and the waves where there are any."""
    before: Any = cut.like(found.clean).view
    after: Any = cut.like(found.changed).view
    kept = {"clean": before.spectrogram, "adversarial": after.spectrogram, "labels": before.labels}
    waves = ((before.wave, after.wave) if found.played is None else (found.played.clean, found.played.changed))
    if waves[0] is not None:
        kept |= {"clean_wave": np.asarray(waves[0], np.float32), "adversarial_wave": np.asarray(waves[1], np.float32)}
    return kept


# --- what is explained ------------------------------------------------------------------------------------------------


def settled(model: CheckedModel, rate: int | None, of_parts: Mapping[str, Any], explain_on: str) -> tuple[
        CheckedModel, CheckedModel | None, dict[str, Any]]:
    """(the model that is explained, the one that is attacked where that is another, options of the cut)."""
    if explain_on not in EXPLAINED:
        raise ValueError(f"explain_on must be one of {', '.join(map(repr, EXPLAINED))}, got {explain_on!r}")
    options = dict(of_parts)
    if explain_on == "input":
        return model, None, options | ({} if rate is None else {"rate": rate})
    if model.preprocess is None:
        raise ValueError("explain_on='preprocessed' must come with a model that has a preprocess, such as wt.model(net, "
                         "preprocess=FrontEnd()), which makes spectrograms of waveforms; got one without")
    options.pop("rate", None)
    layout = "NTF" if model.moves else model.layout  # what the preprocessing makes has axes of its own
    return replace(model, preprocess=None, layout=layout), model, options | _units(model.preprocess, options)


EXPLAINED = ("input", "preprocessed")
"""What is cut into parts: the input itself, or what the model's preprocessing makes of it."""


def rate_of(model: CheckedModel, given: int | None) -> int | None:
    """Samples a second: as given, or as the model's front end says."""
    return given if given is not None else getattr(getattr(model.preprocess, "magnitude", None), "rate", None)


def _units(front_end: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Seconds a frame and the bands' edges in hertz, where a front end knows them and nobody has said."""
    if not hasattr(front_end, "coordinates") or "hop_seconds" in given or "band_edges_hz" in given:
        return {}
    bands = getattr(getattr(front_end, "log_mel", None), "bands", None)
    if bands is None:
        return {}
    seconds, hertz = front_end.coordinates(2, bands)
    return {"hop_seconds": float(seconds[1] - seconds[0]), "band_edges_hz": edges_between(hertz)}
