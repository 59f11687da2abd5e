"""From what a user holds (a text, a file, an array, a row) to parts: which domain it is, and how to cut it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from whytrust import files as from_disk
from whytrust.checked import LONG, SOUNDS, CheckedModel
from whytrust.core import Parts, generator
from whytrust.domains import audio, image, tabular, text

OPTIONS = {
    "image": ("fill",),
    "text": ("fill", "split"),
    "audio": ("fill", "rate", "hop_seconds", "band_edges_hz"),
    "tabular": ("background", "bins", "categorical", "values", "names"),
}
"""What may be said about the parts of each domain, beyond `parts` itself."""
SPECS = {
    "image": ("grid", "slic", "quickshift", "felzenszwalb", "pixels"),
    "text": ("words", "bag", "sentences"),
    "audio": ("time", "freq", "tf", "slic"),
    "tabular": ("columns",),
}
FILES = (*image.SUFFIXES, *audio.SUFFIXES, ".txt")
SAME = 1e-3
"""How far, in parts of its largest value, an input may lie from the one that ready-made parts are of: sums round."""
BAND_COUNTS = (20, 40, 64, 80, 96, 128, 229, 256, 257, 512, 513, 1025)
"""How many bands spectrograms usually have."""
WHOLE_SOUND = LONG
"""A bare 1-D array this long or longer is taken for a waveform; shorter ones could be rows and need a background."""


def domain_of(item: Any, parts: Any, options: dict[str, Any]) -> str:
    """image, text, audio or tabular: by the parts asked for, else by what the input is."""
    if isinstance(parts, str):
        kind = parts.partition(":")[0]
        fitting = [domain for domain, names in SPECS.items() if kind in names]
        if not fitting:
            every = ", ".join(dict.fromkeys(name for names in SPECS.values() for name in names))
            raise ValueError(f"parts must begin with one of {every}, or be a Parts, got {parts!r}")
        return "audio" if "audio" in fitting and (len(fitting) == 1 or _is_sound(item, options)) else fitting[0]
    if isinstance(parts, np.ndarray):
        return "audio" if _is_sound(item, options) else "image"
    if isinstance(item, str | os.PathLike):
        suffix = Path(item).suffix.lower() if _names_a_file(item) else ""
        return "image" if suffix in image.SUFFIXES else "audio" if suffix in audio.SUFFIXES else "text"
    if options.get("background") is not None or isinstance(item, dict) or (hasattr(item, "index") and hasattr(item, "iloc")):
        return "tabular"
    shape = np.shape(item)
    if len(shape) == 2 and min(shape) <= 2 and max(shape) >= 1000:
        raise ValueError(f"an array of shape {shape} looks like a sound, which must be (samples,); "
                         f"{audio.without_channels(shape)}")
    if len(shape) in (2, 3):
        return "audio" if _is_sound(item, options) else "image"
    if len(shape) == 1 and shape[0] >= WHOLE_SOUND:
        return "audio"
    raise ValueError(f"an input must be a text, a file, an image, a sound or a table row, got {type(item).__name__} of shape "
                     f"{shape}; for a row pass background=training data, for a sound parts='time:16'")


def _is_sound(item: Any, options: dict[str, Any]) -> bool:
    """Is this a sound, where its parts could be an image's too? By the file's name, its one axis, or units of a sound."""
    if isinstance(item, str | os.PathLike):
        return _names_a_file(item) and Path(item).suffix.lower() in audio.SUFFIXES
    units = any(options.get(name) is not None for name in ("rate", "hop_seconds", "band_edges_hz"))
    return options.get("background") is None and (units or np.ndim(item) == 1)


def is_table(background: Any, parts: Any, options: dict[str, Any]) -> bool:
    """Is this training data rows of a table, or a list of texts, images or sounds? Where it could be both, parts decide."""
    if isinstance(parts, str):
        return parts.partition(":")[0] in SPECS["tabular"]
    if isinstance(parts, np.ndarray | Parts):
        return False  # cut by hand: an image or a sound, or ready-made and in need of no more
    if isinstance(background, tabular.TableStatistics) or hasattr(background, "columns"):
        return True
    if any(options.get(name) is not None for name in ("rate", "hop_seconds", "band_edges_hz")) or len(background) == 0:
        return False
    first = background.iloc[0] if hasattr(background, "iloc") else background[0]
    return not isinstance(first, str | bytes) and len(np.shape(first)) == 1


def prepare(options: dict[str, Any]) -> dict[str, Any]:
    """Training data is summed up once, not for every row; statistics pass through."""
    background = options.get("background")
    if background is None:
        return options
    if hasattr(background, "detach"):
        background = background.detach().cpu().numpy()
    if isinstance(background, tabular.TableStatistics):
        given = [name for name in ("bins", "categorical", "names") if name in options]
        if given:
            raise ValueError(f"{', '.join(given)} cannot be set when background is statistics: they were fitted with their own")
        return options
    fitting = {name: options[name] for name in ("bins", "categorical", "names") if name in options}
    rest = {name: value for name, value in options.items() if name not in fitting}
    return {**rest, "background": tabular.TableStatistics.fit(background, **fitting)}


def cut(item: Any, parts: Any, layout: str, options: dict[str, Any], reads: Callable[[str], int] = len) -> Parts:
    """The parts of one input; options that its domain does not know are refused.

    `reads` says how many characters of a text the model takes in; words beyond them are shown, and no parts.
    """
    if isinstance(parts, Parts) and not isinstance(parts, str | np.ndarray):
        if options:
            raise TypeError(f"parts were given ready-made, so {', '.join(options)} cannot be set; set it where they are cut")
        check_own(item, parts)
        return parts
    if hasattr(item, "toarray"):
        raise TypeError(f"an input must be dense, got a sparse {type(item).__name__} of shape {item.shape}; pass x.toarray(), "
                        "or x.toarray()[0] for one row")
    sound_asked = layout in SOUNDS and not isinstance(item, str | os.PathLike) and (
        not isinstance(parts, str) or parts.partition(":")[0] in SPECS["audio"])
    domain = "audio" if sound_asked else domain_of(item, parts, options)
    if isinstance(parts, str) and not sound_asked and options.get("background") is None:
        _check_fit(item, parts, domain, options)
    wrong = [name for name in options if name not in OPTIONS[domain]]
    if wrong:
        raise TypeError(f"{', '.join(wrong)} cannot be used with {domain} inputs; they take {', '.join(OPTIONS[domain])}")
    if domain == "image":
        return image.ImageParts.cut(item, "slic:16" if parts is None else parts, layout="NHWC" if layout in SOUNDS else layout,
                                    **options)
    if domain == "text":
        return text.TextParts.cut(_text(item), parts or "bag", reads=reads, **options)
    if domain == "audio":
        sound, rate = _sound(item, options.pop("rate", None), layout)
        found = audio.AudioParts.cut(sound, "time:16" if parts is None else parts, rate=rate, **options)
        return replace(found, notes=(*found.notes, *_notes(item, sound, layout, options)))
    if options.get("background") is None:
        raise ValueError("a table row can only be explained against training data: pass background= an array, a DataFrame, "
                         "or statistics saved from one (--background train.csv on the command line)")
    return tabular.TableParts.cut(item, **options)


def check_own(item: Any, parts: Parts) -> None:
    """Ready-made parts must be those of the input that is explained; else another one would be, and nobody would notice."""
    if parts.domain not in ("image", "audio") or not isinstance(item, np.ndarray) or not parts.deterministic:
        return
    own = np.asarray(parts.compose(np.ones((1, len(parts.names)), dtype=bool), generator(0))[0])
    close = SAME * max(float(np.abs(own).max(initial=0)), 1e-12)
    if item.shape != own.shape or not np.allclose(item, own, rtol=0, atol=close, equal_nan=True):
        differ = "the values differ" if item.shape == own.shape else f"its shape is {item.shape}, theirs {own.shape}"
        raise ValueError(f"ready-made parts must be cut from the input that is explained, and are of another one ({differ}); "
                         "cut this input, or pass the one that the parts are of")


def source_of(item: Any) -> str:
    """The name of the file that is explained, where it is one."""
    return Path(item).name if isinstance(item, str | os.PathLike) and _names_a_file(item) else ""


def _check_fit(item: Any, parts: str, domain: str, options: dict[str, Any]) -> None:
    """Parts say of which domain an input is; one that cannot be is told so, and not that it is a bad one of that domain."""
    looks, what = domain, ""
    if domain in ("image", "audio") and isinstance(item, str) and not Path(item).suffix:
        looks, what = "text", f"the text {item[:40]!r}, which names no file"
    elif domain != "audio" and _is_sound(item, options) and (domain != "tabular" or np.size(item) >= WHOLE_SOUND):
        looks, what = "audio", "a sound"
    elif domain in ("text", "tabular") and isinstance(item, np.ndarray) and item.ndim in (2, 3):
        looks, what = "image", f"an array of shape {item.shape}, which looks like an image"
    if looks != domain:
        raise TypeError(f"parts {parts!r} are of {domain} inputs, got {what}; {looks} inputs take {', '.join(SPECS[looks])}")


def several(item: Any, options: dict[str, Any]) -> list[Any] | None:
    """The single inputs of a list, a DataFrame, a folder, a batch of images or of rows; None for one input."""
    if isinstance(item, str | os.PathLike):
        return files(item) if _is_folder(item) else None
    if hasattr(item, "detach") and item.ndim == 4:
        item = item.detach().cpu().numpy()  # a batch of images as torch has them
    if hasattr(item, "iterrows") and hasattr(item, "columns"):
        return [item.iloc[i] for i in range(len(item))]
    if options.get("background") is None and getattr(getattr(item, "dtype", None), "kind", "-") in "OUT" and np.ndim(item) == 1:
        texts = list(item)
        return texts if texts and all(isinstance(text, str) for text in texts) else None
    if isinstance(item, np.ndarray):
        rows = item.ndim == 2 and options.get("background") is not None
        return list(item) if rows or item.ndim == 4 else None
    if isinstance(item, list | tuple) and not item:
        raise ValueError("the list of inputs is empty; pass at least one input")
    if isinstance(item, list | tuple) and not np.isscalar(item[0]):
        return list(item) if options.get("background") is None or np.ndim(item[0]) > 0 or isinstance(item[0], dict) else None
    if isinstance(item, list | tuple) and isinstance(item[0], str) and options.get("background") is None:
        return list(item)
    return None


def files(folder: str | os.PathLike[str]) -> list[Any]:
    """The images, sounds and texts of a folder and its sub-folders, in order."""
    found = from_disk.inside(folder, FILES)
    if not found:
        raise ValueError(f"{folder} must hold images, sounds or .txt files, got none")
    return list(found)


def _text(item: Any) -> Any:
    if not isinstance(item, str | os.PathLike) or not _names_a_file(item):
        return str(item) if isinstance(item, Said) else item
    return read_text(item)


def read_text(path: str | os.PathLike[str]) -> str:
    """What a text file says."""
    return from_disk.text(path)


def _sound(item: Any, rate: int | None, layout: str) -> tuple[Any, int | None]:
    return audio.read(item, rate) if isinstance(item, str | os.PathLike) else (audio.as_heard(item, layout), rate)


def _notes(item: Any, sound: Any, layout: str, options: dict[str, Any]) -> tuple[str, ...]:
    """What was done to a sound that came as whole numbers, and which axis of a spectrogram was taken for time by guess."""
    kind = getattr(item, "dtype", None)
    if np.ndim(sound) == 1:
        whole = not isinstance(item, str | os.PathLike) and not str(kind).startswith(("float", "torch.float"))
        return (f"The samples are whole numbers ({kind}): they were brought to −1 to 1, as those of a sound file are.",
                ) if whole else ()
    frames, bands = np.shape(sound)
    known = layout in SOUNDS or options.get("band_edges_hz") is not None
    if known or (frames > bands and frames not in BAND_COUNTS) or (frames == bands and frames not in BAND_COUNTS):
        return ()
    return (f"The {frames} rows were taken for moments and the {bands} columns for bands of frequency: if it is the other way "
            "round, as in (mels, frames), say so with wt.model(…, layout='NFT'); if not, layout='NTF' leaves this note out.",)


def fitted(model: CheckedModel, item: Any, parts: Any, options: dict[str, Any]) -> CheckedModel:
    """The model with the layout of the sounds that it takes, where nobody has said and there is only one that it can be.

    Rows are bands where band_edges_hz, or the net's first layer, has as many as there are rows and not as there are columns.
    """
    shape: tuple[int, ...] = np.shape(item) if hasattr(item, "shape") else ()
    if model.layout in SOUNDS or len(shape) != 2 or not _may_be_sound(item, parts, options):
        return model
    edges = options.get("band_edges_hz")
    bands = len(edges) - 1 if edges is not None else None if model.preprocess is not None else getattr(
        model.function, "bands", None)
    layout = {(True, False): "NFT", (False, True): "NTF"}.get((shape[0] == bands, shape[1] == bands))
    return model if layout is None or hasattr(model.preprocess, "forward") else replace(model, layout=layout)


def with_channel(model: CheckedModel, sound: Any) -> CheckedModel:
    """The model with an axis of one channel for sounds, where nobody has said and its first layer must have one."""
    lacks = getattr(model.function, "lacks_channel", None)
    if sound is None or lacks is None or model.preprocess is not None or (
            "C" in model.layout and model.layout in SOUNDS):
        return model
    turned = "FT" in model.layout
    if not lacks((sound.T if turned else sound)[None]):
        return model
    return replace(model, layout="NCT" if sound.ndim == 1 else "NCFT" if turned else "NCTF")


def for_sounds(model: CheckedModel, items: Iterable[Any], parts: Any, options: Mapping[str, Any],
               read: Callable[[Any], Any] = lambda item: item) -> CheckedModel:
    """The model with the layout of the first of these inputs that can be read, where they are sounds and it has none yet.

    Inputs that cannot be read fail when their turn comes.
    """
    given = dict(options)
    for unread in items:
        try:
            item = read(unread)
            if not _may_be_sound(item, parts, given):
                return model
            found = fitted(model, item, parts, given)
            return with_channel(found, _sound(item, given.get("rate"), found.layout)[0])
        except (ValueError, TypeError, OSError):
            continue
    return model


def _may_be_sound(item: Any, parts: Any, options: dict[str, Any]) -> bool:
    if isinstance(parts, Parts) and not isinstance(parts, str | np.ndarray):
        return False  # cut already
    try:
        return domain_of(item, parts, options) == "audio"
    except ValueError:
        return False  # it is refused in its turn


class Said(str):
    """A text out of a file of texts. It is never taken for the name of a file: whoever wrote it could name any there is."""

    __slots__ = ()


def _names_a_file(item: str | os.PathLike[str]) -> bool:
    """A path does; a text does when it is one word that ends like a file we can read, and did not come out of a file itself."""
    if isinstance(item, os.PathLike | Said):
        return not isinstance(item, Said)
    return not any(c.isspace() or c == "\0" for c in item) and Path(item).suffix.lower() in FILES and len(item) < 4096


def _is_folder(item: str | os.PathLike[str]) -> bool:
    """A text is a folder only where it is written like one: "film" is a word even where a folder of that name lies about."""
    written = isinstance(item, os.PathLike) or ("/" in item and len(item) < 4096 and "\0" not in item)
    return written and not isinstance(item, Said) and os.path.isdir(item)
