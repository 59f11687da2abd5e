"""What was typed, read: options of a model, one input, several inputs, tables."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import files, inputs, loading
from whytrust.checked import IMAGES, SOUNDS
from whytrust.core import near, need
from whytrust.domains import audio

MODELS = ("demo:digits|photos|reviews|reviews/forest|reviews/minilm|\n"
          "tabular|sound|singing, file.py:attribute, package.module:attribute,\n"
          "model.onnx, hf:NAME_OR_FOLDER, torchvision:NAME, model.joblib,\n"
          "singing.safetensors (from whytrust train singing-voice)")

TABLES = (".csv", ".tsv")
PROSE = 4
"""Words from which on the first cell of a table is a text and no heading."""


def add_model_options(command: Any, images: bool = True) -> None:
    """What may be said of a model, by every command that takes one; `images` are out where all models are of texts."""
    command.set_defaults(layout=None, fast=None)
    if images:
        command.add_argument("--layout", choices=(*IMAGES, *SOUNDS),
                             help="how the model takes images (NHWC, NCHW), waveforms (NT, NCT) or spectrograms (T frames, F "
                                  "bands, C one channel); default: what its kind does")
    command.add_argument("--output", choices=("probability", "logit"), help="what the model returns")
    command.add_argument("--threshold", type=float, help="one output or two classes: the second class above it")
    command.add_argument("--classes", help="names of the model's outputs, a,b,c or a .txt file with one a line")
    command.add_argument("--device", help="where the model runs, such as cpu, cuda or cuda:1")
    if images:
        command.add_argument("--fast", action="store_true", default=None,
                             help="torch nets: fused and channels last, checked first")
    command.add_argument("--trust-pickle", action="store_true", help="read MODEL even if it is a pickle (runs any code)")
    command.add_argument("--batch-size", type=int, help="inputs a model call gets at once")


def model_options(options: argparse.Namespace) -> dict[str, Any]:
    """What the user says of the model, for wt.model."""
    given = {n: getattr(options, n) for n in ("layout", "output", "threshold", "fast") if getattr(options, n) is not None}
    if options.classes is not None:
        path = Path(options.classes)
        given["classes"] = (inputs.read_text(path).splitlines() if path.suffix == ".txt" and path.is_file()
                            else [name.strip() for name in options.classes.split(",")])
    return given


def item_of(text: str, demo_inputs: Sequence[Any] | None, given: dict[str, Any]) -> Any:
    """What INPUT stands for: a number picks a demo's input, a .csv file is rows; other files and texts are as they are."""
    if demo_inputs is not None and text.isascii() and text.isdecimal():
        if int(text) >= len(demo_inputs):
            raise ValueError(f"this demo has inputs 0 to {len(demo_inputs) - 1}, got {text}")
        return demo_inputs[int(text)]
    if demo_inputs is not None and "background" in given and ".csv" not in text:
        raise ValueError(f"this demo explains table rows: give a number from 0 to {len(demo_inputs) - 1}, or rows.csv:3, "
                         f"got {text!r}")
    place, _, row = text.rpartition(":")
    if place.endswith(".csv") and re.fullmatch(r"-?\d+", row):
        rows = table(place)
        return like_background(rows.iloc[_row(place, row, len(rows))], given)
    if text.endswith(".csv"):
        return like_background(table(text), given)
    path = Path(text)
    exists = 0 < len(text) < 4096 and "\0" not in text and path.exists()
    if not exists and " " not in text and path.suffix.lower() in (*inputs.FILES, ".npy"):
        raise ValueError(f"INPUT names the file {text}, which does not exist")
    if exists and path.suffix == ".npy":
        return files.array(path)
    if exists and path.is_file() and path.suffix.lower() not in audio.SUFFIXES:
        given.pop("rate", None)  # of a demo of sounds: what this is will be told by what it is
    whole, sign, _ = text.rpartition("@")
    if sign and not exists and Path(whole).suffix.lower() in audio.SUFFIXES:
        raise ValueError(f"INPUT may name a moment, as in song.wav@12.5, for a detector of singing only, got {text!r}; leave "
                         "the moment out")
    return path if exists else text


def texts_of(text: str, name: str) -> Any:
    """The texts of one column of a .csv or .tsv file; of texts.csv:3 the one in that row."""
    place, _, row = text.rpartition(":")
    if re.fullmatch(r"-?\d+", row) and Path(place).suffix.lower() in TABLES:
        found = column(place, name)
        return found[_row(place, row, len(found))]
    return column(text, name)


def _row(place: str, row: str, count: int) -> int:
    """Which of so many rows is meant."""
    if not 0 <= int(row) < count:
        raise ValueError(f"{place} has rows 0 to {count - 1}, got {row}")
    return int(row)


def excerpt(text: str, loaded: loading.Loaded, given: dict[str, Any]) -> tuple[Any, str, Any]:
    """(the excerpt, what it is called, its samples where they are known).

    Of song.wav it is the one in its middle, of song.wav@12.5 the one around 12.5 seconds.
    """
    place, sign, moment = text.rpartition("@")
    path, at = (place, moment) if sign and not Path(text).exists() else (text, None)
    if Path(path).is_dir():
        raise ValueError(f"INPUT must be one sound file for a detector of singing, which is asked about a moment, as in "
                         f"song.wav@12.5, got the folder {path}; `whytrust audit` takes folders of songs")
    if Path(path).suffix.lower() not in audio.SUFFIXES:
        return item_of(text, loaded.inputs, given), "", None
    if at is not None and not re.fullmatch(r"\d+(\.\d*)?", at):
        raise ValueError(f"a moment must be a number of seconds, as in song.wav@12.5, got {at!r}")
    found, middle, wave = loaded.read_sound(path, None if at is None else float(at))
    return found, f"{Path(path).name} around {middle:.2f} s", wave


def baseline(text: str) -> Any:
    """A name, a number, or the array in a file."""
    if not text.endswith(".npy"):
        return number(text)
    if not Path(text).is_file():
        raise ValueError(f"--baseline names the file {text}, which does not exist")
    return files.array(text)


def table(path: str) -> Any:
    """Rows of a .csv or .tsv file, or statistics that were saved of such."""
    if path.endswith(".json"):
        return importlib.import_module("whytrust.domains.tabular").TableStatistics.load(path)
    return files.table(path, "\t", quoting=3) if path.lower().endswith(".tsv") else files.table(path)


def like_background(rows: Any, given: dict[str, Any]) -> Any:
    """Rows with the background's columns: a label column that only the file has is left out."""
    background: Any = given.get("background")
    names = list(getattr(background, "names", getattr(background, "columns", ())))
    return rows[names] if names and all(name in rows for name in names) else rows


def number(text: str) -> Any:
    """A number where the text is one."""
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", text) else text


# --- several inputs ---------------------------------------------------------------------------------------------------


def items_of(text: str, loaded: loading.Loaded, given: dict[str, Any], limit: int | None,
             of_texts: str | None = None) -> tuple[list[Any], list[str]]:
    """(inputs, what each is called): those of a demo, files of a folder, rows of a .csv, lines of a .txt, entries of a .npy.

    With a limit so many of them, evenly spread. Where a column `of_texts` is named, its texts instead of rows.
    """
    path = Path(text)
    if of_texts is not None:
        items = column(text, of_texts)
        called = [f"{path.name}, row {i}" for i in range(len(items))]
    elif text == "demo":
        if loaded.inputs is None:
            raise ValueError("DATA may be demo where MODEL is embedded, as demo:reviews is; else name a folder or a file")
        items, called = list(loaded.inputs), [f"input {i}" for i in range(len(loaded.inputs))]
    elif path.is_dir():
        items = inputs.files(path)
        called = [""] * len(items)  # a file's own name is known
    elif not path.is_file():
        raise ValueError(f"DATA must be a folder, rows.csv, texts.txt with one text a line, inputs.npy, or demo, and there "
                         f"is no {text!r}")
    else:
        items, called = _entries(path, given)
    if not items:
        raise ValueError(f"{text} must hold at least one input, got none")
    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, got {limit}")
    some = np.arange(len(items)) if limit is None or limit >= len(items) else np.arange(limit) * len(items) // limit
    return [items[i] for i in some], [called[i] for i in some]


def _entries(path: Path, given: dict[str, Any]) -> tuple[list[Any], list[str]]:
    kind = path.suffix.lower()
    if kind == ".csv":
        rows = like_background(table(str(path)), given)
        return [rows.iloc[i] for i in range(len(rows))], [f"{path.name}, row {i}" for i in range(len(rows))]
    if kind == ".txt":
        lines = inputs.read_text(path).splitlines()
        kept = [(i + 1, line) for i, line in enumerate(lines) if line.strip()]
        return [inputs.Said(line) for _, line in kept], [f"{path.name}, line {i}" for i, _ in kept]
    if kind == ".npy":
        array = files.array(path)
        if array.ndim < 2:
            raise ValueError(f"{path} must hold one input a row, got shape {array.shape}")
        return list(array), [f"{path.name}, entry {i}" for i in range(len(array))]
    raise ValueError(f"DATA must hold several inputs: a folder, .csv, .txt (one text a line) or .npy, got {path.name!r}; "
                     "`whytrust explain` takes one input")


def heard(items: list[Any], called: list[str], loaded: loading.Loaded) -> tuple[list[Any], list[str]]:
    """Sound files as a detector of singing takes them: the excerpt in the middle of each, and what it is called."""
    if loaded.detector is None:
        return items, called
    sounds, names = [], []
    for item, name in zip(items, called, strict=True):
        if isinstance(item, Path) and item.suffix.lower() in audio.SUFFIXES:
            item, name, _ = excerpt(str(item), loaded, {})
        sounds.append(item)
        names.append(name)
    return sounds, names


def frame(rows: list[Any]) -> Any:
    """Rows of one table, together again."""
    return need("pandas", "tables").DataFrame(rows).reset_index(drop=True).infer_objects()


def column(place: str | Path, name: str | None) -> list[Any]:
    """The texts of one column of a .csv or .tsv file, by its name; the first column where none is named.

    A first line is no heading where its text has several words, or one of its cells is a number or stands in its column again,
    as a label does: then it is a text like the others.
    """
    path = Path(place)
    if path.suffix.lower() not in TABLES:
        raise ValueError(f"--column is for a .csv or .tsv file, got {str(place)!r}")
    tabs = path.suffix.lower() == ".tsv"
    what = f"a table in UTF-8 with a heading and a text in each row{'' if tabs else ', texts with commas in quotes'}"
    rows = files.table(path, "\t" if tabs else ",", what, dtype=str, keep_default_na=False, quoting=3 if tabs else 0,
                       header=None)
    first, rest = [str(cell) for cell in rows.iloc[0]], rows.iloc[1:]
    if name is not None:
        if name not in first:
            raise ValueError(f"--column must be one of {', '.join(first)[:400]}, got {name!r}{near(name, first)}")
        return [inputs.Said(one) for one in rest.iloc[:, first.index(name)]]
    labelled = any(not isinstance(number(cell), str) or (len(first[0].split()) > 1 and cell in set(rest.iloc[:, i]))
                   for i, cell in enumerate(first) if i and cell.strip())
    texts = rows if labelled or len(first[0].split()) >= PROSE else rest
    return [inputs.Said(one) for one in texts.iloc[:, 0]]
