"""Hugging Face classifiers of texts and images: a pipeline, or a model with its tokenizer or image processor.

Scores are the framework's own for each input alone: inputs are never padded, so a score does not depend on what else is in the
batch beyond rounding. Pipelines do not truncate a long text and fail on it; here the model reads what fits, and `reads` says
how much that is. transformers is never imported to find out whether a model is one of its own.
"""

from __future__ import annotations

import contextlib
import os
import urllib.error
import urllib.request
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.backends import huggingface_folder
from whytrust.backends.huggingface_text import TextScores, applied, logits_of, longest
from whytrust.backends.torch import TorchScores
from whytrust.backends.torch_cuts import as_array
from whytrust.backends.torch_modes import evaluating
from whytrust.checked import Refused
from whytrust.core import Batch, Floats, need

OPTIONS = ("device", "max_length")
IMAGES_AT_ONCE = 8
_SET_HERE = ("padding", "truncation", "max_length", "return_tensors", "return_offsets_mapping", "stride",
             "return_overflowing_tokens", "is_split_into_words", "pad_to_multiple_of", "padding_side")


def accepts(obj: Any) -> bool:
    """Is this a pipeline, a model with its tokenizer or image processor, or a text model that lacks its tokenizer?"""
    if isinstance(obj, tuple):
        return len(obj) == 2 and any(_is(one, "PreTrainedModel") for one in obj)
    return _is(obj, "Pipeline") or (_is(obj, "PreTrainedModel") and _task(type(obj)) == "text")


def adapt(obj: Any, device: str | None = None, max_length: int | None = None) -> tuple[Any, dict[str, Any]]:
    """The model as a function of texts or images; its classes' names and what its outputs are."""
    model, reader, preprocessing, wanted = _unpacked(obj)
    _check_device(model, device)
    apply, found = _outputs(model, wanted)
    found["name"] = type(model).__name__
    if _is(reader, "PreTrainedTokenizerBase"):
        own = preprocessing.get("max_length") if preprocessing.get("truncation") is not False else None
        length = longest(model, reader, max_length, own)
        settings = {k: v for k, v in preprocessing.items() if k not in _SET_HERE}
        return TextScores(model, reader, length, apply, settings, obj), found
    if max_length is not None:
        raise TypeError("max_length counts the tokens of a text and cannot be set for a model of images; leave it out")
    return ImageScores(model, reader, apply, obj), {**found, "layout": "NHWC"}


# --- images -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ImageScores:
    """An image classifier's scores: pictures go through its processor as the bytes a picture file would give.

    Floats are taken for 0–1, or for 0–255 where an image has a value above 2, and rounded to bytes.
    """

    model: Any
    processor: Any
    apply: str
    source: Any = field(default=None, repr=False)

    @property
    def kind(self) -> str:
        """A few words for a reader."""
        return f"Hugging Face {type(self.model).__name__} with its image processor"

    @property
    def device(self) -> str:
        """Where the model is, and its inputs go."""
        return str(next(self.model.parameters()).device)

    def __call__(self, batch: Batch) -> Floats:
        """(n, labels) for n images, (H, W, 3) or grey (H, W)."""
        torch = need("torch", "torch")
        scores = np.empty((len(batch), int(self.model.config.num_labels)))
        with evaluating(self.model), torch.no_grad():
            for start in range(0, len(batch), IMAGES_AT_ONCE):
                pictures = batch[start:start + IMAGES_AT_ONCE]
                scores[start:start + len(pictures)] = logits_of(self.model, self.model(**self._read(pictures)), len(pictures))
        return applied(self.apply, scores)

    def pullback(self, batch: Batch, preprocess: Any = None) -> Any:
        """Between the picture and the net stands a processor that rounds to bytes."""
        raise Refused("the image processor of a Hugging Face model has no gradient, what it makes of an image has: saliency, "
                      "integrated_gradients and the like ask there by themselves; to attack, pass the net with its own "
                      "preprocessing, wt.model(net, preprocess=…)")

    def cut(self, at: str | None, batch: Batch, preprocess: Any) -> tuple[Floats, Any, dict[str, Any]]:
        """The net behind its processor, or behind one of its layers, for a batch of one image."""
        if preprocess is not None or self.apply != "none":
            raise Refused("gradients behind an image processor are for models without a preprocess of their own and with one "
                          "label an image; pass the net with its preprocessing, wt.model(net, preprocess=…)")
        read = self._read(batch)
        if set(read) != {"pixel_values"}:
            raise Refused(f"the net must take pixel_values alone for gradients, its processor makes {', '.join(read)}")
        net, values = TorchScores(self.model), as_array(read["pixel_values"])
        if at is not None:
            return net.cut(at, values, None)
        return values[0], net, {"layer": "pixel_values", "seen": values.shape[1:]}

    def _read(self, pictures: Any) -> dict[str, Any]:
        """What the processor makes of pictures, where the net is."""
        torch, weight = need("torch", "torch"), next(self.model.parameters())
        made = self.processor(images=[_picture(one, getattr(self.model.config, "num_channels", 3)) for one in pictures],
                              return_tensors="pt", input_data_format="channels_last")
        return {name: values.to(weight.device, weight.dtype) if torch.is_floating_point(values) else values.to(weight.device)
                for name, values in made.items()}


def _picture(image: Any, channels: int) -> NDArray[np.uint8]:
    """One image as (H, W, channels) bytes."""
    if isinstance(image, str):
        raise TypeError(f"the model reads images, and the input is a text ({image[:40]!r}); pass an image, or a file of one")
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3 or pixels.shape[2] not in (1, 3, 4):
        raise ValueError(f"an image must be (H, W), (H, W, 1), (H, W, 3) or (H, W, 4), got shape {np.shape(image)}; "
                         "pass channels last")
    if pixels.dtype != np.uint8:
        pixels = _bytes(pixels)
    if channels == 1 and pixels.shape[2] != 1:
        raise ValueError(f"the model takes images with one channel, got shape {np.shape(image)}; pass grey images")
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 and channels == 3 else pixels[:, :, :channels]


def _bytes(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    low, high = float(pixels.min()), float(pixels.max())
    whole = pixels.dtype.kind in "iu"
    factor = 1 if whole or high > 2 else 255
    if not (low * factor >= -2.55 and high * factor <= 257.55):
        raise ValueError("an image must have whole numbers from 0 to 255, or floats from 0 to 1 or from 0 to 255, got "
                         f"{pixels.dtype} from {low:.4g} to {high:.4g}; pass the picture, the processor normalises it")
    return np.asarray(np.rint(np.clip(pixels.astype(np.float64) * factor, 0, 255)), dtype=np.uint8)


# --- what a model is --------------------------------------------------------------------------------------------------


def _is(obj: Any, name: str) -> bool:
    """Is the object of that class of transformers'? By name, so that nothing is imported to find out."""
    return any(c.__name__ == name and c.__module__.split(".")[0] == "transformers" for c in type(obj).__mro__)


def _task(cls: type) -> str | None:
    names = [c.__name__ for c in cls.__mro__]
    return next((task for task, mark in (("text", "ForSequenceClassification"), ("image", "ForImageClassification"))
                 if any(mark in name for name in names)), None)


def _unpacked(obj: Any) -> tuple[Any, Any, dict[str, Any], str | None]:
    """(model, tokenizer or image processor, the pipeline's settings for it, the pipeline's function of the outputs)."""
    if _is(obj, "Pipeline"):
        if obj.task not in ("text-classification", "sentiment-analysis", "image-classification"):
            raise TypeError(f"a pipeline must be for text-classification or image-classification, got one for {obj.task}")
        reader = obj.image_processor if obj.task == "image-classification" else obj.tokenizer
        chosen = obj._postprocess_params.get("function_to_apply")
        function = None if chosen is None else str(getattr(chosen, "value", chosen))
        return obj.model, reader, dict(obj._preprocess_params), function
    if not isinstance(obj, tuple):
        raise TypeError(f"{type(obj).__name__} reads tokens, not texts; pass (model, tokenizer)")
    model, reader = obj if _is(obj[0], "PreTrainedModel") else obj[::-1]
    reader = getattr(reader, "image_processor", reader) if _task(type(model)) == "image" else reader
    task = "text" if _is(reader, "PreTrainedTokenizerBase") else "image" if _is(reader, "ImageProcessingMixin") else None
    if task is None:
        raise TypeError(f"{type(model).__name__} must come with its tokenizer or image processor, got {type(reader).__name__}")
    if _task(type(model)) != task and type(model).__module__.split(".")[0] == "transformers":
        raise TypeError(f"{type(model).__name__} with {type(reader).__name__} gives no scores of classes; it must be a model "
                        f"for {'sequence' if task == 'text' else 'image'} classification")
    return model, reader, {}, None


def _outputs(model: Any, wanted: str | None) -> tuple[str, dict[str, Any]]:
    """What is done to the outputs, as transformers' pipelines decide it, and what CheckedModel is told of them."""
    labels, problem = int(model.config.num_labels), getattr(model.config, "problem_type", None)
    names = _distinct([str(model.config.id2label.get(i, f"LABEL_{i}")) for i in range(labels)])
    if wanted in (None, "default"):
        several = problem == "multi_label_classification"
        wanted = "none" if problem == "regression" else "sigmoid" if several or labels == 1 else "softmax"
    if wanted == "softmax" and labels == 1:
        raise ValueError("a softmax of one label is always 1; make the pipeline with function_to_apply='sigmoid'")
    if wanted == "none":
        return "none", {"classes": names if labels > 1 else None}
    if wanted == "sigmoid" and labels > 1:
        return "sigmoid", {"classes": names, "output": "probability"}
    return "none", {"classes": names if labels > 1 else (f"not {names[0]}", names[0]), "output": "logit"}


def _distinct(names: list[str]) -> tuple[str, ...]:
    while len(set(names)) < len(names):
        often = Counter(names)
        names = [f"{name} ({i})" if often[name] > 1 else name for i, name in enumerate(names)]
    return tuple(names)


def _check_device(model: Any, device: str | None) -> None:
    if device is None:
        return
    there = next(model.parameters()).device
    try:
        wanted = need("torch", "torch").device(device)
    except RuntimeError as error:
        raise ValueError(f"device must be one that torch knows, such as 'cpu' or 'cuda:0', got {device!r}") from error
    if wanted.type != there.type or (wanted.index is not None and wanted.index != there.index):
        raise ValueError(f"device must be where the model is, {there}, got {device!r}; move it with model.to({device!r})")


# --- from a name or a folder ------------------------------------------------------------------------------------------


def load(name: str, device: str | None = None) -> tuple[Any, Any]:
    """(model, its tokenizer or image processor) from a folder or a name on the Hugging Face hub.

    Code that comes with a model is never run. Weights are read from safetensors where there are any; a pickle is read as
    weights alone, and one that holds anything else is refused.
    """
    auto = need("transformers", "text")
    with quiet(), unwarned():
        local, config = _config(auto, name)
        architecture = huggingface_folder.architecture(name, config)
        text = "ForSequenceClassification" in architecture
        if not text and "ForImageClassification" not in architecture:
            raise ValueError(f"{name} must be a classifier of texts or images, got a {architecture}, which gives no scores of "
                             "classes; fine-tune it for sequence or image classification first")
        kind = auto.AutoModelForSequenceClassification if text else auto.AutoModelForImageClassification
        huggingface_folder.check_asked(name, config, kind)
        try:
            given = {"local_files_only": local, "trust_remote_code": False}
            model, info = kind.from_pretrained(name, output_loading_info=True, **given)
            reader = (auto.AutoTokenizer if text else auto.AutoImageProcessor).from_pretrained(name, **given)
        except Exception as error:
            raise ValueError(f"{name} ({architecture}) could not be loaded: {_line(error)}") from error
    # Where its files are missing, transformers makes a tokenizer that knows no word, and says nothing.
    if text and len(reader) <= len(reader.all_special_ids):
        raise ValueError(f"{name} ({architecture}) must come with its tokenizer; save it there with tokenizer.save_pretrained")
    if info["missing_keys"]:
        raise ValueError(f"{name} ({architecture}) lacks weights, so its scores would be random: "
                         f"{', '.join(sorted(info['missing_keys'])[:3])}")
    return (model if device is None else model.to(device)).eval(), reader


def _config(auto: Any, name: str) -> tuple[bool, Any]:
    """(whether it is all on this machine, its configuration); what is in the cache is used as it is."""
    folder = os.path.isdir(name)
    if folder:
        huggingface_folder.check(Path(name))
    try:
        return True, auto.AutoConfig.from_pretrained(name, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        if folder:
            raise ValueError(f"the folder {name} must hold a model saved with save_pretrained: {_line(error)}") from error
        constants = need("huggingface_hub.constants", "text")
        if not constants.HF_HUB_OFFLINE and _reachable(constants.ENDPOINT):
            try:
                return False, auto.AutoConfig.from_pretrained(name, trust_remote_code=False)
            except Exception as second:
                error = second
        raise ValueError(f"{name!r} is neither a folder nor in the Hugging Face cache, and could not be downloaded; "
                         f"pass a folder made with save_pretrained ({_line(error)})") from error


def _reachable(endpoint: str) -> bool:
    """The hub's own client tries for half a minute before it gives up."""
    try:
        urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def _line(error: Exception) -> str:
    """The first sentence of what transformers says, on one line."""
    return " ".join(str(error).split()).partition(". ")[0][:200].rstrip(".") or type(error).__name__


@contextlib.contextmanager
def unwarned() -> Iterator[None]:
    """No warnings about files either: what is wrong with them is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No bars and reports while loading; the user's own settings again afterwards."""
    logging = need("transformers.utils.logging", "text")
    bars, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
