"""The inputs of a study: where each comes from, what it is called, and which of them share a source."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import files, limits
from whytrust import inputs as reading
from whytrust.checked import CheckedModel
from whytrust.core import near, need
from whytrust.domains import audio, image
from whytrust.studies import sounds, text_cases


@dataclass(frozen=True, eq=False)
class Item:
    """One input: an array, a row, a text or the path of an image, a sound or a text."""

    id: str
    value: Any
    name: str
    source: str | None = None  # inputs that share one are not independent of each other
    truth: str | int | None = None  # its class, by name or number, where that is known

    def digest(self) -> str:
        """A short hash of what the input is, to notice that it changed."""
        value = self.value
        if isinstance(value, str | os.PathLike) and reading.source_of(value):
            return _digest_of(Path(value))
        if isinstance(value, str | os.PathLike):
            content = str(value).encode("utf-8", "surrogatepass")
        elif hasattr(value, "to_json"):
            content = str(value.to_json()).encode()
        else:
            array = np.asarray(value)
            content = str((array.dtype, array.shape)).encode() + (
                str(array.tolist()).encode() if array.dtype.kind == "O" else np.ascontiguousarray(array).tobytes())
        return hashlib.blake2b(content, digest_size=8).hexdigest()


class NotRead:
    """Stands for an input that a dry run does without."""


@dataclass(frozen=True, eq=False)
class Data:
    """The inputs of a study, and how images and sounds of any size are made to fit a net."""

    items: tuple[Item, ...]
    what: str
    size: int | None = None  # the middle square, so many pixels wide
    resize: int | None = None  # the shorter side is first brought to so many
    rate: int | None = None  # samples a second that sound files are brought to
    seconds: float | None = None  # the middle of a sound, or all of a shorter one and then silence

    def read(self, item: Item) -> Any:
        """The input itself; a file that cannot be read as what it is called is one clear error."""
        value = item.value
        if isinstance(value, Exception):
            raise value
        if is_sound(value):
            return sounds.read(value, self.rate, self.seconds)
        if text_cases.is_text(value):
            return text_cases.read(value)
        if self.size is None:
            return value
        return square(value, self.size, self.resize or self.size)

    def limited(self, limit: int | None) -> Data:
        """So many inputs, evenly spread: the first ones of a folder are often all of one class."""
        if limit is None:
            return self
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ValueError(f"limit must be a whole number >= 1, got {limit!r}")
        if limit >= len(self.items):
            return self
        chosen = np.linspace(0, len(self.items) - 1, limit).round().astype(int).tolist()
        return replace(self, items=tuple(self.items[i] for i in chosen), what=f"{limit} of {self.what}, evenly spread")


def square(picture: Any, size: int, resize: int) -> Any:
    """The middle of an image, size × size bytes, after its shorter side was brought to `resize` pixels.

    Sides and corners are rounded as torchvision's Resize and CenterCrop round them.
    """
    pil = need("PIL.Image", "image")
    found = pil.fromarray(image.to_rgb(image.check_image(picture)))
    wide, high = (max(int(resize * side / min(found.size)), size) for side in found.size)
    left, top = (round((side - size) / 2) for side in (wide, high))
    return np.asarray(found.resize((wide, high), pil.Resampling.BILINEAR).crop((left, top, left + size, top + size)))


def gather(inputs: Any, background: Any = None, groups: Any = None, truths: Any = None) -> Data:
    """The items of what a user passes: a folder, a list of texts, files or arrays, an array with one input a row, a DataFrame,
    or a .txt file with a text a line.
    """
    if isinstance(inputs, Data):
        return inputs
    options = {} if background is None else {"background": background}
    folder = Path(inputs) if isinstance(inputs, str | os.PathLike) else None
    if folder is not None and folder.is_dir():
        by_folder = isinstance(groups, str) and groups == "folder"
        return _labelled(_folder(folder, by_folder), None if by_folder else groups, truths)
    values = (_arrays(inputs) if folder is not None and folder.suffix == ".npy" else
              text_cases.lines(folder) if folder is not None and folder.suffix == text_cases.SUFFIX else
              _rows_or_images(inputs, options))
    items = tuple(Item(f"{i:05d}", value, _name(value, i)) for i, value in enumerate(values))
    what = "texts" if all(text_cases.is_text(value) for value in values) else "inputs"
    return _labelled(Data(items, f"{len(items)} {what}"), groups, truths)


def _arrays(path: Any) -> list[Any]:
    if not Path(path).is_file():
        raise ValueError(f"inputs names the file {path}, which does not exist")
    found = files.array(path)
    if found.ndim < 2:
        raise ValueError(f"{path} must hold one input a row, got shape {found.shape}")
    return list(found)


def _rows_or_images(inputs: Any, options: dict[str, Any]) -> list[Any]:
    if isinstance(inputs, str | os.PathLike) and not Path(inputs).exists():
        raise ValueError(f"inputs must be a folder, an .npy or .txt file, or arrays: {str(inputs)!r} does not exist")
    if options and isinstance(inputs, list | tuple) and inputs and all(map(text_cases.is_text, inputs)):
        raise TypeError("texts are audited without a background; give training texts to the explainer that learns from them, "
                        "{'parzen': {'background': texts}}")
    several = reading.several(inputs, options)
    if several is None and isinstance(inputs, np.ndarray) and inputs.ndim == 3 and inputs.shape[-1] not in (1, 3, 4):
        return list(inputs)  # grey images or spectrograms; a single colour image would be one input, which is no audit
    if several is None and isinstance(inputs, np.ndarray) and inputs.ndim == 2 and inputs.shape[1] >= reading.WHOLE_SOUND:
        return list(inputs)  # waveforms
    if several is None:
        raise ValueError("this needs several inputs: a folder of images, sounds or texts, a list, or an array with one "
                         "input a row, got "
                         f"{type(inputs).__name__}{f' of shape {np.shape(inputs)}' if hasattr(inputs, 'shape') else ''}")
    return several


def saved_adversaries(given: Any, count: int) -> list[Any]:
    """Adversaries that were made before, one for each of so many inputs: arrays, texts or rows, in a list or a file."""
    held = _of_file(Path(given)) if isinstance(given, str | os.PathLike) else given
    if not hasattr(held, "__len__") or isinstance(held, Mapping):
        raise TypeError("adversaries must be arrays, texts or rows, one for each input, or a .npy, .npz, .csv or .txt file of "
                        f"them, got {type(given).__name__}")
    if len(held) != count:
        raise ValueError(f"adversaries must be one for each input: expected {count}, got {len(held)}")
    return [held.iloc[i] for i in range(count)] if hasattr(held, "iloc") else list(held)


def _of_file(path: Path) -> Any:
    what = "a file of adversaries, .npy, .npz (one array, or one called adversarial), .csv or .txt"
    if not path.is_file():
        raise ValueError(f"adversaries must be {what}: {path} does not exist")
    if path.suffix == ".npy":
        return files.array(path)
    if path.suffix == ".npz":
        with files.opened(path, what) as file, files.telling(path, what), zipfile.ZipFile(file) as packed:
            names = [name.removesuffix(".npy") for name in packed.namelist()]
        if "adversarial" not in names and len(names) != 1:
            raise ValueError(f"adversaries must be {what}: {path} holds the arrays {', '.join(names)[:200]}")
        name = "adversarial" if "adversarial" in names else names[0]
        return files.arrays(path, [name], what)[name]
    if path.suffix == ".csv":
        return files.table(path)
    if path.suffix == text_cases.SUFFIX:
        return text_cases.lines(path)
    raise ValueError(f"adversaries must be {what}, got {str(path)!r}")


def target_list(given: Any, count: int) -> list[Any]:
    """A class for each of so many inputs."""
    if isinstance(given, str) or np.ndim(given) != 1:
        raise TypeError("targets must be a list with a class for each input (one for all: attack={'method': …, 'targets': …}), "
                        f"got {given!r:.60}")
    if len(given) != count:
        raise ValueError(f"targets must be one class for each input: expected {count}, got {len(given)}")
    if missing := [i for i, one in enumerate(given) if one is None]:
        raise TypeError(f"targets must be a class for each input, got None for input {missing[0]}")
    return [one.item() if isinstance(one, np.generic) else one for one in given]


def is_sound(value: Any) -> bool:
    """Does this name a sound file?"""
    return isinstance(value, str | os.PathLike) and Path(value).suffix.lower() in audio.SUFFIXES


def _folder(folder: Path, by_folder: bool) -> Data:
    """Every image, or every sound, of a folder, or where it has neither every text; sub-folders that hold all are classes."""
    found = [Path(p) for p in reading.files(folder)]
    pictures, heard = ([p for p in found if p.suffix.lower() in kind.SUFFIXES] for kind in (image, audio))
    if pictures and heard:
        raise ValueError(f"{folder} must hold images or sounds, got {len(pictures)} images and {len(heard)} sounds; keep them "
                         "in folders of their own")
    paths = pictures or heard or found  # notes beside pictures are no inputs
    what = "images" if pictures else "sounds" if heard else "texts"
    in_classes = all(len(p.relative_to(folder).parts) > 1 for p in paths) and not by_folder
    names = [str(p.relative_to(folder)) for p in paths]
    items = tuple(Item(f"{i:05d}", path, name, str(path.parent.relative_to(folder)) if by_folder else None,
                       path.relative_to(folder).parts[0] if in_classes else None)
                  for i, (path, name) in enumerate(zip(paths, names, strict=True)))
    classes = f" in {len({item.truth for item in items})} class folders" if in_classes else ""
    return Data(items, f"{len(items)} {what} of {folder.name}{classes}")


def _labelled(data: Data, groups: Any, truths: Any) -> Data:
    for what, given in (("groups", groups), ("labels", truths)):
        if isinstance(given, str):
            raise TypeError(f"{what} must have one entry for each input, got the text {given!r}"
                            + ("; 'folder' is for a folder of images" if what == "groups" else ""))
        if given is not None and len(given) != len(data.items):
            raise ValueError(f"{what} must have one entry for each input: expected {len(data.items)}, got {len(given)}")
    items = [replace(item, source=item.source if groups is None else _source(groups[i]),
                     truth=item.truth if truths is None else _plain(truths[i])) for i, item in enumerate(data.items)]
    return replace(data, items=tuple(items))


def check_classes(model: CheckedModel, data: Data, columns: int) -> dict[str, int]:
    """The number of each input's true class, where that is known.

    Refuse data whose classes are not the model's: an accuracy would mean nothing, and nobody would notice.
    """
    named = sorted({item.truth for item in data.items if isinstance(item.truth, str)})
    if named and model.classes is None:
        raise ValueError(f"the data have classes by name ({', '.join(named[:4])}), and {model.name} has {columns} classes "
                         "without names; name them with classes= (in a spec: model_options = {classes = [\"a\", \"b\"]}), or "
                         "put the images into one folder to audit without true labels")
    wrong = [name for name in named if name not in (model.classes or ())]
    if wrong:
        raise ValueError(f"the data's classes must be among the model's {columns}: {len(wrong)} of {len(named)} are not, such "
                         f"as {wrong[0]!r}{near(wrong[0], model.classes or ())}; rename the folders, or put the images into "
                         "one folder to audit without true labels")
    beyond = sorted({item.truth for item in data.items if isinstance(item.truth, int) and not 0 <= item.truth < columns})
    if beyond:
        raise ValueError(f"labels must be classes of the model, 0 to {columns - 1}, got {beyond[0]}")
    names = model.classes or ()
    return {item.id: item.truth if isinstance(item.truth, int) else names.index(item.truth)
            for item in data.items if item.truth is not None}


def _name(value: Any, index: int) -> str:
    if isinstance(value, str) and text_cases.is_text(value) and not reading.source_of(value):
        return text_cases.title(value)
    if isinstance(value, str | os.PathLike):
        return Path(value).name
    label = getattr(value, "name", None)
    return f"row {label}" if hasattr(value, "iloc") and label is not None else f"input {index}"


def _source(group: Any) -> str | None:
    """None, NaN and blanks name no source: such an input is one of its own."""
    missing = group is None or (isinstance(group, float | np.floating) and np.isnan(group)) or not str(group).strip()
    return None if missing else str(group)


def spread(items: Sequence[Any], some: int, shift: int = 0) -> list[Any]:
    """The same items in another order: first so many that lie evenly over all of them, then the rest."""
    places = (np.linspace(0, max(len(items) - 1, 0), some).astype(int) + shift) % max(len(items), 1)
    return [items[i] for i in dict.fromkeys((*places.tolist(), *range(len(items)))) if i < len(items)]


def _digest_of(path: Path) -> str:
    """Of a file's bytes; of one that cannot be read only that it cannot, for it will be recorded as failed."""
    found = hashlib.blake2b(digest_size=8)
    try:
        files.digest_into(path, "an input", found.update, limits.ARRAY, line=None)
    except (OSError, ValueError):
        found.update(b"cannot be read")
    return found.hexdigest()


def _plain(label: Any) -> str | int | None:
    if label is None:
        return None
    value = label.item() if isinstance(label, np.generic) else label
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise TypeError(f"labels must be class names or numbers, got {value!r}")
    return value


def sources(items: Sequence[Item]) -> int:
    """How many independent sources there are."""
    return len({item.source if item.source is not None else item.id for item in items})


def by_source(items: Sequence[Item], least: int) -> list[list[str]]:
    """The ids of inputs in groups of at least `least`, where there are so many; those of one source stay together."""
    grouped: dict[str, list[str]] = {}
    for item in items:
        grouped.setdefault(item.source or item.id, []).append(item.id)
    found: list[list[str]] = []
    for cases in grouped.values():
        if found and len(found[-1]) < least:
            found[-1] += cases
        else:
            found.append(cases)
    return found
