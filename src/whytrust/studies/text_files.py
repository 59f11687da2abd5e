"""A classifier of texts from files to files: labelled texts are read, a model is trained and written where others find it."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from whytrust import api, stats
from whytrust.engine import Jobs
from whytrust.models import minilm
from whytrust.store import plain
from whytrust.studies import fragile_data
from whytrust.studies.text_training import PLAIN, PROBED, USUAL, Labelled, hardened, rate_words, recipe_for, told, trainer

FACTS = "training.json"
"""Beside the weights, and what a folder that may be written again is known by."""
PICKLE = ".joblib"


@dataclass(frozen=True, eq=False)
class TrainedText:
    """A classifier that was written down, and what is known of it."""

    path: Path
    model: str  # as MODEL names it on the command line
    facts: dict[str, Any]

    def __str__(self) -> str:
        """What was trained on what, and how well it does."""
        facts = self.facts
        twin = ", the adversarial twin," if "training" in facts else ""
        lines = [f"{facts['kind']}{twin} trained on {facts['texts']:,} texts of {facts['data']} "
                 f"({', '.join(facts['classes'][:10])}{', …' if len(facts['classes']) > 10 else ''})."]
        if "training" in facts:
            lines += ["", told(facts)]
        elif "accuracy" in facts:
            lines.append(f"accuracy on held-out texts, %: {rate_words(facts['accuracy'])}")
        if not facts["held_out"]:
            lines.append("No texts were held out, so nothing was measured: name a folder with train.tsv and test.tsv for that.")
        return "\n".join(lines)


@dataclass(frozen=True)
class Texts:
    """Texts to train on, and such that are held out, where there are any."""

    what: str
    train: Labelled
    held_out: Labelled | None


def read(data: str | os.PathLike[str]) -> Texts:
    """A file with a text, a tab and a label a line, or a folder of texts to train and to test on, in lower case."""
    place = Path(data)
    if place.is_dir():
        found = fragile_data.read(place)
        return Texts(found.title, (found.train, found.train_labels), (found.test, found.test_labels))
    if not place.is_file():
        raise ValueError(f"--data must name a file with a text, a tab and a label a line, or a folder with train.tsv and "
                         f"test.tsv of such, and there is no {os.fspath(data)!r}")
    return Texts(place.name, _labelled(place), None)


def _labelled(path: Path) -> Labelled:
    rows = fragile_data.pairs(path)
    texts, labels = [text for text, _ in rows], [label for _, label in rows]
    if len(set(labels)) < 2:
        raise ValueError(f"{path} must hold texts of two classes or more to train on, got {len(texts)} texts of "
                         f"{len(set(labels))}")
    return texts, labels


def train(data: str | os.PathLike[str], out: str | os.PathLike[str], kind: str, attacked: int | None = 0, *, seed: int = 0,
          candidates: Any = USUAL, constraints: Any = None, epochs: int | None = None, probed: int = PROBED,
          cache: Path | None = None, jobs: Jobs = 1) -> TrainedText:
    """Train on texts from files and write the model to `out`: a folder for minilm, a .joblib file for tfidf.

    With `attacked` (None: all) it is the twin that was trained against swaps of so many texts' words. What takes long is kept
    in the cache as well, so that the same call goes on where it was interrupted.
    """
    place = checked_out(kind, out)
    if epochs is not None and (isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1):
        raise ValueError(f"epochs must be a whole number of at least 1, got {epochs!r}")
    texts = read(data)
    recipe = recipe_for(texts.train[0], seed)
    recipe = recipe if epochs is None else replace(recipe, epochs=epochs)
    facts: dict[str, Any] = {"kind": kind, "data": texts.what, "seed": seed, "texts": len(texts.train[0]),
                             "classes": sorted(set(texts.train[1])),
                             "held_out": 0 if texts.held_out is None else len(texts.held_out[0])}
    if attacked == 0:
        model = trainer(kind, texts.train[0], seed=seed, cache=cache, recipe=recipe)(list(texts.train[0]), list(texts.train[1]))
        facts |= {} if texts.held_out is None else {"accuracy": asdict(stats.rate(_right(model, texts.held_out)))}
    else:
        found = hardened(kind, *texts.train, seed=seed, cache=cache, attacked=attacked, candidates=candidates,
                         constraints=constraints, recipe=recipe, held_out=texts.held_out, probed=probed, jobs=jobs)
        model, facts = found.twin, facts | found.facts
    written(model, place, facts)
    return TrainedText(place, f"hf:{place}" if kind == "minilm" else f"{place} --trust-pickle", facts)


def _right(model: Any, held_out: Labelled) -> Any:
    asked = api.model(model)
    scores = asked(list(held_out[0]))
    truths = [asked.class_index(label, scores.shape[1]) for label in held_out[1]]
    return np.asarray(asked.labels(scores) == truths, dtype=np.float64)


# --- where a model is written -----------------------------------------------------------------------------------------


def checked_out(kind: str, out: str | os.PathLike[str]) -> Path:
    """The place to write to, or one clear error before anything is trained."""
    place = Path(out)
    if kind not in PLAIN:
        raise ValueError(f"--kind must be one of {', '.join(PLAIN)}, got {kind!r}")
    if kind == "tfidf" and place.suffix.lower() != PICKLE:
        raise ValueError(f"a tfidf model can only be written as a pickle, which runs code when it is read: name it so, as "
                         f"{place.with_suffix(PICKLE)}, got {os.fspath(out)!r}; or train --kind minilm, which needs none")
    if kind == "minilm" and place.suffix.lower() in (PICKLE, ".pkl", ".pickle", ".pt", ".bin", ".safetensors", ".onnx"):
        raise ValueError(f"--out must name a folder for minilm, in which model.safetensors, its config and its tokenizer are "
                         f"written, got {os.fspath(out)!r}")
    if kind == "minilm" and place.exists() and not _ours(place):
        raise ValueError(f"--out must name a new or empty folder, or one that this command wrote, and {place} is something "
                         "else")
    return place


def _ours(place: Path) -> bool:
    return place.is_dir() and ((place / FACTS).is_file() or not any(place.iterdir()))


def written(model: Any, place: Path, facts: dict[str, Any]) -> None:
    """The model whole or not at all, and its facts: in its folder, or beside its file."""
    if isinstance(model, tuple):
        minilm.save(place, *model)
        _put(place / FACTS, facts)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    part = place.with_name(f"{place.name}.part")
    try:
        joblib.dump(model, part)
        os.replace(part, place)
    finally:
        part.unlink(missing_ok=True)
    _put(place.with_suffix(".json"), facts)


def _put(path: Path, facts: dict[str, Any]) -> None:
    path.write_text(json.dumps(plain(facts), indent=1) + "\n", encoding="utf-8")
